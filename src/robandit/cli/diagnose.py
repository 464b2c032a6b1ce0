"""``robandit diagnose``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from robandit.cli.options import command_line
from robandit.cli.table_options import File, Reading

if TYPE_CHECKING:
    from robandit.experiments.replay_plan import MaybeTable
    from robandit.kernel.types import Floats
    from robandit.recorded import Records

LEVEL = 0.05  # probability of naming any arm if none changed
NAMED = 10  # changed arms with a sentence


def diagnose(file: File = None, *, reading: Reading = Reading(), out: Path = Path("robandit-diagnosis.html")) -> None:
    """Study the means and tails of recorded rewards, and recommend a policy. Prints tables and writes an HTML page.

    For each arm, the tables show the number of rewards and of zeros, the mean and robust means with confidence limits, three
    estimates of the tail index, and the share of the largest rewards in the sum. They also show whether the rewards contradict the
    assumption of policies that trim, such as AdaR-UCB. The last lines state whether the best arm is significantly better than the
    others. With a column of times, the first lines name the arms whose rewards changed.

    For example: `robandit diagnose waits.csv --arm server --reward seconds --minimize`

    Parameters
    ----------
    file
        A CSV, Parquet or JSON lines file with one reward per row, or - for standard input. It may be larger than memory.
    out
        The HTML file of the page.
    """
    from rich.console import Console

    from robandit.cli.terminal.progress import rows, steps
    from robandit.cli.terminal.study import study_table
    from robandit.diagnostics.study import study
    from robandit.experiments.replay_plan import table_unasked
    from robandit.files import check_writable
    from robandit.recorded import Table
    from robandit.report.study import write_study

    check_writable(out)
    command = command_line("diagnose", file, **asdict(reading))
    records = reading.records(file)
    with rows("reading") as progress:
        recorded = records.summary(progress)
        table = table_unasked(records, recorded.rows)  # with a complete table, arms are compared at equal times
    with steps("studying arms", len(recorded.arms)) as advance:
        names = tuple(each.arm for each in recorded.arms)
        paired = table.rewards if isinstance(table, Table) and table.arms == names else None
        result = study(recorded, lambda *_: advance(""), table=paired)
    remarks = [] if recorded.filtered is None else [f"{recorded.filtered}."]
    remarks += reading.time_hint(records, "test for changes with time")
    if records.propensity is not None:
        remarks.append(f"The column {records.propensity!r} is not used here; robandit replay uses it as weights.")
    in_order = _in_order(records, table, recorded.rows)
    remarks += [in_order] if isinstance(in_order, str) else _changes(in_order)
    write_study(result, out, command=command, remarks=remarks)
    Console().print(study_table(result, remarks=remarks))
    print(f"report: {out}")


def _in_order(records: Records, table: MaybeTable, rows: int) -> dict[str, Floats] | str:
    """Return the rewards of each arm in order of time, none without a column of times, or a sentence why they cannot be sorted."""
    from robandit.errors import InvalidInput
    from robandit.experiments.replay_plan import UNASKED
    from robandit.recorded import Table

    if isinstance(table, Table):
        return {arm: table.rewards[:, i].copy() for i, arm in enumerate(table.arms)}
    if records.time is None:
        return {}
    untested = f"Changes with time were not tested: the column {records.time!r}"
    if rows > UNASKED:
        return f"{untested} has {rows:,} rows, and more than {UNASKED:,} are not sorted."
    try:
        log = records.log()
    except InvalidInput as error:
        return f"{untested} cannot be read as times. {error}."
    return {arm: log.rewards[log.actions == i] for i, arm in enumerate(log.arms)}


def _changes(rewards: dict[str, Floats]) -> list[str]:
    """Return a sentence for each arm that changed, below one that says how sure they are."""
    from robandit.drift.record import changed_arms
    from robandit.wording import counted, percent

    found = sorted(changed_arms(rewards, LEVEL), key=lambda change: change.p_value)
    if not found:
        return []
    chance = f"if none had changed, any would be named with probability {percent(LEVEL)}"
    lines = [f"{len(found)} of {counted(len(rewards), 'arm')} changed with time ({chance})."]
    lines += [f"{str(change)[0].upper()}{str(change)[1:]}." for change in found[:NAMED]]
    return lines + [f"{len(found) - NAMED} more arms changed."] * (len(found) > NAMED)
