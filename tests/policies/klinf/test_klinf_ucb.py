"""KLinf-UCB: its index against SciPy and closed forms, its decisions against a slow policy, batches, late rewards, outliers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_klinf_ucb import SlowKLinfUCB, divergence_for, least_divergence, slow_index
from robandit import KLinfUCB
from robandit.errors import InvalidInput
from robandit.policies.klinf import klinf_ucb
from robandit.policies.klinf import upper_bound as klinf
from robandit.policies.klinf.upper_bound import klinf_index

SAMPLE = [-1.0, 0.0, 0.5, 2.0]
MODEST = settings(max_examples=50, deadline=None, derandomize=True)


def unit_of(eps, u):
    return u ** (1 / (1 + eps))


# --- the index --------------------------------------------------------------------------------------------------------


def test_reference_values():
    for budget, value in [(0.1, 1.21817448), (0.4, 1.66280543), (0.04210888, 1.0), (0.24634225, 1.5)]:
        assert klinf_index(SAMPLE, eps=0.5, u=3.0, budget=budget) == pytest.approx(value, abs=3e-8)
        assert slow_index(SAMPLE, 0.5, 3.0, budget) == pytest.approx(value, abs=3e-8)
    assert divergence_for(SAMPLE, 0.5, 3.0, 1.0) == pytest.approx(0.04210888, abs=1e-8)
    assert divergence_for(SAMPLE, 0.5, 3.0, 1.5) == pytest.approx(0.24634225, abs=1e-8)


@pytest.mark.parametrize("eps", [1.0, 0.5, 0.05, 1e-4])
@pytest.mark.parametrize("budget", [1e-8, 1e-3, 0.1, 1.0, 40.0])
def test_closed_forms(eps, budget):
    """The rest of the mass of a constant goes where the moment that is left allows."""
    moved = -math.expm1(-budget)
    close = max(1e-10, 1e-16 / budget)
    for n in (1, 2, 17, 400):
        zero = klinf_index([0.0] * n, eps=eps, u=1.0, budget=budget)
        assert zero == pytest.approx(moved ** (eps / (1 + eps)), abs=close)
        assert klinf_index([-1.0] * n, eps=eps, u=1.0, budget=budget) == pytest.approx(2 * moved - 1, abs=close)
        assert klinf_index([1.0] * n, eps=eps, u=1.0, budget=budget) == pytest.approx(1.0, abs=close)
        for c in (-0.7, 0.25):
            mass = 1 - moved
            place = ((1 - mass * abs(c) ** (1 + eps)) / moved) ** (1 / (1 + eps))
            value = klinf_index([c] * n, eps=eps, u=1.0, budget=budget)
            assert value == pytest.approx(mass * c + moved * place, abs=close)
        # Far out even a single law of the class is too far: the least divergence is log p, with everything at one point.
        outlier = klinf_index([-3.0] * n, eps=eps, u=1.0, budget=budget)
        assert (outlier == math.inf) == (budget < (1 + eps) * math.log(3.0))


LAWS = {
    "losses": lambda rng, n: -rng.pareto(1.5, n) - 1,
    "gains": lambda rng, n: rng.pareto(1.2, n),
    "student": lambda rng, n: rng.standard_t(1.5, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "normal": lambda rng, n: rng.normal(size=n) - 1,
    "integers": lambda rng, n: rng.integers(-3, 3, n).astype(float),
    "mostly zeros": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
    "three points": lambda rng, n: rng.choice([-1.0, 1.0, 0.5], n),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_index_is_the_minimum(law):
    """Against searches by SciPy; u from below the sample's own moment to far above."""
    rng = np.random.default_rng(sum(map(ord, law)))
    for n in (1, 3, 20, 200, 2000):
        for factor in (0.4, 1.0, 2.0):
            x = LAWS[law](rng, n)
            eps = float(rng.choice([0.1, 0.3, 0.5, 0.8, 1.0]))
            u = factor * max(float(np.mean(np.abs(x) ** (1 + eps))), 0.01)
            budget = float(rng.choice([0.5, 3.0, 20.0]) * rng.uniform(1, 2)) / n
            least = least_divergence(x, eps, u)
            value = klinf_index(x, eps=eps, u=u, budget=budget)
            assert (value == math.inf) == (least > budget)
            if least < (1 - 1e-4) * budget:
                assert value == pytest.approx(slow_index(x, eps, u, budget), abs=1e-10 * unit_of(eps, u)), (n, factor)


def test_the_index_inverts_the_divergence():
    """The other dual: KLinf(sample, index) is the budget."""
    rng = np.random.default_rng(3)
    for law in LAWS.values():
        x = law(rng, 12)
        u = 1.3 * float(np.mean(np.abs(x) ** 1.6)) + 0.01
        for budget in (0.05, 0.5):
            value = klinf_index(x, eps=0.6, u=u, budget=budget)
            assert divergence_for(x, 0.6, u, value) == pytest.approx(budget, rel=1e-5)


def test_the_nested_search_finds_what_newtons_method_finds(monkeypatch):
    rng = np.random.default_rng(5)
    cases = []
    for law in LAWS.values():
        for eps, n, factor in [(1.0, 30, 0.8), (0.1, 3, 1.5), (0.5, 12, 1.0), (0.05, 1, 4.0)]:
            x = law(rng, n)
            u = factor * max(float(np.mean(np.abs(x) ** (1 + eps))), 0.01)
            cases.append((x, eps, u, 3.0 / n))
    by_newton = [klinf_index(x, eps=eps, u=u, budget=budget) for x, eps, u, budget in cases]
    calls = []
    nested = klinf.nested
    monkeypatch.setattr(klinf, "_kernel", lambda: klinf.one_index)  # interpreted
    monkeypatch.setattr(klinf, "nested", lambda *args: (calls.append(1), nested(*args)))
    monkeypatch.setattr(klinf, "STEPS", 0)
    with np.errstate(all="ignore"):
        for value, (x, eps, u, budget) in zip(by_newton, cases, strict=True):
            again = klinf_index(x, eps=eps, u=u, budget=budget)
            assert again == pytest.approx(value, abs=1e-10 * unit_of(eps, u)), (x, eps, u, budget)
    assert len(calls) > 20


def test_a_bad_start_does_no_harm():
    """Solutions are found from anywhere, as after an outlier."""
    rng = np.random.default_rng(6)
    x = rng.standard_t(1.5, 40)
    eps, u, budget = 0.5, 1.1 * float(np.mean(np.abs(x) ** 1.5)), 0.1
    pool = np.array([x / unit_of(eps, u), np.abs(x / unit_of(eps, u)) ** 1.5])
    value = klinf_index(x, eps=eps, u=u, budget=budget)
    for theta in (-30.0, -3.0, 0.0, 3.0, 40.0, 250.0):
        for slack in (0.0, 1e-9, 1.0, 1e9):
            solution = np.zeros(klinf.SOLUTION_LENGTH)
            solution[klinf.THETA], solution[klinf.SLACK] = theta, slack
            with np.errstate(all="ignore"):
                klinf.solve(pool, 0, 40, solution, eps, budget, float(pool[0].mean()), float(pool[1].mean()))
            assert unit_of(eps, u) * solution[klinf.VALUE] == pytest.approx(value, abs=1e-10), (theta, slack)


REWARDS = st.lists(
    st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, -1.0, 3.0]), st.floats(-1e6, 1e6)), min_size=1, max_size=30
)
ORDERS = st.one_of(st.floats(0.05, 1.0), st.sampled_from([0.5, 1.0]))
BUDGETS = st.floats(1e-3, 20.0)


def well_posed(x, eps, u, budget):
    """At the least budget of the class itself the index is infinitely steep."""
    assume(abs(least_divergence(np.array(x), eps, u) - budget) > 1e-4 * budget)


@MODEST
@given(REWARDS, ORDERS, st.floats(0.01, 100.0), BUDGETS, BUDGETS)
def test_it_grows_with_the_budget_inside_the_class(x, eps, u, one, two):
    low, high = sorted((one, two))
    unit = unit_of(eps, u)
    well_posed(x, eps, u, low)
    well_posed(x, eps, u, high)
    less, more = (klinf_index(x, eps=eps, u=u, budget=c) for c in (low, high))
    assert more <= unit or more == less == math.inf
    if less < math.inf:
        assert -unit <= less <= more + 1e-10 * unit
        assert less >= min(np.mean(x), unit) - 1e-10 * unit or np.mean(np.abs(x) ** (1 + eps)) > u


@MODEST
@given(REWARDS, ORDERS, st.floats(0.01, 100.0), BUDGETS, st.sampled_from([1e-100, 1e-3, 7.0, 1e90]), st.randoms())
def test_it_scales_with_rewards_and_ignores_their_order(x, eps, u, budget, factor, random):
    well_posed(x, eps, u, budget)
    value = klinf_index(x, eps=eps, u=u, budget=budget)
    shuffled = [factor * v for v in x]
    random.shuffle(shuffled)
    other = klinf_index(shuffled, eps=eps, u=factor ** (1 + eps) * u, budget=budget)
    assert other == pytest.approx(factor * value, abs=1e-10 * factor * unit_of(eps, u))


@pytest.mark.parametrize(
    "wrong",
    [
        {"x": []},
        {"x": [[1.0, 2.0]]},
        {"x": [1.0, math.nan]},
        {"eps": 0.0},
        {"eps": 1.5},
        {"eps": None},
        {"u": 0.0},
        {"u": math.inf},
        {"budget": 0.0},
        {"budget": -1.0},
    ],
)
def test_klinf_index_rejects(wrong):
    arguments = {"x": SAMPLE, "eps": 0.5, "u": 3.0, "budget": 0.1} | wrong
    with pytest.raises(InvalidInput) as caught:
        klinf_index(arguments.pop("x"), **arguments)
    assert caught.value.parameter.partition("[")[0] == next(iter(wrong))  # x, or an item of it


# --- the policy -------------------------------------------------------------------------------------------------------


def quick_index(x, eps, u, budget):
    return klinf_index(x, eps=eps, u=u, budget=budget)


def against_slow(live, slow, rewards, steps):
    """Play both; the arm asked for must be one that the slow policy allows."""
    used = np.zeros(len(rewards), dtype=int)
    for _ in range(steps):
        arm = live.ask()
        assert arm == live.ask()
        assert arm in slow.choose()
        reward = float(rewards[arm][used[arm]])
        used[arm] += 1
        live.tell(arm, reward)
        slow.learn(arm, reward)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "threshold"), [(0.0, "proved"), (0.1, "proved"), (0.0, "log"), (0.45, "log")])
def test_decisions_are_those_of_the_slow_policy(kind, batch, threshold):
    rng = np.random.default_rng(len(kind))
    arms, steps = 3, 120 if batch == 0.0 else 250
    rewards = np.array([KINDS[kind](rng, arm, steps) for arm in range(arms)])
    eps = {"cauchy": 0.1, "coins": 1.0, "integers": 1.0, "narrow": 0.05}.get(kind, 0.5)
    # Sometimes rewards contradict u.
    u = {0.0: 2.0, 0.1: 1.0, 0.45: 0.5}[batch] * float(np.mean(np.abs(rewards) ** (1 + eps)))
    live = Live(KLinfUCB(eps=eps, u=u, batch=batch, threshold=threshold), arms)
    slow = SlowKLinfUCB(arms, eps, u, batch, threshold, index_of=quick_index)
    against_slow(live, slow, rewards, steps)
    columns = live.describe()
    for arm in range(arms):
        assert columns["mean"][arm] == pytest.approx(np.mean(slow.samples[arm]), rel=1e-12)
        assert columns["index"][arm] == pytest.approx(slow.index(arm), abs=1e-10 * unit_of(eps, u))


@pytest.mark.independent("KLinfUCB")
def test_decisions_with_the_slow_index():
    """Once without anything of the package."""
    rng = np.random.default_rng(9)
    rewards = np.array([rng.standard_t(2.0, 40) + shift for shift in (0.0, 1.0)])
    against_slow(Live(KLinfUCB(eps=0.7, u=6.0), 2), SlowKLinfUCB(2, 0.7, 6.0), rewards, 40)


def test_batches_are_a_tenth_of_the_rewards():
    """One pull until there are more than 10 rewards; 0.07 * 100 is seven pulls though it is 7.000000000000001."""
    live = Live(KLinfUCB(eps=1.0, u=1.0), 1)
    sizes = []
    while sum(sizes) < 120:
        live.tell(live.ask(), 0.5)
        sizes.append(1 + int(live.s.run[klinf_ucb.LEFT]))
        for _ in range(sizes[-1] - 1):
            assert live.ask() == 0
            live.tell(0, 0.5)
    n, expected = 0, []
    while n < sum(sizes):
        expected.append(max(1, math.ceil(round(0.1 * n, 9))))
        n += expected[-1]
    assert sizes == expected
    taken = Live(KLinfUCB(eps=1.0, u=1.0, batch=0.07), 1)
    for _ in range(100):
        taken.tell(0, 0.5)
    taken.issue(taken.ask())
    assert taken.s.run[klinf_ucb.LEFT] == 6


def test_a_batch_goes_on_whatever_arrives():
    live = Live(KLinfUCB(eps=1.0, u=4.0, batch=2.0), 2)
    live.follow_0_2()
    for arm in (0, 1):
        assert live.ask() == arm
        live.tell(arm, float(arm))
    assert live.ask() == 1
    first = live.issue(1)  # two pulls, as there is one reward
    assert live.ask() == 1
    live.late(1, -100.0, first)  # arm 1 is now worse, and stays to the end of its batch
    live.tell(0, 1.0)  # a pull of another arm does not count
    assert live.ask() == 1
    lost = live.issue(1)
    assert live.s.run[klinf_ucb.LEFT] == 0
    live.forget(1, lost)
    before = live.s.pulls.tolist()
    assert before == [2, 2, 5, 2]
    live.tell(0, 1.0)  # not asked for: no batch begins
    assert live.s.run[klinf_ucb.LEFT] == 0
    live.ask()
    live.ask()
    assert live.s.run[klinf_ucb.LEFT] == 0  # asking begins none


def test_rewards_that_never_came_leave_their_arm_untried():
    live = Live(KLinfUCB(eps=1.0, u=1.0), 3)
    marks = [live.issue(live.ask()) for _ in range(4)]
    assert live.s.pulls.tolist() == [2, 1, 1, 4, 0]
    live.late(0, 0.5, marks[0])
    live.late(2, 0.5, marks[2])
    assert live.ask() == 1
    live.forget(1, marks[1])
    assert live.ask() == 1
    columns = live.describe()
    assert math.isnan(columns["mean"][1])
    assert columns["index"][1] == math.inf
    budget = (math.log(5) + 2 * math.log(math.log(5)) + 2 * math.log(2) + 1) / 1
    assert columns["index"][0] == pytest.approx(klinf_index([0.5], eps=1.0, u=1.0, budget=budget))


def test_late_rewards_in_any_order_give_the_same_indices():
    rng = np.random.default_rng(2)
    policy = KLinfUCB(eps=0.5, u=5.0)
    one, other = Live(policy, 2), Live(policy, 2)
    pulls = []
    for _ in range(300):
        arm = one.ask()
        reward = float(rng.standard_t(1.7))
        one.tell(arm, reward)
        pulls.append((arm, reward, other.issue(arm)))
    for position in rng.permutation(300):
        other.late(*pulls[position])
    assert one.describe()["index"] == pytest.approx(other.describe()["index"], abs=1e-9)


def test_rewards_beyond_the_class_are_counted_once():
    policy = KLinfUCB(eps=1.0, u=1.0)
    live = Live(policy, 2)
    live.tell(0, 1e6)
    live.tell(1, 0.0)
    assert policy.counters(live.s) == {"infeasible": 0}
    for _ in range(3):
        assert live.describe()["index"].tolist()[0] == math.inf
        assert policy.counters(live.s)["infeasible"] == 0
    for _ in range(3):
        assert live.ask() == 0
        assert live.describe()["index"].tolist()[0] == math.inf
        assert policy.counters(live.s)["infeasible"] == 1
    for _ in range(400):  # until zeros have diluted it
        live.tell(live.ask(), 0.0)
    assert 1 < policy.counters(live.s)["infeasible"] < 100
    assert live.describe()["index"].max() < 1.0


def test_rewards_of_any_size():
    """Beyond 1e75 units they count as that; smaller than 1e-300 units as zeros. Neither stops the others."""
    live = Live(KLinfUCB(eps=0.3, u=1e-200), 2)
    for reward in (1e150, -1e150, 1e-150, 0.0):
        live.tell(0, reward)
        live.tell(1, 1e-160)
    columns = live.describe()
    assert columns["index"][0] == math.inf
    assert 0.0 < columns["index"][1] <= 1e-153


def test_few_indices_are_computed(monkeypatch):
    """Of 20 arms about one at each decision, and a decision every tenth of a long batch."""
    calls = []
    solve = klinf_ucb.solve
    monkeypatch.setattr(klinf_ucb, "solve", lambda *args: (calls.append(1), solve(*args)))
    rng = np.random.default_rng(0)
    arms, steps = 20, 1000
    rewards = rng.normal(size=(arms, steps)) + np.linspace(0.0, 1.0, arms)[:, None]
    with np.errstate(all="ignore"):
        Plain(KLinfUCB(eps=1.0, u=3.0, threshold="log"), arms).replay(rewards, steps)
    assert len(calls) < 2 * steps


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"eps": 0.0}, "eps"),
        ({"eps": 1.01}, "eps"),
        ({"u": 0.0}, "u"),
        ({"u": math.nan}, "u"),
        ({"batch": -0.1}, "batch"),
        ({"batch": math.inf}, "batch"),
        ({"batch": None}, "batch"),
        ({"threshold": "paper"}, "threshold"),
    ],
)
def test_it_rejects(wrong, name):
    with raises(InvalidInput, parameter=name):
        KLinfUCB(**wrong)


def test_it_must_be_told():
    with pytest.raises(InvalidInput, match="without eps, u"):
        KLinfUCB().prepared(100)
