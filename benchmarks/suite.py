"""Play all policies on the heavy suite: ``python benchmarks/suite.py [REPLICATIONS]`` writes docs/results/heavy.md.

200 replications take about twenty minutes on two cores. The first tables compare the policies that know nothing, and
AdaKL-UCB with the others; the rest lists the regret of every policy, relative to choosing arms at random.
``robandit compare --problem heavy/latency --policy AdaKLUCB --replications 200 --seed 2024`` reproduces a row.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import robandit as rb
from decisions import OURS, UNINFORMED, Row, counts, play, summary, table
from robandit.policies.base import Policy
from robandit.suites import Task

SEED = 2024
HORIZON: list[Policy] = [rb.AdaTINF(), rb.UniINF()]
MOMENTS: list[Policy] = [rb.RobustUCB(), rb.RobustMOSS(), rb.HTINF(), rb.KLinfUCB()]  # know the true eps and u


def section(task: Task, rows: list[Row]) -> str:
    """Return a task's section: its description and its table."""
    law = f"K = {task.problem.arms}, tail index {task.problem.tail_index:g}, T = {task.horizon:,}"
    about = (
        f"{task.about[0].upper()}{task.about[1:]}. {task.shape.capitalize()}, {law}. Uniform play: {task.uniform:,.0f}."
    )
    return "\n".join([f"### {task.name}", "", about, "", *table(rows)])


def verdict(tasks: list[Task], results: list[list[Row]]) -> str:
    """Return the first table, which compares AdaKL-UCB with other policies on each problem, and a summary of it."""
    lines = [
        "| problem | AdaKL-UCB % | rank among uninformed | AdaR-UCB / ours | informed policies beaten | "
        "UCB1 / ours, mean | UCB1 / ours, 95 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    in_top_two, gains, beaten, duels, tails = [], [], 0, 0, []
    for task, rows in zip(tasks, results, strict=True):
        by_name = {row.name: row for row in rows}
        ours = by_name[OURS.name]
        uninformed = [row.name for row in rows if row.name in {policy.name for policy in UNINFORMED}]
        rank = uninformed.index(OURS.name) + 1
        gain = by_name["AdaR-UCB"].mean / ours.mean
        wins = [by_name[p.name].mean > ours.mean for p in MOMENTS if p.name in by_name]
        mean = by_name["UCB1"].mean / ours.mean
        tail = by_name["UCB1"].high / ours.high
        if task.centred_assumption:
            in_top_two.append(rank <= 2)
            gains.append(gain)
            beaten += sum(wins)
            duels += len(wins)
            if task.infinite_variance:
                tails.append(mean > 1.0 and tail >= 5.0)
        lines.append(
            f"| {task.name} | {100.0 * ours.mean:.3g} | {rank} of {len(uninformed)} | {gain:.3g} | "
            f"{sum(wins)} of {len(wins)} | {mean:.3g} | {tail:.3g} |"
        )
    lines += [
        "",
        "AdaKL-UCB on the problems that are not right-skewed:",
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
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    suite = rb.suites.heavy()
    results = []
    started = time.perf_counter()
    for number, task in enumerate(suite.tasks, 1):
        policies = [*UNINFORMED, *HORIZON, *MOMENTS]
        results.append(play(policies, task.problem, task.horizon, replications, SEED))
        print(f"{number} of {len(suite.tasks)}: {task.name}, {time.perf_counter() - started:.0f} s", flush=True)
    by_task = {task.name: rows for task, rows in zip(suite.tasks, results, strict=True)}
    page = [
        f"# The {suite.name} suite, version {suite.version}",
        "",
        f"Regret in per cent of uniform play (arms chosen at random), seed {SEED}. All policies play "
        "the same rewards. A run is lost if its regret is above half of uniform play's. "
        f"{counts(replications)} Written by `python benchmarks/suite.py`.",
        "",
        '"Uninformed" policies know nothing about the rewards, not even the horizon (those with a scale keep its default of 1). '
        f'"Informed" ones know the true eps and u: {", ".join(policy.name for policy in MOMENTS)}. '
        '"Ours" is AdaKL-UCB; ratios above 1 favour it.',
        "",
        "## Policies that know nothing",
        "",
        *summary(by_task, UNINFORMED),
        "",
        "## AdaKL-UCB and the others",
        "",
        verdict(list(suite.tasks), results),
        "",
        "## All figures",
        "",
        "\n\n".join(section(task, rows) for task, rows in zip(suite.tasks, results, strict=True)),
        "",
    ]
    path = Path(__file__).parent.parent / "docs" / "results" / f"{suite.name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page[: page.index("## All figures")]))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
