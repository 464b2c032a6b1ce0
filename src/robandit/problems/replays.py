"""Problems that replay recorded rewards.

The class depends on the record:

- `recorded_problem`: the record has rewards of each arm, without times. They are drawn independently, with replacement.
- `InOrder`: the record has the reward of every arm at every time. The table is played row by row, which preserves drifts and bad
  hours that all arms share. Regret is realised regret.
- `Logged`: the record has the reward of the chosen arm at each time. A policy's choice waits for the next row with this arm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, excerpt, formatted
from robandit.hints import guided
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD, playable
from robandit.kernel.random import streams
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws import Empirical, LawTable, Weighted
from robandit.laws import in_order as columns
from robandit.laws.packing import packed, unpacked
from robandit.problems.problem import Problem
from robandit.validation import array, check_items, choice, integer, invalid, items_of, mapping


@guided
def recorded_problem(samples: Mapping[str, ArrayLike], minimize: bool = False) -> Problem:
    """Return a problem whose arms draw from recorded rewards, with replacement.

    Parameters
    ----------
    samples
        The rewards of each arm, by its name.
    minimize
        Whether they are costs, which are minimised; see `Problem`.

    Examples
    --------
    >>> problem = recorded_problem({"east": [3.0, 1.0], "west": [9.0, 0.0, 0.0]}, minimize=True)
    >>> problem.names, problem.means.tolist(), problem.best_arm
    (('east', 'west'), [2.0, 3.0], 0)
    """
    samples = mapping(samples, "samples", "a mapping from each arm's name to its rewards")
    laws = [Empirical(_rewards(rewards, f"samples[{formatted(arm)}]", 1)) for arm, rewards in samples.items()]
    return Problem(laws, list(samples), minimize)


@guided
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Replay(Problem):
    """A problem that returns recorded rewards in order, not independent draws from its laws."""

    rewards: Floats  # the record, one row per time; costs if they are minimised
    independent: ClassVar[bool] = False

    def _signed(self, values: Floats) -> Floats:
        """Return the rewards that policies learn from: recorded values, negated if they are minimised."""
        return 0.0 - values if self.minimize else values  # no negative zeros

    def at_start(self, replication: int, words: UInts) -> LawTable:
        """Return a copy of the table, which also holds the position of the replication in the record."""
        code, par, start, pool = self._table
        par = par.copy()
        par[0, columns.PLACE] = self._start(replication, words)
        return LawTable(code, par, start, pool)

    def starts(self, seed: int, replications: ArrayLike) -> Ints:
        """Return the row at which each replication starts, for the seed of `robandit.simulate`."""
        numbers = [int(number) for number in np.asarray(replications)]
        words = (streams(np.random.SeedSequence(seed, spawn_key=(number,)), 2)[1:] for number in numbers)
        return np.array([self._start(*each) for each in zip(numbers, words, strict=True)], dtype=np.int64)

    def _start(self, replication: int, words: UInts) -> int:
        # The remainder is not exactly uniform, but the bias is below rows / 2^64.
        return 0 if replication == 0 else int(words[0, 1]) % self.rows

    @property
    def rows(self) -> int:
        """The number of rows of the record."""
        return len(self.rewards)


@guided
@dataclass(frozen=True, init=False, eq=False, repr=False)
class InOrder(Replay):
    """A table of the reward of every arm at every time, played in order.

    Replication 0 plays row t at time t. The others start at a random row, which is drawn from their seed and is the same for all
    policies. After the last row they continue with the first. The horizon may not exceed the number of rows.

    Regret is realised regret: at each time, the reward of the arm with the best mean of the whole table minus the policy's
    reward. It can be negative, since a policy may follow changes. The law of an arm is the empirical law of its column.

    Parameters
    ----------
    rewards
        One row per time and one column per arm.
    names
        The arms' names, all different. Default: "0", "1", ...
    minimize
        Whether they are costs, which are minimised; see `Problem`.

    Examples
    --------
    >>> import robandit as rb
    >>> table = InOrder([[0.0, 1.0], [2.0, 1.0], [0.0, 4.0]], names=["a", "b"])
    >>> table.best_arm, table.means.tolist(), table.rows
    (1, [0.6666667, 2.0], 3)
    >>> rb.simulate(rb.Oracle(arm=0), table, 3, replications=1, seed=0, checkpoints=[1, 2, 3]).regret.tolist()
    [[[1.0, 0.0, 4.0]]]
    """

    def __init__(self, rewards: ArrayLike, names: Sequence[str] | None = None, minimize: bool = False) -> None:
        table = _rewards(rewards, "rewards", 2)
        super().__init__([Empirical(table[:, arm]) for arm in range(table.shape[1])], names, minimize)
        view = table.view()  # read-only for users; compiled code needs a writable array
        view.setflags(write=False)
        object.__setattr__(self, "_pool", self._signed(table.reshape(-1)))
        object.__setattr__(self, "rewards", view)

    def __repr__(self) -> str:
        if self.rewards.size > 32:
            return f"<InOrder: {self.rows} rows of {self.arms} arms>"
        return f"InOrder({self.rewards.tolist()!r}, names={list(self.names)!r}{', minimize=True' * self.minimize})"

    def __reduce__(self) -> tuple[Any, ...]:
        return InOrder, (self.rewards, self.names, self.minimize)

    @property
    def counted_gaps(self) -> Floats:
        """Zeros, because the sampler measures the regret (`robandit.laws.table.missed`)."""
        return np.zeros(self.arms)

    def check_horizon(self, horizon: int) -> None:
        """Raise `InvalidInput` if the horizon exceeds the table."""
        if integer(horizon, "horizon", 1) > self.rows:
            hint = "use a shorter horizon, or draw with replacement (robandit.problems.recorded_problem)"
            raise invalid("horizon", horizon, f"at most {self.rows}, the rows of the record", hint=hint)

    @cached_property
    def _table(self) -> LawTable:
        par = np.zeros((self.arms, columns.COLUMNS))
        par[:, [columns.LENGTH, columns.BEST]] = self.rows, self.best_arm
        return _law_table(columns.IN_ORDER, par, self.__dict__["_pool"])

    def to_dict(self) -> dict[str, Any]:
        """The replay as plain JSON data."""
        return {"replay": "InOrder", "rewards": packed(self.rewards.reshape(-1)), **self._labels()}


@guided
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Logged(Replay):
    """A log of choices and their rewards, replayed by rejection (Li, Chu, Langford and Wang 2011).

    A policy's choice waits for the next row of the log where this arm was played, and gets its reward. Rows in between are skipped.
    The policy chooses once and waits for a match, so that randomised policies play as usual. After the last row the log starts
    again. Replication 0 starts at the first row. The others start at a random row, which is drawn from their seed and is the same
    for all policies. Regret is pseudo-regret, with the gaps of the laws.

    The replay is unbiased if the logged choices did not depend on the rewards. If they depended on a context that also affects
    rewards, and their probabilities are known, pass these as ``propensities``. In each replication a row is then kept with
    probability (smallest propensity of its arm) / (its propensity), else skipped. In every context the next row then has this arm
    and is kept with the same probability, the arm's smallest propensity. The laws weight rewards accordingly, by 1 / propensity.

    Parameters
    ----------
    actions
        The arm of each row, an integer from 0. Every arm must have at least one row.
    rewards
        The reward of each row.
    names
        The arms' names, all different.
    propensities
        The probability with which each row's arm was chosen, in (0, 1]. None: all rows are kept.
    minimize
        Whether rewards are costs, which are minimised; see `Problem`.

    Examples
    --------
    >>> log = Logged(actions=[0, 1, 1, 0], rewards=[1.0, 5.0, 7.0, 3.0], names=["a", "b"])
    >>> log.means.tolist(), log.fewest
    ([2.0, 6.0], 2)
    """

    actions: Ints  # all three are read-only
    rewards: Floats
    propensities: Floats | None

    def __init__(
        self,
        actions: ArrayLike,
        rewards: ArrayLike,
        names: Sequence[str],
        propensities: ArrayLike | None = None,
        minimize: bool = False,
    ) -> None:
        names = items_of(names, "names", "strings, one for each arm")
        log_rewards = _rewards(rewards, "rewards", 1)
        arms = _actions(actions, len(log_rewards), names)
        chosen = None if propensities is None else _propensities(propensities, len(log_rewards))
        for name, values in (("actions", arms), ("rewards", log_rewards), ("propensities", chosen)):
            if values is not None:
                values.setflags(write=False)
            object.__setattr__(self, name, values)
        samples = ((log_rewards[rows], keep) for rows, keep in self._by_arm)
        super().__init__([Empirical(x) if keep is None else Weighted(x, keep) for x, keep in samples], names, minimize)

    @cached_property
    def _by_arm(self) -> list[tuple[Ints, Floats | None]]:
        """The increasing row numbers of each arm, and the probabilities of keeping them (None: all rows are kept)."""
        by_arm: list[tuple[Ints, Floats | None]] = []
        for rows in np.split(np.argsort(self.actions, kind="stable"), np.cumsum(np.bincount(self.actions))[:-1]):
            chosen = np.ones(1) if self.propensities is None else self.propensities[rows]
            keep = chosen.min() / chosen
            by_arm.append((rows, None if (keep == 1.0).all() else keep))
        return by_arm

    def __repr__(self) -> str:
        if len(self.rewards) > 32:
            suffix = "" if self.propensities is None else " with propensities"
            return f"<Logged: {self.rows} rows of {self.arms} arms{suffix}>"
        more = "" if self.propensities is None else f", propensities={self.propensities.tolist()!r}"
        more += ", minimize=True" * self.minimize
        return f"Logged({self.actions.tolist()!r}, {self.rewards.tolist()!r}, names={list(self.names)!r}{more})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Logged) or (self.names, self.minimize) != (other.names, other.minimize):
            return False
        names = ("actions", "rewards", "propensities")  # np.array_equal(None, None) is true
        return self is other or all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = Replay.__hash__  # hashes the laws: equal logs have equal laws

    def __reduce__(self) -> tuple[Any, ...]:
        return Logged, (self.actions, self.rewards, self.names, self.propensities, self.minimize)

    @property
    def fewest(self) -> int:
        """The expected number of kept rows of the rarest arm.

        If the arms are in random order, every policy is expected to need at most one pass through the log for a horizon of
        this length. A longer horizon uses rows again.
        """
        # If n_a of the n rows have arm a, a pull of a passes n / n_a rows on average. N_a pulls of each arm pass n times the sum
        # of N_a / n_a. That sum is at most (sum of N_a) / (smallest n_a): at most 1 if the horizon is at most the smallest n_a.
        kept = [len(rows) if keep is None else math.fsum(keep) for rows, keep in self._by_arm]
        return max(1, math.floor(min(kept)))

    @cached_property
    def _table(self) -> LawTable:
        par, pools, offset = np.zeros((self.arms, columns.COLUMNS)), [], 0
        for arm, (rows, keep) in enumerate(self._by_arm):
            parts = [rows.astype(np.float64), self._signed(self.rewards[rows]), *([] if keep is None else [keep])]
            par[arm, [columns.OFFSET, columns.LENGTH, columns.THINNED]] = offset, len(rows), keep is not None
            pools += parts
            offset += len(parts) * len(rows)
        return _law_table(columns.LOGGED, par, np.concatenate(pools))

    def to_dict(self) -> dict[str, Any]:
        """The replay as plain JSON data."""
        data = {"replay": "Logged", "actions": packed(self.actions, "int32"), "rewards": packed(self.rewards)}
        more = {} if self.propensities is None else {"propensities": packed(self.propensities)}
        return data | more | self._labels()


def replay_from_dict(data: Mapping[str, Any]) -> Replay:
    """Return the replay that ``to_dict`` wrote."""
    optional = {"InOrder": {"minimize"}, "Logged": {"propensities", "minimize"}}
    fields = {"InOrder": {"rewards", "names"}, "Logged": {"actions", "rewards", "names"}}
    kind = choice(data["replay"], "replay", fields)
    present = set(data) - {"replay"}
    if not fields[kind] <= present <= fields[kind] | optional[kind]:
        listed = excerpt(sorted(map(str, present))) or "nothing"
        raise InvalidInput(
            f"a replay {kind} has {', '.join(sorted(fields[kind] | optional[kind]))}; this one has {listed}"
        )
    rewards, minimize = unpacked(data["rewards"], "rewards"), data.get("minimize", False)
    if kind == "Logged":
        propensities = unpacked(data.get("propensities"), "propensities")
        return Logged(unpacked(data["actions"], "actions"), rewards, data["names"], propensities, minimize)
    names = items_of(data["names"], "names", "strings, one for each arm")
    flat = _rewards(rewards, "rewards", 1)
    if not names or flat.size % len(names):
        raise InvalidInput(f"{flat.size} rewards do not fill a table with one column for each of {len(names)} names")
    return InOrder(flat.reshape(-1, len(names)), names, minimize)


def _rewards(values: Any, name: str, dimensions: int) -> Floats:
    """Return a copy of recorded rewards, each finite and small enough to be played."""
    rewards = _copied(values, name)
    if rewards.ndim != dimensions or rewards.size == 0:
        rule = "one-dimensional, not empty"
        if dimensions == 2:
            rule = "a table with one row per time and one column per arm"
        raise invalid(name, values, f"{rule} (its shape is {rewards.shape})")
    accepted = playable(rewards)
    share = f"{np.count_nonzero(~accepted)} of {rewards.size} rewards break this rule"
    hint = f"{share}: drop such rows, or scale all rewards"
    rule = f"0 or a number whose size is from {SMALLEST_REWARD:g} to {LARGEST_REWARD:g}, because rewards are squared"
    check_items(rewards, accepted, name, rule, hint=hint)
    return rewards


def _actions(values: Any, rows: int, names: Sequence[str]) -> Ints:
    actions = _per_row(values, "actions", rows)
    accepted = (actions >= 0) & (actions < len(names)) & (actions == np.floor(actions))
    check_items(actions, accepted, "actions", f"the number of an arm, an integer from 0 to {len(names) - 1}")
    counts = np.bincount(actions.astype(np.int64), minlength=len(names))
    if not counts.all():
        raise InvalidInput(f"arm {names[int(counts.argmin())]!r} was never played in the log; leave it out of names")
    return actions.astype(np.int64)


def _propensities(values: Any, rows: int) -> Floats:
    propensities = _per_row(values, "propensities", rows)
    accepted = (propensities > 0.0) & (propensities <= 1.0)
    check_items(propensities, accepted, "propensities", "a probability > 0 and <= 1, since the choice was made")
    return propensities


def _per_row(values: Any, name: str, rows: int) -> Floats:
    numbers = _copied(values, name)
    if numbers.shape != (rows,):
        raise invalid(name, values, f"{rows} numbers, one for each reward (its shape is {numbers.shape})")
    return numbers


def _copied(values: Any, name: str) -> Floats:
    return np.array(array(values, name, hint="pass an array of numbers, all rows equally long"), order="C")


def _law_table(code: int, par: Floats, pool: Floats) -> LawTable:
    arms = len(par)
    par[:, columns.SCALE] = 1.0
    return LawTable(np.full(arms, code, dtype=np.int64), par, np.arange(arms + 1, dtype=np.int64), pool)
