"""All policies on the heavy suite: ``python benchmarks/suite.py [REPLICATIONS]``. Writes docs/results/heavy.md.

Takes about ten minutes on two cores for 100 replications. The first table answers the questions that AdaKL-UCB was made for; the
others have all figures, relative to choosing arms at random.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import robandit as rb
from robandit.errors import NotApplicable
from robandit.kernel.types import Floats
from robandit.policies.base import Policy
from robandit.suites import Task

SEED = 2024
OURS = rb.AdaKLUCB()
NOTHING: list[Policy] = [  # told nothing, not even the horizon; UCB1 is left at its scale of 1
    OURS,
    rb.AdaKLUCB(schedule="proved"),
    rb.AdaRUCB(),
    rb.AdaRUCB(bonus="tight"),
    rb.AdaRUCB(bonus="tight", center="median"),
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
HORIZON: list[Policy] = [rb.AdaTINF(), rb.UniINF()]
MOMENTS: list[Policy] = [rb.RobustUCB(), rb.RobustMOSS(), rb.HTINF(), rb.KLinfUCB()]  # told the true eps and u


class Row(NamedTuple):
    """Regret of a policy on a task."""

    name: str
    told: str
    regret: Floats

    def share(self, uniform: float) -> str:
        """Mean, median, 95 % quantile and worst, in per cent of uniform play."""
        figures = (self.regret.mean(), np.median(self.regret), np.quantile(self.regret, 0.95), self.regret.max())
        return " | ".join(f"{100.0 * f / uniform:.3g}" for f in figures)


def play(task: Task, replications: int) -> list[Row]:
    """Every policy that applies, on the same rewards."""
    rows = []
    for policy in [*NOTHING, *HORIZON, *MOMENTS]:
        try:
            told = policy.informed_by(task.problem)
        except NotApplicable:  # a moment that the law does not have
            continue
        result = rb.simulate([told], task.problem, task.horizon, replications, seed=SEED, progress=False)
        given = ", ".join(told.facts.knows) or "nothing"
        rows.append(Row(policy.name, given, result.regret[0, :, -1]))
    return sorted(rows, key=lambda row: float(row.regret.mean()))


def table(task: Task, rows: list[Row]) -> str:
    """A task's table."""
    law = f"K = {task.problem.arms}, tail index {task.problem.tail_index:g}, T = {task.horizon:,}"
    lines = [
        f"### {task.name}",
        "",
        f"{task.about[0].upper()}{task.about[1:]}. {task.shape.capitalize()}, {law}. Uniform play: {task.uniform:,.0f}.",
        "",
        "| policy | told | mean % | median % | 95 % quantile % | worst % |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {row.name} | {row.told} | {row.share(task.uniform)} |" for row in rows),
    ]
    return "\n".join(lines)


def verdict(tasks: list[Task], results: list[list[Row]]) -> str:
    """The questions of the first table, and how many of them are answered well."""
    lines = [
        "| problem | AdaKL-UCB % | rank, told nothing | AdaR-UCB / ours | better than told eps, u | "
        "UCB1 / ours, mean | UCB1 / ours, 95 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    second, gains, beaten, duels, tails = [], [], 0, 0, []
    for task, rows in zip(tasks, results, strict=True):
        by_name = {row.name: row.regret for row in rows}
        ours = by_name[OURS.name]
        nothing = [row.name for row in rows if row.name in {policy.name for policy in NOTHING}]
        rank = nothing.index(OURS.name) + 1
        gain = float(by_name["AdaR-UCB"].mean() / ours.mean())
        told = [by_name[p.name].mean() > ours.mean() for p in MOMENTS if p.name in by_name]
        mean = float(by_name["UCB1"].mean() / ours.mean())
        tail = float(np.quantile(by_name["UCB1"], 0.95) / np.quantile(ours, 0.95))
        if task.centred_assumption:
            second.append(rank <= 2)
            gains.append(gain)
            beaten += sum(told)
            duels += len(told)
            if task.infinite_variance:
                tails.append(mean > 1.0 and tail >= 5.0)
        lines.append(
            f"| {task.name} | {100.0 * ours.mean() / task.uniform:.3g} | {rank} of {len(nothing)} | {gain:.3g} | "
            f"{sum(told)} of {len(told)} | {mean:.3g} | {tail:.3g} |"
        )
    lines += [
        "",
        "Over the problems whose centred assumption holds:",
        "",
        f"- lowest or second lowest mean regret of all that are told nothing: {sum(second)} of {len(second)} problems;",
        f"- AdaR-UCB with the paper's constants has {statistics.median(gains):.3g} times its regret on the median problem;",
        f"- lower mean regret than policies that are told the true eps and u: {beaten} of {duels} comparisons;",
        "- of the problems without a variance, those on which UCB1 has the higher mean and at least 5 times the 95 % quantile: "
        f"{sum(tails)} of {len(tails)}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Play, print progress, write the page."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    suite = rb.suites.heavy()
    results = []
    started = time.perf_counter()
    for number, task in enumerate(suite.tasks, 1):
        results.append(play(task, replications))
        print(f"{number} of {len(suite.tasks)}: {task.name}, {time.perf_counter() - started:.0f} s", flush=True)
    page = [
        f"# The {suite.name} suite, version {suite.version}",
        "",
        f"Regret in per cent of choosing arms at random, {replications} replications, seed {SEED}, all policies on the "
        "same rewards. Made by `python benchmarks/suite.py`.",
        "",
        verdict(list(suite.tasks), results),
        "",
        "## All figures",
        "",
        "\n\n".join(table(task, rows) for task, rows in zip(suite.tasks, results, strict=True)),
        "",
    ]
    where = Path(__file__).parent.parent / "docs" / "results" / f"{suite.name}.md"
    where.parent.mkdir(exist_ok=True)
    where.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page[:6]))
    print(f"written: {where}")


if __name__ == "__main__":
    main()
