"""Both clients with a proxy that answers what the service does not: no error that is not documented, no reward lost or doubled."""

import json
import logging
import random
import threading

import pytest

from helpers.amount import amount
from helpers.bad_proxy import ANSWERS, FRAMES, WRONG, BadProxy, changed, mutated, nested, whole
from helpers.clients import clients, eventually
from helpers.serving import Server
from robandit import errors
from robandit_client import Report, answers
from robandit_client.http import Unexpected

QUICK = {"timeout": 0.25, "connect_timeout": 0.2, "read_timeout": 0.2}
PATIENT = {"timeout": 60.0, "connect_timeout": 60.0, "read_timeout": 60.0}
ARMS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "robandit.db", "--relaxed-durability") as server:
        yield server


@pytest.fixture
def proxy(server):
    with BadProxy(server.host, server.port) as proxy:
        yield proxy


@pytest.fixture(params=["blocking", "asyncio"])
def make(request):
    """A function that makes a client."""
    with clients(request.param) as make:
        yield make


@pytest.fixture
def name(request):
    return "".join(char if char.isalnum() else "-" for char in request.node.name)[:90]


class Company:
    """A client behind the proxy, an experiment that the service has, and decisions that wait for their rewards."""

    def __init__(self, make, proxy, server, name, rewards, limits=PATIENT):
        self.proxy, self.server, self.name = proxy, server, name
        server.call("PUT", f"/v1/experiments/{name}", {"arms": ARMS})
        items = [{"id": f"order-{i}"} for i in range(rewards)]
        server.call("POST", f"/v1/experiments/{name}/decisions/batch", {"items": items})
        self.client = make(proxy.url, cooldown=1e-9, **limits)
        # A call makes one attempt, and the delivery many.
        self.client._core.caller.pause = lambda attempts: 600.0 if attempts == 1 else 0.01
        self.experiment = self.client.experiment(name)
        self.sent = {}
        self.made = {}

    def delivers(self):
        """Whether the thread or the task that delivers reports is alive."""
        if hasattr(self.client, "_task"):
            return not self.client._task.done()
        return self.client._thread.is_alive()

    def reward(self):
        """Send the next reward, and return its outcome."""
        number = len(self.sent)
        self.sent[f"order-{number}"] = number + 0.5
        return self.experiment.reward(f"order-{number}", number + 0.5).outcome

    def decide(self, **options):
        """Decide, and return the decision. Its arm is one of the experiment."""
        decision = self.experiment.decide(**options)
        assert decision.arm in ARMS
        assert decision.experiment == self.name
        self.made[decision.id] = decision
        return decision

    def await_delivery(self):
        """Wait until the client has read an answer to a delivery: it has tried again."""
        before = self.batches()
        eventually(lambda: self.batches() >= before + 2)

    def batches(self):
        return sum(count for line, count in self.proxy.answers.copy().items() if line.endswith("/batch"))

    def check(self):
        """After good answers, the service has everything that was sent, once."""
        self.proxy.spoil = None
        eventually(lambda: not self.client.waiting)
        assert self.client.rejected == []
        rows = self.server.call("GET", f"/v1/experiments/{self.name}/log").body.splitlines()
        rows = [json.loads(row) for row in rows]
        rewarded = [(row["id"], row["reward"]) for row in rows if row["kind"] == "rewarded"]
        assert sorted(rewarded) == sorted(self.sent.items())
        decided = {row["id"]: row["arm"] for row in rows if row["kind"] == "decided"}
        assert {id: decided.get(id) for id in self.made} == {id: each.arm for id, each in self.made.items()}
        self.client.close()


# --- what is not an answer of the service ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [FRAMES, ANSWERS], ids=["frames", "answers"])
def test_what_is_not_an_answer(make, proxy, server, name, cases, caplog):
    caplog.set_level(logging.CRITICAL, "robandit.client")
    company = Company(make, proxy, server, name, len(cases), QUICK)
    for case, spoil in cases.items():
        proxy.spoil = spoil
        assert company.decide(fallback="b").fallback, case
        with pytest.raises(errors.ServiceUnavailable):
            company.decide()
        assert company.reward() == "kept", case
        with pytest.raises(errors.ServiceUnavailable):
            company.experiment.show()
        with pytest.raises(errors.ServiceUnavailable):
            company.client.create(name, ARMS)
        assert [each.fallback for each in company.experiment.decide_many(2, fallback="c")] == [True, True], case
        if "endless" not in case and case not in ("silence", "a body byte by byte"):
            company.await_delivery()
        assert company.delivers(), case
    company.check()


# --- answers with wrong fields --------------------------------------------------------------------------------------------

DECISION = {"id": "x", "experiment": "p", "arm": "a", "propensity": 0.5, "time": 1.5, "seq": 7, "fallback": False}
REWARD = {"id": "x", "experiment": "p", "value": 0.5, "outcome": "applied"}
EXPERIMENT = {"name": "p", "arms": [{"arm": "a"}], "settings": {"minimize": True}}
EXPLANATION = {"id": "x", "experiment": "p", "arms": [{"arm": "a"}]}
MEANT = {("propensity", None), ("time", 2), ("seq", 2), ("fallback", True)}
"""Values of `WRONG` that are not wrong in these fields."""


def read_decision(answer):
    return answers.decision_of(answer, "p", "x", None, ["a", "b"])


def read_reward(answer):
    return answers.reward_of(answer, Report("p", "x", value=0.5))


def read_experiment(answer):
    return answers.experiment_of(answer, "p")


def read_explanation(answer):
    return answers.explanation_of(answer, "p", "x")


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(
    ("read", "answer", "field"),
    [(read_decision, DECISION, field) for field in DECISION]
    + [(read_reward, REWARD, field) for field in REWARD]
    + [(read_experiment, EXPERIMENT, field) for field in EXPERIMENT]
    + [(read_explanation, EXPLANATION, field) for field in EXPLANATION],
)
def test_every_field_is_checked(read, answer, field, value):
    read(answer)
    if isinstance(value, (list, dict)) or (field, value) not in MEANT:
        with pytest.raises(Unexpected, match=f"{field} = |is not an object") as caught:
            read(answer | {field: value})
        assert len(str(caught.value)) < 250


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
def test_every_field_of_an_item_is_checked(value):
    good = {"status": 200, "decision": DECISION, "problem": None}
    bad = {"status": 404, "decision": None, "problem": {"detail": "none", "code": "not-found"}}

    def read(item):
        return answers.items_of({"items": [item]}, "decision", [read_decision])

    assert read(good)[0].arm == "a"
    assert isinstance(read(bad)[0], errors.NotFound)
    for wrong in (
        good | {"status": value},
        good | {"decision": value},
        bad | {"status": value},
        bad | {"problem": value},
    ):
        assert_unreadable(read(wrong))
    for field in ("detail", "code") if value != "other" else ():
        assert_unreadable(read(bad | {"problem": bad["problem"] | {field: value}}))
    for whole_answer in (value, {"items": None}, {"items": [good, good]}, {"items": []}):
        with pytest.raises(Unexpected):
            answers.items_of(whole_answer, "decision", [read_decision])


def assert_unreadable(items):
    (error,) = items
    assert isinstance(error, errors.ServiceUnavailable)
    assert isinstance(error.__cause__, Unexpected)


def test_a_decision_answers_its_request():
    assert read_decision(DECISION).seq == 7
    fallback = DECISION | {"id": "new", "seq": 0, "fallback": True}
    assert (read_decision(fallback).fallback, read_decision(fallback).seq) == (True, None)
    with pytest.raises(Unexpected, match="arm = 'c', not an arm that the request allows"):
        read_decision(fallback | {"arm": "c"})
    with pytest.raises(Unexpected, match="fallback"):  # the caller has chosen the arm
        answers.decision_of(fallback, "p", "x", "a", None)
    with pytest.raises(Unexpected, match="arm = 'a'"):
        answers.decision_of(DECISION, "p", "x", "b", None)


@pytest.mark.parametrize("field", ["id", "experiment", "arm", "outcome", "status"])
def test_an_answer_to_another_call(make, proxy, server, name, field):
    """Also in a batch, and in the background."""
    company = Company(make, proxy, server, name, 3)
    proxy.spoil = changed(lambda answer: nested(answer, [field], "other"))
    if field in ("id", "experiment", "arm"):
        assert company.decide(fallback="b", among=["a", "b"]).fallback
        with pytest.raises(errors.ServiceUnavailable, match=f"{field} = 'other', not "):
            company.decide(among=["a", "b"])
    if field in ("id", "experiment", "outcome"):
        assert company.reward() == "kept"
    assert company.experiment.reward_many([("order-1", 1.5)])[0].outcome in ("kept", "applied")
    company.sent["order-1"] = 1.5
    if company.client.waiting:
        company.await_delivery()
        assert company.delivers()
    company.check()


# --- an item that cannot be read ------------------------------------------------------------------------------------------


def without_item(id):
    """Return a way to spoil the item of one decision in a batch."""

    def change(answer):
        for item in answer.get("items", ()):
            content = item.get("reward") or item.get("decision")
            if content["id"] == id:
                content["id"] = "other"
        return answer

    return changed(change)


def test_an_item_that_cannot_be_read_does_not_spoil_its_batch(make, proxy, server, name):
    company = Company(make, proxy, server, name, 6)
    proxy.spoil = without_item("mine-1")
    decisions = company.experiment.decide_many([{"id": f"mine-{i}"} for i in range(3)], fallback="b")
    assert [each.fallback for each in decisions] == [False, True, False]
    company.made = {each.id: each for each in decisions}
    with pytest.raises(
        errors.BatchError, match=r"1 of 2 decisions failed.*an item is not one of the decision"
    ) as caught:
        company.experiment.decide_many([{"id": "mine-1"}, {"id": "mine-3"}])
    company.made["mine-3"] = caught.value.answers[1]
    proxy.spoil = without_item("order-1")
    outcomes = company.experiment.reward_many([(f"order-{i}", i + 0.5) for i in range(3)])
    assert [each.outcome for each in outcomes] == ["applied", "kept", "applied"]
    company.sent = {f"order-{i}": i + 0.5 for i in range(3)}
    proxy.spoil = ANSWERS["a page"]
    assert [company.reward() for _ in range(3)] == ["kept"] * 3
    proxy.spoil = without_item("order-4")
    eventually(lambda: [each.id for each in company.client.waiting] == ["order-4"])
    company.await_delivery()
    assert company.delivers()
    company.check()


def test_an_item_that_can_never_be_read_is_tried_after_a_pause_and_holds_up_nothing(make, proxy, server, name):
    company = Company(make, proxy, server, name, 2)
    other = f"{name[:80]}-other"
    server.call("PUT", f"/v1/experiments/{other}", {"arms": ARMS})
    server.call("POST", f"/v1/experiments/{other}/decisions", {"id": "order-9"})
    company.client._core.caller.pause = lambda attempts: 600.0
    proxy.spoil = ANSWERS["a page"]
    assert company.reward() == "kept"
    assert company.experiment.reward("order-1", 1.5).outcome == "kept"
    assert company.client.experiment(other).reward("order-9", 2.5).outcome == "kept"
    company.sent["order-1"] = 1.5
    proxy.spoil = without_item("order-0")
    company.decide()  # the service is back, so what waits is delivered at once
    eventually(lambda: [each.id for each in company.client.waiting] == ["order-0"])
    tried = company.batches()
    for _ in range(5):
        company.decide()
        threading.Event().wait(0.02)
    assert company.batches() == tried
    proxy.spoil = None
    company.client.flush()
    company.check()


# --- arms -----------------------------------------------------------------------------------------------------------------


def test_an_arm_that_the_request_does_not_allow(make, proxy, server, name):
    company = Company(make, proxy, server, name, 0)
    proxy.spoil = changed(lambda answer: nested(answer, ["arm"], "z"))
    assert company.experiment.decide().arm == "z"
    with pytest.raises(errors.ServiceUnavailable, match="arm = 'z'"):
        company.decide(among=ARMS)
    proxy.spoil = None
    company.check()


def test_a_fallback_of_the_service_has_another_id(make, proxy, server, name):
    company = Company(make, proxy, server, name, 0)
    server.call("POST", f"/v1/experiments/{name}/pause")
    fallback = {
        "id": "fallback-1",
        "experiment": name,
        "arm": "b",
        "propensity": None,
        "time": 1.5,
        "seq": 0,
        "fallback": True,
    }
    proxy.spoil = lambda answer: [whole(json.dumps(fallback).encode())]
    decision = company.decide(id="order-17")
    assert (decision.arm, decision.fallback, decision.seq) == ("b", True, None)
    assert decision.id not in ("order-17", "fallback-1")
    assert company.experiment.reward(decision, 2.5).outcome == "kept"
    company.sent[decision.id] = 2.5
    server.call("POST", f"/v1/experiments/{name}/resume")
    company.check()


# --- at random ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_answers_with_random_changes(make, proxy, server, name, seed, caplog):
    caplog.set_level(logging.CRITICAL, "robandit.client")
    chance = random.Random(seed)
    rounds = amount(60, 1_000)
    company = Company(make, proxy, server, name, rounds)
    proxy.spoil = lambda answer: [mutated(answer, chance)]
    experiment, failures = company.experiment, 0
    for i in range(rounds):
        assert company.reward() in ("applied", "kept")
        decision = experiment.decide(id=f"mine-{i}", fallback="b")
        assert decision.experiment == name
        assert decision.id == f"mine-{i}" or (decision.fallback and decision.arm == "b")
        for call in (experiment.show, lambda: experiment.decide_many(2), lambda: company.client.create(name, ARMS)):
            try:
                call()
            except errors.RobanditError:
                failures += 1
        assert not company.client.waiting or company.delivers()
    assert failures > rounds
    company.check()


# --- the delivery ---------------------------------------------------------------------------------------------------------


def test_an_error_that_nobody_expects_does_not_end_the_delivery(make, proxy, server, name, caplog):
    company = Company(make, proxy, server, name, 1)
    deliver, failed = company.client._core.deliver, threading.Event()

    async def fail_once(seconds):
        if not failed.is_set():
            failed.set()
            raise ValueError("a bug")
        await deliver(seconds)

    company.client._core.deliver = fail_once
    proxy.spoil = ANSWERS["a page"]
    assert company.reward() == "kept"
    eventually(failed.is_set)
    company.await_delivery()
    assert "a bug" in caplog.text
    assert "Traceback" in caplog.text
    company.check()


def test_what_comes_on_an_idle_connection_is_not_the_next_answer(make, proxy, server, name):
    """Some proxies send 408 before they close an idle connection. A problem would even be taken for a rejection."""
    late_answer = b'{"title": "x", "status": 409, "detail": "a late answer", "code": "conflict"}'
    proxy.surplus = whole(late_answer, status="409 Conflict", kind="application/problem+json")
    company = Company(make, proxy, server, name, 3)
    for _ in range(3):
        late = proxy.late
        assert company.reward() == "applied"
        eventually(lambda late=late: proxy.late > late)
        threading.Event().wait(0.1)
    company.check()
