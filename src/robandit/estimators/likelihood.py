"""The likelihood upper bound of the mean of samples in [-M, M]. :mod:`robandit.estimators.formulas.likelihood` has the formula."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from robandit.estimators.formulas.likelihood import bound_at
from robandit.kernel import compiled
from robandit.kernel.build import kernel_of
from robandit.kernel.cache import Kernel
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

FACTORS = 16  # factors in one product; 1 - z/l is in [1e-16, 2] here, so the product neither underflows nor overflows
LOWEST, HIGHEST = -37.0, 37.0  # range of log(l - 1), in units of M: the minimum is near sqrt(variance / 2 C)
STEPS = 100
CLOSE = 1e-9  # tolerance for log(l - 1), which gives an error of 1e-18 in the bound


def row_bounds(z: Floats, largest: Floats, exponent: float) -> Floats:
    """Return the bound of each row of values in [-largest, largest], with C = ``exponent``."""
    out = np.empty(len(z))
    _kernel()(np.ascontiguousarray(z / largest[:, None]), exponent, out)
    return out * largest


def bound_rows(z: Floats, exponent: float, out: Floats) -> None:
    """Write the bound of each row of values in [-1, 1] to ``out``."""
    for row in range(z.shape[0]):
        out[row] = bound(z[row], exponent)


_ARGS = (np.zeros((1, 1)), 1.0, np.zeros(1))
_kernel = cache(partial(compiled, bound_rows, label="the likelihood bound", args=_ARGS))


def bound_kernel() -> Kernel:
    """Return the kernel of `bound_rows`, to be compiled by another process."""
    return kernel_of(bound_rows, _ARGS)


@out_of_line
def bound(z: Floats, exponent: float) -> float:
    """Return the bound of one row at the zero of `tilt`, found in log(l - 1) by false position with halved ends (Illinois)."""
    low = LOWEST
    high = HIGHEST
    at_low = tilt(z, exponent, 1.0 + math.exp(low))
    if at_low <= 0.0:
        return value_at(z, exponent, 1.0)
    at_high = tilt(z, exponent, 1.0 + math.exp(high))
    kept = 0
    for step in range(STEPS):
        if high - low <= CLOSE:
            break
        new = 0.5 * (low + high)
        if step >= 4:  # the first steps bisect: far from the minimum the derivative is flat and secants do not help
            new = low + (high - low) * at_low / (at_low - at_high)
            if not low < new < high:
                new = 0.5 * (low + high)
        at_new = tilt(z, exponent, 1.0 + math.exp(new))
        if abs(at_new) < 1e-14:
            low = new
            break
        if at_new > 0.0:
            low = new
            at_low = at_new
            if kept == 1:
                at_high *= 0.5
            kept = 1
        else:
            high = new
            at_high = at_new
            if kept == -1:
                at_low *= 0.5
            kept = -1
    return min(value_at(z, exponent, 1.0 + math.exp(low)), value_at(z, exponent, 1.0 + math.exp(high)))


@out_of_line
def value_at(z: Floats, exponent: float, at: float) -> float:
    """Return the bound for l = ``at``."""
    return bound_at(at, mean_log(z, 1.0 / at), exponent)


@out_of_line
def tilt(z: Floats, exponent: float, at: float) -> float:
    """Return -C + mean log(1 - z/l) + log(mean 1/(1 - z/l)) for l = ``at``: positive below the minimum, negative above."""
    inverse = 1.0 / at
    n = z.shape[0]
    total = 0.0
    for j in range(n):
        total += 1.0 / (1.0 - z[j] * inverse)
    return mean_log(z, inverse) + math.log(total / n) - exponent


def mean_log(z: Floats, inverse: float) -> float:
    """Return the mean of log(1 - z/l), with ``inverse`` = 1/l; minus infinity if some z = l."""
    n = z.shape[0]
    out = 0.0
    i = 0
    while i + FACTORS <= n:
        product = 1.0
        for j in range(i, i + FACTORS):
            product *= 1.0 - z[j] * inverse
        if product <= 0.0:
            return -math.inf
        out += math.log(product)
        i += FACTORS
    for j in range(i, n):
        if z[j] * inverse >= 1.0:
            return -math.inf
        out += math.log1p(-z[j] * inverse)
    mean: float = out / n
    return mean
