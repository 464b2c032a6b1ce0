"""The contract with SQLite, and what only SQLite has: its locations, levels of durability, lock file and backups."""

import os
import threading

import apsw
import pytest

from helpers.invalid import raises
from helpers.stores import check_integrity, event, everything, opened, reading
from robandit.errors import CorruptFile, FileError, InvalidInput, StoreError
from robandit.storage import open_store
from robandit.storage.base import Create, Remove
from robandit.storage.locations import path_of
from robandit.storage.schema import APPLICATION, STEPS, VERSION
from robandit.storage.sqlite import SqliteReader, SqliteStore
from storage.contract import ExclusiveContract


def changed(path, *statements):
    """Change a database from outside."""
    db = apsw.Connection(str(path))
    try:
        for statement in statements:
            db.execute(statement)
    finally:
        db.close()


class TestSqlite(ExclusiveContract):
    @pytest.fixture
    def location(self, tmp_path):
        return f"sqlite:{tmp_path / 'robandit.db'}"

    def make_newer(self, location):
        changed(path_of(location), f"PRAGMA user_version = {VERSION + 1}")

    def damage(self, location):
        with open(path_of(location), "r+b") as file:
            file.write(b"x" * 100)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robandit.db"


@pytest.fixture
def store(path):
    with opened(f"sqlite:{path}", durability="off") as store:
        store.commit((), [Create(1, "one", b"{}")])
        yield store


# --- opening ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["", "sqlite", "postgres:x", "robandit.db", ":memory:", "SQLITE:x"])
def test_locations_begin_with_the_kind_of_the_store(location):
    with pytest.raises(InvalidInput, match=r"must be sqlite:PATH, .*; for example sqlite:robandit\.db$"):
        open_store(location)


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(StoreError, match=r"the folder .*absent.* does not exist; make it first"):
        open_store(f"sqlite:{tmp_path / 'absent' / 'robandit.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_only_if_that_is_wanted(path):
    with pytest.raises(StoreError, match=r"robandit.db does not exist: name the file of a server"):
        open_store(f"sqlite:{path}", create=False)
    assert list(path.parent.iterdir()) == []
    open_store(f"sqlite:{path}").close()
    open_store(f"sqlite:{path}", create=False).close()


def test_a_folder_is_not_a_store(tmp_path):
    with pytest.raises(StoreError, match=r"cannot be used: it cannot be opened; check that its folder exists"):
        open_store(f"sqlite:{tmp_path}")


def test_an_unknown_durability_is_refused(path):
    with raises(InvalidInput, parameter="durability"):
        open_store(f"sqlite:{path}", durability="some")


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("relaxed", 1), ("off", 0)])
def test_the_levels_of_durability(path, durability, level):
    with opened(f"sqlite:{path}", durability=durability) as store:
        assert store._pragma("synchronous") == level
        assert store._run("PRAGMA journal_mode").get == "wal"


def test_one_file_is_left_after_closing(path):
    with opened(f"sqlite:{path}") as store:
        store.commit((), [Create(1, "one", b"{}")])
    assert [each.name for each in path.parent.iterdir()] == ["robandit.db"]


def test_a_link_to_the_file_is_the_same_store(path, tmp_path):
    with opened(f"sqlite:{path}"):
        (tmp_path / "link.db").symlink_to(path)
        with raises(StoreError, code="store-in-use"):
            open_store(f"sqlite:{tmp_path / 'link.db'}")


def test_a_lock_file_that_was_left_behind_does_not_matter(path):
    (path.parent / "robandit.db.lock").write_text("left")
    open_store(f"sqlite:{path}").close()


# --- other files --------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_a_database_stays_as_it_is(path):
    path.write_bytes(b"name,value\n" * 1000)
    with pytest.raises(CorruptFile, match=r"robandit.db is damaged, or not a database of Robandit"):
        open_store(f"sqlite:{path}")
    assert path.read_bytes() == b"name,value\n" * 1000


OTHERS = ["CREATE TABLE t(a)", "PRAGMA user_version = 3", "PRAGMA application_id = 7; CREATE TABLE t(a)"]


@pytest.mark.parametrize("statement", OTHERS)
def test_a_database_of_another_program_stays_as_it_is(path, statement):
    changed(path, statement)
    before = path.read_bytes()
    with pytest.raises(
        CorruptFile, match=r"robandit.db is a database of another program: name another file with --store"
    ):
        open_store(f"sqlite:{path}")
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["robandit.db"]


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with opened(f"sqlite:{path}") as store:
        assert everything(store)["experiments"] == []
        assert (store._pragma("application_id"), store._pragma("user_version")) == (APPLICATION, VERSION)


def test_a_newer_database_stays_as_it_is(path):
    open_store(f"sqlite:{path}").close()
    changed(path, f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(FileError, match=rf"robandit.db has format {VERSION + 1}; this Robandit reads up to {VERSION}"):
        open_store(f"sqlite:{path}")
    assert path.read_bytes() == before


def test_a_migration_is_whole_or_not_at_all(path, monkeypatch):
    with opened(f"sqlite:{path}") as store:
        store.commit([event(1)], [Create(1, "one", b"{}")])
        before = everything(store)
    module = "robandit.storage.sqlite"
    monkeypatch.setattr(f"{module}.VERSION", VERSION + 1)
    monkeypatch.setattr(f"{module}.STEPS", (*STEPS, "CREATE TABLE later(a); CREATE TABLE experiment(a)"))
    with pytest.raises(StoreError, match="table experiment already exists"):
        open_store(f"sqlite:{path}")
    monkeypatch.setattr(
        f"{module}.STEPS", (*STEPS, "CREATE TABLE later(a)")
    )  # would fail if the first step were stored
    with opened(f"sqlite:{path}") as store:
        assert store._pragma("user_version") == VERSION + 1
        assert everything(store) == before
    monkeypatch.undo()
    with pytest.raises(FileError, match="upgrade robandit"):
        open_store(f"sqlite:{path}")


# --- readers ------------------------------------------------------------------------------------------------------------


def test_a_reader_does_not_wait_for_a_commit(store):
    store._run("BEGIN IMMEDIATE; UPDATE experiment SET head = 5")
    with reading(store) as reader:
        assert reader.experiments()[0].head == 0
    store._run("ROLLBACK")


def test_a_commit_does_not_wait_for_a_reader(store):
    """Even if the reader is in the middle of its answer."""
    store.commit([event(seq) for seq in range(1, 2001)], ())
    with reading(store) as reader:
        rows = reader._db.execute("SELECT seq FROM event ORDER BY seq")
        assert next(rows) == (1,)
        store.commit([event(2001)], [Remove(1)])
        assert [seq for (seq,) in rows] == list(range(2, 2001))


def test_a_reader_cannot_write(store):
    with reading(store) as reader, pytest.raises(apsw.ReadOnlyError):
        reader._db.execute("DELETE FROM experiment")


def test_a_reader_of_a_missing_file_is_refused(path):
    with pytest.raises(StoreError, match=r"robandit.db does not exist: name the file of a server"):
        SqliteReader(str(path))


# --- backups ------------------------------------------------------------------------------------------------------------


def test_a_backup_while_a_server_writes_has_whole_commits(store, path, tmp_path):
    stop = threading.Event()
    copies = []

    def copy():
        for number in range(5):
            target = tmp_path / f"copy{number}.db"
            SqliteStore.backup(str(path), target)
            copies.append(target)
        stop.set()

    store.commit((), [Create(2, "two", b"{}")])
    thread = threading.Thread(target=copy)
    thread.start()
    group = 0
    while not stop.is_set() and group < 20_000:
        group += 1
        seqs = range(3 * group - 2, 3 * group + 1)
        store.commit([event(seq, number=number) for number in (1, 2) for seq in seqs], ())
    thread.join(60)
    assert len(copies) == 5
    heads = []
    for target in copies:
        check_integrity(target)
        with opened(f"sqlite:{target}") as copied:
            found = everything(copied)
            one, two = (each.head for each in found["experiments"])
            assert one == two == len(found["events"][0]) == len(found["events"][1])
            assert one % 3 == 0
            heads.append(one)
    assert heads == sorted(heads)
    leftover = {each.name for each in tmp_path.iterdir()}
    assert leftover <= {f"copy{k}.db" for k in range(5)} | {
        f"robandit.db{end}" for end in ("", "-wal", "-shm", ".lock")
    }


def test_a_backup_of_a_closed_store_is_one_file(path, tmp_path):
    with opened(f"sqlite:{path}") as store:
        store.commit([event(1)], [Create(1, "one", b"{}")])
        before = everything(store)
    target = tmp_path / "backups" / "copy.db"
    target.parent.mkdir()
    SqliteStore.backup(str(path), target)
    assert [each.name for each in target.parent.iterdir()] == ["copy.db"]
    with opened(f"sqlite:{target}") as copied:
        assert everything(copied) == before


def test_backups_that_are_refused(store, path, tmp_path):
    target = tmp_path / "copy.db"
    with pytest.raises(StoreError, match="does not exist: name the file of a server"):
        SqliteStore.backup(str(tmp_path / "absent.db"), target)
    target.write_text("mine")
    with pytest.raises(StoreError, match=r"copy.db exists: a backup is written to a new file"):
        SqliteStore.backup(str(path), target)
    assert target.read_text() == "mine"
    other = tmp_path / "other.db"
    changed(other, "CREATE TABLE t(a)")
    with pytest.raises(CorruptFile, match=r"other.db is not a database of Robandit"):
        SqliteStore.backup(str(other), tmp_path / "copy2.db")
    with pytest.raises(StoreError):
        SqliteStore.backup(str(path), tmp_path / "absent" / "copy.db")
    assert not os.path.exists(tmp_path / "copy2.db")
    assert not list(tmp_path.glob("*.part*"))


# --- counting ---------------------------------------------------------------------------------------------------------------


def test_json_that_sqlite_cannot_read_is_counted_without_an_arm(store):
    deep = b'{"arm":"a","context":%b%b}' % (b"[" * 1_500, b"]" * 1_500)
    store.commit([event(1), event(2, payload=deep)], ())
    with reading(store) as reader:
        assert sorted(reader.tallies(1, 0, 2), key=str) == [("decided", "a", 1), ("decided", None, 1)]
