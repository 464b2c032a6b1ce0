"""What recorded rewards are like: tables for the terminal, and one HTML page that needs nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.diagnostics.assumption import Nonpositivity
from robandit.diagnostics.study import ArmStudy, Mean, Study, Tail
from robandit.diagnostics.tails import METHODS, TailIndex
from robandit.errors import formatted
from robandit.files import write_atomically
from robandit.kernel.types import Floats
from robandit.report.pieces import (
    Words,
    cell,
    document,
    escaped,
    facts,
    figure,
    named,
    pairs,
    swatch,
    table,
    versions,
    warning,
)
from robandit.wording import counted, percent, rounded

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["study_table", "write_study"]

CHARTED = 24  # arms with curves and a part of their own, those with the most rewards
OPEN = 3  # arms whose parts are open at first
ALSO = 5  # arms that may be the best, too, with advice of their own
LISTED = 30  # arms in the terminal's tables
POINTS = 120  # of a curve
BINS = 90  # of a distribution
TAIL = 0.7  # of the values on a side, the farthest, that are drawn
LEAST_EXCESS = 5  # values beyond a threshold, for their mean excess
SAID = {"contradicted": "contradicted", "not contradicted": "not contradicted", "too few values": "too few values"}
VARIANCE = {"light": "light", "finite": "exists", "infinite": "infinite", "undecided": "open", "unknown": "unknown"}


# --- the terminal -------------------------------------------------------------------------------------------------------


def study_table(study: Study, *, remarks: Sequence[str] = ()) -> Group:
    """For a terminal of 80 columns: a table of means, of tails, of skewness, then what follows from them, in words.

    ``remarks``: what else a reader should know of the file, a line each.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    arms = _by_size(study.arms)[:LISTED]
    arms = [arm for arm in study.arms if arm in arms]
    recorded = study.recorded
    negated = ", negated" if recorded.negated else ""
    parts: list[Any] = [
        Text(
            f"{named(recorded.source, 200)}: {counted(recorded.rows, 'reward')} of {counted(len(study.arms), 'arm')}{negated}"
        )
    ]
    if recorded.bad.count:
        parts.append(Text(str(recorded.bad), "yellow"))
    parts += [Text(line, "yellow") for line in remarks]
    if len(arms) < len(study.arms):
        parts.append(
            Text(f"Shown: the {len(arms)} arms with the most rewards, of {len(study.arms)}. The page has all.")
        )
    for grid in (_means_table, _robust_table, _tails_table, _skew_table):
        parts += ["", grid(arms)]
    parts += ["", *(Text(line, "dim") for line in _sampled(study)), Text(study.headline, "bold"), ""]
    advice = study.advice
    parts.append(Text(f"Take {advice.policy.name} ({advice.case}):", "bold"))
    parts += [Padding(Text(f"- {reason}"), (0, 0, 0, 2)) for reason in (*advice.reasons, *_also(study))]
    style = "bold" if study.resolution.resolved else "bold yellow"
    head, _, rest = str(study.resolution).partition(": ")
    words = Text.assemble((f"{head}: ", style), rest) if rest and len(study.arms) > 1 else Text(str(study.resolution))
    return Group(*parts, "", words)


def _grid(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str, words: Sequence[int] = ()) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        title=Text(title, "bold"),
        title_justify="left",
        caption=Text(note, "dim"),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for i, name in enumerate(head):
        if i == 0:
            grid.add_column(name, overflow="fold", min_width=14, max_width=22)
        else:
            grid.add_column(name, justify="left" if i in words else "right", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(each) for each in row))  # a name may have brackets, which are markup otherwise
    return grid


def _means_table(arms: Sequence[ArmStudy]) -> Any:
    rows = []
    for arm in arms:
        mean, median = arm.means[0], arm.means[3]
        rows.append(
            [
                _called(arm.arm, 40),
                f"{arm.n:,}",
                _percent(arm.zeros),
                _short(mean.value),
                _limits(mean),
                _short(median.value),
            ]
        )
    head = ("arm", "rewards", "zeros", "mean", "95 % limits", "median")
    return _grid("Means", head, rows, "Limits of the mean allow for values beyond those seen where a tail is heavy.")


def _robust_table(arms: Sequence[ArmStudy]) -> Any:
    rows = []
    for arm in arms:
        trimmed, blocks, top = arm.means[1], arm.means[2], arm.concentration
        rows.append(
            [
                _called(arm.arm, 40),
                _short(trimmed.value),
                _limits(trimmed),
                _short(blocks.value),
                *(_percent(share) for share in (top.first, top.ten, top.percent)),
            ]
        )
    head = ("arm", "trimmed", "95 % limits", "median of\nmeans", "largest\n1", "\n10", "\n1 %")
    note = "Trimmed: AdaR-UCB's mean; no limit on a side to which rewards are skewed. Largest: their share of the sum of |reward|."
    return _grid("Robust means, and the largest rewards", head, rows, note)


def _tails_table(arms: Sequence[ArmStudy]) -> Any:
    rows = []
    for arm in arms:
        for tail in (arm.left, arm.right):
            name = _called(arm.arm, 40) if tail is arm.left else ""
            found = (_tail_cell(each) for each in (tail.hill, tail.moment, tail.pickands))
            mark = " *" if tail.agree is False and tail.variance != "light" else ""
            rows.append([name, tail.side, *found, VARIANCE[tail.variance] + mark])
    note = (
        "Index with its 95 % interval; Hill's supposes a heavy tail. Variance: it exists above index 2; light: no heavy tail is "
        "visible; open: not decided. * The three disagree: no clean power."
    )
    return _grid(
        "Tail indices, left and right of the median", ("arm", "", "Hill", "moment", "Pickands", "variance"), rows, note
    )


def _skew_table(arms: Sequence[ArmStudy]) -> Any:
    rows = [[_called(arm.arm, 40), _verdict(arm.about_zero), _verdict(arm.about_median)] for arm in arms]
    note = "About 0: AdaR-UCB assumes it of the best arm. About the median: AdaKL-UCB does, and right-skewed rewards contradict it."
    return _grid("Truncated non-positivity", ("arm", "about 0", "about the median"), rows, note, words=(1, 2))


def _also(study: Study) -> list[str]:
    """What suits other arms that may be the best, a line each."""
    lines = [
        f"For {formatted(each.arm)}, which may be the best, too: {each.policy.name} ({each.case})."
        for each in study.also[:ALSO]
    ]
    more = len(study.also) - len(lines)
    return (
        [*lines, f"And for {counted(more, 'more arm')} that may be the best, too, another policy than this."]
        if more
        else lines
    )


def _sampled(study: Study) -> list[str]:
    part = [arm for arm in study.arms if not arm.record.whole]
    if not part:
        return []
    size = max(len(arm.record.sample) for arm in part)
    who = counted(len(part), "arm") if len(study.arms) > 1 else "the arm"
    return [
        f"Of {who} only a part is kept. Counts, the mean and the farthest 1,000 on each side, with the tail indices, are exact; "
        f"the rest comes from a random sample of {size:,} rewards."
    ]


# --- the page -----------------------------------------------------------------------------------------------------------


def write_study(study: Study, path: str | os.PathLike[str], *, command: str, remarks: Sequence[str] = ()) -> None:
    """Write the page; ``command`` is what a reader types to get it again, ``remarks`` are those of `study_table`."""
    page = _page(study, command, remarks).encode()
    write_atomically(path, lambda file: file.write(page))


def _page(study: Study, command: str, remarks: Sequence[str]) -> str:
    charted = _by_size(study.arms)[:CHARTED]
    styles = {arm.arm: i for i, arm in enumerate(charted)}
    recorded = study.recorded
    title = f"{named(recorded.source, 120)}: {counted(len(study.arms), 'arm')}"
    told = {
        "rewards": f"{recorded.rows:,}",
        "arms": f"{len(study.arms):,}",
        "rows left out": f"{recorded.bad.count:,}",
        "best arm": "resolved" if study.resolution.resolved else "not resolved",
    }
    if len(study.arms) == 1:
        del told["best arm"]
    sign = "Rewards are the negatives of what is recorded. " if recorded.negated else ""
    advice = study.advice
    header = f"""<h1>{escaped(title)}</h1>
<div class="verdict"><p>{escaped(study.headline)}</p>
<p>Take <strong>{escaped(advice.policy.name)}</strong> ({escaped(advice.case)}).</p>
<p>{escaped(str(study.resolution))}</p></div>
{facts(told)}
<p class="muted">{sign}Rewards are maximised. Limits and intervals are for 95 %. {escaped(" ".join(_sampled(study)))}</p>
{"".join(warning(f"<p>{escaped(line)}</p>") for line in remarks)}{_left_out(study)}"""
    main = f"""{_arms(study, styles)}
{_advice(study)}
{_resolution(study, styles)}
{_charts(study, charted)}
{_each(study, charted)}
{_reproduce(study, command)}"""
    return document(
        title,
        header,
        main,
        styles=("report.css", "study.css"),
        scripts=("charts.js", "study.js"),
        data=_data(charted, styles),
    )


def _left_out(study: Study) -> str:
    bad = study.recorded.bad
    if not bad.count:
        return ""
    items = "".join(f"<li>{bad.unit} {number:,}: {escaped(named(what, 200))}</li>" for number, what in bad.first)
    rest = f"<li>and {bad.count - len(bad.first):,} more</li>" if bad.count > len(bad.first) else ""
    return warning(
        f"<p><strong>{counted(bad.count, 'row')} left out</strong>, without a reward or an arm to learn from:</p>"
        f"<ul>{items}{rest}</ul>"
    )


def _arms(study: Study, styles: dict[str, int]) -> str:
    body = []
    for arm in study.arms:
        mean, trimmed, _, median = arm.means
        top = arm.concentration
        about = "" if top.exact else "about "
        sample = "" if arm.record.whole else f"sample of {len(arm.record.sample):,}"
        body.append(
            [
                _name(arm.arm, styles),
                cell(arm.n, f"{arm.n:,}", sample),
                cell(arm.zeros, _percent(arm.zeros)),
                cell(mean.value, _short(mean.value), _limits(mean)),
                cell(
                    trimmed.value,
                    _short(trimmed.value),
                    _limits(trimmed) if not math.isnan(trimmed.value) else "too few",
                ),
                cell(median.value, _short(median.value), _limits(median)),
                _tail_in_table(arm.left),
                _tail_in_table(arm.right),
                cell(top.percent, about + _percent(top.percent), f"one: {_percent(top.first)}"),
                _verdicts_in_table(arm),
            ]
        )
    head = [
        *("arm", "rewards", "zeros", "sample mean", "trimmed mean", "median", "left tail index", "right tail index"),
        *("share of the largest 1 %", Words("assumption contradicted?")),
    ]
    return f"""<h2 id="arms">The arms</h2>
{table(head, body, label="The arms", sort=0)}
<p class="muted"><small>Tail index: by the moment estimator, with its interval; moments of a smaller order exist, so the variance
does above 2 and the mean above 1. Share of the largest: of the sum of |reward|. Assumption: truncated non-positivity, which
AdaR-UCB assumes of the best arm about 0 and AdaKL-UCB about the median.</small></p>"""


def _tail_in_table(tail: Tail) -> str:
    found = tail.moment
    words = {
        "light": "no heavy tail",
        "undecided": "variance: open",
        "infinite": "variance infinite",
        "finite": "variance exists",
    }
    notes = [_interval(found), words.get(tail.variance, f"{found.n:,} values")]
    key = None if math.isnan(found.index) else min(found.index, 1e9)
    return cell(key, "light" if tail.variance == "light" else _index(found), *notes)


def _verdicts_in_table(arm: ArmStudy) -> str:
    said = {
        "contradicted": '<span class="bad">yes</span>',
        "not contradicted": "no",
        "too few values": "too few",
    }
    zero, median = said[arm.about_zero.verdict], said[arm.about_median.verdict]
    return f'<td class="words">about 0: {zero}<br>median: {median}</td>'


def _advice(study: Study) -> str:
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in (*study.advice.reasons, *_also(study)))
    return f"""<h2 id="advice">Which policy</h2>
<p>Take <strong>{escaped(study.advice.policy.name)}</strong>: {escaped(study.advice.case)}.</p>
<ul class="reasons">{reasons}</ul>"""


def _resolution(study: Study, styles: dict[str, int]) -> str:
    found = study.resolution
    if not found.others:
        return ""
    body = []
    for each in found.others:
        said = "excluded" if each.excluded else "not excluded"
        body.append(
            [
                _name(each.arm, styles),
                cell(each.difference, _short(each.difference)),
                cell(each.low, _short(each.low)),
                cell(each.allowance, _short(each.allowance) if each.allowance else "–"),
                f'<td class="words"><span class="{"good" if each.excluded else "bad"}">{said}</span></td>',
                f'<td class="words long">{escaped(each.why) or "–"}</td>',
            ]
        )
    answer = (
        "Yes: all other arms are excluded."
        if found.resolved
        else (f"No: {len(found.rivals)} of {counted(len(found.others), 'other arm')} cannot be excluded.")
    )
    head = ["arm", "lower by", "at least by", "of it, allowance", Words("verdict"), Words("what to mind")]
    return f"""<h2 id="best">Is the best arm resolved?</h2>
<p>{answer}</p>
{table(head, body, label="The other arms beside the best one", sort=1)}
<p class="muted"><small>Lower by: the best arm's mean minus this arm's. At least by: the lower limit of that, by
{found.resamples:,} resamples, simultaneously for all arms; below 0 the arm may be the better one. Allowance: for values beyond
those seen, where a tail may be so heavy that resamples cannot tell.</small></p>"""


def _charts(study: Study, charted: Sequence[ArmStudy]) -> str:
    some = ""
    if len(charted) < len(study.arms):
        some = f"<p>Drawn are the {len(charted)} arms with the most rewards, of {len(study.arms)}.</p>"
    lead = charted[0]
    tails = figure(
        "tails",
        0,
        f"Share of rewards farther from the median than a distance, for {counted(len(charted), 'arm')}, on logarithmic axes. "
        f"Left tail of {_called(lead.arm)}: {lead.left.words}; right tail: {lead.right.words}. Arrow keys read out values.",
        "Tails: the share of rewards that lie farther from the arm's median than a distance. On these axes a power tail is "
        "straight, and its slope is minus the index; a light tail bends down. Dashed: the power that Hill's estimator fits to the "
        "largest rewards, where the tail is not called light.",
    )
    excess = figure(
        "excess",
        0,
        f"Mean excess over a threshold for {counted(len(charted), 'arm')}, on logarithmic axes. Arrow keys read out values.",
        "Mean excess: how much farther those that lie beyond a threshold lie, on average. It rises in proportion for a power "
        "tail, stays level for an exponential one and falls for lighter ones. The right end rests on a few rewards only.",
    )
    spread = figure(
        "distribution",
        0,
        f"Distribution of rewards of {counted(len(charted), 'arm')}: {_called(lead.arm)} has the median {_short(lead.median)}.",
        "Distributions, on an axis that is even in the middle and logarithmic far out. Below each: the line holds 98 % of the "
        "rewards, the bar the middle half, the stroke is the median.",
    )
    return f"""<h2 id="tails">Tails and distributions</h2>{some}
<h3>Tails</h3>{tails}
<h3>Mean excess</h3>{excess}
<h3>Distributions</h3>{spread}"""


def _each(study: Study, charted: Sequence[ArmStudy]) -> str:
    parts = []
    for number, arm in enumerate(charted):
        opened = " open" if len(charted) <= OPEN or number == 0 else ""
        words = f"{counted(arm.n, 'reward')}; left tail: {arm.left.words}; right tail: {arm.right.words}"
        parts.append(
            f"""<details class="problem" id="a{number}"{opened}>
<summary>{swatch(number)}<h2><bdi>{escaped(_called(arm.arm))}</bdi></h2><p class="muted">{escaped(words)}</p></summary>
{_arm(arm, number)}
</details>"""
        )
    return "<h2>Arm by arm</h2>" + "\n".join(parts)


def _arm(arm: ArmStudy, number: int) -> str:
    means = [
        [
            f'<th scope="row">{escaped(each.name)}</th>',
            cell(each.value, _short(each.value)),
            f"<td>{escaped(_limits(each))}</td>",
            f'<td class="words">{escaped("; ".join(filter(None, (each.assumed, each.note)))) or "–"}</td>',
        ]
        for each in arm.means
    ]
    tails = []
    for tail in (arm.left, arm.right):
        for found, path in zip((tail.hill, tail.moment, tail.pickands), tail.paths, strict=True):
            tails.append(
                [
                    f'<th scope="row">{tail.side}, {found.method.title() if found.method != "moment" else "moment"}</th>',
                    cell(None if math.isnan(found.index) else min(found.index, 1e9), _index(found)),
                    f"<td>{escaped(_interval(found) or '–')}</td>",
                    cell(found.k, f"{found.k:,} of {found.n:,}" if found.k else f"of {found.n:,}"),
                    f"<td>{escaped(_spread(*path.spread))}</td>",
                ]
            )
    top = arm.concentration
    size = (
        ""
        if math.isnan(top.first)
        else (
            f"<p>Of the sum of |reward| the largest one has {_percent(top.first)}, the ten largest have {_percent(top.ten)}, "
            f"the largest 1 % have {'' if top.exact else 'about '}{_percent(top.percent)}. "
            f"Rewards go from {_short(arm.record.least)} to {_short(arm.record.greatest)}.</p>"
        )
    )
    plot = figure(
        "index",
        number,
        f"Tail index of {_called(arm.arm)} by three estimators, for k from 5 to half of the rewards on a side. Arrow keys read out "
        "values.",
        "The index for every k, with 95 % bands; the large marks are the k of the rule. Believe an estimate where its line is "
        "level and the others agree. The axis is even in 1 / index: higher is heavier.",
    )
    label = _called(arm.arm)
    return f"""<div class="two"><div><h4>Means</h4>
{table(["", "value", "95 % limits", Words("assumes; remarks")], means, label=f"Means of {label}")}{size}
<p>Truncated non-positivity {escaped(str(arm.about_zero))}.</p>
<p>Truncated non-positivity {escaped(str(arm.about_median))}.</p></div>
<div><h4>Tail indices</h4>
{table(["", "index", "95 % interval", "k", "for k/2 to 2k"], tails, label=f"Tail indices of {label}")}
<p>Left: {escaped(arm.left.words)}.</p><p>Right: {escaped(arm.right.words)}.</p></div></div>
{plot}"""


def _reproduce(study: Study, command: str) -> str:
    recorded = study.recorded
    told = {
        "read from": named(recorded.source, 300),
        "rows": f"{recorded.rows:,} used, {recorded.bad.count:,} left out",
        "versions": ", ".join(f"{name} {each}" for name, each in versions("numpy", "scipy", "polars").items()),
    }
    return f"""<h2>To get this again</h2>
<pre><code>{escaped(command)}</code></pre>
<p>Nothing is left to chance: samples and resamples have fixed seeds.</p>
{pairs(told, label="Source and versions")}"""


# --- what is drawn --------------------------------------------------------------------------------------------------------


def _data(arms: Sequence[ArmStudy], styles: dict[str, int]) -> dict[str, Any]:
    axis = _axis(arms)
    first, last = (math.asinh((axis[end] - axis["centre"]) / axis["unit"]) for end in ("low", "high"))
    edges = axis["centre"] + axis["unit"] * np.sinh(np.linspace(first, last, BINS + 1))
    edges[0], edges[-1] = axis["low"], axis["high"]
    rows = []
    for arm in arms:
        values = arm.record.sample
        heights = np.histogram(values, np.maximum.accumulate(edges))[0]
        box = np.quantile(values, [0.01, 0.25, 0.5, 0.75, 0.99])
        rows.append(
            {
                "label": _called(arm.arm),
                "style": styles[arm.arm],
                "left": _side(arm, arm.left),
                "right": _side(arm, arm.right),
                "box": [rounded(float(q), 6) for q in box],
                "heights": [round(100.0 * h / max(1, int(heights.max())), 1) for h in heights.tolist()],
            }
        )
    return {"arms": rows, "axis": {name: each if name == "ticks" else rounded(each, 12) for name, each in axis.items()}}


def _side(arm: ArmStudy, tail: Tail) -> dict[str, Any]:
    sign = -1.0 if tail.side == "left" else 1.0
    size = _distances(sign * arm.record.sample, sign * arm.median)
    n = len(arm.record.sample)
    drawn = math.ceil(TAIL * len(size))  # nearer ones would take most of a logarithmic axis
    ranks = _ranks(1, drawn)
    x, p = size[ranks - 1], ranks / n
    far = size
    if not arm.record.whole:  # the farthest are known exactly
        far = _distances(sign * (arm.record.smallest if sign < 0.0 else arm.record.largest), sign * arm.median)
        exact = _ranks(1, len(far))
        rest = p > len(far) / arm.record.n
        x, p = np.concatenate([far[exact - 1], x[rest]]), np.concatenate([exact / arm.record.n, p[rest]])
    few = _ranks(LEAST_EXCESS, min(drawn, len(size) - 1))
    beyond = np.cumsum(size)[few - 1] / few - size[few] if len(few) else np.empty(0)
    paths = {
        method: {
            "k": path.k.tolist(),
            **{name: [rounded(v) for v in getattr(path, name).tolist()] for name in ("shape", "low", "high")},
            "chosen": path.chosen,
        }
        for method, path in zip(METHODS, tail.paths, strict=True)
    }
    return {
        "survival": _curve(x, p),
        "fit": _fit(far, n if arm.record.whole else arm.record.n, tail),
        "excess": _curve(size[few], beyond),
        "paths": paths,
        "words": tail.words.removeprefix("unknown: "),
    }


def _distances(values: Floats, median: float) -> Floats:
    """From the median to the right, in falling order."""
    above = values[values > median]
    return -np.sort(-(above - median))


def _ranks(first: int, last: int) -> Any:
    if last < first:
        return np.empty(0, np.int64)
    return np.unique(np.round(np.geomspace(first, last, POINTS)).astype(np.int64))


def _curve(x: Floats, y: Floats) -> dict[str, Any]:
    """Points from left to right, without those of the same place."""
    order = np.argsort(x, kind="stable")
    points = {rounded(float(x[i])): rounded(float(y[i])) for i in order if y[i] > 0.0}  # of equal ones the last
    return {"x": list(points), "y": list(points.values())}


def _fit(size: Floats, n: int, tail: Tail) -> dict[str, Any] | None:
    """Hill's power over the values that it was fitted to."""
    index, k = tail.hill.index, tail.hill.k
    if tail.variance in ("light", "unknown") or not math.isfinite(index) or k >= len(size):
        return None
    ends = np.array([size[k], size[0]])
    return {
        "x": [rounded(float(v)) for v in ends],
        "y": [rounded(float(v)) for v in k / n * (ends / ends[0]) ** -index],
    }


def _axis(arms: Sequence[ArmStudy]) -> dict[str, Any]:
    """An axis for all rewards: even within a unit of the centre, which is 0 unless they lie far from it."""
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
        ticks |= {rounded(centre + sign * many * step, 6) for sign in (-1.0, 1.0) for many in (1.0, 2.0, 5.0)}
        step *= 10.0
    kept = sorted(v for v in ticks if v is not None and low <= v <= high)
    return {"centre": centre, "unit": unit, "low": low, "high": high, "ticks": kept}


# --- words and numbers ------------------------------------------------------------------------------------------------------


def _called(arm: str, most: int = 60) -> str:
    """A name; in quotes if it has what is not seen, so that no two names look the same.

    >>> _called("a"), _called(" a"), _called("a" + chr(9)), _called("")
    ('a', "' a'", "'a\\\\t'", '(empty)')
    """
    return named(arm if arm == arm.strip() and arm.isprintable() else repr(arm), most)


def _by_size(arms: Sequence[ArmStudy]) -> list[ArmStudy]:
    """Those with the most rewards first."""
    return sorted(arms, key=lambda arm: -arm.n)


def _name(arm: str, styles: dict[str, int]) -> str:
    mark = swatch(styles[arm]) if arm in styles else ""
    link = (
        f'<a href="#a{styles[arm]}"><bdi>{escaped(_called(arm))}</bdi></a>'
        if arm in styles
        else f"<bdi>{escaped(_called(arm))}</bdi>"
    )
    return f'<th scope="row" title="{escaped(_called(arm, 300))}">{mark}{link}</th>'


def _short(value: float) -> str:
    """Four digits."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0.0 else "-∞"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def _limits(mean: Mean) -> str:
    """Both limits, or the one there is."""
    low, high = math.isfinite(mean.low), math.isfinite(mean.high)
    if low and high:
        return f"{_three(mean.low)} to {_three(mean.high)}"
    return f"≥ {_three(mean.low)}" if low else f"≤ {_three(mean.high)}" if high else "none"


def _three(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def _index(found: TailIndex) -> str:
    if math.isnan(found.index):
        return "unknown"
    return "∞" if math.isinf(found.index) else f"{found.index:.2f}" if found.index < 100.0 else f"{found.index:,.0f}"


def _interval(found: TailIndex) -> str:
    if math.isnan(found.index) or math.isinf(found.low):
        return ""
    return f"above {found.low:.3g}" if math.isinf(found.high) else f"{found.low:.2f} to {found.high:.3g}"


def _tail_cell(found: TailIndex) -> str:
    """Index and interval in as few letters as can be."""
    if math.isnan(found.index):
        return "unknown"
    if math.isinf(found.high):
        return "light" if found.low >= 100.0 else f"> {found.low:.2g}"
    if found.low >= 100.0:
        return "> 100"
    index, low, high = (f"{end:.2f}" if end < 10.0 else f"{end:.3g}" for end in (found.index, found.low, found.high))
    return f"{index} {low}–{high}"


def _spread(low: float, high: float) -> str:
    if math.isnan(low):
        return "–"
    ends = ["∞" if math.isinf(end) or end >= 1e3 else f"{end:.2f}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _verdict(found: Nonpositivity) -> str:
    said = SAID[found.verdict].upper() if found.verdict == "contradicted" else SAID[found.verdict]
    return f"{said} (z {found.statistic:.3g})" if not math.isnan(found.statistic) else said


def _percent(share: float) -> str:
    return "0" if share == 0.0 else percent(share)
