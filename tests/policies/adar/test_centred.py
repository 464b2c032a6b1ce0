"""AdaR-UCB about a centre: the slow reference's decisions, rewards that come late, symmetries, memory."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.driving import Live, Plain
from helpers.rewards import KINDS
from policies.adar.test_adar_ucb_exact import Judge, length, options
from references.slow_adar_ucb_centred import FIRST, SlowCentred
from robandit.errors import InvalidInput
from robandit.policies import AdaRUCB
from robandit.policies.adar import adar_ucb, layout, trimmed_index
from robandit.policies.adar.centre import due, median_in_place
from robandit.policies.assumptions import CENTRED

# One process compiles the hooks.
pytestmark = pytest.mark.xdist_group("centred")

IN_X, IN_TOP = layout.IN_X, layout.IN_TOP
QUICK = AdaRUCB(center="median", bonus=0.5, c=1.0, guard=3.0, delta_exp=1.0)
# The share of second rewards that differ from their median.
DIFFERENT = {"half zeros": 0.4, "mostly zeros": 0.01, "two points": 0.02, "coins": 0.4, "integers": 0.6}


def agree(live, reference, tau, rtol=1e-11):
    """Everything that the library says about its arms, against 70 digits."""
    said = live.describe()
    for arm in range(live.arms):
        want = reference.precise(arm, tau)
        if want is None:
            assert said["index"][arm] == math.inf
            continue
        assert said["threshold"][arm] == pytest.approx(float(want.threshold), rel=rtol)
        near = rtol * float(want.threshold) + 1e-15 * abs(want.centre)
        assert abs(said["mean"][arm] - float(want.centre + want.mean)) <= near
        assert abs(said["index"][arm] - float(want.index)) <= rtol * float(want.size - abs(want.centre)) + near
        assert said["share_trimmed"][arm] == float(want.share_trimmed)
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_the_references(kind):
    judge = Judge()
    for number in range(3):
        rng = np.random.default_rng([5, number, list(KINDS).index(kind)])
        arms = int(rng.choice([2, 3, 5]))
        chosen = options(rng)
        share = DIFFERENT.get(kind, 1.0)
        if share < 0.1:
            chosen |= {"c": 0.7, "delta_exp": 1.0, "guard": 0.7}
            arms = 2
        rounds = min(length(rng, arms, chosen, share), 300)
        scale = [1.0, 2.0**-300, 1e140][number]
        shifts = [[0.0], [1e9], rng.uniform(-30, 30, arms)][number]
        rewards = [scale * (shifts[arm % len(shifts)] + KINDS[kind](rng, arm, 2 * rounds)) for arm in range(arms)]
        live = Live(AdaRUCB(center="median", **chosen), arms, 2 * rounds if number % 2 else None)
        reference = SlowCentred(arms, **chosen)
        used = [0] * arms
        for tau in range(1, rounds + 1):
            expected, _ = reference.choose(tau)
            arm = live.ask()
            judge(reference, tau, arm, expected)
            first, second = rewards[arm][used[arm] : used[arm] + 2]
            used[arm] += 2
            live.tell(arm, first)
            assert live.ask() == arm
            live.tell(arm, second)
            reference.learn(arm, first, second)
        agree(live, reference, rounds + 1)
        assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert judge.decisions > 100
    # A shift of 1e9 leaves some differences below what doubles can tell.
    assert judge.indistinct <= 0.05 * judge.decisions


def told_late(runner, order, policy=QUICK, horizon=None, seed=1):
    """A run and the reference after rewards that arrived in this order of streams, at arm 0 of 2."""
    rng = np.random.default_rng(seed)
    run, reference = runner(policy, 2, horizon), SlowCentred(2, c=1.0, guard=3.0, bonus=0.5, delta_exp=1.0)
    for second in order:
        reward = 5.0 + float(rng.standard_t(1.5))
        run.late(0, reward, IN_TOP if second else IN_X)
        reference.late(0, reward, second)
        received = run.s.received[0]
        assert received[1] == min(len(reference.y[0]), FIRST)
        if len(reference.y[0]):
            assert run.s.centres[0] == reference.centre(0)
            assert run.s.counts[0, layout.N_X] == len(reference.x[0])
    run.s.clock[layout.ROUNDS] = 6
    return run, reference


@pytest.mark.parametrize("horizon", [20, None])
@pytest.mark.parametrize(
    "order",
    [
        [0] * 150 + [1] * 110,  # 22 first rewards join the second ones
        [1] * 300 + [0] * 300,
        [0] * 128 + [1] * 127 + [0, 0, 0, 1, 0],  # the centre is final when a first reward completes it
        [0, 1] * 200,
        [0] * 700 + [1] * 700,
    ],
    ids=["first, then second", "second, then first", "on the edge", "in turn", "very late"],
)
def test_rewards_in_any_order(order, horizon):
    run, reference = told_late(Plain, order, horizon=horizon)
    said = agree(run, reference, 7)
    assert math.isfinite(said["index"][0])
    assert run.s.buffer.shape[2] <= adar_ucb.LIVE_VALUES + 1


def test_rewards_wait_for_the_first_centre():
    run, _ = told_late(Plain, [0] * 10)
    assert run.s.counts[0, layout.N_X] == 0
    assert run.describe()["index"][0] == math.inf
    run.late(0, 3.0, IN_TOP)
    assert run.s.centres[0] == 3.0
    assert run.s.counts[0, layout.N_X] == 10
    assert run.s.counts[0, layout.N_NONZERO] == 0  # the only one is the centre


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.booleans(), max_size=300), st.integers(0, 5))
def test_any_mixture_of_streams(order, seed):
    run, reference = told_late(Plain, [*order, 1], seed=seed)
    agree(run, reference, 7)


def test_lost_pulls_are_those_of_the_plain_one():
    plain, centred = Plain(AdaRUCB(), 2), Plain(AdaRUCB(center="median"), 2)
    for arm in (0, 0, 1, 0, 1, 1, 1):
        assert plain.issue(arm) == centred.issue(arm)
    for arm, mark in ((0, IN_X), (1, IN_TOP), (1, IN_TOP)):
        plain.forget(arm, mark)
        centred.forget(arm, mark)
        assert plain.ask() == centred.ask()
    assert (plain.s.counts == centred.s.counts).all()


def test_a_new_centre_can_send_an_arm_back_to_exploration():
    """Fewer second rewards may differ from the new centre than from the old one."""
    run = Plain(AdaRUCB(center="median", c=1.0, delta_exp=1.0), 2)
    for value in range(40):
        for mark in (IN_X, IN_TOP):
            run.late(1, 1e6 + value, mark)
    for value in (1.0, 2.0, 3.0):
        for mark in (IN_X, IN_TOP):
            run.late(0, value, mark)
    run.s.clock[layout.ROUNDS] = 9  # log 10 is between 2 and 3
    assert run.ask() == 1
    assert run.s.counts[0, layout.N_NONZERO] == 3  # from 1.5
    run.late(0, 2.0, IN_TOP)
    assert run.s.counts[0, layout.N_NONZERO] == 2  # from 2
    assert run.ask() == 0


def dyadic(seed, n=1500):
    """Rewards whose differences are exact, also after a shift by 2^20."""
    rewards = np.random.default_rng(seed).standard_t(1.5, (3, n)) - np.array([[0.0], [0.1], [0.2]])
    return np.round(np.clip(rewards, -500, 500) * 2.0**16) / 2.0**16


def decisions(policy, rewards, steps=1200):
    live, used = Live(policy, len(rewards)), [0] * len(rewards)
    chosen = []
    for _ in range(steps):
        chosen.append(live.ask())
        live.tell(chosen[-1], float(rewards[chosen[-1]][used[chosen[-1]]]))
        used[chosen[-1]] += 1
    return chosen, live.describe()


@pytest.mark.parametrize("solver", ["exact", "doubling"])
def test_shift_and_scale_change_nothing(solver):
    policy = AdaRUCB(center="median", c=1.0, guard=3.0, delta_exp=1.0, solver=solver)
    rewards = dyadic(2)
    chosen, said = decisions(policy, rewards)
    assert (np.array(chosen) != decisions(policy, dyadic(3))[0]).mean() > 0.2  # rewards do decide
    for scale, shift in ((1.0, 2.0**20), (1.0, -(2.0**20)), (2.0**40, 0.0), (2.0**-30, 16.0)):
        others, other = decisions(policy, scale * (rewards + shift))
        assert others == chosen, (scale, shift)
        assert (other["threshold"] == scale * said["threshold"]).all()
        assert (other["share_trimmed"] == said["share_trimmed"]).all()
        for name in ("mean", "index"):
            np.testing.assert_allclose(other[name] / scale - shift, said[name], rtol=1e-14, atol=2e-16 * abs(shift))


def test_memory_is_bounded_in_a_live_bandit():
    rng = np.random.default_rng(0)
    live = Live(QUICK, 2)
    assert sum(array.nbytes for array in live.s) / 2 < 8 * 1024
    rewards = 1e3 - rng.pareto(1.2, (2, 6000))
    for reward in rewards.T:
        for arm in (0, 1):
            live.tell(arm, reward[arm])
    assert live.s.counts[:, layout.N_X].tolist() == [3000] * 2
    assert sum(array.nbytes for array in live.s) / 2 <= 32 * 1024
    assert live.s.firsts.shape == (2, 2, FIRST)
    assert live.s.counts[:, [layout.TOP, layout.BIG]].max() < 1.6 * live.s.limits[0] + 64
    assert live.policy.counters(live.s) == {"fallbacks": 0}


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=FIRST))
def test_the_median_is_numpys(values):
    row = np.array([*values, 7.0])
    assert median_in_place(row, len(values)) == np.median(values)
    assert row.tolist() == [*sorted(values), 7.0]


def test_the_centre_is_renewed_at_powers_of_two():
    assert [count for count in range(10_000) if due(count)] == [2**k for k in range(8)]
    assert due(FIRST)


@pytest.mark.parametrize("word", ["mean", "", True, 0.0])
def test_other_centres_are_rejected(word):
    with pytest.raises(InvalidInput, match=r"center = .* must be one of None, 'median'"):
        AdaRUCB(center=word)


def test_what_it_says_about_itself():
    plain, centred = AdaRUCB(), AdaRUCB(center="median")
    assert centred.name == "AdaR-UCB(center='median')"
    assert centred.facts.assumption == CENTRED != plain.facts.assumption
    assert (centred.facts.bound, centred.facts.instance, centred.facts.worst, centred.facts.row) == ("", "", "", 0)
    assert plain.facts.bound
    assert plain.variants() == (plain,)
    assert rb.Policy.from_dict(centred.to_dict()) == centred
    assert type(plain.init(2, None)) is trimmed_index.State  # what saved bandits hold


def test_a_saved_bandit_goes_on(tmp_path):
    rng = np.random.default_rng(4)
    bandit = rb.Bandit(["a", "b"], QUICK, seed=0)
    for steps in (3, 100, 500):
        for _ in range(steps):
            bandit.update(bandit.select(), 100.0 + rng.standard_t(1.5))
        bandit.save(tmp_path / "x.bandit")
        again = rb.Bandit.load(tmp_path / "x.bandit")
        assert again.policy == QUICK
        for one, two in zip(again._engine.state, bandit._engine.state, strict=True):
            assert one.tobytes() == two.tobytes()
        bandit = again
    assert 90 < bandit.estimates()[0]["mean"] < 110
