"""The state of the units in a run folder: one file for each finished or failed unit."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robandit.errors import CorruptFile, FileError
from robandit.experiments.plan import Unit
from robandit.experiments.results import Failure
from robandit.files import read, read_sealed, write_atomically
from robandit.kernel.messages import say
from robandit.locks import locked
from robandit.simulate.result import Result

FOLDERS = ("parts", "times", "failures")
UNREADABLE = (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError)  # raised for damaged JSON
# The temporary files of `write_atomically`: .KEY.parquet.HOST-RANDOM.part, and .KEY.parquet.RANDOM of Robandit 0.1.
LEFTOVER = re.compile(r"\.([0-9a-f]{24})\.(?:parquet|json)\.(?:[0-9a-f]+-[0-9a-f]{8}\.part|[a-z0-9_]{8})")


@dataclass(frozen=True)
class Ledger:
    """The units of a run folder, by their keys. A ledger holds no plan, so it is cheap to send to another process."""

    folder: Path

    def part(self, unit: Unit) -> Path:
        """Return the path of the unit's result, which may not exist yet."""
        return self.folder / "parts" / f"{unit.key}.parquet"

    def done(self, unit: Unit) -> bool:
        """Return whether the unit's part exists and its checksum is right."""
        try:
            read_sealed(self.part(unit))
        except FileError:
            return False
        return True

    def keep(self, unit: Unit, result: Result) -> None:
        """Store the result of a unit."""
        self.receive(unit, result.to_bytes(whole=False), float(result.seconds[0]))

    def receive(self, unit: Unit, content: bytes, seconds: float) -> None:
        """Store the part that a worker made. The part is written last, so that a unit with a part is done."""
        write_json(self._time(unit), {"seconds": seconds})
        write_atomically(self.part(unit), content)
        self._failure(unit).unlink(missing_ok=True)

    def fail(self, failure: Failure) -> None:
        """Record a failed unit with its traceback."""
        unit, now = failure.unit, datetime.now(UTC).isoformat(timespec="seconds")
        about: dict[str, Any] = {"policy": unit.cell.label, "problem": unit.cell.played.name, "unit": unit.describe()}
        about |= {"tries": failure.tries, "traceback": failure.traceback, "time": now}
        write_json(self._failure(unit), about)

    def set_aside(self, unit: Unit) -> None:
        """Move a damaged part of the unit to another folder, and log this."""
        part = self.part(unit)
        if not part.exists():
            return
        aside = self.folder / "damaged" / part.name
        aside.parent.mkdir(exist_ok=True)
        number = 1
        while aside.exists():
            number += 1
            aside = aside.with_name(f"{unit.key}.{number}.parquet")
        os.replace(part, aside)
        say(f"{part} is damaged: it is moved to {aside}, and its unit is played again")

    def seconds(self, unit: Unit) -> float:
        """Return the processor time of a unit, or NaN if it is unknown."""
        try:
            return float(json.loads(read(self._time(unit)))["seconds"])
        except (*UNREADABLE, FileError):  # results do not need the time
            return float("nan")

    def failure(self, unit: Unit) -> Failure | None:
        """Return the recorded failure of a unit, or None if it did not fail."""
        path = self._failure(unit)
        if not os.path.lexists(path):
            return None
        try:
            about = json.loads(read(path))
            return Failure(unit, int(about["tries"]), str(about["traceback"]))
        except FileError:
            if not os.path.lexists(path):  # another process has just played the unit
                return None
            raise
        except UNREADABLE as error:
            raise CorruptFile(f"{path} is damaged ({error}): delete it") from error

    def sweep(self) -> None:
        """Remove what killed runs left: unfinished files, and locks that nobody holds. No other run may be at work."""
        for name in FOLDERS:
            for path in (self.folder / name).glob(".*"):
                leftover = LEFTOVER.fullmatch(path.name)
                if leftover is not None and path.is_file():  # else a file of the user
                    path.unlink(missing_ok=True)
        for lock in (self.folder / "locks").glob("*.lock"):
            with locked(lock, wait=False):
                pass

    def _time(self, unit: Unit) -> Path:
        return self.folder / "times" / f"{unit.key}.json"

    def _failure(self, unit: Unit) -> Path:
        return self.folder / "failures" / f"{unit.key}.json"


def write_json(path: Path, data: Any) -> None:
    """Write plain data as indented JSON, atomically."""
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    # Half a character, as in file names, is written in JSON's notation.
    write_atomically(path, text.encode(errors="backslashreplace"))
