"""The template of APE^2 and MR-APE: pull every arm once, then the arm with the largest randomly perturbed mean.

A subclass defines ``add(p, s, arm, reward)``, ``score(p, s, arm)`` (the perturbed mean, drawn from ``s.rng``), ``reach(p, s, arm)``
(b, the factor of the noise), and the law of the noise: ``exceeded(p, s, u)`` is Q, the value that is exceeded with probability u,
``above(p, s, z)`` is 1 - F, and ``edges(p, s)`` are the two edges below, or the only one twice.

**Propensities.** Arm i has the score m_i + b_i G_i with independent noise G. It has the largest score with probability

    integral over u in (0, 1) of the product over j != i of F((m_i + b_i Q(u) - m_j) / b_j).

The integrand falls with u, and fast only near the u where the score of arm i is at an edge of the law of another arm: where F
begins or ends, or where its steep part does. So the integral is split at these u, and each part is integrated by the tanh-sinh
rule. Tests measure errors below 1e-7. Small probabilities have small relative errors, too.

An arm with b = 0 has the score m. Ties of such arms are decided as in `robandit.policies.index.select_by_score`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.counting import Counting, wins_tie
from robandit.policies.index import IndexHooks, count_tried, first_forced, select_by_score
from robandit.policies.p_robust.running_mean import COUNT, MEAN, PRobust

NEGLIGIBLE = 1e-18  # the integral over a part that is skipped

_TIMES = np.arange(-26, 27) / 8.0
_NEAR = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(_TIMES))))  # distance to the nearer end, if the part has length 1
_WEIGHTS = np.cosh(_TIMES) * _NEAR * (1.0 - _NEAR)
# The distance of each point to the lower end if it is nearer, else minus the distance to the upper end; and its weight.
POINTS = np.where(_TIMES < 0.0, _NEAR, -_NEAR)
WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def winning_chance(reach: Any, exceeded: Any, above: Any, edges: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability that the arm has the largest score of the allowed arms."""
    mean = s.arms[arm, MEAN]
    scale = reach(p, s, arm)
    if scale == 0.0:
        return others_below(reach, above, p, s, arm, mean)
    total = 0.0
    high = 1.0  # from u = 1, where the score is lowest, to u = 0
    score = mean + scale * exceeded(p, s, 1.0)
    while high > 0.0:
        score = next_edge(reach, edges, p, s, arm, score)
        low = 0.0 if score == math.inf else above(p, s, (score - mean) / scale)
        bound = 1.0 if low == 0.0 else others_below(reach, above, p, s, arm, score)
        if low < high and bound * (high - low) > NEGLIGIBLE:
            total += integral(reach, exceeded, above, p, s, arm, low, high)
        high = min(low, high)
    return min(total, 1.0)


@out_of_line
def others_below(reach: Any, above: Any, p: Any, s: Any, arm: int, score: float) -> float:
    """Return the probability that all other allowed arms have smaller scores."""
    product = 1.0
    for other in range(s.arms.shape[0]):
        if other != arm and s.allowed[other]:
            gap = score - s.arms[other, MEAN]
            scale = reach(p, s, other)
            if scale > 0.0:
                product *= 1.0 - above(p, s, gap / scale)
            elif gap < 0.0 or (gap == 0.0 and not wins_tie(s, arm, other)):
                return 0.0
    return product


@out_of_line
def next_edge(reach: Any, edges: Any, p: Any, s: Any, arm: int, score: float) -> float:
    """Return the smallest edge of another allowed arm above the score, or infinity."""
    first, second = edges(p, s)
    nearest = math.inf
    for other in range(s.arms.shape[0]):
        if other != arm and s.allowed[other]:
            mean = s.arms[other, MEAN]
            scale = reach(p, s, other)
            for edge in (mean + scale * first, mean + scale * second):
                if score < edge < nearest:
                    nearest = edge
    return nearest


@out_of_line
def integral(reach: Any, exceeded: Any, above: Any, p: Any, s: Any, arm: int, low: float, high: float) -> float:
    """Return the integral over u from ``low`` to ``high``, between which no edge lies."""
    mean = s.arms[arm, MEAN]
    scale = reach(p, s, arm)
    total = 0.0
    for k in range(POINTS.shape[0]):
        u = (low if POINTS[k] > 0.0 else high) + (high - low) * POINTS[k]
        total += WEIGHTS[k] * others_below(reach, above, p, s, arm, mean + scale * exceeded(p, s, u))
    return (high - low) * total


def learn(add: Any, p: Any, s: Any, arm: int, reward: float) -> None:
    """Add a reward, and count the arm as tried at its first reward."""
    add(p, s, arm, reward)
    if s.arms[arm, COUNT] == 1.0:
        count_tried(s)


def chance_of_score(reach: Any, exceeded: Any, above: Any, edges: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability with which `select_by_score` returns the arm."""
    forced = first_forced(IndexHooks.rewards, s, 1.0)
    if forced >= 0 or not s.allowed[arm]:
        return 1.0 if forced == arm else 0.0
    return winning_chance(reach, exceeded, above, edges, p, s, arm)


def describe_arm(reach: Any, p: Any, s: Any, arm: int, out: Floats) -> None:
    """Fill in the mean and the reach. They are NaN and infinity before the first reward."""
    out[0] = math.nan
    out[1] = math.inf
    if s.arms[arm, COUNT] > 0.0:
        out[0] = s.arms[arm, MEAN]
        out[1] = reach(p, s, arm)


class Perturbed(Counting, PRobust):
    """The hooks that are derived from the methods of a subclass (see the module)."""

    select: ClassVar[Any]
    update: ClassVar[Any]

    def __init_subclass__(cls: Any) -> None:
        """Bind the subclass's hooks."""
        super().__init_subclass__()
        cls.select = staticmethod(partial(select_by_score, cls.score, IndexHooks.rewards))
        law = (cls.exceeded, cls.above, cls.edges)
        cls.chance = staticmethod(partial(chance_of_score, cls.reach, *law))
        cls.update = staticmethod(partial(learn, cls.add))
        cls.estimate = staticmethod(partial(describe_arm, cls.reach))
