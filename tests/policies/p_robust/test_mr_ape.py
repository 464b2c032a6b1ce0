"""MR-APE: decisions of the formula for the same uniform numbers, a perturbation that ends, invalid parameters."""

import numpy as np
import pytest

from helpers.driving import Live, seeded
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_p_robust import SlowMRAPE
from robandit.errors import InvalidInput
from robandit.kernel.random import streams
from robandit.policies import MRAPE

STEPS = 400


@pytest.mark.independent("MRAPE")
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_formula(kind):
    for arms, eps, c in [(2, 1.0, 0.5), (5, 0.4, 2.0)]:
        rng = np.random.default_rng(arms)
        stream = streams(np.random.SeedSequence(arms), 1)[0]
        live = Live(MRAPE(eps=eps, c=c), arms, STEPS)
        live.s.rng[:] = stream
        slow = SlowMRAPE(arms, eps, c, STEPS, stream)
        for step in range(STEPS):
            arm = live.ask()
            assert arm == slow.choose(), step
            reward = float(KINDS[kind](rng, arm, 1)[0])
            live.tell(arm, reward)
            slow.learn(arm, reward)
        assert live.s.rng.tolist() == slow.rng.tolist()
        assert live.describe()["mean"] == pytest.approx([slow.mean(arm) for arm in range(arms)], rel=1e-11, abs=1e-13)


def test_the_perturbation_ends_at_a_fair_share():
    live = Live(MRAPE(eps=0.5, horizon=300), 3)
    reach = []
    for _ in range(120):
        live.tell(1, 0.0)
        reach.append(live.describe()["reach"][1])
    assert reach[9] == pytest.approx(2 * 0.5 * np.log(10) / 10 ** (1 / 3))
    assert (np.diff(reach) <= 0).all()
    assert reach[98] > 0
    assert reach[99:] == [0.0] * 21


def test_every_draw_is_new_and_arms_differ():
    """With equal data each of two arms is chosen half of the time: 200 of 400 draws, within 5 standard deviations."""
    live = seeded(Live(MRAPE(eps=1.0, horizon=1000), 2), 1)
    live.tell(0, 1.0)
    live.tell(1, 1.0)
    assert abs(sum(live.ask() for _ in range(400)) - 200) < 50


def test_ties_go_to_the_fewest_pulls():
    """Nothing is left to explore, and all means are 0."""
    live = seeded(Live(MRAPE(eps=1.0, horizon=3), 3), 1)
    chosen = []
    for _ in range(7):
        chosen.append(live.ask())
        live.tell(chosen[-1], 0.0)
    assert chosen == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize(
    ("parameters", "name", "rule"),
    [
        ({"eps": True}, "eps", "a number with 0 < eps <= 1"),
        ({"eps": 1e-17}, "eps", "a number with 0 < eps <= 1"),
        ({"c": -1.0}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"c": 1e-200}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"horizon": -5}, "horizon", "an integer from 1 to 2^53"),
    ],
)
def test_invalid_parameters(parameters, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        MRAPE(**parameters)
