"""Builders of problems whose arms belong to one family of laws and differ in their means.

``minimize=True`` makes the laws those of costs; see `Problem`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from robandit.hints import guided
from robandit.laws import Bernoulli, Gaussian, Lomax, Pareto, Stable, StudentT
from robandit.problems.problem import Problem
from robandit.validation import numbers, within


def _sizes(means: Sequence[float], sign: float) -> list[float]:
    """Return the absolute values of the means. Raise unless all have this sign."""
    low, high = (0.0, math.inf) if sign > 0.0 else (-math.inf, 0.0)
    hint = "shift a law with law + c for other means"
    return [
        abs(within(mean, f"means[{i}]", low, high, open_low=True, open_high=True, hint=hint))
        for i, mean in enumerate(numbers(means, "means"))
    ]


def _tail(tail: float) -> float:
    return within(tail, "tail", 1.0, math.inf, open_low=True, hint="laws with smaller tail indices have no mean to set")


@guided
def negated_pareto(means: Sequence[float], tail: float) -> Problem:
    """Return a problem with negated Pareto costs: heavy left tails, which satisfy the assumption. Means must be below 0.

    Arm i is ``-Pareto(tail, scale_i)`` with ``scale_i = -means[i] (tail - 1) / tail``.

    >>> negated_pareto(means=[-1.0, -1.5], tail=1.5).means.tolist()
    [-1.0, -1.5]
    """
    tail = _tail(tail)
    return Problem([-Pareto(tail, size * (tail - 1.0) / tail) for size in _sizes(means, -1.0)])


@guided
def negated_lomax(means: Sequence[float], tail: float) -> Problem:
    """Return a problem with negated Lomax costs: like ``negated_pareto``, with rewards up to 0. Means must be below 0.

    >>> negated_lomax(means=[-1.0, -1.5], tail=1.5).laws[0].support
    (-inf, 0.0)
    """
    tail = _tail(tail)
    return Problem([-Lomax(tail, size * (tail - 1.0)) for size in _sizes(means, -1.0)])


@guided
def pareto(means: Sequence[float], tail: float, minimize: bool = False) -> Problem:
    """Return a problem with Pareto rewards: heavy right tails, a control that violates the assumption. Means must be above 0.

    With ``minimize=True`` they are Pareto costs, which satisfy the assumption: `negated_pareto` in the sign of costs.

    >>> pareto(means=[1.0, 1.5], tail=1.5).assumption().holds
    False
    >>> pareto(means=[1.0, 1.5], tail=1.5, minimize=True).assumption().holds
    True
    """
    tail = _tail(tail)
    return Problem([Pareto(tail, size * (tail - 1.0) / tail) for size in _sizes(means, 1.0)], minimize=minimize)


@guided
def student_t(means: Sequence[float], dof: float, scale: float = 1.0, minimize: bool = False) -> Problem:
    """Return a problem with Student's t about the means. The assumption holds if and only if the best mean is at most 0.

    >>> student_t(means=[0.0, -1.0], dof=1.5).assumption().reason
    'the law is symmetric about 0.0: the expectation is 0 for every M'
    """
    return Problem([StudentT(dof, mean, scale) for mean in numbers(means, "means")], minimize=minimize)


@guided
def stable(
    means: Sequence[float], alpha: float, beta: float = 0.0, scale: float = 1.0, minimize: bool = False
) -> Problem:
    """Return a problem with alpha-stable rewards, alpha > 1. With a negative beta the left tail is heavier.

    >>> stable(means=[-1.0, -2.0], alpha=1.5, beta=-1.0).tail_index
    1.5
    """
    return Problem([Stable(alpha, beta, mean, scale) for mean in numbers(means, "means")], minimize=minimize)


@guided
def gaussian(means: Sequence[float], sd: float = 1.0, minimize: bool = False) -> Problem:
    """Return a problem with normal rewards, the light-tailed control.

    >>> gaussian(means=[1.0, 0.0], sd=2.0).v(1.0)
    4.0
    """
    return Problem([Gaussian(mean, sd) for mean in numbers(means, "means")], minimize=minimize)


@guided
def bernoulli(means: Sequence[float], minimize: bool = False) -> Problem:
    """Return a problem with rewards 0 and 1, the bounded control.

    >>> bernoulli(means=[0.5, 0.25]).gaps.tolist()
    [0.0, 0.25]
    """
    return Problem([Bernoulli(mean) for mean in numbers(means, "means")], minimize=minimize)
