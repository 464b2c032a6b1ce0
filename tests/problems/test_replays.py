"""Replays of recorded rewards, compared with slow and obvious implementations."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys

import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import assert_invalid
from helpers.own_policies import STATES, Recorder
from robandit.errors import InvalidInput
from robandit.laws import Empirical, Weighted
from robandit.problems import InOrder, Logged, Problem, recorded_problem

module = sys.modules["robandit.simulate.simulation"]
MASK = 2**64 - 1


def words_of(seed, replication, arms):
    """The random bits of the arms in a replication, as `simulate` documents them."""
    spawned = np.random.SeedSequence(seed).spawn(replication + 1)[replication]
    return spawned.generate_state(4 * (arms + 1), np.uint64).reshape(arms + 1, 4)[1:].tolist()


def first_row(problem, seed, replication):
    return words_of(seed, replication, problem.arms)[0][1] % len(problem.rewards) if replication else 0


def in_order(problem, seed, replication):
    """A function from (arm, time) to a reward."""
    first, table = first_row(problem, seed, replication), problem.rewards.tolist()
    return lambda arm, t: table[(first + t) % len(table)][arm]


def hashed(row, seed):
    """SplitMix64 with Python integers."""
    z = (seed + 0x9E3779B97F4A7C15 * (row + 1)) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (((z ^ (z >> 31)) >> 11) + 1) * 2.0**-53


def kept_rows(problem, seed, replication):
    words = words_of(seed, replication, problem.arms)
    if problem.propensities is None:
        return [True] * len(problem.rewards)
    least = [problem.propensities[problem.actions == arm].min() for arm in range(problem.arms)]
    pairs = zip(problem.actions.tolist(), problem.propensities.tolist(), strict=True)
    return [hashed(row, words[arm][0]) <= least[arm] / chosen for row, (arm, chosen) in enumerate(pairs)]


def logged(problem, seed, replication):
    """Go through the log row by row, up to the next kept row with this arm."""
    kept = kept_rows(problem, seed, replication)
    actions, rewards = problem.actions.tolist(), problem.rewards.tolist()
    place = first_row(problem, seed, replication)

    def reward(arm, t):
        nonlocal place
        while actions[place % len(actions)] != arm or not kept[place % len(actions)]:
            place += 1
        place += 1
        return rewards[(place - 1) % len(actions)]

    return reward


def slow(problem):
    return in_order if isinstance(problem, InOrder) else logged


def recorded(problem, horizon, replications, seed, **given):
    """The (arm, reward) pairs that a recorder received, one list per replication."""
    STATES.clear()
    result = rb.simulate(Recorder(**given), problem, horizon, replications, seed, threads=1)
    tapes = [state.seen[: state.count[0]].tolist() for state in STATES if state.count[0] > 0]
    assert len(tapes) == replications
    return tapes, result


def ucb1(reward, arms, horizon):
    """UCB1 by its definition: the (arm, reward) pairs of its pulls."""
    pulls, sums, pairs = [0] * arms, [0.0] * arms, []
    for t in range(horizon):
        untried = [arm for arm in range(arms) if pulls[arm] == 0]
        indices = [
            s / n + math.sqrt(2.0 * math.log(t + 1) / n) if n else math.inf for s, n in zip(sums, pulls, strict=True)
        ]
        arm = untried[0] if untried else indices.index(max(indices))
        pairs.append((arm, reward(arm, t)))
        pulls[arm] += 1
        sums[arm] += pairs[-1][1]
    return pairs


def a_table(rows=60, arms=3, seed=1):
    rng = np.random.default_rng(seed)
    return InOrder(rng.standard_t(2.5, (rows, arms)) - np.arange(arms) * 0.3, [f"arm {i}" for i in range(arms)])


def a_log(rows=80, arms=3, seed=2, propensities=False):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(arms), rows) * 0.7 + 0.3 / arms
    actions = np.array([rng.choice(arms, p=each) for each in chances])
    rewards = rng.standard_t(2.5, rows) - actions * 0.3
    given = chances[np.arange(rows), actions] if propensities else None
    return Logged(actions, rewards, [f"arm {i}" for i in range(arms)], given)


REPLAYS = [
    a_table(),
    a_log(),
    a_log(propensities=True),
    Logged([2, 0, 0, 0, 1], [1.0, 2.0, 3.0, 4.0, 5.0], list("abc")),
    a_table(rows=1, arms=2),
]


# --- against slow ones -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", REPLAYS, ids=str)
@pytest.mark.parametrize("chunk", [1 << 16, 7], ids=["one chunk", "chunks"])
def test_rewards_are_those_of_the_slow_replay(problem, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    horizon = len(problem.rewards) * (1 if isinstance(problem, InOrder) else 3)
    for given in ({"stride": 1}, {"stride": 2}, {"random": 1}):
        tapes, _ = recorded(problem, horizon, 4, seed=9, **given)
        for replication, seen in enumerate(tapes):
            reward = slow(problem)(problem, 9, replication)
            assert seen == [[arm, reward(int(arm), t)] for t, (arm, _) in enumerate(seen)]


@pytest.mark.parametrize("problem", REPLAYS[:3], ids=str)
def test_a_policy_that_learns_decides_as_in_the_slow_replay(problem):
    horizon = 60
    result = rb.simulate(rb.UCB1(), problem, horizon, 4, seed=3, checkpoints=range(1, horizon + 1))
    for replication in range(4):
        pairs = ucb1(slow(problem)(problem, 3, replication), problem.arms, horizon)
        best, missed, regret, gaps = slow(problem)(problem, 3, replication), 0.0, [], problem.gaps.tolist()
        for t, (arm, reward) in enumerate(pairs):
            missed += best(problem.best_arm, t) - reward if isinstance(problem, InOrder) else gaps[arm]
            regret.append(missed)
        pulls = np.bincount([arm for arm, _ in pairs], minlength=problem.arms)
        assert result.pulls[0, replication].tolist() == pulls.tolist()
        if isinstance(problem, InOrder):
            assert result.regret[0, replication].tolist() == regret
        else:
            np.testing.assert_allclose(result.regret[0, replication], regret, rtol=1e-13)
    assert len({row.tobytes() for row in result.pulls[0]}) > 1, "replications must differ"


def test_recorded_rewards_are_drawn_as_from_their_law():
    rng = np.random.default_rng(0)
    samples = {"a": rng.standard_t(2, 50), "b": rng.standard_t(2, 80) - 0.5}
    problem = recorded_problem(samples)
    assert problem == Problem([Empirical(samples["a"]), Empirical(samples["b"])], ["a", "b"])
    tapes, result = recorded(problem, 40, 2, seed=6)
    for replication, seen in enumerate(tapes):
        # xoshiro256++ is checked in test_simulate; here its first word is enough: an index into the sample
        for arm, words in enumerate(words_of(6, replication, 2)):
            total = (words[0] + words[3]) & MASK
            word = (((total << 23 | total >> 41) & MASK) + words[0]) & MASK
            sample = list(samples.values())[arm]
            index = int((1.0 - ((word >> 11) + 1) * 2.0**-53) * len(sample))
            assert next(r for a, r in seen if a == arm) == sample[index]
    np.testing.assert_allclose(result.regret[0, :, -1], 20 * problem.gaps.sum(), rtol=1e-14)


# --- regret ----------------------------------------------------------------------------------------------------------


def test_the_regret_of_the_best_arm_is_exactly_zero():
    rng = np.random.default_rng(4)
    problem = InOrder(rng.standard_cauchy((500, 3)) * 1e5)
    result = rb.simulate(rb.Oracle(arm=problem.best_arm), problem, 500, 3, seed=1)
    assert not result.regret.any()
    worst = rb.simulate(rb.Oracle(arm=int(problem.means.argmin())), problem, 500, 1, seed=1)
    assert worst.regret[0, 0, -1] == pytest.approx(500 * problem.gaps.max(), rel=1e-9)


def test_realised_regret_can_be_negative():
    problem = InOrder([[3.0, 0.0], [0.0, 2.0], [0.0, 2.0], [3.0, 0.0]])
    result = rb.simulate(rb.Oracle(arm=1), problem, 3, 1, seed=0, checkpoints=[1, 2, 3])
    assert result.regret[0, 0].tolist() == [3.0, 1.0, -1.0]


def test_threads_and_other_policies_do_not_matter():
    for problem in REPLAYS[:3]:
        alone = rb.simulate(rb.UCB1(), problem, 50, 6, seed=2, threads=1)
        together = rb.simulate([rb.Uniform(), rb.UCB1()], problem, 50, 6, seed=2, threads=2)
        assert alone.regret[0].tobytes() == together.regret[1].tobytes()
        assert alone.pulls[0].tobytes() == together.pulls[1].tobytes()
        later = rb.simulate(rb.UCB1(), problem, 50, 2, seed=2, first=4)
        assert later.regret[0].tobytes() == alone.regret[0, 4:].tobytes()


def test_no_horizon_is_longer_than_a_table():
    assert_invalid(lambda: rb.simulate(rb.UCB1(), a_table(), 61, 1), "horizon", "at most 60, the rows of the record")
    assert rb.simulate(rb.UCB1(), a_log(), 500, 1, seed=0).pulls.sum() == 500


# --- thinning --------------------------------------------------------------------------------------------------------


def confounded(rows, seed):
    """A log where the arm depends on the hour, which changes rewards: arm 1 is rarer in the better hours."""
    rng = np.random.default_rng(seed)
    good = rng.random(rows) < 0.5
    chance = np.where(good, 0.1, 0.6)  # of arm 1
    actions = (rng.random(rows) < chance).astype(int)
    rewards = np.where(good, 1.0, -1.0) + 0.2 * actions + rng.normal(size=rows)
    return actions, rewards, np.where(actions == 1, chance, 1.0 - chance)


def test_thinning_undoes_the_choice_of_good_hours():
    """True means are 0 and 0.2. With 6,000 rows, arm 1 keeps about 600 of them, each with variance 2."""
    actions, rewards, propensities = confounded(6000, seed=8)
    thinned = Logged(actions, rewards, ["a", "b"], propensities)
    plain = Logged(actions, rewards, ["a", "b"])
    assert thinned.fewest == pytest.approx(600, abs=5 * math.sqrt(600))
    for problem, fair in ((thinned, True), (plain, False)):
        tapes, _ = recorded(problem, 1000, 6, seed=1, stride=1)
        got = np.mean([[np.mean([r for a, r in seen if a == arm]) for arm in (0, 1)] for seen in tapes], axis=0)
        # Replications share rows, so the error of their mean is at most that of one replication: of 500 rows of each arm.
        error = 4.0 * math.sqrt(2.0 / 500)
        assert (np.abs(got - [0.0, 0.2]) < error).all() == fair
        assert (np.abs(problem.means - [0.0, 0.2]) < error).all() == fair


def test_laws_weigh_by_propensity():
    problem = Logged([0, 0, 1, 0], [1.0, 5.0, 2.0, 3.0], ["a", "b"], [0.5, 0.25, 0.9, 0.5])
    assert problem.laws[0] == Weighted([1.0, 5.0, 3.0], [0.5, 1.0, 0.5])
    assert problem.means[0] == pytest.approx((1 / 0.5 + 5 / 0.25 + 3 / 0.5) / (1 / 0.5 + 1 / 0.25 + 1 / 0.5))
    assert problem.laws[1] == Empirical([2.0])
    assert problem.fewest == 1


def test_every_arm_keeps_a_row():
    """All rows of an arm but one are almost never kept. That row is found in every replication."""
    actions = [0] * 50 + [1] * 50
    propensities = [1e-9] + [1.0] * 49 + [1.0] * 50
    problem = Logged(actions, np.arange(100.0), ["a", "b"], propensities)
    tapes, _ = recorded(problem, 20, 5, seed=3, stride=1)
    assert all(reward == 0.0 for seen in tapes for arm, reward in seen if arm == 0)


# --- costs that are minimised ----------------------------------------------------------------------------------------

COSTS = [
    lambda sign, **more: InOrder(sign * a_table().rewards, a_table().names, **more),
    lambda sign, **more: Logged(a_log().actions, sign * a_log().rewards, a_log().names, **more),
    lambda sign, **more: Logged(
        a_log().actions, sign * a_log().rewards, a_log().names, a_log(propensities=True).propensities, **more
    ),
    lambda sign, **more: InOrder(sign * np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 4.0]]), **more),
    lambda sign, **more: recorded_problem({"a": sign * np.array([0.0, 2.0, 7.0]), "b": [sign * 1.0]}, **more),
]


@pytest.mark.parametrize("make", COSTS)
def test_a_replay_of_costs_plays_as_one_of_negated_costs(make):
    costs, rewards, wrong = make(1.0, minimize=True), make(-1.0), make(1.0)
    horizon = 3 if costs.arms == 2 else 60
    played, expected, other = (
        rb.simulate(rb.UCB1(), problem, horizon, 4, seed=3, checkpoints=range(1, horizon + 1))
        for problem in (costs, rewards, wrong)
    )
    assert played.regret.tobytes() == expected.regret.tobytes()
    assert played.pulls.tobytes() == expected.pulls.tobytes()
    assert played.regret.tobytes() != other.regret.tobytes(), "the negative control"
    assert costs.means.tolist() == (-rewards.means).tolist() == wrong.means.tolist()
    assert costs.gaps.tolist() == rewards.gaps.tolist()
    assert costs.best_arm == rewards.best_arm == int(np.argmin(costs.means))
    assert costs.assumption().holds == rewards.assumption().holds
    assert len({costs.fingerprint, rewards.fingerprint, wrong.fingerprint}) == 3
    assert costs != wrong


@pytest.mark.parametrize("make", COSTS)
def test_a_replay_of_costs_is_copied_and_written_whole(make):
    costs = make(1.0, minimize=True)
    data = json.loads(json.dumps(costs.to_dict(), allow_nan=False))
    assert data["minimize"] is True
    assert "minimize" not in make(1.0).to_dict()
    for other in (copy.deepcopy(costs), pickle.loads(pickle.dumps(costs)), Problem.from_dict(data)):
        assert other == costs
        assert hash(other) == hash(costs)
        assert repr(other) == repr(costs)
        assert other.minimize
    if isinstance(costs, InOrder) and costs.rows < 5:
        assert repr(costs).endswith("minimize=True)")
        assert eval(repr(costs)) == costs


@pytest.mark.parametrize("make", COSTS)
def test_the_sign_of_a_replay_must_be_true_or_false(make):
    assert_invalid(lambda: make(1.0, minimize="yes"), "minimize", "True or False")
    data = make(1.0).to_dict() | {"minimize": 1}
    assert_invalid(lambda: Problem.from_dict(data), "minimize", "True or False")


# --- values ----------------------------------------------------------------------------------------------------------

LARGE = [a_table(rows=900), a_log(rows=1500), a_log(rows=1500, propensities=True)]


@cases("problem", [*REPLAYS, *LARGE])
def test_copies_pickles_and_json_are_equal(problem):
    data = json.loads(json.dumps(problem.to_dict(), allow_nan=False))
    for other in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem)), Problem.from_dict(data)):
        assert type(other) is type(problem)
        assert other == problem
        assert hash(other) == hash(problem)
        assert repr(other) == repr(problem)
        assert other.to_dict() == problem.to_dict()
        with pytest.raises(ValueError, match="read-only"):
            other.rewards[0] = 1.0
        with pytest.raises(AttributeError):
            other.rewards = problem.rewards
    assert problem != Problem(problem.laws, problem.names)


def test_other_data_are_another_problem():
    table = [[1.0, 2.0], [3.0, 4.0]]
    assert InOrder(table) != InOrder(table[::-1])
    assert InOrder(table) != InOrder(table, names=["a", "b"])
    log = Logged([0, 1, 0], [1.0, 2.0, 3.0], ["a", "b"])
    assert log != Logged([1, 0, 0], [2.0, 1.0, 3.0], ["a", "b"]), "the laws are the same, the order is not"
    assert log != Logged([0, 1, 0], [1.0, 2.0, 3.0], ["a", "b"], [0.5, 0.5, 0.5])
    assert InOrder(table) != table


def test_the_data_are_copied():
    table = np.ones((3, 2))
    problem = InOrder(table)
    table[:] = 7.0
    assert problem.rewards.max() == problem.means.max() == 1.0


def test_long_data_are_packed_and_short_ones_can_be_read():
    short, long = (InOrder(np.arange(2.0 * rows).reshape(-1, 2)) for rows in (500, 501))
    assert short.to_dict()["rewards"] == list(range(1000))
    assert len(long.to_dict()["rewards"]["float64"]) == 4 * math.ceil(8 * 1002 / 3)
    text = json.dumps(a_log(rows=3000, propensities=True).to_dict())
    assert len(text) < 3000 * (4 + 8 + 8) * 4 / 3 + 300, "each number once"


def test_repr():
    assert eval(repr(InOrder([[1.0, 2.0]], ["a", "b"]))) == InOrder([[1.0, 2.0]], ["a", "b"])
    log = Logged([0, 1], [1.0, 2.0], ["a", "b"], [0.5, 0.25])
    assert eval(repr(log)) == log
    assert repr(LARGE[0]) == "<InOrder: 900 rows of 3 arms>"
    assert repr(LARGE[2]) == "<Logged: 1500 rows of 3 arms with propensities>"


def test_policies_are_informed_by_a_replay():
    problem = a_table()
    assert rb.Oracle().informed_by(problem).arm == problem.best_arm
    informed = rb.RobustUCB().informed_by(problem, eps=0.5)
    assert informed.u == pytest.approx(problem.u(0.5))


# --- bad input -------------------------------------------------------------------------------------------------------


TABLE = "a table with one row per time and one column per arm"
SIZE = "0 or a number whose size is from 1e-130 to 1e+150"
NUMBERS = "an array of numbers"
AB = ["a", "b"]


@cases(
    ("make", "parameter", "rule"),
    [
        (lambda: InOrder([[1.0, 2.0], [3.0, math.nan]]), "rewards[1, 1]", SIZE),
        (lambda: InOrder([[1.0, 2.0], [-math.inf, 1.0]]), "rewards[1, 0]", SIZE),
        (lambda: InOrder([[1.0, 2.0], [3.0, 1e151]]), "rewards[1, 1]", SIZE),
        (lambda: InOrder([[1.0], [2.0]]), "laws", "at least 2 laws, one for each arm"),
        (lambda: InOrder([1.0, 2.0]), "rewards", f"{TABLE} (its shape is (2,))"),
        (lambda: InOrder(np.zeros((0, 2))), "rewards", f"{TABLE} (its shape is (0, 2))"),
        (lambda: InOrder([[1.0, 2.0], [3.0]]), "rewards", f"{NUMBERS} (its rows differ in length)"),
        (lambda: InOrder([["a", "b"]]), "rewards", NUMBERS),
        (lambda: InOrder([[1.0, None]]), "rewards", NUMBERS),
        (lambda: InOrder([[1.0, 2.0]], names=["a"]), "names", "2 strings, one for each arm"),
        (lambda: InOrder([[1.0, 2.0]], names=["a", "a"]), "names[1]", "a string that differs"),
        (lambda: Logged([0, 1], [1.0, math.nan], AB), "rewards[1]", SIZE),
        (lambda: Logged([0, 1], [1.0, -1e200], AB), "rewards[1]", SIZE),
        (lambda: Logged([0, 1], [0.0, -1e-200], AB), "rewards[1]", SIZE),
        (lambda: Logged([0, 2], [1.0, 2.0], AB), "actions[1]", "an integer from 0 to 1"),
        (lambda: Logged([0, -1], [1.0, 2.0], AB), "actions[1]", "an integer from 0 to 1"),
        (lambda: Logged([0, 0.5], [1.0, 2.0], AB), "actions[1]", "an integer from 0 to 1"),
        (lambda: Logged([0, math.nan], [1.0, 2.0], AB), "actions[1]", "an integer from 0 to 1"),
        (lambda: Logged([0, 1, 1], [1.0, 2.0], AB), "actions", "2 numbers, one for each reward (its shape is (3,))"),
        (lambda: Logged([0, 0], [1.0, 2.0], ["a"]), "laws", "at least 2 laws, one for each arm"),
        (lambda: Logged([0, 1], [1.0, 2.0], "ab"), "names", "a sequence of strings"),
        (lambda: Logged([0, 1], [1.0, 2.0], AB, [0.5, 0.0]), "propensities[1]", "a probability > 0 and <= 1"),
        (lambda: Logged([0, 1], [1.0, 2.0], AB, [0.5, 1.5]), "propensities[1]", "a probability > 0 and <= 1"),
        (lambda: Logged([0, 1], [1.0, 2.0], AB, [0.5, math.nan]), "propensities[1]", "a probability > 0 and <= 1"),
        (lambda: Logged([0, 1], [1.0, 2.0], AB, [0.5]), "propensities", "2 numbers, one for each reward"),
        (lambda: recorded_problem([[1.0], [2.0]]), "samples", "a mapping from each arm's name to its rewards"),
        (lambda: recorded_problem({"a": [1.0]}), "laws", "at least 2 laws, one for each arm"),
        (lambda: recorded_problem({"a": [1.0], "b": []}), "samples['b']", "not empty (its shape is (0,))"),
        (lambda: recorded_problem({"a": [1.0], "b": [2.0, math.inf]}), "samples['b'][1]", SIZE),
        (lambda: recorded_problem({"a": [1.0], "b": [1e160]}), "samples['b'][0]", SIZE),
        (lambda: Problem.from_dict({"replay": "Backwards"}), "replay", "one of 'InOrder', 'Logged'"),
        (lambda: Problem.from_dict({"replay": ["InOrder"]}), "replay", "one of 'InOrder', 'Logged'"),
        (lambda: Problem.from_dict({"replay": "InOrder", "names": "ab", "rewards": [1.0]}), "names", "a sequence"),
        (
            lambda: Problem.from_dict({"replay": "InOrder", "names": AB, "rewards": {"float64": "?"}}),
            "rewards",
            "base64",
        ),
        (
            lambda: Problem.from_dict({"replay": "InOrder", "names": AB, "rewards": {"float64": "AAAA"}}),
            "rewards",
            "base64",
        ),
    ],
)
def test_invalid_records_are_rejected(make, parameter, rule):
    assert_invalid(make, parameter, rule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Logged([0, 0], [1.0, 2.0], AB), "arm 'b' was never played in the log"),
        (lambda: InOrder([[1.0, math.nan], [math.inf, 1.0]]), "2 of 4 rewards break this rule: drop such rows"),
        (
            lambda: Problem.from_dict({"replay": "InOrder", "names": ["a"]}),
            "has minimize, names, rewards; this one has names",
        ),
        (lambda: Problem.from_dict({"replay": "InOrder", "names": AB, "rewards": [1.0]}), "do not fill a table"),
        (lambda: Problem.from_dict({"replay": "InOrder", "names": [], "rewards": [1.0]}), "do not fill a table"),
    ],
)
def test_records_that_do_not_fit_together_are_rejected(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
