"""Values that are not stored one by one: sums of their powers about a point, the pivot.

The sum of log(1 - z/l) over values with abs(z - pivot) <= span needs only their number and ``p_k = sum ((z - pivot)/span)^k``
for k up to `TERMS`, if span <= (l - pivot)/4: the omitted terms are below 4^-16. If this holds for the lowest future l, it holds
for ever, and the values can be forgotten.

**Independent data need one such set**, about 0: the centre of an arm is a median, and most values are small compared with l
(:mod:`robandit.policies.adakl.curve`). If the data drift or are sorted, most of them lie far from the centre. With v = 1/(l - z)
and a the mean of v, ``sum_j (v_j/a - 1 - log(v_j/a))`` is at most the largest level L at the lowest future l. So at most
43 L + 22 L values have l - z outside of 0.75/a to 1.25/a. The others form a *cluster* about l - 1/a, with span 0.25/a. It is made
when many values are stored. As l grows, the cluster grows. Its new range must contain the old one: otherwise sums about the new
pivot would not be accurate.
"""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

TERMS = 16
CLUSTERS = 2  # per arm
FEWEST = 256  # values that make a cluster, or a change of its range, worth while

# Columns of a cluster. The powers 1 to TERMS come first.
COUNT = TERMS
PIVOT = TERMS + 1
SPAN = TERMS + 2
CLUSTER = TERMS + 3


@out_of_line
def add_near(sums: Floats, ratio: float) -> None:
    """Add a value to the sums of powers; ``ratio`` is (z - pivot)/radius."""
    power = ratio
    for k in range(TERMS):
        sums[k] += power
        power *= ratio


@out_of_line
def joins(clusters: Floats, z: float) -> bool:
    """Add a value to the first cluster whose range contains it; return whether there is one."""
    for j in range(clusters.shape[0]):
        off = z - clusters[j, PIVOT]
        if clusters[j, COUNT] > 0.0 and abs(off) <= clusters[j, SPAN]:
            add_near(clusters[j], off / clusters[j, SPAN])
            clusters[j, COUNT] += 1.0
            return True
    return False


def logs_and_tilts(cluster: Floats, at: float) -> tuple[float, float, float]:
    """Return the sums of log(1 - z/l), z/(l - z) and (l/(l - z))^2 - 1 over a cluster, for l = ``at``."""
    count = cluster[COUNT]
    below = at - cluster[PIVOT]
    x = cluster[SPAN] / below
    tilt = cluster[PIVOT] / below
    logs = tilts = squares = 0.0
    power = 1.0
    for k in range(TERMS):
        power *= x
        term = cluster[k] * power
        logs -= term / (k + 1.0)
        tilts += term
        squares += (k + 2.0) * term
    logs += count * math.log1p(-cluster[PIVOT] / at)
    tilts = count * tilt + (1.0 + tilt) * tilts
    squares = count * tilt * (2.0 + tilt) + (1.0 + tilt) * (1.0 + tilt) * squares
    return logs, tilts, squares


def top_of(clusters: Floats) -> float:
    """Return the upper end of the highest cluster, or 0 if all are below 0."""
    top = 0.0
    for j in range(clusters.shape[0]):
        if clusters[j, COUNT] > 0.0:
            top = max(top, clusters[j, PIVOT] + clusters[j, SPAN])
    return top


def total_of(clusters: Floats) -> float:
    """Return the sum of all values in the clusters.

    >>> import numpy as np
    >>> clusters = np.zeros((1, CLUSTER))
    >>> widen(clusters[0], 10.0, 2.0)
    >>> clusters[0, COUNT] = 1.0  # a value at the pivot
    >>> joins(clusters, 8.5), joins(clusters, 7.5), float(total_of(clusters))
    (True, False, 18.5)
    """
    total = 0.0
    for j in range(clusters.shape[0]):
        total += clusters[j, COUNT] * clusters[j, PIVOT] + clusters[j, SPAN] * clusters[j, 0]
    return total


@out_of_line
def widen(cluster: Floats, pivot: float, radius: float) -> None:
    """Express the sums about a new pivot. Unless the cluster is empty, the new range must contain the old one.

    >>> import numpy as np
    >>> cluster, other = np.zeros(CLUSTER), np.zeros(CLUSTER)
    >>> widen(cluster, 3.0, 0.5)
    >>> for z in (2.6, 3.3):
    ...     add_near(cluster, (z - 3.0) / 0.5)
    ...     add_near(other, (z - 2.0) / 2.0)
    ...     cluster[COUNT] += 1.0
    >>> widen(cluster, 2.0, 2.0)
    >>> bool(np.allclose(cluster[:TERMS], other[:TERMS], rtol=1e-12, atol=0.0))
    True
    """
    if cluster[COUNT] > 0.0:
        ratio = cluster[SPAN] / radius
        factor = 1.0
        for k in range(TERMS):
            factor *= ratio
            cluster[k] *= factor
        # Each pass is Pascal's rule; together they expand (d + shift)^k.
        shift = (cluster[PIVOT] - pivot) / radius
        for first in range(TERMS):
            for k in range(TERMS - 1, max(first, 1) - 1, -1):
                cluster[k] += shift * cluster[k - 1]
            if first == 0:
                cluster[0] += shift * cluster[COUNT]
    cluster[PIVOT] = pivot
    cluster[SPAN] = radius


@out_of_line
def gather(clusters: Floats, values: Floats, first: int, last: int, low: float, n: float, n_near: float) -> int:
    """Move most of values[first:last] to a cluster, if many fit into one; return the new end of the values that remain.

    ``low`` is below every later l. All of values[:last] are outside of power sums, n_near values are near 0, and n is their total
    number with those in clusters. The order of the remaining values does not change.
    """
    chosen = make_room(clusters, values, first, last, low, n, n_near)
    if chosen < 0:
        return last
    cluster = clusters[chosen]
    kept = first
    for j in range(first, last):
        off = values[j] - cluster[PIVOT]
        if abs(off) <= cluster[SPAN]:
            add_near(cluster, off / cluster[SPAN])
            cluster[COUNT] += 1.0
        else:
            values[kept] = values[j]
            kept += 1
    return kept


@out_of_line
def make_room(clusters: Floats, values: Floats, first: int, last: int, low: float, n: float, n_near: float) -> int:
    """Choose a cluster for most of values[first:last] (as in `gather`), widen it, and return it; or -1 if too few would join."""
    total = n_near / low
    for j in range(clusters.shape[0]):
        if clusters[j, COUNT] > 0.0:
            total += clusters[j, COUNT] / (low - clusters[j, PIVOT])
    for j in range(last):
        if values[j] < low:
            total += 1.0 / (low - values[j])
    typical = n / total  # 1/a
    bottom = low - 1.25 * typical
    chosen = -1
    for j in range(clusters.shape[0]):
        if clusters[j, COUNT] == 0.0:
            if chosen < 0:
                chosen = j
            continue
        # The range from b to t is narrow enough if 5 t <= 2 l + 3 b.
        own_bottom = clusters[j, PIVOT] - clusters[j, SPAN]
        own_top = clusters[j, PIVOT] + clusters[j, SPAN]
        lowered = min(max(bottom, (5.0 * own_top - 2.0 * low) / 3.0), own_bottom)
        if lowered <= low - typical <= (2.0 * low + 3.0 * lowered) / 5.0:
            chosen = j
            bottom = lowered
            break
    if chosen < 0:
        return -1
    top = (2.0 * low + 3.0 * bottom) / 5.0
    count = 0
    for j in range(first, last):
        count += bottom <= values[j] <= top
    if count < FEWEST:
        return -1
    widen(clusters[chosen], 0.5 * (bottom + top), 0.5 * (top - bottom))
    return chosen
