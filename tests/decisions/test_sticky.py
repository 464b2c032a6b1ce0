"""Sticky units in an experiment of the service: what is stored, what is learned, and that all servers agree."""

import asyncio
from functools import partial

import pytest

from helpers.engines import SETTINGS, running_engine
from helpers.engines import running_replica as running
from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import events, replica
from robandit.decisions.engine import outcome_of
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import checked_settings
from robandit.errors import Conflict, InvalidInput, NotFound

NAME = "e"


def rewards_of(experiment):
    return sum(pulls for _, _, pulls in experiment.bandit.pulls())


def same_after_a_restart(journal):
    assert journal.folded().snapshot().content == journal.snapshot()
    assert journal.folded(journal.snapshot()).snapshot().content == journal.snapshot()


def test_a_unit_keeps_its_arm_and_teaches_once():
    journal = Journal(sticky_for=60.0)
    experiment = journal.experiment
    first, other, again = (experiment.decide(unit=unit) for unit in ("ann", "bob", "ann"))
    assert (first.payload.unit, first.payload.repeat, first.payload.asked) == ("ann", False, (None,))
    assert (again.payload.unit, again.payload.repeat, again.payload.asked) == ("ann", True, ())
    assert again.payload.arm == first.payload.arm != other.payload.arm
    assert again.event.id != first.event.id
    learned = experiment.reward(
        again.event.id, 2.0
    )  # the first reward that comes teaches, whichever decision it belongs to
    assert isinstance(learned.payload, events.Rewarded)
    late = experiment.reward(first.event.id, 5.0)
    assert late.payload == events.Late(value=5.0, arm="a", decided=first.event.time, reason="assignment")
    assert (outcome_of(late), rewards_of(experiment), experiment.bandit.open_count) == ("applied", 1, 1)
    assert experiment.reward(first.event.id, 5.0).replayed
    with raises(Conflict, parameter="value"):
        experiment.reward(first.event.id, 6.0)
    assert experiment.counts["repeat"] == experiment.counts["unlearned"] == 1
    same_after_a_restart(journal)


def test_the_id_of_a_client_may_not_be_used_for_another_unit():
    experiment = Journal(sticky_for=60.0).experiment
    made = experiment.decide("mine", unit="ann")
    assert experiment.decide("mine", unit="ann").event == made.event
    for unit in ("bob", None):
        with raises(Conflict, parameter="id"):
            experiment.decide("mine", unit=unit)
    repeat = experiment.decide("second", unit="ann")
    assert repeat.payload.repeat
    assert experiment.decide("second", unit="ann").event == repeat.event
    assert experiment.reward("second", 1.0).payload.value == 1.0


def test_a_unit_needs_a_sticky_experiment():
    journal = Journal()
    with raises(InvalidInput, parameter="unit", match="sticky_for"):
        journal.experiment.decide(unit="ann")
    assert len(journal.events) == 1


def test_a_paused_arm_is_replaced_and_a_paused_experiment_makes_no_repeats():
    journal = Journal(sticky_for=60.0)
    experiment = journal.experiment
    first = experiment.decide(unit="ann")
    experiment.pause()
    with raises(Conflict, code="paused"):
        experiment.decide(unit="ann")
    experiment.resume()
    experiment.change_arm(first.payload.arm, "paused")
    second = experiment.decide(unit="ann")
    assert not second.payload.repeat
    experiment.change_arm(first.payload.arm, "active")
    assert experiment.decide(unit="ann").payload.arm == second.payload.arm != first.payload.arm
    third = experiment.decide(unit="ann", among=[first.payload.arm])
    assert (third.payload.repeat, third.payload.arm) == (False, first.payload.arm)
    same_after_a_restart(journal)


def test_a_reset_forgets_the_units():
    journal = Journal(sticky_for=60.0)
    journal.experiment.decide(unit="ann")
    journal.experiment.reset(drawn=1)
    assert not journal.experiment.decide(unit="ann").payload.repeat
    same_after_a_restart(journal)


@pytest.mark.parametrize("on_expiry", ["drop", -3.0])
def test_decisions_that_expire(on_expiry):
    """The value of an expiry is learned in place of the first reward, and never twice."""
    journal = Journal(sticky_for=60.0, reward_window=10.0, on_expiry=on_expiry)
    experiment = journal.experiment
    for _ in range(3):
        experiment.decide(unit="ann")
    journal.clock.now += 11.0
    last = experiment.decide(unit="ann")
    assert experiment.expire_due() == 3
    values = [events.payload_of(event).value for event in journal.events if event.kind == "expired"]
    assert values == ([None] * 3 if on_expiry == "drop" else [-3.0, None, None])
    assert last.payload.repeat
    learned = experiment.reward(last.event.id, 1.0)
    assert learned.event.kind == ("rewarded" if on_expiry == "drop" else "late")
    assert rewards_of(experiment) == 1
    same_after_a_restart(journal)


def test_settings_that_differ_in_sticky_for_conflict():
    one, other = (checked_settings(**SETTINGS, drawn=1, sticky_for=each) for each in (60.0, None))
    assert one.first_difference(other) == "sticky_for is 60.0, not null"
    for value in (0.0, -1.0, 1e30):
        with raises(InvalidInput, parameter="sticky_for"):
            checked_settings(**SETTINGS, drawn=1, sticky_for=value)


def test_a_restart_keeps_units(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as engine:
            engine.create(NAME, **SETTINGS, sticky_for=60.0)
            first = await engine.change(NAME, lambda each: each.decide(unit="ann"))
        for kill in (True, False):
            async with running_engine(tmp_path / "robandit.db", kill=kill) as engine:
                again = await engine.change(NAME, lambda each: each.decide(unit="ann"))
                assert (again.payload.repeat, again.payload.arm) == (True, first.payload.arm)

    asyncio.run(test())


def test_a_unit_has_one_arm_on_all_servers(postgres_url, monkeypatch):
    """Callers on two servers decide for the same units at the same time: each has one arm, and teaches once."""
    monkeypatch.setattr(replica, "PULSE", 1e6)

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await one.put(NAME, "k", lambda each: each.number, **SETTINGS | {"policy": "Uniform()"}, sticky_for=3600.0)
            with raises(NotFound):
                await two.change("other", lambda each: each.decide(unit="ann"))
            arms, learned = {}, []

            async def call(number):
                deciding, rewarding = (one, two) if number % 2 else (two, one)
                for k in range(8):
                    unit = f"user {(number // 2 + k) % 5}"
                    made = await deciding.change(NAME, partial(LiveExperiment.decide, unit=unit))
                    arms.setdefault(unit, []).append((made.payload.arm, made.payload.repeat))
                    learn = partial(LiveExperiment.reward, id=made.event.id, value=1.0)
                    rewarded = await rewarding.change(NAME, learn, ids=(made.event.id,), closes=True)
                    learned.append(rewarded.event.kind)

            await asyncio.gather(*map(call, range(12)))
            assert len(arms) == 5
            for answers in arms.values():
                assert len({arm for arm, _ in answers}) == 1
                assert sum(not repeat for _, repeat in answers) == 1
            assert len({answers[0][0] for answers in arms.values()}) > 1, "not all units have the same arm"
            assert sorted(learned) == ["late"] * (96 - 5) + ["rewarded"] * 5
            states = [await each.read(NAME, lambda seen: seen.snapshot().content) for each in (one, two)]
            assert states[0] == states[1]

    asyncio.run(test())
