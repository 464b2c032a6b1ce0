"""Policies on problems of which no policy can have low regret on all: what the checks of the lower bounds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies import Oracle
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.simulation import simulate
from robandit.verify.statement import Effort
from robandit.verify.statistics import Interval, largest, mean_interval, slope_weights

__all__ = ["Tell", "fit", "larger", "played", "shown", "told_alike", "told_each"]

Tell = Callable[[Policy, Sequence[Problem], int, float], Policy]
"""What a policy is told before it plays the problem with this number, of these, with moments of this order."""


def told_alike(policy: Policy, problems: Sequence[Problem], which: int, eps: float) -> Policy:
    """The same for all problems: a lower bound is about one algorithm that does not know which of them it plays.

    The first problem has the moment bound of the whole family; another's own may be smaller and so give it away.
    """
    return policy.informed_by(problems[0], eps=eps)


def told_each(policy: Policy, problems: Sequence[Problem], which: int, eps: float) -> Policy:
    """What is known of the very problem: cheating, for lower bounds."""
    return policy.informed_by(problems[which], eps=eps)


def played(
    policies: Sequence[Policy],
    problems: Sequence[Problem],
    eps: float,
    horizon: int,
    replications: int,
    *,
    effort: Effort,
    tell: Tell,
    key: tuple[int, ...],
) -> Floats:
    """Final regrets: policies x problems x replications."""
    regrets = np.empty((len(policies), len(problems), replications))
    for i, problem in enumerate(problems):
        seed = int(np.random.SeedSequence(effort.seed, spawn_key=(*key, i)).generate_state(1, np.uint64)[0])
        for j, policy in enumerate(policies):
            # One at a time: looking after a thousand short jobs costs more than they do.
            told = tell(policy, problems, i, eps)
            result = simulate(
                told,
                problem,
                horizon,
                replications,
                seed,
                threads=effort.threads,
                checkpoints=[horizon],
                progress=False,
            )
            regrets[j, i] = result.regret[0, :, -1]
    return regrets


def shown(policy: Policy) -> str:
    """The name for readers."""
    return f"always arm {policy.arm}" if isinstance(policy, Oracle) and policy.arm is not None else policy.name


def larger(regrets: Floats, confidence: float) -> tuple[Interval, Floats]:
    """The largest mean over problems (rows), and the replications of that one.

    Its confidence counts all rows.
    """
    means = regrets.mean(axis=1)
    return largest(mean_interval(row, confidence) for row in regrets), regrets[means.argmax()]


def fit(x: Sequence[float], y: Sequence[float], off: Sequence[float]) -> tuple[float, float]:
    """The exponent b in y ~ x^b by least squares, and how much it may be off if each log(y) is by so much."""
    weights = slope_weights(np.array(x))
    return float(weights @ np.log(np.array(y))), float(np.abs(weights) @ np.array(off)) + 1e-12
