"""GET log: the same rows in three formats, and `robandit diagnose` and `replay` that read it."""

import asyncio
import csv
import io
import json
import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from helpers.serving import Clock, Local, Server
from helpers.typed import typed
from robandit.service import logs

P = "/v1/experiments/p"
ODD = [0.1, 1 / 3, -0.0, 1e150, -1e150, 1e-130, 2.0**53 + 1, math.pi, 5e-100, 123456789.123456789]
COLUMNS = [
    "seq",
    "time",
    "kind",
    "id",
    "arm",
    "reward",
    "learned",
    "propensity",
    "decided",
    "context",
    "unit",
    "repeat",
    "part",
    "metrics",
    "failed",
    "x",
]


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A log with every kind of event."""
    clock = Clock(1_800_000_000.123456)
    with Local(tmp_path_factory.mktemp("log") / "robandit.db", clock=clock) as local:
        body = {"arms": ["a", 'é,"\n'[:3]], "minimize": True, "reward_window": 60.0, "on_expiry": 7.5, "seed": 1}
        body |= {"policy": "EpsilonGreedy(epsilon=0.3)", "metrics": ["error", 'é,"']}
        assert local.call("PUT", P, body).status == 201
        for i, value in enumerate(ODD):
            clock.now += 0.1
            context = [None, {"k": [1, "é\n", None]}, "text", 0, [], 'x,y"z'][i % 6]
            local.call("POST", f"{P}/decisions", {"id": f"d,{i}", "context": context})
            clock.now += 1 / 3
            given = {} if i else {"metrics": {"error": 1, 'é,"': 0.1}}
            assert local.call("POST", f"{P}/rewards", {"id": f"d,{i}", "value": value} | given).status == 200
        local.call("POST", f"{P}/decisions", {"id": "late"})
        clock.now += 61.0
        assert local.call("POST", f"{P}/rewards", {"id": "late", "value": 4.25}).status == 202
        local.call("POST", f"{P}/arms", {"arm": "c"})
        local.call("PATCH", f"{P}/arms/c", {"state": "paused"})
        local.call("PATCH", f"{P}/arms/c", {"state": "active"})
        local.call("PATCH", f"{P}/arms/c", {"state": "retired"})
        local.call("POST", f"{P}/pause")
        local.call("POST", f"{P}/resume")
        local.call("POST", f"{P}/decisions", {"id": "open"})
        assert local.call("POST", f"{P}/rewards", {"id": "open", "value": 3, "final": False, "part": "x"}).status == 200
        local.call("POST", f"{P}/reset")
        assert local.call("POST", f"{P}/rewards", {"id": "open", "value": 1.5}).status == 202
        yield local


def from_ndjson(body):
    return [json.loads(line) for line in body.splitlines()]


def from_csv(body):
    def cell(name, text):
        if name in ("id", "kind"):
            return text
        if text == "":
            return None
        if name == "seq":
            return int(text)
        if name in ("learned", "repeat", "failed"):
            return {"true": True, "false": False}[text]
        if name in ("context", "metrics", "x"):
            return json.loads(text)
        return text if name in ("arm", "unit", "part") else float(text)

    lines = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert lines[0] == COLUMNS
    return [{name: cell(name, text) for name, text in zip(COLUMNS, line, strict=True)} for line in lines[1:]]


def from_parquet(body):
    frame = pl.read_parquet(io.BytesIO(body))
    assert frame.columns == COLUMNS
    texts = ("context", "metrics", "x")
    return [
        row | {name: None if row[name] is None else json.loads(row[name]) for name in texts} for row in frame.to_dicts()
    ]


READERS = {"ndjson": from_ndjson, "csv": from_csv, "parquet": from_parquet}
MEDIA = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


def exact(rows):
    """Rows with floats that compare bit by bit."""
    return [{k: v.hex() if isinstance(v, float) else v for k, v in row.items()} for row in rows]


def test_every_event_is_a_row(local):
    rows = from_ndjson(local.call("GET", f"{P}/log").body)
    assert [list(row) for row in rows] == [COLUMNS] * len(rows)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    kinds = [row["kind"] for row in rows]
    assert kinds == [
        "created", *["decided", "rewarded"] * len(ODD), "decided", "expired", "late", "arm_added", "arm_paused",
        "arm_resumed", "arm_retired", "paused", "resumed", "decided", "added", "reset", "late",
    ]  # fmt: skip
    rewarded = [row for row in rows if row["kind"] == "rewarded"]
    assert [row["reward"].hex() for row in rewarded] == [value.hex() for value in ODD]
    assert all(row["learned"] for row in rewarded)
    decided = [row for row in rows if row["kind"] == "decided"]
    assert [row["context"] for row in decided[:6]] == [None, {"k": [1, "é\n", None]}, "text", 0, [], 'x,y"z']
    for decision, reward in zip(decided, rewarded, strict=False):
        assert reward["id"] == decision["id"]
        assert reward["arm"] == decision["arm"]
        assert reward["decided"] == decision["time"]
        assert reward["propensity"] == decision["propensity"]
    assert any(row["propensity"] for row in decided)
    expired = next(row for row in rows if row["kind"] == "expired")
    assert (expired["reward"], expired["learned"], expired["id"]) == (7.5, True, "late")
    assert [row["metrics"] for row in rewarded[:2]] == [{"error": 1.0, 'é,"': 0.1}, None]
    (added,) = (row for row in rows if row["kind"] == "added")
    assert (added["id"], added["part"], added["reward"], added["learned"]) == ("open", "x", 3.0, False)
    late = [row for row in rows if row["kind"] == "late"]
    assert [(row["reward"], row["learned"]) for row in late] == [(4.25, False), (1.5, False)]
    times = [row["time"] for row in rows]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "query",
    ["", "after=3", "after=3&limit=5", "limit=0", "limit=1", "after=1000", "learned=true", "learned=true&after=5&limit=3",
     "learned=false&limit=7", "after=0&limit=999999999999999999"],
)  # fmt: skip
def test_all_formats_have_the_same_rows(local, query):
    answers = {name: local.call("GET", f"{P}/log?format={name}&{query}") for name in READERS}
    for name, answer in answers.items():
        assert answer.status == 200
        assert answer.headers["content-type"] == MEDIA[name]
        assert answer.headers["robandit-minimize"] == "true"
        assert answer.headers["robandit-seq"] == str(local.engine.experiments["p"].seq)
        assert answer.headers["content-disposition"] == f'attachment; filename="p.{name}"'
    rows = {name: exact(READERS[name](answer.body)) for name, answer in answers.items()}
    assert rows["csv"] == rows["parquet"] == rows["ndjson"]
    whole = exact(from_ndjson(local.call("GET", f"{P}/log").body))
    given = dict(part.split("=") for part in query.split("&")) if query else {}
    expected = [row for row in whole if row["seq"] > int(given.get("after", 0))]
    expected = [row for row in expected if row["learned"] or given.get("learned") != "true"]
    assert rows["ndjson"] == expected[: int(given.get("limit", 10**18))]


def test_pages_join(local, monkeypatch):
    whole = local.call("GET", f"{P}/log").body
    monkeypatch.setattr(logs, "PAGE", 4)
    assert local.call("GET", f"{P}/log").body == whole
    expected = exact(from_ndjson(whole))
    for name in ("csv", "parquet"):
        assert exact(READERS[name](local.call("GET", f"{P}/log?format={name}").body)) == expected
    learned = from_ndjson(local.call("GET", f"{P}/log?learned=true&limit=3").body)
    assert [row["kind"] for row in learned] == ["rewarded"] * 3
    rows, after = [], 0
    while page := from_ndjson(local.call("GET", f"{P}/log?after={after}&limit=5").body):
        rows += page
        after = page[-1]["seq"]
    assert exact(rows) == expected


def test_long_contexts_are_sent_in_parts():
    """What a client has not read yet takes memory."""

    async def rows():
        yield b"a" * (3 * logs.PART + 1)
        yield b"b"

    async def sent():
        return [part async for part in logs._counted(SimpleNamespace(streams=0), rows())]

    parts = asyncio.run(sent())
    assert b"".join(parts) == b"a" * (3 * logs.PART + 1) + b"b"
    assert max(map(len, parts)) == logs.PART


def test_the_log_of_a_new_experiment(local):
    local.call("PUT", "/v1/experiments/new", {"arms": ["a"]})
    for name, read in READERS.items():
        answer = local.call("GET", f"/v1/experiments/new/log?format={name}")
        assert [row["kind"] for row in read(answer.body)] == ["created"]
        assert answer.headers["robandit-minimize"] == "false"
        assert read(local.call("GET", f"/v1/experiments/new/log?format={name}&learned=true").body) == []
    local.call("DELETE", "/v1/experiments/new")


def test_the_log_of_nothing(local):
    assert local.call("GET", "/v1/experiments/none/log").status == 404


def test_what_comes_after_the_call_is_not_in_the_answer(local):
    seq = local.engine.experiments["p"].seq
    answer = local.call("GET", f"{P}/log?after={seq}")
    assert (answer.body, answer.headers["robandit-seq"]) == (b"", str(seq))


def test_commands_read_the_log_of_a_server(tmp_path):
    rng = np.random.default_rng(3)
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        for name, minimize in (("costs", True), ("gains", False)):
            path = f"/v1/experiments/{name}"
            server.call(
                "PUT", path, {"arms": ["slow", "fast"], "minimize": minimize, "policy": "EpsilonGreedy(epsilon=0.5)"}
            )
            items = [{"id": str(i)} for i in range(300)]
            made = server.call("POST", f"{path}/decisions/batch", {"items": items}).json["items"]
            values = 1.0 + rng.pareto(2.5, 300)
            rewards = [
                {
                    "id": each["decision"]["id"],
                    "value": float(value) * (3.0 if each["decision"]["arm"] == "slow" else 1.0),
                }
                for each, value in zip(made, values, strict=True)
            ]
            server.call("POST", f"{path}/rewards/batch", {"items": rewards})
        (tmp_path / "costs.jsonl").write_bytes(
            server.call("GET", "/v1/experiments/costs/log?format=ndjson&learned=true").body
        )
        printed, _ = typed("diagnose", "costs.jsonl", "--minimize", cwd=tmp_path)
        assert "300 costs of 2 arms, minimised" in printed
        few = ("--policy", "UCB1", "--policy", "EpsilonGreedy", "--horizon", "100", "--replications", "2")
        printed, _ = typed("replay", "costs.jsonl", "--minimize", *few, "--threads", "1", cwd=tmp_path)
        assert "UCB1" in printed
        assert "cost" in printed
        assert (tmp_path / "costs-replay" / "report.html").exists()
