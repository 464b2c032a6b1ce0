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
``MISSED``   first arm: the regret so far against ``BEST``            .
``PLACE``    first arm: the row that is next                          first arm: the row that is next
``PASSED``   .                                                        how many of the arm's rows lie before it
============ ======================================================== =============================================

The pool is the table, row by row; or for each arm its rows of the log (increasing), their rewards and, if it is thinned, the
chances that they are kept.
"""

from __future__ import annotations

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats, UInts

__all__ = ["IN_ORDER", "LOGGED", "replayed"]

# Codes, behind those of laws.
IN_ORDER = 100
LOGGED = 101

# Columns: the first five are those of laws, whose ``MISSED`` stays 0 (see `robandit.laws.table.missed`).
LOC = 1
SCALE = 2
OFFSET = 5
LENGTH = 6
MISSED = 7
BEST = 8
THINNED = 9
PLACE = 10
PASSED = 11
COLUMNS = 16


# One function, since each one that is compiled costs every policy's loop a tenth of a second.
@out_of_line
def replayed(kind: int, arm: int, par: Floats, pool: Floats, rng: UInts) -> float:
    """What the record has for this arm: at this time, or in the next row where it was played; rows passed over are lost."""
    offset, count, place = int(par[arm, OFFSET]), int(par[arm, LENGTH]), par[0, PLACE]
    if kind == IN_ORDER:
        start = int(place) * par.shape[0]
        here = pool[start + arm]
        # Differences are added up, rather than sums subtracted: whoever plays the best arm only has missed exactly nothing.
        par[0, MISSED] += pool[start + int(par[0, BEST])] - here
        par[0, PLACE] = place + 1.0 if place + 1.0 < count else 0.0
        return float(here)
    i = int(par[arm, PASSED])
    if i > 0 and pool[offset + i - 1] >= place:  # the log has begun again since
        i = 0
    while True:
        if (
            i < count and pool[offset + i] < place
        ):  # other arms were played: the first row that is not passed, by halving
            high = count
            while i < high:
                middle = (i + high) // 2
                if pool[offset + middle] < place:
                    i = middle + 1
                else:
                    high = middle
        if par[arm, THINNED] > 0.0:
            # A hash decides whether a row is kept, so it is the same whenever it is asked; a chance of 1 is a yes.
            while i < count:
                word = mixed(rng[0] + GOLDEN * np.uint64(int(pool[offset + i]) + 1))
                if (float(word >> np.uint64(11)) + 1.0) * 2.0**-53 <= pool[offset + 2 * count + i]:
                    break
                i += 1
        if i < count:
            break
        i = 0  # from the beginning again, where there is a row that is always kept
        place = 0.0
    par[arm, PASSED] = i + 1
    par[0, PLACE] = pool[offset + i] + 1.0
    return float(pool[offset + count + i])
