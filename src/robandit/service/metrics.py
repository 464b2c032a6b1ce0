"""Counters and histograms, in the text format of Prometheus.

Nothing is lost silently: for each experiment, the calls received equal those applied, replayed, late and rejected, once all calls
are answered. Each item of a batch counts as a call. Counters start at 0 when the server starts.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

KINDS = ("decision", "reward", "observation")
OUTCOMES = ("applied", "replayed", "late", "rejected")
DELAYS = (0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 86_400.0, 864_000.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0)
TIMES = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)


class Histogram:
    """Counts values by upper limits."""

    def __init__(self, limits: Sequence[float]) -> None:
        self.limits = limits
        self.counts = [0] * (len(limits) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.limits, value)] += 1
        self.total += value


class Calls:
    """The calls about one experiment."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        """The number of calls of each kind: one of `KINDS`."""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """The number of calls of each kind and outcome."""
        self.fallbacks = 0
        """The number of decisions that were answered with the fallback. They count as rejected, because nothing is stored."""
        self.delays = Histogram(DELAYS)
        """The seconds from a decision to its reward."""


class Metrics:
    """What the server counts."""

    def __init__(self) -> None:
        self.calls: defaultdict[str, Calls] = defaultdict(Calls)
        self.unknown = Calls()
        """Calls about experiments that do not exist. Their names are not kept: there may be many."""
        self.answers: Counter[int] = Counter()
        self.sizes = Histogram(SIZES)
        self.times = Histogram(TIMES)

    def text(self, gauges: Mapping[str, tuple[str, Iterable[tuple[Mapping[str, str], float]]]]) -> str:
        """Return all counters, and gauges: name -> (help, values with their labels)."""
        page = _Page()
        page.head(
            "robandit_calls_received_total",
            "counter",
            "Calls about decisions, rewards and observations, by experiment.",
        )
        for labels, calls in self._calls():
            for kind in KINDS:
                page.line("robandit_calls_received_total", labels | {"kind": kind}, calls.received[kind])
        page.head("robandit_calls_total", "counter", "Calls that were answered, by outcome.")
        for labels, calls in self._calls():
            for kind in KINDS:
                for outcome in OUTCOMES:
                    count = calls.outcomes[kind, outcome]
                    page.line("robandit_calls_total", labels | {"kind": kind, "outcome": outcome}, count)
        page.head(
            "robandit_fallbacks_total", "counter", "Decisions that were answered with the fallback, and not stored."
        )
        for labels, calls in self._calls():
            page.line("robandit_fallbacks_total", labels, calls.fallbacks)
        page.head("robandit_reward_delay_seconds", "histogram", "Time from a decision to its reward.")
        for labels, calls in self._calls():
            page.histogram("robandit_reward_delay_seconds", labels, calls.delays)
        page.head("robandit_commit_events", "histogram", "Events in a commit.")
        page.histogram("robandit_commit_events", {}, self.sizes)
        page.head("robandit_commit_seconds", "histogram", "Time of a commit.")
        page.histogram("robandit_commit_seconds", {}, self.times)
        page.head("robandit_answers_total", "counter", "Answers, by HTTP status.")
        for status, count in sorted(self.answers.items()):
            page.line("robandit_answers_total", {"status": str(status)}, count)
        for name, (about, values) in gauges.items():
            page.head(name, "gauge", about)
            for each, value in values:
                page.line(name, each, value)
        return "".join(page.lines)

    def _calls(self) -> Iterable[tuple[dict[str, str], Calls]]:
        yield from (({"experiment": name}, calls) for name, calls in sorted(self.calls.items()))
        yield {"experiment": ""}, self.unknown


class _Page:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def head(self, name: str, kind: str, about: str) -> None:
        self.lines.append(f"# HELP {name} {about}\n# TYPE {name} {kind}\n")

    def line(self, name: str, labels: Mapping[str, str], value: float) -> None:
        texts = [f'{key}="{_escaped(text)}"' for key, text in labels.items()]
        self.lines.append(f"{name}{{{','.join(texts)}}} {_number(value)}\n")

    def histogram(self, name: str, labels: Mapping[str, str], histogram: Histogram) -> None:
        total = 0
        for limit, count in zip((*histogram.limits, math.inf), histogram.counts, strict=True):
            total += count
            self.line(f"{name}_bucket", {**labels, "le": _number(limit)}, total)
        self.line(f"{name}_sum", labels, histogram.total)
        self.line(f"{name}_count", labels, total)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
