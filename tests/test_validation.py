"""The rules of `robandit.validation`: valid, boundary, invalid and huge values for every function."""

from __future__ import annotations

import enum
import itertools
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.invalid import assert_invalid
from robandit import validation
from robandit.errors import InvalidInput, formatted
from robandit.validation import (
    LARGEST_COUNT,
    LARGEST_INTEGER,
    LEAST_EPS,
    MOST_ITEMS,
    array,
    check_items,
    choice,
    column,
    finite,
    flag,
    function,
    instance,
    integer,
    integer_meant,
    invalid,
    items_of,
    mapping,
    numbers,
    order,
    plain,
    points,
    positive,
    probabilities,
    probability,
    read_items,
    seed,
    text,
    within,
)

LARGEST = sys.float_info.max
UP = math.nextafter(1.0, 2.0)
DOWN = math.nextafter(1.0, 0.0)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


# Values that are not numbers, and numbers that no double holds: every function for one number rejects all of them.
NOT_NUMBERS = [
    True,
    False,
    np.True_,
    np.array(False),
    "1",
    "",
    b"1",
    None,
    [1.0],
    (),
    {},
    np.array([1.0]),
    np.array([]),
    np.array(None, dtype=object),
    np.array("1"),
    1j,
    np.complex128(1.0),
    Decimal(1),
    ...,
    np.datetime64("2013-01-01"),
    np.timedelta64(1, "s"),
    np.array(1, dtype="m8[s]"),
]
NOT_FINITE = [
    math.nan,
    math.inf,
    -math.inf,
    np.float32("nan"),
    np.array(math.inf),
    10**400,
    -(10**5000),
    Fraction(10**400),
    np.longdouble("1e4000"),
]

ONE_NUMBER: dict[str, Callable[[Any, str], Any]] = {
    "integer": integer,
    "finite": finite,
    "positive": positive,
    "within": lambda value, name: within(value, name, 0.0, 10.0),
    "within without bounds": lambda value, name: within(value, name, -math.inf, math.inf),
    "probability": probability,
    "order": order,
}


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE], ids=formatted)
@pytest.mark.parametrize("check", ONE_NUMBER.values(), ids=ONE_NUMBER)
def test_what_is_no_number_is_rejected_everywhere(check: Callable[[Any, str], Any], value: Any) -> None:
    error = assert_invalid(lambda: check(value, "x"), "x", "")
    assert error.value is value
    assert len(str(error)) < 250


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (-0.0, 0.0),
        (3, 3.0),
        (-2.5, -2.5),
        (Level.HIGH, 2.0),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.float16(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.int8(-3), -3.0),
        (np.uint64(2**64 - 1), 2.0**64),
        (np.array(2.5), 2.5),
        (np.array(2), 2.0),
        (np.array(Fraction(1, 2), dtype=object), 0.5),
        (Fraction(1, 3), 1 / 3),
        (Fraction(1, 10**400), 0.0),
        (10**300, 1e300),
        (LARGEST, LARGEST),
        (-LARGEST, -LARGEST),
        (5e-324, 5e-324),
    ],
    ids=repr,
)
def test_finite_returns_plain_floats(value: Any, number: float) -> None:
    result = finite(value, "x")
    assert type(result) is float
    assert result == number
    if number > 0.0:
        assert positive(value, "x") == number
    else:
        assert_invalid(lambda: positive(value, "x"), "x", "a finite number > 0")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_keeps_every_double(value: float) -> None:
    assert finite(value, "x") == value
    assert finite(np.float64(value), "x") == value


@given(st.one_of(st.text(), st.binary(), st.none(), st.booleans(), st.lists(st.floats()), st.complex_numbers()))
def test_other_types_are_never_numbers(value: Any) -> None:
    for check in ONE_NUMBER.values():
        with pytest.raises(InvalidInput):
            check(value, "x")


# --- integers ----------------------------------------------------------------------------------------------------------


@given(st.integers(), st.integers(0, 2**60), st.integers(0, 2**60))
def test_integers_are_compared_exactly(value: int, least: int, span: int) -> None:
    most = least + span
    if least <= value <= most:
        assert integer(value, "n", least, most) == value
    else:
        assert_invalid(lambda: integer(value, "n", least, most), "n", f"an integer from {least} to ")


@pytest.mark.parametrize(
    "value", [np.int8(5), np.uint64(5), np.int64(5), np.array(5), np.array(5, dtype=object)], ids=lambda v: str(v.dtype)
)
def test_integers_of_numpy_become_plain(value: Any) -> None:
    assert type(integer(value, "n")) is int
    assert integer(value, "n") == 5


def test_integers_of_a_subclass_become_plain() -> None:
    assert type(integer(Level.HIGH, "n")) is int


@pytest.mark.parametrize("value", [1.0, 1.5, np.float64(2.0), Fraction(2), np.array(1.0), Decimal(2)], ids=repr)
def test_integers_are_not_rounded(value: Any) -> None:
    assert_invalid(lambda: integer(value, "n"), "n", "an integer from 0 to 2^53")


@pytest.mark.parametrize(
    ("value", "ending"),
    [
        (1e3, "; write 1000"),
        (np.float64(2e15), "; write 2000000000000000"),
        (0.5, "2^53"),
        (-1e3, "2^53"),
        (1e300, "2^53"),
    ],
)
def test_the_integer_of_a_float_is_named_if_it_is_allowed(value: Any, ending: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        integer(value, "horizon", 1)
    assert str(caught.value).endswith(ending)
    assert integer_meant(float(value), 1, LARGEST_INTEGER) == ending.removeprefix("; ").removeprefix("2^53")
    with pytest.raises(InvalidInput, match=r"an integer >= 1(; write 1000|; write 2000000000000000|)$"):
        integer(value, "horizon", 1, None)


def test_bounds_of_integers() -> None:
    assert integer(0, "n") == 0
    assert integer(LARGEST_INTEGER, "n") == 2**53 == 2 * LARGEST_COUNT
    assert_invalid(lambda: integer(-1, "n"), "n", "an integer from 0 to 2^53")
    assert_invalid(lambda: integer(2**53 + 1, "n"), "n", "an integer from 0 to 2^53")
    assert_invalid(lambda: integer(0, "n", 1), "n", "an integer from 1 to 2^53")
    assert integer(10**400, "n", 0, None) == 10**400
    assert_invalid(lambda: integer(-1, "n", 0, None), "n", "an integer >= 0")
    assert_invalid(lambda: integer(2**63, "n", 0, 2**63 - 1), "n", "an integer from 0 to 2^63 - 1")
    assert_invalid(lambda: integer(8, "n", 2, 7), "n", "an integer from 2 to 7")


@pytest.mark.parametrize("value", [0, 1, 2**32, 2**200, np.int64(7), np.uint64(2**63), np.array(3)], ids=repr)
def test_seeds(value: Any) -> None:
    result = seed(value)
    assert type(result) is int
    assert result == value


def test_no_seed() -> None:
    assert seed(None) is None


@pytest.mark.parametrize("value", [-1, 1.0, 0.5, "1", True, np.False_, math.nan, [1], b"1"], ids=repr)
def test_invalid_seeds(value: Any) -> None:
    assert_invalid(lambda: seed(value), "seed", "an integer >= 0, or None")
    assert_invalid(lambda: seed(value, "first"), "first", "an integer >= 0, or None")


# --- ranges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "ends", "rule"),
    [
        (0.0, 1.0, {}, "a finite number >= 0 and <= 1"),
        (0.0, 1.0, {"open_low": True}, "a finite number > 0 and <= 1"),
        (0.0, 1.0, {"open_high": True}, "a finite number >= 0 and < 1"),
        (0.0, 1.0, {"open_low": True, "open_high": True}, "a finite number > 0 and < 1"),
        (0.0, math.inf, {}, "a finite number >= 0"),
        (-math.inf, 1.0, {"open_high": True}, "a finite number < 1"),
        (-math.inf, math.inf, {}, "a finite number"),
    ],
)
def test_ranges(low: float, high: float, ends: dict[str, bool], rule: str) -> None:
    inside, outside = [0.5, Fraction(1, 2), np.float32(0.5)], [math.inf, -math.inf, math.nan]
    for bound, closed, beyond in (
        (low, "open_low" not in ends, math.nextafter(low, -math.inf)),
        (high, "open_high" not in ends, math.nextafter(high, math.inf)),
    ):
        if math.isfinite(bound):
            (inside if closed else outside).append(bound)
            outside.append(beyond)
    for value in inside:
        assert within(value, "x", low, high, **ends) == float(value)
    for value in outside:
        error = assert_invalid(lambda value=value: within(value, "x", low, high, **ends), "x", rule)  # type: ignore[misc]
        assert error.rule == rule


@pytest.mark.parametrize("value", [5e-324, 0.05, 0.5, DOWN, np.float32(0.25), Fraction(1, 7)], ids=repr)
def test_probabilities_lie_strictly_between_0_and_1(value: Any) -> None:
    assert probability(value, "delta") == float(value)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, UP, 2], ids=repr)
def test_certain_and_impossible_are_no_probabilities(value: Any) -> None:
    error = assert_invalid(lambda: probability(value, "delta"), "delta", "strictly between 0 and 1")
    assert str(error).endswith("; such as 0.05")


@pytest.mark.parametrize("value", [1, 1.0, 0.5, LEAST_EPS, np.float64(1.0), Fraction(1, 3)], ids=repr)
def test_orders(value: Any) -> None:
    assert order(value) == float(value)


@pytest.mark.parametrize("value", [0, 0.0, -0.5, UP, 2, math.nextafter(LEAST_EPS, 0.0), 1e-320], ids=repr)
def test_invalid_orders(value: Any) -> None:
    assert_invalid(lambda: order(value), "eps", "a number with 0 < eps <= 1 (and at least 1e-09)")
    assert_invalid(lambda: order(value, "eps_low"), "eps_low", "0 < eps_low <= 1")


# --- choices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["log", np.str_("log"), np.array("log")], ids=repr)
def test_choices(value: Any) -> None:
    result = choice(value, "f", ["log", "log_log"])
    assert type(result) is str
    assert result == "log"


def test_choices_of_other_types() -> None:
    assert choice(None, "f", ["log", None]) is None
    assert choice(True, "f", (True, False)) is True
    assert choice(np.int64(2), "f", iter((1, 2))) == 2
    assert choice("b", "f", {"a": 1, "b": 2}) == "b"


@pytest.mark.parametrize(
    ("value", "allowed"),
    [("Log", ["log"]), (1, [True]), (True, [1]), (1.0, [1]), (["log"], ["log"]), (None, ["log"]), (math.nan, [0.0])],
)
def test_choices_have_the_type_of_an_option(value: Any, allowed: list[Any]) -> None:
    assert_invalid(lambda: choice(value, "f", allowed), "f", f"one of {allowed[0]!r}")


def test_flags_are_booleans() -> None:
    assert flag(True, "minimize") is True
    assert flag(np.bool_(False), "minimize") is False
    assert flag(np.array(True), "minimize") is True
    for value in (1, 0, 1.0, "yes", "True", None, [True], np.array([True])):
        assert_invalid(lambda value=value: flag(value, "minimize"), "minimize", "True or False")


# --- sequences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), iter([1, 2]), {1: "a", 2: "b"}.keys(), (x for x in (1, 2))],
    ids=lambda values: type(values).__name__,
)
def test_ordered_collections(values: Any) -> None:
    assert items_of(values, "xs", "numbers") == (1, 2)


@pytest.mark.parametrize(
    "values",
    ["12", b"12", bytearray(b"12"), {1, 2}, frozenset(), {1: 2}, 1, None, np.array(1.0), np.float64(1)],
    ids=repr,
)
def test_unordered_collections_and_single_values(values: Any) -> None:
    for call in (items_of, numbers):
        error = assert_invalid(
            lambda call=call: call(values, "xs", *(["numbers"] if call is items_of else [])),
            "xs",
            "a sequence of numbers",
        )
        assert str(error).endswith("; pass a list or a tuple")


def test_lists_of_numbers() -> None:
    assert numbers([1, np.float32(0.5), Fraction(1, 4)], "xs") == (1.0, 0.5, 0.25)
    assert_invalid(lambda: numbers([], "xs"), "xs", "at least one number")
    assert_invalid(lambda: numbers([1.0, math.nan], "xs"), "xs[1]", "a finite number")
    assert_invalid(lambda: numbers([1.0, True], "xs"), "xs[1]", "a finite number")
    assert_invalid(lambda: numbers([10**400], "xs"), "xs[0]", "a finite number")
    assert_invalid(lambda: numbers(np.array([[1.0]]), "xs"), "xs[0]", "a finite number")


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_normalised_weights_are_probabilities(weights: list[float]) -> None:
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    assert probabilities(shares, "p", len(shares)) == tuple(shares)


def test_invalid_probabilities() -> None:
    assert probabilities([0, 1], "p", 2) == (0.0, 1.0)
    assert probabilities([0.5, 0.5 + 9e-10], "p", 2) == (0.5, 0.5 + 9e-10)
    assert_invalid(lambda: probabilities([0.5, 0.5 + 2e-9], "p", 2), "p", "probabilities that add up to 1, not to 1.0")
    assert_invalid(lambda: probabilities([0.5, 0.4], "p", 2), "p", "add up to 1, not to 0.9")
    assert_invalid(lambda: probabilities([1.5, -0.5], "p", 2), "p[1]", "not negative")
    assert_invalid(lambda: probabilities([1.0], "p", 2), "p", "2 probabilities, one for each item")
    assert_invalid(lambda: probabilities([], "p", 0), "p", "at least one number")
    assert_invalid(lambda: probabilities([1e308, 1e308], "p", 2), "p", "add up to 1, not to inf")


def test_endless_and_huge_collections_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_invalid(lambda: items_of(range(MOST_ITEMS + 1), "xs", "numbers"), "xs", "at most 10,000,000")
    monkeypatch.setattr(validation, "MOST_ITEMS", 10)
    assert_invalid(lambda: items_of(itertools.count(), "xs", "numbers"), "xs", "a sequence of numbers, at most 10")
    assert read_items(range(10), "xs", "numbers") == tuple(range(10))


def test_types() -> None:
    assert instance(1, int, "n", "an integer") == 1
    assert_invalid(lambda: instance(1, str, "n", "a string"), "n", "a string")
    assert function(len, "f", "a function") is len
    assert function(None, "f", "a function") is None
    assert_invalid(lambda: function(1, "f", "a function"), "f", "a function, or None")
    assert text(np.str_("a"), "t") == "a"
    assert type(text(np.str_("a"), "t")) is str
    assert text("", "t") == ""
    assert_invalid(lambda: text(b"a", "t"), "t", "a string")
    assert_invalid(lambda: text("\ud800", "t"), "t", "a string of valid Unicode")
    assert mapping({1: 2}, "m", "a mapping") == {1: 2}
    assert_invalid(lambda: mapping([1], "m", "a mapping"), "m", "a mapping")


def test_messages_are_printable() -> None:
    class Wordy:
        def __repr__(self) -> str:
            return "\x1b[31m" + "x" * 1000

    assert formatted(Wordy()).startswith("\\x1b[31mxxx")
    assert len(formatted(Wordy())) < 90


# --- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (1, ()),
        ([1, 2.5], (2,)),
        ([[1, 2], [3, 4]], (2, 2)),
        ([], (0,)),
        (np.array([True, False]), (2,)),
        (np.array([1, 2], dtype=np.uint8), (2,)),
        ([Fraction(1, 2), Decimal("0.5")], (2,)),
        ([10**30, 1], (2,)),
        ([math.nan, math.inf, -math.inf], (3,)),
        (np.zeros((2, 0), dtype=object), (2, 0)),
    ],
    ids=repr,
)
def test_arrays_of_numbers(values: Any, shape: tuple[int, ...]) -> None:
    for result in (array(values, "xs"), points(values)):
        assert result.dtype == np.float64
        assert result.shape == shape
        np.testing.assert_array_equal(result.ravel(), [float(v) for v in np.asarray(values).ravel().tolist()])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("1", "its type is"),
        (["1", 2.0], "its type is"),
        (np.array(["1", 2.0], dtype=object), "it contains '1'"),
        (np.array([b"1"], dtype=object), "it contains b'1'"),
        ([1.0, None], "it contains None"),
        (None, "it contains None"),
        ([[1.0], [1.0, 2.0]], "its rows differ in length"),
        ([10**400], "too large"),
        ([1j], "its type is complex128"),
        (np.datetime64("2013-01-01"), "its type is datetime64"),
        (np.array([1], dtype="m8[s]"), "its type is timedelta64"),
        ({1.0, 2.0}, "it contains {1.0, 2.0}"),
        (..., "it contains Ellipsis"),
    ],
    ids=repr,
)
def test_what_is_no_array_of_numbers(values: Any, reason: str) -> None:
    for call, name in ((lambda: array(values, "xs"), "xs"), (lambda: points(values), "x")):
        error = assert_invalid(call, name, reason)
        assert error.rule is not None
        assert error.rule.startswith("an array of numbers (")


def test_arrays_of_doubles_are_not_copied() -> None:
    values = np.arange(3.0)
    assert array(values, "xs") is values


def test_the_first_invalid_item_is_named() -> None:
    table = np.array([[1.0, 2.0], [math.nan, -3.0]])
    check_items(table, np.full(table.shape, True), "table", "finite")
    error = assert_invalid(lambda: check_items(table, np.isfinite(table), "table", "finite"), "table[1, 0]", "finite")
    assert type(error.value) is float
    assert_invalid(lambda: check_items(np.arange(3), np.arange(3) < 2, "xs", "below 2"), "xs[2]", "below 2")
    check_items(np.zeros(0), np.zeros(0, dtype=bool), "xs", "anything")


# --- messages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.True_, True),
        (np.str_("a"), "a"),
        (np.array(2.0), 2.0),
        (Fraction(1, 2), 0.5),
        (Fraction(10**400), Fraction(10**400)),
        (np.timedelta64(1, "s"), np.timedelta64(1, "s")),
        (np.array(1, dtype="M8[s]"), np.datetime64(1, "s")),
        ("text", "text"),
        (None, None),
    ],
    ids=formatted,
)
def test_plain_values(value: Any, result: Any) -> None:
    assert plain(value) == result
    assert type(plain(value)) is type(result)


def test_plain_leaves_arrays_alone() -> None:
    values = np.zeros(1)
    assert plain(values) is values


def test_messages_have_an_owner_a_value_a_rule_and_a_hint() -> None:
    error = invalid("scale", -1, "a finite number > 0", owner="UCB1", hint="such as 1")
    assert str(error) == "UCB1: scale = -1 must be a finite number > 0; such as 1"
    assert (error.parameter, error.value, error.rule) == ("scale", -1, "a finite number > 0")
    assert str(invalid("x", "a\nb" * 1000, "short")).count("\n") == 0
    assert len(str(invalid("x", "a" * 10_000, "short"))) < 120
    assert str(invalid("x", 10**5000, "short")) == "x = a value that is too large to print must be short"


@pytest.mark.parametrize(
    "call",
    [
        lambda **more: integer("?", "x", **more),
        lambda **more: finite("?", "x", **more),
        lambda **more: positive("?", "x", **more),
        lambda **more: within("?", "x", 0.0, 1.0, **more),
        lambda **more: choice("?", "x", ["a"], **more),
        lambda **more: array("?", "x", **more),
        lambda **more: check_items(np.zeros(1), np.zeros(1, dtype=bool), "x", "?", **more),
    ],
)
def test_owner_and_hint_reach_the_message(call: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^UCB1: x.* must be .*; try 1$"):
        call(owner="UCB1", hint="try 1")


def test_a_column_is_one_row_of_finite_numbers() -> None:
    assert column([1, np.float32(2.5), True], "xs").tolist() == [1.0, 2.5, 1.0]
    assert column([-3.0, 3.0], "xs", 3.0).tolist() == [-3.0, 3.0]
    for values in ([], [[1.0]], 1.0):
        assert_invalid(lambda values=values: column(values, "xs"), "xs", "one row of at least one number")
    assert_invalid(lambda: column([0.0, math.nan], "xs"), "xs[1]", "a finite number")
    assert_invalid(lambda: column([0.0, -4.0], "xs", 3.0), "xs[1]", "a finite number within +-3")
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    assert_invalid(lambda: column(masked, "xs"), "xs", "without masked values")


def test_every_function_is_tested_here() -> None:
    own = {name for name, value in vars(validation).items() if getattr(value, "__module__", "") == validation.__name__}
    assert {name for name in own if not name.startswith("_")} <= set(globals())


def test_a_longdouble_becomes_a_float():
    """Its ``item()`` is a longdouble, which neither JSON nor compiled code takes."""
    assert type(validation.plain(np.longdouble(0.5))) is float
    assert type(validation.positive(np.longdouble(0.5), "scale")) is float
