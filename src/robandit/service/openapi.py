"""The OpenAPI 3.1 document of the interface, made from the table of routes."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import msgspec

from robandit import __version__
from robandit.service.http import Route
from robandit.service.problems import CODES, TITLES, Problem
from robandit.service.routes import ROUTES

_REF = "#/components/schemas/{name}"
_ABOUT = (
    "Decisions from multi-armed bandits with heavy-tailed rewards. Every acknowledged call is stored, counts once, and can "
    "be explained. Errors are application/problem+json (RFC 9457)."
)
_PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("The name of the experiment.", {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._\-]{0,99}$"}),
    "arm": ("The name of the arm. A slash is written as %2F.", {"type": "string", "minLength": 1, "maxLength": 100}),
    "id": ("The id.", {"type": "string", "minLength": 1, "maxLength": 200}),
}
SCOPES = {
    "decide": "make decisions",
    "reward": "send rewards",
    "read": "read experiments, logs and metrics",
    "admin": "do everything, including creating and changing experiments and keys",
}


@functools.cache
def document() -> bytes:
    """Return the document in JSON."""
    return msgspec.json.format(msgspec.json.encode(contents()), indent=1)


def contents() -> dict[str, Any]:
    """Return the document as a dictionary."""
    types = {kind: None for route in ROUTES for kind in _types(route)} | {Problem: None}
    schemas, components = msgspec.json.schema_components(list(types), ref_template=_REF)
    named = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    scopes = "; ".join(f"{scope}: {about}" for scope, about in SCOPES.items())
    return {
        "openapi": "3.1.0",
        "info": {"title": "Robandit", "version": __version__, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": f"An access key. Its scopes: {scopes}."}
            },
        },
    }


def _types(route: Route) -> list[type[Any]]:
    kinds = [kind for kind, _ in route.answers.values() if isinstance(kind, type)]
    return kinds if route.body is None else [route.body, *kinds]


def _operation(route: Route, named: dict[type[Any], Any]) -> dict[str, Any]:
    title, _, rest = route.about.partition(". ")
    handler = route.handler
    operation: dict[str, Any] = {
        "operationId": f"{handler.__module__.rpartition('.')[2]}.{handler.__name__}",
        "summary": title.rstrip("."),
        "security": [] if route.scope is None else [{"key": []}],
    }
    needs = "" if route.scope is None else f"Needs the scope {route.scope}."
    operation["description"] = " ".join(part for part in (rest, needs) if part)
    places = [(name, "path", *_PARAMETERS[name]) for name in route.names]
    places += [(each.name, "query", each.about, each.schema) for each in route.query]
    parameters = [
        {"name": name, "in": place, "required": place == "path", "schema": schema, "description": about}
        for name, place, about, schema in places
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": named[route.body]}}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    operation["responses"] = _responses(route, named)
    return operation


def _responses(route: Route, named: dict[type[Any], Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, (kind, about) in sorted(route.answers.items()):
        response: dict[str, Any] = {"description": about}
        if isinstance(kind, type):
            response["content"] = {"application/json": {"schema": named[kind]}}
        elif kind is not None:
            medias = [kind] if kind != "application/x-ndjson" else [kind, "text/csv", "application/vnd.apache.parquet"]
            response["content"] = {media: {} for media in medias}
        if (route.method != "GET" and "decisions" in route.path) or "rewards" in route.path or "failures" in route.path:
            about = "true if the same call was answered before."
            response["headers"] = {"Idempotent-Replayed": {"description": about, "schema": {"type": "string"}}}
        responses[str(status)] = response
    for status, group in itertools.groupby(route.codes, lambda code: CODES[code].status):
        if str(status) not in responses:
            content = {"application/problem+json": {"schema": named[Problem]}}
            about = f"{TITLES[status]}: {', '.join(group)}."
            responses[str(status)] = {"description": about, "content": content}
    return responses
