"""`robandit run` and its siblings in processes of their own: a spec, a run that is stopped and goes on, results, a report."""

import os
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from helpers.typed import typed
from robandit.experiments.plan import Unit

pytestmark = pytest.mark.xdist_group("experiments")

SPEC = """
name = "small"
seed = 3
replications = 6
horizons = [500, 1_000]
policies = ["UCB1", "EpsilonGreedy", "AdaRUCB(bonus='tight')"]
problems = [
    "gaussian(means=[0.0, -0.5])",
    {problem = "negated_pareto(means=[-1.0, -2.0])", name = "costs", grid = {tail = [1.5, 2.5]}},
]
"""


def robandit(*words, cwd, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "robandit", *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiment")
    (folder / "small.toml").write_text(SPEC)
    return folder, robandit("run", "small.toml", cwd=folder)


def test_a_run_leaves_results_and_a_report(ran):
    folder, done = ran
    assert "report: small/report.html" in done.stdout
    assert "results: small/results" in done.stdout
    assert "units: 18 played" in done.stdout
    regret = pl.read_parquet(folder / "small" / "results" / "regret.parquet")
    assert regret.columns == ["problem", "horizon", "policy", "replication", "t", "regret"]
    assert regret["policy"].n_unique() == 3
    assert regret["problem"].n_unique() == 3
    assert (folder / "small" / "spec.toml").read_text() == SPEC
    page = (folder / "small" / "report.html").read_text()
    assert "robandit run small.toml" in page
    assert "has the lowest mean" in " ".join(done.stdout.split())


def test_a_second_run_repeats_nothing(ran):
    folder, _ = ran
    parts = sorted((folder / "small" / "parts").iterdir())
    before = [(p.name, p.stat().st_mtime_ns) for p in parts]
    told, _ = typed("run", "small.toml", cwd=folder)
    assert "units: 0 played" in told
    assert "18 done before" in told
    assert [(p.name, p.stat().st_mtime_ns) for p in sorted((folder / "small" / "parts").iterdir())] == before


def test_another_spec_is_refused_for_the_same_folder(ran, tmp_path):
    folder, _ = ran
    (tmp_path / "other.toml").write_text(SPEC.replace("seed = 3", "seed = 4"))
    _, said = typed("run", "other.toml", "--out", str(folder / "small"), cwd=tmp_path, code=1)
    assert "seed" in said
    assert "name another folder with --out FOLDER" in said


def test_results_are_shown_and_exported(ran):
    folder, _ = ran
    shown, _ = typed("results", "show", "small", cwd=folder)
    for word in ("UCB1", "epsilon-greedy", "costs"):
        assert word in shown
    typed("results", "export", "small", "--out", "small.csv", cwd=folder)
    assert len(pl.read_csv(folder / "small.csv")) == 18


def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path):
    (tmp_path / "long.toml").write_text(
        'replications = 20\nhorizons = [2_500_000]\npolicies = ["UCB1"]\nproblems = ["gaussian(means=[0.0, -0.5])"]\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "robandit", "run", "long.toml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    parts = tmp_path / "long" / "parts"
    deadline = time.monotonic() + 120.0
    while not (parts.is_dir() and list(parts.glob("*.parquet"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished units are kept in long. To continue: robandit run long.toml" in said
    kept = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.parquet")}
    assert 0 < len(kept) < 10
    done = robandit("run", "long.toml", cwd=tmp_path)
    assert f"{len(kept)} done before" in done.stdout
    assert {name: (parts / name).stat().st_mtime_ns for name in kept} == kept  # nothing was played again
    assert len(list(parts.glob("*.parquet"))) == 10


def test_from_nothing_to_a_report(tmp_path):
    """What `spec init` writes is valid, and says so; it is not played here, for that takes its time."""
    typed("spec", "init", "mine.toml", cwd=tmp_path)
    checked, _ = typed("spec", "check", "mine.toml", cwd=tmp_path)
    assert "units" in checked
    assert "exists and is not overwritten" in typed("spec", "init", "mine.toml", cwd=tmp_path, code=1)[1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("seed = 3", "sed = 3"), r"bad\.toml: .*seed"),
        (("replications = 6", "replications = 0"), r"bad\.toml: replications = 0 must be"),
        (('"UCB1"', '"UCB7"'), r"bad\.toml: .*UCB1"),
        (("tail = [1.5, 2.5]", "tale = [1.5]"), r"bad\.toml: .*tail"),
    ],
)
def test_wrong_specs_are_refused_with_file_and_line(change, says, tmp_path):
    (tmp_path / "bad.toml").write_text(SPEC.replace(*change))
    for command in (["run"], ["spec", "check"]):
        assert re.search(says, typed(*command, "bad.toml", cwd=tmp_path, code=1)[1])
    assert os.listdir(tmp_path) == ["bad.toml"]


def test_compare_takes_problems_and_parameters(tmp_path):
    problem = "student_t(means=[0.0, -1.0], dof=1.5)"
    words = ["--problem", problem, "--policy", "UCB1(scale=2.0)", "--policy", "EpsilonGreedy", "--quick"]
    told, _ = typed("compare", *words, "--horizon", "1000", "--replications", "4", cwd=tmp_path)
    assert "UCB1(scale=2.0)" in told
    assert "report: robandit-report.html" in told
    assert f"--problem '{problem}'" in (tmp_path / "robandit-report.html").read_text().replace("&#x27;", "'")


def test_doctor_says_what_is_here(tmp_path):
    said = typed("doctor", cwd=tmp_path)[0]
    for word in ("robandit", "python", "numba", "cores", "cache"):
        assert word in said


COMPARE = """
import os
from robandit.cli import main
from robandit.experiments.plan import Unit

def run(*args, **more):
    os.write(1, b"it plays\\n")  # several threads do
    return right(*args, **more)

right, Unit.run = Unit.run, run
main()
"""


def test_ctrl_c_in_compare_says_that_nothing_was_written(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", COMPARE, "compare", "--policy", "UCB1", "--horizon", "100000000", "--threads", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "it plays\n"
    time.sleep(0.5)  # of minutes
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; nothing was written" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words", [["compare", "--policy", "UCB1", "--horizon", "10", "--replications", "2"], ["run", "s.toml"]]
)
def test_failed_units_make_exit_code_3(words, tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(
        'replications = 2\nhorizons = [10]\npolicies = ["UCB1", "Uniform"]\nproblems = ["gaussian(means=[0.0, -1.0])"]\n'
    )
    right = Unit.run

    def run(self, *args, **more):
        if self.cell.label == "UCB1":
            raise RuntimeError("out of luck")
        return right(self, *args, **more)

    monkeypatch.setattr(Unit, "run", run)
    assert "RuntimeError: out of luck" in typed(*words, cwd=tmp_path, code=3)[0]


def test_a_terminal_that_cannot_write_a_dash_loses_nothing(tmp_path):
    words = [
        "compare",
        "--problem",
        "gaussian(means=[0.5, 0.5])",
        "--policy",
        "UCB1",
        "--horizon",
        "50",
        "--replications",
        "2",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "robandit", *words],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "robandit-report.html").exists()
