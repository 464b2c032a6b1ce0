"""The classes of regret bounds: a bound, the case of a formula and its result; and helpers of the formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robandit.errors import NotApplicable
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.laws.gaussian import normal_variance
from robandit.problems import Problem
from robandit.validation import LEAST_EPS, invalid

Kind = Literal["instance", "worst-case"]
Status = Literal["proved", "repaired", "derived", "asymptotic", "printed"]
TOLERANCE = 1e-12  # relative: far above the rounding of a moment


@dataclass(frozen=True)
class Bound:
    """One bound on the expected regret at a horizon, in units of reward. It may exceed the horizon times the largest gap."""

    kind: Kind
    """An "instance" bound uses the problem's gaps; the leading term of a "worst-case" bound does not."""
    value: float
    source: str
    status: Status
    """The reliability of the bound. "proved": printed with these constants, without a known gap in the proof. "repaired": a printed
    bound with the constants that its proof gives. "derived": a bound with our own constants, from a lemma of the source.
    "asymptotic": the leading term for large T, which regret may exceed. "printed": as printed, with a known gap in the proof."""
    note: str = ""


@dataclass(frozen=True)
class Case:
    """A policy with all required parameters, a problem and a horizon; ``requested_eps`` is the caller's eps, if any."""

    policy: Any
    problem: Problem
    horizon: int
    requested_eps: float | None

    @property
    def gaps(self) -> Floats:
        """The gaps of the worse arms."""
        return self.problem.gaps[self.problem.gaps > 0.0]

    @property
    def log(self) -> float:
        """log T."""
        return math.log(self.horizon)

    def order_and_u(self) -> tuple[float, float]:
        """Return eps and the problem's u. eps is the policy's, the requested one, or min(1, 0.9 (tail index - 1))."""
        own, tail_index = getattr(self.policy, "eps", None), self.problem.tail_index
        eps = self.requested_eps if own is None else float(own)
        if eps is None:
            eps = min(1.0, 0.9 * (tail_index - 1.0))
            if eps < LEAST_EPS:
                reason = f"a tail index of {tail_index!r} leaves eps = {eps:.3g}"
                raise NotApplicable(f"{reason}: bounds need at least {LEAST_EPS:g}")
        u = self.problem.u(eps)
        if not math.isfinite(u):
            raise self.error(
                f"an arm has an infinite E|X|^{1.0 + eps:g}, so there is no bound at eps = {eps:g}; take eps below "
                f"{tail_index - 1.0:g}, the tail index minus 1"
            )
        return float(eps), u

    def error(self, reason: str) -> NotApplicable:
        """Return the error that this policy has no bound here."""
        return NotApplicable(f"{self.policy.name}: {reason}")


@dataclass(frozen=True)
class BoundSet:
    """The result of a formula: the bounds, and the moments that they use."""

    bounds: tuple[Bound, ...]
    eps: float | None = None
    moment: float | None = None
    problem_moment: float | None = None
    """The moment of the problem, if the policy has a parameter for it."""
    met: bool | None = None
    """Whether the assumption holds, if the formula checks it."""

    @property
    def moment_is_enough(self) -> bool:
        """Whether the policy's moment is at least the problem's moment."""
        if self.moment is None or self.problem_moment is None:
            return True
        return self.moment >= self.problem_moment * (1.0 - TOLERANCE)


def check_problem(problem: Any, owner: str = "") -> None:
    """Raise `InvalidInput` unless this is a problem."""
    if not isinstance(problem, Problem):
        raise invalid("problem", problem, "a Problem", owner=owner, hint="make one with Problem(laws)")


def total(terms: Any) -> float:
    """Return the sum as a float."""
    return float(np.sum(terms))


def power(base: Any, exponent: float) -> Any:
    """Return base^exponent, or infinity if it overflows."""
    with np.errstate(over="ignore"):
        return np.float_power(base, exponent)


def sub_gaussian(law: Law) -> float | None:
    """Return a variance proxy: the variance of a normal law, or length^2 / 4 for a bounded support. None means unknown."""
    low, high = law.support
    return 0.25 * (high - low) ** 2 if math.isfinite(high - low) else normal_variance(law)
