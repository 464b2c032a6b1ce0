"""The probability of the largest perturbed mean: closed forms, an adaptive integral, ties, and arms that are not allowed."""

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from helpers.amount import amount
from robandit.policies.p_robust.ape2 import APE2, KINDS
from robandit.policies.p_robust.mr_ape import MRAPE
from robandit.policies.p_robust.perturbed import winning_chance

ALPHA, SIZE = 4.0, 1.5
LAWS = {
    "weibull": stats.expon,
    "gev": stats.gumbel_r,
    "pareto": stats.pareto(ALPHA, scale=SIZE),
    "frechet": stats.invweibull(ALPHA, scale=SIZE),
    "uniform": stats.uniform,
}
over_laws = pytest.mark.parametrize("name", LAWS)


class State(NamedTuple):
    arms: Any  # the second column holds means, the third the factors of the noise
    pulls: Any
    law: Any
    allowed: Any


class Params(NamedTuple):
    kind: int


def reach(p, s, arm):
    return s.arms[arm, 2]


def chances(name, means, scales, pulls=None, allowed=None, first=None):
    """Return the probabilities of the allowed arms, or of the first few arms."""
    arms = len(means)
    state = State(
        np.column_stack([np.ones(arms), np.asarray(means, dtype=float), np.asarray(scales, dtype=float)]),
        np.array([*(pulls or [0] * arms), 0, 0]),
        np.array([1.0 / ALPHA, SIZE]),
        np.ones(arms, dtype=bool) if allowed is None else np.array(allowed),
    )
    owner = MRAPE if name == "uniform" else APE2
    hooks = (reach, owner.exceeded, owner.above, owner.edges)
    params = Params(KINDS.get(name, 0))
    with np.errstate(all="ignore"):  # compiled code does not warn either
        return np.array(
            [winning_chance(*hooks, params, state, arm) for arm in range(first or arms) if state.allowed[arm]]
        )


def integrated(name, means, scales, arm):
    """Return the probability by an adaptive rule over t = -log u, between many points at which the integrand may change fast."""
    law = LAWS[name]
    others = [j for j in range(len(means)) if j != arm]

    def integrand(t):
        score = means[arm] + scales[arm] * law.isf(math.exp(-t))
        return math.exp(-t) * math.prod(law.cdf((score - means[j]) / scales[j]) for j in others)

    points = {0.0}
    for j in others:
        for q in (0.0, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-6, 1.0 - 1e-9, 1.0):
            u = law.sf((means[j] + scales[j] * law.ppf(q) - means[arm]) / scales[arm])
            if 1e-30 < u < 1.0:
                points.add(-math.log(u))
    ends = [*sorted(points), max(points) + 50.0]
    parts = pairwise(ends)
    return sum(quad(integrand, a, b, epsabs=1e-12, epsrel=1e-9, limit=100)[0] for a, b in parts)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@over_laws
def test_an_adaptive_integral_agrees(name):
    source = np.random.default_rng(0)
    for case in range(amount(4, 8)):
        arms = int(source.integers(2, 6))
        counts = 10.0 ** source.uniform(0.0, 6.0 if case % 2 else 1.5, arms)
        scales = 10.0 ** source.uniform(-1.0, 1.0) / np.sqrt(counts)
        means = source.normal(size=arms) * 10.0 ** source.uniform(-3.0, 0.5)
        given = chances(name, means, scales)
        assert abs(given.sum() - 1.0) < 1e-7
        arm = int(source.integers(arms))
        expected = integrated(name, means, scales, arm)
        assert abs(given[arm] - expected) < 1e-7
        if expected > 1e-9:
            assert given[arm] == pytest.approx(expected, rel=1e-3)


@over_laws
@pytest.mark.parametrize("arms", [2, 3, 30, 200])
def test_equal_arms_have_equal_chances(name, arms):
    np.testing.assert_allclose(chances(name, [0.3] * arms, [0.7] * arms, first=2), 1.0 / arms, rtol=1e-7)


@over_laws
def test_many_different_arms_sum_to_one(name):
    source = np.random.default_rng(1)
    assert abs(chances(name, source.normal(size=15), source.uniform(0.01, 2.0, 15)).sum() - 1.0) < 1e-7


@pytest.mark.parametrize("gap", [0.0, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize(("scale", "other"), [(1.0, 1.0), (1.0, 1e-4), (1e-4, 1.0), (2.0, 0.5)])
def test_two_arms_with_exponential_noise(gap, scale, other):
    given = chances("weibull", [0.0, gap], [scale, other])
    exact = scale / (scale + other) * math.exp(-gap / scale)
    assert given[0] == pytest.approx(exact, rel=1e-7, abs=1e-18)
    assert given[1] == pytest.approx(1.0 - exact, rel=1e-7)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 10.0])
def test_equal_gumbel_noise_gives_exponential_weights(spread):
    means = np.random.default_rng(2).normal(size=7) * spread
    weights = np.exp((means - means.max()) / 0.4)
    np.testing.assert_allclose(chances("gev", means, [0.4] * 7), weights / weights.sum(), rtol=1e-4, atol=1e-9)


def test_frechet_noise_without_means_gives_powers():
    scales = np.random.default_rng(3).uniform(0.1, 2.0, 6)
    np.testing.assert_allclose(chances("frechet", [0.0] * 6, scales), scales**ALPHA / (scales**ALPHA).sum(), rtol=1e-6)


def test_two_arms_with_uniform_noise():
    # P(U > 0.5 + V/2) = 1/4
    np.testing.assert_allclose(chances("uniform", [0.0, 0.5], [1.0, 0.5]), [0.25, 0.75], rtol=1e-12)
    np.testing.assert_allclose(chances("uniform", [0.0, 2.0], [1.0, 0.5]), [0.0, 1.0])


def test_arms_without_noise():
    np.testing.assert_allclose(chances("uniform", [0.0, 0.25], [1.0, 0.0]), [0.75, 0.25], rtol=1e-12)
    assert chances("uniform", [0.1, 0.2, 0.15], [0.0, 0.0, 0.0]).tolist() == [0.0, 1.0, 0.0]
    # Ties: the fewest pulls, then the lowest arm.
    assert chances("uniform", [0.2, 0.2, 0.2], [0.0, 0.0, 0.0], pulls=[3, 2, 2]).tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_allclose(
        chances("uniform", [0.2, 0.2, 0.0], [0.0, 0.0, 1.0], pulls=[5, 4, 1]), [0.0, 0.2, 0.8], rtol=1e-12
    )


@over_laws
def test_arms_that_are_not_allowed_do_not_count(name):
    means, scales = [0.0, 0.2, 5.0, -0.1], [1.0, 0.5, 2.0, 0.3]
    fewer = chances(name, means, scales, allowed=[True, True, False, True])
    np.testing.assert_array_equal(fewer, chances(name, [0.0, 0.2, -0.1], [1.0, 0.5, 0.3]))
    assert chances(name, means, scales, allowed=[False, False, False, True]) == pytest.approx([1.0], rel=1e-12)


@over_laws
def test_chances_do_not_depend_on_units(name):
    means, scales = np.array([0.0, 0.2, 0.5]), np.array([1.0, 0.5, 0.2])
    given = chances(name, means, scales)
    np.testing.assert_allclose(chances(name, 1e140 * means, 1e140 * scales), given, rtol=1e-9)
    np.testing.assert_allclose(chances(name, 1e-140 * means, 1e-140 * scales), given, rtol=1e-9)
    np.testing.assert_allclose(chances(name, means + 100.0, scales), given, rtol=1e-9)
