"""Errors as application/problem+json: every code, odd bodies and values, and what a message may quote."""

import ast
import json
import logging
from pathlib import Path

import pytest

from helpers.serving import Local, Response
from helpers.wrapped_stores import WrappedStore
from robandit import errors
from robandit.errors import BrokenState, RobanditError
from robandit.service import problems
from robandit.service.problems import CODES, TITLES

P = "/v1/experiments/p"
MEDIA = "application/problem+json"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("problems") / "robandit.db", authenticate=True, rate=1e6) as local:
        local.call("PUT", P, {"arms": ["a", "b"]})
        yield local


def check(answer, status, code):
    """Check a problem, and return it."""
    assert (answer.status, answer.headers["content-type"]) == (status, MEDIA), answer
    problem = answer.json
    assert (problem["code"], problem["status"]) == (code, status)
    assert (CODES[code].status, TITLES[status]) == (status, problem["title"])
    assert set(problem) <= {"title", "status", "detail", "code", "parameter", "rule"}
    assert "Traceback" not in answer.body.decode()
    assert ".py" not in problem["detail"]
    assert problem["detail"].isprintable()
    assert 0 < len(problem["detail"]) <= 600
    assert int(answer.headers["content-length"]) == len(answer.body)
    return problem


# --- every code ---------------------------------------------------------------------------------------------------------------


def too_many(local):
    bucket = local.service.state.rates
    bucket._rate, before = 1e-9, bucket._rate
    try:
        local.call("GET", "/v1/experiments")
        return local.call("GET", "/v1/experiments")
    finally:
        bucket._rate = before
        bucket._buckets.clear()


def internal(local):
    find, local.engine.find = local.engine.find, lambda name: 1 / 0
    try:
        return local.call("GET", P)
    finally:
        local.engine.find = find


def broken(local):
    local.call("PUT", "/v1/experiments/broken", {"arms": ["a"], "policy": "UCB1"})
    engine = local.engine.find("broken").bandit._engine
    with pytest.raises(BrokenState):
        engine.refuse(IndexError("index 9 is out of bounds"))
    return local.call("POST", "/v1/experiments/broken/decisions")


def unavailable(local):
    local.engine.loaded = False
    try:
        return local.call("GET", P)
    finally:
        local.engine.loaded = True


def ended_key(local):
    made = local.call("POST", "/v1/keys", {"scopes": ["read"]}).json
    local.call("DELETE", f"/v1/keys/{made['id']}")
    return local.call("GET", P, key=made["key"])


def with_experiment(body, *calls):
    def provoke(local):
        local.call("PUT", "/v1/experiments/provoked", body)
        try:
            return [local.call("POST", f"/v1/experiments/provoked/{call}") for call in calls][-1]
        finally:
            local.call("DELETE", "/v1/experiments/provoked")

    return provoke


def no_arm(local):
    local.call("PUT", "/v1/experiments/no-arm", {"arms": ["a"]})
    local.call("PATCH", "/v1/experiments/no-arm/arms/a", {"state": "paused"})
    return local.call("POST", "/v1/experiments/no-arm/decisions")


def no_allocation(local):
    settings = {"arms": ["a"], "features": {"size": {"type": "number"}}}
    local.call("PUT", "/v1/experiments/no-allocation", settings)
    return local.call("GET", "/v1/experiments/no-allocation/allocation")


def observed(change, *before):
    """Send a decision of an edge that is changed, after others."""

    def provoke(local):
        path = "/v1/experiments/edges"
        local.call("PUT", path, {"arms": ["a", "b"], "policy": "UCB1"})
        version = local.call("GET", f"{path}/allocation").json["version"]
        item = {"id": "edge0001-0", "arm": "a", "propensity": 0.5, "allocation": version, "decided": 0.0, "value": 1.0}
        answers = [
            local.call("POST", f"{path}/observations/batch", {"items": [item | each]}) for each in (*before, change)
        ]
        (refused,) = answers[-1].json["refused"]
        problem = refused["problem"]
        body = json.dumps(problem).encode()
        headers = {"content-type": MEDIA, "content-length": str(len(body))}
        return Response(problem["status"], headers, body)

    return provoke


def too_old(local):
    local.call("PUT", "/v1/experiments/edges", {"arms": ["a", "b"], "policy": "UCB1"})
    local.call("GET", "/v1/experiments/edges/allocation")
    edges = local.engine.find("edges").edges
    edges.forgotten, before = 10**6, edges.forgotten
    try:
        return observed({"id": "edge0009-0"})(local)
    finally:
        edges.forgotten = before


PROVOKED = {
    "unknown-allocation": observed({"allocation": "another life"}),
    "propensity": observed({"propensity": 0.25}),
    "too-old": too_old,
    "malformed": lambda local: local.call("POST", f"{P}/rewards", b"{"),
    "no-key": lambda local: local.call("GET", P, key=""),
    "unknown-key": lambda local: local.call("GET", P, key="rb_none_none"),
    "ended-key": ended_key,
    "forbidden": lambda local: local.call(
        "GET", P, key=local.call("POST", "/v1/keys", {"scopes": ["decide"]}).json["key"]
    ),
    "not-found": lambda local: local.call("GET", "/v1/nothing"),
    "unknown-experiment": lambda local: local.call("GET", "/v1/experiments/none"),
    "unknown-decision": lambda local: local.call("POST", f"{P}/rewards", {"id": "none", "value": 1.0}),
    "no-such-method": lambda local: local.call("POST", P),
    "conflict": lambda local: local.call("PUT", P, {"arms": ["z"]}),
    "no-allocation": no_allocation,
    "paused": with_experiment({"arms": ["a"]}, "pause", "decisions"),
    "no-arm": no_arm,
    "horizon-reached": with_experiment(
        {"arms": ["a"], "policy": "RobustMOSS(eps=1.0, u=1.0, horizon=1)"}, "decisions", "decisions"
    ),
    "too-large": lambda local: local.call("POST", f"{P}/decisions", b" " * ((4 << 20) + 1)),
    "invalid": lambda local: local.call("POST", f"{P}/rewards", {"id": "x", "value": "1"}),
    "too-many": too_many,
    "too-many-open": with_experiment({"arms": ["a"], "max_open": 1}, "decisions", "decisions"),
    "broken": broken,
    "internal": internal,
    "unavailable": unavailable,
}


@pytest.mark.parametrize("code", CODES)
def test_every_documented_code_occurs(local, code, capfd):
    answer = PROVOKED[code](local)
    problem = check(answer, CODES[code].status, code)
    if answer.status in (429, 503):
        assert int(answer.headers["retry-after"]) >= 1
    if code == "no-such-method":
        assert answer.headers["allow"] == "DELETE, GET, PUT"
    if code == "internal":
        assert problem["detail"] == "The server met an unexpected error; its log has the details."
        assert "ZeroDivisionError" in capfd.readouterr().err  # the operator sees it


def test_every_refusal_has_a_documented_code():
    """Of the HTTP layer, and of the errors that the core of the service raises."""
    package = Path(problems.__file__).parents[1]
    for room in ("service", "decisions"):
        for file in (package / room).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                name = getattr(getattr(call, "func", None), "id", getattr(getattr(call, "func", None), "attr", ""))
                codes = [call.args[0]] if name in ("Refusal", "_refuse") else []
                codes += [word.value for word in getattr(call, "keywords", ()) if word.arg == "code"]
                assert {code.value for code in codes if isinstance(code, ast.Constant)} <= CODES.keys(), file
    by_class = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RobanditError)
    }
    assert by_class - {None} <= CODES.keys()


# --- rewards that are no rewards ----------------------------------------------------------------------------------------------

VALUES = {
    b"1e400": "value", b"-1e400": "value", b"1" + b"0" * 400: "value", b"1e151": "value", b"-1e151": "value",
    b"1.0000000001e150": "value", b"1e-140": "value", b"-5e-324": "value", b"1e-400": "value",
    b"-0.0001E-9999": "value", b"0." + b"0" * 400 + b"1": "value", b'"1"': "value", b'"NaN"': "value",
    b"true": "value", b"false": "value", b"null": "value", b"[]": "value", b"[1]": "value", b"{}": "value",
}  # fmt: skip
NOT_JSON = [b"NaN", b"Infinity", b"-Infinity"]


def opened(local, count):
    return [local.call("POST", f"{P}/decisions").json["id"] for _ in range(count)]


def item(id, value):
    return b'{"id": "%b", "value": %b}' % (id.encode(), value)


TWICE = {
    b'{"id": "x", "value": 1, "value": 2}': "value is given twice: send each field once",
    b'{"value": 1, "id": "x:y", "value" \t:\n 2}': "value is given twice: send each field once",
    b'{"id": "a", "id": "b", "value": 1}': "id is given twice: send each field once",
    b'{"id": "value", "id": "b", "value": 1}': "id is given twice: send each field once",
    b'{"id": "x", "value": 1, "\\u0076alue": 2}': "value is given twice: send each field once",
    b'{"id": "x", "v\\u0061lu\\u0065" : 1, "\\u0076alue": 2}': "value is given twice: send each field once",
    b'{"id": "x", "id": "\\u004A", "value": 2}': "id is given twice: send each field once",
    b'{"id": "x", "value": "1", "value": 2}': "value is given twice: send each field once",
}


@pytest.mark.parametrize(("body", "text"), TWICE.items(), ids=[body.decode() for body in TWICE])
def test_a_field_that_is_given_twice_is_refused(local, body, text):
    local.call("POST", f"{P}/decisions", {"id": "x"})
    problem = check(local.call("POST", f"{P}/rewards", body), 422, "invalid")
    assert (problem["detail"], problem["rule"]) == (text, "given once")
    [answer] = local.call("POST", f"{P}/rewards/batch", b'{"items": [%b]}' % body).json["items"]
    assert answer["problem"]["detail"] == text
    assert local.engine.experiments["p"].is_open("x")


def test_the_name_is_not_looked_for_in_a_large_body(local):
    """With 4 MiB of quotes, that would hold all other calls for half a second."""
    body = b'{"arms": ["a"], "policy": "%b", "seed": 1, "seed": 2}' % (rb"\"" * 40_000)
    problem = check(local.call("PUT", "/v1/experiments/q", body), 422, "invalid")
    assert (problem["detail"], problem["rule"]) == ("a field is given twice: send each field once", "given once")


@pytest.mark.parametrize(
    ("method", "path", "body", "name"),
    [
        ("POST", f"{P}/decisions", b'{"context": {"a": ":"}, "arm": "a", "context": {}}', "context"),
        ("POST", f"{P}/decisions/batch", b'{"items": [{"id": "1"}], "items": [{"id": "2"}]}', "items"),
        ("POST", f"{P}/rewards/batch", b'{"items": [{"id": "1", "value": 1}], "items": [{"id": "1", "value": 2}]}', "items"),
        ("PUT", "/v1/experiments/q", b'{"arms": ["a"], "minimize": true, "minimize": false}', "minimize"),
        ("POST", f"{P}/arms", b'{"arm": "new", "arm": "newer"}', "arm"),
        ("PATCH", f"{P}/arms/a", b'{"state": "paused", "state": "active"}', "state"),
        ("POST", "/v1/keys", b'{"scopes": ["read"], "scopes": ["admin"]}', "scopes"),
    ],
)  # fmt: skip
def test_no_body_may_give_a_field_twice(local, method, path, body, name):
    seq = local.engine.experiments["p"].seq
    problem = check(local.call(method, path, body), 422, "invalid")
    assert (problem["parameter"], problem["detail"]) == (name, f"{name} is given twice: send each field once")
    assert local.engine.experiments["p"].seq == seq


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "a:b:c", "context": {"id": "id", "a": {"id": [":", "\\u003a", {"id": "\\":"}]}}}',
        b'{ "context" : "id\\": 1" , "id" : "\\u003a\\\\" , "among" : [ "a" ] , "arm" : null }',
        b'{"\\u0069d": "x:", "context": ":"}',
    ],
)
def test_colons_and_names_within_values_are_not_fields(local, body):
    assert local.call("POST", f"{P}/decisions", body).status == 200


@pytest.mark.parametrize("value", [b"0", b"-0.0", b"0e-400", b"0.000E+9", b"0." + b"0" * 400])
def test_zeros_are_rewards(local, value):
    [id] = opened(local, 1)
    assert local.call("POST", f"{P}/rewards", item(id, value)).json["value"] == 0.0


def test_a_number_that_became_0_is_no_setting(local):
    answer = local.call("PUT", "/v1/experiments/q", b'{"arms": ["a"], "on_expiry": 1e-400}')
    text = "on_expiry = 1e-400 must be 0 or at least 1e-130 in size"
    assert check(answer, 422, "invalid")["detail"] == text


@pytest.mark.parametrize("value", [*VALUES, *NOT_JSON])
def test_a_single_reward_is_refused_with_the_rule(local, value):
    [id] = opened(local, 1)
    seq = local.engine.experiments["p"].seq
    problem = check(local.call("POST", f"{P}/rewards", item(id, value)), 422, "invalid")
    text = problem["detail"]
    if value in VALUES:
        assert problem["parameter"] == VALUES[value]
        assert problem["rule"].startswith(("a number (-1e150 to 1e150)", "0 or at least 1e-130 in size"))
    else:
        assert "must be finite" in text
    assert local.engine.experiments["p"].seq == seq
    assert local.engine.experiments["p"].is_open(id)
    assert local.call("POST", f"{P}/rewards", {"id": id, "value": 1.0}).json["outcome"] == "applied"


@pytest.mark.parametrize("value", VALUES)
def test_a_wrong_reward_does_not_spoil_its_batch(local, value):
    first, wrong, last = opened(local, 3)
    body = b'{"items": [%b]}' % b", ".join([item(first, b"1.5"), item(wrong, value), item(last, b"-2.5")])
    answer = local.call("POST", f"{P}/rewards/batch", body)
    assert answer.status == 200
    items = answer.json["items"]
    assert [each["status"] for each in items] == [200, 422, 200]
    assert items[1]["problem"]["code"] == "invalid"
    assert items[1]["reward"] is None
    assert [items[i]["reward"]["value"] for i in (0, 2)] == [1.5, -2.5]
    assert local.engine.experiments["p"].is_open(wrong)


@pytest.mark.parametrize("value", NOT_JSON)
def test_what_is_not_json_refuses_the_whole_batch(local, value):
    """A body that is not JSON has no items. Nothing of it is stored."""
    first, wrong = opened(local, 2)
    body = b'{"items": [%b]}' % b", ".join([item(first, b"1.5"), item(wrong, value)])
    check(local.call("POST", f"{P}/rewards/batch", body), 422, "invalid")
    assert local.engine.experiments["p"].is_open(first)


ODD_ITEMS = [
    1,
    None,
    "x",
    [],
    {},
    {"id": "x"},
    {"value": 1.0},
    {"id": "x", "value": 1.0, "more": 1},
    {"id": 1, "value": 1.0},
]


def test_odd_items_do_not_spoil_their_batch(local):
    [good] = opened(local, 1)
    answer = local.call("POST", f"{P}/rewards/batch", {"items": [*ODD_ITEMS, {"id": good, "value": 1.0}]})
    assert [each["status"] for each in answer.json["items"]] == [422] * len(ODD_ITEMS) + [200]
    odd = [1, None, "x", [], {"arm": "missing"}, {"among": ["missing"]}, {"among": []}, {"id": ""}, {"arm": 1}, {"more": 1},
           {"arm": "a", "among": ["a"]}]  # fmt: skip
    answer = local.call("POST", f"{P}/decisions/batch", {"items": [*odd, {}]})
    assert [each["status"] for each in answer.json["items"]] == [422] * len(odd) + [200]


# --- odd bodies, queries and methods ------------------------------------------------------------------------------------------

BODIES = {
    b"": (400, "malformed"),
    b" ": (400, "malformed"),
    b"{": (400, "malformed"),
    b"nonsense": (400, "malformed"),
    b'{"id": "x", "value": 1} {}': (400, "malformed"),
    b"\xff": (400, "malformed"),
    b'\xef\xbb\xbf{"id": "x", "value": 1}': (400, "malformed"),
    b'{"id": "\xff", "value": 1}': (400, "malformed"),
    b"{'id': 'x'}": (400, "malformed"),
    b"[" * 100_000: (422, "invalid"),
    b'{"id": ' + b"[" * 3_000 + b"]" * 3_000 + b"}": (400, "malformed"),
    b"null": (422, "invalid"),
    b"[]": (422, "invalid"),
    b'"x"': (422, "invalid"),
    b"{}": (422, "invalid"),
    b'{"id": "x", "value": 1, "extra": 1}': (422, "invalid"),
}


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_odd_bodies(local, body):
    check(local.call("POST", f"{P}/rewards", body), *BODIES[body])


def test_every_call_with_a_body_refuses_odd_ones(local):
    from robandit.service.routes import ROUTES

    for route in ROUTES:
        if route.body is None:
            continue
        path = route.path.format(name="p", arm="a")
        check(local.call(route.method, path, b"{"), 400, "malformed")
        check(local.call(route.method, path, b'{"unknown field": 1}'), 422, "invalid")
        if route.body_required:
            check(local.call(route.method, path), 400, "malformed")


def test_a_misspelled_field(local):
    said = check(local.call("PUT", P, {"arm": ["a", "b"]}), 422, "invalid")["detail"]
    assert said.startswith("field 'arm' is not known (did you mean arms?): there are arms, policy, minimize, ")
    batch = local.call("POST", f"{P}/rewards/batch", {"items": [{"id": "x", "values": 1}]})
    assert batch.json["items"][0]["problem"]["detail"] == (
        "field 'values' is not known (did you mean value?): there are id, value, metrics, final, part"
    )


@pytest.mark.parametrize(
    ("body", "parameter", "rule"),
    [
        ({"arms": ["a", 5]}, "arms[1]", "a string (1 to 100 characters, without control characters)"),
        (
            {"arms": []},
            "arms",
            "an array (1 to 1,000 items) of string (1 to 100 characters, without control characters)",
        ),
        ({"arms": ["a"], "max_open": 0}, "max_open", "an integer (1 to 1,000,000) or null"),
        ({"arms": ["a"], "on_expiry": "stop"}, "on_expiry", 'a number (-1e150 to 1e150) or "drop"'),
        ({"policy": None}, "arms", "given"),
        ({"arms": ["a"], "more": 1, "other": 2}, "more", "a known field"),
        ([], None, "an object"),
    ],
)
def test_a_body_that_breaks_a_rule_names_the_field_and_the_rule(local, body, parameter, rule):
    problem = check(local.call("PUT", "/v1/experiments/q", body), 422, "invalid")
    assert (problem.get("parameter"), problem["rule"]) == (parameter, rule)


def test_calls_without_a_body_refuse_one(local):
    from robandit.service.routes import ROUTES

    for route in ROUTES:
        if route.body is None:
            path = route.path.format(name="p", arm="a", id="x")
            check(local.call(route.method, path, {}), 400, "malformed")
    assert local.call("GET", P).status == 200


def test_unknown_and_repeated_query_parameters(local):
    from robandit.service.routes import ROUTES

    for route in ROUTES:
        path = route.path.format(name="p", arm="a", id="x")
        problem = check(local.call(route.method, f"{path}?surprise=1"), 422, "invalid")
        assert problem["parameter"] == "surprise"
    check(local.call("GET", f"{P}/log?after=1&after=1"), 422, "invalid")
    check(local.call("GET", f"{P}/log?%ff=1"), 400, "malformed")
    check(local.call("GET", f"{P}/log?{'&'.join(['x'] * 100)}"), 400, "malformed")
    assert local.call("GET", f"{P}/log?").status == 200


@pytest.mark.parametrize(
    "query", ["after=-1", "after=1.0", "after=", "limit=x", "limit=-1", "format=xml", "format=", "learned=1"]
)
def test_invalid_query_values(local, query):
    problem = check(local.call("GET", f"{P}/log?{query}"), 422, "invalid")
    assert problem["parameter"] == query.partition("=")[0]


def test_methods(local):
    for path in (P, "/v1/experiments", "/metrics", "/healthz", "/docs", f"{P}/log"):
        answer = local.call("HEAD", path)  # the server leaves out the body
        assert (answer.status, answer.headers["content-type"]) == (200, local.call("GET", path).headers["content-type"])
    for method in ("OPTIONS", "TRACE", "CONNECT", "BREW", "PATCH"):
        answer = local.call(method, P)
        check(answer, 405, "no-such-method")
        assert answer.headers["allow"] == "DELETE, GET, PUT"
    check(local.call("HEAD", f"{P}/decisions"), 405, "no-such-method")


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v2/experiments", "/v1/experiments/", "//v1/experiments", "/v1/experiments/p/", "/docs/x",
     "/v1/experiments/p/nothing", "/v1/experiments/p/decisions/", "/v1/*", "/%2e%2e/v1"],
)  # fmt: skip
def test_nothing_there(local, path):
    check(local.call("GET", path), 404, "not-found")


@pytest.mark.parametrize("path", ["/v1/experiments/%FF", "/v1/experiments/%ED%A0%80", "/%80"])
def test_a_path_that_is_not_utf_8(local, path):
    check(local.call("GET", path), 400, "malformed")


@pytest.mark.parametrize("name", ["*", "%2A", "None", "__class__"])
def test_names_that_could_confuse_the_router(local, name):
    check(local.call("GET", f"/v1/experiments/{name}"), 404, "unknown-experiment")
    check(local.call("GET", f"{P}/decisions/{name}"), 404, "unknown-decision")
    check(local.call("DELETE", f"/v1/keys/{name}"), 404, "not-found")
    check(local.call("PATCH", f"{P}/arms/{name}", {"state": "paused"}), 404, "not-found")


# --- contexts that could be stored, but not be read again ---------------------------------------------------------------------

CONTEXTS = [b"1e400", b'{"x": [-1e400]}', b'"\xff"', b'{"a": "\xed\xa0\x80"}', b"1" * 5_000]


@pytest.mark.parametrize("context", CONTEXTS, ids=range(len(CONTEXTS)))
def test_contexts_that_cannot_be_read_are_refused(local, context):
    seq = local.engine.experiments["p"].seq
    body = b'{"id": "odd", "context": %b}' % context
    problem = check(local.call("POST", f"{P}/decisions", body), 422, "invalid")
    assert problem["parameter"] == "context"
    batch = local.call("POST", f"{P}/decisions/batch", b'{"items": [%b]}' % body)
    assert batch.json["items"][0]["status"] == 422
    assert local.engine.experiments["p"].seq == seq
    assert local.call("GET", f"{P}/log").status == 200


@pytest.mark.parametrize("depth", [201, 202, 500, 940, 1_000, 1_500, 10_000])
def test_a_context_that_is_nested_too_deeply_is_refused(local, depth):
    for context in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
        refused = local.call("POST", f"{P}/decisions", b'{"context": %b}' % context)
        assert refused.status in (400, 422)
        assert refused.json["code"] in ("malformed", "invalid")


def test_brackets_in_strings_and_side_by_side_are_not_levels(local):
    for context in (
        b'"%b"' % (b"[" * 5_000),
        b"[%b]" % b",".join([b"[]"] * 5_000),
        b'["\\"[[", %b]' % (b"[],{}," * 200 + b"1"),
    ):
        assert local.call("POST", f"{P}/decisions", b'{"context": %b}' % context).status == 200


@pytest.mark.parametrize("depth", [1, 100, 200])
def test_a_context_that_was_stored_can_be_read(local, depth):
    context = b"[" * depth + b"]" * depth
    body = b'{"id": "deep%d", "context": %b}' % (depth, context)
    assert local.call("POST", f"{P}/decisions", body).status == 200
    assert local.call("POST", f"{P}/decisions", body).replayed
    assert context in local.call("GET", f"{P}/decisions/deep{depth}").body
    for format in ("ndjson", "csv", "parquet"):
        assert local.call("GET", f"{P}/log?format={format}").status == 200
    assert context in local.call("GET", f"{P}/log").body


@pytest.mark.parametrize("call", ["decisions", "decisions/batch", "rewards/batch"])
def test_bodies_that_are_nested_too_deeply(local, call):
    deep = b"[" * 100_000 + b"]" * 100_000
    body = b'{"context": %b}' % deep if call == "decisions" else b'{"items": [%b]}' % deep
    assert "nested" in check(local.call("POST", f"{P}/{call}", body), 400, "malformed")["detail"]


# --- what a message quotes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["\x1b[31mred", "\u202egnp", "a\nb", "\u2028", "x" * 5_000], ids=range(5))
def test_messages_are_short_and_printable(local, odd):
    from urllib.parse import quote

    quoted = quote(odd, safe="")
    calls = [
        ("GET", f"/v1/experiments/{quoted}"),
        ("PUT", f"/v1/experiments/{quoted}", {"arms": ["a"]}),
        ("GET", f"{P}/decisions/{quoted}"),
        ("PATCH", f"{P}/arms/{quoted}", {"state": "paused"}),
        ("DELETE", f"/v1/keys/{quoted}"),
        ("GET", f"/{quoted}"),
        ("GET", f"{P}?{quoted}=1"),
        ("GET", f"{P}/log?format={quoted}"),
        ("GET", f"{P}/log?after={quoted}"),
        ("GET", f"/v1/audit?after={quoted}"),
        ("PUT", P, {"arms": [odd]}),
        ("PUT", P, {"arms": ["a"], "policy": odd}),
        ("PUT", P, {"arms": ["a"], odd: 1}),
        ("PUT", P, {"arms": ["a"], "on_expiry": odd, "reward_window": 1}),
        ("POST", f"{P}/decisions", {"id": odd}),
        ("POST", f"{P}/decisions", {"among": [odd]}),
        ("POST", f"{P}/decisions", {"arm": odd}),
        ("POST", f"{P}/decisions", {odd: 1}),
        ("POST", f"{P}/rewards", {"id": odd, "value": 1.0}),
        ("POST", f"{P}/rewards", {"id": "x", "value": odd}),
        ("POST", "/v1/keys", {"scopes": [odd]}),
        ("POST", "/v1/keys", {"scopes": ["read"], "experiments": [odd]}),
        ("BREW" + odd[:1].replace("\n", "x"), P),
    ]
    for call in calls:
        answer = local.call(*call)
        assert 400 <= answer.status < 500, call
        assert answer.headers["content-type"] == MEDIA
        for text in answer.json.values():
            assert str(text).isprintable(), call
            assert str(text).count("x") < 260, call
    batch = local.call("POST", f"{P}/rewards/batch", {"items": [{"id": odd, "value": 1.0}, {"id": "x", odd: 1}]})
    for each in batch.json["items"]:
        assert each["problem"]["detail"].isprintable()
        assert each["problem"]["detail"].count("x") < 260


def test_a_long_detail_is_cut():
    made = problems.problem("invalid", "\x00" * 1_000, parameter="\x1b")
    assert len(made.detail) == problems.LONGEST_DETAIL
    assert made.parameter == "\\x1b"


def test_no_length_with_no_content(local):
    local.call("PUT", "/v1/experiments/short", {"arms": ["a"]})
    answer = local.call("DELETE", "/v1/experiments/short")
    assert (answer.status, answer.body) == (204, b"")
    assert not {"content-length", "content-type"} & set(answer.headers)


# --- a store that fails -------------------------------------------------------------------------------------------------------


def test_a_failed_store_is_a_problem_of_every_call(tmp_path, caplog):
    store = WrappedStore(tmp_path / "robandit.db")
    with caplog.at_level(logging.ERROR), Local(tmp_path / "robandit.db", store=store) as local:
        local.call("PUT", P, {"arms": ["a"]})
        known = local.call("POST", f"{P}/decisions", {"id": "known"}).json
        store.broken = True
        problem = check(local.call("POST", f"{P}/decisions"), 503, "unavailable")
        assert "disk" not in problem["detail"]  # the reason is for the operator
        for call in (
            ("POST", f"{P}/decisions", {"id": "known"}),
            ("POST", f"{P}/rewards", {"id": known["id"], "value": 1.0}),
            ("POST", f"{P}/decisions/batch", {"items": [{}]}),
            ("GET", P),
            ("GET", f"{P}/log"),
            ("GET", f"{P}/decisions/known"),
            ("GET", "/v1/experiments"),
            ("PUT", P, {"arms": ["a"]}),
            ("POST", f"{P}/pause"),
            ("POST", "/v1/keys", {"scopes": ["read"]}),
            ("GET", "/v1/audit"),
        ):
            answer = local.call(*call)
            check(answer, 503, "unavailable")
            assert answer.headers["retry-after"] == "1"
        assert len(local.failures) == 1
    assert not caplog.records


def test_details_are_json(local):
    answer = local.call("POST", f"{P}/rewards", {"id": 'quote"\\', "value": 1.0})
    assert json.loads(answer.body)["status"] == 404


def test_an_experiment_whose_bandit_is_broken_is_shown_with_the_reason(local):
    assert broken(local).json["code"] == "broken"
    answer = local.call("GET", "/v1/experiments/broken")
    shown = answer.json
    assert (answer.status, shown["arms"][0]["arm"], shown["diagnosis"]) == (200, "a", None)
    assert shown["warnings"][0].startswith("UCB1(scale=1.0) raised IndexError: index 9 is out of bounds.")
    assert local.call("GET", "/experiments/broken").status in (200, 303)


@pytest.mark.parametrize("policy", ["Unknown", "EpsilonGreedy(epsilon=2)", "EpsilonGreedy(", "UCB1(", "UCB1(colour=1)"])
def test_a_wrong_policy_is_named_as_the_parameter(local, policy):
    answer = local.call("PUT", "/v1/experiments/wrong", {"arms": ["a"], "policy": policy})
    assert (answer.status, answer.json["parameter"]) == (422, "policy")
