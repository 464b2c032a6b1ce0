"""Conditions on the rows of a table, such as ``ok = true and latency < 5000``, in the language of SQL.

Polars parses and evaluates the condition. Only comparisons of columns with values are allowed, joined with and, or, not and
parentheses: SQL text could otherwise read files (``in (select ... from read_csv(...))``). So every token is checked first.

A column is read as its value asks, so that a condition means the same in every format: as a number, as text, or as true or false
(also 1 or 0). A value that cannot be read so is missing, and a missing value fits only ``is null``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robandit.errors import InvalidInput
from robandit.hints import close, question
from robandit.wording import counted, listed

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Condition", "Filtered", "parse_condition"]

LONGEST = 2_000  # characters of a condition
ROUNDED = 2**53  # floats round integers from here on
# A quote directly after a word could start a text with other rules, such as E'\'', and hide tokens from this check.
TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"""
    r"""|(?P<word>[^\W\d]\w*)(?!\w|['"])|(?P<sign>[=!<>]+|[(),]))"""
)
WORDS = {"and", "or", "not", "in", "between", "like", "ilike", "is", "null", "true", "false"}
TYPES = {"date", "timestamp"}  # before a text; otherwise they may be columns
OPENING = {"and", "or", "not", "in", "between"}  # words before a parenthesis; any other word would be a function
A_VALUE = "a number, 'text', true, false, date '2024-01-31' or timestamp '2024-01-31 12:00:00'"
EXAMPLE = """ok = true and "response time" < 5"""


@dataclass(frozen=True)
class Filtered:
    """The number of rows that a condition kept and dropped."""

    where: str
    kept: int
    dropped: int

    def __str__(self) -> str:
        return f"--where {self.where[:200]!r} keeps {counted(self.kept, 'row')} and drops {self.dropped:,}"


class Condition:
    """A condition on rows; see the module. `parse_condition` makes it."""

    def __init__(self, text: str, expression: pl.Expr, kinds: dict[str, str]) -> None:
        """Store the parsed condition, and the kind of value that each of its columns is compared with."""
        self.text = text
        self._expression, self._kinds = expression, kinds
        self.columns = tuple(kinds)

    def roles(self) -> dict[str, str]:
        """Return a role for each column that the condition reads; readers rename columns to their roles."""
        return {f"where {i}": name for i, name in enumerate(self.columns)}

    def fits(self, frame: pl.DataFrame) -> pl.Series:
        """Return whether each row fits; the columns have the names of `roles`."""
        import polars as pl

        columns = [self._read(role, name, frame.schema[role]).alias(name) for role, name in self.roles().items()]
        try:
            fits = frame.select(columns).select(self._expression.alias("fits")).to_series()
        except pl.exceptions.PolarsError as error:
            raise _refused(self.text, _first_line(error), f"compare each column with {A_VALUE}") from None
        if fits.dtype != pl.Boolean:
            hint = f"write a comparison, such as {self.columns[0]} = true"
            raise _refused(self.text, f"it is not true or false, but {fits.dtype}", hint)
        return fits.fill_null(value=False)

    def _read(self, role: str, name: str, dtype: pl.DataType) -> pl.Expr:
        """Return a column as the condition compares it, with null for missing values."""
        import polars as pl

        column, kind = pl.col(role), self._kinds[name]
        if kind and dtype.is_temporal() != (kind == "time"):
            hint = "compare columns of times with timestamp '2024-01-31 12:00:00' (in UTC), and no others"
            raise _refused(self.text, f"{name!r} holds {dtype.base_type()}, and is compared with {kind}", hint)
        if isinstance(dtype, pl.Datetime) and dtype.time_zone:
            return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        if dtype.is_float():
            column = column.fill_nan(None)
        if dtype == pl.String:
            column = column.replace("", None)
            trimmed = column.str.strip_chars()
            if kind == "a truth value":
                return trimmed.str.to_lowercase().replace_strict(
                    {"true": True, "1": True, "false": False, "0": False}, default=None, return_dtype=pl.Boolean
                )
            if kind in ("a number", "a large integer"):
                number = trimmed.cast(pl.Int128 if kind == "a large integer" else pl.Float64, strict=False)
                return number if kind == "a large integer" else number.fill_nan(None)
            return column
        if kind == "a truth value" and dtype.is_numeric():
            return pl.when(column == 1).then(statement=True).when(column == 0).then(statement=False)
        if kind in ("a number", "a large integer") and dtype == pl.Boolean:
            return column.cast(pl.Int8)
        return column.cast(pl.String) if kind == "text" else column


def parse_condition(text: Any, columns: Sequence[str], source: str) -> Condition:
    """Return the condition; raise `InvalidInput` with the reason and the way out if it cannot be read.

    >>> parse_condition('ok = true and "time in s" < 5', ["ok", "time in s"], "log.csv").columns
    ('ok', 'time in s')
    """
    import polars as pl

    if not isinstance(text, str) or len(text) > LONGEST:
        rule = f'a text of at most {LONGEST:,} characters, such as "ok = true"'
        raise InvalidInput(f"where must be {rule}", parameter="where", rule=rule)
    kinds, sql = _checked(text, columns, source)
    try:
        # In parentheses, because "ok true" alone is a column and its new name.
        expression = pl.sql_expr(f"({sql})")
    except pl.exceptions.PolarsError as error:
        raise _refused(text, _first_line(error), f"write for example {EXAMPLE}") from None
    return Condition(text, expression, kinds)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _checked(text: str, columns: Sequence[str], source: str) -> tuple[dict[str, str], str]:
    """Return the columns of a condition with the kind of value that each is compared with, and the condition for Polars.

    All but comparisons are refused. Columns are put in quotes, because some names, such as current_date, mean other things in SQL.
    """
    kinds: dict[str, set[str]] = {}
    parts = []
    column = before = ""
    end = depth = 0
    valued = False  # whether the token before is a value
    while text[end:].strip():
        token = TOKEN.match(text, end)
        if token is None:
            place = text[end:].lstrip()[:20]
            raise _refused(text, f"{place!r} is not allowed", f"write columns, comparisons and {A_VALUE}")
        end, written, kind = token.end(), token[0].strip(), ""
        depth += (written == "(") - (written == ")")
        if depth < 0:
            raise _refused(text, "')' closes nothing", "remove it, or open a parenthesis before")
        word = written.lower() if token["word"] else ""
        compared = bool(before) and set(before) <= set("=!<>")
        typed = word in TYPES and text[end:].lstrip().startswith("'")
        if token["quoted"] or (word and word not in WORDS and not typed):
            column = written[1:-1].replace('""', '"') if token["quoted"] else written
            if word and text[end:].lstrip().startswith("("):
                raise _function(text, written)
            if column not in columns:
                raise _unknown(text, column, columns, source, value=compared or bool(token["quoted"]))
            if compared:
                raise _refused(text, f"{written} is a column", f"compare a column with {A_VALUE}")
            kinds.setdefault(column, set())
            written = _quoted(column)
        elif written == "(" and before and before not in OPENING and before not in ("(", ","):
            raise _function(text, before)
        elif valued and set(written) <= set("=!<>"):
            hint = f"write a column before {written}, perhaps in double quotes"
            raise _refused(text, f"{before[:40]} is a value", hint)
        elif word in ("true", "false"):
            kind = "a truth value"
        elif token["text"]:
            kind = "time" if before in TYPES else "text"
        elif token["number"]:
            large = written.lstrip("+-").isdigit() and abs(int(written)) >= ROUNDED
            kind = "a large integer" if large else "a number"
        if kind and column:
            kinds[column].add(kind)
        parts.append(written)
        before, valued = word or written, bool(kind)
    if not kinds:
        raise _refused(text, "it names no column", f"write for example {EXAMPLE}")
    return {name: _one_kind(text, name, each) for name, each in kinds.items()}, " ".join(parts)


def _one_kind(text: str, column: str, kinds: set[str]) -> str:
    if kinds == {"a number", "a large integer"}:
        return "a large integer"
    if len(kinds) > 1:
        raise _refused(text, f"{column!r} is compared with {' and '.join(sorted(kinds))}", "use values of one kind")
    return next(iter(kinds), "")


def _function(text: str, name: str) -> InvalidInput:
    return _refused(text, f"{name[:40]}(...) is a function", "filter the table first; functions are not supported")


def _unknown(text: str, column: str, columns: Sequence[str], source: str, *, value: bool) -> InvalidInput:
    hint = f"text is written as '{column[:40]}', in single quotes; " if value else ""
    known = listed([repr(name) for name in columns], 20)
    wrong = f"{source} has no column {column[:200]!r}{question([repr(each) for each in close(column, columns)])}"
    return _refused(text, wrong, f"{hint}the columns are {known}")


def _refused(text: str, wrong: str, way_out: str) -> InvalidInput:
    message = f"where (--where) {text[:200]!r}: {wrong}; {way_out}"
    return InvalidInput(message, parameter="where", value=text[:200], rule="a condition")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
