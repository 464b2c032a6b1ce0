"""A write either completes or changes nothing."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest

import robandit as rb
from helpers.amount import amount
from robandit import files
from robandit.errors import FileError, InvalidInput
from robandit.experiments import Store, read_spec
from robandit.files import read, read_sealed, write_atomically
from robandit.recorded import open_records

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


@pytest.fixture
def odd_paths(tmp_path):
    """Names that no file can have, and things that are no files."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe")
    long = [tmp_path / ("x" * 300), tmp_path / ("d" * 200) / ("e" * 300), "y" * 10_000]
    return [
        *long,
        tmp_path / "a",
        tmp_path / "a" / "in",
        tmp_path / "pipe",
        tmp_path / "pipe" / "in",
        "/dev/full",
        tmp_path,
    ]


READERS = (rb.Bandit.load, rb.Result.from_parquet, read_spec, Store.open, read)


@pytest.mark.parametrize("use", READERS, ids=lambda use: use.__qualname__)
def test_odd_paths_cannot_be_read(use, odd_paths):
    """Reading /dev/full would never end, and opening the pipe neither."""
    for path in odd_paths:
        with pytest.raises(FileError) as caught:
            use(path)
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


def test_odd_paths_cannot_be_written(odd_paths):
    bandit = rb.Bandit(["a", "b"], rb.UCB1(), compile="never")
    for path in odd_paths:
        for use in (bandit.save, lambda path: write_atomically(path, b"new"), files.check_writable):
            with pytest.raises(FileError) as caught:
                use(path)
            assert len(str(caught.value)) < 500


@pytest.mark.parametrize("use", READERS, ids=lambda use: use.__qualname__)
def test_lone_surrogates_are_no_names(use):
    with pytest.raises(InvalidInput, match=r"'a\\ud800' must be the name of a "):
        use("a\ud800")


def test_messages_about_paths_are_printable(tmp_path):
    with pytest.raises(FileError) as caught:
        read(tmp_path / "a\x1b[31m\nb\udcff")
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    str(caught.value).encode()


def test_huge_files_are_not_read(target, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 2)
    with pytest.raises(FileError, match="it has more than"):
        read(target)
    monkeypatch.setattr(files, "MOST_BYTES", 3)
    assert read(target) == b"old"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_files_that_claim_to_be_empty_are_read_to_their_end():
    assert read("/proc/self/status").startswith(b"Name:")


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    """The name of the temporary file is shorter."""
    write_atomically(tmp_path / ("x" * 255), b"new")
    write_atomically(tmp_path / ("\N{SNOWMAN}" * 85), b"new")
    assert len(os.listdir(tmp_path)) == 2


SAVER = """
import sys
from robandit.files import write_atomically
print("ready", flush=True)
while True:
    write_atomically(sys.argv[1], b"x" * 3_000_000)
"""


def test_a_killed_saver_leaves_a_whole_file(tmp_path):
    path = tmp_path / "bandit"
    draw = random.Random(0)
    for _ in range(amount(4, 60)):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE)
        saver.stdout.readline()
        time.sleep(draw.random() * 0.05)
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        assert not path.exists() or path.read_bytes() == b"x" * 3_000_000
        for left in set(tmp_path.iterdir()) - {path}:
            assert files.TEMPORARY.fullmatch(left.name)


def test_only_old_temporary_files_are_swept(target):
    files._sweep.cache_clear()
    fresh, stale = (target.parent / f".kept.1a2b-{name}.part" for name in ("01234567", "76543210"))
    others = [target.parent / name for name in (".kept.mine", ".other.part", "kept.part", ".kept.part")]
    for path in (fresh, stale, *others):
        path.touch()
    for path in (stale, *others):
        os.utime(path, (0.0, 0.0))
    (target.parent / ".kept.1a2b-00000000.part").mkdir()
    write_atomically(target, b"new")
    assert not stale.exists(), "a killed process left it"
    assert fresh.exists(), "another process may be writing it"
    assert all(path.exists() for path in others)


def test_records_of_devices_and_of_names_that_are_not_utf_8(tmp_path):
    with pytest.raises(FileError, match="/dev/full cannot be read: it is a device"):
        open_records("/dev/full")
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("arm,reward\na,1\n")
    with pytest.raises(FileError, match="its name is not UTF-8"):
        open_records(path)
    with pytest.raises(FileError, match="File name too long"):
        open_records("x" * 300)
