"""Code as users write it: a strict type checker must accept every line, and infer the types that are asserted.

`make check` reads this file beside the library, `make package` with the installed wheel. It is not run.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, assert_type

import numpy as np
import polars as pl
from numpy.typing import NDArray

import robandit as rb
from robandit import (
    checks,
    client,
    diagnostics,
    errors,
    estimators,
    experiments,
    laws,
    recorded,
    suites,
    theory,
    verify,
)
from robandit.kernel.random import uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def live(folder: Path) -> None:
    bandit = rb.Bandit(["eu", "us"], rb.AdaRUCB(bonus="tight"), seed=1)
    rb.Bandit(np.arange(3))
    rb.Bandit(("a", ("b", 2), None), policy=rb.UCB1())
    arm: str = bandit.select()
    assert_type(bandit.update(arm, -1.5), None)
    bandit.update_many(["eu", "us"], [1, 2.5])
    bandit.update_many(["eu", "us"], np.array([1.0, 2.0]))
    decision = bandit.decide()
    assert_type(decision, rb.Decision)
    assert_type(decision.id, str | int)
    assert_type(decision.time, float)
    assert_type(decision.propensity, float | None)
    bandit.reward(decision, 0.5)
    bandit.reward(decision.id, 0.5)
    bandit.reward_many([decision], [0.5])
    assert_type(bandit.expire(decision, "k3m9-7", older_than=timedelta(hours=1)), int)
    bandit.decide(among=["eu"])
    bandit.add_arm("asia")
    assert_type(bandit.states, dict[Any, Literal["active", "paused", "retired"]])
    assert_type(bandit.open_count, int)
    log: list[rb.events.Event] = []
    for event in log:
        bandit.apply(event)
        bandit.apply(event.to_dict())
    rb.Bandit(["eu"], minimize=True, max_open=10, drift="probe", log=log.append, clock=lambda: 0.0)
    assert_type(bandit.open, tuple[rb.Decision, ...])
    assert_type(bandit.policy, rb.Policy)
    assert_type(bandit.estimates(), list[dict[str, Any]])
    assert_type(bandit.counters(), dict[str, int])
    bandit.save("bandit.bin")
    bandit.save(folder / "bandit.bin")
    assert_type(rb.Bandit.load(folder / "bandit.bin"), rb.Bandit)
    found = bandit.diagnose()
    assert_type(found, diagnostics.Diagnosis)
    assert_type(found.contradicted, bool | None)
    assert_type(found.advice, rb.Recommendation)
    rb.precompile([rb.UCB1()], processes=2)


def simulations(folder: Path) -> None:
    problem = rb.problems.negated_pareto(means=[-1.0, -2], tail=1.5)
    assert_type(problem, rb.Problem)
    assert_type(problem.means, Floats)
    assert_type(problem.best_arm, int)
    assert_type(problem.assumption(), laws.Verdict)
    own = rb.Problem([laws.Gaussian(0.0, 1.0), -laws.Pareto(1.5, 2.0), laws.Constant(1.0) + 2.0])
    result = rb.simulate([rb.AdaKLUCB(), rb.UCB1(scale=2.0)], problem, horizon=1000, replications=20, seed=1)
    assert_type(result, rb.Result)
    assert_type(result.regret, Floats)
    assert_type(result.pulls, Ints)
    assert_type(result.summary(), pl.DataFrame)
    assert_type(result.curves(), pl.DataFrame)
    assert_type(result.policies, tuple[rb.Policy, ...])
    result.to_parquet(folder / "result.parquet")
    assert_type(rb.Result.from_parquet("result.parquet", own), rb.Result)
    rb.simulate(rb.UCB1(), own, 10, checkpoints=[1, 10], threads=1, progress=False)
    informed = rb.RobustUCB().informed_by(problem, eps=0.4)
    assert_type(informed, rb.RobustUCB)
    assert_type(rb.Policy.from_dict(informed.to_dict()), rb.Policy)
    assert_type(rb.policies.all_policies(), list[rb.Policy])
    assert_type(rb.Restarting(rb.UCB1(), delta=0.1).prepared(10), rb.Restarting)
    assert_type(rb.problems.changing("swap", problem, at=5), rb.problems.Changing)
    assert_type(suites.heavy(), suites.Suite)
    assert_type(rb.suites.named("heavy").tasks[0].problem, rb.Problem)


class State(NamedTuple):
    sums: Floats
    counts: Ints
    rng: Any


class Greedy(rb.Policy):
    """A user's policy: its parameters are fields, which its constructor takes."""

    epsilon: float = 0.1

    def init(self, arms: int, horizon: int | None) -> State:
        return State(np.zeros(arms), np.zeros(arms, dtype=np.int64), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p: Any, s: State) -> int:
        return int(uniform(s.rng) * len(s.counts)) if uniform(s.rng) < p.epsilon else int(np.argmax(s.sums))

    @staticmethod
    def update(p: Any, s: State, arm: int, reward: float) -> None:
        s.sums[arm] += reward
        s.counts[arm] += 1


def own_policy(problem: rb.Problem) -> None:
    assert_type(Greedy(epsilon=0.2).epsilon, float)
    assert_type(Greedy().name, str)
    checks.check_policy(Greedy())
    rb.simulate([Greedy(), rb.EpsilonGreedy()], problem, 100)
    rb.Bandit(["a", "b"], Greedy(epsilon=0.5))


def reward_laws() -> None:
    law = laws.Mixture(laws=(laws.Gaussian(0.0, 1.0), -laws.Pareto(1.5, 1.0)), weights=(0.9, 0.1))
    assert_type(2.0 * laws.Gaussian(0.0, 1.0) - 1.0, laws.Law)
    assert_type(law.sample(10, seed=1), Floats)
    assert_type(law.mean, float)
    assert_type(law.cdf([0.0, 1.0]), Floats)
    assert_type(law.ppf([0.0, 1.0]), Floats)
    assert_type(law.truncated_nonpositivity(), laws.Verdict)
    assert_type(laws.Law.from_dict(law.to_dict()), laws.Law)
    checks.check_law(law, size=100)


def means(sample: Floats) -> None:
    found = estimators.adaptive_trimmed_mean([1.0, 2.0, 3.0], delta=0.05, seed=1)
    assert_type(found, estimators.Estimate)
    assert_type(found.delta, float | None)
    assert_type(float(found), float)
    assert_type(found.confidence_interval, estimators.ConfidenceInterval)
    estimators.catoni_mean(sample, v=1.0)
    estimators.trimmed_mean(sample, threshold=3.0)
    estimators.catoni_mean(sample, v=1.0, delta=0.05, bonus="tight")
    estimators.median_of_means(sample.reshape(2, -1), delta=0.05, axis=0)


def records(folder: Path) -> None:
    rows = recorded.open_records(folder / "requests.csv", arm="model", reward="cost", minimize=True)
    assert_type(rows, recorded.Records)
    assert_type(rows.table(), recorded.Table | recorded.Incomplete)
    summary = recorded.example("flights").summary()
    assert_type(summary, recorded.Recorded)
    assert_type(summary.arms[0].mean, float)
    assert_type(diagnostics.study(summary), diagnostics.Study)
    assert_type(rb.recommend({"a": [1.0, 2.0], "b": [0.5]}), rb.Recommendation)
    assert_type(rb.recommend([1.0, 2.0], eps=1.0, u=3.0).policy, rb.Policy)
    assert_type(rb.problems.recorded_problem({"a": [1.0], "b": np.zeros(3)}), rb.Problem)
    assert_type(experiments.replayed(rows, ["UCB1"], modes=["bootstrap"]), experiments.Plan)


def studies(folder: Path, problem: rb.Problem) -> None:
    spec = experiments.read_spec(folder / "experiment.toml")
    assert_type(spec, experiments.Spec)
    assert_type(spec.plan(), experiments.Plan)
    plan = experiments.planned(
        [experiments.Played("mine", problem, 1000)], [rb.UCB1(), rb.AdaRUCB()], replications=10, seed=1
    )
    outcome = experiments.run(plan, folder / "run", threads=2)
    with experiments.dask_engine(workers=2) as engine:
        experiments.run(plan, "run", engine=engine)
    assert_type(outcome.store, experiments.Store)
    results = experiments.Store.open("run").results()
    assert_type(results, experiments.Results)
    assert_type(experiments.summary(results), pl.DataFrame)
    assert_type(experiments.paired(results, results.problems[0]), pl.DataFrame)
    assert_type(experiments.ranking(results), pl.DataFrame)
    assert_type(experiments.verdict(results), str)


def theorems(problem: rb.Problem) -> None:
    bound = theory.regret_bound(rb.AdaRUCB(), problem, 10_000, eps=0.4)
    assert_type(bound, theory.RegretBound)
    assert_type(bound.instance, float | None)
    assert_type(bound.bounds, tuple[theory.Bound, ...])
    assert_type(theory.minimax_lower_bound(1000, 2, eps=1.0, u=1.0), float)
    assert_type(theory.lower_bound_u_adaptive(1000, eps=1.0, u=1.0, u_alternative=2.0), theory.PairBound)
    assert_type(theory.rate(rb.UCB1()), theory.Rate)
    outcomes = verify.verify(["Proposition 9"], quick=True)
    assert_type(outcomes, tuple[verify.Outcome, ...])
    assert_type(outcomes[0].failed, bool)
    assert_type(verify.statements(), tuple[verify.Statement, ...])


def served() -> None:
    with client.Client("http://127.0.0.1:8000", "rb_1", fallback="a", timeout=1) as service:
        provider = service.create("provider", ["a", "b"], minimize=True, reward_window=60, on_expiry=30)
        assert_type(provider, client.Experiment)
        decision = provider.decide(among=("a",), context={"region": "eu"})
        assert_type(decision, client.Decision)
        assert_type(decision.seq, int | None)
        assert_type(provider.reward(decision, 1), client.Reward)
        provider.reward_many([(decision, 0.5), ("order-17", 2)])
        assert_type(provider.decide_many([{"id": "x"}, {"arm": "b"}]), list[client.Decision])
        sticky = service.create("layout", ["old", "new"], sticky_for=3600)
        assert_type(sticky.decide(unit="user-17").repeat, bool)
        assert_type(service.waiting, tuple[client.Report, ...])
        with provider.timed(on_error=30.0) as measured:
            assert_type(measured, client.Decision)


async def served_async() -> None:
    async with client.AsyncClient("http://127.0.0.1:8000") as service:
        provider = service.experiment("provider", minimize=False)
        assert_type(await provider.decide(), client.Decision)
        assert_type(await provider.reward_many([("order-17", 2.0)]), list[client.Reward])
        async with provider.timed() as measured:
            assert_type(measured.arm, str)


def refusals() -> str:
    try:
        rb.Bandit(["a"])
    except errors.InvalidInput as error:
        return str(error)
    except errors.RobanditError:
        raise
    except ValueError:
        raise
    return ""
