"""Experiments: play many policies on many problems into a folder that survives interruptions, and summarise the results.

>>> import tempfile
>>> import robandit as rb
>>> from robandit.experiments import Played, planned, run, summary
>>> problem = rb.problems.gaussian(means=[0.0, -0.5])
>>> plan = planned([Played("two arms", problem, horizon=500)], [rb.UCB1(), rb.EpsilonGreedy()], replications=8, seed=1)
>>> with tempfile.TemporaryDirectory() as folder:
...     results = run(plan, folder).store.results()
>>> sorted(summary(results)["policy"])
['UCB1', 'epsilon-greedy']
"""

from __future__ import annotations

from robandit.experiments.context_plan import replayed_with_features
from robandit.experiments.dask_cluster import dask_engine
from robandit.experiments.plan import Plan, Played, planned
from robandit.experiments.replay_plan import replayed
from robandit.experiments.results import Results
from robandit.experiments.runner import run
from robandit.experiments.spec import Spec, parse_spec, read_spec
from robandit.experiments.statistics import paired, ranking, summary, verdict
from robandit.experiments.store import Store

__all__ = [
    "Plan",
    "Played",
    "Results",
    "Spec",
    "Store",
    "dask_engine",
    "paired",
    "parse_spec",
    "planned",
    "ranking",
    "read_spec",
    "replayed",
    "replayed_with_features",
    "run",
    "summary",
    "verdict",
]
