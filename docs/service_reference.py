"""The reference of the decision service's interface, made from the OpenAPI document. Writes reference/service.md.

::

    python docs/service_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from robandit.service import bodies, openapi
from robandit.service.decoding import kind_of
from robandit.service.http import Route
from robandit.service.problems import CODES
from robandit.service.routes import ROUTES

PAGE = Path(__file__).parent / "reference" / "service.md"
WIDTH = 132
HEAD = """\
# The interface of the decision service

The calls of `robandit serve`, generated from the OpenAPI document (`python docs/service_reference.py`). A running server lists
them at `/docs`, and has the document at `/openapi.json`; neither needs a key. [Serve decisions](../how-to/serve.md) shows how to
use them, and [the guarantees](../explanation/service-guarantees.md) say what an answer means.

- Bodies and answers are JSON in UTF-8, at most 4 MiB. Unknown fields are rejected.
- Numbers are 64-bit floats, and are returned with the same bits. Times are seconds since 1970 (UTC).
- Strings have no control characters.
- Send the key in the header `Authorization: Bearer KEY`. A server with `--no-auth` needs no key.
- The header `Idempotent-Replayed: true` in an answer means that the call was repeated, and changed nothing.
- In a path, write a slash in an id or in the name of an arm as `%2F`.
- In the examples, the file `auth` has the line `header = "Authorization: Bearer KEY"`. A call without a body is
  `curl -K auth $URL/PATH`, with `-X METHOD` if it is not GET.

| scope | allows you to |
| --- | --- |
{scopes}

## Overview

| call | scope |
| --- | --- |
{overview}

## Problems

The answer to a call that fails is a [Problem](#problem) in `application/problem+json` (RFC 9457): `detail` is for people, `code`
for programs. A code keeps its meaning and its status. Versions may add codes: treat an unknown one by its status.

| status | code | when, and what to do |
| --- | --- | --- |
{problems}

Every call that needs a key can fail with {common}; every call on an experiment, with 404 `unknown-experiment`; and every call
with a body, with 413 `too-large`. The calls below name their other problems.
"""


TOPICS = (
    "Experiments",
    "Decisions and rewards",
    "Arms",
    "The log",
    "Keys and the audit log",
    "The server",
)
_BODIES = {
    "PUT /v1/experiments/{name}": '{"arms": ["a", "b", "c"], "minimize": true, "deadline": 30.0}',
    "POST /v1/experiments/{name}/decisions": '{"id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"}',
    "POST /v1/experiments/{name}/decisions/batch": '{"items": [{"id": "d1"}, {"id": "d2", "among": ["a", "b"]}, '
    '{"id": "d3"}, {"id": "d4"}]}',
    "POST /v1/experiments/{name}/rewards": '{"id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11", "value": 0.83}',
    "POST /v1/experiments/{name}/rewards/batch": '{"items": [{"id": "d1", "value": 1.2}, {"id": "d2", "value": 0.7}]}',
    "POST /v1/experiments/{name}/failures": '{"id": "d3"}',
    "POST /v1/experiments/{name}/failures/batch": '{"items": [{"id": "d4"}]}',
    "POST /v1/experiments/{name}/observations/batch": '{"items": [{"id": "k3m9qd2x7wfa-12", "arm": "a", "propensity": 0.75, '
    '"allocation": "5f0c2a9be1d43c77", "decided": 1800000000.25, "value": 0.83}]}',
    "POST /v1/experiments/{name}/arms": '{"arm": "d"}',
    "PATCH /v1/experiments/{name}/arms/{arm}": '{"state": "paused"}',
    "POST /v1/keys": '{"scopes": ["decide", "reward"], "experiments": ["provider"], "note": "checkout"}',
}
"""The body of an example of each call that has one."""
_VALUES = {"name": "provider", "arm": "d", "id": "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"}
_KEY_ID = "4f1c22d09ab1"


def markdown() -> str:
    """Return the page."""
    document = openapi.contents()
    schemas = document["components"]["schemas"]
    topics: dict[str, list[Route]] = {topic: [] for topic in TOPICS}
    for path in document["paths"]:
        topics[_topic(path)] += [route for route in ROUTES if route.path == path]
    routes = [route for topic in topics.values() for route in topic]
    common = {code for code in CODES if all(code in route.codes for route in routes if route.scope)}
    assert all(_usual(route) <= set(route.codes) for route in routes)
    parts = [
        HEAD.format(
            scopes=_lines(f"| `{scope}` | {about} |" for scope, about in openapi.SCOPES.items()),
            overview=_lines(
                f"| [{_title(route)}](#{_anchor(_title(route))}) | {route.scope or 'no key'} |" for route in routes
            ),
            problems=_lines(f"| {status} | `{code}` | {about} |" for code, (status, about) in CODES.items()),
            common=_codes(code for code in CODES if code in common),
        )
    ]
    for topic, chosen in topics.items():
        parts.append(f"## Calls: {topic[0].lower()}{topic[1:]}\n")
        parts += [_call(route, _operation(document, route), schemas, common) for route in chosen]
    parts.append("## Types in answers\n")
    types = dict(sorted(_types(schemas)))
    for name, schema in types.items():
        parts.append(f"### {name}\n\n{schema['description']}\n\n{_own_fields(name, types)}\n")
    return "\n".join(parts)


def _usual(route: Route) -> set[str]:
    """Return the problems of every call on an experiment, and of every call with a body."""
    on_experiment = "{name}" in route.path and route.method != "PUT"
    return ({"unknown-experiment"} if on_experiment else set()) | ({"too-large"} if route.body is not None else set())


def _own_fields(name: str, types: Mapping[str, Any]) -> str:
    """Return the fields of a type; of the fields that it shares with a type that has no others, a link to that type."""
    fields = types[name]["properties"]
    parts = {
        other: each["properties"] for other, each in types.items() if other != name and len(each["properties"]) > 4
    }
    inside = [other for other, part in parts.items() if len(part) < len(fields) and part.items() <= fields.items()]
    if not inside:
        return _fields(types[name])
    (other,) = inside
    own = {field: each for field, each in fields.items() if field not in parts[other]}
    return f"The fields of {_link(other)}, and:\n\n{_fields({'properties': own})}"


def _topic(path: str) -> str:
    if not path.startswith("/v1/experiments"):
        return TOPICS[4] if path.startswith("/v1/") else TOPICS[5]
    rest = path.removeprefix("/v1/experiments/{name}").split("/")
    places = {"decisions": 1, "rewards": 1, "failures": 1, "allocation": 1, "observations": 1, "arms": 2, "log": 3}
    return TOPICS[places.get(rest[1], 0) if len(rest) > 1 else 0]


def _operation(document: Mapping[str, Any], route: Route) -> Mapping[str, Any]:
    operation: Mapping[str, Any] = document["paths"][route.path][route.method.lower()]
    return operation


def _call(route: Route, operation: Mapping[str, Any], schemas: Mapping[str, Any], common: set[str]) -> str:
    about = operation["description"].removesuffix(f"Needs the scope {route.scope}.").strip()
    parts = [f"### {_title(route)}", _wrapped(" ".join(filter(None, (f"{operation['summary']}.", about))))]
    query = {each.name: each.schema | {"description": each.about} for each in route.query}
    parts.append(_fields({"properties": query}, "Query"))
    if "requestBody" in operation:
        kind = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        parts.append(
            f"Body: {_link(kind)}." if kind in _inside(schemas) else _fields(schemas[kind], "Body", required=True)
        )
    parts.append(_replies(operation["responses"]))
    codes = _codes(code for code in route.codes if code not in common | _usual(route))
    command = f"```sh\ncurl -K auth {example(route)}\n```" if _title(route) in _BODIES else ""
    parts += [_wrapped(f"Problems: {codes}.") if codes else "", command]
    return "\n\n".join(part for part in parts if part) + "\n"


def example(route: Route) -> str:
    """Return the end of a curl command: its options, and the path."""
    filled = route.path.format(**_VALUES | ({"id": _KEY_ID} if "keys" in route.path else {}))
    body = _BODIES.get(_title(route))
    by_default = "GET" if body is None else "POST"
    options = "" if route.method == by_default else f"-X {route.method} "
    return f"{options}$URL{filled}" + (f" -d '{body}'" if body else "")


def _types(schemas: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield all types but bodies of calls that no other type has in it, which are described with their call."""
    inside = _inside(schemas)
    described = {route.body.__name__ for route in ROUTES if route.body is not None}
    yield from ((name, schema) for name, schema in schemas.items() if name in inside or name not in described)
    (row,) = msgspec.json.schema_components([bodies.LogRow], ref_template="{name}")[1].values()
    yield "LogRow", row | {"description": f"{row['description']} With format=ndjson, a line holds one."}


def _inside(schemas: Mapping[str, Any]) -> set[str]:
    """Return the types that another type has in it."""
    return {name for name in schemas if f'/{name}"'.encode() in msgspec.json.encode(schemas)}


def _replies(responses: Mapping[str, Any]) -> str:
    rows = []
    for status, response in responses.items():
        content = response.get("content", {})
        if "application/problem+json" not in content:
            body = ", ".join(f"`{media}`" for media in content) or "no body"
            if "application/json" in content:
                body = kind_of(content["application/json"]["schema"], _link)
            rows.append(f"- {status}, {body}: {response['description']}")
    return f"Answer: {rows[0][2:]}" if len(rows) == 1 else f"Answer:\n\n{_lines(rows)}"


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"{CODES[code].status} `{code}`" for code in codes)


def _fields(schema: Mapping[str, Any], head: str = "", *, required: bool = False) -> str:
    rows = []
    for name, field in schema["properties"].items():
        kind, default = kind_of(field, _link).replace(", without control characters", ""), field.get("default")
        if required and default not in (None, ""):
            kind += f"; default `{msgspec.json.encode(default).decode()}`"
        mark = " (required)" if required and name in schema.get("required", ()) else ""
        about = field.get("description", "")
        if rows and not mark and not about and rows[-1].endswith(f"`: {kind}."):  # as the field before
            rows[-1] = rows[-1].replace("`: ", f"`, `{name}`: ", 1)
        else:
            rows.append(f"- `{name}`{mark}: {kind}. {about}".rstrip())
    return _lines([f"{head}:\n" if head else "", *rows]).lstrip("\n") if rows else ""


def _title(route: Route) -> str:
    return f"{route.method} {route.path}"


def _link(name: str) -> str:
    return f"[{name}](#{_anchor(name)})"


def _anchor(title: str) -> str:
    """Return the anchor that GitHub and MyST give to a title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(re.sub(r"\|  \|", "| |", row) for row in rows)


def _wrapped(text: str) -> str:
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
