"""Moments against closed forms and 30-digit integrals that share nothing with the library's quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from helpers.amount import amount
from helpers.cases import cases
from helpers.law_examples import LAWS
from robandit.laws import (
    Bernoulli,
    Burr,
    Cauchy,
    Constant,
    Discrete,
    Empirical,
    Frechet,
    Gaussian,
    Law,
    LogNormal,
    Lomax,
    Pareto,
    Stable,
    StudentT,
    Weibull,
    scaled_to_mean,
)


@cases(
    ("law", "mean", "variance"),
    [
        (Pareto(1.5), 3.0, math.inf),
        (Pareto(3.0, scale=2.0), 3.0, 3.0),
        (Pareto(1.0), math.inf, math.inf),
        (Lomax(1.5, scale=2.0), 4.0, math.inf),
        (Lomax(3.0), 0.5, 0.75),
        (StudentT(3.0, loc=1.0, scale=2.0), 1.0, 12.0),
        (StudentT(2.0), 0.0, math.inf),
        (StudentT(1.0), math.nan, math.nan),
        (Cauchy(), math.nan, math.nan),
        (Stable(1.5, beta=0.7, loc=-2.0), -2.0, math.inf),
        (Stable(2.0, loc=1.0, scale=3.0), 1.0, 18.0),
        (Frechet(2.0), math.sqrt(math.pi), math.inf),
        (Frechet(4.0), math.gamma(0.75), math.gamma(0.5) - math.gamma(0.75) ** 2),
        (Weibull(0.5, scale=3.0), 6.0, 180.0),
        (LogNormal(1.0, 0.5), math.exp(1.125), math.exp(2.25) * math.expm1(0.25)),
        (Burr(2.0, 2.0), math.pi / 4.0, 1.0 - math.pi**2 / 16.0),
        (Gaussian(-1.0, 3.0), -1.0, 9.0),
        (Bernoulli(0.25), 0.25, 0.1875),
        (Discrete((0.0, 10.0), (0.9, 0.1)), 1.0, 9.0),
        (Constant(4.0), 4.0, 0.0),
        (Empirical([1.0, 2.0, 6.0]), 3.0, 14.0 / 3.0),
        (-Pareto(1.5), -3.0, math.inf),
        (2.0 - 3.0 * Gaussian(1.0, 2.0), -1.0, 36.0),
    ],
)
def test_mean_and_variance_by_hand(law: Law, mean: float, variance: float) -> None:
    assert law.mean == pytest.approx(mean, rel=1e-12, nan_ok=True)
    assert law.variance == pytest.approx(variance, rel=1e-10, nan_ok=True)


FROZEN = [
    (Pareto(2.7, 1.3), stats.pareto(2.7, scale=1.3)),
    (Lomax(2.7, 1.3), stats.lomax(2.7, scale=1.3)),
    (StudentT(2.7, -1.0, 1.3), stats.t(2.7, loc=-1.0, scale=1.3)),
    (Frechet(2.7, 1.3), stats.invweibull(2.7, scale=1.3)),
    (Weibull(0.7, 1.3), stats.weibull_min(0.7, scale=1.3)),
    (LogNormal(0.3, 1.2), stats.lognorm(1.2, scale=math.exp(0.3))),
    (Burr(1.7, 2.2, 1.3), stats.burr12(1.7, 2.2, scale=1.3)),
    (Cauchy(1.0, 2.0), stats.cauchy(1.0, 2.0)),
    (Gaussian(1.0, 2.0), stats.norm(1.0, 2.0)),
]


@cases(("law", "reference"), FROZEN)
def test_cdf_support_and_mean_agree_with_scipy(law: Law, reference: stats.rv_frozen) -> None:
    x = np.array([-1e6, -30.0, -2.0, -0.1, 0.0, 0.01, 0.5, 1.0, 1.3, 1.31, 2.0, 7.0, 100.0, 1e8])
    np.testing.assert_allclose(law.cdf(x), reference.cdf(x), rtol=1e-10, atol=1e-14)
    assert law.support == pytest.approx(reference.support(), abs=1e-12)
    if law.tail_index > 1.0:
        assert law.mean == pytest.approx(float(reference.mean()), rel=1e-8)


DENSITIES = [
    (Pareto(1.5), lambda x: 1.5 * x**-2.5, 1.0),
    (Lomax(1.5), lambda x: 1.5 * (1 + x) ** -2.5, 0.0),
    (Frechet(1.5), lambda x: 1.5 * x**-2.5 * mp.exp(-(x**-1.5)), 0.0),
    (Weibull(0.5), lambda x: 0.5 * x**-0.5 * mp.exp(-(x**0.5)), 0.0),
    (LogNormal(0.0, 1.5), lambda x: mp.npdf(mp.log(x) / 1.5) / x / 1.5, 0.0),
    (Burr(0.8, 2.0), lambda x: mp.mpf("1.6") * x ** -mp.mpf("0.2") * (1 + x ** mp.mpf("0.8")) ** -3, 0.0),
    (
        StudentT(1.5),
        lambda x: mp.gamma(1.25) / mp.gamma(0.75) / mp.sqrt(1.5 * mp.pi) * (1 + x * x / 1.5) ** -1.25,
        None,
    ),
    (Gaussian(), mp.npdf, None),
]


@pytest.mark.parametrize(("order", "about"), [(1.25, 0.3), (0.5, -2.0), (1.45, 40.0)])
@pytest.mark.parametrize(
    ("law", "density", "lower"), DENSITIES, ids=lambda value: repr(value) if isinstance(value, Law) else ""
)
def test_moments_about_a_point_agree_with_mpmath(
    law: Law, density: Callable[[Any], Any], lower: float | None, order: float, about: float
) -> None:
    def g(x: mp.mpf) -> mp.mpf:
        return abs(x - about) ** order * density(x)

    with mp.workdps(25):
        ends = sorted(
            {point for point in (lower, about if lower is None or about > lower else None, 1.0) if point is not None}
        )
        reference = mp.mpf(0)
        for a, b in pairwise(ends):
            middle = (a + b) / mp.mpf(2)
            reference += mp.quad(g, [a, middle]) + mp.quad(g, [middle, b])
        logs = [-60, -15, -4, 0, 3, 7, 15, 40, 100, 300, 900]
        reference += mp.quad(lambda y: g(ends[-1] + mp.exp(y)) * mp.exp(y), logs)
        if lower is None:
            reference += mp.quad(lambda y: g(ends[0] - mp.exp(y)) * mp.exp(y), logs)
    assert law.absolute_moment(order, about) == pytest.approx(float(reference), rel=1e-9)


@settings(max_examples=amount(30, 60), deadline=None, derandomize=True)
@given(
    tail=st.floats(0.3, 8.0),
    share=st.floats(0.05, 0.999),
    about=st.floats(-20.0, 1.0),
    scale=st.floats(1e-6, 1e6),
)
def test_pareto_moments_up_to_the_edge(tail: float, share: float, about: float, scale: float) -> None:
    order = share * tail
    series = mp.hyp2f1(-order, tail - order, tail - order + 1, about)
    expected = float(tail / (tail - order) * series) * scale**order
    assert Pareto(tail, scale).absolute_moment(order, about * scale) == pytest.approx(expected, rel=1e-8)


@cases("law", LAWS)
def test_moments_are_infinite_exactly_from_the_tail_index_on(law: Law) -> None:
    index = law.tail_index
    for about in (0.0, 1.0):
        if math.isinf(index):
            assert math.isfinite(law.absolute_moment(2.5, about))
            continue
        assert law.absolute_moment(index, about) == math.inf
        assert law.absolute_moment(index * 1.5, about) == math.inf
        assert math.isfinite(law.absolute_moment(index * 0.99, about))


@pytest.mark.parametrize(
    ("alpha", "beta", "order", "about"),
    [(1.5, 0.5, 1.2, 2.0), *amount([], [(0.7, 0.4, 0.3, 1.0), (1.8, -1.0, 0.5, -3.0), (1.3, -0.7, 1.1, 0.5)])],
)
def test_stable_moments_agree_with_the_unturned_integral(alpha: float, beta: float, order: float, about: float) -> None:
    def missing(t: mp.mpf) -> mp.mpf:  # 1 - Re phi(t) for X - about
        angle = beta * mp.tan(mp.pi * alpha / 2) * t**alpha - about * t
        # 1 - e^-a cos b without cancellation
        return (-mp.expm1(-(t**alpha)) + 2 * mp.exp(-(t**alpha)) * mp.sin(angle / 2) ** 2) * t ** (-1 - order)

    far = 400.0
    logs = [-300, -100, -40, -20, -10, -5, -2, -1, 0]
    near = mp.quad(lambda y: missing(mp.exp(y)) * mp.exp(y), logs)
    rest = mp.quad(missing, [*mp.linspace(1, 100, 100), far]) + mp.mpf(far) ** -order / order
    expected = float(2 / mp.pi * mp.gamma(1 + order) * mp.sin(mp.pi * order / 2) * (near + rest))
    assert Stable(alpha, beta).absolute_moment(order, about) == pytest.approx(expected, rel=1e-8)


def test_stable_moments_of_tiny_order() -> None:
    # log-convexity joins the orders 0, 0.02 and 0.5, and |X|^p tends to 1
    law = Stable(1.56, 0.43, loc=66.0)
    assert law.absolute_moment(1e-3) == pytest.approx(1.0 + 1e-3 * math.log(66.0), abs=1e-4)
    assert law.absolute_moment(0.02) <= law.absolute_moment(0.5) ** 0.04
    exact = Stable(1.56, 0.43).absolute_moment(0.02)
    assert Stable(1.56, 0.43).absolute_moment(0.02, about=1e-12) == pytest.approx(exact, rel=1e-9)


def test_stable_moments_agree_with_partial_means_far_from_the_location() -> None:
    for alpha, beta in [(1.5, 0.0), (1.5, 1.0), (1.2, -0.7), (1.9, 0.4)]:
        law = Stable(alpha, beta)
        for about in (0.3, -10.0, 1e5):
            upper, lower = law.partial_means(0.0, about)
            assert upper - lower == pytest.approx(law.absolute_moment(1.0, about), rel=1e-10)
            assert upper + lower == pytest.approx(-about, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 0.0), (1.5, 1.0), (1.2, -0.7), (1.05, 0.5)])
def test_stable_cdf_agrees_with_scipy(alpha: float, beta: float) -> None:
    x = np.array([-5.0, -1.0, -0.2, 0.3, 1.0, 20.0])
    np.testing.assert_allclose(Stable(alpha, beta).cdf(x), stats.levy_stable.cdf(x, alpha, beta), atol=1e-9)


def test_stable_laws_with_a_name() -> None:
    x = np.array([0.01, 0.1, 1.0, 5.0, 1e4])
    normal = Stable(2.0, 0.0, 1.0, 2.0)
    twin = Gaussian(1.0, 2.0 * math.sqrt(2.0))
    np.testing.assert_allclose(normal.cdf(x), twin.cdf(x), rtol=1e-12)
    assert normal.absolute_moment(3.0, 0.5) == pytest.approx(twin.absolute_moment(3.0, 0.5))
    assert Stable(1.5).absolute_moment(1.0) == pytest.approx(2.0 / math.pi * math.gamma(1.0 / 3.0))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    loc=st.floats(-5.0, 5.0),
    scale=st.floats(0.1, 5.0).flatmap(lambda s: st.sampled_from([s, -s])),
    order=st.floats(0.1, 1.45),
    about=st.floats(-5.0, 5.0),
)
def test_affine_maps_push_moments_through(loc: float, scale: float, order: float, about: float) -> None:
    moved = Lomax(1.5) * scale + loc
    expected = abs(scale) ** order * Lomax(1.5).absolute_moment(order, (about - loc) / scale)
    assert moved.absolute_moment(order, about) == pytest.approx(expected, rel=1e-9)
    assert moved.mean == pytest.approx(loc + scale * 2.0, rel=1e-12, abs=1e-12)


@cases(
    "law", [Lomax(1.5), Frechet(1.5), Weibull(0.6), LogNormal(), Burr(2.0, 0.9), StudentT(1.5), Gaussian(), Pareto(1.5)]
)
def test_partial_means_agree_with_integrated_tails(law: Law) -> None:
    # E[(X - c) 1{X - c > m}] = m P(X > c + m) + the integral of P(X > c + t) over t > m
    for about, m in [(0.0, 1.5), (1.2, 0.3), (-1.0, 2.5)]:
        y = np.linspace(-40.0, 90.0, 40_001)
        t = np.exp(y)
        step = y[1] - y[0]
        right = (-law).cdf(-(about + m + t)) if law.symmetric_about is not None else 1.0 - law.cdf(about + m + t)
        upper = m * float(1.0 - law.cdf(np.array([about + m]))[0]) + float(np.sum(right * t) * step)
        below = about - m - t
        lower = -m * float(law.cdf(np.array([about - m]))[0]) - float(np.sum(law.cdf(below) * t) * step)
        got = law.partial_means(m, about)
        assert got[1] == pytest.approx(lower, rel=1e-4, abs=1e-12)
        # 1 - cdf loses the far tail: with index 1.5 the lost part of the integral is about 1e-16^(1/3)
        assert got[0] == pytest.approx(upper, rel=1e-4)


def test_partial_means_of_infinite_laws() -> None:
    assert Pareto(0.8).partial_mean(5.0) == math.inf
    assert (-Pareto(1.0)).partial_mean(5.0) == -math.inf
    assert math.isnan(Cauchy().partial_mean(1.0))
    assert Frechet(0.7).partial_means(0.0, 3.0)[1] == pytest.approx(
        float(mp.quad(lambda x: (x - 3) * 0.7 * x**-1.7 * mp.exp(-(x**-0.7)), [0, 0.1, 1, 3])), rel=1e-9
    )
    assert Burr(0.5, 1.0).partial_means(0.0, 3.0)[1] == pytest.approx(
        float(mp.quad(lambda x: (x - 3) * 0.5 * x**-0.5 * (1 + x**0.5) ** -2, [0, 0.01, 1, 3])), rel=1e-9
    )


def test_scaled_to_mean() -> None:
    assert scaled_to_mean(Pareto(1.5), -6.0).mean == -6.0
    assert scaled_to_mean(-Lomax(1.5), -6.0).support == (-math.inf, 0.0)


def test_moments_that_overflow_are_rejected() -> None:
    with pytest.raises(ValueError, match="is finite but overflows"):
        LogNormal(sigma=30.0).absolute_moment(3.0)
    with pytest.raises(ValueError, match="is finite but overflows"):
        Weibull(0.01).absolute_moment(2.0)
