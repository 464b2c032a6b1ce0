"""AdaR-UCB decides as the slow reference does, arm by arm.

Where the two differ, the data are judged with 70 digits. With B the precise indices of the two arms, and each relative to the
sum of the sizes of an index's terms:

- difference below 1e-40: an exact tie, proved. Rounding may then pick either arm; both are the algorithm's.
- difference below 1e-12: the arms are distinct, but double precision cannot tell. An index is a few sums of up to a few
  thousand terms and two square roots, so both programs are wrong by up to about 1e-13. Gaps between the two best
  indices are spread over some 1e-3 of their size, so of a million decisions one in a thousand suites should fall in here: two
  would be a defect.
- anything else is a wrong decision.
"""

import math

import numpy as np
import pytest

from helpers.amount import amount
from helpers.driving import Live
from helpers.rewards import KINDS
from references.slow_adar_ucb import C, SlowAdaRUCB
from robandit.policies import AdaRUCB
from robandit.policies.adar import layout, trimmed_index

TIE = 1e-40
INDISTINCT = 1e-12
CHUNKS = amount(4, 10)
RUNS = 20  # per chunk


def options(rng):
    """Parameters of a run: the defaults half of the time."""
    chosen = {
        "bonus": ["paper", "tight", 3.0, 0.01][rng.integers(4)],
        "solver": ["exact", "doubling"][rng.integers(2)],
        "tie": ["fewest", "lowest"][rng.integers(2)],
    }
    if rng.random() < 0.6:
        chosen["c"] = [0.05, 0.7, 2.0, 4.0, 11.0][rng.integers(5)]
        chosen["var_factor"] = [0.0, 0.5, 2.0, 7.0][rng.integers(4)]
        chosen["delta_exp"] = [0.3, 1.0, 2.0, 4.5][rng.integers(4)]
        if rng.random() < 0.5:
            chosen["guard"] = chosen["c"] * [1.0, 1.5, 4.0][rng.integers(3)]
    return chosen


def length(rng, arms, given, nonzero):
    """Rounds until all indices are finite, times one to three; both limited by the reference's time."""
    guard = given.get("guard", given.get("c", C)) * given.get("delta_exp", 3.0)
    forced = 10.0
    for _ in range(30):
        forced = arms * (guard * math.log(forced + 2) + 3) / nonzero
    return int(min(forced, 2000) + min(forced * rng.uniform(0.1, 2), 2000 / arms) + 30)


class Judge:
    """Decides what a difference between the arm chosen and the reference's is."""

    def __init__(self):
        self.decisions = self.ties = self.indistinct = 0

    def __call__(self, reference, tau, chosen, expected):
        self.decisions += 1
        if chosen == expected:
            return
        mine, its = reference.precise(chosen, tau), reference.precise(expected, tau)
        assert mine is not None, f"round {tau}: {chosen} chosen, but {expected} is to be explored, and {chosen} is not"
        assert its is not None, f"round {tau}: {chosen} explored before {expected}, or needlessly"
        gap = abs(mine.index - its.index) / max(mine.size, its.size)
        assert gap < INDISTINCT, f"round {tau}: {chosen} chosen, {expected} is better by {float(gap):.3g}"
        if gap < TIE:
            self.ties += 1
        else:
            self.indistinct += 1


def compare_estimates(live, reference, tau, rtol=1e-11):
    """Everything that the library says about its arms, against 70 digits."""
    said = live.describe()
    for arm in {0, live.arms - 1}:
        want = reference.precise(arm, tau)
        if want is None:
            assert said["index"][arm] == math.inf
            continue
        size = float(want.size)
        assert said["threshold"][arm] == pytest.approx(float(want.threshold), rel=rtol)
        assert abs(said["mean"][arm] - float(want.mean)) <= rtol * max(float(want.threshold), 1e-300)
        assert abs(said["index"][arm] - float(want.index)) <= rtol * size
        assert said["share_trimmed"][arm] == float(want.share_trimmed)
        level = reference.delta_exp * math.log(tau)
        spread = math.sqrt(live.s.arms[arm, trimmed_index.SPREAD] * level)
        # Relative to the spread itself (unless its own size is rounding): a mean that is large against it must not cancel.
        assert abs(spread - float(want.spread)) <= 1e-7 * float(want.spread) + 1e-12 * abs(float(want.mean))


@pytest.mark.independent("AdaRUCB")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_decision_is_the_references(chunk):
    judge = Judge()
    names = list(KINDS)
    for number in range(chunk * RUNS, (chunk + 1) * RUNS):
        rng = np.random.default_rng([20240521, number])
        kind = names[number % len(names)]
        arms = int(rng.choice([2, 3, 4, 5, 7, 20], p=[0.25, 0.2, 0.2, 0.15, 0.15, 0.05]))
        given = options(rng)
        nonzero = {"half zeros": 0.4, "mostly zeros": 0.01}.get(kind, 1.0)
        if nonzero < 0.1:
            given |= {"c": 0.7, "delta_exp": 1.0, "guard": 0.7}
            arms = min(arms, 3)
        rounds = length(rng, arms, given, nonzero)
        scales = np.ones(arms)
        if number % 3 == 0:
            scales[:] = 10.0 ** rng.uniform(-140, 140)
        elif number % 7 == 0:
            scales = 10.0 ** rng.uniform(-140, 140, arms)
        rewards = [scales[arm] * KINDS[kind](rng, arm, 2 * rounds) for arm in range(arms)]
        live = Live(AdaRUCB(**given), arms, 2 * rounds if number % 2 else None)
        reference = SlowAdaRUCB(arms, **given)
        used = [0] * arms
        for tau in range(1, rounds + 1):
            expected, _ = reference.choose(tau)
            arm = live.ask()
            if arm != expected and reference.terms(expected, tau) is None:
                pytest.fail(f"run {number} ({kind}), round {tau}: {arm} chosen, {expected} is to be explored")
            judge(reference, tau, arm, expected)
            first, second = rewards[arm][used[arm] : used[arm] + 2]
            used[arm] += 2
            live.tell(arm, first)
            assert live.ask() == arm
            live.tell(arm, second)
            reference.learn(arm, first, second)
        compare_estimates(live, reference, rounds + 1)
        assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert judge.decisions > 2000
    assert judge.indistinct <= 1


def test_the_suite_does_see_exact_ties_and_finds_them_exact():
    """A control: two arms with the same rewards in another order are equal to 70 digits, though not to 16."""
    judge = Judge()
    rng = np.random.default_rng(3)
    reference = SlowAdaRUCB(2)
    values = rng.standard_t(2, 60)
    for x, y in zip(values, values[::-1], strict=True):
        reference.learn(0, x, y)
    for x, y in zip(np.sort(values), rng.permutation(values), strict=True):
        reference.learn(1, x, y)
    judge(reference, 3, 0, 1)
    assert (judge.ties, judge.indistinct) == (1, 0)
    kept = int(np.argsort(np.abs(reference.x[1]))[10])
    reference.x[1][kept] *= 1 + 2**-48
    judge(reference, 3, 0, 1)
    assert (judge.ties, judge.indistinct) == (1, 1)
    reference.x[1][kept] += 1e-6
    with pytest.raises(AssertionError, match="is better by"):
        judge(reference, 3, 0, 1)


@pytest.mark.parametrize(
    ("seed", "kind", "given"),
    [(1, "losses, tail 1.5", {"bonus": "tight"}), (2, "student", {"solver": "doubling", "c": 2.0})],
)
def test_a_long_run_that_merges_many_times(seed, kind, given):
    arms, rounds = 3, 15_000
    rng = np.random.default_rng(seed)
    rewards = np.array([KINDS[kind](rng, arm, 2 * rounds) for arm in range(arms)])
    policy = AdaRUCB(**given)
    chosen = {}
    for horizon in (2 * rounds, None):
        live = Live(policy, arms, horizon)
        chosen[horizon] = live.replay(rewards, 2 * rounds)
        stored = live.s.counts[:, [layout.TOP, layout.BIG]]
        most = live.s.limits[0]
        pulls = np.bincount(chosen[horizon], minlength=arms)
        assert pulls.max() > 20 * stored.max()
        assert stored.max() < 1.6 * most + 32
        assert (live.s.arms[pulls > 8 * most, trimmed_index.MERGED] > 0).any()
        assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert (chosen[2 * rounds] == chosen[None]).all()
    # The reference on the run that was played: at 300 of its rounds.
    judge = Judge()
    arm_of = chosen[None][::2]
    assert (arm_of == chosen[None][1::2]).all()
    checked = set(rng.integers(1, rounds, 250)) | set(range(rounds - 50, rounds))
    reference = SlowAdaRUCB(arms, **given)
    place = np.zeros(arms, dtype=int)
    before = np.zeros((rounds, arms), dtype=int)
    for tau, arm in enumerate(arm_of):
        before[tau] = place
        place[arm] += 1
    for tau in sorted(int(t) for t in checked):
        for arm in range(arms):
            reference.x[arm] = rewards[arm, 0 : 2 * before[tau, arm] : 2]
            reference.y[arm] = rewards[arm, 1 : 2 * before[tau, arm] : 2]
        expected, _ = reference.choose(tau + 1)
        judge(reference, tau + 1, arm_of[tau], expected)
    assert judge.decisions > 280
    assert judge.indistinct == 0
