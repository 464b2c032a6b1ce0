"""A bandit in a server: threads route requests, servers come and go, and the process ends and starts again.

Latencies are simulated and heavy-tailed; less is better. Run it twice in the same folder: the second run continues.
"""

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
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


def save_regularly(bandit: rb.Bandit, done: threading.Event) -> None:
    """Save every 0.2 seconds. A crash loses what was learned since the last save, and nothing else."""
    while not done.wait(0.2):
        bandit.expire(older_than=timedelta(minutes=10))  # requests that were never answered
        bandit.save(FILE)


def serve(bandit: rb.Bandit, seed: int) -> None:
    """Serve 250 requests in one thread. The latency of each is known after the next one was routed."""
    rng = random.Random(seed)
    waiting: list[tuple[str | int, float]] = []
    for number in range(250):
        only = ["eu", "us"] if number % 10 == 0 else None  # a customer whose data must stay there
        decision = bandit.decide(among=only)
        waiting.append((decision.id, MEAN_LATENCY[decision.arm] * rng.paretovariate(1.6) * 0.375))
        if len(waiting) > 1:
            bandit.reward(*waiting.pop(0))
    bandit.reward(*waiting.pop())


bandit, done = router(), threading.Event()
saver = threading.Thread(target=save_regularly, args=(bandit, done))
saver.start()
try:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(serve, [bandit] * 8, range(8)))
        if "sa" not in bandit.arms:
            bandit.add_arm("sa")  # a fourth server, an hour later
            bandit.pause_arm("asia")  # under maintenance
            list(pool.map(serve, [bandit] * 8, range(8, 16)))
            bandit.retire_arm("eu")
            bandit.resume_arm("asia")
finally:
    done.set()
    saver.join()

late = bandit.decide()
bandit.save(FILE)  # then the process ends: a deployment, a power failure
bandit = router()
bandit.reward(late.id, 0.7)  # the reward comes after the restart
bandit.save(FILE)

for row in bandit.estimates():
    print(f"{row['arm']:5} {row['state']:8} {row['pulls']:6} requests, mean latency {row['mean']:.2f} s")
print(f"open decisions: {bandit.open_count}")
