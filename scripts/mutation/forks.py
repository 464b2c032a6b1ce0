"""Functions in forked processes, with a limit on CPU time."""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Task(NamedTuple):
    """A function to run in a process, and its limit of CPU time."""

    key: Any
    function: Callable[[], Any]
    seconds: float
    quiet: bool = True


def run_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Any, Any, str]]:
    """Run tasks, ``jobs`` at a time; yields each task's key, result and end (see `_outcome`)."""
    waiting = iter(tasks)
    running: dict[int, tuple[Any, Any]] = {}
    while True:
        while len(running) < jobs and (task := next(waiting, None)) is not None:
            child, file = _start(task)
            running[child] = task.key, file
        if not running:
            return
        child, status = os.waitpid(-1, 0)
        key, file = running.pop(child)
        yield key, *_outcome(status, file)
        file.close()


def _start(task: Task) -> tuple[int, Any]:
    """Fork a process for a task; returns its id and the file for its result."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(task.seconds), math.ceil(task.seconds) + 1))
            if task.quiet:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
            pickle.dump(task.function(), file)
            file.flush()
            status = 0
        except BaseException:
            pickle.dump(traceback.format_exc(), file)
            file.flush()
        finally:
            os._exit(status)
    return child, file


def _outcome(status: int, file: Any) -> tuple[Any, str]:
    """Return the function's result, and how its process ended: done, died, or time."""
    if os.WIFSIGNALED(status):
        return None, "time" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "died"
    file.seek(0)
    result = pickle.load(file)
    if os.WEXITSTATUS(status):
        raise RuntimeError(f"a process failed, and not because of a mutant:\n{result}")
    return result, "done"
