"""What the bounds promise, counted: a fixed seed, a tolerance from the binomial law, and controls that must fail."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from helpers.amount import amount
from robandit import estimators as est
from robandit.estimators.infinite_variance import tuning

TRIALS = 2_000
DELTA = 0.05
LAWS = {  # name: (draw, mean)
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "student 1.5": (lambda rng, shape: rng.standard_t(1.5, shape), 0.0),
    "student 2.5": (lambda rng, shape: rng.standard_t(2.5, shape), 0.0),
    "pareto 1.2": (lambda rng, shape: 1 + rng.pareto(1.2, shape), 6.0),
    "pareto 1.5": (lambda rng, shape: 1 + rng.pareto(1.5, shape), 3.0),
    "pareto 2.5": (lambda rng, shape: 1 + rng.pareto(2.5, shape), 5 / 3),
    "negated pareto 1.2": (lambda rng, shape: -1 - rng.pareto(1.2, shape), -6.0),
    "negated pareto 1.5": (lambda rng, shape: -1 - rng.pareto(1.5, shape), -3.0),
    "negated log-normal": (lambda rng, shape: -rng.lognormal(0.0, 1.5, shape), -math.exp(1.125)),
    "mostly zero": (
        lambda rng, shape: np.where(rng.random(shape) < 0.6, 0.0, -1 - rng.pareto(1.5, shape)),
        -1.2,
    ),
}


@functools.cache
def samples(law: str, n: int) -> np.ndarray:
    draw, _ = LAWS[law]
    out = draw(np.random.default_rng([n, *law.encode()]), (TRIALS, n))
    out.setflags(write=False)
    return out


def misses(estimate: est.Estimate, mean: float, shrink: float = 1.0) -> int:
    """How many of the intervals, shrunk towards their values by a factor, do not hold the mean."""
    low = estimate.value - shrink * (estimate.value - estimate.lower)
    high = estimate.value + shrink * (estimate.upper - estimate.value)
    return int(np.sum((mean < low) | (mean > high)))


def too_many(delta: float) -> int:
    """A number of misses that happens with probability below 1e-6 if each has probability at most delta."""
    tail, k = 1.0, 0
    while tail >= 1e-6:
        tail -= math.exp(
            math.lgamma(TRIALS + 1) - math.lgamma(k + 1) - math.lgamma(TRIALS - k + 1)
            + k * math.log(delta) + (TRIALS - k) * math.log1p(-delta)
        )  # fmt: skip
        k += 1
    return k


ONE_SIDED = ["negated pareto 1.2", "negated pareto 1.5", "negated log-normal", "mostly zero", "student 1.5", "normal"]


@pytest.mark.parametrize("bonus", ["paper", "tight", "likelihood"])
@pytest.mark.parametrize("center", [None, "median"])
@pytest.mark.parametrize("law", ONE_SIDED)
def test_adaptive(law, center, bonus):
    for n in amount((240,), (240, 600)):
        estimate = est.adaptive_trimmed_mean(samples(law, n), delta=DELTA, bonus=bonus, center=center)
        assert misses(estimate, LAWS[law][1]) < too_many(DELTA)


@pytest.mark.parametrize("center", [None, "median"])
def test_right_skew_breaks_the_one_sided_bound(center):
    """The control: the assumption is needed, and the count sees when it fails."""
    options = {"bonus": "likelihood", "center": center, "warn": False}
    estimate = est.adaptive_trimmed_mean(samples("pareto 1.2", 600), delta=DELTA, **options)
    assert misses(estimate, 6.0) > 3 * too_many(DELTA)


def test_an_order_that_depends_on_the_values_breaks_the_split_and_a_seed_mends_it():
    ordered = np.sort(samples("normal", 600), axis=1)
    x = np.empty_like(ordered)
    x[:, 0::2], x[:, 1::2] = ordered[:, :300], ordered[:, 300:]  # X is the lower half
    assert misses(est.adaptive_trimmed_mean(x, delta=DELTA, bonus="likelihood"), 0.0) > 3 * too_many(DELTA)
    mended = est.adaptive_trimmed_mean(x, delta=DELTA, bonus="likelihood", seed=3)
    assert misses(mended, 0.0) < too_many(DELTA)


# Bounds with known moments. E|x|^(1+eps) = u, E|x - mean|^(1+eps) <= v. The last number: an interval shrunk by it misses too
# often for that law, so a constant that is too small by this factor would be caught.
PARETO_RAW = 1.5 / (1.5 - 1.25)
TWO_SIDED = {
    "theorem 6": (lambda x: est.adaptive_trimmed_mean(x, delta=DELTA, eps=0.25, u=PARETO_RAW), "pareto 1.5", 0.04),
    "truncated": (lambda x: est.truncated_mean(x, eps=0.25, u=PARETO_RAW, delta=DELTA), "pareto 1.5", 0.04),
    "truncated, common": (
        lambda x: est.truncated_mean(x, eps=0.25, u=PARETO_RAW, delta=DELTA, common_threshold=True),
        "pareto 1.5",
        0.03,
    ),
    "truncated, normal": (lambda x: est.truncated_mean(x, eps=1.0, u=1.0, delta=DELTA), "normal", 0.2),
    "median of means": (lambda x: est.median_of_means(x, delta=DELTA, eps=1.0, v=1.0), "normal", 0.08),
    "median of means, student": (lambda x: est.median_of_means(x, delta=DELTA, eps=1.0, v=5.0), "student 2.5", 0.05),
    "catoni": (lambda x: est.catoni_mean(x, v=1.0, delta=DELTA), "normal", 0.4),
    "catoni, tight": (lambda x: est.catoni_mean(x, v=1.0, delta=DELTA, bonus="tight"), "normal", 0.6),
    "catoni, student": (lambda x: est.catoni_mean(x, v=5.0, delta=DELTA, bonus="tight"), "student 2.5", 0.3),
    "infinite variance": (lambda x: est.infinite_variance_catoni(x, eps=1.0, v=1.0, delta=DELTA), "normal", 0.5),
    "infinite variance, pareto": (
        lambda x: est.infinite_variance_catoni(x, eps=0.25, v=8.0, delta=DELTA),
        "pareto 1.5",
        0.05,
    ),
    "lepskii": (lambda x: est.lepskii_catoni(x, eps=0.25, delta=DELTA, range_factor=4.0), "pareto 1.5", 0.02),
    "p-robust": (lambda x: est.p_robust_mean(x, p=1.25, c=3.0, u=PARETO_RAW, delta=DELTA), "pareto 1.5", 0.05),
    "sample": (lambda x: est.sample_mean(x, v=1.0, delta=DELTA), "normal", 0.35),
}


@pytest.mark.parametrize("name", TWO_SIDED)
def test_two_sided(name):
    method, law, shrink = TWO_SIDED[name]
    estimate = method(samples(law, 600))
    mean = LAWS[law][1]
    assert np.isfinite(estimate.upper).all()
    assert misses(estimate, mean) < too_many(DELTA)
    assert misses(estimate, mean, shrink) > too_many(DELTA)


def test_chebyshev_is_nearly_sharp():
    """A law for which the sample mean misses often: its own control against a constant that is too small."""
    n = 100
    a = math.sqrt(n / DELTA)  # one such value in the sample moves the mean to the bound
    rng = np.random.default_rng(4)
    x = rng.choice([-a, 0.0, a], p=[0.5 / a**2, 1 - 1 / a**2, 0.5 / a**2], size=(TRIALS, n))
    estimate = est.sample_mean(x, v=1.0, delta=DELTA)
    assert misses(estimate, 0.0) < too_many(DELTA)
    assert misses(estimate, 0.0, 0.99) > TRIALS * DELTA / 2
    robust = est.catoni_mean(x, v=1.0, delta=DELTA)
    assert (robust.upper - robust.lower < estimate.upper - estimate.lower).all()


@pytest.mark.parametrize("eps", [0.05, 0.2, 0.5, 0.8, 1.0])
def test_the_infinite_variance_theorem(eps):
    """The width solves the inequality that its proof rests on, and 60 % of it does not.

    With v = 1 and theta at a distance d from the mean, E|x - theta|^p is at most (1 + d)^p (Minkowski).
    """
    p, c = 1 + eps, est.b_p(1 + eps)
    for n in (3_000, 100_000):
        level = math.log(2 / DELTA)
        alpha, width, _ = tuning(n, level, eps)
        for factor, holds in ((1.0, True), (0.6, False)):
            d = factor * width
            left = alpha * d - c * alpha**p * (1 + d) ** p - level / n
            assert (left >= -1e-15) == holds


def test_the_tolerance():
    """About delta trials, plus five standard deviations."""
    assert 100 + 4 * math.sqrt(95) < too_many(DELTA) < 100 + 6 * math.sqrt(95)
