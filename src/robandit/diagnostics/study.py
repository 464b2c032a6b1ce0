"""All that recorded rewards say, arm by arm: means, tails, skewness, and which policy would suit them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robandit.diagnostics.assumption import Nonpositivity, judge
from robandit.diagnostics.part import Part, at_hand, rewards
from robandit.diagnostics.recommend import ALPHA, Recommendation, advise
from robandit.diagnostics.resolution import Resolution, limits, resolution
from robandit.diagnostics.tails import METHODS, TailIndex, TailPath, tail_index, tail_path
from robandit.errors import InvalidInput, NoThresholdError
from robandit.kernel.types import Floats
from robandit.recorded.summary import ArmRecord, Recorded
from robandit.wording import counted

__all__ = ["ArmStudy", "Concentration", "Mean", "Study", "Tail", "study"]

DELTA = 0.05
SEED = 8
Variance = Literal["light", "finite", "infinite", "undecided", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """An estimate of the mean (or the median) with its 95 % limits and what they assume; infinite where there is no limit."""

    name: str
    value: float
    """NaN where it cannot be computed; ``note`` says why."""
    low: float
    high: float
    assumed: str
    """What the limits need; empty: there are none."""
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """A side of an arm's rewards, seen from their median, by three estimators."""

    side: str
    hill: TailIndex
    moment: TailIndex
    pickands: TailIndex
    paths: tuple[TailPath, ...]
    """For many k, in the same order; without points where there are too few values."""

    @property
    def variance(self) -> Variance:
        """What the side says about the variance.

        The moment estimator decides, since it sees light tails too; Hill's must agree unless the tail may be light, and Pickands'
        wide interval must not speak against it.
        """
        moment, hill, pickands = self.moment, self.hill, self.pickands
        if math.isnan(moment.index):
            return "unknown"
        if moment.light:
            return "light"
        if moment.high == math.inf:
            return "undecided"
        if moment.low > 2.0 and hill.low > 2.0 and not pickands.high <= 2.0:
            return "finite"
        if moment.high < 2.0 and hill.high < 2.0 and not pickands.low >= 2.0:
            return "infinite"
        return "undecided"

    @property
    def agree(self) -> bool | None:
        """Whether the three intervals have a point in common; None if fewer than two are known."""
        known = [each for each in (self.hill, self.moment, self.pickands) if not math.isnan(each.index)]
        return max(each.low for each in known) <= min(each.high for each in known) if len(known) > 1 else None

    @property
    def words(self) -> str:
        """The verdict, as a sentence without its end."""
        moment = self.moment
        if self.variance == "unknown":
            return f"unknown: {moment.note}"
        if self.variance == "light":
            said = "no heavy tail visible"
            if moment.note:
                return f"{said}: {moment.note}"
            more = f": Hill's {self.hill.index:.2f} supposes a power" if math.isfinite(self.hill.index) else ""
            return said + (more if self.agree is False else "")
        said = {
            "finite": "heavy, but the variance exists",
            "infinite": "heavy: the variance is infinite",
            "undecided": "not decided whether the variance exists",
        }[self.variance]
        if moment.high <= 1.0:
            said = "so heavy that there is no mean"
        elif moment.low <= 1.0:
            said += ", perhaps not even the mean"
        if self.agree is False:
            said += "; the three estimators disagree, so it is no clean power: look at other k"
        return said


@dataclass(frozen=True, kw_only=True)
class Concentration:
    """The share of the sum of |reward| that is in the largest ones."""

    first: float
    """Of the largest one. All three are NaN if all rewards are 0."""
    ten: float
    percent: float
    """Of the largest 1 %, rounded up to a whole number of rewards."""
    exact: bool
    """Whether from all rewards, and not from a sample."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmStudy:
    """What the rewards of an arm are like."""

    record: ArmRecord
    median: float
    means: tuple[Mean, ...]
    """The sample mean first, then the trimmed mean, the median of means, and the median itself."""
    left: Tail
    right: Tail
    concentration: Concentration
    about_zero: Nonpositivity
    about_median: Nonpositivity

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.record.arm

    @property
    def n(self) -> int:
        """Rewards on record."""
        return self.record.n

    @property
    def zeros(self) -> float:
        """The share of rewards that are 0."""
        return self.record.zeros / self.record.n

    @property
    def skew(self) -> str:
        """What truncated non-positivity about the median says, in words."""
        return {
            "contradicted": "right-skewed",
            "not contradicted": "not right-skewed",
            "too few values": "too few values",
        }[self.about_median.verdict]


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What a table of recorded rewards says."""

    recorded: Recorded
    arms: tuple[ArmStudy, ...]
    """In the order of their names."""
    advice: Recommendation
    """For the arm with the highest mean."""
    resolution: Resolution
    also: tuple[Recommendation, ...] = ()
    """For arms that may be the best, too, as far as the rewards can tell, where another policy suits them."""

    @property
    def headline(self) -> str:
        """The tails of all arms in a sentence."""
        total = len(self.arms)
        heavy = [arm for arm in self.arms if "infinite" in (arm.left.variance, arm.right.variance)]
        doubt = [
            arm for arm in self.arms if arm not in heavy and "undecided" in (arm.left.variance, arm.right.variance)
        ]
        finite = [
            arm for arm in self.arms if arm not in heavy + doubt and "finite" in (arm.left.variance, arm.right.variance)
        ]
        if heavy:
            more = f", of {len(doubt)} more it may be" if doubt else ""
            return f"Heavy tails: the variance of {_of(len(heavy), total)} is infinite{more}."
        if doubt:
            return f"Perhaps heavy tails: whether the variance of {_of(len(doubt), total)} exists is not decided."
        if finite:
            return f"Heavy tails, but not so heavy that the variance is infinite, in {_of(len(finite), total)}."
        if all(arm.left.variance == arm.right.variance == "unknown" for arm in self.arms):
            return "Tails unknown: no arm has enough rewards to see them."
        return "No heavy tails are visible."


def study(
    recorded: Recorded, progress: Callable[[int, int], None] | None = None, *, table: Floats | None = None
) -> Study:
    """Everything that is to be said about recorded rewards.

    Parameters
    ----------
    recorded
        From `open_records(...).summary()`, or from memory with `Recorded.of`.
    progress
        Called with the number of arms done and of all arms, after each.
    table
        The reward of every arm (in the order of their names) at every time, if there is one: arms are then compared time by time.

    Examples
    --------
    >>> from robandit.laws import Pareto
    >>> from robandit.recorded.summary import Recorded
    >>> slow = -Pareto(tail=1.5).sample(30_000, seed=0)
    >>> found = study(Recorded.of({"fast": slow + 1.0, "slow": slow}))
    >>> print(found.headline)
    Heavy tails: the variance of 2 of 2 arms is infinite.
    >>> found.arms[0].left.words
    'heavy: the variance is infinite'
    >>> found.arms[0].right.words
    "no heavy tail visible: Hill's 79.16 supposes a power"
    >>> found.advice.case
    'left-skewed or symmetric'
    """
    if not isinstance(recorded, Recorded):
        raise InvalidInput(
            f"recorded is a {type(recorded).__name__}: pass Recorded.of(a mapping from arm to rewards), or the summary() of records"
        )
    arms = []
    for record in recorded.arms:
        arms.append(_arm(record))
        if progress is not None:
            progress(len(arms), len(recorded.arms))
    samples = {record.arm: rewards(record) for record in recorded.arms}
    found = resolution(samples, table=table)
    advice = advise(samples, found.best)
    others = (advise(samples, arm) for arm in found.rivals)
    return Study(
        recorded=recorded,
        arms=tuple(arms),
        advice=advice,
        resolution=found,
        also=tuple(each for each in others if each.policy != advice.policy),
    )


def _arm(record: ArmRecord) -> ArmStudy:
    known = rewards(record)
    values = at_hand(known)
    left, right = (_tail(known, side) for side in ("left", "right"))
    about_median = judge(values, "median", ALPHA)
    return ArmStudy(
        record=record,
        median=float(np.median(values)),
        means=_means(record, known, about_median, judge(-values, "median", ALPHA)),
        left=left,
        right=right,
        concentration=_concentration(record, known),
        about_zero=judge(values, 0.0, ALPHA),
        about_median=about_median,
    )


def _tail(values: Floats | Part, side: str) -> Tail:
    found = [tail_index(values, side, method, about="median") for method in METHODS]  # type: ignore[arg-type]
    paths = [tail_path(values, side, method, about="median") for method in METHODS]  # type: ignore[arg-type]
    return Tail(side=side, hill=found[0], moment=found[1], pickands=found[2], paths=tuple(paths))


# --- means --------------------------------------------------------------------------------------------------------------


def _means(record: ArmRecord, known: Floats | Part, above: Nonpositivity, below: Nonpositivity) -> tuple[Mean, ...]:
    from robandit.estimators import median_of_means

    values = at_hand(known)
    low, high, said = limits(known, 1.0 - DELTA)
    low, high = min(low, record.mean), max(high, record.mean)  # the record's mean is rounded otherwise
    unknown = math.isnan(low)
    plain = Mean(
        name="sample mean",
        value=record.mean,
        low=-math.inf if unknown else low,
        high=math.inf if unknown else high,
        assumed="" if unknown else said,
        note=said if unknown else "",
    )
    blocks = Mean(
        name="median of means",
        value=median_of_means(_shuffled(values), delta=DELTA).value,
        low=-math.inf,
        high=math.inf,
        assumed="",
        note="no limits: they need a known moment",
    )
    return plain, _trimmed(values, above, below), blocks, _median(values)


def _trimmed(values: Floats, above: Nonpositivity, below: Nonpositivity) -> Mean:
    """AdaR-UCB's mean about the median; its upper limit unless right skewness is seen, its lower one unless left skewness is."""
    from robandit.estimators import adaptive_trimmed_mean

    name = "trimmed mean"
    if len(values) < 3:  # one for the threshold, two for a spread
        return Mean(name=name, value=math.nan, low=-math.inf, high=math.inf, assumed="", note=_short_of(values))
    try:
        up, down = (
            adaptive_trimmed_mean(each, delta=DELTA / 2.0, seed=SEED, bonus="likelihood", center="median")
            for each in (values, -values)
        )
    except NoThresholdError:
        return Mean(name=name, value=math.nan, low=-math.inf, high=math.inf, assumed="", note=_short_of(values))
    seen = (above.verdict == "contradicted", below.verdict == "contradicted")
    assumed = {
        (False, False): "no skewness (none is seen)",
        (True, False): "no left skewness (none is seen)",
        (False, True): "no right skewness (none is seen)",
        (True, True): "",
    }[seen]
    notes = {
        (True, False): "no upper limit: right-skewed",
        (False, True): "no lower limit: left-skewed",
        (True, True): "no limits: skewed both ways",
    }
    return Mean(
        name=name,
        value=up.value,
        low=-math.inf if seen[1] else -down.upper,
        high=math.inf if seen[0] else up.upper,
        assumed=assumed,
        note=notes.get(seen, ""),
    )


def _shuffled(values: Floats) -> Floats:
    """Blocks of consecutive rewards would have the means of seasons, and their median is another thing."""
    return np.random.default_rng(SEED).permutation(values)


def _short_of(values: Floats) -> str:
    differ = int(np.count_nonzero(values != np.median(values)))
    return f"too few values for it: {counted(len(values), 'value')}, of which {differ} differ from the median"


def _median(values: Floats) -> Mean:
    """With the order statistics that hold it with probability 0.95, whatever the law."""
    from scipy.special import bdtr

    ordered, n = np.sort(values), len(values)
    low, high, note = -math.inf, math.inf, ""
    rank = int(n / 2.0 - 0.98 * math.sqrt(n)) + 2  # near the greatest rank r with P(Binomial(n, 1/2) < r) <= 0.025
    while rank > 0 and bdtr(rank - 1, n, 0.5) > DELTA / 2.0:
        rank -= 1
    if rank > 0:
        low, high = float(ordered[rank - 1]), float(ordered[n - rank])
    else:
        note = f"no limits from {counted(n, 'value')}"
    assumed = "independent rewards" if rank > 0 else ""
    return Mean(name="median", value=float(np.median(ordered)), low=low, high=high, assumed=assumed, note=note)


# --- the largest ----------------------------------------------------------------------------------------------------------


def _concentration(record: ArmRecord, known: Floats | Part) -> Concentration:
    """From all rewards where the record allows it: its extremes are exact, and the sum is if all rewards have the same sign."""
    size = max(abs(record.least), abs(record.greatest))
    if size == 0.0:
        return Concentration(first=math.nan, ten=math.nan, percent=math.nan, exact=True)
    part = isinstance(known, Part)
    values = np.concatenate([known.extremes, known.body]) if isinstance(known, Part) else known
    stands = np.ones(len(values))  # for so many rewards
    if isinstance(known, Part):
        stands[len(known.extremes) :] = known.inside / len(known.body)
    order = np.argsort(-np.abs(values), kind="stable")
    sizes, stands = np.abs(values[order] / size), stands[order]
    same = record.least >= 0.0 or record.greatest <= 0.0
    total = abs(record.mean / size) * record.n if part and same else float(sizes @ stands)
    first, ten, percent = (_largest(sizes, stands, count) / total for count in (1, 10, -(-record.n // 100)))
    exact = not part or (same and -(-record.n // 100) <= min(len(record.largest), len(record.smallest)))
    return Concentration(first=min(first, 1.0), ten=min(ten, 1.0), percent=min(percent, 1.0), exact=exact)


def _largest(sizes: Floats, stands: Floats, count: int) -> float:
    """The sum of the largest so many, where a size may stand for several."""
    taken = np.minimum(stands, np.maximum(count - (np.cumsum(stands) - stands), 0.0))
    return float(sizes @ taken)


def _of(some: int, total: int) -> str:
    if total == 1:
        return "the arm"
    return f"{some} of {total} arms"
