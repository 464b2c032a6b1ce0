"""Copies a store into a new one of the same or another kind, and compares both before anybody can use the copy.

A copy goes through the contract of a store (`robandit.storage.base`), so it does not depend on the kinds. Sessions of the dashboard
are not copied: people log in again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

from robandit.decisions.archiving import compile_for
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.restoring import empty, restored, state_before
from robandit.errors import StoreError
from robandit.storage import Reader, Store, StoredExperiment
from robandit.storage.base import Archive, Audit, Change, Create, NewEpoch, PutKey, Remove, Snapshot
from robandit.storage.chunks import audit_chunks, chunks


class Moved(NamedTuple):
    """What was copied, in numbers."""

    experiments: int
    events: int
    keys: int
    entries: int
    """Of the audit log."""


def move(source: Store, make_target: Callable[[], Store], tell: Callable[[int, int], object]) -> Moved:
    """Copy a store into one that is opened as new, compare both, and publish the copy.

    ``tell`` is called with the number of events that are done, and of all: each is copied, then compared.
    """
    with source.frozen() as reader, closing(make_target()) as target:
        progress = _Progress(reader, tell)
        for stored in reader.experiments():
            _copy(reader, stored, target, progress)
        _copy_rest(reader, source.next_number() - 1, target)
        with closing(target.reader()) as copy:
            moved = _compared(reader, copy, progress)
            _same("the number of the next experiment", source.next_number(), target.next_number())
        target.publish()
    return moved


class _Progress:
    def __init__(self, reader: Reader, tell: Callable[[int, int], object]) -> None:
        self.events = sum(each.head - reader.archived(each.number) for each in reader.experiments())
        self._done = 0
        self._tell = tell

    def add(self, events: int) -> None:
        self._done += events
        self._tell(self._done, 2 * self.events)


def _copy(reader: Reader, stored: StoredExperiment, target: Store, progress: _Progress) -> None:
    number = stored.number
    archived, snapshots = reader.archived(number), reader.snapshots(number)
    begin: list[Change] = [Create(number, stored.name, stored.settings)]
    if archived:
        begin.append(Archive(number, *snapshots.pop()))
    target.commit((), begin)
    for events in chunks(reader, number, archived, stored.head):
        target.commit(events, ())
        progress.add(len(events))
    kept = [Snapshot(number, *each) for each in reversed(snapshots)]
    target.commit((), [NewEpoch(number, stored.epoch), *kept])


def _copy_rest(reader: Reader, last: int, target: Store) -> None:
    """Copy what belongs to no experiment. ``last`` is the last number of an experiment that was ever used."""
    if last not in {0, *(each.number for each in reader.experiments())}:
        target.commit((), [Create(last, "", b"{}"), Remove(last)])  # so that it is not used again
    target.commit((), list(map(PutKey, reader.keys())))
    for entries in audit_chunks(reader):
        target.commit((), [Audit(*entry[1:]) for entry in entries])


# --- comparing ----------------------------------------------------------------------------------------------------------


def _compared(source: Reader, copy: Reader, progress: _Progress) -> Moved:
    """Compare all of both stores, and count it. Raise `StoreError` if something differs."""
    _same("the experiments", source.experiments(), copy.experiments())
    for stored in source.experiments():
        _compare(source, copy, stored, progress)
    _same("the keys", source.keys(), copy.keys())
    entries = 0
    for mine, theirs in _pairs(audit_chunks(source), audit_chunks(copy)):
        _same("the audit log", mine, theirs)
        entries += len(mine)
    return Moved(len(source.experiments()), progress.events, len(source.keys()), entries)


def _compare(source: Reader, copy: Reader, stored: StoredExperiment, progress: _Progress) -> None:
    """Compare the events of an experiment, and the states that they lead to: from the beginning, and from the newest snapshot."""
    number, name = stored.number, repr(stored.name)
    archived = source.archived(number)
    _same(f"the archived events of {name}", archived, copy.archived(number))
    _same(f"the snapshots of {name}", source.snapshots(number), copy.snapshots(number))
    mine, theirs = _start(source, stored, archived), _start(copy, stored, archived)
    logs = (chunks(reader, number, archived, stored.head) for reader in (source, copy))
    for events, copied in _pairs(*logs):
        _same(f"the events of {name} after event {mine.seq}", events, copied)
        mine.apply_all(events)
        theirs.apply_all(copied)
        progress.add(len(events))
    _same(f"the state of {name}", mine.snapshot().content, theirs.snapshot().content)
    compile = compile_for(stored.head - archived)
    newest = (state_before(reader, stored, stored.head + 1, compile=compile) for reader in (source, copy))
    _same(f"the state of {name} from its snapshot", *(state.snapshot().content for state in newest))


def _start(reader: Reader, stored: StoredExperiment, archived: int) -> LiveExperiment:
    """Return an experiment at the beginning of what is left of its log."""
    base = reader.snapshots(stored.number)[-1:] if archived else []
    return restored(base, archived, lambda: empty(stored, compile=compile_for(stored.head - archived)))


def _pairs(left: Iterable[list[Any]], right: Iterable[list[Any]]) -> Iterator[tuple[list[Any], list[Any]]]:
    try:
        yield from zip(left, right, strict=True)
    except ValueError as error:
        raise StoreError("the copy has another length than the source: remove it, and migrate again") from error


def _same(what: str, source: object, copy: object) -> None:
    if source != copy:
        raise StoreError(f"{what} differ in the copy, which is not used: remove it, and migrate again")
