"""The robust means of a column, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from robandit.cli.terminal.tables import Board
from robandit.wording import compact, counted, percent

if TYPE_CHECKING:
    from robandit.diagnostics.study import Mean


def means_table(name: str, means: Sequence[Mean], used: int, n: int, delta: float) -> Board:
    """Return a table with one row per estimator."""
    title = f"{name}: {counted(n, 'value')}"
    if used < n:
        title += f", {used:,} of them chosen at random"
    columns = {
        "estimator": [row.name for row in means],
        "mean": [compact(row.value, 5) for row in means],
        "low": [_bound(row, row.low) for row in means],
        "high": [_bound(row, row.high) for row in means],
        "note": [row.note for row in means],
    }
    note = f"Each interval alone holds with probability {percent(1.0 - delta)}, if the assumption in its note holds."
    return Board(title, note, columns, words=("estimator", "note"))


def _bound(row: Mean, bound: float) -> str:
    """Format a bound. One-sided intervals have an infinite end, and an estimate without bounds has none."""
    return "" if math.isinf(row.low) and math.isinf(row.high) else compact(bound, 5)
