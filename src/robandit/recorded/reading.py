"""Files and frames as batches of the few columns that are wanted. Memory does not grow with the file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from robandit.errors import CorruptFile, FileError, InvalidInput, RobanditError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CsvReader", "FrameReader", "JsonReader", "Reader", "reader_of"]

BATCH = 131_072  # rows; larger ones are slower (they leave the processor's cache) and take more memory
HEAD = 1 << 20  # bytes; a CSV's header must end here
CONTROLS = set(range(32)) - set(b"\t\n\r")
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
ENDINGS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".tab": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON lines",
}
OTHERS = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save the sheet as CSV",
    b"ARROW1": "an Arrow file: write it as Parquet",
    b"BZh": "packed with bzip2: unpack it first",
    b"\xfd7zXZ": "packed with xz: unpack it first",
    b"SQLite format 3": "a database: export the table as CSV",
    b"%PDF": "a PDF",
    b"\xff\xfe": "text in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "text in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8",
}


class Reader(ABC):
    """A table that can be read from the beginning as often as one likes.

    Attributes
    ----------
    source
        What is read, for people.
    columns
        Their names.
    repeated
        Those that occur more than once.
    rows
        Their number, where that is known beforehand.
    unit
        What `numbers` counts: "line" or "row".
    """

    source: str
    columns: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    rows: int | None = None
    unit: str = "row"

    @abstractmethod
    def batches(self, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """The wanted columns, role -> name, as columns named by their roles.

        "arm" comes as text, "reward" and "propensity" as floats where they are numbers, and null where not; where the source
        says them in text, that text comes along as "reward text". Other roles come as they are.
        """

    def numbers(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """For rows (counted from 0, ascending): the number a person would look for, and whether there is only a blank line."""
        return {row: (row + 1, False) for row in rows}


class FrameReader(Reader):
    """A Parquet file, or a frame in memory."""

    def __init__(self, frame: pl.LazyFrame, source: str, rows: int | None) -> None:
        """Look at the names and types of the columns."""
        self._frame = frame
        self.source = source
        self.rows = rows
        with _polars_errors(self.source):
            self._schema = frame.collect_schema()
        self.columns = tuple(self._schema.names())

    def batches(self, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """See `Reader`."""
        picked = [e for role, name in wanted.items() for e in self._expressions(role, name)]
        yield from _batches(self._frame.select(picked), self.source)

    def _expressions(self, role: str, name: str) -> list[pl.Expr]:
        import polars as pl

        dtype = self._schema[name]
        column = pl.col(name)
        where = f"the column {name!r} of {self.source}"
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise InvalidInput(
                f"{where} holds {dtype}: it must hold {'one name' if role == 'arm' else 'one value'} per row"
            )
        texts = dtype in (pl.String, pl.Categorical, pl.Enum)
        if role == "arm":
            if dtype.is_float():
                column = column.fill_nan(None)
            return [column.cast(pl.String).alias(role)]
        if role in ("reward", "propensity"):
            if dtype.is_temporal():
                raise InvalidInput(
                    f"{where} holds {dtype}: it must hold numbers; turn times into a number of seconds first, in polars with "
                    "dt.total_microseconds() / 1e6"
                )
            if texts:
                return _parsed(column.cast(pl.String), role)
            return [column.cast(pl.Float64).alias(role)]
        return [(column.cast(pl.String) if texts else column).alias(role)]


class CsvReader(Reader):
    """A table in text: comma-separated values, or separated by something else."""

    unit = "line"

    def __init__(
        self, path: Path, source: str, packing: str | None, delimiter: str | None, wanted: Sequence[str]
    ) -> None:
        """Look at the header, and find the delimiter with which the wanted columns are in it."""
        self._path = path
        self._packing = packing
        self.source = source
        if packing == "zstd":  # only Polars can unpack it, and Polars does not count lines
            self.unit = "row"
        self._header = self._first_record(delimiter)
        self._delimiter = self._separator(delimiter, wanted)
        names = self._split(self._delimiter)
        self.repeated = tuple(dict.fromkeys(n for n in names if names.count(n) > 1))
        import polars as pl

        with self._errors():
            self._frame = pl.scan_csv(path, separator=self._delimiter, infer_schema=False)
            self.columns = tuple(self._frame.collect_schema().names())

    def batches(self, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """See `Reader`."""
        import polars as pl

        picked: list[pl.Expr] = []
        for role, name in wanted.items():
            picked += _parsed(pl.col(name), role) if role in ("reward", "propensity") else [pl.col(name).alias(role)]
        with self._errors():
            yield from _batches(self._frame.select(picked), self.source)

    def numbers(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """See `Reader`."""
        if self.unit == "row":
            return super().numbers(rows)
        found: dict[int, tuple[int, bool]] = {}
        wanted = iter(rows)
        row = next(wanted, None)
        with _polars_errors(self.source), _opened(self._path, self._packing) as file:
            for number, (line, record) in enumerate(_records(file)):
                if row is None:
                    break
                if number - 1 == row:
                    found[row] = (line, not record.strip(b"\r\n"))
                    row = next(wanted, None)
        return found

    def _first_record(self, delimiter: str | None) -> str:
        if self._packing == "zstd":
            return self._first_line()
        head = _head(self._path, self._packing, HEAD, self.source)
        text = head.decode("utf-8-sig", errors="replace")
        lines = io.StringIO(text, newline="\n")
        record = lines.readline()
        while record.count('"') % 2 and (more := lines.readline()):
            record += more
        if len(head) == HEAD and not record.endswith("\n"):
            raise CorruptFile(
                f"{self.source} has no end of a line in its first {HEAD:,} bytes: it is not a table in text"
            )
        if "\0" in record:
            raise CorruptFile(f"{self.source} has zero bytes in its first line: it is not a table in text")
        mark = set((delimiter or ",").encode(errors="replace"))
        if controls := sorted(set(record.encode(errors="replace")) & CONTROLS - mark):
            raise CorruptFile(
                f"{self.source} does not look like a table in text: its first line has the control character "
                f"0x{controls[0]:02x}; if that is the delimiter, name it with delimiter= (--delimiter)"
            )
        if "\r" in record.rstrip("\r\n"):
            raise InvalidInput(
                f"{self.source} ends its lines with a carriage return alone, as old Macs did: convert it, for example "
                "with tr '\\r' '\\n'"
            )
        return record.rstrip("\r\n")

    def _first_line(self) -> str:
        import polars as pl

        with _polars_errors(self.source):
            line = pl.scan_csv(
                self._path, has_header=False, separator="\x01", quote_char=None, infer_schema=False, n_rows=1
            )
            return str(line.collect().item())

    def _split(self, delimiter: str) -> list[str]:
        try:
            return next(csv.reader([self._header], delimiter=delimiter), [])
        except csv.Error as error:
            raise CorruptFile(f"{self.source}, line 1 does not name columns: {error}") from None

    def _separator(self, given: str | None, wanted: Sequence[str]) -> str:
        """The delimiter that was given; or that of the ending, unless only another one yields the wanted columns."""
        if given is not None:
            chosen = {"tab": "\t", "\\t": "\t"}.get(given, given)
            if len(chosen) != 1 or not chosen.isascii() or chosen in '"\r\n':
                raise InvalidInput(
                    f"delimiter is {given!r} for {self.source}: it must be one character, such as ';', or 'tab'"
                )
            return chosen
        usual = "\t" if any(s in (".tsv", ".tab") for s in self._path.suffixes) else ","
        if not set(wanted) <= set(self._split(usual)):
            for other in DELIMITERS:
                if set(wanted) <= set(self._split(other)):
                    return other
        if len(self._split(usual)) == 1:
            others = [d for d in DELIMITERS if d != usual and d in self._header]
            if len(others) == 1:
                return others[0]
        return usual

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with _polars_errors(self.source):
                yield
        except CorruptFile as error:
            raise self._explained(error) from error.__cause__

    def _explained(self, error: CorruptFile) -> RobanditError:
        """The first line of which we know why it cannot be read."""
        if self._packing == "zstd":
            return error
        try:
            with _opened(self._path, self._packing) as file:
                for line, record in _records(file):
                    why = self._fault(record)
                    if why is not None:
                        return CorruptFile(f"{self.source}, line {line:,}: {why}")
        except (OSError, EOFError, zlib.error):
            pass
        return error

    def _fault(self, record: bytes) -> str | None:
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            byte = record[error.start]
            return f"the byte 0x{byte:02x} is not UTF-8; convert the file, for example with iconv -f LATIN1 -t UTF-8"
        if text.count('"') % 2:
            return 'a quote (") opens here that nothing closes; a field that holds quotes is put in quotes, with its own doubled'
        try:
            fields = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, strict=True), [])
        except csv.Error as error:
            return f"{error}"
        if len(fields) > len(self.columns) > 0:
            return (
                f"{len(fields)} fields, but the header has {len(self.columns)} columns; if that is a decimal comma, write a point; "
                "if a name holds the delimiter, put it in quotes; if another delimiter is meant, name it with delimiter= "
                "(--delimiter)"
            )
        return None


class JsonReader(Reader):
    """JSON lines: one object per line."""

    unit = "line"

    def __init__(self, path: Path, source: str, packing: str | None) -> None:
        """Look at the first lines for the names of the fields."""
        self._path = path
        self._packing = packing
        self.source = source
        self._unrepeated: set[str] = set()
        names: dict[str, None] = {}
        with _polars_errors(source), _opened(path, packing) as file:
            for line, text in zip(range(1, 1001), file, strict=False):
                if text.strip():
                    names |= dict.fromkeys(self._object(line, text))
        self.columns = tuple(names)

    def batches(self, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """See `Reader`."""
        import polars as pl

        self._refuse_repeated(list(wanted.values()))
        texts = {name: pl.String() for name in wanted.values()}
        done = 0
        try:
            frame = pl.scan_ndjson(self._path, schema=texts)
            for batch in _batches(frame, self.source):
                if (
                    batch[wanted["arm"]].str.contains(r"^[{\[]").any()
                ):  # an object, a list, or a name that looks like one
                    break
                yield self._parsed(batch, wanted)
                done += batch.height
            else:
                return
        except CorruptFile:  # such as NaN, which Python writes, or a number beyond the floats
            pass
        for batch in self._slowly(list(texts), wanted["arm"]):
            if done >= batch.height:
                done -= batch.height
                continue
            yield self._parsed(batch.slice(done), wanted)
            done = 0

    def numbers(self, rows: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """See `Reader`."""
        found: dict[int, tuple[int, bool]] = {}
        wanted = iter(rows)
        row = next(wanted, None)
        count = -1
        with _polars_errors(self.source), _opened(self._path, self._packing) as file:
            for line, text in enumerate(file, start=1):
                if row is None:
                    break
                count += bool(text.strip())
                if count == row:
                    found[row] = (line, False)
                    row = next(wanted, None)
        return found

    def _parsed(self, batch: pl.DataFrame, wanted: Mapping[str, str]) -> pl.DataFrame:
        import polars as pl

        picked: list[pl.Expr] = []
        for role, name in wanted.items():
            picked += _parsed(pl.col(name), role) if role in ("reward", "propensity") else [pl.col(name).alias(role)]
        return batch.select(picked)

    def _refuse_repeated(self, names: list[str]) -> None:
        """Refuse lines that have a wanted field twice: Polars would take the first, and Python the last.

        A name that is written with escapes in one of two places is not noticed.
        """
        names = [name for name in names if name not in self._unrepeated]
        if not names:
            return
        marks = [re.escape(json.dumps(name, ensure_ascii=False).encode()) for name in names]
        twice = [re.compile(mark + rb"[^\n]*" + mark) for mark in marks]
        begun = 1
        with _polars_errors(self.source), _opened(self._path, self._packing) as file:
            while block := file.read(HEAD) + file.readline():  # whole lines
                for name, pattern in zip(names, twice, strict=True):
                    line, counted = begun, 0
                    for found in pattern.finditer(block):  # or a value that reads like the name
                        line += block.count(b"\n", counted, found.start())
                        counted = found.start()
                        ends = block.find(b"\n", found.end())
                        text = block[block.rfind(b"\n", 0, found.start()) + 1 : ends if ends >= 0 else None]
                        if name in self._object(line, text).repeated:
                            raise CorruptFile(
                                f"{self.source}, line {line:,}: the field {name!r} occurs twice; it must occur once"
                            )
                begun += block.count(b"\n")
        self._unrepeated.update(names)

    def _slowly(self, names: list[str], arm: str) -> Iterator[pl.DataFrame]:
        """The same with Python's own parser, which takes more than JSON and knows the line."""
        import polars as pl

        held: dict[str, list[str | None]] = {name: [] for name in names}
        schema = dict.fromkeys(names, pl.String())
        with _polars_errors(self.source), _opened(self._path, self._packing) as file:
            for line, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                row = self._object(line, text)
                if isinstance(row.get(arm), (dict, list)):
                    what = "an object" if isinstance(row[arm], dict) else "a list"
                    raise InvalidInput(
                        f"{self.source}, line {line:,}: the field {arm!r} holds {what}: it must hold one name"
                    )
                for name in names:
                    held[name].append(_said(row.get(name)))
                if len(held[names[0]]) >= BATCH:
                    yield pl.DataFrame(held, schema=schema)
                    held = {name: [] for name in names}
        yield pl.DataFrame(held, schema=schema)

    def _object(self, line: int, text: bytes) -> _Object:
        where = f"{self.source}, line {line:,}"
        try:
            row = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_Object)
        except UnicodeDecodeError as error:
            byte = text[error.start]
            raise CorruptFile(
                f"{where}: the byte 0x{byte:02x} is not UTF-8; convert the file, for example with iconv -f LATIN1 -t UTF-8"
            ) from None
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{where} is not JSON ({error}): every line must be an object of its own") from None
        if not isinstance(row, _Object):
            raise CorruptFile(
                f'{where} is not an object: every line must be one, such as {{"arm": "a", "reward": 1.5}}'
            )
        return row


class _Object(dict[str, Any]):
    """A JSON object that knows which of its fields occur more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = {name for name in names if names.count(name) > 1} if len(self) < len(pairs) else set()


def reader_of(path: Path, source: str, delimiter: str | None, wanted: Sequence[str]) -> Reader:
    """A reader for a file, by its first bytes and its ending."""
    if path.is_dir():
        raise FileError(f"{source} is a folder: name a file in it")
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror}") from error
    if not start:
        raise InvalidInput(f"{source} is empty (0 bytes): it must hold a header and rows")
    packing = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}.get(start[:2])
    if packing == "gzip":
        start = _head(path, packing, 64, source)  # of the content
        if not start:
            raise InvalidInput(f"{source} is empty once unpacked: it must hold a header and rows")
    for magic, what in OTHERS.items():
        if start.startswith(magic):
            raise InvalidInput(f"{source} is {what}; CSV, Parquet and JSON lines can be read")
    ending = next((ENDINGS[s.lower()] for s in reversed(path.suffixes) if s.lower() in ENDINGS), None)
    if start.startswith(b"PAR1"):
        if packing:
            raise InvalidInput(f"{source} is a packed Parquet file: unpack it first")
        if delimiter is not None:
            raise InvalidInput(
                f"{source} is a Parquet file, which has no delimiter: leave delimiter= (--delimiter) out"
            )
        return _parquet(path, source)
    if ending == "Parquet":
        raise CorruptFile(f"{source} is not a Parquet file: it does not begin as one")
    if delimiter is None and (
        ending == "JSON lines" or (ending is None and start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["))
    ):
        if packing != "zstd" and start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            raise CorruptFile(
                f"{source} is a JSON array: write it as one object per line, in pandas with to_json(orient='records', lines=True)"
            )
        if packing == "zstd":
            raise InvalidInput(f"{source} is packed with zstd: unpack it first (unzstd), only CSV is read packed so")
        return JsonReader(path, source, packing)
    return CsvReader(path, source, packing, delimiter, wanted)


def _parquet(path: Path, source: str) -> FrameReader:
    import polars as pl

    with _polars_errors(source):
        frame = pl.scan_parquet(path)
        rows = int(frame.select(pl.len()).collect().item())
    return FrameReader(frame, source, rows)


def _parsed(text: pl.Expr, role: str) -> list[pl.Expr]:
    import polars as pl

    return [text.cast(pl.Float64, strict=False).alias(role), text.alias(f"{role} text")]


def _batches(frame: pl.LazyFrame, source: str) -> Iterator[pl.DataFrame]:
    with _polars_errors(source):
        yield from frame.collect_batches(chunk_size=BATCH)


@contextmanager
def _polars_errors(source: str) -> Iterator[None]:
    """Turn what a damaged file makes Polars say into an error of ours."""
    import polars as pl

    try:
        yield
    except RobanditError:
        raise
    except (pl.exceptions.PolarsError, EOFError, zlib.error) as error:
        raise CorruptFile(f"{source} cannot be read: {_first_line(error)}") from error
    except OSError as error:
        if error.errno is None:  # from Polars or gzip: the content, not the disk
            raise CorruptFile(f"{source} cannot be read: {_first_line(error)}") from error
        raise FileError(f"{source} cannot be read: {error.strerror}") from error
    except pl.exceptions.PanicException as error:
        raise CorruptFile(f"{source} cannot be read: it is damaged ({_first_line(error)})") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _opened(path: Path, packing: str | None) -> IO[bytes]:
    return gzip.open(path, "rb") if packing == "gzip" else path.open("rb")  # type: ignore[return-value]


def _head(path: Path, packing: str | None, size: int, source: str) -> bytes:
    with _polars_errors(source), _opened(path, packing) as file:
        return file.read(size)


def _records(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """A CSV's records, each with the number of the line on which it begins. A record goes on while a quote is open."""
    begun = 1
    record = b""
    for line, text in enumerate(file, start=1):
        record += text
        if record.count(b'"') % 2 == 0:
            yield begun, record
            begun, record = line + 1, b""
    if record:
        yield begun, record


def _said(value: Any) -> str | None:
    """A JSON value in text, as Polars would put it: whole numbers without a point."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # JSON can say halves of characters
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value - value == 0.0:
        return format(Decimal(repr(int(value) if value.is_integer() else value)), "f")
    return str(value)
