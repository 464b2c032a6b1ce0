"""Disks for tests: one that fails (`Disk`, below SQLite), and one that is really full or read-only (`mounted`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw


class Disk:
    """While it is in use (``with``), all SQLite files are written through it.

    It counts writes, and fails from the write with the number ``fail_at`` on: that one writes only the first half of its bytes. It
    also knows what of each file was flushed: `after_power_loss` copies that to a folder, as if the machine had lost its power.
    """

    def __init__(self, error: type[apsw.Error] = apsw.FullError) -> None:
        self.error = error
        self.writes = 0
        self.flushes = 0
        self.fail_at: int | None = None
        self.fail_flush_at: int | None = None
        self.flushed: dict[str, bytes] = {}
        """The content of each file when it was flushed last."""

    def __enter__(self) -> Disk:
        self._name = f"disk{id(self)}"
        self._base = apsw.vfs_names()[0]
        disk = self

        class File(apsw.VFSFile):
            def __init__(self, name: Any, flags: Any) -> None:
                self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
                super().__init__(disk._base, name, flags)

            def xWrite(self, data: bytes, offset: int) -> None:
                disk.writes += 1
                if disk.fail_at is not None and disk.writes >= disk.fail_at:
                    if disk.writes == disk.fail_at:
                        super().xWrite(bytes(data)[: len(data) // 2], offset)
                    raise disk.error("the disk of the test fails")
                super().xWrite(data, offset)

            def xSync(self, flags: int) -> None:
                disk.flushes += 1
                if disk.fail_flush_at is not None and disk.flushes >= disk.fail_flush_at:
                    raise disk.error("the disk of the test fails")
                super().xSync(flags)
                disk.flushed[str(self.path)] = Path(str(self.path)).read_bytes()

        class System(apsw.VFS):
            def __init__(self) -> None:
                super().__init__(disk._name, disk._base, makedefault=True)

            def xOpen(self, name: Any, flags: Any) -> File:
                return File(name, flags)

            def xDelete(self, name: str, syncdir: bool) -> None:
                disk.flushed.pop(name, None)
                super().xDelete(name, syncdir)

        self._system = System()
        return self

    def __exit__(self, *_: object) -> None:
        apsw.set_default_vfs(self._base)
        self._system.unregister()

    def after_power_loss(self, folder: Path) -> Path:
        """Write what was flushed to a folder. Return the path of the database there."""
        folder.mkdir()
        database = ""
        for path, content in self.flushed.items():
            name = os.path.basename(path)
            (folder / name).write_bytes(content)
            if name.endswith(".db"):
                database = name
        return folder / database


def mounted(folder: Path, options: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run Python code in a process that sees a new file system in memory at a folder. None if this system does not allow it.

    ``options`` are those of ``mount -t tmpfs``. Nobody else sees the file system, and it ends with the process.
    """
    if sys.platform != "linux":
        return None
    mount = f'mount -t tmpfs -o {options} none "$1" || exit 97; shift; exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(folder)]
    try:
        result = subprocess.run(
            [*command, sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=120
        )
    except FileNotFoundError:
        return None
    refused = result.returncode == 97 or "unshare:" in result.stderr
    return None if refused else result
