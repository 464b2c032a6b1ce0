"""Quantile-UCB: the arm with the best quantile, from order statistics and a binary Kullback-Leibler bound.

In the code, z is the cost of a pull: minus its reward. The state counts the costs of each arm in the bins of
:mod:`robandit.kernel.bins`, in the order of z: bins of negative costs, one for 0, and bins of positive costs. The counts are a
Fenwick tree, so adding a cost, and finding the bin of a rank, take O(log bins). All arms share one window of bins. It starts
without any, and reaches 64 bins beyond every cost: a cost outside waits in ``late`` until `QuantileUCB.grow` has widened the
window. No cost is clamped. Nine decades of one sign take 8 KB per arm, and the memory grows with the decades that occur.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from robandit import objectives
from robandit.kernel.bins import LOG_GAMMA, bin_of, edge
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.binary_kl import binary_kl, largest_probability
from robandit.policies._parts.records import index_state, params_of
from robandit.policies.facts import Facts
from robandit.policies.index import TAKEN, IndexPolicy, Rewards, first_forced
from robandit.validation import flag, within

# ``window``: the lowest bin and the number of bins of the sizes of negative and of positive costs.
NEGATIVE, NEGATIVES, POSITIVE, POSITIVES = 0, 1, 2, 3
ARM, COST, WAITING = 0, 1, 2  # ``late``: a cost outside the window
AT, BELOW = (
    0,
    1,
)  # ``found``: the position of an arm's last index, and the costs in the bins below; -1 if there was none
MARGIN = 64
MIDDLE = 0.99  # the middle of a bin, in units of its upper edge
SLACK = 1e-9  # relative; far above the rounding of a level


def select_quantile(index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any) -> int:
    """Return an arm without rewards, or else the arm with the largest index; ties as in `tied`."""
    arm = first_forced(rewards, s, first(p))
    return arm if arm >= 0 else best_arm(index, outlook, tied, p, s, level(p, s))


class QuantileUCB(IndexPolicy):
    """Index policy on a quantile of each arm's rewards, such as the 95th percentile of latencies. It needs no parameters but q.

    Use it if a quantile is what counts: a service level, or the bad tail of an income. Rewards need no mean. A high quantile is
    learned slowly, whatever the policy: of 100 rewards, one is beyond p99. If arms differ only in scale, a policy on the mean finds
    the arm with the best quantile sooner.

    The index of an arm with n rewards and o pulls without a reward is an order statistic of its costs: X_(k) with the least k for
    which k/n >= q or n kl(k/n, q) <= l, where kl is the binary Kullback-Leibler divergence, and l = log(1 + (t - 1)/(K n)) n/(n +
    o). The arm with the smallest is pulled. An arm with k = 0 has no bound yet and goes first. Costs are known up to bins of 2 %
    width, and the index is an edge of a bin, so ties are common: the arm with the largest KL upper bound of F(index) at level l
    wins, then the one with the fewest pulls.

    Parameters
    ----------
    q
        The level of the quantile, from 0.01 to 0.999. It is that of rewards as the user passes them: with rewards to maximise,
        q = 0.05 is the bad tail; with costs to minimise, q = 0.95.
    costs
        Whether q is the level of costs, and what is learned is minus the cost. None: as the bandit or the problem says.

    Guarantee
    ---------
    With n fixed, the index is beyond the arm's quantile with probability at most exp(-l), for every law. No regret bound is
    proved. Requires nothing but q. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b"], rb.QuantileUCB(q=0.5), minimize=True)
    >>> bandit.update_many(["a", "a", "a", "b", "b", "b"], [1.0, 1.0, 30.0, 2.0, 2.0, 2.0])
    >>> bandit.select()
    'a'

    References
    ----------
    Ours. The bound is that of O. Cappe, A. Garivier, O.-A. Maillard, R. Munos, G. Stoltz. Kullback-Leibler upper confidence bounds
    for optimal sequential allocation. Annals of Statistics 41, 2013, applied to the empirical distribution function at a quantile.
    """

    q: float = 0.5
    costs: bool | None = None

    label = "Quantile-UCB"
    use_when = "a quantile counts, such as p95 of latencies"
    columns = ("quantile", "index")
    grows: ClassVar[Mapping[str, int] | None] = {"tree": 1}
    about = Facts(
        citation="ours; after Cappe et al. 2013", notes=("It minimises or maximises a quantile, not the mean.",)
    )

    def validate(self) -> None:
        within(self.q, "q", 0.01, 0.999, owner="QuantileUCB")
        if self.costs is not None:
            flag(self.costs, "costs", owner="QuantileUCB")

    @property
    def name(self) -> str:
        """The label with the level, whoever has said that it is of costs."""
        return f"{self.label}(q={self.q:g})"

    @property
    def objective(self) -> str:
        return objectives.quantile_text(self.q)

    def signed(self, minimize: bool) -> Self:
        return self if self.costs is not None else dataclasses.replace(self, costs=minimize)

    @property
    def level_of_costs(self) -> float:
        """The level of the quantile of costs."""
        return self.q if self.costs else round(1.0 - self.q, 12)

    def params(self) -> Any:
        return params_of(q=self.level_of_costs)

    def init(self, arms: int, horizon: int | None) -> Any:
        return index_state(
            arms,
            arms=np.zeros((arms, 1)),  # the number of rewards
            tree=np.zeros((arms, 2), dtype=np.int64),
            window=np.zeros(4, dtype=np.int64),
            late=np.zeros(3),
            found=np.zeros((arms, 2), dtype=np.int64),
        )

    select = staticmethod(partial(select_quantile))

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.arms[arm, 0] += 1.0
        at = position(s.window, 0.0 - reward)
        if at >= 0:
            count(s.tree[arm], at)
        else:
            s.late[ARM] = arm
            s.late[COST] = 0.0 - reward
            s.late[WAITING] = 1.0

    @staticmethod
    def full(p: Any, s: Any) -> bool:
        return s.late[WAITING] != 0.0

    def grow(self, state: Any) -> Any:
        """Widen the window so that the cost that waits is in it, and count it."""
        window, cost = state.window.copy(), float(state.late[COST])
        low, number = (NEGATIVE, NEGATIVES) if cost < 0.0 else (POSITIVE, POSITIVES)
        i = bin_of(abs(cost))
        first, end = (window[low], window[low] + window[number]) if window[number] else (i, i)
        window[low] = min(first, i - MARGIN)
        window[number] = max(end, i + MARGIN + 1) - window[low]
        counts = np.diff(_cumulated(state.tree), axis=1, prepend=0)
        wide = np.zeros((len(counts), 1 + int(window[NEGATIVES] + window[POSITIVES])), dtype=np.int64)
        wide[:, [position(window, cost_at(state.window, at)) for at in range(counts.shape[1])]] = counts
        wide[int(state.late[ARM]), position(window, cost)] += 1
        return state._replace(tree=_fenwick(wide), window=window, late=np.zeros(3))

    @staticmethod
    def level(p: Any, s: Any) -> float:
        """Return (t - 1)/K, the pulls per arm."""
        arms = s.pulls.shape[0] - 2
        return s.pulls[arms + TAKEN] / arms

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        n = s.arms[arm, 0]
        s.found[arm, AT] = -1
        if n == 0.0:
            return -math.inf  # it waits for its first reward
        allowed = own_level(s, arm, n, level)
        if not excluded(0.0, n, p.q, allowed):
            return math.inf
        at, below = find(s.tree[arm], n, p.q, allowed)
        s.found[arm, AT] = at
        s.found[arm, BELOW] = below
        return 0.0 - cost_at(s.window, at)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the index as a constant, up to the level at which the bin below becomes possible."""
        if s.found[arm, AT] < 0:
            return math.inf, 0.0, math.inf
        n = s.arms[arm, 0]
        power = (n + s.unrewarded[arm]) * binary_kl(s.found[arm, BELOW] / n, p.q)
        until = n * (math.exp(power) * (1.0 - SLACK) - 1.0) if power < 700.0 else math.inf
        return 0.0 - cost_at(s.window, s.found[arm, AT]), 0.0, until

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        """Fill in the middle of the bin of the empirical quantile, and the index."""
        n = s.arms[arm, 0]
        out[0] = math.nan
        out[1] = math.inf
        if n > 0.0:
            out[0] = 0.0 - MIDDLE * cost_at(s.window, find(s.tree[arm], n, p.q, 0.0)[0])
            out[1] = QuantileUCB.index(p, s, arm, QuantileUCB.level(p, s))


def position(window: Ints, z: float) -> int:
    """Return the position of a cost's bin, or -1 if it is outside the window."""
    if z == 0.0:
        return window[NEGATIVES]
    i = bin_of(abs(z))
    if z > 0.0:
        i -= window[POSITIVE]
        return window[NEGATIVES] + 1 + i if 0 <= i < window[POSITIVES] else -1
    i -= window[NEGATIVE]
    return window[NEGATIVES] - 1 - i if 0 <= i < window[NEGATIVES] else -1


def cost_at(window: Ints, at: int) -> float:
    """Return the edge of the bin at a position that is farther from 0. It belongs to the bin."""
    if at < window[NEGATIVES]:
        return -edge(window[NEGATIVE] + window[NEGATIVES] - 1 - at)
    return edge(window[POSITIVE] + at - window[NEGATIVES] - 1) if at > window[NEGATIVES] else 0.0


def count(tree: Ints, at: int) -> None:
    """Add one to a position. Entry j of a tree (from 1) is the sum of the last j & -j positions up to the j-th."""
    j = at + 1
    while j < tree.shape[0]:
        tree[j] += 1
        j += j & -j


def own_level(s: Any, arm: int, n: float, level: float) -> float:
    """Return l, which pulls without a reward lower."""
    return math.log(1.0 + level / n) * (n / (n + s.unrewarded[arm]))


def excluded(k: float, n: float, q: float, allowed: float) -> bool:
    """Return whether the k-th of n costs is too low to be the quantile: X_(k) is a lower bound once it is not."""
    return k / n < q and n * binary_kl(k / n, q) > allowed


@out_of_line
def find(tree: Ints, n: float, q: float, allowed: float) -> tuple[int, int]:
    """Return the position of X_(k), for the least k that is not `excluded`, and the number of costs in the bins below it."""
    step = 1
    while 2 * step < tree.shape[0]:
        step *= 2
    at = below = 0
    while step > 0:
        if at + step < tree.shape[0] and excluded(below + tree[at + step], n, q, allowed):
            at += step
            below += tree[at]
        step //= 2
    return at, below


@out_of_line
def tied(p: Any, s: Any, arm: int) -> tuple[float, float]:
    """Return what decides between arms with equal indices, right after these; the smaller wins."""
    n = s.arms[arm, 0]
    pulls = float(s.pulls[arm])
    if s.found[arm, AT] < 0:
        return 0.0, pulls
    allowed = own_level(s, arm, n, QuantileUCB.level(p, s))
    j, total = s.found[arm, AT] + 1, 0
    while j > 0:
        total += s.tree[arm, j]
        j -= j & -j
    return -largest_probability(total / n, n, allowed), pulls


def _cumulated(tree: Ints) -> Ints:
    """Return the number of costs up to each position."""
    sums = np.zeros_like(tree)
    for j in range(1, tree.shape[1]):
        sums[:, j] = sums[:, j - (j & -j)] + tree[:, j]
    return sums[:, 1:]


def _fenwick(counts: Ints) -> Ints:
    sums = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    j = np.arange(sums.shape[1])
    tree: Ints = sums - sums[:, j - (j & -j)]
    return tree


def limits(policy: QuantileUCB, state: Any, arm: int) -> tuple[float, float]:
    """Return distribution-free limits (0.95) of an arm's quantile of costs, from the rewards that its state counts.

    They are infinite if there are too few. They do not account for the policy's choice of the times at which it pulled the arm.
    """
    n, sums = int(state.arms[arm, 0]), _cumulated(state.tree[arm : arm + 1])[0]
    low, high = objectives.ranks(n, policy.level_of_costs)

    def end(rank: int, *, upper: bool) -> float:
        cost = cost_at(state.window, int(np.searchsorted(sums, rank)))
        return cost / math.exp(LOG_GAMMA) if (cost > 0.0) != upper else cost  # the other edge of the bin

    return (end(low, upper=False) if low >= 1 else -math.inf), (end(high, upper=True) if high <= n else math.inf)
