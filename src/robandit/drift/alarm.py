"""A change that the detector noticed, in numbers and in words."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from robandit.drift.detector import (
    AGE,
    DELTA,
    DOWN,
    HIGH,
    LENGTH,
    LEVEL_UP,
    LOW,
    REFERENCE,
    RING,
    VALUE,
    fresh,
    recent,
    winner,
)
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats
from robandit.validation import column
from robandit.wording import compact, percent

GUARANTEE = f"the probability of any false alarm per arm is at most {percent(DELTA)} for any i.i.d. law"

Kind = Literal["level down", "level up", "low tail", "high tail"]
_FIRST_BETS: dict[Kind, int] = {"high tail": HIGH, "low tail": LOW, "level up": LEVEL_UP, "level down": DOWN}
_NEGATED: dict[Kind, Kind] = {
    "level down": "level up",
    "level up": "level down",
    "low tail": "high tail",
    "high tail": "low tail",
}


class Summary(msgspec.Struct, frozen=True):
    """Quantiles and mean of a sample of rewards."""

    low: float  # the 5 % quantile
    median: float
    high: float  # the 95 % quantile
    mean: float

    @classmethod
    def of(cls, rewards: Floats) -> Summary:
        """Return the summary of a sample with at least one reward."""
        rewards = column(rewards, "rewards", LARGEST_REWARD)
        low, median, high = np.quantile(rewards, [0.05, 0.5, 0.95]).tolist()
        return cls(low, median, high, float(rewards.mean()))

    def negated(self) -> Summary:
        """Return the summary of the negated sample."""
        return Summary(-self.high, -self.median, -self.low, -self.mean)


class Alarm(msgspec.Struct, frozen=True):
    """A change of the law of an arm's rewards.

    >>> before, after = Summary(low=80.0, median=120.0, high=200.0, mean=130.0), Summary(240.0, 310.0, 400.0, 315.0)
    >>> print(Alarm("eu", changed=10_412, noticed=10_430, kind="level up", before=before, after=after))
    arm 'eu' changed around its reward 10,412: median 120 -> 310 (noticed at reward 10,430)
    """

    arm: Any
    changed: int
    """Number of the first reward after the change, as estimated: the start of the winning bet's excursion. Rewards are counted from
    1 over the whole life of the arm."""
    noticed: int
    """Number of the reward that raised the alarm."""
    kind: Kind
    """What the winning bet was on: all rewards moved, or one tail grew."""
    before: Summary
    """Of at most 256 rewards before the change, as ``after`` is of those since."""
    after: Summary

    @classmethod
    def raised(cls, d: Floats, arm: int, skipped: int = 0) -> Alarm:
        """Return the alarm that the detector just raised; call it before `restarted`. ``skipped`` rewards came before its first."""
        bet, since = winner(d, arm), fresh(d, arm)
        age, length = int(d[arm, AGE]), int(d[arm, LENGTH])
        newest = np.array([recent(d, arm, back) for back in range(min(length, RING))])  # the newest first
        if since >= length > 1:  # the excursion began with the segment, so it does not say where the change was
            since = _since_change(newest)
        before = newest[since:]
        if length - since >= REFERENCE or not len(before):
            before = d[arm, VALUE : VALUE + min(length, REFERENCE)]
        kind = next(kind for kind, first in _FIRST_BETS.items() if bet >= first)
        noticed = age + skipped
        return cls(arm, noticed - since + 1, noticed, kind, Summary.of(before), Summary.of(newest[:since]))

    def named(self, arm: Any) -> Alarm:
        """Return the alarm with this name of its arm."""
        return msgspec.structs.replace(self, arm=arm)

    def negated(self) -> Alarm:
        """Return the alarm for negated rewards, for example costs."""
        return msgspec.structs.replace(
            self, kind=_NEGATED[self.kind], before=self.before.negated(), after=self.after.negated()
        )

    def __str__(self) -> str:
        """Return a sentence."""
        what = f"changed around its reward {self.changed:,}: {difference(self.kind, self.before, self.after)}"
        return f"arm {self.arm!r} {what} (noticed at reward {self.noticed:,})"


def difference(kind: Kind, before: Summary, after: Summary, verb: str = "grew") -> str:
    """Return what is different, in numbers that differ when they are rounded, if there are any. ``verb`` is about a tail."""
    head, label, old, new = {
        "level down": ("", "median", before.median, after.median),
        "level up": ("", "median", before.median, after.median),
        "low tail": (f"its low tail {verb}, ", "5 % quantile", before.low, after.low),
        "high tail": (f"its high tail {verb}, ", "95 % quantile", before.high, after.high),
    }[kind]
    if compact(old) == compact(new):
        label, old, new = "mean", before.mean, after.mean
    return f"{head}{label} {compact(old)} -> {compact(new)}"


def _since_change(newest: Floats) -> int:
    """Return the number of rewards since the likeliest change: the split that separates low from high ranks best."""
    count = len(newest)
    ranks = np.argsort(np.argsort(newest, kind="stable"), kind="stable") - 0.5 * (count - 1)
    since = np.arange(1, count)
    return int(since[np.argmax(np.abs(np.cumsum(ranks)[:-1]) / np.sqrt(since * (count - since)))])
