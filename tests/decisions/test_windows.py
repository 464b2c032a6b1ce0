"""Windows and expiry, with a clock that the test moves: at the boundary, across restarts, forwards and backwards."""

import hashlib
import math

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.amount import amount
from helpers.invalid import raises
from helpers.journals import Journal
from helpers.serving import Clock
from robandit.decisions import events
from robandit.decisions import experiment as experiments
from robandit.decisions.events import payload_of
from robandit.errors import Conflict, InvalidInput, NotFound, Overloaded, UnknownArm

START = 1_800_000_000.0
JUST = 2.0**-22  # the next number after START
WINDOW = 60.0


@pytest.fixture
def clock():
    return Clock(START)


@pytest.fixture
def journal(clock):
    return Journal(clock, reward_window=WINDOW)


def restarts(journal):
    """Return ways to continue: not at all, from the log, and from a snapshot."""
    return [lambda: None, journal.restart, lambda: journal.restart(journal.snapshot())]


RESTARTS = pytest.mark.parametrize("restart", [0, 1, 2], ids=["none", "log", "snapshot"])


def kinds(journal):
    return [event.kind for event in journal.events]


# --- the boundary ---------------------------------------------------------------------------------------------------------------


@RESTARTS
@pytest.mark.parametrize("id", [None, "mine"])
def test_a_reward_at_the_end_of_the_window_counts(journal, clock, restart, id):
    made = journal.experiment.decide(id)
    restarts(journal)[restart]()
    clock.now = START + WINDOW
    assert journal.experiment.expire_due() == 0
    reward = journal.experiment.reward(made.event.id, 1.5)
    assert reward.payload == events.Rewarded(value=1.5, arm="a", decided=START)
    assert [pulls for _, _, pulls in journal.experiment.bandit.pulls()] == [1, 0, 0]


@RESTARTS
@pytest.mark.parametrize("id", [None, "mine"])
@pytest.mark.parametrize("swept", [False, True])
def test_a_reward_right_after_the_window_is_late(journal, clock, restart, id, swept):
    made = journal.experiment.decide(id)
    clock.now = START + WINDOW + JUST
    restarts(journal)[restart]()
    if swept:
        assert journal.experiment.expire_due() == 1
    late = journal.experiment.reward(made.event.id, 1.5)
    assert late.payload == events.Late(value=1.5, arm="a", decided=START, reason="window")
    assert kinds(journal) == ["created", "decided", "expired", "late"]
    assert payload_of(journal.events[2]) == events.Expired(arm="a", decided=START)
    assert [pulls for _, _, pulls in journal.experiment.bandit.pulls()] == [0, 0, 0]
    assert journal.experiment.bandit.open_count == 0
    restarts(journal)[restart]()
    assert journal.experiment.reward(made.event.id, 1.5).replayed
    with raises(Conflict, parameter="value"):
        journal.experiment.reward(made.event.id, 2.5)
    assert len(journal.events) == 4


@settings(max_examples=amount(50, 1000), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    start=st.floats(0.0, 4e9),
    window=st.floats(1e-3, 1e8),
    steps=st.integers(-3, 3),
)
def test_the_search_for_expired_decisions_and_rewards_agree_at_the_boundary(start, window, steps):
    """Rounding may move the boundary by the distance of two floats. It moves it in the same way for both."""
    moment = start + window
    for _ in range(abs(steps)):
        moment = math.nextafter(moment, math.inf if steps > 0 else -math.inf)
    journals = [Journal(Clock(start), reward_window=window) for _ in range(2)]
    for journal in journals:
        journal.experiment.decide("mine")
        journal.clock.now = moment
    swept = journals[0].experiment.expire_due() == 1
    late = isinstance(journals[1].experiment.reward("mine", 1.0).payload, events.Late)
    assert swept == late
    if moment < start + window * (1 - 1e-9) - 1e-6:
        assert not late
    if moment > start + window * (1 + 1e-9) + 1e-6:
        assert late


def test_without_a_window_nothing_expires(clock):
    journal = Journal(clock)
    made = journal.experiment.decide()
    clock.now = START + 1e9
    assert journal.experiment.expire_due() == 0
    assert isinstance(journal.experiment.reward(made.event.id, 1.0).payload, events.Rewarded)


# --- clocks ---------------------------------------------------------------------------------------------------------------------


@RESTARTS
def test_a_clock_that_goes_backwards(journal, clock, restart):
    """Times in the log never decrease, and a decision is never open for longer than its window because of it."""
    clock.now = START + 10.0
    first = journal.experiment.decide()
    clock.now = START - 1000.0
    restarts(journal)[restart]()
    second = journal.experiment.decide()
    assert [event.time for event in journal.events] == [START, START + 10.0, START + 10.0]
    clock.now = START + 10.0 + WINDOW
    assert journal.experiment.expire_due() == 0
    restarts(journal)[restart]()
    clock.now = START + 10.0 + WINDOW + JUST
    assert journal.experiment.expire_due() == 2
    clock.now = START - 5000.0
    restarts(journal)[restart]()
    for made in (first, second):
        late = journal.experiment.reward(made.event.id, 1.0)
        assert late.payload.reason == "window"
        assert late.event.time == START + 10.0 + WINDOW + JUST


@RESTARTS
def test_a_clock_that_jumps_forwards_and_back(journal, clock, restart):
    """What expired while the clock was wrong stays expired. New decisions do not expire before the clock has caught up."""
    early = journal.experiment.decide()
    clock.now = START + 1e6
    assert journal.experiment.expire_due() == 1
    clock.now = START + 1.0
    restarts(journal)[restart]()
    made = journal.experiment.decide()
    assert made.event.time == START + 1e6
    assert journal.experiment.reward(early.event.id, 1.0).payload.reason == "window"
    clock.now = START + 1e6 + WINDOW
    assert isinstance(journal.experiment.reward(made.event.id, 1.0).payload, events.Rewarded)


def test_refused_calls_do_not_move_the_time(journal, clock):
    journal.experiment.decide()
    clock.now = START + 5.0
    before = journal.snapshot()
    with pytest.raises(InvalidInput):
        journal.experiment.decide("")
    with raises(UnknownArm, parameter="arm"):
        journal.experiment.decide(among=["x"])
    with raises(NotFound, code="unknown-decision"):
        journal.experiment.reward("x", 1.0)
    assert journal.snapshot() == before
    assert journal.experiment.time == START


# --- what expiry does -------------------------------------------------------------------------------------------------------------


@RESTARTS
def test_a_value_in_place_of_the_reward(clock, restart):
    journal = Journal(clock, reward_window=WINDOW, on_expiry=-4.5)
    first, _ = journal.experiment.decide("first"), journal.experiment.decide()
    clock.now = START + WINDOW + 1.0
    restarts(journal)[restart]()
    assert journal.experiment.expire_due() == 2
    assert payload_of(journal.events[3]) == events.Expired(arm="a", decided=START, value=-4.5)
    rows = journal.experiment.bandit.estimates()
    assert [(row["pulls"], row["mean"]) for row in rows[:2]] == [(1, -4.5), (1, -4.5)]
    before = rows
    late = journal.experiment.reward(first.event.id, 3.0)
    assert isinstance(late.payload, events.Late)
    restarts(journal)[restart]()
    assert repr(journal.experiment.bandit.estimates()) == repr(before)
    assert journal.experiment.counts == {"created": 1, "decided": 2, "expired": 2, "late": 1}
    assert journal.folded().snapshot().content == journal.snapshot()


def test_the_value_has_the_sign_of_the_rewards(clock):
    journal = Journal(clock, reward_window=WINDOW, on_expiry=30.0, minimize=True)
    journal.experiment.decide()
    clock.now += 2 * WINDOW
    journal.experiment.expire_due()
    assert journal.experiment.bandit.estimates()[0]["mean"] == 30.0


def test_a_dropped_decision_leaves_the_estimates_as_they_were(journal, clock):
    id = journal.experiment.decide().event.id
    journal.experiment.reward(id, 2.0)
    before = journal.experiment.bandit.estimates()
    journal.experiment.decide()
    clock.now += 2 * WINDOW
    assert journal.experiment.expire_due() == 1
    assert journal.experiment.bandit.estimates()[0]["mean"] == before[0]["mean"]
    assert sum(pulls for _, _, pulls in journal.experiment.bandit.pulls()) == 1


def test_a_sweep_closes_a_bounded_number_oldest_first(journal, clock, monkeypatch):
    monkeypatch.setattr(experiments, "EXPIRED_AT_ONCE", 10)
    ids = []
    for _ in range(25):
        ids.append(journal.experiment.decide().event.id)
        clock.now += 0.5
    clock.now = START + WINDOW + 11.0  # the first 22 are due
    assert [journal.experiment.expire_due() for _ in range(4)] == [10, 10, 2, 0]
    assert [event.id for event in journal.events if event.kind == "expired"] == ids[:22]
    assert [journal.experiment.is_open(id) for id in ids] == [False] * 22 + [True] * 3


def test_a_sweep_closes_no_more_than_two_hundred(journal, clock):
    for _ in range(205):
        journal.experiment.decide(arm="a")
    clock.now += 2 * WINDOW
    assert [journal.experiment.expire_due() for _ in range(3)] == [200, 5, 0]


@RESTARTS
def test_expiry_frees_room(clock, restart):
    journal = Journal(clock, reward_window=WINDOW, max_open=3)
    first = [journal.experiment.decide() for _ in range(3)]
    restarts(journal)[restart]()
    clock.now = START + WINDOW
    before = journal.snapshot()
    with raises(Overloaded, code="too-many-open"):
        journal.experiment.decide()
    assert journal.snapshot() == before
    clock.now += JUST
    journal.experiment.decide()
    assert kinds(journal)[4:] == ["expired"] * 3 + ["decided"]
    assert journal.experiment.reward(first[0].event.id, 1.0).payload.reason == "window"
    assert journal.experiment.bandit.open_count == 1


def test_a_reward_frees_room(clock):
    journal = Journal(clock, max_open=1)
    made = journal.experiment.decide()
    for arm in (None, "b"):
        with raises(Overloaded, code="too-many-open"):
            journal.experiment.decide(arm=arm)
    assert journal.experiment.decide(made.event.id).replayed  # a repetition needs no room
    journal.experiment.reward(made.event.id, 1.0)
    journal.experiment.decide()


# --- reset -----------------------------------------------------------------------------------------------------------------------


@RESTARTS
@pytest.mark.parametrize("window", [None, WINDOW])
def test_rewards_of_decisions_before_a_reset_are_late(clock, restart, window):
    journal = Journal(clock, reward_window=window)
    own, mine = journal.experiment.decide(), journal.experiment.decide("mine")
    done = journal.experiment.decide("done")
    journal.experiment.reward("done", 0.5)
    journal.experiment.reset(drawn=9)
    restarts(journal)[restart]()
    clock.now += 1e4
    assert journal.experiment.expire_due() == 0
    for made in (own, mine):
        late = journal.experiment.reward(made.event.id, 1.0)
        assert late.payload == events.Late(value=1.0, arm=made.payload.arm, decided=START, reason="reset")
        assert journal.experiment.reward(made.event.id, 1.0).replayed
        with pytest.raises(Conflict):
            journal.experiment.reward(made.event.id, 2.0)
    assert journal.experiment.reward("done", 0.5).replayed
    assert journal.experiment.decide("done").event == done.event
    assert journal.experiment.bandit.counters()["rewards"] == 0
    assert journal.experiment.counts == {"reset": 1, "late": 2}
    assert journal.experiment.epoch == 1
    assert journal.folded().snapshot().content == journal.snapshot()


def test_a_decision_that_expired_before_a_reset_is_late_because_of_its_window(journal, clock):
    journal.experiment.decide("mine")
    clock.now += 2 * WINDOW
    journal.experiment.expire_due()
    journal.experiment.reset(drawn=9)
    assert journal.experiment.reward("mine", 1.0).payload.reason == "window"


def test_a_reset_keeps_the_arms_with_their_states():
    journal = Journal(policy="EpsilonGreedy(epsilon=0.4)")
    journal.experiment.add_arm("d")
    journal.experiment.change_arm("b", "paused")
    journal.experiment.change_arm("c", "retired")
    journal.experiment.pause()
    journal.experiment.decide(arm="a")
    journal.experiment.reset(drawn=9)
    assert journal.experiment.bandit.states == {"a": "active", "b": "paused", "c": "retired", "d": "active"}
    assert journal.experiment.paused
    assert journal.experiment.bandit.open_count == 0
    journal.experiment.change_arm("b", "active")
    with raises(Conflict, parameter="arm"):
        journal.experiment.change_arm("c", "active")
    assert journal.folded().snapshot().content == journal.snapshot()


@pytest.mark.parametrize(("seed", "expected"), [(5, 5), (None, 77)])
def test_a_reset_starts_with_the_seed_of_the_settings_or_a_new_one(seed, expected):
    journal = Journal(policy="EpsilonGreedy(epsilon=0.9)", seed=seed, drawn=3)
    journal.experiment.decide()
    made = journal.experiment.reset(drawn=77)
    assert made.payload == events.Reset(seed=expected)
    fresh = Journal(policy="EpsilonGreedy(epsilon=0.9)", seed=expected)
    chosen = [[each.experiment.decide().payload.arm for _ in range(30)] for each in (journal, fresh)]
    assert chosen[0] == chosen[1]


# --- the share that expired -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [30, experiments.RECENT_ENDS - 1, 2 * experiments.RECENT_ENDS])
def test_the_log_and_a_snapshot_count_the_same_ends(journal, clock, ends):
    for number in range(ends):
        made = journal.experiment.decide()
        if number % 3:
            journal.experiment.reward(made.event.id, 1.0)
        else:
            clock.now += WINDOW + 1.0
            assert journal.experiment.expire_due() == 1
        if number == ends // 2:
            halfway = journal.snapshot()
    counted = journal.experiment.ends
    assert 0 < sum(counted.values()) < experiments.RECENT_ENDS
    assert counted["expired"] / sum(counted.values()) == pytest.approx(1 / 3, abs=0.02)
    assert journal.folded().snapshot().content == journal.snapshot()
    journal.restart(halfway)
    assert journal.experiment.ends == counted


def test_a_snapshot_of_version_02_has_the_ends_since_the_last_reset(journal, clock):
    for _ in range(120):
        journal.experiment.decide()
    clock.now += WINDOW + 1.0
    journal.experiment.expire_due()
    saved = msgspec.msgpack.decode(journal.snapshot()[36:])
    old = msgspec.msgpack.encode(saved[:-1])
    journal.restart((1).to_bytes(4, "little") + hashlib.sha256(old).digest() + old)
    assert dict(journal.experiment.ends) == {"expired": 120, "rewarded": 0}
