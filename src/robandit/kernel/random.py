"""Random numbers inside compiled code: xoshiro256++ on four words of state.

``numpy.random.Generator`` is not used because passing one to a compiled function costs about 10 us per call, a kernel cannot hold
one per arm, and NumPy does not promise the same numbers in its next version. A stream here is a row of four ``uint64``, stored in a
policy's state or in an ``(arms, 4)`` table. Each function takes the row and advances it, compiled or not, with the same numbers.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from robandit.kernel.types import UInts

__all__ = ["GOLDEN", "exponential", "gamma", "hashed", "mixed", "normal", "streams", "uniform"]

# Constants of SplitMix64: the increment, and the constants of the output function.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MIX = np.uint64(0x94D049BB133111EB)


def streams(seed: np.random.SeedSequence, count: int) -> UInts:
    """Return the first ``count`` independent streams of a seed, one row per stream. A larger count only adds rows."""
    words: UInts = seed.generate_state(4 * count, np.uint64).astype(np.uint64)
    return words.reshape(count, 4)


def next_word(rng: UInts) -> np.uint64:
    """Return 64 random bits (Blackman and Vigna 2019, xoshiro256++)."""
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    mixed = s0 + s3
    word: np.uint64 = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    return word


def uniform(rng: UInts) -> float:
    """Return a multiple of 2^-53 in (0, 1]. It is never 0, so that its logarithm is finite."""
    return (float(next_word(rng) >> np.uint64(11)) + 1.0) * 2.0**-53


def exponential(rng: UInts) -> float:
    """Return a standard exponential variable."""
    return -math.log(uniform(rng))


def normal(rng: UInts) -> float:
    """Return a standard normal variable (Box and Muller). The second value is discarded, so that calls share no state."""
    radius = math.sqrt(-2.0 * math.log(uniform(rng)))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


def gamma(shape: float, rng: UInts) -> float:
    """Return a gamma variable with this shape and scale 1 (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(rng) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    if not 0.0 < d < math.inf:  # no number would be accepted
        return math.nan
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z = normal(rng)
        root = 1.0 + c * z
        v = root * (root * root)  # not root ** 3, which Python computes by pow and compiled code by products
        if v > 0.0 and math.log(uniform(rng)) < 0.5 * z * z + d - d * v + d * math.log(v):
            return boost * d * v


def mixed(z: np.uint64) -> np.uint64:
    """Return the hash of 64 bits by SplitMix64's output function, which is injective."""
    z = (z ^ (z >> np.uint64(30))) * FIRST_MIX
    z = (z ^ (z >> np.uint64(27))) * SECOND_MIX
    return z ^ (z >> np.uint64(31))


def hashed(number: UInts) -> UInts:
    """Return a 64-bit hash of each number of an array (SplitMix64). Different numbers have different hashes."""
    with np.errstate(over="ignore"):
        return cast("UInts", mixed(cast("np.uint64", number * GOLDEN)))
