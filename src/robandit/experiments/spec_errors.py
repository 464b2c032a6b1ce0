"""Errors of a spec, with their place: the rules for each key, and translations of msgspec's and TOML's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from robandit.errors import InvalidInput, formatted
from robandit.experiments import notation
from robandit.experiments.plan import MOST_REPLICATIONS
from robandit.experiments.toml import Path
from robandit.suites import NAMES
from robandit.validation import LEAST_EPS, integer

VERSION = 1
_HORIZON = "an integer from 1 to 2^53"
RULES = {
    "version": f"the integer {VERSION}",
    "name": "a printable string",
    "seed": "an integer >= 0 (and below 2^1024)",
    "replications": f"an integer from 1 to {MOST_REPLICATIONS:,}",
    "horizons": f"a list; each is {_HORIZON}",
    "suites": f"a list of names: {', '.join(NAMES)}",
    "problems": 'a list of strings such as "gaussian(means=[1.0, 0.0])" and of tables with problem, name and grid',
    "policies": 'a list of strings such as "AdaRUCB" and of tables with policy and grid',
    "eps": f"a number with 0 < eps <= 1 (and at least {LEAST_EPS:g})",
    "problem": 'a string such as "gaussian(means=[1.0, 0.0])"',
    "policy": 'a string such as "AdaRUCB"',
    "grid": "a table with a list of values for each parameter, such as {tail = [1.2, 1.5]}",
}
_ELEMENTS = {
    "horizons": _HORIZON,
    "suites": f"one of {', '.join(NAMES)}",
    "problems": 'a string such as "gaussian(means=[1.0, 0.0])", or a table with problem, name and grid',
    "policies": 'a string such as "AdaRUCB", or a table with policy and grid',
}
VALUES = "a list of values"


class Misplaced(InvalidInput):
    """An error with its place in the spec."""

    def __init__(self, path: Path, message: str, **details: Any) -> None:
        """Put the place before the message, unless the details name it."""
        place = f"{_formatted_path(path)}: " if path and not details else ""
        super().__init__(f"{place}{message}", **details)
        self.path = path
        self.message = message


def misplaced(path: Path, value: Any, rule: str = "") -> Misplaced:
    """Return the error for a value that breaks a rule, by default the rule of its place."""
    rule = rule or (_ELEMENTS[str(path[0])] if isinstance(path[-1], int) else RULES[path[-1]])
    name = _formatted_path(path)
    message = f"{name} = {formatted(value)} must be {rule}"
    return Misplaced(path, message, parameter=name, value=value, rule=rule)


def checked_integer(path: Path, value: Any, least: int, most: int) -> int:
    """Return an integer from ``least`` to ``most``."""
    try:
        return integer(value, _formatted_path(path), least, most)
    except InvalidInput:
        raise misplaced(path, value) from None


@contextmanager
def placed(path: Path) -> Iterator[None]:
    """Add the place to errors that have none."""
    try:
        yield
    except Misplaced:
        raise
    except InvalidInput as error:
        raise Misplaced(path, str(error)) from error


def mistyped(data: dict[str, Any], message: str, fields: dict[str, tuple[str, ...]]) -> Misplaced:
    """Translate msgspec's message, such as ``Expected `int`, got `str` - at `$.horizons[1]```; ``fields`` are by table."""
    at = re.search(r" - at `\$(.*?)`$", message)
    steps = re.findall(r"\.(\w+)|\[(\d+)\]", at[1]) if at else []
    path: Path = tuple(key or int(index) for key, index in steps)
    value: Any = data
    for step in path:
        value = value[step]
    known = fields.get(str(path[0]) if path else "", ())
    if message.startswith("Object contains unknown field"):
        key = next(key for key in value if key not in known)
        return Misplaced((*path, key), notation.unknown(f"the key {key!r}", key, known))
    if message.startswith("Object missing required field"):
        missing = next(key for key in ("policies", "problem", "policy") if key in known and key not in value)
        return Misplaced(path, f"{missing} is missing: it must be {RULES[missing]}")
    if path[-1] == "grid" and isinstance(value, dict):  # msgspec does not name the key
        key = next(key for key in value if not isinstance(value[key], list))
        return misplaced((*path, key), value[key], VALUES)
    return misplaced(path, value)


def syntax_message(text: str, where: str, error: Exception) -> str:
    """Return a TOML error with its line at the front."""
    if isinstance(error, RecursionError):
        return f"{where}:1: this is not a spec: lists or tables are nested too deeply"
    at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    if at is None:
        return f"{where}:1: this is not TOML: {error}"
    line = at[1] or max(1, text.count("\n") + (not text.endswith("\n")))
    return f"{where}:{line}: this is not TOML: {str(error)[: at.start()]}; see https://toml.io"


def _formatted_path(path: Path) -> str:
    """Return a place as people write it: ``policies[0].grid.c``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
