"""Tables and paragraphs in HTML for notebooks. All text is escaped; notebooks bring their own style for tables."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from robandit.wording import visible

ROWS = 60  # rows of a table; the number of the others is printed below it


def escaped(text: str) -> str:
    """Escape text for HTML. Characters that cannot be seen, and would confuse a reader or a browser, are shown.

    >>> escaped("a < b\\r\\n" + chr(27))  # line ends of Windows are line ends
    'a &lt; b\\n\\\\x1b'
    """
    return html.escape(visible(text.replace("\r\n", "\n"), keep="\n\t"), quote=True)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, text: int = 1) -> str:
    """Return a table. The first ``text`` columns are aligned to the left, the others (numbers) to the right.

    >>> print(table(["arm", "mean"], [["<a>", 1.5]]))
    <table class="dataframe"><thead><tr><th style="text-align:left">arm</th><th style="text-align:right">mean</th></tr></thead>
    <tbody><tr><td style="text-align:left">&lt;a&gt;</td><td style="text-align:right">1.5</td></tr></tbody></table>
    """
    lines = [list(row) for row in rows]
    shown = "\n".join(_row("td", line, text) for line in lines[:ROWS])
    more = f"\n<p>and {len(lines) - ROWS:,} more rows</p>" if len(lines) > ROWS else ""
    return f'<table class="dataframe"><thead>{_row("th", head, text)}</thead>\n<tbody>{shown}</tbody></table>{more}'


def _row(tag: str, cells: Sequence[object], text: int) -> str:
    sides = ("left" if i < text else "right" for i in range(len(cells)))
    inside = (
        f'<{tag} style="text-align:{side}">{escaped(str(cell))}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(inside)}</tr>"


def paragraph(text: str, *, strong: str = "") -> str:
    """Return a paragraph, which begins with the ``strong`` words."""
    first = f"<strong>{escaped(strong)}</strong> " if strong else ""
    return f"<p>{first}{escaped(text)}</p>"


def preformatted(text: str) -> str:
    """Return a text whose lines and columns stay as they are."""
    return f"<pre>{escaped(text)}</pre>"


def block(*parts: str) -> str:
    """Return the parts in one element, since a notebook shows one."""
    inside = "\n".join(part for part in parts if part)
    return f"<div>{inside}</div>"
