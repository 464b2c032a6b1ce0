"""A bandit with a floor: exact propensities, arms that come and go, logs and files; and many decisions at once."""

import json
import math
import threading
import warnings

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from helpers.live_bandits import ARMS, loss
from robandit.errors import DecisionError, HorizonReached, InvalidInput, NotApplicable, UnavailableArm, UnknownArm

FLOORS = [0.1, {"us": 0.05, "asia": 0.1}]


def test_the_policy_of_a_bandit_with_a_floor():
    assert rb.Bandit(ARMS, floor=0.02).policy == rb.Floor()
    assert rb.Bandit(ARMS, rb.UCB1(), floor={"us": 0.05}).policy == rb.Floor(rb.UCB1(), arms={"us": 0.05})
    assert rb.Bandit(ARMS, floor=0.1, drift="restart").policy == rb.Floor(rb.Restarting(), share=0.1)
    assert rb.Bandit(ARMS).policy == rb.AdaKLUCB(), "by default there is no floor"


def pi(floor, arms):
    """Return the floor's share, and its distribution among these arms."""
    if isinstance(floor, dict):
        weights = {arm: floor.get(arm, 0.0) for arm in arms}
    else:
        weights = dict.fromkeys(arms, floor / len(arms))
    total = sum(weights.values())
    return sum(floor.values()) if isinstance(floor, dict) else floor, {
        arm: weight / total if total else None for arm, weight in weights.items()
    }


@pytest.mark.parametrize("floor", FLOORS, ids=str)
def test_propensities_with_arms_that_come_and_go(floor):
    """Each propensity is one of two: that of the policy's own choice, and that of the other arms."""
    rng, seen = np.random.default_rng(0), set()
    bandit = rb.Bandit(ARMS, rb.UCB1(), floor=floor, seed=2, log=(events := []).append)
    for step in range(1500):
        if step == 300:
            bandit.add_arm("new")
        if step == 600:
            bandit.pause_arm("us")
        if step == 900:
            bandit.retire_arm("asia")
        if step == 1200:
            bandit.resume_arm("us")
        active = [arm for arm, state in bandit.states.items() if state == "active"]
        among = active[step % 2 :] if step % 3 == 0 and len(active) > 1 else active
        decision = bandit.decide(among=among)
        share, shares = pi(floor, among)
        part = shares[decision.arm]
        allowed = [1.0] if part is None else [share * part + (1.0 - share), share * part]
        near = [k for k, value in enumerate(allowed) if math.isclose(decision.propensity, value, rel_tol=1e-12)]
        assert near, (decision, allowed)
        seen.add((step // 300, near[0]))
        assert events[-1].propensity == decision.propensity
        bandit.reward(decision, loss(rng, bandit.arms.index(decision.arm)))
    assert {(k, 0) for k in range(5)} <= seen
    assert len({k for k, other in seen if other}) >= 3


@pytest.mark.parametrize("floor", FLOORS, ids=str)
@pytest.mark.parametrize("drift", [None, "restart"])
def test_propensities_are_those_of_the_choices(floor, drift):
    """For each arm, the sum of 1{chosen}/p over all decisions is their number, up to the deviation of a martingale.

    Its increments have variance 1/p - 1. The control uses the floor's part alone for the policy's own choices, too.
    """
    rng, count = np.random.default_rng(1), 4000
    bandit = rb.Bandit(ARMS, rb.UCB1(), floor=floor, drift=drift, seed=5)
    share, shares = pi(floor, ARMS)
    total, spread = dict.fromkeys(ARMS, 0.0), dict.fromkeys(ARMS, 0.0)
    wrong = dict.fromkeys(ARMS, 0.0)
    for _ in range(count):
        decision = bandit.decide()
        arm, p = decision.arm, decision.propensity
        total[arm] += 1.0 / p
        wrong[arm] += 1.0 / (0.7 * p if p < 0.5 else p)
        spread[arm] += (1.0 - p) / p**2  # its mean is the variance
        bandit.reward(decision, float(rng.normal(-ARMS.index(arm))))
    for arm in [arm for arm in ARMS if shares[arm]]:
        limit = 6.0 * math.sqrt(max(spread[arm], count * share))
        assert abs(total[arm] - count) < limit, arm
    assert any(
        abs(wrong[arm] - count) > 6.0 * math.sqrt(max(spread[arm], count * share)) for arm in ARMS if shares[arm]
    )


def life(bandit, steps=200):
    """Let a bandit live, with late rewards, arms that come and go, and choices without a decision."""
    rng = np.random.default_rng(3)
    for step in range(steps):
        active = [arm for arm, state in bandit.states.items() if state == "active"]
        match int(rng.integers(8)):
            case 0:
                bandit.select(among=active[:2])
            case 1:
                bandit.decide(among=active[-2:])
            case 2:
                bandit.decide_many(int(rng.integers(1, 5)))
            case 3 if len(active) > 1:
                bandit.pause_arm(active[0])
            case 4:
                for arm, state in bandit.states.items():
                    if state == "paused":
                        bandit.resume_arm(arm)
            case 5 if step % 10 == 0:
                bandit.add_arm(f"new {len(bandit.arms)}")
            case 6 if bandit.open:
                bandit.expire(bandit.open[0])
            case _:
                bandit.update(bandit.select(), loss(rng))
        for decision in bandit.open[::2]:
            bandit.reward(decision, loss(rng, bandit.arms.index(decision.arm)))


@pytest.mark.filterwarnings("ignore::robandit.errors.ExpiryWarning")
@pytest.mark.parametrize("floor", FLOORS, ids=str)
@pytest.mark.parametrize(
    ("policy", "drift"),
    [(rb.UCB1(), None), (rb.AdaKLUCB(), None), (rb.EpsilonGreedy(epsilon=0.3), None), (rb.UCB1(), "restart")],
    ids=str,
)
def test_a_log_and_a_file_give_the_same_bytes(policy, drift, floor, tmp_path):
    options = {"floor": floor, "drift": drift, "seed": 4}
    lines = []

    def log(event):
        lines.append(json.dumps(event.to_dict(), allow_nan=False))

    bandit = rb.Bandit(ARMS, policy, log=log, **options)
    life(bandit)
    bandit.save(tmp_path / "bandit")
    half = len(lines)
    loaded = rb.Bandit.load(tmp_path / "bandit")
    assert loaded.to_bytes() == bandit.to_bytes()
    assert [loaded.select(), loaded.policy] == [bandit.select(), bandit.policy]
    loaded = rb.Bandit.load(tmp_path / "bandit")
    life(bandit, 100)
    bandit.add_arm("the last event")  # a pending select() is not an event
    again = rb.Bandit(ARMS, policy, **options)
    for line in lines:
        again.apply(json.loads(line))
    for line in lines[half:]:
        loaded.apply(json.loads(line))
    assert again.to_bytes() == loaded.to_bytes() == bandit.to_bytes()
    numbers = [event["propensity"] for event in map(json.loads, lines) if event["event"] == "Decided"]
    assert all(0.0 < number <= 1.0 for number in numbers)
    assert len(numbers) > 50
    other = rb.Bandit(ARMS, policy, **options | {"seed": 5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        life(other)
    assert other.pulls() != bandit.pulls()


def test_a_given_decision_is_not_the_floors():
    bandit = rb.Bandit(ARMS, rb.UCB1(), floor=0.1)
    assert math.isnan(bandit.decide(arm="us").propensity)


def test_the_bandit_still_warns_of_changes_and_the_floor_passes_on_alarms():
    rng = np.random.default_rng(0)
    for drift in (None, "probe"):
        bandit = rb.Bandit(["eu"], rb.UCB1(), floor=0.1, drift=drift)
        rewards = np.concatenate([rng.normal(size=1000), rng.normal(9.0, size=300)])
        with pytest.warns(rb.errors.DriftWarning) as caught:
            bandit.update_many(["eu"] * 1300, rewards)
        assert len(caught) == len(bandit.diagnose().changes) == 1


@pytest.mark.parametrize("floor", [0.0, 1.5, -0.1, math.nan, "0.02", True])
def test_a_bad_floor(floor):
    with raises(InvalidInput, parameter="floor", rule="a finite number > 0 and <= 1"):
        rb.Bandit(ARMS, floor=floor)


def test_a_bad_mapping():
    with raises(UnknownArm, value="uk", match="'uk' of arms is unknown: the floor can only be on 'eu', 'us', 'asia'"):
        rb.Bandit(ARMS, floor={"us": 0.1, "uk": 0.1})
    with raises(InvalidInput, match="they sum to 1.1"):
        rb.Bandit(ARMS, floor={"us": 0.6, "eu": 0.5})
    with raises(InvalidInput, match="floors cannot be nested"):
        rb.Bandit(ARMS, rb.Floor(), floor=0.1)
    with raises(InvalidInput, match="a floor must be outside"):
        rb.Bandit(ARMS, rb.Floor(), drift="probe")
    with pytest.raises(NotApplicable, match="take a policy without weights"):
        rb.Bandit(ARMS, rb.OptTINF(), floor=0.1)


# --- many decisions at once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "floor"), [(rb.AdaKLUCB(), None), (rb.UCB1(), 0.3), (rb.OptTINF(), None), (rb.EpsilonGreedy(), 0.1)]
)
def test_many_decisions_are_single_ones(policy, floor):
    rng, logs = np.random.default_rng(0), ([], [])
    options = {"seed": 1, "floor": floor, "clock": lambda: 5.0}
    one, many = (rb.Bandit(ARMS, policy, log=log.append, **options) for log in logs)
    for step in range(30):
        among = ARMS[1:] if step % 4 == 3 else None
        if step % 5 == 4:
            one.select()
            many.select()
        singles = [one.decide(among) for _ in range(7)]
        together = many.decide_many(7, None if among is None else (arm for arm in among))
        assert [d[1:] for d in together] == [d[1:] for d in singles]
        assert together == list(many.open[-7:])
        for k in rng.permutation(7)[:5]:
            reward = loss(rng, ARMS.index(singles[k].arm))
            one.reward(singles[k], reward)
            many.reward(together[k], reward)
    without = [[{**event.to_dict(), "id": ""} for event in log] for log in logs]
    assert without[0] == without[1]
    states = one._engine.state, many._engine.state
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*states, strict=True))


def test_many_decisions_spread():
    """Decisions in flight count: an arm without rewards does not get all of them."""
    chosen = [decision.arm for decision in rb.Bandit(ARMS).decide_many(300)]
    assert min(chosen.count(arm) for arm in ARMS) >= 50


def test_what_does_not_fit_changes_nothing():
    bandit = rb.Bandit(ARMS, rb.RobustMOSS(eps=0.5, u=1.0, horizon=10), max_open=8)
    bandit.decide_many(3)
    before = bandit.to_bytes()
    with raises(
        DecisionError, parameter="max_open", match="3 decisions are open, and 6 more are requested, and max_open"
    ):
        bandit.decide_many(6)
    for n in (0, -1, 1.5, "3", None, True):
        with raises(InvalidInput, parameter="n", rule="an integer from 1"):
            bandit.decide_many(n)
    with raises(UnknownArm, value="uk"):
        bandit.decide_many(2, ["uk"])
    bandit.expire(*bandit.open)
    before = bandit.to_bytes()
    with pytest.raises(HorizonReached, match="8 more requested"):
        bandit.decide_many(8)
    assert bandit.to_bytes() == before
    assert len(bandit.decide_many(7)) == 7


def test_no_arm_to_decide_among():
    bandit = rb.Bandit(ARMS, rb.UCB1())
    bandit.pause_arm("us")
    with pytest.raises(UnavailableArm):
        bandit.decide_many(2, ["us"])
    assert bandit.open == ()


def test_no_other_decision_comes_between():
    bandit, found = rb.Bandit(ARMS, rb.UCB1(), compile="now"), []

    def decide():
        found.extend([int(d.id.rpartition("-")[2]) for d in bandit.decide_many(50)] for _ in range(20))

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(numbers == list(range(numbers[0], numbers[0] + 50)) for numbers in found)
    assert bandit.open_count == 4 * 20 * 50


def test_an_allocation_has_the_floor_exactly():
    bandit = rb.Bandit(["a", "b", "c"], minimize=True, floor={"c": 0.1}, seed=1)
    plain = rb.Bandit(["a", "b", "c"], minimize=True)
    for k in range(60):
        for each in (bandit, plain):
            each.update("abc"[k % 3], 1.0 + k % 7 + k % 3)
    shares, expected = bandit.allocation(40), plain.allocation(40)
    assert shares == {arm: pytest.approx(0.1 * (arm == "c") + 0.9 * expected[arm], abs=1e-15) for arm in "abc"}
    assert bandit.allocation(40) == shares
    bandit.pause_arm("c")
    plain.pause_arm("c")
    assert bandit.allocation(40) == plain.allocation(40)  # no arm of the floor is left
