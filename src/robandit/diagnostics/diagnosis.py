"""The result of `Bandit.diagnose`, and the text of a live bandit's warning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from robandit.diagnostics.assumption import Nonpositivity
from robandit.diagnostics.costs import QUESTION, sign_question
from robandit.diagnostics.profile import Profile
from robandit.diagnostics.recommend import Recommendation, advise
from robandit.diagnostics.tails import TailIndex
from robandit.diagnostics.words import assumed, words
from robandit.drift.alarm import GUARANTEE, Alarm
from robandit.errors import formatted
from robandit.kernel.types import Floats
from robandit.notebook import preformatted
from robandit.objectives import ObjectiveValue
from robandit.policies.assumptions import NOTHING, Assumption
from robandit.policies.base import Policy
from robandit.wording import counted


class KeptRewards(NamedTuple):
    """A live bandit's record of the rewards of one arm; costs, in their own sign, if it minimises."""

    arm: Any
    received: int
    recorded: int
    zeros: int  # number of zeros among the recorded rewards
    sample: Floats
    state: str = "active"
    most: float = math.inf  # the greatest possible cost: that of a failure, if there is a deadline


@dataclass(frozen=True)
class ArmDiagnosis:
    """The diagnosis of one arm's rewards."""

    arm: Any
    pulls: int
    recorded: int
    """The number of recorded rewards, below ``pulls`` if the bandit was loaded from a file without a record."""
    sampled: int
    """The size of the random sample from which the other numbers are computed."""
    zeros: float
    """The share of zeros; NaN without rewards."""
    median: float
    left: TailIndex | None
    """Tail index below the median, with an interval that allows for bias (``method="gpd"``); None without rewards."""
    right: TailIndex | None
    about_zero: Nonpositivity
    about_median: Nonpositivity
    symmetry: Nonpositivity
    """The test of symmetry about the median."""
    state: str = "active"
    """``"active"``, ``"paused"`` or ``"retired"``."""

    def __repr__(self) -> str:
        return f"<ArmDiagnosis {self.arm!r}: {self.pulls:,} values, median {self.median:g}>"


@dataclass(frozen=True)
class Diagnosis:
    """A description of a bandit's rewards, the test of its policy's assumption, and the policy recommended for them."""

    policy: Policy
    arms: tuple[ArmDiagnosis, ...]
    leading: ArmDiagnosis
    """The arm with the most rewards that is not retired; the first one in a tie."""
    assumption: Assumption
    """The assumption of the policy's bound; empty if there is none."""
    contradicted: bool | None
    """Whether the leading arm's rewards contradict the assumption; None if they are too few, or no test exists."""
    advice: Recommendation
    minimize: bool = False  # costs: all numbers have their sign; the assumption is tested on minus the costs
    changes: tuple[Alarm, ...] = ()
    """The newest alarms of the drift detector, with the names of the arms, the oldest first."""
    values: tuple[ObjectiveValue, ...] = ()
    """The value of each arm, if the objective is not the mean."""

    def __str__(self) -> str:
        """Return the question whether these are costs, a table of the arms, the changes, the tests, and the advice."""
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        question = [self.advice.question, ""] if self.advice.question else []
        table = [_aligned(row, widths) for row in rows]
        advice = replace(self.advice, question="")
        return "\n".join([*question, *table, "", *self.remarks(), f"{self.advised}: {advice}"])

    def __repr__(self) -> str:
        return f"<Diagnosis: {counted(len(self.arms), 'arm')}, leading arm {self.leading.arm!r}; take {self.advice.policy.name}>"

    def _repr_html_(self) -> str:
        """Return what a notebook displays."""
        return preformatted(str(self))

    @property
    def advised(self) -> str:
        """The title of the advice."""
        return "advice for the mean, which is not the objective" if self.values else "advice"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table of the arms as texts, below its head."""
        return [_head(words(self.minimize).many), *(_cells(row) for row in self.arms)]

    def remarks(self) -> list[str]:
        """Return the lines between the table and the advice: the changes, and the tests of the leading arm."""
        lead = self.leading
        kind = words(self.minimize)
        lines = ["costs, minimised"] * self.minimize
        if len(self.arms) == 1:
            lines.append(f"There is one arm only, {formatted(lead.arm)}: nothing is decided yet. Add a second arm.")
        lines += map(str, self.values)
        if self.changes:
            lines += [f"changes ({GUARANTEE}):", *(f"  {change}" for change in self.changes)]
        lines.append(f"leading arm: {lead.arm!r} ({lead.pulls} {kind.many})")
        if lead.recorded < lead.pulls:
            lines.append(f"  recording began later: {lead.recorded} of them are on record")
        lines += [f"  {kind.assumption} {test}" for test in (lead.about_zero, lead.about_median)]
        if self.assumption.point == "symmetric":
            lines.append(f"  symmetry {lead.symmetry}")
        return [*lines, f"policy: {self.policy.name}", f"  {self.words()}"]

    def words(self) -> str:
        """Return a sentence on whether the policy's assumption is contradicted."""
        many, assumption = words(self.minimize).many, assumed(self.assumption, self.minimize)
        if not self.assumption and not self.policy.facts.bound:
            return "no bound on its regret is proved, so there is no assumption to test"
        if not self.assumption:
            return f"it assumes nothing that {many} could contradict"
        if self.assumption.point is None:
            return f"it assumes: {assumption}; that is not tested here"
        if self.contradicted is None:
            return f"it assumes {assumption}: too few {many} of the leading arm to tell"
        verdict = "CONTRADICTED" if self.contradicted else "not contradicted"
        return f"it assumes {assumption}: {verdict} by the leading arm"


_RIGHT_ALIGNED = (1, 2, 3)  # columns with numbers
_SHORT = {"contradicted": "CONTRADICTED", "not contradicted": "ok", "too few values": "too few"}


def _head(values: str) -> tuple[str, ...]:
    return ("arm", values, "zeros", "median", "left tail", "right tail", "about 0", "about the median")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = enumerate(zip(cells, widths, strict=True))
    return "  ".join(c.rjust(w) if i in _RIGHT_ALIGNED else c.ljust(w) for i, (c, w) in columns).rstrip()


def _cells(row: ArmDiagnosis) -> tuple[str, ...]:
    shares = ("-", "-") if math.isnan(row.median) else (f"{row.zeros:.1%}", f"{row.median:.4g}")
    verdicts = (_SHORT[row.about_zero.verdict], _SHORT[row.about_median.verdict])
    name = repr(row.arm) if row.state == "active" else f"{row.arm!r} ({row.state})"
    return name, str(row.pulls), *shares, _short(row.left), _short(row.right), *verdicts


def _short(tail: TailIndex | None) -> str:
    if tail is None or math.isnan(tail.index):
        return "unknown"
    return "not heavy" if tail.light else str(tail)


def leading_arm(received: Sequence[int]) -> int:
    """Return the arm with the most rewards; the first one in a tie."""
    return max(range(len(received)), key=received.__getitem__)


def diagnose(
    policy: Policy,
    kept: Sequence[KeptRewards],
    minimize: bool = False,
    changes: Sequence[Alarm] = (),
    values: Sequence[ObjectiveValue] = (),
) -> Diagnosis:
    """Return the diagnosis of a bandit with this policy, these records of its arms (rewards, or costs to minimise) and changes.

    ``values`` are those of an objective that is not the mean. Assumptions about rewards are then not tested.
    """
    profiles = {each.arm: Profile(each.sample, minimize) for each in kept}
    rows = tuple(_arm_diagnosis(each, profiles[each.arm]) for each in kept)
    lead = rows[leading_arm([each.received if each.state != "retired" else -1 for each in kept])]
    assumption = NOTHING if values else policy.facts.assumption
    contradicted = None
    if assumption.point is not None:
        test = {0.0: lead.about_zero, "median": lead.about_median, "symmetric": lead.symmetry}[assumption.point]
        contradicted = None if test.verdict == "too few values" else not test
    advice = replace(
        advise(profiles, lead.arm, missed=lead.pulls - lead.recorded), question=sign_question(profiles.values())
    )
    return Diagnosis(policy, rows, lead, assumption, contradicted, advice, minimize, tuple(changes), tuple(values))


def _arm_diagnosis(kept: KeptRewards, profile: Profile) -> ArmDiagnosis:
    sampled = len(kept.sample)
    left, right = (profile.tail(side) if sampled else None for side in ("left", "right"))
    zeros = kept.zeros / kept.recorded if sampled else math.nan
    tests = (profile.about_zero, profile.about_median, profile.symmetry)
    return ArmDiagnosis(
        kept.arm, kept.received, kept.recorded, sampled, zeros, profile.median, left, right, *tests, kept.state
    )


ONCE = "(This warning is issued once per bandit; bandit.diagnose() has the details.)"


def warning_text(
    policy: Policy, kept: Sequence[KeptRewards], arm: Any, contradiction: Nonpositivity | None, minimize: bool = False
) -> str:
    """Return the text of the warning that rewards (or costs) of the leading arm contradict the policy's assumption.

    It begins with the question whether the rewards are costs, if they look like costs. Without a contradiction, it only asks.
    """
    profiles = {each.arm: Profile(each.sample, minimize) for each in kept}
    if contradiction is None:
        return f"{QUESTION}\n{ONCE}"
    advice, question = advise(profiles, arm), sign_question(profiles.values())
    assumption, many = assumed(policy.facts.assumption, minimize), words(minimize).many
    effect = (
        "The policy's guarantee does not hold here" if policy.facts.bound else "The policy may stay with a worse arm"
    )
    first = f"{question}\n" if question else ""
    return (
        f"{first}{policy.name} assumes {assumption}, and the {many} of its leading arm {arm!r} contradict that "
        f"{contradiction.point}: {contradiction.evidence}. {effect}.\n{advice}\n"
        f"{ONCE}"
    )


def drift_warning_text(alarm: Alarm) -> str:
    """Return the text of the warning that an arm changed; ``alarm`` has the name of the arm and the user's sign."""
    hint = "bandit.diagnose() lists the newest changes"
    return f"{alarm}.\n(If nothing changes, {GUARANTEE}; clustered rewards may raise more. {hint}.)"
