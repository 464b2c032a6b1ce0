"""Problems and comparisons that the checks of AdaR-UCB's two regret bounds share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from robandit.intervals import Interval, mean_interval
from robandit.kernel.types import Floats
from robandit.laws import Bernoulli, Gaussian, ZeroInflated
from robandit.policies.base import Policy
from robandit.problems import Problem, lower_bound_family, negated_lomax, negated_pareto, student_t
from robandit.simulate.simulation import simulate
from robandit.verify.interval_arithmetic import divided, largest, slope_weights
from robandit.verify.statement import Effort, Finding, finding

Bound = Callable[[Problem, int, float], float]
"""A regret bound as a function of a problem, a horizon and eps."""


class Case(NamedTuple):
    """A problem whose best arm satisfies the assumption, and an order eps for which its moments are finite."""

    name: str
    problem: Problem
    eps: float


class Measured(NamedTuple):
    """Regret divided by a bound, for one case and horizon."""

    case: Case
    horizon: int
    ratio: Interval
    room: float
    """T times the largest gap, divided by the bound. If it is at most 1, no policy can break the bound."""


def standard_cases() -> tuple[Case, ...]:
    """Return problems with tail indices from 1.4 to infinity, scales over six decades and 2 to 10 arms.

    They cover each kind of law that the assumption admits. The best arm of the first two hardly varies, so only the index of
    a worse arm determines its pulls. On such problems the printed bound is tightest.
    """
    calm = Gaussian(0.0, 0.01)
    often_zero = Problem([ZeroInflated(law, 0.75) for law in negated_pareto([-1.0, -6.0, -8.0], 2.2).laws])
    return (
        Case("normal, wide against narrow, gap 0.3", Problem([calm, Gaussian(-0.3, 1.0)]), 1.0),
        Case("losses of 1, in 30 % of pulls", Problem([calm, Bernoulli(0.3) * -1.0]), 0.8),
        Case("negated Pareto 3", negated_pareto([-0.5, -4.0], 3.0), 1.0),
        Case("negated Pareto 1.8, times 1000", negated_pareto([-1e3, -4e3, -6e3], 1.8), 0.6),
        Case("negated Pareto 1.4", negated_pareto([-1.0, -10.0], 1.4), 0.3),
        Case("Student t 2.5, times 0.001", student_t([0.0, -3e-3, -3e-3, -3e-3], 2.5, 1e-3), 1.0),
        Case("Student t 1.8", student_t([0.0, -3.0, -6.0], 1.8), 0.6),
        Case("negated Lomax 2.5, ten arms", negated_lomax([-1.0] + [-2.0 - 0.5 * i for i in range(9)], 2.5), 1.0),
        Case("negated Pareto 2.2, 75 % zeros", often_zero, 1.0),
        Case("Theorem 4's family", lower_bound_family(arms=3, eps=0.5, u=1.0, delta=0.6, best=2), 0.5),
    )


def play(
    policy: Policy, problem: Problem, marks: Sequence[int], replications: int, effort: Effort, key: Sequence[int]
) -> Floats:
    """Return the regret at the marks, with one row per replication. ``key`` determines the seed of the run."""
    seed = int(effort.stream(*key).generate_state(1, np.uint64)[0])
    options: dict[str, Any] = {"threads": effort.threads, "checkpoints": sorted(marks), "progress": False}
    regret: Floats = simulate(policy, problem, max(marks), replications, seed, **options).regret[0]
    return regret


def over(bound: Bound, case: Case, marks: Sequence[int], regret: Floats, confidence: float) -> list[Measured]:
    """Return the mean regret divided by a bound, at each mark."""
    measured, largest_gap = [], float(case.problem.gaps.max())
    for mark, column in zip(marks, regret.T, strict=True):
        limit = bound(case.problem, mark, case.eps)
        measured.append(
            Measured(case, mark, divided(mean_interval(column, confidence), limit), mark * largest_gap / limit)
        )
    return measured


def compare(bound: Bound, played: Iterable[tuple[Case, Sequence[int], Floats]], confidence: float) -> list[Measured]:
    """Return the mean regret divided by a bound, for all cases and marks."""
    return [measured for one in played for measured in over(bound, *one, confidence)]


def worst_of(measured: Iterable[Measured]) -> Measured:
    """Return the case with the largest measured ratio. It is for naming only: another case may have a higher upper end."""
    return max(measured, key=lambda m: m.ratio.measured)


def telling(measured: Iterable[Measured]) -> int:
    """Count the comparisons in which a policy could break the bound: it is below T times the largest gap."""
    return sum(m.room > 1.0 for m in measured)


def over_bound(claim: str, measured: Sequence[Measured], note: str = "") -> Finding:
    """Return the finding about the largest ratio. If no policy could break the bound in any case, the interval is infinite."""
    worst, ratio = worst_of(measured), largest(m.ratio for m in measured)
    if not telling(measured):
        ratio = Interval(ratio.measured, -math.inf, math.inf)
    return finding(claim, ratio, f"worst: {worst.case.name}, T = {worst.horizon:,}{note}")


def growth(marks: Sequence[int], regret: Floats) -> Floats:
    """Return the coefficient b of ``a + b log T``, by least squares, for each row."""
    slopes: Floats = regret @ slope_weights(np.asarray(marks, dtype=np.float64))
    return slopes
