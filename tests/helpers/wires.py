"""A connection of the decision service without a network, and an application that records its calls."""

import asyncio
import re

from robandit.service.connection import MOST_PIPELINED, Connection, Connections


class Transport:
    """Collects what is written."""

    def __init__(self):
        self.written = b""
        self.closed = False
        self.ended = False
        self.reading = True
        self.on_write = None
        self.unsent = 0

    def write(self, data):
        assert not self.closed
        assert not self.ended
        self.written += data
        if self.on_write is not None:
            self.on_write()

    def write_eof(self):
        self.ended = True

    def close(self):
        self.closed = True

    abort = close

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        assert self.reading
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True


class Wire:
    """A connection to an application that reads the body, records the call and answers with its number."""

    def __init__(self, *, reads=True):
        self.calls = []
        self.unfinished = 0
        self.reads = reads

    async def app(self, scope, receive, send):
        body = b""
        while self.reads:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.unfinished += 1
                return
            body += message["body"]
            if not message["more_body"]:
                break
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        self.calls.append((scope["method"], target, body))
        self.headers = dict(scope["headers"])
        answer = str(len(self.calls)).encode()
        headers = [(b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def feed(self, *segments):
        """Feed segments, each in a turn of the loop; a closed connection gets no more. Return the statuses."""

        async def run():
            loop = asyncio.get_running_loop()
            self.transport = Transport()
            connection = Connection(Connections(self.app, 100), loop)
            connection.connection_made(self.transport)
            for segment in segments:
                if not self.transport.closed:
                    connection.data_received(segment)
                    for _ in range(4):
                        await asyncio.sleep(0)
            for _ in range(5 * MOST_PIPELINED):
                await asyncio.sleep(0)
            self.is_open = not (self.transport.closed or self.transport.ended)
            connection.connection_lost(None)
            for _ in range(4):
                await asyncio.sleep(0)

        asyncio.run(run())
        return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", self.transport.written)]


def request(*lines, body=b"", method="POST", path="/x", version="1.1", host=True):
    head = [f"{method} {path} HTTP/{version}", *(["Host: x"] if host else []), *lines, "", ""]
    return "\r\n".join(head).encode() + body
