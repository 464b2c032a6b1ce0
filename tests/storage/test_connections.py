"""Connections to PostgreSQL that fail in the middle."""

import sys
import threading
import time

import psycopg
import pytest

from helpers.tcp_proxy import TcpProxy
from robandit.errors import StoreUnavailable
from robandit.storage import connections
from robandit.storage.base import Create, Event
from robandit.storage.postgres import PostgresStore


def test_a_connection_with_an_error_is_not_used_again(postgres_url, monkeypatch):
    """psycopg prepares statements that are used often, but forgets that PostgreSQL drops them if one before them fails."""
    monkeypatch.setitem(connections._LIMITS, "lock_timeout", "'10ms'")
    store = PostgresStore(postgres_url)
    for used in range(8):
        for _ in range(used):
            store.tail(1, 0)
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE robandit.experiment")
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                store.tail(1, 0)
        for _ in range(8):
            assert store.tail(1, 0) == (None, [])
        store.close()
        store = PostgresStore(postgres_url)
    store.close()


def test_a_network_that_swallows_the_first_statement(postgres_url, monkeypatch):
    """A thread that has just connected does not wait for ever."""
    monkeypatch.setattr(connections, "STUCK", 0.0)
    stalled, errors = threading.Event(), []
    with TcpProxy(postgres_url) as proxy:

        def stall(message):
            if b"lock_timeout" in message:
                proxy.stall()
                stalled.set()
            return False

        proxy.lose_before(stall)
        pool = connections.Connections(proxy.url)

        def connect():
            try:
                pool.run(lambda db: db.execute("SELECT 1"))
            except StoreUnavailable as error:
                errors.append(error)

        thread = threading.Thread(target=connect)
        thread.start()
        assert stalled.wait(60)
        until = time.monotonic() + 60
        while thread.is_alive() and time.monotonic() < until:
            pool.abort_stuck()
            thread.join(0.01)
        assert len(errors) == 1
        pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="PostgreSQL's tcp_user_timeout needs Linux")
def test_a_client_that_stops_reading_loses_its_turn(postgres_url, monkeypatch):
    """PostgreSQL is not idle while it sends an answer, and no limit of statements ends it then."""
    assert "tcp_user_timeout" in connections._LIMITS
    monkeypatch.setitem(connections._LIMITS, "tcp_user_timeout", "'0.5s'")
    monkeypatch.setitem(connections._LIMITS, "lock_timeout", "'60s'")
    monkeypatch.setitem(connections._LIMITS, "statement_timeout", "'60s'")
    store = PostgresStore(postgres_url)
    store.commit([Event(1, 1, "created", "1", b"{}", 1.0)], [Create(1, "x", b"{}")])
    pool = connections.Connections(postgres_url)
    stopped, _ = pool.begin(lambda db: db.execute("SELECT 1"))
    long = "SELECT repeat('x', 1000) FROM generate_series(1, 100000)"
    stopped.pgconn.send_query(f"BEGIN; SELECT FROM experiment WHERE number = 1 FOR UPDATE; {long}".encode())
    with psycopg.connect(postgres_url, autocommit=True) as other:
        sending = "SELECT FROM pg_stat_activity WHERE wait_event = 'ClientWrite' AND datname = current_database()"
        until = time.monotonic() + 60
        while not other.execute(sending).fetchall():
            assert time.monotonic() < until
    turn = store.turn(1, 0, [])
    assert turn.found[1].head == 1
    turn.cancel()
    stopped.close()
    pool.close()
    store.close()
