"""A lazy arg-max for index policies: it returns the same arm as a full scan, with a fraction of the evaluations.

The index of an arm that is not pulled changes only because a common level (log t) grows, and it changes smoothly. So each arm keeps
a straight line that bounds its index up to a known level. While the leader's exact index is above all lines, no other arm is
evaluated. Otherwise, only arms whose line reaches the best exact value are evaluated. A skipped arm has
index <= line < best, so it is not an arg-max. The test uses ``>=`` so that exact ties are seen.

Constants would be worse than lines, because indices rise together: a constant that bounds the future index of an arm close behind
the leader exceeds the leader's present index at once. (Evaluations per round in addition to the leader's, with 100 arms and
T = 1e6: 3.0 to 4.0 with constants, 0.6 with lines, 99 with a full scan.)

A policy passes three functions. ``index(p, s, arm, level)`` is exact. ``outlook(p, s, arm, level)``, called right after
``index`` at that level, returns (height, slope, until) with index <= height + slope (l - level) for all l from level to until,
rounding included. ``rounds(p, s, arm)`` decides ties: the smaller one wins, then the lower arm. The policy's state holds
``lines`` and ``lead`` from `lazy_state`, and the policy calls `touched` whenever an arm's data change. Arms that ``s.allowed``
excludes are skipped. Whoever changes ``s.allowed`` calls `forget_leader`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints

__all__ = ["best_arm", "forget_leader", "forget_lines", "lazy_state", "touched"]

# Rows of ``lines``, which has one column per arm. The last column is a line above all lines except the leader's.
HEIGHT, SLOPE, FROM, UNTIL = 0, 1, 2, 3
LEADER, SECOND = 0, 1
Index = Callable[[Any, Any, int, float], float]
Outlook = Callable[[Any, Any, int, float], tuple[float, float, float]]
Count = Callable[[Any, Any, int], Any]


def lazy_state(arms: int) -> tuple[Floats, Ints]:
    """Return the ``lines`` and ``lead`` of a new run: every arm must be evaluated."""
    lines = np.zeros((4, arms + 1))
    lines[HEIGHT] = math.inf
    return lines, np.array([-1, -1], dtype=np.int64)


def touched(lines: Floats, lead: Ints, arm: int) -> None:
    """Discard an arm's line because its data changed. The leader has no line, since it is always evaluated."""
    if arm != lead[LEADER]:
        lines[HEIGHT, arm] = math.inf
        lines[HEIGHT, lines.shape[1] - 1] = math.inf


def forget_lines(lines: Floats) -> None:
    """Discard all lines, because something that all indices depend on has changed."""
    for arm in range(lines.shape[1]):
        lines[HEIGHT, arm] = math.inf


def forget_leader(lines: Floats, lead: Ints) -> None:
    """Discard what depends on the set of allowed arms: the leader, which has no line, and the line above all others."""
    arms = lines.shape[1] - 1
    if lead[LEADER] >= 0:
        lines[HEIGHT, lead[LEADER]] = math.inf
    lines[HEIGHT, arms] = math.inf
    lead[LEADER] = lead[SECOND] = -1


def best_arm(index: Index, outlook: Outlook, rounds: Count, p: Any, s: Any, level: float) -> int:
    """Return the allowed arm with the largest index at this level; ties go to the fewest rounds, then to the lowest arm."""
    lines = s.lines
    leader = s.lead[LEADER]
    value = -math.inf
    if leader >= 0:
        value = index(p, s, leader, level)
        if below(lines, lines.shape[1] - 1, level, value):
            return leader
    return contest(index, outlook, rounds, p, s, level, value)


def below(lines: Floats, arm: int, level: float, value: float) -> bool:
    """Return whether an arm's line holds at this level and is below a value."""
    return line(lines, arm, level) < value and level <= lines[UNTIL, arm]


def line(lines: Floats, arm: int, level: float) -> float:
    """Return the height of an arm's line at a level."""
    return lines[HEIGHT, arm] + lines[SLOPE, arm] * (level - lines[FROM, arm])


@out_of_line
def contest(index: Index, outlook: Outlook, rounds: Count, p: Any, s: Any, level: float, value: float) -> int:
    """Evaluate the arms that may beat the leader (if any), and return the winner. ``value`` is the leader's index."""
    lines = s.lines
    lead = s.lead
    arms = lines.shape[1] - 1
    leader, second = lead[LEADER], lead[SECOND]
    winner = leader
    best = value
    if second >= 0 and not below(lines, second, level, best):  # tried first: it usually wins, and then no other arm can
        winner, best = challenge(index, outlook, rounds, p, s, level, second, winner, best)
        if winner == second:
            renew(outlook, p, s, lines, leader, level)
            lead[LEADER] = second
    if leader >= 0 and level <= lines[UNTIL, arms]:  # otherwise the line of some arm has ended
        rank(s, level)
        if below(lines, arms, level, best):
            return winner
    leader = winner
    for arm in range(arms):
        if arm != leader and arm != second and not below(lines, arm, level, best) and s.allowed[arm]:
            winner, best = challenge(index, outlook, rounds, p, s, level, arm, winner, best)
    if winner != leader and leader >= 0:
        renew(outlook, p, s, lines, leader, level)
    lead[LEADER] = winner
    rank(s, level)
    return winner


def challenge(
    index: Index, outlook: Outlook, rounds: Count, p: Any, s: Any, level: float, arm: int, winner: int, best: float
) -> tuple[int, float]:
    """Evaluate an arm, renew its line, and return the better of this arm and the winner so far, with its index."""
    value = index(p, s, arm, level)
    renew(outlook, p, s, s.lines, arm, level)
    if value > best or winner < 0 or (value == best and before(rounds, p, s, arm, winner)):
        return arm, value
    return winner, best


def rank(s: Any, level: float) -> None:
    """Store the second, whose line is the highest except for the leader's, and a line above all except the leader's.

    It compiles to maxima and conditional moves, without branches on the heights, which cannot be predicted. That matters, since
    this loop is most of a contest (alone, with 100 arms: about 100 ns, and 200 with branches that track the two highest).
    """
    lines = s.lines
    arms = lines.shape[1] - 1
    leader = s.lead[LEADER]
    second = -1
    highest = steepest = -math.inf
    ends = math.inf
    for arm in range(arms):
        if arm == leader or not s.allowed[arm]:
            continue
        height = line(lines, arm, level)
        second = arm if height > highest else second
        highest = max(highest, height)
        steepest = max(steepest, lines[SLOPE, arm])
        ends = min(ends, lines[UNTIL, arm])
    s.lead[SECOND] = second
    lines[HEIGHT, arms] = highest
    lines[SLOPE, arms] = steepest if steepest > -math.inf else 0.0
    lines[FROM, arms] = level
    lines[UNTIL, arms] = ends


def before(rounds: Count, p: Any, s: Any, arm: int, other: int) -> bool:
    """Return whether the arm wins a tie against the other."""
    mine, its = rounds(p, s, arm), rounds(p, s, other)
    return mine < its or (mine == its and arm < other)


def renew(outlook: Outlook, p: Any, s: Any, lines: Floats, arm: int, level: float) -> None:
    """Store the line of an arm that was just evaluated at this level."""
    height, slope, until = outlook(p, s, arm, level)
    if not slope < math.inf:  # no finite bound: the arm is evaluated every time
        height = math.inf
        slope = 0.0
    lines[HEIGHT, arm] = height
    lines[SLOPE, arm] = slope
    lines[FROM, arm] = level
    lines[UNTIL, arm] = until
