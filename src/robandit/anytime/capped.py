"""Evidence on capped means that may be looked at after every reward.

With a cap that is declared in advance, Y = min(X, cap) / cap lies between 0 and 1, and theta is one of 1/2, 1/4, ..., 1/256:

    up(m)   = mean over theta of prod (1 + theta (Y/m - 1))          is evidence against "the mean of Y is at most m",
    down(m) = mean over theta of prod (1 - theta (Y - m)/(1 - m))    is evidence against "the mean of Y is at least m".

Both are e-processes: under their hypothesis, P(it ever reaches 1/alpha) <= alpha (Ville), whatever the law of Y, and however the
arms are chosen. Evidence that the mean of arm b is below that of arm a is the minimum over adjacent levels m: up of a at the upper
one times down of b at the lower one. Without a cap there is no such evidence (Bahadur and Savage 1956).

The rewards are not kept. Each is split between the two `EDGES` next to it, with the same mean. The logarithm of a factor is concave
in Y, so its sum over the split rewards is at most the exact one, and the evidence stays valid. It loses little: 0.04 of 175 for
10,000 rewards per arm, where rounding costs 14.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from robandit.kernel.types import Floats

THETA = 2.0 ** -np.arange(1.0, 9.0)
EDGES = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 201)])
"""Where rewards are counted, as shares of the cap: 202 numbers per arm, or 1.6 kB."""
LEVELS = np.geomspace(0.005, 1.0, 301)[:-1]
"""Means at which arms are compared, as shares of the cap. Means that differ by less than their ratio (1.8 %) stay undecided."""


def log_up(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return log up(m) at each level, for values that occur ``weights`` times.

    >>> values = np.array([0.1, 0.2, 0.05, 0.9, 0.3])
    >>> log_up(values, np.ones(5), np.array([0.05, 0.2])).round(10).tolist()
    [3.0419250527, 0.195409989]
    """
    return _mixed(_up(values, levels) @ weights)


def log_down(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return log down(m) at each level.

    >>> values = np.array([0.1, 0.2, 0.05, 0.9, 0.3])
    >>> log_down(values, np.ones(5), np.array([0.5, 0.9])).round(10).tolist()
    [0.2093778127, 4.2506990309]
    """
    return _mixed(_down(values, levels) @ weights)


def log_lower(lower: Floats, higher: Floats) -> Floats:
    """Return the log evidence that one arm has a lower capped mean than another, from their weights at `EDGES`.

    Both have one row per pair of arms, or one row for all pairs.
    """
    up, down = _tables()
    above, below = _mixed(up @ higher.T), _mixed(down @ lower.T)
    between: Floats = (above[1:] + below[:-1]).min(axis=0)
    found: Floats = np.minimum(np.minimum(above[0], below[-1]), between)
    return found


def _up(values: Floats, levels: Floats) -> Floats:
    """Return the logarithm of each factor, by theta, level and value."""
    found: Floats = np.log1p(THETA[:, None, None] * (values / levels[:, None] - 1.0))
    return found


def _down(values: Floats, levels: Floats) -> Floats:
    m = levels[:, None]
    found: Floats = np.log1p(-THETA[:, None, None] * (values - m) / (1.0 - m))
    return found


@cache
def _tables() -> tuple[Floats, Floats]:
    """Return the factors at all edges: 8 MB, made at the first look."""
    return _up(EDGES, LEVELS), _down(EDGES, LEVELS)


def _mixed(logs: Floats) -> Floats:
    """Return the logarithm of the mean over theta, the first axis."""
    top = logs.max(axis=0)
    found: Floats = top + np.log(np.exp(logs - top).mean(axis=0))
    return found
