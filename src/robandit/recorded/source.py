"""Open a table of recorded rewards: recognise its format and assign roles to its columns."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robandit.errors import CorruptFile, FileError, InvalidInput, formatted
from robandit.files import named, shown
from robandit.hints import close, question
from robandit.recorded.csv_table import CsvReader
from robandit.recorded.frames import read_frame, read_parquet
from robandit.recorded.json_lines import JsonReader
from robandit.recorded.reader import Reader, opened
from robandit.recorded.records import Records
from robandit.recorded.where import parse_condition
from robandit.validation import choice, flag, text
from robandit.wording import joined, listed

if TYPE_CHECKING:
    import polars as pl

ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "CSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON lines"),
}
EXAMPLES = {"flights": "minutes late at arrival, minimised, by carrier; flights from New York, 2013"}
"""Names and descriptions of the example data sets in Robandit."""

UTF_16 = "text in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8"
UNREADABLE = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet: unzip it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save the sheet as CSV",
    b"ARROW1": "an Arrow file: write it as Parquet",
    b"BZh": "compressed with bzip2: decompress it first",
    b"\xfd7zXZ": "compressed with xz: decompress it first",
    b"\x28\xb5": "compressed with zstd: decompress it first (unzstd)",
    b"SQLite format 3": "a database: export the table as CSV",
    b"%PDF": "a PDF",
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}


def open_records(
    path: Any,
    *,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    minimize: bool = False,
    skip_bad: bool = False,
    where: str | None = None,
    join_names: bool = False,
    delimiter: str | None = None,
) -> Records:
    """Open a table with one recorded reward per row. Only its first lines are read.

    Parameters
    ----------
    path
        A CSV, Parquet or JSON lines file, "-" for the standard input, or a polars or pandas DataFrame. CSV and JSON lines may be
        compressed with gzip. A polars LazyFrame is run again for every pass.
    arm, reward
        The names of these columns; by default "arm" and "reward".
    time, propensity
        The names of these columns; by default "time" and "propensity", if they exist. A time in text is a number, or a date or
        time in ISO 8601. The default "propensity" is not used if it has no value in any row.
    minimize
        The rewards are costs. They keep their sign and unit, and the best arm has the lowest mean.
    skip_bad
        Skip rows without a usable arm, reward or time, and count them. By default they raise an error.
    where
        Read only rows that fit this condition, such as ``"ok = true and model != 'old'"``; see `robandit.recorded.where`.
    join_names
        Read names of arms that differ only by case or space as one arm, with the most frequent spelling.
    delimiter
        The character that separates the fields of a CSV file. The default is a comma (a tab in .tsv files), or ";", tab or "|" if
        the header contains it.

    Examples
    --------
    >>> import polars as pl
    >>> records = open_records(pl.DataFrame({"arm": ["a", "b", "a"], "cost": [1, 2, 4]}), reward="cost", minimize=True)
    >>> [(arm.arm, arm.n, arm.mean) for arm in records.summary().arms], records.minimize
    ([('a', 2, 2.5), ('b', 1, 2.0)], True)
    """
    names = {"arm": arm, "reward": reward, "time": time, "propensity": propensity}
    for role, column in names.items():
        names[role] = None if column is None else text(column, role, "a string, or None", owner="open_records")
    arm, reward = names["arm"], names["reward"]
    delimiter = None if delimiter is None else text(delimiter, "delimiter", "a string, or None", owner="open_records")
    skip_bad = flag(skip_bad, "skip_bad", owner="open_records")
    join_names = flag(join_names, "join_names", owner="open_records")
    minimize = flag(minimize, "minimize", owner="open_records")

    def records(reader: Reader) -> Records:
        roles = _roles(reader, names)
        condition = None if where is None else parse_condition(where, reader.columns, reader.source)
        for name in () if condition is None else condition.columns:
            if name in reader.repeated:
                raise InvalidInput(f"{reader.source} has several columns named {name!r}: rename all but one of them")
        if names["propensity"] is None and "propensity" in roles and _has_no_propensity(reader, roles):
            del roles["propensity"]
        return Records(reader, roles, skip_bad, minimize, condition, join_names)

    def read_file(file: Path, source: str) -> Records:
        return records(_read_file(file, source, delimiter, (arm or "arm", reward or "reward")))

    if not isinstance(path, (str, os.PathLike)):
        return records(read_frame(path))
    file = named(path)
    source = shown(file)
    if re.match("https?://", str(path), re.IGNORECASE):
        raise InvalidInput(
            "path is a URL: it must be a file; download it (curl -L URL | robandit diagnose - ...), or pass a data frame "
            "(polars.read_csv(URL))",
            parameter="path",
            rule="a file",
        )
    if str(file) == "-":
        source = "the standard input"
        copy = _spool(sys.stdin.buffer, source)
    elif not _is_stream(file, source):
        return read_file(file, source)
    else:  # a pipe can be read only once
        with opened(file, None, source) as pipe:
            copy = _spool(pipe, source)
    try:
        table = read_file(Path(copy), source)
    except BaseException:
        _remove(copy)
        raise
    weakref.finalize(table, _remove, copy)
    return table


def _is_stream(file: Path, source: str) -> bool:
    """Return whether this is a pipe. Devices are rejected, because some never end."""
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError):
        return False  # the error is raised when the file is opened
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        raise FileError(f"{source} cannot be read: it is a device; name a file, or - for standard input")
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def example(name: str, *, where: str | None = None) -> Records:
    """Return the records of an example data set.

    Parameters
    ----------
    name
        "flights" has 327,317 flights from New York in 2013. The arm is the carrier, the cost is the lateness in minutes, and the
        time is the day. flights.md, next to the data, names the source.
    where
        See `open_records`.

    Examples
    --------
    >>> records = example("flights")
    >>> records.source, records.minimize, records.time
    ('the example flights', True, 'day')
    """
    choice(name, "name", EXAMPLES)
    where = None if where is None else text(where, "where")
    file = Path(__file__).with_name(f"{name}.parquet")
    records = open_records(file, arm="carrier", reward="lateness", time="day", minimize=True, where=where)
    records.source = f"the example {name}"
    return records


def _read_file(path: Path, source: str, delimiter: str | None, columns: Sequence[str]) -> Reader:
    """Return a reader that fits the first bytes and the ending; ``columns`` help to find the delimiter of a CSV file."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:  # Polars takes only such names
        raise FileError(f"{source} cannot be read: its name is not UTF-8; rename it") from error
    if os.path.isdir(path):  # Path.is_dir raises for names that are too long
        raise FileError(f"{source} is a folder: name a file in it")
    with opened(path, None, source) as file:
        start = file.read(64)
    if not start:
        raise InvalidInput(f"{source} is empty (0 bytes): it must hold a header and rows")
    compression = "gzip" if start.startswith(b"\x1f\x8b") else None
    if compression:
        with opened(path, compression, source) as file:
            start = file.read(64)
        if not start:
            raise InvalidInput(f"{source} is empty once decompressed: it must hold a header and rows")
    for magic, description in UNREADABLE.items():
        if start.startswith(magic):
            raise InvalidInput(f"{source} is {description}; CSV, Parquet and JSON lines can be read")
    ending = next((ENDINGS[each.lower()] for each in reversed(path.suffixes) if each.lower() in ENDINGS), None)
    if start.startswith(b"PAR1"):
        if compression:
            raise InvalidInput(f"{source} is a compressed Parquet file: decompress it first")
        if delimiter is not None:
            raise InvalidInput(f"{source} is a Parquet file, which has no delimiter: omit delimiter= (--delimiter)")
        return read_parquet(path, source)
    if ending == "Parquet":
        raise CorruptFile(f"{source} is not a Parquet file: its first bytes differ")
    content = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if delimiter is None and (ending == "JSON lines" or (ending is None and content[:1] in (b"{", b"["))):
        if content.startswith(b"["):
            raise CorruptFile(
                f"{source} is a JSON array: write one object per line, in pandas with to_json(orient='records', lines=True)"
            )
        return JsonReader(path, source, compression)
    return CsvReader(path, source, compression, delimiter, columns)


def _roles(reader: Reader, names: Mapping[str, str | None]) -> dict[str, str]:
    """Return a dictionary from roles to columns. Named columns, the arm and the reward must exist."""
    roles: dict[str, str] = {}
    for role, name in names.items():
        column = role if name is None else name
        if column in reader.columns:
            if column in reader.repeated:
                raise InvalidInput(f"{reader.source} has several columns named {column!r}: rename all but one of them")
            roles[role] = column
        elif name is not None or role in ("arm", "reward"):
            columns = listed([formatted(name) for name in reader.columns], 10)
            hint = question([repr(each) for each in close(column, reader.columns)])
            raise InvalidInput(
                f"{reader.source} has no column {formatted(column)}{hint}: its columns are {columns}. "
                f"Name the column of the {role} with {role}= (--{role}){_header_hint(reader.columns)}",
                parameter=role,
                value=name,
                rule="a column of the table",
            )
    doubled = [role for role in roles if list(roles.values()).count(roles[role]) > 1]
    if doubled:
        raise InvalidInput(
            f"{joined(doubled)} have the same column {roles[doubled[0]]!r} of {reader.source}: name different columns"
        )
    return roles


def _has_no_propensity(reader: Reader, roles: Mapping[str, str]) -> bool:
    """Return whether the propensity is missing in all rows, as in the log of a policy without random choices."""
    if _has_values(reader.first_rows()[roles["propensity"]]):
        return False  # without reading all rows
    needed = {"arm": roles["arm"], "propensity": roles["propensity"]}
    batches = reader.batches(needed)
    return not any(
        _has_values(batch["propensity text" if "propensity text" in batch else "propensity"]) for batch in batches
    )


def _has_values(column: pl.Series) -> bool:
    """Return whether a column has a value other than null, NaN and blanks."""
    import polars as pl

    given = (column.fill_nan(None) if column.dtype.is_float() else column).drop_nulls()
    if given.dtype == pl.String:
        given = given.filter(~given.str.strip_chars().str.to_lowercase().is_in(["", "nan"]))
    return given.len() > 0


def _header_hint(columns: Sequence[str]) -> str:
    if len(columns) == 1 and (mark := re.search(r"[;\t|, :]", columns[0])):
        return f". There is only one column: if {mark[0]!r} separates the fields, name it with delimiter= (--delimiter)"
    if any(re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", column) for column in columns):
        return ". The first line must name the columns; this one looks like data"
    return ""


def _spool(stream: Any, source: str) -> str:
    """Copy a stream, which can be read only once, to a temporary file, and return the name of the file."""
    handle, name = tempfile.mkstemp(prefix="robandit-")
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            while block := stream.read(1 << 20):
                file.write(block)
                size += len(block)
    except BaseException as error:
        _remove(name)
        if isinstance(error, OSError):
            raise FileError(
                f"{source} cannot be copied to {Path(name).parent}: {error.strerror} after {size:,} bytes; free space there, or "
                "set TMPDIR to a folder with space"
            ) from error
        raise
    return name


def _remove(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
