"""Decisions whose arm was chosen elsewhere, and what a service reads: open decisions by id and time, ids, pulls and rewards."""

import json
import math

import pytest

import robandit as rb
from helpers.invalid import raises
from helpers.live_bandits import ARMS, lived
from helpers.own_policies import Exp3
from robandit.diagnostics.diagnosis import diagnose
from robandit.errors import DecisionError, HorizonReached, InvalidInput, UnknownArm
from robandit.live import events

POLICIES = [rb.UCB1(), rb.AdaKLUCB(), rb.AdaRUCB(), rb.EpsilonGreedy(epsilon=0.4), rb.Restarting(rb.UCB1())]
WEIGHTED = [rb.Ada2TINF(), rb.OptTINF(), Exp3()]
LABELS = {"ids": lambda policy: policy.label}


# --- decide(arm=...) ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, **LABELS)
def test_a_given_arm_is_recorded_and_its_reward_learned(policy):
    bandit = rb.Bandit(ARMS, policy, seed=2, clock=lambda: 12.5)
    for k in range(12):
        decision = bandit.decide(arm="asia")
        assert (decision.arm, decision.time) == ("asia", 12.5)
        assert math.isnan(decision.propensity)
        assert bandit.open[-1][:2] == decision[:2]
        bandit.reward(decision, float(k))
    assert [row["pulls"] for row in bandit.estimates()] == [0, 0, 12]
    assert bandit.open_count == 0


@pytest.mark.parametrize("policy", POLICIES, **LABELS)
def test_a_given_arm_counts_as_a_chosen_one(policy):
    """The state differs from that of a choice in nothing but the probability, if the choice draws no random numbers."""
    chosen, told = (rb.Bandit(ARMS, policy, seed=2) for _ in range(2))
    for k in range(30):
        first = chosen.decide()
        second = told.decide(arm=first.arm)
        for bandit, decision in ((chosen, first), (told, second)):
            if k % 3:
                bandit.reward(decision, float(k % 7) - 3.0)
            elif k % 2:
                bandit.expire(decision)
    means = [[(row["pulls"], row["mean"]) for row in bandit.estimates()] for bandit in (chosen, told)]
    assert repr(means[0]) == repr(means[1])
    assert [row.arm for row in chosen.open] == [row.arm for row in told.open]


@pytest.mark.parametrize("policy", POLICIES, **LABELS)
@pytest.mark.parametrize("as_data", [False, True])
def test_a_log_with_given_arms_rebuilds_the_bytes(policy, as_data):
    log = []
    bandit = rb.Bandit(ARMS, policy, seed=2, log=log.append)
    bandit.pause_arm("us")
    for k in range(25):
        decision = bandit.decide(arm=ARMS[k % 3]) if k % 2 else bandit.decide()
        if k % 5:
            bandit.reward(decision, float(k % 7) - 3.0)
        if k == 12:
            saved, applied = bandit.to_bytes(), len(log)
    again = rb.Bandit(ARMS, policy, seed=2)
    convert = (
        (lambda event: json.loads(json.dumps(event.to_dict(), allow_nan=False))) if as_data else (lambda event: event)
    )
    for event in log:
        again.apply(convert(event))
    assert again.to_bytes() == bandit.to_bytes()
    from_the_middle = rb.Bandit.from_bytes(saved)
    for event in log[applied:]:
        from_the_middle.apply(convert(event))
    assert from_the_middle.to_bytes() == bandit.to_bytes()
    given = [event for event in log if isinstance(event, events.Decided) and event.given]
    assert len(given) == 12
    assert {event.asked for event in given} == {()}
    assert {event.to_dict()["propensity"] for event in given} == {"unknown"}
    assert all("given" not in event.to_dict() for event in log if event not in given)


def test_a_choice_that_was_asked_for_before_a_given_arm_is_in_the_log():
    log = []
    bandit = rb.Bandit(ARMS, rb.EpsilonGreedy(epsilon=0.9), seed=2, log=log.append)
    bandit.select()
    bandit.select(among=["eu", "us"])
    bandit.decide(arm="asia")
    assert log[-1].asked == (None, ("eu", "us"))
    again = rb.Bandit(ARMS, rb.EpsilonGreedy(epsilon=0.9), seed=2)
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()
    assert [again.decide().arm for _ in range(20)] == [bandit.decide().arm for _ in range(20)]


@pytest.mark.parametrize("change", [rb.Bandit.pause_arm, rb.Bandit.retire_arm])
def test_paused_and_retired_arms_may_be_given(change):
    log = []
    bandit = rb.Bandit(ARMS, rb.UCB1(), log=log.append)
    change(bandit, "us")
    decision = bandit.decide(arm="us")
    bandit.reward(decision, 2.0)
    assert bandit.estimates()[1]["mean"] == 2.0
    again = rb.Bandit(ARMS, rb.UCB1())
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()
    assert bandit.select() != "us"
    forged = json.loads(json.dumps(log[1].to_dict())) | {"given": False, "id": "k3m9-0"}
    with raises(InvalidInput, parameter="arm"):
        again.apply(forged)


def test_all_arms_may_be_paused():
    bandit = rb.Bandit(ARMS, rb.UCB1())
    for arm in ARMS:
        bandit.pause_arm(arm)
    bandit.reward(bandit.decide(arm="eu"), 1.0)
    assert bandit.estimates()[0]["pulls"] == 1


@pytest.mark.parametrize("policy", WEIGHTED, **LABELS)
def test_weighted_policies_refuse_a_given_arm(policy):
    bandit = rb.Bandit(ARMS, policy, seed=1)
    bandit.decide()
    before = bandit.to_bytes()
    with pytest.raises(DecisionError, match=r"weights a reward by the probability of its choice, which is not known"):
        bandit.decide(arm="eu")
    assert bandit.to_bytes() == before


def test_given_arms_that_are_refused_change_nothing():
    bandit = rb.Bandit([*ARMS, None], rb.UCB1(), max_open=2)
    before = bandit.to_bytes()
    with raises(UnknownArm, parameter="arm"):
        bandit.decide(arm="mars")
    with pytest.raises(UnknownArm):
        bandit.decide(arm=["eu"])
    with pytest.raises(InvalidInput, match="arm = 'eu' and among exclude each other: give one of them"):
        bandit.decide(["eu"], arm="eu")
    assert bandit.to_bytes() == before
    assert bandit.decide(arm=None).arm is None  # a valid name


def test_max_open_counts_given_arms():
    bandit = rb.Bandit(ARMS, rb.UCB1(), max_open=2)
    first = bandit.decide(arm="us")
    bandit.decide()
    before = bandit.to_bytes()
    for arms in ({"arm": "eu"}, {}):
        with raises(DecisionError, parameter="max_open") as raised:
            bandit.decide(**arms)
        assert raised.value.parameter == "max_open"
    assert bandit.to_bytes() == before
    bandit.reward(first, 1.0)
    bandit.decide(arm="eu")


def test_a_horizon_counts_given_arms():
    bandit = rb.Bandit(["a", "b"], rb.RobustMOSS(eps=1.0, u=1.0).prepared(4))
    decisions = [bandit.decide(arm="b") for _ in range(3)]
    bandit.reward(decisions[0], 1.0)
    bandit.decide()
    before = bandit.to_bytes()
    for arms in ({"arm": "a"}, {}):
        with pytest.raises(HorizonReached, match="was made for 4 pulls, 4 are made, and 1 more requested"):
            bandit.decide(**arms)
    assert bandit.to_bytes() == before


@pytest.mark.parametrize("time", [math.nan, math.inf, "now", None])
def test_an_invalid_clock_is_refused(time):
    bandit = rb.Bandit(ARMS, rb.UCB1(), clock=lambda: time)
    before = bandit.to_bytes()
    with raises(InvalidInput, parameter="clock()"):
        bandit.decide(arm="eu")
    assert bandit.to_bytes() == before


# --- open decisions -----------------------------------------------------------------------------------------------------------


def ticking(bandit_time):
    return rb.Bandit(ARMS, rb.EpsilonGreedy(epsilon=0.5), seed=3, clock=lambda: bandit_time[0])


def test_an_open_decision_by_its_id():
    now = [5.0]
    bandit = ticking(now)
    made = []
    for _ in range(300):  # more than are kept as new ones
        made.append(bandit.decide())
        now[0] += 1.0
    made.append(bandit.decide(arm="us"))
    for decision in made[:-1]:
        assert bandit.open_decision(decision.id) == decision
    given = bandit.open_decision(made[-1].id)
    assert given[:2] == made[-1][:2]
    assert math.isnan(given.propensity)
    bandit.reward(made[3], 1.0)
    bandit.expire(made[4])
    before = bandit.to_bytes()
    for id in (made[3].id, made[4].id, "other", "", 3, None, "k3m9-0"):
        assert bandit.open_decision(id) is None
    assert bandit.to_bytes() == before
    again = rb.Bandit.from_bytes(before)
    assert again.open_decision(made[0].id) == made[0]


def test_decisions_opened_before_a_time():
    now = [0.0]
    bandit = ticking(now)
    made = []
    for k in range(600):
        now[0] = float(k // 2)
        made.append(bandit.decide().id)
    assert bandit.opened_before(0.0) == []
    assert bandit.opened_before(0.5) == made[:2]
    assert bandit.opened_before(100.0) == made[:200]  # those at the time itself are not before it
    bandit.reward(made[1], 1.0)
    bandit.expire(made[4])
    assert bandit.opened_before(3.0) == [made[0], made[2], made[3], made[5]]
    assert bandit.opened_before(1e9) == [id for id in made if id not in (made[1], made[4])]
    assert rb.Bandit.from_bytes(bandit.to_bytes()).opened_before(3.0) == [made[0], made[2], made[3], made[5]]
    for time in (math.nan, "1", None):
        with pytest.raises(InvalidInput):
            bandit.opened_before(time)


def test_decisions_of_a_clock_that_went_backwards():
    now = [10.0]
    bandit = ticking(now)
    first = bandit.decide().id
    now[0] = 5.0
    second = bandit.decide().id
    now[0] = 20.0
    third = bandit.decide().id
    assert bandit.opened_before(7.0) == [second]
    assert bandit.opened_before(15.0) == [first, second]
    assert bandit.opened_before(30.0) == [first, second, third]


# --- ids ----------------------------------------------------------------------------------------------------------------------


def test_ids_that_a_bandit_may_issue():
    bandit = rb.Bandit(ARMS, rb.UCB1())
    first = bandit.decide().id
    life = first.partition("-")[0]
    assert all(bandit.may_issue(f"{life}-{number}") for number in (0, 1, 2, 10**12))
    assert not any(bandit.may_issue(id) for id in (life, f"x{life}-1", f"{life}x-1", "", "1", "k3m9qd2x7wfa-1"))
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    assert not again.may_issue(f"{life}-1")
    assert again.may_issue(again.decide().id)
    for _ in range(50):
        assert bandit.may_issue(bandit.decide().id)


# --- pulls and rewards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, **LABELS)
def test_pulls_are_those_of_the_estimates(policy):
    bandit = lived(policy)
    bandit.pause_arm("us")
    bandit.retire_arm("eu")
    bandit.add_arm("mars")
    bandit.decide()
    assert bandit.pulls() == [(row["arm"], row["state"], row["pulls"]) for row in bandit.estimates()]
    assert sum(pulls for _, _, pulls in bandit.pulls()) == 60


@pytest.mark.filterwarnings("ignore::robandit.errors.AssumptionWarning", "ignore::robandit.errors.DriftWarning")
@pytest.mark.parametrize("minimize", [False, True])
def test_kept_rewards_are_what_a_diagnosis_reads(minimize):
    bandit = rb.Bandit(ARMS, rb.UCB1(), minimize=minimize)
    values = rb.laws.Pareto(tail=2.5).sample(700, seed=0).tolist()
    bandit.update_many(["eu", "us"] * 350, values)
    kept, minimized, *rest = bandit.kept_rewards()
    assert minimized is minimize
    assert repr(diagnose(bandit.policy, kept, minimized, *rest)) == repr(bandit.diagnose())
    before = bandit.to_bytes()
    report = repr(diagnose(bandit.policy, kept, minimized, *rest))
    bandit.update_many(["eu"] * 300, [5.0] * 300)
    assert repr(diagnose(bandit.policy, kept, minimized, *rest)) == report  # a copy
    assert bandit.to_bytes() != before


def test_reading_changes_nothing():
    bandit = lived(rb.AdaKLUCB())
    bandit.decide()
    before = bandit.to_bytes()
    bandit.kept_rewards()
    bandit.pulls()
    bandit.opened_before(1.0)
    bandit.may_issue("x")
    bandit.open_decision("x")
    assert bandit.to_bytes() == before
