"""The page /docs: the interface for people, from the OpenAPI document. It needs no script and nothing from elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from robandit.service import openapi
from robandit.service.decoding import kind_of
from robandit.service.http import Route
from robandit.service.problems import CODES, TITLES
from robandit.service.routes import ROUTES

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem 4rem; }
h2 { margin: 2.5rem 0 0.8rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 0.3rem; overflow-wrap: anywhere; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
td { vertical-align: top; border-top: 1px solid #8886; padding: 0.3rem 0.8rem 0.3rem 0; }
td:first-child { width: 11rem; }
@media (max-width: 40rem) { td, td:first-child { display: block; width: auto; border-top: 0; padding: 0.05rem 0; } }
"""


@functools.cache
def page() -> bytes:
    """Return the page in HTML."""
    document = openapi.contents()
    about, schemas = document["info"], document["components"]["schemas"]
    scopes = _rows((f"<code>{scope}</code>", escape(f"{about}.")) for scope, about in openapi.SCOPES.items())
    problems = _rows(
        (f"{status} <code>{code}</code>", escape(f"{TITLES[status]}. {text}")) for code, (status, text) in CODES.items()
    )
    calls = "".join(_call(route, document["paths"][route.path][route.method.lower()]) for route in ROUTES)
    types = "".join(
        f'<h3 id="type-{name}">{name}</h3><p>{escape(schema["description"])}</p>{_fields(schema)}'
        for name, schema in sorted(schemas.items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Robandit: the interface</title><style>{_STYLE}</style></head><body>"
        f"<h1>Robandit {escape(about['version'])}: the interface</h1><p>{escape(about['description'])}</p>"
        '<p><a href="/">The dashboard</a> shows experiments to people. The document for programs, in OpenAPI 3.1, is at '
        '<a href="/openapi.json">/openapi.json</a>.</p><p>Bodies and answers are JSON. Times are seconds since 1970 (UTC).</p>'
        "<h2>Keys and scopes</h2><p>Send <code>Authorization: Bearer KEY</code>. A key has one or more scopes, and may be "
        f"limited to some experiments:</p>{scopes}<h2>Calls</h2>{calls}"
        '<h2 id="problems">Problems</h2><p>A call that fails is answered with <code>application/problem+json</code> '
        f"(RFC 9457): the type {_link('Problem')}. Its <code>code</code> is one of these:</p>{problems}"
        f"<h2>Types</h2>{types}</body></html>"
    ).encode()


def _call(route: Route, operation: Mapping[str, Any]) -> str:
    facts = [(f"<code>{each.name}</code>", f"{escape(each.about)} {_kind(each.schema)}") for each in route.query]
    if route.body is not None:
        facts.append(("body", _link(route.body.__name__) + ("" if route.body_required else " (optional)")))
    for status, (kind, about) in route.answers.items():
        body = _link(kind.__name__) if isinstance(kind, type) else "" if kind is None else f"<code>{kind}</code>"
        facts.append((str(status), f"{escape(about)} {body}"))
    facts.append(
        ('<a href="#problems">problems</a>', ", ".join(f"{CODES[code].status} {code}" for code in route.codes))
    )
    text = f"{operation['summary']}. {operation['description']}"
    return f"<h3><code>{route.method} {route.path}</code></h3><p>{escape(text)}</p>{_rows(facts)}"


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    return _rows(
        (
            f"<code>{name}</code>{' (required)' if name in required else ''}",
            f"{escape(field.get('description', ''))} {_kind(field)}",
        )
        for name, field in schema["properties"].items()
    )


def _kind(schema: Mapping[str, Any]) -> str:
    return f"<i>{kind_of(schema, _link, lambda text: escape(text, quote=False))}</i>"


def _link(name: str) -> str:
    return f'<a href="#type-{name}">{name}</a>'


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    return f"<table>{''.join(f'<tr><td>{name}</td><td>{about}</td></tr>' for name, about in rows)}</table>"
