"""Probes and restarts around other policies, compared with a slow model; what the wrapper passes through."""

import copy
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from references.slow_drift_policies import SlowDrift
from robandit.drift.detector import DELTA
from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.drift import schedule
from robandit.problems import InOrder, changing, gaussian, negated_pareto


class Sums(NamedTuple):
    count: Any
    total: Any


class Greedy(rb.Policy):
    """Untried arms first, then the greatest mean; the lowest arm in a tie."""

    respects_allowed = True
    columns = ("mean",)

    def init(self, arms, horizon):
        return Sums(np.zeros(arms), np.zeros(arms))

    @staticmethod
    def select(p, s):
        chosen, best = -1, -math.inf
        for arm in range(s.count.shape[0]):
            value = s.total[arm] / s.count[arm] if s.count[arm] > 0.0 else math.inf
            if s.allowed[arm] and (chosen < 0 or value > best):
                chosen, best = arm, value
        return chosen

    @staticmethod
    def update(p, s, arm, reward):
        s.count[arm] += 1.0
        s.total[arm] += reward

    @staticmethod
    def estimate(p, s, arm, out):
        out[0] = s.total[arm] / s.count[arm] if s.count[arm] > 0.0 else math.nan


# Interpreted hooks: the hashes of 64-bit integers wrap around, as they should.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
COMBINATORS = [rb.Probing, rb.Restarting]


def rewards_of(generator, arms, steps):
    """Dyadic rewards, so that sums are exact; the law of every arm changes now and then."""
    level = np.repeat(generator.integers(-3, 4, (steps // 300 + 1, arms)), 300, axis=0)[:steps]
    return np.round(4.0 * (level + generator.normal(size=(steps, arms)))) / 4.0


@pytest.mark.independent("Probing", "Restarting")
@pytest.mark.parametrize("combinator", COMBINATORS)
@pytest.mark.parametrize(("arms", "rate", "late"), [(2, 0.1, 0), (3, 1.0, 0), (3, 1.0, 20), (5, 0.5, 6), (4, 0.0, 5)])
def test_choices_are_those_of_the_slow_model(combinator, arms, rate, late):
    generator = np.random.default_rng([arms, late])
    steps = 1500
    table = rewards_of(generator, arms, steps)
    fast, slow = Plain(combinator(Greedy(), rate=rate), arms), SlowDrift(arms, rate, combinator is rb.Restarting)
    waiting = []
    for t in range(steps):
        if late and t % 40 == 0:  # a random set of arms, not empty
            mask = generator.random(arms) < 0.7
            mask[generator.integers(arms)] = True
        elif t % 40 == 20 or t == 0:
            mask = np.ones(arms, dtype=bool)
        fast.policy.set_allowed(fast.s, mask)
        arm = fast.ask()
        assert fast.ask() == arm == slow.choose(np.flatnonzero(mask).tolist())
        if late and t % 50 == 49:  # the user's own choice, which need not be allowed
            arm = int(generator.integers(arms))
        waiting.append((arm, float(table[t, arm]), fast.issue(arm)))
        slow.pull(arm)
        while len(waiting) > late or (waiting and generator.random() < 0.2):
            arm, reward, mark = waiting.pop(int(generator.integers(len(waiting))))
            if late and generator.random() < 0.1:
                fast.forget(arm, mark)
                slow.lose(arm)
            else:
                fast.late(arm, reward, mark)
                slow.learn(arm, reward)
    counters = fast.policy.counters(fast.s)
    assert counters == {"probes": slow.probes, "alarms": slow.alarms, "restarts": slow.restarted}
    assert slow.alarms > 3
    assert (slow.probes > 5) == (rate > 0.0)


@pytest.mark.parametrize("combinator", COMBINATORS)
def test_an_arm_that_never_returns_costs_no_time(combinator, monkeypatch):
    """After a retirement, the schedule looks at all arms about as often as before."""
    looks = []
    monkeypatch.setattr(schedule, "most_idle", lambda p, s: looks.append(1) or -1)
    plain = Plain(combinator(Greedy()), 3)
    plain.policy.paused(plain.s, 2)
    plain.policy.set_allowed(plain.s, [True, True, False])
    for t in range(3000):
        plain.ask()
        plain.tell(t % 2, 0.0)
    assert len(looks) < 100
    plain.policy.resumed(plain.s, 2)
    plain.policy.set_allowed(plain.s, [True, True, True])
    del looks[:]
    plain.ask()
    assert looks  # the arm was away for long


def test_a_lost_reward_ends_a_burst():
    plain = Plain(rb.Probing(Greedy(), rate=1.0), 2)
    generator = np.random.default_rng(0)
    for _ in range(100):
        plain.tell(0, float(generator.normal()))
        plain.tell(1, float(generator.normal()))
    for _ in range(200):
        plain.tell(0, float(generator.normal()))
    probes = plain.policy.counters(plain.s)["probes"]
    plain.forget(1, plain.issue(1))
    assert plain.policy.counters(plain.s)["probes"] == probes + 1
    plain.tell(1, 100.0)  # not a probe: so it does not start a burst
    assert plain.s.drift_book[schedule.FORCED] == -1.0
    assert plain.policy.counters(plain.s)["probes"] == probes + 1


def test_compiled_hooks_make_the_same_choices():
    table = np.ascontiguousarray(rewards_of(np.random.default_rng(5), 3, 3000).T)
    for combinator in COMBINATORS:
        policy = combinator(rb.UCB1(scale=4.0))
        fast, plain = Live(policy, 3), Plain(policy, 3)
        np.testing.assert_array_equal(fast.replay(table, 3000), plain.replay(table, 3000))
        assert fast.policy.counters(fast.s) == plain.policy.counters(plain.s)
        assert fast.policy.alarms(fast.s) == plain.policy.alarms(plain.s)
        assert fast.policy.counters(fast.s)["alarms"] > 2


@pytest.mark.parametrize("inner", [rb.UCB1(), rb.EpsilonGreedy()], ids=lambda policy: policy.name)
def test_without_probes_and_alarms_it_is_the_inner_policy(inner):
    problem = negated_pareto([-1.0, -1.5], tail=2.5)
    policies = [inner, rb.Restarting(inner, rate=0.0, delta=1e-12), rb.Restarting(inner, rate=1.0)]
    result = rb.simulate(policies, problem, 2000, 5, seed=3)
    np.testing.assert_array_equal(result.regret[0], result.regret[1])
    assert result.counters[1]["restarts"] == 0
    assert (result.regret[0] != result.regret[2]).any()  # the control: probes do change choices


def test_the_delay_after_a_change():
    """After the best arm fell, restarts lose less than a tenth of what the policy loses alone.

    The shares of eight seeds are 0.036 to 0.047, and the standard error of one is 0.004. Those of probes are 0.997 to 0.999.
    """
    problem = changing("fall", gaussian([1.0, 0.5, 0.0]), at=2000)
    policies = [rb.UCB1(), rb.Probing(rb.UCB1()), rb.Restarting(rb.UCB1())]
    after = rb.simulate(policies, problem, 4000, 20, seed=1, checkpoints=[2000]).regret
    alone, probing, restarting = (after[:, :, 1] - after[:, :, 0]).mean(axis=1)
    assert restarting < 0.1 * alone
    assert probing > 0.9 * alone  # the control: probes do not help here


def test_probes_find_an_arm_that_became_the_best():
    problem = changing("rise", gaussian([1.0, 0.5, -2.0]), at=3000)
    policies = [rb.UCB1(), rb.Probing(rb.UCB1())]
    after = rb.simulate(policies, problem, 8000, 20, seed=1, checkpoints=[3000]).regret
    alone, probing = (after[:, :, 1] - after[:, :, 0]).mean(axis=1)
    assert probing < 0.7 * alone


def test_false_alarms_are_rare():
    """With probability at most delta per arm: 60 streams and delta = 0.01 have more than 6 alarms with probability 1e-7."""
    problem = negated_pareto([-1.0, -1.5, -2.0], tail=1.2)
    counters = rb.simulate(rb.Probing(rb.UCB1()), problem, 5000, 20, seed=2).counters[0]
    assert counters["alarms"] <= 6
    control = rb.simulate(rb.Restarting(rb.UCB1(), delta=0.999), problem, 5000, 20, seed=2).counters[0]
    assert control["alarms"] > 20


def test_recorded_tables_in_time_order():
    table = InOrder(rewards_of(np.random.default_rng(0), 3, 2000))
    result = rb.simulate([c(rb.UCB1()) for c in COMBINATORS], table, 2000, 2, seed=0)
    assert result.counters[0]["alarms"] > 0
    assert result.counters[1]["restarts"] == result.counters[1]["alarms"] > 0


# --- a live bandit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("combinator", COMBINATORS)
@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")
def test_a_saved_bandit_goes_on(combinator, tmp_path):
    table = rewards_of(np.random.default_rng(9), 3, 900)
    bandit = rb.Bandit(["a", "b", "c"], combinator(rb.UCB1(scale=4.0), rate=1.0), seed=1)
    for t in range(900):
        if t == 450:
            bandit.save(tmp_path / "bandit")
            other = rb.Bandit.load(tmp_path / "bandit")
        for each in (bandit,) if t < 450 else (bandit, other):
            arm = each.select()
            each.update(arm, float(table[t, "abc".index(arm)]))
    assert other.to_bytes() == bandit.to_bytes()
    assert bandit.counters()["probes"] > 0
    assert bandit.counters()["alarms"] > 0


def ready(policy):
    """Return a policy with what it must be told, for rewards of about -5."""
    limited = isinstance(policy, rb.UCBV) or {"lower", "upper"} & set(policy.facts.knows)
    problem = rb.problems.bernoulli([0.2, 0.8]) if limited else gaussian([-2.0, -3.0, -4.0])
    if isinstance(policy, rb.MaillardSampling) and limited:
        return rb.MaillardSampling(family="bounded", lower=-20.0, upper=10.0)
    return policy.informed_by(problem).prepared(300)


PLAIN_POLICIES = [policy for policy in rb.policies.all_policies() if not policy.weighted]
PLAIN_POLICIES = [ready(policy) for policy in PLAIN_POLICIES if type(policy) not in (*COMBINATORS, rb.Floor)]


def signed_counts(state):
    """Return the least number of every array of counts."""
    names = ("pulls", "counts", "plan", "run", "slots", "clock")
    return {name: int(getattr(state, name).min()) for name in names if name in state._fields}


# RMM-UCB takes five seconds here, and MARS has the same state. PerCell refuses to be restarted.
TOO_SLOW = amount(("RMM-UCB",), ())
RESTARTED = [p for p in PLAIN_POLICIES if p.label not in TOO_SLOW and not isinstance(p, rb.PerCell)]


@pytest.mark.parametrize("inner", RESTARTED, ids=lambda policy: policy.name)
def test_every_policy_can_restart_with_open_decisions(inner):
    """Rewards and expiries of decisions from before a restart neither break counters nor are lost."""
    plain = Plain(rb.Restarting(inner, rate=1.0), 3, horizon=300)
    least = signed_counts(plain.s)  # 0, and -1 for an arm that is not known yet
    generator, waiting, old = np.random.default_rng(0), [], 0
    for t in range(290):
        arm = plain.ask()
        assert 0 <= arm < 3
        waiting.append((arm, plain.issue(arm)))
        if len(waiting) > 6:
            arm, mark = waiting.pop(int(generator.integers(6)))
            old += schedule.is_old(plain.s, mark)
            if generator.random() < 0.3:
                plain.forget(arm, mark)
            else:
                plain.late(arm, float(generator.normal((-2.0 if t < 140 else -9.0) - arm)), mark)
        counts = signed_counts(plain.s)
        assert all(count >= min(0, least[name]) for name, count in counts.items()), counts
    assert plain.policy.counters(plain.s)["restarts"] > 0
    assert old > 3
    assert len(waiting) == 6
    if plain.policy.columns:
        assert set(plain.describe()) == set(inner.columns)


@pytest.mark.parametrize(
    "inner", [rb.UCB1(), rb.AdaRUCB(), rb.AdaKLUCB(), rb.ForceMoM()], ids=lambda policy: policy.name
)
@pytest.mark.parametrize("rewarded", [False, True])
def test_many_open_decisions_at_a_restart(inner, rewarded):
    """After them the policy plays as one that never had them: lost ones leave no trace, late rewards count as new pulls."""

    def lost_in_a_restart(pulls):
        plain, generator = Plain(rb.Restarting(inner, rate=0.0), 2), np.random.default_rng(4)
        for _ in range(200):
            plain.tell(0, float(generator.normal(-1.0)))
            plain.tell(1, float(generator.normal(-3.0)))
        marks = [plain.issue(0) for _ in range(pulls)]
        for _ in range(60):
            plain.tell(1, float(generator.normal(-9.0)))
        assert plain.policy.counters(plain.s)["restarts"] == 1
        for mark in marks:
            plain.late(0, -1.0, mark) if rewarded else plain.forget(0, mark)
        for _ in range(0 if pulls or not rewarded else 40):
            plain.tell(0, -1.0)
        chosen = []
        for _ in range(200):
            chosen.append(plain.ask())
            plain.tell(chosen[-1], float(generator.normal((-1.0, -9.0)[chosen[-1]])))
        return chosen, plain.s

    (chosen, state), (expected, other) = lost_in_a_restart(40), lost_in_a_restart(0)
    assert chosen == expected
    assert chosen.count(0) > 100
    for name in set(state._fields) - {"drift_arms", "drift_book", "drift_log"}:
        np.testing.assert_array_equal(getattr(state, name), getattr(other, name), err_msg=name)


class OddMarks(Greedy):
    """A policy with this mark, which it expects back."""

    mark: float = 0.5

    @staticmethod
    def take(p, s, arm):
        return p.mark

    @staticmethod
    def update(p, s, arm, reward, mark):
        s.count[arm] += 1.0
        s.total[arm] += mark


@pytest.mark.parametrize("mark", [0.0, 7.0, 2.0**31 - 1.0, 0.5, -3.0, 2.0**31, 2.0**33 + 0.5])
def test_the_other_policy_gets_its_own_marks(mark):
    plain = Plain(rb.Restarting(OddMarks(mark=mark)), 2)
    for restarts in (0.0, 1.0, 5.0, 2.0**20, 2.0**20 + 1.0):
        plain.s.drift_book[schedule.RESTARTS] = restarts
        plain.s.total[:] = 0.0
        given = plain.issue(0)
        assert not schedule.is_old(plain.s, given)
        plain.late(0, 1.0, given)
        assert plain.s.total[0] == mark
        plain.s.drift_book[schedule.RESTARTS] = 3.0
        assert schedule.is_old(plain.s, given) == (0.0 <= mark < 2.0**31 and mark % 1.0 == 0.0)


def test_alarms_are_reported():
    generator = np.random.default_rng(1)
    plain = Plain(rb.Probing(Greedy()), 2)
    assert plain.policy.alarms(plain.s) == ()
    for _ in range(3):
        for level in (0.0, 9.0):
            for _ in range(200):
                plain.tell(1, float(generator.normal(level)))
    alarms = plain.policy.alarms(plain.s)
    assert [alarm.kind for alarm in alarms] == ["level up", "level down"] * 2 + ["level up"]
    assert [abs(alarm.changed - 200 * (i + 1)) <= 3 for i, alarm in enumerate(alarms)] == [True] * 5
    assert str(alarms[0]).startswith("arm 1 changed around its reward 20")
    assert abs(alarms[0].before.median) < 0.3
    many = Plain(rb.Restarting(Greedy()), 40)
    for arm in range(40):
        for t in range(160):
            many.tell(arm, float(generator.normal(9.0 * (t >= 100))))
    assert many.policy.counters(many.s)["alarms"] == 40
    assert [alarm.arm for alarm in many.policy.alarms(many.s)] == list(range(40 - schedule.LOGGED, 40))


@pytest.mark.parametrize("combinator", COMBINATORS)
def test_the_probability_of_a_choice(combinator):
    """A probe is certain; other choices have the probabilities of the inner policy."""
    assert not combinator(rb.UCB1()).randomised
    plain = Plain(combinator(rb.EpsilonGreedy(), rate=1.0), 3)
    inner = Plain(rb.EpsilonGreedy(), 3)
    assert plain.policy.randomised
    generator, probes = np.random.default_rng(2), 0
    for _ in range(300):
        before = plain.s.rng.copy()
        told = [plain.policy.hooks("chance")[0](plain.p, plain.s, arm) for arm in range(3)]
        own = [inner.policy.hooks("chance")[0](inner.p, inner.s, arm) for arm in range(3)]
        assert (plain.s.rng == before).all()
        arm = plain.ask()
        if told[arm] == 1.0 and told != own:
            probes += 1
            assert sorted(told) == [0.0, 0.0, 1.0]
            assert arm == schedule.due(plain.p, plain.s)
        else:
            assert told == own
        reward = float(generator.normal(arm))
        plain.tell(arm, reward)
        inner.tell(arm, reward)
    assert probes > 3


def test_arms_can_be_added():
    for combinator in COMBINATORS:
        policy = combinator(rb.UCB1(), rate=1.0)
        plain, generator = Plain(policy, 2), np.random.default_rng(3)
        for t in range(200):
            plain.tell(plain.ask(), float(generator.normal(5.0 * (t > 100))))
        plain.s = policy.extended(plain.s)
        plain._flat = (plain.p, plain.s)
        policy.resumed(plain.s, 2)
        policy.set_allowed(plain.s, [True, True, True])
        chosen = []
        for _ in range(100):
            chosen.append(plain.ask())
            plain.tell(chosen[-1], float(generator.normal()))
        assert 2 in chosen[:5]
        assert plain.s.drift_watch.shape[0] == plain.s.drift_arms.shape[0] == 3


# --- a value ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("combinator", COMBINATORS)
def test_it_is_a_value(combinator):
    policy = combinator(rb.UCB1(scale=2.0), rate=0.2)
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy)), rb.Policy.from_dict(policy.to_dict())):
        assert other == policy
        assert hash(other) == hash(policy)
    assert policy != combinator(rb.UCB1(), rate=0.2)
    assert combinator() == combinator(rb.AdaKLUCB()) == combinator(of=rb.AdaKLUCB())
    assert combinator.variants() == (combinator(),)
    assert policy.hooks("select") == combinator(rb.UCB1(scale=2.0)).hooks("select")


def test_names_and_facts():
    assert rb.Probing().name == "AdaKL-UCB with probes"
    assert rb.Restarting(rb.UCB1(scale=2.0), delta=0.1).name == "UCB1(scale=2.0) with restarts (delta=0.1)"
    for combinator in COMBINATORS:
        facts = combinator(rb.UCB1()).facts
        assert facts.assumption == rb.UCB1().facts.assumption
        assert facts.bound == facts.instance == facts.worst == ""
        assert combinator(rb.UCB1()).columns == rb.UCB1.columns
        with pytest.raises(NotApplicable):
            rb.theory.regret_bound(combinator(rb.UCB1()), gaussian([0.0, 1.0]), 100)


def test_parameters_of_the_inner_policy_are_filled_in():
    problem = negated_pareto([-1.0, -2.0], tail=2.5)
    policy = rb.Probing(rb.RobustMOSS()).informed_by(problem)
    assert policy.of == rb.RobustMOSS().informed_by(problem)
    assert (policy.u, policy.eps) == (policy.of.u, policy.of.eps)
    assert policy.prepared(50).of.horizon == policy.prepared(50).longest == 50
    assert not hasattr(policy, "nonsense")
    with pytest.raises(InvalidInput, match="cannot play without"):
        rb.Probing(rb.RobustMOSS()).prepared(50)
    plain = Plain(policy, 2, horizon=50)
    for _ in range(50):
        plain.tell(plain.ask(), -1.0)
    assert plain.s.drift_book[schedule.CLOCK] == 50.0


@pytest.mark.parametrize("combinator", COMBINATORS)
def test_what_cannot_be_wrapped(combinator):
    with pytest.raises(NotApplicable, match=r"HTINF.*probability of its own choice"):
        combinator(rb.HTINF(eps=1.0, u=1.0))
    with pytest.raises(InvalidInput, match="nested"):
        combinator(rb.Probing())
    with raises(InvalidInput, parameter="of", rule="a policy"):
        combinator(rb.UCB1)
    for rate in (-0.1, 1.1, math.nan, "often"):
        with raises(InvalidInput, parameter="rate", rule="a finite number >= 0 and <= 1"):
            combinator(rate=rate)
    for delta in (0.0, 1.5):
        with raises(InvalidInput, parameter="delta", rule="a finite number > 0 and <= 1"):
            rb.Restarting(delta=delta)
    assert rb.Restarting().delta == DELTA
