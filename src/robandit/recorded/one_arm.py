"""A table read as the rewards of one arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robandit.recorded.reader import Reader

if TYPE_CHECKING:
    import polars as pl

# Rows without a reward that are looked up in the file in each batch, because blank lines are not bad rows.
BLANKS = 1_000


class OneArm(Reader):
    """A reader whose rows all have the same arm."""

    def __init__(self, inner: Reader, arm: str) -> None:
        """Wrap a reader. Its column of rewards takes the place of the column of arms."""
        self._inner = inner
        self._arm = arm
        self.source, self.columns, self.repeated = inner.source, inner.columns, inner.repeated
        self.rows, self.unit = inner.rows, inner.unit

    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """See `Reader`."""
        import polars as pl

        done = 0
        for frame in self._inner.batches({**roles, "arm": roles["reward"]}):
            missing = np.flatnonzero(frame["arm"].is_null().to_numpy())[:BLANKS]
            lines = self._inner.locate((missing + done).tolist()) if missing.size else {}
            arms = np.full(frame.height, self._arm, dtype=object)
            arms[[row - done for row, (_, blank) in lines.items() if blank]] = None
            yield frame.with_columns(pl.Series("arm", arms, dtype=pl.String))
            done += frame.height

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """See `Reader`."""
        return self._inner.locate(rows)

    def first_rows(self) -> pl.DataFrame:
        """See `Reader`."""
        return self._inner.first_rows()
