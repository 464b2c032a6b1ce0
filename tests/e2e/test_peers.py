"""What ``make bench-peers`` compares with: the NumPy AdaR-UCB is AdaR-UCB, and a peer that is missing is said to be."""

import sys
from pathlib import Path

import numpy as np
import pytest

import robandit as rb

FOLDER = str(Path(__file__).parents[2] / "benchmarks" / "peers")


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import adar_numpy
    import page

    yield adar_numpy, page
    for name in [
        name for name, module in sys.modules.items() if str(getattr(module, "__file__", "")).startswith(FOLDER)
    ]:
        del sys.modules[name]  # their names are short


def test_the_numpy_adar_ucb_chooses_our_arms(peers):
    adar_numpy, _ = peers
    pulls = 800
    table = -(np.random.default_rng(4).pareto(1.5, (3, pulls)) + 1.0) * np.array([[1.0], [1.5], [2.0]])
    bandit = rb.Bandit(range(3), rb.AdaRUCB(), seed=0)
    given = [iter(row.tolist()) for row in table]
    chosen = []
    for _ in range(pulls):
        chosen.append(bandit.select())
        bandit.update(chosen[-1], next(given[chosen[-1]]))
    assert adar_numpy.play(table, pulls) == chosen
    assert adar_numpy.play(table, pulls, bonus=9.0) != chosen  # so the rewards tell algorithms apart


def test_missing_peers_are_said_and_no_goal_is_met_without_them(peers):
    _, page = peers
    report = page.Report(
        found={("robandit", "live"): {"rate": 2e6, "seconds": 0.1}, ("coba", "live"): {"error": "ValueError: no"}},
        same_arms=False,
        versions={},
        facts={"robandit": {"robandit": "0"}},
        failures={"river": "cannot be installed: no network"},
    )
    assert not any(goal.met for goal in report.goals())
    for text in (report.text(), report.terminal()):
        assert "river cannot be installed: no network" in text
        assert "coba (UCB1-Tuned), live: ValueError: no" in text


def test_a_goal_is_set_by_the_fastest_peer(peers):
    _, page = peers
    found = {(who, "live"): {"rate": rate} for who, rate in (("robandit", 9.0), ("river", 2.0), ("coba", 5.0))}
    live = page.Report(found, True, {}, {}, {}).goals()[1]
    assert live.ratio == pytest.approx(1.8)
    assert not live.met
