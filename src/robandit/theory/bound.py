"""What a regret bound is made of: one bound, the case that it is asked for, and what a formula answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robandit.errors import NotApplicable
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.laws.gaussian import normal_variance
from robandit.policies import Policy
from robandit.policies.base import LEAST_EPS
from robandit.problems import Problem

__all__ = ["Bound", "Case", "Found", "Kind", "Status", "power", "sub_gaussian", "total"]

Kind = Literal["instance", "worst-case"]
Status = Literal["proved", "repaired", "derived", "asymptotic", "printed"]
LEAST = 1e-12  # relative: far above the rounding of a moment


@dataclass(frozen=True)
class Bound:
    """One bound on the expected regret at a horizon, in units of reward; it is never cut at the horizon times a gap."""

    kind: Kind
    """An "instance" bound uses the problem's gaps; the leading term of a "worst-case" bound does not."""
    value: float
    source: str
    status: Status
    """How far to trust it. "proved": printed with these constants, and no gap in the proof is known. "repaired": a printed bound
    with the constants that its proof gives. "derived": our own constants, from a lemma of the source. "asymptotic": the leading
    term as T grows; at a given T regret may exceed it. "printed": as printed, with a known gap in its proof."""
    note: str = ""


@dataclass(frozen=True)
class Case:
    """A policy that has been told what it must know, on a problem, for that many pulls; ``asked`` is the eps asked for, if any."""

    policy: Any
    problem: Problem
    horizon: int
    asked: float | None

    @property
    def gaps(self) -> Floats:
        """Those of the worse arms."""
        return self.problem.gaps[self.problem.gaps > 0.0]

    @property
    def name(self) -> str:
        """The policy's."""
        policy: Policy = self.policy
        return policy.name

    @property
    def log(self) -> float:
        """log T."""
        return math.log(self.horizon)

    def order(self) -> float:
        """The eps to use: the policy's own, the one asked for, or min(1, 0.9 (tail index - 1))."""
        for eps in (getattr(self.policy, "eps", None), self.asked):
            if eps is not None:
                return float(eps)
        eps = min(1.0, 0.9 * (self.problem.tail_index - 1.0))
        if eps < LEAST_EPS:
            raise NotApplicable(
                f"a tail index of {self.problem.tail_index!r} leaves eps = {eps:.3g}: bounds begin at {LEAST_EPS:g}"
            )
        return eps

    def u(self, eps: float) -> float:
        """The problem's own bound of the raw moments, which must be finite."""
        u = self.problem.u(eps)
        if not math.isfinite(u):
            raise NotApplicable(
                f"{self.name}: an arm has an infinite E|X|^{1.0 + eps:g}, so its bound says nothing at eps = {eps:g}: take eps "
                f"below {self.problem.tail_index - 1.0:g}, the tail index minus 1"
            )
        return u


@dataclass(frozen=True)
class Found:
    """The answer of a formula: bounds, and the moments in them."""

    bounds: tuple[Bound, ...]
    eps: float | None = None
    moment: float | None = None
    actual: float | None = None
    """The problem's own moment, where the policy was told one."""
    met: bool | None = None
    """Where the formula itself has checked what is assumed."""

    @property
    def told_right(self) -> bool:
        """Whether the moment that the policy was told bounds the problem's own."""
        return self.moment is None or self.actual is None or self.moment >= self.actual * (1.0 - LEAST)


def total(terms: Any) -> float:
    """Their sum."""
    return float(np.sum(terms))


def power(base: Any, exponent: float) -> Any:
    """base^exponent, infinite where it is beyond a double."""
    with np.errstate(over="ignore"):
        return np.float_power(base, exponent)


def sub_gaussian(law: Law) -> float | None:
    """A variance proxy: that of a normal law, or a quarter of the squared length of a bounded support; None: cannot say."""
    low, high = law.support
    return 0.25 * (high - low) ** 2 if math.isfinite(high - low) else normal_variance(law)
