"""The form that creates an experiment. It sends what the interface gets, so the rules and the messages are the same."""

from __future__ import annotations

import html
from typing import Any

import msgspec

from robandit.decisions.settings import DEFAULT_OPEN, DEFAULT_POLICY, LONGEST_NAME, LONGEST_UNIT
from robandit.errors import RobanditError
from robandit.notebook import escaped
from robandit.service import access, experiments
from robandit.service.dashboard.layout import Visit, page, redirect, token_field
from robandit.service.dashboard.site import Site
from robandit.service.http import Answer, Request
from robandit.service.problems import Problem, Refusal

# The fields below the name and the arms: label, hint, and the attributes of the input.
_OPTIONAL = {
    "policy": (
        "Policy",
        f"Empty: {DEFAULT_POLICY}, or AdaClipTS with features. Another example: EpsilonGreedy(epsilon=0.05)",
        "",
    ),
    "objective": (
        "Objective",
        "Empty: the mean. A quantile, such as p95; or within:2.0, to minimise the share of rewards beyond 2.0",
        "",
    ),
    "unit": ("Unit of the rewards", "Shown on the dashboard, such as ms or EUR", f' maxlength="{LONGEST_UNIT}"'),
    "reward_window": (
        "Reward window, in seconds",
        "Decisions without a reward expire after it. Empty: they never expire",
        ' inputmode="decimal"',
    ),
    "on_expiry": ("On expiry", "Empty or drop: nothing is learned. A number: it is learned in place of the reward", ""),
    "deadline": (
        "Deadline, in seconds",
        "For rewards that are elapsed times in seconds, and minimised: after it, a decision times out. Empty: none",
        ' inputmode="decimal"',
    ),
    "failure_cost": (
        "Cost of a failure, in seconds",
        "What a failure or a time-out costs, at least the deadline. Empty: the deadline",
        ' inputmode="decimal"',
    ),
    "max_open": ("Most open decisions", f"Empty: {DEFAULT_OPEN:,}", ' inputmode="numeric"'),
    "sticky_for": (
        "Sticky for, in seconds",
        "A user, or another unit that decisions name, keeps its arm for this time, and teaches once. Empty: decisions have no unit",
        ' inputmode="decimal"',
    ),
    "cap": (
        "Cap",
        "Rewards are at least 0, and larger ones count as the cap in claims of who wins, which hold at any time. Empty: no claims",
        ' inputmode="decimal"',
    ),
    "floor": (
        "Floor",
        "The share of decisions that is drawn at random, so that logs can be reused, such as 0.02. Empty: none",
        ' inputmode="decimal"',
    ),
    "control": (
        "Control arms",
        "Arms that get a share of all decisions in any case, such as: standard = 0.05, old = 0.01. Empty: none",
        "",
    ),
    "metrics": ("Metrics", "Other numbers that rewards come with, such as: error, latency_ms. Empty: none", ""),
    "guardrails": (
        "Guardrails",
        'An arm that breaks one is paused. JSON, such as [{"metric": "error", "at_most": 0.05}]. Empty: none',
        "",
    ),
    "features": (
        "Features",
        'The fields of contexts to learn from, as JSON, such as: {"tokens": {"type": "number", "log": true}, '
        '"region": {"type": "category", "values": ["eu", "us"]}}. Empty: none',
        "",
    ),
    "fallback": (
        "Fallback",
        "The arm to answer with while a server cannot reach its PostgreSQL database. Empty: it answers with an error",
        "",
    ),
    "seed": ("Seed", "Makes random choices repeatable. Empty: the server draws one", ' inputmode="numeric"'),
}
_NUMBERS = ("reward_window", "on_expiry", "deadline", "failure_cost", "max_open", "sticky_for", "cap", "floor", "seed")


async def create_form(site: Site, visit: Visit) -> Answer:
    """Handle GET /new."""
    return _form(visit, {}, None)


async def create(site: Site, visit: Visit) -> Answer:
    """Handle POST /new."""
    name = visit.form.get("name", "").strip()
    try:
        access.check(visit.key, "admin", name)
        made = await experiments.create(site.state, Request((name,), {}, visit.key, body_of(visit.form)))
    except (Refusal, RobanditError) as error:
        problem, _ = await site.explain(error)
        return _form(visit, visit.form, problem)
    if made.status == 200:
        known = Refusal("conflict", f"experiment {name!r} exists with the same settings: choose another name")
        return _form(visit, visit.form, known.problem)
    return redirect(f"/experiments/{name}")


def body_of(form: dict[str, str]) -> bytes:
    """Return the body of the call that a form stands for. Empty fields are left out; numbers that cannot be read stay texts."""
    body: dict[str, Any] = {"arms": [line.strip() for line in form.get("arms", "").splitlines() if line.strip()]}
    body["minimize"] = form.get("minimize") == "true"
    for field in _OPTIONAL:
        text = form.get(field, "").strip()
        if text:
            read = _READERS.get(field, _number if field in _NUMBERS else str)
            body[field] = read(text)
    return msgspec.json.encode(body)


def _shares(text: str) -> dict[str, Any] | str:
    """Return the arms and shares in a text such as ``a = 0.05, b = 0.01``. A share that cannot be read stays a text.

    So does all of it if an arm is given twice.
    """
    parts = [part.rpartition("=") for part in text.split(",")]
    shares = {arm.strip(): _number(share.strip()) for arm, _, share in parts}
    return shares if len(shares) == len(parts) else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _json(text: str) -> Any:
    """Return the value of JSON. What cannot be read stays a text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _number(text: str) -> Any:
    value = _json(text)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


_READERS = {"control": _shares, "metrics": _names, "guardrails": _json, "features": _json}


def _form(visit: Visit, given: dict[str, str], problem: Problem | None) -> Answer:
    wrong = "" if problem is None else (problem.parameter or "").partition("[")[0]
    wrong = {"name of an experiment": "name", "arm": "arms", "number of arms": "arms"}.get(wrong, wrong)

    def field(name: str, label: str, hint: str, attributes: str = "", kind: str = "input") -> str:
        value = html.escape(given.get(name, ""))
        mark = ' aria-invalid="true" autofocus' if name == wrong else ""
        about = f'aria-describedby="{name}-hint{" message" if name == wrong else ""}"'
        inside = f'name="{name}" {about}{mark}{attributes} autocomplete="off" spellcheck="false"'
        box = f"<textarea {inside}>{value}</textarea>" if kind == "textarea" else f'<input {inside} value="{value}">'
        return (
            f'<label class="field">{escaped(label)} {box}</label><p class="hint" id="{name}-hint">{escaped(hint)}</p>'
        )

    costs = " checked" if given.get("minimize") == "true" else ""
    focus = "" if wrong else " autofocus"
    message = ""
    if problem is not None:
        message = f'<p class="refused" role="alert" id="message" tabindex="-1"{focus}>{escaped(problem.detail)}</p>'
    rest = "".join(field(name, *texts) for name, texts in _OPTIONAL.items())
    opened = " open" if wrong in _OPTIONAL or any(given.get(name) for name in _OPTIONAL) else ""
    main = f"""<div class="narrow"><h1 class="title">New experiment</h1>{message}
<form method="post" action="/new">{token_field(visit)}
{field("name", "Name", "Letters, digits and . _ -", f' required maxlength="{LONGEST_NAME}"')}
{field("arms", "Arms", "One per line", ' required rows="5"', "textarea")}
<label class="check"><input type="checkbox" name="minimize" value="true"{costs}> Rewards are costs (lower is better)</label>
<details class="more"{opened}><summary>More settings</summary>{rest}</details>
<button class="main">Create</button></form>
<p class="note">Settings never change afterwards. Arms can be added, paused and retired.</p></div>"""
    return page(visit, "New experiment", main, at="/new", status=200 if problem is None else problem.status)
