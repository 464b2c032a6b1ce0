"""``robandit estimators``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Number, Numbers

__all__ = ["coverage"]


def coverage(
    *,
    trials: Number = 1000,
    sizes: Numbers = (100, 1_000, 10_000),
    delta: float = 0.05,
    seed: Number = 0,
    out: Path | None = None,
) -> None:
    """Measure how often the bounds of each estimator hold, and how wide they are, on laws with known means.

    Parameters
    ----------
    trials
        Samples drawn per law and size.
    sizes
        Sizes of the samples; give the option once for each.
    delta
        A share between 0 and 1: the bounds are to fail at most this often.
    seed
        A whole number from 0 on; same seed, same numbers.
    out
        A folder for coverage.md, coverage.svg and coverage.csv; nothing is written without it.
    """
    from rich.console import Console

    from robandit.cli.terminal.coverage import tables, write_coverage
    from robandit.cli.terminal.progress import steps
    from robandit.errors import FileError
    from robandit.experiments.coverage import CONTENDERS, LAWS
    from robandit.experiments.coverage import coverage as measure

    if out is not None and not out.is_dir():
        raise FileError(f"{out} is not a folder: make it first")
    with steps("measuring coverage", len(LAWS) * len(sizes) * len(CONTENDERS)) as advance:
        frame = measure(sizes=sizes, delta=delta, trials=trials, seed=seed, advance=advance)
    for table in tables(frame, delta):
        Console().print(table)
    if out is not None:
        words = " ".join(f"--sizes {n}" for n in sizes)
        command = f"robandit estimators coverage --trials {trials} {words} --delta {delta} --seed {seed}"
        write_coverage(frame, out, delta=delta, trials=trials, command=command)
        print(f"written: {', '.join(str(out / name) for name in ('coverage.md', 'coverage.svg', 'coverage.csv'))}")
