"""Experiments of the decision service whose log is a list, without a store and without an event loop."""

from __future__ import annotations

from typing import Any

from helpers.serving import Clock
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import checked_settings
from robandit.storage import Event, StoredExperiment

DEFAULTS: dict[str, Any] = {
    "arms": ["a", "b", "c"],
    "policy": "UCB1()",
    "minimize": False,
    "seed": 5,
    "reward_window": None,
    "on_expiry": "drop",
    "max_open": None,
    "drawn": 5,
}


class Journal:
    """A log, and the experiment that writes it."""

    def __init__(self, clock: Clock | None = None, **settings: Any) -> None:
        self.clock = clock or Clock()
        self.settings = checked_settings(**(DEFAULTS | settings))
        self.stored = StoredExperiment(1, "test", 0, 0, b"")
        self.events: list[Event] = []
        self.by_id: dict[tuple[str, str], Event] = {}
        self.experiment = self._empty(self._emit)
        self.experiment.create()

    def _empty(self, emit: Any) -> LiveExperiment:
        return LiveExperiment(self.stored, self.settings, clock=self.clock, find=self._find, emit=emit, compile="never")

    def _emit(self, event: Event) -> None:
        assert event.seq == len(self.events) + 1
        assert not self.events or event.time >= self.events[-1].time
        assert (event.kind, event.id) not in self.by_id
        self.events.append(event)
        self.by_id[event.kind, event.id] = event
        self.experiment.forget_recent(event.kind, event.id)

    def _find(self, number: int, kind: str, id: str) -> Event | None:
        assert number == self.stored.number
        return self.by_id.get((kind, id))

    def folded(self, snapshot: bytes | None = None, upto: int | None = None, events: Any = None) -> LiveExperiment:
        """Return a new experiment with the same log: from a snapshot, or from the beginning."""
        experiment = self._empty(_refused)
        if snapshot is not None:
            experiment.restore(snapshot)
        log = self.events if events is None else events
        experiment.apply_all(log[experiment.seq : upto])
        return experiment

    def restart(self, snapshot: bytes | None = None) -> LiveExperiment:
        """Continue with a new experiment, as after the end of a process."""
        experiment = self.folded(snapshot)
        experiment._emit = self._emit
        self.experiment = experiment
        return experiment

    def snapshot(self) -> bytes:
        """Return the state of the experiment."""
        return self.experiment.snapshot().content


def _refused(event: Event) -> None:
    raise AssertionError(f"an applied event was stored again: {event}")
