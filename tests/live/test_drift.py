"""Rewards that change: a live bandit warns once per alarm, changes no decision, and can probe or restart."""

import copy
import warnings

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from helpers.live_bandits import ARMS
from robandit.errors import DriftWarning, InvalidInput, NotApplicable
from robandit.live.memory import WATCHED, Memory


def changing(rng, before=1000, after=400, factor=5.0):
    return np.concatenate([rng.lognormal(0.0, 0.5, before), factor * rng.lognormal(0.0, 0.5, after)]).tolist()


def heard(act):
    """Return the texts of the drift warnings that ``act`` issues."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(each.message) for each in caught if each.category is DriftWarning]


@pytest.mark.parametrize("minimize", [False, True])
def test_a_change_is_told_once_in_words(minimize):
    rewards = changing(np.random.default_rng(0))
    bandit = rb.Bandit(["eu", "us"], rb.UCB1(), minimize=minimize)
    texts = heard(lambda: bandit.update_many(["eu"] * len(rewards), rewards))
    assert len(texts) == 1
    before, after = np.median(rewards[:1000]), np.median(rewards[1000:])
    words, numbers = texts[0].split("\n")
    assert words.startswith("arm 'eu' changed around its reward 1,00")
    assert "the probability of any false alarm per arm is at most 1 % for any i.i.d. law" in numbers
    (change,) = bandit.diagnose().changes
    assert (change.arm, change.kind) == ("eu", "level up"), "in the user's sign"
    assert 990 <= change.changed <= change.noticed <= 1050
    assert change.before.median == pytest.approx(before, rel=0.2)
    assert change.after.median == pytest.approx(after, rel=0.5)
    assert str(change) in str(bandit.diagnose())
    # The alarm is known to the saved bandit and its copies.
    assert rb.Bandit.from_bytes(bandit.to_bytes()).diagnose().changes == (change,)
    again = copy.deepcopy(bandit)
    more = (5.0 * np.random.default_rng(1).lognormal(0.0, 0.5, 500)).tolist()
    assert heard(lambda: again.update_many(["eu"] * 500, more)) == []
    assert again.diagnose().changes == (change,)


def test_the_newest_rewards_count_in_diagnose_without_a_trace():
    """The detector takes rewards in groups; `diagnose` does not wait for the next group."""
    rewards = changing(np.random.default_rng(0), before=WATCHED * 16, after=WATCHED - 1)
    bandit = rb.Bandit(["eu", "us"], rb.UCB1())
    assert heard(lambda: bandit.update_many(["eu"] * len(rewards), rewards)) == []
    before = bandit.to_bytes()
    assert len(bandit.diagnose().changes) == 1
    assert bandit.to_bytes() == before
    assert len(heard(lambda: bandit.update("eu", 5.0))) == 1


def test_late_rewards_are_watched_too():
    bandit = rb.Bandit(["eu"], rb.UCB1())
    rewards = changing(np.random.default_rng(0))

    def live():
        for reward in rewards:
            bandit.reward(bandit.decide(), reward)

    assert len(heard(live)) == 1


def test_steady_rewards_raise_no_alarm():
    """Expected: at most 1 % of 40 arms. More than 4 have a probability below 1e-4."""
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        bandit = rb.Bandit(["normal", "heavy", "zeros", "coin"], rb.UCB1())
        columns = (rng.normal(size=2000), rng.pareto(1.1, 2000), rng.pareto(1.5, 2000) * (rng.random(2000) < 0.6))
        coin = (rng.random(2000) < 0.01).astype(float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for arm, rewards in zip(bandit.arms, (*columns, coin), strict=True):
                bandit.update_many([arm] * 2000, rewards)
        alarms += len(bandit.diagnose().changes)
    assert alarms <= 4


def test_the_detector_changes_no_decision(monkeypatch):
    def decisions():
        rng = np.random.default_rng(3)
        bandit = rb.Bandit(ARMS, rb.AdaKLUCB(), seed=1)
        chosen = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for step in range(2500):
                chosen.append(bandit.select())
                bandit.update(chosen[-1], float(rng.normal(ARMS.index(chosen[-1]) if step < 1500 else -3.0)))
        return chosen, [each for each in caught if each.category is DriftWarning]

    watched, warned = decisions()
    assert warned
    monkeypatch.setattr(Memory, "watch_fresh", lambda self, arm: [])
    alone, silent = decisions()
    assert not silent
    assert alone == watched


@pytest.mark.parametrize(("drift", "wrapped"), [("probe", rb.Probing), ("restart", rb.Restarting)])
@pytest.mark.parametrize("minimize", [False, True])
def test_a_bandit_that_probes_or_restarts(drift, wrapped, minimize):
    bandit = rb.Bandit(["eu", "us"], rb.UCB1(), drift=drift, minimize=minimize, seed=0)
    assert bandit.policy == wrapped(rb.UCB1())
    rewards = changing(np.random.default_rng(0))
    texts = heard(lambda: bandit.update_many(["eu"] * len(rewards), rewards))
    assert len(texts) == 1, "one warning: the bandit's own detector does not repeat the policy's alarm"
    (change,) = bandit.diagnose().changes
    assert (change.arm, change.kind) == ("eu", "level up")
    assert texts[0].startswith(str(change))
    assert bandit.counters()["restarts"] == (drift == "restart")
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    assert again.select() == bandit.select()
    assert again.diagnose().changes == (change,)
    assert heard(lambda: again.update_many(["eu"] * 100, rewards[-100:])) == []
    mean = bandit.estimates()[0]["mean"]
    if drift == "restart":
        assert mean == pytest.approx(np.mean(rewards[1000:]), rel=0.05), "rewards before the change are forgotten"
    else:
        assert mean == pytest.approx(np.mean(rewards))


def test_what_cannot_be_wrapped():
    with raises(InvalidInput, parameter="drift"):
        rb.Bandit(ARMS, drift="forget")
    with pytest.raises(NotApplicable, match="a probe is not its choice"):
        rb.Bandit(ARMS, rb.OptTINF(), drift="restart")
