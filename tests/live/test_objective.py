"""A bandit with another objective than the mean: its policy, its numbers, its log and its files."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable
from robandit.live.saving import pack, unpack

ARMS = ["east", "west"]


def lived(rounds=400, log=None, delayed=False, **options):
    """Costs of east have the smaller median and the heavier tail."""
    rng = np.random.default_rng(1)
    bandit = rb.Bandit(ARMS, minimize=True, seed=2, log=log, clock=lambda: 0.0, **options)
    waiting = []
    for _ in range(rounds):
        waiting.append(bandit.decide())
        while len(waiting) > (5 if delayed else 0):
            decision = waiting.pop(int(rng.integers(len(waiting))))
            bandit.reward(
                decision, float(rng.lognormal(0.0, 1.5) if decision.arm == "east" else rng.lognormal(0.5, 0.3))
            )
    return bandit


def pulls(bandit):
    return {row["arm"]: row["pulls"] for row in bandit.estimates()}


def test_the_policy_follows_from_the_objective_or_the_objective_from_the_policy():
    assert rb.Bandit(ARMS, objective="p95").policy == rb.QuantileUCB(q=0.95, costs=False)
    assert rb.Bandit(ARMS, objective="p95", minimize=True).policy == rb.QuantileUCB(q=0.95, costs=True)
    assert rb.Bandit(ARMS, rb.QuantileUCB(q=0.999)).objective == "p99.9"
    assert rb.Bandit(ARMS, objective="p50", drift="probe").policy == rb.Probing(rb.QuantileUCB(costs=False))
    assert rb.Bandit(ARMS, objective="p50", drift="restart", floor=0.02).objective == "p50"
    assert rb.Bandit(ARMS, rb.Floor(rb.QuantileUCB(q=0.9))).objective == "p90"
    assert rb.Bandit(ARMS, objective="within:2").objective == "within:2.0"
    assert rb.Bandit(ARMS, objective="within:2").policy == rb.AdaKLUCB()
    assert rb.Bandit(ARMS).objective == rb.Bandit(ARMS, objective="mean").objective == "mean"


def test_the_arm_with_the_best_quantile_wins():
    assert pulls(lived(objective="p50"))["east"] > 300
    assert pulls(lived(objective="p95"))["west"] > 300
    assert pulls(lived(objective="within:4.0"))["west"] > 300
    assert pulls(lived(objective="within:1.4"))["east"] > 300


def test_of_rewards_the_low_quantile_is_the_bad_tail():
    rng, bandit = np.random.default_rng(3), rb.Bandit(ARMS, objective="p5")
    limited = rb.Bandit(ARMS, objective="within:-4.0")
    for each in (bandit, limited):
        for _ in range(400):
            arm = each.select()
            each.update(arm, -float(rng.lognormal(0.0, 1.5) if arm == "east" else rng.lognormal(0.5, 0.3)))
        assert pulls(each)["west"] > 300
    found = {value.arm: value for value in bandit.kept_rewards()[3]}
    assert found["west"].value == pytest.approx(-math.exp(0.5 + 0.3 * 1.645), rel=0.15)
    assert found["west"].low <= found["west"].value <= found["west"].high < 0.0
    shares = {row["arm"]: row["share"] for row in limited.estimates()}
    assert 0.0 <= shares["west"] < shares["east"] <= 1.0


@pytest.mark.parametrize("objective", ["p95", "within:2.0"])
@pytest.mark.parametrize("options", [{}, {"drift": "restart"}, {"floor": 0.1}], ids=str)
def test_a_log_gives_the_same_bytes(objective, options):
    options["objective"] = objective
    events = []
    bandit = lived(150, log=events.append, delayed=True, **options)
    again = rb.Bandit(ARMS, minimize=True, seed=2, clock=lambda: 0.0, **options)
    for event in events:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()
    loaded = rb.Bandit.from_bytes(bandit.to_bytes())
    assert (loaded.objective, repr(loaded.estimates())) == (objective, repr(bandit.estimates()))  # repr: NaN
    for each in (bandit, loaded):
        each.update("east", 1e12)  # outside the window of bins
    assert loaded.select() == bandit.select()
    assert loaded.to_bytes() == bandit.to_bytes()


def test_a_file_with_another_objective_is_damaged():
    fields = unpack(rb.Bandit(ARMS).to_bytes(), "a file")
    fields.objective = "p0"
    with raises(rb.errors.CorruptFile):
        unpack(pack(fields), "a file")


def test_values_of_the_objective_with_limits():
    bandit = lived(2_000, objective="p95")
    values = {value.arm: value for value in bandit.kept_rewards()[3]}
    west = values["west"]
    assert west.low < west.value < west.high
    assert west.value == pytest.approx(math.exp(0.5 + 0.3 * 1.645), rel=0.08)
    said = str(bandit.diagnose())
    assert f"p95 of 'west': {west.value:.4g}, 95 % limits {west.low:.4g} to {west.high:.4g}" in said
    assert "advice for the mean, which is not the objective" in said
    shares = lived(300, objective="within:2.0").kept_rewards()[3]
    assert [value.name for value in shares] == ["share beyond 2.0"] * 2
    assert all(value.low < value.value < value.high for value in shares)
    assert rb.Bandit(ARMS).kept_rewards()[3] == ()
    empty = rb.Bandit(ARMS, objective="p95").kept_rewards()[3][0]
    assert math.isnan(empty.value)
    assert (empty.low, empty.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("objective", ["p50", "within:2.0"])
def test_pictures_are_of_the_objective(objective):
    pytest.importorskip("matplotlib")
    bandit = lived(100, objective=objective)
    assert bandit.plot().axes
    assert ("quantile" if objective == "p50" else "share") in bandit._repr_html_()


def test_costs_beyond_a_limit_do_not_contradict_an_assumption():
    """Assumptions are about rewards; here the policy learns indicators."""
    bandit = rb.Bandit(ARMS, rb.AdaRUCB(), objective="within:2.0")
    bandit.update_many(["east"] * 600, np.random.default_rng(0).pareto(1.2, 600) - 0.5)
    assert bandit.diagnose().contradicted is None


@pytest.mark.parametrize("objective", ["p95", "within:2"])
def test_a_deadline_is_about_the_mean(objective):
    with raises(InvalidInput, parameter="objective", rule="without a deadline"):
        rb.Bandit(ARMS, minimize=True, deadline=30.0, objective=objective)


def test_claims_about_means_are_refused():
    with raises(InvalidInput, parameter="cap"):
        rb.Bandit(ARMS, objective="p95", cap=5.0)


@pytest.mark.parametrize(
    "objective", ["p0", "p0.9", "p100", "p99.95", "P95", "95", "within:", "within:x", "median", "", 95]
)
def test_an_unknown_objective_is_refused(objective):
    with raises(InvalidInput, parameter="objective", rule="a quantile"):
        rb.Bandit(ARMS, objective=objective)


@pytest.mark.parametrize(
    ("policy", "objective"),
    [
        (rb.UCB1(), "p95"),
        (rb.Probing(rb.UCB1()), "p95"),
        (rb.QuantileUCB(q=0.9), "p95"),
        (rb.QuantileUCB(), "mean"),
        (rb.QuantileUCB(), "within:2"),
    ],
    ids=repr,
)
def test_a_policy_with_another_objective_is_refused(policy, objective):
    with raises(NotApplicable, parameter="objective", value=objective):
        rb.Bandit(ARMS, policy, objective=objective)


def test_features_with_a_quantile_are_refused():
    with pytest.raises(NotApplicable, match="omit features"):
        rb.Bandit(ARMS, objective="p95", features={"x": rb.Number()})
