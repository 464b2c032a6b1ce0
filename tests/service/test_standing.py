"""The standing of an experiment over HTTP: who leads, claims with a cap, what a cap refuses, replays, and the dashboard."""

import numpy as np
import pytest

from helpers.clients import eventually
from helpers.serving import Clock, Local
from helpers.visiting import Person

P = "/v1/experiments/p"
CAPPED = {"arms": ["a", "b"], "policy": "UCB1", "minimize": True, "cap": 10, "reward_window": 600}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        assert local.call("PUT", P, CAPPED).json["settings"]["cap"] == 10.0
        yield local


def filled(local, n=150):
    """Give each arm rewards in batches; those of b are a third of those of a."""
    costs = np.random.default_rng(1).lognormal(size=(2, n))
    costs[1] /= 3.0
    for arm, values in zip("ab", costs.tolist(), strict=True):
        items = [{"id": f"{arm}{k}", "arm": arm} for k in range(n)]
        assert local.call("POST", f"{P}/decisions/batch", {"items": items}).status == 200
        rewards = [{"id": f"{arm}{k}", "value": value} for k, value in enumerate(values)]
        assert local.call("POST", f"{P}/rewards/batch", {"items": rewards}).status == 200


def standing(local):
    answer = local.call("GET", f"{P}/standing")
    assert answer.status == 200
    return answer.json


def test_the_standing_of_an_experiment(local):
    filled(local)
    found = standing(local)
    assert (found["experiment"], found["minimize"], found["cap"], found["rewards"]) == ("p", True, 10.0, 300)
    claim = "b costs less than a (capped at 10), at 95 %, may be looked at any time"
    assert found["statement"] == {"shown": True, "arm": "b", "sentence": claim}
    assert (found["pairs"]["shown"], found["pairs"]["arm"]) == (True, "b")
    assert found["leader"]["arm"] == "b"
    assert found["leader"]["chance"] > 0.99
    assert claim in found["leader"]["sentence"]
    a, b = found["arms"]
    assert (a["arm"], a["state"], a["pulls"]) == ("a", "active", 150)
    assert b["low"] < b["mean"] < a["mean"]


def test_a_restart_changes_nothing(tmp_path):
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, CAPPED)
        filled(local)
        found, snapshot = standing(local), local.engine.experiments["p"].snapshot()
    with Local(tmp_path / "robandit.db") as local:
        assert standing(local) == found
        assert local.engine.experiments["p"].snapshot() == snapshot


def test_without_rewards_it_is_said_in_words(local):
    found = standing(local)
    assert found["leader"] == {
        "arm": None,
        "chance": None,
        "sentence": "No leader yet: a and b have fewer than two costs.",
    }
    assert found["statement"]["shown"] is False
    assert [arm["mean"] for arm in found["arms"]] == [None, None]
    assert found["rewards"] == 0


def test_without_a_cap_there_are_no_claims(local):
    local.call("PUT", "/v1/experiments/free", {"arms": ["a", "b"]})
    found = local.call("GET", "/v1/experiments/free/standing").json
    assert (found["cap"], found["statement"], found["pairs"]) == (None, None, None)
    assert "cap" not in local.call("GET", "/v1/experiments/free").json["settings"]


def test_a_reset_begins_anew(local):
    filled(local)
    local.call("POST", f"{P}/reset")
    assert standing(local)["rewards"] == 0
    assert standing(local)["statement"]["shown"] is False


def test_rewards_that_never_come_do_not_block(local, clock):
    filled(local)
    local.call("POST", f"{P}/decisions", {"id": "open", "arm": "a"})
    filled_more = {"items": [{"id": f"later{k}", "arm": "a"} for k in range(20)]}
    local.call("POST", f"{P}/decisions/batch", filled_more)
    for k in range(20):
        local.call("POST", f"{P}/rewards", {"id": f"later{k}", "value": 1.0})
    experiment = local.engine.experiments["p"]
    assert experiment.bandit.counted().weights[0].sum() == pytest.approx(150.0)
    clock.now += 601.0
    assert local.call("POST", f"{P}/rewards", {"id": "open", "value": 1.0}).status == 202  # late
    assert experiment.bandit.counted().weights[0].sum() == pytest.approx(170.0)


@pytest.mark.parametrize("cap", [0, -1, "high", 1e200])
def test_a_wrong_cap_is_refused(local, cap):
    answer = local.call("PUT", "/v1/experiments/q", CAPPED | {"cap": cap})
    assert answer.status == 422
    assert answer.json["parameter"] == "cap"


def test_another_cap_is_a_conflict(local):
    assert local.call("PUT", P, CAPPED).status == 200
    answer = local.call("PUT", P, CAPPED | {"cap": 20})
    assert answer.status == 409
    assert "cap is 10.0, not 20.0" in answer.json["detail"]


def test_negative_values_are_refused(local):
    answer = local.call("PUT", "/v1/experiments/q", CAPPED | {"on_expiry": -1})
    assert (answer.status, answer.json["parameter"]) == (422, "on_expiry")
    local.call("POST", f"{P}/decisions", {"id": "one", "arm": "a"})
    answer = local.call("POST", f"{P}/rewards", {"id": "one", "value": -1})
    assert answer.status == 422
    assert "cap = 10" in answer.json["detail"]
    assert local.call("POST", f"{P}/rewards", {"id": "one", "value": 1}).status == 200


def test_a_negative_reward_of_an_edge_is_refused_alone(local):
    given = local.call("GET", f"{P}/allocation").json
    arms = dict(zip(given["arms"], given["probabilities"], strict=True))
    arm, chance = max(arms.items(), key=lambda each: each[1])
    items = [
        {
            "id": f"abcdefgh-{k}",
            "arm": arm,
            "propensity": chance,
            "allocation": given["version"],
            "decided": given["made"],
            "value": value,
        }
        for k, value in enumerate([-1.0, 2.0])
    ]
    answer = local.call("POST", f"{P}/observations/batch", {"items": items}).json
    assert answer["learned"] == 1
    assert [each["index"] for each in answer["refused"]] == [0]
    assert answer["refused"][0]["problem"]["parameter"] == "value"


def test_the_page_shows_the_leader_and_the_chances(local):
    filled(local)
    person = Person(local)
    # The page does not wait for a slow study: it then shows none, or an older one.
    eventually(lambda: "chance to have the lowest mean" in person.get("/experiments/p").body.decode())
    page = person.get("/experiments/p").body.decode()
    assert "b leads: its chance to have the lowest mean is " in page
    assert "b costs less than a (capped at 10)" in page
    assert "b beats a in most pairs" in page
    assert "chance to be best" in page
    form = {"name": "capped", "arms": "a\nb", "cap": "30"}
    assert person.send("/new", "/new", form).status == 303
    assert local.call("GET", "/v1/experiments/capped").json["settings"]["cap"] == 30.0
