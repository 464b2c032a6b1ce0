"""Engines that share a PostgreSQL database: what one does, the others know; and what happens when the database is away."""

import asyncio
import threading
import time

import psycopg
import pytest

from helpers.amount import amount
from helpers.engines import running_replica as running
from helpers.invalid import raises
from helpers.tcp_proxy import TcpProxy
from robandit.decisions import replica as replicas
from robandit.decisions.experiment import EXPIRED_AT_ONCE
from robandit.errors import Conflict, CorruptFile, NotFound, Overloaded, StoreUnavailable
from robandit.storage import connections
from robandit.storage.base import MOST_TAIL, Unresolved

SETTINGS = {
    "arms": ["a", "b", "c"],
    "policy": "EpsilonGreedy(epsilon=0.3)",
    "minimize": False,
    "seed": 3,
    "reward_window": None,
    "on_expiry": "drop",
    "max_open": None,
}


async def made(engine, name="e", **changes):
    return await engine.put(name, "k", lambda experiment: experiment.number, **SETTINGS | changes)


async def decide(engine, id=None, name="e"):
    return await engine.change(name, lambda experiment: experiment.decide(id), ids=() if id is None else (id,))


async def reward(engine, id, value, name="e"):
    return await engine.change(name, lambda experiment: experiment.reward(id, value), ids=(id,))


async def state(engine, name="e"):
    return await engine.read(name, lambda experiment: (experiment.seq, experiment.snapshot().content))


async def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture
def without_pulses(monkeypatch):
    """Nothing is learned of other engines but by calls."""
    monkeypatch.setattr(replicas, "PULSE", 1e6)


# --- what others did ----------------------------------------------------------------------------------------------------


def test_what_one_stores_the_other_knows(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            assert await made(one) == (1, True)
            assert await made(two) == (1, False)
            with raises(Conflict, parameter="name"):
                await made(two, minimize=True)
            first = await decide(one, "x")
            again = await decide(two, "x")
            assert (again.event, again.replayed) == (first.event, True)
            learned = await reward(two, "x", 2.0)
            assert (await reward(one, "x", 2.0)).event == learned.event
            with raises(Conflict, parameter="value"):
                await reward(one, "x", 3.0)
            with pytest.raises(NotFound):
                await reward(one, "never made", 3.0)
            assert await state(one) == await state(two)

    run(test())


def test_the_events_of_both_make_one_log(postgres_url):
    """Forty callers on two engines, half of whose ids are the same: each decision is made once, and both states are equal."""

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)

            async def call(number):
                engine = (one, two)[number % 2]
                answers = []
                for k in range(amount(10, 100)):
                    decided = await decide(engine, f"{number // 2}-{k}" if number < 20 else None)
                    answers.append(decided)
                    await reward(engine, decided.event.id, float(k))
                return answers

            answers = [each for many in await asyncio.gather(*map(call, range(40))) for each in many]
            seqs = [each.event.seq for each in answers if not each.replayed]
            assert len(seqs) == len(set(seqs)) == 30 * amount(10, 100)
            states = await state(one), await state(two)
            assert states[0] == states[1]
            assert states[0][0] == 1 + 2 * len(seqs)
            return states[0]

    before = run(test())

    async def again():
        async with running(postgres_url) as engine:
            return await state(engine)

    assert run(again()) == before


def test_two_make_the_same_experiment_at_once(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            for name in ("a", "b", "c", "d"):
                answers = await asyncio.gather(*(made(engine, name) for engine in (one, two, one, two)))
                assert sorted(new for _, new in answers) == [False, False, False, True]
                assert len({number for number, _ in answers}) == 1
            others = await asyncio.gather(made(one, "x"), made(two, "y"))
            assert {number for number, _ in others} == {5, 6}
            entries = one.store.read(lambda reader: reader.audit())
            assert [entry.subject for entry in entries][:4] == ["a", "b", "c", "d"]
            assert len(entries) == 6

    run(test())


def test_an_experiment_that_another_removes_and_makes_again(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await decide(two, "x")
            await one.delete("e", "k")
            with pytest.raises(NotFound):
                await decide(two, "x")
            with pytest.raises(NotFound):
                await two.read("e", lambda experiment: experiment.seq)
            assert two.experiments == {}
            await made(one, arms=["n"])
            assert (await decide(two, "x")).payload.arm == "n"
            await one.delete("e", "k")
            await made(one, arms=["m"])
            assert await two.read("e", lambda experiment: experiment.bandit.arms) == ("m",)

    run(test())


def test_an_experiment_that_another_removes_can_be_made_with_other_settings(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await decide(two)
            await one.delete("e", "k")
            assert await made(two, arms=["x"]) == (2, True)
            with raises(Conflict, parameter="name"):
                await made(one)

    run(test())


def test_a_removed_experiment_refuses_the_calls_behind_it(postgres_url):
    async def test():
        async with running(postgres_url) as engine:
            await made(engine)
            results = await asyncio.gather(
                decide(engine), engine.delete("e", "k"), decide(engine), decide(engine), return_exceptions=True
            )
            assert results[1] is None
            assert all(isinstance(each, NotFound) for each in results[2:])

    run(test())


def test_an_experiment_with_large_batches_does_not_delay_the_others_for_ever(postgres_url, without_pulses, monkeypatch):
    """It always has calls that fill a turn. Another one, which has waited since its first, is next."""
    monkeypatch.setattr(replicas, "MOST_WEIGHT", 10)
    order = []

    async def test():
        async with running(postgres_url) as engine:
            await made(engine, "large")
            await made(engine, "small")

            async def call(name, items):
                def action(experiment):
                    order.append(name)
                    return experiment.decide()

                await engine.change_all(name, [action] * items, ids=())

            await asyncio.gather(*(call("large", 10) for _ in range(10)), call("small", 1))

    run(test())
    assert order.index("small") <= 20


def test_turns_end_although_reads_occupy_all_threads(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as engine:
            await made(engine)
            free = threading.Event()
            reads = [asyncio.create_task(engine._in_thread(free.wait, 60)) for _ in range(replicas.THREADS)]
            try:
                await decide(engine)
            finally:
                was_free = free.is_set()
                free.set()
            await asyncio.gather(*reads)
            assert not was_free

    run(test())


def test_an_experiment_that_another_removed_does_not_conflict(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await made(two)
            await one.delete("e", "k")
            assert await made(two, arms=["n"]) == (2, True)

    run(test())


def test_calls_of_others_keep_their_time_when_an_experiment_is_gone(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            for name in ("e", "other"):
                await made(one, name)
                await made(two, name)
            await asyncio.sleep(0.05)
            before = one.store.pulse().time
            await one.delete("e", "k")
            gone, decided = await asyncio.gather(decide(two), decide(two, name="other"), return_exceptions=True)
            assert isinstance(gone, NotFound)
            assert decided.event.time >= before

    run(test())


def test_a_turn_reads_only_what_it_has_room_for(postgres_url, without_pulses, monkeypatch):
    monkeypatch.setattr(replicas, "MOST_WEIGHT", 10)
    read = []

    async def test():
        async with running(postgres_url) as engine:
            names = ("a", "b", "c")
            for name in names:
                await made(engine, name)
            turn = engine.store.turn

            def counted(experiment, after, ids, others):
                read.append(len(ids) + sum(len(each.ids) for each in others))
                return turn(experiment, after, ids, others)

            monkeypatch.setattr(engine.store, "turn", counted)
            await asyncio.gather(*(decide(engine, str(k), name) for k in range(25) for name in names))

    run(test())
    assert sum(read) >= 75
    assert max(read) <= 10


def test_pulses_tell_of_experiments_keys_and_events(postgres_url):
    called = []

    async def heard():
        called.append(None)

    async def test():
        async with running(postgres_url) as one, running(postgres_url, on_catalogue=heard) as two:
            await made(one)
            await until(lambda: "e" in two.experiments and called)
            for _ in range(5):
                await decide(one)
            await until(lambda: two.experiments["e"].seq == 6)
            await one.delete("e", "k")
            await until(lambda: not two.experiments)

    run(test())


def test_a_tail_that_is_longer_than_a_turn_reads(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await made(two)
            many = MOST_TAIL + 20
            for _ in range(3):
                await one.change("e", lambda experiment: [experiment.decide() for _ in range(many // 3 + 1)])
            assert (await decide(two)).event.seq > many
            assert await state(one) == await state(two)

    run(test())


def test_windows_end_by_the_clock_of_the_database(postgres_url):
    """The clocks of the engines are minutes apart; decisions expire once, and rewards in time count."""

    async def test():
        ahead, behind = (lambda: time.time() + 300.0), (lambda: time.time() - 300.0)
        async with running(postgres_url, clock=ahead) as one, running(postgres_url, clock=behind) as two:
            await made(one, reward_window=60.0)
            await made(one, "short", reward_window=0.3)
            for engine, other in ((one, two), (two, one)):
                decided = await decide(engine)
                assert abs(decided.event.time - time.time()) < 30.0
                assert (await reward(other, decided.event.id, 1.0)).event.kind == "rewarded"
                await decide(engine, f"late-{engine is one}", "short")
            await until(lambda: two.experiments["short"].counts["expired"] == 2)
            assert (await reward(one, "late-True", 1.0, "short")).event.kind == "late"
            times = [event.time for event in one.store.read(lambda reader: reader.events(2))]
            assert times == sorted(times)
            assert [each.kind for each in one.store.read(lambda reader: reader.events(2))].count("expired") == 2
            assert abs(one.clock() - two.clock()) < 5.0

    run(test())


def test_many_decisions_expire_at_once(postgres_url, without_pulses):
    """More than one step closes, as after an outage: no step waits for a pulse."""
    many = 2 * EXPIRED_AT_ONCE + 1

    async def test():
        async with running(postgres_url) as engine:
            await made(engine, reward_window=0.001)
            await engine.change("e", lambda experiment: [experiment.decide() for _ in range(many)])
            await until(lambda: engine.experiments["e"].is_due())
            await asyncio.sleep(0.01)  # all of them, not some
            engine._expire_due()
            await until(lambda: engine.experiments["e"].counts["expired"] == many)

    run(test())


def test_a_damaged_log_does_not_hide_other_changes(postgres_url, without_pulses, capsys):
    """Another server makes experiments, and one cannot be loaded: keys are read again, and the others are loaded."""
    heard = []

    async def on_catalogue():
        heard.append(None)

    async def test():
        async with running(postgres_url) as one, running(postgres_url, on_catalogue=on_catalogue) as two:
            await made(one, "damaged")
            await made(one, "sound")
            with psycopg.connect(postgres_url) as db:
                db.execute("DELETE FROM robandit.event WHERE experiment = 1")
            await two.catch_up()
            assert heard
            assert list(two.experiments) == ["sound"]
            with pytest.raises(CorruptFile, match="event 1 of experiment 'damaged' is missing"):
                await decide(two, name="damaged")

    run(test())
    assert "CorruptFile" in capsys.readouterr().err


def test_another_version_says_so_before_it_decides(postgres_url, monkeypatch):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await decide(one)
            with monkeypatch.context() as patched:
                for module in ("robandit.decisions.replica", "robandit.decisions.experiment"):
                    patched.setattr(f"{module}.__version__", "9.9")
                await decide(two)
            await decide(one)
            kinds = [event.kind for event in one.store.read(lambda reader: reader.events(1))]
            assert kinds == ["created", "decided", "upgraded", "decided", "upgraded", "decided"]
            assert await state(one) == await state(two)

    run(test())


def test_snapshots_are_shared(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url, snapshot_every=10) as one, running(postgres_url, snapshot_every=10) as two:
            await made(one)
            for k in range(36):
                await decide((one, two)[k % 2])
            kept = one.store.read(lambda reader: reader.snapshots(1))
            assert [seq for seq, _ in kept] == [30, 20]
            await one.change("e", one.reset)
            assert [seq for seq, _ in one.store.read(lambda reader: reader.snapshots(1))] == [38]
            assert (await two.read("e", lambda experiment: experiment.epoch)) == 1
            assert await state(one) == await state(two)

    run(test())


def test_too_many_calls_wait(postgres_url):
    async def test():
        async with running(postgres_url, most_waiting=3) as engine:
            await made(engine)
            results = await asyncio.gather(*(decide(engine) for _ in range(10)), return_exceptions=True)
            assert sum(isinstance(each, Overloaded) for each in results) == 6
            await decide(engine)

    run(test())


# --- when the database is away --------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(postgres_url):
    with TcpProxy(postgres_url) as proxy:
        yield proxy


def test_a_connection_lost_after_a_commit(postgres_url, proxy, without_pulses):
    """The events are there: the calls are answered, once."""

    async def test():
        async with running(proxy.url) as engine, running(postgres_url) as other:
            await made(engine)
            for k in range(3):
                lost = proxy.lose_after(b"COMMIT")
                results = await asyncio.gather(decide(engine, f"x{k}"), decide(engine), decide(engine, f"x{k}"))
                assert lost.is_set()
                assert [each.replayed for each in results] == [False, False, True]
            lost = proxy.lose_after(b"COMMIT")
            assert not (await reward(engine, "x0", 1.0)).replayed
            assert lost.is_set()
            assert (await state(engine)) == (await state(other))
            assert (await state(engine))[0] == 8

    run(test())


def test_a_connection_lost_before_a_commit(postgres_url, proxy, without_pulses):
    """Nothing is there: the calls fail, and the state in memory is that of the log again."""

    async def test():
        async with running(proxy.url) as engine, running(postgres_url) as other:
            await made(engine)
            await decide(engine, "first")
            before = await state(engine)
            for _ in range(3):
                lost = proxy.lose_before(b"COMMIT")
                results = await asyncio.gather(decide(engine, "x"), decide(engine), return_exceptions=True)
                assert lost.is_set()
                assert [type(each) for each in results] == [StoreUnavailable] * 2
                with pytest.raises(StoreUnavailable):
                    await engine.settled()
                assert await state(other) == before
                assert await state(engine) == before
                await engine.settled()
            again = await decide(engine, "x")
            assert (again.event.seq, again.replayed) == (3, False)
            assert await state(other) == await state(engine)

    run(test())


def test_a_lost_commit_that_cannot_be_looked_up(postgres_url, proxy, without_pulses):
    """The call fails, although its event is there. Repeated with its id, it gets its answer."""

    async def test():
        async with running(proxy.url) as engine, running(postgres_url) as other:
            await made(engine)
            lost = proxy.lose_after(b"COMMIT")
            deciding = asyncio.create_task(decide(engine, "x"))
            while not lost.is_set():
                await asyncio.sleep(0)
            await asyncio.to_thread(proxy.refuse)
            result = (await asyncio.gather(deciding, return_exceptions=True))[0]
            assert isinstance(result, Unresolved) or not result.replayed  # it may have been faster than the outage
            with pytest.raises(StoreUnavailable):
                await decide(engine, "x")
            await asyncio.to_thread(proxy.listen)
            again = await decide(engine, "x")
            assert (again.replayed, again.event.seq) == (True, 2)
            assert await state(other) == await state(engine)

    run(test())


def test_an_outage_is_noticed_and_ends(postgres_url, proxy, capsys):
    async def test():
        async with running(proxy.url) as engine:
            await made(engine)
            await asyncio.to_thread(proxy.refuse)
            await until(lambda: engine.problem)
            assert engine.problem == "the store cannot be reached"
            with pytest.raises(StoreUnavailable):
                await decide(engine)
            await asyncio.to_thread(proxy.listen)
            await until(lambda: not engine.problem)
            await decide(engine)
            await asyncio.to_thread(proxy.cut)
            await decide(engine)  # kept connections are broken: another one is opened
            await engine.read("e", lambda experiment: experiment.seq)

    run(test())
    away, back = capsys.readouterr().err.splitlines()
    assert away.startswith(f"robandit: postgresql://127.0.0.1:{proxy.port}/test_")
    assert "cannot be used now" in away
    assert back == "robandit: the store can be reached again"


def test_tables_that_are_away_are_an_outage(postgres_url, capsys):
    async def test():
        async with running(postgres_url) as engine:
            await made(engine)
            rename(postgres_url, "robandit", "away")
            await until(lambda: engine.problem)
            with pytest.raises(StoreUnavailable):
                await decide(engine)
            rename(postgres_url, "away", "robandit")
            await until(lambda: not engine.problem)
            await decide(engine)

    def rename(url, old, new):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"ALTER SCHEMA {old} RENAME TO {new}")

    run(test())
    away, back = capsys.readouterr().err.splitlines()
    assert "is damaged, or not a database of Robandit" in away
    assert back == "robandit: the store can be reached again"


def test_a_newer_schema_stops_an_older_server(postgres_url):
    async def test():
        async with running(postgres_url) as engine:
            await made(engine)
            with psycopg.connect(postgres_url, autocommit=True) as db:
                db.execute("UPDATE robandit.store SET version = version + 1")
            await until(lambda: engine.problem)
            with pytest.raises(StoreUnavailable):
                await decide(engine)

    run(test())


def test_a_database_that_swallows_everything(postgres_url, proxy, monkeypatch):
    monkeypatch.setattr("robandit.storage.connections.STUCK", 1.5)
    monkeypatch.setattr(replicas, "PATIENCE", 1.5)

    async def test():
        async with running(proxy.url) as engine, running(postgres_url) as other:
            await made(engine)
            proxy.stall()
            with pytest.raises(StoreUnavailable):
                await decide(engine, "x")
            await until(lambda: engine.problem)
            await decide(other, "y")
            proxy.resume()
            await until(lambda: not engine.problem)
            await decide(engine, "x")
            assert await state(other) == await state(engine)

    run(test())


def test_a_server_that_stops_in_a_turn_does_not_stop_the_others(postgres_url, monkeypatch):
    """PostgreSQL ends its transaction. When it goes on, its commit fails, and nothing of it is stored."""
    monkeypatch.setitem(connections._LIMITS, "idle_in_transaction_session_timeout", "'0.8s'")

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            await made(one)
            await decide(two, "before")

            def slow(experiment):
                time.sleep(2.0)
                return experiment.decide("x")

            first = asyncio.create_task(one.change("e", slow, ids=("x",)))
            results = await asyncio.gather(first, return_exceptions=True)
            assert isinstance(results[0], StoreUnavailable)
            await decide(two, "x")
            assert (await decide(one, "x")).replayed
            assert await state(one) == await state(two)

    run(test())


def test_a_restored_backup_replaces_the_state(postgres_url, without_pulses):
    async def test():
        async with running(postgres_url) as one:
            await made(one)
            for k in range(6):
                await decide(one, str(k))
            with psycopg.connect(postgres_url) as db:  # as it was before the last two events
                db.execute("DELETE FROM robandit.event WHERE seq > 5")
                db.execute("UPDATE robandit.experiment SET head = 5")
            again = await decide(one, "5")
            assert (again.event.seq, again.replayed) == (6, False)
            async with running(postgres_url) as two:
                assert await state(one) == await state(two)

    run(test())
