"""Made ``release-0.1.zip``: files of every kind that Robandit 0.1 wrote and that later versions read.

    git archive f5352ea | tar -x -C OLD && pip install --constraint OLD/constraints.txt OLD  # in an environment of its own
    python tests/golden/make_0_1.py

It runs with Robandit 0.1.0 only, and is kept to show how the files were made. The archive is never made anew so that a failing test
may pass. It has

- ``bandits/``: a saved bandit of every policy, with an open decision. ``expected.json`` has what 0.1 decided next, and its
  estimates;
- ``run/``: a finished run folder, by ``robandit run spec.toml``;
- ``replay/``: a finished run folder of recorded rewards in every mode, by ``robandit replay log.csv``;
- ``every/run.json``: a plan with every policy and every law; ``expected.json`` has the keys of its units;
- ``result.parquet``: a result of ``simulate``.
"""

import json
import os
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from unittest import mock

import robandit as rb
from robandit import laws, policies
from robandit.cli import main as command
from robandit.experiments import Played, Store, planned

ARMS = ["eu", 7, ("us", None, 0.5)]
HORIZON = 400
HEAVY = rb.problems.negated_pareto(means=[-1.5, -2.0, -3.0], tail=1.6)
LIGHT = rb.problems.gaussian(means=[-1.5, -2.0, -3.0])
VARIANTS = [
    policies.AdaKLUCB(schedule="proved"),
    policies.AdaRUCB(center="median"),
    policies.AdaRUCB(solver="doubling"),
    policies.RobustUCB(estimator="catoni"),
    policies.RobustUCB(estimator="median_of_means"),
]
LAWS = [
    laws.Affine(laws.Gaussian(), -1.0, 2.0),
    laws.Bernoulli(0.3),
    laws.Burr(2.0, 3.0),
    laws.Constant(-1.0),
    laws.Discrete((-1.0, 2.0), (0.25, 0.75)),
    laws.Empirical([-1.0, -2.0, -8.0]),
    laws.Frechet(1.7),
    laws.Gaussian(0.5, 2.0),
    laws.LogNormal(0.0, 1.0),
    laws.Lomax(1.8),
    laws.Mixture((laws.Gaussian(), laws.Constant(1.0)), (0.5, 0.5)),
    laws.Negated(laws.Pareto(1.6)),
    laws.Pareto(1.5, 2.0),
    laws.Stable(1.5, 0.5),
    laws.StudentT(2.5),
    laws.Weibull(0.7),
    laws.Weighted([-1.0, -2.0, -8.0], [0.5, 0.25, 0.25]),
    laws.ZeroInflated(laws.Pareto(1.6), 0.5),
]
SPEC = """\
version = 1
name = "written by 0.1"
seed = 11
replications = 3
horizons = [60]
problems = ["negated_pareto(means=[-1.0, -1.5], tail=1.8)"]
policies = ["UCB1", "EpsilonGreedy", "AdaKLUCB"]
"""


def rewards(count, start=1):
    """Numbers without a library behind them: heavy losses, the same everywhere."""
    word = start
    for _ in range(count):
        word = word * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
        yield -((((word >> 11) + 1) * 2.0**-53) ** -0.6)


def informed(policy):
    try:
        return policy.informed_by(HEAVY)
    except rb.errors.NotApplicable:
        return policy.informed_by(LIGHT)


def save_bandit(policy, path):
    """Save a bandit, and return what it decides next."""
    bandit = rb.Bandit(ARMS, policy, seed=1)
    for reward in rewards(30):
        arm = bandit.select()
        bandit.update(arm, reward - ARMS.index(arm))
    decisions = [bandit.decide() for _ in range(3)]
    bandit.reward(decisions[1], -2.0)
    bandit.expire(decisions[2])
    bandit.save(path)
    chosen = []
    for reward in rewards(40, start=2):
        decision = bandit.decide()
        chosen.append(ARMS.index(decision.arm))
        bandit.reward(decision, reward - chosen[-1])
    bandit.reward(decisions[0].id, -1.0)
    estimates = [[repr(row[column]) for column in policy.columns] for row in bandit.estimates()]
    return {
        "policy": policy.to_dict(),
        "open": [decisions[0].id, ARMS.index(decisions[0].arm)],
        "chosen": chosen,
        "columns": list(policy.columns),
        "estimates": estimates,
    }


def typed(*words):
    with mock.patch.object(sys, "argv", ["robandit", *words]):
        try:
            command()
        except SystemExit as end:
            if end.code:
                raise


def main():
    assert rb.__version__ == "0.1.0"
    archive = Path(__file__).resolve().with_name("release-0.1.zip")
    assert not archive.exists()
    machine = {"platform": "Linux", "processor": "x86_64", "cores": 2}
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("robandit.experiments.store._machine", return_value=machine),
    ):
        os.chdir(folder)
        made = [getattr(policies, name) for name in policies.__all__]
        classes = [
            each for each in made if isinstance(each, type) and issubclass(each, rb.Policy) and each is not rb.Policy
        ]
        every = [*(each() for each in classes), *VARIANTS]
        Path("bandits").mkdir()
        expected = {"bandits": {}}
        warnings.simplefilter("ignore")
        for number, policy in enumerate(every):
            name = f"{number:02} {type(policy).__name__}"
            ready = informed(policy).prepared(HORIZON)
            expected["bandits"][name] = save_bandit(ready, f"bandits/{name}")
        expected["told"] = list(rewards(40, start=2))
        played = [Played("heavy", HEAVY, HORIZON), Played("light", LIGHT, HORIZON)]
        played += [Played(type(law).__name__, rb.Problem([law, laws.Affine(law, -0.5, 1.0)]), HORIZON) for law in LAWS]
        unique = {policy.name: policy for policy in every}
        plan = planned(played, list(unique.values()), replications=2, seed=3)
        Store.create("every", plan)
        expected["keys"] = [unit.key for unit in plan.units]
        Path("spec.toml").write_text(SPEC)
        losses = rewards(80)
        rows = [f"{t},{arm},{mean * next(losses):.6f},0.5" for t in range(40) for arm, mean in (("eu", 1), ("us", 2))]
        Path("log.csv").write_text("\n".join(["time,arm,reward,propensity", *rows]) + "\n")
        typed("run", "spec.toml", "--out", "run", "--threads", "1")
        modes = ("--mode", "bootstrap", "--mode", "in-order", "--mode", "rejection")
        typed(
            "replay", "log.csv", "--out", "replay", "--policy", "UCB1", *modes, "--replications", "3", "--threads", "1"
        )
        rb.simulate([rb.UCB1(), rb.EpsilonGreedy()], LIGHT, 50, 2, seed=5, first=1).to_parquet("result.parquet")
        Path("expected.json").write_text(json.dumps(expected))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
            for path in sorted(Path().rglob("*")):
                if path.is_file() and path.name != "report.html" and not {"locks", "keys"} & set(path.parts):
                    target.write(path)


if __name__ == "__main__":
    main()
