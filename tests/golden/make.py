"""Makes the saved bandits and the run folder that are not there yet: those of a new format, or of a policy that is new here.

    python tests/golden/make.py

A file that is there stays: it is not made anew so that a failing test may pass. Each ``.bandit`` was written by a release that
wrote the format in its name. ``expected.json`` holds what a bandit that
is loaded from it must decide next, when it is told the rewards listed there. The bandit of ``production`` has costs, arms that came
and went, and a change that its detector noticed. A run folder holds the same plan in each format, since format 2 also
with a policy of a user, from ``golden_policy.py``.

``release-0.1.zip`` has files of every kind that the release 0.1 wrote; ``make_0_1.py`` made it.

``service.schema2.db`` is a store of the decision service with a log of every kind of event, and ``service.schema2.json`` holds what
each of its experiments must know at the end, and before some of its events. Other numbers are those of older schemas.

``archive.schema2.zip`` has that store after ``robandit archive`` (``service.db``), and the Parquet files that it wrote.

``events.json`` has the log of a live bandit as JSON, the arguments of the bandit, and what it must know at the end.

``openapi.v1.json`` is the interface of the decision service, without the version of Robandit. If a change of the interface is
meant, remove the file and make it anew; version 1 only gets additions that old clients do not notice.
"""

import asyncio
import itertools
import json
import platform
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path
from unittest import mock

import apsw
import msgspec

import robandit as rb
from robandit.decisions.archiving import archive
from robandit.decisions.engine import SingleServerEngine
from robandit.experiments import Played, planned, run
from robandit.experiments.notation import policies_from
from robandit.experiments.own_code import import_modules
from robandit.storage import open_store
from robandit.storage.base import PutKey, StoredKey
from robandit.storage.schema import VERSION

HERE = Path(__file__).parent
FORMAT = 2
RUN_FORMAT = 2
ARCHIVED_BEFORE = 1_800_000_300.25  # in the middle of the second experiment of the store
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


DEFAULTS = {"minimize": False, "seed": 7, "reward_window": None, "on_expiry": "drop", "max_open": None}
SERVED = {
    # The policy, its settings, the number of decisions, and those after which a snapshot is taken.
    "adakl-ucb": ("AdaKLUCB()", {"minimize": True}, 24, (16,)),
    "ucb1": ("UCB1(scale=2)", {"reward_window": 60.0, "max_open": 12}, 24, (10, 18)),
    "epsilon-greedy": ("EpsilonGreedy(epsilon=0.4)", {"reward_window": 45.0, "on_expiry": -3.5}, 24, (12, 20)),
    "ada2-tinf": ("Ada2TINF()", {}, 24, (12, 20)),
    "htinf": ("HTINF(eps=0.5, u=4)", {"seed": None}, 14, (8,)),
    "gaussian-ts": ("GaussianTS()", {}, 12, (4, 8)),
    "restarting": ("Restarting(UCB1())", {}, 14, ()),
}
"""The experiments of the golden store."""


def live(engine, name, now):
    """Let an experiment live, with all that can happen to one."""
    policy, options, count, snapshots = SERVED[name]
    settings = DEFAULTS | {"arms": ["eu", "us", "añ"], "policy": policy} | options
    experiment, _ = engine.create(name, **settings)
    values, ids = rewards(1000, start=len(name)), []
    for k in range(count):
        now[0] += 7.25
        among = ["us", "añ"] if k % 5 == 3 else None
        given = "us" if k % 6 == 5 and not experiment.bandit.policy.weighted else None
        context = msgspec.Raw(b'{"user": "\xc3\xa9", "n": [1, 2.50]}') if k % 7 == 2 else msgspec.UNSET
        made = experiment.decide(
            f"client {k}" if k % 3 else None, among=None if given else among, arm=given, context=context
        )
        ids.append(made.event.id)
        if k % 4 != 1:
            experiment.reward(made.event.id, next(values) * (1.0 if k % 2 else -0.25))
        if k >= 12 and k % 4 == 3:
            experiment.reward(ids[k - 10], next(values))  # after the window, if there is one
        if k in snapshots:
            engine.submit([experiment.snapshot()])
        if k == 6:
            experiment.add_arm("new")
            experiment.change_arm("us", "paused")
        if k == 9:
            experiment.change_arm("us", "active")
            experiment.change_arm("eu", "retired")
            experiment.pause()
            experiment.resume()
        if name == "ucb1" and k == 8:
            engine.reset(engine.find(name))
        experiment.expire_due()


def make_store():
    """Make the store of this schema, and what must be known about it."""
    path, beside = HERE / f"service.schema{VERSION}.db", HERE / f"service.schema{VERSION}.json"
    if path.exists():
        return
    now = [1_800_000_000.25]
    made = path.with_suffix(".new")

    async def make():
        store = open_store(f"sqlite:{made}")
        key = StoredKey("golden", bytes(range(32)), ("decide", "read"), ("ucb1",), "é", now[0], now[0] + 1e6, None)
        store.commit((), [PutKey(key)])
        engine = SingleServerEngine(store, clock=lambda: now[0], compile="never")
        await engine.load()
        engine.loaded = False  # no snapshots at the end: the logs have tails
        engine.create("removed", arms=["a"], policy=None, **DEFAULTS)
        for name in SERVED:
            live(engine, name, now)
            engine.audit("golden", "create", name, {"n": 1})
        engine.remove("removed")
        await engine.settled()
        expected = {name: known(experiment) for name, experiment in engine.experiments.items()}
        await engine.close()
        return expected

    expected = asyncio.run(make())
    db = apsw.Connection(str(made))
    db.execute("VACUUM; PRAGMA journal_mode = DELETE")
    db.close()
    made.rename(path)
    machine = [platform.system(), platform.machine()]
    beside.write_text(json.dumps({"machine": machine, "experiments": expected}, indent=1, ensure_ascii=False) + "\n")


def known(experiment):
    """Return what an experiment knows, as JSON. Floats are texts, so that they are exact and may be NaN."""
    rows = [{name: repr(value) for name, value in row.items()} for row in experiment.bandit.estimates()]
    return {
        "seq": experiment.seq,
        "epoch": experiment.epoch,
        "time": repr(experiment.time),
        "paused": experiment.paused,
        "counts": dict(sorted(experiment.counts.items())),
        "open": [[row.id, row.arm, repr(row.propensity), repr(row.time)] for row in experiment.bandit.open],
        "estimates": rows,
    }


def make_archive():
    """Archive part of a copy of the store."""
    place = HERE / f"archive.schema{VERSION}.zip"
    if place.exists():
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = Path(shutil.copy(HERE / f"service.schema{VERSION}.db", folder / "service.db"))
        store = open_store(f"sqlite:{path}")
        with mock.patch("robandit.decisions.archiving.now", return_value=1_900_000_000.0):
            for _ in archive(store, folder / "files", ARCHIVED_BEFORE):
                pass
        store.close()
        db = apsw.Connection(str(path))
        db.execute("VACUUM; PRAGMA journal_mode = DELETE")
        db.close()
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
            for each in [path, *sorted((folder / "files").glob("*.parquet"))]:
                target.write(each, each.name)


def make_events():
    """Make the log of a live bandit."""
    place = HERE / "events.json"
    if place.exists():
        return
    log, now = [], itertools.count(1_800_000_000.5, 0.25)
    given = {"arms": ["eu", ["us", None, 0.5]], "policy": rb.EpsilonGreedy(epsilon=0.3).to_dict(), "seed": 3}
    bandit = rb.Bandit(
        given["arms"],
        rb.Policy.from_dict(given["policy"]),
        seed=3,
        log=log.append,
        clock=lambda: next(now),
        compile="never",
    )
    for k, reward in enumerate(rewards(20, start=9)):
        decision = bandit.decide(**{1: {"among": ["eu"]}, 3: {"arm": "eu"}}.get(k % 6, {}))
        bandit.select()
        if k % 4 == 2:
            bandit.expire(decision)
        elif k % 4:
            bandit.reward(decision, reward)
        bandit.update("eu", reward)
        if k == 9:
            bandit.add_arm("new")
            bandit.pause_arm("eu")
        if k == 11:
            bandit.resume_arm("eu")
            bandit.retire_arm("new")
    events = [event.to_dict() for event in log]
    known = {
        "open": [[each.id, each.arm, repr(each.propensity), each.time] for each in bandit.open],
        "states": list(bandit.states.values()),
        "estimates": [{name: repr(value) for name, value in row.items()} for row in bandit.estimates()],
        "next": [bandit.decide().arm for _ in range(10)],
    }
    text = json.dumps({"bandit": given, "events": events, "known": known}, indent=1)
    place.write_text(text + "\n")


def interface():
    """The OpenAPI document without the version of Robandit, so that a release changes nothing."""
    from robandit.service.openapi import contents

    document = contents()
    del document["info"]["version"]
    return document


def make_openapi():
    """Make the document of the interface."""
    place = HERE / "openapi.v1.json"
    if not place.exists():
        place.write_text(json.dumps(interface(), indent=1) + "\n")


def main():
    make_run()
    make_store()
    make_archive()
    make_events()
    make_openapi()
    known = HERE / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    policies = {"ucb1": rb.UCB1(scale=2.0), "adar_ucb": rb.AdaRUCB()}
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
