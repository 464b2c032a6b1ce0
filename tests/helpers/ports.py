"""Free ports on loopback for servers that tests stop and start again."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses.

    It lies below the ports that systems give to outgoing connections. Otherwise, while the server is down, a client that tries to
    connect could be given this very port and connect to itself; then the server could not start again.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
