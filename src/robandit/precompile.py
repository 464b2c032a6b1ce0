"""Compiles policies ahead of time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from robandit.drift.watch import DETECTOR
from robandit.errors import FileError
from robandit.files import named, shown
from robandit.hints import guided
from robandit.kernel import cache_directory
from robandit.kernel.cache import Kernel, ready
from robandit.kernel.folder import SETTING, configured
from robandit.kernel.messages import say_compiling
from robandit.kernel.workers import compile_all
from robandit.live.engine import live_kernels
from robandit.policies import Policy, all_policies
from robandit.policies.base import check_policy_given
from robandit.problems import bernoulli
from robandit.simulate.simulation import play_kernel
from robandit.validation import function, integer, items_of


@guided
def precompile(
    policies: Policy | Iterable[Policy] | None = None,
    *,
    into: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    done: Callable[[str], object] | None = None,
) -> Path:
    """Compile everything that policies and studies of live rewards need, so that later processes start at once. Return the folder.

    Parameters
    ----------
    policies
        One policy or several; None: all policies of Robandit. A policy is compiled once for all values of its numbers.
    into
        The folder for the compiled code, such as one of a container image; it is made if it does not exist. A process uses it,
        also read-only, if ``ROBANDIT_CACHE_DIR`` is its path, and the versions of Python, NumPy and Numba and the type of processor
        are the same. None: the cache folder of this user.
    processes
        The number of processes that compile at the same time, from 1 to 1024. None: one per available core.
    done
        A function that is called with the name of each compiled policy, in any thread. None: the names are printed.
    """
    if policies is None:
        policies = all_policies()
    chosen = list(items_of(policies, "policies", "policies")) if isinstance(policies, Iterable) else [policies]
    for policy in chosen:
        check_policy_given(policy)
    function(done, "done", "a function that takes a name")
    if processes is not None:
        processes = integer(processes, "processes", 1, 1024)
    with _folder(into) as folder:
        # One process compiles all entries of a policy, since they share most functions.
        groups: dict[str, Callable[[], list[Kernel]]]
        named = {policy.name: [other for other in chosen if other.name == policy.name] for policy in chosen}
        groups = {name: partial(_kernels, *same) for name, same in named.items()} | SHARED
        if done is None:
            groups = {name: partial(_announced, name, kernels) for name, kernels in groups.items()}
        compile_all(groups, done or (lambda name: None), processes=processes)
        for name, kernels in groups.items():
            for kernel in kernels():
                if not kernel.is_stored():
                    ready(kernel, name)  # raises the error, if there is one
        if into is not None:
            for path in folder.glob("*.kernel"):
                path.chmod(0o644)
    return folder


def _kernels(*policies: Policy) -> list[Kernel]:
    problem = bernoulli(means=[0.2, 0.8])  # all moments are finite, so every policy can be informed
    informed = [policy.informed_by(problem).prepared(10) for policy in policies]
    return [kernel for policy in informed for kernel in (play_kernel(policy, problem, 10), *live_kernels(policy))]


def _announced(name: str, kernels: Callable[[], list[Kernel]]) -> list[Kernel]:
    found = kernels()
    if not all(kernel.is_stored() for kernel in found):
        say_compiling(name)
    return found


def _drift() -> list[Kernel]:
    return [DETECTOR.kernel()]


def _trimmed_mean() -> list[Kernel]:
    from robandit.estimators.likelihood import bound_kernel
    from robandit.estimators.threshold import threshold_kernel

    return [threshold_kernel(), bound_kernel()]


SHARED: dict[str, Callable[[], list[Kernel]]] = {"drift detector": _drift, "trimmed mean": _trimmed_mean}
"""What is used with any policy: live bandits watch for drift, and the decision service shows trimmed means."""


@contextmanager
def _folder(into: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Store compiled code in a folder meanwhile; None: where it is always stored."""
    if into is None:
        yield cache_directory()
        return
    before = os.environ.get(SETTING)
    path = named(into, "into", "the name of a folder").absolute()
    new = not os.path.isdir(path)
    os.environ[SETTING] = str(path)
    try:
        problem = configured().unsafe or configured().unwritable
        if problem:
            raise FileError(f"compiled code cannot be stored in {shown(path)}: {problem}; name a folder of yours")
        if new:  # the mode of a folder that exists is the user's choice
            path.chmod(0o755)
        yield path
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before
