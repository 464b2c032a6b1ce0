"""Recommends a policy by a few fixed rules, with the reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from robandit import validation
from robandit.diagnostics.costs import sign_question
from robandit.diagnostics.profile import Profile
from robandit.diagnostics.samples import sample
from robandit.diagnostics.words import Words, words
from robandit.errors import InvalidInput, formatted
from robandit.hints import guided
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD, playable
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.laws.median import law_median
from robandit.notebook import preformatted
from robandit.policies import UCBV, AdaKLUCB, KLinfUCB, Policy
from robandit.policies.assumptions import NORMAL
from robandit.problems import Problem
from robandit.wording import counted

FEW = 256  # with fewer rewards, the test (on half of them) misses strong skewness more often than not
# UCB-V's width is sqrt(2.4 V L / n) + 3.6 R L / n. For a range R of 40 standard deviations, the second part is the
# larger one until the arm has 8,600 L rewards (L = log t). For larger ranges learning is slow, and the advice says so.
WIDE = 40.0
Pair = tuple[float, float]
RewardCase = Literal["left-skewed or symmetric", "right-skewed", "few rewards"]
CostCase = Literal["right-skewed or symmetric", "left-skewed", "few costs"]
Case = Literal["known moments", "bounded"] | RewardCase | CostCase


@dataclass(frozen=True)
class Recommendation:
    """A policy, and the reasons for it."""

    policy: Policy
    reasons: tuple[str, ...]
    case: Case
    """The rule that decided."""
    arm: Any = None
    """The arm whose rewards decided, if there are several arms."""
    question: str = ""
    """Whether the rewards are costs, if they look like costs and ``minimize`` is not set. Answer it first."""

    def __repr__(self) -> str:
        return f"<Recommendation: {self.policy.name} ({self.case}), {counted(len(self.reasons), 'reason')}>"

    def _repr_html_(self) -> str:
        """Return what a notebook displays."""
        return preformatted(str(self))

    def __str__(self) -> str:
        """Return the question, the policy and its reasons, wrapped for a terminal."""
        lines = wrap(self.question, 100, break_on_hyphens=False)
        lines += [f"Take {self.policy.name} ({self.case}):"]
        for reason in self.reasons:
            lines += wrap(reason, 100, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(lines)


@guided
def recommend(
    rewards_or_problem: Any,
    *,
    eps: float | None = None,
    u: float | None = None,
    bounds: tuple[float, float] | None = None,
    minimize: bool = False,
) -> Recommendation:
    """Recommend a policy for these rewards or this problem, with the reasons in words.

    The first rule that applies decides. The result is deterministic.

    1. ``eps`` and ``u`` are given: KLinf-UCB, which has the lowest possible regret when they are known.
    2. ``bounds`` are given, or all laws of the problem are bounded: UCB-V. The reasons warn of slow learning if the range is more
       than 40 standard deviations of the most variable arm.
    3. There are too few rewards (fewer than 256, or fewer than 128 in the tested half that differ from the centre), and no test
       finds them skewed: AdaKL-UCB. The reasons say so if they are probably right-skewed, since all that differ from the median
       are above it.
    4. Truncated non-positivity of the leading arm about its median holds (problem) or is not contradicted (rewards,
       confidence 0.99): AdaKL-UCB. The leading arm has the largest median of means; for a problem it is the best arm.
    5. Otherwise rewards are right-skewed: AdaKL-UCB, for which nothing is proved. The reasons name the alternatives: ForceMoM,
       which has a guarantee without an assumption, a cap of the rewards, or a moment bound.

    If no reward is negative and their right tail is long, the result first asks whether they are costs (``question``).
    Costs that are minimised are judged as rewards of minus the cost. All sides and numbers of the answer are those of the costs.

    Parameters
    ----------
    rewards_or_problem
        The recorded rewards of an arm, a mapping from arm to rewards, or a `Problem`. The rewards of an arm are taken as
        independent: trends and patterns in their order are ignored.
    eps, u
        A moment bound that is certain: E|X|^(1+eps) <= u for every arm. Pass both or neither.
    bounds
        An interval that certainly contains every reward. Ignored if ``eps`` and ``u`` are given.
    minimize
        Whether the rewards are costs, which are minimised. A problem has its own sign.

    Examples
    --------
    >>> import robandit as rb
    >>> latency = rb.laws.LogNormal(mu=3.0, sigma=1.0).sample(5000, seed=0)
    >>> rb.recommend(latency, minimize=True).case
    'right-skewed or symmetric'
    >>> rb.recommend({"eu": latency, "us": latency + 5}, minimize=True).arm
    'eu'
    >>> rb.recommend(latency).case
    'right-skewed'
    >>> rb.recommend([0, 1, 1, 0, 1], bounds=(0, 1)).policy
    UCBV(range=1.0, zeta=1.2, c=1.0)
    >>> rb.recommend(rb.problems.pareto(means=[1.0, 2.0], tail=1.5, minimize=True)).case
    'right-skewed or symmetric'
    """
    known = _checked_moments(eps, u)
    interval = _checked_bounds(bounds)
    minimize = validation.flag(minimize, "minimize", owner="recommend")
    if isinstance(rewards_or_problem, Problem):
        if minimize and not rewards_or_problem.minimize:
            raise _contradicted("minimize", minimize, "this problem is maximised: pass Problem(laws, minimize=True)")
        return _for_problem(rewards_or_problem, known, interval)
    samples = _samples(rewards_or_problem)
    low, high = interval or (-math.inf, math.inf)
    for arm, values in samples.items():
        outside = np.flatnonzero((values < low) | (values > high))
        if len(outside):
            place = f"the {words(minimize).many}{_of(arm)} have {values[outside[0]]:g} at position {outside[0]}"
            raise _contradicted("bounds", bounds, f"{place}: widen the bounds, or omit them")
    profiles = {arm: Profile(values, minimize) for arm, values in samples.items()}
    advice = advise(profiles, leading(samples, minimize), known, interval)
    return replace(advice, question=sign_question(profiles.values()))


def _checked_moments(eps: Any, u: Any) -> Pair | None:
    if (eps is None) != (u is None):
        both = f"eps = {formatted(eps)} and u = {formatted(u)}"
        raise InvalidInput(
            f"{both}: pass both, since E|X|^(1+eps) <= u needs both, or neither", parameter="eps", value=eps
        )
    if eps is None:
        return None
    return validation.order(eps, owner="recommend"), validation.positive(u, "u", owner="recommend")


def _checked_bounds(bounds: Any) -> Pair | None:
    if bounds is None:
        return None
    ends = validation.numbers(bounds, "bounds")
    if len(ends) != 2 or not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
        rule = "two numbers in order: finite, the smaller one first"
        raise validation.invalid("bounds", bounds, rule, hint="such as (0, 1)")
    return ends[0], ends[1]


def _contradicted(name: str, value: Any, fact: str) -> InvalidInput:
    return InvalidInput(f"{name} = {formatted(value)}, but {fact}", parameter=name, value=value)


def _samples(given: Any) -> dict[Any, Floats]:
    if isinstance(given, Mapping):
        given = validation.mapping(given, "rewards", "a mapping from arm to rewards")
        if not given:
            raise validation.invalid("rewards", given, "the rewards of at least one arm")
        return {arm: _sample(values, f"rewards[{formatted(arm)}]") for arm, values in given.items()}
    if isinstance(given, Law):
        raise InvalidInput(f"{formatted(given)} is one law: pass a Problem with all arms, or a sample of it")
    if hasattr(given, "diagnose"):
        raise InvalidInput("this is a bandit, which keeps a sample of its rewards: use bandit.diagnose().advice")
    return {None: _sample(given, "rewards")}


def _sample(given: Any, name: str) -> Floats:
    values = sample(given, name)
    rule = f"0 or from {SMALLEST_REWARD:g} to {LARGEST_REWARD:g} in size"
    validation.check_items(values, playable(values), name, rule, hint="rewards are squared; scale them all")
    return values


def leading(samples: Mapping[Any, Floats], minimize: bool = False) -> Any:
    """Return the arm with the largest median of means (costs: the smallest); the first one in a tie."""
    if len(samples) == 1:
        return next(iter(samples))
    from robandit.estimators import median_of_means

    choose = min if minimize else max
    return choose(samples, key=lambda arm: median_of_means(samples[arm], delta=0.05).value)


def _of(arm: Any) -> str:
    return "" if arm is None else f" of {formatted(arm)}"


def advise(
    profiles: Mapping[Any, Profile], lead: Any, known: Pair | None = None, bounds: Pair | None = None, missed: int = 0
) -> Recommendation:
    """Return the advice for checked rewards (an arm may have none). ``missed`` counts unrecorded rewards of the leading arm."""
    profile = profiles[lead]
    kind = words(profile.minimize)
    if known is not None:
        return _with_known(known, bounds, _sample_moments(profiles, *known), lead, kind)
    if bounds is not None:
        spread = max((float(np.std(each.values)) for each in profiles.values() if len(each.values)), default=0.0)
        return _with_bounds(bounds, spread, lead, kind)
    verdict = profile.about_median
    if verdict and verdict.differ < FEW // 2 and profile.negated_about_median:
        return _with_few(profile, lead, missed)
    if verdict:
        return _adaptive(
            f"The {kind.many}{_of(lead)} are {kind.allowed}-skewed or symmetric, as far as {len(profile.values)} of them can tell: "
            f"{kind.assumption} {verdict}.",
            f"Their {kind.allowed} tail: {_tail(profile, kind.allowed)}. AdaKL-UCB needs neither the index nor any moment.",
            *((_for_normal(kind),) if _light(profiles) else ()),
            arm=lead,
            case=_CASES[kind.many][0],
        )
    two = "They take only two values: if no others are possible, pass bounds=(low, high)."
    return _adaptive(
        f"The {kind.many}{_of(lead)} are {kind.skewed}-skewed: {kind.assumption} is contradicted {verdict.point}: "
        f"{verdict.evidence}. {_trimmed(kind)}",
        f"Their {kind.skewed} tail: {_tail(profile, kind.skewed)}.",
        *_when_skewed(kind),
        *_cap(profile),
        "Or find eps and u with E|X|^(1+eps) <= u, and pass them.",
        *((two,) if len(np.unique(profile.values)) <= 2 else ()),
        arm=lead,
        case=_CASES[kind.many][1],
    )


# The assumption is met, contradicted, undecided.
_CASES: dict[str, tuple[Case, Case, Case]] = {
    "rewards": ("left-skewed or symmetric", "right-skewed", "few rewards"),
    "costs": ("right-skewed or symmetric", "left-skewed", "few costs"),
}
UNDECIDED: tuple[Case, ...] = tuple(cases[2] for cases in _CASES.values())
"""The cases of too few values to tell which way they are skewed."""


def _adaptive(*reasons: str, arm: Any, case: Case) -> Recommendation:
    return Recommendation(AdaKLUCB(), reasons, case, arm)


def _with_few(profile: Profile, lead: Any, missed: int) -> Recommendation:
    """Return the advice if too few rewards, or too few that differ from the median, leave the skewness undecided."""
    n, median, kind = len(profile.values), profile.median, words(profile.minimize)
    off, many, case = profile.values[profile.values != median], kind.many, _CASES[kind.many][2]
    count = f"There is only one {kind.one}" if n == 1 else f"There are only {n} {many}" if n else f"There are no {many}"
    count += _of(lead) if n else f"{_of(lead)} yet"
    if missed and not n:
        count = f"None of the {missed} {many}{_of(lead)} is on record: the bandit was loaded from a file without one"
    elif missed:
        count += f" on record (the {missed} before were not recorded)"
    if n >= FEW:
        differ = "only one differs" if len(off) == 1 else f"only {len(off)} differ" if len(off) else "none differs"
        count = f"Of the {n} {many}{_of(lead)} {differ} from {median:.4g}"
    if len(off) and np.all(off < median if profile.minimize else off > median):
        return _adaptive(
            f"{count}: too few to be sure which way they are skewed. But all that differ from {median:.4g} are {kind.beyond} it, "
            f"so they are probably {kind.skewed}-skewed.",
            *_when_skewed(kind),
            f"If you know an interval that contains all {many}, pass it as bounds: plain methods then suffice.",
            arm=lead,
            case=case,
        )
    reason = (
        f"{count}: too few to tell which way they are skewed. AdaKL-UCB works with either; ask again when "
        f"there are {FEW if n < FEW else 'more that differ'}."
    )
    return _adaptive(reason, arm=lead, case=case)


def _cap(profile: Profile) -> tuple[str, ...]:
    """Return the advice to cap rewards (costs: from below), or nothing if the cap changes no value or makes arms equal."""
    sign = -1.0 if profile.minimize else 1.0
    values, median = sign * profile.values, sign * profile.median
    above = values[values > median]
    cap = float(f"{np.quantile(above, 0.99):.4g}") if len(above) else median
    if not median < cap < np.max(values):
        return ()
    capped = f"max(cost, {-cap:.4g})" if profile.minimize else f"min(reward, {cap:.4g})"
    return (
        f"Or cap the {words(profile.minimize).one}, if that serves your goal: {capped} changes {np.mean(values > cap):.2%} of "
        "them. Then pass bounds, and plain methods suffice.",
    )


def _for_problem(problem: Problem, known: Pair | None, bounds: Pair | None) -> Recommendation:
    name, kind = problem.names[problem.best_arm], words(problem.minimize)
    if known is not None:
        eps, u = known
        least = problem.u(eps)
        if least > u:
            raise _contradicted("u", u, f"this problem has a moment E|X|^{1 + eps:g} of {least:g}, which is larger")
        return _with_known(known, bounds, f"The largest moment of this problem is {least:.4g}.", name, kind)
    support = (min(law.support[0] for law in problem.laws), max(law.support[1] for law in problem.laws))
    if bounds is not None and not (bounds[0] <= support[0] and support[1] <= bounds[1]):
        raise _contradicted("bounds", bounds, f"the laws of this problem reach from {support[0]} to {support[1]}")
    interval = bounds if bounds is not None else support
    if math.isfinite(interval[1] - interval[0]) and interval[0] < interval[1]:
        spread = max(math.sqrt(law.variance) for law in problem.laws)
        return _with_bounds(interval, spread, name, kind)
    medians = [(i, law_median(problem.reward_laws[i])) for i in problem.best_arms]
    verdicts = [(i, m, problem.reward_laws[i].truncated_nonpositivity(about=m)) for i, m in medians]
    arm, median, verdict = next((row for row in verdicts if row[2]), verdicts[0])  # one best arm suffices
    name, index = problem.names[arm], problem.reward_laws[arm].right_tail
    assumption, reason = f"{kind.assumption[0].upper()}{kind.assumption[1:]}", verdict.reason
    if problem.minimize:
        median, reason = 0.0 - median, f"for minus the cost, {reason}"
    if verdict:
        return _adaptive(
            f"{assumption} of the best arm ({name!r}) about its median {median:.4g} holds: {reason}.",
            f"The problem's tail index is {problem.tail_index:.4g}; AdaKL-UCB does not need it.",
            *((_for_normal(kind),) if NORMAL.holds_for(None, problem) else ()),
            arm=name,
            case=_CASES[kind.many][0],
        )
    return _adaptive(
        f"The best arm ({name!r}) is {kind.skewed}-skewed: {kind.assumption} about its median {median:.4g} fails: {reason}. "
        f"{_trimmed(kind)}",
        f"Its {kind.skewed} tail has the index {index:.4g}.",
        *_when_skewed(kind),
        f"Or cap the {kind.many} and pass bounds; or find eps and u with E|X|^(1+eps) <= u, and pass them.",
        arm=name,
        case=_CASES[kind.many][1],
    )


def _light(profiles: Mapping[Any, Profile]) -> bool:
    """Return whether every arm has enough rewards to see that both tails are light."""
    sides = ("left", "right")
    return all(len(each.values) >= FEW and all(each.tail(side).light for side in sides) for each in profiles.values())


def _for_normal(kind: Words) -> str:
    return (
        f"All tails look light. If the {kind.many} are close to normal, Thompson sampling (GaussianTS()) and NormalUCB() are "
        "alternatives. They have no guarantee if a huge loss is possible: one such loss of the best arm misleads them."
    )


def _trimmed(kind: Words) -> str:
    return (
        f"Policies that trim (AdaR-UCB, and AdaKL-UCB with another schedule) ignore the {kind.top} {kind.many}, and may never find "
        "an arm that is the best because of them."
    )


def _when_skewed(kind: Words) -> tuple[str, ...]:
    return (
        f"AdaKL-UCB compares arms like for like: an arm with few {kind.many} gets credit for rare ones, far {kind.beyond} the "
        f"rest, that it cannot have seen yet. Nothing is proved; the evidence is measured, on {kind.skewed}-skewed {kind.many} "
        "(docs/results/heavy.md).",
        f"If most {kind.many} are 0 or tiny, and few are far {kind.beyond} the rest, the problem stays hard: no policy measured "
        "finds the best arm in all runs (`orders` in docs/results/heavy.md).",
        "ForceMoM() is the alternative with a guarantee. It assumes nothing and needs no parameters. But it explores on a "
        "schedule, so its regret grows as T^(2/3) even on easy problems; its bound is in a preprint that is not peer-reviewed.",
    )


def _with_known(known: Pair, bounds: Pair | None, moments: str, lead: Any, kind: Words) -> Recommendation:
    eps, u = known
    reasons = [
        f"E|X|^{1 + eps:g} <= {u:g} is known. KLinf-UCB then has the lowest possible regret as T grows, constants included "
        f"(Agrawal, Juneja, Koolen 2021); it keeps all {kind.many}.",
        "That is asymptotic: up to T = 1e5, AdaKL-UCB, which needs no parameters, had the lower regret on the problems measured "
        "(docs/results/heavy.md).",
        moments,
        "RobustUCB needs the same, and its widths are so large that it is close to uniform play at usual horizons.",
    ]
    if bounds is not None:
        reasons.append("eps and u are used, and the bounds are ignored: omit eps and u to use the bounds.")
    return Recommendation(KLinfUCB(eps=eps, u=u), tuple(reasons), "known moments", lead)


def _sample_moments(profiles: Mapping[Any, Profile], eps: float, u: float) -> str:
    samples = {arm: each.values for arm, each in profiles.items() if len(each.values)}
    with np.errstate(over="ignore"):
        moments = {arm: float(np.mean(np.abs(values) ** (1.0 + eps))) for arm, values in samples.items()}
    arm = max(moments, key=lambda a: moments[a])
    text = f"The largest sample moment of order {1 + eps:g} is {moments[arm]:.4g}{_of(arm)}"
    if moments[arm] <= u:
        return text + ", within u."
    return f"{text}: ABOVE u. One huge value can cause that, but check u: if it is too small, there is no guarantee."


def _with_bounds(bounds: Pair, spread: float, lead: Any, kind: Words) -> Recommendation:
    length = bounds[1] - bounds[0]
    lower, upper = (
        bounds if kind.many == "rewards" else (0.0 - bounds[1], 0.0 - bounds[0])
    )  # policies learn minus the cost
    variance = f": the most variable arm has a standard deviation of {spread:.4g}, against a range of {length:g}"
    if spread == 0.0:
        variance = (
            f", which is unknown here: no arm shows any spread. If it is small against the range of {length:g}, the range "
            "dominates the bound and learning is slow: give bounds as tight as are certain"
        )
    reasons = [
        f"{kind.many.capitalize()} are bounded, in [{bounds[0]:g}, {bounds[1]:g}]: there is no heavy tail, and plain methods "
        "suffice.",
        f"UCB-V also uses the variance{variance}. UCB1(scale={length:g}) is simpler and ignores it.",
        f"IMED(family='bounded', upper={upper:g}) uses the whole law of each arm, and has the lowest possible regret as T grows, "
        f"constants included (Honda, Takemura 2015); it keeps all {kind.many}. MaillardSampling(family='bounded', lower={lower:g}, "
        f"upper={upper:g}) makes random choices whose probabilities have a closed form, for logs that are to be reused.",
    ]
    if length > WIDE * spread > 0.0:
        reasons.append(
            f"The range is large against the spread, {length / spread:.3g} standard deviations: it dominates the bound for a "
            "long time, so learning is slow. If the bounds are only a precaution, tighten or omit them."
        )
    return Recommendation(UCBV(range=length), tuple(reasons), "bounded", lead)


def _tail(profile: Profile, side: str) -> str:
    tail = profile.tail(side)
    if math.isnan(tail.index) or tail.light:
        return str(tail)
    doubt = "is probably" if tail.high < 2.0 else "may be"
    return f"index {tail}" + (f", so the variance {doubt} infinite" if tail.low <= 2.0 else "")
