"""The template of APE^2 and MR-APE: pull every arm once, then the arm with the largest randomly perturbed mean.

A subclass defines ``add(p, s, arm, reward)``, ``score(p, s, arm)`` (the perturbed mean, drawn from ``s.rng``), ``reach(p, s, arm)``
(the factor of the noise, displayed next to the mean in `Bandit.estimates`), and the law of the noise: ``exceeded``, ``above`` and
``edges`` of :mod:`robandit.policies.p_robust.winning_chance`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from robandit.kernel.types import Floats
from robandit.policies.index import (
    IndexHooks,
    count_tried,
    expire_pull,
    first_untried,
    select_by_score,
    take_pull,
)
from robandit.policies.p_robust.running_mean import COUNT, MEAN, PRobust
from robandit.policies.p_robust.winning_chance import winning_chance


def learn(add: Any, p: Any, s: Any, arm: int, reward: float) -> None:
    """Add a reward, and count the arm as tried at its first reward."""
    add(p, s, arm, reward)
    if s.arms[arm, COUNT] == 1.0:
        count_tried(s)


def chance_of_score(reach: Any, exceeded: Any, above: Any, edges: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability with which `select_by_score` returns the arm."""
    forced = first_untried(IndexHooks.rewards, s, 1.0)
    if forced >= 0 or not s.allowed[arm]:
        return 1.0 if forced == arm else 0.0
    return winning_chance(reach, exceeded, above, edges, p, s, arm)


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
    exceeded: ClassVar[Any]
    above: ClassVar[Any]
    edges: ClassVar[Any]
    select: ClassVar[Any]
    chance: ClassVar[Any]
    update: ClassVar[Any]
    estimate: ClassVar[Any]
    respects_allowed: ClassVar[bool] = True
    take: ClassVar[Any] = staticmethod(take_pull)
    expire: ClassVar[Any] = staticmethod(expire_pull)

    def __init_subclass__(cls) -> None:
        """Bind the subclass's hooks."""
        super().__init_subclass__()
        cls.select = staticmethod(partial(select_by_score, cls.score, IndexHooks.rewards))
        law = (cls.exceeded, cls.above, cls.edges)
        cls.chance = staticmethod(partial(chance_of_score, cls.reach, *law))
        cls.update = staticmethod(partial(learn, cls.add))
        cls.estimate = staticmethod(partial(describe_arm, cls.reach))
