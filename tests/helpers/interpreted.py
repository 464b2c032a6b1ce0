"""A plugin of pytest for ``make coverage``: hooks and kernels run as plain Python, where a tracer sees their lines.

Plain Python is 1,000 times slower than compiled code, so a test is stopped and skipped after ``LIMIT`` seconds of work; what it ran
until then counts.
"""

import signal
import sys

import numpy as np
import pytest

from robandit.kernel import build

LIMIT = 2.0


def interpreted(entry, *, label, args):
    """An entry that takes what the compiled one takes, and runs the source itself."""

    def run(*given):
        left = list(given)
        with np.errstate(all="ignore"):  # compiled code does not warn either
            return entry(*[_taken(value, left) for value in args])

    return run


def _taken(like, left):
    """The next argument: records come flat, those of arrays as their fields, those of numbers as one array."""
    if not isinstance(like, tuple):
        return left.pop(0)
    if all(isinstance(field, np.ndarray) for field in like):
        return type(like)(*[left.pop(0) for _ in like])
    pack = left.pop(0).tolist()
    return type(like)(*[float(v) if isinstance(f, float) else int(v) for f, v in zip(like, pack, strict=True)])


def pytest_configure(config):
    """Only as a plugin (``-p helpers.interpreted``): collecting doctests imports this file in every run."""
    compiled = build.compiled
    for module in list(sys.modules.values()):
        if getattr(module, "compiled", None) is compiled:
            module.compiled = interpreted


def _stop(signum, frame):
    if frame.f_code.co_filename.endswith("collector.py"):  # coverage holds a lock, which an error would leave locked
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.001)
        return
    pytest.skip(f"takes more than {LIMIT} s without compilation")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
