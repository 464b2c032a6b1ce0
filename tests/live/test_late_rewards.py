"""Decisions in flight count: the values of the rule for AdaKL-UCB, and an arm that never answers."""

import numpy as np
import pytest

import robandit as rb

pytestmark = pytest.mark.filterwarnings("ignore::robandit.errors.ExpiryWarning")
REWARDS = {0: (1, 2, 4, 1.5, 3, 0.5, 2.5, 1.2), 1: (1.1, 2.2, 3, 0.9, 6)}
INDICES = [  # computed by the prototype of the rule
    ((0, 0), (-1.3251251517, -1.4903313095)),
    ((10, 0), (-1.4781546841, -1.3690680635)),
    ((0, 10), (-1.2464540135, -1.8209148182)),
    ((100, 5), (-1.7166473544, -1.3671217760)),
]


@pytest.mark.parametrize(("waiting", "indices"), INDICES)
def test_indices_with_open_decisions(waiting, indices):
    bandit = rb.Bandit([0, 1], rb.AdaKLUCB(), seed=0, compile="never")
    for arm, costs in REWARDS.items():
        for cost in costs:
            bandit.update(arm, -cost)
    opened = [bandit.decide(arm=arm) for arm, count in enumerate(waiting) for _ in range(count)]
    assert [row["index"] for row in bandit.estimates()] == pytest.approx(indices, abs=1e-9)
    for decision in opened[::2]:  # a decision that expired stays counted
        bandit.expire(decision)
    assert [row["index"] for row in bandit.estimates()] == pytest.approx(indices, abs=1e-9)


def decisions_of_a_dead_arm(policy, expires):
    """Of 2,000, if every other arm answers after five further decisions."""
    bandit = rb.Bandit(["good", "fair", "dead"], policy, seed=0, compile="never")
    rng = np.random.default_rng(0)
    made, dead = [], 0
    for _ in range(2_000):
        made.append(bandit.decide())
        dead += made[-1].arm == "dead"
        while len(made) > 5:
            decision = made.pop(0)
            if decision.arm != "dead":
                bandit.reward(decision, -float(rng.lognormal()) * (1.0 if decision.arm == "good" else 1.5))
            elif expires:
                bandit.expire(decision)
    return dead


@pytest.mark.parametrize("expires", [False, True], ids=["open", "expires"])
@pytest.mark.parametrize("policy", [rb.AdaKLUCB(), rb.UCB1(), rb.NormalUCB()], ids=repr)
def test_an_arm_that_never_answers_gets_few_decisions(policy, expires, monkeypatch):
    assert decisions_of_a_dead_arm(policy, expires) <= (30 if policy == rb.AdaKLUCB() else 200)
    monkeypatch.setattr("robandit.live.bandit.RULE", 0)  # that of 0.2
    assert decisions_of_a_dead_arm(policy, expires) > 1_900
