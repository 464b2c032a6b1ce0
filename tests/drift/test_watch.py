"""The watch of a live bandit: batches, copies, new arms, saved forms, and one alarm per change."""

import itertools
import math
import time
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.invalid import raises
from robandit.drift import SavedWatch, Watch, detector
from robandit.drift import watch as module
from robandit.errors import InvalidInput
from robandit.kernel.shared import Shared

SALT = 2**63 + 12345


@cache
def rewards():
    """Rewards of 3 arms in turns, with ties and with changes: pairs of arm and reward."""
    rng = np.random.default_rng(1)
    arms = rng.choice(3, size=3_000, p=[0.6, 0.3, 0.1]).tolist()
    level = np.repeat([0.0, 2.0, -3.0], 1_000)
    return list(zip(arms, np.round(rng.standard_t(2, 3_000) + level, 1).tolist(), strict=True))


def fed(watch, pairs):
    """Feed pairs in order, neighbours of one arm in one batch; return the alarms."""
    raised, batch = [], []
    for i, (arm, x) in enumerate(pairs):
        batch.append(x)
        if i + 1 == len(pairs) or pairs[i + 1][0] != arm:
            raised += watch.feed(arm, batch)
            batch = []
    return raised


def data(watch):
    return msgspec.msgpack.encode(watch.save())


@cache
def one_by_one():
    watch = Watch(3, SALT)
    raised = [alarm for arm, x in rewards() for alarm in watch.feed(arm, [x])]
    return data(watch), raised


def test_the_changes_are_noticed():
    _, raised = one_by_one()
    assert {alarm.kind for alarm in raised} == {"level up", "level down"}
    assert {alarm.arm for alarm in raised} >= {0, 1}


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(1, 2_999), max_size=6))
def test_the_state_does_not_depend_on_batches(cuts):
    """Saved and loaded at every cut."""
    watch, raised = Watch(3, SALT), []
    borders = [0, *sorted(cuts), 3_000]
    for start, end in itertools.pairwise(borders):
        raised += fed(watch, rewards()[start:end])
        watch = Watch.load(msgspec.msgpack.decode(data(watch), type=SavedWatch), 3, salt=0)
    assert (data(watch), raised) == one_by_one()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([-1e150, -2.0, -0.0, 0.0, 1.0, 5e-324, 1e150]), max_size=40), st.integers(0, 40))
def test_any_rewards_can_be_fed_and_saved(values, cut):
    whole, parts = Watch(1, SALT), Watch(1, SALT)
    whole.feed(0, values)
    parts.feed(0, values[:cut])
    parts = Watch.load(parts.save(), 1, SALT)
    parts.feed(0, np.array(values[cut:]))
    assert data(parts) == data(whole)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_invalid_rewards_are_rejected_and_change_nothing(value):
    watch = Watch(1, SALT)
    watch.feed(0, [1.0, 2.0])
    before = data(watch)
    with raises(InvalidInput, parameter="values[1]", rule="a finite number within +-1e+150"):
        watch.feed(0, [1.0, value, 3.0])
    assert data(watch) == before


@pytest.mark.parametrize(("arm", "values"), [(1, [1.0]), (-1, [1.0]), (0.0, [1.0]), (0, [[1.0]]), (0, ["1"]), (0, 1.0)])
def test_unknown_arms_and_other_values_are_rejected(arm, values):
    with pytest.raises(InvalidInput):
        Watch(1, SALT).feed(arm, values)


def test_each_change_raises_one_alarm():
    rng = np.random.default_rng(2)
    watch = Watch(1, SALT)
    raised = watch.feed(0, rng.normal(np.repeat([0.0, 5.0, 0.0, 5.0], 2_000)))
    assert [alarm.kind for alarm in raised] == ["level up", "level down", "level up"]
    assert [alarm.changed for alarm in raised] == pytest.approx([2_001, 4_001, 6_001], abs=5)
    assert watch.alarms == raised


def test_the_newest_alarms_are_kept(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    watch = Watch(1, SALT)
    raised = watch.feed(0, np.random.default_rng(2).normal(np.repeat([0.0, 5.0, 0.0, 5.0], 500)))
    assert len(raised) == 3
    assert watch.alarms == raised[1:]
    assert Watch.load(watch.save(), 1, 0).alarms == raised[1:]


def test_columns_of_a_table_are_accepted():
    table = np.random.default_rng(6).normal(size=(50, 2))
    one, other = Watch(1, SALT), Watch(1, SALT)
    one.feed(0, table[:, 1])
    other.feed(0, table[:, 1].tolist())
    assert data(one) == data(other)


def test_the_salt_matters_and_any_integer_is_one():
    values = np.round(np.random.default_rng(3).normal(size=100))
    states = set()
    for salt in (0, 1, -1, 2**64):
        watch = Watch(1, salt)
        watch.feed(0, values)
        states.add(data(watch))
    assert len(states) == 3, "2^64 is 0"


def test_an_extended_watch_is_independent():
    watch = Watch(2, SALT)
    fed(watch, [(0, 1.0), (1, 2.0)])
    before, other = data(watch), watch.extended()
    other.feed(0, np.random.default_rng(4).normal(np.repeat([0.0, 9.0], 400)))
    assert data(watch) == before
    assert watch.alarms == [] != other.alarms


def test_an_added_arm_is_like_one_that_was_there():
    grown, whole = Watch(2, SALT), Watch(3, SALT)
    early = [pair for pair in rewards()[:1_500] if pair[0] < 2]
    assert fed(grown, early) == fed(whole, early)
    old = grown
    grown = grown.extended()
    assert fed(grown, rewards()[1_500:]) == fed(whole, rewards()[1_500:])
    assert data(grown) == data(whole)
    assert len(old.save().rows) == 2


def test_the_saved_form_is_small():
    watch = Watch(1000, SALT)
    assert len(data(watch)) < 1000 * 160
    watch.feed(0, np.random.default_rng(5).normal(size=1_000))
    assert len(watch.save().rows[0]) <= 10_000


def test_older_files_and_other_layouts_begin_anew():
    saved = Watch(2, SALT).save()
    saved.layout += 1
    saved.rows = [b"of another size"]
    for each in (None, saved):
        assert data(Watch.load(each, 2, 5)) == data(Watch(2, 5))


def damaged(row, column, value):
    unpacked = module._unpacked(row)
    unpacked[column] = value
    return module._packed(unpacked)


@pytest.mark.parametrize("value", [-1.0, 0.5, np.nan, np.inf, 1e300, 2e9])
def test_damaged_counts_are_rejected(value):
    """They would be positions in memory. 2e9 is more than the arm's age."""
    watch = Watch(1, SALT)
    watch.feed(0, [1.0, 2.0, 3.0])
    saved = watch.save()
    saved.rows[0] = damaged(saved.rows[0], detector.LENGTH, value)
    assert Watch.load(saved, 1, 0) is None


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b + b"\0" * 8, lambda b: b"", lambda b: b"\xff" * len(b)]
)
def test_damaged_rows_are_rejected(damage):
    watch = Watch(1, SALT)
    watch.feed(0, [1.0, 2.0, 3.0])
    saved = watch.save()
    saved.rows[0] = damage(saved.rows[0])
    assert Watch.load(saved, 1, 0) is None


def test_a_wrong_number_of_arms_or_salt_is_rejected():
    saved = Watch(2, SALT).save()
    assert Watch.load(saved, 3, 0) is None
    saved.salt = -1
    assert Watch.load(saved, 2, 0) is None


@pytest.fixture
def not_compiled(monkeypatch):
    """As in a process that has not compiled the detector."""
    detector = Shared(module.watch_all, "drift detector", (module.new_state(1), 0, np.zeros(1), 0, np.uint64(0)))
    monkeypatch.setattr(module, "DETECTOR", detector)


def test_an_interpreted_watch_has_the_same_alarms_and_state(not_compiled):
    """It changes between interpreted and compiled at random."""
    generator = np.random.default_rng(2)
    watch, raised = Watch(3, SALT), []
    watch.prepare("never")
    compiled = module.DETECTOR.compiled()
    for start in range(0, 3_000, 100):
        module.DETECTOR.found[:] = [compiled] * int(generator.random() < 0.5)
        raised += fed(watch, rewards()[start : start + 100])
    assert (data(watch), raised) == one_by_one()


def test_an_interpreted_watch_rejects_what_a_compiled_one_rejects(not_compiled):
    watch = Watch(1, SALT)
    watch.prepare("never")
    before = data(watch)
    for value in (math.nan, math.inf, 2e150):
        with raises(InvalidInput, parameter="values[1]", rule="a finite number within +-1e+150"):
            watch.feed(0, [1.0, value])
    assert data(watch) == before
    assert module.DETECTOR.found == []


def test_a_watch_is_compiled_in_the_background(not_compiled):
    watch = Watch(1, SALT)
    watch.prepare("background")
    end = time.monotonic() + 120.0
    while not module.DETECTOR.found:
        watch.feed(0, [1.0])
        assert time.monotonic() < end
        time.sleep(0.01)
    assert module.DETECTOR.ready() is module.DETECTOR.found[0]
