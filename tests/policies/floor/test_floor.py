"""Floors around other policies, compared with a slow model: choices, probabilities, and what the wrapper passes through."""

import copy
import json
import math
import pickle
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

import robandit as rb
from helpers.amount import amount, long_only
from helpers.driving import Live, Plain, seeded
from helpers.invalid import raises
from references.slow_floor import SlowFloor
from robandit.checks import check_policy
from robandit.errors import InvalidInput, NotApplicable, UnknownArm
from robandit.kernel import compiled
from robandit.kernel.build import flat
from robandit.kernel.random import streams, uniform

# Interpreted hooks: the hashes of 64-bit integers wrap around, as they should.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
ARMS = 4
DRAWS = 1_000_000
RISK = 1e-6
FLOORS = [  # shares of which floating-point numbers have exact sums
    (0.25, {}),
    (0.25, {1: 0.25}),
    (0.5, {0: 0.125, 2: 0.25}),
    (1.0, {3: 0.5}),
]


def chances(run):
    hook = run.policy.hooks("chance")[0]
    return np.array([hook(run.p, run.s, arm) for arm in range(run.arms)])


@pytest.mark.independent("Floor")
@pytest.mark.parametrize(("share", "named"), FLOORS)
@pytest.mark.parametrize("inner", [rb.UCB1(), rb.EpsilonGreedy(epsilon=0.3)], ids=lambda policy: policy.name)
def test_choices_and_chances_are_those_of_the_slow_model(inner, share, named):
    floor = rb.Floor(inner, share=share, arms=named or None)
    run, own, slow = seeded(Plain(floor, ARMS)), Plain(inner, ARMS), SlowFloor(share, named)
    generator = np.random.default_rng(1)
    mask, drawn, none = np.ones(ARMS, dtype=bool), 0, 0
    for _ in range(800):
        if generator.random() < 0.2:
            mask = generator.random(ARMS) < 0.6
            mask[generator.integers(ARMS)] = True
        allowed = np.flatnonzero(mask).tolist()
        for each in (run, own):
            each.policy.set_allowed(each.s, mask)
        if inner.randomised:
            alone = chances(own).tolist()
        else:
            alone = [1.0 if arm == own.ask() else 0.0 for arm in range(ARMS)]
        expected = [float(slow.chance(allowed, alone, arm)) for arm in range(ARMS)]
        np.testing.assert_allclose(chances(run), expected, rtol=1e-12, atol=1e-15)
        none += not slow.distribution(allowed)

        stream = run.s.rng.copy()
        first = float(uniform(stream))
        second = float(uniform(stream.copy()))
        draws = first <= share and bool(slow.distribution(allowed))
        if draws:  # the policy itself is not asked
            choice = None
        else:
            if inner.randomised:
                own.s.rng[:] = stream
            choice = own.ask()
        arm = run.ask()
        assert arm == slow.choose(allowed, choice, first, second)
        drawn += draws
        reward = float(generator.normal(arm))
        run.tell(arm, reward)  # both learn from all choices
        own.tell(arm, reward)
        names = [name for name in own.s._fields if name != "rng"]
        assert all(np.array_equal(getattr(run.s, name), getattr(own.s, name)) for name in names)
    assert drawn > 50
    assert (none > 20) == (share == 0.25 and bool(named))


def count(select, p, s, counts, draws):
    for _ in range(draws):
        counts[int(select(p, s))] += 1


def agrees(counts, given):
    """Return whether Pearson's statistic has a tail probability above RISK."""
    if counts[given == 0.0].any():
        return False
    expected = counts.sum() * given[given > 0.0]
    statistic = ((counts[given > 0.0] - expected) ** 2 / expected).sum()
    return statistic <= chi2.isf(RISK, max(len(expected) - 1, 1))


@pytest.mark.parametrize(
    "inner",
    [rb.UCB1(), rb.EpsilonGreedy(epsilon=0.3), *amount([], [rb.Probing(rb.UCB1())])],
    ids=lambda policy: policy.name,
)
def test_a_million_choices_have_these_chances(inner):
    generator, entry = np.random.default_rng(3), None
    for share, named in [(0.02, {}), (0.05, {0: 0.05}), (0.1, {1: 0.05, 2: 0.03}), (1.0, {})]:
        run = seeded(Live(rb.Floor(inner, share=share, arms=named or None), ARMS))
        for _ in range(60):
            arm = run.ask()
            run.tell(arm, float(generator.normal(arm)))
        for mask in ([True] * ARMS, [True, True, False, True], [False, False, True, True]):
            run.policy.set_allowed(run.s, mask)
            plain = Plain(run.policy, ARMS, state=run.s)
            given, counts = chances(plain), np.zeros(ARMS, dtype=np.int64)
            assert math.isclose(math.fsum(given), 1.0, rel_tol=1e-12)
            entry = entry or compiled(
                partial(count, *run.policy.hooks("select")), label="Floor (test)", args=(run.p, run.s, counts, DRAWS)
            )
            entry(*flat((run.p, run.s)), counts, DRAWS)
            assert agrees(counts, given), (share, named, mask, counts / DRAWS, given)
            wrong = 1.2 * given  # the control: the same with a larger floor
            wrong[np.argmax(given)] -= 0.2
            assert given.max() == 1.0 or not agrees(counts, wrong)


def test_a_chance_that_is_not_known_stays_so():
    for share in (0.1, 1.0):
        run = seeded(Plain(rb.Floor(rb.MARS(), share=share), 3))
        for step in range(6):
            run.tell(step % 3, -1.0 - step)
        known = chances(run).tolist()
        assert known == [1 / 3] * 3 if share == 1.0 else np.isnan(known).all()


def test_asking_changes_only_the_stream():
    run = seeded(Live(rb.Floor(rb.AdaKLUCB(), share=0.5), 3))
    generator = np.random.default_rng(0)
    for _ in range(200):
        before = run.s.rng.copy()
        chances(Plain(run.policy, 3, state=run.s))
        assert (run.s.rng == before).all()
        arm = run.ask()
        run.s.rng[:] = before
        assert run.ask() == arm
        run.tell(arm, float(generator.normal(arm)))


@pytest.mark.parametrize(
    "policy",
    [
        rb.Floor(rb.AdaKLUCB(), share=0.1),
        pytest.param(rb.Floor(rb.Restarting(rb.EpsilonGreedy()), share=0.3, arms={1: 0.2}), marks=long_only),
    ],
    ids=lambda policy: policy.name,
)
def test_it_passes_every_check(policy):
    assert check_policy(policy) == []


# --- probes and restarts inside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [rb.UCB1(), rb.EpsilonGreedy()], ids=lambda policy: policy.name)
def test_restarts_inside_a_floor(inner):
    policy = rb.Floor(rb.Restarting(inner, rate=1.0), share=0.2)
    run, generator = seeded(Plain(policy, 3)), np.random.default_rng(2)
    for t in range(900):
        arm = run.ask()
        run.tell(arm, float(generator.normal(9.0 * (t >= 400) * (arm == 0))))
        if t == 600:
            run.s = policy.extended(run.s)
            run._flat, run.arms = (run.p, run.s), 4
            policy.resumed(run.s, 3)
            policy.set_allowed(run.s, [True] * 4)
    counters = policy.counters(run.s)
    assert counters["restarts"] > 0
    assert counters["probes"] > 0
    assert len(policy.alarms(run.s)) == counters["alarms"] > 0
    assert run.s.floor_shares.tolist() == [0.0] * 4
    assert len({id(array) for array in run.s}) == len(run.s), "no arrays are shared"
    assert math.isclose(chances(run).sum(), 1.0)
    assert policy.of.notices


def test_fields_that_an_earlier_version_did_not_have():
    assert rb.Floor(rb.Restarting(rb.AdaKLUCB())).later_fields == rb.AdaKLUCB.later_fields != ()


def test_without_a_detector_the_bandit_keeps_its_own():
    assert not rb.Floor(rb.UCB1()).notices
    assert rb.Floor(rb.UCB1()).alarms(None) == ()


# --- a value ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        rb.Floor(rb.UCB1(scale=2.0)),
        rb.Floor(rb.Probing(), share=0.5, arms={"control": 0.05, 3: 0.1, ("eu", ("a", 1)): 0.1, None: 0.1}),
    ],
    ids=repr,
)
def test_it_is_a_value(policy):
    data = json.loads(json.dumps(policy.to_dict()))
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy)), rb.Policy.from_dict(data)):
        assert other == policy
        assert hash(other) == hash(policy)
    assert policy.hooks("select") == copy.deepcopy(policy).hooks("select")
    assert eval(repr(policy), vars(rb)) == policy


def test_shares():
    assert rb.Floor() == rb.Floor(rb.AdaKLUCB(), share=0.02)
    assert rb.Floor(arms={"control": 0.05}) == rb.Floor(arms=[["control", 0.05]], share=0.05)
    assert rb.Floor(arms={"a": 0.1, "b": 0.7}, share=0.8).rest == 0.0, "up to rounding"
    assert rb.Floor(arms=dict.fromkeys(range(10), 0.1)).share == pytest.approx(1.0)
    assert rb.Floor(arms=dict.fromkeys(range(3), 1 / 3)).rest == 0.0
    assert rb.Floor(arms={"a": 0.05}, share=0.07).rest == pytest.approx(0.02)
    assert rb.Floor(arms={np.str_("a"): np.float64(0.5)}).arms == (("a", 0.5),)


def test_names_and_facts():
    assert rb.Floor().name == "AdaKL-UCB with a floor of 0.02"
    assert rb.Floor(rb.UCB1(), arms={"c": 0.5}).name == "UCB1 with a floor of 0.5 ('c': 0.5)"
    facts = rb.Floor(rb.UCB1()).facts
    assert facts.random
    assert facts.bound == facts.instance == facts.worst == ""
    assert facts.late == rb.UCB1().facts.late
    assert rb.Floor(rb.UCB1()).randomised


def test_parameters_of_the_inner_policy_are_filled_in():
    problem = rb.problems.negated_pareto([-1.0, -2.0], tail=2.5)
    policy = rb.Floor(rb.RobustMOSS(), share=0.1).informed_by(problem).prepared(50)
    assert policy.of == rb.RobustMOSS().informed_by(problem).prepared(50)
    assert (policy.longest, policy.share) == (50, 0.1)


def test_the_price_of_a_floor():
    """Regret is about that of uniform play times the share: 0.25 here. The standard error is 6."""
    problem = rb.problems.gaussian([1.0, 0.0])
    result = rb.simulate([rb.UCB1(), rb.Floor(rb.UCB1(), share=0.2)], problem, 4000, 20, seed=1)
    alone, floored = result.regret[:, :, -1].mean(axis=1)
    assert 350.0 < floored < 400.0 + alone
    assert alone < 100.0  # the control


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, math.nan, math.inf, "much", True])
def test_a_bad_share(share):
    with raises(InvalidInput, parameter="share", rule="a finite number > 0 and <= 1"):
        rb.Floor(share=share)
    with raises(InvalidInput, rule="a finite number > 0 and <= 1", match="the share of 'a'"):
        rb.Floor(arms={"a": share})


@pytest.mark.parametrize("arms", [{}, [], 3, "control", ["control"], [("a", 0.1, 0.2)], {"a"}])
def test_what_is_no_mapping(arms):
    with raises(InvalidInput, parameter="arms", rule="a mapping"):
        rb.Floor(arms=arms)


def test_shares_that_do_not_sum():
    with raises(InvalidInput, parameter="arms", rule="sum to at most 1", match=r"they sum to 1\.1"):
        rb.Floor(arms={"a": 0.5, "b": 0.6})
    with raises(InvalidInput, parameter="share", rule=r"at least the sum of arms, 0.05"):
        rb.Floor(share=0.02, arms={"a": 0.05})
    with raises(InvalidInput, parameter="arms", rule="each arm once"):
        rb.Floor(arms=[("a", 0.1), ("a", 0.2)])


def test_unknown_arms():
    with raises(UnknownArm, parameter="arms", value="contrl", match="'contrl' of arms is unknown"):
        rb.Bandit(["control", "b"], rb.Floor(arms={"contrl": 0.05}))
    with raises(UnknownArm, value="a"):
        rb.simulate(rb.Floor(rb.UCB1(), arms={"a": 0.05}), rb.problems.bernoulli([0.2, 0.8]), 10, 1, seed=0)


def test_what_cannot_be_wrapped():
    with pytest.raises(NotApplicable, match=r"HTINF.*a draw of the floor is not its choice"):
        rb.Floor(rb.HTINF(eps=1.0, u=1.0))
    with raises(InvalidInput, match="floors cannot be nested"):
        rb.Floor(rb.Floor())
    for combinator in (rb.Probing, rb.Restarting):
        with raises(InvalidInput, match=rf"a floor must be outside.*write Floor\({combinator.__name__}\(policy\)\)"):
            combinator(rb.Floor())
    with raises(InvalidInput, parameter="of", match=r"UCB1\(\)"):
        rb.Floor(rb.UCB1)


def test_streams_differ():
    """Two seeds draw different arms."""
    chosen = []
    for row in streams(np.random.SeedSequence(5), 2):
        run = Plain(rb.Floor(rb.UCB1(), share=0.5), 3)
        run.s.rng[:] = row
        chosen.append(run.replay(np.zeros((3, 1)), 50).tolist())
    assert chosen[0] != chosen[1]
