"""Archives: the files have the old events, the log the others, and states are the same to the last bit, also after kills."""

import asyncio
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from helpers.amount import amount
from helpers.invalid import raises
from helpers.killing import Killing
from helpers.serving import Clock
from helpers.stores import all_events, opened, reading
from robandit.decisions import archiving
from robandit.decisions.archiving import archive, events_in, restore
from robandit.decisions.engine import SingleServerEngine
from robandit.decisions.moving import move
from robandit.decisions.restoring import state_before
from robandit.errors import Conflict, CorruptFile, NotFound, StoreError
from robandit.storage import open_store
from robandit.storage.base import Archive, Remove
from robandit.storage.schema import VERSION

GOLDEN = Path(__file__).parents[1] / "golden" / f"service.schema{VERSION}.db"
BEGIN = 1_800_000_000.25  # of the golden store
LATER = BEGIN + 300.0  # in the middle of its second experiment


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path):
    golden = f"sqlite:{shutil.copy(GOLDEN, tmp_path / 'golden.db')}"
    if request.param == "sqlite":
        return golden
    url = request.getfixturevalue("postgres_url")
    with opened(golden) as store:
        move(store, lambda: open_store(url, new=True), lambda done, total: None)
    return url


@pytest.fixture
def store(location):
    with opened(location, durability="off") as store:
        yield store


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


def logs(store):
    with reading(store) as reader:
        return {each.name: all_events(reader, each.number) for each in reader.experiments()}


def states(store, most=9):
    """Return the present states of the first experiments, as bytes."""
    with reading(store) as reader:
        found = reader.experiments()[:most]
        return {each.name: state_before(reader, each, each.head + 1).snapshot().content for each in found}


def in_files(folder):
    """Return the events in all files of a folder, by the name of the experiment."""
    found = {}
    for path in folder.glob("*.parquet"):
        name, _, first, last = (*path.stem.rsplit(".", 2)[:2], *path.stem.rsplit(".", 1)[1].split("-"))
        events = [event for part in events_in(path) for event in part]
        assert [event.seq for event in events] == list(range(int(first), int(last) + 1))
        found.setdefault(name, []).extend(events)
    return {name: sorted(events) for name, events in found.items()}


def archived(store, folder, before, name=None):
    return [(stored.name, file.first, file.last) for stored, file in archive(store, folder, before, name)]


def test_old_events_move_to_files_and_the_states_stay(store, folder):
    before, known = logs(store), states(store)
    with reading(store) as reader:
        stored = {each.name: each for each in reader.experiments()}
        explained = {
            (name, event.seq): state_before(reader, stored[name], event.seq).snapshot().content
            for name, events in before.items()
            for event in events[::7]
        }
    done = archived(store, folder, LATER)
    assert {name for name, _, _ in done} == {"adakl-ucb", "ucb1"}
    rest, moved = logs(store), in_files(folder)
    for name, events in before.items():
        assert moved.get(name, []) == [event for event in events if event.time < LATER]
        assert rest[name] == [event for event in events if event.time >= LATER]
    assert rest["adakl-ucb"] == []
    assert rest["ucb1"]
    assert states(store) == known
    with reading(store) as reader:
        for (name, seq), content in explained.items():
            if seq > reader.archived(stored[name].number):
                assert state_before(reader, stored[name], seq).snapshot().content == content
        entries = [(each.key, each.action, each.subject) for each in reader.audit()[-2:]]
    assert entries == [("(command line)", "archive", "adakl-ucb"), ("(command line)", "archive", "ucb1")]
    assert [path.name for path in folder.iterdir() if path.suffix != ".parquet"] == []


def test_the_columns_of_a_file(store, folder):
    (_, file), *_ = archive(store, folder, LATER)
    assert file.path.name == f"adakl-ucb.2.1-{file.last}.parquet"
    frame = pl.read_parquet(file.path)
    assert list(frame.schema.items()) == [
        ("experiment", pl.Int64),
        ("seq", pl.Int64),
        ("kind", pl.String),
        ("id", pl.String),
        ("payload", pl.String),
        ("time", pl.Float64),
    ]
    assert frame["payload"].str.json_path_match("$.arm").n_unique() > 3
    assert file.path.stat().st_mode & 0o077 == 0


def test_the_next_call_goes_on_where_the_last_one_ended(store, folder):
    before, known = logs(store), states(store)
    (*_, (_, _, first)) = archived(store, folder, LATER)
    assert archived(store, folder, LATER) == []
    assert archived(store, folder, LATER + 20.0, "htinf") == []
    ((name, begin, _),) = archived(store, folder, LATER + 20.0)
    assert (name, begin) == ("ucb1", first + 1)
    assert in_files(folder)["ucb1"] + logs(store)["ucb1"] == before["ucb1"]
    assert states(store) == known


def test_one_experiment(store, folder):
    assert [name for name, _, _ in archived(store, folder, LATER, "ucb1")] == ["ucb1"]
    with pytest.raises(NotFound, match="there is no experiment 'none'"):
        archived(store, folder, LATER, "none")


def test_all_events_can_be_archived_and_a_server_goes_on(location, folder, monkeypatch):
    if not location.startswith("sqlite:"):
        pytest.skip("see the tests of replicas")
    # The version that made the golden store: another one would record an upgrade.
    monkeypatch.setattr("robandit.decisions.experiment.__version__", "0.1.0")

    async def served():
        clock = Clock(BEGIN + 1e6)
        engine = SingleServerEngine(open_store(location, durability="off"), clock=clock, compile="never")
        await engine.load()
        found = {name: each.snapshot().content for name, each in engine.experiments.items()}
        arms = [engine.find(name).decide().payload.arm for name in found]
        await engine.close()
        return found, arms

    with opened(location, durability="off") as store:
        known, before = states(store), logs(store)
        archived(store, folder, math.inf)
        assert all(events == [] for events in logs(store).values())
        assert in_files(folder) == before
    found, arms = asyncio.run(served())
    assert found == known
    with opened(location) as store:
        assert sum(map(len, logs(store).values())) >= len(arms)


# --- ids of archived decisions ------------------------------------------------------------------------------------------

SETTINGS = {
    "policy": "UCB1()",
    "minimize": False,
    "seed": 1,
    "reward_window": None,
    "on_expiry": "drop",
    "max_open": None,
}


def test_ids_of_archived_decisions(tmp_path, folder):
    """An open one is rewarded as before; one with an event that is left is refused; a forgotten one is new."""
    location, clock = f"sqlite:{tmp_path / 'robandit.db'}", Clock(1000.0)

    async def begin():
        engine = SingleServerEngine(open_store(location, durability="off"), clock=clock, compile="never")
        await engine.load()
        return engine

    async def first():
        engine = await begin()
        experiment, _ = engine.create("e", arms=["a", "b"], **SETTINGS)
        for id in ("open", "ends later", "forgotten"):
            experiment.decide(id)
        own = experiment.decide().event.id
        experiment.reward("forgotten", 1.0)
        clock.now = 2000.0
        experiment.reward("ends later", 2.0)
        await engine.close()
        return own

    async def second(own):
        engine = await begin()
        experiment = engine.find("e")
        for id in ("open", "ends later", own):
            with raises(Conflict, parameter="id"):
                experiment.decide(id)
        with raises(NotFound, code="unknown-decision"):
            experiment.reward("forgotten", 1.0)
        assert experiment.reward("ends later", 2.0).replayed
        assert not experiment.reward("open", 3.0).replayed
        assert experiment.reward("open", 3.0).replayed
        assert not experiment.reward(own, 3.0).replayed
        with pytest.raises(Conflict):  # its reward is in the log, so it could not have another one
            experiment.decide("open")
        assert not experiment.decide("forgotten").replayed
        assert experiment.decide("forgotten").replayed
        assert not experiment.reward("forgotten", 4.0).replayed
        assert not experiment.decide("new").replayed
        await engine.close()

    own = asyncio.run(first())
    with opened(location, durability="off") as store:
        assert archived(store, folder, 1500.0) == [("e", 1, 6)]
    asyncio.run(second(own))


# --- what can go wrong --------------------------------------------------------------------------------------------------


def test_a_file_that_differs_from_the_log_is_refused(store, folder, monkeypatch):
    before, real = logs(store), archiving._frame

    def wrong(events):
        return real([each._replace(time=each.time + (each.seq == 3) * 1e-6) for each in events])

    monkeypatch.setattr(archiving, "_frame", wrong)
    with pytest.raises(CorruptFile, match=r"differs from the log after event 0: move the file away"):
        archived(store, folder, LATER)
    monkeypatch.undo()
    with pytest.raises(CorruptFile, match="differs"):  # the file is still there
        archived(store, folder, LATER)
    assert logs(store) == before
    for path in folder.glob("*.parquet"):
        path.write_bytes(b"PAR1" + path.read_bytes()[50:])
    with pytest.raises(CorruptFile, match="is damaged, or not an archive"):
        archived(store, folder, LATER)
    for path in folder.glob("*.parquet"):
        path.unlink()
    assert len(archived(store, folder, LATER)) == 2


def test_a_file_of_an_interrupted_call_with_fewer_days_is_not_written_twice(store, folder, monkeypatch):
    before, known = logs(store), states(store)
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "_check", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            archived(store, folder, LATER)
    with pytest.raises(StoreError, match="is of an archive with fewer --days that was interrupted: repeat that one"):
        archived(store, folder, LATER - 200.0)
    assert logs(store) == before
    assert [name for name, _, _ in archived(store, folder, LATER + 100.0)] == ["adakl-ucb", "ucb1", "epsilon-greedy"]
    assert states(store) == known
    moved, rest = in_files(folder), logs(store)
    assert {name: moved.get(name, []) + rest[name] for name in before} == before


def test_an_experiment_that_is_removed_meanwhile_leaves_its_file(store, folder, monkeypatch):
    real = archiving._check

    def check(reader, stored, file):
        real(reader, stored, file)
        if stored.number == 2:
            monkeypatch.undo()
            state = archiving.state_before
            monkeypatch.setattr(
                archiving, "state_before", lambda *a, **o: (state(*a, **o), store.commit((), [Remove(2)]))[0]
            )

    monkeypatch.setattr(archiving, "_check", check)
    with pytest.raises(NotFound, match=r"'adakl-ucb' was removed meanwhile: .*parquet has its events"):
        archived(store, folder, LATER)
    with reading(store) as reader:
        assert reader.snapshots(2) == []


def test_a_folder_is_used_by_one_call_at_a_time(store, folder):
    running = archive(store, folder, LATER)
    next(running)
    with pytest.raises(StoreError, match="is used by another robandit archive"):
        archived(store, folder, LATER)
    running.close()
    assert len(archived(store, folder, LATER)) == 1


def test_a_folder_that_cannot_be_made(store, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be written: .*; name another folder"):
        archived(store, tmp_path / "file" / "x", LATER)


def test_an_unreadable_base_is_made_again_from_the_files(store, folder):
    known = states(store)
    archived(store, folder, LATER - 100.0)
    archived(store, folder, LATER)
    with reading(store) as reader:
        stored = {each.name: each for each in reader.experiments()}
        last = {name: reader.archived(stored[name].number) for name in ("adakl-ucb", "ucb1")}
    store.commit((), [Archive(stored[name].number, seq, b"damaged") for name, seq in last.items()])
    text = rf"state of experiment 'adakl-ucb' after event {last['adakl-ucb']} cannot be read.* archive FOLDER --restore"
    with pytest.raises(CorruptFile, match=text):
        states(store)
    assert [(each.name, seq) for each, seq in restore(store, folder)] == list(last.items())
    assert states(store) == known
    with reading(store) as reader:
        assert reader.audit()[-1].action == "restore archive"
    with pytest.raises(StoreError, match="elsewhere is not a folder"):
        list(restore(store, folder / "elsewhere"))
    assert not (folder / "elsewhere").exists()
    for path in folder.glob("ucb1.*"):
        if ".1-" in path.name:
            path.unlink()
    with pytest.raises(StoreError, match=r"lacks events 1 to \d+ of experiment 'ucb1': put all its files there"):
        list(restore(store, folder))


def test_a_changed_file_is_refused(store, folder):
    known = states(store)
    archived(store, folder, LATER, "ucb1")
    (path,) = folder.glob("ucb1.*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        CorruptFile, match=r"is not the file that was archived: its SHA-256 is not that of the audit log"
    ):
        list(restore(store, folder))
    assert states(store) == known


# --- kills --------------------------------------------------------------------------------------------------------------


def test_kills_between_all_steps_lose_nothing(location, folder, tmp_path):
    """With SQLite, each call begins with the same file; with PostgreSQL, each one goes on after the last."""
    with opened(location, durability="off") as store:
        before, known = logs(store), states(store, 3)
    origin = None
    if location.startswith("sqlite:"):
        origin = shutil.copy(location.removeprefix("sqlite:"), tmp_path / "origin.db")
    with Killing() as killing:
        stride = amount(3, 1) if origin else 1
        for step in range(0, 100, stride):
            ended = killing.archive(step, location, folder, LATER)
            check_nothing_is_lost(location, folder, before, known)
            if ended:
                break
            if origin is not None and step // stride % 3:  # some go on after a kill
                shutil.rmtree(folder, ignore_errors=True)
                for path in tmp_path.glob("golden.db*"):
                    path.unlink()
                shutil.copy(origin, location.removeprefix("sqlite:"))
    assert ended
    assert step > (15 if origin else 5)
    with opened(location, durability="off") as store:
        assert archived(store, folder, LATER) == []
        assert all(event.time >= LATER for events in logs(store).values() for event in events)


def check_nothing_is_lost(location, folder, before, known):
    with opened(location, durability="off") as store:
        assert states(store, 3) == known
        rest, moved = logs(store), in_files(folder) if folder.exists() else {}
    for name, events in before.items():
        assert rest[name] == events[len(events) - len(rest[name]) :]
        kept = {event.seq: event for event in (*moved.get(name, []), *rest[name])}
        assert [kept[seq] for seq in sorted(kept)] == events
