"""What `Bandit.diagnose` says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robandit.diagnostics.assumption import Nonpositivity, judge
from robandit.diagnostics.recommend import ALPHA, Recommendation, advise
from robandit.diagnostics.record import POINTS, Record, leading_arm
from robandit.diagnostics.tails import TailIndex, tail_index
from robandit.kernel.types import Floats
from robandit.policies.base import Policy

__all__ = ["ArmDiagnosis", "Diagnosis", "advised", "diagnosed"]


@dataclass(frozen=True, kw_only=True)
class ArmDiagnosis:
    """What the rewards of an arm are like."""

    arm: Any
    pulls: int
    """Rewards received."""
    recorded: int
    """Those that the record has seen: fewer than ``pulls`` if the bandit comes from a file without one."""
    sampled: int
    """The size of the random sample that the rest is computed from."""
    zeros: float
    """The share of rewards that are 0, of all recorded ones; NaN without any."""
    median: float
    left: TailIndex | None
    """Tail index below the median, by the moment estimator; None without rewards."""
    right: TailIndex | None
    about_zero: Nonpositivity
    about_median: Nonpositivity
    symmetry: Nonpositivity
    """About the median, to both sides: what a symmetric law may not contradict."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a bandit's rewards are like, whether they contradict its policy's assumption, and which policy would suit them."""

    policy: Policy
    arms: tuple[ArmDiagnosis, ...]
    leading: ArmDiagnosis
    """The arm with the most rewards; the first of several."""
    assumption: str
    """What the policy's bound assumes; empty: nothing."""
    contradicted: bool | None
    """Whether the leading arm contradicts it; None if its rewards cannot tell, or nothing is assumed that is tested here."""
    advice: Recommendation

    def __str__(self) -> str:
        """For a terminal."""
        lead = self.leading
        head = ("arm", "rewards", "zeros", "median", "left tail", "right tail", "about 0", "about the median")
        rows = [_cells(row) for row in self.arms]
        widths = [max(len(head[j]), *(len(row[j]) for row in rows)) for j in range(len(head))]
        lines = [self._lines(head, widths), *(self._lines(row, widths) for row in rows), ""]
        lines.append(f"leading arm: {lead.arm!r} ({lead.pulls} rewards)")
        if lead.recorded < lead.pulls:
            lines.append(f"  the record began later: it has seen {lead.recorded} of them")
        lines.append(f"  truncated non-positivity {lead.about_zero}")
        lines.append(f"  truncated non-positivity {lead.about_median}")
        if POINTS.get(self.assumption) == "symmetric":
            lines.append(f"  symmetry {lead.symmetry}")
        lines.append(f"policy: {self.policy.name}")
        lines.append(f"  {self.words()}")
        lines.append(f"advice: {self.advice}")
        return "\n".join(lines)

    @staticmethod
    def _lines(cells: Sequence[str], widths: Sequence[int]) -> str:
        parts = [
            c.ljust(w) if j in (0, 4, 5, 6, 7) else c.rjust(w)
            for j, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    def words(self) -> str:
        """Whether the policy's assumption is contradicted, as a sentence."""
        if not self.assumption:
            return "it assumes nothing that rewards could contradict"
        if self.assumption not in POINTS:
            return f"it assumes: {self.assumption}; that is not tested here"
        if self.contradicted is None:
            return f"it assumes {self.assumption}: too few rewards of the leading arm to say"
        if self.contradicted:
            return f"it assumes {self.assumption}: CONTRADICTED by the leading arm"
        return f"it assumes {self.assumption}: not contradicted by the leading arm"


_SHORT = {"contradicted": "CONTRADICTED", "not contradicted": "ok", "too few values": "too few"}


def _cells(row: ArmDiagnosis) -> tuple[str, ...]:
    return (
        repr(row.arm),
        str(row.pulls),
        "-" if math.isnan(row.zeros) else f"{row.zeros:.1%}",
        "-" if math.isnan(row.median) else f"{row.median:.4g}",
        _short(row.left),
        _short(row.right),
        _SHORT[row.about_zero.verdict],
        _SHORT[row.about_median.verdict],
    )


def _short(tail: TailIndex | None) -> str:
    if tail is None or math.isnan(tail.index):
        return "unknown"
    return "not heavy" if tail.light else str(tail)


def diagnosed(policy: Policy, arms: Sequence[Any], received: Sequence[int], record: Record) -> Diagnosis:
    """A bandit's diagnosis from what it keeps."""
    seen = record.settled()
    rows = tuple(_row(arm, received[i], seen, i) for i, arm in enumerate(arms))
    lead = leading_arm(received)
    assumption = policy.facts.assumption.text
    contradicted = None
    if assumption in POINTS:
        row = rows[lead]
        about = {0.0: row.about_zero, "median": row.about_median, "symmetric": row.symmetry}[POINTS[assumption]]
        contradicted = None if about.verdict == "too few values" else not about
    return Diagnosis(
        policy=policy,
        arms=rows,
        leading=rows[lead],
        assumption=assumption,
        contradicted=contradicted,
        advice=advise(_samples(arms, seen), arms[lead], missed=received[lead] - seen.rewards[lead]),
    )


def _samples(arms: Sequence[Any], seen: Record) -> dict[Any, Floats]:
    return {arm: seen.sample(i) for i, arm in enumerate(arms)}


def _row(arm: Any, pulls: int, seen: Record, i: int) -> ArmDiagnosis:
    values = seen.sample(i)
    some = len(values) > 0
    return ArmDiagnosis(
        arm=arm,
        pulls=pulls,
        recorded=seen.rewards[i],
        sampled=len(values),
        zeros=seen.zeros[i] / seen.rewards[i] if some else math.nan,
        median=float(np.median(values)) if some else math.nan,
        left=tail_index(values, "left", "moment", about="median") if some else None,
        right=tail_index(values, "right", "moment", about="median") if some else None,
        about_zero=judge(values, 0.0, ALPHA),
        about_median=judge(values, "median", ALPHA),
        symmetry=judge(values, "symmetric", ALPHA),
    )


def advised(policy: Policy, arms: Sequence[Any], arm: int, found: Nonpositivity, record: Record) -> str:
    """What a live bandit warns of, once."""
    advice = advise(_samples(arms, record.settled()), arms[arm])
    return (
        f"{policy.name} assumes {policy.facts.assumption}, and the rewards of its leading arm {arms[arm]!r} contradict that "
        f"{found.point}: {found.evidence}. What is promised of it is void here.\n{advice}\n"
        "(Said once; bandit.diagnose() has the details.)"
    )
