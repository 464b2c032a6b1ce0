"""Play every policy that is told nothing with late rewards: ``python benchmarks/delayed.py [REPLICATIONS] [FOLDER]``.

Plays the suite ``delayed``, and AdaKL-UCB on the seven problems on which its rule for late rewards was found, with the same rewards
and delays, so that its regret can be compared with the prototype's. Two of them are recorded sets in FOLDER, which
benchmarks/recorded_sets.py describes. If they are missing, that part is left out and the page is printed. Otherwise writes
docs/results/delayed.md, and build/delayed.md with every policy on every problem. 100 replications take about ten minutes on two
cores.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import recorded_sets

import robandit as rb
from decisions import OURS, UNINFORMED, Row, counts, left_out, play, table, write_details
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws import LawTable
from robandit.laws.table import missed
from robandit.simulate.simulation import late_record

SEED = 2024
HORIZON = 5_000
DELAYS = {  # name in the suite -> name in the table, and the prototype's regret in per cent of uniform play
    "0": ("0", 9.45),
    "10": ("10", 9.6),
    "100": ("100", 10.9),
    "1000": ("1,000", 26.6),
    "pareto": ("Pareto(1), median 300", 13.9),
    "batches": ("batches of 300", 12.9),
}
MOST = 1.03  # times the prototype's regret
SETS = ("nab_ad_cpm", "seattle_server_choice")
RUNS = 100  # of the prototype
Draw = Callable[[np.random.Generator], Floats]
_compiled: list[Callable[..., int]] = []  # the loop of `played`


def main() -> None:
    """Play the suite, print progress and write the page."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else recorded_sets.SHARED
    started = time.perf_counter()
    tasks = rb.suites.delayed().tasks
    results: dict[str, list[Row]] = {}
    for number, task in enumerate(tasks, 1):
        results[task.name] = play(UNINFORMED, task.problem, task.horizon, replications, SEED)
        print(f"{number} of {len(tasks)}: {task.name}, {time.perf_counter() - started:.0f} s", flush=True)
    complete = all((folder / name).is_dir() for name in SETS)
    page = [
        "# Late rewards",
        "",
        *ours(results, again(folder) if complete else {}),
        "",
        "Regret of AdaKL-UCB in per cent of uniform play (arms chosen at random): mean / 95 % quantile, means over seven problems. "
        "With a delay of 10, ten further decisions are made before a reward is known. In batches of 300, rewards come together "
        "after every 300th decision. Prototype: the mean regret of the prototype of AdaKL-UCB's rule for late rewards in "
        f"{RUNS} runs on five closed forms and the sets {' and '.join(SETS)}. Same runs: that of the library with the same "
        f"rewards and delays. The goal is a ratio of at most {MOST}. The suite `delayed` has closed forms in place of the two "
        "sets, and another seed.",
        "",
        "## All policies that are told nothing",
        "",
        *everyone(results),
        "",
        "On the suite `delayed`. [Late rewards](../policies/table.md): what a policy does with pulls whose reward is to come. "
        f"T = {HORIZON:,}, seed {SEED}; all policies play the same rewards and delays. Policies with a scale keep "
        f"its default of 1. {counts(replications)} {left_out()} Written by `python benchmarks/delayed.py`, which also writes "
        "`build/delayed.md`: every policy on every problem.",
        "",
    ]
    details = ["\n".join([f"## {name}", "", *table(rows)]) for name, rows in results.items()]
    if not complete:
        print("\n".join([*page, *details]))
        return
    path = recorded_sets.ROOT / "docs" / "results" / "delayed.md"
    path.write_text("\n".join(page), encoding="utf-8")
    print(f"written: {path} and {write_details('delayed', details)}")


def over(results: dict[str, list[Row]], delay: str, policy: str) -> tuple[float, float]:
    """Return the means, over the problems with one delay, of a policy's mean regret and of its 95 % quantile, in per cent."""
    rows = [row for name, on in results.items() if name.startswith(f"{delay}-") for row in on if row.name == policy]
    return 100.0 * float(np.mean([row.mean for row in rows])), 100.0 * float(np.mean([row.high for row in rows]))


def ours(results: dict[str, list[Row]], same: dict[str, list[Row]]) -> list[str]:
    """Return the table of AdaKL-UCB, compared with the prototype if the same runs were played."""
    lines = ["| delay | prototype | same runs | ratio | suite |", "| --- | ---: | ---: | ---: | ---: |"]
    for delay, (title, goal) in DELAYS.items():
        mean, high = over(same, delay, OURS.name) if same else (np.nan, np.nan)
        cells = [title, f"{goal:.3g}", f"{mean:.3g} / {high:.3g}", f"{mean / goal:.3f}"]
        lines.append("| {} | {:.3g} / {:.3g} |".format(" | ".join(cells), *over(results, delay, OURS.name)))
    return lines


def everyone(results: dict[str, list[Row]]) -> list[str]:
    """Return the table of all policies, by their mean regret over all delays."""
    order = []
    for policy in UNINFORMED:
        figures = [over(results, delay, policy.name) for delay in DELAYS]
        cells = " | ".join(f"{mean:.3g} / {high:.3g}" for mean, high in figures)
        order.append((sum(mean for mean, _ in figures), f"| {policy.name} | {policy.facts.late} | {cells} |"))
    titles = " | ".join(title for title, _ in DELAYS.values())
    head = [f"| policy | late rewards | {titles} |", f"| --- | --- |{' ---: |' * len(DELAYS)}"]
    return [*head, *(line for _, line in sorted(order))]


# --- the prototype's runs --------------------------------------------------------------------------------------------------


def again(folder: Path) -> dict[str, list[Row]]:
    """Return the regret of AdaKL-UCB in the prototype's runs: NumPy drew their rewards, and then their delays."""
    results = {}
    for name, (draw, means) in prototype_problems(folder).items():
        gaps = means.max() - means
        for delay in DELAYS:
            shares = []
            for run in range(RUNS):
                generator = np.random.default_rng([run, 77])
                rewards = draw(generator)
                pulls = played(rewards, prototype_delays(delay, generator))
                shares.append(gaps @ pulls / (gaps.mean() * HORIZON))
            results[f"{delay}-{name}"] = [Row(OURS.name, "nothing", np.array(shares))]
    return results


def prototype_problems(folder: Path) -> dict[str, tuple[Draw, Floats]]:
    """Return how the rewards of each problem are drawn, a row per arm, and the arms' means."""

    def lognormal(costs: list[float], sigma: float) -> tuple[Draw, Floats]:
        def draw(generator: np.random.Generator) -> Floats:
            return np.stack([-m * np.exp(sigma * generator.standard_normal(HORIZON) - sigma**2 / 2) for m in costs])

        return draw, -np.array(costs)

    def pareto(means: list[float], tail: float) -> tuple[Draw, Floats]:
        def draw(generator: np.random.Generator) -> Floats:
            scales = [mean * (tail - 1.0) / tail for mean in means]
            return np.stack([scale * np.exp(generator.standard_exponential(HORIZON) / tail) for scale in scales])

        return draw, np.array(means)

    def recorded(name: str) -> tuple[Draw, Floats]:
        rows = pl.read_parquet(folder / name / "data.parquet").partition_by("arm", as_dict=True, maintain_order=True)
        arms = [arm["reward"].to_numpy() for _, arm in sorted(rows.items(), key=lambda item: item[0])]
        return lambda generator: np.stack([generator.choice(arm, HORIZON) for arm in arms]), np.array(
            [arm.mean() for arm in arms]
        )

    return {
        "close": lognormal([1.0, 1.05, 1.1, 1.2, 1.5], 1.0),
        "pair": lognormal([1.0, 1.05], 0.5),
        "costs": pareto([-1.0, -1.5, -2.0], 1.5),
        "ten": lognormal(np.linspace(1.0, 2.0, 10).tolist(), 1.5),
        "orders": pareto([2.0, 1.6, 1.4, 1.0], 2.2),
        **{name: recorded(name) for name in SETS},
    }


def prototype_delays(delay: str, generator: np.random.Generator) -> Ints:
    """Return the delay of each decision."""
    if delay == "pareto":
        return np.minimum(150.0 * np.exp(generator.standard_exponential(HORIZON)), HORIZON).astype(np.int64)
    law = rb.problems.delays.batches(300) if delay == "batches" else rb.problems.delays.constant(int(delay))
    return law.drawn(HORIZON, np.zeros(4, dtype=np.uint64))


def next_reward(code: Ints, par: Floats, start: Ints, pool: Floats, arm: int, stream: UInts) -> float:
    """Return the next of an arm's rewards; the stream counts them."""
    reward: float = pool[start[arm] + int(stream[0])]
    stream[0] += np.uint64(1)
    return reward


def played(rewards: Floats, delays: Ints) -> Ints:
    """Return the pulls of each arm by AdaKL-UCB, if the k-th pull of an arm gives the k-th number of its row."""
    arms = len(rewards)
    state, params = OURS.start(arms, HORIZON, np.zeros(4, dtype=np.uint64)), OURS.params()
    starts = np.arange(arms + 1, dtype=np.int64) * HORIZON
    table = LawTable(np.zeros(arms, dtype=np.int64), np.zeros((arms, 1)), starts, rewards.reshape(-1))
    counters, pulls = np.zeros((arms, 4), dtype=np.uint64), np.zeros(arms, dtype=np.int64)
    more: tuple[Any, ...] = (np.zeros(arms), np.array([HORIZON]), np.zeros(1), pulls, np.zeros(3), late_record(delays))
    hooks: tuple[Any, ...] = (*OURS.hooks("select", "take", "update", "full"), next_reward, missed)
    t = 0
    while t < HORIZON:
        args = (params, state, table, counters, *more, t, HORIZON)
        if not _compiled:  # a lookup takes as long as a run
            _compiled.append(compiled(partial(loops.play_late, *hooks), label=OURS.label, args=args))
        t = _compiled[0](*flat(args))
        state = OURS.grown(state) if t < HORIZON else state
    return pulls


if __name__ == "__main__":
    main()
