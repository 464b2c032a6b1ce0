"""What benchmarks/suite.py and benchmarks/recorded_sets.py share: the policies, their regrets, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

import robandit as rb
from robandit.errors import NotApplicable
from robandit.kernel.types import Floats
from robandit.policies.base import Policy

OURS = rb.AdaKLUCB()
FIRST_VERSION = rb.AdaKLUCB(schedule="practical")
UNINFORMED: list[Policy] = [  # know nothing, not even the horizon; those with a scale keep its default of 1
    OURS,
    FIRST_VERSION,
    rb.AdaKLUCB(schedule="proved"),
    rb.AdaRUCB(),
    rb.AdaRUCB(bonus="tight"),
    rb.AdaRUCB(bonus="tight", center="median"),
    rb.GaussianTS(),
    rb.DirichletSampling(),
    rb.LBSDA(),
    rb.IMED(),
    rb.MaillardSampling(),
    rb.UCB1(),
    rb.NormalUCB(),
    rb.EpsilonGreedy(),
    rb.RUCBLT(),
    rb.RUCBTEA(),
    rb.RUCBMoM(),
    rb.OptTINF(),
    rb.Ada2TINF(),
    rb.UCBV(),
    rb.ForceMoM(),
]
SLOW = {
    rb.DirichletSampling().name: 20
}  # replications at most: a duel of close arms takes time proportional to their rewards
LOST = 0.5  # a run is lost if its regret is above this share of uniform play's


class Row(NamedTuple):
    """The regret of a policy on a problem, as a share of uniform play's, one number per replication."""

    name: str
    knows: str
    shares: Floats

    @property
    def mean(self) -> float:
        return float(self.shares.mean())

    @property
    def high(self) -> float:
        """The 95 % quantile."""
        return float(np.quantile(self.shares, 0.95))

    @property
    def lost(self) -> float:
        """The share of lost runs."""
        return float((self.shares > LOST).mean())

    def cells(self) -> str:
        """Format mean, median, 95 % quantile and worst in per cent of uniform play, and the share of lost runs."""
        figures = (self.mean, np.median(self.shares), self.high, self.shares.max())
        return " | ".join(f"{100.0 * f:.3g}" for f in figures) + f" | {100.0 * self.lost:.3g}"


def play(policies: list[Policy], problem: rb.Problem, horizon: int, replications: int, seed: int) -> list[Row]:
    """Play every applicable policy on the same rewards; return rows by mean regret."""
    rows = []
    uniform = problem.uniform_regret(horizon)
    for policy in policies:
        try:
            informed = policy.informed_by(problem)
        except NotApplicable:  # the law lacks a moment
            continue
        count = min(replications, SLOW.get(policy.name, replications))
        result = rb.simulate([informed], problem, horizon, count, seed=seed, progress=False)
        rows.append(Row(policy.name, ", ".join(informed.facts.knows) or "nothing", result.regret[0, :, -1] / uniform))
    return sorted(rows, key=lambda row: row.mean)


def slow_note() -> str:
    """Return a sentence about the policies that play fewer replications."""
    return " ".join(
        f"{name} plays only the first {count} replications, because it is slow." for name, count in SLOW.items()
    )


def table(rows: list[Row]) -> list[str]:
    """Return a table of all policies on one problem."""
    return [
        "| policy | knows | mean % | median % | 95 % quantile % | worst % | lost % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {row.name} | {row.knows} | {row.cells()} |" for row in rows),
    ]


def versions(results: Mapping[str, list[Row]]) -> list[str]:
    """Return a table that compares AdaKL-UCB with its first version on each problem, and their geometric means."""
    columns = [f"{name}: first version | now" for name in ("mean %", "95 % quantile %", "worst %", "lost %")]
    lines = [f"| problem | ratio of means | {' | '.join(columns)} |", "| --- " * 10 + "|"]
    ratios = []
    for name, rows in results.items():
        by_name = {row.name: row for row in rows}
        old, new = by_name[FIRST_VERSION.name], by_name[OURS.name]
        ratios.append(new.mean / old.mean)
        pairs = [(old.mean, new.mean), (old.high, new.high), (old.shares.max(), new.shares.max()), (old.lost, new.lost)]
        cells = [f"{100 * a:.3g} | {100 * b:.3g}" for a, b in pairs]
        lines.append(f"| {name} | {ratios[-1]:.2f} | {' | '.join(cells)} |")
    return [*lines, "", f"Geometric mean of the ratios: {geometric(ratios):.3f}."]


def geometric(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def summary(results: Mapping[str, list[Row]]) -> list[str]:
    """Return a table of the uninformed policies over all problems, by the geometric mean of their regret relative to ours."""
    lines = [
        "| policy | regret / AdaKL-UCB's, geometric mean | mean % | mean of the 95 % quantiles % | largest mean % | lost % |",
        "| --- " * 6 + "|",
    ]
    by_policy = {
        policy.name: [row for rows in results.values() for row in rows if row.name == policy.name]
        for policy in UNINFORMED
    }
    ours = by_policy[OURS.name]
    order = []
    for name, rows in by_policy.items():
        if len(rows) == len(ours):  # some cannot play all problems
            ratio = geometric([row.mean / best.mean for row, best in zip(rows, ours, strict=True)])
            figures: list[float] = [
                float(np.mean([row.mean for row in rows])),
                float(np.mean([row.high for row in rows])),
                max(row.mean for row in rows),
            ]
            cells = " | ".join(f"{100 * f:.3g}" for f in figures)
            order.append(
                (ratio, f"| {name} | {ratio:.2f} | {cells} | {100 * np.mean([row.lost for row in rows]):.3g} |")
            )
    return [*lines, *(line for _, line in sorted(order))]
