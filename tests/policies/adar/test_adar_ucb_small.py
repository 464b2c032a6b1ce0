"""AdaR-UCB in short runs of plain Python, every round against the slow reference: small changes of the code show here."""

import copy
import math

import numpy as np
import pytest

from helpers.driving import Plain
from helpers.rewards import KINDS
from references.slow_adar_ucb import SlowAdaRUCB
from robandit.estimators.formulas.threshold import doubled
from robandit.policies import AdaRUCB
from robandit.policies.adar import adar_ucb, layout, trimmed_index

QUICK = {"c": 0.7, "delta_exp": 1.0}
CASES = [  # reward kind, arms, rounds, horizon known?, parameters
    ("losses, tail 1.5", 3, 110, True, QUICK | {"bonus": 1.0}),
    ("student", 2, 110, False, QUICK | {"bonus": "tight", "var_factor": 0.5}),
    ("cauchy", 4, 110, True, {"c": 2.0, "delta_exp": 0.5, "bonus": 0.3}),
    ("gains", 2, 110, False, QUICK | {"solver": "doubling", "bonus": 0.2}),
    ("narrow", 3, 60, True, QUICK | {"bonus": 0.01, "var_factor": 7.0}),
    ("half zeros", 3, 110, True, QUICK | {"guard": 1.5, "tie": "lowest"}),
    ("integers", 3, 80, False, QUICK | {"bonus": 0.05, "tie": "lowest"}),
    ("coins", 4, 80, True, QUICK | {"solver": "doubling", "bonus": 0.1}),
    ("constants", 5, 60, False, QUICK | {"bonus": 0.1}),
    ("losses, tail 1.1", 1, 60, True, QUICK),
    ("constants", 1, 60, True, QUICK),  # all are below the threshold: nothing stays stored
]


def same(said, reference, tau):
    """Each number that the policy says of each arm, against the reference's."""
    for arm in range(len(reference.x)):
        want = reference.terms(arm, tau)
        if want is None:
            assert math.isnan(said["mean"][arm])
            assert said["index"][arm] == math.inf
            continue
        assert said["threshold"][arm] == pytest.approx(want.threshold, rel=1e-11)
        assert abs(said["mean"][arm] - want.mean) <= 1e-11 * max(want.threshold, abs(want.mean))
        assert abs(said["index"][arm] - want.index) <= 1e-10 * want.size
        assert said["share_trimmed"][arm] == want.share_trimmed


@pytest.mark.parametrize(
    ("kind", "arms", "rounds", "known", "given"), CASES, ids=[" ".join(map(str, case[:3])) for case in CASES]
)
def test_every_round_is_the_references(kind, arms, rounds, known, given):
    rng = np.random.default_rng(8)
    rewards = [KINDS[kind](rng, arm, 2 * rounds) for arm in range(arms)]
    live = Plain(AdaRUCB(**given), arms, 2 * rounds if known else None)
    reference = SlowAdaRUCB(arms, **given)
    compared = 0
    for tau in range(1, rounds + 1):
        expected, values = reference.choose(tau)
        arm = live.ask()
        if arm != expected:  # only where rounding decides
            size = max(reference.terms(i, tau).size for i in (arm, expected))
            assert abs(values[arm] - values[expected]) <= 1e-12 * size, tau
        first, second = rewards[arm][2 * len(reference.x[arm]) :][:2]
        live.tell(arm, first)
        assert live.ask() == arm
        live.tell(arm, second)
        reference.learn(arm, first, second)
        if tau % 9 == 0:
            # On a copy: a question brings cached numbers up to date, and decisions must do so themselves.
            asked = Plain(live.policy, arms, None, state=copy.deepcopy(live.s))
            same(asked.describe(), reference, tau + 1)
            compared += all(math.isfinite(v) for v in reference.choose(tau + 1)[1])
    assert compared > 0
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    if rounds / arms > 50:
        assert live.s.arms[:, trimmed_index.MERGED].max() > 0.0  # something was let go of


@pytest.mark.parametrize("solver", ["exact", "doubling"])
def test_lines_are_above_and_events_in_time(solver):
    """From any level up to the event the index stays below its line, and what is cached equals what is computed anew."""
    rng = np.random.default_rng(4)
    policy = AdaRUCB(solver=solver, bonus=0.5, c=0.8, delta_exp=1.0)
    live = Plain(policy, 1, 400)
    for x in rng.standard_t(1.5, 60):
        live.tell(0, x)
    p, s = live.p, live.s
    events = 0
    for level in np.linspace(1.0, 8.0, 25):
        s.arms[0, trimmed_index.EVENT] = -1.0
        value = trimmed_index.index(p, s, 0, level)
        height, slope, until = trimmed_index.outlook(p, s, 0, level)
        assert value < height <= value + 1e-11 * abs(value)  # room for rounding
        last = min(until, 9.0)
        if last <= level:
            continue
        events += until < 9.0
        for later in np.linspace(level, last, 8)[:-1]:
            fresh = copy.deepcopy(s)
            fresh.arms[0, trimmed_index.EVENT] = -1.0
            anew = trimmed_index.index(p, fresh, 0, later)
            assert trimmed_index.index(p, s, 0, later) == pytest.approx(anew, rel=1e-13)
            assert anew <= height + slope * (later - level)
            assert height + slope * (later - level) <= anew + 0.2 * (later - level) * abs(anew) + 1e-9
        if until < 9.0:  # and just behind it something is different
            trimmed, clipped = s.counts[0, layout.BIG_ABOVE], s.counts[0, layout.TOP_ABOVE]
            threshold = s.arms[0, trimmed_index.THRESHOLD]
            fresh = copy.deepcopy(s)
            fresh.arms[0, trimmed_index.EVENT] = -1.0
            trimmed_index.index(p, fresh, 0, until * (1 + 1e-9))
            other = (fresh.counts[0, layout.BIG_ABOVE], fresh.counts[0, layout.TOP_ABOVE]) != (trimmed, clipped)
            assert other or fresh.arms[0, trimmed_index.THRESHOLD] == threshold / 2
    assert events > 5


def at_the_limit(monkeypatch, large, small):
    monkeypatch.setattr(adar_ucb, "LIVE_VALUES", 80)
    live = Plain(AdaRUCB(c=0.2, delta_exp=0.5, bonus=0.1), 1, None)
    assert live.s.clock[layout.LIMIT] == 80
    assert live.s.buffer.shape[2] - 1 == 64
    most = 0
    for x, y in zip(large, small, strict=True):
        live.tell(0, x)
        live.tell(0, y)
        most = max(most, int(live.s.counts[0, layout.BIG]))
    assert live.grown == 1
    assert live.s.buffer.shape[2] - 1 == 80
    assert most == 79  # at the limit the row is thinned at once
    return live


def test_at_the_limit_rewards_of_one_cell_share_a_place(monkeypatch):
    rng = np.random.default_rng(2)
    large = 1e3 * (1.0 + rng.pareto(1.5, 90))
    live = at_the_limit(monkeypatch, large, 1e-3 * rng.standard_normal(90))
    cells = live.s.cells[0]
    assert 1.0 <= cells < 1024.0
    assert live.s.arms[0, trimmed_index.MERGED] < 1.0  # none of the large ones is merged
    assert live.s.arms[0, trimmed_index.BELOW_SUM] == 0.0
    stored = live.s.buffer[0, layout.BIG_VALUE, : live.s.counts[0, layout.BIG]]
    assert set(stored) < set(large)
    assert (np.diff(stored) <= 0.0).all()
    for place, size in enumerate(stored):
        sums = live.s.buffer[0, [trimmed_index.BIG_SUM, trimmed_index.BIG_SQUARES], place]
        bottom = trimmed_index.bottom_of_cell(size, cells)
        cell = large[(large >= bottom) & (large <= size)]
        below = large[large < bottom]
        if np.sum([trimmed_index.bottom_of_cell(other, cells) == bottom for other in stored]) == 1:
            np.testing.assert_allclose(sums, [cell.sum() + below.sum(), (cell**2).sum() + (below**2).sum()], rtol=1e-12)
    before = live.policy.counters(live.s)["fallbacks"]
    live.describe()
    assert live.policy.counters(live.s)["fallbacks"] == before  # asking is not counted
    trimmed_index.refresh(live.p, live.s, 0, 2.0)
    assert live.policy.counters(live.s)["fallbacks"] == before  # the threshold is in no cell of a stored reward
    at = 0.5 * (trimmed_index.bottom_of_cell(stored[5], cells) + stored[5])
    assert trimmed_index.in_cell(live.s, 0, 6, at)
    assert not trimmed_index.in_cell(live.s, 0, 6, 0.5 * stored[5])
    assert not trimmed_index.in_cell(live.s, 0, 0, at)


def test_if_cells_do_not_suffice_the_smallest_are_merged(monkeypatch):
    """Each reward in a power of two of its own."""
    large = 2.0 ** np.arange(90)
    live = at_the_limit(monkeypatch, np.random.default_rng(3).permutation(large), np.resize([-1e-3, 2e-3], 90))
    assert live.s.cells[0] == 1.0
    merged = live.s.arms[0, trimmed_index.MERGED]
    assert merged >= 2.0**9
    before = live.policy.counters(live.s)["fallbacks"]
    trimmed_index.refresh(live.p, live.s, 0, 2.0)
    assert live.policy.counters(live.s)["fallbacks"] == before + 1


def test_doubling_stops_at_the_first_that_is_not_below():
    assert doubled(0.3, 1.0) == 1.2
    assert doubled(0.25, 1.0) == 1.0
    assert doubled(2.0, 1.0) == 2.0


def test_of_arms_to_explore_the_one_with_the_fewest_rounds_is_first():
    live = Plain(AdaRUCB(), 4, None)
    live.s.counts[:, layout.ISSUED_X] = [9, 5, 7, 5]
    live.s.counts[:, layout.N_X] = [9, 5, 7, 5]
    live.s.counts[:, layout.N_NONZERO] = [3, 3, 4, 2]
    assert trimmed_index.forced(live.p, live.s, 4.0) == 1
    assert live.s.clock[layout.LEAST] == 2
    assert trimmed_index.forced(live.p, live.s, 2.0) == 3
    assert trimmed_index.forced(live.p, live.s, 1.9) == -1
    live.s.counts[0, layout.N_X] = 1  # no variance yet
    assert trimmed_index.forced(live.p, live.s, 1.9) == 0
    assert live.s.clock[layout.LEAST] == -1


def test_growth_doubles_the_room():
    live = Plain(AdaRUCB(), 2, None)
    assert live.policy.grow(live.s).buffer.shape == (2, trimmed_index.ROWS, 2 * 64 + 1)


def test_a_round_that_ends_elsewhere_leaves_the_current_one_open():
    live = Plain(AdaRUCB(), 2, None)
    for arm in (1, 0, 1):
        live.issue(arm)
    assert live.s.clock[layout.CURRENT] == 0
    live.issue(0)
    assert live.s.clock[layout.CURRENT] == -1
