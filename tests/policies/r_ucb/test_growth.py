"""The slow functions f and g: values, monotonicity, and the slopes that lazy policies need."""

import math
from itertools import pairwise

import pytest

from helpers.invalid import raises
from robandit import RUCBLT, RUCBMoM
from robandit.errors import InvalidInput
from robandit.policies.r_ucb.growth import decay, decay_number, growth, growth_kind, steepest

WORDS = ["log", "log_squared", "log_log", "corollary"]


@pytest.mark.parametrize(
    ("word", "late"),
    [
        ("log", lambda t: math.log(t)),
        ("log_squared", lambda t: math.log(t) ** 2),
        ("log_log", lambda t: math.log(math.log(t))),
        ("corollary", lambda t: 0.5 * math.exp(0.5 * math.log(math.log(t)) ** 0.5)),
    ],
)
def test_f_has_its_formula_and_is_constant_before(word, late):
    kind = growth_kind(word)
    first = 16 if word == "log_log" else 3
    for t in (first, 100, 10**6, 2**53):
        assert growth(kind, math.log(t)) == pytest.approx(late(t), rel=1e-14)
    for t in range(1, first):
        assert growth(kind, math.log(t)) == growth(kind, math.log(first))
    if word != "corollary":
        assert growth(kind, 0.0) > 1.0
    else:
        assert growth(kind, math.log(928)) < 1.0 < growth(kind, math.log(929))


@pytest.mark.parametrize("word", WORDS)
def test_no_chord_is_steeper_than_the_steepest_slope(word):
    kind = growth_kind(word)
    levels = [0.01 * j for j in range(3700)]
    for low, high in zip(levels[:-40:7], levels[40::7], strict=False):
        slope = steepest(kind, low, high)
        between = [low + (high - low) * j / 20 for j in range(21)]
        for a, b in pairwise(between):
            rise = growth(kind, b) - growth(kind, a)
            assert 0.0 <= rise <= slope * (b - a) * (1 + 1e-9) + 1e-13


def test_g():
    assert decay(decay_number(0.45), 3.0) == decay(decay_number(0.45), 30.0) == 0.45
    corollary = decay_number("corollary")
    assert decay(corollary, math.log(1e5)) == pytest.approx(math.log(math.log(1e5)) ** -0.5)
    assert decay(corollary, math.log(1e5)) == pytest.approx(0.64, abs=0.005)
    assert [decay(corollary, math.log(t)) for t in (1, 2, 3, 15)] == [1.0] * 4
    assert decay(corollary, math.log(16)) < 1.0


def test_invalid_parameters():
    for word in WORDS:
        RUCBLT(f=word)
    with raises(InvalidInput, parameter="f", rule="one of 'log', 'log_squared', 'log_log', 'corollary'"):
        RUCBLT(f="sqrt")
    RUCBMoM(g=0.3)
    RUCBMoM(g="corollary")
    with pytest.raises(InvalidInput, match=r"g = 'slow' must be a finite number > 0 and < 1; or pass 'corollary'"):
        RUCBMoM(g="slow")
    for wrong in (0.0, 1.0, -1.0, math.nan, None, True):
        with raises(InvalidInput, parameter="g", rule="a finite number > 0 and < 1"):
            RUCBMoM(g=wrong)
