"""What an experiment is to be, as a TOML file: problems x policies x horizons, read strictly."""

from __future__ import annotations

import itertools
import math
import os
import pathlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile, formatted
from robandit.experiments import notation
from robandit.experiments.plan import MOST_REPLICATIONS, Plan, Played, planned
from robandit.experiments.toml import Path, line_of, lines, toml_value
from robandit.policies import Policy
from robandit.policies.base import LEAST_EPS, check_eps
from robandit.problems import Problem
from robandit.suites import NAMES
from robandit.wording import counted

__all__ = [
    "EXAMPLE",
    "PolicyEntry",
    "ProblemEntry",
    "Spec",
    "asked_policies",
    "asked_replications",
    "compared",
    "parse_spec",
    "read_spec",
    "resolved_text",
    "summary",
]

VERSION = 1
LONGEST = 2**53
LARGEST_SEED = 2**1024 - 1  # Python prints no number of more than 4,300 digits, and a seed is written down
MOST_IN_A_GRID = 10_000

_TEXT = "a text that can be printed"
_GRID = "a table with a list of values for each parameter, such as {tail = [1.2, 1.5]}"
_HORIZON = "a whole number from 1 to 2^53"
_RULES = {
    "version": f"the whole number {VERSION}",
    "name": _TEXT,
    "seed": "a whole number >= 0 (and below 2^1024)",
    "replications": f"a whole number from 1 to {MOST_REPLICATIONS:,}",
    "horizons": f"a list; each is {_HORIZON}",
    "suites": f"a list of names: {', '.join(NAMES)}",
    "problems": 'a list of texts such as "gaussian(means=[1.0, 0.0])" and of tables with problem, name and grid',
    "policies": 'a list of texts such as "AdaRUCB" and of tables with policy and grid',
    "eps": f"a number with 0 < eps <= 1 (and at least {LEAST_EPS:g})",
    "problem": 'a text such as "gaussian(means=[1.0, 0.0])"',
    "policy": 'a text such as "AdaRUCB"',
    "grid": _GRID,
}
_ELEMENTS = {
    "horizons": _HORIZON,
    "suites": f"one of {', '.join(NAMES)}",
    "problems": 'a text such as "gaussian(means=[1.0, 0.0])", or a table with problem, name and grid',
    "policies": 'a text such as "AdaRUCB", or a table with policy and grid',
}


class Misplaced(InvalidInput):
    """What is wrong, and where in the spec."""

    def __init__(self, path: Path, message: str) -> None:
        """Name the place in front of the message."""
        super().__init__(f"{_shown(path)}: {message}" if path else message)
        self.path = path
        self.message = message


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A policy for each combination of values in a grid."""

    policy: str
    grid: dict[str, tuple[Any, ...]] = {}


class ProblemEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A problem with a name, or one for each combination of values in a grid."""

    problem: str
    name: str | None = None
    grid: dict[str, tuple[Any, ...]] = {}


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An experiment. Whatever is wrong with it is said when it is made.

    Parameters
    ----------
    policies
        Texts in the notation of `robandit.experiments.notation`, or entries with a grid.
    problems
        The same for problems.
    suites
        Names of suites; their problems are added, under names such as ``heavy/pareto-1.6``.
    horizons
        Pulls in each replication: every problem is played for each. Empty: a suite's problems have their own.
    replications
        How often each policy starts anew.
    seed
        Same seed, same numbers.
    eps
        What policies that must know the order of the moments are told; None: what suits each problem.
    name
        What the experiment is called.
    version
        Of the format.

    Examples
    --------
    >>> spec = Spec(policies=("UCB1", "RobustUCB"), problems=("bernoulli(means=[0.5, 0.25])",), horizons=(1000,))
    >>> len(spec.plan().cells)
    4
    """

    version: int = VERSION
    name: str = "experiment"
    seed: int = 1
    replications: int = 50
    horizons: tuple[int, ...] = ()
    suites: tuple[str, ...] = ()
    problems: tuple[str | ProblemEntry, ...] = ()
    policies: tuple[str | PolicyEntry, ...]
    eps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        _check_whole(("version",), self.version, VERSION, VERSION)
        _check_name(("name",), self.name)
        _check_whole(("seed",), self.seed, 0, LARGEST_SEED)
        _check_whole(("replications",), self.replications, 1, MOST_REPLICATIONS)
        for key in ("horizons", "suites", "problems", "policies"):
            values = getattr(self, key)
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise Misplaced((key,), f"{formatted(values)} must be {_RULES[key]}")
            msgspec.structs.force_setattr(self, key, tuple(values))
        for i, horizon in enumerate(self.horizons):
            _check_whole(("horizons", i), horizon, 1, LONGEST)
        _check_once("horizons", "the horizon", self.horizons)
        _check_once("suites", "the suite", self.suites)
        try:
            check_eps("", self.eps)
        except InvalidInput as error:
            raise Misplaced(("eps",), f"{formatted(self.eps)} must be {_RULES['eps']}") from error
        self._check_policies(max((each.horizon for each in self.played()), default=0))

    def played(self) -> list[Played]:
        """The problems, with the names and horizons under which they are played."""
        found = _problems_in(self.suites, self.problems)
        if not found:
            raise Misplaced(
                (), f"there is nothing to play: give problems ({_RULES['problems']}) or suites ({_RULES['suites']})"
            )
        names: set[str] = set()
        seen: dict[Problem, str] = {}
        for one in found:
            if one.name in names:
                raise Misplaced(
                    one.path, f"two problems are named {one.name!r}: give one another name, or leave it out"
                )
            if one.path[0] == "problems" and one.problem in seen:  # suites may have problems in common
                raise Misplaced(
                    one.path, f"{one.name} is the same problem as {seen[one.problem]}: leave one of them out"
                )
            names.add(one.name)
            seen.setdefault(one.problem, one.name)
            if not self.horizons and one.horizon is None:
                raise Misplaced(one.path, f"{one.name} has no horizon of its own: give horizons, {_RULES['horizons']}")
        return [
            Played(each.name, each.problem, horizon)
            for each in found
            for horizon in self.horizons or (each.horizon or 0,)
        ]

    def chosen(self) -> list[Policy]:
        """The policies, before they are told anything."""
        return [policy for _, policy in _policies_in(self.policies)]

    def plan(self) -> Plan:
        """Each policy on each problem for each horizon, told exactly what it must know."""
        return planned(self.played(), self.chosen(), replications=self.replications, seed=self.seed, eps=self.eps)

    def to_toml(self) -> str:
        """As text that reads back equal, with what is at its default left out but for seed, replications and name.

        >>> print(Spec(policies=("UCB1",), suites=("heavy",)).to_toml())
        version = 1
        name = "experiment"
        seed = 1
        replications = 50
        suites = ["heavy"]
        policies = [
            "UCB1",
        ]
        """
        data: dict[str, Any] = {
            "version": self.version,
            "name": self.name,
            "seed": self.seed,
            "replications": self.replications,
        }
        data |= msgspec.to_builtins(self, builtin_types=())
        written = []
        for key in self.__struct_fields__:
            if key in ("problems", "policies") and key in data:
                written.append(f"{key} = [\n{''.join(f'    {toml_value(each)},{chr(10)}' for each in data[key])}]")
            elif key in data:
                written.append(f"{key} = {toml_value(data[key])}")
        return "\n".join(written) + "\n"

    def resolved(self) -> dict[str, Any]:
        """All that will be played, as plain JSON data: every cell with the policy as it is told, and what is left out, and why."""
        plan = self.plan()
        return {
            "version": self.version,
            "name": self.name,
            "seed": self.seed,
            "replications": self.replications,
            "eps": self.eps,
            "cells": [
                {
                    "name": cell.played.name,
                    "horizon": cell.played.horizon,
                    "label": cell.label,
                    "policy": cell.policy.to_dict(),
                    "problem": cell.played.problem.to_dict(),
                }
                for cell in plan.cells
            ],
            "left_out": [
                {"name": each.played.name, "horizon": each.played.horizon, "label": each.label, "reason": each.reason}
                for each in plan.left_out
            ],
        }

    def _check_policies(self, horizon: int) -> None:
        if not self.policies:
            raise Misplaced(("policies",), f"there is none: it must be {_RULES['policies']}")
        seen: dict[str, Policy] = {}
        for path, policy in _policies_in(self.policies):
            other = seen.setdefault(policy.name, policy)
            if other is not policy and other == policy:
                raise Misplaced(
                    path, f"the policy {policy.name} is given twice, and would only repeat itself: leave one out"
                )
            if other is not policy:  # names show six digits
                raise Misplaced(
                    path, f"{policy!r} and {other!r} have the same name, {policy.name}: let them differ more"
                )
            own = getattr(policy, "eps", None)
            if self.eps is not None and "eps" in policy.facts.knows and own not in (None, self.eps):
                raise Misplaced(
                    path, f"{policy!r} has an eps, and the spec says eps = {self.eps!r}: leave one of them out"
                )
            longest = getattr(policy, "horizon", None)
            if longest is not None and longest < horizon:
                raise Misplaced(
                    path, f"{policy!r} is made for {longest} pulls, and a horizon is {horizon}: leave its own out"
                )


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """The spec in a TOML file."""
    try:
        raw = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CorruptFile(
            f"{path}:{line}: this is not UTF-8, which TOML must be: is it another kind of file?"
        ) from error
    return parse_spec(text, os.fspath(path))


def parse_spec(text: str, where: str = "spec") -> Spec:
    """The spec in a TOML text; errors say ``where:line:`` and what is allowed.

    >>> parse_spec("policies = ['UCB1']\\nsuites = ['heavy']\\nreplications = 0")
    Traceback (most recent call last):
    ...
    robandit.errors.InvalidInput: spec:3: replications: 0 must be a whole number from 1 to 1,000,000
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(_syntax(text, where, error)) from error
    try:
        version = data.get("version", VERSION)
        if type(version) is int and version > VERSION:
            raise NewerFile(
                f"{where}:{line_of(lines(text), ('version',))}: version = {formatted(version)} is of a newer Robandit: this one reads "
                f"version {VERSION}; update Robandit, or write the spec for version {VERSION}"
            )
        for key in ("suites", "problems", "policies"):
            if data.get(key) == []:
                way = "give" if key == "policies" else "leave it out, or give"  # policies must be given
                raise Misplaced((key,), f"the list is empty: {way} {_RULES[key]}")
        return _converted(data)
    except Misplaced as error:
        raise InvalidInput(f"{where}:{line_of(lines(text), error.path)}: {error}") from error


def summary(spec: Spec, plan: Plan) -> str:
    """How large an experiment is, and what is left out. How long it takes is measured by `robandit plan`.

    >>> spec = Spec(policies=("UCB1",), problems=("bernoulli(means=[0.5, 0.25])",), horizons=(1000, 2000), replications=10)
    >>> print(summary(spec, spec.plan()))
    experiment: 1 problem x 1 policy x 2 horizons, 10 replications
    2 units of work, 30,000 pulls; robandit plan says how long they take
    """
    played = spec.played()
    names = {each.name for each in played}
    horizons = f"{counted(len(spec.horizons), 'horizon')}" if spec.horizons else "their own horizons"
    pulls = sum(cell.played.horizon for cell in plan.cells) * plan.replications
    told = [
        f"{spec.name}: {counted(len(names), 'problem')} x {counted(len(spec.chosen()), 'policy', 'policies')} x {horizons}, "
        f"{counted(spec.replications, 'replication')}",
        f"{counted(len(plan.units), 'unit')} of work, {pulls:,} pulls; robandit plan says how long they take",
    ]
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in plan.left_out:
        reasons.setdefault((each.label, each.reason), []).append(f"{each.played.name} ({each.played.horizon:,} pulls)")
    told += [f"{label} is left out of {', '.join(on)}: {reason}" for (label, reason), on in reasons.items()]
    return "\n".join(told)


def resolved_text(spec: Spec) -> str:
    """The spec in its canonical form, and below it what it comes to: a line for each policy on each problem, as it is told.

    >>> print(resolved_text(Spec(policies=("HTINF",), problems=("gaussian(means=[1.0, 0.0])",), horizons=(1000,))))
    version = 1
    ...
    gaussian(means=[1.0, 0.0]), 1,000 pulls
        HTINF(eps=1.0, u=2.0)
    """
    plan = spec.plan()
    told = [spec.to_toml()]
    for played in dict.fromkeys(spec.played()):
        told.append(f"{played.name}, {played.horizon:,} pulls")
        told += [f"    {cell.policy!r}" for cell in plan.cells if cell.played == played]
        told += [f"    left out: {each.label}: {each.reason}" for each in plan.left_out if each.played == played]
    return "\n".join(told)


def compared(
    problems: Sequence[str],
    suite: str | None,
    policies: Sequence[str],
    *,
    horizon: int | None = None,
    replications: int | None = None,
    seed: int = 1,
    quick: bool = False,
) -> Plan:
    """The plan of `robandit compare`; by default a heavy-tailed problem, and all policies that learn.

    Problems of a suite have their own horizons unless one is given, others 50,000. ``quick``: a tenth of the pulls and 20
    replications, unless given.
    """
    count = asked_replications(horizon, replications, seed, quick=quick)
    if not problems and suite is None:
        problems = ["negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)"]
    try:
        found = _problems_in(() if suite is None else (suite,), problems)
    except Misplaced as error:  # on the command line there are no places to name
        raise InvalidInput(error.message) from error
    chosen = asked_policies(policies)
    played = []
    for each in found:
        own = each.horizon or 50_000
        played.append(Played(each.name, each.problem, horizon or (max(1, own // 10) if quick else own)))
    return planned(played, chosen, replications=count, seed=seed)


def asked_replications(horizon: int | None, replications: int | None, seed: int, *, quick: bool) -> int:
    """How many replications a command line asks for, once its numbers are checked."""
    if horizon is not None:
        _check_whole(("horizon",), horizon, 1, LONGEST)
    count = (20 if quick else 50) if replications is None else replications
    _check_whole(("replications",), count, 1, MOST_REPLICATIONS)
    _check_whole(("seed",), seed, 0, math.inf)
    return count


def asked_policies(policies: Sequence[str]) -> list[Policy]:
    """The policies that a command line names; by default all that learn."""
    try:
        return [policy for _, policy in _policies_in(policies or ("all", 'AdaRUCB(bonus="tight")'))]
    except Misplaced as error:  # as above
        raise InvalidInput(error.message) from error


EXAMPLE = """\
# An experiment. `robandit spec check FILE` says how large it is, `robandit run FILE` plays it.
# Every key is described in docs/reference/spec.md.

version = 1
name = "a first look"

# Same seed, same numbers, on any number of cores.
seed = 1

# How often each policy starts anew, and for how many pulls. With several horizons all problems are played for each.
replications = 50
horizons = [20_000]

# Problems of a fixed set at their own horizons, if no horizons are given: heavy, light, paper or lower-bound.
# suites = ["heavy"]

problems = [
    # Symmetric rewards without a variance.
    "student_t(means=[0.0, -0.5, -1.0], dof=1.5)",
    # One problem of a suite.
    "heavy/pareto-1.6",
    # A grid: one problem for each value, named "tails(tail=1.3)" and so on.
    { problem = "negated_pareto(means=[-1.0, -1.5, -2.0])", name = "tails", grid = { tail = [1.3, 1.8, 2.5] } },
]

# `robandit policies` lists them; "all" stands for every policy that learns.
policies = [
    "AdaRUCB",
    'AdaRUCB(bonus="tight")',
    "AdaKLUCB",
    "RobustUCB",
    "UCB1",
    { policy = "APE2", grid = { c = [0.5, 1.0] } },
]

# Policies that must know the order of the moments are told what suits each problem; or this, for all.
# eps = 0.25
"""


@dataclass(frozen=True)
class _Found:
    """A problem, and the place in the spec that asks for it."""

    path: Path
    name: str
    problem: Problem
    horizon: int | None = None
    """Its own, if it is a suite's."""


def _problems_in(suites: Iterable[str], problems: Iterable[str | ProblemEntry]) -> list[_Found]:
    found: list[_Found] = []
    for i, suite in enumerate(suites):
        if not isinstance(suite, str):
            raise Misplaced(("suites", i), f"{formatted(suite)} must be {_ELEMENTS['suites']}")
        with _placed(("suites", i)):
            tasks = notation.suite_from(suite).tasks
        found += [_Found(("suites", i), f"{suite}/{task.name}", task.problem, task.horizon) for task in tasks]
    for i, entry in enumerate(problems):
        found += _problems_of(entry, ("problems", i))
    return found


def _problems_of(entry: str | ProblemEntry, path: Path) -> Iterator[_Found]:
    """The problems of one element of the list."""
    text, title, grid, place = entry, None, {}, path
    if isinstance(entry, ProblemEntry):
        text, title, grid, place = entry.problem, entry.name, entry.grid, (*path, "problem")
    if not isinstance(text, str):
        raise Misplaced(place, f"{formatted(text)} must be {_RULES['problem']}")
    if title is not None:
        _check_name((*path, "name"), title)
    with _placed(place):
        task = notation.task_from(text)
        if task is not None and grid:
            raise InvalidInput(f"{text} has no parameters to make a grid of: leave the grid out")
        if task is not None:
            yield _Found(path, title or text, task.problem, task.horizon)
            return
        name, parameters = notation.problem_call(text)
        notation.builder(name)
    given = parameters or {}
    for point, where in _points(name, given, grid, (*path, "grid")) if grid else [({}, place)]:
        with _placed(where):
            problem = notation.problem_made(name, given | point)
        label = (
            notation.written(name, given | point)
            if title is None
            else notation.written(title, point)
            if point
            else title
        )
        yield _Found(path, label, problem)


def _policies_in(policies: Iterable[str | PolicyEntry]) -> list[tuple[Path, Policy]]:
    """The policies, each with the place that asks for it."""
    return [
        (("policies", i), policy) for i, entry in enumerate(policies) for policy in _policies_of(entry, ("policies", i))
    ]


def _policies_of(entry: str | PolicyEntry, path: Path) -> Iterator[Policy]:
    text, grid, place = entry, {}, path
    if isinstance(entry, PolicyEntry):
        text, grid, place = entry.policy, entry.grid, (*path, "policy")
    if not isinstance(text, str):
        raise Misplaced(place, f"{formatted(text)} must be {_RULES['policy']}")
    with _placed(place):
        if not grid:
            yield from notation.policies_from(text)
            return
        name, parameters = notation.policy_call(text)
        if name == "all":
            raise InvalidInput("'all' has no parameters to make a grid of: name one policy")
        _check_one(name, parameters, grid)
    given = parameters or {}
    for point, where in _points(name, given, grid, (*path, "grid")):
        with _placed(where):
            yield notation.policy_made(name, given | point)


def _check_one(name: str, given: Mapping[str, Any] | None, grid: Iterable[str]) -> None:
    """A bare name may stand for several policies: then the grid must say which."""
    variants = [each.to_dict() for each in notation.policy_class(name).variants()]
    if given is not None or len(variants) == 1:
        return
    choosing = [key for key in variants[0] if len({str(each[key]) for each in variants}) > 1]
    if not set(choosing) <= set(grid):
        raise InvalidInput(
            f"{name} stands for {len(variants)} policies: put {', '.join(choosing)} in the grid, or write "
            f"{notation.written(name, {key: variants[0][key] for key in choosing})}"
        )


def _points(
    name: str, given: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], path: Path
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Each combination of a grid's values, and the place to blame if it cannot be made."""
    if not isinstance(grid, Mapping):
        raise Misplaced(path, f"{formatted(grid)} must be {_GRID}")
    for key, values in grid.items():
        with _placed((*path, key)):
            notation.check_parameters(name, [key])
            if key in given:
                raise InvalidInput(f"{name} has {key} = {given[key]!r} already: leave it out there, or here")
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InvalidInput(f"{formatted(values)} must be a list of values")
            if not values:
                raise InvalidInput("the list is empty: give at least one value")
        for i, value in enumerate(values):
            if not notation.is_plain(value):
                raise Misplaced(
                    (*path, key, i), f"{formatted(value)} must be a number, a text, true, false or a list of these"
                )
            if value in values[:i]:
                raise Misplaced((*path, key, i), f"the value {formatted(value)} is given twice: leave one of them out")
    size = math.prod(map(len, grid.values()))
    if size > MOST_IN_A_GRID:
        raise Misplaced(path, f"it has {size:,} combinations: at most {MOST_IN_A_GRID:,} are allowed")
    for places in itertools.product(*(range(len(values)) for values in grid.values())):
        point = {key: values[i] for (key, values), i in zip(grid.items(), places, strict=True)}
        yield point, (*path, *grid, *places) if len(grid) == 1 else path


def _check_whole(path: Path, value: Any, least: int, most: float) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Misplaced(path, f"{formatted(value)} must be {_rule(path)}")


def _check_name(path: Path, value: Any) -> None:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise Misplaced(path, f"{formatted(value)} must be {_TEXT}")


def _check_once(key: str, what: str, values: Sequence[Any]) -> None:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise Misplaced((key, i), f"{what} {value} is given twice: leave one of them out")


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Add the place to an error that has none."""
    try:
        yield
    except Misplaced:
        raise
    except InvalidInput as error:
        raise Misplaced(path, str(error)) from error


def _converted(data: dict[str, Any]) -> Spec:
    """The spec, or an error with its place."""
    try:
        return msgspec.convert(data, Spec)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, Misplaced):
            raise error.__cause__ from None
        raise _mistyped(data, str(error)) from error


def _mistyped(data: dict[str, Any], message: str) -> Misplaced:
    """What msgspec says, as ``Expected `int`, got `str` - at `$.horizons[1]```, in words for people."""
    at = re.search(r" - at `\$(.*?)`$", message)
    steps = re.findall(r"\.(\w+)|\[(\d+)\]", at[1]) if at else []
    path: Path = tuple(key or int(place) for key, place in steps)
    value: Any = data
    for step in path:
        value = value[step]
    if message.startswith("Object contains unknown field"):
        known = _fields(path)
        key = next(key for key in value if key not in known)
        return Misplaced((*path, key), notation.unknown(f"the key {key!r}", key, known))
    if message.startswith("Object missing required field"):
        missing = next(key for key in ("policies", "problem", "policy") if key in _fields(path) and key not in value)
        return Misplaced(path, f"{missing} is missing: it must be {_RULES[missing]}")
    if path[-1] == "grid" and isinstance(value, dict):  # msgspec does not say which key it is
        key = next(key for key in value if not isinstance(value[key], list))
        return Misplaced((*path, key), f"{formatted(value[key])} must be a list of values")
    return Misplaced(path, f"{formatted(value)} must be {_rule(path)}")


def _fields(path: Path) -> tuple[str, ...]:
    kinds: dict[str | int, Any] = {"problems": ProblemEntry, "policies": PolicyEntry}
    fields: tuple[str, ...] = (kinds[path[0]] if path else Spec).__struct_fields__
    return fields


def _rule(path: Path) -> str:
    """What is allowed at a place."""
    if isinstance(path[-1], int):
        return _ELEMENTS[str(path[0])]
    return _RULES.get(path[-1], _HORIZON)


def _syntax(text: str, where: str, error: Exception) -> str:
    """A TOML error with its line in front."""
    if isinstance(error, RecursionError):
        return f"{where}:1: this is not a spec: lists or tables are nested too deeply"
    at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    if at is None:
        return f"{where}:1: this is not TOML: {error}"
    line = at[1] or max(1, text.count("\n") + (not text.endswith("\n")))
    return f"{where}:{line}: this is not TOML: {str(error)[: at.start()]}; see https://toml.io"


def _shown(path: Path) -> str:
    """A place as people write it: ``policies[0].grid.c``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
