"""What `Probing` and `Restarting` share: a detector of changes and a schedule of probes around another policy."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import numpy as np
from msgspec.structs import astuple

from robandit.drift.alarm import Alarm, Kind, Summary
from robandit.drift.detector import DELTA, new_state, restarted
from robandit.errors import InvalidInput
from robandit.policies.drift import schedule
from robandit.policies.wrapping import Around, Wrapping
from robandit.validation import within

_HOOKS: dict[str, Around] = {
    "select": (schedule.select_probing, ("select",)),
    "waiting": (schedule.waiting_probing, ("waiting",)),
    "take": (schedule.take_probing, ("take",)),
    "expire": (schedule.expire_probing, ("expire",)),
    "update": (schedule.update_probing, ("update", "take")),
    "full": (schedule.full_probing, ("full",)),
    "chance": (schedule.chance_probing, ("chance",)),
}
FIELDS = ("drift_watch", "drift_arms", "drift_book", "drift_log")
KINDS: tuple[Kind, ...] = get_args(Kind)  # their order is a saved format


class Following(Wrapping):
    """A policy around another one that follows changes."""

    rate: float
    delta: float = DELTA
    own_pull: ClassVar[str] = "a probe"
    first_field: ClassVar[str] = FIELDS[0]
    notices: ClassVar[Any] = True

    def validate(self) -> None:
        owner = type(self).__name__
        super().validate()
        within(self.rate, "rate", 0.0, 1.0, owner=owner)
        if isinstance(self.of, Following):
            raise InvalidInput(f"{owner} of {self.of!r}: probes and restarts cannot be nested; Restarting has both")
        if isinstance(self.of, Wrapping):
            raise InvalidInput(
                f"{owner} of {self.of!r}: a floor must be outside, or its propensities would be wrong; "
                f"write {type(self.of).__name__}({owner}(policy))"
            )

    def own_params(self) -> dict[str, float]:
        return {"drift_rate": float(self.rate), "drift_delta": float(self.delta)}

    def own_fields(self, inner: Any, arms: int, horizon: int | None) -> dict[str, Any]:
        """Return the fields of the schedule."""
        return dict(zip(FIELDS, schedule.new_fields(arms, horizon), strict=True))

    def around(self, name: str) -> Around | None:
        """Return the hook of the schedule with this name, if it has one."""
        return _HOOKS.get(name)

    def grown(self, state: Any) -> Any:
        """Make room in the state of the other policy, and handle an alarm."""
        state = super().grown(state)
        alarmed = int(state.drift_book[schedule.ALARMED])
        if alarmed >= 0:
            _log(state, Alarm.raised(state.drift_watch, alarmed))
            state = self.react(state, alarmed)
            restarted(state.drift_watch, alarmed)
            state.drift_book[schedule.ALARMED] = -1.0
        return state

    def react(self, state: Any, alarmed: int) -> Any:
        """Return the state after an alarm of an arm. The detector's row of the arm is as the alarm left it."""
        return state

    def alarms(self, state: Any) -> tuple[Alarm, ...]:
        """Return the newest alarms, at most 32, the oldest first. The arms are numbers."""
        count = int(state.drift_book[schedule.ALARMS])
        rows = [state.drift_log[i % schedule.LOGGED] for i in range(max(0, count - schedule.LOGGED), count)]
        if not all(0 <= row[0] < len(state.allowed) for row in rows):
            raise ValueError("drift_log has an arm that does not exist")
        return tuple(_alarm(row) for row in rows)

    def forget_choice(self, state: Any) -> None:
        """Discard what the other policy and the schedule cache about the set of allowed arms."""
        super().forget_choice(state)
        state.drift_book[schedule.CHECK] = 0.0

    def resumed(self, state: Any, arm: int) -> None:
        """Tell the other policy that an arm is back. It is due for a probe if it was away for long."""
        super().resumed(state, arm)
        state.drift_book[schedule.CHECK] = 0.0

    def own_extended(self, state: Any) -> dict[str, Any]:
        """Return the fields with one more arm, which the schedule treats as if it had just been pulled."""
        row = np.zeros((1, schedule.COLUMNS), dtype=np.int64)
        row[0, schedule.LAST] = int(state.drift_book[schedule.CLOCK])
        book = state.drift_book.copy()
        book[schedule.CHECK] = 0.0
        watch, arms = np.vstack([state.drift_watch, new_state(1)]), np.vstack([state.drift_arms, row])
        return dict(zip(FIELDS, (watch, arms, book, state.drift_log.copy()), strict=True))

    def counters(self, state: Any) -> dict[str, int]:
        """Return the counters of the other policy, and the numbers of probes, alarms and restarts."""
        own = {"probes": schedule.PROBES, "alarms": schedule.ALARMS, "restarts": schedule.RESTARTS}
        return super().counters(state) | {name: int(state.drift_book[entry]) for name, entry in own.items()}


def _log(state: Any, alarm: Alarm) -> None:
    """Write an alarm into the log, over the oldest one."""
    book = state.drift_book
    numbers = (alarm.arm, alarm.changed, alarm.noticed, KINDS.index(alarm.kind))
    row = (*numbers, *astuple(alarm.before), *astuple(alarm.after))
    state.drift_log[int(book[schedule.ALARMS]) % schedule.LOGGED] = row
    book[schedule.ALARMS] += 1.0


def _alarm(row: Any) -> Alarm:
    """Return an alarm of the log."""
    arm, changed, noticed, kind = (int(number) for number in row[:4])
    return Alarm(arm, changed, noticed, KINDS[kind], Summary(*row[4:8].tolist()), Summary(*row[8:12].tolist()))
