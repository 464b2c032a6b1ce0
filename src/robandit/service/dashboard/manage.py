"""Forms that change an experiment: pause and resume it, add arms, and pause, resume or retire them."""

from __future__ import annotations

import html

from robandit.notebook import escaped
from robandit.service import bodies
from robandit.service.dashboard.layout import Visit, badge, table, token_field


def manage(visit: Visit, summary: bodies.Summary) -> str:
    """Return the forms for an experiment."""
    paused = summary.state == "paused"
    about = (
        "It makes no decisions; rewards are still learned." if paused else "While it is paused, it makes no decisions."
    )
    rows = (_arm_row(visit, summary.name, arm) for arm in summary.arms)
    return f"""<section aria-labelledby="manage"><h2 id="manage">Change</h2>
<p>{_button(visit, summary.name, "resume" if paused else "pause", "Resume the experiment" if paused else "Pause the experiment")}
<span class="muted">{about}</span></p>
<form class="inline" method="post" action="/experiments/{summary.name}/change">{token_field(visit)}
<input type="hidden" name="action" value="add-arm">
<label>New arm <input name="arm" required maxlength="100" autocomplete="off"></label><button>Add</button></form>
{table("Change arms", {}, rows)}</section>"""


def _arm_row(visit: Visit, name: str, arm: bodies.Arm) -> str:
    buttons = ""
    if arm.state == "active":
        buttons = _button(visit, name, "pause-arm", "Pause", arm.arm)
    elif arm.state == "paused":
        buttons = _button(visit, name, "resume-arm", "Resume", arm.arm)
    if arm.state != "retired":
        retire = _button(visit, name, "retire-arm", "Retire for good", arm.arm)
        buttons += f"<details><summary>Retire…</summary><p>A retired arm never comes back. {retire}</p></details>"
    return f'<tr><th scope="row"><bdi>{escaped(arm.arm)}</bdi> {badge(arm.state)}</th><td class="words actions">{buttons}</td></tr>'


def _button(visit: Visit, name: str, action: str, text: str, arm: str = "") -> str:
    field = (
        f'<input type="hidden" name="arm" value="{html.escape(arm)}">' if arm else ""
    )  # exact, also if it cannot be seen
    label = f' aria-label="{escaped(f"{text}: {arm}")}"' if arm else ""
    return (
        f'<form method="post" action="/experiments/{name}/change">{token_field(visit)}{field}'
        f'<button name="action" value="{action}"{label}>{escaped(text)}</button></form>'
    )
