"""Table 1 of the AdaR-UCB paper as a living table: made from what each policy says about itself."""

from __future__ import annotations

import textwrap

from robandit.policies.base import Policy
from robandit.policies.facts import Facts

__all__ = ["as_markdown", "as_text", "compared"]

COLUMNS = (
    "algorithm",
    "instance-dependent bound",
    "worst-case bound",
    "eps-adaptive",
    "u-adaptive",
    "assumption",
    "must know",
)
LEGEND = (
    "Bounds are rates, without constants; sums are over the arms that are not best. Matching: the lower bound of the setting "
    "where eps and u are known, up to constants (instance-dependent) or logarithms (worst case). Adaptive: estimator / "
    "algorithm. * not in the paper's table."
)
NAMES = "Name: the class, and what --policy and specs take."


def compared(policies: list[Policy]) -> tuple[list[dict[str, str]], list[str]]:
    """One row per algorithm, those of the paper's table first and in its order, and the footnotes that they refer to."""
    ordered = _ordered(policies)
    notes: list[str] = []
    for policy in ordered:
        notes += [note for note in policy.facts.notes if note not in notes]
    return [_row(policy, notes) for policy in ordered], notes


def _ordered(policies: list[Policy]) -> list[Policy]:
    return sorted(policies, key=lambda policy: policy.facts.row or len(policies) + 99)


def _row(policy: Policy, notes: list[str]) -> dict[str, str]:
    facts = policy.facts
    marks = "".join(f" [{notes.index(note) + 1}]" for note in facts.notes)
    name = (facts.title or policy.label) + ("" if facts.row else "*") + marks
    matches = facts.matches
    return dict(
        zip(
            COLUMNS,
            (
                name,
                _bound(facts.instance, matches[0]),
                _bound(facts.worst, matches[1]),
                *_adaptive(facts),
                str(facts.assumption) or "-",
                ", ".join(facts.knows) or "nothing",
            ),
            strict=True,
        )
    )


def _bound(text: str, matches: bool | None) -> str:
    return f"{text} (matching)" if matches else text or "-"


def _adaptive(facts: Facts) -> tuple[str, str]:
    if facts.adaptive is None:
        return "-", "-"
    words = ["yes" if flag else "no" for flag in facts.adaptive]
    return f"{words[0]} / {words[1]}", f"{words[2]} / {words[3]}"


def as_text(policies: list[Policy]) -> str:
    """The table for a terminal: three lines for each algorithm, since bounds are long."""
    rows, notes = compared(policies)
    for row, policy in zip(rows, _ordered(policies), strict=True):
        row["name"] = type(policy).__name__
    short = ("algorithm", "name", "eps-adaptive", "u-adaptive", "must know", "assumption")
    width = [max(len(name), *(len(row[name]) for row in rows)) for name in short[:-1]] + [0]
    lines = ["  ".join(name.ljust(w) for name, w in zip(short, width, strict=True)), ""]
    for row in rows:
        lines.append("  ".join(row[name].ljust(w) for name, w in zip(short, width, strict=True)).rstrip())
        lines.append(f"    instance: {row['instance-dependent bound']}")
        lines.append(f"    worst:    {row['worst-case bound']}")
    lines += ["", *textwrap.wrap(f"{NAMES} {LEGEND}", 100)]
    for number, note in enumerate(notes, 1):
        lines += textwrap.wrap(f"[{number}] {note}", 100, subsequent_indent="    ")
    return "\n".join(lines)


def as_markdown(policies: list[Policy]) -> str:
    """The documentation page."""
    rows, notes = compared(policies)
    lines = [
        "# The policies, and what each must know",
        "",
        "Table 1 of Genalti, Marsigli, Gatti, Metelli (COLT 2024), made from what the policies of this library say about",
        "themselves (`robandit policies --markdown` writes this page; `robandit.policies.table()` prints the first part).",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| " + " | ".join("---" for _ in COLUMNS) + " |",
    ]
    lines += ["| " + " | ".join(_escaped(cell) for cell in row.values()) + " |" for row in rows]
    lines += ["", _escaped(LEGEND), ""]
    lines += [f"{number}. {_escaped(note)}" for number, note in enumerate(notes, 1)]
    lines += [
        "",
        "## How they are called",
        "",
        "| policy | anytime | random | regret bound | source |",
        "| --- | --- | --- | --- | --- |",
    ]
    for policy in sorted(policies, key=lambda policy: policy.name.lower()):
        facts = policy.facts
        anytime, chance = ("yes" if facts.anytime else "no"), ("yes" if facts.random else "no")
        cells = (f"`{policy!r}`", anytime, chance, facts.bound or "none is proved", facts.citation or "-")
        lines.append("| " + " | ".join(_escaped(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
