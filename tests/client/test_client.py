"""Both clients against a real server: decisions, rewards, batches, times, errors, and a service that is away for a while."""

import asyncio
import json
import math
import os
import re
import signal
import threading
import time

import pytest

from helpers.clients import PATIENT, clients, cut, eventually, gives_up_after, restore
from helpers.fault_proxy import FaultProxy
from helpers.invalid import raises
from helpers.serving import Server
from robandit import Number, errors
from robandit_client import AsyncClient, Client, Report, values
from robandit_client.core import Availability
from robandit_client.outbox import MOST_BYTES, MOST_ITEMS, Outbox, chunks
from robandit_client.wires import finished

LIMITS = PATIENT | {"cooldown": 30.0}
QUICK = {"timeout": 0.3, "connect_timeout": 0.2, "read_timeout": 0.2, "cooldown": 30.0}  # no call must succeed


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "robandit.db"
    with Server(path, "--relaxed-durability", authenticate=True) as server:
        yield server


@pytest.fixture(params=["blocking", "asyncio"])
def make(request):
    """A function that makes a client."""
    with clients(request.param) as make:
        yield make


@pytest.fixture
def client(make, server):
    with make(server.url, server.key, timeout=60.0) as client:  # the first `show` waits until the server has compiled
        yield client


@pytest.fixture
def line(server):
    """A way to the server that can be cut."""
    with FaultProxy(server.host, server.port, seed=1, share=0.0) as proxy:
        yield proxy


@pytest.fixture
def name(request):
    """A name for the experiment of this test."""
    return re.sub(r"\W", "-", request.node.name).strip("-")


def log_of(server, name):
    rows = server.call("GET", f"/v1/experiments/{name}/log").body.splitlines()
    return [row for row in map(json.loads, rows) if row["kind"] in ("decided", "rewarded", "late")]


# --- decisions and rewards ----------------------------------------------------------------------------------------------


def test_three_lines(client, server, name):
    provider = client.create(name, ["a", "b", "c"], minimize=True)
    decision = provider.decide()
    reward = provider.reward(decision, 0.83)
    assert (decision.experiment, decision.arm, decision.fallback, decision.seq) == (name, "a", False, 2)
    assert abs(decision.time - time.time()) < 60
    assert (reward.id, reward.value, reward.outcome) == (decision.id, 0.83, "applied")
    assert provider.show()["counts"] == {"decisions": 1, "rewards": 1, "late": 0, "expired": 0, "open": 0}
    assert [(row["id"], row["reward"]) for row in log_of(server, name)] == [(decision.id, None), (decision.id, 0.83)]


def test_calls_can_be_repeated(client, name):
    client.create(name, ["a", "b"], policy="UCB1", seed=1)
    provider = client.create(name, ["a", "b"], policy="UCB1", seed=1)
    with raises(errors.Conflict, parameter="name"):
        client.create(name, ["a", "c"])
    first = provider.decide(id="order-17", context={"region": "eu"})
    assert provider.decide(id="order-17", context={"region": "eu"}) == first
    assert provider.reward("order-17", 1.5) == provider.reward(first, 1.5)
    with raises(errors.Conflict, parameter="value"):
        provider.reward(first, 2)
    with raises(errors.Conflict, parameter="id"):
        provider.decide(id="order-17")
    assert provider.show()["counts"]["rewards"] == 1


def test_among_and_arm(client, server, name):
    provider = client.create(name, ["a", "b", "c"])
    assert provider.decide(among=["c"]).arm == "c"
    observed = provider.decide(arm="b", id="mine")
    assert (observed.arm, observed.id, observed.fallback) == ("b", "mine", False)
    explained = server.call("GET", f"/v1/experiments/{name}/decisions/mine").json
    assert explained["observed"]


def test_a_unit_keeps_its_arm(client, server, name):
    provider = client.create(name, ["a", "b", "c"], policy="UCB1", unit="ms", sticky_for=3600.0)
    first, other, again = (provider.decide(unit=unit) for unit in ("ann", "bob", "ann"))
    assert [(each.arm, each.repeat) for each in (first, other, again)] == [("a", False), ("b", False), ("a", True)]
    assert [provider.reward(each, 1.0).outcome for each in (first, again)] == ["applied", "late"]
    many = provider.decide_many([{"unit": "bob"}, {"unit": "cy"}])
    assert [(each.arm, each.repeat) for each in many] == [("b", True), ("c", False)]
    assert [row["arm"] for row in log_of(server, name) if row.get("unit") == "ann"] == ["a", "a"]
    with raises(errors.InvalidInput, parameter="unit"):
        provider.decide(unit="ann", arm="a")
    with raises(errors.InvalidInput, parameter="unit"):
        provider.decide(unit="")
    with raises(errors.Conflict, parameter="name"):
        client.create(name, ["a", "b", "c"], policy="UCB1", unit="ms")
    with raises(errors.InvalidInput, parameter="unit", match="sticky_for"):
        client.create(f"{name}-plain", ["a", "b"]).decide(unit="ann")


RAILS = [{"metric": "error", "at_most": 0.05}]


def test_metrics_and_guardrails(client, server, name):
    provider = client.create(name, ["a", "b"], metrics=["cost"], guardrails=RAILS)
    decisions = [provider.decide(arm="b") for _ in range(6)]
    metrics = {"error": True, "cost": 0.5}
    assert provider.reward(decisions[0], 1.0, metrics=metrics) == provider.reward(decisions[0], 1.0, metrics=metrics)
    with raises(errors.Conflict, parameter="metrics"):
        provider.reward(decisions[0], 1.0)
    provider.reward_many([(decisions[1], 1.0, {"error": 1}), (decisions[2], 1.0)])
    assert provider.show()["arms"][1]["state"] == "active"
    provider.reward_many([(each, 1.0, {"error": 1}) for each in decisions[3:]])
    shown = provider.show()["arms"][1]
    assert (shown["state"], shown["reason"]) == ("paused", "paused by guardrail: error 100 % of 4, at most 5 %")
    assert shown["metrics"]["cost"] == {"count": 1, "mean": 0.5}
    with raises(errors.InvalidInput, parameter="metrics", match="did you mean 'error'"):
        provider.reward(provider.decide(), 1.0, metrics={"eror": 1})


def test_failures_have_metrics(client, name):
    provider = client.create(name, ["a", "b"], minimize=True, deadline=30.0, guardrails=RAILS)
    for _ in range(4):
        decision = provider.decide(arm="b")
        assert provider.fail(decision, metrics={"error": 1}).value == 30.0
    assert provider.show()["arms"][1]["state"] == "paused"
    with pytest.raises(errors.InvalidInput, match="metric"):
        provider.fail(decision, metrics={"error": "1"})


def test_amounts(client, server, name):
    provider = client.create(name, ["a", "b"])
    decision = provider.decide()
    assert provider.reward(decision, 10.0, final=False, part="usage").outcome == "added"
    assert provider.reward(decision, 10.0, final=False, part="usage").outcome == "added"
    provider.reward(decision, 1.0, final=False)
    provider.reward(decision, 1.0, final=False)  # another amount: its name is new
    with raises(errors.Conflict, parameter="value"):
        provider.reward(decision, 9.0, final=False, part="usage")
    made = provider.reward(decision, -2.0)
    assert (made.value, made.outcome) == (-2.0, "applied")
    assert [row["reward"] for row in log_of(server, name) if row["learned"]] == [10.0]


def test_amounts_that_were_kept_are_delivered_before_the_final_reward(make, line, server, name):
    with make(line.url, server.key, **LIMITS) as client:
        provider = client.create(name, ["a", "b"], metrics=["error"])
        decision = provider.decide()
        cut(line, client)
        assert provider.reward(decision, 5.0, final=False, part="x").outcome == "kept"
        assert provider.reward(decision, 5.0, final=False, part="x").outcome == "kept"
        with raises(errors.Conflict):
            provider.reward(decision, 6.0, final=False, part="x")
        assert provider.reward(decision, 1.0, final=False).outcome == "kept"
        assert provider.reward(decision, 2.0, metrics={"error": 0}).outcome == "kept"
        assert len(client.waiting) == 3
        restore(line, client)
        client.flush(30.0)
    assert [(row["reward"], row["metrics"]) for row in log_of(server, name) if row["learned"]] == [
        (8.0, {"error": 0.0})
    ]


def test_the_fallback_of_a_unit_is_reported_without_it(make, line, server, name):
    with make(server.url, server.key) as client:
        client.create(name, ["a", "b"], sticky_for=60.0)
    with make(line.url, server.key, fallback="b", **LIMITS) as client:
        cut(line, client)
        decision = client.experiment(name).decide(unit="ann")
        assert (decision.arm, decision.fallback, decision.repeat) == ("b", True, False)
        restore(line, client)
        client.flush(30.0)
    assert [(row["arm"], row["unit"]) for row in log_of(server, name)] == [("b", None)]


def test_the_standing(client, name):
    provider = client.create(name, ["a", "b"], minimize=True, cap=30.0)
    decisions = provider.decide_many([{"arm": arm} for arm in "ab" * 60])
    provider.reward_many(zip(decisions, [9.0, 3.0] * 60, strict=True))
    found = provider.standing()
    assert (found["leader"]["arm"], found["cap"], found["rewards"]) == ("b", 30.0, 120)
    assert found["statement"]["sentence"] == "b costs less than a (capped at 30), at 95 %, may be looked at any time"
    with raises(errors.NotFound, code="unknown-experiment"):
        client.experiment(f"{name}-unknown").standing()


def test_contexts_and_explanations(client, server, name):
    features = {"tokens": Number(log=True), "region": {"type": "category", "values": ["eu", "us"]}}
    router = client.create(name, ["a", "b"], policy="LinUCB", minimize=True, features=features)
    assert router.show()["settings"]["features"]["tokens"] == Number(log=True).to_dict()
    first = router.decide(context={"tokens": 900, "region": "eu", "user": "ann"})
    others = router.decide_many([{"context": {"tokens": 9, "region": "us"}}])
    router.reward_many([(first, 3.0), (others[0], 1.0)])
    explained = router.explain(first)
    assert explained["features"] == {"intercept": 1.0, "tokens": 0.0, "region=eu": 1.0, "region=us": 0.0}
    assert explained["context"]["user"] == "ann"
    assert [set(arm["policy"]) for arm in explained["arms"]] == [{"mean", "width", "chance"}] * 2
    assert router.explain(others[0].id)["reward"]["value"] == 1.0
    for context in (None, {"tokens": 0, "region": "eu"}):
        with raises(errors.InvalidInput, code="invalid"):
            router.decide(context=context)
    with raises(errors.NotFound, code="unknown-decision"):
        router.explain("no such/decision")
    if isinstance(client, Client):
        with raises(errors.Conflict, code="no-allocation", match="decide"):
            client.edge(name)


def test_a_fallback_is_learned_with_its_context(make, line, server, name):
    features = {"region": {"type": "category", "values": ["eu", "us"]}}
    with make(line.url, server.key, fallback="b", **LIMITS) as client:
        router = client.create(name, ["a", "b"], policy="LinUCB", features=features)
        cut(line)
        decision = router.decide(context={"region": "us"})
        assert (decision.arm, decision.fallback) == ("b", True)
        router.reward(decision, 1.0)
        restore(line)
        client.flush(timeout=30.0)
        explained = router.explain(decision)
    assert (explained["observed"], explained["features"]["region=us"], explained["status"]) == (True, 1.0, "rewarded")


def test_floats_keep_their_bits(client, server, name):
    provider = client.create(name, ["a"])
    sent = [0.1, 1 / 3, -5e-130, 1e150, 0.0, 2**53 + 1.0, 123456.789e-20]
    decisions = provider.decide_many(len(sent))
    provider.reward_many(zip(decisions, sent, strict=True))
    assert [row["reward"] for row in log_of(server, name) if row["kind"] == "rewarded"] == sent


def test_batches(client, name):
    provider = client.create(name, ["a", "b"])
    decisions = provider.decide_many(2_100)
    assert len({decision.id for decision in decisions}) == 2_100
    rewards = provider.reward_many([(decision.id, 1.0) for decision in decisions])
    assert {reward.outcome for reward in rewards} == {"applied"}
    assert [reward.id for reward in rewards] == [decision.id for decision in decisions]
    assert provider.show()["counts"]["rewards"] == 2_100
    made = provider.decide_many([{"id": "x", "context": [1]}, {"among": ["b"]}, {"arm": "b"}])
    assert (made[0].id, made[1].arm, made[2].arm) == ("x", "b", "b")
    assert provider.decide_many(0) == provider.reward_many([]) == []


def test_a_rejected_item_does_not_affect_the_others(client, name):
    provider = client.create(name, ["a", "b"])
    with pytest.raises(errors.BatchError, match=r"1 of 3 decisions failed; the first one: .*'z'") as caught:
        provider.decide_many([{"id": "1"}, {"id": "2", "among": ["z"]}, {"id": "3"}])
    first, second, third = caught.value.answers
    assert (first.id, third.id) == ("1", "3")
    assert isinstance(second, errors.InvalidInput)
    with pytest.raises(errors.BatchError, match="1 of 2 rewards failed; the first one: decision 'none'") as caught:
        provider.reward_many([("none", 1.0), (first, 2.0)])
    assert isinstance(caught.value.answers[0], errors.NotFound)
    assert caught.value.answers[1].outcome == "applied"


def test_errors_of_the_service(client, make, server, name):
    with raises(errors.NotFound, code="unknown-experiment", match=r"create it with client\.create\(name, arms\)$"):
        client.experiment("no-such").decide()
    with raises(errors.NotFound, code="unknown-experiment"):  # one reason for all items, so it is that error
        client.experiment("no-such").decide_many(3)
    provider = client.create(name, ["a"])
    with raises(errors.NotFound, code="unknown-decision"):
        provider.reward("unknown", 1.0)
    with raises(errors.InvalidInput, code="invalid", parameter="arm"):
        provider.decide(arm="z")
    server.call("POST", f"/v1/experiments/{name}/pause")
    with raises(errors.Conflict, code="paused"):
        provider.decide(fallback="a")  # a decision that is refused is not one that cannot be made
    for key in (None, "rb_wrong"):
        code, way_out = (
            ("no-key", "pass a key to") if key is None else ("unknown-key", "check the key that you passed to")
        )
        refused = raises(errors.AccessDenied, parameter="key", code=code, match=rf"{way_out} Client\(url, key\)$")
        with make(server.url, key) as stranger, refused:
            stranger.experiment(name).decide(fallback="a")


def test_wrong_arguments_are_rejected_before_anything_is_sent(make):
    client = make("http://127.0.0.1:1", timeout=0.1)
    provider = client.experiment("p", fallback="a")
    for wrong in (float("nan"), float("inf"), 1e151, 1e-131, 10**400):
        with pytest.raises(errors.InvalidReward, match=r"reward = .* must be a finite number"):
            provider.reward("x", wrong)
    for wrong in ("12", b"12", None, True, [1.0]):
        with raises(errors.InvalidReward, parameter="reward", rule="a number"):
            provider.reward("x", wrong)
    for wrong in (float("nan"), float("-inf")):
        with pytest.raises(errors.InvalidReward, match="; skip it, or give a failure a finite cost"):
            provider.reward("x", wrong)
    for wrong in ("", "\n", "x" * 201, "\u00e9", 5):
        with raises(errors.InvalidInput, parameter="id"):
            provider.decide(id=wrong)
    for wrong in (object(), float("nan"), "\ud800", {"a": {1}}):
        with raises(errors.InvalidInput, parameter="context", rule="of the types of JSON: dict, list, str"):
            provider.decide(context=wrong)
    with raises(errors.InvalidInput, parameter="context", rule="at most 65,536 bytes of JSON"):
        provider.decide(context="x" * 70_000)
    with pytest.raises(errors.InvalidInput, match="exclude each other"):
        provider.decide(arm="a", among=["a"])
    with raises(errors.InvalidInput, parameter="among"):
        provider.decide(among="ab")
    with raises(errors.InvalidInput, parameter="fallback", rule="one of the arms in among"):
        provider.decide(among=["b"])
    with raises(errors.InvalidInput, parameter="fallback"):
        provider.decide(fallback="")
    with raises(errors.InvalidInput, parameter="requests"):
        provider.decide_many(-1)
    with raises(errors.InvalidInput, parameter="request"):
        provider.decide_many([{"ids": "x"}])
    with raises(errors.InvalidInput, parameter="decision"):
        provider.reward(values.Decision("x", "a", "q", None, 0.0, 1), 1.0)
    with raises(errors.InvalidInput, parameter="arms"):
        client.create("p", "ab")
    assert client.waiting == ()
    client.close()


def test_wrong_metrics_and_amounts_are_rejected_before_anything_is_sent(make):
    with make("http://127.0.0.1:1") as client:
        reward = client.experiment("e").reward
        for wrong in ({"error": math.nan}, {"error": "1"}, {"": 1}, [1], {"error": 10**400}):
            with pytest.raises(errors.InvalidInput, match="metric"):
                reward("id", 1.0, metrics=wrong)
        with raises(errors.InvalidInput, parameter="part"):
            reward("id", 1.0, part="x")
        with raises(errors.InvalidInput, parameter="part"):
            reward("id", 1.0, final=False, part="a/b")
        with raises(errors.InvalidInput, parameter="metrics"):
            reward("id", 1.0, final=False, metrics={"error": 0})
        with raises(errors.InvalidInput, parameter="final"):
            reward("id", 1.0, final=0)
        assert client.waiting == ()


@pytest.mark.parametrize(
    ("option", "value"),
    [("timeout", 0.0), ("connect_timeout", -1), ("read_timeout", "1"), ("cooldown", float("inf")), ("timeout", True)]
    + [("max_waiting", 0), ("max_waiting", 1.5), ("fallback", ""), ("fallback", 1)],
)
def test_wrong_options_are_rejected(make, option, value):
    with raises(errors.InvalidInput, parameter=option):
        make("http://127.0.0.1:1", **{option: value})


def test_the_key_is_not_shown(make):
    with make("http://127.0.0.1:1", "rb_secret", timeout=0.5) as client:
        assert "secret" not in repr(client)
        with pytest.raises(errors.ServiceUnavailable) as caught:
            client.experiment("p").decide()
    assert "secret" not in str(caught.value)
    assert "http://127.0.0.1:1 cannot be reached: Connection refused" in str(caught.value)


def test_the_limits_are_those_of_the_service():
    from robandit.decisions import experiment
    from robandit.kernel import loops
    from robandit.service import bodies

    assert experiment.LONGEST_ID == values.LONGEST_ID
    assert bodies.LONGEST_CONTEXT == values.LONGEST_CONTEXT
    assert bodies.MOST_ITEMS == MOST_ITEMS
    assert (loops.LARGEST_REWARD, loops.SMALLEST_REWARD) == (values.LARGEST_REWARD, values.SMALLEST_REWARD)


# --- times --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [True, False])
def test_times_are_rewards(client, server, name, minimize):
    client.create(name, ["a", "b"], minimize=minimize)
    provider = client.experiment(name)  # it does not know yet whether the rewards are costs
    start = time.perf_counter()
    with provider.timed(context="x") as decision:
        time.sleep(0.02)
    longest = time.perf_counter() - start
    (value,) = [row["reward"] for row in log_of(server, name) if row["kind"] == "rewarded"]
    assert 0.02 <= (value if minimize else -value) <= longest
    assert decision.arm == "a"


def test_a_block_that_fails(client, server, name):
    provider = client.create(name, ["a", "b"], minimize=True)
    with pytest.raises(ZeroDivisionError), provider.timed():
        1 / 0  # noqa: B018
    assert provider.show()["counts"] == {"decisions": 1, "rewards": 0, "late": 0, "expired": 0, "open": 1}
    with pytest.raises(ZeroDivisionError), provider.timed(on_error=30.0):
        1 / 0  # noqa: B018
    assert [row["reward"] for row in log_of(server, name)][2:] == [30.0]
    with pytest.raises(errors.InvalidReward), provider.timed(on_error=float("nan")):
        raise AssertionError("not reached")


def test_a_block_that_fails_keeps_its_error_if_the_reward_cannot_be_sent(client, server, name):
    provider = client.create(name, ["a", "b"], minimize=True)
    with pytest.raises(KeyError) as caught, provider.timed(on_error=30.0):
        raise KeyError(server.call("DELETE", f"/v1/experiments/{name}").status)
    assert "the reward of on_error was not sent: " in caught.value.__notes__[0]


def test_times_need_the_service_once(make, line, server, name):
    with make(line.url, server.key, fallback="a", **LIMITS) as client:
        client.create(name, ["a", "b"], minimize=True)
        cut(line, client)
        timed = client.experiment(name).timed()
        with pytest.raises(errors.ServiceUnavailable, match="pass minimize= to experiment"):
            timed.__enter__()
        with client.experiment(name, minimize=True).timed() as decision:
            assert decision.fallback
        restore(line, client)
    assert [row["kind"] for row in log_of(server, name)] == ["decided", "rewarded"]


# --- a service that is away ---------------------------------------------------------------------------------------------


def test_a_fallback_is_reported_later(make, line, server, name):
    with make(line.url, server.key, **LIMITS) as client:
        client.create(name, ["a", "b", "c"])
        provider = client.experiment(name, fallback="b")
        cut(line, client)
        first = provider.decide(context={"x": 1}, id="order-17")
        assert (first.arm, first.fallback, first.seq) == ("b", True, None)
        assert first.id != "order-17"  # that one may have been stored, with another arm
        others = [provider.decide(), provider.decide(fallback="c"), *provider.decide_many(3)]
        assert [other.arm for other in others] == ["b", "c", "b", "b", "b"]
        assert provider.reward(first, 1.5).outcome == "kept"
        assert provider.reward(first.id, 1.5).outcome == "kept"
        with pytest.raises(errors.Conflict, match="another arm or reward"):
            provider.reward(first, 1.6)
        assert [reward.outcome for reward in provider.reward_many([(other, 2.0) for other in others])] == ["kept"] * 5
        assert len(client.waiting) == 12
        with pytest.raises(errors.Undelivered, match="not delivered: 12 reports") as caught:
            client.flush(0.1)
        assert Report(name, first.id, arm="b", context={"x": 1}) in caught.value.reports
        restore(line, client)
        eventually(lambda: not client.waiting)  # by itself, without another call
        explained = server.call("GET", f"/v1/experiments/{name}/decisions/{first.id}").json
        assert explained["observed"]
        assert explained["context"] == {"x": 1}
        assert explained["reward"]["value"] == 1.5
        assert sum(row["kind"] == "rewarded" for row in log_of(server, name)) == 6
        assert not provider.decide().fallback


def test_while_the_service_is_away_nobody_waits(make, line, server, name):
    with make(line.url, server.key, fallback="a", **LIMITS) as client:
        provider = client.create(name, ["a", "b"])
        decision = provider.decide()
        cut(line, client)
        provider.decide()
        gives_up_after(60.0, client)
        start = time.monotonic()
        for _ in range(50):
            assert provider.decide().fallback
        assert provider.reward(decision, 1.0).outcome == "kept"
        assert time.monotonic() - start < 20.0  # the cooldown is longer, and so would be the first call that waits
        restore(line, client)
    assert {row["id"] for row in log_of(server, name) if row["kind"] == "rewarded"} == {decision.id}
    assert len(log_of(server, name)) == 1 + 51 + 1


def test_without_a_fallback_a_decision_raises_and_a_reward_is_kept(make, line, server, name):
    with make(line.url, server.key, **LIMITS) as client:
        provider = client.create(name, ["a", "b"])
        decisions = provider.decide_many(3)
        cut(line, client)
        with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
            provider.decide()
        with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
            provider.decide_many(2)
        assert provider.reward(decisions[0], 1.0).outcome == "kept"
        assert [r.outcome for r in provider.reward_many([(d, 2.0) for d in decisions[1:]])] == ["kept", "kept"]
        assert provider.decide(arm="b", id="mine").id == "mine"  # a choice made elsewhere needs no answer
        assert provider.decide(arm="b", id="mine").seq is None
        restore(line, client)
        client.flush(20.0)
        assert client.waiting == ()
    rewards = {row["id"]: row["reward"] for row in log_of(server, name) if row["kind"] == "rewarded"}
    assert rewards == {decisions[0].id: 1.0, decisions[1].id: 2.0, decisions[2].id: 2.0}
    assert [row["id"] for row in log_of(server, name) if row["kind"] == "decided"][-1] == "mine"


def test_an_answer_starts_the_delivery_at_once(make, line, server, name):
    with make(line.url, server.key, fallback="a", **LIMITS) as client:
        provider = client.create(name, ["a", "b"])
        cut(line, client)
        client._core.caller.pause = lambda attempts: 600.0  # the delivery would wait for long
        assert provider.decide().fallback
        restore(line, client)
        provider.show()
        eventually(lambda: not client.waiting)


def test_when_a_pause_is_over_one_caller_tries():
    now = [0.0]
    availability = Availability(5.0, 2.0, lambda: now[0])
    assert availability.may_try("p")
    availability.failed("")
    assert not availability.may_try("p")
    now[0] = 5.0
    assert availability.may_try("p")
    assert not availability.may_try("q")  # while the first one tries
    availability.answered("p")
    assert availability.may_try("q")
    availability.failed("p")
    assert availability.may_try("q")
    assert not availability.may_try("p")
    now[0] = 10.0
    assert availability.may_try("p")
    now[0] = 12.0
    assert availability.may_try("p")  # the first one did not come back


def test_a_silent_service_is_away(make, server, name):
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
    silent = FaultProxy(server.host, server.port, seed=1, share=1.0, faults=("stall",))
    with silent as proxy, make(proxy.url, server.key, fallback="a", **LIMITS) as client:
        gives_up_after(1.0, client)
        assert client.experiment(name).decide().fallback
        eventually(lambda: proxy.made["stall"] >= 1)
        proxy.share = 0.0
        gives_up_after(60.0, client)


def test_what_is_kept_is_bounded(make, line, server, name):
    with make(line.url, server.key, fallback="a", max_waiting=3, **LIMITS) as client:
        cut(line, client)
        provider = client.experiment(name)
        decisions = [provider.decide(), provider.decide()]
        provider.reward(decisions[0], 1.0)
        full = "3 reports that wait for the service and 0 that it rejected, the most that max_waiting allows"
        with pytest.raises(errors.Overloaded, match=full):
            provider.reward(decisions[1], 1.0)
        with pytest.raises(errors.Overloaded, match=full):
            provider.decide()
        with pytest.raises(errors.Overloaded, match=full):
            provider.decide_many(2)
        assert len(client.waiting) == 3
        server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
        restore(line, client)
    assert [row["kind"] for row in log_of(server, name)] == ["decided", "decided", "rewarded"]


def test_what_the_service_rejects_is_shown(make, line, server, name, caplog):
    with make(line.url, server.key, fallback="z", **LIMITS) as client:
        cut(line, client)
        provider = client.experiment(name)
        wrong = provider.decide()
        right = provider.decide(fallback="a")
        provider.reward(wrong, 1.0)
        provider.reward(right, 2.0)
        server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
        restore(line, client)
        eventually(lambda: not client.waiting)
        assert [rejection.report.id for rejection in client.rejected] == [wrong.id, wrong.id]
        assert "'z'" in str(client.rejected[0].error)
        assert provider.reward(wrong, 1.0).outcome == "rejected"  # again: it is not listed twice
        assert len(client.rejected) == 2
        with pytest.raises(errors.Undelivered, match="not delivered: 0 reports, rejected: 2 reports") as caught:
            client.flush()
        assert {report.id for report in caught.value.reports} == {wrong.id}
        client.rejected.clear()
    assert [(row["kind"], row["arm"]) for row in log_of(server, name)] == [("decided", "a"), ("rewarded", "a")]
    assert "the service rejected" in caplog.text


def test_a_reward_that_comes_after_its_choice_was_rejected(make, line, server, name):
    """Policies that weight rewards reject choices made elsewhere. That must not raise errors after an outage."""
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"], "policy": "HTINF(eps=0.5, u=1.0)"})
    with make(line.url, server.key, fallback="a", **LIMITS) as client:
        cut(line, client)
        provider = client.experiment(name)
        decision = provider.decide()
        restore(line, client)
        eventually(lambda: not client.waiting)
        assert isinstance(client.rejected[0].error, errors.Conflict)
        assert provider.reward(decision, 1.0).outcome == "rejected"
        assert client.rejected[1].report == Report(name, decision.id, value=1.0)
        client.rejected.clear()


def test_a_wrong_key_keeps_what_waits(make, line, server, name):
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
    client = make(line.url, "rb_wrong", fallback="a", **LIMITS)
    cut(line, client)
    client.experiment(name).decide()
    restore(line, client)
    with pytest.raises(errors.Undelivered, match=r"not delivered: 1 report, .*key") as caught:
        client.close()
    assert len(caught.value.reports) == len(client.waiting) == 1


def test_a_key_for_one_experiment_delivers_its_reports(make, line, server, name):
    """A report that the key may not send does not hold up the others, also if it is the oldest."""
    for each in (name, f"{name}-other"):
        server.call("PUT", f"/v1/experiments/{each}", {"arms": ["a", "b"]})
    wanted = {"scopes": ["decide", "reward"], "experiments": [name]}
    key = server.call("POST", "/v1/keys", wanted).json["key"]
    client = make(line.url, key, fallback="a", **LIMITS)
    cut(line, client)
    other, mine = client.experiment(f"{name}-other"), client.experiment(name)
    other.reward(other.decide(), 1.0)
    mine.reward(mine.decide(), 1.0)
    assert len(client.waiting) == 4
    restore(line, client)
    with pytest.raises(errors.Undelivered, match="not delivered: 2 reports") as caught:
        client.close(20.0)
    assert {report.experiment for report in caught.value.reports} == {f"{name}-other"}
    assert [row["kind"] for row in log_of(server, name)] == ["decided", "rewarded"]


def test_an_experiment_that_takes_long_to_show_does_not_stop_decisions(make, server, name):
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
    slow = FaultProxy(server.host, server.port, seed=1, share=1.0, faults=("stall",))
    with slow as proxy, make(proxy.url, server.key, fallback="a", **LIMITS) as client:
        provider = client.experiment(name)
        gives_up_after(0.5, client)
        with pytest.raises(errors.ServiceUnavailable, match="timed out"):
            provider.show()
        proxy.share = 0.0
        gives_up_after(60.0, client)
        assert not provider.decide().fallback


def test_too_many_open_decisions_concern_one_experiment(client, server, name):
    provider = client.create(name, ["a", "b"], max_open=2)
    opened = provider.decide_many(2)
    other = client.create(f"{name}-other", ["a", "b"])
    made = provider.decide_many(1, fallback="b")
    assert made[0].fallback
    assert not other.decide(fallback="b").fallback
    for decision in opened:
        provider.reward(decision, 1.0)
    eventually(lambda: not client.waiting)
    assert provider.show()["counts"]["open"] == 1


# --- the end ------------------------------------------------------------------------------------------------------------


def test_an_error_of_the_block_stays_that_error(make):
    client = make("http://127.0.0.1:1", fallback="a", **QUICK)
    client.experiment("p").decide()
    with pytest.raises(ZeroDivisionError) as caught, client:
        1 / 0  # noqa: B018
    assert "not delivered: 1 report" in caught.value.__notes__[0]


def test_a_closed_client_makes_no_calls(make, server, name):
    client = make(server.url, server.key, fallback="a")
    provider = client.create(name, ["a"])
    client.close()
    client.close()
    for call in (provider.decide, lambda: provider.reward("x", 1.0), provider.show, lambda: provider.decide_many(2)):
        with pytest.raises(errors.RobanditError, match="the client is closed"):
            call()
    assert client.waiting == ()


def test_a_closed_client_keeps_nothing(make):
    client = make("http://127.0.0.1:1", fallback="a", **QUICK)
    provider = client.experiment("p")
    decision = provider.decide()
    with pytest.raises(errors.Undelivered, match="not delivered: 1 report"):
        client.close()
    with pytest.raises(errors.RobanditError, match="the client is closed"):
        provider.reward(decision, 1.0)  # its choice still waits
    with pytest.raises(errors.RobanditError, match="the client is closed"):
        provider.decide()
    assert len(client.waiting) == 1


def test_what_is_kept_after_a_flush_is_not_its_failure():
    """Another thread may keep a report right after the last one was delivered."""
    core = Client("http://127.0.0.1:1")._core

    async def deliver(seconds):
        core.outbox.settle(core.outbox.waiting)

    class Late(Outbox):
        """Another report comes right after somebody saw that none waits."""

        def seen(self, found):
            if not found and not self.closed:
                self.add(Report("p", "late", value=1.0))
                self.close()
            return found

        @property
        def waiting(self):
            return self.seen(super().waiting)

        def __len__(self):
            return self.seen(super().__len__())

    core.deliver, core.outbox = deliver, Late(10)
    core.outbox.add(Report("p", "1", value=1.0))
    finished(core.flush(1.0))
    assert [report.id for report in core.outbox.waiting] == ["late"]


def test_a_thread_that_cannot_start_does_not_lose_a_report(line, server, name, monkeypatch, caplog):
    """Python 3.12 starts no threads while it ends, which is when functions of atexit run."""
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})
    with Client(line.url, server.key, fallback="a", **LIMITS) as client:
        cut(line, client)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread: _raise(RuntimeError("can't create new thread")))
            provider = client.experiment(name)
            assert provider.reward(provider.decide(), 1.0).outcome == "kept"
        assert "can't create new thread" in caplog.text
        restore(line, client)
    assert [row["kind"] for row in log_of(server, name)] == ["decided", "rewarded"]


def _raise(error):
    raise error


def test_a_connection_that_was_closed_while_idle_is_replaced(make, line, server, name):
    with make(line.url, server.key) as client:
        provider = client.create(name, ["a", "b"])
        provider.decide()
        line.stop_listening()  # ends all connections
        line.listen()
        assert not provider.decide(fallback="a").fallback
        assert provider.show()["counts"]["decisions"] == 2


def test_rewards_of_cancelled_calls_are_kept(server, name):
    """A web server cancels what a client that hung up has asked for. The reward must not be lost with it."""
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})

    async def cancelled(url, proxy):
        async with AsyncClient(url, server.key) as client:
            provider = client.experiment(name)
            first, second = await provider.decide_many(2)
            proxy.share = 1.0
            for call in (provider.reward(first, 1.0), provider.reward_many([(second, 2.0)])):
                task = asyncio.create_task(call)
                before = proxy.total
                while proxy.total == before:  # until the request is on its way
                    await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            assert {report.id for report in client.waiting} == {first.id, second.id}
            proxy.share = 0.0

    silent = FaultProxy(server.host, server.port, seed=1, share=0.0, faults=("stall",))
    with silent as proxy:
        asyncio.run(cancelled(proxy.url, proxy))
    assert sorted(row["reward"] for row in log_of(server, name) if row["kind"] == "rewarded") == [1.0, 2.0]


def test_a_cancelled_reward_that_cannot_be_kept_is_logged(server, name, caplog):
    server.call("PUT", f"/v1/experiments/{name}", {"arms": ["a", "b"]})

    async def cancelled(proxy):
        client = AsyncClient(proxy.url, server.key, max_waiting=1)
        provider = client.experiment(name)
        decisions = await provider.decide_many(2)
        proxy.share = 1.0
        tasks = [asyncio.create_task(provider.reward(decision, 1.0)) for decision in decisions]
        while proxy.total < 2:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert len(client.waiting) == 1
        proxy.share = 0.0
        await client.close()

    silent = FaultProxy(server.host, server.port, seed=1, share=0.0, faults=("stall",))
    with silent as proxy:
        asyncio.run(cancelled(proxy))
    assert "was interrupted and is not kept: the client keeps 1 reports" in caplog.text


def test_threads_share_a_client(server, name):
    with Client(server.url, server.key) as client:
        provider = client.create(name, ["a", "b", "c"])

        def work():
            for _ in range(20):
                provider.reward(provider.decide(), 1.0)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert provider.show()["counts"]["rewards"] == 100
        assert not [thread for thread in threading.enumerate() if thread.name == "robandit-client"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_its_own_connections(server, name):
    with Client(server.url, server.key) as client:
        provider = client.create(name, ["a", "b"])
        provider.decide()
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if provider.reward(provider.decide(), 1.0).outcome == "applied" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        provider.decide()
        assert provider.show()["counts"]["decisions"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_can_fork_while_a_thread_holds_a_lock(server, name):
    with Client(server.url, server.key, fallback="a", **LIMITS) as client:
        provider = client.create(name, ["a", "b"])
        core = client._core
        with client._lock, core.outbox._lock, core.availability._lock, core.caller.pool._lock:
            child = os.fork()
            if child == 0:
                try:
                    signal.alarm(20)  # ends a child that waits for a lock
                    done = provider.reward(provider.decide(), 1.0).outcome == "applied"
                    core.outbox.add(Report(name, provider.decide().id, value=2.0))
                    client.close()
                    os._exit(0 if done else 1)
                finally:
                    os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert provider.show()["counts"]["rewards"] == 2


# --- reports that wait --------------------------------------------------------------------------------------------------


def test_batches_have_bounded_sizes():
    assert list(chunks([])) == [0]
    assert list(chunks([b"x" * MOST_BYTES, b"y", b"z" * (MOST_BYTES - 4), b"z"])) == [1, 3, 4]


def test_a_choice_goes_before_its_reward():
    outbox = Outbox(100)
    choices = [Report("p", str(i), arm="a") for i in range(3)]
    for choice in choices:
        outbox.add(choice)
        outbox.add(Report("p", choice.id, value=1.0))
    outbox.add(Report("q", "0", value=2.0))
    outbox.postpone(choices[:1])
    assert outbox.batch(10) == [choices[1], choices[2], choices[0]]
    outbox.settle(choices)
    assert [report.id for report in outbox.batch(10)] == ["0", "1", "2"]
    assert len(outbox.batch(2)) == 2
    outbox.settle(outbox.batch(10))
    assert outbox.batch(10) == [Report("q", "0", value=2.0)]
    assert outbox


def test_amounts_go_before_the_final_reward():
    outbox = Outbox(100)
    amounts = [Report("p", "1", value=2.0, part=part) for part in "xy"]
    final, other = Report("p", "1", value=1.0), Report("p", "2", value=1.0)
    for report in (amounts[0], final, other, amounts[1]):
        outbox.add(report)
    outbox.postpone(amounts)
    assert outbox.batch(10) == [other, *amounts]
    outbox.settle([other, amounts[0]])
    assert outbox.batch(10) == amounts[1:]
    assert outbox.add_to_choice(Report("p", "1", value=1.0)) == "kept"
    assert outbox.add_to_choice(Report("p", "3", value=1.0)) is None
    outbox.reject(amounts, errors.RobanditError("refused"))
    assert outbox.batch(10) == [final]


def test_ids_are_uuids_of_version_7():
    import uuid

    made = [values.new_id() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert all(uuid.UUID(id).version == 7 and uuid.UUID(id).variant == uuid.RFC_4122 for id in made)
    milliseconds = [uuid.UUID(id).int >> 80 for id in made]
    assert milliseconds == sorted(milliseconds)
    assert abs(milliseconds[0] / 1000 - time.time()) < 60


def test_failures_cost_the_failure_cost(client, name):
    experiment = client.create(name, ["a", "b"], minimize=True, deadline=30.0, failure_cost=45.0)
    decision = experiment.decide()
    failed = experiment.fail(decision)
    assert (failed.value, failed.outcome) == (45.0, "applied")
    assert experiment.fail(decision.id) == failed
    with raises(errors.Conflict, parameter="value"):
        experiment.reward(decision, 1.0)
    with pytest.raises(KeyError), experiment.timed(on_error="fail"):
        raise KeyError("x")
    shown = experiment.show()
    assert (shown["counts"]["failures"], shown["settings"]["failure_cost"]) == (2, 45.0)


def test_a_failure_is_not_kept_while_the_service_is_away(make, server, line, name):
    """The decision times out, at the same cost."""
    with make(line.url, server.key, **LIMITS) as client:
        experiment = client.create(name, ["a", "b"], minimize=True, deadline=30.0)
        decision = experiment.decide()
        cut(line, client)
        assert experiment.fail(decision) is None
        assert len(client.waiting) == 0
        restore(line, client)
