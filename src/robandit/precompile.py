"""Compiles policies ahead of time."""

from __future__ import annotations

from collections.abc import Iterable

from robandit.drift.watch import compiled_watch
from robandit.live.bandit import Bandit
from robandit.policies import Policy, all_policies
from robandit.policies.base import check_policy_given
from robandit.problems import bernoulli
from robandit.simulate.simulation import simulate
from robandit.validation import integer


def precompile(policies: Policy | Iterable[Policy] | None = None, *, processes: int = 1) -> None:
    """Compile everything that policies and the drift detector need, so that later processes start at once.

    Use it in an image build, or before a benchmark. It fills the cache folder (``ROBANDIT_CACHE_DIR``), which later processes must
    also be able to write. With more ``processes``, a script needs ``if __name__ == "__main__"``, and policies must be importable.

    Parameters
    ----------
    policies
        One policy or several. None means all policies of Robandit.
    processes
        The number of processes that compile at the same time, from 1 to 1024.
    """
    if policies is None:
        policies = all_policies()
    chosen = list(policies) if isinstance(policies, Iterable) else [policies]
    for policy in chosen:
        check_policy_given(policy)
    compiled_watch()
    if integer(processes, "processes", 1, 1024) == 1:
        for policy in chosen:
            _precompile(policy)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # One process compiles all entries of a policy, since they share most functions.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_precompile, chosen))


def _precompile(policy: Policy) -> None:
    problem = bernoulli(means=[0.2, 0.8])  # all moments are finite, so every policy can be informed
    policy = policy.informed_by(problem).prepared(10)
    simulate(policy, problem, horizon=2, replications=1, seed=0, progress=False)
    bandit = Bandit(["a", "b"], policy, seed=0, compile="now")
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first, -1.0)
    bandit.expire(second)
    bandit.update(bandit.select(), -1.0)
