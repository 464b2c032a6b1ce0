"""Student's t in compiled code against scipy and mpmath: tail, density, draws."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from robandit.kernel.random import streams
from robandit.policies.sampling.student import MANY, gamma_ratio, student_above, student_density, student_draw

FREEDOMS = [2.0, 2.5, 3.0, 7.3, 30.0, 99.9, 199.9, 200.0, 201.5, 1000.0, 1e5, 1e9, 1e14]
VALUES = [0.0, 1e-9, 0.01, 0.3, 1.0, 1.7, 2.5, 4.0, 6.0, 9.0, 15.0, 40.0, 300.0, 1e5]


@pytest.mark.parametrize("nu", FREEDOMS)
def test_tail_and_density_are_those_of_scipy(nu):
    for z in VALUES:
        for value in (z, -z):
            exact = stats.t.sf(value, nu)
            # Hill's expansion loses relative accuracy far out, where no probability that matters is.
            tolerance = 1e-9 if exact > 1e-30 else 1e-2
            assert student_above(value, nu) == pytest.approx(exact, rel=tolerance, abs=1e-250)
            assert student_density(value, nu) == pytest.approx(stats.t.pdf(value, nu), rel=1e-9, abs=1e-250)


def test_two_and_four_degrees_of_freedom_by_hand():
    for z in (0.5, 1.0, 3.0, 1e4):
        tail = 1.0 / (
            math.sqrt(2.0 + z * z) * (math.sqrt(2.0 + z * z) + z)
        )  # (1 - z / sqrt(2 + z^2)) / 2, without cancellation
        assert student_above(z, 2.0) == pytest.approx(tail, rel=1e-13)
    for z in (0.5, 2.0):
        share = z / math.sqrt(4.0 + z * z)
        assert student_above(z, 4.0) == pytest.approx(0.5 - 0.75 * (share - share**3 / 3.0), rel=1e-13)


@pytest.mark.parametrize("nu", [2.0, 5.5, MANY - 0.1, MANY, 1e4, 1e8])
def test_the_ratio_of_gamma_functions(nu):
    with mpmath.workdps(40):
        exact = float(mpmath.gammaprod([(mpmath.mpf(nu) + 1) / 2], [mpmath.mpf(nu) / 2]))
    assert gamma_ratio(nu) == pytest.approx(exact, rel=1e-12)


def test_far_values():
    assert student_above(1e200, 2.0) == 0.0
    assert student_above(-1e200, 2.0) == 1.0
    assert student_above(math.inf, 3.0) == 0.0
    assert student_density(1e200, 2.0) == 0.0


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose
@pytest.mark.parametrize("nu", [2.0, 3.7, 50.0])
def test_draws_have_the_law(nu):
    rng = streams(np.random.SeedSequence(3), 1)[0]
    draws = np.array([student_draw(nu, rng) for _ in range(20_000)]) * math.sqrt(nu)
    risk = 1e-6
    assert stats.kstest(draws, stats.t(nu).cdf).pvalue > risk
    # Negative controls: another scale, and (where 20,000 draws can tell) the normal law.
    assert stats.kstest(1.1 * draws, stats.t(nu).cdf).pvalue < risk
    if nu < 5:
        assert stats.kstest(draws, stats.norm.cdf).pvalue < risk
