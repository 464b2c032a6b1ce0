"""The paper's statements as numerical checks, one file each, in the order of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from robandit.verify.statement import Effort, Finding, Outcome, Statement, Track, checked, found, untracked

__all__ = ["Effort", "Finding", "Outcome", "Statement", "checked", "statements", "verify"]

FILES = (
    "table_1",
    "theorem_4",
    "theorem_2",
    "theorem_3",
    "lemma_2",
    "theorem_5",
    "theorem_6",
    "theorem_7",
    "theorem_8",
    "proposition_9",
    "proposition_10",
)


def statements(names: Sequence[str] = ()) -> tuple[Statement, ...]:
    """The checks by name, such as ``lemma-2``; all, if none is named."""
    return found(names, [import_module(f"robandit.verify.{file}").STATEMENT for file in FILES])


def verify(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    seed: int = 0,
    threads: int | None = None,
    track: Callable[[Statement], Track] = lambda _: untracked,
) -> tuple[Outcome, ...]:
    """Check statements of the AdaR-UCB paper by experiment; all, if none is named.

    Parameters
    ----------
    names
        Such as ``"lemma-2"``; `statements` lists them.
    quick
        Fewer and smaller runs.
    seed
        Same seed, same numbers.
    threads
        None: one per core.
    track
        For each statement, what shows how far it is.

    Examples
    --------
    >>> from robandit.verify import verify
    >>> verify(["proposition-9"], quick=True)[0].verdict
    'holds'
    """
    effort = Effort(quick=quick, seed=seed, threads=threads)
    return tuple(checked(statement, effort, track(statement)) for statement in statements(names))
