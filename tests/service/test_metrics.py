"""Guarantee 4: nothing is lost silently. /metrics counts every call, and received = applied + replayed + late + rejected."""

import asyncio
import math
import random

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.amount import amount
from helpers.serving import Clock, Local
from helpers.wrapped_stores import WrappedStore
from robandit.service import health, studies
from robandit.service.metrics import Histogram, Metrics

P = "/v1/experiments/p"
OUTCOMES = {"applied", "replayed", "late", "rejected"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(tmp_path, clock):
    with Local(tmp_path / "robandit.db", store=WrappedStore(tmp_path / "robandit.db"), clock=clock) as local:
        yield local


def read(local):
    """Return the samples as name -> labels -> value, after a check of the whole page."""
    answer = local.call("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        assert family.documentation.endswith(".")
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in values.setdefault(sample.name, {}), "each series occurs once"
            values[sample.name][labels] = sample.value
            assert family.type in ("counter", "gauge", "histogram")
    return values


def series(values, name, **labels):
    return values[name][tuple(sorted(labels.items()))]


def outcomes(values, experiment, kind):
    return {
        outcome: series(values, "robandit_calls_total", experiment=experiment, kind=kind, outcome=outcome)
        for outcome in OUTCOMES
    }


def check_balance(values):
    assert {dict(labels)["outcome"] for labels in values["robandit_calls_total"]} == OUTCOMES
    for labels, received in values["robandit_calls_received_total"].items():
        answered = outcomes(values, dict(labels)["experiment"], dict(labels)["kind"])
        assert sum(answered.values()) == received, labels


def check_histogram(values, name, **labels):
    """Check that the buckets grow up to the count. Return the count and the sum."""
    buckets = [
        (float(dict(each)["le"]), value)
        for each, value in values[f"{name}_bucket"].items()
        if {key: text for key, text in each if key != "le"} == labels
    ]
    limits, counts = zip(*buckets, strict=True)
    assert list(limits) == sorted(limits)
    assert limits[-1] == math.inf
    assert list(counts) == sorted(counts)
    count = series(values, f"{name}_count", **labels)
    assert counts[-1] == count
    return count, series(values, f"{name}_sum", **labels)


def test_counts_of_each_outcome(local, clock):
    local.call("PUT", P, {"arms": ["a"], "reward_window": 60.0})
    for body in ({"id": "x"}, {"id": "x"}, {"id": "y"}, {"arm": "z"}, b"{", {"id": "x", "arm": "a"}):
        local.call("POST", f"{P}/decisions", body)
    clock.now += 30.0
    for body in (
        {"id": "x", "value": 1},
        {"id": "x", "value": 1},
        {"id": "x", "value": 2},
        {"id": "?", "value": 1},
        {},
    ):
        local.call("POST", f"{P}/rewards", body)
    clock.now += 50.0
    local.call("POST", f"{P}/rewards", {"id": "y", "value": 1})
    local.call("POST", f"{P}/rewards", {"id": "y", "value": 1})
    local.call("POST", f"{P}/rewards/batch", {"items": []})
    local.call("POST", "/v1/experiments/none/rewards", {"id": "y", "value": 1})
    local.call("POST", "/v1/experiments/none/decisions/batch", {"items": [{}, {}, {}]})
    values = read(local)
    check_balance(values)
    assert outcomes(values, "p", "decision") == {"applied": 2, "replayed": 1, "late": 0, "rejected": 3}
    assert outcomes(values, "p", "reward") == {"applied": 1, "replayed": 2, "late": 1, "rejected": 4}
    assert outcomes(values, "", "reward")["rejected"] == 1
    assert outcomes(values, "", "decision")["rejected"] == 3
    assert check_histogram(values, "robandit_reward_delay_seconds", experiment="p") == (2, 110.0)


def random_call(rng, ids):
    """Return a call, good or bad, single or batched."""

    def decision():
        named = {"id": f"c{rng.randrange(40)}"}
        return rng.choice([{}, {"arm": "a"}, {"among": ["b", "c"]}, {"arm": "missing"}, {"id": ""}, named, 7])

    def reward():
        id = rng.choice([*ids[-30:], "missing", f"c{rng.randrange(40)}"])
        return rng.choice(
            [{"id": id, "value": rng.choice([1.0, 2.0, 1e200, "x", None])}, {"id": id, "value": 1.0}, {"id": id}]
        )

    path = rng.choice([P, P, P, "/v1/experiments/q", "/v1/experiments/none"])
    kind, make = rng.choice([("decisions", decision), ("rewards", reward)])
    if rng.random() < 0.4:
        return (
            "POST",
            f"{path}/{kind}/batch",
            rng.choice(
                [{"items": [make() for _ in range(rng.randrange(1, 8))]}] * 6 + [{"items": []}, b"{", {"items": 1}]
            ),
        )
    body = make()
    return "POST", f"{path}/{kind}", rng.choice([body] * 9 + [b"nonsense"])


async def expire_all(engine):
    for experiment in engine.experiments.values():
        while experiment.expire_due():
            await engine.settled()


@pytest.mark.parametrize("seed", amount([1], range(1, 20)))
def test_the_balance_holds_after_anything(local, clock, seed):
    rng = random.Random(seed)
    for name in ("p", "q"):
        local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b", "c"], "reward_window": 60.0, "max_open": 30})
    ids, received = ["x"], 0

    def note(answer, body):
        nonlocal received
        items = answer.json.get("items") if answer.status == 200 else None
        if items is None and answer.status == 200:
            items = [{"decision": answer.json if "propensity" in answer.json else None}]
        ids.extend(each["decision"]["id"] for each in items or () if each.get("decision"))
        sent = body.get("items") if isinstance(body, dict) and "items" in body else None
        received += len(sent) if isinstance(sent, list) and sent else 1

    for _ in range(150):
        call = random_call(rng, ids)
        note(local.call(*call), call[2])
        if rng.random() < 0.05:
            clock.now += rng.choice([1.0, 61.0])
        if rng.random() < 0.03:
            local.call("POST", f"{P}/{rng.choice(['pause', 'resume', 'reset'])}")

    async def at_once():
        calls = [random_call(rng, ids) for _ in range(64)]
        return calls, await asyncio.gather(*(local.request(*call) for call in calls))

    for call, answer in zip(*local.run(at_once()), strict=True):
        note(answer, call[2])
    local.run(expire_all(local.engine))  # otherwise the server does, at any moment of what follows
    values = read(local)
    check_balance(values)
    assert sum(values["robandit_calls_received_total"].values()) == received
    for name in ("p", "q"):
        totals = local.engine.reader.events(local.engine.experiments[name].number, 0, 10**6)
        kinds = [event.kind for event in totals]
        assert outcomes(values, name, "decision")["applied"] == kinds.count("decided")
        assert outcomes(values, name, "reward")["applied"] == kinds.count("rewarded")
        assert outcomes(values, name, "reward")["late"] == kinds.count("late")
        count, _ = check_histogram(values, "robandit_reward_delay_seconds", experiment=name)
        assert count == kinds.count("rewarded") + kinds.count("late")
        opened = series(values, "robandit_open_decisions", experiment=name)
        assert opened == local.engine.experiments[name].bandit.open_count
        assert opened == local.call("GET", f"/v1/experiments/{name}").json["counts"]["open"]
    if seed == 1:  # every outcome occurs
        assert min(min(outcomes(values, "p", "reward").values()), outcomes(values, "p", "decision")["replayed"]) > 0
    commits = [len(events) for events, _ in local.store.commits]
    assert check_histogram(values, "robandit_commit_events") == (len(commits), sum(commits))
    count, seconds = check_histogram(values, "robandit_commit_seconds")
    assert count == len(commits)
    assert seconds > 0.0
    assert series(values, "robandit_waiting_events") == 0


def test_answers_by_status(local):
    read(local)
    before = read(local)["robandit_answers_total"]
    local.call("GET", "/nothing")
    local.call("GET", "/healthz")
    after = read(local)["robandit_answers_total"]

    def growth(status):
        labels = (("status", status),)
        return after.get(labels, 0) - before.get(labels, 0)

    assert growth("404") == 1
    assert growth("200") == 2  # with the first reading


def test_rejected_by_a_failed_store(local):
    local.call("PUT", P, {"arms": ["a"]})
    known = local.call("POST", f"{P}/decisions").json["id"]
    local.store.gate.clear()

    async def failing():
        calls = [local.request("POST", f"{P}/decisions") for _ in range(5)]
        calls += [local.request("POST", f"{P}/decisions/batch", {"items": [{}, {}]})]
        calls += [local.request("POST", f"{P}/rewards", {"id": known, "value": 1.0})]
        answers = asyncio.gather(*calls)
        await asyncio.sleep(0.05)
        local.store.broken = True
        local.store.gate.set()
        return await answers

    assert {answer.status for answer in local.run(failing())} == {503}
    assert local.call("POST", f"{P}/decisions").status == 503
    values = read(local)
    check_balance(values)
    assert outcomes(values, "p", "decision") == {"applied": 1, "replayed": 0, "late": 0, "rejected": 8}
    assert outcomes(values, "p", "reward")["rejected"] == 1


def test_counters_start_anew_with_an_experiment(local):
    local.call("PUT", P, {"arms": ["a"]})
    local.call("POST", f"{P}/decisions")
    local.call("DELETE", P)
    values = read(local)
    assert {dict(labels)["experiment"] for labels in values["robandit_calls_total"]} == {""}
    local.call("PUT", P, {"arms": ["a"]})
    local.call("POST", f"{P}/decisions/batch", {"items": [{}, {}]})
    values = read(local)
    assert outcomes(values, "p", "decision")["applied"] == 2


def test_the_tail_index(local, monkeypatch):
    monkeypatch.setattr(studies, "PAUSE", 0.0)
    monkeypatch.setattr(health, "PATIENCE", 120.0)  # a new process compiles first
    for name in ("heavy", "light", "empty"):
        local.call("PUT", f"/v1/experiments/{name}", {"arms": ["a"]})
    rng = np.random.default_rng(2)
    for name, rewards in (("heavy", rng.pareto(1.3, 1_000)), ("light", rng.normal(size=1_000))):
        path = f"/v1/experiments/{name}"
        local.call("POST", f"{path}/decisions/batch", {"items": [{"id": str(i)} for i in range(1_000)]})
        items = [{"id": str(i), "value": float(reward)} for i, reward in enumerate(rewards)]
        local.call("POST", f"{path}/rewards/batch", {"items": items})
    values = read(local)["robandit_tail_index"]
    assert {dict(labels)["experiment"] for labels in values} == {"heavy", "light"}
    assert 1.0 < values[("experiment", "heavy"),] < 2.0
    assert values[("experiment", "light"),] == math.inf
    shown = local.call("GET", "/v1/experiments/heavy").json["diagnosis"]["tails"][0]
    assert values[("experiment", "heavy"),] == min(
        tail["index"] for tail in (shown["left"], shown["right"]) if tail is not None and not tail["light"]
    )


def test_labels_are_escaped():
    page = Metrics().text({"robandit_x": ("About x.", [({"a": 'q"\\\nz'}, math.nan), ({"a": "b"}, -math.inf)])})
    [family] = [each for each in text_string_to_metric_families(page) if each.name == "robandit_x"]
    assert family.samples[0].labels == {"a": 'q"\\\nz'}
    assert math.isnan(family.samples[0].value)
    assert family.samples[1].value == -math.inf


def test_a_histogram_counts_a_limit_in_its_bucket():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.add(value)
    assert (histogram.counts, histogram.total) == ([2, 2, 1], 14.0)
