"""RMM-UCB and MARS: decisions of the slow implementation with the same signs, the test behind the index, limits."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain, seeded
from helpers.duels import duel
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_resampling import SlowResampling, bounds, is_rejected, lower, upper
from robandit.errors import HorizonReached, InvalidInput, NotApplicable
from robandit.experiments import Played, planned
from robandit.policies import MARS, RMMUCB
from robandit.policies.resampling import signs as resampling

pytestmark = pytest.mark.xdist_group("resampling")  # one process compiles for all

PAIRS = {
    "RMM-UCB": (RMMUCB(), {}),
    "printed": (RMMUCB(median="printed"), {"median": lower}),
    "MARS": (MARS(), {"single": True}),
}


def pair(name, arms, seed=0):
    policy, how = PAIRS[name]
    live = seeded(Live(policy, arms), seed)
    return live, SlowResampling(arms, live.s.rng, **how)


# --- the index ------------------------------------------------------------------------------------------------------


def test_numbers_of_resamples_and_blocks():
    assert [resampling.resamples(t) + 1 for t in (1, 2, 3, 2000)] == [
        1,
        2,
        5,
        math.ceil(1 + 2000 * math.log(2000) ** 2),
    ]
    p, single = RMMUCB().params(), MARS().params()
    assert [resampling.block_count(p, n, 100) for n in (1, 3, 4, 8, 9, 10_000)] == [1, 1, 2, 2, 3, 78]
    assert resampling.block_count(single, 10_000, 100) == 1


@pytest.mark.independent("MARS", "RMMUCB")
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for i, name in enumerate(PAIRS) for j, kind in enumerate(KINDS) if (i + j) % 3 == 0]
)
def test_decisions_are_those_of_the_slow_ones(name, kind):
    rng = np.random.default_rng(len(kind))
    live, slow = pair(name, 2 + len(kind) % 3, len(kind))
    duel(live, slow, lambda arm: KINDS[kind](rng, arm, 1)[0], amount(45, 70))


def test_decisions_on_halves_are_the_same_without_any_tolerance():
    """Sums of these rewards are exact, and the ties of their means go to the fewest pulls, then to the lowest arm."""
    rng = np.random.default_rng(1)
    live, slow = pair("MARS", 3)

    def mean_of_subset(arm, made):
        x, count = np.array(slow.x[arm]), resampling.resamples(made + 1)
        minus = slow.bit_matrix(arm, len(x), count) < 0
        empty = np.where(slow.later(arm, count), np.inf, -np.inf)
        return np.where(minus.any(axis=1), minus @ x / np.maximum(minus.sum(axis=1), 1), empty).max()

    slow.value = mean_of_subset
    assert duel(live, slow, lambda arm: 0.5 * rng.integers(-1, 2), 80) == 0


@pytest.mark.parametrize("name", PAIRS)
def test_indices_of_longer_runs(name):
    """Blocks change and sums move to larger arrays; one arm gets most rewards, the others a few."""
    rng = np.random.default_rng(5)
    live, slow = pair(name, 3, 3)
    for step in range(330):
        arm = int(rng.choice(3, p=[0.8, 0.15, 0.05])) if step > 3 else step % 3
        reward = float(rng.standard_t(1.5) + arm) if step != 200 else 1e12
        live.tell(arm, reward)
        slow.learn(arm, reward)
        if step > 3 and step % 65 == 0:
            columns = live.describe()
            size = max(slow.size(0), slow.size(1), slow.size(2))
            np.testing.assert_allclose(columns["index"], slow.indices(), rtol=1e-12, atol=1e-13 * size)
    assert live.grown > 3


def test_mars_is_the_largest_mean_of_the_subsets_and_outliers_do_not_cancel():
    live, slow = pair("MARS", 2)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(40)
    x[17] = -1e15
    for value in x:
        live.tell(0, float(value))
        live.tell(1, 0.0)
    signs = slow.bit_matrix(0, 40, resampling.resamples(81))
    expected = max(math.fsum(x[row < 0]) / (row < 0).sum() for row in signs)
    assert live.describe()["index"][0] == pytest.approx(expected, rel=1e-14)
    assert live.describe()["index"][1] == 0.0


def test_the_index_is_the_largest_mean_that_the_test_accepts():
    """The definition, tested at many means, for odd and even numbers of blocks; the printed formula fails for even ones."""
    rng = np.random.default_rng(3)
    wrong = 0
    for trial in range(600):
        k = 1 + trial % 4
        n = k * k + trial % (2 * k + 1)
        x, signs, later = rng.standard_t(2.0, n), rng.choice([-1, 1], (6, n)), rng.random(6) < rng.random()
        exact, printed = (max(bounds(x, signs, k, later, median)) for median in (upper, lower))
        for theta in rng.normal(0, 2, 6):
            rejected = is_rejected(x, signs, k, later, theta)
            assert rejected == (theta > exact)
            wrong += rejected != (theta > printed)
            assert k % 2 == 0 or exact == printed
    assert wrong > 50


def test_the_level_is_exact():
    """m = 5 at t = 3: the mean is above the index once in 5 times; more often if medians are as printed."""
    rng = np.random.default_rng(4)
    misses = {"exact": 0, "printed": 0}
    runs = 3000
    for _ in range(runs):
        x, signs, later = rng.standard_cauchy(4), rng.choice([-1, 1], (4, 4)), rng.permutation(5)
        later = later[1:] > later[0]
        misses["exact"] += max(bounds(x, signs, 2, later, upper)) < 0.0
        misses["printed"] += max(bounds(x, signs, 2, later, lower)) < 0.0
    assert abs(misses["exact"] - runs / 5) < 4 * math.sqrt(runs * 0.16)
    assert misses["printed"] > 1.5 * runs / 5


def test_signs_are_fair_and_unrelated():
    """Bits, and their neighbours over rewards, resamples, arms and runs: 4.5 standard errors of fair coins."""
    _, slow = pair("MARS", 2, 0)
    _, other = pair("MARS", 2, 1)
    a, b, c = slow.bit_matrix(0, 50, 4096), slow.bit_matrix(1, 50, 4096), other.bit_matrix(0, 50, 4096)
    for product in (a, a[1:] * a[:-1], a[:, 1:] * a[:, :-1], a[64:] * a[:-64], a[64:, 1:] * a[:-64, :-1], a * b, a * c):
        assert abs(product.mean()) < 4.5 / math.sqrt(product.size)
    assert abs(np.mean([slow.later(arm, 20).mean() for arm in range(400)]) - 0.5) < 4.5 * math.sqrt(1 / 12 / 400)


# --- order of events ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RMM-UCB", "MARS"])
def test_late_rewards_in_any_order(name):
    """t counts pulls made; blocks fill in order of arrival; without rewards the state does not grow, but indices are the same."""
    rng = np.random.default_rng(8)
    live, slow = pair(name, 3, 2)
    waiting = []
    for step in range(amount(80, 120)):
        arm = live.ask()
        if min(map(len, slow.x)) > 0:
            values = slow.indices()
            assert values[arm] >= max(values) - 1e-11 * max(slow.size(i) for i in range(3)) or values[arm] == math.inf
        waiting.append((arm, live.issue(arm)))
        slow.open += 1
        if step % 30 > 20:
            continue
        while waiting and rng.random() < 0.6:
            arm, mark = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                live.forget(arm, mark)
                continue
            reward = float(rng.standard_t(2.0) - 0.5 * arm)
            live.late(arm, reward, mark)
            slow.learn(arm, reward)
            slow.open -= 1


@pytest.mark.parametrize("name", PAIRS)
def test_reading_indices_changes_nothing(name):
    """Two runs that compute their sums at different times agree to the last bit."""
    rng = np.random.default_rng(2)
    one, _ = pair(name, 3, 4)
    two, _ = pair(name, 3, 4)
    for step in range(250):
        arm = one.ask() if step % 3 else int(rng.integers(3))
        if rng.random() < 0.3:
            two.describe()
        if rng.random() < 0.3 and step % 3:
            assert two.ask() == arm
        reward = float(np.round(rng.standard_t(1.5), 1))
        one.tell(arm, reward)
        two.tell(arm, reward)
        if step % 25 == 24:
            assert one.describe()["index"].tobytes() == two.describe()["index"].tobytes()
    assert one.s.rng.tobytes() == two.s.rng.tobytes()


def test_without_room_indices_are_the_same():
    """Without rewards the state does not grow: new resamples are summed each time."""
    roomy, slow = pair("RMM-UCB", 2, 6)
    cramped, _ = pair("RMM-UCB", 2, 6)
    rng = np.random.default_rng(0)
    for step in range(30):
        reward = float(rng.standard_t(2.0))
        for each in (roomy, cramped):
            each.tell(step % 2, reward)
        slow.learn(step % 2, reward)
    for _ in range(40):
        roomy.issue(0)
        cramped.issue(0)
        roomy.describe()
        roomy._grow(RMMUCB.full(roomy.p, roomy.s))
        slow.open += 1
    indices = cramped.describe()["index"]
    assert resampling.sheets_full(cramped.s)
    assert indices.tobytes() == roomy.describe()["index"].tobytes()
    assert indices == pytest.approx(slow.indices(), rel=1e-12)
    assert cramped.describe()["index"].tobytes() == indices.tobytes()


def test_plain_hooks_do_the_same():
    """Compiled and interpreted hooks agree, including shifts of 64-bit words."""
    live, _ = pair("RMM-UCB", 2, 9)
    plain = Plain(RMMUCB(), 2)
    plain.s.rng[:] = live.s.rng
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        for _ in range(12):
            arm = live.ask()
            assert plain.ask() == arm
            reward = float(rng.standard_normal())
            live.tell(arm, reward)
            plain.tell(arm, reward)
        assert plain.describe()["index"] == pytest.approx(live.describe()["index"], rel=1e-14)


@pytest.mark.parametrize("name", ["RMM-UCB", "MARS"])
def test_scale_and_shift_change_no_decision(name):
    """As in test_symmetries, whose runs are too long for these two."""
    table = np.random.default_rng(3).standard_t(2.0, (3, 150)) - np.array([0.0, 0.5, 1.0])[:, None]

    def played(rewards):
        live, _ = pair(name, 3, 1)
        used = [0, 0, 0]
        chosen = []
        for _ in range(150):
            chosen.append(arm := live.ask())
            live.tell(arm, float(rewards[arm, used[arm]]))
            used[arm] += 1
        return chosen

    plain = played(table)
    assert played(8.0 * table) == plain
    assert played(table + 2.0) == plain
    assert played(table[::-1]) != plain


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [RMMUCB, MARS])
@pytest.mark.parametrize("limit", [0, -5, 2.5, True, "many", None, 10**7])
def test_limits_are_checked(policy, limit):
    with raises(InvalidInput, parameter="limit", rule="an integer from 1 to 1000000"):
        policy(limit=limit)


def test_the_median_is_checked():
    with raises(InvalidInput, parameter="median", rule="one of 'exact', 'printed'"):
        RMMUCB(median="lower")


@pytest.mark.parametrize("policy", [RMMUCB, MARS])
def test_long_horizons_are_rejected_with_the_way_out(policy):
    problem = rb.problems.bernoulli(means=[0.2, 0.8])
    with pytest.raises(
        NotApplicable, match=r"horizon = 100000 .* 13,254,746 resamples .* (days|minutes); pass limit=100000 to run"
    ) as caught:
        rb.simulate(policy(), problem, 100_000, 1, seed=0, progress=False)
    assert (caught.value.parameter, caught.value.rule) == ("horizon", "at most limit = 2000")
    assert policy(limit=100_000).prepared(100_000) == policy(limit=100_000)
    assert policy().prepared(2000) == policy()
    plan = planned([Played("coins", problem, 2001)], [policy(), rb.UCB1()], replications=1, seed=0)
    assert [cell.policy for cell in plan.cells] == [rb.UCB1()]
    assert "must be at most limit = 2000" in plan.left_out[0].reason


def test_times_are_spelled_out():
    for seconds, words in (
        (0.3, "1 seconds"),
        (80.0, "80 seconds"),
        (600.0, "10 minutes"),
        (9e3, "2 hours"),
        (1e7, "116 days"),
    ):
        assert resampling.spelled(seconds) == words


def test_a_live_bandit_ends_at_the_limit():
    bandit = rb.Bandit(["a", "b"], MARS(limit=30), seed=0)
    for _ in range(30):
        bandit.update(bandit.select(), 0.5)
    with pytest.raises(HorizonReached):
        bandit.select()
    with pytest.raises(HorizonReached):
        bandit.update("a", 1.0)
