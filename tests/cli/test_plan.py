"""``robandit plan``: what it prints, and that it agrees with what a run plays."""

import re
import sys
from pathlib import Path

import pytest

import robandit as rb
from robandit.cli.plan import plan
from robandit.errors import FileError, InvalidInput
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import run
from robandit.experiments.spec import read_spec

module = sys.modules["robandit.cli.plan"]  # `robandit.cli` may have the function by this name

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
    """UCB1 takes 3,000 ns for a pull, Uniform 1,000, on 4 cores."""

    monkeypatch.setattr(module, "seconds_per_pull", lambda cell, seed: 3e-6 if cell.label == "UCB1" else 1e-6)
    monkeypatch.setattr("robandit.kernel.cores.cores", lambda: 4)


@pytest.mark.usefixtures("speeds")
def test_it_prints_what_an_experiment_costs(spec, capsys):
    before = sorted(spec.parent.iterdir())
    plan(spec)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(spec.parent.iterdir()) == before
    # 12 replications of 1e6 pulls are 3 units of 5 replications at most; those of 1,000 pulls are one.
    assert lines[1:] == [
        "8 units of work left, 0 done; 24,024,000 pulls",
        "about 48 s of processor time, 12 s on 4 idle cores",
    ]


@pytest.mark.parametrize(("horizon", "games"), [(10**6, (20_000, 1)), (50, (50, 400))])
def test_a_short_game_is_measured(horizon, games, monkeypatch):
    def meter(policy, problem, length, times, seed, **options):
        assert policy.horizon == horizon  # prepared for the full horizon
        assert (length, times) == games
        return type("Result", (), {"seconds": [times * length * 1e-6]})

    monkeypatch.setattr(sys.modules["robandit.simulate.simulation"], "simulate", meter)
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)
    (cell,) = planned([Played("p", problem, horizon)], [rb.AdaTINF()], replications=2, seed=1).cells
    assert module.seconds_per_pull(cell, 1) == pytest.approx(1e-6)


def test_measuring_here(spec, capsys):
    spec.write_text(SPEC.replace("1_000_000", "20_000"))
    plan(spec)
    assert re.search(r"about \S+ s of processor time, \S+ s on \d+ idle core", capsys.readouterr().out)


@pytest.mark.usefixtures("speeds")
def test_what_a_run_folder_has_is_not_counted(spec, capsys):
    small = spec.read_text().replace("[1_000, 1_000_000]", "[100, 1_000]")
    spec.write_text(small)
    todo = read_spec(spec).plan()
    store = run(todo, spec.with_suffix(""), threads=1).store
    plan(spec)
    output = capsys.readouterr().out
    assert output.splitlines()[1:] == ["0 units of work left, 4 done"]
    store.ledger.part(todo.units[-1]).unlink()
    plan(spec)
    output = capsys.readouterr().out
    assert "1 unit of work left, 3 done; 12,000 pulls" in output
    plan(spec, out=spec.parent / "elsewhere")
    assert "4 units of work left, 0 done" in capsys.readouterr().out
    spec.write_text(small.replace("seed = 3", "seed = 4"))
    with pytest.raises(InvalidInput, match=r"two was made with another seed \(3 there, 4 here\)"):
        plan(spec)


def test_wrong_values_are_rejected(tmp_path):
    (tmp_path / "plain").write_text(SPEC)
    with pytest.raises(InvalidInput, match="plain has no ending, so"):
        plan(tmp_path / "plain")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):  # which has no ending either
        plan(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        plan(tmp_path / "none.toml")
