"""Compiling ahead of time."""

from __future__ import annotations

from collections.abc import Iterable

from robandit.bandit import Bandit
from robandit.policies import Policy, all_policies
from robandit.policies.base import check_policy_given
from robandit.problems import bernoulli
from robandit.simulate import simulate

__all__ = ["precompile"]


def precompile(policies: Iterable[Policy] | None = None) -> None:
    """Compile everything that these policies need (None: all of Robandit's), so that later processes start at once.

    For an image build, or before a benchmark. Uses the cache folder (``ROBANDIT_CACHE_DIR``), which later processes must be able to
    write, too.
    """
    problem = bernoulli(means=[0.2, 0.8])  # all moments are finite: every policy can be told what it must know
    for given in all_policies() if policies is None else policies:
        check_policy_given(given)
        policy = given.informed_by(problem).prepared(10)
        simulate(policy, problem, horizon=2, replications=1, seed=0, progress=False)
        bandit = Bandit(["a", "b"], policy, seed=0)
        first, second = bandit.decide(), bandit.decide()
        bandit.reward(first, -1.0)
        bandit.expire(second)
        bandit.update(bandit.select(), -1.0)
        bandit.estimates()
