"""KLinf: how far a law is from having a larger mean, within a class of moments; and the mean that a divergence allows.

KLinf(law, m) is the least Kullback-Leibler divergence KL(law, other) of any other law with E|X|^(1+eps) <= u and mean at
least m. In units where u = 1 it is the maximum of a concave function of two numbers,

    E log(1 - l1 (X - m) + l2 (|X|^(1+eps) - 1)),

over the pairs with l1, l2 >= 0 for which the logarithm's argument is not negative at any real X. How it is solved here:

**The pairs.** For l1 = 0 they are 0 <= l2 <= 1, and the result is the distance to the class. For l1 > 0 write c = m + 1/l1. The
argument's least value is at the place y where (1+eps) (l2/l1) y^eps = 1, and it is zero if (eps y + y^-eps) / (1+eps) = c. This has
two solutions, one below and one above 1, if c > 1, and they give the two ends of l2. So l1 is in [0, 1/(1-m)].

**Search.** For each l1 the best l2, by Newton's method with bisection; then l1, by bisection of log(l1 / (1/(1-m) - l1)) on the
sign of the derivative, which is exact: at an end of l2 it is taken along that end. A maximum is flat, so the value has twice the
digits of the place.

**Laws.** Atoms are used as they are. The rest of a law is integrated (`robandit.theory.law_nodes`) on each side of two places: 0,
where |X|^(1+eps) has a kink, and y, where the logarithm is singular or nearly so. A first solution says where y is.

**Small values.** In the bulk of a law the logarithm's argument differs from 1 by no more than a few times the l1 and l2 found. So
all rounding is relative to them, and with it the error of the value is relative too: that of the law's mean as it is integrated,
1e-13 units, over what the mean lacks. `is_resolved` says where that is little.
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
from robandit.laws.combinators import Leaf, leaves
from robandit.policies.base import check_eps, check_number
from robandit.policies.klinf.upper_bound import FARTHEST, klinf_index
from robandit.theory.given import plain
from robandit.theory.law_nodes import has_density, nodes

__all__ = ["is_resolved", "klinf", "klinf_upper"]

ROUNDS = 6  # of looking where the logarithm's argument is least
SAME = 1e-6  # relative: two such places are one
LOWEST, HIGHEST = -300.0, 80.0  # of log(l1 / (1/(1-m) - l1))
LEAST_BUDGET = (
    1e-12  # the index is good to 1e-16 / budget units (see robandit.policies.klinf.upper_bound): to 1e-4 here
)
CUT = 1e-3  # a value from a law whose tails are cut has two digits from here on
NARROW = 1e-9  # units: so much must a mean lack
FAINT = 1e-50  # tails are integrated to probabilities of 1e-60
LEAST = 2.0**-53  # the logarithm's argument counts as at least this


def klinf_upper(x: Any, *, eps: float, u: float, budget: float) -> float:
    """The largest mean of a law with E|X|^(1+eps) <= u whose divergence from the sample is at most the budget.

    It is sup{m : `klinf` (x, m) <= budget}. KLinf-UCB plays the arm where it is largest.

    Parameters
    ----------
    x
        The sample, one-dimensional.
    eps, u
        The class: E|X|^(1+eps) <= u, eps in (0, 1].
    budget
        The divergence allowed, C, at least 1e-12.

    Returns
    -------
    The mean, good to 1e-10 of u^(1/(1+eps)), or 1e-16 / C of it if that is more, and never above it; +inf if no law of the
    class is so near to the sample. A sample within the class may gain C^(eps/(1+eps)) of it by putting a mass of C as far out as
    u allows, so at the least budget 4 digits of the gain are left, and below there would soon be none.

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
    eps, u, budget = plain(eps), plain(u), plain(budget)
    _check_class("klinf_upper", eps, u)
    check_number("klinf_upper", "budget", budget, above=0.0)
    if budget < LEAST_BUDGET:
        raise InvalidInput(
            f"klinf_upper: budget = {budget!r} must be at least {LEAST_BUDGET:g}: rounding, {1e-16 / LEAST_BUDGET:g} of "
            "u^(1/(1+eps)) there, would hide what so small a divergence allows; take a larger budget"
        )
    return klinf_index(values, eps=eps, u=u, budget=budget)


def klinf(x: Any, mean: float, *, eps: float, u: float) -> float:
    """The least divergence KL(x, law) over the laws with E|X|^(1+eps) <= u and a mean of at least ``mean``.

    It says how many rewards it takes to tell that an arm does not have that mean: log T / KLinf(arm, best mean) pulls of a worse
    arm are needed, and KLinf-UCB needs no more.

    Parameters
    ----------
    x
        A law, or a sample: each of its values then has the same weight.
    mean
        The mean to reach.
    eps, u
        The class: E|X|^(1+eps) <= u, eps in (0, 1].

    Returns
    -------
    The divergence, at least 0. It is 0 for a law of the class that has the mean already, and +inf for a mean that no law of the
    class has, above u^(1/(1+eps)). A law outside of the class has a positive one to every mean.

    Samples, and laws on finitely many values: good to 1e-9. Laws with a density: to a relative 1e-5, or 1e-13 u^(1/(1+eps))
    over what the law's mean lacks if that is more. Others (`robandit.laws.Stable`, and laws of your own), whose tails are
    cut where they have a probability of 1e-10: to an absolute 1e-5.

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
    mean, eps, u = plain(mean), plain(eps), plain(u)
    check_number("klinf", "mean", mean)
    _check_class("klinf", eps, u)
    unit = u ** (1.0 / (1.0 + eps))
    m = mean / unit
    inside = False
    with suppress(InvalidInput):  # a moment too large for a double is outside of every class
        inside = law.absolute_moment(1.0 + eps) <= u
    if inside and mean <= law.mean:
        return 0.0
    if m >= 1.0:  # of the whole class only the constant at the very end may be left
        return 0.0 if m == 1.0 and law.support == (unit, unit) else math.inf
    place = 0.0
    for _ in range(ROUNDS):
        value, least = _solved(_points(law, unit, eps, place), m, eps)
        if least is None or law.atoms() is not None or abs(least - place) <= SAME * least:
            break
        place = least
    return max(value, 0.0)


def is_resolved(value: float, law: Law, mean: float, *, eps: float, u: float) -> bool:
    """Whether a positive `klinf` of a law has at least two digits.

    >>> from robandit.laws import Pareto
    >>> law = -Pareto(tail=2.0, scale=0.5)
    >>> [is_resolved(klinf(law, m, eps=0.5, u=2.0), law, m, eps=0.5, u=2.0) for m in (-0.99, -1.0 + 1e-12)]
    [True, False]
    """
    if value >= CUT:
        return True
    whole = all(leaf.law.atoms() is not None or has_density(leaf) for leaf in leaves(law))
    return whole and value >= FAINT and mean - law.mean >= NARROW * u ** (1.0 / (1.0 + eps))


def _check_class(owner: str, eps: float, u: float) -> None:
    check_number(owner, "eps", eps)
    check_eps(owner, eps)
    check_number(owner, "u", u, above=0.0)


class Points(NamedTuple):
    """A law on finitely many values, in units."""

    x: Floats
    power: Floats
    """|x|^(1+eps)."""
    weight: Floats


def _points(law: Law, unit: float, eps: float, place: float) -> Points:
    """The law in units; what has no atoms, as nodes that lie closest at 0 and ``place``."""
    parts = [_atoms(leaf, unit) or nodes(leaf, unit, (0.0, place)) for leaf in leaves(law)]
    x = np.clip(np.concatenate([values for values, _ in parts]), -FARTHEST, FARTHEST)
    weight = np.concatenate([weights for _, weights in parts])
    return Points(x, np.abs(x) ** (1.0 + eps), weight / weight.sum())


def _atoms(leaf: Leaf, unit: float) -> tuple[Floats, Floats] | None:
    atoms = leaf.atoms()
    with np.errstate(over="ignore"):
        return None if atoms is None else (atoms[0] / unit, leaf.weight * atoms[1])


class Solved(NamedTuple):
    """The maximum over both, and the place where the logarithm's argument is least, if it has a part in X."""

    value: float
    least: float | None


def _solved(points: Points, m: float, eps: float) -> Solved:
    m = max(m, -1.0)  # no law of the class has a smaller mean
    whole = Slice(points, 0.0, m, 0.0, 1.0)
    l2, end = whole.best()
    if whole.slope(l2) + (m * whole.rise(l2) if end == 1 else 0.0) <= 0.0:
        return Solved(whole.value(l2), None)
    low, high = LOWEST, HIGHEST
    for _ in range(60):
        position = 0.5 * (low + high)
        excess = (1.0 - m) * math.exp(-position)  # c - 1
        l1 = 1.0 / (1.0 - m + excess)
        places = _places(excess, eps)
        part = Slice(points, l1, m, *(l1 * math.exp(-eps * theta) / (1.0 + eps) for theta in places))
        l2, end = part.best()
        slope = part.slope(l2)
        if end is not None:
            y = math.exp(places[end])
            along = math.expm1((1.0 + eps) * places[end])  # the end moves by (y - m) / this when l1 does by 1
            slope = slope + part.rise(l2) * (y - m) / along if along != 0.0 else -math.inf
        low, high = (position, high) if slope > 0.0 else (low, position)
    return Solved(part.value(l2), (l1 / l2 / (1.0 + eps)) ** (1.0 / eps))


def _places(excess: float, eps: float) -> tuple[float, float]:
    """The logarithms of the two y with (eps y + y^-eps) / (1+eps) = 1 + excess, the larger one first.

    Newton's method comes from outside, and never jumps over them, since the left side is convex.
    """
    found = []
    most = (1.0 + eps) * (1.0 + excess)
    for start in (math.log(most / eps), -math.log(most) / eps):
        theta = start
        for _ in range(200):
            over = (eps * math.expm1(theta) + math.expm1(-eps * theta)) / (1.0 + eps) - excess
            rise = eps * (math.exp(theta) - math.exp(-eps * theta)) / (1.0 + eps)
            step = over / rise if rise != 0.0 else 0.0
            if not abs(step) > 1e-16 * abs(theta) or step * start <= 0.0:
                break
            theta -= step
        found.append(theta if theta * start > 0.0 else 0.0)
    return found[0], found[1]


class Slice:
    """The concave function for one l1, over l2 from ``low`` to ``high``."""

    def __init__(self, points: Points, l1: float, m: float, low: float, high: float) -> None:
        """Keep what does not depend on l2."""
        self.weight, self.gap, self.short = points.weight, points.power - 1.0, m - points.x
        self.base = l1 * self.short
        self.low, self.high = low, high

    def argument(self, l2: float) -> Floats:
        """Of the logarithm, minus 1."""
        return np.maximum(self.base + l2 * self.gap, LEAST - 1.0)

    def mean(self, values: Floats) -> float:
        """Summed in pairs, for digits; and a dot product would start threads, which costs more than it gains."""
        return float(np.sum(self.weight * values))

    def value(self, l2: float) -> float:
        """The function."""
        return self.mean(np.log1p(self.argument(l2)))

    def slope(self, l2: float) -> float:
        """Its derivative by l1."""
        return self.mean(self.short / (1.0 + self.argument(l2)))

    def rise(self, l2: float) -> float:
        """Its derivative by l2."""
        return self.mean(self.gap / (1.0 + self.argument(l2)))

    def best(self) -> tuple[float, int | None]:
        """The best l2; and 0 or 1 if it is the lower or the upper end."""
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
