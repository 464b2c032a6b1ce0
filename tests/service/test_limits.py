"""Limits: calls per second, sizes of bodies, contexts and batches, and the rules for names and ids."""

import asyncio
import gc
import http.client
import json
import tracemalloc
from types import SimpleNamespace

import pytest

from helpers.serving import Local, Server
from robandit.decisions import pace
from robandit.service import decisions
from robandit.service import http as http_module
from robandit.service.access import MOST_BUCKETS, Rates
from robandit.service.problems import Refusal

P = "/v1/experiments/p"
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("limits") / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a", "b"]})
        yield local


class Tick:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


# --- calls per second ---------------------------------------------------------------------------------------------------------


def test_more_calls_than_the_rate_are_refused(tmp_path):
    tick = Tick()
    with Local(tmp_path / "robandit.db", authenticate=True, rate=3.0, tick=tick) as local:
        other = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json["key"]
        tick.now += 10.0
        assert [local.call("GET", "/v1/experiments").status for _ in range(5)] == [200, 200, 200, 429, 429]
        refused = local.call("GET", "/v1/experiments")
        assert refused.json["code"] == "too-many"
        assert refused.headers["retry-after"] == "1"
        assert local.call("GET", "/v1/experiments", key=other).status == 200  # each key has its own limit
        assert local.call("GET", "/healthz").status == 200  # a call without a key has none
        assert local.call("GET", "/v1/experiments", key="").status == 401
        tick.now += 0.34
        assert [local.call("GET", "/v1/experiments").status for _ in range(2)] == [200, 429]
        tick.now += 1_000.0
        assert [local.call("GET", "/v1/experiments").status for _ in range(4)] == [200, 200, 200, 429]


def test_a_slow_rate_says_how_long_to_wait():
    tick = Tick()
    rates = Rates(0.1, tick)
    rates.check("x")
    with pytest.raises(Refusal, match="try again in 10 s") as refused:
        rates.check("x")
    assert refused.value.headers == ((b"retry-after", b"10"),)
    tick.now += 9.9
    with pytest.raises(Refusal, match="try again in 1 s"):
        rates.check("x")
    tick.now += 0.1000001
    rates.check("x")
    tick.now -= 50.0  # a clock that goes backwards gives nothing away, and raises nothing
    with pytest.raises(Refusal):
        rates.check("x")


def test_the_memory_of_rates_is_bounded():
    rates = Rates(1.0, Tick())
    for caller in range(MOST_BUCKETS + 50):
        rates.check(str(caller))
    assert len(rates._buckets) == MOST_BUCKETS


def test_without_a_rate_nothing_is_limited(local):
    assert {local.call("GET", "/v1/experiments").status for _ in range(200)} == {200}


# --- sizes --------------------------------------------------------------------------------------------------------------------


def chunked(local, path, chunks):
    """Send a body in parts, without its length. Return the status, the answer, and the number of parts that were read."""
    left, sent = list(chunks), []

    async def receive():
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "raw_path": path.encode(), "query_string": b""}
    local.run(local.service(scope | {"headers": [(b"host", b"localhost")]}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]), len(chunks) - len(left)


def test_a_body_of_the_largest_size_is_read(local):
    items = json.dumps({"items": [{"arm": "a", "context": 1}]}).encode()
    body = items + b" " * (4 * MEGABYTE - len(items))
    assert len(body) == 4 * MEGABYTE
    assert local.call("POST", f"{P}/decisions/batch", body).status == 200
    status, answer, _ = chunked(local, f"{P}/decisions/batch", [body[:MEGABYTE], body[MEGABYTE:]])
    assert (status, answer["items"][0]["status"]) == (200, 200)


def test_a_larger_body_is_refused(local):
    body = b" " * (4 * MEGABYTE + 1)
    seq = local.engine.experiments["p"].seq
    answer = local.call("POST", f"{P}/decisions/batch", body)
    assert (answer.status, answer.json["code"]) == (413, "too-large")
    status, problem, read = chunked(local, f"{P}/decisions/batch", [b" " * MEGABYTE] * 100)
    assert (status, problem["code"]) == (413, "too-large")
    assert read == 5  # the rest is not read
    assert local.engine.experiments["p"].seq == seq


@pytest.mark.parametrize("length", ["4194305", "9" * 5000, "-1", "1e3", "x", ""])
def test_an_odd_length_is_refused_before_the_body_is_read(local, length):
    answer = local.call("POST", f"{P}/decisions", b"{}", headers={"content-length": length})
    assert (answer.status, answer.json["code"]) == (413, "too-large")


def test_a_real_server_refuses_large_bodies(tmp_path):
    with Server(tmp_path / "robandit.db") as server:
        server.call("PUT", P, {"arms": ["a", "b"]})

        def sent(body, **options):
            connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
            try:
                connection.request("POST", f"{P}/decisions", body, **options)
                return connection.getresponse().status
            finally:
                connection.close()

        assert sent(b" " * (4 * MEGABYTE + 1)) == 413
        assert sent((b" " * MEGABYTE for _ in range(6)), encode_chunked=True) == 413
        assert sent((part for part in (b'{"arm":', b' "b"}')), encode_chunked=True) == 200
        assert server.call("POST", f"{P}/decisions").status == 200
        assert server.call("GET", P).json["counts"]["decisions"] == 2


def test_contexts_up_to_64_kib_are_stored(local):
    fits = json.dumps("x" * (65_536 - 2))
    assert len(fits) == 65_536
    made = local.call("POST", f"{P}/decisions", b'{"id": "large", "context": ' + fits.encode() + b"}")
    assert made.status == 200
    assert local.call("GET", f"{P}/decisions/large").json["context"] == "x" * (65_536 - 2)
    larger = b'{"context": ' + json.dumps("x" * (65_536 - 1)).encode() + b"}"
    refused = local.call("POST", f"{P}/decisions", larger)
    assert (refused.status, refused.json["parameter"], refused.json["rule"]) == (
        422,
        "context",
        "at most 64 KiB of JSON",
    )
    batch = local.call("POST", f"{P}/decisions/batch", b'{"items": [{}, ' + larger + b"]}").json["items"]
    assert [each["status"] for each in batch] == [200, 422]


@pytest.mark.parametrize("kind", ["decisions", "rewards"])
def test_a_batch_has_1_to_1000_items(local, kind):
    item = {} if kind == "decisions" else {"id": "unknown", "value": 1.0}
    full = local.call("POST", f"{P}/{kind}/batch", {"items": [item] * 1_000})
    assert full.status == 200
    assert {each["status"] for each in full.json["items"]} == ({200} if kind == "decisions" else {404})
    assert len(full.json["items"]) == 1_000
    for items in ([], [item] * 1_001):
        refused = local.call("POST", f"{P}/{kind}/batch", {"items": items})
        assert (refused.status, refused.json["parameter"]) == (422, "items")


# --- names and ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "A-1", "0", "a.b_c-d", "a" * 100])
def test_valid_names(local, name):
    assert local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]}).status == 201
    assert local.call("GET", f"/v1/experiments/{name}").json["name"] == name
    assert local.call("DELETE", f"/v1/experiments/{name}").status == 204


@pytest.mark.parametrize(
    "name", ["-a", ".", "..", "_a", "a%20b", "a%2Fb", "%C3%A9", "a" * 101, "a%00", "a%0A", "*", "%7Bname%7D"]
)
def test_invalid_names(local, name):
    refused = local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]})
    assert (refused.status, refused.json["code"]) == (422, "invalid")
    assert "name of an experiment" in refused.json["detail"]
    assert local.call("GET", f"/v1/experiments/{name}").status == 404


@pytest.mark.parametrize("name", ["", "a/", "/a"])
def test_paths_without_a_route(local, name):
    assert local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]}).status == 404


@pytest.mark.parametrize(
    "path", ["/" * 65_000, "/v1" * 20_000, f"{P}/decisions" + "/x" * 20_000], ids=["slashes", "fixed", "any"]
)
def test_a_path_of_many_parts_is_not_read_to_its_end(local, monkeypatch, path):
    """Each part took 2 microseconds, in which nothing else was answered, even without a key."""
    read = []
    unquoted = http_module._unquoted
    monkeypatch.setattr(http_module, "_unquoted", lambda raw: read.append(raw) or unquoted(raw))
    assert local.call("GET", path, key="").status == 404
    assert len(read) < 10


VALID_IDS = ["0", " ", "~", "a b/c?d#e%", '"\\', "x" * 200, "018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"]


@pytest.mark.parametrize("id", VALID_IDS)
def test_valid_ids(local, id):
    from urllib.parse import quote

    made = local.call("POST", f"{P}/decisions", {"id": id})
    assert (made.status, made.json["id"]) == (200, id)
    shown = local.call("GET", f"{P}/decisions/{quote(id, safe='')}")
    assert (shown.status, shown.json["id"]) == (200, id)
    reward = local.call("POST", f"{P}/rewards", {"id": id, "value": 1.0})
    assert (reward.status, reward.json["id"]) == (200, id)


@pytest.mark.parametrize("id", ["", "x" * 201, "é", "\x00", "\x7f", "\u202e", "a\n\n", 7, True, [], {}])
def test_invalid_ids(local, id):
    for call, body in (("decisions", {"id": id}), ("rewards", {"id": id, "value": 1.0})):
        refused = local.call("POST", f"{P}/{call}", body)
        assert (refused.status, refused.json["parameter"]) == (422, "id"), refused


def test_an_id_with_a_line_break_at_its_end(local):
    for call, body in (("decisions", {"id": "a\n"}), ("rewards", {"id": "a\n", "value": 1.0})):
        assert local.call("POST", f"{P}/{call}", body).status == 422


def test_an_id_of_the_servers_own_form_is_refused(local):
    own = local.call("POST", f"{P}/decisions").json["id"]
    life = own.partition("-")[0]
    refused = local.call("POST", f"{P}/decisions", {"id": f"{life}-1000000"})
    assert (refused.status, refused.json["parameter"]) == (422, "id")
    assert local.call("POST", f"{P}/decisions", {"id": own}).replayed


ARMS = ["é", "a/b", " ", "?", "x" * 100, "日本", '"', "%2F", "a\u0301"]


def test_arms_with_odd_names(local):
    from urllib.parse import quote

    odd = "/v1/experiments/odd"
    assert local.call("PUT", odd, {"arms": ARMS}).status == 201
    for arm in ARMS:
        path = f"{odd}/arms/{quote(arm, safe='')}"
        changed = local.call("PATCH", path, {"state": "paused"})
        assert changed.status == 200
        assert {"arm": arm, "state": "paused", "pulls": 0} in changed.json["arms"]
        assert local.call("PATCH", path, {"state": "active"}).status == 200
        made = local.call("POST", f"{odd}/decisions", {"arm": arm})
        assert made.json["arm"] == arm
        assert local.call("POST", f"{odd}/decisions", {"among": [arm]}).json["arm"] == arm
    assert local.call("PATCH", f"{odd}/arms/a/b", {"state": "paused"}).status == 404  # a slash is written as %2F
    missing = local.call("PATCH", f"{odd}/arms/missing", {"state": "paused"})
    assert (missing.status, missing.json["code"]) == (404, "not-found")


@pytest.mark.parametrize("arm", ["", "x" * 101, "a\n", "\x00", "\x1b[31m", "\x9f", 7, None, True])
def test_invalid_arms(local, arm):
    assert local.call("PUT", "/v1/experiments/new", {"arms": [arm]}).status == 422
    assert local.call("POST", f"{P}/arms", {"arm": arm}).status == 422
    assert local.call("POST", f"{P}/decisions", {"among": [arm]}).status == 422
    if arm is not None:
        assert local.call("POST", f"{P}/decisions", {"arm": arm}).status == 422


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"arms": []}, "arms"),
        ({"arms": ["a", "a"]}, "arm"),
        ({"arms": [str(i) for i in range(1_001)]}, "arms"),
        ({"arms": "ab"}, "arms"),
        ({}, None),
        ({"arms": ["a"], "policy": "Missing"}, None),
        ({"arms": ["a"], "policy": "AdaRUCB, UCB1"}, None),
        ({"arms": ["a"], "policy": ""}, None),
        ({"arms": ["a"], "policy": {"policy": "UCB1"}}, "policy"),
        ({"arms": ["a"], "policy": "EpsilonGreedy(epsilon=2)"}, None),
        ({"arms": ["a"], "minimize": 1}, "minimize"),
        ({"arms": ["a"], "seed": -1}, "seed"),
        ({"arms": ["a"], "seed": 2**63}, "seed"),
        ({"arms": ["a"], "seed": 1.5}, "seed"),
        ({"arms": ["a"], "reward_window": 0}, "reward_window"),
        ({"arms": ["a"], "reward_window": -1.0}, "reward_window"),
        ({"arms": ["a"], "reward_window": 1e300}, "reward_window"),
        ({"arms": ["a"], "reward_window": 60, "on_expiry": "keep"}, "on_expiry"),
        ({"arms": ["a"], "reward_window": 60, "on_expiry": 1e151}, "on_expiry"),
        ({"arms": ["a"], "reward_window": 60, "on_expiry": 1e-140}, "on_expiry"),
        ({"arms": ["a"], "reward_window": 60, "on_expiry": None}, "on_expiry"),
        ({"arms": ["a"], "on_expiry": 1.0}, None),
        ({"arms": ["a"], "max_open": 0}, "max_open"),
        ({"arms": ["a"], "max_open": 10**7}, "max_open"),
        ({"arms": ["a"], "name": "x"}, None),
    ],
)
def test_invalid_settings(local, body, place):
    refused = local.call("PUT", "/v1/experiments/new", body)
    assert (refused.status, refused.json["code"]) == (422, "invalid")
    if place is not None:
        assert refused.json["parameter"] == place
    assert local.call("GET", "/v1/experiments/new").status == 404


# --- the time of one call -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [b"1,", b"{},", b"[],"])
def test_a_batch_is_not_decoded_beyond_its_most_items(local, unit, monkeypatch):
    """Python's memory is a witness: a decoder that reads all items makes an object of each."""
    body = b'{"items":[' + unit * 1_000_000 + unit[:-1] + b"]}"
    tracemalloc.start()
    try:
        refused = local.call("POST", f"{P}/decisions/batch", body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.status == 422
    assert (refused.json["parameter"], refused.json["rule"]) == ("items", "an array of 1 to 1,000 objects")
    assert peak < 4 * len(body)


def test_an_empty_batch_is_refused(local):
    refused = local.call("POST", f"{P}/decisions/batch", {"items": []})
    assert (refused.status, refused.json["rule"]) == (422, "an array of 1 to 1,000 objects")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/experiments/q", b'{"arms":[%b]}'),
        ("POST", f"{P}/decisions", b'{"among":[%b]}'),
        ("POST", "/v1/keys", b'{"scopes":["read"],"experiments":[%b]}'),
    ],
)
def test_a_body_with_too_many_values_is_refused_before_it_is_decoded(local, method, path, body):
    names = b",".join([b'"a"'] * 40_002)
    refused = local.call(method, path, body % names)
    assert refused.status == 413
    assert refused.json["rule"] == "at most 40,000 commas"
    allowed = local.call(method, path, body % names[:-8])  # one fewer: then the rule of the list itself is named
    assert (allowed.status, allowed.json["rule"][:26]) == (422, "an array (1 to 1,000 items")


def test_an_item_with_too_many_values_does_not_spoil_the_others(local):
    body = b'{"items":[{"among":[%b]},{}]}' % b",".join([b'"a"'] * 40_002)
    first, second = local.call("POST", f"{P}/decisions/batch", body).json["items"]
    assert (first["status"], first["problem"]["rule"]) == (413, "at most 40,000 commas")
    assert second["status"] == 200


def test_others_have_a_turn_while_the_items_of_a_batch_are_decoded(local, monkeypatch):
    rests = []

    async def rest(slices):
        rests.append(slices)
        await asyncio.sleep(0)

    monkeypatch.setattr(pace, "SLICE", 0.0)
    monkeypatch.setattr(pace.Slices, "rest", rest)
    assert local.call("POST", f"{P}/decisions/batch", {"items": [{}] * 30}).status == 200
    assert len(rests) == 93  # before the first, and after each, was decoded, took effect, and was answered


def test_the_error_of_an_item_keeps_no_frames(local):
    """They would keep the whole body until the next garbage collection."""
    asked = SimpleNamespace(parameters=("p",), body=b'{"items":[{"x":1},{"arm":"a","among":["a"]}]}')
    _, items = local.run(decisions._items_of(local.service.state, asked, "decision", decisions._asked))
    assert [type(each) for each in items] == [Refusal, Refusal]
    assert all((each.__traceback__, each.__context__, each.__cause__) == (None, None, None) for each in items)


def test_the_check_of_a_context_leaves_the_garbage_collection_as_it_was():
    gc.disable()
    try:
        decisions._check_context(b"[1]")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_names_of_an_item_are_a_tuple():
    """The garbage collector searches a tuple of names once, and a list again and again."""
    asked = decisions._asked(b'{"among":["a","b"]}')
    gc.collect()
    held = [each for each in gc.get_referents(asked) if isinstance(each, list | tuple) and "b" in each]
    assert held == [("a", "b")]
    assert not gc.is_tracked(held[0])


CONTEXTS = [
    b"[" * 201 + b"]" * 201,
    b"[" + b"[]," * 300 + b"[" * 200 + b"]" * 200 + b"]",
    b'{"a":' * 201 + b"1" + b"}" * 201,
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_deep_context_is_refused(local, context):
    refused = local.call("POST", f"{P}/decisions", b'{"context":%b}' % context)
    assert refused.status == 422
    assert "nested at most 200 levels deep" in refused.json["detail"]


@pytest.mark.parametrize(
    "context",
    [
        b"[" * 200 + b"]" * 200,
        b"[" + b"[]," * 20_000 + b"[]]",
        b'["' + b"[" * 1_000 + b'","\\"[[[",' + b"[]," * 300 + b'"\\\\"]',
    ],
)
def test_a_wide_context_is_accepted(local, context):
    assert local.call("POST", f"{P}/decisions", b'{"context":%b}' % context).status == 200
    assert gc.isenabled()


@pytest.mark.parametrize("text", [b"NaN", b"-Infinity", b"Infinity"])
def test_a_number_that_is_not_json_is_named_in_a_body_of_any_size(local, text):
    body = b'{"items":[%b]}' % b",".join(
        [b'{"id":"NaN","value":%b}' % (text if i == 900 else b"1") for i in range(1_000)]
    )
    refused = local.call("POST", f"{P}/rewards/batch", body)
    assert (refused.status, refused.json["code"]) == (422, "invalid")
    assert refused.json["detail"].startswith(f"{text.decode()} is not a number in JSON")
