"""The random streams: xoshiro256++ word for word, and laws within the tolerance that their sample size allows."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats

from helpers.running import plain
from robandit.kernel import compiled
from robandit.kernel.random import exponential, gamma, next_word, normal, streams, uniform

SIZE = 100_000
LEVEL = 1e-6
# Dvoretzky, Kiefer, Wolfowitz with Massart's constant: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2).
TOLERANCE = math.sqrt(math.log(2.0 / LEVEL) / (2.0 * SIZE))
MASK = 2**64 - 1


def fill(draw, rng, out):
    for j in range(out.shape[0]):
        out[j] = draw(rng)


def fill_gamma(shape, rng, out):
    for j in range(out.shape[0]):
        out[j] = gamma(shape, rng)


def sample(draw: Any, seed: int, *shape: float) -> np.ndarray:
    rng, out = streams(np.random.SeedSequence(seed), 1)[0], np.empty(SIZE)
    args = (*shape, rng, out)
    entry = fill_gamma if draw is gamma else partial(fill, draw)
    compiled(entry, label=f"test of {draw.__name__}", args=args)(*args)
    return out


def rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & MASK


def reference(state: list[int], count: int) -> list[int]:
    """xoshiro256++ in unbounded integers."""
    words = []
    for _ in range(count):
        words.append((rotated((state[0] + state[3]) & MASK, 23) + state[0]) & MASK)
        kept = (state[1] << 17) & MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= kept
        state[3] = rotated(state[3], 45)
    return words


STATES = [
    [1, 2, 3, 4],
    [MASK, MASK, MASK, MASK],
    [0, 0, 0, 1],
    [2**63, 2**23 - 1, 2**41, 2**45 + 7],
    [int(word) for word in streams(np.random.SeedSequence(0), 1)[0]],
]


@pytest.mark.parametrize("state", STATES)
def test_words_are_those_of_the_published_algorithm(state):
    rng, out = np.array(state, dtype=np.uint64), np.empty(1000, dtype=np.uint64)
    compiled(partial(fill, next_word), label="test of words", args=(rng, out))(rng, out)
    expected = list(state)
    assert out.tolist() == reference(expected, 1000)
    assert rng.tolist() == expected  # the state afterwards, too


def test_the_first_words_from_1_2_3_4():
    """Worked by hand: ((1 + 4) rotated by 23) + 1 = 5 * 2^23 + 1."""
    assert reference([1, 2, 3, 4], 1) == [5 * 2**23 + 1]


@pytest.mark.parametrize("state", STATES)
def test_plain_python_gives_the_same_bits(state):
    rng, again = np.array(state, dtype=np.uint64), np.array(state, dtype=np.uint64)
    out = np.empty(200)
    compiled(partial(fill, uniform), label="test of bits", args=(rng, out))(rng, out)
    with np.errstate(over="ignore"):  # NumPy's scalars warn where words wrap, which is meant
        slow = np.array([uniform(again) for _ in range(200)])
    assert out.tobytes() == slow.tobytes()
    assert rng.tobytes() == again.tobytes()


def test_written_but_not_compiled_gives_the_same_bits():
    rng, again = np.array(STATES[-1], dtype=np.uint64), np.array(STATES[-1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        written = plain(normal)
        assert [written(rng) for _ in range(20)] == [normal(again) for _ in range(20)]


def test_uniform_lies_on_its_grid_and_never_is_zero():
    drawn = sample(uniform, 1)
    steps = drawn * 2.0**53
    assert np.all(steps == np.round(steps))
    assert drawn.min() > 0.0
    assert drawn.max() <= 1.0
    # The words that give the ends: all bits 0, and all bits 1. A state of (0, *, *, -0) gives the word 0.
    ends = np.array([[0, 5, 6, 0], [2**64 - 1, 0, 0, 1]], dtype=np.uint64)
    with np.errstate(over="ignore"):
        assert uniform(ends[0]) == 2.0**-53
        assert uniform(ends[1]) == 1.0


def test_streams_are_distinct_and_a_larger_count_only_adds_rows():
    seed = np.random.SeedSequence(7)
    many = streams(seed, 1000)
    assert many.dtype == np.uint64
    assert many.shape == (1000, 4)
    assert len({row.tobytes() for row in many}) == 1000
    for count in (0, 1, 2, 999):
        assert streams(np.random.SeedSequence(7), count).tobytes() == many[:count].tobytes()
    children = np.random.SeedSequence(7).spawn(2)
    rows = [streams(s, 1)[0].tobytes() for s in (np.random.SeedSequence(7), np.random.SeedSequence(8), *children)]
    assert len(set(rows)) == 4


def test_the_first_stream_of_seed_0_is_fixed():
    """Saved bandits and published figures depend on it."""
    assert streams(np.random.SeedSequence(0), 1)[0].tolist() == [
        int(word) for word in np.random.SeedSequence(0).generate_state(4, np.uint64)
    ]


LAWS = [  # draw, its law, and a law that is wrong by little
    (uniform, (), scipy.stats.uniform(), scipy.stats.beta(1.0, 1.1)),
    (exponential, (), scipy.stats.expon(), scipy.stats.expon(scale=1.1)),
    (normal, (), scipy.stats.norm(), scipy.stats.norm(scale=1.1)),
    (gamma, (0.1,), scipy.stats.gamma(0.1), scipy.stats.gamma(0.11)),
    (gamma, (0.7,), scipy.stats.gamma(0.7), scipy.stats.gamma(0.77)),
    (gamma, (1.0,), scipy.stats.expon(), scipy.stats.gamma(1.1)),
    (gamma, (30.0,), scipy.stats.gamma(30.0), scipy.stats.gamma(30.5)),
]


@pytest.mark.parametrize(("draw", "shape", "law", "wrong"), LAWS)
def test_laws(draw, shape, law, wrong):
    drawn = sample(draw, 11, *shape)
    assert scipy.stats.ks_1samp(drawn, law.cdf, method="asymp").statistic < TOLERANCE
    assert scipy.stats.ks_1samp(drawn, wrong.cdf, method="asymp").statistic > TOLERANCE


@pytest.mark.parametrize(("draw", "shape"), [(uniform, ()), (exponential, ()), (normal, ()), (gamma, (0.7,))])
def test_neighbours_are_independent(draw, shape):
    """Pairs of ranks fall into an 8 by 8 table evenly; a sequence that repeats every value does not."""
    drawn = sample(draw, 12, *shape)

    def statistic(values: np.ndarray) -> float:
        ranks = np.argsort(np.argsort(values)) * 8 // len(values)
        counts = np.bincount(ranks[0::2] * 8 + ranks[1::2], minlength=64)
        return float(((counts - len(values) / 128) ** 2 / (len(values) / 128)).sum())

    limit = scipy.stats.chi2(63).isf(LEVEL)
    assert statistic(drawn) < limit
    assert statistic(np.repeat(drawn[: SIZE // 2], 2)) > limit
