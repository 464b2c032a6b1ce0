"""TOML functions that the standard library lacks: line numbers of keys, elements and errors, and a writer."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

Path = tuple[str | int, ...]
"""Keys and list indices, from the top of the file."""

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_INLINE_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' + r"|'''.*?'{3,5}(?!')" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'", re.DOTALL
)
MOST_PARTS = 100  # of a dotted key: the standard library reads it in a time that grows with their square
_LONG_KEY = re.compile(
    rf"""(?<![\w."'-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{MOST_PARTS}}}"""
)  # not preceded by the middle of a word or key, so the search takes linear time
_OTHER = re.compile(r"[^,\]}#\n]*")  # numbers, dates, true and false


def lines(text: str) -> dict[Path, int]:
    """Return the line number of every key, table and list element of a valid TOML text.

    >>> lines('seed = 1\\npolicies = [\\n  "UCB1",\\n  {policy = "APE2"},\\n]')[("policies", 1, "policy")]
    4
    """
    return _Scanner(text).line_numbers


def line_of(line_numbers: Mapping[Path, int], path: Path) -> int:
    """Return the line of a path, or of the innermost known element around it. The line of the empty path is 1."""
    while path and path not in line_numbers:
        path = path[:-1]
    return line_numbers.get(path, 1)


def line_of_long_key(text: str) -> int | None:
    """Return the line of the first dotted key with more than `MOST_PARTS` parts, or None."""
    found = _LONG_KEY.search(text)
    return None if found is None else text.count("\n", 0, found.start()) + 1


def syntax_message(text: str, error: Exception) -> str:
    """Return the line and the message of an error of the TOML reader, as ``line: message``."""
    if isinstance(error, RecursionError):
        return "1: this is not a spec: lists or tables are nested too deeply"
    at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    if at is None:
        return f"1: this is not TOML: {error}"
    line = at[1] or max(1, text.count("\n") + (not text.endswith("\n")))
    return f"{line}: this is not TOML: {str(error)[: at.start()]}; see https://toml.io"


def toml_value(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> toml_value({"policy": "APE2", "grid": {"c": [0.5, 1.0]}})
    '{ policy = "APE2", grid = { c = [0.5, 1.0] } }'
    """
    if isinstance(value, Mapping):
        keys = [key if _BARE_KEY.fullmatch(key) else toml_value(key) for key in value]
        pairs = [f"{key} = {toml_value(each)}" for key, each in zip(keys, value.values(), strict=True)]
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        if '"' in value and "'" not in value and value.isprintable():
            return f"'{value}'"  # without escapes
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


class _Scanner:
    """Walk through a valid TOML text, without checks, and collect line numbers."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line_numbers: dict[Path, int] = {}
        self.ends = [match.start() for match in re.finditer("\n", text)]
        self.tables: dict[Path, int] = {}  # number of [[tables]] with this name
        self.document()

    def document(self) -> None:
        table: Path = ()
        self.skip(_SPACE)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_SPACE)

    def header(self) -> Path:
        """Read ``[name]`` or ``[[name]]``."""
        several = self.text.startswith("[[", self.at)
        line = self.line()
        self.at += 1 + several
        names = self.key()
        self.at += 1 + several
        path: Path = ()
        for i, name in enumerate(names):
            path = (*path, name)
            self.line_numbers.setdefault(path, line)
            if several and i == len(names) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
                self.line_numbers.setdefault(path, line)
        return path

    def pair(self, table: Path) -> None:
        """Read ``key = value``."""
        line = self.line()
        path = table
        for name in self.key():
            path = (*path, name)
            self.line_numbers.setdefault(path, line)
        self.at += 1  # =
        self.skip(_INLINE_SPACE)
        self.value(path)

    def key(self) -> list[str]:
        """Return the names of a dotted key."""
        names: list[str] = []
        while True:
            self.skip(_INLINE_SPACE)
            quoted = self.text[self.at] in "\"'"
            start = self.at
            self.skip(_STRING if quoted else _BARE_KEY)
            word = self.text[start : self.at]
            names.append(tomllib.loads(f"word = {word}")["word"] if quoted else word)
            self.skip(_INLINE_SPACE)
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def value(self, path: Path) -> None:
        sign = self.text[self.at]
        if sign in "[{":
            self.inside("]" if sign == "[" else "}", path)
        else:
            self.skip(_STRING if sign in "\"'" else _OTHER)

    def inside(self, end: str, path: Path) -> None:
        """Read a list or an inline table, with its elements."""
        self.at += 1
        index = 0
        while True:
            self.skip(_SPACE)
            if self.text[self.at] == end:
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
            elif end == "}":
                self.pair(path)
            else:
                self.line_numbers[(*path, index)] = self.line()
                self.value((*path, index))
                index += 1

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def line(self) -> int:
        return bisect_left(self.ends, self.at) + 1
