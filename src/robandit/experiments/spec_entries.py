"""The entries of a spec: convert them to problems and policies, and report errors with their place in the spec."""

from __future__ import annotations

import itertools
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from robandit.errors import InvalidInput, formatted
from robandit.experiments import notation
from robandit.experiments.own_code import import_modules
from robandit.experiments.plan import MOST_REPLICATIONS
from robandit.hints import unknown
from robandit.policies import Policy
from robandit.problems import Problem
from robandit.suites import NAMES
from robandit.validation import LARGEST_INTEGER, LEAST_EPS, integer, integer_meant

Path = tuple[str | int, ...]
"""Keys and list indices, from the top of a spec."""

VERSION = 1
MOST_IN_A_GRID = 10_000
_HORIZON = "an integer from 1 to 2^53"
RULES = {
    "version": f"the integer {VERSION}",
    "name": "a printable string",
    "imports": 'a list of names of modules, such as "mine" for mine.py next to the spec',
    "seed": "an integer >= 0 (and below 2^1024)",
    "replications": f"an integer from 1 to {MOST_REPLICATIONS:,}",
    "horizons": f"a list; each is {_HORIZON}",
    "suites": f"a list of names: {', '.join(NAMES)}",
    "problems": 'a list of strings such as "gaussian(means=[1.0, 0.0])" and of tables with problem, name, minimize and grid',
    "policies": 'a list of strings such as "AdaRUCB" and of tables with policy and grid',
    "eps": f"a number with 0 < eps <= 1 (and at least {LEAST_EPS:g})",
    "problem": 'a string such as "gaussian(means=[1.0, 0.0])"',
    "minimize": "true or false",
    "policy": 'a string such as "AdaRUCB"',
    "grid": "a table with a list of values for each parameter, such as {tail = [1.2, 1.5]}",
}
_ELEMENTS = {
    "imports": 'the name of a module, such as "mine" for mine.py next to the spec',
    "horizons": _HORIZON,
    "suites": f"one of {', '.join(NAMES)}",
    "problems": 'a string such as "gaussian(means=[1.0, 0.0])", or a table with problem, name, minimize and grid',
    "policies": 'a string such as "AdaRUCB", or a table with policy and grid',
}
_VALUES = "a list of values"


# --- errors ----------------------------------------------------------------------------------------------------------


class Misplaced(InvalidInput):
    """An error with its place in the spec."""

    def __init__(self, path: Path, message: str, **details: Any) -> None:
        """Put the place before the message, unless details are given: then the message already names it."""
        place = f"{_formatted_path(path)}: " if path and not details else ""
        super().__init__(f"{place}{message}", **details)
        self.message = message


def _formatted_path(path: Path) -> str:
    """Return a place as text, such as ``policies[0].grid.c``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in path).removeprefix(".")


def _short(key: str) -> str:
    return key if len(key) <= 80 else f"{key[:60]} ... {key[-10:]}"


def misplaced(path: Path, value: Any, rule: str = "") -> Misplaced:
    """Return the error for a value that breaks a rule, by default the rule of its place."""
    rule = rule or (_ELEMENTS[str(path[0])] if isinstance(path[-1], int) else RULES[path[-1]])
    name = _formatted_path(path)
    message = f"{name} = {formatted(value)} must be {rule}"
    if rule.startswith("an integer"):
        most = MOST_REPLICATIONS if path[-1] == "replications" else LARGEST_INTEGER
        hint = integer_meant(value, 1, most)
        message = f"{message}; {hint}" if hint else message
    return Misplaced(path, message, parameter=name, value=value, rule=rule)


def checked_integer(path: Path, value: Any, least: int, most: int) -> int:
    """Return the value as an int, or raise unless it is an integer from ``least`` to ``most``."""
    try:
        return integer(value, _formatted_path(path), least, most)
    except InvalidInput:
        raise misplaced(path, value) from None


def check_name(path: Path, value: Any) -> None:
    """Raise unless the name is a printable string."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise misplaced(path, value)


def import_all(names: Iterable[Any], folder: pathlib.Path | None = None, *, imported: bool = False) -> None:
    """Import the modules of a spec, from the spec's folder. ``imported``: those that are imported already are taken."""
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise misplaced(("imports", i), name)
        with _placed(("imports", i)):
            import_modules([name], folder, imported=imported)


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Add the place to errors that do not have one."""
    try:
        yield
    except Misplaced:
        raise
    except InvalidInput as error:
        raise Misplaced(path, str(error)) from error


def mistyped(data: dict[str, Any], message: str, fields: Mapping[str, Sequence[str]]) -> Misplaced:
    """Translate msgspec's message, such as ``Expected `int`, got `str` - at `$.horizons[1]```; ``fields`` lists a table's keys."""
    at = re.search(r" - at `\$(.*?)`$", message)
    steps = re.findall(r"\.(\w+)|\[(\d+)\]", at[1]) if at else []
    path: Path = tuple(key or int(index) for key, index in steps)
    value: Any = data
    for step in path:
        value = value[step]
    known = fields.get(str(path[0]) if path else "", ())
    if message.startswith("Object contains unknown field"):
        key = next(key for key in value if key not in known)
        return Misplaced((*path, key), unknown(f"the key {formatted(key)}", key, known))
    if message.startswith("Object missing required field"):
        missing = next(key for key in ("policies", "problem", "policy") if key in known and key not in value)
        return Misplaced(path, f"{missing} is missing: it must be {RULES[missing]}")
    if path[-1] == "grid" and isinstance(value, dict):  # msgspec does not name the key
        key = next(key for key in value if not isinstance(value[key], list))
        return misplaced((*path, key), value[key], _VALUES)
    return misplaced(path, value)


# --- entries ---------------------------------------------------------------------------------------------------------


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry that stands for one policy per combination of values in a grid."""

    policy: str
    grid: dict[str, tuple[Any, ...]] = {}


class ProblemEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry that stands for a named problem, or for one problem per combination of values in a grid."""

    problem: str
    name: str | None = None
    minimize: bool = False
    """Whether the problem has costs, which are minimised: the parameter ``minimize`` of its builder."""
    grid: dict[str, tuple[Any, ...]] = {}


@dataclass(frozen=True)
class NamedProblem:
    """A problem, its name, and the place of its entry in the spec."""

    path: Path
    name: str
    problem: Problem
    horizon: int | None = None  # only problems of suites have one


def problems_in(suites: Iterable[str], problems: Iterable[str | ProblemEntry]) -> list[NamedProblem]:
    """Return the problems of suites and entries."""
    named: list[NamedProblem] = []
    for i, suite in enumerate(suites):
        if not isinstance(suite, str):
            raise misplaced(("suites", i), suite)
        with _placed(("suites", i)):
            tasks = notation.suite_from(suite).tasks
        named += [NamedProblem(("suites", i), f"{suite}/{task.name}", task.problem, task.horizon) for task in tasks]
    for i, entry in enumerate(problems):
        named += _problems_of(entry, ("problems", i))
    return named


def _problems_of(entry: str | ProblemEntry, path: Path) -> Iterator[NamedProblem]:
    text, title, grid, place = entry, None, {}, path
    if isinstance(entry, ProblemEntry):
        text, title, grid, place = entry.problem, entry.name, entry.grid, (*path, "problem")
    if not isinstance(text, str):
        raise misplaced(place, text, RULES["problem"])
    if title is not None:
        check_name((*path, "name"), title)
    minimize = isinstance(entry, ProblemEntry) and entry.minimize
    if not isinstance(minimize, bool):
        raise misplaced((*path, "minimize"), minimize)
    with _placed(place):
        task = notation.task_from(text)
        if task is not None and grid:
            raise InvalidInput(f"{text} has no parameters for a grid: remove the grid")
        if task is not None and minimize:
            raise InvalidInput(f"{text} is a problem of a suite, which has its own sign: remove minimize")
        if task is not None:
            yield NamedProblem(path, title or text, task.problem, task.horizon)
            return
        name, parameters = notation.problem_call(text)
        notation.builder(name)
    fixed = parameters or {}
    if minimize:
        with _placed((*path, "minimize")):
            notation.check_parameters(name, ["minimize"])
            if "minimize" in fixed:
                raise InvalidInput(f"{text} already has minimize = {fixed['minimize']!r}: remove one of the two")
        fixed = {**fixed, "minimize": True}
    for point, where in _points(name, fixed, grid, (*path, "grid")) if grid else [({}, place)]:
        with _placed(where):
            problem = notation.problem_made(name, fixed | point)
        label = title if title is None or not point else notation.written(title, point)
        yield NamedProblem(path, label or notation.written(name, fixed | point), problem)


def policies_in(policies: Iterable[str | PolicyEntry]) -> list[tuple[Path, Policy]]:
    """Return the policies of the entries, each with its place."""
    places = ((("policies", i), entry) for i, entry in enumerate(policies))
    return [(path, policy) for path, entry in places for policy in _policies_of(entry, path)]


def _policies_of(entry: str | PolicyEntry, path: Path) -> Iterator[Policy]:
    text, grid, place = entry, {}, path
    if isinstance(entry, PolicyEntry):
        text, grid, place = entry.policy, entry.grid, (*path, "policy")
    if not isinstance(text, str):
        raise misplaced(place, text, RULES["policy"])
    with _placed(place):
        if not grid:
            yield from notation.policies_from(text)
            return
        name, parameters = notation.policy_call(text)
        if name == "all":
            raise InvalidInput("'all' has no parameters for a grid: name one policy")
        if parameters is None:
            _check_one(name, grid)
    fixed = parameters or {}
    for point, where in _points(name, fixed, grid, (*path, "grid")):
        with _placed(where):
            yield notation.policy_made(name, fixed | point)


def _check_one(name: str, grid: Iterable[str]) -> None:
    """Reject a bare name that stands for several policies, unless the grid chooses among them."""
    variants = [each.to_dict() for each in notation.policy_class(name).variants()]
    choosing = [key for key in variants[0] if len({str(each[key]) for each in variants}) > 1]
    if not set(choosing) <= set(grid):
        raise InvalidInput(
            f"{name} stands for {len(variants)} policies: put {', '.join(choosing)} in the grid, or write "
            f"{notation.written(name, {key: variants[0][key] for key in choosing})}"
        )


def _points(
    name: str, fixed: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], path: Path
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield each combination of a grid's values, with the place for an error message about it."""
    if not isinstance(grid, Mapping):
        raise misplaced(path, grid)
    size = math.prod(len(values) for values in grid.values() if isinstance(values, Sequence))
    if size > MOST_IN_A_GRID:
        raise Misplaced(path, f"it has {size:,} combinations: at most {MOST_IN_A_GRID:,} are allowed")
    for key, values in grid.items():
        place = (*path, key)
        with _placed(place):
            notation.check_parameters(name, [key])
            if key in fixed:
                raise InvalidInput(f"{name} already has {key} = {fixed[key]!r}: remove it there or from the grid")
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise misplaced(place, values, _VALUES)
        if not values:
            raise Misplaced(place, "the list is empty: give at least one value")
        for i, value in enumerate(values):
            if not notation.is_plain(value):
                raise misplaced((*place, i), value, "a number, a string, true, false or a list of these")
            if value in values[:i]:
                raise Misplaced((*place, i), f"the value {formatted(value)} is given twice: leave one of them out")
    for indices in itertools.product(*(range(len(values)) for values in grid.values())):
        point = {key: values[i] for (key, values), i in zip(grid.items(), indices, strict=True)}
        yield point, (*path, *grid, *indices) if len(grid) == 1 else path
