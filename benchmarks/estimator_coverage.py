"""Measure the estimators' intervals: ``python benchmarks/estimator_coverage.py`` writes docs/estimators/coverage.md (minutes).

The coverage and width of each estimator's intervals on each law, compared with common methods. Needs robandit[plot,bench].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from robandit import estimators
from robandit.drawing import rendered, settings
from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators import Estimate
from robandit.kernel.cores import cores
from robandit.kernel.types import Floats
from robandit.laws import Gaussian, Law, LogNormal, Pareto, StudentT, ZeroInflated
from robandit.laws.median import law_median

FOLDER = Path(__file__).parents[1] / "docs" / "estimators"
SIZES, DELTA, TRIALS, SEED = (100, 1_000, 10_000), 0.05, 1_000, 0
MARK = "†"
COLOURS = ("#f0803c", "#fdd9b5", "#ffffff")  # for 0, 50 and 100 %; black text is readable on each
BATCH = 2_000_000  # values drawn at a time: 16 MB
LAWS: dict[str, Law] = {
    "Pareto 1.2": Pareto(tail=1.2),
    "Pareto 1.5": Pareto(tail=1.5),
    "Pareto 2.5": Pareto(tail=2.5),
    "negated Pareto 1.5": -Pareto(tail=1.5),
    "Student t 1.5": StudentT(dof=1.5),
    "log-normal": LogNormal(mu=0.0, sigma=1.0),
    "Gaussian": Gaussian(mean=0.0, sd=1.0),
    "half zero Pareto 1.5": ZeroInflated(Pareto(tail=1.5), 0.5),
}


@dataclass(frozen=True)
class Facts:
    """Exact facts of a law: the parameters that estimators need, and whether their assumptions hold."""

    law: Law
    eps: float
    u: float
    v: float
    variance: float
    nonpositive: bool
    nonpositive_about_median: bool


@cache
def facts(law: Law) -> Facts:
    """Return the facts of a law, with eps = min(1, 0.9 (tail index - 1))."""
    eps = min(1.0, 0.9 * (law.tail_index - 1.0))
    u, v = law.absolute_moment(1.0 + eps), law.central_moment(1.0 + eps)
    about_0, about_median = (law.truncated_nonpositivity(about).holds for about in (0.0, law_median(law)))
    return Facts(law, eps, u, v, law.variance, about_0, about_median)


Bounds = tuple[Floats, Floats]


@dataclass(frozen=True)
class Contender:
    """A method that computes intervals. ``bounds(x, facts, delta)`` returns their ends for a batch of samples."""

    name: str
    told: str  # the parameters that it needs
    bounds: Callable[[Floats, Facts, float], Bounds]
    applies: Callable[[Facts], bool] = lambda _: True  # whether its assumption holds for a law


def _estimated(function: Callable[..., Estimate], **options: Any) -> Callable[[Floats, Facts, float], Bounds]:
    """Return the ``bounds`` function of one of our estimators. Options that are functions are called with the facts."""

    def bounds(x: Floats, known: Facts, delta: float) -> Bounds:
        parameters = {name: option(known) if callable(option) else option for name, option in options.items()}
        try:
            estimate = function(x, delta=delta, **parameters)
        except NoThresholdError:  # at least one row has no bounds: find these rows by bisection
            if len(x) == 1:
                return np.full(1, -math.inf), np.full(1, math.inf)
            half = len(x) // 2
            pairs = [bounds(part, known, delta) for part in (x[:half], x[half:])]
            return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
        return np.asarray(estimate.lower), np.asarray(estimate.upper)

    return bounds


_eps, _u, _v, _variance, _nonpositive = map(attrgetter, ("eps", "u", "v", "variance", "nonpositive"))


def _has_variance(known: Facts) -> bool:
    return math.isfinite(known.variance)


def _is_symmetric(known: Facts) -> bool:
    return known.law.symmetric_about is not None


def _student(x: Floats, known: Facts, delta: float) -> Bounds:
    from scipy import stats

    n = x.shape[1]
    width = stats.t.ppf(1.0 - delta / 2.0, n - 1) * x.std(axis=1, ddof=1) / math.sqrt(n)
    return x.mean(axis=1) - width, x.mean(axis=1) + width


def _scipy_trimmed(x: Floats, known: Facts, delta: float) -> Bounds:
    from scipy.stats import mstats

    ends = np.array([mstats.trimmed_mean_ci(row, limits=(0.1, 0.1), alpha=delta) for row in x], dtype=float)
    return ends[:, 0], ends[:, 1]


def _statsmodels_trimmed(x: Floats, known: Facts, delta: float) -> Bounds:
    from scipy import stats
    from statsmodels.stats.robust_compare import TrimmedMean

    trimmed = [TrimmedMean(row, 0.1) for row in x]
    means = np.array([each.mean_trimmed for each in trimmed])
    # This interval is implied by its test of the mean.
    widths = np.array([stats.t.ppf(1.0 - delta / 2.0, e.ttest_mean()[2]) * e.std_mean_trimmed for e in trimmed])
    return means - widths, means + widths


def _statsmodels_huber(x: Floats, known: Facts, delta: float) -> Bounds:
    import statsmodels.api as sm

    ones = np.ones((x.shape[1], 1))
    ends = np.array([sm.RLM(row, ones, M=sm.robust.norms.HuberT()).fit().conf_int(alpha=delta)[0] for row in x])
    return ends[:, 0], ends[:, 1]


def _p_robust(x: Floats, known: Facts, delta: float) -> Bounds:
    p = 1.0 + known.eps
    estimate = estimators.p_robust_mean(x, p=p, c=known.u ** (1.0 / p), u=known.u, delta=delta)
    return np.asarray(estimate.lower), np.asarray(estimate.upper)


_adaptive = partial(estimators.adaptive_trimmed_mean, warn=False)  # some laws contradict its assumption on purpose
_centred = _estimated(_adaptive, bonus="likelihood", center="median")
CONTENDERS: tuple[Contender, ...] = (
    Contender("adaptive, upper", "nothing", _estimated(_adaptive), _nonpositive),
    Contender("adaptive, tight", "nothing", _estimated(_adaptive, bonus="tight"), _nonpositive),
    Contender("adaptive, likelihood", "nothing", _estimated(_adaptive, bonus="likelihood"), _nonpositive),
    Contender("adaptive, centred", "nothing", _centred, attrgetter("nonpositive_about_median")),
    Contender("adaptive, two-sided", "eps, u", _estimated(_adaptive, eps=_eps, u=_u)),
    Contender("truncated mean", "eps, u", _estimated(estimators.truncated_mean, eps=_eps, u=_u)),
    Contender("median of means", "eps, v", _estimated(estimators.median_of_means, eps=_eps, v=_v)),
    Contender("Catoni", "variance", _estimated(estimators.catoni_mean, v=_variance), _has_variance),
    Contender("Catoni, infinite var.", "eps, v", _estimated(estimators.infinite_variance_catoni, eps=_eps, v=_v)),
    Contender("p-robust mean", "eps, u", _p_robust),
    Contender("Catoni, Lepskii", "eps", _estimated(estimators.lepskii_catoni, eps=_eps)),
    Contender("mean, Chebyshev", "variance", _estimated(estimators.sample_mean, v=_variance), _has_variance),
    Contender("mean, Student", "nothing", _student, _has_variance),
    Contender("scipy trimmed_mean_ci", "nothing", _scipy_trimmed, _is_symmetric),
    Contender("statsmodels trimmed", "nothing", _statsmodels_trimmed, _is_symmetric),
    Contender("statsmodels Huber", "nothing", _statsmodels_huber, _is_symmetric),
)


def measure(cell: tuple[str, int, Contender]) -> dict[str, Any]:
    """Return the share of a contender's intervals that contain the mean, and their median half-width.

    ``assumption`` is false where the contender's assumption fails: its intervals then have no guarantee.
    """
    name, n, contender = cell
    known = facts(LAWS[name])
    row = {"law": name, "n": n, "estimator": contender.name, "told": contender.told}
    row |= {"coverage": None, "half_width": None, "assumption": contender.applies(known), "note": ""}
    if contender.told == "variance" and not _has_variance(known):
        return row | {"note": "no variance"}
    held = answered = 0
    widths: list[Floats] = []
    for x in _samples(known.law, n):
        try:
            lower, upper = contender.bounds(x, known, DELTA)
        except InvalidInput as error:  # too few values for this theorem
            return row | {"note": str(error)}
        finite = np.isfinite(upper)
        lower, upper = lower[finite], upper[finite]
        answered += len(upper)
        held += int(np.sum((lower <= known.law.mean) & (known.law.mean <= upper)))
        one_sided = np.isneginf(lower)
        widths.append(np.where(one_sided, upper - known.law.mean, 0.5 * (upper - np.where(one_sided, 0.0, lower))))
    if answered == 0:
        return row | {"note": "no bounds: too few values"}
    note = "" if answered == TRIALS else f"no bounds for {TRIALS - answered} of {TRIALS} samples"
    half_width = float(np.median(np.concatenate(widths)))
    return row | {"coverage": held / answered, "half_width": half_width, "note": note}


def _samples(law: Law, n: int) -> Iterator[Floats]:
    """Yield batches of samples, which are the same for every contender."""
    per_batch = max(1, BATCH // n)
    for number, start in enumerate(range(0, TRIALS, per_batch)):
        count = min(per_batch, TRIALS - start)
        root = np.random.SeedSequence(SEED, spawn_key=(n, number))
        yield law.sample(count * n, root).reshape(count, n)


def page(frame: pl.DataFrame) -> str:
    """Return the page, with the table of the largest size."""
    part = frame.filter(frame["n"] == SIZES[-1])
    lines = []
    for name in part["estimator"].unique(maintain_order=True):
        rows = part.filter(part["estimator"] == name).rows(named=True)
        lines.append([name, rows[0]["told"], *(_cell(row, width=True) for row in rows)])
    head = f"| estimator | must know | {' | '.join(LAWS)} |\n|---|---|{'---:|' * len(LAWS)}"
    parts = [
        "# Coverage and width of the estimators",
        f"A cell has the share of {TRIALS:,} samples of n = {SIZES[-1]:,} values, in %, whose interval contained the true mean, "
        "and the median half-width in parentheses. For one-sided bounds it is the bound minus the mean (< 0 on failure).",
        head + "".join(f"\n| {' | '.join(line)} |" for line in lines),
        f"{MARK}: the assumption fails, so there is no guarantee. –: no bounds (no variance, or too few values). "
        f"Other cells: at least {100 * (1 - DELTA):g} % is guaranteed (measured, not proved, for centred estimators on symmetric "
        "laws), but Student's, SciPy's and statsmodels' intervals are only asymptotic. The figure and coverage.csv have all sizes. "
        "Written by `python benchmarks/estimator_coverage.py`.",
        "![Coverage of each estimator on each law](coverage.svg)",
    ]
    return "\n\n".join(parts) + "\n"


@settings()
def figure_of(frame: pl.DataFrame) -> bytes:
    """Return the figure as SVG: one panel per sample size, one row per estimator, one column per law."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    laws, names = list(LAWS), [each.name for each in CONTENDERS]
    figure = Figure(figsize=(6.5, 1.1 + (0.3 + 0.165 * len(names)) * len(SIZES)), layout="constrained")
    panels = figure.subplots(len(SIZES), 1, sharex=True, squeeze=False)[:, 0]
    colours = LinearSegmentedColormap.from_list("coverage", COLOURS)
    for axes, n in zip(panels, SIZES, strict=True):
        shares = np.full((len(names), len(laws)), np.nan)
        for row in frame.filter(frame["n"] == n).iter_rows(named=True):
            if row["coverage"] is not None:
                x, y = laws.index(row["law"]), names.index(row["estimator"])
                shares[y, x] = 100.0 * row["coverage"]
                axes.text(x + 0.5, y + 0.5, _cell(row, width=False), ha="center", va="center_baseline", fontsize=6.5)
        known = np.ma.masked_invalid(shares)
        mesh = axes.pcolormesh(known, cmap=colours, vmin=0, vmax=100, edgecolors="white", linewidth=0.5)
        axes.set_yticks(np.arange(len(names)) + 0.5, names)
        axes.invert_yaxis()
        axes.set_xticks(np.arange(len(laws)) + 0.5, laws, rotation=40, ha="right", rotation_mode="anchor")
        axes.tick_params(length=0)
        axes.set_title(f"n = {n:,}", fontsize=8, loc="left")
    figure.colorbar(mesh, ax=panels, label="coverage, %", shrink=0.3, anchor=(0.0, 1.0), aspect=12)
    return rendered(figure, "svg")


def _cell(row: dict[str, Any], *, width: bool) -> str:
    if row["coverage"] is None:
        return "–"
    share = 100 * row["coverage"]
    text = f"{share:.1f} ({row['half_width']:.3g})" if width else f"{share:.0f}"
    return text if row["assumption"] else text + MARK


def main() -> None:
    """Measure all laws, sizes and estimators, and write the page, its figure and its data."""
    cells = [(name, n, contender) for name in LAWS for n in SIZES for contender in CONTENDERS]
    with ThreadPoolExecutor(cores()) as pool:  # most of the time is spent in compiled code, which releases the GIL
        frame = pl.DataFrame(list(pool.map(measure, cells)), infer_schema_length=None)
    (FOLDER / "coverage.csv").write_text(frame.write_csv(), encoding="utf-8")
    (FOLDER / "coverage.md").write_text(page(frame), encoding="utf-8")
    (FOLDER / "coverage.svg").write_bytes(figure_of(frame))


if __name__ == "__main__":
    main()
