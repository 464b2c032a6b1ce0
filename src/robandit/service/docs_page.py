"""The page /docs: the interface for people, made from the OpenAPI document. It needs no script and nothing from elsewhere."""

from __future__ import annotations

import functools
from html import escape
from typing import Any

from robandit.service.openapi import contents

_STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #f4f6f9; --mark: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --line: #3a3f47; --soft: #22262c; --mark: #8ec5ff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: 0 1rem 0.5rem; }
h2 { font-size: 1.05rem; overflow-wrap: anywhere; } h2 code { color: var(--mark); }
code { font: 0.9em ui-monospace, monospace; background: var(--soft); padding: 0.1em 0.3em; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
td, th { text-align: left; vertical-align: top; border-top: 1px solid var(--line); padding: 0.3rem 0.6rem 0.3rem 0; }
.scroll { overflow-x: auto; }
"""


@functools.cache
def page() -> bytes:
    """Return the page in HTML."""
    document = contents()
    schemas = document["components"]["schemas"]
    calls = "".join(
        _call(method, path, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    info = document["info"]
    scopes = document["components"]["securitySchemes"]["key"]["description"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}: interface</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        f"<p>Send <code>Authorization: Bearer KEY</code>. {escape(scopes)}</p>"
        f'<p>For programs: <a href="/openapi.json">/openapi.json</a>.</p>{calls}</body></html>'
    ).encode()


def _call(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    rows = [
        (f"<code>{escape(each['name'])}</code> ({each['in']})", escape(each["description"]))
        for each in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    if body is not None:
        schema = _resolved(body["content"]["application/json"]["schema"], schemas)
        required = schema.get("required", ())
        rows += [
            (f"<code>{escape(name)}</code>{' (required)' if name in required else ''}", escape(_words(field)))
            for name, field in schema["properties"].items()
        ]
    answers = [
        (f"<b>{status}</b>", escape(response["description"])) for status, response in operation["responses"].items()
    ]
    return (
        f"<section><h2><code>{method.upper()} {escape(path)}</code> {escape(operation['summary'])}</h2>"
        f"<p>{escape(operation['description'])}</p>{_table('Parameters and body', rows)}{_table('Answers', answers)}</section>"
    )


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name: str = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schemas[name] if name else schema
    return found


def _words(field: dict[str, Any]) -> str:
    kinds = [each.get("type", "") for each in field.get("anyOf", [field])]
    kind = " or ".join(dict.fromkeys(str(each) for each in kinds if each))
    default = f", default {field['default']!r}" if field.get("default") not in (None, "") else ""
    return f"{kind}{default}. {field.get('description', '')}".strip()


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<tr><td>{name}</td><td>{about}</td></tr>" for name, about in rows)
    return f'<div class="scroll"><table><tr><th colspan="2">{title}</th></tr>{cells}</table></div>'
