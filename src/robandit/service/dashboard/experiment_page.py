"""The page of one experiment: traffic over time, robust means, tails, warnings, and the newest decisions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from robandit.decisions.events import payload_of
from robandit.decisions.experiment import LiveExperiment
from robandit.diagnostics.study import Mean
from robandit.diagnostics.tails import TailIndex
from robandit.live.memory import SIZE
from robandit.live.standing import chance_text
from robandit.notebook import escaped
from robandit.objectives import objective_from
from robandit.report.pieces import more, warning
from robandit.service import bodies
from robandit.service.dashboard import charts
from robandit.service.dashboard.layout import Visit, address, badge, definitions, live_part, page, table, time_text
from robandit.service.dashboard.manage import FEW_ARMS, manage, shape_of
from robandit.service.dashboard.timeline import WINDOWS, Timeline
from robandit.service.experiments import warnings_of
from robandit.service.http import Answer
from robandit.service.problems import Problem
from robandit.service.studies import ExperimentStudy
from robandit.storage import Event
from robandit.wording import compact, counted, number, share

FIRST_WARNINGS = 3  # the others are folded
BOUNDED = " Costs with a deadline have both, since none is above the cost of a failure."
MOST_ROWS = 100  # arms in a table that is sent again and again


class Recent(NamedTuple):
    """A decision, and the event that closed it, if there is one. A reset closes decisions without an event."""

    decided: Event
    closed: Event | None
    open: bool


def parts(
    experiment: LiveExperiment,
    summary: bodies.Summary,
    *,
    study: ExperimentStudy | None,
    timeline: Timeline,
    rate: float,
    recent: Sequence[Recent],
    window: str,
    now: float,
) -> dict[str, str]:
    """Return the parts of the page that change, by their ids."""
    columns = timeline.columns(now)
    used = Counter[str]()
    for column in columns:
        used.update(column.decisions)
    pulls = {each.arm: each.pulls for each in summary.arms}
    colours = charts.coloured([each.arm for each in summary.arms], used or pulls)
    return {
        "state": badge(summary.state),
        "shape": shape_of(summary),
        "warnings": _warnings(warnings_of(experiment, study)),
        "leader": _leader(study),
        "facts": _facts(summary, rate),
        "chart": charts.share_chart(columns, colours, window=WINDOWS[window][0], now=now, sampled=timeline.sampled),
        "arms": _arms(summary, study, used, colours),
        "tails": _tails(study, summary.settings),
        "recent": _recent(summary, recent),
    }


def show(
    visit: Visit,
    experiment: LiveExperiment,
    summary: bodies.Summary,
    *,
    window: str,
    made: Mapping[str, str],
    contexts: str = "",
    problem: Problem | None = None,
) -> Answer:
    """Return the page. ``contexts`` is its section about them. A problem is the reason why a change was refused."""
    name = experiment.name
    refused = "" if problem is None else f'<p class="refused" role="alert">{escaped(problem.detail)}</p>'
    here = f"/experiments/{name}"
    links = "".join(
        f'<a href="{address(here, window=each)}"{" aria-current=true" if each == window else ""}>{escaped(text)}</a>'
        for each, (text, _) in WINDOWS.items()
    )
    unit = f" in {escaped(summary.settings.unit)}" if summary.settings.unit else ""
    what = f"costs{unit}, minimised" if summary.settings.minimize else f"rewards{unit}, maximised"
    if summary.settings.objective is not None:
        what += f"; objective: {escaped(objective_from(summary.settings.objective).name)}"
    main = f"""
{refused}<div class="head"><h1 class="title">{escaped(name)}</h1>{live_part("state", made["state"], tag="span")}</div>
<p class="muted">{what}; policy: {escaped(experiment.bandit.policy.name)}</p>
{live_part("warnings", made["warnings"], attributes='aria-live="polite"')}
{live_part("leader", made["leader"])}
{live_part("facts", made["facts"])}
<section aria-labelledby="traffic"><div class="row"><h2 id="traffic">Share of traffic</h2>
<nav class="windows" aria-label="Window of time">{links}</nav></div>
<div id="chart" class="chart">{made["chart"]}</div><p class="tip" id="tip" role="status" hidden></p>
<p class="note">Above: the share of the decisions for each arm. Below: rewards per second.</p></section>
<section aria-labelledby="means"><h2 id="means">Arms</h2>{live_part("arms", made["arms"])}</section>
{contexts}
<section aria-labelledby="tail"><h2 id="tail">Tails</h2>{live_part("tails", made["tails"])}</section>
<section aria-labelledby="newest"><h2 id="newest">Newest decisions</h2>{live_part("recent", made["recent"])}
{_find_decision(name)}</section>
{manage(visit, summary, window) if visit.may_change(name) else ""}
{_settings(summary)}
"""
    return page(
        visit,
        name,
        main,
        at=address(here, window=window),
        live=address(f"{here}/live", window=window),
        status=200 if problem is None else problem.status,
    )


def _warnings(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = [f"<li>{escaped(each)}</li>" for each in sentences]
    first, rest = "".join(items[:FIRST_WARNINGS]), "".join(items[FIRST_WARNINGS:])
    older = f"<details><summary>{len(items) - FIRST_WARNINGS} more</summary><ul>{rest}</ul></details>" if rest else ""
    return warning(f"<strong>{counted(len(items), 'warning')}</strong><ul>{first}</ul>{older}")


def _leader(study: ExperimentStudy | None) -> str:
    if study is None:
        return ""
    pairs = study.standing.pairs
    more = f" {pairs.sentence}." if pairs is not None and pairs.shown else ""
    return f"<p>{escaped(study.standing.leader.sentence)}{escaped(more)}</p>"


def _facts(summary: bodies.Summary, rate: float) -> str:
    counts = summary.counts
    facts = {
        "decisions": f"{counts.decisions:,}",
        "rewards": f"{counts.rewards:,}",
        "rewards per second": number(rate),
        "open decisions": f"{counts.open:,}",
        "expired" if summary.settings.deadline is None else "time-outs": f"{counts.expired:,}",
        "late rewards": f"{counts.late:,}",
    }
    if summary.settings.deadline is not None:
        facts |= {"failures": f"{counts.failures:,}"}
    if summary.settings.sticky_for is not None:
        facts |= {"repeats for a unit": f"{counts.repeats:,}", "rewards not learned": f"{counts.unlearned:,}"}
    return definitions(facts, "facts cards")


def _arms(
    summary: bodies.Summary, study: ExperimentStudy | None, used: Mapping[str, int], colours: Mapping[str, str]
) -> str:
    """Return the table of the arms. A study may be older than the newest arm."""
    known = {} if study is None else dict(zip((row.arm for row in study.diagnosis.arms), study.means, strict=True))
    medians = {} if study is None else {row.arm: row.median for row in study.diagnosis.arms}
    chances = {} if study is None else {row.arm: row.chance for row in study.standing.arms}
    axis = charts.limits((mean.value, mean.low, mean.high) for mean in known.values())
    total = sum(used.values())
    aim = objective_from(summary.settings.objective or "mean")
    unit = f", {summary.settings.unit}" if summary.settings.unit and aim.limit is None else ""
    plain = aim.text != "mean" or summary.settings.deadline is not None
    estimate = aim.name if plain else "trimmed mean"
    heads = {
        "arm": "",
        "traffic": "bar",
        "rewards": "",
        "chance to be best": "",
        f"{estimate}{unit}": "",
        "95 % limits": "",
        f"{'mean' if aim.text == 'mean' else 'value'} and limits": "interval",
    }
    if summary.settings.deadline is not None:
        heads |= {"failures": "", "time-outs": ""}
    heads |= {f"mean {name}": "" for name in _measured(summary)}
    rows = []
    arms = summary.arms
    if len(arms) > MOST_ROWS:
        arms = sorted(arms, key=lambda arm: (-used.get(arm.arm, 0), -arm.pulls))[:MOST_ROWS]
    for arm in arms:
        part = used.get(arm.arm, 0) / total if total else 0.0
        state = "" if arm.state == "active" else f" {badge(arm.state)}"
        rows.append(
            f'<tr><th scope="row">{charts.swatch(colours[arm.arm])} <bdi>{escaped(arm.arm)}</bdi>{state}</th>'
            f'<td class="bar">{charts.share_bar([(colours[arm.arm], part)])}<span>{share(part)}</span></td>'
            f"<td>{arm.pulls:,}</td><td>{chance_text(chances.get(arm.arm, math.nan))}</td>"
            f"{_mean_cells(known.get(arm.arm), medians.get(arm.arm, math.nan), axis)}"
            f"{_failure_cells(arm)}{_metric_cells(arm)}</tr>"
        )
        if arm.reason:
            rows.append(f'<tr><td class="words muted" colspan="{len(heads)}">{escaped(arm.reason)}</td></tr>')
    left = len(summary.arms) - len(arms)
    others = f'<p class="note">And {counted(left, "arm")} with less traffic.</p>' if left else ""
    return f"{table('Arms', heads, rows)}{others}{_means_note(study, summary)}"


def _measured(summary: bodies.Summary) -> list[str]:
    """Return the names of the metrics."""
    return list(summary.arms[0].metrics or ())


def _failure_cells(arm: bodies.Arm) -> str:
    """Return the numbers of failures and time-outs, if there is a deadline."""
    counts = [each for each in (arm.failures, arm.timeouts) if isinstance(each, int)]
    return "".join(f"<td>{each:,}</td>" for each in counts)


def _metric_cells(arm: bodies.Arm) -> str:
    """Return the mean of each metric, and the number of its values."""
    cells = (
        f"{compact(each.mean)} <small>of {each.count:,}</small>" if isinstance(each.mean, float) else "–"
        for each in (arm.metrics or {}).values()
    )
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _mean_cells(mean: Mean | None, median: float, axis: tuple[float, float]) -> str:
    if mean is None or math.isnan(mean.value):
        words = "" if math.isnan(median) else f"too few; median {compact(median)}"
        return f'<td>–</td><td class="muted">{words}</td><td></td>'
    return (
        f"<td>{compact(mean.value)}</td><td>{_limits(mean.low, mean.high)}</td>"
        f'<td class="interval">{charts.interval(mean.value, mean.low, mean.high, axis)}</td>'
    )


def _limits(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "none"
    if math.isinf(high):
        return f"above {compact(low)}"
    return f"below {compact(high)}" if math.isinf(low) else f"{compact(low)} to {compact(high)}"


def _means_note(study: ExperimentStudy | None, summary: bodies.Summary) -> str:
    if study is None:
        return '<p class="note">Means appear after the first rewards.</p>'
    if study.diagnosis.values:
        return (
            f'<p class="note">Distribution-free limits from order statistics or counts, at {counted(study.rewards, "reward")}. '
            f"A share comes from a sample of at most {SIZE:,} rewards of each arm.</p>"
        )
    means, limits = "Trimmed means", "A side on which the rewards are skewed has no limit."
    if summary.settings.deadline is not None:
        means, limits = "Means", "Failures and time-outs are included."
    return (
        f'<p class="note">{means} with 95 % limits, from a sample of at most {SIZE:,} rewards of each arm, at '
        f"{counted(study.rewards, 'reward')}. {limits} "
        "They are of all rewards since the start or the last reset, also if an arm has changed since. "
        "The chance to be best describes the same sample, and is no test.</p>"
    )


def _tails(study: ExperimentStudy | None, settings: bodies.Settings) -> str:
    if study is None:
        return '<p class="note">They appear after the first rewards.</p>'
    rows = (
        f'<tr><th scope="row"><bdi>{escaped(str(arm.arm))}</bdi></th><td class="words">{_tail(arm.left)}</td>'
        f'<td class="words">{_tail(arm.right)}</td></tr>'
        for arm in study.diagnosis.arms[:MOST_ROWS]
    )
    diagnosis = study.diagnosis
    shown = table("Tails", {"arm": "", "left tail": "words", "right tail": "words"}, rows)
    if len(diagnosis.arms) > FEW_ARMS:
        shown = more(f"Tails of {min(MOST_ROWS, len(diagnosis.arms))} arms", shown)
    advice = "".join(f"<p>{escaped(' '.join(line.split()))}</p>" for line in str(diagnosis.advice).split("\n  - "))
    of = "the mean of " if diagnosis.values else ""
    return (
        f'{shown}<p class="note">The tail index is given by its 95 % interval: the lower it is, the heavier is the tail. Below 2, '
        f"the variance is infinite; below 1, so is the mean.{'' if settings.deadline is None else BOUNDED}</p>"
        f"<p>{escaped(diagnosis.policy.name)}: {escaped(diagnosis.words())}.</p>"
        f"{more(f'Which policy suits {of}these rewards', advice)}"
    )


def _tail(tail: TailIndex | None) -> str:
    if tail is None or math.isnan(tail.index):
        return '<span class="muted">too few rewards</span>'
    return escaped(tail.words)


def _recent(summary: bodies.Summary, recent: Sequence[Recent]) -> str:
    if not recent:
        text = "Not listed: decisions of edges, and archived ones." if summary.counts.decisions else "No decisions yet."
        return f'<p class="muted empty">{text}</p>'
    here = f"/experiments/{summary.name}/decision"
    rows = []
    for each in recent:
        decided = each.decided
        payload: Any = payload_of(decided)
        given = f" {badge('made elsewhere')}" if payload.given else f" {badge('repeat')}" if payload.repeat else ""
        link = f'<a href="{escaped(address(here, id=decided.id))}" title="{escaped(decided.id)}">{escaped(_short(decided.id))}</a>'
        rows.append(
            f'<tr><th scope="row" class="id">{link}</th><td>{time_text(decided.time, ago=True)}</td>'
            f'<td class="words"><bdi>{escaped(payload.arm)}</bdi>{given}</td>'
            f"{_outcome(each, summary.settings)}</tr>"
        )
    heads = {"decision": "", "made": "", "arm": "words", "outcome": "words", "after": ""}
    return table("Newest decisions", heads, rows)


def _outcome(each: Recent, settings: bodies.Settings) -> str:
    if each.closed is None:
        state = '<span class="muted">open</span>' if each.open else badge("reset")
        return f'<td class="words">{state}</td><td>–</td>'
    payload: Any = payload_of(each.closed)
    value = "" if payload.value is None else f" {compact(payload.value)} {escaped(settings.unit)}"
    if getattr(payload, "failed", False):
        return f'<td class="words">{badge("failed")}{value}</td><td>{charts.age_text(each.closed.time - each.decided.time)}</td>'
    unlearned = getattr(payload, "reason", "") == "assignment"
    ended = "timed out" if settings.deadline is not None and each.closed.kind == "expired" else each.closed.kind
    words = "" if ended == "rewarded" else badge("not learned") if unlearned else badge(ended, each.closed.kind)
    return f'<td class="words">{words}{value}</td><td>{charts.age_text(each.closed.time - each.decided.time)}</td>'


def _short(id: str) -> str:
    """Return the ends of a long id."""
    return id if len(id) <= 20 else f"{id[:8]}…{id[-8:]}"


def _find_decision(name: str) -> str:
    return (
        f'<form class="inline" method="get" action="/experiments/{name}/decision"><label>Find a decision by its id '
        '<input name="id" required maxlength="200" autocomplete="off" spellcheck="false"></label><button>Show</button></form>'
    )


def _floor(settings: bodies.Settings) -> str:
    shares = list((settings.control or {}).items())
    if settings.floor is not None:
        shares.append(("all arms alike", settings.floor))
    return escaped(", ".join(f"{100.0 * share:g} % for {arm}" for arm, share in shares) or "none")


def _deadline(settings: bodies.Settings) -> str:
    if settings.deadline is None:
        return "none"
    cost = settings.deadline if settings.failure_cost is None else settings.failure_cost
    return f"{charts.age_text(settings.deadline)}; a failure or a time-out costs {cost:g} s"


def _on_expiry(settings: bodies.Settings) -> str:
    if settings.on_expiry == "drop":
        return "nothing is learned" if settings.deadline is None else "the cost of a failure is learned"
    return f"{settings.on_expiry:g} is learned"


def _settings(summary: bodies.Summary) -> str:
    settings = summary.settings
    facts = {
        "policy": escaped(settings.policy),
        "rewards": "costs, minimised" if settings.minimize else "maximised",
        "objective": escaped(settings.objective or "mean"),
        "seed": "drawn by the server" if settings.seed is None else str(settings.seed),
        "reward window": "none" if settings.reward_window is None else charts.age_text(settings.reward_window),
        "on expiry": _on_expiry(settings),
        "deadline": _deadline(settings),
        "most open decisions": f"{settings.max_open:,}",
        "a unit keeps its arm": "no" if settings.sticky_for is None else f"for {charts.age_text(settings.sticky_for)}",
        "cap of claims": "none" if settings.cap is None else compact(settings.cap),
        "floor": _floor(settings),
        "features": escaped(", ".join(settings.features or ()) or "none"),
        "metrics": escaped(", ".join(_measured(summary)) or "none"),
        "guardrails": escaped("; ".join(map(str, settings.guardrails or ())) or "none"),
        "resets": str(summary.epoch),
        "created": time_text(summary.created),
    }
    return (
        f'<section aria-labelledby="settings"><h2 id="settings">Settings</h2>{definitions(facts, "settings")}'
        f'<p class="note">Settings never change. The log is at <code>/v1/experiments/{summary.name}/log</code>.</p></section>'
    )
