"""Reads and writes files: a write either completes or changes nothing, and sealed files carry a checksum."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from robandit.errors import CorruptFile, FileError, NewerFile
from robandit.validation import invalid

SEAL = b"robandit-sha256:"
UNSEALED = SEAL + b"0" * 64
"""The placeholder of the checksum, for formats without one. Damaged Parquet files would be read as other numbers."""


def sealed(content: bytes) -> bytes:
    """Return the content with its checksum in place of `UNSEALED`."""
    return content.replace(UNSEALED, SEAL + hashlib.sha256(content).hexdigest().encode())


def named(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, or raise `InvalidInput` if it cannot be one."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise invalid("path", path, "the name of a file", hint="pass a string or a Path")
    return Path(path)


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, or raise `FileError`."""
    source = named(path)
    try:
        return source.read_bytes()
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror}") from error


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
        raise CorruptFile(f"{source} is not a result that Robandit wrote, or is damaged: its checksum does not match")


def check_format(version: int, newest: int, where: object) -> None:
    """Raise `NewerFile` if a file has a newer format than this version reads."""
    if version > newest:
        raise NewerFile(f"{where} has format {version}; this Robandit reads up to {newest}: upgrade robandit")


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, modified: float | None = None, closed: bool = False
) -> None:
    """Write a file under another name in the same folder, flush it to the disk, and move it into place.

    If anything fails (for example a full disk), the old file is untouched and no partial file is left. Several processes may write
    the same file at once. A symbolic link is kept and its target replaced; a device or a pipe is rejected. ``modified`` sets the
    modification time of the new file, in seconds since 1970. ``closed``: only this user may write the file, whatever the umask.
    """
    target = named(path).resolve()
    if target.exists() and not target.is_file():
        raise FileError(f"{target} cannot be written: it is not a file; pass the name of a file")
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target) & (0o755 if closed else 0o777))
        if modified is not None:
            os.utime(temporary, (modified, modified))
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        reason = error.strerror or error
        raise FileError(f"{target} cannot be written: {reason}; the old file, if any, is unchanged") from error


def check_writable(path: Path) -> None:
    """Raise `FileError` if no file can be written here. Call it before long work whose result would be lost."""
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.absolute().parent} does not exist; make it first")
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder; name a file in it")


def check_folder(path: Path | None) -> None:
    """Raise `FileError` unless this is a folder, or can become one; None is accepted."""
    if path is not None and path.is_file():
        raise FileError(f"{path} is a file: name a folder")
    if path is not None and not path.is_dir():
        check_writable(path)


def _mode(target: Path) -> int:
    """Return the permissions of the file to be replaced, or the default ones of a new file (mkstemp's are private)."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
