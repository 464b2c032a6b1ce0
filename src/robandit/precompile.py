"""Compiling ahead of time."""

from __future__ import annotations

from collections.abc import Iterable

from robandit.errors import InvalidInput
from robandit.live.bandit import Bandit
from robandit.policies import Policy, all_policies
from robandit.policies.base import check_policy_given
from robandit.problems import bernoulli
from robandit.simulate.simulation import simulate

__all__ = ["precompile"]


def precompile(policies: Policy | Iterable[Policy] | None = None, *, processes: int = 1) -> None:
    """Compile everything that these policies need (None: all of Robandit's), so that later processes start at once.

    For an image build, or before a benchmark. Uses the cache folder (``ROBANDIT_CACHE_DIR``), which later processes must be able to
    write, too. Compiling holds a process to one core; with more ``processes``, a script must have the usual
    ``if __name__ == "__main__"``, and policies of your own must stand in a file that can be imported.

    Parameters
    ----------
    policies
        One policy or several; None: all of Robandit's.
    processes
        How many compile at the same time, from 1 to 1024.
    """
    if policies is None:
        policies = all_policies()
    given = list(policies) if isinstance(policies, Iterable) else [policies]
    for policy in given:
        check_policy_given(policy)
    if not isinstance(processes, int) or isinstance(processes, bool) or not 1 <= processes <= 1024:
        raise InvalidInput(f"processes = {processes!r} must be a whole number from 1 to 1024")
    if processes == 1:
        for policy in given:
            _precompile(policy)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # A policy is compiled whole by one process: its loop and its steps have most functions in common.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(_precompile, given):
            pass


def _precompile(given: Policy) -> None:
    problem = bernoulli(means=[0.2, 0.8])  # all moments are finite: every policy can be told what it must know
    policy = given.informed_by(problem).prepared(10)
    simulate(policy, problem, horizon=2, replications=1, seed=0, progress=False)
    bandit = Bandit(["a", "b"], policy, seed=0)
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first, -1.0)
    bandit.expire(second)
    bandit.update(bandit.select(), -1.0)
    bandit.estimates()
