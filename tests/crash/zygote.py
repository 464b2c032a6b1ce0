"""Starts servers quickly. A new interpreter needs seconds until it serves; a fork of one that has imported everything does not.

The zygote is a process with one thread. For each server it forks a child, which runs the command `robandit serve` as a function.
The child has its own store, socket, event loop and threads, all made after the fork.

    zygote = Zygote()
    server = zygote.start(path, snapshot_every=40)
    server.port()
    server.kill()
    replicas = [zygote.start_replica(url, folder / name) for name in "ab"]
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

POLICIES = ("UCB1", "AdaKLUCB", "EpsilonGreedy(epsilon=0.2)")
"""Those whose code is loaded before the fork."""
CODE = "import sys; sys.path[:0] = sys.argv[1:]; from crash.zygote import main; main()"
TESTS = Path(__file__).parents[1]


class Child:
    """A server in a child of the zygote."""

    def __init__(self, zygote: Zygote, pid: int, prefix: Path) -> None:
        self._zygote = zygote
        self.pid = pid
        self._prefix = prefix
        self._port: int | None = None
        self.code: int | None = None
        """The exit code, or minus the number of the signal that ended it."""

    def port(self) -> int:
        """Wait until the server listens, and return its port."""
        until = time.monotonic() + 60
        while self._port is None:
            if found := re.search(r"http://127.0.0.1:(\d+)", _text(self._prefix, "stdout")):
                self._port = int(found[1])
            elif not self.is_alive():
                raise AssertionError(f"the server did not start (exit code {self.wait()}): {self.errors()}")
            else:
                if time.monotonic() > until:
                    raise AssertionError("the server has printed nothing for a minute")
                time.sleep(0.002)
        return self._port

    def is_alive(self) -> bool:
        """Return whether it runs: a child that has ended is a zombie until the zygote waits for it."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def send(self, number: int) -> None:
        """Send a signal. The zygote has not reaped the child, so the number is still that of the child."""
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send a signal, and wait for the end."""
        self.send(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        if self.code is None:
            self.code = int(self._zygote.ask(wait=self.pid)["code"])
        return self.code

    def memory(self) -> int:
        """Return the resident memory, in bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def errors(self) -> str:
        """Return what it wrote to stderr."""
        return _text(self._prefix, "stderr")


def _text(prefix: Path, ending: str) -> str:
    path = Path(f"{prefix}.{ending}")
    return path.read_text(errors="replace") if path.exists() else ""


class Zygote:
    """A process that has imported the service, and starts servers. Use it with ``with``."""

    def __init__(self) -> None:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # else NumPy starts threads
        source = str(Path(sys.modules["robandit"].__file__ or "").parents[1]) if "robandit" in sys.modules else ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(TESTS), *([source] if source else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._child: Child | None = None
        """The server that has a file for itself."""
        self._replicas: list[Child] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.tasks = int(self._reply()["tasks"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(json.loads(line))
        self._replies.put(None)

    def _reply(self) -> dict[str, Any]:
        reply = self._replies.get(timeout=120)
        if reply is None or "error" in reply:
            raise AssertionError(f"the zygote failed: {reply}")
        return dict(reply)

    def ask(self, **command: Any) -> dict[str, Any]:
        """Send a command and return the reply."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def start(self, path: Path, **options: Any) -> Child:
        """Start a server on a file, and kill an earlier one that still runs. The options are those of `_prepare`."""
        if self._child is not None:
            self._child.kill()
        self._child = self._start(f"sqlite:{path}", path, options)
        return self._child

    def start_replica(self, url: str, prefix: Path, **options: Any) -> Child:
        """Start one of several servers on a PostgreSQL database. The options are those of `crash.replica_options.prepare`.

        What it prints is in the files ``prefix.stdout`` and ``prefix.stderr``.
        """
        self._replicas = [each for each in self._replicas if each.code is None]
        self._replicas.append(self._start(url, prefix, options))
        return self._replicas[-1]

    def _start(self, store: str, prefix: Path, options: dict[str, Any]) -> Child:
        for ending in ("stdout", "stderr"):
            Path(f"{prefix}.{ending}").unlink(missing_ok=True)
        return Child(self, self.ask(start=store, prefix=str(prefix), options=options)["pid"], prefix)

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        for child in (*self._replicas, *([self._child] if self._child else ())):
            child.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._reading.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


# --- in the zygote ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fork servers as the lines of stdin say, until stdin ends."""
    import robandit as rb
    import robandit.cli.serve
    import robandit.cli.terminal.guard
    import robandit.service.server  # forks have it then
    import robandit.storage.postgres
    from robandit.experiments.notation import policies_from

    for notation in POLICIES:
        (policy,) = policies_from(notation)
        bandit = rb.Bandit(["a", "b"], policy, 0, compile="now")
        for value in (1.0, 2.0, 0.5):
            bandit.reward(bandit.decide(), value)
        bandit.expire(bandit.decide())
        bandit.select(["a"])
    _reply(tasks=_tasks())
    children: set[int] = set()
    try:
        for line in sys.stdin:
            command = json.loads(line)
            if "wait" in command:
                _, status = os.waitpid(command["wait"], 0)
                children.discard(command["wait"])
                _reply(code=os.waitstatus_to_exitcode(status))
            elif _tasks() != 1:
                _reply(error=f"{_tasks()} threads: a fork would not be clean")
            else:
                pid = os.fork()
                if pid == 0:
                    _serve(command["start"], command["prefix"], command["options"])
                children.add(pid)
                _reply(pid=pid)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _tasks() -> int:
    """Return the number of threads, when those that compiled have had a moment to end."""
    until = time.monotonic() + 10.0
    while (tasks := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < until:
        time.sleep(0.001)
    return tasks


def _reply(**fields: Any) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


def _serve(store: str, prefix: str, options: dict[str, Any]) -> None:
    """Run a server in this child, and end it."""
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, ending in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{prefix}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        if store.startswith("sqlite:"):
            _prepare(**options)
        else:
            from crash.replica_options import prepare

            prepare(**options)
        from robandit.cli.serve import serve
        from robandit.errors import RobanditError

        try:
            serve(port=0, store=store, no_auth=True)
            code = 0
        except RobanditError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 1
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _prepare(
    *,
    snapshot_every: int = 50_000,
    pages_per_checkpoint: int = 4_000,
    fixed: bool = False,
    fault: str | None = None,
    slow: float = 0.0,
) -> None:
    """Set what the command has no options for.

    ``fixed`` stops the clock, and fixes the random part of the server's ids. ``slow`` makes each commit take this many seconds
    longer. ``fault`` breaks the server on purpose, so that the harness can show that it notices.
    """
    from functools import partial

    from robandit.decisions.engine import SingleServerEngine
    from robandit.decisions.experiment import LiveExperiment
    from robandit.service import server
    from robandit.storage import sqlite
    from robandit.storage.base import Create

    sqlite.PAGES_PER_CHECKPOINT = pages_per_checkpoint
    more: dict[str, Any] = {"snapshot_every": snapshot_every}
    if fixed:
        from types import SimpleNamespace

        from robandit.live import ids

        more["clock"] = lambda: 1_800_000_000.0
        ids.secrets = SimpleNamespace(choice=lambda letters: letters[0])  # type: ignore[assignment]
    server.Service = partial(server.Service, **more)  # type: ignore[assignment, misc]

    commit = sqlite.SqliteStore.commit
    if slow:

        def slowly(self: Any, events: Any, changes: Any) -> None:
            time.sleep(slow)
            commit(self, events, changes)

        sqlite.SqliteStore.commit = slowly  # type: ignore[method-assign]
    if fault == "early acknowledgement":

        async def at_once(*_: Any) -> None:
            return

        SingleServerEngine.stored = SingleServerEngine.settled = at_once  # type: ignore[method-assign]
    elif fault == "half a group":

        def in_halves(self: Any, events: Any, changes: Any) -> None:
            half = len(events) // 2
            made = [change for change in changes if isinstance(change, Create)]  # before their events
            commit(self, events[:half], made)
            time.sleep(slow)
            commit(self, events[half:], [change for change in changes if not isinstance(change, Create)])

        sqlite.SqliteStore.commit = in_halves  # type: ignore[method-assign]
    elif fault == "wrong snapshot":
        snapshot = LiveExperiment.snapshot

        def wrong(self: Any) -> Any:
            self.counts["decided"] += 1
            try:
                return snapshot(self)
            finally:
                self.counts["decided"] -= 1

        LiveExperiment.snapshot = wrong  # type: ignore[method-assign]
    elif fault == "forgotten ids":
        LiveExperiment.recorded = lambda self, kind, id: None  # type: ignore[method-assign]
        sqlite._INSERT = sqlite._INSERT.replace("INSERT", "INSERT OR IGNORE")
    elif fault is not None:
        raise ValueError(f"unknown fault {fault!r}")
