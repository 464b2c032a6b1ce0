"""Files that are either as they were, or complete."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile

__all__ = [
    "UNSEALED",
    "check_folder",
    "check_format",
    "check_seal",
    "check_writable",
    "named",
    "read_sealed",
    "sealed",
    "write_atomically",
]

SEAL = b"robandit-sha256:"
UNSEALED = SEAL + b"0" * 64
"""What a file holds, once, where its checksum is to stand. For formats without one of their own: damaged Parquet files were read
as other numbers, or made Polars panic."""


def sealed(content: bytes) -> bytes:
    """The content with its checksum in place of `UNSEALED`."""
    return content.replace(UNSEALED, SEAL + hashlib.sha256(content).hexdigest().encode())


def named(path: str | os.PathLike[str]) -> Path:
    """The path that was given, if it can be the name of a file."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise InvalidInput(f"path = {path!r} must be the name of a file: pass a string or a Path")
    return Path(path)


def read_sealed(path: str | os.PathLike[str]) -> bytes:
    """The content of a sealed file whose checksum is right."""
    where = named(path)
    try:
        content = where.read_bytes()
    except OSError as error:
        raise FileError(f"{where} cannot be read: {error.strerror}") from error
    check_seal(content, where)
    return content


def check_seal(content: bytes, where: object) -> None:
    """Refuse a sealed content whose checksum is wrong, or is not there."""
    start = content.rfind(SEAL) + len(SEAL)
    blank = content[:start] + b"0" * 64 + content[start + 64 :]
    if SEAL not in content or hashlib.sha256(blank).hexdigest().encode() != content[start : start + 64]:
        raise CorruptFile(f"{where} is not a result that Robandit wrote, or it is damaged: its checksum does not match")


def check_format(version: int, newest: int, where: object) -> None:
    """Raise `NewerFile` if a file's format is newer than the newest that this version reads."""
    if version > newest:
        raise NewerFile(f"{where} has format {version}; this Robandit reads up to {newest}: upgrade robandit")


def write_atomically(path: str | os.PathLike[str], content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write a file under another name in the same folder, bring it to the disk, and move it into place.

    If anything fails, a full disk included, the old file is untouched and nothing half-written is left. A link stays,
    and what it points to is replaced; a device or a pipe is refused, for it would be replaced by a file.
    """
    target = named(path).resolve()
    if target.exists() and not target.is_file():
        raise FileError(f"{target} cannot be written: it is not a file; give the name of one")
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content) if isinstance(content, bytes) else content(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            why = error.strerror or error
            raise FileError(f"{target} cannot be written: {why}; what was there before is unchanged") from error
        raise


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be written, before the work whose result would be lost there."""
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.absolute().parent} does not exist; make it first")
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder; name a file in it")


def check_folder(path: Path | None) -> None:
    """The same for a folder that is to be made, or is there; None: none is wanted."""
    if path is not None and not path.is_dir():
        check_writable(path)
        if path.exists():
            raise FileError(f"{path} is a file: name a folder")


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one (mkstemp's are for one's eyes only)."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
