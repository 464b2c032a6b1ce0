"""Sessions: who is logged in to the dashboard.

A person logs in with an access key, and the browser gets a random token in a cookie that scripts cannot read and other sites cannot
send. The browser does not store the key, and the store has only the hash of the token, so a stolen file opens no session. Sessions
are stored, so that they last when the server is started again, and hold on all servers that share a store. What a session may do is
looked up in its key at each request: it ends when the key expires or is revoked.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence

from robandit.storage.base import Change, EndSession, PutSession, StoredSession

LIFETIME = 12 * 3600.0
MOST_SESSIONS = 1_000
MOST_PER_KEY = 50


def new_token() -> str:
    """Return the token of a new session."""
    return secrets.token_urlsafe(32)


def form_token(token: str) -> str:
    """Return what is in each form of a session. A page of another site does not know it, so it cannot send the form."""
    return hmac.digest(token.encode("utf-8", "surrogateescape"), b"form", "sha256").hex()


class Sessions:
    """All sessions, the oldest first."""

    def __init__(self, stored: Iterable[StoredSession]) -> None:
        self.replace(stored)

    def replace(self, stored: Iterable[StoredSession]) -> None:
        """Take over what is stored now."""
        self._sessions = {session.hash: session for session in stored}

    def opening(self, token: str, key: str, now: float) -> Sequence[Change]:
        """Return what is stored when a session starts. If its key has too many, its oldest one ends; so does the oldest of all."""
        own = [session.hash for session in self._sessions.values() if session.key == key]
        ended: list[bytes] = own[: max(0, len(own) - MOST_PER_KEY + 1)]
        if not ended:
            ended = list(self._sessions)[: max(0, len(self._sessions) - MOST_SESSIONS + 1)]
        made = PutSession(StoredSession(_hash(token), key, now + LIFETIME), now)
        return [made, *map(EndSession, ended)]

    def closing(self, token: str) -> Sequence[Change]:
        """Return what is stored when a session ends."""
        return [EndSession(_hash(token))]

    def apply(self, changes: Iterable[Change]) -> None:
        """Take over changes that are stored."""
        for change in changes:
            if isinstance(change, PutSession):
                self._sessions[change.session.hash] = change.session
            elif isinstance(change, EndSession):
                self._sessions.pop(change.hash, None)

    def find(self, token: str, now: float) -> StoredSession | None:
        """Return the session of a token, or None if there is none or it has ended."""
        session = self._sessions.get(_hash(token))
        return None if session is None or now >= session.ends else session


def _hash(token: str) -> bytes:
    """Return the key of a token in the table. Tokens themselves would be compared in a time that depends on their content."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
