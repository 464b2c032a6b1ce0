"""What the checks of the estimator share, against closed forms and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robandit.intervals import Interval
from robandit.laws import Gaussian, Pareto, ZeroInflated
from robandit.verify.drawn_samples import (
    BLOCK,
    NONPOSITIVE,
    POSITIVE,
    always,
    blocks,
    clipped,
    enough,
    listed,
    orders,
    quantile,
    roots,
    usable,
)
from robandit.verify.interval_arithmetic import largest, smallest, sure
from robandit.verify.statement import Effort

QUICK = Effort(quick=True)


def test_the_laws_satisfy_or_violate_the_assumption_as_named() -> None:
    assert all(law.truncated_nonpositivity().holds for law in NONPOSITIVE.values())
    assert not any(law.truncated_nonpositivity().holds for law in POSITIVE.values())
    rare = NONPOSITIVE["rare loss"]  # eps = 1/2, u = 1, Delta = 0.4
    assert rare.mean == pytest.approx(-0.4)
    assert rare.absolute_moment(1.5) == pytest.approx(1.0)


def test_blocks_hold_all_trials_and_two_different_samples() -> None:
    n = BLOCK // 100
    drawn = list(blocks(Gaussian(mean=0.0, sd=1.0), n, 250, QUICK, 1, 2))
    assert [x.shape for x, _ in drawn] == [(100, n), (100, n), (50, n)]
    x, other = drawn[0]
    # Independent normal values: their correlation has standard deviation 1/sqrt(number).
    for pair in ((x, other), (x, drawn[1][0])):
        assert abs(np.corrcoef(pair[0].ravel(), pair[1].ravel())[0, 1]) < 5.0 / math.sqrt(x.size)


def test_blocks_depend_on_seed_and_key_alone() -> None:
    def first(effort: Effort, *key: int) -> np.ndarray:
        return next(blocks(Pareto(tail=1.5), 8, 4, effort, *key))[0]

    assert (first(QUICK, 1) == first(Effort(), 1)).all()
    assert (first(QUICK, 1) != first(QUICK, 2)).any()
    assert (first(QUICK, 1) != first(Effort(quick=True, seed=1), 1)).any()


def test_without_a_pair_there_is_one_sample() -> None:
    ((x, other),) = blocks(Pareto(tail=1.5), 8, 4, QUICK, 1, pair=False)
    assert x is other or (x == other).all()


def test_roots_are_missing_where_there_are_none() -> None:
    matrix = np.array([[1.0, -1.0, 1.0, 1.0], [0.0, 5.0, 0.0, 0.0], [-2.0, 2.0, 2.0, 0.0]])
    assert roots(matrix, 1.0, c=2.0) == pytest.approx([math.sqrt(2.0), math.nan, 2.0 * math.sqrt(1.5)], nan_ok=True)
    assert np.isnan(roots(matrix, 10.0)).all()


def test_a_missing_root_that_exists_is_lost() -> None:
    matrix = np.array([[1.0, -1.0, 1.0, 1.0], [0.0, 5.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    for missing in (math.nan, math.inf, -math.inf):
        rows, lost = usable(np.array([missing, math.nan, 2.0]), matrix, 1.0, c=2.0)
        assert rows.tolist() == [False, False, True]
        assert lost == 1  # the second row has one value that is not 0, and needs more than two


def test_clipped_by_hand_and_far_from_one() -> None:
    assert clipped(np.array([[1.0, -2.0, 4.0, 0.0]]), np.array([2.0])) == pytest.approx([0.25 + 1.0 + 1.0])
    assert clipped(np.array([[1e300, 1e-300]]), np.array([1e-10])) == pytest.approx([1.0])


def test_enough_is_twice_what_the_root_needs() -> None:
    law = ZeroInflated(Pareto(tail=1.5), 0.5)
    assert enough(law, 40, 2.0, c=5.0)
    assert not enough(law, 39, 2.0, c=5.0)


@pytest.mark.parametrize("tail", [1.2, 1.5, 2.5, 4.0])
def test_orders_of_a_pareto_law(tail: float) -> None:
    eps, u = orders(Pareto(tail=tail))
    assert u == pytest.approx(tail / (tail - 1.0 - eps))
    assert eps.max() == 1.0 if tail > 2.0 else 0.9 * (tail - 1.0) < eps.max() < tail - 1.0


def test_the_least_bound_is_that_of_some_order() -> None:
    every = orders(Pareto(tail=1.5))
    n, level = 100, 3.0
    bounds = [(u * n / level) ** (1.0 / (1.0 + e)) for e, u in zip(*every, strict=True)]
    assert every.threshold(n, level) == pytest.approx(min(bounds))


def test_the_largest_and_smallest_of_intervals() -> None:
    some = [Interval(1.0, 0.0, 5.0), Interval(2.0, 1.5, 3.0)]
    assert largest(some) == (2.0, 1.5, 5.0)
    assert smallest(some) == (1.0, 0.0, 3.0)
    assert sure(3.0) == (3.0, 3.0, 3.0)


def test_always_requires_every_sample() -> None:
    assert always("so it is", [True] * 5).verdict == "holds"
    assert always("so it is", [True] * 4 + [False]).verdict == "fails"


def test_a_quantile_lies_in_its_interval_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    true = -math.log(0.1)  # the 90% quantile of an exponential variable
    seen = [quantile(rng.exponential(size=300), 0.9, confidence=0.9) for _ in range(1000)]
    inside = sum(q.low <= true <= q.high for q in seen)
    # At least 0.9, and not much more: a step at each end is 1/300 * 300 * density ~ 0.08. Tolerance: 4 standard deviations.
    assert 0.9 - 4 * math.sqrt(0.09 / 1000) < inside / 1000 < 0.97 + 4 * math.sqrt(0.03 / 1000)


def test_the_interval_of_an_extreme_quantile_is_infinite() -> None:
    assert quantile([1.0, 2.0, 3.0], 0.99).high == math.inf
    assert quantile([1.0, 2.0, 3.0], 0.01).low == -math.inf


def test_numbers_in_a_sentence() -> None:
    assert listed((64, 512, 4096)) == "64, 512 and 4,096"
    assert listed((0.1, 0.01)) == "0.1 and 0.01"
    assert listed((7,)) == "7"
