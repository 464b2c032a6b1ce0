from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import assert_invalid
from robandit.errors import InvalidInput
from robandit.problems import eps_adaptive_pair, hard_gap, lower_bound_family, u_adaptive_pair


def test_theorem_2_by_hand() -> None:
    first, second = u_adaptive_pair(u=2.0, u_alternative=50.0, delta=0.5, eps=0.5)
    assert first.means.tolist() == [0.0, 0.5]
    assert second.means == pytest.approx([1.0, 0.5])
    assert first.laws[1] == second.laws[1]
    values, masses = first.laws[1].atoms()  # type: ignore[misc]
    assert values.tolist() == [0.0, 16.0]  # (u/delta)^(1/eps)
    assert masses[1] == pytest.approx(0.5**3 / 2.0**2)
    values, masses = second.laws[0].atoms()  # type: ignore[misc]
    assert values.tolist() == [0.0, 2500.0]
    assert masses[1] == pytest.approx(1.0 / 50.0**2)


def test_theorem_3_by_hand() -> None:
    first, second = eps_adaptive_pair(delta=0.125, eps=1.0, eps_alternative=0.5)
    # gamma = 1/4, gamma' = 1/16
    values, masses = first.laws[1].atoms()  # type: ignore[misc]
    assert values.tolist() == [0.0, 4.0]
    assert masses[1] == pytest.approx(0.25**2 - 0.125 * 0.25)
    values, masses = second.laws[0].atoms()  # type: ignore[misc]
    assert values.tolist() == [0.0, 16.0]
    assert masses[1] == pytest.approx(0.0625**1.5)
    assert first.means == pytest.approx([0.0, 0.125])
    assert second.means == pytest.approx([0.25, 0.125])
    assert (first.best_arm, second.best_arm) == (1, 0)


def test_theorem_4_by_hand() -> None:
    base = lower_bound_family(arms=4, eps=0.5, u=2.0, delta=0.5)
    assert base.means == pytest.approx([-1.0 / 3.0, -0.5, -0.5, -0.5])
    values, masses = base.laws[1].atoms()  # type: ignore[misc]
    assert values.tolist() == [-16.0, 0.0]
    assert masses[0] == pytest.approx(0.5**3 / 2.0**2)
    other = lower_bound_family(arms=4, eps=0.5, u=2.0, delta=0.5, best=2)
    assert other.means == pytest.approx([-1.0 / 3.0, -0.5, -0.5 / 3.0, -0.5])
    assert other.best_arm == 2
    assert lower_bound_family(arms=4, eps=0.5, u=2.0, delta=0.5, best=0) == base
    assert base.assumption().how == "exact"
    assert base.assumption()
    assert base.laws[1].nonzero_probability == pytest.approx(masses[0])


def test_theorem_4_hard_gap() -> None:
    gap = hard_gap(arms=5, eps=0.5, u=3.0, horizon=10_000)
    assert gap == pytest.approx(0.5 * (4.0 * 3.0**2 / (10_000 * math.log(3.0))) ** (1.0 / 3.0))
    problem = lower_bound_family(arms=5, eps=0.5, u=3.0, horizon=10_000)
    assert problem.means[1] == pytest.approx(-gap)
    # the exponent of the divergence at that gap, T/(K-1) Delta^(1+1/eps) u^(-1/eps) log 3, is 2^-(1+1/eps)
    exponent = 10_000 / 4 * gap**3 / 9.0 * math.log(3.0)
    assert exponent == pytest.approx(0.125)


@settings(max_examples=amount(30, 60), deadline=None, derandomize=True)
@given(eps=st.floats(0.1, 1.0), u=st.floats(0.01, 100.0), ratio=st.floats(1.0, 1e4), share=st.floats(0.01, 1.0))
def test_every_instance_respects_its_moment_bound(eps: float, u: float, ratio: float, share: float) -> None:
    delta = 0.4999 * share * u ** (1.0 / (1.0 + eps))
    first, second = u_adaptive_pair(u, u * ratio, delta, eps)
    assert first.u(eps) == pytest.approx(u)
    assert second.u(eps) == pytest.approx(u * ratio)
    assert second.means == pytest.approx([2.0 * delta, delta])
    family = lower_bound_family(arms=3, eps=eps, u=u, delta=delta, best=1)
    assert family.u(eps) == pytest.approx(u)
    assert family.means == pytest.approx([-2.0 * delta / 3.0, -delta / 3.0, -delta])


@settings(max_examples=amount(30, 60), deadline=None, derandomize=True)
@given(eps=st.floats(0.2, 1.0), share=st.floats(0.1, 0.9), delta=st.floats(0.01, 0.5))
def test_theorem_3_moments(eps: float, share: float, delta: float) -> None:
    first, second = eps_adaptive_pair(delta, eps, share * eps)
    assert first.u(eps) == pytest.approx(0.5)
    assert second.u(share * eps) == pytest.approx(1.0)
    assert second.means == pytest.approx([2.0 * delta, delta])


EPS = "a number with 0 < eps <= 1"


@pytest.mark.parametrize(
    ("arguments", "parameter", "rule"),
    [
        ({"u_alternative": 0.5}, "u_alternative", "at least u = 1.0"),
        ({"eps": 0.0}, "eps", EPS),
        ({"eps": 1.5}, "eps", EPS),
        ({"delta": 0.0}, "delta", "a finite number > 0"),
        ({"u": -1.0}, "u", "a finite number > 0"),
    ],
)
def test_theorem_2_rejects_parameters(arguments: dict[str, float], parameter: str, rule: str) -> None:
    valid = {"u": 1.0, "u_alternative": 10.0, "delta": 0.1, "eps": 1.0}
    assert_invalid(lambda: u_adaptive_pair(**valid | arguments), parameter, rule)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 1.5}, "arm 1 would need the mass .*, above 1; take a smaller delta"),
        ({"delta": 0.9, "u_alternative": 2.0}, "arm 0 of the alternative would need the mass"),
        ({"u": 5e-324, "delta": 1e308}, "puts mass at 0.0, beyond a double"),
    ],
)
def test_theorem_2_rejects_combinations(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        u_adaptive_pair(**{"u": 1.0, "u_alternative": 10.0, "delta": 0.1, "eps": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "parameter", "rule"),
    [
        ({"delta": 0.6}, "delta", "a finite number > 0 and <= 0.5"),
        ({"delta": 0.0}, "delta", "a finite number > 0 and <= 0.5"),
        ({"eps_alternative": 1.0}, "eps_alternative", "below eps = 1.0"),
        ({"eps": 2.0}, "eps", EPS),
        ({"eps_alternative": 0.0}, "eps_alternative", "a number with 0 < eps_alternative <= 1"),
        (
            {"eps_alternative": 0.001},
            "eps_alternative",
            "large enough that (2 delta)^(1/eps_alternative) >= 1e-300 (delta = 0.1)",
        ),
    ],
)
def test_theorem_3_rejects_parameters(arguments: dict[str, float], parameter: str, rule: str) -> None:
    assert_invalid(lambda: eps_adaptive_pair(**{"delta": 0.1, "eps": 1.0, **arguments}), parameter, rule)


@cases(
    ("arguments", "parameter", "rule"),
    [
        ({"arms": 1}, "arms", "an integer from 2 to 10000000"),
        ({"arms": 2.0}, "arms", "an integer from 2 to 10000000"),
        ({"arms": 10**400}, "arms", "an integer from 2 to 10000000"),
        ({"delta": None, "horizon": 0}, "horizon", "an integer from 1 to 2^53"),
        ({"best": 3}, "best", "an integer from 0 to 2"),
        ({"best": -1}, "best", "an integer from 0 to 2"),
        ({"eps": 0.0}, "eps", EPS),
        ({"u": 0.0}, "u", "a finite number > 0"),
    ],
)
def test_theorem_4_rejects_parameters(arguments: dict[str, Any], parameter: str, rule: str) -> None:
    valid: dict[str, Any] = {"arms": 3, "eps": 1.0, "u": 1.0, "delta": 0.1}
    assert_invalid(lambda: lower_bound_family(**valid | arguments), parameter, rule)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": None}, "horizon = None and delta = None: pass exactly one of the two"),
        ({"horizon": 100}, "horizon = 100 and delta = 0.1: pass exactly one of the two"),
        ({"delta": 1.5}, "would need the mass"),
        ({"delta": 1e308, "eps": 0.5}, "puts mass at 0.0, beyond a double"),
        ({"delta": 1e-300, "eps": 0.5}, "puts mass at inf, beyond a double"),
    ],
)
def test_theorem_4_rejects_combinations(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        lower_bound_family(**{"arms": 3, "eps": 1.0, "u": 1.0, "delta": 0.1, **arguments})


def test_numpy_integers_are_accepted() -> None:
    assert lower_bound_family(np.int64(3), 1.0, 1.0, delta=0.1, best=np.uint8(2)) == lower_bound_family(
        3, 1.0, 1.0, delta=0.1, best=2
    )
