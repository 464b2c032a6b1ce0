"""PUT, GET and DELETE experiments, their arms, pause, resume and reset."""

import asyncio

import numpy as np
import pytest

from helpers.serving import Clock, Local
from helpers.wrapped_stores import WrappedStore
from robandit.decisions import engine as engines

P = "/v1/experiments/p"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", store=WrappedStore(tmp_path / "robandit.db"), clock=clock) as local:
        yield local


FULL = {
    "arms": ["a", "b"],
    "policy": "EpsilonGreedy(epsilon=0.05)",
    "minimize": True,
    "seed": 7,
    "reward_window": 3600.0,
    "on_expiry": 30.0,
    "max_open": 50,
    "unit": "ms",
    "fallback": "b",
    "floor": 0.02,
    "control": {"a": 0.05},
    "objective": "within:2.0",
}
CHANGED = {
    "arms": ["b", "a"],
    "policy": "EpsilonGreedy(epsilon=0.06)",
    "minimize": False,
    "seed": 8,
    "reward_window": 3601.0,
    "on_expiry": "drop",
    "max_open": 51,
    "unit": "s",
    "fallback": None,
    "floor": 0.03,
    "control": {"b": 0.05},
    "objective": "within:3.0",
}


def test_create(local, clock):
    made = local.call("PUT", P, FULL)
    assert made.status == 201
    policy = made.json["settings"].pop("policy")
    assert policy.startswith("EpsilonGreedy(epsilon=0.05")
    expected = {
        "name": "p",
        "state": "running",
        "created": clock.now,
        "seq": 1,
        "epoch": 0,
        "settings": {name: value for name, value in FULL.items() if name != "policy"},
        "counts": {"decisions": 0, "rewards": 0, "late": 0, "expired": 0, "open": 0},
        "arms": [{"arm": "a", "state": "active", "pulls": 0}, {"arm": "b", "state": "active", "pulls": 0}],
    }
    answer = made.json
    del answer["settings"]["policy"]
    assert answer == expected
    clock.now += 5.0
    again = local.call("PUT", P, FULL)
    assert (again.status, again.body) == (200, made.body)
    assert local.call("PUT", P, FULL | {"policy": "EpsilonGreedy( epsilon = 5e-2 )"}).status == 200


@pytest.mark.parametrize("field", FULL)
def test_other_content_is_a_conflict(local, field):
    local.call("PUT", P, FULL)
    refused = local.call("PUT", P, FULL | {field: CHANGED[field]})
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    without = {name: value for name, value in FULL.items() if name != field}
    assert local.call("PUT", P, without).status == (422 if field in ("arms", "reward_window") else 409)
    assert local.call("PUT", P, FULL).status == 200


def test_defaults(local):
    made = local.call("PUT", P, {"arms": ["a"]}).json
    policy = made["settings"].pop("policy")
    assert policy.startswith("AdaKLUCB(")
    assert made["settings"] == {
        "arms": ["a"],
        "minimize": False,
        "seed": None,
        "reward_window": None,
        "on_expiry": "drop",
        "max_open": 100_000,
        "unit": "",
        "fallback": None,
    }
    explicit = {
        "arms": ["a"],
        "policy": None,
        "minimize": False,
        "seed": None,
        "on_expiry": "drop",
        "max_open": 100_000,
    }
    assert local.call("PUT", P, explicit).status == 200
    assert local.call("PUT", P, {"arms": ["a"], "policy": "AdaKLUCB"}).status == 200


def test_the_settings_are_kept_when_arms_change(local):
    """The same PUT again, as a deployment does at each start, is accepted whatever happened to the arms since."""
    local.call("PUT", P, FULL)
    local.call("POST", f"{P}/arms", {"arm": "c"})
    local.call("PATCH", f"{P}/arms/a", {"state": "retired"})
    local.call("POST", f"{P}/pause")
    again = local.call("PUT", P, FULL)
    assert again.status == 200
    assert again.json["state"] == "paused"
    assert [(arm["arm"], arm["state"]) for arm in again.json["arms"]] == [
        ("a", "retired"),
        ("b", "active"),
        ("c", "active"),
    ]


def played(local, path, rounds):
    """Decide and reward in turn. Return the arms."""
    arms = []
    for _ in range(rounds):
        made = local.call("POST", f"{path}/decisions").json
        local.call("POST", f"{path}/rewards", {"id": made["id"], "value": 1.0})
        arms.append(made["arm"])
    return arms


def test_the_seed_decides(local):
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        body = {"arms": list("abcdef"), "policy": "EpsilonGreedy(epsilon=1)", "seed": seed}
        local.call("PUT", f"/v1/experiments/{name}", body)
    one, two, three = (played(local, f"/v1/experiments/{name}", 30) for name in ("one", "two", "three"))
    assert one == two != three


def test_overview(local):
    assert local.call("GET", "/v1/experiments").json == {"experiments": []}
    made = [local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]}).json for name in ("b", "B", "a")]
    listed = local.call("GET", "/v1/experiments").json["experiments"]
    assert listed == sorted(made, key=lambda each: each["name"])


def test_show(local):
    local.call("PUT", P, {"arms": ["a", "b"], "minimize": True, "seed": 1})
    empty = local.call("GET", P).json
    assert (empty["diagnosis"], empty["warnings"]) == (None, [])
    assert all(arm["mean"] is None for arm in empty["arms"])
    rng = np.random.default_rng(1)
    items = [{"id": str(i), "arm": "ab"[i % 2]} for i in range(1_000)]
    local.call("POST", f"{P}/decisions/batch", {"items": items})
    values = 1.0 + rng.pareto(1.6, 1_000)
    rewards = [{"id": str(i), "value": float(value) * (2.0 if i % 2 else 1.0)} for i, value in enumerate(values)]
    local.call("POST", f"{P}/rewards/batch", {"items": rewards})
    shown = local.call("GET", P).json
    first, second = shown["arms"]
    assert (first["arm"], first["pulls"]) == ("a", 500)
    assert 1.0 < first["mean"] < 5.0 < second["mean"] * 2.0  # costs as they were sent, not negated
    for arm in shown["arms"]:
        low = -np.inf if arm["low"] == "-infinity" else arm["low"]
        high = np.inf if arm["high"] == "infinity" else arm["high"]
        assert low <= arm["mean"] <= high
        assert set(arm["policy"])
    diagnosis = shown["diagnosis"]
    assert diagnosis["leading"] in ("a", "b")
    assert {each["arm"] for each in diagnosis["tails"]} == {"a", "b"}
    tail = diagnosis["tails"][0]["right"]
    assert 1.0 < tail["index"] < 3.0
    assert tail["light"] is False
    assert diagnosis["assumption"]
    assert diagnosis["advice"]
    assert shown["seq"] == 2_001


def test_arms(local):
    local.call("PUT", P, {"arms": ["a", "b"], "seed": 1})
    added = local.call("POST", f"{P}/arms", {"arm": "c"})
    assert added.status == 201
    assert added.json["arms"][-1] == {"arm": "c", "state": "active", "pulls": 0}
    assert local.call("POST", f"{P}/arms", {"arm": "c"}).status == 409
    assert {local.call("POST", f"{P}/decisions").json["arm"] for _ in range(3)} == {"a", "b", "c"}  # explored at once

    def change(arm, state):
        answer = local.call("PATCH", f"{P}/arms/{arm}", {"state": state})
        return answer.status, {
            each["arm"]: each["state"] for each in answer.json["arms"]
        } if answer.status == 200 else {}

    opened = local.call("POST", f"{P}/decisions", {"arm": "a"}).json["id"]
    assert change("a", "paused") == (200, {"a": "paused", "b": "active", "c": "active"})
    seq = local.engine.experiments["p"].seq
    assert change("a", "paused")[0] == 200  # nothing changes
    assert local.engine.experiments["p"].seq == seq
    assert {local.call("POST", f"{P}/decisions").json["arm"] for _ in range(4)} == {"b", "c"}
    assert local.call("POST", f"{P}/rewards", {"id": opened, "value": 5.0}).json["outcome"] == "applied"
    assert change("a", "active")[1]["a"] == "active"
    assert change("b", "retired")[1]["b"] == "retired"
    assert "b" not in {local.call("POST", f"{P}/decisions").json["arm"] for _ in range(6)}
    assert change("b", "active")[0] == change("b", "paused")[0] == 409
    assert change("b", "retired")[0] == 200
    assert change("z", "paused")[0] == 404
    assert change("a", "asleep")[0] == 422
    assert local.call("POST", f"{P}/arms", {"arm": "b"}).status == 409  # its history stays
    assert local.call("GET", P).json["arms"][0]["pulls"] == 1


def test_pause_and_resume(local):
    local.call("PUT", P, {"arms": ["a"]})
    for call, state in (("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("resume", "running")):
        answer = local.call("POST", f"{P}/{call}")
        assert (answer.status, answer.json["state"]) == (200, state)
    assert local.engine.experiments["p"].seq == 3
    for call in ("pause", "resume", "reset"):
        assert local.call("POST", f"/v1/experiments/none/{call}").status == 404


@pytest.mark.parametrize("seed", [1, None])
def test_reset(local, seed):
    local.call("PUT", P, {"arms": ["a", "b"], "policy": "EpsilonGreedy(epsilon=0.5)", "seed": seed})
    local.call("POST", f"{P}/arms", {"arm": "c"})
    local.call("PATCH", f"{P}/arms/b", {"state": "paused"})

    before = played(local, P, 40)
    local.call("POST", f"{P}/decisions")
    answer = local.call("POST", f"{P}/reset").json
    assert answer["epoch"] == 1
    assert answer["counts"] == {"decisions": 0, "rewards": 0, "late": 0, "expired": 0, "open": 0}
    states = [("a", "active", 0), ("b", "paused", 0), ("c", "active", 0)]
    assert [(arm["arm"], arm["state"], arm["pulls"]) for arm in answer["arms"]] == states
    assert local.call("GET", P).json["diagnosis"] is None
    assert (before == played(local, P, 40)) == (seed is not None)  # a seed gives the same choices again
    assert len(local.call("GET", f"{P}/log").body.splitlines()) == answer["seq"] + 80  # the log has it all


def test_delete_and_create_again(local, tmp_path):
    local.call("PUT", P, {"arms": ["a"]})
    local.call("POST", f"{P}/decisions", {"id": "x"})
    answer = local.call("DELETE", P)
    assert (answer.status, answer.body) == (204, b"")
    for call in (
        ("GET", P),
        ("DELETE", P),
        ("GET", f"{P}/log"),
        ("POST", f"{P}/decisions"),
        ("GET", f"{P}/decisions/x"),
    ):
        assert local.call(*call).status == 404
    assert local.call("GET", "/v1/experiments").json["experiments"] == []
    made = local.call("PUT", P, {"arms": ["z"]})
    assert (made.status, made.json["seq"]) == (201, 1)
    assert local.call("POST", f"{P}/rewards", {"id": "x", "value": 1.0}).status == 404
    decided = local.call("POST", f"{P}/decisions", {"id": "x"})
    assert (decided.json["arm"], decided.replayed) == ("z", False)
    rows = local.call("GET", f"{P}/log").body.splitlines()
    assert len(rows) == 2


def test_a_deleted_experiment_stays_deleted_after_a_restart(tmp_path):
    path = tmp_path / "robandit.db"
    with Local(path) as local:
        for name in ("p", "q"):
            local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]})
            local.call("POST", f"/v1/experiments/{name}/decisions", {"id": "x"})
        local.call("DELETE", P)
    with Local(path) as local:
        assert [each["name"] for each in local.call("GET", "/v1/experiments").json["experiments"]] == ["q"]
        local.call("PUT", P, {"arms": ["b"]})
        assert not local.call("POST", f"{P}/decisions", {"id": "x"}).replayed
    with Local(path) as local:
        assert local.call("POST", f"{P}/decisions", {"id": "x"}).json["arm"] == "b"
        assert local.call("GET", P).json["counts"]["decisions"] == 1


def test_a_sweep_leaves_removed_experiments_alone(local, clock, monkeypatch):
    """The sweep lets other calls in between. An event of an experiment that one of them removed would break the log."""
    monkeypatch.setattr(engines, "SWEEP_EVERY", 0.0)
    monkeypatch.setattr("robandit.decisions.experiment.EXPIRED_AT_ONCE", 1)
    local.call("PUT", P, {"arms": ["a"], "reward_window": 1.0})
    local.call("POST", f"{P}/decisions/batch", {"items": [{}] * 200})
    removed = local.engine.experiments["p"]

    async def late_sweep():
        clock.now += 10.0
        sweep = asyncio.ensure_future(local.engine._sweep())
        for _ in range(5):
            await asyncio.sleep(0)
        answer = await local.request("DELETE", P)
        for _ in range(20):
            await asyncio.sleep(0)
        sweep.cancel()
        return answer

    assert local.run(late_sweep()).status == 204
    assert 0 < removed.counts["expired"] < 200
    assert not local.failures
    assert local.call("PUT", P, {"arms": ["a"]}).status == 201


def test_a_floor_and_control_arms_make_propensities_known(local):
    made = local.call("PUT", P, {"arms": ["a", "b", "c"], "floor": 0.06, "control": {"c": 0.1}, "seed": 3})
    assert (made.json["settings"]["floor"], made.json["settings"]["control"]) == (0.06, {"c": 0.1})
    assert made.json["settings"]["policy"] == "AdaKLUCB()"
    chances = {"a": 0.02, "b": 0.02, "c": 0.12}
    counts = dict.fromkeys(chances, 0)
    for _ in range(300):
        decision = local.call("POST", f"{P}/decisions").json
        floor, chosen = chances[decision["arm"]], chances[decision["arm"]] + 0.84
        assert min(abs(decision["propensity"] - each) for each in (floor, chosen)) < 1e-12
        counts[decision["arm"]] += 1
        local.call("POST", f"{P}/rewards", {"id": decision["id"], "value": -1.0 - "abc".index(decision["arm"])})
    assert 12 <= counts["c"] <= 100  # 36 from the floor, with a standard error of 5.6, and its own


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"floor": 1.5}, "floor"),
        ({"floor": 0.0}, "floor"),
        ({"control": {}}, "control"),
        ({"control": {"x": 0.1}}, "control"),
        ({"control": {"a": 0.7}, "floor": 0.4}, "control"),
        ({"floor": 0.1, "policy": "AdaTINF(horizon=1000)"}, "floor"),
        ({"control": {"a": 0.7, "b": 0.4}}, "control"),
    ],
    ids=repr,
)
def test_an_impossible_floor_is_refused_by_name(local, settings, parameter):
    refused = local.call("PUT", P, {"arms": ["a", "b"], **settings})
    assert (refused.status, refused.json["code"]) == (422, "invalid")
    assert refused.json["parameter"].startswith(parameter)
