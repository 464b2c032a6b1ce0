"""A bandit in many threads at once: nothing is lost, nothing counts twice, no id appears twice."""

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

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


def test_the_test_would_notice_a_bandit_without_a_lock():
    """The negative control: with locks that do not lock, ids or counts go wrong."""

    class NoLock:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    wrong = 0
    for _ in range(20):
        bandit = rb.Bandit(["a", "b"], rb.Uniform(), seed=0)
        bandit._lock = NoLock()

        def live(number):
            made = []
            try:
                for _ in range(ROUNDS):
                    decision = bandit.decide()  # noqa: B023 - called before the next bandit is made
                    made.append(decision.id)
                    bandit.reward(decision, 1.0)  # noqa: B023
            except Exception:
                return [None, None]
            return made

        made = [each for ids in together(live) for each in ids]
        if len(set(made)) < len(made) or bandit.counters() != {"rewards": THREADS * ROUNDS, "open": 0}:
            wrong += 1
            break
    assert wrong
