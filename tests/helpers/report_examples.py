"""Results of small experiments, for pages to be made of."""

from dataclasses import replace

import numpy as np

import robandit as rb
from robandit.experiments.plan import Played, planned
from robandit.experiments.results import Failure, Measured, Results

COSTS = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
COINS = rb.problems.bernoulli(means=[0.2, 0.8])
HOSTILE = """</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'"&amp;"""


def played(*problems, policies=None, replications=8, about=None):
    """What these policies measure on these problems."""
    chosen = policies or [rb.UCB1(), rb.EpsilonGreedy(), rb.Uniform(), rb.KurtosisUCB()]
    plan = planned(problems, chosen, replications=replications, seed=3)
    done = [(unit, (result := unit.run()), float(result.seconds[0])) for unit in plan.units]
    return Results.of(plan, done, about=about)


def one():
    """One heavy-tailed problem, on which UCB1 assumes too much and Kurtosis UCB is left out."""
    return played(Played("costs", COSTS, 2_000), about={"versions": {"robandit": "9.9"}, "machine": "a <fast> one"})


def suite():
    """Three problems."""
    names = rb.Problem(COINS.laws, names=["heads", "tails & more"])
    return played(Played("costs", COSTS, 500), Played("coins", names, 500), Played("coins", names, 900))


def in_order():
    """A table that drifts, so that a policy that follows it has less regret than none, and a log; with notes."""
    rng = np.random.default_rng(0)
    drift = np.sin(np.arange(2000) / 200)[:, None] * [1.0, -1.0] + [0.02, 0.0]
    table = rb.problems.InOrder(0.3 * rng.standard_t(3, (2000, 2)) + drift, ["east", "west"])
    actions, rewards = rng.integers(0, 2, 500), rng.standard_t(3, 500)
    log = rb.problems.Logged(actions, rewards, ["east", "west"], rng.uniform(0.2, 0.9, 500))
    problems = [Played("table", table, 2000), Played("log", log, 300)]
    results = played(*problems, policies=[rb.UCB1(), rb.EpsilonGreedy(), rb.Uniform()])
    return replace(results, plan=replace(results.plan, notes=("The best arm is <not> resolved.", "500 rows.")))


def hostile():
    """A policy, a problem and an arm with names that try to break out of the page, and a failure that tells of them."""
    laws = rb.Problem(COSTS.laws, names=["a", HOSTILE, "c"])
    results = played(Played(HOSTILE, laws, 300), policies=[rb.UCB1(), rb.Uniform()])

    def renamed(cell):
        return replace(cell, label=HOSTILE) if cell.label == "UCB1" else cell

    plan = replace(results.plan, cells=tuple(renamed(cell) for cell in results.plan.cells))
    measured = tuple(replace(m, cell=renamed(m.cell)) for m in results.measured)
    failure = Failure(plan.units[0], 3, f"Traceback:\n{HOSTILE}")
    return Results(plan, measured, (failure,), {"machine": HOSTILE})


def large():
    """As large as a suite gets: 17 problems and 28 policies, with made-up numbers."""
    rng = np.random.default_rng(0)
    problem = rb.problems.gaussian(means=[0.1 * i for i in range(10)])
    policies = [rb.EpsilonGreedy(epsilon=0.01 + 0.03 * i) for i in range(28)]
    plan = planned([Played(f"problem {i}", problem, 10_000) for i in range(17)], policies, replications=100, seed=1)
    times = np.unique(np.round(np.geomspace(1, 10_000, 50)).astype(np.int64))
    measured = tuple(
        Measured(
            cell=cell,
            replications=np.arange(100),
            checkpoints=times,
            regret=np.cumsum(rng.pareto(1.5, (100, len(times))), axis=1),
            pulls=rng.multinomial(10_000, np.full(10, 0.1), size=100),
            seconds=1.0,
        )
        for cell in plan.cells
    )
    return Results(plan, measured)
