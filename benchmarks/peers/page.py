"""What was measured, as Markdown: the page for the documentation, and its tables for the terminal."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

import heavy
import workload
from sample import SIZES

Measured = dict[tuple[str, str], dict[str, Any]]

TITLES = {
    "robandit": "Robandit",
    "python": "a plain Python loop",
    "pymab": "pymab",
    "river": "river",
    "smpybandits": "SMPyBandits",
    "coba": "coba (UCB1-Tuned)",
    "mabwiser": "MABWiser",
    "numpy": "NumPy and SciPy, for AdaR-UCB",
    "scipy": "SciPy",
    "statsmodels": "statsmodels",
}
LIBRARIES = ("pymab", "river", "smpybandits", "coba", "mabwiser")
OTHER_TASK = ("mabwiser",)  # its simulator replays a log
LONGEST = max(heavy.HORIZONS)

NOTES = {
    "robandit": "Each reward is checked, counted and kept on record for `diagnose`. `simulate` draws rewards and records "
    "regret at about 50 times, not each pull.",
    "python": "Lists, no checks, no library: what one writes in ten minutes.",
    "pymab": "Its compiled backend, in both columns. `select_action` draws a number from the caller's generator for ties. "
    '`Experiment` stores every action and reward; rewards are drawn for the chosen arm only (`reward_coupling="independent"`).',
    "river": "`UCB(delta=1)`; arms are any labels, each has a statistic object. `bandit.evaluate` runs on river's own "
    "testbed with ten Gaussian arms, without Gymnasium's wrappers, and yields a dictionary for each round.",
    "smpybandits": "`UCB`, all indices as one NumPy expression, ties at random. `Evaluator` without its more accurate regret, "
    "which would store more. It has no policy for heavy tails, so none is compared.",
    "coba": "`BanditUCBLearner` is UCB1-Tuned, which also needs a variance: it is the only UCB there is. Made for contexts; it "
    "returns probabilities. `SequentialCB` on a `LambdaSimulation` draws a reward for all ten arms in each round.",
    "mabwiser": "`UCB1(alpha=1)`, made for batches: one `partial_fit` a reward is its slowest use. Its `Simulator` replays a "
    "log in batches of one and learns from the log's decisions, not from its own. That is another task, and left out "
    "above. Its log lines are switched off.",
}


class Pair(NamedTuple):
    """Two estimators that answer the same kind of question."""

    ours: str
    package: str
    theirs: str
    title: str
    sizes: tuple[int, ...] = SIZES


PAIRS = (
    Pair("trimmed", "scipy", "trim_mean", "`adaptive_trimmed_mean` / SciPy `trim_mean`, no interval"),
    Pair("trimmed", "scipy", "trimmed_mean_ci", "`adaptive_trimmed_mean` / SciPy `trimmed_mean_ci`"),
    Pair("trimmed", "statsmodels", "trimmed", "`adaptive_trimmed_mean` / statsmodels `TrimmedMean`"),
    Pair("catoni", "statsmodels", "huber", "`catoni_mean` / statsmodels `Huber`, no interval"),
    Pair("catoni", "statsmodels", "huber_interval", "`catoni_mean` / statsmodels `RLM` with `HuberT`"),
    Pair("median_of_means", "scipy", "bootstrap", "`median_of_means` / SciPy `bootstrap` of the mean", SIZES[:1]),
)


class Goal(NamedTuple):
    """What was hoped for; ``ratio`` is None where it could not be measured."""

    what: str
    ratio: float | None
    least: float

    @property
    def met(self) -> bool:
        return self.ratio is not None and self.ratio >= self.least


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown that also reads well as it is; numbers to the right, but for the first column."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def times(ratio: float) -> str:
    """A ratio, as precise as it is meant."""
    return f"{ratio:.2g}x" if ratio < 10.0 else f"{float(f'{ratio:.2g}'):,.0f}x"


def duration(seconds: float) -> str:
    """Seconds in a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def processor() -> str:
    """The model, where the system says it."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if (info.exists())
        else []
    )
    return names[0] if names else platform.processor() or platform.machine()


def load() -> str:
    """How busy the machine is, where the system says it."""
    if not hasattr(os, "getloadavg"):
        return "What else the machine did is not known."
    return f"At the end the machine's load average was {os.getloadavg()[1]:.0f}, on {os.cpu_count()} cores."


class Report(NamedTuple):
    """All that one run found."""

    found: Measured
    same_arms: bool
    versions: dict[str, dict[str, str]]
    facts: dict[str, dict[str, str]]
    failures: dict[str, str]

    def get(self, who: str, action: str, what: str = "rate") -> float | None:
        """A figure, or None where there is none."""
        value = self.found.get((who, action), {}).get(what)
        return None if value is None else float(value)

    def _ratio(self, who: str, action: str, mine: str | None = None) -> float | None:
        ours, theirs = self.get("robandit", mine or action), self.get(who, action)
        return None if ours is None or theirs is None else ours / theirs

    def goals(self) -> list[Goal]:
        """Each against the fastest peer."""

        def fastest(action: str) -> float | None:
            peers = [who for who in LIBRARIES if action == "live" or who not in OTHER_TASK]
            ratios = [r for r in (self._ratio(who, action) for who in peers) if r is not None]
            return min(ratios) if ratios else None

        return [
            Goal("UCB1 simulated, against the fastest peer's simulator", fastest("simulated"), 100.0),
            Goal("UCB1 live, select + update, against the fastest peer", fastest("live"), 2.0),
            Goal(
                f"AdaR-UCB simulated at T = {LONGEST:,}, against NumPy",
                self._ratio("numpy", f"AdaR-UCB {LONGEST}"),
                1000.0,
            ),
            Goal(
                f"AdaR-UCB chooses the NumPy one's arms, {heavy.CHECKED:,} pulls",
                float(self.same_arms),
                1.0,
            ),
        ]

    def _rate(self, who: str, action: str) -> str:
        rate = self.get(who, action)
        return "–" if rate is None else f"{rate / 1e6:.3g}"

    def _against(self, who: str, action: str) -> str:
        ratio = self._ratio(who, action)
        return "–" if ratio is None else times(ratio)

    def short(self) -> str:
        """The table for the README: million rounds a processor second, and how many times faster Robandit is."""
        rows = [
            [
                "**Robandit**",
                f"**{self._rate('robandit', 'live')}**",
                "",
                f"**{self._rate('robandit', 'simulated')}**",
                "",
            ]
        ]
        for who in (*LIBRARIES, "python"):
            cells = (self._rate(who, "live"), self._against(who, "live"))
            if who in OTHER_TASK:
                rows.append([TITLES[who], *cells, "–", "–"])
            else:
                rows.append([TITLES[who], *cells, self._rate(who, "simulated"), self._against(who, "simulated")])
        heavy_action = f"AdaR-UCB {LONGEST}"
        rows.append(
            [
                f"AdaR-UCB in NumPy, T = {LONGEST:,}, against our AdaR-UCB",
                "",
                "",
                self._rate("numpy", heavy_action),
                self._against("numpy", heavy_action),
            ]
        )
        return table(["UCB1, 10 arms, million rounds a CPU second", "live", "slower", "simulated", "slower"], rows)

    def goal_table(self) -> str:
        """Each goal with ok or missed."""
        rows = []
        for goal in self.goals():
            if goal.least == 1.0:
                measured, least = ("yes" if goal.met else "no"), "yes"
            else:
                measured, least = ("–" if goal.ratio is None else times(goal.ratio)), f"{goal.least:,.0f}x"
            rows.append(
                [goal.what, measured, least, "ok" if goal.met else "not measured" if goal.ratio is None else "missed"]
            )
        return table(["goal", "measured", "at least", ""], rows)

    def heavy_table(self) -> str:
        """AdaR-UCB, processor time of a whole run."""
        rows = []
        for pulls in heavy.HORIZONS:
            naive = self.get("numpy", f"AdaR-UCB {pulls}", "seconds")
            row = [f"{pulls:,}", "–" if naive is None else duration(naive)]
            for action in (f"AdaR-UCB {pulls}", f"AdaR-UCB live {pulls}"):
                rate = self.get("robandit", action)
                row += (
                    ["–", "–"]
                    if rate is None or naive is None
                    else [duration(pulls / rate), times(naive * rate / pulls)]
                )
            rows.append(row)
        return table(["T", "NumPy", "`simulate`", "faster", "`Bandit`", "faster"], rows)

    def estimator_table(self) -> str:
        """Ours / theirs, and how many times faster ours is (below 1: slower)."""
        rows = []
        for pair in PAIRS:
            row = [pair.title]
            for n in SIZES:
                ours = self.get("robandit", f"{pair.ours} {n}", "seconds")
                theirs = self.get(pair.package, f"{pair.theirs} {n}", "seconds")
                missing = n not in pair.sizes or ours is None or theirs is None
                row.append(
                    "–"
                    if missing
                    else f"{duration(ours or 0.0)} / {duration(theirs or 0.0)}, {times((theirs or 0.0) / (ours or 1.0))}"
                )
            rows.append(row)
        return table(["ours / theirs", *(f"n = {n:,}" for n in SIZES)], rows)

    def trouble(self) -> list[str]:
        """Who could not be measured, and why."""
        lines = [f"- {TITLES[who]} {why}" for who, why in self.failures.items()]
        lines += [f"- {TITLES[w]}, {action}: {a['error']}" for (w, action), a in self.found.items() if "error" in a]
        return lines or ["- Nothing: all peers could be installed, imported and measured."]

    def terminal(self) -> str:
        """Everything but the prose."""
        parts = [self.heavy_table(), self.estimator_table(), "\n".join(self.trouble()), self.goal_table(), self.short()]
        return "\n\n".join(parts)

    def text(self) -> str:
        """The page."""
        rewards = {who: self.get(who, "live", "result") for who in ("robandit", "python", *LIBRARIES)}
        peers = [
            [
                TITLES[who],
                ", ".join(f"{name} {version}" for name, version in self.versions.get(who, {}).items()) or "–",
                "–" if reward is None else f"{reward:.3f}",
            ]
            for who, reward in rewards.items()
        ]
        peers[0][1] = f"robandit {self.facts['robandit'].get('robandit', '?')}, {peers[0][1]}"
        peers[1][1] = f"Python {platform.python_version()}"
        peers += [
            [TITLES[who], ", ".join(f"{k} {v}" for k, v in self.versions.get(who, {}).items()) or "–", ""]
            for who in ("numpy", "scipy", "statsmodels")
        ]
        notes = "\n".join(f"- **{TITLES[who]}.** {note}" for who, note in NOTES.items())
        compiled = ", ".join(f"{k} {v} s" for k, v in self.facts["robandit"].items() if k != "robandit")
        shims = self.facts.get("smpybandits", {}).get("given back", "").split()
        given = ", ".join(f"`{name}`" for name in shims) or "none"
        batched = self.get("mabwiser", "batched")
        batch = f"learns from {batched / 1e6:.3g} million a second" if batched else "was not measured"
        same = "chose the same arms" if self.same_arms else "did NOT choose the same arms"
        return f"""# Speed against peers

Made by `make bench-peers`, which installs the peers, at pinned versions, from the package index into throw-away environments and
measures all in one run, on one machine: {processor()}, {platform.system()}, Python {platform.python_version()}.

{self.short()}

*live*: choose an arm, be told its reward, {workload.ROUNDS:,} times, then anew. *simulated*: the library's own simulator plays
UCB1. *slower*: how many times as many rounds Robandit makes in the same time.

{self.goal_table()}

## How it was measured

- The unit is processor time; one thread for all, and thread pools of numerical libraries are held at one. Each peer has
  a process of its own, warmed up; all are asked in turns, one at a time. A figure is the best of three tries.
- {load()} That slows all; ratios tell more than rates.
- Imports do not count, nor does compilation. Robandit compiles a policy at its first use and keeps it on disk; here, with an empty
  cache, that took in processor time: {compiled}. Steps that two of them share count for the first.
- Live, all see the same table of Bernoulli rewards with means {workload.MEANS[0]:g}, {workload.MEANS[1]:g} to
  {workload.MEANS[-1]:.2f}. The mean reward below shows that all play the same game; coba's UCB1-Tuned explores less.
- Each is used through its public interface, in the fastest fair way that we found. If you know a faster one, tell us.

{table(["", "versions", "mean reward, live"], peers)}

## What the loops do beside UCB1

{notes}

MABWiser's simulator makes {self._rate("mabwiser", "simulated")} million rounds a second.
Told {workload.ROUNDS:,} rewards in one batch, it {batch}; it chooses nothing meanwhile.
SMPyBandits runs unchanged, but needs names that Python, NumPy and SciPy have dropped. Given back from outside before its import:
{given}.

Not measured:

{chr(10).join(self.trouble())}

## AdaR-UCB against NumPy

No peer has it, nor another policy for heavy tails that could stand in. So the peer is the algorithm as one writes it from the
paper, in `benchmarks/peers/adar_numpy.py`: all rewards in arrays, each arm's threshold solved anew in each round, by SciPy's
`brentq`. Ten arms, negated Pareto rewards with tail index {heavy.TAIL:g}; processor time of one run of T pulls; drawing rewards is
included, but for `Bandit`, which is fed from a table. The NumPy time is of a single run.

{self.heavy_table()}

Fed the same rewards, {heavy.CHECKED:,} pulls, Robandit's `Bandit` with `AdaRUCB` and the NumPy one {same}. NumPy's time grows
faster than T, for each round looks at all rewards again; Robandit's does not.

## Estimators

Processor time of one call on a sample of Student's t with 3 degrees of freedom, ours / theirs, and theirs over ours (below 1: ours
is slower).

{self.estimator_table()}

They are not the same estimators, but the same kind of answer: a robust location, most with a 95 % interval. What differs:

- SciPy and statsmodels trim a tenth at each end, or use Huber's function with an estimated scale. Their intervals rest on a limit
  theorem, and on symmetry if the mean is meant.
- Robandit's bounds hold at the given n. `adaptive_trimmed_mean` is told nothing and gives an upper bound, under truncated
  non-positivity, from a random split of the sample. `catoni_mean` and `median_of_means` are told the variance.
- `bootstrap` (BCa, 9,999 resamples) is left out for larger samples: its jackknife alone looks at n² values.

How often the intervals hold the mean: [Coverage and width of the estimators](../estimators/coverage.md).
"""
