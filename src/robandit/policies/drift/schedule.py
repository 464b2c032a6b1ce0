"""When to probe an arm: the schedule that `Probing` and `Restarting` share, as hooks around those of another policy.

The state has four fields in addition to those of the other policy: ``drift_watch`` (:mod:`robandit.drift.detector`, one row per
arm), ``drift_arms`` (one row of integers per arm), ``drift_book`` (numbers of the whole run) and ``drift_log`` (the newest alarms).

`select` returns an arm that is due (`Probing` has the rule), and else the arm of the other policy. Pulls count when they are made.

A restart forgets the pulls whose rewards are still to come. So the mark of a pull contains the number of restarts before it, beside
the mark of the other policy. The late reward of a pull from before the last restart counts as a new pull, and its expiry as none.
The marks of Robandit's own policies are small integers. A pull with another mark always counts as one since the last restart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.drift.detector import UP, new_state, step, tempered
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints

SHORTEST = 100.0  # pulls since the last restart that the schedule assumes at least
LONGEST = 1000.0  # pulls per arm after which an idle arm is due in any case
BURST = 0.5  # CUSUM above which a probed arm is probed again
SALT = np.uint64(0x5851F42D4C957F2D)  # of the detector's hashes: constant, so that choices depend on rewards alone
LOGGED = 32  # newest alarms that are kept
LOG_WIDTH = 12
LONG_AGO = -(2**53)

# Columns of ``drift_arms``.
LAST = 0  # the clock at the arm's last pull
PROBED = 1  # 1 from a probe until a reward, or a lost one, that ends its burst
COLUMNS = 2

# Marks.
UNIT = 2.0**32  # a mark is that of the other policy plus the number of restarts times this,
LIMIT = 2.0**31  # if it is an integer below this
LARGEST_NUMBER = 2.0**20  # later restarts have this number, so that marks are exact

# Entries of ``drift_book``.
CLOCK = 0  # pulls made
SINCE = 1  # the clock at the last restart
FORCED = 2  # the arm whose burst goes on, or -1
CHECK = 3  # no allowed arm is due before the clock reaches this
PROBES = 4
RESTARTS = 5
ALARMS = 6
ALARMED = 7  # the arm whose alarm `grow` must handle, or -1
HORIZON = 8  # pulls of the run; 0 in a live bandit
LENGTH = 9


def new_fields(arms: int, horizon: int | None) -> tuple[Floats, Ints, Floats, Floats]:
    """Return the fields of a new run."""
    book = np.zeros(LENGTH)
    book[[FORCED, ALARMED]] = -1.0
    book[HORIZON] = horizon or 0
    return new_state(arms), np.zeros((arms, COLUMNS), dtype=np.int64), book, np.zeros((LOGGED, LOG_WIDTH))


def select_probing(select: Any, p: Any, s: Any) -> int:
    """Return the arm that is due for a probe, or else the arm that the other policy selects."""
    forced = due(p, s)
    return forced if forced >= 0 else select(p, s)


def waiting_probing(waiting: Any, p: Any, s: Any, shifts: Floats) -> int:
    """Return the arm that is due for a probe, or else the arm that the other policy selects while decisions are open."""
    forced = due(p, s)
    return forced if forced >= 0 else waiting(p, s, shifts)


def chance_probing(chance: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability of a choice: 1 for a probe, and else that of the other policy."""
    forced = due(p, s)
    if forced >= 0:
        return 1.0 if forced == arm else 0.0
    return chance(p, s, arm)


def due(p: Any, s: Any) -> int:
    """Return the allowed arm that is due for a probe, or -1."""
    if p.drift_rate <= 0.0:
        return -1
    forced = int(s.drift_book[FORCED])
    if forced >= 0 and s.allowed[forced]:
        return forced
    return most_idle(p, s) if s.drift_book[CLOCK] >= s.drift_book[CHECK] else -1


@out_of_line
def most_idle(p: Any, s: Any) -> int:
    """Return the allowed arm that has been idle for longest if it is due, else -1."""
    oldest = -1
    for arm in range(s.drift_arms.shape[0]):
        if s.allowed[arm] and (oldest < 0 or s.drift_arms[arm, LAST] < s.drift_arms[oldest, LAST]):
            oldest = arm
    return oldest if s.drift_book[CLOCK] - s.drift_arms[oldest, LAST] >= patience(p, s) else -1


def patience(p: Any, s: Any) -> float:
    """Return the number of pulls after which an idle arm is due."""
    arms = s.drift_arms.shape[0]
    age = max(s.drift_book[CLOCK] - s.drift_book[SINCE], SHORTEST)
    return min(math.sqrt(arms * age) / p.drift_rate, LONGEST * arms)


def take_probing(take: Any, p: Any, s: Any, arm: int) -> float:
    """Count the pull. It is a probe if the arm was due, whoever chose it."""
    book = s.drift_book
    if p.drift_rate > 0.0:
        looking = book[CLOCK] >= book[CHECK]
        possible = looking or not s.allowed[arm]  # CHECK is about allowed arms
        if book[FORCED] == arm or (possible and book[CLOCK] - s.drift_arms[arm, LAST] >= patience(p, s)):
            book[PROBES] += 1.0
            s.drift_arms[arm, PROBED] = 1
        if book[FORCED] == arm:
            book[FORCED] = -1.0
        s.drift_arms[arm, LAST] = int(book[CLOCK]) + 1
        if looking:
            look_again(p, s)
    book[CLOCK] += 1.0
    return numbered(s, take(p, s, arm))


def restarts(s: Any) -> float:
    """Return the number of restarts, as marks contain it."""
    return min(s.drift_book[RESTARTS], LARGEST_NUMBER)


def numbered(s: Any, mark: float) -> float:
    """Return the mark of a pull: the mark of the other policy, with the number of restarts if it is small."""
    return mark + UNIT * restarts(s) if number_in(mark) == 0.0 else mark


def number_in(mark: float) -> float:
    """Return the number of restarts that a mark contains, or -1 if it contains none."""
    number = np.floor(mark / UNIT)
    return number if number >= 0.0 and mark - UNIT * number < LIMIT and np.floor(mark) == mark else -1.0


def inner_mark(mark: float) -> float:
    """Return the mark of the other policy."""
    return mark - UNIT * max(number_in(mark), 0.0)


def is_old(s: Any, mark: float) -> bool:
    """Return whether a pull with this mark was made before the last restart."""
    number = number_in(mark)
    return number >= 0.0 and number != restarts(s)


@out_of_line
def look_again(p: Any, s: Any) -> None:
    """Compute the clock before which no allowed arm is due: a lower bound, since arms are pulled later and patience grows."""
    oldest = int(s.drift_book[CLOCK])
    for arm in range(s.drift_arms.shape[0]):
        if s.allowed[arm]:
            oldest = min(oldest, s.drift_arms[arm, LAST])
    s.drift_book[CHECK] = oldest + patience(p, s)


def expire_probing(expire: Any, p: Any, s: Any, arm: int, mark: float) -> None:
    """Close the pull, unless the other policy was restarted since. A lost reward ends the arm's burst."""
    s.drift_arms[arm, PROBED] = 0
    if not is_old(s, mark):
        expire(p, s, arm, inner_mark(mark))


def update_probing(update: Any, take: Any, p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
    """Learn the reward, watch it, and continue or end the arm's burst. An alarm ends it, and makes the state wait for `grow`."""
    own = inner_mark(mark)
    if is_old(s, mark):
        s.unrewarded[arm] += s.unrewarded[s.unrewarded.shape[0] - 1]  # the restart has forgotten the pull
        own = take(p, s, arm)
    update(p, s, arm, reward, own)
    d = s.drift_watch
    if step(d, arm, reward, SALT, 1.0 / tempered(d, arm)) >= 1.0 / p.drift_delta:
        s.drift_book[ALARMED] = arm
        s.drift_arms[arm, PROBED] = 0
    elif s.drift_arms[arm, PROBED] != 0:
        if d[arm, UP] > BURST:
            s.drift_book[FORCED] = arm
        else:
            s.drift_arms[arm, PROBED] = 0


def full_probing(full: Any, p: Any, s: Any) -> bool:
    """Return whether an alarm waits, or the state must grow."""
    return s.drift_book[ALARMED] >= 0.0 or full(p, s)
