"""A valid call of every public function, constructor and method, to be spoiled by `helpers.odd_values`.

Arguments are found by the name of the parameter, unless a call has its own. `test_values_fuzz` checks that no name is missing.
"""

import dataclasses
import inspect
import itertools
import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import robandit as rb
from helpers.law_examples import LAWS
from robandit import events
from robandit.estimators import streaming
from robandit.experiments import Played, Results, parse_spec, planned, run
from robandit.policies import all_policies
from robandit.recorded import Recorded, open_records
from robandit.verify import Effort, Finding, Statement
from robandit.verify.figure import Figure
from robandit.verify.statement import Evidence

MODULES = (
    "robandit",
    *(
        "robandit.policies",
        "robandit.laws",
        "robandit.problems",
        "robandit.estimators",
        "robandit.estimators.streaming",
    ),
    *(
        "robandit.theory",
        "robandit.diagnostics",
        "robandit.recorded",
        "robandit.suites",
        "robandit.drift",
        "robandit.live.events",
    ),
    *("robandit.checks", "robandit.experiments", "robandit.verify"),
)
PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.5)
LIGHT = rb.problems.gaussian(means=[0.0, -1.0])
SAMPLE = [((7 * k) % 41) - 20.3 for k in range(60)]
TWO = {"a": SAMPLE, "b": [x - 1.0 for x in SAMPLE]}
SPEC = """
version = 1
replications = 2
horizons = [20]
policies = ["UCB1"]
problems = ["gaussian(means=[1.0, 0.0])"]
"""
FRAME = pl.DataFrame({"arm": ["a", "b"] * 30, "reward": SAMPLE, "time": range(60)})


class Call(NamedTuple):
    """A call that works: a function that makes what is called, and one that makes its keyword arguments."""

    name: str
    target: Callable[[], Callable[..., Any]]
    given: Callable[[], dict[str, Any]]
    optional: tuple[str, ...] = ()
    slow: bool = False
    """Called a few times only."""

    @property
    def parameters(self):
        return (*self.given(), *self.optional)


USUAL: dict[str, Callable[[], Any]] = {
    "x": lambda: list(SAMPLE),
    "delta": lambda: 0.05,
    "eps": lambda: 0.5,
    "u": lambda: 2.0,
    "v": lambda: 2.0,
    "p": lambda: 0.5,
    "c": lambda: 1.0,
    "alpha": lambda: 0.1,
    "threshold": lambda: 3.0,
    "n": lambda: 50,
    "mean": lambda: -1.0,
    "budget": lambda: 0.1,
    "horizon": lambda: 50,
    "problem": lambda: PROBLEM,
    "policy": rb.UCB1,
    "means": lambda: [-1.0, -1.5],
    "tail": lambda: 1.5,
    "dof": lambda: 3.0,
    "order": lambda: 1.2,
    "m": lambda: 1.0,
    "size": lambda: 5,
    "seed": lambda: 0,
    "law": lambda: rb.laws.Gaussian(),
    "laws": lambda: [rb.laws.Gaussian(), rb.laws.Gaussian(1.0)],
    "arms": lambda: 3,
    "value": lambda: 1.0,
    "values": lambda: list(SAMPLE),
    "samples": lambda: {name: list(sample) for name, sample in TWO.items()},
    "rewards": lambda: {name: list(sample) for name, sample in TWO.items()},
    "rewards_or_problem": lambda: {name: list(sample) for name, sample in TWO.items()},
    "law_or_sample": lambda: list(SAMPLE),
    "time": lambda: 3,
    "name": lambda: "light",
    "u_alternative": lambda: 4.0,
    "results": lambda: _results(),
    "played": lambda: _plan().problems[0],
    "plan": lambda: _plan(),
    "recorded": lambda: Recorded.of(TWO),
    "records": lambda: open_records(FRAME),
    "statement": lambda: _statement(),
    "effort": lambda: Effort(quick=True),
}


@cache
def _plan():
    return planned([Played("p", LIGHT, 20)], [rb.UCB1(), rb.Uniform()], replications=2, seed=1)


@cache
def _finished() -> Path:
    folder = tempfile.mkdtemp(prefix="fuzzed-", dir=os.getcwd())
    run(_plan(), folder)
    return Path(folder)


@cache
def _results() -> Results:
    return rb.experiments.Store.open(_finished()).results()


def _statement():
    finding = Finding(claim="c", measured=1.0, low=0.0, high=2.0)
    evidence = Evidence(ran="nothing", findings=(finding,), figure=Figure.__new__(Figure), caption="")
    return Statement(key="k", name="K", says="nothing", run=lambda effort, track: evidence)


_numbers = itertools.count()


def new_path(suffix=""):
    return os.path.join(os.getcwd(), f"path-{next(_numbers)}{suffix}")


def of(target, name=None, /, *, slow=False, bound=False, without=(), **given):
    """A call with these arguments, and the usual ones for other parameters without a default.

    With ``bound``, ``target`` makes a new object, and ``name`` is its method.
    """
    label = name or target.__name__
    if bound:
        sample = getattr(target(), name)
        label = f"{type(target()).__name__}.{name}"
    else:
        sample = target
    known = inspect.signature(sample).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [p for p in known if p.kind in kinds and p.name not in without]
    required = {p.name: given[p.name] if p.name in given else USUAL[p.name] for p in named if _needed(p, given)}
    extra = {key: make for key, make in given.items() if key not in required}
    optional = tuple(p.name for p in named if p.name not in required)
    made = {key: make if callable(make) else partial(_same, make) for key, make in (required | extra).items()}
    return Call(
        label,
        (lambda: getattr(target(), name)) if bound else (lambda: target),
        lambda: {key: make() for key, make in made.items()},
        optional,
        slow,
    )


def _needed(parameter, given):
    return parameter.name in given or parameter.default is inspect.Parameter.empty


def _same(value):
    return value


def spread(function, *, name, slow=False, **given):
    """A call whose arguments are positional."""
    return Call(
        name, lambda: lambda **kwargs: function(*kwargs.values()), lambda: {k: m() for k, m in given.items()}, (), slow
    )


def _policies():
    for policy in all_policies():
        fields = {f.name: partial(_same, getattr(policy, f.name)) for f in dataclasses.fields(policy)}
        yield Call(type(policy).__name__, partial(_same, type(policy)), partial(_values, fields), ())
    for policy in (rb.UCB1(), rb.RobustUCB(), rb.MRAPE(), rb.KLinfUCB(), rb.Oracle(arm=0), rb.Probing(rb.UCB1())):
        made = partial(_same, policy)
        yield of(made, "informed_by", bound=True)
        yield of(made, "prepared", bound=True)
    yield of(rb.Policy.from_dict, data=lambda: {"policy": "UCB1", "scale": 1.0})
    yield of(rb.Policy.from_dict, data=lambda: {"policy": "RobustUCB", "estimator": "catoni", "eps": None, "v": None})
    yield of(rb.Policy.from_dict, data=rb.Restarting(rb.UCB1()).to_dict)


def _values(fields):
    return {key: make() for key, make in fields.items()}


def _laws():
    seen = set()
    for law in LAWS:
        if type(law) not in seen:
            seen.add(type(law))
            fields = {n: partial(_same, v) for n, v in _stored(law).items()}
            yield Call(type(law).__name__, partial(_same, type(law)), partial(_values, fields))
            made = partial(_same, law)
            for method in (
                "absolute_moment",
                "cdf",
                "central_moment",
                "partial_mean",
                "sample",
                "truncated_nonpositivity",
            ):
                if method != "central_moment" or np.isfinite(law.mean):
                    yield of(made, method, bound=True, **({"order": 0.5} if method == "absolute_moment" else {}))
            yield of(rb.laws.Law.from_dict, data=lambda law=law: law.to_dict())
    for symbol, operation in OPERATIONS.items():
        yield Call(f"Law {symbol}", partial(_same, partial(operation, rb.laws.Gaussian())), lambda: {"other": 2.0})
    yield of(rb.laws.Cauchy)
    yield of(rb.laws.two_point, low=-1.0, high=1.0, high_probability=0.5)
    yield of(rb.laws.scaled_to_mean, mean=2.0, law=lambda: rb.laws.Gaussian(1.0))
    yield of(rb.laws.tabulate)
    yield of(rb.laws.Verdict, holds=True, how="exact", reason="why")
    yield of(rb.laws.Component, weight=1.0, loc=0.0, scale=1.0, code=1)
    yield of(rb.laws.LawTable, **dict.fromkeys(rb.laws.LawTable._fields, lambda: np.zeros(1)))


OPERATIONS = {
    "+": lambda law, other: law + other,
    "-": lambda law, other: law - other,
    "*": lambda law, other: law * other,
}


def _stored(law):
    names = [f.name for f in dataclasses.fields(law)] if dataclasses.is_dataclass(law) else []
    if isinstance(law, (rb.laws.Empirical, rb.laws.Weighted)):
        names = ["data", *(["weights"] if isinstance(law, rb.laws.Weighted) else [])]
    return {name: getattr(law, name) for name in names if not name.startswith("_")}


def _problems():
    p = rb.problems
    yield of(rb.Problem, names=lambda: ["a", "b"])
    yield of(rb.Problem.from_dict, data=PROBLEM.to_dict)
    table = lambda: [[0.0, 1.0], [2.0, 1.0], [0.0, 4.0]]  # noqa: E731
    log = {"actions": lambda: [0, 1, 1, 0], "rewards": lambda: [1.0, 5.0, 7.0, 3.0], "names": lambda: ["a", "b"]}
    made = {
        "InOrder": lambda: p.InOrder(table()),
        "Logged": lambda: p.Logged(**{key: make() for key, make in log.items()}),
        "Changing": lambda: p.Changing([(0, PROBLEM), (5, PROBLEM)]),
        "Problem": lambda: PROBLEM,
    }
    yield of(p.InOrder, rewards=table)
    yield of(p.Logged, propensities=lambda: [0.5, 0.5, 0.5, 0.5], **log)
    yield of(p.Changing, pieces=lambda: [(0, PROBLEM), (5, PROBLEM)])
    for make in made.values():
        for method in ("u", "v", "uniform_regret", "check_horizon", "stretches"):
            usual = {"eps": 0.3} if method in "uv" else {"horizon": 3} if make is made["InOrder"] else {}
            yield of(make, method, bound=True, **usual)
        yield of(rb.Problem.from_dict, data=lambda make=make: make().to_dict())
    yield of(made["Changing"], "at", bound=True)
    for kind in ("swap", "rise", "fall", "tail", "load", "several", "slow"):
        yield of(p.changing, kind=kind, at=10)
    yield of(p.bernoulli, means=lambda: [0.5, 0.2])
    yield of(p.gaussian)
    yield of(p.student_t)
    yield of(p.stable, alpha=1.5)
    yield of(p.pareto, means=lambda: [1.0, 2.0])
    yield of(p.negated_pareto)
    yield of(p.negated_lomax)
    yield of(p.recorded_problem)
    yield of(p.eps_adaptive_pair, delta=0.1)
    yield of(p.u_adaptive_pair, delta=0.1)
    yield of(p.hard_gap)
    yield of(p.lower_bound_family, horizon=50)


def _estimators():
    e = rb.estimators
    for name in e.__all__:
        if not isinstance(getattr(e, name), type) and name not in ("b_p", "p_robust_mean", "adaptive_trimmed_mean"):
            yield of(getattr(e, name))
    yield of(e.b_p, p=1.5)
    yield of(e.p_robust_mean, p=1.5)
    yield of(e.adaptive_trimmed_mean, delta=0.3)
    for kind in (streaming.TrimmedMean, streaming.MedianOfMeans, streaming.Catoni):
        if inspect.signature(kind).parameters:
            yield of(kind)
        make = partial(_filled, kind)
        yield of(make, "estimate", bound=True, **({"delta": 0.3} if kind is streaming.TrimmedMean else {}))
        yield of(make, "merge", bound=True, other=make)
        yield of(make, "update", bound=True)
        yield of(make, "update_many", bound=True)
        yield of(kind.from_dict, state=lambda make=make: make().to_dict())
    yield of(partial(_filled, streaming.Catoni), "error", bound=True)


def _filled(kind):
    made = kind()
    made.update_many(SAMPLE)
    return made


def _theory():
    t = rb.theory
    for name in t.__all__:
        if not isinstance(getattr(t, name), type):
            usual = (
                {"mean": 5.0, "eps": 0.3}
                if name == "klinf"
                else {"eps": 0.3}
                if "instance" in name or "worst" in name
                else {}
            )
            yield of(getattr(t, name), **usual)
    yield of(partial(t.rate, rb.AdaRUCB()), "exponent", bound=True, of="T", T=100, K=2)
    yield of(t.Bound, kind="worst", value=1.0, source="s", status="proved")
    yield of(t.Rate)


def _diagnostics():
    d = rb.diagnostics
    for name in d.__all__:
        if not isinstance(getattr(d, name), type):
            yield of(getattr(d, name))
    yield of(rb.recommend, rewards_or_problem=lambda: PROBLEM)
    yield of(d.resolution, samples=USUAL["samples"], weights=lambda: {"a": [1.0] * 60, "b": [1.0] * 60})


def _recorded():
    r = rb.recorded
    yield of(open_records, path=lambda: FRAME)
    yield of(open_records, path=partial(_written, ".csv", lambda path: FRAME.write_csv(path)))
    yield of(open_records, path=partial(_written, ".jsonl", lambda path: FRAME.write_ndjson(path)))
    yield of(open_records, path=partial(_written, ".parquet", lambda path: FRAME.write_parquet(path)))
    yield of(r.example, name="flights")
    yield of(Recorded.of)
    make = USUAL["records"]
    for method in ("log", "samples", "summary", "table"):
        yield of(make, method, bound=True)


@cache
def _written_once(suffix, write):
    path = new_path(suffix)
    write(path)
    return path


def _written(suffix, write):
    return _written_once(suffix, write)


def _live():
    arms = lambda: ["a", "b", "c"]  # noqa: E731
    yield of(rb.Bandit, arms=arms, compile="never")
    yield of(rb.Bandit.from_bytes, data=lambda: _bandit().to_bytes(), compile="never")
    yield of(rb.Bandit.load, path=_saved, compile="never")
    for policy in (None, rb.UCB1(), rb.HTINF(eps=0.5, u=2.0), rb.MRAPE(eps=0.5, horizon=10)):
        make = partial(_bandit, policy)
        yield of(make, "update", bound=True, arm="a", reward=1.0)
        yield Call("Bandit.reward", lambda make=make: make().reward, lambda: {"decision": "?", "value": 1.0})
        yield of(make, "select", bound=True, among=arms)
        yield of(make, "decide", bound=True, among=arms)
        yield of(make, "update_many", bound=True, arms=arms, rewards=lambda: [1.0, 2.0, 3.0])
        yield of(make, "reward_many", bound=True, decisions=list, values=list)
        yield Call("Bandit.reward", lambda make=make: partial(_rewarded, make), lambda: {"value": 1.0})
        yield Call(
            "Bandit.reward_many", lambda make=make: partial(_rewarded_many, make), lambda: {"values": [1.0, 2.0]}
        )
    for method in ("add_arm", "pause_arm", "resume_arm", "retire_arm"):
        yield of(_bandit, method, bound=True, arm="new" if method == "add_arm" else "a")
    yield spread(lambda decision: _bandit().expire(decision), name="Bandit.expire", decision=lambda: "?")
    yield of(_bandit, "expire", bound=True, older_than=lambda: None)
    yield of(_bandit, "save", bound=True, path=lambda: new_path(".bandit"))
    for event in (
        events.Observed(arm="a", value=1.0),
        events.ArmAdded(arm="new"),
        events.ArmPaused(arm="a"),
        events.Decided(id="k3m9qd2x7wfa-12", arm="a", mark=0.0, propensity=None, time=0.0),
        events.Rewarded(id="k3m9qd2x7wfa-12", value=1.0),
        events.Expired(id="k3m9qd2x7wfa-12"),
    ):
        yield of(_bandit, "apply", bound=True, event=event.to_dict)
        yield Call(f"apply {type(event).__name__}", lambda: _apply_fields, lambda event=event: event.to_dict())
        yield of(events.event_from, data=event.to_dict)
    yield from _drift()
    river = import_module("robandit.river").RiverPolicy
    yield of(river)
    yield of(river, "pull", bound=True, arm_ids=arms)
    yield spread(partial(_river_update, river), name="RiverPolicy.update", arm=lambda: "a", reward=lambda: 1.0)


def _river_update(kind, arm, reward):
    policy = kind()
    policy.pull(["a", "b"])
    policy.update(arm, reward)


def _drift():
    d = rb.drift
    yield of(d.Watch, arms=3, salt=5)
    yield of(partial(d.Watch, 3, 5), "feed", bound=True, arm=1, values=USUAL["values"])
    yield of(partial(d.Watch, 3, 5), "prepare", bound=True, compile="never")
    yield of(d.Watch.load, saved=lambda: d.Watch(3, 5).save(), salt=5)
    yield of(d.Summary.of, rewards=lambda: np.array(SAMPLE))
    yield of(d.Summary, low=0.0, median=1.0, high=2.0)


def _apply_fields(**data):
    return _bandit().apply(data)


def _rewarded(make, value):
    bandit = make()
    bandit.reward(bandit.decide(), value)


def _rewarded_many(make, values):
    bandit = make()
    bandit.reward_many([bandit.decide(), bandit.decide().id], values)


@cache
def _bytes_of(policy):
    bandit = rb.Bandit(["a", "b", "c"], policy, seed=0, compile="never")
    if not bandit.policy.weighted:
        bandit.update_many(["a", "b", "c"], [1.0, 2.0, 3.0])
    return bandit.to_bytes()


def _bandit(policy=None):
    return rb.Bandit.from_bytes(_bytes_of(policy), compile="never")


@cache
def _saved():
    path = new_path(".bandit")
    _bandit().save(path)
    return path


def _simulations():
    few = {"replications": 1, "progress": lambda: False, "threads": 1}
    yield of(
        rb.simulate, policies=lambda: [rb.UCB1()], problem=LIGHT, horizon=20, without=("stop", "pool"), seed=0, **few
    )
    result = _result()
    names = [f.name for f in dataclasses.fields(result) if f.init]
    yield of(rb.Result, **{name: partial(_same, getattr(result, name)) for name in names})
    yield of(_result, "to_bytes", bound=True)
    yield of(_result, "to_parquet", bound=True, path=lambda: new_path(".parquet"))
    yield of(rb.Result.from_parquet, path=partial(_written, ".result", _write_result))


@cache
def _result():
    return rb.simulate([rb.UCB1()], LIGHT, 20, 2, seed=0, threads=1)


def _write_result(path):
    _result().to_parquet(path)


def _experiments():
    x = rb.experiments
    yield of(Played, name="p")
    yield of(planned, problems=lambda: [Played("p", LIGHT, 20)], policies=lambda: [rb.UCB1()], replications=2)
    yield of(parse_spec, text=SPEC)
    yield of(x.read_spec, path=partial(_written, ".toml", lambda path: Path(path).write_text(SPEC)))
    yield of(x.summary)
    yield of(x.ranking)
    yield of(x.verdict)
    yield of(x.paired)
    yield of(x.replayed, policies=lambda: ["UCB1"], quick=True, slow=True)
    yield of(
        x.Spec, policies=lambda: ("UCB1",), problems=lambda: ("gaussian(means=[1.0, 0.0])",), horizons=lambda: (20,)
    )
    yield of(x.Store.open, folder=_finished)
    yield of(x.Store.create, folder=new_path, slow=True)
    yield of(partial(x.Store.open, _finished()), "continued", bound=True)
    yield of(partial(x.Store.open, _finished()), "write_results", bound=True, slow=True)
    yield of(run, folder=new_path, slow=True, without=("engine",))


def _rest():
    c = rb.checks
    yield of(c.check_law, size=1000, slow=True)
    mean = lambda: rb.estimators.sample_mean  # noqa: E731
    yield of(c.check_estimator, estimator=mean, size=20, replications=20, without=("parameters",), slow=True)
    yield of(c.check_policy, policy=lambda: rb.Oracle(arm=0), slow=True)
    yield of(rb.suites.named)
    yield of(Effort)
    yield of(Finding, claim="c", measured=1.0, low=0.0, high=2.0)
    finding = partial(Finding, claim="c", measured=1.0, low=0.0, high=2.0)
    yield of(finding, "at_most", bound=True, most=3.0)
    yield of(finding, "at_least", bound=True, least=3.0)
    yield of(finding, "between", bound=True, least=0.0, most=3.0)
    yield of(rb.verify.checked)
    yield of(rb.verify.statements, names=lambda: ["lemma-2"])
    yield of(rb.precompile, policies=lambda: [rb.Uniform()], without=("into", "done"), slow=True)


NOT_CALLED = {
    **dict.fromkeys(("heavy", "light", "paper", "lower_bound"), "suites take no arguments"),
    "verify": "takes seconds; `statements` checks its names, and `Effort` its numbers",
    "dask_engine": "starts a cluster; see tests/experiments/test_engines.py",
}


RETURNED = {
    *("ConfidenceInterval", "Filtered", "Drift", "Timeline"),
    *("Decided", "Rewarded", "Expired", "Observed", "ArmAdded", "ArmPaused", "ArmResumed", "ArmRetired"),  # see `apply`
    *(
        "Decision",
        "Estimate",
        "Recommendation",
        "Diagnosis",
        "ArmDiagnosis",
        "ArmStudy",
        "Study",
        "Nonpositivity",
        "Resolution",
    ),
    *(
        "TailIndex",
        "TailPath",
        "RegretBound",
        "PairBound",
        "Alarm",
        "SavedWatch",
        "Outcome",
        "Statement",
        "Suite",
        "Task",
    ),
    *(
        "ArmRecord",
        "BadRows",
        "Incomplete",
        "Log",
        "Recorded",
        "Records",
        "Samples",
        "Table",
        "Plan",
        "Results",
        "Store",
        "Law",
    ),
}
"""Classes whose instances Robandit makes; they store what they are given. `Law` is abstract."""


@cache
def calls():
    """All calls. Make them in a folder of a test, since some write files."""
    makers = (
        _policies,
        _laws,
        _problems,
        _estimators,
        _theory,
        _diagnostics,
        _recorded,
        _live,
        _simulations,
        _experiments,
        _rest,
    )
    return [call for make in makers for call in make()]
