"""Counts the calls about experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robandit.service.metrics import Calls

if TYPE_CHECKING:
    from robandit.service.state import State


async def received(state: State, name: str, kind: str, count: int) -> Calls:
    """Return the counters of an experiment, and count what was received."""
    try:
        await state.engine.present(name)
    except BaseException:
        state.metrics.unknown.received[kind] += count
        state.metrics.unknown.outcomes[kind, "rejected"] += count
        raise
    calls = state.metrics.calls[name]
    calls.received[kind] += count
    return calls
