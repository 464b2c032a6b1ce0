"""Objectives over HTTP: the setting, what answers say, and the dashboard."""

import random

import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person, words

P = "/v1/experiments/p"


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "robandit.db", clock=Clock()) as local:
        yield local


def played(local, **settings):
    made = local.call("PUT", P, {"arms": ["atlas", "zeus"], "minimize": True, "unit": "s", "seed": 1, **settings})
    assert made.status == 201
    chance = random.Random(4)
    for k in range(120):
        arm = local.call("POST", f"{P}/decisions", {"id": str(k)}).json["arm"]
        cost = chance.lognormvariate(0.0 if arm == "atlas" else 1.0, 0.5)
        local.call("POST", f"{P}/rewards", {"id": str(k), "value": cost})
    return made.json["settings"]


@pytest.mark.parametrize(("objective", "policy"), [("p95", "QuantileUCB(q=0.95"), ("within:2.0", "AdaKLUCB")])
def test_an_experiment_has_an_objective(local, objective, policy):
    settings = played(local, objective=objective)
    assert settings["objective"] == objective
    assert settings["policy"].startswith(policy)
    shown = local.call("GET", P).json
    atlas, zeus = shown["arms"]
    assert atlas["mean"] is None
    assert atlas["low"] < atlas["value"] < zeus["value"]
    assert atlas["pulls"] > zeus["pulls"]
    assert ("quantile" if objective == "p95" else "share") in atlas["policy"]


def test_the_mean_has_no_value_and_no_objective(local):
    assert "objective" not in played(local)
    assert all("value" not in arm for arm in local.call("GET", P).json["arms"])


def test_pages_speak_of_the_objective(local):
    person = Person(local)
    played(local, objective="p95")
    page = words(person.get("/experiments/p").body)
    assert "objective: p95" in page
    assert "p95, s" in page
    assert "trimmed mean" not in page
    decision = words(person.get("/experiments/p/decision?id=100").body)
    assert "quantile, s" in decision
    assert "optimistic estimate of its p95" in decision
    made = person.send("/new", "/new", {"name": "made", "arms": "a\nb", "objective": "within:2.0"})
    assert made.status == 303
    assert local.call("GET", "/v1/experiments/made").json["settings"]["objective"] == "within:2.0"


@pytest.mark.parametrize(
    "settings",
    [{"objective": "p0"}, {"objective": "p95", "policy": "UCB1"}, {"objective": "p95", "policy": "QuantileUCB"}],
)
def test_an_impossible_objective_is_refused_by_name(local, settings):
    refused = local.call("PUT", P, {"arms": ["a", "b"], **settings})
    assert (refused.status, refused.json["parameter"]) == (422, "objective")


def test_the_objective_never_changes(local):
    played(local, objective="p95")
    body = {"arms": ["atlas", "zeus"], "minimize": True, "unit": "s", "seed": 1}
    assert local.call("PUT", P, {**body, "objective": "p95"}).status == 200
    refused = local.call("PUT", P, {**body, "objective": "p90"})
    assert (refused.status, refused.json["code"]) == (409, "conflict")
