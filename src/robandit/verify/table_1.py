"""Table 1: how regret grows with T, 1/gap and u, measured beside what each row of the table states."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies import all_policies
from robandit.policies.base import Policy
from robandit.policies.classic.uniform import Uniform
from robandit.policies.tinf.ada_tinf import AdaTINF
from robandit.policies.tinf.opt_tinf import OptTINF
from robandit.problems import Problem, student_t
from robandit.simulate.simulation import simulate
from robandit.theory.divergence import klinf
from robandit.theory.formula import parsed
from robandit.theory.rates import rate
from robandit.verify import drawing
from robandit.verify.statement import Effort, Finding, Ran, Statement, Track, number, untracked
from robandit.verify.statistics import Interval, largest, slope, slope_weights

GAPS = (1.0, math.sqrt(2.0), 2.0)  # at the first scale
SCALES = (0.5, math.sqrt(0.5), 1.0)  # at the last gap
BASE = (GAPS[-1], SCALES[0])
TINY = 1e-6
CONTROL = Uniform()
VACUOUS = 0.95  # a rate that grows about as fast as T says nothing about learning
LEARNED = 0.5  # an exponent means nothing while regret is above this share of uniform play's


class Tails(NamedTuple):
    """Student's t with so many degrees of freedom, and the order of moments that policies are told."""

    dof: float
    eps: float

    def problem(self, gap: float, scale: float) -> Problem:
        """Two arms, the best one about 0: it satisfies the assumption."""
        return student_t([0.0, -gap], self.dof, scale)


HEAVY = Tails(1.8, 0.56)
LIGHTER = Tails(2.5, 1.0)  # for the row that needs a variance


class Exponent(NamedTuple):
    """Regret ~ of^x: the x measured, and that of the rate over the same values. Nothing is measured before a policy learns."""

    of: str
    measured: Interval | None
    printed: float

    def __str__(self) -> str:
        """In words."""
        seen = "not measured, still close to uniform play" if self.measured is None else number(self.measured.measured)
        return f"{self.of}: {seen} (rate {number(self.printed)})"


class Sweep(NamedTuple):
    """What is varied, its values, and the (gap, scale, T) that they belong to."""

    of: str
    x: Floats
    cases: list[tuple[float, float, int]]


Regret = dict[tuple[Policy, float, float, int], Floats]
"""Of a policy, by gap, scale and T: a number per replication."""
Measured = dict[Policy, tuple[Exponent, ...]]


class Job(NamedTuple):
    """One problem, played to one horizon by some policies."""

    tails: Tails
    gap: float
    scale: float
    horizon: int
    policies: tuple[Policy, ...]


def run(effort: Effort, track: Track = untracked, *, rows: Sequence[Policy] | None = None) -> Ran:
    """Play problems that differ in the gap or in the scale, and fit powers to regret and to the rates."""
    rows = table_rows() if rows is None else rows
    last = effort.of(200_000, 1_000_000)
    replications = effort.of(10, 20)
    marks = [round(last * 10.0 ** (-j / 2.0)) for j in (2, 1, 0)]
    regret: Regret = {}
    for job in track(_jobs(rows, marks)):
        played = [_told(policy, job) for policy in job.policies]
        result = simulate(
            played,
            job.tails.problem(job.gap, job.scale),
            horizon=job.horizon,
            replications=replications,
            seed=int(np.random.SeedSequence(effort.seed, spawn_key=(1,)).generate_state(1)[0]),
            checkpoints=[mark for mark in marks if mark <= job.horizon],
            threads=effort.threads,
            progress=False,
        )
        for i, policy in enumerate(job.policies):
            for j, mark in enumerate(result.checkpoints.tolist()):
                if mark == job.horizon or not _needs_horizon(policy):
                    regret[policy, job.gap, job.scale, mark] = result.regret[i, :, j]

    confidence = 1.0 - 0.01 / (3 * len(rows))
    measured = {p: tuple(_exponent(p, sweep, regret, confidence) for sweep in _sweeps(p, marks)) for p in rows}
    tails = sorted({_tails(policy) for policy in rows})
    limits = tuple(_row(policy, exponents) for policy, exponents in measured.items())
    return Ran(
        ran=(
            f"{len(rows)} rows on {' and '.join(f'Student t {t.dof:g} (eps = {t.eps:g})' for t in tails)}, two arms, the best one "
            f"about 0: gaps from {GAPS[0]:g} to {GAPS[-1]:g} at scale {SCALES[0]:g} (u told: that of the largest), scales to "
            f"{SCALES[-1]:g} at gap {GAPS[-1]:g} (u the problem's own), {replications} replications of T = {last:,}. Exponents in "
            f"T are over T = {marks[0]:,} to {last:,}; policies that must know the horizon are played to each. Intervals are at "
            f"nominal confidence {confidence:.4f}."
        ),
        findings=(
            _control(regret, marks, replications),
            *_learning(measured, _still_open(limits, last)),
            *limits,
            *_missing(rows, regret, marks, confidence),
        ),
        figure=drawing.cases(_drawn(measured), x_title="exponent of regret (tick: of the rate)", series=True),
        caption=(
            "Regret as a power of T, 1/gap and u: measured with its nominal confidence interval, and the same power fitted to the "
            "rate of the table over the same values (tick). A row without a point was still close to uniform play; one without a "
            "tick has a rate beyond T. Rates are upper bounds for large T: a point left of its tick is as they say, one to the "
            "right may be on its way."
        ),
    )


def table_rows() -> list[Policy]:
    """The algorithms of the paper's table, in its order."""
    return sorted((p for p in all_policies() if p.facts.row), key=lambda p: p.facts.row)


def _tails(policy: Policy) -> Tails:
    return LIGHTER if getattr(policy, "estimator", "") == "catoni" else HEAVY


def _needs_horizon(policy: Policy) -> bool:
    return "horizon" in policy.facts.knows


def _jobs(rows: Sequence[Policy], marks: Sequence[int]) -> list[Job]:
    jobs: list[Job] = []
    for tails in (HEAVY, LIGHTER):
        policies = tuple(policy for policy in rows if _tails(policy) == tails)
        policies += (CONTROL,) if tails == HEAVY else ()
        if policies:
            pairs = [*((gap, SCALES[0]) for gap in GAPS), *((GAPS[-1], scale) for scale in SCALES[1:])]
            jobs += [Job(tails, gap, scale, marks[-1], policies) for gap, scale in pairs]
    told = tuple(policy for policy in rows if _needs_horizon(policy))
    jobs += [Job(HEAVY, *BASE, mark, told) for mark in marks[:-1] if told]
    small = tuple(policy for policy in rows if isinstance(policy, (AdaTINF, OptTINF)))
    jobs += [Job(HEAVY, BASE[0] * TINY, BASE[1] * TINY, mark, small) for mark in marks if small]
    return jobs


def _bound(policy: Policy, tails: Tails, gap: float, scale: float) -> float:
    """The moment that the policy's bound is in. Over the gaps it is that of the largest, so that only the gap differs."""
    problem = tails.problem(max(gap, GAPS[-1]) if scale == SCALES[0] else gap, scale)
    return problem.v(tails.eps) if "v" in policy.facts.knows else problem.u(tails.eps)


def _told(policy: Policy, job: Job) -> Policy:
    """The policy with what it must know."""
    bound = _bound(policy, job.tails, job.gap, job.scale)
    known = {"eps": job.tails.eps, "u": bound, "v": bound}
    given: dict[str, Any] = {name: known[name] for name in policy.facts.knows if name in known}
    return dataclasses.replace(policy, **given)


def _rate(policy: Policy, gap: float, scale: float, horizon: int) -> float:
    """The rate, instance-dependent if the row has one. KLinf-UCB's counts pulls: regret has the gap in it."""
    tails = _tails(policy)
    bound = _bound(policy, tails, gap, scale)
    known: dict[str, Any] = {}
    if "KLinf" in policy.facts.instance:
        known["klinf"] = klinf(tails.problem(gap, scale).laws[1], 0.0, eps=tails.eps, u=bound) / gap
    gaps = [gap] if policy.facts.instance else None
    return float(rate(policy)(horizon, 2, bound, tails.eps, gaps, **known))


def _sweeps(policy: Policy, marks: Sequence[int]) -> tuple[Sweep, ...]:
    """In T, 1/gap and u."""
    bounds = [_bound(policy, _tails(policy), GAPS[-1], scale) for scale in SCALES]
    return (
        Sweep("T", np.array(marks, dtype=np.float64), [(*BASE, mark) for mark in marks]),
        Sweep("1/gap", 1.0 / np.array(GAPS), [(gap, SCALES[0], marks[-1]) for gap in GAPS]),
        Sweep("u", np.array(bounds), [(GAPS[-1], scale, marks[-1]) for scale in SCALES]),
    )


def _exponent(policy: Policy, sweep: Sweep, regret: Regret, confidence: float) -> Exponent:
    """Growth in T is measured always: a policy that never learns must not hide."""
    y = np.column_stack([regret[policy, *case] for case in sweep.cases])
    uniform = np.array([gap * mark / 2.0 for gap, _, mark in sweep.cases])
    rates = np.array([_rate(policy, *case) for case in sweep.cases])
    learned = sweep.of == "T" or bool((y.mean(axis=0) < LEARNED * uniform).all())
    return Exponent(
        sweep.of,
        slope(sweep.x, y, confidence) if learned else None,
        round(slope(sweep.x, rates[np.newaxis]).measured, 9) + 0.0,
    )


def _control(regret: Regret, marks: Sequence[int], replications: int) -> Finding:
    """Uniform play has regret gap T / 2, up to the chance of its coins."""
    off = []
    for sweep in _sweeps(CONTROL, marks):
        fit = slope(sweep.x, np.column_stack([regret[CONTROL, *case] for case in sweep.cases]))
        exact = slope(sweep.x, np.array([[_rate(CONTROL, *case) for case in sweep.cases]])).measured
        # a count of T fair coins is off by a relative 1/sqrt(T), and a slope is their weighted sum
        weights = slope_weights(sweep.x)
        error = math.sqrt(sum(w * w / (m * replications) for w, (_, _, m) in zip(weights, sweep.cases, strict=True)))
        near, far = max(fit.low - exact, exact - fit.high, 0.0), max(exact - fit.low, fit.high - exact)
        off.append(Interval(*(x / error for x in (abs(fit.measured - exact), near, far))))
    return Finding(
        claim=(
            "the measuring itself: uniform play has the exponents 1, -1 and 0; largest deviation, in standard errors of its coins"
        ),
        **largest(off)._asdict(),
        most=8.0,
        note="the interval reaches 2 to 5 errors to each side of a number that is hardly ever 3 off",
    )


def _still_open(limits: Sequence[Finding], last: int) -> str:
    count = sum(finding.verdict == "inconclusive" for finding in limits)
    return (
        f"{count} of {len(limits)} rows are not shown to be within their rates at T = {last:,}; rates are limits, "
        "so no row can fail."
        if count
        else ""
    )


def _learning(measured: Measured, headline: str = "") -> tuple[Finding, ...]:
    """On a scale from the rate to linear growth."""
    shares: list[Interval] = []
    rows: list[Policy] = []
    for policy, (in_t, *_) in measured.items():
        if in_t.measured is not None and in_t.printed < VACUOUS:
            shares.append(Interval(*((x - in_t.printed) / (1.0 - in_t.printed) for x in in_t.measured)))
            rows.append(policy)
    if not shares:
        return ()
    policy = rows[max(range(len(rows)), key=lambda i: shares[i].measured)]
    return (
        Finding(
            claim=(
                f"each of {len(shares)} rows learns here: growth in T is nearer to its rate (0) than to linear (1), worst row"
            ),
            **largest(shares)._asdict(),
            most=0.5,
            note=f"worst: {_title(policy)}, {measured[policy][0]}",
            headline=headline,
        ),
    )


def _row(policy: Policy, exponents: Sequence[Exponent]) -> Finding:
    """The largest excess of an exponent over the rate's."""
    vacuous = exponents[0].printed >= VACUOUS
    counted = exponents[:1] if vacuous else exponents
    excess = [Interval(*(x - e.printed for x in e.measured)) for e in counted if e.measured is not None]
    return Finding(
        claim=f"{_title(policy)}: no exponent is above the rate's; largest excess",
        **largest(excess)._asdict(),
        most=0.0,
        asymptotic=True,
        note="; ".join([*map(str, exponents), *_remarks(policy, vacuous)]),
    )


def _remarks(policy: Policy, vacuous: bool) -> list[str]:
    facts = policy.facts
    remarks = []
    if vacuous:
        remarks.append("with two arms the rate grows faster than T, and says nothing")
    if facts.assumption.name == "long horizon":
        remarks.append(f"proved for {facts.assumption}")
    if "u" in facts.knows and not {"u", "KLinf(arm, best mean)"} & parsed(facts.instance or facts.worst).names:
        remarks.append(
            "the row leaves out the u that the algorithm is told: rewards and u^(1/(1+eps)) times s make regret s times larger"
        )
    return remarks


def _missing(rows: Sequence[Policy], regret: Regret, marks: Sequence[int], confidence: float) -> tuple[Finding, ...]:
    """What the table leaves out of two rows. Tiny rewards teach these two nothing, and regret is linear whatever u^(..) says."""
    printed = {AdaTINF: ("22", 1.0 / (1.0 + HEAVY.eps)), OptTINF: ("21", 1.0 - HEAVY.eps / 2.0)}
    found = []
    for policy in rows:
        if type(policy) not in printed:
            continue
        item, power = printed[type(policy)]
        y = np.column_stack([regret[policy, BASE[0] * TINY, BASE[1] * TINY, mark] for mark in marks])
        fit = slope(np.array(marks, dtype=np.float64), y, confidence)
        found.append(
            Finding(
                claim=(
                    f"{_title(policy)}: the worst case needs the sqrt(K T) that the table leaves out; with rewards times {TINY:g} "
                    "regret grows in T with an exponent above the printed rate's"
                ),
                **fit._asdict(),
                least=power,
                misprints=(item,),
                note=f"printed: T^{number(power)} times a power of u. Any constant in front is exceeded for some T and u",
            )
        )
    return tuple(found)


def _title(policy: Policy) -> str:
    return policy.facts.title or policy.name


def _drawn(measured: Measured) -> list[drawing.Row]:
    return [
        {"case": f"{_title(policy)}: {e.of}", "series": e.of}
        | ({"limit": e.printed} if exponents[0].printed < VACUOUS else {})
        | ({} if e.measured is None else {"x": e.measured.measured, "low": e.measured.low, "high": e.measured.high})
        for policy, exponents in measured.items()
        for e in exponents
    ]


STATEMENT = Statement(
    key="table-1",
    name="Table 1",
    says="Regret grows with T, 1/gap and u as each row of the table states, such as (u/gap)^(1/eps) log T per arm for AdaR-UCB.",
    run=run,
)
