"""The check of ``outlook``: the lazy arg-max must choose as a full scan of all indices does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from robandit.errors import KernelError
from robandit.kernel.lazy import lazy_state
from robandit.kernel.random import streams
from robandit.live.engine import RunningPolicy
from robandit.policies.base import Policy
from robandit.policies.index import SLACK, no_outlook

HORIZON = 400
REWARDS: dict[str, Callable[[np.random.Generator, int], float]] = {
    "heavy losses": lambda rng, arm: -float(rng.pareto(2.0)) - 0.1 * arm,
    "heavy gains": lambda rng, arm: 100.0 * float(rng.pareto(1.2)),
    "both signs": lambda rng, arm: float(rng.standard_t(1.5)) - 0.2 * arm,
    "clicks": lambda rng, arm: float(rng.random() < 0.6 - 0.1 * (arm % 3)),
    "ties": lambda rng, arm: float(arm // 2),
}


def check_outlook(policy: Policy) -> None:
    """Check that the lazy arg-max (`robandit.kernel.lazy`), if the policy has one, chooses as a full scan of all indices does.

    Rewards are heavy-tailed, binary or tied. Arms are left out of some choices, and one is paused for a time.
    """
    policy = policy.prepared(HORIZON)
    fields = set(policy.start(2, None, np.zeros(4, dtype=np.uint64))._fields)
    if not {"lines", "lead"} <= fields or getattr(policy, "outlook", None) is no_outlook:
        return
    for arms in (2, 3, 10):
        for kind in REWARDS:
            _compare(policy, arms, kind)


def _compare(policy: Policy, arms: int, kind: str) -> None:
    rng = np.random.default_rng(arms)
    words = streams(np.random.SeedSequence(arms), 1)[0]
    quick, full = (RunningPolicy(policy, policy.start(arms, None, words), [True] * arms, None) for _ in range(2))
    among: tuple[int, ...] | None = None
    for step in range(HORIZON):
        if policy.respects_allowed and step % 20 == 0:
            among = tuple(range(rng.integers(arms - 1), arms)) if rng.random() < 0.3 else None
            available = not HORIZON // 2 <= step < HORIZON * 3 // 4
            for engine in (quick, full) if quick.available[0] != available else ():
                engine.set_available(0, available=available)
        full.state.lines[:], full.state.lead[:] = lazy_state(arms)  # without lines, every index is computed
        arm, best = choice(quick, among, step), choice(full, among, step)
        if arm != best:
            if _tied(full, arm, best):
                return
            problem = f"at pull {step} of {arms} arms ({kind}) it leads to arm {arm}, a full scan of the indices to arm {best}"
            rule = "height + slope * (l - level) must be at least the index at each l from level to until"
            raise AssertionError(f"the outlook of {policy!r} is wrong: {problem}.\nCorrect it: {rule}; or remove it")
        reward = REWARDS[kind](rng, arm)
        quick.tell(arm, reward)
        full.tell(arm, reward)


def _tied(engine: RunningPolicy, arm: int, other: int) -> bool:
    """Return whether two indices differ only by rounding. An iterative index depends on the one before it in the last digits."""
    if "index" not in engine.policy.columns:
        return False
    indices: list[Any] = [row[engine.policy.columns.index("index")] for row in engine.describe()]
    return math.isclose(indices[arm], indices[other], rel_tol=SLACK)


def choice(engine: RunningPolicy, among: tuple[int, ...] | None, step: int) -> int:
    """Return the choice of an engine. An arm that is not allowed fails the check."""
    try:
        return engine.ask(among)
    except KernelError as error:
        raise AssertionError(f"at pull {step}, {error}") from error
