"""HTINF, OptTINF, AdaTINF, Ada2TINF: weights to the last digits, and every decision of the slow implementations."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain, asked, seeded
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_tinf import SlowAda2TINF, SlowAdaTINF, SlowHTINF, precise_weights
from robandit.errors import HorizonReached, InvalidInput
from robandit.policies import HTINF, Ada2TINF, AdaTINF, OptTINF
from robandit.policies.tinf import ada_tinf, ftrl
from robandit.policies.tinf.htinf import threshold_factor

# --- the step -------------------------------------------------------------------------------------------------------


def tsallis_weights(losses, *, alpha, eta):
    """Return the probabilities that minimise eta <losses, x> - alpha sum x_i^(1/alpha)."""
    values, q = np.array(losses), alpha / (alpha - 1.0)
    weights, allowed = np.zeros(len(values)), np.ones(len(values), dtype=bool)
    with np.errstate(over="ignore"):  # eta times a loss may be infinite: its weight is 0
        ftrl.solve(values, allowed, weights, values.min(), eta, q, ftrl.largest_root(len(values), q))
    return weights


def test_printed_values():
    one = tsallis_weights([0.0, 1.0, 3.0], alpha=2.0, eta=1.0)
    assert one == pytest.approx([0.73018669, 0.21231258, 0.05750073], abs=5e-9)
    two = tsallis_weights([0.0, 1.0, 3.0], alpha=1.5, eta=0.5)
    assert two == pytest.approx([0.70972599, 0.23473996, 0.05553406], abs=5e-9)
    values = {1.2: 0.094276336, 1.5: 0.159103585, 1.9: 0.199722957, 2.0: 0.206299474}
    for alpha, value in values.items():
        assert threshold_factor(alpha - 1.0) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("alpha", [1 + 1e-12, 1.001, 1.3, 1.4999, 1.5, 1.99, 2 - 1e-9, 2 - 1e-15, 2.0])
def test_theta_keeps_its_digits(alpha):
    m = mpmath.MPContext()
    m.dps = 60
    a = m.mpf(alpha)
    second = (2 - 2 / a) ** (1 / (2 - a)) if alpha < 2 else m.exp(m.mpf(-1) / 2)
    assert threshold_factor(alpha - 1.0) == pytest.approx(
        float(min(1 - 2 ** (-(a - 1) / (2 * a - 1)), second)), rel=1e-14
    )


@pytest.mark.parametrize("a", [0.5, 0.499, 0.3, 0.01, 1e-9])
def test_the_series_of_a_short_step(a):
    m = mpmath.MPContext()
    m.dps = 60
    for y in np.linspace(-ftrl.SHORT, ftrl.SHORT, 21):
        expected = (1 - m.mpf(a) * m.mpf(y)) ** (1 / m.mpf(a))
        assert abs(ftrl.series(float(y), a) - expected) <= 3e-16


SPREADS = {
    "equal": lambda rng, k: np.full(k, 3.7),
    "two equal": lambda rng, k: np.concatenate([[0.0, 0.0], 1e3 * rng.random(k - 2)]),
    "small": lambda rng, k: 1e-3 * rng.random(k),
    "moderate": lambda rng, k: rng.normal(0, 3, k),
    "one far below": lambda rng, k: np.concatenate([[-1e9], rng.random(k - 1)]),
    "nine decades": lambda rng, k: 10.0 ** rng.uniform(-3, 9, k),
    "all": lambda rng, k: rng.choice([-1.0, 1.0], k) * 10.0 ** rng.uniform(-12, 15, k),
    "huge": lambda rng, k: rng.normal(0, 1e140, k),
}


@pytest.mark.parametrize("alpha", [1.0001, 1.01, 1.2, 1.45, 1.9, 1.9999, 2.0])
@pytest.mark.parametrize("spread", SPREADS)
def test_weights_against_60_digits(spread, alpha):
    """Relative errors, for tiny weights too; below 1e-300 a double has fewer digits."""
    rng = np.random.default_rng(5)
    for arms in (2, 3, 10, 1000) if alpha in (1.01, 1.45) and spread in ("nine decades", "moderate") else (2, 7, 40):
        losses = SPREADS[spread](rng, arms)
        eta = 10.0 ** rng.uniform(-3, 2)
        x = tsallis_weights(losses, alpha=alpha, eta=eta)
        for got, expected in zip(x, precise_weights(losses, alpha, eta), strict=True):
            assert abs(got - expected) <= 1e-12 * expected + 1e-300
        assert x.sum() == pytest.approx(1.0, abs=1e-14)


LOSSES = st.lists(
    st.one_of(st.floats(-1e9, 1e9), st.floats(-5, 5), st.sampled_from([0.0, 1.0])), min_size=2, max_size=9
)


@settings(max_examples=amount(75, 150), deadline=None, derandomize=True)
@given(LOSSES, st.sampled_from([2.0, 1.9, 1.45, 1.01]), st.floats(1e-6, 1e3), st.floats(0, 1))
def test_weights_are_a_decreasing_law_wherever_the_search_starts(losses, alpha, eta, start):
    x = tsallis_weights(losses, alpha=alpha, eta=eta)
    assert x.sum() == pytest.approx(1.0, abs=1e-14)
    order = np.argsort(losses, kind="stable")
    for i, j in pairwise(order):
        assert x[i] == x[j] if losses[i] == losses[j] else x[i] >= x[j]
    q = alpha / (alpha - 1)
    other, values = np.zeros(len(x)), np.array(losses)
    top = ftrl.largest_root(len(x), q)
    ftrl.solve(values, np.ones(len(values), dtype=bool), other, values.min(), eta, q, start * top)
    np.testing.assert_allclose(other, x, rtol=2e-13 if alpha > 1.1 else 2e-12, atol=1e-300)


def test_few_passes(monkeypatch):
    """The search takes a few passes from any start, and two from the root of the last decision."""
    passes = 0
    original = ftrl.square

    def counted(z, q):
        nonlocal passes
        passes += 1
        return original(z, q)

    monkeypatch.setattr(ftrl, "square", counted)
    rng = np.random.default_rng(0)
    for spread in SPREADS.values():
        for arms in (2, 10, 300):
            passes = 0
            tsallis_weights(spread(rng, arms), alpha=2.0, eta=1.0)
            assert passes <= 6 * arms
    live = seeded(Plain(OptTINF(), 10))
    passes = 0
    for _ in range(1000):
        with np.errstate(over="ignore"):
            arm = live.ask()
        live.tell(arm, -0.1 * arm - 0.1 * rng.random())
    assert passes <= 2.6 * 10 * 1000


# --- decisions ------------------------------------------------------------------------------------------------------

STEPS = 400
PAIRS = {
    "HTINF, eps 1": (HTINF(eps=1.0, u=9.0), lambda arms: SlowHTINF(arms, 1.0, 9.0)),
    "HTINF, eps 0.45": (HTINF(eps=0.45, u=30.0), lambda arms: SlowHTINF(arms, 0.45, 30.0)),
    "HTINF, eps 0.1": (HTINF(eps=0.1, u=5.0), lambda arms: SlowHTINF(arms, 0.1, 5.0)),
    "OptTINF": (OptTINF(), lambda arms: SlowHTINF(arms, 1.0, 1.0)),
    "AdaTINF": (AdaTINF(horizon=STEPS), lambda arms: SlowAdaTINF(arms, STEPS)),
    "Ada2TINF": (Ada2TINF(), SlowAda2TINF),
}


def doublings(live):
    return round(math.log2(live.s.ledger[ada_tinf.LEVEL])), live.s.ledger[ada_tinf.SPENT]


CASES = [
    (name, kind) for i, name in enumerate(PAIRS) for j, kind in enumerate(KINDS) if i in (1, 4) or (i + j) % 3 == 0
]


@pytest.mark.independent("Ada2TINF", "AdaTINF", "HTINF", "OptTINF")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_decisions_are_those_of_the_slow_ones(name, kind):
    """Each pull starts from the same losses, because on some rewards a difference in the last digit grows from pull to pull."""
    policy, slow_of = PAIRS[name]
    arms = 2 + len(kind) % 5
    rng = np.random.default_rng(3)
    live, slow = seeded(Live(policy, arms, STEPS), len(name)), slow_of(arms)
    scale = 1.0 if kind in ("cauchy", "narrow", "two points") else 0.1  # some rewards are learned and some skipped
    for step in range(amount(STEPS // 2, STEPS)):
        arm, number = asked(live)
        assert arm == slow.choose(number), f"at step {step}"
        reward = scale * float(KINDS[kind](rng, arm, 1)[0])
        assert live.s.weights == pytest.approx(slow.weights(), rel=1e-11, abs=1e-300)
        live.tell(arm, reward)
        slow.learn(arm, reward, slow.take(arm))
        assert live.s.losses == pytest.approx(slow.losses, rel=1e-11)
        slow.losses[:] = live.s.losses.tolist()
        if name.startswith("Ada"):
            level, spent = doublings(live)
            assert level == slow.J
            assert spent == pytest.approx(slow.S, rel=1e-9, abs=1e-9)
    assert policy.counters(live.s)["skipped"] == slow.skipped


@pytest.mark.parametrize("name", ["HTINF, eps 0.45", "AdaTINF", "Ada2TINF"])
def test_late_rewards_in_any_order(name):
    """Time is that of the arrival, the probability that of the decision; some rewards never arrive."""
    policy, slow_of = PAIRS[name]
    rng = np.random.default_rng(8)
    live, slow = seeded(Live(policy, 4, STEPS), 1), slow_of(4)
    waiting = []
    for _ in range(STEPS):
        arm, number = asked(live)
        assert arm == slow.choose(number)
        mark, x = live.issue(arm), slow.take(arm)
        assert mark == pytest.approx(x, rel=1e-9)
        waiting.append((arm, mark, x))
        while waiting and rng.random() < 0.55:
            arm, mark, x = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                live.forget(arm, mark)
                continue
            reward = float(-0.1 * rng.pareto(1.3) - 0.05 * arm)
            live.late(arm, reward, mark)
            slow.learn(arm, reward, x)
    assert live.s.losses == pytest.approx(slow.losses, rel=1e-8)
    assert 0 < policy.counters(live.s)["skipped"] == slow.skipped


@pytest.mark.parametrize("name", PAIRS)
def test_reading_weights_changes_nothing(name):
    """Two runs agree to the last bit: one asks once per pull, the other reads often and separates pull and reward."""
    policy, _ = PAIRS[name]
    rng = np.random.default_rng(2)
    one, two = seeded(Live(policy, 5, 400), 4), seeded(Live(policy, 5, 400), 4)
    for _ in range(400):
        arm = one.ask()
        for _ in range(int(rng.integers(3))):
            two.describe()
            kept = two.s.rng.copy()
            assert two.ask() == arm
            two.s.rng[:] = kept
        assert two.ask() == arm
        reward = float(0.1 * rng.standard_t(1.5) - 0.1 * arm)
        chance = two.describe()["probability"][arm]
        mark = two.issue(arm)
        assert mark == chance
        if rng.random() < 0.5:
            two.describe()
        two.late(arm, reward, mark)
        one.tell(arm, reward)
        assert one.s.losses.tobytes() == two.s.losses.tobytes()
    assert one.s.rng.tobytes() == two.s.rng.tobytes()


def test_a_skipped_reward_leaves_the_losses_alone():
    live = Plain(HTINF(eps=1.0, u=4.0), 2)
    r = (1 - 2 ** (-1 / 3)) * 2.0 * math.sqrt(0.5)
    assert live.issue(0) == 0.5
    for reward in (-r * (1 + 1e-14), r * (1 + 1e-14)):
        live.late(0, reward, 0.5)
        assert live.s.losses.tolist() == [0.0, 0.0]
    live.late(0, -r * (1 - 1e-14), 0.5)
    assert live.s.losses == pytest.approx([2 * r, 0.0])
    assert HTINF().counters(live.s) == {"skipped": 2}


def test_ada_tinf_counts_costs_against_the_square_root():
    """A public implementation omits a square root; on these rewards the two differ."""
    rng = np.random.default_rng(0)
    live, slow, wrong = seeded(Live(AdaTINF(horizon=STEPS), 3), 2), SlowAdaTINF(3, STEPS), SlowAdaTINF(3, STEPS, True)
    seen, forgetful = [], []
    for _ in range(STEPS):
        arm = live.ask()
        reward = float(-20.0 * rng.pareto(1.05))
        live.tell(arm, reward)
        for each in (slow, wrong):
            each.learn(arm, reward, each.take(arm))
        seen.append(doublings(live)[0])
        assert seen[-1] == slow.J
        forgetful.append(wrong.J)
    assert max(np.diff(seen)) > 1  # one cost can cause several doublings
    assert seen != forgetful


def test_ada_tinf_by_hand():
    """Two arms, three pulls: a loss that is learned, one that is skipped, a gain that is skipped and lowers the sum."""
    live = Plain(AdaTINF(horizon=7), 2)
    live.late(0, -0.1, live.issue(0))
    assert live.s.losses.tolist() == [0.2, 0.0]
    cost = 2 * 0.01 / math.sqrt(0.5)
    assert doublings(live) == (0, pytest.approx(cost))
    x = tsallis_weights([0.2, 0.0], alpha=2.0, eta=1 / math.sqrt(2))
    mark = live.issue(1)
    assert mark == pytest.approx(x[1], rel=1e-14)
    live.late(1, 1.0, mark)
    assert doublings(live) == (0, pytest.approx(cost - 1))
    live.late(0, -36.0, live.issue(0))  # R = 4: log2(36/4) = 3.17
    assert doublings(live) == (5, 36.0)
    assert live.s.losses.tolist() == [0.2, 0.0]
    expected = tsallis_weights([0.2, 0.0], alpha=2.0, eta=1 / (32 * math.sqrt(4)))
    assert live.describe()["probability"] == pytest.approx(expected, rel=1e-14)
    assert AdaTINF().counters(live.s) == {"skipped": 2, "doublings": 5}


def test_ada2_tinf_restarts_after_1_3_7_pulls():
    live = seeded(Live(Ada2TINF(), 3), 0)
    level = []
    for _ in range(26):
        level.append(bool((live.describe()["probability"] == 1 / 3).all()))
        live.tell(live.ask(), -0.01)
    assert [i for i, flat in enumerate(level) if flat] == [0, 1, 4, 11]
    assert Ada2TINF().counters(live.s) == {"skipped": 0, "doublings": 0, "starts": 4}


@pytest.mark.parametrize("name", PAIRS)
def test_extreme_rewards_leave_numbers(name):
    """The largest valid rewards, with the smallest probabilities."""
    policy, _ = PAIRS[name]
    rng = np.random.default_rng(1)
    live = seeded(Live(policy, 3, STEPS), 7)
    for step in range(STEPS):
        arm = live.ask()
        reward = (0.0, -1e150, 1e150, -1e-150, 5e-324)[step % 5] if step % 2 else -0.3 * arm * rng.random()
        live.tell(arm, reward)
        assert np.isfinite(live.s.losses).all()
        x = live.describe()["probability"]
        assert x.sum() == pytest.approx(1.0)
        assert (x >= 0.0).all()


@pytest.mark.parametrize(
    ("eps", "u"), [(1e-9, 1.0), (1e-9, 5e-324), (1.0, 5e-324), (1.0, 1e308), (0.01, 1e308), (0.3, 1e-300)]
)
def test_extreme_parameters_leave_numbers(eps, u):
    live = seeded(Live(HTINF(eps=eps, u=u), 3), 7)
    rng = np.random.default_rng(1)
    for _ in range(200):
        live.tell(live.ask(), float(rng.standard_cauchy() * u ** (1 / (1 + eps)) / 10) if u < 1e150 else 1e140)
        x = live.describe()["probability"]
        assert x.sum() == pytest.approx(1.0)
        assert np.isfinite(live.s.losses).all()


def test_a_certain_arm_is_played_and_the_leader_gets_the_rounding(monkeypatch):
    live = Plain(OptTINF(), 3)
    live.s.losses[:] = [1e12, 0.0, 1e13]
    assert live.describe()["probability"] == pytest.approx([1e-24, 1.0, 1e-26], rel=1e-6)
    live.s.weights[1] = 1 - 2**-52
    for number, arm in ((2**-53, 1), (1 - 2**-52, 1), (1.0, 1)):
        monkeypatch.setattr(ftrl, "uniform", lambda rng, number=number: number)
        assert live.ask() == arm


def test_shares_of_draws_are_the_probabilities():
    live = seeded(Live(OptTINF(), 4), 0)
    live.s.losses[:] = [0.0, 1.0, 3.0, 0.5]
    expected = live.describe()["probability"]
    counts = np.zeros(4)
    for _ in range(20_000):
        counts[live.ask()] += 1
    assert (np.abs(counts - 20_000 * expected) <= 4.5 * np.sqrt(20_000 * expected * (1 - expected))).all()


# --- invalid parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.0, -0.5, 1.5, math.nan, True, "half", 1e-10])
def test_htinf_rejects_orders(eps):
    with raises(InvalidInput, parameter="eps", rule="a number with 0 < eps <= 1 (and at least 1e-09)"):
        HTINF(eps=eps)


@pytest.mark.parametrize("u", [0.0, -1.0, math.inf, math.nan, True, "1"])
def test_htinf_rejects_bounds(u):
    with raises(InvalidInput, parameter="u", rule="a finite number > 0"):
        HTINF(eps=0.5, u=u)


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True, 2**53 + 1])
def test_ada_tinf_rejects_horizons(horizon):
    with raises(InvalidInput, parameter="horizon", rule="an integer from 1 to 2^53"):
        AdaTINF(horizon=horizon)


def test_missing_parameters_and_pulls_beyond_the_horizon():
    with pytest.raises(InvalidInput, match="without eps, u"):
        rb.Bandit(["a", "b"], HTINF())
    with pytest.raises(InvalidInput, match="without horizon"):
        rb.Bandit(["a", "b"], AdaTINF())
    bandit = rb.Bandit(["a", "b"], AdaTINF(horizon=2), seed=0)
    bandit.update(bandit.select(), -1.0)
    decision = bandit.decide()
    assert 0.0 < decision.propensity < 1.0
    with pytest.raises(HorizonReached):
        bandit.select()
    assert sum(row["probability"] for row in bandit.estimates()) == pytest.approx(1.0)
