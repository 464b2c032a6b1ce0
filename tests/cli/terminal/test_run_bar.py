"""Progress and tables of a run: lines and whole tables where there is no terminal; a bar and a growing table on one."""

import io
import re
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

import robandit as rb
from robandit.cli.terminal import progress, run_bar
from robandit.cli.terminal.leaderboard import leaderboards, print_boards
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import Compiling, Playing, run
from robandit.experiments.statistics import Findings

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
    with run_bar.runbar() as bar:
        for second in range(26):
            clock[0] = float(second)
            bar.progress(Compiling(second + 1, 30, "HTINF", replace(HALF, rate=0.0) if second > 20 else None))
        clock[0] = 40.0
        bar.progress(HALF)
        bar.progress(HALF)
        done = Playing(units=10, units_done=9, pulls=4_000_000, pulls_done=3_600_000, rate=2e6, failures=1)
        bar.progress(done)
        bar.progress(done)
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
    with run_bar.runbar() as bar:
        bar.progress(Compiling(3, 22, "HTINF", replace(HALF, rate=0.0, failures=0)))
        time.sleep(0.3)  # the bar is drawn ten times a second
        bar.progress(HALF)
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


def two_problems():
    laws = [rb.problems.gaussian(means=[1.0, worst]) for worst in (0.0, -1.0)]
    problems = [Played(name, problem, 100) for name, problem in zip(("first", "second"), laws, strict=True)]
    return planned(problems, [rb.UCB1(), rb.Uniform()], replications=12, seed=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A finished run."""
    return run(two_problems(), tmp_path_factory.mktemp("run")).store


def final_tables(store):
    """Return what one call prints after the run."""
    with io.StringIO() as text:
        Console(file=text, width=80).print(*leaderboards(Findings(store.results())))
        return text.getvalue()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 2, 0], [2, 3, 0, 1]])
def test_a_pipe_gets_whole_tables_in_the_order_of_the_plan(store, capsys, monkeypatch, order):
    monkeypatch.setenv("COLUMNS", "80")
    cells = store.plan.cells
    assert [cell.played.name for cell in cells] == ["first", "first", "second", "second"]
    printed = ""
    done = set()
    with run_bar.runbar() as bar:
        for i in order:
            bar.finished(store, cells[i])
            done.add(i)
            printed += capsys.readouterr().out
            complete = 2 if len(done) == 4 else 1 if {0, 1} <= done else 0
            assert bar.printed == printed.count("regret after") == complete
    print_boards(leaderboards(Findings(store.results()))[bar.printed :])
    assert printed + capsys.readouterr().out == final_tables(store)
    assert bar.printed == 2


def test_a_problem_without_results_has_no_table(store, capsys, monkeypatch):
    with run_bar.runbar() as bar:
        for cell in store.plan.cells:
            with monkeypatch.context() as patch:
                if cell.played.name == "first":  # all its units failed
                    patch.setattr(type(store), "measured", lambda self, cell: None)
                bar.finished(store, cell)
    assert bar.printed == 1
    assert capsys.readouterr().out.startswith("second: regret")


def test_a_terminal_shows_each_whole_table_once(store, monkeypatch):
    terminal = on_a_terminal(monkeypatch, 80)
    with run_bar.runbar() as bar:
        bar.finished(store, store.plan.cells[1])
        assert bar.printed == 0
        for cell in (store.plan.cells[0], *store.plan.cells[2:]):
            bar.finished(store, cell)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    first, second, _ = re.split("(?=second: |mean rank over)", final_tables(store))
    assert text.count(first) == text.count(second) == 1


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
    ("held", "words"), [(1, "1 unit is held by another run"), (2, "2 units are held by another run")]
)
def test_it_says_that_it_waits_for_another_run(held, words):
    assert words in run_bar._playing(replace(HALF, held=held)).split(", ")
    assert "held" not in run_bar._playing(HALF)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (3599.0, "59 min 59 s"), (7260.0, "2 h 01 min")]
)
def test_times_are_read_at_a_glance(seconds, text):
    assert run_bar._time(seconds) == text
