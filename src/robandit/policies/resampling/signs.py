"""Upper confidence bounds from random signs: the shared code of RMM-UCB and MARS.

If the rewards of an arm are symmetric about their mean, flipping the sign of X_i - mean does not change their law. So the rewards,
in k blocks (the i-th is in block i mod k), are compared with m - 1 copies in which signs a_ij are flipped at random. The index at
time t is the largest mean that is not rejected at level 1/m, m = ceil(1 + t (log t)^2). It is the maximum over j of the median over
blocks of U_lj. With a block's length n, the sum N and number M of its rewards with sign minus, and center, the median of block
means,

    U_lj = (n (center - mean_l) / 2 + N) / M.

If M is 0, U_lj is +inf if center is above the block's mean, and -inf if it is below. If they are equal, U_lj is +inf or -inf as
pi(j) is above or below pi(0), for a random permutation pi of 0, ..., m - 1.

Even numbers of blocks: the paper's formulas take the lower middle value as the median, but the largest theta that its definition of
the index (equation 18) does not reject is the UPPER one. With the lower one (``median="printed"``) the level does not hold, and
runs lock in on a bad arm: 13 in 100 for two Gaussian arms with a gap of half a standard deviation and T = 800.

No random numbers are stored. The signs of reward i are the bits of a hash of (run, arm, i, j div 64), keyed by the run's ``rng``
words, which never change. pi is the order of the hashes of (run, arm, j), which stays a uniform permutation when m grows. So each
bound is exact for a number of rewards that is fixed in advance, as in the paper.

The state stores N and M for each arm, block and j. 64 adjacent j form a sheet. Rewards are added in order of arrival when an index
is needed; new j are summed from the arm's rewards, and all are summed again when the number of blocks changes. Until there is room
for a sheet (after the next reward), it is computed in ``spare``. The filter that skips most j keeps every possible maximum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from robandit.errors import NotApplicable
from robandit.kernel.generate import out_of_line
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats, UInts
from robandit.policies._parts.blocks import place
from robandit.policies._parts.counting import Counting, unknown_chance
from robandit.policies._parts.records import state_of
from robandit.policies._parts.reward_store import (
    START,
    USED,
    append,
    empty_store,
    enlarged,
    place_last,
    store_full,
    stored_rewards,
)
from robandit.policies.index import TAKEN, count_tried, no_pulls, select_by_score
from robandit.validation import integer, invalid

WIDTH = 64  # bits of a hash, and j in a sheet
LARGEST_LIMIT = 1_000_000
FIRST_ROOM = 16

# Columns of ``spans``, one row per arm: the first row and the number of rows in ``sums`` and ``tallies`` (a sheet has one row per
# block), stored sheets, rewards in these sheets and in ``blocks``, blocks, j in ``best``. In the last row, ROW is 1 if an arm lacks
# room.
ROW, ROOM, SHEETS, DONE, BLOCKS, SEEN = 0, 1, 2, 3, 4, 5

# Steps of counters, which must be odd, like GOLDEN.
ONE = np.uint64(1)
BY_ARM = np.uint64(0xD1342543DE82EF95)
BY_REWARD = np.uint64(0xDA942042E4DD58B5)


def more_sheets(p: Any, state: Any) -> Any:
    """Return the state with twice the sheets for the arms that need more room."""
    arms = len(state.best)
    old, spans = state.spans, state.spans.copy()
    t = min(int(state.pulls[arms + TAKEN]), p.limit) + 1  # less only if a file contradicts the limit on pulls
    room = spans[:arms, ROOM]
    if not ((room >= 0) & (room <= len(state.sums))).all() or room.sum() != len(state.sums):
        raise ValueError("spans do not fit the sums")  # only in such a file, which may ask for any memory
    for arm in range(arms):
        needed = block_count(p, int(state.slots[arm, USED]), t) * -(-resamples(t) // WIDTH)
        if 4 * needed > 3 * spans[arm, ROOM]:
            spans[arm, ROOM] = 2 * needed
    spans[:arms, ROW] = np.cumsum(spans[:arms, ROOM]) - spans[:arms, ROOM]
    spans[arms, ROW] = 0
    rows = int(spans[:arms, ROOM].sum())
    sums, tallies = np.zeros((rows, WIDTH)), np.zeros((rows, WIDTH), dtype=np.int32)
    for arm in range(arms):
        used = old[arm, SHEETS] * old[arm, BLOCKS]
        target, source = spans[arm, ROW], old[arm, ROW]
        sums[target : target + used] = state.sums[source : source + used]
        tallies[target : target + used] = state.tallies[source : source + used]
    return state._replace(spans=spans, sums=sums, tallies=tallies)


def sheets_full(s: Any) -> bool:
    """Return whether some arm has no room for all its sheets."""
    return s.spans[s.spans.shape[0] - 1, ROW] != 0


def resamples(t: int) -> int:
    """Return m - 1 with m = ceil(1 + t (log t)^2), the number of copies at time t.

    >>> resamples(2), resamples(2000)
    (1, 115548)
    """
    level = math.log(float(t))
    return math.ceil(1.0 + t * level * level) - 1


def block_count(p: Any, n: int, t: int) -> int:
    """Return the number of blocks of n rewards at time t: floor(min(17 log t, sqrt n)), at least 1."""
    if p.blocks == 1:
        return 1
    return max(1, math.floor(min(17.0 * math.log(float(t)), math.sqrt(float(n)))))


def spelled(seconds: float) -> str:
    """Return a duration in words.

    >>> spelled(90.0), spelled(1e6)
    ('2 minutes', '12 days')
    """
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{math.ceil(seconds)} seconds"


@out_of_line
def index(p: Any, s: Any, arm: int) -> float:
    """Return the arm's upper confidence bound at the next pull, and update its sheets."""
    t = min(s.pulls[s.best.shape[0] + TAKEN], p.limit) + 1  # less only if a file contradicts the limit on pulls
    last = resamples(t)
    n = s.slots[arm, USED]
    k = min(block_count(p, n, t), s.blocks.shape[1])  # the same
    if s.spans[arm, BLOCKS] != k:
        s.spans[arm, BLOCKS] = k
        s.spans[arm, SHEETS] = s.spans[arm, DONE] = 0
        for block in range(k):
            s.blocks[arm, block] = 0.0
    done = s.spans[arm, DONE]
    if done < n:
        for i in range(done, n):
            s.blocks[arm, i % k] += s.pool[0, s.slots[arm, START] + i]
        s.spans[arm, SEEN] = 0
        s.best[arm] = -math.inf
    best = s.best[arm]
    if s.spans[arm, SEEN] >= last or best == math.inf:
        return best
    shift(s, arm, n, k)
    rank = k // 2 if p.upper == 1 else (k - 1) // 2  # of the median of k sorted U_lj
    stored = s.spans[arm, SHEETS]
    for sheet in range(s.spans[arm, SEEN] // WIDTH, (last + WIDTH - 1) // WIDTH):
        if best == math.inf and (done == n or sheet >= stored):
            break  # the maximum is reached, and all stored sheets have all rewards
        if (sheet + 1) * k > s.spans[arm, ROOM]:
            s.spans[s.spans.shape[0] - 1, ROW] = 1
        sums, tallies = s.spare, s.spare_tallies
        row = first = 0
        if (sheet + 1) * k <= s.spans[arm, ROOM] and sheet <= stored:
            sums, tallies = s.sums, s.tallies
            row = s.spans[arm, ROW] + sheet * k
            if sheet < stored:
                first = done
            else:
                stored += 1
        flip(s, arm, sheet, first, n, k, sums, tallies, row)
        best = raised(s, arm, sheet, last, k, rank, sums, tallies, row, best)
    s.spans[arm, SHEETS] = stored
    s.spans[arm, DONE] = n
    s.spans[arm, SEEN] = last
    s.best[arm] = best
    return best


def length(n: int, k: int, block: int) -> int:
    """Return the number of rewards in a block, out of n."""
    return (n - block + k - 1) // k


def center(s: Any, arm: int) -> float:
    """Return the lower median of the means of the arm's blocks."""
    k = s.spans[arm, BLOCKS]
    for block in range(k):
        s.values[block] = s.blocks[arm, block] / length(s.spans[arm, DONE], k, block)
    place(s.values, 0, k - 1, (k - 1) // 2)
    return s.values[(k - 1) // 2]


def shift(s: Any, arm: int, n: int, k: int) -> None:
    """Set the shifts of the blocks, n (center - mean) / 2, which are exactly 0 where center equals the mean."""
    s.spans[arm, DONE] = n
    middle = center(s, arm)
    for block in range(k):
        size = length(n, k, block)
        s.shifts[block] = 0.5 * size * (middle - s.blocks[arm, block] / size)


def signs(rng: UInts, arm: int, i: int, sheet: int) -> np.uint64:
    """Return the signs of reward i of an arm for j = 64 sheet, ..., 64 sheet + 63. A set bit is a minus."""
    counter = rng[0] + np.uint64(arm) * BY_ARM + np.uint64(i) * BY_REWARD + np.uint64(sheet) * GOLDEN
    return mixed(mixed(counter) ^ rng[1])


def place_of(rng: UInts, arm: int, j: int) -> np.uint64:
    """Return the hash whose order over j = 0, ..., m - 1 is the random permutation pi of an arm."""
    return mixed(mixed(rng[2] + np.uint64(arm) * BY_ARM + np.uint64(j) * GOLDEN) ^ rng[3])


@out_of_line
def flip(s: Any, arm: int, sheet: int, first: int, n: int, k: int, sums: Floats, tallies: Any, row: int) -> None:
    """Add the rewards from ``first`` to n to the sheet at ``row``. If ``first`` is 0, reset the sheet first."""
    if first == 0:
        for r in range(row, row + k):
            for b in range(WIDTH):
                sums[r, b] = 0.0
                tallies[r, b] = 0
    for i in range(first, n):
        bits = signs(s.rng, arm, i, sheet)
        reward = s.pool[0, s.slots[arm, START] + i]
        r = row + i % k
        for b in range(WIDTH):
            minus = (bits >> np.uint64(b)) & ONE != 0
            sums[r, b] += reward if minus else 0.0
            tallies[r, b] += 1 if minus else 0


@out_of_line
def raised(
    s: Any, arm: int, sheet: int, last: int, k: int, rank: int, sums: Floats, tallies: Any, row: int, best: float
) -> float:
    """Return the largest of ``best`` and the U_j of the sheet at ``row``."""
    if best == math.inf:
        return best
    votes = s.votes
    majority = k - rank  # this many values above best put the median above it
    for b in range(WIDTH):
        votes[b] = 0 if best > -math.inf else majority
    if best > -math.inf:
        floor = best - 1e-15 * abs(best)  # products are compared, not quotients, and rounding must not drop a candidate
        for block in range(k):
            r = row + block
            by = s.shifts[block]
            for b in range(WIDTH):
                votes[b] += 1 if by + sums[r, b] > floor * tallies[r, b] else 0
            if by == 0.0:
                for b in range(WIDTH):
                    votes[b] += 1 if tallies[r, b] == 0 else 0
    for b in range(min(WIDTH, last - WIDTH * sheet)):
        if votes[b] >= majority:
            best = max(best, resampled(s, arm, WIDTH * sheet + b, k, rank, sums, tallies, row, b))
    return best


@out_of_line
def resampled(s: Any, arm: int, j: int, k: int, rank: int, sums: Floats, tallies: Any, row: int, b: int) -> float:
    """Return U_j from column b of the sheet at ``row``. j counts from 0."""
    for block in range(k):
        above = s.shifts[block] + sums[row + block, b]
        if tallies[row + block, b] > 0:
            s.values[block] = above / tallies[row + block, b]
        elif above > 0.0 or (above == 0.0 and place_of(s.rng, arm, j + 1) >= place_of(s.rng, arm, 0)):
            s.values[block] = math.inf
        else:
            s.values[block] = -math.inf
    place(s.values, 0, k - 1, rank)
    return s.values[rank]


class Resampled(Counting):
    """Base class of `RMMUCB` and `MARS`, which define ``limit``, ``_seconds(horizon)`` (the time of a run) and ``params()``.

    The parameters are ``blocks`` (1: a single one; 0: the paper's number), ``upper`` (1 for the upper middle value) and ``limit``.
    """

    columns: ClassVar[tuple[str, ...]] = ("mean", "index")
    grows: ClassVar[Mapping[str, int] | None] = {"pool": 1, "sums": 0, "tallies": 0}
    select: ClassVar[Any] = staticmethod(partial(select_by_score, index, stored_rewards))
    chance: ClassVar[Any] = staticmethod(unknown_chance)  # earlier choices depend on the same signs

    @property
    def longest(self: Any) -> int:
        return int(self.limit)

    def validate(self: Any) -> None:
        integer(self.limit, "limit", 1, LARGEST_LIMIT, owner=type(self).__name__)

    def prepared(self: Any, horizon: int | None) -> Any:
        """Return the policy for this horizon, or raise `NotApplicable` if the horizon exceeds the limit."""
        ready = super().prepared(horizon)  # type: ignore[misc]
        if horizon is not None and horizon > self.limit:
            rule, time = f"at most limit = {self.limit}", spelled(self._seconds(horizon))
            cost = f"an index takes {resamples(horizon):,} resamples at the end, and a run about {time}"
            hint = f"{cost}; pass limit={horizon} to run it anyway"
            raise invalid("horizon", horizon, rule, owner=self.label, hint=hint, error=NotApplicable)
        return ready

    def init(self: Any, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_store(arms, 1)
        spans = np.zeros((arms + 1, 6), dtype=np.int64)
        spans[:arms, ROW] = FIRST_ROOM * np.arange(arms)
        spans[:arms, ROOM] = FIRST_ROOM
        rows, most = arms * FIRST_ROOM, block_count(self.params(), self.limit, self.limit)
        return state_of(
            pool=pool,  # (1, rewards)
            slots=slots,
            pulls=no_pulls(arms),
            spans=spans,
            sums=np.zeros((rows, WIDTH)),  # N
            tallies=np.zeros((rows, WIDTH), dtype=np.int32),  # M
            best=np.full(arms, -math.inf),  # the index over the j seen so far
            blocks=np.zeros((arms, most)),  # sums of the rewards
            spare=np.zeros((most, WIDTH)),
            spare_tallies=np.zeros((most, WIDTH), dtype=np.int32),
            shifts=np.zeros(most),  # n (center - mean) / 2 of each block of the current arm
            values=np.zeros(most),
            votes=np.zeros(WIDTH, dtype=np.int64),
            rng=np.zeros(4, dtype=np.uint64),
        )

    def grow(self: Any, state: Any) -> Any:
        if store_full(None, state):
            pool, slots = enlarged(state.pool, state.slots)
            state = state._replace(pool=pool, slots=slots)
        return more_sheets(self.params(), state) if sheets_full(state) else state

    def extended(self: Any, state: Any) -> Any:
        longer = super().extended(state)  # type: ignore[misc]
        place_last(longer.slots)
        longer.spans[len(state.best), ROW] = len(state.sums)
        return longer

    @staticmethod
    def full(p: Any, s: Any) -> bool:
        return store_full(p, s) or sheets_full(s)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        s.pool[0, append(s.slots, arm)] = reward
        if s.slots[arm, USED] == 1:
            count_tried(s)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = math.nan
        out[1] = math.inf
        if s.slots[arm, USED] > 0:
            out[1] = index(p, s, arm)
            out[0] = center(s, arm)
