"""The server does what its OpenAPI document says: schemathesis makes calls from the document, valid and invalid ones."""

import random
from urllib.parse import quote

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import allow_header_conformance, negative_data_rejection

from helpers.amount import amount
from helpers.serving import Local
from robandit.service.connection import Connection, Connections
from robandit.service.openapi import contents
from robandit.service.routes import ROUTES

ARMS = ["a", "b", "c/d", "é"]
POLICIES = [None, "AdaRUCB", "EpsilonGreedy(epsilon=0.05)", "UCB1(scale=2.0)"]
SEEN = set()
# The same settings or version twice: other tests have it.
UNSEEN = {("PUT /v1/experiments/{name}", 200), ("GET /v1/experiments/{name}/allocation", 304)}

pytestmark = pytest.mark.xdist_group("schemathesis")  # the last test looks at what the others saw


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("schemathesis") / "robandit.db", authenticate=True) as local:
        connections = Connections(local.service, 1_000)
        server = local.run(local.loop.create_server(lambda: Connection(connections, local.loop), "127.0.0.1", 0))
        local.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield local
        local.loop.call_soon_threadsafe(server.close)


@pytest.fixture(scope="module")
def document():
    """The calls are made from it when the test runs: that takes seconds, which every process would spend at its start."""
    schema = schemathesis.openapi.from_dict(contents())
    schema.config.update(request_timeout=60)
    schema.config.generation.update(
        modes=list(GenerationMode),
        deterministic=True,
        with_security_parameters=False,  # each call has the admin key; test_access.py has the others
    )
    return schema


def fit(case, ids):
    """Change valid data where the document alone cannot say what the server accepts.

    Invalid data stay as they are: the server must refuse them.
    """
    if case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    body = case.body if isinstance(case.body, dict) else {}
    chance = random.Random(repr((case.path_parameters, body)))
    parameters = case.path_parameters or {}
    if "name" in parameters and chance.random() < 0.8:
        parameters["name"] = experiment(case)  # otherwise nearly all calls would be about experiments that do not exist
    if "arm" in parameters and chance.random() < 0.8:
        parameters["arm"] = quote(chance.choice(ARMS), safe="")
    if "id" in parameters and chance.random() < 0.8:
        parameters["id"] = quote(chance.choice(ids), safe="")
    for name in ("seed", "max_open"):
        if isinstance(body.get(name), float):
            body[name] = int(body[name])  # JSON Schema counts 5.0 as an integer, and the server does not
    if isinstance(body.get("policy"), str):
        body["policy"] = chance.choice(POLICIES)  # the notation of policies is a language of its own
    if isinstance(body.get("on_expiry"), float | int):
        body["reward_window"] = body.get("reward_window") or 60.0  # a value on expiry needs a window
        body["on_expiry"] = playable(body["on_expiry"])
        if body.get("cap") is not None:
            body["on_expiry"] = abs(body["on_expiry"])
    if body.get("fallback") is not None and body.get("arms"):
        body["fallback"] = chance.choice(body["arms"])
    if body.get("objective") is not None:  # objectives, too
        body["objective"] = "within:2.0" if body.get("cap") is None else "mean"
    if body.get("deadline") is None:
        body.pop("failure_cost", None)
    else:  # of rewards that are times, for policies that use open decisions
        body |= {"deadline": 30.0, "minimize": True, "policy": None}
        body |= {} if body.get("failure_cost") is None else {"failure_cost": 60.0}
        for name in ("reward_window", "on_expiry", "objective", "sticky_for"):
            body.pop(name, None)
    if body.get("features") is not None:  # a language of its own, too
        body |= {"features": {"region": {"type": "category", "values": ["eu", "us"]}}, "policy": None}
        for name in ("sticky_for", "cap", "deadline", "failure_cost", "objective"):
            body.pop(name, None)
    if body.get("floor") is not None:
        body["floor"] = min(body["floor"], 0.5)
    if body.get("control") is not None and body.get("arms"):
        body["control"] = {chance.choice(body["arms"]): 0.5}
    if case.query and "for" in case.query:
        case.query["for"] = "1s"  # a pattern cannot say the range
    if body.get("guardrails") is not None:  # the range of at_most depends on quantile
        body["guardrails"] = [{"metric": "error", "at_most": 0.05}]
    if isinstance(body.get("metrics"), list):
        body["metrics"] = sorted(set(body["metrics"]))
    for item in (body, *(body.get("items") or ())):
        if "/rewards" in case.path and item.get("value") is not None:  # a part is for amounts, which have no metrics
            if item.get("final", True):
                item.pop("part", None)
                item["metrics"] = {"error": 0} if item.get("metrics") else None
            else:
                item.pop("metrics", None)
                item["part"] = item.get("part") or "x"
        if case.path.endswith(("/decisions", "/decisions/batch")) and item is not None:
            # Only arms of the experiment can be chosen or observed, and one call cannot do both, or observe for a unit.
            if item.get("arm") is not None:
                item["arm"] = chance.choice(ARMS)
                item.pop("among", None)
                item.pop("unit", None)
            if item.get("among") is not None:
                item["among"] = chance.sample(ARMS, 2)
        if case.path.endswith("/observations/batch") and item is not body:
            item["expired"] = item.get("value") is None
        if item.get("value") is not None:
            item["value"] = playable(item["value"])
        fails = "/failures" in case.path and "id" in item
        if fails and item.get("metrics"):
            item["metrics"] = {"error": 1}
        if (item.get("value") is not None or fails) and chance.random() < 0.5:
            item["id"] = chance.choice(ids)


def experiment(case):
    """The experiment that most calls are about. Only one with a deadline has failures."""
    return "d" if "/failures" in case.path else "p"


def playable(value):
    """Rewards are squared, so those between 0 and 1e-130 in size are refused; a range in the document cannot leave them out."""
    return 0.0 if abs(value) < 1e-130 else value


@schemathesis.pytest.from_fixture("document").parametrize()
@hypothesis.settings(max_examples=amount(12, 300), deadline=None, derandomize=True, database=None)
def test_the_server_keeps_to_its_document(server, case):
    server.call("PUT", "/v1/experiments/p", {"arms": ARMS, "sticky_for": 60.0, "metrics": ["error"]})
    server.call("PUT", "/v1/experiments/d", {"arms": ARMS, "metrics": ["error"], "minimize": True, "deadline": 3600.0})
    ids = ["never made"]
    path = f"/v1/experiments/{experiment(case)}"
    ends = "/rewards" in case.path or "/failures" in case.path
    if ends or "/decisions/" in case.path:
        ids.append(server.call("POST", f"{path}/decisions", {"arm": "a"}).json["id"])
    if ends:
        server.call("POST", f"{path}/reset")  # its reward is late now
        ids.append(server.call("POST", f"{path}/decisions", {"arm": "a"}).json["id"])
    if "/keys/" in case.path:
        ids.append(server.call("POST", "/v1/keys", {"scopes": ["read"]}).json["id"])
    fit(case, ids)
    headers = {"Authorization": f"Bearer {server.admin}"}
    batch = case.path.endswith("/batch")
    # GET reads a decision whose id is "batch", so the header Allow names a method of another path of the document.
    excluded = [negative_data_rejection, allow_header_conformance] if batch else []
    response = case.call_and_validate(base_url=server.url, headers=headers, excluded_checks=excluded)
    if batch and response.status_code == 200 and case.meta.generation.mode == GenerationMode.NEGATIVE:
        # A wrong item does not spoil its batch: it has an answer of its own.
        answer = response.json()
        assert answer.get("refused") or any(item["status"] in (400, 422) for item in answer["items"])
    SEEN.add((case.operation.label, response.status_code))
    assert not server.failures


def test_most_documented_answers_were_seen(server):
    """Otherwise the calls above would say little."""
    if len({call for call, _ in SEEN}) < len(ROUTES):
        pytest.skip("only some of the calls were made")
    wanted = {(f"{route.method} {route.path}", status) for route in ROUTES for status in route.answers if status < 500}
    assert wanted - SEEN <= UNSEEN
