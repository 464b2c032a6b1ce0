"""A small service of allocations and observations, with faults: what `robandit serve` promises to edges, in a hundred lines.

`Experiment` is what the service knows, and survives a restart of `EdgeService`, which is a web server in a thread.
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ("lost", "refused", "broken", "slow")
"""The answer is lost after the call was obeyed; a 503 before it; a 503 of a proxy after it; an answer that takes a while."""


class Experiment:
    """Allocations, and what came of their decisions, each id once."""

    def __init__(self, probabilities: dict[str, float]) -> None:
        self.name = "exp"
        self.lock = threading.Lock()
        self.allocations: dict[str, dict[str, float]] = {}
        self.items: dict[str, dict] = {}
        """By id: everything that was accepted."""
        self.replayed = 0
        self.state = "active"
        self.valid_for = 60.0
        self.reward_window: float | None = None
        self.new_version(probabilities)

    def new_version(self, probabilities: dict[str, float]) -> None:
        """Make another allocation."""
        with self.lock:
            self.version = f"v{random.SystemRandom().getrandbits(40):x}"
            self.allocations[self.version] = dict(probabilities)

    def reset(self, probabilities: dict[str, float]) -> None:
        """Forget all allocations, as after DELETE and a new experiment of the same name."""
        self.allocations.clear()
        self.new_version(probabilities)

    def allocation(self) -> dict:
        current = self.allocations[self.version]
        return {
            "experiment": self.name,
            "version": self.version,
            "arms": list(current),
            "probabilities": list(current.values()),
            "valid_for": self.valid_for,
            "made": time.time(),
            "decisions": 1_000,
            "reward_window": self.reward_window,
        }

    def observe(self, items: list[dict]) -> dict:
        """Take a batch. Bad items are refused by name; the rest is kept."""
        counts: Counter[str] = Counter(learned=0, late=0, expired=0, replayed=0)
        refused = []
        with self.lock:
            for i, item in enumerate(items):
                content = {name: item.get(name) for name in ("arm", "propensity", "allocation", "value", "expired")}
                known = self.items.get(item["id"])
                code = self._problem(item) if known is None else "conflict" if known != content else None
                if code is not None:
                    problem = {"title": "Refused", "status": 409, "detail": f"{item['id']} is refused", "code": code}
                    refused.append({"index": i, "problem": problem})
                elif known is not None:
                    counts["replayed"] += 1
                    self.replayed += 1
                else:
                    self.items[item["id"]] = content
                    counts["expired" if item.get("expired") else "learned"] += 1
        return {**counts, "refused": refused}

    def _problem(self, item: dict) -> str | None:
        current = self.allocations.get(item["allocation"])
        if not re.fullmatch(r"[a-z0-9]{8,16}-(0|[1-9][0-9]*)", item["id"]):
            return "invalid"
        if current is None:
            return "unknown-allocation"
        if item["arm"] not in current:
            return "unknown-arm"
        return None if item["propensity"] == current[item["arm"]] else "propensity"


class EdgeService:
    """Serves an experiment on a port. Use it with ``with``. ``share`` of the calls have one of the faults."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        port: int = 0,
        seed: int = 0,
        share: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
    ) -> None:
        self.experiment = experiment
        self.share = share
        self.made: Counter[str] = Counter()
        self.calls: Counter[tuple[str, int]] = Counter()
        """Calls by their kind (GET or POST) and status."""
        self.bodies: list[bytes] = []
        self.keys: set[str | None] = set()
        self.queries: set[str] = set()
        self.key: str | None = None
        """If given, other keys may fetch allocations, and not send observations."""
        chance, stop = random.Random(seed), threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def setup(self) -> None:
                super().setup()
                service._open.add(self.connection)

            def finish(self) -> None:
                service._open.discard(self.connection)
                super().finish()

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                service.queries.add(query)
                service.keys.add(self.headers.get("authorization"))
                experiment = service.experiment
                if path != f"/v1/experiments/{experiment.name}/allocation":
                    self.answer(
                        404, {"title": "Not Found", "detail": "no such experiment", "code": "unknown-experiment"}
                    )
                elif experiment.state == "paused":
                    self.answer(409, {"title": "Conflict", "detail": "the experiment is paused", "code": "paused"})
                elif self.headers.get("if-none-match") == f'"{experiment.version}"':
                    self.answer(304, None)
                else:
                    self.answer(200, experiment.allocation())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                service.bodies.append(body)
                fault = chance.choice(faults) if chance.random() < service.share else ""
                if service.key is not None and self.headers.get("authorization") != f"Bearer {service.key}":
                    self.answer(403, {"title": "Forbidden", "detail": "the key lacks a scope", "code": "forbidden"})
                elif fault == "refused":
                    service.made[fault] += 1
                    self.answer(503, {"title": "Unavailable", "detail": "try later", "code": "unavailable"})
                else:
                    self.observe(body, fault)

            def observe(self, body: bytes, fault: str) -> None:
                try:
                    found = service.experiment.observe(json.loads(body)["items"])
                except ValueError as error:
                    self.answer(413, {"title": "Too large", "detail": str(error), "code": "too-large"}, fault)
                else:
                    self.answer(200, found, fault)

            def answer(self, status: int, content: dict | None, fault: str | None = None) -> None:
                if fault is None:  # of a call that has no fault yet
                    fault = chance.choice(faults) if chance.random() < service.share else ""
                if fault:
                    service.made[fault] += 1
                if fault == "slow":
                    stop.wait(0.05)
                if fault == "lost":
                    self.close_connection = True
                    return
                if fault in ("broken", "refused") and status < 400:
                    status, content = 503, None
                service.calls[self.command, status] += 1
                raw = b"" if content is None else json.dumps(content).encode()
                self.send_response(status)
                kind = "application/json" if status < 400 else "application/problem+json" if content else "text/html"
                self.send_header("content-type", kind)
                if status != 304:
                    self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """The client hung up, or was killed."""

        self._stop = stop
        self._open: set[socket.socket] = set()
        self._server = Quiet(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> EdgeService:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        for connection in list(self._open):  # otherwise it would go on to answer on them
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
