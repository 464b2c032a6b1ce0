"""How arms stand: chances, statements that may be looked at any time, their withdrawal, and what a cap refuses."""

import hashlib
import math
import re
import warnings

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.invalid import assert_invalid, raises
from helpers.serving import Clock
from robandit.diagnostics.diagnosis import KeptRewards
from robandit.errors import AssumptionWarning, CorruptFile, DriftWarning, InvalidInput, InvalidReward
from robandit.live.saving import HEADER
from robandit.live.standing import _drawn
from robandit.objectives import objective_from


def filled(minimize=True, arms="ab", n=600, cap=10.0, ratio=0.5, **options):
    """A bandit whose second arm has ``ratio`` times the rewards of the others."""
    rng = np.random.default_rng(3)
    bandit = rb.Bandit(list(arms), rb.UCB1(), minimize=minimize, cap=cap, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        for arm in arms:
            bandit.update_many([arm] * n, (rng.lognormal(size=n) * (ratio if arm == "b" else 1.0)).tolist())
    return bandit


def test_the_lower_mean_wins():
    standing = filled().standing()
    assert standing.statement == (True, "b", "b costs less than a (capped at 10), at 95 %, may be looked at any time")
    assert standing.pairs == (True, "b", "b beats a in most pairs (confidence 95 %, however often checked)")
    assert standing.leader.arm == "b"
    assert standing.leader.chance > 0.999
    assert "above 99.9 %" in standing.leader.sentence
    assert standing.statement.sentence in standing.leader.sentence
    a, b = standing.arms
    assert (a.arm, a.state, a.pulls) == ("a", "active", 600)
    assert b.low < b.mean < a.mean
    assert a.chance < 0.001
    assert str(standing).count("\n") == 4


def test_the_higher_mean_wins_if_rewards_are_maximised():
    standing = filled(minimize=False, ratio=2.0).standing()
    assert standing.statement.sentence.startswith("b earns more than a (capped at 10)")
    assert (standing.leader.arm, standing.pairs.arm) == ("b", "b")
    opposite = filled(minimize=False, ratio=0.5).standing()
    assert (opposite.leader.arm, opposite.pairs.arm, opposite.statement.arm) == ("a", "a", "a")


def test_the_best_of_several_arms_must_beat_all():
    assert filled(arms="abcd").leader().arm == "b"
    assert filled(arms="abcdef").standing().statement.sentence.startswith("b costs less than a, c, d and 2 more (")
    tied = filled(arms="abc")
    tied.add_arm("new")
    assert tied.standing().statement == (False, None, "too few pulls of new to say: set a floor")


def test_equal_arms_have_no_winner():
    standing = filled(ratio=1.0).standing()
    assert standing.statement == (False, None, "no difference of the means is shown yet (capped at 10)")
    assert not standing.pairs.shown
    assert 0.0 < standing.leader.chance < 1.0


def test_a_starved_arm_needs_a_floor():
    rng = np.random.default_rng(1)
    for floor, text in ((None, "too few pulls of a to say: set a floor"), (0.02, "too few pulls of a to say yet")):
        bandit = rb.Bandit(["a", "b"], minimize=True, cap=10.0, floor=floor)
        bandit.update_many(["a"] * 15 + ["b"] * 3000, np.append(rng.lognormal(size=15), 0.5 * rng.lognormal(size=3000)))
        assert bandit.standing().statement.sentence == text


def test_statements_on_means_and_on_pairs_share_no_word():
    """Other words than those of the two are left out: names, and words without meaning of their own."""

    def said(statement):
        return set(re.findall(r"[a-z]{3,}", statement.sentence))

    for bandit in (filled(), filled(ratio=1.0), filled(minimize=False), rb.Bandit(["a", "b"], cap=1.0)):
        standing = bandit.standing()
        assert not said(standing.statement) & said(standing.pairs)


def test_without_a_cap_only_chances_are_given():
    bandit = filled(cap=None)
    standing = bandit.standing()
    assert (standing.statement, standing.pairs, standing.cap, bandit.cap) == (None, None, None, None)
    assert standing.leader.sentence.endswith("(this describes 1,200 kept costs, and is no test).")


def test_arms_that_are_chosen_by_features_are_not_claimed_to_differ():
    features = {"region": rb.Category(["eu", "us"])}
    assert_invalid(lambda: rb.Bandit(["a", "b"], cap=1.0, features=features), "cap", "left out with features")
    bandit = rb.Bandit(["a", "b"], floor=0.1, features=features, compile="never")
    for k in range(10):
        bandit.update("ab"[k % 2], float(k), context={"region": "eu"})
    assert "Arms were chosen by features" in bandit.leader().sentence


def test_chances_sum_to_one_and_ties_share():
    standing = filled(arms="abc", ratio=0.99).standing()
    assert sum(each.chance for each in standing.arms) == pytest.approx(1.0)
    constant = rb.Bandit(["a", "b"])
    constant.update_many(["a", "b"] * 30, [2.0] * 60)
    assert [each.chance for each in constant.standing().arms] == [0.5, 0.5]
    assert constant.standing() == constant.standing(), "no randomness is left"


@pytest.mark.parametrize(
    ("arms", "state", "sentence"),
    [
        ("ab", "active", "No leader yet: a and b have fewer than two rewards."),
        ("a", "active", "a is the only active arm: there is nothing to compare. Add or resume an arm."),
        ("ab", "paused", "No arm is active: there is nothing to compare. Add or resume an arm."),
    ],
)
def test_an_empty_bandit_answers_in_words(arms, state, sentence):
    bandit = rb.Bandit(list(arms), cap=1.0)
    if state == "paused":
        for arm in arms:
            bandit.pause_arm(arm)
    leader = bandit.leader()
    assert leader.arm is None
    assert math.isnan(leader.chance)
    assert leader.sentence.startswith(sentence)
    assert not bandit.standing().statement.shown
    assert not bandit.standing().pairs.shown
    assert str(bandit.standing())


def test_an_arm_without_rewards_is_named():
    bandit = rb.Bandit(["a", "b", "c"])
    bandit.update_many(["a", "b"] * 5, range(10))
    assert bandit.leader().sentence.endswith(" c has too few rewards to compare.")
    assert math.isnan(bandit.standing().arms[2].chance)


def test_arms_that_are_not_active_are_left_out():
    bandit = filled(arms="abc")
    bandit.pause_arm("b")
    standing = bandit.standing()
    assert standing.leader.arm in ("a", "c")
    assert math.isnan(standing.arms[1].chance)
    assert "b" not in re.findall(r"\w+", standing.statement.sentence)


def test_an_alarm_withdraws_the_statements():
    bandit = filled()
    assert bandit.standing().statement.shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        bandit.update_many(["b"] * 400, (20.0 * np.random.default_rng(1).lognormal(size=400)).tolist())
    standing = bandit.standing()
    for each in (standing.statement, standing.pairs):
        assert not each.shown
        assert each.sentence.startswith("withdrawn, since arm 'b' changed around its reward 60")
    bandit.retire_arm("b")
    bandit.add_arm("c")
    assert "withdrawn" not in bandit.standing().statement.sentence, "it concerns arms that are active"


def test_an_alarm_of_a_restarting_policy_withdraws_too():
    bandit = rb.Bandit(["a", "b"], minimize=True, cap=10.0, drift="restart")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        rng = np.random.default_rng(1)
        bandit.update_many(["a"] * 1400, np.append(rng.lognormal(size=1000), 20.0 + rng.lognormal(size=400)).tolist())
    assert bandit.standing().statement.sentence.startswith("withdrawn")


# --- the order of decisions ---------------------------------------------------------------------------------------------


def test_rewards_wait_for_older_decisions():
    bandit = rb.Bandit(["a", "b"], cap=10.0)
    decisions = [bandit.decide(arm="a") for _ in range(4)]
    for decision in decisions[1:]:
        bandit.reward(decision, 1.0)
    assert counts(bandit) == [0, 0]
    bandit.update("b", 2.0)
    assert counts(bandit) == [0, 1]
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    again.expire(decisions[0])
    bandit.reward(decisions[0], 3.0)
    assert (counts(again), counts(bandit)) == ([3, 1], [4, 1])


def counts(bandit):
    return bandit._evidence.counted().weights.sum(axis=1).round(9).tolist()


def test_pulls_of_edges_do_not_count():
    """They come in the order of their ends: how long each took has chosen it."""
    bandit = rb.Bandit(["a", "b"], cap=10.0)
    bandit.learn_pulls([(0, 1.0), (1, None), (1, 2.0)], 1)
    assert counts(bandit) == [0, 0]
    assert [pulls for _, _, pulls in bandit.pulls()] == [1, 1]
    bandit.update("a", 1.0)
    assert counts(bandit) == [1, 0]


def test_of_a_unit_the_first_decision_counts():
    bandit = rb.Bandit(["a", "b"], cap=10.0, sticky_for=60.0, clock=Clock(0.0))
    first, again = bandit.decide(unit="ann"), bandit.decide(unit="ann")
    bandit.reward(again, 5.0)
    assert sum(counts(bandit)) == 0.0
    bandit.reward(first, 3.0)  # not learned by the policy
    assert [each.tolist() for each in bandit._evidence.counted().first] == [[3.0], []]


# --- what is refused, and files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [0.0, -1.0, math.nan, math.inf, "30", True])
def test_a_cap_must_be_positive(cap):
    assert_invalid(lambda: rb.Bandit(["a"], cap=cap), "cap", "a finite number > 0")


def test_a_cap_cannot_be_changed():
    bandit = rb.Bandit(["a"], cap=2)
    assert bandit.cap == 2.0
    with pytest.raises(AttributeError):
        bandit.cap = 3.0
    assert rb.Bandit.from_bytes(bandit.to_bytes()).cap == 2.0


def test_negative_rewards_are_refused_and_nothing_is_learned():
    bandit = rb.Bandit(["a", "b"], cap=1.0, sticky_for=60.0)
    decision, other, repeated = bandit.decide(), bandit.decide(unit="u"), bandit.decide(unit="u")
    bandit.reward(other, 1.0)
    before = bandit.to_bytes()
    for refused in (
        lambda: bandit.update("a", -1.0),
        lambda: bandit.update_many(["a", "b"], [1.0, -1.0]),
        lambda: bandit.reward(decision, -1.0),
        lambda: bandit.reward(repeated, -1.0),
        lambda: bandit.reward_many([decision, repeated], [1.0, -1.0]),
        lambda: bandit.apply({"event": "Observed", "arm": "a", "value": -1.0}),
        lambda: bandit.apply({"event": "Rewarded", "id": decision.id, "value": -1.0}),
    ):
        with raises(InvalidReward, rule="at least 0"):
            refused()
        assert bandit.to_bytes() == before
    bandit.update("a", 0.0)


def test_amounts_may_not_sum_to_less_than_nothing():
    bandit = rb.Bandit(["a", "b"], cap=1.0)
    decision = bandit.decide()
    bandit.reward(decision, 3.0, final=False)
    with raises(InvalidReward, rule="at least 0"):
        bandit.reward(decision, -4.0, final=False)
    bandit.reward(decision, -2.0, final=False)
    with raises(InvalidReward, rule="at least 0"):
        bandit.reward_many([decision], [-1.5])
    bandit.expire(decision)
    assert bandit._evidence.counted().first[0].tolist() == [1.0]


@pytest.mark.parametrize("damage", ["arms", "id", "arm", "cap"])
def test_a_file_whose_evidence_does_not_fit_is_refused(damage):
    bandit = rb.Bandit(["a", "b"], cap=1.0)
    decision = bandit.decide()
    saved = bandit.to_bytes()
    fields = msgspec.msgpack.decode(saved[HEADER:])
    evidence = fields["evidence"]
    if damage == "arms":
        evidence[1] = evidence[1][:1]
    elif damage == "id":
        evidence[3][0][0][1] = "unknown-1"
    elif damage == "arm":
        evidence[3].reverse()
        assert evidence[3] == [[], [[True, decision.id]]]
    else:
        evidence[0] = -1.0
    payload = msgspec.msgpack.encode(fields)
    with raises(CorruptFile, match="evidence"):
        rb.Bandit.from_bytes(saved[: HEADER - 32] + hashlib.sha256(payload).digest() + payload)


def test_names_in_sentences_cannot_spoil_a_terminal():
    bandit = rb.Bandit(["a\x1b[31m", 7], cap=1.0)
    bandit.update_many(["a\x1b[31m", 7] * 5, [0.5] * 10)
    assert "\x1b" not in str(bandit.standing())


def test_a_wrong_setting_names_the_parameter():
    with raises(InvalidInput, parameter="cap"):
        rb.Bandit(["a", "b"], cap="high")


@pytest.mark.parametrize(
    ("objective", "words"), [("p95", "the lowest p95"), ("within:2.0", "the lowest share beyond 2.0"), (None, "mean")]
)
def test_chances_are_about_the_objective(objective, words):
    """The arm with the lower mean has the heavier tail."""
    rng = np.random.default_rng(2)
    bandit = rb.Bandit(["steady", "spread"], minimize=True, objective=objective)
    bandit.update_many(["steady", "spread"] * 400, np.stack([np.full(400, 1.9), rng.exponential(1.2, 400)]).T.ravel())
    leader = bandit.leader()
    assert leader.arm == ("spread" if objective is None else "steady")
    assert leader.chance > 0.999
    assert words in leader.sentence
    lines = str(bandit.standing())  # beside a mean, a chance says what it is about
    assert (f"chance of the best {words[11:]}: " in lines) == (objective is not None)


def test_draws_of_a_share_and_of_a_quantile_are_as_wide_as_their_limits():
    sample = np.random.default_rng(2).random(400)
    arm = KeptRewards("a", 400, 400, 0, sample)
    for text, value in (("p90", 0.9), ("within:0.9", 0.1)):
        draws = _drawn(arm, objective_from(text), True, np.random.default_rng(1))
        assert abs(draws.mean() - value) < 0.05
        assert draws.std() == pytest.approx(np.sqrt(0.09 / 400), rel=0.3)
