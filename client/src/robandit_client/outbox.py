"""Reports that wait for the service: choices of the fallback, and rewards that could not be delivered."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice

from robandit_client.errors import Conflict, Overloaded, RobanditError, formatted
from robandit_client.locks import ProcessLock
from robandit_client.values import Rejection, Report, ReportKey

MOST_ITEMS = 1_000  # of a batch; the service takes no more
MOST_BYTES = 1 << 18  # of a batch; some proxies take no more than 1 MiB


class Outbox:
    """Keeps reports in order, up to a limit. Nothing leaves it but by `settle` and `reject`. Thread-safe."""

    def __init__(self, most: int) -> None:
        self.rejected: list[Rejection] = []
        self._most = most
        self._waiting: dict[ReportKey, Report] = {}
        self.closed = False
        """Whether nothing more is kept."""
        self._lock = ProcessLock()

    def close(self) -> None:
        """Keep nothing more. What waits can still be delivered."""
        with self._lock:
            self.closed = True

    @property
    def waiting(self) -> tuple[Report, ...]:
        """The reports that are not delivered."""
        with self._lock:
            return tuple(self._waiting.values())

    def __len__(self) -> int:
        return len(self._waiting)

    def get(self, key: ReportKey) -> Report | None:
        """Return a report that waits."""
        return self._waiting.get(key)

    def add(self, report: Report) -> None:
        """Keep a report. The same one again changes nothing; another one of the same decision is a conflict."""
        with self._lock:
            if self.closed:  # checked with the lock, so that `close` and the delivery after it miss no report
                raise RobanditError("the client is closed: make a new one")
            known = self._waiting.get(report.key)
            if known is None:
                self._check_room()
                self._waiting[report.key] = report
            elif known != report:
                raise Conflict(
                    f"decision {formatted(report.id)} waits to be reported with another arm or reward: it has one of each"
                )

    def _check_room(self) -> None:
        waiting, rejected = len(self._waiting), len(self.rejected)
        if waiting + rejected >= self._most:
            raise Overloaded(
                f"the client keeps {waiting:,} reports that wait for the service and {rejected:,} that it rejected, the most "
                "that max_waiting allows: nothing more is kept"
            )

    def add_to_choice(self, reward: Report) -> str | None:
        """Keep a reward whose choice waits, or was rejected, and a final one while amounts of its decision wait.

        Return "kept" or "rejected"; None if the service may have it.
        """
        choice = (reward.experiment, reward.id, True)
        with self._lock:
            waits = choice in self._waiting or (reward.part is None and choice[:2] in self._adding())
            error = None if waits else next((each.error for each in self.rejected if each.report.key == choice), None)
            if error is not None and all(each.report != reward for each in self.rejected):
                self._check_room()
                self.rejected.append(Rejection(reward, error))
        if waits:
            self.add(reward)
            return "kept"
        return None if error is None else "rejected"

    def _adding(self) -> set[tuple[str, str]]:
        """Return the decisions whose amounts wait. They must come before the final reward."""
        return {(each.experiment, each.id) for each in self._waiting.values() if each.part is not None}

    def batch(self, most: int, without: Container[tuple[str, bool] | ReportKey] = ()) -> list[Report]:
        """Return the next reports to deliver: choices or rewards of one experiment.

        A choice goes before its reward, and amounts before the final one.

        ``without`` has the experiments whose choices (True) or rewards (False) are left out, and the keys of single reports.
        """
        with self._lock:
            adding = self._adding()
            ready = (
                report
                for key, report in self._waiting.items()
                if key not in without
                and (report.experiment, report.is_choice) not in without
                and (report.is_choice or (report.experiment, report.id, True) not in self._waiting)
                and (report.part is not None or (report.experiment, report.id) not in adding)
            )
            first = next(ready, None)
            if first is None:
                return []
            kind = (first.experiment, first.is_choice)
            like_it = (report for report in ready if (report.experiment, report.is_choice) == kind)
            same = [first, *islice(like_it, most - 1)]
        end = next(chunks([report.body for report in same]))
        return same[:end]

    def settle(self, reports: Iterable[Report]) -> None:
        """Forget reports that the service has."""
        with self._lock:
            for report in reports:
                self._waiting.pop(report.key, None)

    def reject(self, reports: Iterable[Report], error: RobanditError) -> list[Report]:
        """Move reports to those that were rejected. Return them, without those that are no longer here."""
        with self._lock:
            moved = [report for report in reports if self._waiting.pop(report.key, None) is not None]
            self.rejected.extend(Rejection(report, error) for report in moved)
        return moved

    def postpone(self, reports: Iterable[Report]) -> None:
        """Put reports at the end, so that one that cannot be delivered does not hold up the others."""
        with self._lock:
            for report in reports:
                if report.key in self._waiting:
                    self._waiting[report.key] = self._waiting.pop(report.key)


def chunks(bodies: Sequence[bytes]) -> Iterator[int]:
    """Yield the ends of batches that are small enough for the service. A body that is too large gets a batch of its own.

    >>> list(chunks([b"a"] * 2_500))
    [1000, 2000, 2500]
    """
    start = size = 0
    for i, body in enumerate(bodies):
        size += len(body) + 1
        if i > start and (i - start == MOST_ITEMS or size > MOST_BYTES):
            yield i
            start, size = i, len(body) + 1
    yield len(bodies)


def joined(bodies: Iterable[bytes]) -> bytes:
    """Return the body of a batch."""
    return b'{"items":[' + b",".join(bodies) + b"]}"
