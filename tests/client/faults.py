"""Play clients against a real server, with a proxy in between that spoils exchanges at random: every reward is counted once.

::

    python tests/client/faults.py --faults 1000

Several workers decide and send rewards, one by one and in batches, until the proxy has made the given number of faults, most kinds
of them, and the client has used its fallback and kept rewards. Then the proxy makes no more, the client delivers what it has kept,
and the log of the server must have each reward exactly once, with its value and its arm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.fault_proxy import FaultProxy
from helpers.serving import Server
from robandit.client import AsyncClient, Client, Decision
from robandit.errors import ServiceUnavailable

WORKERS = 6
KINDS = 6  # of 8 kinds of faults; outages are seldom
LONGEST = 240.0  # seconds; a run that takes longer fails
LIMITS = {"timeout": 0.6, "connect_timeout": 0.2, "read_timeout": 0.25, "cooldown": 0.2}


class Ledger:
    """What the workers have sent."""

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.rewards: dict[str, float] = {}
        self.kept = 0
        self.fallbacks = 0
        self.unavailable = 0
        self._lock = threading.Lock()

    def decided(self, decisions: list[Decision]) -> None:
        with self._lock:
            for decision in decisions:
                assert decision.id not in self.decisions, "an id was used twice"
                self.decisions[decision.id] = decision
                self.fallbacks += decision.fallback

    def rewarded(self, id: str, value: float, outcome: str) -> None:
        with self._lock:
            assert outcome in ("applied", "kept"), outcome
            self.rewards[id] = value
            self.kept += outcome == "kept"


class Worker:
    """Decides and sends rewards, with either client."""

    def __init__(self, experiment: Any, ledger: Ledger, seed: int) -> None:
        self.experiment = experiment
        self.ledger = ledger
        self.random = random.Random(seed)

    async def step(self) -> None:
        fallback = "a" if self.random.random() < 0.7 else None
        count = self.random.choice([1, 1, 1, 1, 2, 7])
        try:
            if count == 1:
                decisions = [await done(self.experiment.decide(fallback=fallback))]
            else:
                decisions = await done(self.experiment.decide_many(count, fallback=fallback))
        except ServiceUnavailable:
            assert fallback is None
            self.ledger.unavailable += 1
            return
        self.ledger.decided(decisions)
        values = [self.random.lognormvariate(0.0, 1.0) for _ in decisions]
        if count == 1:
            rewards = [await done(self.experiment.reward(decisions[0], values[0]))]
        else:
            rewards = await done(self.experiment.reward_many(list(zip(decisions, values, strict=True))))
        for decision, value, reward in zip(decisions, values, rewards, strict=True):
            self.ledger.rewarded(decision.id, value, reward.outcome)


async def done(result: Any) -> Any:
    """Return a result, after waiting for it if it is that of the asynchronous client."""
    return await result if asyncio.iscoroutine(result) else result


class Enough:
    """Whether a run has seen all that it is for. A fixed length could miss something on a slow machine."""

    def __init__(self, proxy: FaultProxy, ledger: Ledger, faults: int) -> None:
        self._proxy, self._ledger, self._faults = proxy, ledger, faults
        self._until = time.monotonic() + LONGEST

    def __call__(self) -> bool:
        return self.missing() is None or time.monotonic() > self._until

    def missing(self) -> str | None:
        """Return what has not happened yet."""
        if self._proxy.total < self._faults:
            return f"only {self._proxy.total} faults"
        if len(self._proxy.made) < KINDS:
            return f"only the faults {sorted(self._proxy.made)}"
        if self._ledger.fallbacks == 0:
            return "no decision of the fallback"
        return "no reward was kept" if self._ledger.kept == 0 else None


def play_blocking(proxy: FaultProxy, ledger: Ledger, enough: Enough, seed: int) -> None:
    failures: list[BaseException] = []

    def work(worker: Worker) -> None:
        try:
            while not enough():
                try:
                    worker.step().send(None)
                except StopIteration:
                    time.sleep(0.005)
        except BaseException as error:
            failures.append(error)

    with Client(proxy.url, **LIMITS) as client:
        workers = [Worker(client.experiment("provider"), ledger, seed + number) for number in range(WORKERS)]
        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        proxy.share = 0.0
        client.flush(30.0)


async def play_async(proxy: FaultProxy, ledger: Ledger, enough: Enough, seed: int) -> None:
    async def work(worker: Worker) -> None:
        while not enough():
            await worker.step()
            await asyncio.sleep(0.005)

    async with AsyncClient(proxy.url, **LIMITS) as client:
        workers = [Worker(client.experiment("provider"), ledger, seed + number) for number in range(WORKERS)]
        await asyncio.gather(*map(work, workers))
        proxy.share = 0.0
        await client.flush(30.0)


def play(kind: str, faults: int, seed: int, folder: Path) -> dict[str, Any]:
    """Play one client until there were enough faults, and check the log of the server. Return what happened."""
    ledger, start = Ledger(), time.monotonic()
    with Server(folder / f"{kind}.db", "--relaxed-durability") as server:
        server.call("PUT", "/v1/experiments/provider", {"arms": ["a", "b", "c"], "minimize": True})
        with FaultProxy(server.host, server.port, seed=seed) as proxy:
            enough = Enough(proxy, ledger, faults)
            if kind == "blocking":
                play_blocking(proxy, ledger, enough, seed)
            else:
                asyncio.run(play_async(proxy, ledger, enough, seed))
        missing = enough.missing()
        assert missing is None, f"{missing} in {LONGEST:g} s"
        check(ledger, server)
    return {
        "seconds": round(time.monotonic() - start, 1),
        "faults": dict(sorted(proxy.made.items())),
        "decisions": len(ledger.decisions),
        "of the fallback": ledger.fallbacks,
        "rewards": len(ledger.rewards),
        "kept at first": ledger.kept,
        "calls that raised ServiceUnavailable": ledger.unavailable,
    }


def check(ledger: Ledger, server: Server) -> None:
    """Compare the log of the server with what the client sent: nothing is missing, and nothing is there twice."""
    rows = [json.loads(line) for line in server.call("GET", "/v1/experiments/provider/log").body.splitlines()]
    rewarded = [row for row in rows if row["kind"] == "rewarded"]
    found = {row["id"]: row["reward"] for row in rewarded}
    assert len(found) == len(rewarded), "a reward was counted twice"
    lost = ledger.rewards.keys() - found.keys()
    assert not lost, f"{len(lost)} of {len(ledger.rewards)} rewards are lost: {sorted(lost)[:3]}"
    assert found == ledger.rewards
    arms = {row["id"]: row["arm"] for row in rows if row["kind"] == "decided"}
    wrong = [id for id, decision in ledger.decisions.items() if arms.get(id) != decision.arm]
    assert not wrong, f"{len(wrong)} decisions are lost, or have another arm: {wrong[:3]}"
    assert server.call("GET", "/v1/experiments/provider").json["counts"]["rewards"] == len(ledger.rewards)


def main() -> None:
    parser = argparse.ArgumentParser(description="Every reward is counted once, with faults between client and server.")
    parser.add_argument("--faults", type=int, default=1000, help="the number of faults of each client")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.getLogger("robandit.client").setLevel(logging.ERROR)  # it warns of each outage
    for kind in ("blocking", "asyncio"):
        with tempfile.TemporaryDirectory() as folder:
            outcome = play(kind, given.faults, given.seed, Path(folder))
        print(f"{kind}: every reward was counted once; {outcome}", flush=True)


if __name__ == "__main__":
    main()
