"""Policies under river: the same choices as a plain bandit, and river's own conventions."""

import copy
import importlib
import math
import pickle
import random
import sys
from decimal import Decimal

import numpy as np
import pytest

import robandit as rb
from helpers.own_policies import Exp3, Greedy
from robandit.errors import DecisionError, HorizonReached, InvalidInput, InvalidReward, UnknownArm

ARMS = ["eu", "us", "asia"]


def test_without_river_the_error_says_what_to_install(monkeypatch):
    for name in list(sys.modules):
        if name == "river" or name.startswith("river."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "robandit.river", raising=False)
    with pytest.raises(ImportError, match=r'pip install "robandit\[river\]"'):
        importlib.import_module("robandit.river")


@pytest.fixture(scope="module")
def river():
    return pytest.importorskip("river", reason="river is not installed")


@pytest.fixture
def adapter(river):
    return importlib.import_module("robandit.river").RiverPolicy


class Servers:
    """What `river.bandit.evaluate` needs of an environment of gymnasium."""

    def __init__(self, arms=3, pulls=60, rewards=lambda rng, arm: -rng.pareto(1.5) - 0.1 * arm):
        self.action_space = type("Space", (), {"n": np.int64(arms), "seed": lambda self, seed: None})()
        self.pulls, self.left, self.rewards = pulls, pulls, rewards

    def reset(self, seed=None):
        self.left, self.rng = self.pulls, np.random.default_rng(seed)

    def step(self, arm):
        assert type(arm) is int
        self.left -= 1
        return None, self.rewards(self.rng, arm), False, self.left == 0, {}


@pytest.mark.parametrize("policy", [rb.UCB1(), Greedy(), Exp3()], ids=repr)
def test_evaluate_plays_as_a_plain_bandit(river, adapter, policy):
    """Every choice, in every episode: river's clones begin anew with the same seed."""
    given = adapter(policy, seed=7)
    trace = list(river.bandit.evaluate([given, river.bandit.UCB(delta=1, seed=1)], Servers(), n_episodes=3, seed=1))
    mine = [step for step in trace if step["policy_idx"] == 0]
    assert len(mine) == 180
    for episode in range(3):
        bandit = rb.Bandit(range(3), policy, seed=7)
        for step in mine[60 * episode : 60 * (episode + 1)]:
            assert step["episode"] == episode
            assert bandit.select() == step["arm"]
            bandit.update(step["arm"], step["reward"])
    assert len({step["arm"] for step in mine}) == 3
    assert given.ranking == [], "evaluate plays with clones"


def test_evaluate_offline_learns_from_matches_alone(river, adapter):
    rng = random.Random(3)
    log = [(ARMS, None, rng.choice(ARMS), -rng.paretovariate(1.5)) for _ in range(400)]
    policy = adapter(Greedy(), seed=5)
    total, used = river.bandit.evaluate_offline(policy, log)
    bandit, matched = rb.Bandit(ARMS, Greedy(), seed=5), []
    for _, _, arm, reward in log:
        if bandit.select() == arm:
            bandit.update(arm, reward)
            matched.append(reward)
    assert 0 < used == len(matched) < 400
    assert total.get() == pytest.approx(sum(matched))
    assert policy.bandit.to_bytes() == bandit.to_bytes()
    assert sorted(policy.ranking) == sorted(ARMS)


def test_ranking_and_repr_are_rivers(river, adapter):
    policy = adapter(rb.UCB1(), reward_obj=river.stats.Max())
    for arm, reward in [("eu", 1.0), ("us", 5.0), ("asia", 3.0), ("eu", 4.0)]:
        policy.pull(ARMS)
        policy.update(arm, reward)
    assert policy.ranking == ["us", "eu", "asia"]
    assert "50.00%" in repr(policy)
    assert "Max: 5" in repr(policy)
    assert policy.bandit.estimates()[0]["mean"] == 2.5


def test_copies_and_clones(adapter):
    policy = adapter(Greedy(eps=0.5), seed=2)
    assert policy.clone().policy == Greedy(eps=0.5)
    assert policy.clone({"seed": 9}).seed == 9
    assert adapter()._is_stochastic
    assert not policy._is_stochastic
    assert adapter(**next(adapter._unit_test_params())).clone().policy is None
    for _ in range(30):
        policy.update(policy.pull(ARMS), random.Random(1).random())
    for twin in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy)), policy.clone(include_attributes=True)):
        state = policy.bandit.to_bytes()
        for step in range(30):
            twin.update(twin.pull(ARMS), -float(step))
        assert policy.bandit.to_bytes() == state, "they share nothing"
        twin.ranking.index("eu")
    fresh = policy.clone()
    assert fresh.ranking == []
    with pytest.raises(InvalidInput, match="not known before pull"):
        fresh.bandit  # noqa: B018


def test_arms_may_come_and_go(adapter):
    policy = adapter(rb.UCB1())
    with pytest.raises(InvalidInput, match=r"not known before pull\(arm_ids\)"):
        policy.update("eu", 1.0)
    for bad, match in [
        ([], r"arm_ids = \[\] must be a list of at least one arm"),
        (["eu", "us", "us"], "arm = 'us' must be given once"),
        ({"eu", "us"}, "arm_ids is a set"),
        ([None, math.nan], "arm = nan"),
    ]:
        with pytest.raises(InvalidInput, match=match):
            policy.pull(bad)
    assert policy.pull(np.array(ARMS)) == "eu"
    policy.update(np.str_("eu"), 1.0)
    assert policy.pull(ARMS[::-1]) == policy.pull(tuple(ARMS)) == policy.pull(dict.fromkeys(ARMS).keys()) == "us"
    with pytest.raises(UnknownArm, match="'mars' is unknown"):
        policy.update("mars", 1.0)
    assert policy.pull(["eu"]) == "eu"
    policy.update("us", 3.0)
    policy.update("asia", 2.0)
    assert policy.pull([*ARMS, "mars"]) == "mars", "a new arm is tried"
    assert policy.pull(["eu", "asia"]) == "asia"
    assert policy.bandit.arms == (*ARMS, "mars")
    assert policy._n == sum(policy._counts.values()) == 3


def test_invalid_input_changes_nothing(adapter):
    policy = adapter(Exp3(), seed=1)
    arm = policy.pull(ARMS)
    before = pickle.dumps(policy)
    for bad in (math.nan, math.inf, None, "1", 1e200, 10**400, [1.0]):
        with pytest.raises(InvalidReward):
            policy.update(arm, bad)
    for args, kwargs in [((), {}), ((1.0, 2.0), {}), ((), {"x": 1.0}), ((1.0,), {"w": 2.0})]:
        with pytest.raises(InvalidInput, match=r"learn from one number, update\(arm, reward\)"):
            policy.update(arm, *args, **kwargs)
    with pytest.raises(DecisionError, match=r"not the last arm of select\(\)"):
        policy.update(next(a for a in ARMS if a != arm), 1.0)
    assert pickle.dumps(policy) == before
    for reward in (np.float32(0.5), Decimal("0.5"), np.array(0.5), True):
        policy.update(np.array(policy.pull(ARMS)), reward)
    assert policy._n == 4


def test_parameters_are_required_when_the_policy_is_made(river, adapter):
    with pytest.raises(InvalidInput, match="cannot play without"):
        adapter(rb.RobustMOSS())
    with pytest.raises(InvalidInput, match=r"did you mean UCB1\(\)"):
        adapter(rb.UCB1)
    with pytest.raises(InvalidInput, match="seed = -1"):
        adapter(seed=-1)
    with pytest.raises(InvalidInput, match=r"RiverPolicy: horizon = 1\.5"):
        adapter(horizon=1.5)
    with pytest.raises(InvalidInput, match="univariate statistic or a distribution"):
        adapter(reward_obj=river.metrics.MAE())
    ends = adapter(Ending(), horizon=2)
    for _ in range(2):
        ends.update(ends.pull(ARMS), 1.0)
    with pytest.raises(HorizonReached, match="made for 2 pulls"):
        ends.pull(ARMS)
    assert ends.clone().pull(ARMS) == "eu"
    assert ends.policy == Ending()


class Ending(rb.UCB1):
    """UCB1 that must know the number of pulls."""

    horizon: int | None = None
    about = rb.policies.facts.Facts(knows=("horizon",))
