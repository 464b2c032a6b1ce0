"""Table 1 of the AdaR-UCB paper, generated from the `Facts` of all policies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import get_args

from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.facts import Late, Source

LEGEND = (
    "Bounds are rates, without constants; sums are over the suboptimal arms. (matching): equal to the lower bound for known "
    "eps and u, up to constants (instance-dependent) or logarithms (worst case). Adaptive: estimator / algorithm. Source: "
    "what the rule was written from (reconstructed: neither the paper's text nor its code was checked; -: ours, or no source "
    "needed). Late rewards: what happens to pulls whose reward is still to come (counted: as pulls that said nothing; at random: "
    "they are not counted, but choices are random; ignored: the policy repeats its choice until a reward comes). *: not in the "
    "paper's table."
)


def count_algorithms(policies: list[Policy]) -> int:
    """Return the number of algorithms among policies. Each class is one, in however many variants and with whatever parameters."""
    return len({type(policy) for policy in policies})


def as_lines(policies: list[Policy]) -> str:
    """Return one line per class: its name for ``--policy``, and when to use it. Policies that must know nothing come first."""
    by_class = {type(policy): policy for policy in reversed(policies)}  # of several variants, the first
    width = max(len(cls.__name__) for cls in by_class)
    groups: dict[str, list[str]] = {"Policies that need no parameters": [], "Policies that need parameters": []}
    for cls, policy in sorted(
        by_class.items(), key=lambda item: (item[0] is not type(DEFAULT), item[0].__name__.lower())
    ):
        lines = list(groups.values())[bool(policy.facts.knows)]
        lines.append(f"{cls.__name__:{width}}  {cls.use_when}".rstrip())
    text = "\n\n".join("\n".join([f"{head}. Use one when", *lines]) for head, lines in groups.items() if lines)
    count = f"{count_algorithms(policies)} algorithms, baselines included.\n{_exceptions(by_class)}"
    return f"{text}\n\n{count}\neps and u bound a moment: E|X|^(1+eps) <= u. Bounds and assumptions: --theory"


def _exceptions(by_class: dict[type[Policy], Policy]) -> str:
    """Return the classes that were not written from their papers, and those that do not count late pulls: a line per reason."""
    lines = ["Written from their papers, except for our own and:"]
    lines += _by_fact(by_class, "source", get_args(Source), "the paper")
    lines += ["Pulls without a reward yet are counted, except by (see --theory):"]
    return "\n".join([*lines, *_by_fact(by_class, "late", get_args(Late), "counted")])


def _by_fact(by_class: dict[type[Policy], Policy], fact: str, values: Iterable[str], usual: str) -> list[str]:
    """Return a line with the classes of each value of a fact, except for the usual one."""
    lines = []
    for value in values:
        names = [cls.__name__ for cls, policy in by_class.items() if getattr(policy.facts, fact) == value]
        if names and value not in ("", usual):
            listed = ", ".join(sorted(names, key=str.lower))
            lines.append(textwrap.fill(f"{value}: {listed}", 80, initial_indent="  ", subsequent_indent="    "))
    return lines


def compared(policies: list[Policy]) -> tuple[list[dict[str, str]], list[str]]:
    """Return one row per algorithm, and the footnotes of the rows. The rows of the paper's table come first, in its order."""
    ordered = sorted(policies, key=lambda policy: policy.facts.row or len(policies) + 99)
    notes = list(dict.fromkeys(note for policy in ordered for note in policy.facts.notes))
    return [_row(policy, notes) for policy in ordered], notes


def _row(policy: Policy, notes: list[str]) -> dict[str, str]:
    facts = policy.facts
    references = "".join(f" [{notes.index(note) + 1}]" for note in facts.notes)
    flags = ["yes" if flag else "no" for flag in facts.adaptive or ()]
    return {
        "name": type(policy).__name__,
        "algorithm": facts.title + ("" if facts.row else "*") + references,
        "instance-dependent bound": _bound(facts.instance, facts.matches[0]),
        "worst-case bound": _bound(facts.worst, facts.matches[1]),
        "eps-adaptive": " / ".join(flags[:2]) or "-",
        "u-adaptive": " / ".join(flags[2:]) or "-",
        "assumption": str(facts.assumption) or "-",
        "must know": ", ".join(facts.knows) or "nothing",
        "late rewards": facts.late,
        "source": facts.source or "-",
    }


def _bound(text: str, matches: bool | None) -> str:
    return f"{text} (matching)" if matches else text or "-"


def as_text(policies: list[Policy]) -> str:
    """Return the table for a terminal, with three lines per algorithm because bounds are long."""
    rows, notes = compared(policies)
    columns = ("algorithm", "name", "eps-adaptive", "u-adaptive", "must know", "late rewards", "source", "assumption")
    width = {name: max(len(name), *(len(row[name]) for row in rows)) for name in columns}
    lines = ["  ".join(name.ljust(width[name]) for name in columns).rstrip(), ""]
    for row in rows:
        lines.append("  ".join(row[name].ljust(width[name]) for name in columns).rstrip())
        lines.append(f"    instance: {row['instance-dependent bound']}")
        lines.append(f"    worst:    {row['worst-case bound']}")
    lines += ["", *textwrap.wrap(f"Name: the class; use it in --policy and in specs. {LEGEND}", 100)]
    for number, note in enumerate(notes, 1):
        lines += textwrap.wrap(f"[{number}] {note}", 100, subsequent_indent="    ")
    return "\n".join(lines)
