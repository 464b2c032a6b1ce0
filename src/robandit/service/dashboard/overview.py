"""The page of all experiments."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robandit.decisions.experiment import LiveExperiment
from robandit.notebook import escaped
from robandit.service import access
from robandit.service.dashboard import charts
from robandit.service.dashboard.layout import Visit, address, badge, page, table, time_text
from robandit.service.dashboard.site import Site
from robandit.service.experiments import summary_of, warnings_of
from robandit.service.http import Answer
from robandit.service.problems import wrong_value
from robandit.service.studies import ExperimentStudy
from robandit.wording import counted, share

PER_PAGE = 100
GROWTH = 0.1  # the rewards of an experiment are studied again for its warnings after this relative growth


class Chosen(NamedTuple):
    """What a page of the list shows."""

    experiments: list[LiveExperiment]
    page: int
    text: str
    """What was searched for."""
    matching: int
    """The number of experiments that have the text in their names."""


async def overview(site: Site, visit: Visit) -> Answer:
    """Handle GET /."""
    await site.state.engine.catch_up()
    found = chosen(site, visit)
    rows = await row_parts(site, found.experiments)
    total = sum(access.may(visit.key, "read", name) for name in site.state.engine.experiments)
    heads = {"experiment": "", "state": "words", "arms": "", "decisions": "", "open": "", "most used arm": "words"}
    heads |= {"rewards by arm": "bar", "last event": ""}
    shown = table("Experiments", heads, [joined(rows)], "overview", body="rows")
    if not total:
        shown = _empty(visit)
    elif not found.matching:
        shown = f'<p class="muted empty">No experiment has {escaped(repr(found.text))} in its name.</p>'
    elif not rows:
        shown = f'<p class="muted empty">There is no page {found.page:,}.</p>'
    count = counted(total, "experiment")
    if found.text:
        count = f"{found.matching:,} of {count}"
    main = f"""<div class="head"><h1 class="title">Experiments</h1><span class="muted">{count}</span></div>
{_search(found.text) if total > 1 else ""}{shown}{_pages(found)}"""
    query = {"q": found.text, "page": str(found.page)}
    return page(visit, "Experiments", main, at=address("/", **query), live=address("/live", **query) if rows else "")


def chosen(site: Site, visit: Visit) -> Chosen:
    """Return the experiments that a person may see and has asked for, by name."""
    text, given = visit.query.get("q", "").strip(), visit.query.get("page", "1")
    if not given.isascii() or not given.isdigit() or len(given) > 9 or int(given) < 1:
        raise wrong_value("page", given, "an integer >= 1")
    number, named = int(given), text.lower()
    everything = site.state.engine.experiments.values()
    found = [each for each in everything if named in each.name.lower() and access.may(visit.key, "read", each.name)]
    found.sort(key=lambda each: each.name)
    return Chosen(found[(number - 1) * PER_PAGE : number * PER_PAGE], number, text, len(found))


def joined(rows: Mapping[str, str]) -> str:
    """Return rows as elements of a table."""
    return "".join(f'<tr id="{id}">{row}</tr>' for id, row in rows.items())


async def row_parts(site: Site, experiments: Sequence[LiveExperiment]) -> dict[str, str]:
    """Return the rows of experiments, by the ids of their elements. A row is made again when its experiment has changed."""
    await site.state.studies.refresh("dashboard", experiments, growth=GROWTH, patience=0.0)

    def row(experiment: LiveExperiment) -> tuple[int, ExperimentStudy | None, str]:
        study, known = site.state.studies.newest(experiment), site.rows.get(experiment)
        if known is not None and known[0] == experiment.seq and known[1] is study:
            return known
        return experiment.seq, study, _row(experiment, study)

    made = dict(zip(experiments, await site.state.engine.seen(experiments, row), strict=True))
    site.rows.update(made)
    return {f"e-{experiment.name}": text for experiment, (_, _, text) in made.items()}


def _row(experiment: LiveExperiment, study: ExperimentStudy | None) -> str:
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


def _pages(found: Chosen) -> str:
    if found.matching <= PER_PAGE:
        return ""
    last = -(-found.matching // PER_PAGE)
    links = []
    for number in range(1, last + 1):
        current = " aria-current=page" if number == found.page else ""
        links.append(f'<a href="{escaped(address("/", q=found.text, page=str(number)))}"{current}>{number}</a>')
    return f'<nav class="windows pages" aria-label="More experiments">{"".join(links)}</nav>'


def _empty(visit: Visit) -> str:
    if "admin" not in visit.key.scopes:
        return '<p class="muted empty">There are no experiments that this key may read.</p>'
    return (
        '<p class="empty">There are no experiments yet. <a href="/new">Create the first one</a>, or use '
        '<a href="/docs">the API</a>.</p>'
    )
