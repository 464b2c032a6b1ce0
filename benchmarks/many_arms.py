"""Study many arms and few pulls: ``python benchmarks/many_arms.py [FOLDER]`` prints the tables of docs/explanation/few-pulls.md.

The problems are made here: run times of solvers, log-normal and cut at a time-out. FOLDER may have recorded problems instead: every
``FOLDER/*/data.parquet`` with the columns arm and reward and at least 14 arms. ``--unseen 2`` prints only the table of variants,
with one column: AdaKL-UCB with another constant UNSEEN. Takes about ten minutes; ``--replications 20`` takes two.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

import robandit as rb
from robandit.kernel.types import Floats
from robandit.policies.adakl import clipped_index
from robandit.policies.adakl.adakl_ucb import FEW, KNOWN, LEAST_TAIL
from robandit.policies.base import Policy

HORIZON = 10_000
SEED = 2026
LEAST_ARMS = 14
LOST = 50.0  # a run is lost if its regret is above this share of random play's, in per cent
SIGMA = 2.0  # of the logarithm of a run time
TIME_OUT = math.e
POINTS = 999  # quantiles that stand for a law
ELSEWHERE = ("latency", "far", "zeros", "student-1.5", "gaussian", "revenue-1.6", "clicks")
LONGEST = 20_000
FEWER = (5, 10, 20)
DRAWS = 100  # random subsets of arms, each played once with its own seed


class Variant(rb.AdaKLUCB):
    """AdaKL-UCB with other constants."""

    least: float = LEAST_TAIL
    known: float = KNOWN
    few: float = FEW

    def params(self) -> Any:
        return super().params()._replace(least=self.least, known=self.known, few=self.few)


# With few = 0 the factor of the level is at its limit from the first reward on.
VARIANTS: dict[str, Policy] = {
    "AdaKL-UCB": Variant(),
    "few 6": Variant(few=6.0),
    "known 0": Variant(known=0.0),
    "few 0": Variant(few=0.0),
    "few 0, known 0": Variant(few=0.0, known=0.0),
    "least 0.1": Variant(least=0.1),
}


# --- problems --------------------------------------------------------------------------------------------------------


def run_times(arms: int, spread: float) -> rb.Problem:
    """Return arms with capped log-normal run times whose log-medians are evenly spaced over ``spread``."""
    normal = ndtri((np.arange(POINTS) + 0.5) / POINTS)
    medians = np.random.default_rng(0).permutation(np.linspace(0.0, spread, arms))
    return rb.problems.recorded_problem(
        {str(i): -np.minimum(np.exp(m + SIGMA * normal), TIME_OUT) for i, m in enumerate(medians)}
    )


def made() -> dict[str, rb.Problem]:
    return {
        "close-20": run_times(20, 0.4),
        "close-60": run_times(60, 0.8),
        "wide-20": run_times(20, 3.0),
        "wide-60": run_times(60, 3.0),
    }


def one_best(arms: int, best: Any, others: Any) -> rb.Problem:
    return rb.Problem([others] * (arms - 1) + [best])


def controls() -> dict[str, rb.Problem]:
    """Problems on which a run is lost if the policy leaves the best arm too early."""
    chances = (0.03, 0.08)
    return {
        "one-best-30": one_best(30, rb.laws.Gaussian(mean=0.0, sd=1.0), rb.laws.Gaussian(mean=-0.5, sd=1.0)),
        "clicks-20": one_best(20, rb.laws.Bernoulli(p=0.06), rb.laws.Bernoulli(p=0.03)),
        "noisy-best-20": one_best(20, rb.laws.Gaussian(mean=0.0, sd=3.0), rb.laws.Gaussian(mean=-0.7, sd=0.3)),
        "rare-wins": rb.Problem(
            [rb.laws.Discrete(values=(-1.0, 20.0), probabilities=(1.0 - p, p)) for p in chances]
            + [rb.laws.Discrete(values=(-0.5, 1.0), probabilities=(0.5, 0.5))]
        ),
    }


def recorded(folder: Path) -> dict[str, rb.Problem]:
    found = {}
    for path in sorted(folder.glob("*/data.parquet")):
        groups = pl.read_parquet(path).group_by("arm", maintain_order=True)
        samples = {str(key[0]): rows["reward"].to_numpy() for key, rows in groups}
        if len(samples) >= LEAST_ARMS:
            found[path.parent.name] = rb.problems.recorded_problem(samples)
    return found


def deviations(problem: rb.Problem) -> Floats:
    return np.array([np.std(law.sample(4000, seed=0)) for law in problem.laws])


def price(problem: rb.Problem) -> float:
    """Return what telling every arm from the best one costs per unit of the level, in per cent of random play's regret.

    A UCB policy with level L pulls an arm about 2 L (sd/gap)^2 times before it leaves it.
    """
    gaps = problem.means.max() - problem.means
    worse = gaps > 0.0
    return float(100.0 * np.sum(2.0 * deviations(problem)[worse] ** 2 / gaps[worse]) / problem.uniform_regret(HORIZON))


# --- tables ----------------------------------------------------------------------------------------------------------


def print_row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def print_header(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*["---"] * len(cells))


def play(policies: list[Policy], problem: rb.Problem, horizon: int, runs: int, seed: int = SEED, **options: Any) -> Any:
    return rb.simulate(policies, problem, horizon, runs, seed=seed, progress=False, threads=1, **options)


def percent(result: Any, problem: rb.Problem) -> Floats:
    """Return the final regrets in per cent of random play's."""
    return np.asarray(100.0 * result.regret[:, :, -1] / problem.uniform_regret(result.horizon))


def print_problems(problems: dict[str, rb.Problem]) -> None:
    print_header(
        "problem", "arms", "sd / mean gap", "price of a unit of the level", "rewards equal to the arm's lowest"
    )
    for name, problem in problems.items():
        sds = deviations(problem)
        gaps = problem.means.max() - problem.means
        samples = [law.sample(4000, seed=0) for law in problem.laws]
        ties = 100.0 * np.mean([np.mean(x == x.min()) for x in samples])
        print_row(name, len(gaps), f"{sds.mean() / gaps.mean():.1f}", f"{price(problem):.0f} %", f"{ties:.0f} %")


def print_policies(problems: dict[str, rb.Problem], replications: int) -> None:
    """Regret of policies in per cent of random play's, and lost runs."""
    names = [
        "epsilon-greedy",
        "AdaKL-UCB",
        "UCB1, sd",
        "UCB1, sd/4",
        "GaussianTS",
        "Dirichlet sampling",
        "LB-SDA",
        "ForceMoM",
    ]
    print_header("problem", *names)
    for name, problem in problems.items():
        sd = float(deviations(problem).mean())
        policies = [
            rb.EpsilonGreedy(),
            rb.AdaKLUCB(),
            rb.UCB1(scale=sd),
            rb.UCB1(scale=sd / 4.0),
            rb.GaussianTS(),
            rb.DirichletSampling(),
            rb.LBSDA(),
            rb.ForceMoM(),
        ]
        finals = percent(play(policies, problem, HORIZON, replications), problem)
        print_row(name, *[f"{x.mean():.0f} ({np.sum(x > LOST)})" for x in finals])


def print_periods(problems: dict[str, rb.Problem], replications: int) -> None:
    """Where the regret goes: per period (and the rate within it), and by the rank of the arms."""
    print_header(
        "problem",
        "policy",
        "first 2K pulls",
        "to 5K",
        "to 20K",
        "to T",
        "best tenth of arms",
        "to median",
        "worst half",
        "pulls of an arm of that half",
    )
    policies = {"epsilon-greedy": rb.EpsilonGreedy(), "AdaKL-UCB": rb.AdaKLUCB()}
    for name, problem in problems.items():
        gaps = problem.means.max() - problem.means
        arms = len(gaps)
        ends = [2 * arms, 5 * arms, 20 * arms, HORIZON]
        lengths = np.diff([0, *ends])
        result = play(list(policies.values()), problem, HORIZON, replications, checkpoints=ends)
        order = np.argsort(gaps)
        total = problem.uniform_regret(HORIZON)
        for policy, regret, pulls in zip(policies, result.regret.mean(axis=1), result.pulls.mean(axis=1), strict=True):
            parts = np.diff([0.0, *regret])
            shares = [
                f"{100 * x / total:.1f} ({100 * x / (n * gaps.mean()):.0f} %)"
                for x, n in zip(parts, lengths, strict=True)
            ]
            by_rank = 100.0 * (pulls * gaps)[order] / total
            groups = np.split(by_rank, [max(1, arms // 10), arms // 2])
            print_row(
                name,
                policy,
                *shares,
                *[f"{x.sum():.1f}" for x in groups],
                f"{np.median(pulls[order][arms // 2 :]):.0f}",
            )


def print_variants(variants: dict[str, Policy], problems: dict[str, rb.Problem], replications: int) -> None:
    """Mean regret, 95 % quantile, worst and lost runs of the variants."""
    print_header("problem", *variants)
    tasks = {task.name: task for suite in (rb.suites.heavy(), rb.suites.light()) for task in suite.tasks}
    cases = [(name, problem, HORIZON, replications) for name, problem in problems.items()]
    cases += [(name, problem, HORIZON, 2 * replications) for name, problem in controls().items()]
    cases += [(name, tasks[name].problem, min(tasks[name].horizon, LONGEST), 2 * replications) for name in ELSEWHERE]
    lost = np.zeros(len(variants), dtype=int)  # on the controls and the suites
    for name, problem, horizon, runs in cases:
        finals = percent(play(list(variants.values()), problem, horizon, runs), problem)
        if name not in problems:
            lost += np.sum(finals > LOST, axis=1)
        print_row(
            name, *[f"{x.mean():.1f}, {np.quantile(x, 0.95):.0f}, {x.max():.0f} ({np.sum(x > LOST)})" for x in finals]
        )
    print_row("lost runs of the controls and suites", *lost)


def print_fewer(problems: dict[str, rb.Problem]) -> None:
    """AdaKL-UCB on random subsets of the arms; regret is against the best of all arms."""
    horizons = (1000, HORIZON)
    print_header("problem", "T", *[f"{m} arms" for m in FEWER], "all arms", "epsilon-greedy, all arms")
    for name, problem in problems.items():
        rng = np.random.default_rng(SEED)
        best = problem.means.max()
        subsets = {
            m: [rng.choice(len(problem.laws), m, replace=False) for _ in range(DRAWS)]
            for m in FEWER
            if m < len(problem.laws)
        }
        for horizon in horizons:
            cells = []
            for m in FEWER:
                regrets = []
                for draw, subset in enumerate(subsets.get(m, [])):
                    part = rb.Problem([problem.laws[i] for i in subset])
                    regret = play([rb.AdaKLUCB()], part, horizon, 1, seed=SEED + draw).regret[0, 0, -1]
                    regrets.append(regret + horizon * (best - part.means.max()))
                cells.append(f"{100 * np.mean(regrets) / problem.uniform_regret(horizon):.0f}" if regrets else "-")
            both = percent(play([rb.AdaKLUCB(), rb.EpsilonGreedy()], problem, horizon, DRAWS), problem).mean(axis=1)
            print_row(name, f"{horizon:,}", *cells, *[f"{x:.0f}" for x in both])


def main() -> None:
    parser = argparse.ArgumentParser(description="Study many arms and few pulls.")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="recorded problems: FOLDER/*/data.parquet with columns arm and reward"
    )
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--unseen", type=float, help="measure only AdaKL-UCB with this constant UNSEEN")
    given = parser.parse_args()
    problems = made() if given.folder is None else recorded(given.folder)
    if given.unseen is not None:
        clipped_index.UNSEEN = (
            given.unseen
        )  # before anything is compiled: constants are part of the key of compiled code
        print_variants({f"UNSEEN = {given.unseen:g}": Variant()}, problems, given.replications)
        return
    print_problems(problems)
    print_policies(problems, given.replications)
    print_periods(problems, given.replications)
    print_variants(VARIANTS, problems, given.replications)
    print_fewer(problems)


if __name__ == "__main__":
    main()
