"""SciPy's names: ``ppf`` and ``isf`` against exact values, SciPy and the cdf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from helpers.cases import cases
from helpers.law_examples import LAWS
from robandit.errors import InvalidInput
from robandit.laws import (
    Burr,
    Cauchy,
    Empirical,
    Frechet,
    Gaussian,
    Law,
    LogNormal,
    Lomax,
    Mixture,
    Pareto,
    Stable,
    StudentT,
    Weibull,
    ZeroInflated,
)

EXTREME = np.array([1e-300, 1e-100, 1e-16, 1e-5, 0.2, 0.25, 0.4, 0.5, 0.7, 0.75, 0.99999, 1.0 - 1e-12, 1.0 - 1e-16])


def power(x: mpf, exponent: float) -> mpf:
    return mp.power(x, mpf(exponent))


# The quantile for P(X <= x) = q, with p = 1 - q, at 400 digits.
EXACT = {
    Pareto(1.5, scale=2.0): lambda q, p: 2 * power(p, -1 / mpf(1.5)),
    Pareto(30.0): lambda q, p: power(p, -1 / mpf(30)),
    Lomax(1.5, scale=2.0): lambda q, p: 2 * (power(p, -1 / mpf(1.5)) - 1),
    Burr(2.0, 0.75): lambda q, p: mp.sqrt(power(p, -1 / mpf(0.75)) - 1),
    Burr(100.0, 0.01): lambda q, p: power(power(p, -1 / mpf(0.01)) - 1, 1 / mpf(100)),
    Cauchy(): lambda q, p: -mp.cot(mp.pi * q),
    Frechet(1.5): lambda q, p: power(-mp.log(q), -1 / mpf(1.5)),
    Weibull(2.0, scale=3.0): lambda q, p: 3 * mp.sqrt(-mp.log(p)),
    -Pareto(1.5): lambda q, p: -power(q, -1 / mpf(1.5)),
    3.0 - 2.0 * Lomax(2.5): lambda q, p: 3 - 2 * (power(q, -1 / mpf(2.5)) - 1),
}


@cases("law", EXACT)
def test_exact_values(law: Law):
    with mp.workdps(400):
        wanted = [EXACT[law](mpf(float(q)), 1 - mpf(float(q))) for q in EXTREME]
        upper = [EXACT[law](1 - mpf(float(q)), mpf(float(q))) for q in EXTREME]
        for ours, exact in ((law.ppf(EXTREME), wanted), (law.isf(EXTREME), upper)):
            # At 1/2 the Cauchy quantile is 0, so its scale is allowed for.
            assert all(
                abs(mpf(float(a)) - b) <= 4e-13 * abs(b) + 1e-16 * (b == exact[7])
                for a, b in zip(ours, exact, strict=True)
            )


@pytest.mark.parametrize(
    ("law", "peer"),
    [
        (Gaussian(mean=-3.0, sd=2.0), stats.norm(-3.0, 2.0)),
        (LogNormal(mu=1.0, sigma=0.5), stats.lognorm(0.5, scale=math.e)),
        (StudentT(3.0, loc=1.0, scale=2.0), stats.t(3.0, 1.0, 2.0)),
        (StudentT(60.0), stats.t(60.0)),
        (StudentT(0.5), stats.t(0.5)),
        (Stable(2.0, loc=1.0), stats.norm(1.0, math.sqrt(2.0))),
    ],
    ids=lambda each: repr(each) if isinstance(each, Law) else "",
)
def test_equals_scipy(law: Law, peer):
    q = EXTREME[2:]
    assert law.ppf(q) == pytest.approx(peer.ppf(q), rel=1e-9, abs=1e-15)
    assert law.isf(q) == pytest.approx(peer.isf(q), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("dof", [0.7, 1.5, 3.0, 12.0])
def test_student_beyond_the_range_of_scipy(dof):
    """P(T < -t) is half of a beta variable's cdf; SciPy's own quantiles fail where t^2 overflows."""
    law = StudentT(dof)
    for q in (1e-300, 1e-150, 1e-60, 1e-14):
        t = float(law.ppf(q))
        assert float(law.isf(q)) == -t
        if t == -math.inf:
            assert dof < 1.0  # the quantile itself is beyond 1e308
            continue
        with mp.workdps(60):
            share = mpf(dof) / (dof + mpf(t) ** 2)
            mass = mp.betainc(mpf(dof) / 2, mpf(1) / 2, 0, share, regularized=True) / 2
            assert abs(mass / mpf(q) - 1) < 1e-12 * max(1.0, dof)


@pytest.mark.parametrize("dof", [1e7, 1e12, 1e18])
def test_student_with_many_degrees_of_freedom(dof):
    """It is nearly normal: the first term of the expansion in 1/dof is z (z^2 + 1) / 4."""
    z = stats.norm.ppf(EXTREME[2:])
    assert StudentT(dof).ppf(EXTREME[2:]) == pytest.approx(
        z * (1.0 + (z * z + 1.0) / (4.0 * dof)), rel=1e-11, abs=1e-15
    )


@cases("law", LAWS)
def test_against_the_cdf(law: Law):
    """ppf(q) is the least x with cdf(x) >= q; isf(1 - q) is the same. At 0 and 1 they are the ends of the support."""
    q = np.array([[0.01, 0.125, 0.25], [0.5, 0.75, 0.9375]])
    if "no quantiles" in _refusal(law):
        assert isinstance(law, (Stable, Mixture))
        return
    x = law.ppf(q)
    assert x.shape == q.shape
    assert x == pytest.approx(law.isf(1.0 - q), rel=1e-12, abs=1e-12)
    slack = 1e-11
    assert np.all(law.cdf(x + 1e-13 * np.abs(x)) >= q - slack)
    assert np.all(law.cdf(x - 1e-9 * (1e-300 + np.abs(x)) - 1e-300) <= q + slack)
    assert law.ppf([0.0, 1.0]).tolist() == list(law.support)
    assert law.isf([1.0, 0.0]).tolist() == list(law.support)
    assert math.isnan(law.ppf(math.nan))
    every = law.ppf(np.concatenate([[0.0], EXTREME, [1.0]]))
    assert np.all(every[1:] >= every[:-1])


def _refusal(law: Law) -> str:
    try:
        law.ppf(0.5)
    except InvalidInput as error:
        return str(error)
    return ""


def test_laws_without_quantiles_raise_by_name():
    for law, name in ((Stable(1.5), "Stable"), (Mixture((Gaussian(), Cauchy()), (0.5, 0.5)), "Mixture")):
        for q in (0.5, 0.0, []):
            with pytest.raises(InvalidInput, match=rf"^{name}\(.* has no quantiles in closed form: draw a sample, and"):
                law.ppf(q)
        with pytest.raises(InvalidInput, match="no quantiles"):
            law.isf(0.5)


def test_a_jump_of_a_mixed_law():
    law = ZeroInflated(-Pareto(2.0), 0.5)  # half at 0, none between -1 and 0
    assert law.ppf([0.125, 0.5, 0.5000001, 1.0]).tolist() == [-2.0, -1.0, 0.0, 0.0]
    assert law.isf([0.875, 0.5, 0.4999999, 0.0]).tolist() == [-2.0, -1.0, 0.0, 0.0]
    assert (-law).ppf([0.5, 0.875]).tolist() == [0.0, 2.0]
    shifted = Mixture((Pareto(2.0), Gaussian(), Pareto(2.0)), (1.0, 0.0, 0.0)) * 2.0 - 1.0
    assert shifted.ppf(0.75) == pytest.approx(3.0, rel=1e-15)


def test_quantiles_of_recorded_values_are_order_statistics():
    data = np.random.default_rng(0).permutation(np.arange(1.0, 11.0))
    law = Empirical(data)
    q = np.arange(1, 11) / 10  # sums of 0.1 would miss some of these
    assert law.ppf(q).tolist() == list(range(1, 11))
    assert law.ppf(law.cdf(data)).tolist() == data.tolist()
    assert law.isf(q).tolist() == [*range(9, 0, -1), 1]
    assert law.ppf(q).tolist() == np.quantile(data, q, method="inverted_cdf").tolist()


@pytest.mark.parametrize("q", [-0.1, 1.0000001, [0.5, 2.0], math.inf, "half", None])
def test_invalid_probabilities(q):
    with pytest.raises(InvalidInput, match=r"q.* must be"):
        Pareto(1.5).ppf(q)


def test_a_number_gives_a_number():
    assert isinstance(Pareto(1.5).ppf(0.5), np.float64)
    assert Pareto(1.5).ppf([]).shape == (0,)
