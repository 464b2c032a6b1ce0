"""What all readers of tables share: batches of a few columns, so that memory does not grow with the file."""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from robandit.errors import CorruptFile, FileError, RobanditError

if TYPE_CHECKING:
    import polars as pl

BATCH = 131_072  # rows; larger batches are slower (they leave the processor's cache) and take more memory


class Reader(ABC):
    """A table that can be read from its beginning any number of times."""

    source: str  # its name in messages
    columns: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()  # names of several columns
    rows: int | None = None  # their number, where it is known beforehand
    unit: str = "row"  # or "line": what `locate` counts

    @abstractmethod
    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """Yield the columns of some roles, role -> name, as columns named by their roles.

        "arm" is text; "reward" and "propensity" are floats, null where they are not numbers. Where the source has them as text,
        that text is in "reward text". Other columns keep their types.
        """

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """Return, for rows counted from 0 in ascending order, their number in `unit` and whether the line is blank."""
        return {row: (row + 1, False) for row in rows}


class TextReader(Reader):
    """A text file, perhaps compressed, in which rows have line numbers."""

    unit = "line"

    def __init__(self, path: Path, source: str, compression: str | None) -> None:
        """Store where the file is and how it is compressed."""
        self._path = path
        self._compression = compression
        self.source = source

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """See `Reader`."""
        if self.unit == "row":
            return super().locate(rows)
        lines: dict[int, tuple[int, bool]] = {}
        for row, line in enumerate(self._lines()):
            if len(lines) == len(rows):
                break
            if row == rows[len(lines)]:
                lines[row] = line
        return lines

    @abstractmethod
    def _lines(self) -> Iterator[tuple[int, bool]]:
        """Yield the line number of each row, and whether the line is blank."""

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        return opened(self._path, self._compression, self.source)


@contextmanager
def opened(path: Path, compression: str | None, source: str) -> Iterator[IO[bytes]]:
    """Open the content of a file, decompressed."""
    with reading_errors(source), gzip.open(path) if compression == "gzip" else path.open("rb") as file:
        yield file  # type: ignore[misc]


def batches_of(frame: pl.LazyFrame, source: str) -> Iterator[pl.DataFrame]:
    """Run a lazy frame batch by batch."""
    with reading_errors(source):
        yield from frame.collect_batches(chunk_size=BATCH)


@contextmanager
def reading_errors(source: str) -> Iterator[None]:
    """Raise `CorruptFile` for what a damaged file makes Polars or gzip raise, and `FileError` for errors of the system."""
    import polars as pl

    try:
        yield
    except RobanditError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # without one: the content, not the disk
            raise FileError(f"{source} cannot be read: {error.strerror}") from error
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, pl.exceptions.PanicException):
            reason = f"it is damaged ({reason})"
        raise CorruptFile(f"{source} cannot be read: {reason}") from error


def not_utf8(content: bytes, error: UnicodeDecodeError) -> str:
    """Name the byte that is not UTF-8, and the way out."""
    byte = content[error.start]
    return f"the byte 0x{byte:02x} is not UTF-8; convert the file, for example with iconv -f LATIN1 -t UTF-8"
