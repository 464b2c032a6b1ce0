"""The cost model: schedules against brute force and by hand, bytes against real run folders, measured speeds."""

import heapq
import itertools
import math
import random
from dataclasses import replace

import pytest

import robandit as rb
from helpers.small_plan import HORIZON, small_plan
from robandit.errors import InvalidInput
from robandit.experiments import cost as module
from robandit.experiments.cost import FIRST, REPLICATION, better_cut, cost, measure, recorded
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import run
from robandit.experiments.store import Store

PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)


def brute_force(units, workers, compiling=0.0):
    """Return the end time of the last unit (seconds, policy), if each in turn goes to the first free worker."""
    free = [0.0] * workers
    met = [set() for _ in range(workers)]
    for seconds, label in units:
        worker = min(range(workers), key=lambda w: (free[w], w))
        free[worker] += seconds + (0.0 if label in met[worker] else compiling)
        met[worker].add(label)
    return max(free)


def made(batches, *, compiling=0.0, client=0.0, overhead=0.0):
    """Return a cost whose units take exactly these seconds: (units, seconds, policy)."""
    cells = []
    cell = small_plan(policies=[rb.UCB1()]).cells[0]
    for units, seconds, label in batches:
        ns = (seconds - REPLICATION) / HORIZON * 1e9
        cells.append(module.CellCost(replace(cell, label=label), ns, ((units, 1),), 0, 0))
    return module.Cost(tuple(cells), overhead, client, compiling)


def listed(batches):
    return [(seconds, label) for units, seconds, label in batches for _ in range(units)]


def random_batches(rng):
    lengths = [0.5, 1.0, 1.0, 2.0, 3.0, 7.0]
    return [
        (
            rng.randint(1, 12),
            rng.choice(lengths) * (1.0 if rng.random() < 0.5 else rng.random() + 0.1),
            rng.choice("abc"),
        )
        for _ in range(rng.randint(1, 8))
    ]


@pytest.mark.parametrize("compiling", [0.0, 0.7])
def test_schedules_are_those_of_brute_force(compiling):
    rng = random.Random(20240)
    for _ in range(100):
        batches = random_batches(rng)
        for workers in (1, 2, 3, 5, 100):
            found = made(batches, compiling=compiling).time_on(workers)
            assert found == pytest.approx(brute_force(listed(batches), workers, compiling), rel=1e-12)


def test_schedules_lie_between_what_is_guaranteed():
    # More workers never take longer if units do not depend on each other. Compilation makes them dependent.
    rng = random.Random(7)
    for _ in range(100):
        batches = random_batches(rng)
        policies = len({label for _, _, label in batches})
        for compiling in (0.0, 0.4):
            of = made(batches, compiling=compiling)
            longest = of.longest[0]
            assert longest == pytest.approx(max(seconds for _, seconds, _ in batches))
            for workers in (1, 2, 4, 9):
                time = of.time_on(workers)
                assert of.least(workers) == pytest.approx(max(of.work / workers, longest))
                assert of.least(workers) * (1 - 1e-12) <= time
                assert time <= (of.work / workers + longest + (policies + 1) * compiling) * (1 + 1e-12)
        times = [made(batches).time_on(workers) for workers in (1, 2, 3, 4, 5, 9)]
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(times))
        assert times[0] == pytest.approx(sum(seconds for seconds, _ in listed(batches)))


def test_schedules_by_hand():
    # Three units of 2 s and one of 5 s. Two workers: 2, 2, then 2 + 2 = 4 and 2 + 5 = 7.
    of = made([(3, 2.0, "a"), (1, 5.0, "b")])
    assert [of.time_on(n) for n in (1, 2, 3, 4, 50)] == pytest.approx([11.0, 7.0, 7.0, 5.0, 5.0])
    # One worker compiles both (1 s each): 13. Two: 1 + 2 each, then 3 + 2 = 5 (a, compiled) and 3 + 1 + 5 = 9.
    of = made([(3, 2.0, "a"), (1, 5.0, "b")], compiling=1.0)
    assert [of.time_on(n) for n in (1, 2)] == pytest.approx([13.0, 9.0])
    # The order matters: the long one first, and two workers need 2 + 2 + 2 = 6.
    assert made([(1, 5.0, "b"), (3, 2.0, "a")]).time_on(2) == pytest.approx(6.0)


def test_overhead_and_the_client_count():
    of = made([(100, 1.0, "a")], overhead=0.5, client=2.0)
    assert of.work == pytest.approx(150.0)
    assert of.cpu_hours == pytest.approx(350.0 / 3600.0)
    assert of.time_on(1) == pytest.approx(200.0)  # the client takes longer than the worker
    assert (of.time_on(100), of.limit(100)) == (pytest.approx(200.0), "client")
    assert made([(100, 1.0, "a")]).limit(10) == ""
    assert made([(100, 1.0, "a")]).limit(100) == "longest unit"
    assert made([(100, 1.0, "a")]).limit(1) == ""


def test_a_thousand_workers_and_a_million_units():
    # 10 policies x 5 problems x 20,000 replications of 1e7 pulls: each unit is one replication, of 0.1 to 20 s.
    problems = [Played(f"p{i}", rb.problems.gaussian(means=[0.0, -0.5 - i]), 10**7) for i in range(5)]
    policies = [rb.UCB1(scale=0.5 + 0.1 * i) for i in range(10)]
    plan = planned(problems, policies, replications=20_000, seed=1)
    speeds = {cell: 10.0 * 1.7**i for i, cell in enumerate(reversed(plan.cells[:10]))}
    speeds = {cell: speeds[plan.cells[i % 10]] for i, cell in enumerate(plan.cells)}
    of = cost(plan, ns_per_pull=speeds, client=0.0)
    assert of.units == 1_000_000
    assert of.pulls == 10**13
    time = of.time_on(1000)
    assert of.least(1000) * (1 - 1e-12) <= time <= of.work / 1000 + of.longest[0]
    assert of.least(1000) == of.work / 1000  # with so many units, no single one matters
    # The same by an event simulation that does not use that units are equal.
    free = [0.0] * 1000
    for each in of.cells:
        ((units, count),) = each.batches
        seconds = of.overhead + each.playing(count)
        for _ in range(units):
            heapq.heapreplace(free, free[0] + seconds)
    assert time == pytest.approx(max(free), rel=1e-9)


def test_units_are_those_of_the_plan():
    plan = small_plan(replications=22)  # five units of 4, and one of 2
    of = cost(plan, ns_per_pull=dict.fromkeys(plan.cells, 40.0))
    assert of.units == len(plan.units) == 12
    assert of.pulls == sum(unit.pulls for unit in plan.units)
    assert [each.batches for each in of.cells] == [((5, 4), (1, 2))] * 2
    work = sum(module.OVERHEAD + unit.count * (REPLICATION + HORIZON * 40e-9) for unit in plan.units)
    assert of.work == pytest.approx(work)
    few = small_plan(replications=3)
    assert cost(few, ns_per_pull=dict.fromkeys(few.cells, 40.0)).cells[0].batches == ((1, 3),)


def test_units_that_cells_share_count_once(tmp_path):
    twice = planned(
        [Played("a", PROBLEM, 100), Played("b", PROBLEM, 100)], [rb.UCB1(), rb.Uniform()], replications=2, seed=1
    )
    of = cost(twice, ns_per_pull=dict.fromkeys(twice.cells, 40.0))
    assert of.units == run(twice, tmp_path / "run", threads=1).done == 2


def test_a_run_folder_is_not_paid_for_twice(tmp_path):
    plan = small_plan(replications=22)
    assert recorded(plan, tmp_path / "none") == {}
    store = run(plan, tmp_path / "run", threads=1).store
    of = cost(plan, folder=tmp_path / "run")  # all speeds are known
    assert (of.units, of.done, of.pulls, of.bytes, of.work, of.time_on(3)) == (0, 12, 0, 0, 0.0, 0.0)
    for number in (1, 2, 5):  # of the first cell: two of 4 replications, and that of 2
        store.ledger.part(plan.units[number]).unlink()
    of = cost(plan, folder=tmp_path / "run")
    assert of.cells[0].batches == ((2, 4), (1, 2))
    assert (of.units, of.done) == (3, 9)
    speeds = recorded(plan, tmp_path / "run")
    seconds = sum(store.ledger.seconds(unit) for unit in plan.units[6:])
    assert speeds[plan.cells[1]] == pytest.approx(seconds / (22 * HORIZON) * 1e9)


def test_a_store_says_how_it_would_go_on(tmp_path):
    run(small_plan(), tmp_path / "run", threads=1)
    store = Store.open(tmp_path / "run")
    more = store.continued(small_plan(replications=30, pulls=HORIZON))
    assert (more.replications, more.unit_pulls) == (30, 4 * HORIZON)
    with pytest.raises(InvalidInput, match=r"was made with another seed \(7 there, 8 here\)"):
        store.continued(small_plan(seed=8))


@pytest.mark.parametrize(
    ("arms", "horizon", "replications", "pulls"),
    [(2, 500, 20, 2000), (2, 20_000, 200, 10**6), (10, 5000, 100, 10**6), (10, 300, 200, 1)],
)
def test_bytes_are_right_within_a_factor_of_3(arms, horizon, replications, pulls, tmp_path):
    problem = rb.problems.negated_pareto(means=[-1.0 - 0.1 * i for i in range(arms)], tail=1.8)
    plan = planned([Played("p", problem, horizon)], [rb.UCB1(), rb.Uniform()], replications=replications, seed=1)
    plan = replace(plan, unit_pulls=pulls)
    of = cost(plan, ns_per_pull=dict.fromkeys(plan.cells, 40.0))
    kept = plan if len(plan.units) < 50 else replace(plan, replications=20)  # units are alike
    run(kept, tmp_path / "run", threads=2)
    size = sum(path.stat().st_size for name in ("parts", "times") for path in (tmp_path / "run" / name).iterdir())
    assert 1 / 3 <= of.bytes / (size * len(plan.units) / len(kept.units)) <= 3


class Meter:
    """A stand-in for `simulate` that records its calls. The cost of a pull grows with time."""

    def __init__(self, total):
        self.total, self.played = total, []

    def __call__(self, policy, problem, horizon, times, seed, **options):
        assert options == {"threads": 1, "progress": False}
        self.played.append((policy, horizon, times))
        return type("Result", (), {"seconds": [times * self.total(horizon)]})


def test_measuring_plays_growing_prefixes_and_goes_on_from_the_last(monkeypatch):
    meter = Meter(lambda n: 1e-6 * n + 1e-12 * n**2)
    monkeypatch.setattr(module, "simulate", meter)
    plan = planned([Played("p", PROBLEM, h) for h in (400, 8000, 10**6)], [rb.UCB1()], replications=2, seed=1)
    seen = []
    found = measure(plan, seconds=0.08, track=lambda items: (seen.append(len(items)), iter(items))[1])
    assert seen == [1]  # one play for all horizons of a policy on a problem
    assert [n for _, n, _ in meter.played] == [FIRST, 4 * FIRST, 16 * FIRST]  # 64,000 pulls would take it beyond 0.08 s
    short, middle, long = (found[cell] for cell in plan.cells)
    first, second, third = (meter.total(n) for n in (1000, 4000, 16_000))
    assert short == pytest.approx(first / 1000 * 1e9)
    assert middle == pytest.approx((second + (third - second) / 3) / 8000 * 1e9)
    assert long == pytest.approx((third + (third - second) / 12_000 * 984_000) / 1e6 * 1e9)


def test_measuring_plays_short_games_often_and_known_cells_never(monkeypatch):
    meter = Meter(lambda n: 2e-8 * n)
    monkeypatch.setattr(module, "simulate", meter)
    plan = planned([Played("p", PROBLEM, 50)], [rb.AdaTINF(), rb.Uniform()], replications=2, seed=1)
    found = measure(plan, known={plan.cells[1]: 5.0})
    assert found == {plan.cells[0]: pytest.approx(20.0)}
    ((policy, length, times),) = meter.played
    assert (policy.horizon, length, times) == (50, 50, 20)
    meter.played.clear()
    long = planned([Played("p", PROBLEM, 10**6)], [rb.AdaTINF()], replications=2, seed=1)
    measure(long, seconds=1e-9)
    assert [(policy.horizon, length) for policy, length, _ in meter.played] == [
        (10**6, FIRST)
    ]  # prepared for the full horizon


def test_measuring_here():
    plan = planned([Played("p", PROBLEM, 20_000)], [rb.UCB1(), rb.Uniform()], replications=2, seed=1)
    found = measure(plan, seconds=0.2)
    assert set(found) == set(plan.cells)
    assert all(1.0 < speed < 1e5 for speed in found.values())
    assert cost(plan).units == 2  # measured there


def test_another_cut_is_named_where_it_helps():
    plan = planned([Played("p", PROBLEM, 1000)], [rb.UCB1()], replications=100_000, seed=1)
    speeds = dict.fromkeys(plan.cells, 1e5)  # 500 s for each of 20 units
    cut, time = better_cut(plan, speeds, 1000)
    assert cut < plan.unit_pulls
    assert time == cost(replace(plan, unit_pulls=cut), ns_per_pull=speeds).time_on(1000)
    assert time < 0.1 * cost(plan, ns_per_pull=speeds).time_on(1000)
    assert better_cut(plan, speeds, 20) is None
    small = replace(plan, unit_pulls=1000)  # 100,000 units of a hundredth of a second: the client cannot keep up
    cut, time = better_cut(small, dict.fromkeys(plan.cells, 1e4), 1000)
    assert cut > 1000
    assert time == cost(replace(plan, unit_pulls=cut), ns_per_pull=dict.fromkeys(plan.cells, 1e4)).time_on(1000)


def test_wrong_values_are_rejected():
    plan = small_plan()
    speeds = dict.fromkeys(plan.cells, 40.0)
    with pytest.raises(InvalidInput, match="ns_per_pull of UCB1 on p = None must be a finite number > 0"):
        cost(plan, ns_per_pull={})
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="must be a finite number > 0"):
            cost(plan, ns_per_pull=dict.fromkeys(plan.cells, wrong))
    for name in ("overhead", "client", "compiling"):
        with pytest.raises(InvalidInput, match=f"{name} = -1.0 must be"):
            cost(plan, ns_per_pull=speeds, **{name: -1.0})
    for wrong in (0, 1.5, True):
        with pytest.raises(InvalidInput, match=r"workers = .* must be an integer"):
            cost(plan, ns_per_pull=speeds).time_on(wrong)
    with pytest.raises(InvalidInput, match="seconds = 0 must be"):
        measure(plan, seconds=0)
