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
from robandit.verify.figure import Curves, Row, row_of
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest, shifted, slope
from robandit.verify.regret import Bound, Case, Comparisons, Measured, over_bound, play, telling
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, arithmetic, finding, untracked

MULTIPLES = (2.0, 4.0, 8.0, 16.0)
EPS = (1.0, 0.6, 0.3)
ODD = 1_001
FEW = 4  # replications where regret hardly varies


def wide_cases() -> tuple[Case, ...]:
    """Return problems with eps = 1, two arms and gaps of nearly u^(1/2), the largest possible.

    Only for these, and from T = 1.4 million on, is the repaired bound below the regret of uniform play: a policy that does not
    learn breaks it.
    """
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
        """Return problems with gaps of a few times ``(K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps))``.

        Only the multiples that the moment allows at the smallest T are used.
        """
        eps, arms = self.eps, self.arms
        q = eps / (1.0 + eps)

        def share(at: int) -> float:
            return float((arms * math.log(at / 2.0) / at) ** q)

        cases = []
        for multiple in MULTIPLES:
            if multiple * share(smallest) > 1.0:
                continue
            delta = multiple * share(horizon) * self.size
            if self.kind == "Student t":
                problem = student_t([0.0, *[-delta] * (arms - 1)], 1.0 + eps + 0.2, 100.0)
            else:
                problem = lower_bound_family(arms=arms, eps=eps, u=0.01, delta=delta, best=arms - 1)
            cases.append(Case(f"{self.name}, gap {multiple:g} units", problem, eps))
        return cases


FAMILIES = tuple(Family(kind, eps, arms) for kind in ("Student t", "rare losses") for eps in EPS for arms in (2, 5))


class _Series(NamedTuple):
    """For each T, the gap with the largest regret: that regret, and the bound there."""

    family: Family
    regret: Floats  # one row per replication, one column per T
    limit: Floats


def run(
    effort: Effort,
    track: Track = untracked,
    *,
    policy: Policy | None = None,
    bound: Bound = repaired_worst_case,
    families: Sequence[Family] = FAMILIES,
    horizons: Sequence[int] | None = None,
    wide: Sequence[Case] | None = None,
) -> Evidence:
    """Play problems whose gaps shrink with T at the hardest rate, and compare regret and its growth with the bounds."""
    policy = policy or AdaRUCB()
    if horizons is None:
        horizons = effort.of([6_000, 24_000, 96_000], [8_000, 64_000, 512_000])
    replications = effort.of(16, 48)
    wide = wide_cases() if wide is None else wide
    long = effort.of(2_000_000, 4_000_000)
    count = sum(len(f.cases(horizons[0], horizons[0])) for f in families) * len(horizons) + len(wide)
    confidence = joint_confidence(count)

    comparisons = Comparisons(bound, printed_worst_case, confidence)
    series: list[_Series] = []
    for i, item in enumerate(track([*families, *wide])):
        if isinstance(item, Case):
            comparisons.add(item, [long], play(policy, item.problem, [long], FEW, effort, (8, i)))
            continue
        columns, limits = [], []
        for j, horizon in enumerate(horizons):
            played = []
            for k, case in enumerate(item.cases(horizon, horizons[0])):
                regret = play(policy, case.problem, [horizon], replications, effort, (8, i, j, k))
                comparisons.add(case, [horizon], regret)
                played.append((float(regret.mean()), regret[:, 0], case))
            _, column, hardest = max(played, key=lambda p: p[0])
            columns.append(column)
            limits.append(bound(hardest.problem, horizon, hardest.eps))
        series.append(_Series(item, np.column_stack(columns), np.array(limits)))
    return Evidence(
        ran=(
            f"{policy.name} on {len(families)} families (symmetric about 0 with tail 1.2 + eps; rare losses, Theorem 4's), gaps of "
            f"{MULTIPLES[0]:g} to {MULTIPLES[-1]:g} times (K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps)), T = "
            f"{', '.join(f'{t:,}' for t in horizons)}, {replications} replications; and on {len(wide)} problems with gaps of "
            f"nearly u^(1/2), T = {long:,}, {FEW} replications. The repaired bound is below T times the largest gap in "
            f"{telling(comparisons.repaired)} of {count} comparisons, each at nominal confidence {confidence:.5f}."
        ),
        findings=(
            *_regret_findings(comparisons.repaired, comparisons.printed),
            _exponent(series, horizons, confidence),
            _odd(policy, effort),
            *_arithmetic(),
        ),
        figure=_figure(series, horizons),
        caption=(
            "Mean regret at the hardest of the gaps, over T, two arms. Dashed: the repaired bound of Theorem 8 there. All "
            "divided by u^(1/(1+eps)) of a law without a gap."
        ),
    )


def _regret_findings(repaired: Sequence[Measured], printed: Sequence[Measured]) -> tuple[Finding, ...]:
    return (
        over_bound("mean regret over the repaired bound, worst family, gap and T", repaired, most=1.0),
        over_bound(
            "as printed, proof gap at (robust3): mean regret over the printed bound, worst family, gap and T",
            printed,
            ". Runs do not prove it for all problems",
            most=1.0,
            must=False,
        ),
    )


def _exponent(series: Sequence[_Series], horizons: Sequence[int], confidence: float) -> Finding:
    at = np.array(horizons, dtype=np.float64)
    excess = []
    for one in series:
        limit = slope(at, one.limit[None, :]).measured
        excess.append((shifted(slope(at, one.regret, confidence), limit), one.family.name, limit))
    worst, name, limit = max(excess)
    return finding(
        "regret at the hardest gap ~ T^x: x minus that of the bound, largest of the families",
        largest(each for each, _, _ in excess),
        most=0.0,
        must=False,
        asymptotic=True,
        note=f"{name}: {limit + worst.measured:.3g} and {limit:.3g}. At the hardest gap both are close by construction",
    )


def _odd(policy: Policy, effort: Effort) -> Finding:
    """With an odd horizon one pull is left over: it goes to the arm that the next round would pull."""
    laws = student_t([0.0, -0.1, -0.3], 2.5).laws
    runs = effort.of(10, 50)
    successes = []
    for i in range(runs):
        rewards = [law.sample(ODD, effort.stream(16, i, k)) for k, law in enumerate(laws)]
        bandit = Bandit(range(len(laws)), policy, seed=i)
        for t in range(ODD - 1):
            arm = bandit.select()
            bandit.update(arm, float(rewards[arm][t]))
        highest_index = max(row.get("index", math.nan) for row in bandit.estimates())
        leftover = next(row for row in bandit.estimates() if row["arm"] == bandit.select())
        successes.append(leftover.get("index") == highest_index < math.inf)
    return always(
        f"T = {ODD:,} is odd: {ODD // 2:,} rounds leave one pull; it goes to the arm with the highest index: share of runs",
        successes,
        misprints=("16",),
        note=f"{runs} live runs. The paper does not say what to pull. It costs at most a gap, and its reward comes too late to "
        "matter",
    )


def _arithmetic() -> tuple[Finding, ...]:
    eps = np.linspace(1e-3, 1.0, 1000)
    q = eps / (1.0 + eps)
    split = (1.0 + eps) * eps**-q  # from the best split into small and large gaps
    return (
        arithmetic(
            "120^(eps/(1+eps)) (1+eps) eps^(-eps/(1+eps)), the largest over eps, which 46 must cover",
            float(np.max(120.0**q * split)),
            most=46.0,
            note="it grows with eps up to 2 sqrt 120, so 46 is twice what the printed 120 needs",
        ),
        # The repaired bound in the printed form, (K log(T/2))^q (u T)^(1/(1+eps)): L_H is 3 log(T/2) and H is T/2.
        arithmetic(
            "with the repaired proof, in the same form, the constant is above 46: largest over eps",
            float(np.max(44.0 * split * 3.0**q * 0.5 ** (1.0 - q))),
            least=46.0,
            misprints=("12",),
        ),
        arithmetic(
            "forced pulls of an arm with the guard c, in log(T/2) / P(X != 0): more than the 24 or 27 printed",
            2.0 * 3.0 * C,
            least=27.0,
            misprints=("15",),
            note="24 is two pulls per round times the printed guard 4 times 3 from log tau^3; 27 is not such a product",
        ),
    )


def _figure(series: Sequence[_Series], horizons: Sequence[int]) -> Curves:
    rows: list[Row] = []
    limits: list[Row] = []
    for one in series:
        if one.family.arms != 2:
            continue
        size = one.family.size
        for j, horizon in enumerate(horizons):
            labels = {"x": horizon, "series": f"{one.family.kind}, eps {one.family.eps:g}"}
            rows.append(row_of(divided(mean_interval(one.regret[:, j]), size), "y", **labels))
            limits.append({**labels, "y": one.limit[j] / size})
    return Curves(rows=rows, limits=limits, x_title="T", y_title="regret / u^(1/(1+eps))")


STATEMENT = Statement(
    key="theorem-8",
    name="Theorem 8",
    says=(
        "Under truncated non-positivity AdaR-UCB's regret is at most 46 (K log(T/2))^(eps/(1+eps)) (u T)^(1/(1+eps)) plus forced "
        "exploration, for all gaps; the constant is 88 in other units once the proof is repaired."
    ),
    run=run,
)
