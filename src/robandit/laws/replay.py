"""Recorded rewards, handed out in the order in which they were recorded.

To the sampler a replay is one more code, so that it needs no compiled loop of its own. Its table has one row per arm, and more
columns than a law's: there stands how far a replication has come, so each replication has a copy of ``par``
(`robandit.problems.replays` writes it). Column by column, beside the location 0 and the scale 1:

============ ======================================================== =============================================
column       ``IN_ORDER``: row t of a table at time t                 ``LOGGED``: the next row where the arm was played
============ ======================================================== =============================================
``OFFSET``   .                                                        where the arm's part of the pool begins
``LENGTH``   rows of the table                                        rows of the log where the arm was played
``BEST``     the arm that regret is counted against                   .
``THINNED``  .                                                        1 if rows are kept with a chance only, else 0
``MISSED``   first arm: what it would have given beyond what was got  .
``PLACE``    first arm: the row that is next                          first arm: the row that is next
``PASSED``   .                                                        how many of the arm's rows lie before it
============ ======================================================== =============================================

The pool is the table, row by row; or for each arm its rows of the log (increasing), their rewards and, if it is thinned, the
chances that they are kept.
"""

from __future__ import annotations

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.loops import MISSED
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats, UInts

__all__ = ["IN_ORDER", "LOGGED", "in_order", "is_kept", "logged"]

# Codes, behind those of laws.
IN_ORDER = 100
LOGGED = 101

# Columns: the first four are those of laws.
LOC = 1
SCALE = 2
OFFSET = 5
LENGTH = 6
BEST = 8
THINNED = 9
PLACE = 10
PASSED = 11
COLUMNS = 16


@out_of_line
def in_order(arm: int, par: Floats, pool: Floats) -> float:
    """What the table has for this arm at this time."""
    arms = par.shape[0]
    row = int(par[0, PLACE])
    here = pool[row * arms + arm]
    # Differences are added up, rather than sums subtracted: whoever plays the best arm only has missed exactly nothing.
    par[0, MISSED] += pool[row * arms + int(par[0, BEST])] - here
    row += 1
    par[0, PLACE] = row if row < par[0, LENGTH] else 0
    return float(here)


@out_of_line
def logged(arm: int, par: Floats, pool: Floats, rng: UInts) -> float:
    """The reward of the next row of the log where this arm was played; rows passed over are lost."""
    offset, count = int(par[arm, OFFSET]), int(par[arm, LENGTH])
    place = par[0, PLACE]
    i = int(par[arm, PASSED])
    if i > 0 and pool[offset + i - 1] >= place:  # the log has begun again since
        i = 0
    while True:
        i = first_from(pool, offset, i, count, place)
        if par[arm, THINNED] > 0.0:
            while i < count and not is_kept(pool[offset + i], pool[offset + 2 * count + i], rng[0]):
                i += 1
        if i < count:
            break
        i = 0  # from the beginning again, where there is a row that is always kept
        place = 0.0
    par[arm, PASSED] = i + 1
    par[0, PLACE] = pool[offset + i] + 1.0
    return float(pool[offset + count + i])


def first_from(pool: Floats, offset: int, low: int, count: int, row: float) -> int:
    """The first of the arm's rows, from number ``low`` on, that is not before ``row``; their count if there is none.

    By steps of twice the size each, then by halving: a few if it is near, and never more than the logarithm of the count.
    """
    high = low
    step = 1
    while high < count and pool[offset + high] < row:
        low = high + 1
        high += step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if pool[offset + middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


def is_kept(row: float, chance: float, seed: np.uint64) -> bool:
    """Whether a row of the log is kept: a hash decides, so it is the same whenever it is asked. A chance of 1 is a yes."""
    word = mixed(seed + GOLDEN * np.uint64(int(row) + 1))
    return (float(word >> np.uint64(11)) + 1.0) * 2.0**-53 <= chance
