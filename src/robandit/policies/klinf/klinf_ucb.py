"""KLinf-UCB (Agrawal, Juneja, Koolen 2021): the index of `klinf.upper_bound`, in batches, with a lazy arg-max.

The index of an arm whose data do not change rises with t alone, through its budget C. At the multipliers of its last evaluation the
bound ``TOP - exp(-C) GEOMETRIC`` is concave in C, and C is concave in log t; so the tangent in log t stays above the index for
ever, and arms below the best exact index are skipped without a look at their data (:mod:`robandit.kernel.lazy`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.reward_store import START, USED, append, empty_store, enlarged, store_full
from robandit.policies.base import Policy, check_eps, check_number
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried
from robandit.policies.klinf.upper_bound import FARTHEST, FOUND, GEOMETRIC, TOP, VALUE, solve, start_at

__all__ = ["KLinfUCB"]

# Rows of the pool; rewards are in units.
REWARD, POWER = 0, 1
# Sums of an arm: of rewards, of rewards in units, of their powers.
SUM, UNITS, POWERS = 0, 1, 2
# After the solution in a row of ``found``: the level that it belongs to (-1: the data have changed), and whether there is one.
LEVEL = FOUND
SOLVED = FOUND + 1
# The run as a whole.
ARM = 0  # of the batch under way
LEFT = 1  # pulls left in it
CHOSEN = 2  # by the last question, or -1
INFEASIBLE = 3

LONGEST = 2.0**52  # pulls in a batch
WHOLE = 1.0 - 1e-12  # 0.07 * 100 is 7.000000000000001, and not eight pulls
LOOSE = 1e-12  # far above the rounding of a value at given multipliers


class Params(NamedTuple):
    """The parameters as numbers."""

    eps: float
    unit: float  # u^(1/(1+eps))
    batch: float
    proved: int


class State(NamedTuple):
    """See the names above."""

    arms: Floats  # (arms, 3)
    found: Floats  # (arms + 1, FOUND + 2); the last row is for asking
    pool: Floats
    slots: Ints
    pulls: Ints
    run: Ints
    lines: Floats
    lead: Ints


class KLinfUCB(Policy):
    """Optimism by likelihood: an arm's index is the largest mean of any law with E|X|^(1+eps) <= u that its rewards do not exclude.

    Asymptotically the best that is possible when eps and u are known, constants included. Use it as the non-adaptive standard, with
    a u that is known to hold: an index is never above u^(1/(1+eps)), and rewards that contradict u make it infinite (the counter
    ``infeasible`` counts such evaluations). It keeps all rewards, and an index is a few passes over them. The index depends on
    where zero is: rewards should be centred near it.

    Parameters
    ----------
    eps, u
        The class of laws: E|X|^(1+eps) <= u for every arm, eps in (0, 1].
    batch
        The best arm, with N rewards, is pulled ``ceil(batch N)`` times before indices are looked at again (at least once). The
        authors' 0.1 makes the work nearly proportional to T. 0: one pull per decision, and work of the order of T^2.
    threshold
        ``"proved"``: an index spends log t + 2 log log t + 2 log(1 + N) + 1, for which the bound is proved. ``"log"``: log t, as in
        the authors' experiments: less regret in practice, no proof.

    Guarantee
    ---------
    With ``threshold="proved"`` regret is at most ``(1 + batch) sum_i gap_i / KLinf(arm_i, best mean) log T``, to first order in
    log T, where KLinf(law, m) is the least divergence from the arm's law to one of the class with mean at least m; with batch = 0
    no policy that is good on the whole class does better. No worst-case bound is stated. Must know: eps and u. Anytime, not
    random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.5)
    >>> policy = rb.KLinfUCB().informed_by(problem)
    >>> policy.eps, round(policy.u, 6)
    (1.0, 7.2)
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.7 * 500)  # uniform play: 500
    True

    References
    ----------
    S. Agrawal, S. Juneja, W. M. Koolen. Regret minimization in heavy-tailed bandits. COLT 2021, PMLR 134.
    """

    eps: float | None = None
    u: float | None = None
    batch: float = 0.1
    threshold: Literal["proved", "log"] = "proved"

    label = "KLinf-UCB"
    columns = ("mean", "index")
    about = Facts(
        knows=("eps", "u"),
        bound="the regret theorem of Agrawal et al.",
        instance="sum log T / KLinf(arm, best mean)",
        matches=(True, None),
        adaptive=Adaptive(True, False, True, False),
        citation="Agrawal, Juneja, Koolen 2021",
        row=5,
        title="KLinf-UCB",
        notes=(
            "KLinf(law, m) is the least divergence from the law to one with E|X|^(1+eps) <= u and mean at least m. As "
            "the paper prints it; in units of regret each term carries the factor gap.",
        ),
    )

    @property
    def facts(self) -> Facts:
        """Only the threshold of the theorem has a bound."""
        if self.threshold == "proved":
            return self.about
        return dataclasses.replace(self.about, bound="", instance="", matches=(None, None))

    def validate(self) -> None:
        """A class of laws, a batch factor that is not negative, a known word."""
        check_eps("KLinfUCB", self.eps)
        if self.u is not None:
            check_number("KLinfUCB", "u", self.u, above=0.0)
        check_number("KLinfUCB", "batch", self.batch, least=0.0)
        if self.threshold not in ("proved", "log"):
            raise InvalidInput(f"KLinfUCB: threshold = {self.threshold!r} must be 'proved' or 'log'")

    def params(self) -> Params:
        """The unit of rewards is the largest mean in the class."""
        assert self.eps is not None
        assert self.u is not None
        unit = float(self.u) ** (1.0 / (1.0 + self.eps))
        return Params(float(self.eps), unit, float(self.batch), int(self.threshold == "proved"))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        found = np.zeros((arms + 1, FOUND + 2))
        found[:, LEVEL] = -1.0
        run = np.array([-1, 0, -1, 0], dtype=np.int64)
        return State(np.zeros((arms, 3)), found, *empty_store(arms, 2), no_pulls(arms), run, *lazy_state(arms))

    def grow(self, state: State) -> State:
        """More room for rewards."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    def counters(self, state: State) -> dict[str, int]:
        """Evaluations whose index was infinite: rewards that no law of the class explains."""
        return {"infeasible": int(state.run[INFEASIBLE])}

    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """The arm of the batch; else one without rewards; else the largest index, where t counts the pull about to be made."""
        arms = s.arms.shape[0]
        if s.run[LEFT] > 0:
            return s.run[ARM]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        arm = best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s))
        s.run[CHOSEN] = arm
        return arm

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """Count the pull, also in its batch. The first pull of the chosen arm begins one; pulls of other arms change none."""
        if s.run[LEFT] > 0:
            if arm == s.run[ARM]:
                s.run[LEFT] -= 1
        elif arm == s.run[CHOSEN]:
            s.run[ARM] = arm
            s.run[LEFT] = max(math.ceil(min(p.batch * s.slots[arm, USED] * WHOLE, LONGEST)), 1) - 1
        s.run[CHOSEN] = -1
        return take_pull(p, s, arm)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Keep the reward and its power, in units."""
        x = min(max(reward / p.unit, -FARTHEST), FARTHEST)
        power = abs(x) ** (1.0 + p.eps)
        column = append(s.slots, arm)
        s.pool[REWARD, column] = x
        s.pool[POWER, column] = power
        s.arms[arm, SUM] += reward
        s.arms[arm, UNITS] += x
        s.arms[arm, POWERS] += power
        s.found[arm, LEVEL] = -1.0
        if s.slots[arm, USED] == 1:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    full = staticmethod(store_full)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean and index. The index is computed aside: asking neither counts nor moves where the next search begins."""
        out[0] = math.nan
        out[1] = math.inf
        if s.slots[arm, USED] > 0:
            out[0] = s.arms[arm, SUM] / s.slots[arm, USED]
            aside = s.arms.shape[0]
            for j in range(s.found.shape[1]):
                s.found[aside, j] = s.found[arm, j]
            look_up(p, s, arm, aside, log_time(s))
            out[1] = p.unit * s.found[aside, VALUE]


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.slots[arm, USED]


def budget(p: Params, n: float, level: float) -> float:
    """C = threshold / N, with level = log t."""
    spent = level
    if p.proved != 0:
        spent += 2.0 * math.log(level) + 2.0 * math.log(1.0 + n) + 1.0
    return spent / n


@out_of_line
def look_up(p: Params, s: State, arm: int, row: int, level: float) -> bool:
    """See that a row of ``found`` holds the arm's solution at this level; returns whether it had to be found."""
    if s.found[row, LEVEL] == level:
        return False
    n = s.slots[arm, USED]
    moment = s.arms[arm, POWERS] / n
    c = budget(p, n, level)
    if s.found[row, SOLVED] == 0.0:
        start_at(s.found[row], p.eps, c, moment)
        s.found[row, SOLVED] = 1.0
    solve(s.pool, s.slots[arm, START], n, s.found[row], p.eps, c, s.arms[arm, UNITS] / n, moment)
    s.found[row, LEVEL] = level
    return True


def index(p: Params, s: State, arm: int, level: float) -> float:
    """The index of an arm; evaluations without a law in the class are counted."""
    if look_up(p, s, arm, arm, level) and s.found[arm, VALUE] == math.inf:
        s.run[INFEASIBLE] += 1
    return p.unit * s.found[arm, VALUE]


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The tangent in log t of the bound that the last solution gives for every t."""
    if s.found[arm, VALUE] == math.inf:
        return math.inf, 0.0, math.inf
    n = float(s.slots[arm, USED])
    rate = (1.0 + 2.0 / level) / n if p.proved != 0 else 1.0 / n
    slope = math.exp(-budget(p, n, level)) * s.found[arm, GEOMETRIC] * rate
    height = s.found[arm, VALUE] + LOOSE * (1.0 + s.found[arm, TOP])
    return p.unit * height, p.unit * slope, math.inf
