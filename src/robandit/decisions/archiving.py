"""Moves old events of a store to Parquet files. The state after them stays in their place, so that nothing else changes.

For each experiment:

1. The events are written to a new file, which gets its name when it is complete and on the disk.
2. The file is read back, and compared with the log.
3. The state after the last of these events becomes the base of the experiment, in one commit.
4. The events are removed from the log, in steps.

A process may end between any two steps. Then the next call goes on: a file whose events are still in the log is compared and used,
and events that have a base in their place are removed. Servers that share the store need not stop: the state in their memory is the
same.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from robandit.decisions.base import LONG_TAIL
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.restoring import empty, state_before
from robandit.errors import CorruptFile, NotFound, StoreError, formatted
from robandit.files import flush, reason, shown
from robandit.live.engine import Compile
from robandit.locks import locked
from robandit.storage import Event, Reader, Store, StoredExperiment
from robandit.storage.base import Archive, Audit, SharedStore
from robandit.storage.chunks import audit_chunks, chunks
from robandit.wording import visible

ROWS = 5_000  # of a row group, which is the part of a file that is read at once
PARTIAL = ".robandit-archive"  # the folder of what is not complete
LOCK = ".robandit-archive.lock"
COLUMNS = Event._fields
ACTION = "archive"  # in the audit log
Tell = Callable[[int, int], object]


class ArchiveFile(NamedTuple):
    """A file with events of one experiment, from the first to the last."""

    path: Path
    first: int
    last: int


def now(store: Store) -> float:
    """Return the time by which events are old: that of the database, if servers share it."""
    return store.pulse().time if isinstance(store, SharedStore) else time.time()


def archive(
    store: Store, folder: Path, before: float, name: str | None = None, tell: Tell = lambda done, total: None
) -> Iterator[tuple[StoredExperiment, ArchiveFile]]:
    """Move the events before a time to files. Yield each file when the log no longer needs its events.

    ``tell`` is called with the number of events that are done, and of all.
    """
    with _exclusive(folder):
        with closing(store.reader()) as reader:
            due = [(each, reader.first_since(each.number, before, each.head) - 1) for each in _chosen(reader, name)]
            total = sum(max(0, last - reader.archived(each.number)) for each, last in due)
            done = 0
            for stored, last in due:
                for file in _files(reader, stored, folder, last):
                    _check(reader, stored, file)
                    _store_base(store, reader, stored, file)
                    yield stored, file
                    done += file.last - file.first + 1
                    tell(done, total)
        while store.tidy():
            pass


def _chosen(reader: Reader, name: str | None) -> list[StoredExperiment]:
    found = [each for each in reader.experiments() if name in (None, each.name)]
    if name is not None and not found:
        raise NotFound(f"there is no experiment {formatted(name)}: name one that the store has")
    return found


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Make the folder, and use it alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK, wait=False) as mine:
            if not mine:
                raise StoreError(f"{shown(folder)} is used by another robandit archive: wait for its end")
            _remove_partial(folder)
            try:
                yield
            finally:
                _remove_partial(folder)
    except OSError as error:
        raise StoreError(f"{shown(folder)} cannot be written: {reason(error)}; name another folder") from error


def _remove_partial(folder: Path) -> None:
    if (folder / PARTIAL).exists():
        shutil.rmtree(folder / PARTIAL)


# --- files --------------------------------------------------------------------------------------------------------------


def _present(folder: Path, stored: StoredExperiment) -> list[ArchiveFile]:
    """Return the files of an experiment in a folder, in the order of their events."""
    pattern = re.compile(rf"{re.escape(stored.name)}\.{stored.number}\.(\d+)-(\d+)\.parquet")
    matches = ((path, pattern.fullmatch(path.name)) for path in folder.iterdir())
    files = [ArchiveFile(path, int(match[1]), int(match[2])) for path, match in matches if match]
    return sorted(files, key=lambda file: (file.first, file.last))


def _files(reader: Reader, stored: StoredExperiment, folder: Path, last: int) -> Iterator[ArchiveFile]:
    """Yield files with all events from the base up to ``last``: those that an interrupted call has left, and a new one."""
    while (first := reader.archived(stored.number) + 1) <= last:
        left = next((file for file in _present(folder, stored) if file.first == first), None)
        if left is not None and left.last > last:
            raise StoreError(
                f"{shown(left.path)} is of an archive with fewer --days that was interrupted: repeat that one, or remove the file"
            )
        if left is None:
            left = ArchiveFile(folder / f"{stored.name}.{stored.number}.{first}-{last}.parquet", first, last)
            _write(reader, stored, left)
        yield left


def _write(reader: Reader, stored: StoredExperiment, file: ArchiveFile) -> None:
    """Write a file in parts, so that the memory is bounded, and join them."""
    import polars as pl

    private = file.path.parent / PARTIAL
    private.mkdir(mode=0o700)  # it holds contexts and rewards
    parts: list[Path] = []
    for events in chunks(reader, stored.number, file.first - 1, file.last):
        parts.append(private / f"{len(parts)}.parquet")
        _frame(events).write_parquet(parts[-1])
    whole = private / "whole.parquet"
    pl.scan_parquet(parts).sink_parquet(whole, row_group_size=ROWS)
    whole.chmod(0o600)
    flush(whole)
    whole.rename(file.path)
    flush(file.path.parent)
    _remove_partial(file.path.parent)


def _frame(events: Sequence[Event]) -> Any:
    import polars as pl

    kinds = (pl.Int64, pl.Int64, pl.String, pl.String, pl.String, pl.Float64)
    rows = [event._replace(payload=event.payload.decode()) for event in events]  # type: ignore[arg-type]
    return pl.DataFrame(rows, schema=dict(zip(COLUMNS, kinds, strict=True)), orient="row")


def events_in(path: Path) -> Iterator[list[Event]]:
    """Yield the events of a file, some at a time."""
    import polars as pl

    try:
        rows = pl.scan_parquet(path)
        for start in range(0, rows.select(pl.len()).collect().item(), ROWS):
            part = rows.slice(start, ROWS).select(COLUMNS).collect().rows()
            yield [Event(number, seq, kind, id, text.encode(), at) for number, seq, kind, id, text, at in part]
    except (pl.exceptions.PolarsError, OSError, AttributeError) as error:
        raise CorruptFile(f"{shown(path)} is damaged, or not an archive: {visible(str(error))[:120]}") from error


def _check(reader: Reader, stored: StoredExperiment, file: ArchiveFile) -> None:
    """Raise `CorruptFile` unless a file has exactly the events of the log."""
    after = file.first - 1
    for events in events_in(file.path):
        if not events or events != reader.events(stored.number, after, len(events)):
            break
        after = events[-1].seq
    else:
        if after == file.last:
            return
    raise CorruptFile(
        f"{shown(file.path)} differs from the log after event {after}: move the file away, and archive again"
    )


# --- the base -----------------------------------------------------------------------------------------------------------


def _store_base(store: Store, reader: Reader, stored: StoredExperiment, file: ArchiveFile) -> None:
    state = state_before(reader, stored, file.last + 1, compile=compile_for(file.last - file.first))
    content = state.snapshot().content
    again = empty(stored)
    again.restore(content)
    if again.seq != file.last or again.snapshot().content != content:
        raise StoreError(f"the state of experiment {stored.name!r} cannot be stored exactly: nothing was archived")
    detail = {"file": file.path.name, "first": file.first, "last": file.last, "sha256": _digest(file.path)}
    _commit(store, stored, state, ACTION, detail)
    if reader.archived(stored.number) < file.last:
        raise NotFound(f"experiment {stored.name!r} was removed meanwhile: {shown(file.path)} has its events")


def _commit(store: Store, stored: StoredExperiment, state: LiveExperiment, action: str, detail: dict[str, Any]) -> None:
    entry = Audit(now(store), "(command line)", action, stored.name, msgspec.json.encode(detail))
    store.commit((), [Archive(stored.number, state.seq, state.snapshot().content), entry])


def compile_for(count: int) -> Compile:
    """Return whether compiling is worth its time for folding this many events."""
    return "now" if count > LONG_TAIL else "background"


def restore(store: Store, folder: Path, name: str | None = None) -> Iterator[tuple[StoredExperiment, int]]:
    """Make the bases of experiments again, from all their files. Yield each experiment with the last event in its base."""
    if not folder.is_dir():
        raise StoreError(f"{shown(folder)} is not a folder: name that of the archived files")
    with _exclusive(folder), closing(store.reader()) as reader:
        for stored in _chosen(reader, name):
            last = reader.archived(stored.number)
            if last:
                files = _present(folder, stored)
                _check_digests(reader, stored, files)
                state = _folded(stored, files, last, folder)
                _commit(store, stored, state, "restore archive", {"last": last})
                yield stored, last


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_digests(reader: Reader, stored: StoredExperiment, files: Sequence[ArchiveFile]) -> None:
    """Raise `CorruptFile` unless the files are those of the audit log: a changed one would give another state."""
    known: dict[str, str] = {}
    for entry in chain.from_iterable(audit_chunks(reader)):
        if (entry.action, entry.subject) == (ACTION, stored.name):
            detail = msgspec.json.decode(entry.detail)
            known[detail["file"]] = detail["sha256"]
    for file in files:
        if known.get(file.path.name) != _digest(file.path):
            raise CorruptFile(
                f"{shown(file.path)} is not the file that was archived: its SHA-256 is not that of the audit log; use a copy"
            )


def _folded(stored: StoredExperiment, files: Sequence[ArchiveFile], last: int, folder: Path) -> LiveExperiment:
    """Return the state of an experiment after the events in its files, up to ``last``."""
    state = empty(stored, compile=compile_for(last))
    for file in files:
        for events in events_in(file.path) if file.first <= state.seq + 1 else ():
            state.apply_all(event for event in events if state.seq < event.seq <= last)
    if state.seq < last:
        raise StoreError(
            f"{shown(folder)} lacks events {state.seq + 1} to {last} of experiment {stored.name!r}: put all its files there"
        )
    return state
