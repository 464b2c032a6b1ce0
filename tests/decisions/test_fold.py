"""The state of an experiment is a fold of its log: snapshot and tail give the same bytes as the whole log, and as the live one."""

import json
import random

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.amount import amount
from helpers.journals import Journal
from helpers.rewards import rewards_within
from robandit import __version__
from robandit.decisions import events
from robandit.decisions.edges import Observation
from robandit.decisions.events import KINDS, decoded, payload_of
from robandit.errors import CorruptFile, RobanditError
from robandit.live.engine import RunningPolicy
from robandit.live.guardrails import Broken, Guardrail
from robandit.storage import Event

POLICIES = [
    "AdaKLUCB()",
    "UCB1()",
    "EpsilonGreedy(epsilon=0.4)",
    "Ada2TINF()",
    "HTINF(eps=0.5, u=2)",
    "Restarting(UCB1())",
    "Probing(UCB1())",
    "DirichletSampling()",
    "GaussianTS()",
]
SLOW = {"GaussianTS()"}  # interpreted, the probability of a choice takes 20 ms
OPTIONS = [
    {},
    {"reward_window": 30.0, "minimize": True, "max_open": 6},
    {"reward_window": 20.0, "on_expiry": -2.5, "max_open": 4},
    {"reward_window": 20.0, "sticky_for": 12.0, "max_open": 8},
    {"reward_window": 12.0, "sticky_for": 30.0, "on_expiry": -2.5},
    {"reward_window": 20.0, "sticky_for": 12.0, "metrics": ["cost"], "guardrails": [Guardrail("error", at_most=0.05)]},
]
KIND_OF_STEPS = "mmmm++ddccngrrrrrRkKetxTxpqaAPQzu!!syyYloOorr"


def take(journal, steps):
    """Let an experiment go through random calls. Calls that are refused must change nothing. Return snapshots on the way."""
    snapshots = []
    for kind, i, value in steps:
        experiment, before = journal.experiment, (len(journal.events), journal.snapshot())
        arms = experiment.bandit.arms
        arm = arms[i % len(arms)]
        ids = [event.id for event in journal.events if event.kind == "decided"]
        id = ids[-1 - i % len(ids)] if ids else "none"
        try:
            if kind == "d":
                experiment.decide()
            elif kind == "c":
                experiment.decide(f"client {len(journal.events)}", context=msgspec.Raw(json.dumps([i, value]).encode()))
            elif kind in "yY":
                experiment.decide(unit=f"unit {i % 3}", among=arms[i % len(arms) :] if kind == "Y" else None)
            elif kind == "n":
                experiment.decide(among=arms[i % len(arms) :])
            elif kind == "g":
                experiment.decide(f"given {len(journal.events)}" if i % 2 else None, arm=arm)
            elif kind in "rR":
                experiment.reward(id, value if kind == "r" else float(i))
            elif kind == "m":
                experiment.reward(id, value, {"error": float(i > 0), "cost": value})
            elif kind == "+":
                experiment.add(id, value, f"part-{i}")
            elif kind == "l":
                computed = experiment.allocating(1.0)()
                experiment.allocate(computed, experiment.epoch, f"version {len(journal.events)}")
            elif kind in "oO":
                observe(experiment, i, value if kind == "o" else None)
            elif kind in "kK":
                experiment.decide(id, arm=arm if kind == "K" else None)
            elif kind in "etT":
                journal.clock.now += {"e": 10.0, "t": 0.25, "T": -7.0}[kind] * i
            elif kind == "x":
                experiment.expire_due()
            elif kind in "pqa":
                experiment.change_arm(arm, {"p": "paused", "q": "active", "a": "retired" if i == 4 else "active"}[kind])
            elif kind == "A":
                experiment.add_arm(f"new {len(arms)}")
            elif kind in "PQ":
                experiment.pause() if kind == "P" and i <= 1 else experiment.resume()
            elif kind == "z" and i <= 1:
                experiment.reset(drawn=i)
            elif kind == "u":
                experiment.reward(f"unknown {i}", value)
            elif kind == "s":
                snapshots.append(journal.snapshot())
            elif kind == "!":
                journal.restart(snapshots[-1 - i % len(snapshots)] if snapshots and i else None)
                assert journal.snapshot() == before[1]
        except RobanditError:
            if len(journal.events) == before[0]:
                assert journal.snapshot() == before[1]
    return snapshots


def observe(experiment, i, value):
    """Let an edge report some decisions with the newest allocation, of which some may be known and others have gaps before them."""
    newest = experiment.edges.newest
    if newest is not None:
        given = []
        for k in range(3):
            arm, share = sorted(newest.shares.items())[k % len(newest.shares)]
            end = {"value": value} if value is not None and k != 1 else {"expired": True}
            decided = experiment.time - 12.0 * k
            id = f"life000{i % 2}-{2 * i + 3 * k}"
            given.append(Observation(id, arm, share, newest.version, decided, **end))
        experiment.observe(list(enumerate(given)), {})


def check(journal, snapshots):
    """Check that all ways of folding give the bytes of the live experiment, and the same facts."""
    live = journal.experiment
    expected = journal.snapshot()
    for snapshot in [None, *snapshots]:
        again = journal.folded(snapshot)
        assert again.snapshot().content == expected
        assert repr(again.bandit.estimates()) == repr(live.bandit.estimates())
        assert again.bandit.open == live.bandit.open
        facts = ("seq", "epoch", "paused", "time", "created", "version", "counts")
        assert [getattr(again, name) for name in facts] == [getattr(live, name) for name in facts]
        assert [again.is_open(id) for _, id in journal.by_id] == [live.is_open(id) for _, id in journal.by_id]


steps = st.lists(
    st.tuples(st.sampled_from(KIND_OF_STEPS), st.integers(0, 4), rewards_within(50.0)), min_size=10, max_size=60
)


@pytest.mark.parametrize("policy", [each for each in POLICIES if each not in SLOW])
@settings(max_examples=amount(5, 100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=steps, options=st.sampled_from(OPTIONS))
def test_random_calls(policy, steps, options):
    journal = Journal(policy=policy, **options)
    check(journal, take(journal, steps)[-3:])


@pytest.mark.parametrize("policy", POLICIES)
def test_long_lives(policy):
    """Fixed random numbers, after calls that make an event of every kind."""
    first = [(kind, 4 if kind in "ea" else 1, 0.5) for kind in "crdexrlooOApqaPQs"]
    rng = random.Random(policy)
    found = set()
    for options in OPTIONS:
        count = 25 if policy in SLOW else amount(90, 1000)
        steps = [(rng.choice(KIND_OF_STEPS), rng.choice([0, 1, 1, 2, 3, 4]), rng.gauss(0.0, 3.0)) for _ in range(count)]
        journal = Journal(policy=policy, **options)
        check(journal, take(journal, first + steps)[-4:])
        found |= {event.kind for event in journal.events}
    found |= {"arm_alarmed", "scaled"}  # which are rare: see test_guardrails.py and test_contexts.py
    unknown = {"upgraded"} if journal.experiment.bandit._accepts_updates else {"upgraded", "allocated", "observed"}
    assert policy in SLOW or found == set(KINDS.values()) - unknown


def test_every_prefix_of_a_log_folds_to_what_the_experiment_was_then():
    journal = Journal(reward_window=20.0, on_expiry=0.5)
    rng = random.Random(8)
    then = {}
    for _ in range(200):
        take(journal, [(rng.choice(KIND_OF_STEPS), rng.randrange(5), rng.gauss(0.0, 3.0))])
        then[len(journal.events)] = journal.snapshot()
    assert len(then) > 50
    for upto, expected in then.items():
        assert journal.folded(upto=upto).snapshot().content == expected


def test_another_log_gives_other_bytes():
    """The negative control."""
    journal = Journal()
    for value in (1.0, 2.0, 3.0):
        journal.experiment.reward(journal.experiment.decide().event.id, value)
    expected = journal.snapshot()
    assert journal.folded(upto=-1).snapshot().content != expected
    changed = journal.events[-1]._replace(payload=journal.events[-1].payload.replace(b"3.0", b"3.5"))
    assert journal.folded(events=[*journal.events[:-1], changed]).snapshot().content != expected


# --- recorded, not chosen again ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_processor_that_chooses_otherwise_folds_to_the_same_bytes(policy, monkeypatch):
    journal = Journal(policy=policy)
    for k in range(15 if policy in SLOW else 40):
        id = journal.experiment.decide(None if k % 3 else f"client {k}").event.id
        if k % 4:
            journal.experiment.reward(id, float(k % 5) - 2.0)
    expected = journal.snapshot()
    ask = RunningPolicy.ask
    monkeypatch.setattr(RunningPolicy, "ask", lambda self, among: (ask(self, among) + 1) % len(self.available))
    assert journal.folded().snapshot().content == expected


def test_the_recorded_arm_and_mark_are_applied():
    """Here the log has another arm and mark than the policy would choose."""
    journal = Journal(policy="Ada2TINF()")
    made = journal.experiment.decide("mine")
    other = next(arm for arm in "abc" if arm != made.payload.arm)
    payload = msgspec.structs.replace(made.payload, arm=other, mark=0.0625, propensity=0.0625)
    reward = events.Rewarded(value=2.0, arm=other, decided=made.event.time, propensity=0.0625)
    log = [
        journal.events[0],
        made.event._replace(payload=events.encode(payload)),
        made.event._replace(seq=3, kind="rewarded", payload=events.encode(reward)),
    ]
    experiment = journal.folded(events=log, upto=2)
    (decision,) = experiment.bandit.open
    assert (decision.arm, decision.propensity) == (other, 0.0625)
    assert experiment.bandit._decisions.open[decision.id].mark == 0.0625
    experiment.apply(log[2])
    assert {arm: pulls for arm, _, pulls in experiment.bandit.pulls() if pulls} == {other: 1}
    chosen = journal.folded(upto=2)
    chosen.apply(log[2])
    assert chosen.bandit.estimates() != experiment.bandit.estimates()


def test_the_arm_of_a_reward_follows_from_its_decision():
    journal = Journal()
    made = journal.experiment.decide(arm="c")
    journal.experiment.reward(made.event.id, 1.0)
    assert (made.payload.given, made.payload.asked, made.payload.propensity) == (True, (), "unknown")
    assert payload_of(journal.events[-1]) == events.Rewarded(
        value=1.0, arm="c", decided=journal.clock.now, propensity="unknown"
    )
    assert [pulls for _, _, pulls in journal.folded().bandit.pulls()] == [0, 0, 1]


# --- what is stored ----------------------------------------------------------------------------------------------------------


BROKEN = Broken(Guardrail("latency_ms", quantile=0.95, at_most=2000), 0.1, 30, 4.25)


def test_payloads_of_all_kinds_survive_storing():
    raw = msgspec.Raw(b'{"a":[1,2.50,"\xc3\xa9"]}')
    samples = [
        events.Created(version="1"),
        events.Upgraded(version="2"),
        events.Decided(arm="é", mark=1.0),
        events.Decided(arm="a", mark=0.1, propensity=0.1, own="x-1", asked=(("a", "b"), None), among=("a", "b")),
        events.Decided(arm="a", mark=1.0, propensity="unknown", asked=(), given=True, context=raw),
        events.Decided(arm="a", mark=1.0, x=(1.0, -0.0, 5e-324), asked_x=((1.0, 2.0, 0.1),), unscaled=(0.1, None)),
        events.Scaled(feature="é", center=-0.1, scale=1e-9),
        events.Rewarded(value=5e-324, arm="a", decided=1.5),
        events.Rewarded(value=-0.0, arm="a", decided=1.5, propensity="unknown"),
        events.Rewarded(value=3.0, arm="a", decided=1.5, metrics={"error": 1.0}, amount=-0.5),
        events.Added(value=-0.0, part="p", arm="a", decided=1.5),
        events.Late(value=1.0, arm="a", decided=1.5, reason="window", part="p", metrics={"é": 0.1}, amount=0.5),
        events.Expired(arm="a", decided=1.5),
        events.Expired(arm="a", decided=1.5, value=0.0, propensity=1.0),
        events.Late(value=1e150, arm="a", decided=1.5, reason="window"),
        events.Allocated(arms=("a", "é"), probabilities=(0.1, 0.9), valid_for=0.1, decisions=3),
        events.Observations(
            lives=("life0001",), draws=(("v", "é", 0.9),), numbers=(3, 4), decided=(0.1, 0.2), values=(-0.0, None)
        ),
        events.ArmAdded(arm="a"),
        events.ArmPaused(arm="a"),
        events.ArmPaused(arm="a", guardrail=BROKEN),
        events.ArmAlarmed(arm="a", guardrail=BROKEN),
        events.ArmResumed(arm="a"),
        events.ArmRetired(arm="a"),
        events.Paused(),
        events.Resumed(),
        events.Reset(seed=2**63 - 1),
    ]
    assert {type(each) for each in samples} == set(KINDS)
    for sample in samples:
        stored = journal_event(sample)
        again = payload_of(stored)
        assert again == sample
        assert events.encode(again) == stored.payload
    assert bytes(payload_of(journal_event(samples[4])).context) == bytes(raw)
    assert decoded(raw) == {"a": [1, 2.5, "é"]}
    assert decoded(msgspec.UNSET) is None


def journal_event(payload):
    return Event(1, 1, KINDS[type(payload)], "id", events.encode(payload), 0.0)


def test_fields_with_their_defaults_are_not_written():
    assert events.encode(events.Decided(arm="a", mark=1.0)) == b'{"arm":"a","mark":1.0}'
    assert events.encode(events.Expired(arm="a", decided=2.0)) == b'{"arm":"a","decided":2.0}'
    made = Journal().experiment.decide()
    assert made.event.payload == b'{"asked":[null],"arm":"%s","mark":1.0,"rule":1}' % made.payload.arm.encode()


def test_unknown_fields_of_later_versions_are_ignored():
    journal = Journal()
    journal.experiment.decide()
    later = [
        each._replace(payload=each.payload[:-1] + b',"later":[1]}' if each.payload != b"{}" else each.payload)
        for each in journal.events
    ]
    assert journal.folded(events=later).snapshot().content == journal.snapshot()


# --- damaged logs ------------------------------------------------------------------------------------------------------------


def spoiled(journal, place, **changes):
    log = list(journal.events)
    log[place] = log[place]._replace(**changes)
    return log


@pytest.fixture
def lived():
    journal = Journal()
    first = journal.experiment.decide("first").event.id
    journal.experiment.decide("second")
    journal.experiment.reward(first, 1.5)
    journal.experiment.change_arm("c", "paused")
    return journal


TOO_LARGE = b'{"value":1e200,"arm":"a","decided":0}'
SPOILED = {
    "not JSON": (1, {"payload": b"{"}, "event 2 of experiment 1 is damaged"),
    "no object": (1, {"payload": b"[]"}, "event 2 of experiment 1 is damaged"),
    "a missing field": (1, {"payload": b'{"arm":"a"}'}, "event 2 of experiment 1 is damaged"),
    "another type": (3, {"payload": b'{"value":"1","arm":"a","decided":0}'}, "event 4 of experiment 1 is damaged"),
    "no UTF-8": (1, {"payload": b'{"arm":"\xff","mark":1.0}'}, "event 2 of experiment 1 is damaged"),
    "an unknown kind": (2, {"kind": "paid"}, "event 3 of experiment 1 is of the unknown kind 'paid': upgrade robandit"),
    "a gap": (3, {"seq": 5}, "event 4 of experiment 'test' is missing: restore a backup"),
    "twice": (3, {"seq": 3}, "event 4 of experiment 'test' is missing: restore a backup"),
    "an unknown arm": (
        1,
        {"payload": b'{"arm":"x","mark":1.0,"own":"k3m9-0"}'},
        "event 2 of experiment 'test' does not fit",
    ),
    "an invalid id": (1, {"payload": b'{"arm":"a","mark":1.0,"own":"?"}'}, "event 2 of experiment 'test' does not fit"),
    "a reward of another decision": (3, {"id": "third"}, "event 4 of experiment 'test' does not fit"),
    "a reward that is too large": (3, {"payload": TOO_LARGE}, "event 4 of experiment 'test' does not fit"),
    "an arm that is not paused": (4, {"kind": "arm_resumed"}, "event 5 of experiment 'test' does not fit"),
}


@pytest.mark.parametrize(("place", "changes", "message"), SPOILED.values(), ids=SPOILED)
def test_a_damaged_event_is_refused_by_name(lived, place, changes, message):
    with pytest.raises(CorruptFile) as raised:
        lived.folded(events=spoiled(lived, place, **changes))
    assert str(raised.value).startswith(message)
    assert "upgrade robandit" in str(raised.value) or "restore a backup" in str(raised.value)
    assert len(str(raised.value)) < 400


# --- snapshots ---------------------------------------------------------------------------------------------------------------


def test_every_damaged_snapshot_is_refused(lived):
    content = lived.snapshot()
    assert content[:4] == b"\1\0\0\0"
    for place in range(0, len(content), 7):
        spoiled = bytearray(content)
        spoiled[place] ^= 1 << place % 8
        with pytest.raises(CorruptFile, match="a snapshot of experiment 'test' is damaged, or has another format"):
            lived.folded(bytes(spoiled))
    for length in (0, 3, 35, 36, len(content) - 1):
        with pytest.raises(CorruptFile):
            lived.folded(content[:length])
    with pytest.raises(CorruptFile, match="another format"):
        lived.folded(b"\2" + content[1:])


def test_a_refused_snapshot_changes_nothing(lived):
    before = lived.snapshot()
    with pytest.raises(CorruptFile):
        lived.experiment.restore(before[:-1] + b"?")
    assert lived.snapshot() == before


def test_taking_a_snapshot_changes_nothing(lived):
    expected = lived.snapshot()
    assert lived.snapshot() == lived.snapshot() == expected
    lived.experiment.bandit.estimates()
    lived.experiment.bandit.diagnose()
    assert lived.snapshot() == expected


# --- versions ----------------------------------------------------------------------------------------------------------------


def test_another_version_is_recorded_once(monkeypatch):
    journal = Journal()
    assert payload_of(journal.events[0]) == events.Created(version=__version__)
    journal.experiment.upgrade()
    assert len(journal.events) == 1
    monkeypatch.setattr("robandit.decisions.experiment.__version__", "99.1")
    for snapshot in (None, journal.snapshot()):
        assert journal.folded(snapshot).version == __version__
    for _ in range(3):
        journal.restart().upgrade()
    assert [payload_of(event) for event in journal.events[1:]] == [events.Upgraded(version="99.1")]
    assert journal.experiment.version == journal.folded().version == "99.1"
    assert journal.experiment.created == journal.events[0].time
    check(journal, [])
