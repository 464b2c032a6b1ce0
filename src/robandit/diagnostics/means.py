"""Every robust mean of one sample, for `robandit estimators`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from robandit.diagnostics.study import Mean
from robandit.errors import AssumptionWarning, InvalidInput
from robandit.estimators import (
    Estimate,
    adaptive_trimmed_mean,
    catoni_mean,
    infinite_variance_catoni,
    lepskii_catoni,
    median_of_means,
    p_robust_mean,
    sample_mean,
    truncated_mean,
)
from robandit.estimators.estimate import moment_order
from robandit.kernel.types import Floats
from robandit.validation import positive, probability

SEED = 0  # of the shuffle


def every_mean(
    values: Floats, *, delta: float = 0.05, eps: float | None = None, u: float | None = None, v: float | None = None
) -> list[Mean]:
    """Return a row for every estimator, also for those that need eps, u, v or more values.

    The values are shuffled, because some estimators need an order that does not depend on the values. Bounds whose assumption the
    sample contradicts are left out. ``u`` and ``v`` bound moments of order 1 + eps, or of order 2 without eps.
    """
    delta = probability(delta, "delta")
    eps = None if eps is None else moment_order(eps)
    u, v = (None if given is None else positive(given, name) for given, name in ((u, "u"), (v, "v")))
    x = np.random.default_rng(SEED).permutation(values)
    return [_row(*entry) for entry in _estimators(x, delta, eps, u, v)]


# A label, the call, and the option that is missing for the value, and for the bounds.
Entry = tuple[str, Callable[[], Estimate], str, str]


def _estimators(x: Floats, delta: float, eps: float | None, u: Any, v: Any) -> Iterator[Entry]:
    """Yield every estimator. Its call is made only if no option is missing."""
    order = 1.0 if eps is None else eps
    variance = v if order == 1.0 else None
    no_u, no_v, no_eps = "--u" * (u is None), "--v" * (v is None), "--eps" * (eps is None)
    no_variance = no_v or "--v with eps = 1" * (variance is None)
    trimmed = partial(adaptive_trimmed_mean, delta=delta)
    likelihood = partial(trimmed, bonus="likelihood")
    centred = partial(likelihood, center="median")
    moment = {} if v is None else {"eps": order, "v": v}
    limits = {} if variance is None else {"v": variance, "delta": delta}
    p = 1.0 + order
    yield "sample_mean", lambda: sample_mean(x, **limits), "", no_variance
    yield "median_of_means", lambda: median_of_means(x, delta=delta, **moment), "", no_v
    yield "adaptive_trimmed_mean", lambda: trimmed(x), "", ""
    yield "- likelihood", lambda: likelihood(x), "", ""
    yield "- likelihood, of -x", lambda: _negated(likelihood(-x)), "", ""
    yield "- centred", lambda: centred(x), "", ""
    yield "- centred, of -x", lambda: _negated(centred(-x)), "", ""
    yield "- two-sided", lambda: trimmed(x, eps=order, u=u), no_u, ""
    yield "truncated_mean", lambda: truncated_mean(x, eps=order, u=u, delta=delta), no_u, ""
    yield "p_robust_mean", lambda: p_robust_mean(x, p=p, c=u ** (1.0 / p), u=u, delta=delta), no_u, ""
    yield "catoni_mean", lambda: catoni_mean(x, v=v, delta=delta), no_variance, ""
    yield "infinite_variance_catoni", lambda: infinite_variance_catoni(x, eps=order, v=v, delta=delta), no_v, ""
    yield "lepskii_catoni", lambda: lepskii_catoni(x, eps=order, delta=delta), no_eps, ""


def _row(name: str, call: Callable[[], Estimate], missing: str, missing_for_bounds: str) -> Mean:
    if missing:
        return Mean(name=name, value=math.nan, note=f"needs {missing}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        try:
            estimate = call()
        except InvalidInput as error:  # too few values
            return Mean(name=name, value=math.nan, note=str(error))
    if caught:
        return Mean(name=name, value=float(estimate), note="no bound: the values contradict its assumption")
    if estimate.delta is None:
        note = f"bounds need {missing_for_bounds}" if missing_for_bounds else estimate.assumed
        return Mean(name=name, value=float(estimate), note=note)
    low, high = estimate.confidence_interval
    return Mean(name=name, value=float(estimate), low=low, high=high, note=estimate.assumed)


def _negated(estimate: Estimate) -> Estimate:
    """Return the estimate of x from that of -x."""
    fields = {"value": 0.0 - estimate.value, "lower": 0.0 - estimate.upper, "upper": 0.0 - estimate.lower}
    return Estimate(**fields, delta=estimate.delta, assumed=f"{estimate.assumed}, of -x", n=estimate.n)
