from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

import robandit as rb
from helpers import made_up
from helpers.made_up import problem
from helpers.typed import printed
from robandit.errors import FileError
from robandit.experiments.plan import Played, planned
from robandit.experiments.results import Results
from robandit.experiments.statistics import Findings
from robandit.report.figures import LINES, _names, write_figures


@pytest.fixture(scope="module")
def played() -> Results:
    plan = planned([Played("costs", made_up.PROBLEM, 300)], [rb.UCB1(), rb.Oracle()], replications=6, seed=4)
    return Results.of(plan, [(unit, unit.run(), 0.0) for unit in plan.units])


def words(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return ["".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_files_and_their_bytes(played: Results, tmp_path: Path) -> None:
    settings, pyplot = dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules
    paths = write_figures(Findings(played), tmp_path / "a")
    names = ["costs-curves.pdf", "costs-curves.svg", "costs-final.pdf", "costs-final.svg"]
    assert [path.name for path in paths] == names
    assert dict(matplotlib.rcParams) == settings
    assert ("matplotlib.pyplot" in sys.modules) == pyplot
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):  # of a user
        again = write_figures(Findings(played), tmp_path / "b")
    for path, other in zip(paths, again, strict=True):
        content = path.read_bytes()
        assert content == other.read_bytes()
        if path.suffix == ".pdf":
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            assert b"/FontFile2" in content  # a font that is embedded as it is
            assert b"/Type3" not in content
            assert b"CreationDate" not in content
    text = words(tmp_path / "a" / "costs-curves.svg")
    assert {"UCB1", "Oracle (median 0)", "pulls", "costs, T = 300"} <= set(text)
    text = words(tmp_path / "a" / "costs-final.svg")
    assert {"UCB1", "Oracle", "regret", "median", "mean", "arms at random"} <= set(text)


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--figures", "figures"],
        ["run", "none.toml", "--figures", "a"],
    ],
)
def test_without_matplotlib_a_command_stops_before_it_runs(words: list[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out, err = printed(*words, cwd=tmp_path, code=1)
    assert 'pip install "robandit[plot]"' in " ".join(err.split())
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_only_the_best_eight_are_drawn_and_the_title_says_so(tmp_path: Path) -> None:
    finals = {f"policy {i}": np.arange(1.0, 7.0) + i for i in range(LINES + 3)}
    write_figures(Findings(made_up.results({problem(): finals})), tmp_path)
    for kind in ("curves", "final"):
        text = words(tmp_path / f"p-{kind}.svg")
        assert f"p, T = 100, the {LINES} lowest means of {LINES + 3}" in text
        assert [word for word in text if word.startswith("policy")] == [f"policy {i}" for i in range(LINES)]


def test_odd_names_and_no_regret(tmp_path: Path) -> None:
    """A dollar sign begins a formula, and zero has no logarithm."""
    made = made_up.results({problem("a/b $x"): {"$c_1$": [0.0], "d & <e>": [0.0]}})
    paths = write_figures(Findings(made), tmp_path)
    assert paths[0].name == "a-b-x-curves.pdf"
    assert {"$c_1$", "d & <e>"} <= {word.removesuffix(" (median 0)") for word in words(paths[1])}


def test_a_long_title_is_folded(tmp_path: Path) -> None:
    name = "negated_pareto(means=[-1.0, -1.25, -1.5, -1.75, -2.0, -2.25], tail=1.5)"
    paths = write_figures(Findings(made_up.results({problem(name): {"a": [1.0]}})), tmp_path)
    assert f"{name}, T = 100" not in words(paths[1])
    assert name.split("],")[0] in " ".join(words(paths[1]))


def test_file_names_differ() -> None:
    problems = (problem("a b"), problem("a/b"), problem("A-B"), problem("p", 10), problem("p", 20), problem("..."))
    assert list(_names(problems)) == ["a-b", "a-b-2", "A-B-3", "p-10", "p-20", "problem"]


def test_the_folder_must_be_possible(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = made_up.results({problem(): {"a": [1.0]}})
    for folder in (tmp_path / "file", tmp_path / "no" / "such"):
        with pytest.raises(FileError, match="cannot be created"):
            write_figures(Findings(made), folder)
