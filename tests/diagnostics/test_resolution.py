"""The significance of the best arm: false rates, allowances, blocks, extremes, weights, and invalid input."""

import math

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import assert_invalid, raises
from helpers.rates import coverage, false_rates
from helpers.samples_of import part_of
from robandit.diagnostics import arm_values
from robandit.diagnostics import resolution as public
from robandit.diagnostics.resolution import Resolution, Rival, limits, resolution
from robandit.errors import InvalidInput


@pytest.fixture
def quick(monkeypatch):
    """Fewer resamples, for tests that repeat them."""
    monkeypatch.setattr(arm_values, "RESAMPLES", 300)


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
def test_equal_means_are_seldom_called_significant(pair, quick):
    """At most 5 % in truth, within four standard deviations; without the allowance unlike heavy tails break that."""
    rate, alone = false_rates(*pair, 200, RUNS)
    assert rate <= MOST
    assert rate <= alone
    if set(pair) == {"Gaussian", "Pareto 1.5"}:
        assert alone > MOST, "the negative control"


def test_many_equal_arms_are_seldom_called_significant(quick):
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
def test_a_clear_gap_is_significant(gap, best):
    rng = np.random.default_rng(2)
    found = resolution({"a": rng.normal(size=200), "b": rng.normal(size=2000) + gap, "c": rng.normal(size=200) - 2.0})
    assert (found.best, found.resolved, found.rivals, found.share) == (best, True, (), 1.0)
    assert all(0.0 < each.low < each.difference for each in found.others)
    assert str(found).startswith(f"Significant: '{best}' has the highest mean")
    assert found.caution == ""


def test_heavy_tails_need_a_larger_gap_and_say_so():
    rng = np.random.default_rng(5)
    a, b = rng.pareto(1.5, 1000), rng.normal(size=1000)  # means 2 and 0
    close = resolution({"a": a, "b": b + 2.8})
    assert close.share > 0.99, "the bootstrap alone is sure"
    assert close.rivals == ("a",)
    assert "The bootstrap alone is unreliable here, since 'a' may have an infinite variance on the right" in str(close)
    assert "for values beyond those seen" in str(close)
    assert resolution({"a": a, "b": b + 20.0}).resolved


def test_no_mean_is_never_significant():
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
        "300 values, but only 3 differ from the median; 10 are needed": [0.0] * 297 + [1.0] * 3,
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
        ([1.0, 2.0], None, "samples = .* must be a mapping"),
        ({"a": []}, None, "one row of at least one number"),
        ({"a": [math.nan]}, None, r"rewards\['a'\]\[0\] = nan"),
        ({"a": [1.0], "b": [1.0]}, [[1.0]], r"shape \(1, 1\)"),
        ({"a": [1.0]}, [[math.inf]], "NaN or infinity"),
    ],
    ids=str,
)
def test_invalid_input(given, table, match):
    with pytest.raises(InvalidInput, match=match):
        public(given, table=table)


# --- a part of many rewards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_a_part_agrees_with_all_values(law):
    """A tenth is sampled. The variance of all is known up to the noise of 1,024 units in it, which is added if it is above 0."""
    ratios, alone = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        arms = {name: getattr(rng, law)(size=40_000) for name in "ab"}
        parts = {name: part_of(values, 4000, seed) for name, values in arms.items()}
        (whole,), (part,), (sampled,) = (
            resolution(given).others for given in (arms, parts, {n: p.sample for n, p in parts.items()})
        )
        assert part.arm == whole.arm
        assert part.difference == pytest.approx(whole.difference)
        ratios.append((part.difference - part.low) / (whole.difference - whole.low))
        alone.append((sampled.difference - sampled.low) / (whole.difference - whole.low))
    # max(0, N) has the mean 0.40 and the standard deviation 0.58; ten of it, for a tenth, times the noise of two arms
    noise = 10.0 * math.sqrt(2.0 / 1024 / 2)
    most = 1.0 + noise * (0.40 + 4.0 * 0.58 / math.sqrt(8))
    assert math.sqrt(1.0 - 4.0 * math.sqrt(2.0 / 1024 / 8)) < np.mean(ratios) < math.sqrt(most)
    assert np.mean(alone) > 2.5, "the negative control: a sample alone knows less"


def test_limits_from_a_part_hold_the_mean(quick):
    rng = np.random.default_rng(11)
    held, alone = [], []
    for run in range(RUNS):
        part = part_of(rng.exponential(size=20_000), 300, run)
        low, high, _ = limits(part)
        assert low <= part.mean <= high
        held.append(low <= 1.0 <= high)
        alone.append(high - low < 0.5 * np.subtract(*limits(part.sample)[1::-1]))
    assert np.mean(held) >= 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / RUNS)
    assert np.mean(alone) > 0.9, "and not by being wide"


def test_neighbours_that_are_alike_widen_the_limits_from_a_part():
    rng = np.random.default_rng(12)
    noise = rng.normal(size=40_000)
    slow = np.array(noise)
    for t in range(1, len(slow)):
        slow[t] = 0.9 * slow[t - 1] + noise[t]
    wide, narrow = (np.subtract(*limits(part_of(x, 4000))[1::-1]) for x in (slow, rng.permutation(slow)))
    assert wide > 2.0 * narrow  # sqrt(1.9 / 0.1) = 4.4 in truth, less what extremes lose with their order


@pytest.mark.parametrize(
    "values",
    [np.repeat([0.0, 1.0], 5000), np.arange(2001.0), np.append(np.zeros(9000), np.arange(1.0, 3.0)), np.ones(5000)],
    ids=["ties", "hardly more than the extremes", "rare", "equal"],
)
@pytest.mark.parametrize("sampled", [1, 50, 1000])
def test_odd_parts_give_numbers_or_words(values, sampled):
    low, high, said = limits(part_of(values, sampled))
    assert (math.isnan(low) and "needed" in said) or low <= values.mean() <= high
    assert "nan" not in str(resolution({"a": part_of(values, sampled), "b": values}))


# --- weights --------------------------------------------------------------------------------------------------------------


def logged(n, seed):
    """A is better by 0.5 always; in good hours, when rewards are higher by 4, B is chosen nine times of ten, else once."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.5
    b = rng.random(n) < np.where(good, 0.9, 0.1)
    rewards = rng.normal(size=n) + 4.0 * good - 0.5 * b
    weights = 1.0 / np.where(b == good, 0.9, 0.1)
    return {"A": rewards[~b], "B": rewards[b]}, {"A": weights[~b], "B": weights[b]}


def test_weights_remove_the_confounding_of_a_log():
    samples, weights = logged(8000, 0)
    plain = resolution(samples)
    assert (plain.best, plain.resolved) == ("B", True), "the negative control"
    found = resolution(samples, weights=weights)
    assert (found.best, found.resolved) == ("A", True)
    assert found.mean == pytest.approx(np.average(samples["A"], weights=weights["A"]))
    few = resolution(*(logged(120, 1)[:1]), weights=logged(120, 1)[1])
    assert not (few.resolved and few.best == "B")


def test_weighted_limits_are_as_wide_as_chance(quick):
    """Over many logs B, the worse one, is called the best in 5 % at most; and limits hold the difference."""
    wrong, held = [], []
    for seed in range(RUNS):
        samples, weights = logged(600, seed)
        found = resolution(samples, weights=weights)
        (rival,) = found.others
        wrong.append(found.resolved and found.best == "B")
        held.append(rival.low <= (0.5 if found.best == "A" else -0.5))
    assert np.mean(wrong) <= MOST
    assert np.mean(held) >= 0.975 - 4.0 * math.sqrt(0.975 * 0.025 / RUNS)


def test_weights_need_all_rewards():
    part = part_of(np.arange(5000.0), 100)
    with raises(InvalidInput, parameter="weights", rule="None, since not all rewards of 'a' are kept"):
        resolution({"a": part, "b": [1.0]}, weights={"a": np.ones(100), "b": [1.0]})


def test_equal_weights_agree_with_none():
    rng = np.random.default_rng(13)
    samples = {name: rng.normal(size=3000) + i for i, name in enumerate("ab")}
    plain, equal = resolution(samples), resolution(samples, weights={name: np.full(3000, 7.0) for name in "ab"})
    assert equal.others[0].low == pytest.approx(plain.others[0].low)
    assert equal.share == plain.share


def test_weights_so_unlike_that_few_values_count():
    rng = np.random.default_rng(14)
    samples = {"a": rng.normal(size=100) + 9.0, "b": rng.normal(size=100)}
    found = resolution(samples, weights={"a": np.append(np.full(99, 1.0), 1e4), "b": np.ones(100)})
    assert not found.resolved
    assert "'a' has 100 values, but weights so unequal that they count for 1.02, 20 are needed" in str(found)


@pytest.mark.parametrize(
    ("weights", "table", "match"),
    [
        ({"a": [1.0]}, None, "'b' has none"),
        ([1.0], None, "mapping from every arm"),
        ({"a": [1.0], "b": [1.0, 1.0]}, None, r"weights\['b'\] = .* must be one weight per reward: 1, not 2"),
        ({"a": [0.0], "b": [1.0]}, None, r"weights\['a'\] = .* must be > 0"),
        ({"a": [math.inf], "b": [1.0]}, None, "must be a finite number"),
        ({"a": [1.0], "b": [1.0]}, [[1.0, 2.0]], "give one of the two"),
    ],
    ids=str,
)
def test_invalid_weights(weights, table, match):
    with pytest.raises(InvalidInput, match=match):
        public({"a": [1.0], "b": [1.0]}, weights=weights, table=table)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("gap", [0.0, 0.02, 2.0])
def test_costs_are_compared_as_negated_rewards(gap, paired):
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.pareto(1.6, 400), rng.normal(1.0, 1.0, 400), rng.pareto(1.6, 400) + gap])
    costs = dict(zip("abc", table.T, strict=True))
    rewards = {arm: -x for arm, x in costs.items()}
    options = ({"table": table}, {"table": -table}) if paired else ({}, {})
    found, plain = resolution(costs, minimize=True, **options[0]), resolution(rewards, **options[1])
    assert found.minimize
    assert found.mean == -plain.mean
    assert (found.best, found.share, found.rivals) == (plain.best, plain.share, plain.rivals)
    for ours, theirs in zip(found.others, plain.others, strict=True):
        numbers = (ours.arm, ours.difference, ours.low, ours.allowance, ours.excluded)
        assert numbers == (theirs.arm, theirs.difference, theirs.low, theirs.allowance, theirs.excluded)
        if not paired:
            turned = theirs.why.replace("left", "RIGHT").replace("right", "left").replace("RIGHT", "right")
            assert ours.why == turned
    assert "has the lowest mean" in str(found)
    assert "highest" not in str(found)
    assert " (lower by" not in str(found)
    assert resolution(costs, **options[0]).best != found.best, "the negative control"


def test_the_sign_is_checked():
    for value in (1, "yes", None):
        assert_invalid(lambda value=value: resolution({"a": [1.0]}, minimize=value), "minimize", "True or False")


def rival(arm, difference, low, allowance=0.0, why="", minimize=False):
    return Rival(arm, difference, low, allowance, low > 0.0, why, minimize)


FAT = "the left tail of 'a' is heavy"
SENTENCES = {
    "There is one arm only, 'a': nothing is decided yet. Record a second arm.": [],
    "Significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, and with 95 % confidence over all arms it "
    "is better than the other arm, by at least 0.5 ('b').": [rival("b", 1.0, 0.5)],
    "Significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, and with 95 % confidence over all arms it "
    "is better than each of the 2 others, by at least 0.2 ('c').": [rival("b", 1.0, 0.5), rival("c", 3.0, 0.2)],
    "Significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, and with 95 % confidence over all arms it "
    "is better than the other arm, by at least 0.5 ('b'). The bootstrap alone is unreliable here, since the left tail of 'a' is "
    "heavy. The number includes an allowance for that.": [rival("b", 1.0, 0.5, 0.1, FAT)],
    "NOT significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, but with 95 % confidence over all arms "
    "one arm is not excluded: 'b' (lower by 1, but perhaps higher by 0.5).": [rival("b", 1.0, -0.5), rival("c", 3.0, 0.2)],
    "NOT significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, but with 95 % confidence over all arms "
    "2 arms are not excluded: 'b' (not lower at all); 'c' (lower by 1, but perhaps higher by 0).": [
        rival("b", 0.0, 0.0), rival("c", 1.0, 0.0),
    ],
    "NOT significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, but with 95 % confidence over all arms "
    "one arm is not excluded: 'b' (lower by 1, but perhaps higher by 0.5, 0.1 of it for values beyond those seen). The bootstrap "
    "alone is unreliable here, since the left tail of 'a' is heavy.": [rival("b", 1.0, -0.5, 0.1, FAT)],
    "NOT significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, but no other arm is excluded, since "
    "'a' has 5 values, 20 are needed.": [rival(arm, 1.0, math.nan, 0.0, "'a' has 5 values, 20 are needed") for arm in "bc"],
    "NOT significant: 'a' has the highest mean, 5; it is best in 99.5 % of 2,000 resamples, but with 95 % confidence over all arms "
    "one arm is not excluded: 'b' ('b' has 5 values, 20 are needed).": [
        rival("b", 1.0, math.nan, 0.0, "'b' has 5 values, 20 are needed")
    ],
}  # fmt: skip


@cases("expected", SENTENCES)
def test_every_sentence(expected):
    found = Resolution("a", 5.0, 0.995, tuple(SENTENCES[expected]), False, 2000, 0.95)
    assert str(found) == expected


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_better_arm_with_too_few_values_leaves_nothing_significant(sign, weighted):
    """Before, this was "Significant: 'c' has the highest mean"."""
    rng = np.random.default_rng(1)
    samples = {arm: sign * (mean + rng.normal(0.0, 0.1, 200)) for arm, mean in (("a", 1.0), ("b", 2.0), ("c", 3.0))}
    samples |= {"d": np.full(19, sign * 9.0), "e": np.full(2, sign * 0.5)}
    weights = {arm: np.full(len(x), 2.0) for arm, x in samples.items()} if weighted else None
    found = resolution(samples, weights=weights, minimize=sign < 0.0)
    assert (found.best, found.rivals, found.resolved) == ("c", (), False)
    most, more = ("highest", "higher") if sign > 0.0 else ("lowest", "lower")
    head = f"NOT significant: 'd' has a {more} mean ({9.0 * sign:g}) but only 19 values. "
    assert str(found).startswith(f"{head}Of the arms with at least 20 values, 'c' has the {most} mean, ")
    assert str(found).endswith(
        "Left out of the comparison, which needs 20 values of an arm: 'd' (19 values) and 'e' (2 values)."
    )
    del samples["d"]
    found = resolution(samples, minimize=sign < 0.0)
    assert found.resolved
    assert str(found).startswith(f"Significant: of the arms with at least 20 values, 'c' has the {most} mean, ")


def test_the_mean_of_an_arm_that_is_left_out_is_weighted_too():
    samples = {"a": np.arange(50.0), "b": np.arange(50.0) + 20.0, "few": np.array([0.0, 100.0])}
    weights = {"a": np.ones(50), "b": np.ones(50), "few": np.array([9.0, 1.0])}
    assert resolution(samples).left_out == (("few", 2, 50.0),)
    assert resolution(samples, weights=weights).left_out[0].mean == pytest.approx(10.0)


def test_names_that_differ_by_spaces_are_printed_as_they_are():
    samples = {"Mistral small": np.arange(50.0), "b": np.arange(50.0), "Mistral  small": np.zeros(5)}
    assert "'Mistral  small' (5 values)" in str(resolution(samples))
