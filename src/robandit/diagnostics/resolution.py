"""Tests whether the arm with the highest mean in recorded rewards is significantly better than the others.

For each rival, the lower limit of "best mean minus rival's mean" is the smaller of two bootstrap limits, minus an allowance.

- The percentile and the studentised limit come from 2,000 resamples. Each is reliable where the other fails: the percentile limit
  fails for arms of different skewness, the studentised limit for two arms with equally heavy tails.
- The allowance is for values beyond the largest one seen, which no resample has. Let m be the largest distance from the median
  among n values. With probability 1 - p, the chance of a value beyond m is at most log(1/p) / n. If the tail continues with index
  a, such values add at most log(1/p) m a / ((a - 1) n) to the mean. The best arm's left tail and the rival's right tail get an
  allowance, if the moment estimator's interval has an index of 2 or less. It uses the estimated index, at least 1.1, or 1.5 if a
  side has too few values for an estimate.

Limits are simultaneous: with K arms, each has p = 0.05 / K. A wrong arm is called best only if its limit against the true best arm
fails, and there are K - 1 such limits. One more covers a true best arm that is put above another one. So with exact limits the
chance of a false "significant" is at most 5 %, although the same data chose the arm. The actual chance is measured in
docs/explanation/diagnose.md. No interval for a mean is right for all laws (Bahadur and Savage 1956). So the allowance also needs an
assumption: the tail continues beyond the largest value as it was seen up to there.

- Large samples: a resample draws at most 1,024 units, which are means of blocks of consecutive values. This is more accurate for
  values that depend on their neighbours, and makes no difference for others.
- A table with all arms' rewards at every time: rows are drawn, so that arms stay paired, in moving blocks of T^(1/3) rows (longer,
  if that makes more than 1,024 blocks). The allowance is for the left tail of the difference.
- Too many rewards to keep (a `Part`): a resample draws each known extreme a Poisson number of times, as a resample of many values
  does, and the rest from the sample between them, whose spread is scaled to the number of all values.
- Weights, for logs in which an arm was drawn with known probabilities (propensities): the mean is sum(w r) / sum(w), and resamples
  draw pairs. The spread and the allowance come from the terms mean + w (r - mean) / mean(w), whose mean is the weighted mean.

An arm with fewer than 20 values is left out by name if at least two others can be compared. If its mean is better than that of the
best arm, nothing is significant. Costs that are minimised keep their sign: all differences and sides change theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robandit.diagnostics import arm_values
from robandit.diagnostics.arm_values import (
    LEAST,
    SEED,
    UNITS,
    Values,
    allowance,
    lower_limit,
    no_mean,
    resampled_arms,
    values_of,
)
from robandit.diagnostics.part import Part
from robandit.diagnostics.samples import sample
from robandit.diagnostics.words import words
from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats
from robandit.validation import array, flag, invalid, mapping
from robandit.wording import counted, listed

CONFIDENCE = 0.95
NAMED = 5  # rivals named in the text


class Omitted(NamedTuple):
    """An arm that is not compared, because it has too few values."""

    arm: Any
    n: int
    mean: float  # NaN without values


@dataclass(frozen=True)
class Rival:
    """Another arm, compared with the one with the best mean."""

    arm: Any
    difference: float
    """The best arm's mean minus this arm's; for costs, this arm's minus the best arm's."""
    low: float
    """The lower limit of the difference; NaN if there are too few values."""
    allowance: float
    """The part of the limit that allows for values beyond those seen; 0 for light tails."""
    excluded: bool
    """Whether the limit is above 0, so that this arm is not the best."""
    why: str
    """The reason for an allowance or a missing limit; otherwise empty."""
    minimize: bool = False

    def __str__(self) -> str:
        """Return the arm and how much worse or better its mean may be."""
        name, kind = formatted(self.arm), words(self.minimize)
        if not math.isfinite(self.low):
            return f"{name} ({self.why})"
        if self.difference == self.low == 0.0:
            return f"{name} (not {kind.worse} at all)"
        spare = f", {self.allowance:.3g} of it for values beyond those seen" if self.allowance > 0.0 else ""
        return (
            f"{name} ({kind.worse} by {self.difference:.3g}, but perhaps {kind.better} by {0.0 - self.low:.3g}{spare})"
        )


@dataclass(frozen=True)
class Resolution:
    """Whether the arm with the best mean is significantly better than the others."""

    best: Any
    """The arm with the highest mean (costs: the lowest); the first one in a tie."""
    mean: float
    share: float
    """The share of resamples in which it has the best mean; unreliable for heavy tails."""
    others: tuple[Rival, ...]
    """All other arms, the nearest first."""
    paired: bool
    """Whether rows of a table were resampled."""
    resamples: int
    confidence: float
    minimize: bool = False
    left_out: tuple[Omitted, ...] = ()

    def __repr__(self) -> str:
        verdict = "significant" if self.resolved else "not significant"
        return f"<Resolution: best {self.best!r}, mean {self.mean:.4g}, {verdict}>"

    @property
    def rivals(self) -> tuple[Any, ...]:
        """The compared arms that are not excluded, the nearest first."""
        return tuple(each.arm for each in self.others if not each.excluded)

    @property
    def resolved(self) -> bool:
        """Whether all arms that are compared are excluded, and no arm that is left out has a better mean."""
        return not self.rivals and not self.doubt

    @property
    def doubt(self) -> str:
        """A sentence on the arm that is left out although it has the best mean of all; empty if there is none."""
        sign = -1.0 if self.minimize else 1.0
        better = [each for each in self.left_out if sign * each.mean > sign * self.mean]
        if not better:
            return ""
        arm, n, mean = max(better, key=lambda each: sign * each.mean)
        return f"{formatted(arm)} has a {words(self.minimize).better} mean ({mean:.4g}) but only {counted(n, 'value')}."

    @property
    def caution(self) -> str:
        """The reason why the bootstrap alone is unreliable here; empty if it is reliable."""
        reason = next((each.why for each in self.others if each.allowance > 0.0), "")
        return f"The bootstrap alone is unreliable here, since {reason}." if reason else ""

    @property
    def omission(self) -> str:
        """A sentence that names the arms that are left out; empty if there are none."""
        return omission({each.arm: each.n for each in self.left_out})

    def __str__(self) -> str:
        if not self.others:
            return f"There is one arm only, {formatted(self.best)}: nothing is decided yet. Record a second arm."
        return f"{self._verdict()} {self.omission}".strip()

    def _verdict(self) -> str:
        share = f"{100.0 * self.share:.{0 if self.share in (0.0, 1.0) else 1}f} %"
        often = f"it is best in {share} of {self.resamples:,} resamples"
        head = f"{formatted(self.best)} has the {words(self.minimize).best} mean, {self.mean:.4g}; {often}"
        if self.left_out:
            scope = f"f the arms with at least {LEAST} values, "
            head = f"{self.doubt} O{scope}{head}" if self.doubt else f"o{scope}{head}"
        verdict = "Significant" if self.resolved else "NOT significant"
        sure = f"{100.0 * self.confidence:g} % confidence over all arms"
        if not self.rivals:
            least = min(self.others, key=lambda each: each.low)
            rest = "the other arm" if len(self.others) == 1 else f"each of the {len(self.others)} others"
            gap = f"by at least {least.low:.3g} ({formatted(least.arm)})"
            text = f"{verdict}: {head}, and with {sure} it is better than {rest}, {gap}."
            return f"{text} {self.caution} The number includes an allowance for that." if self.caution else text
        remaining = [each for each in self.others if not each.excluded]
        reasons = {each.why for each in remaining}
        unknown = all(math.isnan(each.low) for each in remaining)
        if unknown and len(remaining) == len(self.others) > 1 and len(reasons) == 1:
            return f"{verdict}: {head}, but no other arm is excluded, since {reasons.pop()}."
        count = "one arm is" if len(remaining) == 1 else f"{len(remaining)} arms are"
        named = "; ".join(map(str, remaining[:NAMED]))
        more = f"; and {len(remaining) - NAMED} more" if len(remaining) > NAMED else ""
        return f"{verdict}: {head}, but with {sure} {count} not excluded: {named}{more}. {self.caution}".strip()


def resolution(
    samples: Mapping[Any, Any],
    *,
    weights: Mapping[Any, Any] | None = None,
    table: Any = None,
    minimize: bool = False,
) -> Resolution:
    """Test by bootstrap whether the arm with the best mean is significantly better than the others; see the module.

    Parameters
    ----------
    samples
        Arm -> its rewards (or a `Part` of them), which are taken as independent between arms.
    weights
        Arm -> a weight above 0 for each of its rewards: one over the probability with which the arm was chosen, for logs that have
        it. Without weights, an arm that was chosen when rewards are high looks better than it is.
    table
        The rewards of all arms at the same times, of shape (T, K), in the order of ``samples``. Blocks of rows are then resampled.
    minimize
        Whether the values are costs: the best arm has the lowest mean.

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
    minimize = flag(minimize, "minimize", owner="resolution")
    rule = "a mapping from arm to rewards, with at least one arm"
    samples = mapping(samples, "samples", rule)
    if not samples:
        raise invalid("samples", samples, rule)
    if weights is not None:
        weights = mapping(weights, "weights", "a mapping from every arm to its weights")
    arms = list(samples)
    values = [x if isinstance(x, Part) else sample(x, f"rewards[{formatted(arm)}]") for arm, x in samples.items()]
    counts = {arm: x.n if isinstance(x, Part) else len(x) for arm, x in zip(arms, values, strict=True)}
    omitted = too_few_to_compare(counts) if table is None else []  # arms of a table have equally many values
    left_out = tuple(
        Omitted(arm, counts[arm], _mean(x, weights, arm)) for arm, x in zip(arms, values, strict=True) if arm in omitted
    )
    values = [x for arm, x in zip(arms, values, strict=True) if arm not in omitted]
    arms = [arm for arm in arms if arm not in omitted]
    if weights is not None and table is not None:
        raise InvalidInput("weights and table: rows of a table need no weights, give one of the two")
    if table is not None:
        values = list(_table(table, len(arms)).T)
    unit = unit_of(values)
    if weights is None:
        known = [values_of(each, unit) for each in values]
    else:
        known = [values_of(x, unit, _weights(weights, arm, x)) for arm, x in zip(arms, values, strict=True)]
    means = np.array([each.centre for each in known])
    sign = -1.0 if minimize else 1.0
    best = int(np.argmax(sign * means))
    paired = table is not None
    comparison = _Paired([each.values for each in known], best, sign) if paired else _Independent(known, best, sign)
    level = (1.0 - CONFIDENCE) / len(arms)
    others = []
    for i in sorted((i for i in range(len(arms)) if i != best), key=lambda i: -sign * means[i]):
        low, spare = math.nan, 0.0
        why = next((f"{formatted(arms[j])} has {few}" for j in (best, i) if (few := known[j].too_few())), "")
        if not why:
            spare, why = comparison.allowance(i, level, arms)
            low = comparison.low(i, level) - spare
        off = sign * (means[best] - means[i])
        difference, limit, extra = (math.ldexp(float(x), unit) for x in (off, low, spare))
        others.append(Rival(arms[i], difference, limit, extra, low > 0.0, why, minimize))
    mean, share = math.ldexp(float(means[best]), unit), comparison.share()
    found = (arms[best], mean, share, tuple(others), paired, arm_values.RESAMPLES, CONFIDENCE, minimize, left_out)
    return Resolution(*found)


def too_few_to_compare(counts: Mapping[Any, int]) -> list[Any]:
    """Return the arms with too few values (arm -> its number of values), if at least two other arms can be compared.

    >>> too_few_to_compare({"a": 40, "b": 5, "c": 40}), too_few_to_compare({"a": 40, "b": 5})
    (['b'], [])
    """
    few = [arm for arm, n in counts.items() if n < LEAST]
    return few if len(counts) - len(few) >= 2 else []


def omission(counts: Mapping[Any, int]) -> str:
    """Return a sentence that names the arms with too few values (arm -> its number of values); empty if there are none."""
    named = listed([f"{formatted(arm)} ({counted(n, 'value')})" for arm, n in counts.items()], NAMED)
    return f"Left out of the comparison, which needs {LEAST} values of an arm: {named}." if named else ""


def limits(values: Floats | Part, confidence: float = CONFIDENCE, *, bounded: bool = False) -> tuple[float, float, str]:
    """Return an interval for the mean by the same method, and its assumptions; or NaN, and the reason why values are too few.

    Tails of ``bounded`` values are not extrapolated.
    """
    unit = unit_of([values])
    known = values_of(values, unit)
    too_few = known.too_few()
    if too_few:
        return math.nan, math.nan, too_few
    means, variances, spread = known.resampled(UNITS, np.random.default_rng(SEED))
    level = (1.0 - confidence) / 2.0
    down, left_reason = (0.0, "") if bounded else allowance(known, "left", level)
    up, right_reason = (0.0, "") if bounded else allowance(known, "right", level)
    low = lower_limit(means, variances, known.centre, spread, level) - down
    high = -lower_limit(-means, variances, -known.centre, spread, level) + up
    independence = "independent values" if known.n <= UNITS else "values that depend on neighbours at most"
    tails = "tails that continue as fitted" if left_reason or right_reason else "light tails, as they look"
    return math.ldexp(low, unit), math.ldexp(high, unit), f"{independence}, {tails}"


class _Independent:
    """Compares the best arm with each other arm. Each arm is resampled separately."""

    def __init__(self, arms: Sequence[Values], best: int, sign: float) -> None:
        self.arms, self.best, self.sign = arms, best, sign
        self.centre = np.array([each.centre for each in arms])
        self.means, self.variances, self.spread = resampled_arms(arms, SEED)
        self.best_allowance: tuple[float, str] | None = None

    def share(self) -> float:
        """Return the share of resamples in which the best arm has the best mean."""
        return float(np.mean(np.argmax(self.sign * self.means, axis=0) == self.best))

    def low(self, rival: int, level: float) -> float:
        """Return the lower limit of the best mean minus the rival's (costs: of the rival's minus the best)."""
        b = self.best
        means, variances = self.sign * (self.means[b] - self.means[rival]), self.variances[b] + self.variances[rival]
        centre, spread = self.sign * (self.centre[b] - self.centre[rival]), self.spread[b] + self.spread[rival]
        return lower_limit(means, variances, float(centre), float(spread), level)

    def allowance(self, rival: int, level: float, arms: Sequence[Any]) -> tuple[float, str]:
        """Return the allowance for the difference, and its reason."""
        down, up = ("left", "right") if self.sign > 0.0 else ("right", "left")
        if self.best_allowance is None:  # the same for all rivals
            self.best_allowance = allowance(self.arms[self.best], down, level)
        best, best_reason = self.best_allowance
        other, other_reason = allowance(self.arms[rival], up, level)
        for i, side in ((self.best, up), (rival, down)):  # these tails cannot reverse the order, but need a mean
            reason = no_mean(self.arms[i].tail(side))
            if reason:
                return math.inf, f"{formatted(arms[i])} {reason}"
        reasons = [f"{formatted(arms[i])} {why}" for i, why in ((self.best, best_reason), (rival, other_reason)) if why]
        return best + other, " and ".join(reasons)


class _Paired:
    """Compares the best arm with each other arm by resampling blocks of rows of a table."""

    def __init__(self, columns: Sequence[Floats], best: int, sign: float) -> None:
        rows = np.stack(columns, axis=1)
        self.best = best
        self.differences = sign * (rows[:, [best]] - rows)  # the column of the best arm is 0
        self.means, self.variances, self.centre, self.spread = resampled_blocks(self.differences)
        self.off = self.differences.mean(axis=0) - self.centre

    def share(self) -> float:
        return float(np.mean(np.argmin(self.means + self.off[:, None], axis=0) == self.best))

    def low(self, rival: int, level: float) -> float:
        centre, spread = float(self.centre[rival]), float(self.spread[rival])
        return lower_limit(self.means[rival], self.variances[rival], centre, spread, level) + float(self.off[rival])

    def allowance(self, rival: int, level: float, arms: Sequence[Any]) -> tuple[float, str]:
        size, reason = allowance(Values(self.differences[:, rival]), "left", level)
        return size, f"the difference to {formatted(arms[rival])} {reason}" if reason else ""


def resampled_blocks(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the means and variances of resamples of moving blocks of rows, one row per column, and those of the data."""
    count = len(rows)
    length = max(math.ceil(count ** (1.0 / 3.0) - 1e-9), -(-count // UNITS))
    sums = np.cumsum(np.vstack([np.zeros((1, rows.shape[1])), rows]), axis=0)
    blocks = (sums[length:] - sums[:-length]) / length
    draws = -(-count // length)
    rng = np.random.default_rng(SEED)
    means, variances = np.empty((2, rows.shape[1], arm_values.RESAMPLES))
    for r in range(arm_values.RESAMPLES):
        picked = blocks[rng.integers(0, len(blocks), draws)]
        means[:, r] = picked.mean(axis=0)
        variances[:, r] = picked.var(axis=0) / draws
    # The centre is not the mean of all rows, because rows at the ends are in fewer blocks.
    return means, variances, blocks.mean(axis=0), blocks.var(axis=0) / draws


def _table(given: Any, arms: int) -> Floats:
    rows = array(given, "table")
    if rows.ndim != 2 or rows.shape[1] != arms or not len(rows):
        raise invalid("table", given, f"of shape (times, {arms}), a column per arm, not of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise invalid("table", given, "finite, without NaN or infinity", hint="every arm needs a reward at every time")
    return rows


def _mean(values: Floats | Part, weights: Mapping[Any, Any] | None, arm: Any) -> float:
    unit = unit_of([values])
    known = values_of(values, unit, None if weights is None else _weights(weights, arm, values))
    return math.ldexp(known.centre, unit)


def _weights(given: Any, arm: Any, values: Floats | Part) -> Floats:
    if not isinstance(given, Mapping) or arm not in given:
        raise invalid("weights", given, f"a mapping from every arm to its weights ({formatted(arm)} has none)")
    name = f"weights[{formatted(arm)}]"
    weights = sample(given[arm], name)
    if isinstance(values, Part):
        raise invalid("weights", given, f"None, since not all rewards of {formatted(arm)} are kept")
    if len(weights) != len(values):
        raise invalid(name, given[arm], f"one weight per reward: {len(values)}, not {len(weights)}")
    if not weights.min() > 0.0:
        raise invalid(name, weights.min(), "> 0, as one over a probability is")
    return weights


def unit_of(samples: Sequence[Floats | Part]) -> int:
    """Return the exponent of a power of two. In units of this power, squares of the values do not overflow."""
    ends = [np.array([x.smallest[0], x.largest[0]]) if isinstance(x, Part) else x for x in samples]
    return math.frexp(max(float(np.max(np.abs(each))) for each in ends))[1]
