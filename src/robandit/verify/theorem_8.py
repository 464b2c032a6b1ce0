"""Theorem 8: AdaR-UCB's regret at the hardest gaps grows like (K log T)^(eps/(1+eps)) (u T)^(1/(1+eps))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robandit.estimators.formulas.threshold import C
from robandit.intervals import mean_interval
from robandit.kernel.types import Floats
from robandit.laws import Constant, Gaussian
from robandit.live.bandit import Bandit
from robandit.policies.adar.adar_ucb import AdaRUCB
from robandit.policies.base import Policy
from robandit.problems import Problem, lower_bound_family, student_t
from robandit.theory.adar_bounds import printed_worst_case, repaired_worst_case
from robandit.verify.drawn_samples import always
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest, shifted, slope
from robandit.verify.regret import Bound, Case, Measured, compare, over_bound, play, telling
from robandit.verify.statement import (
    Effort,
    Evidence,
    Finding,
    Row,
    Statement,
    Track,
    arithmetic,
    finding,
    row_of,
    silent,
)

MULTIPLES = (2.0, 4.0, 8.0, 16.0)
EPS = (1.0, 0.6, 0.3)
ODD = 1_001
FEW = 4  # replications of problems whose regret hardly varies


def wide_cases() -> tuple[Case, ...]:
    """Return problems with eps = 1, two arms and gaps of nearly u^(1/2), the largest possible."""
    # Only on such problems, from T = 1.4 million on, is the repaired bound below the regret of uniform play.
    calm = Gaussian(0.0, 0.01)
    return (
        Case("always -1, gap 1", Problem([calm, Constant(-1.0)]), 1.0),
        Case("normal about -1, gap 1", Problem([calm, Gaussian(-1.0, 0.3)]), 1.0),
    )


class Family(NamedTuple):
    """Problems whose gap shrinks with T."""

    kind: str
    eps: float
    arms: int

    @property
    def name(self) -> str:
        """Its description."""
        return f"{self.kind}, eps {self.eps:g}, K = {self.arms}"

    @property
    def size(self) -> float:
        """u^(1/(1+eps)) of a law without a gap."""
        p = 1.0 + self.eps
        u = student_t([0.0, 0.0], p + 0.2, 100.0).u(self.eps) if self.kind == "Student t" else 0.01
        return float(u ** (1.0 / p))

    def cases(self, horizon: int, smallest: int) -> list[Case]:
        """Return problems with gaps of a few times ``(K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps))``."""
        eps, arms = self.eps, self.arms

        def share(at: int) -> float:
            return float((arms * math.log(at / 2.0) / at) ** (eps / (1.0 + eps)))

        cases = []
        for multiple in MULTIPLES:
            if multiple * share(smallest) > 1.0:  # at the smallest T the moment allows no larger gap
                break
            delta = multiple * share(horizon) * self.size
            if self.kind == "Student t":
                problem = student_t([0.0, *[-delta] * (arms - 1)], 1.0 + eps + 0.2, 100.0)
            else:
                problem = lower_bound_family(arms=arms, eps=eps, u=0.01, delta=delta, best=arms - 1)
            cases.append(Case(f"{self.name}, gap {multiple:g} units", problem, eps))
        return cases


FAMILIES = tuple(Family(kind, eps, arms) for kind in ("Student t", "rare losses") for eps in EPS for arms in (2, 5))


class _Series(NamedTuple):
    """The regret at the gap where it is largest, and the bound at the same gap, for each T."""

    family: Family
    regret: Floats  # one row per replication, one column per T
    limit: Floats


def run(
    effort: Effort,
    track: Track = silent,
    *,
    policy: Policy | None = None,
    bound: Bound = repaired_worst_case,
    families: Sequence[Family] = FAMILIES,
    horizons: Sequence[int] | None = None,
    wide: Sequence[Case] | None = None,
) -> Evidence:
    """Play problems whose gaps shrink with T at the hardest rate, and compare regret and its growth with the bounds."""
    policy = policy or AdaRUCB()
    horizons = horizons or effort.of([6_000, 24_000, 96_000], [8_000, 64_000, 512_000])
    replications = effort.of(16, 48)
    wide = wide_cases() if wide is None else wide
    long = effort.of(2_000_000, 4_000_000)
    count = sum(len(f.cases(horizons[0], horizons[0])) for f in families) * len(horizons) + len(wide)
    confidence = joint_confidence(count)

    played: list[tuple[Case, list[int], Floats]] = []
    series: list[_Series] = []
    for i, item in enumerate(track([*families, *wide])):
        if isinstance(item, Case):
            played.append((item, [long], play(policy, item.problem, [long], FEW, effort, (8, i))))
            continue
        columns, limits = [], []
        for j, horizon in enumerate(horizons):
            cases = item.cases(horizon, horizons[0])
            for k, case in enumerate(cases):
                regret = play(policy, case.problem, [horizon], replications, effort, (8, i, j, k))
                played.append((case, [horizon], regret))
            hardest, _, regret = max(played[-len(cases) :], key=lambda one: one[2].mean())
            columns.append(regret[:, 0])
            limits.append(bound(hardest.problem, horizon, hardest.eps))
        series.append(_Series(item, np.column_stack(columns), np.array(limits)))
    repaired, printed = (compare(each, played, confidence) for each in (bound, printed_worst_case))
    return Evidence(
        ran=f"{policy.name} on {len(families)} families (symmetric about 0 with tail 1.2 + eps; rare losses, Theorem 4's), gaps of "
        f"{MULTIPLES[0]:g} to {MULTIPLES[-1]:g} times (K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps)), T = "
        f"{', '.join(f'{t:,}' for t in horizons)}, {replications} replications; and on {len(wide)} problems with gaps of "
        f"nearly u^(1/2), T = {long:,}, {FEW} replications. The repaired bound is below T times the largest gap in "
        f"{telling(repaired)} of {count} comparisons, each at nominal confidence {confidence:.5f}.",
        findings=(
            *_regret_findings(repaired, printed),
            _exponent(series, horizons, confidence),
            _odd(policy, effort),
            *_arithmetic(),
        ),
        rows=_rows(series, horizons),
        title="regret / u^(1/(1+eps))",
        caption="Mean regret at the gap where it is largest, over T, for two arms. Limit: the repaired bound of Theorem 8 at "
        "the same gap. Both are divided by u^(1/(1+eps)) of a law without a gap.",
    )


def _regret_findings(repaired: Sequence[Measured], printed: Sequence[Measured]) -> tuple[Finding, ...]:
    as_printed = "as printed, proof gap at (robust3): mean regret over the printed bound, worst family, gap and T"
    return (
        over_bound("mean regret over the repaired bound, worst family, gap and T", repaired).at_most(1.0),
        over_bound(as_printed, printed, ". Runs do not prove it for all problems").at_most(1.0, must=False),
    )


def _exponent(series: Sequence[_Series], horizons: Sequence[int], confidence: float) -> Finding:
    at = np.array(horizons, dtype=np.float64)
    excess = []
    for family, regret, limits in series:
        limit = slope(at, limits[None, :]).measured
        excess.append((shifted(slope(at, regret, confidence), limit), family.name, limit))
    worst, name, limit = max(excess)
    return finding(
        "regret at the hardest gap ~ T^x: x minus that of the bound, largest of the families",
        largest(each for each, _, _ in excess),
        f"{name}: {limit + worst.measured:.3g} and {limit:.3g}. At the hardest gap both are close by construction",
    ).at_most(0.0, must=False, asymptotic=True)


def _odd(policy: Policy, effort: Effort) -> Finding:
    """Return the finding about odd horizons: the arm with the highest index gets the pull that remains."""
    laws = student_t([0.0, -0.1, -0.3], 2.5).laws
    runs = effort.of(10, 50)
    successes = []
    for i in range(runs):
        rewards = [law.sample(ODD, effort.stream(16, i, k)) for k, law in enumerate(laws)]
        bandit = Bandit(range(len(laws)), policy, seed=i, compile="now")
        for t in range(ODD - 1):
            arm = bandit.select()
            bandit.update(arm, float(rewards[arm][t]))
        highest_index = max(row.get("index", math.nan) for row in bandit.estimates())
        leftover = next(row for row in bandit.estimates() if row["arm"] == bandit.select())
        successes.append(leftover.get("index") == highest_index < math.inf)
    return always(
        f"for an odd T = {ODD:,} the arm with the highest index gets the pull after {ODD // 2:,} rounds: share of runs",
        successes,
        f"{runs} live runs. The paper does not define this pull. It costs at most one gap, and its reward is not used",
        misprints=("16",),
    )


def _arithmetic() -> tuple[Finding, ...]:
    eps = np.linspace(1e-3, 1.0, 1000)
    q = eps / (1.0 + eps)
    split = (1.0 + eps) * eps**-q  # factor of the best split into small and large gaps
    return (
        arithmetic(
            "120^(eps/(1+eps)) (1+eps) eps^(-eps/(1+eps)), the largest over eps, which 46 must cover",
            float(np.max(120.0**q * split)),
            "it grows with eps up to 2 sqrt 120, so 46 is about twice as large as the printed 120 requires",
        ).at_most(46.0),
        # The repaired bound in the printed form, (K log(T/2))^q (u T)^(1/(1+eps)): L_H is 3 log(T/2) and H is T/2.
        arithmetic(
            "with the repaired proof, in the same form, the constant is above 46: largest over eps",
            float(np.max(44.0 * split * 3.0**q * 0.5 ** (1.0 - q))),
        ).at_least(46.0, misprints=("12",)),
        arithmetic(
            "forced pulls of an arm with the guard c, in log(T/2) / P(X != 0): more than the 24 or 27 printed",
            2.0 * 3.0 * C,
            "24 is two pulls per round times the printed guard 4 times the 3 of log tau^3; 27 has no such explanation",
        ).at_least(27.0, misprints=("15",)),
    )


def _rows(series: Sequence[_Series], horizons: Sequence[int]) -> list[Row]:
    return [
        row_of(
            divided(mean_interval(regret[:, j]), family.size),
            case=f"{family.kind}, eps {family.eps:g}",
            series=f"T = {horizon:,}",
            limit=limit[j] / family.size,
        )
        for family, regret, limit in series
        if family.arms == 2
        for j, horizon in enumerate(horizons)
    ]


STATEMENT = Statement(
    key="theorem-8",
    name="Theorem 8",
    says="Under truncated non-positivity AdaR-UCB's regret is at most 46 (K log(T/2))^(eps/(1+eps)) (u T)^(1/(1+eps)) plus forced "
    "exploration, for all gaps; the constant is 88 in other units once the proof is repaired.",
    run=run,
    policies=lambda: [AdaRUCB()],
)
