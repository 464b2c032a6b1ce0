"""The question whether values are costs: when it is asked, when not, and that it comes before any recommendation."""

import numpy as np
import pytest

import robandit as rb
from helpers.samples_of import drawn, part_of
from robandit.diagnostics.costs import LEAST, QUESTION, has_long_right_tail, sign_question
from robandit.diagnostics.profile import Profile
from robandit.diagnostics.study import study
from robandit.recorded import Recorded

LONG = {
    "log-normal": lambda rng, n: rng.lognormal(3.0, 1.0, n),
    "log-normal with sigma 0.7": lambda rng, n: rng.lognormal(0.0, 0.7, n),
    "Pareto 1.5": lambda rng, n: rng.pareto(1.5, n) + 1.0,
    "Pareto 3": lambda rng, n: rng.pareto(3.0, n) + 1.0,
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "a fixed part and a log-normal one": lambda rng, n: 100.0 + rng.lognormal(0.0, 1.0, n),
    "1 % rounded to 0": lambda rng, n: (rng.random(n) > 0.01) * rng.lognormal(0.0, 1.0, n),
    "2 % time-outs": lambda rng, n: np.where(
        rng.random(n) < 0.02, 30.0 + rng.exponential(50.0, n), rng.normal(10, 1, n)
    ),
}
NOT_LONG = {
    "clicks": lambda rng, n: (rng.random(n) < 0.3) * 1.0,
    "revenue per visitor": lambda rng, n: (rng.random(n) < 0.1) * rng.lognormal(3.0, 1.0, n),
    "ratings": lambda rng, n: rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], n, p=[0.6, 0.2, 0.1, 0.05, 0.05]),
    "scores of 1 to 10": lambda rng, n: np.minimum(10.0, 1.0 + rng.geometric(0.5, n) ** 2),
    "uniform scores": lambda rng, n: rng.random(n) + 1e-9,
    "skewed scores": lambda rng, n: rng.beta(1.0, 3.0, n),
    "normal": lambda rng, n: rng.normal(10.0, 1.0, n),
    "counts": lambda rng, n: rng.poisson(5.0, n) + 1.0,
    "constant": lambda rng, n: np.full(n, 3.0),
    "minus a log-normal": lambda rng, n: 1e3 - rng.lognormal(3.0, 1.0, n),
    "log-normal minus a price": lambda rng, n: rng.lognormal(3.0, 1.0, n) - 10.0,
}


@pytest.mark.parametrize("name", LONG)
def test_positive_values_with_a_long_right_tail_are_asked_about(name):
    rng = np.random.default_rng(0)
    assert [rb.recommend(LONG[name](rng, 2_000)).question for _ in range(20)].count(QUESTION) >= 18


@pytest.mark.parametrize("name", NOT_LONG)
def test_ordinary_rewards_are_not_asked_about(name):
    """At most one of 40 (three of the smallest samples). Exponential values, the negative control, are asked about."""
    rng = np.random.default_rng(0)
    for n in (LEAST, 256, 2_000, 20_000):
        asked = [bool(sign_question([Profile(NOT_LONG[name](rng, n))])) for _ in range(40)]
        assert sum(asked) <= (3 if n == LEAST else 1)


def test_too_few_values_are_not_asked_about():
    x = drawn("pareto_1.5", LEAST)
    assert sign_question([Profile(x)])
    assert not sign_question([Profile(x[:-1])])
    assert not sign_question([Profile(x[:0])])
    assert not sign_question([])


def test_most_arms_must_have_long_tails_and_all_values_must_be_positive():
    """Arms are looked at one by one: arms of different levels are not a long tail."""
    long, short = drawn("lognormal", 500), drawn("gaussian", 500) + 10.0
    assert rb.recommend({"a": long, "b": 2.0 * long, "c": short}).question
    assert not rb.recommend({"a": long, "b": short}).question
    assert not rb.recommend({"a": long, "b": 2.0 * long, "c": [0.0]}).question
    assert not rb.recommend({"a": short, "b": short, "c": 100.0 * short[:30]}).question


def test_costs_are_not_asked_about():
    costs = drawn("lognormal", 500)
    assert rb.recommend(costs, minimize=True).question == ""
    assert rb.recommend(-costs).question == ""
    assert str(rb.recommend(costs, minimize=True)).startswith("Take ")


def test_a_part_of_many_values_knows_its_smallest():
    values = drawn("lognormal", 20_000)
    assert sign_question([Profile(part_of(values, 4_000))])
    values[17] = -1.0
    assert not sign_question([Profile(part_of(values, 4_000))])


def test_the_question_names_the_way_out_and_comes_first():
    for way in ("minimize=True", "--minimize", "If more is better, ignore this"):
        assert way in QUESTION
    x = {"a": drawn("lognormal", 500), "b": 2.0 * drawn("lognormal", 500, seed=1)}
    advice = rb.recommend(x)
    text = " ".join(str(advice).split())
    assert text.startswith(QUESTION)
    assert text.count("Are these costs?") == 1
    assert text.index("Are these costs?") < text.index("Take AdaKL-UCB")
    found = study(Recorded.of(x))
    assert found.advice == advice
    assert str(found).startswith(QUESTION)
    for shown in (advice._repr_html_(), found._repr_html_()):
        assert shown.count("Are these costs?") == 1
        assert shown.index("Are these costs?") < shown.index("Take AdaKL-UCB")
    assert "Are these costs?" not in str(study(Recorded.of(x, minimize=True)))


def test_a_diagnosis_asks_before_its_advice():
    for minimize in (False, True):
        bandit = rb.Bandit(["a", "b"], rb.UCB1(), minimize=minimize)
        bandit.update_many(["a"] * 200, drawn("lognormal", 200))
        found = bandit.diagnose()
        assert bool(found.advice.question) != minimize
        assert str(found).startswith("Are these costs? Then minimise them") != minimize


def test_the_rule_at_its_limits():
    """The 99 % quantile of 101 values is the second largest, and must be 5 times as far from the median as the 75 % quantile."""
    base = np.linspace(1.0, 2.0, 101)
    assert not has_long_right_tail(base)
    for reach, long in ((4.9, False), (5.1, True)):
        x = base.copy()
        x[76:] = np.linspace(1.8, 1.5 + 0.25 * reach, 25)
        x[99:] = 1.5 + 0.25 * reach
        x[:50] = np.linspace(1.45, 1.5, 50)
        assert has_long_right_tail(x) == long
