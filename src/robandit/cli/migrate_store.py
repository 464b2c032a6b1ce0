"""``robandit migrate-store``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robandit.cli.options import Imports, import_given
from robandit.cli.store_options import check_installed

if TYPE_CHECKING:
    from robandit.storage import Store


def migrate_store(source: str, target: str, *, imports: Imports = None) -> None:
    """Copy the data of the decision service into a new store, for example from SQLite to PostgreSQL.

    Stop all servers of the source first. The source is not changed. Servers can open the copy only after every event and every
    state in it has been compared with the source.

    For example: `robandit migrate-store sqlite:robandit.db postgresql://robandit@db.example.org/robandit`

    Parameters
    ----------
    source
        The store to copy: sqlite:PATH, or postgresql://USER@HOST/DATABASE. Set passwords with PGPASSFILE.
    target
        The new store, in the same form. It must not contain data of Robandit.
    """
    check_installed()
    import sys

    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import rows
    from robandit.decisions.moving import move
    from robandit.storage import open_store
    from robandit.storage.locations import check_different, without_password
    from robandit.wording import counted

    import_given(imports)
    check_different(source, target)
    opened = open_store(source, create=False)
    begun = False

    def make_target() -> Store:
        nonlocal begun
        begun = True
        return open_store(target, new=True)

    try:
        with rows("migrating", "events copied and compared") as tell:
            moved = move(opened, make_target, tell)
    except KeyboardInterrupt:
        copy = f"{without_password(target)} is incomplete, and no server opens it" if begun else "nothing was copied"
        print(f"robandit: interrupted: {copy}; {without_password(source)} is unchanged", file=sys.stderr)
        sys.exit(130)
    finally:
        opened.close()
    nouns = (("experiment", ""), ("event", ""), ("key", ""), ("entry of the audit log", "entries of the audit log"))
    counts = [counted(number, *noun) for number, noun in zip(moved, nouns, strict=True)]
    write_line(f"migrated and compared: {', '.join(counts)}")
    write_line("next: start all servers with the new store; keep the old one until they have run for a while")
    write_line(f"keep {without_password(source)} as a backup, and start no server on it")
