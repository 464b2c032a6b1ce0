"""What recorded rewards say: their tails, the assumption, and which policy to take."""

from __future__ import annotations

from robandit.diagnostics.assumption import Nonpositivity, truncated_nonpositivity
from robandit.diagnostics.diagnosis import ArmDiagnosis, Diagnosis
from robandit.diagnostics.recommend import Recommendation, recommend
from robandit.diagnostics.tails import TailIndex, tail_index

__all__ = [
    "ArmDiagnosis",
    "Diagnosis",
    "Nonpositivity",
    "Recommendation",
    "TailIndex",
    "recommend",
    "tail_index",
    "truncated_nonpositivity",
]
