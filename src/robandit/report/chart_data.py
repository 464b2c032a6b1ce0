"""The data of the charts of a report, as JSON values with four significant digits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from robandit.errors import NotApplicable
from robandit.experiments.plan import Played
from robandit.experiments.results import Measured
from robandit.experiments.statistics import Standing, curves
from robandit.kernel.types import Floats, Ints
from robandit.laws import Stable
from robandit.laws.combinators import leaves
from robandit.policies import KLinfUCB
from robandit.theory import Bound, regret_bound
from robandit.wording import rounded, visible

POINTS = 50  # points per curve
DOTS = 100  # replications that are drawn as dots
BOUNDS = 8  # times at which a bound is computed; between them it is interpolated on a log scale


def chart_data(standings: Sequence[Standing], styles: Mapping[str, int]) -> dict[str, Any]:
    """Return the data of all charts; ``styles`` maps each policy to the number of its line style."""
    problems = []
    for number, standing in enumerate(standings):
        played, measured = standing.played, list(standing.measured.values())
        kept = _spaced(len(measured[0].checkpoints), POINTS)
        problem = played.problem
        arms = zip(problem.names, problem.gaps.tolist(), strict=True)
        problems.append(
            {
                "id": f"p{number}",
                "t": measured[0].checkpoints[kept].tolist(),
                "random": rounded(played.uniform_regret / played.horizon),
                "arms": [{"name": visible(name), "gap": rounded(gap)} for name, gap in arms],
                "rows": [_row(m, kept, styles[m.cell.label]) for m in measured],
            }
        )
    return {"problems": problems}


def shares(measured: Measured) -> Floats:
    """Return the share of each arm in all pulls."""
    pulls = measured.pulls.sum(axis=0)
    return np.asarray(pulls / pulls.sum())


def _row(measured: Measured, kept: Ints, style: int) -> dict[str, Any]:
    over_time = curves(measured)
    final = np.sort(measured.final)
    return {
        "label": visible(measured.cell.label),
        "style": style,
        **{name: all_rounded(over_time[name].to_numpy()[kept]) for name in ("mean", "median", "q05", "q95")},
        "box": all_rounded(np.quantile(final, [0.05, 0.25, 0.5, 0.75, 0.95])),
        "worst": rounded(float(final[-1])),
        "dots": all_rounded(final[_spaced(len(final), DOTS)]),
        "pulls": all_rounded(100.0 * shares(measured)),
        "bound": _bound(measured, measured.checkpoints[kept]),
    }


def _bound(measured: Measured, times: Ints) -> dict[str, Any] | None:
    """Return the instance-dependent bound over time, at times when it is below t times the largest gap."""
    played = measured.cell.played
    horizon, most = played.horizon, float(played.problem.gaps.max())
    policy = measured.cell.policy.prepared(horizon)
    stable = any(isinstance(leaf.law, Stable) for law in played.problem.laws for leaf in leaves(law))
    if isinstance(policy, KLinfUCB) and stable:
        return None  # KLinf of a stable law takes seconds
    if not policy.facts.anytime:
        return None  # the bound holds only at the horizon
    last = _instance(policy, played, horizon)
    if last is None or last.note == "exact" or not 0.0 < last.value < horizon * most:
        return None  # 0, the asymptotic bound of constant rewards, has no place on a log scale
    knots = np.unique(np.append(np.round(np.geomspace(2, horizon, BOUNDS)).astype(np.int64), horizon))
    bounds = [(t, _instance(policy, played, int(t))) for t in knots]
    known = [(math.log(t), math.log(bound.value)) for t, bound in bounds if bound and 0.0 < bound.value < math.inf]
    x, y = np.array(known).T
    values = np.exp(np.interp(np.log(times), x, y, left=math.nan))
    values[values >= times * most] = math.nan
    return {"values": all_rounded(values), "status": last.status, "source": last.source}


def _instance(policy: Any, played: Played, horizon: int) -> Bound | None:
    """Return the instance-dependent bound, or None if its assumption fails."""
    if horizon < 2:
        return None
    try:
        known = regret_bound(policy, played.problem, horizon)
    except NotApplicable:
        return None
    bounds = known.bounds if known.met else ()
    return next((b for b in bounds if b.kind == "instance" and b.value == known.instance), None)


def _spaced(count: int, most: int) -> Ints:
    """Return at most ``most`` evenly spaced positions below ``count``, including the first and the last."""
    return np.unique(np.round(np.linspace(0, count - 1, min(count, most))).astype(np.int64))


def all_rounded(values: Iterable[float]) -> list[float | int | None]:
    """Round each value."""
    return [rounded(float(value)) for value in values]
