"""Compiles kernels in other processes, on all cores. They store the code in the cache folder, and this process loads it.

A worker is a Python process that reads groups of kernels from its standard input, one JSON object per line, and answers each with a
line: the error, or an empty text. It ends when its input ends, even if this process is killed. If no worker can be started, as in a
frozen program, kernels are compiled here.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import IO

from robandit.errors import KernelError
from robandit.kernel import cache
from robandit.kernel.cores import cores
from robandit.kernel.folder import SETTING, store_folder

Group = Sequence[cache.Kernel]
_SCRIPT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from robandit.kernel.workers import serve; serve()"


class WorkerDied(Exception):
    """A worker ended without an answer, or could not be started."""


class Worker:
    """A process that compiles. One thread at a time may use it; any thread may stop it."""

    def __init__(self) -> None:
        """Start the process. It finds the same packages as this one."""
        name = os.path.basename(sys.executable or "").lower()  # inside another program, it may be that program
        if not ("python" in name or "pypy" in name) or getattr(sys, "frozen", False):
            raise WorkerDied("this program has no Python interpreter that it could start")
        path = [folder for folder in sys.path if isinstance(folder, str)]  # Python ignores others
        command = [sys.executable, "-P", "-c", _SCRIPT, json.dumps(path)]  # -P: no modules of the working directory
        environment = os.environ | {SETTING: str(store_folder())}
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                bufsize=0,  # a buffer has a lock, which a forked child might inherit locked
            )
        except OSError as error:
            raise WorkerDied(f"Python could not be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def compile(self, group: Group) -> None:
        """Compile the kernels of a group that are not stored. Raise `KernelError` if one of them cannot be compiled."""
        try:
            rest = memoryview(json.dumps([asdict(kernel) for kernel in group]).encode() + b"\n")
            while rest:
                rest = rest[self._requests.write(rest) :]
            line = self._answers.readline()
        except OSError as broken:
            raise WorkerDied(f"the process that compiles cannot be reached: {broken}") from broken
        if not line.endswith(b"\n"):
            raise WorkerDied("the process that compiles has ended")
        try:
            error = json.loads(line)
        except ValueError:
            error = None
        if not isinstance(error, str):
            raise WorkerDied("the process that compiles printed something else")
        if error:
            raise KernelError(error)

    def stop(self) -> None:
        """End the process at once. Unfinished code is not stored."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes, after `stop`."""
        self._requests.close()
        self._answers.close()

    def leave(self) -> None:
        """Forget the process in a forked child: it belongs to the parent."""
        self._process.returncode = 0  # otherwise Python reports a process that is still running
        self.close()


def serve() -> None:
    """Compile what standard input asks for, until it ends. This is the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    # Numba makes many objects: with the default of 700, garbage collections take a tenth of the time.
    gc.set_threshold(50_000)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write to the answers

    def read(source: IO[bytes]) -> None:
        for line in source:
            requests.put(line)
        os._exit(0)  # also in the middle of a compilation

    threading.Thread(target=read, args=(sys.stdin.buffer,), daemon=True).start()
    while True:
        error = _compiled([cache.Kernel(**fields) for fields in json.loads(requests.get())])
        answers.write(json.dumps(error).encode() + b"\n")
        answers.flush()


def _compiled(group: Group) -> str:
    """Compile the kernels of a group that are not stored; return the error, or an empty text."""
    try:
        for kernel in group:
            if not kernel.fits():
                os._exit(1)  # the parent compiles: its packages were replaced, or it has changed settings of Numba
            if not kernel.is_stored():
                cache.ready(kernel, kernel.entry)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def compile_all(
    groups: Mapping[str, Callable[[], Group]],
    done: Callable[[str], object],
    *,
    processes: int | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Compile groups of kernels in parallel processes. One process compiles a group, since its kernels share functions.

    Parameters
    ----------
    groups
        For each label, a function that returns the kernels. If it raises, or a kernel cannot be compiled, the group counts as done:
        whoever uses the kernel gets the error.
    done
        Called with the label of each group that is done, in any order, in any thread.
    processes
        The number of processes. None: one per available core. None is started if all code is stored.
    stop
        Set it in another thread to end the work at once.
    """
    crew = _Crew()
    futures: set[Future[None]] = set()
    with ThreadPoolExecutor(processes or cores(), "robandit-compiling") as threads:
        try:
            for label, kernels in groups.items():
                group: Group = ()
                with suppress(Exception):
                    group = [kernel for kernel in kernels() if not kernel.is_stored()]
                if group:
                    futures.add(threads.submit(crew.compile, group, partial(done, label)))
                else:
                    done(label)
            while futures and not (stop is not None and stop.is_set()):
                futures = wait(futures, timeout=0.1).not_done
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            crew.stop()
    crew.close()


class _Crew:
    """The workers of `compile_all`. Each thread that needs one takes one that is idle, or starts one."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.idle: list[Worker] = []
        self.ended = False

    def compile(self, group: Group, done: Callable[[], object]) -> None:
        with suppress(WorkerDied):
            worker = self.idle.pop() if self.idle else self.started()
            with suppress(KernelError):  # then the kernel is compiled again where it is used, which raises the error
                worker.compile(group)
            self.idle.append(worker)
        done()

    def started(self) -> Worker:
        worker = Worker()
        self.workers.append(worker)
        if self.ended:
            worker.stop()
        return worker

    def stop(self) -> None:
        self.ended = True
        for worker in self.workers:
            worker.stop()

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
