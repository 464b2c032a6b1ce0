"""Guardrails and amounts in an experiment of the service: what is stored, that repeats are harmless, and that all servers agree."""

import asyncio
from functools import partial

import pytest

from helpers.engines import SETTINGS
from helpers.engines import running_replica as running
from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import events, replica
from robandit.decisions.engine import outcome_of
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import checked_settings
from robandit.errors import Conflict, InvalidInput, NotFound
from robandit.live.guardrails import Guardrail

ERROR = Guardrail("error", at_most=0.05)


def same_after_a_restart(journal):
    assert journal.folded().snapshot().content == journal.snapshot()
    assert journal.folded(journal.snapshot()).snapshot().content == journal.snapshot()


def fail(experiment, arm, count=8, value=1):
    for _ in range(count):
        experiment.reward(experiment.decide(arm=arm).event.id, 1.0, {"error": value})


def test_a_pause_and_an_alarm_are_events():
    journal = Journal(guardrails=[ERROR])
    experiment = journal.experiment
    for arm in "abc":
        fail(experiment, arm)
    kinds = [event.kind for event in journal.events]
    assert (kinds.count("arm_paused"), kinds.count("arm_alarmed")) == (2, 1)
    assert experiment.bandit.states == {"a": "paused", "b": "paused", "c": "active"}
    paused = events.payload_of(next(event for event in journal.events if event.kind == "arm_paused"))
    assert str(paused.guardrail) == "error 100 % of 5, at most 5 %"
    same_after_a_restart(journal)
    experiment.change_arm("a", "active")
    assert experiment.bandit.states["c"] == "paused"  # it is not the last one any more
    assert "a" not in experiment.bandit.broken_guardrails()
    experiment.reset(drawn=1)
    assert experiment.bandit.states == {"a": "active", "b": "paused", "c": "paused"}
    assert set(experiment.bandit.broken_guardrails()) == {"b", "c"}
    same_after_a_restart(journal)


def test_a_log_that_ends_before_the_pause_makes_up_for_it():
    """A crash may lose the last events. The state knows what is due."""
    journal = Journal(guardrails=[ERROR])
    fail(journal.experiment, "a")
    place = next(i for i, event in enumerate(journal.events) if event.kind == "arm_paused")
    for event in journal.events[place:]:
        del journal.by_id[event.kind, event.id]
    del journal.events[place:]
    journal.restart()
    assert journal.experiment.bandit.states["a"] == "active"
    journal.experiment.reward(journal.experiment.decide(arm="b").event.id, 1.0)
    assert journal.experiment.bandit.states["a"] == "paused"
    same_after_a_restart(journal)


def test_an_expiry_lets_waiting_outcomes_count():
    journal = Journal(guardrails=[ERROR], reward_window=10.0)
    journal.experiment.decide(arm="a")
    journal.clock.now += 1.0
    fail(journal.experiment, "a")
    assert journal.experiment.bandit.states["a"] == "active"
    journal.clock.now += 9.5
    assert journal.experiment.expire_due() == 1
    assert journal.experiment.bandit.states["a"] == "paused"
    same_after_a_restart(journal)


def test_metrics_are_stored_and_repeats_must_be_the_same():
    experiment = Journal(metrics=["error"], reward_window=10.0).experiment
    id = experiment.decide().event.id
    made = experiment.reward(id, 1.0, {"error": True})
    assert made.payload.metrics == {"error": 1.0}
    assert experiment.reward(id, 1.0, {"error": 1}).replayed
    for other in (None, {"error": 0}):
        with raises(Conflict, parameter="metrics"):
            experiment.reward(id, 1.0, other)
    with raises(InvalidInput, parameter="metrics", value="eror"):
        experiment.reward(experiment.decide().event.id, 1.0, {"eror": 1})


def test_failures_have_metrics():
    journal = Journal(guardrails=[ERROR], minimize=True, deadline=10.0, policy="AdaKLUCB()")
    experiment = journal.experiment
    for _ in range(5):
        id = experiment.decide(arm="b").event.id
        made = experiment.fail(id, {"error": True})
        assert experiment.fail(id, {"error": 1}).event == made.event
        with raises(Conflict, parameter="metrics"):
            experiment.fail(id)
    assert experiment.bandit.states["b"] == "paused"
    same_after_a_restart(journal)


# --- amounts ----------------------------------------------------------------------------------------------------------


def test_amounts_are_learned_as_one_sum_and_repeats_change_nothing():
    journal = Journal()
    experiment = journal.experiment
    id = experiment.decide("mine").event.id
    for _ in range(2):
        experiment.add(id, 10.0, "usage")
        experiment.add(id, -2.5, "refund-1")
    with raises(Conflict, parameter="value"):
        experiment.add(id, -3.0, "refund-1")
    same_after_a_restart(journal)
    made = experiment.reward(id, 1.0)
    assert (made.payload.value, made.payload.amount) == (8.5, 1.0)
    assert experiment.reward(id, 1.0).replayed
    assert experiment.add(id, 10.0, "usage").replayed
    with raises(Conflict, parameter="value"):
        experiment.reward(id, 8.5)
    with raises(Conflict, parameter="id"):
        experiment.add(id, 1.0, "new")
    with raises(NotFound):
        experiment.add("unknown", 1.0, "new")
    with raises(InvalidInput, parameter="part"):
        experiment.add(id, 1.0, "a/b")
    assert [event.kind for event in journal.events] == ["created", "decided", "added", "added", "rewarded"]
    same_after_a_restart(journal)


def test_an_amount_is_not_mistaken_for_a_decision():
    """Ids of decisions may contain anything that a separator could be made of."""
    journal = Journal(reward_window=10.0)
    experiment = journal.experiment
    for id in ("x" * 200, "x", "x/y", "x-y", "x y"):
        experiment.decide(id)
    journal.clock.now += 11.0
    for id in ("x/y", "x-y", "x y"):
        assert not experiment.reward(id, 1.0).replayed
    for id in ("x", "x" * 200):
        assert not experiment.add(id, 1.0, "y").replayed
    same_after_a_restart(journal)


@pytest.mark.parametrize("on_expiry", ["drop", -3.0])
def test_the_expiry_teaches_the_sum(on_expiry):
    journal = Journal(reward_window=10.0, on_expiry=on_expiry)
    experiment = journal.experiment
    id = experiment.decide().event.id
    experiment.add(id, 2.0, "a")
    journal.clock.now += 11.0
    late = experiment.add(id, 5.0, "b")
    assert experiment.ends["rewarded"] == (on_expiry == "drop")  # no warning: the sum is its reward
    expired = experiment.recorded(events.Expired, id)
    assert expired.payload.value == 2.0
    assert late.payload == events.Late(value=5.0, arm="a", decided=expired.payload.decided, reason="window", part="b")
    assert outcome_of(late) == "late"
    assert experiment.add(id, 5.0, "b").replayed
    assert experiment.add(id, 2.0, "a").replayed
    assert next(row["mean"] for row in experiment.bandit.estimates()) == 2.0
    same_after_a_restart(journal)


def test_settings_with_other_guardrails_conflict():
    one, other = (checked_settings(**SETTINGS, drawn=1, guardrails=each) for each in ([ERROR], None))
    assert one.first_difference(other).startswith('guardrails is [{"metric": "error", ')
    assert one.first_difference(checked_settings(**SETTINGS, drawn=2, guardrails=[ERROR])) is None


def test_all_servers_pause_the_same_arm(postgres_url, monkeypatch):
    """Two servers take rewards, amounts and repeats at the same time, and have the same bytes at the end."""
    monkeypatch.setattr(replica, "PULSE", 1e6)

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await one.put("e", "k", lambda each: each.number, **SETTINGS, guardrails=[ERROR], metrics=["cost"])

            async def call(number):
                deciding, rewarding = (one, two) if number % 2 else (two, one)
                for k in range(8):
                    made = await deciding.change("e", lambda each: each.decide())
                    id, error = made.event.id, float(made.payload.arm == "b")
                    for server in (one, two):
                        add = partial(LiveExperiment.add, id=id, value=0.5, part=str(k))
                        await server.change("e", add, ids=(id, events.amount_id(id, str(k))), closes=True)
                    learn = partial(LiveExperiment.reward, id=id, value=1.0, metrics={"error": error, "cost": k})
                    learned = await rewarding.change("e", learn, ids=(id,), closes=True)
                    assert learned.payload.value == 1.5
                    late = await deciding.change("e", add, ids=(id, events.amount_id(id, str(k))), closes=True)
                    assert late.replayed

            await asyncio.gather(*map(call, range(6)))
            states = [await each.read("e", lambda seen: seen.snapshot().content) for each in (one, two)]
            assert states[0] == states[1]
            arms = await two.read("e", lambda seen: seen.bandit.states)
            assert arms == {"a": "active", "b": "paused", "c": "active"}

    asyncio.run(test())
