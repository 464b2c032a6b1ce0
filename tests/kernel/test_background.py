"""Compilation beside the program: in order, without messages, and only for owners that are alive."""

import builtins
import errno
import io
import json
import linecache
import os
import subprocess
import threading
import time
import tokenize

import pytest

from robandit.errors import KernelError
from robandit.kernel import background, cache, workers
from robandit.kernel.background import in_background
from robandit.kernel.build import kernel_of
from robandit.kernel.workers import Worker

pytestmark = pytest.mark.usefixtures("compiles_beside")


class Owner:
    """Keeps what it gets."""

    def __init__(self):
        self.results = []
        self.threads = []

    def take(self, result, name):
        self.results.append((name, result))
        self.threads.append(threading.current_thread())


def double(x):
    return 2.0 * x


def triple(x):
    return 3.0 * x


def wrong(x):
    return x.no_such_attribute


def ask(owner, function):
    name = function.__name__
    in_background(owner, function, label=name, args=(1.0,), then=lambda o, result: o.take(result, name))


def wait():
    end = time.monotonic() + 120.0
    while background._thread is not None:
        assert time.monotonic() < end, "the thread does not end"
        time.sleep(0.005)


def test_entries_come_in_order_from_another_thread(capfd):
    owner = Owner()
    for function in (double, wrong, triple):
        ask(owner, function)
    wait()
    assert [name for name, _ in owner.results] == ["double", "wrong", "triple"]
    assert owner.results[0][1](4.0) == 8.0
    assert isinstance(owner.results[1][1], KernelError)
    assert owner.results[2][1](4.0) == 12.0
    assert threading.current_thread() not in owner.threads
    assert all(thread.daemon for thread in owner.threads)
    assert capfd.readouterr().err == ""


def test_nothing_is_done_for_owners_that_are_gone():
    kept, gone = Owner(), Owner()
    results = gone.results
    with cache.lock:  # the thread cannot compile
        ask(kept, double)
        ask(gone, triple)
        del gone
    wait()
    assert len(kept.results) == 1
    assert results == []


def test_a_thread_starts_again_when_there_is_more_to_do():
    owner = Owner()
    ask(owner, double)
    wait()
    ask(owner, triple)
    wait()
    assert [name for name, _ in owner.results] == ["double", "triple"]


def test_without_threads_nothing_happens(monkeypatch):
    """Such as while the interpreter shuts down. Owners go on without compiled code."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    owner = Owner()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        ask(owner, double)
    assert background._thread is None
    assert owner.results == []
    ask(owner, triple)  # both, now that it can
    wait()
    assert [name for name, _ in owner.results] == ["double", "triple"]


class Pauses(list):
    """The pauses between two tries, which take no time. ``act`` is called in each."""

    act = staticmethod(lambda: None)

    def __call__(self, seconds):
        self.append(seconds)
        self.act()


@pytest.fixture
def pauses(monkeypatch, as_new_process):
    made = Pauses()
    monkeypatch.setattr(background, "_pause", made, raising=False)
    return made


@pytest.fixture
def faults():
    """Faults that a test may end in the middle."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def too_many_files(*_, **__):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def quadruple(x):
    return 4.0 * x


def quintuple(x):
    return 5.0 * x


def test_without_descriptors_for_a_process_it_is_tried_again_later(faults, pauses, capfd):
    owner = Owner()
    pauses.act = lambda: len(pauses) < 3 or faults.undo()
    faults.setattr(subprocess, "Popen", too_many_files)
    ask(owner, quadruple)
    wait()
    assert pauses == [background.AGAIN] * 3
    assert [name for name, _ in owner.results] == ["quadruple"]
    assert owner.results[0][1](2.0) == 8.0
    printed = capfd.readouterr().err
    assert printed.count("quadruple cannot be compiled now (Too many open files) and runs interpreted") == 1


def test_without_descriptors_for_a_source_it_is_tried_again_later(faults, pauses, capfd):
    """Python's linecache says of a file that it cannot open that it has no lines."""
    owner = Owner()
    pauses.act = faults.undo
    linecache.clearcache()
    faults.setattr(builtins, "open", too_many_files)
    faults.setattr(tokenize, "open", too_many_files)
    ask(owner, quintuple)
    wait()
    assert len(pauses) == 1
    assert owner.results[0][1](2.0) == 10.0
    assert "(Too many open files)" in capfd.readouterr().err


class PoorWorker(Worker):
    """Answers as a worker does in which ``ready`` raises an error. If it is broken, the error comes from its pipe instead."""

    def __init__(self, error, *, broken):
        def ready(*_):
            raise error

        self._requests = io.BytesIO()
        if broken:
            self._requests.write = ready
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cache, "ready", ready)
            self._answers = io.BytesIO(json.dumps(workers._compiled([kernel_of(septuple, (1.0,))])).encode() + b"\n")

    def stop(self):
        pass


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (OSError(errno.ENFILE, "Too many files"), False),
        (MemoryError(), False),
        (OSError(errno.ENOMEM, "No memory"), True),
    ],
)
def test_a_worker_that_lacks_something_is_asked_again_later(
    faults, pauses, capfd, tmp_path, monkeypatch, error, broken
):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path))  # without the code of the other cases
    owner = Owner()
    pauses.act = faults.undo
    poor = PoorWorker(error, broken=broken)
    faults.setattr(background, "Worker", lambda: poor)
    ask(owner, septuple)
    wait()
    assert len(pauses) == 1
    assert owner.results[0][1](2.0) == 14.0
    reason = os.strerror(error.errno if isinstance(error, OSError) else errno.ENOMEM)
    assert f"septuple cannot be compiled now ({reason})" in capfd.readouterr().err


def septuple(x):
    return 7.0 * x


def test_an_owner_that_is_gone_is_not_waited_for(faults, pauses):
    owners = [Owner()]
    pauses.act = owners.clear
    faults.setattr(subprocess, "Popen", too_many_files)
    ask(owners[0], sextuple)
    wait()
    assert len(pauses) == 1


def sextuple(x):
    return 6.0 * x
