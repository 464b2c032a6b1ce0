"""Open decisions of a live bandit: pulls whose rewards are still to come.

A dict maps each id to a row of a table, which is one piece of memory. So saving copies columns instead of visiting each decision.
Rows are in the order in which decisions were added. A closed decision leaves an unused row behind until half of all are unused.

New decisions are kept as tuples first, and move to the table together: one whose reward comes soon never gets a row, which saves a
fifth of the time of `decide` and `reward`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from itertools import chain, compress
from typing import Any, NamedTuple, Self, TypeAlias

import msgspec
import numpy as np

from robandit.live.ids import LIFE

DecisionId = str | int
"""An id: a text "LIFE-NUMBER", or an integer from 0 in files of Robandit 0.1."""

_NONE = -1.0  # in the column of propensities; a probability is never negative
_CLOSED = -1  # in the column of arms
_COLUMNS = ("arm", "mark", "propensity", "time", "life", "number")
_ROW = struct.Struct("<idddiq")
_TABLE = np.dtype(list(zip(_COLUMNS, ("<i4", "<f8", "<f8", "<f8", "<i4", "<i8"), strict=True)))
_write, _read = _ROW.pack, _ROW.unpack_from  # looked up once, because they are called for every decision
_close = struct.Struct("<i").pack_into
_ROW_BYTES = _ROW.size
_UNUSED_BYTES = 1024 * _ROW_BYTES  # allowed even if few decisions are open
_NEW = 256  # decisions that are kept as tuples; moving so many takes 0.1 ms
LARGEST_NUMBER = 10**18 - 1

# Arm, mark, propensity, time, and the life and the number of the id.
_Row: TypeAlias = tuple[int, float, float | None, float, str, int]


class OpenDecision(NamedTuple):
    """A pull whose reward is still to come."""

    arm: int
    """The position of the arm."""
    mark: float
    """The value that ``take`` of the policy returned."""
    propensity: float | None
    """The probability of the choice. None: it was deterministic. NaN: it was random with an unknown probability."""
    time: float
    """When the decision was made, in seconds since 1970 (UTC)."""


class SavedDecisions(msgspec.Struct, array_like=True):
    """Open decisions, oldest first: the different lives of their ids ("" for integers), and columns of little-endian numbers.

    ``places`` are the positions of the ids' lives in ``lives``, ``numbers`` the numbers of the ids. A column other than
    ``numbers`` whose values are all the same holds this value once.
    """

    lives: list[str]
    arms: bytes
    marks: bytes
    propensities: bytes
    times: bytes
    places: bytes
    numbers: bytes


class OpenDecisions:
    """Open decisions by id, in the order in which they were added. Not thread-safe: callers hold a lock."""

    __slots__ = ("_lives", "_new", "_offsets", "_table")

    def __init__(self) -> None:
        """Start without decisions."""
        self._offsets: dict[DecisionId, int] = {}  # where the row begins
        self._lives: dict[str, int] = {}  # the position of each life that an id has or had
        self._table = bytearray()
        self._new: dict[DecisionId, _Row] = {}  # added after all of the table

    def add(self, id: DecisionId, arm: int, mark: float, propensity: float | None, time: float) -> None:
        """Add a decision. Raise `ValueError` if its id is open already."""
        if id in self:
            raise ValueError(f"decision {id!r} is open already")
        life, _, number = ("", "", id) if isinstance(id, int) else id.partition("-")
        row = (arm, mark, propensity, time, life, int(number))
        self._packed_row(row)  # raises now, and not when the row moves to the table
        self.add_new(id, row)

    def add_new(self, id: DecisionId, row: _Row) -> None:
        """Add a decision whose id was never used before, and whose values have the right types."""
        if len(self._new) >= _NEW:
            self._store_new()
        self._new[id] = row

    def _store_new(self) -> None:
        """Move the new decisions to the table."""
        table, new = self._table, self._new
        rows = b"".join([self._packed_row(row) for row in new.values()])
        offsets = range(len(table), len(table) + len(rows), _ROW_BYTES)
        added = dict(zip(new, offsets, strict=True))
        # From here, there is no call, so that an exception of a signal handler cannot come in between.
        table += rows
        self._offsets |= added
        self._new = {}

    def _packed_row(self, row: _Row) -> bytes:
        arm, mark, propensity, time, life, number = row
        if propensity is None:
            propensity = _NONE
        elif propensity != propensity:
            propensity = math.nan  # always the same bits
        return _write(arm, mark, propensity, time, self._lives.setdefault(life, len(self._lives)), number)

    def close(self, id: DecisionId) -> None:
        """Remove a decision. Raise `KeyError` if it is not open."""
        if self._new.pop(id, None) is not None:
            return
        offset = self._offsets.pop(id)
        table = self._table
        _close(table, offset, _CLOSED)
        if len(table) > 2 * _ROW_BYTES * len(self._offsets) + _UNUSED_BYTES:
            self._use(list(self._offsets), self._rows())

    def __getitem__(self, id: DecisionId) -> OpenDecision:
        """Return a decision. Raise `KeyError` if it is not open."""
        if id in self._new:
            self._store_new()
        return self._at(self._offsets[id])

    def facts(self, id: DecisionId) -> tuple[int, float, float] | None:
        """Return arm, mark and time of a decision, or None if it is not open. Faster than the whole decision."""
        row = self._new.get(id)
        if row is not None:
            return row[0], row[1], row[3]
        offset = self._offsets.get(id)
        if offset is None:
            return None
        arm, mark, _, time, _, _ = _read(self._table, offset)
        return arm, mark, time

    def items(self) -> Iterator[tuple[DecisionId, OpenDecision]]:
        """Return an iterator over ids and decisions, oldest first."""
        self._store_new()
        return ((id, self._at(offset)) for id, offset in self._offsets.items())

    def older_than(self, time: float, most: int | None = None) -> list[DecisionId]:
        """Return the ids of decisions made before ``time``, in the order in which they were added; at most ``most`` of them."""
        self._store_new()
        older = self._rows()["time"] < time
        places = np.flatnonzero(older)[:most]
        return list(compress(self._offsets, older[: places[-1] + 1].tolist())) if places.size else []

    def per_arm(self, arms: int) -> list[int]:
        """Return the number of open decisions of each arm."""
        self._store_new()
        counts: list[int] = np.bincount(self._rows()["arm"], minlength=arms).tolist()
        return counts

    def __len__(self) -> int:
        """Return the number of open decisions."""
        return len(self._offsets) + len(self._new)

    def __contains__(self, id: object) -> bool:
        """Return whether a decision is open."""
        return id in self._new or id in self._offsets

    def __iter__(self) -> Iterator[DecisionId]:
        """Return an iterator over the ids, oldest first."""
        return chain(self._offsets, self._new)

    def _at(self, offset: int) -> OpenDecision:
        arm, mark, propensity, time, _, _ = _read(self._table, offset)
        if not propensity >= 0.0:  # None, or NaN: always the same object, so that tuples that hold it are equal
            propensity = None if propensity == _NONE else math.nan
        return OpenDecision(arm, mark, propensity, time)

    def _rows(self) -> Any:
        """Return the rows of the table in use, as an array of records."""
        rows = np.frombuffer(self._table, dtype=_TABLE)
        return rows if len(rows) == len(self._offsets) else rows[rows["arm"] != _CLOSED]

    def _use(self, ids: list[DecisionId], rows: Any) -> None:
        self._table = bytearray(rows.tobytes())
        self._offsets = dict(zip(ids, range(0, len(self._table), _ROW_BYTES), strict=True))

    # --- saving -----------------------------------------------------------------------------------------------------

    def pack(self) -> SavedDecisions:
        """Return the decisions as data for MessagePack. Equal decisions in the same order give equal bytes."""
        self._store_new()
        rows = self._rows()
        # Lives are numbered in the order of the open decisions, since those that were closed must leave no trace.
        used, first, life = np.unique(rows["life"], return_index=True, return_inverse=True)
        order = np.argsort(first)
        names = {number: name for name, number in self._lives.items()}
        lives = [names[number] for number in used[order].tolist()]
        places = np.argsort(order)[life].astype("<i4")
        arms, marks, propensities, times = (_packed(rows[name]) for name in _COLUMNS[:4])
        return SavedDecisions(lives, arms, marks, propensities, times, _packed(places), rows["number"].tobytes())

    @classmethod
    def unpack(cls, saved: SavedDecisions, arms: int, *, weighted: bool = False) -> Self | None:
        """Return the decisions that `pack` saved, or None if they are inconsistent or do not fit this number of arms.

        If the policy is ``weighted``, their marks must be probabilities above 0.
        """
        rows = np.empty(len(saved.numbers) // _TABLE["number"].itemsize, dtype=_TABLE)
        columns = (saved.arms, saved.marks, saved.propensities, saved.times, saved.places, saved.numbers)
        for name, data in zip(_COLUMNS, columns, strict=True):
            kind = _TABLE[name]
            if len(data) not in {kind.itemsize * len(rows), kind.itemsize * min(len(rows), 1)}:
                return None
            rows[name] = np.frombuffer(data, dtype=kind)
        ids = _ids(saved.lives, rows["life"], rows["number"])
        if ids is None:
            return None
        chance = rows["propensity"]
        chance[np.isnan(chance)] = math.nan
        chances_fit = np.isnan(chance) | (chance == _NONE) | ((chance >= 0.0) & (chance <= 1.0))
        arms_fit = (rows["arm"] >= 0) & (rows["arm"] < arms)
        mark = rows["mark"]
        marks_fit = (mark > 0.0) & (mark <= 1.0) if weighted else np.isfinite(mark)
        if len(set(ids)) < len(ids) or not (chances_fit & arms_fit & marks_fit & np.isfinite(rows["time"])).all():
            return None
        decisions = cls()
        decisions._lives = {life: i for i, life in enumerate(saved.lives)}
        decisions._use(ids, rows)
        return decisions


def _ids(lives: list[str], life: Any, number: Any) -> list[DecisionId] | None:
    """Return ids from their lives and numbers, or None if they are invalid."""
    valid = all(name == "" or re.fullmatch(LIFE, name) for name in lives) and len(set(lives)) == len(lives)
    in_range = (life >= 0) & (life < len(lives)) & (number >= 0) & (number <= LARGEST_NUMBER)
    if not valid or not in_range.all():
        return None
    pairs = zip(life.tolist(), number.tolist(), strict=True)
    return [f"{lives[i]}-{n}" if lives[i] else n for i, n in pairs]


def _packed(column: Any) -> bytes:
    bits = column.view(f"<i{column.itemsize}")  # so that NaN equals NaN, and 0.0 differs from -0.0
    return bytes((column[:1] if (bits == bits[:1]).all() else column).tobytes())
