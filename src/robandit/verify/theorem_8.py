"""Theorem 8: AdaR-UCB's regret at the hardest gaps grows like (K log T)^(eps/(1+eps)) (u T)^(1/(1+eps))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws import Constant, Gaussian
from robandit.live.bandit import Bandit
from robandit.policies.adar.adar_ucb import AdaRUCB, C
from robandit.policies.base import Policy
from robandit.problems import Problem, lower_bound_family, student_t
from robandit.theory.adar_bounds import printed_worst_case, repaired_worst_case
from robandit.verify import drawing
from robandit.verify.drawn_samples import always
from robandit.verify.regret import Bound, Case, Measured, highest, over, play, telling, worst_of
from robandit.verify.statement import Effort, Finding, Ran, Statement, Track, untracked
from robandit.verify.statistics import Interval, largest, mean_interval, slope, sure

MULTIPLES = (2.0, 4.0, 8.0, 16.0)
EPS = (1.0, 0.6, 0.3)
ODD = 1_001
FEW = 4  # replications where regret hardly varies


def wide_cases() -> tuple[Case, ...]:
    """Gaps of nearly u^(1/2), the largest there are, with eps = 1 and two arms.

    Only there, and from T = 1.4 million on, is the repaired bound below what uniform play loses: a policy that does not learn
    breaks it.
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
        """In words."""
        return f"{self.kind}, eps {self.eps:g}, K = {self.arms}"

    def cases(self, horizon: int, smallest: int) -> list[Case]:
        """Gaps of a few times ``(K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps))``: those that fit the moment at the smallest T too."""
        eps, arms = self.eps, self.arms
        p, q = 1.0 + eps, eps / (1.0 + eps)

        def share(at: int) -> float:
            return float((arms * math.log(at / 2.0) / at) ** q)

        found = []
        for multiple in MULTIPLES:
            if multiple * share(smallest) > 1.0:
                continue
            name = f"{self.name}, gap {multiple:g} units"
            if self.kind == "Student t":
                size = student_t([0.0, 0.0], p + 0.2, 100.0).u(eps) ** (1.0 / p)
                worse = [-multiple * share(horizon) * size] * (arms - 1)
                found.append(Case(name, student_t([0.0, *worse], p + 0.2, 100.0), eps))
            else:
                u = 0.01
                delta = multiple * share(horizon) * u ** (1.0 / p)
                found.append(Case(name, lower_bound_family(arms=arms, eps=eps, u=u, delta=delta, best=arms - 1), eps))
        return found


FAMILIES = tuple(Family(kind, eps, arms) for kind in ("Student t", "rare losses") for eps in EPS for arms in (2, 5))


class _Series(NamedTuple):
    """For each T the gap with the largest regret: that regret, and the bound there."""

    family: Family
    regret: Floats  # a row per replication, a column per T
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
) -> Ran:
    """Play problems whose gaps shrink with T as is hardest, and compare regret and its growth with the bounds."""
    policy = policy or AdaRUCB()
    if horizons is None:
        horizons = effort.of([6_000, 24_000, 96_000], [8_000, 64_000, 512_000])
    replications = effort.of(16, 48)
    wide = wide_cases() if wide is None else wide
    long = effort.of(2_000_000, 4_000_000)
    comparisons = sum(len(f.cases(horizons[0], horizons[0])) for f in families) * len(horizons) + len(wide)
    confidence = 1.0 - 0.01 / comparisons

    repaired: list[Measured] = []
    printed: list[Measured] = []
    series: list[_Series] = []
    for i, family in enumerate(track([*families, *wide])):
        if isinstance(family, Case):
            regret = play(policy, family.problem, [long], FEW, effort, (8, i))
            repaired += over(bound, family, [long], regret, confidence)
            printed += over(printed_worst_case, family, [long], regret, confidence)
            continue
        columns: list[tuple[Floats, float]] = []
        for j, horizon in enumerate(horizons):
            played = []
            for k, case in enumerate(family.cases(horizon, horizons[0])):
                regret = play(policy, case.problem, [horizon], replications, effort, (8, i, j, k))
                repaired += over(bound, case, [horizon], regret, confidence)
                printed += over(printed_worst_case, case, [horizon], regret, confidence)
                played.append((float(regret.mean()), regret[:, 0], case))
            _, column, hardest = max(played, key=lambda p: p[0])
            columns.append((column, bound(hardest.problem, horizon, hardest.eps)))
        series.append(
            _Series(family, np.column_stack([c for c, _ in columns]), np.array([limit for _, limit in columns]))
        )
    return Ran(
        ran=(
            f"{policy.name} on {len(families)} families (symmetric about 0 with tail 1.2 + eps; rare losses, Theorem 4's), gaps of "
            f"{MULTIPLES[0]:g} to {MULTIPLES[-1]:g} times (K log(T/2)/T)^(eps/(1+eps)) u^(1/(1+eps)), T = "
            f"{', '.join(f'{t:,}' for t in horizons)}, {replications} replications; and on {len(wide)} problems with gaps of "
            f"nearly u^(1/2), T = {long:,}, {FEW} replications. The repaired bound is below T times the largest gap in "
            f"{telling(repaired)} of {comparisons} comparisons, each at nominal confidence {confidence:.5f}."
        ),
        findings=(
            *_regret_findings(repaired, printed),
            _exponent(series, horizons, confidence),
            _odd(policy, effort),
            *_arithmetic(),
        ),
        figure=_figure(series, horizons),
        caption=(
            "Mean regret at the hardest of the gaps, over T, two arms. Dashed: the bound of Theorem 8 there, repaired. All "
            "divided by u^(1/(1+eps)) of a law without a gap."
        ),
    )


def _regret_findings(repaired: Sequence[Measured], printed: Sequence[Measured]) -> tuple[Finding, ...]:
    worst, worst_printed = worst_of(repaired), worst_of(printed)
    return (
        Finding(
            claim="mean regret over the repaired bound, worst family, gap and T",
            **highest(repaired)._asdict(),
            most=1.0,
            note=f"worst: {worst.case.name}, T = {worst.horizon:,}",
        ),
        Finding(
            claim="as printed, proof gap at (robust3): mean regret over the printed bound, worst family, gap and T",
            **highest(printed)._asdict(),
            most=1.0,
            must=False,
            note=f"worst: {worst_printed.case.name}, T = {worst_printed.horizon:,}. Runs do not prove it for all problems",
        ),
    )


def _exponent(series: Sequence[_Series], horizons: Sequence[int], confidence: float) -> Finding:
    at = np.array(horizons, dtype=np.float64)
    excess = []
    for one in series:
        own = slope(at, one.limit[None, :]).measured
        excess.append((Interval(*(x - own for x in slope(at, one.regret, confidence))), one.family.name, own))
    worst, name, own = max(excess)
    return Finding(
        claim="regret at the hardest gap ~ T^x: x minus the bound's own, largest of the families",
        **largest(each for each, _, _ in excess)._asdict(),
        most=0.0,
        must=False,
        asymptotic=True,
        note=f"{name}: {own + worst.measured:.3g} and {own:.3g}. At the hardest gap both are close by construction",
    )


def _odd(policy: Policy, effort: Effort) -> Finding:
    """With an odd horizon one pull is left over: it goes to the arm that a next round would pull."""
    laws = student_t([0.0, -0.1, -0.3], 2.5).laws
    runs = effort.of(10, 50)
    good = []
    for i in range(runs):
        rewards = [
            law.sample(ODD, np.random.SeedSequence(effort.seed, spawn_key=(16, i, k))) for k, law in enumerate(laws)
        ]
        bandit = Bandit(range(len(laws)), policy, seed=i)
        for t in range(ODD - 1):
            arm = bandit.select()
            bandit.update(arm, float(rewards[arm][t]))
        highest_index = max(row.get("index", math.nan) for row in bandit.estimates())
        left = next(row for row in bandit.estimates() if row["arm"] == bandit.select())
        good.append(left.get("index") == highest_index < math.inf)
    return always(
        f"T = {ODD:,} is odd: {ODD // 2:,} rounds leave a pull over; it goes to the arm with the highest index: share of runs",
        good,
        ("16",),
        f"{runs} live runs. The paper does not say what to pull. It costs at most a gap, and its reward comes too late to matter",
    )


def _arithmetic() -> tuple[Finding, ...]:
    eps = np.linspace(1e-3, 1.0, 1000)
    q = eps / (1.0 + eps)
    split = (1.0 + eps) * eps**-q  # from the best split into small and large gaps
    needed = float(np.max(120.0**q * split))
    # The repaired bound in the printed form, (K log(T/2))^q (u T)^(1/(1+eps)): L_H is 3 log(T/2) and H is T/2.
    repaired = float(np.max(44.0 * split * 3.0**q * 0.5 ** (1.0 - q)))
    forced = 2.0 * 3.0 * C
    return (
        Finding(
            claim="arithmetic: 120^(eps/(1+eps)) (1+eps) eps^(-eps/(1+eps)), the largest over eps, which 46 is to cover",
            **sure(needed)._asdict(),
            most=46.0,
            must=False,
            note="it grows with eps up to 2 sqrt 120, so 46 is twice what the printed 120 asks for",
        ),
        Finding(
            claim="arithmetic: with the repaired proof, in the same form, the constant is above 46: largest over eps",
            **sure(repaired)._asdict(),
            least=46.0,
            must=False,
            misprints=("12",),
        ),
        Finding(
            claim="arithmetic: forced pulls of an arm with the guard c, in log(T/2) / P(X != 0): more than the 24 or 27 printed",
            **sure(forced)._asdict(),
            least=27.0,
            must=False,
            misprints=("15",),
            note="24 is two pulls a round times the printed guard 4 times 3 of log tau^3; 27 is no such product",
        ),
    )


def _figure(series: Sequence[_Series], horizons: Sequence[int]) -> dict[str, object]:
    rows: list[drawing.Row] = []
    limits: list[drawing.Row] = []
    for one in series:
        if one.family.arms != 2:
            continue
        size = _size(one.family)
        for j, horizon in enumerate(horizons):
            mean: Interval = mean_interval(one.regret[:, j])
            base = {"x": horizon, "series": f"{one.family.kind}, eps {one.family.eps:g}"}
            rows.append({**base, "y": mean.measured / size, "low": mean.low / size, "high": mean.high / size})
            limits.append({**base, "y": one.limit[j] / size})
    return drawing.curves(rows, limits, x_title="T", y_title="regret / u^(1/(1+eps))")


def _size(family: Family) -> float:
    p = 1.0 + family.eps
    u = student_t([0.0, 0.0], p + 0.2, 100.0).u(family.eps) if family.kind == "Student t" else 0.01
    return float(u ** (1.0 / p))


STATEMENT = Statement(
    key="theorem-8",
    name="Theorem 8",
    says=(
        "Under truncated non-positivity AdaR-UCB's regret is at most 46 (K log(T/2))^(eps/(1+eps)) (u T)^(1/(1+eps)) plus forced "
        "exploration, whatever the gaps; the constant is 88 in other units once the proof is repaired."
    ),
    run=run,
)
