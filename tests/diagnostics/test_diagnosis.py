"""Diagnosis and warning of costs: those of the negated rewards, in the words and the sign of costs."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.own_policies import Centred
from helpers.samples_of import LEFT, RIGHT, SYMMETRIC, drawn
from robandit.diagnostics.assumption import judge
from robandit.diagnostics.diagnosis import KeptRewards, diagnose, warning_text
from robandit.policies import MARS, AdaKLUCB, AdaRUCB

NAMES = [*LEFT, *SYMMETRIC, *RIGHT]


def kept(*samples, sign=1.0):
    rows = []
    for i, values in enumerate(samples):
        values = sign * np.asarray(values) + 0.0
        rows.append(KeptRewards(f"arm {i}", len(values), len(values), int(np.sum(values == 0.0)), values))
    return rows


def tail_numbers(tail):
    return tail.index, tail.low, tail.high, tail.k, tail.n


def approx(numbers):
    """Equal numbers, where NaN equals NaN."""
    return pytest.approx(numbers, rel=0.0, abs=0.0, nan_ok=True)


POLICIES = [AdaRUCB(), AdaKLUCB(), Centred(), MARS(), rb.UCB1()]
PAIRS = [
    pytest.param(name, policy, id=f"{policy.name}-{name}")
    for i, name in enumerate(NAMES)
    for j, policy in enumerate(POLICIES)
    if (i + j) % amount(3, 1) == 0
]


@pytest.mark.parametrize(("name", "policy"), PAIRS)
def test_costs_are_diagnosed_as_negated_rewards(name, policy):
    samples = drawn(name, 1500), drawn("gaussian", 300)
    rewards, costs = diagnose(policy, kept(*samples)), diagnose(policy, kept(*samples, sign=-1.0), minimize=True)
    assert costs.minimize
    assert not rewards.minimize
    assert costs.contradicted is rewards.contradicted
    assert costs.advice.policy == rewards.advice.policy
    for of_cost, of_reward in zip(costs.arms, rewards.arms, strict=True):
        assert of_cost.median == -of_reward.median
        assert (of_cost.pulls, of_cost.sampled, of_cost.zeros) == (of_reward.pulls, of_reward.sampled, of_reward.zeros)
        assert tail_numbers(of_cost.left) == approx(tail_numbers(of_reward.right))
        assert tail_numbers(of_cost.right) == approx(tail_numbers(of_reward.left))
        for test in ("about_zero", "about_median"):
            mirrored, plain = getattr(of_cost, test), getattr(of_reward, test)
            assert mirrored.mirrored
            assert mirrored.mirror() == plain
        assert bool(of_cost.symmetry) == bool(of_reward.symmetry)


def test_the_text_is_about_costs():
    cost = -drawn("negated_pareto_1.5", 2000)
    text = str(diagnose(Centred(), kept(cost, cost + 1.0), minimize=True))
    assert "costs, minimised" in text
    assert "reward" not in text.replace("Take AdaKL-UCB", "")
    assert f"{np.median(cost):.4g}" in text
    assert "truncated non-negativity about the median (at least" in text
    assert "it assumes truncated non-negativity of the best arm about its median: not contradicted" in text
    assert "right-skewed or symmetric" in text
    assert "Their right tail: index above 0." in text.replace("\n    ", " ")
    assert str(diagnose(Centred(), kept(cost))) != text, "the negative control"


def test_the_warning_is_about_costs():
    gains = drawn("pareto_1.5", 2000)
    records, costs = kept(gains), kept(gains, sign=-1.0)
    found = judge(costs[0].sample, "median", 1e-4, minimize=True)
    assert not found
    text = warning_text(Centred(), costs, "arm 0", found, minimize=True)
    assert "assumes truncated non-negativity of the best arm about its median, and the costs of its leading arm" in text
    assert "add up to less than 0" in text
    assert "left-skewed" in text
    assert "max(cost, -" in text
    assert "reward" not in text
    plain = warning_text(Centred(), records, "arm 0", judge(records[0].sample, "median", 1e-4))
    assert "min(reward, " in plain
    assert "the rewards of its leading arm" in plain


@cases("about", [0.0, 1.5, "median", "symmetric"])
@cases("name", NAMES)
def test_the_test_of_costs_is_that_of_negated_rewards(name, about):
    values = drawn(name, 700)
    point = about if isinstance(about, str) else -about
    plain, costs = judge(values, about, 0.01), judge(-values, point, 0.01, minimize=True)
    assert costs.verdict == plain.verdict
    assert costs.statistic == plain.statistic or about == "symmetric"
    if about != "symmetric":
        assert (costs.about, costs.mean) == (-plain.about, -plain.mean)


def test_a_policy_without_a_theorem_has_no_assumption_to_test():
    found = diagnose(AdaKLUCB(), kept(drawn("pareto_1.5", 2000)))
    assert found.contradicted is None
    assert found.words() == "no bound on its regret is proved, so there is no assumption to test"
    assert "truncated non-positivity about the median" in str(found), "the tests of the rewards are shown all the same"
    assert diagnose(Centred(), kept(drawn("pareto_1.5", 2000))).contradicted
    assert "assumes nothing that rewards could contradict" in diagnose(rb.ForceMoM(), kept([1.0])).words()


def test_no_costs_at_all():
    text = str(diagnose(AdaKLUCB(), kept([], []), minimize=True))
    assert "There are no costs of 'arm 0' yet" in text.replace("\n    ", " ")
    assert math.isnan(diagnose(AdaKLUCB(), kept([], []), minimize=True).leading.median)
