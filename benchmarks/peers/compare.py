"""Robandit against its peers, measured in one run: ``make bench-peers``. Writes docs/results/peers.md and the README's table.

Peers are installed from the package index into throw-away environments. All are asked in turns, one at a time, so that what else
the machine does hits everyone alike; each figure is the best of several tries. Ends with 3 if a goal is missed.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import heavy
import page
from environments import Worker, install, python

TRIES = 3
LEAST = 0.3  # processor seconds of one try
ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "results" / "peers.md", ROOT / "README.md"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def best(workers: dict[str, Worker], actions: Iterable[tuple[str, str]], tries: int, least: float) -> page.Measured:
    """The best try of each (worker, action), all in turns; warmed up by one call before."""
    found: page.Measured = {}
    asked = list(actions)
    for attempt in range(tries + 1):
        for who, action in asked:
            if "error" in found.get((who, action), {}):
                continue
            answer = workers[who].ask(action, 0.0 if attempt == 0 else least)
            known = found.get((who, action))
            if "error" in answer or attempt <= 1 or known is None or answer["rate"] > known["rate"]:
                found[who, action] = answer
    return found


def start(folder: Path) -> tuple[dict[str, Worker], dict[str, str]]:
    """Everyone's process, and what went wrong."""
    say("installing peers into throw-away environments")
    needed = (*page.LIBRARIES, "statsmodels")
    with ThreadPoolExecutor(2) as pool:
        failures = dict(zip(needed, pool.map(partial(install, folder=folder), needed), strict=True))
    makers: dict[str, Callable[[], Worker]] = {
        "robandit": partial(Worker, sys.executable, "with_robandit", ROBANDIT_CACHE_DIR=str(folder / "cache")),
        "python": partial(Worker, sys.executable, "with_python"),
        "numpy": partial(Worker, sys.executable, "with_numpy"),
    }
    for peer in needed:
        if not failures[peer]:
            makers[peer] = partial(Worker, python(folder, peer), f"with_{peer}")
    if not failures["statsmodels"]:  # SciPy comes with it
        makers["scipy"] = partial(Worker, python(folder, "statsmodels"), "with_scipy")
    else:
        failures["scipy"] = failures["statsmodels"]
    say("importing them, and compiling Robandit's policies")
    workers = {name: make() for name, make in makers.items()}
    return workers, {k: v for k, v in failures.items() if v} | {k: w.failure for k, w in workers.items() if w.failure}


def measure(workers: dict[str, Worker]) -> tuple[page.Measured, bool]:
    """All figures, and whether both AdaR-UCBs chose the same arms."""
    everyone = ["robandit", "python", *page.LIBRARIES]
    there = [who for who in everyone if who in workers and not workers[who].failure]
    say("UCB1, live and simulated")
    found = best(workers, [(who, action) for action in ("live", "simulated") for who in there], TRIES, LEAST)
    if "mabwiser" in there:
        found |= best(workers, [("mabwiser", "batched")], TRIES, LEAST)
    say("AdaR-UCB; the NumPy one takes a minute or two")
    for pulls in heavy.HORIZONS:
        found |= best(
            workers, [("robandit", f"AdaR-UCB {pulls}"), ("robandit", f"AdaR-UCB live {pulls}")], TRIES, LEAST
        )
        found["numpy", f"AdaR-UCB {pulls}"] = workers["numpy"].ask(f"AdaR-UCB {pulls}", 0.0)
    arms = [workers[who].ask("arms", 0.0).get("result") for who in ("robandit", "numpy")]
    say("estimators")
    pairs = {("robandit", f"{pair.ours} {n}") for pair in page.PAIRS for n in pair.sizes}
    pairs |= {
        (pair.package, f"{pair.theirs} {n}") for pair in page.PAIRS for n in pair.sizes if pair.package in workers
    }
    return found | best(workers, sorted(pairs), 3, LEAST / 2.0), arms[0] is not None and arms[0] == arms[1]


def main() -> int:
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="robandit-peers-") as folder:
        workers, failures = start(Path(folder))
        try:
            if workers["robandit"].failure:
                say(f"Robandit {workers['robandit'].failure}")
                return 1
            found, same = measure(workers)
            versions = {name: worker.versions for name, worker in workers.items()}
            facts: dict[str, dict[str, Any]] = {name: worker.facts for name, worker in workers.items()}
        finally:
            for worker in workers.values():
                worker.close()
    report = page.Report(found, same, versions, facts, failures)
    PAGE.write_text(report.text())
    README.write_text(
        re.sub(r"^\| UCB1, .*?(?=\n\n)", report.short(), README.read_text(), flags=re.DOTALL | re.MULTILINE)
    )
    print(report.terminal())
    say(f"\nwritten: {PAGE.relative_to(ROOT)}, the table in {README.relative_to(ROOT)}")
    say(f"took {time.perf_counter() - begun:.0f} s")
    return 0 if all(goal.met for goal in report.goals()) else 3


if __name__ == "__main__":
    sys.exit(main())
