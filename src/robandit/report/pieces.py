"""Pieces of HTML pages that need nothing else: text that stays text, tables, and the frame with its policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from robandit import __version__
from robandit.wording import rounded

__all__ = [
    *("Markup", "Words", "asset", "cell", "document", "escaped", "facts", "figure", "more", "named", "pairs", "swatch"),
    *("table", "versions", "warning"),
]


class Words(str):
    """The head of a column of text."""


class Markup(str):
    """A head that is HTML already."""


def escaped(text: str) -> str:
    """Text as HTML."""
    return html.escape(text, quote=True)


def named(name: str, most: int = 60) -> str:
    """A name from somebody else's file as people can read it: on one line, not too long, without what turns text round.

    >>> named("a\\nb" + chr(0x202E)), named(""), named("x" * 99, 5)
    ('a·b·', '(empty)', 'xxxx…')
    """
    seen = "".join(c if c.isprintable() else "·" for c in name.strip()) or "(empty)"
    return seen if len(seen) <= most else seen[: most - 1] + "…"


def cell(value: float | None, text: str = "–", *notes: str) -> str:
    """A number with what it is sorted by, and notes below it."""
    key = None if value is None else rounded(value)
    small = "".join(f"<small>{escaped(note)}</small>" for note in notes if note)
    return f'<td data-v="{"" if key is None else key}">{escaped(text)}{small}</td>'


def table(
    head: Sequence[str], body: Iterable[Sequence[str]], *, label: str, sort: int | None = None, kind: str = ""
) -> str:
    """A table in a box of its own. ``sort``: the column by which it is sorted now, and can be sorted by others."""
    heads = []
    for i, each in enumerate(head):
        words = ' class="words"' if isinstance(each, Words) else ""
        order = ' aria-sort="ascending"' if i == sort else ""
        heads.append(f'<th scope="col"{words}{order}>{each if isinstance(each, Markup) else escaped(each)}</th>')
    rows = "\n".join(f"<tr>{''.join(row)}</tr>" for row in body)
    classes = kind if sort is None else "sortable"
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escaped(label)}"><table class="{classes}">'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def pairs(told: Mapping[str, str], *, label: str) -> str:
    """A table without a head: names, and what they are."""
    rows = "".join(
        f'<tr><th scope="row">{escaped(name)}</th><td class="words">{escaped(text)}</td></tr>'
        for name, text in told.items()
    )
    return f'<div class="box" tabindex="0" role="region" aria-label="{escaped(label)}"><table><tbody>{rows}</tbody></table></div>'


def facts(told: Mapping[str, str]) -> str:
    """A few numbers side by side, each with its name."""
    items = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(text)}</dd></div>" for name, text in told.items())
    return f'<dl class="facts">{items}</dl>'


def versions(*packages: str) -> dict[str, str]:
    """Of Robandit and these packages."""
    return {"robandit": __version__, **{name: version(name) for name in packages}}


def swatch(style: int) -> str:
    """Room for the colour and mark that stand for a line."""
    return f'<span class="swatch" data-style="{style}"></span> '


def figure(chart: str, number: int, alt: str, caption: str) -> str:
    """Room for a chart, which is seen once it is drawn."""
    return (
        f'<figure hidden data-chart="{chart}" data-number="{number}" data-alt="{escaped(alt)}">'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )


def more(title: str, content: str, *, wide: bool = False) -> str:
    """Something to open; ``wide``: too wide for paper, and not printed."""
    return f'<details class="more{" wide" if wide else ""}"><summary>{escaped(title)}</summary>{content}</details>'


def warning(content: str) -> str:
    """A box that stands out."""
    return f'<div class="warning" role="note">{content}</div>\n'


def asset(name: str) -> str:
    """The text of a file beside this one."""
    return (files("robandit.report") / "assets" / name).read_text(encoding="utf-8")


def document(title: str, header: str, main: str, *, styles: Sequence[str], scripts: Sequence[str], data: Any) -> str:
    """A page of its own: styles and scripts (names of assets) inside, and nothing may be asked of any address."""
    style = "".join(map(asset, styles))
    script = '(() => {\n"use strict";\n' + "".join(map(asset, scripts)) + "})();\n"
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="robandit {__version__}">
<title>{escaped(title)} | Robandit</title>
<style>{style}</style>
</head>
<body>
<header>
{header}
<noscript><p class="warning">The charts are drawn by JavaScript, which is off. All numbers are in the tables below.</p></noscript>
</header>
<main>
{main}
</main>
<script type="application/json" id="data">{_json(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _json(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
