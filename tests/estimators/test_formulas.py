"""The shared formulas against their definitions, and the fast sums against the accurate one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from helpers.cases import cases
from robandit.estimators import b_p
from robandit.estimators.formulas.catoni import (
    distance,
    far_influence,
    influence,
    influence_constant,
    newton_root,
    power_sums,
    powers,
    quadratic,
    quadratic_sums,
)
from robandit.estimators.formulas.likelihood import bound_at, proved_exponent
from robandit.estimators.formulas.threshold import above_root, doubled, threshold_root
from robandit.estimators.roots import row_roots

X = np.random.default_rng(0).standard_t(1.5, 200)


def test_psi_is_the_logarithm_of_q():
    for z in (0.0, 1e-12, 0.3, 1.0, 50.0, 1e6):
        assert math.log(quadratic(z)) == pytest.approx(influence(z, 0.0, 1.0, 2.0, 0.5), abs=1e-15)
        q, slope = powers(z, 1.5, influence_constant(1.5))
        assert math.log(q) == pytest.approx(influence(z, 0.0, 1.0, 1.5, b_p(1.5)), abs=1e-15)
        h = 1e-5 * max(z, 1.0)
        after, before = (influence(z + s, 0.0, 1.0, 1.5, b_p(1.5)) for s in (h, -h))
        if z > 0.0 and z > h:
            assert slope == pytest.approx((after - before) / (2.0 * h), rel=1e-6)


@pytest.mark.parametrize(("d", "alpha"), [(1e9, 1.0), (-1e120, 1.0), (1e200, 1e200), (-1e300, 1e-3)])
def test_far_values(d, alpha):
    assert far_influence(d, alpha) == pytest.approx(influence(d, 0.0, alpha, 2.0, 0.5), rel=1e-14)
    with np.errstate(over="ignore"):  # compiled code does not warn
        sums = power_sums(np.array([d]), 0.0, alpha, 2.0, 0.5)
    assert sums[0] == pytest.approx(far_influence(d, alpha), rel=1e-14)


def test_a_difference_that_overflows():
    assert distance(1.7e308, -1.7e308, 1e-308) == pytest.approx(3.4)


@cases("alpha", [1e-3, 0.5, 20.0, 1e12])
@cases(("sums", "order"), [(quadratic_sums, 2.0), (power_sums, 2.0), (power_sums, 1.3)])
def test_sums_and_roots(sums, order, alpha):
    b = influence_constant(order)
    theta = 0.2
    total, slope = sums(X, theta, alpha, order, b)
    assert total == pytest.approx(math.fsum(influence(x, theta, alpha, order, b) for x in X), rel=1e-9, abs=1e-9)
    assert slope == pytest.approx(math.fsum(powers(alpha * abs(x - theta), order, b)[1] for x in X), rel=1e-9)
    root, _ = newton_root(sums, X, alpha, order, b, theta, 1e-11)
    expected = row_roots(X[None], np.array([alpha]), order=order, factor=b)[0]
    assert root == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("a", [0.5, 3.0, 7.25, 60.0])
def test_the_threshold_solves_its_equation(a):
    sizes = np.sort(np.abs(X))[::-1]
    d = next(d for d in range(len(sizes)) if not above_root(sizes[d] ** 2, np.sum(sizes[d:] ** 2), a, d))
    m = threshold_root(float(np.sum(sizes[d:] ** 2)), a, d)
    assert d < a
    assert np.sum(np.minimum((sizes / m) ** 2, 1.0)) == pytest.approx(a)
    assert m <= doubled(sizes[-1], m) < 2.0 * m
    exact = Fraction(a)
    squares = [Fraction(size) ** 2 for size in sizes.tolist()]
    assert not above_root(squares[d], sum(squares[d:]), exact, d)
    assert d == 0 or above_root(squares[d - 1], sum(squares[d - 1 :]), exact, d - 1)


def test_the_likelihood_bound_is_its_definition():
    z, at, exponent = np.array([-2.0, 0.1, 0.9]), 1.5, 0.2
    expected = at - math.exp(-exponent + np.mean(np.log(at - z)))
    assert bound_at(at, float(np.mean(np.log1p(-z / at))), exponent) == pytest.approx(expected)
    level, n = 3.0, 50.0
    assert math.e * (n + 2.0) * math.exp(-n * proved_exponent(level, n)) == pytest.approx(math.exp(-level))
