"""A web server on loopback, in a thread, that gives prepared answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Reply:
    """An answer. ``framing`` is how its end is marked; a cut one lacks its last 5 bytes, or the last chunk."""

    body: bytes = b""
    kind: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["length", "chunked", "cut length", "cut chunk", "cut chunks", "close", "silence"] = "length"

    @classmethod
    def problem(cls, status: int, /, **fields: object) -> Reply:
        return cls(json.dumps(fields).encode(), PROBLEM, status)


@dataclass
class Server:
    """`requests` has the path, with its query, and the headers of each request."""

    url: str
    replies: dict[str, Reply]
    requests: list[tuple[str, dict[str, str]]]

    @property
    def keys(self) -> list[str | None]:
        return [headers.get("authorization") for _, headers in self.requests]


@contextmanager
def served(replies: Mapping[str, Reply] | None = None) -> Iterator[Server]:
    """Serve these replies by path, without the query; any other path is 404."""
    stop = threading.Event()
    seen = Server("", dict(replies or {}), [])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            missing = Reply.problem(404, title="Not Found", detail="no such experiment")
            reply = seen.replies.get(self.path.partition("?")[0], missing)
            self.close_connection = True
            if reply.framing == "silence" and not reply.body:
                stop.wait(10)
                return
            self.send_response(reply.status)
            for name, value in {"content-type": reply.kind, **reply.headers}.items():
                if value:
                    self.send_header(name, value)
            chunked = "chunk" in reply.framing
            if chunked:
                self.send_header("transfer-encoding", "chunked")
            elif reply.framing != "close":
                self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            body = reply.body[:-5] if "cut" in reply.framing or reply.framing == "silence" else reply.body
            if chunked and reply.body:
                size = len(reply.body if reply.framing == "cut chunk" else body)
                body = b"%x\r\n%b" % (size, body) + (b"" if reply.framing == "cut chunk" else b"\r\n")
            self.wfile.write(body + b"0\r\n\r\n" * (reply.framing == "chunked"))
            self.wfile.flush()
            if reply.framing == "silence":
                stop.wait(10)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
