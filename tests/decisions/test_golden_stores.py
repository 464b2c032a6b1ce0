"""Stores of every schema that was ever released: their logs fold to the same numbers, from snapshots and from the beginning.

The bytes of a state may change with the format of a policy. The numbers may not, to the last bit. (On other processors and systems,
logarithms may differ in the last bit, so there the numbers must be close.) `tests/golden/make.py` makes these stores. A store is
never made anew so that a failing test may pass.
"""

import asyncio
import json
import math
import platform
import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest

from helpers.serving import Clock
from helpers.stores import all_events, check_integrity, everything, opened, reading
from robandit.decisions import experiment as experiments
from robandit.decisions.archiving import events_in, restore
from robandit.decisions.engine import SingleServerEngine
from robandit.decisions.events import KINDS, payload_of
from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.restoring import state_before
from robandit.decisions.settings import Settings
from robandit.storage import open_store
from robandit.storage.schema import VERSION

GOLDEN = Path(__file__).parents[1] / "golden"
STORES = sorted(GOLDEN.glob("service.schema*.db"))
ARCHIVES = sorted(GOLDEN.glob("archive.schema*.zip"))


@pytest.fixture(params=STORES, ids=lambda path: path.stem)
def path(request, tmp_path):
    return Path(shutil.copy(request.param, tmp_path / request.param.name))


@pytest.fixture
def expected(path):
    return json.loads((GOLDEN / path.name).with_suffix(".json").read_text())


def known(experiment):
    """Return what an experiment knows, in the form of the JSON files. It is written apart from `make.py`, since that may change."""
    return {
        "seq": experiment.seq,
        "epoch": experiment.epoch,
        "time": repr(experiment.time),
        "paused": experiment.paused,
        "counts": dict(experiment.counts),
        "open": [[row.id, row.arm, repr(row.propensity), repr(row.time)] for row in experiment.bandit.open],
        "estimates": [{name: repr(value) for name, value in row.items()} for row in experiment.bandit.estimates()],
    }


def check_equal(found, expected, machine):
    if machine == [platform.system(), platform.machine()]:
        assert found == expected
        return
    assert {**found, "estimates": None} == {**expected, "estimates": None}
    for row, other in zip(found["estimates"], expected["estimates"], strict=True):
        for name, text in other.items():
            if name in ("arm", "state", "pulls"):
                assert row[name] == text
            else:
                same = row[name] == text or math.isclose(float(row[name]), float(text), rel_tol=1e-12)
                assert same, (name, row[name], text)


def folded(reader, stored, snapshot=None, upto=None):
    settings = msgspec.json.decode(stored.settings, type=Settings)
    experiment = LiveExperiment(stored, settings, clock=Clock(0.0), find=reader.find, emit=None, compile="never")
    if snapshot is not None:
        experiment.restore(snapshot)
    experiment.apply_all(all_events(reader, stored.number)[experiment.seq : upto])
    return experiment


def test_there_is_a_golden_store_of_todays_schema():
    assert GOLDEN / f"service.schema{VERSION}.db" in STORES
    for path in STORES:
        assert path.stat().st_size < 160_000
        assert path.with_suffix(".json").exists()


def test_it_is_whole_and_has_events_of_every_kind(path):
    check_integrity(path)
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
        assert [each.name for each in found["experiments"]] == [
            "adakl-ucb", "ucb1", "epsilon-greedy", "ada2-tinf", "htinf", "gaussian-ts", "restarting",
        ]  # fmt: skip
        assert {event.kind for log in found["events"] for event in log} >= set(KINDS.values()) - {
            "upgraded",
            "allocated",
            "observed",
            "added",
            "scaled",
            "arm_alarmed",
        }
        assert sum(len(kept) for kept in found["snapshots"]) >= 10
        (key,) = found["keys"]
        assert (key.id, key.scopes, key.experiments, key.note) == ("golden", ("decide", "read"), ("ucb1",), "é")
        assert [entry.subject for entry in found["audit"]] == [each.name for each in found["experiments"]]
        assert store.next_number() == 9  # that of the removed one is not used again
        payloads = [payload_of(event) for log in found["events"] for event in log]
        contexts = {
            bytes(each.context) for each in payloads if getattr(each, "context", msgspec.UNSET) is not msgspec.UNSET
        }
        assert contexts == {b'{"user": "\xc3\xa9", "n": [1, 2.50]}'}


def test_the_whole_log_and_every_snapshot_fold_to_the_expected_numbers(path, expected):
    with opened(f"sqlite:{path}") as store, reading(store) as reader:
        for stored in reader.experiments():
            whole = folded(reader, stored)
            check_equal(known(whole), expected["experiments"][stored.name], expected["machine"])
            for last, content in reader.snapshots(stored.number):
                assert known(folded(reader, stored, content)) == known(whole)
                # The snapshot itself is also what the log says, in today's form.
                assert folded(reader, stored, content, last).seq == last
                assert known(folded(reader, stored, content, last)) == known(folded(reader, stored, upto=last))


def test_a_server_continues_with_it(path, expected, monkeypatch):
    monkeypatch.setattr(experiments, "__version__", "99.1")

    async def continued():
        store = open_store(f"sqlite:{path}")
        engine = SingleServerEngine(
            store, clock=Clock(1_700_000_000.0), compile="never"
        )  # a clock that is years behind
        await engine.load()
        for name, facts in expected["experiments"].items():
            experiment = engine.find(name)
            assert experiment.version == "99.1"
            assert experiment.seq == facts["seq"] + 1
            decisions = [event for event in all_events(engine.reader, experiment.number) if event.kind == "decided"]
            for event in decisions:
                given = payload_of(event)
                body = {"among": given.among, "arm": given.arm if given.given else None, "context": given.context}
                assert experiment.decide(event.id, **body).event == event
            last = decisions[-1]
            experiment.reward(last.id, 1.0) if experiment.is_open(last.id) else experiment.decide()
            made = experiment.decide("after the upgrade")
            experiment.reward("after the upgrade", 0.5)
            assert made.event.time >= float(facts["time"])
        await engine.settled()
        states = {name: experiment.snapshot().content for name, experiment in engine.experiments.items()}
        await engine.close()
        return states

    states = asyncio.run(continued())
    with opened(f"sqlite:{path}") as store, reading(store) as reader:
        for stored in reader.experiments():
            assert folded(reader, stored).snapshot().content == states[stored.name]


def test_decisions_can_be_explained(path):
    with opened(f"sqlite:{path}") as store, reading(store) as reader:
        for stored in reader.experiments():
            seq = next(event.seq for event in reader.events(stored.number, stored.head // 2) if event.kind == "decided")
            assert known(state_before(reader, stored, seq)) == known(folded(reader, stored, upto=seq - 1))


def test_there_is_a_golden_archive_of_todays_schema():
    assert GOLDEN / f"archive.schema{VERSION}.zip" in ARCHIVES


@pytest.mark.parametrize("source", ARCHIVES, ids=lambda path: path.stem)
def test_archived_events_are_read_and_give_the_base_again(source, tmp_path):
    with zipfile.ZipFile(source) as files:
        files.extractall(tmp_path)
    whole = source.with_name(f"{source.stem.replace('archive', 'service')}.db")
    expected = json.loads(whole.with_suffix(".json").read_text())
    with opened(f"sqlite:{shutil.copy(whole, tmp_path / 'whole.db')}") as store, reading(store) as reader:
        logs = {each.name: all_events(reader, each.number) for each in reader.experiments()}
    with opened(f"sqlite:{tmp_path / 'service.db'}") as store:

        def check_states():
            with reading(store) as reader:
                for stored in reader.experiments():
                    state = known(state_before(reader, stored, stored.head + 1))
                    check_equal(state, expected["experiments"][stored.name], expected["machine"])

        check_states()
        with reading(store) as reader:
            numbers = {each.name: each.number for each in reader.experiments()}
            lasts = {name: last for name, number in numbers.items() if (last := reader.archived(number))}
            assert {name: len(logs[name]) - last for name, last in lasts.items()} == {"adakl-ucb": 0, "ucb1": 16}
            for name, last in lasts.items():
                (path,) = tmp_path.glob(f"{name}.*.parquet")
                assert [event for part in events_in(path) for event in part] == logs[name][:last]
                assert all_events(reader, numbers[name]) == logs[name][last:]
        assert {stored.name: last for stored, last in restore(store, tmp_path)} == lasts
        check_states()
