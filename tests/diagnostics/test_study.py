"""The study of recorded rewards: on known laws, few values, extremes, and a sample of many."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import raises
from helpers.samples_of import drawn
from robandit.diagnostics.study import ArmStudy, Study, study
from robandit.errors import InvalidInput
from robandit.laws import Pareto
from robandit.recorded.summary import ArmRecord, BadRows, Recorded


def of(**arms):
    return study(Recorded.of(arms))


def one(values):
    return of(a=values).arms[0]


@pytest.fixture(scope="module")
def latency():
    """Negated latencies with a heavy left tail, and Gaussian ones."""
    rng = np.random.default_rng(0)
    heavy = -(rng.pareto(1.4, 20_000) + 1.0)
    return study(Recorded.of({"heavy": heavy, "light": rng.normal(size=20_000) - 3.5}))


def test_a_heavy_and_a_light_arm(latency):
    heavy, light = latency.arms
    assert (heavy.left.variance, heavy.right.variance) == ("infinite", "light")
    assert (light.left.variance, light.right.variance) == ("light", "light")
    stated = heavy.left.stated
    assert stated.low < 1.4 < stated.high < 2.0
    assert heavy.left.words == f"heavy: the variance is likely infinite (index {stated.low:.2f} to {stated.high:.2f})"
    assert light.left.words == "no heavy tail visible"
    assert latency.headline == "Heavy tails: the variance of 1 of 2 arms is likely infinite."
    assert heavy.skew == "not right-skewed"
    assert latency.advice.arm in ("heavy", "light")


def test_the_means_stand_side_by_side_with_what_they_assume(latency):
    sample, trimmed, blocks, median = latency.arms[0].means
    assert [each.name for each in latency.arms[0].means] == ["sample mean", "trimmed mean", "median of means", "median"]
    truth = -1.4 / 0.4
    assert sample.low < truth < sample.high
    assert "as fitted" in sample.assumed
    assert trimmed.high > truth
    assert trimmed.low == -math.inf, "left skewness is seen, so there is no lower limit"
    assert "left-skewed" in trimmed.note
    assert (blocks.low, blocks.high, blocks.assumed) == (-math.inf, math.inf, "")
    assert median.low < -(2.0 ** (1 / 1.4)) < median.high
    light = latency.arms[1].means
    assert light[1].low < -3.5 < light[1].high
    assert "light tails" in light[0].assumed
    mirrored = one(-latency.recorded.arms[0].sample).means[1]
    assert mirrored.high == math.inf
    assert "right-skewed" in mirrored.note


def test_limits_of_the_median_by_hand():
    # P(Binomial(10, 1/2) < 2) = 11 / 1024 = 0.011, and 56 / 1024 = 0.055 for one more
    median = one(np.arange(1.0, 11.0)).means[3]
    assert (median.low, median.value, median.high) == (2.0, 5.5, 9.0)
    few = one([1.0, 2.0, 3.0]).means[3]
    assert (few.low, few.high) == (-math.inf, math.inf)
    assert few.note == "no limits from 3 values"
    for n in (6, 50, 400):  # against a search of all ranks
        rank = max(r for r in range(n // 2) if sum(math.comb(n, j) for j in range(r)) <= 0.025 * 2**n)
        assert one(np.arange(1.0, n + 1.0)).means[3].low == rank


def test_limits_of_the_median_hold_it():
    rng = np.random.default_rng(1)
    from robandit.diagnostics.study import _median

    ends = [_median(rng.pareto(0.7, 80)) for _ in range(300)]
    truth = 2.0 ** (1 / 0.7) - 1.0
    covered = np.mean([each.low <= truth <= each.high for each in ends])
    assert covered >= 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / 300)
    assert np.mean([each.low <= 2.0 * truth <= each.high for each in ends]) < 0.5, "the negative control"


def test_shares_of_the_largest_by_hand():
    found = one([-50.0, *[1.0] * 30, 20.0]).concentration
    assert (found.first, found.ten, found.percent) == (0.5, 0.78, 0.5)  # of 100; 1 % of 32 is one reward
    assert found.exact
    assert math.isnan(one([0.0] * 5).concentration.first)


def record(values, sampled, **more):
    """A record that keeps a sample of the values only."""
    ordered = np.sort(values)
    given = {
        "arm": "a",
        "n": len(values),
        "zeros": int(np.sum(values == 0.0)),
        "mean": float(values.mean()),
        "least": float(ordered[0]),
        "greatest": float(ordered[-1]),
        "sample": values[:sampled],
        "whole": sampled == len(values),
        "smallest": ordered[:1000],
        "largest": ordered[::-1][:1000],
    }
    return study(Recorded((ArmRecord(**{**given, **more}),), len(values), BadRows(), "memory")).arms[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extremes_are_exact_although_the_sample_has_none_of_them(sign):
    values = sign * np.append(np.random.default_rng(2).random(50_000), [1e6, 3e6])
    whole, part = record(values, len(values)), record(values, 5000)
    assert part.concentration.exact
    for name in ("first", "ten", "percent"):
        assert getattr(part.concentration, name) == pytest.approx(getattr(whole.concentration, name))
    mixed = record(np.append(values, -sign), 5000).concentration
    assert not mixed.exact


def test_few_values_are_unknown_and_say_so():
    arm = one(np.random.default_rng(3).normal(size=60))
    assert arm.left.variance == "unknown"
    assert arm.left.words.startswith("unknown: 30 values on the left of")
    assert of(a=[1.0, 2.0]).headline == "Tails unknown: no arm has enough values to see them."
    assert arm.means[1].note.startswith("too few values for it: 60 values")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [0.0],
        [1.0, -2.0],
        [0.0] * 200,
        [5.0] * 30,
        [2e-130] * 50 + [4e-130] * 60,
        [1e150, -1e150] * 100,
        [0.0] * 200 + [1e150],
        np.random.default_rng(4).normal(size=300) * 1e-125,
        np.random.default_rng(4).standard_cauchy(2000) * 1e140,
    ],
    ids=["one", "zero", "two", "zeros", "constant", "tiny", "huge", "rare", "Gaussian tiny", "Cauchy huge"],
)
def test_extremes_give_numbers_or_words(values):
    found = of(a=values, b=0.5 * np.asarray(values))
    for arm in found.arms:
        for each in arm.means:
            assert not math.isnan(each.value) or each.note
            assert each.low <= each.high
            assert (each.assumed != "") == (math.isfinite(each.low) or math.isfinite(each.high))
        for tail in (arm.left, arm.right):
            assert "nan" not in tail.words
    assert "nan" not in str(found.resolution)
    assert "nan" not in str(found.advice)


def test_progress_is_reported_and_arms_keep_their_order():
    told = []
    found = study(
        Recorded.of({"b": [1.0], "a": [2.0], "c": [3.0]}), progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [arm.arm for arm in found.arms] == ["a", "b", "c"]


def test_an_order_in_time_does_not_make_the_median_of_means_another_thing():
    """Two long seasons of unlike rewards: the median of their blocks' means is far from the mean."""
    values = np.concatenate([np.full(700, 0.0), np.full(300, 10.0)]) + np.random.default_rng(5).normal(size=1000)
    assert one(values).means[2].value == pytest.approx(3.0, abs=0.6)


# --- more rewards than are kept -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare():
    """Two arms of 30,000 rewards; the summary keeps 1,500 of them, and the better one in the sample has five huge losses."""
    import polars as pl

    from robandit.recorded import open_records

    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(2, 30_000)) - np.array([[1.5], [1.0]])
    rewards[1, 1500::6000] = -1e5
    frame = pl.DataFrame({"arm": np.repeat(["ok", "rarebad"], 30_000), "reward": rewards.ravel()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robandit.recorded.records.SAMPLE", 1500)
        return open_records(frame).summary(), {"ok": rewards[0], "rarebad": rewards[1]}


def test_losses_that_the_sample_has_not_seen_count(rare):
    recorded, rewards = rare
    assert not any(arm.whole for arm in recorded.arms)
    alone = study(Recorded.of({arm.arm: arm.sample for arm in recorded.arms}))
    assert (alone.resolution.best, alone.resolution.resolved) == ("rarebad", True), "the negative control"
    assert alone.headline == "No heavy tails are visible."
    found, whole = study(recorded), study(Recorded.of(rewards))
    assert found.resolution.best == whole.resolution.best == found.advice.arm == "ok"
    assert found.resolution.mean == pytest.approx(rewards["ok"].mean())
    assert found.resolution.others[0].difference == pytest.approx(whole.resolution.others[0].difference)
    assert "heavy tails" in found.headline
    assert found.headline != alone.headline
    bad = found.arms[1]
    assert bad.left.moment.low < 2.0
    assert bad.means[0].low < bad.means[0].value < bad.means[0].high
    assert bad.means[0].low <= whole.arms[1].means[0].value <= bad.means[0].high
    for name in ("first", "ten", "percent"):
        share = getattr(whole.arms[1].concentration, name)
        assert getattr(bad.concentration, name) == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("law", ["gaussian", "student_1.5", "cauchy", "negated_pareto_1.1", "pareto_1.5", "clicks"])
@pytest.mark.parametrize("sampled", [500, 4000, 6000])
def test_a_mean_lies_within_its_own_limits(law, sampled):
    mean = record(drawn(law, 6000), sampled).means[0]
    assert mean.low <= mean.value <= mean.high
    for equal in (0.1, 1e-130, 1e100 / 3):
        mean = one([equal] * 300).means[0]
        assert mean.low <= mean.value <= mean.high


def test_few_rewards_that_are_all_extremes_are_complete():
    values = np.random.default_rng(3).normal(size=1800)
    part, whole = record(values, 400), one(values)
    assert part.median == whole.median
    assert str(part.left.hill) == str(whole.left.hill)
    assert part.means[3] == whole.means[3]
    assert part.concentration.exact


# --- one best arm ---------------------------------------------------------------------------------------------------------


def test_the_advice_is_for_the_arm_that_the_resolution_names():
    """The median of means would name the other: rare losses pull its mean down."""
    rng = np.random.default_rng(6)
    many = np.where(rng.random(4000) < 0.02, -60.0, 1.0) + 0.1 * rng.normal(size=4000)
    few = rng.exponential(size=4000) - 1.0
    found = of(many=many, few=few)
    from robandit.diagnostics.recommend import leading

    assert leading({"many": many[:300], "few": few[:300]}) == "many"
    assert found.advice.arm == found.resolution.best == "few"
    assert found.advice.case == "right-skewed"


def test_a_rival_that_is_skewed_in_another_way_is_named():
    rng = np.random.default_rng(7)
    up, down = rng.exponential(size=2000), 2.0 - rng.exponential(size=2000)
    found = of(up=up + 0.03, down=down, far=up - 9.0, like=up + 0.02)
    assert (found.advice.arm, found.advice.case) == ("up", "right-skewed")
    assert set(found.resolution.rivals) == {"down", "like"}
    assert [each.arm for each in found.also] == ["down"]
    assert found.also[0].case == "left-skewed or symmetric"
    short = of(up=up + 0.03, down=down[:100])
    assert "down" in short.resolution.rivals
    assert short.also == (), "too few to tell"


def test_the_advice_calls_a_tail_light_where_the_table_does():
    seen = set()
    for seed in range(6):
        found = one(-np.abs(drawn("student_1.5" if seed % 2 else "gaussian", 500, seed)))
        advice = study(Recorded.of({"a": found.record.sample})).advice
        if advice.case == "left-skewed or symmetric":
            (said,) = [reason for reason in advice.reasons if reason.startswith("Their left tail")]
            assert ("no heavy tail visible" in said) == (
                found.left.stated.low > 2.0 and found.left.stated.high == math.inf
            )
            if found.left.variance == "undecided":
                assert "the variance may be infinite" in said
            seen.add(found.left.variance)
    assert len(seen) > 1


# --- costs that are minimised -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "student_1.5", "negated_pareto_1.5", "pareto_1.5", "clicks"])
def test_a_study_of_costs_mirrors_that_of_negated_rewards(name):
    rewards = {"a": drawn(name, 900), "b": drawn("gaussian", 200)}
    plain = study(Recorded.of(rewards))
    costs = study(Recorded.of({arm: -x for arm, x in rewards.items()}, minimize=True))
    assert costs.minimize
    assert costs.headline == plain.headline
    assert costs.advice.policy == plain.advice.policy
    assert (costs.resolution.best, costs.resolution.resolved) == (plain.resolution.best, plain.resolution.resolved)
    for ours, theirs in zip(costs.arms, plain.arms, strict=True):
        assert ours.median == -theirs.median
        assert ours.record.mean == pytest.approx(-theirs.record.mean)
        for mean, other in zip(ours.means, theirs.means, strict=True):
            ends = (mean.value, mean.low, mean.high)
            assert ends == pytest.approx((-other.value, -other.high, -other.low), nan_ok=True), mean.name
        assert (ours.left.variance, ours.right.variance) == (theirs.right.variance, theirs.left.variance)
        assert ours.left.words == theirs.right.words.replace("right", "left")
        assert (ours.about_zero.mirror(), ours.about_median.mirror()) == (theirs.about_zero, theirs.about_median)
        assert ours.skew == theirs.skew.replace("right", "left")
        assert ours.concentration.first == pytest.approx(theirs.concentration.first, nan_ok=True)
        turned = theirs.means[1].note.replace("upper", "LOWER").replace("lower", "upper").replace("LOWER", "lower")
        assert sorted(ours.means[1].note.split()) == sorted(
            turned.replace("right", "LEFT").replace("left", "right").replace("LEFT", "left").split()
        )


def test_a_record_says_whether_it_has_costs():
    assert Recorded.of({"a": [1.0]}).minimize is False
    with raises(InvalidInput, parameter="minimize", rule="True or False"):
        Recorded.of({"a": [1.0]}, minimize=1)


HEADLINES = {
    "Heavy tails: the variance of the arm is likely infinite.": ["infinite"],
    "Heavy tails: the variance of 1 of 3 arms is likely infinite, of 2 more it may be.": [
        "infinite",
        "undecided",
        "undecided",
    ],
    "Perhaps heavy tails: the variance of 1 of 2 arms may be infinite.": ["undecided", "finite"],
    "The arm has heavy tails, but the variance is likely finite.": ["finite"],
    "1 of 2 arms has heavy tails, but the variance is likely finite.": ["finite", "light"],
    "2 of 3 arms have heavy tails, but the variance is likely finite.": ["finite", "light", "finite"],
    "No heavy tails are visible.": ["light", "unknown"],
    "Tails unknown: no arm has enough values to see them.": ["unknown", "unknown"],
}


@cases("expected", HEADLINES)
def test_every_headline(expected):
    light = SimpleNamespace(variance="light")
    arms = [
        ArmStudy(None, 0.0, (), SimpleNamespace(variance=kind), light if kind != "unknown" else SimpleNamespace(variance=kind),
                 None, None, None)
        for kind in HEADLINES[expected]
    ]  # fmt: skip
    assert Study.headline.fget(SimpleNamespace(arms=arms)) == expected


def test_a_study_begins_with_the_objective():
    values = Pareto(tail=1.5).sample(2_000, seed=1)
    recorded = Recorded.of({"a": values, "b": values + 1.0}, minimize=True)
    found = study(recorded, objective="p90")
    assert [value.arm for value in found.values] == ["a", "b"]
    assert found.values[0].value == np.quantile(values, 0.9, method="inverted_cdf")
    assert found.values[0].low < found.values[0].value < found.values[0].high
    assert found.first_lines[0].startswith("p90 of 'a': ")
    assert study(recorded, objective="within:3").values[0].value == (values > 3.0).mean()
    assert study(recorded).values == ()
    with pytest.raises(InvalidInput, match="objective"):
        study(recorded, objective="p0")
