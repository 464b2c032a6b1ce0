"""``robandit keys``."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from robandit.cli.store_options import DEFAULT_STORE, Location, check_installed, opened_alone
from robandit.errors import InvalidInput

if TYPE_CHECKING:
    from robandit.storage.base import Change

Url = Annotated[
    str | None,
    Parameter(
        help="The address of a running server. The command then calls it with the admin key in ROBANDIT_KEY, and ignores --store."
    ),
]
DAY = 86_400.0
TIMEOUT = 30.0


def create(
    *,
    scope: list[Literal["decide", "reward", "read", "admin"]],
    experiment: list[str] | None = None,
    days: float | None = None,
    note: str = "",
    store: Location = DEFAULT_STORE,
    url: Url = None,
) -> None:
    """Create an access key and print it. It is shown only once.

    For example: `robandit keys create --scope decide --scope reward --note checkout`

    Parameters
    ----------
    scope
        decide: make decisions; reward: send rewards; read: read experiments, logs and metrics; admin: everything. Repeat the option
        to give several.
    experiment
        Limit the key to this experiment; repeat the option to name several. By default, the key is valid for all.
    days
        The key expires after this number of days; by default, it never expires.
    note
        A note for people, such as who uses the key.
    """
    expires = None if days is None else days * DAY
    body = {"scopes": scope, "experiments": experiment, "expires_in": expires, "note": note}
    if url is not None:
        _print_key(_asked(url, "POST", "/v1/keys", body))
        return
    check_installed()
    from robandit.service.administration import audited, requested_key
    from robandit.service.problems import Refusal
    from robandit.storage.base import PutKey

    try:
        key, stored = requested_key(json.dumps(body).encode(), time.time())
    except Refusal as refusal:
        raise InvalidInput(refusal.problem.detail) from None
    _change(store, "create key", stored.id, PutKey(stored), audited(stored))
    _print_key({"id": stored.id, "key": key})


def list_keys(*, store: Location = DEFAULT_STORE, url: Url = None) -> None:
    """List the access keys, without their secrets.

    For example: `robandit keys list`
    """
    from robandit.cli.terminal.guard import write_line

    if url is not None:
        rows: list[Any] = _asked(url, "GET", "/v1/keys")["keys"]
    else:
        rows = [key._asdict() for key in _stored(store)]
    for row in rows:
        state = (
            "revoked" if row["revoked"] else "expired" if row["expires"] and row["expires"] < time.time() else "valid"
        )
        limited = "all experiments" if row["experiments"] is None else ", ".join(row["experiments"])
        made = time.strftime("%Y-%m-%d", time.localtime(row["created"]))
        until = f", until {time.strftime('%Y-%m-%d', time.localtime(row['expires']))}" if row["expires"] else ""
        note = f"  {row['note']}" if row["note"] else ""
        write_line(f"{row['id']}  {state:7}  {'+'.join(row['scopes'])}  {limited}  made {made}{until}{note}")
    if not rows:
        write_line("no keys")


def revoke(id: str, *, store: Location = DEFAULT_STORE, url: Url = None) -> None:
    """Revoke an access key. The server then rejects it.

    For example: `robandit keys revoke 4f1c22d09ab1`

    Parameters
    ----------
    id
        The id of the key, as `robandit keys list` prints it.
    """
    from urllib.parse import quote

    from robandit.cli.terminal.guard import write_line

    if url is not None:
        _asked(url, "DELETE", f"/v1/keys/{quote(id, safe='')}")
    else:
        from robandit.service.access import Keys
        from robandit.storage.base import PutKey

        key = Keys(_stored(store)).as_revoked(id, time.time())
        _change(store, "revoke key", id, PutKey(key))
    write_line(f"revoked: {id}")


def _print_key(made: dict[str, Any]) -> None:
    from robandit.cli.terminal.guard import write_line

    write_line(f"key {made['id']}, shown only once: {made['key']}")


def _stored(store: str) -> list[Any]:
    check_installed()
    from robandit.storage.locations import open_reader

    reader = open_reader(store)
    try:
        return reader.keys()
    finally:
        reader.close()


def _change(store: str, action: str, subject: str, change: Change, detail: Any = None) -> None:
    """Change the keys of a store that no server uses."""
    from robandit.storage.base import Audit

    way_out = "ask it with --url http://127.0.0.1:8000 and an admin key in ROBANDIT_KEY, or stop it first"
    opened = opened_alone(store, way_out)
    try:
        entry = Audit(time.time(), "(command line)", action, subject, json.dumps(detail or {}).encode())
        opened.commit((), [change, entry])
    finally:
        opened.close()


def _asked(url: str, method: str, path: str, body: Any = None) -> Any:
    """Ask a server, with the key in ROBANDIT_KEY."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    from robandit.wording import visible

    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"--url {url} must begin with http:// or https://, as in http://127.0.0.1:8000")
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{url.rstrip('/')}{path}", data=data, method=method)
    key = os.environ.get("ROBANDIT_KEY", "").strip()
    if not re.fullmatch("[!-~]*", key):  # http.client would print it in its error
        raise InvalidInput("ROBANDIT_KEY has blanks or characters that are not ASCII: it must be a key; set it again")
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")  # another host does not get it
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            return json.loads(response.read())
    except HTTPError as error:
        try:
            detail = json.loads(error.read())["detail"]
        except (ValueError, KeyError, TypeError):
            detail = error.reason
        hint = "; set ROBANDIT_KEY to an admin key" if error.code in (401, 403) else ""
        raise InvalidInput(f"{url} answered {error.code}: {visible(str(detail))[:200]}{hint}") from None
    except (URLError, OSError, ValueError) as error:
        reason = visible(str(getattr(error, "reason", error)))[:200]
        raise InvalidInput(f"{url} cannot be reached: {reason}; is the server running?") from None
