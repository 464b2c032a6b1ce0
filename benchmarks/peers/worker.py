"""One peer in a process of its own: ``python worker.py MODULE``. Answers questions on standard input with JSON, one line each.

So all peers stay loaded, and are measured in turns, one at a time. A module offers ``ACTIONS``: name -> (call, rounds in a call).
The unit is processor time.
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
    """Repeat the call until it took the least time; the garbage of others is not ours to collect."""
    calls, result = 0, None
    start = time.process_time()
    while True:
        result = call()
        calls += 1
        took = time.process_time() - start
        if took >= least:
            break
    answer = {"seconds": took / calls, "rate": rounds * calls / took}
    return answer if result is None else answer | {"result": result}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # peers talk
    os.dup2(quiet, 2)

    def answer(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
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
