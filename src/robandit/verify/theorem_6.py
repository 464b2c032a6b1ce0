"""Theorem 6: the trimmed mean is close to the mean for every law, with or without the assumption."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np

from robandit.estimators.adaptive import theorem_6
from robandit.estimators.row_moments import row_means, trimmed
from robandit.intervals import Interval
from robandit.kernel.types import Floats
from robandit.laws import Discrete, Law
from robandit.verify import drawn_samples as drawn
from robandit.verify.interval_arithmetic import joint_confidence, largest
from robandit.verify.statement import Effort, Evidence, Statement, Track, arithmetic, finding, number, silent

# One value in 640 is a gain of 1; the others are tiny. One sample of 64 in ten contains it, and its plain mean is off by 1/64.
RARE_GAIN = Discrete(values=(-1e-6, 1e-6, 1.0), probabilities=(639 / 1280, 639 / 1280, 1 / 640))
LAWS: dict[str, Law] = {**drawn.LAWS, "rare gain": RARE_GAIN}
Case = tuple[str, int, float]


def run(
    effort: Effort,
    track: Track = silent,
    *,
    width: Callable[[float, int, float, float], float] = theorem_6,
    thresholds: Callable[[Floats, float], Floats] = drawn.roots,
) -> Evidence:
    """Count how often the error of the trimmed mean exceeds its bound."""
    sizes, trials = drawn.sizes_and_trials(effort)
    errors: dict[Case, Floats] = {}
    untrimmed: dict[Case, int] = defaultdict(int)
    for place, (name, law, n) in enumerate(track([(name, law, n) for name, law in LAWS.items() for n in sizes])):
        deltas = drawn.deltas_for(law, n)
        parts: dict[float, list[Floats]] = {delta: [] for delta in deltas}
        for x, other in drawn.blocks(law, n, trials if deltas else 0, effort, 6, place):
            for delta in deltas:
                level = math.log(1.0 / delta)
                solved = thresholds(other, level)
                rooted, lost = drawn.usable(solved, other, level)
                error = np.zeros(len(solved))  # a sample without a threshold does not fail
                bound = min(width(level, n, e, u) for e, u in zip(*drawn.orders(law), strict=True))
                error[rooted] = np.abs(row_means(trimmed(x[rooted], solved[rooted])) - law.mean) / bound
                error[np.flatnonzero(~rooted)[:lost]] = drawn.LOST
                parts[delta].append(error)
                untrimmed[name, n, delta] += int((np.abs(row_means(x) - law.mean) > bound).sum())
        errors |= {(name, n, delta): np.concatenate(parts[delta]) for delta in deltas}

    confidence = joint_confidence(len(errors))
    exceeded = {case: drawn.quantile(error, 1.0 - 4.0 * case[2], confidence) for case, error in errors.items()}
    eps, root_2 = np.linspace(0.0, 1.0, 100_001), math.sqrt(2.0)
    # The probability that a sample contains the rare gain, divided by 4 delta.
    exactly = (1.0 - (1.0 - RARE_GAIN.probabilities[-1]) ** sizes[0]) / (4.0 * drawn.DELTAS[1])

    def worst(failures: Mapping[Case, int]) -> Interval:
        return largest(drawn.failure_rate(k, trials, 4.0 * case[2], confidence) for case, k in failures.items())

    return Evidence(
        ran=f"{trials:,} pairs of samples of N = {drawn.listed(sizes)} values from {len(LAWS)} laws, "
        f"delta {drawn.listed(drawn.DELTAS)}: {drawn.joint_text(len(errors), confidence)}.",
        findings=(
            finding(
                "for every law the bound fails with probability at most 4 delta: failure rate over 4 delta, worst case",
                worst({case: int((error > 1.0).sum()) for case, error in errors.items()}),
                f"{len(drawn.POSITIVE) + 1} of the {len(LAWS)} laws violate the assumption. The bound is the smallest for ten "
                "orders eps.",
            ).at_most(1.0),
            arithmetic(
                "5.6 is large enough: the largest sqrt 2 + 1/3 + (1 + 2 sqrt 2)^(2 eps/(1+eps)) for eps up to 1",
                float((root_2 + 1.0 / 3.0 + (1.0 + 2.0 * root_2) ** (2.0 * eps / (1.0 + eps))).max()),
                "It is largest at eps = 1.",
            ).at_most(5.6),
            arithmetic(
                "8 with s = 2 N is the same bound as 5.6 with N, rounded up: the largest 5.6 2^(eps/(1+eps))",
                5.6 * float((2.0 ** (eps / (1.0 + eps))).max()),
                "N is always the size of one half here. The threshold equation is the same with s and with N.",
            ).at_most(8.0, misprints=("6",)),
            finding(
                "sharpness: the error that is exceeded with probability 4 delta, over its bound, largest case",
                largest(exceeded.values()),
                f"The median error is at most {number(max(float(np.median(e)) for e in errors.values()))} of the bound.",
            ).at_most(1.0, must=False),
            finding(
                "without trimming the mean breaks the bound: failure rate over 4 delta, worst case",
                worst(untrimmed),
                f"For samples of {sizes[0]} with a rare gain and delta = {drawn.DELTAS[1]:g}, the exact rate is {number(exactly)}.",
            ).at_least(1.0, must=False),
        ),
        rows=drawn.worst_rows(((law, delta, interval) for (law, _, delta), interval in exceeded.items()), 1.0),
        title="error over its bound",
        caption="The error of the trimmed mean that is exceeded with probability 4 delta, over 5.6 u^(1/(1+eps)) "
        "(L/N)^(eps/(1+eps)), at the size N where it is largest, with its interval. It must be below 1.",
    )


STATEMENT = Statement(
    key="theorem-6",
    name="Theorem 6",
    says="|muhat - mu| <= 5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps)) with probability at least 1 - 4 delta, N the size of one half, "
    "for every law with E|X|^(1+eps) <= u.",
    run=run,
)
