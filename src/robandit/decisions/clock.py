"""A clock that never goes backwards, even if the machine's clock does."""

from __future__ import annotations

from collections.abc import Callable

SLEW = 0.1  # while it is ahead, the steady clock is slower by this share


class SteadyClock:
    """The time of another clock, made steady.

    If the other clock is set back, this one goes on from where it was, a tenth more slowly until both agree again. So no time comes
    twice, and no time stands still: a decision that is made after such a jump still expires, at most 11 % later.

    >>> wall = [100.0]
    >>> clock = SteadyClock(lambda: wall[0])
    >>> clock()
    100.0
    >>> wall[0] = 40.0  # set back by a minute
    >>> clock()
    100.0
    >>> wall[0] = 50.0
    >>> clock()
    109.0
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._ahead = 0.0
        self._seen = wall()
        """The last time of the other clock."""
        self._last = self._seen
        """The last time that was returned."""

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        wall = self._wall()
        passed = wall - self._seen
        self._seen = wall
        if passed < 0.0:
            self._ahead -= passed
        elif self._ahead:
            self._ahead = max(0.0, self._ahead - SLEW * passed)
        self._last = max(self._last, wall + self._ahead)
        return self._last

    def catch_up(self, time: float) -> None:
        """Return no time before this one, such as that of the last event in a log."""
        if time > self():
            self._ahead += time - self._last
            self._last = time
