"""What a check is: a statement, what was run, what was found, and the verdict."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from robandit.errors import InvalidInput

__all__ = [
    "Effort",
    "Finding",
    "Outcome",
    "Ran",
    "Statement",
    "Track",
    "Verdict",
    "checked",
    "found",
    "number",
    "untracked",
    "worst",
]

Verdict = Literal["holds", "fails", "inconclusive"]
Item = TypeVar("Item")
Track = Callable[[Sequence[Any]], Iterator[Any]]
"""Passes the items on one by one, and shows how far it is."""


def untracked(items: Sequence[Item]) -> Iterator[Item]:
    """The items, and nothing is shown."""
    return iter(items)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to run, from which seed, on how many threads."""

    quick: bool = False
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        """Refuse here what would otherwise be refused in the middle of the work."""
        for name, value, least in (("seed", self.seed, 0), ("threads", self.threads, 1)):
            if value is None and name == "threads":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name} = {value!r} must be a whole number >= {least}")

    def of(self, quick: Item, full: Item) -> Item:
        """The one that applies."""
        return quick if self.quick else full


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim with a number: what was measured, how sure that is, and the range in which it is predicted.

    The verdict compares the interval [low, high] with the range [least, most]: inside it holds, outside it fails, across an end it
    is inconclusive.
    """

    claim: str
    measured: float
    low: float
    """Lower end of the confidence interval of ``measured``; equal to it where nothing is random."""
    high: float
    least: float = -math.inf
    most: float = math.inf
    must: bool = True
    """Whether it must hold. False: it is shown for what it is, such as a misprint's consequence or a rate at finite horizons."""
    asymptotic: bool = False
    """The claim is about a limit, so a finite run may support it but not refute it: instead of failing it is inconclusive."""
    misprints: tuple[str, ...] = ()
    """The items of docs/explanation/reading-the-paper.md that it demonstrates, such as "12"."""
    note: str = ""
    headline: str = ""
    """A sentence that stands beside the statement's verdict if this claim holds: what a reader of that alone must know."""

    def __post_init__(self) -> None:
        """A number that is not one, or an interval without it, would make any verdict."""
        if not self.low <= self.measured <= self.high:
            raise InvalidInput(
                f"{self.claim}: measured {self.measured} is not in its own interval, {self.low} to {self.high}"
            )
        if not self.least <= self.most:
            raise InvalidInput(f"{self.claim}: predicted {self.least} to {self.most}, which is no range")

    @property
    def verdict(self) -> Verdict:
        """Whether the claim holds."""
        if self.least <= self.low and self.high <= self.most:
            return "holds"
        if (self.high < self.least or self.low > self.most) and not self.asymptotic:
            return "fails"
        return "inconclusive"

    @property
    def predicted(self) -> str:
        """The range in words."""
        if self.least == self.most:
            return number(self.least)
        if self.least == -math.inf:
            return "anything" if self.most == math.inf else f"at most {number(self.most)}"
        return (
            f"at least {number(self.least)}"
            if self.most == math.inf
            else f"{number(self.least)} to {number(self.most)}"
        )

    @property
    def seen(self) -> str:
        """The measured number with its uncertainty in words."""
        if self.low == self.high:
            return number(self.measured)
        return f"{number(self.measured)} ({number(self.low)} to {number(self.high)})"


def number(value: float) -> str:
    """Three or four digits, as people write them."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return f"{value:.2e}"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a check brings back."""

    ran: str
    """What was run, in one or two sentences with the numbers."""
    findings: tuple[Finding, ...]
    figure: dict[str, Any]
    """A Vega-Lite specification with its data."""
    caption: str


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A numbered statement of the paper and the check of it."""

    key: str
    """How it is asked for: ``lemma-2``."""
    name: str
    """How the paper calls it: ``Lemma 2``."""
    says: str
    """What it says, in one line of our own words."""
    run: Callable[[Effort, Track], Ran]
    aliases: tuple[str, ...] = ()
    """Other keys: what the same check covers."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A statement that was checked."""

    statement: Statement
    ran: Ran
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst verdict among the claims that must hold; if there is none, among all."""
        findings = self.ran.findings
        return worst(f.verdict for f in ([f for f in findings if f.must] or findings))

    @property
    def headline(self) -> str:
        """What to know beside the verdict, such as that the statement fails as printed."""
        return " ".join(f.headline for f in self.ran.findings if f.headline and f.verdict == "holds")

    @property
    def failed(self) -> bool:
        """Whether a claim that must hold fails."""
        return any(f.must and f.verdict == "fails" for f in self.ran.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data: an infinite end of a range is null."""
        statement = self.statement
        return {
            "key": statement.key,
            "name": statement.name,
            "says": statement.says,
            "verdict": self.verdict,
            "headline": self.headline,
            "ran": self.ran.ran,
            "seconds": round(self.seconds, 3),
            "findings": [_plain(f) for f in self.ran.findings],
            "figure": self.ran.figure,
            "caption": self.ran.caption,
        }


def _plain(finding: Finding) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return float(value) if math.isfinite(value) else None

    return {
        "claim": finding.claim,
        "measured": finite(finding.measured),
        "low": finite(finding.low),
        "high": finite(finding.high),
        "predicted": finding.predicted,
        "least": finite(finding.least),
        "most": finite(finding.most),
        "verdict": finding.verdict,
        "must": finding.must,
        "asymptotic": finding.asymptotic,
        "misprints": list(finding.misprints),
        "note": finding.note,
    }


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Fails before inconclusive before holds."""
    given = set(verdicts)
    if "fails" in given:
        return "fails"
    return "inconclusive" if "inconclusive" in given else "holds"


def checked(statement: Statement, effort: Effort, track: Track = untracked) -> Outcome:
    """Run a check and take the time."""
    start = time.perf_counter()
    ran = statement.run(effort, track)
    return Outcome(statement=statement, ran=ran, seconds=time.perf_counter() - start)


def found(names: Sequence[str], statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements asked for, in the paper's order: by key or by name, as in ``lemma-2``, ``"Lemma 2"`` or ``lemma2``."""

    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInput(f"names = {names!r} must be a list of names, such as ['lemma-2']")
    names = tuple(names)

    def plain(name: Any) -> str:
        if not isinstance(name, str):
            raise InvalidInput(f"{name!r} is not a statement that is checked: name it by a string, such as 'lemma-2'")
        return re.sub(r"[^a-z0-9]", "", name.lower())

    spelt = {plain(key): key for s in statements for key in (s.key, *s.aliases)}
    known = {plain(key): s.key for s in statements for key in (s.key, *s.aliases)}
    for name in names:
        if plain(name) not in known:
            keys = ", ".join(key for s in statements for key in (s.key, *s.aliases))
            close = get_close_matches(plain(name), known, n=1)
            hint = f"; did you mean {spelt[close[0]]}?" if close else ""
            raise InvalidInput(f"{name!r} is not a statement that is checked: there are {keys}{hint}")
    wanted = {known[plain(name)] for name in names}
    return tuple(s for s in statements if not names or s.key in wanted)
