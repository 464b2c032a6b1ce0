"""Stores of the decision service: an append-only log of events, with snapshots, keys and an audit log."""

from __future__ import annotations

from robandit.storage.base import AuditEntry, Event, Reader, Store, StoredExperiment, StoredKey
from robandit.storage.locations import open_store

__all__ = ["AuditEntry", "Event", "Reader", "Store", "StoredExperiment", "StoredKey", "open_store"]
