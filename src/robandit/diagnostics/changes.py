"""Whether recorded rewards changed with time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robandit.diagnostics.samples import sample
from robandit.drift.record import Change, changed_arms
from robandit.errors import formatted
from robandit.validation import mapping, probability


def changes(rewards: Mapping[Any, Any], level: float = 0.05) -> tuple[Change, ...]:
    """Return the arms whose rewards changed during the record, with the place of the largest change of each.

    If no arm changed, any is returned with probability at most ``level``: for rewards of any law that are independent, or depend
    only on rewards at most about sqrt(n) before. Arms with fewer than 100 rewards are not tested.
    See :doc:`/explanation/drift`.

    Parameters
    ----------
    rewards
        The rewards of each arm in order of time.
    level
        The probability of a false result, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stable, moved = rng.lognormal(size=1_000), rng.lognormal(np.repeat([0.0, 1.0], 500))
    >>> print(*changes({"stable": stable, "moved": moved}), sep="\\n")
    arm 'moved' changed around its reward 501 of 1,000: median 1.132 -> 2.548 (p = 0.002)
    """
    given = mapping(rewards, "rewards", "a mapping from each arm to its rewards in order of time")
    samples = {arm: sample(x, f"rewards[{formatted(arm)}]") for arm, x in given.items()}
    return changed_arms(samples, probability(level, "level"))
