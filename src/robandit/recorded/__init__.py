"""Readers of recorded rewards: tables with an arm and a reward per row, of any size."""

from __future__ import annotations

from robandit.recorded.records import Incomplete, Log, Records, Samples, Table
from robandit.recorded.source import EXAMPLES, example, open_records
from robandit.recorded.summary import ArmRecord, BadRows, Recorded
from robandit.recorded.where import Filtered

__all__ = [
    "EXAMPLES",
    "ArmRecord",
    "BadRows",
    "Filtered",
    "Incomplete",
    "Log",
    "Recorded",
    "Records",
    "Samples",
    "Table",
    "example",
    "open_records",
]
