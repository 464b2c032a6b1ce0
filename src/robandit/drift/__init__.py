"""Detects that the law of an arm's rewards changed. A false alarm has a small probability for any law."""

from robandit.drift.alarm import Alarm, Summary
from robandit.drift.watch import SavedWatch, Watch

__all__ = ["Alarm", "SavedWatch", "Summary", "Watch"]
