"""Open decisions as evidence while they wait: a Kaplan-Meier mean of each arm's costs up to a deadline.

A decision that has waited for a time says that its cost is above this time. The index of an arm is lowered by
``KM - mean``: KM is the mean of the Kaplan-Meier estimate from the finished costs and the ages of the open decisions, where mass
beyond the last finished cost is at the cost of a failure, and ``mean`` is that of the finished costs. KM depends on ages only by
their order among the costs. So costs are counted in bins of 4 % relative width, with the sum of each bin, and an age counts as the
upper edge of its bin: the result is exact for these ages. Between two ages, the product of KM's factors telescopes.

A decision that is younger than the cheapest finished one changes nothing. While no decision is open, the policy's own ``select``
chooses, with its lazy arg-max. Otherwise the index of every allowed arm is computed, so that the state of the policy does not
depend on the time of the call, and a log can be replayed without it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.bins import LOG_GAMMA
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import before
from robandit.kernel.types import Floats, Ints

BINS = 256  # 4.4 decades below the deadline; cheaper costs share the first bin, and failures have the last one
ALL = BINS  # the column of totals
ROOM = 32


class Waits(NamedTuple):
    """The open decisions and the finished costs of each arm."""

    times: Floats
    """When each open decision was made, one row per arm, ascending."""
    opened: Ints
    """The number of open decisions of each arm, and their total."""
    counts: Ints
    sums: Floats
    edges: Floats
    """The upper edges of the bins."""
    shifts: Floats
    """KM - mean of each arm at the last `look`, and the total of ``opened``."""


def new_waits(arms: int, deadline: float) -> Waits:
    """Return the arrays of arms without decisions."""
    edges = deadline * np.exp(2.0 * LOG_GAMMA * np.arange(2 - BINS, 2))
    edges[BINS - 2 :] = deadline, math.inf
    counts, sums = np.zeros((arms, BINS + 1), dtype=np.int64), np.zeros((arms, BINS + 1))
    return Waits(np.zeros((arms, ROOM)), np.zeros(arms, dtype=np.int64), counts, sums, edges, np.zeros(arms + 1))


def begin(w: Any, arm: int, time: float) -> int:
    """Add an open decision. Return the number of those that the arm has room for."""
    times = w.times[arm]
    place = w.opened[arm]
    while place > 0 and times[place - 1] > time:
        times[place] = times[place - 1]
        place -= 1
    times[place] = time
    w.opened[arm] += 1
    w.shifts[w.opened.shape[0]] += 1.0
    return times.shape[0] - w.opened[arm]


def end(w: Any, arm: int, time: float, cost: float, failed: int) -> None:
    """Close the open decision that was made at a time (NaN: none), and learn its cost (NaN: none), that of a failure if it is 1."""
    if time == time:
        times = w.times[arm]
        last = w.opened[arm] - 1
        for place in range(first_from(times, w.opened[arm], time), last):
            times[place] = times[place + 1]
        w.opened[arm] = last
        w.shifts[w.opened.shape[0]] -= 1.0
    if cost == cost:
        place = BINS - 1 if failed else first_from(w.edges, BINS - 1, cost)
        w.counts[arm, place] += 1
        w.sums[arm, place] += cost
        w.counts[arm, ALL] += 1
        w.sums[arm, ALL] += cost


def first_from(values: Floats, count: int, least: float) -> int:
    """Return the place of the first of the ascending values[:count] that is at least ``least``."""
    low = 0
    while low < count:
        middle = (low + count) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            count = middle
    return low


def look(w: Any, now: float, failure_cost: float) -> None:
    """Compute the shift of each arm at a time."""
    for arm in range(w.opened.shape[0]):
        w.shifts[arm] = 0.0
        if w.opened[arm] > 0 and w.counts[arm, ALL] > 0:
            w.shifts[arm] = shift(w, arm, now, failure_cost)


@out_of_line
def shift(w: Any, arm: int, now: float, failure_cost: float) -> float:
    """Return KM - mean of an arm with finished and open decisions."""
    times, counts, sums, edges = w.times[arm], w.counts[arm], w.sums[arm], w.edges
    place = 0
    while counts[place] == 0:
        place += 1
    cheapest = edges[place - 1] if place > 0 else 0.0
    older = first_from(times, w.opened[arm], now - cheapest)
    if older == 0:
        return 0.0
    finished = counts[ALL]
    left = float(finished)
    left_sum = sums[ALL]
    at_risk = left + older
    alive = 1.0
    area = 0.0
    for each in range(older - 1, -1, -1):  # the youngest first
        age = now - times[each]
        done = 0
        done_sum = 0.0
        while place < BINS and (place == 0 or edges[place - 1] < age):
            done += counts[place]
            done_sum += sums[place]
            place += 1
        if done > 0:
            area += alive / at_risk * done_sum
            alive *= (at_risk - done) / at_risk
            at_risk -= done
            left -= done
            left_sum -= done_sum
            if left == 0.0:
                break
        at_risk -= 1.0
    area += alive / at_risk * left_sum if left > 0.0 else alive * failure_cost
    return area - sums[ALL] / finished


def lowered(index: Any, rounds: Any, p: Any, s: Any, level: float, shifts: Floats) -> int:
    """Return the allowed arm with the largest index minus its shift; ties as in `robandit.kernel.lazy.best_arm`."""
    winner = -1
    best = -math.inf
    for arm in range(shifts.shape[0] - 1):
        if not s.allowed[arm]:
            continue
        value = index(p, s, arm, level) - shifts[arm]
        if winner < 0 or value > best or (value == best and before(rounds, p, s, arm, winner)):
            winner = arm
            best = value
    return winner
