"""Theorem 2: a policy that does not know u pays a power of u'/u on one of two problems."""

from __future__ import annotations

import math
from collections.abc import Sequence

from robandit.policies.base import Policy
from robandit.theory.lower_bounds import PairBound, lower_bound_u_adaptive
from robandit.verify import hard_problems as hard
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, arithmetic, silent

# The largest ratios are close to the largest for which the pair exists at this T: the gap reaches its limit for the moment u.
RATIOS = {1.0: (1.0, 3.0, 10.0, 30.0, 100.0, 180.0), 0.5: (1.0, 5.0, 25.0)}
# A quick run excludes u' = u, which needs many replications because AdaKL-UCB settles on either arm.
QUICK = {1.0: (4.0, 20.0, 100.0), 0.5: (25.0,)}
HORIZON = 10_000


def run(
    effort: Effort, track: Track = silent, *, policies: Sequence[Policy] = hard.UNINFORMED, cheat: bool = False
) -> Evidence:
    """Play policies on the proof's pairs, and compute the regret of the best policy for each pair."""
    ratios = effort.of(QUICK, RATIOS)
    replications = effort.of(60, 200)
    bounds = [lower_bound_u_adaptive(HORIZON, eps=eps, u=1.0, u_alternative=r) for eps in ratios for r in ratios[eps]]
    runs = hard.play_all(bounds, policies, replications, effort, track, 2, cheat)
    light_ratios, heavy_ratios = (", ".join(f"{ratio:g}" for ratio in ratios[eps]) for eps in (1.0, 0.5))
    pays = "The best policy at each u'/u pays at least that power: its exponent (eps = 1)"
    light = [run for run in runs if run.setting.orders[0] == 1.0]
    return Evidence(
        ran=f"{len(policies)} policies that know neither eps nor u, on the proof's pairs at T = {HORIZON:,}, with u'/u = "
        f"{light_ratios} (eps = 1) and {heavy_ratios} (eps = 0.5), {replications} replications; the intervals "
        "hold jointly at 99 %, nominally. The best policy for a pair is computed, not played.",
        findings=(
            *hard.escapes(runs, lambda bound: f"eps = {bound.orders[0]:g}, u'/u = {_ratio(bound):g}"),
            *(_optimum(eps) for eps in (1.0, 0.5)),
            hard.growth(light, _ratio, 0.25, pays),
            _fixed_horizon(),
        ),
        rows=hard.rows(light, _ratio, "u'/u"),
        title="larger normalised regret",
        caption="The larger of R/(uT)^(1/2) and R/(u'T)^(1/2) of each policy on the pairs with eps = 1. Limit: the "
        "theorem's bound.",
    )


def _ratio(bound: PairBound) -> float:
    return bound.moments[1] / bound.moments[0]


def _optimum(eps: float) -> Finding:
    most = {1.0: 8, 0.5: 5}[eps]  # decades of u'/u, about the most that the longest accepted T allows
    ratios = [10.0**j for j in range(most - 4, most + 1)]
    return hard.exponent_of_optimum(
        [lower_bound_u_adaptive(2**53, eps=eps, u=1.0, u_alternative=ratio) for ratio in ratios],
        ratios,
        f"The theorem's power is exact: the optimum's exponent in u'/u is eps/(1+eps)^2 (eps = {eps:g})",
    )


def _fixed_horizon() -> Finding:
    """Compare the printed bound with the largest possible regret, 2 T u^(1/(1+eps)): means are at most u^(1/(1+eps))."""
    at_one = lower_bound_u_adaptive(HORIZON, eps=1.0, u=1.0, u_alternative=1.0)
    times = at_one.constant * 1e16**0.25 / (2.0 * math.sqrt(HORIZON))
    longest = at_one.delta ** (-4.0 / 3.0)  # the gap grows as (u'/u)^(3/4), and must stay below 1
    return arithmetic(
        f"at a fixed T the supremum is finite: the printed bound for u'/u = 1e16 and T = {HORIZON:,}, over the "
        "largest possible regret",
        times,
        f"At this T the pair exists up to u'/u = {longest:.0f}. T must grow as (u'/u)^((1+2 eps)/(eps (1+eps)))",
    ).at_least(1.0, misprints=("24",), headline="As printed, for one T and all u, it fails: T must grow with u'/u.")


STATEMENT = Statement(
    key="theorem-2",
    name="Theorem 2",
    says="A policy that does not know u has R >= c (u'/u)^(eps/(1+eps)^2) (uT)^(1/(1+eps)) on one of two problems with moments u "
    "and u'.",
    run=run,
    policies=lambda: hard.UNINFORMED,
)
