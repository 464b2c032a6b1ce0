"""A bandit in many threads at once: nothing is lost, nothing counts twice, no id appears twice."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import robandit as rb
from helpers.own_policies import Exp3
from robandit.errors import DecisionError

THREADS = 8
ROUNDS = 250


@contextmanager
def frequent_switches():
    """Let threads interrupt each other as often as possible. (The kernels release the lock of the interpreter anyway.)"""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(work):
    """Run ``work(number)`` in all threads at the same time; return their results."""
    start = threading.Barrier(THREADS)

    def begin(number):
        start.wait()
        return work(number)

    with frequent_switches(), ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.mark.filterwarnings("ignore::robandit.errors.ExpiryWarning")
@pytest.mark.parametrize(
    "policy", [rb.UCB1(), rb.AdaKLUCB(), Exp3(), rb.EpsilonGreedy()], ids=lambda policy: policy.label
)
def test_decisions_and_rewards_of_eight_threads(policy):
    bandit = rb.Bandit(["a", "b", "c"], policy, seed=0)
    log = []
    bandit = rb.Bandit.from_bytes(bandit.to_bytes(), log=log.append)

    def live(number):
        rng = np.random.default_rng(number)
        made, pending = [], []
        for step in range(ROUNDS):
            among = ["a", "b"] if step % 7 == 0 and policy.respects_allowed else None
            decision = bandit.decide(among=among)
            made.append(decision)
            pending.append(decision)
            if step % 3 == 2:
                chosen = pending.pop(int(rng.integers(len(pending))))
                bandit.reward(chosen.id, float(rng.uniform()))
            if step % 11 == 5:
                bandit.expire(pending.pop(0))
            if step % 40 == 39:
                bandit.estimates(), bandit.counters(), bandit.open, repr(bandit), bandit.diagnose(), bandit.to_bytes()
        for decision in pending:
            bandit.reward(decision, float(rng.uniform()))
        return made, ROUNDS - len(range(5, ROUNDS, 11))

    results = together(live)
    made = [decision for decisions, _ in results for decision in decisions]
    assert len({decision.id for decision in made}) == len(made) == THREADS * ROUNDS
    assert bandit.open == ()
    assert bandit.counters()["rewards"] == sum(rewarded for _, rewarded in results)
    rewarded = Counter(decision.arm for decision in made)
    assert sum(row["pulls"] for row in bandit.estimates()) == bandit.counters()["rewards"]
    assert all(row["pulls"] <= rewarded[row["arm"]] for row in bandit.estimates())
    # The order in which the threads came is in the log. One thread that applies it gets the same state.
    again = rb.Bandit(["a", "b", "c"], policy, seed=0)
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()


def test_each_decision_is_rewarded_by_exactly_one_of_eight_threads():
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    decisions = [bandit.decide() for _ in range(400)]
    reasons = set()

    def compete(number):
        won = 0
        for decision in decisions:
            try:
                bandit.reward(decision.id, 1.0)
                won += 1
            except DecisionError as error:
                reasons.add(str(error).partition("' ")[2])
        return won

    assert sum(together(compete)) == 400
    assert reasons == {"is closed: it was already rewarded or expired"}
    assert bandit.counters() == {"rewards": 400, "open": 0}


# Which thread's reward an arm gets is random, so a false alarm is possible: 1 % per arm.
@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_updates_files_and_arms_that_come_and_go_in_eight_threads(tmp_path):
    bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(c=0.4, delta_exp=0.5, bonus=0.2), minimize=True)

    def live(number):
        rng = np.random.default_rng(number)
        name = f"arm {number}"
        bandit.add_arm(name)
        for step in range(ROUNDS):
            bandit.update(bandit.select(), float(rng.pareto(2.0)))
            if step % 50 == 10:
                bandit.pause_arm(name)
            if step % 50 == 40:
                bandit.resume_arm(name)
            if step % 60 == 30:
                bandit.save(tmp_path / str(number))
                assert rb.Bandit.load(tmp_path / str(number)).counters()["rewards"] > 0
        bandit.update_many([name] * 50, rng.pareto(2.0, 50))

    together(live)
    assert bandit.counters()["rewards"] == THREADS * (ROUNDS + 50)
    assert len(bandit.arms) == 2 + THREADS
    assert set(bandit.states.values()) == {"active"}


class NoGuard:
    """A guard that does not guard."""

    owner = inside = None

    def exclusive(self):
        return nullcontext()


class SlowList(list):
    """A list that lets other threads run between reading and writing an item."""

    def __setitem__(self, i, value):
        time.sleep(0.03)
        super().__setitem__(i, value)


@pytest.mark.parametrize("guarded", [True, False])
def test_updates_are_counted_only_with_the_guard(guarded):
    """With a negative control. The bandit's owner is one of the threads, so that both ways through the guard are taken."""
    bandit = rb.Bandit(["a"], rb.UCB1())
    bandit._record.rewards = SlowList([0])
    if not guarded:
        bandit._guard = NoGuard()
    others = [threading.Thread(target=lambda: [bandit.update("a", 1.0) for _ in range(ROUNDS)]) for _ in range(3)]
    with frequent_switches():
        for _ in range(ROUNDS):
            bandit.update(bandit.select(), 1.0)  # alone, without the lock
        for each in others:
            each.start()
        for _ in range(ROUNDS):
            bandit.update(bandit.select(), 1.0)
        for each in others:
            each.join()
    assert (bandit.counters()["rewards"] == 5 * ROUNDS) == guarded
    assert not guarded or bandit._guard.owner is None


class SlowLife:
    """Ids like those of a bandit, but other threads run between reading and writing the number."""

    number = 0

    def next_id(self):
        number = self.number
        time.sleep(0.0)
        self.number = number + 1
        return f"k3m9-{number}", "k3m9", number


@pytest.mark.parametrize("guarded", [True, False])
def test_ids_are_different_only_with_the_guard(guarded):
    """With a negative control."""
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    bandit._decisions._life = SlowLife()
    if not guarded:
        bandit._guard = NoGuard()

    def decide(number):
        try:
            return [bandit.decide().id for _ in range(50)]
        except ValueError:  # such an id is open already
            return [None, None]

    made = [each for ids in together(decide) for each in ids]
    assert (len(set(made)) == len(made) == 50 * THREADS) == guarded


def test_an_exception_of_a_signal_handler_leaves_no_lock_behind():
    """Ctrl-C or a timeout may come at any instruction. Afterwards another thread must get in."""
    code = """
import signal, sys, threading
import robandit as rb
bandit = rb.Bandit(["a", "b"], rb.UCB1())
bandit.reward(bandit.decide(), 1.0)  # compiles
class Interrupt(Exception): pass
def handler(*_): raise Interrupt
signal.signal(signal.SIGALRM, handler)
interrupts = 0
for shared in (False, True):
    if shared:
        thread = threading.Thread(target=lambda: bandit.open_count)
        thread.start()
        thread.join()
    for _ in range(300):
        try:
            signal.setitimer(signal.ITIMER_REAL, 2e-4)
            while True:
                bandit.update(bandit.select(), 1.0)
                bandit.reward(bandit.decide(), 1.0)
        except Interrupt:
            interrupts += 1
    assert not bandit._guard.inside
    done = []
    thread = threading.Thread(target=lambda: done.append(bandit.open_count), daemon=True)
    thread.start()
    thread.join(20)
    if not done:
        sys.exit("the lock was not released")
assert interrupts == 600
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_two_bandits_whose_logs_use_each_other_may_fork():
    """A fork must not wait for one bandit's lock while it holds another's."""
    code = """
import os, threading, time
import robandit as rb
shadow = rb.Bandit(["a", "b"], rb.UCB1())
pairs = [rb.Bandit(["a", "b"], rb.UCB1(), log=lambda event: shadow.open_count) for _ in range(4)]
stop = threading.Event()
def live(bandit):
    while not stop.is_set():
        bandit.reward(bandit.decide(), 1.0)
        time.sleep(0)  # otherwise a thread takes its lock again at once, and a fork waits for seconds
threads = [threading.Thread(target=live, args=(bandit,)) for bandit in pairs]
for thread in threads:
    thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        for bandit in pairs:
            bandit.reward(bandit.decide(), 1.0)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=120, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
