"""Which policies are invariant to scaling, shifting and reordering rewards, and which must not be.

KurtosisUCB (its forced phase is longer than these runs), RMM-UCB and MARS (too slow for them) have their own files. Decisions are
compared over whole runs. Factors are powers of two, so that arithmetic without powers is exact.
"""

import dataclasses

import numpy as np
import pytest

import robandit as rb
from helpers.driving import Live, Plain, seeded
from robandit.kernel.loops import SMALLEST_REWARD

# The tests share one run of each policy, so they run in one process.
pytestmark = pytest.mark.xdist_group("symmetries")

ARMS = 3
STEPS = 1500
SCALE = 8.0
SHIFT = 2.0

# Left-skewed and heavy-tailed, with gaps of the order of the spread, so that policies leave their forced phases.
SOURCE = np.random.default_rng(11)
REWARDS = -(SOURCE.pareto(2.5, (ARMS, STEPS)) + 1.0) - np.array([0.0, 0.5, 1.0])[:, None]
RUCB = (rb.RUCBTEA(), rb.RUCBMoM(), rb.RUCBLT())

# Policies with parameters of the right size, and for each parameter that scales the power of the reward's unit.
SCALED = {
    "truncated": (rb.RobustUCB(eps=0.5, u=8.0), {"u": 1.5}),
    "median_of_means": (rb.RobustUCB(estimator="median_of_means", eps=0.5, v=0.2), {"v": 1.5}),
    "catoni": (rb.RobustUCB(estimator="catoni", v=1.0), {"v": 2.0}),
    "moss": (rb.RobustMOSS(eps=0.5, u=4.0), {"u": 1.5}),
    "klinf": (rb.KLinfUCB(eps=0.5, u=8.0), {"u": 1.5}),
    "ape2": (rb.APE2(eps=0.5), {"c": 1.0}),
    "mr_ucb": (rb.MRUCB(eps=0.5), {"c": 1.0, "c_est": 1.0}),
    "mr_ape": (rb.MRAPE(eps=0.5), {"c": 1.0}),
    "htinf": (rb.HTINF(eps=0.5, u=8.0), {"u": 1.5}),
    "ucb1": (rb.UCB1(), {"scale": 1.0}),
    "ucb_v": (rb.UCBV(range=2.0), {"range": 1.0}),
    "bds": (rb.DirichletSampling(bonus="bounded", upper=1.0), {"upper": 1.0}),
    "imed": (rb.IMED(scale=2.0), {"scale": 1.0}),
    "imed_bounded": (rb.IMED(family="bounded", upper=-0.5), {"upper": 1.0}),
    "maillard": (rb.MaillardSampling(scale=2.0), {"scale": 1.0}),
    "maillard_bounded": (
        rb.MaillardSampling(family="bounded", lower=-20.0, upper=2.0),
        {"lower": 1.0, "upper": 1.0},
    ),
    "clipped_sgd": (rb.ClippedSGDUCB(range=4.0), {"range": 1.0, "coeff": 1.0, "smoothing": 1.0}),
}
FREE = {
    "adar": rb.AdaRUCB(bonus=0.5, c=1.0, guard=1.0),
    "adakl": rb.AdaKLUCB(),
    "adakl_proved": rb.AdaKLProved(),
    "normal": rb.NormalUCB(),
    "gaussian_ts": rb.GaussianTS(),
    "lepskii": rb.CatoniLepskiiUCB(eps=0.9),
    "ucb_v_observed": rb.UCBV(),
    "greedy": rb.EpsilonGreedy(),
    "uniform": rb.Uniform(),
    "force_mom": rb.ForceMoM(),
    "lb_sda": rb.LBSDA(),
    "lb_sda_window": rb.LBSDA(window=100),
    "rds": rb.DirichletSampling(),
}
FIXED = {"opt": rb.OptTINF(), "ada": rb.AdaTINF(), "ada2": rb.Ada2TINF(), "uniinf": rb.UniINF()}
FIXED |= {policy.label: policy for policy in RUCB}
ALL = {name: policy for name, (policy, _) in SCALED.items()} | FREE | FIXED


def played(policy, rewards):
    """Return the arms that a policy chooses on a table of rewards, always with the same random stream."""
    live = Live(policy, ARMS, STEPS)
    if "rng" in live.s._fields:
        seeded(live, 4)
    used = np.zeros(ARMS, dtype=int)
    chosen = np.empty(STEPS, dtype=int)
    for t in range(STEPS):
        chosen[t] = arm = live.ask()
        live.tell(arm, float(rewards[arm, used[arm]]))
        used[arm] += 1
    return chosen


@pytest.fixture(scope="module")
def plain():
    return {name: played(policy, REWARDS) for name, policy in ALL.items()}


def test_the_runs_are_about_rewards(plain):
    """A policy that never leaves its forced phase would pass any test of symmetry."""
    turned = REWARDS[::-1].copy()
    for name, policy in ALL.items():
        if policy.uses_rewards:
            assert (played(policy, turned) != plain[name]).mean() > 0.02, name


TINY = 2.0**-431  # the smallest rewards have nearly the size SMALLEST_REWARD


@pytest.mark.parametrize("name", [*SCALED, *FREE])
def test_scale_changes_nothing_if_parameters_scale_too(name, plain):
    """Not even the smallest rewards: if squares underflowed, the confidence width would be 0, and the policy greedy."""
    assert SMALLEST_REWARD / 2 < TINY * np.abs(REWARDS).min() < 2 * SMALLEST_REWARD
    policy = ALL[name]
    powers = SCALED.get(name, (None, {}))[1]
    scaled = {field: getattr(policy, field) * TINY**power for field, power in powers.items()}
    assert (played(dataclasses.replace(policy, **scaled), TINY * REWARDS) == plain[name]).all()


# Their squares are the smallest that occur.
@pytest.mark.parametrize("name", ["adakl", "normal", "gaussian_ts", "ucb_v_observed"])
def test_rewards_that_differ_in_their_last_digits_keep_their_confidence_width(name):
    digits = 1.0 + np.random.default_rng(5).integers(0, 9, (ARMS, STEPS)) * 2.0**-52
    assert (played(ALL[name], TINY * digits) == played(ALL[name], digits)).all()


@pytest.mark.parametrize("name", [*SCALED, *FIXED])
def test_scale_matters_if_parameters_stay(name, plain):
    assert (played(ALL[name], SCALE * REWARDS) != plain[name]).any()


INVARIANT = [
    "median_of_means",
    "catoni",
    rb.RUCBMoM.label,
    rb.RUCBLT.label,
    "normal",
    "ucb1",
    "ucb_v",
    "ucb_v_observed",
]
INVARIANT += ["lb_sda", "lb_sda_window", "rds", "gaussian_ts", "imed", "maillard"]
INVARIANT += ["adakl", "greedy", "uniform", "force_mom", "clipped_sgd"]


@pytest.mark.parametrize("name", INVARIANT)
def test_shift_changes_nothing(name, plain):
    assert (played(ALL[name], REWARDS + SHIFT) == plain[name]).all()


@pytest.mark.parametrize("name", sorted(set(ALL) - set(INVARIANT)))
def test_shift_matters(name, plain):
    assert (played(ALL[name], REWARDS + 8.0 * SHIFT) != plain[name]).any()


ORDER_FREE = [
    "adar",
    "adakl_proved",
    "catoni",
    "ape2",
    "klinf",
    "moss",
    "mr_ucb",
    "mr_ape",
    "ucb1",
    "ucb_v",
    "ucb_v_observed",
    "normal",
]
ORDER_FREE += [rb.RUCBTEA.label, rb.RUCBLT.label]
ORDERED = ["adakl", "truncated", "median_of_means", rb.RUCBMoM.label]
ORDERED += ["force_mom", "clipped_sgd"]


def described(policy, rewards):
    """Return the estimates after all rewards, one of each arm in turn."""
    live = Live(policy, ARMS, STEPS)
    for j in range(400):
        for arm in range(ARMS):
            live.tell(arm, float(rewards[arm, j]))
    return Plain(live.policy, ARMS, state=live.s).describe()  # compiling it for one call would take longer


def reordered():
    """Permute even and odd positions separately, because AdaR-UCB learns different things from them."""
    even = np.random.default_rng(3).permutation(np.arange(0, 400, 2))
    odd = np.random.default_rng(4).permutation(np.arange(1, 400, 2))
    order = np.empty(400, dtype=int)
    order[::2], order[1::2] = even, odd
    return REWARDS[:, order]


@pytest.mark.parametrize("name", ORDER_FREE)
def test_only_the_multiset_of_rewards_counts(name):
    first, second = described(ALL[name], REWARDS), described(ALL[name], reordered())
    for column in first:
        np.testing.assert_allclose(second[column], first[column], rtol=1e-9, atol=1e-12, err_msg=column)


@pytest.mark.parametrize("name", ORDERED)
def test_arrival_order_counts(name):
    first, second = described(ALL[name], REWARDS), described(ALL[name], reordered())
    shown = "index" if name == "adakl" else "mean"  # here its mean is that of all rewards; the centre is in the index
    assert not np.allclose(second[shown], first[shown], rtol=1e-6)
