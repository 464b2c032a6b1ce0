"""Importing is light, and public names exist."""

import os
import pickle
import subprocess
import sys

import pytest

import robandit as rb
import robandit.client
import robandit_client
from robandit.errors import InvalidInput

HEAVY = [
    "numba",
    "llvmlite",
    "polars",
    "scipy.stats",
    "matplotlib",
    "rich",
    "dask",
    "pandas",
    "cyclopts",
]


def run(code, **environment):
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_importing_robandit_imports_no_other_module_of_it():
    loaded = run("import sys, robandit; print(*sys.modules)").stdout.split()
    assert [name for name in loaded if name.startswith("robandit.")] == []
    assert "numpy" not in loaded


USED = "import sys, robandit as rb; rb.Bandit, rb.simulate, rb.UCB1, rb.recommend, rb.precompile, rb.problems, rb.laws"


def test_using_robandit_is_light():
    loaded = run(f"{USED}; print(*sys.modules)").stdout.split()
    assert "robandit.simulate" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    lazy = ("checks", "cli", "estimators.", "experiments", "recorded", "report", "suites", "theory", "verify")
    heavy = [name for name in loaded if name.startswith(tuple(f"robandit.{package}" for package in lazy))]
    assert [name for name in heavy if not name.startswith("robandit.estimators.formulas")] == []  # policies share them


CLIENT = """
import asyncio, sys
before = set(sys.modules)
from robandit.client import AsyncClient, Client
from robandit.errors import InvalidReward, Undelivered

client = Client("http://127.0.0.1:1", fallback="a", timeout=0.05)
provider = client.experiment("provider", minimize=True)
with provider.timed() as decision:
    pass
try:
    provider.reward(decision, float("nan"))
except InvalidReward:
    pass
assert len(provider.reward_many([(each, 1.0) for each in provider.decide_many(2)])) == 2
try:
    client.close()
except Undelivered as error:
    assert len(error.reports) == 6


async def main():
    client = AsyncClient("http://127.0.0.1:1", fallback="a", timeout=0.05)
    await client.experiment("provider").decide()
    try:
        await client.close()
    except Undelivered as error:
        assert len(error.reports) == 1


asyncio.run(main())
print(*sys.modules.keys() - before)
"""


ALONE = CLIENT.replace("robandit.client", "robandit_client").replace("robandit.errors", "robandit_client")


def imported(code):
    """The packages that are not of the standard library, and the rooms of robandit, that a new process imports."""
    loaded = run(code).stdout.split()
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    return packages, {name.split(".")[1] for name in loaded if name.startswith("robandit.")}


@pytest.mark.parametrize(
    ("code", "packages", "rooms"),
    [
        (
            "import sys; before = set(sys.modules); import robandit.client; print(*sys.modules.keys() - before)",
            {"robandit", "robandit_client"},
            {"client"},
        ),
        (CLIENT, {"robandit", "robandit_client"}, {"client", "errors"}),
        (ALONE, {"robandit_client"}, set()),
    ],
    ids=["import", "use", "alone"],
)
def test_the_client_needs_only_the_standard_library(code, packages, rooms):
    assert imported(code) == (packages, rooms)


def test_robandit_and_its_client_have_the_same_names_and_errors():
    assert all(getattr(rb.client, name) is getattr(robandit_client, name) for name in rb.client.__all__)
    assert set(robandit_client.__all__) == {*rb.client.__all__, *robandit_client.errors.__all__}
    for name in robandit_client.errors.__all__:
        assert getattr(rb.errors, name) is getattr(robandit_client, name)
        assert getattr(rb.errors, name).__module__ == "robandit.errors"
    raised = rb.errors.Undelivered("left", reports=[1])
    assert pickle.loads(pickle.dumps(raised)).reports == (1,)
    code = "import pickle, robandit_client as c; print(type(pickle.loads(pickle.dumps(c.Undelivered('left')))))"
    assert run(code).stdout == "<class 'robandit_client.errors.Undelivered'>\n"


def test_the_client_works_without_numpy():
    run("import sys; sys.modules['numpy'] = None\n" + CLIENT)
    packages, _ = imported(CLIENT + "import robandit.simulate; print(*sys.modules.keys() - before)")
    assert "numpy" in packages  # the negative control


SURVIVE = """
import robandit.simulate.result, robandit.precompile, robandit.diagnostics.recommend
import robandit as rb
assert all(callable(function) for function in (rb.simulate, rb.precompile, rb.recommend))
from robandit import precompile, simulate
assert (simulate, precompile) == (rb.simulate, rb.precompile)
import robandit.simulate.plot
assert rb.simulate is simulate
"""


def test_functions_survive_the_import_of_modules_of_their_name():
    run(SURVIVE)


ROOMS = """
import sys, importlib, pkgutil, robandit
names = [module.name for module in pkgutil.iter_modules(robandit.__path__) if module.name != "__main__"]
for name in names:
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "robandit"]:
        del sys.modules[loaded]
    importlib.import_module(f"robandit.{name}")
print(len(names), "scipy.stats" in sys.modules)
"""


def test_every_room_can_be_the_first_one_that_is_imported():
    """No room depends on what another one has imported before. None imports scipy.stats, which takes 0.8 s of each command."""
    number, stats = run(ROOMS).stdout.split()
    assert int(number) > 25
    assert stats == "False"


def test_public_names_are_listed_and_can_be_imported():
    assert dir(rb) == sorted([*rb.__all__, "__version__"])
    names = {}
    exec("from robandit import *", names)
    assert set(rb.__all__) <= set(names)
    assert names["UCB1"] is rb.UCB1 is rb.policies.UCB1
    assert names["events"] is rb.events
    assert pickle.loads(pickle.dumps([rb.simulate, rb.UCB1(), rb.Bandit])) == [rb.simulate, rb.UCB1(), rb.Bandit]
    for missing in ("UCB2", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'robandit' has no attribute '{missing}'"):
            getattr(rb, missing)


LIVE = """
import sys, warnings
import robandit as rb
warnings.simplefilter("ignore")  # rewards that grow look like drift
for policy in (None, rb.UCB1()):
    bandit = rb.Bandit(["x", "y"], policy, seed=1, minimize=True, log=lambda event: None)
    for reward in range(600):  # more than the record of rewards keeps unread
        bandit.update(bandit.select(), 0.001 * reward)
        bandit.reward(bandit.decide(), 1.0)
    bandit.expire(bandit.decide())
    bandit.pause_arm("x")
    bandit.estimates(), bandit.counters(), bandit.diagnose()
    bandit.save({path!r})
    rb.Bandit.load({path!r}).select()
print(*sys.modules)
"""


def test_a_live_bandit_is_light(tmp_path):
    """It needs Numba, which imports a part of SciPy, but no package for tables, figures, commands or clusters."""
    loaded = run(LIVE.format(path=str(tmp_path / "saved"))).stdout.split()
    assert "robandit.live.bandit" in loaded
    allowed = {"numba", "llvmlite"}
    assert [name for name in [*HEAVY, "distributed"] if name in loaded and name not in allowed] == []


def test_every_public_name_exists():
    assert len(set(rb.__all__)) == len(rb.__all__)
    for module in (rb, rb.checks, rb.errors, rb.laws, rb.policies, rb.problems):
        for name in module.__all__:
            assert getattr(module, name) is not None, f"{module.__name__}.{name}"
    assert {"AdaRUCB", "UCB1", "Bandit", "simulate", "precompile", "Policy"} <= set(rb.__all__)
    assert rb.__version__


def test_precompile_rejects_what_is_not_a_policy():
    with pytest.raises(InvalidInput, match=r"did you mean UCB1\(\)"):
        rb.precompile([rb.UCB1])


@pytest.mark.parametrize("processes", [0, -1, 1.5, True])
def test_precompile_rejects_a_wrong_number_of_processes(processes):
    with pytest.raises(InvalidInput, match=f"processes = {processes!r}"):
        rb.precompile([], processes=processes)
