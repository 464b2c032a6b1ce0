"""Copies of stores: all is there, to the last bit, from each kind to each kind. The golden store has events of every kind."""

import shutil
from pathlib import Path

import psycopg
import pytest

from helpers.amount import amount
from helpers.invalid import raises
from helpers.killing import Killing
from helpers.stores import all_events, everything, opened, reading
from robandit.decisions import moving
from robandit.decisions.moving import Moved, move
from robandit.decisions.restoring import state_before
from robandit.errors import StoreError
from robandit.storage import chunks, open_store
from robandit.storage.base import Archive, Create, PutSession, Remove, StoredSession
from robandit.storage.locations import path_of
from robandit.storage.schema import VERSION

GOLDEN = Path(__file__).parents[1] / "golden" / f"service.schema{VERSION}.db"


@pytest.fixture
def golden(tmp_path):
    return f"sqlite:{shutil.copy(GOLDEN, tmp_path / 'golden.db')}"


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'target.db'}"
    return request.getfixturevalue("postgres_url")


def moved(source, target, tell=lambda done, total: None):
    with opened(source, create=False) as store:
        return move(store, lambda: open_store(target, new=True), tell)


def contents(location):
    with opened(location) as store:
        return everything(store) | {"next": store.next_number()}


def archive_some(location):
    """Archive the first events of one experiment, and all of another one."""
    with opened(location, durability="off") as store, reading(store) as reader:
        first, second = reader.experiments()[:2]
        for stored, seq in ((first, 20), (second, second.head)):
            content = state_before(reader, stored, seq + 1).snapshot().content
            store.commit((), [Archive(stored.number, seq, content)])
        while store.tidy():
            pass


@pytest.mark.parametrize("archived", [False, True], ids=["whole", "archived"])
def test_there_and_back_again(golden, target, tmp_path, archived):
    if archived:
        archive_some(golden)
    told, back = [], f"sqlite:{tmp_path / 'back.db'}"
    before = contents(golden)
    numbers = moved(golden, target, lambda *each: told.append(each))
    assert moved(target, back) == numbers
    assert numbers == Moved(7, sum(map(len, before["events"])), 1, len(before["audit"]))
    assert told[-1] == (2 * numbers.events, 2 * numbers.events)
    assert told == sorted(told)
    for location in (golden, target, back):
        assert contents(location) == before
    assert before["next"] == 9
    assert max(each.number for each in before["experiments"]) == 8


def test_the_last_number_is_not_used_again_if_its_experiment_was_removed(golden, target):
    with opened(golden) as store:
        store.commit((), [Create(20, "x", b"{}"), Remove(20)])
    moved(golden, target)
    with opened(target) as store:
        assert store.next_number() == 21
        while store.tidy():
            pass
        assert store.next_number() == 21


def test_sessions_are_not_copied(golden, target):
    with opened(golden) as store:
        store.commit((), [PutSession(StoredSession(b"x", "k", 9e9), 1.0)])
    moved(golden, target)
    with opened(target) as store, reading(store) as reader:
        assert reader.sessions() == []


def test_an_empty_store(tmp_path, target):
    open_store(f"sqlite:{tmp_path / 'empty.db'}").close()
    assert moved(f"sqlite:{tmp_path / 'empty.db'}", target) == Moved(0, 0, 0, 0)
    with opened(target) as store:
        assert store.next_number() == 1


def test_a_target_with_data_is_refused_and_stays_as_it_is(golden, target):
    moved(golden, target)
    before = contents(target)
    with pytest.raises(StoreError, match=r"has data.* already: name"):
        moved(golden, target)
    assert contents(target) == before


def test_a_source_that_a_server_uses_is_refused(golden, target, tmp_path):
    moved(golden, target)
    with opened(target), raises(StoreError, code="store-in-use"):
        moved(target, f"sqlite:{tmp_path / 'second.db'}")
    assert not (tmp_path / "second.db").exists()


FAULTS = {
    "an event": ("events", lambda found: [each._replace(time=each.time + 1e-6) for each in found]),
    "a payload": ("events", lambda found: [each._replace(payload=each.payload + b" ") for each in found]),
    "a snapshot": ("snapshots", lambda found: [(seq, content + b"x") for seq, content in found]),
    "a key": ("keys", lambda found: []),
    "the audit log": ("audit", lambda found: found[1:]),
    "an experiment": ("experiments", lambda found: [each._replace(epoch=7) for each in found]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_copy_that_differs_is_not_published(golden, target, name):
    """What is read from the copy is changed, as if it had been stored so."""
    method, change = FAULTS[name]

    def make():
        store = open_store(target, new=True)
        make_reader = store.reader

        def reader():
            made = make_reader()
            real = getattr(made, method)
            setattr(made, method, lambda *arguments: change(real(*arguments)))
            return made

        store.reader = reader
        return store

    with opened(golden) as source, pytest.raises(StoreError, match=r"differ in the copy|another length"):
        move(source, make, lambda done, total: None)
    with pytest.raises(StoreError, match="is an incomplete copy"):
        open_store(target)


def test_states_are_compared_too(golden, target, monkeypatch):
    class Forgetful(moving.LiveExperiment):
        def apply_all(self, stored):
            super().apply_all(list(stored))
            if id(self) == id(starts[1]):
                self.counts["decided"] += 1

    starts = []
    start = moving._start

    def remembered(*arguments):
        starts.append(start(*arguments))
        starts[-1].__class__ = Forgetful
        return starts[-1]

    monkeypatch.setattr(moving, "_start", remembered)
    with pytest.raises(StoreError, match="the state of 'adakl-ucb' differ"):
        moved(golden, target)


def test_a_killed_copy_leaves_the_source_as_it_was_and_a_target_that_nobody_opens(golden, target):
    path = Path(path_of(golden))
    before, bytes_before = contents(golden), path.read_bytes()
    with Killing() as killing:
        for step in amount((0, 5, 26, 30), (0, 1, 5, 22, 26, 30)):  # the last one is right before the copy is published
            assert not killing.move(step, golden, target), step
            with pytest.raises(StoreError, match=r"is an incomplete copy of robandit migrate-store: remove"):
                open_store(target)
            with pytest.raises(StoreError, match="is an incomplete copy"):
                moved(golden, target)
            assert path.read_bytes() == bytes_before
            assert contents(golden) == before
            drop(target)
        assert killing.move(31, golden, target)
    assert contents(target) == before


def drop(location):
    """Remove an incomplete copy, as the error says."""
    if location.startswith("sqlite:"):
        for path in Path(path_of(location)).parent.glob("target.db*"):
            path.unlink()
    else:
        with psycopg.connect(location) as db:
            db.execute("DROP SCHEMA robandit CASCADE")


def test_archived_events_that_are_not_removed_yet_are_not_copied(golden, target):
    with opened(golden) as store, reading(store) as reader:
        content = state_before(reader, reader.experiments()[0], 21).snapshot().content
        store.commit((), [Archive(2, 20, content)])
    assert contents(golden)["events"][0][0].seq == 1
    moved(golden, target)
    with opened(target) as store, reading(store) as reader:
        assert reader.events(2)[0].seq == 21


def test_long_logs_are_copied_in_chunks(golden, monkeypatch):
    monkeypatch.setattr(chunks, "EVENTS", 30)
    monkeypatch.setattr(chunks, "READ", 9)
    made = []
    with opened(golden) as store, reading(store) as reader:
        for after, last in ((0, 50), (7, 50), (50, 50)):
            parts = list(chunks.chunks(reader, 2, after, last))
            assert [each for part in parts for each in part] == all_events(reader, 2)[after:last]
            assert all(len(part) < 40 for part in parts)
            made.append(len(parts))
    assert made == [2, 2, 0]
