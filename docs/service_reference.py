"""The reference of the decision service's interface, made from the OpenAPI document. Writes reference/service.md.

::

    python docs/service_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from robandit.service.decoding import kind_of
from robandit.service.interface import Call, Field, Reply, default_of, interface
from robandit.service.problems import CODES

PAGE = Path(__file__).parent / "reference" / "service.md"
WIDTH = 132
HEAD = """\
# The interface of the decision service

`robandit serve` answers these calls. This page is generated from the OpenAPI document (`python docs/service_reference.py`). A
running server has the same reference at `/docs`, and the document at `/openapi.json`; neither needs a key.
[Serve decisions](../how-to/serve.md) shows how to use the calls, and [the guarantees](../explanation/service-guarantees.md) say
what an answer means.

- Bodies and answers are JSON in UTF-8, at most 4 MiB. Unknown fields are rejected, so that a misspelled field is not ignored.
- Numbers are 64-bit floats, and are returned with the same bits. Times are seconds since 1970 (UTC).
- Send the key in the header `Authorization: Bearer KEY`. A server with `--no-auth` needs no key.
- The header `Idempotent-Replayed: true` in an answer means that the call was repeated, and changed nothing.
- In a path, write a slash in an id or in the name of an arm as `%2F`.

| scope | allows you to |
| --- | --- |
{scopes}

## Overview

| call | | scope |
| --- | --- | --- |
{overview}

## Problems

The answer to a call that fails is a [Problem](#problem) in `application/problem+json` (RFC 9457). `detail` is a sentence for
people, and `code` is a word for programs. A code keeps its meaning and its status. Versions may add codes: treat an unknown one by
its status.

| status | code | when, and what to do |
| --- | --- | --- |
{problems}

Every call that needs a key can fail with {common}. The calls below name their other problems.
"""


def markdown() -> str:
    """Return the page."""
    known = interface()
    calls = [call for topic in known.topics.values() for call in topic]
    common = {code for code in CODES if all(code in call.problems for call in calls if call.scope)}
    parts = [
        HEAD.format(
            scopes=_lines(f"| `{scope}` | {about} |" for scope, about in known.scopes.items()),
            overview=_lines(
                f"| [{_title(call)}](#{_anchor(_title(call))}) | {call.title} | {call.scope or 'no key'} |"
                for call in calls
            ),
            problems=_lines(f"| {status} | `{code}` | {about} |" for code, (status, about) in CODES.items()),
            common=_codes(code for code in CODES if code in common),
        )
    ]
    for topic, chosen in known.topics.items():
        parts += [f"## Calls: {topic[0].lower()}{topic[1:]}\n", *(_call(call, common) for call in chosen)]
    parts.append("## Types in answers\n")
    for kind in sorted(known.types, key=lambda each: each.name):
        parts.append(f"### {kind.name}\n\n{kind.about}\n\n{_fields(kind.fields)}\n")
    return "\n".join(parts)


def _call(call: Call, common: set[str]) -> str:
    needs = f"Needs the scope `{call.scope}`." if call.scope else "Needs no key."
    parts = [f"### {_title(call)}", _wrapped(" ".join(filter(None, (f"{call.title}.", call.about, needs))))]
    parts += [_fields([field for field in call.parameters if not field.required], "Query")]
    parts += [_fields(call.fields, "Body", required=True), _replies(call.replies)]
    codes = _codes(code for code in call.problems if code not in common)
    key = ' -H "Authorization: Bearer $KEY"' if call.scope else ""
    parts += [_wrapped(f"Problems: {codes}.") if codes else "", f"```sh\ncurl{key} {call.example}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _replies(replies: Iterable[Reply]) -> str:
    rows = []
    for reply in replies:
        media = ", ".join(f"`{each}`" for each in reply.body.split(", "))
        body = media if "/" in reply.body else _link(reply.body) if reply.body else "no body"
        rows.append(f"- {reply.status}, {body}: {reply.about}")
    return f"Answer:\n\n{_lines(rows)}"


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"{CODES[code].status} `{code}`" for code in codes)


def _fields(fields: Iterable[Field], head: str = "", *, required: bool = False) -> str:
    rows = []
    for field in fields:
        kind = kind_of(field.schema, _link, str)
        default = default_of(field) if required else ""
        mark = " (required)" if required and field.required else ""
        kind = f"{kind}; default `{default}`" if default else kind
        rows.append(f"- `{field.name}`{mark}: {kind}. {field.about}".rstrip())
    return _lines([f"{head}:\n" if head else "", *rows]).lstrip("\n") if rows else ""


def _title(call: Call) -> str:
    return f"{call.method} {call.path}"


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
