"""The calls that machines make about the server itself: health, readiness and metrics."""

from __future__ import annotations

from robandit import __version__
from robandit.service import bodies
from robandit.service.http import Answer, Request, answer
from robandit.service.state import State

PATIENCE = 1.0  # seconds that /metrics waits for new studies; those that take longer are in the next answer
GROWTH = 0.1  # the tails are studied again for /metrics after this relative growth of the number of rewards


async def healthz(state: State, request: Request) -> Answer:
    """Check that the server is alive."""
    return answer(bodies.Health(status="ok", version=__version__))


async def readyz(state: State, request: Request) -> Answer:
    """Check whether the server is ready for decisions."""
    engine = state.engine
    ready = engine.loaded and not engine.problem
    return answer(bodies.Health(status=engine.problem or engine.progress, version=__version__), 200 if ready else 503)


async def metrics(state: State, request: Request) -> Answer:
    """Read counters and gauges, for Prometheus."""
    experiments = sorted(state.engine.experiments.values(), key=lambda experiment: experiment.name)
    await state.studies.refresh("metrics", experiments, growth=GROWTH, patience=PATIENCE)
    studies = [(each, study) for each in experiments if (study := state.studies.newest(each)) is not None]
    tails = [({"experiment": each.name}, study.heaviest()) for each, study in studies]
    text = state.metrics.text(
        {
            "robandit_open_decisions": (
                "Decisions that wait for their rewards.",
                [({"experiment": each.name}, each.bandit.open_count) for each in experiments],
            ),
            "robandit_tail_index": (
                "The smaller tail index of the leading arm: the variance is infinite below 2, +Inf means light tails.",
                tails,
            ),
            "robandit_store_up": ("1 if the store can be reached, else 0.", [({}, 0 if state.engine.problem else 1)]),
            "robandit_waiting_events": ("Events that wait for a commit.", [({}, state.engine.waiting)]),
        }
    )
    return Answer(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")
