"""Restarting: a policy that forgets old rewards when it notices a change."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from robandit.drift.detector import AGE, DELTA, RING, fresh, recent
from robandit.kernel.types import Floats
from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.drift import schedule
from robandit.policies.drift.probing import Probing
from robandit.policies.drift.wrapping import Following
from robandit.policies.facts import Facts
from robandit.validation import within

KEEP = 8  # rewards that the other arms keep


class Restarting(Following, Policy):
    """Another policy with probes and restarts: it forgets old rewards when a detector notices that an arm's law changed.

    Use it if laws change abruptly, rarely and for good. On an alarm of :mod:`robandit.drift.detector` the other policy starts anew:
    it learns again the rewards of the alarmed arm since the estimated change (at most 256) and the last 8 rewards of every other
    arm, and each other arm is probed once. Do not use it if rewards only fluctuate, such as with the hour of the day: on recorded
    tables it lost (docs/results/drift.md). Probes are those of `Probing`, with t counted from the last restart.

    Parameters
    ----------
    of
        The policy that makes all other choices. Policies that weight rewards by the probability of their choice are rejected.
    rate
        The rate of probes, in [0, 1]; 0 for none.
    delta
        The probability of a false alarm, per arm and segment, for independent rewards whose law does not change.

    Guarantee
    ---------
    The probability of a false alarm is at most ``delta`` per arm and segment, for every law. No regret bound is proved.

    Examples
    --------
    >>> import robandit as rb
    >>> base = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> problem = rb.problems.changing("fall", base, at=10_000)
    >>> result = rb.simulate([rb.Restarting(rb.UCB1()), rb.UCB1()], problem, horizon=20_000, replications=10, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [3282, 8547]

    References
    ----------
    Ours. After L. Besson, E. Kaufmann, O.-A. Maillard, J. Seznec. Efficient change-point detection for tackling
    piecewise-stationary bandits. JMLR 23, 2022 (detection, forced exploration, restarts), with another detector: J. Shin, A.
    Ramdas, A. Rinaldo. E-detectors: a nonparametric framework for sequential change detection. NEJSDS 2, 2024, on conformal ranks.
    """

    of: Any = dataclasses.field(default=DEFAULT, kw_only=False)
    rate: float = 0.1
    delta: float = DELTA

    suffix: ClassVar[str] = "with restarts"
    use_when = "laws change abruptly, rarely and for good"
    about = Facts(citation=Probing.about.citation, notes=Probing.about.notes)

    def validate(self) -> None:
        super().validate()
        within(self.delta, "delta", 0.0, 1.0, open_low=True, owner="Restarting")

    def react(self, state: Any, alarmed: int) -> Any:
        book, arms = state.drift_book, state.drift_arms
        stream = state.rng if "rng" in state._fields else np.zeros(4, dtype=np.uint64)
        inner = self.of.start(len(arms), int(book[schedule.HORIZON]) or None, stream)
        inner.unrewarded[-1] = state.unrewarded[-1]
        keep = [KEEP] * len(arms)
        keep[alarmed] = fresh(state.drift_watch, alarmed)
        for arm in [*(i for i in range(len(arms)) if i != alarmed), alarmed]:
            inner = self._taught(inner, arm, newest(state.drift_watch, arm, keep[arm]))
        if not state.allowed.all():
            self.of.set_allowed(inner, state.allowed)
        arms[:, schedule.LAST] = schedule.LONG_AGO
        arms[alarmed, schedule.LAST] = book[schedule.CLOCK]
        arms[:, schedule.PROBED] = 0
        book[[schedule.SINCE, schedule.CHECK]] = book[schedule.CLOCK], 0.0
        book[schedule.FORCED] = -1.0
        book[schedule.RESTARTS] += 1.0
        return state._replace(**inner._asdict())

    def _taught(self, inner: Any, arm: int, rewards: list[float]) -> Any:
        """Return the state of the other policy after it learned these rewards of an arm. Its hooks run as plain Python."""
        take, update, full = self.of.hooks("take", "update", "full")
        p = self.of.params()
        with np.errstate(over="ignore"):  # the random generator's integers wrap around
            for reward in rewards:
                update(p, inner, arm, reward, take(p, inner, arm))
                if full(p, inner):
                    inner = self.of.grown(inner)
        return inner


def newest(d: Floats, arm: int, most: int) -> list[float]:
    """Return the newest rewards of an arm, oldest first: at most ``most``, and at most those that the detector keeps."""
    count = min(most, RING, int(d[arm, AGE]))
    return [float(recent(d, arm, back)) for back in range(count - 1, -1, -1)]
