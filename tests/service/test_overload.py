"""Guarantees 8, 9 and 10: overload is said, SIGTERM drains, a second server is refused, and backups are made under load."""

import asyncio
import http.client
import signal
import subprocess
import sys
import threading
import time

from helpers.invalid import raises
from helpers.serving import Local, Server, exchange
from helpers.stores import check_integrity
from helpers.typed import typed
from helpers.wrapped_stores import WrappedStore
from robandit.errors import StoreError
from robandit.service import application, explanations
from robandit.storage import open_store
from robandit.storage.sqlite import SqliteReader

P = "/v1/experiments/p"


async def finished(tasks, number):
    """Wait until so many of the calls have an answer."""
    async with asyncio.timeout(60):
        while sum(task.done() for task in tasks) < number:
            await asyncio.sleep(0.01)


# --- overload -----------------------------------------------------------------------------------------------------------------


def test_a_full_queue_is_said(tmp_path):
    store = WrappedStore(tmp_path / "robandit.db")
    with Local(tmp_path / "robandit.db", store=store, most_waiting=10) as local:
        local.call("PUT", P, {"arms": ["a", "b"]})
        known = local.call("POST", f"{P}/decisions", {"id": "known"}).json
        store.gate.clear()

        async def flood():
            tasks = [asyncio.ensure_future(local.request("POST", f"{P}/decisions", {"id": str(i)})) for i in range(30)]
            await finished(tasks, 30 - 11)
            refused = [task.result() for task in tasks if task.done()]
            waiting = [task for task in tasks if not task.done()]
            others = [
                await local.request("POST", f"{P}/rewards", {"id": "known", "value": 1.0}),
                await local.request("POST", f"{P}/rewards/batch", {"items": [{"id": "known", "value": 1.0}]}),
                await local.request("POST", f"{P}/decisions/batch", {"items": [{}]}),
                await local.request("POST", f"{P}/pause"),
                await local.request("PUT", "/v1/experiments/q", {"arms": ["a"]}),
                await local.request("POST", "/v1/keys", {"scopes": ["read"]}),
            ]
            alive = [await local.request("GET", path) for path in ("/healthz", "/readyz", "/metrics")]
            store.gate.set()
            return refused + others, await asyncio.gather(*waiting), alive

        refused, stored, alive = local.run(flood())
        assert len(stored) == 11  # the one that finds ten before it still gets in
        assert len(refused) == 19 + 6
        for answer in refused:
            assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (429, "too-many", "1")
            assert "events wait for the disk" in answer.json["detail"]
        assert [answer.status for answer in alive] == [200, 200, 200]
        assert b"robandit_waiting_events{} 11" in alive[2].body
        assert {answer.status for answer in stored} == {200}
        seqs = sorted(answer.json["seq"] for answer in stored)
        assert seqs == list(range(known["seq"] + 1, known["seq"] + 12))
        assert local.call("GET", P).json["counts"]["decisions"] == 12
        assert local.call("POST", f"{P}/decisions").status == 200  # room again
        assert not local.failures


def test_too_many_calls_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(application, "MOST_REQUESTS", 8)
    store = WrappedStore(tmp_path / "robandit.db")
    with Local(tmp_path / "robandit.db", store=store) as local:
        local.call("PUT", P, {"arms": ["a"]})
        store.gate.clear()

        async def flood():
            tasks = [asyncio.ensure_future(local.request("POST", f"{P}/decisions")) for _ in range(20)]
            await finished(tasks, 20 - 8)
            health = await local.request("GET", "/healthz")
            store.gate.set()
            return health, await asyncio.gather(*tasks)

        health, answers = local.run(flood())
        assert health.status == 200
        assert sorted(answer.status for answer in answers) == [200] * 8 + [503] * 12
        assert {answer.headers.get("retry-after") for answer in answers if answer.status == 503} == {"1"}


def test_too_many_explanations(tmp_path, monkeypatch):
    monkeypatch.setattr(explanations, "MOST_WAITING", 3)
    gate = threading.Event()
    before = explanations._explanation
    monkeypatch.setattr(explanations, "_explanation", lambda *given: (gate.wait(30), before(*given))[1])
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})
        local.call("POST", f"{P}/decisions", {"id": "x"})

        async def ask():
            tasks = [asyncio.ensure_future(local.request("GET", f"{P}/decisions/x")) for _ in range(8)]
            await finished(tasks, 8 - 3)
            gate.set()
            return await asyncio.gather(*tasks)

        answers = local.run(ask())
        assert sorted(answer.status for answer in answers) == [200] * 3 + [429] * 5


def test_a_call_that_is_cancelled_does_not_hinder_others(tmp_path):
    """A client that hangs up while its call waits for the disk."""
    store = WrappedStore(tmp_path / "robandit.db")
    with Local(tmp_path / "robandit.db", store=store) as local:
        local.call("PUT", P, {"arms": ["a"]})
        store.gate.clear()

        async def hang_up():
            tasks = [asyncio.ensure_future(local.request("POST", f"{P}/decisions", {"id": str(i)})) for i in range(6)]
            async with asyncio.timeout(60):
                while b"robandit_waiting_events{} 6" not in (await local.request("GET", "/metrics")).body:
                    await asyncio.sleep(0.01)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.sleep(0.05)
            store.gate.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

        answers = local.run(hang_up())
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False] * 3
        assert {answer.status for answer in answers[1::2]} == {200}
        assert local.call("GET", P).json["counts"]["decisions"] == 6  # they were made and stored all the same
        assert local.call("POST", f"{P}/decisions", {"id": "0"}).replayed


# --- a real server under load -------------------------------------------------------------------------------------------------


class Load(threading.Thread):
    """Decides and rewards on one connection until it is stopped or the server ends. Remembers what was acknowledged."""

    def __init__(self, server, number):
        super().__init__()
        self.server = server
        self.number = number
        self.decided, self.rewarded = {}, {}
        self.odd = []
        self.stopping = threading.Event()

    def run(self):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=30)
        try:
            for i in range(100_000):
                if self.stopping.is_set():
                    return
                id = f"{self.number}-{i}"
                answer = exchange(connection, "POST", f"{P}/decisions", {"id": id})
                if answer.status != 200:
                    self.odd.append(answer)
                    return
                self.decided[id] = answer.json["arm"]
                answer = exchange(connection, "POST", f"{P}/rewards", {"id": id, "value": i / 8})
                if answer.status != 200:
                    self.odd.append(answer)
                    return
                self.rewarded[id] = i / 8
        except (OSError, http.client.HTTPException):  # the server has ended
            return
        finally:
            connection.close()


def under_load(server, workers=4, least=40):
    """Start workers, and wait until they have done something."""
    loads = [Load(server, number) for number in range(workers)]
    for load in loads:
        load.start()
    until = time.monotonic() + 60
    while sum(len(load.rewarded) for load in loads) < least:
        assert time.monotonic() < until
        time.sleep(0.01)
    return loads


def stored_in(path):
    """Return the stored decisions and rewards, and the number of snapshots."""
    check_integrity(path)
    reader = SqliteReader(str(path))
    try:
        [experiment] = reader.experiments()
        events = reader.events(experiment.number, 0, 10**6)
        snapshots = reader.snapshots(experiment.number)
    finally:
        reader.close()
    assert [event.seq for event in events] == list(range(1, experiment.head + 1))
    decided = {event.id for event in events if event.kind == "decided"}
    rewarded = {event.id for event in events if event.kind == "rewarded"}
    return decided, rewarded, [seq for seq, _ in snapshots], experiment.head


def test_a_server_under_load(tmp_path):
    """One server for three guarantees: it is slow to start."""
    path = tmp_path / "robandit.db"
    with Server(path) as server:
        server.call("PUT", P, {"arms": ["a", "b"], "seed": 1})

        # A second server on the same file is refused by name.
        command = [sys.executable, "-m", "robandit", "serve", "--port", "0", "--no-auth", "--store", f"sqlite:{path}"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 1
        assert str(path) in second.stderr
        assert "is used by another server: stop it first" in second.stderr
        assert "Traceback" not in second.stderr
        with raises(StoreError, code="store-in-use"):
            open_store(f"sqlite:{path}")

        # A backup under load has all that was acknowledged before it began.
        loads = under_load(server)
        decided = {id for load in loads for id in list(load.decided)}
        rewarded = {id for load in loads for id in list(load.rewarded)}
        printed, _ = typed("backup", str(tmp_path / "copy.db"), "--store", f"sqlite:{path}", cwd=tmp_path)
        assert "checked" in printed
        copied_decided, copied_rewarded, _, head = stored_in(tmp_path / "copy.db")
        assert decided <= copied_decided
        assert rewarded <= copied_rewarded
        assert not (tmp_path / "copy.db-wal").exists()
        _, errors = typed("backup", str(tmp_path / "copy.db"), "--store", f"sqlite:{path}", cwd=tmp_path, code=1)
        assert "exists: a backup is written to a new file" in errors
        assert not any(load.odd for load in loads)
        assert all(load.is_alive() for load in loads)

        # SIGTERM drains: all that was acknowledged is stored, with a snapshot of it all.
        code, out, err = server.stop(signal.SIGTERM)
        for load in loads:
            load.join(60)
    assert (code, out, err) == (0, "stopped; everything is stored\n", "")
    assert not any(load.odd for load in loads)
    decided = {id for load in loads for id in load.decided}
    rewarded = {id for load in loads for id in load.rewarded}
    assert len(rewarded) >= 40
    stored_decided, stored_rewarded, snapshots, last = stored_in(path)
    assert decided <= stored_decided
    assert rewarded <= stored_rewarded
    assert len(stored_decided - decided) <= len(loads)  # at most the calls whose answers were not read
    assert snapshots[0] == last

    # The copy can be served, and knows what it had.
    with Local(tmp_path / "copy.db") as local:
        assert local.call("GET", P).json["seq"] == head
        for id in sorted(copied_rewarded)[:5]:
            assert local.call("POST", f"{P}/decisions", {"id": id}).replayed


def test_backups_of_what_is_not_there(tmp_path):
    _, errors = typed("backup", "copy.db", "--store", "sqlite:missing.db", cwd=tmp_path, code=1)
    assert "missing.db does not exist" in errors
    (tmp_path / "other.db").write_bytes(b"x" * 5_000)
    _, errors = typed("backup", "copy.db", "--store", "sqlite:other.db", cwd=tmp_path, code=1)
    assert "other.db" in errors
    open_store(f"sqlite:{tmp_path / 'good.db'}").close()
    _, errors = typed("backup", "none/copy.db", "--store", "sqlite:good.db", cwd=tmp_path, code=1)
    assert "Traceback" not in errors
    printed, _ = typed("backup", "copy.db", "--store", "sqlite:good.db", cwd=tmp_path)
    assert printed.startswith("backup: copy.db (")
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith("copy")) == ["copy.db"]
    with Local(tmp_path / "copy.db") as local:
        assert local.call("GET", "/v1/experiments").status == 200
