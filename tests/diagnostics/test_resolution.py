"""Which arm is best in the data: how often it is said falsely, what stands in the way, blocks, extremes, refusals."""

import math
import sys

import numpy as np
import pytest

from diagnostics.rates import coverage, false_rates
from robandit.diagnostics import resolution as public
from robandit.diagnostics.resolution import Resolution, limits, resolution
from robandit.errors import InvalidInput


@pytest.fixture
def quick(monkeypatch):
    """Fewer resamples, for tests that repeat them."""
    monkeypatch.setattr(
        sys.modules["robandit.diagnostics.resolution"], "RESAMPLES", 300
    )  # not the function of that name


RUNS = 120
MOST = 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize(
    "pair",
    [
        ("Gaussian", "Gaussian"),
        ("Pareto 2.5", "Pareto 2.5"),
        ("Pareto 1.5", "Pareto 1.5"),
        ("Gaussian", "Pareto 1.5"),
        ("Gaussian", "negated Pareto 1.5"),
    ],
    ids=" and ".join,
)
def test_equal_means_are_seldom_called_resolved(pair, quick):
    """At most 5 % in truth, within four standard deviations; without the allowance unlike heavy tails break that."""
    rate, alone = false_rates(*pair, 200, RUNS)
    assert rate <= MOST
    assert rate <= alone
    if set(pair) == {"Gaussian", "Pareto 1.5"}:
        assert alone > MOST, "the negative control"


def test_many_equal_arms_are_seldom_called_resolved(quick):
    rng = np.random.default_rng(4)
    found = [resolution({str(i): rng.normal(size=60) for i in range(4)}).resolved for _ in range(RUNS)]
    assert np.mean(found) <= MOST


def test_limits_hold_the_mean(quick):
    """Within four standard deviations of 95 %."""
    for law in ("Gaussian", "Pareto 1.5"):
        assert coverage(law, 200, RUNS) >= 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / RUNS)
    rng = np.random.default_rng(0)
    low, high, _ = limits(rng.normal(size=300))
    assert high - low < 0.35, "and not by being wide"


@pytest.mark.parametrize(("gap", "best"), [(1.0, "b"), (-1.0, "a")])
def test_a_clear_gap_is_resolved(gap, best):
    rng = np.random.default_rng(2)
    found = resolution({"a": rng.normal(size=200), "b": rng.normal(size=2000) + gap, "c": rng.normal(size=200) - 2.0})
    assert (found.best, found.resolved, found.rivals, found.share) == (best, True, (), 1.0)
    assert all(0.0 < each.low < each.difference for each in found.others)
    assert str(found).startswith(f"Resolved: '{best}' has the highest mean")
    assert found.caution == ""


def test_heavy_tails_need_a_larger_gap_and_say_so():
    rng = np.random.default_rng(5)
    a, b = rng.pareto(1.5, 1000), rng.normal(size=1000)  # means 2 and 0
    close = resolution({"a": a, "b": b + 2.8})
    assert close.share > 0.99, "the bootstrap alone is sure"
    assert close.rivals == ("a",)
    assert "The bootstrap alone is not to be trusted here, since 'a' may have an infinite variance on the right" in str(
        close
    )
    assert "for values beyond those seen" in str(close)
    assert resolution({"a": a, "b": b + 20.0}).resolved


def test_no_mean_is_never_resolved():
    rng = np.random.default_rng(5)
    found = resolution({"a": rng.normal(size=3000) + 1e6, "b": rng.pareto(0.4, 3000)})
    assert "no mean on the right" in str(found)
    assert not found.resolved


def test_rows_of_a_table_stay_together():
    """What arms have in common does not count; blocks know that neighbours are alike."""
    rng = np.random.default_rng(6)
    common = 50.0 * rng.normal(size=(600, 1))
    rows = common + rng.normal(size=(600, 3)) + [0.0, 0.3, -1.0]
    samples = {name: rows[:, i] for i, name in enumerate("abc")}
    assert not resolution(samples).resolved
    found = resolution(samples, table=rows)
    assert (found.best, found.resolved, found.paired) == ("b", True, True)
    assert found.others[0].difference == pytest.approx(np.mean(rows[:, 1] - rows[:, 0]))


def test_neighbours_that_are_alike_widen_the_limits():
    rng = np.random.default_rng(7)
    noise = rng.normal(size=(1000, 2))
    slow = np.array(noise)
    for t in range(1, 1000):
        slow[t] = 0.9 * slow[t - 1] + noise[t]
    gaps = {}
    for name, rows in (("slow", slow), ("shuffled", rng.permutation(slow))):
        (rival,) = resolution({"a": rows[:, 0], "b": rows[:, 1]}, table=rows).others
        gaps[name] = rival.difference - rival.low
    assert gaps["slow"] > 2.0 * gaps["shuffled"]


def test_too_few_values_are_not_excluded_and_the_words_say_why():
    rng = np.random.default_rng(8)
    good = rng.normal(size=100) + 100.0
    cases = {
        "has 1 value, 20 are needed": [0.0],
        "50 values that are all equal": [0.0] * 50,
        "300 values, but 10 that differ from the median are needed, not 3": [0.0] * 297 + [1.0] * 3,
    }
    for words, other in cases.items():
        found = resolution({"a": good, "b": other})
        assert found.rivals == ("b",)
        assert words in str(found)
        assert math.isnan(found.others[0].low)
    assert resolution({"a": good, "b": [0.0] * 100}).resolved, "a hundred equal values are believed"


def test_ties_and_one_arm():
    tied = resolution({"a": [1.0] * 200, "b": [1.0] * 200})
    assert (tied.best, tied.rivals) == ("a", ("b",))
    assert "not lower at all" in str(tied)
    alone = resolution({"a": [1.0, 2.0]})
    assert (alone.resolved, alone.others) == (True, ())
    assert "one arm only" in str(alone)


def test_the_same_twice_and_in_any_unit():
    rng = np.random.default_rng(9)
    a, b = rng.standard_t(2.0, (2, 5000))
    first, again = (resolution({"a": a, "b": b}) for _ in range(2))
    assert first == again
    for unit in (2.0**480, 2.0**-1000):
        scaled = resolution({"a": a * unit, "b": b * unit})
        assert scaled.others[0].low == pytest.approx(first.others[0].low * unit)
        assert scaled.share == first.share


def test_many_rivals_are_cut_short():
    rng = np.random.default_rng(10)
    found = resolution({str(i): rng.normal(size=30) for i in range(12)})
    assert len(found.rivals) > 6
    assert f"and {len(found.rivals) - 5} more" in str(found)
    assert isinstance(found, Resolution)
    few = resolution({str(i): [float(i), 0.0] for i in range(12)})
    assert len(few.rivals) == 11
    assert str(few).endswith("no other arm is excluded, since '11' has 2 values, 20 are needed.")


@pytest.mark.parametrize(
    ("given", "table", "match"),
    [
        ({}, None, "at least one arm"),
        ([1.0, 2.0], None, "must be a mapping"),
        ({"a": []}, None, "the rewards of 'a' is empty"),
        ({"a": [math.nan]}, None, "nan at position 0"),
        ({"a": [1.0], "b": [1.0]}, [[1.0]], r"shape \(1, 1\)"),
        ({"a": [1.0]}, [[math.inf]], "NaN or infinity"),
    ],
    ids=str,
)
def test_refusals(given, table, match):
    with pytest.raises(InvalidInput, match=match):
        public(given, table=table)
