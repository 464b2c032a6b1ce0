"""The regret theorem of docs/explanation/adakl-theorem.md (ours): AdaKL-UCB with the proved schedule and no centre."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from robandit.intervals import Interval, mean_interval
from robandit.kernel.types import Floats
from robandit.laws import Constant, Gaussian
from robandit.policies.adakl.adakl_proved import AdaKLProved
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.simulation import simulate
from robandit.theory.adakl_bounds import EXTRA, adakl_instance, adakl_worst_case, width_constant
from robandit.theory.adar_bounds import repaired_instance
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest
from robandit.verify.regret import Bound, Case, Measured, compare, over_bound, standard_cases, telling
from robandit.verify.statement import Effort, Evidence, Finding, Statement, Track, finding, row_of, silent

PULLS: tuple[Literal["single", "double"], ...] = ("single", "double")


def proved_policies() -> list[Policy]:
    """Return the policies of the theorem, one for each way to pull."""
    return [AdaKLProved(pulls=pulls) for pulls in PULLS]


def cases_of_the_theorem() -> tuple[Case, ...]:
    """Return Theorem 7's problems, and one whose gap is as large as its moment allows: there the bound is tightest."""
    widest = Case("always -1, gap 1", Problem([Gaussian(0.0, 0.01), Constant(-1.0)]), 1.0)
    return (widest, *standard_cases())


class Played(NamedTuple):
    """The regret of a case at the marks, and the pulls of each arm at the last one, with one row per replication."""

    case: Case
    pulls: Literal["single", "double"]
    regret: Floats
    counts: Floats


def run(
    effort: Effort,
    track: Track = silent,
    *,
    policies: Sequence[Policy] | None = None,
    bound: Bound | None = None,
    cases: Sequence[Case] | None = None,
    constant: float | None = None,
) -> Evidence:
    """Play problems of the class with both kinds of pulls, and compare regret and pulls with the theorem.

    ``policies`` replaces the policy with single and the one with double pulls, and ``bound`` the bounds. ``constant`` replaces B.
    """
    policies = policies or proved_policies()
    cases = cases_of_the_theorem() if cases is None else cases
    last, replications = (
        effort.of(100_001, 1_000_001),
        effort.of(10, 40),
    )  # odd: the last round of two pulls is cut short
    marks = [last // 1000, last // 100, last // 10, last]
    played = []
    for i, (case, pulls, policy) in enumerate(
        track([(c, *two) for c in cases for two in zip(PULLS, policies, strict=True)])
    ):
        seed = int(effort.stream(33, i).generate_state(1, np.uint64)[0])
        result = simulate(
            policy, case.problem, last, replications, seed, threads=effort.threads, checkpoints=marks, progress=False
        )
        played.append(Played(case, pulls, result.regret[0], result.pulls[0].astype(np.float64)))

    confidence = joint_confidence(2 * len(played) * len(marks))

    def against(theorem: Callable[..., float]) -> list[Measured]:
        """Return mean regret over a bound of the theorem, for all cases, kinds of pulls and marks."""
        each = [(bound or partial(theorem, pulls=one.pulls), (one.case, marks, one.regret)) for one in played]
        return [measured for limit, one in each for measured in compare(limit, [one], confidence)]

    instance, worst = against(adakl_instance), against(adakl_worst_case)
    adar = compare(repaired_instance, [(one.case, marks, one.regret) for one in played], confidence)
    return Evidence(
        ran=f"{policies[0].name} and {policies[1].name} on {len(cases)} problems that satisfy the assumption, "
        f"{replications} replications of T = {last:,}, regret at {len(marks)} times. The instance-dependent bound is below T "
        f"times the largest gap in {telling(instance)} of {len(instance)} comparisons, each at nominal confidence "
        f"{confidence:.5f}.",
        findings=(
            over_bound("mean regret over the instance-dependent bound, worst problem and T", instance).at_most(1.0),
            over_bound("mean regret over the worst-case bound, worst problem and T", worst).at_most(1.0),
            _count(played, last, constant, confidence),
            _against_adar(instance, adar),
        ),
        rows=[
            row_of(m.ratio, case=f"{m.case.name}; eps {m.case.eps:g}", series=series, limit=1.0)
            for series, measured in (("this theorem", instance), ("AdaR-UCB's theorem", adar))
            for m, one in zip(measured, [one for one in played for _ in marks], strict=True)
            if m.horizon == last and one.pulls == "single"
        ],
        title="mean regret / bound at the last T",
        caption="Mean regret of AdaKL-UCB with single pulls over the bound of its theorem, and over AdaR-UCB's repaired bound on "
        "the same problem. A bound is broken if the number is above 1.",
    )


def _count(played: Sequence[Played], last: int, constant: float | None, confidence: float) -> Finding:
    """Return the finding about the pulls of each worse arm."""
    ratios: list[tuple[Interval, str]] = []
    for case, pulls, _, counts in played:
        eps, per_round = case.eps, 1 if pulls == "single" else 2
        level = 3.0 * math.log(-(-last // per_round))
        for arm, gap in enumerate(case.problem.gaps.tolist()):
            if gap > 0.0:
                size = case.problem.laws[arm].absolute_moment(1.0 + eps) ** (1.0 / (1.0 + eps))
                needed = level * ((constant or width_constant(eps)) * size / gap) ** ((1.0 + eps) / eps)
                most = 2.0 * needed + EXTRA * per_round
                ratios.append((divided(mean_interval(counts[:, arm], confidence), most), f"{case.name}, {pulls} pulls"))
    worst = max(ratios)
    return finding(
        f"pulls of a worse arm over 2 A + 5 g/4, worst problem and arm, T = {last:,}",
        largest(ratio for ratio, _ in ratios),
        f"worst: {worst[1]}",
    ).at_most(1.0)


def _against_adar(instance: Sequence[Measured], adar: Sequence[Measured]) -> Finding:
    """Return the finding that the bound is below AdaR-UCB's repaired bound everywhere."""
    ratios = [a.room / i.room for i, a in zip(instance, adar, strict=True)]
    return finding(
        "the bound over AdaR-UCB's repaired bound, largest problem and T",
        max(ratios),
        f"The smallest is {min(ratios):.2g}.",
    ).at_most(1.0, must=False)


STATEMENT = Statement(
    key="adakl-theorem",
    name="AdaKL theorem (ours)",
    says="Under truncated non-positivity the regret of AdaKLProved() is at most a sum over the worse "
    "arms of 6 B^((1+eps)/eps) (u/gap)^(1/eps) log T + 5 gap/2, with B <= 7.93.",
    run=run,
    policies=proved_policies,
    ours=True,
)
