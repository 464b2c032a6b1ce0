"""A bandit inside a server: eight threads route requests, servers come and go, and the process is killed and started again.

Latencies are simulated and heavy-tailed; less is better. Run it twice with the same folder: the second run continues.
"""

import random
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import robandit as rb

FILE = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "router.bandit"
MEAN_LATENCY = {"eu": 1.2, "us": 1.0, "asia": 2.0, "sa": 0.6}  # seconds; the bandit does not know them


def router() -> rb.Bandit:
    """Continue with the saved bandit, or start with three servers."""
    if FILE.exists():
        return rb.Bandit.load(FILE)
    return rb.Bandit(["eu", "us", "asia"], minimize=True, max_open=10_000, seed=0)


@contextmanager
def saved_regularly(bandit: rb.Bandit, seconds: float) -> Iterator[None]:
    """Save in another thread. A crash loses what was learned since the last save, and nothing else."""
    done = threading.Event()

    def save() -> None:
        while not done.wait(seconds):
            bandit.expire(older_than=timedelta(minutes=10))  # requests that were never answered
            bandit.save(FILE)

    saver = threading.Thread(target=save)
    saver.start()
    try:
        yield
    finally:
        done.set()
        saver.join()
        bandit.save(FILE)


def serve(bandit: rb.Bandit, requests: int, seed: int) -> None:
    """Serve requests in one thread. The reward of each comes after the next one was routed."""
    rng = random.Random(seed)
    waiting: list[tuple[str | int, float]] = []
    for number in range(requests):
        only = ["eu", "us"] if number % 10 == 0 else None  # a customer whose data must not leave these two
        decision = bandit.decide(among=only)
        latency = MEAN_LATENCY[decision.arm] * rng.paretovariate(1.6) * 0.375
        waiting.append((decision.id, latency))
        if len(waiting) > 1:
            bandit.reward(*waiting.pop(0))
    bandit.reward_many(*zip(*waiting, strict=True))


def run(bandit: rb.Bandit, requests: int = 2_000) -> None:
    """Serve requests in eight threads."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: serve(bandit, requests // 8, seed), range(8)))


warnings.simplefilter("always")  # print every DriftWarning and AssumptionWarning
bandit = router()
with saved_regularly(bandit, seconds=0.2):
    run(bandit)
    if "sa" not in bandit.arms:
        bandit.add_arm("sa")  # a fourth server, an hour later
        bandit.pause_arm("asia")  # under maintenance
        run(bandit)
        bandit.retire_arm("eu")
        bandit.resume_arm("asia")

late = bandit.decide()
bandit.save(FILE)  # then the process ends: power failure, deployment, ...
bandit = router()
bandit.reward(late.id, 0.7)  # the reward comes after the restart
bandit.save(FILE)

for row in bandit.estimates():
    print(f"{row['arm']:5} {row['state']:8} {row['pulls']:6} requests, mean latency {row['mean']:.2f} s")
print(f"open decisions: {bandit.open_count}")
