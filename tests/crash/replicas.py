"""Makes faults around replicas that share a PostgreSQL database, while clients use them, and checks that nothing goes wrong.

    python tests/crash/replicas.py --kills 500 --seed 1
    python tests/crash/replicas.py --database-kills 50 --cuts 20 --stalls 5

A round has a new database, and replicas (`crash.zygote`), each with its own connection to the database, for some faults through a
proxy. Clients are those of `crash.harness`. They choose any replica for a new connection, and send calls without an answer again,
to any replica. The timeouts of the replicas are shorter than real ones (`crash.replica_options`), so that a pause of seconds is
longer than all of them.

After each fault: acknowledged answers are in the log, which has no gaps, and which a plain loop accepts; all replicas live, and
have printed no traceback. After every few faults, folds of the whole log and from snapshots have the same bytes. After a round: all
replicas have the bytes of the fold of the log; the history of all calls, over all replicas, is linearizable
(`crash.linearizability`); times are those of the database's clock; and fallbacks are in no log.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from crash.harness import (
    EXPERIMENTS,
    Auditor,
    Client,
    History,
    Site,
    Totals,
    check_all,
    create_experiments,
    kept_files,
    reported,
    request,
    wait_until_ready,
)
from crash.linearizability import operations
from crash.model import Row, Violation, require
from crash.postgres_log import logged
from crash.replica_options import FOLDS, LONGEST_TIMEOUT
from crash.zygote import Child, Zygote
from helpers.disks import mounted
from helpers.postgres import Postgres, Server
from helpers.tcp_proxy import TcpProxy

SPARE: dict[str, Any] = {"arms": ["a", "b", "c"], "policy": "UCB1", "seed": 4, "fallback": "b"}
REPLICATED: dict[str, dict[str, Any]] = EXPERIMENTS | {"spare": SPARE}
HABITS = {"moving": 0.1, "pause": 0.002}
SKEWS = (180.0, -180.0, 0.0)
"""The differences between the clocks of replicas and that of the database, in seconds, if they differ."""
TOLERANCE = 1.0  # seconds between the clocks of the harness and of the database, which are the same
PATIENCE = 60.0
SHORT_PATIENCE = 20.0  # less than clients wait for an answer
COMMIT = b"COMMIT"


class Fleet:
    """Replicas on a new database, and their clients."""

    def __init__(
        self,
        zygote: Zygote,
        server: Server,
        folder: Path,
        seed: int,
        *,
        replicas: int = 2,
        clients: int = 12,
        proxies: bool = False,
        skewed: bool = False,
        **options: Any,
    ) -> None:
        """``options`` are those of `crash.replica_options.prepare`."""
        self.zygote = zygote
        self.server = server
        self.folder = folder
        self.random = random.Random(seed)
        self.options = options
        self.skews = SKEWS[:replicas] if skewed else (0.0,) * replicas
        self.site = Site()
        self.history = History(REPLICATED)
        self.clients: list[Client] = []
        self._first_seed = seed * 1_000
        for _ in range(clients):
            self.add_client()
        self.children: list[Child | None] = [None] * replicas
        self._stack = ExitStack()
        self.url = server.create_database()
        self._stack.callback(server.drop_database, self.url)
        self.proxies = [self._stack.enter_context(TcpProxy(self.url)) for _ in range(replicas if proxies else 0)]
        self.auditor = Auditor(partial(logged, self.url), self.history)

    # --- replicas -------------------------------------------------------------------------------------------------------

    def begin(self, slot: int) -> Child:
        """Start a replica, without waiting until it is ready."""
        url = self.proxies[slot].url if self.proxies else self.url
        options = {"skew": self.skews[slot]} | self.options
        child = self.zygote.start_replica(url, self.folder / f"replica-{slot}", **options)
        self.children[slot] = child
        return child

    def start(self, slot: int) -> None:
        """Start a replica, and let clients use it."""
        port = self.begin(slot).port()
        wait_until_ready(port)
        self.site.open(port, slot)

    def kill(self, slot: int) -> None:
        """End a replica with SIGKILL."""
        child = self.child(slot)
        self.check_errors(slot)
        code = child.kill()
        self.site.shut(slot)
        require(code == -signal.SIGKILL, f"replica {slot} ended by itself: exit code {code}: {child.errors()}")

    def child(self, slot: int) -> Child:
        """Return a replica that runs."""
        child = self.children[slot]
        assert child is not None
        return child

    def add_client(self) -> Client:
        """Add a client, which is not started yet."""
        self.clients.append(Client(self.site, self.history, self._first_seed + len(self.clients), **HABITS))
        return self.clients[-1]

    def any(self) -> int:
        """Return one of the replicas."""
        return self.random.randrange(len(self.children))

    def check_errors(self, slot: int) -> None:
        """Check that a replica runs, and met no unexpected error."""
        if "fault" in self.options:  # other checks must notice it
            return
        child = self.child(slot)
        text = child.errors()
        require(child.is_alive(), f"replica {slot} ended by itself: {text}")
        unexpected = [word for word in ("Traceback", "never retrieved", "Exception") if word in text]
        require(not unexpected, f"replica {slot} printed: {text[-3000:]}")

    def readiness(self, slot: int) -> int:
        """Return the status of /readyz."""
        try:
            return request(self.child(slot).port(), "GET", "/readyz")[0]
        except OSError as error:
            text = self.child(slot).errors()
            raise Violation(f"replica {slot} does not answer any more: {error}: {text[-3000:]}") from error

    def wait_for(self, status: int, *slots: int) -> None:
        """Wait until /readyz has a status; of all replicas, unless some are named."""
        until = time.monotonic() + PATIENCE
        for slot in slots or range(len(self.children)):
            while self.readiness(slot) != status:
                self.check_errors(slot)
                require(time.monotonic() < until, f"/readyz of replica {slot} is not {status} after a minute")
                time.sleep(0.01)

    # --- a round --------------------------------------------------------------------------------------------------------

    def play(self, faults: int, fault: Callable[[Fleet], None], *, thorough: int = 5) -> None:
        """Make a fault again and again, and check."""
        try:
            self.begin_load()
            for number in range(1, faults + 1):
                time.sleep(self.random.uniform(0.02, 0.3))
                fault(self)
                self.check(thoroughly=number % thorough == 0)
            time.sleep(0.1)
            self.finish()
        finally:
            self.close()

    def begin_load(self) -> None:
        """Start replicas and clients."""
        for slot in range(len(self.children)):
            self.start(slot)
            if slot == 0:
                create_experiments(self.child(0).port(), REPLICATED)
        for client in self.clients:
            client.start()

    def check(self, *, thoroughly: bool = False) -> None:
        """Check what is stored so far."""
        for slot in range(len(self.children)):
            self.check_errors(slot)
        for client in self.clients:
            if client.failure is not None:
                raise client.failure
        self.auditor.check(thoroughly=thoroughly)

    def finish(self) -> None:
        """End the load, and check everything."""
        self.wait_for(200)
        self.end_load()
        self.check()
        logs = self.auditor.logs()
        check_all(self.history, logs)
        check_fallbacks(self.history, logs)
        check_times(self.history, logs)
        self.check_agreement()

    def end_load(self) -> None:
        self.site.shut(for_good=True)
        for client in self.clients:
            if client.ident is not None:
                client.join(40)

    def close(self) -> None:
        """End everything."""
        self.site.shut(for_good=True)
        for child in self.children:
            if child is not None and child.code is None:
                child.kill()
        self.end_load()  # after the replicas, which may not answer any more
        self._stack.close()

    def check_agreement(self) -> None:
        """Check that all replicas have the state that the log gives, bit for bit. Windows may end meanwhile."""
        until = time.monotonic() + PATIENCE
        while True:
            found = [self.folds(slot) for slot in range(len(self.children))]
            self.auditor.check(thoroughly=True)
            expected = self.auditor.folds
            if all({name: fold[0] for name, fold in each.items()} == _numbers(expected) for each in found):
                break
            require(time.monotonic() < until, f"the replicas do not catch up: {found}, the log has {expected}")
            time.sleep(0.05)
        for slot, each in enumerate(found):
            for name, fold in each.items():
                require(
                    fold == expected[name], f"replica {slot} has other bytes of {name}: {fold}, not {expected[name]}"
                )

    def folds(self, slot: int) -> dict[str, tuple[int, str]]:
        """Return the last event of each experiment, and the SHA-256 of its state, in the memory of a replica."""
        status, found = request(self.child(slot).port(), "GET", FOLDS)
        require(status == 200, f"replica {slot}: {status} {found}")
        return {name: tuple(fold) for name, fold in found.items()}


def _numbers(folds: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    return {name: seq for name, (seq, _) in folds.items()}


# --- checks of what only replicas have --------------------------------------------------------------------------------------


def check_fallbacks(history: History, logs: Mapping[str, Sequence[Row]]) -> int:
    """Check that answers of the fallback are marked, and that no log has them. Return their number."""
    stored = {(name, row.id) for name, rows in logs.items() for row in rows}
    count = 0
    for call in history.calls:
        for each in call.decisions():
            if each.get("fallback"):
                arm = history.experiments[call.experiment].get("fallback")
                require((each["arm"], each["seq"]) == (arm, 0), f"call {call.number}: the fallback is {each}")
                require(
                    (call.experiment, each["id"]) not in stored, f"call {call.number}: the fallback {each} is stored"
                )
                count += 1
    return count


def check_times(history: History, logs: Mapping[str, Sequence[Row]]) -> None:
    """Check that times are those of the database, which has the clock of this machine, and that windows follow them."""
    offset = time.time_ns() - time.monotonic_ns()
    for each in operations(history.calls):
        if each.is_new:
            start, end = ((at + offset) / 1e9 for at in (each.call.invoked, each.call.responded or 0))
            told = each.answer["time"]
            require(start - TOLERANCE <= told <= end + TOLERANCE, f"{each}: sent at {start}, answered at {end}")
    for name, rows in logs.items():
        window = history.experiments[name].get("reward_window")
        decided = {row.id: row.time for row in rows if row.kind == "decided"}
        for row in rows if window is not None else ():
            if row.kind in ("rewarded", "expired"):
                age = row.time - decided[row.id]
                require(
                    (age <= window) == (row.kind == "rewarded"), f"{name}: {row} after {age} s, the window is {window}"
                )


# --- faults -----------------------------------------------------------------------------------------------------------


def kill(fleet: Fleet) -> None:
    """Kill a replica, or all, or a replica that starts; and start new ones."""
    chance = fleet.random.random()
    slots = range(len(fleet.children)) if chance < 0.1 else [fleet.any()]
    for slot in slots:
        fleet.kill(slot)
    for slot in slots:
        if chance > 0.9:
            child = fleet.begin(slot)
            time.sleep(fleet.random.uniform(0.0, 0.1))
            child.kill()
        fleet.start(slot)


def kill_database(fleet: Fleet) -> None:
    """Crash PostgreSQL, and start it again: at once, or when all replicas have noticed."""
    assert isinstance(fleet.server, Postgres)
    fleet.server.kill()
    if fleet.random.random() < 0.7:
        fleet.wait_for(503)
    fleet.server.start()
    fleet.wait_for(200)


def cut(fleet: Fleet) -> None:
    """Reset all connections between a replica and the database."""
    fleet.proxies[fleet.any()].cut()


def delay(fleet: Fleet) -> None:
    """Make the connections of a replica slow for some time."""
    proxy = fleet.proxies[fleet.any()]
    proxy.delay(fleet.random.uniform(0.005, 0.1))
    time.sleep(fleet.random.uniform(0.2, 1.0))
    proxy.delay(0.0)


def stall(fleet: Fleet) -> None:
    """Let the connections of a replica swallow everything, for longer than every timeout."""
    slot = fleet.any()
    fleet.proxies[slot].stall()
    time.sleep(LONGEST_TIMEOUT * 1.5)
    fleet.wait_for(503, slot)
    fleet.proxies[slot].resume()
    fleet.wait_for(200, slot)


def refuse(fleet: Fleet) -> None:
    """Keep a replica from its database until it has noticed."""
    slot = fleet.any()
    fleet.proxies[slot].refuse()
    fleet.wait_for(503, slot)
    time.sleep(fleet.random.uniform(0.0, 0.3))
    fleet.proxies[slot].listen()
    fleet.wait_for(200, slot)


def lose_commit(fleet: Fleet) -> None:
    """Lose a connection in COMMIT: before PostgreSQL has it, or after it has answered."""
    proxy = fleet.proxies[fleet.any()]
    lost = fleet.random.choice([proxy.lose_before, proxy.lose_after])(COMMIT)
    require(lost.wait(PATIENCE), "there was no commit")


def lose_database(fleet: Fleet) -> None:
    """Lose a connection in COMMIT, and the database with it, so that the replica cannot find out what was stored."""
    slot = fleet.any()
    proxy = fleet.proxies[slot]
    proxy.delay(0.05)  # so that the outage begins before the replica has asked
    lost = fleet.random.choice([proxy.lose_before, proxy.lose_after])(COMMIT)
    require(lost.wait(PATIENCE), "there was no commit")
    proxy.refuse()
    proxy.delay(0.0)
    time.sleep(fleet.random.uniform(0.1, 0.5))
    proxy.listen()
    fleet.wait_for(200, slot)


def pause(fleet: Fleet) -> None:
    """Stop a replica for longer than every timeout. The balancer takes it out of service, the others go on."""
    slot = fleet.any()
    child = fleet.child(slot)
    child.send(signal.SIGSTOP)
    fleet.site.shut(slot)
    fleet.add_client().start()  # all others may wait for the replica that is stopped
    time.sleep(LONGEST_TIMEOUT)
    since = time.monotonic_ns()
    until = time.monotonic() + SHORT_PATIENCE
    while not any(call.responded is not None and call.responded > since for call in fleet.history.calls):
        require(time.monotonic() < until, "while a replica was paused, the others answered no calls")
        time.sleep(LONGEST_TIMEOUT / 2)
    child.send(signal.SIGCONT)
    fleet.wait_for(200, slot)
    fleet.site.open(child.port(), slot)


def everything(fleet: Fleet) -> None:
    """Make all these faults, one after the other."""
    faults = [kill, cut, delay, lose_commit, lose_database, refuse, kill_database, pause, stall, kill]
    for fault in faults:
        fault(fleet)
        fleet.check()


class Mode(NamedTuple):
    """A kind of fault, and what it needs."""

    fault: Callable[[Fleet], None]
    usual: int
    """The number of faults in `make crash`."""
    proxies: bool = False
    skewed: bool = False


MODES = {
    "kills": Mode(kill, 500),
    "database-kills": Mode(kill_database, 50),
    "cuts": Mode(cut, 60, proxies=True),
    "delays": Mode(delay, 12, proxies=True),
    "stalls": Mode(stall, 6, proxies=True),
    "refusals": Mode(refuse, 25, proxies=True),
    "lost-commits": Mode(lose_commit, 60, proxies=True),
    "lost-databases": Mode(lose_database, 25, proxies=True),
    "pauses": Mode(pause, 8),
    "skewed-kills": Mode(kill, 30, skewed=True),
    "everything": Mode(everything, 3, proxies=True, skewed=True),
}


# --- runs -------------------------------------------------------------------------------------------------------------


def run(
    name: str,
    count: int,
    seed: int,
    *,
    zygote: Zygote,
    server: Server,
    per_round: int = 25,
    thorough: int = 5,
    keep: bool = False,
    **options: Any,
) -> Totals:
    """Play rounds until this many faults of a mode. Raise the first `Violation`; with ``keep``, its files are kept."""
    mode = MODES[name]
    totals = Totals(name.replace("-", " "))
    drawn = random.Random(f"{name} {seed}")
    while totals.faults < count:
        with tempfile.TemporaryDirectory(prefix="robandit-replicas-") as folder:
            more = {"proxies": mode.proxies, "skewed": mode.skewed, "replicas": drawn.choice([2, 2, 3])} | options
            fleet = Fleet(zygote, server, Path(folder), drawn.randrange(10**6), **more)
            faults = min(per_round, count - totals.faults)
            try:
                fleet.play(faults, mode.fault, thorough=thorough)
            except BaseException as error:
                if keep:
                    error.add_note(kept_files(fleet.history, Path(folder)))
                raise
            totals.faults += faults
            totals.add(fleet.history, fleet.auditor.logs())
            if keep:
                print(f"  {totals}", file=sys.stderr, flush=True)
    return totals


# --- a full disk ------------------------------------------------------------------------------------------------------

DISK = "mode=0777,size=120m"
LEFT = 1 << 20  # bytes that are left on the full disk: a moment's worth of events
FULL = "import sys; sys.path[:0] = sys.argv[3:]; from crash.replicas import fill_disk; fill_disk(sys.argv[1], int(sys.argv[2]))"


def on_full_disk(times: int) -> str | None:
    """Let PostgreSQL run out of space under load, some times. Return a line with figures; None if no disk can be mounted here."""
    with tempfile.TemporaryDirectory(prefix="robandit-disk-") as folder:
        Path(folder).chmod(0o755)
        path = [str(Path(__file__).parents[1]), str(Path(sys.modules["robandit"].__file__ or "").parents[1])]
        ended = mounted(Path(folder), DISK, FULL, folder, f"{times}", *path)
        if ended is None:
            return None
        require(ended.returncode == 0, f"on a full disk: {ended.stdout}\n{ended.stderr[-4000:]}")
        return ended.stdout.strip()


def fill_disk(folder: str, times: int) -> None:
    """Fill the disk at a folder under load, and make room again. Print a line with figures."""
    disk = Path(folder)
    ballast = disk / "ballast"
    filled: Counter[str] = Counter()

    def fill(fleet: Fleet) -> None:
        server = fleet.server
        assert isinstance(server, Postgres)
        before = sum(call.status == 503 for call in fleet.history.calls)
        with ballast.open("wb") as file:
            block = bytes(LEFT)
            try:
                while True:
                    file.write(block)
                    file.flush()
            except OSError:
                pass
            file.truncate(max(0, file.tell() - LEFT))
        until = time.monotonic() + PATIENCE
        while sum(call.status == 503 for call in fleet.history.calls) == before:
            require(time.monotonic() < until, "the disk has filled up, and no call has failed")
            time.sleep(0.01)
        time.sleep(0.5)
        ballast.unlink()
        if server.pid is None:  # the log was full
            filled["PostgreSQL ended"] += 1
            server.stop()
            server.start()
        fleet.wait_for(200)

    settings = {"fsync": "on", "max_wal_size": "32MB", "min_wal_size": "32MB"}
    with (
        tempfile.TemporaryDirectory() as files,
        Zygote() as zygote,
        Postgres(disk / "postgres", **settings) as server,
    ):
        totals = Totals("full disks")
        fleet = Fleet(zygote, server, Path(files), 1)
        fleet.play(times, fill, thorough=2)
        totals.faults = times
        totals.add(fleet.history, fleet.auditor.logs())
        print(totals, *(f"{what} {number}" for what, number in filled.items()), sep=", ")


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        description="Make faults around replicas under load, and check that nothing is lost."
    )
    for name, mode in MODES.items():
        parser.add_argument(
            f"--{name}", type=int, default=0, metavar="N", help=f"{(mode.fault.__doc__ or '').split(chr(10))[0]}"
        )
    parser.add_argument("--full-disks", type=int, default=0, metavar="N", help="Let PostgreSQL run out of space.")
    parser.add_argument("--all", action="store_true", help="make all faults, in the numbers of `make crash`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--sabotage", help="break the replicas on purpose: the run must then fail")
    given = parser.parse_args()
    options = {"fault": given.sabotage} if given.sabotage else {}
    try:
        with Zygote() as zygote, Postgres(fsync="on") as server:
            for name, mode in MODES.items():
                count = mode.usual if given.all else getattr(given, name.replace("-", "_"))
                if count:
                    more: dict[str, Any] = {"clients": given.clients} | options
                    print(run(name, count, given.seed, zygote=zygote, server=server, keep=True, **more), flush=True)
        disks = 4 if given.all else given.full_disks
        if disks:
            print(on_full_disk(disks) or "full disks: skipped, no disk can be mounted here")
    except Violation as error:
        return reported(error, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
