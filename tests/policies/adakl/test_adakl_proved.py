"""AdaKL-Proved against its definition, and what a live bandit asks of it.

Only ``ask``, ``tell`` and ``describe`` are compiled here; short runs of anything else are interpreted.
"""

import math

import numpy as np
import pytest
from scipy import stats

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import HARD, KINDS
from references.slow_adakl_ucb import SlowAdaKLUCB
from robandit.errors import InvalidInput
from robandit.estimators.formulas.threshold import C
from robandit.kernel import loops
from robandit.policies import AdaKLProved
from robandit.policies.adakl import adakl_proved, trimmed_likelihood
from robandit.policies.adakl.clusters import COUNT
from robandit.policies.adar import layout
from robandit.policies.adar.layout import IN_TOP, IN_X
from robandit.policies.assumptions import NONPOSITIVE

# One process compiles once for all tests here.
pytestmark = pytest.mark.xdist_group("adakl-proved")

PULLS = ["single", "double"]


def slow_one(arms, pulls="single"):
    return SlowAdaKLUCB(arms, schedule="proved", center=None, pulls=pulls)


def agree(live, slow, arms=None):
    """Indices to 1e-9 of their size."""
    found = live.describe()["index"]
    for arm in range(live.arms) if arms is None else arms:
        wanted = slow.index(arm)
        assert found[arm] == (math.inf if wanted == math.inf else pytest.approx(wanted, rel=1e-9)), arm
    return found


class Run:
    """The policy and the reference on the same rewards, chosen by the policy."""

    def __init__(self, pulls, kind, seed, arms=2):
        self.live, self.slow = Live(AdaKLProved(pulls=pulls), arms), slow_one(arms, pulls)
        rng = np.random.default_rng([seed, list(KINDS).index(kind)])
        self.rewards = [KINDS[kind](rng, arm, 2000) for arm in range(arms)]
        self.used = [0] * arms
        self.ties = 0

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
        if arm != expected:  # allowed if the two cannot be told apart
            first, second = self.slow.index(arm), self.slow.index(expected)
            self.ties += 1
            assert abs(first - second) <= 1e-9 * max(abs(first), abs(second)), (first, second, self.used)


@pytest.mark.independent("AdaKLProved")
@pytest.mark.parametrize(("pulls", "kind"), [(PULLS[i % 2], kind) for i, kind in enumerate(KINDS)])
def test_every_decision_is_the_references(pulls, kind):
    """Forced exploration ends when the threshold's stream has c L rewards that are not 0; decisions from there on."""
    run = Run(pulls, kind, 2)
    free = 0  # decisions in which every arm has a finite index
    for t in range(2000):
        bounds = run.live.s.arms[:, trimmed_likelihood.BOUND]
        explored = bool(np.all(np.isfinite(bounds) & (bounds != 0.0)))
        free += explored
        run.step(t < 30 or (explored and free < 20) or t % 40 == 0)
    found = agree(run.live, run.slow)
    if kind not in ("mostly zeros", "zeros", "two points"):
        assert free > 20
        assert np.isfinite(found).all()
    assert run.ties <= 2 or kind == "constants"  # whose indices are equal but for rounding


@pytest.mark.parametrize(
    "kind", ["ascending", "growing", "sorted losses", "losses, largest last", "a distant cluster", "alternating scales"]
)
def test_hard_sequences_are_decided_as_the_reference_does(kind):
    """Sorted, drifting and alternating rewards: few are stored, and no decision changes."""
    run = Run("single", "coins", 1)
    steps = amount(2200, 6000)
    run.rewards = [HARD[kind](np.random.default_rng([15, arm]), steps) + 1e-3 * arm for arm in range(2)]
    for t in range(steps):
        run.step(t < 30 or t % 150 == 0)
    agree(run.live, run.slow)
    assert run.live.policy.counters(run.live.s) == {"fallbacks": 0}


def test_many_rewards_of_one_arm():
    """Most become power sums; the index stays the reference's."""
    live, slow = Live(AdaKLProved(), 2, 12_000), slow_one(2)
    for t, reward in enumerate(np.random.default_rng(4).standard_t(2.5, 8000).tolist()):
        live.tell(0, reward)
        slow.tell(0, reward)
        if t % 50 == 0:
            live.ask()  # so that curves are followed, not only made
    agree(live, slow, [0])
    counts = live.s.counts[0]
    assert counts[trimmed_likelihood.N_NEAR] > 2000
    assert counts[trimmed_likelihood.N_NEAR] + live.s.far[0, :, COUNT].sum() + counts[layout.BIG] == counts[layout.N_X]
    assert counts[layout.TOP] < 1000


@pytest.mark.parametrize("pulls", PULLS)
def test_a_live_bandit_at_its_limit_goes_on(pulls, monkeypatch):
    """Coins are the worst case: all are kept until all can be moved. With too little room l is larger, and so is the index."""
    monkeypatch.setattr(adakl_proved, "LIVE_VALUES", 300)
    live, slow = Live(AdaKLProved(pulls=pulls), 2), slow_one(2, pulls)
    for t, reward in enumerate(np.random.default_rng(6).choice([-1.0, 1.0], 2600).tolist()):
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
    found = live.describe()
    for arm in (0, 1):
        exact, mean = slow.index(arm), np.mean(slow.x[arm])
        assert found["mean"][arm] == pytest.approx(mean, rel=1e-9)
        assert -1e-9 <= (found["index"][arm] - exact) / (exact - mean) < 0.5


def test_the_limit_of_one_stream_leaves_the_other_alone(monkeypatch):
    monkeypatch.setattr(adakl_proved, "LIVE_VALUES", 300)
    live = Live(AdaKLProved(), 2)
    sizes = 1.0 + np.random.default_rng(7).pareto(1.5, 500)
    sizes[:128] = 1.0
    for j, size in enumerate(sizes.tolist()):
        live.tell(0, -0.125 if j < 20 else 0.0)
        live.tell(0, (1.0 if j % 2 else -1.0) * size)
    counts = live.s.counts[0]
    assert 200 < counts[layout.TOP] <= 300
    assert (counts[layout.BIG], counts[trimmed_likelihood.N_NEAR]) == (20, 480)
    assert live.s.arms[0, trimmed_likelihood.CUT] == 0.0
    top = live.s.buffer[0, layout.TOP_VALUE, : counts[layout.TOP]]
    np.testing.assert_array_equal(top, np.sort(sizes)[::-1][: len(top)])
    squares = live.s.arms[0, layout.TOP_BELOW] + live.s.buffer[0, layout.TOP_SQUARES, 0]
    assert squares == pytest.approx((sizes**2).sum())


def test_rewards_too_small_to_be_squared():
    """They count as 0, and never make an index that is not a number."""
    live = Live(AdaKLProved(), 2)
    for j, reward in enumerate(np.random.default_rng(8).integers(0, 4, 400).tolist()):
        live.tell(j % 2, reward * 5e-324)
        live.ask()
    assert not np.isnan(live.describe()["index"]).any()


def test_lost_pulls():
    single, double = Plain(AdaKLProved(), 2), Plain(AdaKLProved(pulls="double"), 2)
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


def test_estimates_of_an_arm():
    live = Live(AdaKLProved(), 2)
    x = np.random.default_rng(10).standard_t(1.1, 600)
    for reward in x.tolist():
        live.tell(0, reward)
    found = {name: column[0] for name, column in live.describe().items()}
    used, sizes = x[::2], np.abs(x[1::2])
    assert np.minimum((sizes / found["threshold"]) ** 2, 1.0).sum() == pytest.approx(C * 3.0 * math.log(601))
    assert 0.0 < found["share_trimmed"] == (np.abs(used) > found["threshold"]).mean()
    assert found["mean"] == pytest.approx(np.where(np.abs(used) <= found["threshold"], used, 0.0).mean())
    assert found["index"] > found["mean"]
    assert np.isnan(live.describe()["mean"][1])
    assert live.describe()["index"][1] == math.inf


# Coverage. In round 3, L = 3 log 3: at most one index in 27 may lie below the mean.
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


def misses(law, each):
    """How many of the samples, measured from the true median, have an index below the mean. Each is an arm of its own."""
    draw, mean, median = LAWS[law]
    rewards, mean = draw(np.random.default_rng(11), (SAMPLES, 2 * each)) - median, mean - median
    live = Live(AdaKLProved(), SAMPLES)
    tell = live._entry(loops.tell, ("take", "update", "full"), 0, 0.0, 0.0)  # all of it fits into the first buffers
    for arm, sample in enumerate(rewards.tolist()):
        for reward in sample:
            assert not tell(*live._flat, arm, reward, loops.NOW)
    live.s.clock[layout.ROUNDS] = 2
    index = live.describe()["index"]
    assert np.isfinite(index).mean() > 0.9
    return int((index < mean).sum())


@pytest.mark.parametrize("law", sorted(set(LAWS) - {GAINS}))
def test_coverage(law):
    """What is proved, with as few rewards as an index takes."""
    assert C * LEVEL < 20
    assert misses(law, 65 if "zeros" in law else 20) <= MOST


def test_coverage_fails_where_the_assumption_does():
    """The negative control: the mean of gains is above what trimming leaves of it."""
    assert misses(GAINS, 80) > 2 * MOST


@pytest.mark.parametrize("pulls", ["triple", 2, None])
def test_other_pulls_are_rejected(pulls):
    with raises(InvalidInput, parameter="pulls", rule="one of 'double', 'single'"):
        AdaKLProved(pulls=pulls)


def test_what_it_says_about_itself():
    policy = AdaKLProved(pulls="double")
    assert policy.name == "AdaKL-Proved(pulls='double')"
    assert policy.facts.assumption == NONPOSITIVE
    assert policy.facts.bound != ""
    assert rb.Policy.from_dict(policy.to_dict()) == policy
    assert pytest.approx((1.0 + math.sqrt(2.0)) ** 2) == C


def test_a_saved_bandit_goes_on(tmp_path):
    rng = np.random.default_rng(12)
    bandit = rb.Bandit(["a", "b"], AdaKLProved(), seed=0)
    for steps in (3, 100, 900):
        for _ in range(steps):
            arm = bandit.select()
            bandit.update(arm, -float(rng.pareto(1.5)) - (arm == "b"))
        bandit.save(tmp_path / "x.bandit")
        again = rb.Bandit.load(tmp_path / "x.bandit")
        assert again.policy == AdaKLProved()
        for one, two in zip(again._engine.state, bandit._engine.state, strict=True):
            assert one.tobytes() == two.tobytes()
        for loss in rng.pareto(1.5, 50).tolist():
            arm = bandit.select()
            assert again.select() == arm
            for one in (bandit, again):
                one.update(arm, -loss)
