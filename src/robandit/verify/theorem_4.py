"""Theorems 1 and 4: a lower bound on regret for all policies, even those that know eps and u, with or without the assumption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robandit import policies as library
from robandit.kernel.types import Floats
from robandit.policies import Policy
from robandit.problems import Problem, hard_gap, lower_bound_family
from robandit.theory.lower_bounds import minimax_constant, minimax_lower_bound
from robandit.verify.hard_problems import Played, fit_exponent, label, play_all, smallest_ratio
from robandit.verify.interval_arithmetic import divided, slope, smallest
from robandit.verify.statement import (
    Effort,
    Evidence,
    Finding,
    Row,
    Statement,
    Track,
    arithmetic,
    finding,
    row_of,
    silent,
)

POLICIES: tuple[Policy, ...] = (
    *(library.AdaRUCB(), library.AdaKLUCB(), library.UCB1(), library.ForceMoM(), library.RobustMOSS()),
    *(library.HTINF(), library.RobustUCB(), library.KLinfUCB(), library.AdaTINF(), library.OptTINF()),
    *(library.EpsilonGreedy(), library.Uniform(), library.Oracle(arm=0), library.Oracle(arm=1)),
)
"""Policies of every kind; the last two always pull one arm."""

ORDERS = (0.3, 0.5, 1.0)
ARMS = (2, 5)


class Case(NamedTuple):
    """A family of problems: a base and K - 1 alternatives."""

    eps: float
    arms: int
    horizon: int

    @property
    def orders(self) -> tuple[float]:
        """The order that policies know."""
        return (self.eps,)

    @property
    def scales(self) -> tuple[float, ...]:
        """The units of regret on each problem."""
        return (1.0,) * self.arms

    def problems(self) -> list[Problem]:
        """Return the problems of the family, by their best arm."""
        return [lower_bound_family(self.arms, self.eps, 1.0, self.horizon, best=best) for best in range(self.arms)]

    @property
    def bound(self) -> float:
        """The theorem's bound, with the constant of its proof."""
        return minimax_lower_bound(self.horizon, self.arms, eps=self.eps, u=1.0)

    @property
    def rate(self) -> float:
        """The theorem's rate, without a constant."""
        q, p = self.eps / (1.0 + self.eps), 1.0 / (1.0 + self.eps)
        return float(self.arms**q * self.horizon**p)


OnFamily = Played[Case]
"""A policy on a family, with the largest of its regrets."""


def run(
    effort: Effort,
    track: Track = silent,
    *,
    policies: Sequence[Policy] = POLICIES,
    cheat: bool = False,
    orders: Sequence[float] = ORDERS,
    constant: float = 1.0,
) -> Evidence:
    """Play policies on every problem of the proof's families. ``constant`` multiplies the bound."""
    horizons = effort.of((300, 2400), (300, 2400, 19_200))
    replications = effort.of(30, 100)
    cases = [Case(eps, arms, horizon) for eps in orders for arms in ARMS for horizon in horizons]
    runs: list[OnFamily] = play_all(cases, policies, replications, effort, track, 4, cheat)
    return Evidence(
        ran=f"{len(policies)} policies, which know eps and u where they need them, on the proof's families with every alternative: "
        f"eps = {', '.join(f'{eps:g}' for eps in orders)}, K = 2 and 5, u = 1, T from {horizons[0]:,} to {horizons[-1]:,}, "
        f"{replications} replications; the intervals hold jointly at 99 %, nominally.",
        findings=(
            _over_bound(runs, [constant * run.setting.bound for run in runs]),
            _over_rate(runs, constant * minimax_constant()),
            *_optimal(orders),
            _best(runs, max(orders)),
            _bretagnolle_huber(),
        ),
        rows=_rows(runs),
        title="largest regret over the bound",
        caption="The largest regret of each policy over the family's problems, divided by the bound, in the case where this ratio "
        "is smallest. No policy may be below the limit. At the hard gap an arm pays once in several horizons, so there "
        "is almost nothing to learn, and most policies play almost uniformly.",
    )


def _over_bound(runs: Sequence[OnFamily], floors: Sequence[float]) -> Finding:
    return smallest_ratio(
        "No policy does better on all problems of a family: its largest regret over the bound, smallest of all cases",
        runs,
        floors,
        lambda case: f"eps = {case.eps:g}, K = {case.arms}, T = {case.horizon:,}",
    )


def _over_rate(runs: Sequence[OnFamily], least: float) -> Finding:
    return finding(
        "One constant works for all: the smallest largest regret over K^(eps/(1+eps)) (uT)^(1/(1+eps))",
        smallest(divided(run.regret, run.setting.rate) for run in runs),
        "The prediction is the proof's smallest constant, at K = 2 and eps = 1",
    ).at_least(least)


def optimum(horizon: int, eps: float, *, payments: int = 12) -> float:
    """Return the exact minimax regret over all policies on the family with two arms and u = 1.

    Only arm 1 differs between the two problems. So the best plan is to pull arm 1 until giving up, and then arm 0. For a given
    prior, backward induction over pulls and payments gives the best time to give up. The Bayes risk at the worst prior is the
    minimax regret. The risk is concave in the prior, so the search narrows a grid around the maximum. More than ``payments``
    payments have negligible probability, since less than one is expected.
    """
    gap = hard_gap(2, eps, 1.0, horizon)
    mass = gap ** (1.0 + 1.0 / eps)
    paid = np.arange(payments + 1)

    def likelihood(p: float, pulls: int) -> Floats:
        chance: Floats = np.exp(paid * math.log(p) + (pulls - paid) * math.log1p(-p))
        return chance

    low, high = 0.0, 1.0
    for _ in range(4):
        prior = np.linspace(low, high, 21)[:, None]
        risk = np.zeros((21, payments + 1))
        for pulls in range(horizon - 1, -1, -1):
            leave = (1.0 - prior) * likelihood(mass / 3.0, pulls) * (horizon - pulls)
            stay = prior * likelihood(mass, pulls) + risk
            stay[:, :-1] += risk[:, 1:]
            stay[:, -1] = leave[:, -1]
            risk = np.minimum(leave, stay)
        worst = int(risk[:, 0].argmax())
        low, high = float(prior[max(worst - 1, 0), 0]), float(prior[min(worst + 1, 20), 0])
    return gap / 3.0 * float(risk[:, 0].max())


def _optimal(orders: Sequence[float]) -> tuple[Finding, Finding]:
    """Compare the exact optimum for two arms with the bound, and its growth with T^(1/(1+eps)).

    The number of payments is almost Poisson: the total variation distance is at most T mass^2 under both problems (Le Cam).
    Integer pulls add at most 1/T. So regret over Delta T/3 (at most 1) differs from its limit by at most 2 T mass^2 + 1/T.
    """
    horizons = (250, 1000)
    ratios, misses, tolerances = [], [], []
    for eps in orders:
        optima = [optimum(t, eps) for t in horizons]
        ratios += [o / Case(eps, 2, t).bound for o, t in zip(optima, horizons, strict=True)]
        errors = []
        for t, o in zip(horizons, optima, strict=True):
            gap = hard_gap(2, eps, 1.0, t)
            errors.append((2.0 * t * gap ** (2.0 + 2.0 / eps) + 1.0 / t) * gap * t / 3.0 / o)
        fitted, tolerance = fit_exponent([float(t) for t in horizons], optima, errors)
        misses.append(abs(fitted - 1.0 / (1.0 + eps)))
        tolerances.append(tolerance)
    return (
        finding(
            "The best of all policies, known exactly for two arms, is above the bound: their smallest ratio",
            min(ratios),
            f"The largest ratio is {max(ratios):.3g}, so the proof's constant is too small by at most that factor",
        ).at_least(1.0),
        finding(
            "and its regret grows as T^(1/(1+eps)): the largest difference between the two exponents", max(misses)
        ).between(0.0, min(tolerances)),
    )


def _best(runs: Sequence[OnFamily], eps: float) -> Finding:
    """Return the best policy's exponent. Its regret lies between the optimum and the regret of uniform play, Delta T/6."""
    small = [run for run in runs if run.setting.eps == eps and run.setting.arms == 2]
    horizons = sorted({run.setting.horizon for run in small})
    by_policy = {run.policy: [r for r in small if r.policy == run.policy] for run in small}
    best = min(by_policy, key=lambda policy: sum(math.log(max(r.regret.measured, 1e-300)) for r in by_policy[policy]))
    exponent = slope(np.array(horizons, dtype=float), np.stack([r.replications for r in by_policy[best]], axis=1))
    gap = hard_gap(2, eps, 1.0, horizons[0])
    room = math.log(gap * horizons[0] / 6.0 / optimum(horizons[0], eps)) / math.log(horizons[-1] / horizons[0])
    return finding(
        f"So does the best policy played: its exponent (eps = {eps:g}, K = 2)",
        exponent,
        f"{label(best)}; the predicted range follows from the optimum and uniform play",
    ).between(1.0 / (1.0 + eps) - room, 1.0 / (1.0 + eps) + room, must=False, asymptotic=True)


def _bretagnolle_huber() -> Finding:
    """Compare the error probabilities of a test with exp(-T KL). The test pulls arm 1 T times, and says "base" if it ever pays."""
    horizon = 1000
    p = hard_gap(2, 1.0, 1.0, horizon) ** 2
    divergence = p * math.log(3.0) + (1.0 - p) * (math.log1p(-p) - math.log1p(-p / 3.0))
    errors = (1.0 - p) ** horizon + 1.0 - (1.0 - p / 3.0) ** horizon
    return arithmetic(
        "Bretagnolle-Huber needs its 1/2, also on this family: a test's errors over exp(-T KL) are below 1 (eps = 1, K = 2)",
        errors / math.exp(-horizon * divergence),
        "The proof omits it, so its constant is twice as large. The arm that defines the alternative is the one pulled "
        "least on the base problem, not on the alternative",
    ).between(0.5, 1.0 - 1e-9, misprints=("26",))


def _rows(runs: Sequence[OnFamily]) -> list[Row]:
    rows = []
    for policy in dict.fromkeys(run.policy for run in runs):
        nearest = min((r for r in runs if r.policy == policy), key=lambda r: r.regret.measured / r.setting.bound)
        rows.append(row_of(divided(nearest.regret, nearest.setting.bound), case=label(policy), limit=1.0))
    return rows


STATEMENT = Statement(
    key="theorem-4",
    name="Theorems 1 and 4",
    says="Every policy, even one that knows eps and u, has R >= c K^(eps/(1+eps)) (uT)^(1/(1+eps)) on some problem, with or "
    "without the assumption.",
    run=run,
    policies=lambda: POLICIES,
    aliases=("theorem-1",),
)
