"""The coverage study: the coverage and width of each estimator's intervals on each law, compared with common methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit import estimators
from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators import Estimate
from robandit.kernel.cores import cores
from robandit.kernel.types import Floats
from robandit.laws import Gaussian, Law, LogNormal, Pareto, StudentT, ZeroInflated
from robandit.laws.median import law_median
from robandit.validation import integer, probability

if TYPE_CHECKING:
    import polars as pl

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
    package: str = "robandit"  # the method is skipped if this package is not installed


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
    Contender("mean, Student", "nothing", _student, _has_variance, package="scipy"),
    Contender("scipy trimmed_mean_ci", "nothing", _scipy_trimmed, _is_symmetric, package="scipy"),
    Contender("statsmodels trimmed", "nothing", _statsmodels_trimmed, _is_symmetric, package="statsmodels"),
    Contender("statsmodels Huber", "nothing", _statsmodels_huber, _is_symmetric, package="statsmodels"),
)


def coverage(
    *,
    sizes: Sequence[int] = (100, 1_000, 10_000),
    delta: float = 0.05,
    trials: int = 1_000,
    seed: int = 0,
    laws: dict[str, Law] | None = None,
    contenders: Sequence[Contender] = CONTENDERS,
    advance: Callable[[str], None] = lambda _: None,
) -> pl.DataFrame:
    """Return the share of each contender's intervals that contain the mean, and their median half-width.

    There is one row per law, size and contender. ``coverage`` and ``half_width`` are empty where the contender cannot be used;
    ``note`` gives the reason. Samples without a finite bound are not counted; ``note`` gives their number. ``assumption`` is false
    where the contender's assumption fails: its intervals then have no guarantee. ``advance`` is called after each row.
    """
    import polars as pl

    trials, seed = integer(trials, "trials", 2), integer(seed, "seed", 0, None)
    sizes = [integer(size, f"sizes[{i}]", 2) for i, size in enumerate(sizes)]
    delta = probability(delta, "delta")
    cells = [(name, n, contender) for name in (laws or LAWS) for n in sizes for contender in contenders]
    known = {name: facts(law) for name, law in (laws or LAWS).items()}

    def measured(cell: tuple[str, int, Contender]) -> dict[str, Any]:
        name, n, contender = cell
        row = {"law": name, "n": n, "estimator": contender.name, "told": contender.told}
        return row | _measure(contender, known[name], n, delta, trials, seed)

    rows = []
    with ThreadPoolExecutor(cores()) as pool:  # most of the time is spent in compiled code, which releases the GIL
        for (name, n, _), row in zip(cells, pool.map(measured, cells), strict=True):
            rows.append(row)
            advance(f"{name}, n = {n:,}")
    return pl.DataFrame(rows, infer_schema_length=None)


def _measure(contender: Contender, known: Facts, n: int, delta: float, trials: int, seed: int) -> dict[str, Any]:
    empty: dict[str, Any] = {"coverage": None, "half_width": None, "assumption": contender.applies(known), "note": ""}
    if contender.told == "variance" and not _has_variance(known):
        return empty | {"note": "no variance"}
    if find_spec(contender.package) is None:
        return empty | {"note": f"{contender.package} is not installed"}
    held = answered = 0
    widths: list[Floats] = []
    for x in _samples(known.law, n, trials, seed):
        try:
            lower, upper = contender.bounds(x, known, delta)
        except InvalidInput as error:  # too few values for this theorem
            return empty | {"note": str(error)}
        finite = np.isfinite(upper)
        lower, upper = lower[finite], upper[finite]
        answered += len(upper)
        held += int(np.sum((lower <= known.law.mean) & (known.law.mean <= upper)))
        one_sided = np.isneginf(lower)
        widths.append(np.where(one_sided, upper - known.law.mean, 0.5 * (upper - np.where(one_sided, 0.0, lower))))
    if answered == 0:
        return empty | {"note": "no bounds: too few values"}
    note = "" if answered == trials else f"no bounds for {trials - answered} of {trials} samples"
    half_width = float(np.median(np.concatenate(widths)))
    return empty | {"coverage": held / answered, "half_width": half_width, "note": note}


def _samples(law: Law, n: int, trials: int, seed: int) -> Iterator[Floats]:
    """Yield batches of samples, which are the same for every contender."""
    per_batch = max(1, BATCH // n)
    for number, start in enumerate(range(0, trials, per_batch)):
        count = min(per_batch, trials - start)
        root = np.random.SeedSequence(seed, spawn_key=(n, number))
        yield law.sample(count * n, root).reshape(count, n)
