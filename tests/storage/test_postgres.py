"""The contract with PostgreSQL, and what only PostgreSQL has: its addresses, errors and settings."""

import shutil
import socket
import ssl
import subprocess
import threading
import uuid
from contextlib import suppress
from urllib.parse import urlsplit

import psycopg
import pytest

from helpers.invalid import raises
from helpers.ports import free_port
from helpers.stores import event, everything, key, opened
from robandit.errors import CorruptFile, InvalidInput, StoreError, StoreUnavailable
from robandit.storage import connections, open_store
from robandit.storage.base import Create, PutKey, Snapshot
from robandit.storage.locations import back_up, without_password
from storage.contract import SharedContract


class TestPostgres(SharedContract):
    @pytest.fixture
    def location(self, postgres_url):
        return postgres_url

    def make_newer(self, location):
        with psycopg.connect(location) as db:
            db.execute("UPDATE robandit.store SET version = version + 1")

    def damage(self, location):
        with psycopg.connect(location) as db:
            db.execute("DROP TABLE robandit.snapshot")

    def test_who_comes_while_a_store_is_frozen_can_read_but_not_write(self, filled, location, monkeypatch):
        monkeypatch.setitem(connections._LIMITS, "lock_timeout", "'0.2s'")
        with filled.frozen() as reader, opened(location) as late:
            assert late.tail(1, 0) == (2, [event(1), event(2)])
            for attempt in (
                lambda: late.turn(1, 2, []).commit([event(3)], ()),
                lambda: late.commit((), [Create(3, "three", b"{}")]),
                lambda: late.commit((), [PutKey(key("new"))]),
                lambda: late.commit((), [Snapshot(1, 2, b"new")]),
            ):
                with pytest.raises(StoreUnavailable, match="lock timeout"):
                    attempt()
            assert reader.events(1) == [event(1), event(2)]
        filled.commit([event(3)], ())


# --- addresses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["postgresql://[", "postgresql://host/db?unknown=1", "postgres://h/%zz"])
def test_invalid_addresses_are_refused_with_the_rule(location):
    with raises(InvalidInput, parameter="store", rule="or postgresql://USER@HOST/DATABASE"):
        open_store(location)


def test_passwords_are_not_shown(postgres):
    url = postgres.url("absent").replace("postgres@", "postgres:sesame@")
    with pytest.raises(StoreUnavailable, match=r'cannot be used now: .*database "absent" does not exist') as caught:
        open_store(url)
    assert "sesame" not in str(caught.value)
    assert "sesame" not in without_password(url)
    assert without_password("postgresql://ada:sesame@[") == "postgresql://..."
    with pytest.raises(InvalidInput) as caught:
        open_store("postgresql://ada:sesame@host/db?unknown=1")
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "location",
    ["postgresql://ada:open@sesame@127.0.0.1/x", "postgresql+psycopg://ada:sesame@db.example.org/x",
     "POSTGRESQL://ada:sesame@db.example.org/x", "host=127.0.0.1 password=sesame"],
)  # fmt: skip
def test_passwords_of_wrong_locations_are_not_shown(location):
    with raises(
        InvalidInput, parameter="store", rule="sqlite:PATH, the path of a file, or postgresql://USER@HOST/DATABASE"
    ) as caught:
        open_store(location)
    assert "sesame" not in str(caught.value)


def test_nobody_listens():
    with pytest.raises(StoreUnavailable, match="that it is running"):
        open_store(f"postgresql://postgres@127.0.0.1:{free_port()}/x")


def test_a_refused_connection_names_the_reason_and_the_way_out():
    reason = (
        'connection to server at "10.0.0.9", port 5432 failed: FATAL:  password authentication failed for user "ada"'
    )
    failure = connections.Connections("postgresql://ada@10.0.0.9/x").failure(psycopg.OperationalError(reason))
    assert isinstance(failure, StoreUnavailable)
    assert f"{reason}; check its address, user and password" in str(failure)


def test_a_database_is_filled_only_if_that_is_wanted(postgres_url):
    with pytest.raises(StoreError, match="has no data of Robandit: name the database of a server"):
        open_store(postgres_url, create=False)
    open_store(postgres_url).close()
    open_store(postgres_url, create=False).close()


def test_backups_are_made_by_other_tools(postgres_url, tmp_path):
    with pytest.raises(StoreError, match="use pg_dump"):
        back_up(postgres_url, tmp_path / "copy.db")


# --- databases that will not do ---------------------------------------------------------------------------------------------


def test_an_encoding_that_cannot_hold_all_texts(postgres, postgres_url):
    name = f"latin_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match="has the encoding LATIN1: create the database with ENCODING 'UTF8'"):
            open_store(postgres.url(name))
    finally:
        postgres.drop_database(postgres.url(name))


def test_an_old_server(postgres_url, monkeypatch):
    monkeypatch.setattr("robandit.storage.postgres.OLDEST_SERVER", 990_000)
    with pytest.raises(StoreError, match=r"is PostgreSQL \d+: Robandit needs 99 or newer"):
        open_store(postgres_url)


def test_a_user_without_rights(postgres, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    weak = postgres_url.replace("postgres@", "reader@")
    with pytest.raises(StoreError, match=r"permission denied .*; grant the user CREATE on the database"):
        open_store(weak)


def test_a_server_that_does_not_flush_is_named(postgres_url):
    with opened(postgres_url) as store, psycopg.connect(postgres_url) as db:
        off = db.execute("SHOW fsync").fetchone() == ("off",)
        assert any("has fsync = off: a crash of its machine may lose" in warning for warning in store.warnings) == off
    with opened(postgres_url, durability="relaxed") as store:
        assert store.warnings == []


def test_another_programs_schema(postgres_url):
    with psycopg.connect(postgres_url) as db:
        db.execute("CREATE SCHEMA robandit; CREATE TABLE robandit.store(x int)")
    with pytest.raises(CorruptFile, match="not a database of Robandit: the schema robandit lacks"):
        open_store(postgres_url)


# --- connections ------------------------------------------------------------------------------------------------------------


def test_durability_is_a_setting_of_the_session(postgres_url):
    for durability, expected in (("full", "on"), ("relaxed", "off")):
        with opened(postgres_url, durability=durability) as store:
            settings = store._connections.run(
                lambda db: db.execute(
                    "SELECT current_setting('synchronous_commit'), current_setting('lock_timeout')"
                ).fetchall()
            )
            assert settings == [(expected, "5s")]


def test_broken_connections_are_replaced(postgres_url):
    with opened(postgres_url, durability="off") as store:
        store.commit((), [Create(1, "one", b"{}")])
        for call in (lambda: store.pulse(), lambda: store.turn(1, 0, []).cancel(), lambda: store.commit((), [])):
            with psycopg.connect(postgres_url, autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'robandit'")
            call()


def test_a_lock_is_not_awaited_for_ever(postgres_url, monkeypatch):
    monkeypatch.setitem(connections._LIMITS, "lock_timeout", "'0.2s'")
    with opened(postgres_url, durability="off") as store:
        store.commit((), [Create(1, "one", b"{}")])
        turn = store.turn(1, 0, [])
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            store.turn(1, 0, [])
        turn.commit([event(1)], ())
        store.turn(1, 0, []).cancel()


class TlsProxy:
    """Speaks TLS with a client of PostgreSQL, and passes all on to a server without it. One connection at a time."""

    def __init__(self, port, folder):
        key, self.certificate = folder / "key.pem", folder / "certificate.pem"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", key, "-out", self.certificate, "-days", "2", "-subj", "/CN=localhost"]
        subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.secured = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        with suppress(OSError), plain, socket.create_connection(("127.0.0.1", self._target)) as server:
            assert plain.recv(8)[4:] == (80877103).to_bytes(4, "big")  # asks for TLS
            plain.sendall(b"S")
            with self._context.wrap_socket(plain, server_side=True) as client:
                self.secured += 1
                answers = threading.Thread(target=self._pass, args=(server, client), daemon=True)
                answers.start()
                self._pass(client, server)

    def _pass(self, source, target):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def close(self):
        self._listener.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls_is_checked(postgres_url, tmp_path):
    parts = urlsplit(postgres_url)
    proxy = TlsProxy(parts.port, tmp_path)
    try:
        address = (
            parts._replace(netloc=f"postgres@localhost:{proxy.port}").geturl()
            + "?hostaddr=127.0.0.1&sslmode=verify-full"
        )
        with opened(f"{address}&sslrootcert={proxy.certificate}") as store:
            store.commit((), [Create(1, "one", b"{}")])
            assert everything(store)["experiments"][0].name == "one"
        assert proxy.secured > 0
        with pytest.raises(StoreUnavailable, match="certificate"):
            open_store(f"{address}&sslrootcert=system")
        with pytest.raises(StoreUnavailable, match="does not support SSL"):
            open_store(f"{postgres_url}?sslmode=require")
    finally:
        proxy.close()
