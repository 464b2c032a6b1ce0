"""Entries that run as plain Python: they take flat arguments, do not warn, and leave arrays as they were if they raise."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from robandit.kernel import compiled
from robandit.kernel.build import flat
from robandit.kernel.interpreted import interpreted


class Params(NamedTuple):
    rate: float
    steps: int
    on: bool


class State(NamedTuple):
    sums: np.ndarray
    counts: np.ndarray


def scaled(p, x):
    return p.rate * x


def learn(scale, p, s, arm, x):
    """Write, then take a logarithm."""
    s.counts[arm] += p.steps + p.on
    s.sums[arm] += scale(p, x)
    return math.log(x) / s.sums[1]


ENTRY = partial(learn, scaled)


def args(rate=0.5):
    return Params(rate, 3, True), State(np.zeros(2), np.zeros(2, dtype=np.int64)), 0, 1.0


def test_it_is_called_like_the_compiled_entry():
    example = args()
    functions = [compiled(ENTRY, label="learn", args=example), interpreted(ENTRY, args=example)]
    given = [args(), args()]
    for x in (2.5, 7.25):
        results = [function(*flat(each[:2]), 1, x) for function, each in zip(functions, given, strict=True)]
        assert results[0] == results[1]
    for one, other in zip(given[0][1], given[1][1], strict=True):
        assert one.tobytes() == other.tobytes()
    assert given[0][1].counts.tolist() == [0, 8]


def test_divisions_by_zero_do_not_warn():
    """Warnings are errors in this test run."""
    p, state, _, _ = args()
    state.sums[0] = -0.75
    assert interpreted(ENTRY, args=args())(*flat((p, state)), 0, 1.5) == math.inf


@pytest.mark.parametrize(("x", "error"), [(0.0, ValueError), (None, TypeError)], ids=repr)
def test_an_error_restores_the_arrays(x, error):
    p, state, _, _ = args()
    state.counts[:] = 5
    with pytest.raises(error):
        interpreted(ENTRY, args=args())(*flat((p, state)), 0, x)
    assert state.counts.tolist() == [5, 5]
    assert state.sums.tolist() == [0.0, 0.0]


def interrupted(s):
    s.sums[0] = 1.0
    raise KeyboardInterrupt


def test_an_interrupt_restores_the_arrays():
    state = args()[1]
    with pytest.raises(KeyboardInterrupt):
        interpreted(interrupted, args=(state,))(*state)
    assert state.sums.tolist() == [0.0, 0.0]


def total(x):
    return x.sum()


def test_arrays_that_cannot_be_written_are_accepted():
    x = np.arange(3.0)
    x.flags.writeable = False
    assert interpreted(total, args=(x,))(x) == 3.0
