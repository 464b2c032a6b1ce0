"""Connections to PostgreSQL that fail in the middle."""

import threading
import time

import psycopg
import pytest

from helpers.tcp_proxy import TcpProxy
from robandit.errors import StoreUnavailable
from robandit.storage import connections
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
