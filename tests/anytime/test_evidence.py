"""What a bandit with a cap remembers: the order of the decisions, pairs, errors under peeking, and its saved form."""

import msgspec
import numpy as np
import pytest
from scipy.stats import binom

from helpers.amount import amount
from robandit.anytime.capped import log_lower
from robandit.anytime.evidence import FIRST, Evidence, SavedEvidence
from robandit.errors import InvalidReward

RUNS = amount(60, 400)
LIMIT = binom.ppf(0.9999, RUNS, 0.05)  # false claims, if 5 % of the runs have one
NEEDED = np.log(20.0)


def claims(evidence):
    """Whether each arm of two is claimed to be lower: by means, and by pairs."""
    counted = evidence.counted()
    means = [log_lower(counted.weights[[i]], counted.weights[[1 - i]]).item() for i in (0, 1)]
    pairs = [counted.more_often(i, 1 - i) for i in (0, 1)]
    return np.array([means, pairs]) >= NEEDED


def played(seed, ratio, *, decisions=1600, every=80):
    """Two arms with log-normal costs. 20 % of the decisions are uniform, the others take the lower mean. Looks at any time."""
    rng = np.random.default_rng([seed, 7])
    evidence, sums, counts = Evidence(10.0, 2), [0.0, 0.0], [0, 0]
    found = np.zeros((2, 2), dtype=bool)
    for t in range(decisions):
        uniform = t < 2 or rng.random() < 0.2
        arm = int(rng.integers(2)) if uniform or not all(counts) else int(sums[1] * counts[0] < sums[0] * counts[1])
        cost = float(np.exp(rng.standard_normal())) * (ratio if arm else 1.0)
        sums[arm] += cost
        counts[arm] += 1
        evidence.observed(arm, cost)
        if (t + 1) % every == 0:
            found |= claims(evidence)
    return found


def welch_ever_rejects(seed, *, decisions=1600, every=20):
    """Whether Welch's test with level 5 % ever rejects, for arms in turns."""
    costs = np.exp(np.random.default_rng([seed, 7]).standard_normal((2, decisions // 2)))
    n = np.arange(20, decisions // 2, every // 2)
    means = np.cumsum(costs, axis=1)[:, n - 1] / n
    variances = (np.cumsum(costs**2, axis=1)[:, n - 1] / n - means**2) / (n - 1)
    return (np.abs(means[0] - means[1]) > 1.96 * np.sqrt(variances.sum(axis=0))).any()


def test_claims_under_the_null_are_rare():
    assert (np.sum([played(seed, 1.0) for seed in range(RUNS)], axis=0) <= LIMIT).all()


def test_a_test_that_is_not_made_for_looks_claims_often():
    """The control: the limit above is not met by Welch's test, on the same law."""
    assert np.sum([welch_ever_rejects(seed) for seed in range(RUNS)]) > LIMIT


def test_a_lower_mean_is_claimed():
    found = np.sum([played(seed, 0.5) for seed in range(20)], axis=0)
    assert (found[:, 1] >= 18).all()
    assert (found[:, 0] == 0).all()


def switched(seed):
    """Identical arms, whose costs are latencies: 400 decisions of one at 2 per second, then 400 of the other at 200 per second.

    Return whether a claim was ever made in 6 seconds after the switch: in the order of decisions, and in that of arrival.
    """
    rng = np.random.default_rng([seed, 41])
    number = np.arange(800)
    made = np.where(number < 400, number / 2.0, 200.0 + (number - 400) / 200.0)
    arm, cost = (number >= 400).astype(int).tolist(), np.minimum(np.exp(1.5 * rng.standard_normal(800)), 10.0)
    events = sorted(
        [(t, 0, i) for i, t in enumerate(made)]
        + [(t + c, 1, i) for i, (t, c) in enumerate(zip(made, cost, strict=True))]
    )
    ordered, arriving = Evidence(10.0, 2), Evidence(10.0, 2)
    ever = np.zeros((2, 2), dtype=bool)
    looks = iter([*(200.1 + np.arange(60) / 10.0), np.inf])
    look = next(looks)
    for time, ends, i in events:
        while time > look:
            ever[0] |= claims(ordered).any(axis=1)
            ever[1] |= claims(arriving).any(axis=1)
            look = next(looks)
        if ends:
            ordered.ended(arm[i], i, float(cost[i]))
            arriving.observed(arm[i], float(cost[i]))
        else:
            ordered.decided(arm[i], i)
    return ever


def test_late_rewards_count_in_the_order_of_the_decisions():
    runs = amount(12, 120)
    ordered, arriving = np.sum([switched(seed) for seed in range(runs)], axis=0)
    assert (ordered <= binom.ppf(0.9999, runs, 0.1)).all()  # two claims, 5 % each
    assert (arriving >= 0.8 * runs).all()  # the control: false claims in the order of arrival


def test_a_reward_waits_for_older_decisions_of_its_arm():
    evidence = Evidence(10.0, 2)
    for id in "abc":
        evidence.decided(0, id)
    evidence.ended(0, "b", 2.0)
    evidence.observed(0, 3.0)
    evidence.observed(1, 4.0)  # another arm does not wait
    assert [row.tolist() for row in evidence.counted().first] == [[], [4.0]]
    evidence.ended(0, "a", None)  # it will never come
    assert evidence.counted().first[0].tolist() == [2.0]
    evidence.ended(0, "c", 1.0)
    assert evidence.counted().first[0].tolist() == [2.0, 1.0, 3.0]
    assert evidence.counted().weights.sum(axis=1) == pytest.approx([3.0, 1.0])


def test_pairs_have_their_reference_value_and_leave_out_ties():
    evidence = Evidence(10.0, 2)
    for k in range(6):
        evidence.observed(0, 5.0 + k)
        evidence.observed(1, float(k))
    assert evidence.counted().more_often(1, 0) == pytest.approx(2.8982769374)
    for arm in (0, 1):
        evidence.observed(arm, 1.0)  # a tie
    evidence.observed(1, 0.0)  # without a partner
    assert evidence.counted().more_often(1, 0) == pytest.approx(2.8982769374)
    assert evidence.counted().more_often(0, 1) < 0.0


def test_only_the_first_rewards_are_kept():
    evidence = Evidence(10.0, 1)
    for k in range(FIRST + 5):
        evidence.observed(0, float(k % 7))
    counted = evidence.counted()
    assert len(counted.first[0]) == FIRST
    assert counted.weights.sum() == pytest.approx(FIRST + 5)


def test_a_negative_reward_is_refused():
    with pytest.raises(InvalidReward) as caught:
        Evidence(10.0, 1).check(-0.5)
    assert caught.value.parameter == "reward"
    assert "cap = 10" in caught.value.rule


def filled():
    evidence = Evidence(30.0, 2)
    for k in range(40):
        evidence.decided(k % 2, f"life-{k}")
        if k % 5:
            evidence.ended(k % 2, f"life-{k}", 1.0 + k)
    evidence.ended(0, "life-0", None)
    evidence.add_arm()
    return evidence


def encoded(evidence):
    return msgspec.msgpack.encode(evidence.save())


def test_saved_evidence_goes_on_with_the_same_bytes():
    one = filled()
    other = Evidence.load(msgspec.msgpack.decode(encoded(one), type=SavedEvidence), 3)
    assert encoded(other) == encoded(one)
    for evidence in (one, other):
        evidence.ended(1, "life-5", 3.0)
        evidence.decided(2, "life-41")
        evidence.observed(2, 2.0)
    assert encoded(other) == encoded(one)


@pytest.mark.parametrize(
    "change",
    [
        {"cap": 0.0},
        {"cap": float("nan")},
        {"weights": [b""] * 3},
        {"first": [b"1234567"] * 3},
        {"first": [np.array([-1.0]).tobytes()] * 3},
        {"first": [np.array([np.nan]).tobytes()] * 3},
        {"waiting": [[]] * 2},
        {"waiting": [[], [], [(False, 1.0)]]},
        {"waiting": [[], [], [(True, "life-1"), (False, -1.0)]]},
        {"waiting": [[], [], [(True, "life-1"), (False, "x")]]},
    ],
)
def test_damaged_evidence_is_noticed(change):
    saved = msgspec.structs.replace(filled().save(), **change)
    assert Evidence.load(saved, 3) is None


def test_evidence_of_another_number_of_arms_is_noticed():
    assert Evidence.load(filled().save(), 2) is None
