"""Opening a table of recorded rewards: where it is, and which column plays which role."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from robandit.errors import FileError, InvalidInput
from robandit.recorded.cleaning import listed
from robandit.recorded.formats import read_file
from robandit.recorded.frames import read_frame
from robandit.recorded.reader import Reader
from robandit.recorded.records import Records

__all__ = ["open_records"]


def open_records(
    path: Any,
    *,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    negate: bool = False,
    skip_bad: bool = False,
    delimiter: str | None = None,
    spooling: Callable[[int], object] | None = None,
) -> Records:
    """Open a table with one recorded reward per row. Only its first lines are read.

    Parameters
    ----------
    path
        A CSV (also compressed with gzip or zstd), Parquet or JSON lines file, "-" for the standard input, or a polars or pandas
        DataFrame. A polars LazyFrame is run again for every pass.
    arm, reward
        The names of these columns; by default "arm" and "reward".
    time, propensity
        The names of these columns; by default "time" and "propensity", if they exist. Times in text are numbers, or dates and
        times in ISO 8601.
    negate
        Turn costs into rewards: a recorded x counts as -x.
    skip_bad
        Skip rows without a usable arm or reward, and count them. By default they raise an error.
    delimiter
        The character that separates the fields of a CSV file; by default a comma (a tab in .tsv files), or ";", tab or "|" if the
        header shows it.
    spooling
        Called with the number of bytes so far while the standard input is copied to disk.

    Examples
    --------
    >>> import polars as pl
    >>> records = open_records(pl.DataFrame({"arm": ["a", "b", "a"], "cost": [1, 2, 4]}), reward="cost", negate=True)
    >>> [(arm.arm, arm.n, arm.mean) for arm in records.summary().arms]
    [('a', 2, -2.5), ('b', 1, -2.0)]
    """
    names = {"arm": arm, "reward": reward, "time": time, "propensity": propensity}
    columns = (arm or "arm", reward or "reward")

    def records(reader: Reader) -> Records:
        return Records(reader, _roles(reader, names), negate, skip_bad)

    if not isinstance(path, (str, os.PathLike)):
        return records(read_frame(path))
    source, file = str(path), Path(path)
    if source != "-" and (file.is_file() or file.is_dir() or not file.exists()):
        return records(read_file(file, source, delimiter, columns))
    if source == "-":
        source = "the standard input"
        copy = _spool(sys.stdin.buffer, source, spooling)
    else:  # a pipe, which can be read only once
        try:
            with file.open("rb") as pipe:
                copy = _spool(pipe, source, spooling)
        except OSError as error:
            raise FileError(f"{source} cannot be read: {error.strerror}") from error
    try:
        opened = records(read_file(Path(copy), source, delimiter, columns))
    except BaseException:
        _remove(copy)
        raise
    weakref.finalize(opened, _remove, copy)
    return opened


def _roles(reader: Reader, names: Mapping[str, str | None]) -> dict[str, str]:
    """Return role -> column. A named column must exist, and so must the arm and the reward."""
    roles: dict[str, str] = {}
    for role, name in names.items():
        column = role if name is None else name
        if column in reader.columns:
            if column in reader.repeated:
                raise InvalidInput(f"{reader.source} has several columns named {column!r}: rename all but one of them")
            roles[role] = column
        elif name is not None or role in ("arm", "reward"):
            near = difflib.get_close_matches(column.lower(), [c.lower() for c in reader.columns], n=1, cutoff=0.6)
            hint = next((f"; did you mean {c!r}?" for c in reader.columns if near and c.lower() == near[0]), ".")
            raise InvalidInput(
                f"{reader.source} has no column {column!r}: its columns are {listed(reader.columns)}{hint} Name the column of "
                f"the {role} with {role}= (--{role}){_header_hint(reader.columns)}",
                parameter=role,
                value=name,
                rule="a column of the table",
            )
    doubled = [role for role in roles if list(roles.values()).count(roles[role]) > 1]
    if doubled:
        raise InvalidInput(
            f"{' and '.join(doubled)} are both the column {roles[doubled[0]]!r} of {reader.source}: name different columns"
        )
    return roles


def _header_hint(columns: Sequence[str]) -> str:
    if len(columns) == 1 and (mark := re.search(r"[;\t|, :]", columns[0])):
        return f". There is only one column: if {mark[0]!r} separates the fields, name it with delimiter= (--delimiter)"
    if any(re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", column) for column in columns):
        return ". The first line must name the columns; this one looks like data"
    return ""


def _spool(stream: Any, source: str, spooling: Callable[[int], object] | None) -> str:
    """Copy a stream to a temporary file, because it is read more than once; return its name."""
    handle, name = tempfile.mkstemp(prefix="robandit-")
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            while block := stream.read(1 << 20):
                file.write(block)
                size += len(block)
                if spooling is not None:
                    spooling(size)
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
