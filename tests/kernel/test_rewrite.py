"""What a hook may not hold or read: the error names it, and the way out."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np
import pytest
import scipy.special

from helpers.cases import cases
from helpers.running import plain
from kernel.test_generate import Setting, add, apply
from robandit.errors import KernelError

SETTINGS = {"a": 1.0}
THING = object()
LARGE = np.zeros(200_000)
cached = partial(apply, function=add)


def reads_dict(x):
    return SETTINGS["a"]


def reads_object(x):
    return THING


def reads_class(x):
    return Setting


def reads_method(x):
    return Setting.method(x)


def reads_nothing(x):
    return undefined_name  # noqa: F821


def reads_missing_attribute(x):
    return arithmetic_helpers.missing


def reads_scipy(x):
    return scipy.special.gammaln(x)


def reads_complex(x):
    return COMPLEX


def reads_long_double(x):
    return LONG


def reads_large(x):
    return LARGE[0]


def reads_random(x):
    return np.random.random()  # noqa: NPY002


def inner_function(x):
    def inside():
        return x

    return inside()


def with_lambda(x):
    return (lambda: x)()


def with_star(*x):
    return x


def with_keyword_only(*, x):
    return x


def with_global(x):
    global SCALE
    SCALE = x
    return SCALE


def with_attribute_assignment(x):
    Setting.rate = x
    return Setting.rate


def with_import(x):
    import math

    return math.sqrt(x)


def with_comprehension(x):
    return sum([i + x for i in range(3)])


def with_generator(x):
    return sum(i for i in range(3))


def with_match(x):
    match x:
        case i:
            return i


def with_yield(x):
    yield x


async def asynchronous(x):
    return x


def with_starred_call(x):
    return apply(*(add, x, x)) + apply(add, *(x, x))


def with_bound_keyword(x):
    return cached(x=x, y=x)


def with_function_default(x, function=add):
    return function(x, x)


COMPLEX = np.complex128(1j)
LONG = np.longdouble("0.1")
arithmetic_helpers = numba.extending


@cases(
    ("function", "words"),
    [
        (reads_dict, "reads_dict reads SETTINGS, which is a dict: compiled code may read numbers"),
        (reads_object, "reads_object reads THING, which is a object"),
        (reads_class, "reads Setting, which is a type"),
        (reads_method, "reads Setting.method, which is a method"),
        (reads_nothing, "reads undefined_name, which is not defined"),
        (reads_missing_attribute, "reads arithmetic_helpers.missing, which is not defined"),
        (reads_scipy, "reads scipy.special.gammaln, which is a ufunc"),
        (reads_complex, "reads COMPLEX, which is a complex128"),
        (reads_long_double, "reads LONG, which is a longdouble"),
        (reads_large, "array of 1600000 bytes, too large for a constant .pass it in the state"),
        (reads_random, "draw with robandit.kernel.random"),
        (inner_function, "inner_function cannot be compiled: it defines the inner function inside"),
        (with_lambda, "it contains a lambda; write a separate function with 'def'"),
        (with_star, r"it takes \* or keyword-only arguments"),
        (with_keyword_only, r"it takes \* or keyword-only arguments"),
        (with_global, "assigns a global variable; keep it in the state"),
        (with_attribute_assignment, "assigns Setting.rate; keep it in the state"),
        (with_import, "import at the top of the file"),
        (with_comprehension, "write a loop over arrays made in init"),
        (with_generator, "write a loop over arrays made in init"),
        (with_match, "write if and elif"),
        (with_yield, "is a generator"),
        (asynchronous, "is a function made with 'def'"),
        (with_starred_call, r"has functions next to \* or \*\*"),
        (with_bound_keyword, "binds function by keyword"),
        (with_function_default, "has a function as default of function"),
        (lambda x: x, "is a function made with 'def'"),
        (math.sqrt, "is a function made with 'def'"),
        (3.0, "3.0 cannot be compiled"),
        (partial(apply, 2.0), "2.0 cannot be compiled"),
    ],
)
def test_rejected_by_name(function: Any, words: str):
    with pytest.raises(KernelError, match=words):
        plain(function)


def test_a_closure_over_a_name_that_has_no_value_yet():
    def early(x):
        return x * later

    with pytest.raises(KernelError, match="reads later, which is not defined"):
        plain(early)
    later = 2.0
    assert plain(early)(3.0) == 6.0
