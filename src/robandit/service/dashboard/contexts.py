"""The section about contexts on the page of an experiment: traffic by category, effects of features, and what would be decided.

It is not live: it is made when the page is loaded.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from robandit.decisions.events import payload_of
from robandit.decisions.experiment import LiveExperiment
from robandit.errors import InvalidInput
from robandit.features import Category, Encoder
from robandit.live.bandit import Bandit
from robandit.notebook import escaped
from robandit.service.dashboard import charts
from robandit.service.dashboard.layout import Visit, table
from robandit.service.dashboard.site import Site
from robandit.wording import compact, counted, share

COUNTED = 300  # decisions in the traffic by category
MOST_ARMS = 6  # whose effects are shown: those with most rewards


async def section(site: Site, visit: Visit, experiment: LiveExperiment, window: str) -> str:
    """Return the section for an experiment with features."""
    state, text = site.state, visit.query.get("context", "")
    if experiment.bandit.is_broken:
        return ""
    last, saved, (declared, problem) = await state.engine.read(
        experiment.name, lambda seen: (seen.seq, seen.bandit.to_bytes(), _declared(seen, text))
    )
    newest = await asyncio.to_thread(
        state.engine.store.read, lambda reader: reader.latest(experiment.number, "decided", last, COUNTED)
    )
    effects, arms, failure = await state.studies.look(saved, lambda bandit: _seen(bandit, declared))
    encoder = Encoder(experiment.settings.features or {})
    pulls = {str(arm): pulls for arm, _, pulls in experiment.bandit.pulls()}
    return f"""<section aria-labelledby="contexts"><h2 id="contexts">Contexts</h2>
{_traffic(encoder, [payload_of(each) for each in newest], list(pulls))}
{_effects(effects, sorted(pulls, key=lambda arm: -pulls[arm]))}
{_what_if(experiment.name, window, text or _example(encoder), arms, problem or failure)}</section>"""


def _declared(experiment: LiveExperiment, text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the declared part of the context in the box, or why there is none. Both are empty without a context."""
    try:
        return (experiment.declared(msgspec.Raw(text.encode())) if text else None), ""
    except InvalidInput as error:
        return None, str(error)
    except (msgspec.MsgspecError, RecursionError):
        return None, "context must be JSON, such as the example"


def _seen(bandit: Bandit, declared: dict[str, Any] | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """Return effects, and what would be decided for a context, or why it cannot be said."""
    try:
        return bandit.effects(), [] if declared is None else bandit.explain(context=declared)["arms"], ""
    except InvalidInput as error:
        return bandit.effects(), [], str(error)


def _traffic(encoder: Encoder, decisions: Sequence[Any], arms: Sequence[str]) -> str:
    """Return the share of each arm in the newest decisions of each category."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for made in decisions:
        for name, columns in encoder.groups.items():
            if isinstance(encoder.features[name], Category):
                found[next(column for column in columns if made.x[column])][made.arm] += 1
    colours = charts.coloured(arms, Counter(made.arm for made in decisions))
    rows = []
    for column, counts in sorted(found.items()):
        total = counts.total()
        bar = charts.share_bar([(colours[arm], counts[arm] / total) for arm in arms])
        words = ", ".join(f"{arm} {share(count / total)}" for arm, count in counts.most_common(3))
        rows.append(
            f'<tr><th scope="row">{escaped(encoder.columns[column])}</th><td>{total:,}</td>'
            f'<td class="bar">{bar}</td><td class="words">{escaped(words)}</td></tr>'
        )
    if not rows:
        return ""
    heads = {"category": "", "decisions": "", "share of the arms": "bar", "most used": "words"}
    note = f'<p class="note">Of the newest {counted(len(decisions), "decision")}.</p>'
    return f"<h3>Traffic by category</h3>{table('Traffic by category', heads, rows)}{note}"


def _effects(effects: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> str:
    """Return the effect of each column on the mean of each arm. ``arms`` are ordered by their rewards."""
    if not effects:
        return ""
    shown = arms[:MOST_ARMS]
    cells: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in effects:
        cells[row["feature"]][row["arm"]] = _effect(row)
    rows = []
    for feature, each in cells.items():
        numbers = "".join(f"<td>{each.get(arm, '–')}</td>" for arm in shown)
        rows.append(f'<tr><th scope="row">{escaped(feature)}</th>{numbers}</tr>')
    only = f" Of the {MOST_ARMS} arms with most rewards." if len(arms) > MOST_ARMS else ""
    heads = {"feature": ""} | dict.fromkeys(shown, "")
    return (
        f"<h3>Effect of each feature</h3>{table('Effect of each feature', heads, rows)}"
        '<p class="note">On the mean of each arm: of a number, by one scale; of a category, against the average of its other '
        "values. The 95 % limits are approximate, since arms are not chosen at random, and few rewards shrink effects to 0."
        f"{only}</p>"
    )


def _effect(row: Mapping[str, Any]) -> str:
    if math.isnan(row["effect"]):
        return "–"
    limits = "" if math.isnan(row["low"]) else f" <small>{compact(row['low'])} to {compact(row['high'])}</small>"
    return f"{compact(row['effect'])}{limits}"


def _what_if(experiment: str, window: str, text: str, arms: Sequence[Mapping[str, Any]], problem: str) -> str:
    """Return the box for a context, and the chances of the arms for it."""
    refused = f'<p class="refused" role="alert">{escaped(problem)}</p>' if problem else ""
    names = [key for key in (arms[0] if arms else ()) if key not in ("arm", "chance")]
    rows = []
    for arm in sorted(arms, key=lambda arm: -arm["chance"]):
        chance = "too many arms" if math.isnan(arm["chance"]) else share(arm["chance"])
        numbers = "".join(f"<td>{_number(arm[name])}</td>" for name in names)
        rows.append(f'<tr><th scope="row"><bdi>{escaped(arm["arm"])}</bdi></th><td>{chance}</td>{numbers}</tr>')
    answer = table("What if", dict.fromkeys(["arm", "chance", *names], ""), rows) if rows else ""
    return f"""<h3 id="what-if">What if</h3>{refused}
<form class="inline" method="get" action="/experiments/{experiment}#what-if">
<input type="hidden" name="window" value="{escaped(window)}">
<label>Chances of the arms for the context <input name="context" size="60" required autocomplete="off" spellcheck="false"
value="{escaped(text)}"></label><button>Show</button></form>{answer}"""


def _number(value: float) -> str:
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else compact(value)


def _example(encoder: Encoder) -> str:
    """Return a context that fits."""
    example: dict[str, Any] = {}
    for name, feature in encoder.features.items():
        example[name] = next(iter(feature.values or ("a",))) if isinstance(feature, Category) else 1
    return json.dumps(example, ensure_ascii=False)
