"""Reads and writes files: a write either completes or changes nothing, and sealed files carry a checksum."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from robandit.errors import CorruptFile, FileError, NewerFile
from robandit.validation import invalid
from robandit.wording import visible

SEAL = b"robandit-sha256:"
UNSEALED = SEAL + b"0" * 64
"""The placeholder of the checksum, for formats without one. Damaged Parquet files would be read as other numbers."""
MOST_BYTES = 4 << 30
"""The size of the largest file that is read into memory."""
STALE = 3600.0
"""The age in seconds from which on a temporary file was left by a killed process. No write takes so long."""
TEMPORARY = re.compile(r"\..+\.[0-9a-f]+-[0-9a-f]{8}\.part")
LONGEST = 150  # bytes of the target's name in the name of a temporary file; file systems allow 255 in all


def sealed(content: bytes) -> bytes:
    """Return the content with its checksum in place of `UNSEALED`."""
    return content.replace(UNSEALED, SEAL + hashlib.sha256(content).hexdigest().encode())


def named(path: str | os.PathLike[str], parameter: str = "path", rule: str = "the name of a file") -> Path:
    """Return the path of a file or folder, or raise `InvalidInput` if it cannot be one."""
    problem = None
    if isinstance(path, (str, os.PathLike)):
        try:
            name = os.fspath(path)
            if isinstance(name, str) and b"\0" not in os.fsencode(name):
                return Path(name)
        except UnicodeEncodeError as error:  # a lone surrogate
            problem = error
    raise invalid(parameter, path, rule, hint="pass a string or a Path") from problem


def shown(path: object) -> str:
    """Return a path for a message: printable, and at most 200 characters."""
    text = visible(str(path))
    return text if len(text) <= 200 else f"{text[:90]} ... {text[-90:]}"


def reason(error: OSError | RuntimeError) -> str:
    """Return why a path cannot be used. Python before 3.13 raises RuntimeError for a loop of symbolic links."""
    return getattr(error, "strerror", None) or visible(str(error))[:200]


def way_out(error: OSError | RuntimeError) -> str:
    """Return the end of a message about a file that cannot be read: the advice to check the path if there is no such file."""
    return "; check the path" if isinstance(error, (FileNotFoundError, NotADirectoryError)) else ""


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, or raise `FileError`. Devices, pipes and huge files are rejected."""
    source = named(path)
    try:
        facts = os.stat(source)
        if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):  # opening a folder raises a good error
            raise FileError(f"{shown(source)} cannot be read: it is a device or a pipe, not a file; name a file")
        with open(source, "rb") as file:
            if facts.st_size > MOST_BYTES:
                raise FileError(f"{shown(source)} cannot be read: it has more than {MOST_BYTES >> 30} GB")
            return file.read()
    except (OSError, RuntimeError) as error:
        raise FileError(f"{shown(source)} cannot be read: {reason(error)}{way_out(error)}") from error


def read_sealed(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a sealed file, after checking its checksum."""
    content = read(path)
    check_seal(content, path)
    return content


def check_seal(content: bytes, source: object) -> None:
    """Raise `CorruptFile` if the checksum of a sealed content is wrong or missing."""
    start = content.rfind(SEAL) + len(SEAL)
    blank = content[:start] + b"0" * 64 + content[start + 64 :]
    if SEAL not in content or hashlib.sha256(blank).hexdigest().encode() != content[start : start + 64]:
        raise CorruptFile(
            f"{shown(source)} is not a result that Robandit wrote, or is damaged: its checksum does not match"
        )


def check_format(version: int, newest: int, where: object) -> None:
    """Raise `NewerFile` if a file has a newer format than this version reads."""
    if version > newest:
        raise NewerFile(f"{shown(where)} has format {version}; this Robandit reads up to {newest}: upgrade robandit")


def write_atomically(path: str | os.PathLike[str], content: bytes, *, closed: bool = False) -> None:
    """Write a file under another name in the same folder, flush it to the disk, and move it into place.

    If anything fails (for example a full disk), the old file is untouched and no partial file is left. Several processes may write
    the same file at once. A symbolic link is kept and its target replaced; a device or a pipe is rejected. ``closed``: only this
    user may write the file, whatever the umask. The files that killed processes left are removed after `STALE` seconds.
    """
    target = named(path)
    try:
        target = target.resolve()
        if target.exists() and not target.is_file():
            raise FileError(f"{shown(target)} cannot be written: it is not a file; pass the name of a file")
        _sweep(target.parent)
        start = os.fsdecode(os.fsencode(target.name)[:LONGEST])
        temporary = target.with_name(f".{start}.{os.getpid():x}-{secrets.token_hex(4)}.part")
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, _mode(target) & (0o755 if closed else 0o777))
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        message = f"{shown(target)} cannot be written: {reason(error)}; the old file, if any, is unchanged"
        raise FileError(message) from error


@cache  # a process sweeps a folder once, at its first write
def _sweep(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder."""
    with suppress(OSError):  # such as a folder that cannot be listed; the file may be writable nevertheless
        for entry in os.scandir(folder):
            if TEMPORARY.fullmatch(entry.name) and entry.is_file() and entry.stat().st_mtime < time.time() - STALE:
                os.unlink(entry.path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def flush(path: str | os.PathLike[str]) -> None:
    """Flush a file or a folder to the disk. A folder makes the names of new files in it durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: Path) -> None:
    """Raise `FileError` if no file can be written here. Call it before long work whose result would be lost."""
    try:
        path = named(path)
        if not path.absolute().parent.is_dir():
            folder = shown(path.absolute().parent)
            raise FileError(f"{shown(path)} cannot be written: the folder {folder} does not exist; make it first")
        if path.is_dir():
            raise FileError(f"{shown(path)} cannot be written: it is a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise FileError(f"{shown(path)} cannot be written: it is not a file; name a file")
        path.resolve()  # raises for a loop of symbolic links
    except (OSError, RuntimeError) as error:
        raise FileError(f"{shown(path)} cannot be written: {reason(error)}") from error


def check_folder(path: Path) -> None:
    """Raise `FileError` unless this is a folder, or can become one."""
    try:
        if path.is_file():
            raise FileError(f"{shown(path)} is a file: name a folder")
        if path.is_dir():
            return
    except OSError as error:
        raise FileError(f"{shown(path)} cannot be used: {reason(error)}; name another folder") from error
    check_writable(path)


def _mode(target: Path) -> int:
    """Return the permissions of the file to be replaced, or the default ones of a new file (temporary ones are private)."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
