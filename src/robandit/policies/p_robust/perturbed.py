"""The template of APE^2 and MR-APE: pull every arm once, then the arm with the largest randomly perturbed mean.

A subclass defines ``add(p, s, arm, reward)``, ``score(p, s, arm)`` (the perturbed mean, drawn from ``s.rng``) and ``reach(p, s,
arm)`` (the number next to the mean in `Bandit.estimates`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from robandit.kernel.types import Floats
from robandit.policies.index import IndexHooks, count_tried, expire_pull, select_by_score, take_pull
from robandit.policies.p_robust.running_mean import COUNT, MEAN, PRobust


def learn(add: Any, p: Any, s: Any, arm: int, reward: float) -> None:
    """Add a reward, and count the arm as tried at its first reward."""
    add(p, s, arm, reward)
    if s.arms[arm, COUNT] == 1.0:
        count_tried(s)


def describe_arm(reach: Any, p: Any, s: Any, arm: int, out: Floats) -> None:
    """Fill in the mean and the reach. They are NaN and infinity before the first reward."""
    out[0] = math.nan
    out[1] = math.inf
    if s.arms[arm, COUNT] > 0.0:
        out[0] = s.arms[arm, MEAN]
        out[1] = reach(p, s, arm)


class Perturbed(PRobust):
    """The hooks that are derived from the methods of a subclass (see the module)."""

    add: ClassVar[Any]
    score: ClassVar[Any]
    reach: ClassVar[Any]
    select: ClassVar[Any]
    update: ClassVar[Any]
    estimate: ClassVar[Any]
    respects_allowed: ClassVar[bool] = True
    take: ClassVar[Any] = staticmethod(take_pull)
    expire: ClassVar[Any] = staticmethod(expire_pull)

    def __init_subclass__(cls) -> None:
        """Bind the subclass's hooks."""
        super().__init_subclass__()
        cls.select = staticmethod(partial(select_by_score, cls.score, IndexHooks.rewards))
        cls.update = staticmethod(partial(learn, cls.add))
        cls.estimate = staticmethod(partial(describe_arm, cls.reach))
