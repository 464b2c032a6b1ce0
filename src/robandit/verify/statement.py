"""The parts of a check: the statement, the effort, the findings and the verdict."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

import numpy as np

from robandit.intervals import Interval
from robandit.policies.base import Policy
from robandit.validation import finite, flag, instance, integer, invalid, items_of, text
from robandit.verify.interval_arithmetic import sure

Verdict = Literal["holds", "fails", "inconclusive"]
Item = TypeVar("Item")
Track = Callable[[Sequence[Any]], Iterator[Any]]
"""A function that yields the items one by one and shows the progress."""

Row = dict[str, Any]
"""A measured case: case and, if there are several, series; x with low and high if measured, and limit if predicted."""

ARITHMETIC = "arithmetic: "


def silent(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items without showing progress."""
    return iter(items)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The size of a check's experiments (quick or full), the seed and the number of threads."""

    quick: bool = False
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        """Reject invalid values before any work is done."""
        object.__setattr__(self, "quick", flag(self.quick, "quick"))
        object.__setattr__(self, "seed", integer(self.seed, "seed", 0, None))
        if self.threads is not None:
            object.__setattr__(self, "threads", integer(self.threads, "threads", 1, None))

    def of(self, quick: Item, full: Item) -> Item:
        """Return the first value for a quick run and the second for a full run."""
        return quick if self.quick else full

    def stream(self, *key: int) -> np.random.SeedSequence:
        """Return the random stream for a check and case."""
        return np.random.SeedSequence(self.seed, spawn_key=key)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim about a number: the measured value, its confidence interval and the predicted range.

    The claim holds if the interval [low, high] lies inside the range [least, most], and fails if it lies outside. If the interval
    crosses an end of the range, the claim is inconclusive.
    """

    claim: str
    measured: float
    low: float
    """Lower end of the confidence interval; equal to ``measured`` if nothing is random."""
    high: float
    least: float = -math.inf
    most: float = math.inf
    must: bool = True
    """Whether the statement depends on the claim. False: the claim is for information, such as a misprint's consequence."""
    asymptotic: bool = False
    """Whether the claim is about a limit. A finite run cannot refute it, so it is inconclusive instead of failing."""
    misprints: tuple[str, ...] = ()
    """The items of docs/explanation/reading-the-paper.md that the claim demonstrates, such as "12"."""
    note: str = ""
    headline: str = ""
    """A sentence that is printed next to the statement's verdict if this claim holds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", text(self.claim, "claim"))
        for name in ("measured", "low", "high", "least", "most"):
            object.__setattr__(self, name, _real(getattr(self, name), name))
        if not self.low <= self.measured <= self.high:
            rule = f"inside its own interval, {self.low} to {self.high}"
            raise invalid("measured", self.measured, rule, owner=self.claim)
        if not self.least <= self.most:
            raise invalid("least", self.least, f"at most most = {self.most}", owner=self.claim)

    def at_most(self, most: float, **details: Any) -> Finding:
        """Return the finding with the predicted range up to ``most``; ``details`` are other fields."""
        return replace(self, most=most, **details)

    def at_least(self, least: float, **details: Any) -> Finding:
        """Return the finding with the predicted range from ``least`` on."""
        return replace(self, least=least, **details)

    def between(self, least: float, most: float, **details: Any) -> Finding:
        """Return the finding with the predicted range from ``least`` to ``most``."""
        return replace(self, least=least, most=most, **details)

    @property
    def verdict(self) -> Verdict:
        """Whether the claim holds, fails or is inconclusive."""
        if self.least <= self.low and self.high <= self.most:
            return "holds"
        if (self.high < self.least or self.low > self.most) and not self.asymptotic:
            return "fails"
        return "inconclusive"

    @property
    def predicted(self) -> str:
        """The predicted range, formatted."""
        least, most = number(self.least), number(self.most)
        if self.least == self.most:
            return least
        if self.least == -math.inf:
            return "anything" if self.most == math.inf else f"at most {most}"
        return f"at least {least}" if self.most == math.inf else f"{least} to {most}"

    @property
    def seen(self) -> str:
        """The measured number with its interval, formatted."""
        if self.low == self.high:
            return number(self.measured)
        return f"{number(self.measured)} ({number(self.low)} to {number(self.high)})"

    @property
    def remarks(self) -> str:
        """The note, whether the claim is only for information, and the misprints that it demonstrates."""
        parts = [self.note.removesuffix(".")] if self.note else []
        if not self.must and not self.claim.startswith(ARITHMETIC):
            parts.append("for information")
        if self.misprints:
            parts.append(f"misprint {', '.join(self.misprints)}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, with null for infinite numbers."""
        names = ("claim", "measured", "low", "high", "predicted", "least", "most", "verdict", "must", "asymptotic")
        values = {name: getattr(self, name) for name in names}
        for name in ("measured", "low", "high", "least", "most"):
            values[name] = float(values[name]) if math.isfinite(values[name]) else None
        return {**values, "misprints": list(self.misprints), "note": self.note}


def _real(value: Any, name: str) -> float:
    """Return a number, which may be infinite, as a float."""
    return value if isinstance(value, float) and math.isinf(value) else finite(value, name)


def finding(claim: str, measured: Interval | float, note: str = "") -> Finding:
    """Return a finding about an interval or an exact number. Add the predicted range with the methods of `Finding`."""
    measured, low, high = measured if isinstance(measured, tuple) else sure(measured)
    return Finding(claim=claim, measured=measured, low=low, high=high, note=note)


def arithmetic(claim: str, value: float, note: str = "") -> Finding:
    """Return a finding about a computed number, which the statement does not depend on."""
    return replace(finding(ARITHMETIC + claim, value, note), must=False)


def row_of(interval: Interval, **labels: Any) -> Row:
    """Return the row of a measured number."""
    return {**labels, "x": interval.measured, "low": interval.low, "high": interval.high}


def _finite(row: Row) -> Row:
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def number(value: float) -> str:
    """Format a number with three or four significant digits."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return f"{value:.2e}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The result of a check."""

    ran: str
    """A description of the experiments, in one or two sentences with the numbers."""
    findings: tuple[Finding, ...]
    rows: Sequence[Row] = ()
    """The measured cases behind the findings."""
    title: str = ""
    """The name of the number x of these cases."""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A numbered statement of the paper, or one of ours, and its check."""

    key: str
    """Its name on the command line: ``lemma-2``."""
    name: str
    """Its name in the paper: ``Lemma 2``. Names of our own statements end with "(ours)"."""
    says: str
    """Its content in one line, in our own words."""
    run: Callable[[Effort, Track], Evidence]
    aliases: tuple[str, ...] = ()
    """Keys of other statements that the same check covers."""
    ours: bool = False
    """Whether the statement is ours (docs/explanation/adakl-theorem.md), not the paper's."""
    policies: Callable[[], Sequence[Policy]] = tuple
    """Returns the policies that the check simulates, so that they can be compiled in parallel before it starts."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A statement and the result of its check."""

    statement: Statement
    ran: Evidence
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the claims that must hold, or of all claims if none must hold."""
        findings = self.ran.findings
        return worst(f.verdict for f in ([f for f in findings if f.must] or findings))

    @property
    def headline(self) -> str:
        """The text to print next to the verdict, for example that the statement fails as printed."""
        return " ".join(f.headline for f in self.ran.findings if f.headline and f.verdict == "holds")

    @property
    def failed(self) -> bool:
        """Whether a claim that must hold fails."""
        return any(f.must and f.verdict == "fails" for f in self.ran.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, with null for infinite ends of ranges."""
        return {
            **{name: getattr(self.statement, name) for name in ("key", "name", "says", "ours")},
            "verdict": self.verdict,
            "headline": self.headline,
            "ran": self.ran.ran,
            "seconds": round(self.seconds, 3),
            "findings": [f.to_dict() for f in self.ran.findings],
            "rows": [_finite(row) for row in self.ran.rows],
            "title": self.ran.title,
            "caption": self.ran.caption,
        }


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: "fails" is worse than "inconclusive", which is worse than "holds"."""
    ranking: tuple[Verdict, ...] = ("holds", "inconclusive", "fails")
    return max(verdicts, key=ranking.index, default="holds")


def checked(statement: Statement, effort: Effort, track: Track = silent) -> Outcome:
    """Run a check and measure its time."""
    instance(statement, Statement, "statement", "a statement", hint="such as statements(['lemma-2'])[0]")
    instance(effort, Effort, "effort", "an Effort", hint="such as Effort(quick=True)")
    start = time.perf_counter()
    evidence = statement.run(effort, track)
    return Outcome(statement=statement, ran=evidence, seconds=time.perf_counter() - start)


def find_statements(names: Sequence[str], statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the named statements in the order of ``statements``. Names ignore case and punctuation: ``Lemma 2``, ``lemma-2``."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise invalid("names", names, "a list of names", hint="such as ['lemma-2']")
    keys = {_normalised(key): (key, s) for s in statements for key in (s.key, *s.aliases)}
    chosen = set()
    for name in (names := items_of(names, "names", "names")):
        normalised = _normalised(name)
        if normalised not in keys:
            close = get_close_matches(normalised, keys, n=1)
            hint = f"did you mean {keys[close[0]][0]}?" if close else ""
            raise invalid("statement", name, f"one of {', '.join(key for key, _ in keys.values())}", hint=hint)
        chosen.add(keys[normalised][1].key)
    return tuple(s for s in statements if not names or s.key in chosen)


def _normalised(name: Any) -> str:
    if not isinstance(name, str):
        raise invalid("statement", name, "a string", hint="such as 'lemma-2'")
    return re.sub(r"[^a-z0-9]", "", name.lower())
