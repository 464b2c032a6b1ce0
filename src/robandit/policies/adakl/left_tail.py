"""The weight of the left tails: a Hill index of the lowest rewards, pooled over the arms.

One huge loss of size n^gamma pulls a mean of n rewards down, and a bound that looks past it needs a level of about gamma log n. So
the level of AdaKL-UCB depends on gamma, which is estimated from the k = min(sqrt n, 60) lowest rewards of each arm, measured from
the arm's centre. Only these rewards are stored.
"""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

MOST = 60
LOWEST = MOST + 1  # Hill's estimate also needs the reward before the k lowest
ENOUGH = 8  # rewards from which an arm counts


@out_of_line
def add_low(lowest: Floats, count: int, size: float) -> int:
    """Insert the distance of a reward below the centre into ``lowest[:count]`` (descending); return the new count.

    >>> import numpy as np
    >>> lowest = np.array([5.0, 2.0, 0.0])
    >>> add_low(lowest, 2, 3.0), lowest.tolist(), add_low(lowest, 3, 1.0), lowest.tolist()
    (3, [5.0, 3.0, 2.0], 3, [5.0, 3.0, 2.0])
    """
    place = count
    if count == lowest.shape[0]:
        if size <= lowest[count - 1]:
            return count
        place = count - 1
    else:
        count += 1
    while place > 0 and lowest[place - 1] < size:
        lowest[place] = lowest[place - 1]
        place -= 1
    lowest[place] = size
    return count


def tail_length(n: int) -> int:
    """Return the number k of lowest rewards that the estimate uses.

    >>> [tail_length(n) for n in (8, 100, 5000)]
    [2, 10, 60]
    """
    return min(int(math.sqrt(n)), MOST)


@out_of_line
def hill(lowest: Floats, count: int, k: int) -> float:
    """Return the mean of log(size/reference) over the k lowest rewards; the reference is the next one. 0 without enough of them.

    >>> import numpy as np
    >>> round(hill(np.array([8.0, 4.0, 2.0, 1.0]), 4, 2), 9) == round(1.5 * math.log(2.0), 9)
    True
    >>> hill(np.array([8.0]), 1, 2)
    0.0
    """
    k = min(k, count - 1)
    total = 0.0
    for j in range(k):
        total += math.log(lowest[j] / lowest[k])
    return total / k if k > 0 else 0.0
