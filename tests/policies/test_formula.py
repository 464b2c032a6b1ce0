"""Rates in TeX. tests/theory/test_rates.py has the notation and the values."""

import re

import pytest

from robandit import UCBV
from robandit.errors import InvalidInput
from robandit.policies import all_policies
from robandit.policies.comparison import IN_PROSE, MOMENTS, as_markdown
from robandit.policies.formula import parsed

FORMULAS = sorted(
    {
        text
        for policy in [*all_policies(), UCBV(range=1.0)]
        for text in (policy.facts.instance, policy.facts.worst)
        if text
    }
)


@pytest.mark.parametrize("text", FORMULAS)
def test_the_formulas_of_all_policies_are_written_in_tex(text):
    """GitHub reads Markdown before TeX: no bars or stars, escapes of letters only, and no underscore that begins emphasis."""
    tex = parsed(text).tex()
    assert tex.count("{") == tex.count("}")
    assert tex.count("(") == tex.count(")")
    assert not re.findall(r"[|*<>$]|\\[^A-Za-z]|(?<![A-Za-z])_", tex)


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("0", "0"),
        ("sum (u/gap)^(1/eps) log T", r"\sum_i (u/\Delta_i)^{1/\varepsilon} \log T"),
        (
            "K^(eps/(1+eps)) (u T)^(1/(1+eps)) log T e^u",
            r"K^{\varepsilon/(1 + \varepsilon)} (u T)^{1/(1 + \varepsilon)} (\log T) e^{u}",
        ),
        ("sum gap/P(X != 0) log T + sqrt(K T)", r"\sum_i \dfrac{\Delta_i}{P(X_i \neq 0)} \log T + \sqrt{K T}"),
        ("sum log T / KLinf(arm, best mean)", r"\sum_i \dfrac{\log T}{\mathrm{KL_{inf}}(\nu_i, \mu_\star)}"),
        (
            "sum f(T) / (1 - 2/(gap log f(T))) log T",
            r"\sum_i \dfrac{f(T)}{1 - 2/(\Delta_i \log f(T))} \log T",
        ),
        ("K (u/min gap)^(1/eps) (log T)^2", r"K (u/\Delta_{\min})^{1/\varepsilon} (\log T)^{2}"),
        ("log T log log T", r"\log T \log \log T"),
        ("log T sqrt(K T log T)", r"(\log T) \sqrt{K T \log T}"),
        ("sum (kappa - 1 + Var/gap^2) gap", r"\sum_i (\kappa - 1 + V_i/\Delta_i^{2}) \Delta_i"),
        # What a slash or a bare logarithm would make ambiguous; what follows a division multiplies.
        ("log(T/K)^2", r"(\log(T/K))^{2}"),
        ("log T^2", r"(\log T)^{2}"),
        ("K^(T/u v)", r"K^{\frac{T}{u} v}"),
        ("K^(T/u/v)", r"K^{\frac{T/u}{v}}"),
        ("K^(log T/u)", r"K^{\frac{\log T}{u}}"),
        ("T/(2 K)", r"\dfrac{T}{2 K}"),
        ("T/2 K", r"\dfrac{T}{2} K"),
        ("T 2 3", r"T \cdot 2 \cdot 3"),
        ("(sum gap^2) K", r"(\sum_i \Delta_i^{2}) K"),
    ],
)
def test_tex(text, tex):
    assert parsed(text).tex() == tex


def test_a_name_without_a_symbol_is_refused():
    with pytest.raises(InvalidInput, match=r"'K gpa': 'gpa' has no symbol"):
        parsed("K gpa").tex()


def test_long_bounds_can_be_broken_into_lines_between_terms():
    page = as_markdown(all_policies())
    assert (
        r"$u^{1/(1 + \varepsilon)} (K \log K$ ${} + K^{1 - \rho} T^{\rho}$ ${} + K^{\rho \varepsilon/(1 + \varepsilon)} "
        r"T^{1 - \rho \varepsilon/(1 + \varepsilon)} (\log K + \log \log T)^{\varepsilon/(1 + \varepsilon)})$ |"
    ) in page
    assert r"| $\sum_i (v/\Delta_i + \Delta_i) \log T$ (matching) |" in page
    assert all(line.count("$") % 2 == 0 for line in page.splitlines())


def test_formulas_in_assumptions_and_notes_are_typeset():
    prose = " ".join(f"{policy.facts.assumption} {' '.join(policy.facts.notes)}" for policy in all_policies())
    page = as_markdown(all_policies())
    for formula in (*IN_PROSE, *MOMENTS):
        assert formula in prose
        assert formula.replace("|", "\\|") not in page
    assert r"T such that $3 u \log f(T) < 2 f(T)^{\varepsilon}$ |" in page
    assert r"$\sum_i (V_i/\Delta_i + R) \log T$" in page
