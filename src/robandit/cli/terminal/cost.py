"""The cost of an experiment, in the terminal."""

from __future__ import annotations

from collections import defaultdict

from robandit.cli.terminal.tables import Board
from robandit.experiments.cost import Cost


def cost_board(cost: Cost) -> Board:
    """Return the table of processor time per policy, with the slowest policy first."""
    seconds, pulls = (defaultdict[str, float](float) for _ in range(2))
    for each in cost.cells:
        seconds[each.cell.label] += each.seconds
        pulls[each.cell.label] += each.pulls
    labels = sorted(seconds, key=lambda label: -seconds[label])
    return Board(
        title="processor time of the units not yet run",
        note="ns/pull: mean processor time per pull over all problems, including the time to draw the reward.",
        columns={
            "policy": labels,
            "ns/pull": [f"{seconds[label] / pulls[label] * 1e9:,.0f}" for label in labels],
            "CPU time": [duration(seconds[label]) for label in labels],
            "share": [f"{100.0 * seconds[label] / cost.seconds:.0f} %" for label in labels],
        },
    )


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    if seconds < 120.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    if seconds < 7200.0:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800.0 else f"{seconds / 86_400:,.1f} days"
