from __future__ import annotations

import io
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import robandit as rb
from helpers import made_up
from helpers.made_up import problem
from robandit.cli.terminal.leaderboard import leaderboard, leaderboards, ranks, remarks
from robandit.cli.terminal.tables import Board, folded
from robandit.experiments.compare_plan import EVERY, compared
from robandit.experiments.plan import LeftOut, Plan, Unit
from robandit.experiments.replay_plan import replayed
from robandit.experiments.results import Failure, Results
from robandit.experiments.statistics import Findings
from robandit.recorded import open_records

P, Q = problem(), problem("q")
POLICIES = {"AdaR-UCB": rb.AdaRUCB(), "UCB1": rb.UCB1(), "Robust MOSS": rb.RobustMOSS().informed_by(made_up.PROBLEM)}


def printed(board: object, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(board)
    return out.getvalue()


def board_of(results: Results) -> Board:
    """The leaderboard of the first problem."""
    return leaderboard(Findings(results).standings[0])


@pytest.fixture(scope="module")
def results() -> Results:
    finals = {"AdaR-UCB": [12_345.0 + j for j in range(8)], "UCB1": [20_000.0] * 8, "Robust MOSS": [1.25, 3.5] * 4}
    return made_up.results({P: finals, Q: finals}, policies=POLICIES, seconds=8e-5)


def test_everything_fits_in_100_columns(results: Results) -> None:
    text = printed(board_of(results), 100)
    assert max(map(len, text.splitlines())) <= 100
    assert "hidden to fit" not in text
    lines = {line.split("  ")[0].strip(): " ".join(line.split()) for line in text.splitlines()}
    assert lines["Robust MOSS"] == "Robust MOSS 2.38 1.53 to 3.22 2.38 3.5 3.5 4.8 % eps,u,T 100"
    assert lines["UCB1 *"] == "UCB1 * 20,000 20,000 to 20,000 20,000 20,000 20,000 40000 % scale 100"
    order = [
        line.split()[0]
        for line in text.splitlines()
        if line.split() and line.split()[0] in ("Robust", "UCB1", "AdaR-UCB")
    ]
    assert order == ["Robust", "AdaR-UCB", "UCB1"]
    assert "p: regret after 100 pulls, 8 replications, seed 1" in text
    assert "Of random: mean regret divided by the regret of choosing arms at random (50)." in " ".join(text.split())
    assert "* marks policies whose assumption fails on this problem." in " ".join(text.split())
    assert "T is the horizon." in " ".join(text.split())
    narrow = " ".join(printed(board_of(results), 60).split())
    assert "must know" in narrow.partition("Columns hidden to fit the screen:")[2]


def test_all_policies_fit_in_80_columns() -> None:
    cells = compared([], None, EVERY, horizon=None, replications=None, seed=1, quick=False).cells
    finals = {cell.label: [41_234.5, 99_876.0] for cell in cells}
    long = problem("p", 100_000)
    made = made_up.results({long: finals}, policies={cell.label: cell.policy for cell in cells}, seconds=0.2)
    text = printed(board_of(made), 80)
    assert max(map(len, text.splitlines())) <= 80
    heads = " ".join(text.splitlines()[3].split())
    assert heads == "policy mean median quantile worst random know ns/pull"
    assert "Columns hidden to fit the screen: 95 % interval." in " ".join(text.split())
    names = [line[1:19].strip() for line in text.splitlines()]
    at = names.index("(estimator=")
    assert names[at - 1 : at + 2] == ["Robust UCB", "(estimator=", "'median_of_means')"]
    assert names[names.index("(bonus='tight')") - 1] == "AdaR-UCB"


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("AdaR-UCB(bonus='tight')", 20, ["AdaR-UCB", "(bonus='tight')"]),
        ("UCB-V, observed range", 14, ["UCB-V,", "observed range"]),
        ("P(a=1,b=2) *", 8, ["P(a=1,", "b=2) *"]),
        ("short (3) *", 14, ["short (3) *"]),
        ("Clipped-SGD-UCB *", 14, ["Clipped-SGD-", "UCB *"]),
        ("x" * 20, 14, ["x" * 20]),
    ],
)
def test_names_are_folded_where_they_have_parts(name: str, width: int, lines: list[str]) -> None:
    assert folded(name, width).split("\n") == lines


@pytest.mark.parametrize("width", [80, 60, 50])
def test_narrow_terminals_hide_columns_and_name_them(results: Results, width: int) -> None:
    for board in leaderboards(Findings(results)):
        text = printed(board, width)
        assert max(map(len, text.splitlines())) <= width
        for word in ("AdaR-UCB", "UCB1"):
            assert word in text
    text = " ".join(printed(board_of(results), width).split())
    assert "Columns hidden to fit the screen: 95 % interval" in text
    assert "interval median" not in text
    assert "worst" in text


def test_a_board_for_each_problem_and_the_ranking(results: Results) -> None:
    boards = leaderboards(Findings(results))
    assert [board.title.split(":")[0] for board in boards[:2]] == ["p", "q"]
    assert boards[2].title == "mean rank over 2 problems, 8 replications each"
    assert boards[2].columns["policy"] == ["Robust MOSS", "AdaR-UCB", "UCB1"]
    assert boards[2].columns["mean rank"] == ["1.00", "2.00", "3.00"]
    assert boards[2].columns["against first"] == ["–", "worse", "worse"]
    assert len(leaderboards(Findings(made_up.results({P: {"a": [1.0]}})))) == 1
    assert boards[0] == board_of(results)


def test_what_is_not_known_is_a_dash() -> None:
    board = board_of(made_up.results({P: {"a": [1.0]}}, seconds=math.nan))
    assert board.columns["95 % interval"] == ["–"]
    assert board.columns["ns/pull"] == ["–"]


def test_brackets_are_no_markup() -> None:
    made = made_up.results({problem("[red]p"): {"[bold]a": [1.0]}})
    text = printed(leaderboards(Findings(made))[0], 100)
    assert "[bold]a" in text
    assert "[red]p" in text


def test_missing_replications_are_marked() -> None:
    board = board_of(made_up.results({P: {"a": [1.0] * 3, "b": [2.0] * 6}}))
    assert board.columns["policy"] == ["a (3)", "b"]
    assert "(n) means that only n replications are done." in board.note


def test_remarks() -> None:
    made = made_up.results(
        {
            P: {"a": [1.0] * 4, "u": [2.0] * 6, "b": [1.0] * 6},
            Q: {"a": [1.0] * 5, "u": [2.0] * 6, "b": [1.0] * 6},
        },
        policies={"u": rb.Uniform()},
    )
    left_out = tuple(LeftOut(played, "out", "no variance") for played in (P, Q))
    plan = Plan(made.plan.cells, left_out, seed=1, replications=6)
    failure = Failure(Unit(made.measured[0].cell, 1, 4, 2), 3, "Traceback\n  somewhere\nValueError: boom\n")
    lines = remarks(Findings(Results(plan, made.measured, (failure,))))
    assert lines == [
        "out is skipped on p, q: no variance",
        "a is not ranked: 2 of 6 replications on p failed; and on 1 more",
        "u is not ranked: does not learn from rewards: a baseline",
        "a failed on p, replications 4 to 5, tried 3 times: ValueError: boom",
    ]
    assert remarks(Findings(made_up.results({P: {"a": [1.0]}}))) == []
    two = [LeftOut(P, "out", "no variance"), LeftOut(Q, "out", "no kurtosis")]
    assert remarks(Findings(made_up.results({P: {"a": [1.0]}}, left_out=two))) == [
        "out is skipped on p, q; on p because no variance"
    ]
    assert "Not ranked: a, u, out." in ranks(Findings(Results(plan, made.measured, (failure,)))).note


def test_a_problem_at_two_horizons_is_named_with_them() -> None:
    longer = problem("p", 2000)
    made = made_up.results({P: {"a": [1.0]}, longer: {"a": [2.0]}}, left_out=[LeftOut(longer, "out", "no variance")])
    failure = Failure(Unit(made.measured[1].cell, 1, 0, 1), 1, "boom")
    assert remarks(Findings(Results(made.plan, made.measured, (failure,)))) == [
        "out is skipped on p (T = 2,000): no variance",
        "a failed on p (T = 2,000), replication 0, tried 1 time: boom",
    ]


def test_where_nobody_is_ranked_there_is_no_ranking() -> None:
    made = made_up.results({P: {"a": [1.0] * 6, "b": [1.0] * 6}}, missing=[(Q, "a"), (Q, "b")])
    assert [board.title for board in leaderboards(Findings(made))] == [
        "p: regret after 100 pulls, 6 replications, seed 1"
    ]
    assert remarks(Findings(made)) == []  # what is to come is in the verdict


@pytest.mark.parametrize("minimize", [False, True])
def test_a_replay_shows_costs_against_the_log_in_80_columns(minimize: bool) -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b"], 300, p=[0.8, 0.2])
    values = 1_000.0 * rng.exponential(size=300) * np.where(arms == "a", 2.0, 1.0)
    log = pl.DataFrame({"arm": arms, "reward": values})
    plan = replayed(open_records(log, minimize=minimize), ["UCB1", "AdaKLUCB"], name="log", replications=6, horizon=900)
    results = Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units])
    standing = Findings(results).standings[0]
    text = printed(leaderboard(standing), 80)
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    assert f"log, bootstrap: {'cost' if minimize else 'reward'} of 900 pulls, 6 replications, seed 1" in flat
    assert f"policy {'cost saves' if minimize else 'reward gains'} interval regret" in flat
    assert f"(the log) {900 * values.mean():,.0f} – " in flat
    for row in standing.rows:
        mark = "~" if row["versus"] == "not significant" else ""
        line = next(line for line in text.splitlines() if line.split()[:1] == [row["policy"].split()[0]])
        assert f"{mark}{row['better_by']:,.0f}" in line.split()
        assert f"{row['total']:,.0f}" in line.split()
