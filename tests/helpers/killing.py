"""Copies and archives of stores in processes that kill themselves before one of their steps.

One process imports everything, and forks for each call, because an import takes longer than the call.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import itertools, os, signal, sys
from pathlib import Path
from robandit.decisions import archiving, moving
from robandit.storage import open_store, postgres, sqlite

TIDIED_ROWS = 7  # several steps

def counted(place, name, left):
    real = getattr(place, name)
    def step(*arguments, **options):
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    setattr(place, name, step)

def prepare(step):
    left = itertools.count(step, -1)
    for kind in (sqlite.SqliteStore, postgres.PostgresStore):
        for name in ("commit", "tidy", "publish"):
            counted(kind, name, left)
    for name in ("_frame", "flush", "_check"):
        counted(archiving, name, left)
    counted(moving, "_compare", left)
    counted(Path, "rename", left)
    sqlite.TIDIED_ROWS = postgres.TIDIED_ROWS = TIDIED_ROWS

def archive(location, folder, before):
    store = open_store(location, durability="off")
    for _ in archiving.archive(store, Path(folder), float(before)):
        pass
    store.close()

def move(source, target):
    store = open_store(source, durability="off")
    moving.move(store, lambda: open_store(target, new=True), lambda done, total: None)
    store.close()

for line in sys.stdin:
    command, step, *arguments = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        try:
            prepare(int(step))
            globals()[command](*arguments)
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Killing:
    """Runs calls that may be killed. Use it with ``with``."""

    def __enter__(self) -> Killing:
        command = [sys.executable, "-c", SCRIPT]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def _ended(self, *words: object) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        assert code in (0, -9), f"the call failed with code {code}"
        return code == 0

    def archive(self, step: int, location: str, folder: Path, before: float) -> bool:
        """Archive events before a time, unless it is killed before this step. Return whether it came to its end."""
        return self._ended("archive", step, location, folder, before)

    def move(self, step: int, source: str, target: str) -> bool:
        """Copy a store, unless it is killed before this step. Return whether it came to its end."""
        return self._ended("move", step, source, target)
