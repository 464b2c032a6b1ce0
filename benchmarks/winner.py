"""Measure claims that may be looked at any time: ``python benchmarks/winner.py [RUNS]``.

With at least 300 runs (the default), which take about four minutes on one core, writes docs/results/winner.md; otherwise prints it.
Two arms with costs, looked at after every 25 decisions: how often a claim is false if both arms have the same law, how often and
when one is made if the costs of b are 30 % lower, and what late rewards do if they count in the order in which they arrive.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import robandit as rb
from robandit.anytime.capped import log_lower
from robandit.anytime.evidence import Counted, Evidence
from robandit.kernel.types import Floats

PAGE = Path(__file__).parents[1] / "docs" / "results" / "winner.md"
EVERY = 25
NEEDED = math.log(20.0)
NULLS: dict[str, tuple[float, Any]] = {
    "log-normal, sigma 1": (10.0, lambda rng, n: np.exp(rng.standard_normal((2, n)))),
    "Pareto, index 1.5": (20.0, lambda rng, n: np.exp(rng.standard_exponential((2, n)) / 1.5)),
    "0 or 1, 5 % ones": (1.0, lambda rng, n: (rng.random((2, n)) < 0.05).astype(float)),
}
SAMPLING: dict[str, float | None] = {"AdaKL-UCB": None, "AdaKL-UCB, floor of 20 %": 0.2, "in turns": 0.0}


def claims(counted: Counted) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether a and b are claimed to be lower: by means, and by pairs."""
    means = [log_lower(counted.weights[[i]], counted.weights[[1 - i]]).item() for i in (0, 1)]
    return np.array([means, [counted.more_often(i, 1 - i) for i in (0, 1)]]) >= NEEDED


def welch(sums: Floats, squares: Floats, n: Floats) -> bool:
    """Return whether Welch's test rejects at 5 %."""
    if n.min() < 20:
        return False
    means = sums / n
    spread = float(((squares / n - means**2) / (n - 1.0)).sum())
    return bool(abs(means[0] - means[1]) > 1.96 * math.sqrt(spread))


def played(costs: Floats, cap: float, floor: float | None, seed: int) -> tuple[Floats, float]:
    """Return the decisions after which each claim was made first (means and pairs, of a and b), and so for Welch's test."""
    bandit = rb.Bandit([0, 1], seed=seed, minimize=True, cap=cap, floor=floor or None, compile="now")
    first, naive = np.full((2, 2), math.inf), math.inf
    sums, squares, n = np.zeros(2), np.zeros(2), np.zeros(2, dtype=np.int64)
    for t in range(1, costs.shape[1] + 1):
        arm = t % 2 if floor == 0.0 else bandit.select()
        cost = float(costs[arm, n[arm]])
        bandit.update(arm, cost)
        sums[arm] += cost
        squares[arm] += cost * cost
        n[arm] += 1
        if t % EVERY == 0:
            counted = bandit.counted()
            assert counted is not None
            first[claims(counted) & np.isinf(first)] = t
            naive = t if math.isinf(naive) and welch(sums, squares, n.astype(float)) else naive
    return first, naive


def percent(share: Any) -> str:
    return f"{100.0 * float(share):.1f} %"


def errors(runs: int) -> list[str]:
    rows = [
        "| costs of both arms | decisions | mean, capped | pairs | Welch's test |",
        "| --- | --- | --- | --- | --- |",
    ]
    for law, (cap, draw) in NULLS.items():
        for sampling, floor in SAMPLING.items():
            found = [played(draw(np.random.default_rng([r, 55]), 2000), cap, floor, r) for r in range(runs)]
            made = np.isfinite([first for first, _ in found]).any(axis=2).mean(axis=0)
            naive = np.isfinite([naive for _, naive in found]).mean()
            rows.append(f"| {law} | {sampling} | {percent(made[0])} | {percent(made[1])} | {percent(naive)} |")
            print(rows[-1], flush=True)
    return rows


def verdicts(runs: int) -> list[str]:
    rows = [
        "| decisions | mean, capped: claimed | after (median) | pairs: claimed | after (median) | false claims |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for sampling, floor in SAMPLING.items():
        draws = (np.exp(np.random.default_rng([r, 31]).standard_normal((2, 3000))) for r in range(runs))
        found = np.array([played(x * np.array([[1.0], [0.7]]), 10.0, floor, r)[0] for r, x in enumerate(draws)])
        cells = []
        for kind in (0, 1):
            when = found[:, kind, 1]
            middle = np.quantile(when, 0.5, method="higher")
            cells += [percent(np.isfinite(when).mean()), f"{middle:,.0f}" if math.isfinite(middle) else "-"]
        rows.append(f"| {sampling} | {' | '.join(cells)} | {percent(np.isfinite(found[:, :, 0]).any(axis=1).mean())} |")
        print(rows[-1], flush=True)
    return rows


def late(seed: int) -> tuple[bool, bool]:
    """Return whether a claim on means was made, for equal arms, in the order of the decisions, and of the arrivals.

    400 decisions of one arm at 2 per second, then 400 of the other at 200 per second; costs are latencies.
    """
    rng = np.random.default_rng([seed, 41])
    number = np.arange(800)
    made = np.where(number < 400, number / 2.0, 200.0 + (number - 400) / 200.0)
    costs = np.minimum(np.exp(1.5 * rng.standard_normal(800)), 10.0)
    ordered, arriving, ever = Evidence(10.0, 2), Evidence(10.0, 2), [False, False]
    events = sorted([(t, 0, i) for i, t in enumerate(made)] + [(t, 1, i) for i, t in enumerate(made + costs)])
    look = 200.0
    for time, ends, i in events:
        while time > look and look < 206.0:
            ever = [
                was or bool(claims(each.counted())[0].any())
                for was, each in zip(ever, (ordered, arriving), strict=True)
            ]
            look += 0.1
        if ends:
            ordered.ended(i // 400, i, float(costs[i]))
            arriving.observed(i // 400, float(costs[i]))
        else:
            ordered.decided(i // 400, i)
    return ever[0], ever[1]


def page(runs: int) -> str:
    ordered, arriving = np.mean([late(seed) for seed in range(runs)], axis=0)
    parts = [
        "# A winner one may look at every day, measured\n",
        f"{runs} runs of each row, looked at after every {EVERY} decisions. Made by `python benchmarks/winner.py {runs}`.\n",
        "**Costs of b are 30 % lower** (log-normal, sigma 1, capped at 10; 3,000 decisions). A policy that minimises costs starves",
        "the loser, so a claim on means needs a floor.\n",
        *verdicts(runs),
        "\n**Both arms have the same costs**: how often any claim was ever made in 2,000 decisions, in either direction. Each",
        "direction may be wrong in 5 % of the runs. Welch's test is not made for repeated looks.\n",
        *errors(runs),
        "\n**Late rewards.** Equal arms whose costs are latencies (log-normal, sigma 1.5, capped at 10 s): "
        "400 decisions of one at 2",
        "per second, then 400 of the other at 200 per second, looked at ten times per second. If rewards counted in the order in",
        f"which they arrive, {percent(arriving)} of the runs would make a false claim on means, since only quick rewards of the",
        f"second arm are known. In the order of the decisions, which a bandit uses, {percent(ordered)} do.",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    text = page(RUNS)
    if RUNS >= 300:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
