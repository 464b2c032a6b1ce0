"""The check of Lemma A holds, does not if a constant is smaller, and agrees with 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from robandit.kernel.types import Floats
from robandit.verify.adakl_comparison import KINDS, STATEMENT, excess, run, width
from robandit.verify.statement import Effort, checked

QUICK = Effort(quick=True)


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert [f.verdict for f in outcome.ran.findings] == ["holds"] * 4
    assert 0.99 < outcome.ran.findings[0].measured <= 1.0  # the constants cannot be smaller
    assert {row["case"] for row in outcome.ran.rows} == set(KINDS)


@pytest.mark.parametrize(("root", "linear"), [(0.9, 1.0), (1.0, 0.9), (0.0, 2.0), (2.0, 0.0)])
def test_smaller_constants_fail(root: float, linear: float) -> None:
    def narrow(means: Floats, variances: Floats, largest: Floats, a: float) -> Floats:
        return root * np.sqrt(2.0 * variances * a) + linear * (largest - means) * a

    assert run(QUICK, width=narrow).findings[0].verdict == "fails"


def test_a_width_that_is_too_large_is_noticed() -> None:
    """The two cases that show that no constant can be smaller."""
    ran = run(QUICK, width=lambda *args: 1.1 * width(*args))
    assert [f.verdict for f in ran.findings] == ["holds", "fails", "fails", "holds"]


def exact_bound(z: list[float], largest: float, a: float) -> mpmath.mpf:
    """Return the minimum over l >= M with 50 digits, by golden sections in log(l - M). No code of the library is used."""
    values, exponent = [mpmath.mpf(x) for x in z], mpmath.mpf(a)

    def at(log_gap: mpmath.mpf) -> mpmath.mpf:
        top = largest + mpmath.exp(log_gap)
        return top - mpmath.exp(-exponent + mpmath.fsum(mpmath.log(top - x) for x in values) / len(values))

    low, high, golden = mpmath.mpf(-60), mpmath.mpf(20), (mpmath.sqrt(5) - 1) / 2
    for _ in range(160):  # the width falls to 1e-32
        left, right = high - golden * (high - low), low + golden * (high - low)
        if at(left) < at(right):
            high = right
        else:
            low = left
    return at((low + high) / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a", [1e-3, 0.2, 3.0])
def test_against_fifty_digits(kind: str, a: float) -> None:
    with mpmath.workdps(50):
        z = KINDS[kind](np.random.default_rng(7).random(6))
        m = mpmath.fsum(map(mpmath.mpf, z.tolist())) / 6
        v = mpmath.fsum((mpmath.mpf(x) - m) ** 2 for x in z.tolist()) / 6
        allowed = mpmath.sqrt(2 * v * mpmath.mpf(a)) + (1 - m) * mpmath.mpf(a)
        ratio = (exact_bound(z.tolist(), 1.0, a) - m) / allowed
        assert 0 < ratio <= 1
        assert float(excess(z[None, :], np.ones(1), a, width)[0]) == pytest.approx(float(ratio), rel=1e-6)


def test_values_that_equal_the_largest_have_no_width() -> None:
    assert excess(np.ones((1, 3)), np.ones(1), 0.5, width)[0] == 0.0
