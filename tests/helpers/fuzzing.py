"""Damage for readers of files. ``FUZZ=50 pytest ...`` tries 50 times as many examples, other ones each time."""

import copy
import json
import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from robandit.errors import RobanditError

MORE = int(os.environ.get("FUZZ", "1"))
DEEP = 100_000
NASTY = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b'"',
    b"'",
    b'"""',
    b"\\",
    b"9" * 5000,  # more digits than Python reads
    b"0x" + b"f" * 5000,  # and these it reads, but does not print
    b"-1e999",
    b"NaN",
    b"[" * DEEP,
    b"{'a':" * 2000,
    b"(" * 300,
    b"-" * 2000,
    "\N{BRAILLE PATTERN DOTS-1}é\u2028".encode(),
    b"\xed\xa0\x80",  # half a character
    b"\\ud800",
    b"[[a]]\n",
    b"a.b = 1\n",
    b"null",
)


def more(examples):
    """Few and always the same, unless asked for more."""
    return settings(
        max_examples=examples * MORE,
        derandomize=MORE == 1,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),  # making a failure smaller takes minutes, for files of this size
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def damaged(draw, content):
    """Bytes with bits flipped, parts lost, doubled or exchanged, and things put in."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        kind = draw(st.sampled_from(["flip", "cut", "end", "double", "swap", "put", "put", "over"]))
        if kind == "flip" and data:
            data[min(start, len(data) - 1)] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[start:end]
        elif kind == "end":
            del data[end:]
        elif kind == "double":
            data[end:end] = data[start : min(end, start + 1000)]
        elif kind == "swap":
            data = data[end:] + data[start:end] + data[:start]
        elif kind == "put":
            data[start:start] = draw(st.sampled_from(NASTY) | st.binary(max_size=8))
        else:
            data[start : start + 8] = draw(st.sampled_from(NASTY) | st.binary(min_size=8, max_size=8))
    return bytes(data)


def deep(kind, levels):
    value = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"a": value}
    return value


CONSTANTS = (None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**400, -1.5, 1e308, 5e-324, float("nan"))
CONSTANTS = (*CONSTANTS, float("inf"), -float("inf"), "", "x", "\ud800", "9" * 5000, b"x")
MADE = (list, dict, lambda: [[]], lambda: [{}], lambda: {"a": 1}, lambda: [None, 1], lambda: {1: 2})
MADE = (*MADE, lambda: deep("list", 50), lambda: deep("list", 300), lambda: deep("table", 300))
anything = st.sampled_from(CONSTANTS) | st.sampled_from(MADE).map(lambda make: make()) | st.integers() | st.floats()


def as_json(data):
    """The data as a file, or something alike where no file can hold it."""
    try:
        return json.dumps(data, default=repr).encode()
    except RecursionError:
        return b'{"a":' * DEEP


@st.composite
def warped(draw, data):
    """Plain data with one to three places that hold something else, are gone, or are there twice."""
    whole = [copy.deepcopy(data)]
    for _ in range(draw(st.integers(1, 3))):
        around, key = whole, 0
        while draw(st.integers(0, 4)) and isinstance(around[key], (dict, list)) and len(around[key]):
            around = around[key]
            key = draw(st.sampled_from(list(around) if isinstance(around, dict) else range(len(around))))
        kind = draw(st.sampled_from(["value", "value", "value", "gone", "twice", "name"]))
        if kind == "value" or around is whole:
            around[key] = draw(anything)
        elif kind == "gone":
            del around[key]
        elif kind == "twice" and isinstance(around, list):
            around.insert(key, around[key])
        elif isinstance(around, dict):
            around[draw(st.sampled_from(["x", "", "\ud800", "kind", "policy"]))] = around.pop(key)
    return whole[0]


def read_or_refused(read, *args):
    """Whether it was read. Nothing but an error of ours, with a message, may be raised."""
    try:
        read(*args)
    except RobanditError as error:
        assert len(str(error)) > 10  # noqa: PT017 - that it is raised is not required
        return False
    return True
