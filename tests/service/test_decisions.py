"""POST decisions, POST rewards, their batches, and GET decisions/{id}."""

import json

import pytest

from helpers.serving import Clock, Local
from helpers.wrapped_stores import WrappedStore
from robandit import __version__
from robandit.service.routes import ROUTES

P = "/v1/experiments/p"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", store=WrappedStore(tmp_path / "robandit.db"), clock=clock) as local:
        local.call("PUT", P, {"arms": ["a", "b", "c"], "seed": 1})
        yield local


def decide(local, body=None):
    return local.call("POST", f"{P}/decisions", body)


def reward(local, id, value):
    return local.call("POST", f"{P}/rewards", {"id": id, "value": value})


def counts(local):
    return local.call("GET", P).json["counts"]


# --- decisions ----------------------------------------------------------------------------------------------------------------


def test_a_decision(local, clock):
    made = decide(local)
    assert made.status == 200
    assert not made.replayed
    assert "idempotent-replayed" not in made.headers
    assert made.json == {
        "id": made.json["id"],
        "experiment": "p",
        "arm": "a",
        "propensity": None,
        "time": clock.now,
        "seq": 2,
    }
    assert [decide(local, body).json["arm"] for body in ({}, {"id": None, "among": None, "arm": None})] == ["b", "c"]
    assert counts(local) == {"decisions": 3, "rewards": 0, "late": 0, "expired": 0, "open": 3}


BODIES = [
    {"id": "x"},
    {"id": "x", "among": ["b", "c"]},
    {"id": "x", "arm": "c"},
    {"id": "x", "context": {"user": 7, "tags": ["é", None, 1.5], "n": 10**20}},
    {"id": "x", "context": None},
    {"id": "x", "arm": "b", "context": "text"},
]


@pytest.mark.parametrize("body", BODIES)
def test_the_same_id_gives_the_same_bytes(local, clock, body):
    made = decide(local, body)
    clock.now += 100.0
    decide(local)
    again = decide(local, body)
    assert again.replayed
    assert (again.status, again.body) == (made.status, made.body)
    reordered = json.dumps(dict(reversed(body.items())), indent=2).encode()
    assert decide(local, reordered).body == made.body
    reward(local, "x", 1.0)
    assert decide(local, body).body == made.body  # also when it is closed
    assert counts(local)["decisions"] == 2
    for other in BODIES:
        answer = decide(local, other)
        same = other == body or {**other, "context": other.get("context")} == {**body, "context": body.get("context")}
        assert (answer.status, answer.replayed) == ((200, True) if same else (409, False)), other
    conflict = decide(local, {"id": "x", "among": ["a"]})
    assert (conflict.status, conflict.json["code"]) == (409, "conflict")
    assert "use a new id" in conflict.json["detail"]


def test_a_replay_survives_a_restart(tmp_path, clock):
    path = tmp_path / "robandit.db"
    with Local(path, clock=clock) as local:
        local.call("PUT", P, {"arms": ["a", "b"]})
        made = [decide(local, {"id": "x", "context": 1}), decide(local)]
    clock.now += 5.0
    with Local(path, clock=clock) as local:
        assert decide(local, {"id": "x", "context": 1}).body == made[0].body
        again = decide(local, {"id": made[1].json["id"]})  # an id of the server is as good
        assert (again.body, again.replayed) == (made[1].body, True)
        assert counts(local)["decisions"] == 2


def test_among(local):
    assert {decide(local, {"among": ["c"]}).json["arm"] for _ in range(3)} == {"c"}
    assert {decide(local, {"among": ["b", "c"]}).json["arm"] for _ in range(5)} <= {"b", "c"}
    for among, status in ((["missing"], 422), (["a", "missing"], 422), ([], 422), ("a", 422)):
        assert decide(local, {"among": among}).status == status
    local.call("PATCH", f"{P}/arms/c", {"state": "paused"})
    refused = decide(local, {"among": ["c"]})
    assert (refused.status, refused.json["code"]) == (409, "no-arm")


def test_an_observed_choice(local):
    made = decide(local, {"arm": "c", "id": "seen"})
    assert (made.json["arm"], made.json["propensity"]) == ("c", None)
    assert reward(local, "seen", 4.0).json["arm"] == "c"
    assert local.call("GET", f"{P}/decisions/seen").json["observed"] is True
    assert decide(local, {"arm": "missing"}).status == 422
    assert decide(local, {"arm": "a", "among": ["a"]}).json["parameter"] == "arm"
    local.call("POST", f"{P}/pause")
    assert decide(local, {"arm": "b"}).status == 200  # the choice was made; it is only recorded
    assert decide(local).status == 409


def test_a_deterministic_policy_has_no_propensity_and_a_random_one_has(local):
    local.call(
        "PUT",
        "/v1/experiments/greedy",
        {"arms": ["a", "b", "c", "d"], "policy": "EpsilonGreedy(epsilon=0.2)", "seed": 1},
    )
    for i in range(4):
        local.call("POST", "/v1/experiments/greedy/decisions", {"id": str(i), "arm": "abcd"[i]})
        local.call("POST", "/v1/experiments/greedy/rewards", {"id": str(i), "value": float(i)})
    seen = {}
    for _ in range(60):
        made = local.call("POST", "/v1/experiments/greedy/decisions").json
        seen.setdefault(made["arm"], set()).add(made["propensity"])
    assert all(chance == pytest.approx(0.8 + 0.2 / 4) for chance in seen.pop("d"))
    assert seen
    assert all(chance == pytest.approx(0.2 / 4) for chances in seen.values() for chance in chances)


def test_too_many_open_decisions(local):
    local.call("PUT", "/v1/experiments/small", {"arms": ["a"], "max_open": 2})
    small = "/v1/experiments/small/decisions"
    first = local.call("POST", small, {"id": "1"})
    local.call("POST", small)
    refused = local.call("POST", small)
    assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "too-many-open", "1")
    assert local.call("POST", small, {"id": "1"}).body == first.body  # a repetition opens nothing
    local.call("POST", "/v1/experiments/small/rewards", {"id": "1", "value": 1.0})
    assert local.call("POST", small).status == 200


def test_a_paused_experiment_decides_nothing_and_learns(local):
    made = decide(local, {"id": "x"})
    local.call("POST", f"{P}/pause")
    refused = decide(local)
    assert (refused.status, refused.json["code"]) == (409, "paused")
    assert decide(local, {"id": "x"}).body == made.body
    assert reward(local, "x", 1.0).json["outcome"] == "applied"
    local.call("POST", f"{P}/resume")
    assert decide(local).status == 200


def test_no_arm_is_left(local):
    for arm in "abc":
        local.call("PATCH", f"{P}/arms/{arm}", {"state": "paused"})
    assert decide(local).status == 409
    assert local.engine.experiments["p"].seq == 4


# --- rewards ------------------------------------------------------------------------------------------------------------------


def test_a_reward(local, clock):
    id = decide(local).json["id"]
    clock.now += 2.5
    answer = reward(local, id, 0.1)
    assert (answer.status, answer.replayed) == (200, False)
    assert answer.json == {
        "id": id,
        "experiment": "p",
        "arm": "a",
        "value": 0.1,
        "outcome": "applied",
        "reason": None,
        "time": clock.now,
        "seq": 3,
    }
    clock.now += 1.0
    again = reward(local, id, 0.1)
    assert again.replayed
    assert (again.status, again.body) == (200, answer.body)
    conflict = reward(local, id, 0.2)
    assert (conflict.status, conflict.json["code"]) == (409, "conflict")
    assert "0.1" in conflict.json["detail"]
    assert "0.2" in conflict.json["detail"]
    unknown = reward(local, "never made", 0.1)
    assert (unknown.status, unknown.json["code"]) == (404, "unknown-decision")
    assert local.call("POST", "/v1/experiments/other/rewards", {"id": id, "value": 0.1}).status == 404
    assert counts(local) == {"decisions": 1, "rewards": 1, "late": 0, "expired": 0, "open": 0}
    assert local.call("GET", P).json["arms"][0]["pulls"] == 1


@pytest.mark.parametrize("on_expiry", ["drop", -9.5])
def test_a_late_reward_is_recorded_and_not_learned(local, clock, on_expiry):
    w = "/v1/experiments/w"
    local.call("PUT", w, {"arms": ["a"], "reward_window": 60.0, "on_expiry": on_expiry})
    for id in ("in time", "late"):
        local.call("POST", f"{w}/decisions", {"id": id})
    clock.now += 60.0
    assert local.call("POST", f"{w}/rewards", {"id": "in time", "value": 1.0}).json["outcome"] == "applied"
    clock.now += 0.001
    late = local.call("POST", f"{w}/rewards", {"id": "late", "value": 2.0})
    assert (late.status, late.json["outcome"], late.json["reason"], late.json["value"]) == (202, "late", "window", 2.0)
    again = local.call("POST", f"{w}/rewards", {"id": "late", "value": 2.0})
    assert (again.status, again.body, again.replayed) == (202, late.body, True)
    assert local.call("POST", f"{w}/rewards", {"id": "late", "value": 3.0}).status == 409
    shown = local.call("GET", w).json
    assert shown["counts"] == {"decisions": 2, "rewards": 1, "late": 1, "expired": 1, "open": 0}
    assert shown["arms"][0]["pulls"] == (1 if on_expiry == "drop" else 2)
    explained = local.call("GET", f"{w}/decisions/late").json
    assert (explained["status"], explained["expired"], explained["reward"]["outcome"]) == ("expired", clock.now, "late")


def test_a_reward_after_a_reset_is_late(local):
    id = decide(local, {"id": "x"}).json["id"]
    closed = decide(local).json["id"]
    reward(local, closed, 1.0)
    local.call("POST", f"{P}/reset")
    late = reward(local, id, 2.0)
    assert (late.status, late.json["outcome"], late.json["reason"]) == (202, "late", "reset")
    assert reward(local, closed, 1.0).replayed
    assert counts(local) == {"decisions": 0, "rewards": 0, "late": 1, "expired": 0, "open": 0}
    assert decide(local, {"id": "x"}).replayed
    assert local.call("GET", f"{P}/decisions/x").json["status"] == "reset"


# --- batches ------------------------------------------------------------------------------------------------------------------


def test_batches_are_stored_in_one_commit(local):
    store = local.store
    before = len(store.commits)
    items = [{"id": f"d{i}"} for i in range(1_000)]
    made = local.call("POST", f"{P}/decisions/batch", {"items": items})
    assert made.status == 200
    [(events, changes)] = store.commits[before:]
    assert [event.id for event in events] == [f"d{i}" for i in range(1_000)]
    assert not changes
    answers = made.json["items"]
    assert [each["decision"]["id"] for each in answers] == [f"d{i}" for i in range(1_000)]
    assert {(each["status"], each["replayed"], each["problem"]) for each in answers} == {(200, False, None)}
    before = len(store.commits)
    rewards = {"items": [{"id": f"d{i}", "value": float(i)} for i in range(1_000)]}
    made = local.call("POST", f"{P}/rewards/batch", rewards)
    assert [each["reward"]["value"] for each in made.json["items"]] == [float(i) for i in range(1_000)]
    assert len(store.commits) == before + 1
    again = local.call("POST", f"{P}/rewards/batch", rewards)
    assert {(each["status"], each["replayed"]) for each in again.json["items"]} == {(200, True)}
    assert [each["reward"] for each in again.json["items"]] == [each["reward"] for each in made.json["items"]]
    assert len(store.commits) == before + 1
    assert counts(local) == {"decisions": 1_000, "rewards": 1_000, "late": 0, "expired": 0, "open": 0}


def test_a_batch_of_all_kinds(local):
    one = decide(local, {"id": "one"})
    answers = local.call(
        "POST",
        f"{P}/decisions/batch",
        {"items": [{"id": "one"}, {"id": "two"}, {"id": "two"}, {"id": "two", "arm": "a"}, {"arm": "z"}, {}]},
    ).json["items"]
    assert [(each["status"], each["replayed"]) for each in answers] == [
        (200, True), (200, False), (200, True), (409, False), (422, False), (200, False)
    ]  # fmt: skip
    assert answers[0]["decision"] == one.json
    assert answers[1]["decision"] == answers[2]["decision"]
    answers = local.call(
        "POST",
        f"{P}/rewards/batch",
        {
            "items": [
                {"id": "one", "value": 1},
                {"id": "one", "value": 1.0},
                {"id": "one", "value": 2},
                {"id": "no", "value": 1},
            ]
        },
    ).json["items"]
    assert [(each["status"], each["replayed"]) for each in answers] == [
        (200, False), (200, True), (409, False), (404, False)
    ]  # fmt: skip
    assert counts(local)["rewards"] == 1


def test_batches_about_nothing(local):
    for kind, item in (("decisions", {}), ("rewards", {"id": "x", "value": 1.0})):
        assert local.call("POST", f"/v1/experiments/none/{kind}/batch", {"items": [item]}).status == 404
    local.call("POST", f"{P}/pause")
    answers = local.call("POST", f"{P}/decisions/batch", {"items": [{}, {"arm": "a"}]}).json["items"]
    assert [each["status"] for each in answers] == [409, 200]


# --- explanations -------------------------------------------------------------------------------------------------------------


def test_an_explanation_shows_what_was_known_then(local, clock):
    greedy = "/v1/experiments/greedy"
    local.call("PUT", greedy, {"arms": ["a", "b"], "policy": "EpsilonGreedy(epsilon=0.5)", "seed": 3, "minimize": True})
    for i, value in enumerate([4.0, 1.0, 6.0, 3.0]):
        local.call("POST", f"{greedy}/decisions", {"id": f"w{i}", "arm": "ab"[i % 2]})
        local.call("POST", f"{greedy}/rewards", {"id": f"w{i}", "value": value})
    clock.now += 10.0
    made = local.call("POST", f"{greedy}/decisions", {"id": "x", "among": ["a", "b"], "context": {"user": 1}}).json
    decided = clock.now
    then = local.call("GET", greedy).json["arms"]
    clock.now += 10.0
    for i in range(20):  # what comes later must not show
        local.call("POST", f"{greedy}/decisions", {"id": f"y{i}", "arm": "a"})
        local.call("POST", f"{greedy}/rewards", {"id": f"y{i}", "value": 100.0})
    local.call("PATCH", f"{greedy}/arms/b", {"state": "paused"})
    before = local.call("GET", f"{greedy}/decisions/x").json
    local.call("POST", f"{greedy}/rewards", {"id": "x", "value": 2.0})
    explained = local.call("GET", f"{greedy}/decisions/x").json
    assert {name: explained[name] for name in made} == made
    assert (before["status"], before["reward"], before["expired"]) == ("open", None, None)
    assert explained["status"] == "rewarded"
    assert explained["reward"]["value"] == 2.0
    assert explained["reward"]["time"] == clock.now
    assert explained["time"] == decided
    assert explained["version"] == __version__
    assert explained["policy"].startswith("EpsilonGreedy(epsilon=0.5")
    assert explained["among"] == ["a", "b"]
    assert explained["context"] == {"user": 1}
    assert explained["observed"] is False
    assert explained["propensity"] == pytest.approx(0.75 if made["arm"] == "b" else 0.25)
    rows = {row["arm"]: row for row in explained["arms"]}
    assert [(row["arm"], row["state"], row["pulls"]) for row in explained["arms"]] == [
        ("a", "active", 2),
        ("b", "active", 2),
    ]
    assert [row["policy"]["mean"] for row in explained["arms"]] == [5.0, 2.0]
    assert [row["policy"] for row in explained["arms"]] == [row["policy"] for row in then]
    assert rows["a"]["mean"] is None  # no sample of the rewards is kept for each moment
    assert explained["arms"] == before["arms"]


def test_explanations_of_old_and_new_decisions_agree_with_the_moment(tmp_path):
    """The state before a decision is folded from a snapshot or from the beginning, and is the same."""
    with Local(tmp_path / "robandit.db", snapshot_every=7) as local:
        local.call("PUT", P, {"arms": ["a", "b", "c"], "seed": 5})
        seen = {}
        for i in range(30):
            seen[f"d{i}"] = [row["policy"] for row in local.call("GET", P).json["arms"]]
            decide(local, {"id": f"d{i}"})
            if i % 3:
                reward(local, f"d{i}", float(i))
        for id, estimates in seen.items():
            assert [row["policy"] for row in local.call("GET", f"{P}/decisions/{id}").json["arms"]] == estimates


def test_names_that_are_also_parts_of_paths(local):
    """Every fixed part of a path can be the id of a decision, the name of an experiment and the name of an arm."""
    words = sorted({part for route in ROUTES for part in route.segments if not part.startswith("{")})
    assert "batch" in words
    for word in words:
        here = f"/v1/experiments/{word}"
        assert local.call("PUT", here, {"arms": words, "seed": 1}).status == 201
        assert local.call("POST", f"{here}/decisions", {"id": word, "arm": word}).status == 200
        assert local.call("GET", f"{here}/decisions/{word}").json["id"] == word
        assert local.call("PATCH", f"{here}/arms/{word}", {"state": "paused"}).status == 200
        assert local.call("GET", here).json["counts"]["decisions"] == 1
    refused = local.call("PUT", f"{P}/decisions/batch")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, POST")


def test_unknown_decisions_are_not_explained(local):
    assert local.call("GET", f"{P}/decisions/never").status == 404
    assert local.call("GET", "/v1/experiments/none/decisions/x").status == 404
