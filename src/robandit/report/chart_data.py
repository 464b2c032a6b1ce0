"""The data of a report's charts: plain JSON, rounded to four significant digits."""

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
from robandit.wording import rounded

POINTS = 50  # per curve
DOTS = 100  # replications that are drawn as dots
BOUNDS = 8  # times at which a bound is computed; it is interpolated in logarithms


def chart_data(standings: Sequence[Standing], styles: Mapping[str, int]) -> dict[str, Any]:
    """Return the data; ``styles`` has a number for each policy."""
    problems = []
    for number, standing in enumerate(standings):
        played, measured = standing.played, list(standing.measured.values())
        kept = _kept(len(measured[0].checkpoints))
        problems.append(
            {
                "id": f"p{number}",
                "t": measured[0].checkpoints[kept].tolist(),
                "random": rounded(float(played.problem.gaps.mean())),
                "arms": [
                    {"name": name, "gap": rounded(gap)}
                    for name, gap in zip(played.problem.names, played.problem.gaps.tolist(), strict=True)
                ],
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
    dots = final if len(final) <= DOTS else final[np.round(np.linspace(0, len(final) - 1, DOTS)).astype(np.int64)]
    row: dict[str, Any] = {"label": measured.cell.label, "style": style}
    for name in ("mean", "median", "q05", "q95"):
        row[name] = _all(over_time[name].to_numpy()[kept])
    row["box"] = _all(np.quantile(final, [0.05, 0.25, 0.5, 0.75, 0.95]))
    row["worst"] = rounded(float(final[-1]))
    row["dots"] = _all(dots)
    row["pulls"] = _all(100.0 * shares(measured))
    row["ns"] = rounded(measured.ns_per_pull)
    row["bound"] = _bound(measured, measured.checkpoints[kept])
    return row


def _bound(measured: Measured, times: Ints) -> dict[str, Any] | None:
    """Return the instance-dependent bound over time, where it holds and lies below t times the largest gap."""
    played = measured.cell.played
    horizon, most = played.horizon, float(played.problem.gaps.max())
    policy = measured.cell.policy.prepared(horizon)
    if isinstance(policy, KLinfUCB) and any(
        isinstance(leaf.law, Stable) for law in played.problem.laws for leaf in leaves(law)
    ):
        return None  # its bound needs KLinf of a stable law, which takes seconds
    if not policy.facts.anytime:
        return None  # its bound is for its own horizon, not for earlier times
    last = _instance(policy, played, horizon)
    if last is None or last.note == "exact" or not last.value < horizon * most:
        return None
    knots = np.unique(np.append(np.round(np.geomspace(2, horizon, BOUNDS)).astype(np.int64), horizon))
    bounds = [(t, _instance(policy, played, int(t))) for t in knots]
    known = [(math.log(t), math.log(bound.value)) for t, bound in bounds if bound and 0.0 < bound.value < math.inf]
    x, y = np.array(known).T
    values = np.exp(np.interp(np.log(times), x, y, left=math.nan))
    values[values >= times * most] = math.nan
    return {"values": _all(values), "status": last.status, "source": last.source}


def _instance(policy: Any, played: Played, horizon: int) -> Bound | None:
    """Return the instance-dependent bound, if one has an assumption that holds."""
    if horizon < 2:
        return None
    try:
        known = regret_bound(policy, played.problem, horizon)
    except NotApplicable:
        return None
    if not known.met:
        return None
    return next((b for b in known.bounds if b.kind == "instance" and b.value == known.instance), None)


def _kept(count: int) -> Ints:
    """Return the checkpoints that are drawn."""
    kept: Ints = np.unique(np.round(np.linspace(0, count - 1, min(count, POINTS))).astype(np.int64))
    return kept


def _all(values: Iterable[float]) -> list[float | int | None]:
    return [rounded(float(value)) for value in values]
