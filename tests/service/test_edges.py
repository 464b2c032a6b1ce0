"""Edges over HTTP: allocations, batches of observations, what the log and the counts say, replicas, and a server that is killed."""

import http.client
import json
import random
import signal
from contextlib import ExitStack

import pytest

from helpers.amount import amount
from helpers.serving import Clock, Local, Server
from robandit.decisions import replica
from robandit.service import allocations
from robandit.service.dashboard.timeline import Timeline
from robandit.storage import open_store

P = "/v1/experiments/e"
NOW = 1_800_000_000.0


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "robandit.db", clock=Clock()) as local:
        local.call("PUT", P, {"arms": ["a", "b"], "policy": "UCB1()", "reward_window": 100.0})
        yield local


def allocation(server):
    return server.call("GET", f"{P}/allocation").json


def item(made, number, life="edge0001", **fields):
    place = fields.pop("place", made["probabilities"].index(max(made["probabilities"])))
    known = {"arm": made["arms"][place], "propensity": made["probabilities"][place], "allocation": made["version"]}
    return {"id": f"{life}-{number}", "decided": NOW - 1.0, "value": 1.5} | known | fields


def send(server, items):
    answer = server.call("POST", f"{P}/observations/batch", {"items": items})
    assert answer.status == 200, answer
    return answer.json


def numbers_of(answer):
    return [answer[name] for name in ("learned", "late", "expired", "replayed")], [
        (each["index"], each["problem"]["code"]) for each in answer["refused"]
    ]


# --- allocations --------------------------------------------------------------------------------------------------------------


def test_the_answer_and_its_version(local):
    first = local.call("GET", f"{P}/allocation?for=500ms")
    assert first.json == {
        "experiment": "e",
        "version": first.json["version"],
        "arms": ["a", "b"],
        "probabilities": [0.5, 0.5],
        "valid_for": 0.1,
        "made": NOW,
        "decisions": 2,
        "reward_window": 100.0,
    }
    tag = first.headers["etag"]
    assert tag == f'"{first.json["version"]}"'
    again = local.call("GET", f"{P}/allocation", headers={"If-None-Match": tag})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert local.call("GET", f"{P}/allocation", headers={"If-None-Match": '"other"'}).status == 200
    before = local.engine.find("e").bandit.to_bytes()
    local.service._clock.now += 10.0
    local.call("GET", f"{P}/allocation")
    assert local.engine.find("e").bandit.to_bytes() == before


@pytest.mark.parametrize("given", ["", "1", "99ms", "61m", "1d", "-1s", "1e3s", "s"])
def test_a_wrong_time(local, given):
    answer = local.call("GET", f"{P}/allocation?for={given}")
    assert (answer.status, answer.json["code"], answer.json["parameter"]) == (422, "invalid", "for")


def test_experiments_without_an_allocation(local):
    local.call("POST", f"{P}/pause")
    assert local.call("GET", f"{P}/allocation").json["code"] == "paused"
    local.call("POST", f"{P}/resume")
    for arm in "ab":
        local.call("PATCH", f"{P}/arms/{arm}", {"state": "paused"})
    assert local.call("GET", f"{P}/allocation").json["code"] == "no-arm"
    local.call("PUT", "/v1/experiments/weighted", {"arms": ["a", "b"], "policy": "Ada2TINF()"})
    answer = local.call("GET", "/v1/experiments/weighted/allocation")
    assert (answer.status, answer.json["code"]) == (422, "invalid")
    assert "use another policy" in answer.json["detail"]


def test_many_callers_share_one(local):
    async def ask():
        import asyncio

        return await asyncio.gather(*(local.request("GET", f"{P}/allocation") for _ in range(50)))

    assert len({answer.json["version"] for answer in local.run(ask())}) == 1
    assert local.engine.find("e").counts["allocated"] == 1


# --- observations -------------------------------------------------------------------------------------------------------------


def test_a_batch_with_all_kinds_of_items(local):
    made = allocation(local)
    items = [
        item(made, 0),
        item(made, 1, value=None, expired=True),
        item(made, 2, decided=NOW - 101.0),
        item(made, 0),
        item(made, 0, value=2.0),
        item(made, 3, arm="z"),
        item(made, 4, propensity=0.25),
        item(made, 5, allocation="none"),
        item(made, 6, id="short-1"),
        item(made, 6, id="edge0001-6\n"),
        item(made, 7, value=None),
        item(made, 8, expired=True),
        item(made, 9, value=1e-200),
        item(made, 10, more=1),
        7,
    ]
    codes = ["conflict", "invalid", "propensity", "unknown-allocation", *["invalid"] * 7]
    assert numbers_of(send(local, items)) == ([1, 1, 1, 1], list(zip(range(4, 15), codes, strict=True)))
    assert numbers_of(send(local, items))[0] == [0, 0, 0, 5]
    counts = local.call("GET", P).json["counts"]
    assert counts == {"decisions": 3, "rewards": 1, "late": 1, "expired": 2, "open": 0}
    (listed,) = local.call("GET", "/v1/experiments").json["experiments"]
    assert listed["counts"] == counts
    page = local.call("GET", "/metrics").body.decode()
    for outcome, count in {"applied": 2, "late": 1, "replayed": 6, "rejected": 21}.items():
        assert f'kind="observation",outcome="{outcome}"}} {count}\n' in page


def test_a_usual_body_is_decoded_like_any_other(local, monkeypatch):
    made = allocation(local)
    rng, bodies = random.Random(3), []
    changes = [
        {},
        {"value": 0},
        {"value": -1e-131},
        {"value": "1"},
        {"value": 1e151},
        {"expired": False},
        {"id": "edge0001-01"},
        {"propensity": 0.0},
        {"decided": -1.0},
        {"rewarded": NOW},
        {"rewarded": 1e12},
        {"arm": "a:b"},
    ]
    for k in range(amount(40, 400)):
        items = [item(made, 10 * k + n, **rng.choice(changes)) for n in range(4)]
        bodies.append(json.dumps({"items": items}).encode())
    bodies += [
        bodies[0].replace(b'"value": ', b'"value": 3, "value": '),
        json.dumps({"items": [item(made, 9_000, value=7)]}).encode().replace(b" 7", b" 1e-400"),
        json.dumps({"items": [item(made, 9_001, value=7)]}).encode().replace(b" 7", b" 0." + b"0" * 400 + b"1"),
        json.dumps({"items": [item(made, n) for n in range(9_002, 10_003)]}).encode(),
        b'{"items": []}',
        b"{",
    ]
    found = []
    for usual in (allocations.USUAL_BODY, 0):
        monkeypatch.setattr(allocations, "USUAL_BODY", usual)
        found.append([local.call("POST", f"{P}/observations/batch", body).body for body in bodies])
        local.engine.find("e").edges.lives.clear()
    assert found[0] == found[1]
    assert sum(b'"refused":[]' in body for body in found[0]) > 1


def test_the_log_has_a_row_for_each(local):
    made = allocation(local)
    send(local, [item(made, 0), item(made, 1, value=None, expired=True, place=1), item(made, 2, decided=NOW - 200.0)])
    local.call("POST", f"{P}/pause")
    rows = [json.loads(line) for line in local.call("GET", f"{P}/log?after=1").body.splitlines()]
    known = {
        "seq": 3,
        "time": NOW,
        "kind": "observed",
        "propensity": 0.5,
        "context": None,
        "unit": None,
        "repeat": False,
        "part": None,
        "metrics": None,
        "failed": False,
        "x": None,
    }
    assert [row["kind"] for row in rows] == ["allocated", *["observed"] * 4, "paused"]
    assert rows[1:5] == [
        {"id": "edge0001-0", "arm": "a", "reward": 1.5, "learned": True, "decided": NOW - 1.0} | known,
        {"id": "edge0001-1", "arm": "b", "reward": None, "learned": False, "decided": NOW - 1.0} | known,
        {"id": "edge0001-2", "arm": "a", "reward": None, "learned": False, "decided": NOW - 200.0} | known,
        {"id": "edge0001-2", "arm": "a", "reward": 1.5, "learned": False, "decided": NOW - 200.0} | known,
    ]
    learned = local.call("GET", f"{P}/log?learned=true").body.splitlines()
    assert [json.loads(line) for line in learned] == [rows[1]]
    assert len(local.call("GET", f"{P}/log?format=csv").body.splitlines()) == 1 + 7
    for limit, number in ((1, 1), (2, 2), (3, 6), (6, 6), (7, 7)):  # rows of one event stay together
        assert len(local.call("GET", f"{P}/log?limit={limit}").body.splitlines()) == number
    assert local.call("GET", f"{P}/decisions/edge0001-0").status == 404


def test_the_charts_count_them(local):
    made = allocation(local)
    send(local, [item(made, n, place=n % 2) for n in range(40)] + [item(made, 41, value=None, expired=True)])
    experiment = local.engine.find("e")
    timeline = Timeline(experiment, None)
    timeline.catch_up(local.engine.reader, experiment.seq, NOW)
    last = timeline.columns(NOW)[-1]
    assert (last.decisions, last.rewards) == ({"a": 21, "b": 20}, 40)
    page = local.call("GET", "/experiments/e").body.decode()
    assert "Not listed: decisions of edges, and archived ones." in page
    assert "No decisions yet" not in page


def test_a_new_life_of_the_experiment_knows_no_old_allocation(local):
    made = allocation(local)
    send(local, [item(made, 0)])
    local.call("POST", f"{P}/reset")
    assert numbers_of(send(local, [item(made, 0), item(made, 1)])) == (
        [0, 0, 0, 0],
        [(0, "unknown-allocation"), (1, "unknown-allocation")],
    )
    assert local.call("GET", P).json["counts"]["decisions"] == 0
    newer = allocation(local)
    local.call("DELETE", P)
    assert local.call("POST", f"{P}/observations/batch", {"items": [item(newer, 0)]}).status == 404
    local.call("PUT", P, {"arms": ["a", "b"], "policy": "UCB1()"})
    assert numbers_of(send(local, [item(newer, 0)]))[1] == [(0, "unknown-allocation")]


def test_snapshots_are_taken_by_the_work_and_not_by_the_number_of_events(tmp_path):
    with Local(tmp_path / "robandit.db", clock=Clock(), snapshot_every=500) as local:
        local.call("PUT", P, {"arms": ["a", "b"], "policy": "UCB1()"})
        made = allocation(local)
        for k in range(4):
            send(local, [item(made, 1_000 * k + n) for n in range(1_000)])
        assert len(local.engine.reader.snapshots(1)) >= 1


# --- replicas, and the end of a process ------------------------------------------------------------------------------------------


def test_replicas_count_an_edge_once(postgres_url, monkeypatch):
    monkeypatch.setattr(replica, "PULSE", 1e6)
    with ExitStack() as stack:
        servers = [stack.enter_context(Local(None, store=open_store(postgres_url, durability="off"))) for _ in range(2)]
        servers[0].call("PUT", P, {"arms": ["a", "b"], "policy": "UCB1()"})
        made = allocation(servers[0])
        assert allocation(servers[1])["version"] == made["version"]
        rng, counted = random.Random(4), set()
        for k in range(20):
            first = rng.randrange(300)
            items = [item(made, n, life=f"edge000{k % 2}", decided=0.0) for n in range(first, first + 120)]
            answer = send(servers[rng.randrange(2)], items)
            new = {each["id"] for each in items} - counted
            assert (answer["learned"], answer["replayed"]) == (len(new), 120 - len(new))
            counted |= new
        snapshots = []
        for server in servers:
            assert server.call("GET", P).json["counts"]["decisions"] == len(counted)
            snapshots.append(server.engine.find("e").snapshot().content)
        assert snapshots[0] == snapshots[1]
        servers[1].call("POST", f"{P}/reset")
        assert numbers_of(send(servers[0], [item(made, 999)]))[1] == [(0, "unknown-allocation")]


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path):
    """An edge repeats what was not answered. Each decision counts once."""
    path, sent, answered = tmp_path / "robandit.db", 0, 0
    rng = random.Random(5)
    made, batches = None, []
    for _ in range(amount(2, 12)):
        with Server(path) as server, ExitStack() as stack:
            server.call("PUT", P, {"arms": ["a", "b"], "policy": "UCB1()"})
            made = made or allocation(server)
            for batch in batches:
                answer = send(server, batch)
                assert answer["learned"] + answer["replayed"] == len(batch)
            answered = sum(map(len, batches))
            assert server.call("GET", P).json["counts"]["decisions"] == answered
            for _ in range(rng.randrange(1, 6)):
                size = rng.choice([1, 99, 250])
                batches.append([item(made, n, decided=0.0) for n in range(sent, sent + size)])
                sent += size
                if rng.random() < 0.5:
                    assert send(server, batches[-1])["learned"] == size
                else:  # killed while it works
                    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
                    stack.callback(connection.close)
                    connection.request("POST", f"{P}/observations/batch", json.dumps({"items": batches[-1]}))
            server.stop(signal.SIGKILL)
    assert answered > 0
