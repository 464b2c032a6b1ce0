"""Poolers between a server and PostgreSQL: one that lends sessions by transaction is refused by name, others are not."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from helpers.cases import cases
from helpers.ports import free_port
from helpers.postgres import _unprivileged
from robandit.errors import StoreError
from robandit.storage import open_store, postgres

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
REFUSED = (
    "is behind PgBouncer, or another pooler, with pool_mode = transaction or statement: set pool_mode = session, or "
    "connect to PostgreSQL itself"
)


@contextmanager
def pgbouncer(url, mode, **settings):
    """Run PgBouncer in front of a database, and yield the URL of the database behind it."""
    target, port = urlsplit(url), free_port()
    with tempfile.TemporaryDirectory(prefix="robandit-pgbouncer-") as folder:
        os.chmod(folder, 0o755)
        users, config = Path(folder) / "users.txt", Path(folder) / "pgbouncer.ini"
        users.write_text(f'"{target.username}" "{target.password or ""}"\n')
        options = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "pool_mode": mode,
            **settings,
        }
        lines = [f"{name} = {value}" for name, value in options.items()]
        server = f"* = host={target.hostname} port={target.port or 5432}"
        config.write_text("\n".join(["[databases]", server, "[pgbouncer]", *lines, ""]))
        prefix, how = _unprivileged([Path(folder)])
        process = subprocess.Popen(
            [*prefix, PGBOUNCER, "-q", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **how,
        )
        try:
            until = time.monotonic() + 30.0
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
                    break
                assert process.poll() is None, "PgBouncer has ended"
                assert time.monotonic() < until, "PgBouncer does not start"
                time.sleep(0.02)
            yield target._replace(netloc=f"{target.username}@127.0.0.1:{port}").geturl()
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(30.0)


needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed: apt-get install pgbouncer")


@needs_pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("round_robin", [0, 1])
@pytest.mark.parametrize("idle", [0, 4])
def test_pgbouncer_that_lends_sessions_is_refused_by_name(postgres_url, mode, round_robin, idle):
    with pgbouncer(postgres_url, mode, server_round_robin=round_robin, min_pool_size=idle) as url:
        for _ in range(2):  # with a new pool, and with one that has sessions of earlier clients
            with pytest.raises(StoreError, match=REFUSED) as caught:
                open_store(url)
            assert str(urlsplit(url).port) in str(caught.value)


@needs_pgbouncer
def test_pgbouncer_that_keeps_sessions_is_used(postgres_url):
    with pgbouncer(postgres_url, "session", min_pool_size=4) as url:
        for _ in range(2):
            store = open_store(url)
            assert store.read(lambda reader: reader.experiments()) == []
            store.close()


class Pool:
    """Simulates a pooler with some sessions. ``lends``: when a connection gets one: by "session", or for each "statement"."""

    name = "postgresql://pool/db"

    def __init__(self, lends, sessions, oldest_first=False, told=-1):
        self.lends, self.oldest_first, self.told = lends, oldest_first, told
        self.idle = deque(range(1, sessions + 1))
        self.asked = 0
        self.returned = 0

    @contextmanager
    def errors(self):
        yield

    def take(self):
        return self.idle.popleft() if self.oldest_first else self.idle.pop()

    def begin(self, work):
        own = self.take() if self.lends == "session" else None

        def execute(query):
            assert query == "SELECT pg_backend_pid()"
            self.asked += 1
            session = self.take() if own is None else own
            if own is None:
                self.idle.append(session)
            return SimpleNamespace(fetchall=lambda: [(session,)])

        connection = SimpleNamespace(execute=execute, info=SimpleNamespace(backend_pid=self.told))
        return connection, work(connection)

    def give_back(self, connection):
        self.returned += 1


@cases("sessions", [1, 2, 3, 20])
@cases("oldest_first", [False, True])
def test_a_pooler_that_lends_sessions_is_noticed_whichever_it_lends(sessions, oldest_first):
    pool = Pool("statement", sessions, oldest_first)
    with pytest.raises(StoreError, match=REFUSED):
        postgres._check_sessions(pool)
    assert pool.returned == 2


@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_pooler_that_keeps_sessions_is_not_refused(oldest_first):
    pool = Pool("session", 5, oldest_first)
    postgres._check_sessions(pool)
    assert pool.returned == 2


def test_without_a_pooler_one_question_is_enough():
    pool = Pool("session", 1, told=1)
    postgres._check_sessions(pool)
    assert (pool.asked, pool.returned) == (1, 1)
