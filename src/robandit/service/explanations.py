"""Explains decisions: what was known when each was made, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec

from robandit.decisions import events
from robandit.decisions.base import BaseEngine
from robandit.decisions.experiment import ID, LiveExperiment, MadeEvent
from robandit.decisions.restoring import state_before
from robandit.errors import CorruptFile, NotFound, Overloaded, formatted
from robandit.service import bodies
from robandit.service.answers import decision_of, estimates_of, reward_of
from robandit.storage import Reader, StoredExperiment

MOST_WAITING = 16


class Explanations:
    """Explains one decision at a time, in another thread."""

    def __init__(self, engine: BaseEngine) -> None:
        self._engine = engine
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def explain(self, name: str, id: str) -> bodies.Explanation:
        """Return a decision of an experiment with its reasons and its reward."""
        if self._waiting >= MOST_WAITING:
            raise Overloaded(f"{self._waiting} explanations are waiting: try again in a second")
        self._waiting += 1
        experiment = None
        try:
            # Whether it is open is asked first: its end may come meanwhile, and is then found.
            experiment, is_open = await self._engine.read(name, lambda seen: (seen, seen.is_open(id)))
            async with self._turn:
                found, archived = await asyncio.to_thread(
                    self._engine.store.read,
                    lambda reader: (_explanation(reader, experiment, id, is_open), reader.archived(experiment.number)),
                )
        except CorruptFile:
            if self._engine.experiments.get(name) is not experiment:
                raise NotFound(f"experiment {name!r} was removed meanwhile", code="unknown-experiment") from None
            raise
        finally:
            self._waiting -= 1
        if found is None:
            known = f"; its events up to {archived} are archived" if archived else ""
            absent = f"decision {formatted(id)} is not known in experiment {name!r}{known}"
            raise NotFound(absent, code="unknown-decision")
        return found


def _explanation(reader: Reader, experiment: LiveExperiment, id: str, is_open: bool) -> bodies.Explanation | None:
    """Return what the log tells of a decision, and None if it does not have it."""

    def found(kind: type[Any]) -> MadeEvent | None:
        event = reader.find(experiment.number, events.KINDS[kind], id)
        return None if event is None else MadeEvent(event, events.payload_of(event))

    made = found(events.Decided) if ID.fullmatch(id) else None
    if made is None:
        return None
    stored = StoredExperiment(experiment.number, experiment.name, 0, 0, msgspec.json.encode(experiment.settings))
    try:
        then = state_before(reader, stored, made.event.seq)
    except CorruptFile:
        if reader.archived(stored.number) < made.event.seq:
            raise
        return None  # archived, and about to be removed from the log
    then.time = made.event.time  # by which open decisions have their ages
    rewarded, late, expired = found(events.Rewarded), found(events.Late), found(events.Expired)
    status: Literal["open", "rewarded", "expired", "reset"] = "open" if is_open else "reset"
    if rewarded is not None or (late is not None and late.payload.reason == "assignment"):
        status = "rewarded"
    elif expired is not None:
        status = "expired"
    payload, reward = made.payload, rewarded or late
    features, arms = estimates_of(then, payload.context)
    return bodies.Explanation(
        **msgspec.structs.asdict(decision_of(experiment.name, made)),
        observed=payload.given,
        unit=payload.unit,
        among=None if payload.among is None else list(payload.among),
        context=events.decoded(payload.context),
        features=features,
        policy=repr(experiment.bandit.policy),
        version=then.version,
        arms=arms,
        status=status,
        reward=None if reward is None else reward_of(experiment.name, reward),
        expired=None if expired is None else expired.event.time,
    )
