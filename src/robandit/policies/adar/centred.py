"""The state and the hooks of ``AdaRUCB(center="median")``, which trims rewards towards a centre of each arm.

X' sets the centre m (:mod:`robandit.policies.adar.centre`), so both m and the threshold are independent of X. The rest is
AdaR-UCB with X - m and X' - m in place of X and X', and m added to its index. While m still changes, the state also keeps an
arm's original rewards, at most `FIRST` of each stream. Each change rebuilds the arm's sums from them. That happens at most eight
times per arm, with 255 rewards of each stream in total, so time and memory stay those of AdaR-UCB.

Rewards can come late, so X can be longer than X'. Rewards of X that arrive before any of X' wait. If all places for X are taken
and m is not final, further rewards of X join X'. That depends only on the number of rewards, so X' stays independent of X.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import touched
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.centre import FIRST, due, median_in_place
from robandit.policies.adar.layout import (
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    IN_TOP,
    LEAST,
    N_NONZERO,
    N_X,
    TOP,
    TOP_ABOVE,
    TOP_NEXT,
    TwoStreams,
)
from robandit.policies.adar.trimmed_index import (
    ARM_FLOATS,
    EVENT,
    ROWS,
    SMALLEST,
    Params,
    State,
    describe,
    index,
    learn_mean,
    learn_threshold,
    outlook,
    select_round,
)

FIRST_X, FIRST_TOP = 0, 1  # rows of an arm's first rewards, and columns of their counts
SLACK = 1e-14  # relative to the centre, for the rounding of two additions in an outlook


class CentredState(NamedTuple):
    """The fields of AdaR-UCB, whose functions access them by name, and the fields of the centres."""

    arms: Floats
    counts: Ints
    buffer: Floats
    limits: Floats
    lines: Floats
    lead: Ints
    clock: Ints
    cells: Floats
    centres: Floats
    firsts: Floats  # (arms, 2, FIRST): original rewards; X' in any order
    received: Ints  # (arms, 2): number of rewards in `firsts`


def with_centres(plain: State) -> CentredState:
    """Return the state of a new run, in which every buffer has room for all first rewards."""
    arms, rows, width = plain.buffer.shape
    return CentredState(
        *plain._replace(buffer=np.zeros((arms, rows, max(width, FIRST + 1)))),
        centres=np.zeros(arms),
        firsts=np.zeros((arms, 2, FIRST)),
        received=np.zeros((arms, 2), dtype=np.int64),
    )


class Centred(TwoStreams):
    """The hooks. A state is a `CentredState`, typed Any because functions of AdaR-UCB are declared for `State`."""

    @staticmethod
    def select(p: Params, s: Any) -> int:
        """Return a forced arm if there is one, otherwise the arm with the largest index."""
        return select_round(centred_index, centred_outlook, p, s)

    @staticmethod
    def update(p: Params, s: Any, arm: int, reward: float, mark: float) -> None:
        """Learn from the reward minus the centre. Until the centre is final, store the original reward too."""
        if s.received[arm, FIRST_TOP] < FIRST:
            begin(p, s, arm, reward, mark)
        elif mark == IN_TOP:
            learn_threshold(p, s, arm, abs(reward - s.centres[arm]))
        else:
            learn_mean(p, s, arm, reward - s.centres[arm])
        s.arms[arm, EVENT] = -1.0
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: Any, arm: int, out: Floats) -> None:
        """Fill in the estimates of AdaR-UCB, in the units of the rewards."""
        describe(p, s, arm, out)
        out[0] += s.centres[arm]
        out[1] += s.centres[arm]


def centred_index(p: Params, s: Any, arm: int, level: float) -> float:
    """Return the index of X - m, plus m."""
    return float(s.centres[arm] + index(p, s, arm, level))


def centred_outlook(p: Params, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """Return the line above the index of X - m, plus m."""
    height, slope, until = outlook(p, s, arm, level)
    centre = s.centres[arm]
    return centre + height + SLACK * abs(centre), slope, until


@out_of_line
def begin(p: Params, s: Any, arm: int, reward: float, mark: float) -> None:
    """Store one of the arm's first rewards, and recompute the centre when that is due."""
    received = s.received[arm]
    firsts = s.firsts[arm]
    stream = FIRST_X
    if mark == IN_TOP or received[FIRST_X] == FIRST:
        stream = FIRST_TOP
    firsts[stream, received[stream]] = reward
    from_x = received[FIRST_X]
    from_top = received[FIRST_TOP]
    received[stream] += 1
    if stream == FIRST_TOP and due(received[FIRST_TOP]):
        s.centres[arm] = median_in_place(firsts[FIRST_TOP], received[FIRST_TOP])
        empty(s, arm)
        from_x = from_top = 0
    if received[FIRST_TOP] == 0:
        return
    for j in range(from_top, received[FIRST_TOP]):
        learn_threshold(p, s, arm, abs(firsts[FIRST_TOP, j] - s.centres[arm]))
    for j in range(from_x, received[FIRST_X]):
        learn_mean(p, s, arm, firsts[FIRST_X, j] - s.centres[arm])


def empty(s: Any, arm: int) -> None:
    """Reset an arm, except for the number of its pulls."""
    for j in range(ARM_FLOATS):
        s.arms[arm, j] = 0.0
    s.arms[arm, SMALLEST] = math.inf
    counts = s.counts[arm]
    for j in (N_X, N_NONZERO, TOP, TOP_ABOVE, BIG, BIG_ABOVE):
        counts[j] = 0
    counts[TOP_NEXT] = 32
    counts[BIG_NEXT] = 32
    for row in range(ROWS):
        s.buffer[arm, row, 0] = 0.0  # the suffix sums end here
    s.clock[LEAST] = -1  # more rewards than before may equal the centre
