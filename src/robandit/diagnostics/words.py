"""The words for values that are maximised (rewards) or minimised (costs). Tests of costs are those of minus the costs."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """The words for rewards or for costs; sides are those of the values as given."""

    one: str
    many: str
    best: str  # the best mean is the highest or the lowest
    worse: str
    better: str
    top: str  # the best values are the largest or the smallest
    allowed: str  # the side of a heavy tail that the assumption allows
    skewed: str  # the side of a heavy tail that contradicts it
    beyond: str  # where the values on the skewed side lie
    assumption: str


REWARDS = Words(
    one="reward",
    many="rewards",
    best="highest",
    worse="lower",
    better="higher",
    top="largest",
    allowed="left",
    skewed="right",
    beyond="above",
    assumption="truncated non-positivity",
)
COSTS = Words(
    one="cost",
    many="costs",
    best="lowest",
    worse="higher",
    better="lower",
    top="smallest",
    allowed="right",
    skewed="left",
    beyond="below",
    assumption="truncated non-negativity",
)


def words(minimize: bool) -> Words:
    """Return the words for costs if they are minimised, else those for rewards.

    >>> words(minimize=True).many
    'costs'
    """
    return COSTS if minimize else REWARDS


def assumed(assumption: str, minimize: bool) -> str:
    """Return the text of a policy's assumption about rewards, or the same about costs.

    >>> assumed("truncated non-positivity of the best arm", minimize=True)
    'truncated non-negativity of the best arm'
    """
    text = str(assumption)
    return text.replace("non-positivity", "non-negativity").replace("rewards", "costs") if minimize else text
