"""Locks between threads and processes: one holder at a time, and none after its death."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from robandit import locks
from robandit.locks import locked


def test_a_lock_keeps_others_out_and_leaves_no_file(tmp_path):
    path = tmp_path / "locks" / "a.lock"
    with locked(path, wait=False) as mine, locked(path, wait=False) as second:
        assert (mine, second) == (True, False)
    assert not path.exists()
    with locked(path, wait=False) as mine:
        assert mine


def test_a_lock_on_a_file_that_was_removed_does_not_count(tmp_path, monkeypatch):
    path = tmp_path / "x.lock"
    take = locks._lock
    holder = []

    def slowly(handle, wait):
        if not holder:  # between opening and locking: its last holder removes it, and the next makes a new one
            path.unlink()
            holder.append(os.open(path, os.O_RDWR | os.O_CREAT))
            assert take(holder[0], False)
        return take(handle, wait)

    monkeypatch.setattr(locks, "_lock", slowly)
    with locked(path, wait=False) as mine:
        assert not mine
    os.close(holder[0])
    with locked(path, wait=False) as mine:
        assert mine


def test_who_waits_for_a_lock_gets_it(tmp_path):
    path = tmp_path / "x.lock"
    order = []

    def enter():
        with locked(path, wait=True) as mine:
            order.append(mine)

    with locked(path, wait=True):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join(60)
    assert order == ["first", True]


FORKS = """
import os, signal, sys
from pathlib import Path
from robandit.locks import locked
ready, tell = os.pipe()
with locked(Path(sys.argv[1]), wait=False):
    if os.fork() != 0:
        os.read(ready, 1)
        os.kill(os.getpid(), signal.SIGKILL)
os.write(tell, b"x")
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_lock_ends_with_its_holder_though_what_it_forked_lives_on(tmp_path):
    path = tmp_path / "x.lock"
    with subprocess.Popen([sys.executable, "-c", FORKS, path], stdin=subprocess.PIPE) as holder:
        assert holder.wait(60) == -signal.SIGKILL
        assert path.exists(), "the lock is not the other's to end"
        with locked(path, wait=False) as mine:
            assert mine
    assert not path.exists()
