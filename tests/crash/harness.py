"""Kills servers at random moments while clients use them, and checks that nothing was lost, doubled or half applied.

    PYTHONPATH=tests python -m crash.harness --kills 1000        # or: python tests/crash/harness.py
    PYTHONPATH=tests python -m crash.harness --soak 600

A round has a new database file and some lives of a server on it. In each life, clients send decisions and rewards, alone and in
batches, with and without ids, some twice, some late, and some for decisions that do not exist; and they read. Then SIGKILL ends the
server: some time after it is ready, right after a snapshot, or while it starts. What was acknowledged, that is, answered with 200
or 202 and read to the end, must then be in the log. Clients send calls without an answer again in the next life, or give up.

After each kill, on a copy of the files: the log has no gaps, and a plain loop accepts it; all acknowledged answers are in it;
batches are in it as a whole or not at all; SQLite's integrity check passes. After every few kills, the fold of the whole log and
the folds from each snapshot have the same bytes, and the counts of the plain loop. After a round, the history of all calls is
linearizable (`crash.linearizability`). The first violation ends the run, with a report and the exit code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, Protocol

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec

from crash.linearizability import DONE, Call, check, check_answers, operations
from crash.model import Evidence, Model, Row, Violation, copied, require
from crash.zygote import Zygote
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import Settings

EXPERIMENTS: dict[str, dict[str, Any]] = {
    "plain": {"arms": ["a", "b", "c"], "policy": "UCB1", "seed": 1},
    "costs": {"arms": ["a", "b", "c", "d"], "seed": 2, "minimize": True},
    "window": {
        "arms": ["a", "b"],
        "policy": "EpsilonGreedy(epsilon=0.2)",
        "seed": 3,
        "reward_window": 0.15,
        "on_expiry": -1.0,
    },
}
"""A deterministic policy, the default one, and one that draws random numbers, with a window."""
CUT = (OSError, http.client.HTTPException, ValueError)
"""What a client sees when the server is killed: a closed connection, or a part of an answer."""
SNAPSHOT_EVERY = 40
MOST_WAITING = 100  # decisions of a client without a reward
MODES = (("later", "snapshot", "starting"), (8, 2, 2))
"""The moments of a kill: up to 0.6 s after the start, after a snapshot, and while the server starts; with weights."""


class Running(Protocol):
    """A server in another process."""

    def port(self) -> int: ...
    def kill(self, number: int = signal.SIGKILL) -> int: ...


Start = Callable[[Path], Running]


class Site:
    """Where servers are at the moment. Clients wait here while all are being restarted."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, tuple[int, int]] = {}
        """The port and the life of each open server."""
        self.life = 0
        self.closed = False

    def open(self, port: int, server: int = 0) -> None:
        """Say that a new life of a server is ready."""
        with self._changed:
            self.life += 1
            self._open[server] = (port, self.life)
            self._changed.notify_all()

    def shut(self, server: int = 0, *, for_good: bool = False) -> None:
        """Say that a server is gone, or, for good, all of them."""
        with self._changed:
            self._open.pop(server, None)
            self.closed = self.closed or for_good
            self._changed.notify_all()

    def address(self, lost: int = 0, choose: Callable[[list[Any]], Any] = max) -> tuple[int, int] | None:
        """Return the port and the life of an open server, but not of the life that was lost last; None after the end."""
        with self._changed:

            def others() -> list[tuple[int, int]]:
                return [each for each in self._open.values() if each[1] != lost]

            self._changed.wait_for(lambda: self.closed or bool(others()))
            return None if self.closed else choose(others())


class History:
    """All calls, in the order in which they were sent."""

    def __init__(self, experiments: Mapping[str, Mapping[str, Any]] = EXPERIMENTS) -> None:
        """``experiments`` are those that are called, with the bodies with which they are created."""
        self.experiments = experiments
        self._lock = threading.Lock()
        self.calls: list[Call] = []
        self.seq: Counter[str] = Counter()
        """The largest acknowledged number of each experiment."""
        self.snapshots_seen = threading.Event()

    def sent(self, kind: str, experiment: str, body: Any, life: int, tries: int = 0) -> Call:
        """Record a call that is about to be sent."""
        with self._lock:
            call = Call(len(self.calls) + 1, kind, experiment, body, time.monotonic_ns(), life=life, tries=tries)
            self.calls.append(call)
            return call

    def answered(self, call: Call, response: http.client.HTTPResponse, content: bytes) -> None:
        """Record an answer that was read to its end."""
        now = time.monotonic_ns()
        call.status = response.status
        if response.status in (429, 503):
            call.answer = json.loads(content)
            return  # it may have been applied, such as after a failed commit: the same as no answer
        call.replayed = response.headers.get("Idempotent-Replayed") == "true"
        if call.kind == "log" and response.status == 200:
            rows = [json.loads(line) for line in content.splitlines()]
            call.answer = {"seq": rows[-1]["seq"] if rows else call.body["after"], "rows": rows}
        else:
            call.answer = json.loads(content)
        if any(each.get("fallback") for each in call.decisions()):
            return  # an arm, but no decision: also the same as no answer
        call.responded = now
        seq = call.answer.get("seq", 0) if response.status in DONE else 0
        if seq // SNAPSHOT_EVERY > self.seq[call.experiment] // SNAPSHOT_EVERY:
            self.snapshots_seen.set()
        self.seq[call.experiment] = max(seq, self.seq[call.experiment])


PATHS = {"decide": "decisions", "reward": "rewards", "decisions": "decisions/batch", "rewards": "rewards/batch"}


class Client(threading.Thread):
    """Sends random calls over one connection, until the site is closed."""

    def __init__(
        self,
        site: Site,
        history: History,
        seed: int,
        *,
        pause: float = 0.0,
        forgotten: float = 0.1,
        moving: float = 0.0,
    ) -> None:
        """Store the habits.

        ``pause`` is the mean time between calls, ``forgotten`` the share of decisions that never get a reward, ``moving`` the share
        of calls that are sent over a new connection, to any of the servers.
        """
        super().__init__(daemon=True)
        self.moving = moving
        self.forgotten = forgotten
        self.site = site
        self.history = history
        self.random = random.Random(seed)
        self.seed = seed
        self.pause = pause
        self.failure: BaseException | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._life = self._lost = 0
        self._calls = 0
        self._waiting: list[tuple[str, str, float]] = []
        """Decisions without a reward yet: experiment, id, and when to send the reward."""
        self._noted: set[str] = set()
        self._rewarded: list[tuple[str, dict[str, Any]]] = []
        """Rewards that were sent, to be sent again."""

    @property
    def is_connected(self) -> bool:
        """Whether it may still read an answer."""
        return self._connection is not None

    def run(self) -> None:
        """Send calls."""
        try:
            while not self.site.closed:
                self._step()
                if self.pause:
                    time.sleep(self.random.expovariate(1.0 / self.pause))
        except BaseException as error:
            self.failure = error
        finally:
            if self._connection is not None:
                self._connection.close()

    # --- one call -----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        choice = self.random.random()
        experiment = self.random.choice(list(self.history.experiments))
        if len(self._waiting) > MOST_WAITING:
            self._send_rewards()
        elif choice < 0.40:
            self._deliver("decide", experiment, self._decision(experiment))
        elif choice < 0.46:
            items = [self._decision(experiment, plain=True) for _ in range(self.random.randint(2, 12))]
            if "id" in items[0] and self.random.random() < 0.3:
                items.append(items[0])  # a repetition in the same batch
            self._deliver("decisions", experiment, {"items": items})
        elif choice < 0.78:
            self._send_reward()
        elif choice < 0.84:
            self._send_rewards()
        elif choice < 0.89:
            self._send_odd_reward(experiment)
        elif choice < 0.96:
            self._deliver("show", experiment, None)
        elif choice < 0.995:
            after = max(0, self.history.seq[experiment] - self.random.randint(0, 30))
            self._deliver("log", experiment, {"after": after})
        elif self._rewarded:
            experiment, reward = self.random.choice(self._rewarded)
            self._deliver("explain", experiment, {"id": reward["id"]})

    def _new_name(self) -> str:
        self._calls += 1
        return f"{self.seed}-{self._calls}"

    def _decision(self, experiment: str, *, plain: bool = False) -> dict[str, Any]:
        """Return the body of a call for a decision. Its context differs from all others."""
        name = self._new_name()
        body: dict[str, Any] = {"context": {"call": name}}
        if self.random.random() < 0.7:
            body["id"] = f"id-{name}"
        chance = 1.0 if plain else self.random.random()
        arms = self.history.experiments[experiment]["arms"]
        if chance < 0.1:
            body["among"] = self.random.sample(arms, 2)
        elif chance < 0.2:
            body["arm"] = self.random.choice(arms)
        return body

    def _reward_of(self, experiment: str, id: str) -> dict[str, Any]:
        return {"id": id, "value": self.random.lognormvariate(0.0, 2.0)}

    def _take_due(self, most: int) -> list[tuple[str, str]]:
        """Return decisions of one experiment whose rewards are due, and forget them."""
        now = time.monotonic()
        due = [each for each in self._waiting if each[2] <= now]
        if not due:
            return []
        self.random.shuffle(due)
        chosen = [each for each in due if each[0] == due[0][0]][:most]
        for each in chosen:
            self._waiting.remove(each)
        return [(experiment, id) for experiment, id, _ in chosen]

    def _send_reward(self) -> None:
        for experiment, id in self._take_due(1):
            reward = self._reward_of(experiment, id)
            self._rewarded.append((experiment, reward))
            self._deliver("reward", experiment, reward)

    def _send_rewards(self) -> None:
        due = self._take_due(8)
        if due:
            experiment = due[0][0]
            items = [self._reward_of(experiment, id) for _, id in due]
            if self._deliver("rewards", experiment, {"items": items}):  # else no other call sends parts of the batch
                self._rewarded.extend((experiment, item) for item in items)

    def _send_odd_reward(self, experiment: str) -> None:
        """Send a reward again, one with another value, or one of an unknown decision."""
        chance = self.random.random()
        del self._rewarded[:-50]
        if chance < 0.2 or not self._rewarded:
            self._deliver("reward", experiment, {"id": f"unknown-{self._new_name()}", "value": 1.0})
        else:
            experiment, reward = self.random.choice(self._rewarded)
            if chance < 0.4:
                reward = reward | {"value": reward["value"] + 1.0}
            self._deliver("reward", experiment, reward)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _deliver(self, kind: str, experiment: str, body: Any) -> bool:
        """Send a call. Without an answer, send it again to another life of a server, or give up. Return whether it succeeded."""
        tries = 0
        while True:
            call = self._send(kind, experiment, body, tries)
            if call is None:
                return False
            if call.responded is not None:
                self._note(call)
                return True
            items = body["items"] if kind in ("decisions", "rewards") else [body]
            repeatable = kind not in ("decide", "decisions") or all("id" in item for item in items)
            if not repeatable or self.random.random() < 0.15:
                if kind == "decide" and "id" in body and self.random.random() < 0.5:
                    self._expect(experiment, body["id"], 0.0)  # a decision that may not exist
                return False
            tries += 1

    def _send(self, kind: str, experiment: str, body: Any, tries: int) -> Call | None:
        """Send a call once. Return None if there is no server any more."""
        if self._connection is not None and self.random.random() < self.moving:
            self._leave(0)
        if self._connection is None:
            address = self.site.address(self._lost, self.random.choice)
            if address is None:
                return None
            port, self._life = address
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        call = self.history.sent(kind, experiment, body, self._life, tries)
        try:
            path = f"/v1/experiments/{experiment}"
            if kind in PATHS:
                self._connection.request("POST", f"{path}/{PATHS[kind]}", json.dumps(body).encode())
            elif kind == "log":
                self._connection.request("GET", f"{path}/log?after={body['after']}")
            else:
                self._connection.request("GET", path if kind == "show" else f"{path}/decisions/{body['id']}")
            response = self._connection.getresponse()
            content = response.read()
            if response.headers.get("Transfer-Encoding") != "chunked" and not content:
                raise http.client.IncompleteRead(content)
            self.history.answered(call, response, content)
        except CUT as error:
            if isinstance(error, TimeoutError):
                raise Violation(f"call {call.number} ({kind}) had no answer for 30 seconds") from error
            call.responded = None
            self._leave(self._life)
        else:
            if call.responded is None and self.moving:  # the server has no store: perhaps another one has
                self._leave(0)
                time.sleep(self.random.uniform(0.0, 0.1))
        return call

    def _leave(self, lost: int) -> None:
        """Close the connection. ``lost``: the life of the server, if it is gone."""
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        self._lost = lost

    def _note(self, call: Call) -> None:
        """Remember decisions that need a reward. Some get it late, some never."""
        require(call.status < 500, f"call {call.number} {call.kind} {call.body}: {call.status} {call.answer}")
        for each in operations([call]):
            if each.kind == "decide" and each.status == 200:
                late = call.experiment == "window" and self.random.random() < 0.3
                delay = self.random.uniform(0.2, 1.0) if late else self.random.uniform(0.0, 0.05)
                self._expect(call.experiment, each.answer["id"], time.monotonic() + delay)

    def _expect(self, experiment: str, id: str, time: float) -> None:
        """Let a decision have a reward from some time on, if it is a new one and is not forgotten."""
        if id not in self._noted:
            self._noted.add(id)
            if self.random.random() >= self.forgotten:
                self._waiting.append((experiment, id, time))


# --- checks -----------------------------------------------------------------------------------------------------------


class Auditor:
    """Compares the log in a store with what clients were told."""

    def __init__(self, evidence: Callable[[], AbstractContextManager[Evidence]], history: History) -> None:
        """``evidence`` returns the store as it is at the moment."""
        self._evidence = evidence
        self.history = history
        self.models = {name: Model(name) for name in history.experiments}
        self.folds: dict[str, tuple[int, str]] = {}
        """The number of the last event of each log, and the SHA-256 of its fold, as of the last thorough check."""
        self._checked = 0
        """The calls that were looked at."""
        self._unanswered: list[Call] = []
        self._hashes: dict[str, tuple[int, str]] = {}

    def check(self, *, thoroughly: bool = False) -> None:
        """Check what is new since the last time, or everything."""
        answered = self._newly_answered()
        with self._evidence() as database:
            database.check_integrity()
            for name, (number, head) in database.heads().items():
                model = self.models[name]
                for row in database.rows(number, len(model.rows)):
                    model.apply(row)
                require(head == len(model.rows), f"{name}: the head is {head}, the log has {len(model.rows)} events")
            for name, model in self.models.items():
                check_answers(model.rows, [each for each in operations(answered) if each.call.experiment == name])
            if thoroughly:
                self._check_unchanged(database)
                self._check_folds(database)

    def _newly_answered(self) -> list[Call]:
        """Return the calls that were answered since the last time. Others may still wait for their answers."""
        end = len(self.history.calls)
        calls = [*self._unanswered, *self.history.calls[self._checked : end]]
        self._checked = end
        answered = {call.number for call in calls if call.responded is not None}
        self._unanswered = [call for call in calls if call.number not in answered]
        return [call for call in calls if call.number in answered]

    def _check_unchanged(self, database: Evidence) -> None:
        """Check that events that were there the last time are the same."""
        for name, (number, head) in database.heads().items():
            known, digest = self._hashes.get(name, (0, _hash([])))
            require(_hash(database.raw(number, known)) == digest, f"{name}: stored events have changed")
            self._hashes[name] = (head, _hash(database.raw(number, head)))

    def _check_folds(self, database: Evidence) -> None:
        """Compare the fold of the whole log with those from each snapshot, and with the plain loop."""
        with closing(database.reader()) as reader:
            for stored in reader.experiments():
                name = stored.name
                model = self.models[name]
                events = reader.events(stored.number, 0, stored.head)
                whole = _empty(stored)
                whole.apply_all(events)
                content = whole.snapshot().content
                for seq, snapshot in reader.snapshots(stored.number):
                    other = _empty(stored)
                    other.restore(snapshot)
                    require(other.seq == seq, f"{name}: the snapshot of event {seq} says event {other.seq}")
                    other.apply_all(events[seq:])
                    require(
                        other.snapshot().content == content, f"{name}: snapshot {seq} and the tail give other bytes"
                    )
                require(whole.counts == model.counts, f"{name}: the fold counts {whole.counts}, the log {model.counts}")
                pulls = {arm: count for arm, _, count in whole.bandit.pulls() if count}
                require(pulls == +model.pulls, f"{name}: the fold has the pulls {pulls}, the log {model.pulls}")
                require(whole.bandit.open_count == len(model.open), f"{name}: open {whole.bandit.open_count}")
                self.folds[name] = (whole.seq, hashlib.sha256(content).hexdigest())

    def logs(self) -> dict[str, list[Row]]:
        """Return the logs as of the last check."""
        return {name: model.rows for name, model in self.models.items()}


def _hash(rows: Sequence[Any]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _empty(stored: Any) -> LiveExperiment:
    settings = msgspec.json.decode(stored.settings, type=Settings)
    return LiveExperiment(stored, settings, clock=time.time, find=lambda *_: None, emit=lambda event: None)


# --- rounds -----------------------------------------------------------------------------------------------------------


def wait_until_ready(port: int) -> None:
    """Wait until the logs are folded."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if request(port, "GET", "/readyz")[0] == 200:
            return
        time.sleep(0.002)
    raise Violation("the server was not ready after a minute")


def request(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Make a call on a connection of its own. Return the status and the decoded body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body).encode())
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def create_experiments(port: int, experiments: Mapping[str, Mapping[str, Any]] = EXPERIMENTS) -> None:
    """Create the experiments that the clients use."""
    for name, settings in experiments.items():
        status, answer = request(port, "PUT", f"/v1/experiments/{name}", settings)
        require(status == 201, f"{name} was not created: {answer}")


class Totals:
    """What a run has seen."""

    def __init__(self, what: str = "kills") -> None:
        """``what`` are the faults."""
        self.what = what
        self.faults = 0
        self.figures: Counter[str] = Counter()
        self.start = time.monotonic()

    def add(self, history: History, logs: Mapping[str, Sequence[Row]]) -> None:
        """Count the calls of a round."""
        figures = self.figures
        done = list(operations(history.calls))
        made = {(each.call.experiment, each.answer["seq"]) for each in done if each.is_new}
        figures["calls"] += len(history.calls)
        figures["acknowledged"] += sum(each.status in DONE and each.kind in ("decide", "reward") for each in done)
        figures["cut off"] += sum(call.responded is None for call in history.calls)
        figures["unavailable"] += sum(call.status == 503 for call in history.calls)
        figures["fallbacks"] += sum(bool(each.get("fallback")) for call in history.calls for each in call.decisions())
        figures["resent"] += sum(call.tries > 0 for call in history.calls)
        figures["replayed"] += sum(each.replayed for each in done)
        figures["late"] += sum(each.status == 202 for each in done)
        for name, rows in logs.items():
            asked = [row for row in rows if row.kind in ("decided", "rewarded", "late")]
            figures["events"] += len(rows)
            figures["unacknowledged"] += sum((name, row.seq) not in made for row in asked)
            figures["twice"] += len(asked) - len({(row.kind == "decided", row.id) for row in asked})

    def __str__(self) -> str:
        figures = self.figures
        away = f"answered 503 {figures['unavailable']:,}, " if figures["unavailable"] else ""
        away += f"fallbacks {figures['fallbacks']:,}, " if figures["fallbacks"] else ""
        return (
            f"{self.what} {self.faults:,}, acknowledged {figures['acknowledged']:,} (all recovered), "
            f"recovered unacknowledged {figures['unacknowledged']:,}, answers replayed {figures['replayed']:,}, "
            f"duplicates counted {figures['twice']:,}, calls cut off {figures['cut off']:,}, "
            f"{away}sent again {figures['resent']:,}, events {figures['events']:,}, "
            f"seconds {time.monotonic() - self.start:.0f}"
        )


class Round:
    """A new database, clients, and several lives of a server."""

    def __init__(self, folder: Path, start: Start, seed: int, *, clients: int = 12, **habits: float) -> None:
        """``habits`` are those of the clients."""
        self.path = folder / "robandit.db"
        self.start = start
        self.random = random.Random(seed)
        self.site = Site()
        self.history = History()
        self.auditor = Auditor(partial(copied, self.path, folder / "copy"), self.history)
        self.clients = [Client(self.site, self.history, seed * 1_000 + each, **habits) for each in range(clients)]
        self.kills: Counter[str] = Counter()

    def play(self, kills: int, *, thorough: int = 5, enough: Callable[[], bool] = lambda: True) -> None:
        """Kill servers, and check after each kill. ``thorough`` is the number of kills between two checks of everything.

        On a busy machine, clients may have done little by then: until there was ``enough``, up to five times as many are killed.
        """
        for client in self.clients:
            client.start()
        try:
            for number in range(1, 5 * kills + 1):
                if number > kills and enough():
                    break
                self._live("later" if number == 1 else self.random.choices(*MODES)[0], create=number == 1)
                self.auditor.check(thoroughly=number % thorough == 0 or number == kills)
                self.check_clients()
        finally:
            self.close()
        require(enough(), "the clients have not done enough")
        check_all(self.history, self.auditor.logs())

    def close(self) -> None:
        """Let the clients end."""
        self.site.shut(for_good=True)
        for client in self.clients:
            if client.ident is not None:
                client.join(40)
        self.check_clients()

    def _live(self, mode: str, *, create: bool = False) -> None:
        """Let a server live until it is killed."""
        server = self.start(self.path)
        try:
            if mode == "starting":
                time.sleep(self.random.uniform(0.0, 0.09))
            else:
                port = server.port()
                wait_until_ready(port)
                if create:
                    create_experiments(port)
                self.history.snapshots_seen.clear()
                self.site.open(port)
                if mode == "snapshot":
                    self.history.snapshots_seen.wait(1.0)
                else:
                    time.sleep(self.random.uniform(0.02, 0.6))
        finally:
            code = server.kill()
            self.site.shut()
        require(code == -signal.SIGKILL, f"the server ended by itself before it was killed: exit code {code}")
        self.kills[mode] += 1
        self._wait_for_clients()

    def _wait_for_clients(self) -> None:
        """Wait until no client is reading an answer of the killed server any more."""
        until = time.monotonic() + 35
        while any(client.is_alive() and client.is_connected for client in self.clients):
            require(time.monotonic() < until, "a client still waits for an answer of the killed server")
            time.sleep(0.001)

    def check_clients(self) -> None:
        """Raise the error of a client that has failed."""
        for client in self.clients:
            if client.failure is not None:
                raise client.failure


def check_all(history: History, logs: Mapping[str, Sequence[Row]]) -> None:
    """Check the history of a whole round."""
    check(history.calls, logs, history.experiments)


def run(
    kills: int,
    seed: int,
    *,
    start: Callable[[random.Random], Start],
    per_round: int = 25,
    thorough: int = 5,
    keep: bool = False,
    **options: Any,
) -> Totals:
    """Play rounds until this many kills. Raise the first `Violation`; with ``keep``, its files are kept."""
    totals = Totals()
    drawn = random.Random(seed)
    while totals.faults < kills:
        with tempfile.TemporaryDirectory(prefix="robandit-crash-") as folder:
            one = Round(Path(folder), start(drawn), drawn.randrange(10**6), **options)
            count = min(per_round, kills - totals.faults)
            try:
                one.play(count, thorough=thorough)
            except BaseException as error:
                if keep:
                    error.add_note(f"kills in this round: {dict(one.kills)}; {kept_files(one.history, Path(folder))}")
                raise
            totals.faults += count
            totals.add(one.history, one.auditor.logs())
            if keep:
                print(f"  {totals}", file=sys.stderr, flush=True)
    return totals


def kept_files(history: History, folder: Path) -> str:
    """Keep the files of a round that failed, and say where."""
    place = Path(tempfile.mkdtemp(prefix="robandit-violation-"))
    shutil.copytree(folder, place / "files", dirs_exist_ok=True)
    lines = [repr(call) for call in history.calls]
    (place / "history.txt").write_text("\n".join(lines))
    return f"what the servers left, and the history, are in {place}"


def forked(zygote: Zygote, **options: Any) -> Callable[[random.Random], Start]:
    """Return how to start servers as children of a zygote, with few events between snapshots and checkpoints."""

    def with_random(drawn: random.Random) -> Start:
        pages = drawn.choice([10, 100, 4_000])

        def start(path: Path) -> Running:
            given = {"snapshot_every": SNAPSHOT_EVERY, "pages_per_checkpoint": pages} | options
            return zygote.start(path, **given)

        return start

    return with_random


# --- soak -------------------------------------------------------------------------------------------------------------


def soak(zygote: Zygote, seconds: float, seed: int, *, clients: int = 4, pause: float = 0.01) -> str:
    """Load a server with pauses between calls. Return a line with figures, or raise a `Violation`."""
    with tempfile.TemporaryDirectory(prefix="robandit-soak-") as folder:
        one = Round(Path(folder), zygote.start, seed, clients=clients, pause=pause, forgotten=0.0)
        server = zygote.start(one.path, snapshot_every=5_000)
        port = server.port()
        wait_until_ready(port)
        create_experiments(port)
        one.site.open(port)
        for client in one.clients:
            client.start()
        samples = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(1.0, seconds / 40))
            samples.append(server.memory())
            one.check_clients()
        one.close()
        code = server.kill(signal.SIGTERM)
        require(code == 0, f"the server ended with the exit code {code}: {server.errors()}")
        one.auditor.check(thoroughly=True)
        check_all(one.history, one.auditor.logs())
        totals = Totals()
        totals.add(one.history, one.auditor.logs())
        cut = totals.figures["cut off"]
        require(cut == 0, f"{cut} calls had no answer")
        quarter = len(samples) // 4
        second, last = (
            sorted(part)[len(part) // 2] / 2**20 for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        events = totals.figures["events"]
        line = (
            f"soak {seconds:.0f} s: calls {totals.figures['calls']:,}, acknowledged {totals.figures['acknowledged']:,}, "
            f"events {events:,}, lost 0, memory {samples[0] / 2**20:.1f} MiB at the start, {second:.1f} in the second "
            f"quarter, {last:.1f} in the last, {max(samples) / 2**20:.1f} at most"
        )
        require(last <= second * 1.05 + 2.0, f"the memory grows: {line}")
        return line


def reported(error: Violation, seed: int) -> int:
    """Print what went wrong, with the seed that shows it again, and return the exit code."""
    print(f"VIOLATION with --seed {seed}: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    return 1


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description="Kill servers under load, and check that nothing is lost.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument(
        "--soak", type=float, metavar="SECONDS", help="load one server for this long instead, without kills"
    )
    parser.add_argument("--fault", help="break the server on purpose: the run must then fail")
    given = parser.parse_args()
    try:
        with Zygote() as zygote:
            if given.soak:
                print(soak(zygote, given.soak, given.seed))
            else:
                options = {"fault": given.fault, "slow": 0.005} if given.fault else {}
                print(run(given.kills, given.seed, start=forked(zygote, **options), clients=given.clients, keep=True))
    except Violation as error:
        return reported(error, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
