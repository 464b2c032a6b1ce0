"""Play all policies on the heavy suite: ``python benchmarks/suite.py [REPLICATIONS]`` writes docs/results/heavy.md.

100 replications take about ten minutes on two cores. The first table compares AdaKL-UCB with the others; the rest lists the regret
of every policy, relative to choosing arms at random.
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
UNINFORMED: list[Policy] = [  # know nothing, not even the horizon; UCB1 keeps its default scale of 1
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
MOMENTS: list[Policy] = [rb.RobustUCB(), rb.RobustMOSS(), rb.HTINF(), rb.KLinfUCB()]  # know the true eps and u


class Row(NamedTuple):
    """Regret of a policy on a task, one value per replication."""

    name: str
    knows: str
    regret: Floats

    def share(self, uniform: float) -> str:
        """Format mean, median, 95 % quantile and worst, in per cent of uniform play."""
        figures = (self.regret.mean(), np.median(self.regret), np.quantile(self.regret, 0.95), self.regret.max())
        return " | ".join(f"{100.0 * f / uniform:.3g}" for f in figures)


def play(task: Task, replications: int) -> list[Row]:
    """Play every applicable policy on the same rewards; returns rows by mean regret."""
    rows = []
    for policy in [*UNINFORMED, *HORIZON, *MOMENTS]:
        try:
            informed = policy.informed_by(task.problem)
        except NotApplicable:  # the law lacks a moment
            continue
        result = rb.simulate([informed], task.problem, task.horizon, replications, seed=SEED, progress=False)
        knows = ", ".join(informed.facts.knows) or "nothing"
        rows.append(Row(policy.name, knows, result.regret[0, :, -1]))
    return sorted(rows, key=lambda row: float(row.regret.mean()))


def table(task: Task, rows: list[Row]) -> str:
    """Return a task's section: its description and its table."""
    law = f"K = {task.problem.arms}, tail index {task.problem.tail_index:g}, T = {task.horizon:,}"
    lines = [
        f"### {task.name}",
        "",
        f"{task.about[0].upper()}{task.about[1:]}. {task.shape.capitalize()}, {law}. Uniform play: {task.uniform:,.0f}.",
        "",
        "| policy | knows | mean % | median % | 95 % quantile % | worst % |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {row.name} | {row.knows} | {row.share(task.uniform)} |" for row in rows),
    ]
    return "\n".join(lines)


def verdict(tasks: list[Task], results: list[list[Row]]) -> str:
    """Return the first table, which compares AdaKL-UCB with other policies on each problem, and a summary of it."""
    lines = [
        "| problem | AdaKL-UCB % | rank among uninformed | AdaR-UCB / ours | informed policies beaten | "
        "UCB1 / ours, mean | UCB1 / ours, 95 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    in_top_two, gains, beaten, duels, tails = [], [], 0, 0, []
    for task, rows in zip(tasks, results, strict=True):
        by_name = {row.name: row.regret for row in rows}
        ours = by_name[OURS.name]
        uninformed = [row.name for row in rows if row.name in {policy.name for policy in UNINFORMED}]
        rank = uninformed.index(OURS.name) + 1
        gain = float(by_name["AdaR-UCB"].mean() / ours.mean())
        wins = [by_name[p.name].mean() > ours.mean() for p in MOMENTS if p.name in by_name]
        mean = float(by_name["UCB1"].mean() / ours.mean())
        tail = float(np.quantile(by_name["UCB1"], 0.95) / np.quantile(ours, 0.95))
        if task.centred_assumption:
            in_top_two.append(rank <= 2)
            gains.append(gain)
            beaten += sum(wins)
            duels += len(wins)
            if task.infinite_variance:
                tails.append(mean > 1.0 and tail >= 5.0)
        lines.append(
            f"| {task.name} | {100.0 * ours.mean() / task.uniform:.3g} | {rank} of {len(uninformed)} | {gain:.3g} | "
            f"{sum(wins)} of {len(wins)} | {mean:.3g} | {tail:.3g} |"
        )
    lines += [
        "",
        "AdaKL-UCB on the problems that satisfy the centred assumption:",
        "",
        "- Its mean regret is the lowest or second lowest among the uninformed policies on "
        f"{sum(in_top_two)} of {len(in_top_two)} problems.",
        f"- AdaR-UCB with the paper's constants has {statistics.median(gains):.3g} times its mean regret (median over problems).",
        f"- Its mean regret is lower than that of a policy that knows eps and u in {beaten} of {duels} comparisons.",
        f"- On {sum(tails)} of {len(tails)} problems with infinite variance, UCB1 has a higher mean regret and at least 5 times "
        "the 95 % quantile.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Play the suite, print progress and write the page."""
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
        f"Regret in per cent of uniform play (arms chosen at random), {replications} replications, seed {SEED}. All policies play "
        "the same rewards. Written by `python benchmarks/suite.py`.",
        "",
        '"Uninformed" policies know nothing about the rewards, not even the horizon (UCB1 keeps its default scale). '
        f'"Informed" ones know the true eps and u: {", ".join(policy.name for policy in MOMENTS)}. '
        '"Ours" is AdaKL-UCB; ratios above 1 favour it.',
        "",
        verdict(list(suite.tasks), results),
        "",
        "## All figures",
        "",
        "\n\n".join(table(task, rows) for task, rows in zip(suite.tasks, results, strict=True)),
        "",
    ]
    path = Path(__file__).parent.parent / "docs" / "results" / f"{suite.name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page[:8]))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
