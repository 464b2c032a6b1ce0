"""Plans of replays: which ways are taken, how long, what is said, and that they play what `simulate` plays."""

import numpy as np
import polars as pl
import pytest

import robandit as rb
from robandit.errors import InvalidInput
from robandit.experiments import replayed, run
from robandit.recorded import open_records
from robandit.recorded import source as source_module

ROWS = 40


def records(**columns):
    """Two arms, a reward each at every time; more columns or others in place of these."""
    draws = np.random.default_rng(3).normal(size=2 * ROWS).round(3)
    frame = {"arm": ["a", "b"] * ROWS, "reward": draws, "time": np.repeat(np.arange(ROWS), 2)} | columns
    return open_records(pl.DataFrame({name: values for name, values in frame.items() if values is not None}))


def said(plan):
    return " ".join(plan.notes)


def test_the_regret_of_a_replay_is_that_of_simulate_on_the_same_rewards(tmp_path):
    given = records()
    plan = replayed(given, ["UCB1"], name="x", replications=3, seed=9)
    results = run(plan, tmp_path).store.results()
    rewards = given.samples()
    table = np.column_stack([rewards["a"], rewards["b"]])
    laws = rb.Problem([rb.laws.Empirical(rewards["a"]), rb.laws.Empirical(rewards["b"])], ["a", "b"])
    for measured, problem, horizon in zip(
        results.measured, (laws, rb.problems.InOrder(table, ["a", "b"])), (2 * ROWS, ROWS), strict=True
    ):
        alone = rb.simulate(measured.cell.policy, problem, horizon, replications=3, seed=9)
        assert np.array_equal(measured.regret, alone.regret[0])
        assert np.array_equal(measured.pulls, alone.pulls[0])


@pytest.mark.parametrize(
    ("columns", "names", "words"),
    [
        ({}, ["x, bootstrap", "x, in-order"], "since every arm has a reward at every time"),
        ({"time": None}, ["x, bootstrap"], "Not in order, since no column says when."),
        ({"time": [0, *range(2 * ROWS - 1)]}, ["x, bootstrap"], "Not in order, since arm"),
        (
            {"propensity": [0.5] * 2 * ROWS},
            ["x, bootstrap", "x, in-order", "x, rejection"],
            "thinned by their propensities",
        ),
        (
            {"time": None, "propensity": [0.5] * 2 * ROWS},
            ["x, bootstrap", "x, rejection"],
            "thinned by their propensities",
        ),
    ],
)
def test_without_a_mode_every_way_that_the_record_allows_is_taken(columns, names, words):
    plan = replayed(records(**columns), ["UCB1"], name="x", replications=1)
    assert [played.name for played in plan.problems] == names
    assert words in said(plan)


def test_a_table_too_long_to_hold_is_not_read_in_order(monkeypatch):
    given = records()
    monkeypatch.setattr("robandit.experiments.replay.MOST_ROWS", ROWS)
    plan = replayed(given, ["UCB1"], replications=1)
    assert [played.name for played in plan.problems] == ["recorded, bootstrap"]
    assert f"more than {ROWS} rows" in said(plan)
    assert source_module.MOST_ROWS > ROWS


def test_horizons_are_as_long_as_the_record():
    def horizons(**options):
        plan = replayed(records(**options.pop("columns", {})), ["UCB1"], replications=1, **options)
        return [played.horizon for played in plan.problems]

    assert horizons() == [2 * ROWS, ROWS]
    assert horizons(quick=True) == [2 * ROWS // 10, ROWS // 10]
    assert horizons(horizon=7) == [7, 7]
    assert horizons(horizon=1_000) == [1_000, ROWS]  # the table ends
    rarest = ["a"] * 5 + ["b"] * (2 * ROWS - 5)
    assert horizons(columns={"time": None, "arm": rarest}, modes=["rejection"]) == [5]


def test_a_log_that_must_be_read_again_says_so():
    plan = replayed(records(), ["UCB1"], modes=["rejection"], horizon=ROWS + 1, replications=1)
    assert f"The rarest arm has only {ROWS} rewards, so that rows may be used again" in said(plan)
    assert "used again" not in said(replayed(records(), ["UCB1"], modes=["rejection"], horizon=ROWS, replications=1))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"arm": ["a"] * 2 * ROWS}, {}, "one arm only, 'a'"),
        ({}, {"modes": ["backwards"]}, "each is one of bootstrap, in-order, rejection"),
        ({}, {"modes": ["bootstrap", "bootstrap"]}, "none is given twice"),
        ({"time": None}, {"modes": ["in-order"]}, "cannot be replayed in order"),
        ({}, {"modes": ["in-order"], "horizon": ROWS + 1}, f"horizon = {ROWS + 1} is beyond the {ROWS} times"),
        ({}, {"horizon": 0}, "horizon: 0"),
        ({}, {"replications": 0}, "replications: 0"),
    ],
)
def test_what_cannot_be_replayed_is_refused(columns, options, words):
    with pytest.raises(InvalidInput, match=words):
        replayed(records(**columns), ["UCB1"], **options)


def test_rows_that_are_left_out_and_samples_are_named(monkeypatch):
    rewards = [float("nan"), *range(1, 2 * ROWS)]
    given = open_records(pl.DataFrame({"arm": ["a", "b"] * ROWS, "reward": rewards}), skip_bad=True)
    assert "LEFT OUT: 1 bad row" in said(replayed(given, ["UCB1"], replications=1))
    assert "LEFT OUT" not in said(replayed(records(), ["UCB1"], replications=1))
    whole = given.samples
    monkeypatch.setattr(given, "samples", lambda progress=None: whole(10, progress))
    assert "a random sample of 20 of them is replayed" in said(replayed(given, ["UCB1"], replications=1))
