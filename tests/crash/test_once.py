"""Repeated calls count once: decisions (guarantee 1) and rewards (guarantee 2), with a real server and concurrent clients."""

import http.client
import json
import random
import threading
import time

import pytest

from crash.harness import CUT, Site, request, wait_until_ready
from crash.model import copied
from helpers.amount import amount
from helpers.serving import exchange
from robandit.storage.sqlite import SqliteReader

pytestmark = pytest.mark.xdist_group("crash")
TWINS = 64


@pytest.fixture
def server(zygote, tmp_path):
    """A server that is ready, with an experiment."""
    child = zygote.start(tmp_path / "robandit.db")
    wait_until_ready(child.port())
    request(child.port(), "PUT", "/v1/experiments/p", {"arms": ["a", "b", "c"], "policy": "UCB1"})
    yield child
    child.kill()


def rows_of(path):
    """Return the log of the first experiment, from a copy of the files."""
    with copied(path, path.parent / "copy") as database:
        database.check_integrity()
        return list(database.rows(1))


def together(number, work):
    """Call ``work(i)`` in threads that start at the same moment, and return what each returned."""
    barrier = threading.Barrier(number)
    results = [None] * number

    def one(i):
        barrier.wait(30)
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize("batch", [False, True])
def test_twins_get_one_answer(server, tmp_path, batch):
    connections = [http.client.HTTPConnection("127.0.0.1", server.port(), timeout=60) for _ in range(TWINS)]
    rounds = amount(3, 30)
    for number in range(rounds):
        body = {"id": f"twin-{number}", "context": {"user": 7}}
        path = "/v1/experiments/p/decisions" + ("/batch" if batch else "")
        sent = {"items": [body, body]} if batch else body
        answers = together(TWINS, lambda i, sent=sent: exchange(connections[i], "POST", path, sent))  # noqa: B023
        assert {answer.status for answer in answers} == {200}
        if batch:
            items = [item for answer in answers for item in answer.json["items"]]
            assert len({json.dumps(item["decision"]) for item in items}) == 1
            assert sum(not item.get("replayed", False) for item in items) == 1
        else:
            assert len({answer.body for answer in answers}) == 1
            assert sum(not answer.replayed for answer in answers) == 1
    for connection in connections:
        connection.close()
    server.kill()
    decided = [row.id for row in rows_of(tmp_path / "robandit.db") if row.kind == "decided"]
    assert decided == [f"twin-{number}" for number in range(rounds)]


def test_twins_get_one_answer_when_the_server_is_killed_in_the_middle(zygote, tmp_path):
    """Commits are slow, so that most kills come while the twins wait for one. Twins without an answer try again."""
    path = tmp_path / "robandit.db"
    drawn = random.Random(3)
    site = Site()

    def start():
        child = zygote.start(path, slow=0.05)
        wait_until_ready(child.port())
        return child

    def one(id):
        life, tries = 0, 0
        while True:
            tries += 1
            address = site.address(life)
            assert address is not None
            port, life = address
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                response = exchange(connection, "POST", "/v1/experiments/p/decisions", {"id": id})
            except CUT:
                continue
            finally:
                connection.close()
            assert response.status == 200
            return response, tries

    child = start()
    request(child.port(), "PUT", "/v1/experiments/p", {"arms": ["a", "b", "c"], "policy": "UCB1"})
    site.open(child.port())
    tries = 0
    for number in range(amount(5, 50)):
        twins = threading.Thread(target=lambda: results.extend(together(TWINS, lambda i: one(f"twin-{number}"))))  # noqa: B023
        results = []
        twins.start()
        for _ in range(2):
            time.sleep(drawn.uniform(0.01, 0.12))
            site.shut()
            child.kill()
            child = start()
            site.open(child.port())
        twins.join(60)
        assert len(results) == TWINS
        assert len({response.body for response, _ in results}) == 1
        assert sum(not response.replayed for response, _ in results) <= 1
        tries = max(tries, *(tried for _, tried in results))
        answer = results[0][0].json
        child.kill()
        site.shut()
        found = [row for row in rows_of(path) if row.id == f"twin-{number}"]
        assert [(row.kind, row.seq, row.payload["arm"], row.time) for row in found] == [
            ("decided", answer["seq"], answer["arm"], answer["time"])
        ]
        child = start()
        site.open(child.port())
    child.kill()
    assert tries > 1


def snapshot_at_end(child, path):
    """Stop a server, and return the state that it stored at its end."""
    assert child.kill(15) == 0, child.errors()
    reader = SqliteReader(str(path))
    try:
        return reader.snapshots(1)[0]
    finally:
        reader.close()


@pytest.mark.parametrize("policy", ["UCB1", "EpsilonGreedy(epsilon=0.2)", "AdaKLUCB"])
def test_rewards_sent_twice_leave_the_bytes_of_sending_them_once(zygote, tmp_path, policy):
    """All bytes of the state are compared: learned numbers, open decisions, counts, the number and the time of the last event.

    Two things would differ between any two servers, and are fixed here: the clock, which stands still, and the random part of the
    ids that the server makes. The order of first arrivals is up to the clients; the second server gets the rewards in that order.
    """
    settings = {"arms": ["a", "b", "c"], "policy": policy, "seed": 5}
    drawn = random.Random(17)
    rewards = [{"id": f"d-{i}", "value": drawn.lognormvariate(0.0, 2.0)} for i in range(amount(300, 2_000))]
    base = "/v1/experiments/p"

    def started(path):
        child = zygote.start(path, fixed=True, snapshot_every=70)
        wait_until_ready(child.port())
        assert request(child.port(), "PUT", base, settings)[0] == 201
        for half in (rewards[: len(rewards) // 2], rewards[len(rewards) // 2 :]):  # some decisions get no reward
            items = [{"id": each["id"]} for each in half] + [{"id": f"open-{half[0]['id']}"}]
            assert request(child.port(), "POST", f"{base}/decisions/batch", {"items": items})[0] == 200
        return child

    child = started(tmp_path / "twice.db")
    sent = [*rewards, *rewards]
    drawn.shuffle(sent)
    outcomes = together(6, lambda i: send_rewards(child.port(), sent[i::6]))
    replayed = sum(replays for replays in outcomes)
    assert replayed == len(rewards)
    twice = snapshot_at_end(child, tmp_path / "twice.db")
    log = rows_of(tmp_path / "twice.db")

    child = started(tmp_path / "once.db")
    arrived = [{"id": row.id, "value": row.payload["value"]} for row in log if row.kind == "rewarded"]
    assert len(arrived) == len(rewards)
    assert send_rewards(child.port(), arrived) == 0
    once = snapshot_at_end(child, tmp_path / "once.db")
    assert twice == once
    assert log == rows_of(tmp_path / "once.db")


def send_rewards(port, rewards):
    """Send rewards over one connection: single ones and batches in turn. Return how many were replayed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    replayed, place = 0, 0
    while place < len(rewards):
        if place % 3:
            response = exchange(connection, "POST", "/v1/experiments/p/rewards", rewards[place])
            assert (response.status, response.json["outcome"]) == (200, "applied")
            replayed += response.replayed
            place += 1
        else:
            items = rewards[place : place + 10]
            response = exchange(connection, "POST", "/v1/experiments/p/rewards/batch", {"items": items})
            answers = response.json["items"]
            assert {item["status"] for item in answers} == {200}
            replayed += sum(item.get("replayed", False) for item in answers)
            place += 10
    connection.close()
    return replayed
