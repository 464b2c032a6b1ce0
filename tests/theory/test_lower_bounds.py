from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from robandit.errors import InvalidInput
from robandit.problems import hard_gap, lower_bound_family
from robandit.theory.lower_bounds import (
    PairBound,
    lower_bound_eps_adaptive,
    lower_bound_u_adaptive,
    minimax_constant,
    minimax_lower_bound,
)

orders = st.floats(0.05, 1.0)


def test_minimax_by_hand() -> None:
    # Delta = (1/2) (4 * 9 / (1000 log 3))^(1/3); Delta T/24 exp(-1/8)
    gap = 0.5 * (36.0 / (1000.0 * math.log(3.0))) ** (1.0 / 3.0)
    assert minimax_lower_bound(1000, 5, eps=0.5, u=3.0) == pytest.approx(gap * 1000.0 / 24.0 * math.exp(-0.125))


def test_minimax_from_the_problems_themselves() -> None:
    # divergence, gaps and the 1/2 of Bretagnolle and Huber, with the exact divergence: the rounded bound lies below
    arms, eps, u, horizon = 4, 0.5, 2.0, 5000
    base = lower_bound_family(arms, eps, u, horizon=horizon)
    other = lower_bound_family(arms, eps, u, horizon=horizon, best=2)
    p, q = (problem.laws[2].nonzero_probability for problem in (base, other))
    divergence = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    least = min(base.means[0] - base.means[1], other.means[2] - other.means[0])
    exact = 0.5 * (least * horizon / 2.0) * 0.5 * math.exp(-horizon / (arms - 1) * divergence)
    rounded = minimax_lower_bound(horizon, arms, eps=eps, u=u)
    assert rounded == pytest.approx(exact * math.exp(-horizon / (arms - 1) * (p * math.log(3.0) - divergence)))
    assert rounded < exact


@settings(max_examples=amount(30, 60), deadline=None, derandomize=True)
@given(
    eps=orders, u=st.floats(1e-3, 1e3), scale=st.floats(0.1, 10.0), arms=st.integers(2, 50), t=st.integers(100, 10**7)
)
def test_minimax_scales_with_rewards_and_grows(eps: float, u: float, scale: float, arms: int, t: int) -> None:
    value = minimax_lower_bound(t, arms, eps=eps, u=u)
    assert minimax_lower_bound(t, arms, eps=eps, u=scale ** (1.0 + eps) * u) == pytest.approx(scale * value)
    assert minimax_lower_bound(t + 1, arms, eps=eps, u=u) > value
    assert minimax_lower_bound(t, arms + 1, eps=eps, u=u) > value
    rate = arms ** (eps / (1.0 + eps)) * (u * t) ** (1.0 / (1.0 + eps))
    assert value == pytest.approx(minimax_constant(arms=arms, eps=eps) * rate)
    assert hard_gap(arms, eps, u, t) ** (1.0 + eps) <= u


def test_the_smallest_constant() -> None:
    assert minimax_constant() == pytest.approx(math.exp(-0.25) / 48.0 / math.sqrt(2.0 * math.log(3.0)))
    grid = [minimax_constant(arms=k, eps=e) for k in (2, 3, 10, 1000) for e in np.linspace(0.01, 1.0, 100)]
    assert min(grid) == minimax_constant()
    assert max(grid) < 1.0 / 48.0


def worst_over_arms(bound: PairBound, gap: float) -> float:
    """The proof's sum at a gap, smallest over x by search; the exact divergence gives way to c q."""
    (eps, other), (_, u_other) = bound.orders, bound.moments
    mass = (2.0 * gap) ** (1.0 + 1.0 / other) * u_other ** (-1.0 / other)
    t = bound.horizon

    def total(x: float) -> float:
        blind = t / 8.0 / bound.scales[1] * math.exp(-x * 2.0 * math.log(2.0) * mass)
        return gap / 2.0 * (x / bound.scales[0] + blind)

    assert eps >= other
    result = minimize_scalar(total, bounds=(0.0, float(t)), method="bounded", options={"xatol": 1e-10 * t})
    return float(min(result.fun, total(0.0), total(float(t))))


@cases("eps", [0.3, 0.5, 0.8, 1.0])
@cases("ratio", [1.0, 3.0, 50.0])
def test_theorem_2_is_the_smallest_sum_at_the_best_gap(eps: float, ratio: float) -> None:
    bound = lower_bound_u_adaptive(10**9, eps=eps, u=2.0, u_alternative=2.0 * ratio)
    assert bound.value == pytest.approx(worst_over_arms(bound, bound.delta), rel=1e-6)
    for factor in (0.8, 0.95, 1.05, 1.2):
        assert worst_over_arms(bound, factor * bound.delta) < bound.value


@pytest.mark.parametrize("eps", [0.3, 0.5, 1.0])
def test_theorem_2_is_what_the_paper_prints(eps: float) -> None:
    c, r, t, q = 2.0 * math.log(2.0), 7.0, 10**7, eps / (1.0 + eps)
    bound = lower_bound_u_adaptive(t, eps=eps, u=3.0, u_alternative=3.0 * r)
    printed = c**-q * 2.0 ** (-(2 * eps + 5) / (1 + eps)) * (1 + eps) * math.exp(-q) * r ** (eps / (1 + eps) ** 2)
    gap = 2.0 ** ((2 * eps - 1) / (1 + eps)) * math.exp(eps**2 / (1 + eps)) * (c * t) ** -q
    gap *= 3.0 ** (-eps / (1 + eps) ** 2) * (3.0 * r) ** ((1 + 2 * eps) / (1 + eps) ** 2)
    assert bound.value == pytest.approx(printed)
    assert bound.delta == pytest.approx(gap)
    assert bound.value == pytest.approx(bound.constant * r**bound.exponent)


@pytest.mark.parametrize(("eps", "other"), [(1.0, 1.0 / 3.0), (1.0, 0.5), (0.6, 0.2), (0.9, 0.85)])
def test_theorem_3_is_the_smallest_sum_and_what_the_paper_prints(eps: float, other: float) -> None:
    c, t = 2.0 * math.log(2.0), 10**6
    bound = lower_bound_eps_adaptive(t, eps=eps, eps_alternative=other)
    assert bound.value == pytest.approx(worst_over_arms(bound, bound.delta), rel=1e-6)
    power = other * (eps - other) / ((1 + other) ** 2 * (1 + eps))
    printed = 2.0 ** ((-2 * other - 5) / (1 + other)) * c ** (-other / (1 + other)) * t**power
    gap = 2.0 ** ((2 * other - 1) / (1 + other)) * c ** (-other / (1 + other))
    gap *= t ** (-other / (1 + other) * (1 / (eps + 1) + other / (1 + other)))
    assert bound.value == pytest.approx(printed)
    assert bound.delta == pytest.approx(gap)
    assert bound.exponent == pytest.approx(power)


def test_theorem_3_is_largest_at_its_defaults() -> None:
    assert lower_bound_eps_adaptive(100).exponent == pytest.approx(1.0 / 16.0)
    grid = np.linspace(0.02, 1.0, 50)
    assert max(e2 * (e1 - e2) / (1 + e1) / (1 + e2) ** 2 for e1 in grid for e2 in grid) <= 1.0 / 16.0
    steps = [lower_bound_eps_adaptive(t).value for t in (10**3, 10**6, 10**9)]
    assert steps[1] / steps[0] == pytest.approx(1000.0 ** (1.0 / 16.0)) == pytest.approx(steps[2] / steps[1])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(eps=orders, share=st.floats(0.05, 0.95))
def test_constants_are_above_one_in_32(eps: float, share: float) -> None:
    assert lower_bound_u_adaptive(10**9, eps=eps, u=1.0, u_alternative=1.0).constant > 1.0 / 32.0
    assert lower_bound_eps_adaptive(10**9, eps=eps, eps_alternative=share * eps).constant > 1.0 / 32.0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(eps=st.floats(0.3, 1.0), u=st.floats(0.01, 100.0), ratio=st.floats(1.0, 20.0))
def test_the_pairs_are_what_the_proof_needs(eps: float, u: float, ratio: float) -> None:
    bound = lower_bound_u_adaptive(10**8, eps=eps, u=u, u_alternative=ratio * u)
    first, second = bound.problems()
    assert (first.best_arm, second.best_arm) == (1, 0)
    assert first.u(eps) == pytest.approx(u)
    assert second.u(eps) == pytest.approx(ratio * u)
    assert second.laws[0].nonzero_probability == pytest.approx(bound.mass)
    assert first.means == pytest.approx([0.0, bound.delta])
    scaled = lower_bound_u_adaptive(
        10**8, eps=eps, u=5.0 ** (1.0 + eps) * u, u_alternative=5.0 ** (1.0 + eps) * ratio * u
    )
    assert scaled.delta == pytest.approx(5.0 * bound.delta)  # rewards times 5: the ratio is unchanged
    assert scaled.value == pytest.approx(bound.value)
    assert scaled.optimum() == pytest.approx(bound.optimum())
    assert bound.optimum() > bound.value


def test_the_eps_pair() -> None:
    bound = lower_bound_eps_adaptive(10_000)
    first, second = bound.problems()
    assert (first.best_arm, second.best_arm) == (1, 0)
    assert [first.u(1.0), second.u(1.0 / 3.0)] == pytest.approx([0.5, 1.0])
    assert second.laws[0].nonzero_probability == pytest.approx(bound.mass)
    assert list(bound.scales) == pytest.approx([100.0, 1000.0])


def test_the_optimum_against_every_policy_of_a_short_horizon() -> None:
    """A policy that has seen only zeros on arm 0 follows one of 2^T schedules, or a mixture; all mixtures of two are tried."""
    t, mass = 7, 0.3
    bound = PairBound(
        horizon=t,
        value=0.0,
        constant=0.0,
        exponent=0.0,
        delta=0.4,
        mass=mass,
        orders=(1.0, 0.5),
        moments=(1.0, 1.0),
    )
    points = []
    for schedule in itertools.product((0, 1), repeat=t):
        unseen, blind = 1.0, 0.0
        for arm in schedule:
            if arm == 1:
                blind += unseen  # the better arm is known to be 0 with the rest of the probability
            else:
                unseen *= 1.0 - mass
        points.append((0.4 * schedule.count(0) / bound.scales[0], 0.4 * blind / bound.scales[1]))
    points = sorted(set(points))
    shares = np.linspace(0.0, 1.0, 2001)
    best = min(
        float(np.maximum(shares * a + (1 - shares) * c, shares * b + (1 - shares) * d).min())
        for (a, b), (c, d) in itertools.combinations(points, 2)
    )
    assert bound.optimum() <= best + 1e-12
    assert bound.optimum() == pytest.approx(best, rel=1e-3)  # the grid of shares


def test_a_horizon_too_short_for_the_ratio_is_rejected_and_the_way_out_is_right() -> None:
    with pytest.raises(InvalidInput, match="horizon = 1000 must be longer for u_alternative/u = 100") as rejected:
        lower_bound_u_adaptive(1000, eps=1.0, u=1.0, u_alternative=100.0)
    shortest = int(str(rejected.value).split("at least ")[1].split(" pulls")[0])
    bound = lower_bound_u_adaptive(shortest, eps=1.0, u=1.0, u_alternative=100.0)
    assert bound.delta == pytest.approx(1.0, rel=1e-3)  # the gap is as large as a moment of u allows
    with raises(InvalidInput, parameter="horizon"):
        lower_bound_u_adaptive(shortest - 1, eps=1.0, u=1.0, u_alternative=100.0)
    # at u' = u the probability is what binds, 8 e/c/T <= 1/2
    assert lower_bound_u_adaptive(32, eps=1.0, u=1.0, u_alternative=1.0).mass == pytest.approx(0.4902, abs=1e-4)
    with pytest.raises(InvalidInput, match="take at least 32 pulls"):
        lower_bound_u_adaptive(31, eps=1.0, u=1.0, u_alternative=1.0)


@cases(
    ("call", "arguments", "message"),
    [
        (minimax_lower_bound, {"arms": 1}, "arms = 1"),
        (minimax_lower_bound, {"horizon": 0}, "horizon = 0"),
        (minimax_lower_bound, {"horizon": 1, "arms": 10}, "horizon = 1 must be longer for 10 arms"),
        (minimax_lower_bound, {"eps": 0.0}, "eps = 0.0"),
        (minimax_lower_bound, {"eps": 1.5}, "eps = 1.5"),
        (minimax_lower_bound, {"u": 0.0}, "u = 0.0"),
        (lower_bound_u_adaptive, {"horizon": 2.5}, "horizon = 2.5"),
        (lower_bound_u_adaptive, {"horizon": True}, "horizon = True"),
        (lower_bound_u_adaptive, {"eps": 0.0}, "eps = 0.0"),
        (lower_bound_u_adaptive, {"u": -1.0}, "u = -1.0"),
        (lower_bound_u_adaptive, {"u_alternative": 0.5}, "u_alternative = 0.5 must be at least u"),
        (lower_bound_eps_adaptive, {"horizon": 0}, "horizon = 0"),
        (lower_bound_eps_adaptive, {"horizon": 26}, "horizon = 26 must be at least 27; "),
        (lower_bound_eps_adaptive, {"eps": 2.0}, "eps = 2.0"),
        (lower_bound_eps_adaptive, {"eps_alternative": 0.0}, "eps_alternative = 0.0"),
        (lower_bound_eps_adaptive, {"eps": 0.3}, "must be below eps = 0.3; exchange"),
        (minimax_lower_bound, {"horizon": 2**53 + 1}, "horizon = 9007199254740993.*from 1 to 2\\^53"),
        (minimax_lower_bound, {"arms": 10**400}, "arms = 1000.*from 2 to 2\\^53"),
        (minimax_lower_bound, {"u": 10**400}, "u = 1000.*finite number > 0"),
        (lower_bound_u_adaptive, {"horizon": 10**400}, "from 1 to 2\\^53"),
        (lower_bound_eps_adaptive, {"horizon": 10**400}, "from 1 to 2\\^53"),
        (
            minimax_lower_bound,
            {"eps": math.nan},
            "eps = nan must be a number with 0 < eps <= 1",
        ),
        (lower_bound_u_adaptive, {"eps": math.nan}, "eps = nan must be a number with 0 < eps <= 1"),
        (lower_bound_eps_adaptive, {"eps": math.nan}, "eps = nan must be a number with 0 < eps <= 1"),
        (lower_bound_eps_adaptive, {"eps_alternative": math.nan}, "eps_alternative = nan"),
        (minimax_lower_bound, {"eps": True}, "eps = True"),
        (minimax_lower_bound, {"eps": "x"}, "eps = 'x'"),
        (lower_bound_u_adaptive, {"u_alternative": 1e300}, "closer to u; these two need more than 2\\^53 pulls"),
        (
            lower_bound_u_adaptive,
            {"u_alternative": 1e300, "eps": 1e-3},
            "closer to u; these two need more than 2\\^53 pulls",
        ),
        (
            lower_bound_u_adaptive,
            {"u": 1e-300, "u_alternative": 1e300},
            "u_alternative = 1e[+]300 must be closer to u = 1e-300; their ratio overflows",
        ),
    ],
)
def test_invalid_arguments(call: Any, arguments: dict[str, Any], message: str) -> None:
    usual: dict[Any, dict[str, Any]] = {
        minimax_lower_bound: {"horizon": 1000, "arms": 3, "eps": 1.0, "u": 1.0},
        lower_bound_u_adaptive: {"horizon": 10**6, "eps": 1.0, "u": 1.0, "u_alternative": 4.0},
        lower_bound_eps_adaptive: {"horizon": 10**6},
    }
    with pytest.raises(InvalidInput, match=message):
        call(**{**usual[call], **arguments})


@pytest.mark.parametrize(("int_type", "real"), [(np.int32, np.float32), (np.int64, np.float64)])
def test_numpy_scalars(int_type: Any, real: Any) -> None:
    assert minimax_lower_bound(int_type(1000), int_type(3), eps=real(0.5), u=real(2.0)) == minimax_lower_bound(
        1000, 3, eps=0.5, u=2.0
    )
    assert minimax_constant(arms=int_type(3), eps=real(0.5)) == minimax_constant(arms=3, eps=0.5)
    assert lower_bound_u_adaptive(int_type(10**6), eps=real(0.5), u=real(1.0), u_alternative=real(4.0)) == (
        lower_bound_u_adaptive(10**6, eps=0.5, u=1.0, u_alternative=4.0)
    )
    assert lower_bound_eps_adaptive(int_type(10**6), eps=real(1.0), eps_alternative=real(0.5)) == (
        lower_bound_eps_adaptive(10**6, eps=1.0, eps_alternative=0.5)
    )
