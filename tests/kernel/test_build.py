"""Compiled entries: records, types of arguments, and the errors of Numba."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy as xp
import pytest

from kernel.test_generate import SCALE, SINGLE, TABLE, TUPLE, WORD, Colour, Setting, add, times
from robandit.errors import KernelError
from robandit.kernel import compiled
from robandit.kernel.build import bounds_checked, flat, kernel_of, numbers


class Params(NamedTuple):
    rate: float
    steps: int
    flag: bool


class State(NamedTuple):
    sums: Any
    counts: Any


def entry(function, p, s, p_rate, entry):
    """Parameter names that clash with the entry itself and with a flattened field."""
    if p.flag:
        s.counts[0] += p.steps
    s.sums[0] += function(p.rate, SCALE)
    return p_rate + entry + s.sums.shape[0] // 2


def test_records_arrive_in_compiled_code():
    p, s = Params(2.5, 3, True), State(np.zeros(5), np.zeros(1, dtype=np.int64))
    args = (p, s, 0.5, 10)
    kernel = compiled(partial(entry, times), label="records", args=args)
    assert kernel(*flat(args)) == 12.5
    assert s.sums[0] == 7.5
    assert s.counts[0] == 3


def test_compiled_constants_equal_the_plain_ones():
    def read(x):
        return (
            TUPLE[2][1] + x,
            SINGLE,
            TABLE[1, 1] * x,
            WORD,
            Colour.RED + Setting.rate,
            math.copysign(1.0, TABLE[0, 1]),
        )

    got = compiled(read, label="constants", args=(1.0,))(1.0)
    assert got == (-math.inf, math.inf, 4.0, 2**63 + 1, 17.0, -1.0)


def test_an_aliased_name_compiles():
    def clash(rate, np, mean):
        return Setting.rate * rate + xp.sqrt(np) + mean + Setting.twice(mean)

    assert compiled(clash, label="clash", args=(1.0, 1.0, 1.0))(3.0, 4.0, 1.0) == 35.0


def test_allocation_while_running_is_rejected_with_the_way_out():
    def allocating(x):
        return np.zeros(3)[0] + x

    with pytest.raises(KernelError, match=r"memory cannot be compiled: a hook allocates memory .* allocate in init"):
        compiled(allocating, label="memory", args=(1.0,))


def test_an_error_of_numba_is_a_kernel_error():
    def wrong(x):
        return x + "text"

    with pytest.raises(KernelError, match="wrong cannot be compiled: "):
        compiled(wrong, label="wrong", args=(1.0,))


def test_records_that_cannot_be_taken_apart_are_rejected():
    class Mixed(NamedTuple):
        number: float
        array: Any

    class Empty(NamedTuple):
        pass

    def first(record):
        return record[0]

    for record, words in [
        (Mixed(1.0, np.zeros(1)), "mixes kinds"),
        (Empty(), "at least one field"),
        ((1.0, 2.0), "must be a NamedTuple"),
    ]:
        with pytest.raises(KernelError, match=words):
            compiled(first, label="record", args=(record,))


def test_a_wrong_number_of_arguments_is_reported():
    with pytest.raises(KernelError, match=r"add takes 2 arguments \(x, y\), but 1 are passed"):
        compiled(add, label="count", args=(1.0,))


def test_an_integer_that_a_double_cannot_hold_is_rejected():
    assert numbers((2**53, 1.5)).tolist() == [2.0**53, 1.5]
    with pytest.raises(KernelError, match=r"9007199254740993 .* too large an integer"):
        numbers((2**53 + 1, 1.5))


def test_layouts_are_kernels_of_their_own():
    def corner(a):
        return a[0, 1]

    base = np.arange(12.0).reshape(3, 4)
    for array in (base, np.asfortranarray(base), base[:, ::2]):
        assert compiled(corner, label="layout", args=(array,))(array) == array[0, 1]


def test_a_very_long_label():
    assert compiled(add, label="long " * 100, args=(1.0, 1.0))(1.0, 2.0) == 3.0


def test_a_call_with_another_kind_of_array_is_an_error_not_a_second_compilation():
    def first(a):
        return a[0]

    array = np.arange(4.0)
    kernel = compiled(first, label="one signature", args=(array,))
    for other in (array[::2], array.astype(np.float32), array.reshape(2, 2)):
        with pytest.raises(TypeError, match="No matching definition"):
            kernel(other)
    assert len(kernel.overloads) == 1


def beyond(x, place):
    return x[place]


@bounds_checked
def checked_beyond(x, place):
    return beyond(x, place)


def test_an_entry_may_check_its_indices():
    """Its kernel has another name, and shares no parts with kernels that do not check."""
    args = (np.ones(2), 0)
    entry = compiled(checked_beyond, label="checked", args=args)
    assert entry(np.ones(2), -2) == 1.0
    for place in (2, -3, 10**12):
        with pytest.raises(IndexError):
            entry(np.ones(2), place)
    kernels = [kernel_of(function, args) for function in (checked_beyond, beyond)]
    assert [kernel.checked for kernel in kernels] == [True, False]
    assert not set(kernels[0].parts.values()) & set(kernels[1].parts.values())
    other = replace(kernels[0], checked=False)
    assert kernels[0].fits()
    assert not other.fits()
