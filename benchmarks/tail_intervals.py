"""Measure the tail index's interval: ``python benchmarks/tail_intervals.py`` writes docs/results/tail-intervals.md (five minutes).

How often the stated interval (``tail_index(x, method="gpd")``) contains the true index, and how long it is, by law and sample size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robandit.diagnostics import TailIndex, tail_index

PAGE = Path(__file__).parents[1] / "docs" / "results" / "tail-intervals.md"
SEED = 2026
SAMPLES = {200: 400, 1_000: 400, 10_000: 200, 100_000: 60}
SHOWN = 10_000  # the size whose median ends are on the page
PRINTED_ONLY = {  # like their neighbours: not on the page
    *("Pareto 1.3", "Pareto 1.8", "Pareto 2.5", "Pareto 1.5, shifted by 100", "Fréchet 1.5", "Burr (1 + x^3)^-0.5"),
    *("Student 1.2", "Student 2.0", "log-normal, sigma 0.5", "log-normal, sigma 1.5", "exponential", "uniform"),
}
Generator = np.random.Generator
Law = Callable[[Generator, int], Any]
LIGHT = math.inf


def pareto(rng: Generator, n: int, index: float) -> Any:
    """Draw from P(X > x) = x^-index."""
    return rng.random(n) ** (-1.0 / index)


def burr(rng: Generator, n: int, power: float, times: float) -> Any:
    """Draw from P(X > x) = (1 + x^power)^-times."""
    return (rng.random(n) ** (-1.0 / times) - 1.0) ** (1.0 / power)


def stable(rng: Generator, n: int, index: float) -> Any:
    """Draw from the symmetric stable law (Chambers, Mallows, Stuck 1976)."""
    angle, weight = (rng.random(n) - 0.5) * math.pi, rng.exponential(size=n)
    ratio = np.cos((1.0 - index) * angle) / weight
    return np.sin(index * angle) / np.cos(angle) ** (1.0 / index) * ratio ** ((1.0 - index) / index)


# The law, its index on the right, and the sampler. A left tail is the right tail of the negated values, bit for bit.
LAWS: list[tuple[str, float, Law]] = [
    *((f"Pareto {a}", a, lambda rng, n, a=a: pareto(rng, n, a)) for a in (1.1, 1.3, 1.5, 1.8, 2.0, 2.5, 4.0)),
    ("Pareto 1.5, shifted by 100", 1.5, lambda rng, n: pareto(rng, n, 1.5) + 100.0),
    ("Pareto 1.5, rounded to halves", 1.5, lambda rng, n: np.round(2.0 * pareto(rng, n, 1.5)) / 2.0),
    ("Pareto 2.5, rounded to tenths", 2.5, lambda rng, n: np.round(10.0 * pareto(rng, n, 2.5)) / 10.0),
    ("Pareto 1.5, 80 % zeros", 1.5, lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, pareto(rng, n, 1.5))),
    ("Fréchet 1.5", 1.5, lambda rng, n: rng.exponential(size=n) ** (-1.0 / 1.5)),
    ("Burr (1 + x^3)^-0.5", 1.5, lambda rng, n: burr(rng, n, 3.0, 0.5)),
    ("Burr (1 + x^2)^-1", 2.0, lambda rng, n: burr(rng, n, 2.0, 1.0)),
    ("Burr (1 + x^0.5)^-3", 1.5, lambda rng, n: burr(rng, n, 0.5, 3.0)),
    ("Burr (1 + x^0.7)^-4", 2.8, lambda rng, n: burr(rng, n, 0.7, 4.0)),
    *((f"Student {a}", a, lambda rng, n, a=a: rng.standard_t(a, n)) for a in (1.2, 1.5, 2.0, 3.0, 5.0)),
    ("stable 1.5", 1.5, lambda rng, n: stable(rng, n, 1.5)),
    *((f"log-normal, sigma {s}", LIGHT, lambda rng, n, s=s: rng.lognormal(0.0, s, n)) for s in (0.5, 1.0, 1.5, 2.0)),
    ("Weibull 0.5", LIGHT, lambda rng, n: rng.weibull(0.5, n)),
    ("exponential", LIGHT, lambda rng, n: rng.exponential(size=n)),
    ("normal", LIGHT, lambda rng, n: rng.normal(size=n)),
    ("uniform", LIGHT, lambda rng, n: rng.random(n)),
]


def covers(found: list[TailIndex], index: float) -> float:
    """Return the share of the known intervals that contain the index."""
    known = [each for each in found if not math.isnan(each.index)]
    return float(np.mean([each.low <= index <= each.high for each in known])) if known else math.nan


class Row(NamedTuple):
    """What was found of one law and size, formatted."""

    covers: str
    ends: str
    light: str
    hill: str


def _row(index: float, draw: Law, n: int, samples: int) -> Row:
    rng = np.random.default_rng([SEED, n])
    drawn = [draw(rng, n) for _ in range(samples)]
    stated = [tail_index(x, method="gpd", about="median") for x in drawn]
    hill = [tail_index(x, method="hill", about="median") for x in drawn]
    known = [each for each in stated if not math.isnan(each.index)]
    low, high = (float(np.median([getattr(each, end) for each in known])) for end in ("low", "high"))
    unknown = f" ({len(stated) - len(known)} unknown)" if len(known) < len(stated) else ""
    ends = "light" if math.isinf(low) else f"above {low:.2f}" if math.isinf(high) else f"{low:.2f} to {high:.2f}"
    light = np.mean([each.high == math.inf for each in known])
    return Row(f"{covers(stated, index):.1%}{unknown}", ends, f"{light:.0%}", f"{covers(hill, index):.1%}")


def main() -> None:
    """Measure all laws and sizes, and write the page."""
    sizes = " | ".join(f"{n:,}" for n in SAMPLES)
    lines = [
        "# The interval of the tail index, measured",
        "",
        'How often the 95 % interval of `tail_index(x, method="gpd")` contains the true index of the right tail.',
        "[The report of `robandit diagnose`](../explanation/diagnose.md#how-heavy-are-the-tails) explains the estimate.",
        "",
        f"| law | index | covers: n = {sizes} | median ends, n = {SHOWN:,} | may be light, n = {SHOWN:,} | "
        f"Hill covers, n = {SHOWN:,} |",
        "|" + "---|" * (5 + len(SAMPLES)),
    ]
    for name, index, draw in LAWS:
        rows = {n: _row(index, draw, n, samples) for n, samples in SAMPLES.items()}
        true = "light" if index == LIGHT else f"{index:g}"
        cells = [name, true, *(row.covers for row in rows.values()), *rows[SHOWN][1:]]
        line = "| " + " | ".join(cells) + " |"
        print(line, flush=True)
        if name not in PRINTED_ONLY:
            lines.append(line)
    counts = ", ".join(f"{samples} for n = {n:,}" for n, samples in SAMPLES.items())
    errors = ", ".join(f"{math.sqrt(0.95 * 0.05 / samples):.1%}" for samples in SAMPLES.values())
    lines += [
        "",
        f"Samples per law: {counts}. The standard deviation of a measured 95 %: {errors}.",
        "The tail is measured from the median. An interval covers a light tail (log-normal or lighter) if it is open, that is,",
        'includes an infinite index; "may be light" is the share of open intervals. Hill\'s interval has k = n^(2/3).',
        "The constants of the method were chosen by their coverage on most of these laws, with other random numbers: other laws",
        "may be covered less often. `python benchmarks/tail_intervals.py` writes this page, and prints more laws.",
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
