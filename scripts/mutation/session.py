"""One collection of the tests in plain Python, in which tests run many times: their lines, their times, their results."""

from __future__ import annotations

import ast
import importlib
import math
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mutation.mutants import ROOT, SOURCE, Mutant

EXAMPLES = 15  # per Hypothesis test
PYTEST_OPTIONS = ["-qq", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


class TooSlow(BaseException):
    """A test has exceeded its time."""


class Coverage(NamedTuple):
    """The tests that pass: CPU seconds of each, and the tests that run each line of each module."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    excluded: int


class Session:
    """A pytest plugin that replaces the loop over tests."""

    def __init__(self, loop: Callable[[Session], None]) -> None:
        """Store the function that replaces the loop."""
        self.loop = loop
        self.items: list[Any] = []
        self.failed = False
        self.slow = False

    def pytest_runtestloop(self, session: Any) -> bool:
        """Let Hypothesis use few and fixed examples without shrinking, then call the loop."""
        from hypothesis import Phase, settings

        for item in session.items:
            inner = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
            usual = getattr(inner, "_hypothesis_internal_use_settings", None)
            if usual is not None:
                inner._hypothesis_internal_use_settings = settings(
                    usual,
                    max_examples=min(EXAMPLES, usual.max_examples),
                    derandomize=True,
                    database=None,
                    deadline=None,
                    phases=[Phase.explicit, Phase.generate],
                )
        self.items = session.items
        self.loop(self)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a failure in any phase of a test."""
        self.failed |= report.failed

    def passes(self, item: Any, seconds: float) -> bool:
        """Run a test; returns False if it fails or takes longer than ``seconds`` of CPU time."""

        def stop(_: int, frame: Any) -> None:
            while frame is not None:  # the tracer holds a lock, which an exception would never release
                if f"{os.sep}coverage{os.sep}" in frame.f_code.co_filename:
                    signal.setitimer(signal.ITIMER_PROF, 0.001)
                    return
                frame = frame.f_back
            self.slow = True
            raise TooSlow

        self.failed = self.slow = False
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
        except (TooSlow, KeyboardInterrupt):  # the outer block: TooSlow may be raised in the line above
            self.failed = True
        except Exception:  # pytest cannot format every traceback of an interrupted test
            if not self.slow:
                raise
        return not self.failed and not self.slow

    def first_failure(self, tests: list[str]) -> str:
        """Run tests until one fails; returns its id, or an empty string."""
        by_id = {item.nodeid: item for item in self.items}
        for test in tests:
            if test not in by_id or not self.passes(by_id[test], 10.0):
                return test
        return ""

    def measure(self, modules: list[Path], seed: int, longest: float, cases: int, part: slice) -> Coverage:
        """Trace tests, at most ``cases`` of each function; those that fail or take too long are excluded."""
        import coverage

        tracer = coverage.Coverage(data_file=None, include=[str(p) for p in modules], config_file=False)
        tracer.start()
        seconds = {}
        by_function = defaultdict(list)
        for item in self.items:
            by_function[item.nodeid.partition("[")[0]].append(item)
        rng = random.Random(seed)
        items = [item for group in by_function.values() for item in rng.sample(group, min(len(group), cases))]
        for item in items[part]:
            tracer.switch_context(item.nodeid)
            before = time.process_time()
            if self.passes(item, longest):
                seconds[item.nodeid] = time.process_time() - before
        tracer.stop()
        data = tracer.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        for path in modules:
            by_line = data.contexts_by_lineno(str(path)) if str(path) in data.measured_files() else {}
            lines[str(path)] = {n: [test for test in tests if test in seconds] for n, tests in by_line.items()}
        return Coverage(seconds, lines, len(items[part]) - len(seconds))


def collect(loop: Callable[[Session], None], modules: list[Path], globs: list[str]) -> None:
    """Import the package with compiled entries as plain Python, collect the tests and call the loop."""
    import pytest

    build = importlib.import_module("robandit.kernel.build")
    build._compiled = importlib.import_module("helpers.interpreted").interpreted
    for path in modules:
        importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    tests = [str(path) for glob in globs for path in sorted((ROOT / "tests").glob(glob))]
    pytest.main([*PYTEST_OPTIONS, *tests], plugins=[Session(loop)])


def merged(parts: list[Coverage]) -> Coverage:
    """Return the coverage of all parts together."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in parts:
        seconds |= part.seconds
        for module, by_line in part.lines.items():
            for line, tests in by_line.items():
                lines[module][line] += tests
    plain = {module: dict(by_line) for module, by_line in lines.items()}  # can be pickled
    return Coverage(seconds, plain, sum(part.excluded for part in parts))


def choose_tests(mutant: Mutant, coverage: Coverage, budget: float) -> list[str]:
    """Return the tests that run the mutant's statement, quick ones first, up to ``budget`` CPU seconds."""
    by_line = coverage.lines.get(str(mutant.path), {})
    if mutant.at_import:
        tests = {test for group in by_line.values() for test in group}
    else:
        lines = statement(mutant.path.read_text(), mutant.line)
        tests = {test for line in lines for test in by_line.get(line, ())}
    seconds = coverage.seconds
    # Three cases of each function come first: hundreds of cases of one test would use up the budget.
    cases: dict[str, int] = defaultdict(int)
    rank = {}
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        function = test.partition("[")[0]
        rank[test] = cases[function]
        cases[function] += 1
    chosen, used = [], 0.0
    for test in sorted(rank, key=lambda test: (rank[test] > 2, seconds[test])):
        if used + seconds[test] <= budget:
            chosen.append(test)
            used += seconds[test]
    return sorted(chosen, key=lambda test: seconds[test])


def statement(text: str, line: int) -> range:
    """Return the lines of the innermost statement around a line; for a compound statement, of its head."""
    innermost = range(line, line + 1)
    size = math.inf
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(end, node.lineno) + 1)
            if line in lines and len(lines) < size:
                innermost, size = lines, len(lines)
    return innermost
