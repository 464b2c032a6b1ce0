"""Measure how long a new process takes from ``import robandit`` to its first decision.

``python benchmarks/first_decision.py`` prints the medians over several new processes, with empty cache folders and with a full one,
and the time of one pull as long as nothing is compiled.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import robandit as rb
from robandit.policies.base import Policy

TRIES = 7
DECISION = """
import time
start = time.perf_counter()
import robandit as rb
bandit = rb.Bandit(["a", "b", "c"], seed=0{options})
bandit.reward(bandit.decide(), 1.0)
bandit.update(bandit.select(), 2.0)
print(time.perf_counter() - start)
"""


def first_decision(folder: str, *, options: str = "") -> float:
    """Return the seconds of one new process that uses this cache folder, from the import to the first decisions and rewards."""
    # Most users store byte code.
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"ROBANDIT_CACHE_DIR": folder}
    command = [sys.executable, "-c", DECISION.format(options=options)]
    done = subprocess.run(command, check=True, env=variables, capture_output=True, text=True)
    return float(done.stdout)


@contextmanager
def empty_folders() -> Iterator[Iterator[str]]:
    """Return an endless supply of empty folders, which are deleted at the end."""
    with tempfile.TemporaryDirectory() as parent:
        yield (tempfile.mkdtemp(dir=parent) for _ in iter(int, 1))


def cold(tries: int = TRIES) -> float:
    """Return the median of new processes with empty cache folders."""
    with empty_folders() as folders:
        first_decision(next(folders))  # fills the system's cache of files
        return statistics.median(first_decision(next(folders)) for _ in range(tries))


def warm(tries: int = TRIES) -> float:
    """Return the median of new processes that wait for compiled code and find it in the cache folder."""
    waiting = ', compile="now"'
    with empty_folders() as folders:
        folder = next(folders)
        first_decision(folder, options=waiting)
        return statistics.median(first_decision(folder, options=waiting) for _ in range(tries))


def interpreted(policy: Policy, pulls: int = 2000) -> float:
    """Return microseconds of one select() and update() without compiled code, at K = 10."""
    bandit = rb.Bandit(range(10), policy, seed=0, compile="never")
    rewards = (-np.random.default_rng(0).pareto(1.5, pulls) - 1.0).tolist()
    start = time.process_time()
    for reward in rewards:
        bandit.update(bandit.select(), reward)
    return (time.process_time() - start) / pulls * 1e6


if __name__ == "__main__":
    print(f"new process, empty cache: import to first decision {cold():.3f} s")
    print(f'new process, filled cache, compile="now": import to first decision {warm():.3f} s')
    for each in (rb.UCB1(), rb.AdaRUCB(), rb.AdaKLUCB(), rb.HTINF(eps=0.5, u=1.0), rb.ForceMoM()):
        print(f"{each.name}, interpreted, select() + update(), K=10: {interpreted(each):.0f} us")
