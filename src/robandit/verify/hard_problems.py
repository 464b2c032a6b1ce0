"""Tools that the checks of the lower bounds share: they play policies on sets of problems, and no policy can do well on all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from robandit import policies as library
from robandit.intervals import Interval, mean_interval
from robandit.kernel.types import Floats
from robandit.policies import Policy
from robandit.problems import Problem
from robandit.theory.lower_bounds import PairBound
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest, slope, slope_weights, smallest, sure
from robandit.verify.regret import play
from robandit.verify.statement import Effort, Finding, Row, Track, finding, row_of

Setting = TypeVar("Setting")


class Played(NamedTuple, Generic[Setting]):
    """The result of a policy on the problems of a setting: the largest mean regret, and the regrets behind that mean."""

    setting: Setting
    policy: Policy
    regret: Interval
    replications: Floats


def inform(policy: Policy, problems: Sequence[Problem], which: int, eps: float, *, cheat: bool = False) -> Policy:
    """Return the policy with the parameters of the first problem, so that they do not reveal which problem it plays.

    The first problem has the moment bound of the family. The moments of another problem may be smaller and would identify it.
    With ``cheat``, the policy gets the parameters of its own problem; this is a control.
    """
    return policy.informed_by(problems[which if cheat else 0], eps=eps)


def play_all(
    settings: Sequence[Any],
    policies: Sequence[Policy],
    replications: int,
    effort: Effort,
    track: Track,
    key: int,
    cheat: bool,
) -> list[Played[Any]]:
    """Play every policy on every problem of every setting. The intervals hold jointly at a nominal 99 %.

    A setting has ``problems()``, ``horizon``, ``orders`` (policies know the first) and ``scales`` (they divide the regrets).
    """
    confidence = joint_confidence(len(policies) * sum(len(setting.scales) for setting in settings))
    played = []
    for i, setting in enumerate(track(settings)):
        problems, marks = setting.problems(), [setting.horizon]
        for policy in policies:
            # A loop, not parallel jobs: managing a thousand short jobs costs more than running them.
            rows = []
            for j, (problem, scale) in enumerate(zip(problems, setting.scales, strict=True)):
                informed = inform(policy, problems, j, setting.orders[0], cheat=cheat)
                rows.append(play(informed, problem, marks, replications, effort, (key, i, j))[:, -1] / scale)
            regrets = np.stack(rows)
            interval = largest(mean_interval(row, confidence) for row in regrets)
            played.append(Played(setting, policy, interval, regrets[regrets.mean(axis=1).argmax()]))
    return played


def label(policy: Policy) -> str:
    """Return a policy's name for readers."""
    return f"always arm {policy.arm}" if isinstance(policy, library.Oracle) and policy.arm is not None else policy.name


def smallest_ratio(
    claim: str, played: Sequence[Played[Setting]], floors: Sequence[float], place: Callable[[Setting], str]
) -> Finding:
    """Return the finding that no regret is below its floor. The note names the policy and setting with the smallest ratio."""
    ratios = [divided(run.regret, floor) for run, floor in zip(played, floors, strict=True)]
    nearest = played[min(range(len(ratios)), key=lambda i: ratios[i].measured)]
    return finding(claim, smallest(ratios), f"{label(nearest.policy)} at {place(nearest.setting)}").at_least(1.0)


def fit_exponent(x: Sequence[float], y: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the least-squares exponent b in y ~ x^b, and a bound on its error, given bounds on the errors of log(y)."""
    weights = slope_weights(np.array(x))
    return float(weights @ np.log(np.array(y))), float(np.abs(weights) @ np.array(errors)) + 1e-12


UNINFORMED: tuple[Policy, ...] = (
    *(library.AdaRUCB(), library.AdaKLUCB(), library.UCB1(), library.ForceMoM(), library.OptTINF()),
    *(library.AdaTINF(), library.UniINF(), library.RUCBTEA(), library.RUCBMoM(), library.EpsilonGreedy()),
    *(library.Uniform(), library.Oracle(arm=0), library.Oracle(arm=1)),
)
"""Policies that know neither eps nor u; the last two always pull one arm."""

OnPair = Played[PairBound]
"""A policy on a pair, with the larger of its normalised regrets."""


def escapes(runs: Sequence[OnPair], place: Callable[[PairBound], str]) -> list[Finding]:
    """Return two findings: no policy is below the bound, and none is below the optimum of its pair. ``place`` names a pair."""
    claim = "No policy escapes on both problems: its larger normalised regret over the bound, smallest of all cases"
    stronger = "No policy beats the best one for its pair, which is known exactly: the same regret over that optimum"
    over_optimum = smallest_ratio(stronger, runs, [run.setting.optimum() for run in runs], place)
    return [
        smallest_ratio(claim, runs, [run.setting.value for run in runs], place),
        replace(over_optimum, must=False),  # a policy may be so close to the optimum that chance decides
    ]


def growth(runs: Sequence[OnPair], x: Callable[[PairBound], float], least: float, claim: str) -> Finding:
    """Return the finding about how the regret of the best policy at each x grows with x."""
    best: dict[float, OnPair] = {}
    for run in runs:
        at = x(run.setting)
        if at not in best or run.regret.measured < best[at].regret.measured:
            best[at] = run
    exponent = slope(np.array(list(best)), np.stack([run.replications for run in best.values()], axis=1))
    note = ", ".join(f"{label(run.policy)} at {at:g}" for at, run in best.items())
    return finding(claim, exponent, note).at_least(least, must=False, asymptotic=True)


def exponent_of_optimum(bounds: Sequence[PairBound], x: Sequence[float], claim: str) -> Finding:
    """Return the finding that the exact optimum of the pairs grows with x as the theorem's exponent predicts.

    The best policy risks y/mass pulls of arm 0, where y e^(k y) = B s. Here B is independent of x, k = -log(1-mass)/mass >= 1
    and s = 1 - pulls/T <= 1; k and s tend to 1. Then W(B) s/k <= y <= W(B), where W is Lambert's function. So the logarithm
    of the optimum differs from its limit by at most log(k/s), and rounding pulls to integers adds at most -log(1-mass). The
    tolerance is the sum of the two.
    """
    optima = [bound.optimum() for bound in bounds]
    errors = []
    for bound, optimum in zip(bounds, optima, strict=True):
        explored = optimum * bound.scales[0] / bound.delta / bound.horizon
        rate = -math.log1p(-bound.mass)
        errors.append(math.log(rate / bound.mass) - math.log1p(-explored) + rate)
    fitted, tolerance = fit_exponent(x, optima, errors)
    exponent, times = bounds[0].exponent, optima[-1] / bounds[-1].value
    note = f"Computed at {x[0]:.0e} to {x[-1]:.0e}; at the end it is {times:.3g} times the bound"
    return finding(claim, fitted, note).between(exponent - tolerance, exponent + tolerance)


def rows(runs: Sequence[OnPair], x: Callable[[PairBound], float], title: str) -> list[Row]:
    """Return a row per policy and x, with the theorem's bound as the limit, and a row for the best policy for each pair."""
    bounds = {x(run.setting): run.setting for run in runs}
    cases = [(x(run.setting), label(run.policy), run.regret, run.setting.value) for run in runs]
    cases += [(at, "(best for the pair)", sure(bound.optimum()), bound.value) for at, bound in bounds.items()]
    return [row_of(regret, case=f"{title} = {at:,g}", series=name, limit=limit) for at, name, regret, limit in cases]
