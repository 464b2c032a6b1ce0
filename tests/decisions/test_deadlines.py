"""Deadlines in an experiment of the service: failures and time-outs are events, and a log gives the same state and decisions."""

import math
from functools import partial

import numpy as np
import pytest

from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import events
from robandit.errors import Conflict, InvalidInput, InvalidReward


@pytest.mark.parametrize("policy", ["UCB1()", "AdaKLUCB()"])
def test_a_log_gives_the_same_state_and_the_same_decisions(policy):
    journal = Journal(policy=policy, minimize=True, deadline=30.0, failure_cost=40.0, floor=0.1)
    rng, running, experiment = np.random.default_rng(1), [], journal.experiment
    for _ in range(250):
        journal.clock.now += 0.5 * rng.exponential()
        for each in [each for each in running if each[0] <= journal.clock.now]:
            running.remove(each)
            if rng.random() < 0.2:
                experiment.fail(each[1])
            else:
                experiment.reward(each[1], 1.0 + rng.exponential())
        made = experiment.decide()
        hangs = made.payload.arm == "a" and rng.random() < 0.3
        running.append((math.inf if hangs else journal.clock.now + rng.exponential(), made.event.id))
    counts = experiment.counts
    assert counts["expired"] > 0
    assert counts["failed"] > 0
    assert not any(event.kind == "late" for event in journal.events)
    assert journal.folded().snapshot().content == journal.snapshot()
    snapshot = journal.folded(upto=300).snapshot().content
    again = journal.folded(snapshot)
    assert again.snapshot().content == journal.snapshot()
    again._emit = lambda event: None
    choices = [experiment.decide().payload for _ in range(20)]
    assert [(p.arm, p.propensity) for p in choices] == [
        (p.arm, p.propensity) for p in (again.decide().payload for _ in range(20))
    ]


def test_the_next_call_times_out_what_is_too_old():
    journal = Journal(minimize=True, deadline=30.0)
    experiment = journal.experiment
    old, other = experiment.decide("old"), experiment.decide("other")
    journal.clock.now += 30.0
    assert not experiment.is_due()
    journal.clock.now += 0.1
    assert experiment.is_due()
    failed = experiment.fail("other")  # the failure comes after its time-out, which is recorded instead
    assert (failed.payload, failed.replayed) == (experiment.recorded(events.Expired, "other").payload, True)
    assert experiment.is_open("old")
    experiment.decide()
    assert not experiment.is_open("old")
    for each in (old, other):
        assert journal.by_id["expired", each.event.id].time == journal.clock.now
    assert experiment.fail("old").payload.value == 30.0
    assert experiment.reward("old", 2.0).payload.reason == "window"
    assert experiment.bandit.failures() == {"a": (0, 1), "b": (0, 1), "c": (0, 0)}


def test_a_failure_after_a_reset_is_late():
    journal = Journal(minimize=True, deadline=30.0)
    experiment = journal.experiment
    experiment.decide("x")
    experiment.reset(drawn=3)
    assert experiment.fail("x").payload.reason == "reset"
    assert experiment.fail("x").replayed
    assert experiment.counts["failed"] == 0


def test_what_does_not_fit_is_refused():
    experiment = Journal(minimize=True, deadline=30.0).experiment
    experiment.decide("x")
    with raises(InvalidReward, parameter="reward", value=-1.0):
        experiment.reward("x", -1.0)
    with raises(InvalidInput, parameter="final"):
        experiment.add("x", 1.0, "part")
    experiment.reward("x", 1.0)
    for call in (partial(experiment.fail, "x"), partial(Journal().experiment.fail, "x")):
        with raises(Conflict, parameter="id"):
            call()
