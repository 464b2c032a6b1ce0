"""Decisions in flight: they count as pulls, in files and logs too, and what 0.2 wrote goes on by its rule."""

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import CorruptFile, InvalidInput
from robandit.live.saving import HEADER, MAGIC

DEAD = "dead"


def played(bandit, decisions, *, seed=0):
    """Return how often each arm was chosen, if one of them never answers."""
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(bandit.arms, 0)
    for _ in range(decisions):
        decision = bandit.decide()
        counts[decision.arm] += 1
        if decision.arm != DEAD:
            bandit.reward(decision, float(1.0 + rng.pareto(2.5)) * (1.0 if decision.arm == "x" else 1.3))
    return counts


@pytest.mark.parametrize("policy", [rb.AdaKLUCB(), rb.UCB1(), rb.NormalUCB(), rb.Probing(rb.AdaKLUCB())], ids=repr)
def test_an_arm_that_never_answers_loses_its_traffic(policy):
    counts = played(rb.Bandit([DEAD, "x", "y"], policy, minimize=True), 1500)
    assert counts[DEAD] <= 45  # 1,493 when decisions in flight did not count
    assert min(counts.values()) > 1


def test_expired_decisions_stay_counted():
    bandit = rb.Bandit(["a", "b"], minimize=True)
    for k in range(10):
        bandit.update("ab"[k % 2], 1.0 + 0.1 * k)
    waiting = rb.Bandit.from_bytes(bandit.to_bytes())
    decisions = [waiting.decide(arm="a") for _ in range(10)]
    index = waiting.estimates()[0]["index"]
    assert index > bandit.estimates()[0]["index"]  # a lower confidence bound of a cost, which rises
    waiting.expire(*decisions)
    assert waiting.estimates()[0]["index"] == index


def test_decisions_in_flight_survive_saving():
    bandit = rb.Bandit(["a", "b"], minimize=True)
    played(bandit, 30)
    decisions = [bandit.decide() for _ in range(20)]
    bandit.expire(*decisions[:5])
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    assert again.to_bytes() == bandit.to_bytes()
    assert [again.decide().arm for _ in range(50)] == [bandit.decide().arm for _ in range(50)]


def by_the_old_rule(events):
    """Return events as Robandit 0.2 wrote them."""
    return [{name: value for name, value in event.to_dict().items() if name != "rule"} for event in events]


def test_a_log_of_the_old_rule_is_replayed_by_it_and_continued_by_the_new_one():
    log = []
    bandit = rb.Bandit(["a", "b", "c"], minimize=True, log=log.append)
    rng = np.random.default_rng(3)
    waiting = []
    for _ in range(200):
        waiting.append(bandit.decide())
        if rng.random() < 0.8:
            bandit.reward(waiting.pop(int(rng.integers(len(waiting)))), float(rng.lognormal()))
    old = rb.Bandit(["a", "b", "c"], minimize=True)
    for event in by_the_old_rule(log):
        old.apply(event)
    plain = rb.Bandit(["a", "b", "c"], minimize=True)  # nothing was ever in flight here, so no rule applies
    for event in log:
        if type(event).__name__ == "Rewarded":
            arm = next(e.arm for e in log if type(e).__name__ == "Decided" and e.id == event.id)
            plain.update(arm, event.value)
    assert [row["pulls"] for row in old.estimates()] == [row["pulls"] for row in plain.estimates()]
    new = rb.Bandit(["a", "b", "c"], minimize=True)
    for event in log:
        new.apply(event)
    assert new.to_bytes() == bandit.to_bytes()
    assert old.to_bytes() != new.to_bytes()
    # The next decision of its own counts all that are open, and the log says so.
    more = []
    continued = rb.Bandit.from_bytes(old.to_bytes(), log=more.append)
    decisions = [continued.decide() for _ in range(5)]
    assert [event.rule for event in more] == [1] * 5
    for event in more:
        old.apply(event)
    assert old.to_bytes() == continued.to_bytes()
    assert [row["index"] for row in old.estimates()] != [row["index"] for row in plain.estimates()]
    assert len({decision.id for decision in decisions}) == 5


def test_without_decisions_in_flight_both_rules_are_the_same():
    log = []
    two = rb.Bandit(["a", "b"], minimize=True)
    one = rb.Bandit(["a", "b"], minimize=True, log=log.append)
    played(one, 300)
    for event in by_the_old_rule(log):
        two.apply(event)
    assert one.estimates() == two.estimates()


@pytest.mark.parametrize("rule", [-1, 2, 2**62])
def test_an_unknown_rule_is_refused_and_changes_nothing(rule):
    log = []
    rb.Bandit(["a", "b"], log=log.append).decide()
    bandit = rb.Bandit(["a", "b"])
    before = bandit.to_bytes()
    with raises(InvalidInput, parameter="rule"):
        bandit.apply(log[0].to_dict() | {"rule": rule})
    assert bandit.to_bytes() == before


def test_a_file_with_impossible_counts_is_refused():
    import hashlib

    import msgspec

    bandit = rb.Bandit(["a", "b"])
    bandit.decide()
    data = bandit.to_bytes()
    for wrong in ([1, 0], [-1, 0, 1], [1, 0, 0], [1, 0, 2]):
        fields = msgspec.msgpack.decode(data[HEADER:]) | {"unrewarded": wrong}
        payload = msgspec.msgpack.encode(fields)
        crafted = MAGIC + data[len(MAGIC) : len(MAGIC) + 4] + hashlib.sha256(payload).digest() + payload
        with pytest.raises(CorruptFile):
            rb.Bandit.from_bytes(crafted)
