"""Every policy learns on a problem that satisfies its assumption, and at the rate that an independent prototype saw.

Three arms, negated Pareto with tail index 2.2, means -1, -1.5, -2, T = 20,000; policies that must be told are told eps = 1 and
u = 13.09 (the largest second moment). Playing at random costs 10,000 in the mean.
"""

import pytest

import robandit as rb
from helpers.amount import amount

# One process plays all policies once for all tests here.
pytestmark = pytest.mark.xdist_group("learning")

HORIZON = 20_000
REPLICATIONS = amount(10, 20)
SEED = 2024
PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=2.2)
UNIFORM = float(HORIZON * PROBLEM.gaps.mean())

# Regret that the prototype measured on one seed (AdaR-UCB: the mean of three). It gave MR-UCB one constant for the estimate and the
# bonus; with the authors' 0.1 for the estimate, our default, regret is about 180.
PROTOTYPE = {
    rb.UCB1(): 50,
    rb.RobustUCB(): 3972,
    rb.RobustUCB(estimator="median_of_means"): 7752,
    rb.RobustMOSS(): 915,
    rb.HTINF(): 401,
    rb.OptTINF(): 961,
    rb.AdaTINF(): 636,
    rb.UniINF(): 1092,
    rb.APE2(perturbation="gev"): 141,
    rb.MRUCB(c=1.0, c_est=1.0): 77,
    rb.MRAPE(c=0.5): 74,
    rb.RUCBTEA(): 8596,
    rb.ForceMoM(): 531,
    rb.AdaRUCB(): 6475,
    rb.AdaRUCB(bonus="tight"): 3216,
}
# tests/policies/linear has policies with contexts.
OTHERS = [p for p in rb.policies.all_policies() if p not in PROTOTYPE and p.uses_rewards and not p.contextual]
NEED_AN_INTERVAL = (rb.MaillardSampling(family="bounded"), rb.KLUCB())
SHORT = [policy for policy in OTHERS if policy.longest is not None]  # they take too long here; see below


@pytest.fixture(scope="module")
def regret():
    """Mean regret of each policy, by the policy as it was before it was told anything."""
    found = {}
    for policy in [*PROTOTYPE, *OTHERS]:
        if isinstance(policy, rb.KurtosisUCB) or policy in SHORT or policy in NEED_AN_INTERVAL:
            continue  # it has no kurtosis or interval to know here, or cannot play that long; see below
        told = policy.informed_by(PROBLEM, eps=1.0)
        result = rb.simulate(told, PROBLEM, HORIZON, REPLICATIONS, seed=SEED, progress=False)
        found[policy] = result.regret[0, :, -1]
    return found


def test_the_problem_is_the_prototypes():
    assert PROBLEM.u(1.0) == pytest.approx(13.09, abs=0.01)
    assert PROBLEM.assumption().holds
    assert UNIFORM == 10_000


def test_every_policy_beats_playing_at_random(regret):
    """On average by 5 %, and on 95 % of seeds (the exception: greedy play may lock in on a bad arm)."""
    for policy, values in regret.items():
        assert values.mean() < 0.95 * UNIFORM, (policy, values.mean())
        assert (values < UNIFORM).sum() >= 0.95 * REPLICATIONS, (policy, values)


@pytest.mark.parametrize("policy", PROTOTYPE, ids=lambda policy: policy.name)
def test_the_order_of_magnitude_is_the_prototypes(policy, regret):
    """Within a factor of 2 of one seed's value."""
    found = float(sorted(regret[policy])[REPLICATIONS // 2])
    assert 0.5 < found / PROTOTYPE[policy] < 2.0, (policy, found, PROTOTYPE[policy])


def test_kurtosis_ucb_where_there_is_a_kurtosis():
    """With kappa near 1 the forced phase ends soon enough to gain something; for Gaussian arms it would last 25,000 pulls."""
    problem = rb.problems.bernoulli(means=[0.4, 0.6])
    told = rb.KurtosisUCB().informed_by(problem)
    assert told.kappa == pytest.approx(1.0 + 0.04 / 0.24)
    values = rb.simulate(told, problem, HORIZON, REPLICATIONS, seed=SEED, progress=False).regret[0, :, -1]
    assert values.max() < 0.95 * HORIZON * problem.gaps.mean()


@pytest.mark.parametrize("policy", NEED_AN_INTERVAL, ids=repr)
def test_policies_for_an_interval_where_rewards_are_bounded(policy):
    problem = rb.problems.bernoulli(means=[0.4, 0.6])
    told = policy.informed_by(problem)
    values = rb.simulate(told, problem, HORIZON, REPLICATIONS, seed=SEED, progress=False).regret[0, :, -1]
    assert values.max() < 0.1 * HORIZON * problem.gaps.mean()


def test_resampling_where_arms_are_symmetric():
    """RMM-UCB and MARS refuse 20,000 pulls: 500 of symmetric arms without a variance, which they are for."""
    assert {type(policy) for policy in SHORT} == {rb.RMMUCB, rb.MARS}
    problem = rb.Problem([rb.laws.StudentT(dof=1.5, loc=loc) for loc in (0.0, -2.0)])
    for policy in SHORT:
        values = rb.simulate(policy, problem, 500, REPLICATIONS, seed=SEED, progress=False).regret[0, :, -1]
        assert values.mean() < 0.5 * 500 * problem.gaps.mean(), (policy, values)
        assert (values < 500 * problem.gaps.mean()).sum() >= 0.9 * REPLICATIONS, (policy, values)


def test_uniform_play_costs_what_it_must():
    """The negative control: no learning, so no gain; 4 standard errors of K-nomial counts."""
    values = rb.simulate(rb.Uniform(), PROBLEM, HORIZON, REPLICATIONS, seed=SEED, progress=False).regret[0, :, -1]
    one_pull = float(PROBLEM.gaps.std())
    assert abs(values.mean() - UNIFORM) < 4.0 * one_pull * (HORIZON / REPLICATIONS) ** 0.5
    oracle = rb.simulate(rb.Oracle().informed_by(PROBLEM), PROBLEM, HORIZON, 2, seed=SEED, progress=False)
    assert (oracle.regret[0, :, -1] == 0.0).all()
