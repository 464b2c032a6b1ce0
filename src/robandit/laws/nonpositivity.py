"""The verdict on truncated non-positivity: E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from robandit.laws.verdict import Verdict

if TYPE_CHECKING:
    from robandit.laws.base import Law

__all__ = ["judge"]

# Both sides of the expectation come from formulas good to about 1e-9: a smaller surplus is rounding.
ROUNDING = 1e-9
SUM_ROUNDING = 1e-12  # the same for finite sums


def judge(law: Law, about: float) -> Verdict:
    """The strongest verdict available: exact by the form of the law where possible, else numeric."""
    low, high = law.support
    mean = law.mean
    if high <= about:
        return Verdict(True, "exact", f"the support {_interval(low, high)} lies at or below {about}")
    if math.isnan(mean):
        return Verdict(
            False, "exact", "the mean is undefined, so the expectation at M = 0 does not exist", 0.0, math.nan
        )
    if law.symmetric_about == about:
        return Verdict(True, "exact", f"the law is symmetric about {about}: the expectation is 0 for every M")
    if low >= about:
        return Verdict(False, "exact", f"the support {_interval(low, high)} lies above {about}", 0.0, mean - about)
    if mean == -math.inf:
        return _numeric(law, about)
    # a mean that equals ``about`` up to the rounding of its own formula is left to the checks below
    if mean - about > 1e-12 * law.absolute_moment(1.0, about) or mean == math.inf:
        return Verdict(
            False, "exact", f"the mean {mean} is above {about}, and M = 0 asks for at most that", 0.0, mean - about
        )
    points = law.atoms()
    if points is not None:
        return _on_atoms(*points, about)
    if law.right_tail < law.left_tail:
        return _heavier_right(law, about)
    return _numeric(law, about)


def _interval(low: float, high: float) -> str:
    return f"{'(' if math.isinf(low) else '['}{low}, {high}{')' if math.isinf(high) else ']'}"


def _on_atoms(values: np.ndarray, masses: np.ndarray, about: float) -> Verdict:
    """The expectation as a function of M is a step function: look at every step."""
    offset = values - about
    order = np.argsort(-np.abs(offset), kind="stable")
    size = np.abs(offset)[order]
    net = np.cumsum((offset * masses)[order])
    gross = np.cumsum((np.abs(offset) * masses)[order])
    last_of_step = np.append(size[1:] < size[:-1], True)
    excess = np.where(last_of_step & (net > SUM_ROUNDING * gross), net, -math.inf)
    worst = int(np.argmax(excess))
    if excess[worst] == -math.inf:
        return Verdict(True, "exact", f"checked at each of the {len(values)} values")
    level = float(size[worst + 1]) if worst + 1 < len(size) else 0.0
    return Verdict(False, "exact", f"fails for M = {level}", level, float(net[worst]))


def _surplus(law: Law, m: float, about: float) -> float:
    """The expectation at M, or 0 where it is not above rounding."""
    upper, lower = law.partial_means(m, about)
    excess = upper + lower
    return excess if excess > ROUNDING * max(upper, -lower) else 0.0


def _heavier_right(law: Law, about: float) -> Verdict:
    reason = f"the right tail (index {law.right_tail}) is heavier than the left (index {law.left_tail})"
    level, excess = _worst(law, about)
    if excess > 0.0:
        return Verdict(False, "exact", reason, level, excess)
    return Verdict(False, "exact", f"{reason}: it fails for M large enough")


def _numeric(law: Law, about: float) -> Verdict:
    level, excess = _worst(law, about)
    if excess > 0.0:
        return Verdict(False, "numeric", f"fails for M = {level:g}", level, excess)
    return Verdict(True, "numeric", "holds on a grid of M from 0 far into both tails; the right is no heavier")


def _worst(law: Law, about: float) -> tuple[float, float]:
    """The M of a grid with the largest surplus.

    The grid is geometric, 16 levels per factor e around the law's own scale and 2 per factor e far out: the
    expectation is smooth in log M between the special points of the components, which are added with a neighbour on
    either side.
    """
    scales: set[float] = set()
    special: set[float] = {0.0}
    for part in law.components():
        centre, spread = abs(part.loc - about), abs(part.scale)
        scales.update(s for s in (centre, spread) if s > 0.0)
        for z in (0.0, 1.0, *_some(part.data)):
            edge = abs(part.loc + part.scale * z - about)
            special.update((edge, edge * (1.0 - 1e-9), edge * (1.0 + 1e-9)))
    middle = [s * math.exp(k / 16.0) for s in scales for k in range(-80, 112)]
    far = [s * math.exp(k / 2.0) for s in (min(scales), max(scales)) for k in range(-40, 200)]
    best = (0.0, 0.0)
    for m in sorted({*special, *middle, *far}):
        if math.isfinite(m):
            excess = _surplus(law, m, about)
            if excess > best[1]:
                best = (m, excess)
    return best


def _some(data: np.ndarray | None) -> list[float]:
    """Values of a recorded sample to look at: all of a small one, quantiles of a large one."""
    if data is None:
        return []
    return [float(v) for v in (data if len(data) <= 400 else np.quantile(data, np.linspace(0.0, 1.0, 401)))]
