"""A test whether the law of one arm changed in a record of its rewards in order of time, and where.

It compares three series of scores before and after every time: the normal quantiles of the ranks (the level), and whether a reward
is among the lowest 5 % or the highest 5 % (the tails). With S_k the sum of the first k of n standardised scores, the statistic of a
series is the maximum of |S_k| / sqrt(k (n - k) / n) over k from 5 % to 95 % of n.

The p-value comes from permutations of blocks of sqrt(n) neighbours, because rewards cluster in time. So k runs over the ends of
blocks. The smallest p-value of the three series is calibrated by the same permutations. The test is exact if blocks are
exchangeable, as for independent rewards, and approximate if the dependence is short compared with a block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from robandit.drift.alarm import Kind, Summary, difference
from robandit.kernel.types import Floats, Ints

LEAST = 100  # rewards of an arm that is tested
PERMUTATIONS = 999
TAIL = 0.05
MARGIN = 0.05  # share of the rewards at either end where no change is looked for
SEED = 17
TOGETHER = 1 << 22  # sums of permuted blocks in memory at the same time


class Scan(msgspec.Struct, frozen=True):
    """The result of the test of one arm."""

    p_value: float
    position: int  # the estimated number of rewards before the change
    kind: Kind
    grew: bool  # whether a tail grew; True for a level


class Change(msgspec.Struct, frozen=True):
    """A change in a record of an arm's rewards."""

    arm: Any
    changed: int
    """Number of the first reward after the change, as estimated; rewards are counted from 1."""
    rewards: int
    p_value: float
    kind: Kind
    grew: bool
    before: Summary
    after: Summary
    time: str = ""
    """The time of the change, as text; empty if it is unknown."""

    def __str__(self) -> str:
        """Return a sentence."""
        return self.sentence()

    def sentence(self, noun: str = "reward") -> str:
        """Return a sentence about rewards, or about values with another name."""
        what = difference(self.kind, self.before, self.after, "grew" if self.grew else "shrank")
        place = f"around its {noun} {self.changed:,} of {self.rewards:,}"
        place += f" ({self.time})" if self.time else ""
        return f"arm {self.arm!r} changed {place}: {what} (p = {self.p_value:.2g})"


def changed_arms(rewards: Mapping[Any, Floats], level: float) -> tuple[Change, ...]:
    """Return the arms that changed. If none changed, any is returned with probability at most ``level``.

    Arms with fewer than `LEAST` rewards are not tested. P-values are multiplied by the number of tested arms (Bonferroni).
    """
    tested = {arm: x for arm, x in rewards.items() if len(x) >= LEAST}
    permutations = max(PERMUTATIONS, math.ceil(2 * len(tested) / level))  # so that the least p-value is small enough
    found = []
    for arm, x in tested.items():
        result = scan(x, permutations)
        p_value = min(1.0, result.p_value * len(tested))
        if p_value <= level:
            k = result.position
            summaries = Summary.of(x[:k]), Summary.of(x[k:])
            found.append(Change(arm, k + 1, len(x), p_value, result.kind, result.grew, *summaries))
    return tuple(found)


def can_be_named(rewards: int, tested: int, level: float) -> bool:
    """Return whether the clearest change of an arm with this many rewards would be named: few blocks have few orders.

    >>> can_be_named(120, 3, 0.05), can_be_named(120, 12, 0.05), can_be_named(400, 12, 0.05)
    (True, False, True)
    """
    blocks = rewards // math.ceil(math.sqrt(rewards)) if rewards else 0
    return rewards >= LEAST and 2 * tested <= level * math.comb(blocks, blocks // 2)


def scan(x: Floats, permutations: int = PERMUTATIONS, block: int | None = None) -> Scan:
    """Test at least `LEAST` rewards, in order of time. ``block`` is the size of a block, by default sqrt(n)."""
    size = math.ceil(math.sqrt(len(x))) if block is None else block
    blocks = len(x) // size
    skipped = len(x) - blocks * size  # the oldest rewards, so that all blocks have the same size
    scores = _scores(x[skipped:])
    sums = scores.reshape(3, blocks, size).sum(axis=2)
    statistics = np.vstack([_statistics(sums[:, np.newaxis], size), *_permuted(sums, size, permutations)])
    ranks = np.column_stack([_rank_from_top(column) for column in statistics.T])
    smallest = ranks.min(axis=1)
    series = int(np.lexsort((-statistics[0], ranks[0]))[0])
    k = _position(scores[series])
    rose = bool(scores[series, :k].sum() < 0.0)
    kind: Kind = ("level up" if rose else "level down", "low tail", "high tail")[series]
    return Scan(float((smallest <= smallest[0]).mean()), skipped + k, kind, rose or series == 0)


def _scores(x: Floats) -> Floats:
    """Return the three series, standardised; a constant series becomes 0."""
    from scipy.special import ndtri

    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    rank = ((2 * ends - counts) / (2 * len(x)))[places]  # equal rewards have equal ranks in (0, 1)
    scores = np.stack([ndtri(rank), rank <= TAIL, rank >= 1.0 - TAIL]).astype(np.float64)
    scores -= scores.mean(axis=1, keepdims=True)
    spread = scores.std(axis=1, keepdims=True)
    return np.where(spread > 1e-9, scores / np.maximum(spread, 1e-9), 0.0)


def _permuted(sums: Floats, size: int, permutations: int) -> list[Floats]:
    """Return the statistics of permutations of the blocks, in portions that fit into memory."""
    rng, blocks = np.random.default_rng(SEED), sums.shape[1]
    portion = max(1, TOGETHER // (3 * blocks))
    parts = []
    for start in range(0, permutations, portion):
        orders = rng.random((min(portion, permutations - start), blocks)).argsort(axis=1)
        parts.append(_statistics(sums[:, orders], size))
    return parts


def _statistics(sums: Floats, size: int) -> Floats:
    """Return the statistic of each series for each order of the blocks, from ``sums[series, order, block]``."""
    blocks = sums.shape[2]
    ends = np.arange(1, blocks)
    ends = ends[(ends >= MARGIN * blocks) & (ends <= (1.0 - MARGIN) * blocks)]
    scale = np.sqrt(size * ends * (blocks - ends) / blocks)
    largest: Floats = (np.abs(np.cumsum(sums, axis=2)[:, :, ends - 1]) / scale).max(axis=2)
    return largest.T


def _rank_from_top(values: Floats) -> Ints:
    """Return for each value the number of values that are not below it; rounding errors do not count."""
    rounded = np.round(values, 9)
    return len(values) - np.searchsorted(np.sort(rounded), rounded, side="left")


def _position(scores: Floats) -> int:
    """Return the k with the largest |S_k| / sqrt(k (n - k) / n)."""
    n = len(scores)
    k = np.arange(math.ceil(MARGIN * n), math.floor((1.0 - MARGIN) * n) + 1)
    return int(k[np.argmax(np.abs(np.cumsum(scores)[k - 1]) / np.sqrt(k * (n - k) / n))])
