"""The advice: each rule, in its order, on rewards and on problems; and what is refused."""

import math

import numpy as np
import polars as pl
import pytest

import robandit as rb
from diagnostics.samples_of import LEFT, RIGHT, SYMMETRIC, drawn
from robandit.diagnostics.recommend import law_median
from robandit.errors import InvalidInput, MeanUndefined

ADAPTIVE = type(rb.recommend([1.0]).policy)
GOOD = "left-skewed or symmetric"


@pytest.mark.parametrize("name", LEFT | SYMMETRIC)
def test_left_skewed_and_symmetric_rewards(name):
    for shift in (0.0, 50.0):
        found = rb.recommend(drawn(name, 2000) + shift)
        assert (type(found.policy), found.case, found.arm) == (ADAPTIVE, GOOD, None)


@pytest.mark.parametrize("name", RIGHT)
def test_right_skewed_rewards(name):
    found = rb.recommend(drawn(name, 2000))
    assert (found.policy, found.case) == (rb.ForceMoM(), "right-skewed")
    text = str(found).replace("\n    ", " ")
    assert "contradicted about the median" in text
    assert "min(reward, " in text
    assert ("bounds=(low, high)" in text) == (name == "clicks")


def test_the_leading_arm_decides():
    rng = np.random.default_rng(0)
    revenue, cost = rng.pareto(1.5, 1000), -rng.pareto(1.5, 1000)
    assert rb.recommend({"a": revenue, "b": cost}).case == "right-skewed"
    found = rb.recommend({"a": revenue, "b": cost + 100})
    assert (found.case, found.arm) == (GOOD, "b")
    assert "of 'b'" in found.reasons[0]


def test_few_rewards_are_called_few():
    found = rb.recommend({"a": [1.0, 2.0], "b": [0.0]})
    assert (type(found.policy), found.case, found.arm) == (ADAPTIVE, "few rewards", "a")
    assert "only 2 rewards of 'a'" in found.reasons[0]
    assert rb.recommend(drawn("gaussian", 255)).case == "few rewards"
    assert rb.recommend(drawn("gaussian", 256)).case == GOOD
    assert rb.recommend((drawn("clicks", 250) > 0) * 1).case == "right-skewed", "few may be enough"


def test_known_moments_come_first():
    found = rb.recommend(drawn("pareto_1.5", 500), eps=0.4, u=30.0, bounds=(0, 1e9))
    assert (found.policy, found.case) == (rb.KLinfUCB(eps=0.4, u=30.0), "known moments")
    assert "within u" in str(found)
    assert "ABOVE u" in str(rb.recommend([3.0, 4.0], eps=1, u=2))
    problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    assert rb.recommend(problem, eps=np.float64(0.4), u=20).policy == rb.KLinfUCB(eps=0.4, u=20.0)
    with pytest.raises(InvalidInput, match=r"u = 2 is too small: this problem has a moment E\|X\|\^1.4 of 8"):
        rb.recommend(problem, eps=0.4, u=2.0)


def test_bounded_rewards_need_no_robust_policy():
    found = rb.recommend(drawn("clicks", 300), bounds=(0, 1))
    assert (found.policy, found.case) == (rb.UCBV(range=1.0), "bounded")
    assert "UCB1(scale=1)" in str(found)
    assert rb.recommend(rb.problems.bernoulli(means=[0.1, 0.4])).policy == rb.UCBV(range=1.0)
    assert rb.recommend(rb.problems.bernoulli(means=[0.1, 0.4]), bounds=(0, 2)).policy == rb.UCBV(range=2.0)
    assert rb.recommend([2, 2, 2], bounds=(0, 4)).case == "bounded", "no spread says nothing against the bounds"


def test_bounds_that_are_too_wide_to_help_are_left_aside():
    x = drawn("gaussian", 1000)
    assert rb.recommend(x, bounds=(-15, 15)).case == "bounded"
    found = rb.recommend(x, bounds=(-1e6, 1e6))
    assert found.case == GOOD
    assert "too wide to help" in found.reasons[0]
    rare = rb.Problem([rb.laws.Discrete(values=[0.0, -1e4], probabilities=[0.9999, 0.0001]), rb.laws.Constant(-5.0)])
    assert rb.recommend(rare).case == GOOD


@pytest.mark.parametrize(
    ("problem", "case", "says"),
    [
        (rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5), GOOD, "about its median -0.5291 holds"),
        (rb.problems.pareto(means=[1.0, 2.0], tail=1.5), "right-skewed", "about its median 1.058"),
        (rb.problems.student_t(means=[0.0, 7.0], dof=1.5), GOOD, "median 7 holds"),
        (rb.Problem([-rb.laws.LogNormal(mu=0.0, sigma=1.0), rb.laws.Constant(-9.0)]), GOOD, "median -1 holds"),
        (rb.Problem([rb.laws.LogNormal(mu=0.0, sigma=1.0), rb.laws.Constant(-9.0)]), "right-skewed", "median 1"),
    ],
    ids=str,
)
def test_problems_are_judged_by_their_laws(problem, case, says):
    found = rb.recommend(problem)
    assert found.case == case
    assert says in str(found).replace("\n    ", " ")
    assert found == rb.recommend(problem)


def test_one_of_several_best_arms_suffices():
    law = rb.laws.LogNormal(mu=0.0, sigma=1.0)
    both = rb.Problem([law, -law + 2.0 * law.mean])
    assert both.best_arms == (0, 1)
    found = rb.recommend(both)
    assert (found.case, found.arm) == (GOOD, "1")


@pytest.mark.parametrize(
    ("law", "median"),
    [
        (rb.laws.Pareto(tail=2.0), math.sqrt(2.0)),
        (-rb.laws.Pareto(tail=2.0) * 1e6, -1e6 * math.sqrt(2.0)),
        (rb.laws.LogNormal(mu=20.0, sigma=2.0), math.exp(20.0)),
        (-rb.laws.LogNormal(mu=-20.0, sigma=2.0), -math.exp(-20.0)),
        (rb.laws.Discrete(values=[0.1, 0.3, 7.0], probabilities=[0.25, 0.5, 0.25]), 0.3),
        (rb.laws.Bernoulli(p=0.2), 0.0),
        (rb.laws.Constant(3.5), 3.5),
        (rb.laws.StudentT(dof=1.5, loc=-4.0), -4.0),
    ],
    ids=str,
)
def test_medians_of_laws(law, median):
    assert law_median(law) == pytest.approx(median, rel=1e-12)


def test_reads_well():
    lines = str(rb.recommend(drawn("pareto_1.5", 2000))).splitlines()
    assert lines[0] == "Take ForceMoM (right-skewed):"
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("  - The rewards are right-skewed: ")


def test_every_kind_of_column_is_taken():
    x = drawn("lognormal", 400)
    for same in (x, x.tolist(), tuple(x), pl.Series(x), iter(x.tolist()), x.astype(object), (v for v in x)):
        assert rb.recommend(same) == rb.recommend({None: x})


@pytest.mark.parametrize(
    ("given", "more", "match"),
    [
        ([], {}, "rewards is empty"),
        ({}, {}, "empty mapping"),
        ({"a": [1.0], "b": []}, {}, "the rewards of 'b' is empty"),
        ({"a": [1.0, math.nan]}, {}, "the rewards of 'a' has nan at position 1"),
        ([1.0, math.inf, -math.inf], {}, r"rewards has inf at position 1 \(2 such"),
        (["x"], {}, "rewards is not an array of numbers"),
        ([None, 1.0], {}, "rewards"),
        ("text", {}, "rewards is the text 'text'"),
        (7, {}, "rewards is not an array of numbers"),
        ([[1.0, 2.0]], {}, "as a dict"),
        (rb.laws.Pareto(tail=2.0), {}, "is one law: pass a Problem"),
        ([1.0], {"eps": 0.5}, "eps = 0.5 and u = None: give both"),
        ([1.0], {"u": 0.5}, "give both"),
        ([1.0], {"eps": 2.0, "u": 1.0}, "eps = 2.0 must be"),
        ([1.0], {"eps": 1.0, "u": -1.0}, "u = -1.0 must be"),
        ([1.0], {"bounds": (1, 0)}, r"bounds = \(1, 0\).*smaller one first"),
        ([1.0], {"bounds": (0, math.inf)}, "finite"),
        ([1.0], {"bounds": 3}, "two numbers"),
        ([1.0], {"bounds": ("a", "b")}, "two numbers"),
        ({"a": [0.5, 3.0]}, {"bounds": (0, 1)}, "rewards of 'a' have 3 at position 1"),
        (rb.problems.pareto(means=[1.0, 2.0], tail=1.5), {"bounds": (0, 1)}, "reach from"),
    ],
    ids=repr,
)
def test_refusals(given, more, match):
    with pytest.raises(InvalidInput, match=match):
        rb.recommend(given, **more)


def test_a_problem_needs_means():
    with pytest.raises(MeanUndefined):
        rb.recommend(rb.Problem([rb.laws.Pareto(tail=0.9), rb.laws.Constant(0.0)]))
