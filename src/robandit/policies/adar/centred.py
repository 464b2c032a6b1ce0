"""AdaR-UCB about a centre of each arm: the state and the hooks of ``AdaRUCB(center="median")``.

X' sets the centre m (:mod:`robandit.policies.adar.centre`), so both m and the threshold are independent of X. All else is AdaR-UCB
with X - m and X' - m in place of X and X', and m added to its index. While m still changes, an arm's rewards are kept as they
came, at most `FIRST` of each stream, and at each change the arm's structure is filled anew from them. That is at most eight times
in its life, with 255 rewards of each stream in all: the time and the memory stay those of AdaR-UCB.

Rewards can come late, so X can be longer than X'. Those of X that arrive before any of X' wait. Those that arrive when all
places for X are taken and m is not final join X': this looks at numbers of rewards and never at values, so X' says
nothing about X still.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.adar_ucb import (
    ARM_FLOATS,
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    CURRENT,
    EVENT,
    IN_TOP,
    LEAST,
    N_NONZERO,
    N_X,
    ROUNDS,
    ROWS,
    SMALLEST,
    TOP,
    TOP_ABOVE,
    TOP_NEXT,
    AdaRUCB,
    Params,
    State,
    forced,
    index,
    learn_mean,
    learn_threshold,
    outlook,
    rounds,
)
from robandit.policies.adar.centre import FIRST, due, median_in_place

__all__ = ["Centred", "CentredState", "with_centres"]

# Rows of an arm's first rewards, and columns of their numbers.
FIRST_X = 0
FIRST_TOP = 1
about_zero = AdaRUCB.estimate
SLACK = 1e-14  # of the centre, in an outlook: it takes part in two additions


class CentredState(NamedTuple):
    """That of AdaR-UCB, whose functions find its fields by name, and what the centres need."""

    arms: Floats
    counts: Ints
    buffer: Floats
    limits: Floats
    lines: Floats
    lead: Ints
    clock: Ints
    centres: Floats
    firsts: Floats  # (arms, 2, FIRST): rewards as they came, X' in any order
    received: Ints  # (arms, 2): how many of them there are


def with_centres(plain: State) -> CentredState:
    """The state of a new run: every buffer has room for all rewards from which it may have to be filled at once."""
    arms, rows, width = plain.buffer.shape
    return CentredState(
        *plain._replace(buffer=np.zeros((arms, rows, max(width, FIRST + 1)))),
        centres=np.zeros(arms),
        firsts=np.zeros((arms, 2, FIRST)),
        received=np.zeros((arms, 2), dtype=np.int64),
    )


class Centred:
    """The hooks. A state is a `CentredState`, which is Any here because functions of AdaR-UCB are declared for its own."""

    take = staticmethod(AdaRUCB.take)
    expire = staticmethod(AdaRUCB.expire)
    full = staticmethod(AdaRUCB.full)

    @staticmethod
    def select(p: Params, s: Any) -> int:
        """Forced arms first, then the largest index, as in AdaR-UCB."""
        if s.clock[CURRENT] >= 0:
            return int(s.clock[CURRENT])
        level = p.delta_exp * math.log(s.clock[ROUNDS] + 1.0)
        if p.guard * level >= s.clock[LEAST]:
            arm = forced(p, s, p.guard * level)
            if arm >= 0:
                return arm
        return best_arm(centred_index, centred_outlook, rounds, p, s, s.lines, s.lead, level)

    @staticmethod
    def update(p: Params, s: Any, arm: int, reward: float, mark: float) -> None:
        """Learn from the reward minus the centre; until that is final, keep the reward too."""
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
        """As AdaR-UCB, in the units of the rewards."""
        about_zero(p, s, arm, out)
        out[0] += s.centres[arm]
        out[1] += s.centres[arm]


def centred_index(p: Params, s: Any, arm: int, level: float) -> float:
    """The index of X - m, and m."""
    return float(s.centres[arm] + index(p, s, arm, level))


def centred_outlook(p: Params, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """The line of X - m, and m."""
    height, slope, until = outlook(p, s, arm, level)
    centre = s.centres[arm]
    return centre + height + SLACK * abs(centre), slope, until


@out_of_line
def begin(p: Params, s: Any, arm: int, reward: float, mark: float) -> None:
    """Keep one of the arm's first rewards, and make the centre anew when that is due."""
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
    """An arm as it was in the beginning, except for the pulls that were made for it."""
    for j in range(ARM_FLOATS):
        s.arms[arm, j] = 0.0
    s.arms[arm, SMALLEST] = math.inf
    counts = s.counts[arm]
    for j in (N_X, N_NONZERO, TOP, TOP_ABOVE, BIG, BIG_ABOVE):
        counts[j] = 0
    counts[TOP_NEXT] = 32
    counts[BIG_NEXT] = 32
    for row in range(ROWS):
        s.buffer[arm, row, 0] = 0.0  # where suffix sums end
    s.clock[LEAST] = -1  # more rewards than before may equal the centre
