"""/healthz and /readyz: while the log is loaded, when the service is ready, and after the store has failed."""

import asyncio
import time

import pytest

from helpers.serving import Local
from helpers.wrapped_stores import WrappedStore
from robandit import __version__
from robandit.decisions import restoring
from robandit.errors import CorruptFile, StoreError
from robandit.storage import open_store

P = "/v1/experiments/p"


def test_ready(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        health = local.call("GET", "/healthz", key="")
        assert (health.status, health.json) == (200, {"status": "ok", "version": __version__})
        ready = local.call("GET", "/readyz", key="")
        assert (ready.status, ready.json) == (200, {"status": "ready", "version": __version__})


def test_not_ready_while_the_log_is_loaded(tmp_path, monkeypatch):
    path = tmp_path / "robandit.db"
    with Local(path) as local:
        for name in ("p", "q"):
            local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]})
            local.call("POST", f"/v1/experiments/{name}/decisions/batch", {"items": [{}] * 100})
        local.engine._snapshots = dict.fromkeys((1, 2), 10**9)  # no snapshot at the end, so that all is folded
    monkeypatch.setattr(restoring, "EVENTS_AT_ONCE", 1)
    seen = []

    class Watched(Local):
        async def _start(self):
            await self._begin()
            await asyncio.sleep(0)  # loading has a turn
            paths = ("/healthz", "/readyz", "/docs", "/openapi.json", P, "/metrics")
            seen.extend([(path, await self.request("GET", path)) for path in paths])
            seen.append(("decide", await self.request("POST", f"{P}/decisions")))
            await self.service.ready()
            seen.append(("after", await self.request("GET", "/readyz")))

        async def _begin(self):
            from robandit.service.application import Service

            self.service = Service(self.store, authenticate=False, compile="never", on_failure=self.failures.append)
            await self.service.start()

    with Watched(path) as local:
        answers = dict(seen)
        assert local.call("GET", P).json["counts"]["decisions"] == 100
    assert answers["/healthz"].status == 200
    assert (answers["/readyz"].status, answers["/readyz"].json["status"]) == (503, "loading experiment 1 of 2")
    assert (answers["/docs"].status, answers["/openapi.json"].status) == (200, 200)
    for call in (P, "/metrics", "decide"):
        assert (answers[call].status, answers[call].json["code"]) == (503, "unavailable")
        assert answers[call].headers["retry-after"] == "1"
        assert "loading experiment" in answers[call].json["detail"]
    assert answers["after"].status == 200


def test_a_log_that_cannot_be_loaded(tmp_path):
    path = tmp_path / "robandit.db"
    with Local(path) as local:
        local.call("PUT", P, {"arms": ["a"]})
        local.call("POST", f"{P}/decisions")
        local.engine._snapshots = {1: 10**9}
    store = open_store(f"sqlite:{path}", durability="off")
    store._run("UPDATE event SET payload = '{}' WHERE kind = 'decided'")
    store.close()
    with Local(path) as local:
        [error] = local.failures
        assert isinstance(error, CorruptFile)
        ready = local.call("GET", "/readyz")
        assert (ready.status, ready.json["status"]) == (503, "not loaded: the log cannot be read")
        assert "event 2 of experiment 1 is damaged" in str(error)
        assert local.call("POST", f"{P}/decisions").status == 503
        assert local.call("GET", "/healthz").status == 200
        local.engine.loaded = False


def test_a_failed_commit(tmp_path):
    """All waiting calls get 503, nothing more is acknowledged, the process is told once, and a restart recovers."""
    path = tmp_path / "robandit.db"
    store = WrappedStore(path)
    with Local(path, store=store) as local:
        local.call("PUT", P, {"arms": ["a", "b"]})
        acknowledged = [local.call("POST", f"{P}/decisions", {"id": f"ok{i}"}).json for i in range(5)]
        assert local.call("POST", f"{P}/rewards", {"id": "ok0", "value": 1.5}).status == 200
        before = store._store.reader().experiments()
        store.gate.clear()

        async def waiting():
            calls = [local.request("POST", f"{P}/decisions", {"id": f"lost{i}"}) for i in range(40)]
            calls += [local.request("POST", f"{P}/decisions", {"id": "lost0"})]  # waits for the same commit
            calls += [local.request("POST", f"{P}/rewards", {"id": "ok1", "value": 2.5})]
            calls += [local.request("PUT", "/v1/experiments/q", {"arms": ["a"]})]
            calls += [local.request("GET", P)]  # would show what is not stored
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in tasks)
            store.broken = True
            store.gate.set()
            return await asyncio.gather(*tasks)

        answers = local.run(waiting())
        assert [answer.status for answer in answers] == [503] * len(answers)
        assert {answer.headers["retry-after"] for answer in answers} == {"1"}
        ready = local.call("GET", "/readyz")
        assert (ready.status, ready.json["status"]) == (503, "the store has failed")
        assert local.call("GET", "/healthz").status == 200
        store.broken = False  # a disk that works again changes nothing: the state in memory is ahead of the log
        tries = store.tries
        for call in (("POST", f"{P}/decisions"), ("POST", f"{P}/rewards", {"id": "ok2", "value": 1.0}), ("DELETE", P)):
            assert local.call(*call).status == 503
        assert store.tries == tries
        assert [str(failure) for failure in local.failures] == ["the disk is full"]
        assert isinstance(local.failures[0], StoreError)
        assert store._store.reader().experiments() == before
    with Local(path) as local:
        assert [each["name"] for each in local.call("GET", "/v1/experiments").json["experiments"]] == ["p"]
        for decision in acknowledged:
            again = local.call("POST", f"{P}/decisions", {"id": decision["id"]})
            assert (again.json, again.replayed) == (decision, True)
        assert local.call("POST", f"{P}/rewards", {"id": "ok0", "value": 1.5}).replayed
        assert not local.call("POST", f"{P}/rewards", {"id": "ok1", "value": 7.0}).replayed
        assert local.call("POST", f"{P}/rewards", {"id": "lost0", "value": 1.0}).status == 404
        assert not local.call("POST", f"{P}/decisions", {"id": "lost1"}).replayed
        assert local.call("GET", "/readyz").status == 200


@pytest.mark.parametrize("error", [OSError("no such device"), MemoryError(), RuntimeError("odd")])
def test_any_error_of_a_store_ends_the_service(tmp_path, error):
    store = WrappedStore(tmp_path / "robandit.db")
    with Local(tmp_path / "robandit.db", store=store) as local:
        local.call("PUT", P, {"arms": ["a"]})

        def fail(events, changes):
            raise error

        store.commit = fail
        assert local.call("POST", f"{P}/decisions").status == 503
        [failure] = local.failures
        assert isinstance(failure, StoreError)
        assert type(error).__name__ in str(failure)


def test_a_store_that_fails_while_it_tidies(tmp_path, monkeypatch):
    monkeypatch.setattr("robandit.storage.group_commit.IDLE", 0.02)
    store = WrappedStore(tmp_path / "robandit.db")

    def tidy():
        raise StoreError("the disk is gone")

    store.tidy = tidy
    with Local(tmp_path / "robandit.db", store=store) as local:
        until = time.monotonic() + 30.0
        while local.call("GET", "/readyz").status == 200:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert [str(failure) for failure in local.failures] == ["the disk is gone"]
