"""The advice: each rule, in its order, on rewards and on problems; and invalid input."""

import math
import re

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.samples_of import LEFT, RIGHT, SYMMETRIC, drawn
from robandit.errors import InvalidInput, MeanUndefined
from robandit.laws.median import law_median

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
    assert (found.policy, found.case) == (rb.AdaKLUCB(), "right-skewed")
    text = str(found).replace("\n    ", " ")
    assert "contradicted about the median" in text
    assert "AdaKL-UCB assumes" not in text
    assert "ignore the largest rewards, and may never find an arm that is the best because of them" in text
    assert "compares arms like for like" in text
    assert "Nothing is proved; the evidence is measured, on right-skewed rewards" in text
    assert "ForceMoM() is the alternative with a guarantee" in text
    assert "0 or tiny, and few are far above the rest" in text
    assert ("min(reward, " in text) == (name != "clicks")
    assert ("bounds=(low, high)" in text) == (name == "clicks")


def test_thompson_sampling_is_mentioned_only_for_light_tails():
    light, heavy = drawn("gaussian", 2000), -np.random.default_rng(0).pareto(1.5, 2000)
    for minimize in (False, True):
        assert "GaussianTS()" in str(rb.recommend(light, minimize=minimize))
    for given in (heavy, {"a": light, "b": heavy}, light[:100], {"a": light, "b": light[:100]}):
        assert "GaussianTS" not in str(rb.recommend(given))
    assert "GaussianTS()" in str(rb.recommend(rb.problems.gaussian(means=[0.0, 1.0], sd=2.0)))
    for problem in (
        rb.problems.student_t(means=[0.0, 1.0], dof=5.0),
        rb.Problem([rb.laws.Gaussian(mean=1.0, sd=1.0), rb.laws.StudentT(dof=3.0)]),
    ):
        assert "GaussianTS" not in str(rb.recommend(problem))


def test_policies_for_bounded_rewards_are_ready_to_copy():
    text = " ".join(str(rb.recommend([0.2, 0.4, 3.0], bounds=(0, 5))).split())
    assert "IMED(family='bounded', upper=5)" in text
    assert "MaillardSampling(family='bounded', lower=0, upper=5)" in text
    text = " ".join(str(rb.recommend([0.2, 0.4, 3.0], bounds=(0, 5), minimize=True)).split())
    assert "IMED(family='bounded', upper=0)" in text  # it learns minus the cost
    assert "MaillardSampling(family='bounded', lower=-5, upper=0)" in text
    assert "IMED" not in str(rb.recommend([0.2, 0.4, 3.0]))


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
    assert "There are only 2 rewards of 'a'" in found.reasons[0]
    assert "works with either" in found.reasons[0]
    assert "ForceMoM" not in str(found), "only where right skewness is probable"
    assert "There is only one reward:" in rb.recommend([1.0]).reasons[0]
    assert rb.recommend(drawn("gaussian", 255)).case == "few rewards"
    assert rb.recommend(drawn("gaussian", 256)).case == GOOD
    assert rb.recommend((drawn("clicks", 250) > 0) * 1).case == "right-skewed", "few may be enough"


def mostly_zeros(n, values):
    x = np.zeros(n)
    x[np.random.default_rng(1).choice(n, len(values), replace=False)] = values
    return x


@pytest.mark.parametrize(
    ("n", "values"), [(10_000, np.ones(5)), (5000, np.random.default_rng(0).pareto(1.5, 14) + 1.0), (300, [1e-9])]
)
def test_a_handful_of_gains_among_zeros_is_few_and_likely_right_skewed(n, values):
    found = rb.recommend({"a": mostly_zeros(n, values)})
    assert (found.policy, found.case) == (rb.AdaKLUCB(), "few rewards")
    differ = "only one differs" if len(values) == 1 else f"only {len(values)} differ"
    assert found.reasons[0].startswith(f"Of the {n} rewards of 'a' {differ} from 0: too few to be sure")
    assert "all that differ from 0 are above it" in found.reasons[0]
    for part in ("bounds", "ForceMoM()", "like for like", "0 or tiny"):
        assert part in str(found)


def test_few_that_differ_from_the_centre_are_few():
    found = rb.recommend(mostly_zeros(5000, [3.0, -1.0, 2.0]))
    assert (type(found.policy), found.case) == (ADAPTIVE, "few rewards")
    assert "only 3 differ from 0: too few to tell" in found.reasons[0]
    found = rb.recommend([7.0] * 1000)
    assert (type(found.policy), found.case) == (ADAPTIVE, "few rewards")
    assert "Of the 1000 rewards none differs from 7" in found.reasons[0]


def test_losses_among_zeros_are_left_skewed_as_soon_as_that_is_clear():
    """100 losses and no gain: fewer than 128 tested values differ from 0, but it is plain to which side."""
    x = mostly_zeros(2000, np.full(100, -1.0))
    assert (type(rb.recommend(x).policy), rb.recommend(x).case) == (ADAPTIVE, GOOD)
    assert rb.recommend(-x).case == "right-skewed"
    assert rb.recommend(mostly_zeros(2000, [-1.0] * 4)).case == "few rewards"


def test_a_pattern_in_the_order_is_not_skewness():
    assert rb.recommend([1.0, 2.0] * 300).case == GOOD


def cap_in(found):
    said = re.search(r"min\(reward, (\S+)\) changes (\S+)% of them", " ".join(found.reasons))
    return said and (float(said[1]), float(said[2]))


def test_the_advised_cap_changes_the_share_in_the_text():
    x = drawn("pareto_1.5", 5000)
    cap, share = cap_in(rb.recommend(x))
    assert share == pytest.approx(100 * np.mean(x > cap), abs=0.005)
    assert 0.3 < share < 0.7, "1 % of the upper half"
    rare = mostly_zeros(20_000, drawn("pareto_1.5", 150))  # the plain 99 % quantile is 0
    cap, share = cap_in(rb.recommend(rare))
    assert cap > np.median(rare[rare > 0])
    assert share == 0.01
    assert cap_in(rb.recommend(drawn("clicks", 2000))) is None, "a cap at the maximum changes nothing"


def test_known_moments_come_first():
    found = rb.recommend(drawn("pareto_1.5", 500), eps=0.4, u=30.0, bounds=(0, 1e9))
    assert (found.policy, found.case) == (rb.KLinfUCB(eps=0.4, u=30.0), "known moments")
    assert "within u" in str(found)
    assert "eps and u are used, and the bounds are ignored" in found.reasons[-1]
    assert "AdaKL-UCB, which needs no parameters, had the lower regret" in found.reasons[1]
    assert "bounds" not in str(rb.recommend([3.0, 4.0], eps=1, u=20))
    assert "ABOVE u" in str(rb.recommend([3.0, 4.0], eps=1, u=2))
    problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    assert rb.recommend(problem, eps=np.float64(0.4), u=20).policy == rb.KLinfUCB(eps=0.4, u=20.0)
    with pytest.raises(InvalidInput, match=r"u = 2.0, but this problem has a moment E\|X\|\^1.4 of 8"):
        rb.recommend(problem, eps=0.4, u=2.0)


def test_bounded_rewards_need_no_robust_policy():
    found = rb.recommend(drawn("clicks", 300), bounds=(0, 1))
    assert (found.policy, found.case) == (rb.UCBV(range=1.0), "bounded")
    assert "UCB1(scale=1)" in str(found)
    assert rb.recommend(rb.problems.bernoulli(means=[0.1, 0.4])).policy == rb.UCBV(range=1.0)
    assert rb.recommend(rb.problems.bernoulli(means=[0.1, 0.4]), bounds=(0, 2)).policy == rb.UCBV(range=2.0)
    assert "large against the spread" not in str(rb.recommend(drawn("gaussian", 1000), bounds=(-15, 15)))


@pytest.mark.parametrize(
    ("given", "bounds", "length"),
    [
        (rb.problems.bernoulli(means=[0.0004, 0.0002]), None, 1.0),
        (drawn("gaussian", 1000), (-1e6, 1e6), 2e6),
        (mostly_zeros(10_000, np.ones(5)), (0, 1), 1.0),
    ],
    ids=["problem", "wide", "rare"],
)
def test_true_bounds_are_used_however_wide_and_the_reasons_say_so(given, bounds, length):
    found = rb.recommend(given, bounds=bounds)
    assert (found.policy, found.case) == (rb.UCBV(range=length), "bounded")
    assert "large against the spread" in found.reasons[-1]
    assert "learning is slow" in found.reasons[-1]


def test_no_spread_is_an_unknown_spread():
    found = rb.recommend([2, 2, 2], bounds=(0, 1e9))
    assert (found.policy, found.case) == (rb.UCBV(range=1e9), "bounded")
    assert "no arm shows any spread" in found.reasons[1]


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


@cases(
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
)
def test_medians_of_laws(law, median):
    assert law_median(law) == pytest.approx(median, rel=1e-12)


def test_reads_well():
    lines = str(rb.recommend(drawn("pareto_1.5", 2000) - 2.0)).splitlines()
    assert lines[0] == "Take AdaKL-UCB (right-skewed):"
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("  - The rewards are right-skewed: ")


def test_every_kind_of_column_is_taken():
    x = drawn("lognormal", 400)
    for same in (x, x.tolist(), tuple(x), pl.Series(x), iter(x.tolist()), x.astype(object), (v for v in x)):
        assert rb.recommend(same) == rb.recommend({None: x})


@cases(
    ("given", "more", "match"),
    [
        ([], {}, "one row of at least one number"),
        ({}, {}, "rewards = {} must be the rewards of at least one arm"),
        ({"a": [1.0], "b": []}, {}, r"rewards\['b'\] = \[\] must be one row"),
        ({"a": [1.0, math.nan]}, {}, r"rewards\['a'\]\[1\] = nan must be a finite number"),
        ([1.0, math.inf, -math.inf], {}, r"rewards\[1\] = inf must be"),
        (["x"], {}, "must be an array of numbers"),
        ([None, 1.0], {}, "rewards"),
        ("text", {}, "rewards = 'text' must be an array of numbers"),
        (7, {}, "one row of at least one number"),
        ([[1.0, 2.0]], {}, "one row"),
        (rb.laws.Pareto(tail=2.0), {}, "is one law: pass a Problem"),
        ([1.0], {"eps": 0.5}, "eps = 0.5 and u = None: pass both"),
        ([1.0], {"u": 0.5}, "pass both"),
        ([1.0], {"eps": 2.0, "u": 1.0}, "eps = 2.0 must be"),
        ([1.0], {"eps": 1.0, "u": -1.0}, "u = -1.0 must be"),
        ([1.0], {"bounds": (1, 0)}, r"bounds = \(1, 0\).*smaller one first"),
        ([1.0], {"bounds": (0, math.inf)}, "finite"),
        ([1.0], {"bounds": (False, True)}, r"bounds\[0\] = False must be"),
        ([1.0], {"bounds": 3}, "a sequence of numbers"),
        ([1.0], {"bounds": "12"}, "a sequence of numbers"),
        ([1.0], {"bounds": {0, 2}}, "a sequence of numbers"),
        ([1.0], {"bounds": {0: 1, 2: 3}}, "a sequence of numbers"),
        ([1.0], {"bounds": (0, 1, 2)}, "two numbers in order"),
        ([1.0, -2e150], {}, r"rewards\[1\] = -2e\+150 must be 0 or from 1e-130 to 1e\+150 in size"),
        ({"a": [2e150]}, {}, r"rewards\['a'\]\[0\] = 2e\+150"),
        (pl.DataFrame({"a": [1.0]}), {}, r"is a table: pass one column of it.*dict\(df\)"),
        (rb.Bandit(["a", "b"], rb.UCB1()), {}, r"use bandit.diagnose\(\)"),
        ([1.0], {"bounds": ("a", "b")}, "bounds"),
        ({"a": [0.5, 3.0]}, {"bounds": (0, 1)}, "rewards of 'a' have 3 at position 1"),
        (rb.problems.pareto(means=[1.0, 2.0], tail=1.5), {"bounds": (0, 1)}, "reach from"),
    ],
)
def test_invalid_input(given, more, match):
    with pytest.raises(InvalidInput, match=match):
        rb.recommend(given, **more)


def test_a_problem_needs_means():
    with pytest.raises(MeanUndefined):
        rb.recommend(rb.Problem([rb.laws.Pareto(tail=0.9), rb.laws.Constant(0.0)]))


# --- costs that are minimised -----------------------------------------------------------------------------------------

MIRRORED = {
    "left-skewed or symmetric": "right-skewed or symmetric",
    "right-skewed": "left-skewed",
    "few rewards": "few costs",
}


@pytest.mark.parametrize("n", [1, 40, 2000])
@pytest.mark.parametrize("name", LEFT | SYMMETRIC | RIGHT)
def test_costs_get_the_advice_of_negated_rewards(name, n):
    rewards = {"a": drawn(name, n), "b": drawn("gaussian", n) - 3.0}
    plain, costs = rb.recommend(rewards), rb.recommend({arm: -x for arm, x in rewards.items()}, minimize=True)
    assert (costs.policy, costs.arm) == (plain.policy, plain.arm)
    assert costs.case == MIRRORED[plain.case]
    text = str(costs).replace("docs/results/heavy.md", "")
    assert "reward" not in text
    assert "highest" not in text


def test_bounds_and_moments_of_costs():
    costs = [3.0, 1.0, 2.0]
    assert rb.recommend(costs, bounds=(0, 5), minimize=True).policy == rb.UCBV(range=5.0)
    assert "Costs are bounded, in [0, 5]" in str(rb.recommend(costs, bounds=(0, 5), minimize=True))
    with pytest.raises(InvalidInput, match="the costs have 3 at position 0"):
        rb.recommend(costs, bounds=(0, 2), minimize=True)
    assert rb.recommend(costs, eps=1.0, u=20.0, minimize=True).policy == rb.KLinfUCB(eps=1.0, u=20.0)


@pytest.mark.parametrize(
    "laws",
    [
        [rb.laws.Pareto(1.5), rb.laws.Pareto(1.5, 2.0)],
        [-rb.laws.Pareto(1.5), -rb.laws.Pareto(1.5, 2.0)],
        [rb.laws.StudentT(1.5), rb.laws.StudentT(1.5, 1.0)],
        [rb.laws.Bernoulli(0.5), rb.laws.Bernoulli(0.25)],
    ],
    ids=str,
)
def test_a_problem_of_costs(laws):
    costs, rewards = rb.Problem(laws, minimize=True), rb.Problem([-law for law in laws])
    found, plain = rb.recommend(costs), rb.recommend(rewards)
    assert (found.policy, found.arm) == (plain.policy, plain.arm)
    assert found.case == MIRRORED.get(plain.case, plain.case)
    assert rb.recommend(costs, minimize=True) == found


def test_the_sign_of_a_problem_is_its_own():
    with pytest.raises(InvalidInput, match=r"this problem is maximised: pass Problem\(laws, minimize=True\)"):
        rb.recommend(rb.problems.gaussian([0.0, 1.0]), minimize=True)
    for value in (1, "yes", None):
        with raises(InvalidInput, parameter="minimize", rule="True or False"):
            rb.recommend([1.0], minimize=value)
