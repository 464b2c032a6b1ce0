"""Clipped-SGD-UCB (Dorn, Katrutsa, Latypov, Pudovikov 2024)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.random import normal
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies._parts.blocks import median
from robandit.policies.assumptions import SYMMETRIC
from robandit.policies.base import Policy, check_horizon, check_number, check_whole
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, log_time, no_pulls, pulls_made, take_pull, untried

__all__ = ["ClippedSGDUCB"]

# Numbers of an arm.
MEAN = 0
COUNT = 1
FILLED = 2  # rewards in the batch that is being collected

LARGEST = 10_000  # groups, and first rewards, which are kept for every arm
SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """Step, largest gradient, width, rewards before the first index, and the batches."""

    step: float
    largest: float
    coeff: float
    first: int
    init_steps: int
    groups: int
    batch: int
    smoothing: float


class State(NamedTuple):
    """Estimates; sums of groups (or the first rewards); the arm whose batch is being pulled; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, 3)
    sums: Floats
    held: Ints
    pulls: Ints
    lines: Floats
    lead: Ints
    rng: UInts


class ClippedSGDUCB(Policy):
    """Optimism on a location that is learned by gradient steps of bounded size: rewards of symmetric shape, however heavy.

    Each reward moves the arm's estimate towards itself, by at most ``range`` times a step size. For rewards that are symmetric
    about their mean the estimate goes there, even if they are so heavy that a sample mean is useless. For others it goes elsewhere,
    nearer to the median, and the policy looks for the arm where that is largest: use it only where symmetry is credible. It keeps
    a fixed number of values per arm. The step size never falls, so estimates never come to rest: arms that differ by much less
    than the length of a step are not told apart. The width does not follow the unit of the rewards: with all rewards,
    multiply ``range``, ``coeff`` and ``smoothing``.

    Parameters
    ----------
    horizon
        Number of pulls T; `simulate` fills it in. The step size is ``1 / log(4 (T+1) T^2)``.
    range
        A bound on the size of all means. No step is longer than ``range`` times the step size.
    coeff
        The index is ``estimate + coeff sqrt(log t / n)``. The authors tune it; 0.1 and 0.2 are in their experiments. With so small
        a width a run may stay with a worse arm to its end: look at the worst replications, not only at the mean.
    init_steps
        An arm's first estimate is the median of that many rewards: the authors advise 3 for heavy tails, and 1 for light ones. 0:
        it is ``range``, and the first steps lead down from there.
    groups
        A step follows the median of that many group means: an odd number.
    batch
        Rewards in each group. An arm that is chosen is pulled ``groups`` times ``batch`` times.
    smoothing
        Each group mean gets a normal variable times this added. 0: nothing is drawn.

    Guarantee
    ---------
    Claimed in the paper's abstract: worst-case regret of order ``log(T) sqrt(K T log T)``, if the noise of every arm is symmetric;
    it may even have no mean. Must know: T, and a bound on the size of the arms' locations. Not anytime; random by the smoothing
    only. The rule and its constants are those of the paper's code, not checked against its text (confidence 0.90); its proof
    was not checked either, and nothing says that it holds for the ``coeff`` of the experiments. Here t counts the pull that is
    about to be made, there those made before.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.student_t(means=[0.0, 1.0], dof=1.5)
    >>> policy = rb.ClippedSGDUCB().informed_by(problem)
    >>> policy.range
    1.0
    >>> result = rb.simulate(policy, problem, horizon=5000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 2500)  # uniform play: 2500
    True

    References
    ----------
    Y. Dorn, A. Katrutsa, I. Latypov, A. Pudovikov. Fast UCB-type algorithms for stochastic bandits with heavy and super heavy
    symmetric noise. arXiv 2402.07062, 2024.
    """

    horizon: int | None = None
    range: float | None = None
    coeff: float = 0.1
    init_steps: int = 3
    groups: int = 1
    batch: int = 1
    smoothing: float = 0.001

    label = "Clipped-SGD-UCB"
    columns = ("mean", "index")
    about = Facts(
        knows=("horizon", "range"),
        anytime=False,
        random=True,
        assumption=SYMMETRIC,
        bound="claim of Dorn et al.",
        worst="log T sqrt(K T log T)",
        adaptive=Adaptive(True, True, True, True),
        title="Clipped-SGD-UCB",
        notes=(
            "Clipped-SGD-UCB: rule and constants are those of the paper's code, not checked against the text, nor is the claim.",
        ),
        citation="Dorn, Katrutsa, Latypov, Pudovikov 2024",
    )

    def validate(self) -> None:
        """Numbers of the right kind, and an odd number of groups."""
        check_horizon("ClippedSGDUCB", self.horizon)
        if self.range is not None:
            check_number("ClippedSGDUCB", "range", self.range, above=0.0)
        check_number("ClippedSGDUCB", "coeff", self.coeff, least=0.0)
        check_number("ClippedSGDUCB", "smoothing", self.smoothing, least=0.0)
        check_whole("ClippedSGDUCB", "init_steps", self.init_steps, 0, LARGEST)
        check_whole("ClippedSGDUCB", "groups", self.groups, 1, LARGEST)
        check_whole("ClippedSGDUCB", "batch", self.batch, 1, 2**31)
        if self.groups % 2 == 0:
            raise InvalidInput(f"ClippedSGDUCB: groups = {self.groups!r} must be odd: a median is taken over them")

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """The largest mean by size."""
        return float(np.max(np.abs(problem.means))) if name == "range" else super().learned(name, problem, eps)

    def params(self) -> Params:
        """The step size and the rest as numbers."""
        assert self.horizon is not None
        assert self.range is not None
        step = 1.0 / math.log(4.0 * (self.horizon + 1.0) * float(self.horizon) ** 2)
        first = self.init_steps or self.groups * self.batch
        numbers = (self.init_steps, self.groups, self.batch, float(self.smoothing))
        return Params(step, float(self.range), float(self.coeff), first, *numbers)

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        assert self.range is not None
        numbers = np.zeros((arms, 3))
        numbers[:, MEAN] = self.range
        sums = np.zeros((arms, max(self.init_steps, self.groups)))
        held = np.full(1, -1, dtype=np.int64)
        return State(numbers, sums, held, no_pulls(arms), *lazy_state(arms), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p: Params, s: State) -> int:
        """The arm whose batch is not complete; then arms without estimate; then the largest index."""
        arms = s.arms.shape[0]
        if s.held[0] >= 0:
            return s.held[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, float(p.first))
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s))

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """Count the pull, and keep to the arm until its batch is complete."""
        mark = take_pull(p, s, arm)
        if not complete(p, s.pulls[arm]):
            s.held[0] = arm
        elif s.held[0] == arm:
            s.held[0] = -1
        return mark

    @staticmethod
    def expire(p: Params, s: State, arm: int, mark: float) -> None:
        """A lost pull is as one that was never made: the next one takes its place in the batch."""
        s.pulls[arm] -= 1
        if s.held[0] == arm and complete(p, s.pulls[arm]):
            s.held[0] = -1

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Collect the reward; a complete batch is a step."""
        row = s.arms[arm]
        row[COUNT] += 1.0
        if row[COUNT] <= p.init_steps:
            begin(p, s, arm, reward)
        elif p.groups == 1 and p.batch == 1:
            row[MEAN] = stepped(p, row[MEAN], row[MEAN] - reward + noise(p, s.rng))
        else:
            collect(p, s, arm, reward)
        if row[COUNT] == p.first:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The arm's location so far, and the index."""
        out[0] = math.nan
        out[1] = math.inf
        if s.arms[arm, COUNT] >= p.first:
            out[0] = s.arms[arm, MEAN]
            out[1] = index(p, s, arm, log_time(s))


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def complete(p: Params, pulls: int) -> bool:
    """Whether this many pulls of an arm are its first ones and whole batches."""
    return pulls >= p.first and (pulls - p.first) % (p.groups * p.batch) == 0


def stepped(p: Params, mean: float, gradient: float) -> float:
    """The estimate after a step against a gradient that is cut off at the largest."""
    return mean - p.step * max(-p.largest, min(p.largest, gradient))


@out_of_line
def noise(p: Params, rng: UInts) -> float:
    """What smooths the mean of a group."""
    return p.smoothing * normal(rng) if p.smoothing > 0.0 else 0.0


@out_of_line
def begin(p: Params, s: State, arm: int, reward: float) -> None:
    """One of the first rewards: their median is the first estimate."""
    count = int(s.arms[arm, COUNT])
    s.sums[arm, count - 1] = reward
    if count == p.init_steps:
        s.arms[arm, MEAN] = median(s.sums[arm], count)
        s.sums[arm, :] = 0.0


@out_of_line
def collect(p: Params, s: State, arm: int, reward: float) -> None:
    """A reward of a batch with groups; if it is the last, take the step."""
    row = s.arms[arm]
    s.sums[arm, int(row[FILLED]) // p.batch] += reward
    row[FILLED] += 1.0
    if row[FILLED] == p.groups * p.batch:
        for group in range(p.groups):
            s.sums[arm, group] = row[MEAN] - s.sums[arm, group] / p.batch + noise(p, s.rng)
        row[MEAN] = stepped(p, row[MEAN], median(s.sums[arm], p.groups))
        s.sums[arm, :] = 0.0
        row[FILLED] = 0.0


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Estimate + coeff sqrt(log t / n), with level = log t."""
    return s.arms[arm, MEAN] + p.coeff * math.sqrt(level / s.arms[arm, COUNT])


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The index is concave in the level, so its tangent stays above it for ever."""
    value = index(p, s, arm, level)
    if level <= 0.0:
        return value, 0.0, 0.0
    width = p.coeff * math.sqrt(level / s.arms[arm, COUNT])
    slack = SLACK * (abs(s.arms[arm, MEAN]) + width)
    return value + slack, 0.5 * width / level, math.inf
