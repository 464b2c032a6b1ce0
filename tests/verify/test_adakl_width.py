"""The check of Lemmas C to F holds, and does not if one of their constants is wrong."""

from __future__ import annotations

from helpers.amount import long_only
from robandit.theory.adakl_bounds import width_constant
from robandit.verify.adakl_width import LEMMAS, STATEMENT, run
from robandit.verify.statement import Effort, Finding, checked

QUICK = Effort(quick=True)


def findings(**broken: object) -> dict[str, Finding]:
    """The findings of the lemmas, by name."""
    return {name: f for f in run(QUICK, **broken).findings for name in LEMMAS if f.claim.startswith(f"({name})")}  # type: ignore[arg-type]


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert {f.verdict for f in outcome.ran.findings} == {"holds"}
    assert len(outcome.ran.findings) == len(LEMMAS) + 8


def test_a_smaller_width_fails() -> None:
    assert findings(constant=lambda eps: 0.1 * width_constant(eps))["F"].verdict == "fails"


def test_a_smaller_threshold_fails() -> None:
    broken = findings(base=20.0)
    assert broken["C1"].verdict == "fails"
    assert broken["C2"].verdict == "holds"


@long_only
def test_a_smaller_tail_fails() -> None:
    assert findings(tail=2.0)["C2"].verdict == "fails"


def test_a_smaller_share_of_the_level_fails() -> None:
    broken = findings(share=0.05)
    assert broken["D1"].verdict == "fails"
    assert broken["C1"].verdict == "holds"


@long_only
def test_without_deviations_the_second_moment_fails_too() -> None:
    assert findings(share=0.0)["D2"].verdict == "fails"
