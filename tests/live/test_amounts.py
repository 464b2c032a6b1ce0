"""Rewards that add up: the sum is learned once, by the final reward or at the expiry."""

import pytest

import robandit as rb
from helpers.invalid import assert_invalid, raises
from robandit.errors import DecisionError, InvalidReward


@pytest.fixture
def log():
    return []


@pytest.fixture
def bandit(log):
    return rb.Bandit(["a", "b"], rb.UCB1(), seed=0, log=log.append, compile="never")


def learned(bandit):
    return [(row["pulls"], row["mean"]) for row in bandit.estimates() if row["pulls"]]


def test_the_final_reward_teaches_the_sum_once(bandit, log):
    decision = bandit.decide()
    bandit.reward(decision, 10.0, final=False)
    bandit.reward(decision.id, -4.0, final=False, part="refund-1")
    assert learned(bandit) == []
    assert bandit.amounts(decision.id) == {"0": 10.0, "refund-1": -4.0}
    bandit.reward(decision, 1.5)
    assert learned(bandit) == [(1, 7.5)]
    assert bandit.amounts(decision.id) == {}
    assert (log[-1].value, log[-1].amount) == (7.5, 1.5)
    with raises(DecisionError, parameter="decision"):
        bandit.reward(decision, 1.0, final=False)


def test_the_expiry_teaches_the_sum(bandit, log):
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first, 3.0, final=False)
    bandit.reward(first, 4.0, final=False)
    assert bandit.expire(first, second) == 2
    assert learned(bandit) == [(1, 7.0)]
    assert [event.value for event in log[-2:]] == [7.0, None]


def test_a_repeated_part_changes_nothing_and_another_amount_is_an_error(bandit, log):
    decision = bandit.decide()
    bandit.reward(decision, 3.0, final=False, part="x")
    saved, events = bandit.to_bytes(), len(log)
    bandit.reward(decision, 3.0, final=False, part="x")
    assert (bandit.to_bytes(), len(log)) == (saved, events)
    with raises(DecisionError, parameter="part", value="x"):
        bandit.reward(decision, 4.0, final=False, part="x")
    assert bandit.to_bytes() == saved


def test_numbers_that_are_made_avoid_given_names(bandit):
    decision = bandit.decide()
    for part in ("1", None, None, "0"):
        if part != "0":
            bandit.reward(decision, 1.0, final=False, part=part)
    assert sorted(bandit.amounts(decision.id)) == ["0", "1", "2"]


def test_sums_are_exact_in_any_order(bandit):
    sums = []
    for amounts in ([1e100, 1.0, -1e100], [1.0, 1e100, -1e100]):
        decision = bandit.decide(arm="a")
        for each in amounts:
            bandit.reward(decision, each, final=False)
        sums.append(sum(bandit.amounts(decision.id).values()))
        bandit.reward(decision, 0.0)
    assert learned(bandit) == [(2, 1.0)]
    assert sums != [1.0, 1.0]  # as a plain sum would have it


def test_open_amounts_are_saved_and_replayed(bandit, log):
    decision = bandit.decide()
    bandit.reward(decision, 2.0, final=False)
    loaded = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never")
    again = rb.Bandit(["a", "b"], rb.UCB1(), seed=0, compile="never")
    for event in log:
        again.apply(event.to_dict())
    assert again.to_bytes() == loaded.to_bytes() == bandit.to_bytes()
    for each in (loaded, again):
        each.reward(decision.id, 1.0)
        assert learned(each) == [(1, 3.0)]
    with raises(DecisionError):
        loaded.apply(log[-1])


def test_what_cannot_be_learned_is_refused(bandit):
    decision = bandit.decide()
    assert_invalid(lambda: bandit.reward(decision, 1.0, part="x"), "part", "left out")
    assert_invalid(lambda: bandit.reward(decision, 1.0, final=False, part="a/b"), "part", "1 to 64 characters")
    assert_invalid(lambda: bandit.reward(decision, 1.0, final="no"), "final", "True or False")
    assert_invalid(lambda: bandit.reward(decision, 1.0, final=False, metrics={"x": 1}), "metrics", "left out")
    bandit.reward(decision, 1e150, final=False)
    saved = bandit.to_bytes()
    with raises(InvalidReward):
        bandit.reward(decision, 1e150, final=False)
    with raises(InvalidReward):
        bandit.reward(decision, 1e150)
    assert bandit.to_bytes() == saved


def test_the_number_of_amounts_is_limited(bandit, monkeypatch):
    monkeypatch.setattr("robandit.live.amounts.MOST_PARTS", 3)
    decision = bandit.decide()
    for _ in range(3):
        bandit.reward(decision, 1.0, final=False)
    with raises(DecisionError, parameter="part"):
        bandit.reward(decision, 1.0, final=False)
    bandit.reward(decision, 1.0)
    assert learned(bandit) == [(1, 4.0)]


def test_the_sum_of_a_taught_unit_is_not_learned():
    bandit = rb.Bandit(["a"], rb.UCB1(), sticky_for=100.0, compile="never")
    first, again = bandit.decide(unit="ann"), bandit.decide(unit="ann")
    bandit.reward(again, 2.0, final=False)
    bandit.reward(first, 1.0)
    bandit.reward(again, 2.0)
    assert learned(bandit) == [(1, 1.0)]
    assert bandit.open == ()
    assert bandit.amounts(again.id) == {}
