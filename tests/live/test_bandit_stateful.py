"""A live bandit through everything that can happen to it, in any order, against plain models and a twin."""

import copy
import math
import pickle
import tempfile
import warnings
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import robandit as rb
from helpers.own_policies import Exp3
from helpers.rewards import rewards_within
from robandit.errors import (
    AssumptionWarning,
    DecisionError,
    DriftWarning,
    HorizonReached,
    InvalidInput,
    InvalidReward,
    NotApplicable,
    UnavailableArm,
    UnknownArm,
)
from robandit.live.engine import SIGNED_COLUMNS

ARMS = ("eu", ("us", 1), 3)
END = 20
UCB1, EXP3 = rb.UCB1(), Exp3()
ENDING = rb.RobustMOSS(horizon=END, eps=1.0, u=1.0)
RESTARTING = rb.Restarting(rb.UCB1(), rate=1.0, delta=0.5)
POLICIES = (UCB1, EXP3, ENDING, rb.AdaRUCB(c=0.4, delta_exp=0.5, bonus=0.2), rb.AdaKLUCB(), RESTARTING)

MOST = 5  # arms, added ones included
places = st.integers(0, MOST - 1)
values = st.one_of(rewards_within(100.0), st.sampled_from([0.0, -1.0, 1e150, -1e150, 1e-130]), st.integers(-1000, 1000))
no_rewards = st.sampled_from([math.nan, math.inf, -math.inf, "x", None, 1e200, 10**400, [1.0], 1j])
no_arms = st.sampled_from(["mars", 4, None, ["eu", {}], ("us", 2), math.nan])
# One way of saying a list for each kind of column that people have.
columns = st.sampled_from([list, tuple, iter, lambda items: np.array(items, dtype=object)])


def through_a_file(bandit):
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "life")
        return rb.Bandit.load(Path(folder) / "life")


COPIES = (through_a_file, copy.copy, copy.deepcopy, lambda bandit: pickle.loads(pickle.dumps(bandit)))


class UCB1Model:
    """UCB1 as its paper has it, with the clock and ties that the library promises for late rewards.

    Pulls whose rewards are late or lost count as pulls, but not in the mean. An arm without any reward is pulled first, unless
    many of its pulls have none.
    """

    def __init__(self):
        self.sums, self.counts, self.pulls, self.time = [0.0] * 3, [0] * 3, [0] * 3, 0

    def add_arm(self):
        for numbers in (self.sums, self.counts, self.pulls):
            numbers.append(0)

    def take(self, i):
        self.pulls[i] += 1
        self.time += 1

    def learn(self, i, value, mark):
        self.sums[i] += value
        self.counts[i] += 1

    def forget(self, i):
        """The pull stays counted."""

    def rows(self):
        """Mean and index of each arm."""
        level = math.log(self.time + 1)
        return [
            (s / n, s / n + math.sqrt(2 * level / m)) if n else (math.nan, math.inf)
            for s, n, m in zip(self.sums, self.counts, self.pulls, strict=True)
        ]

    def check_choice(self, i, allowed):
        assert i in allowed
        most = max(2, 4 * math.log(1 + self.time / len(self.pulls)))
        new = [j for j in allowed if not self.counts[j] and (not self.pulls[j] or self.pulls[j] < most)]
        if new:
            assert i == min(new, key=lambda j: (self.pulls[j], j))
            return
        indices = {j: self.rows()[j][1] for j in allowed if self.counts[j]}
        if indices:
            assert i in indices, "the others wait for a reward"
            assert indices[i] >= max(indices.values()) - 1e-9 * max(1.0, *map(abs, indices.values()))
        for j in allowed:
            if (self.sums[j], self.counts[j]) == (self.sums[i], self.counts[i]):
                assert (self.pulls[i], i) <= (self.pulls[j], j), "a tie goes to the fewest pulls, then to the first"

    def check_rows(self, rows):
        for row, (mean, index) in zip(rows, self.rows(), strict=True):
            assert row["mean"] == pytest.approx(mean, rel=1e-15, nan_ok=True)
            assert row["index"] == pytest.approx(index, rel=1e-12, abs=1e-12 * (0.0 if math.isnan(mean) else abs(mean)))


class Exp3Model:
    """Exponential weights: which arm is a matter of chance, with which probability is not."""

    def __init__(self):
        self.logs, self.size = [0.0] * 3, 1.0

    def add_arm(self):
        self.logs.append(0.0)

    def take(self, i):
        pass

    def chance(self, i):
        weights = [math.exp(log - max(self.logs)) for log in self.logs]
        return 0.8 * weights[i] / sum(weights) + 0.2 / len(weights)

    def learn(self, i, value, mark):
        self.logs[i] += 0.05 * value / mark
        self.size = max(self.size, abs(0.05 * value / mark))

    def forget(self, i):
        pass

    def check_choice(self, i, allowed):
        assert i in allowed

    def check_rows(self, rows):
        for row, log in zip(rows, self.logs, strict=True):
            assert row["log_weight"] == pytest.approx(log, rel=1e-12, abs=1e-12 * self.size)


@contextmanager
def warnings_aside():
    """Rewards here contradict any assumption; that a bandit then warns is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        warnings.simplefilter("ignore", DriftWarning)
        yield


class Life(RuleBasedStateMachine):
    """A bandit against a model of its policy (or none), and a twin that learns the same by other methods, and nothing else.

    The twin is never asked, saved, copied or refused anything; it decides when the bandit does. At the end, a third bandit applies
    the log of the first. With costs, models and twin get their negatives.
    """

    policy = UCB1

    @initialize(costs=st.booleans())
    def begin(self, costs):
        policy = self.policy
        self.sign = -1.0 if costs else 1.0
        self.log, self.now = [], 1000.0
        self.bandit = rb.Bandit(ARMS, policy, seed=0, minimize=costs, log=self.log.append, clock=self.clock)
        self.twin = rb.Bandit(ARMS, policy, seed=0)
        self.arms, self.states = list(ARMS), ["active"] * 3
        if policy.weighted:  # where asking draws a random number, only who asks as often is a twin
            self.twin = None
        self.model = {UCB1: UCB1Model, EXP3: Exp3Model}.get(policy, lambda: None)()
        self.rewards = [[], [], []]
        self.open, self.of_twin, self.closed = {}, {}, []
        self.pulls = 0

    def clock(self):
        self.now += 1.0
        return self.now

    @property
    def active(self):
        return [i for i, state in enumerate(self.states) if state == "active"]

    def place(self, i):
        return i % len(self.arms)

    @property
    def left(self):
        return END - self.pulls if self.policy == ENDING else math.inf

    def fit(self, value):
        """Weights are exponential in the rewards: of huge ones nothing is left to compare."""
        return max(-100.0, min(100.0, value)) if self.policy.weighted else value

    def took(self, i):
        self.pulls += 1
        if self.model:
            self.model.take(i)

    def learned(self, i, value, mark=None):
        self.rewards[i].append(float(value))
        if self.model:
            self.model.learn(i, self.sign * float(value), mark)

    @contextmanager
    def refused(self, *errors):
        """An error leaves everything as it was."""
        before = pickle.dumps(self.bandit)
        with pytest.raises(errors) as caught:
            yield
        assert len(str(caught.value)) > 20
        assert pickle.dumps(self.bandit) == before

    # --- what happens ---

    @rule(events=st.lists(st.tuples(st.sampled_from("auddrecsDnpx"), places, values), min_size=20, max_size=60))
    def live(self, events):
        """Mostly this, whatever rules a run has: without decisions most of the others have nothing to do."""
        for kind, i, value in events:
            if kind == "u":
                self.update(i, value)
            elif kind == "d":
                self.decide()
            elif kind == "D":
                self.decide(among=range(i + 1))
            elif kind == "a":
                self.ask()
            elif kind == "s":
                self.expire_old(i)
            elif kind == "c":
                self.go_on_as_a_copy(COPIES[i % len(COPIES)])
            elif kind == "n":
                self.add_arm()
            elif kind == "p":
                self.pause_or_resume(i)
            elif kind == "x":
                if value == 0.0:
                    self.retire(i)
            elif self.open:
                number = list(self.open)[i % len(self.open)]
                if kind == "r":
                    self.reward(number, value, by_id=i == 0)
                else:
                    self.expire([number])
            self.all_agree()

    def update(self, i, value):
        i = self.place(i)
        if self.left < 1:
            with self.refused(HorizonReached):
                self.bandit.update(self.arms[i], value)
            return
        chance = None
        value = self.fit(value)
        if self.policy.weighted:
            i = self.arms.index(self.bandit.select())
            chance = self.model.chance(i)
        with warnings_aside():
            self.bandit.update(self.arms[i], value)
            if self.twin:
                self.twin.update_many([self.arms[i]], [self.sign * value])
        self.took(i)
        self.learned(i, value, chance)

    @precondition(lambda self: self.left >= 1)
    @rule(several=st.lists(values, min_size=10, max_size=30))
    def follow(self, several):
        for value in several[: min(len(several), self.left)]:
            if not self.active:
                return
            i = self.arms.index(self.bandit.select())
            if self.model:
                self.model.check_choice(i, self.active)
            self.update(i, value)

    @rule(several=st.lists(st.tuples(places, values), max_size=8), copies=st.sampled_from([1, 1, 40]), column=columns)
    def update_many(self, several, copies, column):
        several = [(self.place(i), value) for i, value in several] * copies
        names, told = [self.arms[i] for i, _ in several], [value for _, value in several]
        if self.policy.weighted or self.left < len(several):
            with self.refused(DecisionError if self.policy.weighted else HorizonReached):
                self.bandit.update_many(names, told)
            return
        kept = np.empty(len(names), dtype=object)
        kept[:] = names  # NumPy would make a table of the tuples
        with warnings_aside():
            self.bandit.update_many(kept if column not in (list, tuple, iter) else column(names), column(told))
            for i, value in several:
                self.twin.update(self.arms[i], self.sign * value)
        for i, value in several:
            self.took(i)
            self.learned(i, value)

    def decide(self, among=None):
        names = None if among is None else [self.arms[i] for i in among if i < len(self.arms)]
        allowed = [i for i in self.active if names is None or self.arms[i] in names]
        if not allowed:
            for ask in (self.bandit.decide, self.bandit.select):
                with self.refused(UnavailableArm, *[HorizonReached] * (self.left < 1)):
                    ask(among=names)
            return
        if names is not None and not self.policy.respects_allowed:
            with self.refused(NotApplicable):
                self.bandit.decide(among=names)
            return
        if self.left < 1:
            for ask in (self.bandit.decide, self.bandit.select):
                with self.refused(HorizonReached):
                    ask(among=names)
            return
        decision = self.bandit.decide(among=names)
        i = self.arms.index(decision.arm)
        assert i in allowed
        if self.twin:
            self.of_twin[decision.id] = self.twin.decide(among=names and names[::-1])
            assert self.of_twin[decision.id].arm == decision.arm
        if self.policy.weighted:
            assert decision.propensity == pytest.approx(self.model.chance(i), rel=1e-9)
        else:
            assert decision.propensity is None
        assert decision.time == self.now
        assert decision.id not in self.open
        assert decision.id not in self.closed
        if self.model:
            self.model.check_choice(i, allowed)
        self.took(i)
        self.open[decision.id] = decision

    def close(self, number):
        decision = self.open.pop(number)
        self.closed.append(number)
        return decision, self.of_twin.get(number)

    def reward(self, number, value, by_id):
        decision, its = self.close(number)
        value = self.fit(value)
        with warnings_aside():
            self.bandit.reward(decision.id if by_id else decision, value)
            if self.twin:
                self.twin.reward_many([its.id], [self.sign * value])
        self.learned(self.arms.index(decision.arm), value, decision.propensity)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), value=values, column=columns)
    def reward_many(self, data, value, column):
        order = data.draw(st.permutations(list(self.open)))
        told = [self.fit(value + j) for j in range(len(order))]
        with warnings_aside():
            self.bandit.reward_many(iter(order), column(told))
            for number, each in zip(order, told, strict=True):
                decision, its = self.close(number)
                if self.twin:
                    self.twin.reward(its, self.sign * each)
                self.learned(self.arms.index(decision.arm), each, decision.propensity)

    def expire(self, gone):
        assert self.bandit.expire(*gone, *gone[:1]) == len(gone)
        self.are_gone(gone)

    def expire_old(self, seconds):
        now = self.now + 1.0  # the clock moves when it is read
        gone = [d.id for d in self.open.values() if d.time < now - 5 * seconds]
        assert self.bandit.expire(older_than=timedelta(seconds=5 * seconds)) == len(gone)
        self.are_gone(gone)

    def are_gone(self, gone):
        for number in gone:
            decision, its = self.close(number)
            if self.twin:
                self.twin.expire(its)
            if self.model:
                self.model.forget(self.arms.index(decision.arm))

    # --- arms that come and go ---

    def both(self, name, *arguments):
        for bandit in (self.bandit, self.twin):
            if bandit:
                getattr(bandit, name)(*arguments)

    @rule()
    def add_arm(self):
        with self.refused(InvalidInput):
            self.bandit.add_arm(self.arms[0])
        if len(self.arms) < MOST:
            arm = ("new", len(self.arms))
            self.both("add_arm", arm)
            self.arms.append(arm)
            self.states.append("active")
            self.rewards.append([])
            if self.model:
                self.model.add_arm()

    @rule(i=places)
    def pause_or_resume(self, i):
        i = self.place(i)
        if not self.policy.respects_allowed:
            with self.refused(NotApplicable):
                self.bandit.pause_arm(self.arms[i])
        elif self.states[i] == "active":
            self.both("pause_arm", self.arms[i])
            self.states[i] = "paused"
        elif self.states[i] == "paused":
            with self.refused(InvalidInput):
                self.bandit.pause_arm(self.arms[i])
            self.both("resume_arm", self.arms[i])
            self.states[i] = "active"
        else:
            with self.refused(InvalidInput):
                self.bandit.resume_arm(self.arms[i])

    @rule(i=places)
    def retire(self, i):
        i = self.place(i)
        if not self.policy.respects_allowed:
            with self.refused(NotApplicable):
                self.bandit.retire_arm(self.arms[i])
        elif self.states[i] != "retired" and self.states.count("retired") < 2:
            self.both("retire_arm", self.arms[i])
            self.states[i] = "retired"

    # --- invalid input ---

    @rule(bad=no_rewards, arm=no_arms)
    def bad_values(self, bad, arm):
        with self.refused(InvalidReward):
            self.bandit.update("eu", bad)
        with self.refused(UnknownArm):
            self.bandit.update(arm, 1.0)
        if not self.policy.weighted:
            with self.refused(InvalidReward):
                self.bandit.update_many([3, 3], [1.0, bad])
            with self.refused(UnknownArm):
                self.bandit.update_many([3, arm], [1.0, 1.0])
            with self.refused(InvalidInput):
                self.bandit.update_many([3], [1.0, 2.0])

    @rule(bad=no_rewards)
    def bad_late_values(self, bad):
        good = list(self.open)[:1]
        for number in [*self.closed[:20], "k3m9qd2x7wfa-0", 0, -1, True, 0.0, "0"]:
            for act in (
                lambda: self.bandit.reward(number, 1.0),  # noqa: B023 - called at once
                lambda: self.bandit.expire(*good, number),  # noqa: B023
                lambda: self.bandit.reward_many([*good, number], [1.0] * (1 + len(good))),  # noqa: B023
            ):
                with self.refused(DecisionError):
                    act()
        for number in good:
            with self.refused(InvalidReward):
                self.bandit.reward(number, bad)
            with self.refused(DecisionError):
                self.bandit.reward_many([number, number], [1.0, 1.0])
            with self.refused(DecisionError):
                self.bandit.reward(self.open[number]._replace(arm="mars"), 1.0)

    # --- what changes nothing ---

    @rule()
    def ask(self):
        if self.left < 1 or not self.active:
            return
        arm = self.bandit.select()
        asked = pickle.dumps(self.bandit)
        rows = self.bandit.estimates()
        self.bandit.counters(), self.bandit.open, self.bandit.arms, repr(self.bandit)
        assert self.bandit.select() == arm
        for row, now in zip(rows, self.bandit.estimates(), strict=True):
            assert (now.pop("arm"), now.pop("state")) == (row.pop("arm"), row.pop("state"))
            assert now == pytest.approx(row, rel=1e-9, nan_ok=True)
        assert pickle.dumps(self.bandit) == asked, "asking never learns"
        if self.model:
            self.model.check_choice(self.arms.index(arm), self.active)

    @rule()
    def diagnose(self):
        before = pickle.dumps(self.bandit)
        said = self.bandit.diagnose()
        assert str(said)
        assert pickle.dumps(self.bandit) == before
        assert [row.state for row in said.arms] == self.states
        for row, seen in zip(said.arms, self.rewards, strict=True):
            assert row.pulls == row.recorded == len(seen)
            assert row.sampled == min(len(seen), 2048)
            assert row.zeros == pytest.approx(seen.count(0.0) / len(seen) if seen else math.nan, nan_ok=True)
            if 0 < len(seen) <= 2048:
                assert min(seen) <= row.median <= max(seen)

    @rule(way=st.sampled_from(COPIES))
    def go_on_as_a_copy(self, way):
        self.bandit = way(self.bandit)
        self.bandit._log, self.bandit._clock = self.log.append, self.clock

    @precondition(lambda self: self.left >= 8 and self.active)
    @rule(way=st.sampled_from(COPIES), several=st.lists(values, min_size=8, max_size=8))
    def a_copy_has_the_same_future(self, way, several):
        before = pickle.dumps(self.bandit)
        lives = [way(self.bandit), copy.deepcopy(self.bandit)]
        futures = []
        for life in lives:
            arms = []
            with warnings_aside():
                for j, value in enumerate(several):
                    if j % 2:
                        decision = life.decide()
                        life.reward(decision, value)
                        arms.append((decision.arm, decision.propensity))
                    else:
                        arms.append(life.select())
                        life.update(arms[-1], value)
            futures.append((arms, life.open, repr(life.estimates())))
        assert futures[0] == futures[1]
        assert pickle.dumps(self.bandit) == before, "a copy lives by itself"

    @invariant()
    def all_agree(self):
        if not hasattr(self, "bandit"):
            return
        rows = self.bandit.estimates()
        assert [row["arm"] for row in rows] == list(self.bandit.arms) == self.arms
        assert [row["state"] for row in rows] == list(self.bandit.states.values()) == self.states
        assert [row["pulls"] for row in rows] == list(map(len, self.rewards))
        assert {d.id: d for d in self.bandit.open} == self.open
        assert [d.id for d in self.bandit.open] == list(self.open)
        assert self.bandit.open_count == len(self.open)
        counters = self.bandit.counters()
        assert (counters["rewards"], counters["open"]) == (sum(map(len, self.rewards)), len(self.open))
        if self.model:
            signs = {name: self.sign if name in SIGNED_COLUMNS else 1.0 for name in self.policy.columns}
            self.model.check_rows([{name: sign * row[name] for name, sign in signs.items()} for row in rows])

    def teardown(self):
        if hasattr(self, "bandit"):
            again = rb.Bandit(ARMS, self.policy, seed=0, minimize=self.sign < 0.0)
            for event in self.log:
                again.apply(event.to_dict())
            self.bandit.add_arm("the last event")  # so that no select() is pending
            again.apply(self.log[-1])
            assert again.to_bytes() == self.bandit.to_bytes(), "the log has all that happened"
            assert again.open == self.bandit.open
            assert repr(again.estimates()) == repr(self.bandit.estimates())


def lives(policy):
    case = type(f"Life of {policy.label}", (Life,), {"policy": policy}).TestCase
    case.settings = settings(
        max_examples=12,
        stateful_step_count=10,
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return case


TestUCB1, TestExp3, TestRobustMOSS, TestAdaRUCB, TestAdaKLUCB, TestRestarting = map(lives, POLICIES)
