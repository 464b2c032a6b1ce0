from __future__ import annotations

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

import robandit.laws
from helpers.cases import cases
from helpers.invalid import assert_invalid
from helpers.law_examples import LAWS
from robandit.errors import InvalidInput
from robandit.laws import (
    Affine,
    Bernoulli,
    Constant,
    Discrete,
    Empirical,
    Gaussian,
    Law,
    Mixture,
    Negated,
    Pareto,
    StudentT,
    ZeroInflated,
)
from robandit.laws.base import known_laws


def test_operators() -> None:
    law = Pareto(1.5)
    assert -law == Negated(law)
    turned = -law
    assert -turned == law
    assert law + 2 == Affine(law, 2.0, 1.0) == 2 + law
    assert law - 2 == Affine(law, -2.0, 1.0)
    assert 2 - law == Affine(law, 2.0, -1.0)
    assert law * 3 == Affine(law, 0.0, 3.0) == 3 * law


def test_tails_change_sides() -> None:
    law = Mixture((Pareto(1.5), -Pareto(2.5)), (0.5, 0.5))
    assert (law.left_tail, law.right_tail, law.tail_index) == (2.5, 1.5, 1.5)
    turned = 1.0 - law
    assert (turned.left_tail, turned.right_tail) == (1.5, 2.5)
    assert (-Pareto(1.5)).left_tail == 1.5
    assert (-Pareto(1.5)).right_tail == math.inf


def test_a_mixture_is_a_weighted_sum() -> None:
    law = Mixture((Gaussian(1.0, 2.0), -Pareto(2.5)), (0.25, 0.75))
    assert law.mean == pytest.approx(0.25 - 0.75 * 5.0 / 3.0)
    assert law.absolute_moment(1.5, 1.0) == pytest.approx(
        0.25 * Gaussian(1.0, 2.0).absolute_moment(1.5, 1.0) + 0.75 * (-Pareto(2.5)).absolute_moment(1.5, 1.0)
    )
    assert law.variance == pytest.approx(law.absolute_moment(2.0) - law.mean**2)
    assert law.support == (-math.inf, math.inf)


def test_infinite_means_in_mixtures() -> None:
    assert Mixture((Pareto(1.0), Gaussian()), (0.5, 0.5)).mean == math.inf
    assert math.isnan(Mixture((Pareto(1.0), -Pareto(1.0)), (0.5, 0.5)).mean)
    assert math.isnan(Mixture((Pareto(1.0), -Pareto(1.0)), (0.5, 0.5)).central_moment(1.0))
    # a part that cannot occur does not matter
    assert Mixture((Pareto(1.0), Gaussian(2.0)), (0.0, 1.0)).mean == 2.0


def test_zeros_through_maps() -> None:
    assert ZeroInflated(Pareto(1.5), 0.25).nonzero_probability == 0.75
    assert (ZeroInflated(Pareto(1.5), 0.25) + 1.0).nonzero_probability == 1.0
    assert (-ZeroInflated(Pareto(1.5), 0.25)).nonzero_probability == 0.75
    assert Affine(Discrete((1.0, 2.0), (0.5, 0.5)), loc=-1.0).nonzero_probability == 0.5
    assert Affine(Discrete((1.0, 2.0), (0.25, 0.75)), loc=2.0, scale=-1.0).nonzero_probability == 0.25
    assert Mixture((Constant(0.0), Bernoulli(0.5)), (0.5, 0.5)).nonzero_probability == 0.25


def test_cdf_of_turned_steps() -> None:
    law = -Discrete((0.0, 1.0), (0.25, 0.75))
    np.testing.assert_array_equal(law.cdf([-1.5, -1.0, -0.5, 0.0]), [0.0, 0.75, 0.75, 1.0])
    moved = Affine(Discrete((1.0, 2.0), (0.5, 0.5)), loc=-1.0)
    np.testing.assert_array_equal(moved.cdf([-1e-300, 0.0, 0.5, 1.0]), [0.0, 0.5, 0.5, 1.0])


def test_partial_means_are_strict_at_steps() -> None:
    third = Discrete((0.0, 1.0), (0.5, 0.5)) * (1.0 / 3.0)
    assert third.partial_mean(1.0 / 3.0) == 0.0
    assert third.partial_mean(math.nextafter(1.0 / 3.0, 0.0)) == pytest.approx(1.0 / 6.0)


def test_symmetry() -> None:
    assert (2.0 * StudentT(2.0, loc=1.0) + 3.0).symmetric_about == 5.0
    assert Mixture((Gaussian(1.0), StudentT(2.0, loc=1.0)), (0.5, 0.5)).symmetric_about == 1.0
    assert Mixture((Gaussian(1.0), Gaussian(2.0)), (0.5, 0.5)).symmetric_about is None
    assert Discrete((-1.0, 0.0, 1.0), (0.25, 0.5, 0.25)).symmetric_about == 0.0
    assert Discrete((-1.0, 0.0, 1.0), (0.25, 0.25, 0.5)).symmetric_about is None
    assert Pareto(1.5).symmetric_about is None


def test_empirical_is_compared_by_content_and_read_only() -> None:
    source = np.array([1.0, 2.0])
    law = Empirical(source)
    source[0] = 9.0
    assert law == Empirical([1.0, 2.0])
    assert hash(law) == hash(Empirical([1.0, 2.0]))
    assert Empirical([0.0]) == Empirical([-0.0])
    assert hash(Empirical([0.0])) == hash(Empirical([-0.0]))
    assert law != Empirical([2.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        law.data[0] = 3.0
    assert not pickle.loads(pickle.dumps(law)).data.flags.writeable
    assert pickle.loads(pickle.dumps(law)) == law
    assert "1000 values" in repr(Empirical(np.arange(1000.0)))


@cases("law", LAWS)
def test_laws_are_immutable_values(law: Law) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.scale = 2.0  # type: ignore[attr-defined]
    assert len({law, Law.from_dict(json.loads(json.dumps(law.to_dict())))}) == 1


def test_json_is_strict() -> None:
    with pytest.raises(InvalidInput, match="Pareto has no parameter shape; it has scale, tail"):
        Law.from_dict({"kind": "Pareto", "tail": 1.5, "shape": 1.0})
    with pytest.raises(InvalidInput, match=r"missing 1 required positional argument: 'tail'"):
        Law.from_dict({"kind": "Pareto"})
    assert_invalid(lambda: Law.from_dict({"tail": 1.5}), "law", 'an object with the class name under "kind"')
    assert_invalid(lambda: Law.from_dict({"kind": "Pareto", "tail": "1.5"}), "tail", "a finite number > 0")


@pytest.mark.parametrize("kind", ["Paretto", ["Pareto"], "LocationScale", "PowerTail", None])
def test_unknown_kinds_are_rejected(kind: object) -> None:
    assert_invalid(lambda: Law.from_dict({"kind": kind, "tail": 1.5}), "kind", "one of 'Affine', 'Bernoulli'")


def test_a_law_of_a_user_does_not_replace_one_of_robandit() -> None:
    class Discrete(Gaussian):
        """A subclass of one law with the name of another."""

    assert known_laws()["Discrete"] is robandit.laws.Discrete
    assert Law.from_dict({"kind": "Discrete", "values": [1.0], "probabilities": [1.0]}).mean == 1.0
