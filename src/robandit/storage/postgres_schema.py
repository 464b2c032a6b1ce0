"""The schema of the PostgreSQL store, as a list of steps: step n brings a database from version n - 1 to version n.

A released step is never changed, only followed by another one. All tables are in the schema ``robandit``. The table ``store`` has
one row, with the version, and whether the store is complete: a copy is not, until it is checked. Whoever changes experiments, keys
or sessions, or writes to the audit log, locks this row.

Events are partitioned by their experiment, so that an index and a vacuum concern a part of them. (Partitions by time could not keep
ids unique.) The row of an experiment changes with every commit: free space in its pages lets PostgreSQL reuse the old versions.
"""

from __future__ import annotations

PARTITIONS = 8
TABLES = ("store", "experiment", "removed", "event", "snapshot", "base", "key", "session", "audit")

STEPS = (
    """
    CREATE TABLE store(
        version integer NOT NULL, catalogue bigint NOT NULL, audits bigint NOT NULL, complete boolean NOT NULL
    );
    INSERT INTO store VALUES (0, 0, 0, true);
    CREATE TABLE experiment(
        number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, head bigint NOT NULL, epoch bigint NOT NULL,
        settings text NOT NULL
    ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
    CREATE TABLE removed(number bigint PRIMARY KEY, done boolean NOT NULL);
    CREATE TABLE event(
        experiment bigint NOT NULL, seq bigint NOT NULL, kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
        payload text NOT NULL, time double precision NOT NULL,
        PRIMARY KEY (experiment, seq), UNIQUE (experiment, id, kind)
    ) PARTITION BY HASH (experiment);
    CREATE TABLE snapshot(
        experiment bigint NOT NULL, seq bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (experiment, seq)
    );
    CREATE TABLE base(experiment bigint PRIMARY KEY, seq bigint NOT NULL, content bytea NOT NULL);
    CREATE TABLE key(
        id text COLLATE "C" PRIMARY KEY, hash bytea NOT NULL, scopes text NOT NULL, experiments text, note text NOT NULL,
        created double precision NOT NULL, expires double precision, revoked double precision
    );
    CREATE TABLE session(hash bytea PRIMARY KEY, key text NOT NULL, ends double precision NOT NULL);
    CREATE TABLE audit(
        seq bigint PRIMARY KEY, time double precision NOT NULL, key text NOT NULL, action text NOT NULL,
        subject text NOT NULL, detail text NOT NULL
    );
    """
    + "".join(
        f"CREATE TABLE event_{part} PARTITION OF event FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part});"
        for part in range(PARTITIONS)
    ),
)
VERSION = len(STEPS)
