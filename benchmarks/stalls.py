"""Measure how long one hostile call keeps all others waiting. ``python benchmarks/stalls.py``; writes docs/results/stalls.md.

Takes about two minutes. The server is a process of its own with a temporary store and an empty cache, so that policies run
interpreted at first. While each body is sent and answered, a thread asks /healthz every few milliseconds. The machine may be busy
with other things, so the server also measures the processor time of each step of its event loop, in which nothing else is
answered. For that, it uses the event loop of the standard library: that of uvloop cannot be watched.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "stalls.md"
GOAL = 50.0  # milliseconds
LARGEST = 4 << 20
SHOWN = 12  # calls on the page, those that held the event loop longest
QUIET = 0.5  # seconds without a body
PAUSE = 0.002  # seconds between two questions
FORM = "application/x-www-form-urlencoded"


class Case(NamedTuple):
    """A call, and what is hostile about it."""

    about: str
    method: str
    path: str
    body: bytes = b""
    media: str = "application/json"


# --- the server ---------------------------------------------------------------------------------------------------------------


def serve(path: str) -> None:
    """Serve, and print the longest step of the event loop since the last question for each line of standard input."""
    from robandit.service import server
    from robandit.storage import open_store

    longest = [0.0]
    run = asyncio.Handle._run

    def watched(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run(handle)
        longest[0] = max(longest[0], time.thread_time() - start)

    setattr(asyncio.Handle, "_run", watched)  # noqa: B010  (a type checker would reject the assignment)
    server._loop_factory = lambda: None

    def answer() -> None:
        for _ in sys.stdin:
            print(longest[0], flush=True)
            longest[0] = 0.0

    threading.Thread(target=answer, daemon=True).start()
    listener = server.listening("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    server.serve(open_store(f"sqlite:{path}"), listener, authenticate=False)


# --- the calls ----------------------------------------------------------------------------------------------------------------


def filled(head: bytes, unit: bytes, tail: bytes, size: int = LARGEST) -> bytes:
    """Return a text of this size at most: a head, as many units as fit, and a tail."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def batch(items: list[Any]) -> bytes:
    """Return the body of a batch."""
    return json.dumps({"items": items}, separators=(",", ":")).encode()


def cases(token: str) -> Iterator[Case]:
    """Yield the calls. Later ones need the experiments of the first ones."""
    arms = [f"arm {i}" for i in range(1_000)]
    one, wide = "/v1/experiments/one", "/v1/experiments/wide"
    few = json.dumps({"arms": ["a", "b"]}).encode()
    yield Case("an experiment with 2 arms", "PUT", one, few)
    yield Case("an experiment with 1,000 arms", "PUT", wide, json.dumps({"arms": arms}).encode())
    yield Case("1,000 decisions before the policy is compiled", "POST", f"{one}/decisions/batch", batch([{}] * 1_000))
    yield Case("20 decisions with 1,000 arms, not compiled", "POST", f"{wide}/decisions/batch", batch([{}] * 20))
    for size in (20_000, 50_000, LARGEST - 100):
        body = json.dumps({"arms": ["a"], "policy": "a" * size}).encode()
        yield Case(f"a policy of {size:,} characters", "PUT", "/v1/experiments/long", body)
    for text in ('"\\"' * 300, "UCB1(" * 199, "Restarting(of=" * 70 + "UCB1" + ")" * 70):
        body = json.dumps({"arms": ["a"], "policy": text}).encode()
        yield Case(f"a policy {text[:14]}... of {len(text)} characters", "PUT", "/v1/experiments/odd", body)
    deep: list[Any] = [[[]] * 21_000]
    yield Case("60 contexts [[], [], ...] of 63 KB", "POST", f"{one}/decisions/batch", batch([{"context": deep}] * 60))
    flat = {"context": [1] * 32_000}
    yield Case("60 contexts [1, 1, ...] of 64 KB", "POST", f"{one}/decisions/batch", batch([flat] * 60))
    slashes = {"context": "\\" * 32_000}
    yield Case("60 contexts of 32,000 backslashes", "POST", f"{one}/decisions/batch", batch([slashes] * 60))
    among = [{"id": f"among {i}", "among": arms} for i in range(400)]
    yield Case("400 decisions among 1,000 arms", "POST", f"{wide}/decisions/batch", batch(among))
    yield Case("400 decisions among 1,000 arms, repeated", "POST", f"{wide}/decisions/batch", batch(among))
    unknown = [{"among": [*arms[:999], "x"]}] * 400
    yield Case("400 decisions among 1,000 arms, one unknown", "POST", f"{wide}/decisions/batch", batch(unknown))
    context = {f"key {i}": i for i in range(200)}
    named = [{"id": f"named {i}", "context": context} for i in range(1_000)]
    yield Case("1,000 decisions with ids and contexts of 3 KB", "POST", f"{one}/decisions/batch", batch(named))
    yield Case("1,000 decisions with ids, repeated", "POST", f"{one}/decisions/batch", batch(named))
    rewards = [{"id": f"named {i}", "value": 1.5 * i} for i in range(1_000)]
    yield Case("1,000 rewards", "POST", f"{one}/rewards/batch", batch(rewards))
    yield Case("1,000 rewards, repeated", "POST", f"{one}/rewards/batch", batch(rewards))
    lost = [{"id": "x" * 200, "value": 1.0}] * 1_000
    yield Case("1,000 rewards of unknown decisions", "POST", f"{one}/rewards/batch", batch(lost))
    for unit in (b"1,", b"{},", b"[],"):
        body = filled(b'{"items":[', unit, unit[:-1] + b"]}")
        yield Case(f"4 MiB of items {unit.decode()} ...", "POST", f"{one}/decisions/batch", body)
    edge = {"arm": "a", "propensity": 0.5, "allocation": "none", "decided": 1.0, "value": 1.0}
    seen = [edge | {"id": f"edge0001-{i}"} for i in range(1_000)]
    yield Case("1,000 observations of an unknown allocation", "POST", f"{one}/observations/batch", batch(seen))
    wrong = [each | {"value": "1"} for each in seen]
    yield Case("1,000 observations that are wrong", "POST", f"{one}/observations/batch", batch(wrong))
    observed = b'{"id":"edge0001-0","arm":"a","propensity":0.5,"allocation":"none","decided":1.0,"value":1},'
    body = filled(b'{"items":[', observed, observed[:-1] + b"]}")
    yield Case("4 MiB of observations", "POST", f"{one}/observations/batch", body)
    yield Case("an allocation of 1,000 arms for an hour", "GET", f"{wide}/allocation?for=1h")
    yield Case("4 MiB of [], in one item", "POST", f"{one}/decisions/batch", filled(b'{"items":[[', b"[],", b"1]]}"))
    yield Case("4 MiB of names in one among", "POST", f"{one}/decisions", filled(b'{"among":[', b'"a",', b'"a"]}'))
    yield Case(
        "4 MiB of names in one among, in an item",
        "POST",
        f"{one}/decisions/batch",
        filled(b'{"items":[{"among":[', b'"a",', b'"a"]}]}'),
    )
    yield Case("4 MiB of the same field", "POST", f"{one}/decisions", filled(b"{", b'"id":"a",', b'"id":"a"}'))
    quotes = filled(b'{"arms":["a"],"policy":"', b'\\"', b'","seed":1,"seed":2}')
    yield Case("4 MiB of quotes, and a field twice", "PUT", "/v1/experiments/many", quotes)
    yield Case("4 MiB of arms", "PUT", "/v1/experiments/many", filled(b'{"arms":[', b'"a",', b'"a"]}'))
    yield Case("40,000 arms", "PUT", "/v1/experiments/many", filled(b'{"arms":[', b'"a",', b'"a"]}', 160_000))
    keys = filled(b'{"scopes":["read"],"experiments":[', b'"a",', b'"a"]}')
    yield Case("4 MiB of experiments of a key", "POST", "/v1/keys", keys)
    yield Case("4 MiB of NaN", "POST", f"{one}/rewards/batch", filled(b'{"items":[[', b"1,", b"NaN]]}"))
    yield Case("an unknown field of 4 MiB", "POST", f"{one}/decisions", filled(b'{"', b"a", b'":1}'))
    yield Case("a value of 4 MiB digits", "POST", f"{one}/rewards", filled(b'{"id":"a","value":1', b"1", b"}"))
    yield Case("brackets 4 MiB deep", "POST", f"{one}/decisions", filled(b'{"context":', b"[", b""))
    yield Case("a note of 4 MiB", "POST", "/v1/keys", filled(b'{"scopes":["read"],"note":"', b"a", b'"}'))
    yield Case("a path of 60 KB", "GET", "/v1/experiments/" + "%41" * 20_000)
    yield Case("a path of 65,000 slashes", "GET", "/" * 65_000)
    yield Case("a path of 30,000 parts", "GET", "/v1" + "/a" * 30_000)
    yield Case("an id of 60 KB", "GET", f"{one}/decisions/" + "%41" * 20_000)
    yield Case("a query of 60 KB", "GET", f"{one}/log?after=" + "%31" * 20_000)
    yield Case("a query of 30,000 parameters", "GET", f"{one}/log?" + "a&" * 30_000)
    yield Case("one more arm of 1,000", "POST", f"{wide}/arms", b'{"arm":"new"}')
    yield Case("a reset of 1,000 arms", "POST", f"{wide}/reset")
    yield Case("an experiment with 1,000 arms, shown", "GET", wide)
    yield Case("an explanation of a decision among 1,000 arms", "GET", f"{wide}/decisions/among%201")
    yield Case("the page of 1,000 arms", "GET", "/experiments/wide")
    form = f"token={token}&name=x&arms=".encode()
    yield Case("a form with 250 KB of arms", "POST", "/new", filled(form, b"a%0A", b"", 250_000), FORM)
    yield Case("a form of 4 MiB", "POST", "/new", filled(form, b"a%0A", b""), FORM)
    yield Case("a form with 1,000 fields", "POST", "/new", filled(form, b"&a=", b"", 3_000), FORM)
    yield Case("all experiments", "GET", "/v1/experiments")
    yield Case("the log", "GET", f"{one}/log")
    yield Case("the log as CSV", "GET", f"{one}/log?format=csv")
    yield Case("the log as Parquet", "GET", f"{one}/log?format=parquet")
    yield Case("1,000 decisions, 1,000 arms", "POST", f"{wide}/decisions/batch", batch([{}] * 1_000))
    yield Case("an experiment with 1,000 arms, deleted", "DELETE", wide)


# --- the measurement ------------------------------------------------------------------------------------------------------------


class Probe(threading.Thread):
    """Makes the same calls again and again, and keeps the longest time until an answer."""

    def __init__(self, port: int, *calls: tuple[str, str]) -> None:
        """Begin."""
        super().__init__(daemon=True)
        self._calls = calls
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._longest = 0.0
        self._asked = 0.0
        self.ended = False
        self.start()

    def run(self) -> None:
        """Ask."""
        while not self.ended:
            for method, path in self._calls:
                self._asked = time.perf_counter()
                self._connection.request(method, path)
                self._connection.getresponse().read()
                self._longest = max(self._longest, time.perf_counter() - self._asked)
                self._asked = 0.0
                time.sleep(PAUSE)

    def longest(self) -> float:
        """Return the longest time since the last call, in milliseconds. An answer that is still awaited counts."""
        time.sleep(0.02)
        while asked := self._asked:
            time.sleep(0.001)
            if asked != self._asked:
                break
        found, self._longest = self._longest, 0.0
        return 1e3 * found


class Measured(NamedTuple):
    """What was found of one call."""

    case: Case
    status: int
    seconds: float
    held: float
    """The longest step of the event loop, in milliseconds of processor time."""
    probe: float
    others: float
    """The longest call for another experiment."""
    quiet: float
    """The longest probe without the body."""


def measure(folder: Path) -> list[Measured]:
    """Send all calls, one after the other."""
    environment = os.environ | {"ROBANDIT_CACHE_DIR": str(folder / "cache")}
    (folder / "cache").mkdir(mode=0o700)
    command = [sys.executable, __file__, "--serve", str(folder / "stalls.db")]
    found = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            while send(port, Case("", "GET", "/readyz"))[0] != 200:
                time.sleep(0.05)
            other = "/v1/experiments/other"
            send(port, Case("", "PUT", other, b'{"arms":["a","b"],"max_open":1000000}'))
            probe = Probe(port, ("GET", "/healthz"))
            others = Probe(port, ("GET", other), ("POST", f"{other}/decisions"))
            _, page = send(port, Case("", "GET", "/new"))
            token = re.search(rb'name="token" value="([^"]*)"', page)
            for case in cases(token[1].decode() if token else ""):
                probe.longest()
                others.longest()
                time.sleep(QUIET)
                others.longest()
                quiet = probe.longest()
                print("", file=process.stdin, flush=True)
                process.stdout.readline()
                start = time.perf_counter()
                status, _ = send(port, case)
                seconds = time.perf_counter() - start
                longest, longest_other = probe.longest(), others.longest()
                print("", file=process.stdin, flush=True)
                held = 1e3 * float(process.stdout.readline())
                found.append(Measured(case, status, seconds, held, longest, longest_other, quiet))
                text = f"held {held:.1f} ms, probe {longest:.1f} ms, others {longest_other:.1f} ms"
                print(f"{case.about}: {status}, {text}", file=sys.stderr, flush=True)
            for each in (probe, others):
                each.ended = True
                each.join()
        finally:
            process.terminate()
    return found


def send(port: int, case: Case) -> tuple[int, bytes]:
    """Return the status and the body of the answer. The server may refuse a body before all of it is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        headers = {"Content-Type": case.media} if case.body else {}
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(case.method, case.path, case.body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def page(found: list[Measured], seconds: float) -> str:
    """Return the page with the results."""
    from service import processor_name

    load = os.getloadavg()[1]
    head = ["call", "bytes", "answer", "held", "/healthz", "others", "without"]
    rows = [
        [
            each.case.about.replace("|", "\\|"),
            f"{len(each.case.body) or len(each.case.path):,}",
            str(each.status),
            f"{each.held:.1f} ms",
            f"{each.probe:.0f} ms",
            f"{each.others:.0f} ms",
            f"{each.quiet:.0f} ms",
        ]
        for each in sorted(found, key=lambda each: -each.held)[:SHOWN]
    ]
    met = sum(each.held <= GOAL for each in found)
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    title = "| " + " | ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True)) + " |"
    return f"""# Calls that keep others waiting

{met} of {len(found)} hostile calls held the event loop, which answers all calls, for at most {GOAL:.0f} ms. These held it longest:

{chr(10).join([title, rule, *lines])}

*held*: the longest step of the event loop while the call was answered, in processor time. *bytes*: of the body, or of the path if
there is none. */healthz*: the longest answer to a probe beside the call, in wall time; *others*: the same for a GET and a decision
of another experiment; *without*: /healthz in the half second before. Policies have no compiled code at first.

Written by `python benchmarks/stalls.py`, which prints every call, in {seconds:.0f} seconds on {os.cpu_count()} shared cores \
({processor_name()}; load {load:.0f}).
"""


def main() -> None:
    """Measure, and write the page."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
        return
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="robandit-stalls-") as folder:
        found = measure(Path(folder))
    text = page(found, time.perf_counter() - start)
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
