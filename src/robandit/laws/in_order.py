"""The sampler that returns recorded rewards in their order.

A replay is one more code of the sampler of laws, so it needs no compiled loop of its own. Its table has one row per arm and more
columns than the table of laws. Some columns hold the position of the replication in the record, so each replication has its own
copy of ``par`` (`robandit.problems.replays` writes it). Besides the location 0 and the scale 1, the columns are:

============ ======================================================== =============================================
column       ``IN_ORDER``: row t of a table at time t                 ``LOGGED``: the next row where the arm was played
============ ======================================================== =============================================
``OFFSET``   .                                                        start of the arm's part of the pool
``LENGTH``   rows of the table                                        rows of the log where the arm was played
``BEST``     the arm with which regret compares                       .
``THINNED``  .                                                        1 if rows are kept at random, else 0
``MISSED``   first arm: the regret so far against ``BEST``            .
``PLACE``    first arm: the next row                                  first arm: the next row
``PASSED``   .                                                        number of the arm's rows before ``PLACE``
============ ======================================================== =============================================

The pool of ``IN_ORDER`` is the table, row by row. The pool of ``LOGGED`` has for each arm its increasing row numbers in the log
and the rewards of these rows. If the arm is thinned, the probabilities of keeping the rows follow.
"""

from __future__ import annotations

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats, UInts

IN_ORDER, LOGGED = 100, 101  # codes, after the codes of laws
SCALE, OFFSET, LENGTH, MISSED = 2, 5, 6, 7  # columns, as in `robandit.laws.table`
BEST, THINNED, PLACE, PASSED = range(8, 12)
COLUMNS = 16


# One function for both codes: each compiled function adds a tenth of a second to the compilation of every policy.
@out_of_line
def replayed(kind: int, arm: int, par: Floats, pool: Floats, rng: UInts) -> float:
    """Return the arm's recorded reward at this time, or in the next row where it was played. Rows in between are skipped."""
    offset, count, place = int(par[arm, OFFSET]), int(par[arm, LENGTH]), par[0, PLACE]
    if kind == IN_ORDER:
        start = int(place) * par.shape[0]
        here = pool[start + arm]
        # Add up differences instead of subtracting sums, so that the regret of playing only the best arm is exactly 0.
        par[0, MISSED] += pool[start + int(par[0, BEST])] - here
        par[0, PLACE] = place + 1.0 if place + 1.0 < count else 0.0
        return float(here)
    i = int(par[arm, PASSED])
    if i > 0 and pool[offset + i - 1] >= place:  # the replay has started again from the first row since then
        i = 0
    while True:
        if i < count and pool[offset + i] < place:
            # Other arms were played since: find the first row from PLACE on, by bisection.
            high = count
            while i < high:
                middle = (i + high) // 2
                if pool[offset + middle] < place:
                    i = middle + 1
                else:
                    high = middle
        if par[arm, THINNED] > 0.0:
            # A hash decides whether a row is kept, so the answer is always the same; rows with probability 1 are kept.
            while i < count:
                word = mixed(rng[0] + GOLDEN * np.uint64(int(pool[offset + i]) + 1))
                if (float(word >> np.uint64(11)) + 1.0) * 2.0**-53 <= pool[offset + 2 * count + i]:
                    break
                i += 1
        if i < count:
            break
        i = 0  # start again: at least one row of each arm is always kept
        place = 0.0
    par[arm, PASSED] = i + 1
    par[0, PLACE] = pool[offset + i] + 1.0
    return float(pool[offset + count + i])
