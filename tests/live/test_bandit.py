"""The live bandit: select and update, late rewards, weighted policies, and invalid input."""

import itertools
import math
import warnings
from datetime import timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.live_bandits import ARMS, QUICK, lived, loss, next_decisions
from helpers.own_policies import Exp3, Greedy, chance
from references.slow_adar_ucb import SlowAdaRUCB
from robandit.errors import (
    DecisionError,
    ExpiryWarning,
    InvalidInput,
    InvalidReward,
    KernelError,
    UnknownArm,
)
from robandit.policies.adar import layout

# --- select and update -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{}, {"c": 1.0, "bonus": "tight"}, {"c": 0.4, "delta_exp": 0.5, "bonus": 0.2}], ids=str
)
def test_lockstep_is_algorithm_1(given):
    """Each arm comes twice; the first reward goes to X, the second to X'."""
    rng = np.random.default_rng(12)
    bandit = rb.Bandit(ARMS, rb.AdaRUCB(**given))
    reference = SlowAdaRUCB(3, **given)
    for tau in range(1, 331):
        expected, indices = reference.choose(tau)
        arm = bandit.select()
        assert arm == ARMS[expected], f"round {tau}: {indices}"
        first, second = loss(rng, expected), loss(rng, expected)
        bandit.update(arm, first)
        assert bandit.select() == arm
        bandit.update(arm, second)
        reference.learn(expected, first, second)
        if tau % 66 == 0:
            for i, row in enumerate(bandit.estimates()):
                terms = reference.terms(i, tau + 1)
                assert row["arm"] == ARMS[i]
                assert row["pulls"] == 2 * len(reference.x[i])
                if terms is None:
                    assert row["index"] == math.inf
                    assert math.isnan(row["mean"])
                    continue
                assert row["mean"] == pytest.approx(terms.mean, rel=1e-10)
                assert row["index"] == pytest.approx(terms.index, rel=1e-10)
                assert row["threshold"] == pytest.approx(terms.threshold, rel=1e-10)
                assert row["share_trimmed"] == pytest.approx(terms.share_trimmed)
    assert bandit.counters() == {"rewards": 660, "open": 0, "fallbacks": 0}


@pytest.mark.parametrize("policy", [QUICK, rb.UCB1(), Greedy(), Exp3()], ids=repr)
def test_select_has_no_side_effects(policy):
    bandit, quiet = lived(policy), lived(policy)
    before = bandit.to_bytes()
    arm = bandit.select()
    told = bandit.to_bytes()
    for _ in range(5):
        assert bandit.select() == arm
        assert repr(bandit.estimates()) == repr(quiet.estimates())
        bandit.counters(), bandit.open, bandit.arms, bandit.policy, repr(bandit)
    assert rb.Bandit.from_bytes(told).select() == arm
    if policy.weighted or isinstance(policy, Greedy):
        assert told != before, "the random stream moved once"
    assert next_decisions(bandit) == next_decisions(quiet)


def test_seeds_are_reproducible():
    runs = [next_decisions(rb.Bandit(ARMS, Greedy(), seed=seed), 60) for seed in (1, 1, 2, np.int64(1))]
    assert runs[0] == runs[1] == runs[3]
    assert runs[0] != runs[2]
    free = [tuple(next_decisions(rb.Bandit(ARMS, Greedy(eps=0.9)), 60)) for _ in range(2)]
    assert free[0] != free[1]


def test_repr_counters_estimates_and_defaults():
    bandit = rb.Bandit(iter(ARMS))
    assert bandit.policy == rb.AdaKLUCB()
    assert bandit.arms == ("eu", "us", "asia")
    assert repr(bandit) == "<Bandit: AdaKL-UCB, arms=3, rewards=0, open=0>"
    bandit.update("us", -1)
    bandit.decide()
    assert repr(bandit) == "<Bandit: AdaKL-UCB, arms=3, rewards=1, open=1>"
    assert bandit.counters() == {"rewards": 1, "open": 1, "fallbacks": 0}
    rows = bandit.estimates()
    assert [list(row) for row in rows] == [["arm", "state", "pulls", "mean", "index", "threshold", "share_trimmed"]] * 3
    assert [(row["arm"], row["pulls"]) for row in rows] == [("eu", 0), ("us", 1), ("asia", 0)]
    assert rb.Bandit(["a", "", "c"], rb.UCB1()).counters() == {"rewards": 0, "open": 0}
    ucb = lived(rb.UCB1(scale=2.0), 10)
    total = sum(row["pulls"] for row in ucb.estimates())
    for row in ucb.estimates():
        assert row["index"] == pytest.approx(row["mean"] + 2 * math.sqrt(2 * math.log(total + 1) / row["pulls"]))


# --- many at once ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [QUICK, rb.UCB1()], ids=repr)
def test_a_log_replayed_is_a_life_lived(policy, tmp_path):
    rng = np.random.default_rng(5)
    bandit = rb.Bandit(ARMS, policy)
    arms, rewards = [], []
    for step in range(301):
        arms.append(bandit.select() if step % 7 else ARMS[rng.integers(3)])
        rewards.append(loss(rng, ARMS.index(arms[-1])))
        bandit.update(arms[-1], rewards[-1])
    forms = [
        (arms, rewards),
        (np.array(arms), np.array(rewards)),
        (pl.Series(arms), pl.Series(rewards)),
        (iter(arms), (r for r in rewards)),
        (tuple(arms), np.array(rewards, dtype=object)),
    ]
    expected = None
    for names, values in forms:
        replayed = rb.Bandit(ARMS, policy)
        replayed.update_many(names, values)
        for mine, its in zip(replayed.estimates(), bandit.estimates(), strict=True):
            assert mine["arm"] == its["arm"]
            assert mine["pulls"] == its["pulls"]
            for column in policy.columns:  # AdaR-UCB chooses the origin of its sums at the first select(): rounding
                assert mine[column] == pytest.approx(its[column], rel=1e-12)
        if expected is None:
            expected = next_decisions(rb.Bandit.load(_write(bandit, tmp_path)))
        assert next_decisions(replayed) == expected
    halves = rb.Bandit(ARMS, policy)
    halves.update_many(arms[:100], rewards[:100])
    halves.update_many([], [])
    halves.update_many(arms[100:], rewards[100:])
    assert next_decisions(halves) == expected


def _write(bandit, folder):
    bandit.save(folder / "copy")
    return folder / "copy"


@pytest.mark.parametrize(
    ("arms", "rewards", "error"),
    [
        (["eu", "us"], [1.0, math.nan], InvalidReward),
        (["eu", "us"], [1.0, None], InvalidReward),
        (["eu", "mars"], [1.0, 2.0], UnknownArm),
        (["eu", "us"], [1.0], InvalidInput),
        (["eu"], [1.0, 2.0], InvalidInput),
        (["eu", "us"], pl.Series([1.0, None]), InvalidReward),
    ],
    ids=repr,
)
def test_many_are_learned_all_or_none(arms, rewards, error):
    bandit = lived(QUICK)
    before = bandit.to_bytes()
    with pytest.raises(error):
        bandit.update_many(arms, rewards)
    assert bandit.to_bytes() == before
    decisions = [bandit.decide() for _ in arms]
    before = bandit.to_bytes()
    if error is not UnknownArm:
        with pytest.raises(error):
            bandit.reward_many(decisions, rewards)
        assert bandit.to_bytes() == before


# --- late rewards ---------------------------------------------------------------------------------------------------


def test_late_rewards_reach_the_stream_they_were_pulled_for():
    """Rewards in a random order, against a reference that learns them in the order of the decisions."""
    rng = np.random.default_rng(8)
    bandit = rb.Bandit(ARMS, QUICK)
    issued = {arm: [] for arm in ARMS}
    for _ in range(30):
        batch = [bandit.decide() for _ in range(10)]
        values = [loss(rng, ARMS.index(d.arm)) for d in batch]
        for decision, value in zip(batch, values, strict=True):
            assert decision.propensity is None
            issued[decision.arm].append(value)
        order = rng.permutation(10)
        bandit.reward_many([batch[j] if j % 2 else batch[j].id for j in order], [values[j] for j in order])
    reference = SlowAdaRUCB(3, c=0.4, delta_exp=0.5, bonus=0.2)
    for i, arm in enumerate(ARMS):
        reference.x[i] = np.array(issued[arm][0::2])
        reference.y[i] = np.array(issued[arm][1::2])
    tau = sum(len(x) for x in reference.x) + 1
    for i, row in enumerate(bandit.estimates()):
        assert row["pulls"] == len(issued[row["arm"]])
        assert row["index"] == pytest.approx(reference.terms(i, tau).index, rel=1e-10)
        assert row["threshold"] == pytest.approx(reference.terms(i, tau).threshold, rel=1e-10)
    assert bandit.counters() == {"rewards": 300, "open": 0, "fallbacks": 0}


def test_a_decision_counts_exactly_once():
    bandit = rb.Bandit(ARMS, QUICK)
    first, second, third = (bandit.decide() for _ in range(3))
    assert [d.id.partition("-")[2] for d in (first, second, third)] == ["0", "1", "2"]
    assert bandit.open == (first, second, third)
    bandit.reward(second.id, -1.0)
    bandit.reward(np.str_(third.id), -2.0)
    assert bandit.open == (first,)
    bandit.expire(first, first.id)
    assert bandit.open == ()
    for decision in (first, second, third.id):
        for act in (lambda d: bandit.reward(d, -1.0), bandit.expire, lambda d: bandit.reward_many([d], [-1.0])):
            with raises(DecisionError, parameter="decision", rule="an open decision"):
                act(decision)
    for unknown in (3, -1, 10**30, 10**5000, True, "0", None, 1.0, (0, "eu", None), f"{third.id}0"):
        with pytest.raises(DecisionError, match=r"was never made|is not known to this bandit|is unknown here"):
            bandit.reward(unknown, -1.0)
    assert bandit.counters() == {"rewards": 2, "open": 0, "fallbacks": 0}
    assert bandit.decide().id.endswith("-3")


def test_a_batch_of_decisions_is_accepted_or_rejected_together():
    bandit = lived(QUICK)
    a, b = bandit.decide(), bandit.decide()
    before = bandit.to_bytes()
    for decisions, match in [([a, b.id, a.id], "decision '.*-0' is given twice"), ([a, 99], "99 is not known")]:
        with pytest.raises(DecisionError, match=match):
            bandit.reward_many(decisions, [-1.0] * len(decisions))
    with raises(DecisionError, parameter="decision"):
        bandit.expire(a, 99)
    with pytest.raises(InvalidReward):
        bandit.reward(a, math.nan)
    assert bandit.to_bytes() == before
    assert bandit.open == (a, b)


def test_large_batches_are_fast():
    """Quadratic work in the size of a batch would take minutes here."""
    bandit = rb.Bandit(ARMS, rb.UCB1(), compile="now")
    decisions = [bandit.decide() for _ in range(30_000)]
    bandit.reward_many(reversed(decisions), itertools.repeat(-1.0, 30_000))
    assert bandit.counters() == {"rewards": 30_000, "open": 0}


@pytest.mark.filterwarnings("ignore::robandit.errors.ExpiryWarning")
def test_streams_stay_balanced_whatever_happens():
    rng = np.random.default_rng(4)
    bandit = rb.Bandit(ARMS, QUICK)
    for _ in range(1500):
        what = rng.integers(5)
        opened = bandit.open
        if what == 0:
            bandit.update(ARMS[rng.integers(3)], loss(rng))
        elif what <= 2 or not opened:
            bandit.decide()
        elif what == 3:
            bandit.reward(opened[rng.integers(len(opened))], loss(rng))
        else:
            bandit.expire(opened[rng.integers(len(opened))])
    for decision in bandit.open:
        bandit.reward(decision, loss(rng))
    for _ in range(200):  # what was lost by expired decisions is made up for
        arm = bandit.select()
        bandit.update(arm, loss(rng))
    for arm in ARMS:
        bandit.update_many([arm] * 600, [loss(rng) for _ in range(600)])
    counts = bandit._engine.state.counts
    assert np.abs(counts[:, layout.N_X] - counts[:, layout.N_NONZERO]).max() <= 1
    assert counts[:, [layout.N_X, layout.N_NONZERO]].sum(axis=1).tolist() == [r["pulls"] for r in bandit.estimates()]


# --- weighted policies ----------------------------------------------------------------------------------------------


def test_a_late_reward_is_weighted_by_the_chance_of_its_decision():
    policy = Exp3()
    bandit = rb.Bandit(ARMS, policy, seed=2)
    rng = np.random.default_rng(0)
    logs, pending = np.zeros(3), []
    for step in range(200):
        weights = np.exp(logs - logs.max())
        chances = 0.8 * weights / weights.sum() + 0.2 / 3
        decision = bandit.decide()
        assert decision.propensity == pytest.approx(chances[ARMS.index(decision.arm)], rel=1e-12)
        pending.append((decision, chances[ARMS.index(decision.arm)]))
        if step % 3 == 2:  # an old decision, when the chances have long changed
            decision, then = pending.pop(int(rng.integers(len(pending))))
            value = float(rng.uniform(0, 1))
            bandit.reward(decision.id, value)
            logs[ARMS.index(decision.arm)] += 0.05 * value / then
            np.testing.assert_allclose([row["log_weight"] for row in bandit.estimates()], logs, rtol=1e-10)
    assert np.ptp(logs) > 0.3, "the chances did change"
    assert [d.propensity for d in bandit.open] == pytest.approx([then for _, then in pending])


def test_rewards_without_a_choice_are_rejected_for_weighted_policies():
    bandit = rb.Bandit(ARMS, Exp3(), seed=1)
    before = bandit.to_bytes()
    with pytest.raises(DecisionError, match=r"Exp3 weights .*'us' is not the last arm of select\(\).*decide\(\)"):
        bandit.update("us", 1.0)
    with pytest.raises(DecisionError, match=r"in bulk: use decide\(\)"):
        bandit.update_many(["us"], [1.0])
    assert bandit.to_bytes() == before
    arm = bandit.select()
    other = next(a for a in ARMS if a != arm)
    with pytest.raises(DecisionError, match=repr(other)):
        bandit.update(other, 1.0)
    bandit.update(arm, 0.5)
    weight = chance(Exp3().params(), Exp3().init(3, None), 0)
    assert bandit.estimates()[ARMS.index(arm)]["log_weight"] == pytest.approx(0.05 * 0.5 / weight)
    with pytest.raises(DecisionError):
        bandit.update(arm, 0.5)  # once per choice


# --- invalid input -------------------------------------------------------------------------------------------------------


@cases(
    ("arm", "reward", "error", "rule"),
    [
        *(
            ("us", value, InvalidReward, "a finite number")
            for value in (math.nan, math.inf, -math.inf, np.float32("nan"))
        ),
        *(("us", value, InvalidReward, "a number") for value in ("3", None, 1j, [1.0])),
        *(("us", value, InvalidReward, "within +-1e+150") for value in (1e200, -2e150, 10**400, Fraction(-(10**400)))),
        *((arm, -1.0, UnknownArm, "one of 'eu', 'us', 'asia'") for arm in ("mars", 0, None, ["us"], math.nan)),
    ],
)
@cases("policy", [QUICK, rb.UCB1()])
def test_invalid_input_changes_nothing(policy, arm, reward, error, rule):
    bandit = lived(policy)
    decision = bandit.decide()
    bandit.select()
    estimates, before = repr(bandit.estimates()), bandit.to_bytes()
    with raises(error, parameter="arm" if error is UnknownArm else "reward", rule=rule):
        bandit.update(arm, reward)
    if error is InvalidReward:
        with raises(error, parameter="reward", rule=rule):
            bandit.reward(decision, reward)
    assert repr(bandit.estimates()) == estimates
    assert bandit.to_bytes() == before
    assert str(error("text")) == "text"


def test_every_kind_of_real_number_is_a_reward():
    kinds = [1, True, 2.5, Fraction(5, 2), np.float64(2.5), np.float32(2.5), np.int8(1), np.uint64(1), np.bool_(True)]
    kinds += [1e150, -1e150, 1e-130, 0, -0.0]
    bandit, twin = rb.Bandit(ARMS, QUICK), rb.Bandit(ARMS, QUICK)
    for value in kinds:
        bandit.update("eu", value)
        twin.update_many(["eu"], [float(value)])
    assert bandit.estimates()[0]["pulls"] == len(kinds)
    assert repr(bandit.estimates()) == repr(twin.estimates())


@cases(
    ("arms", "rule"),
    [
        ([], "a list of at least one arm"),
        *((arms, "given once") for arms in (["a", "b", "a"], [1, True], [1, np.float64(1.0)])),
        *((arms, "a list of names") for arms in ("ab", b"ab", 3, None)),
        *(
            ([arm, "a"], "a string, a finite number of up to 64 bits")
            for arm in (math.nan, math.inf, ("x", math.nan), {"x": 1}, {1, 2}, NotImplemented, b"x", 1j, 2**64)
        ),
        *((arms, "a string, a finite number") for arms in (["\ud800", "a"], [np.zeros(2), "a"])),
    ],
)
def test_bad_arms(arms, rule):
    with raises(InvalidInput, rule=rule):
        rb.Bandit(arms)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("policy", rb.UCB1), ("policy", "UCB1"), ("seed", -1), ("seed", 1.5), ("seed", True), ("seed", "x")],
    ids=repr,
)
def test_bad_policies_and_seeds(parameter, value):
    with raises(InvalidInput, parameter=parameter):
        rb.Bandit(ARMS, **{parameter: value})


class Unfinished(Greedy):
    """Its hooks for late rewards cannot be compiled."""

    @staticmethod
    def expire(p, s, arm, mark):
        s.arms[arm, 0] = not_defined  # noqa: F821


@pytest.mark.parametrize("compile", ["now", "background"])
def test_a_hook_that_cannot_be_compiled_loses_no_decision(compile):
    bandit = lived(Unfinished(), 10, compile=compile)
    decision = bandit.decide()
    with pytest.raises(KernelError, match="not_defined"):
        bandit.expire(decision)
    assert bandit.open == (decision,)
    bandit.reward(decision, -1.0)


def test_a_decision_of_another_bandit_is_rejected():
    one, other = (rb.Bandit([name, "z"], rb.UCB1()) for name in ("a", "b"))
    foreign = other.decide()
    one.decide()
    with raises(DecisionError, parameter="decision", rule="an open decision"):
        one.reward(foreign, 1.0)
    assert len(one.open) == 1


@pytest.mark.parametrize(("arms", "rewards", "parameter"), [("ab", [1.0, 2.0], "arms"), (["a"], 1.0, "rewards")])
def test_bulk_that_is_not_a_list(arms, rewards, parameter):
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    with raises(InvalidInput, parameter=parameter, rule="a list"):
        bandit.update_many(arms, rewards)


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::robandit.errors.DriftWarning")  # the data do drift
def test_memory_is_bounded_and_a_fallback_is_counted():
    """Data made against it: every X is above every threshold that X' can give, so that all would have to be kept."""
    bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(), compile="now")
    size = []
    for half in range(12_000):
        bandit.update_many(["a", "a"], [-1e6 - 50.0 * half, -1.0])
        if half % 1000 == 0:
            size.append(sum(array.nbytes for array in bandit._engine.state) / 2)
    for _ in range(200):
        bandit.update_many(["b", "b"], [-2.0, -1.0])
    assert size[0] < 8192, "a new bandit is small"
    assert max(size) <= 128 * 1024
    assert size[-1] == size[-2], "and it stopped growing"
    bandit.select()
    assert bandit.counters()["fallbacks"] == 0, "the threshold is far below"
    bandit.update_many(["a", "a"] * 175, [-2.0, -1.5e6] * 175)
    bandit.select()
    assert bandit.counters()["fallbacks"] > 0, "the threshold is among them"
    assert all(math.isfinite(row["index"]) for row in bandit.estimates())


@pytest.mark.parametrize("policy", [rb.AdaRUCB(), rb.AdaKLUCB()], ids=repr)
def test_independent_data_need_no_fallback(policy):
    rng = np.random.default_rng(1)
    bandit = rb.Bandit(["a", "b"], policy, compile="now")
    for i, arm in enumerate(bandit.arms):
        bandit.update_many([arm] * 20_000, -rng.pareto(1.1, 20_000) - i)
    for _ in range(2000):
        bandit.update(bandit.select(), -float(rng.pareto(1.1)))
    assert bandit.counters() == {"rewards": 42_000, "open": 0, "fallbacks": 0}
    assert sum(array.nbytes for array in bandit._engine.state) / 2 <= 128 * 1024


# --- open decisions -------------------------------------------------------------------------------------------------


def test_open_decisions_have_a_time_and_a_limit():
    times = iter(float(t) for t in (0, 60, 120, 180, 200, 300, 301))
    bandit = rb.Bandit(ARMS, rb.UCB1(), max_open=3, clock=lambda: next(times))
    decisions = [bandit.decide() for _ in range(3)]
    assert [d.time for d in decisions] == [0.0, 60.0, 120.0]
    assert bandit.open_count == 3
    before = bandit.to_bytes()
    with raises(DecisionError, parameter="max_open", rule="the most open decisions"):
        bandit.decide()
    assert bandit.to_bytes() == before
    again = rb.Bandit.from_bytes(before, clock=lambda: next(times))
    with raises(DecisionError, parameter="max_open"):
        again.decide()
    assert bandit.expire(older_than=timedelta(seconds=130)) == 1, "at 180, the limit is 50"
    assert [d.time for d in bandit.open] == [60.0, 120.0]
    assert bandit.expire(decisions[1], older_than=timedelta(seconds=80)) == 1, "at 200, the limit is 120: not older"
    assert bandit.expire(older_than=timedelta(0)) == 1
    assert bandit.open_count == 0
    assert bandit.decide().time == 301.0


@pytest.mark.parametrize("limit", [0, -1, 1.5, "10", True])
def test_a_bad_limit(limit):
    with raises(InvalidInput, parameter="max_open"):
        rb.Bandit(ARMS, rb.UCB1(), max_open=limit)


@pytest.mark.parametrize("name", ["log", "clock"])
def test_what_is_not_a_function(name):
    with raises(InvalidInput, parameter=name, rule="a function"):
        rb.Bandit(ARMS, rb.UCB1(), **{name: 5})


def test_a_negative_time_span():
    with raises(InvalidInput, parameter="older_than", rule="at least 0"):
        rb.Bandit(ARMS, rb.UCB1()).expire(older_than=timedelta(days=-1))


@pytest.mark.parametrize("span", [60, "1 hour", np.timedelta64(1, "h")])
def test_a_bad_time_span(span):
    with raises(InvalidInput, parameter="older_than", rule="a timedelta"):
        rb.Bandit(ARMS, rb.UCB1()).expire(older_than=span)


@pytest.mark.parametrize("now", [math.nan, None, "now"])
def test_a_bad_clock(now):
    bandit = rb.Bandit(ARMS, rb.UCB1(), clock=lambda: now)
    before = bandit.to_bytes()
    with raises(InvalidInput, parameter="clock()"):
        bandit.decide()
    assert bandit.to_bytes() == before


@pytest.mark.parametrize("value", [1e-131, -5e-324, np.float64(1e-140), Fraction(1, 10**200)], ids=repr)
def test_a_reward_too_small_to_square_is_rejected(value):
    bandit = rb.Bandit(ARMS, QUICK)
    decision = bandit.decide()
    before = bandit.to_bytes()
    for call in (
        lambda: bandit.update("eu", value),
        lambda: bandit.update_many(["eu"], [value]),
        lambda: bandit.reward(decision, value),
    ):
        with pytest.raises(
            InvalidReward, match=r"must be 0 or at least 1e-130 in size, .* scale all rewards up, or pass 0\.0"
        ):
            call()
    assert bandit.to_bytes() == before


@pytest.mark.parametrize(
    ("rewarded", "expired", "warned"), [(9, 91, True), (39, 11, True), (40, 10, False), (0, 49, False), (0, 50, True)]
)
def test_many_expired_decisions_are_a_warning(rewarded, expired, warned):
    bandit = rb.Bandit(["a", "b"], seed=1, compile="never")
    bandit.update_many(["a"] * 500, [1.0] * 500)  # no decisions
    made = [bandit.decide() for _ in range(rewarded + expired)]
    for decision in made[:rewarded]:
        bandit.reward(decision, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert bandit.expire(*made[rewarded:]) == expired
    total = rewarded + expired
    text = (
        f"{expired} of the {total} decisions that ended expired without a reward ({100 * expired / total:.0f} %), so nothing was "
        "learned from them: call reward for every decision that has an outcome, or expire decisions later"
    )
    assert [str(each.message) for each in caught] == [text] * warned
    assert all(each.category is ExpiryWarning and each.filename == __file__ for each in caught)


def test_the_warning_about_expired_decisions_comes_once():
    bandit = rb.Bandit(["a"], seed=1, compile="never")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(60):
            bandit.expire(bandit.decide())
    assert [each.category for each in caught] == [ExpiryWarning]
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.expire(again.decide())


def test_decisions_are_expired_even_if_warnings_are_errors():
    bandit = rb.Bandit(["a"], seed=1, compile="never")
    made = [bandit.decide() for _ in range(50)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ExpiryWarning):
            bandit.expire(*made)
    assert bandit.open_count == 0
