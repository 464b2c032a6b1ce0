"""Logging in with an access key, and logging out."""

from __future__ import annotations

import re

from robandit.notebook import escaped
from robandit.service import access
from robandit.service.dashboard.layout import Visit, page, redirect
from robandit.service.dashboard.site import Site, cookie_header
from robandit.service.http import Answer
from robandit.service.problems import Refusal
from robandit.service.sessions import new_token

_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9._~%?&=-][A-Za-z0-9._~%?&=/-]*)?")


async def login_form(site: Site, visit: Visit) -> Answer:
    """Handle GET /login."""
    if site.is_open(visit):
        return redirect(_next(visit.query.get("next", "/")))
    ended = "Your session has ended, or its key was revoked: log in again." if "ended" in visit.query else ""
    return _form(visit.query.get("next", "/"), ended, 200)


async def log_in(site: Site, visit: Visit) -> Answer:
    """Handle POST /login."""
    goal, now = visit.form.get("next", "/"), site.state.wall()
    given = visit.form.get("key", "").strip()
    key = site.state.keys.find(given)
    if key is None and await site.state.refresh_access():  # made by another server a moment ago
        key = site.state.keys.find(given)
    if key is None:
        return _form(goal, "The key is not known: copy the whole key, from rb_ to its end.", 401)
    if site.state.keys.valid(key.id, now) is None:
        return _form(goal, f"The key {key.id} is revoked or has expired: ask for a new one.", 401)
    site.state.rates.check(key.id)
    try:
        access.check_scope(key, "read")
    except Refusal as refusal:
        return _form(goal, refusal.problem.detail, 403)
    token, sessions = new_token(), site.state.sessions
    ended = sessions.closing(visit.cookie) if visit.cookie else ()
    await site.state.change_access([*sessions.opening(token, key.id, now), *ended])
    return redirect(_next(goal), (cookie_header(visit.headers, token),))


async def log_out(site: Site, visit: Visit) -> Answer:
    """Handle POST /logout."""
    await site.state.change_access(site.state.sessions.closing(visit.cookie))
    return redirect("/login", (cookie_header(visit.headers, ""),))


def _next(given: str) -> str:
    """Return the page to go to, if it is one of this server: a path that begins with one slash."""
    return given if _OWN_PATH.fullmatch(given) else "/"


def _form(goal: str, message: str, status: int) -> Answer:
    note = f'<p class="refused" role="alert" id="message">{escaped(message)}</p>' if message else ""
    main = f"""<div class="narrow"><h1 class="title">Log in</h1>{note}
<form method="post" action="/login"><input type="hidden" name="next" value="{escaped(goal)}">
<label class="field">Access key <input name="key" type="password" required autocomplete="current-password" spellcheck="false"
autofocus{' aria-invalid="true" aria-describedby="message"' if message else ""}></label>
<button class="main">Log in</button></form>
<p class="note">A key with the scope <code>read</code> shows experiments; one with <code>admin</code> can change them. The server
prints an admin key at its first start, and <code>robandit keys create --scope read</code> makes others.</p></div>"""
    return page(None, "Log in", main, status=status)
