"""Which units of a run folder are done, and who is at work on which: one file for each unit, and a lock while it is played."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from robandit.errors import CorruptFile, FileError
from robandit.experiments.plan import Unit
from robandit.experiments.results import Failure
from robandit.files import read_sealed, write_atomically
from robandit.simulate.result import Result

__all__ = ["Ledger", "locked", "write_json"]

FOLDERS = ("parts", "times", "failures")
UNREADABLE = (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError)  # what damaged JSON comes to


@dataclass(frozen=True)
class Ledger:
    """The units of a run folder, by their keys. It knows no plan, so it is cheap to send to another process."""

    folder: Path

    def part(self, unit: Unit) -> Path:
        """Where the unit's result is, or will be."""
        return self.folder / "parts" / f"{unit.key}.parquet"

    def done(self, unit: Unit) -> bool:
        """Whether the unit's part is there and its checksum is right."""
        try:
            read_sealed(self.part(unit))
        except FileError:
            return False
        return True

    @contextmanager
    def claimed(self, unit: Unit) -> Iterator[bool]:
        """Hold the unit's lock, or yield False: someone else is at it."""
        with locked(self.folder / "locks" / f"{unit.key}.lock", wait=False) as mine:
            yield mine

    def keep(self, unit: Unit, result: Result) -> None:
        """Store what a unit gave."""
        self.receive(unit, result.to_bytes(whole=False), float(result.seconds[0]))

    def receive(self, unit: Unit, content: bytes, seconds: float) -> None:
        """Store a unit's part as it was made elsewhere. It comes last but for old failures: where it is, the unit is done."""
        write_json(self._time(unit), {"seconds": seconds})
        write_atomically(self.part(unit), lambda file: file.write(content))
        self._failure(unit).unlink(missing_ok=True)

    def fail(self, failure: Failure) -> None:
        """Write down that a unit failed, and how."""
        about = {
            "policy": failure.unit.cell.label,
            "problem": failure.unit.cell.played.name,
            "unit": failure.unit.describe(),
            "tries": failure.tries,
            "traceback": failure.traceback,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(self._failure(failure.unit), about)

    def set_aside(self, unit: Unit) -> Path | None:
        """Move the unit's part, which is damaged, out of the way, and say where it is now; None: there was none."""
        part = self.part(unit)
        if not part.exists():
            return None
        aside = self.folder / "damaged" / part.name
        aside.parent.mkdir(exist_ok=True)
        number = 1
        while aside.exists():
            number += 1
            aside = aside.with_name(f"{unit.key}.{number}.parquet")
        os.replace(part, aside)
        return aside

    def seconds(self, unit: Unit) -> float:
        """The processor time that a unit took; NaN if that is not known."""
        try:
            return float(json.loads(self._time(unit).read_bytes())["seconds"])
        except UNREADABLE:  # it is no part of the results
            return float("nan")

    def failure(self, unit: Unit) -> Failure | None:
        """How a unit failed; None: it did not."""
        path = self._failure(unit)
        try:
            about = json.loads(path.read_bytes())
            return Failure(unit, int(about["tries"]), str(about["traceback"]))
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            raise CorruptFile(f"{path} is damaged ({error}): delete it") from error

    def sweep(self) -> None:
        """Remove what processes that were killed left half-written; who is at work is not disturbed."""
        for name in FOLDERS:
            for path in (self.folder / name).glob(".*.*.*"):  # as write_atomically names them: .KEY.parquet.RANDOM
                lock = self.folder / "locks" / f"{path.name.split('.')[1]}.lock"
                with locked(lock, wait=False) as mine:
                    if mine:
                        path.unlink(missing_ok=True)
        for lock in (self.folder / "locks").glob(
            "*.lock"
        ):  # of one killed after its part was there: nobody will want it again
            with locked(lock, wait=False):
                pass

    def _time(self, unit: Unit) -> Path:
        return self.folder / "times" / f"{unit.key}.json"

    def _failure(self, unit: Unit) -> Path:
        return self.folder / "failures" / f"{unit.key}.json"


def write_json(path: Path, data: Any) -> None:
    """Write plain data as JSON that people can read, atomically."""
    content = (json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()
    write_atomically(path, lambda file: file.write(content))


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock of this name, or yield False if someone has it and ``wait`` is false.

    It excludes other threads and other processes on the same machine, and ends with its holder, kill -9 included; what the holder
    has forked does not hold it. The file is removed at the end.
    """
    try:
        lock = _acquired(path, wait)
    except OSError as error:
        raise FileError(
            f"{path} cannot be locked: {error.strerror}; take a folder on a disk of this machine"
        ) from error
    try:
        yield lock is not None
    finally:
        if lock is not None and lock.handle is not None:
            with suppress(OSError):
                path.unlink()  # while it is held; `_acquired` sees to those who wait for this file
            lock.close()


def _acquired(path: Path, wait: bool) -> _Lock | None:
    path.parent.mkdir(exist_ok=True)
    while True:
        lock = _Lock(path)
        try:
            assert lock.handle is not None
            if not _lock(lock.handle, wait):
                lock.close()
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock.handle), os.stat(path)):
                    return lock
        except BaseException:
            lock.close()
            raise
        lock.close()  # its holder removed it, so another may have made and locked a new one: once more


class _Lock:
    """An open file, to be locked. A process that is forked closes its copy: it would hold the lock when its parent is killed."""

    opened: ClassVar[set[_Lock]] = set()
    guard: ClassVar[threading.RLock] = threading.RLock()  # no fork between opening a file and writing that down

    def __init__(self, path: Path) -> None:
        with self.guard:
            self.handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self.opened.add(self)

    def close(self) -> None:
        """Unlock it, too."""
        with self.guard:
            if self.handle is not None:
                with suppress(OSError):
                    _unlock(self.handle)  # a process that is about to run another program may have a copy for a moment
                self.forget()

    def forget(self) -> None:
        """Close it, but do not unlock it: another process may hold the lock through its own copy."""
        handle, self.handle = self.handle, None
        self.opened.discard(self)
        if handle is not None:
            os.close(handle)

    @classmethod
    def forked(cls) -> None:
        """In the new process."""
        for lock in list(cls.opened):
            lock.forget()
        cls.guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Lock.guard.acquire, after_in_parent=_Lock.guard.release, after_in_child=_Lock.forked)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int, wait: bool) -> bool:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:  # waiting ends after ten seconds
                if not wait:
                    return False

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int, wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
