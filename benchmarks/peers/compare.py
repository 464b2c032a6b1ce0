"""Compare Robandit with its peers in one run: ``make bench-peers``. Writes docs/results/peers.md and the README's table.

Peers are installed from the package index into temporary environments. They run in turn, one at a time, so that other load on the
machine affects all of them equally; each figure is the best of several tries. The exit code is 3 if a goal is missed.
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
LEAST = 0.3  # least processor seconds of one try
ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "results" / "peers.md", ROOT / "README.md"


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def best(workers: dict[str, Worker], actions: Iterable[tuple[str, str]], tries: int, least: float) -> page.Measured:
    """Return the best try of each (worker, action). They run in turn; the first call is not measured."""
    answers: page.Measured = {}
    pairs = list(actions)
    for attempt in range(tries + 1):
        for peer, action in pairs:
            previous = answers.get((peer, action))
            if previous is not None and "error" in previous:
                continue
            answer = workers[peer].ask(action, 0.0 if attempt == 0 else least)
            if "error" in answer or attempt <= 1 or previous is None or answer["rate"] > previous["rate"]:
                answers[peer, action] = answer
    return answers


def start(folder: Path) -> tuple[dict[str, Worker], dict[str, str]]:
    """Start a process for each library; returns the workers and the failures."""
    log("installing peers into temporary environments")
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
    log("importing peers and compiling Robandit's policies")
    workers = {name: make() for name, make in makers.items()}
    return workers, {k: v for k, v in failures.items() if v} | {k: w.failure for k, w in workers.items() if w.failure}


def measure(workers: dict[str, Worker]) -> tuple[page.Measured, bool]:
    """Return all measurements, and whether both implementations of AdaR-UCB chose the same arms."""
    libraries = ["robandit", "python", *page.LIBRARIES]
    available = [peer for peer in libraries if peer in workers and not workers[peer].failure]
    log("UCB1, live and simulated")
    measured = best(workers, [(peer, action) for action in ("live", "simulated") for peer in available], TRIES, LEAST)
    if "mabwiser" in available:
        measured |= best(workers, [("mabwiser", "batched")], TRIES, LEAST)
    log("AdaR-UCB; NumPy takes a minute or two")
    for pulls in heavy.HORIZONS:
        measured |= best(
            workers, [("robandit", f"AdaR-UCB {pulls}"), ("robandit", f"AdaR-UCB live {pulls}")], TRIES, LEAST
        )
        measured["numpy", f"AdaR-UCB {pulls}"] = workers["numpy"].ask(f"AdaR-UCB {pulls}", 0.0)
    arms = [workers[peer].ask("arms", 0.0).get("result") for peer in ("robandit", "numpy")]
    log("estimators")
    pairs = {("robandit", f"{pair.ours} {n}") for pair in page.PAIRS for n in pair.sizes}
    pairs |= {
        (pair.package, f"{pair.theirs} {n}") for pair in page.PAIRS for n in pair.sizes if pair.package in workers
    }
    return measured | best(workers, sorted(pairs), TRIES, LEAST / 2.0), arms[0] is not None and arms[0] == arms[1]


def main() -> int:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="robandit-peers-") as folder:
        workers, failures = start(Path(folder))
        try:
            if workers["robandit"].failure:
                log(f"Robandit {workers['robandit'].failure}")
                return 1
            measured, same_arms = measure(workers)
            versions = {name: worker.versions for name, worker in workers.items()}
            facts: dict[str, dict[str, Any]] = {name: worker.facts for name, worker in workers.items()}
        finally:
            for worker in workers.values():
                worker.close()
    report = page.Report(measured, same_arms, versions, facts, failures)
    PAGE.write_text(report.text())
    README.write_text(
        re.sub(r"^\| UCB1, .*?(?=\n\n)", report.short(), README.read_text(), flags=re.DOTALL | re.MULTILINE)
    )
    print(report.terminal())
    log(f"\nwritten: {PAGE.relative_to(ROOT)}, the table in {README.relative_to(ROOT)}")
    log(f"took {time.perf_counter() - started:.0f} s")
    return 0 if all(goal.met for goal in report.goals()) else 3


if __name__ == "__main__":
    sys.exit(main())
