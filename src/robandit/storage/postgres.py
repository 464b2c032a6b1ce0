"""A store in a PostgreSQL database, to which any number of servers write.

The row of an experiment is its lock: whoever appends to a log holds it (``SELECT ... FOR UPDATE``) from before it reads the newest
events until its commit. So there are no leases to expire and no leader to find, and a server that was paused in the middle finds
out at its commit.

A turn takes two round trips, each of them one text with several statements. PostgreSQL begins with such a text when it has all of
it, so a client that stops in the middle is idle in its transaction, and loses it after a while. (In pipeline mode, it would keep
its lock for as long as it is stopped: psycopg ends a pipeline with a flush, which switches PostgreSQL's clock of idle clients off.)

If the connection is lost in a commit, PostgreSQL may have stored the events or not. Then the row is locked again, which waits until
the lost transaction has ended either way, and the events are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg

from robandit.errors import CorruptFile, StoreError, StoreUnavailable
from robandit.files import check_format
from robandit.storage.base import (
    MOST_TAIL,
    Asked,
    Audit,
    Change,
    Create,
    EndSession,
    Event,
    Found,
    Pulse,
    PutKey,
    PutSession,
    Reader,
    Remove,
    SharedStore,
    StoredExperiment,
    Turn,
    Unresolved,
)
from robandit.storage.connections import Connection, Connections, T
from robandit.storage.postgres_schema import STEPS, TABLES, VERSION
from robandit.storage.tables import Statement, TableReader, in_order, statements
from robandit.validation import choice

DURABILITY = {"full": True, "relaxed": False, "off": False}
"""Whether a commit waits for the disk."""
OLDEST_SERVER = 140_000  # the oldest version of PostgreSQL that is still maintained
TIDIED_ROWS = 5000  # removed by one call of `tidy`
PROBES = 5  # questions to each of two connections about their sessions
_LOCK = 0x526F6264  # "Robd": the advisory lock of those who change the schema
_SEPARATOR = "\x1f"  # neither in JSON nor in an id: PostgreSQL splits a text faster than psycopg writes an array

_COLUMNS = "experiment, seq, kind, id, payload, time"
_EVENT = f"SELECT {_COLUMNS} FROM event WHERE experiment = %s"
_TAIL = f"{_EVENT} AND seq > %s ORDER BY seq LIMIT {MOST_TAIL}"
# OFFSET 0 keeps the search for one id or one log apart, so that it always uses the index that is made for it.
_KNOWN = (
    f"SELECT found.* FROM unnest(%s::bigint[], %s::text[]) AS asked(number, id), LATERAL ("
    f'SELECT {_COLUMNS} FROM event WHERE experiment = asked.number AND id = asked.id COLLATE "C" OFFSET 0) AS found'
)
_TAILS = (
    f"SELECT found.* FROM unnest(%s::bigint[], %s::bigint[]) AS asked(number, after), LATERAL ("
    f"SELECT {_COLUMNS} FROM event WHERE experiment = asked.number AND seq > asked.after ORDER BY seq LIMIT {MOST_TAIL}"
    ") AS found"
)
_EXPERIMENT = "SELECT number, name, head, epoch, convert_to(settings, 'UTF8') FROM experiment"
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_NEWEST = "coalesce((SELECT max(seq) FROM snapshot WHERE experiment = number), 0)"
_TURN = f"SELECT number, head, {_NEWEST} FROM experiment WHERE number = %s FOR UPDATE"
_OTHERS = f"SELECT number, head, {_NEWEST} FROM experiment WHERE number = ANY(%s) FOR UPDATE SKIP LOCKED"
_PARTS = ", ".join([f"string_to_array(%s, E'\\x{ord(_SEPARATOR):02x}')"] * 6)
_INSERT = (
    "INSERT INTO event SELECT part.experiment::bigint, part.seq::bigint, part.kind, part.id, part.payload, "
    f"part.time::float8 FROM unnest({_PARTS}) AS part(experiment, seq, kind, id, payload, time)"
)
_ADVANCE = (
    "UPDATE experiment SET head = last.seq FROM unnest(%s::bigint[], %s::bigint[]) AS last(experiment, seq) "
    "WHERE number = last.experiment"
)


def _prepared() -> str:
    """Return the statements that prepare those of a turn. To parse and plan them takes longer than to execute them."""
    statements = {
        "turn(bigint)": _TURN,
        "others(bigint[])": _OTHERS,
        "tail(bigint, bigint)": _TAIL,
        "tails(bigint[], bigint[])": _TAILS,
        "known(bigint[], text[])": _KNOWN,
        "append(text, text, text, text, text, text)": _INSERT,
        "advance(bigint[], bigint[])": _ADVANCE,
    }
    return "; ".join(f"PREPARE {head} AS {_numbered(query)}" for head, query in statements.items())


def _numbered(query: str) -> str:
    """Return a statement with the parameters $1, $2, ... instead of %s."""
    first, *parts = query.split("%s")
    return first + "".join(f"${number}{part}" for number, part in enumerate(parts, start=1))


class _Runs(Protocol):
    """Connections, or one of them."""

    def run(self, work: Callable[[Connection], T]) -> T: ...


class _Held:
    """One connection, in a transaction."""

    def __init__(self, connections: Connections, db: Connection) -> None:
        self._connections = connections
        self._db = db

    def run(self, work: Callable[[Connection], T]) -> T:
        with self._connections.errors():
            return work(self._db)


class PostgresReader(TableReader):
    """Reads on any connection that is free. It sees each commit at once."""

    BYTES = "convert_to({}, 'UTF8')"
    # PostgreSQL reads no JSON in which a text has the character 0. Contexts may have it, arms do not.
    ARM = r"replace(payload, E'\\u0000', E'\\u0001')::json ->> 'arm'"

    def __init__(self, connections: _Runs) -> None:
        self._connections = connections

    def _read(self, query: str, *parameters: Any) -> list[Any]:
        text = query.replace("?", "%s")
        return self._connections.run(lambda db: db.execute(text, parameters, binary=True).fetchall())

    def _events(self, condition: str, *parameters: Any) -> list[Event]:
        return list(_events(self._read(f"{_EVENT} AND {condition}", *parameters)))

    def close(self) -> None:
        """It holds nothing."""


class PostgresTurn(Turn):
    """A transaction that holds the rows of one or more experiments.

    It waits for the first row while it holds none. The others are taken if they are free. So nobody waits in a circle.
    """

    def __init__(self, connections: Connections, first: Asked, others: Sequence[Asked] = ()) -> None:
        self._connections = connections
        self.ended = False
        with connections.errors():
            self._db, self.found = connections.begin(lambda db: self._lock(db, first, others))
        self._heads = {number: each.head for number, each in self.found.items() if each.head is not None}

    def _lock(self, db: Connection, first: Asked, others: Sequence[Asked]) -> dict[int, Found]:
        asked = (first, *others)
        numbers = [each.experiment for each in asked]
        pairs = [(each.experiment, id) for each in asked for id in each.ids]
        statements: list[Statement] = [("BEGIN", ()), ("EXECUTE turn(%s)", (first.experiment,))]
        if others:
            statements.append(("EXECUTE others(%s)", (numbers[1:],)))
        # A statement of its own: that of the turn would look at the clock before it waits for the row.
        statements.append((f"SELECT {_NOW}", ()))
        if others:
            statements.append(("EXECUTE tails(%s, %s)", (numbers, [each.after for each in asked])))
        else:
            statements.append(("EXECUTE tail(%s, %s)", first[:2]))
        if pairs:
            statements.append(("EXECUTE known(%s, %s)", ([number for number, _ in pairs], [id for _, id in pairs])))
        self._connections.prepare(db, _prepared)
        _, locked, *rest = _executed(db, statements)
        if others:
            locked += rest.pop(0)
        ((self.time,),), tails, *known = rest
        found = {first.experiment: Found(None, 0, [], [])}
        found |= {number: Found(head, snapshot, [], []) for number, head, snapshot in locked}
        for event in _events(tails):
            if event.experiment in found:
                found[event.experiment].tail.append(event)
        for event in _events(known[0] if pairs else ()):
            if event.experiment in found:
                found[event.experiment].known.append(event)
        return found

    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        self._connections.wait_on(self._db)
        try:
            with self._connections.errors():
                _commit(self._db, self._heads, events, changes)
        except StoreUnavailable as error:
            if not self._db.broken:
                raise
            if not self._was_stored(events, error):
                raise
        finally:
            self.cancel()

    def _was_stored(self, events: Sequence[Event], error: StoreUnavailable) -> bool:
        """Look the events of one experiment up: all are stored, or none. Each decision has an id that no other one has."""
        if not events:
            raise Unresolved(f"{error} (the connection was lost in a commit)") from error
        number, first = events[0][:2]
        log = [event for event in events if event.experiment == number]
        try:
            again = PostgresTurn(self._connections, Asked(number, first - 1, []))
        except StoreError as other:
            raise Unresolved(f"{other} (the connection was lost in a commit)") from other
        again.cancel()
        return again.found[number].tail[: len(log)] == log[:MOST_TAIL]

    def keep(self) -> None:
        self._connections.wait_on(self._db)
        with self._connections.errors():
            self._db.execute("SELECT")

    def cancel(self) -> None:
        if not self.ended:
            self.ended = True
            self._connections.give_back(self._db)


class PostgresStore(SharedStore):
    """A database that is open for writing."""

    def __init__(self, url: str, *, durability: str = "full", create: bool = True, new: bool = False) -> None:
        """Connect, and make the schema or bring it forward. ``new``: see `open_store`."""
        choice(durability, "durability", DURABILITY)
        self._connections = Connections(url, synchronous=DURABILITY[durability])
        self.name = self._connections.name
        """Its address, without the password."""
        try:
            _check_sessions(self._connections)
            self._connections.run(lambda db: _migrate(db, self.name, create, new))
            self.warnings = self._connections.run(lambda db: _warnings(db, self.name)) if durability == "full" else []
        except BaseException:
            self._connections.close()
            raise

    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        """Raises `Unresolved` if the connection is lost in the commit."""
        numbers = sorted({event[0] for event in events})

        def lock(db: Connection) -> dict[int, int]:
            self._connections.prepare(db, _prepared)
            query = "SELECT number, head FROM experiment WHERE number = ANY(%s) ORDER BY number FOR UPDATE"
            return dict(_executed(db, [("BEGIN", ()), (query, (numbers,))])[1])

        with self._connections.errors():
            db, heads = self._connections.begin(lock)
        try:
            with self._connections.errors():
                _commit(db, heads, events, changes)
        except StoreUnavailable as error:
            if db.broken:
                raise Unresolved(f"{error} (the connection was lost in a commit)") from error
            raise
        finally:
            self._connections.give_back(db)

    def commit_first_key(self, changes: Sequence[Change]) -> bool:
        """Of several servers that start at the same time, one makes the key."""
        with self._connections.errors():
            db, _ = self._connections.begin(lambda db: db.execute("BEGIN"))
            try:
                db.execute("SELECT FROM store FOR UPDATE")
                if db.execute("SELECT FROM key LIMIT 1").fetchall():
                    return False
                _commit(db, {}, (), changes)
                return True
            finally:
                self._connections.give_back(db)

    def reader(self) -> Reader:
        return PostgresReader(self._connections)

    def turn(self, experiment: int, after: int, ids: Sequence[str], others: Sequence[Asked] = ()) -> Turn:
        return PostgresTurn(self._connections, Asked(experiment, after, ids), others)

    def tail(self, experiment: int, after: int) -> tuple[int | None, list[Event]]:
        head = "SELECT head FROM experiment WHERE number = %s"
        statements: list[Statement] = [(head, (experiment,)), (_TAIL, (experiment, after))]
        heads, tail = self._connections.run(lambda db: _executed(db, statements))
        return (heads[0][0] if heads else None), list(_events(tail))

    def find_name(self, name: str) -> StoredExperiment | None:
        rows = self._connections.run(
            lambda db: db.execute(f"{_EXPERIMENT} WHERE name = %s", (name,), binary=True).fetchall()
        )
        return StoredExperiment._make(rows[0]) if rows else None

    def pulse(self) -> Pulse:
        def read(db: Connection) -> Pulse:
            with db.pipeline():
                store = db.execute(f"SELECT version, catalogue, {_NOW} FROM store", binary=True)
                heads = db.execute("SELECT number, head FROM experiment", binary=True)
            ((version, catalogue, time),) = store.fetchall()
            if version != VERSION:  # a newer server has brought the schema forward
                raise StoreUnavailable(f"{self.name} has the schema {version}, not {VERSION}: upgrade robandit")
            return Pulse(catalogue, dict(heads.fetchall()), time)

        return self._connections.run(read)

    def abort_stuck(self) -> None:
        self._connections.abort_stuck()

    def next_number(self) -> int:
        query = "SELECT greatest((SELECT max(number) FROM experiment), (SELECT max(number) FROM removed), 0) + 1"
        ((number,),) = self._connections.run(lambda db: db.execute(query).fetchall())
        return int(number)

    def tidy(self) -> bool:
        """One server at a time does it. The numbers of removed experiments stay, so that they are not used again."""
        with self._connections.errors():
            db, _ = self._connections.begin(lambda db: db.execute("BEGIN"))
            try:
                query = "SELECT number FROM removed WHERE NOT done LIMIT 1 FOR UPDATE SKIP LOCKED"
                rows = db.execute(query).fetchall()
                if not rows:
                    return _tidy_archived(db)
                ((number,),) = rows
                some = "SELECT seq FROM event WHERE experiment = %s ORDER BY seq LIMIT %s"
                query = f"DELETE FROM event WHERE experiment = %s AND seq = ANY(ARRAY({some}))"
                if db.execute(query, (number, number, TIDIED_ROWS)).rowcount < TIDIED_ROWS:
                    db.execute("UPDATE removed SET done = true WHERE number = %s", (number,))
                db.execute("COMMIT")
                return True
            finally:
                self._connections.give_back(db)

    @contextmanager
    def frozen(self) -> Iterator[Reader]:
        """Others who write wait, and fail when they have waited for too long."""
        self._connections.run(lambda db: _check_alone(db, self.name))  # first, so as not to disturb others
        with self._connections.errors():
            db, _ = self._connections.begin(_freeze)
        try:
            with self._connections.errors():
                _check_alone(db, self.name)
            yield PostgresReader(_Held(self._connections, db))
        finally:
            self._connections.give_back(db)

    def publish(self) -> None:
        self._connections.run(lambda db: db.execute("UPDATE store SET complete = true"))

    def close(self) -> None:
        self._connections.close()

    @staticmethod
    def backup(location: str, target: Path) -> None:
        """Refuse: PostgreSQL has its own tools, and they cover the whole server."""
        raise StoreError(
            "robandit backup copies sqlite:PATH only: use pg_dump, or the backups of your PostgreSQL server"
        )


def _check_sessions(connections: Connections) -> None:
    """Raise `StoreError` if a pooler gives each transaction any session of PostgreSQL, as PgBouncer may.

    Two connections that are open at the same time have two sessions, and keep them. Without a pooler, the first one is the process
    that it was told of when it connected, and nothing more is asked. A pooler hides that. If it also lends sessions, an idle pool
    gives both connections the same one, or one connection one after the other.
    """
    with connections.errors():
        first, own = connections.begin(_process)
        try:
            if own == first.info.backend_pid:
                return
            second, other = connections.begin(_process)
            try:
                firsts, seconds = {own}, {other}
                for _ in range(PROBES):
                    firsts |= {_process(first), _process(first)}  # twice: two sessions that take turns would keep apart
                    seconds.add(_process(second))
            finally:
                connections.give_back(second)
        finally:
            connections.give_back(first)
    if len(firsts) > 1 or len(seconds) > 1 or firsts & seconds:
        fact = f"{connections.name} is behind PgBouncer, or another pooler, with pool_mode = transaction or statement"
        raise StoreError(f"{fact}: set pool_mode = session, or connect to PostgreSQL itself")


def _process(db: Connection) -> int:
    """Return the number of the process of PostgreSQL that answers."""
    ((number,),) = db.execute("SELECT pg_backend_pid()").fetchall()
    return int(number)


def _commit(db: Connection, heads: dict[int, int], events: Sequence[Event], changes: Sequence[Change]) -> None:
    """Store events and changes in the transaction that has begun, and end it, in one round trip.

    ``heads`` are the last events of the experiments, whose rows are locked.
    """
    first, kept, rest = in_order(events, changes)
    heads = heads | {change.number: 0 for change in first if isinstance(change, Create)}
    logs: dict[int, list[Event]] = {}
    for event in kept:
        logs.setdefault(event[0], []).append(event)
    made = [statement for change in first for statement in _made(change)]
    if logs:
        made += _appended(heads, logs)
    made += [statement for change in rest for statement in _made(change)]
    audits = any(isinstance(change, Audit) for change in changes)
    if not audits and any(isinstance(change, Create | Remove | PutKey | PutSession | EndSession) for change in changes):
        made.append(("UPDATE store SET catalogue = catalogue + 1", ()))
    _executed(db, [*made, ("COMMIT", ())])


def _executed(db: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
    """Execute statements as one text. Return the rows of each."""
    cursor = psycopg.ClientCursor(db)
    cursor.execute("; ".join(cursor.mogrify(query, parameters) for query, parameters in statements))
    rows = []
    while True:
        rows.append(cursor.fetchall() if cursor.description else [])
        if not cursor.nextset():
            return rows


def _events(rows: Iterable[Any]) -> Iterator[Event]:
    for experiment, seq, kind, id, payload, time in rows:
        yield Event(experiment, seq, kind, id, payload.encode(), time)


def _appended(heads: dict[int, int], logs: dict[int, list[Event]]) -> list[Statement]:
    """Return the statements that append events to logs."""
    for number, log in logs.items():
        head = heads.get(number)
        for place, event in enumerate(log):
            if head is None or event[1] != head + 1 + place:
                last = "the log of an unknown experiment" if head is None else f"event {head + place}"
                raise StoreError(f"event {event[1]} of experiment {number} does not follow {last}")
    events = [event for log in logs.values() for event in log]
    joined = [
        _SEPARATOR.join(parts)
        for parts in (
            [str(event[0]) for event in events],
            [str(event[1]) for event in events],
            [event[2] for event in events],
            [event[3] for event in events],
            [event[4].decode() for event in events],
            [repr(float(event[5])) for event in events],
        )
    ]
    if any(text.count(_SEPARATOR) != len(events) - 1 for text in joined):
        raise StoreError("an event has the character U+001F, which cannot be stored")
    heads_now = [log[-1][1] for log in logs.values()]
    return [
        ("EXECUTE append(%s, %s, %s, %s, %s, %s)", tuple(joined)),
        ("EXECUTE advance(%s, %s)", (list(logs), heads_now)),
    ]


def _made(change: Change) -> list[Statement]:
    """Return the statements that make a change."""
    if isinstance(change, Audit):
        values = (*change[:4], change.detail.decode())
        counted = "UPDATE store SET catalogue = catalogue + 1, audits = audits + 1 RETURNING audits"
        return [(f"WITH next AS ({counted}) INSERT INTO audit SELECT audits, %s, %s, %s, %s, %s FROM next", values)]
    return [(query.replace("?", "%s"), parameters) for query, parameters in statements(change)]


def _tidy_archived(db: Connection) -> bool:
    """Remove some events in place of which there is a base, and end the transaction."""
    first = "SELECT min(seq) FROM event WHERE event.experiment = base.experiment"  # always by the index, unlike EXISTS
    query = f"SELECT experiment, seq FROM base WHERE ({first}) <= seq LIMIT 1 FOR UPDATE OF base SKIP LOCKED"
    rows = db.execute(query).fetchall()
    for number, seq in rows:
        oldest = "SELECT seq FROM event WHERE experiment = %s AND seq <= %s ORDER BY seq LIMIT %s"
        db.execute(
            f"DELETE FROM event WHERE experiment = %s AND seq = ANY(ARRAY({oldest}))",
            (number, number, seq, TIDIED_ROWS),
        )
    db.execute("COMMIT")
    return bool(rows)


def _check_alone(db: Connection, name: str) -> None:
    """Raise `StoreError` if servers are connected."""
    ((others,),) = db.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND application_name IN ('robandit', current_setting('application_name'))"
    ).fetchall()
    if others:
        used = f"{name} is used by another server ({others} connections): stop all its servers first"
        raise StoreError(used, code="store-in-use")


def _freeze(db: Connection) -> None:
    """Begin a transaction in which nobody else writes. The order of the tables is that in which servers lock them."""
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    tables = sorted(TABLES, key=lambda table: (table == "store", table != "event", table != "experiment"))
    db.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE")


def _migrate(db: Connection, name: str, create: bool, new: bool) -> None:
    """Make the schema, or bring it forward. One server at a time does it; the others wait."""
    ((encoding, number),) = db.execute(
        "SELECT current_setting('server_encoding'), current_setting('server_version_num')::integer"
    ).fetchall()
    if number < OLDEST_SERVER:
        raise StoreError(f"{name} is PostgreSQL {number // 10_000}: Robandit needs {OLDEST_SERVER // 10_000} or newer")
    if encoding != "UTF8":
        raise StoreError(f"{name} has the encoding {encoding}: create the database with ENCODING 'UTF8'")
    with db.transaction():
        # Nobody waits for a turn here, and a start on a busy machine may take longer than a turn.
        db.execute("SET LOCAL idle_in_transaction_session_timeout = '30s'")
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = {row[0] for row in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'robandit'")}
        version = 0
        if found:
            missing = sorted(set(TABLES) - found)
            if missing:
                raise CorruptFile(
                    f"{name} is damaged, or not a database of Robandit: the schema robandit lacks {missing[0]}"
                )
            ((version, complete),) = db.execute("SELECT version, complete FROM store").fetchall()
            if not complete:
                way_out = "remove it with DROP SCHEMA robandit CASCADE, and migrate again"
                raise StoreError(f"{name} is an incomplete copy of robandit migrate-store: {way_out}")
            if new:
                raise StoreError(f"{name} has data of Robandit already: name another database")
        elif not create:
            raise StoreError(f"{name} has no data of Robandit: name the database of a server")
        check_format(version, VERSION, name)
        if version < VERSION:
            db.execute("CREATE SCHEMA IF NOT EXISTS robandit")
            for step in STEPS[version:]:
                db.execute(step)
            db.execute("UPDATE store SET version = %s, complete = %s", (VERSION, not new))


def _warnings(db: Connection, name: str) -> list[str]:
    """Return what weakens the promise that what was acknowledged is stored."""
    query = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name"
    return [
        f"{name} has {setting} = off: a crash of its machine may lose or damage what was acknowledged"
        for (setting,) in db.execute(query).fetchall()
    ]
