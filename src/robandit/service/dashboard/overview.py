"""The page of all experiments."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence

from robandit.decisions.experiment import Experiment
from robandit.notebook import escaped
from robandit.service import access
from robandit.service.dashboard import charts
from robandit.service.dashboard.layout import Visit, address, badge, page, table, time_text
from robandit.service.dashboard.site import Site
from robandit.service.experiments import summary_of, warnings_of
from robandit.service.http import Answer, integer
from robandit.service.problems import Refusal
from robandit.service.studies import Study
from robandit.wording import counted, share

PER_PAGE = 100
GROWTH = 0.1  # the rewards of an experiment are studied again for its warnings after this relative growth
AT_ONCE = 20  # rows that are made before other calls have a turn


async def overview(site: Site, visit: Visit) -> Answer:
    """Handle GET /."""
    found, number, text = chosen(site, visit)
    rows = await row_parts(site, found)
    total = sum(access.may(visit.key, "read", name) for name in site.state.engine.experiments)
    heads = {"experiment": "", "state": "words", "arms": "", "decisions": "", "open": "", "most used arm": "words"}
    heads |= {"rewards by arm": "bar", "last event": ""}
    shown = table("Experiments", heads, (f'<tr id="{id}">{row}</tr>' for id, row in rows.items()), "overview")
    if not total:
        shown = _empty(visit)
    elif not rows:
        shown = f'<p class="muted empty">No experiment has {escaped(repr(text))} in its name.</p>'
    main = f"""<div class="head"><h1 class="title">Experiments</h1><span class="muted">{counted(total, "experiment")}</span></div>
{_search(text) if total > 1 else ""}{shown}{_pages(len(matching(site, visit, text)), number, text)}"""
    await site.state.engine.settled()
    return page(visit, "Experiments", main, live=address("/live", q=text, page=str(number)))


def matching(site: Site, visit: Visit, text: str) -> list[Experiment]:
    """Return the experiments that a person may see, whose names contain a text, by name."""
    named = text.lower()
    experiments = site.state.engine.experiments.values()
    found = [each for each in experiments if named in each.name.lower() and access.may(visit.key, "read", each.name)]
    return sorted(found, key=lambda each: each.name)


def chosen(site: Site, visit: Visit) -> tuple[list[Experiment], int, str]:
    """Return the experiments of the page that is asked for, its number, and the text that was searched."""
    text = visit.query.get("q", "").strip()
    number = integer(visit.query.get("page", "1"), "page")
    if number < 1:
        raise Refusal("invalid", "page = 0 must be an integer >= 1", parameter="page", rule="an integer >= 1")
    return matching(site, visit, text)[(number - 1) * PER_PAGE : number * PER_PAGE], number, text


async def row_parts(site: Site, experiments: Sequence[Experiment]) -> dict[str, str]:
    """Return the rows of experiments, by the ids of their elements. A row is made again when its experiment has changed."""
    await site.state.studies.refresh(experiments, growth=GROWTH, patience=0.0)
    rows = {}
    for place, experiment in enumerate(experiments, start=1):
        made_of = experiment.seq, site.state.studies.newest(experiment)
        known = site.rows.get(experiment)
        if known is None or known[0] != experiment.seq or known[1] is not made_of[1]:
            known = site.rows[experiment] = (*made_of, _row(experiment, made_of[1]))
        rows[f"e-{experiment.name}"] = known[2]
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)
    return rows


def _row(experiment: Experiment, study: Study | None) -> str:
    summary = summary_of(experiment)
    used = {arm.arm: arm.pulls for arm in summary.arms}
    total, colours = sum(used.values()), charts.coloured(list(used), used)
    best = max(used, key=lambda arm: used[arm])
    words = (
        f"<bdi>{escaped(best)}</bdi> {share(used[best] / total)}"
        if total
        else '<span class="muted">no rewards yet</span>'
    )
    shares = [(colours[arm], pulls / total) for arm, pulls in used.items()] if total else []
    warnings = warnings_of(experiment, study)
    states = badge(summary.state) + (f" {badge(counted(len(warnings), 'warning'), 'warned')}" if warnings else "")
    cells = (
        f'<th scope="row"><a href="/experiments/{experiment.name}">{escaped(experiment.name)}</a></th>',
        f'<td class="words">{states}</td>',
        f"<td>{len(used):,}</td>",
        f"<td>{summary.counts.decisions:,}</td>",
        f"<td>{summary.counts.open:,}</td>",
        f'<td class="words">{words}</td>',
        f'<td class="bar">{charts.share_bar(shares)}</td>',
        f"<td>{time_text(experiment.time, ago=True)}</td>",
    )
    return "".join(cells)


def _search(text: str) -> str:
    field = f'<input name="q" value="{html.escape(text)}" maxlength="100" autocomplete="off" spellcheck="false">'
    return (
        f'<form class="inline" method="get" action="/" role="search"><label>Search by name {field}</label>'
        "<button>Search</button></form>"
    )


def _pages(count: int, number: int, text: str) -> str:
    if count <= PER_PAGE:
        return ""
    last = -(-count // PER_PAGE)
    links = [
        f'<a href="{escaped(address("/", q=text, page=str(each)))}"{" aria-current=page" if each == number else ""}>{each}</a>'
        for each in range(1, last + 1)
    ]
    return f'<nav class="windows pages" aria-label="More experiments">{"".join(links)}</nav>'


def _empty(visit: Visit) -> str:
    if "admin" not in visit.key.scopes:
        return '<p class="muted empty">There are no experiments that this key may read.</p>'
    return (
        '<p class="empty">There are no experiments yet. <a href="/new">Create the first one</a>, or use '
        '<a href="/docs">the API</a>.</p>'
    )
