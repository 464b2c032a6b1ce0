"""The share of an arm's rewards beyond each distance from the median, on one side. A power law is a straight line there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from robandit.kernel.types import Floats, Ints

if TYPE_CHECKING:
    from robandit.recorded.summary import ArmRecord

POINTS = 120  # points per curve
TAIL = 0.7  # the share of the values on a side that is drawn; the nearest values would fill most of a logarithmic axis


def survival(record: ArmRecord, median: float, sign: float) -> tuple[Floats, Floats]:
    """Return distances above the median (``sign`` 1) or below it (-1), and the share of all rewards at least that far away.

    Distances decrease. The farthest come from all rewards, the others from the sample.
    """
    near = distances(sign * record.sample, sign * median)
    drawn = ranks(1, math.ceil(TAIL * len(near)))
    x, share = near[drawn - 1], drawn / len(record.sample)
    if record.whole:
        return x, share
    far = extreme_distances(record, median, sign)
    exact = ranks(1, len(far))
    rest = share > len(far) / record.n
    return np.concatenate([far[exact - 1], x[rest]]), np.concatenate([exact / record.n, share[rest]])


def extreme_distances(record: ArmRecord, median: float, sign: float) -> Floats:
    """Return the distances of the most extreme rewards on a side, in descending order; of all rewards if the record has them."""
    if record.whole:
        return distances(sign * record.sample, sign * median)
    return distances(sign * (record.smallest if sign < 0.0 else record.largest), sign * median)


def distances(values: Floats, median: float) -> Floats:
    """Return the distances of the values above the median, in descending order."""
    return -np.sort(-(values[values > median] - median))


def ranks(first: int, last: int) -> Ints:
    """Return integers from first to last, evenly spaced in logarithms."""
    if last < first:
        return np.empty(0, np.int64)
    return np.unique(np.round(np.geomspace(first, last, POINTS)).astype(np.int64))
