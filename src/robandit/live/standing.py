"""How the arms of a bandit stand: their means, their chances to be the best, and claims that hold however often they are read.

Three things are said, and no sentence mixes them:

- Chances describe the kept rewards: how often an arm has the best mean in draws that allow for heavy tails
  (`robandit.evaluation.cells`).
- A statement on capped means (`robandit.anytime.capped`): "b costs less than a (capped at 30), at 95 %, may be looked at any time".
- A statement on pairs (`robandit.anytime.evidence`): "b beats a in most pairs". It says nothing about means.

Both statements are about the active arms. One of K is claimed to be the best if all K - 1 values of evidence reach (K - 1) / 0.05:
for a set of arms that is chosen in advance, P(a wrong claim is ever made) <= 0.05. If rewards change with time, so do means, and
the statements are withdrawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robandit.anytime.capped import EDGES, log_lower
from robandit.anytime.evidence import Counted
from robandit.diagnostics.diagnosis import KeptRewards
from robandit.diagnostics.study import Mean, mean_of
from robandit.diagnostics.words import words
from robandit.drift.alarm import Alarm
from robandit.drift.watch import KEPT
from robandit.errors import formatted
from robandit.evaluation.cells import cell_mean
from robandit.kernel.types import Floats
from robandit.live.arms import ACTIVE
from robandit.objectives import MEAN, Objective, objective_from
from robandit.policies.base import Policy
from robandit.policies.floor.floor import Floor
from robandit.wording import compact, counted, listed, visible

ALPHA = 0.05
DRAWS = 2_000
SEED = 40  # of the draws: the same rewards give the same chances
FEW = 10  # rewards; with fewer, only "too few" is said
STARVED = 0.2  # of the leader's rewards; an arm with fewer needs a floor


class Leader(NamedTuple):
    """The arm with the greatest chance to be the best; None if there is none yet."""

    arm: Any
    chance: float
    sentence: str


class Statement(NamedTuple):
    """A claim that may be looked at any time, or the reason why there is none."""

    shown: bool
    arm: Any
    """The best arm, if that is shown."""
    sentence: str


@dataclass(frozen=True, kw_only=True)
class ArmStanding:
    """How one arm stands. A number that is not known is NaN, a missing limit infinite."""

    arm: Any
    state: str
    pulls: int
    """The number of rewards received."""
    mean: float
    """The trimmed mean of the kept rewards; with a deadline their mean."""
    low: float
    high: float
    chance: float
    """The chance to have the best mean (or objective) of the active arms; NaN for others, and with fewer than two rewards."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How the arms stand."""

    arms: tuple[ArmStanding, ...]
    leader: Leader
    statement: Statement | None
    """On capped means; None without a cap."""
    pairs: Statement | None
    """On pairs of rewards; None without a cap."""
    minimize: bool
    cap: float | None
    objective: str = MEAN.text
    """What the chances are about."""

    def __str__(self) -> str:
        """Return a line per arm, and the sentences."""
        of = "" if self.objective == MEAN.text else f" of the best {objective_from(self.objective).name}:"
        rows = [
            f"{formatted(each.arm)}: {counted(each.pulls, words(self.minimize).one)}, mean {compact(each.mean)} "
            f"({compact(each.low)} to {compact(each.high)}), chance{of} {chance_text(each.chance)}"
            for each in self.arms
        ]
        sentences = [each.sentence for each in (self.leader, self.statement, self.pairs) if each is not None]
        return "\n".join([*rows, *sentences])


def standing(
    kept: Sequence[KeptRewards],
    minimize: bool,
    alarms: Sequence[Alarm],
    evidence: Counted | None,
    policy: Policy,
    objective: str = MEAN.text,
    means: Sequence[Mean] | None = None,
) -> Standing:
    """Return how the arms stand. The arguments are copies of what a bandit knows, and the means, if they are known."""
    aim = objective_from(objective)
    active = [i for i, each in enumerate(kept) if each.state == ACTIVE]
    chances = _chances(kept, active, minimize, aim)
    if means is None:
        means = [mean_of(each, minimize=minimize) for each in kept]
    arms = tuple(
        ArmStanding(
            arm=each.arm,
            state=each.state,
            pulls=each.received,
            mean=mean.value,
            low=mean.low,
            high=mean.high,
            chance=chance,
        )
        for each, mean, chance in zip(kept, means, chances, strict=True)
    )
    statement = pairs = None
    if evidence is not None:
        claims = _Claims([each.arm for each in kept], active, minimize, evidence)
        withdrawn = _withdrawn([kept[i].arm for i in active], alarms)
        statement = withdrawn or claims.on_means(isinstance(policy, Floor))
        pairs = withdrawn or claims.on_pairs()
    leader = _leader(kept, active, chances, minimize, aim, statement)
    if policy.contextual and leader.arm is not None:
        text = f"{leader.sentence} Arms were chosen by features, so these are rewards of different kinds of decisions."
        leader = leader._replace(sentence=text)
    return Standing(
        arms=arms,
        leader=leader,
        statement=statement,
        pairs=pairs,
        minimize=minimize,
        cap=evidence and evidence.cap,
        objective=aim.text,
    )


def chance_text(chance: float) -> str:
    """Format a chance, which draws do not show to be exactly 0 or 1.

    >>> chance_text(0.934), chance_text(1.0), chance_text(0.0), chance_text(float("nan"))
    ('93 %', 'above 99.9 %', 'below 0.1 %', '–')
    """
    if math.isnan(chance):
        return "–"
    if not 0.001 <= chance <= 0.999:
        return "below 0.1 %" if chance < 0.5 else "above 99.9 %"
    return f"{100.0 * chance:.{0 if 0.01 <= chance <= 0.99 else 1}f} %"


def _chances(kept: Sequence[KeptRewards], active: Sequence[int], minimize: bool, aim: Objective) -> list[float]:
    """Return how often each arm is the best in draws. Arms that tie share."""
    compared = [i for i in active if len(kept[i].sample) > 1]
    chances = [math.nan] * len(kept)
    if len(compared) > 1:
        rngs = (np.random.default_rng([SEED, i]) for i in compared)
        drawn = np.array([_drawn(kept[i], aim, minimize, rng) for i, rng in zip(compared, rngs, strict=True)])
        best = drawn == (drawn.min(axis=0) if minimize or aim.limit is not None else drawn.max(axis=0))
        for i, chance in zip(compared, (best / best.sum(axis=0)).mean(axis=1).tolist(), strict=True):
            chances[i] = chance
    return chances


def _drawn(arm: KeptRewards, aim: Objective, minimize: bool, rng: np.random.Generator) -> Floats:
    """Return draws of the mean, the quantile (as the bootstrap has them), or the share beyond a limit (with Jeffreys' prior)."""
    sample = arm.sample
    n, failed = len(sample), np.count_nonzero(sample == arm.most)
    if aim.q is not None:
        return np.sort(sample)[np.minimum(rng.binomial(n, aim.q, DRAWS), n - 1)]
    if aim.limit is not None:
        beyond = np.count_nonzero(sample > aim.limit if minimize else sample < aim.limit)
        return rng.beta(beyond + 0.5, n - beyond + 0.5, DRAWS)
    if 0 < failed < n - 1:  # failures are no tail: they have one cost, and their share is drawn
        others = cell_mean(sample[sample < arm.most], count=DRAWS, rng=rng).draws
        return others + rng.beta(failed, n - failed, DRAWS) * (arm.most - others)
    return cell_mean(sample, count=DRAWS, rng=rng).draws


def _leader(
    kept: Sequence[KeptRewards],
    active: Sequence[int],
    chances: Sequence[float],
    minimize: bool,
    aim: Objective,
    statement: Statement | None,
) -> Leader:
    kind = words(minimize)
    unknown = [_name(kept[i].arm) for i in active if math.isnan(chances[i])]
    if len(active) < 2:
        alone = f"{_name(kept[active[0]].arm)} is the only active arm" if active else "No arm is active"
        return Leader(None, math.nan, f"{alone}: there is nothing to compare. Add or resume an arm.")
    if len(active) - len(unknown) < 2:
        return Leader(None, math.nan, f"No leader yet: {listed(unknown)} {_has(unknown)} fewer than two {kind.many}.")
    first = max(active, key=lambda i: -1.0 if math.isnan(chances[i]) else chances[i])
    best = kind.best if aim.limit is None else "lowest"
    rewards = sum(len(kept[i].sample) for i in active)
    text = f"{_name(kept[first].arm)} leads: its chance to have the {best} {aim.name} is {chance_text(chances[first])} "
    text += f"(this describes {counted(rewards, f'kept {kind.one}')}, and is no test)."
    if unknown:
        text += f" {listed(unknown)} {_has(unknown)} too few {kind.many} to compare."
    if statement is not None:
        said = statement.sentence
        text += f" {said}." if statement.shown else f" {said[0].upper()}{said[1:]}."  # a claim begins with a name
    return Leader(kept[first].arm, chances[first], text)


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _withdrawn(active: Sequence[Any], alarms: Sequence[Alarm]) -> Statement | None:
    unknown = alarms[-1] if len(alarms) >= KEPT else None  # older alarms are forgotten
    alarm = next((alarm for alarm in reversed(alarms) if alarm.arm in active), unknown)
    if alarm is None:
        return None
    return Statement(False, None, f"withdrawn, since {alarm}: begin anew to compare what is true now")


def _name(arm: Any) -> str:
    return visible(arm) if isinstance(arm, str) else formatted(arm)


class _Claims:
    """What the evidence says of the active arms."""

    def __init__(self, arms: Sequence[Any], active: Sequence[int], minimize: bool, evidence: Counted) -> None:
        self.names = [_name(arm) for arm in arms]
        self.arms, self.active, self.minimize, self.evidence = arms, active, minimize, evidence
        self.needed = math.log(max(len(active) - 1, 1) / ALPHA)

    def on_means(self, has_floor: bool) -> Statement:
        weights, active = self.evidence.weights, self.active
        counts = weights.sum(axis=1)
        known = [i for i in active if counts[i] >= FEW]
        best = min(known, key=lambda i: self._sign * float(weights[i] @ EDGES) / counts[i], default=-1)
        others = [i for i in active if i != best]
        if not others:
            return Statement(False, None, "there is nothing to compare")
        capped = f"(capped at {compact(self.evidence.cap)})"
        if best < 0:
            return Statement(False, None, f"too few pulls of {self._listed(others)} to say")
        open_ = [i for i, log in zip(others, self._better(best, weights[others]), strict=True) if log < self.needed]
        if not open_:
            verb = "costs less than" if self.minimize else "earns more than"
            claim = f"{self.names[best]} {verb} {self._listed(others)} {capped}"
            return Statement(True, self.arms[best], f"{claim}, at 95 %, may be looked at any time")
        rarely = [i for i in open_ if counts[i] < counts[best]]
        grown = weights[rarely] * (counts[best] / np.maximum(counts[rarely], 1.0))[:, None]
        shown = self._better(best, grown) >= self.needed if rarely else ()
        few = [i for i, would in zip(rarely, shown, strict=True) if would or counts[i] < FEW]
        if not few:
            return Statement(False, None, f"no difference of the means is shown yet {capped}")
        starved = not has_floor and any(counts[i] < STARVED * counts[best] for i in few)
        return Statement(
            False, None, f"too few pulls of {self._listed(few)} to say{': set a floor' if starved else ' yet'}"
        )

    def on_pairs(self) -> Statement:
        known = [i for i in self.active if len(self.evidence.first[i]) >= FEW]
        best = min(known, key=lambda i: self._sign * float(np.median(self.evidence.first[i])), default=-1)
        others = [i for i in self.active if i != best]
        evidence = [self._wins(best, i) for i in others] if best >= 0 else [-math.inf]
        if not others or min(evidence) < self.needed:
            return Statement(False, None, "pairs do not tell them apart")
        text = f"{self.names[best]} beats {self._listed(others)} in most pairs (confidence 95 %, however often checked)"
        return Statement(True, self.arms[best], text)

    @property
    def _sign(self) -> float:
        return 1.0 if self.minimize else -1.0

    def _better(self, best: int, others: Floats) -> Floats:
        one = self.evidence.weights[best][None]
        return log_lower(one, others) if self.minimize else log_lower(others, one)

    def _wins(self, one: int, other: int) -> float:
        return self.evidence.more_often(one, other) if self.minimize else self.evidence.more_often(other, one)

    def _listed(self, arms: Sequence[int]) -> str:
        return listed([self.names[i] for i in arms])
