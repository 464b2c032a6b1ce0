"""``robandit diagnose``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from robandit.cli.options import Objective, command_line
from robandit.cli.table_options import File, Reading


def diagnose(
    file: File = None,
    *,
    reading: Reading = Reading(),
    objective: Objective = "mean",
    out: Path = Path("robandit-diagnosis.html"),
) -> None:
    """Study the means and tails of recorded rewards, and recommend a policy. Prints tables and writes an HTML page.

    For each arm, the tables show the number of rewards and of zeros, the mean and robust means with confidence limits, three
    estimates of the tail index, and the share of the largest rewards in the sum. They also show whether the rewards contradict the
    assumption of policies that trim, such as AdaR-UCB. The last lines state whether the best arm is significantly better than the
    others. With a column of times, the first lines name the arms whose rewards changed. If so, the last lines also compare the arms
    since the last change. If all values are positive with a long right tail, the first line asks whether they are costs.

    For example: `robandit diagnose waits.csv --arm server --reward seconds --minimize`

    Parameters
    ----------
    file
        A CSV, Parquet or JSON lines file with one reward per row, or - for standard input. It may be larger than memory.
    out
        The HTML file of the page.
    """
    from rich.console import Console

    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import rows, steps
    from robandit.cli.terminal.study import study_table
    from robandit.diagnostics.study import study
    from robandit.diagnostics.timeline import timed_log
    from robandit.experiments import replay_plan
    from robandit.experiments.replay_plan import table_unasked
    from robandit.files import check_writable
    from robandit.recorded import Table
    from robandit.report.study import write_study

    check_writable(out)
    aim = None if objective == "mean" else objective
    command = command_line("diagnose", file, **asdict(reading), objective=aim)
    records = reading.records(file)
    with rows("reading") as progress:
        recorded = records.summary(progress)
        table = table_unasked(records, recorded.rows)  # with a complete table, arms are compared at equal times
        names = tuple(each.arm for each in recorded.arms)
        paired = table if isinstance(table, Table) and table.arms == names else None
        log = None if paired is not None else timed_log(records, recorded.rows, replay_plan.UNASKED)
    with steps("studying arms", len(recorded.arms)) as advance:
        known = None if isinstance(log, str) else log
        result = study(recorded, lambda *_: advance(None), table=paired, log=known, objective=objective)
    remarks = [] if recorded.filtered is None else [f"{recorded.filtered}."]
    remarks += [log] if isinstance(log, str) else reading.time_hint(records, "test for changes with time")
    if records.propensity is not None:
        remarks.append(f"The column {records.propensity!r} is not used here; robandit replay uses it as weights.")
    write_study(result, out, command=command, remarks=remarks)
    Console().print(study_table(result, remarks=remarks), crop=False)
    write_line(f"report: {out}")
