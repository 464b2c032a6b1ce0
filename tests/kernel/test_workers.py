"""Kernels are compiled in other processes, which end with this one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from helpers.running import finish, start
from robandit.errors import KernelError
from robandit.kernel import cache, compiled
from robandit.kernel.build import kernel_of
from robandit.kernel.workers import Worker, WorkerDied, compile_all
from robandit.locks import locked


def square(x):
    return x * x


def cube(x):
    return square(x) * x


def allocating(x):
    return np.zeros(3)[0] + x


KERNELS = {"square": partial(kernel_of, square, (1.0,)), "cube": partial(kernel_of, cube, (1.0,))}


@pytest.fixture(autouse=True)
def new_cache(tmp_path, monkeypatch, as_new_process):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))


def groups(*names: str):
    return {name: (lambda name=name: [KERNELS[name]()]) for name in names}


def test_groups_are_compiled_elsewhere_and_loaded_here(capsys):
    done: list[str] = []
    compile_all(groups("square", "cube"), done.append, processes=2)
    assert sorted(done) == ["cube", "square"]
    assert compiled(cube, label="cube", args=(1.0,))(3.0) == 27.0
    assert compiled(square, label="square", args=(1.0,))(3.0) == 9.0
    assert capsys.readouterr().err == ""  # nothing was compiled here


def test_stored_kernels_need_no_process(monkeypatch):
    compile_all(groups("square"), lambda _: None)

    def refuse(self: Worker) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(Worker, "__init__", refuse)
    done: list[str] = []
    compile_all(groups("square"), done.append)
    assert done == ["square"]


def test_a_kernel_that_cannot_be_compiled_counts_as_done():
    def broken():
        raise ValueError("no kernels")

    done: list[str] = []
    kernels = {"broken": broken, "allocating": lambda: [kernel_of(allocating, (1.0,))]} | groups("square")
    compile_all(kernels, done.append, processes=1)
    assert sorted(done) == ["allocating", "broken", "square"]
    assert KERNELS["square"]().is_stored()
    with pytest.raises(KernelError, match="a hook allocates memory"):
        compiled(allocating, label="allocating", args=(1.0,))


def test_the_error_of_a_worker_is_passed_on():
    worker = Worker()
    try:
        with pytest.raises(KernelError, match="Only accept returning of array"):
            worker.compile([kernel_of(allocating, (1.0,))])
        worker.compile([KERNELS["square"]()])  # it goes on
    finally:
        worker.stop()
        worker.close()
    assert KERNELS["square"]().is_stored()


def test_a_worker_that_is_killed(monkeypatch):
    worker = Worker()
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        worker.compile([KERNELS["square"]()])
    worker.stop()
    worker.close()

    def killed(self: Worker, group: object) -> None:
        raise WorkerDied("killed")

    monkeypatch.setattr(Worker, "compile", killed)
    done: list[str] = []
    compile_all(groups("square", "cube"), done.append)
    assert sorted(done) == ["cube", "square"]
    assert compiled(cube, label="cube", args=(1.0,))(3.0) == 27.0  # here, instead


def test_a_frozen_program_compiles_where_it_is(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(WorkerDied, match="no Python interpreter"):
        Worker()
    done: list[str] = []
    compile_all(groups("square"), done.append)
    assert done == ["square"]


def test_it_can_be_stopped(monkeypatch):
    """The worker is in the middle of its work: it has a lock that somebody else holds."""
    stop = threading.Event()
    kernel = KERNELS["square"]()
    folder = cache.store_folder()
    with locked(folder / f"{kernel.name}.lock", wait=True):
        threading.Timer(1.0, stop.set).start()
        begin = time.monotonic()
        compile_all(groups("square"), lambda _: None, stop=stop)
        assert 0.9 < time.monotonic() - begin < 30.0
    assert not kernel.is_stored()


PARENT = """
import os, sys, time
from robandit.kernel import cache
from robandit.kernel.build import kernel_of
from robandit.kernel.workers import Worker

def hook(x):
    return x + 1.0

kernel = kernel_of(hook, (1.0,))
worker = Worker()
with cache.locked(cache.store_folder() / f"{kernel.name}.lock", wait=True):
    print(worker._process.pid, flush=True)
    worker.compile([kernel])  # waits for ever
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_worker_ends_when_its_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    process = start(script, cache=tmp_path / "cache")
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.communicate()
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            break
        if _is_zombie(worker):
            break
        time.sleep(0.05)
    else:
        os.kill(worker, signal.SIGKILL)
        pytest.fail("the worker went on")


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended, but nobody has asked for its exit code."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


FORKING = """
import os
from robandit.kernel.build import kernel_of
from robandit.kernel.workers import Worker

def hook(x):
    return x + 2.0

worker = Worker()
child = os.fork()
if child == 0:
    worker.leave()
    del worker
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
kernel = kernel_of(hook, (1.0,))
worker.compile([kernel])  # the parent's worker is as before
worker.stop()
worker.close()
print(kernel.is_stored())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_the_worker_to_its_parent(tmp_path):
    script = tmp_path / "forking.py"
    script.write_text(FORKING)
    assert finish(start(script, cache=tmp_path / "cache")) == ("True", "")


@pytest.mark.parametrize("mask", [0o002, 0o000, 0o077])
def test_stored_code_is_used_again_whatever_the_umask(mask):
    before = os.umask(mask)
    try:
        compile_all(groups("square"), lambda _: None)
        assert KERNELS["square"]().is_stored()
    finally:
        os.umask(before)


def test_a_worker_imports_nothing_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])  # Python ignores entries that are no strings
    worker = Worker()
    worker.compile([KERNELS["square"]()])
    worker.stop()
    worker.close()


def test_a_worker_with_other_settings_stores_nothing():
    kernel = KERNELS["square"]()
    other = replace(kernel, name="square_entry_of_another_platform")
    worker = Worker()
    with pytest.raises(WorkerDied):
        worker.compile([other])
    worker.stop()
    worker.close()
    assert not other.is_stored()
