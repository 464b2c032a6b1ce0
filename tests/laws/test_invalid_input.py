"""Invalid parameters of laws: each is rejected by its name and the rule that it breaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import assert_invalid, raises
from robandit.errors import InvalidInput, MeanUndefined
from robandit.laws import (
    Affine,
    Bernoulli,
    Burr,
    Cauchy,
    Constant,
    Discrete,
    Empirical,
    Frechet,
    Gaussian,
    LogNormal,
    Lomax,
    Mixture,
    Negated,
    Pareto,
    Stable,
    StudentT,
    Weibull,
    Weighted,
    ZeroInflated,
    scaled_to_mean,
    tabulate,
    two_point,
)

BAD_POSITIVE = [0.0, -1.0, math.nan, math.inf, -math.inf, "2", None, True]
BAD_FINITE = [math.nan, math.inf, -math.inf, "2", None, True]


@cases("value", BAD_POSITIVE)
@cases(
    ("make", "name"),
    [
        (lambda v: Pareto(v), "tail"),
        (lambda v: Pareto(1.5, v), "scale"),
        (lambda v: Lomax(v), "tail"),
        (lambda v: Lomax(1.5, v), "scale"),
        (lambda v: StudentT(v), "dof"),
        (lambda v: StudentT(2.0, 0.0, v), "scale"),
        (lambda v: Stable(1.5, 0.0, 0.0, v), "scale"),
        (lambda v: Frechet(v), "tail"),
        (lambda v: Frechet(1.5, v), "scale"),
        (lambda v: Weibull(v), "shape"),
        (lambda v: Weibull(1.5, v), "scale"),
        (lambda v: LogNormal(0.0, v), "sigma"),
        (lambda v: Burr(v, 1.0), "c"),
        (lambda v: Burr(1.0, v), "k"),
        (lambda v: Burr(1.0, 2.0, v), "scale"),
        (lambda v: Cauchy(0.0, v), "scale"),
        (lambda v: Gaussian(0.0, v), "sd"),
    ],
)
def test_parameters_that_must_be_positive(make: Callable[[Any], Any], name: str, value: Any) -> None:
    assert_invalid(lambda: make(value), name, "a finite number >")  # for Weibull's shape: >= 0.01


@cases("value", BAD_FINITE)
@cases(
    ("make", "name"),
    [
        (lambda v: StudentT(2.0, v), "loc"),
        (lambda v: Stable(1.5, 0.0, v), "loc"),
        (lambda v: Stable(v), "alpha"),
        (lambda v: Stable(1.5, v), "beta"),
        (lambda v: LogNormal(v), "mu"),
        (lambda v: Cauchy(v), "loc"),
        (lambda v: Gaussian(v), "mean"),
        (lambda v: Bernoulli(v), "p"),
        (lambda v: Constant(v), "value"),
        (lambda v: Affine(Gaussian(), v), "loc"),
        (lambda v: Affine(Gaussian(), 0.0, v), "scale"),
        (lambda v: ZeroInflated(Gaussian(), v), "zero_probability"),
        (lambda v: Gaussian().absolute_moment(v), "order"),
        (lambda v: Gaussian().absolute_moment(1.0, v), "about"),
        (lambda v: Cauchy().central_moment(v), "order"),
        (lambda v: Pareto(0.5).central_moment(v), "order"),
        (lambda v: Gaussian().partial_mean(v), "m"),
        (lambda v: Gaussian().partial_mean(1.0, v), "about"),
        (lambda v: Gaussian().truncated_nonpositivity(v), "about"),
        (lambda v: scaled_to_mean(Pareto(1.5), v), "mean"),
        (lambda v: Gaussian() - v, "shift"),
    ],
)
def test_parameters_that_must_be_finite(make: Callable[[Any], Any], name: str, value: Any) -> None:
    assert_invalid(lambda: make(value), name, "a finite number")


TEXT = "an array of numbers"


@cases(
    ("make", "parameter", "rule"),
    [
        (lambda: Stable(1.0), "alpha", "a finite number > 1 and <= 2"),
        (lambda: Stable(2.1), "alpha", "a finite number > 1 and <= 2"),
        (lambda: Stable(1.5, 1.1), "beta", "a finite number >= -1 and <= 1"),
        (lambda: Bernoulli(-0.1), "p", "a finite number >= 0 and <= 1"),
        (lambda: Bernoulli(1.1), "p", "a finite number >= 0 and <= 1"),
        (lambda: ZeroInflated(Gaussian(), 1.5), "zero_probability", "<= 1"),
        (lambda: two_point(0.0, 1.0, 1.5), "high_probability", "<= 1"),
        (lambda: LogNormal(601.0), "mu", "<= 600"),
        (lambda: LogNormal(-601.0), "mu", ">= -600"),
        (lambda: LogNormal(500.0, 30.0), "sigma", "mu + sigma^2/2 <= 700 (mu = 500.0)"),
        (lambda: LogNormal(0.0, 1e308), "sigma", "mu + sigma^2/2 <= 700"),
        (lambda: Weibull(0.009), "shape", "a finite number >= 0.01"),
        (lambda: Discrete((), ()), "values", "at least one number"),
        (lambda: Discrete("12", (0.5, 0.5)), "values", "a sequence of numbers"),
        (lambda: Discrete(1.0, (1.0,)), "values", "a sequence of numbers"),
        (lambda: Discrete({1.0, 2.0}, (0.5, 0.5)), "values", "a sequence of numbers"),
        (lambda: Discrete(np.array(1.0), (1.0,)), "values", "a sequence of numbers"),
        (lambda: Discrete((1.0, math.nan), (0.5, 0.5)), "values[1]", "a finite number"),
        (lambda: Discrete((1.0, 1.0), (0.5, 0.5)), "values", "distinct values, but 1.0 occurs more than once"),
        (lambda: Discrete((1.0, 2.0), (0.5,)), "probabilities", "2 probabilities, one for each item"),
        (lambda: Discrete((1.0, 2.0), (0.5, 0.6)), "probabilities", "add up to 1, not to 1.1"),
        (lambda: Discrete((1.0, 2.0), (1.5, -0.5)), "probabilities[1]", "not negative"),
        (lambda: Mixture((), ()), "laws", "at least one law"),
        (lambda: Mixture(Gaussian(), (1.0,)), "laws", "a sequence of laws"),
        (lambda: Mixture(1.0, (1.0,)), "laws", "a sequence of laws"),
        (lambda: Mixture((Gaussian(), 1.0), (0.5, 0.5)), "laws[1]", "a law"),
        (lambda: Mixture((Gaussian(),), (0.9,)), "weights", "add up to 1, not to 0.9"),
        (lambda: Negated(1.0), "law", "a law"),
        (lambda: Affine(1.0), "law", "a law"),
        (lambda: ZeroInflated(1.0, 0.5), "law", "a law"),
        (lambda: Affine(Gaussian(), 1.0, 0.0), "scale", "other than 0"),
        (lambda: Empirical([]), "data", "one-dimensional and not empty (its shape is (0,))"),
        (lambda: Empirical([[1.0]]), "data", "one-dimensional and not empty (its shape is (1, 1))"),
        (lambda: Empirical([1.0, math.nan]), "data[1]", "a finite number"),
        (lambda: Empirical([math.inf]), "data[0]", "a finite number"),
        (lambda: Empirical(["a"]), "data", TEXT),
        (lambda: Empirical([10**400]), "data", TEXT),
        (lambda: Empirical(np.array(["2013-01-01"], dtype="M8[D]")), "data", "its type is datetime64"),
        (lambda: Weighted([1.0], [1.0, 2.0]), "weights", "1 numbers, one for each value"),
        (lambda: Weighted([1.0, 2.0], [1.0, 0.0]), "weights[1]", "a number > 0"),
        (lambda: Weighted([1.0, 2.0], [1.0, math.nan]), "weights[1]", "a finite number"),
        (lambda: Weighted([1.0, 2.0], [1e308, 1e308]), "weights", "a finite sum"),
        (lambda: Gaussian(10**400), "mean", "a finite number"),
        (lambda: Gaussian().cdf("1"), "x", TEXT),
        (lambda: Stable(1.5).cdf([1.0, None]), "x", TEXT),
        (lambda: Bernoulli(0.5).cdf(np.datetime64("2013-01-01")), "x", TEXT),
        (lambda: Gaussian().absolute_moment(-1.0), "order", "a finite number >= 0"),
        (lambda: Gaussian().central_moment(-1.0), "order", "a finite number >= 0"),
        (lambda: Cauchy().central_moment(-1.0), "order", "a finite number >= 0"),
        (lambda: Gaussian().partial_mean(-1.0), "m", "a finite number >= 0"),
        (lambda: Gaussian().sample(-1, 0), "size", "an integer from 0 to 2^53"),
        (lambda: Gaussian().sample(1.5, 0), "size", "an integer"),
        (lambda: Gaussian().sample(True, 0), "size", "an integer"),
        (lambda: Gaussian().sample(10**400, 0), "size", "to 2^53"),
        (lambda: Gaussian().sample(10**5000, seed=0), "size", "to 2^53"),
        (lambda: Gaussian().sample(1, -1), "seed", "an integer >= 0"),
        (lambda: Gaussian().sample(1, None), "seed", "an integer >= 0"),
        (lambda: Gaussian().sample(1, True), "seed", "an integer >= 0"),
        (lambda: tabulate([]), "laws", "at least one law"),
        (lambda: tabulate(1.0), "laws", "a sequence of laws"),
        (lambda: tabulate([1.0]), "laws[0]", "a law"),
        (lambda: scaled_to_mean(1.0, 2.0), "law", "a law"),
        (lambda: scaled_to_mean(Cauchy(), 1.0), "law", "a law with a finite mean"),
    ],
)
def test_errors_carry_the_parameter_and_the_rule(make: Callable[[], Any], parameter: str, rule: str) -> None:
    assert_invalid(make, parameter, rule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Affine(Gaussian(), 1.0, 0.0), r"scale = 0\.0 must be .*; for a constant use Constant\(loc\)"),
        (lambda: Negated(1.0), r"law = 1\.0 must be a law; wrap a plain number as Constant\(number\)"),
        (lambda: Discrete({1.0, 3.0}, [0.25, 0.75]), "pass a list or a tuple"),
        (lambda: Empirical([1.0, 3.0]).absolute_moment(1e4), r"E\|X - 0\.0\|\^10000\.0 of .* is finite but overflows"),
        (lambda: scaled_to_mean(Gaussian(), 1.0), "a law with mean 0.0 cannot be scaled to mean 1.0"),
        (lambda: scaled_to_mean(Pareto(1.5), 0.0), "cannot be scaled to mean 0.0"),
        (lambda: Gaussian().sample(10**5000, seed=0), "size = a value that is too large to print must be"),
    ],
)
def test_messages_name_the_way_out(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_law_without_a_mean_cannot_be_scaled_to_one() -> None:
    with raises(MeanUndefined, parameter="law", rule="a law with a finite mean"):
        scaled_to_mean(Cauchy(), 1.0)


def test_integers_become_floats() -> None:
    assert Pareto(2) == Pareto(2.0)
    assert repr(Pareto(2)) == "Pareto(tail=2.0, scale=1.0)"


@pytest.mark.parametrize(
    "law", [Empirical([1.0, 2.0]), -Bernoulli(0.5), Mixture((Constant(0.0), Gaussian()), (0.5, 0.5))], ids=repr
)
def test_a_cdf_at_nan_is_nan(law: Any) -> None:
    low, middle, high = law.cdf([-math.inf, math.nan, math.inf])
    assert math.isnan(middle)
    assert (low, high) == (0.0, 1.0)


@pytest.mark.parametrize("law", [Gaussian(), StudentT(2.0), Mixture((Pareto(1.5), Gaussian()), (0.5, 0.5))], ids=repr)
def test_moments_about_a_point_next_to_the_centre(law: Any) -> None:
    # Half of the smallest double is 0: an interval of length 0, whose log is undefined.
    assert law.absolute_moment(1.2, 5e-324) == pytest.approx(law.absolute_moment(1.2), rel=1e-11)
    assert Gaussian(5e-324).truncated_nonpositivity().how == "numeric"


@pytest.mark.parametrize(("law", "part"), [(Pareto(1.5), 3.0), (Lomax(1.5), 3.0)], ids=["Pareto", "Lomax"])
def test_partial_means_at_the_largest_doubles(law: Any, part: float) -> None:
    assert law.partial_mean(1e308) == pytest.approx(part * 1e308**-0.5, rel=1e-12)
    assert law.partial_mean(1.7e308) == pytest.approx(part * 1.7e308**-0.5, rel=1e-12)


def test_views_of_a_dict_are_ordered() -> None:
    shares = {1.0: 0.25, 3.0: 0.75}
    assert Discrete(shares.keys(), shares.values()) == Discrete([1.0, 3.0], [0.25, 0.75])
