"""Start the decision service and the router, and print what happens: ``make example``, or ``python examples/llm_router``."""

import argparse
import heapq
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from providers import ROUND, STORY, World
from router import Router

from robandit.client import Client
from robandit.errors import RobanditError

REPORT = 15.0  # seconds between two lines about the traffic
CONVERSATION = 4  # requests in a conversation
PATIENCE = 10.0  # seconds that a call may take; long, so that no fallback changes the story on a busy machine
GRACE = 60.0  # seconds that the service has to end


def main() -> int:
    """Run until the end of the story, Ctrl-C or SIGTERM. Return the exit code."""
    options = parsed()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="robandit-") as temporary:
        folder = Path(getattr(options, "data", temporary))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with (
                service(folder / "robandit.db", options.port) as (process, url),
                Client(url, timeout=PATIENCE) as client,
            ):
                minutes = options.seconds / options.speed / 60.0
                print(f"dashboard: {url}\nCtrl-C stops; without it, this ends in {minutes:.3g} minutes\n", flush=True)
                run(options, client, process, stop)
        except RobanditError as error:
            print(error, file=sys.stderr)
            return 1
    print("stopped")
    return 0


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="llm_router",
        description="Run the decision service and an LLM router with simulated providers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seconds", type=positive, default=600.0, help="length of the story; a round has 300")
    parser.add_argument("--rate", type=positive, default=50.0, help="requests per second of the story")
    parser.add_argument("--speed", type=positive, default=1.0, help="seconds of the story per second, if possible")
    parser.add_argument("--window", type=positive, default=20.0, help="seconds after which a decision expires")
    parser.add_argument("--port", type=int, default=0, help="port of the service; 0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation and of the policies")
    no_folder = argparse.SUPPRESS
    parser.add_argument("--data", metavar="FOLDER", default=no_folder, help="keep the data here (default: not kept)")
    return parser.parse_args()


def positive(text: str) -> float:
    """Return a positive number."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be a positive number")
    return value


@contextmanager
def service(store: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the decision service in another process, with its address."""
    # Relaxed, because the router makes one call after the other, and would wait for the disk each time.
    options = ["--port", str(port), "--store", f"sqlite:{store}", "--no-auth", "--relaxed-durability"]
    # A session of its own, so that Ctrl-C in a terminal reaches the router only, which then ends the service.
    process = subprocess.Popen(
        [sys.executable, "-m", "robandit", "serve", *options], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise RobanditError("the service did not start")
        yield process, found[0]
    finally:
        process.terminate()
        try:
            process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def run(options: argparse.Namespace, client: Client, process: subprocess.Popen[str], stop: threading.Event) -> None:
    """Make the requests, end conversations when they are due, and print the story.

    The time of the story is the number of the request divided by the rate. So the same seed gives the same story on a slow machine.
    """
    world, router = World(options.seed), Router(client, options.seed, options.window)
    reporter = Reporter(world, router)
    conversations: list[tuple[float, str, float]] = []  # those that go on, the first to end first
    start = time.monotonic()
    for number in range(round(options.seconds * options.rate)):
        world.second = number / options.rate
        if stop.wait(max(start + world.second / options.speed - time.monotonic(), 0.0)):
            return
        if process.poll() is not None:
            raise RobanditError("the service has ended")
        reporter.report()
        router.answer(world.call)
        if number % CONVERSATION == 0:
            begun = router.begin()
            end, dollars = world.conversation(begun.arm)
            heapq.heappush(conversations, (end, begun.id, dollars))
        while conversations and conversations[0][0] <= world.second:
            _, id, dollars = heapq.heappop(conversations)
            router.end(id, dollars)


class Reporter:
    """Prints what happens to the providers, where the requests go, and what the service warns of."""

    def __init__(self, world: World, router: Router) -> None:
        """Begin at second 0."""
        self._world, self._router = world, router
        self._events = ((cycle * ROUND + second, text) for cycle in count() for second, text in STORY.items())
        self._event = next(self._events)
        self._traffic_at = REPORT
        self._calls = dict(world.calls)
        self._warned: set[str] = set()

    def report(self) -> None:
        """Print what is due."""
        second, text = self._event
        if self._world.second >= second:
            self._print(f"--- {text} ---")
            self._event = next(self._events)
        if self._world.second >= self._traffic_at:
            self._traffic_at += REPORT
            self._report_traffic()

    def _report_traffic(self) -> None:
        """Print the share of each provider since the last report, and new warnings."""
        calls = {name: number - self._calls[name] for name, number in self._world.calls.items()}
        self._calls = dict(self._world.calls)
        shares = "  ".join(f"{name} {100 * number / sum(calls.values()):3.0f} %" for name, number in calls.items())
        shown = [self._router.chat.show(), self._router.prompt.show()]
        self._print("   ".join([shares, *map(open_decisions, shown)]))
        for experiment in shown:
            for warning in experiment["warnings"]:
                if warning not in self._warned:
                    self._warned.add(warning)
                    self._print(f"warning, {experiment['name']}: {warning}")

    def _print(self, text: str) -> None:
        minutes, seconds = divmod(int(self._world.second), 60)
        print(f"{minutes}:{seconds:02}  {text}", flush=True)


def open_decisions(experiment: dict[str, Any]) -> str:
    """Return how many decisions wait for a reward, and how many have waited for too long."""
    counts = experiment["counts"]
    return f"{experiment['name']}: {counts['open']} open, {counts['expired']} expired"


if __name__ == "__main__":
    sys.exit(main())
