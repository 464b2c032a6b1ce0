"""Faults of disks and files: full, read-only, torn, damaged. Errors have names, and nothing that was acknowledged is lost."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from helpers.amount import amount
from helpers.disks import Disk, mounted
from helpers.invalid import raises
from helpers.stores import (
    check_integrity,
    check_whole,
    commit_group,
    event,
    everything,
    killed_while_writing,
    opened,
    reading,
)
from robandit.errors import CorruptFile, FileError, RobanditError, StoreError
from robandit.storage import open_store
from robandit.storage.base import Audit, Create
from robandit.storage.sqlite import SqliteStore

# SQLite ignores errors of the last checkpoint, at closing, since the log has it all. apsw says so.
CLOSING = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
FRAME = 24 + 4096  # of the write-ahead log; its header has 32 bytes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robandit.db"


# --- a full disk ------------------------------------------------------------------------------------------------------------

TESTS = Path(__file__).parent.parent  # child processes import the helpers from there

FILL = (
    f"import sys; sys.path.insert(0, {str(TESTS)!r})"
    + """
import sys
from robandit.errors import StoreError
from robandit.storage import open_store
from helpers.stores import check_whole, commit_group, everything
from robandit.storage.base import Create
path, prepare, undo = sys.argv[1:]
store = open_store("sqlite:" + path)
store.commit((), [Create(1, "one", b"{}")])
commit_group(store, 1)
exec(prepare)
acknowledged = 1
try:
    while acknowledged < 5000:
        commit_group(store, acknowledged + 1)
        acknowledged += 1
except StoreError as error:
    print(error)
assert 1 < acknowledged < 5000, acknowledged
before = everything(store)  # readers go on
assert before["experiments"][0].head == 4 * acknowledged
store.close()
exec(undo)
assert check_whole(path, acknowledged, acknowledged) == acknowledged
print("nothing is lost")
"""
)


def test_a_full_file_system(tmp_path):
    """The file system is really full. Then a file on it is removed, and the store goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    prepare = f"open({str(disk / 'other')!r}, 'wb').write(bytes(300_000))"
    undo = f"import os; os.remove({str(disk / 'other')!r})"
    result = mounted(disk, "size=1200k", FILL, str(disk / "robandit.db"), prepare, undo)
    if result is None:
        pytest.skip("this system does not let us mount a small file system")
    assert (result.returncode, result.stderr) == (0, "")
    said, lost = result.stdout.splitlines()
    assert "robandit.db cannot be used: the disk is full; free space, then start the server again (SQLITE_FULL)" in said
    assert lost == "nothing is lost"


def test_a_limit_of_the_size_of_files(path):
    """The system refuses writes beyond it, in the middle of a page of the log."""
    prepare = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))"
    undo = "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    result = subprocess.run(
        [sys.executable, "-c", FILL, str(path), prepare, undo], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")
    said, lost = result.stdout.splitlines()
    assert "robandit.db cannot be used: reading or writing failed; check the disk (SQLITE_IOERR_WRITE)" in said
    assert lost == "nothing is lost"


def test_a_store_that_may_not_grow(path):
    with opened(f"sqlite:{path}") as store:
        store.commit((), [Create(1, "one", b"{}")])
        pages = store._pragma("page_count") + 10
        store._run(f"PRAGMA max_page_count = {pages}")
        acknowledged = []

        def fill():
            for group in range(1, 1000):
                commit_group(store, group)
                acknowledged.append(group)

        with pytest.raises(StoreError, match=r"robandit.db cannot be used: the disk is full; free space"):
            fill()
        before = everything(store)
        with pytest.raises(StoreError, match="the disk is full"):
            store.commit([event(4 * len(acknowledged) + 1, payload=b'"%s"' % (b"x" * 50_000))], ())
        assert everything(store) == before
    check_whole(path, len(acknowledged), len(acknowledged))


def test_a_backup_onto_a_full_disk_leaves_nothing_behind(path, tmp_path):
    with opened(f"sqlite:{path}") as store:
        store.commit((), [Create(1, "one", b"{}")])
        with Disk() as disk:
            disk.fail_at = 3
            with pytest.raises(
                StoreError, match=r"copy.db.* cannot be used: the disk is full|cannot be used: the disk is full"
            ):
                SqliteStore.backup(str(path), tmp_path / "copy.db")
        assert not list(tmp_path.glob("copy*"))
        SqliteStore.backup(str(path), tmp_path / "copy.db")


# --- every write fails once ---------------------------------------------------------------------------------------------------


def lives(path, disk, groups=6, checkpoint_every=3):
    """Open a store, commit groups, checkpoint now and then, and close it. Return the numbers of acknowledged groups and errors."""
    acknowledged, errors = -1, []
    try:
        with opened(f"sqlite:{path}") as store:
            store.commit((), [Create(1, "one", b"{}")])
            acknowledged = 0
            for group in range(1, groups + 1):
                commit_group(store, group)
                acknowledged = group
                if group % checkpoint_every == 0:
                    store._run("PRAGMA wal_checkpoint(RESTART)")
    except (RobanditError, apsw.Error) as error:
        errors.append(error)
    return acknowledged, errors


@CLOSING
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError], ids=lambda error: error.__name__)
def test_wherever_a_write_fails_nothing_acknowledged_is_lost(tmp_path, error):
    """Each life fails at another write, which is torn, and at all writes after it. Then the disk is well again."""
    with Disk() as disk:
        assert lives(tmp_path / "well.db", disk) == (6, [])
        assert 40 < disk.writes < 400
        numbers = range(1, disk.writes + 1)
    for number in numbers[:: amount(11, 1)]:
        path = tmp_path / f"{number}.db"
        with Disk(error) as disk:
            disk.fail_at = number
            acknowledged, errors = lives(path, disk)
        for each in errors:
            if not isinstance(each, apsw.Error):
                assert isinstance(each, StoreError)
                assert f"{number}.db cannot be used: " in str(each)
        if acknowledged >= 0:
            check_whole(path, acknowledged, acknowledged + 1)
        else:
            with opened(f"sqlite:{path}") as store:
                assert [each.head for each in everything(store)["experiments"]] in ([], [0])


@CLOSING
def test_wherever_a_flush_fails_nothing_is_acknowledged(tmp_path):
    with Disk() as disk:
        lives(tmp_path / "well.db", disk)
        numbers = range(1, disk.flushes + 1)
    assert len(numbers) >= 8
    for number in numbers:
        path = tmp_path / f"{number}.db"
        with Disk(apsw.IOError) as disk:
            disk.fail_flush_at = number
            acknowledged, errors = lives(path, disk)
        assert errors or acknowledged == 6
        if acknowledged >= 0:
            check_whole(path, acknowledged, acknowledged + 1)


# --- power loss ---------------------------------------------------------------------------------------------------------------


def test_a_commit_survives_the_loss_of_power_when_it_returns(tmp_path):
    with Disk() as disk, opened(f"sqlite:{tmp_path / 'robandit.db'}") as store:
        store.commit((), [Create(1, "one", b"{}")])
        copies = []
        for group in range(1, 9):
            commit_group(store, group)
            copies.append(disk.after_power_loss(tmp_path / str(group)))
            if group == 5:
                store._run("PRAGMA wal_checkpoint(RESTART)")
    for group, copy in enumerate(copies, start=1):
        check_whole(copy, group, group)


def test_relaxed_durability_may_lose_the_last_commits(tmp_path):
    """The negative control of the test above. What is left has whole commits nevertheless."""
    with Disk() as disk, opened(f"sqlite:{tmp_path / 'robandit.db'}", durability="relaxed") as store:
        store.commit((), [Create(1, "one", b"{}")])
        for group in range(1, 4):
            commit_group(store, group)
        store._run("PRAGMA wal_checkpoint(RESTART)")
        for group in range(4, 9):
            commit_group(store, group)
        copy = disk.after_power_loss(tmp_path / "copy")
    assert check_whole(copy, 3, 8) == 3


# --- read-only ----------------------------------------------------------------------------------------------------------------

READ_ONLY = (
    f"import sys; sys.path.insert(0, {str(TESTS)!r})"
    + """
import subprocess, sys
from robandit.errors import RobanditError
from robandit.storage import open_store
from helpers.stores import commit_group
from robandit.storage.base import Create
disk, = sys.argv[1:]
store = open_store("sqlite:" + disk + "/robandit.db")
store.commit((), [Create(1, "one", b"{}")])
commit_group(store, 1)
store.close()
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
try:
    open_store("sqlite:" + disk + "/robandit.db")
except RobanditError as error:
    print(type(error).__name__, error)
"""
)


def test_a_read_only_file_system(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    result = mounted(disk, "size=2m", READ_ONLY, str(disk))
    if result is None:
        pytest.skip("this system does not let us mount a file system")
    assert (result.returncode, result.stderr) == (0, "")
    reason = "robandit.db cannot be opened: Read-only file system; allow writing to the file and its folder"
    assert f"StoreError {disk}/{reason}" in result.stdout


AS_ANOTHER_USER = """
import os, sys
import robandit.storage.sqlite
from robandit.errors import RobanditError
from robandit.storage import open_store
if os.getuid() == 0:
    os.setuid(65534)
for path in sys.argv[1:]:
    try:
        open_store("sqlite:" + path).close()
    except RobanditError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="this system has no users of this kind")
def test_files_and_folders_without_permission():
    """The administrator may write everywhere, so the child process becomes another user."""
    modes = {"file": (0o777, 0o444), "folder": (0o555, 0o666), "closed": (0o777, 0o000)}  # of folder and file
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        paths = [Path(name) / each / "robandit.db" for each in modes]
        for path, (of_folder, of_file) in zip(paths, modes.values(), strict=True):
            path.parent.mkdir()
            open_store(f"sqlite:{path}").close()
            os.chmod(path, of_file)
            os.chmod(path.parent, of_folder)
        command = [sys.executable, "-c", AS_ANOTHER_USER, *map(str, paths)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        for path in paths:
            os.chmod(path.parent, 0o777)
    assert (result.returncode, result.stderr) == (0, "")
    file, folder, closed = result.stdout.splitlines()
    way_out = "allow writing to the file and its folder"
    assert file == f"StoreError {paths[0]} cannot be opened: it is read-only; {way_out}"
    assert folder == f"StoreError {paths[1]} cannot be opened: Permission denied; {way_out}"
    rule = "it cannot be opened; check that its folder exists and can be written"
    assert closed == f"StoreError {paths[2]} cannot be used: {rule} (SQLITE_CANTOPEN)"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (apsw.FullError, "the disk is full; free space, then start the server again"),
        (apsw.ReadOnlyError, "it is read-only; allow writing to the file and its folder"),
        (apsw.CantOpenError, "it cannot be opened; check that its folder exists and can be written"),
        (apsw.PermissionsError, "access is denied; check the permissions of the file"),
        (apsw.BusyError, "another program holds a lock on it; close that program"),
        (apsw.NoMemError, "there is not enough memory"),
        (apsw.IOError, "reading or writing failed; check the disk"),
        (apsw.InterruptError, "in the test"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_errors_of_sqlite_have_a_reason_and_a_way_out(path, error, reason, monkeypatch):
    with opened(f"sqlite:{path}", durability="off") as store:
        store.commit((), [Create(1, "one", b"{}")])
        before = everything(store)
        run = store._run

        def failing(statement, *rest):
            if statement == "COMMIT":
                raise error("in the test")
            return run(statement, *rest)

        monkeypatch.setattr(store, "_run", failing)
        with pytest.raises(StoreError, match=f"robandit.db cannot be used: {reason}") as raised:
            store.commit([event(1)], ())
        assert len(str(raised.value)) < 400
        monkeypatch.undo()
        assert everything(store) == before
        store.commit([event(1)], ())


def test_texts_that_are_not_unicode_are_refused(path):
    with opened(f"sqlite:{path}", durability="off") as store:
        before = everything(store)
        with pytest.raises(StoreError, match=r"robandit.db cannot store a text that is not valid Unicode"):
            store.commit((), [Create(1, "one", b"{}"), Audit(1.0, "k", "a", "\ud800", b"{}")])
        assert everything(store) == before


# --- torn and damaged files -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The files of a process that was killed, and the number of groups that it had acknowledged."""
    folder = tmp_path_factory.mktemp("killed")
    return folder, killed_while_writing(f"sqlite:{folder / 'robandit.db'}", 30)


def copied(folder, target):
    for name in ("robandit.db", "robandit.db-wal"):  # the third file, -shm, is memory: it does not survive a machine
        shutil.copy(folder / name, target / name)
    return target / "robandit.db"


def groups_of(path):
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
        heads = {each.head for each in found["experiments"]}
        assert len(heads) <= 1
        groups, rest = divmod(max(heads, default=0), 4)
        assert rest == 0
        assert [len(log) for log in found["events"]] == [4 * groups] * len(found["events"])
        assert len(found["audit"]) == groups
        if found["experiments"]:
            store.commit([event(4 * groups + 1)], ())
    check_integrity(path)
    return groups


@pytest.mark.parametrize("garbage", [b"x" * 5, bytes(FRAME), b"\xff" * (3 * FRAME // 2)], ids=["few", "zeros", "many"])
def test_a_torn_frame_after_the_last_commit_is_ignored(killed, tmp_path, garbage):
    folder, acknowledged = killed
    path = copied(folder, tmp_path)
    with open(f"{path}-wal", "ab") as log:
        log.write(garbage)
    assert acknowledged <= groups_of(path) <= acknowledged + 1


def test_half_of_an_old_commit_at_the_end_is_ignored(killed, tmp_path):
    """The log also has frames that are valid in themselves, but belong to no commit: the process was killed in the middle."""
    folder, acknowledged = killed
    path = copied(folder, tmp_path)
    content = Path(f"{path}-wal").read_bytes()
    Path(f"{path}-wal").write_bytes(content + content[32 : 32 + 2 * FRAME])
    assert acknowledged <= groups_of(path) <= acknowledged + 1


def test_a_log_that_is_cut_anywhere_has_whole_commits(killed, tmp_path):
    """A disk that lies about flushes loses commits, but never the first part or the middle of the log."""
    folder, acknowledged = killed
    size = os.path.getsize(folder / "robandit.db-wal")
    before = 0
    for step, length in enumerate(range(0, size, size // amount(25, 200) + 13)):
        target = tmp_path / str(step)
        target.mkdir()
        path = copied(folder, target)
        os.truncate(f"{path}-wal", length)
        groups = groups_of(path)
        assert before <= groups <= acknowledged + 1
        before = groups
    assert before >= acknowledged - 3


def test_a_flipped_bit_in_the_log_ends_it(killed, tmp_path):
    folder, acknowledged = killed
    path = copied(folder, tmp_path)
    content = bytearray(Path(f"{path}-wal").read_bytes())
    content[len(content) // 2] ^= 4
    Path(f"{path}-wal").write_bytes(content)
    assert 1 <= groups_of(path) < acknowledged


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed store of about 60 pages, with rows of all kinds."""
    path = tmp_path_factory.mktemp("whole") / "robandit.db"
    with opened(f"sqlite:{path}", durability="off") as store:
        store.commit((), [Create(1, "one", b"{}")])
        for group in range(1, 100):
            commit_group(store, group)
    return path


def read_all(path):
    """Open a store, read everything and store one more event, as a server would."""
    with opened(f"sqlite:{path}", durability="off") as store:
        found = everything(store)
        with reading(store) as reader:
            for each in found["events"][0]:
                assert reader.find(1, each.kind, each.id) == each
        commit_group(store, 100)
        return found


def test_a_truncated_file_is_refused_by_name(whole, tmp_path):
    size = os.path.getsize(whole)
    assert size > 40 * 4096
    for length in (100, 4095, 4096, size // 2, size - 4096):
        path = tmp_path / f"{length}.db"
        shutil.copy(whole, path)
        os.truncate(path, length)
        with pytest.raises(CorruptFile, match=rf"{length}.db is damaged"):
            read_all(path)


@pytest.mark.parametrize("filler", [b"\0", b"\xa5"], ids=["zeros", "garbage"])
def test_a_lost_page_is_noticed(whole, tmp_path, filler):
    """Whichever page is lost: reading or the check of a backup notices it, and the error has the name of the file."""
    before = read_all(shutil.copy(whole, tmp_path / "well.db"))
    pages = os.path.getsize(whole) // 4096
    noticed = 0
    for page in range(0, pages, amount(5, 1)):
        path = tmp_path / f"page{page}.db"
        shutil.copy(whole, path)
        with open(path, "r+b") as file:
            file.seek(4096 * page)
            file.write(filler * 4096)
        with pytest.raises(FileError, match=rf"page{page}.db is damaged"):
            SqliteStore.backup(str(path), tmp_path / "copy.db")
        assert not (tmp_path / "copy.db").exists()
        try:
            assert read_all(path) == before
        except CorruptFile as error:
            noticed += f"page{page}.db is damaged" in str(error)
    assert noticed > 0.7 * len(range(0, pages, amount(5, 1)))


@pytest.mark.parametrize("by", ["removed", "moved", "replaced"])
@CLOSING
def test_a_file_that_disappears_is_noticed_before_anything_is_acknowledged(path, by):
    with opened(f"sqlite:{path}") as store:
        store.commit((), [Create(1, "one", b"{}")])
        if by == "removed":
            path.unlink()
        else:
            path.rename(path.with_name("other.db"))
        if by == "replaced":
            shutil.copy(path.with_name("other.db"), path)
        with pytest.raises(StoreError, match=r"robandit.db was moved or removed while the server used it"):
            commit_group(store, 1)


def test_a_file_with_two_names_is_refused(path):
    with opened(f"sqlite:{path}"):
        pass
    os.link(path, path.with_name("other.db"))
    with pytest.raises(StoreError, match=r"robandit.db cannot be opened: it has several names \(hard links\); copy it"):
        open_store(f"sqlite:{path}")


@pytest.mark.parametrize("location", ["sqlite::memory:", "sqlite:file:x?mode=memory", "sqlite:"])
def test_only_paths_of_files_are_locations(location):
    with raises(RobanditError, parameter="store", rule="sqlite:PATH, the path of a file"):
        open_store(location)
