"""Study the drift detector: ``python benchmarks/drift_detector.py`` writes docs/results/drift-detector.md (about five minutes).

False alarms of independent rewards of several laws, false alarms of clustered rewards, delays after a change, and speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from robandit.drift import Watch
from robandit.drift.detector import DELTA, new_state, step, tempered
from robandit.drift.record import scan
from robandit.kernel import compiled
from robandit.kernel.types import Floats

PAGE = Path(__file__).parents[1] / "docs" / "results" / "drift-detector.md"
SEED = 2024
Generator = np.random.Generator
Law = Callable[[Generator, int], Any]

LAWS: dict[str, Law] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal, sigma 2": lambda rng, n: rng.lognormal(sigma=2.0, size=n),
    "Student, 0.5 degrees of freedom (no mean)": lambda rng, n: rng.standard_t(0.5, n),
    "Pareto 1.5, 40 % zeros": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, rng.pareto(1.5, n)),
    "die": lambda rng, n: rng.integers(1, 7, n) * 1.0,
    "coin, 1 % ones": lambda rng, n: (rng.random(n) < 0.01) * 1.0,
    "Student 1.5, rounded": lambda rng, n: np.round(rng.standard_t(1.5, n)),
}

# Rewards before and after a change.
CHANGES: dict[str, tuple[Law, Law]] = {
    "normal, mean + 0.25 sd": (LAWS["normal"], lambda rng, n: rng.normal(0.25, 1.0, n)),
    "normal, mean + 0.5 sd": (LAWS["normal"], lambda rng, n: rng.normal(0.5, 1.0, n)),
    "normal, mean + 1 sd": (LAWS["normal"], lambda rng, n: rng.normal(1.0, 1.0, n)),
    "normal, mean + 2 sd": (LAWS["normal"], lambda rng, n: rng.normal(2.0, 1.0, n)),
    "normal, sd x 2": (LAWS["normal"], lambda rng, n: rng.normal(0.0, 2.0, n)),
    "log-normal, sigma 1, x 2": (lambda rng, n: rng.lognormal(size=n), lambda rng, n: 2.0 * rng.lognormal(size=n)),
    "normal, 5 % become -1,000": (
        LAWS["normal"],
        lambda rng, n: np.where(rng.random(n) < 0.05, -1_000.0, rng.normal(size=n)),
    ),
    "normal, 1 % become -1,000": (
        LAWS["normal"],
        lambda rng, n: np.where(rng.random(n) < 0.01, -1_000.0, rng.normal(size=n)),
    ),
    "coin, 10 % to 20 % ones": (
        lambda rng, n: (rng.random(n) < 0.1) * 1.0,
        lambda rng, n: (rng.random(n) < 0.2) * 1.0,
    ),
}


def first_alarm(d: Floats, values: Floats, salt: np.uint64, temper: int) -> int:
    """Return the position of the first alarm, or the number of rewards; ``temper`` = 0 leaves bets as they are."""
    for i in range(values.shape[0]):
        power = 1.0 / tempered(d, 0) if temper != 0 else 1.0
        if step(d, 0, values[i], salt, power) >= 1.0 / DELTA:
            return i
    return len(values)


def first(values: Floats, salt: int, temper: bool = True) -> int:
    like = (new_state(1), values, np.uint64(salt), int(temper))
    return int(compiled(first_alarm, label="the benchmark", args=like)(*like))


def autoregressive(rng: Generator, n: int, correlation: float) -> Floats:
    from scipy.signal import lfilter

    clustered: Floats = lfilter([1.0], [1.0, -correlation], rng.normal(size=n + 1_000))[1_000:]
    return clustered


def false_alarms(streams: int = 1_000, length: int = 100_000) -> list[str]:
    lines = [f"| law | streams with a false alarm, of {streams:,} | the same, untempered |", "|---|---|---|"]
    for number, (name, law) in enumerate(LAWS.items()):
        # With one seed for all, laws that are monotone functions of each other would have the same ranks.
        rng, counts = np.random.default_rng([SEED, number]), [0, 0]
        for i in range(streams):
            values = law(rng, length)
            for j, temper in enumerate((True, False)):
                counts[j] += first(values, 10_000 * number + i, temper) < length
        lines.append(f"| {name} | {counts[0]} | {counts[1]} |")
        print(lines[-1], flush=True)
    return lines


def clustered(streams: int = 200, length: int = 5_000) -> list[str]:
    detector = f"| correlation of neighbours | alarm within {length:,} rewards | untempered"
    lines = [f"{detector} | scan of the record | scan, single rewards |", "|---|---|---|---|---|"]
    for correlation in (0.0, 0.3, 0.5, 0.7, 0.9):
        rng, counts = np.random.default_rng(SEED), np.zeros(4)
        for i in range(streams):
            values = autoregressive(rng, length, correlation)
            counts[0] += first(values, i) < length
            counts[1] += first(values, i, temper=False) < length
            counts[2] += scan(values[:2_000], 199).p_value <= 0.05
            if i < 50:
                counts[3] += scan(values[:2_000], 199, block=1).p_value <= 0.05
        shares = counts / [streams, streams, streams, 50]
        lines.append(f"| {correlation:g} | " + " | ".join(f"{100.0 * share:.3g} %" for share in shares) + " |")
        print(lines[-1], flush=True)
    return lines


def delays(streams: int = 200, before: int = 5_000, after: int = 20_000) -> list[str]:
    lines = [
        "| change | noticed | median delay | 95 % of the delays below | median error of the position | most frequent kind |",
        "|---|---|---|---|---|---|",
    ]
    for name, (old, new) in CHANGES.items():
        rng = np.random.default_rng(SEED)
        found = []
        for i in range(streams):
            raised = Watch(1, i).feed(0, np.concatenate([old(rng, before), new(rng, after)]))
            found += [alarm for alarm in raised if alarm.noticed > before][:1]
        delay = [alarm.noticed - before for alarm in found]
        error = [abs(alarm.changed - before - 1) for alarm in found]
        kinds = [alarm.kind for alarm in found]
        kind = max(set(kinds), key=kinds.count)
        figures = f"{np.median(delay):.0f} | {np.quantile(delay, 0.95):.0f} | {np.median(error):.0f}"
        lines.append(
            f"| {name} | {len(found)} of {streams} | {figures} | {kind}, {100 * kinds.count(kind) // len(kinds)} % |"
        )
        print(lines[-1], flush=True)
    return lines


def slow_drift(streams: int = 100) -> list[str]:
    """A mean that moves by one standard deviation, at once or little by little."""
    lines = ["| the mean moves by 1 sd within | noticed before its end | median number of alarms |", "|---|---|---|"]
    for length in (100, 1_000, 10_000, 100_000):
        rng = np.random.default_rng(SEED)
        counts = []
        for i in range(streams):
            values = np.concatenate([rng.normal(size=5_000), rng.normal(np.linspace(0.0, 1.0, length))])
            counts.append(len(Watch(1, i).feed(0, values)))
        lines.append(f"| {length:,} rewards | {sum(c > 0 for c in counts)} of {streams} | {np.median(counts):.0f} |")
        print(lines[-1], flush=True)
    return lines


def per_reward(batch: int, tries: int = 9, rewards: int = 500_000) -> float:
    """Return nanoseconds per reward of `Watch.feed`, in batches; best of several tries."""
    values = np.random.default_rng(SEED).lognormal(size=rewards)
    parts = [values[j : j + batch] for j in range(0, rewards, batch)]
    times = []
    for _ in range(tries):
        watch = Watch(1, 0)
        watch.feed(0, values[:10])
        start = time.process_time()
        for part in parts:
            watch.feed(0, part)
        times.append(time.process_time() - start)
    return min(times) / rewards * 1e9


def exponentials(tries: int = 9, rewards: int = 500_000) -> float:
    """Return nanoseconds per value of numpy.exp, a baseline within the same run."""
    values = np.random.default_rng(SEED).lognormal(size=rewards)
    times = []
    for _ in range(tries):
        start = time.process_time()
        np.exp(-values)
        times.append(time.process_time() - start)
    return min(times) / rewards * 1e9


def main() -> None:
    base = exponentials()
    speed = ["| | ns per reward | over numpy.exp |", "|---|---|---|"]
    for batch in (1, 16, 256, 100_000):
        nanoseconds = per_reward(batch, tries=3 if batch == 1 else 9, rewards=50_000 if batch == 1 else 500_000)
        speed.append(f"| batches of {batch:,} | {nanoseconds:.0f} | {nanoseconds / base:.0f} x |")
    print(*speed, sep="\n", flush=True)
    parts = {
        "False alarms of independent rewards": (
            f"Streams of 100,000 rewards. The guarantee: at most {100 * DELTA:g} % of the streams, for any law.",
            false_alarms(),
        ),
        "False alarms of clustered rewards": (
            "Autoregressive normal rewards: neighbours are alike, so the guarantee does not hold. The scan is "
            "[the test of records](../explanation/drift.md#recorded-rewards-with-times): 2,000 rewards, level 5 %.",
            clustered(),
        ),
        "Delays after a change": ("5,000 rewards before the change, 20,000 after it.", delays()),
        "Slow drift": ("5,000 rewards before the drift.", slow_drift()),
        "Speed": (f"Best of 9 runs, processor time, one core. numpy.exp takes {base:.1f} ns per value.", speed),
    }
    text = [
        "# The drift detector, measured",
        "",
        "False alarms, delays and speed of [the drift detector](../explanation/drift.md).",
    ]
    text += ["Written by `python benchmarks/drift_detector.py`.", ""]
    for title, (about, lines) in parts.items():
        text += [f"## {title}", "", about, "", *lines, ""]
    PAGE.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
