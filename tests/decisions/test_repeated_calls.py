"""Repeated calls: the same id gives the same answer and one event; another body or value is refused. And which ids are allowed."""

import math
import random

import msgspec
import pytest

from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import events
from robandit.errors import Conflict, DecisionError, InvalidInput, InvalidReward, NotFound, UnavailableArm, UnknownArm

RAW = msgspec.Raw


@pytest.fixture
def journal():
    return Journal()


def continuations(journal):
    """Return experiments with the same log: the live one, and new ones from the log and from a snapshot."""
    yield journal.experiment
    snapshot = journal.snapshot()
    yield journal.restart()
    yield journal.restart(snapshot)


BODIES = {
    "nothing": {},
    "among": {"among": ["b", "c"]},
    "arm": {"arm": "b"},
    "context": {"context": RAW(b'{"user": [1, 2.5]}')},
    "null": {"context": RAW(b"null")},
    "both": {"among": ["a"], "context": RAW(b"3")},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_repeated_decision_gives_the_first_one(journal, body):
    made = journal.experiment.decide("mine", **body)
    assert not made.replayed
    for experiment in continuations(journal):
        before = journal.snapshot()
        for _ in range(3):
            again = experiment.decide("mine", **body)
            assert again.replayed
            assert (again.event, again.payload) == (made.event, made.payload)
        assert journal.snapshot() == before
    assert len(journal.events) == 2
    journal.experiment.reward("mine", 1.0)
    assert journal.experiment.decide("mine", **body).replayed


def test_a_repeated_decision_with_another_body_is_refused(journal):
    for name, body in BODIES.items():
        journal.experiment.decide(name, **body)
    for experiment in continuations(journal):
        before = journal.snapshot()
        for name in BODIES:
            for other_name, other in BODIES.items():
                same = name == other_name or {name, other_name} == {"nothing", "null"}
                if same:
                    assert experiment.decide(name, **other).replayed
                    continue
                with raises(Conflict, parameter="id"):
                    experiment.decide(name, **other)
        assert journal.snapshot() == before


def test_a_context_is_compared_by_its_meaning(journal):
    journal.experiment.decide("mine", context=RAW(b'{"a": 1, "b": [true, "\xc3\xa9"]}'))
    assert journal.experiment.decide("mine", context=RAW(b'{ "b":[true,"\\u00e9"],"a":1}')).replayed
    with pytest.raises(Conflict):
        journal.experiment.decide("mine", context=RAW(b'{"a": 1, "b": [true, "e"]}'))
    with pytest.raises(Conflict):  # equal in Python
        journal.experiment.decide("mine", context=RAW(b'{"a": true, "b": [1, "\xc3\xa9"]}'))


def test_the_order_of_among_is_part_of_the_request(journal):
    journal.experiment.decide("mine", among=["b", "a"])
    with pytest.raises(Conflict):
        journal.experiment.decide("mine", among=["a", "b"])


def test_a_repeated_reward_counts_once(journal):
    ids = [journal.experiment.decide().event.id, journal.experiment.decide("mine").event.id]
    for id in ids:
        first = journal.experiment.reward(id, 2.5)
        assert not first.replayed
        for experiment in continuations(journal):
            before = journal.snapshot()
            for value in (2.5, 2.5, 5 / 2):
                again = experiment.reward(id, value)
                assert again.replayed
                assert again.event == first.event
            for value in (2.4, -2.5, math.nextafter(2.5, 3.0), 0):
                with raises(Conflict, parameter="value"):
                    experiment.reward(id, value)
            assert journal.snapshot() == before
    assert [pulls for _, _, pulls in journal.experiment.bandit.pulls()] == [1, 1, 0]


@pytest.mark.parametrize("policy", ["AdaKLUCB()", "Ada2TINF()", "EpsilonGreedy(epsilon=0.5)"])
def test_all_calls_sent_twice_and_shuffled_leave_the_same_bytes(policy):
    """Guarantee 2, at the level of an experiment."""
    journal, rng = Journal(policy=policy, reward_window=100.0), random.Random(4)
    calls = []
    for k in range(60):
        id = journal.experiment.decide(f"client {k}").event.id
        calls.append(("decide", id, None))
        journal.clock.now += 5.0
        if k % 3:
            value = rng.gauss(0.0, 2.0)
            journal.experiment.reward(id, value)
            calls.append(("reward", id, value))
        elif k >= 27:
            journal.experiment.reward(f"client {k - 27}", 7.0)
            calls.append(("reward", f"client {k - 27}", 7.0))
    expected, count = journal.snapshot(), len(journal.events)
    assert {event.kind for event in journal.events} >= {"late", "expired", "rewarded"}
    calls *= 2
    rng.shuffle(calls)
    for experiment in continuations(journal):
        for call, id, value in calls:
            made = experiment.decide(id) if call == "decide" else experiment.reward(id, value)
            assert made.replayed
        assert journal.snapshot() == expected
    assert len(journal.events) == count


# --- values -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, 1e151, 1e-300, [1.0]], ids=repr)
def test_invalid_rewards_change_nothing(journal, value):
    journal.experiment.decide("mine")
    before = journal.snapshot()
    with pytest.raises(InvalidReward):
        journal.experiment.reward("mine", value)
    assert journal.snapshot() == before
    assert journal.experiment.is_open("mine")


@pytest.mark.parametrize("value", [0.1 + 0.2, -1e150, 5e-130, 0.0, -0.0, 123456789.123456789, 2**53 + 2, 7])
def test_rewards_are_stored_to_the_last_bit(journal, value):
    journal.experiment.decide("mine")
    made = journal.experiment.reward("mine", value)
    assert made.payload.value.hex() == float(value).hex()
    for experiment in continuations(journal):
        again = experiment.reward("mine", value)
        assert again.replayed
        assert again.payload.value.hex() == float(value).hex()


def test_unknown_ids(journal):
    journal.experiment.decide("mine")
    before = journal.snapshot()
    for id in ("other", "Mine", "mine ", "", "k3m9-0", "x" * 10_000):
        with raises(NotFound, code="unknown-decision"):
            journal.experiment.reward(id, 1.0)
    assert journal.snapshot() == before


# --- ids ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", "x" * 201, "é", "a\nb", "\x7f", "\ud800"])
def test_invalid_ids(journal, id):
    with raises(InvalidInput, parameter="id", rule="1 to 200 printable ASCII characters"):
        journal.experiment.decide(id)
    assert len(journal.events) == 1


@pytest.mark.parametrize(
    "id", [" ", "~", "x" * 200, "0199a9f3-5a5c-7000-8000-000000000000", "k3m9qd2x7wfa-0", "1", "-"]
)
def test_valid_ids(journal, id):
    assert journal.experiment.decide(id).event.id == id
    for experiment in continuations(journal):
        assert experiment.is_open(id)
        assert experiment.decide(id).replayed
    assert isinstance(journal.experiment.reward(id, 1.0).payload, events.Rewarded)


def life_of(id):
    return id.partition("-")[0]


def test_an_id_that_the_server_may_use_later_is_refused(journal):
    life = life_of(journal.experiment.decide().event.id)
    before = journal.snapshot()
    for number in ("1", "2", "999999", "01", ""):
        with raises(InvalidInput, parameter="id", rule="an id that is not of the form of this server's own"):
            journal.experiment.decide(f"{life}-{number}")
    assert journal.snapshot() == before
    journal.experiment.decide(life)
    journal.experiment.decide(f"{life}x-3")


def test_ids_of_earlier_lives_are_allowed(journal):
    life = life_of(journal.experiment.decide().event.id)
    for restart in (journal.restart, lambda: journal.restart(journal.snapshot())):
        restart()
        unused = f"{life}-{len(journal.events) + 50}"
        made = journal.experiment.decide(unused)
        assert made.event.id == unused
        assert life_of(made.payload.own) != life
        assert isinstance(journal.experiment.reward(unused, 1.0).payload, events.Rewarded)
        assert journal.experiment.decide(f"{life}-0").replayed  # a decision that the server has made


def test_the_id_in_the_bandit_is_not_an_id_of_the_service(journal):
    """A decision with an id of the client has another id in the bandit, which the client does not know."""
    own = journal.experiment.decide("mine").payload.own
    for experiment in continuations(journal):
        assert not experiment.is_open(own)
        with pytest.raises(NotFound):
            experiment.reward(own, 1.0)
    assert journal.experiment.is_open("mine")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("snapshot", [False, True])
def test_an_id_of_a_client_may_equal_the_id_in_the_bandit_of_an_open_decision(order, snapshot):
    """In a later life, the id is free. Each of both decisions gets its own reward."""
    journal = Journal(reward_window=60.0)
    own = journal.experiment.decide("mine").payload.own
    journal.restart(journal.snapshot() if snapshot else None)
    journal.experiment.decide(own, arm="c")
    journal.restart(journal.snapshot() if snapshot else None)
    assert journal.experiment.is_open(own)
    assert journal.experiment.is_open("mine")
    rewards = [("mine", 1.0), (own, 3.0)]
    for id, value in rewards[::order]:
        assert isinstance(journal.experiment.reward(id, value).payload, events.Rewarded)
        assert journal.folded().snapshot().content == journal.snapshot()
    rows = journal.experiment.bandit.estimates()
    assert (rows[0]["mean"], rows[2]["mean"]) == (1.0, 3.0)


def test_expiry_keeps_these_ids_apart():
    journal = Journal(reward_window=60.0)
    own = journal.experiment.decide("mine").payload.own
    journal.clock.now += 30.0
    journal.restart()
    journal.experiment.decide(own, arm="c")
    journal.clock.now += 31.0
    assert journal.experiment.expire_due() == 1
    assert [event.id for event in journal.events if event.kind == "expired"] == ["mine"]
    assert isinstance(journal.experiment.reward(own, 1.0).payload, events.Rewarded)


# --- arms and pauses ------------------------------------------------------------------------------------------------------------


def test_a_paused_experiment_records_choices_made_elsewhere_only(journal):
    made = journal.experiment.decide("first")
    assert journal.experiment.pause() is not None
    assert journal.experiment.pause() is None
    with raises(Conflict, code="paused"):
        journal.experiment.decide()
    assert journal.experiment.decide("first").event == made.event
    journal.experiment.decide("elsewhere", arm="b")
    journal.experiment.reward("first", 1.0)
    journal.experiment.reward("elsewhere", 1.0)
    assert journal.restart().paused
    assert journal.experiment.resume() is not None
    assert journal.experiment.resume() is None
    journal.experiment.decide()


def test_choices_that_are_refused(journal):
    journal.experiment.change_arm("b", "paused")
    before = journal.snapshot()
    for among, error in ((["x"], UnknownArm), (["b"], UnavailableArm), ([], UnavailableArm)):
        with pytest.raises(error):
            journal.experiment.decide(among=among)
    with pytest.raises(UnknownArm):
        journal.experiment.decide(arm="x")
    with pytest.raises(InvalidInput, match="exclude each other"):
        journal.experiment.decide(arm="a", among=["a"])
    assert journal.snapshot() == before
    assert journal.experiment.decide(arm="b").payload.arm == "b"
    assert journal.experiment.decide(among=["b", "c"]).payload.arm == "c"


def test_weighted_policies_refuse_choices_made_elsewhere():
    journal = Journal(policy="Ada2TINF()")
    before = journal.snapshot()
    with pytest.raises(DecisionError, match="weights a reward by the probability of its choice"):
        journal.experiment.decide(arm="a")
    assert journal.snapshot() == before


def test_changes_of_arms(journal):
    experiment = journal.experiment
    assert experiment.change_arm("a", "active") is None
    assert experiment.change_arm("a", "paused").event.kind == "arm_paused"
    assert experiment.change_arm("a", "active").event.kind == "arm_resumed"
    assert experiment.change_arm("a", "retired").event.kind == "arm_retired"
    with raises(Conflict, parameter="arm"):
        experiment.change_arm("a", "paused")
    with pytest.raises(NotFound, match="has no arm 'x': it has"):
        experiment.change_arm("x", "paused")
    with raises(Conflict, parameter="arm"):
        experiment.add_arm("a")
    with pytest.raises(InvalidInput):
        experiment.add_arm("x\n")
    ids = [event.id for event in journal.events]
    assert ids == ["1", "2", "3", "4"]
    assert journal.folded().snapshot().content == journal.snapshot()
