"""The ASGI application: it finds the route of a request, checks the key and the limits, and turns errors into problems."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from robandit.decisions.base import BaseEngine
from robandit.decisions.engine import SingleServerEngine
from robandit.decisions.replica import Replica
from robandit.errors import Overloaded, RobanditError, StoreError, StoreUnavailable
from robandit.service import access, docs_page, openapi
from robandit.service.bodies import encode
from robandit.service.dashboard.layout import problem_page
from robandit.service.dashboard.pages import PAGES
from robandit.service.dashboard.site import Page, Site
from robandit.service.http import (
    JSON,
    Answer,
    Bodies,
    Gone,
    Headers,
    Receive,
    Request,
    Route,
    Router,
    Scope,
    Send,
    query_of,
)
from robandit.service.metrics import Metrics
from robandit.service.problems import MEDIA, RETRY, Problem, Refusal, problem_of
from robandit.service.routes import ROUTES
from robandit.service.state import State
from robandit.storage import Store, StoredKey
from robandit.storage.base import SharedStore
from robandit.storage.group_commit import Committed

MOST_REQUESTS = 4_096  # that are answered at the same time
_ANYBODY = StoredKey("(no key)", b"", access.SCOPES, None, "", 0.0, None, None)
_ALWAYS: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_PAGE: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
)


async def _openapi(state: State, request: Request) -> Answer:
    return Answer(200, openapi.document())


async def _docs(state: State, request: Request) -> Answer:
    return Answer(200, docs_page.page(), b"text/html; charset=utf-8", _PAGE)


_OPEN: dict[str, Any] = {"method": "GET", "scope": None, "early": True}
DOCUMENTS = (
    Route(path="/openapi.json", handler=_openapi, about="This interface for programs.", **_OPEN),
    Route(path="/docs", handler=_docs, about="This interface for people.", **_OPEN),
)


class Service:
    """The application. It opens the log when the server starts, and closes it when the server stops.

    ``on_failure`` is called once, with the reason, if the log cannot be read or written: the process must then end.
    """

    def __init__(
        self,
        store: Store,
        *,
        authenticate: bool = True,
        rate: float | None = None,
        clock: Callable[[], float] = time.time,
        tick: Callable[[], float] = time.monotonic,
        on_failure: Callable[[RobanditError], object] = lambda error: None,
        **engine_options: Any,
    ) -> None:
        """Keep the options. ``rate`` limits the calls per second of each key; ``tick`` is the clock of this limit."""
        self._store = store
        self._authenticate = authenticate
        self._rate = rate
        self._clock = clock
        self._tick = tick
        self._on_failure = on_failure
        self._engine_options = engine_options
        self._router = Router((*ROUTES, *DOCUMENTS, *PAGES))
        self._active = 0
        """The number of calls that are being answered."""
        self._bodies = Bodies()
        self.state: State
        self._site: Site
        self._loading: asyncio.Task[None] | None = None

    # --- start and end --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to load the experiments."""
        metrics = Metrics()

        def count(committed: Committed) -> None:
            metrics.sizes.add(len(committed.events))
            metrics.times.add(committed.seconds)

        engine: BaseEngine
        if isinstance(self._store, SharedStore):
            engine = Replica(
                self._store,
                clock=self._clock,
                on_commit=count,
                on_catalogue=lambda: self.state.refresh_access(),
                **self._engine_options,
            )
            self._clock = engine.clock  # that of the store: the clocks of servers may differ
        else:
            engine = SingleServerEngine(
                self._store, clock=self._clock, on_commit=count, on_failure=self._on_failure, **self._engine_options
            )
        self.state = State(engine, metrics, rate=self._rate, wall=self._clock, tick=self._tick)
        self._site = Site(
            self.state, self._bodies, anybody=None if self._authenticate else _ANYBODY, explain=self._explained
        )
        self._loading = asyncio.create_task(self._load(engine))

    async def _load(self, engine: BaseEngine) -> None:
        try:
            await engine.load()
        except RobanditError as error:
            engine.progress = "not loaded: the log cannot be read"
            self._on_failure(error)
        except Exception as error:
            traceback.print_exc()
            self._on_failure(StoreError(f"the log cannot be loaded: {type(error).__name__}: {error}"))

    async def ready(self) -> None:
        """Wait until all experiments are loaded."""
        assert self._loading is not None
        await self._loading

    @property
    def is_ready(self) -> bool:
        """Whether all experiments are loaded."""
        return hasattr(self, "state") and self.state.engine.loaded

    def end_streams(self) -> None:
        """End the live updates of the dashboard, which otherwise stay open as long as a page is open."""
        if hasattr(self, "_site"):
            self._site.stopping.set()

    async def stop(self) -> None:
        """Take snapshots and close the log."""
        self.end_streams()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
            await self.state.engine.close()

    # --- requests -------------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            result = await self._answered(scope, receive)
        except Gone:
            return
        except Exception as error:
            result = await self._problem(error, scope)
        self.state.metrics.answers[result.status] += 1
        await _send(send, result, receive, whole=scope["method"] != "HEAD")

    async def _answered(self, scope: Scope, receive: Receive) -> Answer:
        route, parameters = self._router.find(scope["method"], scope["raw_path"])
        headers = dict(scope["headers"])
        key = _ANYBODY
        if not self._authenticate:
            _check_local(headers.get(b"host", b""), headers.get(b"origin"))
            scope["known"] = True
        if isinstance(route, Page):
            self._check_room()
            return await self._counted(self._site.answer(route, parameters, scope, receive))
        state = self.state
        if route.scope is not None:
            if self._authenticate:
                try:
                    key = state.keys.holder(headers.get(b"authorization"), self._clock())
                except Refusal:  # another server may have made the key a moment ago
                    if not await state.refresh_access():
                        raise
                    key = state.keys.holder(headers.get(b"authorization"), self._clock())
                scope["known"] = True  # see `connection.Connections`
            state.rates.check(key.id)
            if route.path == "/v1/experiments":  # it lists what the key may read
                access.check_scope(key, route.scope)
            else:
                access.check(key, route.scope, parameters[0] if route.path.startswith("/v1/experiments/") else None)
            self._check_room()
        if not route.early and not state.engine.loaded:
            raise Refusal("unavailable", f"The server is {state.engine.progress}: try again in a second", RETRY)
        query = query_of(scope["query_string"], route)
        if route.body is None:
            if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
                raise Refusal("malformed", "This call has no body: send none")
            return await self._counted(
                route.handler(state, Request(parameters, query, key, b"", headers.get(b"if-none-match")))
            )
        body = await self._bodies.read(receive, headers.get(b"content-length"))
        try:
            return await self._counted(route.handler(state, Request(parameters, query, key, body)))
        finally:
            self._bodies.free(body)

    def _check_room(self) -> None:
        if self._active >= MOST_REQUESTS:
            raise Refusal("unavailable", f"{self._active:,} calls are being answered: try again in a second", RETRY)

    async def _counted(self, work: Awaitable[Answer]) -> Answer:
        self._active += 1
        try:
            return await work
        finally:
            self._active -= 1

    async def _problem(self, error: Exception, scope: Scope) -> Answer:
        problem, headers = await self._explained(error)
        if problem.status == 404 and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
            return problem_page(problem, headers=headers)
        return Answer(problem.status, encode(problem), MEDIA, headers)

    async def _explained(self, error: Exception) -> tuple[Problem, Headers]:
        if isinstance(error, StoreUnavailable):
            return problem_of(error)
        if isinstance(error, RobanditError) and not isinstance(error, StoreError | Overloaded):
            try:  # the reason may be an event that is not stored yet, such as another reward of the decision
                await self.state.engine.settled()
            except StoreError as failure:
                error = failure
        if (
            isinstance(error, StoreError)
            and self.state.engine.failure is None
            and not isinstance(self._store, SharedStore)
        ):
            self._on_failure(error)  # reading failed
        return problem_of(error)


def _check_local(host: bytes, origin: bytes | None) -> None:
    """Refuse calls that pages of other sites make in the browser of this machine's user. Without keys, they could do all."""
    name = host.decode("latin-1")
    if not access.is_loopback(_without_port(name)):
        raise Refusal("forbidden", "Without keys, the server answers only calls to 127.0.0.1 or localhost")
    if origin is not None and origin.decode("latin-1").partition("://")[2] != name:
        raise Refusal("forbidden", "Without keys, the server answers no calls from pages of other sites")


def _without_port(host: str) -> str:
    head, colon, port = host.rpartition(":")
    name = head if colon and port.isdigit() else host
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name  # of IPv6


async def _left(receive: Receive) -> None:
    """Wait until the client leaves. The first message may still be about the request."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, result: Answer, receive: Receive, *, whole: bool) -> None:
    """Send an answer; only its head, unless ``whole``. A stream ends when the client leaves."""
    headers = [(b"content-type", result.media)] if result.body or result.media != JSON else []
    headers += [*result.headers, *_ALWAYS]
    if isinstance(result.body, bytes) and result.status != 204:  # which must not have a length (RFC 9110)
        headers.append((b"content-length", str(len(result.body)).encode()))
    await send({"type": "http.response.start", "status": result.status, "headers": headers})
    if isinstance(result.body, bytes):
        await send({"type": "http.response.body", "body": result.body})
        return
    left = asyncio.ensure_future(_left(receive))
    try:
        if whole:
            async for part in result.body:
                if left.done():
                    return
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except StoreUnavailable:
        return  # the status is sent already; the connection closes before the end of the body, so the client notices
    finally:
        left.cancel()
        await result.body.aclose()
