"""Stores for tests: small events, all that a store holds, groups of commits, and a process that is killed while it commits."""

import signal
import subprocess
import sys
from contextlib import closing, contextmanager

import apsw

from robandit.storage import Event, StoredKey, open_store
from robandit.storage.base import Audit, Snapshot

# Commits groups of events for ever: each has a snapshot, an entry of the audit log, and events of two experiments. It prints the
# number of a group when it is committed.
WRITER = """
import sys
from robandit.storage import Event, open_store
from robandit.storage.base import Audit, Create, Snapshot
location, size = sys.argv[1], int(sys.argv[2])
store = open_store(location)
store.commit((), (Create(1, "one", b"{}"), Create(2, "two", b"{}")))
group = 0
while True:
    group += 1
    events = [
        Event(number, (group - 1) * size + k, "decided", f"{group}-{k}", b'{"padding": "%s"}' % (b"x" * 200), float(group))
        for k in range(1, size + 1)
        for number in (1, 2)
    ]
    events.sort()
    content = b"%d" % group * 100
    changes = [Snapshot(1, group * size, content), Snapshot(2, group * size, content), Audit(1.0, "", "a", str(group), b"{}")]
    store.commit(events, changes)
    print(group, flush=True)
"""


def event(seq, number=1, kind="decided", id=None, payload=b'{"arm": "a"}', time=None):
    return Event(number, seq, kind, str(seq) if id is None else id, payload, float(seq) if time is None else time)


def key(id="k", **changes):
    made = StoredKey(id, bytes(range(32)), ("decide", "read"), None, "for tests", 1.5, None, None)
    return made._replace(**changes)


def everything(store):
    """Return all that a new reader sees."""
    reader = store.reader()
    try:
        found = reader.experiments()
        return {
            "experiments": found,
            "events": [all_events(reader, each.number) for each in found],
            "snapshots": [reader.snapshots(each.number) for each in found],
            "keys": reader.keys(),
            "audit": reader.audit(),
        }
    finally:
        reader.close()


def all_events(reader, number):
    found = []
    while more := reader.events(number, found[-1].seq if found else 0, most=700):
        found += more
    return found


@contextmanager
def opened(location, **options):
    store = open_store(location, **options)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def reading(store):
    reader = store.reader()
    try:
        yield reader
    finally:
        reader.close()


def killed_while_writing(location, groups, size=4):
    """Let another process commit this many groups and more, kill it, and return the number of the last one that it printed."""
    command = [sys.executable, "-c", WRITER, location, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= groups:
                break
        process.send_signal(signal.SIGKILL)
        return max([groups, *map(int, process.stdout.read().split("\n")[:-1])])


def commit_group(store, group, size=4):
    """Commit events of an experiment with a snapshot and an entry of the audit log."""
    first = (group - 1) * size + 1
    events = [event(seq, payload=b'"%s"' % (b"x" * 300)) for seq in range(first, first + size)]
    changes = [Snapshot(1, events[-1].seq, b"%d" % group * 500), Audit(1.0, "k", "a", str(group), b"{}")]
    store.commit(events, changes)


def check_integrity(path):
    """Let SQLite check all pages, indices and rules of a database."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def check_whole(path, least, most, size=4):
    """Check that a store has whole groups only, from ``least`` to ``most`` of them, and takes another one."""
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
        groups, rest = divmod(found["experiments"][0].head, size)
        assert rest == 0
        assert least <= groups <= most
        assert [each.seq for each in found["events"][0]] == list(range(1, groups * size + 1))
        assert [seq for seq, _ in found["snapshots"][0]] == [size * k for k in (groups, groups - 1) if k > 0]
        assert [entry.subject for entry in found["audit"]] == [str(k) for k in range(1, groups + 1)]
        commit_group(store, groups + 1, size)
    check_integrity(path)
    return groups
