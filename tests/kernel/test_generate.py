"""The text that the generator writes means the same as the functions, or the error names what cannot be written."""

from __future__ import annotations

import enum
import math
import math as arithmetic
from functools import partial, wraps
from math import inf, log

import numba
import numpy as np
import numpy as xp

from helpers.cases import cases
from helpers.running import imported, plain
from robandit.kernel import generate
from robandit.kernel.generate import Writer, out_of_line

SCALE = 3.0
NOTHING = None
NAN = math.nan
TABLE = np.array([[1.0, -0.0], [math.inf, 4.0]])
TUPLE = (1, 2.5, (math.inf, -math.inf), "word")
SINGLE = np.float32(math.inf)
DOUBLE = np.float64(0.1)
WORD = np.uint64(2**63 + 1)
FLAG = np.bool_(True)
i = 100.0
scale_2 = -1.0


class Setting:
    rate = 10.0
    SCALE = 5.0

    @staticmethod
    def twice(x):
        return 2.0 * x

    @staticmethod
    def thrice(x):
        """Only called through the class."""
        return Setting.twice(x) + x

    @classmethod
    def method(cls, x):
        return x


class Colour(enum.IntEnum):
    RED = 7


class Word(enum.StrEnum):
    RED = "red"


def add(x, y):
    return x + y


def times(x, y):
    return x * y


def apply(function, x, y):
    return function(x, y)


def apply_later(function, x, y):
    """Hands the function on."""
    return apply(function, x, y) + apply(times, x, y)


# -- values ------------------------------------------------------------------------------------------------------------


def test_constants_keep_their_value_and_their_kind():
    def read():
        return SCALE, NOTHING, NAN, TUPLE, SINGLE, DOUBLE, WORD, FLAG, inf, Colour.RED

    values = plain(read)()
    assert values[0:2] == (3.0, None)
    assert math.isnan(values[2])
    assert values[3] == TUPLE
    assert isinstance(values[4], np.float32)
    assert values[4] == np.inf
    assert values[5] == 0.1
    assert isinstance(values[6], np.uint64)
    assert int(values[6]) == 2**63 + 1
    assert values[7] == np.True_
    assert values[8:] == (math.inf, 7)


def test_a_constant_that_prints_itself_otherwise_is_written_as_its_value():
    def read():
        return Word.RED

    assert plain(read)() == "red"


@cases("dtype", ["bool", "int8", "uint64", "float32", "float64"])
@cases("shape", [(), (0,), (3,), (2, 3)])
def test_array_constants_keep_shape_type_and_bits(dtype, shape):
    constant = np.arange(math.prod(shape)).astype(dtype).reshape(shape)

    def read():
        return constant

    back = plain(read)()
    assert back.dtype == constant.dtype
    assert back.shape == shape
    assert back.tobytes() == constant.tobytes()


def test_array_constants_keep_signs_of_zero_and_infinities():
    def read():
        return TABLE

    assert plain(read)().tobytes() == TABLE.tobytes()


def test_constants_that_are_values_of_math_and_numpy():
    def read(x):
        return log(x) + arithmetic.sqrt(x) + xp.exp(x) + math.pi + xp.pi + abs(-x) + max(x, 0.0)

    assert plain(read)(2.0) == log(2.0) + math.sqrt(2.0) + np.exp(2.0) + 2.0 * math.pi + 4.0


def test_attributes_of_modules_and_classes(tmp_path):
    helper = imported(
        tmp_path, "LEVEL = 4.0\nclass Inner:\n    DEPTH = 2.0\ndef half(x):\n    return x / Inner.DEPTH\n"
    )

    def read(x):
        return helper.LEVEL + helper.Inner.DEPTH + helper.half(x) + Setting.rate + Setting.thrice(x)

    assert plain(read)(8.0) == read(8.0) == 44.0


# -- names -------------------------------------------------------------------------------------------------------------


def test_the_same_name_in_two_modules_stays_two_things(tmp_path):
    one = imported(tmp_path, "SCALE = 10.0\ndef helper(x):\n    return x + SCALE\n")
    two = imported(tmp_path, "SCALE = 20.0\ndef helper(x):\n    return x * SCALE\n")

    def both(x):
        return one.helper(x), two.helper(x), SCALE, one.SCALE, two.SCALE, Setting.SCALE

    assert plain(both)(1.0) == (11.0, 20.0, 3.0, 10.0, 20.0, 5.0)


def test_a_variable_does_not_hide_a_constant_of_the_same_last_name():
    def product(rate):
        return Setting.rate * rate

    def assigned(x):
        rate = x + 1.0
        return Setting.rate * rate

    def shadowed(SCALE, scale_2):
        return Setting.SCALE * SCALE + scale_2

    assert plain(product)(3.0) == 30.0
    assert plain(assigned)(2.0) == 30.0
    assert plain(shadowed)(2.0, 0.5) == 10.5


def test_a_variable_does_not_hide_a_function_a_module_or_a_builtin(tmp_path):
    helper = imported(tmp_path, "largest = max\ndef mean(x, y):\n    return (x + y) / 2.0\n")

    def averaged(x):
        mean = helper.mean(x, 1.0)
        return mean  # noqa: RET504

    def rooted(np, math):
        return xp.sqrt(np) + arithmetic.sqrt(math)

    def greatest(max):
        return helper.largest(max, 1.0)

    assert plain(averaged)(3.0) == 2.0
    assert plain(rooted)(4.0, 9.0) == 5.0
    assert plain(greatest)(7.0) == 7.0


def test_a_function_called_like_a_builtin_or_like_the_writers_own_names(tmp_path):
    helper = imported(
        tmp_path,
        "OPTIONS = 2.0\nnjit = 3.0\nnamedtuple = 5.0\n"
        "def max(x):\n    return -x\ndef np(x):\n    return max(x) * OPTIONS * njit * namedtuple\n",
    )
    assert plain(helper.np)(1.0) == -30.0


def test_loop_variables_hide_globals():
    def loop(n):
        total = 0.0
        for i in range(n):
            total += i
        return total

    assert plain(loop)(4) == 6.0


def test_a_deleted_name_is_a_variable():
    def deleting(x):
        y = x
        del y
        y = 2.0 * x
        return y + 0.0

    assert plain(deleting)(2.0) == 4.0


def test_annotated_assignments_docstrings_and_annotations_are_dropped():
    def annotated(x: Undefined) -> Undefined:  # noqa: F821
        """A docstring."""
        y: Undefined = x  # noqa: F821
        z: Undefined  # noqa: F821
        z = y + 1.0
        return z

    def nothing():
        """Only a docstring."""

    assert plain(annotated)(1.0) == 2.0
    assert plain(nothing)() is None


def test_defaults_are_the_values_of_the_definition_not_of_today(tmp_path):
    module = imported(tmp_path, "K = 2.0\ndef f(x, k=K, name='a'):\n    return x * k\nK = 5.0\n")
    assert plain(module.f)(1.0) == 2.0

    def call(x):
        return module.f(x) + module.f(x, 3.0) + module.f(x, k=4.0)

    assert plain(call)(1.0) == 9.0


def test_positional_only_parameters():
    def f(x, /, y):
        return x - y

    assert plain(f)(3.0, 1.0) == 2.0


def test_odd_indentation_inside_a_method(tmp_path):
    module = imported(
        tmp_path,
        "class A:\n    @staticmethod\n    def f(x):\n        '''Text\nat the margin.\n'''\n# so is this\n        return x + 1.0\n",
    )
    assert plain(module.A.f)(1.0) == 2.0


def test_recursion():
    assert plain(factorial)(5) == 120


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


# -- functions as arguments --------------------------------------------------------------------------------------------


def test_functions_as_arguments_are_bound():
    def once(x, y):
        return apply(add, x, y), apply(times, x, y), apply_later(add, x, y)

    writer = Writer()
    writer.function(once)
    assert writer.text().count("def apply") == 3  # two copies of `apply`, one of `apply_later`
    assert plain(once)(2.0, 5.0) == (7.0, 10.0, 17.0)


def test_functions_as_keyword_arguments_keep_the_other_arguments():
    def by_keyword(x):
        return apply(x=x, function=add, y=1.0) + apply(times, x, y=10.0)

    assert plain(by_keyword)(2.0) == 23.0


def scaled(function, x, y, factor=1.0):
    return factor * function(x, y)


def test_keywords_beside_a_bound_function_are_not_lost():
    def call(x):
        return scaled(add, x, 1.0, factor=10.0)

    assert plain(call)(2.0) == 30.0


sum_of = partial(apply, add)
nested = partial(apply_later, partial(apply, add))


def test_partials_bind():
    def call(x):
        return sum_of(x, 1.0) + nested(x, 1.0)

    assert plain(partial(apply, add))(1.0, 2.0) == 3.0
    assert plain(partial(apply, partial(apply, times)))(3.0, 2.0) == 6.0
    assert plain(call)(2.0) == 3.0 + (3.0 + 2.0)


def test_jitted_functions_and_static_methods_are_taken_as_their_plain_functions():
    jitted = numba.njit(add)
    jitted_apply = numba.njit(apply)

    def call(x):
        return jitted(x, 1.0) + apply(jitted, x, 1.0) + jitted_apply(add, x, 1.0)

    assert plain(call)(1.0) == 6.0
    assert plain(partial(apply, staticmethod(times)))(3.0, 2.0) == 6.0


def test_a_decorated_function_is_what_the_decorator_made():
    def doubled(function):
        @wraps(function)
        def inner(x):
            return 2.0 * function(x)

        return inner

    @doubled
    def one(x):
        return x + 1.0

    assert plain(one)(1.0) == one(1.0) == 4.0


def test_rare_functions_are_not_inlined():
    @out_of_line
    def rare(x):
        return x

    def hot(x):
        return rare(x)

    writer = Writer()
    writer.function(hot)
    assert "@_called\ndef rare(" in writer.text()
    assert "@_inlined\ndef hot(" in writer.text()


# -- functions that were written before -----------------------------------------------------------------------------------


def text_of(*entries):
    writer = Writer()
    for entry in entries:
        writer.function(entry)
    return writer.text()


def one_more(x):
    return SCALE * add(x, 1.0)


def several(x):
    return one_more(x) + times(x, SCALE)


def test_a_function_of_several_texts_is_rewritten_once(monkeypatch):
    generate._written.clear()
    once = text_of(several), text_of(one_more)
    monkeypatch.setattr(generate, "Rewriter", None)
    assert (text_of(several), text_of(one_more)) == once


def test_texts_do_not_depend_on_what_was_written_before():
    """The names in a text depend on the rest of it: here there are two functions `add` and two constants."""

    def elsewhere():
        SCALE = 1.0

        def add(x):
            return SCALE * x

        return add

    texts = [(elsewhere(), several), (one_more, elsewhere()), (several,)]
    alone = []
    for entries in texts:
        generate._written.clear()
        alone.append(text_of(*entries))
    assert [text_of(*entries) for entries in texts] == alone
    assert [text_of(*entries) for entries in reversed(texts)] == alone[::-1]
    assert "add_2" in alone[0]
    assert "add_2" not in alone[2]


def test_a_value_that_changed_since_is_written_anew(monkeypatch):
    assert "SCALE = 3.0" in text_of(several)
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert "SCALE = 4.0" in text_of(several)
    assert "SCALE = 3.0" not in text_of(several)
