"""Temporary environments for peers, and the processes that run in them."""

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
INSTALL_TIMEOUT = 420.0  # seconds


def install(peer: str, folder: Path) -> str:
    """Create an environment with only the peer's pinned packages; returns the error, or an empty string."""
    target = folder / peer
    # The pins list all imported packages, so that environments are reproducible; nothing is built from source.
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
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT)
    except subprocess.CalledProcessError as error:
        errors = [line for line in str(error.stderr).splitlines() if line.startswith("ERROR")]
        return f"cannot be installed: {errors[-1] if errors else error}"
    except subprocess.TimeoutExpired:
        return f"cannot be installed: timeout after {INSTALL_TIMEOUT:g} s"
    return ""


def python(folder: Path, peer: str) -> Path:
    """Return the path of the interpreter in a peer's environment."""
    return folder / peer / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


class Worker:
    """A process that runs one peer's actions; ``failure`` is the reason if it cannot."""

    def __init__(self, interpreter: Path | str, module: str, **environment: str) -> None:
        inherited = {k: v for k, v in os.environ.items() if interpreter == sys.executable or k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [str(interpreter), str(HERE / "worker.py"), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=inherited | ONE_THREAD | environment,
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
        """Repeat an action for at least ``least`` seconds; returns seconds per call, rounds per second and the result."""
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
