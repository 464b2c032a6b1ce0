"""Ids of decisions: never used twice, across copies, files, processes and forks; and what an unknown id's error says."""

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.live_bandits import ARMS
from robandit.errors import DecisionError
from robandit.live import ids

UCB1 = rb.UCB1()


def made(bandit, count=5):
    return [bandit.decide().id for _ in range(count)]


def through_a_file(bandit, folder):
    bandit.save(folder / "b")
    return rb.Bandit.load(folder / "b")


def test_ids_are_short_strings_that_json_keeps():
    bandit = rb.Bandit(ARMS, UCB1)
    for number, each in enumerate(made(bandit)):
        life, _, counter = each.partition("-")
        assert counter == str(number)
        assert len(life) == 12
        assert set(life) <= set("0123456789abcdefghjkmnpqrstvwxyz")
        assert json.loads(json.dumps(each)) == each
        assert ids.life_and_number(each) == (life, number)


def test_no_copy_issues_the_id_of_another(tmp_path):
    bandit = rb.Bandit(ARMS, UCB1, seed=0)
    made(bandit, 2)
    lives = [
        bandit,
        rb.Bandit(ARMS, UCB1, seed=0),
        through_a_file(bandit, tmp_path),
        through_a_file(bandit, tmp_path),
        copy.copy(bandit),
        copy.deepcopy(bandit),
        pickle.loads(pickle.dumps(bandit)),
        rb.Bandit.from_bytes(bandit.to_bytes()),
    ]
    every = [each for life in lives for each in made(life)]
    assert len(set(every)) == len(every)


def test_a_late_reward_after_a_crash_is_never_credited_to_another_decision(tmp_path):
    """What went wrong in 0.1: the loaded bandit issued the same ids, for other arms."""
    bandit = rb.Bandit(ARMS, UCB1)
    before = bandit.decide()
    bandit.save(tmp_path / "b")
    lost = [bandit.decide() for _ in range(3)]  # then the process crashes
    again = rb.Bandit.load(tmp_path / "b")
    new = [again.decide() for _ in range(3)]
    state = again.to_bytes()
    for decision in lost:
        with pytest.raises(
            DecisionError, match=r"unknown here: it was made after this state was saved\. If you know its arm"
        ):
            again.reward(decision.id, 1.0)
    assert again.to_bytes() == state
    again.reward(before.id, 1.0)
    for decision in new:
        again.reward(decision, 1.0)
    assert [row["pulls"] for row in again.estimates()] == [2, 1, 1]


@pytest.mark.parametrize(
    ("policy", "way_out"),
    [(UCB1, r"learn its reward with update\(arm, reward\)"), (rb.OptTINF(), "probability is not known here")],
    ids=["UCB1", "OptTINF"],
)
def test_errors_tell_closed_from_unknown(policy, way_out):
    bandit = rb.Bandit(ARMS, policy, seed=0)
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first, 1.0)
    bandit.expire(second)
    for closed in (first, second.id):
        with pytest.raises(DecisionError, match="is closed: it was already rewarded or expired") as caught:
            bandit.reward(closed, 1.0)
        assert caught.value.rule == "an open decision"
    stranger = rb.Bandit(ARMS, policy, seed=0).decide()
    with pytest.raises(DecisionError, match=f"not known to this bandit: use an id .*{way_out}"):
        bandit.reward(stranger, 1.0)


@cases(
    "malformed",
    ["", "a", "k3m9-", "-3", "k3m9-03", "K3M9-3", "k3m9-3\n", "k3m9-1e3", -1, True, 1.0, None, 2**63, ("a", 0)],
)
def test_what_has_not_the_form_of_an_id_is_rejected(malformed):
    bandit = rb.Bandit(ARMS, UCB1)
    with raises(DecisionError, parameter="decision", rule="an id that decide() returned"):
        bandit.reward(malformed, 1.0)


def test_a_decision_of_another_arm_is_rejected():
    bandit = rb.Bandit(ARMS, UCB1)
    decision = bandit.decide()
    for other in (decision._replace(arm="us"), decision._replace(time=1.0)):
        with pytest.raises(DecisionError, match="is not a decision of this bandit"):
            bandit.reward(other, 1.0)
    bandit.reward(decision, 1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_begins_another_life():
    bandit = rb.Bandit(ARMS, UCB1)
    open_before = bandit.decide()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child():
        bandit.reward(open_before, 1.0)  # the state is a copy, so this is known to both
        queue.put(made(bandit))

    children = [context.Process(target=child) for _ in range(3)]
    for each in children:
        each.start()
    of_children = [queue.get() for _ in children]
    for each in children:
        each.join()
        assert each.exitcode == 0
    every = [each for life in [*of_children, made(bandit)] for each in life]
    assert len(set(every)) == len(every) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_a_thread_that_holds_the_lock():
    """Without handlers at fork, the child would wait forever for a lock that no thread of it holds."""
    code = """
import os, threading, time
from robandit.live.guard import Guard
guard, held, done = Guard(), threading.Event(), []
lock = guard.lock
def other():
    with lock:
        held.set()
        time.sleep(0.3)
        done.append(1)
thread = threading.Thread(target=other)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    ok = lock.acquire(timeout=50) and done == [1]
    os._exit(0 if ok else 1)
thread.join()
assert lock.acquire(timeout=50)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60, check=False)
    assert result.returncode == 0
