"""A store around a real one, that remembers, fails or waits when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robandit.errors import StoreError
from robandit.storage import open_store
from robandit.storage.base import Change, Event


class WrappedStore:
    """Passes everything on to a store of SQLite."""

    def __init__(self, path: Path) -> None:
        self._store = open_store(f"sqlite:{path}", durability="off")
        self.commits: list[tuple[list[Event], list[Change]]] = []
        """What was stored together."""
        self.broken = False
        """Whether the next commit fails."""
        self.tries = 0
        """The number of commits that were tried."""
        self.gate = threading.Event()
        """Commits wait while it is not set."""
        self.gate.set()

    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        self.tries += 1
        assert self.gate.wait(60)
        if self.broken:
            raise StoreError("the disk is full")
        self._store.commit(events, changes)
        self.commits.append((list(events), list(changes)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
