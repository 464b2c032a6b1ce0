"""The interface in words: calls by topic, fields with their types, problems, and examples.

Made from the OpenAPI document. The page /docs and docs/reference/service.md are written from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from robandit.service import bodies, openapi
from robandit.service.http import Route
from robandit.service.routes import ROUTES

TOPICS = (
    "Experiments",
    "Decisions and rewards",
    "Arms",
    "The log",
    "Keys and the audit log",
    "The server",
)
_EXAMPLES: dict[tuple[str, str], str] = {
    ("PUT", "/v1/experiments/{name}"): '{"arms": ["a", "b", "c"], "minimize": true}',
    ("POST", "/v1/experiments/{name}/decisions"): '{"id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"}',
    ("POST", "/v1/experiments/{name}/decisions/batch"): '{"items": [{"id": "d1"}, {"id": "d2", "among": ["a", "b"]}]}',
    ("POST", "/v1/experiments/{name}/rewards"): '{"id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11", "value": 0.83}',
    (
        "POST",
        "/v1/experiments/{name}/rewards/batch",
    ): '{"items": [{"id": "d1", "value": 1.2}, {"id": "d2", "value": 0.7}]}',
    ("POST", "/v1/experiments/{name}/arms"): '{"arm": "d"}',
    ("PATCH", "/v1/experiments/{name}/arms/{arm}"): '{"state": "paused"}',
    ("POST", "/v1/keys"): '{"scopes": ["decide", "reward"], "experiments": ["provider"], "note": "checkout"}',
}
"""The body of an example of each call that has one."""
_VALUES = {"name": "provider", "arm": "d", "id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"}
_KEY_ID = "4f1c22d09ab1"


class Field(NamedTuple):
    """A field of a body, or a parameter."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    about: str


class Reply(NamedTuple):
    """An answer that is not a problem."""

    status: str
    about: str
    body: str
    """The name of its type, or its media types, or "" if it has none."""


class Call(NamedTuple):
    """A call of the interface."""

    method: str
    path: str
    title: str
    about: str
    scope: str
    """The scope that a key needs, or "" if none is needed."""
    parameters: tuple[Field, ...]
    body: str
    """The name of the type of its body, or ""."""
    fields: tuple[Field, ...]
    """The fields of its body."""
    replies: tuple[Reply, ...]
    problems: tuple[str, ...]
    """The codes of its problems."""
    example: str
    """The end of a curl command: its options, and the path."""


class Type(NamedTuple):
    """A type of bodies and answers."""

    name: str
    about: str
    fields: tuple[Field, ...]


class Interface(NamedTuple):
    """All calls by topic, and the types in their answers."""

    about: str
    version: str
    scopes: dict[str, str]
    topics: dict[str, list[Call]]
    types: list[Type]


def interface() -> Interface:
    """Return the interface of this version."""
    document = openapi.contents()
    schemas = document["components"]["schemas"]
    routes = {(route.method, route.path): route for route in ROUTES}
    topics: dict[str, list[Call]] = {topic: [] for topic in TOPICS}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            topics[_topic(path)].append(_call(routes[method.upper(), path], operation, schemas))
    described = {call.body for calls in topics.values() for call in calls}
    types = list(_types(schemas, described))
    return Interface(document["info"]["description"], document["info"]["version"], openapi.SCOPES, topics, types)


def _topic(path: str) -> str:
    if not path.startswith("/v1/experiments"):
        return TOPICS[4] if path.startswith("/v1/") else TOPICS[5]
    rest = path.removeprefix("/v1/experiments/{name}").split("/")
    places = {"decisions": 1, "rewards": 1, "arms": 2, "log": 3}
    return TOPICS[places.get(rest[1], 0) if len(rest) > 1 else 0]


def _call(route: Route, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Call:
    parameters = tuple(
        Field(each["name"], each["schema"], each["required"], each["description"])
        for each in operation.get("parameters", ())
    )
    body = operation.get("requestBody")
    kind = "" if body is None else _name(body["content"]["application/json"]["schema"])
    replies = []
    for status, response in operation["responses"].items():
        content = response.get("content", {})
        if "application/json" in content:
            replies.append(Reply(status, response["description"], _name(content["application/json"]["schema"])))
        elif "application/problem+json" not in content:
            replies.append(Reply(status, response["description"], ", ".join(content)))
    return Call(
        route.method,
        route.path,
        operation["summary"],
        operation["description"].removesuffix(f"Needs the scope {route.scope}.").strip(),
        route.scope or "",
        parameters,
        kind,
        tuple(_fields(schemas[kind])) if kind else (),
        tuple(replies),
        tuple(route.codes),
        _example(route.method, route.path),
    )


def _example(method: str, path: str) -> str:
    filled = path.format(**_VALUES | ({"id": _KEY_ID} if "keys" in path else {}))
    body = _EXAMPLES.get((method, path))
    options = f"-X {method} " if method not in ("GET", "POST") or (body is None and method == "POST") else ""
    sent = f" -d '{body}'" if body else ""
    return f"{options}$URL{filled}{sent}"


def _types(schemas: Mapping[str, Any], described: set[str]) -> Iterator[Type]:
    """Yield all types but those that are ``described`` with a call, and that no other type has in it."""
    inside = {name for name in schemas if f'/{name}"'.encode() in msgspec.json.encode(schemas)}
    for name, schema in schemas.items():
        if name in inside or name not in described:
            yield Type(name, schema["description"], tuple(_fields(schema)))
    (row,) = msgspec.json.schema_components([bodies.LogRow], ref_template="{name}")[1].values()
    yield Type("LogRow", f"{row['description']} With format=ndjson, a line holds one.", tuple(_fields(row)))


def _fields(schema: Mapping[str, Any]) -> Iterator[Field]:
    for name, field in schema["properties"].items():
        yield Field(name, field, name in schema.get("required", ()), field.get("description", ""))


def _name(schema: Mapping[str, Any]) -> str:
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def default_of(field: Field) -> str:
    """Return the default of a field in JSON, or "" if it has none, or one that stands for nothing."""
    default = field.schema.get("default")
    return "" if default in (None, "") else msgspec.json.encode(default).decode()
