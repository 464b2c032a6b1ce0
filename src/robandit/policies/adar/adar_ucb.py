"""AdaR-UCB (Genalti, Marsigli, Gatti, Metelli 2024); :mod:`robandit.policies.adar.trimmed_index` has its index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from robandit.estimators.formulas.threshold import C
from robandit.kernel.lazy import lazy_state, touched
from robandit.policies._parts.records import params_of, state_of
from robandit.policies.adar.layout import IN_TOP, LEAST, LIVE_ROUNDS, UNLIMITED, TwoStreams, new_clock
from robandit.policies.adar.trimmed_index import (
    EVENT,
    describe,
    empty_arms,
    index,
    learn_mean,
    learn_threshold,
    outlook,
    select_round,
)
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.validation import choice, invalid, positive, within

LIVE_VALUES = 2048  # per buffer row; the five rows of an arm then take 80 KiB (more if c * delta_exp is over 44)
MOST_STORED = 1e4  # limit of c * delta_exp; each arm stores 37 times as many values


class AdaRUCB(TwoStreams, Policy):
    """UCB policy on a trimmed mean whose threshold comes from the data; it needs no knowledge about the tails.

    Each round pulls one arm twice. First rewards (X) give a trimmed mean and its variance, second rewards (X') the threshold. Use
    it as the faithful implementation of the paper: it adapts to both the order eps and the bound u of the moments. With the printed
    constants it explores a great deal: below T = 1e5 it is often close to uniform play. ``bonus="tight"`` halves that and keeps the
    guarantee. Do not use it for right-skewed rewards such as revenue, where the assumption fails.

    Decisions are those of the definition, except for rounding. But a live bandit stores at most 2,048 first rewards per arm (more
    for a large ``c * delta_exp``). If dependent data exceed that, first rewards of almost the same size are trimmed together;
    ``counters()["fallbacks"]`` counts the evaluations that this may change (docs/explanation/exact-algorithm.md).

    Parameters
    ----------
    c
        Constant of the threshold equation. The regret proof needs (1 + sqrt 2)^2, the default.
    guard
        An arm is explored while it has at most ``guard * log(1/delta)`` non-zero second rewards. None: c, the smallest guard for
        which the equation always has a root. (The paper prints 4, with which the first root that is needed never exists.)
    bonus
        ``"paper"``: 10 M L / N. ``"tight"``: 14 M L / (3 (N - 1)), the same before rounding (ours). A number replaces the 10.
    var_factor
        Factor of the variance in ``sqrt(var_factor V L / N)``.
    delta_exp
        Round tau uses delta = tau^-delta_exp, so L = delta_exp log tau.
    solver
        ``"exact"``: the exact root. ``"doubling"``: the paper's Appendix C, from the smallest non-zero value; M at most doubles.
    tie
        ``"fewest"``: the arm with the fewest rounds wins, then the lowest arm. ``"lowest"``: the lowest arm wins.

    Guarantee
    ---------
    Assume that the best arm satisfies truncated non-positivity: E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0).
    Then for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret grows as ``sum_i (u / gap_i)^(1/eps) log T`` and at worst as
    ``(K log T)^(eps/(1+eps)) (u T)^(1/(1+eps))`` (Theorems 7 and 8). The rates hold, but the proof of the printed constants has a
    gap, and those of Theorem 7 are too small; `robandit.theory.regret_bound` has corrected ones. Not proved with a ``bonus``
    (except ``"tight"``), ``c``, ``guard``, ``var_factor`` or ``delta_exp`` below the default. Requires no prior knowledge. Anytime
    and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(), seed=0)
    >>> bandit.select()
    'a'
    >>> bandit.update("a", -1.5)
    >>> bandit.select()  # each chosen arm comes twice
    'a'

    References
    ----------
    G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed bandits.
    COLT 2024, PMLR 247.
    """

    c: float = C
    guard: float | None = None
    bonus: float | Literal["paper", "tight"] = "paper"
    var_factor: float = 2.0
    delta_exp: float = 3.0
    solver: Literal["exact", "doubling"] = "exact"
    tie: Literal["fewest", "lowest"] = "fewest"

    use_when = "you know nothing but need a proved bound; losses, not gains"
    label = "AdaR-UCB"
    former_parameters: ClassVar[Mapping[str, str]] = {
        "center": 'it is gone since Robandit 0.3. AdaRUCB() is what center=None was; Robandit 0.2.0 plays center="median"'
    }
    later_fields: ClassVar[tuple[str, ...]] = ("cells",)
    about = Facts(
        assumption=NONPOSITIVE,
        bound="Theorems 7 and 8 of Genalti et al.",
        instance="sum ((u/gap)^(1/eps) + gap/P(X != 0)) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps)) + sum gap/P(X != 0) log T",
        matches=(True, True),
        adaptive=Adaptive(True, True, True, True),
        citation="Genalti, Marsigli, Gatti, Metelli 2024",
        source="the paper",
        row=13,
        title="AdaR-UCB",
    )

    def validate(self) -> None:
        owner = "AdaRUCB"
        positive(self.c, "c", owner=owner)
        if self.guard is not None:
            within(self.guard, "guard", self.c, math.inf, owner=owner)
        if isinstance(self.bonus, str):
            choice(self.bonus, "bonus", ("paper", "tight"), owner=owner, hint="or pass a number > 0")
        else:
            positive(self.bonus, "bonus", owner=owner)
        within(self.var_factor, "var_factor", 0.0, math.inf, owner=owner)
        positive(self.delta_exp, "delta_exp", owner=owner)
        if self.c * self.delta_exp > MOST_STORED:
            hint = "each arm stores 37 times as many values"
            raise invalid("c * delta_exp", self.c * self.delta_exp, f"at most {MOST_STORED:g}", owner=owner, hint=hint)
        choice(self.solver, "solver", ("exact", "doubling"), owner=owner)
        choice(self.tie, "tie", ("fewest", "lowest"), owner=owner)

    def params(self) -> Any:
        bonus = {"paper": 10.0, "tight": 0.0}[self.bonus] if isinstance(self.bonus, str) else float(self.bonus)
        return params_of(
            c=float(self.c),
            guard=float(self.c if self.guard is None else self.guard),
            bonus=bonus,  # 0 stands for the tight bonus
            var_factor=float(self.var_factor),
            delta_exp=float(self.delta_exp),
            doubling=int(self.solver == "doubling"),
            by_rounds=int(self.tie == "fewest"),
        )

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return a state with buffers for the horizon. The buffers of a live bandit start small and grow up to a limit."""
        rounds = LIVE_ROUNDS if horizon is None else max(horizon // 2 + 1, 2)
        largest = self.c * self.delta_exp * math.log(rounds)
        room = math.ceil(1.25 * largest) + 64
        capacity = 64 if horizon is None else min(room, rounds + 2)
        clock = new_clock(max(LIVE_VALUES, room) if horizon is None else UNLIMITED)
        clock[LEAST] = -1
        numbers, counts, buffer = empty_arms(arms, capacity)
        lines, lead = lazy_state(arms)
        return state_of(
            arms=numbers,
            counts=counts,
            buffer=buffer,
            limits=np.array([largest]),  # of c L
            lines=lines,
            lead=lead,
            clock=clock,
            cells=np.zeros(arms),  # cells per power of two to which X is thinned, or 0
        )

    def forget_choice(self, state: Any) -> None:
        """Discard the leader, and look for forced arms again."""
        super().forget_choice(state)
        state.clock[LEAST] = -1

    @staticmethod
    def select(p: Any, s: Any) -> int:
        return select_round(index, outlook, p, s)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
        """Add the reward to its stream (Algorithm 1, lines 10 to 12)."""
        if mark == IN_TOP:
            learn_threshold(p, s, arm, abs(reward))
        else:
            learn_mean(p, s, arm, reward)
        s.arms[arm, EVENT] = -1.0
        touched(s.lines, s.lead, arm)

    estimate = staticmethod(describe)
