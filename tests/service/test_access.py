"""Guarantee 11: who may call what. Every route x every key, what is stored of a key, and calls from other sites."""

import asyncio
import base64
import itertools
import re
import time
from unittest import mock

import pytest

from helpers.serving import Clock, Local
from helpers.wrapped_stores import WrappedStore
from robandit.service import access
from robandit.service.access import made_key
from robandit.service.application import DOCUMENTS
from robandit.service.routes import ROUTES
from robandit.storage.base import PutKey

# Written by hand: the scope that each call needs, None if it needs no key. A new route fails until it is here.
EXPECTED = {
    "PUT /v1/experiments/{name}": "admin",
    "GET /v1/experiments": "read",
    "GET /v1/experiments/{name}": "read",
    "DELETE /v1/experiments/{name}": "admin",
    "POST /v1/experiments/{name}/decisions": "decide",
    "POST /v1/experiments/{name}/decisions/batch": "decide",
    "GET /v1/experiments/{name}/decisions/{id}": "read",
    "POST /v1/experiments/{name}/rewards": "reward",
    "POST /v1/experiments/{name}/rewards/batch": "reward",
    "POST /v1/experiments/{name}/failures": "reward",
    "POST /v1/experiments/{name}/failures/batch": "reward",
    "GET /v1/experiments/{name}/standing": "read",
    "GET /v1/experiments/{name}/allocation": "decide",
    "POST /v1/experiments/{name}/observations/batch": "reward",
    "POST /v1/experiments/{name}/arms": "admin",
    "PATCH /v1/experiments/{name}/arms/{arm}": "admin",
    "POST /v1/experiments/{name}/pause": "admin",
    "POST /v1/experiments/{name}/resume": "admin",
    "POST /v1/experiments/{name}/reset": "admin",
    "GET /v1/experiments/{name}/log": "read",
    "GET /v1/keys": "admin",
    "POST /v1/keys": "admin",
    "DELETE /v1/keys/{id}": "admin",
    "GET /v1/audit": "admin",
    "GET /metrics": "read",
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /openapi.json": None,
    "GET /docs": None,
}
SCOPES = ("decide", "reward", "read", "admin")
INVALID = ("none", "wrong secret", "wrong id", "expired", "revoked")
CALLERS = (*INVALID, *(f"{scope}, {limit}" for limit in ("all", "mine", "other") for scope in SCOPES))
SETTINGS = {"arms": ["a", "b"], "minimize": True, "deadline": 86_400.0}
OBSERVATION = {"id": "edge0001-0", "arm": "a", "propensity": 0.5, "allocation": "none", "decided": 0.0, "value": 1.0}
_arms = itertools.count()


def bodies():
    """The valid body of each call that has one."""
    return {
        "PUT /v1/experiments/{name}": SETTINGS,
        "POST /v1/experiments/{name}/decisions": {"arm": "a"},
        "POST /v1/experiments/{name}/decisions/batch": {"items": [{"arm": "a"}]},
        "POST /v1/experiments/{name}/rewards": {"id": "known", "value": 1.5},
        "POST /v1/experiments/{name}/rewards/batch": {"items": [{"id": "known", "value": 1.5}]},
        "POST /v1/experiments/{name}/failures": {"id": "failing"},
        "POST /v1/experiments/{name}/failures/batch": {"items": [{"id": "failing"}]},
        "POST /v1/experiments/{name}/observations/batch": {"items": [OBSERVATION]},
        "POST /v1/experiments/{name}/arms": {"arm": f"new {next(_arms)}"},
        "PATCH /v1/experiments/{name}/arms/{arm}": {"state": "active"},
        "POST /v1/keys": {"scopes": ["read"], "experiments": ["other"]},
    }


def is_allowed(call, caller):
    scope = EXPECTED[call]
    if scope is None:
        return True
    if caller in INVALID:
        return False
    owned, limit = caller.split(", ")
    if owned not in (scope, "admin"):
        return False
    # The list of experiments is open to limited keys: it shows what they may read.
    return limit == "all" or (limit == "mine" and "{name}" in call) or call == "GET /v1/experiments"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service with a key of each kind."""
    with Local(tmp_path_factory.mktemp("access") / "robandit.db", authenticate=True) as local:
        keys = {"none": ""}
        now = time.time()
        for limit, scope in itertools.product(("all", "mine", "other"), SCOPES):
            limited = None if limit == "all" else [limit]
            keys[f"{scope}, {limit}"], stored = made_key([scope], now=now, experiments=limited)
            local.service.state.keys.put(stored)
        valid, stored = made_key(["admin"], now=now)
        local.service.state.keys.put(stored)
        other, _ = made_key(["admin"], now=now)
        keys["wrong secret"] = "_".join([*valid.split("_")[:2], other.split("_", 2)[2]])
        keys["wrong id"] = other
        keys["expired"], stored = made_key(["admin"], now=now - 10.0, expires_in=9.0)
        local.service.state.keys.put(stored)
        keys["revoked"], stored = made_key(["admin"], now=now)
        local.service.state.keys.put(stored._replace(revoked=now))
        local.call("PUT", "/v1/experiments/other", SETTINGS)
        yield local, keys


def test_the_table_has_every_route():
    assert sorted(EXPECTED) == sorted(f"{route.method} {route.path}" for route in (*ROUTES, *DOCUMENTS))


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("call", EXPECTED)
def test_matrix(served, call, caller):
    local, keys = served
    local.call("PUT", "/v1/experiments/mine", SETTINGS)
    for id in ("known", "failing"):
        local.call("POST", "/v1/experiments/mine/decisions", {"id": id, "arm": "a"})
    victim = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json["id"]
    method, path = call.split()
    path = path.format(name="mine", arm="a", id=victim if "keys" in path else "known")
    state, engine = local.service.state, local.engine

    def seen():
        states = {each.name: (each.seq, each.number) for each in engine.experiments.values()}
        return states, state.keys.all(), len(engine.reader.audit(0, 10**6))

    before = seen()
    answer = local.call(method, path, bodies().get(call), key=keys[caller])
    if is_allowed(call, caller):
        assert 200 <= answer.status < 300, answer
        assert answer.headers.get("content-type") != "application/problem+json"
        return
    assert seen() == before
    assert answer.headers["content-type"] == "application/problem+json"
    if caller in INVALID:
        codes = {"none": "no-key", "expired": "ended-key", "revoked": "ended-key"}
        assert (answer.status, answer.json["code"]) == (401, codes.get(caller, "unknown-key"))
        assert answer.headers["www-authenticate"] == "Bearer"
    else:
        assert (answer.status, answer.json["code"]) == (403, "forbidden")
    assert keys[caller].encode() not in answer.body or not keys[caller]


@pytest.mark.parametrize("path", ["/v1/experiments/missing", "/v1/experiments/missing/log", "/v1/experiments/%20"])
def test_a_limited_key_cannot_ask_which_experiments_exist(served, path):
    local, keys = served
    assert local.call("GET", path, key=keys["read, mine"]).status == 403
    assert local.call("GET", path, key=keys["read, all"]).status == 404


def test_a_limited_key_lists_its_own_experiments(served):
    local, keys = served
    local.call("PUT", "/v1/experiments/mine", SETTINGS)

    def listed(key):
        return [each["name"] for each in local.call("GET", "/v1/experiments", key=keys[key]).json["experiments"]]

    assert listed("read, all") == listed("admin, all") == ["mine", "other"]
    assert listed("read, mine") == listed("admin, mine") == ["mine"]
    assert listed("read, other") == ["other"]


def test_a_limited_admin_key_makes_no_keys(served):
    local, keys = served
    made = local.call("POST", "/v1/keys", {"scopes": ["admin"]}, key=keys["admin, mine"])
    assert made.status == 403
    assert "all experiments" in made.json["detail"]


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic {key}", "{key}", "Bearer rb__", "Bearer rb_", "Bearer {key}x", "Bearer {key}_",
     "Bearer xx_{key}", "Bearer rb_\xff_\xfe", "Bearer \x00", "Bearer " + "x" * 10_000, "Bearer {upper}"],
)  # fmt: skip
def test_odd_headers_are_refused(served, header):
    local, _ = served
    given = header.format(key=local.admin, upper=local.admin.upper())
    answer = local.call("GET", "/v1/keys", key="", headers={"authorization": given})
    assert (answer.status, answer.json["code"]) == (401, "unknown-key")


def test_the_scheme_ignores_case_and_spaces_around_the_key(served):
    local, _ = served
    for header in (f"bearer {local.admin}", f"BEARER   {local.admin} "):
        assert local.call("GET", "/v1/keys", key="", headers={"authorization": header}).status == 200


# --- keys ---------------------------------------------------------------------------------------------------------------------


def test_a_key_has_256_random_bits():
    made = [made_key(["read"], now=0.0) for _ in range(50)]
    for key, stored in made:
        found = re.fullmatch(r"rb_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", key)
        assert found[1] == stored.id
        assert len(base64.urlsafe_b64decode(found[2] + "=")) == 32
        assert len(stored.hash) == 32
    assert len({key for key, _ in made}) == len({stored.id for _, stored in made}) == 50


def test_only_hashes_are_stored(tmp_path):
    path = tmp_path / "robandit.db"
    with Local(path, authenticate=True) as local:
        made = local.call("POST", "/v1/keys", {"scopes": ["admin"], "note": "to be found"}).json
        files = [each.read_bytes() for each in tmp_path.iterdir()]
        listed = local.call("GET", "/v1/keys").body
        audit = local.call("GET", "/v1/audit").body
    files += [each.read_bytes() for each in tmp_path.iterdir()]
    assert any(b"to be found" in content for content in files)
    for key in (made["key"], local.admin):
        secret = key.split("_", 2)[2].encode()
        raw = base64.urlsafe_b64decode(secret + b"=")
        for content in (*files, listed, audit):
            assert secret not in content
            assert raw not in content
    hash = access._hash(made["key"].split("_", 2)[2])
    assert any(hash in content for content in files)
    assert hash.hex().encode() not in listed


@pytest.mark.parametrize("known", [True, False])
def test_hashes_are_compared_in_constant_time(served, known):
    local, keys = served
    with mock.patch.object(access.hmac, "compare_digest", wraps=access.hmac.compare_digest) as compare:
        local.call("GET", "/v1/keys", key=keys["wrong secret" if known else "wrong id"])
        assert compare.call_count == 1  # also for an id that is not known, so that the time does not tell
        assert [len(each) for each in compare.call_args.args] == [32, 32]
    with mock.patch.object(access.hmac, "compare_digest", return_value=False):
        assert local.call("GET", "/v1/keys").status == 401


def test_a_key_is_created_expires_and_is_revoked(tmp_path):
    clock = Clock()
    path = tmp_path / "robandit.db"
    with Local(path, authenticate=True, clock=clock) as local:
        body = {"scopes": ["read", "decide", "read"], "experiments": ["p", "p"], "expires_in": 60.0, "note": "checkout"}
        made = local.call("POST", "/v1/keys", body)
        assert made.status == 201
        key = made.json.pop("key")
        facts = {name: value for name, value in made.json.items() if name != "key"}
        assert facts == {
            "id": key.split("_")[1],
            "scopes": ["decide", "read"],
            "experiments": ["p"],
            "note": "checkout",
            "created": clock.now,
            "expires": clock.now + 60.0,
            "revoked": None,
        }
        assert facts in local.call("GET", "/v1/keys").json["keys"]
        local.call("PUT", "/v1/experiments/p", SETTINGS)
        assert local.call("GET", "/v1/experiments/p", key=key).status == 200
        clock.now += 59.9
        assert local.call("GET", "/v1/experiments/p", key=key).status == 200
        clock.now += 0.1
        late = local.call("GET", "/v1/experiments/p", key=key)
        assert late.status == 401
        assert "expired" in late.json["detail"]
        lasting = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json
        assert local.call("GET", "/v1/experiments/p", key=lasting["key"]).status == 200
        clock.now += 1.0
        revoked = local.call("DELETE", f"/v1/keys/{lasting['id']}")
        assert (revoked.status, revoked.json["revoked"]) == (200, clock.now)
        refused = local.call("GET", "/v1/experiments/p", key=lasting["key"])
        assert refused.status == 401
        assert "revoked" in refused.json["detail"]
        clock.now += 5.0
        again = local.call("DELETE", f"/v1/keys/{lasting['id']}")
        assert again.json["revoked"] == clock.now - 5.0
        assert local.call("DELETE", "/v1/keys/000000000000").status == 404
    with Local(path, authenticate=True, clock=clock) as local:  # the new admin key is another one
        assert local.call("GET", "/v1/experiments/p", key=lasting["key"]).status == 401
        assert len(local.call("GET", "/v1/keys").json["keys"]) == 4


def test_a_revoked_key_is_refused_before_the_revocation_is_stored(tmp_path):
    """The call that revokes waits for the disk; calls with the key do not get through meanwhile."""
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        victim = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json

        async def both():
            revoking = asyncio.ensure_future(local.request("DELETE", f"/v1/keys/{victim['id']}"))
            await asyncio.sleep(0)
            during = await local.request("GET", "/v1/experiments", key=victim["key"])
            return during, revoking.done(), await revoking

        during, done, revoked = local.run(both())
        assert not done
        assert (during.status, revoked.status) == (401, 200)


def test_a_key_can_revoke_itself(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        own = local.call("POST", "/v1/keys", {"scopes": ["admin"]}).json
        assert local.call("DELETE", f"/v1/keys/{own['id']}", key=own["key"]).status == 200
        assert local.call("DELETE", f"/v1/keys/{own['id']}", key=own["key"]).status == 401


@pytest.mark.parametrize(
    "body",
    [{}, {"scopes": []}, {"scopes": ["write"]}, {"scopes": "read"}, {"scopes": ["read"], "experiments": []},
     {"scopes": ["read"], "experiments": ["a b"]}, {"scopes": ["read"], "experiments": ["a\n"]},
     {"scopes": ["read"], "expires_in": 0}, {"scopes": ["read"], "expires_in": -1}, {"scopes": ["read"], "note": "x" * 201},
     {"scopes": ["read"], "note": "a\0b"}, {"scopes": ["read"], "note": "a\n"},
     {"scopes": ["read"], "expires_in": True}, {"scopes": ["read"], "expires_in": 1e12}, {"scopes": ["read"], "id": "mine"}],
)  # fmt: skip
def test_invalid_keys_are_not_made(served, body):
    local, _ = served
    before = len(local.service.state.keys.all())
    answer = local.call("POST", "/v1/keys", body)
    assert (answer.status, answer.json["code"]) == (422, "invalid")
    assert len(local.service.state.keys.all()) == before


# --- the audit log ------------------------------------------------------------------------------------------------------------


def test_every_admin_action_is_audited_in_the_same_commit(tmp_path):
    store = WrappedStore(tmp_path / "robandit.db")
    key, stored = made_key(["admin"], now=0.0)
    store.commit((), (PutKey(stored),))
    p = "/v1/experiments/p"
    actions = [
        (("PUT", p, {"arms": ["a", "b"]}), ("create", "p", {"arms": ["a", "b"], "minimize": False}), "created"),
        (("POST", f"{p}/arms", {"arm": "c"}), ("add arm", "p", {"arm": "c"}), "arm_added"),
        (("PATCH", f"{p}/arms/c", {"state": "paused"}), ("change arm", "p", {"arm": "c", "state": "paused"}), "arm_paused"),
        (("PATCH", f"{p}/arms/c", {"state": "active"}), ("change arm", "p", {"arm": "c", "state": "active"}), "arm_resumed"),
        (("PATCH", f"{p}/arms/c", {"state": "retired"}), ("change arm", "p", {"arm": "c", "state": "retired"}), "arm_retired"),
        (("POST", f"{p}/pause"), ("pause", "p", {}), "paused"),
        (("POST", f"{p}/resume"), ("resume", "p", {}), "resumed"),
        (("POST", f"{p}/reset"), ("reset", "p", {}), "reset"),
        (("DELETE", p), ("delete", "p", {"arms": ["a", "b"]}), None),
        (("POST", "/v1/keys", {"scopes": ["read"]}), ("create key", None, {"scopes": ["read"], "expires": None}), None),
        (("DELETE", "/v1/keys/ID"), ("revoke key", None, {}), None),
    ]  # fmt: skip
    # Every call that changes something, but decisions and rewards, is in the list above.
    changing = {
        f"{r.method} {r.path}"
        for r in ROUTES
        if r.method != "GET" and not re.search("decisions|rewards|failures|observations", r.path)
    }
    done = {
        f"{c[0]} {c[1].replace('/p', '/{name}', 1).replace('arms/c', 'arms/{arm}').replace('ID', '{id}')}"
        if "keys" not in c[1]
        else f"{c[0]} {c[1].replace('ID', '{id}')}"
        for c, _, _ in actions
    }
    assert done == changing
    clock = Clock()
    with Local(tmp_path / "robandit.db", store=store, clock=clock, authenticate=False) as local:
        local.service._authenticate = True
        made = ""
        for (method, path, *body), (action, subject, detail), kind in actions:
            clock.now += 1.0
            count = len(store.commits)
            answer = local.call(method, path.replace("ID", made), *body, key=key)
            assert 200 <= answer.status < 300, answer
            made = answer.json["id"] if action == "create key" else made
            entry = local.call("GET", "/v1/audit", key=key).json["entries"][-1]
            assert entry == {
                "seq": entry["seq"],
                "time": clock.now,
                "key": stored.id,
                "action": action,
                "subject": subject or made,
                "detail": entry["detail"],
            }
            assert entry["detail"].items() >= detail.items()
            [(events, changes)] = store.commits[count:]
            assert [type(change).__name__ for change in changes].count("Audit") == 1
            assert [event.kind for event in events] == ([] if kind is None else [kind])
            if kind is None:
                assert len(changes) == 2
        entries = local.call("GET", "/v1/audit", key=key).json["entries"]
        assert [each["seq"] for each in entries] == list(range(1, len(actions) + 1))
        assert local.call("GET", "/v1/audit?after=9", key=key).json["entries"] == entries[9:]


def test_a_call_that_changes_nothing_is_not_audited(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        p = "/v1/experiments/p"
        local.call("PUT", p, SETTINGS)
        before = local.call("GET", "/v1/audit").json
        assert local.call("PUT", p, SETTINGS).status == 200
        assert local.call("POST", f"{p}/resume").status == 200
        assert local.call("PATCH", f"{p}/arms/a", {"state": "active"}).status == 200
        assert local.call("PUT", p, {"arms": ["z"]}).status == 409
        assert local.call("POST", f"{p}/arms", {"arm": "a"}).status == 409
        assert local.call("GET", "/v1/audit").json == before


def test_the_audit_log_has_pages(tmp_path):
    from robandit.storage.base import Audit

    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        local.engine.store.commit((), [Audit(1.0, "k", "a", f"s{i}", b"{}") for i in range(1_200)])
        first = local.call("GET", "/v1/audit").json["entries"]
        rest = local.call("GET", f"/v1/audit?after={first[-1]['seq']}").json["entries"]
        assert [each["subject"] for each in first + rest] == [f"s{i}" for i in range(1_200)]
        assert len(first) == 1_000
        for after in ("-1", "1.5", "x", "", "1" * 19, "%D9%A1"):  # the last one is a digit in Arabic
            assert local.call("GET", f"/v1/audit?after={after}").status == 422


# --- calls from other sites ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/experiments", "/healthz", "/docs", "/metrics"])
@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"host": "127.0.0.1:8000"}, True),
        ({"host": "localhost:8000"}, True),
        ({"host": "localhost"}, True),
        ({"host": "[::1]:8000"}, True),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, True),
        ({"host": "evil.example"}, False),
        ({"host": "evil.example:8000"}, False),
        ({"host": "127.0.0.1.evil.example:8000"}, False),
        ({"host": "evil.example", "origin": "http://evil.example"}, False),
        ({"host": ""}, False),
        ({"host": "localhost:8000", "origin": "http://evil.example"}, False),
        ({"host": "localhost:8000", "origin": "null"}, False),
        ({"host": "localhost:8000", "origin": "http://localhost:9000"}, False),
        ({"host": "localhost:8000", "origin": "http://localhost:8000.evil.example"}, False),
    ],
)
def test_without_keys_other_sites_are_refused(unkeyed, path, headers, allowed):
    """A page can send calls to this machine (cross-site), or make its own name lead to this machine (DNS rebinding)."""
    answer = unkeyed.call("GET", path, headers=headers)
    assert answer.status == (200 if allowed else 403)
    if not allowed:
        assert answer.json["code"] == "forbidden"


@pytest.fixture(scope="module")
def unkeyed(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("unkeyed") / "robandit.db") as local:
        yield local


def test_without_a_host_the_call_is_refused(unkeyed):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"body": b""}

    scope = {"type": "http", "method": "GET", "raw_path": b"/healthz", "query_string": b"", "headers": []}
    unkeyed.run(unkeyed.service(scope, receive, send))
    assert sent[0]["status"] == 403


def test_with_keys_any_host_and_origin_will_do(served):
    """A proxy has another name, and a page of another site has no key."""
    local, _ = served
    headers = {"host": "bandit.example", "origin": "https://shop.example"}
    assert local.call("GET", "/v1/experiments", headers=headers).status == 200
    answer = local.call("GET", "/v1/experiments", headers=headers, key="")
    assert answer.status == 401
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_answers_are_not_cached_or_guessed(served):
    local, _ = served
    for path in ("/v1/experiments", "/docs", "/metrics", "/nothing"):
        headers = local.call("GET", path).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert "default-src 'none'" in local.call("GET", "/docs").headers["content-security-policy"]
