"""Replays with contexts: the table made from a record, the test of chance, the answer, and bad features."""

import numpy as np
import polars as pl
import pytest

import robandit as rb
from robandit.cli.replay import replay
from robandit.cli.table_options import Reading
from robandit.errors import InvalidInput
from robandit.experiments import run
from robandit.experiments.context_plan import Rows, context_table, replayed_with_features, worth_of
from robandit.experiments.statistics import Findings
from robandit.experiments.store import Store
from robandit.recorded import open_records


def log(rows=1200, *, effect=1.0, seed=0, **columns):
    """Return a log of two arms: the region and the size decide which is cheaper, by ``effect``."""
    rng = np.random.default_rng(seed)
    arm, eu, size = rng.integers(0, 2, rows), rng.random(rows) < 0.5, np.exp(rng.normal(5.0, 1.0, rows)).round() + 1.0
    cost = 1.0 + rng.pareto(2.5, rows) + effect * (arm == eu)
    frame = {"arm": np.where(arm, "b", "a"), "cost": cost, "eu": eu, "region": np.where(eu, "eu", "us"), "size": size}
    return pl.DataFrame(frame | {"user": [f"u{i % 100}" for i in range(rows)], "one": 1} | columns)


def records(frame=None, **given):
    return open_records(log() if frame is None else frame, reward="cost", minimize=True, **given)


def rows_of(rng, n, arms=3, columns=2, weights=None):
    x = np.column_stack([np.ones(n), rng.normal(size=(n, columns))])
    return Rows(x, rng.integers(0, arms, n), rng.standard_t(2.0, n), np.ones(n) if weights is None else weights)


def test_in_cells_each_recorded_reward_is_used_equally_often():
    rng = np.random.default_rng(1)
    rows = rows_of(rng, 600)
    rows.x[:, 1:] = rng.integers(0, 2, (600, 2))
    table, how = context_table(rows, ["a", "b", "c"], complete=False, minimize=False)
    assert "by cells: 4 different contexts" in how
    assert np.array_equal(table.x, rows.x)
    for cell in np.unique(rows.x, axis=0):
        here = (rows.x == cell).all(axis=1)
        for arm in range(3):
            own = np.sort(rows.rewards[here & (rows.arms == arm)])
            used, counts = np.unique(table.rewards[here, arm], return_counts=True)
            assert np.array_equal(used, own)
            assert counts.max() - counts.min() <= 1
            assert np.allclose(table.means_at[here, arm], table.rewards[here, arm].mean())


def test_propensities_weigh_the_rewards_of_a_cell():
    """Large rewards were logged nine times less often, which the weights undo."""
    rng = np.random.default_rng(2)
    n = 4000
    large = rng.random(n) < 0.1
    rows = rows_of(rng, n, arms=2, weights=np.where(large, 9.0, 1.0))
    rows.x[:, 1:] = 0.0
    rows.x[::2, 1] = 1.0
    rows = rows._replace(rewards=np.where(large, 1.0, 0.0))
    for columns in (slice(None), slice(0, 2)):
        table, _ = context_table(rows._replace(x=rows.x[:, columns]), ["a", "b"], complete=False, minimize=False)
        assert np.allclose(
            table.rewards.mean(axis=0), 0.5, atol=0.06
        )  # 3 standard errors of the share of large rewards
    plain = rows._replace(weights=np.ones(n))
    table, _ = context_table(plain, ["a", "b"], complete=False, minimize=False)
    assert np.allclose(table.rewards.mean(axis=0), 0.1, atol=0.03)


def test_numbers_take_rewards_from_the_nearest_rows_of_the_arm():
    rng = np.random.default_rng(3)
    rows = rows_of(rng, 300)
    table, how = context_table(rows, ["a", "b", "c"], complete=False, minimize=False)
    assert "by a fitted model: nearest neighbours" in how
    for arm in range(3):
        own = np.flatnonzero(rows.arms == arm)
        distances = ((rows.x[:, None] - rows.x[None, own]) ** 2).sum(axis=2)
        near = own[np.argsort(distances, axis=1)[:, : max(10, round(len(own) ** 0.5))]]
        assert np.allclose(table.means_at[:, arm], rows.rewards[near].mean(axis=1))
        assert (table.rewards[:, [arm]] == rows.rewards[near]).any(axis=1).all()


@pytest.mark.parametrize("number", [False, True])
def test_the_saving_on_a_log_is_that_on_all_rewards(number):
    """Also if the choices in the log depend on the context. The saving of a simulation with all rewards is the truth."""
    rng = np.random.default_rng(5)
    n = 12_000
    u = rng.random(n) if number else rng.integers(0, 2, n).astype(float)
    costs = 1.0 + rng.exponential(1.0, (n, 2)) + 1.5 * np.column_stack([u, 0.7 - u])
    chosen = (rng.random(n) < 0.2 + 0.6 * u).astype(int)
    x = np.column_stack([np.ones(n), u])
    every = Rows(np.repeat(x, 2, axis=0), np.tile([0, 1], n), costs.reshape(-1), np.ones(2 * n))
    some = Rows(x, chosen, costs[np.arange(n), chosen], np.ones(n))
    saved = []
    for rows, complete in ((every, True), (some, False)):
        table, _ = context_table(rows, ["a", "b"], complete=complete, minimize=True)
        regret = rb.simulate([rb.AdaClipTS(), rb.UCB1()], table, 3000, 10, seed=6).regret[:, :, -1].mean(axis=1)
        saved.append((regret[1] - regret[0]) / 3000)
    assert saved[0] > 0.1
    assert np.isclose(
        saved[1], saved[0], rtol=0.15
    )  # about 4 standard errors of the difference of the arms in the rarer cell


def test_a_complete_record_is_played_as_it_is(tmp_path):
    costs = np.random.default_rng(4).normal(size=(300, 2)).round(3)
    size = np.repeat(np.arange(300.0) % 7, 2)
    frame = pl.DataFrame(
        {"arm": ["b", "a"] * 300, "cost": costs.reshape(-1), "time": np.repeat(np.arange(300), 2), "size": size}
    )
    plan = replayed_with_features(records(frame), ["size:category"], ["LinUCB", "UCB1"], replications=2)
    table = plan.problems[0].problem
    assert "a cost of every arm at every time" in plan.cautions[-1]
    assert plan.problems[0].horizon == 300
    assert np.array_equal(-table.rewards, costs[:, ::-1])
    late = frame.with_columns(quality=pl.col("cost") > 0.0)
    with pytest.raises(InvalidInput) as caught:
        replayed_with_features(records(late), ["quality"])
    assert caught.value.parameter == "features"
    assert "known only after the choice" in str(caught.value)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_noise_looks_like_chance_and_an_effect_does_not(spread):
    """P-values are at most 0.05 in at most 5 % of records in which features change all arms alike, or their spread."""
    false = found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = rows_of(rng, 300)
        size = np.exp(spread * rows.x[:, 1])
        rows = rows._replace(rewards=rows.x[:, 2] + (seed % 2) * rows.arms - size * rng.lognormal(size=300))
        false += worth_of(rows, 3, complete=False, minimize=False).p_value <= 0.05
        if seed < 20:
            rows = rows._replace(rewards=rows.rewards + 8.0 * rows.x[:, 1] * (rows.arms == 1))
            found += worth_of(rows, 3, complete=False, minimize=False).p_value <= 0.05
    assert false <= 20  # beyond it in 0.1 % of cases
    assert found >= 16


def test_in_a_complete_record_arms_at_one_time_are_compared():
    """A common noise of all arms cancels out: the same effect is found in a complete record, not in a log."""
    rng = np.random.default_rng(0)
    x = np.repeat(np.column_stack([np.ones(300), rng.normal(size=300)]), 2, axis=0)
    arms, common = np.tile([0, 1], 300), np.repeat(20.0 * rng.standard_t(3.0, 300), 2)
    rows = Rows(x, arms, common + 0.5 * x[:, 1] * arms + 0.5 * rng.normal(size=600), np.ones(600))
    assert worth_of(rows, 2, complete=True, minimize=False).p_value == 0.01
    assert worth_of(rows, 2, complete=False, minimize=True).p_value > 0.05


def test_the_answer_has_the_saving_of_the_simulation_and_says_yes_only_where_features_matter(tmp_path):
    policies = ["AdaClipTS", "UCB1", "AdaKLUCB"]
    for features, effect, answer in ((["region"], 1.0, "Yes. "), (["user:hash", "size:log"], 0.0, "Not shown")):
        frame = log(effect=effect)
        plan = replayed_with_features(records(frame), features, policies, horizon=1000, replications=8, seed=3)
        outcome = run(plan, tmp_path / features[0].partition(":")[0])
        findings = Findings(outcome.store.results())
        first, second, third = findings.worth
        assert first.startswith(f"Is the context worth it? {answer}")
        assert ("the features matter" in third) == (effect > 0.0)
        again = Findings(Store.open(outcome.store.folder).results())  # from the files
        assert again.worth == findings.worth
        if effect:
            played = plan.problems[0]
            given = [cell.policy for cell in plan.cells]
            regret = rb.simulate(given, played.problem, 1000, 8, seed=3).regret[:, :, -1].mean(axis=1)
            saved = (min(regret[1:]) - regret[0]) / 1000
            assert f"Saving with contexts: {saved:.3g} per decision" in second
            assert np.isclose(float(second.split()[3]), saved, rtol=0.01)
            cost = -played.problem.means_at.max(axis=1).mean() + regret[0] / 1000
            assert f"costs {cost:.3g} per decision" in first


def test_a_kind_of_policies_that_is_missing_is_added():
    plan = replayed_with_features(records(), ["region"], ["UCB1"], replications=1)
    assert [cell.label for cell in plan.cells] == ["UCB1", "AdaClip-TS"]
    plan = replayed_with_features(records(), ["region"], ["LinUCB"], replications=1)
    assert [cell.label for cell in plan.cells] == ["LinUCB", "AdaKL-UCB"]
    labels = [cell.label for cell in replayed_with_features(records(), ["region"], replications=1).cells]
    assert "AdaKL-UCB per cell" in labels
    labels = [cell.label for cell in replayed_with_features(records(), ["size:log"], replications=1).cells]
    assert "AdaKL-UCB per cell" not in labels


@pytest.mark.parametrize(
    ("features", "columns", "words"),
    [
        (["sizes"], {}, "no column 'sizes' (did you mean 'size'?)"),
        (["size:logs"], {}, "one of :log, :category, :hash"),
        (["region:log"], {}, "not numbers, such as 'eu'"),
        (["user"], {}, "neither a number ('u0' is not one) nor a category: it has 100 different values"),
        (["size:category"], {}, "different values, and at most 64 are allowed"),
        (["one"], {}, "only one value"),
        (["size"], {"size": [None, *range(1, 1200)]}, "1 missing values"),
        (["region"], {"region": ["eu", " "] * 600}, "600 missing values"),
        (["size"], {"size": [float("nan"), *range(1, 1200)]}, "1 missing values"),
        (["size"], {"size": [float("inf"), *range(1, 1200)]}, "infinite"),
        (["size:log"], {"size": range(1200)}, "values of 0 or below"),
        (["size"], {"size": [1e9, *(np.arange(1199) / 1199)]}, "write size:log"),
        (["day"], {"day": pl.date_range(pl.date(2000, 1, 1), pl.date(2003, 4, 14), eager=True)}, "neither numbers nor"),
        (["size"], {"size": [[1]] * 1200}, "one value per row"),
        (["cost"], {}, "known before the choice"),
        (["region", "region"], {}, "different columns"),
        ([], {}, "different columns"),
        (["user:hash", "a:hash", "b:hash"], {"a": range(1200), "b": range(1200)}, "at most 64 columns in all"),
    ],
)
def test_bad_features_are_named(features, columns, words):
    with pytest.raises(InvalidInput) as caught:
        replayed_with_features(records(log(**columns)), features)
    assert words in str(caught.value)


def test_text_is_read_as_in_a_typed_column(tmp_path):
    """A CSV file has the same contexts and costs as a data frame."""
    frame = log(300)
    frame.write_csv(tmp_path / "log.csv")
    features = ["eu", "size:log"]
    plans = [replayed_with_features(records(given), features) for given in (frame, str(tmp_path / "log.csv"))]
    tables = [plan.problems[0].problem for plan in plans]
    assert np.array_equal(tables[0].x, tables[1].x)
    assert np.allclose(tables[0].rewards, tables[1].rewards)


def test_the_command_prints_the_answer_before_the_table_and_on_the_page(tmp_path, capsys):
    log().write_csv(tmp_path / "log.csv")
    reading = Reading(reward="cost", minimize=True)
    given = {"policy": ["LinUCB", "UCB1"], "horizon": 300, "replications": 6}
    with pytest.raises(SystemExit) as ended:
        replay(tmp_path / "log.csv", reading=reading, features="region, size:log", out=tmp_path / "run", **given)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    starts = (
        "With contexts (region: 2 categories, size: a logarithm)",
        "Is the context worth it?",
        "Saving with",
        "Chance?",
        "log, contexts: cost",
    )
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=False)] == [True] * 5
    assert "Is the context worth it?" in (tmp_path / "run" / "report.html").read_text()
    for other in ({"mode": ["bootstrap"]}, {"objective": "p95"}):
        with pytest.raises(InvalidInput, match="cannot be used together"):
            replay(tmp_path / "log.csv", reading=reading, features="region", **other)
