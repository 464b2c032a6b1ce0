"""Contextual policies of other libraries on rows that Robandit drew: ``python contextual.py ROWS RESULTS``.

It runs in an environment with vowpalwabbit, mabwiser and contextualbandits, of which any may be missing; Robandit is not needed.
ROWS is written by ``benchmarks/contexts_peers.py``. RESULTS gets one JSON line per library, problem and replication.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Policy = tuple[Callable[[Any], int], Callable[[Any, int, float], None]]
"""A choice for x, and what learns from x, the arm and its reward."""


def with_vw(arms: int, d: int) -> Policy:
    """SquareCB on squared loss, as in its tutorial; costs are negated rewards."""
    from vowpalwabbit import Workspace

    vw = Workspace("--cb_explore_adf --squarecb --interactions sa --quiet --random_seed 1")
    chances: list[float] = []
    rng = np.random.default_rng(0)

    def lines(x: Any, arm: int = -1, cost: float = 0.0, chance: float = 0.0) -> list[str]:
        shared = "shared |s " + " ".join(f"f{i}:{v:.6g}" for i, v in enumerate(x[1:], 1))
        label = [f"0:{cost:.6g}:{chance:.6g} " if a == arm else "" for a in range(arms)]
        return [shared, *(f"{label[a]}|a arm={a}" for a in range(arms))]

    def choose(x: Any) -> int:
        shares = np.array(vw.predict(lines(x)))
        arm = int(rng.choice(arms, p=shares / shares.sum()))
        chances[:] = [float(shares[arm])]
        return arm

    return choose, lambda x, arm, reward: vw.learn(lines(x, arm, -reward, chances[0]))


def with_mabwiser(kind: str) -> Callable[[int, int], Policy]:
    """LinUCB or LinTS with alpha = 1, the library's example values."""

    def make(arms: int, d: int) -> Policy:
        from mabwiser.mab import MAB, LearningPolicy

        rule = LearningPolicy.LinUCB(alpha=1.0) if kind == "LinUCB" else LearningPolicy.LinTS(alpha=1.0)
        mab = MAB(list(range(arms)), rule, seed=0)
        first = np.eye(1, d)
        mab.fit([0], [0.0], first)  # a policy must be fitted before it predicts
        return (
            lambda x: int(mab.predict(x[None])),
            lambda x, arm, reward: mab.partial_fit([arm], [reward], x[None]),
        )

    return make


def with_contextualbandits(arms: int, d: int) -> Policy:
    """LinUCB, online."""
    from contextualbandits.linreg import LinearRegression  # noqa: F401  fails early if the build is broken
    from contextualbandits.online import LinUCB

    policy = LinUCB(nchoices=arms, alpha=1.0, random_state=1)
    rng = np.random.default_rng(0)
    fitted = [False]

    def learn(x: Any, arm: int, reward: float) -> None:
        policy.partial_fit(x[None, 1:], np.array([arm]), np.array([reward]))
        fitted[0] = True

    return lambda x: int(policy.predict(x[None, 1:])[0]) if fitted[0] else int(rng.integers(arms)), learn


LIBRARIES: dict[str, Callable[[int, int], Policy]] = {
    "Vowpal Wabbit, SquareCB": with_vw,
    "MABWiser, LinUCB": with_mabwiser("LinUCB"),
    "MABWiser, LinTS": with_mabwiser("LinTS"),
    "contextualbandits, LinUCB": with_contextualbandits,
}


def main() -> None:
    """Play every library on every problem and replication."""
    warnings.simplefilter("ignore")
    rows = np.load(sys.argv[1])
    with open(sys.argv[2], "a") as out:
        for key in sorted({name.rpartition("|")[0] for name in rows.files}):
            x, means, rewards = (rows[f"{key}|{part}"] for part in ("x", "means", "rewards"))
            for library, make in LIBRARIES.items():
                start, total = time.perf_counter(), 0.0
                try:
                    choose, learn = make(means.shape[1], x.shape[1])
                    for t in range(len(x)):
                        arm = choose(x[t])
                        learn(x[t], arm, float(rewards[t, arm]))
                        total += means[t].max() - means[t, arm]
                except Exception as error:
                    print(f"{library}, {key}: {type(error).__name__}: {error}", flush=True)
                    continue
                random = float((means.max(axis=1) - means.mean(axis=1)).sum())
                seconds = (time.perf_counter() - start) / len(x)
                row = {"library": library, "key": key, "regret": 100.0 * total / random, "us": 1e6 * seconds}
                print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
