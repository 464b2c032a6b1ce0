"""Table 1 of the AdaR-UCB paper, generated from the `Facts` of all policies."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import get_args

from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.facts import Source
from robandit.policies.formula import parsed

LEGEND = (
    "Bounds are rates, without constants; sums are over the suboptimal arms. (matching): equal to the lower bound for known "
    "eps and u, up to constants (instance-dependent) or logarithms (worst case). Adaptive: estimator / algorithm. Source: "
    "what the rule was written from (reconstructed: neither the paper's text nor its code was checked; -: ours, or no source "
    "needed). *: not in the paper's table."
)
SYMBOLS = (
    r"In the bounds, $T$ is the number of pulls, $K$ the number of arms, $\varepsilon$ eps, $u$ and $v$ the bounds on the raw and "
    r"the central moment of order $1+\varepsilon$, $\Delta_i$ the gap of arm $i$, $\Delta_{\min}$ the smallest one, $\nu_i$ its "
    r"law, $V_i$ its variance, and $\mu_\star$ the best mean; $\sigma$ is the parameter scale, $R$ the length of the interval of "
    r"the rewards, and $\kappa$, $\rho$, $f$ and $g$ are parameters of the policy."
)
IN_PROSE = (
    "3 u log f(T) < 2 f(T)^eps",
    "f(T) > (12 u)^(1/(1+eps))",
    "g(T) < eps/(1+eps)",
    "sum (variance/gap + range) log T",
    "T^2.5 (log T)^2",
    "T^2 (log T)^2",
    "u^(1/(1+eps))",
    "sqrt(K T)",
)  # formulas in assumptions and notes
MOMENTS = {  # with bars, which the notation of bounds lacks
    "E|X|^(1+eps) <= u": r"E\lvert X \rvert^{1 + \varepsilon} \le u",
    "E|X - mean|^(1+eps)": r"E\lvert X - \mu \rvert^{1 + \varepsilon}",
}
UNBROKEN = 50  # characters of a formula that is not broken into lines


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
    count = f"{count_algorithms(policies)} algorithms, baselines included.\n{_sources(by_class)}"
    return f"{text}\n\n{count}\neps and u bound a moment: E|X|^(1+eps) <= u. Bounds and assumptions: --theory"


def _sources(by_class: dict[type[Policy], Policy]) -> str:
    """Return the classes that were not written from their papers: a line per source."""
    lines = ["Written from their papers, except for our own and:"]
    for source in get_args(Source):
        names = [cls.__name__ for cls, policy in by_class.items() if policy.facts.source == source]
        if names and source not in ("", "the paper"):
            listed = ", ".join(sorted(names, key=str.lower))
            lines.append(textwrap.fill(f"{source}: {listed}", 80, initial_indent="  ", subsequent_indent="    "))
    return "\n".join(lines)


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
        "source": facts.source or "-",
    }


def _bound(text: str, matches: bool | None) -> str:
    return f"{text} (matching)" if matches else text or "-"


def _typeset(cell: str) -> str:
    """Return a cell of bounds with its formula in TeX, in the Markdown of GitHub and MyST. A long one may break before a plus."""
    text = cell.removesuffix(" (matching)")
    if text == "-":
        return cell
    tex = parsed(text).tex()
    pieces = _pieces(tex) if len(text) > UNBROKEN else [tex]
    return " ".join(f"${piece}$" for piece in pieces) + cell.removeprefix(text)


def _typeset_prose(text: str) -> str:
    """Return an assumption or a note with its formulas in TeX."""
    for formula in IN_PROSE:
        sides = re.split(r" ([<>]) ", formula)
        tex = " ".join(side if side in "<>" else parsed(side).tex() for side in sides)
        text = text.replace(formula, f"${tex}$")
    for formula, tex in MOMENTS.items():
        text = text.replace(formula, f"${tex}$")
    return text


def _pieces(tex: str) -> list[str]:
    """Split a formula before each plus outside exponents and inner parentheses."""
    pieces, braces, parentheses = [""], 0, 0
    for token in tex.split(" "):
        if token == "+" and braces == 0 and parentheses <= 1:
            pieces.append("{}")  # an empty term, so that the plus has spaces around it
        pieces[-1] += f" {token}"
        braces += token.count("{") - token.count("}")
        parentheses += token.count("(") - token.count(")")
    return [piece.strip() for piece in pieces]


def as_text(policies: list[Policy]) -> str:
    """Return the table for a terminal, with three lines per algorithm because bounds are long."""
    rows, notes = compared(policies)
    columns = ("algorithm", "name", "eps-adaptive", "u-adaptive", "must know", "source", "assumption")
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


def as_markdown(policies: list[Policy]) -> str:
    """Return the page of the documentation."""
    rows, notes = compared(policies)
    for row in rows:
        row["instance-dependent bound"] = _typeset(row["instance-dependent bound"])
        row["worst-case bound"] = _typeset(row["worst-case bound"])
        row["assumption"] = _typeset_prose(row["assumption"])
    columns = [column for column in rows[0] if column != "name"]
    lines = [
        "# The policies, and what each must know",
        "",
        "Table 1 of Genalti, Marsigli, Gatti, Metelli (COLT 2024), with all policies of this library. It is generated from their",
        "`facts`: `robandit policies --markdown` writes this page, and `robandit.policies.table()` prints its first part.",
        "",
        *_table(columns, ([row[column] for column in columns] for row in rows)),
        "",
        _escaped(LEGEND),
        SYMBOLS,
        "",
    ]
    lines += [f"{number}. {_escaped(_typeset_prose(note))}" for number, note in enumerate(notes, 1)]
    calls = []
    for policy in sorted(policies, key=lambda policy: policy.name.lower()):
        facts, flags = policy.facts, ["yes" if flag else "no" for flag in (policy.facts.anytime, policy.facts.random)]
        calls.append([f"`{policy!r}`", *flags, facts.bound or "not proved", facts.citation or "-"])
    lines += [
        "",
        "## How to call them",
        "",
        *_table(["policy", "anytime", "random", "regret bound", "reference"], calls),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    cells = [columns, ["---" for _ in columns], *([_escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
