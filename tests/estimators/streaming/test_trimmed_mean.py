from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from helpers.invalid import raises
from helpers.stream_samples import KINDS, sample
from references.plain_streams import PlainTrimmedMean
from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators import TrimmedMean, adaptive_trimmed_mean, trimming_threshold

DELTAS = [0.5, 0.05, 1e-3, 1e-6, 1e-12]


def filled(values) -> TrimmedMean:
    made = TrimmedMean()
    made.update_many(values)
    return made


def figures(accumulator: TrimmedMean, delta: float, **more):
    """Everything that it says, or the kind of refusal."""
    try:
        e = accumulator.estimate(delta, **more)
    except InvalidInput as error:
        return type(error)
    return e.value, e.lower, e.upper, e.threshold, e.share_trimmed, e.n


def close(got: float, wanted: mpf, slack: float = 0.0) -> bool:
    return abs(mpf(got) - wanted) <= mpf(2) ** -52 * abs(wanted) + slack + 5e-324


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_right_to_the_last_digit(kind):
    data = sample(kind, 1200)
    plain = PlainTrimmedMean()
    plain.update_many(data)
    made = filled(data)
    for delta in DELTAS:
        wanted = plain.estimate(delta)
        got = figures(made, delta, bonus="tight")
        if wanted is None:
            assert got is NoThresholdError
            continue
        if wanted["threshold"] > np.finfo(float).max:
            assert got is InvalidInput
            continue
        value, lower, upper, threshold, share, n = got
        assert n == 1200
        assert lower == -math.inf
        assert close(threshold, wanted["threshold"])
        assert share == float(wanted["trimmed"]) / 600
        assert close(value, wanted["mean"])
        level = mp.log(2 / mpf(delta))
        bound = wanted["sd"] * mp.sqrt(2 * level / 600) + 14 * wanted["threshold"] * level / (3 * mpf(599))
        if wanted["mean"] + bound < 1e308:
            assert abs(mpf(upper) - wanted["mean"] - bound) <= mpf(10) ** -14 * (abs(wanted["mean"]) + bound) + mpf(
                "1e-322"
            )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [400, 2001])
def test_agrees_with_the_one_shot_function(kind, n):
    data = sample(kind, n, seed=3)
    made = filled(data)
    for delta in [0.5, 0.05, 1e-6]:
        for more in ({}, {"bonus": "tight"}, {"eps": 0.5, "u": 3.0}):
            try:
                wanted = adaptive_trimmed_mean(data, delta=delta, warn=False, **more)
            except InvalidInput as error:
                with pytest.raises(type(error)):
                    made.estimate(delta, **more)
                continue
            got = made.estimate(delta, **more)
            size = abs(wanted.threshold)
            assert got.threshold == pytest.approx(wanted.threshold, rel=1e-12, abs=1e-323)
            assert got.value == pytest.approx(wanted.value, rel=1e-12, abs=1e-13 * size + 1e-323)
            assert got.upper == pytest.approx(wanted.upper, rel=1e-12, abs=1e-13 * size + 1e-323)
            assert got.lower == pytest.approx(wanted.lower, rel=1e-12, abs=1e-13 * size + 1e-323)
            assert got.share_trimmed == wanted.share_trimmed
            assert (got.delta, got.n, got.assumed) == (wanted.delta, wanted.n, wanted.assumed)
            other = data[1::2]
            raw = trimming_threshold(other, delta / (4 if "u" in more else 2))
            assert got.threshold == pytest.approx(raw, rel=1e-12, abs=1e-323)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_in_any_tree_equal_one_stream_bit_for_bit(kind):
    rng = np.random.default_rng(11)
    data = sample(kind, 6000, seed=1)
    whole = filled(data)
    for _ in range(4):
        cuts = 2 * rng.choice(
            np.arange(1, 3000), size=9, replace=False
        )  # shards of even size keep every value's stream
        parts = [filled(part) for part in np.split(data, np.sort(cuts))]
        while len(parts) > 1:
            a, b = rng.choice(len(parts), size=2, replace=False)
            before = parts[b].to_dict()
            parts[a].merge(parts[b])
            assert parts[b].to_dict() == before
            del parts[b]
        assert parts[0].to_dict() == whole.to_dict()
        for delta in DELTAS:
            assert figures(parts[0], delta) == figures(whole, delta)


def test_odd_shards_equal_any_accumulator_with_the_same_two_multisets():
    rng = np.random.default_rng(5)
    data = sample("student 1.5", 5001)
    cuts = np.sort(rng.choice(np.arange(1, 5000), size=20, replace=False))
    plain, made = PlainTrimmedMean(), TrimmedMean()
    for part in np.split(data, cuts):
        shard = PlainTrimmedMean()
        shard.update_many(part)
        plain.merge(shard)
        made.merge(filled(part))
    wanted = plain.estimate(0.05)
    got = made.estimate(0.05)
    assert close(got.threshold, wanted["threshold"])
    assert close(got.value, wanted["mean"])
    assert got.share_trimmed * len(plain.x) == pytest.approx(float(wanted["trimmed"]))
    made.update_many(np.zeros(len(plain.x) - len(plain.other)))  # the shorter one is filled first
    assert made.to_dict()["n_x"] == made.to_dict()["n_threshold"]


def test_order_within_a_stream_does_not_matter():
    rng = np.random.default_rng(2)
    data = sample("all scales", 4000)
    x, other = data[::2].copy(), data[1::2].copy()
    state = filled(data).to_dict()
    rng.shuffle(x)
    rng.shuffle(other)
    assert filled(np.stack([x, other], axis=1).ravel()).to_dict() == state
    assert filled(np.stack([np.sort(x), np.sort(other)], axis=1).ravel()).to_dict() == state
    assert filled(np.stack([np.sort(x)[::-1], np.sort(other)], axis=1).ravel()).to_dict() == state


@pytest.mark.parametrize("kind", ["pareto 1.2", "cauchy", "all scales", "gaussian", "small integers"])
def test_what_is_let_go_is_never_needed(kind):
    """A threshold asked for later is never below what was put into sums, at the smallest delta too."""
    plain, made = PlainTrimmedMean(), TrimmedMean(delta_min=1e-3)
    data = sample(kind, 3000)
    for start in range(0, 3000, 250):
        plain.update_many(data[start : start + 250])
        made.update_many(data[start : start + 250])
        for delta, parts, more in ((1e-3, 4.0, {"eps": 1.0, "u": 1.0}), (0.3, 2.0, {})):
            wanted = plain.estimate(delta, parts)
            if wanted is not None:
                got = made.estimate(delta, **more)
                assert close(got.value, wanted["mean"])
                assert got.share_trimmed * len(plain.x) == pytest.approx(float(wanted["trimmed"]))
    assert made.lost == 0


def test_dependent_data_are_rejected_and_never_silently_wrong():
    """X large, X' small: no bounded memory can hold all values that must be trimmed."""
    made, plain = TrimmedMean(delta_min=0.01), PlainTrimmedMean()
    rng = np.random.default_rng(0)
    data = np.stack([1e6 * rng.pareto(1.0, 20_000) + 1e6, rng.random(20_000)], axis=1).ravel()
    made.update_many(data)
    assert made.lost > 0
    with pytest.raises(InvalidInput, match=r"dropped for lack of room.*0\.05.*larger delta"):
        made.estimate(0.05)
    again = TrimmedMean.from_dict(made.to_dict())
    assert again.lost == made.lost
    with pytest.raises(InvalidInput, match="were dropped"):
        again.estimate(0.05)
    merged = TrimmedMean(delta_min=0.01)
    merged.update_many(rng.random(300))
    merged.merge(made)
    assert TrimmedMean.from_dict(merged.to_dict()).lost == merged.lost >= made.lost
    with pytest.raises(InvalidInput, match="were dropped"):
        merged.estimate(0.05)
    # Few stored values, but what was lost is remembered: a later, smaller one is not stored as if all its like were there.
    state = made.to_dict()
    few = TrimmedMean(delta_min=0.01)
    few.merge(TrimmedMean.from_dict(state | {"largest_x": state["largest_x"][:10]}))
    assert TrimmedMean.from_dict(few.to_dict()).to_dict()["cut"] == state["cut"]
    # Large X' afterwards raise the threshold above everything that was lost: exact again.
    more = np.stack([np.zeros(40_000), 1e9 * np.ones(40_000)], axis=1).ravel()
    for one in (made, again):
        one.update_many(more)
    plain.update_many(data)
    plain.update_many(more)
    wanted = plain.estimate(0.05)
    for one in (made, again):
        assert close(one.estimate(0.05).threshold, wanted["threshold"])
        assert close(one.estimate(0.05).value, wanted["mean"])


def test_unequal_streams_widen_the_two_sided_bound():
    data = sample("student 1.5", 400)
    equal = filled(data)
    width = equal.estimate(0.05, eps=0.4, u=5.0)
    assert width.upper - width.value == pytest.approx(
        5.6 * 5.0 ** (1 / 1.4) * (math.log(80) / 200) ** (0.4 / 1.4), rel=1e-14
    )
    longer = filled(data)
    for value in data[:50]:
        longer.merge(filled([value]))  # 50 more in X alone
    wide = longer.estimate(0.05, eps=0.4, u=5.0)
    assert wide.upper - wide.value == pytest.approx(width.upper - width.value, rel=1e-14)
    state = equal.to_dict()
    state["n_x"] = 100  # twice as many in X' as in X
    fewer = TrimmedMean.from_dict(state | {"largest_x": [], "cut": 1e9, "sum_x": "0", "squares_x": "0"})
    more = fewer.estimate(0.05, eps=0.4, u=5.0)
    wanted = 5.6 * 5.0 ** (1 / 1.4) * (math.log(80) / 100) ** (0.4 / 1.4) * 2.0 ** (1 / 1.4)
    assert more.upper - more.value == pytest.approx(wanted, rel=1e-14)


def test_exact_zeros_count_in_n_but_give_no_threshold():
    made = TrimmedMean()
    with pytest.raises(NoThresholdError, match="0 of the 0 values in X' are non-zero"):
        made.estimate(0.05)
    made.update_many(np.zeros(1000))
    with pytest.raises(NoThresholdError, match=r"0 of the 500 .* more than 21\.5"):
        made.estimate(0.05)
    made.update_many([0.0, 1.0] * 21)
    with pytest.raises(NoThresholdError, match="21 of the"):
        made.estimate(0.05)
    made.update_many([0.0, 1.0])
    e = made.estimate(0.05)
    assert (e.value, e.n) == (0.0, 1044)
    assert e.threshold == pytest.approx(math.sqrt(22 / (3 + 2 * math.sqrt(2)) / math.log(40)), rel=1e-15)


def test_a_large_mean_does_not_cancel():
    """sd 1e-7 about 1e9: plain sums of squares would have no digit left."""
    data = 1e9 + 1e-7 * np.round(np.random.default_rng(0).normal(size=1000))
    made = filled(data)
    e = made.estimate(0.05)
    plain = PlainTrimmedMean()
    plain.update_many(data)
    assert close(e.value, plain.estimate(0.05)["mean"])
    level = math.log(40)
    spread = (mpf(e.upper) - e.value - 10 * e.threshold * level / 500) / mp.sqrt(2 * level / 500)
    assert abs(spread - plain.estimate(0.05)["sd"]) < 1e-5  # e.upper itself is only known to 1e-7


@pytest.mark.parametrize(
    ("wrong", "parameter", "rule"),
    [
        ({"delta": 1e-13}, "delta", "at least this TrimmedMean's delta_min = 1e-12"),
        *(({"delta": delta}, "delta", "a probability") for delta in (0.0, 1.0, "x")),
        *(({"bonus": bonus}, "bonus", "one of 'paper', 'tight'") for bonus in ("likelihood", "best")),
        ({"eps": 0.5}, "u", "given together"),
        ({"u": 0.5}, "eps", "given together"),
        ({"eps": 1.5, "u": 1.0}, "eps", "0 < eps <= 1"),
        ({"eps": 0.5, "u": -1.0}, "u", "a finite number > 0"),
        ({"eps": 0.5, "u": 1.0, "bonus": "tight"}, "bonus", "'paper' with eps and u"),
    ],
)
def test_wrong_parameters_of_estimate_are_rejected_by_name(wrong, parameter, rule):
    made = filled(sample("gaussian", 1000))
    with raises(InvalidInput, parameter=parameter, rule=rule):
        made.estimate(**({"delta": 0.05} | wrong))


@pytest.mark.parametrize("delta_min", [0.0, 1.0, -1, None, "x", math.nan])
def test_a_wrong_delta_min_is_rejected(delta_min):
    with raises(InvalidInput, parameter="delta_min"):
        TrimmedMean(delta_min=delta_min)
