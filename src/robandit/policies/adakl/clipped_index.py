"""The state and the index of AdaKL-UCB: the smaller of two likelihood bounds, and what the leader's tail adds to it.

With z the rewards of an arm minus its centre, n their number, x = (tau - 1)/K, L = log(1 + x), and h the largest z:

- **The arm's own level** ``L_i = s(n) (g L + (1 - g) log(1 + x/n))`` is lower for arms with many rewards and for light left tails.
  g is the pooled Hill index of the left tails (:mod:`robandit.policies.adakl.left_tail`), at least 0.25 and at most 1. The factor
  s(n) is 1 for up to 24 rewards, and ``s + (1 - s) 24/n`` above, with s = 0.3 + 0.7 g.
- **Pulls without a reward** (o of them) count, but say nothing. With m = n + o, the bounds use L_i for m instead of n, times n/m.
- **The free bound** ``min over l >= h exp(L/(n - 1)) of l - exp(-L_i/n + mean log(l - z))``.
- **The clipped bound**, once over 3 c L rewards differ from the centre: the same with rewards beyond the threshold M counted as M
  or -M, and l >= M. M is the root of ``sum min((z/M)^2, 1) = c L``.
- **The reach** D is the smaller of M and h exp(L/(n - 1)). An arm with fewer rewards than the leader adds 1.5 times what the leader
  owes to rewards beyond D that the arm cannot have seen yet (:mod:`robandit.policies.adakl.leader`).

**One bound is often enough.** If M is at least the floor of the free bound, no reward is clipped from above; clipping then only
raises rewards and the floor of l, so the free bound is the smaller one. If M is below it and nothing is clipped from below, the
clipped bound is the smaller one. A curve (:mod:`robandit.policies.adakl.curve`) updates each bound in O(1) time per reward.

**The state** stores an arm's rewards minus the centre: the `FARTHEST` largest in descending order of size, then further ones above
``CUT`` in any order. Rewards up to ``CUT`` are in power sums, also those that are stored. The cut is a quarter of the lowest future
threshold and of the lowest future l. So these rewards are never clipped and always small compared with l. Rewards that are neither
small nor among the farthest, such as most of a sorted sequence, join clusters (:mod:`robandit.policies.adakl.clusters`). A live
bandit has a limit. If dependent data exceed it even so, the smallest rewards join the power sums, and ``fallbacks`` counts the
curves made with an l below four cuts.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`). For a fixed l the bound is concave in L_i, and L_i rises at most at a known
rate. As L grows, M falls. That raises only rewards clipped from below, and -log(l + M) is concave in L. So a tangent is above the
index until l is infeasible or a further reward is clipped.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.estimators.formulas.threshold import above_root, threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import forget_lines, lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies.adakl.centre import FIRST, due, median_in_place
from robandit.policies.adakl.clusters import CLUSTER, CLUSTERS, FEWEST, TERMS, add_near, gather, joins
from robandit.policies.adakl.curve import (
    AT,
    CURVE,
    GAP,
    RADIUS,
    READY,
    STEP,
    Sample,
    add_value,
    follow,
    minimiser,
    remake,
    rescale,
    value_at,
)
from robandit.policies.adakl.leader import FARTHEST, PROFILE_ROWS, RENEWAL, borrowed_at, profile_of
from robandit.policies.adakl.left_tail import ENOUGH, LOWEST, add_low, hill, tail_length
from robandit.policies.adar.layout import FALLBACKS, FULL, LIMIT

UNSEEN = 4.0  # rewards per unit of L_i after which an arm without a reward above the centre is no longer forced
TAIL_RENEWAL = 7  # g is renewed when there are 1/7 more rewards in total
WINDOW = 0.1  # a line looks at most this far ahead in L
GROWTH = math.exp(WINDOW)
LOOK_AHEAD = 0.02  # share of the level by which a line looks ahead when l is at its floor
SLACK = 1e-11
TINY = 1e-150  # rewards this near to the centre count as equal to it, so that squares do not underflow

# Columns of ``arms``.
CENTRE = 0
HIGHEST = 1  # the largest z, or 0 if all are negative
CUT = 2  # rewards up to this size are in the power sums
BELOW = 3  # sum of squares of all rewards but the SQUARES largest
BOUND = 4  # the smaller bound at the last evaluation
CHOSEN = 5  # its curve
THRESHOLD = 6  # M at the last evaluation, or infinity
REACH = 7
ARM_FLOATS = 8

# Columns of ``counts``.
N = 0  # rewards
N_NONZERO = 1  # rewards that differ from the centre
N_NEAR = 2  # rewards in the power sums
KEPT = 3  # rewards in the buffer
BIG = 4  # those of them above the cut, which come first
NEXT = 5  # the number of these at which to merge
ABOVE = 6  # rewards beyond M, which are clipped
UP = 7  # those of them above the centre
N_LOW = 8  # rewards in ``lowest``
PULLS = 9  # pulls made, rewarded or not
ARM_INTS = 10

SQUARES = 96  # suffix sums of squares are kept for so many rewards: more than c L, even for 2^53 pulls

# Entries of ``clock``; `layout` has FULL, FALLBACKS and LIMIT.
TAKEN = 0  # pulls made
LEARNED = 1  # rewards
LEADER = 5
ENTRIES = 6  # length of the leader's profile; 0 if nothing is owed
PROFILE_NEXT = 7  # rewards of the leader at which its profile is renewed
TAIL_NEXT = 8  # rewards in total at which g is renewed
PROFILE_N = 9  # rewards of the leader when its profile was computed
CLOCK = 10

CLIPPED, FREE, NONE, CONSTANT = 0, 1, 2, 3  # values of CHOSEN: two curves; no finite bound; all rewards are equal


class Params(NamedTuple):
    """The constants of the rule."""

    c: float
    guard: float  # rewards off the centre per unit of L from which the clipped bound is used
    least: float  # the smallest g
    known: float  # limit of the factor of an arm's level, for the lightest tails (g = 0)
    few: float  # rewards up to which the level is not reduced
    borrow: float  # factor of what an arm borrows
    seen: float  # an arm with n rewards would have seen what the leader sees more often than seen * L/n


class State(NamedTuple):
    """The arrays of a run; their columns are named above."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, capacity + 1)
    squares: Floats  # (arms, SQUARES + 1)
    near: Floats  # (arms, TERMS)
    far: Floats  # (arms, CLUSTERS, CLUSTER)
    curves: Floats  # (arms, 2, CURVE)
    firsts: Floats  # (arms, FIRST)
    lowest: Floats  # (arms, LOWEST)
    profile: Floats  # (PROFILE_ROWS, FARTHEST + 1)
    tail: Floats  # [g]
    limits: Floats  # [largest c L, largest L]
    lines: Floats
    lead: Ints
    clock: Ints


def new_state(arms: int, p: Params, largest: float, limit: int) -> State:
    """Return the state of a new run with the largest level L and a limit on the stored rewards per arm."""
    capacity = 2 * FIRST
    numbers = np.zeros((arms, ARM_FLOATS))
    numbers[:, CHOSEN] = NONE
    counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
    counts[:, NEXT] = capacity
    clock = np.zeros(CLOCK, dtype=np.int64)
    clock[LIMIT] = limit
    clock[LEADER] = -1
    clock[TAIL_NEXT] = ENOUGH
    lines, lead = lazy_state(arms)
    return State(
        arms=numbers,
        counts=counts,
        buffer=np.zeros((arms, capacity + 1)),
        squares=np.zeros((arms, SQUARES + 1)),
        near=np.zeros((arms, TERMS)),
        far=np.zeros((arms, CLUSTERS, CLUSTER)),
        curves=np.zeros((arms, 2, CURVE)),
        firsts=np.zeros((arms, FIRST)),
        lowest=np.zeros((arms, LOWEST)),
        profile=np.zeros((PROFILE_ROWS, FARTHEST + 1)),
        tail=np.array([p.least]),
        limits=np.array([p.c * largest, largest]),
        lines=lines,
        lead=lead,
        clock=clock,
    )


# --- learning a reward -----------------------------------------------------------------------------------------------


@out_of_line
def collect(s: State, arm: int, reward: float) -> None:
    """Learn one of the first rewards, store it unchanged, and recompute the centre when that is due."""
    counts = s.counts[arm]
    firsts = s.firsts[arm]
    n = counts[N] + 1
    firsts[counts[N]] = reward
    if not due(n):
        learn(s, arm, reward)
        return
    s.arms[arm] = 0.0
    counts[N] = counts[N_NONZERO] = counts[N_NEAR] = counts[KEPT] = counts[BIG] = 0
    counts[ABOVE] = counts[UP] = counts[N_LOW] = 0
    s.squares[arm] = 0.0
    s.curves[arm] = 0.0
    s.arms[arm, CENTRE] = median_in_place(firsts, n)
    for j in range(n):
        learn(s, arm, firsts[j])


def learn(s: State, arm: int, reward: float) -> None:
    """Add a reward, minus the centre, to the sums and curves of its arm."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    z = reward - numbers[CENTRE]
    if abs(z) < TINY:
        z = 0.0
    counts[N] += 1
    clipped = False
    if z == 0.0:
        counts[N_NEAR] += 1
    else:
        counts[N_NONZERO] += 1
        numbers[HIGHEST] = max(numbers[HIGHEST], z)
        if z < 0.0:
            counts[N_LOW] = add_low(s.lowest[arm], counts[N_LOW], -z)
        clipped = store(s, arm, z) < counts[ABOVE]
        if clipped:
            if counts[ABOVE] == SQUARES:  # too many without an evaluation, which alone can lower it: count again from 0
                counts[ABOVE] = counts[UP] = 0
                s.curves[arm, CLIPPED, READY] = 0.0
            counts[ABOVE] += 1
            counts[UP] += 1 if z > 0.0 else 0
        if counts[BIG] >= counts[NEXT] or counts[KEPT] >= s.buffer.shape[1] - 1:
            merge(s, arm)
    if s.curves[arm, CLIPPED, READY] != 0.0 and not clipped:
        add_value(s.curves[arm, CLIPPED], z)
    if s.curves[arm, FREE, READY] != 0.0:
        add_value(s.curves[arm, FREE], z)


def store(s: State, arm: int, z: float) -> int:
    """Add a reward to the power sums or the buffer, or to both; return its place by size.

    The place of a reward that is not among the largest does not matter: `SQUARES` stands for all of them.
    """
    row = s.buffer[arm]
    counts = s.counts[arm]
    size = abs(z)
    if size <= s.arms[arm, CUT]:
        counts[N_NEAR] += 1
        add_near(s.near[arm], z / s.arms[arm, CUT])
        if counts[KEPT] >= FARTHEST and size <= abs(row[FARTHEST - 1]):
            s.arms[arm, BELOW] += z * z
            return SQUARES
    else:
        if counts[KEPT] >= FARTHEST and size <= abs(row[FARTHEST - 1]):
            s.arms[arm, BELOW] += z * z
            if not joins(s.far[arm], z):
                row[counts[KEPT]] = z
                counts[KEPT] += 1
                counts[BIG] += 1
            return SQUARES
        counts[BIG] += 1
    return insert(s, arm, z)


@out_of_line
def insert(s: State, arm: int, z: float) -> int:
    """Insert one of the `FARTHEST` largest rewards by size, and return its place. The reward that it displaces moves to the end."""
    row = s.buffer[arm]
    squares = s.squares[arm]
    counts = s.counts[arm]
    size = abs(z)
    place = counts[KEPT]
    if place >= FARTHEST:
        place = FARTHEST - 1
        if abs(row[place]) > s.arms[arm, CUT]:  # a smaller one is in the power sums
            if joins(s.far[arm], row[place]):
                counts[BIG] -= 1
            else:
                row[counts[KEPT]] = row[place]
                counts[KEPT] += 1
    else:
        counts[KEPT] += 1
    last = place
    while place > 0 and abs(row[place - 1]) < size:
        row[place] = row[place - 1]
        place -= 1
    row[place] = z
    if place >= SQUARES:
        s.arms[arm, BELOW] += z * z
        return place
    if last >= SQUARES:
        s.arms[arm, BELOW] += row[SQUARES] * row[SQUARES]
    # Sums are recomputed, not corrected by what left them: a huge square would take the digits of all others with it.
    for j in range(min(last, SQUARES - 1), -1, -1):
        squares[j] = squares[j + 1] + row[j] * row[j]
    return place


@out_of_line
def merge(s: State, arm: int) -> None:
    """Move rewards that are small compared with every later M and l to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    row = s.buffer[arm]
    room = row.shape[0] - 1
    if counts[N_NONZERO] > s.limits[0] and counts[N] >= FIRST:
        a = s.limits[0]
        d = clipped_at(s, arm, a, counts[ABOVE])
        lowest = threshold_root(rest_above(s, arm, d), a, d)
        guess = s.curves[arm, FREE, AT]
        n = float(counts[N])
        lowest = min(lowest, minimiser(sample_of(s, arm, 0, 0.0, 0.0, 0.0), s.limits[1], 0.0, guess))
        move_near(s, arm, (1.0 - 1e-9) * lowest / 4.0)
        if counts[BIG] >= FARTHEST + FEWEST:
            # The farthest stay, since they may be clipped.
            last = gather(s.far[arm], row, FARTHEST, counts[KEPT], lowest, n, float(counts[N_NEAR]))
            counts[BIG] -= counts[KEPT] - last
            counts[KEPT] = last
    if counts[KEPT] == room:
        if room < s.clock[LIMIT]:
            s.clock[FULL] = 1
        else:
            cut = max(numbers[CUT], smallest_of(row, FARTHEST, room))
            while counts[KEPT] > room - (room - FARTHEST) // 8 and 1e-300 < cut < math.inf:  # else, in a file, for ever
                move_near(s, arm, min(cut, abs(row[FARTHEST - 1])))
                cut *= 1.25
    counts[NEXT] = min(room, counts[BIG] + counts[BIG] // 4 + 64)


def smallest_of(row: Floats, first: int, last: int) -> float:
    """Return the smallest size in row[first:last]."""
    smallest = math.inf
    for j in range(first, last):
        smallest = min(smallest, abs(row[j]))
    return smallest


@out_of_line
def move_near(s: State, arm: int, cut: float) -> None:
    """Move rewards up to ``cut`` to the power sums. The `FARTHEST` largest also stay in the buffer."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    near = s.near[arm]
    row = s.buffer[arm]
    if not cut > numbers[CUT]:  # also if it is NaN
        return
    rescale(near, numbers[CUT] / cut)
    numbers[CUT] = cut
    before = counts[BIG]
    kept = FARTHEST
    for j in range(FARTHEST, counts[KEPT]):
        if abs(row[j]) <= cut:
            add_near(near, row[j] / cut)
            counts[BIG] -= 1
        else:
            row[kept] = row[j]
            kept += 1
    counts[KEPT] = min(counts[KEPT], kept)
    while 0 < counts[BIG] <= FARTHEST and abs(row[counts[BIG] - 1]) <= cut:
        counts[BIG] -= 1
        add_near(near, row[counts[BIG]] / cut)
    counts[N_NEAR] += before - counts[BIG]


# --- the index -------------------------------------------------------------------------------------------------------


def pulls_made(p: Params, s: State, arm: int) -> int:
    """Return the pulls of an arm, rewarded or not. In a tie the arm with the fewest wins."""
    return s.counts[arm, PULLS]


def rounds_per_arm(s: State) -> float:
    """Return x, the number of pulls made per arm."""
    return s.clock[TAKEN] / s.counts.shape[0]


def level_of(s: State) -> float:
    """Return L of the next round."""
    return math.log(1.0 + rounds_per_arm(s))


def reduction(p: Params, g: float, n: float) -> float:
    """Return s(n), the factor of an arm's level: 1 for few rewards, then falling to a limit that is lower for light tails."""
    limit = p.known + (1.0 - p.known) * g
    return limit + (1.0 - limit) * min(1.0, p.few / n)


def own_level(p: Params, s: State, n: float, level: float) -> float:
    """Return L_i."""
    g = s.tail[0]
    return reduction(p, g, n) * (g * level + (1.0 - g) * math.log(1.0 + rounds_per_arm(s) / n))


def rise_of_own_level(p: Params, s: State, n: float) -> float:
    """Return the largest rise of L_i per unit of L within the next `WINDOW`. The rise itself grows, since L_i is convex in L."""
    g = s.tail[0]
    x = rounds_per_arm(s)
    return reduction(p, g, n) * (g + (1.0 - g) * min(1.0, GROWTH * (1.0 + x) / (n + x)))


def rest_above(s: State, arm: int, d: int) -> float:
    """Return the sum of squares of all rewards but the d largest."""
    return s.arms[arm, BELOW] + s.squares[arm, d]


def clipped_at(s: State, arm: int, a: float, d: int) -> int:
    """Return the number of rewards beyond the threshold for a = c L. The search starts at d."""
    row = s.buffer[arm]
    stored = min(s.counts[arm, KEPT], SQUARES)
    while d < stored and above_root(row[d] * row[d], rest_above(s, arm, d), a, d):
        d += 1
    while d > 0 and not above_root(row[d - 1] * row[d - 1], rest_above(s, arm, d - 1), a, d - 1):
        d -= 1
    return d


def index(p: Params, s: Any, arm: int, level: float) -> float:
    """Return the centre plus the smaller bound plus what the arm borrows.

    While no bound exists, it is infinite: the arm is forced, or it waits for the rewards of as many pulls.
    """
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N])
    numbers[CHOSEN] = NONE
    numbers[THRESHOLD] = math.inf
    m = n + s.unrewarded[arm]
    if counts[N] < 2:
        return math.inf if m < max(2.0, UNSEEN * level) else -math.inf
    own = own_level(p, s, m, level)
    if numbers[HIGHEST] == 0.0 and n <= UNSEEN * own:
        return math.inf if m <= UNSEEN * own else -math.inf
    own *= n / m
    if counts[N_NONZERO] == 0:
        numbers[CHOSEN] = CONSTANT
        numbers[BOUND] = 0.0
        numbers[REACH] = 0.0
    else:
        floor = numbers[HIGHEST] * math.exp(level / (n - 1.0))
        if counts[N_NONZERO] > p.guard * level:
            numbers[THRESHOLD] = threshold_of(p, s, arm, level)
        clip = numbers[THRESHOLD] < floor
        numbers[REACH] = min(floor, numbers[THRESHOLD])
        numbers[BOUND] = math.inf
        if not clip or counts[ABOVE] > counts[UP]:
            numbers[BOUND] = bound_of(s, arm, FREE, n, own, floor)
            numbers[CHOSEN] = FREE
        else:
            s.curves[arm, FREE, READY] = 0.0  # not needed now, so it need not learn
        if clip:
            clipped = bound_of(s, arm, CLIPPED, n, own, numbers[THRESHOLD])
            if clipped < numbers[BOUND]:
                numbers[BOUND] = clipped
                numbers[CHOSEN] = CLIPPED
        else:
            s.curves[arm, CLIPPED, READY] = 0.0
    value = numbers[CENTRE] + numbers[BOUND]
    if lends(s) and counts[N] < s.counts[s.clock[LEADER], N]:
        value += p.borrow * borrowed(p, s, arm, level, numbers[REACH])
    return value


def threshold_of(p: Params, s: State, arm: int, level: float) -> float:
    """Return M, and move rewards that are no longer beyond it from the clipped ones to the clipped curve."""
    counts = s.counts[arm]
    row = s.buffer[arm]
    curve = s.curves[arm, CLIPPED]
    a = p.c * level
    d = clipped_at(s, arm, a, counts[ABOVE])
    if d > counts[ABOVE]:
        curve[READY] = 0.0  # rewards cannot leave a curve
    for j in range(counts[ABOVE], d):
        counts[UP] += 1 if row[j] > 0.0 else 0
    for j in range(d, counts[ABOVE]):
        counts[UP] -= 1 if row[j] > 0.0 else 0
        if curve[READY] != 0.0:
            add_value(curve, row[j])
    counts[ABOVE] = d
    return threshold_root(rest_above(s, arm, d), a, d)


@out_of_line
def bound_of(s: State, arm: int, which: int, n: float, own: float, floor: float) -> float:
    """Return one of the two bounds at L_i = ``own``. Of the clipped curve, the floor is M."""
    curve = s.curves[arm, which]
    counts = s.counts[arm]
    first = 0
    up = down = 0.0
    if which == CLIPPED:
        first = counts[ABOVE]
        up = float(counts[UP])
        down = float(counts[ABOVE] - counts[UP])
    if curve[READY] == 0.0 or not follow(curve, n, own / n, floor, up, down, floor):
        remake(curve, sample_of(s, arm, first, up, down, floor), own, floor)
        if curve[AT] < 3.9999 * s.arms[arm, CUT]:
            s.clock[FALLBACKS] += 1
    return value_at(curve, n, own / n, curve[STEP], up, down, floor)


def sample_of(s: State, arm: int, first: int, up: float, down: float, edge: float) -> Sample:
    """Return an arm's rewards, of which the ``first`` ones are clipped at the edge."""
    counts = s.counts[arm]
    return Sample(
        kept=s.buffer[arm],
        first=first,
        last=counts[BIG],
        near=s.near[arm],
        cut=s.arms[arm, CUT],
        n_near=float(counts[N_NEAR]),
        far=s.far[arm],
        zeros=0,
        n=float(counts[N]),
        up=up,
        down=down,
        edge=edge,
    )


def lends(s: Any) -> bool:
    """Return whether there is anything to borrow. A leader that is not allowed is not compared with, so it lends nothing."""
    return s.clock[ENTRIES] > 0 and s.allowed[s.clock[LEADER]]


def borrowed(p: Params, s: State, arm: int, level: float, reach: float) -> float:
    """Return what an arm with fewer rewards than the leader borrows from it."""
    return borrowed_at(s.profile, s.clock[ENTRIES], reach, p.seen * level * s.clock[PROFILE_N] / s.counts[arm, N])


@out_of_line
def outlook(p: Params, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """Return a line above the index: the tangent of the chosen bound at the last l, plus the most that the arm can borrow."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N])
    which = int(numbers[CHOSEN])
    if which == NONE:
        return math.inf, 0.0, math.inf
    m = n + s.unrewarded[arm]
    until = level + WINDOW
    rise = rise_of_own_level(p, s, m)
    if numbers[HIGHEST] == 0.0:
        until = min(until, level + (1.0 - SLACK) * (n / UNSEEN - own_level(p, s, m, level)) / rise)
    rise *= n / m
    bound = numbers[BOUND]
    slope = 0.0
    if which != CONSTANT:
        curve = s.curves[arm, which]
        step = curve[STEP]
        at = curve[AT] + step * curve[GAP]
        if which == CLIPPED:
            threshold = numbers[THRESHOLD]
            until = min(until, (1.0 - SLACK) * min(counts[N_NONZERO] / p.guard, next_event(p, s, arm)))
            down = counts[ABOVE] - counts[UP]
            rise += down * p.c * threshold / (2.0 * (p.c * level - counts[ABOVE]) * (at + threshold))
        elif numbers[HIGHEST] > 0.0:
            ahead = numbers[HIGHEST] * math.exp((1.0 + LOOK_AHEAD) * level / (n - 1.0))
            if at < ahead:
                step = min((ahead - curve[AT]) / curve[GAP], RADIUS)
                at = curve[AT] + step * curve[GAP]
                bound = value_at(curve, n, own_level(p, s, m, level) / m, step, 0.0, 0.0, 0.0)
            until = min(until, (1.0 - SLACK) * (n - 1.0) * math.log(at / numbers[HIGHEST]))
        slope = (at - bound) / n * rise * (1.0 + SLACK)
    height = numbers[CENTRE] + bound + SLACK * (abs(numbers[CENTRE]) + abs(bound))
    if lends(s) and arm != s.clock[LEADER]:
        # An arm with as many rewards as the leader borrows as soon as the leader has one more.
        height += (1.0 + SLACK) * p.borrow * borrowed(p, s, arm, until, least_reach(p, s, arm, until))
    return height, slope, until


def least_reach(p: Params, s: State, arm: int, until: float) -> float:
    """Return a reach that no later one is below, up to the level ``until``: the floor rises and M falls."""
    reach = s.arms[arm, REACH]
    if s.arms[arm, THRESHOLD] < math.inf:
        a = p.c * until
        d = clipped_at(s, arm, a, s.counts[arm, ABOVE])
        reach = min(reach, (1.0 - SLACK) * threshold_root(rest_above(s, arm, d), a, d))
    return reach


def next_event(p: Params, s: State, arm: int) -> float:
    """Return the level at which M falls to the largest reward that is not clipped."""
    d = s.counts[arm, ABOVE]
    if d >= min(s.counts[arm, KEPT], SQUARES):
        return math.inf
    size = s.buffer[arm, d]
    return (d + rest_above(s, arm, d) / (size * size)) / p.c


# --- what all arms share ---------------------------------------------------------------------------------------------


@out_of_line
def renew_tail(p: Params, s: State) -> None:
    """Compute g anew. If it changes, so do the levels of all arms."""
    weights = total = 0.0
    for arm in range(s.counts.shape[0]):
        n = s.counts[arm, N]
        if n >= ENOUGH:
            k = tail_length(n)
            weights += k
            total += k * hill(s.lowest[arm], s.counts[arm, N_LOW], k)
    g = p.least
    if weights > 0.0:
        g = min(1.0, max(p.least, total / weights))
    if g != s.tail[0]:
        s.tail[0] = g
        forget_lines(s.lines)
    s.clock[TAIL_NEXT] = s.clock[LEARNED] + max(1, s.clock[LEARNED] // TAIL_RENEWAL)


@out_of_line
def most_rewarded(s: Any, arm: int) -> int:
    """Return the allowed arm with the most rewards; in a tie ``arm``, then the lowest."""
    best = arm
    for other in range(s.counts.shape[0]):
        if s.allowed[other] and (not s.allowed[best] or s.counts[other, N] > s.counts[best, N]):
            best = other
    return best


@out_of_line
def renew_profile(p: Params, s: State, leader: int) -> None:
    """Compute the leader's profile anew. Its rewards beyond its threshold are left out if its index clips them."""
    counts = s.counts[leader]
    index(p, s, leader, level_of(s))
    first = 0
    if s.arms[leader, CHOSEN] == CLIPPED:
        first = counts[ABOVE]
    last = min(counts[KEPT], FARTHEST)
    before = s.clock[ENTRIES]
    complete = counts[N_NONZERO] <= FARTHEST
    s.clock[ENTRIES] = profile_of(s.buffer[leader], first, last, complete, float(counts[N]), s.profile)
    s.clock[PROFILE_N] = counts[N]
    s.clock[PROFILE_NEXT] = counts[N] + max(1, counts[N] // RENEWAL)
    if before > 0 or s.clock[ENTRIES] > 0:
        forget_lines(s.lines)
