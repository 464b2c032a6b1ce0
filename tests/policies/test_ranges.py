"""Every state that a policy reaches is in its declared ranges, which cover every field of Robandit's own policies."""

import os
import warnings

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.every_policy import every_policy
from helpers.fuzzing import MORE
from robandit.errors import NotApplicable
from robandit.kernel.ranges import violation

HORIZON = 2000
SEED = 0 if MORE == 1 else int.from_bytes(os.urandom(4), "big")
POLICIES = every_policy(HORIZON)
SLOW = {"MARS": 40, "RMM-UCB": 40, "KLinf-UCB": 150, "Catoni-Lepskii UCB": 150, "Gaussian TS": 150}
EXTREMES = [1e150, -1e150, 1e-130, -1e-130, 1.0, -1.0, 0.0, -0.0]


def losses(rng, step):
    return -float(rng.pareto(1.2)) if rng.random() < 0.8 else 0.0


def extremes(rng, step):
    return float(rng.choice(EXTREMES)) if rng.random() < 0.5 else float(np.exp(30.0 * rng.normal()))


def ascending(rng, step):
    return float(1.03**step * rng.choice([-1.0, 1.0]))


def mixed(rng, step):
    return (losses, extremes, ascending)[rng.integers(3)](rng, step)


def assert_within(bandit):
    state = bandit._engine.state
    assert violation(state._asdict(), bandit.policy.ranges(state)) is None


def assert_loads(bandit):
    assert rb.Bandit.from_bytes(bandit.to_bytes(), compile="never").to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("rewards", amount([mixed], [mixed, losses, extremes, ascending]))
def test_states_that_a_bandit_reaches_are_valid(policy, rewards):
    """With late and lost rewards, arms that come and go, and choices among some of the arms."""
    rng = np.random.default_rng(SEED)
    bandit = rb.Bandit(range(3), policy, seed=SEED)
    pulls = SLOW.get(policy.label, amount(150, 1500))
    warnings.simplefilter("ignore")
    for step in range(pulls):
        act = rng.random()
        active = [arm for arm, state in bandit.states.items() if state == "active"]
        try:
            if act < 0.05 and len(bandit.arms) < 6:
                bandit.add_arm(len(bandit.arms))
            elif act < 0.1 and len(active) > 2:
                bandit.pause_arm(int(rng.choice(active)))
            elif act < 0.15 and len(active) < len(bandit.arms):
                bandit.resume_arm(next(arm for arm, state in bandit.states.items() if state == "paused"))
            elif act < 0.2:
                bandit.select(among=active[: 1 + int(rng.integers(len(active)))])
        except NotApplicable:
            pass
        if act < 0.5:
            bandit.update(bandit.select(), rewards(rng, step))
        else:
            bandit.decide()
        while bandit.open_count > 5:
            chosen = bandit.open[int(rng.integers(6))]
            if rng.random() < 0.1:
                bandit.expire(chosen)
            else:
                bandit.reward(chosen, rewards(rng, step))
        if step % 97 == 0 or step < 8:
            assert_within(bandit)
    assert_within(bandit)
    assert_loads(bandit)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_field_is_declared(policy):
    state = policy.start(3, None, np.ones(4, dtype=np.uint64))
    assert set(policy.ranges(state)) == set(state._fields) - {"allowed"}
