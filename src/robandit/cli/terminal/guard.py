"""No control character of a file reaches the terminal, which might obey it: all text is written through this file.

Texts that are printed pass `guard`, which wraps standard output and standard error. It keeps line ends, so a text with names of
files is printed by `write_line`. Rich writes its own control characters, so it bypasses these, and its texts are made by `shown`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from robandit.wording import visible

if TYPE_CHECKING:
    from rich.text import Text


def guard() -> None:
    """Escape control characters in everything that is printed, except line ends and tabs."""
    for name in ("stdout", "stderr"):
        if not isinstance(stream := getattr(sys, name), _Guarded):
            setattr(sys, name, _Guarded(stream))


class _Guarded:
    """A text stream that escapes what is written to it. Everything else is left to the stream."""

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream  # Rich writes to it
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(visible(text, keep="\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def write_line(text: str, stream: IO[str] | None = None) -> None:
    """Print text on one line of standard output, or of another stream. Line ends in it are escaped."""
    print(visible(text), file=stream)


def shown(text: str, style: str = "") -> Text:
    """Return text for Rich, on one line. Brackets in it are not markup."""
    from rich.text import Text

    return Text(visible(text), style)
