"""`minimize=True`: costs as the user has them, in everything that a bandit returns."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from helpers.live_bandits import ARMS, QUICK
from robandit.errors import AssumptionWarning, InvalidInput
from robandit.live.engine import SIGNED_COLUMNS

POLICIES = [rb.UCB1(), QUICK, rb.AdaKLUCB(), rb.EpsilonGreedy(), rb.OptTINF()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.label)
def test_costs_are_negated_rewards(policy):
    rng = np.random.default_rng(0)
    costs, rewards = rb.Bandit(ARMS, policy, seed=2, minimize=True), rb.Bandit(ARMS, policy, seed=2)
    for step in range(300):
        cost = float(rng.pareto(1.8)) * (rng.random() < 0.9)
        if step % 3:
            arm = costs.select()
            assert arm == rewards.select()
            costs.update(arm, cost)
            rewards.update(arm, 0.0 - cost)
        else:
            mine, its = costs.decide(), rewards.decide()
            assert (mine.arm, mine.propensity) == (its.arm, its.propensity)
            costs.reward_many([mine.id], [cost])
            rewards.reward_many([its], [-cost])
    assert costs.minimize
    assert not rewards.minimize
    for mine, its in zip(costs.estimates(), rewards.estimates(), strict=True):
        for name in policy.columns:
            sign = -1.0 if name in SIGNED_COLUMNS else 1.0
            assert mine[name] == pytest.approx(sign * its[name], rel=0.0, abs=0.0, nan_ok=True)
            assert math.copysign(1.0, mine[name]) == 1.0 or mine[name] != 0.0, "no negative zeros"


def test_the_best_arm_has_the_smallest_mean():
    bandit = rb.Bandit(["slow", "fast"], rb.UCB1(scale=0.1), minimize=True)
    bandit.update_many(["slow", "fast"] * 20, [3.0, 1.0] * 20)
    assert bandit.select() == "fast"
    slow, fast = bandit.estimates()
    assert (slow["mean"], fast["mean"]) == (3.0, 1.0)
    assert fast["index"] < fast["mean"], "a lower confidence bound"


def test_the_diagnosis_and_the_warning_have_the_users_sign():
    gains = rb.laws.Pareto(tail=1.5).sample(1000, seed=0)
    bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(), minimize=True)
    bandit.update_many(["a"] * 1000, gains)  # heavy costs satisfy the assumption
    found = bandit.diagnose()
    assert found.contradicted is False
    assert found.leading.median == pytest.approx(np.median(gains), rel=0.2)
    assert "costs, minimised" in str(found)
    other = rb.Bandit(["a", "b"], rb.AdaRUCB(), minimize=True)
    with pytest.warns(AssumptionWarning, match="the costs of its leading arm 'a' contradict"):
        other.update_many(["a"] * 1000, -gains)


def test_saved_files_have_the_users_sign():
    bandit = rb.Bandit(["a", "b"], rb.UCB1(), minimize=True)
    bandit.update_many(["a"] * 300, [0.0, 1.0, 2.0] * 100)
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    assert again.minimize
    assert list(again._record.samples[0])[:3] == [0.0, 1.0, 2.0]
    assert repr(again.estimates()) == repr(bandit.estimates())
    again.update("b", 1.0)
    assert again.select() == "b"


@pytest.mark.parametrize("value", [1, 0, None, "yes", "true", 1.0])
def test_only_true_and_false_are_signs(value):
    with raises(InvalidInput, parameter="minimize", rule="True or False"):
        rb.Bandit(["a", "b"], rb.UCB1(), minimize=value)
