"""Lets other calls have a turn while some have much to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE = 0.003  # seconds of work after which others have a turn
T = TypeVar("T")


class Slices:
    """Long work is done in slices, one of them in each turn of the event loop, however many calls have long work."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # those who wait get it in their order

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
        async with self._turn:
            await asyncio.sleep(0)
