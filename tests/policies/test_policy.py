"""Policies as values: parameters, JSON, identity; users' own policies; hooks in plain Python."""

import dataclasses
import json
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from robandit import problems
from robandit.errors import InvalidInput, KernelError
from robandit.kernel.random import streams, uniform
from robandit.live.engine import SIGNED_COLUMNS
from robandit.policies import MARS, RMMUCB, UCB1, AdaRUCB, AdaTINF, Policy, all_policies
from robandit.validation import within

NOT_NUMBERS = [math.nan, math.inf, -math.inf, True, False, "1", None, [1.0], 1j]


def rejected(make, *words):
    """Check that making it is rejected, and that the message contains the words."""
    with pytest.raises(InvalidInput) as caught:
        make()
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0.0, -1.0, -1e-300])
def test_numbers_that_must_be_positive(value):
    rejected(lambda: UCB1(scale=value), "UCB1: scale", repr(value), "a finite number > 0")
    for name in ("c", "delta_exp"):
        rejected(lambda: AdaRUCB(**{name: value}), f"AdaRUCB: {name}", repr(value), "a finite number > 0")  # noqa: B023
    if not isinstance(value, str):
        rejected(lambda: AdaRUCB(bonus=value), "AdaRUCB: bonus", repr(value), "a finite number > 0")


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1.0, -1e-300])
def test_numbers_that_may_be_zero(value):
    rejected(lambda: AdaRUCB(var_factor=value), "AdaRUCB: var_factor", repr(value), "a finite number >= 0")


@pytest.mark.parametrize("value", [v for v in NOT_NUMBERS if v is not None] + [0.0, -1.0, 4.0, 5.82])
def test_the_guard_is_at_least_c(value):
    rejected(lambda: AdaRUCB(guard=value), "AdaRUCB: guard", repr(value), "a finite number >= 5.82843")


def test_words():
    rejected(lambda: AdaRUCB(bonus="loose"), "AdaRUCB: bonus = 'loose'", "'paper'", "'tight'", "number")
    rejected(lambda: AdaRUCB(bonus="10"), "AdaRUCB: bonus = '10'")
    for value in ("bisection", "", None, 1, True, math.nan, ["exact"]):
        rejected(lambda: AdaRUCB(solver=value), f"AdaRUCB: solver = {value!r}", "'exact'", "'doubling'")  # noqa: B023
        rejected(lambda: AdaRUCB(tie=value), f"AdaRUCB: tie = {value!r}", "'fewest'", "'lowest'")  # noqa: B023


def test_values_at_the_ends_of_their_domains():
    AdaRUCB(c=1, guard=1, bonus=1, var_factor=0, delta_exp=1e-9)
    AdaRUCB(c=1e-300)
    AdaRUCB(guard=AdaRUCB().c)
    UCB1(scale=np.float64(2.0))


def test_parameters_are_named():
    with pytest.raises(TypeError):
        UCB1(2.0)
    with pytest.raises(TypeError):
        AdaRUCB(epsilon=0.5)


@pytest.mark.parametrize(
    "policy",
    [
        UCB1(),
        UCB1(scale=2.5),
        AdaRUCB(),
        AdaRUCB(c=7.0, guard=8.0, bonus=3.5, solver="doubling", tie="lowest"),
        AdaRUCB(bonus="tight"),
    ],
)
def test_json_and_back(policy):
    data = json.loads(json.dumps(policy.to_dict()))
    assert data["policy"] == type(policy).__name__
    again = Policy.from_dict(data)
    assert type(again) is type(policy)
    assert again == policy
    assert hash(again) == hash(policy)
    assert repr(again) == repr(policy)
    assert again.params() == policy.params()
    assert eval(repr(policy), {"UCB1": UCB1, "AdaRUCB": AdaRUCB}) == policy


def test_defaults_may_be_left_out():
    assert Policy.from_dict({"policy": "AdaRUCB"}) == AdaRUCB()
    assert Policy.from_dict({"policy": "AdaRUCB", "bonus": "tight"}) == AdaRUCB(bonus="tight")


def test_equality_is_of_class_and_parameters():
    assert AdaRUCB(bonus="tight") != AdaRUCB()
    assert UCB1() != AdaRUCB()
    assert len({AdaRUCB(), AdaRUCB(), AdaRUCB(c=6.0), UCB1()}) == 3


def test_immutable():
    policy = AdaRUCB()
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.c = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        del policy.c
    assert policy == AdaRUCB()


@pytest.mark.parametrize("tag", ["UCB7", None, ""])
def test_an_unknown_policy(tag):
    rejected(lambda: Policy.from_dict({"policy": tag}), f"policy {tag!r} is not known here", "AdaRUCB", "UCB1")


def test_an_unknown_policy_of_a_user():
    words = ("policy 'some.module:Own' is not known here", "import some.module", "--import some.module")
    rejected(lambda: Policy.from_dict({"policy": "some.module:Own"}), *words)
    rejected(lambda: Policy.from_dict({}), "policy None is not known here")


def test_an_unknown_parameter():
    rejected(lambda: Policy.from_dict({"policy": "UCB1", "skale": 1.0}), "UCB1 has no parameter 'skale': it has scale")


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1.0", -1.0, None, [1.0]])
def test_a_bad_value_in_json(value):
    rejected(lambda: Policy.from_dict({"policy": "UCB1", "scale": value}), "UCB1", "scale")
    rejected(lambda: Policy.from_dict({"policy": "AdaRUCB", "c": value}), "AdaRUCB", "c")
    rejected(lambda: Policy.from_dict({"policy": "AdaRUCB", "solver": value}), "AdaRUCB", "solver")


class Shares(NamedTuple):
    logs: np.ndarray
    shares: np.ndarray
    rng: np.ndarray


def fill(s):
    top = s.logs[0]
    for i in range(s.logs.shape[0]):
        top = max(top, s.logs[i])
    total = 0.0
    for i in range(s.logs.shape[0]):
        s.shares[i] = math.exp(s.logs[i] - top)
        total += s.shares[i]
    for i in range(s.logs.shape[0]):
        s.shares[i] /= total


class Weights(Policy):
    """Exponential weights with importance weighting, as a user would write it."""

    rate: float = 0.05

    weighted = True
    columns = ("share",)

    def validate(self):
        within(self.rate, "rate", 0.0, 1.0, open_low=True, open_high=True, owner="Weights")

    def init(self, arms, horizon):
        return Shares(np.zeros(arms), np.full(arms, 1.0 / arms), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p, s):
        left = uniform(s.rng)
        for arm in range(s.shares.shape[0] - 1):
            left -= s.shares[arm]
            if left <= 0.0:
                return arm
        return s.shares.shape[0] - 1

    @staticmethod
    def take(p, s, arm):
        return s.shares[arm]

    @staticmethod
    def update(p, s, arm, reward, mark):
        s.logs[arm] += p.rate * reward / mark
        fill(s)

    @staticmethod
    def estimate(p, s, arm, out):
        out[0] = s.shares[arm]


class Counts(NamedTuple):
    sums: np.ndarray
    pulls: np.ndarray


class Greedy(Policy):
    """The shortest policy: the best mean so far."""

    first: int = 2

    def init(self, arms, horizon):
        return Counts(np.zeros(arms), np.zeros(arms, dtype=np.int64))

    @staticmethod
    def select(p, s):
        best = 0
        for arm in range(s.sums.shape[0]):
            if s.pulls[arm] < p.first:
                return arm
            if s.sums[arm] / s.pulls[arm] > s.sums[best] / s.pulls[best]:
                best = arm
        return best

    @staticmethod
    def update(p, s, arm, reward):
        s.sums[arm] += reward
        s.pulls[arm] += 1


@pytest.mark.parametrize("runner", [Live, Plain])
def test_a_weighted_policy_of_a_user(runner):
    policy = Weights(rate=0.02)
    live = runner(policy, 3, state=policy.start(3, None, streams(np.random.SeedSequence(5), 1)[0]))
    rng = np.random.default_rng(0)
    logs = np.zeros(3)
    chosen = []
    with np.errstate(over="ignore"):  # 64-bit words wrap around; uncompiled NumPy warns about it
        for _ in range(600):
            arm = live.ask()
            shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
            mark = live.issue(arm)
            assert mark == pytest.approx(shares[arm], rel=1e-12)
            reward = float(rng.random() < (0.2, 0.8, 0.4)[arm])
            live.late(arm, reward, mark)
            logs[arm] += 0.02 * reward / mark
            chosen.append(arm)
    assert live.describe()["share"] == pytest.approx(np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum())
    assert np.bincount(chosen).argmax() == 1
    live.forget(0, 0.3)  # nothing to undo


@pytest.mark.parametrize("runner", [Live, Plain])
def test_an_update_without_mark(runner):
    live = runner(Greedy(first=3), 2)
    chosen = []
    for reward in (0.0, 1.0, 0.0, 2.0, 2.0, 2.0, 5.0, 5.0):
        chosen.append(live.ask())
        live.tell(chosen[-1], reward)
    assert chosen == [0, 0, 0, 1, 1, 1, 1, 1]
    assert live.issue(0) == 1.0
    assert live.s.sums.tolist() == [1.0, 16.0]


def test_a_users_policy_is_a_value_too():
    assert Weights().label == "Weights"
    assert Weights.tag().endswith(":Weights")
    assert ":" in Weights.tag()
    assert Policy.from_dict(Weights(rate=0.5).to_dict()) == Weights(rate=0.5)
    rejected(lambda: Weights(rate=1.0), "Weights: rate = 1.0", "> 0 and < 1")
    assert Greedy(first=4).params().first == 4
    assert Greedy().counters(Greedy().init(2, None)) == {}


@pytest.mark.parametrize("name", ["init", "select", "update"])
def test_hooks_are_declared_and_documented(name):
    hook = getattr(Policy, name)
    assert hook.__isabstractmethod__
    assert "It is called" in hook.__doc__
    assert not getattr(getattr(UCB1, name), "__isabstractmethod__", False)


def test_missing_hooks_are_named():
    class Nothing(Policy):
        pass

    rejected(lambda: Nothing().init(2, None), "Nothing has no init(self, arms, horizon)")
    rejected(lambda: Nothing().hooks("select"), "Nothing has no select: write it as a static method, select(p, s)")
    rejected(lambda: Nothing().hooks("update"), "Nothing has no update")
    rejected(lambda: Nothing().grow(None), "Nothing says that its state is full")
    assert Nothing().params()._fields == ("nothing",)


class Allocates(Greedy):
    @staticmethod
    def select(p, s):
        return int(np.zeros(3).argmax())


def test_a_hook_that_allocates_is_rejected_with_a_reason():
    with pytest.raises(KernelError, match="allocates memory"):
        Live(Allocates(), 2).ask()


@pytest.mark.parametrize("horizon", [1600, None])
@pytest.mark.parametrize(
    "policy", [AdaRUCB(c=1.5), AdaRUCB(c=1.0, bonus="tight", solver="doubling", tie="lowest"), UCB1()]
)
def test_plain_python_is_faithful(policy, horizon):
    for kind in ("losses, tail 1.5", "half zeros", "integers", "narrow"):
        rng = np.random.default_rng(3)
        rewards = np.array([KINDS[kind](rng, arm, 1600) for arm in range(4)])
        compiled, plain = Live(policy, 4, horizon), Plain(policy, 4, horizon)
        assert (compiled.replay(rewards, 1600) == plain.replay(rewards, 1600)).all()
        for mine, its in zip(compiled.s, plain.s, strict=True):
            assert mine.shape == its.shape
            assert np.allclose(mine, its, rtol=1e-9, atol=1e-12 * np.abs(rewards).max() ** 2, equal_nan=True)


@pytest.mark.parametrize("value", [10**400, -(10**400), np.array([1.0, 2.0]), [1.0], 1j])
def test_values_that_are_no_finite_numbers(value):
    for make in (lambda: UCB1(scale=value), lambda: AdaRUCB(bonus=value), lambda: AdaRUCB(c=value)):
        with raises(InvalidInput, rule="a finite number"):
            make()


def test_numpy_scalars_become_python_numbers():
    for scale in (np.float32(2.0), np.array(2.0), Fraction(2), np.int64(2)):
        policy = UCB1(scale=scale)
        assert policy == UCB1(scale=2.0)
        assert type(policy.scale) in (int, float)


class Worded(UCB1):
    word: str = "small"

    def validate(self):
        if self.word not in ("small", "large"):  # a ValueError if it is an array
            raise InvalidInput("another word")


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), np.array(["small", "large"])], ids=repr)
def test_a_parameter_is_a_value(value):
    for make in (lambda: Worded(word=value), lambda: Greedy(first=value)):
        with pytest.raises(InvalidInput, match="must be a number, a word, None or a tuple") as caught:
            make()
        assert caught.value.parameter in ("word", "first")


@pytest.mark.parametrize("data", [None, 1.0, "UCB1", ["UCB1"], [("policy", "UCB1")]], ids=repr)
def test_data_that_describe_no_policy(data):
    with raises(InvalidInput, parameter="data", rule='an object with the class name under "policy"'):
        Policy.from_dict(data)


@pytest.mark.parametrize("policy", [UCB1(), AdaTINF(), MARS(), RMMUCB()], ids=repr)
@pytest.mark.parametrize("horizon", ["10", 0, -1, 1.5, math.inf, math.nan, True, [10], np.zeros(2)], ids=repr)
def test_a_horizon_is_an_integer(policy, horizon):
    with raises(InvalidInput, parameter="horizon", rule="an integer from 1 to 2^53") as caught:
        policy.prepared(horizon)
    assert (caught.value.parameter, caught.value.rule) == ("horizon", "an integer from 1 to 2^53")
    assert policy.prepared(np.int64(10)) == policy.prepared(10)


@pytest.mark.parametrize("tag", [[], {}, None, 7])
def test_tags_that_are_not_strings(tag):
    with pytest.raises(InvalidInput, match="is not known here"):
        Policy.from_dict({"policy": tag})


def test_a_list_becomes_a_tuple():
    class Listed(UCB1):
        weights: tuple[float, ...] = ()

    policy = Listed(weights=[1.0, 2.0])
    assert policy == Listed(weights=(1.0, 2.0))
    assert hash(policy) == hash(Listed(weights=(1.0, 2.0)))


def test_an_integer_of_thousands_of_digits_is_rejected():
    with pytest.raises(InvalidInput, match="horizon = a value that is too large to print"):
        UCB1().prepared(10**5000)


# Every column of every policy is in one of these two sets.
SIGNED = {"mean", "quantile", "index"}
UNSIGNED = {"probability", "reach", "scale", "share_saturated", "share_trimmed", "stored", "threshold", "variance"}
UNSIGNED |= {"divergence", "width"}


def test_every_column_has_a_deliberate_sign():
    columns = set()
    for policy in all_policies():
        signed = set(policy.columns) & set(SIGNED_COLUMNS)
        assert signed == set(policy.columns) & SIGNED, policy
        assert set(policy.columns) - signed <= UNSIGNED, policy
        columns |= set(policy.columns)
    assert columns == SIGNED | UNSIGNED


@pytest.mark.parametrize("policy", [p for p in all_policies() if p.columns], ids=str)
def test_only_signed_columns_follow_the_sign_of_rewards(policy):
    problem = problems.gaussian(means=[-100.0, -105.0], sd=1.0)
    ends = {name: end for name, end in (("lower", -120.0), ("upper", 0.0)) if name in policy.facts.knows}
    live = Plain(dataclasses.replace(policy, **ends).informed_by(problem), 2, 200)
    live.s = live.policy.start(2, 200, np.arange(1, 5, dtype=np.uint64))
    live._flat = (live.p, live.s)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for _ in range(64):
            arm = live.ask()
            live.tell(arm, rng.normal([-100.0, -105.0][arm]))
        for name, values in live.describe().items():
            known = values[np.isfinite(values)]
            if name == "mean":  # 0 if all rewards are trimmed
                assert (known <= 0.0).all()
            elif name not in SIGNED_COLUMNS:
                assert (known >= 0.0).all(), name
