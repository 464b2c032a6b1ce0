"""A reader of CSV files, which finds the delimiter and names the line of an error."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from robandit.errors import CorruptFile, InvalidInput, RobanditError
from robandit.recorded.columns import text_expressions
from robandit.recorded.reader import FIRST_ROWS, TextReader, batches_of, not_utf8, reading_errors
from robandit.validation import invalid

if TYPE_CHECKING:
    import polars as pl

HEADER = 1 << 20  # the maximal size of the header in bytes
CONTROLS = set(range(32)) - set(b"\t\n\r")
DELIMITERS = (",", ";", "\t", "|")


class CsvReader(TextReader):
    """A text file whose fields are separated by a comma or another character."""

    def __init__(
        self, path: Path, source: str, compression: str | None, delimiter: str | None, columns: Sequence[str]
    ) -> None:
        """Read the header, and find the delimiter that yields the ``columns``."""
        super().__init__(path, source, compression)
        self._header = self._first_record(delimiter)
        self._delimiter = self._find_delimiter(delimiter, columns)
        names = self._split(self._delimiter)
        self.repeated = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
        import polars as pl

        with self._explained_errors():
            self._frame = pl.scan_csv(path, separator=self._delimiter, infer_schema=False, glob=False)
            self.columns = tuple(self._frame.collect_schema().names())

    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        with self._explained_errors():
            yield from batches_of(self._frame.select(text_expressions(roles)), self.source)

    def first_rows(self) -> pl.DataFrame:
        with self._explained_errors():
            return self._frame.head(FIRST_ROWS).collect()

    def _lines(self) -> Iterator[tuple[int, bool]]:
        with self._open() as file:
            records = _records(file)
            next(records, None)  # the header
            for line, record in records:
                yield line, not record.strip(b"\r\n")

    def _first_record(self, delimiter: str | None) -> str:
        with self._open() as file:
            head = file.read(HEADER)
        lines = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="\n")
        record = lines.readline()
        while record.count('"') % 2 and (more := lines.readline()):
            record += more
        if len(head) == HEADER and not record.endswith("\n"):
            raise CorruptFile(f"{self.source} has no line end in its first {HEADER:,} bytes: it is not a table in text")
        allowed = set((delimiter or ",").encode(errors="replace"))
        if controls := sorted(set(record.encode(errors="replace")) & CONTROLS - allowed):
            raise CorruptFile(
                f"{self.source} does not look like a table in text: its first line has the control character "
                f"0x{controls[0]:02x}; if that is the delimiter, name it with delimiter= (--delimiter)"
            )
        if "\r" in record.rstrip("\r\n"):
            raise InvalidInput(
                f"{self.source} ends its lines with a carriage return only, as old Macs did: convert it, for example "
                "with tr '\\r' '\\n'"
            )
        return record.rstrip("\r\n")

    def _split(self, delimiter: str) -> list[str]:
        try:
            return next(csv.reader([self._header], delimiter=delimiter), [])
        except csv.Error as error:
            raise CorruptFile(f"{self.source}, line 1 does not name columns: {error}") from None

    def _find_delimiter(self, given: str | None, columns: Sequence[str]) -> str:
        """Return the given delimiter, the usual one for the file's ending, or the only one that yields the columns."""
        if given is not None:
            delimiter = {"tab": "\t", "\\t": "\t"}.get(given, given)
            if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
                raise invalid("delimiter", given, "one character, such as ';', or 'tab'", owner=self.source)
            return delimiter
        usual = "\t" if any(suffix in (".tsv", ".tab") for suffix in self._path.suffixes) else ","
        if not set(columns) <= set(self._split(usual)):
            for other in DELIMITERS:
                if set(columns) <= set(self._split(other)):
                    return other
        others = [each for each in DELIMITERS if each != usual and each in self._header]
        return others[0] if len(self._split(usual)) == 1 and len(others) == 1 else usual

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """Add the first unreadable line and the reason to `CorruptFile`, if they can be found."""
        try:
            with reading_errors(self.source):
                yield
        except CorruptFile as error:
            raise self._explained(error) from error.__cause__

    def _explained(self, error: CorruptFile) -> CorruptFile:
        with suppress(RobanditError), self._open() as file:
            for line, record in _records(file):
                reason = self._fault(record)
                if reason is not None:
                    return CorruptFile(f"{self.source}, line {line:,}: {reason}")
        return error

    def _fault(self, record: bytes) -> str | None:
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            return not_utf8(record, error)
        if text.count('"') % 2:
            return 'a quote (") is opened here and never closed; put a field with quotes in quotes, and double the quotes inside'
        try:
            fields = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, strict=True), [])
        except csv.Error as error:
            return str(error)
        if len(fields) > len(self.columns) > 0:
            return (
                f"{len(fields)} fields, but the header has {len(self.columns)} columns; write decimals with a point, put names "
                "that contain the delimiter in quotes, or name another delimiter with delimiter= (--delimiter)"
            )
        return None


def _records(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each record of a CSV file and its first line number. A record continues while a quote is open."""
    first = 1
    record = b""
    for line, text in enumerate(file, start=1):
        record += text
        if record.count(b'"') % 2 == 0:
            yield first, record
            first, record = line + 1, b""
    if record:
        yield first, record
