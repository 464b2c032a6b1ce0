"""All pages of the dashboard, and their handlers for experiments, changes, live updates and files."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from importlib.resources import files

import msgspec

from robandit.decisions.experiment import LiveExperiment
from robandit.errors import Overloaded, RobanditError, StoreUnavailable
from robandit.service import experiments
from robandit.service.dashboard import contexts, create, decision_page, experiment_page, login, overview
from robandit.service.dashboard.layout import HEADERS, Visit, address, redirect
from robandit.service.dashboard.looks import TICK
from robandit.service.dashboard.site import Page, Site
from robandit.service.dashboard.timeline import WINDOWS, default_window
from robandit.service.http import Answer, Handler, Parameter, Request
from robandit.service.problems import Problem, Refusal, wrong_value

MOST_STREAMS = 500
HEARTBEAT = 10.0  # seconds of silence after which a stream says that it is alive, and notices if the browser is gone
_FILES = {
    "report.css": ("robandit.report", b"text/css; charset=utf-8"),
    "dashboard.css": ("robandit.service.dashboard", b"text/css; charset=utf-8"),
    "dashboard.js": ("robandit.service.dashboard", b"text/javascript; charset=utf-8"),
    "mark.svg": ("robandit.service.dashboard", b"image/svg+xml"),
}


async def show(site: Site, visit: Visit, problem: Problem | None = None) -> Answer:
    """Handle GET /experiments/{name}."""
    experiment, window = await _asked(site, visit)
    parts = await site.looks.at(experiment, window).parts()
    summary = await site.state.engine.read(experiment.name, experiments.summary_of)
    context = "" if summary.settings.features is None else await contexts.section(site, visit, experiment, window)
    return experiment_page.show(
        visit, experiment, summary, window=window, made=parts, contexts=context, problem=problem
    )


async def _asked(site: Site, visit: Visit) -> tuple[LiveExperiment, str]:
    experiment = await site.state.engine.present(visit.parameters[0])
    window = visit.query.get("window") or default_window(site.state.engine.clock() - experiment.created)
    if window not in WINDOWS:
        raise wrong_value("window", window, f"one of {', '.join(WINDOWS)}")
    return experiment, window


async def change(site: Site, visit: Visit) -> Answer:
    """Handle POST /experiments/{name}/change."""
    try:
        await _change(site, visit)
    except (Refusal, RobanditError) as error:
        problem, _ = await site.explain(error)
        return await show(site, visit, problem)
    _, window = await _asked(site, visit)
    return redirect(address(f"/experiments/{visit.parameters[0]}", window=window) + "#manage")


async def _change(site: Site, visit: Visit) -> None:
    """Make the call of the interface that an action stands for."""
    (name,), action, arm = visit.parameters, visit.form.get("action", ""), visit.form.get("arm", "")
    states = {"pause-arm": "paused", "resume-arm": "active", "retire-arm": "retired"}
    if action in ("pause", "resume"):
        handler = experiments.pause if action == "pause" else experiments.resume
        await handler(site.state, Request((name,), {}, visit.key, b""))
    elif action == "add-arm":
        body = msgspec.json.encode({"arm": arm.strip()})
        await experiments.add_arm(site.state, Request((name,), {}, visit.key, body))
    elif action in states:
        body = msgspec.json.encode({"state": states[action]})
        await experiments.change_arm(site.state, Request((name, arm), {}, visit.key, body))
    else:
        raise wrong_value("action", action, f"one of pause, resume, add-arm, {', '.join(states)}")


async def live(site: Site, visit: Visit) -> Answer:
    """Handle GET /experiments/{name}/live."""
    experiment, window = await _asked(site, visit)
    look = site.looks.at(experiment, window)
    return _stream(site, visit, look.parts, lambda: site.state.engine.experiments.get(experiment.name) is experiment)


async def live_overview(site: Site, visit: Visit) -> Answer:
    """Handle GET /live."""
    shown: list[LiveExperiment] = []

    async def rows() -> dict[str, str]:
        """Return the rows, or all of them as one part if other experiments are to be shown."""
        before, shown[:] = shown[:], overview.chosen(site, visit).experiments
        made = await overview.row_parts(site, shown)
        return made if shown == before else {"rows": overview.joined(made)}

    return _stream(site, visit, rows, lambda: True)


def _stream(
    site: Site, visit: Visit, parts: Callable[[], Awaitable[dict[str, str]]], is_there: Callable[[], bool]
) -> Answer:
    """Return a stream of server-sent events with the parts of a page that have changed. It ends with the session."""
    if site.streams >= MOST_STREAMS:
        raise Overloaded(
            f"{site.streams} live pages are open, the most that are possible: close some, or reload this page by hand"
        )

    async def events() -> AsyncGenerator[bytes, None]:
        site.streams += 1
        try:
            seen: dict[str, str] = {}
            spoken = 0.0
            while not site.stopping.is_set() and is_there() and site.is_open(visit):
                try:
                    now = await parts()
                except StoreUnavailable:  # the page shows what it has until the store is back
                    now = seen
                changed = {id: content for id, content in now.items() if seen.get(id) != content}
                seen = now
                if changed:
                    yield b"data: " + msgspec.json.encode(changed) + b"\n\n"
                    spoken = time.monotonic()
                elif time.monotonic() - spoken >= HEARTBEAT:
                    yield b"event: alive\ndata:\n\n"
                    spoken = time.monotonic()
                await site.pause(TICK)
            if not site.stopping.is_set():
                yield b"event: end\ndata:\n\n"
        finally:
            site.streams -= 1

    # nginx would collect events before it sends them.
    return Answer(200, events(), b"text/event-stream", (*HEADERS, (b"x-accel-buffering", b"no")))


@functools.cache
def _content(name: str) -> bytes:
    return (files(_FILES[name][0]) / "assets" / name).read_bytes()


async def asset(site: Site, visit: Visit) -> Answer:
    """Handle GET /assets/{file}."""
    name = visit.parameters[0]
    if name not in _FILES:
        raise Refusal("not-found", f"There is no file {name[:100]!r}")
    return Answer(200, _content(name), _FILES[name][1], HEADERS)


def _page(method: str, path: str, handler: Handler, scope: str | None, *query: str) -> Page:
    parameters = tuple(Parameter(name, {}, "") for name in query)
    return Page(method=method, path=path, handler=handler, scope=scope, query=parameters)


PAGES = (
    _page("GET", "/", overview.overview, "read", "q", "page"),
    _page("GET", "/live", live_overview, "read", "q", "page"),
    _page("GET", "/new", create.create_form, "admin"),
    _page("POST", "/new", create.create, "admin"),
    _page("GET", "/experiments/{name}", show, "read", "window", "context"),
    _page("GET", "/experiments/{name}/live", live, "read", "window"),
    _page("POST", "/experiments/{name}/change", change, "admin", "window"),
    _page("GET", "/experiments/{name}/decision", decision_page.decision, "read", "id"),
    _page("GET", "/login", login.login_form, None, "next", "ended"),
    _page("POST", "/login", login.log_in, None),
    _page("POST", "/logout", login.log_out, "read"),
    _page("GET", "/assets/{file}", asset, None),
)
"""Every page, the scope that a key needs for it, and the parameters of its query."""
