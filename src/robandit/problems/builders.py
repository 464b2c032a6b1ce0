"""Problems in one line: arms of one family that differ in their means."""

from __future__ import annotations

from collections.abc import Sequence

from robandit.errors import InvalidInput
from robandit.laws import Bernoulli, Gaussian, Law, Lomax, Pareto, Stable, StudentT
from robandit.laws.validation import numbers, positive
from robandit.problems.problem import Problem

__all__ = ["bernoulli", "gaussian", "negated_lomax", "negated_pareto", "pareto", "stable", "student_t"]


def _signed(means: Sequence[float], sign: float) -> list[float]:
    """The sizes of means that all have the sign that the family can give."""
    values = numbers(means, "means")
    for i, value in enumerate(values):
        if value * sign <= 0.0:
            rule = "above 0" if sign > 0.0 else "below 0"
            raise InvalidInput(f"means[{i}] is {value}: this family has means {rule}; shift a law with law + c instead")
    return [abs(value) for value in values]


def _tail(tail: float) -> float:
    tail = positive(tail, "tail")
    if tail <= 1.0:
        raise InvalidInput(f"tail is {tail}: it must be above 1, or there is no mean to set")
    return tail


def negated_pareto(means: Sequence[float], tail: float) -> Problem:
    """Costs with a Pareto law, negated: heavy left tails that satisfy the assumption. Means must be below 0.

    Arm i is ``-Pareto(tail, scale_i)`` with ``scale_i = -means[i] (tail - 1) / tail``.

    >>> negated_pareto(means=[-1.0, -1.5], tail=1.5).means.tolist()
    [-1.0, -1.5]
    """
    tail = _tail(tail)
    return Problem([-Pareto(tail, size * (tail - 1.0) / tail) for size in _signed(means, -1.0)])


def negated_lomax(means: Sequence[float], tail: float) -> Problem:
    """Costs with a Lomax law, negated: like ``negated_pareto``, with rewards up to 0. Means must be below 0.

    >>> negated_lomax(means=[-1.0, -1.5], tail=1.5).laws[0].support
    (-inf, 0.0)
    """
    tail = _tail(tail)
    return Problem([-Lomax(tail, size * (tail - 1.0)) for size in _signed(means, -1.0)])


def pareto(means: Sequence[float], tail: float) -> Problem:
    """Positive Pareto rewards: heavy right tails, the control that breaks the assumption. Means must be above 0.

    >>> pareto(means=[1.0, 1.5], tail=1.5).assumption().holds
    False
    """
    tail = _tail(tail)
    return Problem([Pareto(tail, size * (tail - 1.0) / tail) for size in _signed(means, 1.0)])


def student_t(means: Sequence[float], dof: float, scale: float = 1.0) -> Problem:
    """Student's t about the means: the assumption holds if and only if the best mean is at most 0.

    >>> student_t(means=[0.0, -1.0], dof=1.5).assumption().reason
    'the law is symmetric about 0.0: the expectation is 0 for every M'
    """
    return Problem([StudentT(dof, mean, scale) for mean in numbers(means, "means")])


def stable(means: Sequence[float], alpha: float, beta: float = 0.0, scale: float = 1.0) -> Problem:
    """Alpha-stable noise about the means, alpha above 1; a negative beta makes the left tail the heavier one.

    >>> stable(means=[-1.0, -2.0], alpha=1.5, beta=-1.0).tail_index
    1.5
    """
    return Problem([Stable(alpha, beta, mean, scale) for mean in numbers(means, "means")])


def gaussian(means: Sequence[float], sd: float = 1.0) -> Problem:
    """Normal rewards: the light-tailed control.

    >>> gaussian(means=[1.0, 0.0], sd=2.0).v(1.0)
    4.0
    """
    return Problem([Gaussian(mean, sd) for mean in numbers(means, "means")])


def bernoulli(means: Sequence[float]) -> Problem:
    """Rewards 0 and 1: the bounded control.

    >>> bernoulli(means=[0.5, 0.25]).gaps.tolist()
    [0.0, 0.25]
    """
    arms: list[Law] = [Bernoulli(mean) for mean in numbers(means, "means")]
    return Problem(arms)
