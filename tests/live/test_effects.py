"""`Bandit.effects`: coefficients with limits, against least squares by NumPy, and their coverage on light and heavy tails."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import NotApplicable
from robandit.policies.linear.model import MOST_CHANCES

FEATURES = {"z": rb.Number(center=0.0, scale=1.0), "c": rb.Category(["u", "v", "w"])}
LEVELS = {"u": 0.0, "v": 1.0, "w": -1.0}
SHARES = (0.6, 0.3, 0.1)


def played(policy, n, seed=0, *, heavy=False, **options):
    """Return a bandit with one arm, and the rows of x and the rewards that it has learned."""
    rng = np.random.default_rng(seed)
    bandit = rb.Bandit(["a"], policy, features=FEATURES, compile="never", **options)
    rows, rewards = [], []
    for _ in range(n):
        z, c = float(rng.normal()), str(rng.choice(["u", "v", "w"], p=SHARES))
        noise = rng.pareto(1.6) - 1.0 / 0.6 if heavy else rng.normal()
        rewards.append(2.0 * z + LEVELS[c] + float(noise))
        rows.append([1.0, z, *(float(c == each) for each in "uvw")])
        bandit.reward(bandit.decide(arm="a", context={"z": z, "c": c}), rewards[-1])
    return bandit, np.array(rows), np.array(rewards)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("minimize", [False, True])
def test_effects_are_those_of_ridge_regression(minimize, wrapped):
    bandit, X, y = played(rb.LinUCB(), 60, minimize=minimize, floor=0.1 if wrapped else None)
    inverse = np.linalg.inv(X.T @ X + np.eye(5))
    theta = inverse @ X.T @ y
    counts = X.sum(axis=0)
    assert [row["feature"] for row in bandit.effects()] == ["z", "c=u", "c=v", "c=w"]
    z, u, *_ = bandit.effects()
    c = np.array([0.0, 0.0, 1.0, -counts[3] / (counts[3] + counts[4]), -counts[4] / (counts[3] + counts[4])])
    variance = (((y - X @ theta) ** 2).sum() + theta @ theta) / 60
    for row, contrast in ((z, np.eye(5)[1]), (u, c)):
        assert row["effect"] == pytest.approx(contrast @ theta)
        error = math.sqrt(variance * contrast @ inverse @ contrast)
        assert (row["high"] - row["low"]) / 2 == pytest.approx(1.959964 * error)
        assert row["high"] + row["low"] == pytest.approx(2 * row["effect"])


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
@pytest.mark.parametrize(("policy", "heavy"), [(rb.LinStudentTS(), False), (rb.AdaClipUCB(), True)])
def test_limits_cover_the_effects(policy, heavy):
    """48 limits at 95 %: fewer than 39 hits have a probability of 1e-4 if effects are independent. Wrong effects fail."""
    hits = misses = 0
    for seed in range(12):
        bandit, *_ = played(policy, 150, seed, heavy=heavy)
        for row in bandit.effects():
            others = {
                value: share for value, share in zip("uvw", SHARES, strict=True) if f"c={value}" != row["feature"]
            }
            mean = sum(LEVELS[value] * share for value, share in others.items()) / sum(others.values())
            effect = 2.0 if row["feature"] == "z" else LEVELS[row["feature"][-1]] - mean
            hits += row["low"] <= effect <= row["high"]
            misses += not row["low"] <= effect + 1.0 <= row["high"]
    assert hits >= 39
    assert misses >= 24, "the negative control"


def test_policies_without_effects_and_arms_without_rewards():
    with raises(NotApplicable):
        rb.Bandit(["a"]).effects()
    assert rb.Bandit(["a"], rb.PerCell(), features=FEATURES).effects() == []
    assert rb.Bandit(["a"], rb.UCB1(), features=FEATURES).effects() == []
    fresh = rb.Bandit(["a", "b"], features=FEATURES, compile="never")
    assert all(math.isnan(row[name]) for row in fresh.effects() for name in ("effect", "low", "high"))
    unknown = played(rb.HvtUCB(eps=0.5, nu=1.0, S=3.0, horizon=100), 10)[0].effects()
    assert all(math.isfinite(row["effect"]) and math.isnan(row["low"]) for row in unknown)


@pytest.mark.parametrize(("arms", "known"), [(MOST_CHANCES, True), (MOST_CHANCES + 1, False)])
def test_propensities_of_many_arms_are_unknown(arms, known):
    context = {"z": 1.0, "c": "u"}
    bandit = rb.Bandit(range(arms), rb.LinTS(), features=FEATURES, seed=0, compile="never")
    for arm in range(arms):
        assert bandit.decide(context=context, among=[arm]).propensity == 1.0
        bandit.update(arm, float(arm % 3), context=context)
    assert math.isnan(bandit.decide(context=context).propensity) != known
    assert 0.0 <= bandit.decide(context=context, among=[0, 1]).propensity <= 1.0  # few compete


def test_chances_of_many_arms_are_not_computed():
    context = {"z": 1.0, "c": "u"}
    for arms, known in ((3, True), (MOST_CHANCES + 1, False)):
        bandit = rb.Bandit(range(arms), rb.LinTS(), features=FEATURES, seed=0, compile="never")
        chances = [arm["chance"] for arm in bandit.explain(context=context)["arms"]]
        assert [math.isnan(chance) for chance in chances] == [not known] * arms
    bandit = rb.Bandit(range(MOST_CHANCES + 1), rb.LinUCB(), features=FEATURES, compile="never")
    assert sum(arm["chance"] for arm in bandit.explain(context=context)["arms"]) == 1.0
