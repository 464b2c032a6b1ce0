"""The probabilities that policies report, over all policies: sums, marks, frequencies, and no effect on decisions."""

import functools

import numpy as np
import pytest
from scipy.stats import chi2

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain, seeded
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.random import streams
from robandit.policies._parts.reward_store import USED

ARMS = 5
HORIZON = 300
PROBLEM = rb.Problem([-rb.laws.Pareto(tail=2.2), rb.laws.Gaussian(mean=-3.0, sd=1.0)])
DRAWS = 3000
RISK = 1e-6


def ready(policy):
    """Return the policy with what it must be told."""
    try:
        return policy.informed_by(PROBLEM).prepared(HORIZON)
    except NotApplicable:
        return policy.informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).prepared(HORIZON)


EVERY = [ready(policy) for policy in rb.policies.all_policies()]
RANDOMISED = [
    *(policy for policy in EVERY if policy.randomised),
    *(ready(rb.APE2(eps=0.5, perturbation=law)) for law in ("gamma", "gev", "pareto", "frechet")),
    ready(rb.EpsilonGreedy(epsilon=1.0)),
    rb.MRAPE(eps=0.5, horizon=20),  # no noise after 4 rewards of an arm
]
UNKNOWN = (rb.MARS, rb.RMMUCB, rb.DirichletSampling)
KNOWN = [policy for policy in RANDOMISED if not isinstance(policy, UNKNOWN)]

over_all = pytest.mark.parametrize("policy", RANDOMISED, ids=lambda policy: policy.name)
over_known = pytest.mark.parametrize("policy", KNOWN, ids=lambda policy: policy.name)


def started(policy):
    run = Plain(policy, ARMS)
    return seeded(run) if "rng" in run.s._fields else run


def chances(run):
    hook = run.policy.hooks("chance")[0]
    return np.array([hook(run.p, run.s, arm) for arm in range(ARMS)])


def states(policy, masks=True, horizon=HORIZON):
    """Yield a run at several times, with late rewards and with arms that are not allowed."""
    source = np.random.default_rng(1)
    run = started(policy)
    waiting = []
    steps = min(horizon, policy.longest or horizon)
    for step in range(steps):
        if step in (0, 1, ARMS + 1, 12, 40, 120, steps - 1):
            allowed = np.ones(ARMS, dtype=bool)
            if masks and step % 3 == 0:
                allowed[source.choice(ARMS, 1 + step % 4, replace=False)] = False
            policy.set_allowed(run.s, allowed)
            yield run
        arm = run.ask()
        waiting.append((arm, run.issue(arm)))
        while len(waiting) > step % 4:
            arm, mark = waiting.pop(int(source.integers(len(waiting))))
            run.late(arm, -float(source.pareto(2.5)) - 0.2 * arm, mark)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose
@over_known
def test_chances_are_probabilities_of_the_allowed_arms(policy):
    for run in states(policy):
        given = chances(run)
        assert ((given >= 0.0) & (given <= 1.0)).all()
        assert abs(given.sum() - 1.0) < (1e-5 if isinstance(policy, (rb.APE2, rb.MRAPE)) else 1e-9)
        assert (given[~run.s.allowed] == 0.0).all()


def frequencies(run):
    before = run.s.rng.copy()
    counts = np.zeros(ARMS)
    fast = Live(run.policy, ARMS, state=run.s)  # compiled, since these are most choices of all tests here
    for words in streams(np.random.SeedSequence(7), DRAWS):
        run.s.rng[:] = words
        counts[fast.ask()] += 1
    run.s.rng[:] = before
    return counts


def agrees(counts, given):
    """Return whether Pearson's statistic has a tail probability above RISK. Arms with few expected choices are pooled."""
    expected = DRAWS * given
    rare = expected < 10.0
    pooled = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    kept = pooled[1] > 0.0
    if pooled[0][~kept].any():
        return False
    observed, hoped = pooled[0][kept], pooled[1][kept]
    statistic = ((observed - hoped) ** 2 / np.maximum(hoped, 1.0)).sum()
    return statistic <= chi2.isf(RISK, max(len(hoped) - 1, 1)) + 1e-6


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@over_known
def test_chances_are_the_frequencies_of_choices(policy):
    for run in states(policy):
        given = chances(run)
        counts = frequencies(run)
        assert agrees(counts, given), (given, counts / DRAWS)
        # Negative controls: some probability moved to one arm, and the arms in another order.
        if given.max() < 0.7:
            wrong = 0.8 * given
            wrong[np.argmax(given)] += 0.2
            assert not agrees(counts, wrong)
        if given.max() > 0.7:
            assert not agrees(counts, np.roll(given, 1))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@over_all
def test_asking_for_a_chance_changes_no_decision(policy):
    source = np.random.default_rng(2)
    asked, silent = started(policy), started(policy)
    for step in range(min(amount(20, 60), policy.longest or 60)):
        if step % 3:
            chances(asked)
        arm = silent.ask()
        assert asked.ask() == arm
        if step % 3 == 2:
            chances(asked)
        reward = -float(source.pareto(2.5))
        marks = [run.issue(arm) for run in (asked, silent)]
        assert marks[0] == marks[1]
        for run, mark in zip((asked, silent), marks, strict=True):
            run.late(arm, reward, mark)
    assert (asked.s.rng == silent.s.rng).all()


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("policy", [p for p in EVERY if p.weighted], ids=lambda policy: policy.name)
def test_the_chance_of_a_weighted_policy_is_its_mark(policy):
    for run in states(policy):
        arm = run.ask()
        chance = chances(run)[arm]
        assert run.issue(arm) == chance


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(
    "policy", [ready(rb.MARS()), ready(rb.RMMUCB()), rb.DirichletSampling()], ids=lambda policy: policy.name
)
def test_chances_that_depend_on_signs_are_not_known(policy):
    for run in states(policy, masks=False, horizon=20):
        counts = run.s.slots[:ARMS, USED]
        if (counts == 0).any():
            assert sorted(chances(run)) == [0.0] * (ARMS - 1) + [1.0]
            assert chances(run)[run.ask()] == 1.0
        else:
            assert np.isnan(chances(run)).all()
            policy.set_allowed(run.s, np.arange(ARMS) == 2)
            assert chances(run).tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
            policy.set_allowed(run.s, np.ones(ARMS, dtype=bool))


def draws_in_select(policy):
    """Return whether choosing draws random numbers at some time of a run, or depends on the stream."""
    run, used = started(policy), False
    for step in range(60):
        before = run.s.rng.copy()
        arm = run.ask()
        used = used or (run.s.rng != before).any()
        run.tell(arm, -1.0 - 0.1 * arm - 0.01 * step)
    return used


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)
def test_the_facts_say_which_policies_randomise(policy):
    run = started(policy)
    assert policy.facts.random == ("rng" in run.s._fields)
    if isinstance(policy, rb.ClippedSGDUCB):  # it draws when it learns: given the state, choices are deterministic
        assert policy.facts.random
        assert not policy.randomised
        assert not draws_in_select(policy)
        return
    assert policy.randomised == policy.facts.random
    if policy.randomised and not isinstance(policy, UNKNOWN):  # whose signs or weights are hashes
        assert draws_in_select(policy)
    if not policy.randomised:
        with pytest.raises(InvalidInput, match="has no chance: write it as a static method"):
            policy.hooks("chance")


def test_epsilon_greedy_has_a_floor():
    policy = rb.EpsilonGreedy(epsilon=0.2)
    run = started(policy)
    assert [chances(run)[arm] for arm in range(ARMS)] == [1.0, 0.0, 0.0, 0.0, 0.0]
    for arm in range(ARMS):
        run.tell(arm, float(arm))
    np.testing.assert_allclose(chances(run), [0.04, 0.04, 0.04, 0.04, 0.84], rtol=1e-15)
    policy.set_allowed(run.s, [True, True, False, False, False])
    np.testing.assert_allclose(chances(run), [0.1, 0.9, 0.0, 0.0, 0.0], rtol=1e-15)


def test_uniform_play_has_equal_chances():
    run = started(rb.Uniform())
    assert chances(run).tolist() == [0.2] * ARMS
    rb.Uniform().set_allowed(run.s, [False, True, True, True, True])
    assert chances(run).tolist() == [0.0, 0.25, 0.25, 0.25, 0.25]


def test_the_compiled_entry_agrees():
    from robandit.kernel import compiled, loops
    from robandit.kernel.build import flat

    policy = rb.EpsilonGreedy()
    run = started(policy)
    for arm in range(ARMS):
        run.tell(arm, float(arm))
    entry = functools.partial(loops.chance_of, *policy.hooks("chance"))
    chance_of = compiled(entry, label="chance (test)", args=(run.p, run.s, 0))
    assert [chance_of(*flat((run.p, run.s)), arm) for arm in range(ARMS)] == chances(run).tolist()
