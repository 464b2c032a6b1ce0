"""The centre of an arm's rewards: the median of its first rewards, recomputed a few times and then fixed.

A constant added to all rewards changes the decisions of policies that trim towards zero, but not of policies that trim towards a
centre. The centre is the median of the first 1, 2, 4, ..., `FIRST` rewards of one stream. Only these raw rewards are stored.
"""

from __future__ import annotations

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

FIRST = 128  # the largest number of rewards that a centre uses; a power of two


def due(count: int) -> bool:
    """Return whether the centre is recomputed at this number of rewards (1, 2, 4, ..., FIRST).

    >>> [count for count in range(1000) if due(count)]
    [1, 2, 4, 8, 16, 32, 64, 128]
    """
    return 0 < count <= FIRST and count & (count - 1) == 0


@out_of_line
def median_in_place(row: Floats, count: int) -> float:
    """Sort ``row[:count]`` and return its median (for an even count, the mean of the two middle values).

    >>> import numpy as np
    >>> row = np.array([7.0, 1.0, 3.0, 2.0, 0.0])
    >>> median_in_place(row, 4), row.tolist()
    (2.5, [1.0, 2.0, 3.0, 7.0, 0.0])
    """
    for j in range(1, count):
        value = row[j]
        place = j
        while place > 0 and row[place - 1] > value:
            row[place] = row[place - 1]
            place -= 1
        row[place] = value
    middle = count // 2
    if count % 2 == 1:
        return float(row[middle])
    return 0.5 * float(row[middle - 1] + row[middle])
