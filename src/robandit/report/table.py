"""The leaderboard in the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robandit.simulate import Result

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["leaderboard", "uniform_regret"]


def uniform_regret(result: Result) -> float:
    """Regret of choosing arms at random: the yardstick for not having learned."""
    return float(result.horizon * result.problem.gaps.mean())


def leaderboard(result: Result) -> Table:
    """Final regret of each policy, lowest mean first."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"regret after {result.horizon:,} pulls, {result.regret.shape[1]} replications, seed {result.seed}",
        caption=f"95 %: quantile. Choosing arms at random: {uniform_regret(result):,.0f}",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("policy", overflow="fold")
    for name in ("mean", "median", "95 %", "worst", "ns/pull"):
        table.add_column(name, justify="right")
    speed = dict(zip((p.name for p in result.policies), result.seconds, strict=True))
    for row in result.summary().sort("mean").iter_rows(named=True):
        pulls = result.regret.shape[1] * result.horizon
        numbers = [f"{row[c]:,.0f}" for c in ("mean", "median", "q95", "worst")]
        seconds = speed[row["policy"]]
        table.add_row(row["policy"], *numbers, "–" if math.isnan(seconds) else f"{seconds / pulls * 1e9:.0f}")
    return table
