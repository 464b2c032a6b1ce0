"""Sticky units, against a plain model and against a bandit that is told of the pulls only."""

import hashlib
import json
import math
import random

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from helpers.own_policies import Exp3
from helpers.serving import Clock
from robandit.errors import (
    CorruptFile,
    DecisionError,
    HorizonReached,
    InvalidInput,
    RobanditError,
    UnavailableArm,
    UnknownArm,
)
from robandit.live import sticky
from robandit.live.saving import HEADER

ARMS = ["eu", "us", "asia"]
POLICIES = [
    rb.AdaKLUCB(),
    rb.UCB1(),
    rb.EpsilonGreedy(epsilon=0.4),
    Exp3(),
    rb.Restarting(rb.UCB1()),
    rb.AdaRUCB(c=0.4, delta_exp=0.5, bonus=0.2),
]
LABELS = {"ids": lambda policy: policy.label}


class Held:
    """An assignment of the model."""

    def __init__(self, unit, arm, time, pull):
        self.unit, self.arm, self.time, self.pull = unit, arm, time, pull
        self.taught, self.open = False, []


class Model:
    """What sticky units mean, in lists; ``twin`` is a bandit without units that is told of the pulls only."""

    def __init__(self, twin, sticky_for, most, at_once):
        self.twin, self.sticky_for, self.most, self.at_once = twin, sticky_for, most, at_once
        self.held, self.all, self.plain = [], [], {}

    def lose(self, each):
        if not each.taught and not each.open and each not in self.held:
            self.twin.expire(each.pull)

    def decide(self, decision, unit, among, now, states):
        allowed = [arm for arm in (among or states) if states[arm] == "active"]
        for each in self.held:
            if unit is not None and each.unit == unit and now - each.time < self.sticky_for and each.arm in allowed:
                assert decision.arm == each.arm
                each.open.append(decision.id)
                self.twin._forget_choices()  # like every event
                return True
        pull = self.twin.decide(among)
        assert (decision.arm, repr(decision.propensity)) == (pull.arm, repr(pull.propensity))
        if unit is None:
            self.plain[decision.id] = pull
            return False
        ended = [each for each in self.held if each.unit == unit]
        self.held = [each for each in self.held if each.unit != unit]
        while self.held and len(ended) < self.at_once:
            if len(self.held) < self.most and now - self.held[0].time < self.sticky_for:
                break
            ended.append(self.held.pop(0))
        self.held.append(Held(unit, decision.arm, now, pull))
        self.held[-1].open.append(decision.id)
        self.all.append(self.held[-1])
        for each in ended:
            self.lose(each)
        return False

    def of(self, id):
        return next(each for each in self.all if id in each.open)

    def reward(self, id, value):
        if id in self.plain:
            self.twin.reward(self.plain.pop(id), value)
            return True
        each = self.of(id)
        teaches = not each.taught
        if teaches:
            self.twin.reward(each.pull, value)
        self.twin._forget_choices()
        each.taught = True
        each.open.remove(id)
        return teaches

    def expire(self, id):
        if id in self.plain:
            self.twin.expire(self.plain.pop(id))
            return
        each = self.of(id)
        each.open.remove(id)
        self.twin._forget_choices()
        self.lose(each)


def state_of(bandit):
    """What the policy knows, as bytes."""
    return [array.tobytes() for array in bandit._engine.state]


@pytest.mark.filterwarnings("ignore::robandit.errors.ExpiryWarning", "ignore::robandit.errors.DriftWarning")
@pytest.mark.parametrize("policy", POLICIES, **LABELS)
@pytest.mark.parametrize("seed", range(amount(2, 40)))
def test_random_lives_agree_with_the_model_the_log_and_the_saved_form(policy, seed, monkeypatch):
    monkeypatch.setattr(sticky, "MOST_UNITS", 5)
    monkeypatch.setattr(sticky, "_ENDED_AT_ONCE", 2)
    rng, clock, log = random.Random(f"{policy.label} {seed}"), Clock(1000.0), []
    options = {"seed": 4, "compile": "never"}
    bandit = rb.Bandit(ARMS, policy, sticky_for=10.0, clock=clock, log=log.append, **options)
    again = rb.Bandit(ARMS, policy, sticky_for=10.0, **options)
    twin = rb.Bandit(ARMS, policy, clock=clock, **options)
    model = Model(twin, 10.0, 5, 2)
    learned = 0
    for _ in range(150):
        clock.now += rng.choice([0.0, 0.5, 3.0])
        open_ids = [decision.id for decision in bandit.open]
        kind = rng.choice("ddddduurrrrxpsaw")
        if kind in "du":
            unit = rng.choice("abcdefgh") if kind == "d" else None
            among = rng.sample(ARMS, 2) if not rng.randrange(6) and policy.respects_allowed else None
            states = bandit.states
            if not any(states[arm] == "active" for arm in among or states):
                with raises(UnavailableArm):
                    bandit.decide(among, unit=unit)
                continue
            event = bandit.decided(among, unit=unit)
            assert event.unit == unit
            assert event.repeat == model.decide(event, unit, among, event.time, states)
        elif kind == "r" and open_ids:
            id, value = rng.choice(open_ids), rng.gauss(0.0, 1.0)
            teaches = bandit.teaches(id)
            bandit.reward(id, value)
            assert model.reward(id, value) == teaches
            learned += teaches
        elif kind == "x" and open_ids:
            id = rng.choice(open_ids)
            bandit.expire(id)
            model.expire(id)
        elif kind == "p" and policy.respects_allowed:
            arm = rng.choice(ARMS)
            for each in (bandit, twin):
                (each.resume_arm if each.states[arm] == "paused" else each.pause_arm)(arm)
        elif kind == "s" and "active" in bandit.states.values():
            assert bandit.select() == twin.select()
        elif kind == "a":
            with raises(InvalidInput, parameter="unit"):
                bandit.decide(arm="eu", unit="a")
        elif kind == "w":
            bandit = rb.Bandit.from_bytes(bandit.to_bytes(), log=log.append, clock=clock, compile="never")
        assert bandit.counters().get("units") == len(model.held) <= 5
        assert sum(row["pulls"] for row in bandit.estimates()) == learned
        assert state_of(bandit) == state_of(twin), "the policy knows of pulls only"
    if bandit._pick >= 0:
        bandit.update(bandit.select(), 0.5)  # the log does not have a choice before its event
    for event in log:
        again.apply(json.loads(json.dumps(event.to_dict())))
    assert again.to_bytes() == bandit.to_bytes()
    assert rb.Bandit.from_bytes(bandit.to_bytes()).to_bytes() == bandit.to_bytes()
    assert sum(type(event).__name__ == "Decided" and event.repeat for event in log) > 0


def test_an_assignment_ends_after_its_time_and_not_before():
    clock = Clock(0.0)
    bandit = rb.Bandit(ARMS, rb.UCB1(), sticky_for=10.0, clock=clock)
    first = bandit.decide(unit="ann")
    clock.now = 9.99
    assert bandit.decided(unit="ann").repeat
    clock.now = 10.0  # the time counts from the first decision, not from the last one
    event = bandit.decided(unit="ann")
    assert not event.repeat
    assert event.arm != first.arm


def test_a_repeat_is_not_a_pull_of_a_policy_with_a_horizon():
    bandit = rb.Bandit(ARMS, rb.RobustMOSS(horizon=3, eps=1.0, u=1.0), sticky_for=10.0, clock=Clock(0.0))
    decisions = [bandit.decide(unit=unit) for unit in "abcabcabc"]
    for decision in decisions[3:]:
        bandit.reward(decision, 1.0)
    bandit.expire(*decisions[:3])
    assert bandit.decided(unit="a").repeat
    with raises(HorizonReached, match="3 are made"):
        bandit.decide(unit="d")


def test_repeats_count_as_open_decisions():
    bandit = rb.Bandit(ARMS, sticky_for=10.0, max_open=2)
    bandit.decide(unit="a")
    bandit.decide(unit="a")
    with raises(DecisionError, parameter="max_open"):
        bandit.decide(unit="a")


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1h", True])
def test_a_wrong_sticky_for_is_refused(value):
    with raises(InvalidInput, parameter="sticky_for"):
        rb.Bandit(ARMS, sticky_for=value)


@pytest.mark.parametrize("unit", ["", 17, b"x", "a\n", "x" * 201, "\ud800", ["a"]])
def test_a_wrong_unit_is_refused_and_changes_nothing(unit):
    bandit = rb.Bandit(ARMS, sticky_for=10.0)
    before = bandit.to_bytes()
    with raises(InvalidInput, parameter="unit"):
        bandit.decide(unit=unit)
    with raises(UnknownArm, parameter="arm"):
        bandit.decide(["mars"], unit="a")
    assert bandit.to_bytes() == before


def test_a_unit_needs_a_sticky_bandit():
    with raises(InvalidInput, parameter="unit", match="sticky_for=3600.0"):
        rb.Bandit(ARMS).decide(unit="ann")


def test_an_iterator_of_arms_is_read_once():
    bandit = rb.Bandit(ARMS, sticky_for=10.0)
    assert bandit.decide(iter(["us"]), unit="ann").arm == "us"


@pytest.mark.parametrize("change", [{"unit": "bob"}, {"arm": "us"}, {"mark": 0.5}, {"unit": None}, {"time": 99.0}])
def test_a_repeat_that_does_not_fit_is_not_applied(change):
    log = []
    bandit = rb.Bandit(ARMS, rb.UCB1(), sticky_for=10.0, log=log.append, clock=lambda: 5.0)
    bandit.decide(unit="ann")
    bandit.decide(unit="ann")
    again = rb.Bandit(ARMS, rb.UCB1(), sticky_for=10.0)
    again.apply(log[0])
    before = again.to_bytes()
    with raises(RobanditError, parameter="unit"):
        again.apply(log[1].to_dict() | change)
    with raises(InvalidInput, parameter="unit"):
        rb.Bandit(ARMS, rb.UCB1()).apply(log[0])
    assert again.to_bytes() == before
    again.apply(log[1])
    assert again.to_bytes() == bandit.to_bytes()


def test_units_in_memory_are_limited_and_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(sticky, "MOST_UNITS", 100)
    bandit = rb.Bandit(ARMS, rb.UCB1(), sticky_for=10.0, clock=lambda: 0.0)
    for k in range(300):
        bandit.decide(unit=f"unit {k}")
    assert bandit.counters()["units"] == 100
    assert bandit.decided(unit="unit 200").repeat
    assert not bandit.decided(unit="unit 199").repeat
    assert not bandit.decided(unit="unit 200").repeat, "the one before took its place"


def damaged(fields, change):
    sticky_for, extra, holding, ended, places = fields["sticky"]
    if change == "open":
        holding[0][-1] += 1
    elif change == "arm":
        holding[0][1] = 7
    elif change == "mark":
        holding[0][2] = math.nan
    elif change == "twice":
        holding[1][0] = holding[0][0]
    elif change == "places":
        places = places[:-4]
    elif change == "place":
        places = np.full(len(places) // 4, 9, dtype="<i4").tobytes()
    elif change == "time":
        sticky_for = -1.0
    elif change == "ended":
        ended.append([*holding[0][:-1], 0])
    elif change == "extra":
        extra = -1
    fields["sticky"] = [sticky_for, extra, holding, ended, places]


@cases("change", ["open", "arm", "mark", "twice", "places", "place", "time", "ended", "extra", ""])
def test_a_damaged_file_is_refused(change):
    bandit = rb.Bandit(ARMS, rb.UCB1(), sticky_for=10.0, clock=lambda: 0.0)
    for unit in ("ann", "bob", None, "ann"):
        bandit.decide(unit=unit)
    saved = bandit.to_bytes()
    fields = msgspec.msgpack.decode(saved[HEADER:])
    damaged(fields, change)
    payload = msgspec.msgpack.encode(fields)
    data = saved[: HEADER - 32] + hashlib.sha256(payload).digest() + payload
    if not change:
        assert rb.Bandit.from_bytes(data).to_bytes() == bandit.to_bytes()
        return
    with raises(CorruptFile, match="sticky"):
        rb.Bandit.from_bytes(data)
