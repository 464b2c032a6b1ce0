"""Which policy to take, by a few fixed rules, and why."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Set
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from robandit.diagnostics.assumption import judge
from robandit.diagnostics.part import Part, at_hand
from robandit.diagnostics.samples import sample
from robandit.diagnostics.tails import TailIndex, tail_index
from robandit.errors import InvalidInput, formatted
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.laws.median import law_median
from robandit.policies import UCBV, AdaKLUCB, ForceMoM, KLinfUCB, Policy
from robandit.policies.base import check_eps, check_number
from robandit.problems import Problem

__all__ = ["Recommendation", "advise", "recommend"]

ALPHA = 0.01
FEW = 256  # rewards: with fewer the test, for which half of them are left, misses strong skewness more often than not
# UCB-V's width is sqrt(2.4 V L / n) + 3.6 R L / n: for a range R of 40 standard deviations the second part is the
# larger one until the arm has 8,600 L rewards (L = log t). Beyond that learning is slow, and the advice says so.
WIDE = 40.0
Case = Literal["known moments", "bounded", "left-skewed or symmetric", "right-skewed", "few rewards"]


@dataclass(frozen=True)
class Recommendation:
    """A policy, and why this one."""

    policy: Policy
    reasons: tuple[str, ...]
    case: Case
    """The rule that decided."""
    arm: Any = None
    """The arm whose rewards decided, if there are several."""

    def __str__(self) -> str:
        """For a terminal."""
        lines = [f"Take {self.policy.name} ({self.case}):"]
        for reason in self.reasons:
            lines += wrap(reason, 100, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(lines)


def recommend(
    rewards_or_problem: Any,
    *,
    eps: float | None = None,
    u: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Recommendation:
    """The policy to take for these rewards or this problem, with the reasons in words.

    The first rule that applies decides; nothing is random.

    1. ``eps`` and ``u`` are given: KLinf-UCB, which loses the least that is possible when they are known.
    2. ``bounds`` are given, or all laws of the problem are bounded: UCB-V. Plain methods suffice; the reasons say so if
       the range is more than 40 standard deviations of the most variable arm, since learning is slow then.
    3. Fewer than 256 rewards, or fewer than 128 in the half that is tested differ from the centre, and no contradiction
       among them: AdaKL-UCB, with that caveat; ForceMoM if all that differ from the median are above it. (Rewards that
       are clearly left-skewed, by the same test of the negated ones, are not called few.)
    4. Truncated non-positivity of the leading arm about its median holds (a problem) or is not contradicted (rewards,
       confidence 0.99): AdaKL-UCB.
    5. Else rewards are right-skewed, and the assumption of the policies that adapt by themselves fails: ForceMoM,
       which assumes nothing; or a cap on the reward.

    The leading arm is that with the greatest median of means; of a problem it is the best arm.

    Parameters
    ----------
    rewards_or_problem
        The recorded rewards of an arm, a mapping from arm to rewards, or a `Problem`. The rewards of an arm are taken as
        independent, in any order: trends and patterns are not looked for. Rewards are maximised: give costs a minus sign.
    eps, u
        What is known for certain: E|X|^(1+eps) <= u for every arm. Both or none.
    bounds
        What is known for certain: every reward lies in this interval. Not used if ``eps`` and ``u`` are given.

    Examples
    --------
    >>> import robandit as rb
    >>> latency = -rb.laws.LogNormal(mu=3.0, sigma=1.0).sample(5000, seed=0)
    >>> rb.recommend(latency).case
    'left-skewed or symmetric'
    >>> rb.recommend({"eu": latency, "us": latency - 5}).arm
    'eu'
    >>> rb.recommend(-latency).case
    'right-skewed'
    >>> rb.recommend([0, 1, 1, 0, 1], bounds=(0, 1)).policy
    UCBV(range=1.0, zeta=1.2, c=1.0)
    >>> rb.recommend(rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)).case
    'left-skewed or symmetric'
    """
    known = _checked_moments(eps, u)
    interval = _checked_bounds(bounds)
    if isinstance(rewards_or_problem, Problem):
        return _for_problem(rewards_or_problem, known, interval)
    samples = _samples(rewards_or_problem)
    if interval is not None:
        for arm, values in samples.items():
            outside = np.flatnonzero((values < interval[0]) | (values > interval[1]))
            if len(outside):
                raise InvalidInput(
                    f"bounds = {bounds!r}, but the rewards{_of(arm)} have {values[outside[0]]:g} at position {outside[0]}: "
                    "widen the bounds, or leave them out"
                )
    return advise(samples, leading(samples), known, interval)


# --- input ----------------------------------------------------------------------------------------------------------


def _checked_moments(eps: Any, u: Any) -> tuple[float, float] | None:
    if (eps is None) != (u is None):
        raise InvalidInput(f"eps = {eps!r} and u = {u!r}: give both, since E|X|^(1+eps) <= u needs both, or none")
    if eps is None:
        return None
    eps, u = (value.item() if isinstance(value, np.generic) else value for value in (eps, u))
    check_eps("recommend", eps)
    check_number("recommend", "u", u, above=0.0)
    return float(eps), float(u)


def _checked_bounds(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    # a set has no order, and a text of two digits is not two numbers
    try:
        given = [] if isinstance(bounds, (Set, Mapping)) else list(bounds)
    except TypeError:
        given = []
    if len(given) != 2 or not all(isinstance(value, numbers.Real) for value in given):
        raise InvalidInput(f"bounds = {bounds!r} must be two numbers in order, such as (0, 1)")
    try:
        low, high = float(given[0]), float(given[1])
    except OverflowError:
        low = high = math.inf
    if not math.isfinite(high - low) or not low < high:
        raise InvalidInput(f"bounds = {bounds!r} must be two finite numbers, the smaller one first")
    return low, high


def _samples(given: Any) -> dict[Any, Floats]:
    if isinstance(given, Mapping):
        if not given:
            raise InvalidInput("rewards is an empty mapping: there must be at least one arm")
        return {arm: _sample(values, f"the rewards of {arm!r}") for arm, values in given.items()}
    if isinstance(given, Law):
        raise InvalidInput(f"{given!r} is one law: pass a Problem with all arms, or a sample of it")
    if hasattr(given, "diagnose"):
        raise InvalidInput(
            "this is a bandit, which keeps a sample of its rewards: use bandit.diagnose(), or its .advice"
        )
    return {None: _sample(given, "rewards")}


def _sample(given: Any, name: str) -> Floats:
    values = sample(given, name)
    beyond = np.flatnonzero(np.abs(values) > LARGEST_REWARD)
    if len(beyond):
        raise InvalidInput(
            f"{name} has {values[beyond[0]]:g} at position {beyond[0]}, beyond +-{LARGEST_REWARD:g}: rewards are squared, "
            "scale them all down"
        )
    return values


def leading(samples: Mapping[Any, Floats]) -> Any:
    """The arm with the greatest median of means; the first of several."""
    if len(samples) == 1:
        return next(iter(samples))
    from robandit.estimators import median_of_means

    return max(samples, key=lambda arm: median_of_means(samples[arm], delta=0.05).value)


def _of(arm: Any) -> str:
    return "" if arm is None else f" of {formatted(arm)}"


# --- rules ----------------------------------------------------------------------------------------------------------


def advise(
    samples: Mapping[Any, Floats | Part],
    lead: Any,
    known: tuple[float, float] | None = None,
    bounds: tuple[float, float] | None = None,
    missed: int = 0,
) -> Recommendation:
    """The advice for checked rewards; arms may have none. The named arm leads; so many of its rewards are not on record."""
    asides: list[str] = []
    if known is not None:
        return _with_known(known, bounds, _seen_moments(_all_at_hand(samples), *known), lead)
    if bounds is not None:
        seen = _all_at_hand(samples).values()
        spread = max((float(np.std(values)) for values in seen if len(values)), default=0.0)
        return _with_bounds(bounds, spread, lead)
    values, policy = at_hand(samples[lead]), AdaKLUCB()
    verdict = judge(values, "median", ALPHA)
    if verdict and verdict.differ < FEW // 2 and judge(-values, "median", ALPHA):
        return _with_few(values, lead, missed)
    if verdict:
        asides.append(
            f"The rewards{_of(lead)} are left-skewed or symmetric, as far as {len(values)} of them can tell: truncated "
            f"non-positivity {verdict}."
        )
        asides.append(
            f"Their left tail: {_tail(samples[lead], 'left')}. {policy.label} need not be told the index, nor any moment."
        )
        return Recommendation(policy, tuple(asides), "left-skewed or symmetric", lead)
    asides.append(
        f"The rewards{_of(lead)} are right-skewed: truncated non-positivity, which {policy.label} assumes, is contradicted "
        f"{verdict.point}: {verdict.evidence}. Such policies trim the largest rewards, and may never find out that these "
        "make an arm the best."
    )
    asides.append(f"Their right tail: {_tail(samples[lead], 'right')}.")
    asides.append(_WHY_FORCED)
    asides += _cap(values)
    asides.append("Or find eps and u with E|X|^(1+eps) <= u, and pass them.")
    if len(np.unique(values)) <= 2:
        asides.append("They take only two values: if that is all they can be, say so with bounds=(low, high).")
    return Recommendation(ForceMoM(), tuple(asides), "right-skewed", lead)


def _with_few(values: Floats, lead: Any, missed: int) -> Recommendation:
    """Too few rewards, or too few that are not the most common one, to tell how they are skewed."""
    n, policy = len(values), AdaKLUCB()
    one = "one reward" if n == 1 else f"{n} rewards"
    there = f"There {'is' if n == 1 else 'are'} only {one}{_of(lead)}" if n else f"There are no rewards{_of(lead)} yet"
    if missed and not n:
        there = (
            f"None of the {missed} rewards{_of(lead)} is on record: the bandit was loaded from a file without a record"
        )
    elif missed:
        there += f" on record (the {missed} before were not recorded)"
    median = float(np.median(values)) if n else math.nan
    off = values[values != median]
    if n >= FEW:
        differ = "only one differs" if len(off) == 1 else f"only {len(off)} differ" if len(off) else "none differs"
        there = f"Of the {n} rewards{_of(lead)} {differ} from {median:.4g}"
    if len(off) and np.all(off > median):
        reasons = (
            f"{there}: too few to be sure which way they are skewed. But all that differ from {median:.4g} are above it, so they "
            "are more likely right-skewed than not.",
            _WHY_FORCED,
            "If you know an interval that all rewards lie in, pass it as bounds: plain methods suffice then.",
            f"If rare large losses are to be expected as well, {policy.label} may be the better one; look again with more rewards.",
        )
        return Recommendation(ForceMoM(), reasons, "few rewards", lead)
    reason = (
        f"{there}: too few to tell which way they are skewed. {policy.label} is right unless they are right-skewed (revenue, "
        f"sales); look again when there are {FEW if n < FEW else 'more that differ'}."
    )
    return Recommendation(policy, (reason,), "few rewards", lead)


def _cap(values: Floats) -> list[str]:
    """The advice to cap rewards, unless the cap would change none of them, or remove what tells arms apart."""
    median = float(np.median(values))
    above = values[values > median]
    cap = float(f"{np.quantile(above, 0.99):.4g}") if len(above) else median
    if not median < cap < np.max(values):
        return []
    return [
        f"Or cap the reward, if that serves you as well: min(reward, {cap:.4g}) changes {np.mean(values > cap):.2%} of them. Then "
        "pass bounds, and plain methods suffice."
    ]


def _for_problem(
    problem: Problem, known: tuple[float, float] | None, bounds: tuple[float, float] | None
) -> Recommendation:
    name = problem.names[problem.best_arm]
    asides: list[str] = []
    policy = AdaKLUCB()
    if known is not None:
        eps, u = known
        least = problem.u(eps)
        if least > u:
            raise InvalidInput(f"u = {u:g} is too small: this problem has a moment E|X|^{1 + eps:g} of {least:g}")
        return _with_known(known, bounds, f"The largest moment of this problem is {least:.4g}.", name)
    support = (min(law.support[0] for law in problem.laws), max(law.support[1] for law in problem.laws))
    if bounds is not None and not (bounds[0] <= support[0] and support[1] <= bounds[1]):
        raise InvalidInput(f"bounds = {bounds!r}, but the laws of this problem reach from {support[0]} to {support[1]}")
    interval = bounds if bounds is not None else support
    if math.isfinite(interval[1] - interval[0]) and interval[0] < interval[1]:
        spread = max(math.sqrt(law.variance) for law in problem.laws)
        return _with_bounds(interval, spread, name)
    verdicts = [(i, law_median(problem.laws[i])) for i in problem.best_arms]
    checked = [(i, m, problem.laws[i].truncated_nonpositivity(about=m)) for i, m in verdicts]
    arm, median, verdict = next((row for row in checked if row[2]), checked[0])  # one best arm suffices
    name, law = problem.names[arm], problem.laws[arm]
    if verdict:
        asides.append(
            f"Truncated non-positivity of the best arm ({name!r}) about its median {median:.4g} holds: {verdict.reason}."
        )
        asides.append(f"The problem's tail index is {problem.tail_index:.4g}; {policy.label} need not be told it.")
        return Recommendation(policy, tuple(asides), "left-skewed or symmetric", name)
    asides.append(
        f"The best arm ({name!r}) is right-skewed: truncated non-positivity about its median {median:.4g}, which "
        f"{policy.label} assumes, fails: {verdict.reason}."
    )
    asides.append(f"Its right tail has the index {law.right_tail:.4g}.")
    asides.append(_WHY_FORCED)
    asides.append("Or cap the rewards and pass bounds; or find eps and u with E|X|^(1+eps) <= u, and pass them.")
    return Recommendation(ForceMoM(), tuple(asides), "right-skewed", name)


_WHY_FORCED = (
    "ForceMoM assumes nothing and must be told nothing. It explores on a schedule, so its regret grows as T^(2/3) even on easy "
    "problems; its bound stands in a preprint that is not peer-reviewed. Measured on right-skewed rewards against AdaKL-UCB: fewer "
    "lost runs, a higher mean regret (docs/results/heavy.md)."
)


def _with_known(known: tuple[float, float], bounds: tuple[float, float] | None, seen: str, lead: Any) -> Recommendation:
    eps, u = known
    reasons = [
        f"E|X|^{1 + eps:g} <= {u:g} is known. KLinf-UCB then has the least regret that is possible as T grows, constants included "
        "(Agrawal, Juneja, Koolen 2021); it keeps all rewards.",
        "That is for T without end: up to T = 1e5, AdaKL-UCB, which is told nothing, had the lower regret on the problems measured "
        "that satisfy its own assumption (rewards not right-skewed; docs/results/heavy.md).",
        seen,
        "RobustUCB must know the same, and its widths are so large that it is close to uniform play at usual horizons.",
    ]
    if bounds is not None:
        reasons.append(
            "Bounds were given, too: eps and u are used, the bounds are not. Leave out eps and u to use them."
        )
    return Recommendation(KLinfUCB(eps=eps, u=u), tuple(reasons), "known moments", lead)


def _seen_moments(samples: Mapping[Any, Floats], eps: float, u: float) -> str:
    moments = {arm: _moment(values, 1.0 + eps) for arm, values in samples.items() if len(values)}
    arm = max(moments, key=lambda a: moments[a])
    text = f"The largest sample moment of order {1 + eps:g} is {moments[arm]:.4g}{_of(arm)}"
    if moments[arm] <= u:
        return text + ", within u."
    return (
        text
        + ": ABOVE u. One huge value may do that, but look again at u: KLinf-UCB has no guarantee if it is too small."
    )


def _moment(values: Floats, order: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.mean(np.abs(values) ** order))


def _with_bounds(bounds: tuple[float, float], spread: float, lead: Any) -> Recommendation:
    length = bounds[1] - bounds[0]
    where = f"[{bounds[0]:g}, {bounds[1]:g}]"
    reasons = [f"Rewards are bounded, in {where}: there is no heavy tail, and plain methods suffice."]
    simpler = f"UCB1(scale={length:g}) is simpler and does not look at it."
    if spread == 0.0:
        reasons.append(
            f"UCB-V uses the variance, too, of which nothing has been seen: no arm shows any spread. If it is small against "
            f"the range of {length:g}, the range dominates the bound and learning is slow: give bounds as tight as are certain. "
            f"{simpler}"
        )
    else:
        reasons.append(
            f"UCB-V uses the variance, too: the most variable arm has a standard deviation of {spread:.4g}, against a range "
            f"of {length:g}. {simpler}"
        )
    if length > WIDE * spread > 0.0:
        reasons.append(
            f"The range is large against the spread, {length / spread:.3g} standard deviations: it dominates the bound for long, "
            "so learning is slow. If the bounds are only a precaution, tighten them or leave them out."
        )
    return Recommendation(UCBV(range=length), tuple(reasons), "bounded", lead)


# --- words and numbers ----------------------------------------------------------------------------------------------


def _tail(values: Floats | Part, side: Literal["left", "right"]) -> str:
    found: TailIndex = tail_index(values, side, "moment", about="median")
    if math.isnan(found.index) or found.light:
        return str(found)
    text = f"index {found}"
    return text + (", so the variance may be infinite" if found.low <= 2.0 else "")


def _all_at_hand(samples: Mapping[Any, Floats | Part]) -> dict[Any, Floats]:
    return {arm: at_hand(values) for arm, values in samples.items()}
