"""LB-SDA."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_lb_sda import SlowLBSDA
from robandit.errors import InvalidInput
from robandit.policies._parts.reward_store import ROOM
from robandit.policies.sampling import lb_sda as module
from robandit.policies.sampling.lb_sda import LBSDA, LIVE
from robandit.policies.sampling.rounds import LEADER, ROUND


def test_the_first_rounds_by_hand():
    """Two arms: the leader's LAST rewards decide, and equal means are a win of the challenger."""
    live = Live(LBSDA(), 2)
    rewards = {0: [1.0, 0.0, 4.0, 0.0], 1: [0.0, 0.0, 2.0]}
    chosen = []
    for _ in range(6):
        arm = live.ask()
        chosen.append(arm)
        live.tell(arm, rewards[arm][chosen.count(arm) - 1])
    # Both arms are tried. Round 1: equally many rewards, and arm 0 has the larger mean. Round 2: its last reward is 0, so arm 1
    # wins with 0. (With its first reward, 1, it would lose.) Round 3: 2 rewards each, arm 0 leads with 1/2 against 0. Round 4:
    # arm 1 with [0, 0] against [0, 4]: it loses.
    assert chosen == [0, 1, 0, 1, 0, 0]


def test_forced_pulls_by_hand():
    """sqrt(log r) passes 1 at r = 3: the hopeless arm gets its second pull in round 3, and its third when r > e^4 = 54.6."""
    live = Live(LBSDA(), 2)
    pulled = []
    for _ in range(60):
        arm = live.ask()
        live.tell(arm, [1.0, -5.0][arm])
        if arm == 1:
            pulled.append(int(live.s.clock[ROUND]))
    assert pulled == [0, 3, 55]
    assert math.sqrt(math.log(54)) < 2 < math.sqrt(math.log(55))


VARIANTS = {
    "all": {},
    "limited": {"memory": "limited"},
    "window 12": {"window": 12},
    "window 60": {"window": 60},
    "window 4": {"window": 4},
}


@pytest.mark.independent("LBSDA")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_slow_one(kind, variant):
    """Every decision is equal, ties included: the reference uses exact fractions."""
    arms = 2 + len(kind) % 4
    rng = np.random.default_rng(len(kind) + len(variant))
    live, slow = Plain(LBSDA(**VARIANTS[variant]), arms), SlowLBSDA(arms, **VARIANTS[variant])
    for step in range(amount(120, 250)):
        arm = live.ask()
        assert arm == slow.choose(), step
        reward = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert live.describe()["stored"].tolist() == [len(slow.compared(arm)) for arm in range(arms)]
    for arm, found in enumerate(live.describe()["mean"]):
        own = slow.compared(arm)
        assert np.isnan(found) if not own else found == pytest.approx(math.fsum(own) / len(own), rel=1e-13, abs=1e-300)


def test_the_variants_differ():
    """A comparison of runs that all agree would show nothing."""
    rewards = np.random.default_rng(3).normal(size=(4, 3000)) + np.array([[0.0], [0.1], [0.2], [0.3]])
    runs = [Live(LBSDA(**options), 4).replay(rewards, 3000).tolist() for options in VARIANTS.values()]
    assert len(set(map(tuple, runs))) == len(runs)


def test_the_diversity_rule_is_used():
    """Window 100: D = int(2 (log 100)^2) = 42. Arm 1 becomes the best, and is pulled in each round but does not lead yet. After 42
    rounds in which neither the leader nor arm 2 is pulled, arm 2 is pulled although it loses its duel."""
    live, slow = Plain(LBSDA(window=100), 3), SlowLBSDA(3, window=100)
    extra = []
    for t in range(300):
        arm = live.ask()
        assert arm == slow.choose()
        counts = [len(slow.rewards(k)) for k in range(3)]
        if slow.r > 0 and arm != slow.leader and counts[arm] > math.sqrt(math.log(100)) and not slow.wins(arm):
            extra.append(
                (slow.r - slow.drawn[slow.leader], slow.r - slow.drawn[arm], counts[arm] <= math.log(100) ** 2)
            )
        reward = [1.0, 0.0 if t < 100 else 5.0, -5.0][arm]
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert extra
    assert all(leader >= 42 and own >= 42 and rare for leader, own, rare in extra)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=120), st.sampled_from(list(VARIANTS.values())))
def test_it_is_the_slow_one_with_many_ties(rewards, options):
    live, slow = Plain(LBSDA(**options), 3), SlowLBSDA(3, **options)
    for reward in rewards:
        arm = live.ask()
        assert arm == slow.choose()
        live.tell(arm, 0.1 * reward)
        slow.learn(arm, 0.1 * reward)


# --- digits and memory ---------------------------------------------------------------------------------------------------------


def leader_after(outliers, tail, **options):
    """A run in which arm 0 got outliers and then the rewards ``tail``, and arm 1 the same tail."""
    live = Plain(LBSDA(**options), 2)
    for reward in [*outliers, *tail]:
        live.tell(0, reward)
    for reward in tail:
        live.tell(1, reward)
    return live


def test_an_outlier_outside_of_the_block_does_not_matter():
    """The last four rewards of the leader equal those of the challenger, which wins the tie. Plain sums have no digits."""
    tail = [0.1, 0.7, -0.3, 0.2]
    live = leader_after([1e17], tail)
    assert live.ask() == 1
    sums = np.cumsum([1e17, *tail])
    assert sums[-1] - sums[0] != math.fsum(tail)  # the control: 1e17 has no digits for them
    assert module.last_sum(live.s, 0, 4) == pytest.approx((0.0, math.fsum(tail)), abs=1e-15)


def test_a_small_difference_decides():
    """The challenger is worse by 1e-13 in one reward, and loses. 1e17 has no digits for that."""
    tail = [0.1, 0.7, -0.3, 0.2]
    live = Plain(LBSDA(), 2)
    for reward in [1e17, *tail]:
        live.tell(0, reward)
    for reward in [*tail[:3], 0.2 - 1e-13]:
        live.tell(1, reward)
    assert live.ask() == 0


def test_a_window_forgets_outliers_of_any_size():
    """Two outliers of different sizes leave no digits in a sum and its error. They return when the rewards are summed anew."""
    live = Plain(LBSDA(window=20), 2)
    rng = np.random.default_rng(0)
    values = [1e150, 1e20, *rng.random(200).tolist()]
    for value in values:
        live.tell(0, value)
    assert live.describe()["mean"][0] == pytest.approx(math.fsum(values[-20:]) / 20, rel=1e-14)
    never = leader_after(values[:2], values[2:])
    assert sum(module.last_sum(never.s, 0, 20)) != pytest.approx(math.fsum(values[-20:]), rel=1e-6)  # summed once


@pytest.mark.parametrize(("options", "most"), [({"window": 200}, 200), ({"memory": "limited"}, 100)])
def test_memory_is_bounded(options, most):
    """An arm has at most 6 times the room for the rewards in use at one time; log(20000)^2 = 98."""
    rewards = np.random.default_rng(1).standard_normal((5, 20_000))
    live = Live(LBSDA(**options), 5)
    live.replay(rewards, 20_000)
    assert live.s.counts[LIVE].max() <= most
    assert live.s.slots[:5, ROOM].max() <= 6 * most
    assert len(live.s.pool) <= 5 * 6 * most
    everything = Live(LBSDA(), 5)
    everything.replay(rewards, 20_000)
    assert len(everything.s.pool) >= 20_000


# --- other properties ----------------------------------------------------------------------------------------------------------


def test_the_window_notices_that_a_bad_arm_became_the_best():
    shares = []
    for policy in (LBSDA(window=300), LBSDA()):
        rng, live, chosen = np.random.default_rng(0), Live(policy, 2), []
        for t in range(6000):
            arm = live.ask()
            live.tell(arm, 0.8 if arm == 1 else float(rng.random() < (0.2 if t < 3000 else 1.0)))
            chosen.append(arm)
        assert np.mean(chosen[1000:3000]) > 0.9
        shares.append(np.mean(np.array(chosen[3500:]) == 0))
    assert shares[0] > 0.8
    assert shares[1] < 0.5  # the control: without a window, the old rewards of that arm count for ever


def test_parameters_are_checked():
    for bad in (1, 0, -3, 2.5, True, "many", 10**8):
        with raises(InvalidInput, parameter="window", rule="an integer from 2 to 10000000"):
            LBSDA(window=bad)
    with raises(InvalidInput, parameter="memory", rule="one of 'all', 'limited'"):
        LBSDA(memory="some")
    with raises(InvalidInput, parameter="memory", rule="'all' if there is a window"):
        LBSDA(memory="limited", window=100)
    assert LBSDA(window=100).facts.title == "LB-SDA, sliding window"
    assert LBSDA(window=100).facts.instance == ""


def test_the_assumption():
    policy = LBSDA()
    met = policy.facts.assumption.holds_for
    assert met(policy, rb.problems.bernoulli(means=[0.2, 0.8]))
    assert met(policy, rb.problems.gaussian(means=[0.0, 1.0], sd=2.0))
    assert met(policy, rb.Problem([rb.laws.Gaussian(mean=0, sd=1), rb.laws.Gaussian(mean=1, sd=2)])) is None
    assert met(policy, rb.problems.pareto(means=[1.0, 2.0], tail=1.5)) is False


def test_equal_means_of_different_counts_are_equal():
    """0.1 has no exact double: 7 rewards of 0.1 and 9 of them still have the same mean."""
    for value in (0.1, -1e-300, 1e150, 3.3):
        pairs = []
        for n in (7, 9):
            live = leader_after([], [value] * n, window=100)
            pairs.append((*module.last_sum(live.s, 0, n), n))
        assert module.excess_of_mean(*pairs[0], *pairs[1]) == 0.0
        assert module.excess_of_mean(*pairs[0][:2], 7, *pairs[1][:2], 8) * math.copysign(1.0, value) < 0.0


@settings(max_examples=amount(100, 200), deadline=None)
@given(st.floats(-1e100, 1e100), st.integers(1, 10**6), st.floats(-1e100, 1e100), st.integers(1, 10**6))
def test_means_are_compared_exactly(a, n, b, m):
    found = module.excess_of_mean(a, 0.0, n, b, 0.0, m)
    expected = Fraction(a) * m - Fraction(b) * n
    if abs(a) > 1e-200 < abs(b):  # below, errors of products underflow
        assert (found > 0) == (expected > 0)
        assert (found < 0) == (expected < 0)


def test_the_leader_is_kept_in_a_tie():
    live = Plain(LBSDA(), 2)
    for arm in (0, 1):
        live.tell(arm, 1.0)
    assert live.ask() == 0
    live.tell(0, 1.0)  # round 1: arm 0 leads, and arm 1 catches up
    assert live.ask() == 1
    live.tell(1, 1.0)
    assert live.s.clock[LEADER] == 0
    assert live.ask() == 0
