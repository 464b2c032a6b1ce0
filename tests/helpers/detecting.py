"""Compiled loops over the drift detector, for many streams at once."""

from functools import cache

import numpy as np

from robandit.drift import detector
from robandit.kernel import compiled


def first_alarms(d, streams, temper, at):
    """Fill in the position of each stream's first alarm, or its length; ``temper`` = 0 leaves bets as they are."""
    for i in range(streams.shape[0]):
        for j in range(d.shape[1]):
            d[0, j] = 0.0
        at[i] = streams.shape[1]
        for t in range(streams.shape[1]):
            power = 1.0 / detector.tempered(d, 0) if temper != 0 else 1.0
            if detector.step(d, 0, streams[i, t], np.uint64(1000 + i), power) >= 1.0 / detector.DELTA:
                at[i] = t
                break


def all_ranks(d, streams, broken, out):
    """Fill in the ranks of all rewards, a segment per stream; ``broken`` = 0 leaves ties unbroken."""
    for i in range(streams.shape[0]):
        for j in range(d.shape[1]):
            d[0, j] = 0.0
        for t in range(streams.shape[1]):
            number = np.uint64(i * streams.shape[1] + t)
            v = detector.inner_uniform(detector.mixed(detector.GOLDEN * (np.uint64(2) * number + np.uint64(1))))
            theta = detector.inner_uniform(detector.mixed(detector.GOLDEN * (np.uint64(2) * number + np.uint64(2))))
            out[i, t] = detector.rank(d[0], streams[i, t], v if broken != 0 else 0.5, theta)


def one_by_one(d, arm, x, salt):
    return detector.watch(d, arm, x, salt)


@cache
def _entry(function, *like):
    args = {"streams": np.zeros((1, 1)), "int": 0, "ints": np.zeros(1, np.int64), "float": 0.0, "salt": np.uint64(0)}
    return compiled(function, label="drift detector (test)", args=(np.zeros((1, 1)), *(args[each] for each in like)))


def alarms(streams, temper=True):
    """The position of each stream's first alarm, or its length if there is none."""
    at = np.zeros(len(streams), np.int64)
    entry = _entry(first_alarms, "streams", "int", "ints")
    entry(detector.new_state(1), np.ascontiguousarray(streams), int(temper), at)
    return at


def ranks(streams, ties_broken=True):
    out = np.zeros(streams.shape)
    _entry(all_ranks, "streams", "int", "streams")(detector.new_state(1), streams, int(ties_broken), out)
    return out


def watch(d, arm, x, salt):
    """`detector.watch`, compiled."""
    return _entry(one_by_one, "int", "float", "salt")(d, arm, float(x), np.uint64(salt))
