"""Lets other calls have a turn while some have much to do."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE = 0.003  # seconds of work after which others have a turn
T = TypeVar("T")


class Slices:
    """Long work is done in slices, one of them in each turn of the event loop, however many calls have long work."""

    def __init__(self) -> None:
        """Start without work."""
        self._resting: deque[asyncio.Future[None]] = deque()
        """Those who wait for their next slice. While there are some, `_go_on` is about to be called."""

    async def paced(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Yield items. Others have a turn before the first one, and after each slice."""
        await self.rest()
        began = time.perf_counter()
        for item in items:
            yield item
            if time.perf_counter() - began >= SLICE:
                await self.rest()
                began = time.perf_counter()

    async def rest(self) -> None:
        """Wait for the next slice. All who are ready have a turn before, and those who rest go on in their order."""
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        self._resting.append(place)
        if len(self._resting) == 1:
            loop.call_soon(self._go_on)
        await place

    def _go_on(self) -> None:
        """Let the first one go on in the next turn of the event loop."""
        while self._resting:
            place = self._resting.popleft()
            if not place.done():  # else its call was cancelled
                place.set_result(None)
                break
        if self._resting:
            asyncio.get_running_loop().call_soon(self._go_on)
