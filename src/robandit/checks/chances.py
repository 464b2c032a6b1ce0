"""The check of the probabilities with which a policy makes random choices."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.random import streams
from robandit.kernel.types import Ints, UInts
from robandit.live.bandit import Bandit
from robandit.policies.base import Policy

ARMS = 3
HORIZON = 400
STEPS = (0, ARMS, 10, 50, HORIZON - 1)  # pulls before which the probabilities are checked
DRAWS = 20_000  # choices in each of these states
CHANCE_ERROR = 1e-5  # allowed, for probabilities that are computed by integration
RISK = 1e-9  # of rejecting a correct probability


def check_chance(policy: Policy) -> None:
    """Check the probabilities of random choices: ``chance``, and the marks of a policy with ``weighted = True``.

    They must be in [0, 1], sum to 1 over the allowed arms, and agree with the frequencies of choices in the same state with other
    random numbers. NaN stands for a probability that is not known. A policy without probabilities must make deterministic choices.
    """
    policy = policy.prepared(HORIZON)
    source = np.random.default_rng(4)
    bandit = Bandit(range(ARMS), policy, seed=3, compile="now")
    if "rng" not in bandit._engine.state._fields:
        return
    for step in range(HORIZON):
        if step in STEPS:
            _check_chance_in(policy, bandit._engine.state, f"{policy!r} at pull {step}")
            if policy.respects_allowed:
                fewer = _copied(bandit._engine.state)
                policy.set_allowed(fewer, np.arange(ARMS) > 0)
                _check_chance_in(policy, fewer, f"{policy!r} at pull {step}, without the first arm,")
        arm = bandit.select()
        bandit.update(arm, -float(source.pareto(2.0)) - 0.1 * arm)


def _check_chance_in(policy: Policy, state: Any, where: str) -> None:
    given = _chances(policy, state, where)
    if given is not None and np.isnan(given).any():
        return
    counts = _frequencies(policy, _copied(state))
    if given is None:
        problem = f"has random choices {counts.tolist()}, but no chance() that returns their probabilities"
        hint = "write chance(p, s, arm), which returns math.nan if the probability is not known"
        assert counts.max() == counts.sum(), f"{where} {problem}: {hint}"
        return
    assert ((given >= 0.0) & (given <= 1.0)).all(), f"{where} has chances {given}: they must be in [0, 1]"
    assert abs(given.sum() - 1.0) <= CHANCE_ERROR, f"{where} has chances {given}: they must sum to 1"
    # Bernstein's inequality, for each arm and state
    log = math.log(2.0 / RISK)
    allowed = log / 3.0 + np.sqrt(log * log / 9.0 + 2.0 * DRAWS * given * (1.0 - given) * log) + DRAWS * CHANCE_ERROR
    agree = (np.abs(counts - DRAWS * given) <= allowed).all()
    assert agree, f"{where} has chances {given}, but chooses with frequencies {counts / DRAWS}"


def _chances(policy: Policy, state: Any, where: str) -> Any:
    """Return the probabilities of the arms that the policy tells, or None. Check that ``chance`` changes nothing but caches."""
    p, marks, chances = policy.params(), None, None
    if policy.weighted:
        issue = compiled(partial(loops.issue, *policy.hooks("take")), label="take (check)", args=(p, state, 0))
        marks = np.array([issue(*flat((p, _copied(state))), arm) for arm in range(ARMS)])
    if policy.chance is not None:
        asked = _copied(state)
        entry = compiled(partial(loops.chance_of, *policy.hooks("chance")), label="chance (check)", args=(p, state, 0))
        chances = np.array([entry(*flat((p, asked)), arm) for arm in range(ARMS)])
        again = np.array([entry(*flat((p, asked)), arm) for arm in range(ARMS)])
        same = np.array_equal(chances, again, equal_nan=True)
        assert same, f"{where} has chances {chances}, and asked again {again}: chance must not change the state"
        assert (asked.rng == state.rng).all(), f"{where}: chance must not draw random numbers"
        ask = compiled(partial(loops.ask, *policy.hooks("select")), label="select (check)", args=(p, state))
        arms = ask(*flat((p, asked))), ask(*flat((p, _copied(state))))
        assert arms[0] == arms[1], f"{where}: after chance, select chooses arm {arms[0]} instead of {arms[1]}"
    if marks is not None and chances is not None:
        same = np.allclose(marks, chances, rtol=1e-12, atol=0.0)
        assert same, f"{where} has chances {chances} but marks {marks}: take must return the chance"
    return marks if chances is None else chances


def _frequencies(policy: Policy, state: Any) -> Any:
    """Return how often each arm is chosen in a state, with different random numbers."""
    p, counts = policy.params(), np.zeros(ARMS, dtype=np.int64)
    words = streams(np.random.SeedSequence(6), DRAWS)
    entry = compiled(
        partial(choose_often, *policy.hooks("select")), label="select (check)", args=(p, state, words, counts)
    )
    entry(*flat((p, state)), words, counts)
    return counts


def choose_often(select: Any, p: Any, s: Any, words: UInts, counts: Ints) -> None:
    """Count the choices in one state, with the random numbers of each row of ``words``."""
    for k in range(words.shape[0]):
        for i in range(4):
            s.rng[i] = words[k, i]
        arm = int(select(p, s))
        if 0 <= arm < counts.shape[0]:
            counts[arm] += 1


def _copied(state: Any) -> Any:
    return type(state)(*(array.copy() for array in state))
