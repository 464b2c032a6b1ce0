"""Table 1: the growth of regret with T, 1/gap and u, compared with the rates in the table's rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robandit.intervals import Interval
from robandit.kernel.types import Floats
from robandit.policies import all_policies
from robandit.policies.base import Policy
from robandit.policies.classic.uniform import Uniform
from robandit.policies.formula import parsed
from robandit.policies.tinf.ada_tinf import AdaTINF
from robandit.policies.tinf.opt_tinf import OptTINF
from robandit.problems import Problem, student_t
from robandit.simulate.simulation import simulate
from robandit.theory.divergence import klinf
from robandit.theory.rates import rate
from robandit.verify.interval_arithmetic import divided, joint_confidence, largest, shifted, slope, slope_weights
from robandit.verify.statement import Effort, Evidence, Finding, Row, Statement, Track, finding, number, row_of, silent

GAPS = (1.0, math.sqrt(2.0), 2.0)  # all with the first scale
SCALES = (0.5, math.sqrt(0.5), 1.0)  # all with the last gap
BASE = (GAPS[-1], SCALES[0])
TINY = 1e-6
CONTROL = Uniform()
VACUOUS = 0.95  # a rate with a larger exponent in T says nothing about learning
LEARNED = 0.5  # an exponent means nothing while regret exceeds this share of the regret of uniform play


class Tails(NamedTuple):
    """The degrees of freedom of Student's t, and the order of moments that policies know."""

    dof: float
    eps: float

    def problem(self, gap: float, scale: float) -> Problem:
        """Return a problem with two arms. The best arm is centred at 0, so it satisfies the assumption."""
        return student_t([0.0, -gap], self.dof, scale)


HEAVY = Tails(1.8, 0.56)
LIGHTER = Tails(2.5, 1.0)  # for the row that needs a finite variance


class Exponent(NamedTuple):
    """The exponent x in regret ~ of^x: measured (None if the policy is close to uniform play), and that of the rate."""

    of: str
    measured: Interval | None
    printed: float

    def __str__(self) -> str:
        measured = "not measured, close to uniform play" if self.measured is None else number(self.measured.measured)
        return f"{self.of}: {measured} (rate {number(self.printed)})"


class Sweep(NamedTuple):
    """A quantity that varies, its values, and the (gap, scale, T) of each value."""

    of: str
    x: Floats
    cases: list[tuple[float, float, int]]


Regret = dict[tuple[Policy, float, float, int], Floats]
"""The regrets of all replications, by policy, gap, scale and T."""
Measured = dict[Policy, tuple[Exponent, ...]]


class Job(NamedTuple):
    """One problem, played to one horizon by some policies."""

    tails: Tails
    gap: float
    scale: float
    horizon: int
    policies: tuple[Policy, ...]


def run(effort: Effort, track: Track = silent, *, rows: Sequence[Policy] | None = None) -> Evidence:
    """Play problems that differ in the gap or the scale, and fit powers to regret and to the rates."""
    rows = table_rows() if rows is None else rows
    last = effort.of(200_000, 1_000_000)
    replications = effort.of(10, 20)
    marks = [round(last * 10.0 ** (-j / 2.0)) for j in (2, 1, 0)]
    seed = int(effort.stream(1).generate_state(1)[0])
    options: dict[str, Any] = {"threads": effort.threads, "progress": False}
    regret: Regret = {}
    for job in track(_jobs(rows, marks)):
        policies = [_informed(policy, job) for policy in job.policies]
        problem = job.tails.problem(job.gap, job.scale)
        options["checkpoints"] = [mark for mark in marks if mark <= job.horizon]
        result = simulate(policies, problem, job.horizon, replications, seed, **options)
        for i, policy in enumerate(job.policies):
            for j, mark in enumerate(result.checkpoints.tolist()):
                if mark == job.horizon or "horizon" not in policy.facts.knows:
                    regret[policy, job.gap, job.scale, mark] = result.regret[i, :, j]

    confidence = joint_confidence(3 * len(rows))
    measured = {p: tuple(_exponent(p, sweep, regret, confidence) for sweep in _sweeps(p, marks)) for p in rows}
    tails = sorted({_tails(policy) for policy in rows})
    limits = [_row(policy, exponents) for policy, exponents in measured.items()]
    undecided = sum(limit.verdict == "inconclusive" for limit in limits)
    headline = f"{undecided} of {len(limits)} rows are not shown to be within their rates at T = {last:,}; "
    headline += "rates are limits, so no row can fail."
    return Evidence(
        ran=f"{len(rows)} rows on {' and '.join(f'Student t {t.dof:g} (eps = {t.eps:g})' for t in tails)}, two arms, the best one "
        f"centred at 0. Gaps from {GAPS[0]:g} to {GAPS[-1]:g} at scale {SCALES[0]:g} (policies know the u of the largest gap), "
        f"scales to {SCALES[-1]:g} at gap {GAPS[-1]:g} (policies know the u of the problem), {replications} replications of "
        f"T = {last:,}. Exponents in T are for T = {marks[0]:,} to {last:,}; policies that must know the horizon have separate "
        f"runs for each T. Intervals have the nominal confidence {confidence:.4f}.",
        findings=(
            _control(regret, marks, replications),
            *_learning(measured, headline if undecided else ""),
            *limits,
            *_missing(rows, regret, marks, confidence),
        ),
        rows=_rows(measured),
        title="exponent of regret",
        caption="Regret as a power of T, 1/gap and u: the measured exponent with its nominal confidence interval, and the exponent "
        "of the table's rate over the same values (limit). A row without a number was still close to uniform play. A row without a "
        "limit has a rate that grows faster than T. Rates are upper bounds for large T: a number below its limit agrees with "
        "them, and one above it may still agree for larger T.",
    )


def table_rows() -> list[Policy]:
    """Return the algorithms of the paper's table, in its order."""
    return sorted((p for p in all_policies() if p.facts.row), key=lambda p: p.facts.row)


def _tails(policy: Policy) -> Tails:
    return LIGHTER if getattr(policy, "estimator", "") == "catoni" else HEAVY


def _jobs(rows: Sequence[Policy], marks: Sequence[int]) -> list[Job]:
    jobs: list[Job] = []
    for tails in (HEAVY, LIGHTER):
        policies = tuple(policy for policy in rows if _tails(policy) == tails)
        policies += (CONTROL,) if tails == HEAVY else ()
        if policies:
            pairs = [*((gap, SCALES[0]) for gap in GAPS), *((GAPS[-1], scale) for scale in SCALES[1:])]
            jobs += [Job(tails, gap, scale, marks[-1], policies) for gap, scale in pairs]
    fixed = tuple(policy for policy in rows if "horizon" in policy.facts.knows)
    jobs += [Job(HEAVY, *BASE, mark, fixed) for mark in marks[:-1] if fixed]
    tiny = tuple(policy for policy in rows if isinstance(policy, (AdaTINF, OptTINF)))
    jobs += [Job(HEAVY, BASE[0] * TINY, BASE[1] * TINY, mark, tiny) for mark in marks if tiny]
    return jobs


def _bound(policy: Policy, tails: Tails, gap: float, scale: float) -> float:
    """Return the moment that the policy knows. In the sweep over gaps it is the same for all: that of the largest gap."""
    problem = tails.problem(max(gap, GAPS[-1]) if scale == SCALES[0] else gap, scale)
    return problem.v(tails.eps) if "v" in policy.facts.knows else problem.u(tails.eps)


def _informed(policy: Policy, job: Job) -> Policy:
    bound = _bound(policy, job.tails, job.gap, job.scale)
    known: dict[str, Any] = {"eps": job.tails.eps, "u": bound, "v": bound}
    return dataclasses.replace(policy, **{name: known[name] for name in policy.facts.knows if name in known})


def _rate(policy: Policy, gap: float, scale: float, horizon: int) -> float:
    """Return the row's instance-dependent rate, else its worst-case rate. KLinf-UCB's counts pulls, so it is times the gap."""
    tails = _tails(policy)
    bound = _bound(policy, tails, gap, scale)
    known: dict[str, Any] = {}
    if "KLinf" in policy.facts.instance:
        known["klinf"] = klinf(tails.problem(gap, scale).laws[1], 0.0, eps=tails.eps, u=bound) / gap
    gaps = [gap] if policy.facts.instance else None
    return float(rate(policy)(horizon, 2, bound, tails.eps, gaps, **known))


def _sweeps(policy: Policy, marks: Sequence[int]) -> tuple[Sweep, ...]:
    """Return the sweeps over T, 1/gap and u."""
    bounds = [_bound(policy, _tails(policy), GAPS[-1], scale) for scale in SCALES]
    return (
        Sweep("T", np.array(marks, dtype=np.float64), [(*BASE, mark) for mark in marks]),
        Sweep("1/gap", 1.0 / np.array(GAPS), [(gap, SCALES[0], marks[-1]) for gap in GAPS]),
        Sweep("u", np.array(bounds), [(GAPS[-1], scale, marks[-1]) for scale in SCALES]),
    )


def _exponent(policy: Policy, sweep: Sweep, regret: Regret, confidence: float) -> Exponent:
    """Fit an exponent. Growth in T is always measured, to detect policies that never learn."""
    y = np.column_stack([regret[policy, *case] for case in sweep.cases])
    uniform = np.array([gap * mark / 2.0 for gap, _, mark in sweep.cases])
    rates = np.array([[_rate(policy, *case) for case in sweep.cases]])
    learned = sweep.of == "T" or bool((y.mean(axis=0) < LEARNED * uniform).all())
    measured = slope(sweep.x, y, confidence) if learned else None
    return Exponent(sweep.of, measured, round(slope(sweep.x, rates).measured, 9) + 0.0)


def _control(regret: Regret, marks: Sequence[int], replications: int) -> Finding:
    """Return the finding about the control: uniform play has regret gap T / 2, up to chance."""
    deviations = []
    for sweep in _sweeps(CONTROL, marks):
        fit = slope(sweep.x, np.column_stack([regret[CONTROL, *case] for case in sweep.cases]))
        exact = slope(sweep.x, np.array([[_rate(CONTROL, *case) for case in sweep.cases]])).measured
        # The number of heads of T fair coins has a relative error of 1/sqrt(T), and a slope is a weighted sum of logarithms.
        weights = slope_weights(sweep.x)
        error = math.sqrt(sum(w * w / (m * replications) for w, (_, _, m) in zip(weights, sweep.cases, strict=True)))
        near, far = max(fit.low - exact, exact - fit.high, 0.0), max(exact - fit.low, fit.high - exact)
        deviations.append(divided(Interval(abs(fit.measured - exact), near, far), error))
    return finding(
        "the measurement itself: uniform play has the exponents 1, -1 and 0; largest deviation, in standard errors",
        largest(deviations),
        "the interval extends 2 to 5 standard errors to each side; the measured number is rarely off by more than 3",
    ).at_most(8.0)


def _learning(measured: Measured, headline: str = "") -> list[Finding]:
    """Return the finding about growth in T, on a scale from 0 (the rate) to 1 (linear)."""
    shares = {
        policy: divided(shifted(in_t.measured, in_t.printed), 1.0 - in_t.printed)
        for policy, (in_t, *_) in measured.items()
        if in_t.measured is not None and in_t.printed < VACUOUS
    }
    if not shares:
        return []
    worst = max(shares, key=lambda policy: shares[policy].measured)
    claim = "rows learns: growth in T is nearer to its rate (0) than to linear (1), worst row"
    note = f"worst: {_title(worst)}, {measured[worst][0]}"
    share = largest(shares.values())
    return [finding(f"each of {len(shares)} {claim}", share, note).at_most(0.5, headline=headline)]


def _row(policy: Policy, exponents: Sequence[Exponent]) -> Finding:
    """Return the finding about the largest excess of a measured exponent over the exponent of the rate."""
    facts = policy.facts
    vacuous = exponents[0].printed >= VACUOUS
    counted = exponents[:1] if vacuous else exponents
    names = parsed(facts.instance or facts.worst).names
    left_out = (
        "the row omits the u that the algorithm must know: scaling rewards and u^(1/(1+eps)) by s scales regret by s"
    )
    remarks = {
        "with two arms the rate grows faster than T, so it says nothing": vacuous,
        f"proved for {facts.assumption}": facts.assumption.name == "long horizon",
        left_out: "u" in facts.knows and not {"u", "KLinf(arm, best mean)"} & names,
    }
    return finding(
        f"{_title(policy)}: no exponent is above the rate's; largest excess",
        largest(shifted(e.measured, e.printed) for e in counted if e.measured is not None),
        "; ".join([*map(str, exponents), *(remark for remark, applies in remarks.items() if applies)]),
    ).at_most(0.0, asymptotic=True)


def _missing(rows: Sequence[Policy], regret: Regret, marks: Sequence[int], confidence: float) -> list[Finding]:
    """Return findings about a term that is missing in two rows of the table."""
    # These two policies learn nothing from tiny rewards. Their regret is linear, although the printed power of u is tiny.
    printed = {AdaTINF: ("22", 1.0 / (1.0 + HEAVY.eps)), OptTINF: ("21", 1.0 - HEAVY.eps / 2.0)}
    findings = []
    for policy in rows:
        if type(policy) in printed:
            item, power = printed[type(policy)]
            y = np.column_stack([regret[policy, BASE[0] * TINY, BASE[1] * TINY, mark] for mark in marks])
            claim = (
                f"{_title(policy)}: the worst case needs the sqrt(K T) that the table omits; with rewards times {TINY:g} "
                "regret grows in T with a larger exponent than the printed rate"
            )
            note = f"the printed rate is T^{number(power)} times a power of u; regret exceeds any multiple of it for some T and u"
            exponent = slope(np.array(marks, dtype=np.float64), y, confidence)
            findings.append(finding(claim, exponent, note).at_least(power, misprints=(item,)))
    return findings


def _title(policy: Policy) -> str:
    return policy.facts.title or policy.name


def _rows(measured: Measured) -> list[Row]:
    rows = []
    for policy, exponents in measured.items():
        for e in exponents:
            row: Row = {"case": f"{_title(policy)}: {e.of}", "series": e.of}
            row |= {"limit": e.printed} if exponents[0].printed < VACUOUS else {}
            rows.append(row if e.measured is None else row_of(e.measured, **row))
    return rows


STATEMENT = Statement(
    key="table-1",
    name="Table 1",
    says="Regret grows with T, 1/gap and u as each row of the table states, such as (u/gap)^(1/eps) log T per arm for AdaR-UCB.",
    run=run,
    policies=table_rows,
)
