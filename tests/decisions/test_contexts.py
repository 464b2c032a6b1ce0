"""Features in an experiment of the service: what is learned and stored, and that every fold of the log has the same bytes."""

import asyncio
from functools import partial

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.engines import SETTINGS, running_engine
from helpers.engines import running_replica as running
from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import events, replica
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import LONGEST_FEATURES, checked_settings
from robandit.errors import Conflict, CorruptFile, InvalidInput, NotApplicable

NAME = "e"
FEATURES = {
    "tokens": {"type": "number", "log": True},
    "region": {"type": "category", "values": ["eu", "us"]},
    "customer": {"type": "category", "buckets": 3, "missing": True},
}


def raw(context):
    return msgspec.Raw(msgspec.json.encode(context))


def journal_of(policy="LinUCB(alpha=2.0)", **settings):
    return Journal(policy=policy, features=FEATURES, minimize=True, **settings)


def contexts(count, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(count):
        context = {"region": str(rng.choice(["eu", "us"])), "tokens": float(np.exp(rng.normal(5.0, 1.0))), "note": [i]}
        yield context | ({"customer": int(rng.integers(9))} if i % 3 else {})


def drive(journal, count=130, seed=0):
    """Use everything that an experiment with features can do. Return the library's calls that say the same."""
    rng, open_ids, calls = np.random.default_rng(seed), [], []
    for i, context in enumerate(contexts(count, seed)):
        experiment = journal.experiment
        journal.clock.now += 1.0
        asked = {"arm": "b"} if i % 13 == 5 else {"among": ["a", "c"]} if i % 7 == 3 else {}
        made = experiment.decide(f"{seed}-{i}" if i % 2 else None, context=raw(context), **asked)
        open_ids.append(made.event.id)
        calls.append(("decide", asked, context))
        if len(open_ids) > 5:
            place = int(rng.integers(len(open_ids)))
            cost = float(rng.pareto(1.8)) + 2.0 * (context["region"] == "eu")
            experiment.reward(open_ids.pop(place), cost)
            calls.append(("reward", place, cost))
    return calls


def same_after_a_restart(journal):
    assert journal.folded().snapshot().content == journal.snapshot()
    for place in (len(journal.events), len(journal.events) // 2, 3):
        snapshot = journal.folded(upto=place).snapshot().content
        assert journal.folded(snapshot).snapshot().content == journal.snapshot()


@pytest.mark.parametrize("policy", [None, "LinUCB(alpha=2.0)", "LinTS", "PerCell(UCB1(), limit=8)"])
def test_an_experiment_does_what_a_bandit_does_with_the_same_calls(policy):
    count = 130 if policy else 30  # draws of AdaClipTS are slow as plain Python
    journal = journal_of(policy, floor=None if policy else 0.1)
    calls = drive(journal, count)
    settings = journal.settings
    bandit = rb.Bandit(
        settings.arms,
        settings.made_policy(),
        settings.drawn,
        minimize=True,
        max_open=settings.max_open,
        features=FEATURES,
        clock=lambda: 1.0,
        compile="never",
    )
    arms, open_decisions = [], []
    for name, *given in calls:
        if name == "reward":
            bandit.reward(open_decisions.pop(given[0]), given[1])
            continue
        asked, context = given
        declared = {name: context[name] for name in FEATURES if name in context}
        open_decisions.append(bandit.decide(context=declared, **asked))
        arms.append((open_decisions[-1].arm, open_decisions[-1].propensity))
    made = [events.payload_of(event) for event in journal.events if event.kind == "decided"]
    assert repr([(each.arm, each.propensity_or_nan) for each in made]) == repr(arms)
    assert repr(journal.experiment.bandit.estimates()) == repr(bandit.estimates())
    last = next(reversed(list(contexts(count))))
    answer = journal.experiment.explained(raw(last))
    assert repr(answer) == repr(bandit.explain(context={name: last[name] for name in FEATURES if name in last}))
    same_after_a_restart(journal)


def test_the_scale_of_a_number_is_an_event_and_a_late_reward_has_its_x():
    journal = journal_of()
    drive(journal, 110)
    kinds = [event.kind for event in journal.events]
    place = kinds.index("scaled")
    assert kinds.count("scaled") == 1
    assert kinds[:place].count("decided") == 100
    scaled = events.payload_of(journal.events[place])
    logs = np.log([each["tokens"] for each in contexts(100)])
    assert scaled.feature == "tokens"
    assert scaled.center == pytest.approx(np.median(logs))
    made = [events.payload_of(event) for event in journal.events if event.kind == "decided"]
    assert {each.x[1] for each in made[:100]} == {0.0}
    tokens = list(contexts(101))[100]["tokens"]
    assert made[100].x[1] == pytest.approx((np.log(tokens) - scaled.center) / scaled.scale)
    assert (made[0].unscaled, made[100].unscaled) == ((pytest.approx(logs[0]),), ())


def test_a_log_that_ends_before_the_scale_makes_up_for_it():
    """A crash may lose the last events. The next decision fixes the same scale."""
    journal = journal_of()
    drive(journal, 100)
    place = next(i for i, event in enumerate(journal.events) if event.kind == "scaled")
    lost = journal.events[place]
    for event in journal.events[place:]:
        del journal.by_id[event.kind, event.id]
    del journal.events[place:]
    journal.restart()
    journal.experiment.decide(context=raw({"tokens": 5.0, "region": "eu"}))
    assert events.payload_of(journal.events[-1]) == events.payload_of(lost)
    same_after_a_restart(journal)


def test_undeclared_fields_are_stored_and_teach_nothing():
    one, other = journal_of(), journal_of()
    for journal, extra in ((one, {}), (other, {"customer id": 17, "tokens2": [1]})):
        for i in range(8):
            made = journal.experiment.decide(context=raw({"tokens": 5.0 + i, "region": "eu"} | extra))
            journal.experiment.reward(made.event.id, float(i))
    stored = [events.decoded(events.payload_of(event).context) for event in other.events if event.kind == "decided"]
    assert stored[0] == {"tokens": 5.0, "region": "eu", "customer id": 17, "tokens2": [1]}
    mine, theirs = (journal.experiment.bandit for journal in (one, other))
    assert repr(mine.estimates()) == repr(theirs.estimates())
    assert mine.explain(context={"tokens": 5, "region": "us"}) == theirs.explain(context={"tokens": 5, "region": "us"})


@pytest.mark.parametrize(
    ("context", "parameter"),
    [
        (msgspec.UNSET, "context"),
        (raw(None), "context"),
        (raw([1]), "context"),
        (raw({"tokens": 5.0}), "context"),
        (raw({"tokens": 0.0, "region": "eu"}), "context['tokens']"),
        (raw({"tokens": "5", "region": "eu"}), "context['tokens']"),
        (raw({"tokens": True, "region": "eu"}), "context['tokens']"),
        (raw({"tokens": 5.0, "region": "asia"}), "context['region']"),
        (raw({"tokens": 5.0, "region": 1.5}), "context['region']"),
        (raw({"tokens": 5.0, "region": "eu", "customer": {}}), "context['customer']"),
    ],
)
def test_bad_contexts_change_nothing(context, parameter):
    journal = journal_of()
    drive(journal, 10)
    before, events_before = journal.snapshot(), len(journal.events)
    for given in ({}, {"arm": "a"}):
        with raises(InvalidInput, parameter=parameter):
            journal.experiment.decide("new", context=context, **given)
    assert (journal.snapshot(), len(journal.events)) == (before, events_before)
    journal.experiment.decide("new", context=raw({"tokens": 5.0, "region": "eu"}))
    same_after_a_restart(journal)


def test_a_repeated_id_gives_the_same_decision_also_after_the_scale():
    journal = journal_of()
    context = raw({"tokens": 5.0, "region": "eu"})
    first = journal.experiment.decide("mine", context=context)
    drive(journal, 105)
    again = journal.experiment.decide("mine", context=raw({"region": "eu", "tokens": 5.0}))
    assert (again.event, again.replayed) == (first.event, True)
    with raises(Conflict, parameter="id"):
        journal.experiment.decide("mine", context=raw({"tokens": 5.0, "region": "us"}))


@pytest.mark.parametrize("on_expiry", ["drop", 9.0])
def test_expiry_reset_and_arms(on_expiry):
    journal = journal_of(reward_window=10.0, on_expiry=on_expiry)
    drive(journal, 30)
    journal.clock.now += 20.0
    assert journal.experiment.expire_due() == 5
    journal.experiment.add_arm("d")
    journal.experiment.change_arm("a", "retired")
    drive(journal, 105, seed=2)
    same_after_a_restart(journal)
    journal.experiment.reset(drawn=1)
    assert not journal.experiment.bandit.open_count
    drive(journal, 105, seed=3)
    assert sum(event.kind == "scaled" for event in journal.events) == 2, "a reset forgets the scale, too"
    same_after_a_restart(journal)


def test_a_damaged_x_is_refused_by_name():
    journal = journal_of()
    drive(journal, 5)
    place = next(i for i, event in enumerate(journal.events) if event.kind == "decided")
    event = journal.events[place]
    bad = msgspec.structs.replace(events.payload_of(event), x=(1.0, 2.0))
    damaged = [*journal.events[:place], event._replace(payload=events.encode(bad)), *journal.events[place + 1 :]]
    with raises(CorruptFile, match="x = "):
        journal.folded(events=damaged)


def test_there_is_no_allocation():
    journal = journal_of()
    with raises(Conflict, code="no-allocation", match="ask the service"):
        journal.experiment.allocation(1.0)
    with raises(NotApplicable):
        journal.experiment.allocating(1.0)


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"features": {}}, "features"),
        ({"features": {"a": {"type": "numbr"}}}, "features"),
        ({"features": {"a": {"type": []}}}, "features"),
        ({"features": {"a": {"type": "number", "lgo": True}}}, "features"),
        ({"features": {"a": {"type": "number", "center": 1.0}}}, "features"),
        ({"features": {"a": {"type": "category", "values": [2**70]}}}, "features"),
        ({"features": {"": {"type": "number"}}}, "features"),
        ({"features": {"intercept": {"type": "number"}}}, "features"),
        ({"features": {"a": {"type": "category", "values": [1, "1"]}}}, "features"),
        ({"features": {"a" * LONGEST_FEATURES: {"type": "number"}}}, "features"),
        ({"features": {name: {"type": "category", "buckets": 40} for name in "ab"}}, "features"),
        ({"features": FEATURES, "policy": "UCB1"}, "policy"),
        ({"features": FEATURES, "policy": "LinUCB(d=3)"}, "policy"),
        ({"features": FEATURES, "policy": "Restarting(LinUCB())"}, "policy"),
        ({"features": FEATURES, "objective": "p95"}, "objective"),
        ({"features": FEATURES, "deadline": 5.0}, "deadline"),
        ({"policy": "LinUCB"}, "features"),
        ({"features": FEATURES, "sticky_for": 60.0}, "sticky_for"),
        ({"features": FEATURES, "cap": 5.0}, "cap"),
    ],
)
def test_settings_that_do_not_fit(settings, parameter):
    with raises(InvalidInput, parameter=parameter):
        Journal(**{"policy": None, "minimize": True} | settings)


def test_settings_keep_their_defaults_and_conflict_by_name():
    one = checked_settings(**SETTINGS | {"policy": None}, drawn=1, features=FEATURES)
    assert one.policy["policy"] == "AdaClipTS"
    assert one.features["region"] == rb.Category(["eu", "us"]).to_dict()
    stored = msgspec.json.decode(msgspec.json.encode(one), type=type(one))
    assert stored == one
    assert list(stored.features) == list(FEATURES), "the order of the columns"
    other = checked_settings(**SETTINGS | {"policy": None}, drawn=1, features=FEATURES | {"tokens": {"type": "number"}})
    assert one.first_difference(other).startswith("features is ")


def test_a_restart_keeps_what_was_learned(tmp_path):
    asked = [raw(each) for each in contexts(103)]

    async def test():
        settings = SETTINGS | {"policy": "LinUCB"}
        for kill, part in ((True, asked[:60]), (False, asked[60:102]), (True, asked[102:])):
            async with running_engine(tmp_path / "robandit.db", kill=kill) as engine:
                engine.create(NAME, **settings, features=FEATURES)
                for context in part:
                    made = await engine.change(NAME, partial(LiveExperiment.decide, context=context))
                    await engine.change(NAME, partial(LiveExperiment.reward, id=made.event.id, value=1.0))
        assert made.payload.x[1] != 0.0

    asyncio.run(test())


def test_all_servers_have_the_same_state(postgres_url, monkeypatch):
    """Two servers decide in turns, and one of them fixes the scale."""
    monkeypatch.setattr(replica, "PULSE", 1e6)
    asked = [raw(each) for each in contexts(120)]

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            settings = SETTINGS | {"policy": "LinUCB"}
            await one.put(NAME, "k", lambda each: each.number, **settings, features=FEATURES)

            async def call(k):
                deciding, rewarding = (one, two) if k % 2 else (two, one)
                for context in asked[k::6]:
                    made = await deciding.change(NAME, partial(LiveExperiment.decide, context=context))
                    learn = partial(LiveExperiment.reward, id=made.event.id, value=float(k))
                    await rewarding.change(NAME, learn, ids=(made.event.id,), closes=True)

            await asyncio.gather(*map(call, range(6)))
            states = [await each.read(NAME, lambda seen: seen.snapshot().content) for each in (one, two)]
            counts = await one.read(NAME, lambda seen: seen.counts)
            assert states[0] == states[1]
            assert (counts["decided"], counts["scaled"]) == (120, 1)

    asyncio.run(test())
