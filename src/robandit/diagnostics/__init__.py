"""Diagnostics of recorded rewards: their tails, the assumption, which policy to use, and whether the best arm is significant."""

from robandit.diagnostics.assumption import Nonpositivity, truncated_nonpositivity
from robandit.diagnostics.changes import changes
from robandit.diagnostics.diagnosis import ArmDiagnosis, Diagnosis
from robandit.diagnostics.recommend import Recommendation, recommend
from robandit.diagnostics.resolution import Resolution, resolution
from robandit.diagnostics.study import ArmStudy, Study, study
from robandit.diagnostics.tails import TailIndex, TailPath, tail_index, tail_path
from robandit.diagnostics.timeline import Drift, Timeline, Verdict

__all__ = [
    "ArmDiagnosis",
    "ArmStudy",
    "Diagnosis",
    "Drift",
    "Nonpositivity",
    "Recommendation",
    "Resolution",
    "Study",
    "TailIndex",
    "TailPath",
    "Timeline",
    "Verdict",
    "changes",
    "recommend",
    "resolution",
    "study",
    "tail_index",
    "tail_path",
    "truncated_nonpositivity",
]
