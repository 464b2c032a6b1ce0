"""The events and the audit log of a store, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

from robandit.errors import CorruptFile
from robandit.storage.base import AuditEntry, Event, Reader

EVENTS = 20_000
BYTES = 8 << 20  # of payloads
READ = 1_000  # events that are read at once: at most 64 MB of contexts


def audit_chunks(reader: Reader) -> Iterator[list[AuditEntry]]:
    """Yield all entries of the audit log."""
    after = 0
    while entries := reader.audit(after):
        yield entries
        after = entries[-1].seq


def chunks(reader: Reader, experiment: int, after: int, last: int) -> Iterator[list[Event]]:
    """Yield the events after one number and up to another. Raise `CorruptFile` if one is missing."""
    chunk: list[Event] = []
    size = 0
    while after < last:
        events = reader.events(experiment, after, min(READ, last - after))
        if not events or events[0].seq != after + 1:
            raise CorruptFile(f"event {after + 1} of experiment {experiment} is missing: restore a backup")
        chunk += events
        size += sum(len(event.payload) for event in events)
        after = events[-1].seq
        if len(chunk) >= EVENTS or size >= BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
