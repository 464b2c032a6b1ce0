"""What an experiment knew at an earlier moment: its log is folded again up to there.

Storing all estimates with every decision would cost a hundred times as much as the decision. Folding starts at the newest snapshot
before the moment, so a recent decision takes a fraction of a second, and the oldest ones of a long log some seconds.
"""

from __future__ import annotations

from typing import Any

import msgspec

from robandit.decisions.experiment import Experiment
from robandit.decisions.settings import Settings
from robandit.errors import Conflict, RobanditError
from robandit.storage import Event, Reader, StoredExperiment

AT_ONCE = 1_000


def _nothing(*_: Any) -> None:
    """Stand in for functions that are not called while a log is folded."""


def state_before(reader: Reader, stored: StoredExperiment, seq: int) -> Experiment:
    """Return the experiment as it was right before an event."""
    settings = msgspec.json.decode(stored.settings, type=Settings)

    def empty() -> Experiment:
        return Experiment(stored, settings, clock=lambda: 0.0, find=_nothing, emit=_nothing)

    experiment = empty()
    for last, content in reader.snapshots(stored.number):
        if last < seq:
            try:
                experiment.restore(content)
                break
            except (RobanditError, msgspec.MsgspecError):  # the log has it all
                experiment = empty()
    while experiment.seq < seq - 1:
        events: list[Event] = reader.events(stored.number, experiment.seq, min(AT_ONCE, seq - 1 - experiment.seq))
        if not events:
            raise Conflict(f"experiment {stored.name!r} was removed meanwhile")
        experiment.apply_all(events)
    return experiment
