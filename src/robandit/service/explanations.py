"""Explains decisions: what was known when each was made, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec

from robandit.decisions import events
from robandit.decisions.engine import Engine
from robandit.decisions.experiment import Experiment, Recorded
from robandit.decisions.restoring import state_before
from robandit.errors import CorruptFile, NotFound, Overloaded, formatted
from robandit.service import bodies
from robandit.service.answers import arm_estimates, decision_of, reward_of
from robandit.storage import Store, StoredExperiment

MOST_WAITING = 16


class Explanations:
    """Explains one decision at a time, in another thread."""

    def __init__(self, engine: Engine) -> None:
        """Wait for the first question."""
        self._engine = engine
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def explain(self, experiment: Experiment, id: str) -> bodies.Explanation:
        """Return a decision with its reasons and its reward."""
        made = experiment.recorded(events.Decided, id)
        if made is None:
            raise NotFound(f"decision {formatted(id)} is not known in experiment {experiment.name!r}")
        if self._waiting >= MOST_WAITING:
            raise Overloaded(f"{self._waiting} explanations are waiting: try again in a second")
        await self._engine.settled()  # the events before it are then stored as well
        self._waiting += 1
        try:
            async with self._turn:
                settings = msgspec.json.encode(experiment.settings)
                stored = StoredExperiment(experiment.number, experiment.name, 0, 0, settings)
                version, arms = await asyncio.to_thread(_arms_before, self._engine.store, stored, made.event.seq)
        except CorruptFile:
            if self._engine.experiments.get(experiment.name) is not experiment:
                raise NotFound(f"experiment {experiment.name!r} was removed meanwhile") from None
            raise
        finally:
            self._waiting -= 1
        explanation = _explanation(experiment, made, version, arms)
        await self._engine.settled()  # its reward may have come meanwhile
        return explanation


def _arms_before(store: Store, stored: StoredExperiment, seq: int) -> tuple[str, list[bodies.ArmEstimates]]:
    reader = store.reader()
    try:
        then = state_before(reader, stored, seq)
        return then.version, arm_estimates(then.bandit.estimates(), None)
    finally:
        reader.close()


def _explanation(experiment: Experiment, made: Recorded, version: str, arms: Any) -> bodies.Explanation:
    event, payload = made.event, made.payload
    rewarded, late, expired = (
        experiment.recorded(kind, event.id) for kind in (events.Rewarded, events.Late, events.Expired)
    )
    status: Literal["open", "rewarded", "expired", "reset"] = "reset"
    if rewarded is not None:
        status = "rewarded"
    elif expired is not None:
        status = "expired"
    elif experiment.is_open(event.id):
        status = "open"
    reward = rewarded or late
    return bodies.Explanation(
        **msgspec.structs.asdict(decision_of(experiment, made)),
        observed=payload.given,
        among=None if payload.among is None else list(payload.among),
        context=events.decoded(payload.context),
        policy=repr(experiment.bandit.policy),
        version=version,
        arms=arms,
        status=status,
        reward=None if reward is None else reward_of(experiment, reward),
        expired=None if expired is None else expired.event.time,
    )
