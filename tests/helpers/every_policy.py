"""Every policy and its variants, ready to play, for tests of what all of them promise."""

import robandit as rb
from helpers.live_bandits import QUICK
from robandit.errors import NotApplicable
from robandit.laws import Gaussian, Pareto, ZeroInflated
from robandit.policies import all_policies
from robandit.problems import Problem, bernoulli

PROBLEM = Problem([-Pareto(tail=2.2), ZeroInflated(-Pareto(tail=1.8, scale=2.0), 0.3), Gaussian(mean=-3.0, sd=1.0)])
VARIANTS = [  # with other states, or other branches of their hooks
    QUICK,
    rb.AdaRUCB(c=0.2, delta_exp=0.5, solver="doubling"),
    rb.AdaKLProved(pulls="double"),
    rb.APE2(perturbation="gev"),
    rb.ClippedSGDUCB(groups=3, batch=2),
    rb.KLinfUCB(batch=0.5),
    rb.KurtosisUCB(kappa=1.1),
    rb.LBSDA(memory="limited"),
    rb.LBSDA(window=50),
    rb.RobustUCB(common_threshold=True),
    rb.RUCBMoM(g="corollary"),
    rb.RUCBTEA(f="corollary"),
    rb.Probing(rb.UCB1()),
    rb.Restarting(rb.AdaKLUCB(), rate=0.5),
    rb.Floor(rb.Probing(rb.EpsilonGreedy()), share=0.3, arms={"b": 0.1}),
]


def ready(policy, horizon):
    """Return a policy that is told what it must know, for bounded rewards if its moments are infinite."""
    try:
        return policy.informed_by(PROBLEM).prepared(horizon)
    except NotApplicable:
        return policy.informed_by(bernoulli(means=[0.2, 0.8])).prepared(horizon)


def every_policy(horizon):
    return [ready(policy, horizon) for policy in [*all_policies(), *VARIANTS]]
