"""Makes the saved bandits of this folder that are not there yet: those of a new format, or of a policy that is new here.

    python tests/golden/make.py

A file that is there stays: it is not made anew so that a failing test may pass. Each ``.bandit`` was written by a release that
wrote the format in its name. ``expected.json`` holds what a bandit that
is loaded from it must decide next, when it is told the rewards listed there.
"""

import json
from pathlib import Path

import robandit as rb

HERE = Path(__file__).parent
FORMAT = 2
ARMS = ["eu", 7, ("us", None, 0.5)]


def rewards(count, start=1):
    """Numbers without a library behind them: heavy losses, the same everywhere."""
    word = start
    for _ in range(count):
        word = word * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
        yield -((((word >> 11) + 1) * 2.0**-53) ** -0.6)


def main():
    known = HERE / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    policies = {"ucb1": rb.UCB1(scale=2.0), "adar_ucb": rb.AdaRUCB(), "adakl_ucb": rb.AdaKLUCB()}
    quick = rb.AdaRUCB(c=1.0, delta_exp=1.0, bonus="tight")
    for name, policy in (policies | {"adar_ucb_quick": quick}).items():
        file = f"{name}.format{FORMAT}.bandit"
        if (HERE / file).exists():
            continue
        bandit = rb.Bandit(ARMS, policy, seed=1)
        for reward in rewards(75):
            arm = bandit.select()
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
            "told": told,
            "chosen": chosen,
            "pulls": [row["pulls"] for row in bandit.estimates()],
            "estimates": [[repr(value) for value in row] for row in estimates],
        }
    known.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
