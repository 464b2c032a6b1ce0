"""The run folder: a plan, its results so far, and the runs that made them. See docs/reference/run-folder.md for its layout."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from robandit.diagnostics.reference import Reference
from robandit.errors import CorruptFile, FileError, InvalidInput, excerpt
from robandit.experiments.engines import machine, versions
from robandit.experiments.ledger import FOLDERS, Ledger, write_json
from robandit.experiments.own_code import OwnModule, own_modules
from robandit.experiments.plan import MOST_REPLICATIONS, Cell, LeftOut, Plan, Played, Unit, check_plan
from robandit.experiments.results import (
    Failure,
    Results,
    check_results,
    pulls_table,
    regret_table,
)
from robandit.files import check_format, named, read, reason, shown, write_atomically
from robandit.locks import locked
from robandit.policies import former
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.result import Result, sealed_parquet
from robandit.validation import integer, invalid, text
from robandit.wording import joined, listed

__all__ = ["Store"]

ELSEWHERE, TAKEN = (
    "name another folder",
    "other-folder",
)  # the hint and the code of errors to which commands add their option
UNPARSABLE = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError)
FORMAT_VERSION = 2  # version of run.json and the folder; format 1 had no checksum and no modules
REMARKS = ("notes", "cautions", "references")  # no result depends on them
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
    modules: tuple[OwnModule, ...] = ()
    """The modules with policies of users, as they were when the folder was made."""

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
        place = named(folder, "folder", "the name of a folder")
        check_plan(plan)
        command = text(command, "command")
        spec_text = None if spec_text is None else text(spec_text, "spec_text")
        with _named(place):
            if place.is_file():
                raise FileError(f"{shown(place)} is a file: {ELSEWHERE}", code=TAKEN)
            place.mkdir(parents=True, exist_ok=True)
            if not (place / "run.json").exists():
                _check_empty(place)
            (place / "locks").mkdir(exist_ok=True)
        with _named(place), locked(place / "locks" / "run.lock", wait=True):
            stored = _read(place) if (place / "run.json").exists() else None
            if stored is not None:
                _check_modules(
                    place, _modules(place, stored), plan
                )  # first, since other code may not read its old parameters
                _parsed(place, stored)  # raises if it is damaged
            data = _continued(place, stored, plan) if stored is not None else _data(plan)
            data = {"format": FORMAT_VERSION} | {key: data[key] for key in data if key != "format"}
            maker = {"command": command, "versions": dict(versions()), "machine": machine()}
            before = stored["runs"] if stored is not None else []
            data["runs"] = [each for each in before if each != maker] + [maker]
            data = json.loads(json.dumps(data, allow_nan=False))
            if data != stored:
                write_json(place / "run.json", data | {"checksum": _checksum(data)})
            # After run.json, so that a folder without run.json holds only locks, even if this process is killed.
            for name in FOLDERS:
                (place / name).mkdir(exist_ok=True)
            if spec_text is not None:
                write_atomically(place / "spec.toml", spec_text.encode())
        return _parsed(place, data)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Read a run folder without changing it."""
        place = named(folder, "folder", "the name of a folder")
        with _named(place):
            if not (place / "run.json").exists():
                raise FileError(f"{shown(place)} is not a run folder: it has no run.json; name one that a run has made")
        return _parsed(place, _read(place))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder: another run in it is refused. Remove what killed runs left."""
        with locked(self.folder / "locks" / "playing.lock", wait=False) as mine:
            if not mine:
                hint = "wait until it has ended, or name another folder"
                raise FileError(f"another run is at work in {shown(self.folder)}: {hint}")
            self.ledger.sweep()
            yield

    def continued(self, plan: Plan) -> Plan:
        """Return the plan with the same units as in this folder. Raise if the plan is another experiment."""
        check_plan(plan)
        _check_modules(self.folder, self.modules, plan)
        _continued(self.folder, _read(self.folder), plan)
        return replace(plan, unit_pulls=self.plan.unit_pulls)

    @property
    def about(self) -> dict[str, Any]:
        """The command, versions and machine of the last run and of ``earlier`` different runs, users' modules, and the spec."""
        about = self.makers[-1] | {"earlier": list(self.makers[:-1])}
        about |= {"modules": {module.name: module.source for module in self.modules}} if self.modules else {}
        spec = self.folder / "spec.toml"
        if spec.exists():
            try:
                text = read(spec).decode()
                about |= {"spec": text, "name": str(tomllib.loads(text).get("name", ""))}
            except (FileError, ValueError, RecursionError) as error:
                raise CorruptFile(f"{spec} is damaged ({error}): delete it, results do not need it") from error
        return about

    def changed_modules(self) -> list[str]:
        """Describe each module of users that is imported now and differs from the code of this run."""
        return _module_changes(self.modules, own_modules(cell.policy for cell in self.plan.cells))

    def failures(self) -> tuple[Failure, ...]:
        """Return the units that failed and were not played since then."""
        recorded = (self.ledger.failure(unit) for unit in self.plan.units if not self.ledger.part(unit).exists())
        return tuple(failure for failure in recorded if failure is not None)

    def results(self) -> Results:
        """Load the results so far. Raise an error with the name of the file if a part is damaged."""
        return Results.of(self.plan, self._played(), self.failures(), self.about)

    def _played(self) -> Iterator[tuple[Unit, Result, float]]:
        for unit in self.plan.units:
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

    def write_results(self, *, results: Results | None = None) -> tuple[Path, Path]:
        """Write all results as tidy tables, ``results/regret.parquet`` and ``results/pulls.parquet``, and return their paths.

        The bytes depend only on the results, not on the machines or the order of the runs. ``results`` is the return value of
        `results`, if it is loaded already.
        """
        place = self.folder / "results"
        if results is None:
            results = self.results()
        check_results(results)
        measured = results.measured
        tables = {"regret": regret_table(measured), "pulls": pulls_table(measured)}
        with _named(place):
            place.mkdir(parents=True, exist_ok=True)
        with locked(place / ".lock", wait=True):
            for name, table in tables.items():
                content = sealed_parquet(table, {"table": name, "version": TABLE_VERSION}, row_group_size=ROW_GROUP)
                write_atomically(place / f"{name}.parquet", content)
        return place / "regret.parquet", place / "pulls.parquet"


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Convert errors of the system to `FileError` with the name of the folder."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        place = shown(getattr(error, "filename", None) or folder)
        raise FileError(f"{place} cannot be used: {reason(error)}; {ELSEWHERE}", code=TAKEN) from error


def _check_empty(folder: Path) -> None:
    """Reject a folder with other files. Files of a run that was killed at its start are allowed."""
    names = sorted(path.name for path in folder.iterdir())
    others = [name for name in names if name != "locks" and not name.startswith(".run.json.")]
    if others and not (folder / "run.json").exists():  # checked again: another run may have started meanwhile
        full = f"{shown(folder)} is not a run folder and not empty (it has {excerpt(others)})"
        raise FileError(f"{full}: {ELSEWHERE}", code=TAKEN)


# --- run.json -------------------------------------------------------------------------------------------------------


def _data(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain JSON data that contain each problem once."""
    problems = dict.fromkeys(each.played for each in plan.combinations)
    number = {played: i for i, played in enumerate(problems)}
    modules = own_modules(cell.policy for cell in plan.cells)
    return {
        "seed": str(plan.seed),  # a string: seeds may have 128 bits, and JSON readers round large numbers
        "replications": plan.replications,
        "unit_pulls": plan.unit_pulls,
        "problems": [{"name": p.name, "horizon": p.horizon, "problem": p.problem.to_dict()} for p in problems],
        "cells": [{"label": c.label, "problem": number[c.played], "policy": c.policy.to_dict()} for c in plan.cells],
        "left_out": [{"label": c.label, "problem": number[c.played], "reason": c.reason} for c in plan.left_out],
        "modules": [asdict(module) for module in modules],
    } | _remarks(plan, list(problems))


def _remarks(plan: Plan, problems: list[Played]) -> dict[str, Any]:
    """Return the parts of a plan on which no result depends, so that they may change when a folder is continued."""
    references = [None if p.reference is None else p.reference.to_dict() for p in problems]
    parts: dict[str, list[Any]] = {"notes": list(plan.notes), "cautions": list(plan.cautions), "references": references}
    return {name: values for name, values in parts.items() if any(each is not None for each in values)}


def _continued(folder: Path, stored: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the new data of run.json if the plan continues a folder. Raise if it is another experiment."""
    data = json.loads(json.dumps(_data(plan), allow_nan=False))
    stored = stored | {"cells": [cell | {"policy": former.renewed(cell["policy"])} for cell in stored["cells"]]}
    differences = list(_differences(stored, data))
    if differences:
        raise InvalidInput(f"{folder} was made with {joined(differences)}; {ELSEWHERE}", code=TAKEN)
    if stored["replications"] > plan.replications:
        fewer = f"{folder} has {stored['replications']} replications, but the plan has only {plan.replications}"
        raise InvalidInput(f"{fewer}: use at least {stored['replications']}, or {ELSEWHERE}", code=TAKEN)
    kept = {key: value for key, value in stored.items() if key not in REMARKS}
    renewed = {key: data[key] for key in ("left_out", *REMARKS, "modules") if key in data}
    return kept | {"replications": plan.replications} | renewed


def _checksum(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content, which does not depend on spaces or on the order of keys."""
    text = json.dumps({key: data[key] for key in data if key != "checksum"}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# --- differences from a plan that is stored --------------------------------------------------------------------------


def _differences(stored: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Describe in words what differs between two experiments: the seed, the horizons, the problems, the policies."""
    there, here = (
        {
            "another seed": [str(data["seed"])],
            "other problems": [each["name"] for each in data["problems"]],
            "other horizons": [f"{each['horizon']:,}" for each in data["problems"]],
            "other policies": [each["label"] for each in (*data["cells"], *data["left_out"])],
        }
        for data in (stored, new)
    )
    cells, others = ([[c["problem"], c["policy"]] for c in data["cells"]] for data in (stored, new))
    if cells == others:  # a label is only a name, and may be another in another version
        there["other policies"] = here["other policies"]
    differing = [what for what in there if set(there[what]) != set(here[what])]
    for what in differing:
        gone, added = (
            listed([each for each in dict.fromkeys(a[what]) if each not in b[what]], 5) or "none"
            for a, b in ((there, here), (here, there))
        )
        yield f"{what} ({gone} there, {added} here)"
    if not differing:
        pairs = zip(stored["problems"], new["problems"], strict=False)
        changed = [a["name"] for a, b in pairs if a["problem"] != b["problem"]]
        changed += [cell["label"] for cell, a, b in zip(stored["cells"], cells, others, strict=False) if a != b]
        if changed or len(cells) != len(others) or len(stored["problems"]) != len(new["problems"]):
            yield f"another plan (it differs in {listed(changed, 5) or 'its size'})"


def _check_modules(folder: Path, stored: Sequence[OwnModule], plan: Plan) -> None:
    """Raise if a module of a user is not as it was when the folder was made."""
    changes = _module_changes(stored, own_modules(cell.policy for cell in plan.cells))
    if changes:
        hint = f"To continue, restore the module, or {ELSEWHERE}"
        raise InvalidInput(f"{folder} was made with other code: {'; '.join(changes)}. {hint}", code=TAKEN)


def _module_changes(stored: Sequence[OwnModule], now: Sequence[OwnModule]) -> list[str]:
    known = {module.name: module for module in now}
    pairs = [(old, known[old.name]) for old in stored if old.name in known and old != known[old.name]]
    return [f"the module {a.name} changed (SHA-256 {a.sha256[:12]} there, {b.sha256[:12]} here)" for a, b in pairs]


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        data = json.loads(read(path))
        version = int(data["format"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"{path} was not written by Robandit, or is damaged: {error}") from error
    check_format(version, FORMAT_VERSION, path)
    try:
        if version == 1:  # without a checksum; keys of format 2 show that the number was altered
            intact = not {"checksum", "modules", "references", "cautions"} & set(data)
        else:
            intact = data.pop("checksum") == _checksum(data)
    except UNPARSABLE:
        intact = False
    if not intact:
        hint = "restore it, or run the experiment again in another folder"
        raise CorruptFile(f"{path} was changed or damaged: its checksum does not match; {hint}")
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
            cautions=tuple(map(str, data.get("cautions", ()))),
        )
        makers = tuple(dict(maker) for maker in data["runs"])
        return Store(folder, plan, (*makers[:-1], makers[-1]), _modules(folder, data))  # raises if there is no maker
    except UNPARSABLE as error:
        if own_error and isinstance(error, InvalidInput):  # for example, a user's policy class is not imported
            raise
        raise CorruptFile(f"{folder / 'run.json'} is damaged: {type(error).__name__}: {error}") from error


def _modules(folder: Path, data: Mapping[str, Any]) -> tuple[OwnModule, ...]:
    """Return the modules that run.json records; format 1 records none."""
    try:
        return msgspec.convert(data.get("modules", []), tuple[OwnModule, ...])
    except msgspec.ValidationError as error:
        raise CorruptFile(f"{folder / 'run.json'} is damaged: modules: {error}") from error


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
