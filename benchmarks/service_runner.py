"""Serve a store for ``make bench-service``: ``python benchmarks/service_runner.py STORE DURABILITY [PROFILE]``.

Prints the port. DURABILITY is full, relaxed or off. With PROFILE, the thread of the event loop is profiled with cProfile, and the
statistics are written to that file.
"""

from __future__ import annotations

import cProfile
import sys
from functools import partial

from robandit.service.server import listening, serve
from robandit.storage import open_store


def main(location: str, durability: str, profile: str = "") -> None:
    """Serve until SIGTERM."""
    listener = listening("127.0.0.1", 0)
    store = open_store(location, durability=durability)
    announce = partial(print, listener.getsockname()[1], flush=True)
    if not profile:
        serve(store, listener, on_start=announce)
        return
    profiler = cProfile.Profile()
    profiler.runcall(serve, store, listener, on_start=announce)
    profiler.dump_stats(profile)


if __name__ == "__main__":
    main(*sys.argv[1:])
