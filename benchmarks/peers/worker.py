"""Run one peer in a separate process: ``python worker.py MODULE``. Reads requests and writes answers as JSON lines.

All peers stay loaded and are measured in turn. A module defines ``ACTIONS``: name -> (call, rounds per call). Times are processor
times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any


def measured(call: Any, rounds: int, least: float) -> dict[str, float]:
    """Repeat the call for at least ``least`` seconds; returns seconds per call, rounds per second and the last result."""
    calls, result = 0, None
    start = time.process_time()
    while True:
        result = call()
        calls += 1
        seconds = time.process_time() - start
        if seconds >= least:
            break
    answer = {"seconds": seconds / calls, "rate": rounds * calls / seconds}
    return answer if result is None else answer | {"result": result}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # peers print
    os.dup2(quiet, 2)

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        module = import_module(sys.argv[1])
        answer({"versions": {name: version(name) for name in module.PACKAGES}, "facts": getattr(module, "FACTS", {})})
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    for line in sys.stdin:
        name, least = json.loads(line)
        try:
            call, rounds = module.ACTIONS[name]
            answer(measured(call, rounds, least))
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
