"""Base classes of readers. They yield batches of a few columns, so memory does not grow with the file."""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from robandit.errors import CorruptFile, FileError, RobanditError
from robandit.files import way_out

if TYPE_CHECKING:
    import polars as pl

BATCH = 131_072  # rows; larger batches exceed the processor's cache and take more memory
FIRST_ROWS = 100


class Reader(ABC):
    """A table that can be read several times."""

    source: str  # the name of the table in messages
    columns: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()  # names that more than one column has
    rows: int | None = None  # the number of rows, if it is known in advance
    unit: str = "row"  # `locate` returns numbers of rows, or of lines ("line")

    @abstractmethod
    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """Yield the columns of ``roles`` (role -> name), renamed to their roles.

        "arm" is text; "reward" and "propensity" are floats, null where they are not numbers. If the source has numbers as text,
        the text is in "reward text" or "propensity text". Other columns keep their types.
        """

    @abstractmethod
    def first_rows(self) -> pl.DataFrame:
        """Return all columns of the first `FIRST_ROWS` rows."""

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """Return the number of each row in `unit`, and whether its line is blank; ``rows`` are ascending, from 0."""
        return {row: (row + 1, False) for row in rows}


class TextReader(Reader):
    """A text file, possibly compressed, whose rows have line numbers."""

    unit = "line"

    def __init__(self, path: Path, source: str, compression: str | None) -> None:
        self._path = path
        self._compression = compression
        self.source = source

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
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
    """Open a file, and decompress its content."""
    with reading_errors(source), gzip.open(path) if compression == "gzip" else path.open("rb") as file:
        yield file  # type: ignore[misc]


def batches_of(frame: pl.LazyFrame, source: str) -> Iterator[pl.DataFrame]:
    """Run a lazy frame batch by batch."""
    with reading_errors(source):
        yield from frame.collect_batches(chunk_size=BATCH)


@contextmanager
def reading_errors(source: str) -> Iterator[None]:
    """Turn errors of Polars and gzip about damaged files into `CorruptFile`, and errors of the system into `FileError`."""
    import polars as pl

    try:
        yield
    except RobanditError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # without errno, the content is wrong
            raise FileError(f"{source} cannot be read: {error.strerror}{way_out(error)}") from error
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, pl.exceptions.PanicException):
            reason = f"it is damaged ({reason})"
        raise CorruptFile(f"{source} cannot be read: {reason}") from error


def not_utf8(content: bytes, error: UnicodeDecodeError) -> str:
    """Return a message that names the byte that is not UTF-8, and a command that converts the file."""
    byte = content[error.start]
    return f"the byte 0x{byte:02x} is not UTF-8; convert the file, for example with iconv -f LATIN1 -t UTF-8"
