"""The sample is uniform, the extremes and the sums are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.rewards import rewards_within
from robandit.recorded import gather
from robandit.recorded.gather import Lowest, Sample, Sums

ROWS, MOST, TRIES = 60, 20, 1_000


def positions(seed: int, batch: int) -> list[int]:
    """Which of 60 rows of an arm are among its 20, with another arm's rows between them."""
    keys = np.random.SFC64(seed).random_raw(2 * ROWS)
    codes = np.tile(np.array([0, 1], dtype=np.uint16), ROWS)
    values = np.repeat(np.arange(float(ROWS)), 2)
    chosen = Sample(MOST, 10**6)
    for start in range(0, 2 * ROWS, batch):
        part = slice(start, start + batch)
        chosen.add(codes[part], keys[part], values[part], 2)
    return [int(x) for x in chosen.take(2)[0]]


def chi_square(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Of how often every row was chosen; about ROWS - 1 if all are equally likely, its standard deviation sqrt(2 (ROWS - 1)).

    A row is in a sample with probability q = MOST / ROWS, and two rows are negatively correlated, because the size is fixed:
    hence the factor (ROWS - 1) / (ROWS (1 - q) q) of the squares.
    """
    q = MOST / ROWS
    return float(((counts - TRIES * q) ** 2).sum() / (TRIES * q * (1 - q)) * (ROWS - 1) / ROWS)


def test_every_row_is_equally_likely() -> None:
    counts = np.zeros(ROWS, dtype=np.int64)
    for seed in range(TRIES):
        chosen = positions(seed, batch=17)
        assert len(chosen) == MOST
        assert chosen == sorted(set(chosen))
        counts[chosen] += 1
    limit = ROWS - 1 + 5 * math.sqrt(2 * (ROWS - 1))
    assert chi_square(counts) < limit
    # Were the last row left out every tenth time, it would show.
    biased = counts.copy()
    moved = counts[-1] // 10
    biased[-1] -= moved
    biased[0] += moved
    assert chi_square(biased) > chi_square(counts)
    assert chi_square(np.bincount(np.arange(TRIES * MOST) % MOST, minlength=ROWS)) > limit


def test_many_rows_give_the_lowest_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where keys beyond a bound are not taken in: that loses none of the lowest."""
    monkeypatch.setattr(gather, "ROOM", 100)
    rng = np.random.default_rng(3)
    codes = rng.choice(np.array([0, 0, 0, 0, 0, 0, 1, 2], dtype=np.uint16), 40_000)
    keys = np.random.SFC64(4).random_raw(codes.size)
    values = np.arange(float(codes.size))
    for batch in (999, 8_192, 10**6):
        chosen = Sample(500, 1_200)
        most_held = 0
        for start in range(0, codes.size, batch):
            part = slice(start, start + batch)
            chosen.add(codes[part], keys[part], values[part], 3)
            most_held = max(most_held, chosen._held)
        for arm, sample in enumerate(chosen.take(3)):
            mine = np.flatnonzero(codes == arm)
            lowest = np.sort(mine[np.argsort(keys[mine])[:400]])
            assert sample.tolist() == lowest.tolist()
        if batch == 999:
            assert most_held < 4_000  # of 40,000


@settings(max_examples=amount(30, 60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 4)), max_size=80), st.integers(1, 9), st.integers(1, 11))
def test_the_lowest_with_ties(rows: list[tuple[int, int]], most: int, batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather, "ROOM", 4)
        lowest = Lowest(most)
        for start in range(0, len(rows), batch):
            codes = np.array([code for code, _ in rows[start : start + batch]], dtype=np.uint16)
            values = np.array([value for _, value in rows[start : start + batch]], dtype=float)
            lowest.add(codes, values, values, 4)
        values = lowest.take(4)
    for arm in range(4):
        assert sorted(values[arm].tolist()) == sorted(float(v) for code, v in rows if code == arm)[:most]


@settings(max_examples=amount(30, 60), deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), rewards_within()), max_size=30), min_size=1, max_size=5))
def test_sums(batches: list[list[tuple[int, float]]]) -> None:
    sums = Sums()
    for batch in batches:
        sums.add(np.array([c for c, _ in batch], dtype=np.uint16), np.array([x for _, x in batch], dtype=float), 3)
    for arm in range(3):
        mine = [x for batch in batches for c, x in batch if c == arm]
        assert sums.n[arm] == len(mine)
        assert sums.zeros[arm] == mine.count(0.0)
        # Plain rounding of what is below the grid of its batch, then that of the sum and of the quotient.
        below = 0.0
        for batch in batches:
            top = max((abs(x) for _, x in batch), default=0.0)
            rests = [min(abs(x), 2.0**-51 * top * len(batch)) for c, x in batch if c == arm]
            below += len(rests) * 2.0**-53 * sum(rests)
        exact = math.fsum(mine) / max(len(mine), 1)
        assert abs(sums.means()[arm] - exact) <= below / max(len(mine), 1) + 2.0**-51 * abs(exact)


def test_many_batches_do_not_add_up_errors() -> None:
    sums = Sums()
    rng = np.random.default_rng(5)
    rewards = rng.standard_t(1.2, (500, 100)) * 1e3
    for batch in rewards:
        sums.add(np.zeros(100, dtype=np.uint16), batch, 1)
    exact = math.fsum(rewards.ravel()) / rewards.size
    assert sums.means()[0] == pytest.approx(exact, rel=2e-16)
    assert len(sums._parts[0]) <= 66
