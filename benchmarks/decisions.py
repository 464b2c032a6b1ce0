"""What benchmarks/suite.py and benchmarks/recorded_sets.py share: the policies, their regrets, and tables of them.

``python benchmarks/decisions.py`` prints the README's table of decisions from the pages that the two have written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import robandit as rb
from robandit.errors import NotApplicable
from robandit.kernel.types import Floats
from robandit.policies.base import Policy

OURS = rb.AdaKLUCB()
UNINFORMED: list[Policy] = [  # know nothing, not even the horizon; those with a scale keep its default of 1
    OURS,
    rb.AdaKLProved(),
    rb.AdaRUCB(),
    rb.AdaRUCB(bonus="tight"),
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
# Replications, as a share of those of AdaKL-UCB. Dirichlet sampling is slow: its duels of close arms take time proportional
# to their rewards.
OTHERS = 0.5
SLOW = {rb.DirichletSampling().name: 0.05}
TOO_SLOW: list[Policy] = [rb.MARS(), rb.RMMUCB()]  # told nothing either, but a run takes T^2 steps or more
IN_README: list[Policy] = [
    OURS,
    rb.DirichletSampling(),
    rb.GaussianTS(),
    rb.LBSDA(),
    rb.UCB1(),
    rb.EpsilonGreedy(),
    rb.ForceMoM(),
    rb.AdaKLProved(),
    rb.AdaRUCB(),
]
RESULTS = Path(__file__).parent.parent / "docs" / "results"
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
            informed = policy if policy in UNINFORMED else policy.informed_by(problem)
        except NotApplicable:  # the law lacks a moment
            continue
        result = rb.simulate([informed], problem, horizon, count(policy, replications), seed=seed, progress=False)
        rows.append(Row(policy.name, ", ".join(informed.facts.knows) or "nothing", result.regret[0, :, -1] / uniform))
    return sorted(rows, key=lambda row: row.mean)


def count(policy: Policy, replications: int) -> int:
    """Return the number of replications of a policy: the first ones, so that all policies play the same rewards."""
    share = 1.0 if policy == OURS else SLOW.get(policy.name, OTHERS)
    return max(1, round(share * replications))


def counts(replications: int) -> str:
    """Return a sentence about the numbers of replications."""
    slow = ", ".join(f"{name} the first {max(1, round(share * replications))}" for name, share in SLOW.items())
    others = round(OTHERS * replications)
    return f"AdaKL-UCB plays {replications} replications, the others the first {others} of them, {slow}."


def left_out() -> str:
    """Return a sentence about the policies that are told nothing, but do not play."""
    names = " and ".join(policy.name for policy in TOO_SLOW)
    return f"{names} are also told nothing, but left out: a run takes T^2 steps or more."


def table(rows: list[Row]) -> list[str]:
    """Return a table of all policies on one problem."""
    return [
        "| policy | knows | mean % | median % | 95 % quantile % | worst % | lost % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {row.name} | {row.knows} | {row.cells()} |" for row in rows),
    ]


def write_details(name: str, sections: list[str]) -> Path:
    """Write the regret of every policy on every problem to build/NAME.md, and return its path."""
    path = RESULTS.parent.parent / "build" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return path


def geometric(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def summary(results: Mapping[str, list[Row]], policies: list[Policy]) -> list[str]:
    """Return a table of the policies over all problems, by the geometric mean of their regret relative to ours."""
    lines = [
        "| policy | regret / AdaKL-UCB's, geometric mean | mean % | mean of the 95 % quantiles % | largest mean % | lost % |",
        "| --- " * 6 + "|",
    ]
    by_policy = {
        policy.name: [row for rows in results.values() for row in rows if row.name == policy.name]
        for policy in policies
    }
    ours = by_policy[OURS.name]
    order = []
    for name, rows in by_policy.items():
        if len(rows) == len(ours):  # some cannot play all problems
            # Over the replications that both played.
            ratio = geometric(
                [row.mean / best.shares[: len(row.shares)].mean() for row, best in zip(rows, ours, strict=True)]
            )
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


def readme_table() -> str:
    """Return the README's table: the summaries of both pages for a few policies."""
    pages = [(RESULTS / name).read_text(encoding="utf-8") for name in ("recorded.md", "heavy.md")]
    lines = [
        "| policy, told nothing | 8 recorded sets: regret | mean % | 95 % | lost % | "
        "17 problems: regret | mean % | 95 % | lost % |",
        "| --- |" + " ---: |" * 8,
    ]
    for policy in IN_README:
        cells: list[str] = []
        for page in pages:
            row = next(line for line in page.splitlines() if line.startswith(f"| {policy.name} |"))
            _, ratio, mean, high, _, lost = (cell.strip() for cell in row.strip("|").split("|"))
            cells += [f"{ratio}x", mean, high, lost]
        name = f"**{policy.name}**" if policy == OURS else policy.name
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(readme_table())
