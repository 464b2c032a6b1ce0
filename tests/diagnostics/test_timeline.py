"""Drift in a record: it is said before any verdict, and an answer that it contradicts is not settled."""

import datetime as dt
import html
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from helpers.cases import cases
from robandit.diagnostics.resolution import resolution
from robandit.diagnostics.study import study
from robandit.diagnostics.timeline import WHAT_TO_DO, Timeline, Verdict
from robandit.errors import InvalidInput
from robandit.recorded import Log, Recorded, Table, open_records

ROWS = 1_800


def records(means, *, minimize=True, seed=0, time=True):
    """A log of three arms with log-normal costs; ``means`` has the means of each arm in parts of equal length."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(list(means), ROWS)
    parts = len(next(iter(means.values())))
    level = np.array([means[arm][i * parts // ROWS] for i, arm in enumerate(arms)])
    frame = {"arm": arms, "reward": level * rng.lognormal(-0.08, 0.4, ROWS)}
    if time:
        frame["time"] = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in range(ROWS)]
    return open_records(pl.DataFrame(frame).sample(fraction=1.0, shuffle=True, seed=1), minimize=minimize)


def studied(means, **more):
    given = records(means, **more)
    return study(given.summary(), log=given.log(times=True))


ISSUE = {"a": (10, 30), "b": (14, 14), "c": (30, 10)}  # a is best in the first half, c in the second, b over all
SAME = {"a": (10, 20), "b": (14, 28), "c": (30, 60)}
STEADY = {"a": (10,), "b": (14,), "c": (30,)}


def test_an_answer_that_drift_contradicts_is_not_settled():
    """Before, this was "Significant: 'b' ... it is best in 100 % of 2,000 resamples"."""
    found = studied(ISSUE)
    assert (found.resolution.best, found.resolution.resolved) == ("b", True)
    assert {change.arm for change in found.drift.changes} == {"a", "c"}
    assert (found.drift.before.best, found.drift.since.best) == ("a", "c")
    assert found.drift.best_changed
    assert not found.verdict.settled
    assert found.verdict.word == "not settled"
    text = str(found)
    assert "NOT settled: the best arm changed. Before 2024-02-0" in text
    assert "'a' has the lowest mean, " in text
    assert "Since 2024-02-0" in text
    assert "significant: 'c' has the lowest mean" in text
    assert "Significant: 'b'" not in text
    order = [
        text.index(part) for part in ("2 of 3 arms changed", "Arm 'a' changed around its cost", WHAT_TO_DO, "Take")
    ]
    assert order == sorted(order)
    assert order[-1] < text.index("NOT settled")
    assert html.unescape(found._repr_html_()) == f"<pre>{found}</pre>"
    assert repr(found.drift) == "<Drift: 2 of 3 arms changed>"
    assert repr(found.verdict) == "<Verdict: 'b', not settled>"
    assert repr(found.timeline) == "<Timeline: 1,800 rewards of 3 arms>"


def test_drift_that_does_not_change_the_answer_leaves_it():
    found = studied(SAME)
    assert len(found.drift.changes) == 3
    assert found.verdict.settled
    assert found.verdict.word == "significant"
    assert str(found.verdict).startswith("Significant: 'a' has the lowest mean")
    assert "Arms changed, but 'a' is also significantly better since 2024-02-0" in str(found.verdict)
    assert "3 of 3 arms changed" in str(found)


def test_a_lead_that_is_gone_is_not_settled():
    """b becomes as good as a: a is significantly better over the whole record, but not since the change."""
    found = studied({"a": (10, 10), "b": (20, 10), "c": (30, 30)})
    assert (found.resolution.best, found.resolution.resolved) == ("a", True)
    assert not found.drift.best_changed
    assert not found.verdict.settled
    assert str(found.verdict).startswith("NOT settled: over the whole record, 'a' has the lowest mean")
    assert "NOT significant" in str(found.verdict)


def test_an_insignificant_answer_stays_insignificant():
    found = studied({"a": (10, 10), "b": (10.2, 10.2), "c": (30, 90)})
    assert found.drift
    assert found.verdict.word == "not significant"
    assert str(found.verdict).startswith(str(found.resolution))
    assert "Arms changed. Since" in str(found.verdict)


@pytest.mark.parametrize("time", [True, False])
def test_without_drift_or_without_times_the_verdict_is_that_of_the_comparison(time):
    given = records(STEADY, time=time)
    found = study(given.summary(), log=given.log(times=True) if time else None)
    assert (found.drift is None) == (not time)
    assert not found.drift
    assert found.verdict.settled
    assert str(found.verdict) == str(found.resolution)
    assert found.first_lines == []
    assert "changed" not in str(found)


def test_rewards_are_judged_as_minus_the_costs():
    log = records(ISSUE).log(times=True)
    costs = Timeline.of_log(log).drift(minimize=True)
    rewards = Timeline.of_log(replace(log, rewards=-log.rewards)).drift()
    assert (costs.rows, costs.best_changed) == (rewards.rows, rewards.best_changed)
    assert (costs.before.best, costs.since.best) == (rewards.before.best, rewards.since.best)
    assert "around its cost" in costs.lines[1]
    assert "around its reward" in rewards.lines[1]


def test_a_table_is_compared_at_equal_times():
    rng = np.random.default_rng(0)
    common = rng.lognormal(0.0, 1.0, 400)[:, None]  # hides the difference unless rows stay together
    rewards = common + rng.normal(0.0, 0.1, (400, 2)) + np.where(np.arange(400)[:, None] < 200, [0.2, 0.0], [0.0, 5.0])
    drift = Timeline.of_table(rewards, ("a", "b"), np.arange(400)).drift()
    assert [change.arm for change in drift.changes] == ["b"]
    assert (drift.first, drift.recent) == ("time = 200", 400)
    assert (drift.before.best, drift.before.resolved, drift.before.paired) == ("a", True, True)
    assert drift.since.best == "b"
    samples = {"a": rewards[:, 0], "b": rewards[:, 1]}
    same = study(Recorded.of(samples), table=rewards)
    assert same.drift.changes[0].changed == 201
    assert same.drift.first == "row 401 of 800"
    named = study(Recorded.of(samples), table=Table(np.arange(400), ("a", "b"), rewards))
    assert named.drift.first == "time = 200"
    assert str(named.verdict) == str(Verdict(named.resolution, drift))
    with pytest.raises(InvalidInput, match="table has the arms"):
        study(Recorded.of(samples), table=Table(np.arange(400), ("a", "c"), rewards))


def test_weights_are_used_in_both_parts():
    """The chance of an arm depends on a season that also moves its rewards; without weights, a looks better."""
    rng = np.random.default_rng(0)
    high = rng.random(4_000) < 0.5
    chance = np.where(high, 0.9, 0.1)  # of a
    actions = (rng.random(4_000) > chance).astype(np.int64)
    rewards = rng.normal(2.0 * high + 0.5 * actions, 1.0) + 4.0 * (np.arange(4_000) >= 2_000)
    log = Log(("a", "b"), actions, rewards, np.where(actions == 0, chance, 1.0 - chance))
    assert Timeline.of_log(log).drift().since.best == "a"
    weighted = Timeline.of_log(log, weighted=True).drift()
    assert (weighted.before.best, weighted.since.best) == ("b", "b")


def test_an_arm_may_be_absent_from_a_part():
    """c is only in the first half: it cannot be compared since the change."""
    rng = np.random.default_rng(0)
    actions = np.where(np.arange(1_200) < 600, np.arange(1_200) % 3, np.arange(1_200) % 2)
    rewards = rng.normal(size=1_200) + 3.0 * (np.arange(1_200) >= 600) * (actions == 1)
    drift = Timeline(("a", "b", "c"), actions, rewards).drift()
    assert {rival.arm for rival in drift.since.others} <= {"a", "b"}
    assert drift.first.startswith("row 6")


@cases(
    ("times", "text", "short"),
    [
        ([3, 5], "3", "3"),
        ([0.5, 2.0], "0.5", "0.5"),
        ([1_700_000_000.25, 1_700_000_001.0], "1700000000.25", "1700000000.25"),
        (np.array(["2024-01-02", "2024-03-01"], "datetime64[us]"), "2024-01-02", "2024-01-02"),
        (np.array(["2024-01-02T10:30", "2024-03-01"], "datetime64[us]"), "2024-01-02 10:30", "2024-01-02"),
        (np.array(["2024-01-02T10:30", "2024-01-04"], "datetime64[ns]"), "2024-01-02 10:30", "01-02 10:30"),
        (np.array(["2024-01-02T10:30:05", "2024-01-02T11"], "datetime64[ms]"), "2024-01-02 10:30:05", "10:30:05"),
        (None, "", "row 1"),
    ],
)
def test_times_in_words(times, text, short):
    order = Timeline(("a",), np.zeros(2, np.int64), np.zeros(2), None if times is None else np.asarray(times))
    assert order.time(0) == text
    assert order.short_time(0) == short
    assert order.place(0) == (text or "row 1 of 2")


def test_no_answer_is_taken_away_by_chance():
    """At most as many of 60 steady records change as Binomial(60, 0.05) exceeds with probability 1e-3: 10."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(60):
        rewards = rng.normal(size=600) + np.arange(600) % 2
        order = Timeline(("a", "b"), np.arange(600) % 2, rewards)
        whole = resolution({"a": rewards[::2], "b": rewards[1::2]})
        found.append(Verdict(whole, order.drift()).settled)
    assert found.count(False) <= 10


@pytest.mark.parametrize("table", [False, True])
def test_numbers_as_times_are_not_mistaken_for_years(table):
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(400, 2)) + np.where(np.arange(400)[:, np.newaxis] < 200, [5.0, 0.0], [0.0, 5.0])
    times = 1_800 + np.repeat(np.arange(400), 2)
    frame = pl.DataFrame({"arm": ["a", "b"] * 400, "reward": rewards.ravel(), "ts": times})
    given = open_records(frame, time="ts")
    found = study(given.summary(), **({"table": given.table()} if table else {"log": given.log(times=True)}))
    assert "Before ts = 2000, 'a' has the highest mean" in str(found.verdict)
    assert "; since ts = 2000, 'b'" in str(found.verdict)
    assert "changed around its reward 201 of 400 (ts = 2000)" in str(found)
    assert found.timeline.place(0) == "1800", "charts have the numbers alone"


def test_arms_with_too_few_values_for_the_test_are_told():
    """Twelve arms of 120 costs: the best one swaps with the worst, but few blocks have too few orders to prove it."""
    rng = np.random.default_rng(0)
    level = np.full((120, 12), 20.0)
    level[:60, :2], level[60:, :2] = (1.0, 100.0), (100.0, 1.0)
    table = level * rng.lognormal(0.0, 0.1, level.shape)
    arms = tuple(f"{i:02}" for i in range(12))
    short = Timeline.of_table(table, arms).drift(minimize=True)
    assert (short.changes, short.short) == ((), 12)
    assert short.lines == ["Changes with time cannot be seen in 12 arms with few values."]
    long = Timeline.of_table(np.repeat(table, 4, axis=0), arms).drift(minimize=True)
    assert {change.arm for change in long.changes} == {"00", "01"}
    assert long.short == 0


@pytest.mark.parametrize("recent", [0, 10])
def test_an_arm_that_cannot_be_compared_since_the_change_leaves_it_open(recent):
    """Before, this was settled, although nobody knows what 'c' costs since the change."""
    rng = np.random.default_rng(2)
    arms = np.concatenate(
        [rng.permutation(np.repeat(["a", "b", "c"], 300)), rng.permutation(["a", "b"] * 450 + ["c"] * recent)]
    )
    late = np.arange(len(arms)) >= 900
    costs = (
        np.select([arms == "a", arms == "b"], [10.0, 14.0], 30.0) * (1.0 + late) * rng.lognormal(-0.08, 0.4, len(arms))
    )
    frame = pl.DataFrame({"arm": arms, "reward": costs, "time": np.arange(len(arms))})
    given = open_records(frame, minimize=True)
    found = study(given.summary(), log=given.log(times=True))
    assert found.drift
    assert (found.resolution.best, found.resolution.resolved, found.drift.since.best) == ("a", True, "a")
    assert not found.verdict.settled
    assert found.verdict.word == "not settled"
    assert "Since time = " in str(found.verdict)
    assert "significant: of the arms with at least 20 values, 'a'" in str(found.verdict)
    assert re.search(
        r"Left out of the comparison, which needs 20 values of an arm: 'c' \(\d+ values\)\.$", str(found.verdict)
    )


def test_an_arm_that_is_left_out_of_the_whole_record_does_not_leave_it_open():
    rng = np.random.default_rng(2)
    arms = rng.choice(["a", "b"], 1_800).astype(object)
    arms[[100, 200, 1_500, 1_700]] = "b "
    costs = np.where(arms == "a", 10.0, 14.0) * (1.0 + (np.arange(1_800) >= 900)) * rng.lognormal(-0.08, 0.4, 1_800)
    given = open_records(
        pl.DataFrame({"arm": arms.astype(str), "reward": costs, "time": np.arange(1_800)}), minimize=True
    )
    found = study(given.summary(), log=given.log(times=True))
    assert found.drift
    assert found.verdict.settled
    assert "Significant: of the arms with at least 20 values, 'a'" in str(found.verdict)
    assert "'b ' (4 values)" in str(found.verdict)
