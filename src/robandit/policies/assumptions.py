"""The assumptions of regret bounds about a problem, as values that can be checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, Self

from robandit.laws.discrete import Bernoulli
from robandit.laws.gaussian import normal_variance

Point = float | Literal["median", "symmetric"]
Check = Callable[[Any, Any], bool | None]
RELATIVE_SLACK = 1e-12  # far above the rounding of an interval's length


class Assumption(str):
    """An assumption about the rewards: its text, with a name and the ways to check it. An empty text means no assumption.

    ``holds_for(policy, problem)`` returns True, False, or None if the laws do not decide it. ``point`` selects the test of a live
    bandit: truncated non-positivity about a number or the median, or symmetry. None means that no test exists.

    >>> NONPOSITIVE, NONPOSITIVE.point, bool(NOTHING)
    ('truncated non-positivity of the best arm', 0.0, False)
    """

    name: str
    holds_for: Check
    point: Point | None

    def __new__(cls, name: str, text: str, holds_for: Check | None = None, point: Point | None = None) -> Self:
        """Store the text as the string itself, and the rest as attributes. Without ``holds_for``, the check returns None."""
        self = super().__new__(cls, text)
        self.name, self.holds_for, self.point = name, holds_for or _undecided, point
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all parts; a plain string would lose the checks."""
        return type(self), (self.name, self.text, self.holds_for, self.point)

    def __deepcopy__(self, memo: Any) -> Self:
        """Return itself: it is immutable."""
        return self

    @property
    def text(self) -> str:
        """The text as a plain string."""
        return str(self)


def assumption_met(policy: Any, problem: Any) -> bool | None:
    """Return whether the problem satisfies the policy's assumption, or None if that cannot be decided.

    For recorded rewards replayed in order the answer is never True, because they may depend on each other.

    >>> from robandit import AdaRUCB, UCB1, problems
    >>> costs = problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    >>> assumption_met(AdaRUCB(), costs), assumption_met(UCB1(), costs)
    (True, False)
    """
    assumption = policy.facts.assumption
    met: bool | None = assumption.holds_for(policy, problem)
    return None if met and assumption and not problem.independent else met


# The checks are named functions, so that an assumption can be pickled.
def _undecided(policy: Any, problem: Any) -> None:
    return None


def _always(policy: Any, problem: Any) -> bool:
    return True


def _best_nonpositive(policy: Any, problem: Any) -> bool:
    return _nonpositive(problem)


# Cached, because a suite checks the same problem for many policies, and the integrals take time.
@lru_cache(maxsize=256)
def _nonpositive(problem: Any) -> bool:
    return problem.assumption().holds


def _bounded(policy: Any, problem: Any) -> bool:
    ends = [end for law in problem.laws for end in law.support]
    length = policy.scale if hasattr(policy, "scale") else policy.range
    return max(ends) - min(ends) <= float(length) * (1.0 + RELATIVE_SLACK)


def _bounded_above(policy: Any, problem: Any) -> bool:
    supports = [law.support for law in problem.reward_laws]
    return all(math.isfinite(low) and high <= policy.upper for low, high in supports)


def _light_tails(policy: Any, problem: Any) -> bool | None:
    if all(math.isfinite(end) for law in problem.laws for end in law.support):
        return True
    return False if math.isfinite(problem.tail_index) else None


def _one_family(policy: Any, problem: Any) -> bool | None:
    if all(isinstance(law, Bernoulli) for law in problem.laws):
        return True
    variances = {normal_variance(law) for law in problem.laws}
    if len(variances) == 1 and None not in variances:
        return True
    return False if math.isfinite(problem.tail_index) else None


def _symmetric(policy: Any, problem: Any) -> bool:
    return all(law.symmetric_about is not None for law in problem.laws)


def _finite_variance(policy: Any, problem: Any) -> bool:
    return math.isfinite(problem.v(1.0))


def _normal(policy: Any, problem: Any) -> bool:
    return all(normal_variance(law) is not None for law in problem.laws)


def _within_scale(policy: Any, problem: Any) -> bool:
    variances = [normal_variance(law) for law in problem.laws]
    most = float(policy.scale) ** 2 * (1.0 + RELATIVE_SLACK)
    return all(variance is not None and variance <= most for variance in variances)


def _sub_gaussian(policy: Any, problem: Any) -> bool | None:
    """Return whether each law is normal or bounded (Hoeffding's lemma) with this scale. Other light tails are undecided."""
    most = float(policy.scale) * (1.0 + RELATIVE_SLACK)
    answers: list[bool | None] = []
    for law in problem.laws:
        low, high = law.support
        variance = normal_variance(law)
        if variance is not None:
            answers.append(math.sqrt(variance) <= most)
        elif 0.5 * (high - low) <= most:
            answers.append(True)
        else:
            answers.append(False if law.tail_index < math.inf or law.variance > most**2 else None)
    return False if False in answers else None if None in answers else True


def _below(policy: Any, problem: Any) -> bool | None:
    """Return whether no reward is above ``upper``. Heavy left tails are undecided: we have not seen the theorem's conditions."""
    if max(law.support[1] for law in problem.reward_laws) > policy.upper:
        return False
    return True if problem.tail_index == math.inf else None


def _in_interval(policy: Any, problem: Any) -> bool:
    ends = [end for law in problem.reward_laws for end in law.support]
    return policy.lower <= min(ends) and max(ends) <= policy.upper


NOTHING = Assumption("nothing", "", _always)
_TNP = "truncated non-positivity of the best arm"
NONPOSITIVE = Assumption("nonpositive", _TNP, _best_nonpositive, point=0.0)
SYMMETRIC = Assumption("symmetric", "every arm is symmetric about its mean", _symmetric, point="symmetric")
BOUNDED = Assumption("bounded", "rewards in an interval of known length", _bounded)
BOUNDED_ABOVE = Assumption("bounded above", "bounded rewards with a known upper bound", _bounded_above)
LIGHT_TAILS = Assumption("light tails", "every arm has a moment generating function", _light_tails)
ONE_FAMILY = Assumption("one family", "all arms in the same one-parameter exponential family", _one_family)
FINITE_VARIANCE = Assumption("finite variance", "eps = 1 only: a finite variance", _finite_variance)
NORMAL = Assumption("normal", "normal rewards", _normal)
NORMAL_OF_SCALE = Assumption("normal of known scale", "normal rewards of known scale", _within_scale)
SUB_GAUSSIAN = Assumption("sub-Gaussian of known scale", "sub-Gaussian rewards of known scale", _sub_gaussian)
BELOW = Assumption("below", "rewards at most a known bound", _below)
IN_INTERVAL = Assumption("in interval", "rewards in a known interval", _in_interval)
