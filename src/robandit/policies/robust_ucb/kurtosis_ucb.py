"""Scale-free UCB for bounded kurtosis (Lattimore 2017), with medians of means for the mean and for the variance about any point.

The index of an arm is the largest theta with ``theta <= m + C1 sqrt(S(theta) L / (n D))``, where m is the median of k block means,
S(theta) is the median of the blocks' means of ``(X - theta)^2``, ``L = log(C2 / delta)`` and ``D = 1 - C1 sqrt((kappa - 1) L /
n)``. Let y = theta - m, and let d and a be a block's means of X - m and (X - m)^2. Then the condition is that the median of ``a - 2
y d - c y^2`` is not negative, with ``c = n D / (C1^2 L) - 1``. If c <= 0, the arm is explored.

For an odd k the largest y is the median of the positive roots of these parabolas. For an even k it lies between the two middle
roots, where the sum of the smallest parabola that is still >= 0 and the largest negative one changes its sign once.

k = floor(8 L), and d and a change only when k or the block size changes. In between only c changes. As a >= d^2, the logarithms of
every root and of y fall in c at a rate of at most ``(1 + 1/sqrt(1+c)) / (2c)``. And c falls in L at a rate of at most ``n / (C1
L)^2``. This gives the line for the lazy arg-max (:mod:`robandit.kernel.lazy`). An index costs O(k).

Sums of X and X^2 are pairs of doubles, shifted to m as such pairs, and squares are exact. So neither a mean far from zero nor an
outlier in another block affects a block's variance. Squares of rewards above 1e150 overflow.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import (
    HIGH,
    LOW,
    KeepsSums,
    add_reward,
    block_median,
    empty_sums,
    middle,
    two_product,
    two_sum,
)
from robandit.policies._parts.records import index_state, params_of
from robandit.policies._parts.reward_store import START, USED
from robandit.policies.assumptions import Assumption
from robandit.policies.facts import Facts
from robandit.policies.index import TAKEN, IndexPolicy, most_pulls, pulls_made
from robandit.validation import within

SQUARE_HIGH, SQUARE_LOW = 2, 3  # columns of the pool after the sums of X

# Numbers of an arm: rewards, m, the distance from m within which to search the next one, the level L at which k changes, the number
# of rewards at which the blocks change, k, the block size, and y at the last evaluation.
COUNT, MEAN, REACH, EVENT, NEXT, BLOCKS, SIZE, ABOVE = 0, 1, 2, 3, 4, 5, 6, 7
OFF, SPREAD = 0, 1  # rows of an arm's blocks: d and a
C1_SQUARED = 12.0 * 16.0
SHRINK = 0.1  # fraction by which c may fall before the line is renewed
SLACK = 1e-11  # far above the rounding of an index


def select_explored(index: Any, outlook: Any, level: Any, rewards: Any, first: Any, p: Any, s: Any) -> int:
    """Return an arm with too few rewards, or else the arm with the largest index."""
    now = level(p, s)
    needed = max(p.needed * now, 0.0)
    if needed >= s.least[0]:
        arm = forced(s, needed)
        if arm >= 0:
            return arm
    return best_arm(index, outlook, pulls_made, p, s, now)


class KurtosisUCB(KeepsSums, IndexPolicy):
    """UCB policy for arms with unknown and different variances, which needs to know only a bound on the kurtosis.

    Scaling or shifting all rewards changes no decision. Use it when you know the shape of the laws (kurtosis 3 for normal, 1.8 for
    uniform laws) but not their scales. Do not use it for heavy tails without a fourth moment. Every arm is explored until it has
    ``192 L / x^2`` rewards, where x = (sqrt(kappa + 3) - sqrt(kappa - 1)) / 2 and L is about 2 log t (18,000 for kappa = 3, t =
    1e5).

    Parameters
    ----------
    kappa
        Bound on E(X - mean)^4 / Var(X)^2 of all arms, at least 1.

    Guarantee
    ---------
    Regret grows as ``sum_i (kappa - 1 + Var_i / gap_i^2) gap_i log T``. Requires kappa. Anytime and deterministic. The rule and its
    constants are reconstructed: they were not checked against the paper's text.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.4, 0.6])
    >>> policy = rb.KurtosisUCB().informed_by(problem)
    >>> round(policy.kappa, 6)
    1.166667
    >>> bandit = rb.Bandit(["a", "b"], policy, seed=0)
    >>> bandit.update("a", 1.0)
    >>> bandit.select()
    'b'

    References
    ----------
    T. Lattimore. A scale free algorithm for stochastic bandits with bounded kurtosis. NeurIPS 2017.
    """

    kappa: float | None = None

    use_when = "you know the shape of the laws, but not their scale"
    label = "Kurtosis UCB"
    about = Facts(
        knows=("kappa",),
        assumption=Assumption("bounded kurtosis", "kurtosis at most kappa"),
        bound="Lattimore 2017",
        instance="sum (kappa - 1 + Var/gap^2) gap log T",
        citation="Lattimore 2017",
        source="reconstructed",
    )

    def validate(self) -> None:
        if self.kappa is not None:
            within(self.kappa, "kappa", 1.0, 1e300, open_high=True, owner="KurtosisUCB")

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """Return the largest kurtosis of the arms, where a constant arm counts as 1."""
        if name != "kappa":
            return super().learned(name, problem, eps)
        spread = [law for law in problem.laws if law.variance > 0.0]
        if any(law.variance == math.inf for law in spread):
            return math.inf
        return max([1.0, *(float(law.central_moment(4.0)) / float(law.variance) ** 2 for law in spread)])

    def params(self: Any) -> Any:
        root = math.sqrt(self.kappa - 1.0)
        least = 2.0 / (math.sqrt(self.kappa + 3.0) + root)  # c > 0 if C1 sqrt(L/n) is below this
        return params_of(root=root, needed=C1_SQUARED / least**2)  # rewards that an arm needs per unit of L

    def init(self, arms: int, horizon: int | None) -> Any:
        most = int(8.0 * level_at(most_pulls(horizon) + 2.0)) + 2
        pool, slots = empty_sums(arms, horizon, 4)
        return index_state(
            arms,
            arms=np.zeros((arms, 8)),
            blocks=np.zeros((arms, 2, most)),
            scratch=np.zeros(2 * most),
            least=np.zeros(1, dtype=np.int64),  # a lower bound on the fewest rewards of an allowed arm
            pool=pool,
            slots=slots,
        )

    def forget_choice(self, state: Any) -> None:
        super().forget_choice(state)
        state.least[0] = 0

    select = staticmethod(partial(select_explored))

    @staticmethod
    def first(p: Any) -> float:
        """Return 0, because `select_explored` finds the arms with too few rewards."""
        return 0.0

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.arms[arm, COUNT] = add_reward(s.pool, s.slots, arm, reward)
        add_square(s.pool, s.slots[arm, START] + s.slots[arm, USED] - 1, s.slots[arm, USED] == 1, reward)

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return level_at(s.pulls[s.pulls.shape[0] - 2 + TAKEN] + 1.0)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return m + y, with level = L. An arm with too few rewards that is not forced waits for those of its pulls."""
        numbers = s.arms[arm]
        if s.unrewarded[arm] > 0 and numbers[COUNT] <= p.needed * level:
            return -math.inf
        if numbers[COUNT] >= numbers[NEXT] or level >= numbers[EVENT]:
            refresh(s, arm, level)
        c = excess(p, s, arm, level)
        if c <= 0.0:
            numbers[ABOVE] = math.inf
        else:
            numbers[ABOVE] = largest(s.blocks[arm, OFF], s.blocks[arm, SPREAD], s.scratch, int(numbers[BLOCKS]), c)
        return numbers[MEAN] + numbers[ABOVE]

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return a line above the index until the blocks change or c has fallen by a tenth."""
        numbers = s.arms[arm]
        if s.unrewarded[arm] > 0 and numbers[COUNT] <= p.needed * level:
            return math.inf, 0.0, level
        y = numbers[ABOVE]
        c = excess(p, s, arm, level)
        if c <= 0.0:
            return math.inf, 0.0, level
        span = SHRINK * c * C1_SQUARED * level * level / numbers[COUNT]
        last = (1.0 - SHRINK) * c
        growth = SHRINK * c * (1.0 + 1.0 / math.sqrt(1.0 + last)) / (2.0 * last)
        height = numbers[MEAN] + y + SLACK * (abs(numbers[MEAN]) + y)
        return height, y * math.expm1(growth) / span, min(numbers[EVENT], level + span)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = math.nan
        out[1] = math.inf
        level = KurtosisUCB.level(p, s)
        if s.arms[arm, COUNT] > 0.0:
            refresh(s, arm, level)
            out[0] = s.arms[arm, MEAN]
            if s.arms[arm, COUNT] > p.needed * level:
                out[1] = KurtosisUCB.index(p, s, arm, level)


def level_at(t: float) -> float:
    """Return L = log(C2 / delta) = 1/8 + 2 log t + log log(1 + t)."""
    return 0.125 + 2.0 * math.log(t) + math.log(math.log(1.0 + t))


@out_of_line
def forced(s: Any, needed: float) -> int:
    """Return the allowed arm with the fewest pulls among those with at most ``needed`` rewards, or -1. Update ``least``.

    Pulls without a reward count as rewards.
    """
    chosen = -1
    least = 2.0**53
    for arm in range(s.arms.shape[0]):
        if not s.allowed[arm]:
            continue
        least = min(least, s.arms[arm, COUNT])
        if s.arms[arm, COUNT] + s.unrewarded[arm] <= needed and (chosen < 0 or s.pulls[arm] < s.pulls[chosen]):
            chosen = arm
    s.least[0] = int(least)
    return chosen


@out_of_line
def add_square(pool: Floats, row: int, first: bool, reward: float) -> None:
    """Store the sum of squares up to this reward."""
    square, rest = two_product(reward, reward)
    if not first:
        square, lost = two_sum(pool[row - 1, SQUARE_HIGH], square)
        rest += lost + pool[row - 1, SQUARE_LOW]
    pool[row, SQUARE_HIGH] = square
    pool[row, SQUARE_LOW] = rest


@out_of_line
def refresh(s: Any, arm: int, level: float) -> None:
    """Update the blocks, and compute when they next change."""
    own = s.arms[arm]
    n = int(own[COUNT])
    half = max(n // 2, 1)
    blocks = max(min(int(8.0 * level), half), 1)
    size = n // blocks
    own[NEXT] = (size + 1) * blocks
    own[EVENT] = (1.0 - SLACK) * (blocks + 1) / 8.0
    if blocks == own[BLOCKS] and size == own[SIZE]:
        return
    own[MEAN], own[REACH] = block_median(s.pool, s.slots, arm, blocks, size, s.scratch, own[MEAN], own[REACH])
    own[BLOCKS] = blocks
    own[SIZE] = size
    center = own[MEAN]
    square, square_rest = two_product(center, center)
    before = s.slots[arm, START] - 1
    for block in range(blocks):
        after = before + size
        total, total_rest = s.pool[after, HIGH], s.pool[after, LOW]
        squares, squares_rest = s.pool[after, SQUARE_HIGH], s.pool[after, SQUARE_LOW]
        if block > 0:
            total, lost = two_sum(total, -s.pool[before, HIGH])
            total_rest += lost - s.pool[before, LOW]
            squares, lost = two_sum(squares, -s.pool[before, SQUARE_HIGH])
            squares_rest += lost - s.pool[before, SQUARE_LOW]
        before = after
        # Sum of (X - m)^2 = squares - 2 m total + size m^2, and of X - m, in pairs.
        product, rest = two_product(-2.0 * center, total)
        squares_rest += rest - 2.0 * center * total_rest
        squares, lost = two_sum(squares, product)
        squares_rest += lost
        product, rest = two_product(float(size), square)
        squares_rest += rest + size * square_rest
        squares, lost = two_sum(squares, product)
        spread = (squares + (squares_rest + lost)) / size
        product, rest = two_product(-float(size), center)
        total, lost = two_sum(total, product)
        off = (total + (total_rest + lost + rest)) / size
        s.blocks[arm, OFF, block] = off
        s.blocks[arm, SPREAD, block] = max(spread, off * off)


def excess(p: Any, s: Any, arm: int, level: float) -> float:
    """Return c = n D / (C1^2 L) - 1, which is positive if the index is finite."""
    w = math.sqrt(C1_SQUARED * level / s.arms[arm, COUNT])
    return (1.0 - w * (p.root + w)) / (w * w)


def root_of(off: float, spread: float, c: float) -> float:
    """Return the positive root of spread - 2 off y - c y^2."""
    rest = math.sqrt(off * off + c * spread)
    if off > 0.0:
        return spread / (off + rest)
    return (rest - off) / c


@out_of_line
def largest(off: Floats, spread: Floats, scratch: Floats, blocks: int, c: float) -> float:
    """Return the largest y at which the median of the parabolas is not negative."""
    for block in range(blocks):
        scratch[block] = root_of(off[block], spread[block], c)
        scratch[blocks + block] = scratch[block]
    upper = blocks // 2
    high = middle(scratch, 0, blocks, upper, upper)
    if blocks % 2 == 1:
        return high
    low = scratch[0]
    for block in range(1, upper):
        low = max(low, scratch[block])
    end = high
    y = 0.5 * (low + high)
    turn = 0
    while low < y < high and turn < 200:
        # Parabolas with roots up to the lower middle one are negative at y, the others are not.
        least = math.inf
        most = -math.inf
        one = other = 0
        for block in range(blocks):
            value = spread[block] - y * (2.0 * off[block] + c * y)
            if scratch[blocks + block] >= end:
                if value < least:
                    least = value
                    one = block
            elif value > most:
                most = value
                other = block
        if least + most >= 0.0:
            low = y
        else:
            high = y
        # On this piece the answer is the root of the sum of the two; bisect every fourth turn, in case there are many pieces.
        guess = root_of(0.5 * (off[one] + off[other]), 0.5 * (spread[one] + spread[other]), c)
        if abs(guess - y) <= 1e-15 * y:
            return guess
        y = guess
        turn += 1
        if turn % 4 == 0 or not low < y < high:
            y = 0.5 * (low + high)
    return low
