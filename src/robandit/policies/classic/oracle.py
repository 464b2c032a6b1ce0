"""The oracle, which always plays one given arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from robandit.policies._parts.records import state_of
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.validation import integer


class Oracle(Policy):
    """Always plays one given arm, such as the problem's best: for tests and as a baseline.

    It is not for applications: if you know the best arm, you have no bandit problem.

    Parameters
    ----------
    arm
        The arm to pull, from 0. `informed_by` takes the problem's best.

    Guarantee
    ---------
    Regret 0, if it is given the best arm. Requires the best arm. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> policy = rb.Oracle().informed_by(problem)
    >>> policy
    Oracle(arm=1)
    >>> float(rb.simulate(policy, problem, horizon=1000, replications=2, seed=0).regret.max())
    0.0
    """

    arm: int | None = None

    uses_rewards = False
    use_when = "you test something: it always plays one given arm"
    about = Facts(
        knows=("arm",),
        bound="by definition",
        instance="0",
        worst="0",
        notes=("It is told the best arm: for tests and as a baseline.",),
    )

    def validate(self) -> None:
        if self.arm is not None:
            integer(self.arm, "arm", owner="Oracle")

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        return problem.best_arm if name == "arm" else super().learned(name, problem, eps)

    def init(self, arms: int, horizon: int | None) -> Any:
        integer(self.arm, "arm", 0, arms - 1, owner="Oracle", hint=f"there are {arms} arms, counted from 0")
        return state_of(arms=np.array([arms], dtype=np.int64))

    @staticmethod
    def select(p: Any, s: Any) -> int:
        return p.arm

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        """Learn nothing."""
