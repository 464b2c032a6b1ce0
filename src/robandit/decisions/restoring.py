"""Experiments from their stored form: the newest usable snapshot, then the events after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from robandit.decisions.experiment import LiveExperiment
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
) -> LiveExperiment:
    """Return an experiment at the beginning of its log."""
    settings = msgspec.json.decode(stored.settings, type=Settings)
    return LiveExperiment(stored, settings, clock=clock, find=find, emit=emit, compile=compile)


def restored(snapshots: Sequence[tuple[int, bytes]], last: int, make: Callable[[], LiveExperiment]) -> LiveExperiment:
    """Return an experiment that continues from the newest usable snapshot up to event ``last``, or from the beginning.

    If events are archived, the last snapshot is the base, see `robandit.storage.base.Archive`.
    """
    for seq, content in snapshots:
        if seq <= last:
            experiment = make()
            try:
                experiment.restore(content)
            except (RobanditError, msgspec.MsgspecError):  # the log has it all, if nothing is archived
                continue
            return experiment
    return make()


def fold(reader: Reader, experiment: LiveExperiment, last: int) -> Iterator[None]:
    """Apply the events up to ``last``. Yields between portions of some milliseconds."""
    while experiment.seq < last:
        events = reader.events(experiment.number, experiment.seq, min(EVENTS_AT_ONCE, last - experiment.seq))
        if not events or events[0].seq != experiment.seq + 1:
            raise missing(experiment, reader.archived(experiment.number))
        yield from experiment.applying(events)
        yield


def state_before(
    reader: Reader, stored: StoredExperiment, seq: int, *, compile: Compile = "background"
) -> LiveExperiment:
    """Return the experiment as it was right before an event.

    Storing all estimates with every decision would cost a hundred times as much as the decision. So the log is folded again, from
    the newest snapshot before the event. This takes about 10 us per event: at most half a second after the last snapshot but one,
    and 10 seconds per million events from the beginning of the log. If events are archived meanwhile, it begins again.
    """
    while True:
        archived = reader.archived(stored.number)
        experiment = restored(reader.snapshots(stored.number), seq - 1, lambda: empty(stored, compile=compile))
        try:
            for _ in fold(reader, experiment, seq - 1):
                pass
            return experiment
        except CorruptFile:
            if reader.archived(stored.number) == archived:
                raise


def missing(experiment: LiveExperiment, archived: int) -> CorruptFile:
    """Return the error that the event after the state of an experiment is not in the log."""
    first, name = experiment.seq + 1, experiment.name
    if first > archived:
        return CorruptFile(f"event {first} of experiment {name!r} is missing: restore a backup")
    files = f"{name}.{experiment.number}.*.parquet"
    return CorruptFile(
        f"the state of experiment {name!r} after event {archived} cannot be read, and the events before it are archived: "
        f"make it again with robandit archive FOLDER --restore, from the files {files}, or restore a backup"
    )
