"""The folder of compiled code: where it is, whether it may be trusted, and what is used instead.

Stored code is executed when it is loaded. So the folder must belong to this user or to root, and nobody else may write to it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from robandit.kernel.messages import say

SETTING = "ROBANDIT_CACHE_DIR"
PRIVATE = 0o700
_HINT = f"Set {SETTING} to a folder of your own that you can write."


@dataclass(frozen=True)
class Folder:
    """A folder of compiled code. ``unsafe`` and ``unwritable`` hold the reason, or an empty text."""

    path: Path
    unsafe: str = ""
    unwritable: str = ""


def cache_directory() -> Path:
    """Return the folder of compiled kernels: ``ROBANDIT_CACHE_DIR``, or ``robandit`` in the user's cache folder.

    If it cannot be written, code is still loaded from it, and this process stores new code in a temporary folder. If other users
    can write to it, nothing is loaded from it.
    """
    return configured().path


def configured() -> Folder:
    """Return the configured folder. It is created, and checked once per process."""
    return _checked(os.environ.get(SETTING))


def load_folders() -> list[Path]:
    """Return the folders that code may be loaded from. A message is printed once if the configured one is not safe."""
    folder = configured()
    if folder.unsafe:
        _say(folder, f"is not used: {folder.unsafe}")
        return [_temporary()]
    return [folder.path, _temporary()] if folder.unwritable else [folder.path]


def store_folder() -> Path:
    """Return the folder to store code in. A message is printed once if it is not the configured one."""
    folder = configured()
    if folder.unsafe:
        return _temporary()
    if folder.unwritable:
        _say(folder, f"cannot be written ({folder.unwritable})")
        return _temporary()
    try:
        folder.path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)  # it may be removed while this process runs
    except OSError as error:
        _say(folder, f"cannot be written ({error.strerror})")
        return _temporary()
    return folder.path


def _say(folder: Folder, problem: str) -> None:
    say(f"the cache folder {folder.path} {problem}; compiled code is lost when this process ends. {_HINT}", once=True)


@cache
def _checked(setting: str | None) -> Folder:
    folder = Path(setting or "for this user")
    try:
        # Absolute, because a program may change its working directory.
        folder = (folder if setting else _user_cache() / "robandit").expanduser().absolute()
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder, as in some containers
        if not os.path.isdir(folder):  # Path.is_dir raises an error if a parent cannot be entered
            return Folder(folder, unwritable=getattr(error, "strerror", None) or str(error))
    unsafe = untrusted(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Folder(folder, unsafe)
    except OSError as error:
        return Folder(folder, unsafe, unwritable=error.strerror or str(error))


def untrusted(path: Path | int) -> str:
    """Return why code in a folder or an open file must not be executed, or an empty text."""
    if not hasattr(os, "getuid"):  # Windows: a user's folders are private
        return ""
    facts = os.stat(path)
    if facts.st_uid not in (os.getuid(), 0):
        return f"it belongs to another user (id {facts.st_uid})"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to it (mode {stat.S_IMODE(facts.st_mode):o}; chmod go-w closes it)"
    return ""


@cache
def _temporary() -> Path:
    temporary = Path(tempfile.mkdtemp(prefix="robandit-"))  # private to this user
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child ends, too
            shutil.rmtree(temporary, ignore_errors=True)

    atexit.register(remove)
    return temporary


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
