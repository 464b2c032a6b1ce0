"""UCB-V (Audibert, Munos, Szepesvari 2009)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.running_moments import COUNT, MOMENTS, add_reward, mean_of, variance_of
from robandit.policies.assumptions import BOUNDED, NOTHING
from robandit.policies.base import Policy, check_number
from robandit.policies.facts import Facts
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried

__all__ = ["UCBV"]

LOW, HIGH = 0, 1
SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """The range (0: the observed one), zeta, and 3 c zeta."""

    range: float
    zeta: float
    reach: float


class State(NamedTuple):
    """Moments of the arms; smallest and largest reward of all; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, MOMENTS)
    seen: Floats  # LOW, HIGH
    pulls: Ints
    lines: Floats
    lead: Ints


class UCBV(Policy):
    """Optimism on the sample mean with the sample variance: UCB1 that notices when rewards vary little.

    Use it when rewards are bounded and most arms vary less than the bound allows. With heavy tails there is no range; the default
    then takes the spread of the rewards seen so far, which is a NEGATIVE CONTROL: it shows what is lost when an algorithm for
    bounded rewards is run on heavy tails, and nothing is proved about it.

    Parameters
    ----------
    range
        Length of an interval that holds all rewards, or ``"observed"``: largest minus smallest reward of all arms so far, without
        guarantee. `informed_by` replaces ``"observed"`` by the true range if all arms are bounded.
    zeta
        Exploration: E = zeta log t. The analysis asks for more than 1.
    c
        Factor of the range in ``mean + sqrt(2 V E/n) + 3 c range E/n``.

    Guarantee
    ---------
    Regret grows as the sum over arms of ``(variance/gap + range) log T``, if all rewards lie in an interval of length
    ``range``. Must know: the range. With ``range="observed"``: none. Anytime, not random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> policy = rb.UCBV().informed_by(problem)
    >>> policy.range
    1.0
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 300)  # uniform play: 300
    True

    References
    ----------
    J.-Y. Audibert, R. Munos, C. Szepesvari. Exploration-exploitation tradeoff using variance estimates in multi-armed bandits.
    Theoretical Computer Science 410, 2009.
    """

    range: float | Literal["observed"] = "observed"
    zeta: float = 1.2
    c: float = 1.0

    label = "UCB-V"
    columns = ("mean", "index", "variance")
    about = Facts(
        knows=("range",),
        assumption=BOUNDED,
        bound="Audibert et al., 2009",
        instance="sum (variance/gap + range) log T",
        title="UCB-V",
        citation="Audibert, Munos, Szepesvari 2009",
    )

    @property
    def facts(self) -> Facts:
        """Nothing is proved about an observed range."""
        if self.range != "observed":
            return self.about if self.zeta > 1.0 else dataclasses.replace(self.about, bound="", instance="")
        return dataclasses.replace(
            self.about,
            knows=(),
            assumption=NOTHING,
            bound="",
            instance="",
            title="UCB-V, observed range",
            notes=(
                "A negative control: the range is the spread of the rewards seen so far, and nothing is proved. With the true "
                "range, which must be known: sum (variance/gap + range) log T.",
            ),
        )

    @property
    def name(self) -> str:
        """An observed range is said, since it is not the algorithm of the paper."""
        return super().name.replace("UCB-V", "UCB-V, observed range", 1) if self.range == "observed" else super().name

    def validate(self) -> None:
        """Positive numbers, or the word."""
        if isinstance(self.range, str):
            if self.range != "observed":
                raise InvalidInput(f"UCBV: range = {self.range!r} must be 'observed' or a number > 0")
        elif self.range is None:
            raise InvalidInput("UCBV: range = None must be 'observed' or a number > 0")
        else:
            check_number("UCBV", "range", self.range, above=0.0)
        check_number("UCBV", "zeta", self.zeta, above=0.0)
        check_number("UCBV", "c", self.c, least=0.0)

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        """The problem's range in place of an observed one, if its arms are bounded; else the policy as it is."""
        told = super().informed_by(problem, eps=eps)
        if told.range != "observed":
            return told
        ends = [end for law in problem.laws for end in law.support]
        spread = float(max(ends) - min(ends))
        return dataclasses.replace(told, range=spread) if 0.0 < spread < math.inf else told

    def params(self) -> Params:
        """The word becomes a number."""
        length = 0.0 if isinstance(self.range, str) else float(self.range)
        return Params(length, float(self.zeta), 3.0 * float(self.c) * float(self.zeta))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, MOMENTS)), np.array([math.inf, -math.inf]), no_pulls(arms), *lazy_state(arms))

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index; t counts the pull that is about to be made."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s))

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Learn the arm's moments and, perhaps, a wider range."""
        row = s.arms[arm]
        add_reward(row, reward)
        if row[COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)
        if reward < s.seen[LOW] or reward > s.seen[HIGH]:
            widen(p, s, reward)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean, index and sample variance."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = out[2] = math.nan
            out[1] = math.inf
        else:
            out[0] = mean_of(s.arms[arm])
            out[1] = index(p, s, arm, log_time(s))
            out[2] = variance_of(s.arms[arm])


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


@out_of_line
def widen(p: Params, s: State, reward: float) -> None:
    """A record: an observed range is wider from now on, for all arms, so no line holds."""
    s.seen[LOW] = min(s.seen[LOW], reward)
    s.seen[HIGH] = max(s.seen[HIGH], reward)
    if p.range == 0.0:
        for arm in range(s.arms.shape[0]):
            touched(s.lines, s.lead, arm)


def widths(p: Params, s: State, arm: int, level: float) -> tuple[float, float]:
    """sqrt(2 V E/n) and 3 c range E/n, with level = log t."""
    n = s.arms[arm, COUNT]
    length = p.range if p.range > 0.0 else s.seen[HIGH] - s.seen[LOW]
    return math.sqrt(2.0 * variance_of(s.arms[arm]) * p.zeta * level / n), p.reach * length * level / n


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Mean plus both widths."""
    spread, reach = widths(p, s, arm, level)
    return mean_of(s.arms[arm]) + spread + reach


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The index is concave in the level, so its tangent stays above it until the range grows."""
    spread, reach = widths(p, s, arm, level)
    mean = mean_of(s.arms[arm])
    value = mean + spread + reach
    if level <= 0.0:
        return value, 0.0, 0.0
    slack = SLACK * (abs(mean) + spread + reach)
    return value + slack, (0.5 * spread + reach) / level, math.inf
