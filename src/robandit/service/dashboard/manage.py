"""Forms that change an experiment: pause and resume it, add arms, and pause, resume or retire them."""

from __future__ import annotations

import hashlib
import html

from robandit.decisions.settings import LONGEST_NAME
from robandit.notebook import escaped
from robandit.report.pieces import more
from robandit.service import bodies
from robandit.service.dashboard.layout import Visit, address, badge, table, token_field

FEW_ARMS = 10  # more are folded


def shape_of(summary: bodies.Summary) -> str:
    """Return what the forms depend on, as a text. A page whose forms are old says so."""
    states = [summary.state, *(arm.state for arm in summary.arms)]
    return hashlib.sha256(" ".join(states).encode()).hexdigest()[:16]


def manage(visit: Visit, summary: bodies.Summary, window: str) -> str:
    """Return the forms for an experiment. The page that follows shows the same window of time."""
    forms = _Forms(visit, address(f"/experiments/{summary.name}/change", window=window))
    if summary.state == "paused":
        button = forms.button("resume", "Resume the experiment")
        about = "It makes no decisions; rewards are still learned."
    else:
        button = forms.button("pause", "Pause the experiment")
        about = "While it is paused, it makes no decisions."
    arms = table("Change arms", {}, (forms.arm_row(arm) for arm in summary.arms))
    if len(summary.arms) > FEW_ARMS:
        arms = more(f"Pause or retire one of {len(summary.arms):,} arms", arms)
    field = f'<input name="arm" required maxlength="{LONGEST_NAME}" autocomplete="off">'
    return f"""<section aria-labelledby="manage"><h2 id="manage" data-shape="{shape_of(summary)}">Change</h2>
<p class="refused" id="old-forms" hidden>The experiment has changed since this page was loaded: reload it to change more.</p>
<div>{button} <span class="muted">{about}</span></div>
{forms.start("inline")}<input type="hidden" name="action" value="add-arm"><label>New arm {field}</label><button>Add</button></form>
{arms}</section>"""


class _Forms:
    """The forms of a page, all of which are sent to one address."""

    def __init__(self, visit: Visit, to: str) -> None:
        self._visit = visit
        self._to = to

    def start(self, kind: str = "") -> str:
        return f'<form class="{kind}" method="post" action="{escaped(self._to)}">{token_field(self._visit)}'

    def button(self, action: str, text: str, arm: str = "") -> str:
        label = f' aria-label="{escaped(f"{text}: {arm}")}"' if arm else ""
        # The name is exact, also if it has characters that cannot be seen.
        field = f'<input type="hidden" name="arm" value="{html.escape(arm)}">' if arm else ""
        return f'{self.start()}{field}<button name="action" value="{action}"{label}>{escaped(text)}</button></form>'

    def arm_row(self, arm: bodies.Arm) -> str:
        buttons = ""
        if arm.state == "active":
            buttons = self.button("pause-arm", "Pause", arm.arm)
        elif arm.state == "paused":
            buttons = self.button("resume-arm", "Resume", arm.arm)
        if arm.state != "retired":
            retire = self.button("retire-arm", "Retire for good", arm.arm)
            buttons += f"<details><summary>Retire…</summary><p>A retired arm never comes back. {retire}</p></details>"
        name = f"<bdi>{escaped(arm.arm)}</bdi> {badge(arm.state)}"
        return f'<tr><th scope="row">{name}</th><td class="words actions">{buttons}</td></tr>'
