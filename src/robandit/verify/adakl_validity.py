"""Lemma B of docs/explanation/adakl-theorem.md (ours): AdaKL-UCB's index is below the mean with probability at most exp(-L)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from robandit.estimators.formulas.likelihood import proved_exponent
from robandit.estimators.likelihood import row_bounds
from robandit.estimators.row_moments import trimmed
from robandit.intervals import Interval
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.verify import drawn_samples as drawn
from robandit.verify.interval_arithmetic import joint_confidence, largest, smallest
from robandit.verify.lemma_2 import FITTING, SKEWED
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, finding, silent

Exponent = Callable[[float, float], float]
Thresholds = Callable[[Floats, float], Floats]
POINTS = 4_001  # values of x at which S(x) is compared with the grid


class Case(NamedTuple):
    """The trials for one law, size and delta: failures with the exponent of the lemma, and without its union term."""

    law: str
    delta: float
    trials: int
    failures: int
    bare: int

    def rate(self, confidence: float, bare: bool = False) -> Interval:
        """Return the failure rate in units of delta."""
        return drawn.failure_rate(self.bare if bare else self.failures, self.trials, self.delta, confidence)


def run(
    effort: Effort,
    track: Track = silent,
    *,
    exponent: Exponent = proved_exponent,
    thresholds: Thresholds = drawn.roots,
    laws: Mapping[str, Law] = FITTING,
) -> Evidence:
    """Count how often the index is below the mean, for laws that satisfy the assumption and for laws that do not."""
    sizes, trials = (64, 512), effort.of(2_000, 10_000)
    groups = (("fit", laws, sizes), ("skewed", SKEWED, sizes[1:]))
    jobs = [(group, *item, n) for group, members, some in groups for item in members.items() for n in some]
    cases: dict[str, list[Case]] = {"fit": [], "skewed": []}
    for place, (group, name, law, n) in enumerate(track(jobs)):
        cases[group] += _count(name, law, n, trials, exponent, thresholds, effort, place)
    count = sum(map(len, cases.values()))
    confidence = joint_confidence(count)
    every = [(case.law, case.delta, case.rate(confidence)) for members in cases.values() for case in members]
    return Evidence(
        ran=f"{trials:,} pairs of samples of {drawn.listed(sizes)} values from {len(laws)} laws that satisfy the assumption and "
        f"{len(SKEWED)} that do not, delta = exp(-L) = {drawn.listed(drawn.DELTAS)}, threshold from the second sample: "
        f"{drawn.joint_text(count, confidence)}.",
        findings=_findings(cases, effort, confidence),
        rows=drawn.worst_rows(every, 1.0),
        title="failure rate / delta",
        caption="The share of samples whose index is below the mean, divided by delta, at the size where it is largest. Lemma B "
        "allows 1. Only laws that violate the assumption are above it.",
    )


def _count(
    name: str, law: Law, n: int, trials: int, exponent: Exponent, thresholds: Thresholds, effort: Effort, place: int
) -> list[Case]:
    deltas = drawn.deltas_for(law, n)
    failures, bare = dict.fromkeys(deltas, 0), dict.fromkeys(deltas, 0)
    for x, other in drawn.blocks(law, n, trials if deltas else 0, effort, 31, place):
        for delta in deltas:
            level = math.log(1.0 / delta)
            solved = thresholds(other, level)
            rooted, lost = drawn.usable(solved, other, level)
            kept = trimmed(x[rooted], solved[rooted])
            for counted, a in ((failures, exponent(level, n)), (bare, level / n)):
                counted[delta] += int((row_bounds(kept, solved[rooted], a) < law.mean).sum()) + lost
    return [Case(name, delta, trials, failures[delta], bare[delta]) for delta in deltas]


def _findings(cases: Mapping[str, list[Case]], effort: Effort, confidence: float) -> tuple[Finding, ...]:
    return (
        finding(
            "under the assumption the index is below the mean with probability at most delta: rate over delta, worst case",
            largest(case.rate(confidence) for case in cases["fit"]),
        ).at_most(1.0),
        finding(
            "without the assumption it is below more often: rate over delta, smallest of the cases",
            smallest(case.rate(confidence) for case in cases["skewed"]),
            "The cases are Pareto with tail 1.1, and a rare large gain.",
        ).at_least(1.0),
        finding(
            "S(x) exceeds a neighbour in the grid of n + 2 points by at most n log(1 + 1/n): the largest excess, over that",
            grid_cost(effort),
            "Samples of 1 to 50 values w <= 1, with heavy left tails or two values.",
        ).at_most(1.0),
        finding(
            "without log(e (n + 2)) in the exponent: rate over delta, worst case under the assumption",
            largest(case.rate(confidence, bare=True) for case in cases["fit"]),
            "It is measured, not proved.",
        ).at_most(1.0, must=False),
    )


def grid_cost(effort: Effort, coarser: int = 1) -> float:
    """Return the largest S(x) minus the larger S at the neighbours of x, over n log(1 + 1/n), in a grid of n/coarser steps."""
    generator = np.random.default_rng(effort.stream(31, 1_000))
    x = np.linspace(0.0, 1.0, POINTS)[1:-1]
    worst = -math.inf
    for place in range(effort.of(200, 2_000)):
        n = int(generator.integers(1, 51))
        left = generator.pareto(generator.uniform(0.3, 3.0), n) * 10.0 ** generator.uniform(-3.0, 3.0)
        if place % 2:  # either 1 or far below: S then has its sharpest peaks
            left = np.where(generator.random(n) < generator.random(), 0.0, 1e9)
        steps = math.ceil((n + 1) / coarser)
        below = np.floor(x * steps) / steps
        above = np.minimum(below + 1.0 / steps, 1.0 - 1e-15)
        here, down, up = (np.log1p(each[:, None] * (left - 1.0)).sum(axis=1) for each in (x, below, above))
        worst = max(worst, float((here - np.maximum(down, up)).max()) / (n * math.log1p(1.0 / n)))
    return worst


STATEMENT = Statement(
    key="adakl-validity",
    name="AdaKL Lemma B (ours)",
    says="The likelihood bound with exponent (L + log(e (n + 2)))/n of rewards trimmed at an independent threshold is below the "
    "mean with probability at most exp(-L), if E[X 1{|X| > m}] <= 0 for all m.",
    run=run,
    ours=True,
)
