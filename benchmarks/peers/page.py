"""Format the measurements as Markdown: the page of the documentation, and its tables for the terminal."""

from __future__ import annotations

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
REPLAY_ONLY = ("mabwiser",)  # the simulator replays a log: a different task
LONGEST = max(heavy.HORIZONS)

NOTES = {
    "robandit": "Rewards are checked, counted and recorded. `simulate` records the regret at about 50 checkpoints.",
    "python": "Lists, no checks, no library.",
    "pymab": 'Compiled backend; `Experiment` with `reward_coupling="independent"` stores every action and reward.',
    "river": "`UCB(delta=1)`. `bandit.evaluate` runs on river's own testbed with ten Gaussian arms, without Gymnasium's wrappers.",
    "smpybandits": "`UCB` breaks ties at random. `Evaluator` runs with `moreAccurate=False`, so that it stores less.",
    "coba": "It has no plain UCB1. `SequentialCB` on a `LambdaSimulation` draws a reward for all ten arms in each round.",
    "mabwiser": "`UCB1(alpha=1)`, one `partial_fit` per reward, its slowest use. Its `Simulator` replays a log.",
}


class Pair(NamedTuple):
    """Our estimator and a peer's that answers the same kind of question."""

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
    """The least speed-up that we want; ``ratio`` is None if it was not measured."""

    title: str
    ratio: float | None
    least: float

    @property
    def met(self) -> bool:
        return self.ratio is not None and self.ratio >= self.least


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return an aligned Markdown table: first column left, others right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def times(ratio: float) -> str:
    """Format a ratio with two significant digits."""
    return f"{ratio:.2g}x" if ratio < 10.0 else f"{float(f'{ratio:.2g}'):,.0f}x"


def duration(seconds: float) -> str:
    """Format seconds with a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def processor() -> str:
    """Return the processor's model, as far as the system reports it."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor() or platform.machine()


class Report(NamedTuple):
    """The measurements of one run, with tables and text made from them."""

    measured: Measured
    same_arms: bool
    versions: dict[str, dict[str, str]]
    facts: dict[str, dict[str, str]]
    failures: dict[str, str]

    def get(self, peer: str, action: str, key: str = "rate") -> float | None:
        """Return a measured value, or None if it is missing."""
        value = self.measured.get((peer, action), {}).get(key)
        return None if value is None else float(value)

    def _ratio(self, peer: str, action: str) -> float | None:
        ours, theirs = self.get("robandit", action), self.get(peer, action)
        return None if ours is None or theirs is None else ours / theirs

    def goals(self) -> list[Goal]:
        """Return the goals; those for UCB1 compare with the fastest peer."""

        def fastest(action: str) -> float | None:
            peers = [peer for peer in LIBRARIES if action == "live" or peer not in REPLAY_ONLY]
            ratios = [r for r in (self._ratio(peer, action) for peer in peers) if r is not None]
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
                f"AdaR-UCB chooses the same arms as NumPy, {heavy.CHECKED:,} pulls",
                float(self.same_arms),
                1.0,
            ),
        ]

    def _rate(self, peer: str, action: str) -> str:
        rate = self.get(peer, action)
        return "–" if rate is None else f"{rate / 1e6:.3g}"

    def _against(self, peer: str, action: str) -> str:
        ratio = self._ratio(peer, action)
        return "–" if ratio is None else times(ratio)

    def short(self) -> str:
        """Return the README's table: million rounds per processor second, and how many times faster Robandit is."""
        rows = [
            [
                "**Robandit**",
                f"**{self._rate('robandit', 'live')}**",
                "",
                f"**{self._rate('robandit', 'simulated')}**",
                "",
            ]
        ]
        for peer in (*LIBRARIES, "python"):
            cells = (self._rate(peer, "live"), self._against(peer, "live"))
            if peer in REPLAY_ONLY:
                rows.append([TITLES[peer], *cells, "–", "–"])
            else:
                rows.append([TITLES[peer], *cells, self._rate(peer, "simulated"), self._against(peer, "simulated")])
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
        return table(["UCB1, 10 arms, million rounds per CPU second", "live", "slower", "simulated", "slower"], rows)

    def goal_table(self) -> str:
        """Return the table of goals, each with ok or missed."""
        rows = []
        for goal in self.goals():
            if goal.least == 1.0:
                measured, least = ("yes" if goal.met else "no"), "yes"
            else:
                measured, least = ("–" if goal.ratio is None else times(goal.ratio)), f"{goal.least:,.0f}x"
            rows.append(
                [goal.title, measured, least, "ok" if goal.met else "not measured" if goal.ratio is None else "missed"]
            )
        return table(["goal", "measured", "at least", ""], rows)

    def heavy_table(self) -> str:
        """Return the table of AdaR-UCB: processor time of one run."""
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
        """Return the table of estimators: ours / theirs, and how many times faster ours is (below 1: slower)."""
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

    def unmeasured(self) -> list[str]:
        """List the peers that could not be measured, with the reason."""
        lines = [f"- {TITLES[peer]} {why}" for peer, why in self.failures.items()]
        lines += [
            f"- {TITLES[peer]}, {action}: {answer['error']}"
            for (peer, action), answer in self.measured.items()
            if "error" in answer
        ]
        return lines or ["- None: all peers were installed, imported and measured."]

    def terminal(self) -> str:
        """Return all tables, without prose."""
        parts = [
            self.heavy_table(),
            self.estimator_table(),
            "\n".join(self.unmeasured()),
            self.goal_table(),
            self.short(),
        ]
        return "\n\n".join(parts)

    def text(self) -> str:
        """Return the page."""
        used = {(name, version) for packages in self.versions.values() for name, version in packages.items()}
        used |= {("robandit", self.facts["robandit"].get("robandit", "?"))}
        versions = ", ".join(f"{name} {version}" for name, version in sorted(used))
        notes = "\n".join(f"- **{TITLES[peer]}.** {note}" for peer, note in NOTES.items())
        compiled = ", ".join(f"{k} {v} s" for k, v in self.facts["robandit"].items() if k != "robandit")
        shims = self.facts.get("smpybandits", {}).get("restored", "").split()
        restored = ", ".join(f"`{name}`" for name in shims) or "none"
        batched = self.get("mabwiser", "batched")
        batch = (
            f"processes {batched / 1e6:.3g} million per second, without choosing arms"
            if batched
            else "was not measured"
        )
        same = "chose the same arms" if self.same_arms else "did NOT choose the same arms"
        return f"""# Speed against peers

{self.short()}

Written by `make bench-peers`, which installs pinned versions of the peers into temporary environments and measures all in one run:
{processor()}, {platform.system()}, Python {platform.python_version()}. *live*: choose an arm and report its reward, \
{workload.ROUNDS:,} rounds per run. *simulated*: the library's own simulator plays UCB1.
*slower*: Robandit's rate divided by this one.

{self.goal_table()}

## AdaR-UCB against NumPy

A direct implementation of the paper in NumPy and SciPy (`benchmarks/peers/adar_numpy.py`) solves each arm's threshold again in
each round. Ten arms, negated Pareto rewards with tail index {heavy.TAIL:g}; processor time of one run of T pulls. On the same
rewards, {heavy.CHECKED:,} pulls, both {same}.

{self.heavy_table()}

## Estimators

Processor time of one call on a sample from Student's t with 3 degrees of freedom: ours / theirs, and the ratio theirs over ours.

{self.estimator_table()}

The intervals of SciPy and statsmodels are asymptotic and need a symmetric law; Robandit's hold for finite n
([coverage](../estimators/coverage.md)). `adaptive_trimmed_mean` is timed with `warn=False`.

## How it was measured

- Processor times on one thread, the best of three tries after one unmeasured call; each peer in its own process, in turn.
- Import and compilation are excluded. With an empty cache, compilation took, in processor time: {compiled}.
- Live, all libraries get the same Bernoulli rewards with means {workload.MEANS[0]:g}, {workload.MEANS[1]:g} to \
{workload.MEANS[-1]:.2f}.
- Each library is used through its public interface, in the fastest fair way that we found. Versions: {versions}.

{notes}

MABWiser's simulator plays {self._rate("mabwiser", "simulated")} million rounds per second.
With {workload.ROUNDS:,} rewards in one batch, MABWiser {batch}.
For SMPyBandits, names that Python, NumPy and SciPy have removed were restored: {restored}.

Not measured:

{chr(10).join(self.unmeasured())}
"""
