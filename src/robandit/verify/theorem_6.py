"""Theorem 6: the trimmed mean is close to the mean for every law, with or without the assumption."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from robandit.estimators.adaptive import theorem_6
from robandit.estimators.row_moments import row_means, trimmed
from robandit.kernel.types import Floats
from robandit.laws import Discrete, Law
from robandit.verify import drawn_samples as drawn
from robandit.verify.figure import Cases
from robandit.verify.interval_arithmetic import joint_confidence, largest
from robandit.verify.statement import Effort, Evidence, Statement, Track, arithmetic, finding, number, untracked

__all__ = ["STATEMENT", "run"]

# A gain of 1 in 640 values, with noise. One in ten samples of 64 contains it, and then the plain mean is off by 1/64.
RARE_GAIN = Discrete(values=(-1e-6, 1e-6, 1.0), probabilities=(639 / 1280, 639 / 1280, 1 / 640))
LAWS: dict[str, Law] = {**drawn.NONPOSITIVE, **drawn.POSITIVE, "rare gain": RARE_GAIN}
Case = tuple[str, int, float]


def run(
    effort: Effort,
    track: Track = untracked,
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
    eps = np.linspace(0.0, 1.0, 100_001)
    constant = float((math.sqrt(2.0) + 1.0 / 3.0 + (1.0 + 2.0 * math.sqrt(2.0)) ** (2.0 * eps / (1.0 + eps))).max())
    findings = (
        finding(
            "for every law the bound fails with probability at most 4 delta: failure rate over 4 delta, worst case",
            largest(
                drawn.failure_rate(int((error > 1.0).sum()), trials, 4.0 * delta, confidence)
                for (_, _, delta), error in errors.items()
            ),
            most=1.0,
            note=f"{len(drawn.POSITIVE) + 1} of the {len(LAWS)} laws violate the assumption. For the best of ten "
            "orders eps at once.",
        ),
        arithmetic(
            "5.6 is large enough: the largest sqrt 2 + 1/3 + (1 + 2 sqrt 2)^(2 eps/(1+eps)) for eps up to 1",
            constant,
            most=5.6,
            note="At eps = 1.",
        ),
        arithmetic(
            "8 with s = 2 N is the same bound as 5.6 with N, rounded up: the largest 5.6 2^(eps/(1+eps))",
            5.6 * float((2.0 ** (eps / (1.0 + eps))).max()),
            most=8.0,
            misprints=("6",),
            note="N is the size of one half, as everywhere here. The threshold equation is the same with s and with N.",
        ),
        finding(
            "sharpness: the error that is exceeded with probability 4 delta, over its bound, largest case",
            largest(exceeded.values()),
            most=1.0,
            must=False,
            note=f"The median error is at most {number(max(float(np.median(error)) for error in errors.values()))} of the bound.",
        ),
        finding(
            "without trimming the mean breaks the bound: failure rate over 4 delta, worst case",
            largest(
                drawn.failure_rate(count, trials, 4.0 * delta, confidence) for (_, _, delta), count in untrimmed.items()
            ),
            least=1.0,
            must=False,
            note=f"Samples of {sizes[0]} from the rare gain, delta = {drawn.DELTAS[1]:g}: exactly {number(_exactly(sizes[0]))}.",
        ),
    )
    return Evidence(
        ran=f"{trials:,} pairs of samples of N = {drawn.listed(sizes)} values from {len(LAWS)} laws, "
        f"delta {drawn.listed(drawn.DELTAS)}: {drawn.joint_text(len(errors), confidence)}.",
        findings=findings,
        figure=Cases(
            rows=drawn.worst_rows(((law, delta, interval) for (law, _, delta), interval in exceeded.items()), 1.0),
            x_title="error over its bound",
            log_x=True,
        ),
        caption="The error of the trimmed mean that is exceeded with probability 4 delta, over 5.6 u^(1/(1+eps)) "
        "(L/N)^(eps/(1+eps)), at the size N where it is largest, with its interval. It must be below 1 (black).",
    )


def _exactly(n: int) -> float:
    """Return how often a sample of n contains the rare gain, over 4 delta."""
    return (1.0 - (1.0 - RARE_GAIN.probabilities[-1]) ** n) / (4.0 * drawn.DELTAS[1])


STATEMENT = Statement(
    key="theorem-6",
    name="Theorem 6",
    says="|muhat - mu| <= 5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps)) with probability at least 1 - 4 delta, N the size of one half, "
    "for every law with E|X|^(1+eps) <= u.",
    run=run,
)
