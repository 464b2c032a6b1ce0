"""Estimators are imported when they are first used; policies need only the formulas."""

import subprocess
import sys

from robandit import estimators


def loaded_after(code: str) -> set[str]:
    code += "; import sys; print(*(name for name in sys.modules if name.startswith('robandit.estimators.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    return {name.removeprefix("robandit.estimators.") for name in done.stdout.split()}


def test_importing_policies_loads_only_formulas():
    modules = loaded_after("import robandit.policies")
    assert modules
    assert all(name.split(".")[0] == "formulas" for name in modules), modules


def test_an_estimator_loads_what_it_needs():
    modules = loaded_after("from robandit.estimators import sample_mean")
    assert "sample" in modules
    assert not {"adaptive", "catoni", "threshold"} & modules


def test_names_survive_the_import_of_their_modules():
    """A module must not take the name of a function: Python would put it in the function's place."""
    code = "import robandit.estimators.sample, robandit.estimators as e; assert all(callable(getattr(e, n)) for n in e.__all__)"
    assert "adaptive" in loaded_after(code)
    assert dir(estimators) == sorted(estimators.__all__)
    assert not hasattr(estimators, "no_such_mean")
