"""The data of the charts of recorded rewards, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robandit.diagnostics.study import ArmStudy, Tail
from robandit.diagnostics.survival import TAIL, distances, extreme_distances, ranks, survival
from robandit.diagnostics.tails import METHODS
from robandit.kernel.types import Floats
from robandit.report.chart_data import all_rounded
from robandit.report.study_text import arm_name
from robandit.wording import rounded

BINS = 90  # bins per distribution
LEAST_EXCESS = 5  # values beyond a threshold that a mean excess needs


def study_data(arms: Sequence[ArmStudy], styles: dict[str, int], noun: str) -> dict[str, Any]:
    """Return tails, distributions and tail indices of the arms, their common axis, and what the values are called."""
    axis = _axis(arms)
    first, last = (math.asinh((axis[end] - axis["centre"]) / axis["unit"]) for end in ("low", "high"))
    edges = axis["centre"] + axis["unit"] * np.sinh(np.linspace(first, last, BINS + 1))
    edges[0], edges[-1] = axis["low"], axis["high"]
    rows = []
    for arm in arms:
        heights = np.histogram(arm.record.sample, np.maximum.accumulate(edges))[0]
        box = np.quantile(arm.record.sample, [0.01, 0.25, 0.5, 0.75, 0.99])
        rows.append(
            {
                "label": arm_name(arm.arm),
                "style": styles[arm.arm],
                "left": _side(arm, arm.left),
                "right": _side(arm, arm.right),
                "box": [rounded(float(q), 6) for q in box],
                "heights": [round(100.0 * h / max(1, int(heights.max())), 1) for h in heights.tolist()],
            }
        )
    scale = {name: each if name == "ticks" else rounded(each, 12) for name, each in axis.items()}
    return {"arms": rows, "axis": scale, "noun": noun}


def _side(arm: ArmStudy, tail: Tail) -> dict[str, Any]:
    sign = -1.0 if tail.side == "left" else 1.0
    near = distances(sign * arm.record.sample, sign * arm.median)
    counts = ranks(LEAST_EXCESS, min(math.ceil(TAIL * len(near)), len(near) - 1))
    thresholds = near[counts]
    excess = np.cumsum(near)[counts - 1] / counts - thresholds
    paths = {
        method: {
            "k": path.k.tolist(),
            **{name: all_rounded(getattr(path, name)) for name in ("shape", "low", "high")},
            "chosen": path.chosen,
        }
        for method, path in zip(METHODS, tail.paths, strict=True)
    }
    return {
        "survival": _curve(*survival(arm.record, arm.median, sign)),
        "fit": _fit(extreme_distances(arm.record, arm.median, sign), arm.record.n, tail),
        "excess": _curve(thresholds, excess),
        "paths": paths,
        "words": tail.words.removeprefix("unknown: "),
    }


def _curve(x: Floats, y: Floats) -> dict[str, Any]:
    """Return the points in ascending order of x, at most one per rounded x."""
    order = np.argsort(x, kind="stable")
    points = {rounded(float(x[i])): rounded(float(y[i])) for i in order if y[i] > 0.0}  # the last of equal x
    return {"x": list(points), "y": list(points.values())}


def _fit(distances: Floats, n: int, tail: Tail) -> dict[str, Any] | None:
    """Return both ends of the line that Hill's estimator fits."""
    index, k = tail.hill.index, tail.hill.k
    if tail.variance in ("light", "unknown") or not math.isfinite(index) or k >= len(distances):
        return None
    ends = np.array([distances[k], distances[0]])
    return {"x": all_rounded(ends), "y": all_rounded(k / n * (ends / ends[0]) ** -index)}


def _axis(arms: Sequence[ArmStudy]) -> dict[str, Any]:
    """Return an axis for all rewards, linear within a unit of the centre. The centre is 0 if the rewards are near 0."""
    low, high = min(arm.record.least for arm in arms), max(arm.record.greatest for arm in arms)
    size = max(abs(low), abs(high)) or 1.0
    if low == high:
        low, high = low - 0.5 * size, high + 0.5 * size
    spans = [float(np.diff(np.quantile(arm.record.sample, [0.25, 0.75]))[0]) for arm in arms]
    positive = [span for span in spans if span > 0.0]
    unit = max(float(np.median(positive)) if positive else (high - low) / 100.0, 1e-12 * size)
    middle = float(np.median([arm.median for arm in arms]))
    centre = 0.0 if abs(middle) < 20.0 * unit else float(f"{middle:.3g}")
    ticks = {rounded(centre, 6)}
    step = 10.0 ** math.floor(math.log10(unit))
    while step < 2.0 * size:
        ticks |= {rounded(centre + sign * digit * step, 6) for sign in (-1.0, 1.0) for digit in (1.0, 2.0, 5.0)}
        step *= 10.0
    kept = sorted(v for v in ticks if v is not None and low <= v <= high)
    return {"centre": centre, "unit": unit, "low": low, "high": high, "ticks": kept}
