"""KLinf-UCB (Agrawal, Juneja, Koolen 2021), with the index of `klinf.upper_bound`, batches and a lazy arg-max.

While an arm gets no rewards, its index rises only with t, through its budget C. At the last multipliers, the bound
``TOP - exp(-C) GEOMETRIC`` is concave in C, and C in log t. So its tangent in log t is an outlook (:mod:`robandit.kernel.lazy`).
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any, Literal

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm
from robandit.kernel.types import Floats
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import params_of, state_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store, stored_rewards
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import IndexPolicy, Rewards, first_forced, log_time, pulls_made, take_pull
from robandit.policies.klinf.upper_bound import FARTHEST, GEOMETRIC, SOLUTION_LENGTH, TOP, VALUE, solve, start_at
from robandit.validation import choice, within

REWARD, POWER = 0, 1  # rows of the pool, in units
SUM, UNITS, POWERS = 0, 1, 2  # columns of ``arms``: sums of rewards, of rewards in units, of their powers
# A row of ``found`` continues after the solution:
LEVEL = SOLUTION_LENGTH  # the level of the solution; -1 if the data have changed since
SOLVED = SOLUTION_LENGTH + 1  # 1 if there is a solution to start from
# ``run``:
ARM = 0  # the arm of the current batch
LEFT = 1  # pulls left in the batch
CHOSEN = 2  # the arm that the last `select` chose by its index, or -1
INFEASIBLE = 3  # evaluations whose index was infinite

LONGEST = 2.0**52  # the most pulls in a batch
ROUNDING = 1.0 - 1e-12  # 0.07 * 100 is 7.000000000000001, which must not become eight pulls
LOOSE = 1e-12  # far above the rounding error of a value at given multipliers


def select_batched(index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any) -> int:
    """Return the arm of the current batch if it is allowed, or else choose one. t includes the next pull."""
    if s.run[LEFT] > 0 and s.allowed[s.run[ARM]]:
        return s.run[ARM]
    arm = first_forced(rewards, s, first(p))
    if arm < 0:
        arm = s.run[CHOSEN] = best_arm(index, outlook, pulls_made, p, s, level(p, s))
    return arm


class KLinfUCB(KeepsRewards, IndexPolicy):
    """Index policy whose index is the largest mean of any law with E|X|^(1+eps) <= u that an arm's rewards do not exclude.

    It is asymptotically optimal, constants included, when eps and u are known. If rewards contradict u, an index is infinite
    (counted in ``infeasible``). All rewards are kept. Centre rewards near zero: the index depends on the origin.

    Parameters
    ----------
    eps, u
        The class of laws: E|X|^(1+eps) <= u for every arm, eps in (0, 1].
    batch
        The best arm, with N rewards, is pulled ``ceil(batch N)`` times (at least once) before indices are computed again. The
        authors' 0.1 makes the cost nearly proportional to T; with 0 it is of order T^2.
    threshold
        ``"proved"``: the budget of an index is log t + 2 log log t + 2 log(1 + N) + 1, for which the bound is proved. ``"log"``:
        it is log t, as in the authors' experiments, with less regret in practice but no proof.

    Guarantee
    ---------
    With ``threshold="proved"`` regret is at most ``(1 + batch) sum_i gap_i / KLinf(arm_i, best mean) log T``, to first order in
    log T, where KLinf(law, m) is the least divergence from the arm's law to a law of the class with mean at least m. With batch = 0
    no consistent policy does better. No worst-case bound is stated. Requires eps and u. Anytime and deterministic.

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

    use_when = "you know eps and u, and want the least regret in the end"
    label = "KLinf-UCB"
    row_length = 3
    about = Facts(
        knows=("eps", "u"),
        bound="the regret theorem of Agrawal et al.",
        instance="sum log T / KLinf(arm, best mean)",
        matches=(True, None),
        adaptive=Adaptive(True, False, True, False),
        citation="Agrawal, Juneja, Koolen 2021",
        source="the paper",
        row=5,
        notes=(
            "KLinf(law, m) is the least divergence from the law to one with E|X|^(1+eps) <= u and mean at least m. As "
            "printed in the paper; in units of regret each term carries the factor gap.",
        ),
    )

    @property
    def facts(self) -> Facts:
        facts = super().facts
        if self.threshold == "proved":
            return facts
        return dataclasses.replace(facts, bound="", instance="", matches=(None, None))

    def validate(self) -> None:
        check_known(self)
        within(self.batch, "batch", 0.0, math.inf, owner="KLinfUCB")
        choice(self.threshold, "threshold", ("proved", "log"), owner="KLinfUCB")

    def params(self: Any) -> Any:
        """Return the parameters as numbers. The unit of rewards is the largest mean in the class."""
        unit = float(self.u) ** (1.0 / (1.0 + self.eps))
        proved = int(self.threshold == "proved")
        return params_of(eps=float(self.eps), unit=unit, batch=float(self.batch), proved=proved)

    def init(self, arms: int, horizon: int | None) -> Any:
        rows, pulls, lines, lead = super().init(arms, horizon)
        found = np.zeros((arms + 1, SOLUTION_LENGTH + 2))  # `estimate` uses the last row
        found[:, LEVEL] = -1.0
        run = np.array([-1, 0, -1, 0], dtype=np.int64)
        pool, slots = empty_store(arms, 2)
        return state_of(arms=rows, found=found, pool=pool, slots=slots, pulls=pulls, run=run, lines=lines, lead=lead)

    def forget_choice(self, state: Any) -> None:
        super().forget_choice(state)
        state.run[CHOSEN] = -1

    def paused(self, state: Any, arm: int) -> None:
        """End the arm's batch. If a single choice excludes the arm, its batch goes on afterwards."""
        if state.run[ARM] == arm:
            state.run[LEFT] = 0

    def counters(self, state: Any) -> dict[str, int]:
        return {"infeasible": int(state.run[INFEASIBLE])}

    rewards = staticmethod(stored_rewards)
    select = staticmethod(partial(select_batched))

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """Count the pull, also in its batch. The first pull of the chosen arm starts a batch, which ignores pulls of other arms."""
        if s.run[LEFT] > 0:
            if arm == s.run[ARM]:
                s.run[LEFT] -= 1
        elif arm == s.run[CHOSEN]:
            s.run[ARM] = arm
            s.run[LEFT] = max(math.ceil(min(p.batch * s.slots[arm, USED] * ROUNDING, LONGEST)), 1) - 1
        s.run[CHOSEN] = -1
        return take_pull(p, s, arm)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        x = min(max(reward / p.unit, -FARTHEST), FARTHEST)
        power = abs(x) ** (1.0 + p.eps)
        column = append(s.slots, arm)
        s.pool[REWARD, column] = x
        s.pool[POWER, column] = power
        s.arms[arm, SUM] += reward
        s.arms[arm, UNITS] += x
        s.arms[arm, POWERS] += power
        s.found[arm, LEVEL] = -1.0

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, SUM] / s.slots[arm, USED]

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        if look_up(p, s, arm, arm, level) and s.found[arm, VALUE] == math.inf:
            s.run[INFEASIBLE] += 1
        return p.unit * s.found[arm, VALUE]

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent in log t of the bound that the last solution gives for every t."""
        if s.found[arm, VALUE] == math.inf:
            return math.inf, 0.0, math.inf
        n = float(s.slots[arm, USED])
        rate = (1.0 + 2.0 / level) / n if p.proved != 0 else 1.0 / n
        slope = math.exp(-budget(p, n, level)) * s.found[arm, GEOMETRIC] * rate
        height = s.found[arm, VALUE] + LOOSE * (1.0 + s.found[arm, TOP])
        return p.unit * height, p.unit * slope, math.inf

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        """Fill in the sample mean and the index. It is solved in the last row, to keep the starting point of the next search."""
        out[0] = math.nan
        out[1] = math.inf
        if s.slots[arm, USED] > 0:
            out[0] = s.arms[arm, SUM] / s.slots[arm, USED]
            last = s.arms.shape[0]
            for j in range(s.found.shape[1]):
                s.found[last, j] = s.found[arm, j]
            look_up(p, s, arm, last, log_time(s))
            out[1] = p.unit * s.found[last, VALUE]


def budget(p: Any, n: float, level: float) -> float:
    """Return C = threshold / N, with level = log t."""
    threshold = level
    if p.proved != 0:
        threshold += 2.0 * math.log(level) + 2.0 * math.log(1.0 + n) + 1.0
    return threshold / n


@out_of_line
def look_up(p: Any, s: Any, arm: int, row: int, level: float) -> bool:
    """Put the arm's solution at this level into a row of ``found``, and return whether it was computed."""
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
