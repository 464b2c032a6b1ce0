"""The problems and policies that the entries of a spec stand for, one for each point of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from robandit.errors import InvalidInput, formatted
from robandit.experiments import notation
from robandit.experiments.spec_errors import RULES, VALUES, Misplaced, misplaced, placed
from robandit.experiments.toml import Path
from robandit.policies import Policy
from robandit.problems import Problem

MOST_IN_A_GRID = 10_000


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A policy for each combination of values in a grid."""

    policy: str
    grid: dict[str, tuple[Any, ...]] = {}


class ProblemEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A problem with a name, or one for each combination of values in a grid."""

    problem: str
    name: str | None = None
    grid: dict[str, tuple[Any, ...]] = {}


@dataclass(frozen=True)
class NamedProblem:
    """A problem, and the place in the spec that asks for it."""

    path: Path
    name: str
    problem: Problem
    horizon: int | None = None
    """That of a suite's problem."""


def problems_in(suites: Iterable[str], problems: Iterable[str | ProblemEntry]) -> list[NamedProblem]:
    """Return the problems of suites and entries."""
    named: list[NamedProblem] = []
    for i, suite in enumerate(suites):
        if not isinstance(suite, str):
            raise misplaced(("suites", i), suite)
        with placed(("suites", i)):
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
    with placed(place):
        task = notation.task_from(text)
        if task is not None and grid:
            raise InvalidInput(f"{text} has no parameters to make a grid of: leave the grid out")
        if task is not None:
            yield NamedProblem(path, title or text, task.problem, task.horizon)
            return
        name, parameters = notation.problem_call(text)
        notation.builder(name)
    fixed = parameters or {}
    for point, where in _points(name, fixed, grid, (*path, "grid")) if grid else [({}, place)]:
        with placed(where):
            problem = notation.problem_made(name, fixed | point)
        label = title if title is None or not point else notation.written(title, point)
        yield NamedProblem(path, label or notation.written(name, fixed | point), problem)


def policies_in(policies: Iterable[str | PolicyEntry]) -> list[tuple[Path, Policy]]:
    """Return the policies of the entries, each with its place."""
    return [
        (("policies", i), policy) for i, entry in enumerate(policies) for policy in _policies_of(entry, ("policies", i))
    ]


def _policies_of(entry: str | PolicyEntry, path: Path) -> Iterator[Policy]:
    text, grid, place = entry, {}, path
    if isinstance(entry, PolicyEntry):
        text, grid, place = entry.policy, entry.grid, (*path, "policy")
    if not isinstance(text, str):
        raise misplaced(place, text, RULES["policy"])
    with placed(place):
        if not grid:
            yield from notation.policies_from(text)
            return
        name, parameters = notation.policy_call(text)
        if name == "all":
            raise InvalidInput("'all' has no parameters to make a grid of: name one policy")
        _check_one(name, parameters, grid)
    fixed = parameters or {}
    for point, where in _points(name, fixed, grid, (*path, "grid")):
        with placed(where):
            yield notation.policy_made(name, fixed | point)


def _check_one(name: str, parameters: Mapping[str, Any] | None, grid: Iterable[str]) -> None:
    """Reject a bare name that stands for several policies, unless the grid chooses among them."""
    variants = [each.to_dict() for each in notation.policy_class(name).variants()]
    if parameters is not None or len(variants) == 1:
        return
    choosing = [key for key in variants[0] if len({str(each[key]) for each in variants}) > 1]
    if not set(choosing) <= set(grid):
        raise InvalidInput(
            f"{name} stands for {len(variants)} policies: put {', '.join(choosing)} in the grid, or write "
            f"{notation.written(name, {key: variants[0][key] for key in choosing})}"
        )


def _points(
    name: str, fixed: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], path: Path
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield each combination of a grid's values, and the place to name if it is rejected."""
    if not isinstance(grid, Mapping):
        raise misplaced(path, grid)
    for key, values in grid.items():
        with placed((*path, key)):
            notation.check_parameters(name, [key])
            if key in fixed:
                raise InvalidInput(f"{name} has {key} = {fixed[key]!r} already: leave it out there, or here")
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise misplaced((*path, key), values, VALUES)
        if not values:
            raise Misplaced((*path, key), "the list is empty: give at least one value")
        for i, value in enumerate(values):
            if not notation.is_plain(value):
                rule = "a number, a string, true, false or a list of these"
                raise misplaced((*path, key, i), value, rule)
            if value in values[:i]:
                raise Misplaced((*path, key, i), f"the value {formatted(value)} is given twice: leave one of them out")
    size = math.prod(map(len, grid.values()))
    if size > MOST_IN_A_GRID:
        raise Misplaced(path, f"it has {size:,} combinations: at most {MOST_IN_A_GRID:,} are allowed")
    for indices in itertools.product(*(range(len(values)) for values in grid.values())):
        point = {key: values[i] for (key, values), i in zip(grid.items(), indices, strict=True)}
        yield point, (*path, *grid, *indices) if len(grid) == 1 else path


def check_name(path: Path, value: Any) -> None:
    """Raise unless the name is a printable string."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise misplaced(path, value)
