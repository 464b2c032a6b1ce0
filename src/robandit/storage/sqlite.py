"""A store in one SQLite file.

One connection writes and checkpoints; readers are read-only. SQLite 3.7.0 to 3.51.2 could corrupt a database when two connections
of different processes write and checkpoint at the same moment, so a lock file next to the database keeps a second writer out. The
write-ahead log (WAL) lets readers go on while a commit is written. ``synchronous=FULL`` flushes the log to the disk before a commit
returns; ``NORMAL`` ("relaxed") only at checkpoints.

The package apsw brings its own SQLite, because that of Python is often years old.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from robandit.errors import CorruptFile, FileError, RobanditError, StoreError
from robandit.files import check_format, flush, named, shown
from robandit.locks import locked
from robandit.storage.base import Audit, Change, Event, Reader, Store
from robandit.storage.schema import APPLICATION, INCOMPLETE, STEPS, VERSION
from robandit.storage.tables import TableReader, in_order, statements
from robandit.validation import choice
from robandit.wording import visible

SYNCHRONOUS = {"full": 2, "relaxed": 1, "off": 0}
"""The levels of durability. "off" is for measurements: a crash of the machine may damage the file."""
PAGES_PER_CHECKPOINT = 4000  # 16 MB of log
TIDIED_ROWS = 5000  # removed by one call of `tidy`, in some tens of milliseconds
BUSY = 10_000  # milliseconds that a reader waits, such as while the log is rebuilt after a crash

_INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?)"
_EVENT = "SELECT experiment, seq, kind, id, CAST(payload AS BLOB), time FROM event WHERE experiment = ?"


class SqliteReader(TableReader):
    """A read-only connection."""

    BYTES = "CAST({} AS BLOB)"
    # JSON that SQLite cannot read, such as one nested deeper than 1,000 levels, counts as without an arm.
    ARM = "CASE WHEN json_valid(payload) THEN payload ->> '$.arm' END"
    KIND = "+kind"

    def __init__(self, path: str) -> None:
        self._path = path
        if not os.path.exists(path):
            raise _absent(path)
        with _errors(path):
            self._db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
            self._db.set_busy_timeout(BUSY)

    def _read(self, query: str, *parameters: Any) -> list[Any]:
        with _errors(self._path):
            return self._db.execute(query, parameters).fetchall()

    def _events(self, condition: str, *parameters: Any) -> list[Event]:
        return list(map(Event._make, self._read(f"{_EVENT} AND {condition}", *parameters)))

    def close(self) -> None:
        self._db.close()


class SqliteStore(Store):
    """A database file that is open for writing."""

    def __init__(self, path: str, *, durability: str = "full", create: bool = True, new: bool = False) -> None:
        """Lock and open the file, and bring its schema forward. ``new``: see `open_store`."""
        choice(durability, "durability", SYNCHRONOUS)
        self.path = os.path.realpath(named(path, "store"))
        self._durability = durability
        self._new = new
        self._resources = ExitStack()
        try:
            self._open(create)
        except BaseException:
            self._resources.close()
            raise

    def _open(self, create: bool) -> None:
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise _error(self.path, f"cannot be opened: the folder {shown(folder)} does not exist; make it first")
        if not create and not os.path.exists(self.path):
            raise _absent(self.path)
        try:
            mine = self._resources.enter_context(locked(Path(f"{self.path}.lock"), wait=False))
        except FileError as error:
            raise _error(self.path, f"cannot be opened: {_cause(error)}; {_WRITABLE}") from error
        if not mine:
            way_out = "stop it first, or name another file with --store sqlite:PATH"
            raise StoreError(f"{shown(self.path)} is used by another server: {way_out}", code="store-in-use")
        with _errors(self.path):
            _make_private(self.path)
            self._db = apsw.Connection(self.path)
            self._resources.callback(self._db.close)
            self._run = self._db.execute
            self._file = _identity(self.path)
            if os.stat(self.path).st_nlink > 1:  # another name has another lock, and another log
                raise _error(self.path, "cannot be opened: it has several names (hard links); copy it instead")
            if self._db.readonly("main"):  # SQLite opens it nevertheless, and the first commit would fail
                raise _error(self.path, f"cannot be opened: it is read-only; {_WRITABLE}")
            self._check_kind()
            self._run("PRAGMA journal_mode = WAL")
            # Only macOS needs it: there, a plain flush stops at the cache of the disk.
            self._run("PRAGMA fullfsync = 1")
            # A checkpoint also needs a flush, and schema changes must be durable: the level is lowered afterwards.
            self._migrate()
            self._run(f"PRAGMA synchronous = {SYNCHRONOUS[self._durability]}")
            self._run(f"PRAGMA wal_autocheckpoint = {PAGES_PER_CHECKPOINT}")

    def _check_kind(self) -> None:
        application, version = self._pragma("application_id"), self._pragma("user_version")
        tables = self._run("SELECT count(*) FROM sqlite_schema").get
        if application == INCOMPLETE:
            raise _error(
                self.path, "is an incomplete copy of robandit migrate-store: remove the file, and migrate again"
            )
        if self._new and (tables or version):
            raise _error(self.path, "has data already: name a new file")
        if application != APPLICATION and (tables or version):
            raise _error(
                self.path, "is a database of another program: name another file with --store sqlite:PATH", CorruptFile
            )
        check_format(version, VERSION, self.path)

    def _pragma(self, name: str) -> int:
        value: int = self._run(f"PRAGMA {name}").get
        return value

    def _migrate(self) -> None:
        version = self._pragma("user_version")
        if version == VERSION:
            return
        with self._transaction():
            for step in STEPS[version:]:
                self._run(step)
            application = INCOMPLETE if self._new else APPLICATION
            self._run(f"PRAGMA application_id = {application}; PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._run("BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._run("ROLLBACK")
            raise

    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        first, kept, rest = in_order(events, changes)
        with _errors(self.path), self._transaction():
            for change in first:
                self._make(change)
            if kept:
                self._advance(kept)
                self._db.executemany(_INSERT, kept)
            for change in rest:
                self._make(change)
        if _identity(self.path) != self._file:
            raise _error(self.path, "was moved or removed while the server used it: restore it, or a backup")

    def _advance(self, events: Sequence[Event]) -> None:
        """Move the heads of the experiments to their last new events."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for event in events:
            number, seq = event[0], event[1]
            if last.setdefault(number, seq - 1) != seq - 1:
                raise StoreError(f"event {seq} of experiment {number} does not follow event {last[number]}")
            first.setdefault(number, seq)
            last[number] = seq
        for number, seq in last.items():
            self._run("UPDATE experiment SET head = ? WHERE number = ? AND head = ?", (seq, number, first[number] - 1))
            if not self._db.changes():
                raise StoreError(
                    f"event {first[number]} of experiment {number} does not follow its last event in the store"
                )

    def _make(self, change: Change) -> None:
        if isinstance(change, Audit):
            columns = "(time, key, action, subject, detail)"
            self._run(f"INSERT INTO audit {columns} VALUES (?, ?, ?, ?, CAST(? AS TEXT))", change)
            return
        for query, parameters in statements(change):
            self._run(query, parameters)

    def reader(self) -> Reader:
        return SqliteReader(self.path)

    def next_number(self) -> int:
        query = "SELECT max(coalesce((SELECT max(number) FROM experiment), 0), coalesce((SELECT max(number) FROM removed), 0))"
        with _errors(self.path):
            number: int = self._run(query).get
        return number + 1

    def tidy(self) -> bool:
        """The numbers of removed experiments stay, so that they are not used again."""
        with _errors(self.path), self._transaction():
            row = self._run("SELECT number FROM removed WHERE done = 0 LIMIT 1").fetchone()
            if row is None:
                return self._tidy_archived()
            query = "SELECT seq FROM event WHERE experiment = ?1 ORDER BY seq LIMIT ?2"
            self._run(f"DELETE FROM event WHERE experiment = ?1 AND seq IN ({query})", (row[0], TIDIED_ROWS))
            if self._db.changes() < TIDIED_ROWS:
                self._run("UPDATE removed SET done = 1 WHERE number = ?", row)
            return True

    def _tidy_archived(self) -> bool:
        """Remove some events in place of which there is a base."""
        some = "SELECT 1 FROM event WHERE experiment = base.experiment AND event.seq <= base.seq"
        row = self._run(f"SELECT experiment, seq FROM base WHERE EXISTS ({some}) LIMIT 1").fetchone()
        if row is None:
            return False
        oldest = "SELECT seq FROM event WHERE experiment = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3"
        self._run(f"DELETE FROM event WHERE experiment = ?1 AND seq IN ({oldest})", (*row, TIDIED_ROWS))
        return True

    @contextmanager
    def frozen(self) -> Iterator[Reader]:
        """Nobody else writes while this process has the file open."""
        with closing(self.reader()) as reader:
            yield reader

    def publish(self) -> None:
        with _errors(self.path), self._transaction():
            self._run(f"PRAGMA application_id = {APPLICATION}")

    def close(self) -> None:
        self._resources.close()

    @staticmethod
    def backup(location: str, target: Path) -> None:
        """SQLite's own backup copies the pages of one moment, without keeping the server from writing."""
        target = named(target)
        if target.exists():
            raise _error(target, "exists: a backup is written to a new file")
        if not os.path.exists(location):
            raise _absent(location)
        folder = target.absolute().parent
        if not folder.is_dir():
            raise _error(target, f"cannot be written: the folder {shown(folder)} does not exist; make it first")
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=f".{target.name}.") as private:
                part = os.path.join(private, "copy.db")
                _copy(location, part, str(target))
                os.replace(part, target)
            flush(folder)
        except OSError as error:
            raise _error(target, f"cannot be written: {error.strerror}") from error


def _error(path: str | Path, fact: str, kind: type[RobanditError] = StoreError) -> RobanditError:
    return kind(f"{shown(path)} {fact}")


def _absent(path: str) -> RobanditError:
    return _error(path, "does not exist: name the file of a server, as in --store sqlite:PATH")


def _copy(source: str, part: str, target: str) -> None:
    """Copy a database into a new file, which becomes the target."""
    with ExitStack() as opened:
        with _errors(source):
            origin = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
            opened.callback(origin.close)
            origin.set_busy_timeout(BUSY)
            found = origin.execute("PRAGMA application_id").get
        if found != APPLICATION:
            raise _error(source, "is not a database of Robandit", CorruptFile)
        _make_private(part)
        with _errors(target):
            copy = apsw.Connection(part)
            opened.callback(copy.close)
            with _damage_of(source):  # the copy has the pages of the source
                with copy.backup("main", origin, "main") as pages:
                    pages.step(-1)  # in one step: other writes between steps would start it anew
                copy.execute("PRAGMA journal_mode = DELETE")  # the backup is one file
                _check(copy, source)
    flush(part)


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and the inode of a file, or None if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _make_private(path: str) -> None:
    """Make an empty file that only this user may read, unless there is a file: it holds contexts, rewards and hashes of keys.

    SQLite gives its other files the same permissions.
    """
    with suppress(OSError):  # SQLite's own error is better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _check(db: apsw.Connection, path: str) -> None:
    """Check a whole database: its pages, indices and rules. Raise `CorruptFile` if something is wrong."""
    findings = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
    if findings != ["ok"]:
        raise _error(path, f"is damaged: {visible('; '.join(findings))[:200]}", CorruptFile)


_WRITABLE = "allow writing to the file and its folder"
_REASONS: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.FullError, "the disk is full; free space, then start the server again"),
    (apsw.ReadOnlyError, f"it is read-only; {_WRITABLE}"),
    (apsw.CantOpenError, "it cannot be opened; check that its folder exists and can be written"),
    (apsw.PermissionsError, "access is denied; check the permissions of the file"),
    (apsw.AuthError, "access is denied; check the permissions of the file"),
    (apsw.BusyError, "another program holds a lock on it; close that program"),
    (apsw.ConstraintError, "an id would be stored twice"),
    (apsw.NoMemError, "there is not enough memory"),
    (apsw.IOError, "reading or writing failed; check the disk"),
)
_DAMAGED: tuple[type[apsw.Error], ...] = (apsw.CorruptError, apsw.NotADBError)


@contextmanager
def _damage_of(path: str) -> Iterator[None]:
    """Turn errors of SQLite about damaged files into ours."""
    try:
        yield
    except _DAMAGED as error:
        raise _error(
            path, f"is damaged, or not a database of Robandit: {visible(str(error))[:120]}", CorruptFile
        ) from error


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Turn errors of SQLite into ours, which name the file, the reason and the way out."""
    try:
        with _damage_of(path):
            yield
    except apsw.Error as error:
        reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "")
        raise _error(path, f"cannot be used: {reason or visible(str(error))[:120]} ({_code(error)})") from error
    except UnicodeEncodeError as error:
        raise _error(path, f"cannot store a text that is not valid Unicode: {ascii(error.object)[:60]}") from error


def _cause(error: FileError) -> str:
    """Return what the system says about a lock that cannot be made."""
    return getattr(error.__cause__, "strerror", None) or str(error)


def _code(error: apsw.Error) -> str:
    code = getattr(error, "extendedresult", None)
    name: str | None = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code)  # type: ignore[arg-type, assignment]
    return name or type(error).__name__
