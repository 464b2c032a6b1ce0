from __future__ import annotations

import hashlib
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robandit as rb
from helpers.cases import cases
from helpers.invalid import assert_invalid
from robandit.errors import InvalidInput, MeanUndefined, NotApplicable
from robandit.laws import (
    Cauchy,
    Constant,
    Discrete,
    Empirical,
    Gaussian,
    Law,
    LogNormal,
    Pareto,
    StudentT,
    ZeroInflated,
)
from robandit.policies import (
    MARS,
    RUCBLT,
    UCB1,
    UCBV,
    AdaKLProved,
    AdaKLUCB,
    AdaRUCB,
    KLinfUCB,
    NormalUCB,
    Oracle,
    RobustMOSS,
    RobustUCB,
)
from robandit.policies.assumptions import assumption_met
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
from robandit.theory import regret_bound


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
        assert_invalid(lambda bound=bound: bound(eps), "eps", "a number with 0 < eps <= 1")


def test_the_assumption_concerns_the_best_arm() -> None:
    assert negated_pareto([-1.0, -2.0], 1.5).assumption().how == "exact"
    assert negated_pareto([-1.0, -2.0], 1.5).assumption()
    assert not pareto([1.0, 2.0], 1.5).assumption()
    assert student_t([0.0, -1.0], 1.5).assumption()
    assert not student_t([0.5, -1.0], 1.5).assumption()
    # The worse arm may violate it, and one of two best arms is enough.
    assert Problem([Gaussian(0.0), Discrete((5.0, -1.0), (0.1, 0.9))]).assumption()
    assert Problem([Discrete((5.0, -1.0, -2.0), (0.2, 0.6, 0.2)), Gaussian(0.0)]).assumption()


def test_builders_give_the_requested_means() -> None:
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


TWO = [Gaussian(), Gaussian()]


@cases(
    ("laws", "names", "parameter", "rule"),
    [
        ([], None, "laws", "at least 2 laws, one for each arm, not 0"),
        ([Gaussian()], None, "laws", "at least 2 laws, one for each arm, not 1"),
        (Gaussian(), None, "laws", "a sequence of laws, one for each arm"),
        (1.0, None, "laws", "a sequence of laws, one for each arm"),
        ([Gaussian(), 1.0], None, "laws[1]", "a law"),
        (TWO, ["a"], "names", "2 strings, one for each arm"),
        (TWO, ["a", "a"], "names[1]", "a string that differs from the names before it"),
        (TWO, ["a", 1], "names[1]", "a string"),
        (TWO, ["a", ["b"]], "names[1]", "a string"),
        (TWO, "ab", "names", "a sequence of strings, one for each arm"),
        (TWO, 2, "names", "a sequence of strings, one for each arm"),
        (TWO, {"a", "b"}, "names", "a sequence of strings, one for each arm"),
    ],
)
def test_invalid_problems_are_rejected(laws: Any, names: Any, parameter: str, rule: str) -> None:
    assert_invalid(lambda: Problem(laws, names), parameter, rule)


def test_gaps_must_be_finite() -> None:
    with pytest.raises(InvalidInput, match=r"the difference of the means -1e\+308 and 1e\+308 overflows"):
        Problem([Gaussian(1e308), Gaussian(-1e308)])


@pytest.mark.parametrize("law", [Cauchy(), StudentT(1.0), Pareto(1.0), -Pareto(0.5)], ids=repr)
def test_an_arm_without_a_mean_is_rejected_by_name(law: Law) -> None:
    error = assert_invalid(lambda: Problem([Gaussian(), law]), "laws[1]", "a law with a finite mean")
    assert isinstance(error, MeanUndefined)
    assert error.value == law
    assert str(error).endswith(f"not {law.mean}; use a law with a tail index above 1")


@pytest.mark.parametrize(
    ("data", "parameter", "rule"),
    [
        ({}, "problem", 'an object with "laws"'),
        ([], "problem", 'an object with "laws"'),
        ({"laws": "x"}, "laws", "a sequence of laws"),
        ({"laws": [{"kind": "Nope"}]}, "kind", "one of 'Affine'"),
    ],
)
def test_json_is_strict(data: Any, parameter: str, rule: str) -> None:
    assert_invalid(lambda: Problem.from_dict(data), parameter, rule)


def test_unknown_fields_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="has no field arms; it has laws, names and minimize"):
        Problem.from_dict({"laws": [], "arms": 2})


@pytest.mark.parametrize(
    ("make", "parameter", "rule"),
    [
        (lambda: negated_pareto([-1.0, 0.0], 1.5), "means[1]", "a finite number < 0"),
        (lambda: negated_lomax([1.0, -1.0], 1.5), "means[0]", "a finite number < 0"),
        (lambda: pareto([-1.0, 1.0], 1.5), "means[0]", "a finite number > 0"),
        (lambda: negated_pareto([-1.0, -2.0], 1.0), "tail", "a finite number > 1"),
        (lambda: bernoulli([1.5, 0.5]), "p", "a finite number >= 0 and <= 1"),
        (lambda: student_t([0.0, 1.0], dof=1.0), "laws[0]", "a law with a finite mean"),
        (lambda: gaussian(np.array([0.0, np.nan])), "means[1]", "a finite number"),
    ],
)
def test_builders_reject_parameters_outside_their_family(make: Any, parameter: str, rule: str) -> None:
    assert_invalid(make, parameter, rule)


# --- costs that are minimised -----------------------------------------------------------------------------------------

SHARED = [
    [Pareto(1.5), Gaussian(5.0), ZeroInflated(LogNormal(0.0, 1.5), 0.4)],
    [Pareto(2.2, 1.0), Pareto(2.2, 1.5)],
    [-Pareto(1.5), -Pareto(1.5), Gaussian(-3.0)],
    [Gaussian(0.0, 2.0), StudentT(2.5, 0.0), Constant(0.0)],
    [Discrete((5.0, -1.0), (0.1, 0.9)), Empirical([3.0, 0.0, 0.0, -2.0])],
]


ASSUMING = (AdaRUCB(), AdaKLProved(), AdaKLUCB(), UCB1(), NormalUCB(), MARS())


def numbers_of(problem: Problem) -> dict[str, Any]:
    """Return everything that does not depend on the sign in which the laws are given."""
    eps = min(1.0, 0.9 * (problem.tail_index - 1.0))
    table = problem.tabulate()
    return {
        "gaps": problem.gaps.tolist(),
        "counted gaps": problem.counted_gaps.tolist(),
        "best": (problem.best_arm, problem.best_arms, problem.arms, problem.names),
        "moments": (problem.u(eps), problem.v(eps), problem.tail_index),
        "assumption": problem.assumption(),
        "reward laws": problem.reward_laws,
        "table": [np.asarray(part).tobytes() for part in table],
        "informed": [RobustMOSS().informed_by(problem), Oracle().informed_by(problem), UCBV().informed_by(problem)],
        "met": [assumption_met(policy, problem) for policy in ASSUMING],
    }


@pytest.mark.parametrize("laws", SHARED, ids=str)
def test_a_minimised_problem_is_the_negated_one_in_another_sign(laws: list[Law]) -> None:
    costs, rewards = Problem(laws, minimize=True), Problem([-law for law in laws])
    assert numbers_of(costs) == numbers_of(rewards)
    assert costs.laws == tuple(laws)
    assert costs.means.tolist() == [-mean for mean in rewards.means.tolist()]
    assert costs != rewards
    assert costs != Problem(laws)
    assert len({costs.fingerprint, rewards.fingerprint, Problem(laws).fingerprint}) == 3
    assert numbers_of(costs)["gaps"] != numbers_of(Problem(laws))["gaps"] or len(costs.best_arms) == costs.arms


@pytest.mark.parametrize("laws", SHARED, ids=str)
def test_a_minimised_problem_gives_the_same_bounds(laws: list[Law]) -> None:
    costs, rewards = Problem(laws, minimize=True), Problem([-law for law in laws])
    for policy in (AdaRUCB(), RobustUCB(), UCB1(), NormalUCB(), KLinfUCB(), RUCBLT()):
        answers = []
        for problem in (costs, rewards):
            try:
                bound = regret_bound(policy, problem, 1000)
                answers.append((bound.policy, bound.eps, bound.moment, bound.met, bound.bounds))
            except NotApplicable as error:
                answers.append(type(error))
        assert answers[0] == answers[1]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6),
    st.floats(0.1, 10.0),
)
def test_signs_of_any_means(means: list[float], sd: float) -> None:
    costs, rewards = gaussian(means, sd, minimize=True), gaussian([-mean for mean in means], sd)
    assert costs.gaps.tolist() == rewards.gaps.tolist()
    assert costs.means.tolist() == means
    assert means[costs.best_arm] == min(means)
    assert costs.best_arms == rewards.best_arms
    assert Problem.from_dict(json.loads(json.dumps(costs.to_dict()))) == costs


def test_a_minimised_problem_is_copied_and_written_whole() -> None:
    costs = pareto([1.0, 1.5], 1.5, minimize=True)
    assert costs.to_dict()["minimize"] is True
    again = Problem.from_dict(json.loads(json.dumps(costs.to_dict())))
    for same in (again, pickle.loads(pickle.dumps(costs)), eval(repr(costs), {"Problem": Problem, "Pareto": Pareto})):
        assert same == costs
        assert hash(same) == hash(costs)
        assert same.minimize
        assert same.best_arm == 0
    assert Problem.from_dict({"laws": costs.to_dict()["laws"], "minimize": False}) == pareto([1.0, 1.5], 1.5)


def test_a_problem_that_is_not_minimised_keeps_its_fingerprint() -> None:
    problem = gaussian([1.0, 0.0], minimize=False)
    assert set(problem.to_dict()) == {"laws", "names"}
    text = json.dumps(problem.to_dict(), sort_keys=True).encode()
    assert problem.fingerprint == hashlib.sha256(text).hexdigest()
    assert problem.reward_laws is problem.laws


@pytest.mark.parametrize(
    ("make", "best"),
    [
        (lambda: pareto([1.0, 1.5], 1.5, minimize=True), 0),
        (lambda: student_t([1.0, 0.5], 1.5, minimize=True), 1),
        (lambda: stable([1.0, 0.5], 1.5, beta=1.0, minimize=True), 1),
        (lambda: gaussian([1.0, 0.5], minimize=True), 1),
        (lambda: bernoulli([0.25, 0.5], minimize=True), 0),
    ],
)
def test_builders_of_costs(make: Any, best: int) -> None:
    problem = make()
    assert problem.minimize
    assert problem.best_arm == best
    assert problem.assumption()


def test_pareto_costs_are_negated_pareto_rewards() -> None:
    assert pareto([1.0, 1.5], 1.5, minimize=True).reward_laws == negated_pareto([-1.0, -1.5], 1.5).laws


@pytest.mark.parametrize("value", [1, 0, "yes", None, np.array([True])], ids=repr)
def test_minimize_must_be_true_or_false(value: Any) -> None:
    for make in (
        lambda: Problem(TWO, minimize=value),
        lambda: gaussian([0.0, 1.0], minimize=value),
        lambda: Problem.from_dict({"laws": [law.to_dict() for law in TWO], "minimize": value}),
    ):
        assert_invalid(make, "minimize", "True or False")
    assert Problem(TWO, minimize=np.bool_(True)).minimize is True


def test_many_arms_are_judged_and_measured_once(monkeypatch):
    """With 100,000 arms, a quadrature per arm and question takes minutes."""
    from robandit.laws import location_scale
    from robandit.laws.base import Law

    problem = rb.problems.gaussian(means=[-1.0] * 1000)
    judged = []
    verdict = Law.truncated_nonpositivity
    monkeypatch.setattr(Law, "truncated_nonpositivity", lambda law: judged.append(law) or verdict(law))
    assert problem.assumption().holds
    assert len(judged) == 1, "all arms are the best, and have the same law"

    quadratures = []
    moment = location_scale.moment
    monkeypatch.setattr(location_scale, "moment", lambda *args: quadratures.append(1) or moment(*args))
    scaled = rb.problems.negated_pareto(means=[-1.0 - k / 1000 for k in range(1000)], tail=1.53125)
    expected = max(law.central_moment(1.25) for law in scaled.laws)
    assert len(quadratures) < 30, "the laws differ only in scale"
    assert [scaled.v(0.25), scaled.v(0.25)] == [expected, expected]


def test_a_mixture_of_many_laws_is_tabulated_exactly():
    """The cumulative weights are rounded once, as sums of each prefix would be; those take quadratic time."""
    weights = np.random.default_rng(0).random(300) * 10.0 ** np.random.default_rng(1).integers(-9, 9, 300)
    mixture = rb.laws.Mixture([rb.laws.Constant(float(k)) for k in range(300)], (weights / math.fsum(weights)).tolist())
    parts = [part.weight for part in mixture.components()]
    sums = [math.fsum(parts[: k + 1]) / math.fsum(parts) for k in range(299)]
    assert rb.laws.tabulate([mixture]).par[:, 0].tolist() == [*sums, 1.0]
