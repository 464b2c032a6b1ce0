"""Work that an exception of a signal handler must not interrupt."""

import threading
from concurrent.futures import Future

import pytest

from robandit.kernel.uninterrupted import uninterrupted


def test_the_result_or_the_error_comes_from_another_thread():
    assert uninterrupted(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 / 0)


def test_without_threads_the_work_is_done_here(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert uninterrupted(threading.get_ident) == threading.get_ident()


def test_work_that_was_left_goes_on_in_a_thread_that_the_end_of_the_program_waits_for(monkeypatch):
    begun, go, threads = threading.Event(), threading.Event(), []

    def interrupted(*_):
        raise KeyboardInterrupt

    def work():
        threads.append(threading.current_thread())
        begun.set()
        go.wait(60)

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    monkeypatch.undo()
    assert begun.wait(60)
    go.set()
    [thread] = threads
    assert not thread.daemon
    thread.join(60)
    assert not thread.is_alive()
