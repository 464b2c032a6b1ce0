"""AdaR-UCB's regret bounds, against arithmetic that is written out."""

import math
from typing import Any

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import raises
from robandit.errors import InvalidInput
from robandit.laws import Bernoulli, Constant, Gaussian, Pareto
from robandit.problems import Problem, gaussian, negated_pareto
from robandit.theory.adar_bounds import printed_instance, printed_worst_case, repaired_instance, repaired_worst_case

ALL = (printed_instance, printed_worst_case, repaired_instance, repaired_worst_case)

# Losses of 8 with probability 1/4, of 4 with 3/4, of 10 with 1/2: means -2, -3, -5; at eps = 1 u = 50, at eps = 1/2 u = 15.8.
RARE = Problem([Bernoulli(0.25) * -8.0, Bernoulli(0.75) * -4.0, Bernoulli(0.5) * -10.0])


def test_hand_computed_at_eps_1() -> None:
    # T = 2002: log(T/2) = log 1001 = 6.90875; gaps 1, 3; P(X != 0) 3/4, 1/2.
    log = 6.908754779315221
    first = (120 * 50 / 1 + 24 * 1 / 0.75) * log + 20 * 1
    second = (120 * 50 / 3 + 24 * 3 / 0.5) * log + 20 * 3
    assert printed_instance(RARE, 2002, 1.0) == pytest.approx(first + second, rel=1e-12)
    assert first + second == pytest.approx(56565.979, abs=0.001)

    extra = (24 / 0.75 + 72 / 0.5) * log + 80
    main = 46 * math.sqrt(3 * log) * math.sqrt(50 * 2002)
    assert printed_worst_case(RARE, 2002, 1.0) == pytest.approx(main + extra, rel=1e-12)

    # H = 1001, L_H = 20.72626, c L_H = 120.80, r_H = 121; A = L_H 484 * 50 / gap^2 = 501575.6 and 55730.6
    assert repaired_instance(RARE, 2002, 1.0) == pytest.approx(
        2 * 1 * (501_576 + 121 / 0.75 + 6) + 2 * 3 * (55_731 + 242 + 6), rel=1e-12
    )
    main = 88 * math.sqrt(3 * 20.726264337945665) * math.sqrt(50 * 1001)
    extra = 2 * 1 * (121 / 0.75 + 7) + 2 * 3 * (242 + 7)
    assert repaired_worst_case(RARE, 2002, 1.0) == pytest.approx(main + extra, rel=1e-12)


def test_hand_computed_at_eps_one_half() -> None:
    # p = 3/2, q = 1/3: (u/gap)^2 and (22 u^(2/3) / gap)^3 = 10648 u^2 / gap^3; u = 10^1.5 / 2, so u^2 = 250
    problem = Problem([Constant(-1.0), Bernoulli(0.5) * -10.0])
    log, level = math.log(50.0), 3 * math.log(50.0)  # level 11.736, c level 68.40
    assert printed_instance(problem, 100, 0.5) == pytest.approx((120 * 250 / 16 + 24 * 4 / 0.5) * log + 80, rel=1e-12)
    rounds = math.ceil(level * 10_648 * 250 / 64)
    assert rounds == 488_148  # 488147.2, rounded up
    # 69 / 0.5 = 138 forced rounds are more than the 50 there are
    assert repaired_instance(problem, 100, 0.5) == pytest.approx(2 * 4 * (rounds + 50 + 6), rel=1e-12)
    main = 88 * (2 * level) ** (1 / 3) * 250 ** (1 / 3) * 50 ** (2 / 3)  # u^(2/3) = (u^2)^(1/3)
    assert repaired_worst_case(problem, 100, 0.5) == pytest.approx(main + 2 * 4 * 57, rel=1e-12)


def test_an_odd_horizon_costs_one_gap_at_most() -> None:
    for bound in (repaired_instance, repaired_worst_case):
        assert bound(RARE, 2003, 1.0) - bound(RARE, 2002, 1.0) == pytest.approx(2 * math.sqrt(50), rel=1e-9)


def test_the_smallest_horizon_has_one_round() -> None:
    # H = 1, L_H = 0, r_H = 1: ceil(0) + min(1, 1/P) + 6
    assert repaired_instance(RARE, 2, 1.0) == pytest.approx(2 * 1 * 7 + 2 * 3 * 7)
    assert printed_instance(RARE, 2, 1.0) == 80.0


@cases("bound", ALL)
@cases("eps", [0.2, 0.5, 1.0])
def test_scale(bound, eps: float) -> None:
    """Rewards times s make bounds times s; horizons with the same rounding, and s a power of 2 so that ceil sees the same."""
    assert bound(Problem([law * 4.0 for law in RARE.laws]), 10_001, eps) == pytest.approx(
        4.0 * bound(RARE, 10_001, eps), rel=1e-9
    )


@pytest.mark.parametrize("bound", ALL)
def test_grows_with_the_horizon(bound) -> None:
    values = [bound(RARE, horizon, 0.7) for horizon in (2, 10, 100, 1000, 10**4, 10**6, 10**9)]
    assert np.all(np.diff(values) > 0.0)


@pytest.mark.parametrize("bound", [printed_instance, repaired_instance])
def test_smaller_gaps_cost_more_at_the_same_u(bound) -> None:
    # mean^2 + sd^2 = 16 throughout
    problems = [Problem([Constant(0.0), Gaussian(-g, math.sqrt(16.0 - g * g))]) for g in (2.0, 1.0, 0.5, 0.1)]
    values = [bound(problem, 10**5, 1.0) for problem in problems]
    assert np.all(np.diff(values) > 0.0)


@pytest.mark.parametrize("bound", ALL)
def test_arms_as_good_as_the_best_cost_nothing_of_their_own(bound) -> None:
    assert bound(Problem([Constant(-1.0), Constant(-1.0)]), 100, 1.0) == pytest.approx(
        {
            "printed_worst_case": 46 * math.sqrt(2 * math.log(50) * 100),
            "repaired_worst_case": 88 * math.sqrt(2 * 3 * math.log(50) * 50),
        }.get(bound.__name__, 0.0)
    )


def test_an_arm_that_is_always_zero_is_always_forced() -> None:
    problem = Problem([Gaussian(1.0, 1.0), Constant(0.0)])  # against the assumption, but a bound is only a number
    assert printed_instance(problem, 1000, 1.0) == math.inf
    assert math.isfinite(repaired_instance(problem, 1000, 1.0))


def test_a_bound_that_overflows_is_infinite() -> None:
    assert repaired_instance(gaussian([0.0, -1e-9]), 1000, 0.02) == math.inf


def test_the_constants_follow() -> None:
    """The arithmetic behind 5.6, 22, 6 and 88, for all eps on a fine grid."""
    eps = np.linspace(1e-4, 1.0, 10_001)
    q = eps / (1.0 + eps)
    c = (1.0 + math.sqrt(2.0)) ** 2
    assert math.sqrt(c) - math.sqrt(2.0) == pytest.approx(1.0, rel=1e-15)
    above = math.sqrt(2.0) + 1.0 / 3.0 + (math.sqrt(c) + math.sqrt(2.0)) ** (2.0 * q)
    assert above.max() < 5.6
    fewest = math.floor(c * 3.0 * math.log(2.0)) + 1  # pulls of an arm with a finite index: it has none in round 1
    assert fewest == 13
    for factor, least, most in ((2.0, 22.6, 22.7), (1.5, 21.9, 22.0), (fewest / (fewest - 1.0), 21.1, 21.2)):
        total = 5.6 + math.sqrt(2.0) + 10.0 + math.sqrt(2.0) * 2.0 * math.sqrt(2.0 * factor)
        assert least < total < most
    tau = np.arange(2.0, 1e6)
    assert 2.6 < np.sum(6.0 * (tau - 1.0) / tau**3) + 6.0 / 1e6 < 2.7
    split = (1.0 + eps) * eps**-q
    assert np.all(np.diff(split) > 0.0)
    assert 44.0 * split.max() == pytest.approx(88.0, rel=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_the_worst_case_bound_covers_every_split(eps: float) -> None:
    """min over D of 2 D H + 2 K L 22^(1/q) (u/D)^(1/eps), found by brute force, is below 88 (K L)^q (u H)^(1/p)."""
    u, arms, rounds = 3.0, 7, 5000.0
    p, q, level = 1.0 + eps, eps / (1.0 + eps), 3.0 * math.log(rounds)
    split = np.geomspace(1e-6, 1e6, 200_001)
    cost = 2.0 * split * rounds + 2.0 * arms * level * 22.0 ** (1.0 / q) * (u / split) ** (1.0 / eps)
    ratio = cost.min() / ((arms * level) ** q * (u * rounds) ** (1.0 / p))
    assert ratio == pytest.approx(44.0 * (1.0 + eps) * eps**-q, rel=1e-6)
    assert ratio <= 88.0 * (1.0 + 1e-6)


@pytest.mark.parametrize("bound", ALL)
def test_invalid_arguments(bound) -> None:
    with raises(InvalidInput, parameter="horizon", rule="an integer from 2 to 2^53"):
        bound(RARE, 1, 1.0)
    with raises(InvalidInput, parameter="horizon", rule="an integer from 2 to 2^53"):
        bound(RARE, 10.0, 1.0)
    with raises(InvalidInput, parameter="horizon", rule="an integer from 2 to 2^53"):
        bound(RARE, True, 1.0)
    with raises(InvalidInput, parameter="eps"):
        bound(RARE, 10, 0.0)
    with raises(InvalidInput, parameter="eps", rule="below 0.5, the tail index minus 1"):
        bound(negated_pareto([-1.0, -2.0], tail=1.5), 100, 0.5)
    assert bound(negated_pareto([-1.0, -2.0], tail=1.5), 100, 0.49) > 0.0
    assert bound(Problem([-Pareto(3.0), -Pareto(3.0, 2.0)]), np.int64(100), 1.0) > 0.0


@pytest.mark.parametrize("bound", ALL)
def test_arguments_that_all_four_reject(bound: Any) -> None:
    problem = gaussian([0.0, -1.0])
    for given, message in (
        (([0.0, -1.0], 100, 1.0), "problem = .*make one with Problem"),
        ((problem, 2**53 + 1, 1.0), "from 2 to 2\\^53"),
        ((problem, 10**400, 1.0), "from 2 to 2\\^53"),
        ((problem, 100, math.nan), "eps = nan must be a number with 0 < eps <= 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            bound(*given)
    assert bound(problem, np.int32(100), np.float32(1.0)) == bound(problem, 100, 1.0)
