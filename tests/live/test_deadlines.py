"""Deadlines: what a decision costs, and what open decisions say while they wait."""

import math
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robandit as rb
from helpers.invalid import assert_invalid, raises
from robandit.diagnostics.diagnosis import KeptRewards
from robandit.diagnostics.study import mean_of
from robandit.errors import AssumptionWarning, CorruptFile, DecisionError, InvalidInput, InvalidReward, NotApplicable
from robandit.live.deadlines import Deadline
from robandit.live.saving import HEADER, MAGIC
from robandit.policies._parts.waiting import ALL, BINS

ARMS = ["a", "b", "c"]
NEVER = math.nan


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def bandit_of(policy=None, *, arms=ARMS, clock=None, deadline=30.0, **options):
    return rb.Bandit(arms, policy, 1, minimize=True, deadline=deadline, clock=clock or Clock(), **options)


# --- the Kaplan-Meier mean -----------------------------------------------------------------------------------------------


def waiting(finished, ages, limit, failure_cost, failures=0):
    """Return KM - mean, as a bandit computes it."""
    deadline = Deadline(limit, failure_cost, 1)
    for cost in finished:
        deadline.learned(0, cost, NEVER, None)
    for _ in range(failures):
        deadline.learned(0, 0.0, NEVER, "failed")
    for age in ages:
        deadline.opened(0, 100.0 - age)
    deadline.look(100.0)
    return float(deadline.waits.shifts[0])


def slow_mean(finished, ages, failure_cost):
    """Return the Kaplan-Meier mean as research/real-life.md defines it, one entry after the other."""
    entries = sorted([(y, 0) for y in finished] + [(age, 1) for age in ages])
    alive, at_risk, area, last = 1.0, len(entries), 0.0, 0.0
    for y, is_open in entries:
        if not is_open:
            area, last = area + alive * (y - last), y
            alive *= 1.0 - 1.0 / at_risk
        at_risk -= 1
    return area + alive * (failure_cost - last)


@pytest.mark.parametrize(
    ("finished", "ages", "failure_cost", "expected"),
    [
        ([1, 2, 4], [], 10.0, 2.3333333333),
        ([1, 2, 4], [3, 5], 10.0, 4.8),
        ([1], [9], 30.0, 15.5),
        ([2, 2, 2], [2], 30.0, 9.0),
    ],
)
def test_the_reference_values(finished, ages, failure_cost, expected):
    mean = sum(finished) / len(finished)
    assert mean + waiting(finished, ages, failure_cost, failure_cost) == pytest.approx(expected, rel=1e-9)
    assert slow_mean(finished, ages, failure_cost) == pytest.approx(expected, rel=1e-9)


costs = st.lists(st.floats(0.0, 30.0), min_size=1, max_size=25)
ages = st.lists(st.floats(0.001, 40.0).map(lambda age: 100.0 - (100.0 - age)), max_size=25)  # as a clock at 100 s


@given(costs, ages, st.floats(30.0, 100.0), st.integers(0, 3))
def test_the_mean_is_that_of_a_slow_estimate_with_ages_at_the_edges_of_bins(finished, ages, failure_cost, failures):
    """An age counts after the costs of its bin, and before any cost of the next one."""
    edges = Deadline(30.0, failure_cost, 1).waits.edges
    bins = [int(np.searchsorted(edges, cost)) for cost in finished]
    moved = []
    for age in ages:
        inside = [cost for cost, place in zip(finished, bins, strict=True) if place == np.searchsorted(edges, age)]
        moved.append(max([age, *inside]) if age <= 30.0 else 1000.0)
    every = [*finished, *[failure_cost] * failures]
    expected = slow_mean(every, moved, failure_cost) - sum(every) / len(every)
    found = waiting(finished, ages, 30.0, failure_cost, failures)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * failure_cost)


@given(costs, ages)
def test_open_decisions_never_make_an_arm_look_better(finished, ages):
    shift = waiting(finished, ages, 30.0, 30.0)
    assert shift >= -1e-9
    older = waiting(finished, [age + 5.0 for age in ages], 30.0, 30.0)
    assert older >= shift - 1e-9
    young = [age for age in ages if age < min(finished) / 1.05]
    assert waiting(finished, young, 30.0, 30.0) == 0.0


def test_open_decisions_in_any_order_and_number():
    rng = np.random.default_rng(3)
    deadline, times = Deadline(30.0, 30.0, 2), []
    for _ in range(400):
        if times and rng.random() < 0.45:
            deadline.closed(1, times.pop(int(rng.integers(len(times)))))
        else:
            times.append(float(rng.integers(50)))  # many are equal, and they do not come in order
            deadline.opened(1, times[-1])
        assert deadline.waits.times[1, : len(times)].tolist() == sorted(times)
        assert deadline.overdue(55.0) == (25.0 if times and min(times) < 25.0 else None)


# --- what a decision costs -----------------------------------------------------------------------------------------------


def test_a_failure_costs_the_failure_cost_however_fast_it_is():
    clock, log = Clock(), []
    bandit = bandit_of(rb.UCB1(), failure_cost=45.0, clock=clock, log=log.append)
    slow, fast, good = bandit.decide(), bandit.decide(), bandit.decide()
    clock.now += 0.05
    bandit.fail(fast.id)
    bandit.reward(good, 0.05)
    clock.now += 29.95
    bandit.reward(slow, 30.0)  # the deadline itself is in time
    events = [event for event in log if isinstance(event, rb.events.Rewarded)]
    assert [(event.value, event.failed) for event in events] == [(45.0, True), (0.05, False), (30.0, False)]
    rows = {row["arm"]: row for row in bandit.estimates()}
    assert [rows[arm]["failures"] for arm in ARMS] == [0, 1, 0]
    assert rows[fast.arm]["mean"] == 45.0


def test_an_open_decision_times_out_at_the_next_call():
    clock, log = Clock(), []
    bandit = bandit_of(clock=clock, log=log.append)
    old = bandit.decide()
    clock.now += 10.0
    young = bandit.decide()
    clock.now += 20.0
    bandit.decide()
    assert old in bandit.open  # exactly as old as the deadline
    clock.now += 0.001
    bandit.decide()
    assert log[-2] == rb.events.Expired(id=old.id, value=30.0, asked=())
    assert old not in bandit.open
    assert young in bandit.open
    before = bandit.to_bytes()
    bandit.reward(old.id, 29.0)  # its outcome comes too late, and is ignored
    bandit.fail(old)
    bandit.reward_many([old], [29.0])
    assert bandit.expire(old) == 0
    assert bandit.to_bytes() == before
    again = bandit_of(clock=clock)
    for event in log:
        again.apply(event)
    for other in (again, rb.Bandit.from_bytes(before, clock=clock)):  # which know the same
        other.reward(old.id, 29.0)
        assert other.to_bytes() == before
    assert {row["arm"]: row["timeouts"] for row in bandit.estimates()}[old.arm] == 1
    bandit.reward(young, 20.0)
    with pytest.raises(DecisionError):
        bandit.reward(young, 20.0)


def test_a_program_that_fails_its_own_time_outs_is_not_late():
    """`fail` comes right after 30 s, when the bandit has closed the decision, or closes it in this very call."""
    clock = Clock()
    bandit = bandit_of(rb.UCB1(), clock=clock)
    decision = bandit.decide()
    clock.now += 30.1
    bandit.fail(decision.id)
    row = next(row for row in bandit.estimates() if row["arm"] == decision.arm)
    assert (row["pulls"], row["failures"], row["timeouts"], row["mean"]) == (1, 0, 1, 30.0)


def test_expire_closes_a_decision_that_says_nothing():
    bandit = bandit_of()
    decision = bandit.decide()
    assert bandit.expire(decision) == 1
    assert bandit._deadline.waits.opened.sum() == 0
    assert all(row["timeouts"] == row["pulls"] == 0 for row in bandit.estimates())


def test_rewards_above_the_deadline_are_failures_and_warned_of_once():
    bandit = bandit_of(rb.UCB1(), failure_cost=40.0)
    with pytest.warns(AssumptionWarning, match=r"3 of 4 rewards are above deadline = 30, .* 40 each"):
        bandit.update_many(["a", "a", "b", "b"], [120.0, 80.0, 95.0, 0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit.reward(bandit.decide(), 1e6)
    assert bandit.estimates()[0]["mean"] == 40.0
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.update("a", 1e6)


def test_negative_rewards_are_refused_by_name():
    bandit = bandit_of()
    decision = bandit.decide()
    before = bandit.to_bytes()
    for call in (
        lambda: bandit.update("a", -1.0),
        lambda: bandit.update_many(["a", "a"], [1.0, -1.0]),
        lambda: bandit.reward(decision, -1.0),
        lambda: bandit.reward_many([decision], [-1.0]),
        lambda: bandit.apply(rb.events.Observed(arm="a", value=-1.0)),
    ):
        with raises(InvalidReward, parameter="reward", value=-1.0, rule="at least 0"):
            call()
    assert bandit.to_bytes() == before


def test_bad_settings_are_refused_by_name():
    for deadline in (0.0, -1.0, math.inf, "30"):
        assert_invalid(lambda deadline=deadline: bandit_of(deadline=deadline), "deadline", "finite number > 0")
    assert_invalid(lambda: bandit_of(failure_cost=29.0), "failure_cost", ">= 30")
    assert_invalid(lambda: bandit_of(deadline=None, failure_cost=29.0), "failure_cost", "no deadline")
    with raises(InvalidInput, parameter="deadline", rule="minimize=True"):
        rb.Bandit(ARMS, deadline=30.0)
    with raises(InvalidInput, parameter="deadline", rule="sticky_for"):
        bandit_of(sticky_for=60.0)
    for policy in (rb.GaussianTS(), rb.AdaRUCB(), rb.Restarting(), rb.Floor(rb.Restarting()), rb.EpsilonGreedy()):
        with raises(NotApplicable, parameter="deadline", rule="index policy"):
            bandit_of(policy)
    with pytest.raises(NotApplicable):
        rb.Bandit(ARMS, minimize=True).fail()
    with pytest.raises(DecisionError):
        bandit_of().fail("abcdefgh-1")


# --- decisions ---------------------------------------------------------------------------------------------------------------

POLICIES = [
    rb.AdaKLUCB(),
    rb.UCB1(),
    rb.RobustUCB(eps=1.0, u=4.0),
    rb.Probing(rb.AdaKLUCB()),
    rb.Floor(rb.AdaKLUCB(), share=0.1),
    rb.Floor(rb.Probing(rb.UCB1()), arms={"c": 0.2}),
]


def lived(bandit, clock, requests=300, *, hang=0.2, rate=20.0, seed=4, among=None):
    """Let a bandit serve requests whose first arm hangs now and then; return the arms."""
    rng = np.random.default_rng(seed)
    running, arms = [], []
    for _ in range(requests):
        clock.now += rng.exponential(1.0 / rate)
        for each in [each for each in running if each[0] <= clock.now]:
            running.remove(each)
            if rng.random() < 0.1:
                bandit.fail(each[1].id)
            else:
                bandit.reward(each[1].id, each[0] - each[1].time)
        decision = bandit.decide(among)
        arms.append(decision.arm)
        took = math.inf if decision.arm == "a" and rng.random() < hang else float(rng.lognormal(0.0, 0.7))
        running.append((clock.now + took, decision))
    return arms


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_log_replays_to_the_same_bytes_and_a_saved_bandit_goes_on(policy):
    clock, log = Clock(), []
    bandit = bandit_of(policy, clock=clock, log=log.append)
    lived(bandit, clock)
    bandit.pause_arm("b")
    lived(bandit, clock, 100, seed=5)
    bandit.resume_arm("b")
    bandit.add_arm("d")
    lived(bandit, clock, 100, seed=6, among=["a", "c", "d"])
    bandit.decide_many(5)
    bandit.select(["a", "d"])
    bandit.select()
    assert len(bandit.open) > 5
    again = bandit_of(policy, clock=clock)
    for event in log:
        again.apply(event.to_dict())
    for choice in (["a", "d"], None):
        again.select(choice)
    assert again.to_bytes() == bandit.to_bytes()
    half = bandit_of(policy, clock=clock)
    for event in log[:400]:
        half.apply(event)
    half = rb.Bandit.from_bytes(half.to_bytes(), clock=clock)
    for event in log[400:]:
        half.apply(event)
    for choice in (["a", "d"], None):
        half.select(choice)
    assert half.to_bytes() == bandit.to_bytes()
    start = clock.now
    first = lived(half, clock, 200, seed=7)
    clock.now = start
    assert lived(bandit, clock, 200, seed=7) == first


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_without_open_decisions_nothing_changes(policy):
    """If each reward comes at once, the decisions are those of a bandit without a deadline."""
    rng = np.random.default_rng(8)
    plain, timed = rb.Bandit(ARMS, policy, 1, minimize=True), bandit_of(policy)
    for _ in range(300):
        decision, other = plain.decide(), timed.decide()
        assert (other.arm, other.propensity) == (decision.arm, decision.propensity)
        cost = float(rng.lognormal(0.0, 0.7)) * (1.0 + 0.2 * ARMS.index(decision.arm))
        plain.reward(decision, cost)
        timed.reward(other, cost)


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[1], POLICIES[4]], ids=repr)
def test_young_open_decisions_change_nothing_either(policy):
    """All are younger than the cheapest request, so the full scan must choose as the lazy arg-max."""
    clock, rng = Clock(), np.random.default_rng(9)
    plain, timed = rb.Bandit(ARMS, policy, 1, minimize=True, clock=clock), bandit_of(policy, clock=clock)
    for _ in range(100):
        decisions = list(zip(plain.decide_many(4), timed.decide_many(4), strict=True))
        assert [(a.arm, a.propensity) for a, _ in decisions] == [(b.arm, b.propensity) for _, b in decisions]
        for decision, other in decisions:
            cost = 0.5 + float(rng.exponential()) * (1.0 + 0.2 * ARMS.index(decision.arm))
            plain.reward(decision, cost)
            timed.reward(other, cost)


def test_the_choice_is_the_lowest_index_plus_what_waits():
    clock = Clock()
    bandit = bandit_of(clock=clock)
    for k in range(60):
        bandit.update(ARMS[k % 3], 1.0 + 0.01 * (k % 7) + 0.3 * (k % 3))
    assert bandit.select() == "a"
    for _ in range(5):
        bandit.decide(arm="a")
    clock.now += 5.0
    rows = bandit.estimates()
    assert rows[0]["waiting"] > 1.0
    assert rows[1]["waiting"] == rows[2]["waiting"] == 0.0
    assert bandit.decide().arm == min(rows, key=lambda row: row["index"] + row["waiting"])["arm"] != "a"
    assert bandit.allocation(4)["a"] == 0.0


def test_edges_report_values_above_the_deadline_and_decisions_without_a_reward():
    bandit = bandit_of(rb.UCB1(), failure_cost=50.0)
    bandit.learn_pulls([(0, 2.0), (1, 31.0), (2, None)], 1)
    rows = bandit.estimates()
    assert [row["mean"] for row in rows] == [2.0, 50.0, 50.0]
    assert [row["timeouts"] for row in rows] == [0, 1, 1]


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_threads_share_a_bandit_with_a_deadline():
    bandit = rb.Bandit(ARMS, minimize=True, deadline=0.01)
    failures = []

    def serve(seed):
        try:
            for k in range(150):
                decision = bandit.decide()
                if (k + seed) % 5 == 0:
                    bandit.fail(decision.id)
                elif (k + seed) % 7:
                    bandit.reward(decision.id, 0.001)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=serve, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert bandit._deadline.waits.opened.sum() == len(bandit.open)
    assert sum(row["pulls"] for row in bandit.estimates()) + len(bandit.open) == 600
    assert rb.Bandit.from_bytes(bandit.to_bytes()).to_bytes() == bandit.to_bytes()


def test_a_damaged_deadline_is_refused_by_name():
    import hashlib

    import msgspec

    bandit = bandit_of()
    bandit.update_many(["a", "a", "b"], [1.0, 2.0, 3.0])
    data = bandit.to_bytes()
    fields = msgspec.msgpack.decode(data[HEADER:])
    limit, failure_cost, above, ends, costs, late = fields["deadline"]
    places, counts, sums = costs[0]
    changes = [
        [limit, 1.0, above, ends, costs, late],
        [limit, failure_cost, -1, ends, costs, late],
        [limit, failure_cost, above, ends[:2], costs, late],
        [limit, failure_cost, above, ends, [[places[:-2], counts, sums], *costs[1:]], late],
        [limit, failure_cost, above, ends, [[places[2:], counts[8:], sums[8:]], *costs[1:]], late],
        [
            limit,
            failure_cost,
            above,
            ends,
            [[places, counts, sums[:-8] + np.float64(math.nan).tobytes()], *costs[1:]],
            late,
        ],
        [limit, failure_cost, above, ends, [[np.int16(BINS + 9).tobytes(), counts[:8], sums[:8]], *costs[1:]], late],
    ]
    assert np.frombuffer(places, "<i2")[-1] == ALL
    for changed in changes:
        payload = msgspec.msgpack.encode(fields | {"deadline": changed})
        seal = hashlib.sha256(payload).digest()
        with pytest.raises(CorruptFile):
            rb.Bandit.from_bytes(MAGIC + data[len(MAGIC) : len(MAGIC) + 4] + seal + payload)


# --- does it help? -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def simulation(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import deadlines

    return deadlines


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_an_arm_that_hangs_loses_its_traffic_and_without_ages_it_does_not(simulation):
    """docs/results/deadlines.md has the long version: 60 runs, all scenarios."""
    hang, dead = "the best arm hangs in 5 %", "one arm never answers"
    lost = simulation.gaps(hang)
    regret = {
        way: np.mean([simulation.play(hang, 50.0, way, run) @ lost for run in range(1000, 1006)])
        for way in simulation.WAYS
    }
    assert regret["deadline=30"] <= 330.0  # 223 on average, with a standard deviation of 75 per run
    assert regret["cost 30 s when they end"] >= 1_200.0
    assert regret["expire without a trace"] >= 1_200.0
    assert simulation.play(dead, 50.0, "deadline=30", 1000)[2] <= 40


@pytest.mark.filterwarnings("ignore::robandit.errors.AssumptionWarning")
def test_means_for_people_have_the_failures():
    """A trimmed mean of these costs is 1.0: it takes the failures for outliers."""
    bandit = bandit_of(rb.UCB1(), arms=["a", "b"], failure_cost=40.0)
    rng = np.random.default_rng(5)
    bandit.update_many(
        ["a"] * 200, [float(cost) for cost in np.where(np.arange(200) % 50, rng.lognormal(0, 0.3, 200), 99.0)]
    )
    bandit.update_many(["b"] * 25, [99.0] * 25)
    first, second = bandit.standing().arms
    assert first.mean == pytest.approx(bandit.estimates()[0]["mean"])
    assert 1.7 < first.mean < 2.0
    assert 1.0 < first.low < first.mean < first.high < 4.0
    assert (second.mean, second.high) == (40.0, 40.0)
    plain = rb.Bandit(["a"], rb.UCB1(), minimize=True)
    plain.update_many(["a"] * 200, [min(cost, 40.0) for cost in bandit._record.settled().samples[0]])
    assert plain.standing().arms[0].mean < 1.2  # without a deadline, it is trimmed


def test_their_limits_cover_the_mean_and_those_of_trimmed_means_do_not():
    rng, runs, covered, trimmed = np.random.default_rng(6), 60, 0, 0
    truth = 0.98 * math.exp(0.125) + 0.02 * 30.0
    for _ in range(runs):
        sample = np.where(rng.random(300) < 0.02, 30.0, rng.lognormal(0.0, 0.5, 300))
        arm = KeptRewards("a", 300, 300, 0, sample)
        found, control = (mean_of(arm._replace(most=most), minimize=True) for most in (30.0, math.inf))
        covered += found.low <= truth <= found.high
        trimmed += control.low <= truth <= control.high
    assert covered >= 52  # fewer with a probability of 0.3 % if the coverage is 0.95
    assert trimmed < 30


@pytest.mark.filterwarnings("ignore::robandit.errors.AssumptionWarning")
def test_chances_to_be_the_best_have_the_failures():
    """The arm that answers faster fails in 2 % of its calls, so its mean cost is higher."""
    rng = np.random.default_rng(7)
    bandit = bandit_of(rb.UCB1(), arms=["fails", "slow"])
    fast = np.where(np.arange(400) % 50, rng.lognormal(-1.8, 0.5, 400), 99.0)
    bandit.update_many(["fails", "slow"] * 400, np.stack([fast, rng.lognormal(-1.0, 0.5, 400)]).T.ravel())
    leader = bandit.leader()
    assert leader.arm == "slow"
    assert leader.chance > 0.95
    tails = rb.Bandit(["fails", "slow"], rb.UCB1(), minimize=True)
    tails.update_many(
        ["fails", "slow"] * 400,
        np.concatenate([each.sample for each in bandit.kept_rewards()[0]]).reshape(2, -1).T.ravel(),
    )
    assert tails.leader().chance < 0.95  # as a tail, the failures would be smoothed
