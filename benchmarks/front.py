"""Compare HTTP servers for the decision service: speed, and what they make of hostile requests. Writes docs/results/front.md.

``python benchmarks/front.py`` takes five minutes, and installs the other servers into a temporary folder. All run the same small
application (``front_app.py``) on the same Python with uvloop, one worker each, and take turns. Needs Linux.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path

from load import Client, head, run

from service import filled, processor_name, table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results" / "front.md"
OTHERS = ("uvicorn", "hypercorn", "granian")
CONNECTIONS, SECONDS, ROUNDS = 32, 1.5, 3
PATIENCE = 3.0  # seconds without an answer
MIB = 1 << 20
OURS = "Robandit's connection.py"
SERVERS = {
    OURS: ["front_app.py", "{port}"],
    "uvicorn, httptools (0.2)": ["-m", "uvicorn", "front_app:app", "--http", "httptools", "--port", "{port}"],
    "uvicorn, h11": ["-m", "uvicorn", "front_app:app", "--http", "h11", "--port", "{port}"],
    "hypercorn": ["-m", "hypercorn", "front_app:app", "--worker-class", "uvloop", "--bind", "127.0.0.1:{port}"],
    "granian": ["-m", "granian", "front_app:app", "--interface", "asgi", "--loop", "uvloop", "--port", "{port}"],
}
QUIET = {"uvicorn": ["--log-level", "critical"], "hypercorn": ["--log-level", "critical"], "granian": ["--no-log"]}


class Server:
    """A server that is running."""

    def __init__(self, command: list[str], folder: Path) -> None:
        """Start it on a free port, and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        words = [word.format(port=self.port) for word in command] + QUIET.get(command[1], [])
        places = [str(HERE), os.environ.get("PYTHONPATH", ""), str(folder)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
        self.process = subprocess.Popen([sys.executable, *words], cwd=HERE, env=environment, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while True:
            try:
                self.calls()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connected(self) -> socket.socket:
        """Return a connection."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def calls(self) -> list[list[object]]:
        """Return the calls that reached the application."""
        with self.connected() as made:
            made.sendall(b"GET /calls HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            found: list[list[object]] = json.loads(received(made).partition(b"\r\n\r\n")[2])
            return found

    def _read(self, name: str) -> list[str]:
        """Return this file of the process and of its children."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [Path(f"/proc/{each}/{name}").read_text() for each in (pid, *children)]

    @property
    def memory(self) -> float:
        """Resident memory, in MB."""
        found = [re.search(r"VmRSS:\s+(\d+)", text) for text in self._read("status")]
        return sum(int(each[1]) for each in found if each) / 1024

    @property
    def processor(self) -> float:
        """Processor time of all threads, in seconds."""
        fields = [text.rpartition(")")[2].split() for text in self._read("stat")]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def received(made: socket.socket) -> bytes:
    """Return everything that comes until the server closes, or is silent."""
    parts = []
    with suppress(OSError):
        while part := made.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def request(*lines: str, path: str = "/x", method: str = "POST", body: bytes = b"") -> bytes:
    """Return a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode() + body


# --- the cases: each returns a finding, and whether it is wanted ------------------------------------------------------------------

EVIL = b"\r\n" * 40 + b"DELETE /evil HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = ("Connection: Upgrade", "Upgrade: foo")
Finding = tuple[str, bool]


def exchanged(server: Server, *segments: bytes) -> tuple[list[int], list[list[object]]]:
    """Send segments, and return the statuses of the answers, and the calls of the application."""
    before = len(server.calls())
    with server.connected() as made:
        for segment in segments:
            with suppress(OSError):
                made.sendall(segment)
            time.sleep(0.1)
        statuses = [int(each) for each in re.findall(rb"HTTP/1\.[01] (\d+)", received(made))]
    return statuses, server.calls()[before:]


def whole(server: Server, *segments: bytes, size: int) -> Finding:
    """Say whether a body arrives whole, or its request is refused; another call must not be made of it."""
    statuses, calls = exchanged(server, *segments)
    if any(path == "/evil" for _, path, _ in calls):
        return "smuggled", False
    if any(got != size for _, _, got in calls):
        return "body lost", False
    return ("read", True) if calls else (f"refused: {statuses[0] if statuses else 'closed'}", True)


def refused(server: Server, data: bytes) -> Finding:
    """Say whether a request is refused before the application sees it."""
    statuses, calls = exchanged(server, data)
    return ("accepted", False) if calls else (f"refused: {statuses[0] if statuses else 'closed'}", True)


def upgrade_once(server: Server) -> Finding:
    """Send an upgrade with its body in one segment."""
    return whole(server, request(*UPGRADE, f"Content-Length: {len(EVIL)}", body=EVIL), size=len(EVIL))


def upgrade_twice(server: Server) -> Finding:
    """Send an upgrade, then its body."""
    return whole(server, request(*UPGRADE, f"Content-Length: {len(EVIL)}"), EVIL, size=len(EVIL))


def upgrade_chunked(server: Server) -> Finding:
    """Send an upgrade with a chunked body."""
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVIL), EVIL)
    return whole(server, request(*UPGRADE, "Transfer-Encoding: chunked", body=body), size=len(EVIL))


def two_lengths(server: Server) -> Finding:
    """Send a length and chunks."""
    return refused(server, request("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"))


def bare_line_feeds(server: Server) -> Finding:
    """End lines with LF alone."""
    return refused(server, b"POST /x HTTP/1.1\nHost: x\nContent-Length: 0\n\n")


def connect(server: Server) -> Finding:
    """Send CONNECT with a path."""
    return refused(server, request(method="CONNECT", path="/x"))


def endless(server: Server, start: bytes, size: int) -> Finding:
    """Send something without end, and say when the server stops reading."""
    before, sent = server.memory, 0
    piece = b"a: b\r\n" * 10_000
    with server.connected() as made:
        try:
            made.sendall(start)
            while sent < size:
                made.sendall(piece)
                sent += len(piece)
        except OSError:
            return "closed", True
        time.sleep(0.3)
        grown = server.memory - before
        return f"{sent / MIB:.0f} MiB read, +{max(0.0, grown):.0f} MB", False


def endless_head(server: Server) -> Finding:
    """Send headers without end."""
    return endless(server, b"POST /x HTTP/1.1\r\nHost: x\r\n", 16 * MIB)


def endless_trailers(server: Server) -> Finding:
    """Send trailers without end."""
    return endless(server, request("Transfer-Encoding: chunked", body=b"0\r\n"), 16 * MIB)


def unread(server: Server) -> Finding:
    """Ask for 200 answers of 1 MiB, and read none."""
    before = server.memory
    with server.connected() as made:
        for _ in range(25):
            with suppress(OSError):
                made.sendall(request(path="/large", method="GET") * 8)
            time.sleep(0.05)
        time.sleep(0.5)
        grown = server.memory - before
    return f"+{max(0.0, grown):.0f} MB", grown < 50


def refused_but_sending(server: Server) -> Finding:
    """Be answered 401 before the body is sent, and send a byte every half second."""
    with server.connected() as made:
        made.sendall(request("Content-Length: 100000", path="/refuse"))
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 8.0:
                made.sendall(b"x")
                time.sleep(0.5)
        except OSError:
            return f"closed after {time.monotonic() - begin:.0f} s", True
    return "open after 8 s", False


def malformed_later(server: Server) -> Finding:
    """Send a slow call and then nonsense: the answer to the call must come first."""
    statuses, _ = exchanged(server, request(path="/slow", method="GET") + b"nonsense\r\n\r\n")
    return ("in order", True) if statuses[:1] == [200] else (f"{statuses[0] if statuses else 'nothing'} first", False)


def half_closed(server: Server) -> Finding:
    """Close the sending half after a call, as `nc -N` does."""
    with server.connected() as made:
        made.sendall(request(path="/slow", method="GET"))
        made.shutdown(socket.SHUT_WR)
        return ("answered", True) if b" 200 " in received(made) else ("no answer", False)


CASES: dict[str, Callable[[Server], Finding]] = {
    "upgrade with a body, one segment": upgrade_once,
    "upgrade with a body, two segments": upgrade_twice,
    "upgrade with chunks": upgrade_chunked,
    "a length and chunks": two_lengths,
    "lines that end with LF": bare_line_feeds,
    "CONNECT with a path": connect,
    "16 MiB of headers": endless_head,
    "16 MiB of trailers": endless_trailers,
    "200 MiB of answers, unread": unread,
    "401, then a byte every 0.5 s": refused_but_sending,
    "a slow call, then nonsense": malformed_later,
    "a call, then half closed": half_closed,
}


# --- the run ----------------------------------------------------------------------------------------------------------------------


def cost(server: Server) -> float:
    """Return the processor time per request, in seconds, on connections that are kept."""
    data = head("POST", "/fast") % 40 + b"x" * 40
    clients: list[Client] = [lambda _: data for _ in range(CONNECTIONS)]
    before = server.processor
    requests = run([server.port], clients, SECONDS).requests
    return (server.processor - before) / requests


def judged(case: Callable[[Server], Finding], command: list[str], folder: Path) -> Finding:
    """Try a case on a new server, whose memory no other case has used."""
    server = Server(command, folder)
    try:
        return case(server)
    finally:
        server.stop()


@contextmanager
def started(folder: Path) -> Iterator[dict[str, Server]]:
    """Run all servers."""
    servers: dict[str, Server] = {}
    try:
        for name, command in SERVERS.items():
            servers[name] = Server(command, folder)
        yield servers
    finally:
        for server in servers.values():
            server.stop()


def page(costs: dict[str, float], findings: dict[str, list[Finding]], versions: str, seconds: float) -> str:
    """Write the page."""
    short = [name.partition(" (")[0] for name in SERVERS]
    lines = [
        ["processor time per request, relative to ours", *(f"{costs[name] / costs[OURS]:.1f}" for name in SERVERS)]
    ]
    for case in CASES:
        found = [findings[name][list(CASES).index(case)] for name in SERVERS]
        lines.append([case, *(text if wanted else f"**{text}**" for text, wanted in found)])
    lines.append(["not wanted", *(str(sum(not wanted for _, wanted in findings[name])) for name in SERVERS)])
    day = datetime.now(tz=UTC).date().isoformat()
    intro = (
        f"Written by `python benchmarks/front.py` on {day} in {seconds:.0f} seconds, on {os.cpu_count()} shared cores "
        f"({processor_name()}, {platform.system()}, Python {platform.python_version()}; {versions})."
    )
    words = (
        "**Bold** is what we do not want: *smuggled* (a part of a body became a call), *body lost*, memory or a connection that a "
        "client without a key can take, or a wrong or missing answer. Proxies may divide *accepted* requests in another way."
    )
    notes = (
        "All servers run the same small application with uvloop and one worker. The processor time of all threads is the median of "
        f"{ROUNDS} rounds in turn, at {CONNECTIONS} connections that are kept; ours takes {costs[OURS] * 1e6:.0f} us per request."
    )
    question = "What HTTP servers cost per request, and what they make of hostile requests."
    texts = map(filled, (words, notes, intro))
    parts = ["# The HTTP front", question, table(["", *short], lines, 1), *texts]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run everything, and write the page."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", name]
        subprocess.run([*pip, *OTHERS], check=True)
        found = {each.metadata["Name"].lower(): each.version for each in distributions(path=[name])}
        versions = ", ".join(f"{each} {found[each]}" for each in OTHERS)
        versions += f", httptools {version('httptools')}, h11 {found['h11']}"
        with started(folder) as servers:
            for server in servers.values():
                cost(server)
            rounds = [{each: cost(server) for each, server in servers.items()} for _ in range(ROUNDS)]
        findings = {}
        for each, command in SERVERS.items():
            findings[each] = [judged(case, command, folder) for case in CASES.values()]
            print(each, *findings[each], sep="\n  ", file=sys.stderr)
        costs = {each: statistics.median(one[each] for one in rounds) for each in SERVERS}
    PAGE.write_text(page(costs, findings, versions, time.perf_counter() - begin))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
