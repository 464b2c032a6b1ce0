"""AdaKL-UCB's practical and proved schedules against their definition, and what a live bandit asks of them.

Only ``ask``, ``tell`` and ``describe`` are compiled here; short runs of anything else are interpreted.
"""

import math

import numpy as np
import pytest
from scipy import stats

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.rewards import HARD, KINDS
from references.slow_adakl_ucb import SlowAdaKLUCB
from references.slow_adakl_ucb import centre as slow_centre
from robandit.errors import InvalidInput
from robandit.estimators.formulas.threshold import C
from robandit.kernel import loops
from robandit.policies import AdaKLUCB
from robandit.policies.adar import adakl_ucb, layout, likelihood_index
from robandit.policies.adar.clusters import COUNT
from robandit.policies.adar.layout import IN_TOP, IN_X
from robandit.policies.assumptions import CENTRED, NONPOSITIVE

# One process compiles once for all tests here.
pytestmark = pytest.mark.xdist_group("adakl")

PRACTICAL = {"schedule": "practical", "pulls": "single"}
WAYS = {
    "practical, double": {"schedule": "practical", "pulls": "double"},
    "proved, single": {"schedule": "proved", "pulls": "single"},
    "proved, double": {"schedule": "proved", "pulls": "double"},
    "proved, single, no centre": {"schedule": "proved", "pulls": "single", "center": None},
    "proved, double, no centre": {"schedule": "proved", "pulls": "double", "center": None},
}


def agree(live, slow, arms=None):
    """Indices to 1e-9 of their distance from the centre; sums with the centre are rounded."""
    said = live.describe()["index"]
    for arm in range(live.arms) if arms is None else arms:
        wanted = slow.index(arm)
        if wanted == math.inf:
            assert said[arm] == math.inf
        else:
            m = live.s.arms[arm, likelihood_index.CENTRE]
            assert m == (slow_centre((slow.x if slow.practical else slow.x_prime)[arm]) if slow.centred else 0.0)
            assert abs(said[arm] - wanted) <= 1e-9 * abs(wanted - m) + 4e-16 * abs(m), (said[arm], wanted)
    return said


class Run:
    """The policy and the reference on the same rewards, chosen by the policy."""

    def __init__(self, way, kind, seed, arms=2, horizon=None, scale=1.0):
        self.live = Live(AdaKLUCB(**way), arms, horizon)
        self.slow = SlowAdaKLUCB(arms, **way)
        rng = np.random.default_rng([seed, list(KINDS).index(kind)])
        self.rewards = [scale * KINDS[kind](rng, arm, 2000) for arm in range(arms)]
        self.used = [0] * arms
        self.judged = self.ties = 0

    def step(self, judge):
        arm = self.live.ask()
        if judge:
            self.judge(arm)
        reward = float(self.rewards[arm][self.used[arm]])
        self.used[arm] += 1
        self.live.tell(arm, reward)
        self.slow.tell(arm, reward)

    def judge(self, arm):
        expected = self.slow.ask()
        self.judged += 1
        if arm != expected:  # allowed if the two cannot be told apart
            first, second = self.slow.index(arm), self.slow.index(expected)
            self.ties += 1
            assert abs(first - second) <= 1e-9 * max(abs(first), abs(second)), (first, second, self.used)


@pytest.mark.independent("AdaKLUCB")
@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_the_references(kind):
    number = list(KINDS).index(kind)
    run = Run(
        PRACTICAL,
        kind,
        1,
        arms=2 + number % 2,
        horizon=None if number % 3 else 400,
        scale=[1.0, 2.0**-300, 1e140][number % 3],
    )
    for t in range(160):
        run.step(t < 60 or t % 4 == 0)
    agree(run.live, run.slow)
    assert run.live.policy.counters(run.live.s) == {"fallbacks": 0}
    assert run.ties <= 2


SOME_HARD = ["ascending", "growing", "sorted losses", "losses, largest last", "a distant cluster", "alternating scales"]


@pytest.mark.parametrize(("kind", "schedule"), [(k, s) for k in SOME_HARD for s in ("practical", "proved")])
def test_hard_sequences_are_decided_as_the_reference_does(kind, schedule):
    """Sorted, drifting and alternating rewards: few are stored, and no decision changes."""
    way = {"schedule": schedule, "pulls": "single"}
    run = Run(way, "coins", 1)
    steps = amount(2200, 6000)
    run.rewards = [HARD[kind](np.random.default_rng([15, arm]), steps) + 1e-3 * arm for arm in range(2)]
    for t in range(steps):
        run.step(t < 30 or t % 150 == 0)
    agree(run.live, run.slow)
    assert run.live.policy.counters(run.live.s) == {"fallbacks": 0}
    if schedule == "practical":
        assert run.live.s.counts[:, layout.BIG].max() < 600


def spread(ways):
    """Each way on four kinds, and each kind at least once."""
    kinds = list(KINDS)
    return [(way, kinds[(i + len(WAYS) * j) % len(kinds)]) for i, way in enumerate(ways) for j in range(4)]


@pytest.mark.parametrize(("way", "kind"), spread(WAYS))
def test_the_other_ways(way, kind):
    """Forced exploration ends when the threshold's stream has 3 c L (or c L) rewards off the centre; decisions from there on."""
    run = Run(WAYS[way], kind, 2)
    proved = WAYS[way]["schedule"] == "proved"
    steps = 2000 if proved else 300
    free = 0  # decisions in which an arm has a finite index
    for t in range(steps):
        explored = proved and np.all(
            np.isfinite(run.live.s.arms[:, likelihood_index.BOUND])
            & (run.live.s.arms[:, likelihood_index.BOUND] != 0.0)
        )
        free += bool(explored)
        run.step(t < 30 or (explored and free < 20) or t % 40 == 0)
    said = agree(run.live, run.slow)
    if proved and kind not in ("mostly zeros", "zeros", "constants", "two points", "half zeros", "coins", "integers"):
        assert free > 20
        assert np.isfinite(said).all()
    assert run.ties <= 2


@pytest.mark.parametrize(
    ("kind", "horizon"),
    [
        ("losses, tail 1.1", None),
        ("losses, tail 1.1", 10_000),
        ("student", 10_000),
        ("gains", None),
        ("narrow gains", 10_000),
        ("half zeros", None),
        ("coins", None),
        ("coins", 1_000),  # where l needs more of them than the threshold does
    ],
)
def test_many_rewards_of_one_arm(kind, horizon):
    """Most become power sums; the index stays the reference's."""
    live, slow = Live(AdaKLUCB(**PRACTICAL), 2, horizon), SlowAdaKLUCB(2)
    steps = 6000 if horizon is None else min(6000, horizon)
    rewards = KINDS[kind](np.random.default_rng(3), 0, steps)
    for t, reward in enumerate(rewards.tolist()):
        live.tell(0, reward)
        slow.tell(0, reward)
        if t in (200, 500, 600, 700, 800, 900, 1500, 1501, 3000, 5999):
            agree(live, slow, [0])
        elif t % 5 == 0:
            live.ask()  # so that curves are followed, not only made
    counts = live.s.counts[0]
    assert (
        counts[likelihood_index.N_NEAR] > (0.45 if kind == "coins" else 0.8) * steps
    )  # coins are kept until l is four times their size
    assert counts[likelihood_index.N_NEAR] + live.s.far[0, :, COUNT].sum() + counts[layout.BIG] == counts[layout.N_X]
    assert counts[layout.N_X] == steps
    assert live.s.arms[0, likelihood_index.CUT] > 0.0
    assert live.policy.counters(live.s) == {"fallbacks": 0}


def test_many_rewards_in_the_proved_schedule():
    live, slow = Live(AdaKLUCB(schedule="proved"), 2, 12_000), SlowAdaKLUCB(2, schedule="proved")
    for reward in np.random.default_rng(4).standard_t(2.5, 8000).tolist():
        live.tell(0, reward)
        slow.tell(0, reward)
    agree(live, slow, [0])
    assert live.s.counts[0, likelihood_index.N_NEAR] > 2000
    assert live.s.counts[0, layout.TOP] < 1000


def test_memory_of_a_live_bandit_is_bounded():
    rng = np.random.default_rng(5)
    live = Live(AdaKLUCB(**PRACTICAL), 2)
    size = sum(array.nbytes for array in live.s) / 2
    assert size < 10 * 1024
    for t, reward in enumerate((-rng.pareto(1.1, 15_000)).tolist()):
        live.tell(0, reward)
        if t % 50 == 0:
            live.ask()
    assert live.s.buffer.shape[2] <= 513
    assert live.s.counts[0, layout.BIG] < 16 * live.s.limits[0]
    assert live.policy.counters(live.s) == {"fallbacks": 0}


@pytest.mark.parametrize("way", [PRACTICAL, *WAYS.values()], ids=["practical, single", *WAYS])
def test_a_live_bandit_at_its_limit_goes_on(way, monkeypatch):
    """Coins are the worst case: all are kept until all can be moved. With too little room l is larger, and so is the index."""
    monkeypatch.setattr(adakl_ucb, "LIVE_VALUES", 300)
    live, slow = Live(AdaKLUCB(**way), 2), SlowAdaKLUCB(2, **way)
    pulls = 1500 if way["schedule"] == "practical" else 2600  # the exploration of the proved one must end
    for t, reward in enumerate(np.random.default_rng(6).choice([-1.0, 1.0], pulls).tolist()):
        for arm in (0, 1):
            live.tell(arm, reward + arm / 8)
            slow.tell(arm, reward + arm / 8)
        counts = live.s.counts
        assert counts[:, [layout.TOP, layout.BIG]].min() >= 0
        assert counts[:, [layout.TOP, layout.BIG]].max() <= 300
        assert (counts[:, layout.TOP_ABOVE] >= 0).all()
        if t % 5 == 4:
            live.ask()
    assert live.s.buffer.shape[2] == 301
    assert live.policy.counters(live.s)["fallbacks"] > 0
    said = live.describe()
    for arm in (0, 1):
        exact, mean = slow.index(arm), np.mean(slow.x[arm])
        assert said["mean"][arm] == pytest.approx(mean, rel=1e-9)
        assert -1e-9 <= (said["index"][arm] - exact) / (exact - mean) < 0.5


def test_the_limit_of_one_stream_leaves_the_other_alone(monkeypatch):
    monkeypatch.setattr(adakl_ucb, "LIVE_VALUES", 300)
    live = Live(AdaKLUCB(schedule="proved"), 2)
    sizes = 1.0 + np.random.default_rng(7).pareto(1.5, 500)
    for j, size in enumerate(sizes.tolist()):
        # Coins about 0: after an even number of them the centre is 0.
        live.tell(0, -0.125 if j < 20 else 0.0)
        live.tell(0, (1.0 if j % 2 else -1.0) * (1.0 if j < 128 else size))
    sizes[:128] = 1.0
    counts = live.s.counts[0]
    assert 200 < counts[layout.TOP] <= 300
    assert (counts[layout.BIG], counts[likelihood_index.N_NEAR]) == (20, 480)
    assert live.s.arms[0, likelihood_index.CENTRE] == live.s.arms[0, likelihood_index.CUT] == 0.0
    top = live.s.buffer[0, layout.TOP_VALUE, : counts[layout.TOP]]
    np.testing.assert_array_equal(top, np.sort(sizes)[::-1][: len(top)])
    squares = live.s.arms[0, layout.TOP_BELOW] + live.s.buffer[0, layout.TOP_SQUARES, 0]
    assert squares == pytest.approx((sizes**2).sum())


def test_unlimited_where_the_horizon_is_known(monkeypatch):
    monkeypatch.setattr(adakl_ucb, "LIVE_VALUES", 300)
    live, slow = Live(AdaKLUCB(**PRACTICAL), 2, 10**9), SlowAdaKLUCB(2)
    for t, reward in enumerate(np.random.default_rng(6).choice([-1.0, 1.0], 700).tolist()):
        live.tell(0, reward)
        slow.tell(0, reward)
        if t % 5 == 4:
            live.ask()
    agree(live, slow, [0])
    assert live.s.buffer.shape[2] > 301
    assert live.policy.counters(live.s) == {"fallbacks": 0}


@pytest.mark.parametrize("way", [PRACTICAL, {"schedule": "proved"}], ids=str)
def test_rewards_too_small_to_be_squared(way):
    """They count as equal to the centre, and never make an index that is not a number."""
    live = Live(AdaKLUCB(**way), 2)
    for j, reward in enumerate(np.random.default_rng(8).integers(0, 4, 400).tolist()):
        live.tell(j % 2, reward * 5e-324)
        live.ask()
    assert not np.isnan(live.describe()["index"]).any()


def same(one, two):
    """The same state but for the order in which sums were made."""
    first, second = one.describe(), two.describe()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-11, atol=1e-12, err_msg=name)
    assert (one.s.counts == two.s.counts).all()
    assert one.ask() == two.ask()


def test_late_rewards_in_any_order():
    """The centre is made from rewards in their order of arrival: a power of two of them, or those that come after 128."""
    rng = np.random.default_rng(8)
    rewards = np.round(rng.standard_t(1.5, 200), 3)
    for order in (rng.permutation(64), np.concatenate([rng.permutation(128), 128 + rng.permutation(72)])):
        prompt, late = Plain(AdaKLUCB(**PRACTICAL), 2), Plain(AdaKLUCB(**PRACTICAL), 2)
        for run, arrivals in ((prompt, range(len(order))), (late, order)):
            marks = [run.issue(0) for _ in order]
            run.tell(1, 0.0)
            run.tell(1, 1.0)
            for j in arrivals:
                run.late(0, float(rewards[j]), marks[j])
        assert np.isfinite(prompt.describe()["index"][0])
        same(prompt, late)


def test_roles_do_not_matter_to_the_practical_schedule():
    one, two = Plain(AdaKLUCB(**PRACTICAL), 2), Plain(AdaKLUCB(**PRACTICAL), 2)
    for reward in np.random.default_rng(9).standard_normal(40).tolist():
        for run in (one, two):
            run.issue(0)
        one.late(0, reward, IN_X)
        two.late(0, reward, IN_TOP)
    same(one, two)


def test_first_rewards_that_wait_for_second_ones():
    """In the proved schedule 128 first rewards wait for a centre; more join the stream of the second ones."""
    run = Plain(AdaKLUCB(schedule="proved"), 2)
    for j in range(140):
        run.issue(0)
        run.late(0, float(j % 10), IN_X)
    counts = run.s.counts[0]
    assert counts[layout.N_X] == 128
    assert counts[likelihood_index.N_TOP] == 12
    assert run.s.arms[0, likelihood_index.CENTRE] == np.median([float(j % 10) for j in range(128, 136)])
    for j in range(300):
        run.late(0, float(j % 10), IN_TOP)
    run.s.clock[layout.ROUNDS] = 4
    assert run.s.counts[0, likelihood_index.N_TOP] == 312
    slow = SlowAdaKLUCB(2, schedule="proved")
    slow.x[0] = [float(j % 10) for j in range(128)]
    slow.x_prime[0] = [float(j % 10) for j in [*range(128, 140), *range(300)]]
    slow.rounds = 4
    agree(run, slow, [0])


def test_lost_pulls():
    single, double = Plain(AdaKLUCB(schedule="proved"), 2), Plain(AdaKLUCB(schedule="practical", pulls="double"), 2)
    marks = [single.issue(0) for _ in range(4)]
    assert marks == [IN_X, IN_TOP] * 2
    assert single.s.clock[layout.ROUNDS] == 4
    single.forget(0, marks[1])
    assert single.issue(0) == IN_TOP
    assert single.s.clock[layout.ROUNDS] == 5  # the clock counts pulls made, lost ones too
    assert single.ask() == 1
    mark = double.issue(double.ask())
    assert double.ask() == 0
    double.forget(0, mark)
    assert double.s.clock[layout.CURRENT] == -1
    assert double.ask() == 0  # as none of its pulls counts
    double.issue(1)
    assert double.ask() == 1
    double.issue(1)
    assert double.s.clock[layout.ROUNDS] == 2
    assert double.ask() == 0


def test_unexplored_arms_come_first_then_those_with_nothing_above_the_centre():
    run = Plain(AdaKLUCB(**PRACTICAL), 3)
    for expected in (0, 1, 2, 0, 1, 2):  # fewest pulls, then the lowest
        assert run.ask() == expected
        run.tell(expected, -1.0)
    said = run.describe()
    # n = 2 <= 4 log(1 + 6/3): all alike so far, and not believed.
    assert (said["index"] == math.inf).all()
    run.tell(1, -1.0)
    run.tell(1, 0.0)
    assert np.isfinite(run.describe()["index"]).tolist() == [False, True, False]


def test_constant_arms():
    """The best constant is played, the others as rarely as 4 L pulls allow."""
    live = Live(AdaKLUCB(**PRACTICAL), 3)
    pulls = [0] * 3
    for _ in range(900):
        arm = live.ask()
        pulls[arm] += 1
        live.tell(arm, [-1.0, -0.5, -2.0][arm])
    assert live.describe()["index"][1] == live.describe()["mean"][1] == -0.5
    needed = 4.0 * math.log(1.0 + 900 / 3)
    assert pulls[1] == 900 - pulls[0] - pulls[2]
    assert [pulls[0], pulls[2]] == pytest.approx([needed, needed], abs=2)


def test_ties_are_broken_by_pulls_then_by_number():
    run = Plain(AdaKLUCB(**PRACTICAL), 2)
    for reward in (1.0, 0.0, 2.0, 5.0, 1.0):
        for arm in (1, 0):
            run.tell(arm, reward)
    said = run.describe()["index"]
    assert said[0] == said[1] < math.inf
    assert run.ask() == 0
    run.issue(0)  # a pull whose reward is not known yet
    assert run.ask() == 1


def test_estimates_of_an_arm():
    live = Live(AdaKLUCB(**PRACTICAL), 2)
    x = np.random.default_rng(10).standard_t(1.1, 128)
    for reward in x.tolist():
        live.tell(0, reward)
    said = {name: column[0] for name, column in live.describe().items()}
    z = x - np.median(x)
    sizes = np.abs(z)
    a = 2.5 * math.log(1.0 + 128 / 2)
    assert np.minimum((sizes / said["threshold"]) ** 2, 1.0).sum() == pytest.approx(a)
    assert 0.0 < said["share_trimmed"] == (sizes > said["threshold"]).mean()
    assert said["mean"] == pytest.approx(np.median(x) + np.where(sizes <= said["threshold"], z, 0.0).mean())
    assert said["index"] > said["mean"]
    assert np.isnan(live.describe()["mean"][1])
    assert live.describe()["index"][1] == math.inf


# Coverage in the proved schedule. In round 3, L = 3 log 3: at most one index in 27 may lie below the mean.
LAWS = {  # a sampler, the mean and the median
    "losses, tail 1.5": (lambda rng, size: -1.0 - rng.pareto(1.5, size), -3.0, -(2.0 ** (2 / 3))),
    "student 1.5": (lambda rng, size: 10.0 + rng.standard_t(1.5, size), 10.0, 10.0),
    "gaussian": (lambda rng, size: rng.standard_normal(size), 0.0, 0.0),
    "60 % zeros": (lambda rng, size: np.where(rng.random(size) < 0.6, 0.0, -rng.pareto(1.5, size)), -0.8, 0.0),
    "gains, tail 1.5": (lambda rng, size: 1.0 + rng.pareto(1.5, size), 3.0, 2.0 ** (2 / 3)),
}
GAINS = "gains, tail 1.5"
SAMPLES = 300
LEVEL = 3.0 * math.log(3.0)
MOST = int(stats.binom.ppf(1.0 - 1e-6, SAMPLES, 1.0 / 27.0))  # a rate of exactly 1/27 exceeds it once in a million


def misses(law, center, each):
    """How many of the samples have an index below the mean. Each is an arm of its own. Without a centre, the true one is given."""
    draw, mean, median = LAWS[law]
    rewards = draw(np.random.default_rng(11), (SAMPLES, 2 * each))
    if center is None:
        rewards, mean = rewards - median, mean - median
    live = Live(AdaKLUCB(schedule="proved", center=center), SAMPLES)
    tell = live._entry(loops.tell, ("take", "update", "full"), 0, 0.0, 0.0)  # all of it fits into the first buffers
    for arm, sample in enumerate(rewards.tolist()):
        for reward in sample:
            assert not tell(*live._flat, arm, reward, loops.NOW)
    live.s.clock[layout.ROUNDS] = 2
    index = live.describe()["index"]
    assert np.isfinite(index).mean() > 0.9
    return int((index < mean).sum())


@pytest.mark.parametrize("law", sorted(set(LAWS) - {GAINS}))
def test_coverage_about_a_given_centre(law):
    """What is proved, with as few rewards as an index takes."""
    assert C * LEVEL < 20
    assert misses(law, None, 65 if "zeros" in law else 20) <= MOST


@pytest.mark.parametrize("law", sorted(set(LAWS) - {GAINS}))
def test_coverage_about_the_estimated_centre(law):
    """Four c L rewards, not the least number: there the error of the centre shows."""
    assert misses(law, "median", 240 if "zeros" in law else 80) <= MOST


@pytest.mark.parametrize("center", ["median", None])
def test_coverage_fails_where_the_assumption_does(center):
    """The negative control: the mean of gains is above what trimming leaves of it."""
    assert misses(GAINS, center, 80) > 2 * MOST


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"center": "mean"}, r"center = 'mean' must be one of 'median', None"),
        ({"center": 0.0}, r"center = 0\.0 must be"),
        ({"schedule": "paper"}, r"schedule = 'paper' must be one of 'adaptive', 'practical', 'proved'"),
        ({"schedule": None}, r"schedule = None must be"),
        ({"pulls": "triple"}, r"pulls = 'triple' must be one of 'double', 'single'"),
        ({"pulls": 2}, r"pulls = 2 must be"),
        (
            {"center": None, "schedule": "practical"},
            r"center = None must be 'median' with schedule='practical'; schedule='proved' also takes None",
        ),
        (
            {"center": None},
            r"center = None must be 'median' with schedule='adaptive'; schedule='proved' also takes None",
        ),
        (
            {"pulls": "double"},
            r"pulls = 'double' must be 'single' with schedule='adaptive'; the other schedules also take",
        ),
    ],
)
def test_wrong_parameters_are_rejected(options, words):
    with pytest.raises(InvalidInput, match=f"AdaKLUCB: {words}"):
        AdaKLUCB(**options)


def test_what_it_says_about_itself():
    plain, zero = AdaKLUCB(**PRACTICAL), AdaKLUCB(center=None, schedule="proved")
    assert plain.name == "AdaKL-UCB(schedule='practical')"
    assert plain.facts.assumption == CENTRED
    assert zero.facts.assumption == NONPOSITIVE
    assert plain.facts.bound == AdaKLUCB(schedule="proved").facts.bound == ""  # nothing is proved about regret
    assert zero.facts.bound != ""
    assert rb.Policy.from_dict(zero.to_dict()) == zero
    assert plain.params()[:3] == (2.5, 7.5, 1.0)
    assert AdaKLUCB(schedule="proved").params()[:3] == (C, 3.0 * C, 3.0)
    assert zero.params()[:3] == (C, C, 3.0)
    assert pytest.approx((1.0 + math.sqrt(2.0)) ** 2) == C


def test_a_saved_bandit_goes_on(tmp_path):
    rng = np.random.default_rng(12)
    bandit = rb.Bandit(["a", "b"], AdaKLUCB(**PRACTICAL), seed=0)
    for steps in (3, 100, 900):
        for _ in range(steps):
            arm = bandit.select()
            bandit.update(arm, 100.0 + rng.standard_t(1.5) - (arm == "b"))
        bandit.save(tmp_path / "x.bandit")
        again = rb.Bandit.load(tmp_path / "x.bandit")
        assert again.policy == AdaKLUCB(**PRACTICAL)
        for one, two in zip(again._engine.state, bandit._engine.state, strict=True):
            assert one.tobytes() == two.tobytes()
        for reward in rng.standard_t(1.5, 50).tolist():
            arm = bandit.select()
            assert again.select() == arm
            for one in (bandit, again):
                one.update(arm, 100.0 + reward)
    assert bandit._engine.state.counts[:, likelihood_index.N_NEAR].sum() > 100
    assert 98 < bandit.estimates()[0]["mean"] < 102
