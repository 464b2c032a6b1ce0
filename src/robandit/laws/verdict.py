"""Check truncated non-positivity: whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from robandit.kernel.types import Floats

if TYPE_CHECKING:
    from robandit.laws.base import Law

ROUNDING = 1e-9  # a smaller surplus counts as rounding, since both sides have errors of about 1e-9
SUM_ROUNDING = 1e-12  # the same tolerance for finite sums


@dataclass(frozen=True)
class Verdict:
    """The answer whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0. It is true if the inequality holds.

    ``how`` is "exact" if the answer follows from the form of the law, "numeric" if it was checked on a grid of M and in the tails.
    If the inequality fails, ``worst`` is an M where it fails, and ``excess`` is the expectation there.
    """

    holds: bool
    how: Literal["exact", "numeric"]
    reason: str
    worst: float | None = None
    excess: float | None = None

    def __bool__(self) -> bool:
        return self.holds


def judge(law: Law, about: float) -> Verdict:
    """Return an exact verdict if the form of the law allows one, else a numeric verdict."""
    low, high = law.support
    mean = law.mean
    if high <= about:
        return Verdict(True, "exact", f"the support {_interval(low, high)} lies at or below {about}")
    if math.isnan(mean):
        reason = "the mean is undefined, so the expectation at M = 0 does not exist"
        return Verdict(False, "exact", reason, 0.0, math.nan)
    if law.symmetric_about == about:
        return Verdict(True, "exact", f"the law is symmetric about {about}: the expectation is 0 for every M")
    if low >= about:
        return Verdict(False, "exact", f"the support {_interval(low, high)} lies above {about}", 0.0, mean - about)
    if mean == -math.inf:
        return _numeric(law, about)
    # The checks below decide if the mean equals ``about`` up to rounding.
    if mean - about > 1e-12 * law.absolute_moment(1.0, about) or mean == math.inf:
        reason = f"the mean {mean} is above {about}: the expectation at M = 0 is positive"
        return Verdict(False, "exact", reason, 0.0, mean - about)
    atoms = law.atoms()
    if atoms is not None:
        return _on_atoms(*atoms, about)
    if law.right_tail >= law.left_tail:
        return _numeric(law, about)
    reason = f"the right tail (index {law.right_tail}) is heavier than the left (index {law.left_tail})"
    level, excess = _worst(law, about)
    if excess > 0.0:
        return Verdict(False, "exact", reason, level, excess)
    return Verdict(False, "exact", f"{reason}: the inequality fails for large M")


def _interval(low: float, high: float) -> str:
    return f"{'(' if math.isinf(low) else '['}{low}, {high}{')' if math.isinf(high) else ']'}"


def _on_atoms(values: Floats, masses: Floats, about: float) -> Verdict:
    """Check every step of the expectation, which is a step function of M."""
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


def _numeric(law: Law, about: float) -> Verdict:
    level, excess = _worst(law, about)
    if excess > 0.0:
        return Verdict(False, "numeric", f"fails for M = {level:g}", level, excess)
    reason = "holds on a grid of M from 0 far into both tails, and the right tail is not heavier than the left"
    return Verdict(True, "numeric", reason)


def _worst(law: Law, about: float) -> tuple[float, float]:
    """Return the M with the largest surplus on a grid, and the surplus.

    The grid is geometric: 16 levels per factor e around the scale of the law, 2 per factor e far out. The expectation is smooth in
    log M, except at special points of the components. These points are added, with a neighbour on each side.
    """
    scales: set[float] = set()
    special: set[float] = {0.0}
    for part in law.components():
        centre, spread = abs(part.loc - about), abs(part.scale)
        scales.update(s for s in (centre, spread) if s > 0.0)
        for z in (0.0, 1.0, *_sampled(part.data)):
            edge = abs(part.loc + part.scale * z - about)
            special.update((edge, edge * (1.0 - 1e-9), edge * (1.0 + 1e-9)))
    middle = [s * math.exp(k / 16.0) for s in scales for k in range(-80, 112)]
    far = [s * math.exp(k / 2.0) for s in (min(scales), max(scales)) for k in range(-40, 200)]
    worst = (0.0, 0.0)
    for m in sorted(filter(math.isfinite, {*special, *middle, *far})):
        upper, lower = law.partial_means(m, about)
        if upper + lower > max(worst[1], ROUNDING * max(upper, -lower)):
            worst = (m, upper + lower)
    return worst


def _sampled(data: Floats | None) -> list[float]:
    """Return all values of a small recorded sample, or quantiles of a large one."""
    if data is None:
        return []
    return [float(v) for v in (data if len(data) <= 400 else np.quantile(data, np.linspace(0.0, 1.0, 401)))]
