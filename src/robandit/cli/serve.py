"""``robandit serve``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from robandit.cli.options import Flag, Imports, Integer, import_given
from robandit.cli.store_options import DEFAULT_STORE, Location, check_installed
from robandit.errors import InvalidInput


def serve(
    *,
    host: str = "127.0.0.1",
    port: Integer = 8000,
    store: Location = DEFAULT_STORE,
    no_auth: Annotated[Flag, Parameter(name="--no-auth")] = False,
    relaxed_durability: Flag = False,
    rate: float | None = None,
    imports: Imports = None,
) -> None:
    """Run the decision service: decisions over HTTP that survive crashes.

    Every acknowledged decision and reward is stored on the disk, counts once, and can be explained later. At its first start, the
    server prints an admin key; `robandit keys` creates others. The dashboard is at http://127.0.0.1:8000, and the API reference at
    http://127.0.0.1:8000/docs. Stop the server with Ctrl-C or SIGTERM: it finishes the calls that are running. After a crash, it
    continues from its log.

    With a PostgreSQL database, any number of servers can serve the same experiments behind a load balancer.

    For example: `robandit serve --port 8000 --store sqlite:robandit.db`

    Parameters
    ----------
    host
        The address to listen on. The default can be reached from this machine only.
    port
        The port. 0 chooses a free port and prints it.
    no_auth
        Accept calls without a key. Allowed only on loopback addresses, such as 127.0.0.1.
    relaxed_durability
        Answer before the data is flushed to the disk. This is faster, but a power failure may lose the latest answers. A crash of
        the server process loses nothing.
    rate
        The maximum number of calls per second for each key; by default there is no limit.
    """
    check_installed()
    import sys
    import time

    from robandit.cli.terminal.guard import write_line
    from robandit.service.access import is_loopback, made_key
    from robandit.service.server import listening, url_of
    from robandit.service.server import serve as run
    from robandit.storage import open_store
    from robandit.storage.base import Audit, PutKey
    from robandit.storage.locations import check_location, without_password
    from robandit.validation import integer, positive

    integer(port, "--port", 0, 65_535)
    check_location(store)  # before the port, which may be in use
    if rate is not None:
        positive(rate, "--rate")
    if no_auth and not is_loopback(host):
        raise InvalidInput(f"--no-auth is allowed on loopback addresses only, not on {host}: omit one of them")
    import_given(imports)
    listener = listening(host, port)
    opened = open_store(store, durability="relaxed" if relaxed_durability else "full")
    try:
        for warning in getattr(opened, "warnings", ()):
            print(f"robandit: {warning}", file=sys.stderr)
        key, stored = made_key(["admin"], now=time.time(), note="made at the first start")
        first = (PutKey(stored), Audit(stored.created, "(server)", "create key", stored.id, b"{}"))
        if not no_auth and opened.commit_first_key(first):
            write_line(f"admin key, shown only once: {key}")

        def announce() -> None:
            place = without_password(store)
            write_line(f"serving {url_of(listener)} (dashboard and API; data in {place}; Ctrl-C stops)")
            sys.stdout.flush()

        run(opened, listener, authenticate=not no_auth, rate=rate, on_start=announce)
    finally:
        opened.close()
    write_line("stopped; everything is stored")
