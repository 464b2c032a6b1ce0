"""IMED (Honda, Takemura 2015), with KLinf of `sampling.divergence` and a lazy arg-min for bounded rewards."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from robandit.errors import NotApplicable
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.counting import Counting, wins_tie
from robandit.policies._parts.records import params_of, state_of
from robandit.policies._parts.reward_store import START, KeepsRewards, append, empty_store
from robandit.policies.assumptions import BELOW, NORMAL_OF_SCALE
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.policies.index import IndexHooks, count_tried, first_untried, no_pulls
from robandit.policies.sampling.divergence import FOUND_LENGTH, enclosed, learn_deficit, quick_floor, solve
from robandit.validation import choice, finite, invalid, positive

# Columns of ``arms``: rewards; their logarithm; the point from which rewards are measured (the first reward, or the upper bound;
# that of arm 0 is always the current bound); the mean measured from it; and the sum.
COUNT, LOG, SHIFT, MEAN, SUM = 0, 1, 2, 3, 4
ABOVE = 0  # in ``run``: rewards above ``upper``

_imed = partial(Facts, citation="Honda, Takemura 2015", source="reconstructed")
_FACTS = {
    "gaussian": _imed(
        knows=("scale",),
        assumption=NORMAL_OF_SCALE,
        bound="Saber, Menard, Maillard 2020, if all arms are neighbours",
        instance="sum scale^2 / gap log T",
        title="IMED - Gaussian",
        notes=("Scale 1 by default; if rewards are heavy-tailed, no scale is valid, and it serves as a control.",),
    ),
    "bounded": _imed(
        knows=("upper",),
        assumption=BELOW,
        bound="the regret theorem of Honda and Takemura, 2015",
        instance="sum gap / KLinf(arm, best mean) log T",
        title="IMED - bounded",
        notes=(
            "Here KLinf(law, m) is the least divergence from the law to one with mean m and no reward above upper.",
        ),
    ),
}


class IMED(Counting, KeepsRewards, Policy):
    """Pulls the arm with the least ``n KL(m) + log n``: n rewards, and KL the divergence of the arm from one with the best mean m.

    The first term is the evidence against the arm, the second the cost of pulling it again. Use ``family="bounded"`` if you know an
    upper bound of the rewards (0 for minus a cost); it needs no lower bound and no scale, and adapts to the law of each arm. Use
    ``family="gaussian"`` for rewards that are close to normal with a known standard deviation, but not for heavy tails: m is a
    sample mean, and falls when the best arm suffers one huge loss.

    Parameters
    ----------
    family
        ``"gaussian"``: KL is (m - mean)^2 / (2 scale^2). ``"bounded"``: KL is KLinf, the least divergence from the arm's rewards to
        a law with mean m and no reward above ``upper``.
    scale
        Standard deviation of the rewards, for ``"gaussian"``.
    upper
        Upper bound of all rewards, for ``"bounded"``. A higher reward becomes the bound; the counter ``above_upper`` counts them.

    Guarantee
    ---------
    ``"bounded"``: regret grows as the sum over arms of ``gap / KLinf log T``, which no policy beats, if no reward is above
    ``upper``; the paper has a finite-time bound. Requires the bound. (We know the paper's abstract, not its conditions on the left
    tail. So for heavy left tails, whether the assumption holds is undecided.)
    ``"gaussian"``: ``2 scale^2 / gap log T``, if rewards are normal and scale is their standard deviation, as a special case of the
    bound of Saber et al. (from the abstract; the text was not checked). Requires the scale. Anytime and deterministic. Ties go to
    the fewest pulls.

    ``"bounded"`` keeps all rewards, 8 bytes each, so its memory grows without limit; ``"gaussian"`` has constant memory per arm.
    KLinf takes a few passes over an arm's rewards. Bounds that cost one logarithm per reward decide most pulls, so passes are rare
    (:mod:`robandit.policies.sampling.divergence`). They are most frequent if several arms are equally good.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> policy = rb.IMED(family="bounded").informed_by(problem)
    >>> policy.upper
    1.0
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.05 * 300)  # uniform play: 300
    True

    References
    ----------
    J. Honda, A. Takemura. Non-asymptotic analysis of a new bandit algorithm for semi-bounded rewards. J. of Machine Learning
    Research 16, 2015.

    H. Saber, P. Menard, O.-A. Maillard. Forced-exploration free strategies for unimodal bandits. Preprint, 2020.
    """

    use_when = "rewards are close to normal, or have a known upper bound"

    family: Literal["gaussian", "bounded"] = "gaussian"
    scale: float = 1.0
    upper: float | None = None

    columns = ("mean", "divergence")

    def validate(self) -> None:
        choice(self.family, "family", _FACTS, owner="IMED")
        positive(self.scale, "scale", owner="IMED")
        if self.upper is not None:
            finite(self.upper, "upper", owner="IMED")
        check_family(self, upper=self.upper)

    @property
    def facts(self) -> Facts:
        return dataclasses.replace(_FACTS[self.family], late="ignored")

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        return cls(), cls(family="bounded")

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        if self.family == "bounded" and self.upper is None and hasattr(problem, "reward_laws"):
            return dataclasses.replace(self, upper=ends_of(problem, "IMED", low=False)[1])
        return super().informed_by(problem, eps=eps)

    def params(self) -> Any:
        bounded = int(self.family == "bounded")
        return params_of(bounded=bounded, scale=float(self.scale), upper=float(self.upper or 0.0))

    def init(self, arms: int, horizon: int | None) -> Any:
        room = 32 if self.family == "bounded" else 1  # the other family stores nothing
        found = np.zeros((arms + 1, FOUND_LENGTH))  # `estimate` uses the last row
        run = np.zeros(1, dtype=np.int64)
        rows = np.zeros((arms, 5))
        rows[:, SHIFT] = self.upper or 0.0
        pool, slots = empty_store(arms, 1, room)
        return state_of(arms=rows, found=found, pool=pool, slots=slots, pulls=no_pulls(arms), run=run)

    def counters(self, state: Any) -> dict[str, int]:
        return {"above_upper": int(state.run[ABOVE])} if self.family == "bounded" else {}

    @staticmethod
    def select(p: Any, s: Any) -> int:
        forced = first_untried(IndexHooks.rewards, s, 1.0)
        if forced >= 0:
            return forced
        if p.bounded != 0:
            return least_bounded(s)
        best = best_mean(s)
        chosen = -1
        least = math.inf
        for arm in range(s.arms.shape[0]):
            if allowed(s, arm):
                gap = best - mean_from_first(s, arm)
                value = s.arms[arm, COUNT] * 0.5 * (gap / p.scale) * (gap / p.scale) + s.arms[arm, LOG]
                if chosen < 0 or value < least or (value == least and wins_tie(s, arm, chosen)):
                    least = value
                    chosen = arm
        return chosen

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        if row[COUNT] == 0.0:
            count_tried(s)
            # The bound may have risen before the arm was added.
            row[SHIFT] = s.arms[0, SHIFT] if p.bounded != 0 else reward
        if p.bounded != 0:
            if reward > p.upper:
                s.run[ABOVE] += 1
            if reward > s.arms[0, SHIFT]:
                raise_bound(s, reward)
            deficit = s.arms[0, SHIFT] - reward
            s.pool[0, append(s.slots, arm)] = deficit
            learn_deficit(s.found[arm], deficit)
            row[SUM] -= deficit
        else:
            row[SUM] += reward - row[SHIFT]
        row[COUNT] += 1.0
        row[LOG] = math.log(row[COUNT])
        row[MEAN] = row[SUM] / row[COUNT]

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        """Fill in the mean and n KL. KLinf is solved in the last row, to keep the starting point of the next search."""
        row = s.arms[arm]
        out[0] = row[SHIFT] + row[MEAN] if row[COUNT] > 0.0 else math.nan
        out[1] = 0.0
        if row[COUNT] == 0.0:
            return
        best = best_mean(s)
        gap = max(best - mean_from_first(s, arm), 0.0)
        if p.bounded == 0:
            out[1] = row[COUNT] * 0.5 * (gap / p.scale) * (gap / p.scale)
        elif gap > 0.0:
            last = s.arms.shape[0]
            for j in range(s.found.shape[1]):
                s.found[last, j] = s.found[arm, j]
            out[1] = exact(s, arm, last, -best)


@out_of_line
def raise_bound(s: Any, bound: float) -> None:
    """Measure all rewards from a higher bound."""
    rise = bound - s.arms[0, SHIFT]
    for arm in range(s.arms.shape[0]):
        row = s.arms[arm]
        start = s.slots[arm, START]
        for j in range(start, start + int(row[COUNT])):
            s.pool[0, j] += rise
        for j in range(s.found.shape[1]):
            s.found[arm, j] = 0.0
        row[SHIFT] = bound
        row[SUM] -= rise * row[COUNT]
        row[MEAN] = row[SUM] / row[COUNT] if row[COUNT] > 0.0 else 0.0


def allowed(s: Any, arm: int) -> bool:
    """Return whether the arm may be chosen and has rewards. Others play no part in the best mean."""
    return s.allowed[arm] and s.arms[arm, COUNT] > 0.0


def mean_from_first(s: Any, arm: int) -> float:
    """Return the mean measured from where arm 0 is measured from, so that a common shift of all rewards costs no digits."""
    return (s.arms[arm, SHIFT] - s.arms[0, SHIFT]) + s.arms[arm, MEAN]


def best_mean(s: Any) -> float:
    """Return the largest mean of the allowed arms, measured in the same way."""
    best = -math.inf
    for arm in range(s.arms.shape[0]):
        if allowed(s, arm):
            best = max(best, mean_from_first(s, arm))
    return best


def exact(s: Any, arm: int, row: int, d: float) -> float:
    """Return n KLinf of an arm whose mean is below the best, and keep the solution in a row of ``found``."""
    if d <= 0.0:  # the best arm has only paid the upper bound: no law below it has its mean
        return math.inf
    return solve(s.pool, s.slots[arm, START], int(s.arms[arm, COUNT]), s.found[row], d)


def least_bounded(s: Any) -> int:
    """Return the arm with the least index. The best arm has the index log n; others matter if their lower bound is not above."""
    best = -math.inf
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm]:
            best = max(best, s.arms[arm, MEAN])
    chosen = -1
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm] and s.arms[arm, MEAN] == best:
            tied = chosen >= 0 and s.arms[arm, LOG] == s.arms[chosen, LOG]
            if chosen < 0 or s.arms[arm, LOG] < s.arms[chosen, LOG] or (tied and wins_tie(s, arm, chosen)):
                chosen = arm
    if best == 0.0:
        return chosen
    ceiling = s.arms[chosen, LOG]
    for arm in range(s.arms.shape[0]):
        row = s.arms[arm]
        below = s.allowed[arm] and row[MEAN] < best and row[LOG] <= ceiling
        if below and row[LOG] + quick_floor(s.found[arm], row[COUNT], -best) <= ceiling:
            return contest(s, chosen, -best)
    return chosen


@out_of_line
def contest(s: Any, leader: int, d: float) -> int:
    """Return the arm with the least index. Bounds exclude most arms; the remaining ones are evaluated exactly."""
    ceiling = s.arms[leader, LOG]
    for arm in range(s.arms.shape[0]):
        if rivals(s, arm, d, ceiling):
            ceiling = min(ceiling, s.arms[arm, LOG] + enclosed(s.found[arm], s.arms[arm, COUNT], d)[1])
    left = 1 if s.arms[leader, LOG] <= ceiling else 0
    chosen = leader
    for arm in range(s.arms.shape[0]):
        if rivals(s, arm, d, ceiling):
            left += 1
            chosen = arm
    if left == 1:
        return chosen if s.arms[leader, LOG] > ceiling else leader
    chosen = leader
    least = s.arms[leader, LOG]
    for arm in range(s.arms.shape[0]):
        if rivals(s, arm, d, ceiling):
            value = enclosed(s.found[arm], s.arms[arm, COUNT], d)
            total = value[0] if value[0] == value[1] else exact(s, arm, arm, d)
            index = s.arms[arm, LOG] + total
            ceiling = min(ceiling, index)
            if index < least or (index == least and wins_tie(s, arm, chosen)):
                least = index
                chosen = arm
    return chosen


def rivals(s: Any, arm: int, d: float, ceiling: float) -> bool:
    """Return whether an arm below the best mean may have an index of at most ``ceiling``."""
    row = s.arms[arm]
    if not s.allowed[arm] or row[MEAN] >= -d or row[LOG] > ceiling:
        return False
    return row[LOG] + enclosed(s.found[arm], row[COUNT], d)[0] <= ceiling


def check_family(policy: Any, **bounds: float | None) -> None:
    """Raise `InvalidInput` if a parameter of the other family is given."""
    owner = type(policy).__name__
    if policy.family == "bounded":
        if policy.scale != 1.0:
            raise invalid("scale", policy.scale, "omitted for 'bounded', which has no scale", owner=owner)
        return
    for name, value in bounds.items():
        if value is not None:
            hint = "or pass family='bounded'"
            raise invalid(name, value, "None for 'gaussian', which uses scale", owner=owner, hint=hint)


def check_ends(policy: Any) -> None:
    """Raise `InvalidInput` unless ``lower`` and ``upper``, if they are known, are the ends of an interval."""
    owner = type(policy).__name__
    for name in ("lower", "upper"):
        if (value := getattr(policy, name)) is not None:
            finite(value, name, owner=owner)
    if None not in (policy.lower, policy.upper) and not 0.0 < policy.upper - policy.lower < math.inf:
        raise invalid("upper", policy.upper, f"a finite number > lower = {policy.lower:g}", owner=owner)


def with_ends(policy: Any, problem: Any) -> Any:
    """Return the policy with ``lower`` and ``upper``, where they are None, from a problem."""
    owner = type(policy).__name__
    low, high = ends_of(problem, owner)
    low, high = low if policy.lower is None else policy.lower, high if policy.upper is None else policy.upper
    if not low < high:
        fact = f"lower and upper, which are {low:g} and {high:g} on this problem"
        raise NotApplicable(f"{owner} needs {fact}, and lower must be below upper")
    return dataclasses.replace(policy, lower=low, upper=high)


def ends_of(problem: Any, owner: str, *, low: bool = True) -> tuple[float, float]:
    """Return the ends of the support of all rewards. Raise `NotApplicable` if the upper end is infinite (``low``: or the lower)."""
    lowest = min(float(law.support[0]) for law in problem.reward_laws)
    highest = max(float(law.support[1]) for law in problem.reward_laws)
    for name, end, needed in (("lower", lowest, low), ("upper", highest, True)):
        if needed and not math.isfinite(end):
            rule = "it must be finite: take another policy"
            raise NotApplicable(f"{owner} needs {name}, which is {end:g} on this problem, and {rule}")
    return lowest, highest
