"""Charts of the dashboard, as SVG. They stretch with the page, so all words stand in HTML around them.

The colours of arms are the classes ``a0`` to ``a7``, and ``rest`` for all others together.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from robandit.notebook import escaped
from robandit.service.dashboard.timeline import MOST_COUNTED, Column
from robandit.wording import number, share, visible

COLOURS = 8
REST = "rest"
ESTIMATED = (
    f'<p class="note">Estimated: of a column with more than {MOST_COUNTED:,} events, only a sample is counted.</p>'
)


def coloured(arms: Sequence[str], used: Mapping[str, int]) -> dict[str, str]:
    """Return the colour of each arm. If there are more arms than colours, the less used ones share a grey.

    A colour is given by the place among all arms, or is the next one that is free.

    >>> coloured(["a", "b"], {"b": 5})
    {'a': 'a0', 'b': 'a1'}
    """
    most = COLOURS if len(arms) <= COLOURS else COLOURS - 1
    chosen = set(sorted(arms, key=lambda arm: -used.get(arm, 0))[:most])
    taken: dict[int, str] = {}
    for place, arm in enumerate(arms):
        if arm in chosen:
            free = next(colour % COLOURS for colour in range(place, place + COLOURS) if colour % COLOURS not in taken)
            taken[free] = arm
    colours = {arm: f"a{place}" for place, arm in taken.items()}
    return {arm: colours.get(arm, REST) for arm in arms}


def share_chart(
    columns: Sequence[Column], colours: Mapping[str, str], *, window: str, now: float, sampled: bool
) -> str:
    """Return the share of the decisions for each arm over time: a stacked bar per column, with the rewards per second below.

    If ``sampled``, the chart says that its numbers are estimates.
    """
    total = Counter[str]()
    for column in columns:
        total.update(column.decisions)
    if not total:
        return f'<p class="muted empty">No decisions in this window ({escaped(window)}).</p>'
    series = [
        (visible(arm), colour, [column.decisions.get(arm, 0) for column in columns])
        for arm, colour in colours.items()
        if colour != REST
    ]
    rest = [_rest(column, colours) for column in columns]
    if any(rest):
        series.append(("other arms", REST, rest))
    width, count = columns[1].start - columns[0].start, sum(total.values())
    data = {
        "times": [column.start for column in columns],
        "width": width,
        "arms": series,
        "rewards": [column.rewards for column in columns],
    }
    words = f"Share of {count:,} decisions by arm, {window}: " + ", ".join(
        f"{arm} {share(decisions / count)}" for arm, decisions in total.most_common(5)
    )
    most = max(column.rewards for column in columns)
    return (
        '<div class="plot"><div class="scale" aria-hidden="true"><span>100 %</span><span>50 %</span><span>0 %</span></div>'
        f'<svg class="stack" viewBox="0 0 {len(columns)} 100" preserveAspectRatio="none" role="img" tabindex="0" '
        f'data-columns="{escaped(json.dumps(data, separators=(",", ":")))}" aria-label="{escaped(words)}">'
        f"{_stacks(columns, series)}</svg></div>"
        f'<div class="plot low"><div class="scale" aria-hidden="true"><span>{number(most / width)} /s</span><span>0</span></div>'
        f'<svg class="bars" viewBox="0 0 {len(columns)} 100" preserveAspectRatio="none" aria-hidden="true">'
        f"{_bars(columns, most)}</svg></div>"
        f'<div class="axis" aria-hidden="true">{_ends(columns, now)}</div>'
        f'<ul class="keys">{"".join(f"<li>{swatch(colour)}<bdi>{escaped(arm)}</bdi></li>" for arm, colour, _ in series)}</ul>'
        f"{ESTIMATED if sampled else ''}"
    )


def _rest(column: Column, colours: Mapping[str, str]) -> int:
    """Return the decisions for arms without a colour of their own."""
    return sum(count for arm, count in column.decisions.items() if colours.get(arm, REST) == REST)


def _stacks(columns: Sequence[Column], series: Sequence[tuple[str, str, list[int]]]) -> str:
    heights = [0.0] * len(columns)
    paths = []
    for _, colour, counts in series:
        path = []
        for i, (column, count) in enumerate(zip(columns, counts, strict=True)):
            if count:
                high = 100.0 * count / sum(column.decisions.values())
                heights[i] += high
                path.append(_rectangle(i, 100.0 - heights[i], high))
        if path:
            paths.append(f'<path class="{colour}" d="{"".join(path)}"/>')
    return "".join(paths)


def _rectangle(column: int, top: float, high: float) -> str:
    return f"M{column}.06,{top:.1f}h.88v{high:.1f}h-.88z"


def _bars(columns: Sequence[Column], most: int) -> str:
    heights = [(i, 100.0 * column.rewards / most) for i, column in enumerate(columns) if column.rewards]
    return f'<path d="{"".join(_rectangle(i, 100.0 - high, high) for i, high in heights)}"/>'


def _ends(columns: Sequence[Column], now: float) -> str:
    """Return the times at the ends and in the middle of the axis, as ages."""
    ages = (now - columns[0].start, now - columns[len(columns) // 2].start)
    return "".join(f"<span>{age_text(max(1.0, age))} ago</span>" for age in ages) + "<span>now</span>"


def age_text(seconds: float) -> str:
    """Return a duration in the largest unit that fits.

    >>> age_text(0.012), age_text(3.2), age_text(59.7), age_text(90.0), age_text(86_400.0), age_text(86_400.0 * 40)
    ('12 ms', '3.2 s', '1 min', '1.5 min', '1 day', '40 days')
    """
    if seconds < 0.9995:
        return f"{1000.0 * max(0.0, seconds):.0f} ms"
    units = ((86_400.0, "day"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
    size, unit = next(each for each in units if round(seconds / each[0], 1) >= 1.0)
    text = f"{round(seconds / size, 1):g}" if seconds < 9.95 * size else f"{seconds / size:,.0f}"
    return f"{text} {unit}{'s' if unit == 'day' and text != '1' else ''}"


def share_bar(parts: Iterable[tuple[str, float]]) -> str:
    """Return a bar that is divided by shares. Each part has a colour and its share."""
    x, paths = 0.0, []
    for colour, part in parts:
        if part > 0.0:
            paths.append(f'<path class="{colour}" d="M{x:.2f},0h{100.0 * part:.2f}v10h-{100.0 * part:.2f}z"/>')
            x += 100.0 * part
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{"".join(paths)}</svg>'


def swatch(colour: str) -> str:
    """Return a square in the colour of an arm."""
    return (
        f'<svg class="square" viewBox="0 0 10 10" aria-hidden="true"><path class="{colour}" d="M0,0h10v10h-10z"/></svg>'
    )


def limits(values: Iterable[tuple[float, float, float]]) -> tuple[float, float]:
    """Return an axis that fits all finite values."""
    finite = [value for each in values for value in each if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return low - margin, high + margin


def interval(mean: float, low: float, high: float, axis: tuple[float, float]) -> str:
    """Return a mean with its limits on an axis. An end without a limit runs to the edge, and fades."""

    def x(value: float) -> float:
        return min(100.0, max(0.0, 100.0 * (value - axis[0]) / (axis[1] - axis[0])))

    start, end = x(low), x(high)
    fading = "".join(
        f'<path class="fade" d="M{x(mean):.1f},5H{edge}"/>'
        for edge, limit in ((0, low), (100, high))
        if math.isinf(limit)
    )
    known = (
        f'<path d="M{start if math.isfinite(low) else x(mean):.1f},5H{end if math.isfinite(high) else x(mean):.1f}"/>'
    )
    ends = "".join(f'<path d="M{x(limit):.1f},2V8"/>' for limit in (low, high) if math.isfinite(limit))
    return (
        '<svg class="interval" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'{fading}{known}{ends}<path class="mean" d="M{x(mean):.1f},0V10"/></svg>'
    )
