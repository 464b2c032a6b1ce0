"""Policies that know neither eps nor u on pairs of problems: what the checks of Theorems 2 and 3 share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies import (
    RUCBTEA,
    UCB1,
    AdaKLUCB,
    AdaRUCB,
    AdaTINF,
    EpsilonGreedy,
    ForceMoM,
    OptTINF,
    Oracle,
    Policy,
    RUCBMoM,
    Uniform,
    UniINF,
)
from robandit.theory.lower_bounds import PairBound
from robandit.verify import drawing
from robandit.verify.hard_problems import Tell, fit, larger, played, shown
from robandit.verify.statement import Effort, Finding, Track
from robandit.verify.statistics import Interval, slope, smallest, sure

__all__ = ["UNTOLD", "OnPair", "escapes", "exponent_of_optimum", "figure", "growth", "on_pairs"]

UNTOLD: tuple[Policy, ...] = (
    AdaRUCB(),
    AdaKLUCB(),
    UCB1(),
    ForceMoM(),
    OptTINF(),
    AdaTINF(),
    UniINF(),
    RUCBTEA(),
    RUCBMoM(),
    EpsilonGreedy(),
    Uniform(),
    Oracle(arm=0),
    Oracle(arm=1),
)
"""Policies that know neither eps nor u; the last two pull one arm always."""


class OnPair(NamedTuple):
    """A policy on a pair: the larger of its normalised regrets, and the replications of that one."""

    bound: PairBound
    policy: Policy
    seen: Interval
    regrets: Floats


def on_pairs(
    bounds: Sequence[PairBound],
    policies: Sequence[Policy],
    replications: int,
    *,
    effort: Effort,
    track: Track,
    tell: Tell,
    key: int,
) -> list[OnPair]:
    """Every policy on every pair, with intervals that all hold together, nominally, with 99 % confidence."""
    confidence = 1.0 - 0.01 / (2 * len(bounds) * len(policies))
    runs = []
    for i, bound in enumerate(track(bounds)):
        regrets = played(
            policies,
            bound.problems(),
            bound.orders[0],
            bound.horizon,
            replications,
            effort=effort,
            tell=tell,
            key=(key, i),
        )
        scales = np.array(bound.scales)[:, None]
        for policy, pair in zip(policies, regrets, strict=True):
            runs.append(OnPair(bound, policy, *larger(pair / scales, confidence)))
    return runs


def escapes(runs: Sequence[OnPair], place: Callable[[PairBound], str]) -> list[Finding]:
    """Whether a policy gets below the bound, or below the best policy for its pair; ``place`` says where a pair belongs."""

    def finding(claim: str, floors: Sequence[float], must: bool) -> Finding:
        ratios = [Interval(*(end / floor for end in run.seen)) for run, floor in zip(runs, floors, strict=True)]
        nearest = min(range(len(runs)), key=lambda i: ratios[i].measured)
        return Finding(
            claim=claim,
            **smallest(ratios)._asdict(),
            least=1.0,
            must=must,
            note=f"{shown(runs[nearest].policy)} at {place(runs[nearest].bound)}",
        )

    return [
        finding(
            "No policy escapes on both problems: its larger normalised regret over the bound, smallest of all cases",
            [run.bound.value for run in runs],
            True,
        ),
        finding(
            "None beats the best policy for its pair, which is known exactly: the same over that optimum",
            [run.bound.optimum() for run in runs],
            False,  # more than the theorem says: a policy may come so near that chance decides
        ),
    ]


def growth(runs: Sequence[OnPair], x: Callable[[PairBound], float], least: float, claim: str) -> Finding:
    """The exponent in x of the best policy at each x."""
    best: dict[float, OnPair] = {}
    for run in runs:
        at = x(run.bound)
        if at not in best or run.seen.measured < best[at].seen.measured:
            best[at] = run
    seen = slope(np.array(list(best)), np.stack([run.regrets for run in best.values()], axis=1))
    return Finding(
        claim=claim,
        **seen._asdict(),
        least=least,
        must=False,
        asymptotic=True,
        note=", ".join(f"{shown(run.policy)} at {at:g}" for at, run in best.items()),
    )


def exponent_of_optimum(bounds: Sequence[PairBound], x: Sequence[float], claim: str) -> Finding:
    """How the pairs' exact optimum grows with x, against the theorem's exponent.

    The best policy risks y/mass pulls of arm 0, where y e^(k y) = B s, with B free of x, k = -log(1-mass)/mass >= 1 and s = 1 -
    pulls/T <= 1; both tend to 1. Then W(B) s/k <= y <= W(B), W being Lambert's function: the logarithm of the optimum is off its
    limit by at most log(k/s), and whole pulls add at most -log(1-mass). That is the tolerance.
    """
    optima = [bound.optimum() for bound in bounds]
    off = []
    for bound, optimum in zip(bounds, optima, strict=True):
        tried = optimum * bound.scales[0] / bound.delta / bound.horizon
        rate = -math.log1p(-bound.mass)
        off.append(math.log(rate / bound.mass) - math.log1p(-tried) + rate)
    fitted, tolerance = fit(x, optima, off)
    exponent = bounds[0].exponent
    return Finding(
        claim=claim,
        **sure(fitted)._asdict(),
        least=exponent - tolerance,
        most=exponent + tolerance,
        note=f"Computed at {x[0]:.0e} to {x[-1]:.0e}; at the end it is {optima[-1] / bounds[-1].value:.3g} times the bound",
    )


def figure(runs: Sequence[OnPair], x: Callable[[PairBound], float], x_title: str) -> dict[str, Any]:
    """Policies over x, with the bound and the optimum dashed."""
    bounds = {x(run.bound): run.bound for run in runs}
    return drawing.curves(
        [
            {
                "x": x(run.bound),
                "y": run.seen.measured,
                "low": run.seen.low,
                "high": run.seen.high,
                "series": shown(run.policy),
            }
            for run in runs
            if run.seen.measured > 0.0
        ],
        [{"x": at, "y": bound.optimum(), "series": "(best for the pair)"} for at, bound in bounds.items()]
        + [{"x": at, "y": bound.value, "series": "(lower bound)"} for at, bound in bounds.items()],
        x_title=x_title,
        y_title="larger normalised regret",
    )
