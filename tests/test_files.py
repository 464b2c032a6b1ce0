"""A write either completes or changes nothing."""

import errno
import os
import stat

import pytest

from robandit.errors import FileError, InvalidInput
from robandit.files import read_sealed, write_atomically

resource = pytest.importorskip("resource", reason="file size limits are POSIX")


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "kept"
    write_atomically(path, b"old")
    return path


def unchanged(path):
    return path.read_bytes() == b"old" and os.listdir(path.parent) == [path.name]


def test_a_file_is_written_and_replaced(target):
    assert unchanged(target)
    write_atomically(str(target), b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(target.parent) == ["kept"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_any_step_may_find_the_disk_full(target, step, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, full)
    with pytest.raises(
        FileError, match=r"kept cannot be written: No space left on device; the old file, if any, is unchanged"
    ):
        write_atomically(target, b"new")
    assert unchanged(target)


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_a_disk_that_takes_no_more_bytes(target, size):
    """A limit of the operating system stands for the full disk: some bytes are written, the next ones fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(FileError, match="cannot be written: File too large"):
            write_atomically(target, b"x" * size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert unchanged(target)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_other_failures_pass_through_and_leave_nothing(target, error, monkeypatch):
    def fail(handle):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error):
        write_atomically(target, b"half")
    assert unchanged(target)


def test_permissions_are_those_of_the_old_file_or_of_the_umask(target, tmp_path):
    os.chmod(target, 0o640)
    write_atomically(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh", b"new")
        assert os.umask(0o027) == 0o027, "the umask is not changed"
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_what_is_not_a_file_is_rejected_and_kept(tmp_path):
    """Replacing a device such as /dev/null by a file would break the machine; the test uses a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (pipe, folder):
        with pytest.raises(FileError, match="it is not a file"):
            write_atomically(path, b"new")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
    with pytest.raises(FileError, match="No such file or directory"):
        write_atomically(tmp_path / "none" / "file", b"new")


@pytest.mark.parametrize("path", [None, 1.5, True, b"file", ["file"], "a\0b"], ids=repr)
def test_invalid_names_of_files(path):
    for use in (read_sealed, lambda p: write_atomically(p, b"new")):
        with pytest.raises(InvalidInput, match=r"^path = .* must be the name of a file; pass a string or a Path"):
            use(path)


def test_a_link_stays_a_link(target, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_the_modification_time_may_be_given(target):
    write_atomically(target, b"new", modified=1e9)
    assert (target.read_bytes(), target.stat().st_mtime) == (b"new", 1e9)
