"""Shared by the checks of Theorems 2 and 3: policies that know neither eps nor u, on pairs of problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from robandit import policies as library
from robandit.policies import Policy
from robandit.theory.lower_bounds import PairBound
from robandit.verify.figure import Curves, row_of
from robandit.verify.hard_problems import Played, fit_exponent, label, smallest_ratio
from robandit.verify.interval_arithmetic import slope
from robandit.verify.statement import Finding, finding

UNINFORMED: tuple[Policy, ...] = (
    *(library.AdaRUCB(), library.AdaKLUCB(), library.UCB1(), library.ForceMoM(), library.OptTINF()),
    *(library.AdaTINF(), library.UniINF(), library.RUCBTEA(), library.RUCBMoM(), library.EpsilonGreedy()),
    *(library.Uniform(), library.Oracle(arm=0), library.Oracle(arm=1)),
)
"""Policies that know neither eps nor u; the last two always pull one arm."""

OnPair = Played[PairBound]
"""A policy on a pair, with the larger of its normalised regrets."""


def escapes(runs: Sequence[OnPair], place: Callable[[PairBound], str]) -> list[Finding]:
    """Return whether a policy gets below the bound, or below the best policy for its pair; ``place`` describes a pair."""
    claim = "No policy escapes on both problems: its larger normalised regret over the bound, smallest of all cases"
    stronger = "No policy beats the best one for its pair, which is known exactly: the same regret over that optimum"
    over_optimum = smallest_ratio(stronger, runs, [run.setting.optimum() for run in runs], place)
    return [
        smallest_ratio(claim, runs, [run.setting.value for run in runs], place),
        replace(over_optimum, must=False),  # a policy may come so near that chance decides
    ]


def growth(runs: Sequence[OnPair], x: Callable[[PairBound], float], least: float, claim: str) -> Finding:
    """Return the finding about the exponent in x of the best policy at each x."""
    best: dict[float, OnPair] = {}
    for run in runs:
        at = x(run.setting)
        if at not in best or run.regret.measured < best[at].regret.measured:
            best[at] = run
    exponent = slope(np.array(list(best)), np.stack([run.replications for run in best.values()], axis=1))
    note = ", ".join(f"{label(run.policy)} at {at:g}" for at, run in best.items())
    return finding(claim, exponent, note).at_least(least, must=False, asymptotic=True)


def exponent_of_optimum(bounds: Sequence[PairBound], x: Sequence[float], claim: str) -> Finding:
    """Return the finding about how the exact optimum of the pairs grows with x, against the theorem's exponent.

    The best policy risks y/mass pulls of arm 0, where y e^(k y) = B s, with B independent of x, k = -log(1-mass)/mass >= 1 and
    s = 1 - pulls/T <= 1; both tend to 1. Then W(B) s/k <= y <= W(B), where W is Lambert's function. So the logarithm of the
    optimum differs from its limit by at most log(k/s), and rounding pulls to integers adds at most -log(1-mass). The tolerance
    follows from this.
    """
    optima = [bound.optimum() for bound in bounds]
    errors = []
    for bound, optimum in zip(bounds, optima, strict=True):
        explored = optimum * bound.scales[0] / bound.delta / bound.horizon
        rate = -math.log1p(-bound.mass)
        errors.append(math.log(rate / bound.mass) - math.log1p(-explored) + rate)
    fitted, tolerance = fit_exponent(x, optima, errors)
    exponent = bounds[0].exponent
    note = (
        f"Computed at {x[0]:.0e} to {x[-1]:.0e}; at the end it is {optima[-1] / bounds[-1].value:.3g} times the bound"
    )
    return finding(claim, fitted, note).between(exponent - tolerance, exponent + tolerance)


def figure(runs: Sequence[OnPair], x: Callable[[PairBound], float], x_title: str) -> Curves:
    """Return the figure of all policies over x, with the bound and the optimum as limits."""
    bounds = {x(run.setting): run.setting for run in runs}
    return Curves(
        rows=[row_of(r.regret, "y", x=x(r.setting), series=label(r.policy)) for r in runs if r.regret.measured > 0.0],
        limits=[{"x": at, "y": bound.optimum(), "series": "(best for the pair)"} for at, bound in bounds.items()]
        + [{"x": at, "y": bound.value, "series": "(lower bound)"} for at, bound in bounds.items()],
        x_title=x_title,
        y_title="larger normalised regret",
    )
