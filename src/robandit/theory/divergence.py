"""KLinf, the divergence of a law from the laws of a moment class with a larger mean, and its inverse.

KLinf(law, m) is the least Kullback-Leibler divergence KL(law, other) over all other laws with E|X|^(1+eps) <= u and mean at
least m. In units where u = 1 it is the maximum of a concave function of two numbers,

    E log(1 - l1 (X - m) + l2 (|X|^(1+eps) - 1)),

over l1, l2 >= 0 for which the logarithm's argument is non-negative at every real X. It is computed as follows.

**Domain.** If l1 = 0, then 0 <= l2 <= 1, and the result is the distance to the class. If l1 > 0, let c = m + 1/l1. The argument
is smallest at the place y with (1+eps) (l2/l1) y^eps = 1. It is zero there if (eps y + y^-eps) / (1+eps) = c. If c > 1, this
equation has two solutions, one below and one above 1, which give the two ends of l2. So l1 is in [0, 1/(1-m)].

**Search.** For each l1, Newton's method with bisection finds the best l2. The sign of the exact derivative drives a bisection in
log(l1 / (1/(1-m) - l1)); if l2 is at an end, it is the derivative along that end. A maximum is flat, so its value has more digits.

**Laws.** Atoms are used as they are. The rest of a law is integrated (`robandit.theory.law_nodes`) on each side of two places. At
0, |X|^(1+eps) has a kink; at y, the logarithm is singular or nearly so. A first solution estimates y.

**Small values.** In the bulk of a law the logarithm's argument differs from 1 by at most a few times the solution's l1 and l2. So
the value has a relative error: the error of the integrated mean, 1e-13 units, over the difference between the two means.
`is_resolved` returns whether it is small.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from robandit.diagnostics.samples import sample
from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.laws import Empirical, Law
from robandit.laws.combinators import leaves
from robandit.policies.klinf.upper_bound import FARTHEST, klinf_index
from robandit.theory.law_nodes import has_density, nodes
from robandit.validation import finite, order, positive, within

ROUNDS = 6  # iterations to locate the minimum of the logarithm's argument
SAME = 1e-6  # relative difference below which two places count as one
LOWEST, HIGHEST = -300.0, 80.0  # ends of the search in log(l1 / (1/(1-m) - l1))
LEAST_BUDGET = 1e-12  # the index has an error of 1e-16 / budget units (see policies.klinf.upper_bound), here 1e-4
CUT = 1e-3  # larger values have two correct digits even if the law's tails are cut
NARROW = 1e-9  # smallest difference of the means, in units
FAINT = 1e-50  # smallest accurate value: tails are integrated to probabilities of 1e-60
LEAST = 2.0**-53  # lower limit of the logarithm's argument


def klinf_upper(x: Any, *, eps: float, u: float, budget: float) -> float:
    """Return the largest mean of a law with E|X|^(1+eps) <= u whose divergence from the sample is at most the budget.

    It is sup{m : `klinf` (x, m) <= budget}. KLinf-UCB plays the arm with the largest value.

    Parameters
    ----------
    x
        The sample, one-dimensional.
    eps, u
        The class: E|X|^(1+eps) <= u, eps in (0, 1].
    budget
        The largest divergence allowed, C, at least 1e-12.

    Returns
    -------
    The mean, or +inf if no law of the class is within the budget. It is never too large. In units of u^(1/(1+eps)) its error is at
    most 1e-10 or 1e-16 / C, whichever is larger. A sample in the class can gain C^(eps/(1+eps)) units by moving a mass of C as far
    out as u allows. At the smallest budget the gain has 4 correct digits, and for smaller budgets soon none.

    Examples
    --------
    >>> from robandit.theory import klinf_upper
    >>> klinf_upper([-1.0, 0.0, 0.5, 2.0], eps=0.5, u=3.0, budget=0.1)
    1.21817448

    References
    ----------
    S. Agrawal, S. Juneja, W. Koolen. Regret minimization in heavy-tailed bandits. COLT 2021.
    """
    values = sample(x)
    eps, u = order(eps, owner="klinf_upper"), positive(u, "u", owner="klinf_upper")
    hint = "a smaller divergence is lost to rounding"
    budget = within(budget, "budget", LEAST_BUDGET, math.inf, owner="klinf_upper", hint=hint)
    return klinf_index(values, eps=eps, u=u, budget=budget)


def klinf(x: Any, mean: float, *, eps: float, u: float) -> float:
    """Return the least divergence KL(x, law) over the laws with E|X|^(1+eps) <= u and a mean of at least ``mean``.

    It determines the number of rewards needed to show that an arm does not have that mean. A worse arm needs
    log T / KLinf(arm, best mean) pulls, and KLinf-UCB needs no more.

    Parameters
    ----------
    x
        A law, or a sample whose values all have the same weight.
    mean
        The smallest mean of the other laws.
    eps, u
        The class: E|X|^(1+eps) <= u, eps in (0, 1].

    Returns
    -------
    The divergence, at least 0. It is 0 for a law of the class whose mean is at least ``mean``, and +inf if ``mean`` is above
    u^(1/(1+eps)), because no law of the class has such a mean. For a law outside the class it is positive at every mean.

    The error is 1e-9 for samples and laws on finitely many values. For laws with a density the relative error is 1e-5, or
    1e-13 u^(1/(1+eps)) over the difference of the means if that is larger. Other laws (`robandit.laws.Stable`, and your own) have
    an absolute error of 1e-5, because their tails are cut at a probability of 1e-10.

    Examples
    --------
    >>> from robandit.laws import Pareto
    >>> from robandit.theory import klinf
    >>> klinf([-1.0, 0.0, 0.5, 2.0], 1.0, eps=0.5, u=3.0)
    0.04210888
    >>> klinf(-Pareto(tail=2.0, scale=0.5), -0.5, eps=0.5, u=2.0)
    0.0455370

    References
    ----------
    S. Agrawal, S. Juneja, W. Koolen. Regret minimization in heavy-tailed bandits. COLT 2021.
    """
    law = x if isinstance(x, Law) else Empirical(sample(x))
    mean, eps, u = finite(mean, "mean", owner="klinf"), order(eps, owner="klinf"), positive(u, "u", owner="klinf")
    unit = u ** (1.0 / (1.0 + eps))
    m = mean / unit
    inside = False
    with suppress(InvalidInput):  # a moment that overflows is outside every class
        inside = law.absolute_moment(1.0 + eps) <= u
    if inside and mean <= law.mean:
        return 0.0
    if m >= 1.0:  # only the constant at the end of the class can have this mean
        return 0.0 if m == 1.0 and law.support == (unit, unit) else math.inf
    place = 0.0
    for _ in range(ROUNDS):
        value, least = _solved(_points(law, unit, eps, place), m, eps)
        if least is None or law.atoms() is not None or abs(least - place) <= SAME * least:
            break
        place = least
    return max(value, 0.0)


def is_resolved(value: float, law: Law, mean: float, *, eps: float, u: float) -> bool:
    """Return whether a positive `klinf` of a law has at least two correct digits."""
    if value >= CUT:
        return True
    uncut = all(leaf.law.atoms() is not None or has_density(leaf) for leaf in leaves(law))
    return uncut and value >= FAINT and mean - law.mean >= NARROW * u ** (1.0 / (1.0 + eps))


class _Points(NamedTuple):
    """A law on finitely many values x, in units, with |x|^(1+eps) and the weights."""

    x: Floats
    power: Floats
    weight: Floats


def _points(law: Law, unit: float, eps: float, place: float) -> _Points:
    """Return the law in units. Parts without atoms become nodes that are densest at 0 and ``place``."""
    parts = []
    for leaf in leaves(law):
        if (atoms := leaf.atoms()) is None:
            parts.append(nodes(leaf, unit, (0.0, place)))
        else:
            with np.errstate(over="ignore"):
                parts.append((atoms[0] / unit, leaf.weight * atoms[1]))
    values, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    x = np.clip(values, -FARTHEST, FARTHEST)
    return _Points(x, np.abs(x) ** (1.0 + eps), weights / weights.sum())


def _solved(points: _Points, m: float, eps: float) -> tuple[float, float | None]:
    """Return the maximum over l1 and l2, and the X at which the logarithm's argument is smallest (None if l1 = 0)."""
    m = max(m, -1.0)  # no law of the class has a smaller mean
    first = _Slice(points, 0.0, m, 0.0, 1.0)
    l2, end = first.best()
    if first.slope(l2) + (m * first.rise(l2) if end == 1 else 0.0) <= 0.0:
        return first.value(l2), None
    low, high = LOWEST, HIGHEST
    for _ in range(60):
        position = 0.5 * (low + high)
        excess = (1.0 - m) * math.exp(-position)  # c - 1
        l1 = 1.0 / (1.0 - m + excess)
        places = _places(excess, eps)
        part = _Slice(points, l1, m, *(l1 * math.exp(-eps * theta) / (1.0 + eps) for theta in places))
        l2, end = part.best()
        slope = part.slope(l2)
        if end is not None:
            y = math.exp(places[end])
            along = math.expm1((1.0 + eps) * places[end])  # the end moves by (y - m) / this per unit of l1
            slope = slope + part.rise(l2) * (y - m) / along if along != 0.0 else -math.inf
        low, high = (position, high) if slope > 0.0 else (low, position)
    return part.value(l2), (l1 / l2 / (1.0 + eps)) ** (1.0 / eps)


def _places(excess: float, eps: float) -> tuple[float, float]:
    """Return the logarithms of the two y with (eps y + y^-eps) / (1+eps) = 1 + excess, the larger one first."""
    places = []
    most = (1.0 + eps) * (1.0 + excess)
    # The left side is convex, so Newton's method, started outside, never jumps over a solution.
    for start in (math.log(most / eps), -math.log(most) / eps):
        theta = start
        for _ in range(200):
            over = (eps * math.expm1(theta) + math.expm1(-eps * theta)) / (1.0 + eps) - excess
            rise = eps * (math.exp(theta) - math.exp(-eps * theta)) / (1.0 + eps)
            step = over / rise if rise != 0.0 else 0.0
            if not abs(step) > 1e-16 * abs(theta) or step * start <= 0.0:
                break
            theta -= step
        places.append(theta if theta * start > 0.0 else 0.0)
    return places[0], places[1]


class _Slice:
    """The concave function of l2 from ``low`` to ``high`` for one l1, with its derivatives: ``slope`` in l1, ``rise`` in l2."""

    def __init__(self, points: _Points, l1: float, m: float, low: float, high: float) -> None:
        self.weight, self.gap, self.short = points.weight, points.power - 1.0, m - points.x
        self.base = l1 * self.short
        self.low, self.high = low, high

    def argument(self, l2: float) -> Floats:
        """Return the logarithm's argument minus 1."""
        return np.maximum(self.base + l2 * self.gap, LEAST - 1.0)

    def mean(self, values: Floats) -> float:
        """Return the weighted mean. np.sum adds in pairs, which is more accurate; a dot product would start threads."""
        return float(np.sum(self.weight * values))

    def value(self, l2: float) -> float:
        return self.mean(np.log1p(self.argument(l2)))

    def slope(self, l2: float) -> float:
        return self.mean(self.short / (1.0 + self.argument(l2)))

    def rise(self, l2: float) -> float:
        return self.mean(self.gap / (1.0 + self.argument(l2)))

    def best(self) -> tuple[float, int | None]:
        """Return the best l2, and 0 or 1 if it is the lower or the upper end."""
        low, high = self.low, self.high
        if self.rise(high) >= 0.0:
            return high, 1
        l2, end = low, True
        for _ in range(200):
            share = self.gap / (1.0 + self.argument(l2))
            rise = self.mean(share)
            if end and rise <= 0.0:
                return low, 0
            end = False
            low, high = (l2, high) if rise > 0.0 else (low, l2)
            step = rise / self.mean(share * share)
            if abs(step) <= 1e-15 * l2:
                break
            l2 += step
            if not low < l2 < high:
                l2 = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.5 * high
                if not low < l2 < high:
                    break
        return l2, None
