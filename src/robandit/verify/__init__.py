"""Numerical checks of the paper's statements, one file per statement.

The files of `OURS` check the steps of our own theorem about AdaKL-UCB in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from robandit.verify.statement import Effort, Finding, Outcome, Statement, Track, checked, find_statements, silent

__all__ = ["Effort", "Finding", "Outcome", "Statement", "checked", "statements", "verify"]

PAPER = (
    *("table_1", "theorem_4", "theorem_2", "theorem_3", "lemma_2", "theorem_5", "theorem_6", "theorem_7", "theorem_8"),
    *("proposition_9", "proposition_10"),
)
OURS = ("adakl_comparison", "adakl_validity", "adakl_width", "adakl_theorem")
"""The steps of docs/explanation/adakl-theorem.md; `Statement.ours` is True for them."""
FILES = (*PAPER, *OURS)


def statements(names: Sequence[str] = ()) -> tuple[Statement, ...]:
    """Return the statements with these names, such as ``lemma-2``, or all statements if no names are given."""
    return find_statements(names, [import_module(f"robandit.verify.{file}").STATEMENT for file in FILES])


def verify(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    seed: int = 0,
    threads: int | None = None,
    track: Callable[[Statement], Track] = lambda _: silent,
) -> tuple[Outcome, ...]:
    """Check statements of the AdaR-UCB paper, and of our theorem about AdaKL-UCB, by experiment.

    Parameters
    ----------
    names
        Names such as ``"lemma-2"``; `statements` lists them. Without names, all statements are checked.
    quick
        Run fewer and smaller experiments.
    seed
        Seed of the experiments. The same seed gives the same numbers.
    threads
        Number of threads. None: one per core.
    track
        A function that returns the progress display of a statement.

    Examples
    --------
    >>> from robandit.verify import verify
    >>> verify(["proposition-9"], quick=True)[0].verdict
    'holds'
    """
    effort = Effort(quick=quick, seed=seed, threads=threads)
    return tuple(checked(statement, effort, track(statement)) for statement in statements(names))
