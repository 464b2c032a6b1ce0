from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.cases import cases
from robandit.laws import (
    Bernoulli,
    Cauchy,
    Constant,
    Discrete,
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
    ZeroInflated,
)


@cases(
    "law",
    [
        -Pareto(1.5),
        -Lomax(1.2),
        -Frechet(1.5),
        -LogNormal(),
        -Pareto(0.5),
        -Bernoulli(0.5),
        Constant(-1.0),
        Constant(0.0),
        ZeroInflated(-Pareto(1.5), 0.9),
        StudentT(1.5),
        Stable(1.5),
        Gaussian(),
        Discrete((-1.0, 1.0), (0.5, 0.5)),
        Mixture((StudentT(1.5), Gaussian()), (0.5, 0.5)),
        ZeroInflated(StudentT(1.5), 0.5),
        Discrete((-5.0, 1.0), (0.5, 0.5)),
    ],
)
def test_it_holds_exactly(law: Law) -> None:
    verdict = law.truncated_nonpositivity()
    assert verdict
    assert verdict.how == "exact"
    assert verdict.worst is None


@cases(
    "law",
    [
        Pareto(1.5),
        Pareto(0.5),
        Lomax(1.5),
        Bernoulli(0.5),
        Constant(0.1),
        StudentT(2.0, loc=1.0),
        Gaussian(mean=0.5),
        Discrete((5.0, -1.0), (0.1, 0.9)),
        Mixture((Pareto(1.5, 0.1), -Pareto(2.5)), (0.5, 0.5)),
        Cauchy(),
        3.5 - Pareto(1.5),
    ],
)
def test_it_fails_exactly(law: Law) -> None:
    verdict = law.truncated_nonpositivity()
    assert not verdict
    assert verdict.how == "exact"
    if verdict.worst is not None and math.isfinite(law.mean):
        assert law.partial_mean(verdict.worst) == pytest.approx(verdict.excess)
        assert law.partial_mean(verdict.worst) > 0.0


def test_the_centre_decides_for_symmetric_laws() -> None:
    law = StudentT(2.0, loc=1.0)
    assert not law.truncated_nonpositivity(about=0.0)
    assert law.truncated_nonpositivity(about=1.0)
    assert law.truncated_nonpositivity(about=2.0)


def test_a_step_in_the_middle_is_found() -> None:
    verdict = Discrete((5.0, -1.0), (0.1, 0.9)).truncated_nonpositivity()
    assert (verdict.worst, verdict.excess) == (1.0, 0.5)
    data = np.concatenate([np.full(9, -1.0), [5.0]])
    assert Empirical(data).truncated_nonpositivity() == Discrete((5.0, -1.0), (0.1, 0.9)).truncated_nonpositivity()


FAR = Constant(-10.0)


@pytest.mark.parametrize(
    ("law", "holds"),
    [
        (StudentT(2.0, loc=-1.0), True),
        (Stable(1.5, beta=-1.0), True),
        (Stable(1.5, beta=-0.4, loc=-0.1), True),
        (Stable(1.5, beta=0.4, loc=-0.1), False),
        (Mixture((Pareto(2.5), -Pareto(1.5)), (0.5, 0.5)), True),
        # equal indices: the heavier constant decides
        (Mixture((Pareto(1.5, 0.5), -Pareto(1.5, 1.0), FAR), (0.3, 0.3, 0.4)), True),
        (Mixture((Pareto(1.5, 1.0), -Pareto(1.5, 0.5), FAR), (0.3, 0.3, 0.4)), False),
        # both tails and the mean are negative, and the two laws differ only for some M between 1 and 5
        (Mixture((Gaussian(5.0, 0.1), Gaussian(-1.0, 0.1), -Pareto(1.5, 100.0)), (0.1, 0.899, 0.001)), False),
        (Mixture((Gaussian(5.0, 0.1), Gaussian(-1.0, 0.1), -Pareto(1.5, 100.0)), (0.1, 0.898, 0.002)), True),
        (Mixture((Lomax(1.5), -Lomax(1.5)), (0.5, 0.5)), True),
        (2.9 - Pareto(1.5), True),
    ],
    ids=repr,
)
def test_numeric_verdicts_both_ways(law: Law, holds: bool) -> None:
    verdict = law.truncated_nonpositivity()
    assert verdict.holds is holds
    assert verdict.how == "numeric"
    if not holds:
        assert verdict.worst is not None
        assert verdict.worst > 0.0
        assert law.partial_mean(verdict.worst) > 0.0


def test_about_the_mean_a_left_skewed_law_holds_and_a_right_skewed_one_fails() -> None:
    # M (f(mean - M) - f(mean + M)) is the derivative in M: negative near the bulk, then positive up to 0 at infinity
    assert (-Pareto(1.5)).truncated_nonpositivity(about=-3.0).holds is True
    assert Pareto(1.5).truncated_nonpositivity(about=3.0).holds is False
