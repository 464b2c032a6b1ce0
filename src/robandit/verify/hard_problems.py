"""Shared by the checks of the lower bounds: policies on sets of problems on which no policy can have low regret everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from robandit.intervals import Interval, mean_interval
from robandit.kernel.types import Floats
from robandit.policies import Oracle
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest, slope_weights, smallest
from robandit.verify.regret import play
from robandit.verify.statement import Effort, Finding, Track, finding

Inform = Callable[[Policy, Sequence[Problem], int, float], Policy]
"""Sets what a policy knows before it plays one of the problems (by index), with moments of order 1 + eps."""

Setting = TypeVar("Setting")


class Played(NamedTuple, Generic[Setting]):
    """A policy on the problems of a setting: the largest mean regret, and its replications."""

    setting: Setting
    policy: Policy
    regret: Interval
    replications: Floats


def inform_alike(policy: Policy, problems: Sequence[Problem], which: int, eps: float) -> Policy:
    """Give a policy the same knowledge on all problems: a lower bound is about an algorithm that does not know which it plays.

    The first problem has the moment bound of the family; another's own may be smaller and would reveal it.
    """
    return policy.informed_by(problems[0], eps=eps)


def inform_each(policy: Policy, problems: Sequence[Problem], which: int, eps: float) -> Policy:
    """Give a policy the knowledge of each problem, which lower bounds forbid: a control."""
    return policy.informed_by(problems[which], eps=eps)


def play_all(
    settings: Sequence[Any],
    policies: Sequence[Policy],
    replications: int,
    effort: Effort,
    track: Track,
    inform: Inform,
    key: int,
) -> list[Played[Any]]:
    """Play every problem of every setting with every policy; the intervals hold jointly at 99 %, nominally.

    A setting has ``problems()``, a ``horizon``, ``orders`` (policies know the first) and ``scales`` that divide the regrets.
    """
    confidence = joint_confidence(len(policies) * sum(len(setting.scales) for setting in settings))
    played = []
    for i, setting in enumerate(track(settings)):
        problems, marks = setting.problems(), [setting.horizon]
        for policy in policies:
            # One at a time: managing a thousand short jobs costs more than running them.
            informed = (inform(policy, problems, j, setting.orders[0]) for j in range(len(problems)))
            regrets = np.stack(
                [
                    play(one, problem, marks, replications, effort, (key, i, j))[:, -1] / scale
                    for j, (one, problem, scale) in enumerate(zip(informed, problems, setting.scales, strict=True))
                ]
            )
            interval = largest(mean_interval(row, confidence) for row in regrets)
            played.append(Played(setting, policy, interval, regrets[regrets.mean(axis=1).argmax()]))
    return played


def label(policy: Policy) -> str:
    """Return a policy's name for readers."""
    return f"always arm {policy.arm}" if isinstance(policy, Oracle) and policy.arm is not None else policy.name


def smallest_ratio(
    claim: str, played: Sequence[Played[Setting]], floors: Sequence[float], place: Callable[[Setting], str]
) -> Finding:
    """Return the finding that no regret is below its floor; its note names the policy that comes nearest, and where."""
    ratios = [divided(run.regret, floor) for run, floor in zip(played, floors, strict=True)]
    nearest = played[min(range(len(ratios)), key=lambda i: ratios[i].measured)]
    return finding(claim, smallest(ratios), f"{label(nearest.policy)} at {place(nearest.setting)}").at_least(1.0)


def fit_exponent(x: Sequence[float], y: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the least-squares exponent b in y ~ x^b, and its largest error if each log(y) has at most the given error."""
    weights = slope_weights(np.array(x))
    return float(weights @ np.log(np.array(y))), float(np.abs(weights) @ np.array(errors)) + 1e-12
