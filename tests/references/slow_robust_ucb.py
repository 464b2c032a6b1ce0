"""Robust UCB by its formulas: everything recomputed every round, sums exactly rounded."""

import math
from statistics import median


def truncated(rewards, t, eps, u, common=False):
    """Truncated mean and width."""
    n = len(rewards)
    log = math.log(t)
    kept = [x for j, x in enumerate(rewards, 1) if abs(x) <= (u * (n if common else j) / (2 * log)) ** (1 / (1 + eps))]
    return math.fsum(kept) / n, 4 * u ** (1 / (1 + eps)) * (2 * log / n) ** (eps / (1 + eps))


def block_median(rewards, blocks):
    """Return the median of the means of this many blocks of consecutive rewards, as long as possible."""
    size = len(rewards) // blocks
    return median(math.fsum(rewards[b * size : (b + 1) * size]) / size for b in range(blocks))


def median_of_means(rewards, t, eps, v):
    """Median of means and width."""
    n = len(rewards)
    blocks = max(math.floor(min(1 + 16 * math.log(t), n / 2)), 1)
    width = (12 * v) ** (1 / (1 + eps)) * (16 * (1 / 8 + 2 * math.log(t)) / n) ** (eps / (1 + eps))
    return block_median(rewards, blocks), width


class Slow:
    """An index policy from a function of an arm's rewards and the time that returns (estimate, width)."""

    def __init__(self, arms, rule):
        self.rewards = [[] for _ in range(arms)]
        self.rule = rule

    def numbers(self):
        t = sum(map(len, self.rewards)) + 1
        return [self.rule(rewards, t) if rewards else (math.nan, math.inf) for rewards in self.rewards]

    def indices(self):
        return [math.inf if width == math.inf else mean + width for mean, width in self.numbers()]

    def choose(self):
        indices = self.indices()
        return min(range(len(indices)), key=lambda i: (-indices[i], len(self.rewards[i]), i))

    def learn(self, arm, reward):
        self.rewards[arm].append(reward)


def agree(live, slow, draw, steps, check=1, tolerance=1e-11):
    """Play the compiled policy and check that each choice is the slow one's best arm, up to rounding."""
    other = 0
    for step in range(steps):
        arm = live.ask()
        if step % check == 0:
            numbers, indices = slow.numbers(), slow.indices()
            size = max((abs(m) + w for m, w in numbers if m == m and w < math.inf), default=1.0)
            if slow.choose() != arm:
                other += 1
                assert max(indices) - indices[arm] <= tolerance * size, (step, arm, indices)
        if step % (10 * check) == 0:
            columns = live.describe()
            for i, (mean, width) in enumerate(numbers):
                if not math.isnan(mean):
                    assert abs(columns["mean"][i] - mean) <= tolerance * size
                    assert (
                        columns["index"][i] == width == math.inf
                        or abs(columns["index"][i] - mean - width) <= tolerance * size
                    )
                else:
                    assert math.isnan(columns["mean"][i])
                    assert columns["index"][i] == math.inf
        reward = draw(arm)
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert other <= max(2, steps // 100)  # rounding rarely decides
