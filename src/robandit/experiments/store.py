"""The run folder: a plan, its results so far, and the runs that made them. See docs/reference/run-folder.md for its layout."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robandit.diagnostics.reference import Reference
from robandit.errors import CorruptFile, FileError, InvalidInput
from robandit.experiments.engines import machine, versions
from robandit.experiments.ledger import FOLDERS, Ledger, write_json
from robandit.experiments.plan import MOST_REPLICATIONS, Cell, LeftOut, Plan, Played, Unit
from robandit.experiments.results import Failure, Measured, Results, measured_in, pulls_table, regret_table
from robandit.files import check_format, write_atomically
from robandit.laws.packing import is_packed
from robandit.locks import locked
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.result import Result, sealed_parquet
from robandit.validation import integer, invalid

__all__ = ["ELSEWHERE", "Store"]

ELSEWHERE = "name another folder"  # the hint if a folder cannot be used; commands add the name of their option
UNPARSABLE = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError)
FORMAT_VERSION = 1  # version of run.json and the folder
TABLE_VERSION = 1  # version of regret.parquet and pulls.parquet
ROW_GROUP = 1 << 18  # rows per group; fixed, so that the bytes do not depend on Polars' default


@dataclass(frozen=True)
class Store:
    """A run folder. `create` makes or continues a run folder, and `open` reads one."""

    folder: Path
    plan: Plan
    """The plan, as read from the folder."""
    makers: tuple[dict[str, Any], ...]
    """The distinct commands, versions and machines of all runs. The last run is at the end."""

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Store: {self.folder}, {self.plan!r}>"

    @property
    def ledger(self) -> Ledger:
        """The state of the folder's units."""
        return Ledger(self.folder)

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], plan: Plan, *, command: str = "", spec_text: str | None = None
    ) -> Store:
        """Make a run folder for a plan, or continue an existing one.

        To continue a folder, the plan must be the same, except that it may have more replications. Finished units are kept.

        Parameters
        ----------
        folder
            A new or empty folder, or a run folder.
        plan
            The plan to play.
        command
            The command line, for the report.
        spec_text
            The text of the spec, stored as ``spec.toml``.
        """
        place = Path(folder)
        if place.is_file():
            raise FileError(f"{place} is a file: {ELSEWHERE} for the run")
        with _named(place):
            place.mkdir(parents=True, exist_ok=True)
            if not (place / "run.json").exists():
                _check_empty(place)
            (place / "locks").mkdir(exist_ok=True)
        with _named(place), locked(place / "locks" / "run.lock", wait=True):
            stored = _read(place) if (place / "run.json").exists() else None
            if stored is not None:
                _parsed(place, stored)  # raises if it is damaged
            data = _continued(place, stored, plan) if stored is not None else {"format": FORMAT_VERSION} | _data(plan)
            maker = {"command": command, "versions": dict(versions()), "machine": machine()}
            before = stored["runs"] if stored is not None else []
            data["runs"] = [each for each in before if each != maker] + [maker]
            data = json.loads(json.dumps(data, allow_nan=False))
            if data != stored:
                write_json(place / "run.json", data)
            # After run.json, so that a folder without run.json holds only locks, even if this process is killed.
            for name in FOLDERS:
                (place / name).mkdir(exist_ok=True)
            for leftover in (*place.glob(".run.json.*"), *place.glob(".spec.toml.*")):
                leftover.unlink()
            if spec_text is not None:
                write_atomically(place / "spec.toml", spec_text.encode())
        Ledger(place).sweep()
        return _parsed(place, data)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Read a run folder without changing it."""
        place = Path(folder)
        if not (place / "run.json").exists():
            raise FileError(f"{place} is not a run folder: it has no run.json; name one that a run has made")
        return _parsed(place, _read(place))

    def continued(self, plan: Plan) -> Plan:
        """Return the plan with the same units as in this folder. Raise if the plan is another experiment."""
        _continued(self.folder, _read(self.folder), plan)
        return replace(plan, unit_pulls=self.plan.unit_pulls)

    @property
    def about(self) -> dict[str, Any]:
        """The command, versions and machine of the last run and of ``earlier`` different runs, and the spec with its name."""
        about = self.makers[-1] | {"earlier": list(self.makers[:-1])}
        spec = self.folder / "spec.toml"
        if spec.exists():
            try:
                text = spec.read_bytes().decode()
                about |= {"spec": text, "name": str(tomllib.loads(text).get("name", ""))}
            except (OSError, ValueError, RecursionError) as error:
                raise CorruptFile(f"{spec} is damaged ({error}): delete it, results do not need it") from error
        return about

    def failures(self) -> tuple[Failure, ...]:
        """Return the units that failed and were not played since then."""
        recorded = (self.ledger.failure(unit) for unit in self.plan.units if not self.ledger.part(unit).exists())
        return tuple(failure for failure in recorded if failure is not None)

    def results(self) -> Results:
        """Load the results so far. Raise an error with the name of the file if a part is damaged."""
        return Results.of(self.plan, self._played(self.plan.units), self.failures(), self.about)

    def measured(self, cell: Cell) -> Measured | None:
        """Load the results of one cell so far; None if none of its units is done."""
        parts = list(self._played(self.plan.units_of(cell)))
        return measured_in(cell, parts) if parts else None

    def _played(self, units: Iterable[Unit]) -> Iterator[tuple[Unit, Result, float]]:
        for unit in units:
            if self.ledger.part(unit).exists():
                yield unit, self._result(unit), self.ledger.seconds(unit)

    def _result(self, unit: Unit) -> Result:
        path = self.ledger.part(unit)
        try:
            result = Result.from_parquet(path, unit.cell.played.problem)
        except CorruptFile as error:
            hint = f"run again in {self.folder}: it will be set aside and played again"
            if self.ledger.done(unit):  # the checksum is right, but the file belongs to another unit
                hint = "delete it and run again"
            raise CorruptFile(f"{error}; {hint}") from error
        played = Played("", result.problem, result.horizon)
        stored = Unit(Cell(played, result.policies[0], ""), result.seed, result.first, result.regret.shape[1])
        if stored.key != unit.key:
            raise CorruptFile(f"{path} holds the unit {stored.key}, not its own: delete it and run again")
        return result

    def write_results(
        self, folder: str | os.PathLike[str] | None = None, *, results: Results | None = None
    ) -> tuple[Path, Path]:
        """Write all results as tidy tables, ``regret.parquet`` and ``pulls.parquet``, and return their paths.

        The bytes depend only on the results, not on the machines or the order of the runs.

        Parameters
        ----------
        folder
            The folder for the tables. The default is ``results`` in the run folder.
        results
            The return value of `results`, if it is loaded already.
        """
        place = self.folder / "results" if folder is None else Path(folder)
        measured = (self.results() if results is None else results).measured
        tables = {"regret": regret_table(measured), "pulls": pulls_table(measured)}
        with _named(place):
            place.mkdir(parents=True, exist_ok=True)
        with locked(place / ".lock", wait=True):
            for name, table in tables.items():
                for leftover in place.glob(f".{name}.parquet.*"):
                    leftover.unlink()
                content = sealed_parquet(table, {"table": name, "version": TABLE_VERSION}, row_group_size=ROW_GROUP)
                write_atomically(place / f"{name}.parquet", content)
        return place / "regret.parquet", place / "pulls.parquet"


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Convert errors of the system to `FileError` with the name of the folder."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{error.filename or folder} cannot be used: {error.strerror}; {ELSEWHERE}") from error


def _check_empty(folder: Path) -> None:
    """Reject a folder with other files. Files of a run that was killed at its start are allowed."""
    names = sorted(path.name for path in folder.iterdir())
    others = [name for name in names if name != "locks" and not name.startswith(".run.json.")]
    if others and not (folder / "run.json").exists():  # checked again: another run may have started meanwhile
        first = ", ".join(others[:3]) + (", ..." if others[3:] else "")
        raise FileError(f"{folder} is not a run folder and not empty (it has {first}): {ELSEWHERE}")


# --- run.json -------------------------------------------------------------------------------------------------------


def _data(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain JSON data that contain each problem once."""
    problems = dict.fromkeys(each.played for each in plan.combinations)
    number = {played: i for i, played in enumerate(problems)}
    return {
        "seed": str(plan.seed),  # a string: seeds may have 128 bits, and JSON readers round large numbers
        "replications": plan.replications,
        "unit_pulls": plan.unit_pulls,
        "problems": [{"name": p.name, "horizon": p.horizon, "problem": p.problem.to_dict()} for p in problems],
        "cells": [{"label": c.label, "problem": number[c.played], "policy": c.policy.to_dict()} for c in plan.cells],
        "left_out": [{"label": c.label, "problem": number[c.played], "reason": c.reason} for c in plan.left_out],
    } | _remarks(plan, list(problems))


def _remarks(plan: Plan, problems: list[Played]) -> dict[str, Any]:
    """Return the parts of a plan on which no result depends, so that they may change when a folder is continued."""
    references = [None if p.reference is None else p.reference.to_dict() for p in problems]
    return ({"notes": list(plan.notes)} if plan.notes else {}) | ({"references": references} if any(references) else {})


def _continued(folder: Path, stored: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the new data of run.json if the plan continues a folder. Raise if it is another experiment."""
    data = json.loads(json.dumps(_data(plan), allow_nan=False))
    for part in ("seed", "problems", "cells"):
        difference = _difference(part, stored.get(part), data[part])
        if difference is not None:
            raise InvalidInput(f"{folder} holds another experiment: {difference}; {ELSEWHERE}")
    if stored["replications"] > plan.replications:
        fewer = f"{folder} has {stored['replications']} replications, but the plan has only {plan.replications}"
        raise InvalidInput(f"{fewer}: use at least {stored['replications']}, or {ELSEWHERE}")
    kept = {key: value for key, value in stored.items() if key not in ("notes", "references")}
    renewed = {key: data[key] for key in ("left_out", "notes", "references") if key in data}
    return kept | {"replications": plan.replications} | renewed


def _difference(where: str, stored: Any, new: Any) -> str | None:
    """Describe the first difference between two pieces of JSON data. Return None if they are equal."""
    if is_packed(stored) or is_packed(new):  # a record; only long records are packed
        kind = _RECORDED.get(where.rpartition(".")[2], "numbers")
        return None if stored == new else f"the recorded {kind} differ"
    if isinstance(stored, dict) and isinstance(new, dict) and set(stored) == set(new):
        pairs = [(f"{where}.{key}", stored[key], new[key]) for key in stored]
    elif isinstance(stored, list) and isinstance(new, list):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(stored, new, strict=False))]
        if len(stored) != len(new):
            pairs.append((f"the number of {where}", len(stored), len(new)))
    else:
        return None if stored == new else f"{where} is {_short(stored)} there and {_short(new)} here"
    return next((text for pair in pairs if (text := _difference(*pair)) is not None), None)


_RECORDED = {"data": "rewards", "rewards": "rewards", "actions": "choices", "propensities": "propensities"}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        data = json.loads(path.read_bytes())
        version = int(data["format"])
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"{path} was not written by Robandit, or is damaged: {error}") from error
    check_format(version, FORMAT_VERSION, path)
    return dict(data)


def _parsed(folder: Path, data: Mapping[str, Any]) -> Store:
    own_error = True
    try:
        problem_data = [(p, Problem.from_dict(p["problem"])) for p in data["problems"]]
        cell_data = [(cell, Policy.from_dict(cell["policy"])) for cell in data["cells"]]
        own_error = False
        references = data.get("references", [None] * len(problem_data))
        problems = [
            Played(_text(p, "name"), problem, integer(p["horizon"], "horizon", 1), _reference(reference, problem))
            for (p, problem), reference in zip(problem_data, references, strict=True)
        ]
        plan = Plan(
            cells=tuple(Cell(problems[c["problem"]], policy, _text(c, "label")) for c, policy in cell_data),
            left_out=tuple(
                LeftOut(problems[each["problem"]], _text(each, "label"), _text(each, "reason"))
                for each in data["left_out"]
            ),
            seed=int(data["seed"]),
            replications=integer(data["replications"], "replications", 1, MOST_REPLICATIONS),
            unit_pulls=integer(data["unit_pulls"], "unit_pulls", 1),
            notes=tuple(map(str, data.get("notes", ()))),
        )
        makers = tuple(dict(maker) for maker in data["runs"])
        return Store(folder, plan, (*makers[:-1], makers[-1]))  # raises if there is none
    except UNPARSABLE as error:
        if own_error and isinstance(error, InvalidInput):  # for example, a user's policy class is not imported
            raise
        raise CorruptFile(f"{folder / 'run.json'} is damaged: {type(error).__name__}: {error}") from error


def _reference(data: Mapping[str, Any] | None, problem: Problem) -> Reference | None:
    reference = None if data is None else Reference.from_dict(data)
    for limits in () if reference is None else (reference.below, reference.above):
        if limits is not None and len(limits) != problem.arms:
            raise ValueError(f"a reference has {len(limits)} limits for {problem.arms} arms")
    return reference


def _text(data: Mapping[str, Any], name: str) -> str:
    if not isinstance(data[name], str):
        raise invalid(name, data[name], "a string")
    return str(data[name])
