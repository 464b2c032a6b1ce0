"""The audit page of a decision: what was known when it was made, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from robandit.live.engine import SIGNED_COLUMNS
from robandit.notebook import escaped
from robandit.objectives import objective_from
from robandit.service import bodies
from robandit.service.dashboard.charts import age_text
from robandit.service.dashboard.layout import Visit, badge, definitions, page, table, time_text
from robandit.service.dashboard.site import Site
from robandit.service.http import Answer
from robandit.service.problems import Refusal
from robandit.wording import compact, share

LONGEST_CONTEXT = 20_000  # characters that are shown


async def decision(site: Site, visit: Visit) -> Answer:
    """Handle GET /experiments/{name}/decision."""
    experiment = await site.state.engine.present(visit.parameters[0])
    id = visit.query.get("id", "")
    if not id:
        raise Refusal("invalid", "id is missing: this page needs the id of a decision", parameter="id")
    made = await site.state.explanations.explain(experiment.name, id)
    facts = {
        "policy": escaped(made.policy),
        "chosen among": escaped("all active arms" if made.among is None else ", ".join(made.among)),
        "probability": "not random, or not known" if made.propensity is None else compact(made.propensity),
        "event": f"{made.seq:,}",
    }
    settings = experiment.settings
    aim = objective_from(settings.objective or "mean")
    measured = (*SIGNED_COLUMNS, "threshold") if aim.limit is None else ()
    reason = _reason(made, aim.name, minimize=settings.minimize or aim.limit is not None)
    main = f"""<p class="back"><a href="/experiments/{experiment.name}">← {escaped(experiment.name)}</a></p>
<h1 class="title">Decision <code>{escaped(id)}</code></h1>
{_story(made, settings.unit, reason)}
<h2>What was known then</h2>
{_arms(made, measured, settings.unit)}
<p class="note">The arms right before the decision, with the policy's own numbers. Version {escaped(made.version)} decided;
the numbers are computed again from the log. The policy's estimate of a mean is not the trimmed mean of the experiment's page.</p>
<h2>Context</h2>{_context(made.context)}
{_features(made.features)}
<h2>Details</h2>{definitions(facts, "settings")}"""
    return page(visit, f"Decision {id[:40]}", main)


def _reason(made: bodies.Explanation, objective: str, *, minimize: bool) -> str:
    """Return why the arm was chosen, if the numbers say it: it had the best index of all arms that could be chosen."""
    possible = [arm for arm in made.arms if arm.state == "active" and (made.among is None or arm.arm in made.among)]
    indices = {arm.arm: arm.policy.get("index") for arm in possible}
    finite = [index for index in indices.values() if isinstance(index, float)]
    if made.observed or made.repeat or len(finite) < len(indices) or len(indices) < 2:
        return ""
    if indices.get(made.arm) != (min(finite) if minimize else max(finite)):
        return ""
    word = "lowest" if minimize else "highest"
    return f"It had the {word} index: the policy's optimistic estimate of its {objective}."


def _story(made: bodies.Explanation, unit: str, reason: str) -> str:
    """Return what happened, in sentences."""
    chosen = "was chosen elsewhere and reported here" if made.observed else "was chosen"
    lines = [f"Arm <strong><bdi>{escaped(made.arm)}</bdi></strong> {chosen} at {time_text(made.time)}."]
    if made.unit is not None:
        again = (
            "got it again: the policy did not choose" if made.repeat else "keeps it for the time that sticky_for sets"
        )
        lines.append(f"Unit <strong><bdi>{escaped(made.unit)}</bdi></strong> {again}.")
    if reason:
        lines.append(reason)
    if made.expired is not None:
        lines.append(f"No reward came within the window: it expired after {age_text(made.expired - made.time)}.")
    if made.reward is not None:
        value = f"<strong>{escaped(compact(made.reward.value, 6))} {escaped(unit)}</strong>"
        after = age_text(made.reward.time - made.time)
        learned = (
            "and was learned"
            if made.reward.outcome == "applied"
            else "and was not learned, because another reward of the same unit was"
            if made.reward.reason == "assignment"
            else f"too late ({made.reward.reason}), and was not learned"
        )
        lines.append(f"Its reward, {value}, came after {after}, {learned}.")
    if made.status == "open":
        lines.append("Its reward has not come yet.")
    elif made.status == "reset":
        lines.append("The experiment was reset before its reward came.")
    return f'<div class="verdict"><p>{lines[0]} {badge(made.status)}</p>{"".join(f"<p>{line}</p>" for line in lines[1:])}</div>'


def _arms(made: bodies.Explanation, measured: Collection[str], unit: str) -> str:
    """Return the table of the arms. The columns ``measured`` have the unit of the rewards."""
    names = list(dict.fromkeys(name for arm in made.arms for name in arm.policy))
    rows = []
    for arm in made.arms:
        badges = [badge("chosen")] if arm.arm == made.arm else []
        badges += [] if arm.state == "active" else [badge(arm.state)]
        numbers = "".join(
            f"<td>{(_chance if name == 'chance' else _number)(arm.policy.get(name))}</td>" for name in names
        )
        rows.append(
            f'<tr><th scope="row"><bdi>{escaped(arm.arm)}</bdi> {" ".join(badges)}</th><td>{arm.pulls:,}</td>{numbers}</tr>'
        )
    heads = (_head(name, unit if name in measured else "") for name in names)
    return table("Arms", dict.fromkeys(["arm", "rewards", *heads], ""), rows)


def _head(name: str, unit: str) -> str:
    """Return the title of a column of the policy, with the unit of its numbers."""
    title = "estimated mean" if name == "mean" else name.replace("_", " ")
    return f"{title}, {unit}" if unit else title


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return escaped(value.replace("infinity", "∞")) if isinstance(value, str) else compact(float(value))


def _chance(chance: Any) -> str:
    return "–" if chance is None else share(float(chance))


def _features(features: Any) -> str:
    """Return the encoded features, if there are some."""
    if not features:
        return ""
    shown = definitions({name: compact(value) for name, value in features.items()}, "settings")
    return (
        f'<p class="note">Encoded features, from which it was learned. The numbers of the arms are for them.</p>{shown}'
    )


def _context(context: Any) -> str:
    if context is None:
        return '<p class="muted">The request had none.</p>'
    text = json.dumps(context, indent=2, ensure_ascii=False)
    rest = f"\n… and {len(text) - LONGEST_CONTEXT:,} more characters" if len(text) > LONGEST_CONTEXT else ""
    return f'<pre tabindex="0">{escaped(text[:LONGEST_CONTEXT] + rest)}</pre>'
