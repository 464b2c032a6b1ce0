"""What recorded rewards cost or earned, as a reference for policies that are replayed on them.

The reference of a log is the mean of all rows. A table of the reward of every arm at every time does not say which arm was chosen,
so its reference is to choose arms at random: the mean of all arms.

`Reference` also has, for each arm, limits of "this arm's mean minus the reference". They hold for all arms at once, and so for
every mixture of arms, even if a policy has chosen it by looking at the same rows. They are those of
`robandit.diagnostics.resolution`, but without an allowance for values beyond those seen: a policy that meets such values changes
its choices, and a replay cannot show how. In a log, arms are resampled separately, with the shares as they are; with propensities,
the arm's mean is weighted and the log's is not. In a table, blocks of rows are resampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import numpy as np

from robandit.diagnostics.arm_values import SEED, Values, lower_limit, resampled_arms, values_of
from robandit.diagnostics.resolution import CONFIDENCE, resampled_blocks, unit_of
from robandit.errors import formatted
from robandit.kernel.types import Floats


@dataclass(frozen=True)
class Worth:
    """Whether the features of a record matter, or only seem to."""

    saved: float
    """What the best linear rule with features saves per row, compared with the best arm, on the record to which it is fitted."""
    by_chance: float
    """The 95 % quantile of the same if the features changed all arms alike."""
    p_value: float
    """The share of the draws without an effect, and the record itself, that save at least as much."""


@dataclass(frozen=True)
class Reference:
    """The mean of a record, and how far each arm's difference from it may be off. Values have the sign of the record."""

    kind: Literal["log", "random"]
    """The mean of a log's rows, or of choosing arms at random."""
    rows: int
    """The number of rows of the log, or of times of the table."""
    mean: float
    """The mean per row, or per time."""
    below: tuple[float, ...] | None
    """For each arm, how much less its mean minus ``mean`` may be than recorded, at 95 % over all arms; None if unknown."""
    above: tuple[float, ...] | None
    """For each arm, how much more it may be."""
    why: str = ""
    """The reason why the limits are unknown."""
    column: str = ""
    """The column of the rewards, which names their unit."""
    without: str = ""
    """The arm of the record that is left out, or how many are; empty if none is."""

    worth: Worth | None = None
    """Whether the features matter, if the replay has contexts."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Reference:
        """Return the reference that `to_dict` wrote. Files of older versions lack ``without`` and ``worth``."""
        return msgspec.convert(data, Reference)


def log_reference(
    samples: Mapping[str, Floats],
    *,
    counts: Mapping[str, int] | None = None,
    weights: Mapping[str, Floats] | None = None,
    column: str = "",
) -> Reference:
    """Return the mean of a log's rows and the limits of each arm.

    ``samples`` has the rewards of each arm, ``counts`` the number of its rows if these are only some of them, and ``weights``
    1 / propensity of each reward, if known.

    >>> reference = log_reference({"a": np.array([1.0, 3.0]), "b": np.array([4.0, 5.0, 6.0, 5.0])})
    >>> reference.kind, reference.rows, reference.mean, reference.why
    ('log', 6, 4.0, "'a' has 2 values, 20 are needed")
    """
    arms, values = list(samples), list(samples.values())
    sizes = np.array([len(x) if counts is None else counts[arm] for arm, x in samples.items()], dtype=float)
    shares = sizes / sizes.sum()
    unit = unit_of(values)
    paid = [values_of(x, unit) for x in values]
    known = paid if weights is None else [values_of(x, unit, weights[arm]) for arm, x in samples.items()]
    mean = float(shares @ np.array([each.centre for each in paid]))
    known_mean = Reference("log", int(sizes.sum()), math.ldexp(mean, unit), None, None, "", column)
    few = next((f"{formatted(arms[i])} has {why}" for i, each in enumerate(known) if (why := each.too_few())), "")
    if few:
        return replace(known_mean, why=few)
    level = (1.0 - CONFIDENCE) / (2 * len(arms))
    means, variances, spread = resampled_arms(known, SEED)
    log = (means, variances, spread) if weights is None else resampled_arms(paid, SEED + 1)
    of_log, parts, error = shares @ log[0], shares**2 @ log[1], float(shares**2 @ log[2])
    ends = []
    for i, each in enumerate(known):
        own = 0.0 if weights is not None else float(shares[i])  # the arm's part of the log's mean, which moves with it
        apart = (1.0 - own) ** 2 - own**2
        spreads, spread_now = parts + apart * variances[i], error + apart * float(spread[i])
        ends.append(_ends(means[i] - of_log, spreads, each.centre - mean, spread_now, level))
    return _limited(known_mean, ends, unit)


def random_reference(table: Floats, arms: Sequence[str], *, column: str = "") -> Reference:
    """Return the mean of choosing arms at random in a table (times x arms), and the limits of each arm."""
    unit = unit_of([table])
    rows = np.ldexp(table, -unit)
    differences = rows - rows.mean(axis=1, keepdims=True)
    known_mean = Reference("random", len(rows), math.ldexp(float(rows.mean()), unit), None, None, "", column)
    columns = [Values(differences[:, i].copy()) for i in range(len(arms))]
    few = next((f"{formatted(arms[i])} has {why}" for i, each in enumerate(columns) if (why := each.too_few())), "")
    if few:
        return replace(known_mean, why=few)
    level = (1.0 - CONFIDENCE) / (2 * len(arms))
    means, variances, centre, spread = resampled_blocks(differences)
    of_data = zip(means, variances, centre.tolist(), spread.tolist(), strict=True)
    return _limited(known_mean, [_ends(*each, level) for each in of_data], unit)


def _ends(means: Floats, variances: Floats, centre: float, spread: float, level: float) -> tuple[float, float]:
    """Return how far below and above the difference may be."""
    low = lower_limit(means, variances, centre, spread, level)
    high = -lower_limit(-means, variances, -centre, spread, level)
    return max(0.0, centre - low), max(0.0, high - centre)


def _limited(reference: Reference, ends: Sequence[tuple[float, float]], unit: int) -> Reference:
    below, above = (tuple(math.ldexp(pair[side], unit) for pair in ends) for side in (0, 1))
    return replace(reference, below=below, above=above)
