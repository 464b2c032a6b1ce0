"""``robandit estimators``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from robandit.cli.options import Flag
from robandit.cli.table_options import File


def estimators(
    file: File = None,
    *,
    column: Annotated[str | None, Parameter(name=("--column", "--reward"))] = None,
    arm: str | None = None,
    delta: float = 0.05,
    eps: float | None = None,
    u: float | None = None,
    v: float | None = None,
    where: str | None = None,
    skip_bad: Flag = False,
    delimiter: str | None = None,
) -> None:
    """Print every robust mean of a column of numbers, with its confidence interval if it has one.

    Most bounds need a known moment (--u or --v); if it is missing, the note names the option. Bounds whose assumption the values
    contradict are omitted. The lines below adaptive_trimmed_mean are its options: likelihood is bonus="likelihood", centred is
    also center="median", two-sided uses eps and u, and "of -x" negates the values, so that its upper bound becomes a lower bound.
    The values are shuffled first.

    For example: `robandit estimators waits.csv --column seconds`

    Parameters
    ----------
    file
        A CSV, Parquet or JSON lines file with one value per row, or - for standard input.
    column
        The column of the values; by default "reward".
    arm
        A column of names. Each name gets its own table; by default all values are one sample.
    delta
        The allowed probability that an interval fails, between 0 and 1.
    eps
        Order of the known moments minus 1, 0 < eps <= 1. The default is 1 for --u and --v.
    u
        A known bound on E|x|^(1+eps).
    v
        A known bound on E|x - mean|^(1+eps); without --eps, on the variance.
    where
        Read only rows that fit this condition, such as "ok = true".
    skip_bad
        Skip and count rows whose value is missing or not a finite number. By default they are an error.
    delimiter
        The character between the columns of a CSV file. By default it is detected in the first line.
    """
    from rich.console import Console

    from robandit.cli.terminal.means import means_table
    from robandit.cli.terminal.progress import rows
    from robandit.cli.terminal.tables import print_line
    from robandit.diagnostics.means import every_mean
    from robandit.errors import InvalidInput
    from robandit.recorded import open_records

    if file is None:
        raise InvalidInput("no file is given: name a file, or - for standard input")
    every = None if arm is not None else column or "reward"
    records = open_records(
        file, arm=arm, reward=column, skip_bad=skip_bad, delimiter=delimiter, where=where, one_arm=every
    )
    records.noun, records.option = "value", "--column"
    with rows("reading") as progress:
        samples = records.samples(progress=progress)
    for name, values in samples.items():
        means = every_mean(values, delta=delta, eps=eps, u=u, v=v)
        Console().print(means_table(name, means, len(values), samples.counts[name], delta))
    if samples.filtered is not None:
        print_line(f"{samples.filtered}.")
    if samples.bad.count:
        print_line(f"Skipped {samples.bad}.")
