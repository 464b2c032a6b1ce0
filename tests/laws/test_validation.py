from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("value", BAD_POSITIVE)
@pytest.mark.parametrize(
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
def test_what_must_be_positive(make: Callable[[Any], Any], name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"^{name} is .*: it must be"):
        make(value)


@pytest.mark.parametrize("value", BAD_FINITE)
@pytest.mark.parametrize(
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
def test_what_must_be_finite(make: Callable[[Any], Any], name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"^{name} is .*: it must be"):
        make(value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stable(0.0), r"alpha is 0.0: it must lie in \(0, 2\]"),
        (lambda: Stable(2.1), r"alpha is 2.1: it must lie in \(0, 2\]"),
        (lambda: Stable(1.5, 1.1), r"beta is 1.1: it must lie in \[-1, 1\]"),
        (lambda: Bernoulli(-0.1), r"p is -0.1: it must lie in \[0, 1\]"),
        (lambda: Bernoulli(1.1), r"p is 1.1: it must lie in \[0, 1\]"),
        (lambda: ZeroInflated(Gaussian(), 1.5), "zero_probability is 1.5"),
        (lambda: two_point(0.0, 1.0, 1.5), "high_probability is 1.5"),
        (lambda: LogNormal(601.0), "beyond a double"),
        (lambda: LogNormal(500.0, 30.0), "beyond a double"),
        (lambda: Weibull(0.009), "shape is 0.009: below 0.01"),
        (lambda: Discrete((), ()), "values is empty"),
        (lambda: Discrete("12", (0.5, 0.5)), "values is '12': it must be a sequence"),
        (lambda: Discrete(1.0, (1.0,)), "values is 1.0: it must be a sequence"),
        (lambda: Discrete((1.0, math.nan), (0.5, 0.5)), r"values\[1\] is nan"),
        (lambda: Discrete((1.0, 1.0), (0.5, 0.5)), "values contain 1.0 more than once"),
        (lambda: Discrete((1.0, 2.0), (0.5,)), "probabilities has 1 entries for 2 items"),
        (lambda: Discrete((1.0, 2.0), (0.5, 0.6)), "probabilities add up to 1.1"),
        (lambda: Discrete((1.0, 2.0), (1.5, -0.5)), r"probabilities\[1\] is -0.5"),
        (lambda: Mixture((), ()), "laws is empty"),
        (lambda: Mixture(Gaussian(), (1.0,)), r"laws is Gaussian.*: it must be a sequence of laws"),
        (lambda: Mixture(1.0, (1.0,)), r"laws is 1\.0: it must be a sequence of laws"),
        (lambda: Mixture((Gaussian(), 1.0), (0.5, 0.5)), r"laws\[1\] is 1.0: it must be a law; wrap"),
        (lambda: Mixture((Gaussian(),), (0.9,)), "weights add up to 0.9"),
        (lambda: Negated(1.0), "law is 1.0: it must be a law"),
        (lambda: Affine(1.0), "law is 1.0: it must be a law"),
        (lambda: ZeroInflated(1.0, 0.5), "law is 1.0: it must be a law"),
        (lambda: Affine(Gaussian(), 1.0, 0.0), r"scale is 0: .*write Constant\(loc\)"),
        (lambda: Empirical([]), r"data has shape \(0,\)"),
        (lambda: Weighted([1.0], [1.0, 2.0]), "weights has 2 entries for 1 values"),
        (lambda: Weighted([1.0, 2.0], [1.0, 0.0]), r"weights\[1\] is 0\.0: a weight must be above 0"),
        (lambda: Weighted([1.0, 2.0], [1.0, math.nan]), r"weights\[1\] is nan"),
        (lambda: Weighted([1.0, 2.0], [1e308, 1e308]), "more than a double holds"),
        (lambda: Empirical([[1.0]]), r"data has shape \(1, 1\)"),
        (lambda: Empirical([1.0, math.nan]), r"data\[1\] is nan: a sample must be finite"),
        (lambda: Empirical([math.inf]), r"data\[0\] is inf"),
        (lambda: Empirical(["a"]), "data is not an array of numbers"),
        (lambda: Empirical([10**400]), "data is not an array of numbers"),
        (lambda: Empirical(np.array(["2013-01-01"], dtype="M8[D]")), "data is not an array of numbers .*datetime64"),
        (lambda: Discrete({1.0, 2.0}, (0.5, 0.5)), r"values is \{1\.0, 2\.0\}: it must be a sequence of numbers"),
        (lambda: Discrete(np.array(1.0), (1.0,)), "values is .*: it must be a sequence of numbers"),
        (lambda: Gaussian(10**400), "mean is beyond a double: it must be a finite number"),
        (lambda: LogNormal(0.0, 1e308), "beyond a double"),
        (lambda: Gaussian().cdf("1"), "x is not an array of numbers"),
        (lambda: Stable(1.5).cdf([1.0, None]), "x is not an array of numbers"),
        (lambda: Bernoulli(0.5).cdf(np.datetime64("2013-01-01")), "x is not an array of numbers"),
        (lambda: Empirical([1.0, 3.0]).absolute_moment(1e4), r"E\|X - 0\.0\|\^10000\.0 of .* is finite but too large"),
        (lambda: Gaussian().absolute_moment(-1.0), "order is -1.0"),
        (lambda: Gaussian().partial_mean(-1.0), "m is -1.0"),
        (lambda: Gaussian().sample(-1, 0), "size is -1"),
        (lambda: Gaussian().sample(1.5, 0), "size is 1.5"),
        (lambda: Gaussian().sample(True, 0), "size is True"),
        (lambda: Gaussian().sample(1, -1), "seed is -1"),
        (lambda: Gaussian().sample(1, None), "seed is None"),
        (lambda: Gaussian().sample(1, True), "seed is True"),
        (lambda: Gaussian().sample(10**400, 0), "below 2\\^60"),
        (lambda: tabulate([]), "laws is empty"),
        (lambda: tabulate(1.0), r"laws is 1\.0: it must be a sequence of laws"),
        (lambda: tabulate([1.0]), r"laws\[0\] is 1\.0: it must be a law"),
        (lambda: scaled_to_mean(1.0, 2.0), r"law is 1\.0: it must be a law"),
        (lambda: scaled_to_mean(Gaussian(), 1.0), "a law with mean 0.0 cannot be scaled"),
        (lambda: scaled_to_mean(Pareto(1.5), 0.0), "cannot be scaled to mean 0.0"),
    ],
)
def test_messages_name_the_value_and_the_rule(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_law_without_a_mean_cannot_be_scaled_to_one() -> None:
    with pytest.raises(MeanUndefined, match=r"Cauchy.* has mean nan"):
        scaled_to_mean(Cauchy(), 1.0)


def test_integers_become_floats() -> None:
    assert Pareto(2) == Pareto(2.0)
    assert repr(Pareto(2)) == "Pareto(tail=2.0, scale=1.0)"


@pytest.mark.parametrize(
    "law", [Empirical([1.0, 2.0]), -Bernoulli(0.5), Mixture((Constant(0.0), Gaussian()), (0.5, 0.5))], ids=repr
)
def test_nothing_is_known_of_a_cdf_at_nan(law: Any) -> None:
    low, unknown, high = law.cdf([-math.inf, math.nan, math.inf])
    assert math.isnan(unknown)
    assert (low, high) == (0.0, 1.0)


@pytest.mark.parametrize("law", [Gaussian(), StudentT(2.0), Mixture((Pareto(1.5), Gaussian()), (0.5, 0.5))], ids=repr)
def test_moments_about_a_point_next_to_the_centre(law: Any) -> None:
    # Half of the smallest double is 0: an interval without length, which has no logarithm.
    assert law.absolute_moment(1.2, 5e-324) == pytest.approx(law.absolute_moment(1.2), rel=1e-11)
    assert Gaussian(5e-324).truncated_nonpositivity().how == "numeric"


@pytest.mark.parametrize(("law", "part"), [(Pareto(1.5), 3.0), (Lomax(1.5), 3.0)], ids=["Pareto", "Lomax"])
def test_the_mean_beyond_the_largest_numbers(law: Any, part: float) -> None:
    assert law.partial_mean(1e308) == pytest.approx(part * 1e308**-0.5, rel=1e-12)
    assert law.partial_mean(1.7e308) == pytest.approx(part * 1.7e308**-0.5, rel=1e-12)


def test_keys_and_values_have_an_order() -> None:
    shares = {1.0: 0.25, 3.0: 0.75}
    assert Discrete(shares.keys(), shares.values()) == Discrete([1.0, 3.0], [0.25, 0.75])
    with pytest.raises(InvalidInput, match="list or a tuple"):
        Discrete({1.0, 3.0}, [0.25, 0.75])


def test_sizes_of_thousands_of_digits_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="size is a value that is too large to be shown"):
        Gaussian(0.0, 1.0).sample(10**5000, seed=0)
