"""Do recorded rewards show which arm is best, or only which arm had the highest mean in them?

The lower limit of "best mean minus rival's mean". It is the lesser of two bootstrap limits, minus an allowance for what the
bootstrap cannot know.

- Percentile and studentised limits, from 2,000 resamples. Alone each fails where the other does not: the percentile one for arms
  of different skewness, the studentised one for two arms that are heavy-tailed alike.
- The allowance. No resample holds a value beyond the largest one seen, and with a heavy tail that is where much of the mean is.
  Of n values none lies beyond the greatest distance m from the median. So with probability 1 - p the chance of a value beyond
  it is at most log(1/p) / n, and if the tail goes on with index a, such values add at most log(1/p) m a / ((a - 1) n) to the mean.
  It is taken for the best arm's left tail and the rival's right one, the two that could turn the order round; only where the
  index may be 2 or less (the moment estimator's interval reaches it), with the estimated index, but at least 1.1. Where a
  side has too few values for an estimate, 1.5 is taken; where it has none, nothing.

Simultaneous: with K arms each limit has p = 0.05 / K. To call a wrong arm the best, it must be put above the true best arm, and
K - 1 arms could be; one more for a true best arm that is put above another one. So with exact limits the chance of a
false "resolved" is at most 5 %, although the arm to be judged was chosen by the same data.

How large it is: measured in docs/explanation/diagnose.md. No interval for a mean can be right for all laws (Bahadur and Savage
1956), so the allowance is an assumption too: that the tail goes on as far as it was seen.

Large samples. A resample draws at most 1,024 units, which are means of consecutive values: blocks of them for longer samples. For
independent values the mean's spread is the same; for values that depend on their neighbours it is the better for it.

A counterfactual table, with all arms' rewards at every time: rows are drawn, so that arms stay paired, in moving blocks of
T^(1/3) rows (more, where that makes more than 1,024 blocks), since neighbouring rows depend on each other. The allowance is then
for the left tail of the difference.

Too many rewards to keep (a `Part`): the mean is that of all. A resample draws each of the known extremes a Poisson number of times,
as a resample of many values does, and the rest from the sample between them. Its units' spread is that of a sample, s^2 / m for
independent values; for all of the n values it is s^2 / n, and what the units have beyond s^2 / m comes from neighbours
that are alike, and stays. Extremes are taken as independent, since their order is not known. The allowance looks at the farthest of
all values, and at how many there are of them.

Weights, for logs in which an arm was drawn with known probabilities (propensities): a mean is then sum(w r) / sum(w), and resamples
draw pairs. The spread and the allowance are those of mean + w (r - mean) / mean(w), of which it is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robandit.diagnostics.part import Part
from robandit.diagnostics.samples import sample
from robandit.diagnostics.tails import TailIndex, tail_index
from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats
from robandit.wording import counted

__all__ = ["Resolution", "Rival", "limits", "resolution"]

RESAMPLES = 2_000
SEED = 8
UNITS = 1_024  # drawn for a resample of an arm; fewer if there are many arms: see `_units`
CONFIDENCE = 0.95
LEAST = 20  # values of an arm: with fewer no limit is believed
DIFFER = 10  # that differ from the median, unless none does
CONSTANT = 100  # equal values, before an arm is taken to have no others
FLOOR = 1.1  # of an index in the allowance, where a / (a - 1) is 11
UNSEEN = 1.5  # the index where there are too few values to see one
NAMED = 5  # rivals in the words


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Another arm, beside the one with the highest mean."""

    arm: Any
    difference: float
    """The best arm's mean minus this arm's."""
    low: float
    """The lower limit of the difference; NaN where there are too few values for one."""
    allowance: float
    """What of it is for values beyond those seen; 0 for light tails."""
    excluded: bool
    """Whether the limit is above 0: this arm is not the best."""
    why: str
    """What stands in the way of a plain answer; empty: nothing."""


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Whether the best arm can be told from the others."""

    best: Any
    """The arm with the highest mean; the first of several."""
    mean: float
    share: float
    """Of the resamples in which it has the highest mean. Heavy tails break this number: see ``rivals``."""
    others: tuple[Rival, ...]
    """The nearest first."""
    paired: bool
    """Whether rows of a table were drawn."""
    resamples: int
    confidence: float

    @property
    def rivals(self) -> tuple[Any, ...]:
        """The arms that are not excluded, the nearest first."""
        return tuple(each.arm for each in self.others if not each.excluded)

    @property
    def resolved(self) -> bool:
        """Whether all other arms are excluded."""
        return not self.rivals

    @property
    def caution(self) -> str:
        """Why the bootstrap alone is not to be trusted here; empty if it is."""
        heavy = next((each.why for each in self.others if each.allowance > 0.0), "")
        return f"The bootstrap alone is not to be trusted here, since {heavy}." if heavy else ""

    def __str__(self) -> str:
        """In words."""
        if not self.others:
            return f"There is one arm only, {formatted(self.best)}: nothing has to be told apart."
        often = f"it is best in {_percent(self.share)} of {self.resamples:,} resamples"
        head = f"{formatted(self.best)} has the highest mean, {self.mean:.4g}; {often}"
        sure = f"{100.0 * self.confidence:g} % confidence over all arms"
        if self.resolved:
            least = min(self.others, key=lambda each: each.low)
            rest = "the other arm" if len(self.others) == 1 else f"each of the {len(self.others)} others"
            told = f"Resolved: {head}, and with {sure} it is better than {rest}, by at least {least.low:.3g} ({formatted(least.arm)})."
            return f"{told} {self.caution} An allowance for that is in the number." if self.caution else told
        open_ = [each for each in self.others if not each.excluded]
        why = {each.why for each in open_ if math.isnan(each.low)}
        if len(open_) == len(self.others) > 1 and len(why) == 1 and all(math.isnan(each.low) for each in open_):
            return f"NOT resolved: {head}, but no other arm is excluded, since {why.pop()}."
        named = "; ".join(_open(each) for each in open_[:NAMED])
        more = f"; and {len(open_) - NAMED} more" if len(open_) > NAMED else ""
        told = f"NOT resolved: {head}, but with {sure} {_count(len(open_))} not excluded: {named}{more}."
        return f"{told} {self.caution}".strip()


def resolution(
    samples: Mapping[Any, Any], *, weights: Mapping[Any, Any] | None = None, table: Any = None
) -> Resolution:
    """Whether the arm with the highest mean can be told from the others, by bootstrap; see the module for how.

    Parameters
    ----------
    samples
        Arm -> its rewards (or a `Part` of them), which are taken as independent between arms.
    weights
        Arm -> a weight above 0 for each of its rewards: one over the probability with which the arm was chosen, in a log that knows
        it. Without them an arm that was chosen when rewards are high looks better than it is.
    table
        Of shape (T, K): the rewards of all arms, in the order of ``samples``, at the same times. Rows are then resampled, in
        blocks.

    Examples
    --------
    >>> from robandit.laws import Gaussian
    >>> a, b = (Gaussian(mean=m, sd=1.0).sample(400, seed=i) for i, m in enumerate((0.0, 1.0)))
    >>> found = resolution({"a": a, "b": b})
    >>> found.best, found.resolved, found.rivals
    ('b', True, ())
    >>> resolution({"a": a, "b": b - 0.95}).resolved
    False

    References
    ----------
    R. R. Bahadur, L. J. Savage. The nonexistence of certain statistical procedures in nonparametric problems. Annals of
    Mathematical Statistics 27, 1956.

    J. Y. Hsu. Constrained simultaneous confidence intervals for multiple comparisons with the best. Annals of Statistics 12, 1984.

    H. R. Kuensch. The jackknife and the bootstrap for general stationary observations. Annals of Statistics 17, 1989.
    """
    if not isinstance(samples, Mapping) or not samples:
        raise InvalidInput("samples must be a mapping from arm to rewards, with at least one arm")
    values = {
        arm: given if isinstance(given, Part) else sample(given, f"the rewards of {arm!r}")
        for arm, given in samples.items()
    }
    arms = list(values)
    if weights is not None and table is not None:
        raise InvalidInput(
            "weights and table: rows of a table have all arms' rewards and need no weights, give one of the two"
        )
    if table is not None:
        rows = _table(table, len(arms))
        values = {arm: rows[:, i] for i, arm in enumerate(arms)}
    unit = _unit(list(values.values()))
    known = [
        _known(values[arm], unit, None if weights is None else _weights(weights, arm, values[arm])) for arm in arms
    ]
    means = np.array([each.centre for each in known])
    best = int(np.argmax(means))
    level = (1.0 - CONFIDENCE) / len(arms)
    drawn = _Paired([each.values for each in known], best) if table is not None else _Apart(known, best)
    others = []
    for i in sorted((i for i in range(len(arms)) if i != best), key=lambda i: -means[i]):
        low, spare, why = math.nan, 0.0, known[best].few(arms[best]) or known[i].few(arms[i])
        if not why:
            spare, why = drawn.allowance(i, level, arms)
            low = drawn.low(i, level) - spare
        others.append(
            Rival(
                arm=arms[i],
                difference=math.ldexp(float(means[best] - means[i]), unit),
                low=_ldexp(low, unit),
                allowance=_ldexp(spare, unit),
                excluded=low > 0.0,
                why=why,
            )
        )
    return Resolution(
        best=arms[best],
        mean=math.ldexp(float(means[best]), unit),
        share=drawn.share(best),
        others=tuple(others),
        paired=table is not None,
        resamples=RESAMPLES,
        confidence=CONFIDENCE,
    )


def limits(values: Floats | Part, confidence: float = CONFIDENCE) -> tuple[float, float, str]:
    """An interval of the mean of independent values, by the same means, and what it assumes; NaN if there are too few values."""
    unit = _unit([values])
    known = _known(values, unit)
    few = known.few()
    if few:
        return math.nan, math.nan, few
    means, variances, spread = known.resampled(UNITS, np.random.default_rng(SEED))
    level = (1.0 - confidence) / 2.0
    down, said_left = _allowance(known, "left", level)
    up, said_right = _allowance(known, "right", level)
    low = _limit(means, variances, known.centre, spread, level) - down
    high = -_limit(-means, variances, -known.centre, spread, level) + up
    near = "independent rewards" if known.n <= UNITS else "rewards that depend on neighbours at most"
    tails = "tails that go on as fitted" if said_left or said_right else "light tails, as they look"
    return _ldexp(low, unit), _ldexp(high, unit), f"{near}, {tails}"


# --- what is known of an arm ------------------------------------------------------------------------------------------


class _Whole:
    """All of an arm's values."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.n = len(values)
        self.centre = float(values.mean())

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        """The means of resamples, the variances that each has for its mean, and that of the values themselves."""
        units = _units(self.values, most)
        return *_resampled(units, rng), _variance(units)

    def few(self, arm: Any = None) -> str:
        """Why nothing can be said of the arm; empty: it can."""
        return _few(self.values, arm)

    def tail(self, side: str) -> TailIndex:
        """Of a side, seen from the median."""
        return tail_index(self.values, side, "moment", about="median")  # type: ignore[arg-type]

    def reach(self, side: str) -> float:
        """How far values go from the median."""
        median = float(np.median(self.values))
        return median - float(self.values.min()) if side == "left" else float(self.values.max()) - median


class _Weighted(_Whole):
    """Values with weights. What `_Whole` says of tails it says of the terms whose mean is the weighted one."""

    def __init__(self, values: Floats, weights: Floats) -> None:
        self.weights = weights / weights.mean()
        centre = float(np.mean(values * self.weights))
        super().__init__(centre + self.weights * (values - centre))
        self.rewards, self.centre = values, centre

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        off, base = _units(self.values - self.centre, most), _units(self.weights, most)
        picked = rng.integers(0, len(off), (RESAMPLES, len(off)), dtype=np.uint16)
        weight = base[picked].mean(axis=1)
        ratio = off[picked].mean(axis=1) / weight
        squares = (off * off)[picked].mean(axis=1) - 2.0 * ratio * (off * base)[picked].mean(axis=1)
        squares = np.maximum(squares + ratio**2 * (base * base)[picked].mean(axis=1), 0.0) / weight**2
        return self.centre + ratio, squares / len(off), _variance(off)

    def few(self, arm: Any = None) -> str:
        count = 1.0 / float(np.mean(self.weights**2)) * self.n
        if self.n >= LEAST > count:
            who = "" if arm is None else f"{formatted(arm)} has "
            return f"{who}{self.n} values, but weights so unlike that they count for {count:.3g}, {LEAST} are needed"
        return _few(self.rewards, arm)


class _Sampled(_Whole):
    """A part of an arm's values; see the module."""

    def __init__(self, part: Part) -> None:
        self.part, self.values = part, part.sample
        self.n, self.centre = part.n, part.mean

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        part = self.part.farthest(most // 2)  # as many extremes as units
        body = part.body
        units = _units(body, most)
        means, variances = _resampled(units, rng)
        inner, found = float(units.mean()), _variance(units)
        own = float(body.var())
        true = own / part.inside + max(0.0, found - own / len(body))
        ratio = true / found if found > 0.0 else 0.0
        share = part.inside / part.n
        off = (part.extremes - inner) / part.n
        moved, squared = _times(off, rng)
        shifted = share * math.sqrt(ratio) * (means - inner) + moved
        return (
            self.centre + shifted,
            share**2 * ratio * variances + squared,
            share**2 * true + float(off @ off),
        )

    def few(self, arm: Any = None) -> str:
        part = self.part
        return _few(np.concatenate([part.body, part.smallest, part.largest]), arm, part.n)

    def tail(self, side: str) -> TailIndex:
        return tail_index(self.part, side, "moment", about="median")  # type: ignore[arg-type]

    def reach(self, side: str) -> float:
        median = float(np.median(self.values))
        return median - float(self.part.smallest[0]) if side == "left" else float(self.part.largest[0]) - median


def _known(values: Floats | Part, unit: int, weights: Floats | None = None) -> _Whole:
    """In the unit."""
    if isinstance(values, Part):
        return _Sampled(values.scaled(-unit))
    scaled = np.ldexp(values, -unit)
    return _Whole(scaled) if weights is None else _Weighted(scaled, weights)


# --- resamples ------------------------------------------------------------------------------------------------------


class _Apart:
    """Every arm is resampled by itself."""

    def __init__(self, known: Sequence[_Whole], best: int) -> None:
        most = min(UNITS, max(128, 16 * UNITS // len(known)))  # 500 arms take two seconds
        streams = np.random.SeedSequence(SEED).spawn(len(known))
        drawn = [each.resampled(most, np.random.default_rng(s)) for each, s in zip(known, streams, strict=True)]
        self.known, self.best = known, best
        self.centre = np.array([each.centre for each in known])
        self.means = np.stack([means for means, _, _ in drawn])
        self.variances = np.stack([variances for _, variances, _ in drawn])
        self.spread = np.array([spread for _, _, spread in drawn])
        self.mine: tuple[float, str] | None = None

    def share(self, best: int) -> float:
        return float(np.mean(np.argmax(self.means, axis=0) == best))

    def low(self, rival: int, level: float) -> float:
        b = self.best
        return _limit(
            self.means[b] - self.means[rival],
            self.variances[b] + self.variances[rival],
            float(self.centre[b] - self.centre[rival]),
            float(self.spread[b] + self.spread[rival]),
            level,
        )

    def allowance(self, rival: int, level: float, arms: Sequence[Any]) -> tuple[float, str]:
        if self.mine is None:  # the same for all rivals
            self.mine = _allowance(self.known[self.best], "left", level)
        mine, said = self.mine
        other, too = _allowance(self.known[rival], "right", level)
        for i, side in (
            (self.best, "right"),
            (rival, "left"),
        ):  # these cannot turn the order round, but must have a mean
            said_none = _meanless(self.known[i].tail(side))
            if said_none:
                return math.inf, f"{formatted(arms[i])} {said_none}"
        why = [f"{formatted(arms[i])} {words}" for i, words in ((self.best, said), (rival, too)) if words]
        return mine + other, " and ".join(why)


class _Paired:
    """Blocks of rows are resampled."""

    def __init__(self, columns: Sequence[Floats], best: int) -> None:
        rows = np.stack(columns, axis=1)
        self.differences = rows[:, [best]] - rows  # the column of the best arm is 0
        count = len(rows)
        length = max(math.ceil(count ** (1.0 / 3.0) - 1e-9), -(-count // UNITS))
        sums = np.cumsum(np.vstack([np.zeros((1, rows.shape[1])), self.differences]), axis=0)
        blocks = (sums[length:] - sums[:-length]) / length
        draws = -(-count // length)
        rng = np.random.default_rng(SEED)
        self.means, self.variances = np.empty((2, rows.shape[1], RESAMPLES))
        for r in range(RESAMPLES):
            picked = blocks[rng.integers(0, len(blocks), draws)]
            self.means[:, r] = picked.mean(axis=0)
            self.variances[:, r] = picked.var(axis=0) / draws
        self.centre = blocks.mean(axis=0)  # what resamples scatter about: rows at the ends are in fewer blocks
        self.spread = blocks.var(axis=0) / draws
        self.off = self.differences.mean(axis=0) - self.centre

    def share(self, best: int) -> float:
        return float(np.mean(np.argmin(self.means + self.off[:, None], axis=0) == best))

    def low(self, rival: int, level: float) -> float:
        found = _limit(
            self.means[rival], self.variances[rival], float(self.centre[rival]), float(self.spread[rival]), level
        )
        return found + float(self.off[rival])

    def allowance(self, rival: int, level: float, arms: Sequence[Any]) -> tuple[float, str]:
        spare, said = _allowance(_Whole(self.differences[:, rival]), "left", level)
        return spare, f"the difference to {formatted(arms[rival])} {said}" if said else ""


def _units(values: Floats, most: int) -> Floats:
    """At most so many means of consecutive values, of blocks whose lengths differ by one at most."""
    if len(values) <= most:
        return values
    edges = np.linspace(0, len(values), most + 1).astype(np.int64)
    found: Floats = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return found


def _variance(units: Floats) -> float:
    """Of the mean of units."""
    return float(units.var()) / len(units)


def _resampled(units: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The means of resamples, and the variances that each has for its mean."""
    centred = units - units.mean()
    picked = rng.integers(0, len(units), (RESAMPLES, len(units)), dtype=np.uint16)
    means = centred[picked].mean(axis=1)
    squares = (centred * centred)[picked].mean(axis=1)
    return means + units.mean(), np.maximum(squares - means * means, 0.0) / len(units)


def _times(values: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The sum of values, minus what it is, and that of their squares, in resamples that hold each a Poisson number of times."""
    if not len(values):
        return np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    counts = rng.poisson(len(values), RESAMPLES)
    drawn = values[rng.integers(0, len(values), int(counts.sum()), dtype=np.uint16)]
    ends = np.cumsum(counts)
    sums, squares = (
        np.diff(np.append(0.0, each)[np.append(0, ends)]) for each in map(np.cumsum, (drawn, drawn * drawn))
    )
    return sums - values.sum(), squares


def _limit(means: Floats, variances: Floats, centre: float, spread: float, level: float) -> float:
    """The lesser of the percentile and the studentised lower limit."""
    off, sd = means - centre, np.sqrt(variances)
    t = np.where(off == 0.0, 0.0, np.copysign(math.inf, off))
    np.divide(off, sd, out=t, where=sd > 0.0)
    percentile = float(np.quantile(means, level, method="inverted_cdf"))
    reach = float(np.quantile(t, 1.0 - level, method="inverted_cdf"))
    return min(percentile, centre - max(reach, 0.0) * math.sqrt(spread)) if spread > 0.0 else centre


# --- what a resample cannot know --------------------------------------------------------------------------------------


def _allowance(known: _Whole, side: str, level: float) -> tuple[float, str]:
    """What values beyond those seen may add to the mean on a side, and why it must be thought of; 0 for a light tail."""
    reach = known.reach(side)
    if reach <= 0.0:
        return 0.0, ""
    found = known.tail(side)
    if math.isnan(found.index):
        index, said = UNSEEN, f"has too few values on the {side} to see its tail (taken to have index {UNSEEN})"
    elif found.low > 2.0:
        return 0.0, ""
    elif found.high <= 1.0:
        return math.inf, _meanless(found)
    else:
        index = max(found.index, FLOOR)
        said = f"may have an infinite variance on the {side} (tail index {found})"
    factor = 1.0 if math.isinf(index) else index / (index - 1.0)
    return reach * factor * math.log(1.0 / level) / known.n, said


def _meanless(found: TailIndex) -> str:
    """What is wrong with a tail that seems to have no mean; empty: nothing."""
    return f"seems to have no mean on the {found.side} (tail index {found})" if found.high <= 1.0 else ""


def _few(values: Floats, arm: Any = None, count: int | None = None) -> str:
    """Why nothing can be said of an arm, which may have more values than these; empty: it can."""
    who, n = "" if arm is None else f"{formatted(arm)} has ", len(values) if count is None else count
    if n < LEAST:
        return f"{who}{counted(n, 'value')}, {LEAST} are needed"
    differ = int(np.count_nonzero(values != np.median(values)))
    if differ == 0 and n < CONSTANT:
        return f"{who}{n} values that are all equal: fewer than {CONSTANT} such say little about others"
    if 0 < differ < DIFFER:
        return f"{who}{n} values, but {DIFFER} that differ from the median are needed, not {differ}"
    return ""


# --- numbers and words ------------------------------------------------------------------------------------------------


def _table(given: Any, arms: int) -> Floats:
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"table is not an array of numbers ({error}): give a row per time") from None
    if rows.ndim != 2 or rows.shape[1] != arms or not len(rows):
        raise InvalidInput(
            f"table has shape {rows.shape}: give a row per time and a column for each of the {arms} arms"
        )
    if not np.isfinite(rows).all():
        raise InvalidInput("table has NaN or infinity: every arm must have a reward at every time")
    return rows


def _weights(given: Any, arm: Any, values: Floats | Part) -> Floats:
    if not isinstance(given, Mapping) or arm not in given:
        raise InvalidInput(f"weights must be a mapping from every arm to its weights: {arm!r} has none")
    found = sample(given[arm], f"the weights of {arm!r}")
    if isinstance(values, Part) or len(found) != len(values):
        count = values.n if isinstance(values, Part) else len(values)
        raise InvalidInput(f"weights: {arm!r} has {len(found)} for {count} rewards, every reward on record needs one")
    if not found.min() > 0.0:
        raise InvalidInput(f"weights: {arm!r} has {found.min():g}, they are one over a probability, so above 0")
    return found


def _unit(samples: Sequence[Floats | Part]) -> int:
    """A power of two that squares of the values survive."""
    ends = [np.array([x.smallest[0], x.largest[0]]) if isinstance(x, Part) else x for x in samples]
    return math.frexp(max(float(np.max(np.abs(each))) for each in ends))[1]


def _ldexp(value: float, power: int) -> float:
    return math.ldexp(value, power) if math.isfinite(value) else value


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share in (0.0, 1.0) else f"{100.0 * share:.1f} %"


def _count(arms: int) -> str:
    return "one arm is" if arms == 1 else f"{arms} arms are"


def _open(each: Rival) -> str:
    if not math.isfinite(each.low):
        return f"{formatted(each.arm)} ({each.why})"
    if each.difference == each.low == 0.0:
        return f"{formatted(each.arm)} (not lower at all)"
    spare = f", {each.allowance:.3g} of it for values beyond those seen" if each.allowance > 0.0 else ""
    return f"{formatted(each.arm)} (lower by {each.difference:.3g}, but perhaps higher by {-each.low:.3g}{spare})"
