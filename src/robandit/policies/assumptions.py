"""Does a problem satisfy what a policy assumes?"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from robandit.laws.gaussian import normal_variance
from robandit.laws.median import law_median
from robandit.policies.base import Policy
from robandit.policies.facts import CENTRED, NONPOSITIVE, SYMMETRIC

__all__ = ["assumption_met"]

LEAST = 1e-12  # relative: far above the rounding of a length


def assumption_met(policy: Policy, problem: Any) -> bool | None:
    """Whether the problem satisfies what the policy's bound assumes beyond what it is told; None: cannot say.

    Of recorded rewards that are replayed in their order nobody can say that it is satisfied: they may depend on each other.

    >>> from robandit import AdaRUCB, UCB1, problems
    >>> costs = problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    >>> assumption_met(AdaRUCB(), costs), assumption_met(UCB1(), costs)
    (True, False)
    """
    decide = _DECIDED.get(policy.facts.assumption)
    met = None if decide is None else decide(policy, problem)
    return None if met and policy.facts.assumption and not problem.independent else met


# A suite asks the same of a problem for many policies, and the integrals take time.
@lru_cache(maxsize=256)
def _about_zero(problem: Any) -> bool:
    holds: bool = problem.assumption().holds
    return holds


@lru_cache(maxsize=256)
def _about_median(problem: Any) -> bool:
    laws = [problem.laws[arm] for arm in problem.best_arms]
    return any(law.truncated_nonpositivity(about=law_median(law)).holds for law in laws)


def _interval(policy: Any, problem: Any) -> bool:
    ends = [end for law in problem.laws for end in law.support]
    length = policy.scale if hasattr(policy, "scale") else policy.range
    return max(ends) - min(ends) <= float(length) * (1.0 + LEAST)


_DECIDED: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda policy, problem: True,
    NONPOSITIVE: lambda policy, problem: _about_zero(problem),
    CENTRED: lambda policy, problem: _about_median(problem),
    SYMMETRIC: lambda policy, problem: all(law.symmetric_about is not None for law in problem.laws),
    "rewards in an interval of known length": _interval,
    "eps = 1 only: a finite variance": lambda policy, problem: math.isfinite(problem.v(1.0)),
    "normal rewards": lambda policy, problem: all(normal_variance(law) is not None for law in problem.laws),
}
