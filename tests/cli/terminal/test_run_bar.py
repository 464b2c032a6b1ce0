"""Progress and tables of a run: lines and whole tables where there is no terminal; a bar and a growing table on one."""

import io
import sys
import time
from dataclasses import replace

import pytest

from robandit.cli.terminal import progress, run_bar
from robandit.experiments.runner import Compiling, Playing

HALF = Playing(units=10, units_done=5, pulls=4_000_000, pulls_done=2_000_000, rate=20_000.0, failures=1)
WORDS = "5 of 10 units, 50 %, 0.0 M pulls/s, 1 failed, 1 min 40 s left"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end(capsys, clock):
    with run_bar.run_bar() as show:
        for second in range(26):
            clock[0] = float(second)
            show(Compiling(second + 1, 30, "HTINF", replace(HALF, rate=0.0) if second > 20 else None))
        clock[0] = 40.0
        show(HALF)
        show(HALF)
        done = Playing(units=10, units_done=9, pulls=4_000_000, pulls_done=3_600_000, rate=2e6, failures=1)
        show(done)
        show(done)
    assert capsys.readouterr().err.splitlines() == [
        "compiling 4 of 30",
        "compiling 15 of 30",
        "compiling 26 of 30, playing 5 of 10 units, 50 %, 1 failed",
        f"playing {WORDS}",
        "playing 9 of 10 units, 90 %, 2.0 M pulls/s, 1 failed",
    ]


@pytest.mark.parametrize("columns", [120, 60])
def test_a_terminal_shows_both_phases_in_one_line(monkeypatch, columns):
    terminal = on_a_terminal(monkeypatch, columns)
    with run_bar.run_bar() as show:
        show(Compiling(3, 22, "HTINF", replace(HALF, rate=0.0, failures=0)))
        time.sleep(0.3)  # the bar is drawn ten times a second
        show(HALF)
    assert "compiling 3 of 22, playing 5 of 10 units" in terminal.getvalue()
    assert f"playing {WORDS}"[: columns - 5] in terminal.getvalue()


# --- leaderboards ---------------------------------------------------------------------------------------------------


def on_a_terminal(monkeypatch, columns, lines=50):
    """Make both outputs one terminal, and return it."""
    terminal = Terminal()
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), "LINES": str(lines), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    return terminal


@pytest.mark.parametrize(
    ("workers", "retries", "words"),
    [
        (None, 0, ["1 failed"]),
        (0, 0, ["1 failed", "waiting for workers"]),
        (1, 1, ["1 worker", "1 retry", "1 failed"]),
        (12, 3, ["12 workers", "3 retries", "1 failed"]),
    ],
)
def test_of_an_engine_workers_and_retries_are_shown(workers, retries, words):
    parts = run_bar._playing(replace(HALF, workers=workers, retries=retries)).split(", ")
    assert parts[3:-1] == words


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (3599.0, "59 min 59 s"), (7260.0, "2 h 01 min")]
)
def test_times_are_read_at_a_glance(seconds, text):
    assert run_bar._time(seconds) == text
