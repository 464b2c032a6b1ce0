"""The contract of a store, as tests: one section for each promise at the top of `robandit.storage.base`.

A backend derives a class from `StoreContract` and gives it the fixture ``location``, a new empty place that `open_store` opens, and
the two methods that change what is stored there from outside. The tests use `open_store`, so that a child process can open the
same place.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.amount import amount
from helpers.stores import event, everything, key, killed_while_writing, opened, reading
from robandit.errors import CorruptFile, NewerFile, StoreError
from robandit.storage import AuditEntry, Event, StoredExperiment, StoredKey, open_store
from robandit.storage.base import (
    MOST_TAIL,
    Archive,
    Asked,
    Audit,
    Clash,
    Create,
    EndSession,
    Found,
    NewEpoch,
    PutKey,
    PutSession,
    Remove,
    Snapshot,
    StoredSession,
)

EXAMPLES = settings(
    max_examples=amount(40, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

OPENER = """
import sys
from robandit.errors import StoreError
from robandit.storage import open_store
try:
    open_store(sys.argv[1]).close()
except StoreError as error:
    print(error)
    sys.exit(3)
"""


class StoreContract:
    """The tests. They are the same for all backends."""

    rows_per_tidy = 5000
    """At most this many events are removed by one call of `tidy`."""

    @pytest.fixture
    def location(self):
        raise NotImplementedError("a backend gives the location of a new store")

    def make_newer(self, location):
        """Raise the version of the schema of a closed store beyond what this version reads."""
        raise NotImplementedError

    def damage(self, location):
        """Damage a closed store so that it cannot be opened."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, location):
        with opened(location, durability="off") as store:
            yield store

    def test_the_first_key_is_stored_once(self, store):
        audit = Audit(1.0, "", "a", "", b"{}")
        assert store.commit_first_key([PutKey(key("a")), audit])
        assert not store.commit_first_key([PutKey(key("b")), audit])
        found = everything(store)
        assert ([each.id for each in found["keys"]], len(found["audit"])) == (["a"], 1)

    def test_sessions_come_and_go(self, store):
        first, second, over = (StoredSession(b"%d" % ends * 16, "k", float(ends)) for ends in (50, 60, 40))
        store.commit((), [PutSession(second, 10.0), PutSession(over, 10.0)])
        with reading(store) as reader:
            assert reader.sessions() == [over, second]
        store.commit((), [PutSession(first, 45.0)])
        with reading(store) as reader:
            assert reader.sessions() == [first, second]  # the other one has ended by itself
        store.commit((), [EndSession(second.hash), EndSession(b"unknown")])
        with reading(store) as reader:
            assert reader.sessions() == [first]

    @pytest.fixture
    def filled(self, store):
        """A store with two experiments, three events, a snapshot, a key and an entry of the audit log."""
        store.commit((), (Create(1, "one", b'{"seed": 1}'), Create(2, "two", b"{}")))
        store.commit(
            (event(1), event(2), event(1, number=2)),
            (Snapshot(1, 2, b"state"), PutKey(key()), Audit(3.0, "k", "create", "one", b"[1]")),
        )
        return store

    # --- durable ------------------------------------------------------------------------------------------------------

    def test_what_was_committed_is_there_after_closing(self, location):
        limited = key("limited", experiments=("one", "two"), expires=2.5, revoked=2.25, created=9.0)
        with opened(location) as store:
            assert everything(store) == {"experiments": [], "events": [], "snapshots": [], "keys": [], "audit": []}
            store.commit((), (Create(1, "one", b'{"seed": 1}'), Create(7, "two", b"{}")))
            store.commit((event(1), event(2), event(1, number=7)), ())
            store.commit((event(3),), (Snapshot(1, 3, b"\0\xff"), NewEpoch(7, 2), PutKey(key()), PutKey(limited)))
            store.commit((), (Audit(3.0, "k", "create", "one", b"[1]"), Audit(4.0, "(start)", "reset", "two", b"{}")))
            before = everything(store)
        assert before == {
            "experiments": [StoredExperiment(1, "one", 3, 0, b'{"seed": 1}'), StoredExperiment(7, "two", 1, 2, b"{}")],
            "events": [[event(1), event(2), event(3)], [event(1, number=7)]],
            "snapshots": [[(3, b"\0\xff")], []],
            "keys": [key(), limited],
            "audit": [AuditEntry(1, 3.0, "k", "create", "one", b"[1]"), AuditEntry(2, 4.0, "(start)", "reset", "two", b"{}")],
        }  # fmt: skip
        with opened(location) as store:
            assert everything(store) == before

    @pytest.mark.parametrize("groups", amount([1, 23], [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]))
    def test_a_killed_process_loses_nothing_that_it_acknowledged(self, location, groups):
        """Nor is a commit stored by halves: this test is one of the next promise, too."""
        acknowledged = killed_while_writing(location, groups)
        with opened(location) as store:
            found = everything(store)
            heads = {each.head for each in found["experiments"]}
            assert len(heads) == 1
            stored, rest = divmod(heads.pop(), 4)
            assert rest == 0
            assert acknowledged <= stored <= acknowledged + 1
            assert [len(log) for log in found["events"]] == [4 * stored] * 2
            assert [seq for log in found["snapshots"] for seq, _ in log][::2] == [4 * stored] * 2 or stored == 1
            assert [entry.subject for entry in found["audit"]] == [str(k) for k in range(1, stored + 1)]
            store.commit([event(4 * stored + 1)], ())

    # --- atomic -------------------------------------------------------------------------------------------------------

    refused: ClassVar = {
        "a gap": [event(4)],
        "an event that is there": [event(2, id="x")],
        "a gap in a commit": [event(3), event(5)],
        "the wrong order": [event(4), event(3)],
        "twice": [event(3), event(3, id="x")],
        "an id that is there": [event(3, id="1")],
        "an id twice in a commit": [event(3, id="x"), event(4, id="x")],
        "an unknown experiment": [event(3), event(1, number=5)],
        "from 0": [event(0, number=2)],
    }

    @pytest.mark.parametrize("events", refused.values(), ids=refused)
    def test_refused_events_change_nothing(self, filled, events):
        before = everything(filled)
        changes = (Create(3, "three", b"{}"), Remove(2), PutKey(key("new")), Audit(9.0, "k", "a", "s", b"{}"))
        with pytest.raises(StoreError):
            filled.commit(events, (*changes[:1], *changes[2:]) if events[0].experiment == 2 else changes)
        assert everything(filled) == before
        filled.commit([event(3)], changes)
        assert [each.name for each in everything(filled)["experiments"]] == ["one", "three"]

    @pytest.mark.parametrize("twice", [Create(3, "one", b"{}"), Create(1, "three", b"{}")], ids=["name", "number"])
    def test_refused_changes_change_nothing(self, filled, twice):
        before = everything(filled)
        with pytest.raises(StoreError):
            filled.commit([event(3)], [Snapshot(1, 3, b"new"), Create(4, "four", b"{}"), twice])
        assert everything(filled) == before
        filled.commit([event(3)], [])

    def test_a_removed_number_is_not_made_again(self, filled):
        filled.commit((), [Remove(1)])
        before = everything(filled)
        with pytest.raises(StoreError):
            filled.commit((), [Create(1, "again", b"{}"), Remove(1)])
        assert everything(filled) == before

    # --- ordered ------------------------------------------------------------------------------------------------------

    def test_events_of_several_experiments_in_one_commit(self, filled):
        mixed = [event(3), event(2, number=2), event(4), event(3, number=2), event(5)]
        filled.commit(mixed, ())
        found = everything(filled)
        assert [each.head for each in found["experiments"]] == [5, 3]
        assert [[each.seq for each in log] for log in found["events"]] == [[1, 2, 3, 4, 5], [1, 2, 3]]

    def test_events_are_read_in_pieces(self, filled):
        filled.commit([event(seq) for seq in range(3, 3001)], ())
        with reading(filled) as reader:
            assert [each.seq for each in reader.events(1)] == list(range(1, 1001))
            assert [each.seq for each in reader.events(1, 2990)] == list(range(2991, 3001))
            assert [each.seq for each in reader.events(1, 10, most=3)] == [11, 12, 13]
            assert reader.events(1, 3000) == reader.events(9) == []

    def test_the_newest_events_of_a_kind(self, filled):
        filled.commit([event(3, kind="rewarded"), event(4), event(5, kind="rewarded"), event(2, number=2)], ())
        with reading(filled) as reader:
            assert [each.seq for each in reader.latest(1, "decided", 5, 2)] == [4, 2]
            assert [each.seq for each in reader.latest(1, "decided", 3, 9)] == [2, 1]
            assert reader.latest(1, "rewarded", 3, 9) == [event(3, kind="rewarded")]
            assert reader.latest(1, "late", 5, 9) == reader.latest(3, "decided", 5, 9) == []

    def test_events_are_counted_by_kind_and_arm(self, store):
        """Against a plain count, with arms of any text, and events without an arm."""
        store.commit((), (Create(1, "one", b"{}"), Create(2, "two", b"{}")))
        random.seed(4)
        arms = ["a", "b'\"<x>", "\u00e9\u4e16", None]
        made = []
        for seq in range(1, 301):
            arm, kind = random.choice(arms), random.choice(["decided", "rewarded", "expired"])
            payload = {"context": {"arm": "z", "odd": "\0"}} | ({} if arm is None else {"arm": arm})
            made.append(event(seq, kind=kind, payload=json.dumps(payload).encode()))
        store.commit(made, ())
        store.commit([event(1, number=2)], ())
        with reading(store) as reader:
            for after, last in ((0, 300), (17, 250), (299, 300), (300, 300)):
                expected = Counter((each.kind, json.loads(each.payload).get("arm")) for each in made[after:last])
                found = reader.tallies(1, after, last)
                assert {(kind, arm): count for kind, arm, count in found} == expected
                assert len(found) == len(expected)

    def test_the_first_event_since_a_time(self, store):
        store.commit((), (Create(1, "one", b"{}"),))
        times = [1.0, 2.0, 2.0, 2.0, 5.0]
        store.commit([event(seq, time=time) for seq, time in enumerate(times, start=1)], ())
        with reading(store) as reader:
            asked = [0.0, 1.0, 1.5, 2.0, 2.5, 5.0, 5.5]
            assert [reader.first_since(1, time, 5) for time in asked] == [1, 1, 2, 2, 5, 5, 6]
            assert reader.first_since(1, 0.0, 0) == 1
            assert reader.first_since(9, 0.0, 3) == 4  # removed

    def test_experiments_are_listed_in_the_order_of_their_numbers(self, store):
        store.commit((), [Create(5, "a", b"{}"), Create(2, "z", b"{}"), Create(3, "m", b"{}")])
        assert [each.number for each in everything(store)["experiments"]] == [2, 3, 5]

    def test_keys_are_listed_in_the_order_in_which_they_were_made(self, store):
        store.commit((), [PutKey(key("b", created=1.0)), PutKey(key("c", created=3.0)), PutKey(key("a", created=2.0))])
        assert [each.id for each in everything(store)["keys"]] == ["b", "a", "c"]
        revoked = key("b", created=1.0, revoked=7.0, note="left")
        store.commit((), [PutKey(revoked)])
        assert everything(store)["keys"] == [revoked, key("a", created=2.0), key("c", created=3.0)]

    def test_the_audit_log_is_read_in_pieces(self, store):
        store.commit((), [Audit(float(k), "k", "a", str(k), b"{}") for k in range(1, 1201)])
        with reading(store) as reader:
            assert [entry.seq for entry in reader.audit()] == list(range(1, 1001))
            assert [entry.subject for entry in reader.audit(1195)] == ["1196", "1197", "1198", "1199", "1200"]
            assert [entry.seq for entry in reader.audit(3, most=2)] == [4, 5]

    # --- unique -------------------------------------------------------------------------------------------------------

    def test_an_id_is_unique_for_its_kind_and_experiment(self, filled):
        filled.commit([event(3, kind="rewarded", id="1"), event(2, number=2, id="2")], ())
        with reading(filled) as reader:
            assert reader.find(1, "decided", "1") == event(1)
            assert reader.find(1, "rewarded", "1") == event(3, kind="rewarded", id="1")
            assert reader.find(2, "decided", "2") == event(2, number=2)
            absent = [(1, "rewarded", "2"), (3, "decided", "1"), (1, "decided", "01"), (1, "Decided", "1")]
            assert [reader.find(*each) for each in absent] == [None] * 4

    def test_ids_and_names_differ_by_case_and_spaces(self, filled):
        ids = ["a", "A", "a ", " a", "é", "e\u0301"]
        filled.commit([event(seq, id=id) for seq, id in enumerate(ids, start=3)], [Create(3, "One", b"{}")])
        with reading(filled) as reader:
            assert [reader.find(1, "decided", id).seq for id in ids] == [3, 4, 5, 6, 7, 8]

    # --- exclusive or shared: see the two classes at the end ------------------------------------------------------------

    def test_it_can_be_opened_again_after_closing_and_failing(self, location):
        for _ in range(2):
            open_store(location).close()
        self.make_newer(location)
        for _ in range(2):
            with pytest.raises(NewerFile):
                open_store(location)

    # --- readable -----------------------------------------------------------------------------------------------------

    def test_readers_see_whole_commits_only(self, store):
        """While one thread commits, readers in other threads see all of a commit or nothing of it, and never go back."""
        groups, size = amount(150, 2000), 5
        store.commit((), [Create(1, "one", b"0"), Create(2, "two", b"0")])
        committed = [0]
        failures = []

        def read():
            last = 0
            with reading(store) as reader:
                while last < groups and not failures:
                    before = committed[0]
                    heads = {each.head for each in reader.experiments()}
                    audited = len(reader.audit(most=groups))
                    seen = len(reader.events(1, most=groups * size))
                    kept = reader.snapshots(2)
                    newest = kept[0][0] if kept else 0
                    head = heads.pop()
                    ordered = before * size <= head <= audited * size <= seen <= newest
                    whole = not heads and not head % size and not seen % size and not newest % size
                    consistent = all(content == b"%d" % seq for seq, content in kept) and len(kept) <= 2
                    if not (ordered and whole and consistent and last <= head // size):
                        failures.append((before, head, audited, seen, newest, last))
                    last = head // size

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for group in range(1, groups + 1):
            first = (group - 1) * size + 1
            events = [event(seq, number=number) for number in (1, 2) for seq in range(first, first + size)]
            newest = Snapshot(2, group * size, b"%d" % (group * size))
            store.commit(events, [newest, Audit(1.0, "k", "a", str(group), b"{}")])
            committed[0] = group
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert failures == []

    def test_a_reader_does_not_keep_commits_from_being_stored(self, filled):
        with reading(filled) as reader:
            assert len(reader.events(1)) == 2
            for seq in range(3, 50):
                filled.commit([event(seq)], ())
                assert reader.events(1, seq - 1) == [event(seq)]
                assert reader.find(1, "decided", str(seq)) == event(seq)

    # --- exact --------------------------------------------------------------------------------------------------------

    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
    names = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=200)
    numbers = st.floats(allow_nan=False, allow_infinity=False)

    @EXAMPLES
    @given(data=st.data())
    def test_texts_bytes_and_floats_come_back_as_they_were_stored(self, store, data):
        number = store.next_number()
        texts, names, numbers = self.texts, self.names, self.numbers
        encoded = st.one_of(texts, numbers, st.lists(texts)).map(lambda x: json.dumps(x, ensure_ascii=False).encode())
        ids = data.draw(st.lists(names, min_size=1, max_size=5, unique=True))
        events = [
            Event(number, seq, data.draw(st.sampled_from(["decided", "late"])), id, data.draw(encoded), data.draw(numbers))
            for seq, id in enumerate(ids, start=1)
        ]  # fmt: skip
        content = data.draw(st.binary(max_size=5000))
        moments = st.one_of(st.none(), numbers)
        stored = StoredKey(
            f"{number}",
            data.draw(st.binary(min_size=32, max_size=32)),
            data.draw(st.lists(texts).map(tuple)),
            data.draw(st.one_of(st.none(), st.lists(texts).map(tuple))),
            data.draw(texts),
            data.draw(numbers),
            data.draw(moments),
            data.draw(moments),
        )
        entry = Audit(data.draw(numbers), data.draw(texts), data.draw(texts), data.draw(texts), data.draw(encoded))
        given = StoredExperiment(number, f"{number} {data.draw(texts)}", len(events), 0, data.draw(encoded))
        changes = [Create(number, given.name, given.settings), Snapshot(number, 1, content), PutKey(stored), entry]
        store.commit(events, changes)
        with reading(store) as reader:
            found = reader.events(number)
            assert reader.experiments()[-1] == given
            assert found == events
            assert [each.time.hex().lstrip("-") for each in found] == [each.time.hex().lstrip("-") for each in events]
            assert [reader.find(number, each.kind, each.id) for each in events] == events
            assert reader.snapshots(number) == [(1, content)]
            assert [each for each in reader.keys() if each.id == stored.id] == [stored]  # noqa: SIM118
            assert [each[1:] for each in reader.audit(most=10_000)][-1] == entry

    def test_extreme_floats(self, filled):
        times = [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1e-17 + 1, 2.0**53 + 2, 1e22]
        times += [random.Random(3).uniform(0.0, 2e9) for _ in range(100)]
        filled.commit([event(seq, time=time) for seq, time in enumerate(times, start=3)], ())
        with reading(filled) as reader:
            assert [each.time.hex() for each in reader.events(1, 2)] == [time.hex() for time in times]

    def test_large_contents(self, filled):
        rng = random.Random(5)
        payload, content = json.dumps("é" * 300_000).encode(), rng.randbytes(3_000_000)
        filled.commit([event(3, payload=payload)], [Snapshot(1, 3, content)])
        with reading(filled) as reader:
            assert reader.find(1, "decided", "3").payload == payload
            assert reader.snapshots(1)[0] == (3, content)

    # --- versioned ----------------------------------------------------------------------------------------------------

    def test_a_newer_schema_is_refused_by_name(self, location):
        with opened(location) as store:
            store.commit((), [Create(1, "one", b"{}")])
        self.make_newer(location)
        with pytest.raises(NewerFile, match=r"this Robandit reads up to .*: upgrade robandit"):
            open_store(location)

    def test_a_damaged_store_is_refused_by_name(self, location):
        with opened(location) as store:
            store.commit((), [Create(1, "one", b"{}")])
        self.damage(location)
        with pytest.raises(CorruptFile):
            open_store(location)

    # --- experiments that go ------------------------------------------------------------------------------------------

    def test_a_removed_experiment_is_gone_with_all_that_belongs_to_it(self, filled):
        filled.commit([event(3), event(2, number=2)], [Remove(1), Snapshot(1, 3, b"late"), NewEpoch(1, 4)])
        found = everything(filled)
        assert [each.name for each in found["experiments"]] == ["two"]
        assert found["events"] == [[event(1, number=2), event(2, number=2)]]
        assert len(found["keys"]) == len(found["audit"]) == 1
        with reading(filled) as reader:
            assert reader.snapshots(1) == []
        with pytest.raises(StoreError):
            filled.commit([event(3)], ())
        while filled.tidy():
            pass
        with reading(filled) as reader:
            assert reader.events(1) == []
            assert reader.find(1, "decided", "1") is None
        assert everything(filled) == found

    def test_a_name_is_used_again_in_the_commit_that_frees_it(self, filled):
        new = [event(1, number=3, id="new"), event(2, number=3)]
        filled.commit([event(3), *new], [Remove(1), Create(3, "one", b"3"), Snapshot(3, 2, b"new")])
        expected = [StoredExperiment(2, "two", 1, 0, b"{}"), StoredExperiment(3, "one", 2, 0, b"3")]
        for _ in range(2):
            found = everything(filled)
            assert found["experiments"] == expected
            assert found["events"][1] == new
            assert found["snapshots"][1] == [(2, b"new")]
            while filled.tidy():
                pass

    def test_made_and_removed_and_made_in_one_commit(self, filled):
        changes = [Create(3, "x", b"3"), Snapshot(3, 1, b""), Remove(3), Create(4, "x", b"4"), NewEpoch(4, 1)]
        filled.commit([event(1, number=3), event(1, number=4)], changes)
        found = everything(filled)
        assert found["experiments"][2:] == [StoredExperiment(4, "x", 1, 1, b"4")]
        assert filled.next_number() == 5

    def test_tidying_takes_several_steps(self, filled, location):
        many = 2 * self.rows_per_tidy + 10
        filled.commit([event(seq) for seq in range(3, many + 1)], ())
        filled.commit((), [Create(3, "three", b"{}")])
        filled.commit([event(1, number=3)], [Remove(1), Remove(3)])
        before = everything(filled)
        left = [many]
        while filled.tidy():
            with reading(filled) as reader:
                left.append(len(reader.events(1, most=many)))
            assert left[-2] - left[-1] <= self.rows_per_tidy
            assert everything(filled) == before
            filled.commit([event(len(left), number=2)], ())  # commits are possible in between
            before = everything(filled)
        assert left[-1] == 0
        assert 3 <= len(left) <= 7
        assert not filled.tidy()
        assert filled.next_number() == 4

    def test_tidying_continues_after_a_restart(self, location):
        with opened(location, durability="off") as store:
            store.commit((), [Create(1, "one", b"{}")])
            store.commit([event(seq) for seq in range(1, self.rows_per_tidy + 11)], ())
            store.commit((), [Remove(1)])
            assert store.tidy()
        with opened(location, durability="off") as store:
            while store.tidy():
                pass
            with reading(store) as reader:
                assert reader.events(1) == []
            assert store.next_number() == 2

    def test_numbers_are_never_used_again(self, location):
        with opened(location) as store:
            assert store.next_number() == 1
            store.commit((), [Create(1, "a", b"{}"), Create(4, "b", b"{}")])
            assert store.next_number() == 5
            store.commit((), [Remove(4)])
            assert store.next_number() == 5
            while store.tidy():
                pass
            assert store.next_number() == 5
            store.commit((), [Remove(1)])
            while store.tidy():
                pass
        with opened(location) as store:
            assert store.next_number() == 5
            store.commit((), [Create(5, "b", b"{}")])
            assert store.next_number() == 6

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def test_the_two_newest_snapshots_are_kept(self, filled):
        filled.commit((), [Snapshot(2, 1, b"other")])
        for seq in range(3, 7):
            filled.commit([event(seq)], [Snapshot(1, seq, b"%d" % seq)])
        assert everything(filled)["snapshots"] == [[(6, b"6"), (5, b"5")], [(1, b"other")]]
        filled.commit([event(7), event(8)], [Snapshot(1, 7, b"7"), Snapshot(1, 8, b"8"), Snapshot(1, 8, b"again")])
        assert everything(filled)["snapshots"][0] == [(8, b"again"), (7, b"7")]

    def test_a_reset_removes_the_snapshots_before_it(self, filled):
        filled.commit([event(3)], [Snapshot(1, 3, b"old"), NewEpoch(1, 1), Snapshot(1, 3, b"new")])
        found = everything(filled)
        assert found["snapshots"][0] == [(3, b"new")]
        assert found["experiments"][0].epoch == 1
        assert len(found["events"][0]) == 3

    # --- archived events ----------------------------------------------------------------------------------------------

    def test_a_base_stands_in_place_of_the_first_events(self, filled):
        filled.commit([event(seq) for seq in range(3, 11)], [Snapshot(1, 4, b"4"), Snapshot(1, 10, b"10")])
        filled.commit((), [Archive(1, 6, b"base")])
        with reading(filled) as reader:
            assert reader.snapshots(1) == [(10, b"10"), (6, b"base")]  # that of event 4 would lack the events after it
            assert (reader.archived(1), reader.archived(2), reader.archived(9)) == (6, 0, 0)
        while filled.tidy():
            pass
        with reading(filled) as reader:
            assert reader.events(1) == [event(seq) for seq in range(7, 11)]
            assert reader.find(1, "decided", "6") is None
            assert reader.events(2) == [event(1, number=2)]
        filled.commit([event(11), event(12, id="6")], ())  # the log goes on, and the id is free
        with pytest.raises(StoreError):
            filled.commit([event(1)], ())

    def test_a_base_is_replaced_by_a_newer_one_only(self, filled):
        filled.commit([event(3), event(4)], [Archive(1, 3, b"3")])
        filled.commit((), [Archive(1, 2, b"older"), Archive(2, 2, b"beyond the log"), Archive(9, 1, b"unknown")])
        with reading(filled) as reader:
            assert reader.snapshots(1) == [(3, b"3")]
            assert reader.snapshots(2) == reader.snapshots(9) == []
        filled.commit((), [Archive(1, 3, b"again")])
        with reading(filled) as reader:
            assert reader.snapshots(1) == [(3, b"again")]
        filled.commit((), [Archive(1, 4, b"4")])
        while filled.tidy():
            pass
        with reading(filled) as reader:
            assert (reader.snapshots(1), reader.events(1)) == ([(4, b"4")], [])
        filled.commit([event(5)], ())

    def test_a_base_outlives_snapshots_and_resets_and_goes_with_its_experiment(self, filled):
        filled.commit([event(3), event(4)], [Archive(1, 2, b"base")])
        filled.commit((), [Snapshot(1, 3, b"3"), Snapshot(1, 4, b"4")])
        filled.commit([event(5)], [Snapshot(1, 5, b"5")])
        with reading(filled) as reader:
            assert reader.snapshots(1) == [(5, b"5"), (4, b"4"), (2, b"base")]
        filled.commit((), [NewEpoch(1, 1)])
        with reading(filled) as reader:
            assert reader.snapshots(1) == [(2, b"base")]
        filled.commit((), [Archive(2, 1, b"late"), Remove(1), Remove(2)])
        with reading(filled) as reader:
            assert reader.snapshots(1) == reader.snapshots(2) == []
            assert reader.archived(1) == 0

    def test_a_log_can_begin_after_a_base(self, store):
        store.commit((), [Create(1, "one", b"{}"), Archive(1, 7, b"base")])
        with pytest.raises(StoreError):
            store.commit([event(1)], ())
        store.commit([event(8)], ())
        with reading(store) as reader:
            assert (reader.experiments()[0].head, reader.events(1)) == (8, [event(8)])

    def test_archived_events_are_removed_in_several_steps_also_after_a_restart(self, location):
        many = self.rows_per_tidy + 10
        with opened(location, durability="off") as store:
            store.commit((), [Create(1, "one", b"{}"), Create(2, "two", b"{}")])
            store.commit([event(seq) for seq in range(1, many + 6)], [Archive(1, many, b"base")])
            store.commit([event(1, number=2), event(2, number=2)], [Archive(2, 1, b"base")])
            assert store.tidy()
            with reading(store) as reader:
                left = len(reader.events(1, most=many)) + len(reader.events(2))
            assert 0 < many + 7 - left <= self.rows_per_tidy
        with opened(location, durability="off") as store:
            while store.tidy():
                pass
            with reading(store) as reader:
                assert [each.seq for each in reader.events(1)] == list(range(many + 1, many + 6))
                assert [each.seq for each in reader.events(2)] == [2]

    def test_the_first_event_since_a_time_is_one_that_is_left(self, filled):
        filled.commit([event(seq, time=10.0 * seq) for seq in range(3, 21)], [Archive(1, 8, b"base")])
        for _ in range(2):  # before and after the events are removed
            with reading(filled) as reader:
                left = [each.seq for each in reader.events(1)]
                assert reader.first_since(1, 0.5, 20) == left[0]
                assert reader.first_since(1, 150.0, 20) == 15
                assert reader.first_since(1, 200.5, 20) == 21
            while filled.tidy():
                pass
        filled.commit((), [Archive(1, 20, b"base")])
        while filled.tidy():
            pass
        with reading(filled) as reader:
            assert reader.first_since(1, 0.5, 20) == 21

    # --- copies -------------------------------------------------------------------------------------------------------

    def test_an_incomplete_copy_is_refused_by_name_until_it_is_published(self, location):
        with opened(location, new=True) as store:
            store.commit((), [Create(1, "one", b"{}")])
        for new in (False, True):
            with pytest.raises(
                StoreError, match=r"is an incomplete copy of robandit migrate-store: remove .*, and migrate"
            ):
                open_store(location, new=new)

    def test_a_published_copy_is_a_store_like_any_other(self, location):
        with opened(location, new=True) as store:
            store.commit((), [Create(1, "one", b"{}")])
            store.publish()
        with opened(location) as store:
            assert [each.name for each in everything(store)["experiments"]] == ["one"]
        with pytest.raises(StoreError, match="has data"):
            open_store(location, new=True)

    def test_a_frozen_store_is_read_by_its_only_user(self, filled):
        before = everything(filled)
        with filled.frozen() as reader:
            assert reader.experiments() == before["experiments"]
            assert [reader.events(1), reader.events(2)] == before["events"]
            assert (reader.keys(), reader.audit(), reader.archived(1)) == (before["keys"], before["audit"], 0)
        filled.commit([event(3)], ())


class ExclusiveContract(StoreContract):
    """The contract of a store that one process at a time has open for writing."""

    def test_a_second_opener_is_refused(self, filled, location):
        before = everything(filled)
        with pytest.raises(StoreError, match="is used by another server: stop it first"):
            open_store(location)
        filled.commit([event(3)], ())
        assert everything(filled) != before

    def test_another_process_is_refused(self, filled, location):
        command = [sys.executable, "-c", OPENER, location]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (result.returncode, result.stderr) == (3, "")
        assert "is used by another server: stop it first" in result.stdout
        filled.commit([event(3)], ())
        filled.close()
        assert subprocess.run(command, check=False, timeout=60).returncode == 0


class SharedContract(StoreContract):
    """The contract of a store to which several processes write."""

    @pytest.fixture
    def other(self, filled, location):
        """The same store, as another process has it."""
        with opened(location, durability="off") as store:
            yield store

    def test_each_sees_the_commits_of_the_other(self, filled, other):
        filled.commit([event(3)], ())
        other.commit([event(4)], [Create(3, "three", b"{}")])
        assert everything(filled) == everything(other)
        assert [each.head for each in everything(filled)["experiments"]] == [4, 1, 0]

    def test_a_commit_that_does_not_follow_is_refused(self, filled, other):
        filled.commit([event(3)], ())
        before = everything(filled)
        with pytest.raises(StoreError, match="does not follow"):
            other.commit([event(3, id="x")], [Audit(1.0, "k", "a", "s", b"{}")])
        assert everything(filled) == before

    @pytest.mark.parametrize("twice", [Create(3, "one", b"{}"), Create(1, "three", b"{}")], ids=["name", "number"])
    def test_names_and_numbers_clash(self, other, twice):
        with pytest.raises(Clash):
            other.commit((), [twice])

    def test_a_turn_reads_the_tail_and_the_ids(self, filled, other):
        filled.commit([event(3, kind="rewarded", id="1"), event(4)], ())
        turn = other.turn(1, 2, ["1", "absent"])
        found = turn.found[1]
        assert (found.head, found.snapshot) == (4, 2)
        assert found.tail == [event(3, kind="rewarded", id="1"), event(4)]
        assert sorted(found.known) == [event(1), event(3, kind="rewarded", id="1")]
        assert abs(turn.time - time.time()) < 60.0
        turn.commit([event(5)], [Snapshot(1, 5, b"new")])
        assert everything(filled)["experiments"][0].head == 5
        later = filled.turn(1, 5, [])
        assert later.found == {1: Found(5, 5, [], [])}
        assert later.time > turn.time
        later.cancel()
        assert everything(filled)["experiments"][0].head == 5

    def test_a_turn_includes_others_that_are_free(self, filled, other):
        filled.commit([event(3), event(2, number=2)], [Create(3, "three", b"{}"), Create(4, "four", b"{}")])
        kept = filled.turn(3, 0, [])
        asked = [Asked(2, 1, ["1", "2"]), Asked(3, 0, []), Asked(4, 0, ["1"]), Asked(5, 0, [])]
        turn = other.turn(1, 2, ["1"], asked)
        both = [event(1, number=2), event(2, number=2)]
        assert {number: each._replace(known=sorted(each.known)) for number, each in turn.found.items()} == {
            1: Found(3, 2, [event(3)], [event(1)]),
            2: Found(2, 0, both[1:], both),
            4: Found(0, 0, [], []),
        }
        kept.commit([event(1, number=3)], ())  # nobody waits for it
        turn.commit([event(4), event(1, number=4), event(3, number=2), event(2, number=4)], ())
        assert turn.ended
        assert [each.head for each in everything(filled)["experiments"]] == [4, 3, 1, 2]

    def test_a_turn_of_several_stores_all_or_nothing(self, filled, other):
        before = everything(filled)
        with pytest.raises(StoreError, match="does not follow"):
            other.turn(1, 2, [], [Asked(2, 1, [])]).commit([event(3), event(3, number=2)], ())
        with pytest.raises(StoreError, match="unknown experiment"):
            other.turn(1, 2, []).commit([event(3), event(2, number=2)], ())
        with pytest.raises(Clash):
            other.turn(1, 2, [], [Asked(2, 1, [])]).commit([event(3), event(2, number=2, id="1")], ())
        assert everything(filled) == before

    def test_turns_of_several_do_not_wait_in_a_circle(self, filled, other):
        """Two threads take both experiments, in different orders. If they kept one while they wait, both would stop."""

        def append(store, first, second):
            for _ in range(50):
                turn = store.turn(first, 0, [], [Asked(second, 0, [])])
                turn.commit([event(found.head + 1, number=number) for number, found in turn.found.items()], ())

        threads = [threading.Thread(target=append, args=each) for each in ((filled, 1, 2), (other, 2, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        heads = [each.head for each in everything(filled)["experiments"]]
        assert not any(thread.is_alive() for thread in threads)
        assert min(heads) > 50

    def test_a_turn_of_an_experiment_that_is_gone(self, filled, other):
        filled.commit((), [Remove(1)])
        turn = other.turn(1, 2, [])
        assert turn.found == {1: Found(None, 0, [], [])}
        turn.cancel()
        assert other.tail(1, 2) == (None, [])

    def test_a_turn_has_the_time_although_its_first_experiment_is_gone(self, filled, other):
        filled.commit((), [Remove(1)])
        turn = other.turn(1, 2, [], [Asked(2, 0, [])])
        turn.cancel()
        assert (turn.found[1].head, turn.found[2].head) == (None, 1)
        assert abs(turn.time - filled.pulse().time) < 60.0

    def test_the_time_of_a_turn_is_when_it_begins_not_when_it_is_asked_for(self, filled, other):
        first = filled.turn(1, 2, [])
        found = []
        waiting = threading.Thread(target=lambda: found.append(other.turn(1, 2, [])))
        waiting.start()
        waiting.join(0.2)  # by then, it waits; if it does not, this test shows nothing
        before = filled.pulse().time
        first.cancel()
        waiting.join(60)
        found[0].cancel()
        assert found[0].time >= before

    def test_a_turn_commits_only_what_follows(self, filled, other):
        for wrong in ([event(4)], [event(2, id="x")], [event(3), event(5)], [event(3, id="1")], [event(2, number=2)]):
            with pytest.raises(StoreError):
                other.turn(1, 2, []).commit(wrong, [Audit(1.0, "k", "a", "s", b"{}")])
        assert everything(filled)["experiments"][0].head == 2
        assert len(everything(filled)["audit"]) == 1

    def test_turns_of_one_experiment_exclude_each_other(self, filled, other):
        """Two threads append 100 events each, with the next number that their turn says. Without the lock, some would clash."""
        count = 100

        def append(store, name):
            for k in range(count):
                turn = store.turn(1, 0, [])
                found = turn.found[1]
                assert found.tail[-1].seq == found.head
                turn.commit([event(found.head + 1, id=f"{name}-{k}")], ())

        threads = [threading.Thread(target=append, args=each) for each in ((filled, "a"), (other, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        log = everything(filled)["events"][0]
        assert [each.seq for each in log] == list(range(1, 2 * count + 3))
        assert {each.id for each in log[2:]} == {f"{name}-{k}" for name in "ab" for k in range(count)}

    def test_turns_of_different_experiments_and_reads_go_on(self, filled, other):
        turn = filled.turn(1, 0, [])
        other.turn(2, 0, []).commit([event(2, number=2)], ())
        assert other.tail(1, 0) == (2, [event(1), event(2)])
        assert everything(other)["experiments"][1].head == 2
        turn.commit([event(3)], ())
        assert other.tail(1, 1) == (3, [event(2), event(3)])

    def test_a_long_tail_comes_in_pieces(self, filled, other):
        filled.commit([event(seq) for seq in range(3, MOST_TAIL + 50)], ())
        turn = other.turn(1, 2, [])
        turn.cancel()
        assert [each.seq for each in turn.found[1].tail] == list(range(3, MOST_TAIL + 3))
        assert turn.found[1].head == MOST_TAIL + 49
        head, tail = other.tail(1, MOST_TAIL)
        assert (head, len(tail)) == (MOST_TAIL + 49, 49)

    def test_an_experiment_is_found_by_name(self, filled, other):
        assert other.find_name("one") == StoredExperiment(1, "one", 2, 0, b'{"seed": 1}')
        assert other.find_name("One") is None

    def test_the_pulse_shows_what_others_did(self, filled, other):
        first = other.pulse()
        assert first.heads == {1: 2, 2: 1}
        assert abs(first.time - time.time()) < 60.0
        filled.commit([event(3)], ())
        second = other.pulse()
        assert (second.heads, second.catalogue) == ({1: 3, 2: 1}, first.catalogue)
        for change in (
            Create(3, "c", b"{}"),
            PutKey(key("n")),
            PutSession(StoredSession(b"x", "n", 9e9), 1.0),
            EndSession(b"x"),
            Remove(3),
        ):
            before = other.pulse().catalogue
            filled.commit((), [change])
            assert other.pulse().catalogue > before
        assert 3 not in other.pulse().heads

    def test_entries_of_the_audit_log_are_numbered_in_the_order_of_their_commits(self, filled, other):
        def write(store, name):
            for k in range(50):
                store.commit((), [Audit(1.0, name, "a", str(k), b"{}")])

        threads = [threading.Thread(target=write, args=each) for each in ((filled, "a"), (other, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [entry.seq for entry in everything(filled)["audit"]] == list(range(1, 102))

    def test_one_server_makes_the_first_key(self, store, location):
        made = []

        def start(id):
            with opened(location) as other:
                made.append(other.commit_first_key([PutKey(key(id))]))

        threads = [threading.Thread(target=start, args=(id,)) for id in "abcdef"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(made) == [False] * 5 + [True]
        assert len(everything(store)["keys"]) == 1

    def test_a_store_is_not_frozen_while_another_process_uses_it(self, filled, location):
        with opened(location) as other:
            other.pulse()
            with pytest.raises(StoreError, match=r"is used by another server .*: stop all"), filled.frozen():
                pass

    def test_one_server_makes_the_schema_and_the_others_wait(self, location):
        processes = [subprocess.Popen([sys.executable, "-c", OPENER, location]) for _ in range(4)]
        assert [process.wait(60) for process in processes] == [0] * 4
