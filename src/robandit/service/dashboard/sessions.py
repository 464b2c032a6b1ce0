"""Sessions: who is logged in to the dashboard.

A person logs in with an access key, and the browser gets a random token in a cookie that scripts cannot read and other sites cannot
send. The browser does not store the key. Sessions are in memory only, so they end when the server does. What a session may do
is looked up in its key at each request: it ends when the key expires or is revoked.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

LIFETIME = 12 * 3600.0
MOST_SESSIONS = 1_000
MOST_PER_KEY = 50


class Session(NamedTuple):
    """A person who is logged in."""

    key_id: str
    form_token: str
    """It is in each form of the session. A page of another site does not know it, so it cannot send the form."""
    ends: float


class Sessions:
    """All sessions of a server, the oldest first."""

    def __init__(self) -> None:
        """Start without sessions."""
        self._sessions: dict[bytes, Session] = {}

    def open(self, key_id: str, now: float) -> str:
        """Start a session, and return its token. If a key has too many, its oldest one ends; so does the oldest one of all."""
        own = [token for token, session in self._sessions.items() if session.key_id == key_id]
        if len(own) >= MOST_PER_KEY:
            del self._sessions[own[0]]
        elif len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        token = secrets.token_urlsafe(32)
        self._sessions[_hash(token)] = Session(key_id, secrets.token_urlsafe(32), now + LIFETIME)
        return token

    def find(self, token: str, now: float) -> Session | None:
        """Return the session of a token, or None if there is none or it has ended."""
        session = self._sessions.get(_hash(token))
        if session is not None and now >= session.ends:
            self.close(token)
            return None
        return session

    def close(self, token: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(token), None)


def _hash(token: str) -> bytes:
    """Return the key of a token in the table. Tokens themselves would be compared in a time that depends on their content."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
