"""Work that an exception of a signal handler must not interrupt."""

import _thread
import threading

import pytest

from robandit.kernel import uninterrupted as module
from robandit.kernel.uninterrupted import uninterrupted


def test_the_result_or_the_error_comes_from_another_thread():
    assert uninterrupted(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 / 0)
    assert module._unfinished == []


def test_without_threads_the_work_is_done_here(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    assert uninterrupted(threading.get_ident) == threading.get_ident()
    assert module._unfinished == []


def test_the_end_waits_for_work_that_was_left_as_soon_as_it_began(monkeypatch):
    """A handler may raise right after the start of the thread, before there is anything to wait for."""
    go, done = threading.Event(), []
    start = _thread.start_new_thread

    def interrupted(*args):
        start(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(_thread, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(lambda: done.append(go.wait(60)))
    monkeypatch.undo()
    threading.Timer(0.1, go.set).start()
    module._end()
    assert done == [True]
    module._unfinished.clear()
