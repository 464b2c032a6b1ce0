"""PerCell: any policy, once for each different context."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from robandit.kernel.random import hashed
from robandit.policies.base import Policy, check_policy_given, with_arms
from robandit.policies.default import DEFAULT
from robandit.policies.facts import Facts
from robandit.policies.linear.model import MOST
from robandit.policies.wrapping import Around, Wrapping
from robandit.validation import integer, invalid

CELL, USED = 0, 1  # of ``cell_now``: the cell whose state the other policy has now, and the number of known cells
MOST_CELLS = 10_000


class PerCell(Wrapping, Policy):
    """Another policy, with a state of its own for each cell: for each different x.

    Use it if contexts are few and discrete, such as regions, and means need not be linear. Each cell learns alone, so a context
    that says little only dilutes: with c cells, each has 1/c of the rewards. Use a linear policy for numbers. `Bandit.estimates`
    shows the cell of the last context, and drift warnings are about rewards, not residuals.

    Parameters
    ----------
    of
        The policy of each cell. Policies that use contexts themselves, wrap others, or weight rewards are rejected.
    limit
        The number of cells, from 1. Contexts that come when all others have been met share the last one.
    d
        As in `AdaClipTS`.

    Guarantee
    ---------
    That of the other policy in each cell, for the number of decisions there. Memory is that of the other policy, times the cells.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=5, noise=rb.laws.Pareto(tail=1.5), kind="costs", contexts="cells")
    >>> result = rb.simulate([rb.PerCell(), rb.AdaKLUCB()], problem, horizon=4000, replications=10, seed=0)
    >>> [round(float(r)) for r in 100 * result.regret[:, :, -1].mean(axis=1) / problem.uniform_regret(4000)]
    [9, 57]

    References
    ----------
    Ours. One bandit per context is folklore: T. Lattimore, C. Szepesvari. Bandit algorithms. CUP, 2020, chapter 18.
    """

    of: Any = dataclasses.field(default=DEFAULT, kw_only=False)
    limit: int = 64
    d: int = 1

    suffix: ClassVar[str] = "per cell"
    own_pull: ClassVar[str] = "a pull in another cell"
    first_field: ClassVar[str] = "x"
    use_when = "contexts are few and discrete, such as regions"
    contextual: ClassVar[Any] = True
    switches: ClassVar[Any] = True
    grows: ClassVar[Any] = None
    about = Facts(
        citation="ours; after Lattimore, Szepesvari 2020",
        notes=("PerCell is added to any policy without weights; each cell learns alone.",),
    )

    def validate(self) -> None:
        super().validate()
        check_policy_given(self.of, "of")
        if self.of.contextual or isinstance(self.of, Wrapping) or self.of.longest is not None:
            raise invalid("of", self.of, "a policy without contexts, wrappers or a horizon", owner="PerCell")
        integer(self.limit, "limit", 1, MOST_CELLS, owner="PerCell")
        integer(self.d, "d", 1, MOST, owner="PerCell")

    @property
    def name(self) -> str:
        """The name of the other policy."""
        limit = f" (limit={self.limit})" if self.limit != type(self).limit else ""
        return f"{self.of.name} {self.suffix}{limit}"

    @property
    def longest(self) -> int | None:
        return None

    def prepared(self, horizon: int | None) -> Self:
        return self._with(self.of.prepared(None))

    def own_params(self) -> dict[str, float]:
        return {"limit": float(self.limit)}

    def own_fields(self, inner: Any, arms: int, horizon: int | None) -> dict[str, Any]:
        x = np.zeros(self.d)
        x[0] = 1.0
        now = np.array([0, self.d == 1], dtype=np.int64)  # else the first x gets the first cell
        return {"x": x, "cell_now": now, "cell_x": x[None].copy(), "cell_states": np.zeros((1, 0), dtype=np.uint8)}

    def around(self, name: str) -> Around | None:
        """Return the hook that notices another cell."""
        return (is_elsewhere, ("full",)) if name == "full" else None

    def grown(self, state: Any) -> Any:
        """Switch to the cell of x, and make room in the state of the other policy."""
        cell = cell_of(state, self.limit)
        if state.cell_now[USED] == 0:
            state.cell_x[0] = state.x
            state.cell_now[USED] = 1
        elif cell != state.cell_now[CELL]:
            state = self._switched(state, cell)
        return super().grown(state)

    def _switched(self, state: Any, cell: int) -> Any:
        """Return the state in which the other policy has the state of another cell, which may be new."""
        inner = self.inner_state(state)
        state = state._replace(cell_states=_with_row(state.cell_states, int(state.cell_now[CELL]), inner))
        if cell < state.cell_now[USED]:
            other = _unpacked(state.cell_states[cell], inner)
        else:
            fresh = self.of.init(len(inner.allowed), None)
            other = with_arms(fresh, inner.allowed.copy(), np.zeros_like(inner.unrewarded))
            other.unrewarded[-1] = inner.unrewarded[-1]
            if "rng" in other._fields:
                other.rng[:] = hashed(inner.rng + np.uint64(cell))
            state = state._replace(cell_x=np.append(state.cell_x, state.x[None], axis=0))
            state.cell_now[USED] += 1
        state.cell_now[CELL] = cell
        other.allowed[:] = state.allowed
        self.of.forget_choice(other)
        return state._replace(**other._asdict())

    def _others(self, state: Any) -> Iterator[tuple[int, Any]]:
        """Return the other cells and their states, which are copies."""
        for cell in range(int(state.cell_now[USED])):
            if cell != state.cell_now[CELL]:
                other = _unpacked(state.cell_states[cell], self.inner_state(state))
                other.allowed[:] = state.allowed
                yield cell, other

    def paused(self, state: Any, arm: int) -> None:
        super().paused(state, arm)
        for cell, other in self._others(state):
            self.of.paused(other, arm)
            _with_row(state.cell_states, cell, other)

    def resumed(self, state: Any, arm: int) -> None:
        super().resumed(state, arm)
        for cell, other in self._others(state):
            self.of.resumed(other, arm)
            _with_row(state.cell_states, cell, other)

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm in every cell."""
        cells = np.zeros((len(state.cell_states), 0), dtype=np.uint8)
        for cell, other in self._others(state):
            cells = _with_row(cells, cell, self.of.extended(other))
        return super().extended(state._replace(cell_states=cells))

    def own_extended(self, state: Any) -> dict[str, Any]:
        return {name: getattr(state, name).copy() for name in ("x", "cell_now", "cell_x", "cell_states")}


def is_elsewhere(full: Any, p: Any, s: Any) -> bool:
    """Return whether x belongs to another cell than the present one, or the state of the other policy must grow."""
    return s.cell_now[USED] == 0 or cell_of(s, int(p.limit)) != s.cell_now[CELL] or full(p, s)


def cell_of(s: Any, limit: int) -> int:
    """Return the cell of x: a known one, a new one, or the last if there are too many."""
    now = s.cell_now[CELL]
    if same_x(s, now):  # the usual case
        return now
    for cell in range(s.cell_now[USED]):
        if same_x(s, cell):
            return cell
    return min(s.cell_now[USED], limit - 1)


def same_x(s: Any, cell: int) -> bool:
    """Return whether x is that of a cell."""
    same = True
    for i in range(s.x.shape[0]):
        same = same and s.x[i] == s.cell_x[cell, i]
    return same


def _with_row(cells: Any, cell: int, state: Any) -> Any:
    """Store a state in the row of a cell, in place if there is room."""
    sizes = np.array([size for array in state for size in array.shape], dtype=np.int64)
    data = b"".join([sizes.tobytes(), *(array.tobytes() for array in state)])
    rows, room = max(cell + 1, len(cells)), max(len(data), cells.shape[1])
    if cells.shape != (rows, room):
        larger = np.zeros((rows, room), dtype=np.uint8)
        larger[: len(cells), : cells.shape[1]] = cells
        cells = larger
    cells[cell, : len(data)] = np.frombuffer(data, dtype=np.uint8)
    cells[cell, len(data) :] = 0
    return cells


def _unpacked(row: Any, like: Any) -> Any:
    """Return the state in a row. It has the fields and types of another one."""
    count = sum(array.ndim for array in like)
    sizes, start, arrays = np.frombuffer(row[: 8 * count].tobytes(), dtype=np.int64).tolist(), 8 * count, []
    for array in like:
        shape = tuple(sizes.pop(0) for _ in array.shape)
        end = start + math.prod(shape) * array.itemsize
        arrays.append(np.frombuffer(row[start:end].tobytes(), dtype=array.dtype).reshape(shape).copy())
        start = end
    return type(like)(*arrays)
