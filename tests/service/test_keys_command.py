"""`robandit keys`, on the file of a stopped server and against a running one, and how a server starts with and without keys."""

import contextlib
import re
import socket
import time

import pytest

from helpers.invalid import raises
from helpers.serving import Local, Server
from robandit import cli
from robandit.errors import InvalidInput, NotFound, RobanditError, StoreError
from robandit.service.access import is_loopback, made_key
from robandit.storage import open_store
from robandit.storage.base import PutKey
from robandit.storage.sqlite import SqliteReader


@pytest.fixture
def typed(capsys):
    """Run a command in this process, and return what it prints."""

    def run(*words):
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            cli.application()(list(words), exit_on_error=False, print_error=False)
        return capsys.readouterr().out

    return run


@pytest.fixture
def store(tmp_path):
    """The location of a store that no server uses."""
    path = tmp_path / "robandit.db"
    open_store(f"sqlite:{path}", durability="off").close()
    return f"sqlite:{path}"


def stored_keys(store):
    reader = SqliteReader(store.removeprefix("sqlite:"))
    try:
        return reader.keys(), reader.audit()
    finally:
        reader.close()


def test_keys_in_a_file(typed, store):
    assert typed("keys", "list", "--store", store) == "no keys\n"
    words = ("--scope", "decide", "--scope", "reward", "--experiment", "p", "--days", "2", "--note", "checkout")
    printed = typed("keys", "create", *words, "--store", store)
    id, key = re.fullmatch(r"key (\w{12}), shown only once: (rb_\S+)\n", printed).groups()
    [stored], [entry] = stored_keys(store)
    assert key.startswith(f"rb_{id}_")
    assert (stored.id, stored.scopes, stored.experiments, stored.note) == (id, ("decide", "reward"), ("p",), "checkout")
    assert stored.expires - stored.created == 2 * 86_400.0
    assert abs(stored.created - time.time()) < 60.0
    assert (entry.key, entry.action, entry.subject) == ("(command line)", "create key", id)
    listed = typed("keys", "list", "--store", store)
    assert listed.startswith(f"{id}  valid    decide+reward  p  made ")
    assert "until" in listed
    assert "checkout" in listed
    assert key.split("_", 2)[2] not in listed
    path = store.removeprefix("sqlite:")
    with Local(path) as local:
        local.service._authenticate = True
        assert local.call("POST", "/v1/experiments/p/decisions", key=key).status == 404
        assert local.call("GET", "/v1/experiments/p", key=key).status == 403
    assert typed("keys", "revoke", id, "--store", store) == f"revoked: {id}\n"
    assert f"{id}  revoked  decide+reward" in typed("keys", "list", "--store", store)
    (_, entry) = stored_keys(store)[1]
    assert (entry.key, entry.action, entry.subject) == ("(command line)", "revoke key", id)
    with Local(path) as local:
        local.service._authenticate = True
        assert local.call("POST", "/v1/experiments/p/decisions", key=key).status == 401


def test_an_expired_key_is_listed_as_such(typed, store):
    opened = open_store(store)
    _, stored = made_key(["read"], now=time.time() - 10.0, expires_in=5.0)
    opened.commit((), (PutKey(stored),))
    opened.close()
    assert f"{stored.id}  expired  read  all experiments" in typed("keys", "list", "--store", store)


@pytest.mark.parametrize(
    "words",
    [("--scope", "read", "--days", "0"), ("--scope", "read", "--days", "-1"), ("--scope", "read", "--days", "nan"),
     ("--scope", "read", "--days", "inf"), ("--scope", "read", "--experiment", "a b"), ("--scope", "read", "--note", "x" * 201)],
)  # fmt: skip
def test_invalid_keys_are_not_stored(typed, store, words):
    with pytest.raises(InvalidInput):
        typed("keys", "create", *words, "--store", store)
    assert stored_keys(store) == ([], [])


def test_files_that_cannot_be_used(typed, store, tmp_path):
    missing = f"sqlite:{tmp_path / 'missing.db'}"
    for words in (("create", "--scope", "read"), ("list",), ("revoke", "000000000000")):
        with pytest.raises(StoreError, match=r"missing\.db"):
            typed("keys", *words, "--store", missing)
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(NotFound, match="000000000000"):
        typed("keys", "revoke", "000000000000", "--store", store)
    with raises(
        RobanditError, parameter="store", rule="sqlite:PATH, the path of a file, or postgresql://USER@HOST/DATABASE"
    ):
        typed("keys", "list", "--store", "robandit.db")
    with Local(tmp_path / "robandit.db"), raises(StoreError, code="store-in-use"):
        typed("keys", "create", "--scope", "read", "--store", store)


def test_keys_of_a_running_server(typed, tmp_path, monkeypatch):
    path = tmp_path / "robandit.db"
    with Server(path, authenticate=True) as server:
        assert server.key.startswith("rb_")
        with pytest.raises(InvalidInput, match=r"answered 401: .*set ROBANDIT_KEY to an admin key"):
            typed("keys", "list", "--url", server.url)
        monkeypatch.setenv("ROBANDIT_KEY", server.key)
        printed = typed(
            "keys", "create", "--scope", "read", "--days", "1", "--note", "grafana", "--url", f"{server.url}/"
        )
        id, key = re.fullmatch(r"key (\w{12}), shown only once: (rb_\S+)\n", printed).groups()
        assert server.call("GET", "/metrics", key=key).status == 200
        listed = typed("keys", "list", "--url", server.url)
        assert f"{id}  valid    read  all experiments" in listed
        assert "grafana" in listed
        assert listed == typed(
            "keys", "list", "--store", f"sqlite:{path}"
        )  # reading a file does not disturb its server
        assert typed("keys", "revoke", id, "--url", server.url) == f"revoked: {id}\n"
        assert server.call("GET", "/metrics", key=key).status == 401  # at once
        with pytest.raises(InvalidInput, match="answered 404: there is no key"):
            typed("keys", "revoke", "a/b", "--url", server.url)
        with pytest.raises(InvalidInput, match="answered 422"):
            typed("keys", "create", "--scope", "read", "--days", "-1", "--url", server.url)
        monkeypatch.setenv("ROBANDIT_KEY", key)
        with pytest.raises(InvalidInput, match="answered 401"):
            typed("keys", "list", "--url", server.url)
        actions = [(each["action"], each["subject"]) for each in server.call("GET", "/v1/audit").json["entries"]]
        assert actions == [("create key", server.key.split("_")[1]), ("create key", id), ("revoke key", id)]
    with pytest.raises(InvalidInput, match=r"cannot be reached: .*is the server running"):
        typed("keys", "list", "--url", server.url)
    with pytest.raises(InvalidInput, match="must begin with http"):
        typed("keys", "list", "--url", "127.0.0.1:8000")
    with Server(path, authenticate=True) as server:
        assert server.key == ""  # the admin key is made and printed only once


def test_a_port_is_an_integer_up_to_65535(typed, tmp_path):
    with raises(InvalidInput, parameter="--port", rule="an integer from 0 to 65535"):
        typed("serve", "--port", "99999", "--store", f"sqlite:{tmp_path}/r.db")


def test_no_auth_is_for_this_machine_only(typed, tmp_path):
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(InvalidInput, match=f"--no-auth is allowed on loopback addresses only, not on {host}"):
            typed("serve", "--no-auth", "--host", host, "--port", "0", "--store", f"sqlite:{tmp_path}/r.db")
    assert list(tmp_path.iterdir()) == []
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "localhost", "::1"))


def test_a_used_port_is_named(typed, store):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"127.0.0.1:{port} cannot be used: .*choose another --port"):
            typed("serve", "--port", str(port), "--store", store)


def test_other_loopback_addresses_answer(tmp_path):
    """--no-auth accepts every address of this machine, so calls to each must get through the check of the host."""
    with Local(tmp_path / "robandit.db") as local:
        for host in ("127.0.0.2:8000", "127.255.0.1", "[::1]", "localhost"):
            assert local.call("GET", "/v1/experiments", headers={"host": host}).status == 200
        for host in ("127.0.0.1.example.org", "127.1", "1270.0.0.1", "[::2]", "::1.example.org"):
            assert local.call("GET", "/v1/experiments", headers={"host": host}).status == 403
