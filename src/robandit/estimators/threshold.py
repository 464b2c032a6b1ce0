"""Building blocks: the trimming threshold that the data choose, and the trimmed mean and variance at a given threshold.

The threshold depends only on the sum of squares and the ceil(a) largest sizes (:mod:`robandit.estimators.formulas.threshold`). So
one pass with a short buffer of sizes above a cut-off is enough. Nearly every value costs one multiply-add and one comparison.
"""

from __future__ import annotations

import math
from decimal import ROUND_UP, Context
from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators.estimate import Number, log_over, reject_non_finite, rows, shaped
from robandit.estimators.formulas.threshold import C, above_root, threshold_root
from robandit.estimators.row_moments import row_means, row_sds, trimmed
from robandit.hints import guided
from robandit.kernel import compiled
from robandit.kernel.build import kernel_of
from robandit.kernel.cache import Kernel
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.validation import array, invalid, positive, probability

BLOCK = 16  # values processed together
ROOT, NONZERO = 0, 1  # columns of the kernel's answer
SMALL = 1e-130  # between SMALL and LARGE, sums of squares do not overflow, and squares of values 1e-20 times smaller do not vanish
LARGE = 1e130
TOO_LARGE = "the {} is larger than the largest double (1.8e308): divide the sample by a constant first"


@guided
def trimming_threshold(x: ArrayLike, delta: float, *, c: float = C, axis: int = -1) -> Number:
    """The threshold M at which a sample should be trimmed: the exact root of ``sum_j min((x_j / M)^2, 1) = c log(1/delta)``.

    Use it on a sample that is independent of the sample to be trimmed. On the same sample the bounds of Lemma 2 and Theorem 6 do
    not hold; `adaptive_trimmed_mean` splits the sample for you. If at most ``c log(1/delta)`` values are non-zero, the equation
    has no root and `NoThresholdError` is raised.

    Parameters
    ----------
    x
        The sample. Zeros are allowed but do not count.
    delta
        The delta of the equation itself (an `Estimate` may use a fraction of its own delta here).
    c
        Constant of the equation. Theorem 6 needs (1 + sqrt 2)^2, the default; Theorem 5 allows any c > 2.

    Guarantee
    ---------
    The root is unique and above the smallest non-zero size. It has no guarantee of its own for a mean. With probability at least
    1 - 2 delta it is at most ``(u n / log(1/delta))^(1/(1+eps))`` and ``P(|X| > M) <= (1 + 2 sqrt 2)^2 log(1/delta) / n``, for
    every eps and u with E|X|^(1+eps) <= u (Theorem 5). Requires no prior knowledge.

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
    delta, c = probability(delta, "delta"), positive(c, "c")
    matrix, shape = rows(x, axis, check=False)
    return shaped(row_thresholds(matrix, log_over(1.0, delta), c), shape)


@guided
def trimmed_mean(x: ArrayLike, *, threshold: ArrayLike, axis: int = -1) -> Number:
    """The sum of the values up to a threshold in size, divided by the number of ALL values (equation 12).

    Use it with a threshold that does not depend on the same values. Values above it count as zeros, so this is not the mean of the
    remaining values, nor SciPy's ``trim_mean``, which removes a share at both ends. It has no guarantee by itself: see
    `adaptive_trimmed_mean` and `truncated_mean`.

    Parameters
    ----------
    threshold
        A number >= 0 (infinity trims nothing), or one per sample of the batch. A value with ``|x| = threshold`` is not trimmed.

    Examples
    --------
    >>> from robandit.estimators import trimmed_mean
    >>> trimmed_mean([1.0, -2.0, 3.0, 100.0], threshold=3.0)
    0.5
    """
    matrix, shape = rows(x, axis)
    return shaped(row_means(trimmed(matrix, _thresholds(threshold, shape))), shape)


@guided
def trimmed_variance(x: ArrayLike, *, threshold: ArrayLike, axis: int = -1) -> Number:
    """The variance of a sample after values above a threshold in size are set to zero, divided by n - 1, where n counts ALL values.

    Use it for the empirical Bernstein bound of a trimmed mean (Lemma 2), with a threshold as for `trimmed_mean` and at least two
    values. Trimmed values count as zeros. It has no guarantee by itself: see `adaptive_trimmed_mean`.

    Examples
    --------
    >>> from robandit.estimators import trimmed_variance
    >>> round(trimmed_variance([1.0, -2.0, 3.0, 100.0], threshold=3.0), 12)
    4.333333333333
    """
    matrix, shape = rows(x, axis, least=2)
    kept = trimmed(matrix, _thresholds(threshold, shape))
    with np.errstate(over="ignore", under="ignore"):
        variances = np.square(row_sds(kept, row_means(kept)))
    if not np.isfinite(variances).all():
        raise InvalidInput(TOO_LARGE.format("variance"))
    return shaped(variances, shape)


def _thresholds(threshold: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a threshold for each sample of the batch."""
    rule = "a number >= 0, or infinity to trim nothing"
    given = array(threshold, "threshold", hint="pass one number, or one per sample")
    if np.asarray(threshold).dtype.kind == "b":
        raise invalid("threshold", threshold, rule)
    try:
        every: Floats = np.ascontiguousarray(np.broadcast_to(given, shape)).reshape(-1)
    except ValueError:
        rule = f"one number, or one for each sample of a batch of shape {shape}"
        raise invalid("threshold", threshold, rule) from None
    if not (every >= 0.0).all():
        raise invalid("threshold", float(every[~(every >= 0.0)][0]), rule)
    return every


def row_thresholds(matrix: Floats, level: float, c: float = C, *, parts: float = 1.0) -> Floats:
    """Return the root of each row for ``level`` = log(parts/delta). Messages use ``parts`` to state the caller's delta."""
    a = c * level
    n = matrix.shape[1]
    if not a < n:
        reject_non_finite(matrix)
        raise _no_root(matrix, 0, int(np.count_nonzero(matrix[0])) if len(matrix) else 0, a, c, parts)
    top = math.ceil(a)
    answers = np.empty((len(matrix), 2))
    # Extra room makes selections rare: one costs about as much as filling the buffer.
    _kernel()(matrix, a, top, np.empty(min(n, 3 * top + 64) + BLOCK), answers)
    if not np.isfinite(answers).all():
        reject_non_finite(matrix)
        raise InvalidInput(TOO_LARGE.format("threshold"))
    if (answers[:, ROOT] < 0.0).any():
        row = int(np.flatnonzero(answers[:, ROOT] < 0.0)[0])
        raise _no_root(matrix, row, int(answers[row, NONZERO]), a, c, parts)
    return np.ascontiguousarray(answers[:, ROOT])


def _no_root(matrix: Floats, row: int, nonzero: int, a: float, c: float, parts: float) -> NoThresholdError:
    sample = f"sample {row} of the batch" if len(matrix) > 1 else "sample"
    more = f"at least {math.floor(a) + 1}" if a < math.inf else "a smaller c, as it is too large for any number of"
    # c log(parts/delta) must be below the number of non-zero values. Round up, and away from a tie.
    delta = Context(prec=3, rounding=ROUND_UP).create_decimal_from_float(parts * math.exp(-nonzero / c) * (1.0 + 1e-12))
    least = f", or a delta of at least {float(delta):.3g}" if delta < 1 else ""
    return NoThresholdError(
        f"{sample} has {nonzero} non-zero values of {matrix.shape[1]}, and a threshold exists only with more than "
        f"c log({parts:g}/delta) = {a:.6g}: pass {more} non-zero values{least}"
    )


def threshold_rows(x: Floats, a: float, top: int, buffer: Floats, answers: Floats) -> None:
    """Write the root of each row, or -1 and the number of non-zero values, or NaN if the row is not finite."""
    for row in range(x.shape[0]):
        stored, body, all_stored = largest(x[row], top, 1.0, buffer)
        root = -1.0
        if not all_stored or stored > a:
            unit = 1.0
            if not SMALL < buffer[stored - 1] < LARGE:
                # The root is at least the last stored value. In units of that value no relevant square underflows.
                unit = math.ldexp(1.0, -min(max(math.frexp(buffer[stored - 1])[1], -1000), 1000))
                stored, body, all_stored = largest(x[row], top, unit, buffer)
            root = solve(buffer, stored, body, unit, a)
        # A NaN exceeds no cut-off, so it goes into the sum. An infinity is the largest value.
        if not body < math.inf or (stored > 0 and buffer[0] == math.inf):
            root = math.nan
        answers[row, ROOT] = root
        answers[row, NONZERO] = stored


_ARGS = (np.zeros((1, 1)), 1.0, 1, np.zeros(1), np.zeros((1, 1)))
_kernel = cache(partial(compiled, threshold_rows, label="the trimming threshold", args=_ARGS))


def threshold_kernel() -> Kernel:
    """Return the kernel of `threshold_rows`, to be compiled by another process."""
    return kernel_of(threshold_rows, _ARGS)


@out_of_line
def largest(x: Floats, top: int, unit: float, buffer: Floats) -> tuple[int, float, bool]:
    """Store the ``top`` largest sizes in descending order; return their number, a sum and a flag.

    The sum is that of (unit x)^2 over all other sizes. The flag is True if all non-zero sizes are stored.
    """
    n = x.shape[0]
    room = buffer.shape[0] - BLOCK
    cut = 0.0
    body = 0.0
    stored = 0
    all_stored = True
    i = 0
    while i + BLOCK <= n:
        # Four independent sums and maxima, which the processor computes in parallel.
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
    """Store sizes above the cut-off in the buffer and add the squares of the others to the sum."""
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
    """Move the ``top`` largest to the front, the smallest of them last (Hoare's selection). Return the rest's sum of squares."""
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
    """Sort the stored sizes in descending order, in place (Shell sort with Knuth's gaps)."""
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
    """Return the root from the stored sizes z_0 >= z_1 >= ... and the sum of squares of the rest.

    The ratio S_d / z_d^2 is updated from small sizes to large ones. That only adds positive terms, and no square overflows.
    """
    d = stored - 1
    last = unit * buffer[d]
    ratio = 1.0 + body / (last * last)
    while d > 0:
        down = buffer[d] / buffer[d - 1]
        larger = 1.0 + ratio * (down * down)
        if above_root(1.0, larger, a, d - 1):
            break
        ratio = larger
        d -= 1
    return float(buffer[d] * threshold_root(ratio, a, d))
