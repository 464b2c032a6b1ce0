"""Deadlines over HTTP: the settings, failures, time-outs, what answers and the log say, edges and the dashboard."""

import json

import pytest

from helpers.serving import Clock, Local
from helpers.visiting import Person

P = "/v1/experiments/p"
SETTINGS = {"arms": ["a", "b", "c"], "policy": "UCB1", "minimize": True, "deadline": 30}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        made = local.call("PUT", P, SETTINGS | {"failure_cost": 45})
        assert (made.json["settings"]["deadline"], made.json["settings"]["failure_cost"]) == (30.0, 45.0)
        yield local


def decide(local, **body):
    return local.call("POST", f"{P}/decisions", body).json


def reward(local, id, value):
    return local.call("POST", f"{P}/rewards", {"id": id, "value": value})


def fail(local, id):
    return local.call("POST", f"{P}/failures", {"id": id})


def rows(local):
    return [json.loads(line) for line in local.call("GET", f"{P}/log").body.splitlines()]


def arms(local):
    return {arm["arm"]: arm for arm in local.call("GET", P).json["arms"]}


def test_a_failure_costs_the_failure_cost_and_counts_once(local, clock):
    first, second = decide(local), decide(local)
    clock.now += 0.1
    failed = fail(local, first["id"])
    assert (failed.status, failed.json["value"], failed.json["failed"]) == (200, 45.0, True)
    assert fail(local, first["id"]).json == failed.json
    assert reward(local, first["id"], 3.0).status == 409
    assert reward(local, second["id"], 3.0).json["outcome"] == "applied"
    assert fail(local, second["id"]).status == 409
    assert fail(local, "unknown").status == 404
    shown = local.call("GET", P).json
    assert (shown["counts"]["rewards"], shown["counts"]["failures"]) == (2, 1)
    known = {arm["arm"]: (arm["failures"], arm["timeouts"], arm["policy"]["mean"]) for arm in shown["arms"]}
    assert known == {first["arm"]: (1, 0, 45.0), second["arm"]: (0, 0, 3.0), "c": (0, 0, None)}
    learned = [row for row in rows(local) if row["kind"] == "rewarded"]
    assert [(row["reward"], row["failed"]) for row in learned] == [(45.0, True), (3.0, False)]


def test_an_open_decision_times_out_at_the_next_call(local, clock):
    old = decide(local)
    clock.now += 30.1
    decide(local)
    expired = [row for row in rows(local) if row["kind"] == "expired"]
    assert [(row["id"], row["reward"], row["learned"]) for row in expired] == [(old["id"], 45.0, True)]
    again = fail(local, old["id"])  # after its time-out, it has its cost
    assert (again.status, again.json["value"]) == (200, 45.0)
    late = reward(local, old["id"], 29.0)
    assert (late.status, late.json["outcome"], late.json["reason"]) == (202, "late", "window")
    assert arms(local)[old["arm"]]["timeouts"] == 1
    assert arms(local)[old["arm"]]["pulls"] == 1
    other = decide(local)
    clock.now += 31.0
    assert fail(local, other["id"]).status == 200  # as the first call after the deadline
    assert arms(local)[other["arm"]]["timeouts"] == 1


def test_an_explanation_has_the_ages_of_its_time(local, clock):
    for _ in range(6):
        reward(local, decide(local)["id"], 1.0)
    waiting = decide(local)
    clock.now += 20.0  # in which nothing happens
    other = decide(local)
    assert other["arm"] != waiting["arm"]
    clock.now += 5.0
    told = local.call("GET", f"{P}/decisions/{other['id']}").json
    known = {arm["arm"]: arm["policy"]["waiting"] for arm in told["arms"]}
    assert known[waiting["arm"]] > 1.0
    assert known[other["arm"]] == 0.0


def test_batches_and_long_rewards(local):
    ids = [decide(local)["id"] for _ in range(3)]
    body = {"items": [{"id": ids[0]}, {"id": "unknown"}, {"id": ids[0]}, {"id": 5}]}
    made = local.call("POST", f"{P}/failures/batch", body)
    assert [item["status"] for item in made.json["items"]] == [200, 404, 200, 422]
    assert [item["replayed"] for item in made.json["items"]] == [False, False, True, False]
    rewards = {"items": [{"id": ids[1], "value": 900.0}, {"id": ids[2], "value": -1.0}]}
    made = local.call("POST", f"{P}/rewards/batch", rewards).json["items"]
    assert [item["status"] for item in made] == [200, 422]
    assert made[1]["problem"]["parameter"] == "value"
    assert [(arm["failures"], arm["timeouts"]) for arm in arms(local).values()] == [(1, 0), (0, 1), (0, 0)]
    (warning,) = local.call("GET", P).json["warnings"]
    assert warning.startswith("1 of 2 rewards are above the deadline (30 seconds)")


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"minimize": False}, "deadline"),
        ({"sticky_for": 60}, "deadline"),
        ({"policy": "GaussianTS"}, "deadline"),
        ({"policy": "Restarting"}, "deadline"),
        ({"reward_window": 60}, "reward_window"),
        ({"on_expiry": 60}, "on_expiry"),
        ({"policy": None, "objective": "within:2"}, "objective"),
        ({"failure_cost": 20}, "failure_cost"),
        ({"deadline": 0}, "deadline"),
        ({"deadline": None, "failure_cost": 20}, "failure_cost"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(local, settings, parameter):
    made = local.call("PUT", "/v1/experiments/other", SETTINGS | settings)
    assert (made.status, made.json["parameter"]) == (422, parameter)


def test_without_a_deadline_there_are_no_failures(local):
    local.call("PUT", "/v1/experiments/plain", {"arms": ["a", "b"]})
    id = local.call("POST", "/v1/experiments/plain/decisions").json["id"]
    assert local.call("POST", "/v1/experiments/plain/failures", {"id": id}).status == 409
    assert "failures" not in local.call("GET", "/v1/experiments/plain").json["arms"][0]
    amount = {"id": decide(local)["id"], "value": 1.0, "final": False, "part": "x"}
    refused = local.call("POST", f"{P}/rewards", amount)
    assert (refused.status, refused.json["parameter"]) == (422, "final")


def test_edges_report_long_times_and_decisions_that_failed(local, clock):
    made = local.call("GET", f"{P}/allocation").json
    assert made["reward_window"] == 30.0
    share = made["probabilities"][0]
    observed = {"arm": "a", "propensity": share, "allocation": made["version"], "decided": clock.now}
    clock.now += 100.0  # it was away for long, but the first request took 2 s
    ends = ({"value": 2.0}, {"value": 31.0}, {"expired": True}, {"value": -1.0})
    items = [observed | {"id": f"k3m9qd2x7wfa-{k}"} | end for k, end in enumerate(ends)]
    counted = local.call("POST", f"{P}/observations/batch", {"items": items}).json
    assert (counted["learned"], counted["late"], counted["expired"]) == (2, 0, 1)
    assert [each["index"] for each in counted["refused"]] == [3]
    arm = arms(local)["a"]
    assert (arm["pulls"], arm["timeouts"]) == (3, 2)
    assert arm["policy"]["mean"] == pytest.approx((2.0 + 45.0 + 45.0) / 3.0)


def test_the_dashboard_shows_failures_and_time_outs(local, clock):
    first, second = decide(local), decide(local)
    fail(local, first["id"])
    clock.now += 31.0
    decide(local)
    person = Person(local)
    page = person.get("/experiments/p").body.decode()
    assert "<th" in page
    for words in (
        "failures",
        "time-outs",
        "a failure or a time-out costs 45 s",
        ">failed<",
        ">timed out<",
        "cost of a failure is learned",
        "have both",
    ):
        assert words in page
    assert second["id"]
