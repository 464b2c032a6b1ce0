"""Answers requests for pages: checks the session, the token of a form and the scope, and turns errors into pages."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote

from robandit.decisions.experiment import LiveExperiment
from robandit.service import access
from robandit.service.dashboard.layout import HTML, Visit, problem_page, redirect
from robandit.service.dashboard.looks import Looks
from robandit.service.http import Answer, Bodies, Gone, Headers, Receive, Route, Scope, query_of
from robandit.service.problems import Problem, Refusal
from robandit.service.sessions import LIFETIME, form_token
from robandit.service.state import State
from robandit.service.studies import ExperimentStudy
from robandit.storage import StoredKey

MOST_FIELDS = 100
LARGEST_FORM = 256 << 10  # enough for 1,000 arms of 100 letters
LARGEST_LOGIN = 16 << 10
_ELSEWHERE = ("cross-site", "same-site")
_NOT_OURS = "This form has expired, or comes from another site: go back, reload the page, and send it again"


@dataclass(frozen=True, kw_only=True)
class Page(Route):
    """A page, or what a form is sent to. Its handler gets the `Site` and a `Visit`. Pages without a scope need no login."""

    about: str = ""


class Site:
    """The dashboard of a server that is running."""

    def __init__(
        self,
        state: State,
        bodies: Bodies,
        *,
        anybody: StoredKey | None,
        explain: Callable[[Exception], Awaitable[tuple[Problem, Headers]]],
    ) -> None:
        """Start without pages. ``anybody`` is the key of all visitors if the server needs no keys."""
        self.state = state
        self.looks = Looks(state)
        self.rows: weakref.WeakKeyDictionary[LiveExperiment, tuple[int, ExperimentStudy | None, str]] = (
            weakref.WeakKeyDictionary()
        )
        """The rows of the overview, with the number of the event and the study that they show."""
        self.streams = 0
        """The number of pages that are kept up to date."""
        self.stopping = asyncio.Event()
        """Set when the server ends."""
        self._bodies = bodies
        self._anybody = anybody
        self.explain = explain
        """Returns the problem that stands for an error. It waits until what led to the error is stored."""
        self._form_token = secrets.token_urlsafe(32)
        """The token of all forms if the server needs no keys."""

    async def answer(self, page: Page, parameters: tuple[str, ...], scope: Scope, receive: Receive) -> Answer:
        """Answer a request for a page. The body of a form is read when the session allows to send it."""
        visit = None
        try:
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            query = query_of(scope["query_string"], page)
            key, token, cookie = self._holder(headers)
            if key is None and cookie and await self.state.refresh_access():  # opened by another server a moment ago
                key, token, cookie = self._holder(headers)
            given = Visit(key or access.NOBODY, token, parameters, query, {}, cookie, headers)
            if key is not None:
                visit = given
                scope["known"] = True
            elif page.scope is not None:
                return _without_session(page, scope, given)
            self._check(page, given)
            if page.method == "POST":
                most = LARGEST_FORM if page.scope is not None else LARGEST_LOGIN
                given = replace(given, form=await self._form(headers, receive, most))
                if page.scope is not None:
                    _check_token(given)
            return await page.handler(self, given)
        except Gone:
            raise
        except Exception as error:
            problem, more = await self.explain(error)
            return problem_page(problem, visit, more)

    def _holder(self, headers: dict[bytes, str]) -> tuple[StoredKey | None, str, str]:
        """Return the key of a person, the token of the forms, and the cookie. Without a session, there is no key."""
        if self._anybody is not None:
            return self._anybody, self._form_token, ""
        cookie, now = _cookie(headers), self.state.wall()
        session = self.state.sessions.find(cookie, now) if cookie else None
        if session is None:
            return None, "", cookie
        return self.state.keys.valid(session.key, now), form_token(cookie), cookie

    def _check(self, page: Page, visit: Visit) -> None:
        """Refuse what another site has sent, or what the key does not allow."""
        if page.method == "POST" and _is_from_elsewhere(visit.headers):
            raise Refusal("forbidden", _NOT_OURS)
        if page.scope is None:
            return
        self.state.rates.check(visit.key.id)
        access.check_scope(visit.key, page.scope)
        if visit.parameters:  # the name of an experiment
            access.check(visit.key, page.scope, visit.parameters[0])
        if not self.state.engine.loaded:
            raise Refusal("unavailable", f"The server is {self.state.engine.progress}: reload this page in a moment")

    async def _form(self, headers: dict[bytes, str], receive: Receive, most: int) -> dict[str, str]:
        length = headers.get(b"content-length")
        body = await self._bodies.read(receive, None if length is None else length.encode(), most)
        self._bodies.free(body)
        if body and not headers.get(b"content-type", "").startswith("application/x-www-form-urlencoded"):
            raise Refusal("malformed", "Pages take forms only: use the calls below /v1 for JSON")
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
        except ValueError:
            raise Refusal("malformed", f"The form is not valid UTF-8, or has more than {MOST_FIELDS} fields") from None

    def is_open(self, visit: Visit) -> bool:
        """Return whether the session of a visit lasts. It ends with its key."""
        return self._holder(visit.headers)[0] is not None

    async def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the server."""
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return


def _check_token(visit: Visit) -> None:
    if not hmac.compare_digest(visit.form.get("token", "").encode(), visit.form_token.encode()):
        raise Refusal("forbidden", _NOT_OURS)


def _is_from_elsewhere(headers: dict[bytes, str]) -> bool:
    """Return whether a page of another site sent a request. Without TLS, browsers say only where it comes from (Origin)."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in _ELSEWHERE
    origin = headers.get(b"origin")
    return origin is not None and origin.partition("://")[2] != headers.get(b"host", "")


def _without_session(page: Page, scope: Scope, visit: Visit) -> Answer:
    """Return what leads to the form for logging in."""
    if page.method != "GET":
        raise Refusal("no-key", "Your session has ended. Nothing was changed: log in again, then send the form again")
    if page.path.endswith("/live"):
        raise Refusal("no-key", "Your session has ended: log in again")
    if not visit.cookie and visit.headers.get(b"sec-fetch-site") in _ELSEWHERE:
        # A link on another site leads here, so the browser did not send our cookie. It does when this page asks for itself.
        again = b'<!doctype html><html lang="en"><meta http-equiv="refresh" content="0"><title>Robandit</title></html>'
        return Answer(200, again, HTML)
    given = scope["query_string"].decode("latin-1")
    back = scope["raw_path"].decode("latin-1") + (f"?{given}" if given else "")
    return redirect(f"/login?next={quote(back, safe='/')}" + ("&ended=yes" if visit.cookie else ""))


def _cookie_name(headers: dict[bytes, str]) -> str:
    """Return the name of our cookie. It includes the port, since browsers send a cookie to all ports of a machine."""
    _, colon, port = headers.get(b"host", "").rpartition(":")
    return f"robandit-{port}" if colon and port.isdigit() else "robandit"


def _cookie(headers: dict[bytes, str]) -> str:
    """Return the value of our cookie. (`http.cookies` finds nothing if another program has set an odd one.)"""
    wanted = _cookie_name(headers)
    pairs = (each.strip().partition("=") for each in headers.get(b"cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


def cookie_header(headers: dict[bytes, str], token: str) -> tuple[bytes, bytes]:
    """Return the header that stores the token of a session in the browser. An empty token deletes the cookie."""
    parts = [f"{_cookie_name(headers)}={token}", "Path=/", "HttpOnly", "SameSite=Strict"]
    parts.append(f"Max-Age={int(LIFETIME) if token else 0}")
    if headers.get(b"origin", "").startswith("https:"):
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("latin-1")
