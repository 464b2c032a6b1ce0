"""Group commit: what gathers, in which order it is stored, and what happens after an error."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from helpers.stores import event, everything, opened
from robandit.errors import CorruptFile, StoreError
from robandit.storage import group_commit
from robandit.storage.base import Create, Remove
from robandit.storage.group_commit import GroupCommit


class Slow:
    """A store whose commits wait until they are let through."""

    def __init__(self, free=False):
        self.groups = []
        self.tidied = 0
        self.to_tidy = 0
        self.error = None
        self.threads = set()
        self.begun = threading.Semaphore(0)
        self.free = threading.Semaphore(10_000 if free else 0)

    def commit(self, events, changes):
        self.threads.add(threading.get_ident())
        self.begun.release()
        assert self.free.acquire(timeout=30)
        if self.error is not None:
            raise self.error
        self.groups.append((list(events), list(changes)))

    def tidy(self):
        self.threads.add(threading.get_ident())
        self.tidied += 1
        if isinstance(self.to_tidy, Exception):
            raise self.to_tidy
        self.to_tidy -= 1
        return self.to_tidy > 0


@asynccontextmanager
async def committing(store, **options):
    commit = GroupCommit(store, **options)
    try:
        yield commit
    finally:
        for _ in range(100):
            store.free.release()
        await commit.close()


async def begun(store):
    """Wait until the store is in a commit."""
    assert await asyncio.to_thread(store.begun.acquire, timeout=30)


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def submitted(commit, events, changes=()):
    """Submit, and return the future that waits for it."""
    commit.submit(events, changes)
    return commit.stored()


def seqs(store):
    return [[each.seq for each in events] for events, _ in store.groups]


def run(test):
    """Let a test that is a coroutine run in an event loop of its own."""

    def running(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    running.__name__ = test.__name__
    return running


@run
async def test_what_comes_in_one_turn_is_one_group():
    store, taken = Slow(free=True), []
    async with committing(store, on_commit=taken.append) as commit:
        assert commit.stored() is None
        futures = [
            submitted(commit, [event(1)]),
            submitted(commit, [event(2), event(3)]),
            submitted(commit, (), [Create(1, "a", b"")]),
        ]
        assert commit.waiting == 3
        await futures[0]
        assert store.groups == [([event(1), event(2), event(3)], [Create(1, "a", b"")])]
        await asyncio.gather(*futures)
        assert commit.waiting == 0
        assert commit.stored() is None
    assert [each.events for each in taken] == [[event(1), event(2), event(3)]]
    assert 0.0 <= taken[0].seconds < 30.0


@run
async def test_what_comes_while_a_group_is_stored_is_the_next_group():
    store, taken = Slow(), []
    async with committing(store, on_commit=taken.append) as commit:
        first = submitted(commit, [event(1)])
        await begun(store)
        second = submitted(commit, [event(2)])
        await turns()
        third = submitted(commit, [event(3)], [Remove(1)])
        assert commit.waiting == 3
        await turns(50)
        assert store.groups == []
        assert not first.done()
        store.free.release()
        await first
        assert not second.done()
        await begun(store)
        assert commit.waiting == 2
        fourth = submitted(commit, [event(4)])
        store.free.release()
        await asyncio.gather(second, third)
        store.free.release()
        await fourth
        assert seqs(store) == [[1], [2, 3], [4]]
        assert store.groups[1][1] == [Remove(1)]
    assert [len(each.events) for each in taken] == [1, 2, 1]
    assert len(store.threads) == 1
    assert threading.get_ident() not in store.threads


@run
async def test_the_disk_does_not_wait_for_the_event_loop():
    """The next group is stored while the event loop is busy."""
    store = Slow()
    async with committing(store) as commit:
        commit.submit([event(1)])
        await begun(store)
        commit.submit([event(2)])
        await turns()
        store.free.release()
        assert store.begun.acquire(timeout=30)  # without a turn of the event loop
        assert seqs(store) == [[1]]
        assert commit.waiting == 2


@run
async def test_everything_is_stored_once_and_in_order():
    store = Slow(free=True)
    order, done = [], []
    async with committing(store) as commit:

        async def one(seq):
            for _ in range(seq % 7):
                await asyncio.sleep(0)
            order.append(seq)
            await submitted(commit, [event(seq)], [Create(seq, "", b"")])
            assert any(seq in group for group in seqs(store))
            done.append(seq)

        await asyncio.gather(*(one(seq) for seq in range(1, 501)))
    stored = [seq for group in seqs(store) for seq in group]
    assert stored == order == [change.number for _, changes in store.groups for change in changes]
    assert sorted(done) == sorted(stored) == list(range(1, 501))
    assert len(store.groups) < 100  # groups have formed
    assert commit.waiting == 0


@run
async def test_a_turn_is_not_divided():
    """What is submitted without a wait in between is stored in one commit, also while others are stored."""
    store = Slow(free=True)
    async with committing(store) as commit:
        for k in range(300):
            commit.submit([event(2 * k)])
            commit.submit([event(2 * k + 1)])
            await asyncio.sleep(0)
        await commit.stored()
    for group in seqs(store):
        assert group[0] % 2 == 0
        assert len(group) % 2 == 0


@run
async def test_a_group_is_announced_before_those_that_wait_go_on():
    """The engine forgets which events are not stored yet when a group is stored: no answer may overtake that."""
    store, order = Slow(free=True), []
    async with committing(store, on_commit=lambda committed: order.append("announced")) as commit:
        await submitted(commit, [event(1)])
        order.append("answered")
    assert order == ["announced", "answered"]


@run
async def test_who_waits_for_nothing_new_waits_for_the_newest_group():
    store = Slow()
    async with committing(store) as commit:
        commit.submit([event(1)])
        await begun(store)
        during = commit.stored()
        store.free.release()
        await during
        assert seqs(store) == [[1]]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreError("the disk is full"), "the disk is full"),
        (CorruptFile("x.db is damaged"), "x.db is damaged"),
        (ZeroDivisionError("by 0"), "the store failed: ZeroDivisionError: by 0"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_error_fails_all_that_waits_and_all_that_comes(error, text):
    async def test():
        store, failures, taken = Slow(), [], []
        async with committing(store, on_failure=failures.append, on_commit=taken.append) as commit:
            futures = [submitted(commit, [event(1)])]
            await begun(store)
            futures.append(submitted(commit, [event(2)]))
            await turns()
            futures.append(submitted(commit, [event(3)]))
            store.error = error
            store.free.release()
            for future in futures:
                with pytest.raises(StoreError) as raised:
                    await future
                assert str(raised.value) == text
            assert commit.failure is raised.value
            store.error = None
            for call in (commit.stored, lambda: commit.submit([event(4)]), lambda: commit.submit((), [Remove(1)])):
                with pytest.raises(StoreError) as again:
                    call()
                assert again.value is commit.failure
            await turns()
        assert failures == [raised.value]
        assert taken == store.groups == []

    run(test)()


@run
async def test_what_comes_between_an_error_and_its_announcement_fails():
    """The thread has ended, and the event loop does not know it yet."""
    store, failures = Slow(), []
    store.error = StoreError("full")
    async with committing(store, on_failure=failures.append) as commit:
        first = submitted(commit, [event(1)])
        await turns()
        store.free.release()
        commit._thread.join(30)
        assert commit.failure is None
        second = submitted(commit, [event(2)])
        for future in (second, first):
            with pytest.raises(StoreError, match="full"):
                await future
    assert len(failures) == 1


@run
async def test_a_group_that_nobody_waits_for_may_fail_silently():
    """An exception that is never retrieved would be a warning, and an error in these tests."""
    store, failures = Slow(free=True), []
    store.error = StoreError("full")
    async with committing(store, on_failure=failures.append) as commit:
        commit.submit([event(1)])
        while not failures:
            await asyncio.sleep(0.001)


@run
async def test_a_cancelled_wait_does_not_disturb_the_group():
    store, taken = Slow(), []
    async with committing(store, on_commit=taken.append) as commit:
        cancelled, other = submitted(commit, [event(1)]), commit.stored()
        await begun(store)
        cancelled.cancel()
        await turns()
        next_one = submitted(commit, [event(2)])
        store.free.release()
        store.free.release()
        await asyncio.gather(other, next_one)
        assert seqs(store) == [[1], [2]]
    assert len(taken) == 2


@run
async def test_closing_stores_what_waits_and_ends_the_thread():
    store = Slow()
    commit = GroupCommit(store)
    futures = [submitted(commit, [event(1)])]
    await begun(store)
    futures.append(submitted(commit, [event(2)], [Remove(7)]))
    closing = asyncio.ensure_future(commit.close())
    await turns()
    assert not closing.done()
    store.free.release()
    store.free.release()
    await closing
    assert all(future.done() for future in futures)
    assert store.groups == [([event(1)], []), ([event(2)], [Remove(7)])]
    assert not commit._thread.is_alive()


@run
async def test_closing_right_after_submitting():
    for turn in range(4):
        store = Slow(free=True)
        commit = GroupCommit(store)
        commit.submit([event(1)])
        await turns(turn)
        await commit.close()
        assert seqs(store) == [[1]]


@run
async def test_closing_without_work_and_after_an_error_returns():
    idle = GroupCommit(Slow())
    await idle.close()
    assert not idle._thread.is_alive()
    store = Slow(free=True)
    store.error = StoreError("full")
    failed = GroupCommit(store)
    with pytest.raises(StoreError):
        await submitted(failed, [event(1)])
    await failed.close()
    assert not failed._thread.is_alive()


def test_an_idle_store_tidies_up(monkeypatch):
    monkeypatch.setattr(group_commit, "IDLE", 0.01)

    async def test():
        store = Slow(free=True)
        store.to_tidy = 4
        async with committing(store) as commit:
            while store.tidied < 4:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            assert store.tidied == 4  # there is no more to do, so it waits until an experiment is removed
            store.to_tidy = 2
            await submitted(commit, [event(1)])
            await asyncio.sleep(0.05)
            assert store.tidied == 4
            commit.submit((), [Remove(1)])
            while store.tidied < 6:
                await asyncio.sleep(0.005)
        assert len(store.threads) == 1

    run(test)()


def test_a_busy_store_does_not_tidy_up(monkeypatch):
    monkeypatch.setattr(group_commit, "IDLE", 30.0)

    async def test():
        store = Slow(free=True)
        async with committing(store) as commit:
            for seq in range(1, 50):
                await submitted(commit, [event(seq)])
        assert store.tidied == 0

    run(test)()


def test_a_busy_store_tidies_up_when_it_is_time(monkeypatch):
    monkeypatch.setattr(group_commit, "IDLE", 0.01)

    async def test():
        store = Slow(free=True)
        store.to_tidy = 2
        async with committing(store) as commit:
            seq = 0
            while store.tidied < 2:  # without a pause
                seq += 1
                await submitted(commit, [event(seq)])

    run(test)()


def test_a_thread_that_wakes_up_while_it_is_told_to_end(monkeypatch):
    """The end is noticed even if the signal for it is cleared."""
    monkeypatch.setattr(group_commit, "IDLE", 0.01)

    async def test():
        store = Slow(free=True)
        store.to_tidy = 10**6
        async with committing(store) as commit:
            wait = commit._wake.wait

            def slow(timeout):
                woken = wait(timeout)
                if not woken:
                    commit._ending = True
                return woken

            commit._wake.wait = slow
            while commit._thread.is_alive():
                await asyncio.sleep(0.005)

    run(test)()


def test_an_error_while_tidying_up_is_a_failure(monkeypatch):
    monkeypatch.setattr(group_commit, "IDLE", 0.01)

    async def test():
        store, failures = Slow(free=True), []
        store.to_tidy = StoreError("damaged")
        async with committing(store, on_failure=failures.append) as commit:
            while not failures:
                await asyncio.sleep(0.005)
            with pytest.raises(StoreError, match="damaged"):
                commit.submit([event(1)])

    run(test)()


def test_with_a_real_store_an_error_takes_nothing_back(tmp_path):
    """What was stored before the error is there, what came after it is not, even if it would have fitted."""

    async def test():
        with opened(f"sqlite:{tmp_path / 'robandit.db'}", durability="off") as store:
            commit = GroupCommit(store)
            await submitted(commit, [event(1), event(2)], [Create(1, "one", b"{}")])
            broken = submitted(commit, [event(4)])
            with pytest.raises(StoreError, match="event 4 of experiment 1 does not follow its last event in the store"):
                await broken
            with pytest.raises(StoreError):
                commit.submit([event(3)])
            await commit.close()
            assert [each.seq for each in everything(store)["events"][0]] == [1, 2]

    asyncio.run(test())
