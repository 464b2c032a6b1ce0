"""Decisions over time: against a plain count, kept up in steps, with columns that widen, and estimated where there are many."""

import json
import math
import random
from collections import Counter
from types import SimpleNamespace

import pytest

from helpers.stores import event, opened, reading
from robandit.service.dashboard import timeline
from robandit.service.dashboard.timeline import COLUMNS, FEWEST_COLUMNS, WINDOWS, Timeline, default_window
from robandit.storage.base import Create

START = 1_800_000_000.0


def log(n, *, step, seed=0):
    """Events with steps of time around ``step`` seconds, some of them 0 and some on the edges of columns."""
    rng = random.Random(seed)
    now, made = START, []
    for seq in range(1, n + 1):
        now = math.ceil(now) if rng.random() < 0.05 else now + rng.choice([0.0, step, 3.0 * step * rng.random()])
        kind = rng.choice(["decided", "decided", "rewarded", "expired", "paused"])
        payload = {} if kind == "paused" else {"arm": rng.choice("abc")}
        made.append(event(seq, kind=kind, payload=json.dumps(payload).encode(), time=now))
    return made


@pytest.fixture
def store(tmp_path):
    with opened(f"sqlite:{tmp_path}/t.db", durability="off") as store:
        store.commit((), (Create(1, "one", b"{}"),))
        yield store


def plain(events, width, now, oldest):
    """The columns, by counting one event after the other."""
    newest = math.floor(now / width)
    decisions = {slot: Counter() for slot in range(oldest, newest + 1)}
    rewards = Counter()
    for each in events:
        slot = math.floor(each.time / width)
        if slot in decisions:
            if each.kind == "decided":
                decisions[slot][json.loads(each.payload)["arm"]] += 1
            rewards[slot] += each.kind == "rewarded"
    return [(slot * width, dict(decisions[slot]), rewards[slot]) for slot in decisions]


def shown(line, now):
    return [
        (start, {arm: count for arm, count in decisions.items() if count}, rewards)
        for start, decisions, rewards in line.columns(now)
    ]


@pytest.mark.parametrize("window", [name for name, (_, span) in WINDOWS.items() if span])
@pytest.mark.parametrize("steps", [1, 40])
def test_a_window_counts_what_is_in_it(store, window, steps):
    span = WINDOWS[window][1]
    events = log(800, step=span / 500)
    store.commit(events, ())
    line = Timeline(SimpleNamespace(number=1, created=START), span)
    with reading(store) as reader:
        for step in range(1, steps + 1):
            last = 800 * step // steps
            now = events[last - 1].time
            line.catch_up(reader, last, now)
            oldest = math.floor(now / line.width) - COLUMNS + 1
            assert shown(line, now) == plain(events[:last], span / COLUMNS, now, oldest)
        later = now + span / 2
        line.catch_up(reader, 800, later)
        assert shown(line, later) == plain(events, span / COLUMNS, later, math.floor(later / line.width) - COLUMNS + 1)
        line.catch_up(reader, 800, now + 3 * span)
        assert not any(decisions for _, decisions, _ in line.columns(now + 3 * span))
    assert not line.sampled


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_all_time_widens_its_columns(store, steps):
    events = log(600, step=2.0)
    store.commit(events, ())
    line = Timeline(SimpleNamespace(number=1, created=START), None)
    widths = []
    with reading(store) as reader:
        for step in range(1, steps + 1):
            last = 600 * step // steps
            now = events[last - 1].time + 0.25
            line.catch_up(reader, last, now)
            columns = shown(line, now)
            assert FEWEST_COLUMNS <= len(columns) <= COLUMNS
            assert columns == plain(events[:last], line.width, now, round(columns[0][0] / line.width))
            counted = sum(sum(decisions.values()) for _, decisions, _ in columns)
            assert counted == sum(each.kind == "decided" for each in events[:last])
            widths.append(line.width)
    assert widths == sorted(widths)
    assert all(math.log2(width).is_integer() for width in widths)
    assert widths[-1] > 8.0


def test_a_column_with_many_events_is_estimated(store, monkeypatch):
    """Shares within 5 standard deviations, also if arms change within the column. The negative control has another share."""
    monkeypatch.setattr(timeline, "MOST_COUNTED", 2_000)
    rng = random.Random(3)
    arms = ["a" if rng.random() < (0.5 if i < 10_000 else 0.1) else "b" for i in range(20_000)]
    store.commit(
        [event(seq, payload=b'{"arm": "%s"}' % arm.encode(), time=START) for seq, arm in enumerate(arms, 1)], ()
    )
    line = Timeline(SimpleNamespace(number=1, created=START), 300.0)
    with reading(store) as reader:
        line.catch_up(reader, 20_000, START + 1.0)
        (counts,) = [decisions for _, decisions, _ in line.columns(START + 1.0) if decisions]
        assert line.sampled
        line.catch_up(reader, 20_000, START + 1_000.0)
    assert not line.sampled  # those columns have left the window
    assert sum(counts.values()) == pytest.approx(20_000, abs=2)
    deviation = math.sqrt(0.3 * 0.7 / 2_000)
    assert abs(counts["a"] / 20_000 - 0.3) < 5 * deviation
    assert abs(counts["a"] / 20_000 - 0.4) > 5 * deviation


def test_the_rate(store):
    store.commit([event(seq, kind="rewarded", time=START + 0.1 * seq) for seq in range(1, 601)], ())
    line = Timeline(SimpleNamespace(number=1, created=START), 300.0)
    with reading(store) as reader:
        line.catch_up(reader, 100, START + 10.0)
        assert line.rate("rewarded", START + 10.0, 30.0) == pytest.approx(10.0)  # since it began
        line.catch_up(reader, 600, START + 60.0)
    for now in (60.0, 60.5, 61.0):
        assert line.rate("rewarded", START + now, 30.0) == pytest.approx(10.0, rel=0.05)
    assert line.rate("rewarded", START + 160.0, 30.0) == 0.0
    assert line.rate("decided", START + 60.0, 30.0) == 0.0


def test_an_experiment_that_was_removed_meanwhile(store):
    line = Timeline(SimpleNamespace(number=9, created=START), None)
    with reading(store) as reader:
        line.catch_up(reader, 5, START + 5.0)
    assert not any(decisions for _, decisions, _ in line.columns(START + 5.0))


def test_the_default_window():
    assert [default_window(age) for age in (0.0, 86_400.0, 86_401.0)] == ["all", "all", "1d"]
