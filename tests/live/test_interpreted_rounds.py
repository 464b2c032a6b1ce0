"""Whichever rounds run interpreted, a bandit makes the same decisions and has the same bytes."""

import itertools
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.live_bandits import QUICK
from robandit import Problem
from robandit.errors import NotApplicable
from robandit.laws import Gaussian, Pareto, ZeroInflated
from robandit.policies import all_policies
from robandit.problems import bernoulli

PROBLEM = Problem([-Pareto(tail=2.2), ZeroInflated(-Pareto(tail=1.8, scale=2.0), 0.3), Gaussian(mean=-3.0, sd=1.0)])
VARIANTS = [  # with other hooks, or other branches of them, than the default
    QUICK,
    rb.AdaRUCB(bonus="tight"),
    rb.AdaKLProved(pulls="double"),
    rb.APE2(perturbation="gev"),
    rb.KurtosisUCB(kappa=1.1),
    rb.LBSDA(memory="limited"),
    rb.LBSDA(window=50),
    rb.Probing(rb.UCB1()),
    rb.Restarting(rb.AdaKLUCB(), rate=0.5),
]
POLICIES = [*all_policies(), *VARIANTS]
ROUNDS = amount(250, 400)
# These resample or integrate for a decision: without compilation it takes up to 60 ms.
SLOW = {"MARS": 40, "RMM-UCB": 30, "Gaussian TS": 60}
EXTREMES = [1e150, -1e150, 1e-130, -1e-130, 1.0, -1.0, 0.0, -0.0]


def losses(rng):
    """Heavy-tailed, with zeros."""
    return -float(rng.pareto(1.6)) - 0.01 if rng.random() < 0.8 else 0.0


def ties(rng):
    return float(rng.integers(-2, 3))


def extremes(rng):
    """Of all sizes and both signs."""
    kind = rng.integers(4)
    if kind == 0:
        return float(rng.choice(EXTREMES))
    if kind == 1:
        return float(rng.standard_cauchy())
    return float(np.exp(30.0 * rng.normal()) * rng.choice([-1.0, 1.0])) if kind == 2 else ties(rng)


class Pair:
    """A compiled bandit, and one whose entries change between compiled and interpreted; both get the same calls."""

    def __init__(self, policy, seed):
        self.rng = np.random.default_rng(seed)
        self.compiled, self.mixed = (
            rb.Bandit(range(3), policy, seed, clock=lambda: 0.0, compile=when) for when in ("now", "never")
        )
        names = ["ask", "tell", "issue", "forget"]
        if policy.chance is not None and not policy.weighted:
            names.append("chance_of")
        self.choices = []
        for name in names:
            for bandit in (self.compiled, self.mixed):
                bandit._engine.prepare(name)
            entries = [bandit._engine._entries[name] for bandit in (self.compiled, self.mixed)]
            assert entries[0] != entries[1]
            self.choices.append((name, entries))
        # Two bandits never give the same ids to decisions, and ids are part of the bytes.
        for bandit in (self.compiled, self.mixed):
            ids = ((f"k3m9-{number}", "k3m9", number) for number in itertools.count())
            bandit._decisions._life = SimpleNamespace(next_id=partial(next, ids))

    def switch(self):
        """Choose for each entry whether it is compiled or interpreted."""
        for name, entries in self.choices:
            self.mixed._engine._set(name, entries[int(self.rng.random() < 0.7)])

    def __getattr__(self, method):
        def call(*args):
            one, other = (getattr(bandit, method)(*args) for bandit in (self.compiled, self.mixed))
            assert repr(one) == repr(other), f"{method}{args}"
            return one

        return call


def live(policy, rewards, seed, rounds):
    """Let both bandits live through the same random events, with everything that a bandit can do."""
    pair = Pair(policy, seed)
    rng, open_decisions, paused = pair.rng, [], []
    for _ in range(rounds):
        pair.switch()
        among = None
        if policy.respects_allowed and rng.random() < 0.1:
            active = [arm for arm, state in pair.compiled.states.items() if state == "active"]
            among = [arm for arm in active if rng.random() < 0.6] or None
        action = rng.random()
        if action < 0.6:
            pair.update(pair.select(among), rewards(rng))
        elif action < 0.8:
            open_decisions.append(pair.decide(among).id)
        elif open_decisions:
            decision = open_decisions.pop(int(rng.integers(len(open_decisions))))
            if rng.random() < 0.8:
                pair.reward(decision, rewards(rng))
            else:
                pair.expire(decision)
        if policy.respects_allowed and rng.random() < 0.03:
            if paused:
                pair.resume_arm(paused.pop())
            else:
                paused.append(int(rng.integers(len(pair.compiled.arms))))
                pair.pause_arm(paused[-1])
        if rng.random() < 0.005:
            pair.add_arm(len(pair.compiled.arms))
    return pair


def informed(policy):
    try:
        policy = policy.informed_by(PROBLEM)
    except NotApplicable:
        policy = policy.informed_by(bernoulli(means=[0.2, 0.8]))
    return policy.prepared(min(2000, policy.longest or 2000))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_it_does_not_matter_which_rounds_are_interpreted(policy):
    policy = informed(policy)
    rounds = SLOW.get(policy.label, ROUNDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rb.errors.DriftWarning)
        warnings.simplefilter("ignore", rb.errors.AssumptionWarning)
        for seed, rewards in enumerate((losses, ties, extremes)):
            pair = live(policy, rewards, seed, rounds)
            assert pair.compiled.to_bytes() == pair.mixed.to_bytes(), rewards.__name__
            pair.estimates()
            pair.counters()


class Powers(rb.UCB1):
    """UCB1 with a power that compiled code computes by products, and Python by ``pow``."""

    @staticmethod
    def update(p, s, arm, reward):
        rb.UCB1.update(p, s, arm, reward**5)


def test_the_comparison_notices_other_arithmetic():
    pair = live(Powers(), losses, 0, ROUNDS)
    assert pair.compiled.to_bytes() != pair.mixed.to_bytes()
