"""RMM-UCB and MARS as their papers print them: every index from all rewards, with a matrix of signs."""

import math

import numpy as np

from helpers.duels import SlowIndexPolicy
from robandit.policies.resampling import signs as resampling


def lower(values):
    """The paper's median, of each column."""
    return np.sort(values, axis=0)[(len(values) - 1) // 2]


def upper(values):
    return np.sort(values, axis=0)[len(values) // 2]


def block_means(x, signs, k):
    """Means of a_ij X_i, and of a_ij, in strided blocks (X_l, X_(l+k), X_(l+2k), ...): a row per block, a column per j.

    Column 0 is the data themselves, by the same operations, so that a copy without a turned sign is equal to the last bit.
    """
    with_data = np.vstack([np.ones(len(x)), signs])
    parts = [(with_data[:, first::k], x[first::k]) for first in range(k)]
    return np.array([(a * part).mean(axis=1) for a, part in parts]), np.array([a.mean(axis=1) for a, _ in parts])


def bounds(x, signs, k, later, median):
    """U_j for each row of signs; ``later[j]`` says whether pi(j) > pi(0)."""
    products, means = block_means(np.asarray(x, dtype=float), signs, k)
    num = lower(products[:, 0]) - products[:, 1:]
    den = 1 - means[:, 1:]
    tied = np.where(later, np.inf, -np.inf)[None, :]
    none = np.where(num > 0, np.inf, np.where(num < 0, -np.inf, tied))
    return median(np.where(den == 0, none, num / np.where(den == 0, 1.0, den)))


def is_rejected(x, signs, k, later, theta):
    """The test of the mean theta itself: the rank of the data among its copies is the last one, m (r = 1).

    The paper breaks ties by pi one way here and the other way in its formula for the bound; both are the same in law, and this is
    the way of the formula.
    """
    products, means = block_means(np.asarray(x, dtype=float), signs, k)
    values = lower(products - theta * means)
    data, copies = values[0], values[1:]
    return 1 + np.sum((data < copies) | ((data == copies) & ~later)) > len(signs)


class SlowResampling(SlowIndexPolicy):
    """RMM-UCB with the signs of the fast implementation; ``single``: one block, MARS."""

    def __init__(self, arms, rng, single=False, median=upper):
        super().__init__(arms)
        self.rng, self.single, self.median = rng.copy(), single, median
        self.words = {}
        self.open = 0  # pulls without reward

    def bit_matrix(self, arm, n, count):
        sheets = -(-count // 64)
        with np.errstate(over="ignore"):
            for i in range(n):
                row = self.words.setdefault((arm, i), [])
                while len(row) < sheets:
                    row.append(resampling.signs(self.rng, arm, i, len(row)))
        words = np.array([self.words[arm, i][:sheets] for i in range(n)], dtype=np.uint64)
        bits = (words[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        return 1 - 2 * bits.reshape(n, -1)[:, :count].T.astype(int)

    def later(self, arm, count):
        with np.errstate(over="ignore"):
            keys = [int(resampling.place_of(self.rng, arm, j)) for j in range(count + 1)]
        return np.array([key > keys[0] for key in keys[1:]])

    def value(self, arm, made):
        x, t = self.x[arm], made + self.open + 1
        m = math.ceil(1 + t * math.log(t) ** 2)
        k = 1 if self.single else max(1, math.floor(min(17 * math.log(t), math.sqrt(len(x)))))
        return max(bounds(x, self.bit_matrix(arm, len(x), m - 1), k, self.later(arm, m - 1), self.median))

    def size(self, arm):
        return max(map(abs, self.x[arm]))
