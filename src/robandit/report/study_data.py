"""The data of the charts of recorded rewards, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from robandit.diagnostics.study import ArmStudy, Tail
from robandit.diagnostics.survival import extreme_distances, survival
from robandit.diagnostics.tails import METHODS
from robandit.diagnostics.timeline import Drift, Timeline
from robandit.kernel.types import Floats
from robandit.report.chart_data import all_rounded
from robandit.report.study_text import arm_name
from robandit.wording import rounded

BINS = 90  # bins per distribution
LEAST_PARTS, MOST_PARTS = 4, 60  # points per curve of means over time
PER_PART = 20  # rewards of an arm in a part, if all arms have as many
TICKS = 5  # names on the axis of time


def study_data(
    arms: Sequence[ArmStudy],
    styles: dict[str, int],
    noun: str,
    timeline: Timeline | None = None,
    drift: Drift | None = None,
) -> dict[str, Any]:
    """Return tails, distributions, tail indices and means over time of the arms, the common axis, and what values are called."""
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
    data = {"arms": rows, "axis": scale, "noun": noun}
    return data if timeline is None else data | {"time": _over_time(timeline, drift, [arm.arm for arm in arms])}


def _over_time(timeline: Timeline, drift: Drift | None, arms: Sequence[str]) -> dict[str, Any]:
    """Return the mean of each arm in equal parts of the record, the names of the axis' ticks, and the rows of the changes."""
    rows = len(timeline)
    parts = max(LEAST_PARTS, min(MOST_PARTS, rows // (PER_PART * len(timeline.arms))))
    edges = np.unique(np.linspace(0, rows, parts + 1).astype(np.int64))
    part = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    means = {}
    for arm in arms:
        own = timeline.rows_of(timeline.arms.index(arm)) if arm in timeline.arms else np.empty(0, np.int64)
        count = np.bincount(part[own], minlength=len(edges) - 1)
        total = np.bincount(part[own], timeline.rewards[own], minlength=len(edges) - 1)
        means[arm] = [rounded(t / c, 5) if c else None for t, c in zip(total.tolist(), count.tolist(), strict=True)]
    ticks = np.linspace(0, rows - 1, TICKS).astype(np.int64).tolist()
    return {
        "x": [round(float(x), 1) for x in (edges[:-1] + edges[1:] + 1) / 2.0],
        "means": [means[arm] for arm in arms],
        "rows": rows,
        "ticks": [[row + 1, timeline.short_time(row)] for row in ticks],
        "names": [f"{timeline.place(a)} to {timeline.place(b - 1)}" for a, b in pairwise(edges)],
        "changes": sorted({int(row) + 1 for row in drift.rows}) if drift else [],
    }


def _side(arm: ArmStudy, tail: Tail) -> dict[str, Any]:
    sign = -1.0 if tail.side == "left" else 1.0
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
