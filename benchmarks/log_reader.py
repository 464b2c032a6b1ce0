"""Read an experiment and its newest events again and again, until SIGTERM: ``python benchmarks/log_reader.py PORT NAME KEY``.

Part of ``make bench-service``.
"""

from __future__ import annotations

import http.client
import json
import sys

EVENTS = 100


def main(port: str, name: str, key: str) -> None:
    """Read on one connection, without a pause."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)

    def read(path: str) -> bytes:
        connection.request("GET", f"/v1/experiments/{name}{path}", headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path} was answered with {answer.status}")
        return answer.read()

    while True:
        seq = json.loads(read(""))["seq"]
        read(f"/log?after={max(0, seq - EVENTS)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
