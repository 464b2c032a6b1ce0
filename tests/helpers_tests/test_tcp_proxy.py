"""The proxy before PostgreSQL: each of its faults happens, and no other."""

import asyncio
import threading

import psycopg
import pytest

from helpers.tcp_proxy import TcpProxy

pytestmark = pytest.mark.xdist_group("postgres")
LOST = psycopg.OperationalError


@pytest.fixture
def proxy(postgres_url):
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE t (x int)")
    with TcpProxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy):
    with psycopg.connect(proxy.url) as connection:
        yield connection
        connection.close()  # it may be lost


def stored(url):
    with psycopg.connect(url) as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


def test_without_a_fault_everything_passes(proxy, connection):
    text = "x" * 1_000_000
    assert connection.execute("SELECT %s::text", [text]).fetchone() == (text,)
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s)", [(x,) for x in range(100)])
    connection.commit()
    assert stored(proxy.url) == list(range(100))


def test_cut_resets_open_connections_only(proxy, connection):
    connection.execute("INSERT INTO t VALUES (1)")
    proxy.cut()
    with pytest.raises(LOST):
        connection.execute("SELECT 1")
    assert stored(proxy.url) == []


def test_an_outage_lasts_until_listen(proxy, connection):
    proxy.refuse()
    with pytest.raises(LOST):
        connection.execute("SELECT 1")
    with pytest.raises(LOST, match="refused"):
        psycopg.connect(proxy.url)
    proxy.listen()
    assert stored(proxy.url) == []


def test_a_stall_keeps_bytes_and_connections(proxy, connection, postgres_url):
    proxy.stall()
    answers = []
    asks = threading.Thread(
        target=lambda: answers.append(connection.execute("INSERT INTO t VALUES (1) RETURNING x").fetchone())
    )
    asks.start()
    asks.join(0.2)
    assert answers == []
    active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'"
    with psycopg.connect(postgres_url) as direct:
        assert direct.execute(active).fetchone() == (1,)  # the server has heard nothing
    proxy.resume()
    asks.join(30)
    assert answers == [(1,)]


def test_a_delay_holds_up_chunks(proxy, connection, monkeypatch):
    slept = []
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: (slept.append(seconds), sleep(seconds))[1])
    connection.execute("SELECT 1")
    assert slept == []
    proxy.delay(0.01)
    connection.execute("SELECT 1")
    assert slept == [0.01, 0.01]  # the query and its answer
    proxy.delay(0)
    connection.execute("SELECT 1")
    assert slept == [0.01, 0.01]


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_connection_is_lost_in_commit(proxy, connection, after, pipeline):
    happened = (proxy.lose_after if after else proxy.lose_before)(b"COMMIT")
    connection.execute("INSERT INTO t VALUES (1)")
    assert not happened.is_set()
    with pytest.raises(LOST):
        (commit_in_a_pipeline if pipeline else psycopg.Connection.commit)(connection)
    assert happened.wait(30)
    assert stored(proxy.url) == (([1, 2, 3] if pipeline else [1]) if after else [])
    with psycopg.connect(proxy.url) as again:  # it happens once
        again.execute("INSERT INTO t VALUES (4)")
        again.commit()


def commit_in_a_pipeline(connection):
    with connection.pipeline() as pipe:
        connection.execute("INSERT INTO t VALUES (2)")
        pipe.sync()  # the server answers this before it has the COMMIT
        connection.execute("INSERT INTO t VALUES (3)")
        connection.commit()


def test_a_marker_may_be_a_function_and_a_long_message(proxy, connection):
    happened = proxy.lose_before(lambda message: message.endswith(b"z" * 10 + b"';\0"))
    connection.execute(b"SELECT '" + b"y" * 300_000 + b"';", prepare=False, binary=False)
    assert not happened.is_set()
    with pytest.raises(LOST):
        psycopg.ClientCursor(connection).execute(b"SELECT '" + b"z" * 300_000 + b"';")
    assert happened.is_set()


def test_a_server_that_is_down_resets_new_connections():
    with TcpProxy("postgresql://postgres@127.0.0.1:1/postgres") as proxy, pytest.raises(LOST):
        psycopg.connect(proxy.url)
