"""``robandit verify``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag, Number, Whole

__all__ = ["verify"]


def verify(
    *statement: str,
    quick: Flag = False,
    seed: Number = 0,
    threads: Whole = None,
    out: Path = Path("robandit-verify.html"),
) -> None:
    """Check the statements of the AdaR-UCB paper by experiment: verdicts here, a page with figures, and JSON beside it.

    The statements: table-1, theorem-4 (with theorem-1), theorem-2, theorem-3, lemma-2, theorem-5, theorem-6, theorem-7, theorem-8,
    proposition-9, proposition-10 (with algorithm-2). Each is broken into claims with a number. A claim holds if the confidence
    interval of what was measured lies in the predicted range, fails if it lies outside, and is inconclusive otherwise. Exit code 3
    says that a claim that must hold failed.

    For example: `robandit verify theorem-4 --quick`

    Parameters
    ----------
    statement
        Which to check; all, if none is named.
    quick
        Fewer and smaller runs: all statements within three minutes on two cores.
    seed
        A whole number from 0 on; same seed, same numbers.
    threads
        How many threads play at once; by default one per core.
    out
        Where to write the page; the JSON file has the same name with .json.
    """
    import sys

    from rich.console import Console

    from robandit.cli.terminal.progress import tracked
    from robandit.cli.terminal.verify import block, recap
    from robandit.errors import InvalidInput
    from robandit.files import check_writable
    from robandit.report.verify import summary, write_findings
    from robandit.verify import Effort, checked, statements

    chosen = statements(statement)
    data = out.with_suffix(".json")
    if data == out:
        raise InvalidInput(
            f"out is {out}: that is the name of the JSON file, which lies beside the page; name a .html file"
        )
    for path in (out, data):
        check_writable(path)
    effort = Effort(quick=quick, seed=seed, threads=threads)
    console = Console()
    outcomes = []
    for each in chosen:
        outcomes.append(checked(each, effort, tracked(each.name)))
        console.print(block(outcomes[-1]))
    words = "".join(f" {name!r}" if " " in name else f" {name}" for name in statement)
    command = f"robandit verify{words}{' --quick' if quick else ''} --seed {seed}"
    write_findings(outcomes, out, data, command=command, effort=effort)
    if len(outcomes) > 1:
        console.print(recap(outcomes))
    console.print(summary(outcomes))
    print(f"written: {out}, {data}")
    if any(outcome.failed for outcome in outcomes):
        sys.exit(3)
