"""The valid ranges of the states of AdaR-UCB, AdaKL-UCB and AdaKL-Proved (:mod:`robandit.kernel.ranges`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from robandit.kernel.lazy import lazy_ranges
from robandit.kernel.ranges import (
    ANYTHING,
    COUNTS,
    NOT_NEGATIVE,
    NUMBERS,
    POSITIVE,
    SIGNED,
    SUMS,
    Range,
    by_column,
    exactly,
    near,
)
from robandit.kernel.types import Floats, Ints
from robandit.policies.adakl import clipped_index, clusters, trimmed_likelihood
from robandit.policies.adakl.leader import FARTHEST
from robandit.policies.adakl.left_tail import LOWEST
from robandit.policies.adar import layout, trimmed_index

_CHOSEN = Range(0, 3, True)  # a curve, none, or a constant


def adar_ranges(s: Any, fresh: Any) -> dict[str, Range]:
    """Return the ranges of AdaR-UCB. ``fresh`` is a new state."""
    numbers = {trimmed_index.SMALLEST: POSITIVE}  # 0 would be doubled for ever
    valid = _shared(s, fresh, _counts(s)) | {"arms": by_column(s.arms, numbers, ANYTHING)}
    valid["cells"] = Range(0.0, trimmed_index.FINEST)  # infinity would be halved for ever
    return valid


def proved_ranges(s: Any, fresh: Any) -> dict[str, Range]:
    """Return the ranges of AdaKL-Proved."""
    cut = s.arms[:, trimmed_likelihood.CUT]
    sizes = np.abs(s.buffer[:, layout.BIG_VALUE, :-1])
    stored = _ordered(sizes, sizes.shape[1], cut)
    counts = _counts(s) | {trimmed_likelihood.N_TOP: COUNTS, trimmed_likelihood.N_NEAR: COUNTS}
    counts[layout.BIG] = Range(0, np.minimum(stored, sizes.shape[1] - 1))
    numbers = {trimmed_likelihood.CHOSEN: _CHOSEN, trimmed_likelihood.CUT: NOT_NEGATIVE, layout.TOP_BELOW: NOT_NEGATIVE}
    own = {"arms": by_column(s.arms, numbers, ANYTHING), "near": ANYTHING, "curves": ANYTHING}
    own["far"] = _clusters(s.far)
    return _shared(s, fresh, counts) | own


def adaptive_ranges(s: Any, fresh: Any) -> dict[str, Range]:
    """Return the ranges of AdaKL-UCB."""
    c, arms, room = clipped_index, len(s.allowed), s.buffer.shape[1] - 1
    cut = s.arms[:, c.CUT]
    sizes = np.abs(s.buffer[:, :room])
    kept = s.counts[:, c.KEPT]
    with np.errstate(invalid="ignore"):
        big = np.count_nonzero((sizes > cut[:, None]) & (np.arange(room) < kept[:, None]), axis=1)
    counts = {
        **dict.fromkeys((c.N, c.N_NONZERO, c.N_NEAR, c.NEXT), COUNTS),
        c.KEPT: Range(0, np.minimum(_ordered(sizes, FARTHEST, np.zeros(arms)), room - 1)),
        c.BIG: exactly(big),
        c.ABOVE: Range(0, np.minimum(kept, c.SQUARES)),
        c.UP: Range(0, s.counts[:, c.ABOVE]),
        c.N_LOW: Range(0, _ordered(s.lowest, LOWEST, np.zeros(arms))),
        c.PULLS: SIGNED,
    }
    clock = {
        layout.FULL: exactly(0),
        layout.LIMIT: exactly(fresh.clock[layout.LIMIT]),
        c.LEADER: Range(-1, arms - 1),
        c.ENTRIES: Range(0, FARTHEST + 1 if s.clock[c.LEADER] >= 0 else 0),
    }
    numbers = {c.CUT: NOT_NEGATIVE, c.BELOW: NOT_NEGATIVE, c.CHOSEN: _CHOSEN, c.HIGHEST: NOT_NEGATIVE}
    own = dict.fromkeys(("near", "curves", "profile"), ANYTHING)
    own |= dict.fromkeys(("buffer", "firsts", "lowest"), NUMBERS)
    own |= {
        "arms": by_column(s.arms, numbers, ANYTHING),
        "counts": by_column(s.counts, counts),
        "squares": NOT_NEGATIVE,
        "far": _clusters(s.far),
        "tail": Range(0.0, 1.0),
        "limits": near(fresh.limits),
        "clock": by_column(s.clock, clock, COUNTS),
    }
    return own | lazy_ranges(s)


def _counts(s: Any) -> dict[int, Range]:
    """Return the ranges of the columns of ``counts`` in `layout`. Each buffer row has room for another value."""
    room = s.buffer.shape[-1] - 1
    return {
        **dict.fromkeys((layout.N_X, layout.N_NONZERO), COUNTS),
        **dict.fromkeys((layout.TOP, layout.BIG), Range(0, room - 1)),
        **dict.fromkeys((layout.TOP_NEXT, layout.BIG_NEXT), Range(0, room)),
        layout.TOP_ABOVE: Range(0, s.counts[:, layout.TOP]),
        layout.BIG_ABOVE: Range(0, s.counts[:, layout.BIG]),
        **dict.fromkeys((layout.ISSUED_X, layout.ISSUED_TOP), SIGNED),
    }


def _shared(s: Any, fresh: Any, counts: dict[int, Range]) -> dict[str, Range]:
    """Return the ranges of the other fields in `layout`."""
    clock = {
        layout.CURRENT: Range(-1, len(s.allowed) - 1),
        layout.FULL: exactly(0),
        layout.LIMIT: exactly(fresh.clock[layout.LIMIT]),
        layout.LEAST: Range(-1, layout.UNLIMITED),
    }
    own = {"counts": by_column(s.counts, counts), "buffer": NUMBERS, "limits": near(fresh.limits)}
    return own | {"clock": by_column(s.clock, clock, COUNTS)} | lazy_ranges(s)


def _clusters(far: Floats) -> Range:
    """Return the ranges of clusters. A sum of powers is at most the number of values, except for rounding.

    The span must not vanish beside the pivot, or l, a few spans above the pivot, would be rounded to it.
    """
    count, span = far[..., clusters.COUNT], far[..., clusters.SPAN]
    columns = dict.fromkeys(range(clusters.TERMS), Range(-1.001 * count, 1.001 * count))
    columns[clusters.COUNT] = COUNTS
    columns[clusters.PIVOT] = Range(SUMS.low, np.where(count > 0.0, np.minimum(1e14 * span, SUMS.high), SUMS.high))
    columns[clusters.SPAN] = Range(np.where(count > 0.0, 1e-160, 0.0), SUMS.high)
    return by_column(far, columns)


def _ordered(sizes: Floats, descending: int, least: Floats) -> Ints:
    """Return how many sizes of each row, from the first on, are above ``least`` and in order.

    The first ``descending`` ones are in descending order, and the others are not above them.
    """
    before = np.minimum(np.arange(-1, sizes.shape[1] - 1), descending - 1)
    with np.errstate(invalid="ignore"):
        right = (sizes > least[:, None]) & ((sizes <= sizes[:, before]) | (before < 0))
    return np.where(right.all(axis=1), sizes.shape[1], np.argmin(right, axis=1))
