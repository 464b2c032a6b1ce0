"""One call of the service: repeated until it is answered or its time is over, and read as JSON or as an error."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from typing import Any

from robandit.client.http import Address, Broken, Response, request
from robandit.client.wires import Pool, Wire, reason_of
from robandit.errors import Conflict, InvalidInput, NotFound, Overloaded, RobanditError, ServiceUnavailable
from robandit.wording import counted, visible

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
REPEATED = frozenset({429, 500, 502, 503, 504})
"""The answers after which a call is repeated. It may have been stored, or may succeed later."""

_ERRORS: dict[int, type[RobanditError]] = {404: NotFound, 409: Conflict, 429: Overloaded}

_WAYS_OUT = {
    "send the header Authorization: Bearer KEY": "pass it to Client(url, key)",
    "check the header Authorization: Bearer KEY": "check the key that you passed to Client(url, key)",
    "create it with PUT /v1/": "create it with client.create(name, arms), or with PUT /v1/",
}
"""What the service advises callers over HTTP to do, and what to do with the client."""


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
        self, method: str, path: str, body: bytes | None = None, *, seconds: float, patient: bool = False
    ) -> Any:
        """Return the answer, decoded. Raise `ServiceUnavailable` or `Overloaded` if there is none in time.

        ``patient`` waits for one answer as long as there is time. Otherwise, the call is repeated after ``read_timeout``.
        """
        until = self.clock() + seconds
        data = request(self.address, self._key, method, path, body)
        attempts = 0
        while True:
            attempts += 1
            asked = 0.0  # seconds that the service asks to wait
            error: RobanditError
            try:
                read = math.inf if patient else self._read_timeout
                response = await self.pool.exchange(data, connect=self._connect_timeout, read=read, until=until)
                if response.status < 300:
                    return _decoded(response)
                error = self._error(response)
                if response.status not in REPEATED:
                    raise error
                asked = _retry_after(response)
            except OSError as failure:  # TimeoutError is one
                error = self._unreachable(failure)
                if isinstance(
                    failure, ValueError
                ):  # an ssl.SSLCertVerificationError: the next attempt would end the same
                    raise error from failure
            pause = asked + self.pause(attempts)
            if self.clock() + pause >= until:
                raise type(error)(
                    f"{error} ({counted(attempts, 'attempt')} in {seconds:.3g} s); repeat the call later"
                ) from error.__cause__
            await self.wire.sleep(pause)

    def pause(self, attempts: int) -> float:
        """Return the seconds to wait after some attempts: at random, up to a limit that doubles with each."""
        return self._chance.uniform(0.0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 20)))

    def _error(self, response: Response) -> RobanditError:
        """Return the error of an answer. If it is not the service's own, a proxy answered, or the address is wrong."""
        if response.headers.get("content-type", "").startswith("application/problem+json"):
            return error_of(response.status, _decoded(response))
        text = visible(response.body[:100].decode("latin-1"))
        if "location" in response.headers:
            text = f"see {visible(response.headers['location'][:100])}"
        if response.status >= 500:
            return ServiceUnavailable(f"{self.address.url} answered {response.status}: {text or 'no text'}")
        wrong = f"{self.address.url} answered {response.status}, but not as the decision service does"
        return ServiceUnavailable(f"{wrong}: {text or 'no text'}; check the address")

    def _unreachable(self, failure: OSError) -> ServiceUnavailable:
        reason = "timed out" if isinstance(failure, TimeoutError) else reason_of(failure)
        error = ServiceUnavailable(f"the service at {self.address.url} cannot be reached: {visible(reason)}")
        error.__cause__ = failure
        return error


def error_of(status: int, problem: Any) -> RobanditError:
    """Return the error that stands for a problem of the service."""
    fields = problem if isinstance(problem, dict) else {}
    detail = visible(str(fields.get("detail") or f"status {status}"))
    for over_http, with_client in _WAYS_OUT.items():
        detail = detail.replace(over_http, with_client)
    if status >= 500:
        return ServiceUnavailable(detail)
    if status in (401, 403):
        return InvalidInput(detail, parameter="key")
    if status in _ERRORS:
        return _ERRORS[status](detail)
    return InvalidInput(detail, parameter=fields.get("parameter"), rule=fields.get("rule"))


def _decoded(response: Response) -> Any:
    try:
        return json.loads(response.body)
    except ValueError as error:
        raise Broken(f"an answer with the status {response.status} that is not JSON") from error


def _retry_after(response: Response) -> float:
    """Return the seconds in the header Retry-After; 0 if there are none. A date is not read: the service sends seconds."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0.0
