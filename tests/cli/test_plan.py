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

    def given(todo, *, known, track, **_):
        cells = list(track([c for c in todo.cells if c not in known]))
        return {cell: 3000.0 if cell.label == "UCB1" else 1000.0 for cell in cells}

    monkeypatch.setattr(module, "measure", given)


@pytest.mark.usefixtures("speeds")
def test_it_prints_what_an_experiment_costs(spec, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    before = sorted(spec.parent.iterdir())
    plan(spec, workers=[4, 1])
    output = capsys.readouterr().out
    assert sorted(spec.parent.iterdir()) == before
    assert max(len(line) for line in output.splitlines() if str(spec.parent) not in line) <= 80
    # 12 replications of 1e6 pulls are 3 units of 5 replications at most; those of 1,000 pulls are one.
    flat = " ".join(output.split())
    assert "elapsed time, on idle workers" in flat
    assert "on a busy machine it can be three times as long" in flat
    assert "8 units of work left, 0 done; 24,024,000 pulls" in output
    assert "longest unit: 15 s, UCB1 on pareto (T = 1,000,000)" in output
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert "UCB1 3,000 36 s 75 %" in rows
    assert "Uniform 1,000 12 s 25 %" in rows
    # Four workers: the short units are over at once, then 15, 15 and 6 s of UCB1 and 5 s of Uniform; its 5 and 2 s end before 15.
    assert "1 48 s 1 x 100 % –" in rows
    assert any(re.fullmatch("4 15 s 3.2. x 80 % longest unit", row) for row in rows)


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
    rows = [line.split()[:1] for line in capsys.readouterr().out.splitlines() if " x " in line]
    assert [row for row in rows if row in (["2"], ["3"])] == [["2"], ["3"]]


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
    assert "speeds of 3 of 4 cells are from the run folder, the others measured now" in output
    plan(spec, out=spec.parent / "elsewhere")
    assert "4 units of work left, 0 done" in capsys.readouterr().out
    spec.write_text(small.replace("seed = 3", "seed = 4"))
    with pytest.raises(InvalidInput, match=r"two was made with another seed \(3 there, 4 here\)"):
        plan(spec)


@pytest.mark.usefixtures("speeds")
def test_a_better_cut_is_named(spec, capsys):
    spec.write_text(SPEC.replace("replications = 12", "replications = 2000").replace("[1_000, 1_000_000]", "[1_000]"))
    plan(spec, workers=[1000])
    assert re.search(r"With units of [\d,]+ pulls, 1,000 workers would take", capsys.readouterr().out) is None  # 16 s
    spec.write_text(SPEC.replace("replications = 12", "replications = 50_000").replace("[1_000, 1_000_000]", "[1_000]"))
    plan(spec, workers=[1000])
    output = capsys.readouterr().out
    match = re.search(r"With units of ([\d,]+) pulls, 1,000 workers would take", output)
    assert match is not None
    assert f"unit_pulls={match[1].replace(',', '')}" in output


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
