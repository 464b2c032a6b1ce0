"""The trimming threshold that the data choose themselves, and the trimmed mean and variance at a threshold.

Use these as building blocks; `adaptive_trimmed_mean` puts them together with the independent split that its bound needs.

The root of ``sum_j min((x_j / M)^2, 1) = a`` depends only on the total of squares and the ceil(a) largest sizes. So one pass keeps
a short buffer above a cut-off; nearly every value costs one multiply-add and one comparison with the cut-off.
"""

from __future__ import annotations

import math
from decimal import ROUND_UP, Context
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators.estimate import (
    Number,
    check_delta,
    check_positive,
    formatted,
    log_over,
    refuse_non_finite,
    rows,
    shaped,
)
from robandit.estimators.row_moments import row_means, row_sds, trimmed
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

__all__ = ["C", "enough_delta", "row_thresholds", "trimmed_mean", "trimmed_variance", "trimming_threshold"]

C = (1.0 + math.sqrt(2.0)) ** 2
BLOCK = 16  # values looked at together
ROOT = 0  # columns of the kernel's answer
NONZERO = 1
SMALL = 1e-130  # sizes whose squares, and those of values 1e-20 times smaller, neither vanish nor overflow when added
LARGE = 1e130


def trimming_threshold(x: ArrayLike, delta: float, *, c: float = C, axis: int = -1) -> Number:
    """The threshold M at which a sample should be trimmed: the exact root of ``sum_j min((x_j / M)^2, 1) = c log(1/delta)``.

    Use it on a sample that is independent of the one to be trimmed. On the same sample the bounds of Lemma 2 and Theorem 6 do not
    hold; `adaptive_trimmed_mean` makes the split for you.

    Parameters
    ----------
    x
        The sample, or a batch of them along ``axis``. Zeros are allowed but do not count.
    delta
        The probability in the equation, as it stands there (an `Estimate` may use half of its own).
    c
        Constant of the equation. Theorem 6 needs (1 + sqrt 2)^2, the default; Theorem 5 allows any c > 2.
    axis
        Where the values of one sample lie.

    Returns
    -------
    The root, a float; for a batch an array of its shape.

    Raises
    ------
    NoThresholdError
        At most ``c log(1/delta)`` values are not zero: the equation has no root.

    Guarantee
    ---------
    None of its own. The root is unique and above the smallest non-zero size; with probability at least 1 - 2 delta it is at most
    ``(u n / log(1/delta))^(1/(1+eps))`` and ``P(|X| > M) <= (1 + 2 sqrt 2)^2 log(1/delta) / n``, for every eps and u with
    E|X|^(1+eps) <= u (Theorem 5). Needs to know nothing.

    Examples
    --------
    >>> from robandit.estimators import trimming_threshold
    >>> x = [(-1) ** j * j for j in range(1, 31)] + [0, 0]
    >>> round(trimming_threshold(x, 2.0**-3), 9)
    27.565902166

    References
    ----------
    G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed bandits.
    COLT 2024, PMLR 247, equation 13 and Proposition 9. The method generalises L. Wang, C. Zheng, W. Zhou, W.-X. Zhou,
    A new principle for tuning-free Huber regression, Statistica Sinica 2021.
    """
    delta, c = check_delta(delta), check_positive("c", c)
    matrix, shape = rows(x, axis, check=False)
    return shaped(row_thresholds(matrix, log_over(1.0, delta), c), shape)


def trimmed_mean(x: ArrayLike, threshold: ArrayLike, *, axis: int = -1) -> Number:
    """The mean of a sample with values above a threshold in size set to zero; divided by the number of ALL samples.

    Use it with a threshold that does not come from the same values. It is not the mean of the values kept, and not scipy's
    ``trim_mean``, which removes a share at both ends.

    Parameters
    ----------
    x
        The sample, or a batch along ``axis``.
    threshold
        A number >= 0 (infinity trims nothing), or one per sample of the batch. ``|x| = threshold`` is kept.
    axis
        Where the values of one sample lie.

    Guarantee
    ---------
    None by itself: see `adaptive_trimmed_mean` and `truncated_mean`.

    Examples
    --------
    >>> from robandit.estimators import trimmed_mean
    >>> trimmed_mean([1.0, -2.0, 3.0, 100.0], 3.0)
    0.5

    References
    ----------
    As for `trimming_threshold`: equation 12 of the paper.
    """
    matrix, shape = rows(x, axis)
    return shaped(row_means(trimmed(matrix, _thresholds(threshold, shape))), shape)


def trimmed_variance(x: ArrayLike, threshold: ArrayLike, *, axis: int = -1) -> Number:
    """The variance of a sample with values above a threshold in size set to zero; divided by n - 1 with n of ALL samples.

    Use it for the empirical Bernstein bound of a trimmed mean. The zeros of trimmed samples are part of the spread.

    Parameters
    ----------
    x
        The sample of at least two values, or a batch along ``axis``.
    threshold
        As for `trimmed_mean`.
    axis
        Where the values of one sample lie.

    Guarantee
    ---------
    None by itself: see `adaptive_trimmed_mean`.

    Examples
    --------
    >>> from robandit.estimators import trimmed_variance
    >>> round(trimmed_variance([1.0, -2.0, 3.0, 100.0], 3.0), 12)
    4.333333333333

    References
    ----------
    As for `trimming_threshold`: Lemma 2 of the paper.
    """
    matrix, shape = rows(x, axis, least=2)
    kept = trimmed(matrix, _thresholds(threshold, shape))
    with np.errstate(over="ignore", under="ignore"):
        variances = np.square(row_sds(kept, row_means(kept)))
    if not np.isfinite(variances).all():
        raise InvalidInput(
            "the variance is larger than the largest double (1.8e308): divide the sample by a constant first"
        )
    return shaped(variances, shape)


def _thresholds(threshold: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        given = np.asarray(threshold)
        if given.dtype.kind == "b":
            raise InvalidInput(f"threshold = {formatted(threshold)} must be a number >= 0, or infinity to trim nothing")
        if given.dtype.kind not in "iufO":
            raise TypeError
        values = given.astype(np.float64)
        every: Floats = np.ascontiguousarray(np.broadcast_to(values, shape)).reshape(-1)
    except OverflowError:
        raise InvalidInput(
            f"threshold = {formatted(threshold)} must be a number >= 0 up to 1.8e308, or infinity to trim nothing"
        ) from None
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"threshold = {formatted(threshold)} does not fit a batch of shape {shape}: pass one number, or one per sample"
        ) from None
    if not (every >= 0.0).all():
        raise InvalidInput(
            f"threshold = {every[~(every >= 0.0)][0]} must be a number >= 0, or infinity to trim nothing"
        )
    return every


def row_thresholds(matrix: Floats, level: float, c: float = C, *, parts: float = 1.0) -> Floats:
    """The root of each row for ``level`` = log(parts/delta); refuses rows without one, and rows that are not finite.

    ``parts`` is for messages only, which speak of the caller's delta.
    """
    a = c * level
    n = matrix.shape[1]
    if not a < n:
        refuse_non_finite(matrix)
        _no_root(int(np.count_nonzero(matrix[0])) if len(matrix) else 0, n, a, c, parts, _which(matrix, 0))
    top = math.ceil(a)
    found = np.empty((len(matrix), 2))
    # Room for twice as many more: then a selection, which costs about as much as filling the buffer, is rare.
    _kernel()(matrix, a, top, np.empty(min(n, 3 * top + 64) + BLOCK), found)
    if not np.isfinite(found).all():
        refuse_non_finite(matrix)
        raise InvalidInput(
            "the threshold is larger than the largest double (1.8e308): divide the sample by a constant first"
        )
    if (found[:, ROOT] < 0.0).any():
        row = int(np.flatnonzero(found[:, ROOT] < 0.0)[0])
        _no_root(int(found[row, NONZERO]), n, a, c, parts, _which(matrix, row))
    return np.ascontiguousarray(found[:, ROOT])


def _which(matrix: Floats, row: int) -> str:
    return f" {row} of the batch" if len(matrix) > 1 else ""


def _no_root(nonzero: int, n: int, a: float, c: float, parts: float, which: str) -> None:
    more = f"at least {math.floor(a) + 1}" if a < math.inf else "a smaller c: there are not so many"
    raise NoThresholdError(
        f"sample{which} has {nonzero} non-zero values of {n}, and a threshold exists only with more than "
        f"c log({parts:g}/delta) = {a:.6g}: pass {more} non-zero values{enough_delta(nonzero, c, parts)}"
    )


def enough_delta(nonzero: int, c: float, parts: float, verb: str = "") -> str:
    """The end of a message: the smallest delta for which so many non-zero values have a threshold, if there is one."""
    # c log(parts/delta) must be below their number. Rounded up, and away from a tie.
    delta = Context(prec=3, rounding=ROUND_UP).create_decimal_from_float(parts * math.exp(-nonzero / c) * (1.0 + 1e-12))
    return f", or {verb + ' ' if verb else ''}a delta of at least {float(delta):.3g}" if delta < 1 else ""


@cache
def _kernel() -> Any:
    from robandit.kernel import compiled

    matrix = np.zeros((1, 1))
    return compiled(threshold_rows, label="the trimming threshold", args=(matrix, 1.0, 1, np.zeros(1), matrix))


def threshold_rows(x: Floats, a: float, top: int, buffer: Floats, found: Floats) -> None:
    """For each row the root, or -1 and the number of non-zero values; NaN where the row is not finite."""
    for row in range(x.shape[0]):
        stored, body, all_stored = largest(x[row], top, 1.0, buffer)
        root = -1.0
        if not all_stored or stored > a:
            unit = 1.0
            if not SMALL < buffer[stored - 1] < LARGE:
                # The root is at least the last stored value: no square that matters is lost in units of it.
                unit = math.ldexp(1.0, -min(max(math.frexp(buffer[stored - 1])[1], -1000), 1000))
                stored, body, all_stored = largest(x[row], top, unit, buffer)
            root = solve(buffer, stored, body, unit, a)
        # NaN and infinity show up here: a NaN is above no cut-off and goes into the sum, an infinity is the largest value.
        if not body < math.inf or (stored > 0 and buffer[0] == math.inf):
            root = math.nan
        found[row, ROOT] = root
        found[row, NONZERO] = stored


@out_of_line
def largest(x: Floats, top: int, unit: float, buffer: Floats) -> tuple[int, float, bool]:
    """The ``top`` largest sizes, descending, into the buffer; their number, and the sum of (unit x)^2 over all others.

    Last, whether these are all that are not zero. (There may be fewer than ``top``; never more.)
    """
    n = x.shape[0]
    room = buffer.shape[0] - BLOCK
    cut = 0.0
    body = 0.0
    stored = 0
    all_stored = True
    i = 0
    while i + BLOCK <= n:
        # Four lanes of independent sums and maxima, which the processor runs side by side.
        s0 = s1 = s2 = s3 = 0.0
        m0 = m1 = m2 = m3 = 0.0
        for j in range(i, i + BLOCK, 4):
            z0 = abs(x[j])
            z1 = abs(x[j + 1])
            z2 = abs(x[j + 2])
            z3 = abs(x[j + 3])
            m0 = z0 if z0 > m0 else m0
            m1 = z1 if z1 > m1 else m1
            m2 = z2 if z2 > m2 else m2
            m3 = z3 if z3 > m3 else m3
            s0 += (unit * z0) * (unit * z0)
            s1 += (unit * z1) * (unit * z1)
            s2 += (unit * z2) * (unit * z2)
            s3 += (unit * z3) * (unit * z3)
        if max(max(m0, m1), max(m2, m3)) <= cut:
            body += (s0 + s1) + (s2 + s3)
        else:
            stored, body = store(x, i, i + BLOCK, cut, unit, buffer, stored, body)
            if stored > room:
                body += keep(buffer, stored, top, unit)
                stored = top
                cut = buffer[top - 1]
                all_stored = False
        i += BLOCK
    stored, body = store(x, i, n, cut, unit, buffer, stored, body)
    if stored > top:
        body += keep(buffer, stored, top, unit)
        stored = top
        all_stored = False
    descending(buffer, stored)
    return stored, body, all_stored


def store(
    x: Floats, start: int, stop: int, cut: float, unit: float, buffer: Floats, stored: int, body: float
) -> tuple[int, float]:
    """Sizes above the cut-off go into the buffer, the others into the sum."""
    for j in range(start, stop):
        z = abs(x[j])
        if z > cut:
            buffer[stored] = z
            stored += 1
        else:
            body += (unit * z) * (unit * z)
    return stored, body


@out_of_line
def keep(buffer: Floats, stored: int, top: int, unit: float) -> float:
    """Move the ``top`` largest to the front, the smallest of them last; returns the sum of squares of the others.

    Hoare's selection: halves of the buffer that cannot hold the boundary are left alone.
    """
    low = 0
    high = stored - 1
    while low < high:
        pivot = buffer[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while buffer[i] > pivot:
                i += 1
            while buffer[j] < pivot:
                j -= 1
            if i <= j:
                buffer[i], buffer[j] = buffer[j], buffer[i]
                i += 1
                j -= 1
        if top - 1 <= j:
            high = j
        elif top - 1 >= i:
            low = i
        else:
            break
    body = 0.0
    for k in range(top, stored):
        body += (unit * buffer[k]) * (unit * buffer[k])
    return body


@out_of_line
def descending(buffer: Floats, stored: int) -> None:
    """Sort the stored sizes, largest first (Shell's method with Knuth's gaps: short, in place)."""
    gap = 1
    while gap < stored // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, stored):
            value = buffer[i]
            j = i
            while j >= gap and buffer[j - gap] < value:
                buffer[j] = buffer[j - gap]
                j -= gap
            buffer[j] = value
        gap //= 3


@out_of_line
def solve(buffer: Floats, stored: int, body: float, unit: float, a: float) -> float:
    """The root, from the stored sizes z_0 >= z_1 >= ... and the sum of squares of the rest.

    With d sizes above it, the root is ``M^2 = S_d / (a - d)``, S_d the sum of squares from z_d on, for the least d with
    ``S_d >= z_d^2 (a - d)``. The ratio S_d / z_d^2 is carried from the small sizes to the large ones: it only ever adds, and no
    square is formed that could overflow.
    """
    d = stored - 1
    last = unit * buffer[d]
    ratio = 1.0 + body / (last * last)
    while d > 0:
        down = buffer[d] / buffer[d - 1]
        larger = 1.0 + ratio * (down * down)
        if larger < a - (d - 1):
            break
        ratio = larger
        d -= 1
    root: float = buffer[d] * math.sqrt(ratio / (a - d))
    return root
