"""The cost of an experiment, in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from robandit.cli.terminal.tables import Board
from robandit.experiments.cost import Cost
from robandit.experiments.plan import Plan
from robandit.wording import counted


def cost_board(cost: Cost) -> Board:
    """Return the table of processor time per policy, with the slowest policy first."""
    seconds, pulls, loops = (defaultdict[str, float](float) for _ in range(3))
    for each in cost.cells:
        label = each.cell.label
        seconds[label] += each.seconds + each.units * cost.overhead
        pulls[label] += each.pulls
        loops[label] += each.pulls * each.ns_per_pull
    total = max(sum(seconds.values()), 1e-300)
    labels = sorted((label for label in seconds if pulls[label]), key=lambda label: -seconds[label])
    return Board(
        title="processor time of the units not yet run",
        note="ns/pull: mean processor time per pull over all problems, including the time to draw the reward.",
        columns={
            "policy": labels,
            "ns/pull": [f"{loops[label] / pulls[label]:,.0f}" for label in labels],
            "CPU time": [duration(seconds[label]) for label in labels],
            "share": [f"{100.0 * seconds[label] / total:.0f} %" for label in labels],
        },
    )


def time_board(cost: Cost, workers: Sequence[int], here: int) -> Board:
    """Return the table of elapsed time per number of workers; ``here`` is the number of cores of this machine."""
    one = cost.time_on(1)
    times = {n: cost.time_on(n) for n in workers}
    return Board(
        title="elapsed time, on idle workers as fast as a core of this machine",
        note="Other programs on these cores make it longer: on a busy machine it can be three times as long. The start of workers "
        "is not included. Busy: the share of the elapsed time in which workers compute.",
        columns={
            "workers": [f"{n:,}{' (here)' if n == here else ''}" for n in workers],
            "time": [duration(times[n]) for n in workers],
            "speed-up": [f"{one / times[n]:,.3g} x" if times[n] else "–" for n in workers],
            "busy": [f"{100.0 * cost.work / (n * times[n]):.0f} %" if times[n] else "–" for n in workers],
            "limited by": [cost.limit(n) or "–" for n in workers],
        },
        words=(),
    )


def cost_lines(cost: Cost, plan: Plan) -> list[str]:
    """Return lines about the work left: units, pulls, processor time, disk space, and the longest unit."""
    left = f"{counted(cost.units, 'unit')} of work left, {cost.done:,} done"
    if not cost.units:
        return [left]
    lines = [
        f"{left}; {cost.pulls:,} pulls",
        f"processor time: {duration(cost.cpu_hours * 3600.0)} ({cost.cpu_hours:.3g} CPU-hours)",
        f"disk space: about {_size(cost.bytes)} (within a factor of 3)",
    ]
    seconds, cell = cost.longest
    if cell is not None:
        lines.append(f"longest unit: {duration(seconds)}, {cell.label} on {plan.called(cell.played)}")
    return lines


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    if seconds < 120.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    if seconds < 7200.0:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800.0 else f"{seconds / 86_400:,.1f} days"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 1000.0
    return f"{size:.3g} TB"
