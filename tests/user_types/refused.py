"""Mistakes that a strict type checker must report: without the error its comment is unused, which is an error itself.

Read like accepted.py, which has the same code without mistakes. It is not run.
"""

import robandit as rb
from robandit import client, estimators, experiments, laws, recorded, theory, verify


def wrong(bandit: rb.Bandit, problem: rb.Problem, records: recorded.Records) -> None:
    rb.Bandit(["a", "b"], "UCB1")  # type: ignore[arg-type]
    rb.Bandit(["a", "b"], rb.UCB1)  # type: ignore[arg-type]
    rb.Bandit(["a", "b"], seed="x")  # type: ignore[arg-type]
    rb.Bandit(2)  # type: ignore[arg-type]
    bandit.update("a", "much")  # type: ignore[arg-type]
    bandit.update("a")  # type: ignore[call-arg]
    bandit.reward(1.5, 1.0)  # type: ignore[arg-type]
    bandit.save(1.5)  # type: ignore[arg-type]
    bandit.diagnose().winner  # type: ignore[attr-defined]  # noqa: B018
    bandit.policy = rb.UCB1()  # type: ignore[misc]
    rb.UCB1(scale="large")  # type: ignore[arg-type]
    rb.UCB1(skale=2.0)  # type: ignore[call-arg]
    rb.UCB2()  # type: ignore[attr-defined]
    rb.AdaRUCB(bonus="loose")  # type: ignore[arg-type]
    rb.UCB1().scale = 2.0  # type: ignore[misc]
    rb.simulate(rb.UCB1, problem, 100)  # type: ignore[arg-type]
    rb.simulate(rb.UCB1(), laws.Gaussian(0.0, 1.0), 100)  # type: ignore[arg-type]
    rb.simulate(rb.UCB1(), problem, 1e5)  # type: ignore[arg-type]
    rb.simulate(rb.UCB1(), problem, 100, 10, 1, 4)  # type: ignore[call-arg]
    rb.Problem([1.0, 2.0])  # type: ignore[list-item]
    rb.problems.negated_pareto(means=1.0, tail=1.5)  # type: ignore[arg-type]
    rb.problems.pareto_negated(means=[1.0], tail=1.5)  # type: ignore[attr-defined]
    laws.Pareto("1.5", 1.0)  # type: ignore[arg-type]
    laws.Law()  # type: ignore[abstract]
    estimators.catoni_mean([1.0], delta=0.05)  # type: ignore[call-arg]
    estimators.catoni_mean([1.0], v=1.0, delta=0.05, bonus="likelihood")  # type: ignore[arg-type]
    estimators.trimmed_mean([1.0], 0.05)  # type: ignore[call-arg]
    records.table().arms  # type: ignore[union-attr]  # noqa: B018
    experiments.replayed(records, modes=["forwards"])  # type: ignore[list-item]
    experiments.run(problem, "run")  # type: ignore[arg-type]
    theory.regret_bound(rb.UCB1(), problem)  # type: ignore[call-arg]
    theory.regret_bound(rb.UCB1(), problem, 100).instance + 1.0  # type: ignore[operator]
    verify.verify("Proposition 9", quick="yes")  # type: ignore[arg-type]
    client.Client(8000)  # type: ignore[arg-type]
    client.Client("http://x").experiment("p").decide("a")  # type: ignore[call-arg]
    client.Client("http://x").experiment("p").decide_many([{"arms": "a"}])  # type: ignore[typeddict-unknown-key]
    client.Client("http://x").experiment("p").reward("id")  # type: ignore[call-arg]


class NoHooks(rb.Policy):
    epsilon: float = 0.1

    def init(self, arms: str, horizon: int | None) -> tuple[int, ...]:  # type: ignore[override]
        return (1,)


NoHooks(epsilon=None)  # type: ignore[abstract, arg-type]
