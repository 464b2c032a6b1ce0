"""Bandits with features: contexts are checked, stay with their decisions, and replay to the same bytes."""

import re
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import CorruptFile, DecisionError, DriftWarning, InvalidInput, NotApplicable
from robandit.features import FIRST
from robandit.live.saving import HEADER

FEATURES = {"tokens": rb.Number(log=True), "region": rb.Category(["eu", "us"])}
SCALED = {"size": rb.Number(center=0.0, scale=1.0), "region": rb.Category(["eu", "us"])}
POLICIES = [
    *(rb.AdaClipTS(), rb.AdaClipUCB(), rb.LinUCB(), rb.LinEpsilonGreedy(), rb.Floor(rb.AdaClipTS(), share=0.2)),
    *(rb.UCB1(), rb.Probing(rb.LinUCB())),
]


def made(policy=None, features=FEATURES, **options):
    options = {"minimize": True, "seed": 3, "clock": lambda: 1.0, "compile": "never"} | options
    return rb.Bandit(["a", "b", "c"], policy, features=features, **options)


def live(bandit, steps, seed=0):
    """Use everything that a bandit with features can do."""
    rng, open_decisions = np.random.default_rng(seed), []
    for i in range(steps):
        context = {"tokens": float(np.exp(rng.normal(5.0, 1.0))), "region": str(rng.choice(["eu", "us"]))}
        if i % 9 == 0:
            bandit.select(context={"tokens": 3.0, "region": "eu"})
            bandit.select(["a", "b"], context=context)
        if i % 7 == 3:
            open_decisions += bandit.decide_many(2, contexts=[context, {"tokens": 9.0, "region": "us"}])
        else:
            open_decisions.append(bandit.decide(context=context, **({"arm": "b"} if i % 13 == 5 else {})))
        if i == steps // 2:
            bandit.add_arm("d")
            bandit.pause_arm("a")
        if i % 10 == 8:
            bandit.expire(open_decisions.pop(0))
        while len(open_decisions) > 8:
            decision = open_decisions.pop(int(rng.integers(len(open_decisions))))
            bandit.reward(decision, float(rng.pareto(1.8)) + (decision.arm == "b"))
        if i % 11 == 0:
            bandit.update("b", 2.0, context=context)
    return context


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_log_replays_to_the_same_bytes_and_a_file_goes_on(policy):
    log = []
    bandit = made(policy, log=log.append)
    context = live(bandit, 110)
    assert sum(isinstance(event, rb.events.Scaled) for event in log) == 1
    again = made(policy)
    for event in log:
        again.apply(event.to_dict())
    assert again.to_bytes() == bandit.to_bytes()
    loaded = rb.Bandit.from_bytes(bandit.to_bytes(), clock=lambda: 1.0, compile="never")
    assert loaded.to_bytes() == bandit.to_bytes()
    assert loaded.features == bandit.features == FEATURES
    with_pick = bandit.select(context=context)
    copy = rb.Bandit.from_bytes(bandit.to_bytes(), clock=lambda: 1.0, compile="never")
    assert copy.select(context=context) == with_pick
    assert copy.to_bytes() == bandit.to_bytes()
    for each in (loaded, bandit):
        live_on = [each.decide(context=context).arm for _ in range(5)]
        each.reward(each.open[0], 3.0)
        assert live_on == live_on
    assert [row["pulls"] for row in loaded.estimates()] == [row["pulls"] for row in bandit.estimates()]


def test_a_late_reward_is_learned_with_the_x_of_its_decision():
    late, plain = made(rb.LinUCB(), SCALED), made(rb.LinUCB(), SCALED)
    contexts = [{"size": float(i), "region": "eu" if i % 3 else "us"} for i in range(12)]
    decisions = [late.decide(context=context, arm="a") for context in contexts]
    for i in (5, 3, 11, 0, 7):
        late.reward(decisions[i].id, 2.0 * i)
        plain.update("a", 2.0 * i, context=contexts[i])
    at = {"size": 2.5, "region": "eu"}
    mine, its = late.explain(context=at)["arms"][0], plain.explain(context=at)["arms"][0]
    assert mine["mean"] == pytest.approx(its["mean"], rel=1e-12)
    assert mine["width"] < its["width"]  # seven decisions are open


def test_numbers_get_their_scale_once_and_are_ignored_before():
    log = []
    bandit = made(log=log.append)
    rng = np.random.default_rng(1)
    for _ in range(FIRST - 1):
        bandit.update("a", 1.0, context={"tokens": float(np.exp(rng.normal())), "region": "eu"})
    decision = bandit.decide(context={"tokens": 5.0, "region": "eu"})
    assert bandit.explain(decision)["features"]["tokens"] == 0.0
    assert [type(event).__name__ for event in log[-2:]] == ["Decided", "Scaled"]
    before = log[-1]
    features = bandit.explain(context={"tokens": 7.0, "region": "eu"})["features"]
    assert features["tokens"] == pytest.approx((np.log(7.0) - before.center) / before.scale)
    assert bandit.explain(decision)["features"]["tokens"] == 0.0
    live(bandit, 20)
    assert sum(isinstance(event, rb.events.Scaled) for event in log) == 1


def test_select_answers_for_its_context_until_the_next_event():
    bandit = made(features=SCALED)
    contexts = [{"size": float(i), "region": "eu"} for i in range(8)]
    for i in range(60):
        bandit.update("abc"[i % 3], float(i % 5), context=contexts[i % 8])
    first = [bandit.select(context=context) for context in contexts]
    repeated = bandit.select(context=contexts[-1])
    assert repeated == first[-1]
    assert all(bandit.select(context=contexts[-1]) == repeated for _ in range(20))


def test_explanations():
    bandit = made(features=SCALED)
    for i in range(60):
        bandit.update("abc"[i % 3], float(i % 5) + (i % 3), context={"size": 0.1 * (i % 7), "region": "eu"})
    context = {"size": 0.3, "region": "us"}
    data = bandit.to_bytes()
    answer = bandit.explain(context=context)
    assert bandit.to_bytes() == data
    assert answer["features"] == {"intercept": 1.0, "size": 0.3, "region=eu": 0.0, "region=us": 1.0}
    assert [row["arm"] for row in answer["arms"]] == ["a", "b", "c"]
    assert sum(row["chance"] for row in answer["arms"]) == pytest.approx(1.0, abs=1e-7)
    decision = bandit.decide(context=context)
    row = next(row for row in answer["arms"] if row["arm"] == decision.arm)
    assert decision.propensity == row["chance"]
    with raises(InvalidInput, parameter="context", rule="left out with a decision"):
        bandit.explain(decision.id, context=context)
    explained = bandit.explain(decision.id)
    assert (explained["id"], explained["arm"]) == (decision.id, decision.arm)
    assert explained["propensity"] == decision.propensity
    bandit.reward(decision, 1.0)
    with raises(DecisionError):
        bandit.explain(decision)
    assert bandit.estimates()[0]["mean"] > 0.0  # costs keep their sign
    greedy = made(rb.LinUCB(), SCALED)
    greedy.update("b", 1.0, context=context)
    assert sorted(row["chance"] for row in greedy.explain(context=context)["arms"]) == [0.0, 0.0, 1.0]


def test_costs_are_learned_per_context():
    bandit = made(features={"long": rb.Category([False, True])})
    rng = np.random.default_rng(2)
    right = []
    for _ in range(300):
        long = bool(rng.integers(2))
        arm = bandit.select(context={"long": long})
        cost = {"a": 1.0 + 3.0 * long, "b": 2.0, "c": 5.0}[arm]
        bandit.update(arm, cost + 0.1 * float(rng.standard_normal()), context={"long": long})
        right.append(arm == ("b" if long else "a"))
    assert np.mean(right[100:]) > 0.95


def test_threads_share_a_bandit():
    log = []
    bandit = made(features=SCALED, log=log.append)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(15):
            context = {"size": float(rng.standard_normal()), "region": "eu"}
            decision = bandit.decide(context=context)
            bandit.reward(decision, float(rng.pareto(2.0)))
            bandit.update(bandit.select(context=context), 1.0, context=context)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.counters()["rewards"] == 120
    again = made(features=SCALED)
    for event in log:
        again.apply(event)
    assert again.to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("changes", [False, True])
def test_drift_warnings_are_about_residuals(changes):
    """The mix of contexts changes at 1,500. That changes rewards, and not the laws given x: only a change of these warns."""
    bandit = rb.Bandit(["a"], rb.LinUCB(), features={"long": rb.Category([False, True])}, seed=0)
    rng = np.random.default_rng(4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(3000):
            long = bool(rng.random() < (0.1 if i < 1500 else 0.9))
            shift = 2.0 if changes and i >= 1500 else 0.0
            bandit.update("a", 5.0 * long + shift + float(rng.standard_normal()), context={"long": long})
    assert any(issubclass(each.category, DriftWarning) for each in caught) == changes
    if changes:  # positions count the first rewards, too, which the detector does not read
        start = re.search(r"changed around its reward ([\d,]+)", str(caught[0].message))
        assert 1450 < int(start[1].replace(",", "")) < 1550


def test_no_drift_warning_while_the_policy_learns_where_noise_depends_on_the_context():
    """The policy gives fewer and fewer contexts to a worse arm, so the law of its residuals changes. Six of 24 runs warned."""
    warned = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        features = {"long": rb.Number(center=0.0, scale=1.0), "kind": rb.Category(["x", "y"])}
        bandit = rb.Bandit(["a", "b", "c"], rb.AdaClipUCB(), features=features, minimize=True, seed=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(1500):
                long, kind = float(rng.standard_normal()), "xy"[rng.integers(2)]
                arm = bandit.select(context={"long": long, "kind": kind})
                slope = {"ax": 0.3, "ay": 0.1, "bx": 0.1, "by": 0.3, "cx": 0.4, "cy": 0.2}[arm + kind]
                mean = {"a": 1.0, "b": 1.2, "c": 0.8}[arm] + slope * max(long + 2.0, 0.05)
                bandit.update(arm, mean * float(rng.lognormal(-0.5, 1.0)), context={"long": long, "kind": kind})
        warned += any(issubclass(each.category, DriftWarning) for each in caught)
    assert warned <= 1  # at most 1 % of arms


@pytest.mark.parametrize(
    "call",
    [
        lambda bandit: bandit.decide(),
        lambda bandit: bandit.select(),
        lambda bandit: bandit.update("a", 1.0),
        lambda bandit: bandit.decide_many(2),
        lambda bandit: bandit.decide(context={"size": 1.0, "region": "asia"}),
        lambda bandit: bandit.decide(context={"size": 1.0, "regoin": "eu"}),
        lambda bandit: bandit.decide_many(2, contexts=[{"size": 1.0, "region": "eu"}]),
        lambda bandit: bandit.decide_many(2, contexts=[{"size": 1.0, "region": "eu"}, {"size": 1.0}]),
        lambda bandit: bandit.update_many(["a"], [1.0]),
        lambda bandit: bandit.allocation(10),
        lambda bandit: bandit.apply(rb.events.Observed(arm="a", value=1.0)),
        lambda bandit: bandit.apply(rb.events.Observed(arm="a", value=1.0, x=(1.0, 2.0))),
        lambda bandit: bandit.apply(rb.events.Observed(arm="a", value=1.0, x=(1.0, float("nan"), 0.0, 1.0))),
        lambda bandit: bandit.apply(rb.events.Scaled(feature="size", center=0.0, scale=1.0)),
    ],
)
def test_wrong_calls_change_nothing(call):
    bandit = made(features=SCALED)
    bandit.update("a", 1.0, context={"size": 1.0, "region": "eu"})
    before = bandit.to_bytes()
    with pytest.raises((InvalidInput, NotApplicable)):
        call(bandit)
    assert bandit.to_bytes() == before


def test_contexts_need_features():
    bandit = rb.Bandit(["a", "b"], compile="never")
    for call in (bandit.decide, bandit.select, lambda context: bandit.update("a", 1.0, context=context)):
        with raises(InvalidInput, parameter="context"):
            call(context={"size": 1.0})
    with raises(InvalidInput, parameter="x"):
        bandit.apply(rb.events.Observed(arm="a", value=1.0, x=(1.0,)))
    with raises(InvalidInput, parameter="sticky_for"):
        made(sticky_for=60.0)
    with raises(NotApplicable):
        made(drift="restart")
    assert rb.Bandit(["a"], features=SCALED).policy == rb.AdaClipTS(d=4)


def test_a_damaged_file_is_refused(tmp_path):
    import hashlib

    import msgspec

    bandit = made(features=SCALED)
    bandit.decide(context={"size": 1.0, "region": "eu"})
    fields = msgspec.msgpack.decode(bandit.to_bytes()[HEADER:])
    for place, wrong in ((3, b""), (4, b"12345678"), (0, {"size": {"type": "number"}})):
        broken = dict(fields, contexts=[*fields["contexts"][:place], wrong, *fields["contexts"][place + 1 :]])
        payload = msgspec.msgpack.encode(broken)
        path = Path(tmp_path) / "bandit"
        path.write_bytes(bandit.to_bytes()[: HEADER - 32] + hashlib.sha256(payload).digest() + payload)
        with raises(CorruptFile):
            rb.Bandit.load(path)


@pytest.mark.parametrize(("minimize", "sign", "warns"), [(False, 1.0, True), (True, -1.0, True), (True, 1.0, False)])
def test_a_calm_leader_against_an_arm_with_rare_large_rewards_is_warned_of(minimize, sign, warns):
    """The negative control: rare large costs, which AdaClip may clip."""
    bandit = made(features={"f": rb.Category(["x"])}, minimize=minimize)
    rng = np.random.default_rng(5)
    for reward in (0.1, 0.3, 0.2, 3.0, 0.4):
        bandit.update("b", sign * reward, context={"f": "x"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(600):
            bandit.update("a", sign * (1.0 + 0.1 * float(rng.standard_normal())), context={"f": "x"})
    found = [each for each in caught if issubclass(each.category, rb.errors.AssumptionWarning)]
    assert len(found) == warns
    if warns:
        assert "LinStudentTS" in str(found[0].message)
