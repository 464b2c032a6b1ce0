"""Compile what the tests use, on all cores: all that `robandit precompile` compiles, and more. `make test` runs this file.

One process compiles all entries of a kind of policy, because they share most functions: a test that compiled one of them alone
would take three to ten times as long for it. What is missing here is compiled by the test that needs it.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import robandit as rb
from helpers.driving import replay
from helpers.own_policies import Exp3, Greedy
from robandit.checks.chances import choose_often
from robandit.estimators import roots
from robandit.kernel import loops
from robandit.kernel.build import kernel_of
from robandit.kernel.workers import compile_all
from robandit.laws.table import fill
from robandit.live.engine import live_kernels, source
from robandit.policies import all_policies
from robandit.policies.klinf import upper_bound
from robandit.precompile import SHARED
from robandit.simulate.simulation import any_play_kernel, play_kernel

PROBLEM = rb.problems.bernoulli(means=[0.2, 0.8])  # every policy can be informed by it
REPLAYED = {rb.AdaRUCB(), rb.DirichletSampling(), rb.LBSDA(), rb.UCB1()}
LATE = {rb.AdaKLUCB(), rb.AdaRUCB(), rb.OptTINF(), rb.UCB1()}  # play against delayed rewards
OWN = [Greedy(), Exp3()]  # policies of a user
WORDS, COUNTS, ROW, ROWS = np.zeros((1, 4), dtype=np.uint64), np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, 1))


def kernels(policies):
    """Return the kernels of some policies. The simulation comes first: it has most functions of the others."""
    found = [any_play_kernel(policy) for policy in policies]
    for chosen in policies:
        policy = chosen.informed_by(PROBLEM).prepared(10)
        state = policy.start(2, None, WORDS[0])
        given = (policy.params(), state)
        found += live_kernels(policy)
        if policy.columns:
            bound, _, args = source(policy, state, "describe")
            found.append(kernel_of(bound, args))
        if policy.chance is not None:
            found.append(kernel_of(partial(loops.chance_of, *policy.hooks("chance")), (*given, 0)))
        if "rng" in state._fields:
            found.append(kernel_of(partial(choose_often, *policy.hooks("select")), (*given, WORDS, COUNTS)))
        if chosen in REPLAYED:
            found.append(replay_kernel(policy))
        if chosen in LATE:
            found.append(play_kernel(policy, rb.problems.delayed(PROBLEM, 5), 10))
    return found


def replay_kernel(policy):
    given = (policy.params(), policy.start(2, None, WORDS[0]), ROWS, COUNTS, COUNTS, 0)
    return kernel_of(partial(replay, *policy.hooks("select", "take", "update", "full")), given)


def of_drift():
    """Return kernels of policies that restart or probe, with other inner policies than their own."""
    restarting = rb.Restarting(rb.UCB1())
    played = [any_play_kernel(restarting), any_play_kernel(rb.Restarting(rb.EpsilonGreedy()))]
    return [*played, replay_kernel(restarting), *live_kernels(rb.Probing(rb.UCB1()))[:2]]


def functions():
    """Return the kernels of laws and estimators."""
    root = (ROWS, ROW, 2.0, 0.5, ROW, ROW)
    return [
        kernel_of(fill, (*PROBLEM.tabulate(), 0, WORDS[0], ROW)),
        kernel_of(partial(roots.root_rows, roots.quick_total), root),
        kernel_of(partial(roots.root_rows, roots.careful_total), root),
        kernel_of(upper_bound.one_index, (ROWS, ROWS, 1.0, 1.0, 0.0, 0.0)),
    ]


def main():
    kinds = {}
    for policy in [*all_policies(), *OWN]:
        kinds.setdefault(type(policy).__name__, []).append(policy)
    groups = {name: partial(kernels, policies) for name, policies in kinds.items()}
    groups |= {"policies of drift": of_drift, "laws and estimators": functions} | SHARED
    # Start with the longest: the last one may have to wait for it.
    compile_all(dict(sorted(groups.items(), key=lambda group: group[0] not in ("AdaKLUCB", "Restarting"))), print)


if __name__ == "__main__":
    main()
