"""AdaKL-UCB: AdaR-UCB's optimism with a likelihood bound, about each arm's own median.

The bounds themselves, and how they follow each new reward in O(1) time, are in :mod:`robandit.policies.adar.curve`. Per arm
there is one curve for the trimmed rewards and, in the practical schedule, one for the rewards as they are. What else is kept:

**For the threshold** what AdaR-UCB keeps: the largest sizes with suffix sums of squares.

**For the curves** the rewards (minus the centre) in descending order of size. Those up to ``cut``, a quarter of the lowest
threshold and of the lowest l to come, are in power sums: they are never trimmed and always small against l. Both lowest values
are those of today's data at the largest level that the run can reach. Some thousands at most are above, whatever the number of
pulls.

**The trimmed rewards** are the first ``BIG_ABOVE`` in that order. While this number stays, a new reward changes each curve by
one term; when the threshold crosses a reward, the curve is made anew.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`): for a fixed l the bound is concave in the level, and l stays feasible
until a known level, so its tangent is above the index until then.

In a live bandit the number of rewards kept has a limit, as in AdaR-UCB. Should data that are anything but independent exceed
it, the smallest are moved to the power sums all the same, and the counter ``fallbacks`` counts the curves made with an l below
four cuts.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.adar_ucb import (
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    CLOCK,
    CURRENT,
    FALLBACKS,
    FULL,
    IN_TOP,
    ISSUED_TOP,
    ISSUED_X,
    LIMIT,
    N_NONZERO,
    N_X,
    ROUNDS,
    ROUNDS_FOR_EVER,
    TOP,
    TOP_ABOVE,
    TOP_BELOW,
    TOP_NEXT,
    TOP_SQUARES,
    TOP_VALUE,
    C,
    clipped_at,
    insert_top,
)
from robandit.policies.adar.adar_ucb import AdaRUCB as _AdaRUCB
from robandit.policies.adar.centre import FIRST, due, median_in_place
from robandit.policies.adar.curve import (
    AT,
    CURVE,
    GAP,
    RADIUS,
    READY,
    STEP,
    TERMS,
    add_near,
    add_value,
    add_zero,
    follow,
    minimiser,
    remake,
    value_at,
)
from robandit.policies.assumptions import CENTRED, NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts

__all__ = ["AdaKLUCB"]

PRACTICAL_C = 2.5
PRACTICAL_GUARD = 3.0 * PRACTICAL_C  # rewards per level from which the trimmed bound is used
UNSEEN = 4.0  # rewards per level that it takes to believe that none lies above the centre
TINY = 1e-150  # rewards this near to the centre count as equal to it: squares must not underflow
LIVE_VALUES = 16_384  # of a row, reached by data made against it: independent ones need 16 c L for the threshold, about 80 L for l

# Numbers of an arm, besides AdaR-UCB's TOP_BELOW.
CENTRE = 0
HIGHEST = 1  # the largest X - centre, at least 0
TOP_CUT = 2  # sizes up to this are in TOP_BELOW
CUT = 3  # rewards of this size or less are in the power sums
BOUND = 4  # the smaller of the two bounds at the last evaluation,
CHOSEN = 5  # which it was
THRESHOLD = 6  # and the threshold then
ARM_FLOATS = 13
assert TOP_BELOW == ARM_FLOATS - 1

# Counts of an arm, after AdaR-UCB's.
N_TOP = 10  # rewards in X', zeros included
N_NEAR = 11  # rewards in the power sums
ARM_INTS = 12

BIG_VALUE = 2  # row of the buffer, after TOP_VALUE and TOP_SQUARES
ROWS = 3

TRIMMED, FREE, NONE, CONSTANT = 0, 1, 2, 3  # curves; no finite bound; all rewards alike
WINDOW = 0.02  # of a level: how far a line looks ahead when l is at its floor
SLACK = 1e-11


class Params(NamedTuple):
    """The parameters as numbers."""

    c: float
    guard: float
    factor: float  # of the logarithm in L
    practical: int
    centred: int
    double: int


class State(NamedTuple):
    """See the names above."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, ROWS, capacity + 1)
    near: Floats  # (arms, TERMS)
    curves: Floats  # (arms, 2, CURVE)
    firsts: Floats  # (arms, 2, FIRST)
    limits: Floats  # [largest c L, largest L]
    lines: Floats
    lead: Ints
    clock: Ints


class AdaKLUCB(Policy):
    """Optimism on a likelihood bound about each arm's median: nothing must be known, and it learns at once.

    The policy to start with when rewards have heavy left tails (costs, latencies, losses) or symmetric ones. It is AdaR-UCB
    with three changes. (1) The index is the largest mean that the trimmed rewards do not contradict, in the sense of
    Kullback-Leibler, in place of an empirical Bernstein bound. (2) Rewards are trimmed towards the arm's median, not towards 0,
    so a constant added to all rewards changes nothing. (3) The schedule. Not for right-skewed rewards such as revenue, where
    the assumption fails: see `ForceMoM` and `robandit.diagnostics.recommend`.

    Parameters
    ----------
    center
        ``"median"``: trim towards the median of an arm's first rewards (1, 2, 4, ..., 128 of them, then it stays). None:
        towards 0, as AdaR-UCB does; only with the proved schedule.
    schedule
        ``"practical"``: every reward serves both for the threshold and for the mean; L = log(1 + (tau - 1)/K) in round tau; c =
        2.5. Two bounds are made and the smaller one counts: the likelihood bound of the trimmed rewards, once an arm has over 3
        c L rewards other than the centre; and that of the untrimmed rewards, as if none could lie further above the centre than
        exp(L/(n - 1)) times the farthest seen. Exploration is forced only for arms with fewer than two rewards, and for those
        none of whose rewards lies above the centre, while n <= 4 L.

        ``"proved"``: L = 3 log tau, to which the bound adds log(e (n + 2)); c = (1 + sqrt 2)^2; half of the rewards are for the
        centre and the threshold and half for the mean; an arm is explored while the former are at most 3 c L (c L without a
        centre), not counting those equal to the centre.
    pulls
        ``"single"``: every pull is a decision. ``"double"``: a chosen arm is pulled twice, as AdaR-UCB does.

    Guarantee
    ---------
    No regret theorem, for either schedule. Proved, for ``schedule="proved"`` and given the centre: each index is a valid upper
    confidence bound with probability at least 1 - exp(-L) under truncated non-positivity about the centre, E[(X - m) 1{|X - m|
    > M}] <= 0 for all M >= 0. That holds for laws that are left-skewed by more than the error of the centre, such as costs with
    a heavy tail. For a symmetric or nearly symmetric law it holds about the true median. The estimated one lies below it half
    of the time, and while few rewards are there that costs validity: just above c L of them for sure, above 3 c L hardly
    (tests/policies/adar/test_adakl_ucb.py measures it at 4 c L). Hence 3 c L. Nothing is proved for ``schedule="practical"``, whose
    figures are in docs/explanation/adakl.md. Must know: nothing. Anytime, not random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> result = rb.simulate([rb.AdaKLUCB(), rb.AdaRUCB()], problem, horizon=10_000, replications=20, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [59, 4692]

    References
    ----------
    Ours. After G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed
    bandits. COLT 2024, PMLR 247. The likelihood bound: J. Honda, A. Takemura. Non-asymptotic analysis of a new bandit algorithm
    for semi-bounded rewards. JMLR 16, 2015 (from memory).
    """

    center: Literal["median"] | None = "median"
    schedule: Literal["proved", "practical"] = "practical"
    pulls: Literal["double", "single"] = "single"

    label = "AdaKL-UCB"
    columns = ("mean", "index", "threshold", "share_trimmed")
    about = Facts(
        assumption=CENTRED,
        adaptive=Adaptive(True, True, True, True),
        citation="ours; after Genalti, Marsigli, Gatti, Metelli 2024",
        title="AdaKL-UCB",
        notes=(
            "With schedule='proved' each index is a valid upper confidence bound with probability at least 1 - exp(-L), given the "
            "centre and under the assumption about it; a regret theorem is not proved. Nothing is proved for "
            "schedule='practical', the default.",
        ),
    )

    def validate(self) -> None:
        """Known words that go together."""
        if self.center not in ("median", None):
            raise InvalidInput(f"AdaKLUCB: center = {self.center!r} must be 'median' or None")
        if self.schedule not in ("proved", "practical"):
            raise InvalidInput(f"AdaKLUCB: schedule = {self.schedule!r} must be 'proved' or 'practical'")
        if self.pulls not in ("double", "single"):
            raise InvalidInput(f"AdaKLUCB: pulls = {self.pulls!r} must be 'double' or 'single'")
        if self.center is None and self.schedule == "practical":
            raise InvalidInput(
                "AdaKLUCB: center = None needs schedule='proved': the practical schedule measures rewards from their median"
            )

    @property
    def facts(self) -> Facts:
        """Without a centre the assumption is the plain one."""
        return self.about if self.center == "median" else dataclasses.replace(self.about, assumption=NONPOSITIVE)

    def params(self) -> Params:
        """Words become numbers."""
        practical = self.schedule == "practical"
        return Params(
            c=PRACTICAL_C if practical else C,
            guard=PRACTICAL_GUARD if practical else 3.0 * C if self.center == "median" else C,
            factor=1.0 if practical else 3.0,
            practical=int(practical),
            centred=int(self.center == "median"),
            double=int(self.pulls == "double"),
        )

    def init(self, arms: int, horizon: int | None) -> State:
        """Buffers that grow: without limit for a known horizon, up to one in a live bandit."""
        p = self.params()
        rounds = ROUNDS_FOR_EVER if horizon is None else max(horizon + 1, 2)
        largest = p.factor * math.log(rounds)
        clock = np.zeros(CLOCK, dtype=np.int64)
        clock[CURRENT] = -1
        clock[LIMIT] = LIVE_VALUES if horizon is None else np.iinfo(np.int64).max
        counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
        capacity = 2 * FIRST
        counts[:, [TOP_NEXT, BIG_NEXT]] = capacity
        numbers = np.zeros((arms, ARM_FLOATS))
        numbers[:, CHOSEN] = NONE
        return State(
            numbers,
            counts,
            np.zeros((arms, ROWS, capacity + 1)),
            np.zeros((arms, TERMS)),
            np.zeros((arms, 2, CURVE)),
            np.zeros((arms, 2, FIRST)),
            np.array([p.c * largest, largest]),
            *lazy_state(arms),
            clock,
        )

    grow = _AdaRUCB.grow
    counters = _AdaRUCB.counters
    full = staticmethod(_AdaRUCB.full)
    expire = staticmethod(_AdaRUCB.expire)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """The largest index; after the first pull of a double round, the same arm again."""
        if s.clock[CURRENT] >= 0:
            return s.clock[CURRENT]
        return best_arm(index, outlook, rounds, p, s, s.lines, s.lead, level_of(p, s))

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """A pull is made for the stream that has fewer of the arm's pulls. Only double pulls end a round later than they begin."""
        mark = float(_AdaRUCB.take(p, s, arm))
        if p.double == 0:
            s.clock[CURRENT] = -1
            if mark == IN_TOP:
                s.clock[ROUNDS] += 1
        return mark

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """A reward is learned in its role, or in both."""
        counts = s.counts[arm]
        if p.centred != 0 and counts[N_TOP] < FIRST:
            collect(p, s, arm, reward, mark)
        else:
            learn(p, s, arm, reward, mark)
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Trimmed mean (plain, where nothing is trimmed), index, threshold and share of X above it, as the next round sees them."""
        level = level_of(p, s)
        fallbacks = s.clock[FALLBACKS]
        numbers = s.arms[arm]
        out[0] = math.nan
        out[1] = index(p, s, arm, level)
        out[2] = math.nan
        out[3] = math.nan
        n = s.counts[arm, N_X]
        if out[1] < math.inf:
            first = 0
            if numbers[THRESHOLD] > 0.0:
                first = s.counts[arm, BIG_ABOVE]
                out[2] = numbers[THRESHOLD]
                out[3] = first / n
            total = s.near[arm, 0] * numbers[CUT]
            for j in range(first, s.counts[arm, BIG]):
                total += s.buffer[arm, BIG_VALUE, j]
            out[0] = numbers[CENTRE] + total / n
        s.clock[FALLBACKS] = fallbacks  # asking is not counted


def rounds(p: Params, s: State, arm: int) -> int:
    """What a tie looks at first."""
    return s.counts[arm, ISSUED_X] + s.counts[arm, ISSUED_TOP]


def level_of(p: Params, s: State) -> float:
    """L of the round that is about to begin."""
    begun = float(s.clock[ROUNDS])
    if p.practical != 0:
        begun /= s.counts.shape[0]
    return p.factor * math.log(1.0 + begun)


@out_of_line
def index(p: Params, s: State, arm: int, level: float) -> float:
    """The centre plus the smaller of the two bounds; +inf while neither exists."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N_X])
    numbers[CHOSEN] = NONE
    numbers[THRESHOLD] = 0.0
    bound = math.inf
    if p.practical != 0:
        if counts[N_X] < 2 or (numbers[HIGHEST] == 0.0 and n <= UNSEEN * level):
            return math.inf
        if counts[N_NONZERO] == 0:
            numbers[CHOSEN] = CONSTANT
            return numbers[CENTRE]
        bound = free_bound(s, arm, n, level)
        numbers[CHOSEN] = FREE
    if counts[N_NONZERO] > p.guard * level and counts[N_X] > 0:
        trimmed = trimmed_bound(p, s, arm, n, level)
        if trimmed < bound:
            bound = trimmed
            numbers[CHOSEN] = TRIMMED
    numbers[BOUND] = bound
    return numbers[CENTRE] + bound


def exponent_of(p: Params, n: float, level: float) -> float:
    """C of the trimmed bound: with the price of all l at once where it is proved."""
    if p.practical != 0:
        return level / n
    return (level + 1.0 + math.log(n + 2.0)) / n


@out_of_line
def free_bound(s: State, arm: int, n: float, level: float) -> float:
    """The bound of the rewards as they are; l goes down to a multiple of the largest that nears 1 as rewards accumulate."""
    curve = s.curves[arm, FREE]
    exponent = level / n
    floor = s.arms[arm, HIGHEST] * math.exp(level / (n - 1.0))
    if curve[READY] == 0.0 or not follow(curve, n, exponent, floor):
        rebuild(s, arm, FREE, 0, n * exponent, floor)
    return value_at(curve, n, exponent, curve[STEP])


@out_of_line
def trimmed_bound(p: Params, s: Any, arm: int, n: float, level: float) -> float:
    """The bound of the rewards with those beyond the threshold set to the centre; l is at least the threshold."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    curve = s.curves[arm, TRIMMED]
    a = p.c * level
    d = clipped_at(s, arm, a)
    counts[TOP_ABOVE] = d
    threshold = math.sqrt((numbers[TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]) / (a - d))
    numbers[THRESHOLD] = threshold
    big = s.buffer[arm, BIG_VALUE]
    trimmed = counts[BIG_ABOVE]
    while trimmed < counts[BIG] and abs(big[trimmed]) > threshold:
        trimmed += 1
    while trimmed > 0 and abs(big[trimmed - 1]) <= threshold:
        trimmed -= 1
    exponent = exponent_of(p, n, level)
    if trimmed != counts[BIG_ABOVE]:
        counts[BIG_ABOVE] = trimmed
        curve[READY] = 0.0
    if curve[READY] == 0.0 or not follow(curve, n, exponent, threshold):
        rebuild(s, arm, TRIMMED, trimmed, n * exponent, threshold)
    return value_at(curve, n, exponent, curve[STEP])


@out_of_line
def rebuild(s: State, arm: int, which: int, first: int, level: float, floor: float) -> None:
    """Make a curve anew from the rewards kept."""
    counts = s.counts[arm]
    cut = s.arms[arm, CUT]
    remake(
        s.curves[arm, which],
        s.buffer[arm, BIG_VALUE],
        first,
        counts[BIG],
        s.near[arm],
        cut,
        float(counts[N_NEAR]),
        float(counts[N_X]),
        level,
        floor,
    )
    if s.curves[arm, which, AT] < 3.9999 * cut:
        s.clock[FALLBACKS] += 1


@out_of_line
def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The tangent of the bound at the last l, until l is not feasible or what is trimmed changes."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N_X])
    which = int(numbers[CHOSEN])
    if which == NONE:
        return math.inf, 0.0, math.inf
    unseen = math.inf
    if p.practical != 0 and numbers[HIGHEST] == 0.0:
        unseen = (1.0 - SLACK) * n / UNSEEN
    if which == CONSTANT:
        return numbers[CENTRE], 0.0, unseen
    curve = s.curves[arm, which]
    step = curve[STEP]
    bound = numbers[BOUND]
    if which == TRIMMED:
        until = (1.0 - SLACK) * min(counts[N_NONZERO] / p.guard, next_event(p, s, arm))
    else:
        until = unseen
        if numbers[HIGHEST] > 0.0:
            at = curve[AT] + step * curve[GAP]
            ahead = numbers[HIGHEST] * math.exp((1.0 + WINDOW) * level / (n - 1.0))
            if at < ahead:
                step = min((ahead - curve[AT]) / curve[GAP], RADIUS)
                at = curve[AT] + step * curve[GAP]
                bound = value_at(curve, n, level / n, step)
            until = (1.0 - SLACK) * (n - 1.0) * math.log(at / numbers[HIGHEST])
    at = curve[AT] + step * curve[GAP]
    height = numbers[CENTRE] + bound + SLACK * (abs(numbers[CENTRE]) + abs(bound))
    return height, (at - bound) / n * (1.0 + SLACK), until


def next_event(p: Params, s: State, arm: int) -> float:
    """The level at which the threshold comes down to the largest reward that is not trimmed."""
    counts = s.counts[arm]
    if counts[BIG_ABOVE] == counts[BIG]:
        return math.inf
    size = abs(s.buffer[arm, BIG_VALUE, counts[BIG_ABOVE]])
    top = s.buffer[arm, TOP_VALUE]
    d = counts[TOP_ABOVE]
    while d < counts[TOP] and top[d] > size:
        d += 1
    squares = s.arms[arm, TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]
    return (d + squares / (size * size)) / p.c


@out_of_line
def collect(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
    """One of the first rewards: keep it as it came, and renew the centre where that is due."""
    counts = s.counts[arm]
    firsts = s.firsts[arm]
    if p.practical != 0:
        firsts[1, counts[N_TOP]] = reward
    elif mark == IN_TOP or counts[N_X] == FIRST:
        mark = IN_TOP
        firsts[1, counts[N_TOP]] = reward
    else:
        firsts[0, counts[N_X]] = reward
    learn(p, s, arm, reward, mark)
    if (p.practical != 0 or mark == IN_TOP) and due(counts[N_TOP]):
        n_x = counts[N_X]
        n_top = counts[N_TOP]
        s.arms[arm] = 0.0
        counts[N_X] = counts[N_NONZERO] = counts[TOP] = counts[TOP_ABOVE] = counts[BIG] = counts[BIG_ABOVE] = 0
        counts[N_TOP] = counts[N_NEAR] = 0
        s.buffer[arm, TOP_SQUARES, 0] = 0.0
        s.curves[arm] = 0.0
        s.arms[arm, CENTRE] = median_in_place(firsts[1], n_top)
        for j in range(n_top):
            learn(p, s, arm, firsts[1, j], IN_TOP)
        if p.practical == 0:
            for j in range(n_x):
                learn(p, s, arm, firsts[0, j], 0.0)


@out_of_line
def learn(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
    """Put a reward, seen from the centre, where it belongs."""
    z = reward - s.arms[arm, CENTRE]
    if abs(z) < TINY:
        z = 0.0
    if p.practical != 0 or mark == IN_TOP:
        learn_threshold(s, arm, abs(z))
    if p.practical != 0 or mark != IN_TOP:
        learn_value(p, s, arm, z)


def learn_threshold(s: State, arm: int, size: float) -> None:
    """Put a size in its place among the largest, or into the running sum of squares."""
    counts = s.counts[arm]
    counts[N_TOP] += 1
    if size == 0.0:
        return
    counts[N_NONZERO] += 1
    if size <= s.arms[arm, TOP_CUT]:
        s.arms[arm, TOP_BELOW] += size * size
    else:
        insert_top(s.buffer[arm], counts, size)
        if counts[TOP] >= counts[TOP_NEXT]:
            merge(s, arm)


def learn_value(p: Params, s: State, arm: int, z: float) -> None:
    """Add a value to the curves, and keep it or its powers."""
    counts = s.counts[arm]
    numbers = s.arms[arm]
    counts[N_X] += 1
    numbers[HIGHEST] = max(numbers[HIGHEST], z)
    trimmed = s.curves[arm, TRIMMED]
    if abs(z) <= numbers[CUT]:
        counts[N_NEAR] += 1
        if z != 0.0:
            add_near(s.near[arm], z / numbers[CUT])
        if trimmed[READY] != 0.0:
            add_value(trimmed, z)
    else:
        place = insert_big(s.buffer[arm, BIG_VALUE], counts, z)
        if trimmed[READY] != 0.0:
            if place < counts[BIG_ABOVE]:
                add_zero(trimmed)
            else:
                add_value(trimmed, z)
        if counts[BIG] >= counts[BIG_NEXT]:
            merge(s, arm)
    if p.practical != 0 and s.curves[arm, FREE, READY] != 0.0:
        add_value(s.curves[arm, FREE], z)


@out_of_line
def insert_big(big: Floats, counts: Ints, z: float) -> int:
    """Insert a value by size; returns its place. One that comes before the last trimmed value is trimmed too."""
    place = counts[BIG]
    size = abs(z)
    while place > 0 and abs(big[place - 1]) < size:
        big[place] = big[place - 1]
        place -= 1
    big[place] = z
    counts[BIG] += 1
    if place < counts[BIG_ABOVE]:
        counts[BIG_ABOVE] += 1
    return place


@out_of_line
def merge(s: Any, arm: int) -> None:
    """Let go of sizes below every later threshold, and move values that are small against every later l to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    top = s.buffer[arm, TOP_VALUE]
    big = s.buffer[arm, BIG_VALUE]
    room = top.shape[0] - 1
    a = s.limits[0]
    if counts[N_NONZERO] > a and counts[N_TOP] >= FIRST:
        d = clipped_at(s, arm, a)
        lowest = (1.0 - 1e-9) * math.sqrt((numbers[TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]) / (a - d))
        numbers[TOP_CUT] = max(numbers[TOP_CUT], lowest)
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= numbers[TOP_CUT]:
            counts[TOP] -= 1
        free = s.curves[arm, FREE]
        if free[AT] > 0.0:  # in use
            n = float(counts[N_X])
            least = minimiser(big, 0, counts[BIG], s.near[arm], numbers[CUT], n, s.limits[1], 0.0, free[AT])
            lowest = min(lowest, least)
        move_near(s, arm, (1.0 - 1e-9) * lowest / 4.0)
    if counts[BIG] == room or counts[TOP] == room:
        if room < s.clock[LIMIT]:
            s.clock[FULL] = 1
        else:
            if counts[BIG] == room:
                move_near(s, arm, abs(big[room - 1 - room // 8]))
                s.curves[arm, TRIMMED, READY] = 0.0  # trimmed values may have been moved
            if counts[TOP] == room:
                counts[TOP] -= room // 8
                numbers[TOP_CUT] = max(numbers[TOP_CUT], top[counts[TOP]])
    counts[TOP_ABOVE] = min(counts[TOP_ABOVE], counts[TOP])
    counts[BIG_ABOVE] = min(counts[BIG_ABOVE], counts[BIG])
    counts[TOP_NEXT] = min(room, counts[TOP] + counts[TOP] // 4 + 64)
    counts[BIG_NEXT] = min(room, counts[BIG] + counts[BIG] // 4 + 64)


def move_near(s: State, arm: int, cut: float) -> None:
    """Values up to ``cut`` go from the buffer to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    near = s.near[arm]
    big = s.buffer[arm, BIG_VALUE]
    if cut <= numbers[CUT]:
        return
    factor = 1.0
    for k in range(TERMS):
        factor *= numbers[CUT] / cut
        near[k] *= factor
    numbers[CUT] = cut
    while counts[BIG] > 0 and abs(big[counts[BIG] - 1]) <= cut:
        counts[BIG] -= 1
        counts[N_NEAR] += 1
        add_near(near, big[counts[BIG]] / cut)
