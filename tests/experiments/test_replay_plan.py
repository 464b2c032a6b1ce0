"""Plans of replays: the modes, the horizons, the notes, and that they play what `simulate` plays."""

import numpy as np
import polars as pl
import pytest

import robandit as rb
from robandit.errors import InvalidInput
from robandit.experiments import replayed, run
from robandit.experiments.compare_plan import compared
from robandit.experiments.statistics import Findings
from robandit.recorded import open_records

ROWS = 40


def records(**columns):
    """Return records of two arms with a reward of each at every time. Columns can be added or replaced."""
    draws = np.random.default_rng(3).normal(size=2 * ROWS).round(3)
    frame = {"arm": ["a", "b"] * ROWS, "reward": draws, "time": np.repeat(np.arange(ROWS), 2)} | columns
    return open_records(pl.DataFrame({name: values for name, values in frame.items() if values is not None}))


def notes_of(plan):
    return " ".join(plan.notes)


def test_by_default_the_policies_of_a_comparison_play():
    plan = replayed(records(), replications=1)
    assert {each.label for each in plan.combinations} == {cell.label for cell in compared([], None, []).cells}
    assert plan.notes[-1].endswith("To see all, add --all.")
    assert "--all" not in notes_of(replayed(records(), ["all"], replications=1))


@pytest.mark.parametrize(
    ("policies", "told"),
    [
        (["AdaRUCB"], []),
        (["UCB1"], ["UCB1 assumes a range of 1."]),
        (["UCBV"], ["UCB-V gets the range of the record"]),
        (["RobustUCB(estimator='catoni')"], ["Policies that need moments get the moments of the record, which"]),
        (
            ["all"],
            [
                "get the moments of the record, which",
                "UCB-V gets the range of the record",
                "UCB1 assumes a range of 1.",
            ],
        ),
    ],
)
def test_the_notes_are_about_policies_that_play(policies, told):
    notes = notes_of(replayed(records(), policies, replications=1))
    assert all(words in notes for words in told)
    assert ("UCB1 assumes" in notes, "UCB-V gets" in notes, "moments" in notes) == tuple(
        any(words in each for each in told) for words in ("UCB1 assumes", "UCB-V gets", "moments")
    )


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
        ({"time": None}, ["x, bootstrap"], "The mode in-order is skipped: there is no time column."),
        ({"time": [0, *range(2 * ROWS - 1)]}, ["x, bootstrap"], "The mode in-order is skipped: arm"),
        ({"time": ["1/2/2013"] * 2 * ROWS}, ["x, bootstrap"], "the time '1/2/2013' is neither a number nor a date"),
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
    assert words in notes_of(plan)


def test_rows_that_do_not_fit_are_counted_and_an_unused_time_is_named():
    frame = pl.DataFrame(
        {
            "arm": ["a", "b"] * ROWS,
            "reward": [1.0, 2.0] * ROWS,
            "my ts": range(2 * ROWS),
            "ok": [1, 1, 0, 0] * (ROWS // 2),
        }
    )
    plan = replayed(open_records(frame, where="ok = true"), ["UCB1"], replications=1)
    assert f"--where 'ok = true' keeps {ROWS} rows and drops {ROWS}" in notes_of(plan)
    assert "The column 'my ts' looks like a time: to read rows in its order, add --time 'my ts'." in notes_of(plan)
    assert "looks like a time" not in notes_of(replayed(open_records(frame, time="my ts"), ["UCB1"], replications=1))
    assert "--where" not in notes_of(replayed(open_records(frame), ["UCB1"], replications=1))


def test_a_table_too_long_to_hold_is_not_read_in_order(monkeypatch):
    given = records()
    monkeypatch.setattr("robandit.experiments.replay_plan.UNASKED", ROWS)
    plan = replayed(given, ["UCB1"], replications=1)
    assert [played.name for played in plan.problems] == ["recorded, bootstrap"]
    assert f"more than {ROWS} rows are sorted only on request" in notes_of(plan)
    asked = replayed(given, ["UCB1"], modes=["in-order"], replications=1)
    assert [played.name for played in asked.problems] == ["recorded, in-order"]


def test_horizons_are_as_long_as_the_record():
    def horizons(**options):
        plan = replayed(records(**options.pop("columns", {})), ["UCB1"], replications=1, **options)
        return [played.horizon for played in plan.problems]

    assert horizons() == [2 * ROWS, ROWS]
    assert horizons(quick=True) == [2 * ROWS // 10, ROWS // 10]
    assert horizons(horizon=7) == [7, 7]
    assert horizons(horizon=1_000) == [1_000, ROWS]  # the table ends
    assert f"{ROWS} pulls, since the record ends there (not 1,000)" in notes_of(
        replayed(records(), ["UCB1"], replications=1, horizon=1_000)
    )
    rarest = ["a"] * 5 + ["b"] * (2 * ROWS - 5)
    assert horizons(columns={"time": None, "arm": rarest}, modes=["rejection"]) == [5]


def test_a_log_that_must_be_read_again_says_so():
    plan = replayed(records(), ["UCB1"], modes=["rejection"], horizon=ROWS + 1, replications=1)
    assert f"The rarest arm has only {ROWS} rewards, so rows may be used again" in notes_of(plan)
    assert "used again" not in notes_of(
        replayed(records(), ["UCB1"], modes=["rejection"], horizon=ROWS, replications=1)
    )


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"arm": ["a"] * 2 * ROWS}, {}, "one arm only, 'a'"),
        (
            {},
            {"modes": ["backwards"]},
            r"modes = .* must be a list without repetitions of bootstrap, in-order, rejection",
        ),
        ({}, {"modes": ["bootstrap", "bootstrap"]}, r"modes = .* must be a list without repetitions"),
        ({"time": None}, {"modes": ["in-order"]}, "cannot be replayed in order"),
        ({}, {"modes": ["in-order"], "horizon": ROWS + 1}, f"horizon = {ROWS + 1} is beyond the {ROWS} times"),
        ({}, {"horizon": 0}, "horizon = 0"),
        ({}, {"replications": 0}, "replications = 0"),
    ],
)
def test_what_cannot_be_replayed_is_rejected(columns, options, words):
    with pytest.raises(InvalidInput, match=words):
        replayed(records(**columns), ["UCB1"], **options)


def confounded(rows=4_000):
    """A log whose better arm, a, was chosen where rewards are low, with known probabilities."""
    rng = np.random.default_rng(4)
    hard = rng.random(rows) < 0.5
    chance = np.where(hard, 0.9, 0.1)
    a = rng.random(rows) < chance
    rewards = rng.normal(size=rows) + np.where(hard, -4.0, 0.0) + np.where(a, 0.5, 0.0)
    columns = {"arm": np.where(a, "a", "b"), "reward": rewards, "propensity": np.where(a, chance, 1.0 - chance)}
    return pl.DataFrame(columns)


def test_propensities_count_in_every_way_and_in_what_is_said_of_the_best_arm():
    plan = replayed(open_records(confounded()), ["UCB1"], replications=1)
    assert [played.problem.best_arm for played in plan.problems] == [0, 0]
    assert np.array_equal(plan.problems[0].problem.means, plan.problems[1].problem.means)
    assert "'b' has the highest mean" not in notes_of(plan)
    misled = replayed(open_records(confounded().drop("propensity")), ["UCB1"], replications=1)  # the control
    assert misled.problems[0].problem.best_arm == 1
    assert "'b' has the highest mean" in notes_of(misled)


def test_a_log_that_thinning_leaves_nothing_of_says_so():
    log = confounded()
    assert "THIS KEEPS ONLY" not in notes_of(replayed(open_records(log), ["UCB1"], replications=1))
    rare = pl.when(pl.int_range(pl.len()) == 7).then(1e-9).otherwise(pl.col("propensity"))
    plan = replayed(open_records(log.with_columns(propensity=rare)), ["UCB1"], replications=1)
    assert "BUT THIS KEEPS ONLY 1 OF" in notes_of(plan)
    assert "one row has the propensity 1e-09" in notes_of(plan)


def test_rows_that_are_left_out_and_samples_are_named(monkeypatch):
    rewards = [float("nan"), *range(1, 2 * ROWS)]
    given = open_records(pl.DataFrame({"arm": ["a", "b"] * ROWS, "reward": rewards}), skip_bad=True)
    assert "SKIPPED: 1 bad row" in notes_of(replayed(given, ["UCB1"], replications=1))
    assert "SKIPPED" not in notes_of(replayed(records(), ["UCB1"], replications=1))
    whole = given.samples
    monkeypatch.setattr(given, "samples", lambda progress=None: whole(10, progress))
    assert "They are a random sample of 20 rewards" in notes_of(replayed(given, ["UCB1"], replications=1))


@pytest.mark.parametrize("modes", [[], ["rejection"], ["bootstrap", "in-order", "rejection"]])
def test_a_replay_of_costs_has_their_sign_and_the_regret_of_negated_rewards(modes, tmp_path):
    frame = pl.DataFrame(
        {
            "arm": ["a", "b"] * ROWS,
            "cost": np.random.default_rng(3).pareto(2.5, 2 * ROWS).round(3),
            "time": np.repeat(np.arange(ROWS), 2),
            "propensity": np.tile([0.5, 0.25], ROWS),
        }
    )
    found = []
    for sign in (1, -1):
        table = frame.with_columns(pl.col("cost") * sign)
        records = open_records(table, reward="cost", minimize=sign == 1)
        plan = replayed(records, ["UCB1"], name="x", replications=3, modes=modes)
        found.append((plan, run(plan, tmp_path / str(sign)).store.results()))
    (costs, played), (rewards, expected) = found
    for ours, theirs in zip(costs.problems, rewards.problems, strict=True):
        assert ours.problem.minimize
        assert ours.problem.means.tolist() == (-theirs.problem.means).tolist()
        assert ours.problem.best_arm == theirs.problem.best_arm
    for ours, theirs in zip(played.measured, expected.measured, strict=True):
        assert ours.regret.tobytes() == theirs.regret.tobytes()
        assert ours.pulls.tobytes() == theirs.pulls.tobytes()
    assert "80 costs of 2 arms, the column 'cost', minimised" in notes_of(costs)
    assert "has the lowest mean" in notes_of(costs)
    assert "has the highest mean" in notes_of(rewards)


@pytest.mark.parametrize("least", [0.5, -0.5])
def test_whether_values_are_costs_is_asked_only_if_none_is_negative_not_just_in_the_sample(least, monkeypatch):
    cost = 1.0 + np.random.default_rng(5).pareto(1.5, 2_000)
    cost[1_000] = least
    given = open_records(pl.DataFrame({"arm": ["a", "b"] * 1_000, "reward": cost}))
    whole = given.samples
    monkeypatch.setattr(given, "samples", lambda progress=None: whole(100, progress))
    assert min(x.min() for x in given.samples().values()) > least, "the sample misses it"
    asked = any("Are these costs?" in caution for caution in replayed(given, ["UCB1"], replications=1).cautions)
    assert asked == (least > 0.0)


def test_an_arm_with_too_few_rows_is_left_out_and_the_others_keep_their_intervals():
    rng = np.random.default_rng(2)
    arms = ["a"] * 300 + ["b"] * 300 + ["b "] * 5
    chances = [0.5] * len(arms)
    frame = pl.DataFrame({"arm": arms, "reward": rng.normal(size=len(arms)), "propensity": chances})
    plan = replayed(open_records(frame.sample(fraction=1.0, shuffle=True, seed=1)), ["UCB1", "AdaKLUCB"], quick=True)
    assert {cell.played.name for cell in plan.cells} == {"recorded, bootstrap", "recorded, rejection"}
    for cell in plan.cells:
        assert cell.played.problem.names == ("a", "b")
        reference = cell.played.reference
        assert reference is not None
        assert (reference.rows, reference.why) == (600, "")
        assert reference.below is not None
    assert any("20 values of an arm: 'b ' (5 values). No policy plays it" in caution for caution in plan.cautions)
    assert plan.cautions[0].startswith("Are 'b' (300 rows) and 'b ' (5 rows) one arm?")


def test_if_all_arms_have_few_rows_none_is_left_out():
    frame = pl.DataFrame({"arm": ["a"] * 5 + ["b"] * 30, "reward": range(35)})
    plan = replayed(open_records(frame), ["UCB1"], quick=True)
    assert plan.cells[0].played.problem.names == ("a", "b")
    assert not any("Left out" in note for note in (*plan.notes, *plan.cautions))


@pytest.mark.parametrize("propensity", [False, True])
def test_totals_and_the_verdict_of_a_replay_without_a_rare_arm_say_so(propensity, tmp_path):
    """Before, the note was "600 rewards of 3 arms", the log earned without a word what 3 arms did, and 'c' was significant."""
    rng = np.random.default_rng(3)
    arms = rng.permutation(np.array(["a", "b", "c"] * 200 + ["d"] * 19))
    means = np.select([arms == "a", arms == "b", arms == "c"], [1.0, 2.0, 3.0], 9.0)
    frame = pl.DataFrame({"arm": arms, "reward": means + rng.normal(0.0, 0.1, 619)})
    frame = frame.with_columns(propensity=0.25) if propensity else frame
    plan = replayed(open_records(frame), ["UCB1", "AdaKLUCB"], replications=5, horizon=100)
    assert any(note.startswith("the data frame: 619 rewards of 4 arms") for note in plan.notes)
    caution = "20 values of an arm: 'd' (19 values). No policy plays it, and all totals and regrets are without it."
    assert any(caution in line for line in plan.cautions)
    (verdict,) = [note for note in plan.notes if "NOT significant" in note]
    assert verdict.startswith("NOT significant: 'd' has a higher mean (")
    results = run(plan, tmp_path / "run").store.results()
    for standing in Findings(results).standings:
        assert standing.reference[0] == "(the log without 'd')"
    assert "the log, without 'd', earned" in " ".join(Findings(results).costs)


def test_a_quantile_of_a_record():
    plan = replayed(records(), ["QuantileUCB(q=0.9)"], objective="p90", replications=2)
    assert [played.name for played in plan.problems] == ["recorded, p90, bootstrap"], (
        "in-order has sums of rewards only"
    )
    assert plan.problems[0].reference is None
    gaps = plan.problems[0].problem.gaps
    assert gaps.tolist() == rb.problems.with_objective(plan.problems[0].problem.problem, "p90").gaps.tolist()
    assert "p90 of 'a': " in notes_of(plan)
    assert "95 % limits" in notes_of(plan)
    assert "best arm" not in notes_of(plan)
    with pytest.raises(InvalidInput, match="a table in order has no p90"):
        replayed(records(), modes=["in-order"], objective="p90")


def test_a_share_of_a_record():
    plan = replayed(records(), ["AdaKLUCB"], objective="within:0.5", replications=2, modes=["bootstrap", "in-order"])
    drawn, ordered = (played.problem for played in plan.problems)
    rewards = records().table().rewards
    below = (rewards < 0.5).mean(axis=0)
    np.testing.assert_allclose(drawn.means, below, atol=1e-7)
    assert (drawn.minimize, ordered.minimize) == (True, True)
    assert ordered.rewards.tolist() == (rewards < 0.5).astype(float).tolist()
    assert plan.problems[0].reference.mean == pytest.approx(below.mean())
    assert plan.problems[0].reference.column == ""
    assert "share beyond 0.5 of 'a': " in notes_of(plan)
