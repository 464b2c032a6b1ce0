"""Measure policies that follow changes: dynamic regret on problems that change, and realised regret on recorded tables.

``python benchmarks/drift.py`` prints the tables of docs/results/drift.md. ``--data FOLDER`` adds recorded tables: each subfolder
has a data.parquet with the columns arm, reward and time. ``--arms 10`` plays ten arms, ``--replications N`` changes the number of
runs, and ``--only KIND`` plays one kind of change. ``--only clocks`` compares restarts with a new and with
the old clock of the wrapped policy, with other seeds, and measures the time of a restart.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import robandit as rb
from robandit.policies.adakl.clipped_index import TAKEN
from robandit.problems.changing import KINDS
from robandit.recorded import Table, open_records

HORIZON = 20_000
WINDOW = 100  # pulls of which half must be of the best arm
POLICIES = (rb.AdaKLUCB(), rb.Probing(), rb.Restarting(), rb.UCB1())
ROUNDS = 60  # of the flights: pulls per day
STEPS = 7_000  # of the latencies

Floats = npt.NDArray[np.float64]


def bases(arms: int) -> dict[str, rb.Problem]:
    """Return log-normal and Pareto costs whose means are 1, 1.5, 2 (three arms) or 1, 1.2, ... (more)."""
    sizes = [1.5, 1.0, 2.0] if arms == 3 else [round(1.0 + 0.2 * (3 * i % arms), 9) for i in range(arms)]
    return {
        "log-normal": rb.Problem([-rb.laws.LogNormal(math.log(size) - 0.5, 1.0) for size in sizes]),
        "Pareto 1.5": rb.problems.negated_pareto([-size for size in sizes], tail=1.5),
    }


def kinds(base: rb.Problem, only: str | None) -> Iterator[tuple[str, rb.Problem, list[int]]]:
    """Yield the name of a change, the problem, and the times from which delays are measured."""
    if only in (None, "stationary"):
        yield "stationary", base, []
    for kind in KINDS:
        if only in (None, kind):
            at = HORIZON // 4 if kind == "several" else HORIZON // 2
            problem = rb.problems.changing(kind, base, at=at)
            yield kind, problem, [] if kind == "slow" else list(problem.changes)


def delays(regret: Floats, changes: list[int]) -> list[int]:
    """Return the pulls after each change until half of the next 100 pulls are of the best arm, for each replication."""
    found = []
    for run in regret:
        good = np.diff(run, prepend=0.0) <= 1e-9
        share = np.convolve(good, np.ones(WINDOW), "valid") / WINDOW
        for start, end in zip(changes, [*changes[1:], HORIZON], strict=True):
            late = np.flatnonzero(share[start : max(end - WINDOW + 1, start + 1)] >= 0.5)
            found.append(int(late[0]) if len(late) else end - start)
    return found


def header(first: str) -> None:
    names = [policy.name for policy in POLICIES]
    print(f"\n| {first} | {' | '.join(names)} |\n|---{'|---' * len(names)}|")


def changing_tables(arms: int, replications: int, only: str | None) -> None:
    prices = []
    for family, base in bases(arms).items():
        header(f"{family}, K = {arms}")
        for kind, problem, changes in kinds(base, only):
            times = range(1, HORIZON + 1)
            result = rb.simulate(POLICIES, problem, HORIZON, replications, seed=7, checkpoints=times, progress=False)
            final = 100.0 * result.regret[:, :, -1] / problem.uniform_regret(HORIZON)
            cells = []
            for i in range(len(POLICIES)):
                delay = f"{np.mean(delays(result.regret[i], changes)):,.0f}" if changes else "-"
                cells.append(f"{final[i].mean():.2f} / {np.quantile(final[i], 0.95):.1f} / {delay}")
            print(f"| {kind} | {' | '.join(cells)} |", flush=True)
            if kind == "stationary":
                prices += [price(family, arms, final, result.counters)]
    if prices:
        print("\n" + "\n".join(prices))


def price(family: str, arms: int, final: Floats, counters: Any) -> str:
    texts = []
    for i in (1, 2):
        ratio = final[i].mean() / final[0].mean()
        texts.append(f"{POLICIES[i].name} {ratio:.2f} times ({difference(final[i] - final[0])} points)")
    alarms = f"{counters[2]['alarms']} false alarms in {final.shape[1] * arms} arms"
    return f"- When nothing changes ({family}, K = {arms}): {', '.join(texts)}; {alarms}."


def difference(values: Floats) -> str:
    return f"{values.mean():+.2f} +- {1.96 * values.std(ddof=1) / math.sqrt(len(values)):.2f}"


class OldClock(rb.Restarting):
    """Restarts that keep the clock of AdaKL-UCB."""

    suffix = "with restarts and the old clock"
    label = "OldClock"

    def react(self, state: Any, alarmed: int) -> Any:
        clock = int(state.clock[TAKEN])
        state = super().react(state, alarmed)
        state.clock[TAKEN] = clock
        return state


class Timed(rb.Restarting):
    """Restarts whose processor time is added up."""

    label = "Timed"
    seconds: ClassVar[list[float]] = []

    def react(self, state: Any, alarmed: int) -> Any:
        start = time.thread_time()
        state = super().react(state, alarmed)
        self.seconds.append(time.thread_time() - start)
        return state


def clocks(replications: int) -> None:
    print("\n| K = 3 | new clock | old clock | new minus old |\n|---|---|---|---|")
    for family, base in bases(3).items():
        for kind, problem, _ in kinds(base, None):
            if kind in ("swap", "fall", "tail", "several"):
                policies = (rb.Restarting(), OldClock())
                result = rb.simulate(policies, problem, HORIZON, replications, seed=8, progress=False)
                new, old = 100.0 * result.regret[:, :, -1] / problem.uniform_regret(HORIZON)
                print(
                    f"| {family}, {kind} | {new.mean():.2f} | {old.mean():.2f} | {difference(new - old)} |", flush=True
                )
                rb.simulate(Timed(), problem, HORIZON, replications // 4, seed=8, progress=False)
    times = 1000.0 * np.array(Timed.seconds)
    print(
        f"\n{len(times)} restarts: median {np.median(times):.1f} ms, 95 % quantile {np.quantile(times, 0.95):.1f} ms."
    )


# --- recorded tables -------------------------------------------------------------------------------------------------


def by_time(frame: Any) -> Floats:
    """Return the rewards at ``STEPS`` times that divide the time that all arms have in common: each arm's next one."""
    import polars as pl

    frame = frame.with_columns(pl.col("time").str.to_datetime().dt.epoch("s")).sort("time")
    arms = [part for _, part in sorted(frame.group_by("arm"), key=lambda item: str(item[0]))]
    first, last = max(part["time"][0] for part in arms), min(part["time"][-1] for part in arms)
    times = np.linspace(first, last, STEPS)
    return np.column_stack([part["reward"].to_numpy()[np.searchsorted(part["time"], times)] for part in arms])


def by_day(frame: Any) -> Floats:
    """Return random rewards of each day, of the ten arms with most rewards. The record has days only."""
    import polars as pl

    top = frame["arm"].value_counts(sort=True)["arm"][:10].to_list()
    days = sorted(frame["time"].unique().to_list())
    parts = frame.filter(pl.col("arm").is_in(top)).partition_by("arm", "time", as_dict=True)
    generator, columns = np.random.default_rng(0), []
    for arm in top:
        kept: Any = None
        column = []
        for day in days:
            part = parts.get((arm, day))
            kept = kept if part is None else part["reward"].to_numpy()  # a day without flights repeats the day before
            column.append(generator.choice(kept, ROUNDS))
        columns.append(np.concatenate(column))
    return np.column_stack(columns)


def recorded_tables(folder: Path) -> Iterator[tuple[str, rb.problems.InOrder]]:
    """Yield the tables in time order."""
    import polars as pl

    for path in sorted(folder.glob("*/data.parquet")):
        name, frame = path.parent.name, pl.read_parquet(path)
        if name.startswith("nycflights"):
            yield name, rb.problems.InOrder(by_day(frame))
        elif name.startswith("azure"):
            yield name, rb.problems.InOrder(by_time(frame))
        else:
            table = open_records(path).table()
            if isinstance(table, Table):
                yield name, rb.problems.InOrder(table.rewards, table.arms)


def recorded(folder: Path, replications: int) -> None:
    header("recorded table")
    for name, table in recorded_tables(folder):
        result = rb.simulate(POLICIES, table, table.rows, replications, seed=7, first=1, progress=False)
        final = 100.0 * result.regret[:, :, -1] / table.uniform_regret(table.rows)
        cells = [f"{each.mean():.2f} / {np.quantile(each, 0.95):.1f}" for each in final]
        cells[1:] = [f"{cell} ({difference(each - final[0])})" for cell, each in zip(cells[1:], final[1:], strict=True)]
        alarms = result.counters[2]["alarms"] / replications
        print(
            f"| {name}, {table.rows:,} rows of {table.arms} arms, {alarms:.1f} alarms | {' | '.join(cells)} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=3)
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--only", choices=("stationary", *KINDS, "recorded", "clocks"))
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    if given.only == "clocks":
        clocks(given.replications)
    elif given.only != "recorded":
        changing_tables(given.arms, given.replications, given.only)
    if given.data is not None:
        recorded(given.data, given.replications)


if __name__ == "__main__":
    main()
