"""``robandit backup``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.store_options import DEFAULT_STORE, SqliteLocation, check_installed


def backup(target: Path, *, store: SqliteLocation = DEFAULT_STORE) -> None:
    """Copy the SQLite file of the decision service to a new file, while a server may be running.

    The copy is consistent: it has everything that was acknowledged before it began. It is checked, and can be served as it is.
    Back up a PostgreSQL database with its own tools, such as pg_dump.

    For example: `robandit backup robandit-backup.db --store sqlite:robandit.db`

    Parameters
    ----------
    target
        The new file. An existing file is not overwritten.
    """
    check_installed()
    from robandit.cli.terminal.guard import write_line
    from robandit.storage.locations import back_up

    back_up(store, target)
    write_line(f"backup: {target} ({target.stat().st_size:,} bytes, checked)")
