"""Compilation beside the program: in order, without messages, and only for owners that are alive."""

import errno
import os
import subprocess
import threading
import time

import pytest

from robandit.errors import KernelError
from robandit.kernel import background, cache
from robandit.kernel.background import in_background

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


def quadruple(x):
    return 4.0 * x


def test_without_another_process_it_is_compiled_here(monkeypatch, as_new_process):
    def too_many_files(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    owner = Owner()
    monkeypatch.setattr(subprocess, "Popen", too_many_files)
    ask(owner, quadruple)
    wait()
    assert [name for name, _ in owner.results] == ["quadruple"]
    assert owner.results[0][1](2.0) == 8.0
