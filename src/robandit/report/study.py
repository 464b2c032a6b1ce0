"""The page of `robandit diagnose`: one self-contained HTML file about recorded rewards."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from robandit.diagnostics.study import ArmStudy, Study, Tail
from robandit.diagnostics.tails import TailIndex
from robandit.files import write_atomically
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
from robandit.report.study_data import study_data
from robandit.report.study_text import advice_lines, arm_name, largest_first, limits, sampling_lines, share
from robandit.wording import compact, counted

__all__ = ["write_study"]

CHARTED = 24  # arms with curves and a section of their own, those with the most rewards
OPEN = 3  # arms whose sections are open at first
VARIANCE = {
    "light": "no heavy tail",
    "undecided": "variance unclear",
    "infinite": "infinite variance",
    "finite": "finite variance",
}
VERDICTS = {
    "contradicted": '<span class="bad">yes</span>',
    "not contradicted": "no",
    "too few values": "too few",
}


def write_study(study: Study, path: str | os.PathLike[str], *, command: str, remarks: Sequence[str] = ()) -> None:
    """Write the page; ``command`` reproduces it, ``remarks`` are notes about the file, a line each."""
    page = _page(study, command, remarks).encode()
    write_atomically(path, page)


def _page(study: Study, command: str, remarks: Sequence[str]) -> str:
    charted = largest_first(study.arms)[:CHARTED]
    styles = {arm.arm: i for i, arm in enumerate(charted)}
    recorded = study.recorded
    title = f"{named(recorded.source, 120)}: {counted(len(study.arms), 'arm')}"
    figures = {
        "rewards": f"{recorded.rows:,}",
        "arms": f"{len(study.arms):,}",
        "rows skipped": f"{recorded.bad.count:,}",
    }
    if len(study.arms) > 1:
        figures["best arm"] = "significant" if study.resolution.resolved else "not significant"
    sign = "Rewards are the negatives of the recorded values. " if recorded.negated else ""
    advice = study.advice
    header = f"""<h1>{escaped(title)}</h1>
<div class="verdict"><p>{escaped(study.headline)}</p>
<p>Use <strong>{escaped(advice.policy.name)}</strong> ({escaped(advice.case)}).</p>
<p>{escaped(str(study.resolution))}</p></div>
{facts(figures)}
<p class="muted">{sign}Rewards are maximised. Limits and intervals have 95 % confidence.
{escaped(" ".join(sampling_lines(study)))}</p>
{"".join(warning(f"<p>{escaped(line)}</p>") for line in remarks)}{_skipped(study)}"""
    main = f"""{_arms(study, styles)}
{_advice(study)}
{_resolution(study, styles)}
{_charts(study, charted)}
{_sections(charted)}
{_reproduce(study, command)}"""
    return document(
        title,
        header,
        main,
        styles=("report.css", "study.css"),
        scripts=("charts.js", "study.js"),
        data=study_data(charted, styles),
    )


def _skipped(study: Study) -> str:
    bad = study.recorded.bad
    if not bad.count:
        return ""
    items = "".join(f"<li>{bad.unit} {number:,}: {escaped(named(fault, 200))}</li>" for number, fault in bad.first)
    rest = f"<li>and {bad.count - len(bad.first):,} more</li>" if bad.count > len(bad.first) else ""
    return warning(
        f"<p><strong>{counted(bad.count, 'row')} skipped</strong>, without a usable arm or reward:</p><ul>{items}{rest}</ul>"
    )


def _arms(study: Study, styles: dict[str, int]) -> str:
    body = []
    for arm in study.arms:
        mean, trimmed, _, median = arm.means
        top = arm.concentration
        about = "" if top.exact else "about "
        sample = "" if arm.record.whole else f"sample of {len(arm.record.sample):,}"
        trimmed_note = "too few" if math.isnan(trimmed.value) else limits(trimmed)
        zero, centre = VERDICTS[arm.about_zero.verdict], VERDICTS[arm.about_median.verdict]
        body.append(
            [
                _name(arm.arm, styles),
                cell(arm.n, f"{arm.n:,}", sample),
                cell(arm.zeros, share(arm.zeros)),
                cell(mean.value, compact(mean.value), limits(mean)),
                cell(trimmed.value, compact(trimmed.value), trimmed_note),
                cell(median.value, compact(median.value), limits(median)),
                _tail_cell(arm.left),
                _tail_cell(arm.right),
                cell(top.percent, about + share(top.percent), f"one: {share(top.first)}"),
                f'<td class="words">about 0: {zero}<br>median: {centre}</td>',
            ]
        )
    head = [
        *("arm", "rewards", "zeros", "sample mean", "trimmed mean", "median", "left tail index", "right tail index"),
        *("share of the largest 1 %", Words("assumption contradicted?")),
    ]
    return f"""<h2 id="arms">The arms</h2>
{table(head, body, label="The arms", sort=0)}
<p class="muted"><small>Tail index: by the moment estimator, with its interval. Moments of lower order exist: the variance if the
index is above 2, the mean if it is above 1. Share of the largest 1 %: in the sum of |reward|. Assumption: truncated non-positivity
of the best arm, about 0 for AdaR-UCB and about the median for AdaKL-UCB.</small></p>"""


def _tail_cell(tail: Tail) -> str:
    moment = tail.moment
    notes = [_interval(moment), VARIANCE.get(tail.variance, counted(moment.n, "value"))]
    return cell(_sort_key(moment), "light" if tail.variance == "light" else _index(moment), *notes)


def _advice(study: Study) -> str:
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in advice_lines(study))
    return f"""<h2 id="advice">Which policy to use</h2>
<p>Use <strong>{escaped(study.advice.policy.name)}</strong>: {escaped(study.advice.case)}.</p>
<ul class="reasons">{reasons}</ul>"""


def _resolution(study: Study, styles: dict[str, int]) -> str:
    resolution = study.resolution
    if not resolution.others:
        return ""
    body = []
    for each in resolution.others:
        kind, verdict = ("good", "excluded") if each.excluded else ("bad", "not excluded")
        body.append(
            [
                _name(each.arm, styles),
                cell(each.difference, compact(each.difference)),
                cell(each.low, compact(each.low)),
                cell(each.allowance, compact(each.allowance) if each.allowance else "–"),
                f'<td class="words"><span class="{kind}">{verdict}</span></td>',
                f'<td class="words long">{escaped(each.why) or "–"}</td>',
            ]
        )
    answer = (
        "Yes: all other arms are excluded."
        if resolution.resolved
        else f"No: {len(resolution.rivals)} of {counted(len(resolution.others), 'other arm')} cannot be excluded."
    )
    head = ["arm", "lower by", "at least by", "allowance in it", Words("verdict"), Words("remarks")]
    return f"""<h2 id="best">Is the best arm significantly better?</h2>
<p>{answer}</p>
{table(head, body, label="The other arms against the best one", sort=1)}
<p class="muted"><small>Lower by: the mean of the best arm minus the mean of this arm. At least by: the lower confidence limit of
that, by {resolution.resamples:,} resamples, simultaneous for all arms; below 0, this arm may be the better one. Allowance: for
values beyond those observed, where a tail may be too heavy for resampling.</small></p>"""


def _charts(study: Study, charted: Sequence[ArmStudy]) -> str:
    part = ""
    if len(charted) < len(study.arms):
        part = f"<p>The charts show the {len(charted)} arms with the most rewards, of {len(study.arms)}.</p>"
    first = charted[0]
    arms = counted(len(charted), "arm")
    tails = figure(
        "tails",
        0,
        f"Share of rewards farther from the median than a distance, for {arms}, on logarithmic axes. "
        f"Left tail of {arm_name(first.arm)}: {first.left.words}; right tail: {first.right.words}. Arrow keys read out values.",
        "Tails: the share of rewards farther from the median of the arm than a distance. On these axes a power tail is a straight "
        "line with slope minus the index; a light tail bends down. Dashed: the power law that Hill's estimator fits to the largest "
        "rewards, where the tail is not light.",
    )
    excess = figure(
        "excess",
        0,
        f"Mean excess over a threshold for {arms}, on logarithmic axes. Arrow keys read out values.",
        "Mean excess: how far the rewards beyond a threshold exceed it, on average. It is proportional to the threshold for a "
        "power tail, is constant for an exponential tail and falls for lighter ones. The right end rests on only a few rewards.",
    )
    distributions = figure(
        "distribution",
        0,
        f"Distribution of rewards of {arms}: {arm_name(first.arm)} has the median {compact(first.median)}.",
        "Distributions, on an axis that is linear in the middle and logarithmic outside. Below each: the line covers 98 % of the "
        "rewards, the bar the middle half, and the stroke marks the median.",
    )
    return f"""<h2 id="tails">Tails and distributions</h2>{part}
<h3>Tails</h3>{tails}
<h3>Mean excess</h3>{excess}
<h3>Distributions</h3>{distributions}"""


def _sections(charted: Sequence[ArmStudy]) -> str:
    parts = []
    for number, arm in enumerate(charted):
        opened = " open" if len(charted) <= OPEN or number == 0 else ""
        words = f"{counted(arm.n, 'reward')}; left tail: {arm.left.words}; right tail: {arm.right.words}"
        parts.append(
            f"""<details class="problem" id="a{number}"{opened}>
<summary>{swatch(number)}<h2><bdi>{escaped(arm_name(arm.arm))}</bdi></h2><p class="muted">{escaped(words)}</p></summary>
{_section(arm, number)}
</details>"""
        )
    return "<h2>Arm by arm</h2>" + "\n".join(parts)


def _section(arm: ArmStudy, number: int) -> str:
    name = arm_name(arm.arm)
    means = [
        [
            f'<th scope="row">{escaped(each.name)}</th>',
            cell(each.value, compact(each.value)),
            f"<td>{escaped(limits(each))}</td>",
            f'<td class="words">{escaped("; ".join(filter(None, (each.assumed, each.note)))) or "–"}</td>',
        ]
        for each in arm.means
    ]
    indices = [
        [
            f'<th scope="row">{tail.side}, {index.method.title() if index.method != "moment" else "moment"}</th>',
            cell(_sort_key(index), _index(index)),
            f"<td>{escaped(_interval(index) or '–')}</td>",
            cell(index.k, f"{index.k:,} of {index.n:,}" if index.k else f"of {index.n:,}"),
            f"<td>{escaped(_range(*path.spread))}</td>",
        ]
        for tail in (arm.left, arm.right)
        for index, path in zip((tail.hill, tail.moment, tail.pickands), tail.paths, strict=True)
    ]
    plot = figure(
        "index",
        number,
        f"Tail index of {name} by three estimators, for k from 5 to half of the rewards on a side. Arrow keys read out values.",
        "The index for every k, with 95 % bands; large marks show the k that the rule chooses. Trust an estimate where its line "
        "is level and the others agree. The axis is linear in 1 / index: higher is heavier.",
    )
    return f"""<div class="two"><div><h4>Means</h4>
{table(["", "value", "95 % limits", Words("assumption; remarks")], means, label=f"Means of {name}")}{_concentration(arm)}
<p>Truncated non-positivity {escaped(str(arm.about_zero))}.</p>
<p>Truncated non-positivity {escaped(str(arm.about_median))}.</p></div>
<div><h4>Tail indices</h4>
{table(["", "index", "95 % interval", "k", "for k/2 to 2k"], indices, label=f"Tail indices of {name}")}
<p>Left: {escaped(arm.left.words)}.</p><p>Right: {escaped(arm.right.words)}.</p></div></div>
{plot}"""


def _concentration(arm: ArmStudy) -> str:
    top = arm.concentration
    if math.isnan(top.first):
        return ""
    return (
        f"<p>Share in the sum of |reward|: the largest {share(top.first)}, the ten largest {share(top.ten)}, the largest 1 % "
        f"{'' if top.exact else 'about '}{share(top.percent)}. "
        f"Rewards range from {compact(arm.record.least)} to {compact(arm.record.greatest)}.</p>"
    )


def _reproduce(study: Study, command: str) -> str:
    recorded = study.recorded
    details = {
        "source": named(recorded.source, 300),
        "rows": f"{recorded.rows:,} used, {recorded.bad.count:,} skipped",
        "versions": ", ".join(f"{name} {each}" for name, each in versions("numpy", "scipy", "polars").items()),
    }
    return f"""<h2>How to reproduce this page</h2>
<pre><code>{escaped(command)}</code></pre>
<p>Samples and resamples have fixed seeds, so the result is always the same.</p>
{pairs(details, label="Source and versions")}"""


def _name(arm: str, styles: dict[str, int]) -> str:
    name = f"<bdi>{escaped(arm_name(arm))}</bdi>"
    if arm in styles:
        name = f'{swatch(styles[arm])}<a href="#a{styles[arm]}">{name}</a>'
    return f'<th scope="row" title="{escaped(arm_name(arm, 300))}">{name}</th>'


def _index(index: TailIndex) -> str:
    if math.isnan(index.index):
        return "unknown"
    return "∞" if math.isinf(index.index) else f"{index.index:.2f}" if index.index < 100.0 else f"{index.index:,.0f}"


def _sort_key(index: TailIndex) -> float | None:
    return None if math.isnan(index.index) else min(index.index, 1e9)


def _interval(index: TailIndex) -> str:
    if math.isnan(index.index) or math.isinf(index.low):
        return ""
    return f"above {index.low:.3g}" if math.isinf(index.high) else f"{index.low:.2f} to {index.high:.3g}"


def _range(low: float, high: float) -> str:
    if math.isnan(low):
        return "–"
    ends = ["∞" if math.isinf(end) or end >= 1e3 else f"{end:.2f}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
