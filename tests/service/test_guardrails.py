"""Metrics, guardrails and amounts over HTTP: settings, rewards, what answers and the log say, and the dashboard."""

import json

import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person, words

P = "/v1/experiments/p"
GUARDED = {
    "arms": ["a", "b"],
    "policy": "UCB1",
    "metrics": ["cost"],
    "guardrails": [
        {"metric": "error", "at_most": 0.05},
        {"metric": "latency_ms", "quantile": 0.95, "at_most": 2000, "alpha": 0.01},
    ],
}


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "robandit.db", clock=Clock()) as local:
        assert local.call("PUT", P, GUARDED).status == 201
        yield local


def decide(local, **body):
    return local.call("POST", f"{P}/decisions", body).json["id"]


def reward(local, **body):
    return local.call("POST", f"{P}/rewards", body)


def break_guardrail(local, arm="b", count=4):
    for _ in range(count):
        last = reward(local, id=decide(local, arm=arm), value=1.0, metrics={"error": True, "cost": 2})
    return last


def log(local):
    return [json.loads(line) for line in local.call("GET", f"{P}/log").body.splitlines()]


def test_the_settings(local):
    settings = local.call("GET", P).json["settings"]
    assert settings["metrics"] == ["cost"]
    assert settings["guardrails"] == [
        {"metric": "error", "at_most": 0.05, "quantile": None, "alpha": 0.05},
        {"metric": "latency_ms", "at_most": 2000.0, "quantile": 0.95, "alpha": 0.01},
    ]
    assert local.call("PUT", P, GUARDED).status == 200
    assert local.call("PUT", P, GUARDED | {"guardrails": None}).status == 409


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"guardrails": [{"metric": "error", "at_most": 5}]}, "guardrails"),
        ({"guardrails": [{"metric": "error", "at_most": 0.05, "quantil": 0.5}]}, "guardrails[0]"),
        ({"guardrails": [{"metric": "error", "at_most": 0.05}] * 2}, "guardrails[1]"),
        ({"guardrails": [{"metric": "error"}]}, "guardrails[0]"),
        ({"guardrails": {"error": 0.05}}, "guardrails"),
        ({"metrics": ["a", "a"]}, "metrics[1]"),
        ({"metrics": [""]}, "metrics"),
        ({"metrics": "error"}, "metrics"),
    ],
)
def test_bad_settings_are_refused(local, body, parameter):
    refused = local.call("PUT", "/v1/experiments/q", {"arms": ["a"]} | body)
    assert (refused.status, refused.json["parameter"]) == (422, parameter)


def test_a_guardrail_without_a_limit_is_told_so(local):
    refused = local.call("PUT", "/v1/experiments/q", {"arms": ["a"], "guardrails": [{"metric": "error"}]})
    assert refused.json["detail"] == "guardrails[0]: at_most is missing: this call needs it"
    rails = [{"metric": "ms", "quantile": 95, "at_most": 2}]
    refused = local.call("PUT", "/v1/experiments/q", {"arms": ["a"], "guardrails": rails})
    assert refused.json["detail"] == "guardrails[0]: quantile = 95 must be a number (> 0, < 1) or null"


def test_an_arm_that_breaks_a_guardrail_is_paused_with_the_reason(local):
    assert break_guardrail(local).json["metrics"] == {"error": 1.0, "cost": 2.0}
    shown = local.call("GET", P).json
    a, b = shown["arms"]
    assert (a["state"], b["state"]) == ("active", "paused")
    assert "reason" not in a
    assert b["reason"] == "paused by guardrail: error 100 % of 4, at most 5 %"
    assert b["metrics"] == {
        "cost": {"count": 4, "mean": 2.0},
        "error": {"count": 4, "mean": 1.0},
        "latency_ms": {"count": 0, "mean": None},
    }
    assert any("'b' is paused by its guardrail (error 100 % of 4" in each for each in shown["warnings"])
    row = log(local)[-1]
    assert (row["kind"], row["arm"]) == ("arm_paused", "b")
    assert row["metrics"]["guardrail"]["share"] == 1.0
    assert log(local)[-2]["metrics"] == {"error": 1.0, "cost": 2.0}
    break_guardrail(local, "a")
    a = local.call("GET", P).json["arms"][0]
    assert (a["state"], a["reason"]) == ("active", "breaks its guardrail: error 100 % of 4, at most 5 %")
    assert local.call("PATCH", f"{P}/arms/b", {"state": "active"}).status == 200
    assert [arm["state"] for arm in local.call("GET", P).json["arms"]] == ["paused", "active"]


def test_failures_have_metrics(local):
    body = {"arms": ["a", "b"], "minimize": True, "deadline": 30, "guardrails": GUARDED["guardrails"]}
    assert local.call("PUT", "/v1/experiments/d", body).status == 201
    for _ in range(4):
        id = local.call("POST", "/v1/experiments/d/decisions", {"arm": "b"}).json["id"]
        failed = local.call("POST", "/v1/experiments/d/failures", {"id": id, "metrics": {"error": 1}})
        assert (failed.status, failed.json["metrics"]) == (200, {"error": 1.0})
    assert local.call("GET", "/v1/experiments/d").json["arms"][1]["state"] == "paused"


def test_a_batch_may_pause_an_arm(local):
    items = [{"id": decide(local, arm="b"), "value": 1, "metrics": {"error": 1}} for _ in range(5)]
    made = local.call("POST", f"{P}/rewards/batch", {"items": items}).json["items"]
    assert [each["status"] for each in made] == [200] * 5
    assert local.call("GET", P).json["arms"][1]["state"] == "paused"


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"metrics": {"eror": 1}}, "metrics"),
        ({"metrics": {"error": 2}}, "metrics['error']"),
        ({"metrics": {"error": "1"}}, "metrics"),
        ({"metrics": [1]}, "metrics"),
        ({"final": False}, "part"),
        ({"part": "x"}, "part"),
        ({"final": False, "part": "a/b"}, "part"),
        ({"final": False, "part": "x", "metrics": {"error": 0}}, "metrics"),
        ({"final": 0}, "final"),
    ],
)
def test_bad_rewards_are_refused(local, body, parameter):
    refused = reward(local, id=decide(local), value=1.0, **body)
    assert (refused.status, refused.json["parameter"]) == (422, parameter)
    assert [row["kind"] for row in log(local)] == ["created", "decided"]


def test_amounts(local):
    id = decide(local, id="x/y")
    added = reward(local, id=id, value=10, final=False, part="usage")
    assert (added.status, added.json["outcome"], added.json["part"], added.json["id"]) == (200, "added", "usage", id)
    again = reward(local, id=id, value=10, final=False, part="usage")
    assert (again.json, again.replayed) == (added.json, True)
    assert reward(local, id=id, value=11, final=False, part="usage").status == 409
    made = reward(local, id=id, value=-4)
    assert (made.json["value"], made.json["total"], made.json["outcome"]) == (-4.0, 6.0, "applied")
    assert reward(local, id=id, value=-4).replayed
    assert reward(local, id=id, value=10, final=False, part="usage").json == added.json
    assert reward(local, id=id, value=1, final=False, part="late").status == 409
    assert [(row["kind"], row["id"], row["part"], row["reward"], row["learned"]) for row in log(local)[2:]] == [
        ("added", id, "usage", 10.0, False),
        ("rewarded", id, None, 6.0, True),
    ]
    assert local.call("GET", f"{P}/decisions/x%2Fy").json["reward"]["total"] == 6.0


def test_pages(local):
    break_guardrail(local)
    person = Person(local)
    page = words(person.get("/experiments/p").body)
    assert "paused by guardrail: error 100 % of 4, at most 5 %" in page
    assert "latency_ms above 2000 in at most 5 %" in page


def test_the_form(local):
    person = Person(local)
    filled = {"name": "f", "arms": "a\nb", "metrics": "cost, tokens"}
    for wrong in ("error", "[]", '{"metric": "error"}', '[{"metric": "error"}]', "[" * 10_000):
        page = person.send("/new", "/new", filled | {"guardrails": wrong})
        assert page.status == 422
        assert 'aria-invalid="true"' in page.body.decode()
    assert person.send("/new", "/new", filled | {"guardrails": json.dumps(GUARDED["guardrails"])}).status == 303
    settings = local.call("GET", "/v1/experiments/f").json["settings"]
    assert settings["metrics"] == ["cost", "tokens"]
    assert settings["guardrails"] == local.call("GET", P).json["settings"]["guardrails"]
