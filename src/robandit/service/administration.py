"""The calls for administrators: keys, and the audit log."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from robandit.decisions.settings import checked_name
from robandit.service import bodies
from robandit.service.access import made_key
from robandit.service.decoding import decoder
from robandit.service.http import Answer, Request, answer, integer
from robandit.service.state import State
from robandit.storage import StoredKey
from robandit.storage.base import PutKey

PAGE = 1_000
_key = decoder(bodies.NewKey)


async def list_keys(state: State, request: Request) -> Answer:
    """List the access keys, without their secrets."""
    await state.engine.settled()
    await state.refresh_access()
    return answer(bodies.Keys(keys=[bodies.Key(**_fields(key)) for key in state.keys.all()]))


async def create_key(state: State, request: Request) -> Answer:
    """Create an access key. Its secret is shown only in this answer."""
    key, stored = requested_key(request.body, state.wall())
    entry = state.engine.audit_entry(request.key.id, "create key", stored.id, audited(stored))
    await state.change_access((PutKey(stored), entry))
    return answer(bodies.MadeKey(**_fields(stored), key=key), 201)


def requested_key(body: bytes, now: float) -> tuple[str, StoredKey]:
    """Return the key that a request asks for, and what is stored of it."""
    given = _key(body)
    for name in given.experiments or ():
        checked_name(name)  # the pattern of the body allows a line break at the end
    return made_key(given.scopes, now=now, experiments=given.experiments, expires_in=given.expires_in, note=given.note)


def audited(key: StoredKey) -> dict[str, Any]:
    """Return what the audit log says of a new key."""
    limited = None if key.experiments is None else list(key.experiments)
    return {"scopes": list(key.scopes), "experiments": limited, "expires": key.expires}


async def revoke_key(state: State, request: Request) -> Answer:
    """Revoke an access key. The server then rejects it."""
    await state.refresh_access()  # another server may have made it
    key = state.keys.as_revoked(request.parameters[0], state.wall())
    state.keys.put(key)  # refused from here on. If that cannot be stored, the next use reads what is stored
    await state.change_access((PutKey(key), state.engine.audit_entry(request.key.id, "revoke key", key.id)))
    return answer(bodies.Key(**_fields(key)))


async def audit(state: State, request: Request) -> Answer:
    """Read the audit log: the actions of administrators."""
    after = integer(request.query.get("after", "0"), "after")
    await state.engine.settled()
    rows = await asyncio.to_thread(state.engine.store.read, lambda reader: reader.audit(after, PAGE))
    entries = [bodies.Entry(**row._asdict() | {"detail": msgspec.json.decode(row.detail)}) for row in rows]
    return answer(bodies.AuditLog(entries=entries))


def _fields(key: StoredKey) -> dict[str, Any]:
    limited = None if key.experiments is None else list(key.experiments)
    facts = key._asdict() | {"scopes": list(key.scopes), "experiments": limited}
    del facts["hash"]
    return facts
