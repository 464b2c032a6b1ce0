"""Decisions that edges make: which are counted, against a plain model; the limits; and allocations."""

import random
from collections import deque

import pytest

from helpers.amount import amount
from helpers.invalid import raises
from helpers.journals import Journal
from robandit.decisions import edges
from robandit.decisions.edges import Allocation, Edges, Life, Meter, Observation
from robandit.errors import Conflict


def allocated(journal, version="v1", valid_for=1.0):
    """Make an allocation, and return it with its arms."""
    experiment = journal.experiment
    return experiment.allocate(experiment.allocating(valid_for)(), experiment.epoch, version)


def observation(made, number, *, life="edge0001", arm=None, **fields):
    """Return a decision of an edge; by default for an arm that is possible."""
    arm = arm or next(iter(made.shares))
    given = {"decided": 1_800_000_000.0, "value": 1.0} | fields
    if given["value"] is None:
        given["expired"] = True
    return Observation(f"{life}-{number}", arm, made.shares.get(arm, 0.5), made.version, **given)


def observe(journal, *given):
    return journal.experiment.observe(list(enumerate(given)), {})


def numbers_of(result):
    return {name: n for name in ("learned", "late", "expired", "replayed") if (n := getattr(result, name))}


# --- counting -----------------------------------------------------------------------------------------------------------------


def test_a_life_is_a_set_of_numbers():
    rng = random.Random(1)
    for _ in range(amount(30, 1000)):
        life, model, runs = Life(1), set(), 0
        for _ in range(200):
            number = rng.randrange(80)
            assert life.has(number) == (number in model)
            if number not in model:
                runs += life.add(number)
                model.add(number)
        assert life.limits == sorted(life.limits)
        assert len(set(life.limits)) == len(life.limits) == 2 * runs
        assert {n for n in range(100) if life.has(n)} == model


def test_repeats_and_overlaps_count_once():
    """Random batches that overlap, of several lives, against a dictionary."""
    journal, rng, known = Journal(), random.Random(2), {}
    made, *_ = allocated(journal)
    arms = journal.experiment.bandit.arms
    for _ in range(amount(60, 1000)):
        life, first = f"edge{rng.randrange(3):04d}", rng.randrange(100)
        given = [
            observation(made, n, life=life, arm=arms[n % 3], value=float(n) if n % 5 else None)
            for n in rng.sample(range(first, first + 30), 20)
        ]
        new = [each for each in given if each.id not in known]
        result = observe(journal, *given)
        known |= {each.id: each for each in given}
        assert result.learned + result.expired == len(new)
        assert result.replayed == len(given) - len(new)
        assert not result.refused
    counts = journal.experiment.counts
    rewarded = [each for each in known.values() if each.value is not None]
    assert counts["decided"] == len(known)
    assert counts["rewarded"] == len(rewarded)
    assert counts["expired"] == len(known) - len(rewarded)
    pulls = {arm: n for arm, _, n in journal.experiment.bandit.pulls()}
    assert pulls == {arm: sum(each.arm == arm for each in rewarded) for arm in arms}
    assert journal.folded().snapshot().content == journal.snapshot()


def test_what_is_learned_is_what_a_bandit_learns_from_the_same_pulls():
    journal, other = Journal(), Journal()
    made, *_ = allocated(journal)
    values = [0.5, -2.0, 3.0, 1e-9]
    observe(journal, *(observation(made, n, value=value) for n, value in enumerate(values)))
    for value in values:
        other.experiment.reward(other.experiment.decide(arm="a").event.id, value)
    assert repr(journal.experiment.bandit.estimates()) == repr(other.experiment.bandit.estimates())
    observe(journal, observation(made, 9, value=None))
    other.experiment.decide(arm="a")  # an expired decision stays a pull without a reward
    unrewarded = [each.experiment.bandit._engine.state.unrewarded.tolist() for each in (journal, other)]
    assert unrewarded[0] == unrewarded[1]


def test_a_late_reward_expires_its_decision():
    for on_expiry in ("drop", -1.0):
        journal = Journal(reward_window=10.0, on_expiry=on_expiry)
        made, *_ = allocated(journal)
        now = journal.clock.now
        given = [observation(made, n, decided=now - age, value=2.0) for n, age in enumerate((10.0, 10.1))]
        assert numbers_of(observe(journal, *given)) == {"learned": 1, "late": 1}
        counts = journal.experiment.counts
        assert [counts[kind] for kind in ("decided", "rewarded", "late", "expired")] == [2, 1, 1, 1]
        assert journal.experiment.bandit.pulls()[0][2] == (1 if on_expiry == "drop" else 2)
        assert journal.folded().snapshot().content == journal.snapshot()


def test_an_unstored_batch_takes_effect_again():
    """The items before one in the same batch are known only to this attempt."""
    journal = Journal()
    made, *_ = allocated(journal)
    given = observation(made, 0)
    result = observe(journal, given, given, observation(made, 0, value=2.0))
    assert numbers_of(result) == {"learned": 1, "replayed": 1}
    assert [(place, error.code) for place, error in result.refused] == [(2, "conflict")]


# --- limits -------------------------------------------------------------------------------------------------------------------


def test_a_life_that_is_forgotten_is_never_counted_twice(monkeypatch):
    monkeypatch.setattr(edges, "MOST_LIVES", 10)
    monkeypatch.setattr(edges, "FORGOTTEN_AT_ONCE", 2)
    journal = Journal()
    counted = []
    for k in range(40):
        if not k % 4:
            journal.clock.now += 1.0
            made, *_ = allocated(journal, f"v{k}", valid_for=0.5 if k % 8 else 0.6)
        given = observation(made, 0, life=f"edge{k:04d}")
        if observe(journal, given).learned:
            counted.append(given)
    assert len(journal.experiment.edges.lives) <= 10
    before = journal.experiment.counts["decided"]
    result = observe(journal, *counted)
    assert result.learned == 0
    assert {error.code for _, error in result.refused} == {"too-old"}
    assert result.replayed + len(result.refused) == len(counted)
    assert journal.experiment.counts["decided"] == before
    assert len(counted) > 30
    assert journal.folded().snapshot().content == journal.snapshot()


def test_a_forgotten_life_that_comes_back_counts_only_newer_allocations(monkeypatch):
    monkeypatch.setattr(edges, "MOST_LIVES", 10)
    monkeypatch.setattr(edges, "FORGOTTEN_AT_ONCE", 2)
    journal = Journal()
    first, *_ = allocated(journal, "v1")
    early = [observation(first, number) for number in range(5)]
    assert observe(journal, *early).learned == 5
    journal.clock.now += 1.0
    second, *_ = allocated(journal, "v2")
    observe(journal, *(observation(second, 0, life=f"edge1{k:03d}") for k in range(10)))
    assert "edge0001" not in journal.experiment.edges.lives
    journal.clock.now += 1.0
    third, *_ = allocated(journal, "v3")
    assert observe(journal, observation(third, 10)).learned == 1
    for _ in range(2):
        result = observe(journal, *early)
        assert numbers_of(result) == {}
        assert {error.code for _, error in result.refused} == {"too-old"}
        journal.restart(journal.snapshot())
    assert numbers_of(observe(journal, observation(third, 10), observation(third, 11))) == {"learned": 1, "replayed": 1}
    assert journal.folded().snapshot().content == journal.snapshot()


def test_new_lives_are_counted_while_the_probabilities_stay_the_same(monkeypatch):
    monkeypatch.setattr(edges, "MOST_LIVES", 10)
    monkeypatch.setattr(edges, "FORGOTTEN_AT_ONCE", 2)
    journal = Journal(arms=["a"])
    for k in range(100):
        made, *_ = journal.experiment.allocation(1.0) or allocated(journal, f"v{k}")
        assert numbers_of(observe(journal, observation(made, 0, life=f"edge{k:04d}"))) == {"learned": 1}
    assert len(journal.experiment.edges.allocations) < 60
    assert journal.folded().snapshot().content == journal.snapshot()


def test_runs_that_are_forgotten_are_never_counted_twice(monkeypatch):
    monkeypatch.setattr(edges, "MOST_RUNS", 20)
    journal = Journal()
    made, *_ = allocated(journal)
    evens = [observation(made, 2 * n) for n in range(100)]
    assert observe(journal, *evens).learned == 100
    known = journal.experiment.edges
    assert sum(len(life.limits) // 2 for life in known.lives.values()) == known._runs <= 20
    result = observe(journal, *evens, *(observation(made, 2 * n + 1) for n in range(100)))
    assert 0 < result.replayed <= 20
    assert 0 < result.learned <= 21  # in the gaps of the newest runs
    assert {error.code for _, error in result.refused} == {"too-old"}
    assert journal.folded().snapshot().content == journal.snapshot()


def test_the_newest_allocations_are_kept(monkeypatch):
    monkeypatch.setattr(edges, "MOST_ALLOCATIONS", 5)
    monkeypatch.setattr(edges, "MOST_SHARES", 8)
    kept = Edges()
    for n in range(7):
        shares = {"a": 0.5, "b": 0.5} if n == 6 else {"a": 1.0}
        kept.allocate(Allocation(n + 1, f"v{n}", shares, 0.0, 1.0, 1), ("a", "b"))
    assert list(kept.allocations) == ["v2", "v3", "v4", "v5", "v6"]
    kept.allocate(Allocation(9, "v9", dict.fromkeys("abcdefg", 1 / 7), 0.0, 1.0, 1), tuple("abcdefg"))
    assert list(kept.allocations) == ["v9"]


def test_refusals_by_name():
    journal = Journal()
    made, *_ = allocated(journal)
    given = [
        observation(made._replace(version="other"), 0),
        Observation("edge0001-1", "a", 0.7, made.version, 0.0, value=1.0),
        observation(made, 2, arm="z"),
        observation(made, 3),
    ]
    result = observe(journal, *given)
    assert result.learned == 1
    assert [(place, error.code) for place, error in result.refused] == [
        (0, "unknown-allocation"),
        (1, "propensity"),
        (2, "invalid"),
    ]


# --- allocations ---------------------------------------------------------------------------------------------------------------


def test_an_allocation_is_shared_until_its_time_is_over_or_the_arms_change():
    journal = Journal()
    experiment = journal.experiment
    assert allocated(journal, "v0").allocation.valid_for == 0.1  # the first ones are short
    journal.clock.now += 5.0
    assert allocated(journal, "v0b").allocation.valid_for == 0.25
    journal.clock.now += 100.0
    for k in range(4):  # without decisions, the assumed rate halves until each arm has one
        made, arms, _ = allocated(journal, f"v1.{k}")
        journal.clock.now += 1.0 if k < 3 else 0.0
    assert (made.valid_for, arms) == (1.0, ("a", "b", "c"))
    assert experiment.allocation(1.0).allocation is made
    assert allocated(journal, "v2").allocation is made  # somebody else was first
    journal.clock.now += 0.5
    assert experiment.allocation(0.4) is None
    assert experiment.allocation(100.0).allocation is made
    journal.clock.now += 0.5
    assert experiment.allocation(100.0) is None
    before = len(journal.events)
    assert allocated(journal, "v3").allocation is made  # nothing has changed, so nothing is stored
    assert len(journal.events) == before
    assert experiment.allocation(1.0).allocation is made
    experiment.change_arm("b", "paused")
    assert experiment.allocation(1.0) is None
    newer, arms, _ = allocated(journal, "v4")
    assert newer.version == "v4"
    assert arms == ("a", "c")
    computed, epoch = experiment.allocating(1.0)(), experiment.epoch
    experiment.change_arm("b", "active")
    assert experiment.allocate(computed, epoch, "v5") is None
    experiment.reset(1)
    assert experiment.allocation(1.0) is None
    assert observe(journal, observation(newer, 0)).refused[0][1].code == "unknown-allocation"
    experiment.pause()
    with raises(Conflict, code="paused") as caught:
        experiment.allocation(1.0)
    assert caught.value.code == "paused"


def test_the_measured_rate_is_that_of_decisions_by_call_and_by_edges():
    journal = Journal(policy="AdaKLUCB()")
    experiment = journal.experiment
    for k in range(200):
        journal.clock.now += 0.05
        if k % 2:
            experiment.decide()
        else:
            made = experiment.edges.newest or allocated(journal).allocation
            observe(journal, observation(made, k, decided=journal.clock.now - 1.0))
    computed = experiment.allocating(10.0)()  # half a second, because the first one is 10 seconds old
    assert computed.decisions == pytest.approx(10, rel=0.15)
    assert computed.before == pytest.approx(10, abs=3)  # 10 per second of a delay of 1 second
    journal.clock.now += 1_000.0
    assert experiment.allocating(1.0)().decisions == 15  # half the rate of the first one: 3 in 0.1 s


@pytest.mark.parametrize("wrong", [-1e9, -3_600.0, -60.0, 60.0, 3_600.0])
def test_edges_whose_clocks_are_wrong_are_not_taken_for_slow_ones(wrong):
    journal = Journal()
    experiment = journal.experiment
    in_flight = deque()
    for k in range(200):
        journal.clock.now += 0.05
        made, *_ = experiment.allocation(1.0) or allocated(journal, f"v{k}")
        decided = journal.clock.now + wrong
        in_flight.append(observation(made, k, decided=decided, rewarded=decided + 0.4))
        if len(in_flight) > 10:
            observe(journal, in_flight.popleft())
    assert experiment.meter.rates(journal.clock.now)[1] == pytest.approx(
        10.0, abs=4.0
    )  # 20 per second, for half a second


def test_a_decision_is_not_older_than_its_allocation():
    known = Edges()
    known.allocate(Allocation(1, "v1", {"a": 1.0}, 100.0, 2.0, 1), ("a",))
    cases = [
        (110.0, None, 5.0),
        (0.0, None, 15.0),
        (200.0, None, 0.0),
        (110.0, 114.0, 5.0),
        (110.0, 111.0, 3.0),
        (0.0, 1.0, 3.0),
    ]
    cases += [(200.0, 203.0, 3.0), (200.0, 300.0, 15.0), (200.0, 199.0, 0.0)]
    assert [known.time_in_flight("v1", decided, rewarded, 115.0) for decided, rewarded, _ in cases] == [
        each[2] for each in cases
    ]
    assert known.time_in_flight("gone", 110.0, None, 115.0) == 5.0


def test_a_meter_forgets():
    meter = Meter()
    assert meter.rates(5.0) == (0.0, 0.0)
    for second in range(100):
        meter.add(float(second), 7, 14.0)
    assert meter.rates(99.5) == pytest.approx((7.0, 14.0), rel=0.15)
    assert meter.rates(200.0) == (0.0, 0.0)
