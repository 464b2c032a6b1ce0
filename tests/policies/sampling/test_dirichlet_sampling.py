"""Dirichlet sampling."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_dirichlet_sampling import SlowDirichletSampling, bonus_point, winning_probability
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.random import streams
from robandit.policies.sampling import dirichlet_sampling as module
from robandit.policies.sampling.dirichlet_sampling import CAP, LEAST, DirichletSampling
from robandit.policies.sampling.rounds import LEADER, PROPOSED, ROUND

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose

ROBUST, BOUNDED = DirichletSampling(), DirichletSampling(bonus="bounded", upper=3.0)


def run(policy, arms, seed=1, kind=Live):
    return kind(policy, arms, state=policy.start(arms, None, streams(np.random.SeedSequence(seed), 1)[0]))


# --- the probability of a duel -------------------------------------------------------------------------------------------------


def test_the_probability_by_hand():
    """One reward x below mu: w_1 x + w_2 b >= mu for w_2 >= (mu - x)/(b - x), so P = (b - mu)/(b - x)."""
    assert winning_probability([0.0], 1.0, 3.0) == pytest.approx(2 / 3)
    # the robust bonus: b - mu = rho (mu - x), so P = rho / (1 + rho), for every x < mu
    rho = math.sqrt(math.log(2.0))
    for x in (-1.0, -1e9):
        assert winning_probability([x], 0.0, bonus_point([x], 0.0)) == pytest.approx(rho / (1 + rho))


DUELS = {
    "one reward": ([-1.0], 0.0),
    "likely": ([0.5, -0.75], 0.0),
    "even": ([1.25, -0.5, 0.25, -0.875], 0.125),
    "rare": ([0.5, -1.0, -0.25, 0.125, -2.0, -0.75, 0.375, -1.5, -0.125, -0.625], 0.25),
    "outlier": ([2.5, -0.5, -0.375, -40.0, 0.25, -0.75], 0.5),
}
DRAWS = 40_000


def frequency(policy, rewards, mu, fresh=False):
    """How often the challenger wins, over rounds. The leader has one reward more, of mean mu."""
    live = run(policy, 2)
    for _ in range(len(rewards) + 1):
        live.tell(0, mu)
    for reward in rewards:
        live.tell(1, reward)
    won = 0
    for r in range(DRAWS):
        live.s.clock[ROUND] = r  # other random numbers
        live.s.clock[PROPOSED] = 0
        if fresh:
            live.s.caps[1, LEAST] = math.inf
        won += live.ask()
    return won / DRAWS


def resolves(found, expected):
    """Whether the frequency is within five standard errors of a probability."""
    return abs(found - expected) <= 5.0 * math.sqrt(expected * (1.0 - expected) / DRAWS)


@pytest.mark.parametrize("policy", [ROBUST, BOUNDED], ids=["robust", "bounded"])
@pytest.mark.parametrize("name", DUELS)
def test_duels_are_won_with_the_exact_probability(policy, name):
    rewards, mu = DUELS[name]
    b = bonus_point(rewards, mu, policy.upper)
    found = frequency(policy, rewards, mu)
    assert resolves(found, winning_probability(rewards, mu, b))
    # controls: another bonus point, and no bonus point at all
    assert not resolves(found, winning_probability(rewards, mu, mu + 0.75 * (b - mu)))
    if any(x > mu for x in rewards):
        assert not resolves(found, winning_probability(rewards[1:], mu, rewards[0]))


def test_the_tilted_formula_is_the_probability():
    """C E[exp(-t A') 1{A' >= 0}] for other t than the best one, by simulation: the identity in the module's docstring."""
    rewards, mu = DUELS["rare"]
    z = np.array([*rewards, bonus_point(rewards, mu)]) - mu
    expected = winning_probability(rewards, mu, bonus_point(rewards, mu))
    e = np.random.default_rng(0).exponential(size=(200_000, len(z)))
    for share in (0.0, 0.3, 0.8):
        t = share / z.max()
        a = (e / (1 - t * z)) @ z
        values = np.where(a >= 0, np.exp(-t * a), 0.0) / np.prod(1 - t * z)
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - expected) < 5 * error
        if share > 0:  # the control: without the factor C
            assert abs(values.mean() * np.prod(1 - t * z) - expected) > 5 * error


# --- every decision ------------------------------------------------------------------------------------------------------------


@pytest.mark.independent("DirichletSampling")
@pytest.mark.parametrize("bonus", ["robust", "bounded"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_slow_one(kind, bonus):
    """Every decision is equal, with the same random numbers."""
    arms = 2 + len(kind) % 4
    source = np.random.default_rng(len(kind))
    upper = None if bonus == "robust" else 2.5
    live = run(DirichletSampling(bonus=bonus, upper=upper), arms, seed=len(kind), kind=Plain)
    slow = SlowDirichletSampling(arms, live.s.rng, upper)
    for step in range(amount(100, 200)):
        arm = live.ask()
        assert arm == slow.choose(), step
        reward = float(KINDS[kind](source, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert live.s.clock[LEADER] == slow.leader
    assert live.describe()["stored"].tolist() == [len(x) for x in slow.rewards]
    np.testing.assert_allclose(live.describe()["mean"], [math.fsum(x) / len(x) for x in slow.rewards], rtol=1e-14)


def test_the_comparison_is_about_random_duels():
    """The reference must reach duels that need weights, and other random numbers must give other decisions."""
    source = np.random.default_rng(0)
    rewards = source.normal(size=(3, 400)) + np.array([[0.0], [0.2], [0.4]])
    slow, used = SlowDirichletSampling(3, [1, 2, 3, 4]), [0, 0, 0]
    for _ in range(400):
        arm = slow.choose()
        slow.learn(arm, rewards[arm, used[arm]])
        used[arm] += 1
    assert slow.drawn > 30
    runs = {tuple(run(ROBUST, 3, seed=seed).replay(rewards, 400).tolist()) for seed in range(6)}
    assert len(runs) == 6


def test_caps_change_no_decision():
    """A run without caps has the same decisions; one with caps that are too small does not."""
    rewards = np.random.default_rng(5).normal(size=(5, 2000)) + np.linspace(0.0, 1.0, 5)[:, np.newaxis]
    usual, without, wrong = (run(ROBUST, 5) for _ in range(3))
    used, same, skipped = np.zeros(5, dtype=int), True, 0
    for _ in range(2000):
        without.s.caps[:, LEAST] = math.inf
        wrong.s.caps[:, CAP] *= 0.1
        arm = usual.ask()
        assert without.ask() == arm
        same = same and wrong.ask() == arm
        skipped += (usual.s.caps[:, LEAST] < math.inf).sum() >= 4
        for live in (usual, without, wrong):
            live.tell(arm, rewards[arm, used[arm]])
        used[arm] += 1
    assert skipped > 500
    assert not same


@pytest.mark.parametrize("policy", [ROBUST, BOUNDED], ids=["robust", "bounded"])
def test_a_cap_bounds_the_probability_in_its_range(policy):
    source = np.random.default_rng(2)
    tight = []
    for n in (2, 5, 12):
        rewards = source.normal(size=n).round(6).tolist()
        live = run(policy, 2, kind=Plain)
        for reward in rewards:
            live.tell(0, reward)
        low = max(np.mean(rewards), 0.0) + 0.2
        high = low + 0.05
        middle = 0.5 * (low + high)
        t = module.tilt(live.s, 0, middle, module.bonus(live.p, live.s, 0, middle, middle))
        cap = module.cap(live.p, live.s, 0, low, high, t)
        for mu in np.linspace(low, high, 5).tolist():
            probability = winning_probability(rewards, mu, bonus_point(rewards, mu, policy.upper))
            assert probability <= cap <= 1.0
            tight.append(probability / cap)
    assert max(tight) > 0.2  # a cap of 1 would pass


def test_the_tilt_is_the_minimum():
    source = np.random.default_rng(3)
    for scale in (1e-200, 1.0, 1e140):
        live = run(ROBUST, 1, kind=Plain)
        x = -scale * source.pareto(1.1, 50) - scale
        x[::5] = scale * source.random(10)
        for reward in x:
            live.tell(0, float(reward))
        extra = float(module.bonus(live.p, live.s, 0, 0.0, 0.0)) * 0.1
        t = module.tilt(live.s, 0, 0.0, extra)
        values = [module.log_bound(live.s, 0, 0.0, extra, t * (1 + shift)) for shift in (-1e-3, 0.0, 1e-3)]
        assert values[1] <= min(values)
        assert values[1] < 0.0
    assert module.tilt(live.s, 0, 2.0 * scale, -1.0) == math.inf  # nothing is above: the duel is lost
    assert module.log_bound(live.s, 0, 0.0, 1.0, 1.0) == math.inf  # too large a t bounds nothing


# --- parameters ----------------------------------------------------------------------------------------------------------------


def test_a_reward_above_the_bound_is_the_new_bound():
    live = run(DirichletSampling(bonus="bounded", upper=1.0), 3)
    for arm, reward in ((0, 0.5), (1, 7.0), (2, 2.0), (0, -1.0)):
        live.tell(arm, reward)
    assert live.s.bound.tolist() == [7.0]
    assert live.policy.counters(live.s) == {"above_upper": 2}
    assert DirichletSampling().counters(live.s) == {}


def test_the_upper_bound():
    policy = DirichletSampling(bonus="bounded")
    assert policy.facts.knows == ("upper",)
    assert DirichletSampling().facts.knows == ()
    assert policy.informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).upper == 1.0
    costs = rb.problems.negated_pareto(means=[-3.0, -6.0], tail=1.5)
    assert policy.informed_by(costs).upper == pytest.approx(-1.0)  # the scale of the first arm
    minimised = rb.problems.pareto(means=[3.0, 6.0], tail=1.5, minimize=True)
    assert policy.informed_by(minimised).upper == pytest.approx(-1.0)
    given = DirichletSampling(bonus="bounded", upper=7.0)
    assert given.informed_by(costs) == given
    with pytest.raises(NotApplicable):
        policy.informed_by(rb.problems.pareto(means=[1.0, 2.0], tail=1.5))
    with raises(InvalidInput, parameter="problem", rule="a problem"):
        policy.informed_by("table")
    with pytest.raises(InvalidInput, match="without upper"):
        rb.Bandit(["a", "b"], policy)


def test_parameters_are_checked():
    with raises(InvalidInput, parameter="bonus", rule="one of 'robust', 'bounded'"):
        DirichletSampling(bonus="quantile")
    with raises(InvalidInput, parameter="upper", rule="None for 'robust'"):
        DirichletSampling(upper=1.0)
    for bad in (math.inf, math.nan, "one", True):
        with raises(InvalidInput, parameter="upper", rule="a finite number"):
            DirichletSampling(bonus="bounded", upper=bad)


def test_the_assumptions():
    robust, bounded = DirichletSampling(), DirichletSampling(bonus="bounded", upper=1.0)
    coins, heavy = rb.problems.bernoulli(means=[0.2, 0.8]), rb.problems.pareto(means=[1.0, 2.0], tail=1.5)
    for policy in (robust, bounded):
        assert policy.facts.assumption.holds_for(policy, coins)
        assert policy.facts.assumption.holds_for(policy, heavy) is False
    assert not bounded.facts.assumption.holds_for(DirichletSampling(bonus="bounded", upper=0.5), coins)
    assert robust.facts.assumption.holds_for(robust, rb.problems.gaussian(means=[0.0, 1.0], sd=1.0)) is None


def test_it_learns():
    """Uniform play has a regret of 2000. The bounded version is better where the bound is known."""
    problem = rb.problems.bernoulli(means=[0.3, 0.7])
    policies = [DirichletSampling(), DirichletSampling(bonus="bounded", upper=1.0)]
    result = rb.simulate(policies, problem, horizon=10_000, replications=40, seed=0, progress=False)
    assert (result.regret[:, :, -1].mean(axis=1) < 30.0).all()
