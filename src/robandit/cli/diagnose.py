"""``robandit diagnose``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.table_options import File, Reading

__all__ = ["diagnose"]

_WEIGHTLESS = "The column {column!r} is not used here; robandit replay weighs by it."


def diagnose(file: File = None, *, reading: Reading = Reading(), out: Path = Path("robandit-diagnosis.html")) -> None:
    """Say what recorded rewards are like: their tails, their means, and which policy would suit them.

    For each arm: how many rewards, how many of them 0, the mean beside robust ones with their bounds, how heavy the tails are by
    three estimators, how much of the sum the largest rewards make, and whether they contradict what AdaR-UCB (about 0) and
    AdaKL-UCB (about the median) assume. Then which policy to take, and whether the record tells which arm is best. A table here,
    and a page with plots.

    For example: `robandit diagnose waits.csv --arm server --reward seconds --negate`

    Parameters
    ----------
    file
        A table with a row per reward, CSV, Parquet or JSON lines; - reads standard input. Any length: it is read in pieces.
    out
        Where to write the page, an HTML file.
    """
    import shlex

    from rich.console import Console

    from robandit.cli.terminal.progress import rows, steps
    from robandit.diagnostics.study import study
    from robandit.experiments.replay_plan import table_unasked
    from robandit.files import check_writable
    from robandit.recorded import Table
    from robandit.report.study import study_table, write_study

    check_writable(out)
    command = shlex.join(["robandit", "diagnose", *reading.words(file)])
    records = reading.records(file)
    with rows("reading") as progress:
        recorded = records.summary(progress)
        table = table_unasked(records, recorded.rows)  # arms are compared time by time where that is possible
    with steps("looking at arms", len(recorded.arms)) as advance:
        names = tuple(each.arm for each in recorded.arms)
        paired = table.rewards if isinstance(table, Table) and table.arms == names else None
        found = study(recorded, lambda *_: advance(""), table=paired)
    remarks = [] if records.propensity is None else [_WEIGHTLESS.format(column=records.propensity)]
    write_study(found, out, command=command, remarks=remarks)
    Console().print(study_table(found, remarks=remarks))
    print(f"report: {out}")
