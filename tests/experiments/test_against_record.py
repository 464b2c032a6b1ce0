"""What a replay would have cost or earned: totals, differences, intervals and sentences, in each mode."""

import json
import math

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.cases import cases
from robandit.cli.terminal.leaderboard import leaderboards
from robandit.errors import CorruptFile
from robandit.experiments import replayed, run
from robandit.experiments.against_record import Against, against_record, cost_sentences
from robandit.experiments.plan import Played, planned
from robandit.experiments.results import Measured, Results
from robandit.experiments.statistics import Findings, summary
from robandit.experiments.store import Store, _checksum
from robandit.recorded import open_records
from robandit.report.page import write_page

ROWS = 300


def frame(**columns):
    """A log of three arms; c is the cheapest and the rarest."""
    rng = np.random.default_rng(7)
    arms = rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.25, 0.15])
    cost = rng.exponential(size=ROWS) + np.select([arms == "a", arms == "b"], [3.0, 2.0], 1.0)
    return pl.DataFrame({"arm": arms, "reward": cost, "time": np.arange(ROWS)} | columns)


def played(table, *policies, **options):
    options = {"replications": 8, "seed": 3} | options
    records = open_records(table, minimize=options.pop("minimize", False))
    plan = replayed(records, policies or ["UCB1", "Uniform"], name="x", **options)
    return Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units])


def row(results, policy="UCB1", problem="x, bootstrap"):
    return summary(results).row(by_predicate=(pl.col("policy") == policy) & (pl.col("problem") == problem), named=True)


def test_the_total_is_that_of_the_pulls_and_the_reference_that_of_the_log():
    table = frame()
    results = played(table, minimize=True, horizon=1_000)
    means = dict(table.group_by("arm").agg(pl.col("reward").mean()).iter_rows())
    for measured in results.measured:
        found = row(results, measured.cell.label)
        pulls = measured.pulls.mean(axis=0)
        assert found["total"] == pytest.approx(pulls @ [means[arm] for arm in "abc"])
        assert found["reference"] == "log"
        assert found["reference_total"] == pytest.approx(1_000 * table["reward"].mean())
        assert found["better_by"] == pytest.approx(found["reference_total"] - found["total"])
        assert found["better_by_low"] < found["better_by"] < found["better_by_high"]
    assert row(results)["versus"] == "better"
    assert row(results, "Uniform")["better_by"] > 0.0, "the log often chose the worst arm"


def test_costs_and_negated_costs_are_the_same_with_another_sign():
    table = frame()
    costs, rewards = (row(played(x, minimize=x is table)) for x in (table, table.with_columns(-pl.col("reward"))))
    assert rewards["total"] == pytest.approx(-costs["total"])
    for name in ("better_by", "better_by_low", "better_by_high"):
        assert rewards[name] == pytest.approx(costs[name])
    worse = row(played(table))  # without the sign, the most expensive arm is the best
    assert worse["total"] > worse["reference_total"]
    assert worse["better_by"] == pytest.approx(worse["total"] - worse["reference_total"])


def test_with_propensities_the_log_cost_what_its_rows_cost():
    rng = np.random.default_rng(8)
    hard = rng.random(4_000) < 0.5
    chance = np.where(hard, 0.9, 0.1)
    a = rng.random(4_000) < chance  # a is chosen where costs are high
    cost = rng.exponential(size=4_000) + np.where(hard, 4.0, 0.0) - np.where(a, 0.5, 0.0)
    log = {"arm": np.where(a, "a", "b"), "reward": cost, "propensity": np.where(a, chance, 1.0 - chance)}
    results = played(pl.DataFrame(log), minimize=True, horizon=300, replications=20)
    truth = 300 * (0.5 * (1.0 - 0.5))  # of always a, which the log plays half of the time
    for problem in ("x, bootstrap", "x, rejection"):
        found = row(results, problem=problem)
        assert found["reference_total"] == pytest.approx(300 * cost.mean())
        assert found["better_by_low"] < truth * 1.2
        assert found["better_by_high"] > 0.0
    naive = row(played(pl.DataFrame(log).drop("propensity"), minimize=True, horizon=300, replications=20))
    assert naive["better_by"] > 2.0 * truth, "the negative control"


@pytest.mark.parametrize("horizon", [50, ROWS])
@pytest.mark.parametrize("minimize", [False, True])
def test_in_order_the_rewards_of_the_same_times_are_compared(horizon, minimize):
    rng = np.random.default_rng(9)
    rewards = rng.normal(size=(ROWS, 2)).cumsum(axis=0)  # so that the window matters
    columns = {"arm": ["a", "b"] * ROWS, "reward": rewards.reshape(-1), "time": np.repeat(np.arange(ROWS), 2)}
    records = open_records(pl.DataFrame(columns), minimize=minimize)
    plan = replayed(records, ["UCB1"], name="x", modes=["in-order"], horizon=horizon, replications=5, seed=2)
    where = plan.problems[0]
    plan = planned([where], [rb.Oracle(arm=1)], replications=5, seed=2)
    measured = Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units]).measured[0]
    starts = where.problem.starts(2, np.arange(5))
    assert starts[0] == 0
    assert len(set(starts.tolist())) > 3
    windows = [(start + np.arange(horizon)) % ROWS for start in starts]
    got = [rewards[window, 1].sum() for window in windows]
    random = [rewards[window].mean(axis=1).sum() for window in windows]
    against = against_record(measured, 2)
    assert against.reference == "random"
    assert against.total == pytest.approx(np.mean(got))
    assert against.reference_total == pytest.approx(np.mean(random))
    assert against.better_by == pytest.approx((-1.0 if minimize else 1.0) * (np.mean(got) - np.mean(random)))


@pytest.mark.parametrize("minimize", [False, True])
def test_the_regret_of_random_arms_is_that_of_the_same_times(minimize):
    rewards = np.random.default_rng(9).normal(size=(ROWS, 2)).cumsum(axis=0)
    columns = {"arm": ["a", "b"] * ROWS, "reward": rewards.reshape(-1), "time": np.repeat(np.arange(ROWS), 2)}
    results = played(pl.DataFrame(columns), minimize=minimize, modes=["in-order"], horizon=50)
    problem = results.plan.problems[0].problem
    windows = [(start + np.arange(50)) % ROWS for start in problem.starts(3, np.arange(8))]
    best = np.mean([rewards[window, problem.best_arm].sum() for window in windows])
    standing = Findings(results).standings[0]
    name, total, regret = standing.reference
    assert name == "(random arms)"
    assert regret == pytest.approx((-1.0 if minimize else 1.0) * (best - total))
    for found in standing.rows:
        assert (found["mean"] < regret) == (found["better_by"] > 0.0), "less regret is less cost"


def test_a_complete_table_is_no_log_of_choices_in_any_mode():
    columns = {"arm": ["a", "b"] * 60, "reward": np.random.default_rng(1).normal(size=120)}
    table = pl.DataFrame(columns | {"time": np.repeat(np.arange(60), 2)})
    for modes in ([], ["bootstrap"], ["in-order"], ["bootstrap", "rejection"]):
        plan = replayed(open_records(table), ["UCB1"], modes=modes, replications=1)
        assert {each.reference.kind for each in plan.problems} == {"random"}
        assert any("does not say which arm was chosen" in note for note in plan.notes)
    plan = replayed(open_records(pl.DataFrame(columns)), ["UCB1"], replications=1)  # without times
    assert plan.problems[0].reference.kind == "log"


def test_a_difference_is_significant_only_if_its_interval_excludes_0():
    rng = np.random.default_rng(2)
    seen = set()
    for shift in (0.0, 0.1, 0.3, 1.0):
        arms = rng.choice(["a", "b"], 400)
        cost = rng.normal(size=400) + np.where(arms == "a", shift, 0.0)
        results = played(pl.DataFrame({"arm": arms, "reward": cost}), "UCB1", minimize=True)
        found = row(results)
        significant = not found["better_by_low"] <= 0.0 <= found["better_by_high"]
        assert (found["versus"] != "not significant") == significant
        text = Findings(results).costs[0]
        assert ("but this is not significant" in text) == (not significant)
        seen.add(significant)
    assert seen == {True, False}


def made_up(finals, pulls, minimize=True):
    """A policy with these regrets on two arms of a log: costs (or rewards) 1 and 3."""
    log = {"arm": ["a"] * 100 + ["b"] * 100, "reward": [0.5, 1.5] * 50 + [2.5, 3.5] * 50}
    plan = replayed(
        open_records(pl.DataFrame(log), minimize=minimize, reward="reward"), ["UCB1"], name="x", horizon=100
    )
    cell = plan.cells[0]
    n = len(finals)
    regret = np.array(finals, dtype=float)[:, None]
    measured = Measured(cell, np.arange(n), np.array([100]), regret, np.tile(pulls, (n, 1)), 1.0)
    return Results(plan, (measured,))


def test_the_sentence_says_what_the_log_and_the_policy_cost():
    text = Findings(made_up([20.0] * 50, [90, 10])).costs[0]
    assert text.startswith(
        "On x, bootstrap, the log cost 2 per row (in the unit of 'reward'): 200 rows, 400 in total, or 200 for 100 pulls. "
        "UCB1 would have cost 120: it saves 80, 40 % (95 % interval "
    )
    worse = Findings(made_up([150.0] * 50, [25, 75])).costs[0]
    assert "UCB1 would have cost 250: it costs 50 more, 25 % (95 % interval 4" in worse


def test_a_tiny_difference_is_about_the_same_unless_it_is_significant():
    text = Findings(made_up([99.95, 99.99] * 25, [50, 50])).costs[0]
    assert (
        "UCB1 would have cost 200: it costs about the same (the difference is not significant; 95 % interval -" in text
    )
    assert "0.0 %" not in text
    assert "it saves 0.2, 0.1 %, but this is not significant" in Findings(made_up([99.8] * 50, [50, 50])).costs[0]


COSTS = {  # the difference, its interval, the verdict -> the sentence
    (80.0, 70.0, 90.0, "better"): "it saves 80, 40 % (95 % interval 70 to 90).",
    (-80.0, -90.0, -70.0, "worse"): "it costs 80 more, 40 % (95 % interval 70 to 90).",
    (-0.05, -0.06, -0.04, "worse"): "it costs 0.05 more, 0.0 % (95 % interval 0.04 to 0.06).",
    (80.0, -5.0, 90.0, "not significant"): "it saves 80, 40 %, but this is not significant (95 % interval -5 to 90).",
    (
        -80.0,
        -90.0,
        5.0,
        "not significant",
    ): "it costs 80 more, 40 %, but this is not significant (95 % interval -5 to 90).",
    (
        0.05,
        -5.0,
        7.0,
        "not significant",
    ): "it costs about the same (the difference is not significant; 95 % interval -5 to 7).",
}
REWARDS = {
    (80.0, 70.0, 90.0, "better"): "it earns 80 more (95 % interval 70 to 90).",
    (-80.0, -90.0, -70.0, "worse"): "it earns 80 less (95 % interval 70 to 90).",
    (80.0, -5.0, 90.0, "not significant"): "it earns 80 more, but this is not significant (95 % interval -5 to 90).",
    (-80.0, -90.0, 5.0, "not significant"): "it earns 80 less, but this is not significant (95 % interval -5 to 90).",
    (
        0.05,
        -5.0,
        7.0,
        "not significant",
    ): "it earns about the same (the difference is not significant; 95 % interval -5 to 7).",
}
FEW = {
    (
        80.0,
        70.0,
        90.0,
        "not significant",
    ): "it saves 80, 40 %, but this is not significant, since 5 replications are too few (95 % interval 70 to 90).",
    (
        0.05,
        0.04,
        0.06,
        "not significant",
    ): "it costs about the same (the difference is not significant, since 5 replications are "
    "too few; 95 % interval 0.04 to 0.06).",
}


@cases(
    ("minimize", "replications", "found", "expected"),
    [
        *((True, 50, found, expected) for found, expected in COSTS.items()),
        *((False, 50, found, expected) for found, expected in REWARDS.items()),
        *((True, 5, found, expected) for found, expected in FEW.items()),
    ],
)
def test_every_sentence_on_the_difference(minimize, replications, found, expected):
    measured = made_up([20.0] * replications, [90, 10], minimize).measured[0]
    text = cost_sentences(measured, Against("log", 200.0, 120.0, *found))
    did = "cost" if minimize else "earned"
    assert text == (
        f"On x, bootstrap, the log {did} 2 per row (in the unit of 'reward'): 200 rows, 400 in total, or 200 for 100 pulls. "
        f"UCB1 would have {did} 120: {expected}"
    )


def test_few_replications_are_never_significant():
    few = Findings(made_up([20.0] * 5, [90, 10])).costs[0]
    assert "it saves 80, 40 %, but this is not significant, since 5 replications are too few (95 % interval" in few
    alone = Findings(made_up([20.0], [90, 10])).costs[0]
    assert alone.endswith("The difference has no interval, since one replication is too few; so it is not significant.")
    assert math.isnan(row(made_up([20.0], [90, 10]))["better_by_low"])


def test_other_problems_have_no_reference():
    plan = planned([Played("p", rb.problems.bernoulli(means=[0.1, 0.9]), 10)], [rb.UCB1()], replications=2, seed=0)
    results = Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units])
    found = summary(results).row(0, named=True)
    assert (found["reference"], found["versus"]) == ("", "")
    assert all(math.isnan(found[name]) for name in Against._fields if name not in ("reference", "versus"))
    assert Findings(results).costs == []


def rewritten(folder, change):
    """Replace the content of run.json, with the right checksum."""
    path = folder / "run.json"
    data = change(json.loads(path.read_text()))
    path.write_text(json.dumps(data | {"checksum": _checksum(data)}))


def test_a_folder_keeps_the_reference_and_one_without_it_continues(tmp_path):
    records = open_records(frame(), minimize=True)
    plan = replayed(records, ["UCB1"], name="x", replications=2, horizon=50)
    run(plan, tmp_path)
    assert [p.reference for p in Store.open(tmp_path).plan.problems] == [p.reference for p in plan.problems]
    rewritten(tmp_path, lambda data: {key: value for key, value in data.items() if key != "references"})
    assert Store.open(tmp_path).plan.problems[0].reference is None
    assert Findings(Store.open(tmp_path).results()).costs == []
    assert run(plan, tmp_path).before == 1
    assert Store.open(tmp_path).plan.problems[0].reference == plan.problems[0].reference


@pytest.mark.parametrize(
    "references",
    [[], [{"kind": "log"}], ["log"], [{"below": [1.0]}], 5],
    ids=["none", "half", "text", "short", "number"],
)
def test_a_damaged_reference_is_rejected(references, tmp_path):
    plan = replayed(open_records(frame(), minimize=True), ["UCB1"], name="x", replications=1, horizon=5)
    run(plan, tmp_path)
    if references == [{"below": [1.0]}]:
        references = [plan.problems[0].reference.to_dict() | references[0]]
    rewritten(tmp_path, lambda data: data | {"references": references})
    with pytest.raises(CorruptFile, match="is damaged"):
        Store.open(tmp_path)


def test_a_replay_of_the_whole_log_names_its_total_once():
    text = Findings(played(frame(), "UCB1", minimize=True)).costs[0]
    assert "300 rows, 1,026 in total. UCB1 would have cost" in text


def swapped(means, **columns):
    """A log of two arms with the means of each half; the best arm may swap."""
    rng = np.random.default_rng(0)
    arms, rows = rng.choice(["a", "b"], 1_800), np.arange(1_800)
    level = np.array([means[arm][row // 900] for arm, row in zip(arms, rows, strict=True)])
    return pl.DataFrame({"arm": arms, "reward": level + rng.normal(size=1_800)} | columns)


@pytest.mark.parametrize("columns", [{}, {"time": np.arange(1_800)}], ids=["rows", "times"])
def test_under_drift_a_rejection_replay_does_not_say_what_a_policy_would_have_cost(columns, tmp_path):
    """Regret has the means of the whole log, about 50 each, although the cheap arm of the moment costs 10 per pull."""
    table = swapped({"a": (10.0, 90.0), "b": (90.0, 10.0)}, **columns)
    results = played(table, "UCB1", minimize=True, modes=["rejection", "bootstrap"], horizon=100)
    found = row(results, problem="x, rejection")
    assert (found["reference"], found["versus"]) == ("", "")
    assert math.isnan(found["total"])
    assert row(results)["total"] == pytest.approx(5_000.0, rel=0.05), "the bootstrap plays the mixture, and says so"
    assert [text.startswith("On x, bootstrap") for text in Findings(results).costs] == [True]
    cautions = " ".join(results.plan.cautions)
    assert "2 of 2 arms changed with time" in cautions
    assert "The mode rejection reads the log in its order, but its regret has the means of the whole log" in cautions
    assert "--mode rejection" not in " ".join([cautions, *results.plan.notes])
    assert leaderboards(Findings(results))[0].title.startswith("x, rejection: regret after 100 pulls")
    write_page(Findings(results), tmp_path / "page.html", command="x")
    alone = played(table, "UCB1", minimize=True, modes=["rejection"], horizon=100)
    assert Findings(alone).costs == []
    assert "Policies are compared with the log" not in " ".join(alone.plan.notes)


def test_without_drift_a_rejection_replay_says_it():
    results = played(swapped({"a": (10.0, 10.0), "b": (90.0, 90.0)}), "UCB1", minimize=True, modes=["rejection"])
    assert row(results, problem="x, rejection")["versus"] == "better"
    assert not results.plan.cautions
