"""The adaptive trimmed mean of a stream, for any delta at any time, in which only the final results are rounded.

**The threshold needs only the largest values** (:mod:`robandit.estimators.formulas.threshold`): the ceil(a) largest |X'| and the
exact sum of all squares, for all a up to a_max = c log(4 / delta_min).

**Only values of X that could still be trimmed are stored one by one.** More data raise the left side of the equation at every M,
so they raise M. A larger delta lowers a, which raises M too. So M(data now, a_max) is below every later threshold, and values up
to it are only in the sums. This also holds after a merge. The pooled left side is the sum of both, so the pooled M(., a_max) is
at least each shard's, and values that a shard dropped are never trimmed later.

All sums are integers (:mod:`robandit.estimators.streaming.exact`), so subtracting stored values does not cancel.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators.adaptive import lemma_2, theorem_6, two_sided
from robandit.estimators.estimate import Estimate, bounded, log_over
from robandit.estimators.formulas.threshold import C, above_root
from robandit.estimators.streaming.accumulator import Accumulator, Saved, checked_delta
from robandit.estimators.streaming.exact import (
    CARRY_AFTER,
    SQUARE_DIGITS,
    SUM_DIGITS,
    add_signed,
    add_square,
    carry,
    read,
    root_of_ratio,
    units,
    write,
)
from robandit.estimators.threshold import TOO_LARGE, enough_delta
from robandit.hints import guided
from robandit.kernel import compiled
from robandit.kernel.types import Floats, Ints
from robandit.validation import choice, probability

SLACK = 1e-12  # far above the rounding error of a root, and too small to cost memory

# Entries of `counts`.
N_X = 0
N_TOP = 1  # values in X'
NONZERO = 2  # non-zero values in X'
BIG = 3  # stored X
TOP = 4  # stored |X'|
PENDING = 5  # values since the last carry
COUNTS = 6
SUMS = ("sum_x", "squares_x", "squares_threshold")  # fields of a saved state: two sums over X, one over X'
BIG_CUT, TOP_CUT = 0, 1  # entries of `cuts`: values up to these sizes are not stored


@guided
class TrimmedMean(Accumulator):
    """The mean trimmed at a threshold that the data choose: the streaming form of `adaptive_trimmed_mean`.

    Use it for rewards, costs or latencies if you know nothing about them: the upper bound needs no moment. A two-sided interval
    requires eps and u (without them use `MedianOfMeans`). Do not use it for right-skewed data such as revenue, where the
    assumption of the upper bound fails.

    Values go alternately to X (which gives the mean) and X' (which gives the threshold): each to the shorter of the two, or to X
    if they are equally long. Merging adds X to X and X' to X'. So accumulators with the same values in X and in X' are equal, bit
    for bit, for every order, split and tree of merges. Shards start with X: odd ones have one more value in X, and those of one
    value no X'.

    Memory is bounded by the settings, not by the data: 9 q doubles for the largest values, q = ceil(c log(4/delta_min)) + 1 (170
    by default, 12 KiB), and 342 digits (3 KiB) for the sums. Independent data need about q of the 6 q places for X. Dependent
    data (for example if every second value is zero) can fill them. Then the smallest values are dropped, `lost` counts them, and
    `estimate` raises `InvalidInput` while the threshold is below one of them. So an estimate is never silently wrong.

    Parameters
    ----------
    delta_min
        The smallest delta that `estimate` accepts.

    Guarantee
    ---------
    The same as for `adaptive_trimmed_mean` without a centre or the likelihood bound, for independent values of one law. Lemma 2
    gives an upper bound and requires no prior knowledge. Theorem 6 gives both sides if eps and u are given. With s values in X'
    and n in X, Theorem 6 has min(n, s) for n, and if s > n the width is multiplied by (s/n)^(1/(1+eps)). This follows from
    separate bounds on the proof's three terms, with M <= (u s / L)^(1/(1+eps)) and P(|X| > M) <= 14.66 L / s.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators.streaming import TrimmedMean
    >>> latencies = TrimmedMean()
    >>> latencies.update_many(-np.arange(1.0, 201.0))
    >>> estimate = latencies.estimate(0.05)
    >>> round(estimate.value, 6), round(estimate.threshold, 6), estimate.n
    (-100.0, 250.893938, 200)
    """

    settings = ("delta_min",)

    def __init__(self, *, delta_min: float = 1e-12) -> None:
        """Start without values."""
        self.delta_min = probability(delta_min, "delta_min")
        self._most = C * log_over(4.0, self.delta_min)
        self._keep = math.ceil(self._most) + 1
        self._one = np.zeros(1)
        self._counts: Ints = np.zeros(COUNTS, dtype=np.int64)
        sizes = (SUM_DIGITS, SQUARE_DIGITS, SQUARE_DIGITS)
        self._sums: list[Ints] = [np.zeros(size, dtype=np.int64) for size in sizes]  # in the order of SUMS
        self._big: Floats = np.zeros(6 * self._keep)  # independent data use about q; the docstring has the details
        self._top: Floats = np.zeros(3 * self._keep)
        self._cuts: Floats = np.zeros(2)
        self._floor = 0.0
        self._lost = 0

    @property
    def n(self) -> int:
        """The number of values taken."""
        return int(self._counts[N_X] + self._counts[N_TOP])

    @property
    def lost(self) -> int:
        """The number of dropped values of X that a threshold might still trim; 0 for independent data."""
        return self._lost

    def estimate(
        self,
        delta: float = 0.05,
        *,
        eps: float | None = None,
        u: float | None = None,
        bonus: Literal["paper", "tight"] = "paper",
    ) -> Estimate:
        """Return the trimmed mean and its upper bound, or both bounds if eps and u are given. It has no side effects."""
        delta = checked_delta(self._name, delta, self.delta_min)
        hint = "the likelihood bound needs all values: use adaptive_trimmed_mean"
        bonus = choice(bonus, "bonus", ("paper", "tight"), hint=hint)
        moment = two_sided(eps, u, bonus=(bonus, "paper"))
        parts = 4.0 if moment else 2.0
        level = log_over(parts, delta)
        n = int(self._counts[N_X])
        threshold = self._threshold(C * level, parts)
        if n < 2:
            raise InvalidInput(f"there are {n} values in X: at least 2 are needed for a variance")
        if threshold < self._floor:
            raise InvalidInput(
                f"{self._lost} values of X up to {self._floor!r} were dropped for lack of room, and the threshold at delta = "
                f"{delta!r} is {threshold!r}: the data are not independent. Pass a larger delta, or shuffle the data"
            )
        big = self._big[: self._counts[BIG]]
        trimmed = big[np.abs(big) > threshold]
        total, squares, _ = map(read, self._sums)
        for value in trimmed:
            size = units(value)
            total -= size
            squares -= size * size
        mean = total / (n << 1074)
        lower, upper = -math.inf, math.inf
        if moment is None:
            spread = root_of_ratio(n * squares - total * total, n * (n - 1), scale=1074)
            upper = mean + lemma_2(level, n, bonus, spread, threshold)
            assumed = "truncated non-positivity (Lemma 2)"
        else:
            s, eps = int(self._counts[N_TOP]), moment[0]
            width = theorem_6(level, min(n, s), *moment) * max(1.0, s / n) ** (1.0 / (1.0 + eps))
            lower, upper = mean - width, mean + width
            assumed = f"E|x|^{1.0 + eps:g} <= {moment[1]:g} (Theorem 6)"
        more: dict[str, Any] = {
            "assumed": assumed,
            "n": self.n,
            "share_trimmed": len(trimmed) / n,
            "threshold": threshold,
        }
        return bounded(mean, lower, upper, delta=delta, **more)

    def _threshold(self, a: float, parts: float = 1.0) -> float:
        """Return the root of sum min((X'/M)^2, 1) = a, exact up to the last rounding."""
        nonzero = int(self._counts[NONZERO])
        if nonzero <= a:
            raise NoThresholdError(
                f"there is no threshold yet: {nonzero} of the {self._counts[N_TOP]} values in X' are non-zero, and "
                f"more than {a:.6g} are needed; take more values{enough_delta(nonzero, C, parts, 'pass')}"
            )
        top, bottom = a.as_integer_ratio()
        rest = read(self._sums[2])
        stored = np.sort(self._top[: self._counts[TOP]])[::-1]
        d = 0
        for value in stored:
            square = units(value) ** 2
            if not above_root(square, rest * bottom, top, d * bottom):
                break
            rest -= square
            d += 1
        root = root_of_ratio(rest * bottom, top - d * bottom, scale=1074)
        if root == math.inf:
            raise InvalidInput(TOO_LARGE.format("threshold"))
        return root

    def _take(self, values: Floats) -> None:
        start = 0
        while start < values.size:
            rest = values[start:]
            start += _absorb()(rest, rest.view(np.int64), self._counts, *self._sums, self._big, self._top, self._cuts)
            if self._counts[BIG] == self._big.size or self._counts[TOP] == self._top.size:
                self._keep_needed(*self._stored(), self._big.size - self._keep)

    def _stored(self) -> tuple[Floats, Floats]:
        """Return the stored values of X and X'."""
        return self._big[: self._counts[BIG]], self._top[: self._counts[TOP]]

    def _keep_needed(self, big: Floats, top: Floats, most: int) -> None:
        """Store the largest of X' that matter, and at most ``most`` values of X that a threshold could still trim."""
        counts, cuts = self._counts, self._cuts
        top = np.sort(top)[::-1][: self._keep]
        if top.size == self._keep:
            cuts[TOP_CUT] = top[-1]
        self._top[: top.size] = top
        counts[TOP] = top.size
        if counts[NONZERO] > self._most:
            cuts[BIG_CUT] = max(cuts[BIG_CUT], self._threshold(self._most) * (1.0 - SLACK))
        big = big[np.abs(big) > cuts[BIG_CUT]]
        big = big[np.lexsort((big, -np.abs(big)))]  # a canonical order, so that equal states have equal dictionaries
        if big.size > most:
            self._floor = float(abs(big[most]))
            cuts[BIG_CUT] = self._floor
            kept = big[np.abs(big) > self._floor]
            self._lost += big.size - kept.size
            big = kept
        self._big[: big.size] = big
        counts[BIG] = big.size

    def _add(self, other: TrimmedMean) -> None:
        mine, theirs = self._counts, other._counts
        big, top = (np.concatenate(pair) for pair in zip(self._stored(), other._stored(), strict=True))
        for digits, more in zip(self._sums, other._sums, strict=True):
            write(read(digits) + read(more), digits)
        for j in (N_X, N_TOP, NONZERO):
            mine[j] += theirs[j]
        mine[PENDING] = 0
        self._lost += other._lost
        self._floor = max(self._floor, other._floor)
        # Values that either dropped are below its cut, so the larger cut is valid for both (see the top of this file).
        np.maximum(self._cuts, other._cuts, out=self._cuts)
        self._keep_needed(big, top, self._big.size - self._keep)

    def _save(self) -> dict[str, Any]:
        counts = self._counts
        self._keep_needed(*self._stored(), self._big.size)
        big, top = self._stored()
        return {
            "n_x": int(counts[N_X]),
            "n_threshold": int(counts[N_TOP]),
            "nonzero": int(counts[NONZERO]),
            **{field: f"{read(digits):x}" for field, digits in zip(SUMS, self._sums, strict=True)},
            "largest_x": big.tolist(),
            "largest_threshold": top.tolist(),
            "cut": float(self._cuts[BIG_CUT]),
            "floor": self._floor,
            "lost": self._lost,
        }

    def _load(self, saved: Saved) -> None:
        counts = self._counts
        n, s = saved.count("n_x"), saved.count("n_threshold")
        nonzero = saved.count("nonzero", most=s)
        total, squares, top_squares = sums = [saved.integer(field) for field in SUMS]
        big = saved.numbers("largest_x", most=min(n, self._big.size))
        top = saved.numbers("largest_threshold", most=min(nonzero, self._keep), least=5e-324)
        cut, floor = saved.number("cut", least=0.0), saved.number("floor", least=0.0)
        lost = saved.count("lost", most=n)
        # Sums of squares that are too small for the stored values would later give negative variances.
        if squares < sum(units(v) ** 2 for v in big) or n * squares < total * total or squares >> 4260:
            raise saved.damaged("squares_x", f"{squares:x}", "consistent with the other fields")
        if top_squares < sum(units(v) ** 2 for v in top) or (top_squares > 0) != (nonzero > 0) or top_squares >> 4260:
            raise saved.damaged("squares_threshold", f"{top_squares:x}", "consistent with the other fields")
        if len(top) < min(nonzero, self._keep):
            raise saved.damaged("largest_threshold", len(top), f"{min(nonzero, self._keep)} numbers")
        if big.size and not np.abs(big).min() > cut:
            raise saved.damaged("largest_x", float(np.abs(big).min()), f"numbers larger than cut = {cut!r}")
        if floor > cut or (floor > 0.0) != (lost > 0):
            raise saved.damaged("floor", floor, "at most cut, and 0 exactly if nothing was lost")
        for number, digits in zip(sums, self._sums, strict=True):
            write(number, digits)
        counts[N_X], counts[N_TOP], counts[NONZERO] = n, s, nonzero
        self._cuts[BIG_CUT] = cut
        self._floor, self._lost = floor, lost
        self._keep_needed(big, top, self._big.size)


def absorb(
    values: Floats,
    bits: Ints,
    counts: Ints,
    total: Ints,
    squares: Ints,
    top_squares: Ints,
    big: Floats,
    top: Floats,
    cuts: Floats,
) -> int:
    """Take values until a buffer is full, and return the number taken. ``bits`` is the bit pattern of the values."""
    taken = 0
    while taken < values.shape[0]:
        pattern = bits[taken]
        size = abs(values[taken])
        value = values[taken]
        taken += 1
        mantissa = pattern & (2**52 - 1)
        shift = (pattern >> 52) & 2047
        if shift > 0:
            mantissa += 2**52
            shift -= 1
        if counts[N_X] <= counts[N_TOP]:
            counts[N_X] += 1
            if mantissa != 0:
                add_signed(total, mantissa, shift, 1 if pattern >= 0 else -1)
                add_square(squares, mantissa, shift)
            if size > cuts[BIG_CUT]:
                big[counts[BIG]] = value
                counts[BIG] += 1
                if counts[BIG] == big.shape[0]:
                    break
        else:
            counts[N_TOP] += 1
            if mantissa != 0:
                counts[NONZERO] += 1
                add_square(top_squares, mantissa, shift)
                if size > cuts[TOP_CUT]:
                    top[counts[TOP]] = size
                    counts[TOP] += 1
                    if counts[TOP] == top.shape[0]:
                        break
    counts[PENDING] += taken
    if counts[PENDING] >= CARRY_AFTER:
        carry(total)
        carry(squares)
        carry(top_squares)
        counts[PENDING] = 0
    return taken


_FLOATS, _INTS = np.zeros(1), np.zeros(1, dtype=np.int64)
_ARGS = (_FLOATS, _INTS, _INTS, _INTS, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS)
_absorb = cache(partial(compiled, absorb, label="the streaming trimmed mean", args=_ARGS))
