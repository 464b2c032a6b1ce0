"""uniINF: weights to the last digits, and every decision of the slow implementation."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.driving import Live, Plain, asked, seeded
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_uniinf import SlowUniINF, precise_weights
from robandit.errors import HorizonReached, InvalidInput
from robandit.policies import UniINF
from robandit.policies.tinf import ftrl
from robandit.policies.tinf.ftrl import largest_root, solve_barrier

STEPS = 400


def weights(losses, scale, start=None):
    """Return the weights, by a search from the start of a run or from another."""
    values, out = np.array(losses, dtype=float), np.zeros(len(losses))
    first = largest_root(len(values), 1.0) if start is None else start
    solve_barrier(values, np.ones(len(values), dtype=bool), out, values.min(), 1.0 / scale, 1.0, first)
    return out


def test_printed_values():
    assert weights([0.0, 1.0, 3.0], 4.0) == pytest.approx([0.37069344, 0.33925366, 0.29005290], abs=5e-9)
    live = Plain(UniINF(horizon=10), 3)
    live.s.losses[:] = [0.0, 1.0, 3.0]
    assert live.describe()["probability"] == pytest.approx([0.37069344, 0.33925366, 0.29005290], abs=5e-9)


SPREADS = {
    "equal": lambda rng, k: np.full(k, 3.7),
    "two equal": lambda rng, k: np.concatenate([[0.0, 0.0], 1e3 * rng.random(k - 2)]),
    "small": lambda rng, k: 1e-3 * rng.random(k),
    "moderate": lambda rng, k: rng.normal(0, 3, k),
    "one far below": lambda rng, k: np.concatenate([[-1e9], rng.random(k - 1)]),
    "nine decades": lambda rng, k: 10.0 ** rng.uniform(-3, 9, k),
    "all": lambda rng, k: rng.choice([-1.0, 1.0], k) * 10.0 ** rng.uniform(-12, 15, k),
    "huge": lambda rng, k: rng.normal(0, 1e140, k),
    "to the end": lambda rng, k: np.concatenate([[0.0], 10.0 ** rng.uniform(-140, 140, k - 1)]),
}


@pytest.mark.parametrize("spread", SPREADS)
def test_weights_against_60_digits_wherever_the_search_starts(spread):
    """Relative errors, for tiny weights too."""
    rng = np.random.default_rng(5)
    for arms in (2, 3, 10, 1000) if spread in ("nine decades", "to the end") else (2, 7, 100):
        losses = SPREADS[spread](rng, arms)
        scale = 4.0 * 10.0 ** rng.uniform(0, 5)
        expected = precise_weights(losses, scale)
        for start in (None, 0.0, 0.3 * arms):
            x = weights(losses, scale, start)
            for got, true in zip(x, expected, strict=True):
                assert abs(got - true) <= 1e-12 * true
            assert x.sum() == pytest.approx(1.0, abs=1e-13)


def test_few_passes(monkeypatch):
    """The search takes a few passes from any start."""
    passes = 0

    def counted(z, q):
        nonlocal passes
        passes += 1
        return 1.0 / (1.0 + z)

    monkeypatch.setattr(ftrl, "reciprocal", counted)
    rng = np.random.default_rng(0)
    for spread in SPREADS.values():
        for arms in (2, 10, 300):
            for start in (None, 0.0):
                passes = 0
                weights(spread(rng, arms), 4.0, start)
                assert passes <= 9 * arms


@pytest.mark.independent("UniINF")
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_slow_one(kind):
    """Each pull starts from the same losses, because on some rewards a difference in the last digit grows from pull to pull."""
    arms = 2 + len(kind) % 5
    rng = np.random.default_rng(3)
    live, slow = seeded(Live(UniINF(), arms, STEPS), len(kind)), SlowUniINF(arms, STEPS)
    for step in range(STEPS):
        arm, number = asked(live)
        assert arm == slow.choose(number), f"at step {step}"
        x = slow.weights()
        assert live.s.weights == pytest.approx(x, rel=1e-11)
        reward = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward, x[arm])
        assert live.s.losses == pytest.approx(slow.losses, rel=1e-11)
        assert live.s.scale[0] == pytest.approx(slow.S, rel=1e-11)
        slow.losses[:] = live.s.losses.tolist()
        slow.S = float(live.s.scale[0])
    assert UniINF().counters(live.s) == {"skipped": slow.skipped}
    assert slow.skipped > 0 or kind in ("coins", "constants")


def test_late_rewards_in_any_order():
    """The scale is that of the arrival, the probability that of the decision; some rewards never arrive."""
    rng = np.random.default_rng(8)
    live, slow = seeded(Live(UniINF(), 4, STEPS), 1), SlowUniINF(4, STEPS)
    waiting = []
    for _ in range(STEPS):
        arm, number = asked(live)
        assert arm == slow.choose(number)
        mark, x = live.issue(arm), slow.weights()[arm]
        assert mark == pytest.approx(x, rel=1e-9)
        waiting.append((arm, mark, x))
        while waiting and rng.random() < 0.55:
            arm, mark, x = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                live.forget(arm, mark)
                continue
            reward = float(-rng.pareto(1.3) - 0.3 * arm)
            live.late(arm, reward, mark)
            slow.learn(arm, reward, x)
    assert live.s.losses == pytest.approx(slow.losses, rel=1e-8)
    assert live.s.scale[0] == pytest.approx(slow.S, rel=1e-9)
    assert 0 < UniINF().counters(live.s)["skipped"] == slow.skipped


def test_reading_weights_changes_nothing():
    """Two runs agree to the last bit: one asks once per pull, the other reads often and separates pull and reward."""
    rng = np.random.default_rng(2)
    one, two = seeded(Live(UniINF(), 5, STEPS), 4), seeded(Live(UniINF(), 5, STEPS), 4)
    for _ in range(STEPS):
        arm = one.ask()
        for _ in range(int(rng.integers(3))):
            two.describe()
            kept = two.s.rng.copy()
            assert two.ask() == arm
            two.s.rng[:] = kept
        assert two.ask() == arm
        reward = float(rng.standard_t(1.5) - arm)
        mark = two.issue(arm)
        if rng.random() < 0.5:
            two.describe()
        two.late(arm, reward, mark)
        one.tell(arm, reward)
        assert one.s.losses.tobytes() == two.s.losses.tobytes()
        assert one.s.scale.tobytes() == two.s.scale.tobytes()


def test_by_hand():
    """Two arms: a loss below the threshold S / (4 (1 - x)) = 2, one on it, one above."""
    live = Plain(UniINF(horizon=100), 2)
    S, KlogT = 4.0, 2 * math.log(100)
    mark = live.issue(0)
    assert mark == 0.5
    live.late(0, -1.0, mark)
    assert live.s.losses.tolist() == [2.0, 0.0]
    S = math.sqrt(S**2 + 0.25 / KlogT)
    assert live.s.scale[0] == pytest.approx(S, rel=1e-15)
    other = Plain(UniINF(horizon=100), 2)
    for reward in (2.0, 1e150, -3.0, -1e9):  # never learned; each counts as the threshold
        other.late(0, reward, 0.5)
        assert other.s.losses.tolist() == [0.0, 0.0]
    assert other.s.scale[0] == pytest.approx(4.0 * (1 + 1 / (16 * KlogT)) ** 2, rel=1e-14)
    assert UniINF().counters(other.s) == {"skipped": 4}


def test_a_nearly_certain_arm_does_not_cancel():
    """1 - x is the sum of the other weights, even if x is 1 in floating point; then rewards of any size are learned."""
    live = Plain(UniINF(horizon=100), 3)
    live.s.losses[:] = [0.0, 4e20, 8e20]
    mark = live.issue(0)
    assert mark == 1.0
    assert live.s.last[0].tolist() == [1.0, pytest.approx(1.5e-20, rel=1e-12)]
    live.late(0, -1e19, mark)  # below 4 / (4 * 1.5e-20)
    assert live.s.losses[0] == 1e19
    share = 1e19 * 1.5e-20 / 4.0
    assert live.s.scale[0] == pytest.approx(4.0 * math.sqrt(1 + share**2 / (3 * math.log(100))), rel=1e-15)
    live.late(0, -1e21, mark)
    assert UniINF().counters(live.s) == {"skipped": 1}
    kept = live.s.scale[0]
    live.s.last[0] = [1.0, 0.0]
    live.late(0, -1e21, mark)
    assert live.s.losses[0] == pytest.approx(1e19 + 1e21)
    assert live.s.scale[0] == kept


def test_extreme_rewards_leave_numbers():
    """The largest valid rewards, with the smallest probabilities."""
    rng = np.random.default_rng(1)
    live = seeded(Live(UniINF(), 3, STEPS), 7)
    for step in range(STEPS):
        arm = live.ask()
        live.tell(arm, (0.0, -1e150, 1e150, -1e-150, 5e-324)[step % 5] if step % 2 else -30.0 * arm * rng.random())
        assert np.isfinite(live.s.losses).all()
        x = live.describe()["probability"]
        assert x.sum() == pytest.approx(1.0)
        assert (x >= 0.0).all()
    assert live.s.scale[0] > 4.0


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True, 2**53 + 1])
def test_it_rejects_horizons(horizon):
    with raises(InvalidInput, parameter="horizon", rule="an integer from 1 to 2^53"):
        UniINF(horizon=horizon)


def test_missing_horizon_and_pulls_beyond_it():
    with pytest.raises(InvalidInput, match="without horizon"):
        rb.Bandit(["a", "b"], UniINF())
    bandit = rb.Bandit(["a", "b"], UniINF(horizon=2), seed=0)
    bandit.update(bandit.select(), -1.0)
    assert 0.0 < bandit.decide().propensity < 1.0
    with pytest.raises(HorizonReached):
        bandit.select()
    assert UniINF(horizon=1).params().log_horizon > 0.0
