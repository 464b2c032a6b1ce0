"""What a policy needs to be admitted (CONTRIBUTING.md): a published definition, a test against an independent implementation."""

import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from robandit.policies import all_policies

HERE = Path(__file__).parent
# A policy that ignores rewards is a baseline: there is nothing to publish, and no second way to write it.
ADMITTED = {type(policy).__name__: policy for policy in all_policies() if policy.uses_rewards}


@cache
def compared_policies():
    """Return the names of the policies that tests marked as `independent` compare, and the tests."""
    tests = {}
    for path in sorted(HERE.rglob("test_*.py")):
        if "mark.independent(" not in path.read_text(encoding="utf-8") or path == Path(__file__):
            continue
        spec = importlib.util.spec_from_file_location(f"read_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            for mark in getattr(function, "pytestmark", ()):
                if mark.name == "independent" and name.startswith("test_"):
                    for policy in mark.args:
                        tests.setdefault(policy, []).append(f"{path.relative_to(HERE)}::{name}")
    return tests


@pytest.mark.parametrize("name", ADMITTED)
def test_every_policy_is_compared_with_an_independent_implementation(name):
    assert compared_policies().get(name), f'mark the test of {name}: @pytest.mark.independent("{name}")'


def test_marks_name_policies():
    assert set(compared_policies()) <= set(ADMITTED)


@pytest.mark.parametrize("name", ADMITTED)
def test_every_definition_is_published(name):
    assert re.search(r"\b(19|20)\d\d\b", ADMITTED[name].facts.citation)
