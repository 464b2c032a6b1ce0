"""A policy of a user, in the golden run folder. Its source is recorded there: do not edit it."""

from typing import Any, NamedTuple

import numpy as np

import robandit as rb


class Last(NamedTuple):
    rewards: Any


class LastBest(rb.Policy):
    """Pull the arm with the largest last reward."""

    initial: float = 1.0

    def init(self, arms: int, horizon: int | None) -> Last:
        return Last(np.full(arms, self.initial))

    @staticmethod
    def select(p: Any, s: Last) -> int:
        return int(np.argmax(s.rewards))

    @staticmethod
    def update(p: Any, s: Last, arm: int, reward: float) -> None:
        s.rewards[arm] = reward
