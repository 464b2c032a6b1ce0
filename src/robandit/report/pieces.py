"""Parts of self-contained HTML pages: escaped text, tables, and the document with its security policy."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from robandit import __version__
from robandit.notebook import escaped as escaped
from robandit.wording import number, rounded


class Markup(str):
    """A column name that is HTML and must not be escaped."""


def named(name: str, most: int = 60) -> str:
    """Shorten a name from a user's file to one line of ``most`` characters, without control and direction characters.

    >>> named("a\\nb" + chr(0x202E)), named(""), named("x" * 99, 5)
    ('a·b·', '(empty)', 'xxxx…')
    """
    text = "".join(c if c.isprintable() else "·" for c in name.strip()) or "(empty)"
    return text if len(text) <= most else text[: most - 1] + "…"


def cell(value: float | None, text: str = "–", *notes: str) -> str:
    """Return a table cell with the text of a number, the value to sort by, and notes below it."""
    key = None if value is None else rounded(value)
    small = "".join(f"<small>{escaped(note)}</small>" for note in notes if note)
    return f'<td data-v="{"" if key is None else key}">{escaped(text)}{small}</td>'


def number_cell(value: float, *notes: str) -> str:
    """Return a table cell with a number and notes below it."""
    return cell(value, number(value), *notes)


def words_cell(content: str, kind: str = "words") -> str:
    """Return a table cell with HTML."""
    return f'<td class="{kind}">{content}</td>'


def table(rows: Sequence[Mapping[str, str]], *, label: str, sort: int | None = None, kind: str = "") -> str:
    """Return a table in a box that scrolls; each row maps the names of columns to cells.

    If ``sort`` is the number of the column by which the rows are sorted, readers can sort by other columns.
    """
    heads = []
    for i, (name, first) in enumerate(rows[0].items()):
        words = ' class="words"' if first.startswith('<td class="words') else ""
        order = ' aria-sort="ascending"' if i == sort else ""
        heads.append(f'<th scope="col"{words}{order}>{name if isinstance(name, Markup) else escaped(name)}</th>')
    body = "\n".join(f"<tr>{''.join(row.values())}</tr>" for row in rows)
    classes = kind if sort is None else "sortable"
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escaped(label)}"><table class="{classes}">'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def reproduction(noun: str, command: str, remark: str, details: Mapping[str, str], *, label: str) -> str:
    """Return the section on how to reproduce the page: the command, a remark as HTML, and a table of details."""
    rows = "".join(
        f'<tr><th scope="row">{escaped(name)}</th>{words_cell(escaped(text))}</tr>' for name, text in details.items()
    )
    code = f"<pre><code>{escaped(command)}</code></pre>" if command else ""  # results of Python have none
    return f"""<h2>How to reproduce this {noun}</h2>
{code}{remark}
<div class="box" tabindex="0" role="region" aria-label="{escaped(label)}"><table><tbody>{rows}</tbody></table></div>"""


def facts(texts: Mapping[str, str]) -> str:
    """Return a few numbers side by side, each with its name."""
    items = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(text)}</dd></div>" for name, text in texts.items())
    return f'<dl class="facts">{items}</dl>'


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Robandit and of these packages."""
    return {"robandit": __version__, **{name: version(name) for name in packages}}


def swatch(style: int) -> str:
    """Return an empty element, in which a script draws the colour and the mark of a line."""
    return f'<span class="swatch" data-style="{style}"></span> '


def figure(chart: str, number: int, alt: str, caption: str) -> str:
    """Return the element in which a script draws a chart. It is hidden until then."""
    return (
        f'<figure hidden data-chart="{chart}" data-number="{number}" data-alt="{escaped(alt)}">'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )


def more(title: str, content: str, *, wide: bool = False) -> str:
    """Return content that is hidden until a reader opens it; ``wide`` content is not printed on paper."""
    return f'<details class="more{" wide" if wide else ""}"><summary>{escaped(title)}</summary>{content}</details>'


def warning(content: str) -> str:
    """Return a highlighted box."""
    return f'<div class="warning" role="note">{content}</div>\n'


def warnings(sentences: Sequence[str]) -> str:
    """Return a highlighted box with these sentences; empty if there are none."""
    return warning("".join(f"<p>{escaped(each)}</p>" for each in sentences)) if sentences else ""


def document(
    title: str, header: str, main: str, *, styles: Sequence[str], scripts: Sequence[str] = (), data: Any = None
) -> str:
    """Return a page that contains its assets (``styles`` and ``scripts``) and may not load anything else."""
    assets = files("robandit.report") / "assets"
    style, script = ("".join((assets / name).read_text("utf-8") for name in names) for names in (styles, scripts))
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    if scripts:
        script = f'(() => {{\n"use strict";\n{script}}})();\n'
        policy += f"; script-src '{_hash(script)}'"
        off = "The charts need JavaScript, which is off. The tables below have all numbers."
        header += f'\n<noscript><p class="warning">{off}</p></noscript>'
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        for mark in "<>&":  # so that the data cannot close their element
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        script = f'\n<script type="application/json" id="data">{text}</script>\n<script>{script}</script>'
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
</header>
<main>
{main}
</main>{script}
</body>
</html>
"""


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
