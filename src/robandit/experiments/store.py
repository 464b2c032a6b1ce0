"""The run folder: a plan, what was measured of it so far, and where that was. Its layout is in docs/reference/run-folder.md."""

from __future__ import annotations

import io
import json
import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile
from robandit.experiments.ledger import FOLDERS, Ledger, locked, write_json
from robandit.experiments.plan import MOST_REPLICATIONS, Cell, LeftOut, Plan, Played, Unit
from robandit.experiments.results import Failure, Measured, Results
from robandit.files import UNSEALED, sealed, write_atomically
from robandit.kernel.cores import cores
from robandit.kernel.types import Ints
from robandit.laws.packing import is_packed
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.result import Result

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ELSEWHERE", "Store", "regret_table", "versions"]

ELSEWHERE = "name another folder"  # the way out of a folder that is taken; a command says with which option

FORMAT_VERSION = 1  # of run.json and the folder
TABLE_VERSION = 1  # of regret.parquet and pulls.parquet
ROW_GROUP = 1 << 18  # rows; said, so that the bytes do not depend on what Polars takes by default


@dataclass(frozen=True)
class Store:
    """A run folder. `create` makes or continues one, `open` reads one."""

    folder: Path
    plan: Plan
    """As it was read back from the folder."""
    makers: tuple[dict[str, Any], ...]
    """The command, versions and machine of each run that was different from those before, the last at the end."""

    @property
    def ledger(self) -> Ledger:
        """Its units."""
        return Ledger(self.folder)

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], plan: Plan, *, command: str = "", spec_text: str | None = None
    ) -> Store:
        """Make a run folder for a plan, or continue the one that is there.

        There, the plan must be the same, but it may have more replications: what is done stays.

        Parameters
        ----------
        folder
            A new or empty folder, or a run folder.
        plan
            What is to be played.
        command
            What was typed, for the report.
        spec_text
            The text of the spec, kept as ``spec.toml``.
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
            there = _read(place) if (place / "run.json").exists() else None
            if there is not None:
                _parsed(place, there)  # refuses what is damaged
            data = _continued(place, there, plan) if there is not None else {"format": FORMAT_VERSION} | _told(plan)
            maker = {"command": command, "versions": versions(), "machine": _machine()}
            before = there["runs"] if there is not None else []
            data["runs"] = [each for each in before if each != maker] + [maker]
            data = json.loads(json.dumps(data, allow_nan=False))
            if data != there:
                write_json(place / "run.json", data)
            # Only now: a folder without run.json holds nothing but locks, however its making ended.
            for name in FOLDERS:
                (place / name).mkdir(exist_ok=True)
            for leftover in (*place.glob(".run.json.*"), *place.glob(".spec.toml.*")):
                leftover.unlink()
            if spec_text is not None:
                text = spec_text.encode()
                write_atomically(place / "spec.toml", lambda file: file.write(text))
        Ledger(place).sweep()
        return _parsed(place, data)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Read a run folder; nothing in it is changed."""
        place = Path(folder)
        if not (place / "run.json").exists():
            raise FileError(f"{place} is not a run folder: it has no run.json; name one that a run has made")
        return _parsed(place, _read(place))

    def continued(self, plan: Plan) -> Plan:
        """The plan as a run would go on with it here: cut into units as before. Another experiment is refused."""
        _continued(self.folder, _read(self.folder), plan)
        return replace(plan, unit_pulls=self.plan.unit_pulls)

    @property
    def about(self) -> dict[str, Any]:
        """The command, versions and machine of the last run, of ``earlier`` ones that were different, and the spec and its name."""
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
        """The units that failed and have not been played since."""
        recorded = [self.ledger.failure(unit) for unit in self.plan.units if not self.ledger.part(unit).exists()]
        return tuple(failure for failure in recorded if failure is not None)

    def results(self) -> Results:
        """What has been measured so far. A damaged part is an error that names it."""
        played = ((unit, self._result(unit), self.ledger.seconds(unit)) for unit in self.plan.units)
        there = ((unit, result, seconds) for unit, result, seconds in played if result is not None)
        return Results.of(self.plan, there, self.failures(), self.about)

    def _result(self, unit: Unit) -> Result | None:
        path = self.ledger.part(unit)
        if not path.exists():
            return None
        try:
            result = Result.from_parquet(path, unit.cell.played.problem)
        except CorruptFile as error:
            way = (
                "delete it and run again"  # it is whole, but not what belongs here
                if self.ledger.done(unit)
                else f"run again in {self.folder}, and it is set aside and played again"
            )
            raise CorruptFile(f"{error}; {way}") from error
        played = Played("", result.problem, result.horizon)
        holds = Unit(Cell(played, result.policies[0], ""), result.seed, result.first, result.regret.shape[1])
        if holds.key != unit.key:
            raise CorruptFile(f"{path} holds the unit {holds.key}, not its own: delete it and run again")
        return result

    def write_results(
        self, folder: str | os.PathLike[str] | None = None, *, results: Results | None = None
    ) -> tuple[Path, Path]:
        """Write all results as tidy tables, ``regret.parquet`` and ``pulls.parquet``, and return their paths.

        The bytes depend only on what was measured, not on how.

        Parameters
        ----------
        folder
            By default ``results`` in the run folder.
        results
            What `results` returned, if it is loaded already.
        """
        place = self.folder / "results" if folder is None else Path(folder)
        measured = (self.results() if results is None else results).measured
        tables = {"regret": regret_table(measured), "pulls": _pulls_table(measured)}
        with _named(place):
            place.mkdir(parents=True, exist_ok=True)
        with locked(place / ".lock", wait=True):
            for name, table in tables.items():
                for leftover in place.glob(f".{name}.parquet.*"):
                    leftover.unlink()
                _write_table(place / f"{name}.parquet", name, table)
        return place / "regret.parquet", place / "pulls.parquet"


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Errors of the system name the folder that they are about."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{error.filename or folder} cannot be used: {error.strerror}; {ELSEWHERE}") from error


def _check_empty(folder: Path) -> None:
    """Refuse a folder with other things in it. What a run that was killed at its very start has left is nothing."""
    others = sorted(
        path.name for path in folder.iterdir() if path.name != "locks" and not path.name.startswith(".run.json.")
    )
    if others and not (folder / "run.json").exists():  # asked again: another run may have started meanwhile
        raise FileError(
            f"{folder} is not a run folder and not empty (it has {', '.join(others[:3])}{', ...' if others[3:] else ''}): "
            + ELSEWHERE
        )


# --- run.json -------------------------------------------------------------------------------------------------------


def _told(plan: Plan) -> dict[str, Any]:
    """A plan as plain JSON data; each problem once."""
    problems = list(dict.fromkeys([*(c.played for c in plan.cells), *(each.played for each in plan.left_out)]))
    number = {played: i for i, played in enumerate(problems)}
    return {
        "seed": str(plan.seed),  # may have 128 bits, which JSON readers round
        "replications": plan.replications,
        "unit_pulls": plan.unit_pulls,
        "problems": [{"name": p.name, "horizon": p.horizon, "problem": p.problem.to_dict()} for p in problems],
        "cells": [
            {"label": cell.label, "problem": number[cell.played], "policy": cell.policy.to_dict()}
            for cell in plan.cells
        ],
        "left_out": [
            {"label": each.label, "problem": number[each.played], "reason": each.reason} for each in plan.left_out
        ],
    } | ({"notes": list(plan.notes)} if plan.notes else {})


def _continued(folder: Path, there: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """What run.json will say when a plan goes on in a folder, or an error that says why it cannot."""
    now = json.loads(json.dumps(_told(plan), allow_nan=False))
    for part in ("seed", "problems", "cells"):
        difference = _difference(part, there.get(part), now[part])
        if difference is not None:
            raise InvalidInput(f"{folder} holds another experiment: {difference}; {ELSEWHERE}")
    if there["replications"] > plan.replications:
        raise InvalidInput(
            f"{folder} holds {there['replications']} replications, and {plan.replications} are asked for: ask for as many or "
            f"more, or {ELSEWHERE}"
        )
    kept = {key: value for key, value in there.items() if key != "notes"}
    renewed = {key: now[key] for key in ("left_out", "notes") if key in now}
    return kept | {"replications": plan.replications} | renewed


def _difference(where: str, there: Any, now: Any) -> str | None:
    """The first difference of two pieces of JSON data, in words."""
    if is_packed(there) or is_packed(now):  # a record, or one of the two is too short to be packed
        what = _RECORDED.get(where.rpartition(".")[2], "numbers")
        return None if there == now else f"the recorded {what} are others"
    if isinstance(there, dict) and isinstance(now, dict) and set(there) == set(now):
        pairs = [(f"{where}.{key}", there[key], now[key]) for key in there]
    elif isinstance(there, list) and isinstance(now, list):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(there, now, strict=False))]
        if len(there) != len(now):
            pairs.append((f"the number of {where}", len(there), len(now)))
    else:
        return None if there == now else f"{where} is {_short(there)} there and {_short(now)} here"
    return next((found for pair in pairs if (found := _difference(*pair)) is not None), None)


_RECORDED = {"data": "rewards", "rewards": "rewards", "actions": "choices", "propensities": "propensities"}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        data = json.loads(path.read_bytes())
        found = int(data["format"])
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"{path} is not one that Robandit wrote, or it is damaged: {error}") from error
    if found > FORMAT_VERSION:
        raise NewerFile(f"{path} has format {found}; this Robandit reads up to {FORMAT_VERSION}: upgrade robandit")
    return dict(data)


def _parsed(folder: Path, data: Mapping[str, Any]) -> Store:
    try:
        problems = [
            Played(_text(p["name"]), Problem.from_dict(p["problem"]), _whole(p["horizon"], 2**53))
            for p in data["problems"]
        ]
        plan = Plan(
            cells=tuple(
                Cell(problems[cell["problem"]], Policy.from_dict(cell["policy"]), _text(cell["label"]))
                for cell in data["cells"]
            ),
            left_out=tuple(
                LeftOut(problems[each["problem"]], _text(each["label"]), _text(each["reason"]))
                for each in data["left_out"]
            ),
            seed=int(data["seed"]),
            replications=_whole(data["replications"], MOST_REPLICATIONS),
            unit_pulls=_whole(data["unit_pulls"], 2**53),
            notes=tuple(map(str, data.get("notes", ()))),
        )
        makers = tuple(dict(maker) for maker in data["runs"])
        return Store(folder, plan, (*makers[:-1], makers[-1]))  # there is at least one
    except InvalidInput:  # a policy of the user's own that is not imported
        raise
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError) as error:
        raise CorruptFile(f"{folder / 'run.json'} is damaged: {type(error).__name__}: {error}") from error


def _whole(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{_short(value)} is no whole number from 1 to {most:,}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_short(value)} is no text")
    return value


def versions() -> dict[str, str]:
    """Of all that results may depend on."""
    others = {name: version(name) for name in ("numpy", "numba", "polars")}
    own: str = import_module("robandit").__version__  # not imported: all of Robandit lies above this module
    return {"robandit": own, "python": platform.python_version()} | others


def _machine() -> dict[str, Any]:
    return {"platform": platform.platform(), "processor": platform.machine(), "cores": cores()}


# --- tables ---------------------------------------------------------------------------------------------------------


def regret_table(measured: tuple[Measured, ...]) -> pl.DataFrame:
    """Regret, a row per problem, horizon, policy, replication and checkpoint ``t``."""
    import polars as pl

    return _table({"t": pl.Int64, "regret": pl.Float64}, [(m, m.checkpoints, m.regret) for m in measured])


def _pulls_table(measured: tuple[Measured, ...]) -> pl.DataFrame:
    import polars as pl

    rows = [(m, np.arange(m.cell.played.problem.arms), m.pulls) for m in measured]
    return _table({"arm": pl.Int64, "pulls": pl.Int64}, rows)


def _table(columns: dict[str, Any], rows: list[tuple[Measured, Ints, Any]]) -> pl.DataFrame:
    """A row per cell, replication and element of its row of values; ``columns`` are the element's number and value."""
    import polars as pl

    schema = {"problem": pl.String, "horizon": pl.Int64, "policy": pl.String, "replication": pl.Int64} | columns
    number, value = columns
    frames = [pl.DataFrame(schema=schema)]
    for m, numbers, values in rows:
        frame = pl.DataFrame(
            {
                "replication": np.repeat(m.replications, len(numbers)),
                number: np.tile(numbers, len(values)),
                value: values.reshape(-1),
            }
        )
        played = m.cell.played
        frame = frame.with_columns(
            problem=pl.lit(played.name), horizon=pl.lit(played.horizon, pl.Int64), policy=pl.lit(m.cell.label)
        )
        frames.append(frame.select(pl.col(name).cast(kind) for name, kind in schema.items()))
    return pl.concat(frames, rechunk=True)


def _write_table(path: Path, name: str, table: pl.DataFrame) -> None:
    buffer = io.BytesIO()
    about = json.dumps({"table": name, "version": TABLE_VERSION})
    table.write_parquet(buffer, row_group_size=ROW_GROUP, metadata={"robandit": about, "seal": UNSEALED.decode()})
    content = sealed(buffer.getvalue())
    write_atomically(path, lambda file: file.write(content))
