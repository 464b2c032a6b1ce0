"""Clipped-SGD-UCB (Dorn, Katrutsa, Latypov, Pudovikov 2024)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import normal
from robandit.kernel.types import UInts
from robandit.policies._parts.blocks import median
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import index_state, params_of, state_of
from robandit.policies.assumptions import SYMMETRIC
from robandit.policies.classic.ucb1 import COUNT, UCB1
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import IndexPolicy, select_largest, slightly_above, take_pull
from robandit.validation import integer, invalid, positive, within

MEAN, FILLED = 0, 2  # numbers of an arm besides COUNT; FILLED: rewards in the present batch
LARGEST = 10_000  # largest number of groups, and of first rewards, which are stored for every arm


def select_held(index: Any, outlook: Any, level: Any, rewards: Any, first: Any, p: Any, s: Any) -> int:
    """Return the arm whose batch is incomplete, if it is allowed, or else the arm that `select_largest` chooses."""
    if s.held[0] >= 0 and s.allowed[s.held[0]]:
        return s.held[0]
    return select_largest(index, outlook, level, rewards, first, p, s)


class ClippedSGDUCB(IndexPolicy):
    """UCB policy on a location that is learned by clipped gradient steps, for symmetric rewards with arbitrarily heavy tails.

    Each reward moves the arm's estimate towards itself, by at most ``range`` times a step size. If rewards are symmetric about
    their mean, the estimate converges to it; otherwise it moves to a point nearer to the median: use it only where symmetry is
    plausible. Memory is constant per arm. The step size is constant, so arms that differ by much less than a step cannot be
    distinguished. If you multiply all rewards by a number, multiply ``range``, ``coeff`` and ``smoothing`` as well.

    Parameters
    ----------
    horizon
        Number of pulls T; `simulate` fills it in. The step size is ``1 / log(4 (T+1) T^2)``.
    range
        A bound on the size of all means. No step is longer than ``range`` times the step size.
    coeff
        The index is ``estimate + coeff sqrt(log t / n)``. The authors use 0.1 and 0.2, with which a run may play a worse arm.
    init_steps
        An arm's first estimate is the median of this many rewards; 3 for heavy tails, 1 for light tails. 0: it is ``range``.
    groups
        A step follows the median of this many group means. Must be odd.
    batch
        Rewards in each group. A chosen arm is pulled ``groups`` times ``batch`` times.
    smoothing
        Scale of the normal noise that is added to each group mean. 0: no noise is drawn.

    Guarantee
    ---------
    Claimed in the paper's abstract: worst-case regret of order ``log(T) sqrt(K T log T)``, if the noise of every arm is symmetric,
    with or without a mean. Requires a bound on the size of the arms' locations. Needs the horizon T in advance. Randomised only by
    the smoothing. The rule and its constants are those of the paper's code (which does not count the next pull in t), not checked
    against the text. The proof was not checked either, and may not cover the ``coeff`` of the experiments.

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

    use_when = "rewards are symmetric with very heavy tails"
    label = "Clipped-SGD-UCB"
    about = Facts(
        knows=("horizon", "range"),
        anytime=False,
        random=True,
        assumption=SYMMETRIC,
        bound="claim of Dorn et al.",
        worst="log T sqrt(K T log T)",
        adaptive=Adaptive(True, True, True, True),
        notes=(
            "Clipped-SGD-UCB: rule and constants are those of the paper's code. Neither they nor the claim were checked against "
            "the text.",
        ),
        citation="Dorn, Katrutsa, Latypov, Pudovikov 2024",
        source="the authors' code",
    )

    def validate(self) -> None:
        owner = "ClippedSGDUCB"
        check_known(self)
        if self.range is not None:
            positive(self.range, "range", owner=owner)
        within(self.coeff, "coeff", 0.0, math.inf, owner=owner)
        within(self.smoothing, "smoothing", 0.0, math.inf, owner=owner)
        integer(self.init_steps, "init_steps", 0, LARGEST, owner=owner)
        integer(self.groups, "groups", 1, LARGEST, owner=owner)
        integer(self.batch, "batch", 1, 2**31, owner=owner)
        if self.groups % 2 == 0:
            raise invalid("groups", self.groups, "odd, because a median is taken over the groups", owner=owner)

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        return float(np.max(np.abs(problem.means))) if name == "range" else super().learned(name, problem, eps)

    def params(self: Any) -> Any:
        step = 1.0 / math.log(4.0 * (self.horizon + 1.0) * float(self.horizon) ** 2)
        return params_of(
            step=step,
            largest=float(self.range),  # gradient
            coeff=float(self.coeff),
            first=self.init_steps or self.groups * self.batch,  # rewards before the first index
            init_steps=self.init_steps,
            groups=self.groups,
            batch=self.batch,
            smoothing=float(self.smoothing),
        )

    def init(self: Any, arms: int, horizon: int | None) -> Any:
        numbers = np.zeros((arms, 3))
        numbers[:, MEAN] = self.range
        sums = np.zeros((arms, max(self.init_steps, self.groups)))  # of groups, or the first rewards
        held = np.full(1, -1, dtype=np.int64)  # the arm with an incomplete batch
        state = index_state(arms, arms=numbers, sums=sums, held=held)
        return state_of(**state._asdict(), rng=np.zeros(4, dtype=np.uint64))

    select = staticmethod(partial(select_held))

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        mark = take_pull(p, s, arm)
        if not complete(p, s.pulls[arm]):
            s.held[0] = arm
        elif s.held[0] == arm:
            s.held[0] = -1
        return mark

    @staticmethod
    def expire(p: Any, s: Any, arm: int, mark: float) -> None:
        """Forget a lost pull: the next one takes its place in the batch."""
        s.pulls[arm] -= 1
        if s.held[0] == arm and complete(p, s.pulls[arm]):
            s.held[0] = -1

    rewards = staticmethod(UCB1.rewards)

    @staticmethod
    def first(p: Any) -> float:
        return float(p.first)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        row[COUNT] += 1.0
        if row[COUNT] <= p.init_steps:
            collect_first(p, s, arm, reward)
        elif p.groups == 1 and p.batch == 1:
            row[MEAN] = stepped(p, row[MEAN], row[MEAN] - reward + noise(p, s.rng))
        else:
            collect(p, s, arm, reward)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN] if s.arms[arm, COUNT] >= p.first else math.nan

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return estimate + coeff sqrt(log t / n), with level = log t."""
        return s.arms[arm, MEAN] + p.coeff * math.sqrt(level / s.arms[arm, COUNT])

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent. The index is concave in the level, so it stays below."""
        width = p.coeff * math.sqrt(level / s.arms[arm, COUNT])
        if level <= 0.0:
            return s.arms[arm, MEAN] + width, 0.0, 0.0
        return slightly_above(s.arms[arm, MEAN], width), 0.5 * width / level, math.inf


def complete(p: Any, pulls: int) -> bool:
    """Return whether this many pulls of an arm are its first pulls plus complete batches."""
    return pulls >= p.first and (pulls - p.first) % (p.groups * p.batch) == 0


def stepped(p: Any, mean: float, gradient: float) -> float:
    """Return the estimate after a step along the clipped gradient."""
    return mean - p.step * max(-p.largest, min(p.largest, gradient))


@out_of_line
def noise(p: Any, rng: UInts) -> float:
    """Return the noise that is added to the mean of a group."""
    return p.smoothing * normal(rng) if p.smoothing > 0.0 else 0.0


@out_of_line
def collect_first(p: Any, s: Any, arm: int, reward: float) -> None:
    """Collect one of the first rewards, whose median is the first estimate."""
    count = int(s.arms[arm, COUNT])
    s.sums[arm, count - 1] = reward
    if count == p.init_steps:
        s.arms[arm, MEAN] = median(s.sums[arm], count)
        s.sums[arm, :] = 0.0


@out_of_line
def collect(p: Any, s: Any, arm: int, reward: float) -> None:
    """Collect a reward of a batch with groups, and take a step after the last one."""
    row = s.arms[arm]
    s.sums[arm, int(row[FILLED]) // p.batch] += reward
    row[FILLED] += 1.0
    if row[FILLED] == p.groups * p.batch:
        for group in range(p.groups):
            s.sums[arm, group] = row[MEAN] - s.sums[arm, group] / p.batch + noise(p, s.rng)
        row[MEAN] = stepped(p, row[MEAN], median(s.sums[arm], p.groups))
        s.sums[arm, :] = 0.0
        row[FILLED] = 0.0
