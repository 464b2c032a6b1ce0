"""Measure the processor time that compiling policies takes, now and as version 0.1 did it.

``python benchmarks/compiling.py`` measures all policies, each way in a process of its own with an empty cache folder, in about
seven minutes. ``make bench`` measures some of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from typing import Any

import numpy as np

import robandit as rb
from robandit.kernel import cache, loops, native
from robandit.kernel.build import kernel_of
from robandit.live.engine import live_kernels
from robandit.policies import all_policies
from robandit.policies.base import Policy
from robandit.simulate.simulation import play_kernel

SOME = ("AdaKLUCB", "AdaRUCB", "UCB1", "HTINF", "ForceMoM", "MRAPE", "IMED")
MEASURE = "import sys, compiling; compiling.measure(sys.argv[1], sys.argv[2:])"


def seconds(way: str, names: tuple[str, ...]) -> float:
    """Return the processor time of a new process that compiles policies, "now", "0.1", or only "live" entries in each way."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.dirname(os.path.abspath(__file__))
        variables = os.environ | {"ROBANDIT_CACHE_DIR": folder, "PYTHONPATH": place}
        command = [sys.executable, "-c", MEASURE, way, *names]
        done = subprocess.run(command, check=True, env=variables, capture_output=True, text=True)
    return float(done.stdout)


def measure(way: str, names: list[str]) -> None:
    """Compile the policies with these class names (none: all), and print the processor time."""
    before = way.startswith("0.1")
    if before:
        vars(native)["_pipelines"] = lambda: ({}, {})  # Numba's own way to link
        vars(native)["_called_options"] = dict  # a function inherited the inlining of its caller
    chosen = [policy for policy in all_policies() if not names or type(policy).__name__ in names]
    native.platform_key()  # imports Numba
    start = cpu_time()
    for policy in chosen:
        problem = rb.problems.bernoulli(means=[0.2, 0.8])
        policy = policy.informed_by(problem).prepared(10)
        kernels = [] if way.endswith("live") else [play_kernel(policy, problem, 10)]
        for kernel in kernels + (_earlier_kernels(policy) if before else live_kernels(policy)):
            cache.ready(kernel, policy.label)
    print(cpu_time() - start)


def cpu_time() -> float:
    """Return the processor time of this process."""
    times = os.times()
    return times.user + times.system


def tell(take: Any, update: Any, full: Any, p: Any, s: Any, arm: int, reward: float) -> bool:
    """Learn from a pull and its reward."""
    update(p, s, arm, reward, take(p, s, arm))
    return bool(full(p, s))


def late(update: Any, full: Any, p: Any, s: Any, arm: int, reward: float, mark: float) -> bool:
    """Learn from the reward of an earlier pull."""
    update(p, s, arm, reward, mark)
    return bool(full(p, s))


def _earlier_kernels(policy: Policy) -> list[cache.Kernel]:
    """Return the kernels of the entries that version 0.1 compiled for a live bandit."""
    state = policy.start(2, None, np.zeros(4, dtype=np.uint64))
    entries: list[tuple[Any, tuple[str, ...], tuple[Any, ...]]] = [
        (loops.ask, ("select",), ()),
        (tell, ("take", "update", "full"), (0, 0.0)),
        (loops.issue, ("take",), (0,)),
        (late, ("update", "full"), (0, 0.0, 0.0)),
        (loops.forget, ("expire",), (0, 0.0)),
    ]
    if policy.columns:
        entries.append((loops.describe, ("estimate",), (np.zeros((1, 1)),)))
    return [
        kernel_of(partial(entry, *policy.hooks(*hooks)), (policy.params(), state, *more))
        for entry, hooks, more in entries
    ]


if __name__ == "__main__":
    now, earlier = seconds("now", ()), seconds("0.1", ())
    print(f"cold precompile of all policies: {now:.0f} s of CPU time now, {earlier:.0f} s as version 0.1 did it")
    now, earlier = seconds("live", ("AdaKLUCB",)), seconds("0.1 live", ("AdaKLUCB",))
    print(f"live entries of AdaKL-UCB: {now:.1f} s now, {earlier:.1f} s as version 0.1 did it")
