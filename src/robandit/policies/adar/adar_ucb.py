"""AdaR-UCB (Genalti, Marsigli, Gatti, Metelli 2024), exact, in O(1) amortised time per pull and bounded memory.

What makes it fast without changing a decision:

**The threshold needs only the largest values.** M solves ``sum_j min((X'_j / M)^2, 1) = c L``. With d values above M it is
``M^2 = (sum of squares of the others) / (c L - d)``, and d < c L always. So per arm: the largest |X'| in descending order with
suffix sums of squares, and one running sum of squares for all smaller ones.

**Nothing that was put into a running sum is ever needed again.** M grows when data arrive and falls when L grows, so with today's
data and the largest level that the run can reach, ``c L_max``, the root ``M_low`` is below every later threshold. Values up to
``M_low`` are never clipped and never trimmed again: they go into running sums. Only those above it are stored: fewer than
``c L_max`` of X', and about as many of X, whatever the number of pulls. No history is kept and nothing is ever rebuilt. For X
the number is small only with high probability: the buffer grows when it must. A live bandit has a limit; should data that are
anything but independent ever exceed it, the smallest are merged too and the counter ``fallbacks`` counts each evaluation
whose threshold fell below a merged value.

**Between events the index is closed.** While M crosses no stored value, mean and variance are constant and M is
``sqrt(S / (c L - d))``: each evaluation is two square roots. The level of the next event is known in advance.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`): until its next event an arm's index stays below a line (`outlook`).

**No digits are lost.** With t of n rewards trimmed to zero, (n - 1) V is at least t/n times the sum of squares, so plain sums
will do. With none trimmed, a mean that is large against the spread would cancel: for that case alone there are sums over
all X, shifted by the first of them: (first - mean)^2 <= (n - 1) V, so at most a factor n is lost. (Shifted sums cannot serve
a threshold far below the shift.)
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
from robandit.policies.assumptions import CENTRED, NONPOSITIVE
from robandit.policies.base import Policy, check_number, hooks_of
from robandit.policies.facts import Adaptive, Facts

__all__ = ["AdaRUCB"]

C = (1.0 + math.sqrt(2.0)) ** 2
ROUNDS_FOR_EVER = 2**53  # a live bandit that decides every microsecond passes this in 285 years
LIVE_VALUES = 2048  # per buffer row: five rows of doubles are 80 KiB an arm (more if c * delta_exp is over 44)

# Numbers of an arm.
MEAN = 0  # trimmed mean, cached between events
SPREAD = 1  # var_factor * V / N
REACH = 2  # bonus * sqrt(S) / N (exact) or bonus * M / N (doubling)
CLIPPED = 3  # d, as a float
EVENT = 4  # level at which the four above stop being valid; -1 after new data
THRESHOLD = 5  # M at the level of the last refresh
SHIFT = 6  # the first X, subtracted from all in the next two
ALL_SUM = 7  # of X - SHIFT, over all X
ALL_SQUARES = 8
BELOW_SUM = 9  # of X, over those that arrived below MERGED and were never stored
BELOW_SQUARES = 10
MERGED = 11  # values up to this size are not stored but in the sums
TOP_BELOW = 12  # sum of squares of X' that were never stored
SMALLEST = 13  # smallest non-zero |X'|: where doubling starts
ARM_FLOATS = 14

# Counts of an arm.
N_X = 0  # rewards in X
N_NONZERO = 1  # non-zero rewards in X'
TOP = 2  # stored |X'|
TOP_ABOVE = 3  # those above M: d
BIG = 4  # stored X
BIG_ABOVE = 5  # those above M: trimmed
ISSUED_X = 6  # pulls made for X, rewarded or not: rounds begun
ISSUED_TOP = 7  # pulls made for X'
TOP_NEXT = 8  # number of stored values at which to merge
BIG_NEXT = 9
ARM_INTS = 10

# Rows of an arm's buffer; TOP_* and BIG_* are in descending order of size, sums are suffix sums that include what was merged.
TOP_VALUE = 0
TOP_SQUARES = 1
BIG_VALUE = 2
BIG_SUM = 3
BIG_SQUARES = 4
ROWS = 5

# The run as a whole.
ROUNDS = 0  # begun
CURRENT = 1  # the arm whose second pull is next, or -1
FULL = 2
FALLBACKS = 3
LIMIT = 4  # most values in a buffer row
LEAST = 5  # a lower bound of the smallest N_NONZERO
CLOCK = 6

IN_X = 0.0  # marks: which stream a pull was made for
IN_TOP = 1.0
SLACK = 1e-12  # far above the rounding of the few operations in an index, far below what a bound loses otherwise


class Params(NamedTuple):
    """The parameters as numbers."""

    c: float
    guard: float
    bonus: float  # 0: the tight one
    var_factor: float
    delta_exp: float
    doubling: int
    by_rounds: int


class State(NamedTuple):
    """See the names above."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, ROWS, capacity + 1)
    limits: Floats  # [largest c L]
    lines: Floats
    lead: Ints
    clock: Ints


class AdaRUCB(Policy):
    """Optimism on a trimmed mean whose threshold is found from the data: nothing about the tails must be known.

    Each round pulls one arm twice. First rewards (X) give a trimmed mean and its variance, second ones (X') the threshold. Use
    it as the faithful reference: it adapts to the order eps and the bound u of the moments at once. With its printed constants it
    explores for long (below T = 1e5 it is often close to uniform play); ``bonus="tight"`` halves that at no loss
    of guarantee, and ``center="median"`` makes it the same wherever rewards lie. Not for right-skewed rewards such as
    revenue, where the assumption fails.

    Parameters
    ----------
    c
        Constant of the threshold equation. The regret proof needs (1 + sqrt 2)^2, the default.
    guard
        An arm is explored while it has at most ``guard * log(1/delta)`` non-zero second rewards. None: c, below which the
        equation has no root. (The paper prints 4, with which the first root asked for never exists.)
    bonus
        ``"paper"``: 10 M L / N. ``"tight"``: 14 M L / (3 (N - 1)), the same inequality before rounding (ours). Or a number in
        place of 10.
    var_factor
        Factor of the variance in ``sqrt(var_factor V L / N)``.
    delta_exp
        Round tau uses delta = tau^-delta_exp, so L = delta_exp log tau.
    solver
        ``"exact"`` root, or ``"doubling"`` (the paper's Appendix C, started at the smallest non-zero value): M up to
        twice as large.
    tie
        ``"fewest"`` rounds first, then the lowest arm; or ``"lowest"`` arm.
    center
        None: rewards are trimmed towards 0, as in the paper. ``"median"`` (ours): towards the centre of their arm, the median of
        its first 1, 2, 4, ..., 128 second rewards, as many as there are. Each index is a valid upper confidence bound with
        probability at least 1 - exp(-L) given the centre, under truncated non-positivity ABOUT THE CENTRE: true for laws that
        are left-skewed by more than the error of the centre. The estimated median of a symmetric or nearly symmetric law lies
        below the true one half of the time, and with few rewards (``|X'|`` near c L) that costs validity: about half of all
        indices are then too low (from 3 c L on hardly any, measured, not proved). No regret theorem. Decisions become shift-
        and scale-equivariant. Arms that are closer than the error of their centres need a larger ``guard``, 3 c to be safe.
        Second rewards that equal the centre count as zeros do otherwise: an arm whose rewards are all the same is explored for
        ever.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0), then for
    every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret grows as ``sum_i (u / gap_i)^(1/eps) log T`` and at worst as
    ``(K log T)^(eps/(1+eps)) (u T)^(1/(1+eps))`` (Theorems 7 and 8; the rates hold, the printed constants have a gap in their
    proof, and those of Theorem 7 are too small: `robandit.theory.regret_bound` has the repaired ones). Must know: nothing.
    Anytime, not random. With a ``bonus``, ``c``, ``guard``, ``var_factor`` or ``delta_exp`` below the defaults (``"tight"``
    excepted), or with a ``center``, no regret bound is proved.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(), seed=0)
    >>> bandit.select()
    'a'
    >>> bandit.update("a", -1.5)
    >>> bandit.select()  # each chosen arm comes twice
    'a'

    References
    ----------
    G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed bandits.
    COLT 2024, PMLR 247.
    """

    c: float = C
    guard: float | None = None
    bonus: float | Literal["paper", "tight"] = "paper"
    var_factor: float = 2.0
    delta_exp: float = 3.0
    solver: Literal["exact", "doubling"] = "exact"
    tie: Literal["fewest", "lowest"] = "fewest"
    center: Literal["median"] | None = None

    label = "AdaR-UCB"
    columns = ("mean", "index", "threshold", "share_trimmed")
    about = Facts(
        assumption=NONPOSITIVE,
        bound="Theorems 7 and 8 of Genalti et al.",
        instance="sum ((u/gap)^(1/eps) + gap/P(X != 0)) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps)) + sum gap/P(X != 0) log T",
        matches=(True, True),
        adaptive=Adaptive(True, True, True, True),
        citation="Genalti, Marsigli, Gatti, Metelli 2024",
        row=13,
        title="AdaR-UCB",
        notes=(
            "AdaR-UCB with center='median' assumes truncated non-positivity about the arm's median; no regret bound is proved for "
            "it.",
        ),
    )

    def validate(self) -> None:
        """Positive constants, a guard that makes the root exist, and known words."""
        check_number("AdaRUCB", "c", self.c, above=0.0)
        if self.guard is not None:
            check_number("AdaRUCB", "guard", self.guard, least=self.c)
        if not isinstance(self.bonus, str):
            check_number("AdaRUCB", "bonus", self.bonus, above=0.0)
        elif self.bonus not in ("paper", "tight"):
            raise InvalidInput(f"AdaRUCB: bonus = {self.bonus!r} must be 'paper', 'tight' or a number > 0")
        check_number("AdaRUCB", "var_factor", self.var_factor, least=0.0)
        check_number("AdaRUCB", "delta_exp", self.delta_exp, above=0.0)
        if self.c * self.delta_exp > 1e4:
            raise InvalidInput(
                f"AdaRUCB: c * delta_exp = {self.c * self.delta_exp:g} must be at most 1e4: each arm stores 37 times as many values"
            )
        if self.solver not in ("exact", "doubling"):
            raise InvalidInput(f"AdaRUCB: solver = {self.solver!r} must be 'exact' or 'doubling'")
        if self.tie not in ("fewest", "lowest"):
            raise InvalidInput(f"AdaRUCB: tie = {self.tie!r} must be 'fewest' or 'lowest'")
        if self.center not in (None, "median"):
            raise InvalidInput(f"AdaRUCB: center = {self.center!r} must be 'median', or None for no centre")

    @property
    def facts(self) -> Facts:
        """About a centre another assumption is made, and less is proved."""
        if self.center is None:
            return self.about
        return dataclasses.replace(
            self.about,
            assumption=CENTRED,
            bound="",
            instance="",
            worst="",
            matches=(None, None),
            row=0,
            title="AdaR-UCB, centred",
        )

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """With a centre there are others."""
        if self.center is None:
            return super().hooks(*names)
        from robandit.policies.adar.centred import Centred  # which is made of what is below

        return hooks_of(Centred, *names)

    def params(self) -> Params:
        """Words become numbers."""
        bonus = {"paper": 10.0, "tight": 0.0}[self.bonus] if isinstance(self.bonus, str) else float(self.bonus)
        return Params(
            c=float(self.c),
            guard=float(self.c if self.guard is None else self.guard),
            bonus=bonus,
            var_factor=float(self.var_factor),
            delta_exp=float(self.delta_exp),
            doubling=int(self.solver == "doubling"),
            by_rounds=int(self.tie == "fewest"),
        )

    def init(self, arms: int, horizon: int | None) -> Any:
        """Buffers for the horizon; in a live bandit small ones that grow up to a limit."""
        rounds = ROUNDS_FOR_EVER if horizon is None else max(horizon // 2 + 1, 2)
        largest = self.c * self.delta_exp * math.log(rounds)
        room = math.ceil(1.25 * largest) + 64
        limit = max(LIVE_VALUES, room) if horizon is None else np.iinfo(np.int64).max
        capacity = 64 if horizon is None else min(room, rounds + 2)
        numbers = np.zeros((arms, ARM_FLOATS))
        numbers[:, EVENT] = -1.0
        numbers[:, SMALLEST] = math.inf
        clock = np.zeros(CLOCK, dtype=np.int64)
        clock[CURRENT] = -1
        clock[LIMIT] = limit
        clock[LEAST] = -1
        counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
        counts[:, [TOP_NEXT, BIG_NEXT]] = min(32, capacity)
        buffer = np.zeros((arms, ROWS, capacity + 1))
        state = State(numbers, counts, buffer, np.array([largest]), *lazy_state(arms), clock)
        if self.center is None:
            return state
        from robandit.policies.adar.centred import with_centres

        return with_centres(state)

    def grow(self, state: Any) -> Any:
        """Twice the room in every buffer."""
        arms, rows, width = state.buffer.shape
        capacity = min(2 * (width - 1), int(state.clock[LIMIT]))
        buffer = np.zeros((arms, rows, capacity + 1))
        buffer[:, :, :width] = state.buffer
        state.clock[FULL] = 0
        return state._replace(buffer=buffer)

    def counters(self, state: Any) -> dict[str, int]:
        """Evaluations that were not exact because a live bandit's memory limit was reached."""
        return {"fallbacks": int(state.clock[FALLBACKS])}

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Algorithm 1, line 9, at round tau: forced arms first, then the largest index."""
        if s.clock[CURRENT] >= 0:
            return s.clock[CURRENT]
        level = p.delta_exp * math.log(s.clock[ROUNDS] + 1.0)
        if p.guard * level >= s.clock[LEAST]:
            arm = forced(p, s, p.guard * level)
            if arm >= 0:
                return arm
        return best_arm(index, outlook, rounds, p, s, s.lines, s.lead, level)

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """A pull is made for the stream that has fewer of the arm's pulls; X first. This happens before its reward can be known."""
        counts = s.counts[arm]
        if counts[ISSUED_X] <= counts[ISSUED_TOP]:
            counts[ISSUED_X] += 1
            s.clock[ROUNDS] += 1
            mark = IN_X
        else:
            counts[ISSUED_TOP] += 1
            mark = IN_TOP
        if counts[ISSUED_X] > counts[ISSUED_TOP]:
            s.clock[CURRENT] = arm
        elif s.clock[CURRENT] == arm:
            s.clock[CURRENT] = -1
        return mark

    @staticmethod
    def expire(p: Params, s: State, arm: int, mark: float) -> None:
        """The arm's next pull is made for the stream that lost this one."""
        counts = s.counts[arm]
        if mark == IN_TOP:
            counts[ISSUED_TOP] -= 1
        else:
            counts[ISSUED_X] -= 1
            if s.clock[CURRENT] == arm and counts[ISSUED_X] <= counts[ISSUED_TOP]:
                s.clock[CURRENT] = -1

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Algorithm 1, lines 10 to 12."""
        if mark == IN_TOP:
            learn_threshold(p, s, arm, abs(reward))
        else:
            learn_mean(p, s, arm, reward)
        s.arms[arm, EVENT] = -1.0
        touched(s.lines, s.lead, arm)

    @staticmethod
    def full(p: Params, s: State) -> bool:
        """Some buffer cannot take another value."""
        return s.clock[FULL] != 0

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Trimmed mean, index, threshold and share of X above it, as the next round sees them."""
        level = p.delta_exp * math.log(s.clock[ROUNDS] + 1.0)
        out[0] = math.nan
        out[1] = math.inf
        out[2] = math.nan
        out[3] = math.nan
        if certain(s.counts[arm]) > p.guard * level:
            fallbacks = s.clock[FALLBACKS]
            s.arms[arm, EVENT] = -1.0
            out[1] = index(p, s, arm, level)
            out[0] = s.arms[arm, MEAN]
            out[2] = s.arms[arm, THRESHOLD]
            out[3] = s.counts[arm, BIG_ABOVE] / s.counts[arm, N_X]
            s.clock[FALLBACKS] = fallbacks  # asking is not counted


def rounds(p: Params, s: State, arm: int) -> int:
    """What a tie looks at first."""
    return s.counts[arm, ISSUED_X] * p.by_rounds


def certain(counts: Ints) -> int:
    """What the guard compares: the non-zero rewards in X', or -1 where X is too short for a variance."""
    if counts[N_X] < 2:
        return -1
    return counts[N_NONZERO]


@out_of_line
def forced(p: Params, s: State, needed: float) -> int:
    """The arm to explore because its threshold does not exist yet, or -1; also brings LEAST up to date."""
    chosen = -1
    least = certain(s.counts[0])
    for arm in range(s.counts.shape[0]):
        have = certain(s.counts[arm])
        least = min(least, have)
        if have <= needed and (chosen < 0 or rounds(p, s, arm) < rounds(p, s, chosen)):
            chosen = arm
    s.clock[LEAST] = least
    return chosen


def index(p: Params, s: State, arm: int, level: float) -> float:
    """B = mean + sqrt(var_factor V L / N) + bonus M L / N."""
    numbers = s.arms[arm]
    if level >= numbers[EVENT]:
        refresh(p, s, arm, level)
    reach = numbers[REACH] * level
    if p.doubling == 0:
        reach /= math.sqrt(p.c * level - numbers[CLIPPED])
    return numbers[MEAN] + math.sqrt(numbers[SPREAD] * level) + reach


def clipped_at(s: State, arm: int, a: float) -> int:
    """The number d of X' above the root of sum min((X'/M)^2, 1) = a: the least d with S_d >= top[d]^2 (a - d).

    Walks from the last answer, which is nearly always right or one off.
    """
    top = s.buffer[arm, TOP_VALUE]
    squares = s.buffer[arm, TOP_SQUARES]
    below = s.arms[arm, TOP_BELOW]
    stored = s.counts[arm, TOP]
    d = s.counts[arm, TOP_ABOVE]
    while d < stored and top[d] * top[d] * (a - d) > below + squares[d]:
        d += 1
    while d > 0 and top[d - 1] * top[d - 1] * (a - d + 1.0) <= below + squares[d - 1]:
        d -= 1
    return d


@out_of_line
def refresh(p: Params, s: State, arm: int, level: float) -> None:
    """Bring the cached numbers of an arm to this level and find the level at which they next change."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    a = p.c * level
    d = clipped_at(s, arm, a)
    counts[TOP_ABOVE] = d
    squares = numbers[TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]
    threshold = math.sqrt(squares / (a - d))
    event = 0.0  # the next smaller M at which something changes
    if d < counts[TOP]:
        event = s.buffer[arm, TOP_VALUE, d]
    if p.doubling != 0:
        threshold = doubled(numbers[SMALLEST], threshold)
        event = max(event, 0.5 * threshold)
    big = s.buffer[arm, BIG_VALUE]
    trimmed = counts[BIG_ABOVE]
    while trimmed < counts[BIG] and abs(big[trimmed]) > threshold:
        trimmed += 1
    while trimmed > 0 and abs(big[trimmed - 1]) <= threshold:
        trimmed -= 1
    counts[BIG_ABOVE] = trimmed
    if trimmed < counts[BIG] and p.doubling == 0:
        event = max(event, abs(big[trimmed]))
    if threshold < numbers[MERGED]:
        s.clock[FALLBACKS] += 1
    n = float(counts[N_X])
    mean, variance = moments(s, arm, trimmed)
    numbers[MEAN] = mean
    numbers[SPREAD] = p.var_factor * variance / n
    bonus = p.bonus / n
    if p.bonus == 0.0:
        bonus = 14.0 / (3.0 * (n - 1.0))
    numbers[REACH] = bonus * (threshold if p.doubling != 0 else math.sqrt(squares))
    numbers[CLIPPED] = d
    numbers[THRESHOLD] = threshold
    # M = event at a = d + squares / event^2; a little earlier is safe. With event = 0 nothing changes before the guard.
    numbers[EVENT] = math.inf
    if event > 0.0:
        numbers[EVENT] = (1.0 - SLACK) * (d + squares / (event * event)) / p.c


@out_of_line
def doubled(smallest: float, root: float) -> float:
    """The first of smallest, 2 smallest, 4 smallest, ... that is not below the root."""
    guess = smallest
    while guess < root:
        guess *= 2.0
    return guess


def moments(s: State, arm: int, trimmed: int) -> tuple[float, float]:
    """Mean and variance of X with its ``trimmed`` largest values set to zero."""
    numbers = s.arms[arm]
    n = float(s.counts[arm, N_X])
    shift = 0.0
    total = numbers[BELOW_SUM] + s.buffer[arm, BIG_SUM, trimmed]
    squares = numbers[BELOW_SQUARES] + s.buffer[arm, BIG_SQUARES, trimmed]
    if trimmed == 0:
        shift = numbers[SHIFT]
        total = numbers[ALL_SUM]
        squares = numbers[ALL_SQUARES]
    off = total / n
    return shift + off, max((squares - off * total) / (n - 1.0), 0.0)


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """A line above the index until the next event, with the largest slope that the index has before it."""
    numbers = s.arms[arm]
    spread = math.sqrt(numbers[SPREAD] * level)
    slope = 0.0
    if level > 0.0:
        slope = 0.5 * spread / level  # a square root is below its tangent
    reach = numbers[REACH] * level
    if p.doubling != 0:
        slope += numbers[REACH]
    else:
        # d/dL of L / sqrt(c L - d) rises until c L = 4 d and then falls: it is largest as near to that as the range allows.
        d = numbers[CLIPPED]
        steepest = min(max(4.0 * d / p.c, level), numbers[EVENT])
        excess = p.c * steepest - d
        slope += numbers[REACH] * (0.5 * p.c * steepest - d) / (excess * math.sqrt(excess))
        reach /= math.sqrt(p.c * level - d)
    value = numbers[MEAN] + spread + reach
    return value + SLACK * (abs(numbers[MEAN]) + spread + reach), slope, numbers[EVENT]


def learn_threshold(p: Params, s: State, arm: int, size: float) -> None:
    """Put |X'| in its place among the largest, or into the running sum of squares."""
    numbers = s.arms[arm]
    if size == 0.0:
        return
    s.counts[arm, N_NONZERO] += 1
    numbers[SMALLEST] = min(numbers[SMALLEST], size)
    if size <= numbers[MERGED]:
        numbers[TOP_BELOW] += size * size
    else:
        insert_top(s.buffer[arm], s.counts[arm], size)
        if s.counts[arm, TOP] >= s.counts[arm, TOP_NEXT]:
            merge(s, arm)


def learn_mean(p: Params, s: State, arm: int, reward: float) -> None:
    """Put a reward in its place among the largest of X, or into the running sums."""
    numbers = s.arms[arm]
    s.counts[arm, N_X] += 1
    if s.counts[arm, N_X] == 1:
        numbers[SHIFT] = reward
    off = reward - numbers[SHIFT]
    numbers[ALL_SUM] += off
    numbers[ALL_SQUARES] += off * off
    if abs(reward) <= numbers[MERGED]:
        numbers[BELOW_SUM] += reward
        numbers[BELOW_SQUARES] += reward * reward
    else:
        insert_big(s.buffer[arm], s.counts[arm], reward)
        if s.counts[arm, BIG] >= s.counts[arm, BIG_NEXT]:
            merge(s, arm)


@out_of_line
def insert_top(buffer: Floats, counts: Ints, size: float) -> None:
    """Insert |X'| and bring the suffix sums of squares up to date."""
    top = buffer[TOP_VALUE]
    squares = buffer[TOP_SQUARES]
    stored = counts[TOP]
    squares[stored + 1] = squares[stored]
    place = stored
    while place > 0 and top[place - 1] < size:
        top[place] = top[place - 1]
        squares[place] = squares[place - 1]
        place -= 1
    top[place] = size
    squares[place] = squares[place + 1] + size * size
    for j in range(place):
        squares[j] += size * size
    counts[TOP] += 1
    if place < counts[TOP_ABOVE]:
        counts[TOP_ABOVE] += 1


@out_of_line
def insert_big(buffer: Floats, counts: Ints, reward: float) -> None:
    """Insert a reward of X and bring the suffix sums up to date."""
    big = buffer[BIG_VALUE]
    sums = buffer[BIG_SUM]
    squares = buffer[BIG_SQUARES]
    size = abs(reward)
    stored = counts[BIG]
    sums[stored + 1] = sums[stored]
    squares[stored + 1] = squares[stored]
    place = stored
    while place > 0 and abs(big[place - 1]) < size:
        big[place] = big[place - 1]
        sums[place] = sums[place - 1]
        squares[place] = squares[place - 1]
        place -= 1
    big[place] = reward
    sums[place] = sums[place + 1] + reward
    squares[place] = squares[place + 1] + reward * reward
    for j in range(place):
        sums[j] += reward
        squares[j] += reward * reward
    counts[BIG] += 1
    if place < counts[BIG_ABOVE]:
        counts[BIG_ABOVE] += 1


@out_of_line
def merge(s: State, arm: int) -> None:
    """Let go of the stored values that are below every later threshold: they are never clipped and never trimmed.

    Truncating a row keeps its suffix sum at the new end, so the sums take care of themselves.
    """
    numbers = s.arms[arm]
    counts = s.counts[arm]
    top = s.buffer[arm, TOP_VALUE]
    big = s.buffer[arm, BIG_VALUE]
    a = s.limits[0]
    if counts[N_NONZERO] > a:
        d = clipped_at(s, arm, a)
        root = math.sqrt((numbers[TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]) / (a - d))
        lowest = max(numbers[MERGED], root * (1.0 - 1e-9))
        numbers[MERGED] = lowest
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= lowest:
            counts[TOP] -= 1
        while counts[BIG] > 0 and abs(big[counts[BIG] - 1]) <= lowest:
            counts[BIG] -= 1
    room = top.shape[0] - 1
    if counts[BIG] == room or counts[TOP] == room:
        if room < s.clock[LIMIT]:
            s.clock[FULL] = 1
        else:
            counts[BIG] = room - room // 8
            numbers[MERGED] = abs(big[counts[BIG]])
    counts[TOP_ABOVE] = min(counts[TOP_ABOVE], counts[TOP])
    counts[BIG_ABOVE] = min(counts[BIG_ABOVE], counts[BIG])
    counts[TOP_NEXT] = min(room, counts[TOP] + counts[TOP] // 4 + 16)
    counts[BIG_NEXT] = min(room, counts[BIG] + counts[BIG] // 4 + 16)
