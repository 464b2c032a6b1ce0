"""``robandit archive``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag, Imports, import_given
from robandit.cli.store_options import DEFAULT_STORE, Location, check_installed, opened_alone
from robandit.errors import InvalidInput

DAY = 86_400.0
MOST_DAYS = 36_500


def archive(
    folder: Path,
    *,
    days: float | None = None,
    experiment: str | None = None,
    store: Location = DEFAULT_STORE,
    restore: Flag = False,
    imports: Imports = None,
) -> None:
    """Move old events of the decision service to Parquet files. What was learned from them is kept.

    Future decisions are the same as without archiving, and open decisions still accept their rewards. Archived decisions can no
    longer be explained. Servers that share a PostgreSQL database may run meanwhile; stop the server of a SQLite file first.

    For example: `robandit archive old-events --days 90 --store sqlite:robandit.db`

    Parameters
    ----------
    folder
        The folder for the files. It is created if it does not exist.
    days
        Move events that are older than this number of days.
    experiment
        Move the events of this experiment only; by default, those of all experiments.
    restore
        Move nothing. Recompute from all files in the folder the state that the store keeps in place of archived events.
    """
    check_installed()
    import sys

    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import rows
    from robandit.decisions import archiving
    from robandit.validation import within
    from robandit.wording import counted

    if (days is None) != restore:
        raise InvalidInput("robandit archive needs one of --days and --restore, for example --days 90")
    import_given(imports)
    before = None if days is None else within(days, "--days", 0, MOST_DAYS) * DAY
    opened = opened_alone(store, "stop it first, because only one server or command may change a SQLite file at a time")
    try:
        if before is None:
            for stored, last in archiving.restore(opened, folder, experiment):
                write_line(f"{stored.name}: state after event {last:,} restored")
            return
        count = 0
        with rows("archiving", "events") as tell:
            done = list(archiving.archive(opened, folder, archiving.now(opened) - before, experiment, tell))
        for stored, file in done:
            count += file.last - file.first + 1
            write_line(f"{stored.name}: events {file.first:,} to {file.last:,} in {file.path}")
        write_line(f"archived: {counted(count, 'event')}, compared with the log and removed from it")
    except KeyboardInterrupt:
        print("robandit: interrupted: nothing is lost; repeat the command to go on", file=sys.stderr)
        sys.exit(130)
    finally:
        opened.close()
