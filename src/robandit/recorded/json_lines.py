"""A reader of JSON lines, with one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robandit.errors import CorruptFile, InvalidInput
from robandit.recorded import reader
from robandit.recorded.columns import text_expressions
from robandit.recorded.reader import FIRST_ROWS, TextReader, batches_of, not_utf8

if TYPE_CHECKING:
    import polars as pl

FIRST_LINES = 1_000  # lines that are searched for names of fields


class JsonReader(TextReader):
    """A file of JSON lines. Polars reads it, and Python's parser continues where Polars fails."""

    def __init__(self, path: Path, source: str, compression: str | None) -> None:
        super().__init__(path, source, compression)
        names: dict[str, None] = {}
        for _, row in self._objects(FIRST_LINES):
            names |= dict.fromkeys(row)
        self.columns = tuple(names)

    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        import polars as pl

        selected = text_expressions(roles)
        schema = {name: pl.String() for name in roles.values()}
        if any(char in "*?[" for char in str(self._path)):  # a pattern for Polars: it would read other files
            yield from (batch.select(selected) for batch in self._parsed_by_python(schema, roles["arm"]))
            return
        done = 0
        with suppress(CorruptFile):  # Polars rejects NaN, which Python writes, and numbers too large for a float
            for batch in batches_of(pl.scan_ndjson(self._path, schema=schema), self.source):
                # Python's parser can distinguish an object or a list from a name that looks like one.
                if batch[roles["arm"]].str.contains(r"^[{\[]").any():
                    break
                yield batch.select(selected)
                done += batch.height
            else:
                return
        for batch in self._parsed_by_python(schema, roles["arm"]):
            if done < batch.height:
                yield batch.slice(done).select(selected)
            done = max(0, done - batch.height)

    def first_rows(self) -> pl.DataFrame:
        import polars as pl

        objects = islice(self._objects(), FIRST_ROWS)
        rows = [[_text(each.get(name)) for name in self.columns] for _, each in objects]
        return pl.DataFrame(rows, schema=dict.fromkeys(self.columns, pl.String()), orient="row")

    def _lines(self) -> Iterator[tuple[int, bool]]:
        with self._open() as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    yield line, False

    def _parsed_by_python(self, schema: Mapping[str, pl.DataType], arm: str) -> Iterator[pl.DataFrame]:
        """Yield batches of text from Python's parser. It accepts NaN and large numbers, and errors name the line."""
        import polars as pl

        rows: list[list[str | None]] = []
        for line, row in self._objects():
            if isinstance(row.get(arm), (dict, list)):
                kind = "an object" if isinstance(row[arm], dict) else "a list"
                position = f"{self.source}, line {line:,}"
                raise InvalidInput(f"{position}: the field {arm!r} holds {kind}: it must hold one name")
            rows.append([_text(row.get(name)) for name in schema])
            if len(rows) >= reader.BATCH:
                yield pl.DataFrame(rows, schema=schema, orient="row")
                rows = []
        yield pl.DataFrame(rows, schema=schema, orient="row")

    def _objects(self, most: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the object of each line that is not blank, among the first ``most`` lines."""
        with self._open() as file:
            for line, text in enumerate(islice(file, most), start=1):
                if text.strip():
                    yield line, self._object(line, text)

    def _object(self, line: int, text: bytes) -> dict[str, Any]:
        position = f"{self.source}, line {line:,}"
        try:
            row = json.loads(text.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise CorruptFile(f"{position}: {not_utf8(text, error)}") from None
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{position} is not JSON ({error}): each line must be one object") from None
        if not isinstance(row, dict):
            example = '{"arm": "a", "reward": 1.5}'
            raise CorruptFile(f"{position} is not an object: each line must be one, such as {example}")
        return row


def _text(value: Any) -> str | None:
    """Return a JSON value as text, as Polars does: integers have no decimal point."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # JSON can hold lone surrogates
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value - value == 0.0:
        return format(Decimal(repr(int(value) if value.is_integer() else value)), "f")
    return str(value)
