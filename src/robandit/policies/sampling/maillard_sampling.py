"""Maillard sampling (Maillard 2013; Bian, Jun 2022), and KL-MS for bounded rewards (Qin, Jun, Zhang 2023)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, Self

import numpy as np

from robandit.kernel.random import uniform
from robandit.kernel.types import Floats
from robandit.policies._parts.counting import Counting
from robandit.policies._parts.records import params_of, state_of
from robandit.policies.assumptions import IN_INTERVAL, SUB_GAUSSIAN
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.policies.index import IndexHooks, count_tried, first_untried, no_pulls
from robandit.policies.sampling.imed import check_ends, check_family, with_ends
from robandit.validation import choice, positive

# Columns of ``arms``: rewards; the point from which rewards are measured; their mean and sum, measured from it (bounded: as a share
# of the interval); minus the entropy of the mean, if bounded; and scratch for `select`.
COUNT, SHIFT, MEAN, SUM, ENTROPY, WEIGHT = 0, 1, 2, 3, 4, 5
OUTSIDE = 0  # in ``run``: rewards outside the given interval

_FACTS = {
    "gaussian": Facts(
        knows=("scale",),
        random=True,
        assumption=SUB_GAUSSIAN,
        bound="the regret theorems of Bian and Jun, 2022",
        instance="sum scale^2 / gap log T",
        worst="scale sqrt(K T log T)",
        citation="Maillard 2013; Bian, Jun 2022",
        source="reconstructed",
        title="Maillard sampling",
        notes=("Scale 1 by default; if rewards are heavy-tailed, no scale is valid, and it serves as a control.",),
    ),
    "bounded": Facts(
        knows=("lower", "upper"),
        random=True,
        assumption=IN_INTERVAL,
        bound="the regret theorems of Qin, Jun and Zhang, 2023",
        instance="sum gap / KLinf(arm, best mean) log T",
        worst="range sqrt(K T log K) + range K log T",
        citation="Qin, Jun, Zhang 2023",
        source="reconstructed",
        title="KL Maillard sampling",
        notes=(
            "Here KLinf(law, m) is the divergence of coins whose means are those of the law and m, as shares of the interval.",
        ),
    ),
}


class MaillardSampling(Counting, Policy):
    """Pulls each arm with probability proportional to ``exp(-n KL(m))``: n rewards, KL its divergence from the best mean m.

    It is a randomised version of `IMED`, whose probabilities have a closed form, so they can be logged at no cost. Use
    ``family="gaussian"`` for sub-Gaussian rewards of known scale, and ``family="bounded"``, which is KL-MS, for rewards in a known
    interval; for coins it is asymptotically optimal. Do not use it for heavy tails: m is a sample mean.

    Parameters
    ----------
    family
        ``"gaussian"``: KL is (m - mean)^2 / (2 scale^2). ``"bounded"``: KL is the divergence of coins with these means, as shares.
    scale
        Sub-Gaussian scale of the rewards (for normal rewards, the standard deviation), for ``"gaussian"``.
    lower, upper
        Ends of an interval that contains all rewards, for ``"bounded"``. It is widened to contain a reward outside; the counter
        ``outside`` counts them.

    Guarantee
    ---------
    ``"gaussian"``: regret grows as the sum over arms of ``2 scale^2 / gap log T``, and at worst as ``scale sqrt(K T log T)``, if
    rewards are sub-Gaussian. Requires the scale. ``"bounded"``: as the sum over arms of ``gap / KL log T``, and at worst as ``range
    sqrt(K T log K) + range K log T`` with range = upper - lower, if rewards are in the interval. Requires the interval. Anytime and
    randomised. Every arm is pulled once first. Memory is constant per arm. The bounds are from the abstracts of both papers; the
    rules are reconstructed: they were not checked against the papers' texts.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> policy = rb.MaillardSampling(family="bounded").informed_by(problem)
    >>> policy.lower, policy.upper
    (0.0, 1.0)
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.05 * 300)  # uniform play: 300
    True

    References
    ----------
    O.-A. Maillard. Apprentissage sequentiel : bandits, statistique et renforcement. Thesis, Universite de Lille 1, 2011 (cited as
    2013).

    J. Bian, K.-S. Jun. Maillard sampling: Boltzmann exploration done optimally. AISTATS 2022, PMLR 151.

    H. Qin, K.-S. Jun, C. Zhang. Kullback-Leibler Maillard sampling for multi-armed bandits with bounded rewards. NeurIPS 2023.
    """

    family: Literal["gaussian", "bounded"] = "gaussian"
    scale: float = 1.0
    lower: float | None = None
    upper: float | None = None

    use_when = "tails are light and you log the probability of each choice"
    label = "Maillard sampling"
    columns = ("mean", "probability")

    def validate(self) -> None:
        choice(self.family, "family", _FACTS, owner="MaillardSampling")
        positive(self.scale, "scale", owner="MaillardSampling")
        check_family(self, lower=self.lower, upper=self.upper)
        check_ends(self)

    @property
    def facts(self) -> Facts:
        return dataclasses.replace(_FACTS[self.family], late="at random")

    @property
    def range(self) -> float | None:
        """The length of the interval, or None if it is not known. The worst-case bound uses it."""
        return None if self.lower is None or self.upper is None else float(self.upper - self.lower)

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        return cls(), cls(family="bounded")

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        if self.family == "bounded" and None in (self.lower, self.upper) and hasattr(problem, "reward_laws"):
            told: Self = with_ends(self, problem)
            return told
        return super().informed_by(problem, eps=eps)

    def params(self) -> Any:
        bounded, lower = int(self.family == "bounded"), float(self.lower or 0.0)
        return params_of(bounded=bounded, scale=float(self.scale), lower=lower, length=self.range or 1.0)

    def init(self, arms: int, horizon: int | None) -> Any:
        return state_of(
            arms=np.zeros((arms, 6)),
            ends=np.array([0.0, 1.0]),  # of the interval of all rewards, as shares of the given one
            pulls=no_pulls(arms),
            run=np.zeros(1, dtype=np.int64),
            rng=np.zeros(4, dtype=np.uint64),
        )

    def counters(self, state: Any) -> dict[str, int]:
        return {"outside": int(state.run[OUTSIDE])} if self.family == "bounded" else {}

    @staticmethod
    def select(p: Any, s: Any) -> int:
        forced = first_untried(IndexHooks.rewards, s, 1.0)
        if forced >= 0:
            return forced
        left = uniform(s.rng) * weigh(p, s)
        chosen = -1
        for arm in range(s.arms.shape[0]):
            if s.allowed[arm] and s.arms[arm, WEIGHT] > 0.0:
                chosen = arm
                left -= s.arms[arm, WEIGHT]
                if left <= 0.0:
                    break
        return chosen

    @staticmethod
    def chance(p: Any, s: Any, arm: int) -> float:
        forced = first_untried(IndexHooks.rewards, s, 1.0)
        if forced >= 0 or not s.allowed[arm]:
            return 1.0 if forced == arm else 0.0
        total = weigh(p, s)
        return s.arms[arm, WEIGHT] / total

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        if p.bounded != 0:
            share = (reward - p.lower) / p.length
            if not 0.0 <= share <= 1.0:
                s.run[OUTSIDE] += 1
                if not s.ends[0] <= share <= s.ends[1]:
                    widen(s, share)
            row[SUM] += share
        else:
            if row[COUNT] == 0.0:
                row[SHIFT] = reward
            row[SUM] += reward - row[SHIFT]
        if row[COUNT] == 0.0:
            count_tried(s)
        row[COUNT] += 1.0
        row[MEAN] = row[SUM] / row[COUNT]
        row[ENTROPY] = minus_entropy(s, arm) if p.bounded != 0 else 0.0

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = math.nan
        if s.arms[arm, COUNT] > 0.0:
            mean = s.arms[arm, SHIFT] + s.arms[arm, MEAN]
            out[0] = p.lower + p.length * mean if p.bounded != 0 else mean
        out[1] = MaillardSampling.chance(p, s, arm)


def times_log(x: float) -> float:
    """Return x log x, which is 0 at 0."""
    return x * math.log(x) if x > 0.0 else 0.0


def in_interval(s: Any, mean: float) -> float:
    """Return a share of the given interval as a share of the interval of all rewards."""
    return (mean - s.ends[0]) / (s.ends[1] - s.ends[0])


def minus_entropy(s: Any, arm: int) -> float:
    """Return x log x + (1 - x) log(1 - x) at the arm's mean."""
    x = in_interval(s, s.arms[arm, MEAN])
    return times_log(x) + times_log(1.0 - x)


def widen(s: Any, share: float) -> None:
    """Widen the interval to contain a reward, which changes the entropy of every arm."""
    s.ends[0] = min(s.ends[0], share)
    s.ends[1] = max(s.ends[1], share)
    for arm in range(s.arms.shape[0]):
        if s.arms[arm, COUNT] > 0.0:
            s.arms[arm, ENTROPY] = minus_entropy(s, arm)


def mean_from_first(s: Any, arm: int) -> float:
    """Return the mean measured from where arm 0 is measured from, so that a common shift of all rewards costs no digits."""
    return (s.arms[arm, SHIFT] - s.arms[0, SHIFT]) + s.arms[arm, MEAN]


def weigh(p: Any, s: Any) -> float:
    """Put exp(-n KL) of every allowed arm into ``WEIGHT``, and return their sum. An arm with the best mean has the weight 1."""
    best = -math.inf
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm]:
            best = max(best, mean_from_first(s, arm))
    log_best = log_rest = 0.0
    if p.bounded != 0:
        x = in_interval(s, best)
        log_best = math.log(x) if x > 0.0 else -math.inf
        log_rest = math.log1p(-x) if x < 1.0 else -math.inf
    total = 0.0
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm]:
            row = s.arms[arm]
            mean = mean_from_first(s, arm)
            weight = 1.0
            if mean < best:
                gap = best - mean
                divergence = 0.5 * (gap / p.scale) * (gap / p.scale)
                if p.bounded != 0:
                    x = in_interval(s, mean)
                    divergence = max(row[ENTROPY] - x * log_best - (1.0 - x) * log_rest, 0.0)
                weight = math.exp(-row[COUNT] * divergence)
            row[WEIGHT] = weight
            total += weight
    return total
