"""All pages of the dashboard, and their handlers for experiments, changes, live updates and files."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from importlib.resources import files

import msgspec

from robandit.decisions.experiment import Experiment
from robandit.errors import Overloaded, RobanditError
from robandit.service import experiments
from robandit.service.dashboard import create, decision_page, experiment_page, login, overview
from robandit.service.dashboard.layout import HEADERS, Visit, redirect
from robandit.service.dashboard.looks import TICK
from robandit.service.dashboard.site import Page, Site
from robandit.service.dashboard.timeline import WINDOWS, default_window
from robandit.service.http import Answer, Parameter, Request
from robandit.service.problems import Problem, Refusal

MOST_STREAMS = 500
HEARTBEAT = 10.0  # seconds of silence after which a stream sends something, so that it notices when the browser is gone
_EXPERIMENT = "/experiments/{name}"
_FILES = {
    "report.css": ("robandit.report", b"text/css; charset=utf-8"),
    "dashboard.css": ("robandit.service.dashboard", b"text/css; charset=utf-8"),
    "dashboard.js": ("robandit.service.dashboard", b"text/javascript; charset=utf-8"),
    "mark.svg": ("robandit.service.dashboard", b"image/svg+xml"),
}


async def show(site: Site, visit: Visit) -> Answer:
    """Handle GET /experiments/{name}."""
    return await _shown(site, visit)


async def _shown(site: Site, visit: Visit, problem: Problem | None = None) -> Answer:
    experiment, window = _asked(site, visit)
    parts = await site.looks.at(experiment, window).parts()
    summary = experiments.summary_of(experiment)
    await site.state.engine.settled()
    return experiment_page.show(visit, experiment, summary, window=window, made=parts, problem=problem)


def _asked(site: Site, visit: Visit) -> tuple[Experiment, str]:
    experiment = site.state.engine.find(visit.parameters[0])
    window = visit.query.get("window") or default_window(site.state.engine.clock() - experiment.created)
    if window not in WINDOWS:
        rule = f"one of {', '.join(WINDOWS)}"
        raise Refusal("invalid", f"window = {window[:40]!r} must be {rule}", parameter="window", rule=rule)
    return experiment, window


async def change(site: Site, visit: Visit) -> Answer:
    """Handle POST /experiments/{name}/change."""
    try:
        await _change(site, visit)
    except (Refusal, RobanditError) as error:
        problem, _ = await site.explain(error)
        return await _shown(site, visit, problem)
    return redirect(f"/experiments/{visit.parameters[0]}#manage")


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
        rule = f"one of pause, resume, add-arm, {', '.join(states)}"
        raise Refusal("invalid", f"action = {action[:40]!r} must be {rule}", parameter="action", rule=rule)


async def live(site: Site, visit: Visit) -> Answer:
    """Handle GET /experiments/{name}/live."""
    experiment, window = _asked(site, visit)
    look = site.looks.at(experiment, window)
    return _stream(site, visit, look.parts, lambda: site.state.engine.experiments.get(experiment.name) is experiment)


async def live_overview(site: Site, visit: Visit) -> Answer:
    """Handle GET /live."""
    shown = [each.name for each in overview.chosen(site, visit)[0]]

    async def rows() -> dict[str, str]:
        known = site.state.engine.experiments
        made = await overview.row_parts(site, [known[name] for name in shown if name in known])
        await site.state.engine.settled()
        return made

    return _stream(site, visit, rows, lambda: True)


def _stream(
    site: Site, visit: Visit, parts: Callable[[], Awaitable[dict[str, str]]], is_there: Callable[[], bool]
) -> Answer:
    """Return a stream of server-sent events with the parts of a page that have changed. It ends with the session."""
    if site.streams >= MOST_STREAMS:
        raise Overloaded(f"{site.streams} pages are kept up to date: close some, or reload this one from time to time")

    async def events() -> AsyncGenerator[bytes, None]:
        site.streams += 1
        try:
            seen: dict[str, str] = {}
            spoken = 0.0
            while not site.stopping.is_set() and is_there() and site.is_open(visit):
                now = await parts()
                changed = {id: content for id, content in now.items() if seen.get(id) != content}
                seen = now
                if changed:
                    yield b"data: " + msgspec.json.encode(changed) + b"\n\n"
                    spoken = time.monotonic()
                elif time.monotonic() - spoken >= HEARTBEAT:
                    yield b": nothing new\n\n"
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


_WINDOW = Parameter("window", {"type": "string", "enum": list(WINDOWS)}, "The window of time.")
_ID = Parameter("id", {"type": "string"}, "The id of the decision.")
_SEARCH = (
    Parameter("q", {"type": "string"}, "A part of the name."),
    Parameter("page", {"type": "integer"}, "The page."),
)
_NEXT = (
    Parameter("next", {"type": "string"}, "Where to go."),
    Parameter("ended", {"type": "string"}, "After a session."),
)

PAGES = (
    Page(method="GET", path="/", handler=overview.overview, about="All experiments.", scope="read", query=_SEARCH),
    Page(method="GET", path="/live", handler=live_overview, about="Changes of that page.", scope="read", query=_SEARCH),
    Page(method="GET", path="/new", handler=create.create_form, about="A form.", scope="admin"),
    Page(method="POST", path="/new", handler=create.create, about="Create an experiment.", scope="admin"),
    Page(method="GET", path=_EXPERIMENT, handler=show, about="One experiment.", scope="read", query=(_WINDOW,)),
    Page(method="GET", path=f"{_EXPERIMENT}/live", handler=live, about="Its changes.", scope="read", query=(_WINDOW,)),
    Page(method="POST", path=f"{_EXPERIMENT}/change", handler=change, about="Change it.", scope="admin"),
    Page(
        method="GET",
        path=f"{_EXPERIMENT}/decision",
        handler=decision_page.decision,
        about="A decision.",
        scope="read",
        query=(_ID,),
    ),
    Page(method="GET", path="/login", handler=login.login_form, about="The form to log in.", scope=None, query=_NEXT),
    Page(method="POST", path="/login", handler=login.log_in, about="Log in.", scope=None),
    Page(method="POST", path="/logout", handler=login.log_out, about="Log out.", scope="read"),
    Page(method="GET", path="/assets/{file}", handler=asset, about="A file of the pages.", scope=None),
)
