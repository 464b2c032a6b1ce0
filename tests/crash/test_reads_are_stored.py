"""No answer tells of an event that is not stored yet: a crash could still take it back (guarantee 7)."""

import asyncio
import threading

import pytest

from helpers.serving import Local
from robandit.service import explanations
from robandit.storage.sqlite import SqliteStore


class Gated(SqliteStore):
    """A store whose commits wait at a gate."""

    def __init__(self, path):
        super().__init__(str(path), durability="off")
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, events, changes):
        assert self.gate.wait(30)
        super().commit(events, changes)


@pytest.fixture
def service(tmp_path):
    store = Gated(tmp_path / "robandit.db")
    with Local(tmp_path / "robandit.db", store=store) as service:
        service.call("PUT", "/v1/experiments/p", {"arms": ["a", "b"], "policy": "UCB1"})
        try:
            yield service
        finally:
            store.gate.set()


def post(service, path, body=None):
    """Start a call, and return it as a task of the service's loop."""

    async def started():
        task = asyncio.get_running_loop().create_task(service.request("POST", f"/v1/experiments/p/{path}", body))
        for _ in range(20):
            await asyncio.sleep(0)
        return task

    return service.run(started())


async def answer(task):
    return await task


def check_waits(service, start):
    """Check that a call has no answer while the gate is closed, and return the answer once it is open."""
    task = start()
    assert not task.done()
    service.store.gate.set()
    return service.run(answer(task))


def test_a_conflict_waits_for_the_reward_that_it_tells_of(service):
    id = service.call("POST", "/v1/experiments/p/decisions").json["id"]
    service.store.gate.clear()
    first = post(service, "rewards", {"id": id, "value": 1.0})
    conflict = check_waits(service, lambda: post(service, "rewards", {"id": id, "value": 2.0}))
    assert (conflict.status, conflict.json["code"]) == (409, "conflict")
    assert service.run(answer(first)).status == 200


@pytest.mark.parametrize(
    ("path", "body", "call"),
    [("pause", None, "decisions"), ("arms", {"arm": "c"}, "arms"), ("decisions", {"id": "x"}, "decisions")],
)
def test_a_refusal_waits_for_its_reason(service, path, body, call):
    service.store.gate.clear()
    post(service, path, body)
    again = {"id": "x", "arm": "b"} if path == "decisions" else body
    assert check_waits(service, lambda: post(service, call, again)).status == 409


def test_not_found_waits_for_the_removal(service):
    service.store.gate.clear()

    async def removed():
        task = asyncio.get_running_loop().create_task(service.request("DELETE", "/v1/experiments/p"))
        await asyncio.sleep(0.01)
        return task

    service.run(removed())
    assert check_waits(service, lambda: post(service, "decisions")).status == 404


def test_a_replay_waits(service):
    service.store.gate.clear()
    post(service, "decisions", {"id": "x"})
    assert check_waits(service, lambda: post(service, "decisions", {"id": "x"})).replayed


def test_an_explanation_tells_of_no_reward_that_is_not_stored(service):
    id = service.call("POST", "/v1/experiments/p/decisions").json["id"]
    path = f"/v1/experiments/p/decisions/{id}"
    service.store.gate.clear()
    post(service, "rewards", {"id": id, "value": 1.0})
    explained = asyncio.run_coroutine_threadsafe(service.request("GET", path), service.loop)
    service.run(asyncio.sleep(0.1))
    assert not explained.done()
    service.store.gate.set()
    assert explained.result(30).json["status"] == "rewarded"


def test_an_explanation_during_a_reward(service, monkeypatch):
    """The reward comes while the log is read, and is not stored yet: the decision is open."""
    id = service.call("POST", "/v1/experiments/p/decisions").json["id"]
    explaining, may_go_on = threading.Event(), threading.Event()

    def slowly(*arguments, before=explanations._explanation):
        explaining.set()
        assert may_go_on.wait(30)
        return before(*arguments)

    monkeypatch.setattr(explanations, "_explanation", slowly)
    explained = asyncio.run_coroutine_threadsafe(
        service.request("GET", f"/v1/experiments/p/decisions/{id}"), service.loop
    )
    assert explaining.wait(30)
    service.store.gate.clear()
    post(service, "rewards", {"id": id, "value": 1.0})
    may_go_on.set()
    found = explained.result(30).json
    assert (found["status"], found["reward"]) == ("open", None)
    service.store.gate.set()


@pytest.mark.parametrize("path", ["", "/p"])
def test_what_is_shown_is_stored(service, path):
    """The answer is that of the moment of the call, and comes when it is stored, even if more calls follow."""
    service.store.gate.clear()
    post(service, "decisions")
    shown = asyncio.run_coroutine_threadsafe(service.request("GET", f"/v1/experiments{path}"), service.loop)
    service.run(asyncio.sleep(0.05))
    post(service, "decisions")
    assert not shown.done()
    service.store.gate.set()
    found = shown.result(30).json
    assert (found if path else found["experiments"][0])["counts"]["decisions"] == 1
