"""AdaR-UCB's numbers: known values, the threshold equation, and what an index may and may not depend on."""

import copy
import math

import numpy as np
import pytest

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.rewards import KINDS
from references.slow_adar_ucb import EXACT, SlowAdaRUCB, root
from robandit.policies import AdaRUCB
from robandit.policies.adar import layout, trimmed_index

IN_X, IN_TOP = layout.IN_X, layout.IN_TOP
COLUMNS = AdaRUCB.columns


def loaded(policy, x, y, tau, arms=1, horizon=2000, runner=Live):
    """Arm 0 of a run that has these rewards and stands before round tau."""
    live = runner(policy, arms, horizon)
    for value in x:
        live.late(0, float(value), IN_X)
    for value in y:
        live.late(0, float(value), IN_TOP)
    live.s.clock[layout.ROUNDS] = tau - 1
    return live


def row(live, arm=0):
    return {name: float(values[arm]) for name, values in live.describe().items()}


def variance_of(live):
    p, n = live.p, live.s.counts[0, layout.N_X]
    return live.s.arms[0, trimmed_index.SPREAD] * n / p.var_factor


# Computed elsewhere, to 12 decimals: tau, a, threshold, share trimmed, mean, variance, index, index with the tight bonus.
KNOWN = [
    (2, 12.1198734859, 27.565902165889, 0 / 32, -8.25, 22.0, 11.353952064260, 2.069996832050),
    (5, 28.1414747533, 3.502118706314, 25 / 32, -0.4375, 0.931451612903, 5.376838313206, 2.638163572543),
]


@pytest.mark.parametrize("runner", [Live, Plain])
@pytest.mark.parametrize(("tau", "a", "threshold", "share", "mean", "variance", "paper", "tight"), KNOWN)
@pytest.mark.parametrize("order", ["as printed", "shuffled"])
def test_known_values(runner, tau, a, threshold, share, mean, variance, paper, tight, order):
    x = np.array([-0.5 * j for j in range(1, 33)])
    y = np.array([(-1.0) ** j * j for j in range(1, 31)] + [0.0, 0.0])
    if order == "shuffled":
        rng = np.random.default_rng(tau)
        x, y = rng.permutation(x), rng.permutation(y)
    for bonus, index in (("paper", paper), ("tight", tight), (10, paper)):
        live = loaded(AdaRUCB(bonus=bonus), x, y, tau, runner=runner)
        said = row(live)
        assert said["threshold"] == pytest.approx(threshold, abs=2e-12)
        assert said["index"] == pytest.approx(index, abs=2e-12)
        assert said["mean"] == pytest.approx(mean, abs=1e-14)
        assert said["share_trimmed"] == share
        assert variance_of(live) == pytest.approx(variance, abs=1e-12)
        assert live.p.c * live.p.delta_exp * math.log(tau) == pytest.approx(a, abs=1e-10)


def samples(seed):
    """Names and values of X and X' for property tests: every kind, many sizes."""
    rng = np.random.default_rng(seed)
    for kind, draw in KINDS.items():
        n = int(rng.integers(40, 700))
        x, y = draw(rng, 1, n), draw(rng, 1, n)
        if np.count_nonzero(y) > 25:
            yield rng, kind, x, y


def last_round(y, policy):
    """The last round at which the index is finite."""
    return math.ceil(math.exp(min(np.count_nonzero(y) / (policy.params().guard * policy.delta_exp), 12.0))) - 1


@pytest.mark.parametrize("horizon", [3000, None])
def test_the_threshold_solves_its_equation(horizon):
    mp, seen = EXACT, 0
    policy = AdaRUCB()
    for seed in range(amount(1, 4)):
        for rng, kind, x, y in samples(seed):
            most = min(last_round(y, policy), 1400)
            for tau in {2, most, int(rng.integers(2, most + 1))}:
                live = loaded(policy, x, y, tau, horizon=horizon)
                m = mp.mpf(row(live)["threshold"])
                left = mp.fsum(min((mp.mpf(float(v)) / m) ** 2, 1) for v in y)
                a = mp.mpf(policy.c) * 3 * mp.log(tau)
                assert abs(left / a - 1) < 1e-12, (kind, tau)
                seen += 1
    assert seen > amount(25, 100)


def test_the_doubled_threshold_is_the_first_that_is_not_below_the_root():
    policy = AdaRUCB(solver="doubling")
    for rng, kind, x, y in samples(11):
        tau = int(rng.integers(2, min(last_round(y, policy), 1400) + 1))
        m = row(loaded(policy, x, y, tau))["threshold"]
        exact = root(y, policy.c * 3 * math.log(tau))
        smallest = np.abs(y[y != 0]).min()
        assert exact <= m * (1 + 1e-12), kind
        assert m < 2 * exact * (1 + 1e-12), kind
        assert math.log2(m / smallest) == pytest.approx(round(math.log2(m / smallest)), abs=1e-9)


@pytest.mark.parametrize("solver", ["exact", "doubling"])
def test_the_threshold_falls_with_time(solver):
    policy = AdaRUCB(solver=solver)
    for _, kind, x, y in samples(5):
        live = loaded(policy, x, y, 2)
        before = math.inf
        most = min(last_round(y, policy), 900)
        for tau in range(2, most + 1):
            live.s.clock[layout.ROUNDS] = tau - 1
            now = row(live)["threshold"]
            if solver == "exact":
                assert now < before, (kind, tau)
            assert now <= before, (kind, tau)
            before = now


@pytest.mark.parametrize("given", [{}, {"guard": 9.0}, {"c": 0.3, "delta_exp": 1.0}])
def test_the_index_is_infinite_while_the_root_does_not_exist(given):
    policy = AdaRUCB(**given)
    p = policy.params()
    rng = np.random.default_rng(0)
    for nonzero in (0, 1, 12, 13, 30, 60):
        for zeros in (0, 7):
            n = nonzero + zeros
            y = rng.permutation(np.concatenate([np.zeros(zeros), rng.standard_normal(nonzero)]))
            live = loaded(policy, rng.standard_normal(n), y, 2)
            for tau in range(2, 60):
                live.s.clock[layout.ROUNDS] = tau - 1
                infinite = row(live)["index"] == math.inf
                assert infinite == (n < 2 or nonzero <= p.guard * p.delta_exp * math.log(tau))
                if infinite:
                    assert all(math.isnan(row(live)[c]) for c in COLUMNS if c != "index")


def test_an_arm_returns_to_exploration_exactly_when_its_root_ceases_to_exist():
    live = Live(AdaRUCB(), 2, None)
    counts = [0, 0]
    rng = np.random.default_rng(8)
    forced = []
    for tau in range(1, 4000):
        needed = AdaRUCB().c * 3 * math.log(tau)
        arm = live.ask()
        short = [i for i in (0, 1) if counts[i] <= needed]
        if short:
            assert arm in short
            assert counts[arm] == min(counts[i] for i in short)
            forced.append(tau)
        counts[arm] += 1
        live.tell(arm, -1.0 - 100 * arm + rng.standard_normal())
        live.tell(arm, -1.0 - 100 * arm + rng.standard_normal())
    assert forced[0] == 1
    assert forced[-1] - len(forced) > 100  # again and again, not only at first


def test_the_guard_itself_is_not_enough():
    """Exactly guard * L non-zero rewards: to be explored. With a logarithm in it, that takes a guard made for the purpose."""
    level = 3 * math.log(3)
    guard = next(
        g for g in (12 / level, math.nextafter(12 / level, 0), math.nextafter(12 / level, 9)) if g * level == 12
    )
    live = Live(AdaRUCB(c=1.0, guard=guard), 2, 2000)
    live.follow_0_2()  # rewards below have no pull
    for arm, count in ((0, 12), (1, 13)):
        for _ in range(count):
            live.late(arm, -1.0 + 1e6 * arm, IN_X)
            live.late(arm, -1.0 + 1e6 * arm, IN_TOP)
    live.s.clock[layout.ROUNDS] = 2
    assert live.describe()["index"][0] == math.inf > live.describe()["index"][1]
    assert live.ask() == 0
    live.late(0, -1.0, IN_TOP)
    assert live.ask() == 1


def test_order_of_samples_does_not_matter():
    for bonus, horizon in (("paper", 2000), ("tight", None)):
        policy = AdaRUCB(bonus=bonus)
        for rng, kind, x, y in samples(21):
            tau = int(rng.integers(2, min(last_round(y, policy), 900) + 1))
            one = row(loaded(policy, x, y, tau, horizon=horizon))
            orders = [
                (rng.permutation(x), rng.permutation(y)),
                (np.sort(x), np.sort(y)),
                (np.sort(x)[::-1], np.sort(y)[::-1]),
            ]
            for other_x, other_y in orders:
                two = row(loaded(policy, other_x, other_y, tau, horizon=horizon))
                size = abs(one["mean"]) + one["threshold"]
                for name in COLUMNS:
                    assert abs(one[name] - two[name]) <= 1e-11 * size, (kind, name)


def decisions(policy, rewards, steps, horizon):
    return Live(policy, len(rewards), horizon).replay(np.ascontiguousarray(rewards), steps)


@pytest.mark.parametrize("given", [{"bonus": "tight"}, {"solver": "doubling", "c": 1.0}])
def test_decisions_do_not_depend_on_the_unit_but_do_on_the_origin(given):
    policy = AdaRUCB(**given)
    steps = 6000
    for kind in ("losses, tail 1.5", "student", "half zeros", "gains"):
        rng = np.random.default_rng(1)
        rewards = np.array([KINDS[kind](rng, arm, steps) for arm in range(4)])
        for horizon in (steps, None):
            once = decisions(policy, rewards, steps, horizon)
            for power in (-430, -1, 3, 430):
                assert (decisions(policy, np.ldexp(rewards, power), steps, horizon) == once).all(), (kind, power)
            assert (decisions(policy, rewards - 3.0, steps, horizon) != once).any(), kind


def test_a_mean_that_is_large_against_the_spread_keeps_its_digits():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(500)
    for mean in (1e3, -1e6, 1e9):
        x = mean + noise
        live = loaded(AdaRUCB(), x, mean + rng.permutation(noise), 50)
        row(live)
        assert variance_of(live) == pytest.approx(np.var(x - mean, ddof=1), rel=1e-9)


def test_a_threshold_far_below_the_early_rewards_keeps_the_digits_of_the_small_ones():
    """The first rewards are large and later trimmed; those that are kept are small or zero, and nothing of the large remains."""
    rng = np.random.default_rng(0)
    large, small = 1e8 * (1 + rng.random(30)), 1e-3 * rng.standard_normal(500)
    for kept in (small, np.zeros(500)):
        policy = AdaRUCB()
        live = Live(policy, 1, None)
        reference = SlowAdaRUCB(1)
        for x in large[:20]:
            live.tell(0, x)
            live.tell(0, x)
            reference.learn(0, x, x)
        live.ask()
        live.s.clock[layout.ROUNDS] = 1
        assert row(live)["mean"] > 1e7  # evaluated while nothing is trimmed
        for x, y in zip(kept, small, strict=True):
            live.tell(0, x)
            live.tell(0, y)
            reference.learn(0, x, y)
        tau = int(live.s.clock[layout.ROUNDS]) + 1
        want = reference.precise(0, tau)
        assert float(want.threshold) < 1.0
        said = row(live)
        assert said["index"] == pytest.approx(float(want.index), rel=1e-12)
        assert abs(said["mean"] - float(want.mean)) <= 1e-14 * float(want.threshold)


@pytest.mark.parametrize("solver", ["exact", "doubling"])
def test_the_outlook_is_above_the_index_until_its_end(solver):
    """In plain Python, on states of every kind: the line that the lazy arg-max trusts."""
    checked = bent = 0
    for seed in range(2):
        for rng, kind, x, y in samples(100 + seed):
            given = [{}, {"bonus": "tight"}, {"c": 1.0}, {"c": 0.2, "bonus": 0.01}][int(rng.integers(4))]
            policy = AdaRUCB(solver=solver, **given)
            p = policy.params()
            base = loaded(policy, x, y, 2, runner=Plain).s
            last = policy.delta_exp * math.log(min(last_round(y, policy), 900))
            first = policy.delta_exp * math.log(2)
            for level in [first, *rng.uniform(first, last, 8)]:
                s = copy.deepcopy(base)
                s.arms[0, trimmed_index.EVENT] = -1.0
                value = trimmed_index.index(p, s, 0, level)
                height, slope, until = trimmed_index.outlook(p, s, 0, level)
                assert height >= value
                end = min(until, last)
                values = []
                fresh = copy.deepcopy(base)
                for later in np.linspace(level, max(end, level), 40):
                    fresh.arms[0, trimmed_index.EVENT] = -1.0
                    values.append(trimmed_index.index(p, fresh, 0, later))
                    assert values[-1] <= height + slope * (later - level), (kind, level, later, until)
                    # The index that is not refreshed, because the event has not come, is the same.
                    kept = trimmed_index.index(p, s, 0, later) if later < until else values[-1]
                    assert kept == pytest.approx(values[-1], rel=1e-12, abs=1e-300)
                    checked += 1
                bent += end > level and slope > 0
                # A line that is far too high would be right and useless.
                if end > level * 1.0001:
                    above = height + slope * (end - level) - max(values[-1], values[0])
                    size = height + 2 * abs(s.arms[0, trimmed_index.MEAN])
                    rise = abs(values[-1] - values[0]) + (end - level) / level * size
                    assert above <= 3 * rise + 1e-9 * abs(height)
    assert checked > 10_000
    assert bent > 50
