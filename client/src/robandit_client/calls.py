"""One call of the service: repeated until it is answered or its time is over, and read as JSON or as an error."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from robandit_client.answers import decoded, error_of
from robandit_client.errors import RobanditError, ServiceUnavailable
from robandit_client.http import Address, Response, Unexpected, request
from robandit_client.wires import Pool, Wire, reason_of
from robandit_client.wording import counted, visible

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
REPEATED = frozenset({429, 500, 502, 503, 504})
"""The answers after which a call is repeated. It may have been stored, or may succeed later."""

_WITHOUT_TLS = frozenset({"HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER"})
"""What versions of OpenSSL say of a server that answers without TLS."""

Result = TypeVar("Result")


class Caller:
    """Makes calls. They are safe to repeat, because the service knows them by their ids or names."""

    def __init__(
        self,
        wire: Wire,
        address: Address,
        key: str | None,
        *,
        connect_timeout: float,
        read_timeout: float,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        """Keep the limits. ``chance`` draws the pauses, so that many clients do not come back at the same moment."""
        self.wire = wire
        self.address = address
        self.pool = Pool(wire, address, clock)
        self.clock = clock
        self._key = key
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._chance = chance or random.Random()

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        read: Callable[[Any], Result],
        *,
        seconds: float,
        patient: bool = False,
        unless: str | None = None,
    ) -> Result:
        """Return what ``read`` makes of the answer. Raise `ServiceUnavailable` or `Overloaded` if there is none in time.

        If ``read`` raises `Unexpected`, the call is repeated. ``patient`` waits for one answer as long as there is time. Otherwise,
        the call is repeated after ``read_timeout``. With ``unless``, an answer that this version is current is read as None.
        """
        until = self.clock() + seconds
        data = request(self.address, self._key, method, path, body, unless)
        attempts = 0
        while True:
            attempts += 1
            asked = 0.0  # seconds that the service asks to wait
            error: RobanditError
            try:
                limit = math.inf if patient else self._read_timeout
                response = await self.pool.exchange(data, connect=self._connect_timeout, read=limit, until=until)
                if response.status < 300:
                    return read(decoded(response.body))
                if response.status == 304 and unless is not None:
                    return read(None)
                error = self._error(response)
                if response.status not in REPEATED:
                    raise error
                asked = _retry_after(response)
            except OSError as failure:  # TimeoutError is one
                error = self._unreachable(failure)
                # An SSLCertVerificationError is a ValueError. In both cases, the next attempt would end the same.
                if isinstance(failure, ValueError) or _is_without_tls(failure):
                    raise error from failure
            pause = asked + self.pause(attempts)
            if self.clock() + pause >= until:
                made = f"{counted(attempts, 'attempt')} in {seconds:.3g} s"
                address = "check the address, or " if isinstance(error.__cause__, Unexpected) else ""
                text = f"{error} ({made}); {address}repeat the call later"
                raise type(error)(text, code=error.code) from error.__cause__
            await self.wire.sleep(pause)

    def pause(self, attempts: int) -> float:
        """Return the seconds to wait after some attempts: at random, up to a limit that doubles with each."""
        return self._chance.uniform(0.0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 20)))

    def _error(self, response: Response) -> RobanditError:
        """Return the error of an answer. If it is not the service's own, a proxy answered, or the address is wrong."""
        if response.headers.get("content-type", "").startswith("application/problem+json"):
            return error_of(response.status, decoded(response.body))
        text = visible(response.body[:100].decode("latin-1"))
        if "location" in response.headers:
            text = f"see {visible(response.headers['location'][:100])}"
        if response.status >= 500:
            return ServiceUnavailable(f"{self.address.url} answered {response.status}: {text or 'no text'}")
        wrong = f"{self.address.url} answered {response.status}, but not as the decision service does"
        return ServiceUnavailable(f"{wrong}: {text or 'no text'}; check the address")

    def _unreachable(self, failure: OSError) -> ServiceUnavailable:
        if isinstance(failure, Unexpected):
            text = f"{self.address.url} answered, but not as the decision service does: {failure}"
        elif _is_without_tls(failure):
            plain = self.address._replace(secure=False).url
            text = f"the server at {self.address.url} speaks http, not https: use Client({plain!r})"
        else:
            reason = "timed out" if isinstance(failure, TimeoutError) else reason_of(failure)
            text = f"the service at {self.address.url} cannot be reached: {visible(reason)}"
        error = ServiceUnavailable(text)
        error.__cause__ = failure
        return error


def _is_without_tls(failure: OSError) -> bool:
    return getattr(failure, "reason", None) in _WITHOUT_TLS


def _retry_after(response: Response) -> float:
    """Return the seconds in the header Retry-After; 0 if there are none. A date is not read: the service sends seconds."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0.0
