"""UCB for bounded kurtosis, against its definition: the largest theta by bisection over medians of block means."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_robust_ucb import Slow
from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.robust_ucb import kurtosis_ucb as module
from robandit.policies.robust_ucb.kurtosis_ucb import KurtosisUCB


def median_of_means(values, log_inverse):
    """MM with floor(min(1 + 8 log(1/delta), n/2)) blocks."""
    n = len(values)
    blocks = max(math.floor(min(1 + 8 * log_inverse, n / 2)), 1)
    size = n // blocks
    return float(np.median(values[: blocks * size].reshape(blocks, size).mean(axis=1)))


def slow_index(rewards, t, kappa):
    """(m, index - m), straight from the definition."""
    data = np.array(rewards)
    n = len(data)
    log_inverse = 2 * math.log(t) + math.log(math.log(1 + t))
    m = median_of_means(data, log_inverse)
    ratio = (log_inverse + 1 / 8) / n
    factor = 1 - math.sqrt(12 * 16) * math.sqrt((kappa - 1) * ratio)
    if factor <= 0 or 12 * 16 * ratio / factor >= 1:
        return m, math.inf
    data = data - m

    def holds(y):
        return y <= math.sqrt(12 * 16 * median_of_means((data - y) ** 2, log_inverse) / factor * ratio)

    low, high = 0.0, 1.0
    while holds(high):
        high *= 2
    while high > 1e-280 and not holds(high / 2):
        high /= 2
    while high - low > 1e-13 * high:
        y = 0.5 * (low + high)
        if holds(y):
            low = y
        else:
            high = y
    return m, low


def play(policy, arms, draw, steps, kappa, check, horizon=None):
    """The compiled policy chooses the slow one's best arm, and says its numbers; returns rounds with finite indices."""
    live, slow = Live(policy, arms, horizon), Slow(arms, partial(slow_index, kappa=kappa))
    decided = 0
    for step in range(steps):
        arm = live.ask()
        if step % check == 0:
            numbers, columns = slow.numbers(), live.describe()
            indices = [math.inf if above == math.inf else mean + above for mean, above in numbers]
            best = min(range(arms), key=lambda i: (-indices[i], len(slow.rewards[i]), i))
            decided += max(indices) < math.inf
            for i, (mean, above) in enumerate(numbers):
                assert (columns["index"][i] == math.inf) == (above == math.inf)
                if slow.rewards[i]:
                    size = abs(mean) + float(np.std(slow.rewards[i])) + 1e-300
                    assert abs(columns["mean"][i] - mean) <= 1e-11 * size
                if above < math.inf:
                    assert abs(columns["index"][i] - mean - above) <= 1e-9 * (abs(mean) + above)
            if arm != best:
                assert max(indices) - indices[arm] <= 1e-9 * abs(max(indices))
        reward = draw(arm)
        live.tell(arm, reward)
        slow.learn(arm, reward)
    return decided


@pytest.mark.independent("KurtosisUCB")
@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        ("coins", lambda rng, arm: float(rng.random() < 0.5 - 0.1 * arm)),
        ("normal", lambda rng, arm: float(rng.normal() * (1 + arm) - 0.1 * arm)),
        ("far from zero", lambda rng, arm: 1e6 + 0.01 * float(rng.normal() - arm)),
        ("outliers", lambda rng, arm: float(rng.normal()) + (1e9 if rng.random() < 1e-3 else 0.0)),
    ],
)
def test_it_is_the_slow_one(kind, draw):
    rng = np.random.default_rng(len(kind))
    decided = play(KurtosisUCB(kappa=1.0), 2, lambda arm: draw(rng, arm), 9_400, 1.0, 150, None)
    assert decided > 8


def test_with_kurtosis_the_forced_phase_is_longer():
    rng = np.random.default_rng(1)
    decided = play(KurtosisUCB(kappa=1.3), 1, lambda arm: float(rng.random()), 12_000, 1.3, 200, 12_000)
    assert 10 < decided < 50


@pytest.mark.parametrize("kind", ["losses, tail 1.5", "student", "half zeros", "constants"])
def test_it_explores_all_arms_alike_while_no_index_is_finite(kind):
    rng = np.random.default_rng(0)
    live = Plain(KurtosisUCB(kappa=3.0), 3, 1000)
    for step in range(300):
        arm = live.ask()
        assert arm == step % 3
        live.tell(arm, float(KINDS[kind](rng, arm, 1)[0]))
    assert live.describe()["index"].tolist() == [math.inf] * 3


NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10), st.floats(-1e-3, 1e-3))


@settings(max_examples=amount(50, 100), deadline=None, derandomize=True)
@given(st.lists(st.tuples(NUMBERS, st.floats(0, 5)), min_size=1, max_size=24), st.floats(1e-3, 1e3))
def test_the_closed_form(blocks, c):
    """The largest y with a median of a - 2 y d - c y^2 that is not negative, by bisection."""
    off = np.array([d for d, _ in blocks])
    spread = np.array([d * d + variance for d, variance in blocks])

    def value(y):
        return float(np.median(spread - 2 * y * off - c * y * y))

    y = module.largest(off, spread, np.zeros(2 * len(blocks)), len(blocks), c)
    size = float(np.abs(off).max() + math.sqrt(spread.max())) / min(c, 1.0)
    high = 4.0 * size + 1.0
    assert value(high) <= 0.0
    low = 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(middle) >= 0.0 else (low, middle)
    assert y == pytest.approx(low, rel=1e-7, abs=1e-9 * (1.0 + size))


def test_the_line_is_above_the_index():
    """The lazy arg-max rests on this."""
    rng = np.random.default_rng(4)
    for kappa in (1.0, 1.5, 5.0):
        live = Plain(KurtosisUCB(kappa=kappa), 1)
        p, s = live.p, live.s
        for blocks in (39, 40, 200):
            s.blocks[0, module.OFF, :blocks] = rng.standard_t(2, blocks)
            s.blocks[0, module.SPREAD, :blocks] = s.blocks[0, module.OFF, :blocks] ** 2 + rng.pareto(2, blocks)
            s.arms[0, [module.NEXT, module.EVENT]] = math.inf
            s.arms[0, module.BLOCKS] = blocks
            for level in (3.0, 25.0):
                for more in (1.001, 1.1, 2.0, 50.0):
                    s.arms[0, module.COUNT] = math.ceil(p.needed * level * more)
                    at = KurtosisUCB.index(p, s, 0, level)
                    height, slope, until = KurtosisUCB.outlook(p, s, 0, level)
                    assert until > level
                    assert at <= height < math.inf
                    for share in np.linspace(0, 1, 9)[1:]:
                        later = level + share * (until - level)
                        assert KurtosisUCB.index(p, s, 0, later) <= height + slope * (later - level)


def test_it_is_lazy(monkeypatch):
    calls = 0
    original = module.largest

    def counted(*args):
        nonlocal calls
        calls += 1
        return original(*args)

    monkeypatch.setattr(module, "largest", counted)
    rng = np.random.default_rng(0)
    fast = Live(KurtosisUCB(kappa=1.0), 4, 20_000)
    for arm in range(4):
        for _ in range(4_500):
            fast.tell(arm, float(rng.random()))
    live = Plain(KurtosisUCB(kappa=1.0), 4, 20_000, fast.s)
    for _ in range(300):
        live.tell(live.ask(), float(rng.random()))
    assert 300 <= calls < 4 * 300


def test_the_kurtosis_of_a_problem():
    policy = KurtosisUCB().informed_by(rb.problems.bernoulli(means=[0.1, 0.5]))
    assert policy.kappa == pytest.approx((1 - 3 * 0.09) / 0.09)
    with pytest.raises(NotApplicable):
        KurtosisUCB().informed_by(rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5))
    with pytest.raises(NotApplicable):
        KurtosisUCB().informed_by(rb.problems.negated_pareto(means=[-1.0, -2.0], tail=3.5))


def test_invalid_parameters():
    for wrong in (0.9, math.inf, math.nan, "3"):
        with raises(InvalidInput, parameter="kappa", rule="a finite number >= 1 and < 1e+300"):
            KurtosisUCB(kappa=wrong)
    with pytest.raises(InvalidInput, match="cannot play without kappa"):
        KurtosisUCB().prepared(10)


def test_neither_the_unit_nor_a_constant_changes_decisions():
    rng = np.random.default_rng(6)
    rewards = rng.integers(-40, 40, (2, 8_000)) / 16.0 - np.array([[0.0], [1.0]])
    runs = [Live(KurtosisUCB(kappa=1.0), 2, 12_000) for _ in range(3)]
    used = [0, 0]
    for _ in range(9_500):
        arm = runs[0].ask()
        assert [live.ask() for live in runs[1:]] == [arm, arm]
        reward = float(rewards[arm, used[arm]])
        used[arm] += 1
        for live, value in zip(runs, (reward, 1024.0 * reward, reward + 64.0), strict=True):
            live.tell(arm, value)
    assert used[0] > used[1] + 300  # by then it uses the rewards
