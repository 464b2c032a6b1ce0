"""Two servers on one database: keys, sessions and pages are the same on both, and a server without its database says so."""

import json
import time
from contextlib import ExitStack
from urllib.parse import quote

import pytest

from helpers.serving import Local, Server
from helpers.tcp_proxy import TcpProxy
from helpers.visiting import Person
from robandit.client import Client
from robandit.decisions import replica
from robandit.storage import open_store

P = "/v1/experiments/e"
SETTINGS = {"arms": ["a", "b", "c"], "seed": 1}


def started(stack, url, **options):
    return stack.enter_context(Local(None, store=open_store(url, durability="off"), **options))


@pytest.fixture
def both(postgres_url):
    with ExitStack() as stack:
        yield [started(stack, postgres_url, authenticate=True) for _ in range(2)]


@pytest.fixture
def without_pulses(monkeypatch):
    monkeypatch.setattr(replica, "PULSE", 1e6)


# --- keys and sessions ----------------------------------------------------------------------------------------------------


def test_a_key_of_one_server_opens_the_other(both, without_pulses):
    one, two = both
    assert two.call("PUT", P, SETTINGS, key=one.admin).status == 201
    made = one.call("POST", "/v1/keys", {"scopes": ["decide"]}).json
    assert two.call("POST", f"{P}/decisions", key=made["key"]).status == 200
    assert two.call("GET", P, key=made["key"]).status == 403
    assert two.call("GET", P, key="rb_000000000000_x").status == 401
    assert {key["id"] for key in two.call("GET", "/v1/keys").json["keys"]} >= {made["id"]}


def test_a_revoked_key_is_refused_by_the_other_server_within_a_pulse(both):
    one, two = both
    one.call("PUT", P, SETTINGS)
    made = one.call("POST", "/v1/keys", {"scopes": ["read"]}).json
    assert two.call("GET", f"{P}/log", key=made["key"]).status == 200
    assert two.call("DELETE", f"/v1/keys/{made['id']}").status == 200
    assert two.call("GET", f"{P}/log", key=made["key"]).status == 401
    end = time.monotonic() + 20.0
    while one.call("GET", f"{P}/log", key=made["key"]).status != 401:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_person_is_logged_in_to_both(both, without_pulses):
    one, two = both
    person = Person(one)
    assert person.log_in(one.admin).status == 303
    form = {"name": "e", "arms": "a\nb"}
    assert person.send("/new", "/new", form).headers["location"] == "/experiments/e"
    person.local = two
    assert "b" in person.get("/experiments/e").body.decode()
    token = person.token("/experiments/e")
    person.local = one
    change = {"action": "add-arm", "arm": "another-one", "token": token}
    assert person.ask("POST", "/experiments/e/change", change).status == 303
    person.local = two
    assert "another-one" in person.get("/experiments/e").body.decode()
    assert "/experiments/e" in person.get("/").body.decode()
    ended = person.cookie
    person.send("/", "/logout", {})
    person.cookie = ended
    assert person.get("/").status == 303


def test_logging_out_on_one_server_ends_the_session_on_the_other(both):
    one, two = both
    person = Person(one)
    person.log_in(one.admin)
    person.local = two
    assert person.get("/").status == 200
    cookie = person.cookie
    person.send("/", "/logout", {})
    person.local, person.cookie = one, cookie
    end = time.monotonic() + 20.0
    while person.get("/").status == 200:
        person.cookie = cookie
        assert time.monotonic() < end
        time.sleep(0.05)


# --- a server without its database ----------------------------------------------------------------------------------------


@pytest.fixture
def away(postgres_url):
    """A server whose database can be taken away, and another one that keeps it."""
    with TcpProxy(postgres_url) as proxy, ExitStack() as stack:
        local, other = started(stack, proxy.url), started(stack, postgres_url)
        local.call("PUT", P, SETTINGS | {"fallback": "b"})
        local.call("PUT", f"{P}2", SETTINGS)
        yield local, other, proxy


def wait_for(local, status):
    end = time.monotonic() + 30.0
    while local.call("GET", "/readyz").status != status:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_is_not_ready_and_says_503(away):
    local, other, proxy = away
    decided = local.call("POST", f"{P}2/decisions", {"id": "x"}).json
    proxy.refuse()
    wait_for(local, 503)
    assert local.call("GET", "/readyz").json["status"] == "the store cannot be reached"
    assert local.call("GET", "/healthz").status == 200
    calls = [
        ("POST", f"{P}2/decisions", {"id": "x"}),
        ("POST", f"{P}2/decisions/batch", {"items": [{}]}),
        ("POST", f"{P}2/rewards", {"id": "x", "value": 1.0}),
        ("GET", f"{P}2", None),
        ("GET", f"{P}2/log", None),
        ("GET", f"{P}2/decisions/x", None),
        ("PUT", f"{P}3", SETTINGS),
        ("DELETE", P, None),
        ("POST", f"{P}/pause", None),
        ("GET", "/v1/experiments", None),
        ("GET", "/v1/audit", None),
        ("POST", "/v1/keys", {"scopes": ["read"]}),
    ]
    for method, path, body in calls:
        answer = local.call(method, path, body)
        assert (answer.status, answer.json["code"]) == (503, "unavailable"), (method, path)
        assert answer.headers["retry-after"] == "1"
        assert "127.0.0.1" not in answer.body.decode()
    assert local.call("GET", "/experiments/e").status == 503
    assert b"robandit_store_up{} 0\n" in local.call("GET", "/metrics").body
    proxy.listen()
    wait_for(local, 200)
    assert local.call("POST", f"{P}2/decisions", {"id": "x"}).json == decided
    assert b"robandit_store_up{} 1\n" in local.call("GET", "/metrics").body
    assert not local.failures
    assert other.call("GET", f"{P}2").json["counts"]["decisions"] == 1


def test_a_fallback_is_marked_and_not_learned(away):
    local, other, proxy = away
    before = other.call("GET", P).json
    proxy.refuse()
    wait_for(local, 503)
    named = local.call("POST", f"{P}/decisions", {"id": "mine", "context": {"user": 1}})
    assert named.status == 200
    assert {**named.json, "time": 0, "id": ""} == {
        "id": "", "experiment": "e", "arm": "b", "propensity": None, "time": 0, "seq": 0, "fallback": True,
    }  # fmt: skip
    # The id of the request may be stored with another arm, so each fallback has a new one.
    ids = [named.json["id"], *(local.call("POST", f"{P}/decisions", {"id": "mine"}).json["id"] for _ in range(2))]
    assert len(set(ids)) == 3
    assert all(id.startswith("fallback-") for id in ids)
    batch = local.call("POST", f"{P}/decisions/batch", {"items": [{"id": "z"}, {"id": 5}, {}]}).json["items"]
    assert [(item["status"], (item["decision"] or {}).get("fallback")) for item in batch] == [
        (200, True), (422, None), (200, True),
    ]  # fmt: skip
    # It is not for an arm that the caller excludes, nor for a choice that was made elsewhere, nor for rewards.
    assert local.call("POST", f"{P}/decisions", {"among": ["a", "c"]}).status == 503
    assert local.call("POST", f"{P}/decisions", {"among": ["a", "b"]}).json["arm"] == "b"
    assert local.call("POST", f"{P}/decisions", {"arm": "b"}).status == 503
    assert local.call("POST", f"{P}/decisions/batch", {"items": [{}, {"among": ["a"]}]}).status == 503
    assert local.call("POST", f"{P}/rewards", {"id": "mine", "value": 1.0}).status == 503
    text = local.call("GET", "/metrics").body.decode()
    assert 'robandit_fallbacks_total{experiment="e"} 6\n' in text
    proxy.listen()
    wait_for(local, 200)
    assert local.call("GET", P).json == before
    for id in ("mine", *ids):
        assert local.call("POST", f"{P}/rewards", {"id": id, "value": 1.0}).status == 404
    made = local.call("POST", f"{P}/decisions", {"id": "mine"})
    assert (made.json["seq"], made.replayed, "fallback" in made.json) == (2, False, False)


def test_a_paused_experiment_or_arm_has_no_fallback(away):
    local, _, proxy = away
    local.call("PATCH", f"{P}/arms/b", {"state": "paused"})
    local.call("PUT", f"{P}3", SETTINGS | {"fallback": "a"})
    local.call("POST", f"{P}3/pause")
    proxy.refuse()
    wait_for(local, 503)
    assert local.call("POST", f"{P}/decisions").status == 503
    assert local.call("POST", f"{P}3/decisions").status == 503


@pytest.mark.parametrize("id", ["\0", "\ud800", "x" * 300, "\x1f", "a'b\\", "é", ""])
def test_odd_ids_are_refused_and_hinder_nobody(both, id):
    local, _ = both
    local.call("PUT", P, SETTINGS)
    assert local.call("POST", f"{P}/rewards", {"id": id, "value": 1.0}).status in (400, 404, 422)
    assert local.call("POST", f"{P}/decisions", {"id": id}).status in (200, 400, 422)
    quoted = quote(id.encode("utf-8", "surrogatepass"), safe="") or "%20"
    assert local.call("GET", f"{P}/decisions/{quoted}").status in (200, 400, 404)
    assert local.call("GET", f"/v1/experiments/{quoted}").status in (400, 404)
    assert local.call("PUT", f"/v1/experiments/{quoted}", SETTINGS).status in (400, 422)
    items = [{"id": id, "value": 1.0}, {"id": "never made", "value": 1.0}]
    assert local.call("POST", f"{P}/rewards/batch", {"items": items}).status in (200, 400, 422)
    assert local.call("POST", f"{P}/decisions", {"id": "fine", "context": {"odd": "\0 \x1f"}}).status == 200
    assert not local.failures


def test_a_fallback_must_be_an_arm(both):
    answer = both[0].call("PUT", P, SETTINGS | {"fallback": "z"})
    assert (answer.status, answer.json["parameter"], answer.json["rule"]) == (422, "fallback", "one of the arms")


# --- the command ----------------------------------------------------------------------------------------------------------


def test_the_command_with_a_database(postgres_url):
    """Two servers: one prints the admin key; the password is not printed; both stop in order."""
    url = postgres_url.replace("postgres@", "postgres:sesame@")
    with (
        Server(None, "--store", url, authenticate=True) as one,
        Server(None, env={"ROBANDIT_STORE": url}, authenticate=True) as two,
    ):
        assert one.key
        assert not two.key
        assert two.call("PUT", P, SETTINGS, key=one.key).status == 201
        assert one.call("POST", f"{P}/decisions").status == 200
        assert json.loads(two.call("GET", P, key=one.key).body)["counts"]["decisions"] == 1
        for server in (one, two):
            code, out, err = server.stop()
            assert (code, out.strip()) == (0, "stopped; everything is stored")
            assert "sesame" not in server.announced + err
            assert "postgresql://127.0.0.1" in server.announced


def test_a_client_reports_a_fallback_when_the_database_is_back(postgres_url):
    with TcpProxy(postgres_url) as proxy, Server(None, "--store", proxy.url) as server:
        server.call("PUT", P, SETTINGS | {"fallback": "b"})
        with Client(server.url) as client:
            experiment = client.experiment("e")
            proxy.refuse()
            wait_for(server, 503)
            decision = experiment.decide(id="mine")
            many = experiment.decide_many(2)
            assert [(each.arm, each.fallback, each.seq) for each in (decision, *many)] == [("b", True, None)] * 3
            assert experiment.reward(decision.id, 4.0).outcome == "kept"
            proxy.listen()
            wait_for(server, 200)
        shown = server.call("GET", f"{P}/decisions/{decision.id}").json  # the client is closed: all is delivered
        assert (shown["observed"], shown["arm"], shown["reward"]["value"]) == (True, "b", 4.0)
        assert server.call("GET", P).json["counts"] == {
            "decisions": 3,
            "rewards": 1,
            "late": 0,
            "expired": 0,
            "open": 2,
        }


def test_an_unknown_key_is_refused_at_once_while_the_database_is_away(postgres_url):
    with TcpProxy(postgres_url) as proxy, ExitStack() as stack:
        local = started(stack, proxy.url, authenticate=True)
        local.call("PUT", P, SETTINGS | {"fallback": "b"})
        proxy.refuse()
        wait_for(local, 503)
        assert local.call("POST", f"{P}/decisions", key="rb_000000000000_x").status == 401
        assert local.call("POST", f"{P}/decisions").json["fallback"]
