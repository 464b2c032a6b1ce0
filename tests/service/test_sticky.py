"""Sticky units over HTTP: the setting, the field ``unit``, what answers, the log, metrics and pages say, and the dashboard."""

import csv
import io
import json

import polars as pl
import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person

P = "/v1/experiments/p"
STICKY = {"arms": ["a", "b", "c"], "policy": "UCB1", "sticky_for": 60, "reward_window": 600}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        assert local.call("PUT", P, STICKY).json["settings"]["sticky_for"] == 60.0
        yield local


def decide(local, **body):
    return local.call("POST", f"{P}/decisions", body)


def reward(local, id, value):
    return local.call("POST", f"{P}/rewards", {"id": id, "value": value})


def test_a_unit_keeps_its_arm_and_its_first_reward_is_learned(local, clock):
    first, other, again = (decide(local, id=str(k), unit=unit).json for k, unit in enumerate(["ann", "bob", "ann"]))
    assert (first["arm"], other["arm"], again["arm"]) == ("a", "b", "a")
    assert "repeat" not in first
    assert again["repeat"] is True
    learned, late = reward(local, "2", 1.0), reward(local, "0", 4.0)
    assert (learned.status, learned.json["outcome"], learned.json["reason"]) == (200, "applied", None)
    assert (late.status, late.json["outcome"], late.json["reason"]) == (202, "late", "assignment")
    assert reward(local, "0", 4.0).json == late.json
    assert reward(local, "0", 5.0).status == 409
    shown = local.call("GET", P).json
    assert shown["counts"] == {
        "decisions": 3,
        "rewards": 1,
        "late": 0,
        "expired": 0,
        "open": 1,
        "repeats": 1,
        "unlearned": 1,
    }
    assert [arm["pulls"] for arm in shown["arms"]] == [1, 0, 0]
    clock.now += 60.0
    fresh = decide(local, unit="ann").json
    assert (fresh["arm"], fresh.get("repeat")) == ("c", None)
    metrics = local.call("GET", "/metrics").body.decode()
    assert 'robandit_calls_total{experiment="p",kind="reward",outcome="late"} 0' in metrics, "there is an alert on it"
    assert 'robandit_calls_total{experiment="p",kind="reward",outcome="applied"} 2' in metrics


def test_repeated_calls(local):
    first = decide(local, id="x", unit="ann")
    again = decide(local, id="x", unit="ann")
    assert (again.json, again.replayed) == (first.json, True)
    for unit in ("bob", None):
        refused = decide(local, id="x", unit=unit)
        assert (refused.status, refused.json["parameter"]) == (409, "id")


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"unit": ""}, "unit"),
        ({"unit": 17}, "unit"),
        ({"unit": "a\n"}, "unit"),
        ({"unit": "x" * 201}, "unit"),
        ({"unit": "ann", "arm": "a"}, "unit"),
        (b'{"unit": "\\ud800"}', None),
    ],
)
def test_bad_units(local, body, parameter):
    before = local.call("GET", P).json["seq"]
    refused = local.call("POST", f"{P}/decisions", body)
    assert 400 <= refused.status < 500
    assert refused.json.get("parameter") == parameter
    assert local.call("GET", P).json["seq"] == before


def test_a_unit_in_an_experiment_without_the_setting(local):
    local.call("PUT", "/v1/experiments/q", {"arms": ["a", "b"]})
    refused = local.call("POST", "/v1/experiments/q/decisions", {"unit": "ann"})
    assert (refused.status, refused.json["parameter"]) == (422, "unit")
    assert "sticky_for" in refused.json["detail"]
    conflict = local.call("PUT", "/v1/experiments/q", {"arms": ["a", "b"], "sticky_for": 60})
    assert (conflict.status, "sticky_for" in conflict.json["detail"]) == (409, True)
    for value in (0, -1, "60", 1e12):
        assert local.call("PUT", "/v1/experiments/r", STICKY | {"sticky_for": value}).json["parameter"] == "sticky_for"


def test_a_batch(local):
    items = [{"id": "1", "unit": "ann"}, {"unit": "ann", "among": ["b"]}, {"unit": ""}, {"id": "4", "unit": "ann"}]
    answers = local.call("POST", f"{P}/decisions/batch", {"items": items}).json["items"]
    assert [each["status"] for each in answers] == [200, 200, 422, 200]
    decisions = [each["decision"] for each in answers if each["decision"]]
    assert [each["arm"] for each in decisions] == ["a", "b", "b"]
    assert [each.get("repeat", False) for each in decisions] == [False, False, True]
    rewards = [{"id": "4", "value": 1.0}, {"id": decisions[1]["id"], "value": 2.0}]
    learned = local.call("POST", f"{P}/rewards/batch", {"items": rewards}).json["items"]
    assert [(each["status"], each["reward"]["reason"]) for each in learned] == [(200, None), (202, "assignment")]


def test_the_log_has_units_and_repeats(local):
    for k, unit in enumerate(["ann", None, "ann"]):
        decide(local, id=str(k), unit=unit)
        reward(local, str(k), float(k))
    lines = local.call("GET", f"{P}/log").body.splitlines()
    rows = [json.loads(line) for line in lines]
    decided = [(row["unit"], row["repeat"]) for row in rows if row["kind"] == "decided"]
    assert decided == [("ann", False), (None, False), ("ann", True)]
    assert [row["learned"] for row in rows if row["reward"] is not None] == [True, True, False]
    learned = local.call("GET", f"{P}/log?learned=true").body.splitlines()
    assert [json.loads(line)["reward"] for line in learned] == [0.0, 1.0]
    cells = list(csv.DictReader(io.StringIO(local.call("GET", f"{P}/log?format=csv").body.decode())))
    assert [(each["unit"], each["repeat"]) for each in cells if each["kind"] == "decided"] == [
        ("ann", "false"),
        ("", "false"),
        ("ann", "true"),
    ]
    frame = pl.read_parquet(io.BytesIO(local.call("GET", f"{P}/log?format=parquet").body))
    assert frame.filter(pl.col("repeat"))["unit"].to_list() == ["ann"]


def test_pages_and_explanations(local):
    for id in ("first", "second"):
        decide(local, id=id, unit="<ann>")
    reward(local, "first", 1.0)
    reward(local, "second", 2.0)
    explained = local.call("GET", f"{P}/decisions/second").json
    assert (explained["unit"], explained["repeat"], explained["status"]) == ("<ann>", True, "rewarded")
    assert explained["reward"]["reason"] == "assignment"
    person = Person(local)
    page = person.get("/experiments/p/decision?id=second").body.decode()
    assert "&lt;ann&gt;" in page
    assert "<ann>" not in page
    assert "got it again" in page
    assert "was not learned, because another reward of the same unit was" in page
    assert "index" not in page.partition("What was known then")[0].partition('class="verdict"')[2], "no policy chose it"
    assert "keeps it" in person.get("/experiments/p/decision?id=first").body.decode()
    overview = person.get("/experiments/p").body.decode()
    assert "repeats for a unit" in overview
    assert "not learned" in overview
    assert "for 1 min" in overview


def test_the_form(local):
    person = Person(local)
    form = {"name": "made", "arms": "a\nb", "sticky_for": "3600", "unit": "ms"}
    assert person.send("/new", "/new", form).status == 303
    settings = local.call("GET", "/v1/experiments/made").json["settings"]
    assert (settings["sticky_for"], settings["unit"]) == (3600.0, "ms")
    assert "repeats for a unit" in person.get("/experiments/made").body.decode()
    refused = person.send("/new", "/new", form | {"name": "other", "sticky_for": "an hour"})
    assert refused.status == 422
    assert "sticky_for = " in refused.body.decode()
