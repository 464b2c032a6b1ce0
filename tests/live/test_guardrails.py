"""Metrics and guardrails: what counts, who is paused, what is never paused, and that logs and files give the same state."""

import json
import math
import random
import warnings
from functools import partial

import pytest

import robandit as rb
from helpers.invalid import assert_invalid, raises
from helpers.own_policies import Recorder
from robandit.anytime.bernoulli import log_e_value
from robandit.errors import CorruptFile, GuardrailWarning, InvalidInput, NotApplicable
from robandit.live.saving import HEADER

ERROR = rb.Guardrail("error", at_most=0.05)
SLOW = rb.Guardrail("latency_ms", quantile=0.95, at_most=2000)


def bandit_of(arms=("a", "b"), guardrails=(ERROR,), **options):
    options = {"policy": rb.UCB1(), "seed": 0, "compile": "never"} | options
    return rb.Bandit(list(arms), guardrails=guardrails, **options)


def given(bandit, arm, metrics):
    bandit.reward(bandit.decide(arm=arm), 1.0, metrics=metrics)


def many(fail):
    """Let an arm fail, until it must be paused."""
    for _ in range(2):
        fail()
    with pytest.warns(GuardrailWarning):
        assert [fail() for _ in range(4)]


def broken(bandit, arm):
    return next((row["broken"] for row in bandit.guardrails() if row["arm"] == arm and row["broken"]), None)


# --- what counts ------------------------------------------------------------------------------------------------------


def test_an_arm_that_breaks_a_guardrail_is_paused_at_the_threshold():
    bandit, log = bandit_of(arms="abc"), []
    bandit._log = log.append
    needed = next(n for n in range(1, 10) if log_e_value(n, n, 0.05) >= math.log(3 / 0.05))
    for n in range(1, needed + 1):
        assert bandit.states["b"] == "active"
        if n < needed:
            given(bandit, "b", {"error": 1})
    with pytest.warns(GuardrailWarning, match=rf"arm 'b' broke error 100 % of {needed}, at most 5 %: it is paused"):
        given(bandit, "b", {"error": True})
    assert bandit.states == {"a": "active", "b": "paused", "c": "active"}
    why = broken(bandit, "b")
    assert (why.share, why.count, why.log_e) == (1.0, needed, log_e_value(needed, needed, 0.05))
    assert [type(event).__name__ for event in log[-2:]] == ["Rewarded", "ArmPaused"]
    assert log[-2].metrics == {"error": 1.0}
    assert log[-1].guardrail == why


def test_a_quantile_counts_what_is_above_the_limit():
    bandit = bandit_of(guardrails=[SLOW])
    for value in (2000, 1, 2000.5):
        given(bandit, "a", {"latency_ms": value})
    row = bandit.guardrails()[0]
    assert (row["count"], row["share"], row["broken"]) == (3, pytest.approx(1 / 3), None)
    assert str(SLOW) == "latency_ms above 2000 in at most 5 %"


def test_missing_metrics_and_expired_decisions_do_not_count_and_do_not_block():
    bandit = bandit_of(guardrails=[ERROR, SLOW], metrics=["cost"])
    first, second, third, fourth = (bandit.decide(arm="a") for _ in range(4))
    bandit.reward(fourth, 1.0, metrics={"error": 1})
    bandit.reward(third, 1.0, metrics={"latency_ms": 1})
    bandit.reward(second, 1.0)
    assert [row["count"] for row in bandit.guardrails()[:2]] == [0, 0]  # the first one is open
    bandit.expire(first)
    assert [row["count"] for row in bandit.guardrails()[:2]] == [1, 1]
    assert [(row["metric"], row["count"]) for row in bandit.metrics()[:3]] == [
        ("cost", 0),
        ("error", 1),
        ("latency_ms", 1),
    ]


def test_late_outcomes_are_counted_in_the_order_of_the_decisions():
    """Quick errors of a good arm say nothing before the slow successes are known."""
    bandit = bandit_of()
    decisions = [bandit.decide(arm="a") for _ in range(100)]
    failed = decisions[16::16]
    for each in failed:
        bandit.reward(each, 1.0, metrics={"error": 1})
    assert bandit.states["a"] == "active"
    for each in decisions:
        if each not in failed:
            bandit.reward(each, 1.0, metrics={"error": 0})
    assert bandit.states["a"] == "active"
    assert bandit.guardrails()[0]["count"] == 100


def test_the_same_errors_in_the_order_of_arrival_pause_it():  # the negative control
    bandit = bandit_of()
    many(lambda: given(bandit, "a", {"error": 1}))
    assert bandit.states["a"] == "paused"


def test_update_counts_too():
    bandit = bandit_of()
    bandit.update_many(["a", "b"], [1.0, 1.0])
    update = partial(bandit.update, "a", 1.0, metrics={"error": 1})
    many(update)
    assert bandit.states == {"a": "paused", "b": "active"}
    assert bandit.guardrails()[1]["count"] == 0


def test_failures_have_metrics():
    bandit = bandit_of(minimize=True, deadline=30.0)
    log = []
    bandit._log = log.append
    bandit.fail(*(bandit.decide(arm="a") for _ in range(2)), metrics={"error": 1})
    bandit.fail(bandit.decide(arm="a"))
    assert bandit.guardrails()[0]["count"] == 2
    assert [event.metrics for event in log if type(event).__name__ == "Rewarded"] == [{"error": 1.0}] * 2 + [None]
    again = bandit_of(minimize=True, deadline=30.0)
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()


def test_repeats_of_a_unit_do_not_count():
    bandit = bandit_of(sticky_for=100.0)
    for _ in range(5):
        bandit.reward(bandit.decide(unit="ann"), 1.0, metrics={"error": 1})
    assert sum(row["count"] for row in bandit.guardrails()) == 1
    assert sum(row["count"] for row in bandit.metrics()) == 5


# --- pausing and resuming ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::robandit.errors.GuardrailWarning")
def test_the_last_active_arm_raises_an_alarm_once_instead():
    bandit, log = bandit_of(), []
    bandit._log = log.append
    for arm in ("a", "b"):
        for _ in range(20):
            given(bandit, arm, {"error": 1})
    assert bandit.states == {"a": "paused", "b": "active"}
    assert [type(event).__name__ for event in log].count("ArmAlarmed") == 1
    assert bandit.decide().arm == "b"
    bandit.add_arm("c")
    given(bandit, "b", {"error": 0})  # now it is not the last one
    assert bandit.states == {"a": "paused", "b": "paused", "c": "active"}


@pytest.mark.filterwarnings("ignore::robandit.errors.GuardrailWarning")
def test_a_resumed_arm_starts_anew():
    bandit = bandit_of()
    late = bandit.decide(arm="a")
    for _ in range(8):
        given(bandit, "a", {"error": 1})
    bandit.reward(late, 1.0, metrics={"error": 1})
    before = bandit.decide(arm="a")
    bandit.resume_arm("a")
    assert bandit.guardrails()[0] | {"share": None} == {
        "arm": "a", "guardrail": ERROR, "count": 0, "share": None, "broken": None
    }  # fmt: skip
    bandit.reward(before, 1.0, metrics={"error": 1})  # was decided before
    assert bandit.guardrails()[0]["count"] == 0
    assert bandit.states["a"] == "active"
    for _ in range(8):
        given(bandit, "a", {"error": 1})
    assert bandit.states["a"] == "paused"


def test_an_arm_that_was_paused_by_hand_keeps_its_evidence():
    bandit = bandit_of()
    given(bandit, "a", {"error": 1})
    bandit.pause_arm("a")
    bandit.resume_arm("a")
    assert bandit.guardrails()[0]["count"] == 1


# --- logs and files ---------------------------------------------------------------------------------------------------


def lively(seed, log=None):
    """A bandit with guardrails that are broken, alarms, late rewards, amounts, units and arms that come and go."""
    rng = random.Random(seed)
    ticks = iter(range(10**6))
    bandit = bandit_of(
        "abc", [ERROR, SLOW], metrics=["cost"], sticky_for=5.0, log=log, clock=lambda: float(next(ticks)), max_open=50
    )
    for step in range(400):
        kind = rng.choice("dddrrrruuaeRA")
        opened = bandit.open
        metrics = {"error": rng.random() < 0.3, "latency_ms": rng.uniform(0, 2200), "cost": rng.uniform(-1, 1)}
        metrics = {name: value for name, value in metrics.items() if rng.random() < 0.9}
        try:
            if kind == "d":
                bandit.decide(unit=rng.choice(["ann", "bob", None]))
            elif kind == "r" and opened:
                bandit.reward(rng.choice(opened), rng.gauss(0, 1), metrics=metrics)
            elif kind == "u":
                bandit.update(rng.choice(bandit.arms), rng.gauss(0, 1), metrics=metrics)
            elif kind == "a" and opened:
                bandit.reward(rng.choice(opened), rng.gauss(0, 1), final=False, part=rng.choice(["x", None]))
            elif kind == "e" and opened:
                bandit.expire(rng.choice(opened))
            elif kind == "R" and step % 4 == 0:
                bandit.resume_arm(rng.choice(bandit.arms))
            elif kind == "A" and step % 50 == 0:
                bandit.add_arm(f"new-{step}")
        except rb.errors.RobanditError:
            pass
    return bandit


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_a_log_and_a_file_give_the_same_bytes(seed):
    log = []
    bandit = lively(seed, log.append)
    kinds = {type(event).__name__ for event in log}
    assert {"Added", "ArmPaused", "Rewarded", "Observed", "Expired"} <= kinds
    half = len(log) // 2
    again = bandit_of("abc", [ERROR, SLOW], metrics=["cost"], sticky_for=5.0, max_open=50)
    for place, event in enumerate(log):
        if place == half:
            again = rb.Bandit.from_bytes(again.to_bytes(), compile="never")
        again.apply(json.loads(json.dumps(event.to_dict())))
    assert again.to_bytes() == bandit.to_bytes()
    assert again.guardrails() == bandit.guardrails() or "nan" in str(bandit.guardrails())
    assert str(again.metrics()) == str(bandit.metrics())


def test_the_event_of_a_pause_is_applied_not_the_decision_to_pause():
    log = []
    bandit = bandit_of(log=log.append)
    many(lambda: given(bandit, "a", {"error": 1}))
    again = bandit_of()
    for event in log:
        if type(event).__name__ != "ArmPaused":
            again.apply(event)
    assert again.states["a"] == "active"
    with pytest.warns(GuardrailWarning):  # a log that ends before the pause: the next outcome makes up for it
        given(again, "b", {"error": 0})
    assert again.states["a"] == "paused"


def test_bandits_without_metrics_are_saved_as_before_and_damaged_outcomes_are_refused():
    import hashlib

    import msgspec

    bandit = bandit_of()
    given(bandit, "a", {"error": 1})
    data = bandit.to_bytes()
    fields = msgspec.msgpack.decode(data[HEADER:])
    fields["outcomes"][2] = fields["outcomes"][2][:1]
    body = msgspec.msgpack.encode(fields)
    with pytest.raises(CorruptFile):
        rb.Bandit.from_bytes(data[: HEADER - 32] + hashlib.sha256(body).digest() + body)


# --- bad input --------------------------------------------------------------------------------------------------------


def test_bad_guardrails_are_refused():
    assert_invalid(lambda: rb.Guardrail("error", at_most=5), "at_most", "a finite number > 0 and < 1")
    assert_invalid(lambda: rb.Guardrail("error", at_most=0), "at_most", "a finite number > 0 and < 1")
    assert_invalid(lambda: rb.Guardrail("ms", quantile=95, at_most=2000), "quantile", "a probability")
    assert_invalid(lambda: rb.Guardrail("ms", quantile=0.95, at_most=math.inf), "at_most", "a finite number")
    assert_invalid(lambda: rb.Guardrail("", at_most=0.05), "metric", "a string")
    assert_invalid(lambda: rb.Guardrail("error", at_most=0.05, alpha=0), "alpha", "a probability")
    assert_invalid(lambda: bandit_of(guardrails=ERROR), "guardrails", "a sequence")
    assert_invalid(lambda: bandit_of(guardrails=["error"]), "guardrails[0]", "a Guardrail")
    assert_invalid(lambda: bandit_of(guardrails=[ERROR, ERROR]), "guardrails[1]", "given once")
    assert_invalid(lambda: bandit_of(metrics=["x", "x"]), "metrics[1]", "given once")
    assert_invalid(lambda: bandit_of(metrics=[str(i) for i in range(20)]), "number of metrics", "at most 20")
    with raises(NotApplicable):
        rb.Bandit(["a", "b"], Recorder(), guardrails=[ERROR])


def test_bad_metrics_are_refused_by_name_and_change_nothing():
    bandit = bandit_of(metrics=["cost"])
    decision = bandit.decide()
    with raises(InvalidInput, parameter="metrics", value="eror", match="did you mean 'error'"):
        bandit.reward(decision, 1.0, metrics={"eror": 1})
    with raises(InvalidInput, parameter="metrics", value="zzz", match="declare it in the setting metrics"):
        bandit.reward(decision, 1.0, metrics={"zzz": 1})
    for value in (1.5, -1, math.nan, "1", None):
        with raises(InvalidInput, parameter="metrics['error']"):
            bandit.reward(decision, 1.0, metrics={"error": value})
    with raises(InvalidInput, parameter="metrics['cost']"):
        bandit.reward(decision, 1.0, metrics={"cost": math.inf})
    with raises(InvalidInput, parameter="metrics"):
        bandit.reward(decision, 1.0, metrics=[1])
    with raises(InvalidInput, parameter="metrics", rule="left out"):
        rb.Bandit(["a"]).update("a", 1.0, metrics={"error": 1})
    assert bandit.open == (decision,)
    assert bandit.metrics()[0]["count"] == 0


def test_a_bandit_without_guardrails_has_none():
    assert rb.Bandit(["a"]).guardrails() == rb.Bandit(["a"]).metrics() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit = rb.Bandit(["a", "b"], metrics=["error"], compile="never")
        for _ in range(50):
            bandit.update("a", 1.0, metrics={"error": 1})
    assert bandit.metrics()[0] == {"arm": "a", "metric": "error", "count": 50, "mean": 1.0}
