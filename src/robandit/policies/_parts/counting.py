"""What policies share that count pulls and rewards as index policies do, but choose by another rule."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from robandit.policies._parts.reward_store import stored_rewards
from robandit.policies.classic.uniform import allowed_arms
from robandit.policies.index import expire_pull, first_untried, take_pull


class Counting:
    """The hooks that count pulls."""

    respects_allowed: ClassVar[bool] = True
    take: ClassVar[Any] = staticmethod(take_pull)
    expire: ClassVar[Any] = staticmethod(expire_pull)


def wins_tie(s: Any, arm: int, other: int) -> bool:
    """Return whether the arm is chosen if both are equally good: that with fewer pulls, then the lower one."""
    return s.pulls[arm] < s.pulls[other] or (s.pulls[arm] == s.pulls[other] and arm < other)


def unknown_chance(p: Any, s: Any, arm: int) -> float:
    """Return the ``chance`` of a policy with stored rewards whose probabilities are not known: NaN, unless nothing is random."""
    forced = first_untried(stored_rewards, s, 1.0)
    if forced >= 0 or not s.allowed[arm]:
        return 1.0 if forced == arm else 0.0
    return math.nan if allowed_arms(s.allowed) > 1 else 1.0
