"""GET log: the events of an experiment as a stream, as NDJSON, CSV or Parquet.

Pages of events are read in another thread with a reader of its own, so a long log neither fills the memory nor stops other calls.
"""

from __future__ import annotations

import asyncio
import csv
import functools
import io
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robandit.decisions.events import decoded, payload_of
from robandit.errors import Overloaded, StoreError
from robandit.service import bodies
from robandit.service.http import Answer, Request, integer
from robandit.service.problems import wrong_value
from robandit.service.state import State
from robandit.storage import Event, Reader, Store

PAGE = 2_000
AT_ONCE = 250  # rows that are written by one call: contexts have up to 64 KiB
MOST_STREAMS = 16
PART = 1 << 18  # bytes of an answer that wait for the client
FORMATS = {
    "ndjson": b"application/x-ndjson",
    "csv": b"text/csv; charset=utf-8",
    "parquet": b"application/vnd.apache.parquet",
}
COLUMNS = bodies.LogRow.__struct_fields__


async def log(state: State, request: Request) -> Answer:
    """Read the log. Streams all events, or only the rewards that were learned."""
    query = request.query
    form = _choice(query.get("format", "ndjson"), "format", tuple(FORMATS))
    learned = _choice(query.get("learned", "false"), "learned", ("true", "false")) == "true"
    after = integer(query.get("after", "0"), "after")
    most = integer(query["limit"], "limit") if "limit" in query else None
    if state.streams >= MOST_STREAMS:
        raise Overloaded(f"{state.streams} logs are being read: try again in a second")
    experiment, last = await state.engine.read(request.parameters[0], lambda seen: (seen, seen.seq))
    pages = _pages(state.engine.store, experiment.number, after, last, learned, most)
    streams = {"ndjson": _ndjson, "csv": _csv, "parquet": _parquet}
    headers = (
        (b"robandit-minimize", b"true" if experiment.settings.minimize else b"false"),
        (b"robandit-seq", str(last).encode()),
        (b"content-disposition", f'attachment; filename="{experiment.name}.{form}"'.encode()),
    )
    return Answer(200, _counted(state, streams[form](pages)), FORMATS[form], headers)


async def _counted(state: State, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    state.streams += 1
    try:
        async for part in parts:  # with long contexts, it has up to 16 MB
            for first in range(0, len(part), PART):
                yield part[first : first + PART]
    finally:
        state.streams -= 1
        await parts.aclose()


def _choice(given: str, name: str, allowed: Sequence[str]) -> str:
    if given not in allowed:
        raise wrong_value(name, given, f"one of {', '.join(allowed)}")
    return given


def row_of(event: Event) -> bodies.LogRow:
    """Return an event as a row of the log."""
    payload: Any = payload_of(event)
    value = getattr(payload, "value", None)
    propensity = getattr(payload, "propensity", None)
    context = getattr(payload, "context", msgspec.UNSET)
    return bodies.LogRow(
        seq=event.seq,
        time=event.time,
        kind=event.kind,
        id=event.id,
        arm=getattr(payload, "arm", None),
        reward=value,
        learned=value is not None and event.kind in ("rewarded", "expired"),
        propensity=None if propensity == "unknown" else propensity,
        decided=getattr(payload, "decided", None),
        # Not as Python values: to write or to free a page of them takes up to half a second.
        context=None if context is msgspec.UNSET else msgspec.Raw(bodies.encode(decoded(context))),
    )


async def _pages(
    store: Store, number: int, after: int, last: int, learned: bool, most: int | None
) -> AsyncIterator[list[bodies.LogRow]]:
    """Yield the rows after a number, up to the last event that was stored when the call came."""
    left, begun = last if most is None else most, False
    while after < last and left > 0:
        page = functools.partial(_page, number=number, after=after, last=last, learned=learned, begun=begun)
        after, rows = await asyncio.to_thread(store.read, page)
        begun = True
        yield rows[:left]
        left -= len(rows[:left])


def _page(
    reader: Reader, number: int, after: int, last: int, learned: bool, begun: bool
) -> tuple[int, list[bodies.LogRow]]:
    """Return the number of the last event of the next page, and its rows. The first page begins after archived events."""
    events = [event for event in reader.events(number, after, min(PAGE, last - after)) if event.seq <= last]
    if begun and (events[0].seq - 1 if events else reader.archived(number)) > after:
        raise StoreError(f"events after {after} were archived while the log was read: read it again")
    rows = [row for event in events if (row := row_of(event)).learned or not learned]
    return (events[-1].seq if events else last), rows


async def _ndjson(pages: AsyncIterator[list[bodies.LogRow]]) -> AsyncGenerator[bytes, None]:
    async for rows in pages:
        for first in range(0, len(rows), AT_ONCE):
            yield await asyncio.to_thread(_json_lines, rows[first : first + AT_ONCE])


def _json_lines(rows: list[bodies.LogRow]) -> bytes:
    return b"".join([bodies.encode(row) + b"\n" for row in rows])


async def _csv(pages: AsyncIterator[list[bodies.LogRow]]) -> AsyncGenerator[bytes, None]:
    yield _csv_lines([list(COLUMNS)])
    async for rows in pages:
        for first in range(0, len(rows), AT_ONCE):
            yield await asyncio.to_thread(_csv_lines, map(_cells, rows[first : first + AT_ONCE]))


def _csv_lines(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _cells(row: bodies.LogRow) -> Iterator[Any]:
    for name in COLUMNS:
        value = getattr(row, name)
        if name == "context":
            yield "" if value is None else bytes(value).decode()
        elif isinstance(value, bool):
            yield "true" if value else "false"
        else:
            yield "" if value is None else repr(value) if isinstance(value, float) else value


async def _parquet(pages: AsyncIterator[list[bodies.LogRow]]) -> AsyncGenerator[bytes, None]:
    """Write a file first, since its index stands at its end."""
    with tempfile.TemporaryDirectory(prefix="robandit-") as folder:
        parts: list[Path] = []
        async for rows in pages:
            parts.append(Path(folder) / f"{len(parts)}.parquet")
            await asyncio.to_thread(_write_parquet, rows, parts[-1])
        whole = Path(folder) / "log.parquet"
        await asyncio.to_thread(_join_parquet, parts, whole)
        with whole.open("rb") as file:
            while block := await asyncio.to_thread(file.read, PART):
                yield block


def _write_parquet(rows: list[bodies.LogRow], path: Path) -> None:
    import polars as pl

    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    columns["context"] = [None if each is None else bytes(each).decode() for each in columns["context"]]
    pl.DataFrame(columns, schema=_schema()).write_parquet(path)


def _schema() -> dict[str, Any]:
    import polars as pl

    text, real = pl.String(), pl.Float64()
    return {
        "seq": pl.Int64(),
        "time": real,
        "kind": text,
        "id": text,
        "arm": text,
        "reward": real,
        "learned": pl.Boolean(),
        "propensity": real,
        "decided": real,
        "context": text,
    }


def _join_parquet(parts: list[Path], whole: Path) -> None:
    import polars as pl

    if not parts:
        pl.DataFrame(schema=_schema()).write_parquet(whole)
    else:
        pl.scan_parquet(parts).sink_parquet(whole)
