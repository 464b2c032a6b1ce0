"""A reader of JSON lines, with one object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robandit.errors import CorruptFile, InvalidInput
from robandit.recorded import reader
from robandit.recorded.columns import text_expressions
from robandit.recorded.reader import FIRST_ROWS, TextReader, batches_of, not_utf8

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 20  # bytes per search
FIRST_LINES = 1_000  # lines that are searched for names of fields


class JsonReader(TextReader):
    """A file of JSON lines. Polars reads it, and Python's parser continues where Polars fails."""

    def __init__(self, path: Path, source: str, compression: str | None) -> None:
        """Collect the names of the fields from the first lines."""
        super().__init__(path, source, compression)
        self._unrepeated: set[str] = set()
        names: dict[str, None] = {}
        with self._open() as file:
            for line, text in zip(range(1, FIRST_LINES + 1), file, strict=False):
                if text.strip():
                    names |= dict.fromkeys(self._object(line, text))
        self.columns = tuple(names)

    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """See `Reader`."""
        import polars as pl

        self._reject_repeated(list(roles.values()))
        selected = text_expressions(roles)
        schema = {name: pl.String() for name in roles.values()}
        if any(char in "*?[" for char in str(self._path)):  # a pattern for Polars: it would read other files
            yield from (batch.select(selected) for batch in self._parsed_by_python(list(schema), roles["arm"]))
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
        for batch in self._parsed_by_python(list(schema), roles["arm"]):
            if done < batch.height:
                yield batch.slice(done).select(selected)
            done = max(0, done - batch.height)

    def first_rows(self) -> pl.DataFrame:
        """See `Reader`."""
        import polars as pl

        with self._open() as file:
            lines = ((line, text) for line, text in enumerate(file, start=1) if text.strip())
            objects = [self._object(line, text) for _, (line, text) in zip(range(FIRST_ROWS), lines, strict=False)]
        rows = [[_text(each.get(name)) for name in self.columns] for each in objects]
        return pl.DataFrame(rows, schema=dict.fromkeys(self.columns, pl.String()), orient="row")

    def _lines(self) -> Iterator[tuple[int, bool]]:
        with self._open() as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    yield line, False

    def _reject_repeated(self, names: list[str]) -> None:
        """Reject lines with a repeated field: Polars would use its first value, and Python its last.

        A repeated field is not detected if one of its names is written with escapes.
        """
        names = [name for name in names if name not in self._unrepeated]
        if not names:
            return
        keys = [re.escape(json.dumps(name, ensure_ascii=False).encode()) for name in names]
        patterns = [re.compile(key + rb"[^\n]*" + key) for key in keys]
        first_line = 1
        with self._open() as file:
            while block := file.read(BLOCK) + file.readline():
                for name, pattern in zip(names, patterns, strict=True):
                    line, counted = first_line, 0
                    for match in pattern.finditer(block):  # the match may be a value; the parser decides
                        line += block.count(b"\n", counted, match.start())
                        counted = match.start()
                        end = block.find(b"\n", match.end())
                        text = block[block.rfind(b"\n", 0, match.start()) + 1 : end if end >= 0 else None]
                        if name in self._object(line, text).repeated:
                            raise CorruptFile(
                                f"{self.source}, line {line:,}: the field {name!r} occurs twice; it must occur once"
                            )
                first_line += block.count(b"\n")
        self._unrepeated.update(names)

    def _parsed_by_python(self, names: list[str], arm: str) -> Iterator[pl.DataFrame]:
        """Yield batches of text from Python's parser. It accepts NaN and large numbers, and errors name the line."""
        import polars as pl

        rows: list[list[str | None]] = []
        schema = dict.fromkeys(names, pl.String())
        with self._open() as file:
            for line, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                row = self._object(line, text)
                if isinstance(row.get(arm), (dict, list)):
                    kind = "an object" if isinstance(row[arm], dict) else "a list"
                    position = f"{self.source}, line {line:,}"
                    raise InvalidInput(f"{position}: the field {arm!r} holds {kind}: it must hold one name")
                rows.append([_text(row.get(name)) for name in names])
                if len(rows) >= reader.BATCH:
                    yield pl.DataFrame(rows, schema=schema, orient="row")
                    rows = []
        yield pl.DataFrame(rows, schema=schema, orient="row")

    def _object(self, line: int, text: bytes) -> _Object:
        position = f"{self.source}, line {line:,}"
        try:
            row = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_Object)
        except UnicodeDecodeError as error:
            raise CorruptFile(f"{position}: {not_utf8(text, error)}") from None
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{position} is not JSON ({error}): each line must be one object") from None
        if not isinstance(row, _Object):
            example = '{"arm": "a", "reward": 1.5}'
            raise CorruptFile(f"{position} is not an object: each line must be one, such as {example}")
        return row


class _Object(dict[str, Any]):
    """A JSON object with the set of its repeated fields."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = {name for name in names if names.count(name) > 1} if len(self) < len(pairs) else set()


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
