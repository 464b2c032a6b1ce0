"""Makes the saved bandits and the run folder that are not there yet: those of a new format, or of a policy that is new here.

    python tests/golden/make.py

A file that is there stays: it is not made anew so that a failing test may pass. Each ``.bandit`` was written by a release that
wrote the format in its name. ``expected.json`` holds what a bandit that
is loaded from it must decide next, when it is told the rewards listed there. The bandit of ``production`` has costs, arms that came
and went, and a change that its detector noticed. A run folder holds the same plan in each format, since format 2 also
with a policy of a user, from ``golden_policy.py``.
"""

import json
import shutil
import warnings
from pathlib import Path
from unittest import mock

import robandit as rb
from robandit.experiments import Played, planned, run
from robandit.experiments.notation import policies_from
from robandit.experiments.own_code import import_modules

HERE = Path(__file__).parent
FORMAT = 2
RUN_FORMAT = 2
ARMS = ["eu", 7, ("us", None, 0.5)]


def rewards(count, start=1):
    """Numbers without a library behind them: heavy losses, the same everywhere."""
    word = start
    for _ in range(count):
        word = word * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
        yield -((((word >> 11) + 1) * 2.0**-53) ** -0.6)


def production(policy):
    """A bandit to which everything happened that format 2 can hold."""
    bandit = rb.Bandit(ARMS[:2], policy, seed=1, minimize=True, max_open=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rb.errors.DriftWarning)
        bandit.update_many(["eu"] * 300, rewards(300, start=3))
        bandit.update_many(["eu"] * 300, [100.0 * reward for reward in rewards(300, start=4)])
    bandit.add_arm(ARMS[2])
    bandit.add_arm("paused")
    bandit.add_arm("retired")
    bandit.pause_arm("paused")
    bandit.retire_arm("retired")
    assert bandit.diagnose().changes
    return bandit


def make_run():
    """Make the run folder of this format."""
    import_modules(["golden_policy"], HERE)
    policies = [rb.UCB1(), rb.HTINF(), rb.KurtosisUCB(), *policies_from("golden_policy:LastBest(initial=0.5)")]
    plan = planned([Played("two arms", rb.problems.gaussian(means=[0.0, -0.5]), 100)], policies, replications=3, seed=5)
    place = HERE / f"run.format{RUN_FORMAT}"
    if not place.exists():
        machine = {"platform": "Linux", "processor": "x86_64", "cores": 2}
        with mock.patch("robandit.experiments.store.machine", return_value=machine):
            outcome = run(plan, place, threads=1, command="robandit run golden.toml", spec_text='name = "golden"\n')
        assert not outcome.failed, outcome.failed
        for folder in ("locks", "failures"):
            shutil.rmtree(place / folder)
        about = json.loads((place / "run.json").read_text())
        assert about["format"] == RUN_FORMAT


def main():
    make_run()
    known = HERE / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    policies = {"ucb1": rb.UCB1(scale=2.0), "adar_ucb": rb.AdaRUCB(), "adakl_ucb": rb.AdaKLUCB(schedule="practical")}
    quick = rb.AdaRUCB(c=1.0, delta_exp=1.0, bonus="tight")
    others = {"adar_ucb_quick": quick, "adakl_ucb_adaptive": rb.AdaKLUCB(), "production": rb.EpsilonGreedy()}
    for name, policy in (policies | others).items():
        file = f"{name}.format{FORMAT}.bandit"
        if (HERE / file).exists():
            continue
        bandit = production(policy) if name == "production" else rb.Bandit(ARMS, policy, seed=1)
        for reward in rewards(75):
            arm = bandit.select()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rb.errors.DriftWarning)
                bandit.update(arm, reward - ARMS.index(arm))
        decisions = [bandit.decide() for _ in range(3)]
        bandit.reward(decisions[1], -2.0)
        bandit.expire(decisions[2])
        bandit.save(HERE / file)
        told, chosen = list(rewards(60, start=2)), []
        for reward in told:
            chosen.append(ARMS.index(bandit.select()))
            bandit.update(bandit.select(), reward - chosen[-1])
        estimates = [[row[c] for c in policy.columns] for row in bandit.estimates()]
        expected[file] = {
            "policy": policy.to_dict(),
            "open": [decisions[0].id, ARMS.index(decisions[0].arm)],
            "states": list(bandit.states.values()),
            "told": told,
            "chosen": chosen,
            "pulls": [row["pulls"] for row in bandit.estimates()],
            "estimates": [[repr(value) for value in row] for row in estimates],
        }
    known.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
