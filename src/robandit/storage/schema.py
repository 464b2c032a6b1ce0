"""The schema of the SQLite store, as a list of steps: step n brings a database from version n - 1 to version n.

A released step is never changed, only followed by another one. ``PRAGMA user_version`` holds the version.
"""

from __future__ import annotations

APPLICATION = 0x526F6264  # "Robd", in the header of the file
INCOMPLETE = 0x526F6263  # "Robc", in a copy that is not complete

STEPS = (
    """
    CREATE TABLE experiment(
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL, epoch INTEGER NOT NULL,
        settings TEXT NOT NULL
    ) STRICT;
    CREATE TABLE removed(number INTEGER PRIMARY KEY, done INTEGER NOT NULL) STRICT;
    CREATE TABLE event(
        experiment INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, payload TEXT NOT NULL,
        time REAL NOT NULL, PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX event_id ON event(experiment, kind, id);
    CREATE TABLE snapshot(
        experiment INTEGER NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (experiment, seq)
    ) STRICT;
    CREATE TABLE key(
        id TEXT PRIMARY KEY, hash BLOB NOT NULL, scopes TEXT NOT NULL, experiments TEXT, note TEXT NOT NULL,
        created REAL NOT NULL, expires REAL, revoked REAL
    ) STRICT;
    CREATE TABLE audit(
        seq INTEGER PRIMARY KEY, time REAL NOT NULL, key TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE session(hash BLOB PRIMARY KEY, key TEXT NOT NULL, ends REAL NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE base(experiment INTEGER PRIMARY KEY, seq INTEGER NOT NULL, content BLOB NOT NULL) STRICT;
    """,
)
VERSION = len(STEPS)
