"""``robandit plan``: what it prints, and that it agrees with what a run plays."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from robandit.cli import main
from robandit.cli.plan import plan
from robandit.errors import FileError, InvalidInput
from robandit.experiments import cost as module
from robandit.experiments.runner import run
from robandit.experiments.spec import read_spec

SPEC = """\
name = "two"
seed = 3
replications = 12
horizons = [1_000, 1_000_000]
problems = [{ problem = "negated_pareto(means=[-1.0, -1.5], tail=1.8)", name = "pareto" }]
policies = ["UCB1", "Uniform"]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "two.toml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """UCB1 takes 3,000 ns for a pull, Uniform 1,000."""

    monkeypatch.setattr(module, "measured", lambda cell, seed, seconds: 3000.0 if cell.label == "UCB1" else 1000.0)


@pytest.mark.usefixtures("speeds")
def test_it_prints_what_an_experiment_costs(spec, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    before = sorted(spec.parent.iterdir())
    plan(spec, workers=[4, 1])
    output = capsys.readouterr().out
    assert sorted(spec.parent.iterdir()) == before
    assert max(len(line) for line in output.splitlines() if str(spec.parent) not in line) <= 80
    # 12 replications of 1e6 pulls are 3 units of 5 replications at most; those of 1,000 pulls are one.
    assert "8 units of work left, 0 done; 24,024,000 pulls; processor time: 48 s" in output
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert "UCB1 3,000 36 s 75 %" in rows
    assert "Uniform 1,000 12 s 25 %" in rows
    assert "time on 1 worker: at least 48 s" in rows
    assert "time on 4 workers: at least 15 s" in rows  # the longest unit


def test_half_a_worker_is_wrong_usage(spec, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["robandit", "plan", str(spec), "--workers", "2", "--workers", "1.5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert "'1.5' is not an integer" in shown.out + shown.err


@pytest.mark.usefixtures("speeds")
def test_workers_are_read_as_they_are_typed(spec, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["robandit", "plan", str(spec), "--workers", "2", "--workers", "3"])
    with suppress(SystemExit):
        main()
    output = capsys.readouterr().out
    assert re.findall(r"time on (\d+) workers", output) == ["2", "3"]


@pytest.mark.usefixtures("speeds")
def test_what_a_run_folder_has_is_not_counted(spec, capsys):
    small = spec.read_text().replace("[1_000, 1_000_000]", "[100, 1_000]")
    spec.write_text(small)
    todo = read_spec(spec).plan()
    store = run(todo, spec.with_suffix(""), threads=1).store
    plan(spec)
    output = capsys.readouterr().out
    assert output.splitlines()[1:] == ["0 units of work left, 4 done"]
    assert "ns/pull" not in output
    store.ledger.part(todo.units[-1]).unlink()
    plan(spec)
    output = capsys.readouterr().out
    assert "1 unit of work left, 3 done; 12,000 pulls" in output
    plan(spec, out=spec.parent / "elsewhere")
    assert "4 units of work left, 0 done" in capsys.readouterr().out
    spec.write_text(small.replace("seed = 3", "seed = 4"))
    with pytest.raises(InvalidInput, match=r"two was made with another seed \(3 there, 4 here\)"):
        plan(spec)


def test_wrong_values_are_rejected(spec, tmp_path):
    with pytest.raises(InvalidInput, match="--workers = 0 must be an integer >= 1"):
        plan(spec, workers=[4, 0])
    (tmp_path / "plain").write_text(SPEC)
    with pytest.raises(InvalidInput, match="plain has no ending, so"):
        plan(tmp_path / "plain")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):  # which has no ending either
        plan(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        plan(tmp_path / "none.toml")
