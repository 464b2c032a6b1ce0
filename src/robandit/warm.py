"""Compiling ahead of time."""

from __future__ import annotations

from collections.abc import Iterable

from robandit import policies as _policies
from robandit.bandit import Bandit
from robandit.policies.base import Policy
from robandit.problems import negated_pareto
from robandit.simulate import simulate

__all__ = ["precompile"]


def precompile(policies: Iterable[Policy] | None = None) -> None:
    """Compile everything that these policies need (None: all of Robandit's), so that later processes start at once.

    For an image build, or before a benchmark. Uses the cache folder (``ROBANDIT_CACHE_DIR``).
    """
    if policies is None:
        names = (getattr(_policies, name) for name in _policies.__all__)
        policies = [cls() for cls in names if isinstance(cls, type) and cls is not Policy and issubclass(cls, Policy)]
    problem = negated_pareto(means=[-1.0, -2.0], tail=1.5)
    for policy in policies:
        simulate(policy, problem, horizon=2, replications=1, seed=0, progress=False)
        bandit = Bandit(["a", "b"], policy, seed=0)
        first, second = bandit.decide(), bandit.decide()
        bandit.reward(first, -1.0)
        bandit.expire(second)
        bandit.update(bandit.select(), -1.0)
        bandit.estimates()
