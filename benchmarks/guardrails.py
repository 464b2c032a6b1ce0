"""Guardrails: false pauses, times to pause, and what a violator costs: ``python benchmarks/guardrails.py [RUNS]``.

With at least 1,000 runs (the default) writes docs/results/guardrails.md; otherwise prints it. It takes about three minutes on one
core.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import binom

import robandit as rb
from robandit.anytime.bernoulli import log_e_value
from robandit.anytime.prefix import ResolvedPrefix

PULLS = 20_000
ALPHA = 0.05
SEED = 40
NEVER = PULLS + 1
DECISIONS = 4_000
SCENES = {
    "violator at 2e": (0.10, 0.03, 0.01),
    "violator at 4e": (0.20, 0.03, 0.01),
    "all within the limit": (0.03, 0.03, 0.01),
    "the cheapest one at the limit": (0.05, 0.03, 0.01),
}
"""The error rates of the arms, whose mean costs are 1, 1.3 and 2."""
COSTS = (1.0, 1.3, 2.0)


def limits(rate: float) -> np.ndarray:
    """Return the fewest errors that pause an arm, for each number of outcomes from 1 on."""
    found, errors = [], 0
    for n in range(1, PULLS + 1):
        while errors <= n and log_e_value(errors, n, rate) < -math.log(ALPHA):
            errors += 1
        found.append(errors)
        errors = min(errors, n)
    return np.array(found)


def first_crossings(rate: float, least: np.ndarray, runs: int) -> np.ndarray:
    """Return after how many outcomes each run has at least so many errors."""
    rng = np.random.default_rng([SEED, round(1e6 * rate)])
    times = np.full(runs, NEVER)
    for run in range(runs):
        hits = np.flatnonzero(np.cumsum(rng.random(PULLS) < rate) >= least)
        times[run] = hits[0] + 1 if hits.size else NEVER
    return times


def single_arms(runs: int) -> list[str]:
    lines = [
        "| limit e | paused at 0.5 e | paused at e | naive test at e | pulls until paused at 2 e | at 4 e |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for rate in (0.05, 0.01):
        least = limits(rate)
        naive = binom.isf(ALPHA, np.arange(1, PULLS + 1), rate) + 1
        half, at, control = (
            np.mean(first_crossings(p, each, runs) < NEVER)
            for p, each in ((rate / 2, least), (rate, least), (rate, naive))
        )
        late = [first_crossings(factor * rate, least, runs) for factor in (2, 4)]
        cells = [f"{np.median(each):.0f} / {np.quantile(each, 0.95):.0f}" for each in late]
        lines.append(f"| {rate:.0%} | {half:.1%} | {at:.1%} | {control:.0%} | {cells[0]} | {cells[1]} |")
    return lines


def late_outcomes(runs: int, in_order: bool) -> float:
    """Return how often an arm at the limit is paused, if errors are known at once and successes 200 decisions later."""
    claims = 0
    for run in range(runs):
        error = np.random.default_rng([SEED, run]).random(1_000) < 0.05
        known = np.arange(1_000) + np.where(error, 0, 200)
        prefix, total, n = ResolvedPrefix(arms=1), 0.0, 0
        claimed = False
        for now in range(1_000):
            prefix.decided(0, now)
            for id in np.flatnonzero(known == now).tolist():
                for value in prefix.resolved(0, id, float(error[id])) if in_order else [float(error[id])]:
                    total, n = total + value, n + 1
                    claimed = claimed or (value > 0.0 and log_e_value(total, n, 0.05) >= -math.log(ALPHA))
        claims += claimed
    return claims / runs


def lived(errors: tuple[float, ...], seed: int, guarded: bool) -> tuple[list[int], bool]:
    """Return the pulls of each arm, and whether an arm within the limit was paused."""
    rng = np.random.default_rng([SEED, seed])
    rails = [rb.Guardrail("error", at_most=0.05, alpha=ALPHA)] if guarded else None
    bandit = rb.Bandit([0, 1, 2], minimize=True, seed=seed, metrics=["error"], guardrails=rails, compile="now")
    for _ in range(DECISIONS):
        arm = bandit.select()
        cost = COSTS[arm] * math.exp(rng.standard_normal() - 0.5)
        bandit.update(arm, cost, metrics={"error": rng.random() < errors[arm]})
    false = any(errors[arm] <= 0.05 for arm in bandit.broken_guardrails())
    return [pulls for _, _, pulls in bandit.pulls()], false


def with_policy(runs: int) -> list[str]:
    lines = [
        "| error rates | pulls of violators without a guardrail | with one | false pauses |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, errors in SCENES.items():
        violators = [arm for arm, rate in enumerate(errors) if rate > 0.05]
        free, guarded = ([lived(errors, seed, each) for seed in range(runs)] for each in (False, True))
        before, after = (
            np.array([[pulls[arm] for arm in violators] for pulls, _ in each]).sum(axis=1) for each in (free, guarded)
        )
        cells = [
            f"{each.mean():,.0f} / {np.quantile(each, 0.95):,.0f}" if violators else "-" for each in (before, after)
        ]
        false = np.mean([paused for _, paused in guarded])
        lines.append(
            f"| {name}: {', '.join(f'{rate:.0%}' for rate in errors)} | {cells[0]} | {cells[1]} | {false:.1%} |"
        )
    return lines


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    warnings.simplefilter("ignore")  # of guardrails, and of drift: 1 % of the arms have a false alarm
    few = max(10, runs // 4)
    lines = [
        "# Guardrails",
        "",
        *single_arms(runs),
        "",
        f"One arm, alpha = 5 %, {PULLS:,} outcomes, {runs} runs. Pulls until paused: median / 95 % quantile. The naive test asks "
        "after each outcome whether a binomial number would reach the count of errors with a probability of at most 5 %.",
        "",
        f"Late outcomes: an arm at the limit (5 %) whose errors are known at once and whose successes 200 decisions later is "
        f"paused in {late_outcomes(few, True):.0%} of {few} runs of 1,000 decisions. If outcomes counted in the "
        f"order of arrival: {late_outcomes(few, False):.0%}.",
        "",
        "## With AdaKL-UCB",
        "",
        *with_policy(few),
        "",
        f"Three arms with log-normal costs (sigma = 1) of the means 1, 1.3 and 2, a limit of 5 % and alpha = 5 %, "
        f"{DECISIONS:,} decisions, {few} runs: mean / 95 % quantile.",
        "",
        f"Made by `python benchmarks/guardrails.py {runs}`, seed {SEED}.",
        "",
    ]
    page = re.sub(r"(?<=\d)%", " %", "\n".join(lines))
    if runs < 1_000:
        print(page)
        return
    path = Path(__file__).parents[1] / "docs" / "results" / "guardrails.md"
    path.write_text(page, encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
