"""The page /docs: the interface for people. It needs no script and nothing from elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from html import escape

from robandit.service.decoding import kind_of
from robandit.service.interface import Call, Field, Interface, Type, default_of, interface
from robandit.service.problems import CODES, TITLES

_STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --soft: #f4f6f9; --line: #d5d9e0; --mark: #0b57a4; --quiet: #5b6472; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ee; --soft: #22262c; --line: #3a3f47; --mark: #8ec5ff; --quiet: #a3adba; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); max-width: 64rem; margin: 2rem auto; padding: 0 1rem 4rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.3rem; }
h2 { font-size: 1.35rem; margin: 2.8rem 0 0.8rem; }
h3 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: 0.8rem; color: var(--quiet); margin: 1rem 0 0.2rem; text-transform: uppercase; letter-spacing: 0.04em; }
a { color: var(--mark); text-decoration: none; }
a:hover { text-decoration: underline; }
section { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: 0.9rem 1rem 1rem; }
section:target { border-color: var(--mark); box-shadow: 0 0 0 1px var(--mark); }
section p { margin: 0.4rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; background: var(--soft); border-radius: 4px; }
code { padding: 0.1em 0.3em; overflow-wrap: anywhere; }
pre { padding: 0.6rem 0.8rem; margin: 0.3rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
h3 code, nav code { background: none; padding: 0; }
.method { display: inline-block; min-width: 4.2em; font: 600 0.85em ui-monospace, monospace; color: var(--mark); }
.quiet { color: var(--quiet); }
.whole { white-space: nowrap; font-size: 0.92rem; }
.scope { font-size: 0.85rem; color: var(--quiet); border: 1px solid var(--line); border-radius: 1em; padding: 0 0.6em; }
.scope { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
td { text-align: left; vertical-align: top; border-top: 1px solid var(--line); padding: 0.3rem 0.8rem 0.3rem 0; }
td:first-child { width: 11rem; }
td:last-child { padding-right: 0; }
nav h4 { margin-top: 1.2rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { border-top: 1px solid var(--line); padding: 0.25rem 0; display: flex; flex-wrap: wrap; gap: 0 0.8rem; }
nav li > a { flex: 0 1 26rem; overflow-wrap: anywhere; }
nav li > span:first-of-type { flex: 1 1 12rem; }
@media (max-width: 40rem) {
  h3 code, nav code, .method { font-size: 0.82em; }
  tr { display: block; border-top: 1px solid var(--line); padding: 0.3rem 0; }
  td, td:first-child { display: block; width: auto; border-top: 0; padding: 0.05rem 0; }
  nav li > a, nav li > span:first-of-type { flex-basis: 100%; }
}
"""


@functools.cache
def page() -> bytes:
    """Return the page in HTML."""
    known = interface()
    topics = "".join(
        f'<h2 id="{_anchor(topic)}">{escape(topic)}</h2>{"".join(map(_call, calls))}'
        for topic, calls in known.topics.items()
    )
    types = "".join(map(_type, sorted(known.types, key=lambda each: each.name)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Robandit: the interface</title><style>{_STYLE}</style></head><body>"
        f"<h1>Robandit {escape(known.version)}: the interface</h1><p>{escape(known.about)}</p>"
        f"{_start(known)}{_overview(known)}{_problems()}{topics}"
        f'<h2 id="types">Types</h2>{types}</body></html>'
    ).encode()


def _start(known: Interface) -> str:
    scopes = _rows((f"<code>{escape(scope)}</code>", escape(f"{about}.")) for scope, about in known.scopes.items())
    session = (
        "export URL=http://127.0.0.1:8000 KEY=rb_...\n"
        f'curl -H "Authorization: Bearer $KEY" {next(iter(known.topics.values()))[0].example}'
    )
    return (
        '<p><a href="/">The dashboard</a> shows experiments to people.</p>'
        "<p>Bodies and answers are JSON. Times are seconds since 1970 (UTC). "
        "The document for programs, in OpenAPI 3.1, is at "
        '<a href="/openapi.json">/openapi.json</a>.</p>'
        f"<pre>{escape(session)}</pre>"
        '<h2 id="scopes">Keys and scopes</h2><p>Send <code>Authorization: Bearer KEY</code>. A key has one or more scopes, '
        f"and may be limited to some experiments:</p>{scopes}"
    )


def _overview(known: Interface) -> str:
    parts = []
    for topic, calls in known.topics.items():
        items = "".join(
            f'<li><a href="#{_anchor_of(call)}"><span class="method">{call.method}</span>'
            f"<code>{escape(call.path)}</code></a><span>{escape(call.title)}</span>{_scope(call)}</li>"
            for call in calls
        )
        parts.append(f'<h4><a href="#{_anchor(topic)}">{escape(topic)}</a></h4><ul>{items}</ul>')
    return f'<h2 id="calls">All calls</h2><nav>{"".join(parts)}</nav>'


def _problems() -> str:
    rows = (
        (f"<b>{status}</b> <code>{code}</code>", f"{escape(TITLES[status])}. {escape(about)}")
        for code, (status, about) in CODES.items()
    )
    return (
        '<h2 id="problems">Problems</h2><p>A call that fails is answered with <code>application/problem+json</code> '
        f"(RFC 9457): the type {_link('Problem')}. Its <code>code</code> is one of these:</p>{_rows(rows)}"
    )


def _call(call: Call) -> str:
    queries = [field for field in call.parameters if not field.required]
    paths = [field for field in call.parameters if field.required]
    replies = (
        (f"<b>{reply.status}</b>", f"{escape(reply.about)} {_body(reply.body)}".strip()) for reply in call.replies
    )
    problems = ", ".join(
        f'<a class="whole" href="#problems">{CODES[code].status}&nbsp;{code}</a>' for code in call.problems
    )
    key = ' -H "Authorization: Bearer $KEY"' if call.scope else ""
    optional = "" if any(field.required for field in call.fields) else " (optional)"
    return (
        f'<section id="{_anchor_of(call)}"><h3><a href="#{_anchor_of(call)}"><span class="method">{call.method}</span>'
        f"<code>{escape(call.path)}</code></a></h3>"
        f"<p><b>{escape(call.title)}.</b> {escape(call.about)} {_scope(call)}</p>"
        f"{_table('Path', paths)}{_table('Query', queries)}{_table(f'Body{optional}', call.fields)}"
        f"<h4>Answers</h4>{_rows(replies)}<h4>Problems</h4><p>{problems}</p>"
        f"<h4>Example</h4><pre>curl{key} {escape(call.example)}</pre></section>"
    )


def _type(kind: Type) -> str:
    return (
        f'<section id="type-{kind.name}"><h3><a href="#type-{kind.name}"><code>{kind.name}</code></a></h3>'
        f"<p>{escape(kind.about)}</p>{_table('', kind.fields)}</section>"
    )


def _table(title: str, fields: Iterable[Field]) -> str:
    rows = [(_name(field, marked=bool(title)), _about(field, with_default=bool(title))) for field in fields]
    head = f"<h4>{title}</h4>" if title else ""
    return f"{head}{_rows(rows)}" if rows else ""


def _name(field: Field, *, marked: bool) -> str:
    required = ' <span class="quiet">required</span>' if marked and field.required else ""
    return f"<code>{escape(field.name)}</code>{required}"


def _about(field: Field, *, with_default: bool) -> str:
    kind = kind_of(field.schema, _link, lambda text: escape(text, quote=False))
    default = default_of(field) if with_default else ""
    default = f", default <code>{escape(default, quote=False)}</code>" if default else ""
    about = f"{escape(field.about)} " if field.about else ""
    return f'{about}<span class="quiet">{kind}{default}</span>'


def _body(body: str) -> str:
    if not body:
        return '<span class="quiet">No body.</span>'
    return f"<code>{escape(body)}</code>" if "/" in body else _link(body)


def _scope(call: Call) -> str:
    return f'<span class="scope">{f"scope {call.scope}" if call.scope else "no key"}</span>'


def _link(name: str) -> str:
    return f'<a href="#type-{name}">{name}</a>'


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _anchor_of(call: Call) -> str:
    words = call.path.replace("{", "").replace("}", "").strip("/").replace("/", "-")
    return f"{call.method.lower()}-{words}"


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{name}</td><td>{about}</td></tr>" for name, about in rows)
    return f"<table>{cells}</table>"
