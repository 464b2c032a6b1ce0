"""Theorem 3: a policy that does not know eps pays a power of T on one of two problems."""

from __future__ import annotations

from collections.abc import Sequence

from robandit.policies.base import Policy
from robandit.theory.lower_bounds import PairBound, lower_bound_eps_adaptive
from robandit.verify import hard_problems as hard
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, arithmetic, silent


def run(
    effort: Effort, track: Track = silent, *, policies: Sequence[Policy] = hard.UNINFORMED, cheat: bool = False
) -> Evidence:
    """Play policies on the proof's pairs, and compute the regret of the best policy for each pair."""
    horizons = effort.of((100, 1000, 10_000), (100, 1000, 10_000, 100_000))
    replications = effort.of(120, 200)
    bounds = [lower_bound_eps_adaptive(horizon) for horizon in horizons]
    runs = hard.play_all(bounds, policies, replications, effort, track, 3, cheat)
    pays = "The best policy at each T pays at least T^(1/16): its exponent"
    return Evidence(
        ran=f"{len(policies)} policies that know neither eps nor u, on the proof's pairs with eps = 1 and eps' = 1/3 at T = "
        f"{', '.join(f'{horizon:,}' for horizon in horizons)}, {replications} replications; the intervals hold jointly at "
        "99 %, nominally. The best policy for a pair is computed, not played.",
        findings=(
            *hard.escapes(runs, lambda bound: f"T = {bound.horizon:,}"),
            _optimum(1.0, 1.0 / 3.0, "eps = 1, eps' = 1/3: 1/16"),
            _optimum(1.0, 0.6, "eps = 1, eps' = 0.6: 0.0469"),
            hard.growth(runs, _horizon, bounds[0].exponent, pays),
            _constant(),
        ),
        rows=hard.rows(runs, _horizon, "T"),
        title="larger normalised regret",
        caption="The larger of R/T^(1/2) (first problem) and R/T^(3/4) (second) of each policy. Limit: the theorem's "
        "bound.",
    )


def _horizon(bound: PairBound) -> float:
    return float(bound.horizon)


def _optimum(eps: float, eps_alternative: float, which: str) -> Finding:
    horizons = [10**j for j in range(9, 16, 2)]
    return hard.exponent_of_optimum(
        [lower_bound_eps_adaptive(t, eps=eps, eps_alternative=eps_alternative) for t in horizons],
        [float(t) for t in horizons],
        f"The theorem's power is exact: the optimum's exponent in T ({which})",
    )


def _constant() -> Finding:
    pairs = [(first / 50.0, second / 50.0) for first in range(1, 51) for second in range(1, first)]
    return arithmetic(
        "one constant works for all orders: the smallest of the bound's constants over 0 < eps' < eps <= 1",
        min(lower_bound_eps_adaptive(10**9, eps=e, eps_alternative=other).constant for e, other in pairs),
        "The constant is (4/log 2)^(eps'/(1+eps'))/32. The statement must require K >= 2, since one arm has no regret",
    ).at_least(1.0 / 32.0, misprints=("25",))


STATEMENT = Statement(
    key="theorem-3",
    name="Theorem 3",
    says="A policy that does not know eps has R >= c T^(eps'(eps-eps')/((1+eps)(1+eps')^2)), up to T^(1/16), times the rate of one "
    "that does, on one of two problems.",
    run=run,
    policies=lambda: hard.UNINFORMED,
)
