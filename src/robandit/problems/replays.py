"""Problems whose rewards were recorded, and are handed out again.

Three ways, by what the record holds:

- `recorded_problem`: rewards of each arm and nothing else. They are drawn with replacement: independent, in no order.
- `InOrder`: what every arm gave at every time. The table is played row by row, so drifts and bad hours that all arms share are
  there, and regret is what was really missed.
- `Logged`: what the one arm gave that somebody chose at that time. A policy's choice waits for the next row with this arm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws import Empirical, Law, LawTable, Weighted
from robandit.laws import in_order as columns
from robandit.laws.packing import packed, unpacked
from robandit.problems.problem import Problem

__all__ = ["InOrder", "Logged", "Replay", "recorded_problem"]


def recorded_problem(samples: Mapping[str, ArrayLike]) -> Problem:
    """A problem whose arms draw from recorded rewards, with replacement.

    Parameters
    ----------
    samples
        The arms' rewards by their names.

    Examples
    --------
    >>> problem = recorded_problem({"east": [-3.0, -1.0], "west": [-9.0, 0.0, 0.0]})
    >>> problem.names, problem.means.tolist()
    (('east', 'west'), [-2.0, -3.0])
    """
    if not isinstance(samples, Mapping):
        raise InvalidInput(f"samples is a {type(samples).__name__}: pass a mapping from each arm's name to its rewards")
    laws = [Empirical(_rewards(rewards, f"samples[{arm!r}]", 1)) for arm, rewards in samples.items()]
    return Problem(laws, list(samples))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Replay(Problem):
    """A problem that hands out recorded rewards in their order: they are not independent draws from its laws."""

    rewards: Floats
    """The record, a row per time."""

    def at_start(self, replication: int, words: UInts) -> LawTable:
        """A copy of the table, for it holds how far the replication has come."""
        code, par, start, pool = self._table
        par = par.copy()
        # The remainder is uneven by less than the rows in 2^64.
        par[0, columns.PLACE] = 0 if replication == 0 else int(words[0, 1]) % self.rows
        return LawTable(code, par, start, pool)

    @property
    def independent(self) -> bool:
        """No: they come in the order of the record."""
        return False

    @property
    def rows(self) -> int:
        """How many rows the record has."""
        return len(self.rewards)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class InOrder(Replay):
    """A table of what every arm gave at every time, played in its order.

    Replication 0 plays row t at time t. The others begin at a row that is drawn with their seed, the same one for all policies,
    and go round: after the last row comes the first. No horizon is longer than the table.

    Regret is realised: what the arm with the greatest mean of the whole table gave at those times, minus what the policy got. It
    can be negative, since a policy may follow what changes. Its laws are those of the columns.

    Parameters
    ----------
    rewards
        A row per time and a column per arm; rewards are maximised.
    names
        The arms' names, all different; "0", "1", ... if not given.

    Examples
    --------
    >>> import robandit as rb
    >>> table = InOrder([[0.0, 1.0], [2.0, 1.0], [0.0, 4.0]], names=["a", "b"])
    >>> table.best_arm, table.means.tolist(), table.rows
    (1, [0.6666667, 2.0], 3)
    >>> rb.simulate(rb.Oracle(arm=0), table, 3, replications=1, seed=0, checkpoints=[1, 2, 3]).regret.tolist()
    [[[1.0, 0.0, 4.0]]]
    """

    rewards: Floats
    """The table (read-only)."""

    def __init__(self, rewards: ArrayLike, names: Sequence[str] | None = None) -> None:
        """Copy and check the table."""
        table = _rewards(rewards, "rewards", 2)
        super().__init__([Empirical(table[:, arm]) for arm in range(table.shape[1])], names)
        view = table.view()  # compiled code has no use for arrays that are read-only, people have
        view.setflags(write=False)
        object.__setattr__(self, "_pool", table.reshape(-1))
        object.__setattr__(self, "rewards", view)

    def __repr__(self) -> str:
        """All rows of a small table, a summary of a large one."""
        if self.rewards.size <= 32:
            return f"InOrder({self.rewards.tolist()!r}, names={list(self.names)!r})"
        return f"<InOrder: {self.rows} rows of {self.arms} arms>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the table and names, not what was computed from them."""
        return InOrder, (self.rewards, self.names)

    @property
    def counted_gaps(self) -> Floats:
        """Zeros: the sampler measures the regret itself (`robandit.laws.table.missed`)."""
        return np.zeros(self.arms)

    def check_horizon(self, horizon: int) -> None:
        """Refuse a horizon beyond the table."""
        if horizon > self.rows:
            raise InvalidInput(
                f"horizon = {horizon} is longer than the record, which has {self.rows} rows: play at most so long, or draw from "
                "it with replacement (robandit.problems.recorded_problem)"
            )

    @cached_property
    def _table(self) -> LawTable:
        par = _par(self.arms)
        par[:, columns.LENGTH] = self.rows
        par[:, columns.BEST] = self.best_arm
        return _law_table(columns.IN_ORDER, par, self.__dict__["_pool"])

    def to_dict(self) -> dict[str, Any]:
        """The replay as plain JSON data."""
        return {"replay": "InOrder", "rewards": packed(self.rewards.reshape(-1)), "names": list(self.names)}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Logged(Replay):
    """A log of choices and their rewards, replayed by rejection (Li, Chu, Langford and Wang 2011).

    A policy's choice waits for the next row of the log where this arm was played, and gets its reward; rows passed over are lost.
    A choice is made once and kept until it is matched, so that policies that draw their choices play as they would. At the end the
    log begins again. Replication 0 begins at the first row, the others at one that is drawn with their seed, the same for all
    policies. Regret is pseudo-regret: the gaps are those of the laws.

    That is fair if the arm was chosen without regard to what it would give. Where it was chosen by circumstances that matter, with
    known probabilities, give these as ``propensities``: in each replication a row is then kept with the probability (smallest
    propensity of this arm) / (its propensity), else it is passed over. Whatever the circumstances, a row with this arm is now
    found with the same probability, the arm's smallest. The laws weigh rewards accordingly, by 1 / propensity.

    Parameters
    ----------
    actions
        The arm of each row, a number from 0; every arm has at least one row.
    rewards
        The reward of each row; rewards are maximised.
    names
        The arms' names, all different.
    propensities
        The probability with which each row's arm was chosen there, in (0, 1]. None: all rows are kept.

    Examples
    --------
    >>> log = Logged(actions=[0, 1, 1, 0], rewards=[1.0, 5.0, 7.0, 3.0], names=["a", "b"])
    >>> log.means.tolist(), log.fewest
    ([2.0, 6.0], 2)
    """

    actions: Ints
    """The arm of each row (read-only)."""
    rewards: Floats
    """The reward of each row (read-only)."""
    propensities: Floats | None
    """The probability with which each row's arm was chosen (read-only)."""

    def __init__(
        self, actions: ArrayLike, rewards: ArrayLike, names: Sequence[str], propensities: ArrayLike | None = None
    ) -> None:
        """Copy and check the log."""
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise InvalidInput(f"names is {names!r}: pass a sequence with one name per arm")
        given = _rewards(rewards, "rewards", 1)
        arms = _actions(actions, len(given), names)
        chosen = None if propensities is None else _propensities(propensities, len(given))
        ends = np.cumsum(np.bincount(arms, minlength=len(names)))[:-1]
        members = np.split(np.argsort(arms, kind="stable"), ends)  # the rows of each arm, increasing
        chances = None if chosen is None else [chosen[where].min() / chosen[where] for where in members]
        laws: list[Law] = []
        for arm, where in enumerate(members):
            equal = chances is None or bool((chances[arm] == 1.0).all())
            laws.append(Empirical(given[where]) if equal else Weighted(given[where], chances[arm]))  # type: ignore[index]
        super().__init__(laws, names)
        for array in (arms, given, *([] if chosen is None else [chosen])):
            array.setflags(write=False)
        object.__setattr__(self, "actions", arms)
        object.__setattr__(self, "rewards", given)
        object.__setattr__(self, "propensities", chosen)
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_chances", chances)

    def __repr__(self) -> str:
        """All rows of a short log, a summary of a long one."""
        if len(self.rewards) > 32:
            with_ = "" if self.propensities is None else " with propensities"
            return f"<Logged: {self.rows} rows of {self.arms} arms{with_}>"
        more = "" if self.propensities is None else f", propensities={self.propensities.tolist()!r}"
        return f"Logged({self.actions.tolist()!r}, {self.rewards.tolist()!r}, names={list(self.names)!r}{more})"

    def __eq__(self, other: object) -> bool:
        """The same rows in the same order, and the same names."""
        if self is other:
            return True
        return (
            isinstance(other, Logged)
            and self.names == other.names
            and np.array_equal(self.actions, other.actions)
            and np.array_equal(self.rewards, other.rewards)
            and (self.propensities is None) == (other.propensities is None)
            and (self.propensities is None or np.array_equal(self.propensities, other.propensities))  # type: ignore[arg-type]
        )

    __hash__ = Replay.__hash__  # by the laws, which are the same for logs that are equal

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the log and names, not what was computed from them."""
        return Logged, (self.actions, self.rewards, self.names, self.propensities)

    @property
    def fewest(self) -> int:
        """How many rows the rarest arm has, as far as they are expected to be kept.

        For a horizon of so many pulls every policy is expected to get by with one pass through the log, if its arms come in no
        particular order; a longer one uses rows again.
        """
        # A pull of an arm with n_a of the n rows passes n / n_a rows in the mean. N_a pulls of each arm pass n times the sum of
        # N_a / n_a. That sum is at most (sum of N_a) / (smallest n_a), and so at most 1 if there are no more pulls than that.
        chances: list[Floats] | None = self.__dict__["_chances"]
        members: list[Ints] = self.__dict__["_members"]
        kept = [len(w) for w in members] if chances is None else [math.fsum(each) for each in chances]
        return max(1, math.floor(min(kept)))

    @cached_property
    def _table(self) -> LawTable:
        chances: list[Floats] | None = self.__dict__["_chances"]
        par, pools, offset = _par(self.arms), [], 0
        for arm, where in enumerate(self.__dict__["_members"]):
            thinned = chances is not None and not bool((chances[arm] == 1.0).all())
            parts = [where.astype(np.float64), self.rewards[where], *([chances[arm]] if thinned else [])]  # type: ignore[index]
            par[arm, columns.OFFSET] = offset
            par[arm, columns.LENGTH] = len(where)
            par[arm, columns.THINNED] = 1.0 if thinned else 0.0
            pools += parts
            offset += len(parts) * len(where)
        return _law_table(columns.LOGGED, par, np.concatenate(pools))

    def to_dict(self) -> dict[str, Any]:
        """The replay as plain JSON data."""
        data = {"replay": "Logged", "actions": packed(self.actions, "int32"), "rewards": packed(self.rewards)}
        more = {} if self.propensities is None else {"propensities": packed(self.propensities)}
        return data | more | {"names": list(self.names)}


def replay_from_dict(data: Mapping[str, Any]) -> Replay:
    """The replay that ``to_dict`` wrote."""
    fields = {"InOrder": {"rewards", "names"}, "Logged": {"actions", "rewards", "names", "propensities"}}
    kind = data["replay"]
    if kind not in list(fields):
        raise InvalidInput(f"replay is {kind!r}: it must be InOrder or Logged")
    needed = fields[kind] - {"propensities"}
    if not needed <= set(data) <= fields[kind] | {"replay"}:
        given = ", ".join(sorted(map(str, set(data) - {"replay"}))) or "nothing"
        raise InvalidInput(f"a replay {kind} has {', '.join(sorted(fields[kind]))}; here it has {given}")
    names = data["names"]
    rewards = unpacked(data["rewards"], "rewards")
    if kind == "Logged":
        propensities = unpacked(data.get("propensities"), "propensities")
        return Logged(unpacked(data["actions"], "actions"), rewards, names, propensities)
    flat = _rewards(rewards, "rewards", 1)
    if not isinstance(names, Sequence) or isinstance(names, str) or not names or flat.size % len(names):
        raise InvalidInput(
            f"rewards has {flat.size} values, which are no table with a column for each of the names {names!r}"
        )
    return InOrder(flat.reshape(-1, len(names)), names)


# --- checks and tables -----------------------------------------------------------------------------------------------


def _rewards(given: Any, name: str, dimensions: int) -> Floats:
    """A copy of recorded rewards, each finite and small enough to be played."""
    values = _numbers(given, name)
    if values.ndim != dimensions or values.size == 0:
        shape = "a row per time and a column per arm" if dimensions == 2 else "one-dimensional and not empty"
        raise InvalidInput(f"{name} has shape {values.shape}: it must be {shape}")
    with np.errstate(invalid="ignore"):
        bad = np.argwhere(~(np.abs(values) <= LARGEST_REWARD))
    if len(bad):
        where = ", ".join(str(i) for i in bad[0])
        raise InvalidInput(
            f"{name}[{where}] is {values[tuple(bad[0])]}: a recorded reward must be finite and at most {LARGEST_REWARD:g} in size; "
            f"drop such rows first, or scale all rewards down ({len(bad)} of {values.size} are like this)"
        )
    return values


def _actions(given: Any, rows: int, names: Sequence[str]) -> Ints:
    values = _numbers(given, "actions")
    if values.shape != (rows,):
        raise InvalidInput(f"actions has shape {values.shape} for {rows} rewards: give one arm for each")
    bad = np.flatnonzero(~((values >= 0) & (values < len(names)) & (values == np.floor(values))))
    if len(bad):
        raise InvalidInput(
            f"actions[{bad[0]}] is {values[bad[0]]:g}: it must be an arm, a whole number from 0 to {len(names) - 1}"
        )
    counts = np.bincount(values.astype(np.int64), minlength=len(names))
    if not counts.all():
        raise InvalidInput(f"arm {names[int(counts.argmin())]!r} was never played in the log: leave it out of names")
    return values.astype(np.int64)


def _propensities(given: Any, rows: int) -> Floats:
    values = _numbers(given, "propensities")
    if values.shape != (rows,):
        raise InvalidInput(f"propensities has shape {values.shape} for {rows} rewards: give one for each")
    bad = np.flatnonzero(~((values > 0.0) & (values <= 1.0)))
    if len(bad):
        raise InvalidInput(
            f"propensities[{bad[0]}] is {values[bad[0]]}: the probability of a choice that was made lies in (0, 1]"
        )
    return values


def _numbers(given: Any, name: str) -> Floats:
    try:
        read = np.asarray(given)
        if read.dtype.kind not in "biufO":
            raise TypeError(f"its type is {read.dtype}")
        return np.array(read, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} cannot be read as numbers ({error}): pass an array of numbers, all rows equally long"
        ) from None


def _par(arms: int) -> Floats:
    """The rows of a replay's table, of location 0 and scale 1."""
    par = np.zeros((arms, columns.COLUMNS))
    par[:, columns.SCALE] = 1.0
    return par


def _law_table(code: int, par: Floats, pool: Floats) -> LawTable:
    arms = len(par)
    return LawTable(np.full(arms, code, dtype=np.int64), par, np.arange(arms + 1, dtype=np.int64), pool)
