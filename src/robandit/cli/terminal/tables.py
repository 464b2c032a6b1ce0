"""Tables that fit the width of the terminal."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robandit.cli.terminal.guard import shown, write_line
from robandit.wording import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

NARROWEST, WIDEST = 14, 26  # characters in a column of words; longer cells are folded


def new_table(title: str, note: str, *, title_style: str = "", note_style: str = "", edge: bool = True) -> Table:
    """Return an empty table with a title above and a note below it."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=edge)
    table.title, table.caption = shown(title, title_style), shown(note, note_style)
    table.title_justify = table.caption_justify = "left"
    return table


@dataclass(frozen=True)
class Board:
    """A table that hides columns on a narrow terminal and lists them in its note."""

    title: str
    note: str
    columns: dict[str, list[str]]
    words: tuple[str, ...] = ("policy",)
    """Names of the columns whose cells may be folded."""
    spare: tuple[str, ...] = ()
    """Names of the columns that may be hidden, the first to hide first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement

        hidden: list[str] = []

        def width(words: int) -> int:
            return Measurement.get(console, options.update(width=10_000), self._table(hidden, words)).maximum

        for name in (*self.spare, None):
            room = options.max_width - width(NARROWEST)
            if room >= 0 or name is None:
                break
            hidden.append(name)
        words = max(NARROWEST, min(WIDEST, NARROWEST + room))
        while words > NARROWEST and width(words) > options.max_width:  # two columns of words became wider
            words -= 1
        yield self._table(hidden, words)
        yield ""

    def _table(self, hidden: list[str], widest: int) -> Table:
        from rich.text import Text

        more = f" Columns hidden to fit the screen: {', '.join(hidden)}." if hidden else ""
        table = new_table(self.title, self.note + more)
        columns = {name: cells for name, cells in self.columns.items() if name not in hidden}
        for name, texts in columns.items():
            cells = columns[name] = [visible(text) for text in texts]
            head = name.replace(" ", "\n").replace("95\n%", "95 %")
            if name in self.words:
                table.add_column(head, overflow="fold", max_width=widest)
                columns[name] = [folded(cell, widest) for cell in cells]
            else:
                table.add_column(head, justify="right", no_wrap=True)
        for row in zip(*columns.values(), strict=True):
            table.add_row(*(Text(cell) for cell in row))  # Text, because brackets in a name would be markup
        return table


def print_line(line: str) -> None:
    """Print a long line on standard output. A terminal gets it wrapped between words, a file or a pipe as it is."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console().print(shown(line))
    else:
        write_line(line)


def folded(name: str, width: int) -> str:
    """Fold a name into lines of ``width`` characters, before "(" or after " " or ","; long parts also after "=", "_" or "-"."""
    parts = re.split(r"(?=\()|(?<=[ ,])", name)
    lines = [""]
    for part in (each for long in parts for each in (re.split(r"(?<=[=_-])", long) if len(long) > width else [long])):
        if len((lines[-1] + part).rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)
