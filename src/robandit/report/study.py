"""The page of `robandit diagnose`, one self-contained HTML file about recorded rewards."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from robandit.diagnostics.study import ArmStudy, Concentration, Study, Tail
from robandit.diagnostics.tails import TailIndex
from robandit.diagnostics.timeline import NAMED
from robandit.diagnostics.words import Words, words
from robandit.files import write_atomically
from robandit.report import pieces
from robandit.report.pieces import cell, escaped, figure, named, swatch, table, words_cell
from robandit.report.study_data import study_data
from robandit.report.study_text import advice_lines, arm_name, limits, sampling_lines, share
from robandit.wording import compact, counted, listed

CHARTED = 24  # the arms with the most rewards have curves and a section
OPEN = 3  # arms whose sections are open at first
VARIANCE = {
    "light": "no heavy tail",
    "finite": "likely finite",
    "infinite": "likely infinite",
    "undecided": "may be infinite",
}
METHOD_NAMES = {"gpd": "stated", "hill": "Hill", "moment": "moment"}
VERDICTS = {"contradicted": '<span class="bad">yes</span>', "not contradicted": "no", "too few values": "too few"}


def write_study(study: Study, path: str | os.PathLike[str], *, command: str, remarks: Sequence[str] = ()) -> None:
    """Write the page; ``command`` reproduces it, and ``remarks`` are notes about the file."""
    charted = sorted(study.arms, key=lambda arm: -arm.n)[:CHARTED]
    styles = {arm.arm: i for i, arm in enumerate(charted)}
    recorded = study.recorded
    title = f"{named(recorded.source, 120)}: {counted(len(study.arms), 'arm')}"
    kind = words(study.minimize)
    counts = {kind.many: recorded.rows, "arms": len(study.arms), "rows skipped": recorded.bad.count}
    figures = {name: f"{count:,}" for name, count in counts.items()}
    if len(study.arms) > 1:
        figures["best arm"] = study.verdict.word
    sign = f"{kind.many.capitalize()} are {'minimised' if study.minimize else 'maximised'}."
    policy, case = f"Use <strong>{escaped(study.advice.policy.name)}</strong>", escaped(study.advice.case)
    reasons = "".join(f"<li>{escaped(reason)}</li>" for reason in advice_lines(study))
    header = f"""<h1>{escaped(title)}</h1>
{pieces.warnings(study.first_lines)}<div class="verdict"><p>{escaped(study.headline)}</p>
<p>{policy} ({case}).</p>
<p>{escaped(str(study.verdict))}</p></div>
{pieces.facts(figures)}
<p class="muted">{sign} Limits and intervals have 95 % confidence.
{escaped(" ".join(sampling_lines(study)))}</p>
{pieces.warnings(remarks)}{_skipped(study)}"""
    opened = [" open" if len(charted) <= OPEN or i == 0 else "" for i in range(len(charted))]
    sections = "\n".join(_section(study, *each) for each in zip(charted, range(len(charted)), opened, strict=True))
    main = f"""{_arms(study, styles)}
<h2 id="advice">Which policy to use</h2>
<p>{policy}: {case}.</p>
<ul class="reasons">{reasons}</ul>
{_resolution(study, styles)}
{_over_time(study, charted)}
{_charts(study, charted)}
<h2>Arm by arm</h2>{sections}
{_reproduce(study, command)}"""
    assets = {"styles": ("report.css", "study.css"), "scripts": ("charts.js", "study.js")}
    data = study_data(charted, styles, kind.one, study.timeline, study.drift)
    page = pieces.document(title, header, main, **assets, data=data)
    write_atomically(path, page.encode())


def _skipped(study: Study) -> str:
    bad = study.recorded.bad
    if not bad.count:
        return ""
    items = "".join(f"<li>{bad.unit} {number:,}: {escaped(named(fault, 200))}</li>" for number, fault in bad.first)
    rest = f"<li>and {bad.count - len(bad.first):,} more</li>" if bad.count > len(bad.first) else ""
    head = f"<strong>{counted(bad.count, 'row')} skipped</strong> without a usable arm, {words(study.minimize).one} or time:"
    return pieces.warning(f"<p>{head}</p><ul>{items}{rest}</ul>")


def _arms(study: Study, styles: dict[str, int]) -> str:
    rows, kind = [], words(study.minimize)
    for arm in study.arms:
        mean, trimmed, _, median = arm.means
        top = arm.concentration
        sample = "" if arm.record.whole else f"sample of {len(arm.record.sample):,}"
        trimmed_note = "too few" if math.isnan(trimmed.value) else limits(trimmed)
        zero, centre = VERDICTS[arm.about_zero.verdict], VERDICTS[arm.about_median.verdict]
        rows.append(
            {
                "arm": _name(arm.arm, styles),
                kind.many: cell(arm.n, f"{arm.n:,}", sample),
                "zeros": cell(arm.zeros, share(arm.zeros)),
                "sample mean": _compact_cell(mean.value, limits(mean)),
                "trimmed mean": _compact_cell(trimmed.value, trimmed_note),
                "median": _compact_cell(median.value, limits(median)),
                "left tail index": _tail_cell(arm.left),
                "right tail index": _tail_cell(arm.right),
                "share of the largest 1 %": cell(top.percent, _largest_share(top), f"one: {share(top.first)}"),
                "assumption contradicted?": words_cell(f"about 0: {zero}<br>median: {centre}"),
            }
        )
    return f"""<h2 id="arms">The arms</h2>
{table(rows, label="The arms", sort=0)}
<p class="muted"><small>The tail index has a 95 % interval that allows for bias. "Above" means that the tail may be light.
The words below it are about the variance, which is finite if the index is above 2. The mean is finite if it is above 1.
The share of the largest 1 % is its share in the sum of |{kind.one}|. The assumption is
{kind.assumption} of the best arm, about 0 or about its median. Policies that trim {kind.many} make it, such as AdaR-UCB;
AdaKL-UCB does not.</small></p>"""


def _tail_cell(tail: Tail) -> str:
    index = tail.stated
    notes = [index.interval, VARIANCE.get(tail.variance, counted(index.n, "value"))]
    return cell(_sort_key(index), "light" if tail.variance == "light" else _index(index), *notes)


def _resolution(study: Study, styles: dict[str, int]) -> str:
    resolution = study.resolution
    if not resolution.others:
        return ""
    rows, kind = [], words(study.minimize)
    for each in resolution.others:
        style, verdict = ("good", "excluded") if each.excluded else ("bad", "not excluded")
        rows.append(
            {
                "arm": _name(each.arm, styles),
                f"{kind.worse} by": _compact_cell(each.difference),
                "at least by": _compact_cell(each.low),
                "allowance in it": cell(each.allowance, compact(each.allowance) if each.allowance else "–"),
                "verdict": words_cell(f'<span class="{style}">{verdict}</span>'),
                "remarks": words_cell(escaped(each.why) or "–", "words long"),
            }
        )
    answer = f"No: {len(resolution.rivals)} of {counted(len(resolution.others), 'other arm')} cannot be excluded."
    if resolution.resolved:
        answer = f"Yes: all {'arms that were compared' if resolution.left_out else 'other arms'} are excluded."
    elif not resolution.rivals:
        answer = f"No: {resolution.doubt} All arms that were compared are excluded."
    answer = f"{answer} {resolution.omission}".strip()
    if study.drift:
        answer = f"{study.verdict} The table is about the whole record."
    return f"""<h2 id="best">Is the best arm significantly better?</h2>
<p>{escaped(answer)}</p>
{table(rows, label="The other arms against the best one", sort=1)}
<p class="muted"><small>{kind.worse.capitalize()} by: the difference between the means of this arm and of the best arm.
At least by: the lower confidence limit of this difference, simultaneous for all arms, by {resolution.resamples:,} resamples. If
it is below 0, this arm may be better.
Allowance: the part for larger values than observed, because a tail may be too heavy for resampling.</small></p>"""


def _over_time(study: Study, charted: Sequence[ArmStudy]) -> str:
    if study.timeline is None or study.drift is None:
        return ""
    kind, drift = words(study.minimize), study.drift
    changed = listed([arm_name(each.arm) for each in drift.changes], NAMED)
    found = f"Changed: {changed}." if drift else "No arm changed."
    if not drift.tested:
        found = f"No arm has enough {kind.many} to test for changes."
    chart = figure(
        "time",
        0,
        f"Mean {kind.one} over time for {counted(len(charted), 'arm')}. {found} Arrow keys read out values.",
        f"The mean {kind.one} of each arm in equal parts of the record, in order of time. Vertical lines: changes. {found}",
    )
    return f"""<h2 id="time">Means over time</h2>{chart}"""


def _charts(study: Study, charted: Sequence[ArmStudy]) -> str:
    part, many = "", words(study.minimize).many
    if len(charted) < len(study.arms):
        part = f"<p>The charts show the {len(charted)} arms with the most {many}, of {len(study.arms)}.</p>"
    first = charted[0]
    arms = counted(len(charted), "arm")
    tails = figure(
        "tails",
        0,
        f"Share of {many} farther from the median than a distance, for {arms}, on logarithmic axes. "
        f"Left tail of {arm_name(first.arm)}: {first.left.words}; right tail: {first.right.words}. Arrow keys read out values.",
        f"Tails: the share of {many} farther from the median of the arm than a distance. On these axes a power tail is a straight "
        "line whose slope is minus the index, and a light tail bends down. Dashed: the power law that Hill's estimator fits to the "
        f"largest {many}, if the tail is not light.",
    )
    distributions = figure(
        "distribution",
        0,
        f"Distribution of {many} of {arms}: {arm_name(first.arm)} has the median {compact(first.median)}.",
        "Distributions, on an axis that is linear in the middle and logarithmic outside. Below each distribution, the line covers "
        f"98 % of the {many}, the bar covers the middle half, and the stroke marks the median.",
    )
    return f"""<h2 id="tails">Tails and distributions</h2>{part}
<h3>Tails</h3>{tails}
<h3>Distributions</h3>{distributions}"""


def _section(study: Study, arm: ArmStudy, number: int, opened: str) -> str:
    name, kind = arm_name(arm.arm), words(study.minimize)
    facts = f"{counted(arm.n, kind.one)}; left tail: {arm.left.words}; right tail: {arm.right.words}"
    means = [
        {
            "": f'<th scope="row">{escaped(each.name)}</th>',
            "value": _compact_cell(each.value),
            "95 % limits": f"<td>{escaped(limits(each))}</td>",
            "assumption; remarks": words_cell(escaped("; ".join(filter(None, (each.assumed, each.note)))) or "–"),
        }
        for each in arm.means
    ]
    indices = [
        {
            "": f'<th scope="row">{tail.side}, {METHOD_NAMES[index.method]}</th>',
            "index": cell(_sort_key(index), _index(index)),
            "95 % interval": f"<td>{escaped((index.interval if path is None else '') or '–')}</td>",
            "k": cell(index.k, f"{index.k:,} of {index.n:,}" if index.k else f"of {index.n:,}"),
        }
        for tail in (arm.left, arm.right)
        for index, path in zip((tail.stated, tail.hill, tail.moment), (None, *tail.paths), strict=True)
    ]
    plot = figure(
        "index",
        number,
        f"Tail index of {name} by two estimators, for k from 5 to half of the {kind.many} on a side. Arrow keys read out values.",
        "The index for every k, with 95 % bands for chance alone, without bias; large marks show the k that the rule chooses. "
        "Trust an estimate where its line is level and the others agree. The axis is linear in 1 / index: higher is heavier.",
    )
    return f"""<details class="problem" id="a{number}"{opened}>
<summary>{swatch(number)}<h2><bdi>{escaped(name)}</bdi></h2><p class="muted">{escaped(facts)}</p></summary>
<div class="two"><div><h4>Means</h4>
{table(means, label=f"Means of {name}")}{_concentration(arm, kind)}
<p>{kind.assumption.capitalize()} {escaped(str(arm.about_zero))}.</p>
<p>{kind.assumption.capitalize()} {escaped(str(arm.about_median))}.</p></div>
<div><h4>Tail indices</h4>
{table(indices, label=f"Tail indices of {name}")}
<p>Left: {escaped(arm.left.words)}.</p><p>Right: {escaped(arm.right.words)}.</p></div></div>
{plot}
</details>"""


def _concentration(arm: ArmStudy, kind: Words) -> str:
    top = arm.concentration
    if math.isnan(top.first):
        return ""
    return (
        f"<p>Share in the sum of |{kind.one}|: the largest {share(top.first)}, the ten largest {share(top.ten)}, the largest 1 % "
        f"{_largest_share(top)}. {kind.many.capitalize()} range from {compact(arm.record.least)} to "
        f"{compact(arm.record.greatest)}.</p>"
    )


def _largest_share(top: Concentration) -> str:
    return ("" if top.exact else "about ") + share(top.percent)


def _reproduce(study: Study, command: str) -> str:
    recorded = study.recorded
    details = {
        "source": named(recorded.source, 300),
        "rows": f"{recorded.rows:,} used, {recorded.bad.count:,} skipped",
        "versions": ", ".join(f"{name} {each}" for name, each in pieces.versions("numpy", "scipy", "polars").items()),
    }
    remark = "\n<p>Samples and resamples have fixed seeds, so the result is always the same.</p>"
    return pieces.reproduction("page", command, remark, details, label="Source and versions")


def _compact_cell(value: float, *notes: str) -> str:
    return cell(value, compact(value), *notes)


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
