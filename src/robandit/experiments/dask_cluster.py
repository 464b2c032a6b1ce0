"""The engine for a Dask cluster. Dask is imported only if the engine is used."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from robandit.errors import EngineLost, FileError, InvalidInput, VersionSkew
from robandit.experiments.engines import Answer, installed_version, play, version_skew, versions
from robandit.experiments.own_code import Packed, own_modules
from robandit.experiments.plan import Plan
from robandit.files import read, shown
from robandit.validation import integer, invalid
from robandit.wording import counted

T = TypeVar("T")

PER_THREAD = 4  # submitted units per thread: Dask sends two to the worker and queues the others at the scheduler
SCHEMES = ("tcp", "tls", "ucx")  # protocols between processes
CONNECT = 10.0  # seconds to reach a scheduler
ANSWER = 60.0  # seconds until a silent scheduler counts as lost; a busy scheduler answers late
LOOK = 1.0  # seconds between two checks of the workers
CLOSE = 10.0  # seconds to close connections
OWN_LOGS = logging.CRITICAL  # log level of our own local cluster: the run itself reports the failed units
OWN_VERSION = "__import__('robandit').__version__"
ENDED = ("closing_gracefully", "closing", "closed", "failed")  # states in which a nanny restarts no worker
IGNORE_INTERRUPT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


@contextmanager
def dask_engine(
    *, scheduler: str | None = None, scheduler_file: Path | None = None, workers: int | None = None
) -> Iterator[DaskEngine]:
    """Connect to a Dask cluster, or start one on this machine, and yield an ``engine`` for `robandit.experiments.run`.

    Give exactly one parameter. This function needs ``robandit[cluster]``. A script that starts workers must do so below
    ``if __name__ == "__main__":``, because workers import the script.

    Parameters
    ----------
    scheduler
        The address of a scheduler, such as ``tcp://10.0.0.5:8786``.
    scheduler_file
        The file that a scheduler wrote when it was started with ``--scheduler-file``.
    workers
        The number of processes to start on this machine, with one thread each.
    """
    parameters = {"scheduler": scheduler, "scheduler_file": scheduler_file, "workers": workers}
    names = [name for name, value in parameters.items() if value is not None]
    if len(names) != 1:
        problem = f"{' and '.join(names)} are given" if names else "nothing is given"
        raise InvalidInput(f"{problem}: give one of scheduler, scheduler_file and workers")
    if workers is not None:
        workers = integer(workers, "workers", 1, None)
    if find_spec("distributed") is None:
        raise InvalidInput('Dask is not installed: pip install "robandit[cluster]"')
    address = _address(scheduler_file) if scheduler_file is not None else scheduler
    if address is not None:
        _check_address(address)
    with ExitStack() as stack:
        stack.enter_context(_log_level(logging.ERROR if workers is None else OWN_LOGS))
        cluster = _local_cluster(workers, stack) if workers is not None else None
        client = _client(cluster if cluster is not None else address)
        stack.callback(_close, client)
        yield DaskEngine(client, cluster=cluster)


class WorkersDied(Exception):
    """All workers that had a unit died. This may also happen to a unit that only waited on these workers."""


class DaskEngine:
    """An engine that plays units on a Dask cluster, of one plan at a time. The caller opens and closes it.

    It sends the plan once, and then only the numbers of units.
    """

    dashboard: str | None = None
    """Address of Dask's dashboard, if it has one."""

    def __init__(self, client: Any, *, cluster: Any = None) -> None:
        """Use the client. ``cluster`` is the local cluster, if we started one."""
        self._client = client
        self._address = str(client.scheduler.address)
        self._cluster = cluster
        self.shares_cache = cluster is not None  # then this process compiles every policy before its workers start
        self._required = versions()
        self._plan: Any = None  # the plan on the cluster
        self._bare: Plan | None = None  # a local copy of the plan, without cached properties
        self._prefix, self._count = "", 0  # parts of the next task's key
        self._futures: dict[Future[Answer], Any] = {}
        self._threads: dict[str, int] = {}
        self._trouble: Exception | None = None
        self._watch: Future[None] | None = None
        scheduler = self._ask(lambda: client.scheduler.versions(packages=["bokeh"]))
        if scheduler["packages"].get("bokeh") is not None:  # otherwise the page only says that bokeh is missing
            self.dashboard = client.dashboard_link

    def begin(self, plan: Plan) -> None:
        """Check the workers and send the plan."""
        self._prefix = f"robandit-{uuid.uuid4().hex[:8]}"
        self._ask(self._look)
        self.workers()
        self._send(plan)  # after the check, because the plan would kill a worker without Robandit
        self._watch = self._soon(self._keep_looking())

    def _send(self, plan: Plan) -> None:
        """Send the plan as a task, not as data. Data are lost if their workers die; a task is run again."""
        dask: Any = import_module("dask")
        self._count += 1
        self._bare = replace(plan)
        modules = own_modules(cell.policy for cell in plan.cells)
        # Workers compare their modules with these before they read the plan.
        sent = Packed(modules, import_module("cloudpickle").dumps(self._bare)) if modules else self._bare
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):  # recorded rewards are large
            self._plan = self._client.submit(_same, sent, key=f"{self._prefix}-plan-{self._count}", pure=False)

    def submit(self, number: int) -> Future[Answer]:
        """Submit the unit to the cluster."""
        self._count += 1
        key = f"{self._prefix}-unit-{self._count}"
        try:
            future = self._client.submit(play, self._plan, number, self._required, key=key, pure=False)
            answer: Future[Answer] = self._soon(self._answer(future))
        except Exception as error:
            raise self._lost(error) from error
        self._futures[answer] = future
        answer.add_done_callback(lambda done: self._futures.pop(done, None))  # so that the cluster frees the result
        return answer

    async def _answer(self, future: Any) -> Answer:
        answer: Answer = await self._client.gather(future, asynchronous=True)
        return answer

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return the number of units to submit now: just enough to keep workers busy."""
        return PER_THREAD * sum(self._threads.values()) - len(under_way)

    def workers(self) -> int:
        """Return the number of workers with the right versions. Raise if the cluster is lost or a worker has others."""
        if self._trouble is not None:
            raise self._trouble
        if self._client.status != "running":
            raise self._lost()
        if self._cluster is not None and all(nanny.status.name in ENDED for nanny in self._cluster.workers.values()):
            raise EngineLost("all worker processes on this machine have ended, and cannot be started again")
        return len(self._threads)

    def explain(self, error: BaseException) -> Exception | None:
        """Translate Dask's error to `EngineLost`, `VersionSkew` or `WorkersDied`. Return None if the unit itself failed."""
        if isinstance(error, VersionSkew):
            return error
        if isinstance(error, _distributed().KilledWorker):
            if "-plan-" in str(error.task):  # something else killed the worker that held the plan: send it again
                assert self._bare is not None
                self._send(self._bare)
            died = counted(error.allowed_failures + 1, "worker")
            return WorkersDied(f"{died} that had this unit died, the last one was {error.last_worker.address}")
        if isinstance(error, (CancelledError, asyncio.CancelledError)) or self._client.status != "running":
            return self._lost(error)
        try:
            self._ask(self._look)  # the cause may be a worker without the right packages
        except EngineLost as lost:
            return lost
        return self._trouble

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel the units that are not done, without waiting for workers. The cluster keeps running."""
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
        """Update the list of workers, which contains only workers with the right versions."""
        cores: dict[str, int] = await self._client.scheduler.ncores()
        new = [address for address in cores if address not in self._threads]
        packages = zip(new, await asyncio.gather(*map(self._packages, new)), strict=True)
        installed = {address: each for address, each in packages if each is not None}
        self._trouble = version_skew({**self._required, "robandit": installed_version()}, installed) or self._trouble
        self._threads = {address: n for address, n in cores.items() if address in self._threads or address in installed}

    async def _packages(self, address: str) -> dict[str, str | None] | None:
        """Return the versions on a worker, with or without Robandit; None if it does not answer in time."""
        message = {"op": "versions", "packages": [name for name in self._required if name != "python"]}
        question = self._client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
        with suppress(asyncio.TimeoutError):
            answers = await asyncio.wait_for(question, CLOSE)
            if isinstance(answers.get(address), dict):
                packages = dict(answers[address]["packages"])
                if packages["robandit"] is None:  # Robandit may be a folder on the path, not an installed package
                    query = self._client._run(eval, OWN_VERSION, workers=[address], on_error="return")
                    own = (await asyncio.wait_for(query, ANSWER)).get(address)
                    packages["robandit"] = own if isinstance(own, str) else None
                return packages
        return None

    def _lost(self, error: BaseException | None = None) -> EngineLost:
        if isinstance(error, EngineLost):
            return error
        # The message of a forgotten task is a paragraph. Its reason is one word.
        why = getattr(error, "reason", None) or (f"{type(error).__name__}: {error}" if error is not None else "")
        return EngineLost(f"the connection to the Dask scheduler {self._address} was lost{f' ({why})' if why else ''}")

    def _soon(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)

    def _ask(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float = ANSWER) -> T:
        async def limited() -> T:
            return await asyncio.wait_for(work(), seconds)

        try:
            return self._soon(limited()).result()
        except Exception as error:
            raise self._lost(error) from error


def _distributed() -> Any:
    return import_module("distributed")


def _same(plan: Plan | Packed) -> Plan | Packed:
    return plan


def _address(file: Path) -> str:
    try:
        return str(json.loads(read(file))["address"])
    except FileError as error:
        hint = f"start the scheduler first, with --scheduler-file {shown(file)}"
        raise InvalidInput(f"the scheduler file {error}; {hint}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{file} was not written by a Dask scheduler, or is incomplete: {error}") from error


def _check_address(address: str) -> None:
    """Reject a malformed address immediately. Dask would retry for a while and then fail with a stack trace."""
    match = re.fullmatch(r"(?:(\w+)://)?(?:\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):(\d{1,5})/?", address)
    if match is None or match[1] not in (None, *SCHEMES) or not 0 < int(match[2]) < 65_536:
        schemes = f"{', '.join(f'{scheme}://' for scheme in SCHEMES[:-1])} or {SCHEMES[-1]}://"
        hint = "for example tcp://10.0.0.5:8786"
        raise invalid("scheduler", address, f"HOST:PORT, optionally after {schemes}", hint=hint)


def _local_cluster(workers: int, stack: ExitStack) -> Any:
    # After this timeout Dask abandons a worker that died, even if it was restarted meanwhile and died again.
    stack.enter_context(import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "365 days"}))
    try:
        cluster = _distributed().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=OWN_LOGS,
            preload=[
                IGNORE_INTERRUPT
            ],  # Ctrl-C reaches all processes of a terminal, but only the client may end workers
        )
    except Exception as error:  # a process that ends before it is ready; Dask has ended the others
        started = f"{counted(workers, 'worker process', 'worker processes')} on this machine"
        hint = "finished units are kept; to continue, repeat the command"
        raise EngineLost(f"starting {started} failed, perhaps because one was killed ({error}): {hint}") from error
    stack.callback(cluster.close, timeout=CLOSE)
    return cluster


def _client(where: Any) -> Any:
    try:
        return _distributed().Client(where, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        hint = "check that it is running and that its address is right"
        raise EngineLost(f"the Dask scheduler {where} cannot be reached: {error}; {hint}") from error


def _close(client: Any) -> None:
    if client.status != "running":  # the loss of the scheduler has been reported already
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with suppress(Exception):
        client.close(timeout=CLOSE)


@contextmanager
def _log_level(level: int) -> Iterator[None]:
    """Hide Dask's messages below this level. Dask logs each worker that joins or leaves, which a run reports itself."""
    _distributed()  # importing Dask sets these levels
    before = {logger: logger.level for logger in map(logging.getLogger, ("distributed", "distributed.client"))}
    for logger in before:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, old in before.items():
            logger.setLevel(old)
