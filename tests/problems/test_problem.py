from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from robandit.errors import InvalidInput, MeanUndefined
from robandit.laws import Cauchy, Constant, Discrete, Gaussian, Pareto, StudentT
from robandit.problems import (
    Problem,
    bernoulli,
    gaussian,
    negated_lomax,
    negated_pareto,
    pareto,
    stable,
    student_t,
)


def test_means_gaps_and_best_arms() -> None:
    problem = Problem([Gaussian(1.0), Gaussian(3.0), Constant(3.0), -Pareto(1.5)], names=["a", "b", "c", "d"])
    assert problem.arms == 4
    assert problem.means.tolist() == [1.0, 3.0, 3.0, -3.0]
    assert problem.gaps.tolist() == [2.0, 0.0, 0.0, 6.0]
    assert problem.best_arm == 1
    assert problem.best_arms == (1, 2)
    assert problem.tail_index == 1.5
    assert problem.names == ("a", "b", "c", "d")
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0] = 9.0


def test_moment_bounds_by_hand() -> None:
    problem = negated_pareto(means=[-3.0, -6.0], tail=1.5)  # scales 1 and 2
    assert problem.u(0.25) == pytest.approx(2.0**1.25 * 1.5 / 0.25)
    assert problem.u(0.5) == math.inf
    assert problem.v(0.5) == math.inf
    assert gaussian([1.0, 0.0], sd=2.0).u(1.0) == pytest.approx(5.0)
    assert gaussian([1.0, 0.0], sd=2.0).v(1.0) == pytest.approx(4.0)
    assert bernoulli([0.25, 0.5]).u(0.3) == 0.5
    assert problem.v(0.25) <= 2.0**1.25 * problem.u(0.25)


@pytest.mark.parametrize("eps", [0.0, -0.1, 1.1, math.nan, "1"])
def test_eps_is_checked(eps: float) -> None:
    problem = gaussian([0.0, 1.0])
    for bound in (problem.u, problem.v):
        with pytest.raises(InvalidInput, match="eps is"):
            bound(eps)


def test_the_assumption_is_that_of_a_best_arm() -> None:
    assert negated_pareto([-1.0, -2.0], 1.5).assumption().how == "exact"
    assert negated_pareto([-1.0, -2.0], 1.5).assumption()
    assert not pareto([1.0, 2.0], 1.5).assumption()
    assert student_t([0.0, -1.0], 1.5).assumption()
    assert not student_t([0.5, -1.0], 1.5).assumption()
    # the worse arm may break it, and one of two best arms is enough
    assert Problem([Gaussian(0.0), Discrete((5.0, -1.0), (0.1, 0.9))]).assumption()
    assert Problem([Discrete((5.0, -1.0, -2.0), (0.2, 0.6, 0.2)), Gaussian(0.0)]).assumption()


def test_builders_give_the_means_that_were_asked_for() -> None:
    for problem in (
        negated_pareto([-1.0, -1.7], 1.3),
        negated_lomax([-1.0, -1.7], 1.3),
        student_t([-1.0, -1.7], 1.3),
        stable([-1.0, -1.7], 1.3, beta=-1.0),
        gaussian([-1.0, -1.7]),
    ):
        assert problem.means == pytest.approx([-1.0, -1.7])
        assert problem.assumption()
    assert pareto([1.0, 1.7], 1.3).means == pytest.approx([1.0, 1.7])
    assert bernoulli([0.1, 0.7]).means == pytest.approx([0.1, 0.7])


def test_json_round_trip_and_hash() -> None:
    problem = negated_pareto([-1.0, -1.5], 1.5)
    again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
    assert again == problem
    assert hash(again) == hash(problem)
    problem.tabulate()
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert not copy.means.flags.writeable
    assert Problem.from_dict({"laws": problem.to_dict()["laws"]}) == problem
    names = {"Problem": Problem, "Negated": type(problem.laws[0]), "Pareto": Pareto}
    assert eval(repr(problem), names) == problem


def test_the_table_is_made_once() -> None:
    problem = gaussian([0.0, 1.0])
    assert problem.tabulate() is problem.tabulate()
    assert problem.tabulate().start.tolist() == [0, 1, 2]
    assert problem.tabulate().par.flags.writeable  # compiled code is typed for writable arrays


@pytest.mark.parametrize(
    ("laws", "names", "message"),
    [
        ([], None, "laws has 0 entries"),
        ([Gaussian()], None, "laws has 1 entries: a problem needs at least 2 arms"),
        (Gaussian(), None, r"laws is Gaussian.*: it must be a sequence of laws, one for each arm"),
        (1.0, None, r"laws is 1\.0: it must be a sequence of laws"),
        ([Gaussian(1e308), Gaussian(-1e308)], None, "their difference is beyond a double: scale all laws down"),
        ([Gaussian(), 1.0], None, r"laws\[1\] is 1.0: it must be a law"),
        ([Gaussian(), Gaussian()], ["a"], "names has 1 entries for 2 arms"),
        ([Gaussian(), Gaussian()], ["a", "a"], r"names\[1\] is 'a'"),
        ([Gaussian(), Gaussian()], ["a", 1], r"names\[1\] is 1"),
        ([Gaussian(), Gaussian()], "ab", "names is 'ab': it must be a sequence of strings, one for each arm"),
        ([Gaussian(), Gaussian()], 2, "names is 2: it must be a sequence of strings"),
        ([Gaussian(), Gaussian()], {"a", "b"}, "names is .*: it must be a sequence of strings"),
    ],
)
def test_what_is_not_a_problem(laws: object, names: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Problem(laws, names)  # type: ignore[arg-type]


@pytest.mark.parametrize("law", [Cauchy(), StudentT(1.0), Pareto(1.0), -Pareto(0.5)], ids=repr)
def test_an_arm_without_a_mean_is_refused_by_name(law: object) -> None:
    with pytest.raises(MeanUndefined, match=r"arm 1 has the law .*, whose mean is .*tail index above 1"):
        Problem([Gaussian(), law])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "is not a problem"),
        ({"laws": [], "arms": 2}, "has no field arms"),
        ({"laws": "x"}, "laws is 'x'"),
        ({"laws": [{"kind": "Nope"}]}, "'Nope' is not a known law"),
    ],
)
def test_json_is_strict(data: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Problem.from_dict(data)


def test_builders_refuse_means_that_their_family_cannot_have() -> None:
    with pytest.raises(InvalidInput, match=r"means\[1\] is 0.0: this family has means below 0"):
        negated_pareto([-1.0, 0.0], 1.5)
    with pytest.raises(InvalidInput, match=r"means\[0\] is 1.0"):
        negated_lomax([1.0, -1.0], 1.5)
    with pytest.raises(InvalidInput, match="this family has means above 0"):
        pareto([-1.0, 1.0], 1.5)
    with pytest.raises(InvalidInput, match=r"tail is 1\.0: it must be above 1"):
        negated_pareto([-1.0, -2.0], 1.0)
    with pytest.raises(InvalidInput, match=r"p is 1\.5"):
        bernoulli([1.5, 0.5])
    with pytest.raises(MeanUndefined, match="arm 0"):
        student_t([0.0, 1.0], dof=1.0)
    with pytest.raises(InvalidInput, match=r"means\[1\] is nan"):
        gaussian(np.array([0.0, np.nan]))
