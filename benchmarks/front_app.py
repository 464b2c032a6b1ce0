"""The application of ``front.py``, in plain ASGI, and a server that runs it with Robandit's own connections.

It reads the body and answers with a few bytes. ``/refuse`` answers 401 without reading, ``/large`` has 1 MiB, ``/slow`` waits, and
``/calls`` lists the calls so far.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

calls: list[list[Any]] = []
LARGE = bytes(1 << 20)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a call."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    path = scope["raw_path"].partition(b"?")[0].decode()
    status, size = 200, 0
    if path == "/refuse":
        status = 401
    else:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
    if path == "/calls":
        body = json.dumps(calls).encode()
    else:
        body = LARGE if path == "/large" else b'{"arm":"eu"}'
        if path != "/fast":
            calls.append([scope["method"], path, size])
    if path == "/slow":
        await asyncio.sleep(0.2)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve(port: int) -> None:
    """Serve with `robandit.service.connection`, without the decision service."""
    from robandit.service.connection import Connection, Connections

    loop = asyncio.get_running_loop()
    connections = Connections(app, 1_000)
    listener = socket.create_server(("127.0.0.1", port))
    await loop.create_server(lambda: Connection(connections, loop), sock=listener)
    while True:
        connections.tick(loop.time())
        await asyncio.sleep(1.0)


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
