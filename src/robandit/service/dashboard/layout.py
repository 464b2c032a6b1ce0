"""The frame of every page: its head, its navigation, and the headers that it is sent with."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from robandit import __version__
from robandit.notebook import escaped
from robandit.service import access
from robandit.service.http import Answer, Headers
from robandit.service.problems import Problem
from robandit.storage import StoredKey

HTML = b"text/html; charset=utf-8"
HEADERS: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
        b"base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers send forms with the origin null
    (b"cross-origin-opener-policy", b"same-origin"),
)


@dataclass(frozen=True)
class Visit:
    """A request of a person for a page, whose session was checked."""

    key: StoredKey
    form_token: str
    parameters: Sequence[str] = ()
    query: dict[str, str] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)
    cookie: str = ""
    """The token of the session; empty if the server needs no keys."""
    headers: dict[bytes, str] = field(default_factory=dict)

    def may_change(self, experiment: str) -> bool:
        """Return whether this person may change an experiment."""
        return access.may(self.key, "admin", experiment)


def page(visit: Visit | None, title: str, main: str, *, at: str = "/", live: str = "", status: int = 200) -> Answer:
    """Return a page. ``at`` is its address, and ``live`` that of its updates. Without a visit, there is no navigation."""
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)} | Robandit</title>
<link rel="icon" href="/assets/mark.svg">
<link rel="stylesheet" href="/assets/report.css">
<link rel="stylesheet" href="/assets/dashboard.css">
<script src="/assets/dashboard.js" defer></script>
</head>
<body data-page="{escaped(at)}"{f' data-live="{escaped(live)}"' if live else ""}>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="/"><img src="/assets/mark.svg" alt="" width="24" height="24">Robandit</a>
{_navigation(visit)}
</header>
<main id="main">
{main}
</main>
<footer class="muted">Robandit {escaped(__version__)}</footer>
</body>
</html>
"""
    return Answer(status, text.encode(), HTML, HEADERS)


def _navigation(visit: Visit | None) -> str:
    if visit is None:
        return ""
    links = '<a href="/">Experiments</a>'
    if "admin" in visit.key.scopes:
        links += '<a href="/new">New experiment</a>'
    links += '<a href="/docs">API</a>'
    who = ""
    if visit.cookie:
        note = f"key: {visit.key.note or visit.key.id}"
        button = (
            f'<form method="post" action="/logout">{token_field(visit)}<button class="quiet">Log out</button></form>'
        )
        who = f'<span class="who" title="key {escaped(visit.key.id)}">{escaped(note[:40])}</span>{button}'
    return f'<nav aria-label="Pages">{links}</nav><span class="status" id="live" role="status"></span>{who}'


def problem_page(problem: Problem, visit: Visit | None = None, headers: Headers = ()) -> Answer:
    """Return the page that explains why a request failed."""
    way = '<a href="/login">Log in</a>' if problem.status == 401 else '<a href="/">All experiments</a>'
    main = (
        f'<h1 class="title">{escaped(problem.title)}</h1><p class="refused">{escaped(problem.detail)}</p><p>{way}</p>'
    )
    made = page(visit, problem.title, main, status=problem.status)
    return made._replace(headers=(*made.headers, *headers))


def redirect(to: str, headers: Headers = ()) -> Answer:
    """Return an answer that sends the browser to another page, with GET."""
    return Answer(303, b"", HTML, ((b"location", to.encode("ascii")), *headers))


def token_field(visit: Visit) -> str:
    """Return the hidden field that proves that a form is ours."""
    return f'<input type="hidden" name="token" value="{escaped(visit.form_token)}">'


def address(path: str, **query: str) -> str:
    """Return a path with a query. Names of experiments need no escaping."""
    return f"{path}?{urlencode(query)}" if query else path


def live_part(id: str, content: str, *, tag: str = "div", attributes: str = "") -> str:
    """Return an element whose content the script replaces."""
    return f'<{tag} id="{id}"{" " if attributes else ""}{attributes}>{content}</{tag}>'


def table(label: str, heads: Mapping[str, str], rows: Iterable[str], kind: str = "", *, body: str = "") -> str:
    """Return a table in a box that scrolls sideways.

    ``heads`` has the names of the columns and their classes, and ``body`` is the id of the element around the rows.
    """
    cells = "".join(f'<th scope="col" class="{style}">{escaped(text)}</th>' for text, style in heads.items())
    head = f"<thead><tr>{cells}</tr></thead>" if cells else ""
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escaped(label)}"><table class="rows {kind}">{head}'
        f"<tbody{f' id={body}' if body else ''}>{''.join(rows)}</tbody></table></div>"
    )


def definitions(facts: Mapping[str, str], kind: str) -> str:
    """Return names with their values, which are HTML."""
    rows = (f"<div><dt>{escaped(name)}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="{kind}">{"".join(rows)}</dl>'


def time_text(seconds: float, *, ago: bool = False) -> str:
    """Return a time. The script writes it in the time zone of the reader, or as an age."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    exact = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}"{" data-ago" if ago else ""}>{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


def badge(text: str, kind: str = "") -> str:
    """Return a word in a frame, such as a state."""
    return f'<span class="badge {kind or text}">{escaped(text)}</span>'
