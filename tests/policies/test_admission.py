"""What a policy needs to be admitted (CONTRIBUTING.md): a published definition, a test against an independent implementation."""

import ast
from pathlib import Path

import pytest

from robandit.policies import all_policies

HERE = Path(__file__).parent
YARDSTICKS = {"Oracle", "Uniform"}  # nothing to publish, and no second way to write them
# The test that holds each policy against its independent implementation.
INDEPENDENT = {
    "APE2": "p_robust/test_ape2.py::test_decisions_are_those_of_the_formula",
    "Ada2TINF": "tinf/test_tinf.py::test_decisions_are_those_of_the_slow_ones",
    "AdaKLUCB": "adar/test_adakl_ucb.py::test_every_decision_is_the_references",
    "AdaRUCB": "adar/test_adar_ucb_exact.py::test_every_decision_is_the_references",
    "AdaTINF": "tinf/test_tinf.py::test_decisions_are_those_of_the_slow_ones",
    "CatoniLepskiiUCB": "robust_ucb/test_catoni_lepskii_ucb.py::test_decisions_are_those_of_the_slow_policy",
    "ClippedSGDUCB": "robust_ucb/test_clipped_sgd_ucb.py::test_it_is_the_slow_one",
    "EpsilonGreedy": "classic/test_baselines.py::test_epsilon_greedy_is_what_it_says",
    "ForceMoM": "robust_ucb/test_force_mom.py::test_it_is_the_slow_one",
    "HTINF": "tinf/test_tinf.py::test_decisions_are_those_of_the_slow_ones",
    "KLinfUCB": "klinf/test_klinf_ucb.py::test_decisions_with_the_slow_index",
    "KurtosisUCB": "robust_ucb/test_kurtosis_ucb.py::test_it_is_the_slow_one",
    "MARS": "resampling/test_resampling.py::test_decisions_are_those_of_the_slow_ones",
    "MRAPE": "p_robust/test_mr_ape.py::test_decisions_are_those_of_the_formula",
    "MRUCB": "p_robust/test_mr_ucb.py::test_decisions_are_those_of_the_formula",
    "NormalUCB": "classic/test_normal_ucb.py::test_it_decides_as_its_formula_says",
    "OptTINF": "tinf/test_tinf.py::test_decisions_are_those_of_the_slow_ones",
    "RMMUCB": "resampling/test_resampling.py::test_decisions_are_those_of_the_slow_ones",
    "RUCBLT": "r_ucb/test_tea.py::test_lt_decides_as_its_formula_says",
    "RUCBMoM": "r_ucb/test_mom.py::test_it_is_the_slow_one",
    "RUCBTEA": "r_ucb/test_tea.py::test_tea_decides_as_its_formula_says",
    "RobustMOSS": "robust_ucb/test_robust_moss.py::test_it_decides_as_its_formulas_say",
    "RobustUCB": "robust_ucb/test_robust_ucb.py::test_it_is_the_slow_one",
    "UCB1": "test_lazy.py::test_ucb1_is_a_full_scan",
    "UCBV": "classic/test_ucb_v.py::test_it_decides_as_its_formula_says",
    "UniINF": "tinf/test_uniinf.py::test_decisions_are_those_of_the_slow_one",
}


def test_every_policy_is_held_against_an_independent_implementation():
    assert set(INDEPENDENT) == {type(policy).__name__ for policy in all_policies()} - YARDSTICKS


@pytest.mark.parametrize("name", INDEPENDENT)
def test_that_test_exists_and_is_about_it(name):
    file, function = INDEPENDENT[name].split("::")
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
        f"{file} has no {function}"
    )
    assert name in {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree)}, (
        f"{file} is not about {name}"
    )


def test_every_definition_is_published():
    for policy in all_policies():
        if type(policy).__name__ not in YARDSTICKS:
            assert any(part.isdigit() and len(part) == 4 for part in policy.facts.citation.replace(";", " ").split()), (
                policy
            )
