"""Where units are played instead of in this process: any executor, or a Dask cluster.

A worker needs no disk in common with the client. It plays a unit, and sends back the bytes of its part; the client holds the unit's
lock meanwhile, and writes the part. Dask is imported only where it is used.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import re
import sys
import traceback
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from robandit.errors import EngineLost, InvalidInput, VersionSkew
from robandit.experiments.plan import Plan, Unit
from robandit.experiments.store import versions

__all__ = ["Answer", "Engine", "Lapsed", "Sent", "WorkersDied", "dask_engine", "engine_for"]

T = TypeVar("T")

AHEAD = 16  # units that wait in an executor of unknown size
PER_THREAD = (
    4  # units under way for each thread of a cluster; Dask queues them at the scheduler if there are more than two
)
SCHEMES = ("tcp", "tls", "ucx")  # by which another process can be reached
CONNECT = 10.0  # seconds to reach a scheduler
ANSWER = 60.0  # seconds that a scheduler may be silent: a busy one answers late
LOOK = 1.0  # seconds between two looks at who works
CLOSE = 10.0  # seconds for goodbyes
OWN_LOGS = logging.CRITICAL  # of a cluster that is ours: the run itself says which units failed, and why
OWN_VERSION = "__import__('robandit').__version__"
ENDED = ("closing_gracefully", "closing", "closed", "failed")  # of what keeps a worker process alive


@dataclass(frozen=True)
class Sent:
    """What a worker sends back."""

    content: bytes
    """The unit's part."""
    seconds: float


@dataclass(frozen=True)
class Lapsed:
    """What it sends if the unit failed."""

    traceback: str


Answer: TypeAlias = Sent | Lapsed


class WorkersDied(Exception):
    """Every worker that had a unit died. Others that waited there are blamed, too."""


class Engine(ABC):
    """Plays units of one plan at a time. Its owner opens and closes it."""

    shares_cache: bool = True
    """Whether what this process compiles is there for the workers: then it compiles first, once for all."""
    dashboard: str | None = None
    """Where people can watch it."""

    @abstractmethod
    def begin(self, plan: Plan) -> None:
        """Get ready for the units of a plan."""

    @abstractmethod
    def submit(self, number: int) -> Future[Answer]:
        """Have a unit of the plan played."""

    @abstractmethod
    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """How many more units to submit now: enough to keep the workers busy, and no more, since the client holds their locks."""

    def workers(self) -> int | None:
        """How many there are; None: not known. If they are out of reach, or cannot be used, the error says why."""
        return None

    def explain(self, error: BaseException) -> Exception | None:
        """What a future's error means: `EngineLost`, `VersionSkew` or `WorkersDied`; None: the unit itself failed."""
        if isinstance(error, (EngineLost, VersionSkew)):
            return error
        if isinstance(error, BrokenExecutor):
            return EngineLost(f"the executor is broken, perhaps because one of its processes was killed: {error}")
        if isinstance(error, CancelledError):
            return EngineLost("the executor has cancelled its work")
        return None

    @abstractmethod
    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Take back what was submitted and is not done; this does not wait for workers, and does not fail."""


def play(plan: Plan, number: int, wanted: dict[str, str]) -> Answer:
    """On a worker: play a unit, if the versions here are the client's."""
    return play_unit(plan.units[number], wanted)


def play_unit(unit: Unit, wanted: dict[str, str]) -> Answer:
    """The same for a unit that came along."""
    skew = _skew(wanted, {_name(): _versions_here()})
    if skew is not None:
        raise skew
    try:
        result = unit.run()
    except Exception:
        return Lapsed(traceback.format_exc())
    return Sent(result.to_bytes(whole=False), float(result.seconds[0]))


def engine_for(given: object) -> Engine:
    """What a run plays on: an engine as it is, an executor with its adapter."""
    if isinstance(given, Engine):
        return given
    if isinstance(given, Executor):
        distributed = sys.modules.get("distributed.cfexecutor")
        if distributed is not None and isinstance(given, distributed.ClientExecutor):
            return _DaskEngine(given._client)
        return _ExecutorEngine(given)
    raise InvalidInput(
        f"engine = {given!r} must be a concurrent.futures.Executor, or what robandit.experiments.dask_engine yields"
    )


class _ExecutorEngine(Engine):
    """An executor; each unit travels with its problem."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._plan: Plan | None = None

    def begin(self, plan: Plan) -> None:
        self._plan = plan

    def submit(self, number: int) -> Future[Answer]:
        assert self._plan is not None
        try:
            return self._executor.submit(play_unit, self._plan.units[number], _versions_here())
        except RuntimeError as error:  # broken, or shut down
            raise EngineLost(f"the executor takes no more work: {error}") from error

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        return AHEAD - sum(not future.running() for future in under_way)

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        for future in under_way:
            future.cancel()
        self._plan = None


# --- Dask -----------------------------------------------------------------------------------------------------------


@contextmanager
def dask_engine(
    *, scheduler: str | None = None, scheduler_file: Path | None = None, workers: int | None = None
) -> Iterator[Engine]:
    """Connect to a Dask cluster, or start one on this machine; what it yields is an ``engine`` for `robandit.experiments.run`.

    Give exactly one of these. Needs ``robandit[cluster]``. A script that starts workers must do so below
    ``if __name__ == "__main__":``, because they import it.

    Parameters
    ----------
    scheduler
        The address of a scheduler, such as ``tcp://10.0.0.5:8786``.
    scheduler_file
        The file that a scheduler wrote when it was started with ``--scheduler-file``.
    workers
        So many processes on this machine, with a thread each.
    """
    given = {"scheduler": scheduler, "scheduler_file": scheduler_file, "workers": workers}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        said = f"{' and '.join(named)} are given" if named else "nothing is given"
        raise InvalidInput(f"{said}: give one of scheduler, scheduler_file and workers")
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise InvalidInput(f"workers = {workers!r} must be a whole number >= 1")
    if find_spec("distributed") is None:
        raise InvalidInput('Dask is not installed: pip install "robandit[cluster]"')
    address = _address(scheduler_file) if scheduler_file is not None else scheduler
    if address is not None:
        _check_address(address)
    with ExitStack() as stack:
        stack.enter_context(_quiet(logging.ERROR if workers is None else OWN_LOGS))
        cluster = _local_cluster(workers, stack) if workers is not None else None
        client = _client(cluster if cluster is not None else address)
        stack.callback(_close, client)
        yield _DaskEngine(client, cluster=cluster)


class _DaskEngine(Engine):
    """A Dask cluster. The plan goes there once, units go by number."""

    def __init__(self, client: Any, *, cluster: Any = None) -> None:
        self._client = client
        self._address = str(client.scheduler.address)
        self._cluster = cluster  # our own, on this machine
        self.shares_cache = cluster is not None
        self._wanted = _versions_here()
        self._plan: Any = None
        self._bare: Plan | None = None
        self._names = ""
        self._count = 0
        self._futures: dict[Future[Answer], Any] = {}
        self._threads: dict[str, int] = {}
        self._trouble: Exception | None = None
        self._watch: Future[None] | None = None
        scheduler = self._ask(lambda: client.scheduler.versions(packages=["bokeh"]))
        if scheduler["packages"].get("bokeh") is not None:  # else that page only says that it is missing
            self.dashboard = client.dashboard_link

    def begin(self, plan: Plan) -> None:
        self._names = f"robandit-{uuid.uuid4().hex[:8]}"
        self._ask(self._look)
        self.workers()
        self._send(plan)  # a worker without Robandit would die of it
        self._watch = self._soon(self._keep_looking())

    def _send(self, plan: Plan) -> None:
        """As a task, not as data: that lives on workers only, and is lost with them; a task is run again."""
        dask: Any = import_module("dask")
        self._count += 1
        bare = replace(plan)  # without what was computed from it
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):  # recorded rewards are large
            self._plan = self._client.submit(_same, bare, key=f"{self._names}-plan-{self._count}", pure=False)
        self._bare = bare

    def submit(self, number: int) -> Future[Answer]:
        self._count += 1
        try:
            future = self._client.submit(
                play, self._plan, number, self._wanted, key=f"{self._names}-unit-{self._count}", pure=False
            )
            answer: Future[Answer] = self._soon(self._answer(future))
        except Exception as error:
            raise self._lost(error) from error
        self._futures[answer] = future
        answer.add_done_callback(lambda done: self._futures.pop(done, None))  # then the cluster forgets it
        return answer

    async def _answer(self, future: Any) -> Answer:
        answer: Answer = await self._client.gather(future, asynchronous=True)
        return answer

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        return PER_THREAD * sum(self._threads.values()) - len(under_way)

    def workers(self) -> int:
        if self._trouble is not None:
            raise self._trouble
        if self._client.status != "running":
            raise self._lost()
        if self._cluster is not None and all(nanny.status.name in ENDED for nanny in self._cluster.workers.values()):
            raise EngineLost("all worker processes on this machine have ended, and cannot be started again")
        return len(self._threads)

    def explain(self, error: BaseException) -> Exception | None:
        if isinstance(error, VersionSkew):
            return error
        if isinstance(error, _distributed().KilledWorker):
            if "-plan-" in str(error.task):  # the plan merely waited where something else went wrong
                assert self._bare is not None
                self._send(self._bare)
            died = error.allowed_failures + 1
            return WorkersDied(
                f"{died} {'worker' if died == 1 else 'workers'} that had this unit died, "
                f"the last one was {error.last_worker.address}"
            )
        if isinstance(error, (CancelledError, asyncio.CancelledError)) or self._client.status != "running":
            return self._lost(error)
        try:
            self._ask(self._look)  # perhaps a worker does not have what it takes to say so
        except EngineLost as lost:
            return lost
        return self._trouble

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        if self._watch is not None:
            self._watch.cancel()
        left = [future for future in map(self._futures.get, under_way) if future is not None]
        if left and self._client.status == "running":
            with suppress(EngineLost):
                self._ask(lambda: self._client.cancel(left, asynchronous=True, force=True), CLOSE)
        self._plan = self._bare = None

    async def _keep_looking(self) -> None:
        while self._trouble is None:
            try:
                await asyncio.wait_for(self._look(), ANSWER)
            except Exception as error:
                self._trouble = self._lost(error)
            await asyncio.sleep(LOOK)

    async def _look(self) -> None:
        """Who is there, and with which versions; only those count who have the right ones."""
        there: dict[str, int] = await self._client.scheduler.ncores()
        new = [address for address in there if address not in self._threads]
        have = {
            address: packages
            for address, packages in zip(new, await asyncio.gather(*map(self._packages, new)), strict=True)
            if packages is not None
        }
        self._trouble = _skew(self._wanted | {"robandit": _installed()}, have) or self._trouble
        self._threads = {address: n for address, n in there.items() if address in self._threads or address in have}

    async def _packages(self, address: str) -> dict[str, str | None] | None:
        """The versions on a worker, asked in such a way that it need not have Robandit; None: it does not answer now."""
        message = {"op": "versions", "packages": [name for name in self._wanted if name != "python"]}
        with suppress(asyncio.TimeoutError):
            found = await asyncio.wait_for(
                self._client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore"), CLOSE
            )
            if isinstance(found.get(address), dict):
                packages = dict(found[address]["packages"])
                if packages["robandit"] is None:  # it may be there as a mere folder
                    asked = self._client._run(eval, OWN_VERSION, workers=[address], on_error="return")
                    own = (await asyncio.wait_for(asked, ANSWER)).get(address)
                    packages["robandit"] = own if isinstance(own, str) else None
                return packages
        return None

    def _lost(self, error: BaseException | None = None) -> EngineLost:
        if isinstance(error, EngineLost):
            return error
        # Dask says a paragraph about work that the scheduler has forgotten, and a word.
        why = getattr(error, "reason", None) or (f"{type(error).__name__}: {error}" if error is not None else "")
        return EngineLost(f"the connection to the Dask scheduler {self._address} was lost{f' ({why})' if why else ''}")

    def _soon(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)

    def _ask(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float = ANSWER) -> T:
        async def asked() -> T:
            return await asyncio.wait_for(work(), seconds)

        try:
            return self._soon(asked()).result()
        except Exception as error:
            raise self._lost(error) from error


def _distributed() -> Any:
    return import_module("distributed")


def _same(plan: Plan) -> Plan:
    return plan


def _address(file: Path) -> str:
    try:
        return str(json.loads(file.read_bytes())["address"])
    except OSError as error:
        raise InvalidInput(
            f"the scheduler file {file} cannot be read: {error.strerror}; start the scheduler first, with --scheduler-file {file}"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            f"{file} is not a file that a Dask scheduler wrote, or it is not complete: {error}"
        ) from error


def _check_address(address: str) -> None:
    """Dask tries what it cannot understand for a while, and then tells where in its code it gave up."""
    found = re.fullmatch(r"(?:(\w+)://)?(?:\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):(\d{1,5})/?", address)
    if found is None or found[1] not in (None, *SCHEMES) or not 0 < int(found[2]) < 65_536:
        raise InvalidInput(
            f"scheduler = {address!r} is no address of a Dask scheduler: it must be HOST:PORT, perhaps after "
            f"{', '.join(f'{scheme}://' for scheme in SCHEMES[:-1])} or {SCHEMES[-1]}://; for example tcp://10.0.0.5:8786"
        )


# Ctrl-C at a terminal reaches all processes there; the client tells its workers to end, and they need not say it once more.
DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def _local_cluster(workers: int, stack: ExitStack) -> Any:
    # Dask gives a worker up for good if it is not there so long after its death, even if it came back and died again meanwhile.
    stack.enter_context(import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "365 days"}))
    cluster = _distributed().LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=OWN_LOGS,
        preload=[DEAF],
    )
    stack.callback(cluster.close, timeout=CLOSE)
    return cluster


def _client(where: Any) -> Any:
    try:
        return _distributed().Client(where, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise EngineLost(
            f"the Dask scheduler {where} cannot be reached: {error}; check that it is running and that its address is right"
        ) from error


def _close(client: Any) -> None:
    if client.status != "running":  # the scheduler is gone, that has been said, and there is nobody to say goodbye to
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with suppress(Exception):
        client.close(timeout=CLOSE)


@contextmanager
def _quiet(level: int) -> Iterator[None]:
    """Nothing below this level is shown: Dask tells of each worker that comes or goes, and a run says that in its own way."""
    _distributed()  # sets these levels when it is imported
    names = ("distributed", "distributed.client")
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


# --- versions -------------------------------------------------------------------------------------------------------


@cache
def _versions_here() -> dict[str, str]:
    return versions()


@cache
def _installed() -> str:
    """Robandit's version as a package index knows it; of workers that are asked through Dask, this is known."""
    try:
        return version("robandit")
    except PackageNotFoundError:  # a mere folder
        return _versions_here()["robandit"]


def _name() -> str:
    """This process, as a person can find it; on a Dask worker, its address."""
    if "distributed.worker" in sys.modules:
        with suppress(ValueError):
            return str(sys.modules["distributed.worker"].get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"


def _skew(wanted: Mapping[str, str], have: Mapping[str, Mapping[str, str | None]]) -> VersionSkew | None:
    """What is different on which workers; None: nothing."""
    told = []
    for name, mine in wanted.items():
        others: dict[str | None, list[str]] = {}
        for worker, packages in have.items():
            theirs = packages.get(name)
            if _compared(name, theirs) != _compared(name, mine):
                others.setdefault(theirs, []).append(worker)
        told += [
            f"{name} is {mine} here and {theirs or 'missing'} on {', '.join(sorted(there)[:5])}"
            f"{f' and {len(there) - 5} more' if len(there) > 5 else ''}"
            for theirs, there in others.items()
        ]
    if not told:
        return None
    return VersionSkew(f"{'; '.join(told)}: install the same versions on the client and on all workers")


def _compared(name: str, found: str | None) -> str | None:
    """Numbers do not depend on Python's third digit."""
    return ".".join(found.split(".")[:2]) if name == "python" and found is not None else found
