"""Arms that come and go: `s.allowed`, `set_allowed`, `extended`, `paused` and `resumed`, for every policy."""

import warnings

import numpy as np
import pytest

import robandit as rb
import robandit.policies.index
from helpers.amount import amount
from helpers.driving import Plain
from robandit.errors import NotApplicable
from robandit.kernel.lazy import lazy_state
from robandit.policies import Policy, all_policies
from robandit.policies.adar.layout import CURRENT
from robandit.policies.base import with_arms, without_arms

HORIZON = 1000
PROBLEM = rb.problems.bernoulli(means=[0.2, 0.5, 0.4, 0.6])
NO_STREAM = np.zeros(4, dtype=np.uint64)
MORE = [
    rb.AdaRUCB(c=0.2, delta_exp=0.5),  # most rounds are decided by the index
    rb.AdaKLProved(pulls="double"),
    rb.RUCBTEA(f="corollary"),  # pulls in turn
    rb.RUCBMoM(g="corollary"),
    rb.APE2(eps=1.0, perturbation="pareto"),
    rb.EpsilonGreedy(epsilon=0.0),
    rb.ClippedSGDUCB(groups=3, batch=2, smoothing=0.0),
    rb.KLinfUCB(batch=0.5),
    rb.RobustUCB(common_threshold=True),
]


def ready(policy):
    return policy.informed_by(PROBLEM).prepared(HORIZON)


POLICIES = [ready(policy) for policy in [*all_policies(), *MORE]]
MASKED = [policy for policy in POLICIES if policy.respects_allowed]
DETERMINISTIC = [
    policy for policy in MASKED if not policy.facts.random or policy == ready(rb.EpsilonGreedy(epsilon=0.0))
]
SLOW = ("RMM-UCB", "KLinf-UCB", "Catoni-Lepskii UCB", "MARS")
EXPLORING = [ready(policy) for policy in (rb.AdaRUCB(), rb.KurtosisUCB(), rb.RUCBTEA(f="corollary"))]  # in short runs
each = pytest.mark.parametrize


def steps_of(policy, many=240):
    many = amount(many // 2, many)
    return many // 8 if policy.label in SLOW else many


def run(policy, arms, seed=1):
    """Return a run of a live bandit, whose random stream is not zero."""
    state = policy.start(arms, None, np.random.default_rng(seed).integers(1, 2**63, 4).astype(np.uint64))
    return Plain(policy, arms, state=state)


def copy_of(state):
    return type(state)(*(array.copy() for array in state))


def random_mask(rng, arms):
    mask = rng.random(arms) < 0.6
    mask[rng.integers(arms)] = True
    return mask


def play(rng, live, arm, open_pulls):
    """Pull an arm; its reward and those of earlier pulls come at random times, or never."""
    open_pulls.append((arm, live.issue(arm)))
    while open_pulls and rng.random() < 0.6:
        pulled, mark = open_pulls.pop(int(rng.integers(len(open_pulls))))
        if rng.random() < 0.1:
            live.forget(pulled, mark)
        else:
            live.late(pulled, reward_of(rng, pulled), mark)


def reward_of(rng, arm):
    return float(rng.integers(-3, 2)) - 0.3 * arm if rng.random() < 0.5 else -float(rng.pareto(1.8)) - 0.3 * arm


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


# --- the mask ---------------------------------------------------------------------------------------------------------


@each("policy", MASKED, ids=repr)
@each("arms", [2, 5])
def test_only_allowed_arms_are_chosen(policy, arms):
    """Masks change at random; some arms are never allowed in the first half."""
    rng = np.random.default_rng(arms)
    live, open_pulls = run(policy, arms), []
    late = random_mask(rng, arms)
    for step in range(steps_of(policy)):
        if rng.random() < 0.2:
            mask = random_mask(rng, arms)
            if step < steps_of(policy) // 2 and (mask & late).any():
                mask &= late
            policy.set_allowed(live.s, mask)
        arm = live.ask()
        assert live.s.allowed[arm]
        play(rng, live, arm, open_pulls)


@each("policy", [policy for policy in MASKED if "lines" in policy.init(2, None)._fields], ids=repr)
def test_the_choice_is_that_of_a_full_scan_of_the_allowed_arms(policy):
    rng = np.random.default_rng(3)
    arms = 6
    live, open_pulls = run(policy, arms), []
    decided = 0
    for _ in range(steps_of(policy, 500)):
        if rng.random() < 0.3:
            policy.set_allowed(live.s, random_mask(rng, arms))
        scan = copy_of(live.s)
        scan.lines[:], scan.lead[:] = lazy_state(arms)  # every allowed arm must be evaluated
        policy.forget_choice(scan)
        expected = Plain(policy, arms, state=scan).ask()
        arm = live.ask()
        assert arm == expected
        decided += live.s.lead[0] >= 0
        pulled = arm if rng.random() < 0.8 else int(rng.choice(np.flatnonzero(live.s.allowed)))
        play(rng, live, pulled, open_pulls)
    assert decided > 0 or policy in EXPLORING


@each("policy", DETERMINISTIC, ids=repr)
def test_a_mask_that_is_lifted_leaves_no_trace(policy):
    """Between two pulls, arms are excluded and allowed again: the choices are those of a run without masks."""
    rng = np.random.default_rng(5)
    arms = 4
    free, masked = run(policy, arms), run(policy, arms)
    for _ in range(steps_of(policy, 400)):
        for _ in range(int(rng.integers(3))):
            policy.set_allowed(masked.s, random_mask(rng, arms))
            if rng.random() < 0.7:
                assert masked.s.allowed[masked.ask()]
        policy.set_allowed(masked.s, np.ones(arms, dtype=bool))
        arm = free.ask()
        assert masked.ask() == arm
        reward = reward_of(rng, arm)
        free.tell(arm, reward)
        masked.tell(arm, reward)


def test_a_policy_that_cannot_leave_arms_out_says_so_by_name():
    policy = rb.Oracle(arm=1)
    state = policy.start(3, None, NO_STREAM)
    policy.set_allowed(state, [True, True, True])
    with pytest.raises(NotApplicable, match=r"Oracle\(arm=1\) cannot leave arms out"):
        policy.set_allowed(state, [True, False, True])
    assert state.allowed.all()
    assert {type(policy).__name__ for policy in POLICIES if not policy.respects_allowed} == {"Oracle"}


def test_the_same_mask_again_keeps_the_leader():
    live = run(rb.UCB1(), 3)
    for arm in (0, 1, 2, live.ask()):
        live.tell(arm, 0.5)
    leader = live.ask()
    assert live.s.lead[0] == leader
    live.policy.set_allowed(live.s, [True] * 3)
    assert live.s.lead[0] == leader
    live.policy.set_allowed(live.s, np.arange(3) != leader)
    assert live.s.lead.tolist() == [-1, -1]


@each("policy", [rb.AdaRUCB(), rb.AdaKLProved(pulls="double")], ids=repr)
def test_a_round_of_an_arm_that_left_is_completed_when_it_is_next_pulled(policy):
    live = run(policy, 2)
    first = live.ask()
    live.tell(first, -1.0)
    policy.set_allowed(live.s, np.arange(2) != first)
    for _ in range(4):
        assert live.ask() != first
        live.tell(live.ask(), -2.0)
    policy.set_allowed(live.s, [True, True])
    while live.ask() != first:
        live.tell(live.ask(), -2.0)
    assert live.issue(first) == 1.0  # the second pull of its round
    assert live.s.clock[CURRENT] == -1


def test_a_batch_of_klinf_ends_with_a_pause_and_survives_a_single_choice():
    policy = ready(rb.KLinfUCB(batch=1.0))
    live = run(policy, 2)
    for _ in range(8):
        for arm in (0, 1):
            live.tell(arm, -1.0 - arm)
    held = live.ask()
    live.tell(held, -1.0)
    assert live.ask() == held
    policy.set_allowed(live.s, np.arange(2) != held)
    assert live.ask() != held
    policy.set_allowed(live.s, [True, True])
    assert live.ask() == held
    assert live.s.run[1] > 0
    policy.paused(live.s, held)
    assert live.s.run[1] == 0


# --- weights ----------------------------------------------------------------------------------------------------------

LEADERS = [policy for policy in MASKED if policy.weighted]


@each("policy", LEADERS, ids=repr)
def test_weights_are_those_of_the_allowed_arms_alone(policy):
    """A run in which other arms are not allowed has the weights of a run without these arms."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        arms = int(rng.integers(2, 8))
        mask = random_mask(rng, arms)
        state, alone = run(policy, arms), run(policy, int(mask.sum()))
        for live in (state, alone):
            live.s.clock[0] = 20 if policy != ready(rb.Ada2TINF()) else 0
            if "ledger" in live.s._fields:
                live.s.ledger[2] = 1000.0
        losses = rng.normal(size=arms) * 10.0 ** rng.integers(-2, 4)
        state.s.losses[:] = losses
        state.s.losses[~mask] -= 1e6 * rng.random()  # far below the others: it must not matter
        alone.s.losses[:] = losses[mask]
        policy.set_allowed(state.s, mask)
        weights = state.describe()["probability"]
        assert (weights[~mask] == 0.0).all()
        assert weights.sum() == pytest.approx(1.0, abs=1e-15 * arms)
        assert weights[mask] == pytest.approx(alone.describe()["probability"], rel=1e-12)
        assert np.isnan(state.describe()["mean"][~mask]).all()


def test_a_restart_gives_equal_weights_to_the_allowed_arms():
    live = run(rb.Ada2TINF(), 4)
    live.tell(live.ask(), 0.0)  # the first start lasts one pull
    live.s.losses[:] = [1.0, 2.0, 3.0, 4.0]
    live.policy.set_allowed(live.s, [False, True, False, True])
    assert live.describe()["probability"].tolist() == [0.0, 0.5, 0.0, 0.5]
    assert live.s.clock[4] == 1


@each("policy", LEADERS, ids=repr)
def test_an_arm_returns_as_far_behind_the_leader_as_it_left(policy):
    live = run(policy, 3)
    live.s.losses[:] = [1.0, 4.0, 2.5]
    policy.paused(live.s, 1)
    policy.set_allowed(live.s, [True, False, True])
    assert live.s.losses[1] == 3.0
    live.s.losses[:] += [50.0, 0.25, 60.0]  # of arm 1: a late reward
    policy.resumed(live.s, 1)
    policy.set_allowed(live.s, [True] * 3)
    assert live.s.losses.tolist() == [51.0, 54.25, 62.5]
    # The leader leaves: it returns ahead of the others, by as much.
    policy.paused(live.s, 0)
    policy.set_allowed(live.s, [False, True, True])
    assert live.s.losses[0] == -3.25
    live.s.losses[:] += [0.0, 10.0, 0.0]
    policy.resumed(live.s, 0)
    assert live.s.losses[0] == 62.5 - 3.25
    # A new arm starts level with the leader.
    longer = policy.extended(live.s)
    policy.resumed(longer, 3)
    assert longer.losses[3] == longer.losses[longer.allowed].min()


def test_all_arms_may_be_paused_and_return():
    policy = ready(rb.HTINF())
    live = run(policy, 2)
    live.s.losses[:] = [10.0, 12.0]
    for arm in (1, 0):
        policy.paused(live.s, arm)
        live.s.allowed[arm] = False
    assert live.s.losses.tolist() == [0.0, 2.0]
    for arm in (0, 1):
        policy.resumed(live.s, arm)
        live.s.allowed[arm] = True
    assert live.s.losses.tolist() == [0.0, 2.0]


@each("policy", LEADERS, ids=repr)
def test_pauses_without_rewards_change_no_weight(policy):
    """Any order of pauses and returns, also with all arms paused; rewards of one arm are the control."""
    generator = np.random.default_rng(5)
    for arms in [2] * 10 + [3] * 20 + [5] * 20:
        live = run(policy, arms)
        for _ in range(arms):
            live.tell(live.ask(), -1.0)
        live.s.losses[:] = generator.integers(-40, 40, arms) / 8.0
        policy.forget_choice(live.s)
        before = live.describe()["probability"]
        allowed = np.ones(arms, dtype=bool)
        emptied = False
        for arm in [*generator.integers(arms, size=20), *generator.permutation(arms)]:
            (policy.paused if allowed[arm] else policy.resumed)(live.s, arm)
            allowed[arm] = not allowed[arm]
            emptied |= not allowed.any()
            live.s.allowed[:] = allowed
        for arm in generator.permutation(np.flatnonzero(~allowed)):
            policy.resumed(live.s, arm)
            live.s.allowed[arm] = True
        policy.forget_choice(live.s)
        np.testing.assert_allclose(live.describe()["probability"], before, rtol=1e-9)
        assert emptied or arms > 2
        live.s.losses[0] += 1.0
        policy.forget_choice(live.s)
        assert abs(live.describe()["probability"][0] - before[0]) > 1e-9


def test_a_restart_forgets_paused_arms_too():
    live = run(rb.Ada2TINF(), 3)
    live.tell(live.ask(), 0.0)  # the first start lasts one pull
    live.s.losses[:] = [1.0, 2.0, 3.0]
    live.policy.paused(live.s, 2)
    live.policy.set_allowed(live.s, [True, True, False])
    live.issue(live.ask())
    assert live.s.losses.tolist() == [0.0, 0.0, 0.0]


# --- one more arm -----------------------------------------------------------------------------------------------------


@each("policy", POLICIES, ids=repr)
@each("arms", [1, 2, 3, 6])
def test_before_the_first_pull_an_added_arm_was_always_there(policy, arms):
    if isinstance(policy, rb.Oracle) and policy.arm >= arms:
        policy = rb.Oracle(arm=0)
    state = policy.extended(policy.start(arms, None, NO_STREAM))
    assert state.allowed.tolist() == [True] * arms + [False]
    policy.resumed(state, arms)
    policy.set_allowed(state, np.ones(arms + 1, dtype=bool))
    fresh = policy.start(arms + 1, None, NO_STREAM)
    assert type(state) is type(fresh)
    for name in fresh._fields:
        one, other = getattr(state, name), getattr(fresh, name)
        assert one.dtype == other.dtype
        assert one.flags.c_contiguous
        np.testing.assert_array_equal(one, other, err_msg=name)


# Earlier numbers of arms have lasting effects: on AdaTINF's costs, on uniINF's scale, and on which pulls ForceMoM forced.
DRAWS_AGAIN = ("epsilon-greedy", "epsilon-greedy ridge", "Uniform")  # a random arm that is not allowed is drawn again
DEPENDS_ON_HISTORY = ("AdaTINF", "Ada2TINF", "uniINF", "ForceMoM")


@each("policy", [policy for policy in MASKED if policy.label not in DEPENDS_ON_HISTORY], ids=repr)
@each("arms", [1, 3])
def test_an_added_arm_is_one_that_was_paused_from_the_start(policy, arms):
    """The same pulls in both runs: afterwards the choices agree, with late rewards from before the arm was added."""
    rng = np.random.default_rng(arms)
    late, early = run(policy, arms), run(policy, arms + 1)
    paused = np.arange(arms + 1) < arms
    policy.paused(early.s, arms)
    policy.set_allowed(early.s, paused)
    open_pulls = []
    steps = steps_of(policy)
    for step in range(2 * steps):
        if step == steps:
            late = Plain(policy, arms + 1, state=policy.extended(late.s))
            if policy.label in DRAWS_AGAIN:
                late.s.rng[:] = early.s.rng
            for live in (late, early):
                policy.resumed(live.s, arms)
                policy.set_allowed(live.s, np.ones(arms + 1, dtype=bool))
        arm, other = early.ask(), late.ask()
        if step >= steps:
            assert other == arm, step
        marks = early.issue(arm), late.issue(arm)
        if policy.weighted:
            assert marks[0] == pytest.approx(marks[1], rel=1e-9)
        open_pulls.append((arm, *marks))
        while open_pulls and rng.random() < 0.6:
            pulled, *both = open_pulls.pop(int(rng.integers(len(open_pulls))))
            reward = reward_of(rng, pulled)
            for live, mark in zip((early, late), both, strict=True):
                live.late(pulled, reward, mark)


@each("policy", [policy for policy in MASKED if policy.label in DEPENDS_ON_HISTORY], ids=repr)
def test_the_others_play_on_with_an_added_arm(policy):
    rng = np.random.default_rng(2)
    live, open_pulls = run(policy, 2), []
    for arms in (2, 3, 4):
        for _ in range(60):
            play(rng, live, live.ask(), open_pulls)
        live = Plain(policy, arms + 1, state=policy.extended(live.s))
        policy.resumed(live.s, arms)
        policy.set_allowed(live.s, np.ones(arms + 1, dtype=bool))
        assert live.ask() == arms or policy.weighted  # ForceMoM forces the new arm
        if policy.weighted:
            assert live.describe()["probability"].sum() == pytest.approx(1.0)


def test_a_state_that_has_grown_keeps_its_rewards():
    """Room differs between arms; the new arm gets the stretch after all others, and can grow too."""
    policy = ready(rb.RMMUCB())
    live = run(policy, 2)
    for j in range(200):
        live.tell(0, float(j))
    live.tell(1, -1.0)
    assert live.grown > 0
    live = Plain(policy, 3, state=policy.extended(live.s))
    policy.set_allowed(live.s, [True] * 3)
    for j in range(100):
        live.tell(2, -float(j))
    start, used = live.s.slots[:3, 0], live.s.slots[:3, 1]
    assert used.tolist() == [200, 1, 100]
    stored = [live.s.pool[0, a : a + n].tolist() for a, n in zip(start, used, strict=True)]
    assert stored == [[float(j) for j in range(200)], [-1.0], [-float(j) for j in range(100)]]


# --- a policy of one's own --------------------------------------------------------------------------------------------


class Own(rb.policies.index.IndexPolicy):
    """An index policy as a user writes it."""

    row_length = 2

    @staticmethod
    def add(p, s, arm, reward):
        s.arms[arm, 0] += 1.0
        s.arms[arm, 1] += reward

    @staticmethod
    def index(p, s, arm, level):
        return s.arms[arm, 1] / s.arms[arm, 0]

    @staticmethod
    def mean(p, s, arm):
        return s.arms[arm, 1] / s.arms[arm, 0]


def test_an_index_policy_needs_no_code_for_it():
    assert Own.respects_allowed
    assert not Policy.respects_allowed
    policy = Own()
    live = run(policy, 3)
    policy.set_allowed(live.s, [False, True, True])
    for reward in (1.0, 2.0):
        live.tell(live.ask(), reward)
    assert live.ask() == 2  # arm 0, which has no reward, is not allowed
    policy.set_allowed(live.s, [False, True, False])
    assert live.ask() == 1
    policy.set_allowed(live.s, [True, True, True])
    assert live.ask() == 0


def test_init_and_grow_see_a_state_without_the_field():
    plain = Own().init(2, None)
    state = with_arms(plain, np.ones(2, dtype=bool), np.array([0, 0, 1]))
    assert state._fields == (*plain._fields, "allowed", "unrewarded")
    assert type(state) is type(Own().start(2, None, NO_STREAM))
    assert type(without_arms(state)) is type(plain)
    assert all(a is b for a, b in zip(without_arms(state), plain, strict=True))
    assert without_arms(plain) is plain
    assert with_arms(state, np.zeros(2, dtype=bool), np.zeros(3, dtype=int)) is state
