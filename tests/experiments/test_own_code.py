"""Modules with a user's policies: imported only on request, recorded, and compared on resuming and in workers."""

import importlib
import itertools
import json
import multiprocessing
import os
import pickle
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import robandit as rb
from helpers.dask_farm import dask_farm
from helpers.executor_engine import OnExecutor
from helpers.small_plan import everything, small_plan
from helpers.toml import spec_text
from helpers.typed import typed
from robandit.errors import InvalidInput, VersionSkew
from robandit.experiments import Store, dask_engine, parse_spec, read_spec, run
from robandit.experiments import own_code as own
from robandit.experiments.notation import policies_from, policy_class
from robandit.experiments.own_code import OwnModule, Packed, import_modules, own_modules
from robandit.experiments.plan import Played, planned
from robandit.experiments.spec import Spec

MODULE = """
from typing import NamedTuple
import numpy as np
from {widths} import width
from robandit.policies import Policy


class Sums(NamedTuple):
    sums: np.ndarray
    counts: np.ndarray


class CapUCB(Policy):
    cap: float = 1.0

    def init(self, arms, horizon):
        return Sums(np.zeros(arms), np.zeros(arms))

    @staticmethod
    def select(p, s):
        best, chosen = -np.inf, 0
        for arm in range(len(s.counts)):
            if s.counts[arm] == 0.0:
                return arm
            index = s.sums[arm] / s.counts[arm] + min(p.cap, width(s.counts[arm]))
            if index > best:
                best, chosen = index, arm
        return chosen

    @staticmethod
    def update(p, s, arm, reward):
        s.sums[arm] += reward
        s.counts[arm] += 1.0
"""
WIDTHS = "import math\n\n\ndef width(n):\n    return 2.0 / math.sqrt(n)\n"
SPEC = """
imports = ["{mine}"]
replications = 2
horizons = [50]
problems = ["gaussian(means=[1.0, 0.0])"]
policies = ["UCB1", "{mine}:CapUCB(cap=3)"]
"""
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def forgets_modules(monkeypatch):
    """Leave no folder on the path and no named module behind."""
    monkeypatch.setattr(own, "_named", {})
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def lab(tmp_path):
    """A folder with a policy, the module that it imports, and a spec; the name of the first module is new."""
    number = next(_numbers)
    names = {"mine": f"own_mine_{number}", "widths": f"own_widths_{number}"}
    (tmp_path / f"{names['mine']}.py").write_text(MODULE.format(**names))
    (tmp_path / f"{names['widths']}.py").write_text(WIDTHS)
    (tmp_path / "caps.toml").write_text(SPEC.format(**names))
    yield tmp_path, *names.values()
    for name in names.values():
        sys.modules.pop(name, None)


def forget(*names):
    """Start as a new process would."""
    for name in names:
        del sys.modules[name]
    own._named.clear()


# --- importing and notation -----------------------------------------------------------------------------------------


def test_notation_of_an_imported_module(lab):
    folder, mine, _ = lab
    import_modules([mine], folder)
    cap = sys.modules[mine].CapUCB
    texts = (f"{mine}:CapUCB(cap=3)", f"{mine}.CapUCB(cap=3)", "CapUCB(cap=3)", f" {mine}:CapUCB( cap = 3.0 )")
    for text in texts:
        assert policies_from(text) == [cap(cap=3.0)]
    for text in (f"Probing({mine}:CapUCB(cap=3))", "Probing(of=CapUCB(cap=3))", f"Probing(of='{mine}:CapUCB(cap=3)')"):
        assert policies_from(text) == [rb.Probing(of=cap(cap=3.0))]
    assert policies_from(f"{mine}:CapUCB") == policies_from("CapUCB") == [cap()]
    assert policies_from("UCB1") == [rb.UCB1()]


def test_notation_does_not_import(lab, monkeypatch):
    folder, mine, _ = lab
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(
        InvalidInput, match=rf"the module {mine} is not imported.*--import {mine}.*imports = \[\"{mine}\"\]"
    ):
        policies_from(f"{mine}:CapUCB")
    with pytest.raises(InvalidInput, match="policy 'CapUCB' is not known"):
        policies_from("CapUCB")
    assert mine not in sys.modules
    importlib.import_module(mine)
    assert policies_from(f"{mine}:CapUCB")
    with pytest.raises(InvalidInput, match="policy 'CapUCB' is not known"):  # nobody named the module
        policies_from("CapUCB")


def test_wrong_names_in_a_module(lab):
    folder, mine, _ = lab
    import_modules([mine], folder)
    for text, message in (
        (f"{mine}:CapUBC", rf"policy 'CapUBC' of the module {mine} is not known \(did you mean CapUCB\?\)"),
        (f"{mine}:width", "policy 'width' of the module"),
        (f"{mine}:Policy", "policy 'Policy' of the module"),
        ("math:pi", "math has no policies"),
        (f"{mine}:CapUCB(cup=3)", f"{mine}:CapUCB has no parameter 'cup'"),
        (f"{mine}:CapUCB(cap='x')", f"{mine}:CapUCB.cap='x'. cannot be made: cap = 'x' must be float"),
        (f"{mine}:", "cannot be read"),
        (f":{mine}", "cannot be read"),
        (f"{mine}:CapUCB:x", "cannot be read"),
        (f"{mine}:CapUCB(**x)", r"\*\* is not allowed"),
        (f"__import__('os').{mine}", "cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=message):
            policies_from(text)


def test_a_class_name_with_two_colons(lab):
    folder, mine, _ = lab
    import_modules([mine], folder)
    for name in (f"{mine}:CapUCB:x", "a:b:c", ":", "::"):
        with pytest.raises(InvalidInput, match=r"is not known|is not imported"):
            policy_class(name)


def test_two_modules_with_a_policy_of_one_name(lab):
    folder, mine, _ = lab
    (folder / f"{mine}_too.py").write_text((folder / f"{mine}.py").read_text())
    import_modules([mine, f"{mine}_too", mine], folder)
    with pytest.raises(InvalidInput, match=f"'CapUCB' is in several modules: write {mine}:CapUCB or {mine}_too:CapUCB"):
        policies_from("CapUCB")
    assert policies_from(f"{mine}_too:CapUCB")[0].tag() == f"{mine}_too:CapUCB"


def test_packages_with_and_without_a_file(tmp_path):
    for name, first in (("own_whole", True), ("own_bare", False)):
        (tmp_path / name / "sub").mkdir(parents=True)
        if first:
            (tmp_path / name / "__init__.py").write_text("")
            (tmp_path / name / "sub" / "__init__.py").write_text("from .mine import CapUCB\n")
        (tmp_path / name / "sub" / "mine.py").write_text(MODULE.format(widths="..widths"))
        (tmp_path / name / "widths.py").write_text(WIDTHS)
        import_modules([f"{name}.sub.mine"], tmp_path)
        policies = policies_from(f"{name}.sub.mine:CapUCB")
        if first:
            assert policies_from(f"{name}.sub:CapUCB") == policies
        modules = [module.name for module in own_modules(policies)]
        assert modules == [name, f"{name}.sub", f"{name}.sub.mine", f"{name}.widths"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py", "must be the name of a module; for example 'mine' for mine.py"),
        ("", "must be the name of a module; for example 'mine'"),
        ("a b", "must be the name"),
        ("../mine", "must be the name"),
        ("class", "must be the name"),
        (3, "must be the name"),
        ("own_not_there", "cannot be imported: ModuleNotFoundError: .*searched in all packages and "),
        ("own_wrong", r"cannot be imported: ZeroDivisionError: division by zero .*own_wrong\.py:2\)"),
        ("own_syntax", "cannot be imported: SyntaxError"),
        ("own_quits", "cannot be imported: .*SystemExit: 3"),
        ("own_needs", "cannot be imported: .*ModuleNotFoundError: No module named 'own_not_there_either'"),
        ("random", r"random\.py cannot be imported: the name random belongs to .*; rename the file"),
        ("wave", r"wave\.py cannot be imported: the name wave belongs to .*; rename the file"),
        ("robandit", r"robandit\.py cannot be imported: the name robandit belongs to .*; rename the file"),
    ],
)
def test_modules_that_cannot_be_imported(tmp_path, name, message):
    for file, text in {
        "own_wrong": "x = 1\n1 / 0\n",
        "own_syntax": "x = = 1\n",
        "own_quits": "raise SystemExit(3)\n",
        "own_needs": "import own_not_there_either\n",
        "random": "",
        "wave": "",
        "robandit": "",
    }.items():
        (tmp_path / f"{file}.py").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        import_modules([name], tmp_path)
    assert own._named == {}


def test_a_link_to_a_module_can_be_imported_twice(lab, tmp_path_factory):
    folder, mine, widths = lab
    other = tmp_path_factory.mktemp("links")
    for name in (mine, widths):
        (other / f"{name}.py").symlink_to(folder / f"{name}.py")
    for _ in range(2):
        import_modules([mine], other)
    import_modules([mine], folder)


def test_another_file_of_the_same_name(lab, tmp_path_factory):
    folder, mine, _ = lab
    import_modules([mine], folder)
    other = tmp_path_factory.mktemp("other")
    (other / f"{mine}.py").write_text("")
    with pytest.raises(InvalidInput, match=f"the name {mine} belongs to .*{folder.name}.*; rename the file"):
        import_modules([mine], other)


def test_a_folder_replaces_no_installed_package(lab, tmp_path_factory, monkeypatch):
    folder, mine, _ = lab
    installed = tmp_path_factory.mktemp("installed")
    monkeypatch.syspath_prepend(installed)
    for name in ("own_installed", "own_asked_for"):
        (installed / f"{name}.py").write_text("here = 'installed'\n")
        (folder / f"{name}.py").write_text("here = 'folder'\n")
    import_modules([mine], folder)
    assert importlib.import_module("own_installed").here == "installed"
    with pytest.raises(InvalidInput, match=r"the name own_asked_for belongs to .*installed.*; rename the file"):
        import_modules(["own_asked_for"], folder)
    forget("own_installed", "own_asked_for")


# --- specs ----------------------------------------------------------------------------------------------------------


def test_a_spec_imports_from_its_folder(lab, tmp_path_factory, monkeypatch):
    folder, mine, _ = lab
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    spec = read_spec(folder / "caps.toml")
    assert [policy.name for policy in spec.chosen()] == ["UCB1", "CapUCB(cap=3.0)"]
    assert spec.imports == (mine,)
    assert spec.plan().cells[1].policy.to_dict() == {"policy": f"{mine}:CapUCB", "cap": 3.0}


def test_a_text_imports_from_the_current_folder(lab, monkeypatch):
    folder, mine, _ = lab
    monkeypatch.chdir(folder)
    spec = Spec(imports=[mine], policies=["CapUCB"], suites=["light"])
    assert spec.imports == (mine,)
    assert parse_spec(spec_text(spec)) == spec


def test_a_spec_names_a_module_that_is_imported_already(lab, monkeypatch, tmp_path_factory):
    folder, mine, _ = lab
    monkeypatch.syspath_prepend(folder)
    importlib.import_module(mine)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / f"{mine}.py").write_text("1 / 0\n")
    monkeypatch.chdir(elsewhere)
    spec = Spec(imports=[mine], policies=["CapUCB"], suites=["light"])
    assert [type(policy) for policy in spec.chosen()] == [sys.modules[mine].CapUCB]
    with pytest.raises(InvalidInput, match=r"imports\[1\]: the module no_such_own_module cannot be imported"):
        Spec(imports=[mine, "no_such_own_module"], policies=["CapUCB"], suites=["light"])


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        ('"x"', r"t: imports = 'x' must be a list of names of modules"),
        ("[3]", r"t: imports\[0\] = 3 must be the name of a module"),
        (
            '[\n"no_such_own_module"]',
            r"t: imports\[0\]: the module no_such_own_module cannot be imported: Module",
        ),
        ('["math", "math"]', r"t: imports\[1\]: the import math is given twice"),
    ],
)
def test_wrong_imports_in_a_spec(imports, message):
    with pytest.raises(InvalidInput, match=message):
        parse_spec(f"imports = {imports}\npolicies = ['UCB1']\nsuites = ['light']", "t")


# --- run folders ----------------------------------------------------------------------------------------------------


def test_from_a_spec_to_the_report_and_back(lab):
    folder, mine, widths = lab
    typed("run", "caps.toml", cwd=folder)
    page = (folder / "caps" / "report.html").read_text()
    assert f"The module {mine}" in page
    assert "class CapUCB(Policy):" in page
    assert "CapUCB(cap=3.0)" in page
    data = json.loads((folder / "caps" / "run.json").read_text())
    assert [each["name"] for each in data["modules"]] == [mine, widths]
    assert {each["sha256"] for each in data["modules"]} == {
        OwnModule.of("", (folder / f"{name}.py").read_text()).sha256 for name in (mine, widths)
    }
    forget(mine, widths)
    for words in (("show", "caps"), ("export", "caps", "--out", "x.csv")):
        # In a new process the class is not known; here the registry has it, but nothing was imported.
        rb.policies.base._registry.pop(f"{mine}:CapUCB", None)
        err = typed("results", *words, cwd=folder, code=1)[1]
        assert err.startswith(f"robandit: policy '{mine}:CapUCB' is not known here. ")
        assert f"--import {mine}" in err
        assert mine not in sys.modules
        typed("results", *words, "--import", mine, cwd=folder)
        forget(mine, widths)
    assert "CapUCB(cap=3.0)" in (folder / "x.csv").read_text()


def test_the_option_of_every_command(lab):
    folder, mine, widths = lab
    (folder / "caps.toml").write_text((folder / "caps.toml").read_text().replace(f'imports = ["{mine}"]\n', ""))
    rewards = "".join(f"{arm},{i % 7}\n" for i in range(30) for arm in "ab")
    (folder / "log.csv").write_text(f"arm,reward\n{rewards}")
    policy = ("--policy", f"{mine}:CapUCB", "--replications", "1", "--horizon", "20")
    for words in (
        ("spec", "check", "caps.toml"),
        ("run", "caps.toml"),
        ("plan", "caps.toml"),
        ("compare", *policy, "--out", "c.html"),
        ("replay", "log.csv", *policy),
    ):
        assert f"add --import {mine}, or " in typed(*words, cwd=folder, code=1)[1]
        typed(*words, "--import", mine, cwd=folder)
        forget(mine, widths)
    assert f"robandit run caps.toml --import {mine}" in (folder / "caps" / "report.html").read_text()
    assert f"--import {mine}" in (folder / "c.html").read_text()


def test_other_code_is_refused_by_name(lab):
    folder, mine, widths = lab
    typed("run", "caps.toml", cwd=folder)
    before = (folder / "caps" / "run.json").read_bytes()
    (folder / f"{widths}.py").write_text(WIDTHS.replace("2.0", "2.5"))
    forget(mine, widths)
    for command in ("run", "plan"):
        err = typed(command, "caps.toml", cwd=folder, code=1)[1]
        assert f"caps was made with other code: the module {widths} changed (SHA-256 " in err
        assert err.endswith(
            "To continue, restore the module, or name another folder with --out FOLDER, or remove caps\n"
        )
    out = typed("results", "show", "caps", "--import", mine, cwd=folder)[0]
    assert f"The numbers are those of the code of the run, but the module {widths} changed" in out
    assert (folder / "caps" / "run.json").read_bytes() == before
    (folder / f"{widths}.py").write_text(WIDTHS)
    forget(mine, widths)
    assert ", 2 done before" in typed("run", "caps.toml", cwd=folder)[0]


def test_a_parameter_that_is_gone_is_other_code(lab):
    folder, mine, widths = lab
    typed("run", "caps.toml", cwd=folder)
    for name in ("caps.toml", f"{mine}.py"):
        (folder / name).write_text((folder / name).read_text().replace("cap=", "most=").replace("cap:", "most:"))
    (folder / f"{mine}.py").write_text((folder / f"{mine}.py").read_text().replace("p.cap", "p.most"))
    forget(mine, widths)
    assert f"other code: the module {mine} changed (SHA-256 " in typed("run", "caps.toml", cwd=folder, code=1)[1]


@pytest.mark.parametrize("which", ["mine", "widths"])
def test_a_file_edited_after_a_plain_import_is_refused_by_name(lab, monkeypatch, which):
    folder, mine, widths = lab
    monkeypatch.syspath_prepend(folder)
    module = importlib.import_module(mine)
    plan = small_plan(policies=[module.CapUCB()])
    name = {"mine": mine, "widths": widths}[which]
    file = folder / f"{name}.py"
    text = file.read_text() + "# edited\n"
    file.write_text(text)
    os.utime(file, ns=(time.time_ns(), time.time_ns()))  # the clock of files may be some milliseconds late
    with pytest.raises(InvalidInput, match=rf"the module {name} was imported before .*{name}\.py was changed: restart"):
        Store.create(folder / "run", plan)
    importlib.invalidate_caches()
    for each in (widths, mine):
        importlib.reload(sys.modules[each])
    assert text in [m.source for m in own_modules([sys.modules[mine].CapUCB()])]


def test_policies_of_robandit_and_of_scripts_record_no_module():
    class Local(rb.UCB1):
        pass

    Local.__module__ = "__main__"
    assert own_modules([rb.UCB1(), rb.Probing(of=rb.UCB1()), Local()]) == ()


# --- workers --------------------------------------------------------------------------------------------------------


def packed_plan(folder, mine):
    import_modules([mine], folder)
    plan = small_plan(replications=4, policies=policies_from("CapUCB") + [rb.UCB1()])
    return plan, Packed(own_modules(cell.policy for cell in plan.cells), pickle.dumps(plan))


def test_a_worker_imports_the_same_module(lab):
    folder, mine, widths = lab
    plan, packed = packed_plan(folder, mine)
    assert packed.opened() == plan
    forget(mine, widths)
    own._opened.cache_clear()
    read = packed.opened()
    assert read is packed.opened()
    assert type(read.cells[0].policy) is sys.modules[mine].CapUCB is not type(plan.cells[0].policy)


def test_modules_that_are_missing_or_not_the_workers(lab):
    folder, mine, widths = lab
    _, packed = packed_plan(folder, mine)
    other = [OwnModule.of(m.name, m.source + "\n") for m in packed.modules]
    with pytest.raises(
        VersionSkew, match=f"has imported another module {mine} than the run, from .*{mine}.py: copy it"
    ):
        Packed(tuple(other), packed.content).opened()
    forget(mine, widths)
    own._opened.cache_clear()
    sys.path.remove(str(folder))
    with pytest.raises(
        VersionSkew, match=f"{mine} cannot be imported on a worker .ModuleNotFoundError.*on the path of all workers"
    ):
        packed.opened()


def test_processes_and_a_cluster_with_the_file_give_the_same_bytes(lab, tmp_path_factory):
    pytest.importorskip("distributed", reason='Dask is not installed: pip install "robandit[cluster]"')
    folder, mine, _ = lab
    plan, _ = packed_plan(folder, mine)
    places = [folder / name for name in ("threads", "processes", "dask")]
    run(plan, places[0], threads=1)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert run(plan, places[1], engine=OnExecutor(pool)).failed == ()
    with dask_farm(tmp_path_factory.mktemp("farm")) as farm:
        cluster = farm(workers=0)
        cluster.start_worker(path=[str(folder)])
        with dask_engine(scheduler_file=cluster.file) as engine:
            assert run(plan, places[2], engine=engine).failed == ()
    assert everything(places[0]) == everything(places[1]) == everything(places[2])
    assert Store.open(places[2]).results().complete


def test_two_classes_with_one_name_must_get_labels():
    """They are different policies, so the message must not call one of them superfluous."""
    first, second = (type("CapUCB", (rb.UCB1,), {"__module__": module, "label": "CapUCB"}) for module in ("one", "two"))
    played = [Played("two arms", rb.problems.gaussian(means=[0.0, -1.0]), 10)]
    with pytest.raises(
        InvalidInput, match="one:CapUCB and two:CapUCB have the same name, CapUCB: give one class another"
    ):
        planned(played, [first(), second()], replications=2, seed=0)
    with pytest.raises(InvalidInput, match="CapUCB is given twice"):
        planned(played, [first(), first()], replications=2, seed=0)
