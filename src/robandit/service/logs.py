"""GET log: the events of an experiment as a stream, as NDJSON, CSV or Parquet.

Pages of events are read in another thread with a reader of its own, so a long log neither fills the memory nor stops other calls.
"""

from __future__ import annotations

import asyncio
import csv
import functools
import io
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robandit.decisions.events import Observations, Scaled, decision_id, decoded, payload_of
from robandit.errors import Overloaded, StoreError
from robandit.service import bodies
from robandit.service.http import Answer, Request, integer
from robandit.service.problems import wrong_value
from robandit.service.state import State
from robandit.storage import Event, Reader, Store

PAGE = 2_000  # rows
EVENTS_AT_ONCE = 200
AT_ONCE = 250  # rows that are written by one call: contexts have up to 64 KiB
MOST_STREAMS = 16
PART = 1 << 18  # bytes of an answer that wait for the client
FORMATS = {
    "ndjson": b"application/x-ndjson",
    "csv": b"text/csv; charset=utf-8",
    "parquet": b"application/vnd.apache.parquet",
}
COLUMNS = bodies.LogRow.__struct_fields__
JSON_COLUMNS = ("context", "metrics", "x")


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
    if form == "parquet":
        parts = _parquet(pages)
    else:
        head = b"" if form == "ndjson" else (",".join(COLUMNS) + "\n").encode()
        parts = _lines(pages, head, _json_lines if form == "ndjson" else _csv_lines)
    headers = (
        (b"robandit-minimize", b"true" if experiment.settings.minimize else b"false"),
        (b"robandit-seq", str(last).encode()),
        (b"content-disposition", f'attachment; filename="{experiment.name}.{form}"'.encode()),
    )
    return Answer(200, _counted(state, parts), FORMATS[form], headers)


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


def rows_of(event: Event) -> list[bodies.LogRow]:
    """Return an event as rows of the log: one, or one for each decision that an edge made."""
    payload: Any = payload_of(event)
    if isinstance(payload, Observations):
        return list(_observed_rows(event, payload))
    value = getattr(payload, "value", None)
    propensity = getattr(payload, "propensity", None)
    context = getattr(payload, "context", msgspec.UNSET)
    broken = getattr(payload, "guardrail", None)
    measured = {"guardrail": msgspec.to_builtins(broken)} if broken else getattr(payload, "metrics", None)
    row = bodies.LogRow(
        seq=event.seq,
        time=event.time,
        kind=event.kind,
        id=decision_id(event.id),
        arm=getattr(payload, "arm", None),
        reward=value,
        learned=value is not None and event.kind in ("rewarded", "expired"),
        propensity=None if propensity == "unknown" else propensity,
        decided=getattr(payload, "decided", None),
        # Not as Python values: to write or to free a page of them takes up to half a second.
        context=None if context is msgspec.UNSET else msgspec.Raw(bodies.encode(decoded(context))),
        unit=getattr(payload, "unit", None),
        repeat=getattr(payload, "repeat", False),
        part=getattr(payload, "part", None) or None,
        metrics=None if measured is None else msgspec.Raw(bodies.encode(measured)),
        failed=getattr(payload, "failed", False),
        x=_encoded(payload),
    )
    return [row]


def _encoded(payload: Any) -> msgspec.Raw | None:
    """Return the encoded features of a decision, or the scale of a number; None for other events."""
    if isinstance(payload, Scaled):
        return msgspec.Raw(bodies.encode({name: getattr(payload, name) for name in ("feature", "center", "scale")}))
    x = getattr(payload, "x", ())
    return msgspec.Raw(bodies.encode(x)) if x else None


def _observed_rows(event: Event, payload: Observations) -> Iterator[bodies.LogRow]:
    """Yield a row for each decision. A late reward has a second one, after that of the decision's expiry."""
    facts: dict[str, Any] = {"seq": event.seq, "time": event.time, "kind": event.kind}
    for id, (_, arm, propensity), decided, value, is_late in payload.rows():
        facts |= {"id": id, "arm": arm, "propensity": propensity, "decided": decided}
        learned = payload.expiry if is_late or value is None else value
        yield bodies.LogRow(**facts, reward=learned, learned=learned is not None)
        if is_late:
            yield bodies.LogRow(**facts, reward=value)


async def _pages(
    store: Store, number: int, after: int, last: int, learned: bool, most: int | None
) -> AsyncIterator[list[bodies.LogRow]]:
    """Yield the rows after a number, up to the last event that was stored when the call came.

    If ``most`` rows end within an event, its other rows are yielded, too: the next call begins after it.
    """
    left, begun = sys.maxsize if most is None else most, False
    while after < last and left > 0:
        page = functools.partial(_page, number=number, after=after, last=last, learned=learned, begun=begun)
        after, rows = await asyncio.to_thread(store.read, page)
        begun = True
        end = left
        while 0 < end < len(rows) and rows[end].seq == rows[end - 1].seq:
            end += 1
        yield rows[:end]
        left -= len(rows[:end])


def _page(
    reader: Reader, number: int, after: int, last: int, learned: bool, begun: bool
) -> tuple[int, list[bodies.LogRow]]:
    """Return the number of the last event of the next page, and its rows. The first page begins after archived events."""
    rows: list[bodies.LogRow] = []
    read = 0
    while after < last and read < PAGE and len(rows) < PAGE:
        events = [
            event
            for event in reader.events(number, after, min(EVENTS_AT_ONCE, PAGE - read, last - after))
            if event.seq <= last
        ]
        if begun and (events[0].seq - 1 if events else reader.archived(number)) > after:
            raise StoreError(f"events after {after} were archived while the log was read: read it again")
        begun, read = True, read + len(events)
        rows += (row for event in events for row in rows_of(event) if row.learned or not learned)
        after = events[-1].seq if events else last
    return after, rows


async def _lines(
    pages: AsyncIterator[list[bodies.LogRow]], head: bytes, write: Callable[[list[bodies.LogRow]], bytes]
) -> AsyncGenerator[bytes, None]:
    if head:
        yield head
    async for rows in pages:
        for first in range(0, len(rows), AT_ONCE):
            yield await asyncio.to_thread(write, rows[first : first + AT_ONCE])


def _json_lines(rows: list[bodies.LogRow]) -> bytes:
    return b"".join([bodies.encode(row) + b"\n" for row in rows])


def _csv_lines(rows: list[bodies.LogRow]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cells, rows))
    return text.getvalue().encode()


def _cells(row: bodies.LogRow) -> Iterator[Any]:
    for name in COLUMNS:
        value = getattr(row, name)
        if name in JSON_COLUMNS:
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
    for name in JSON_COLUMNS:
        columns[name] = [None if each is None else bytes(each).decode() for each in columns[name]]
    pl.DataFrame(columns, schema=_schema()).write_parquet(path)


def _schema() -> dict[str, Any]:
    import polars as pl

    types = {"seq": pl.Int64, "learned": pl.Boolean, "repeat": pl.Boolean, "failed": pl.Boolean} | dict.fromkeys(
        ("time", "reward", "propensity", "decided"), pl.Float64
    )
    return {name: types.get(name, pl.String) for name in COLUMNS}


def _join_parquet(parts: list[Path], whole: Path) -> None:
    import polars as pl

    if not parts:
        pl.DataFrame(schema=_schema()).write_parquet(whole)
    else:
        pl.scan_parquet(parts).sink_parquet(whole)
