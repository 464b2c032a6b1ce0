"""Write a database with the log of an experiment, without a server. Part of ``make bench-service``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import cycle
from pathlib import Path

import msgspec

from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import checked_settings
from robandit.service.access import made_key
from robandit.storage import Event, open_store
from robandit.storage.base import Change, Create, PutKey, StoredExperiment

NAME = "provider"
ARMS = [f"arm {i}" for i in range(10)]
OPEN = 100  # decisions that wait for their rewards
EVENTS_PER_COMMIT = 10_000


def write_database(
    location: Path | str, rewards: Sequence[float], *, events: int = 1, snapshots: Collection[int] = ()
) -> str:
    """Write a database with an experiment of about this many events, and return an admin key.

    The location is the path of an SQLite file, or the URL of a PostgreSQL database.

    Snapshots are taken after the first commit with at least so many events.
    """
    settings = checked_settings(
        arms=ARMS, policy=None, minimize=True, seed=1, reward_window=None, on_expiry="drop", max_open=None, drawn=0
    )
    encoded = msgspec.json.encode(settings)
    key, stored_key = made_key(["admin"], now=time.time())
    pending: list[Event] = []
    store = open_store(f"sqlite:{location}" if isinstance(location, Path) else location, durability="off")
    try:
        store.commit((), (Create(1, NAME, encoded), PutKey(stored_key)))
        stored = StoredExperiment(1, NAME, 0, 0, encoded)
        experiment = LiveExperiment(
            stored, settings, clock=time.time, find=lambda *_: None, emit=pending.append, compile="now"
        )
        experiment.create()
        play = _player(experiment, rewards)
        due = sorted(snapshots)
        while True:
            while experiment.seq < events and len(pending) < EVENTS_PER_COMMIT:
                play()
            changes: list[Change] = []
            if due and experiment.seq >= due[0]:
                changes.append(experiment.snapshot())
                del due[0]
            store.commit(pending, changes)
            pending.clear()
            experiment.recent.clear()
            if experiment.seq >= events:
                return key
    finally:
        store.close()


def _player(experiment: LiveExperiment, rewards: Sequence[float]) -> Callable[[], None]:
    """Return a function that makes a decision, and sends the reward of an earlier one."""
    waiting: deque[str] = deque()
    values = cycle(rewards)

    def play() -> None:
        waiting.append(experiment.decide().event.id)
        if len(waiting) > OPEN:
            experiment.reward(waiting.popleft(), next(values))

    return play
