"""Measure speed as ratios within one run: ``make bench``. Prints a table and writes benchmarks/results.json.

Most rows have a goal. Single-threaded times are processor times. Each time is the best of several tries, because the machine is
shared.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cluster
import compiling
import drift_detector
import first_decision
import hard_sequences
import numpy as np

import recorded
import robandit as rb
from robandit.kernel import compiled
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws.table import draw
from robandit.policies.base import Policy
from robandit.policies.classic.ucb1 import COUNT, SUM

TRIES = 5
HERE = Path(__file__).parent


class ScanState(NamedTuple):
    arms: Floats
    clock: Ints


class ScanParams(NamedTuple):
    scale: float


class ScanUCB1(Policy):
    """UCB1 as usually written: computes all indices in every round. The baseline."""

    scale: float = 1.0

    def init(self, arms: int, horizon: int | None) -> ScanState:
        return ScanState(np.zeros((arms, 2)), np.zeros(1, dtype=np.int64))

    @staticmethod
    def select(p: ScanParams, s: ScanState) -> int:
        level = 2.0 * math.log(s.clock[0] + 1.0)
        best = -math.inf
        chosen = 0
        for arm in range(s.arms.shape[0]):
            n = s.arms[arm, COUNT]
            if n == 0.0:
                return arm
            value = s.arms[arm, SUM] / n + p.scale * math.sqrt(level / n)
            if value > best:
                best = value
                chosen = arm
        return chosen

    @staticmethod
    def update(p: ScanParams, s: ScanState, arm: int, reward: float) -> None:
        s.arms[arm, SUM] += reward
        s.arms[arm, COUNT] += 1.0
        s.clock[0] += 1


def draw_all(table: Any, streams: UInts, pulls: int) -> float:
    """Draw rewards and return their sum."""
    total = 0.0
    arms = streams.shape[0]
    arm = 0
    for _ in range(pulls):
        total += draw(table.code, table.par, table.start, table.pool, arm, streams[arm])
        arm += 1
        if arm == arms:
            arm = 0
    return total


def problem(arms: int, tail: float = 1.5) -> rb.Problem:
    return rb.problems.negated_pareto(means=(-np.linspace(1.0, 5.5, arms)).tolist(), tail=tail)


def per_pull(policy: Policy, arms: int, horizon: int, tries: int = TRIES, tail: float = 1.5) -> float:
    """Return nanoseconds per pull, including drawing the reward."""
    run = partial(rb.simulate, policy, problem(arms, tail), threads=1, progress=False)
    run(10, 1, seed=0)
    return min(float(run(horizon, 1, seed=s).seconds[0]) for s in range(tries)) / horizon * 1e9


# (policy, largest allowed time over full-scan UCB1, tail index). Policies get the moments that they need; Catoni needs a variance.
GOALS: list[tuple[Policy, float, float]] = [
    (rb.RobustUCB(), 3.0, 1.5),
    (rb.RobustUCB(estimator="median_of_means"), 3.0, 1.5),
    (rb.RobustMOSS(), 3.0, 1.5),
    (rb.RUCBTEA(), 3.0, 1.5),
    (rb.RUCBMoM(), 3.0, 1.5),
    (rb.RUCBLT(), 3.0, 1.5),
    (rb.UCBV(), 3.0, 1.5),
    (rb.NormalUCB(), 3.0, 1.5),
    (rb.HTINF(), 6.0, 1.5),
    (rb.OptTINF(), 6.0, 1.5),
    (rb.AdaTINF(), 6.0, 1.5),
    (rb.Ada2TINF(), 6.0, 1.5),
    (rb.APE2(), 10.0, 1.5),
    (rb.APE2(perturbation="gev"), 10.0, 1.5),
    (rb.MRUCB(), 10.0, 1.5),
    (rb.MRAPE(), 10.0, 1.5),
    (rb.RobustUCB(estimator="catoni"), 50.0, 2.5),
    (rb.KLinfUCB(), 20.0, 1.5),
    (rb.KurtosisUCB(kappa=1.1), math.inf, 1.5),
    (rb.CatoniLepskiiUCB(), math.inf, 1.5),
    (rb.ForceMoM(), 1.5, 1.5),
    (rb.UniINF(), 6.0, 1.5),
    (rb.ClippedSGDUCB(), math.inf, 1.5),
    (rb.LBSDA(), 6.0, 1.5),
    (rb.LBSDA(memory="limited"), 6.0, 1.5),
    (rb.LBSDA(window=1000), 6.0, 1.5),
    (rb.DirichletSampling(), 50.0, 1.5),
    (rb.DirichletSampling(bonus="bounded"), 50.0, 1.5),
    (rb.GaussianTS(), 6.0, 1.5),
    (rb.IMED(), 3.0, 1.5),
    (rb.IMED(family="bounded"), 6.0, 1.5),
    (rb.MaillardSampling(), 6.0, 1.5),
]


def best(action: Callable[[], object], tries: int = TRIES, clock: Callable[[], float] = time.process_time) -> float:
    times = []
    for _ in range(tries):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)


def draws(arms: int, pulls: int) -> float:
    table = problem(arms).tabulate()
    streams = np.random.SeedSequence(0).generate_state(4 * arms, np.uint64).reshape(arms, 4)
    run = compiled(draw_all, label="the benchmark", args=(table, streams, pulls))
    return best(lambda: run(*table, streams, pulls)) / pulls * 1e9


def live(policy: Policy, pulls: int = 100_000) -> float:
    """Return microseconds of one select() and update(), at K = 10, after 1e5 pulls."""
    bandit = rb.Bandit(range(10), policy, seed=0, compile="now")
    rewards = (-np.random.default_rng(0).pareto(1.5, pulls) - 1.0).tolist()

    def play() -> None:
        for reward in rewards:
            bandit.update(bandit.select(), reward)

    play()
    return best(play, 3) / pulls * 1e6


class Unguarded(rb.Bandit):
    """A bandit for one thread only: `select` and `update` without the guard."""

    _choose_alone = rb.Bandit._choose
    _learn_alone = rb.Bandit._learn


def in_turns(*plays: Callable[[], None], repeats: int = 300) -> list[float]:
    """Return seconds of each of several short runs, which take turns."""
    times: list[list[float]] = [[] for _ in plays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same rewards in every run look like drift
        for _ in range(repeats):
            for play, each in zip(plays, times, strict=True):
                start = time.perf_counter()
                play()
                each.append(time.perf_counter() - start)
    return [float(np.quantile(each, 0.1)) for each in times]  # other programs disturb most runs


def at_once(bandit: rb.Bandit, rewards: list[Any]) -> None:
    for reward in rewards:
        bandit.update(bandit.select(), reward)


def later(bandit: rb.Bandit, rewards: list[Any]) -> None:
    for reward in rewards:
        bandit.reward(bandit.decide(), reward)


def price_of_threads(policy: Policy, rounds: int = 300) -> float:
    """Return what safety in threads adds to select() + update() in one thread."""
    rewards = (-np.random.default_rng(0).pareto(1.5, rounds) - 1.0).tolist()
    bandits = [kind(range(10), policy, seed=0, compile="now") for kind in (rb.Bandit, Unguarded)]
    guarded, unguarded = in_turns(*(partial(at_once, bandit, rewards) for bandit in bandits))
    return guarded / unguarded - 1.0


def kinds_of_rewards(policy: Policy, rounds: int = 300) -> dict[str, float]:
    """Return the times of select() + update() with NumPy's numbers and with integers, as multiples of those with floats."""
    values = -np.random.default_rng(0).pareto(1.5, rounds) - 1.0
    kinds: dict[str, list[Any]] = {
        "floats": values.tolist(),
        "np.float64": list(values),
        "np.float32": list(values.astype(np.float32)),
        "np.int64": list(values.astype(np.int64)),
        "int": values.astype(np.int64).tolist(),
    }
    times = in_turns(
        *(partial(at_once, rb.Bandit(range(10), policy, seed=0, compile="now"), each) for each in kinds.values())
    )
    return dict(zip(list(kinds)[1:], (each / times[0] for each in times[1:]), strict=True))


def late_rewards(policy: Policy, rounds: int = 300) -> tuple[float, float]:
    """Return microseconds of decide() + reward(), and the same as a multiple of select() + update()."""
    rewards = (-np.random.default_rng(0).pareto(1.5, rounds) - 1.0).tolist()
    plays = [partial(play, rb.Bandit(range(10), policy, seed=0, compile="now"), rewards) for play in (later, at_once)]
    seconds, usual = in_turns(*plays)
    return seconds / rounds * 1e6, seconds / usual


def packing(count: int = 100_000) -> float:
    """Return milliseconds of packing ``count`` open decisions."""
    bandit = rb.Bandit(range(10), rb.UCB1(), compile="now")
    for _ in range(count):
        bandit.decide()
    return best(bandit.to_bytes) * 1e3


def in_process(code: str, tries: int, **environment: str) -> tuple[float, float]:
    """Return processor and wall-clock seconds of a new Python process that runs this code."""
    processor, wall = [], []
    # Most users store byte code.
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | environment
    for _ in range(tries):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, env=variables, stderr=subprocess.DEVNULL)
        after = os.times()
        processor.append(after.children_user + after.children_system - before.children_user - before.children_system)
        wall.append(after.elapsed - before.elapsed)
    return min(processor), min(wall)


SIMULATION = """
import robandit as rb
problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
rb.simulate(rb.AdaRUCB(), problem, 1000, 1, seed=0, progress=False)
"""


def two_threads() -> tuple[float, str]:
    """Return the speed-up of two threads over one (wall clock), and the machine's load."""
    rb.simulate(rb.AdaRUCB(), problem(10), 10, 1, seed=0, progress=False)
    run = partial(rb.simulate, rb.AdaRUCB(), problem(10), 2_000_000, 16, seed=0, progress=False)
    one = best(lambda: run(threads=1), 3, time.perf_counter)
    two = best(lambda: run(threads=2), 3, time.perf_counter)
    return one / two, f"load average {os.getloadavg()[0]:.2f}"


def estimates() -> dict[str, float]:
    """Return seconds per call on a million values."""
    x = -rb.laws.Pareto(tail=1.5).sample(1_000_000, 0)
    light = rb.laws.Gaussian(mean=0.0, sd=1.0).sample(1_000_000, 0)
    calls: dict[str, Callable[[], object]] = {
        "numpy.mean": lambda: np.mean(x),
        "trimming_threshold": lambda: rb.estimators.trimming_threshold(x, 0.05),
        "median_of_means": lambda: rb.estimators.median_of_means(x, delta=0.05),
        "catoni_mean": lambda: rb.estimators.catoni_mean(light, v=1.0, delta=0.05),
    }
    for call in calls.values():
        call()
    return {name: best(call, 25, time.perf_counter) for name, call in calls.items()}


class Row(NamedTuple):
    """A measured value and its goal; an infinite goal means no goal."""

    title: str
    measured: float
    unit: str
    goal: float
    at_most: bool

    @property
    def met(self) -> bool:
        return self.measured <= self.goal if self.at_most else self.measured >= self.goal

    @property
    def limit(self) -> str:
        return "" if math.isinf(self.goal) else f"{'<=' if self.at_most else '>='} {self.goal:g}"

    def __str__(self) -> str:
        limit = f"{self.limit} {self.unit}" if self.limit else ""
        verdict = "ok" if self.met else "MISSED"
        return f"{self.title:<66} {self.measured:9.3g} {self.unit:<6} {limit:<14} {verdict}"


def figures() -> list[Row]:
    """Measure everything, printing each row at once."""
    rows: list[Row] = []

    def row(title: str, measured: float, unit: str, goal: float, *, at_most: bool = True) -> None:
        rows.append(Row(title, measured, unit, goal, at_most))
        print(rows[-1], flush=True)

    adar, lazy, scan = rb.AdaRUCB(), rb.UCB1(), ScanUCB1()
    ten: dict[Policy, float] = {p: per_pull(p, 10, 1_000_000) for p in (adar, lazy, scan)}
    policy: Policy
    rewards = draws(10, 1_000_000)
    row("full-scan UCB1, K=10, T=1e6", ten[scan], "ns", math.inf)
    row("rewards alone, K=10", rewards, "ns", math.inf)
    row("AdaR-UCB, K=10, T=1e6", ten[adar], "ns", math.inf)
    row("AdaR-UCB / full-scan UCB1, K=10, T=1e6", ten[adar] / ten[scan], "x", 0.7)
    row("AdaR-UCB / rewards alone, K=10, T=1e6", ten[adar] / rewards, "x", 4.0)
    row("lazy UCB1 / full-scan UCB1, K=10, T=1e6", ten[lazy] / ten[scan], "x", 1.0)
    adakl, proved = rb.AdaKLUCB(), rb.AdaKLProved()
    ten |= {p: per_pull(p, 10, 1_000_000) for p in (adakl, proved)}
    for policy in (adakl, proved):
        row(f"{policy.name} / full-scan UCB1, K=10, T=1e6", ten[policy] / ten[scan], "x", 5.0)
        row(f"{policy.name}, per pull, T=1e6 / T=1e4", ten[policy] / per_pull(policy, 10, 10_000), "x", 2.0)
    hundred: dict[Policy, float] = {p: per_pull(p, 100, 1_000_000) for p in (adar, lazy, scan)}
    row("full-scan UCB1, K=100, T=1e6", hundred[scan], "ns", math.inf)
    row("AdaR-UCB, K=100, T=1e6", hundred[adar], "ns", math.inf)
    row("AdaR-UCB / full-scan UCB1, K=100, T=1e6", hundred[adar] / hundred[scan], "x", 0.2)
    row("lazy UCB1 / full-scan UCB1, K=100, T=1e6", hundred[lazy] / hundred[scan], "x", 0.3)
    short = per_pull(adar, 10, 100_000)
    scanned = per_pull(scan, 10, 100_000)
    row("full-scan UCB1, K=10, T=1e5", scanned, "ns", math.inf)
    for policy, goal, tail in GOALS:
        informed = policy.informed_by(problem(10, tail))
        usual = per_pull(informed, 10, 100_000, tail=tail)
        row(f"{policy.name} / full-scan UCB1, K=10, T=1e5", usual / scanned, "x", goal)
        if isinstance(policy, rb.KurtosisUCB):  # it ignores rewards during the first 1e4 pulls
            row(f"{policy.name}, per pull, T=1e6 / T=1e5", per_pull(informed, 10, 1_000_000, 3) / usual, "x", 3.0)
        else:
            row(f"{policy.name}, per pull, T=1e5 / T=1e4", usual / per_pull(informed, 10, 10_000, tail=tail), "x", 3.0)
    row("AdaR-UCB per pull, T=1e7 / T=1e5, K=10", per_pull(adar, 10, 10_000_000, 2) / short, "x", 2.0)
    for policy in (adar, rb.AdaKLUCB()):
        row(f"live {policy.name}, select() + update(), K=10, after 1e5 pulls", live(policy), "us", 3.0)
        row("  the same before it is compiled", first_decision.interpreted(policy), "us", math.inf)
    for policy in (adar, rb.AdaKLUCB()):
        for arms in (2, 100):
            worst, ratio = hard_sequences.slowest(policy, arms)
            row(f"live {policy.name}, K={arms}, T=1e5, hard: {worst.sequence}", worst.mean, "us", 50.0)
            row("  the same / independent rewards", ratio, "x", 25.0)
    for policy in (rb.UCB1(), rb.AdaKLUCB()):
        row(f"price of threads, {policy.name}, select() + update()", price_of_threads(policy), "x", 0.25)
    for policy in (rb.UCB1(), rb.AdaKLUCB()):
        for kind, ratio in kinds_of_rewards(policy).items():
            row(f"{policy.name}, select() + update(), rewards {kind} / float", ratio, "x", 1.3)
    for policy in (rb.UCB1(), adar, rb.AdaKLUCB()):
        microseconds, ratio = late_rewards(policy)
        row(f"{policy.name}, decide() + reward()", microseconds, "us", 3.5)
        row(f"{policy.name}, decide() + reward() / select() + update()", ratio, "x", 2.7)
    row("to_bytes() of a bandit with 100,000 open decisions", packing(), "ms", 5.0)
    seconds = estimates()
    for name, goal in (("trimming_threshold", 6.0), ("median_of_means", 3.0), ("catoni_mean", 80.0)):
        row(f"{name} / numpy.mean, n=1e6", seconds[name] / seconds["numpy.mean"], "x", goal)
    detector = drift_detector.per_reward(256)
    row("drift detector, batches of 256, per reward", detector, "ns", 150.0)
    row("drift detector / rewards alone", detector / rewards, "x", math.inf)
    row("new process, empty cache: import to first decision", first_decision.cold(), "s", 1.0)
    for title, way, names in (
        (f"cold precompile of {len(compiling.SOME)} policies, CPU", "", compiling.SOME),
        ("cold live entries of AdaKL-UCB, CPU", "live", ("AdaKLUCB",)),
    ):
        after, before = compiling.seconds(way or "now", names), compiling.seconds(f"0.1 {way}", names)
        row(title, after, "s", math.inf)
        row(f"{title} / as in version 0.1", after / before, "x", 0.5)
    imports = ("pass", "import numpy", "import robandit", "import robandit.client")
    empty, numpy, whole, client = (in_process(code, 5) for code in imports)
    row("import robandit, processor time", whole[0] - empty[0], "s", 0.6)
    row("import robandit, wall clock", whole[1] - empty[1], "s", 0.2)
    row("import robandit / import numpy, wall clock", (whole[1] - empty[1]) / (numpy[1] - empty[1]), "x", math.inf)
    row("import robandit.client, wall clock", client[1] - empty[1], "s", 0.2)
    with tempfile.TemporaryDirectory() as folder:
        cold = in_process(SIMULATION, 1, ROBANDIT_CACHE_DIR=folder)
        cached = in_process(SIMULATION, 5, ROBANDIT_CACHE_DIR=folder)
    row("new process, cached simulation, wall clock", cached[1], "s", 1.5)
    row("cold compilation of AdaR-UCB, wall clock", cold[1] - cached[1], "s", 15.0)
    with tempfile.TemporaryDirectory() as folder:
        for name, count in (("rewards.parquet", 10_000_000), ("rewards.csv", 3_000_000)):
            summary = recorded.figures(Path(folder), name, count)
            data = f"{count // 1_000_000} million rewards, {'Parquet' if 'parquet' in name else 'CSV'}"
            row(f"summary of {data}", summary["rows"] / summary["seconds"] / 1e6, "M/s", math.inf)
            row(f"summary / plain group-by mean, {data}", summary["seconds"] / summary["plain"], "x", 10.0)
            row(f"peak memory of the summary of {data}", summary["memory"], "MB", 1000.0)
    ratio, load = two_threads()
    row(f"two threads against one ({load})", ratio, "x", 1.7, at_most=False)
    dask = cluster.figures()
    if dask is None:
        print('clusters skipped: Dask is not installed (pip install "robandit[cluster]")')
        return rows
    load = f"load average {os.getloadavg()[0]:.2f}"
    row(f"two Dask workers against one ({load})", dask.one / dask.two, "x", 1.5, at_most=False)
    row("overhead per unit on a Dask worker, wall clock", dask.unit * 1e3, "ms", 50.0)
    row("  processor time of the worker", dask.worker * 1e3, "ms", math.inf)
    row("  processor time of client and scheduler", dask.client * 1e3, "ms", math.inf)
    return rows


def main() -> None:
    rows = figures()
    results = [
        {"what": row.title, "measured": row.measured, "unit": row.unit, "goal": row.limit or None, "met": row.met}
        for row in rows
    ]
    (HERE / "results.json").write_text(json.dumps({"load": os.getloadavg(), "figures": results}, indent=1) + "\n")
    missed = [row.title for row in rows if not row.met]
    print(f"\n{len(missed)} goals missed" + "".join(f"\n  {title}" for title in missed))


if __name__ == "__main__":
    main()
