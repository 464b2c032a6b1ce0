"""What two kernels have in common is compiled once, and only that."""

from __future__ import annotations

import sys
from collections import namedtuple
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from helpers.running import imported, run
from robandit.kernel import build, cache, compiled
from robandit.kernel.build import flat
from robandit.kernel.generate import out_of_line

SCALE = 3.0


@out_of_line
def rare(x):
    return x * SCALE


def helper(x):
    return rare(x) + 1.0


def first(x):
    return helper(x)


def second(x):
    return -helper(x)


def module_of(entry: Any, *args: Any) -> Any:
    """The module in which the entry is compiled."""
    return cache._assembled(build.kernel_of(entry, args))


def test_a_helper_of_two_entries_is_one_function(as_new_process, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))
    one, two = module_of(first, 1.0), module_of(second, 1.0)
    assert one is not two
    assert one.helper is two.helper
    assert one.rare is two.rare
    assert compiled(first, label="first", args=(1.0,))(2.0) == 7.0
    assert compiled(second, label="second", args=(1.0,))(2.0) == -7.0
    assert len(one.helper.overloads) == 1


class Point(NamedTuple):
    x: float
    y: float


@out_of_line
def square(point):
    return point.x * point.x + point.y * point.y


def right(x):
    return square(Point(x, y=1.0))


def above(x):
    return square(Point(x=1.0, y=x)) + 1.0


def test_a_record_that_two_entries_make_is_one_class(as_new_process, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))
    one, two = module_of(right, 1.0), module_of(above, 1.0)
    assert one.Point is two.Point
    assert compiled(right, label="right", args=(1.0,))(2.0) == right(2.0) == 5.0
    assert compiled(above, label="above", args=(1.0,))(2.0) == above(2.0) == 6.0
    assert one.square is two.square
    assert len(one.square.overloads) == 1


def test_two_labels_are_one_kernel(as_new_process):
    assert compiled(first, label="one", args=(1.0,)) is compiled(first, label="two", args=(1.0,))


def test_the_same_text_from_two_places_is_one_kernel(tmp_path, as_new_process):
    text = "def hook(x):\n    return x\n"
    one, two = (compiled(imported(tmp_path, text).hook, label=label, args=(1.0,)) for label in ("one", "two"))
    assert one is two


def test_an_entry_is_never_shared(as_new_process):
    # The one of two signatures would be stored in the file of the other.
    one, two = module_of(first, 1.0), module_of(first, 1)
    assert one.helper is two.helper
    assert one.first_entry is not two.first_entry


@pytest.mark.parametrize("changed", ["SCALE = 2.0", "SCALE = 3", "def rare(x):\n    return x + SCALE"])
def test_what_reads_something_else_is_another_function(changed, tmp_path, as_new_process):
    text = "SCALE = 3.0\ndef rare(x):\n    return x * SCALE\ndef helper(x):\n    return rare(x) + 1.0\n"
    other = f"def same(x):\n    return x\n{text}{changed}\ndef first(x):\n    return same(helper(x))\n"
    same = "def same(x):\n    return x\ndef first(x):\n    return -same(x)\n"
    one = module_of(imported(tmp_path, text + same.replace("-same(x)", "same(helper(x))")).first, 1.0)
    two = module_of(imported(tmp_path, other).first, 1.0)
    three = module_of(imported(tmp_path, same).first, 1.0)
    assert one.helper is not two.helper
    assert one.rare is not two.rare
    assert one.same is two.same is three.same


def sooner(x):
    return helper(x) + 1.0


def call(function, x):
    return function(x)


def through(function, x):
    return call(function, x)


def test_what_is_bound_is_part_of_a_function(as_new_process):
    entries = [partial(through, helper), partial(through, sooner), partial(through, helper)]
    one, two, three = (module_of(entry, 1.0) for entry in entries)
    assert one.helper is two.helper
    assert one.call is not two.call
    assert one.call is three.call
    assert [compiled(e, label="a call", args=(1.0,))(1.0) for e in entries] == [4.0, 5.0, 4.0]


def hidden(helper):
    return rare(helper)


def test_a_name_that_a_variable_hides_does_not_count(as_new_process):
    def entry(x):
        return helper(hidden(x))

    def other(x):
        return hidden(x)

    assert module_of(entry, 1.0).hidden is module_of(other, 1.0).hidden


def factorial(n):
    return 1.0 if n <= 1.0 else n * factorial(n - 1.0)


def test_an_entry_that_calls_itself(as_new_process):
    assert compiled(factorial, label="itself", args=(1.0,))(5.0) == 120.0


def test_an_entry_whose_variables_have_the_names_of_the_text(as_new_process):
    def entry(p, s, first_entry, np_entry):
        float = p.level
        int, Record_s, s_a, p_numbers = 1.0, 10.0, 100.0, 1000.0
        first_entry += 10000.0
        return float + int + Record_s + s_a + p_numbers + s.a[0] + p.count + first_entry + np_entry

    p = namedtuple("P", "level count")(0.5, 7)
    s = namedtuple("S", "a")(np.array([0.25]))
    args = (p, s, 3.0, 1e6)
    assert compiled(entry, label="names", args=args)(*flat(args)) == entry(*args) == 1011121.75


@out_of_line
def difference(s):
    return s.a[0] - s.b[0]


def test_records_of_the_same_types_and_other_fields(as_new_process):
    def entry(s):
        return difference(s)

    results = []
    for fields in ("a b", "b a"):
        record = namedtuple("Record", fields)(np.array([1.0]), np.array([5.0]))
        results.append(compiled(entry, label="records", args=(record,))(*flat((record,))))
    assert results == [-4.0, 4.0]


MAIN = """
import sys
import hooks
from robandit.kernel import compiled

for name in sys.argv[1:]:
    kernel = compiled(getattr(hooks, name), label=name, args=(1.0,))
    print(kernel(10.0))
"""

HOOKS = """
from robandit.kernel.generate import out_of_line

@out_of_line
def rare(x):
    if x < 0.0:
        raise ValueError("below zero")
    return x * 3.0

def helper(x):
    return rare(x) + 1.0

def first(x):
    return helper(x)

def second(x):
    return -helper(x)
"""


def test_stored_code_does_not_need_the_kernel_that_it_shares_with(tmp_path):
    """The second entry is stored with functions of the first one's module; that may be absent, gone, or made anew."""
    (tmp_path / "hooks.py").write_text(HOOKS, encoding="utf-8")
    (tmp_path / "main.py").write_text(MAIN, encoding="utf-8")
    store = tmp_path / "cache"

    def outcome(*names: str) -> tuple[list[str], int]:
        out, err = run(tmp_path / "main.py", *names, cache=store, folder=tmp_path)
        return out.splitlines(), err.count("compiling")

    assert outcome("first", "second") == (["31.0", "-31.0"], 2)
    assert outcome("second") == (["-31.0"], 0)
    assert outcome("second", "first") == (["-31.0", "31.0"], 0)
    for path in store.glob("first_*"):
        path.unlink()
    assert outcome("second", "first", "second") == (["-31.0", "31.0", "-31.0"], 1)
    assert outcome("first", "second") == (["31.0", "-31.0"], 0)


def test_only_kernels_are_found_empty():
    assert cache._Homes().find_spec("robandit_of_someone_else", None) is None
    assert "_robandit_nobody" not in sys.modules
