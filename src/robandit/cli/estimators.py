"""``robandit estimators``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Integer, Integers, Seed, command_line


def coverage(
    *,
    trials: Integer = 1000,
    sizes: Integers = (100, 1_000, 10_000),
    delta: float = 0.05,
    seed: Seed = 0,
    out: Path | None = None,
) -> None:
    """Measure the coverage and the width of the confidence bounds of each estimator, on laws with known means.

    Parameters
    ----------
    trials
        The number of samples per law and sample size.
    sizes
        A sample size; repeat the option for more.
    delta
        The allowed probability that the bounds fail, between 0 and 1.
    out
        A folder for coverage.md, coverage.svg and coverage.csv; by default nothing is written.
    """
    from rich.console import Console

    from robandit.cli.terminal.coverage import tables
    from robandit.cli.terminal.progress import steps
    from robandit.errors import FileError
    from robandit.experiments.coverage import CONTENDERS, LAWS
    from robandit.experiments.coverage import coverage as measure
    from robandit.report.coverage import write_coverage

    if out is not None and not out.is_dir():
        raise FileError(f"{out} is not a folder: create it first")
    with steps("measuring coverage", len(LAWS) * len(sizes) * len(CONTENDERS)) as advance:
        frame = measure(sizes=sizes, delta=delta, trials=trials, seed=seed, advance=advance)
    for table in tables(frame, delta):
        Console().print(table)
    if out is not None:
        command = command_line("estimators coverage", trials=trials, sizes=sizes, delta=delta, seed=seed)
        written = write_coverage(frame, out, delta=delta, trials=trials, command=command)
        print(f"written: {', '.join(map(str, written))}")
