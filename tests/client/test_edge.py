"""Edges against a small service with faults: draws, ids, refreshes, batches, limits, forks, kills, and the end."""

import json
import logging
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

import robandit_client.edge as edges
from helpers.amount import amount
from helpers.clients import PATIENT, eventually, gives_up_after
from helpers.edge_service import EdgeService, Experiment
from helpers.invalid import raises
from helpers.ports import free_port
from helpers.serving import Server
from robandit import errors
from robandit_client import Allocation, Client, Edge, Observation
from robandit_client.calls import Caller

SHARES = {"a": 0.5, "b": 0.3, "never": 0.0, "c": 0.2}
STILL = 3_600.0  # seconds: no refresh during a test


@pytest.fixture
def experiment():
    return Experiment(SHARES)


@pytest.fixture
def service(experiment):
    with EdgeService(experiment) as service:
        yield service


@pytest.fixture
def client(service):
    with Client(service.url, **PATIENT) as client:
        yield client


def drawn(edge, number):
    return [edge.decide() for _ in range(number)]


def rejecting(edge):
    """Close an edge whose observations were rejected."""
    with pytest.raises(errors.Undelivered):
        edge.close()


# --- draws ------------------------------------------------------------------------------------------------------------


def test_three_lines(client, experiment, service):
    with client.edge("exp") as edge:
        decision = edge.decide()
        edge.reward(decision.id, 0.83)
    assert experiment.items == {
        decision.id: {
            "arm": decision.arm,
            "propensity": SHARES[decision.arm],
            "allocation": experiment.version,
            "value": 0.83,
            "expired": None,
        }
    }
    assert decision.propensity == SHARES[decision.arm]
    assert service.queries == {"for=1s"}
    assert edge.counts == {
        "open": 0,
        "waiting": 0,
        "learned": 1,
        "late": 0,
        "expired": 0,
        "replayed": 0,
        "rejected": 0,
        "dropped": 0,
    }


def statistic(decisions, shares):
    """Pearson's statistic."""
    counts = Counter(decision.arm for decision in decisions)
    expected = {arm: share * len(decisions) for arm, share in shares.items() if share}
    assert counts.keys() <= expected.keys()
    return sum((counts[arm] - mean) ** 2 / mean for arm, mean in expected.items())


def test_arms_are_drawn_with_their_probabilities(client):
    """At most 16.3 with probability 0.9997: chi-squared with 2 degrees of freedom, P(X > x) = exp(-x / 2)."""
    with client.edge("exp", refresh=STILL, seed=7) as edge:
        decisions = drawn(edge, 30_000)
    assert statistic(decisions, SHARES) < 16.3
    assert statistic(decisions, {"a": 0.48, "b": 0.31, "c": 0.21}) > 16.3  # the negative control
    assert {decision.propensity for decision in decisions} == {0.5, 0.3, 0.2}


def test_a_seed_repeats_the_arms_and_not_the_ids(client):
    runs = []
    for seed in (3, 3, 4):
        with client.edge("exp", refresh=STILL, seed=seed) as edge:
            runs.append(drawn(edge, 50))
    arms = [[decision.arm for decision in run] for run in runs]
    assert arms[0] == arms[1] != arms[2]
    assert not {each.id for each in runs[0]} & {each.id for each in runs[1]}


def test_one_arm_is_always_drawn(client, experiment):
    experiment.new_version({"x": 0.0, "only": 1, "y": 0.0})
    with client.edge("exp", refresh=STILL) as edge:
        assert {decision[1:] for decision in drawn(edge, 100)} == {("only", 1.0)}


def test_ids_are_a_life_and_a_number(client):
    with client.edge("exp", refresh=STILL) as first, client.edge("exp", refresh=STILL) as second:
        ids = [decision.id.split("-") for edge in (first, second) for decision in drawn(edge, 3)]
    assert [int(number) for _, number in ids] == [0, 1, 2, 0, 1, 2]
    lives = [life for life, _ in ids[::3]]
    assert len(set(lives)) == 2
    assert all(8 <= len(life) <= 16 and life.isascii() and life.isalnum() and life.islower() for life in lives)


def test_threads_never_get_the_same_id(client):
    with client.edge("exp", refresh=STILL) as edge:
        found = []
        threads = [threading.Thread(target=lambda: found.extend(drawn(edge, 5_000))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({decision.id for decision in found}) == 20_000 == edge.counts["open"]


# --- refreshes --------------------------------------------------------------------------------------------------------


def test_an_allocation_is_refreshed_and_not_sent_again(client, experiment, service):
    with client.edge("exp", refresh=0.1) as edge:
        eventually(lambda: service.calls["GET", 304] >= 3)
        assert service.calls["GET", 200] == 1
        before = edge.allocation
        assert isinstance(before, Allocation)
        assert (before.arms, before.probabilities) == (tuple(SHARES), tuple(SHARES.values()))
        experiment.new_version({"b": 1.0})
        eventually(lambda: edge.decide().arm == "b" and edge.allocation.version == experiment.version)
        assert {decision.arm for decision in drawn(edge, 50)} == {"b"}
        assert service.calls["GET", 200] == 2


def test_an_allocation_that_is_valid_for_less_is_refreshed_earlier(client, experiment, service):
    experiment.valid_for = 0.1
    with client.edge("exp", refresh=STILL):
        eventually(lambda: service.calls["GET", 304] >= 2)


def test_refreshes_are_spread(client):
    with client.edge("exp", refresh=10.0) as edge:
        pauses = [edge._pause(0) for _ in range(100)]
        assert 8.0 <= min(pauses) < 8.5 < 9.5 < max(pauses) <= 10.0
        away = [edge._pause(failures) for failures in (1, 2, 3, 50)]
        assert all(0.8 * limit <= pause <= limit for pause, limit in zip(away, (2, 4, 8, 10), strict=True))


def test_a_paused_experiment_has_no_decisions_until_it_is_resumed(client, experiment):
    with client.edge("exp", refresh=0.1) as edge:
        decision = edge.decide()
        experiment.state = "paused"
        eventually(lambda: edge.stale_since is not None)
        for _ in range(2):
            with pytest.raises(errors.Conflict, match="paused") as caught:
                edge.decide()
            assert caught.value.code == "paused"
        edge.reward(decision, 1.0)  # of a decision that was made before
        eventually(lambda: decision.id in experiment.items)
        experiment.state = "active"
        eventually(lambda: edge.stale_since is None)
        assert edge.decide().arm in SHARES


def test_an_experiment_that_is_unknown_or_deleted(client, experiment, caplog):
    with pytest.raises(errors.NotFound) as caught:
        client.edge("other")
    assert caught.value.code == "unknown-experiment"
    with client.edge("exp", refresh=0.1) as edge:
        experiment.name = "renamed"
        eventually(lambda: edge.stale_since is not None)
        with pytest.raises(errors.NotFound):
            edge.decide()
        experiment.name = "exp"
        eventually(lambda: edge.stale_since is None)
        edge.decide()


def test_a_paused_experiment_and_an_absent_service_have_no_edge(client, experiment):
    experiment.state = "paused"
    with pytest.raises(errors.Conflict):
        client.edge("exp")
    with Client("http://127.0.0.1:1", timeout=0.1) as away, pytest.raises(errors.ServiceUnavailable):
        away.edge("exp")


def test_decisions_go_on_while_the_service_is_away(experiment, caplog):
    port = free_port()
    with Client(f"http://127.0.0.1:{port}", **PATIENT) as client:
        with EdgeService(experiment, port=port):
            edge = client.edge("exp", refresh=0.1)
            assert (edge.stale_since, edge.error) == (None, None)
        gives_up_after(1.0, client)
        before = time.time()
        eventually(lambda: edge.stale_since is not None)
        eventually(lambda: edge.error is not None)
        since = edge.stale_since
        assert before - 1.0 <= since <= time.time() - 0.2  # when the first attempt began, which failed up to 1 s later
        decisions = drawn(edge, 2_500)
        for decision in decisions:
            edge.reward(decision, 1.0)
        assert edge.counts["waiting"] == 2_500
        assert edge.stale_since == since
        assert isinstance(edge.error, errors.ServiceUnavailable)
        with EdgeService(experiment, port=port):  # a restart: it still knows its allocations
            eventually(lambda: len(experiment.items) == 2_500)
            eventually(lambda: edge.stale_since is None)
            gives_up_after(60.0, client)
            edge.close()
    assert experiment.items.keys() == {decision.id for decision in decisions}
    assert edge.counts["learned"] == 2_500
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert 1 <= len(warnings) <= 3  # not one for each attempt


@pytest.mark.parametrize(
    "spoiled",
    [
        {"experiment": "another"},
        {"version": ""},
        {"version": 'a"b'},
        {"version": None},
        {"arms": []},
        {"arms": ["a", "a", "b", "c"]},
        {"arms": ["a", "b", 3, "c"]},
        {"probabilities": [0.5, 0.5]},
        {"probabilities": [0.5, 0.5, 0.5, -0.5]},
        {"probabilities": [0.3, 0.3, 0.3, 0.0]},
        {"probabilities": [0.5, 0.3, "0", 0.2]},
        {"made": -1.0},
        {"valid_for": None},
        {"decisions": 0},
        {"reward_window": -1.0},
        {"reward_window": "1"},
    ],
    ids=str,
)
def test_an_answer_that_is_no_allocation_is_no_answer(client, experiment, monkeypatch, spoiled):
    real = experiment.allocation()
    monkeypatch.setattr(experiment, "allocation", lambda: real | spoiled)
    monkeypatch.setattr(Caller, "pause", lambda self, attempts: math.inf)  # one attempt says it
    with pytest.raises(errors.ServiceUnavailable, match=next(iter(spoiled))):
        client.edge("exp")


# --- observations -----------------------------------------------------------------------------------------------------


def test_batches_are_sent_in_the_background(client, experiment, service):
    with client.edge("exp", refresh=STILL) as edge:
        decisions = drawn(edge, 2_100)
        for decision in decisions[:2_050]:
            edge.reward(decision, 1.0)
        eventually(lambda: len(experiment.items) >= 2_000)  # a thousand are sent at once
        for decision in decisions[2_050:]:
            edge.expire(decision.id)
        edge.flush()
        assert max(len(json.loads(body)["items"]) for body in service.bodies) == 1_000
        counts = edge.counts
        assert (counts["learned"], counts["expired"], counts["open"], counts["waiting"]) == (2_050, 50, 0, 0)


def test_times_are_those_of_the_decision_and_of_its_reward(client, service):
    with client.edge("exp", refresh=STILL) as edge:
        before = time.time()
        decision = edge.decide()
        time.sleep(0.05)
        edge.reward(decision, 1.0)
        after = time.time()
    item = json.loads(service.bodies[0])["items"][0]
    assert before - 0.01 <= item["decided"] <= item["rewarded"] - 0.049 <= after - 0.04


def test_what_was_reported_before_is_not_open(client, experiment):
    with client.edge("exp", refresh=STILL) as edge:
        decision = edge.decide()
        edge.reward(decision, 1.0)
        edge.reward(decision, 1.0)  # the same again
        for wrong in (lambda: edge.reward(decision, 2.0), lambda: edge.expire(decision)):
            with pytest.raises(errors.Conflict, match="with another reward"):
                wrong()
        edge.flush()
        for id in (decision.id, "elsewhere-0"):
            with pytest.raises(errors.NotFound, match="is not open: it was reported before"):
                edge.reward(id, 1.0)
        assert edge.counts["learned"] == len(experiment.items) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, 1e200])
def test_what_cannot_be_learned_is_refused_and_the_decision_stays_open(client, value):
    with client.edge("exp", refresh=STILL) as edge:
        decision = edge.decide()
        with pytest.raises(errors.InvalidReward, match="reward"):
            edge.reward(decision, value)
        assert edge.counts["open"] == 1
        edge.reward(decision, 1)


@pytest.mark.parametrize("id", [None, 3, b"id", []])
def test_a_decision_is_an_id(client, id):
    with client.edge("exp", refresh=STILL) as edge, raises(errors.InvalidInput, parameter="decision"):
        edge.expire(id)


def test_rejected_observations_are_kept_with_their_reasons(client, experiment, caplog):
    edge = client.edge("exp", refresh=STILL)
    decisions = drawn(edge, 250)
    kept = edge.decide()
    experiment.reset(SHARES)  # the allocation is of another life
    for decision in decisions:
        edge.reward(decision, 1.0)
    with pytest.raises(errors.Undelivered, match=r"not delivered: 0 reports, rejected: 100 reports; .*is refused"):
        edge.flush()
    assert edge.counts["rejected"] == 250
    assert len(edge.rejected) == 100
    assert edge.rejected[-1].error.code == "unknown-allocation"
    assert isinstance(edge.rejected[-1].report, Observation)
    assert "rejected 250 observations" in caplog.text
    edge.rejected.clear()
    edge.expire(kept)
    rejecting(edge)


def test_an_unknown_allocation_is_replaced_at_once(client, experiment):
    with client.edge("exp", refresh=STILL, on_rejected=lambda _: None) as edge:
        decisions = drawn(edge, 1_000)
        experiment.reset({"new": 1.0})
        for decision in decisions:
            edge.reward(decision, 1.0)  # so many are sent at once
        eventually(lambda: edge.decide().arm == "new")


def test_a_function_takes_rejected_observations(client, experiment, caplog):
    taken = []

    def take(rejection):
        taken.append(rejection)
        raise RuntimeError("of the caller")

    with client.edge("exp", refresh=STILL, on_rejected=take) as edge:
        good, bad = drawn(edge, 2)
        experiment.items[bad.id] = {"value": "other"}  # known with other content
        edge.reward(bad, 1.0)
        edge.reward(good, 2.0)
    assert [(each.report.id, each.error.code) for each in taken] == [(bad.id, "conflict")]
    assert experiment.items[good.id]["value"] == 2.0
    assert "on_rejected failed" in caplog.text


def test_an_observation_that_spoils_a_batch_is_found(client, experiment, monkeypatch, service):
    with client.edge("exp", refresh=STILL) as edge:
        decisions = drawn(edge, 20)
        observe = experiment.observe

        def picky(items):
            if any(item["id"] == decisions[13].id for item in items):
                raise ValueError("too much for the service")
            return observe(items)

        monkeypatch.setattr(experiment, "observe", picky)
        for decision in decisions:
            edge.reward(decision, 1.0)
        with pytest.raises(errors.Undelivered, match="rejected: 1 report"):
            edge.flush()
        assert len(experiment.items) == 19
        assert edge.rejected.pop().error.code == "too-large"


def test_a_key_that_may_only_decide_keeps_what_waits(service, experiment):
    service.key = "rb_all"
    client = Client(service.url, "rb_decide", **PATIENT)
    edge = client.edge("exp", refresh=0.1)
    edge.reward(edge.decide(), 1.0)
    eventually(lambda: isinstance(edge.error, errors.AccessDenied))
    assert edge.stale_since is None  # it may still decide
    service.key = "rb_decide"
    eventually(lambda: len(experiment.items) == 1)
    client.close()


@pytest.mark.parametrize(("own", "that_of_the_experiment"), [(0.3, None), (0.3, 60.0), (None, 0.3)])
def test_open_decisions_expire_after_their_window(client, experiment, own, that_of_the_experiment):
    experiment.reward_window = that_of_the_experiment
    with client.edge("exp", refresh=0.1, reward_window=own) as edge:
        decisions = drawn(edge, 1_500)
        edge.reward(decisions[0], 1.0)
        eventually(lambda: edge.counts["expired"] == 1_499)
        assert len(experiment.items) == 1_500
        with pytest.raises(errors.NotFound, match="has expired"):
            edge.reward(decisions[1], 1.0)
        young = edge.decide()
        edge.reward(young, 2.0)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_open_decisions_are_bounded_and_what_is_given_up_is_counted(client, experiment, caplog):
    with client.edge("exp", refresh=STILL, max_open=200) as edge:
        decisions = drawn(edge, 1_000)
        assert edge.counts["open"] <= 200
        assert edge.counts["dropped"] == 1_000 - edge.counts["open"]
        with pytest.raises(errors.Conflict, match="waits to be reported as expired"):
            edge.reward(decisions[0], 1.0)
        edge.reward(decisions[-1], 1.0)
        edge.flush()
        assert edge.counts["expired"] == edge.counts["dropped"]
    assert caplog.text.count("gives up the oldest ones") == 1


def test_observations_are_bounded(service, experiment):
    client = Client(service.url, **PATIENT)
    edge = client.edge("exp", refresh=STILL, max_waiting=10, max_open=30, reward_window=0.01)
    decisions = drawn(edge, 30)
    for decision in decisions[:10]:
        edge.reward(decision, 1.0)
    for _ in range(2):
        with pytest.raises(errors.Overloaded, match="nothing more is kept"):
            edge.reward(decisions[10], 1.0)
    assert edge.counts["open"] == 20  # it stays open
    drawn(edge, 15)  # there is room for no expiry
    assert edge.counts["dropped"] == 5
    assert edge.counts["waiting"] == 10
    edge.flush()
    edge.reward(decisions[-1], 1.0)
    client.close()
    assert len(experiment.items) == 11


def test_more_decisions_expire_than_there_is_room_for(client, experiment):
    with client.edge("exp", refresh=0.1, reward_window=0.2, max_waiting=10) as edge:
        decisions = drawn(edge, 45)
        eventually(lambda: len(experiment.items) == 45)
        assert experiment.items.keys() == {decision.id for decision in decisions}
        eventually(lambda: edge.error is None)


def test_a_reward_and_an_expiry_at_the_same_time(client, experiment, monkeypatch):
    """The thread has seen an overdue decision, and before it reports it, its reward comes."""
    with client.edge("exp", refresh=STILL, reward_window=0.01) as edge:
        decision = edge.decide()
        time.sleep(0.02)
        overdue = edge._oldest(10)
        edge.reward(decision, 1.0)
        monkeypatch.setattr(edge, "_oldest", lambda most: overdue)
        edge._expire_overdue()
        edge._open.update(overdue)  # seen even before the reward had removed it
        edge._expire_overdue()
        assert edge.counts["open"] == 0
        edge.flush()
        assert experiment.items[decision.id]["value"] == 1.0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("refresh", 0.05),
        ("refresh", 4_000),
        ("refresh", math.nan),
        ("refresh", 10**400),
        ("reward_window", 0),
        ("max_open", 0),
        ("max_open", 1.5),
        ("max_waiting", True),
        ("on_rejected", "print"),
        ("seed", [1]),
        ("seed", "one"),
    ],
)
def test_wrong_options_are_rejected(client, option, value):
    with raises(errors.InvalidInput, parameter=option):
        client.edge("exp", **{option: value})


def test_wrong_names_are_explained(client):
    with pytest.raises(TypeError, match="refresh"):
        client.edge("exp", refreshes=1.0)
    with client.edge("exp", refresh=STILL) as edge, pytest.raises(AttributeError, match="use decide"):
        edge.select()


# --- the end ----------------------------------------------------------------------------------------------------------


def test_close_says_what_is_left(experiment):
    port = free_port()
    client = Client(f"http://127.0.0.1:{port}", **PATIENT)
    with EdgeService(experiment, port=port):
        edge = client.edge("exp", refresh=STILL)
    decision, other = drawn(edge, 2)
    edge.reward(decision, 0.5)
    begin = time.monotonic()
    with pytest.raises(errors.Undelivered, match=r"not delivered: 1 report.*cannot be reached") as caught:
        edge.close(timeout=0.3)
    assert time.monotonic() - begin < 20.0  # the client has 60
    gives_up_after(0.3, client)
    (report,) = caught.value.reports
    assert (report.id, report.arm, report.value, report.allocation) == (
        decision.id,
        decision.arm,
        0.5,
        experiment.version,
    )
    for closed in (edge.decide, lambda: edge.reward(other, 1.0)):
        with pytest.raises(errors.RobanditError, match="is closed"):
            closed()
    with pytest.raises(errors.Undelivered):
        client.close()
    assert not any(thread.name == "robandit-edge" for thread in threading.enumerate())


def test_a_silent_service_does_not_hold_up_the_end(service, client, monkeypatch, experiment):
    edge = client.edge("exp", refresh=STILL)
    answer = threading.Event()
    observe = experiment.observe
    monkeypatch.setattr(experiment, "observe", lambda items: answer.wait(60.0) and observe(items))
    edge.reward(edge.decide(), 1.0)
    begin = time.monotonic()
    with pytest.raises(errors.Undelivered):
        edge.close(timeout=0.2)
    assert time.monotonic() - begin < 20.0
    answer.set()
    edge.flush()  # what is left can still be delivered


def test_the_client_closes_its_edges(service, experiment):
    with Client(service.url, **PATIENT) as client:
        edge = client.edge("exp", refresh=STILL)
        edge.reward(edge.decide(), 1.0)
    assert len(experiment.items) == 1
    with pytest.raises(errors.RobanditError, match="closed"):
        edge.decide()
    with pytest.raises(errors.RobanditError, match="closed"):
        client.edge("exp")


def test_an_error_of_the_block_stays_that_error(experiment):
    port = free_port()
    client = Client(f"http://127.0.0.1:{port}", **PATIENT)
    with EdgeService(experiment, port=port):
        edge = client.edge("exp", refresh=STILL)
    gives_up_after(0.3, client)

    def block():
        with edge:
            edge.reward(edge.decide(), 1.0)
            raise KeyError("of the block")

    with pytest.raises(KeyError) as caught:
        block()
    assert "not delivered: 1 report" in caught.value.__notes__[0]
    with pytest.raises(errors.Undelivered):
        client.close()


def test_an_error_that_nobody_expected_does_not_end_the_refreshes(client, service, monkeypatch, caplog):
    with client.edge("exp", refresh=0.1) as edge:
        monkeypatch.setattr(edge, "_expire_overdue", lambda: 1 / 0)
        eventually(lambda: "ZeroDivisionError" in str(edge.error))
        monkeypatch.undo()
        eventually(lambda: edge.error is None)


def test_a_thread_that_cannot_start_is_started_by_a_later_decision(client, monkeypatch, caplog, experiment):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "robandit-edge":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    edge = client.edge("exp", refresh=0.1)
    assert "is not refreshed" in caplog.text
    monkeypatch.setattr(threading.Thread, "start", start)
    edge._hot = None
    edge.decide()
    experiment.new_version({"b": 1.0})
    eventually(lambda: edge.decide().arm == "b" and edge.allocation.version == experiment.version)


# --- faults, forks and kills ------------------------------------------------------------------------------------------


def test_with_faults_everything_counts_once(experiment):
    """Lost answers, repeats, 503 before and after the call was obeyed, slow answers, and restarts on the same port."""
    port, values = free_port(), {}
    rounds = amount(4, 20)
    with Client(f"http://127.0.0.1:{port}", timeout=60.0, connect_timeout=1.0, read_timeout=0.3) as client:
        with EdgeService(experiment, port=port):
            edge = client.edge("exp", refresh=0.1)
        gives_up_after(0.5, client)
        for seed in range(rounds):
            with EdgeService(experiment, port=port, seed=seed, share=0.4) as service:
                until = time.monotonic() + 0.7
                while time.monotonic() < until or sum(service.made.values()) < 3 or not (seed or experiment.replayed):
                    for decision in drawn(edge, 20):
                        values[decision.id] = value = random.random() + 0.5
                        edge.reward(decision, value)
                    time.sleep(0.01)
                experiment.new_version(SHARES)
        with EdgeService(experiment, port=port):
            edge.close(timeout=30.0)
    assert {id: item["value"] for id, item in experiment.items.items()} == values
    assert edge.counts["rejected"] == 0
    assert edge.counts["learned"] + edge.counts["replayed"] == len(values)


def test_a_repeated_batch_has_the_same_bytes(experiment):
    with EdgeService(experiment, share=1.0, faults=("lost",)) as service, Client(service.url, **PATIENT) as client:
        service.share = 0.0
        edge = client.edge("exp", refresh=STILL)
        service.share = 1.0
        edge.reward(edge.decide(), 1.0)
        while not service.bodies:
            with pytest.raises(errors.Undelivered):
                edge.flush(0.5)
        service.share = 0.0
        edge.close()
        assert len(service.bodies) > 1
        assert len(set(service.bodies)) == 1


def in_child(work):
    """Return what a forked process writes, whose exit code must be 0."""
    out, into = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.write(into, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(into)
    with open(out) as file:
        text = file.read()
    assert os.waitpid(process, 0)[1] == 0
    return json.loads(text)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_life_of_its_own(client, experiment):
    edge = client.edge("exp", refresh=STILL, seed=5)
    before = drawn(edge, 10)
    for decision in before[:5]:
        edge.reward(decision, 1.0)

    def child():
        assert (edge.counts["open"], edge.counts["waiting"], edge.rejected) == (0, 0, [])
        with pytest.raises(errors.NotFound):  # only the parent knows it
            edge.reward(before[9], 1.0)
        mine = drawn(edge, 40)
        for decision in mine:
            edge.reward(decision, 2.0)
        edge.close()
        return mine

    mine = in_child(child)
    after = drawn(edge, 40)
    ids = [decision.id for decision in [*before, *after]] + [id for id, _, _ in mine]
    assert len(set(ids)) == 90
    assert [arm for _, arm, _ in mine] != [decision.arm for decision in after]  # other draws, too
    assert experiment.items.keys() == {id for id, _, _ in mine}  # nothing of the parent
    assert all(experiment.items[id]["arm"] == arm for id, arm, _ in mine)
    edge.close()
    assert len(experiment.items) == 45
    assert experiment.replayed == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_refreshes_and_a_closed_edge_stays_closed(client, experiment):
    edge, closed = client.edge("exp", refresh=0.1), client.edge("exp", refresh=0.1)
    closed.close()

    def child():
        with pytest.raises(errors.RobanditError, match="closed"):
            closed.decide()
        edge.decide()
        known = edge.allocation.version
        eventually(lambda: edge.allocation.version != known)
        return edge.allocation.version

    timer = threading.Timer(0.3, experiment.new_version, [SHARES])
    timer.start()
    version = in_child(child)
    assert version == experiment.version
    timer.join()
    edge.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_can_fork_while_threads_decide_and_send(client):
    edge = client.edge("exp", refresh=0.1)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            for decision in drawn(edge, 50):
                edge.reward(decision, 1.0)
            time.sleep(0.001)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        lives = {in_child(lambda: edge.decide().id.split("-"))[0] for _ in range(amount(10, 100))}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(lives) == amount(10, 100)
    edge.close(timeout=20.0)


KILLED = """
import sys, time
from robandit_client import Client

edge = Client(sys.argv[1]).edge("exp", refresh=0.1)
while True:
    ids = [edge.decide().id for _ in range(20)]
    print(*ids, flush=True)
    for id in ids:
        edge.reward(id, 1.0)
    time.sleep(0.005)
"""


def test_a_killed_process_loses_only_what_it_had_not_sent(experiment):
    made = set()
    with EdgeService(experiment, share=0.2, seed=3) as service:
        for i in range(amount(3, 20)):
            command = [sys.executable, "-c", KILLED, service.url]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            expected = len(experiment.items) + 100 + 37 * i
            eventually(lambda expected=expected: len(experiment.items) >= expected)
            process.send_signal(signal.SIGKILL)
            lines = process.communicate()[0].splitlines()
            ids = [id for line in lines for id in line.split()]
            assert len(ids) == len(set(ids))
            assert not made & set(ids)
            made |= set(ids)
        accepted = [item["id"] for body in service.bodies for item in json.loads(body)["items"]]
    assert experiment.items.keys() <= set(accepted) <= made  # each accepted one counts once, and none was made up


# --- the real service -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "robandit.db", "--relaxed-durability", authenticate=True) as server:
        yield server


def test_the_real_service(server):
    with Client(server.url, server.key, timeout=60.0) as client:
        client.create("real", ["a", "b", "c"], minimize=True)
        with client.edge("real", refresh=0.1) as edge:
            assert edge.allocation.arms == ("a", "b", "c")
            first = edge.allocation.version
            decisions = drawn(edge, 300)
            for decision in decisions[:-10]:
                edge.reward(decision, {"a": 1.0, "b": 2.0, "c": 3.0}[decision.arm] + random.random())
            for decision in decisions[-10:]:
                edge.expire(decision)
            edge.flush()
            assert edge.counts["learned"] == 290
            assert edge.counts["expired"] == 10
            assert edge.counts["rejected"] == 0
            eventually(lambda: edge.allocation.version != first)
            rows = [json.loads(line) for line in server.call("GET", "/v1/experiments/real/log").body.splitlines()]
            rewarded = {row["id"] for row in rows if "id" in row}
            assert {decision.id for decision in decisions} <= rewarded
            assert isinstance(edge, Edge)
        assert edges.MOST_REJECTED == 100


def test_nothing_is_lost_or_counted_twice_when_server_and_edges_are_killed(tmp_path):
    """The server is killed under load again and again, and each time one of its edges."""
    port, kills = free_port(), amount(1, 12)
    reported, printed = {}, set()
    with Client(f"http://127.0.0.1:{port}", **PATIENT) as client:
        for kill in range(kills + 1):
            with Server(tmp_path / "robandit.db", port=port) as server:
                if not kill:
                    client.create("exp", ["a", "b", "c"])
                    kept = [client.edge("exp", refresh=0.1) for _ in range(2)]
                    gives_up_after(2.0, client)
                command = [sys.executable, "-c", KILLED, server.url]
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                    printed.update(process.stdout.readline().split())  # it may take seconds to start
                    until = time.monotonic() + 1.0 + random.random()
                    while time.monotonic() < until:
                        for edge in kept:
                            for decision in drawn(edge, 20):
                                value = random.random() if random.random() < 0.9 else None
                                edge.expire(decision) if value is None else edge.reward(decision, value)
                                reported[decision.id] = decision.arm, decision.propensity, value
                        time.sleep(0.01)
                    process.kill()
                    printed.update(process.communicate()[0].split())
                if kill == kills:
                    for edge in kept:
                        edge.close(timeout=30.0)
                        assert edge.counts["rejected"] == 0
                    lines = server.call("GET", "/v1/experiments/exp/log").body.splitlines()
                    rows = [row for row in map(json.loads, lines) if row["kind"] == "observed"]
                    counts = server.call("GET", "/v1/experiments/exp").json["counts"]
                else:
                    server.stop(signal.SIGKILL)
    learned = {row["id"]: (row["arm"], row["propensity"], row["reward"]) for row in rows}
    assert len(learned) == len(rows) == counts["decisions"]
    assert {id: learned.get(id) for id in reported} == reported
    assert printed & learned.keys()  # a killed edge loses only what it had not sent
    assert learned.keys() <= reported.keys() | printed
    lost = len(printed - learned.keys())
    print(
        f"kills {kills}, reported {len(reported):,} (all counted once); killed edges decided {len(printed):,}, lost {lost:,}"
    )
