"""The order in which outcomes may enter an e-process: that of the decisions.

Outcomes that enter in the order in which they arrive are biased: of the newest decisions, only the quick ones are known. If quick
outcomes are the bad ones, then a test in the order of arrival rejects every arm. So an outcome waits until all earlier decisions of
its arm are resolved.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Self

MOST_WAITING = 10_000
"""Decisions of an arm from its oldest open one on. One more gives up the oldest."""


class _Line:
    """The decisions of an arm from the oldest open one on, by number. It is empty if none is open."""

    __slots__ = ("known", "made", "open")

    def __init__(self) -> None:
        self.open: OrderedDict[Hashable, int] = OrderedDict()
        self.known: dict[int, Any] = {}
        self.made = 0

    def released(self, since: int) -> list[Any]:
        """Remove and return the outcomes from ``since`` up to the oldest open decision."""
        end = next(iter(self.open.values()), self.made)
        return [self.known.pop(number) for number in range(since, end)]


class ResolvedPrefix:
    """Returns outcomes of each arm in the order of its decisions, as soon as all earlier decisions of the arm are resolved.

    An outcome is any plain value; None stands for nothing, and is never returned. If ``most`` decisions of an arm wait for one
    that stays open, that one is given up: its outcome is ``lost``, and what comes later for it is ignored. Choose a value that
    cannot favour the claim, or None, which treats it as if it had never been made.

    >>> prefix = ResolvedPrefix(arms=1)
    >>> for id in (1, 2, 3):
    ...     prefix.decided(0, id)
    []
    []
    []
    >>> prefix.resolved(0, 2, 0.5)
    []
    >>> prefix.resolved(0, 1, 0.25)
    [0.25, 0.5]
    """

    __slots__ = ("_lines", "lost", "most")

    def __init__(self, arms: int, *, most: int = MOST_WAITING, lost: Any = None) -> None:
        """Start without decisions."""
        self._lines = [_Line() for _ in range(arms)]
        self.most = most
        self.lost = lost

    def add_arm(self) -> None:
        """Add an arm without decisions."""
        self._lines.append(_Line())

    def restart(self, arm: int) -> None:
        """Forget the decisions of an arm: their outcomes will be ignored."""
        self._lines[arm] = _Line()

    def decided(self, arm: int, id: Hashable) -> list[Any]:
        """Add a decision. Return outcomes that waited for one that is given up now."""
        line = self._lines[arm]
        line.open[id] = line.made
        line.made += 1
        oldest = next(iter(line.open))
        return self.resolved(arm, oldest, self.lost) if line.made - line.open[oldest] > self.most else []

    def resolved(self, arm: int, id: Hashable, outcome: Any) -> list[Any]:
        """Take the outcome of a decision, and return those that are next in order. Unknown ids are ignored."""
        line = self._lines[arm]
        number = line.open.get(id)
        if number is None:
            return []
        was_oldest = next(iter(line.open)) == id
        del line.open[id]
        line.known[number] = outcome
        return [value for value in line.released(number) if value is not None] if was_oldest else []

    def observed(self, arm: int, outcome: Any) -> list[Any]:
        """Take the outcome of a pull that is known at once, and return those that are next in order."""
        line = self._lines[arm]
        if not line.open:
            return [] if outcome is None else [outcome]
        given_up = self.decided(arm, None)
        return given_up + self.resolved(arm, None, outcome)

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self) -> list[list[tuple[bool, Any]]]:
        """Return plain data: for each arm its decisions in order, as (True, id) if open, else (False, outcome)."""
        saved = []
        for line in self._lines:
            ids = {number: id for id, number in line.open.items()}
            first = min(ids, default=line.made)
            rows = range(first, line.made)
            saved.append([(True, ids[number]) if number in ids else (False, line.known[number]) for number in rows])
        return saved

    @classmethod
    def load(
        cls, saved: Sequence[Sequence[tuple[bool, Any]]], *, most: int = MOST_WAITING, lost: Any = None
    ) -> Self | None:
        """Return what `save` wrote, or None if it is inconsistent."""
        prefix = cls(len(saved), most=most, lost=lost)
        for line, rows in zip(prefix._lines, saved, strict=True):
            for is_open, item in rows:
                if is_open:
                    line.open[item] = line.made
                else:
                    line.known[line.made] = item
                line.made += 1
            if len(line.open) + len(line.known) != line.made or line.made > most or (rows and not rows[0][0]):
                return None
        return prefix
