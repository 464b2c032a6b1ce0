"""Studies recorded rewards arm by arm (means, tails, skewness), and recommends a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from robandit.diagnostics.assumption import Nonpositivity
from robandit.diagnostics.costs import sign_question
from robandit.diagnostics.part import Part, rewards
from robandit.diagnostics.profile import Profile
from robandit.diagnostics.recommend import UNDECIDED, Recommendation, advise
from robandit.diagnostics.resolution import Resolution, limits, resolution
from robandit.diagnostics.tails import METHODS, TailIndex, TailPath, Variance, tail_path
from robandit.diagnostics.timeline import Drift, Timeline, Verdict
from robandit.errors import InvalidInput, NoThresholdError, formatted
from robandit.kernel.types import Floats
from robandit.notebook import preformatted
from robandit.objectives import MEAN, ObjectiveValue, objective_from, value_of
from robandit.validation import array, function, instance
from robandit.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robandit.diagnostics.diagnosis import KeptRewards
    from robandit.recorded import Log, Table
    from robandit.recorded.summary import ArmRecord, Recorded

DELTA = 0.05
OTHERWISE = "All else here is about means, the advice and the verdict included."
SEED = 8
_HEAVY: tuple[Variance, ...] = ("infinite", "undecided", "finite")  # the _heaviest first


@dataclass(frozen=True, kw_only=True)
class Mean:
    """An estimate of the mean, or of another objective, with its 95 % limits and their assumption. A missing limit is infinite."""

    name: str
    value: float
    """The estimate, or NaN if it cannot be computed. ``note`` has the reason."""
    low: float = -math.inf
    high: float = math.inf
    assumed: str = ""
    """The assumption of the limits; empty if there are none."""
    note: str = ""

    @classmethod
    def of(cls, found: ObjectiveValue) -> Mean:
        """Return the value of another objective as an estimate."""
        return cls(name=found.name, value=found.value, low=found.low, high=found.high, assumed="independent values")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """The tail on one side of an arm's median: the stated index, and two estimators for one k."""

    side: str
    stated: TailIndex
    """The index with an interval that allows for bias (``method="gpd"``). It decides the verdict."""
    hill: TailIndex
    moment: TailIndex
    paths: tuple[TailPath, ...]
    """The estimates for many k, in the same order; empty if there are too few values."""

    def __repr__(self) -> str:
        return f"<Tail: {self.side}, {self.words}>"

    @property
    def variance(self) -> Variance:
        """What the stated index says of the variance."""
        return self.stated.variance

    @property
    def words(self) -> str:
        """The same, as a phrase."""
        return self.stated.words


@dataclass(frozen=True, kw_only=True)
class Concentration:
    """The share of the largest one, ten and 1 % of the rewards in the sum of |reward|; NaN if all rewards are 0."""

    first: float
    ten: float
    percent: float
    exact: bool
    """Whether the shares are computed from all rewards, not from a sample."""


@dataclass(frozen=True, eq=False)
class ArmStudy:
    """The study of one arm's rewards."""

    record: ArmRecord
    median: float
    means: tuple[Mean, ...]
    """The sample mean, the trimmed mean, the median of means, and the median, in this order."""
    left: Tail
    right: Tail
    concentration: Concentration
    about_zero: Nonpositivity
    about_median: Nonpositivity

    def __repr__(self) -> str:
        return f"<ArmStudy {self.arm!r}: {self.n:,} values, median {self.median:g}; {self.skew}>"

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.record.arm

    @property
    def n(self) -> int:
        """The number of recorded rewards."""
        return self.record.n

    @property
    def zeros(self) -> float:
        """The share of zeros among the rewards."""
        return self.record.zeros / self.record.n

    @property
    def _heaviest(self) -> Variance:
        """The heavier of the two tails; "light" if neither is heavy, or both are unknown."""
        return next((each for each in _HEAVY if each in (self.left.variance, self.right.variance)), "light")

    @property
    def skew(self) -> str:
        """The result of the test of the assumption about the median, in words."""
        side = "left" if self.about_median.mirrored else "right"  # mirrored: costs
        skews = {"contradicted": f"{side}-skewed", "not contradicted": f"not {side}-skewed"}
        return skews.get(self.about_median.verdict, self.about_median.verdict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The study of a table of recorded rewards."""

    recorded: Recorded
    arms: tuple[ArmStudy, ...]
    """The arms, in the order of their names."""
    advice: Recommendation
    """The advice for the arm with the best mean."""
    resolution: Resolution
    also: tuple[Recommendation, ...] = ()
    """The advice for other arms that may be the best, if they are skewed in another way."""
    timeline: Timeline | None = None
    """The rewards in order of time, if it is known."""
    drift: Drift | None = None
    """The arms that changed with time; None if the order of time is not known."""
    values: tuple[ObjectiveValue, ...] = ()
    """The value of each arm, if the objective is not the mean."""

    def __str__(self) -> str:
        """Return what to check first (a forgotten sign, changes), the tails, the advice, and whether the best arm is known."""
        advice = replace(self.advice, question="")
        return "\n".join([*self.first_lines, self.headline, str(advice), str(self.verdict)])

    @property
    def first_lines(self) -> list[str]:
        """Sentences to read before any verdict: questions about the sign and the table, and which arms changed. Often empty."""
        question = [self.advice.question] if self.advice.question else []
        drift = self.drift.lines if self.drift is not None else []
        values = [*map(str, self.values), *([OTHERWISE] if self.values else [])]
        return [*question, *self.recorded.notes, *drift, *values]

    @property
    def verdict(self) -> Verdict:
        """Whether the best arm is known. Unlike ``resolution``, it accounts for arms that changed with time."""
        return Verdict(self.resolution, self.drift)

    def __repr__(self) -> str:
        return f"<Study: {counted(len(self.arms), 'arm')}, {self.recorded.rows:,} rows; take {self.advice.policy.name}>"

    def _repr_html_(self) -> str:
        """Return what a notebook displays."""
        return preformatted(str(self))

    def plot(self) -> Figure:
        """Return a Matplotlib figure of the tails: the share of rewards beyond each distance from the median, on logarithmic axes.

        A heavy tail is a straight line there. The figure shows the first eight arms. A notebook displays it; a script calls
        ``savefig`` on it.
        """
        from robandit.diagnostics.plot import tails_figure

        return tails_figure(self)

    @property
    def minimize(self) -> bool:
        """Whether the values are costs. All numbers have their sign; the assumption is tested on minus the costs."""
        return self.recorded.minimize

    @property
    def headline(self) -> str:
        """A sentence on the tails of all arms."""
        total = len(self.arms)
        heavy, doubt, finite = (sum(arm._heaviest == kind for arm in self.arms) for kind in _HEAVY)
        if heavy:
            more = f", of {doubt} more it may be" if doubt else ""
            return f"Heavy tails: the variance of {_of(heavy, total)} is likely infinite{more}."
        if doubt:
            return f"Perhaps heavy tails: the variance of {_of(doubt, total)} may be infinite."
        if finite:
            have = "has" if finite == 1 else "have"
            return f"{_of(finite, total).capitalize()} {have} heavy tails, but the variance is likely finite."
        if all(arm.left.variance == arm.right.variance == "unknown" for arm in self.arms):
            return "Tails unknown: no arm has enough values to see them."
        return "No heavy tails are visible."


def _of(some: int, total: int) -> str:
    return "the arm" if total == 1 else f"{some} of {total} arms"


def study(
    recorded: Recorded,
    progress: Callable[[int, int], None] | None = None,
    *,
    table: Floats | Table | None = None,
    log: Log | None = None,
    objective: str = "mean",
) -> Study:
    """Study recorded rewards.

    Parameters
    ----------
    recorded
        The result of `open_records(...).summary()` or of `Recorded.of`. It says whether the values are costs.
    progress
        A function that is called after each arm with the number of arms done and the number of all arms.
    table
        The reward (or cost) of every arm, in the order of their names, at every time, if known: arms are then compared time by
        time, and each is tested for changes. A `Table` also has the times.
    log
        The same rewards in order of time, if known: `open_records(..., time="when").log(times=True)`. Each arm is then tested for
        changes, and the verdict accounts for them.
    objective
        A quantile such as ``"p95"``, or a limit such as ``"within:2.0"``: the study begins with its value for each arm.

    Examples
    --------
    >>> from robandit.laws import Pareto
    >>> from robandit.recorded.summary import Recorded
    >>> slow = Pareto(tail=1.5).sample(30_000, seed=0)
    >>> found = study(Recorded.of({"fast": slow - 1.0, "slow": slow}, minimize=True))
    >>> print(found.headline)
    Heavy tails: the variance of 2 of 2 arms is likely infinite.
    >>> print(found.arms[0].right.words, "|", found.arms[0].left.words)
    heavy: the variance is likely infinite (index 1.28 to 1.65) | no heavy tail visible
    >>> found.advice.case
    'right-skewed or symmetric'
    """
    from robandit.recorded import Recorded, Table

    aim = objective_from(objective)
    if not isinstance(recorded, Recorded):
        hint = "pass Recorded.of(a mapping from arm to rewards), or the summary() of records"
        raise InvalidInput(f"recorded is a {type(recorded).__name__}: {hint}")
    function(progress, "progress", "a function that takes two numbers", owner="study")
    if log is not None:
        from robandit.recorded import Log

        instance(log, Log, "log", "a log, or None", hint="the log(times=True) of records")
    minimize = recorded.minimize
    profiles = {record.arm: Profile(rewards(record), minimize) for record in recorded.arms}
    arms = []
    for record in recorded.arms:
        arms.append(_arm(record, profiles[record.arm]))
        if progress is not None:
            progress(len(arms), len(recorded.arms))
    rows = _rows(table, tuple(profiles))
    comparison = resolution({arm: profile.rewards for arm, profile in profiles.items()}, table=rows, minimize=minimize)
    advice = advise(profiles, comparison.best)
    others = (advise(profiles, arm) for arm in comparison.rivals)
    also = tuple(each for each in others if each.case not in (advice.case, *UNDECIDED))
    timeline = None if log is None else Timeline.of_log(log)
    if rows is not None:
        times = (table.times, table.records) if isinstance(table, Table) else ()
        timeline = Timeline.of_table(rows, tuple(profiles), *times)
    return Study(
        recorded=recorded,
        arms=tuple(arms),
        advice=replace(advice, question=sign_question(profiles.values())),
        resolution=comparison,
        also=also,
        timeline=timeline,
        drift=None if timeline is None else timeline.drift(minimize=minimize),
        values=()
        if aim == MEAN
        else tuple(value_of(arm, each.values, aim, minimize=minimize) for arm, each in profiles.items()),
    )


def _rows(table: Floats | Table | None, arms: tuple[str, ...]) -> Floats | None:
    """Return the rewards of a table. It must have the same arms."""
    from robandit.recorded import Table

    if not isinstance(table, Table):
        return None if table is None else array(table, "table")
    if table.arms != arms:
        raise InvalidInput(f"table has the arms {formatted(table.arms)}, but the record has {formatted(arms)}")
    return table.rewards


def _arm(record: ArmRecord, profile: Profile) -> ArmStudy:
    means = (
        _sample_mean(record.mean, profile.rewards),
        trimmed(profile),
        _median_of_means(profile),
        _median(profile.values),
    )
    left, right = _tail(profile, "left"), _tail(profile, "right")
    concentration = _concentration(record, profile.rewards)
    tests = (profile.about_zero, profile.about_median)
    return ArmStudy(record, profile.median, means, left, right, concentration, *tests)


def mean_of(arm: KeptRewards, *, minimize: bool) -> Mean:
    """Return a trimmed mean. With a deadline, it would leave out failures, which are few and far off, so it is the sample mean."""
    if math.isinf(arm.most) or not len(arm.sample):
        return trimmed(Profile(arm.sample, minimize))
    return _sample_mean(float(arm.sample.mean()), arm.sample, arm.most)


def _tail(profile: Profile, side: Literal["left", "right"]) -> Tail:
    stated = profile.tail(side)
    hill, moment = (profile.tail(side, method) for method in METHODS)
    paths = tuple(tail_path(profile.rewards, side, method, about="median") for method in METHODS)  # type: ignore[arg-type]
    return Tail(side=side, stated=stated, hill=hill, moment=moment, paths=paths)


def _sample_mean(mean: float, values: Floats | Part, most: float = math.inf) -> Mean:
    name, (low, high, words) = "sample mean", limits(values, 1.0 - DELTA, bounded=most < math.inf)
    if math.isnan(low):
        return Mean(name=name, value=mean, high=most, note=words)
    # The record's mean is rounded differently.
    return Mean(name=name, value=mean, low=min(low, mean), high=min(max(high, mean), most), assumed=words)


def _median_of_means(profile: Profile) -> Mean:
    from robandit.estimators import median_of_means

    # Rewards are shuffled, because blocks of consecutive rewards would differ by season.
    shuffled = np.random.default_rng(SEED).permutation(profile.values)
    value = median_of_means(shuffled, delta=DELTA).value
    return Mean(name="median of means", value=value, note="no limits: they need a known moment")


def trimmed(profile: Profile) -> Mean:
    """Return AdaR-UCB's mean about the median. Right skewness removes its upper limit, left skewness its lower limit."""
    from robandit.estimators import adaptive_trimmed_mean

    name, values = "trimmed mean", profile.values
    count = f"{counted(len(values), 'value')}, {np.count_nonzero(values != profile.median)} of them off the median"
    too_few = Mean(name=name, value=math.nan, note=f"too few values for it: {count}")
    if len(values) < 3:  # one for the threshold, two for a spread
        return too_few
    try:
        up, down = (
            adaptive_trimmed_mean(each, delta=DELTA / 2.0, seed=SEED, bonus="likelihood", center="median", warn=False)
            for each in (values, -values)
        )
    except NoThresholdError:
        return too_few
    right, left = not profile.about_median, not profile.negated_about_median
    value = up.value
    if profile.minimize:  # the tests and the estimate are those of minus the costs
        right, left, value = left, right, 0.0 - down.value
    assumed, note = {
        (False, False): ("no skewness (none is seen)", ""),
        (True, False): ("no left skewness (none is seen)", "no upper limit: right-skewed"),
        (False, True): ("no right skewness (none is seen)", "no lower limit: left-skewed"),
        (True, True): ("", "no limits: skewed both ways"),
    }[right, left]
    low, high = -math.inf if left else -down.upper, math.inf if right else up.upper
    return Mean(name=name, value=value, low=low, high=high, assumed=assumed, note=note)


def _median(values: Floats) -> Mean:
    """Return the median with the order statistics that contain it with probability 0.95, for any law."""
    found = value_of("", values, objective_from("p50"), minimize=False)
    value = float(np.median(values))
    if math.isinf(found.low):
        return Mean(name="median", value=value, note=f"no limits from {counted(len(values), 'value')}")
    return replace(Mean.of(found), name="median", value=value)


def _concentration(record: ArmRecord, known: Floats | Part) -> Concentration:
    """Return the shares, from all rewards if possible: extremes are exact, and so is the sum if all rewards have the same sign."""
    size = max(abs(record.least), abs(record.greatest))
    if size == 0.0:
        return Concentration(first=math.nan, ten=math.nan, percent=math.nan, exact=True)
    part = known if isinstance(known, Part) else None
    values = np.concatenate([known.extremes, known.body]) if isinstance(known, Part) else known
    weights = np.ones(len(values))  # the number of rewards that a value stands for
    if part is not None:
        weights[len(part.extremes) :] = part.inside / len(part.body)
    order = np.argsort(-np.abs(values), kind="stable")
    sizes, weights = np.abs(values[order] / size), weights[order]
    same_sign = record.least >= 0.0 or record.greatest <= 0.0
    total = abs(record.mean / size) * record.n if part and same_sign else float(sizes @ weights)
    percent_count = -(-record.n // 100)
    first, ten, percent = (_largest(sizes, weights, count) / total for count in (1, 10, percent_count))
    exact = not part or (same_sign and percent_count <= min(len(record.largest), len(record.smallest)))
    return Concentration(first=min(first, 1.0), ten=min(ten, 1.0), percent=min(percent, 1.0), exact=exact)


def _largest(sizes: Floats, weights: Floats, count: int) -> float:
    """Return the sum of the ``count`` largest rewards. Each size represents several rewards, given by its weight."""
    taken = np.minimum(weights, np.maximum(count - (np.cumsum(weights) - weights), 0.0))
    return float(sizes @ taken)
