"""The comparison of ``make bench-peers``: its NumPy AdaR-UCB is correct, and missing peers are reported."""

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
        del sys.modules[name]  # short names, which other tests may import


def test_the_numpy_adar_ucb_chooses_our_arms(peers):
    adar_numpy, _ = peers
    pulls = 800
    table = -(np.random.default_rng(4).pareto(1.5, (3, pulls)) + 1.0) * np.array([[1.0], [1.5], [2.0]])
    bandit = rb.Bandit(range(3), rb.AdaRUCB(), seed=0)
    rewards = [iter(row.tolist()) for row in table]
    chosen = []
    for _ in range(pulls):
        chosen.append(bandit.select())
        bandit.update(chosen[-1], next(rewards[chosen[-1]]))
    assert adar_numpy.play(table, pulls) == chosen
    assert adar_numpy.play(table, pulls, bonus=9.0) != chosen  # negative control: another bonus chooses other arms


def test_missing_peers_are_reported_and_meet_no_goal(peers):
    _, page = peers
    report = page.Report(
        measured={("robandit", "live"): {"rate": 2e6, "seconds": 0.1}, ("coba", "live"): {"error": "ValueError: no"}},
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
    measured = {(peer, "live"): {"rate": rate} for peer, rate in (("robandit", 9.0), ("river", 2.0), ("coba", 5.0))}
    live = page.Report(measured, True, {}, {}, {}).goals()[1]
    assert live.ratio == pytest.approx(1.8)
    assert not live.met
