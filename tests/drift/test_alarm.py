"""An alarm says where an arm changed, what was before and what is after, in the user's sign."""

import msgspec
import numpy as np
import pytest

from robandit.drift import Alarm, Summary, Watch

BEFORE = Summary(low=80.0, median=120.0, high=200.0, mean=130.0)
AFTER = Summary(low=-40.0, median=310.0, high=12_345.0, mean=315.0)


def alarm(kind, before=BEFORE, after=AFTER):
    return Alarm(2, changed=10_412, noticed=10_430, kind=kind, before=before, after=after)


HEAD = "arm 'eu' changed around its reward 10,412: "
END = " (noticed at reward 10,430)"


@pytest.mark.parametrize(
    ("kind", "words", "negated"),
    [
        ("level up", "median 120 -> 310", "median -120 -> -310"),
        ("level down", "median 120 -> 310", "median -120 -> -310"),
        ("low tail", "its low tail grew, 5 % quantile 80 -> -40", "its high tail grew, 95 % quantile -80 -> 40"),
        (
            "high tail",
            "its high tail grew, 95 % quantile 200 -> 12,345",
            "its low tail grew, 5 % quantile -200 -> -12,345",
        ),
    ],
)
def test_text(kind, words, negated):
    assert str(alarm(kind).named("eu")) == HEAD + words + END
    assert str(alarm(kind).named("eu").negated()) == HEAD + negated + END


def test_negating_twice_changes_nothing():
    for kind in ("level up", "level down", "low tail", "high tail"):
        assert alarm(kind).negated().negated() == alarm(kind)
        assert alarm(kind).negated().kind != kind


def test_if_the_quantiles_are_equal_the_means_are_shown():
    coin = alarm("level up", Summary(0.0, 0.0, 1.0, 0.1), Summary(0.0, 0.0, 1.0, 0.3))
    assert str(coin.named("eu")) == f"{HEAD}mean 0.1 -> 0.3{END}"


def test_alarms_can_be_saved():
    saved = msgspec.msgpack.encode(alarm("low tail"))
    assert msgspec.msgpack.decode(saved, type=Alarm) == alarm("low tail")


def first_alarm(values):
    raised = Watch(1, salt=3).feed(0, values)
    assert raised
    return raised[0]


def numbers(summary):
    """Sums of another order have other last digits."""
    return pytest.approx(msgspec.structs.astuple(summary), rel=1e-12)


def test_the_numbers_of_a_shift_are_right():
    """A shift of 3 standard deviations: the position is known up to 5 rewards, the medians up to 5 standard errors."""
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(10.0, 1.0, 3_000), rng.normal(13.0, 1.0, 100)])
    found = first_alarm(values)
    assert (found.arm, found.kind) == (0, "level up")
    assert abs(found.changed - 3_001) <= 5
    assert 3_001 < found.noticed < 3_020
    assert found.before.median == pytest.approx(10.0, abs=5 * 1.25 / 16)
    assert found.after.median == pytest.approx(13.0, abs=5 * 1.25 / np.sqrt(found.noticed - 3_000))
    assert msgspec.structs.astuple(found.before) == numbers(Summary.of(values[:256])), "of the segment's reference"
    assert msgspec.structs.astuple(found.after) == numbers(Summary.of(values[found.changed - 1 : found.noticed]))
    assert first_alarm(-values).kind == "level down"


def test_a_change_inside_the_reference_is_not_mixed_with_it():
    rng = np.random.default_rng(9)
    values = np.concatenate([rng.normal(0.0, 1.0, 150), rng.normal(4.0, 1.0, 60)])
    found = first_alarm(values)
    assert abs(found.changed - 151) <= 3
    assert msgspec.structs.astuple(found.before) == numbers(Summary.of(values[: found.changed - 1]))
    assert found.before.median == pytest.approx(0.0, abs=0.5)
    assert found.after.median == pytest.approx(4.0, abs=1.0)


@pytest.mark.parametrize(("loss", "kind"), [(-1_000.0, "low tail"), (1_000.0, "high tail")])
def test_the_kind_of_a_grown_tail(loss, kind):
    rng = np.random.default_rng(10)
    values = rng.normal(size=6_000)
    values[2_000:][rng.random(4_000) < 0.06] = loss
    found = first_alarm(values)
    assert found.kind == kind
    assert abs(found.changed - 2_001) < 100
    assert f"its {kind} grew" in str(found)


def test_a_change_of_a_young_arm_has_two_sides():
    """The winning bet's excursion may begin with the first reward. The position then comes from the ranks."""
    first = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        watch = Watch(arms=2, salt=0)
        watch.feed(1, -rng.lognormal(0.0, 0.5, 3000))
        rewards = -np.concatenate([2.0 * rng.lognormal(0.0, 0.5, 18), rng.lognormal(0.0, 0.5, 300)])
        for alarm in watch.feed(0, rewards)[:1]:
            assert alarm.before != alarm.after
            assert 1 < alarm.changed <= alarm.noticed
            first += 1
    assert first > 30
