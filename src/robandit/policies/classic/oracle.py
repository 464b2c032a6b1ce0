"""The arm that is told."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Ints
from robandit.policies.base import Policy
from robandit.policies.facts import Facts

__all__ = ["Oracle"]


class Params(NamedTuple):
    """The arm."""

    arm: int


class State(NamedTuple):
    """The number of arms."""

    arms: Ints


class Oracle(Policy):
    """Always the arm that it was told, by default the problem's best: for tests and as a yardstick.

    Not a policy to use: who knows the best arm has no bandit problem.

    Parameters
    ----------
    arm
        The arm to pull, from 0. `informed_by` takes the problem's best.

    Guarantee
    ---------
    Regret 0, if it was told the best arm. Must know: that. Anytime, not random.

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
    about = Facts(
        knows=("arm",),
        bound="by definition",
        instance="0",
        worst="0",
        title="Oracle",
        notes=("It is told the best arm: for tests and as a yardstick.",),
    )

    def validate(self) -> None:
        """The arm is a whole number, or not told yet."""
        if self.arm is None:
            return
        if not isinstance(self.arm, int) or isinstance(self.arm, bool) or self.arm < 0:
            raise InvalidInput(f"Oracle: arm = {self.arm!r} must be a whole number >= 0")

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """The problem's best arm."""
        return problem.best_arm if name == "arm" else super().learned(name, problem, eps)

    def params(self) -> Params:
        """The arm."""
        assert self.arm is not None
        return Params(self.arm)

    def init(self, arms: int, horizon: int | None) -> State:
        """Check that the arm exists."""
        assert self.arm is not None
        if self.arm >= arms:
            raise InvalidInput(f"Oracle: arm = {self.arm} must be below {arms}, the number of arms: they count from 0")
        return State(np.array([arms], dtype=np.int64))

    @staticmethod
    def select(p: Params, s: State) -> int:
        """The arm."""
        return p.arm

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Nothing is learned."""
