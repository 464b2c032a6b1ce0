"""Lemmas C to F of docs/explanation/adakl-theorem.md (ours): the index of a worse arm is not far above its mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from robandit.estimators.formulas.threshold import C
from robandit.estimators.likelihood import row_bounds
from robandit.estimators.row_moments import row_means, trimmed
from robandit.intervals import Interval
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.theory.adakl_bounds import BASE, EXTRA, SPREAD, TAIL, width_constant
from robandit.verify import drawn_samples as drawn
from robandit.verify.interval_arithmetic import joint_confidence, largest
from robandit.verify.regret import standard_cases
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, arithmetic, finding, number, silent

Constant = Callable[[float], float]
SHARE = 5.0 / 6.0  # x: events of a worse arm have probability exp(-x L)
UNION = 1.39  # k: the exponent is at most k L/n in late rounds
FEWEST = 62.0  # n/L exceeds it in late rounds
FIRST_LATE = 1341
ROUNDING = 1e-12
LEMMAS = ("C1", "C2", "D1", "D2", "F")


class Case(NamedTuple):
    """The trials for one law, size and delta: failures of each inequality, and (U - mean)/(B w) of each trial."""

    law: str
    delta: float
    trials: int
    failures: dict[str, int]
    ratios: Floats

    def rate(self, lemma: str, confidence: float) -> Interval:
        """Return the failure rate over the allowed one: delta, or 4 delta for Lemma F, which needs the four others."""
        allowed = self.delta * (4.0 if lemma == "F" else 1.0)
        return drawn.failure_rate(self.failures[lemma], self.trials, min(allowed, 1.0), confidence)


def run(
    effort: Effort,
    track: Track = silent,
    *,
    constant: Constant = width_constant,
    base: float = BASE,
    tail: float = TAIL,
    share: float = SHARE,
) -> Evidence:
    """Count how often each inequality fails, for laws with and without the assumption; a worse arm does not need it."""
    sizes, trials = effort.of(((512,), 2_000), ((512, 4096), 10_000))
    cases: list[Case] = []
    for place, (name, law, n) in enumerate(track([(name, law, n) for name, law in drawn.LAWS.items() for n in sizes])):
        for delta in drawn.DELTAS:
            level = math.log(1.0 / delta) / SHARE
            if n > FEWEST * level and drawn.enough(law, n, level):
                cases.append(_count(name, law, n, delta, trials, (constant, base, tail, share), effort, place))
    confidence = joint_confidence(len(LEMMAS) * len(cases))
    rates = {lemma: largest(case.rate(lemma, confidence) for case in cases) for lemma in LEMMAS}
    ratios = [(case.law, case.delta, drawn.quantile(case.ratios, 1.0 - 4.0 * case.delta, confidence)) for case in cases]
    return Evidence(
        ran=f"{trials:,} pairs of samples of {drawn.listed(sizes)} values from {len(drawn.LAWS)} laws, delta = exp(-5 L/6) = "
        f"{drawn.listed(drawn.DELTAS)}, the exponent at its largest, {UNION:g} L/n, and the smallest bound of ten orders eps: "
        f"{drawn.joint_text(len(LEMMAS) * len(cases), confidence)}.",
        findings=(
            *(_rate(lemma, text, rates[lemma]) for lemma, text in _texts(base, tail).items()),
            finding(
                "(F) the index is at most mean + B u^(1/p) (L/n)^q except with probability 4 delta: failure rate over 4 delta",
                rates["F"],
                f"The largest ratio of a sample is {number(max(float(case.ratios.max()) for case in cases))}.",
            ).at_most(1.0),
            _gaps(),
            *_arithmetic(),
        ),
        rows=drawn.worst_rows(ratios, 1.0),
        title="(index - mean) / (B u^(1/p) (L/n)^q)",
        caption="The index minus the mean, over its bound in Lemma F, that is exceeded with probability 4 delta, at the size where "
        "it is largest. It must be below 1.",
    )


def _texts(base: float, tail: float) -> dict[str, str]:
    return {
        "C1": f"M <= (u n/({base:g} L))^(1/p)",
        "C2": f"P(|X| > M) <= {tail:g} L/n",
        "D1": "mean Z <= E Z + sigma sqrt(2 x L/n) + x M L/(3 n), at a fixed M",
        "D2": "sqrt(mean Z^2) <= sigma + M sqrt(x L/(2 n)), at a fixed M",
    }


def _rate(lemma: str, text: str, rate: Interval) -> Finding:
    return finding(f"({lemma}) {text}: failure rate over delta, worst case", rate).at_most(1.0)


def _count(
    name: str,
    law: Law,
    n: int,
    delta: float,
    trials: int,
    constants: tuple[Constant, float, float, float],
    effort: Effort,
    place: int,
) -> Case:
    constant, base, tail, x = constants
    level = math.log(1.0 / delta) / SHARE
    eps, u = drawn.orders(law)
    p, q = 1.0 + eps, eps / (1.0 + eps)
    bound = float(np.min(np.array([constant(e) for e in eps.tolist()]) * u ** (1.0 / p) * (level / n) ** q))
    # C1 is for all orders, so M is compared with the smallest bound. D is for any M; here it has the largest order's.
    smallest = float(((u * n / (base * level)) ** (1.0 / p)).min())
    fixed = float((u[-1] * n / (BASE * level)) ** (1.0 / p[-1]))
    sigma = math.sqrt(u[-1] * fixed ** (1.0 - eps[-1]))
    most_mean = (
        law.mean - law.partial_mean(fixed) + sigma * math.sqrt(2.0 * x * level / n) + x * fixed * level / (3.0 * n)
    )
    most_root = sigma + fixed * math.sqrt(x * level / (2.0 * n))
    failures = dict.fromkeys(LEMMAS, 0)
    ratios = []
    for sample, other in drawn.blocks(law, n, trials, effort, 32, place):
        kept = trimmed(sample, np.full(len(sample), fixed))
        failures["D1"] += int((row_means(kept) > most_mean).sum())
        failures["D2"] += int((np.sqrt(np.square(kept).mean(axis=1)) > most_root).sum())
        solved = drawn.roots(other, level)
        rooted, lost = drawn.usable(solved, other, level)
        m = solved[rooted]
        failures["C1"] += int((m > smallest).sum()) + lost
        beyond = 1.0 - law.cdf(m) + law.cdf(np.nextafter(-m, -math.inf))
        failures["C2"] += int((beyond > tail * level / n).sum()) + lost
        index = row_bounds(trimmed(sample[rooted], m), m, UNION * level / n)
        ratios.append(np.append((index - law.mean) / bound, np.full(lost, drawn.LOST)))
    every = np.concatenate(ratios)
    failures["F"] = int((every > 1.0).sum())
    return Case(name, delta, trials, failures, every)


def _gaps() -> Finding:
    """Return the finding about Lemma E on the problems of Theorem 7."""
    ratios = []
    for case in standard_cases():
        q = case.eps / (1.0 + case.eps)
        for law, gap in zip(case.problem.laws, case.problem.gaps.tolist(), strict=True):
            if gap > 0.0:
                size = law.absolute_moment(1.0 + case.eps) ** (1.0 - q)
                ratios.append(gap / (size * law.nonzero_probability**q))
    return finding(
        "(E) gap <= u^(1/p) P(X != 0)^q: the largest ratio over the worse arms of Theorem 7's problems",
        max(ratios),
        "So forced exploration is never the larger term. It is 1 if the best mean is 0 and the losses are constant.",
    ).at_most(1.0 + ROUNDING)


def _arithmetic() -> tuple[Finding, ...]:
    spread = math.sqrt(2.0 * SHARE) + math.sqrt(2.0 * UNION) + UNION / math.sqrt(FEWEST)
    linear = SHARE / 3.0 + math.sqrt(UNION * SHARE) + UNION * math.sqrt(SHARE / 2.0 / FEWEST) + UNION
    late = float(FIRST_LATE)
    return (
        arithmetic("Chernoff's exponent of (C1), which must be at least 5/6", _chernoff(BASE)).at_least(SHARE),
        arithmetic("Chernoff's exponent of (C2), which must be at least 5/6", _chernoff(TAIL)).at_least(SHARE),
        arithmetic(
            f"the factor of {BASE:g}^q in B: the sum of the terms in sigma and M, and 0.002 for n/n'",
            spread / math.sqrt(BASE) + linear / BASE + 0.002,
        ).at_most(SPREAD),
        arithmetic("B^2 at eps = 1, the least n/L of a late round", width_constant(1.0) ** 2).at_least(FEWEST),
        arithmetic(
            f"no round before {FIRST_LATE:,} is late: tau - 1 - 186 log tau at {FIRST_LATE - 1:,}",
            late - 2.0 - 3.0 * FEWEST * math.log(late - 1.0),
        ).at_most(0.0),
        arithmetic(
            f"the exponent in round {FIRST_LATE:,}, in units of L/n",
            1.0 + (1.0 + math.log(late + 1.0)) / (3.0 * math.log(late)),
        ).at_most(UNION),
        arithmetic(
            "the expected number of late rounds of an arm", 8.0 / math.sqrt(late - 1.0) + 2.0 / (late - 1.0)
        ).at_most(EXTRA - 1.0),
    )


def _chernoff(mean: float) -> float:
    """Return the exponent of P(S on the other side of c L) for a mean of ``mean`` L, over L."""
    return C * math.log(C / mean) - C + mean


STATEMENT = Statement(
    key="adakl-width",
    name="AdaKL Lemmas C-F (ours)",
    says="Except with probability 4 exp(-5 L/6), the index of an arm with n > 62 L rewards exceeds its mean by at most "
    "B u^(1/(1+eps)) (L/n)^(eps/(1+eps)), B = 2.7 * 3.2^q + 9.6^q, q = eps/(1+eps).",
    run=run,
    ours=True,
)
