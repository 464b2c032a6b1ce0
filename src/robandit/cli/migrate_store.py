"""``robandit migrate-store``."""

from __future__ import annotations

from robandit.cli.options import Imports, import_given
from robandit.cli.store_options import check_installed


def migrate_store(source: str, target: str, *, imports: Imports = None) -> None:
    """Copy the data of the decision service into a new store, for example from SQLite to PostgreSQL.

    All servers of the source must be stopped. The source is not changed. The copy is compared with it, event by event and state by
    state, before servers can use it.

    For example: `robandit migrate-store sqlite:robandit.db postgresql://robandit@db.example.org/robandit`

    Parameters
    ----------
    source
        Where the data are: sqlite:PATH, or postgresql://USER@HOST/DATABASE (set passwords by PGPASSFILE).
    target
        Where they are copied to. It must have no data of Robandit yet.
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
    try:
        with rows("migrating", "events copied and compared") as tell:
            moved = move(opened, lambda: open_store(target, new=True), tell)
    except KeyboardInterrupt:
        what = (
            f"{without_password(target)} is incomplete, and no server opens it; {without_password(source)} is unchanged"
        )
        print(f"robandit: interrupted: {what}", file=sys.stderr)
        sys.exit(130)
    finally:
        opened.close()
    nouns = (("experiment", ""), ("event", ""), ("key", ""), ("entry of the audit log", "entries of the audit log"))
    counts = [counted(number, *noun) for number, noun in zip(moved, nouns, strict=True)]
    write_line(f"migrated and compared: {', '.join(counts)}")
    write_line("next: start all servers with the new store; keep the old one until they have run for a while")
    write_line(f"keep {without_password(source)} as a backup, and start no server on it")
