"""Runs: the same bytes on any number of threads, failures that do not affect other units, and progress reports."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import ClassVar

import pytest

import robandit as rb
from helpers.executor_engine import OnExecutor
from helpers.own_policies import Greedy
from helpers.small_plan import HORIZON, contents, everything, small_plan
from robandit.errors import EngineLost, FileError, InvalidInput
from robandit.experiments import runner
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import Compiling, Playing, run
from robandit.kernel.cache import ready


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Parts and tables of an undisturbed run on one thread."""
    folder = tmp_path_factory.mktemp("run")
    outcome = run(small_plan(), folder, threads=1)
    assert (outcome.done, outcome.before, outcome.failed) == (10, 0, ())
    return everything(folder)


def no_threads_left():
    return not [t for t in threading.enumerate() if t.name.startswith("robandit")]


class Wrong(Greedy):
    """A policy that chooses an arm that does not exist."""

    @staticmethod
    def select(p, s):
        return 99


class Unlucky(Greedy):
    """A policy that fails to start a given number of times."""

    left: ClassVar[list[int]] = []

    def init(self, arms, horizon):
        if Unlucky.left:
            Unlucky.left.pop()
            raise RuntimeError("no luck")
        return super().init(arms, horizon)


# --- the same bytes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bytes(expected, tmp_path, threads):
    run(small_plan(), tmp_path, threads=threads)
    assert everything(tmp_path) == expected
    assert os.listdir(tmp_path / "locks") == []
    assert no_threads_left()


def test_another_process_gives_the_same_bytes_and_its_death_ends_a_run(expected, tmp_path):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as engine:
        outcome = run(small_plan(), tmp_path / "whole", engine=OnExecutor(engine))
        os.kill(next(iter(engine._processes)), getattr(signal, "SIGKILL", signal.SIGTERM))
        with pytest.raises(
            EngineLost, match=r"executor .*\. Finished units are kept in .*To continue, repeat the call"
        ):
            run(small_plan(), tmp_path / "lost", engine=OnExecutor(engine))
    assert outcome.done == 10
    assert everything(tmp_path / "whole") == expected
    assert os.listdir(tmp_path / "lost" / "locks") == os.listdir(tmp_path / "lost" / "failures") == []


def test_steps_give_the_same_bytes_as_one_run(expected, tmp_path):
    assert run(small_plan(replications=4), tmp_path).done == 2
    part = run(small_plan(replications=14), tmp_path)
    assert (part.done, part.before) == (6, 2)
    whole = run(small_plan(), tmp_path)
    assert (whole.done, whole.before) == (4, 6)
    again = run(small_plan(), tmp_path)
    assert (again.done, again.before, again.seconds >= 0.0) == (0, 10, True)
    odd = {f"{unit.key}.parquet" for unit in small_plan(replications=14).units if unit.count == 2}
    assert {name: content for name, content in everything(tmp_path).items() if name not in odd} == expected


def test_a_unit_that_two_cells_share_is_played_once(tmp_path):
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)
    informed = rb.RobustMOSS().informed_by(problem)
    outcome = run(small_plan(policies=[rb.RobustMOSS(), informed], problem=problem), tmp_path)
    assert outcome.done == 5
    results = outcome.store.results()
    assert results.complete
    assert (results.measured[0].regret == results.measured[1].regret).all()


# --- failures -------------------------------------------------------------------------------------------------------


def test_a_policy_that_fails_does_not_stop_the_rest(expected, tmp_path):
    plan = small_plan(policies=[rb.UCB1(), Wrong(), rb.Uniform()])
    reports = []
    outcome = run(plan, tmp_path, tries=2, progress=reports.append)
    assert (outcome.done, outcome.before, len(outcome.failed)) == (10, 0, 5)
    assert reports[-1].failures == 5
    assert reports[-1].units_done == 10
    failure = outcome.failed[0]
    assert failure.tries == 2
    assert failure.unit.cell.label == "Wrong"
    assert failure.traceback.startswith("Traceback")
    assert "chose arm 99, but arms are 0 to 1" in failure.traceback
    results = outcome.store.results()
    assert [m.cell.label for m in results.measured] == ["UCB1", "Uniform"]
    assert results.failures == outcome.failed
    parts = {name for name in expected if "regret" not in name and "pulls" not in name}
    assert set(contents(tmp_path, "parts")) == parts
    assert os.listdir(tmp_path / "locks") == []


@pytest.mark.parametrize(("bad", "failed"), [(1 + 2, 0), (1 + 3, 1)])
def test_a_unit_is_tried_again_and_by_the_next_run_once_more(tmp_path, bad, failed):
    plan = small_plan(policies=[Unlucky()], replications=4)
    Unlucky.left[:] = [0] * bad  # compiling takes the first
    outcome = run(plan, tmp_path, tries=3, threads=1)
    assert len(outcome.failed) == failed
    assert Unlucky.left == []
    again = run(plan, tmp_path)
    assert (again.done, again.failed) == (failed, ())
    assert os.listdir(tmp_path / "failures") == []
    assert again.store.results().complete


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_full_disk_ends_the_run_and_is_no_failure_of_units(tmp_path, monkeypatch, elsewhere):
    def full(self, unit, content, seconds):
        raise FileError("no space left")

    monkeypatch.setattr(Ledger, "receive", full)
    with ThreadPoolExecutor(1) as pool, pytest.raises(FileError, match="no space left"):
        run(small_plan(), tmp_path, engine=OnExecutor(pool) if elsewhere else None)
    assert os.listdir(tmp_path / "parts") == os.listdir(tmp_path / "failures") == os.listdir(tmp_path / "locks") == []
    assert no_threads_left()


def test_damaged_parts_are_set_aside_and_played_again(expected, tmp_path, capfd):
    store = run(small_plan(), tmp_path).store
    first, second = (store.ledger.part(unit) for unit in store.plan.units[2:4])
    first.write_bytes(first.read_bytes()[:100])
    second.write_bytes(b"")
    outcome = run(small_plan(), tmp_path)
    assert (outcome.done, outcome.before) == (2, 8)
    assert {path.name for path in (tmp_path / "damaged").iterdir()} == {first.name, second.name}
    assert contents(tmp_path, "damaged")[second.name] == b""
    log = capfd.readouterr().err
    assert f"{first} is damaged" in log
    assert f"{second} is damaged" in log
    assert everything(tmp_path) == expected


# --- others on the same folder --------------------------------------------------------------------------------------


def test_a_second_run_is_refused_and_the_first_one_goes_on(expected, tmp_path):
    refused = []

    def look(state):
        if not refused and isinstance(state, Playing):
            with pytest.raises(FileError, match="another run is at work") as caught:
                run(small_plan(), tmp_path)
            refused.append(caught.value)

    assert run(small_plan(), tmp_path, progress=look).done == 10
    assert refused
    assert everything(tmp_path) == expected
    assert os.listdir(tmp_path / "locks") == []


# --- interruption, reports, bad options --------------------------------------------------------------------------------


def test_an_interruption_stops_units_that_would_take_minutes(tmp_path):
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)
    played = [Played("short", problem, HORIZON), Played("long", problem, 10**10)]
    plan = planned(played, [rb.Uniform()], replications=2, seed=1)

    def interrupt(state):
        if isinstance(state, Playing) and state.units_done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path, threads=3, progress=interrupt)  # the two long ones may start first
    assert no_threads_left()
    assert len(os.listdir(tmp_path / "parts")) == len(os.listdir(tmp_path / "times")) == 1
    assert os.listdir(tmp_path / "locks") == os.listdir(tmp_path / "failures") == []


def test_reports_tell_how_far_it_is(tmp_path):
    run(small_plan(replications=4), tmp_path)
    reports = []
    run(small_plan(), tmp_path, progress=reports.append)
    compiling = [report for report in reports if isinstance(report, Compiling)]
    assert reports[: len(compiling)] == compiling
    assert (compiling[0].number, compiling[0].total, compiling[0].label) == (1, 2, "UCB1")
    assert (compiling[-1].number, compiling[-1].total, compiling[-1].label) == (2, 2, "Uniform")
    start, end = compiling[0].playing, reports[-1]
    assert (start.units, start.units_done, start.pulls, start.pulls_done) == (10, 2, 40 * HORIZON, 8 * HORIZON)
    assert start.seconds_left is None
    assert (end.units_done, end.pulls_done, end.failures) == (10, 40 * HORIZON, 0)
    assert end.rate > 0.0
    assert end.seconds_left == 0.0
    played = [getattr(report, "playing", report).pulls_done for report in reports]
    assert played == sorted(played)


def compile_cell(cell):
    for kernel in cell.kernels():
        ready(kernel, cell.label)


# --- compilation ----------------------------------------------------------------------------------------------------


class Broken(Greedy):
    """A policy that cannot be compiled."""

    @staticmethod
    def select(p, s):
        return s.missing[0]


@pytest.mark.parametrize("engine", [False, True])
@pytest.mark.parametrize("order", [["UCB1", "Uniform"], ["Uniform", "UCB1"]])
def test_a_policy_plays_while_another_compiles_and_the_order_does_not_change_the_bytes(
    expected, tmp_path, monkeypatch, order, engine
):
    waiting = threading.Event()

    def compile_in_order(cells, done, processes, stop):
        compile_cell(cells[order[0]])
        done(order[0])
        assert waiting.wait(60), "the first policy is not played while the second compiles"
        compile_cell(cells[order[1]])
        done(order[1])

    def look(state):
        if isinstance(state, Compiling) and state.number == 2 and state.playing.units_done == 5:
            assert state.label == order[1]
            waiting.set()

    monkeypatch.setattr(runner, "_compile", compile_in_order)
    with ThreadPoolExecutor(1) as pool:
        outcome = run(small_plan(), tmp_path, progress=look, engine=OnExecutor(pool) if engine else None)
    assert outcome.done == 10
    assert everything(tmp_path) == expected


def test_other_processes_compile_what_the_units_need():
    for cell in small_plan().cells:
        compile_cell(cell)
        assert [kernel.is_stored() for kernel in cell.kernels()] == [True]


def test_the_first_problem_of_a_plan_is_complete_first(tmp_path, monkeypatch):
    problems = [rb.problems.gaussian(means=[1.0, -float(i)]) for i in range(3)]
    played = [Played(str(i), problem, HORIZON) for i, problem in enumerate(problems)]
    plan = replace(planned(played, [rb.UCB1(), rb.Uniform()], replications=20, seed=1), unit_pulls=HORIZON)
    monkeypatch.setattr(runner, "_compile", lambda cells, done, *_: [done(label) for label in reversed(cells)])
    stored = []
    receive = Ledger.receive
    monkeypatch.setattr(
        Ledger, "receive", lambda self, unit, *given: (stored.append(unit), receive(self, unit, *given))
    )
    run(plan, tmp_path, threads=1)
    assert {unit.cell.played.name for unit in stored[:30]} == {"0"}


def test_a_policy_that_cannot_be_compiled_is_recorded_and_the_rest_plays(expected, tmp_path):
    plan = small_plan(policies=[Broken(), rb.UCB1(), rb.Uniform()])
    outcome = run(plan, tmp_path, tries=1)
    assert (outcome.done, len(outcome.failed)) == (10, 5)
    assert all("Broken cannot be compiled" in failure.traceback for failure in outcome.failed)
    parts = {name for name in expected if "regret" not in name and "pulls" not in name}
    assert set(contents(tmp_path, "parts")) == parts


def test_a_compiler_that_fails_as_a_whole_leaves_the_work_to_the_units(expected, tmp_path, monkeypatch, capfd):
    def fail(cells, done, processes, stop):
        done("UCB1")
        raise OSError("no processes")

    monkeypatch.setattr(runner, "_compile", fail)
    assert run(small_plan(), tmp_path).done == 10
    assert "cannot be compiled in advance (no processes)" in capfd.readouterr().err
    assert everything(tmp_path) == expected


def test_an_interruption_stops_the_compiler_and_the_same_call_continues(expected, tmp_path, monkeypatch):
    stopped = threading.Event()
    monkeypatch.setattr(runner, "TICK", 0.01)

    def compile_forever(cells, done, processes, stop):
        done("UCB1")
        if stop.wait(60):
            stopped.set()

    def interrupt(state):
        if state.playing.units_done == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_compile", compile_forever)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run(small_plan(), tmp_path, progress=interrupt)
    assert stopped.is_set()
    assert time.monotonic() - start < 30.0, "the compiler never ends by itself"
    assert no_threads_left()
    assert os.listdir(tmp_path / "locks") == os.listdir(tmp_path / "failures") == []
    outcome = run(small_plan(), tmp_path)
    assert (outcome.done, outcome.before) == (5, 5)
    assert everything(tmp_path) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads = 0 must be an integer >= 1"),
        ({"threads": 1.5}, r"threads = 1\.5"),
        ({"tries": 0}, "tries = 0 must be"),
        ({"tries": True}, "tries = True"),
        ({"threads": 2, "engine": ThreadPoolExecutor(1)}, "give only one of them"),
        ({"engine": "dask"}, "engine = 'dask' must be an engine from robandit.experiments.dask_engine"),
        ({"engine": ThreadPoolExecutor(1)}, r"engine = <.* must be an engine from .*; on one machine, give threads="),
    ],
)
def test_bad_options_are_rejected_before_anything_is_made(tmp_path, options, message):
    with pytest.raises(InvalidInput, match=message):
        run(small_plan(), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_an_interruption_leaves_the_engine_to_its_owner(tmp_path):
    def interrupt(state):
        if isinstance(state, Playing) and state.units_done == 2:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as engine:
        with pytest.raises(KeyboardInterrupt):
            run(small_plan(), tmp_path, engine=OnExecutor(engine), progress=interrupt)
        assert engine.submit(len, "abc").result(60) == 3
    done = len(os.listdir(tmp_path / "parts"))
    assert 2 <= done < 10, "what waited was taken back"
    outcome = run(small_plan(), tmp_path)
    assert (outcome.done, outcome.before) == (10 - done, done)
