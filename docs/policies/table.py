"""The page of the policies, generated from their facts: `python docs/policies/table.py` writes table.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from robandit.policies import Policy, all_policies
from robandit.policies.comparison import LEGEND, compared

SYMBOLS = (
    "In the bounds, T is the number of pulls, K the number of arms, u and v the bounds on the raw and the central moment of "
    "order 1 + eps, gap the gap of an arm, min gap the smallest one, variance and Var the arm's variance; scale, range, kappa, "
    "rho, f and g are parameters of the policy."
)


def as_markdown(policies: list[Policy]) -> str:
    """Return the page of the documentation."""
    rows, notes = compared(policies)
    columns = [column for column in rows[0] if column != "name"]
    lines = [
        "# The policies, and what each must know",
        "",
        "Table 1 of Genalti, Marsigli, Gatti, Metelli (COLT 2024), with all policies of this library, generated from their `facts`",
        "(`python docs/policies/table.py`). `robandit.policies.table()` prints it.",
        "",
        *_table(columns, ([row[column] for column in columns] for row in rows)),
        "",
        _escaped(LEGEND),
        SYMBOLS,
        "",
    ]
    lines += [f"{number}. {_escaped(note)}" for number, note in enumerate(notes, 1)]
    calls = []
    for policy in sorted(policies, key=lambda policy: policy.name.lower()):
        facts = policy.facts
        calls.append([f"`{policy!r}`", facts.bound or "not proved", facts.citation or "-"])
    lines += [
        "",
        "## How to call them",
        "",
        "Policies that must know the horizon are not anytime. `policy.randomised` is True if choices are random.",
        "",
        *_table(["policy", "regret bound", "reference"], calls),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    cells = [columns, ["---" for _ in columns], *([_escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(as_markdown(all_policies()), encoding="utf-8")
