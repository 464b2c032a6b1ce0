"""Kills under load (guarantee 3), and histories that span kills (guarantee 7). `make crash` kills 1,000 times."""

import copy
import random
import re
import signal
import threading
import time

import pytest

from crash import linearizability
from crash.harness import EXPERIMENTS, Round, Totals, check_all, create_experiments, forked, run, wait_until_ready
from crash.linearizability import operations
from crash.model import Violation
from helpers.amount import amount
from helpers.serving import Server

pytestmark = pytest.mark.xdist_group("crash")


@pytest.fixture(scope="module")
def killed(zygote, tmp_path_factory):
    """A round with 20 kills, in which everything was checked, and whose history has what the tests below need."""
    one = Round(tmp_path_factory.mktemp("killed"), forked(zygote)(random.Random(7)), 7)

    def enough():
        calls = answered(one.history, "decisions") and repeated_rewards(one.history)
        return bool(calls) and min(figures_of(one)[name] for name in NEEDED) > 0

    one.play(amount(20, 100), enough=enough)
    return one


NEEDED = ("acknowledged", "cut off", "resent", "replayed", "late")


def figures_of(one):
    totals = Totals()
    totals.add(one.history, one.auditor.logs())
    return totals.figures


def repeated_rewards(history):
    """Return the calls that repeated a reward whose first call was answered."""
    made = {(each.call.experiment, each.answer["seq"]) for each in operations(history.calls) if each.is_new}
    rewards = [call for name in EXPERIMENTS for call in answered(history, "reward", name) if call.replayed]
    return [call for call in rewards if (call.experiment, call.answer["seq"]) in made]


def test_twenty_kills_lose_nothing(killed):
    assert killed.kills.total() >= amount(20, 100)
    assert figures_of(killed)["twice"] == 0


class Command:
    """A genuine `robandit serve`."""

    def __init__(self, path):
        self._server = Server(path)

    def port(self):
        return self._server.port

    def kill(self, number=signal.SIGKILL):
        return self._server.stop(number)[0]


def test_kills_of_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr("crash.harness.MODES", (("later",), (1,)))
    one = Round(tmp_path, Command, 11)
    one.play(amount(2, 10))
    assert one.kills.total() == amount(2, 10)


def test_many_clients_until_a_server_is_told_to_stop(zygote, tmp_path):
    """SIGTERM in the middle: calls are answered or cut off, the server ends normally, and the history is linearizable."""
    one = Round(tmp_path, zygote.start, 13, clients=amount(32, 64))
    child = zygote.start(one.path, snapshot_every=200)
    wait_until_ready(child.port())
    create_experiments(child.port())
    one.site.open(child.port())
    for client in one.clients:
        client.start()
    time.sleep(amount(1.0, 20.0))
    one.site.shut()
    assert child.kill(signal.SIGTERM) == 0, child.errors()
    one.close()
    assert child.errors() == ""
    one.auditor.check(thoroughly=True)
    check_all(one.history, one.auditor.logs())


def test_the_zygote_forks_with_one_thread(zygote):
    assert zygote.tasks == 1


@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        (
            "early acknowledgement",
            "acknowledged one is lost|the log has|acknowledged before|was not stored|explain .*: 500",
        ),
        ("half a group", "stored in part|not stored as one"),
        ("wrong snapshot", "the tail give other bytes"),
        ("forgotten ids", "expected event|the head is|counted twice|answered 404|nobody has used its id"),
    ],
)
def test_the_harness_notices_a_broken_server(zygote, fault, finding):
    with pytest.raises(Violation, match=finding):
        run(40, 5, start=forked(zygote, fault=fault, slow=0.03), per_round=3, thorough=1)


# --- the checker refuses histories that are wrong ---------------------------------------------------------------------------


def mutated(killed):
    """Return a history and logs that may be changed."""
    history = copy.copy(killed.history)
    history.calls = copy.deepcopy(killed.history.calls)
    return history, {name: list(rows) for name, rows in killed.auditor.logs().items()}


def answered(history, kind, experiment="plain", status=200):
    return [
        call
        for call in history.calls
        if (call.kind, call.experiment, call.status) == (kind, experiment, status) and call.responded is not None
    ]


def test_the_recorded_history_is_accepted(killed):
    check_all(*mutated(killed))


def test_swapped_answers_are_refused(killed):
    history, logs = mutated(killed)
    first, *_, last = [call for call in answered(history, "decide") if set(call.body) == {"context"}]
    for call in (first, last):
        del call.body["context"]
        row = logs["plain"][call.answer["seq"] - 1]
        logs["plain"][row.seq - 1] = row._replace(payload={k: v for k, v in row.payload.items() if k != "context"})
    check_all(history, logs)  # without ids and contexts, only real time tells the calls apart
    first.answer, last.answer = last.answer, first.answer
    with pytest.raises(Violation, match=r"acknowledged before|a stale read"):
        check_all(history, logs)


def test_a_lost_event_is_refused(killed):
    history, logs = mutated(killed)
    lost = answered(history, "decide")[-1].answer["seq"]
    logs["plain"] = [
        row if row.seq < lost else row._replace(seq=row.seq - 1) for row in logs["plain"] if row.seq != lost
    ]
    with pytest.raises(Violation):
        check_all(history, logs)


def test_a_lost_tail_is_refused(killed):
    history, logs = mutated(killed)
    last = max(
        each.answer["seq"] for each in operations(history.calls) if each.is_new and each.call.experiment == "plain"
    )
    del logs["plain"][last - 1 :]
    with pytest.raises(Violation, match=r"acknowledged one is lost|was not stored"):
        check_all(history, logs)


def test_a_stale_read_is_refused(killed):
    history, logs = mutated(killed)
    reads = answered(history, "show")
    old, new = min(reads, key=lambda call: call.answer["seq"]), max(reads, key=lambda call: call.answer["seq"])
    assert old.answer["seq"] < new.answer["seq"]
    new.answer = old.answer
    with pytest.raises(Violation, match="a stale read"):
        check_all(history, logs)


def test_a_read_of_an_event_that_was_never_stored_is_refused(killed):
    """The number of the read comes again, for a call that was sent after the read was answered."""
    history, logs = mutated(killed)
    read = answered(history, "show")[0]
    after = [each for each in operations(history.calls) if each.is_new and each.call.invoked > read.responded]
    later = min(each.answer["seq"] for each in after if each.call.experiment == "plain")
    model = linearizability.Model("plain")
    for row in logs["plain"][:later]:
        model.apply(row)
    read.answer |= {"seq": later, "counts": model.shown()}
    for arm in read.answer["arms"]:
        arm["pulls"] = model.pulls[arm["arm"]]
    with pytest.raises(Violation, match=r"acknowledged before|a stale read"):
        check_all(history, logs)


def test_wrong_counts_are_refused(killed):
    history, logs = mutated(killed)
    answered(history, "show")[-1].answer["counts"]["rewards"] += 1
    with pytest.raises(Violation, match="the log gives"):
        check_all(history, logs)


def test_another_arm_is_refused(killed):
    history, logs = mutated(killed)
    call = next(call for call in answered(history, "decide") if not {"arm", "among"} & set(call.body))
    row = logs["plain"][call.answer["seq"] - 1]
    other = next(arm for arm in EXPERIMENTS["plain"]["arms"] if arm != row.payload["arm"])
    call.answer["arm"] = other
    with pytest.raises(Violation, match="the log has"):
        check_all(history, logs)
    logs["plain"][row.seq - 1] = row._replace(payload=row.payload | {"arm": other})
    with pytest.raises(Violation, match=f"the model chooses {row.payload['arm']}"):
        linearizability.check_choices("plain", logs["plain"], EXPERIMENTS["plain"])


def test_two_calls_that_made_the_same_event_are_refused(killed):
    history, logs = mutated(killed)
    repeated_rewards(history)[0].replayed = False
    with pytest.raises(Violation, match=r"was told that it is new|acknowledged before"):
        check_all(history, logs)


def test_an_event_that_nobody_asked_for_is_refused(killed):
    history, logs = mutated(killed)
    # A decision that the server made on its own: its call vanishes from the history, with all that repeats it.
    call = answered(history, "decide")[-1]
    history.calls = [each for each in history.calls if each.body != call.body]
    with pytest.raises(Violation, match=re.escape("no call was cut off that could have")):
        check_all(history, logs)


def test_half_a_batch_is_refused(killed):
    history, logs = mutated(killed)
    batch = answered(history, "decisions")[-1]
    history.calls = [each for each in history.calls if each is batch or each.body != batch.body]
    batch.responded = None
    check_all(history, logs)  # it may have happened without an answer
    batch.body["items"].append({"context": "an item that is not stored"})
    with pytest.raises(Violation, match="stored in part"):
        check_all(history, logs)


def test_no_client_thread_is_left(killed):
    assert not [thread for thread in threading.enumerate() if thread in killed.clients]
