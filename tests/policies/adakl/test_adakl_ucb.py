"""AdaKL-UCB, the default, against its definition, and what a live bandit asks of it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.rewards import HARD, KINDS
from references.slow_adakl_adaptive import SlowAdaptive
from robandit.policies import AdaKLUCB
from robandit.policies.adakl import adakl_ucb, clipped_index, leader, left_tail
from robandit.policies.adakl.centre import due, median_in_place
from robandit.policies.adakl.clipped_index import ABOVE, BIG, CENTRE, KEPT, LEADER, N_NEAR, UP, N
from robandit.policies.adakl.clusters import COUNT
from robandit.policies.adar.layout import FALLBACKS, LIMIT
from robandit.policies.assumptions import NOTHING

# One process compiles once for all tests here.
pytestmark = pytest.mark.xdist_group("adakl")


def agree(live, slow, arms=None):
    """Indices to 1e-9 of their distance from the centre; sums with the centre are rounded."""
    found = live.describe()["index"]
    for arm in range(live.arms) if arms is None else arms:
        wanted = slow.index(arm)
        if wanted == math.inf:
            assert found[arm] == math.inf
        else:
            m = live.s.arms[arm, CENTRE]
            assert abs(found[arm] - wanted) <= 1e-9 * abs(wanted - m) + 4e-16 * abs(m), (arm, found[arm], wanted)


@pytest.mark.independent("AdaKLUCB")
@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_the_references(kind):
    number = list(KINDS).index(kind)
    arms, scale = 2 + number % 3, [1.0, 2.0**-300, 1e140][number % 3]
    live, slow = Live(AdaKLUCB(), arms, None if number % 2 else 500), SlowAdaptive(arms)
    rng = np.random.default_rng([1, number])
    rewards = [scale * KINDS[kind](rng, arm, 500) for arm in range(arms)]
    used, ties = [0] * arms, 0
    for t in range(amount(150, 300)):
        arm = live.ask()
        if t < amount(50, 80) or t % 6 == 0:
            wanted = slow.ask()
            if arm != wanted:  # allowed if the two cannot be told apart
                first, second = slow.index(arm), slow.index(wanted)
                ties += 1
                assert abs(first - second) <= 1e-9 * max(abs(first), abs(second)), (t, first, second, used)
        reward = float(rewards[arm][used[arm]])
        used[arm] += 1
        live.tell(arm, reward)
        slow.tell(arm, reward)
    agree(live, slow)
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert ties <= 2


@pytest.mark.parametrize(
    ("kind", "horizon"),
    [
        ("losses, tail 1.1", None),
        ("losses, tail 1.5", 20_000),
        ("student", 20_000),
        ("student", None),
        ("gains", None),
        ("gains", 20_000),
        ("narrow gains", 20_000),
        ("half zeros", None),
        ("coins", None),
    ],
)
def test_many_rewards_of_one_arm(kind, horizon):
    """Most become power sums; the indices of the leader, and of an arm that borrows from it, stay the reference's."""
    live, slow = Live(AdaKLUCB(), 2, horizon), SlowAdaptive(2)
    rng = np.random.default_rng(3)
    rewards, others = KINDS[kind](rng, 0, 5000).tolist(), KINDS[kind](rng, 1, 40).tolist()
    for t, reward in enumerate(rewards):
        for arm, value in ((0, reward), (1, others[t // 125] if t % 125 == 0 else None)):
            if value is not None:
                live.tell(arm, value)
                slow.tell(arm, value)
        if t in (300, 511, 512, 600, 900, 1501, 2600, 4999):
            agree(live, slow)
        elif t % 5 == 0:
            live.ask()  # so that curves are followed, not only made
    counts = live.s.counts[0]
    assert live.s.clock[LEADER] == 0
    assert counts[N_NEAR] > (0.45 if kind == "coins" else 0.7) * len(
        rewards
    )  # coins are kept until l is four times their size
    assert counts[N_NEAR] + live.s.far[0, :, COUNT].sum() + counts[BIG] == counts[N] == len(rewards)
    assert live.policy.counters(live.s) == {"fallbacks": 0}


@pytest.mark.parametrize("kind", HARD)
def test_hard_sequences_are_decided_as_the_reference_does(kind):
    """Sorted, drifting and alternating rewards: most of them join a cluster, few are stored, and no decision changes."""
    number, steps = list(HARD).index(kind), amount(1500, 6000)
    arms = 2 + number % 2
    live, slow = Live(AdaKLUCB(), arms), SlowAdaptive(arms)
    rewards = [HARD[kind](np.random.default_rng([14, arm]), steps) + 1e-3 * arm for arm in range(arms)]
    used, most = [0] * arms, 0
    for t in range(steps):
        arm = live.ask()
        if t < 30 or t % 180 == 0:
            wanted = slow.ask()
            if arm != wanted:  # allowed if the two cannot be told apart
                first, second = slow.index(arm), slow.index(wanted)
                assert abs(first - second) <= 1e-9 * max(abs(first), abs(second)), (t, first, second, used)
        reward = float(rewards[arm][used[arm]])
        used[arm] += 1
        live.tell(arm, reward)
        slow.tell(arm, reward)
        most = max(most, live.s.counts[:, KEPT].max())
    agree(live, slow)
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert most <= 1024
    found = live.describe()
    for arm, x in enumerate(slow.x):
        if np.isnan(found["threshold"][arm]) and used[arm] > 1:
            assert found["mean"][arm] == pytest.approx(np.mean(x), rel=1e-9)


@pytest.mark.parametrize("kind", ["losses, tail 1.1", "student", "gains", "half zeros", "narrow"])
def test_the_arm_chosen_has_the_largest_index(kind):
    """The lazy arg-max against all indices, with many arms, until most arms are left out for long."""
    arms = 12
    live = Live(AdaKLUCB(), arms, 20_000)
    rng = np.random.default_rng([4, list(KINDS).index(kind)])
    rewards = [KINDS[kind](rng, arm, 6000) for arm in range(arms)]
    used = [0] * arms
    for t in range(6000):
        arm = live.ask()
        if t % 7 == 0:
            index = Plain.describe(copied(live))["index"]
            tied = np.flatnonzero(index == index.max())
            pulls = live.s.counts[tied, clipped_index.PULLS]
            assert arm == tied[np.lexsort((tied, pulls))[0]], (t, index, used)
        live.tell(arm, float(rewards[arm][used[arm]]))
        used[arm] += 1


def copied(live):
    """The same state in other arrays: a description recomputes all indices, and must not help the arg-max."""
    return Live(live.policy, live.arms, state=type(live.s)(*(array.copy() for array in live.s)))


def test_asking_changes_no_decision():
    """One bandit is asked again and again, and at odd times; the other only when it must answer."""
    often, once = Live(AdaKLUCB(), 3), Live(AdaKLUCB(), 3)
    rng = np.random.default_rng(5)
    for _ in range(800):
        arm = once.ask()
        assert often.ask() == often.ask() == arm
        for _ in range(rng.integers(1, 4)):
            reward = float(rng.standard_t(1.5) - 0.2 * arm)
            often.tell(arm, reward)
            once.tell(arm, reward)
            often.ask()
            often.describe()


def test_memory_of_a_live_bandit_is_bounded():
    live = Live(AdaKLUCB(), 2)
    assert sum(array.nbytes for array in live.s) / 2 < 20 * 1024  # half of it is the profile, which the arms share
    for t, reward in enumerate(np.random.default_rng(5).standard_t(1.1, 15_000).tolist()):
        live.tell(0, reward)
        if t % 50 == 0:
            live.ask()
    assert live.s.buffer.shape[1] <= 2049
    assert live.policy.counters(live.s) == {"fallbacks": 0}


def test_a_live_bandit_at_its_limit_goes_on(monkeypatch):
    """Coins are the worst case: all are kept until all can be moved. With too little room l is larger, and so is the index."""
    monkeypatch.setattr(adakl_ucb, "LIVE_VALUES", 256)
    monkeypatch.setattr(clipped_index, "FARTHEST", 64)
    run, slow = Plain(AdaKLUCB(), 2), SlowAdaptive(2, borrow=0.0)
    assert run.s.clock[LIMIT] == 256
    for reward in np.resize([-1.0, 1.0], 450).tolist():
        for arm in (0, 1):
            run.tell(arm, reward + arm / 8)
            slow.tell(arm, reward + arm / 8)
        assert run.s.counts[:, KEPT].max() <= 256
    assert run.s.buffer.shape[1] == 257
    assert run.s.counts[:, N_NEAR].min() > 200
    agree(run, slow)  # l is large, as the level is low
    run.s.clock[clipped_index.TAKEN] = slow.rounds = 2**53
    run.ask()
    assert run.s.clock[FALLBACKS] > 0
    for arm in (0, 1):
        exact, mean = slow.index(arm), np.mean(slow.x[arm])
        assert run.describe()["mean"][arm] == pytest.approx(mean, rel=1e-9)
        assert -1e-9 <= (run.describe()["index"][arm] - exact) / (exact - mean) < 0.5


def test_late_and_lost_rewards():
    """The clock counts pulls, the bounds count rewards; a lost pull counts only for the clock."""
    run, slow = Plain(AdaKLUCB(), 2), SlowAdaptive(2)
    rng = np.random.default_rng(8)
    run.follow_0_2()
    marks = [run.issue(0) for _ in range(40)]
    slow.rounds += 40
    slow.made[0] += 40
    for j in rng.permutation(40)[:30]:
        reward = float(rng.standard_t(1.5))
        run.late(0, reward, marks[j])
        slow.rounds -= 1  # `tell` counts the pull, too
        slow.made[0] -= 1
        slow.tell(0, reward)
    for _ in range(10):
        run.forget(0, 1.0)
        slow.made[0] -= 1
    for reward in (0.0, 1.0, -2.0):
        run.tell(1, reward)
        slow.tell(1, reward)
    agree(run, slow)
    assert run.ask() == slow.ask()
    assert run.s.counts[:, clipped_index.PULLS].tolist() == slow.made == [30, 3]


def test_unexplored_arms_come_first():
    run = Plain(AdaKLUCB(), 3)
    for expected in (0, 1, 2, 0, 1, 2):  # fewest pulls, then the lowest
        assert run.ask() == expected
        run.tell(expected, -1.0)
    assert (run.describe()["index"] == math.inf).all()  # nothing above the centre, and few rewards
    run.tell(1, -1.0)
    run.tell(1, 0.0)
    assert np.isfinite(run.describe()["index"]).tolist() == [False, True, False]


def test_estimates_of_an_arm():
    live = Live(AdaKLUCB(), 2)
    x = np.random.default_rng(10).pareto(1.1, 128)
    for reward in x.tolist():
        live.tell(0, reward)
    found = {name: column[0] for name, column in live.describe().items()}
    z = x - np.median(x)
    a = 2.5 * math.log(1.0 + 128 / 2)
    limit = found["threshold"]
    assert np.minimum((np.abs(z) / limit) ** 2, 1.0).sum() == pytest.approx(a)
    assert 0.0 < found["share_trimmed"] == (np.abs(z) > limit).mean()
    assert live.s.arms[0, clipped_index.CHOSEN] == clipped_index.CLIPPED
    assert found["mean"] == pytest.approx(np.median(x) + np.clip(z, -limit, limit).mean())
    assert live.s.counts[0, UP] == (z > limit).sum()
    assert live.s.counts[0, ABOVE] == (np.abs(z) > limit).sum()
    assert found["index"] > found["mean"]
    assert np.isnan(live.describe()["mean"][1])


def test_what_it_says_about_itself():
    policy = AdaKLUCB()
    assert policy.name == "AdaKL-UCB"
    assert policy.facts.assumption == NOTHING
    assert policy.facts.bound == ""  # nothing is proved
    assert rb.Policy.from_dict(policy.to_dict()) == policy


def test_ties_are_broken_by_pulls_then_by_number():
    run = Plain(AdaKLUCB(), 2)
    for reward in (1.0, 0.0, 2.0, 5.0, 1.0):
        for arm in (1, 0):
            run.tell(arm, reward)
    found = run.describe()["index"]
    assert found[0] == found[1] < math.inf
    assert run.ask() == 0
    run.issue(0)  # a pull whose reward is not known yet
    assert run.ask() == 1


@pytest.mark.parametrize("values", [[3.0], [2.0, -1.0], [1.0, 1.0, 0.0], [5.0, -2.0, 7.0, 0.5]])
def test_the_centre_is_the_median(values):
    row = np.array([*values, 9.0])
    assert median_in_place(row, len(values)) == np.median(values)
    assert row.tolist() == [*sorted(values), 9.0]
    assert [count for count in range(10_000) if due(count)] == [2**k for k in range(8)]


# --- the leader's profile ---


def brute_force(z, n, reach):
    def owed(d):
        return np.sum(np.sign(z) * np.maximum(np.abs(z) - d, 0.0)) / n

    return max([0.0, owed(reach), *(owed(size) for size in np.abs(z) if size >= reach)])


@settings(max_examples=amount(150, 300), deadline=None, derandomize=True)
@given(st.lists(st.floats(-100.0, 100.0).filter(lambda x: abs(x) > 1e-6), max_size=40), st.floats(0.0, 120.0))
def test_what_an_arm_borrows(values, reach):
    z = np.array(sorted(values, key=abs, reverse=True))
    profile = np.zeros((leader.PROFILE_ROWS, len(z) + 1))
    length = leader.profile_of(z, 0, len(z), True, 50.0, profile)
    wanted = brute_force(z, 50.0, reach)
    found = leader.borrowed_at(profile, length, reach, 99.0) if length else 0.0
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    if length:  # it never rises with the reach
        assert leader.borrowed_at(profile, length, reach + 1.0, 99.0) <= found + 1e-12


def test_a_profile_of_the_largest_rewards_only():
    z = np.array([9.0, -5.0, 4.0, 2.0])
    profile = np.zeros((leader.PROFILE_ROWS, 5))
    length = leader.profile_of(z, 0, 4, False, 10.0, profile)
    assert length == 4
    # A smaller reach counts as 2: 9 - 5 while only the 9 is beyond it, and 4 - 2 once the 4 is, too.
    for reach in (0.0, 2.0):
        assert leader.borrowed_at(profile, 4, reach, 99.0) == pytest.approx(0.6)
    assert leader.profile_of(z, 1, 4, False, 10.0, profile) == 0  # without the 9, the -5 outweighs the others


def test_an_arm_borrows_only_from_right_tails():
    """Rewards with a heavy right tail raise the index of an arm with few rewards; negated ones do not."""
    for sign in (1.0, -1.0):
        run, slow = Plain(AdaKLUCB(), 2), SlowAdaptive(2, borrow=0.0)
        rng = np.random.default_rng(11)
        for reward in (sign * rng.pareto(1.3, 400)).tolist():
            run.tell(0, reward)
            slow.tell(0, reward)
        for reward in (sign * np.tile([0.5, 1.0, 2.0], 4)).tolist():
            run.tell(1, reward)
            slow.tell(1, reward)
        gain = run.describe()["index"] - [slow.index(0), slow.index(1)]
        assert gain[0] == pytest.approx(0.0, abs=1e-9)
        assert (gain[1] > 0.01) == (sign > 0)


def test_an_arm_whose_rewards_are_all_alike_soon_stops_borrowing():
    """Nine narrow arms against one with a heavy right tail: they would have seen what the leader sees often."""
    problem = rb.Problem([rb.laws.LogNormal(mu=0.0, sigma=2.0)] + [rb.laws.Gaussian(mean=1.0, sd=0.1)] * 9)
    result = rb.simulate([AdaKLUCB()], problem, 5000, 20, seed=5, progress=False)
    shares = result.regret[0, :, -1] / problem.uniform_regret(5000)
    assert shares.mean() < 0.3  # 0.9 if they borrow for ever


def test_a_leader_that_is_not_allowed_lends_nothing():
    live = Live(AdaKLUCB(), 3)
    rng = np.random.default_rng(13)
    for reward in (10.0 * rng.pareto(1.3, 500)).tolist():
        live.tell(0, reward)
    for arm in (1, 2):
        for reward in rng.standard_normal(10).tolist():
            live.tell(arm, reward)
    before = live.describe()["index"][1]
    live.policy.set_allowed(live.s, [False, True, True])
    assert live.describe()["index"][1] < before - 1.0
    live.tell(1, 0.0)
    assert live.s.clock[LEADER] == 1
    live.policy.set_allowed(live.s, [True, True, True])
    assert live.ask() == int(np.argmax(copied(live).describe()["index"]))
    live.tell(0, 1.0)
    assert live.s.clock[LEADER] == 0  # it still has the most rewards


# --- the left tails ---


@settings(max_examples=amount(100, 200), deadline=None, derandomize=True)
@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=150), st.integers(1, 60))
def test_the_hill_index(sizes, k):
    lowest, count = np.zeros(left_tail.LOWEST), 0
    for size in sizes:
        count = left_tail.add_low(lowest, count, size)
    wanted = np.sort(sizes)[::-1][: left_tail.LOWEST]
    np.testing.assert_array_equal(lowest[:count], wanted)
    used = min(k, count - 1)
    expected = np.mean(np.log(wanted[:used] / wanted[used])) if used else 0.0
    assert left_tail.hill(lowest, count, k) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_hill_index_finds_the_tail():
    """For Pareto losses with index a it is near 1/a: 60 largest of 20,000, standard error 1/(a sqrt 60)."""
    for a, other in ((1.2, 3.0), (3.0, 1.2)):
        lowest, count = np.zeros(left_tail.LOWEST), 0
        for size in (1.0 + np.random.default_rng(12).pareto(a, 20_000)).tolist():
            count = left_tail.add_low(lowest, count, size)
        found = left_tail.hill(lowest, count, 60)
        assert abs(found - 1 / a) < 4 / (a * math.sqrt(60))
        assert abs(found - 1 / other) > 4 / (other * math.sqrt(60))  # the negative control
