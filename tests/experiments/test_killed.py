"""Real processes that are killed at random moments, interrupted, or share one folder."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.small_plan import everything, nothing_half_written, small_plan
from robandit.experiments.runner import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked from a warm process")

# Each line of input is a folder, in which a new process plays. If the line starts with a space, the process first waits
# for the file FOLDER.go while the next line is read. Modules are loaded and compiled once, before the forks. Polars is loaded
# after a fork, because its threads would not survive it.
RUNS = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
from helpers.small_plan import small_plan
from robandit.experiments.runner import run
from robandit.kernel.cache import ready
plan = small_plan(replications={replications})
for cell in plan.cells:
    [ready(kernel, cell.label) for kernel in cell.kernels()]
plan.units[0].run()
parent = os.getpid()
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            import polars
            os.write(1, b"%d\\n" % os.getpid())
            while line.startswith(" ") and not os.path.exists(line.strip() + ".go") and os.getppid() == parent:
                time.sleep(0.001)
            outcome = run(plan, line.strip(), threads=2)
            os.write(1, b"%d %d %d\\n" % (outcome.done, outcome.before, len(outcome.failed)))
            code = 0
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    if not line.startswith(" "):
        print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
REPLICATIONS = 160  # 80 units


class Runs:
    """Start each run in its own process."""

    def __init__(self):
        text = RUNS.format(tests=str(Path(__file__).parents[1]), replications=REPLICATIONS)
        self.process = subprocess.Popen(
            [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, line):
        """Return its process id."""
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return int(self.line())

    def line(self):
        return self.process.stdout.readline().strip()


@pytest.fixture(scope="module")
def runs():
    each = Runs()
    yield each
    each.process.stdin.close()
    assert each.process.wait(60) == 0
    each.process.stdout.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Parts and tables of an undisturbed run on one thread."""
    folder = tmp_path_factory.mktemp("run")
    outcome = run(small_plan(replications=REPLICATIONS), folder, threads=1)
    assert outcome.done == 80
    return everything(folder)


def dates(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "parts").glob("*.parquet")}


def wait_for(folder, parts):
    deadline = time.monotonic() + 60.0
    while len(dates(folder)) < parts:
        assert time.monotonic() < deadline, "nothing is played"
        time.sleep(0.001)


def test_killed_at_random_moments_nothing_is_lost_repeated_or_changed(runs, expected, tmp_path):
    folder = tmp_path / "run"
    rng = random.Random(os.urandom(8))
    done, killed, stages = {}, 0, []
    for kill in range(10):
        pid = runs.start(folder)
        # The first kills come immediately, while the folder is made. The others come after a few new parts, at any point of a unit.
        new = 0 if kill < 3 else rng.randint(0 if kill < 9 else 1, 5)
        wait_for(folder, len(done) + new)
        time.sleep(rng.uniform(0.0, 0.02))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        line = runs.line()
        while not line.startswith("ended"):  # it was done before the kill
            line = runs.line()
        killed += line == f"ended {-signal.SIGKILL}"
        now = dates(folder)
        assert {name: now.get(name) for name in done} == done, "a unit was lost, or played twice"
        done = now
        stages.append(len(done))
    assert killed >= 5, stages
    assert 0 < stages[-1] < 80, stages
    runs.start(folder)
    numbers = [int(word) for word in runs.line().split()]
    assert numbers == [80 - len(done), len(done), 0]
    assert runs.line() == "ended 0"
    assert {name: date for name, date in dates(folder).items() if name in done} == done
    assert everything(folder) == expected
    assert not (folder / "damaged").exists()
    assert nothing_half_written(folder)


def test_ctrl_c_leaves_a_folder_to_go_on_in(runs, expected, tmp_path):
    pid = runs.start(tmp_path)
    wait_for(tmp_path, 3)
    os.kill(pid, signal.SIGINT)
    assert runs.line() == "ended 130"
    done = dates(tmp_path)
    assert 3 <= len(done) < 80
    assert nothing_half_written(tmp_path)
    assert os.listdir(tmp_path / "failures") == []
    outcome = run(small_plan(replications=REPLICATIONS), tmp_path)
    assert (outcome.done, outcome.before) == (80 - len(done), len(done))
    assert everything(tmp_path) == expected
