"""Catoni-Lepskii UCB: our UCB policy on Catoni's mean of order 1 + eps, with the moment estimated by Lepskii's method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.estimators.formulas.catoni import influence_constant, newton_root, power_sums
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import index_state, params_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store, stored_rewards
from robandit.policies.assumptions import Assumption
from robandit.policies.facts import Facts
from robandit.policies.index import IndexPolicy, log_time
from robandit.policies.robust_ucb.catoni import Catoni
from robandit.validation import invalid, positive, within

MOST = 1000  # moments in the grid; one equation is solved per moment
TINY = 1e-290  # a smaller scale counts as zero
DONE = 1e-11  # the last Newton step, in units of 1/alpha
HALVINGS = 60
AHEAD = 0.1  # length of a line in log t
SLACK = 1e-10  # far above the rounding of an index

# Numbers of an arm: the mean, the (1+eps)-th root of the chosen moment, and the number of rewards when both were computed (0:
# never).
MEAN, SCALE, COUNTED = 0, 1, 2


class CatoniLepskiiUCB(KeepsRewards, IndexPolicy):
    """UCB policy on Catoni's mean for infinite variance, when you know the order of a moment but not its size.

    This slow baseline is ours. The estimator is that of Bhatt et al. (`robandit.estimators.lepskii_catoni`), who use it to identify
    the best arm: one equation is solved for each scale of a grid, and the smallest scale whose estimate agrees with the estimates
    of all larger scales gives the mean and the width. Use it to see the value of knowing only eps. Do not use it when you know u or
    v (see `RobustUCB`).

    With n rewards, delta = t^-2, L = log(2 (1 + log A^2 / log ratio) / delta) and D, tau0 as in
    `robandit.estimators.infinite_variance_catoni`, the index is ``mean + scale w(L/n)``, where w is the estimator's width for v =
    1. The index is infinite while n <= D L. Mean and scale are recomputed only when the number of rewards has grown by the factor 1
    + refresh, and at the first non-zero reward; in between only the width changes.

    Parameters
    ----------
    eps
        A moment of order 1 + eps is finite, 0 < eps <= 1.
    range_factor
        A: the largest factor between v^(1/(1+eps)) and its estimate, up and down.
    ratio
        Ratio of neighbours in the grid, > 1.
    tau0
        A free parameter > 0 of the theorem. None: the value with the narrowest width, at each n and t.
    refresh
        Relative growth of an arm's rewards after which its estimate is recomputed.

    Guarantee
    ---------
    No guarantee is proved. Requires eps. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -3.0], tail=1.8)
    >>> policy = rb.CatoniLepskiiUCB(eps=0.5)
    >>> result = rb.simulate(policy, problem, horizon=2000, replications=4, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 2000)  # uniform play: 2000
    True

    References
    ----------
    S. Bhatt, G. Fang, P. Li, G. Samorodnitsky. Nearly optimal Catoni's M-estimator for infinite variance. ICML 2022, PMLR 162.
    """

    eps: float | None = None
    range_factor: float = 100.0
    ratio: float = 2.0
    tau0: float | None = None
    refresh: float = 0.1

    use_when = "you want to see what knowing only eps is worth; slow"
    label = "Catoni-Lepskii UCB"
    columns = ("mean", "index", "scale")
    about = Facts(
        knows=("eps",),
        assumption=Assumption("moment estimate", "the moment is within range_factor of its estimate, as scales"),
        citation="ours, with the estimator of Bhatt, Fang, Li, Samorodnitsky 2022",
        notes=("Ours: the estimator has a bound, the policy has none.",),
    )

    def validate(self) -> None:
        owner = "CatoniLepskiiUCB"
        check_known(self)
        for name in ("range_factor", "ratio"):
            within(getattr(self, name), name, 1.0, 1e100, open_low=True, open_high=True, owner=owner)
        if self.tau0 is not None:
            positive(self.tau0, "tau0", owner=owner)
        positive(self.refresh, "refresh", owner=owner)
        points = grid_points(self.range_factor, self.ratio)
        if points > MOST:
            least = math.exp(2.0 * math.log(self.range_factor) / (MOST - 1.0))
            rule = f"at least {least * 1.0001:.10g}, for a grid of at most {MOST} moments, not {points:.3g}"
            raise invalid("ratio", self.ratio, rule, owner=owner, hint="or take a smaller range_factor")

    def params(self: Any) -> Any:
        eps, order = float(self.eps), 1.0 + self.eps
        points = grid_points(self.range_factor, self.ratio)
        c = influence_constant(order)
        return params_of(
            eps=eps,
            c=c,
            power=eps / order,
            width=math.sqrt(order) * (1.0 - eps) ** (1.0 / order - 0.5),
            alpha=(eps * c) ** (-1.0 / order),
            tau0=0.0 if self.tau0 is None else float(self.tau0),  # 0: use the value with the narrowest width
            extra=math.log(2.0 * points),
            lowest=1.0 / self.range_factor,
            ratio=float(self.ratio),
            refresh=float(self.refresh),
            # Up to ratio * A * s: a point at or beyond every moment in the range; 1e-9 allows for a logarithm that rounds down.
            last=math.floor(points + 1e-9),
        )

    def init(self, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_store(arms, 1)
        return index_state(arms, pool=pool, slots=slots, arms=np.zeros((arms, 3)))

    rewards = staticmethod(stored_rewards)
    first = staticmethod(Catoni.first)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.pool[0, append(s.slots, arm)] = reward
        n = s.slots[arm, USED]
        own = s.arms[arm]
        first = own[COUNTED] > 0.0 and own[SCALE] == 0.0 and reward != 0.0
        if first or n >= (1.0 + p.refresh) * own[COUNTED]:
            start = s.slots[arm, START]
            renew_estimate(p, own, s.pool[0, start : start + n], (p.extra + 2.0 * log_time(s)) / n)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    @out_of_line
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return mean + scale w(L/n), or infinity while there is no estimate or n <= D L."""
        if s.arms[arm, COUNTED] == 0.0:
            return math.inf
        width = tuned(p, (p.extra + 2.0 * level) / s.slots[arm, USED])[2]
        if width == math.inf:
            return math.inf
        return s.arms[arm, MEAN] + s.arms[arm, SCALE] * width

    @staticmethod
    @out_of_line
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return a line above the index: the steeper of the tangent and the chord of the width with tau0 fixed."""
        value = CatoniLepskiiUCB.index(p, s, arm, level)
        if value == math.inf:
            return math.inf, 0.0, math.inf
        n = s.slots[arm, USED]
        share = (p.extra + 2.0 * level) / n
        tau, d, width = tuned(p, share)
        rest = 1.0 - share * d
        ahead = min(AHEAD, 0.25 * n * rest / d)  # uses at most half of the rest
        later = share + 2.0 * ahead / n
        end = (1.0 + tau) * p.width * (later / (1.0 - later * d)) ** p.power
        slope = max(p.power * width / (share * rest) * 2.0 / n, (end - width) / ahead)
        reach = s.arms[arm, SCALE] * width
        return value + SLACK * (abs(value) + reach), s.arms[arm, SCALE] * slope * (1.0 + SLACK), level + ahead

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = out[2] = math.nan
        if s.arms[arm, COUNTED] > 0.0:
            out[0] = s.arms[arm, MEAN]
            out[2] = s.arms[arm, SCALE]
        out[1] = CatoniLepskiiUCB.index(p, s, arm, log_time(s))


def grid_points(range_factor: float, ratio: float) -> float:
    """Return 1 + log A^2 / log ratio, the theorem's number of moments."""
    return 1.0 + 2.0 * math.log(range_factor) / math.log(ratio)


def d_of(p: Any, tau: float) -> float:
    """Return D of the theorem, or infinity if it overflows."""
    log_d = math.log((1.0 + p.eps) / p.eps) + math.log1p(tau) + (math.log1p(1.0 / tau) + math.log(p.c)) / p.eps
    return math.exp(log_d) if log_d <= 700.0 else math.inf


@out_of_line
def tuned(p: Any, share: float) -> tuple[float, float, float]:
    """Return tau0, D and the width for a moment of 1 and the share L/n. The width is infinite if n <= D L.

    The width is narrowest where ``share D = (1+eps) tau0 / (1+tau0)``, left of tau0 = 1/eps, where D is smallest.
    """
    tau = p.tau0
    if tau == 0.0:
        low = 0.0
        tau = high = 1.0 / p.eps
        if share * d_of(p, high) < 1.0:
            for _ in range(HALVINGS):
                tau = 0.5 * (low + high)
                if share * d_of(p, tau) > (1.0 + p.eps) * tau / (1.0 + tau):
                    low = tau
                else:
                    high = tau
            tau = high
    d = d_of(p, tau)
    width = math.inf
    if share * d < 1.0:
        width = (1.0 + tau) * p.width * (share / (1.0 - share * d)) ** p.power
    return tau, d, width


@out_of_line
def renew_estimate(p: Any, own: Floats, x: Floats, share: float) -> None:
    """Compute mean and scale of an arm by Lepskii's method, if it has enough rewards."""
    _, d, width = tuned(p, share)
    if width == math.inf:
        return
    start = own[MEAN] if own[COUNTED] > 0.0 else x[0]
    own[COUNTED] = x.shape[0]
    lowest = p.lowest * moment(x, 1.0 + p.eps)
    if lowest < TINY:
        own[MEAN] = own[SCALE] = 0.0
        return
    alpha = p.alpha * share ** (1.0 / (1.0 + p.eps)) * (1.0 - share * d) ** p.power
    above = -math.inf
    below = math.inf  # the largest and the smallest root of the larger scales
    for i in range(p.last + 1):
        scale = lowest * integer_power(p.ratio, p.last - i)
        start = newton_root(power_sums, x, alpha / scale, 1.0 + p.eps, p.c, start, DONE)[0]
        reach = 2.0 * width * scale
        if i == 0 or (above - start <= reach and start - below <= reach):
            own[MEAN] = start
            own[SCALE] = scale
        above = max(above, start)
        below = min(below, start)


def integer_power(x: float, n: int) -> float:
    """Return x^n for n >= 0, by products. Python's ** would call pow, which rounds differently from compiled code's products."""
    power = 1.0
    while n != 0:
        if n & 1:
            power *= x
        n >>= 1
        x *= x
    return power


@out_of_line
def moment(x: Floats, order: float) -> float:
    """Return (mean |x|^order)^(1/order), scaled by the largest |x| so that no power overflows."""
    largest = 0.0
    for j in range(x.shape[0]):
        largest = max(largest, abs(x[j]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(x.shape[0]):
        total += (abs(x[j]) / largest) ** order
    return largest * (total / x.shape[0]) ** (1.0 / order)
