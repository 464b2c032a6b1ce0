"""Regret bounds with constants: values by hand, units, monotonicity, assumptions, and invalid input."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.own_policies import Greedy  # any policy from outside of the package
from robandit.errors import InvalidInput, NotApplicable
from robandit.laws import Bernoulli, Gaussian, StudentT
from robandit.policies import all_policies, assumptions
from robandit.policies.assumptions import assumption_met
from robandit.problems import InOrder, Logged, Problem, bernoulli, gaussian, negated_pareto, pareto, student_t
from robandit.theory import RegretBound, printed_instance, regret_bound, repaired_instance, repaired_worst_case
from robandit.theory.bounds import FORMULAS
from robandit.theory.index_bounds import few_rewards

HEAVY = negated_pareto(means=[-1.0, -1.5, -2.0], tail=2.2)
TWO = gaussian(means=[0.0, -0.5], sd=1.0)
COINS = bernoulli(means=[0.2, 0.8])
"""The gap is 0.6."""


def test_replays_have_no_bounds() -> None:
    """Rewards in their order are not independent draws; those of the laws are."""
    flips = np.tile([[0.0, 1.0], [1.0, 1.0]], (50, 1))
    for problem in (InOrder(flips), Logged([0, 1] * 100, flips.reshape(-1), ["a", "b"])):
        with pytest.raises(NotApplicable, match="depend on the time or come late, but bounds require independent"):
            regret_bound(rb.UCB1(), problem, 100)
        assert assumption_met(rb.UCB1(), problem) is None
        assert assumption_met(rb.UCB1(scale=0.5), problem) is False
        laws = Problem(problem.laws)
        assert regret_bound(rb.UCB1(), laws, 100).met
        assert assumption_met(rb.UCB1(), laws) is True


def value(result: RegretBound, kind: str, status: str) -> float:
    (only,) = [bound.value for bound in result.bounds if (bound.kind, bound.status) == (kind, status)]
    return only


def scaled(problem: Problem, factor: float) -> Problem:
    return Problem([law * factor for law in problem.laws])


# --- values ----------------------------------------------------------------------------------------------------------


def test_truncated_mean() -> None:
    """u = 2, gaps 1 and 1/2, T = 1000, eps = 1: A = 2 log T * 64 u / gap^2."""
    problem = Problem([Gaussian(0.0, 1.0), Gaussian(-0.5, 1.0), Gaussian(-1.0, 1.0)])
    result = regret_bound(rb.RobustUCB(eps=1.0, u=2.0), problem, 1000)
    t = mpmath.log(1000)
    bad = mpmath.log(mpmath.mpf(1000) / 3)
    instance = 256 * t / 1 + 256 * t / 0.5 + 1.5 * (1 + bad) + 1.0 * bad
    worst = 8 * mpmath.sqrt(2 * 2 * t * 2 * 1000) + 1.5 * (1 + bad) + 1.0 * bad
    assert result.instance == pytest.approx(float(instance), rel=1e-12)
    assert result.worst_case == pytest.approx(float(worst), rel=1e-12)
    assert [bound.status for bound in result.bounds] == ["derived", "derived"]
    assert result.met is True  # E X^2 = 1 + 1


def test_truncated_mean_at_half() -> None:
    """eps = 1/2: 1/q = 3, so A = 2 log T (8 u^(2/3) / gap)^3 = 1024 u^2 log T / gap^3."""
    result = regret_bound(rb.RobustUCB(eps=0.5, u=3.0), TWO, 500)
    bad = math.log(250)
    expected = 0.5 * (1024 * 9 * math.log(500) / 0.125 + 1 + bad) + 0.5 * bad
    assert result.instance == pytest.approx(expected, rel=1e-12)
    worst = 8 * 3 ** (2 / 3) * (2 * math.log(500)) ** (1 / 3) * 500 ** (2 / 3) + 0.5 * (1 + bad) + 0.5 * bad
    assert result.worst_case == pytest.approx(worst, rel=1e-12)


def test_catoni() -> None:
    """The larger of 8 log T and 32 v log T / gap^2 pulls: the second for gap 1/2, the first for gap 10."""
    problem = Problem([Gaussian(0.0, 1.0), Gaussian(-0.5, 1.0), Gaussian(-10.0, 1.0)])
    result = regret_bound(rb.RobustUCB(estimator="catoni", v=1.0), problem, 10_000)
    t, bad = math.log(10_000), math.log(10_000 / 3)
    assert result.instance == pytest.approx(0.5 * (128 * t + 1 + bad) + 10 * (8 * t + 1 + bad) + 10 * bad, rel=1e-12)
    worst = 2 * math.sqrt(2 * 8 * t * 10_000) + 10.5 * (8 * t + 1 + bad) + 10 * bad
    assert result.worst_case == pytest.approx(worst, rel=1e-12)
    assert (result.eps, result.moment, result.met) == (1.0, 1.0, True)


def test_median_of_means() -> None:
    result = regret_bound(rb.RobustUCB(estimator="median_of_means", eps=1.0, v=1.0), TWO, 2000)
    level, bad = 2 + 32 * math.log(2000), math.log(1000)
    missed = few_rewards(2, 2000, 1.0)
    assert result.instance == pytest.approx(0.5 * (level * 48 / 0.25 + 1 + bad) + 0.5 * (bad + missed), rel=1e-12)
    main = 2 * math.sqrt(12 * 2000 * level)
    assert result.worst_case == pytest.approx(main + 0.5 * (level + 1 + bad) + 0.5 * (bad + missed), rel=1e-12)
    assert "2 + 32 log t" in result.bounds[0].note


def undervalued(arms: int, horizon: int, eps: float) -> float:
    """`few_rewards` pull by pull, with plain sums."""
    pulls = 0.0
    for t in range(arms + 1, horizon + 1):
        level, at_t = 2 + 32 * math.log(t), 0.0
        for n in range(1, t):
            if n >= level:
                break
            k = max(1, n // 2)
            p = min(1.0, (1 if n == 1 else 2) / 12 * (n // k) ** -eps * (n / level) ** eps)
            at_t += math.fsum(math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range((k + 1) // 2, k + 1))
        pulls += min(at_t, 1.0)
    return pulls


@pytest.mark.parametrize("eps", [1.0, 0.4])
def test_few_rewards(eps: float) -> None:
    exact = undervalued(2, 400, eps)
    assert exact <= few_rewards(2, 400, eps) <= 1.12 * exact  # blocks of 25 %


def test_few_rewards_at_four_rewards() -> None:
    """Two blocks of two, t = 100, a law that is -x with a small probability: undervalued if the mean of all lies too low.

    x is such that one far value suffices, which is the worst that the moment allows.
    """
    level, mass = 2 + 32 * math.log(100), 1e-4
    v = mass * (1 - mass)  # in units of x^2
    width = math.sqrt(12 * v * level / 4)
    one_is_enough = mass + width < 1 / 4
    true = 1 - (1 - mass) ** 4 if one_is_enough else 0.0
    allowed = 1 - (1 - 2 / 12 / 2 * 4 / level) ** 2
    assert one_is_enough
    assert 0.0 < true <= allowed


def test_htinf() -> None:
    """alpha = 1.5, sigma = 8^(2/3) = 4, K = 2, gap 1/2: (2/3) (3/4)^-2 80^3 / gap^2."""
    result = regret_bound(rb.HTINF(eps=0.5, u=8.0), TWO, 999)
    assert result.worst_case == pytest.approx(30 * 4 * 2 ** (1 / 3) * 100, rel=1e-12)
    leading = (2 / 3) * (16 / 9) * 512_000 * 4
    assert value(result, "instance", "printed") == pytest.approx(leading * math.log(1000), rel=1e-12)
    assert result.instance == pytest.approx(leading * (1 + math.log(999)), rel=1e-12)
    assert result.met is True


def test_htinf_needs_a_unique_best_arm() -> None:
    result = regret_bound(rb.HTINF(), gaussian([0.0, 0.0, -1.0]), 1000)
    assert result.instance is None
    assert result.worst_case is not None


def test_opt_tinf() -> None:
    """eps = 1, u = 1.25, K = 2: 26 u sqrt(2 T') + 4 sqrt(2 T'); 2 (4 * 25 + 4 * 64) u^2 / gap + 32 / gap."""
    result = regret_bound(rb.OptTINF(), TWO, 999, eps=1.0)
    assert result.moment == pytest.approx(1.25)
    assert result.worst_case == pytest.approx((26 * 1.25 + 4) * math.sqrt(2000), rel=1e-12)
    assert result.instance == pytest.approx((712 * 1.25**2 + 32) / 0.5 * (1 + math.log(999)), rel=1e-12)
    printed = (712 * 1.25**2 + 32 * math.sqrt(1.25)) / 0.5 * math.log(1000)
    assert value(result, "instance", "printed") == pytest.approx(printed, rel=1e-12)


def test_opt_tinf_at_half() -> None:
    """eps = 1/2: 2 (4^3 5^4 + 4^3 8^4) u^4 / gap^3 + 64 / gap."""
    u = TWO.u(0.5)
    result = regret_bound(rb.OptTINF(), TWO, 100, eps=0.5)
    leading = 2 * 64 * (625 + 4096) * u**4 * 8 + 64 * 2
    assert result.instance == pytest.approx(leading * (1 + math.log(100)), rel=1e-10)


def test_ada_tinf_and_its_restarts() -> None:
    """eps = 1, u = 1.25, K = 2. T = 10 makes starts of 1, 3 and 7 pulls."""

    def one(horizon: int) -> float:
        root = math.sqrt(1.25)
        end = horizon + 1
        return 3 * math.sqrt(2 * end) + 204 * root * math.sqrt(2 * end) + 12 * root * math.sqrt(horizon)

    assert regret_bound(rb.AdaTINF(), TWO, 10, eps=1.0).worst_case == pytest.approx(one(10), rel=1e-12)
    assert regret_bound(rb.AdaTINF(horizon=50), TWO, 10, eps=1.0).worst_case == pytest.approx(one(50), rel=1e-12)
    result = regret_bound(rb.Ada2TINF(), TWO, 10, eps=1.0)
    assert result.worst_case == pytest.approx(one(1) + one(3) + one(7), rel=1e-12)
    assert value(result, "worst-case", "printed") == pytest.approx(600 * math.sqrt(2 * 1.25 * 11), rel=1e-12)


def test_ucb1() -> None:
    result = regret_bound(rb.UCB1(scale=2.0), scaled(COINS, 2.0), 100)
    rest = (1 + math.pi**2 / 3) * 1.2
    assert result.instance == pytest.approx(8 * 4 * math.log(100) / 1.2 + rest, rel=1e-12)
    assert result.worst_case == pytest.approx(2 * math.sqrt(800 * math.log(100)) + rest, rel=1e-12)
    assert result.met is True
    assert regret_bound(rb.UCB1(scale=1.9), scaled(COINS, 2.0), 100).met is False
    assert regret_bound(rb.UCB1(), TWO, 100).met is False


def test_ucb_v() -> None:
    result = regret_bound(rb.UCBV(), COINS, 100)
    assert result.instance == pytest.approx(10 * (0.16 / 0.6 + 2) * math.log(100), rel=1e-12)
    assert result.met is True
    assert regret_bound(rb.UCBV(range=0.5), COINS, 100).met is False


def test_normal_ucb() -> None:
    result = regret_bound(rb.NormalUCB(), TWO, 1000)
    assert result.instance == pytest.approx(2 * 0.5 * math.log(1000) / math.log(1.25), rel=1e-12)
    assert (result.met, result.bounds[0].status) == (True, "asymptotic")
    assert regret_bound(rb.NormalUCB(), scaled(TWO, -1.0), 1000).met is True
    assert regret_bound(rb.NormalUCB(), student_t([0.0, -1.0], dof=3), 1000).met is False


def test_klinf_ucb() -> None:
    """u = 0.8 is the second moment of the better coin: of the laws with mean 0.8 it is the nearest to the other."""
    result = regret_bound(rb.KLinfUCB(eps=1.0, u=0.8, batch=0.0), COINS, 1000)
    kl = 0.2 * math.log(0.2 / 0.8) + 0.8 * math.log(0.8 / 0.2)
    assert result.instance is not None
    assert result.instance == pytest.approx(0.6 * math.log(1000) / kl, rel=1e-6)
    batched = regret_bound(rb.KLinfUCB(eps=1.0, u=0.8, batch=0.5), COINS, 1000)
    assert batched.instance == pytest.approx(1.5 * result.instance, rel=1e-12)
    wide = regret_bound(rb.KLinfUCB(eps=1.0, u=8.0, batch=0.0), COINS, 1000)
    assert wide.instance is not None
    assert wide.instance > result.instance  # a larger class is harder


def test_force_mom_uniform_and_oracle() -> None:
    assert regret_bound(rb.ForceMoM(), HEAVY, 24_000).instance == pytest.approx(400 * 1.5, rel=1e-12)
    assert regret_bound(rb.Uniform(), HEAVY, 1000).instance == pytest.approx(500, rel=1e-12)
    told = regret_bound(rb.Oracle(), HEAVY, 1000)
    assert (told.instance, told.worst_case, told.met) == (0.0, 0.0, True)
    wrong = regret_bound(rb.Oracle(arm=2), HEAVY, 1000)
    assert (wrong.instance, wrong.worst_case) == (pytest.approx(1000.0), None)


def test_adar_ucb() -> None:
    result = regret_bound(rb.AdaRUCB(), HEAVY, 1001)
    assert result.eps == 1.0
    assert result.instance == repaired_instance(HEAVY, 1001, 1.0)
    assert result.worst_case == repaired_worst_case(HEAVY, 1001, 1.0)
    assert value(result, "instance", "printed") == printed_instance(HEAVY, 1001, 1.0)
    for kind in ("instance", "worst-case"):
        assert value(result, kind, "repaired") >= value(result, kind, "printed")
    assert {bound.note for bound in result.bounds if bound.status == "printed"} == {
        "as printed, proof gap at (robust3)"
    }
    assert regret_bound(rb.AdaRUCB(bonus="tight", tie="lowest"), HEAVY, 1001).bounds == result.bounds
    assert regret_bound(rb.AdaRUCB(), HEAVY, 1001, eps=0.5).eps == 0.5
    assert regret_bound(rb.AdaRUCB(), pareto([1.0, 2.0], 1.5), 1001).met is False


def test_r_ucb_tea() -> None:
    """f = log^2 T = e^4 at T = e^(e^2): log f = 4."""
    horizon = 1_618  # log T = 7.3889
    level = math.log(horizon)
    problem = gaussian(means=[0.0, -1.0], sd=0.5)
    result = regret_bound(rb.RUCBTEA(), problem, horizon)
    pulls = 32 * level**3 / (1 - 2 / (2 * math.log(level)))
    assert result.instance == pytest.approx(pulls + 4, rel=1e-12)
    assert result.met is True
    assert "no better than" in result.bounds[0].note


def test_r_ucb_mom() -> None:
    problem = gaussian(means=[0.0, -1.0], sd=0.5)
    horizon = 10_000
    level = math.log(horizon)
    result = regret_bound(rb.RUCBMoM(), problem, horizon)
    assert result.instance == pytest.approx((2 * level) ** (1 / 0.45) * 32 * level + 4, rel=1e-12)
    assert result.bounds[0].status == "printed"


def test_r_ucb_lt() -> None:
    result = regret_bound(rb.RUCBLT(f="log"), COINS, 10_000)
    level = math.log(10_000)
    assert result.instance == pytest.approx(4 * level**2 / 0.6 + 4 * 0.6, rel=1e-12)
    assert result.met is True


# --- properties ------------------------------------------------------------------------------------------------------

EQUIVARIANT = [
    rb.AdaRUCB(),
    rb.RobustUCB(),
    rb.RobustUCB(estimator="median_of_means"),
    rb.RobustUCB(estimator="catoni"),
    rb.HTINF(),
    rb.KLinfUCB(),
    rb.NormalUCB(),
    rb.ForceMoM(),
    rb.Uniform(),
]


@cases("policy", EQUIVARIANT)
@cases("factor", [0.25, 1000.0])
def test_units(policy: rb.Policy, factor: float) -> None:
    result = regret_bound(policy, HEAVY, 5000)
    other = regret_bound(policy, scaled(HEAVY, factor), 5000)
    for one, two in zip(result.bounds, other.bounds, strict=True):
        assert two.value == pytest.approx(factor * one.value, rel=1e-6)  # KLinf is good to 1e-7


def known() -> list[rb.Policy]:
    return [policy for policy in all_policies() if policy.tag() in FORMULAS]


@pytest.mark.parametrize("policy", known(), ids=lambda policy: policy.name)
def test_more_pulls_more_regret(policy: rb.Policy) -> None:
    last: list[float] = []
    for horizon in (2, 3, 100, 101, 5000, 5001, 10**6, 10**9):
        try:
            result = regret_bound(policy, COINS, horizon)
        except NotApplicable:
            assert not last or horizon < 10**6
            continue
        values = [bound.value for bound in result.bounds]
        assert not last or all(new >= old * (1 - 1e-12) for new, old in zip(values, last, strict=True))
        last = values
    assert last or type(policy) in (rb.RUCBMoM,)


@pytest.mark.parametrize(
    "policy",
    [rb.AdaRUCB(), rb.RobustUCB(eps=0.5, u=9.0), rb.HTINF(eps=0.5, u=9.0), rb.RobustUCB(estimator="catoni", v=1.0)],
    ids=lambda policy: policy.name,
)
def test_smaller_gaps(policy: rb.Policy) -> None:
    """The instance-dependent bound grows, the worst case has gaps in its additive terms only."""
    near, far = (regret_bound(policy, gaussian([0.0, -gap]), 10**5, eps=None) for gap in (0.01, 0.1))
    assert near.instance is not None
    assert far.instance is not None
    assert near.instance > 5 * far.instance
    assert near.worst_case == pytest.approx(far.worst_case, rel=0.02)
    assert near.worst_case <= far.worst_case * (1 + 1e-9)


def test_the_worst_case_covers_every_gap() -> None:
    """Robust UCB: at any gap either the instance-dependent bound or T times the gap is below the worst case."""
    for gap in np.geomspace(1e-4, 10.0, 60).tolist():
        for estimator in ("truncated", "median_of_means", "catoni"):
            policy: Any = rb.RobustUCB(estimator=estimator)
            result = regret_bound(policy, gaussian([0.0, -gap]), 10**6)
            assert result.instance is not None
            assert result.worst_case is not None
            assert min(result.instance, 10**6 * gap) <= result.worst_case


def test_the_policy_s_parameters_are_used() -> None:
    told = regret_bound(rb.RobustUCB(eps=0.5, u=100.0), HEAVY, 1000)
    assert (told.eps, told.moment, told.met) == (0.5, 100.0, True)
    own = regret_bound(rb.RobustUCB(), HEAVY, 1000, eps=0.5)
    assert (own.eps, own.moment) == (0.5, HEAVY.u(0.5))
    assert own.met is True
    assert own.policy == rb.RobustUCB(eps=0.5, u=HEAVY.u(0.5))
    assert regret_bound(rb.RobustUCB(), negated_pareto([-1.0, -2.0], 1.5), 1000).eps == pytest.approx(0.45)


@pytest.mark.parametrize(
    "policy",
    [
        rb.RobustUCB(eps=0.5, u=0.1),
        rb.RobustUCB(estimator="median_of_means", eps=0.5, v=0.1),
        rb.RobustUCB(estimator="catoni", v=0.1),
        rb.HTINF(eps=0.5, u=0.1),
        rb.KLinfUCB(eps=0.5, u=3.0),
    ],
    ids=lambda policy: policy.name,
)
def test_a_moment_that_is_too_small(policy: rb.Policy) -> None:
    result = regret_bound(policy, HEAVY, 1000)
    assert result.met is False
    assert "NOT met" in str(result)


def test_an_infinite_moment_is_never_bounded() -> None:
    assert regret_bound(rb.RobustUCB(eps=1.0, u=1e9), negated_pareto([-1.0, -2.0], 1.5), 1000).met is False


def test_assumptions_are_those_of_the_policies() -> None:
    """Every assumption that can be decided is that of some policy."""
    used = {policy.facts.assumption for policy in [*all_policies(), rb.UCBV(range=1.0)]}
    named = {value for value in vars(assumptions).values() if isinstance(value, assumptions.Assumption)}
    assert named <= used
    assert len({value.name for value in named}) == len(named) > 5


@pytest.mark.parametrize(
    ("policy", "problem", "met"),
    [
        (rb.AdaRUCB(), HEAVY, True),
        (rb.AdaRUCB(), student_t([1.0, 0.0], dof=1.5), False),
        (rb.AdaKLProved(), pareto([2.0, 1.0], tail=1.5), False),
        (rb.AdaKLUCB(), pareto([2.0, 1.0], tail=1.5), True),
        (rb.RMMUCB(), student_t([1.0, 0.0], dof=1.5), True),
        (rb.RMMUCB(), HEAVY, False),
        (rb.KurtosisUCB(), TWO, None),
    ],
)
def test_what_can_be_decided(policy: rb.Policy, problem: Problem, met: bool | None) -> None:
    assert assumption_met(policy, problem) is met


@cases("problem", [HEAVY, COINS, TWO, student_t([0.0, -1.0], dof=1.2)])
@cases("policy", all_policies())
def test_every_policy_has_a_bound_or_a_reason(policy: rb.Policy, problem: Problem) -> None:
    try:
        result = regret_bound(policy, problem, 10_000)
    except NotApplicable as refused:
        reason = str(refused)
    else:
        reason = str(result)
        assert all(bound.value >= 0.0 and bound.source for bound in result.bounds)
        assert result.instance is not None or result.worst_case is not None
    assert len(reason) > 30


def test_printing() -> None:
    text = str(regret_bound(rb.AdaRUCB(), HEAVY, 10_000))
    assert text.splitlines()[0] == "Regret bounds of AdaR-UCB: T = 10,000, 3 arms, eps = 1, moment 13.09"
    assert text.splitlines()[1] == "assumes truncated non-positivity of the best arm: met"
    assert "as printed, proof gap at (robust3)" in text
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("policy", [rb.RobustUCB(estimator="catoni"), rb.RobustUCB()], ids=["catoni", "truncated"])
def test_a_run_stays_below(policy: rb.Policy) -> None:
    problem = negated_pareto(means=[-1.0, -3.0], tail=2.5)
    told = policy.informed_by(problem)
    result = rb.simulate(told, problem, horizon=10_000, replications=20, seed=0, progress=False)
    mean = float(result.regret[0, :, -1].mean())
    bound = regret_bound(policy, problem, 10_000).instance
    assert bound is not None
    assert 0.0 < mean < bound


# --- invalid input --------------------------------------------------------------------------------------------------------


@cases(
    ("args", "eps", "words"),
    [
        ((rb.UCB1, TWO, 100), None, r"did you mean UCB1\(\)"),
        (("UCB1", TWO, 100), None, "policy = 'UCB1' must be a policy"),
        ((rb.UCB1(), [0.0, 1.0], 100), None, r"problem = .* must be a Problem; make one with Problem\(laws\)"),
        ((rb.UCB1(), TWO, 1), None, "from 2 to 2"),
        ((rb.UCB1(), TWO, True), None, "from 2 to 2"),
        ((rb.UCB1(), TWO, 100.0), None, "from 2 to 2"),
        ((rb.UCB1(), TWO, 2**53 + 1), None, "from 2 to 2"),
        ((rb.AdaRUCB(), TWO, 100), 0.0, "eps = 0.0"),
        ((rb.AdaRUCB(), TWO, 100), 1.5, "eps = 1.5"),
        ((rb.AdaRUCB(), TWO, 100), "1", "eps = '1'"),
        ((rb.HTINF(eps=0.5), TWO, 100), 0.7, "has an eps already"),
        ((rb.AdaTINF(horizon=50), TWO, 100), None, "is made for 50 pulls"),
        ((rb.Oracle(arm=5), TWO, 100), None, "arm = 5 must be below 2"),
    ],
)
def test_bad_input(args: tuple[Any, Any, Any], eps: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        regret_bound(*args, eps=eps)


def test_numpy_scalars() -> None:
    result = regret_bound(rb.AdaRUCB(), TWO, np.int64(100), eps=np.float32(0.5))  # type: ignore[arg-type]
    assert result == regret_bound(rb.AdaRUCB(), TWO, 100, eps=0.5)


WILD = negated_pareto(means=[-1.0, -2.0], tail=1.2)


@cases(
    ("policy", "problem", "horizon", "words"),
    [
        (Greedy(), TWO, 100, "a policy of your own"),
        (rb.RobustMOSS(), TWO, 100, r"only a rate .*theory\.rate\(policy\)"),
        (rb.EpsilonGreedy(), TWO, 100, "no regret bound is proved"),
        (rb.AdaRUCB(c=7.0), TWO, 100, "c is 7.0"),
        (rb.AdaRUCB(guard=20.0), TWO, 100, "guard is 20.0"),
        (rb.AdaRUCB(bonus=5.0), TWO, 100, "bonus is 5.0"),
        (rb.AdaRUCB(var_factor=1.0), TWO, 100, "var_factor is 1.0"),
        (rb.AdaRUCB(delta_exp=2.0), TWO, 100, "delta_exp is 2.0"),
        (rb.AdaRUCB(solver="doubling"), TWO, 100, "solver is 'doubling'"),
        (rb.RobustUCB(estimator="catoni"), WILD, 100, "needs v, which is inf"),
        (rb.KLinfUCB(threshold="log"), TWO, 100, "nothing is proved for 'log'"),
        (rb.NormalUCB(), WILD, 100, "finite variance"),
        (rb.UCBV(), TWO, 100, "observed range"),
        (rb.UCBV(zeta=1.5), COINS, 100, "zeta = 1.2 and c = 1"),
        (rb.RUCBLT(), WILD, 100, "sub-Gaussian"),
        (rb.RUCBLT(f="log"), gaussian([0.0, -1.0], sd=3.0), 1000, r"8 sigma\^2 = 72 from pull 1000 on"),
        (rb.RUCBLT(f="log"), gaussian([0.0, -9.0], sd=1.0), 10**4, r"8 sigma\^2 = 8 from pull 5 on"),
        (rb.RUCBTEA(), gaussian([0.0, -0.1]), 1000, "log f.T. = 3.865 above 2/gap = 20"),
        (rb.RUCBTEA(), gaussian([0.0, -1.0], sd=3.0), 1000, r"below 2 f\^eps = .* from pull 1000 on"),
        (rb.RUCBMoM(g=0.6), TWO, 1000, "g = 0.6 below eps/.1.eps. = 0.5"),
        (rb.RUCBMoM(), gaussian([0.0, -1.0], sd=3.0), 1000, r"above 12 u = 120 from pull 1000 on"),
        (rb.RUCBMoM(), Problem([Gaussian(10.0, 0.01), Gaussian(-10.0, 0.01)]), 20_000, "12 u = 1200"),
    ],
)
def test_not_applicable(policy: rb.Policy, problem: Problem, horizon: int, words: str) -> None:
    with pytest.raises(NotApplicable, match=words):
        regret_bound(policy, problem, horizon)


def test_not_applicable_at_this_eps() -> None:
    with pytest.raises(NotApplicable, match=r"take eps below 0\.2"):
        regret_bound(rb.AdaRUCB(), WILD, 100, eps=0.5)
    with pytest.raises(NotApplicable, match="uses the variance"):
        regret_bound(rb.RobustUCB(estimator="catoni"), TWO, 100, eps=0.5)
    nearly = Problem([StudentT(dof=1.0 + 1e-10), StudentT(dof=1.0 + 1e-10, loc=-1.0)])
    with pytest.raises(NotApplicable, match="leaves eps"):
        regret_bound(rb.AdaRUCB(), nearly, 100)


@pytest.mark.parametrize(
    ("policy", "problem", "words"),
    [
        (rb.RUCBTEA(), gaussian([5.0, -5.0], sd=5.0), r"3 u log f = 7.* below 2 f\^eps = 2.* from pull 163"),
        (rb.RUCBTEA(), gaussian([0.0, -0.28], sd=0.1), "is not larger for smaller T"),
        (rb.RUCBMoM(), gaussian([5.0, -5.0], sd=5.0), r"above 12 u = 600 from pull 9"),
    ],
)
def test_conditions_from_the_number_of_pulls_on(policy: rb.Policy, problem: Problem, words: str) -> None:
    """At T = 2^53 itself all is well."""
    with pytest.raises(NotApplicable, match=words):
        regret_bound(policy, problem, 2**53)


def test_bounds_below_the_trivial_one() -> None:
    """At T = 2^53 and a large gap, R-UCB's conditions hold from the number of pulls on."""
    level = 53 * math.log(2)
    problem = gaussian([0.5, -0.5], sd=0.5)
    tea = regret_bound(rb.RUCBTEA(), problem, 2**53)
    assert tea.instance == pytest.approx(32 * level**3 / (1 - 1 / math.log(level)) + 4, rel=1e-12)
    mom = regret_bound(rb.RUCBMoM(), problem, 2**53)
    assert mom.instance == pytest.approx(32 * level * (2 * level) ** (1 / 0.45) + 4, rel=1e-12)
    assert "no better" not in tea.bounds[0].note + mom.bounds[0].note


class Mine(rb.UCB1):
    """It may play in any way."""


def test_a_subclass_is_another_policy() -> None:
    with pytest.raises(NotApplicable, match="a policy of your own"):
        regret_bound(Mine(), COINS, 100)


def test_a_mixture_of_normal_laws_is_not_normal() -> None:
    mixed = rb.laws.Mixture([Gaussian(0.0, 1.0), Gaussian(5.0, 1.0)], [0.5, 0.5])
    assert regret_bound(rb.NormalUCB(), Problem([mixed, Gaussian(0.0, 1.0)]), 100).met is False


def test_gaps_whose_square_overflows_or_underflows() -> None:
    T = 10_000
    for gap in (1e-200, 1e-300):
        problem = Problem([Gaussian(gap, 0.1), Gaussian(0.0, 0.1)])
        assert regret_bound(rb.NormalUCB(), problem, T).instance == pytest.approx(0.02 * math.log(T) / gap)
        slow = regret_bound(rb.RUCBLT(f="log"), problem, T)
        assert slow.instance == pytest.approx(4.0 * math.log(T) ** 2 / gap)
    # gaps far beyond the spread: log(1 + ratio^2) is 2 log ratio
    wide = Problem([Gaussian(1e100, 1e-100), Gaussian(0.0, 1e-100)])
    assert regret_bound(rb.NormalUCB(), wide, T).instance == pytest.approx(1e100 * math.log(T) / math.log(1e200))
    # both ways of the logarithm meet
    for ratio in (0.999e-9, 1.001e-9, 0.999e9, 1.001e9):
        near = Problem([Gaussian(ratio, 1.0), Gaussian(0.0, 1.0)])
        exact = ratio / math.log1p(ratio * ratio)
        assert regret_bound(rb.NormalUCB(), near, T).instance == pytest.approx(2.0 * math.log(T) * exact, rel=1e-12)
    least = Problem([Bernoulli(5e-324), Bernoulli(0.0)])
    assert regret_bound(rb.UCB1(), least, T).instance == math.inf
