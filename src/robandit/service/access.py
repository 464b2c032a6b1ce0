"""Access keys: who may do what, and how often.

A key is ``rb_ID_SECRET``. The secret has 256 random bits, so its SHA-256 hash cannot be reversed, and a slow hash would add
nothing. The id finds the stored hash; hashes are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
from collections.abc import Callable, Iterable

from robandit.errors import NotFound
from robandit.service.problems import Refusal
from robandit.storage import StoredKey

SCOPES = ("decide", "reward", "read", "admin")
_PREFIX = "rb"
_CHALLENGE = ((b"www-authenticate", b"Bearer"),)
MOST_BUCKETS = 10_000


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def made_key(
    scopes: Iterable[str],
    *,
    now: float,
    experiments: Iterable[str] | None = None,
    expires_in: float | None = None,
    note: str = "",
) -> tuple[str, StoredKey]:
    """Return a new key, and what is stored of it."""
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    limited = None if experiments is None else tuple(dict.fromkeys(experiments))
    wanted = set(scopes)
    ordered = tuple(scope for scope in SCOPES if scope in wanted)
    expires = None if expires_in is None else now + expires_in
    stored = StoredKey(id, _hash(secret), ordered, limited, note, now, expires, None)
    return f"{_PREFIX}_{id}_{secret}", stored


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


NOBODY = StoredKey("", _hash(""), (), None, "", 0.0, None, None)


class Keys:
    """The keys of a server, in memory."""

    def __init__(self, stored: Iterable[StoredKey]) -> None:
        self.replace(stored)

    def replace(self, stored: Iterable[StoredKey]) -> None:
        """Take over what is stored now."""
        self._keys = {key.id: key for key in stored}

    def all(self) -> list[StoredKey]:
        """Return all keys, also expired and revoked ones, oldest first."""
        return sorted(self._keys.values(), key=lambda key: (key.created, key.id))

    def put(self, key: StoredKey) -> None:
        """Add a key, or replace the one with the same id."""
        self._keys[key.id] = key

    def as_revoked(self, id: str, now: float) -> StoredKey:
        """Return a key as it will be when it is revoked. `put` does that."""
        key = self._keys.get(id)
        if key is None:
            raise NotFound(f"there is no key {id[:40]!r}: list the keys to see their ids")
        return key if key.revoked is not None else key._replace(revoked=now)

    def holder(self, header: bytes | None, now: float) -> StoredKey:
        """Return the key of an Authorization header, or refuse it."""
        if header is None:
            raise Refusal("no-key", "This call needs a key: send the header Authorization: Bearer KEY", _CHALLENGE)
        scheme, _, given = header.decode("latin-1").partition(" ")
        key = self.find(given.strip())
        if scheme.lower() != "bearer" or key is None:
            raise Refusal("unknown-key", "The key is not known: check the header Authorization: Bearer KEY", _CHALLENGE)
        if ended := _end_of(key, now):
            raise Refusal("ended-key", f"The key {key.id} {ended}: ask for a new one", _CHALLENGE)
        return key

    def find(self, given: str) -> StoredKey | None:
        """Return what is stored of a key, also if it has ended, or None if it is not known."""
        prefix, _, rest = given.partition("_")
        id, _, secret = rest.partition("_")
        key = self._keys.get(id, NOBODY)
        right = hmac.compare_digest(key.hash, _hash(secret))
        return key if right and prefix == _PREFIX and key is not NOBODY else None

    def valid(self, id: str, now: float) -> StoredKey | None:
        """Return the key with an id, or None if it is revoked or has expired."""
        key = self._keys.get(id)
        return None if key is None or _end_of(key, now) else key


def _end_of(key: StoredKey, now: float) -> str:
    """Return why a key is no longer valid, or "" if it is."""
    if key.revoked is not None:
        return "is revoked"
    return "has expired" if key.expires is not None and now >= key.expires else ""


def may(key: StoredKey, scope: str, experiment: str | None) -> bool:
    """Return whether a key allows a scope for an experiment; None stands for all experiments."""
    allowed = scope in key.scopes or "admin" in key.scopes
    return allowed and (key.experiments is None or (experiment is not None and experiment in key.experiments))


def check(key: StoredKey, scope: str, experiment: str | None) -> None:
    """Refuse what a key does not allow."""
    if may(key, scope, experiment):
        return
    check_scope(key, scope)
    what = "all experiments" if experiment is None else f"the experiment {experiment[:100]!r}"
    raise Refusal("forbidden", f"The key {key.id} is not for {what}: use a key that is")


def check_scope(key: StoredKey, scope: str) -> None:
    """Refuse a key that lacks a scope."""
    if scope not in key.scopes and "admin" not in key.scopes:
        raise Refusal("forbidden", f"The key {key.id} lacks the scope {scope}: it has {', '.join(key.scopes)}")


class Rates:
    """Limits calls per second, separately for each caller: a bucket of tokens that refills at that rate."""

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        """Allow ``rate`` calls per second, and as many at once; None: no limit."""
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, caller: str) -> None:
        """Take a token, or refuse the call."""
        if self._rate is None:
            return
        now, most = self._clock(), max(self._rate, 1.0)
        tokens, then = self._buckets.pop(caller, (most, now))
        tokens = min(most, tokens + max(0.0, now - then) * self._rate)
        if len(self._buckets) >= MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]  # the caller that was away for the longest time
        if tokens < 1.0:
            self._buckets[caller] = (tokens, now)
            wait = math.ceil((1.0 - tokens) / self._rate)
            headers = ((b"retry-after", str(wait).encode()),)
            raise Refusal("too-many", f"More than {self._rate:g} calls per second: try again in {wait} s", headers)
        self._buckets[caller] = (tokens - 1.0, now)
