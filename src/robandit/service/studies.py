"""Diagnoses and estimates of experiments, in another thread: they take milliseconds to seconds, in which nothing could be answered.

A diagnosis is kept until there are new rewards, and a new one is made at most every `PAUSE` seconds.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from robandit.decisions.experiment import LiveExperiment
from robandit.diagnostics.diagnosis import Diagnosis, diagnose
from robandit.diagnostics.study import Mean, mean_of
from robandit.errors import Overloaded
from robandit.live.bandit import Bandit
from robandit.live.standing import Standing, standing

T = TypeVar("T")
PAUSE = 1.0
MOST_WAITING = 64


class ExperimentStudy(NamedTuple):
    """A diagnosis, and a mean of each arm, or its objective, with limits."""

    epoch: int
    """The number of resets at the time."""
    rewards: int
    """The number of rewards at the time."""
    made: float
    """When it was made, by the monotonic clock."""
    diagnosis: Diagnosis
    means: list[Mean]
    standing: Standing

    def heaviest(self) -> float:
        """Return the smallest tail index of the leading arm; infinity if its tails are light, NaN if they are not known."""
        tails = [tail for tail in (self.diagnosis.leading.left, self.diagnosis.leading.right) if tail is not None]
        known = [math.inf if tail.light else tail.index for tail in tails if tail.light or not math.isnan(tail.index)]
        return min(known, default=math.nan)


class Studies:
    """The newest study of each experiment."""

    def __init__(self) -> None:
        self._newest: weakref.WeakKeyDictionary[LiveExperiment, ExperimentStudy] = weakref.WeakKeyDictionary()
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        """Whoever asks for studies waits for their own."""

    def newest(self, experiment: LiveExperiment) -> ExperimentStudy | None:
        """Return the newest study since the last reset, however old, or None."""
        study = self._newest.get(experiment)
        return None if study is None or study.epoch != experiment.epoch else study

    async def refresh(self, who: str, experiments: Sequence[LiveExperiment], *, growth: float, patience: float) -> None:
        """Study experiments again whose rewards have grown. Wait at most ``patience`` seconds; the rest is done meanwhile."""
        if who not in self._refreshing or self._refreshing[who].done():
            self._refreshing[who] = asyncio.create_task(self._refresh(experiments, growth))
        await asyncio.wait({self._refreshing[who]}, timeout=patience)

    async def _refresh(self, experiments: Sequence[LiveExperiment], growth: float) -> None:
        for experiment in experiments:
            await self.study(experiment, growth=growth)

    async def study(self, experiment: LiveExperiment, *, growth: float = 0.0) -> ExperimentStudy | None:
        """Return a study of all rewards, or of the last ones if it is fresh or they have grown by less than ``growth`` since.

        Return None without rewards, or if the bandit is broken.
        """
        rewards = 0 if experiment.bandit.is_broken else experiment.bandit.counters()["rewards"]
        if not rewards:
            return None
        if self._is_good(experiment, rewards, growth):
            return self._newest[experiment]
        async with self._turn:
            if not self._is_good(experiment, rewards, growth):
                at = experiment.epoch, experiment.bandit.counters()["rewards"]
                bandit = experiment.bandit
                known = bandit.policy, at, bandit.objective, bandit.kept_rewards(), bandit.counted()
                self._newest[experiment] = await asyncio.to_thread(_studied, *known)
            return self._newest[experiment]

    async def standing(self, experiment: LiveExperiment) -> tuple[int, Standing]:
        """Return the number of rewards, and how the arms stand. Without rewards, that is said in words."""
        study = await self.study(experiment)
        if study is not None:
            return study.rewards, study.standing
        bandit = experiment.bandit
        async with self._turn:
            rewards, kept, counted = bandit.counters()["rewards"], bandit.kept_rewards(), bandit.counted()
            return rewards, await asyncio.to_thread(standing, *kept[:3], counted, bandit.policy, bandit.objective)

    async def estimates(self, saved: bytes) -> list[dict[str, Any]]:
        """Return the estimates of a saved bandit. Those of policies that resample take seconds."""
        return await self.look(saved, Bandit.estimates)

    async def look(self, saved: bytes, look: Callable[[Bandit], T]) -> T:
        """Return what a function sees of a saved bandit, in another thread."""
        if self._waiting >= MOST_WAITING:
            raise Overloaded(f"{self._waiting} estimates are waiting: try again in a second")
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(lambda: look(Bandit.from_bytes(saved)))
        finally:
            self._waiting -= 1

    def _is_good(self, experiment: LiveExperiment, rewards: int, growth: float) -> bool:
        newest = self.newest(experiment)
        if newest is None:
            return False
        age = time.monotonic() - newest.made
        return newest.rewards <= rewards <= newest.rewards * (1.0 + growth) or age < PAUSE


def _studied(policy: Any, at: tuple[int, int], objective: str, kept: Any, counted: Any) -> ExperimentStudy:
    arms, minimize, changes, values = kept
    means = [mean_of(arm, minimize=minimize) for arm in arms]
    stands = standing(arms, minimize, changes, counted, policy, objective, means)
    shown = [Mean.of(each) for each in values] or means
    return ExperimentStudy(*at, time.monotonic(), diagnose(policy, *kept), shown, stands)
