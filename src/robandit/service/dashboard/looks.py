"""What pages show of experiments, as parts of HTML that are made again when something has changed.

All viewers of a page share one look, so it is made once.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import OrderedDict
from typing import Any

from robandit.decisions.experiment import LiveExperiment
from robandit.service.dashboard import experiment_page
from robandit.service.dashboard.experiment_page import Recent
from robandit.service.dashboard.timeline import WINDOWS, Timeline
from robandit.service.experiments import summary_of
from robandit.service.state import State
from robandit.service.studies import ExperimentStudy
from robandit.storage import Event, Reader

MOST_LOOKS = 200
TICK = 0.4  # seconds between two looks at an experiment
STUDY_PAUSE = 1.0  # seconds between two studies, or more:
STUDY_SHARE = 0.05  # the share of a core that studies of one experiment may take
FAILED_PAUSE = 60.0  # seconds after a study that failed
PATIENCE = 0.3  # seconds that a page waits for its first study
MOST_READING = 2  # looks that read the log at the same time; the other threads are for other calls
ENDS = ("rewarded", "late", "expired")  # the events that close a decision
RECENT = 12  # decisions in the list
RATE_SPAN = 30.0  # seconds over which rates are averaged


class Look:
    """What the page of one experiment shows, for one window of time."""

    def __init__(self, state: State, experiment: LiveExperiment, window: str, reading: asyncio.Semaphore) -> None:
        """Start without content. ``reading`` limits the threads that read the log."""
        self.experiment = experiment
        self._state = state
        self._window = window
        self._reading = reading
        self._timeline = Timeline(experiment, WINDOWS[window][1])
        self._rates = self._timeline if window == "5m" else Timeline(experiment, WINDOWS["5m"][1])
        self._parts: dict[str, str] = {}
        self._made = -TICK
        self._made_of: tuple[Any, ...] = ()
        """All that the parts depend on."""
        self._turn = asyncio.Lock()
        self._study: asyncio.Task[Any] | None = None
        self._next_study = 0.0

    async def parts(self) -> dict[str, str]:
        """Return the content of each part of the page. What it shows is stored."""
        async with self._turn:
            if time.monotonic() - self._made >= TICK:
                await self._start_study()
                now, study = self._state.engine.clock(), self._state.studies.newest(self.experiment)
                slots = self._timeline.slot(now), self._rates.slot(now)
                made_of = self.experiment.seq, None if study is None else study.made, *slots
                if made_of != self._made_of:
                    self._parts = await self._rendered(now, study)
                    self._made_of = made_of
                self._made = time.monotonic()
        return self._parts

    async def _rendered(self, now: float, study: ExperimentStudy | None) -> dict[str, str]:
        state, experiment = self._state, self.experiment
        await state.engine.still(experiment)
        last, summary = experiment.seq, summary_of(experiment)
        await state.engine.settled()
        async with self._reading:
            recent = await asyncio.to_thread(state.engine.store.read, lambda reader: self._read(reader, last, now))
        recent = [each._replace(open=self._is_open(each)) for each in recent]
        return experiment_page.parts(
            experiment,
            summary,
            study=study,
            timeline=self._timeline,
            rate=self._rates.rate("rewarded", now, RATE_SPAN),
            recent=recent,
            window=self._window,
            now=now,
        )

    def _read(self, reader: Reader, last: int, now: float) -> list[Recent]:
        """Count the new events, and return the newest decisions. In another thread, since it may take a while at first."""
        self._timeline.catch_up(reader, last, now)
        if self._rates is not self._timeline:
            self._rates.catch_up(reader, last, now)
        decided = reader.latest(self.experiment.number, "decided", last, RECENT)
        return [Recent(event, self._end_of(reader, event.id), False) for event in decided]

    def _end_of(self, reader: Reader, id: str) -> Event | None:
        found = (reader.find(self.experiment.number, kind, id) for kind in ENDS)
        return next((event for event in found if event is not None), None)

    def _is_open(self, each: Recent) -> bool:
        """Return whether a decision has no end in the log. Its end may not be stored yet; only a reset leaves it without one."""
        if each.closed is not None:
            return False
        experiment, id = self.experiment, each.decided.id
        waits = experiment.is_open(id) or any((kind, id) in experiment.recent for kind in ENDS)
        return waits or experiment.epoch == 0

    async def _start_study(self) -> None:
        """Start a study if one is due. Only the first page waits for it, and not for long."""
        if self._study is None and time.monotonic() >= self._next_study:
            self._study = asyncio.create_task(self._studied())
            await asyncio.wait({self._study}, timeout=0.0 if self._parts else PATIENCE)

    async def _studied(self) -> None:
        began = time.monotonic()
        pause = FAILED_PAUSE
        try:
            await self._state.studies.study(self.experiment)
            pause = max(STUDY_PAUSE, (time.monotonic() - began) / STUDY_SHARE)
        except Exception:  # the page shows the rest
            traceback.print_exc()
        finally:
            self._next_study = time.monotonic() + pause
            self._study = None


class Looks:
    """The looks of a server. Those that were not used for the longest time are forgotten."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._reading = asyncio.Semaphore(MOST_READING)
        self._looks: OrderedDict[tuple[int, str], Look] = OrderedDict()

    def at(self, experiment: LiveExperiment, window: str) -> Look:
        """Return the look at an experiment, for a window of time."""
        known = self._state.engine.experiments
        for each in [
            each for each, look in self._looks.items() if known.get(look.experiment.name) is not look.experiment
        ]:
            del self._looks[each]  # removed, and its memory with it
        place = experiment.number, window
        if place not in self._looks:
            self._looks[place] = Look(self._state, experiment, window, self._reading)
        self._looks.move_to_end(place)
        while len(self._looks) > MOST_LOOKS:
            self._looks.popitem(last=False)
        return self._looks[place]
