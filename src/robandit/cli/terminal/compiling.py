"""Compile the policies that a command needs on all cores, and show how many are done."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from robandit.cli.terminal.progress import compiling
from robandit.kernel.cache import Kernel
from robandit.kernel.workers import compile_all
from robandit.policies.base import Policy
from robandit.simulate.simulation import any_play_kernel


def compile_policies(policies: Iterable[Policy], processes: int | None = None) -> None:
    """Compile the simulation loops of policies that are not compiled yet."""
    groups = {policy.name: partial(_loop, policy) for policy in policies}
    if groups:
        with compiling(len(groups)) as advance:
            compile_all(groups, advance, processes=processes)


def _loop(policy: Policy) -> list[Kernel]:
    return [any_play_kernel(policy)]
