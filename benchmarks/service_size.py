"""Print the bytes per event in the file of the decision service, and the file's growth in a year.

::

    python benchmarks/service_size.py

Plays decisions with their rewards through the engine, closes the store, and divides the size of the file, without snapshots, by
the number of events.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import uuid
from pathlib import Path

import msgspec

from robandit.decisions.engine import SingleServerEngine
from robandit.storage import open_store

PAIRS = 20_000
AT_ONCE = 1_000
CONTEXT = msgspec.Raw(b'{"page":"%s"}' % (b"x" * 89))  # 100 bytes


def uuid7(number: int) -> str:
    """Return a UUIDv7, one millisecond after that of the number before."""
    bits = (1_800_000_000_000 + number) << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=bits & ~(0x3 << 62) | 2 << 62))


async def play(path: Path, own_ids: bool, context: bool) -> int:
    """Store decisions and rewards. Return the number of bytes in snapshots."""
    rng = random.Random(0)
    engine = SingleServerEngine(open_store(f"sqlite:{path}", durability="off"))
    await engine.load()
    experiment, _ = engine.create(
        "size",
        arms=["eu", "us", "asia"],
        policy="UCB1",
        minimize=True,
        seed=0,
        reward_window=None,
        on_expiry="drop",
        max_open=None,
    )
    for first in range(0, PAIRS, AT_ONCE):
        ids = [uuid7(number) if own_ids else None for number in range(first, first + AT_ONCE)]
        made = [experiment.decide(id, context=CONTEXT if context else msgspec.UNSET) for id in ids]
        for decision in made:
            experiment.reward(decision.event.id, rng.paretovariate(1.5))
        await engine.settled()
    size = len(experiment.snapshot().content)
    await engine.close()
    return size


def main() -> None:
    """Measure three kinds of events."""
    print("ids                     bytes per event   per decision with its reward   a million a day, in a year")
    for label, own_ids, context in (
        ("of the server", False, False),
        ("UUIDv7", True, False),
        ("UUIDv7, 100 B context", True, True),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robandit.db"
            snapshots = asyncio.run(play(path, own_ids, context))
            pair = (path.stat().st_size - snapshots) / PAIRS
        print(f"{label:22} {pair / 2:16.0f} {pair:30.0f} {pair * 365e6 / 1e9:25.0f} GB")


if __name__ == "__main__":
    main()
