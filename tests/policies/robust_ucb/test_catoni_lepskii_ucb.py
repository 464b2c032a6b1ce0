"""Catoni-Lepskii UCB has the estimates of the one-shot estimators, and the decisions of the slow policy."""

import itertools
import math

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_catoni_lepskii_ucb import Slow
from robandit.errors import InvalidInput
from robandit.estimators import lepskii_catoni
from robandit.estimators.formulas.catoni import power_sums
from robandit.estimators.infinite_variance import tuning
from robandit.policies.robust_ucb import catoni_lepskii_ucb
from robandit.policies.robust_ucb.catoni_lepskii_ucb import CatoniLepskiiUCB


@pytest.mark.parametrize("eps", [0.1, 0.45, 1.0])
@pytest.mark.parametrize("tau0", [None, 0.5])
def test_width_and_tau0_are_those_of_the_estimator(eps, tau0):
    p = CatoniLepskiiUCB(eps=eps, tau0=tau0).params()
    for share in (1e-2, 1e-3, 1e-6):
        tuned = catoni_lepskii_ucb.tuned(p, share)
        try:
            expected = tuning(1_000_000, share * 1e6, eps, tau0)
        except InvalidInput:
            assert tuned[2] == math.inf
            continue
        assert tuned[2] == pytest.approx(expected.width, rel=1e-12)
        assert tuned[0] == pytest.approx(expected.tau0, rel=1e-6)
    assert catoni_lepskii_ucb.tuned(p, 1.0)[2] == math.inf


def test_an_estimate_is_that_of_the_one_shot_estimator():
    x = np.random.default_rng(1).pareto(1.8, 300) - 3.0
    for eps, range_factor, ratio in ((0.3, 10.0, 3.0), (0.7, 100.0, 2.0), (1.0, 5.0, 1.3)):
        p = CatoniLepskiiUCB(eps=eps, range_factor=range_factor, ratio=ratio).params()
        own = np.zeros(3)
        catoni_lepskii_ucb.renew_estimate(p, own, x, (p.extra + math.log(20.0)) / 300.0)
        expected = lepskii_catoni(x, eps=eps, delta=0.05, range_factor=range_factor, ratio=ratio)
        assert own[catoni_lepskii_ucb.MEAN] == pytest.approx(expected.value, rel=1e-10)
        assert own[catoni_lepskii_ucb.SCALE] == pytest.approx(expected.threshold, rel=1e-12)
        assert own[catoni_lepskii_ucb.COUNTED] == 300.0


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0])
def test_sums_are_right_at_all_distances(eps):
    c = CatoniLepskiiUCB(eps=eps).params().c
    for z in (1e-9, 0.3, 7.0, 0.99e8, 1.01e8, 1e20, 1e100):
        out, slope = power_sums(np.array([-3.0 * z]), 0.0, 1.0 / 3.0, 1.0 + eps, c)
        q = 1.0 + z + c * z ** (1.0 + eps)
        assert out == pytest.approx(-math.log1p(z + c * z ** (1.0 + eps)), rel=1e-13, abs=2e-16)
        assert slope == pytest.approx((1.0 + (1.0 + eps) * c * z**eps) / q, rel=1e-7)
    with np.errstate(over="ignore"):
        out, slope = power_sums(np.array([1e150]), 0.0, 1e200, 1.0 + eps, c)
    log_z = 350.0 * math.log(10.0)
    assert out == pytest.approx(log_z + np.logaddexp(0.0, math.log(c) + eps * log_z), rel=1e-12)
    assert slope == 0.0


@pytest.mark.independent("CatoniLepskiiUCB")
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_slow_policy(kind):
    rng = np.random.default_rng(2)
    arms, steps = 3, 500
    live, slow = Live(CatoniLepskiiUCB(eps=0.6, range_factor=20.0), arms), Slow(arms, 0.6, range_factor=20.0)
    streams = [iter(KINDS[kind](rng, arm, steps)) for arm in range(arms)]
    same = 0
    for t in range(steps):
        arm = live.ask()
        best, values = slow.best() if t % 2 == 0 or t < 250 else (arm, [0.0] * arms)
        assert values[arm] == values[best] or values[arm] == pytest.approx(values[best], rel=1e-9, abs=1e-9)
        same += arm == best
        reward = float(next(streams[arm]))
        live.tell(arm, reward)
        slow.tell(arm, reward)
    assert same >= (0.5 if kind in ("constants", "zeros", "mostly zeros") else 0.99) * steps
    columns = live.describe()
    assert columns["index"] == pytest.approx(slow.indices(), rel=1e-9, abs=1e-9)
    assert np.isfinite(columns["index"]).any()


def test_lines_stay_above_the_index():
    rng = np.random.default_rng(3)
    for eps, tau0, n in ((0.3, None, 400), (0.6, 0.5, 300), (1.0, None, 60), (1.0, None, 2000)):
        live = Plain(CatoniLepskiiUCB(eps=eps, tau0=tau0), 1)
        p, s = live.p, live.s
        s.arms[0] = rng.standard_normal(), 2.0, 1.0
        s.slots[0, catoni_lepskii_ucb.USED] = n
        level = 0.5
        while (value := CatoniLepskiiUCB.index(p, s, 0, level)) < math.inf:
            height, slope, until = CatoniLepskiiUCB.outlook(p, s, 0, level)
            assert value <= height <= value + 1e-9 * (1.0 + abs(value))
            for later in np.linspace(level, until, 9):
                assert CatoniLepskiiUCB.index(p, s, 0, later) <= height + slope * (later - level)
            level += 0.3
        assert level > 1.0
        assert CatoniLepskiiUCB.outlook(p, s, 0, level)[0] == math.inf


def test_an_arm_of_zeros_is_pulled_rarely():
    live = Live(CatoniLepskiiUCB(eps=0.5), 2)
    rng = np.random.default_rng(4)
    pulls = [0, 0]
    for _ in range(1500):
        arm = live.ask()
        live.tell(arm, 0.0 if arm == 0 else 1.0 + float(rng.random()))
        pulls[arm] += 1
    columns = live.describe()
    assert (columns["mean"][0], columns["index"][0], columns["scale"][0]) == (0.0, 0.0, 0.0)
    assert 50 < pulls[0] < 150
    live.tell(0, 5.0)  # the first non-zero reward triggers an estimate
    assert live.describe()["scale"][0] > 0.0
    assert live.describe()["index"][0] > 0.0


def test_between_refreshes_only_the_width_moves():
    live = Live(CatoniLepskiiUCB(eps=0.5, refresh=0.5), 1)
    rng = np.random.default_rng(5)
    changes = []
    last = math.nan
    for n in range(1, 800):
        live.tell(0, float(rng.standard_t(2.0)))
        mean = live.describe()["mean"][0]
        if mean == mean and mean != last:
            changes.append(n)
        last = mean
    assert all(b == math.ceil(1.5 * a) for a, b in itertools.pairwise(changes))
    assert len(changes) > 4


def test_huge_and_tiny_rewards_give_numbers():
    rng = np.random.default_rng(6)
    live = Live(CatoniLepskiiUCB(eps=0.9), 2)
    sizes = np.array([1e150, 1e-150, 1.0, 1e12, 0.0])
    for _ in range(400):
        live.tell(live.ask(), float(rng.choice(sizes) * rng.choice([-1.0, 1.0])))
    columns = live.describe()
    assert np.isfinite(columns["index"]).all()
    assert np.isfinite(columns["mean"]).all()


@pytest.mark.parametrize(
    ("parameters", "name", "rule"),
    [
        ({"eps": 0.0}, "eps", "a number with 0 < eps <= 1"),
        ({"range_factor": 1.0}, "range_factor", "a finite number > 1"),
        ({"ratio": 0.5}, "ratio", "a finite number > 1"),
        ({"ratio": 1.001}, "ratio", "at least 1.00936"),
        ({"tau0": 0.0}, "tau0", "a finite number > 0"),
        ({"refresh": 0.0}, "refresh", "a finite number > 0"),
    ],
)
def test_invalid_parameters(parameters, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        CatoniLepskiiUCB(**parameters)
