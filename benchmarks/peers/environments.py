"""Throw-away environments for peers, and the processes that run in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
POOLS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in POOLS} | {"POLARS_MAX_THREADS": "1"}
PATIENCE = 420.0  # seconds for one installation


def install(peer: str, folder: Path) -> str:
    """A new environment with the peer's pinned packages, and nothing else; what went wrong, or nothing."""
    target = folder / peer
    # Pins name all packages that are imported, so that an environment is the same tomorrow; none is built from source.
    pip = [sys.executable, "-m", "pip", "--python", str(python(folder, peer)), "--disable-pip-version-check", "install"]
    options = [
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--only-binary",
        ":all:",
        "-r",
        str(HERE / "pins" / f"{peer}.txt"),
    ]
    try:
        for command in ([sys.executable, "-m", "venv", "--without-pip", str(target)], pip + options):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.CalledProcessError as error:
        said = [line for line in str(error.stderr).splitlines() if line.startswith("ERROR")]
        return f"cannot be installed: {said[-1] if said else error}"
    except subprocess.TimeoutExpired:
        return f"cannot be installed: not done after {PATIENCE:g} s"
    return ""


def python(folder: Path, peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return folder / peer / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


class Worker:
    """A process that answers for one peer; ``failure`` says why it cannot."""

    def __init__(self, interpreter: Path | str, module: str, **environment: str) -> None:
        own = {k: v for k, v in os.environ.items() if interpreter == sys.executable or k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [str(interpreter), str(HERE / "worker.py"), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=own | ONE_THREAD | environment,
        )
        self.failure = ""
        hello = self._read()
        self.failure = f"cannot be imported: {hello['error']}" if "error" in hello else ""
        self.versions: dict[str, str] = hello.get("versions", {})
        self.facts: dict[str, str] = hello.get("facts", {})

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "its process ended"}
        return answer

    def ask(self, action: str, least: float) -> dict[str, Any]:
        """Seconds a call, rounds a second, and the result, of an action that is repeated for the least time."""
        if self.failure:
            return {"error": self.failure}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([action, least]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": "its process ended"}
        return self._read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
