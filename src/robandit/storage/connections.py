"""Connections to PostgreSQL: how they are opened and kept, and what their errors mean.

Every wait has a limit. PostgreSQL ends a statement that waits for a lock or takes too long, and a transaction whose client is
silent: a server that stops in the middle of a turn keeps the others waiting for `IDLE_IN_TURN` seconds at most. The operating
system ends a connection whose other end does not answer.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import conninfo, errors

from robandit.errors import CorruptFile, RobanditError, StoreError, StoreUnavailable
from robandit.storage.base import Clash
from robandit.wording import visible

Connection: TypeAlias = psycopg.Connection[Any]
Status = psycopg.pq.TransactionStatus
T = TypeVar("T")

CONNECT = 4  # seconds to connect
IDLE_IN_TURN = 2.0  # seconds that a client may be silent in a transaction
LOCK = 5.0  # seconds to wait for a turn: longer than a silent client can keep it
STATEMENT = 8.0  # seconds of a statement, such as the insertion of 64 MB of contexts
STUCK = 10.0  # seconds after which a thread does not wait any longer for an answer
MOST_IDLE = 24  # connections that are kept

_NETWORK: dict[str, Any] = {
    "connect_timeout": CONNECT,
    "keepalives_idle": 4,
    "keepalives_interval": 1,
    "keepalives_count": 4,
    "tcp_user_timeout": 8_000,
    "application_name": "robandit",
    "client_encoding": "utf8",
}
_LIMITS = {
    "lock_timeout": f"'{LOCK}s'",
    "idle_in_transaction_session_timeout": f"'{IDLE_IN_TURN}s'",
    "statement_timeout": f"'{STATEMENT}s'",
    "tcp_user_timeout": f"'{STATEMENT}s'",  # of a client that stops before it has read a long answer: the others do not end it
    "search_path": "robandit",
    "extra_float_digits": "1",  # floats as texts that read back the same
    "default_transaction_isolation": "'read committed'",
    "default_transaction_read_only": "off",
    # Plans are made once, and do not depend on statistics. While a log grows, those are missing or old: then PostgreSQL may read
    # all events of an experiment to find some ids (measured: 19 ms instead of 0.2 ms after 140,000 events).
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}


class Connections:
    """Connections to one database, for any number of threads. Those that are not used are kept for the next one."""

    def __init__(self, url: str, *, synchronous: bool = True) -> None:
        """Store the address. Nothing is opened yet. Without ``synchronous``, commits do not wait for the disk."""
        self.name = shown_url(url)
        self._parameters: dict[str, Any] = {**_NETWORK, **conninfo.conninfo_to_dict(url)}
        settings = _LIMITS | {"synchronous_commit": "on" if synchronous else "off"}
        self._settings = "; ".join(f"SET {name} = {value}" for name, value in settings.items())
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._busy: dict[Connection, float] = {}
        """The connections that are used, and since when they wait for an answer."""
        self._prepared: WeakSet[Connection] = WeakSet()
        self._closed = False

    def begin(self, work: Callable[[Connection], T]) -> tuple[Connection, T]:
        """Take a connection, do what begins on it, and return both. `give_back` the connection.

        A kept connection may be broken, such as after a restart of PostgreSQL. Then the work begins again on a new one, so it must
        not change anything.
        """
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                return kept, self._do(kept, work)
            except psycopg.OperationalError:
                if not kept.broken:
                    raise
                self._close_idle()
        new = self._new()
        return new, self._do(new, work)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return what a function finds on a connection. It may be called twice, see `begin`."""
        with self.errors():
            connection, found = self.begin(work)
            self.give_back(connection)
        return found

    def _do(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        self.wait_on(connection)
        try:
            return work(connection)
        except BaseException:
            self._discard(connection)
            raise

    def _discard(self, connection: Connection) -> None:
        """Close a connection. After an error, psycopg may count on prepared statements that PostgreSQL does not have."""
        with self._lock:  # first, so that `_abort` does not meet a closed one, whose number may be that of another file
            self._busy.pop(connection, None)
        connection.close()

    def _new(self) -> Connection:
        # Without psycopg's own prepared statements: it would remove ours together with them, such as after a ROLLBACK.
        made: Connection = psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
        self._do(made, lambda db: db.execute(self._settings))
        return made

    def prepare(self, connection: Connection, statements: Callable[[], str]) -> None:
        """Execute statements that prepare others, unless that was done on this connection. Always give the same ones."""
        if connection not in self._prepared:
            connection.execute(statements())
            self._prepared.add(connection)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for others. A transaction is rolled back. After an error in one, the connection is closed."""
        with suppress(psycopg.Error):
            if connection.info.transaction_status == Status.INTRANS:
                connection.execute("ROLLBACK")
        if connection.info.transaction_status != Status.IDLE:
            self._discard(connection)
            return
        with self._lock:
            self._busy.pop(connection, None)
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def wait_on(self, connection: Connection) -> None:
        """Say that an answer is awaited on a connection from now on."""
        with self._lock:
            self._busy[connection] = time.monotonic()

    def abort_stuck(self) -> None:
        """Let threads fail that have waited for too long, such as for a network that swallows everything."""
        self._abort(STUCK)

    def _abort(self, seconds: float) -> None:
        """Let threads fail that have waited for longer than this."""
        with self._lock:
            now = time.monotonic()
            for connection, since in self._busy.items():
                if now - since > seconds:
                    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as plain:
                        plain.shutdown(socket.SHUT_RDWR)

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections. Threads that use one fail."""
        self._closed = True
        self._close_idle()
        self._abort(0.0)

    def failure(self, error: psycopg.Error) -> RobanditError:
        """Return what an error of PostgreSQL means, with its reason and the way out."""
        reason = visible(str(error.diag.message_primary or error).strip().split("\n")[0])[:160]
        code = f" ({error.sqlstate})" if error.sqlstate else ""
        if isinstance(error, errors.UniqueViolation):
            return Clash(f"{self.name} cannot be used: an id would be stored twice{code}")
        if isinstance(
            error, errors.UndefinedTable | errors.UndefinedColumn | errors.DataCorrupted | errors.IndexCorrupted
        ):
            return CorruptFile(f"{self.name} is damaged, or not a database of Robandit: {reason}{code}")
        if isinstance(error, errors.InsufficientPrivilege):
            way_out = "grant the user CREATE on the database, or all rights on the schema robandit"
            return StoreError(f"{self.name} cannot be used: {reason}{code}; {way_out}")
        if isinstance(error, psycopg.OperationalError | psycopg.InternalError):  # such as a transaction that was ended
            # libpq gives errors of connecting no code, so there is one way out for all of them.
            way_out = "check its address, user and password, and that it is running and not a standby"
            return StoreUnavailable(f"{self.name} cannot be used now: {reason}{code}; {way_out}")
        return StoreError(f"{self.name} cannot be used: {reason}{code}")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self.failure(error) from error
        except UnicodeError as error:
            text = ascii(getattr(error, "object", ""))[:60]
            raise StoreError(f"{self.name} cannot store a text that is not valid Unicode: {text}") from error


def shown_url(url: str) -> str:
    """Return the address of a database without its password.

    >>> shown_url("postgresql://ada:secret@db.example.org:5432/robandit?sslmode=require")
    'postgresql://db.example.org:5432/robandit'
    """
    given = conninfo.conninfo_to_dict(url)
    port = f":{given['port']}" if "port" in given else ""
    return f"postgresql://{given.get('host', '')}{port}/{given.get('dbname', '')}"
