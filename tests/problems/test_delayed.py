"""Rewards that come late, against a slow simulation; and the delays."""

import copy
import json
import math
import pickle
import re

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.driving import Plain
from helpers.invalid import assert_invalid, raises
from helpers.live_bandits import QUICK
from helpers.own_policies import STATES, Recorder
from robandit.errors import InvalidInput, NotApplicable
from robandit.experiments.notation import problem_from
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import run
from robandit.experiments.statistics import Findings
from robandit.experiments.store import Store
from robandit.kernel.random import streams
from robandit.laws import Gaussian, Pareto, ZeroInflated
from robandit.laws.table import draw
from robandit.problems import Delayed, InOrder, Problem, delayed, delays, gaussian, negated_pareto
from robandit.report.page import write_page

COSTS = negated_pareto(means=[-1.5, -1.0, -2.0], tail=1.5)
MIXED = Problem([-Pareto(tail=2.2), ZeroInflated(-Pareto(tail=1.8, scale=2.0), 0.3), Gaussian(mean=-3.0, sd=1.0)])
KINDS = [0, 1, 10, 500, delays.geometric(20.0), delays.pareto(30.0), delays.batches(50)]
POLICIES = [
    rb.AdaKLUCB(),
    QUICK,  # AdaR-UCB, whose marks say for which of two streams a reward is
    rb.UCB1(),
    rb.OptTINF(),  # weighted by the probability of the decision
    *amount([], [rb.EpsilonGreedy(epsilon=0.3), rb.ForceMoM()]),
]
pytestmark = pytest.mark.xdist_group("delayed")  # one process compiles for all


def slow(policy, problem, delay, horizon, seed, replication):
    """The arms that a policy chooses, by an obvious loop over the hooks as plain Python."""
    words = streams(np.random.SeedSequence(seed, spawn_key=(replication,)), problem.arms + 2)
    table, of_arms = problem.tabulate(), words[1:-1].copy()
    run = Plain(policy, problem.arms, horizon)
    if "rng" in run.s._fields:
        run.s.rng[:] = words[0]
    arrivals = {}
    arms = []
    drawn = delays.delay_of(delay).drawn(horizon, words[-1])
    with np.errstate(over="ignore"):
        for t in range(horizon):
            for arm, reward, mark in arrivals.pop(t, ()):
                run.late(arm, reward, mark)
            arm = run.ask()
            mark = run.issue(arm)
            reward = draw(table.code, table.par, table.start, table.pool, arm, of_arms[arm])
            arrivals.setdefault(t + 1 + int(drawn[t]), []).append((arm, reward, mark))
            arms.append(arm)
    return arms, run.grown


@pytest.mark.parametrize("delay", KINDS, ids=str)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_against_a_slow_simulation(policy, delay):
    horizon = 300
    policy = policy.informed_by(MIXED)
    result = rb.simulate(policy, MIXED, horizon, 2, seed=3, delay=delay, checkpoints=range(1, horizon + 1))
    for replication in range(2):
        arms, _ = slow(policy, MIXED, delay, horizon, 3, replication)
        np.testing.assert_allclose(result.regret[0, replication], np.cumsum(MIXED.gaps[arms]), rtol=1e-12, atol=1e-12)


def test_a_state_grows_between_two_rewards():
    """All rewards of a batch come at once, more than a new state has room for."""
    arms, grown = slow(rb.AdaKLUCB(), COSTS, delays.batches(700), 1500, 1, 0)
    result = rb.simulate(rb.AdaKLUCB(), COSTS, 1500, 1, 1, delay=delays.batches(700))
    np.testing.assert_array_equal(result.pulls[0, 0], np.bincount(arms, minlength=3))
    assert grown > 1


def arrived(delay, horizon, replication=0, stride=1, seed=0):
    """The numbers of the decisions in the order in which a policy learns their rewards."""
    record = InOrder([[1.0 + t, 1.0 + t] for t in range(horizon)])
    rb.simulate(Recorder(stride=stride), record, horizon, 1, seed, delay=delay, first=replication)
    state = STATES[-1]
    assert state.count[1] == 0, "rewards were lost"
    order = state.seen[: state.count[0], 1].astype(int) - 1
    return order if replication == 0 else (order - order.min()).tolist()


@pytest.mark.parametrize("delay", KINDS, ids=str)
def test_order_of_arrival(delay):
    horizon = 240
    words = streams(np.random.SeedSequence(0, spawn_key=(0,)), 4)
    drawn = delays.delay_of(delay).drawn(horizon, words[-1])
    expected = sorted((t for t in range(horizon) if t + 1 + drawn[t] <= horizon), key=lambda t: (t + 1 + drawn[t], t))
    assert arrived(delay, horizon).tolist() == expected
    assert arrived(delay, horizon, stride=3).tolist() == expected  # delays do not depend on the policy
    if drawn.std() > 0 and "batches" not in str(delay):
        assert arrived(delay, horizon, seed=1).tolist() != expected


def test_batches():
    """Nothing is learned before the first batch is complete; then all of it, in the order of the decisions."""
    assert delays.batches(4).drawn(10, np.zeros(4, dtype=np.uint64)).tolist() == [3, 2, 1, 0, 3, 2, 1, 0, 3, 2]
    assert arrived(delays.batches(4), 10).tolist() == list(range(8))
    pulls = rb.simulate([rb.UCB1(), rb.AdaKLUCB()], COSTS, 300, 2, seed=0, delay=delays.batches(300)).pulls
    np.testing.assert_array_equal(pulls, 100)


@pytest.mark.parametrize(
    "problem",
    [COSTS, rb.problems.changing("swap", COSTS, at=150), InOrder(np.random.default_rng(0).normal(size=(400, 3)))],
    ids=["laws", "changing", "in order"],
)
def test_without_delay_nothing_changes(problem):
    policies = [*POLICIES, *amount([], [rb.KLinfUCB(eps=0.4, u=5.0)])]
    prompt = rb.simulate(policies, problem, 400, 3, seed=5)
    for late in (
        rb.simulate(policies, problem, 400, 3, seed=5, delay=0),
        rb.simulate(policies, delayed(problem, 0), 400, 3, seed=5, threads=1),
    ):
        assert late.regret.tobytes() == prompt.regret.tobytes()
        assert late.pulls.tobytes() == prompt.pulls.tobytes()
        assert late.counters == prompt.counters
    other = rb.simulate(policies, problem, 400, 3, seed=5, delay=1)
    assert other.regret.tobytes() != prompt.regret.tobytes()


def test_the_same_on_any_number_of_threads_and_in_any_company():
    one = rb.simulate([rb.UCB1(), rb.AdaKLUCB()], COSTS, 500, 6, seed=2, delay=delays.pareto(20), threads=1)
    two = rb.simulate([rb.AdaKLUCB()], COSTS, 500, 3, seed=2, delay=delays.pareto(20), threads=3, first=3)
    np.testing.assert_array_equal(one.regret[1, 3:], two.regret[0])


def test_the_rewards_of_an_arm_do_not_depend_on_the_delay():
    """The k-th pull of an arm gets its k-th reward, although it may be learned before the others."""
    seen = []
    for delay in (None, delays.geometric(30.0)):
        rb.simulate(Recorder(stride=0), COSTS, 400, 1, 7, delay=delay)
        seen.append(STATES[-1].seen[: STATES[-1].count[0], 1])
    prompt, late = seen
    assert 300 < len(late) < 400
    assert set(late) <= set(prompt)
    assert late.tolist() != prompt[: len(late)].tolist()


def test_late_rewards_cost_regret():
    result = [rb.simulate(rb.AdaKLUCB(), COSTS, 2000, 20, 1, delay=delay).regret.mean() for delay in (0, 100, 1000)]
    assert result[0] < result[1] < result[2]
    assert rb.simulate(rb.Oracle(arm=1), COSTS, 2000, 2, 1, delay=100).regret.max() == 0.0


def test_laws_of_delays():
    """Against exact probabilities, within 4 standard errors; a law of another parameter is outside."""
    n = 40_000
    stream = streams(np.random.SeedSequence(3), 1)[0]
    geometric = delays.geometric(20.0).drawn(n, stream)
    pareto = delays.pareto(300.0).drawn(n, stream)
    light = delays.pareto(300.0, tail=3.0).drawn(n, stream)

    def holds(drawn, value, chance):
        return abs(np.mean(drawn >= value) - chance) <= 4 * math.sqrt(chance * (1 - chance) / n)

    for value in (1, 5, 20, 60):
        assert holds(geometric, value, (20 / 21) ** value)
        assert not holds(geometric, value, (24 / 25) ** value)
    for value in (200, 300, 1000, 5000):
        assert holds(pareto, value, 150 / value)
        assert not holds(pareto, value, 180 / value)
    assert holds(light, 300, 0.5)
    assert holds(light, 600, 0.5 / 8)
    assert geometric.min() == 0
    assert pareto.min() == 150
    for extreme in (
        delays.geometric(1e300),
        delays.pareto(1e300),
        delays.pareto(1.0, tail=1e-9),
        delays.constant(2**53),
    ):
        drawn = extreme.drawn(100, stream)
        assert ((drawn >= 0) & (drawn <= 100)).all()
    assert delays.geometric(1e-300).drawn(100, stream).max() == 0


@pytest.mark.parametrize("delay", KINDS, ids=str)
@pytest.mark.parametrize(
    "inside", [COSTS, rb.problems.changing("fall", COSTS, at=10), InOrder([[1.0, 2.0], [3.0, 1.0]])]
)
def test_json_and_copies(inside, delay, tmp_path):
    problem = delayed(inside, delay)
    again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
    for other in (again, copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert other == problem
        assert hash(other) == hash(problem)
        assert other.fingerprint == problem.fingerprint
        assert type(other) is Delayed
    assert problem != inside
    assert problem != delayed(inside, 3)
    assert problem.fingerprint != inside.fingerprint
    horizon = 20 if inside.arms == 3 else 2
    assert problem.uniform_regret(horizon) == inside.uniform_regret(horizon)
    result = rb.simulate(rb.UCB1(), problem, horizon, 1, 0)
    result.to_parquet(tmp_path / "result.parquet")
    assert rb.Result.from_parquet(tmp_path / "result.parquet").problem == problem
    if inside is COSTS:
        assert eval(repr(problem), vars(rb.problems) | vars(rb.laws)) == problem


def test_facts_are_those_of_the_problem_inside():
    changing = rb.problems.changing("tail", COSTS, at=5)
    problem = delayed(changing, 10)
    assert (problem.tail_index, problem.u(0.2), problem.v(0.2)) == (1.5, changing.u(0.2), changing.v(0.2))
    assert problem.assumption() == changing.assumption()
    assert not problem.independent
    with pytest.raises(NotApplicable, match="come late"):
        rb.theory.regret_bound(rb.UCB1(), delayed(gaussian([0.0, 1.0]), 3), 100)
    with raises(InvalidInput, parameter="horizon", rule="above 5, the pulls before the first change"):
        rb.simulate(rb.UCB1(), problem, 5, 1, 0)


def test_notation():
    problem = problem_from("delayed(problem='heavy/pareto-1.6', delay='pareto(median=30)')")
    assert problem == delayed(problem_from("heavy/pareto-1.6"), delays.pareto(30))
    assert problem_from("delayed(problem='heavy/pareto-1.6', delay=7)").delay == delays.constant(7)
    assert problem_from("delayed(problem='heavy/pareto-1.6', delay='batches(size=30)')").delay == delays.batches(30)
    assert problem_from("delayed/batches-orders").delay == delays.batches(300)
    for text, message in (
        ("delayed(problem='heavy/pareto-1.6', delay='cauchy(mean=3)')", "'cauchy'"),
        ("delayed(problem='heavy/pareto-1.6', delay='pareto')", "other parameters than delays.pareto"),
        ("delayed(problem='heavy/pareto-1.6', delay='pareto(3)')", "has no name"),
        ("delayed(problem='heavy/pareto-1.6', delay=-1)", "delay = -1"),
        ("delayed(problem='heavy/pareto-1.6')", "needs delay"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            problem_from(text)


def test_experiments_and_reports(tmp_path):
    """A run folder has the numbers of `simulate`, and the report says that rewards come late."""
    problem = delayed(rb.problems.changing("swap", COSTS, at=100), delays.pareto(30.0))
    plan = planned([Played("late", problem, 300)], [rb.UCB1(), rb.Uniform()], replications=6, seed=3)
    results = run(plan, tmp_path / "run").store.results()
    again = Store.open(tmp_path / "run").results()
    assert again.plan.problems[0].problem == problem
    expected = rb.simulate(rb.UCB1(), problem, 300, 6, seed=3).regret[0, :, -1]
    for each in (results, again):
        (measured,) = (m for m in each.measured if m.cell.label == "UCB1")
        np.testing.assert_array_equal(measured.final, expected)
    write_page(Findings(again), tmp_path / "page.html", command="robandit run late.toml")
    page = (tmp_path / "page.html").read_text()
    assert "On late rewards come late." in page
    assert "On late laws change." in page


INVALID = [
    (lambda: delayed(COSTS, -1), "delay", "from 0"),
    (lambda: delayed(COSTS, 1.5), "delay", "an integer >= 0 or a delay"),
    (lambda: delayed(COSTS, True), "delay", "an integer"),
    (lambda: delayed(COSTS, "10"), "delay", "an integer >= 0 or a delay"),
    (lambda: delayed(delayed(COSTS, 1), 1), "problem", "without delays"),
    (lambda: delayed([1.0], 1), "problem", "a Problem"),
    (lambda: rb.simulate(rb.UCB1(), COSTS, 10, 1, 0, delay=-3), "delay", "from 0"),
    (lambda: rb.simulate(rb.UCB1(), delayed(COSTS, 1), 10, 1, 0, delay=3), "problem", "without delays"),
    (lambda: delays.constant(2.5), "decisions", "an integer"),
    (lambda: delays.geometric(0.0), "mean", "> 0"),
    (lambda: delays.geometric(math.inf), "mean", "> 0"),
    (lambda: delays.pareto(-1.0), "median", "> 0"),
    (lambda: delays.pareto(1.0, tail=math.nan), "tail", "> 0"),
    (lambda: delays.batches(0), "size", "from 1"),
    (lambda: rb.problems.delays.Delay.from_dict({"kind": "weekly"}), "kind", "one of"),
]


@cases(("call", "name", "rule"), INVALID)
def test_invalid_input(call, name, rule):
    assert_invalid(call, name, rule)


def test_invalid_files():
    data = delayed(COSTS, delays.pareto(3.0)).to_dict()
    for broken in (
        {**data, "more": 1},
        {**data, "delay": {"kind": "pareto"}},
        {**data, "delay": {"kind": "pareto", "of": 1}},
    ):
        with pytest.raises(InvalidInput, match="delay"):
            Problem.from_dict(broken)
