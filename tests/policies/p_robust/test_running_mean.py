"""The running p-robust mean equals the plain sum."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.driving import Live, Plain
from helpers.rewards import KINDS
from references.slow_p_robust import constant, psi, robust_mean
from robandit.estimators import p_robust_mean as estimator
from robandit.policies import MRUCB
from robandit.policies.p_robust.running_mean import BLOCK, DIRECT, POINTS, add, order_and_constant

SAMPLE = [0.3, -1.2, 2.5, 0.1, -4.0]


def fed(driver, rewards, eps, c, arms=1):
    live = driver(MRUCB(eps=eps, c_est=c, horizon=10), arms)
    for reward in rewards:
        live.tell(0, float(reward))
    return live


def error(live, rewards, p, c):
    """Return the error of the mean, relative to the sum of the sizes of the terms."""
    value, size = robust_mean(rewards, p, c)
    return abs(live.describe()["mean"][0] - value) / size if size else abs(live.describe()["mean"][0])


@pytest.mark.parametrize(
    ("p", "value"),
    [(1.1, 0.718858069766), (1.3, 0.518629852667), (1.5, 0.438691337651), (1.9, 0.440557234800), (2.0, 0.5)],
)
def test_the_constant(p, value):
    assert order_and_constant(p - 1.0) == pytest.approx((p, value), rel=1e-9)
    assert constant(p) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("driver", [Live, Plain])
def test_the_known_value(driver):
    assert fed(driver, SAMPLE, 0.5, 1.0).describe()["mean"][0] == pytest.approx(-0.355483912972, rel=1e-9)
    assert robust_mean(SAMPLE, 1.5, 1.0)[0] == pytest.approx(-0.355483912972, rel=1e-9)


def test_psi_is_odd():
    x = np.array([1e-12, 0.3, 7.0, 1e200])
    assert (psi(-x, 1.4) == -psi(x, 1.4)).all()
    assert (
        fed(Live, [-x for x in SAMPLE], 0.5, 1.0).describe()["mean"] == -fed(Live, SAMPLE, 0.5, 1.0).describe()["mean"]
    )


def arm_one(kind, rng, n):
    return kind(rng, 1, n)


def wide(rng, n):
    """Sizes from 1e-12 to 1e12, of both signs, and zeros."""
    return rng.choice([-1.0, 0.0, 1.0], n) * 10.0 ** rng.uniform(-12, 12, n)


STREAMS = {name: partial(arm_one, kind) for name, kind in KINDS.items()} | {
    "wide": wide,
    "tiny": lambda rng, n: 1e-12 * rng.standard_t(1.5, n),
    "huge": lambda rng, n: rng.choice([-1e150, 1e150, 1e-150, 3.0], n),
    "huge gains": lambda rng, n: np.full(n, 1e150),
    "around the far branch": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(38, 46, n),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_mean_is_the_sum(name):
    """Before and after new points are computed, while rewards wait, and after they are added."""
    look = {
        1,
        2,
        DIRECT - 1,
        DIRECT,
        DIRECT + 1,
        DIRECT + BLOCK - 1,
        DIRECT + BLOCK,
        127,
        128,
        129,
        511,
        512,
        700,
        1023,
        1024,
        1500,
    }
    for eps, c in [(1.0, 1.0), (0.5, 0.1), (0.01, 3.0)]:
        rng = np.random.default_rng(3)
        rewards = STREAMS[name](rng, 1500)
        live = Live(MRUCB(eps=eps, c_est=c, horizon=10), 1)
        for n, reward in enumerate(rewards, 1):
            live.tell(0, float(reward))
            if n in look:
                assert error(live, rewards[:n], 1 + eps, c) < 1e-13, (n, eps, c)


@pytest.mark.parametrize("eps", [1e-9, 1e-3, 0.1, 0.3, 0.7, 0.9, 0.999])
def test_the_mean_is_the_sum_for_every_order(eps):
    rng = np.random.default_rng(5)
    rewards = np.concatenate([rng.standard_t(1.2, 300), wide(rng, 200), -rng.pareto(1.1, 500)])
    live = Live(MRUCB(eps=eps, c_est=1.0, horizon=10), 1)
    for n, reward in enumerate(rewards, 1):
        live.tell(0, float(reward))
        if n > 50 and n % 37 == 0:
            assert error(live, rewards[:n], 1 + eps, 1.0) < 1e-13, n


def test_long_runs_lose_nothing():
    rng = np.random.default_rng(0)
    rewards = rng.standard_t(1.5, 20_000)
    live = fed(Live, rewards, 0.4, 1.0)
    assert error(live, rewards, 1.4, 1.0) < 1e-13


def test_small_terms_are_not_lost_beside_a_large_sum():
    fit = np.zeros((2, 1))
    for value in [1.0] + [1e-17] * 1000:
        add(fit, 0, value)
    assert fit[0, 0] + fit[1, 0] == 1.0 + 1e-14


@pytest.mark.parametrize("eps", [1e-6, 0.3, 1.0])
def test_against_many_digits(eps):
    """The slow sum uses doubles too, so both are compared with one of 50 digits."""
    rng = np.random.default_rng(1)
    rewards = np.concatenate([wide(rng, 120), [1e150, -1e150, 1e60, 1e-140, 0.0, -3.0]])
    with mpmath.workdps(50):
        p, n, c = 1 + mpmath.mpf(eps), len(rewards), mpmath.mpf(0.01)
        r = (2 - p) / (p - 1)
        b = (2 * r ** (1 - 2 / p) + r ** (2 - 2 / p)) ** (-p / 2) if eps < 1 else mpmath.mpf(0.5)
        total = size = mpmath.mpf(0)
        for x in rewards.tolist():
            z = abs(mpmath.mpf(x)) / (c * n ** (1 / p))
            term = mpmath.log1p(z + b * z**p)
            size += term
            total += term if x > 0 else -term
        scale = c * mpmath.mpf(n) ** (1 / p - 1)
        value = fed(Live, rewards, eps, 0.01).describe()["mean"][0]
        assert abs(value - total * scale) < 1e-13 * size * scale
        assert abs(robust_mean(rewards, 1 + eps, 0.01)[0] - total * scale) < 1e-13 * size * scale


def test_interpolation_by_itself():
    """For all sizes of one term and all orders the error is in the last bits; with fewer points it is not."""
    y = np.linspace(-30, 30, 601)
    x = np.linspace(-1, 1, 41)
    for p in [1 + 1e-9, 1.01, 1.1, 1.3, 1.5, 1.7, 1.9, 2.0]:
        half = math.log(2) / p / 2
        worst = []
        for points in (POINTS, POINTS - 4):
            nodes = np.cos((2 * np.arange(points) + 1) * np.pi / (2 * points))
            weights = np.sin((2 * np.arange(points) + 1) * np.pi / (2 * points)) * (-1.0) ** np.arange(points)
            parts = weights / (x[:, None] - nodes + 1e-300)
            interpolated = psi(np.exp(y[:, None] - half * nodes), p) @ parts.T / parts.sum(axis=1)
            worst.append(np.abs(interpolated / psi(np.exp(y[:, None] - half * x), p) - 1).max())
        assert worst[0] < 2e-14 < worst[1]


def test_it_is_the_estimator_of_the_library():
    rng = np.random.default_rng(2)
    rewards = rng.standard_t(1.5, 300)
    value = fed(Live, rewards, 0.3, 2.0).describe()["mean"][0]
    assert value == pytest.approx(estimator(rewards, p=1.3, c=2.0).value, rel=1e-11)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(-1e150, 1e150), st.floats(-10, 10)), min_size=1, max_size=160),
    st.floats(1e-6, 1.0),
    st.floats(-30, 30),
)
def test_any_rewards(rewards, eps, exponent):
    c = 10.0**exponent
    rewards = np.array([0.0 if abs(x) < 1e-100 else x for x in rewards])
    assert error(fed(Live, rewards, eps, c), rewards, 1 + eps, c) < 1e-13


@pytest.mark.parametrize("driver", [Live, Plain])
def test_scales_at_their_limits(driver):
    """Plain Python raises where a power overflows."""
    for c in (2e-150, 0.5e150):
        for reward in (1e150, -1e150, 1e-150, 0.0):
            live = fed(driver, [reward] * 100, 1.0, c)
            assert math.isfinite(live.describe()["mean"][0])
            assert math.isfinite(live.describe()["index"][0])
            assert error(live, [reward] * 100, 2.0, c) < 1e-13
