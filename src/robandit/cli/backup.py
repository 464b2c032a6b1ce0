"""``robandit backup``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.store_options import DEFAULT_STORE, Location, check_installed


def backup(target: Path, *, store: Location = DEFAULT_STORE) -> None:
    """Copy the data of the decision service into a new file, while a server may be running.

    The copy is the state of one moment. It is checked, and can be served as it is.

    For example: `robandit backup robandit-backup.db --store sqlite:robandit.db`

    Parameters
    ----------
    target
        The new file. An existing one is not replaced.
    """
    check_installed()
    from robandit.cli.terminal.guard import write_line
    from robandit.storage.locations import back_up

    back_up(store, target)
    write_line(f"backup: {target} ({target.stat().st_size:,} bytes, checked)")
