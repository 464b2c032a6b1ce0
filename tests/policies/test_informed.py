"""Policies that must be told numbers: by hand, by a problem, or not at all; and horizons."""

import math

import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import HorizonReached, InvalidInput, NotApplicable
from robandit.experiments import Played, planned
from robandit.laws import Gaussian, Pareto

HEAVY = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
LIGHT = rb.Problem([Gaussian(mean=-1.0, sd=2.0), Gaussian(mean=0.5, sd=1.0)])
NEEDY = [policy for policy in rb.policies.all_policies() if policy.facts.knows]


def informed_policy(policy, problem=HEAVY):
    try:
        return policy.informed_by(problem)
    except NotApplicable:
        return policy.informed_by(rb.problems.bernoulli(means=[0.2, 0.8]))


@pytest.mark.parametrize("policy", NEEDY, ids=lambda policy: policy.name)
def test_missing_parameters_are_named(policy):
    missing = [name for name in policy.facts.knows if getattr(policy, name) is None]
    if not missing:
        pytest.skip("everything has a default")
    with pytest.raises(InvalidInput) as live:
        rb.Bandit(["a", "b"], policy)
    for name in missing:
        assert name in str(live.value)
    if missing != ["horizon"]:
        with pytest.raises(InvalidInput, match=r"cannot play without .*informed_by"):
            rb.simulate(policy, HEAVY, 10, 1, seed=0, progress=False)


@pytest.mark.parametrize("policy", NEEDY, ids=lambda policy: policy.name)
def test_a_problem_gives_the_smallest_valid_values(policy):
    informed = informed_policy(policy, LIGHT)
    assert type(informed) is type(policy)
    if "eps" in policy.facts.knows:
        assert informed.eps == 1.0
    if "u" in policy.facts.knows:
        assert informed.u == pytest.approx(5.0, rel=1e-12)  # E X^2 of the wider arm: 4 + 1
    if "v" in policy.facts.knows:
        assert informed.v == pytest.approx(4.0, rel=1e-12)
    if "kappa" in policy.facts.knows:
        assert informed.kappa == pytest.approx(3.0, rel=1e-9)
    if "arm" in policy.facts.knows:
        assert informed.arm == 1
    assert informed.informed_by(HEAVY) == informed  # given parameters stay


def test_the_default_order_is_below_the_tail_index():
    for tail, eps in ((1.5, 0.45), (1.1, 0.09), (2.0, 0.9), (3.0, 1.0)):
        problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=tail)
        policy = rb.RobustUCB().informed_by(problem)
        assert policy.eps == pytest.approx(eps)
        assert policy.u == problem.u(policy.eps) < math.inf
    assert rb.RobustUCB().informed_by(HEAVY, eps=0.2).u == HEAVY.u(0.2)
    assert rb.RobustUCB(eps=0.3).informed_by(HEAVY).u == HEAVY.u(0.3)
    assert rb.RobustUCB(u=100.0).informed_by(HEAVY) == rb.RobustUCB(eps=0.45, u=100.0)


def test_infinite_moments_are_not_filled_in():
    for policy in (rb.RobustUCB(estimator="catoni"), rb.KurtosisUCB(), rb.RobustUCB(eps=1.0), rb.HTINF(eps=0.5)):
        with pytest.raises(NotApplicable, match="which is inf on this problem"):
            policy.informed_by(HEAVY)
    with pytest.raises(NotApplicable):
        rb.RobustUCB().informed_by(HEAVY, eps=0.5)
    with pytest.raises(NotApplicable):
        rb.RobustUCB().informed_by(rb.Problem([rb.laws.Constant(0.0), rb.laws.Constant(0.0)]))


def test_two_orders_are_rejected():
    with pytest.raises(InvalidInput, match="has an eps already"):
        rb.RobustUCB(eps=0.3).informed_by(HEAVY, eps=0.2)
    for eps in (0.0, -0.5, 1.5, math.nan, "half", True):
        with raises(InvalidInput, parameter="eps", rule="a number with 0 < eps <= 1 (and at least 1e-09)"):
            rb.RobustUCB().informed_by(HEAVY, eps=eps)


def test_policies_that_need_nothing_stay_as_they_are():
    for policy in (rb.AdaRUCB(bonus="tight"), rb.OptTINF(), rb.UCB1(scale=3.0), rb.NormalUCB()):
        assert policy.informed_by(HEAVY) is policy


WITH_HORIZON = [policy for policy in NEEDY if "horizon" in policy.facts.knows]


def test_some_policies_need_a_horizon():
    names = {type(policy).__name__ for policy in WITH_HORIZON}
    assert names >= {"RobustMOSS", "MRUCB", "MRAPE", "AdaTINF", "UniINF", "ClippedSGDUCB"}
    for policy in rb.policies.all_policies():
        assert policy.facts.anytime == (not hasattr(policy, "horizon")) == ("horizon" not in policy.facts.knows), policy


@pytest.mark.parametrize("policy", WITH_HORIZON, ids=lambda policy: policy.name)
def test_a_horizon_is_filled_in_and_never_passed(policy, tmp_path):
    ready = informed_policy(policy)
    rb.simulate(ready, HEAVY, 50, 1, seed=0, progress=False)  # filled in
    longer, shorter = ready.prepared(200), ready.prepared(49)
    rb.simulate(longer, HEAVY, 50, 1, seed=0, progress=False)
    with pytest.raises(InvalidInput, match="made for 49 pulls, and 50 are requested"):
        rb.simulate(shorter, HEAVY, 50, 1, seed=0, progress=False)

    bandit = rb.Bandit(["a", "b"], ready.prepared(6), seed=0)
    bandit.update(bandit.select(), -1.0)
    open_ = [bandit.decide() for _ in range(3)]
    bandit.expire(open_[0])
    bandit.reward(open_[1], -2.0)
    bandit.save(tmp_path / "b")
    again = rb.Bandit.load(tmp_path / "b")
    for each in (bandit, again):  # 4 of 6 made: one by update, one rewarded, one open, one expired
        each.update(each.select(), -1.0)
        if not ready.weighted:
            with pytest.raises(HorizonReached, match="made for 6 pulls, 5 are made, and 2 more"):
                each.update_many(["a", "b"], [-1.0, -1.0])
        last = each.decide()
        with pytest.raises(HorizonReached, match="6 pulls, 6 are made"):
            each.select()
        with pytest.raises(HorizonReached):
            each.decide()
        if not ready.weighted:
            with pytest.raises(HorizonReached):
                each.update("a", 0.0)
        each.reward(last, -1.0)  # no new pull
        each.reward(open_[2].id, -1.0)
        assert each.counters()["rewards"] == 5


def test_values_that_are_no_horizon():
    for value in (0, -5, 2.5, True, "long", 2**60):
        with raises(InvalidInput, parameter="horizon", rule="an integer from 1 to 2^53"):
            rb.RobustMOSS(eps=0.5, u=1.0, horizon=value)


def test_a_range_is_taken_from_bounded_arms():
    assert rb.UCBV().informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).range == 1.0
    assert rb.UCBV().informed_by(HEAVY) == rb.UCBV()
    assert rb.UCBV(range=3.0).informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).range == 3.0
    assert Pareto(tail=1.5).support[1] == math.inf


def test_what_is_not_a_problem():
    for wrong in (None, 3, Pareto(tail=1.5)):
        with raises(InvalidInput, parameter="problem", rule="a problem"):
            rb.RobustUCB().informed_by(wrong)


def test_a_tail_index_that_leaves_no_order():
    with pytest.raises(NotApplicable):
        rb.HTINF().informed_by(rb.Problem([-Pareto(tail=1.0 + 1e-10), -Pareto(tail=3.0)]))


def test_facts_do_not_claim_more_than_the_docstring():
    assert rb.KLinfUCB().facts.bound
    assert not rb.KLinfUCB(threshold="log").facts.bound
    assert rb.UCBV(range=1.0).facts.bound
    assert not rb.UCBV(range=1.0, zeta=0.5).facts.bound
    assert len(rb.RUCBMoM().facts.notes) == 2
    assert len(rb.RUCBMoM(g="corollary").facts.notes) == 1


def test_a_huge_kurtosis_never_ends_exploration():
    bandit = rb.Bandit(["a", "b"], rb.KurtosisUCB(kappa=1e17), seed=0)
    bandit.update_many(["a", "b"] * 50, [1.0, 2.0] * 50)
    assert [row["index"] for row in bandit.estimates()] == [math.inf, math.inf]


def test_what_a_policy_counts_is_in_the_result():
    tight = rb.KLinfUCB(eps=0.4, u=0.5)  # far below the truth: no law of that class fits the rewards
    result = rb.simulate([tight, rb.UCB1()], HEAVY, 300, 3, seed=0, progress=False)
    assert result.counters[0]["infeasible"] > 0
    assert result.counters[1] == {}


def test_a_comparison_plays_all_that_apply():
    plan = planned([Played("heavy", HEAVY, 10)], rb.policies.all_policies(), replications=1, seed=0)
    assert len(plan.cells) + len(plan.left_out) == len(rb.policies.all_policies())
    labels = {each.label for each in plan.left_out}
    assert labels >= {"Robust UCB(estimator='catoni')", rb.KurtosisUCB().name}
    for policy in rb.policies.all_policies():
        if policy.name in labels:
            with pytest.raises(NotApplicable):
                policy.informed_by(HEAVY)
    for cell in plan.cells:
        assert cell.policy.prepared(10).params() is not None
