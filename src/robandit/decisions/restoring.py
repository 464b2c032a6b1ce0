"""Experiments from their stored form: the newest usable snapshot, then the events after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from robandit.decisions.experiment import Experiment
from robandit.decisions.settings import Settings
from robandit.errors import CorruptFile, RobanditError
from robandit.live.engine import Compile
from robandit.storage import Event, Reader, StoredExperiment

EVENTS_AT_ONCE = 1_000


def _nothing(*_: Any) -> None:
    """Stand in for the functions of an experiment that only looks back."""


def empty(
    stored: StoredExperiment,
    *,
    clock: Callable[[], float] = lambda: 0.0,
    find: Callable[[int, str, str], Event | None] = _nothing,
    emit: Callable[[Event], object] = _nothing,
    compile: Compile = "background",
) -> Experiment:
    """Return an experiment at the beginning of its log."""
    settings = msgspec.json.decode(stored.settings, type=Settings)
    return Experiment(stored, settings, clock=clock, find=find, emit=emit, compile=compile)


def restored(snapshots: Sequence[tuple[int, bytes]], last: int, make: Callable[[], Experiment]) -> Experiment:
    """Return an experiment that continues from the newest usable snapshot up to event ``last``, or from the beginning."""
    for seq, content in snapshots:
        if seq <= last:
            experiment = make()
            try:
                experiment.restore(content)
            except (RobanditError, msgspec.MsgspecError):  # the log has it all
                continue
            return experiment
    return make()


def fold(reader: Reader, experiment: Experiment, last: int) -> Iterator[None]:
    """Apply the events up to ``last``. Yields between portions of some milliseconds."""
    while experiment.seq < last:
        events = reader.events(experiment.number, experiment.seq, min(EVENTS_AT_ONCE, last - experiment.seq))
        if not events:
            raise CorruptFile(
                f"event {experiment.seq + 1} of experiment {experiment.name!r} is missing: restore a backup"
            )
        experiment.apply_all(events)
        yield


def state_before(reader: Reader, stored: StoredExperiment, seq: int) -> Experiment:
    """Return the experiment as it was right before an event.

    Storing all estimates with every decision would cost a hundred times as much as the decision. So the log is folded again, from
    the newest snapshot before the event. This takes about 10 us per event: at most half a second after the last snapshot but one,
    and 10 seconds per million events from the beginning of the log.
    """
    experiment = restored(reader.snapshots(stored.number), seq - 1, lambda: empty(stored))
    for _ in fold(reader, experiment, seq - 1):
        pass
    return experiment
