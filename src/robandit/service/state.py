"""What the handlers share: the engine, the keys, the counters, and the work that is done in other threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from robandit.decisions.engine import Engine
from robandit.service.access import Keys, Rates
from robandit.service.explanations import Explanations
from robandit.service.metrics import Metrics
from robandit.service.studies import Studies


class State:
    """The state of a server that is running."""

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        *,
        rate: float | None,
        wall: Callable[[], float],
        tick: Callable[[], float],
    ) -> None:
        """Read the keys."""
        self.wall = wall
        """The machine's clock, for keys. Events have the steady one of the engine."""
        self.engine = engine
        self.metrics = metrics
        self.keys = Keys(engine.reader.keys())
        self.rates = Rates(rate, tick)
        self.batches = asyncio.Lock()
        """One batch at a time: other calls have a turn between two batches."""
        self.streams = 0
        """The number of logs that are being read."""
        self.studies = Studies()
        self.explanations = Explanations(engine)
