"""Values that no one should pass, and that someone will: each is made anew for each call."""

import itertools
import math
from collections import OrderedDict, deque
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

MARK = "\N{LATIN SMALL LETTER AE}"
"""Long texts consist of it, so that a test can count how much of them a message repeats."""


def raising(*names, base=object, error=RuntimeError):
    """An instance of a class whose special methods of these names raise an error."""

    def fail(self, *args, **kwargs):
        raise error("a method of the caller's object failed")

    made = type("Raising", (base,), dict.fromkeys(names, fail))
    return made()


def containing_itself(kind):
    value = kind()
    if kind is dict:
        value["self"] = value
    else:
        value.append(value)
    return value


def deep(levels, wrap):
    value = 1.0
    for _ in range(levels):
        value = wrap(value)
    return value


class Wordy:
    """An object with a long and colourful repr."""

    def __repr__(self):
        return "\x1b[31m" + MARK * 5000 + "\n" * 50


class Lying:
    """An object that says that it is a column."""

    shape = (3,)
    dtype = "float64"
    ndim = 1
    columns = None

    def __len__(self):
        return 3


class Sevenfold(str):
    """A string that is not only a string."""

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = str.__hash__


class Endless:
    """A sequence that never ends."""

    def __iter__(self):
        return itertools.repeat(1.0)


NUMBERS = {
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "-0.0": lambda: -0.0,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2": lambda: 2,
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "5e-324": lambda: 5e-324,
    "1e-300": lambda: 1e-300,
    "1e308": lambda: 1e308,
    "-1e308": lambda: -1e308,
    "1e155": lambda: 1e155,
    "2**31": lambda: 2**31,
    "2**53": lambda: 2**53,
    "2**63": lambda: 2**63,
    "2**64": lambda: 2**64,
    "10**5000": lambda: 10**5000,
    "-10**5000": lambda: -(10**5000),
    "True": lambda: True,
    "Fraction": lambda: Fraction(1, 3),
    "huge Fraction": lambda: Fraction(10**5000, 3),
    "tiny Fraction": lambda: Fraction(1, 10**5000),
    "Decimal": lambda: Decimal("0.5"),
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "Decimal 1e9999": lambda: Decimal("1e9999"),
    "complex": lambda: 1 + 2j,
    "float16": lambda: np.float16(0.5),
    "float16 inf": lambda: np.float16("inf"),
    "float32": lambda: np.float32(1e-40),
    "longdouble": lambda: np.longdouble("1e4000"),
    "int8": lambda: np.int8(-128),
    "uint64": lambda: np.uint64(2**64 - 1),
    "np.bool": lambda: np.True_,
    "timedelta64": lambda: np.timedelta64(5, "s"),
    "timedelta64 NaT": lambda: np.timedelta64("NaT"),
    "datetime64": lambda: np.datetime64("2024-01-01"),
    "timedelta": lambda: timedelta(seconds=5),
    "timedelta.max": lambda: timedelta.max,
    "datetime": lambda: datetime(2024, 1, 1),
    "date": lambda: date(2024, 1, 1),
}
TEXTS = {
    "''": lambda: "",
    "'x'": lambda: "x",
    "digits": lambda: "9" * 5000,
    "surrogate": lambda: "\ud800",
    "nul": lambda: "a\0b",
    "escape": lambda: "\x1b[31m\n\r\N{RIGHT-TO-LEFT OVERRIDE}",
    "long text": lambda: MARK * 5000,
    "braces": lambda: "{0.__class__}%s%(x)s",
    "brackets": lambda: "[[a" * 2000,
    "odd str": lambda: Sevenfold("log"),
    "bytes": lambda: b"x",
    "long bytes": lambda: b"\xe6" * 5000,
    "bytearray": lambda: bytearray(b"x"),
    "memoryview": lambda: memoryview(b"abc"),
    "np.str_": lambda: np.str_("x"),
    "np.bytes_": lambda: np.bytes_(b"x"),
    "Path": lambda: Path("x"),
}
COLLECTIONS = {
    "[]": list,
    "()": tuple,
    "{}": dict,
    "set()": set,
    "[1.0]": lambda: [1.0],
    "[nan]": lambda: [math.nan, 1.0],
    "[None]": lambda: [None, None],
    "[[]]": lambda: [[]],
    "[[1],[1,2]]": lambda: [[1.0], [1.0, 2.0]],
    "[1e308]": lambda: [1e308, 1e308, 1e308],
    "[-1e308]": lambda: [-1e308, 1e308],
    "[5e-324]": lambda: [5e-324, 5e-324],
    "[10**5000]": lambda: [10**5000, 1.0],
    "[timedelta64]": lambda: [np.timedelta64(1, "s"), 1.0],
    "[texts]": lambda: ["a", "b"],
    "[long texts]": lambda: [MARK * 100] * 500,
    "[True]": lambda: [True, False],
    "[Decimal]": lambda: [Decimal("sNaN"), Decimal("1e9999")],
    "{1: 2}": lambda: {1: 2},
    "{'a': nan}": lambda: {"a": math.nan, "b": [1.0, 2.0]},
    "{long}": lambda: {MARK * 1000 + str(i): i for i in range(50)},
    "{None}": lambda: {None: None},
    "{1, 2}": lambda: {1.0, 2.0},
    "frozenset": lambda: frozenset([1.0, 2.0]),
    "OrderedDict": lambda: OrderedDict(a=1.0),
    "deque": lambda: deque([1.0, 2.0]),
    "list in itself": lambda: containing_itself(list),
    "dict in itself": lambda: containing_itself(dict),
    "deep list": lambda: deep(5000, lambda value: [value]),
    "deep tuple": lambda: deep(5000, lambda value: (value,)),
    "deep dict": lambda: deep(5000, lambda value: {"laws": value, "law": value}),
    "generator": lambda: (x for x in (1.0, 2.0)),
    "raising generator": lambda: (1.0 / x for x in (1.0, 0.0)),
    "iterator": lambda: iter([1.0, 2.0]),
    "map": lambda: map(float, ["x"]),
    "range": lambda: range(3),
    "range(10**9)": lambda: range(10**9),
    "range(10**30)": lambda: range(10**30),
    "count()": itertools.count,
    "endless": Endless,
}
ARRAYS = {
    "0-d": lambda: np.array(0.5),
    "0-d int": lambda: np.array(3),
    "0-d object": lambda: np.array(None, dtype=object),
    "0-d timedelta": lambda: np.array(1, dtype="m8[s]"),
    "0-d text": lambda: np.array("x"),
    "1-d": lambda: np.array([1.0, 2.0]),
    "read-only": lambda: np.broadcast_to(1.0, (5,)),
    "2-d": lambda: np.ones((2, 3)),
    "3-d": lambda: np.ones((2, 2, 2)),
    "empty": lambda: np.zeros(0),
    "empty 2-d": lambda: np.zeros((0, 3)),
    "strided": lambda: np.arange(10.0)[::-3],
    "big-endian": lambda: np.arange(3.0).astype(">f8"),
    "object": lambda: np.array([1.0, None, "x"], dtype=object),
    "object of lists": lambda: np.array([[1.0], [1.0, 2.0]], dtype=object),
    "structured": lambda: np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "recarray": lambda: np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]).view(np.recarray),
    "void": lambda: np.void(b"abc"),
    "timedelta array": lambda: np.arange(3, dtype="m8[s]"),
    "datetime array": lambda: np.arange(3).astype("M8[s]"),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "masked constant": lambda: np.ma.masked,
    "bool array": lambda: np.array([True, False]),
    "int array": lambda: np.array([1, 2, 3]),
    "complex array": lambda: np.array([1j]),
    "text array": lambda: np.array(["a", "b"]),
    "nan array": lambda: np.full(3, np.nan),
    "inf array": lambda: np.full(3, np.inf),
    "longdouble array": lambda: np.array(["1e4000"], dtype=np.longdouble),
    "float16 array": lambda: np.ones(3, dtype=np.float16),
    "frame": lambda: pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0]}),
    "empty frame": lambda: pl.DataFrame(),
    "lazy frame": lambda: pl.LazyFrame({"arm": ["a", "b"], "reward": [1.0, 2.0]}),
    "series": lambda: pl.Series("x", [1.0, 2.0]),
    "series with nulls": lambda: pl.Series("x", [1.0, None]),
    "series of texts": lambda: pl.Series("x", ["a", None]),
    "series of lists": lambda: pl.Series("x", [[1.0], [2.0, 3.0]]),
    "series of durations": lambda: pl.Series("x", [timedelta(1), None]),
    "expression": lambda: pl.col("x"),
}
OBJECTS = {
    "None": lambda: None,
    "...": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "object": object,
    "class": lambda: dict,
    "function": lambda: lambda *args, **kwargs: None,
    "raising function": lambda: lambda *args, **kwargs: 1 / 0,
    "module": lambda: math,
    "exception": lambda: ValueError("x"),
    "slice": lambda: slice(1, 2),
    "wordy": Wordy,
    "lying": Lying,
    "raising __float__": lambda: raising("__float__"),
    "raising __index__": lambda: raising("__index__", "__int__"),
    "raising __repr__": lambda: raising("__repr__", "__str__"),
    "raising __array__": lambda: raising("__array__"),
    "raising __len__": lambda: raising("__len__", "__getitem__"),
    "raising __iter__": lambda: raising("__iter__"),
    "raising __bool__": lambda: raising("__bool__"),
    "raising __hash__": lambda: raising("__hash__"),
    "raising __eq__": lambda: raising("__eq__", "__lt__", "__gt__", "__le__", "__ge__"),
    "raising __fspath__": lambda: raising("__fspath__"),
    "raising __call__": lambda: raising("__call__"),
    "raising all": lambda: raising("__float__", "__index__", "__repr__", "__array__", "__len__", "__iter__", "__eq__"),
    "raising float": lambda: raising("__float__", "__repr__", "__eq__", "__lt__", "__le__", base=float),
    "raising int": lambda: raising("__index__", "__int__", "__repr__", "__lt__", "__gt__", "__eq__", base=int),
    "raising str": lambda: raising("__repr__", "__str__", "__eq__", "__len__", base=str),
    "raising list": lambda: raising("__iter__", "__len__", "__getitem__", "__repr__", base=list),
    "raising dict": lambda: raising("__iter__", "__len__", "__getitem__", "__contains__", "keys", "items", base=dict),
    "TypeError in __float__": lambda: raising("__float__", error=TypeError),
    "MemoryError in __len__": lambda: raising("__len__", "__iter__", error=MemoryError),
}
ODD = NUMBERS | TEXTS | COLLECTIONS | ARRAYS | OBJECTS
