"""PerCell plays another policy in each cell, as separate bandits would."""

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable

FEATURES = {"region": rb.Category(["eu", "us", "asia", "africa"])}


def made(policy, **options):
    return rb.Bandit(["a", "b", "c"], policy, features=FEATURES, seed=0, compile="never", clock=lambda: 1.0, **options)


@pytest.mark.independent("PerCell")
@pytest.mark.parametrize("policy", [rb.AdaKLUCB(), rb.UCB1(), rb.AdaRUCB()], ids=repr)
def test_each_cell_decides_as_a_bandit_of_its_own(policy):
    """Also with late rewards, an arm that joins, one that is paused, and after loading."""
    bandit, rng = made(rb.PerCell(policy)), np.random.default_rng(1)
    alone = {
        region: rb.Bandit(["a", "b", "c"], policy, seed=0, compile="never") for region in FEATURES["region"].values
    }
    waiting = []
    for step in range(120):
        region = str(rng.choice(FEATURES["region"].values[:3]))
        mine, its = bandit.decide(context={"region": region}), alone[region].decide()
        assert mine.arm == its.arm, step
        waiting.append((mine, its, region))
        if step == 60:
            for each in (bandit, *alone.values()):
                each.add_arm("d")
                each.pause_arm("b")
        if step == 80:
            bandit = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never", clock=lambda: 1.0)
        while len(waiting) > 4:
            mine, its, where = waiting.pop(int(rng.integers(len(waiting))))
            reward = -float(rng.pareto(1.5)) - "abcd".index(mine.arm) * (where == "eu")
            bandit.reward(mine, reward)
            alone[where].reward(its, reward)
    for region in ("eu", "us", "asia"):
        rows = bandit.explain(context={"region": region})["arms"]
        for row, other in zip(rows, alone[region].estimates(), strict=True):
            np.testing.assert_allclose(row.get("mean", 0.0), other.get("mean", 0.0), rtol=1e-12)


def test_contexts_beyond_the_limit_share_the_last_cell():
    bandit = made(rb.PerCell(rb.UCB1(), limit=2))
    for region, reward in (("eu", 1.0), ("us", 2.0), ("asia", 4.0), ("africa", 6.0)):
        bandit.update("a", reward, context={"region": region})
    means = {r: bandit.explain(context={"region": r})["arms"][0]["mean"] for r in FEATURES["region"].values}
    assert means == {"eu": 1.0, "us": 4.0, "asia": 4.0, "africa": 4.0}


def test_a_log_replays_to_the_same_bytes():
    log = []
    bandit, rng = made(rb.PerCell(rb.EpsilonGreedy()), log=log.append), np.random.default_rng(2)
    for step in range(60):
        context = {"region": str(rng.choice(FEATURES["region"].values))}
        bandit.select(context=context)
        bandit.reward(bandit.decide(context=context), float(rng.random()))
        if step == 30:
            bandit.add_arm("d")
    again = made(rb.PerCell(rb.EpsilonGreedy()))
    for event in log:
        again.apply(event.to_dict())
    assert again.to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: rb.PerCell(rb.AdaClipTS()), InvalidInput),
        (lambda: rb.PerCell(rb.Floor()), InvalidInput),
        (lambda: rb.PerCell(rb.AdaTINF(horizon=10)), NotApplicable),
        (lambda: rb.PerCell(limit=0), InvalidInput),
    ],
)
def test_what_cannot_be_split_is_refused(call, kind):
    with raises(kind):
        call()
