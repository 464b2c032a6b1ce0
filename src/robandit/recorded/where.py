"""Conditions on the rows of a table, such as ``ok = true and latency < 5000``.

The language is small, so that it is safe and reads the same in every format::

    condition   =  comparison | not condition | condition and condition | condition or condition | ( condition )
    comparison  =  column operator value
    operator    =  =  !=  <  <=  >  >=
    value       =  a number | 'text' | true | false | null

``not`` binds before ``and``, and ``and`` before ``or``. A column is a word, or in quotes if its name has blanks or signs; quotes
are ' or ". A quote in a quoted text is written twice.

A column is read as the value on the right asks: as a number, as text, or as true or false (also 1 or 0, in any case of letters). A
date or time is compared with a text in ISO 8601. A number in quotes is text, so ``<`` and the like reject it. A missing value fits
only ``= null``, and a value that cannot be read so fits no comparison, not even ``!=`` or inside ``not``; its row is dropped.
Integers are compared exactly, up to 2^127, unless the column has floats.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robandit.errors import InvalidInput
from robandit.recorded.times import Clock, UnclearTime
from robandit.wording import counted, listed

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Condition", "Filtered", "parse_condition"]

LONGEST = 2_000  # characters of an expression
DEEPEST = 50  # nested "not" and parentheses
TOKEN = re.compile(
    r"\s*(?:(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[^\W\d][\w.]*)|(?P<sign>!=|<=|>=|==|=|<|>|\(|\)))"
)
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
ROUNDED, LARGEST = 2**53, 2**127  # integers from the first on need 128 bits, since floats round them
VALUES: dict[str, Any] = {"true": True, "false": False, "null": None}
A_VALUE = "a number, 'text' in quotes, true, false or null"
A_COLUMN = "a column, 'not' or '('"


@dataclass(frozen=True)
class Filtered:
    """The number of rows that a condition kept and dropped."""

    where: str
    kept: int
    dropped: int

    def __str__(self) -> str:
        """Describe it on one line."""
        return f"--where {self.where[:200]!r} keeps {counted(self.kept, 'row')} and drops {self.dropped:,}"


@dataclass(frozen=True)
class _Comparison:
    column: str
    operator: str
    value: Any


@dataclass(frozen=True)
class _Joined:
    word: str  # "not", "and" or "or"
    parts: tuple[_Comparison | _Joined, ...]


class Condition:
    """A condition on rows; see the module."""

    def __init__(self, text: str, tree: _Comparison | _Joined) -> None:
        """Store a parsed condition; `parse_condition` makes it."""
        self.text = text
        self._tree = tree
        self.columns = tuple(dict.fromkeys(each.column for each in _comparisons(tree)))

    def roles(self) -> dict[str, str]:
        """Return a role for each column that the condition reads; readers rename columns to their roles."""
        return {f"where {i}": name for i, name in enumerate(self.columns)}

    def fits(self, frame: pl.DataFrame) -> pl.Series:
        """Return whether each row fits; the columns have the names of `roles`."""
        import polars as pl

        roles = {name: role for role, name in self.roles().items()}
        expression = _expression(self._tree, roles, dict(frame.schema))
        return frame.select(pl.repeat(value=True, n=pl.len()) & expression.fill_null(value=False)).to_series()


def parse_condition(text: Any, columns: Sequence[str], source: str) -> Condition:
    """Return the condition; raise `InvalidInput` with the place in the text if it cannot be read.

    >>> parse_condition("ok = true and 'time in s' < 5", ["ok", "time in s"], "log.csv").columns
    ('ok', 'time in s')
    """
    text = str.__str__(text) if isinstance(text, str) else None  # a subclass may have its own methods
    if text is None or len(text) > LONGEST:
        rule = f'a text of at most {LONGEST:,} characters, such as "ok = true"'
        raise InvalidInput(f"where must be {rule}", parameter="where", rule=rule)
    return Condition(text, _Parser(text, columns, source).whole())


class _Parser:
    """A recursive descent parser: one method per rule."""

    def __init__(self, text: str, columns: Sequence[str], source: str) -> None:
        self._text, self._columns, self._source = text, columns, source
        self._place = self._depth = 0  # the place of the next token
        self._kind = self._token = ""
        self._end = 0
        self._next()

    def whole(self) -> _Comparison | _Joined:
        tree = self._joined("or")
        if self._kind:
            raise self._error(f"{self._token!r} is not expected here", "write 'and' or 'or' between two comparisons")
        return tree

    def _joined(self, word: str) -> _Comparison | _Joined:
        parts = [self._joined("and") if word == "or" else self._single()]
        while self._is(word):
            self._next()
            parts.append(self._joined("and") if word == "or" else self._single())
        return parts[0] if len(parts) == 1 else _Joined(word, tuple(parts))

    def _single(self) -> _Comparison | _Joined:
        if not self._is("not") and self._token != "(":
            return self._comparison()
        opening = self._token
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error("it is nested too deeply", f"use at most {DEEPEST} parentheses")
        self._next()
        if opening == "(":
            tree = self._joined("or")
            if self._token != ")":
                raise self._error(f"{self._shown()} is not expected here", "close the parenthesis with ')'")
            self._next()
        else:
            tree = _Joined("not", (self._single(),))
        self._depth -= 1
        return tree

    def _comparison(self) -> _Comparison:
        if self._kind not in ("word", "quoted"):
            raise self._error(f"{self._shown()} is not a column", f"write {A_COLUMN} here")
        column = self._unquoted()
        if column not in self._columns:
            raise self._unknown(column)
        self._next()
        operator = {"==": "="}.get(self._token, self._token)
        if self._kind != "sign" or operator not in OPERATORS:
            hint = f"write one of {', '.join(OPERATORS)} and a value after {column!r}, such as {column} = true"
            raise self._error(f"{self._shown()} is not a comparison", hint)
        self._next()
        value = self._value()
        if operator not in ("=", "!=") and (value is None or isinstance(value, bool)):
            raise self._error(f"{self._token} cannot be compared with {operator}", "use = or !=")
        if operator not in ("=", "!=") and isinstance(value, str) and NUMBER.fullmatch(value.strip()):
            hint = f"write {value.strip()} without quotes to compare numbers"
            raise self._error(f"{self._token} is text, and {operator} would compare it letter by letter", hint)
        self._next()
        return _Comparison(column, operator, value)

    def _value(self) -> Any:
        if self._kind == "quoted":
            return self._unquoted()
        if self._kind == "number":
            number = float(self._token)
            if not math.isfinite(number):
                raise self._error(f"{self._token} is too large", "write a smaller number")
            integer = int(self._token) if self._token.lstrip("+-").isdigit() else 0
            return integer if ROUNDED <= abs(integer) < LARGEST else number
        if self._kind == "word" and self._token.lower() in VALUES:
            return VALUES[self._token.lower()]
        hint = f"write {A_VALUE}"
        if self._kind == "word":
            hint = f"text is written in quotes, as '{self._token}'; other values are numbers, true, false and null"
        raise self._error(f"{self._shown()} is not a value", hint)

    def _unknown(self, column: str) -> InvalidInput:
        near = difflib.get_close_matches(column.lower(), [c.lower() for c in self._columns], n=1, cutoff=0.6)
        hint = next((f"did you mean {c!r}? The" for c in self._columns if near and c.lower() == near[0]), "the")
        known = listed([repr(name) for name in self._columns], 20)
        return self._error(f"{self._source} has no column {column!r}", f"{hint} columns are {known}")

    def _unquoted(self) -> str:
        if self._kind != "quoted":
            return self._token
        mark = self._token[0]
        return self._token[1:-1].replace(mark * 2, mark)

    def _shown(self) -> str:
        return repr(self._token[:40]) if self._kind else "the end"

    def _is(self, word: str) -> bool:
        return self._kind == "word" and self._token.lower() == word

    def _next(self) -> None:
        rest = self._text[self._end :]
        self._place = self._end + len(rest) - len(rest.lstrip())
        if not rest.strip():
            self._kind = self._token = ""
            return
        match = TOKEN.match(self._text, self._end)
        if match is None:
            self._token = self._text[self._place]
            wrong = (
                "a quote is opened here and never closed" if self._token in "'\"" else f"{self._token!r} is not allowed"
            )
            raise self._error(wrong, f"write a column, one of {' '.join(OPERATORS)}, and {A_VALUE}")
        self._kind, self._token = str(match.lastgroup), match[str(match.lastgroup)]
        self._end = match.end()

    def _error(self, wrong: str, way_out: str) -> InvalidInput:
        begin = max(0, self._place - 30)
        context = self._text[begin : self._place + 30]
        where = f"where (--where), character {self._place + 1}" + (f", in {context!r}" if context else "")
        return InvalidInput(
            f"{where}: {wrong[:200]}; {way_out}", parameter="where", value=self._text[:200], rule="a condition"
        )


def _comparisons(tree: _Comparison | _Joined) -> list[_Comparison]:
    return [tree] if isinstance(tree, _Comparison) else [each for part in tree.parts for each in _comparisons(part)]


def _expression(tree: _Comparison | _Joined, roles: dict[str, str], schema: dict[str, Any]) -> pl.Expr:
    """Return the condition for Polars, null where a comparison cannot be made."""
    if isinstance(tree, _Comparison):
        role = roles[tree.column]
        return _compared(tree, role, schema[role])
    parts = [_expression(part, roles, schema) for part in tree.parts]
    if tree.word == "not":
        return ~parts[0]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined & part if tree.word == "and" else joined | part
    return joined


def _compared(comparison: _Comparison, role: str, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    column, value = pl.col(role), comparison.value
    if dtype.is_float():
        column = column.fill_nan(None)
    if value is None:
        missing = column.is_null() | (column.str.len_bytes() == 0) if dtype == pl.String else column.is_null()
        return missing if comparison.operator == "=" else ~missing
    if isinstance(value, bool):
        column = _truth(column, dtype)
    elif isinstance(value, int) and (dtype.is_integer() or dtype == pl.String):
        integers = column.str.strip_chars() if dtype == pl.String else column
        exact = _applied(comparison.operator, integers.cast(pl.Int128, strict=False), pl.lit(value, pl.Int128))
        numbers = _number(column, dtype)  # text such as 2e19
        return pl.coalesce(exact, _applied(comparison.operator, numbers, pl.lit(float(value))))
    elif isinstance(value, (int, float)):
        column, value = _number(column, dtype), float(value)
    elif dtype.is_temporal():
        column, value = _instants(column, dtype), _instant(value, comparison.column)
    else:
        column = column.cast(pl.String)
    return _applied(comparison.operator, column, pl.lit(value))


def _applied(operator: str, column: pl.Expr, value: pl.Expr) -> pl.Expr:
    return {
        "=": column.eq,
        "!=": column.ne,
        "<": column.lt,
        "<=": column.le,
        ">": column.gt,
        ">=": column.ge,
    }[operator](value)


def _instants(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return dates and times as instants, in UTC if they have a time zone."""
    import polars as pl

    if not isinstance(dtype, (pl.Date, pl.Datetime)):
        return pl.lit(None, pl.Datetime("ns"))
    if getattr(dtype, "time_zone", None):
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("ns"))


def _instant(text: str, column: str) -> Any:
    import polars as pl

    try:
        time = Clock().read(pl.Series([text]))
    except UnclearTime as error:
        raise InvalidInput(f"where (--where): {column!r} holds times; {error}", parameter="where", value=text) from None
    if not time.dtype.is_temporal():
        hint = "write it in ISO 8601, such as '2013-01-02'"
        raise InvalidInput(f"where (--where): {column!r} holds times, and {text!r} is none: {hint}", parameter="where")
    if getattr(time.dtype, "time_zone", None):
        time = time.dt.replace_time_zone(None)
    return time.cast(pl.Datetime("ns"))[0]


def _number(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    if dtype == pl.String:
        return column.str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)
    if dtype.is_numeric() or dtype == pl.Boolean:
        return column.cast(pl.Float64, strict=False)
    return pl.lit(None, pl.Float64)


def _truth(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    if dtype == pl.Boolean:
        return column
    text = column.str.strip_chars().str.to_lowercase() if dtype == pl.String else _number(column, dtype)
    true, false = (["true", "1"], ["false", "0"]) if dtype == pl.String else ([1.0], [0.0])
    return pl.when(text.is_in(true)).then(statement=True).when(text.is_in(false)).then(statement=False)
