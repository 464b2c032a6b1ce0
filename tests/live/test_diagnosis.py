"""What a live bandit keeps of its rewards, what diagnose() returns, and the warning, which is issued once."""

import copy
import math
import warnings
from array import array
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.own_policies import Centred
from helpers.samples_of import drawn
from live.test_saving import forged
from robandit.diagnostics.costs import QUESTION
from robandit.diagnostics.diagnosis import ONCE
from robandit.errors import AssumptionWarning, CorruptFile
from robandit.live import memory as module
from robandit.live.memory import CHUNK, FIRST, RISK, SIZE, Memory
from robandit.policies.assumptions import NONPOSITIVE, SYMMETRIC

ARMS = ["a", "b"]


class Free(rb.UCB1):
    about = replace(rb.UCB1.about, assumption="")


class Plain(rb.UCB1):
    about = replace(rb.UCB1.about, assumption=NONPOSITIVE)


class Symmetric(rb.UCB1):
    about = replace(rb.UCB1.about, assumption=SYMMETRIC)


# --- the record -----------------------------------------------------------------------------------------------------


def sample_of(record, arm):
    return np.array(record.samples[arm])


def fill(record, arm, values):
    for value in values:
        record.fresh[arm].append(value)
        if len(record.fresh[arm]) >= CHUNK:
            record.fold(arm)


def test_small_records_are_complete():
    record = Memory(2)
    fill(record, 1, np.arange(SIZE - 100.0).tolist())
    seen = record.settled()
    assert sample_of(seen, 1).tolist() == np.arange(SIZE - 100.0).tolist()
    assert (seen.rewards, seen.zeros) == ([0, SIZE - 100], [0, 1])
    assert record.fresh[1], "the original is as it was"


def test_large_records_are_uniform_random_samples():
    """The expected number from each tenth of a life is SIZE / 10; a sample of the newest or oldest fails by far."""
    record, n = Memory(1), 50_000
    fill(record, 0, [float(v) for v in range(1, n + 1)])
    held = sample_of(record.settled(), 0)
    assert len(held) == SIZE == len(set(held.tolist()))
    tenths = np.histogram(held, bins=10, range=(0, n))[0]
    sd = math.sqrt(SIZE * 0.1 * 0.9)
    assert np.abs(tenths - SIZE / 10).max() < 4 * sd
    assert (
        abs(np.corrcoef(held, np.arange(SIZE))[0, 1]) < 4 / math.sqrt(SIZE) + 0.1
    )  # places of the first fill are in order


def test_the_record_does_not_depend_on_when_it_is_folded():
    values = drawn("student_1.5", 9000).tolist()
    one, other = Memory(1), Memory(1)
    fill(one, 0, values)
    rng = np.random.default_rng(0)
    left = list(values)
    while left:
        many = int(rng.integers(1, 700))
        other.fresh[0].extend(left[:many])
        other.fold(0)
        del left[:many]
    assert sample_of(one.settled(), 0).tolist() == sample_of(other, 0).tolist()
    assert other.rewards == [9000]


def test_memory_is_bounded():
    record = Memory(1)
    sizes = []
    for _ in range(4):
        fill(record, 0, [1.0] * 30_000)
        sizes.append(len(msgspec.msgpack.encode(record.save())))
    assert max(sizes) <= 8 * (SIZE + CHUNK) + 200
    assert sizes[-1] - sizes[0] < 8 * CHUNK


# --- diagnose -------------------------------------------------------------------------------------------------------


def test_diagnose_describes_the_rewards(tmp_path):
    bandit = rb.Bandit(["eu", "us", "asia"], rb.UCB1(), seed=0)
    cost = drawn("negated_pareto_zeros", 5000)
    bandit.update_many(["us"] * 5000, cost)
    bandit.update_many(["eu"] * 1000, drawn("pareto_1.5", 1000))
    before = bandit.to_bytes()
    found = bandit.diagnose()
    assert bandit.to_bytes() == before, "diagnose() has no side effects"
    eu, us, asia = found.arms
    assert found.leading == us
    assert (us.arm, us.pulls, us.recorded, us.sampled) == ("us", 5000, 5000, SIZE)
    assert us.zeros == np.mean(cost == 0)
    assert us.median == 0.0
    assert us.left.low <= 1.5 <= us.left.high
    assert (us.about_zero.verdict, us.about_median.verdict) == ("not contradicted", "not contradicted")
    assert (eu.about_zero.verdict, eu.about_median.verdict) == ("contradicted", "contradicted")
    assert eu.right.low <= 1.5 <= eu.right.high
    assert (asia.pulls, asia.left, asia.about_zero.verdict) == (0, None, "too few values")
    assert math.isnan(asia.median)
    assert found.contradicted is None
    assert found.advice.case == "left-skewed or symmetric"
    assert repr(found) == repr(bandit.diagnose())
    lines = str(found).splitlines()
    assert lines[0].split()[:4] == ["arm", "rewards", "zeros", "median"]
    assert lines[1].startswith("'eu'       1000   0.0%")
    assert "leading arm: 'us' (5000 rewards)" in lines
    assert "that is not tested here" in str(found)
    assert max(map(len, lines)) <= 132


def test_one_arm_decides_nothing_yet():
    bandit = rb.Bandit(["a"], Plain(), seed=0)
    sentence = "There is one arm only, 'a': nothing is decided yet. Add a second arm."
    assert sentence in str(bandit.diagnose()).splitlines()
    bandit.add_arm("b")
    assert sentence not in str(bandit.diagnose())


def test_diagnose_before_any_reward():
    found = rb.Bandit(ARMS, Plain(), seed=0).diagnose()
    assert (found.leading.arm, found.contradicted, found.advice.case) == ("a", None, "few rewards")
    assert "too few rewards of the leading arm" in str(found)
    assert "nan" not in str(found)
    assert "There are no rewards of 'a' yet" in found.advice.reasons[0]
    assert "assumes nothing" in str(rb.Bandit(ARMS, Free()).diagnose())


@pytest.mark.parametrize("policy", [Plain(), Centred()], ids=repr)
def test_diagnose_judges_the_policys_own_assumption(policy):
    rewards = drawn("gaussian", 250) + 3.0  # symmetric, about 3
    bandit = rb.Bandit(ARMS, policy)
    bandit.update_many(["b"] * 250, rewards)
    found = bandit.diagnose()
    assert found.leading.arm == "b"
    assert found.contradicted == (policy == Plain())
    assert ("CONTRADICTED by the leading arm" in found.words()) == (policy == Plain())


@pytest.mark.parametrize("policy", [rb.MARS(), rb.RMMUCB(), rb.ClippedSGDUCB(horizon=5000, range=1.0)], ids=repr)
def test_policies_that_assume_symmetry_say_what_is_tested(policy):
    assert policy.facts.assumption == SYMMETRIC
    assert policy.facts.assumption.point is not None


@pytest.mark.parametrize(
    ("name", "side", "case"),
    [("pareto_1.5", "more", "right-skewed"), ("negated_pareto_1.5", "less", "left-skewed or symmetric")],
)
def test_skewness_to_either_side_contradicts_symmetry(name, side, case):
    bandit = rb.Bandit(ARMS, Symmetric())
    seen = caught(bandit, "a", drawn(name, 2048).tolist())
    assert len(seen) == 1
    for part in (SYMMETRIC, "contradict that about the median", f"add up to {side} than 0", f"Take AdaKL-UCB ({case})"):
        assert part in str(seen[0].message)
    found = bandit.diagnose()
    assert found.contradicted
    assert "  symmetry about the median (at " in str(found)
    assert f"it assumes {SYMMETRIC}: CONTRADICTED by the leading arm" in found.words()


def test_symmetric_rewards_do_not_contradict_symmetry():
    bandit = rb.Bandit(ARMS, Symmetric())
    assert caught(bandit, "a", (drawn("student_1.5", 2048) + 3.0).tolist()) == []
    assert bandit.diagnose().contradicted is False


# --- the warning ----------------------------------------------------------------------------------------------------


def caught(bandit, arm, rewards, *, many=False):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if many:
            bandit.update_many([arm] * len(rewards), rewards)
        else:
            for reward in rewards:
                bandit.update(arm, reward)
    return [w for w in seen if issubclass(w.category, AssumptionWarning)]


@pytest.mark.parametrize("policy", [Plain(), Centred()], ids=repr)
@pytest.mark.parametrize("many", [True, False])
def test_it_warns_once_in_its_life(policy, many, tmp_path):
    rewards = drawn("pareto_1.5", 5000).tolist()
    bandit = rb.Bandit(ARMS, policy)
    assert caught(bandit, "a", rewards[: FIRST - 1], many=many) == []
    first = caught(bandit, "a", rewards[FIRST - 1 : 2048], many=many)
    assert len(first) == 1
    assert first[0].filename == __file__, "it points at the user's line"
    text = str(first[0].message)
    for part in (
        policy.facts.assumption,
        "leading arm 'a'",
        "add up to more than 0",
        "Take AdaKL-UCB (right",
        "diagnose()",
    ):
        assert part in text
    bandit.save(tmp_path / "b")
    for each in (bandit, copy.copy(bandit), rb.Bandit.load(tmp_path / "b")):
        assert caught(each, "a", rewards[2048:], many=many) == []
    assert bandit.diagnose().contradicted


@pytest.mark.parametrize("policy", [rb.AdaRUCB(), rb.AdaKLProved(), None], ids=repr)
@pytest.mark.parametrize("name", ["pareto_1.5", "clicks"])
def test_policies_that_trim_warn_and_the_default_only_asks(policy, name):
    """The default has no theorem, so rewards cannot contradict its assumption. But they may be costs."""
    bandit = rb.Bandit(ARMS, policy)
    seen = caught(bandit, "a", drawn(name, 2048).tolist(), many=True)
    asks = name == "pareto_1.5"
    assert len(seen) == (policy is not None or asks)
    assert all(str(each.message).startswith("Are these costs?") == asks for each in seen)
    assert all(("contradict that" in str(each.message)) == (policy is not None) for each in seen)
    assert bandit.diagnose().contradicted is (None if policy is None else True)


@pytest.mark.parametrize("many", [True, False])
def test_the_default_asks_once_in_its_life(many, tmp_path):
    rewards = drawn("lognormal", 5000).tolist()
    bandit = rb.Bandit(ARMS, rb.UCB1())
    assert caught(bandit, "a", rewards[: FIRST - 1], many=many) == []
    (first,) = caught(bandit, "a", rewards[FIRST - 1 : 2048], many=many)
    assert first.filename == __file__
    assert str(first.message) == f"{QUESTION}\n{ONCE}"
    bandit.save(tmp_path / "b")
    for each in (bandit, copy.copy(bandit), rb.Bandit.load(tmp_path / "b")):
        assert caught(each, "a", rewards[2048:], many=many) == []


def test_costs_that_are_minimised_or_negated_are_not_asked_about():
    rewards = drawn("lognormal", 2048)
    assert caught(rb.Bandit(ARMS, rb.UCB1(), minimize=True), "a", rewards.tolist(), many=True) == []
    assert caught(rb.Bandit(ARMS, rb.UCB1()), "a", (-rewards).tolist(), many=True) == []


def test_a_reward_of_another_arm_that_is_not_positive_silences_the_question():
    """Also one that is not folded in yet."""
    for other in (0.0, 1.0):
        bandit = rb.Bandit(ARMS, rb.UCB1())
        bandit.update("b", other)
        assert len(caught(bandit, "a", drawn("lognormal", 300).tolist())) == (other > 0.0)


def test_late_rewards_warn_too():
    bandit = rb.Bandit(ARMS, Plain())
    decisions = [bandit.decide() for _ in range(1024)]
    with pytest.warns(AssumptionWarning) as seen:
        bandit.reward_many(decisions, [1.0] * 1024)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    bandit = rb.Bandit(ARMS, Plain())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(1024):
            bandit.reward(bandit.decide(), 1.0)
    assert [w.filename for w in seen] == [__file__]


def test_a_warning_that_is_an_error_loses_no_reward():
    bandit = rb.Bandit(ARMS, Plain())
    with pytest.raises(AssumptionWarning):
        bandit.update_many(["a"] * 700, [1.0] * 700)
    assert bandit.counters()["rewards"] == 700
    bandit.update_many(["a"] * 700, [1.0] * 700)


def test_a_saved_bandit_that_did_not_warn_yet_will(tmp_path):
    bandit = rb.Bandit(ARMS, Plain())
    bandit.update_many(["a"] * 200, [1.0] * 200)
    bandit.save(tmp_path / "b")
    loaded = rb.Bandit.load(tmp_path / "b")
    assert len(caught(loaded, "a", [1.0] * 56)) == len(caught(bandit, "a", [1.0] * 56)) == 1
    assert loaded.to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("policy", [rb.UCB1(), Free(), Centred()], ids=repr)
def test_no_warning_where_nothing_is_contradicted(policy):
    rewards = (drawn("gaussian", 3000) + 3.0).tolist()
    assert caught(rb.Bandit(ARMS, policy), "a", rewards) == []


def test_only_the_leading_arm_is_looked_at():
    bandit = rb.Bandit(ARMS, Plain())
    bandit.update_many(["a"] * 1000, [-1.0] * 1000)
    assert caught(bandit, "b", [1.0] * 1000) == []
    assert len(caught(bandit, "b", [1.0] * 1048)) == 1, "it leads now, and reaches 2,048"


def test_the_risk_is_spent_once():
    """The levels of all tests of all arms add up to RISK, and each test is made."""
    levels = []
    record = Memory(3)
    for doubling in range(8):
        record.rewards[0] = FIRST * 2**doubling
        look = doubling + 1
        levels.append(RISK / (3 * look * (look + 1)))
        found = _alarm_level(record)
        assert found == pytest.approx(levels[-1])
    assert 3 * sum(levels) < RISK
    for other in (0, FIRST - CHUNK, 3 * FIRST, 5 * FIRST, 255 * FIRST):
        record.rewards[0] = other
        assert _alarm_level(record) is None


def _alarm_level(record, monkeypatch=pytest.MonkeyPatch):
    asked = []
    with monkeypatch.context() as patched:
        patched.setattr(module, "judge", lambda values, about, level, minimize: asked.append(level) or True)
        record.alarm(0, record.rewards, NONPOSITIVE, minimize=False)
    return asked[0] if asked else None


def test_symmetric_rewards_raise_no_alarm_in_many_lives():
    """Expected: below 0.3 of 300; the negative control has most of 300."""
    rng = np.random.default_rng(1)
    alarms = {0.0: 0, 3.0: 0}
    for _ in range(300):
        for shift in alarms:
            record = Memory(2)
            record.fresh[0] = array("d", rng.standard_t(1.5, 256) + shift)
            record.fold(0)
            alarms[shift] += record.alarm(0, record.rewards, NONPOSITIVE, minimize=False) is not None
    assert alarms[0.0] <= 2
    assert alarms[3.0] >= 200


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_file_without_a_record_loads_and_begins_one(tmp_path):
    path = forged(tmp_path / "bandit", lambda data: data.update(record=None))
    bandit = rb.Bandit.load(path)
    found = bandit.diagnose()
    assert found.leading.pulls > 0
    assert found.leading.recorded == 0
    assert "recording began later: 0 of them are on record" in str(found)
    assert f"None of the {found.leading.pulls} rewards of {found.leading.arm!r} is on record" in found.advice.reasons[0]
    arm = found.leading.arm
    bandit.update_many([arm] * 3, [-1.0] * 3)
    advice = bandit.diagnose().advice.reasons[0]
    assert (
        f"There are only 3 rewards of {arm!r} on record (the {found.leading.pulls} before were not recorded)" in advice
    )
    bandit.update_many([arm] * 297, [-1.0] * 297)
    assert bandit.diagnose().leading.recorded == 300


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(rewards=[1]),
        lambda r: r.update(zeros=[0, 0, 10**9]),
        lambda r: r.update(zeros=[-1, 0, 0]),
        lambda r: r["samples"].pop(),
        lambda r: r.update(samples=[b"12345678"] * 3),
        lambda r: r.update(fresh=[b"1234"] * 3),
        lambda r: r.update(fresh=[bytes(8 * CHUNK)] * 3),
        lambda r: r.update(warned="yes"),
    ],
)
def test_inconsistent_records_are_rejected(change, tmp_path):
    with pytest.raises(CorruptFile, match="damaged"):
        rb.Bandit.load(forged(tmp_path / "bandit", lambda data: change(data["record"])))
