"""Events and `Bandit.apply`: a state is a fold of its log."""

import json
import math
import random
import warnings
from pathlib import Path
from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.live_bandits import ARMS, QUICK
from helpers.own_policies import Exp3, Greedy
from helpers.rewards import rewards_within
from robandit.errors import DecisionError, InvalidInput, InvalidReward, UnavailableArm, UnknownArm
from robandit.live import events
from robandit.live.engine import RunningPolicy

POLICIES = [rb.UCB1(), QUICK, rb.AdaKLUCB(), Exp3(), Greedy(eps=0.4), rb.EpsilonGreedy(epsilon=0.4), rb.OptTINF()]

steps = st.lists(
    st.tuples(st.sampled_from("sSudDDrrreEpRaxm"), st.integers(0, 5), rewards_within(50.0)), min_size=10, max_size=60
)


def live(bandit, steps):
    """Let a bandit go through random steps; those that it rejects have no effect."""
    for kind, i, value in steps:
        arms, opened = bandit.arms, bandit.open
        arm = arms[i % len(arms)]
        try:
            if kind == "s":
                bandit.select()
            elif kind == "S":
                bandit.select(among=arms[: i + 1])
            elif kind == "u":
                bandit.update(bandit.select() if bandit.policy.weighted or i % 2 else arm, value)
            elif kind == "m" and not bandit.policy.weighted:
                bandit.update_many([arm, arms[0]] * 20, [value, -value] * 20)
            elif kind == "d":
                bandit.decide()
            elif kind == "D":
                bandit.decide(among=arms[i % len(arms) :])
            elif kind == "r" and opened:
                bandit.reward(opened[i % len(opened)], value)
            elif kind == "e" and opened:
                bandit.expire(opened[i % len(opened)])
            elif kind == "E":
                bandit.expire(*opened[3:])
            elif kind == "p":
                bandit.pause_arm(arm)
            elif kind == "R":
                bandit.resume_arm(arm)
            elif kind == "x" and i == 0:
                bandit.retire_arm(arm)
            elif kind == "a" and len(arms) < 6:
                bandit.add_arm(f"new {len(arms)}")
        except (rb.errors.RobanditError, ValueError):
            pass


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.label)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=steps, minimize=st.booleans(), cap=st.sampled_from([None, 2.0]))
def test_a_log_rebuilds_the_bytes(policy, steps, minimize, cap):
    lines = []
    options = {"seed": 4, "minimize": minimize, "cap": cap}
    bandit = rb.Bandit(ARMS, policy, **options, log=lambda event: lines.append(json.dumps(event.to_dict())))
    live(bandit, steps[: len(steps) // 2])
    saved, applied = bandit.to_bytes(), len(lines)
    live(bandit, steps[len(steps) // 2 :])
    bandit.add_arm("the last event")  # a pending select() is not an event
    again = rb.Bandit(ARMS, policy, **options)
    for line in lines:
        again.apply(json.loads(line))
    assert again.to_bytes() == bandit.to_bytes()
    from_the_middle = rb.Bandit.from_bytes(saved)
    for line in lines[applied:]:
        from_the_middle.apply(json.loads(line))
    assert from_the_middle.to_bytes() == bandit.to_bytes()
    assert again.open == bandit.open
    assert again.states == bandit.states


@pytest.mark.parametrize("policy", rb.policies.all_policies(), ids=repr)
def test_a_log_rebuilds_the_bytes_of_every_policy(policy):
    rng = random.Random(repr(policy))
    steps = [(rng.choice("sSudDDrrreEpRaxm"), rng.randint(0, 5), rng.uniform(-2.0, 2.0)) for _ in range(150)]
    ready = policy.informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).prepared(1500)
    lines = []
    log = lambda event: lines.append(json.dumps(event.to_dict(), allow_nan=False))  # noqa: E731
    bandit = rb.Bandit(ARMS, ready, seed=4, log=log)
    live(bandit, steps)
    bandit.add_arm("the last event")
    again = rb.Bandit(ARMS, ready, seed=4)
    for line in lines:
        again.apply(json.loads(line))
    assert again.to_bytes() == bandit.to_bytes() == rb.Bandit.from_bytes(bandit.to_bytes()).to_bytes()
    assert len(lines) > 50


def test_the_golden_log_gives_the_same_state():
    """`tests/golden/make.py` made it, with a release that wrote such events."""
    golden = json.loads((Path(__file__).parents[1] / "golden" / "events.json").read_text())
    newer = {"Added", "ArmAlarmed", "Scaled"}
    assert {event["event"] for event in golden["events"]} == {kind.__name__ for kind in get_args(events.Event)} - newer
    policy = rb.Policy.from_dict(golden["bandit"]["policy"])
    bandit = rb.Bandit(golden["bandit"]["arms"], policy, seed=golden["bandit"]["seed"], compile="never")
    for event in golden["events"]:
        bandit.apply(event)
    found = {
        "open": [[each.id, each.arm, repr(each.propensity), each.time] for each in bandit.open],
        "states": list(bandit.states.values()),
        "estimates": [{name: repr(value) for name, value in row.items()} for row in bandit.estimates()],
        "next": [bandit.decide().arm for _ in range(10)],
    }
    assert json.loads(json.dumps(found)) == golden["known"]


def recorded(policy, pulls=80):
    log = []
    bandit = rb.Bandit(ARMS, policy, seed=1, log=log.append)
    live(bandit, [("dDrsu"[j % 5], j % 4, float(j % 13) - 6.0) for j in range(pulls)])
    bandit.expire(*bandit.open)
    bandit.reward(bandit.decide(), 1.0)
    return bandit, log


@pytest.mark.parametrize("policy", POLICIES[:4], ids=lambda policy: policy.label)
def test_the_recorded_choice_counts_not_a_new_one(policy, monkeypatch):
    """On another processor, rounding may lead to another choice. The state must not follow it."""
    bandit, log = recorded(policy)
    ask = RunningPolicy.ask
    monkeypatch.setattr(RunningPolicy, "ask", lambda self, among: (ask(self, among) + 1) % len(self.available))
    again = rb.Bandit(ARMS, policy, seed=1)
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()


def test_another_log_gives_other_bytes():
    """The negative control."""
    bandit, log = recorded(rb.UCB1())
    again = rb.Bandit(ARMS, rb.UCB1(), seed=1)
    for event in log[:-1]:
        again.apply(event)
    assert again.to_bytes() != bandit.to_bytes()


def test_events_name_what_happened():
    log = []
    times = iter(range(100, 200))
    bandit = rb.Bandit(["a", ("b", 1)], rb.UCB1(), log=log.append, clock=lambda: float(next(times)))
    first = bandit.decide()
    second = bandit.decide(among=[("b", 1)])
    bandit.select()
    bandit.reward(first, 2)
    bandit.expire(second)
    bandit.update("a", 0.5)
    bandit.add_arm("c")
    bandit.pause_arm("c")
    bandit.resume_arm("c")
    bandit.retire_arm("c")
    assert [json.loads(json.dumps(event.to_dict())) for event in log] == [
        {
            "event": "Decided",
            "id": first.id,
            "arm": "a",
            "mark": 1.0,
            "propensity": None,
            "time": 100.0,
            "asked": [None],
            "rule": 1,
        },
        {
            "event": "Decided",
            "id": second.id,
            "arm": ["b", 1],
            "mark": 1.0,
            "propensity": None,
            "time": 101.0,
            "asked": [[["b", 1]]],
            "rule": 1,
        },
        {"event": "Rewarded", "id": first.id, "value": 2.0, "asked": [None]},
        {"event": "Expired", "id": second.id},
        {"event": "Observed", "arm": "a", "value": 0.5},
        {"event": "ArmAdded", "arm": "c"},
        {"event": "ArmPaused", "arm": "c"},
        {"event": "ArmResumed", "arm": "c"},
        {"event": "ArmRetired", "arm": "c"},
    ]


def test_applied_events_are_not_logged_again_and_do_not_warn(recwarn):
    warnings.simplefilter("error")
    source, log = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bandit = rb.Bandit(["a", "b"], rb.AdaKLUCB(), log=source.append)
        bandit.update_many(["a"] * 600, rb.laws.Pareto(tail=1.2).sample(600, seed=0))
    again = rb.Bandit(["a", "b"], rb.AdaKLUCB(), log=log.append)
    for event in source:
        again.apply(event)
    assert log == []
    assert again.to_bytes() == bandit.to_bytes()


def decided(**changes):
    data = {"event": "Decided", "id": "k3m9-0", "arm": "a", "mark": 1.0, "propensity": None, "time": 0.0}
    return data | changes


@cases(
    ("event", "error", "parameter", "rule"),
    [
        ("no event", InvalidInput, "event", "an event, or the data of its to_dict()"),
        ({"event": "Paid", "id": "k3m9-0"}, InvalidInput, "event", "an event"),
        ({"event": "Rewarded", "value": 1.0}, InvalidInput, "event", "an event"),
        (
            {"event": "Decided", "id": "k3m9-0", "arm": "a", "mark": 1.0, "propensity": None},
            InvalidInput,
            "event",
            "an event",
        ),
        ({"event": "Rewarded", "id": "k3m9-0"}, InvalidInput, "event", "an event"),
        ({"event": "Rewarded", "id": "k3m9-0", "value": 1.0}, DecisionError, "decision", "an open decision"),
        ({"event": "Expired", "id": "!"}, DecisionError, "decision", "an id that decide() returned"),
        ({"event": "Observed", "arm": "mars", "value": 1.0}, UnknownArm, "arm", "one of 'a', 'b', 'paused'"),
        ({"event": "Observed", "arm": "a", "value": 1e200}, InvalidReward, "reward", "within +-1e+150"),
        ({"event": "ArmAdded", "arm": "a"}, InvalidInput, "arm", "a new name"),
        (
            {"event": "Observed", "arm": "a", "value": 1.0, "asked": [["mars"]]},
            UnknownArm,
            "arm",
            "one of 'a', 'b', 'paused'",
        ),
        (
            {"event": "Observed", "arm": "a", "value": 1.0, "asked": [[]]},
            UnavailableArm,
            "among",
            "names with an active arm",
        ),
        ({"event": "Observed", "arm": "a", "value": 1.0, "asked": ["ab"]}, InvalidInput, "event", "an event"),
        ({"event": "Observed", "arm": "a", "value": 1.0, "asked": [3]}, InvalidInput, "event", "an event"),
        (decided(propensity=1.5), InvalidInput, "propensity", "a finite number >= 0 and <= 1"),
        (decided(propensity=-1.0), InvalidInput, "propensity", "a finite number >= 0 and <= 1"),
        (decided(time=math.inf), InvalidInput, "time", "a finite number"),
        (decided(mark=math.nan), InvalidInput, "mark", "a finite number"),
        (decided(arm="paused"), InvalidInput, "arm", "an arm that is active"),
        (
            events.Decided(id="k3m9-0", arm="a", mark="x", propensity=None, time=0.0),
            InvalidInput,
            "mark",
            "a finite number",
        ),
    ],
)
def test_events_that_do_not_fit_change_nothing(event, error, parameter, rule):
    bandit = rb.Bandit(["a", "b", "paused"], rb.UCB1())
    bandit.pause_arm("paused")
    before = bandit.to_bytes()
    with raises(error, parameter=parameter, rule=rule):
        bandit.apply(event)
    assert bandit.to_bytes() == before


def test_a_field_that_is_missing_is_named():
    with pytest.raises(InvalidInput, match="'id' is missing"):
        rb.Bandit(["a"]).apply({"event": "Rewarded", "value": 1.0})


def test_a_decision_is_applied_once():
    log = []
    rb.Bandit(["a", "b"], rb.UCB1(), log=log.append).decide()
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    bandit.apply(log[0])
    before = bandit.to_bytes()
    with pytest.raises(DecisionError, match="is known already"):
        bandit.apply(log[0])
    assert bandit.to_bytes() == before


def test_a_log_may_save_the_bandit():
    saved = []
    bandit = rb.Bandit(ARMS, rb.UCB1(), log=lambda event: saved.append(bandit.to_bytes()))
    bandit.decide()
    bandit.update(bandit.select(), 1.0)
    assert saved[-1] == bandit.to_bytes()
    assert rb.Bandit.from_bytes(saved[0]).decide().arm == "us"


def test_a_probability_that_is_not_known_is_text():
    event = events.Decided(id="k3m9-0", arm="a", mark=1.0, propensity=math.nan, time=0.0)
    data = json.loads(json.dumps(event.to_dict(), allow_nan=False))
    assert data["propensity"] == "unknown"
    assert math.isnan(events.event_from(data).propensity_or_nan)


def test_probabilities_beyond_one():
    class Rounding(rb.Uniform):
        excess: float = 2e-16

        @staticmethod
        def chance(p, s, arm):
            return 1.0 + p.excess

    bandit = rb.Bandit(["a", "b"], Rounding(), seed=0)
    assert bandit.decide().propensity == 1.0
    assert rb.Bandit.from_bytes(bandit.to_bytes()).open_count == 1
    with pytest.raises(rb.errors.KernelError, match=r"with probability 1.5, which is not in \[0, 1\]"):
        rb.Bandit(["a", "b"], Rounding(excess=0.5), seed=0).decide()


@pytest.mark.parametrize("policy", [rb.DirichletSampling(), rb.MARS()], ids=lambda policy: policy.label)
def test_decisions_whose_probability_is_not_known_are_repeated(policy):
    """Their propensity is NaN, in events as objects and as data."""
    source = []
    bandit = rb.Bandit(["a", "b"], policy, seed=1, log=source.append)
    for reward in (1.0, 2.0, 0.5, 3.0):
        bandit.reward(bandit.decide(), reward)
    for convert in (lambda event: event, lambda event: event.to_dict()):
        again = rb.Bandit(["a", "b"], policy, seed=1)
        for event in source:
            again.apply(convert(event))
        assert again.estimates() == bandit.estimates()


def test_a_decision_as_its_event_is_what_the_log_gets():
    log = []
    bandit = rb.Bandit(ARMS, rb.UCB1(), log=log.append)
    bandit.select(among=ARMS[1:])
    made = [bandit.decided(), bandit.decided(ARMS[:1]), bandit.decided(arm=ARMS[2])]
    assert [(event.arm, event.given, event.asked) for event in made] == [
        (ARMS[0], False, (tuple(ARMS[1:]), None)),
        (ARMS[0], False, (tuple(ARMS[:1]),)),
        (ARMS[2], True, ()),
    ]
    assert [event.to_dict() for event in log] == [event.to_dict() for event in made]
    assert [decision.id for decision in bandit.open] == [event.id for event in made]


@pytest.mark.parametrize("arm", [None, "b"])
def test_a_log_may_reward_a_decision_at_once(arm):
    """`decided` returns the event, although the decision is closed by then."""

    def log(event):
        if isinstance(event, events.Decided):
            bandit.reward(event.id, 1.0)

    bandit = rb.Bandit(["a", "b"], rb.UCB1(), log=log)
    assert (bandit.decide() if arm is None else bandit.decide(arm=arm)).arm in ("a", "b")
    made = bandit.decided() if arm is None else bandit.decided(arm=arm)
    assert (made.given, bandit.open_count, bandit.counters()["rewards"]) == (arm is not None, 0, 2)


def test_names_to_decide_among_are_read_once():
    bandit = rb.Bandit(["a", "b", "c"], rb.UCB1())
    assert bandit.decided(name for name in "bc").arm == "b"


def test_an_event_made_by_hand_survives_its_data():
    event = events.Decided(id="k3m9qd2x7wfa-12", arm="a", mark=1.0)
    assert events.event_from(event.to_dict()) == event
