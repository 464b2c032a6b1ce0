"""Mutation test of the estimators and of AdaR-UCB: which small changes of the code does no test detect?

``python scripts/mutate.py estimators`` or ``adar-ucb`` needs ``cosmic-ray`` and ``coverage`` besides the test tools; ``make
mutate`` creates an environment for it. Cosmic Ray only makes the mutants. It would write each into the source file and restart the
tests, which costs seconds of imports per mutant, and more for compiled code. Here compiled entries run as plain Python, everything
is imported and collected once, and each mutant runs in a forked process that replaces the code of the changed functions. No file is
changed.

A mutant is tried with the tests that run its statement, quick ones first, until one fails. Tests that fail or are slow in plain
Python are excluded, so the whole suite may kill mutants that survive here, but never the other way round.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import math
import os
import random
import sys
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from mutation.forks import Task, run_all
from mutation.mutants import ROOT, SOURCE, Mutant, all_mutants, sample
from mutation.session import Coverage, Session, choose_tests, collect, merged

OF_ADAR = ("adar_ucb.py", "layout.py", "trimmed_index.py")
SUITES = {  # modules and their tests
    "estimators": (
        sorted(path for path in (SOURCE / "estimators").rglob("*.py") if path.name != "__init__.py"),
        ["estimators/test_*.py"],
    ),
    "adar-ucb": (
        [
            *(SOURCE / "policies" / "adar" / name for name in OF_ADAR),
            SOURCE / "kernel" / "lazy.py",
        ],
        [  # the other tests are slow
            "policies/adar/test_adar_ucb_[sv]*.py",
            "policies/test_lazy.py",
            "policies/test_late_rewards.py",
        ],
    ),
}
PRELOADED = ("numpy", "numba", "scipy.stats", "mpmath", "hypothesis", "pytest", "coverage")


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Try small changes of the code, and list those that no test detects.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--share", type=float, default=0.035, help="share of each module's mutants (default: 0.035)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the samples of mutants and tests (default: 1)")
    parser.add_argument("--only", default="*", help="pattern of names, such as 'estimators/threshold.py:*'")
    parser.add_argument("--again", type=Path, help="try only the survivors in this file of results")
    parser.add_argument("--cases", type=int, default=4, help="random cases per parametrised test (default: 4)")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--out", type=Path, help="file of results (default: build/mutants/SUITE.jsonl)")
    parser.add_argument("--longest", type=float, default=0.5, help="largest CPU seconds per traced test (default: 0.5)")
    parser.add_argument("--budget", type=float, default=2.0, help="CPU seconds of tests per mutant (default: 2)")
    parsed = parser.parse_args()
    parsed.out = parsed.out or ROOT / "build" / "mutants" / f"{parsed.suite}.jsonl"
    parsed.modules, parsed.globs = SUITES[parsed.suite]
    return parsed


def prepare() -> None:
    """Set up this process, which forks all others; it imports libraries, but nothing of Robandit."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # a forked process would wait for threads that it does not have
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    sys.dont_write_bytecode = True
    os.chdir(ROOT)
    for name in PRELOADED:
        importlib.import_module(name)


def try_mutants(mutants: list[Mutant], options: argparse.Namespace) -> Coverage:
    """Measure the tests and try the mutants; prints survivors and writes results. Returns the measured tests."""

    def try_inside(session: Session, mutant: Mutant) -> str | None:
        if not mutant.make():
            return None
        mutant.install()
        return session.first_failure(mutant.tests)

    def share_a_collection() -> Coverage:
        """Measure the tests, then try mutants inside functions: both need the tests collected once."""
        result: list[Coverage] = []

        def loop(session: Session) -> None:
            coverage = measure(session, options)
            result.append(coverage)
            choose(coverage)
            tasks = [
                Task(mutant, lambda m=mutant: try_inside(session, m), 8.0 + allowance(mutant, coverage))
                for mutant in mutants
                if not mutant.at_import
            ]
            random.Random(options.seed).shuffle(tasks)
            for outcome in run_all(tasks, options.jobs):
                record(*outcome, options.out)

        collect(loop, options.modules, options.globs)
        return result[0]

    def choose(coverage: Coverage) -> None:
        for mutant in mutants:
            mutant.tests = choose_tests(mutant, coverage, options.budget)

    def allowance(mutant: Mutant, coverage: Coverage) -> float:
        return 3 * sum(coverage.seconds[test] for test in mutant.tests)

    [(_, coverage, end)] = run_all([Task(None, share_a_collection, 1e6, quiet=False)], 1)
    if end != "done" or not coverage.seconds:
        sys.exit(f"no result: {end}")
    choose(coverage)
    tasks = [
        Task(mutant, lambda m=mutant: try_at_import(m, options), 20.0 + allowance(mutant, coverage))
        for mutant in mutants
        if mutant.at_import
    ]
    for outcome in run_all(tasks, options.jobs):
        record(*outcome, options.out)
    return coverage


def measure(session: Session, options: argparse.Namespace) -> Coverage:
    """Measure the tests in parallel processes."""
    parts = [
        Task(
            j,
            lambda j=j: session.measure(
                options.modules, options.seed, options.longest, options.cases, slice(j, None, options.jobs)
            ),
            3600.0,
        )
        for j in range(options.jobs)
    ]
    measured = []
    for _, part, end in run_all(parts, options.jobs):
        if end != "done":
            raise RuntimeError(f"the tests could not be measured: {end}")
        measured.append(part)
    coverage = merged(measured)
    total = sum(coverage.seconds.values())
    print(f"{len(coverage.seconds)} tests, {total:.0f} s; {coverage.excluded} excluded", flush=True)
    return coverage


def try_at_import(mutant: Mutant, options: argparse.Namespace) -> str | None:
    """Try a mutant outside all functions: import its text instead of the module's, and run its tests."""
    if not mutant.make():
        return None
    usual = SourceFileLoader.get_code
    path = str(mutant.path)

    def get_code(self: Any, fullname: str) -> Any:
        return compile(mutant.text, path, "exec") if self.path == path else usual(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    failures: list[str] = []
    try:
        collect(lambda session: failures.append(session.first_failure(mutant.tests)), options.modules, options.globs)
    except Exception as error:
        return f"import failed: {error!r}"
    return failures[0] if failures else "no test could be collected"


def record(mutant: Mutant, failure: str | None, end: str, out: Path) -> None:
    """Append a result to the file, and print the mutant if it survived."""
    if end == "done" and failure is None:
        return  # not a different program
    killer = failure if end == "done" else end
    fate = "survived" if killer == "" else "time" if killer == "time" else "killed"
    change = mutant.change() if fate == "survived" else ""
    row = {"module": mutant.module, "mutant": mutant.name, "fate": fate, "by": killer}
    row |= {"tests": len(mutant.tests), "change": change}
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    if fate == "survived":
        print(f"survived ({row['tests']} tests): {mutant.name}\n    {change}", flush=True)


def report(results: list[dict[str, Any]], sizes: dict[str, int], excluded: int) -> str:
    """Return a table by module, and the share killed of all mutants with its 95 % interval (stratified, finite population)."""
    rows = ["| Module | Mutants | Tried | Killed | By time limit | Survived |", "|---|---:|---:|---:|---:|---:|"]
    total = sum(sizes.values())
    rate = variance = 0.0
    counts = [0] * 4
    for module, size in sizes.items():
        fates = [row["fate"] for row in results if row["module"] == module]
        tried, survived, timed = len(fates), fates.count("survived"), fates.count("time")
        killed = tried - survived
        counts = [a + b for a, b in zip(counts, (tried, killed, timed, survived), strict=True)]
        rows.append(f"| `{module}` | {size} | {tried} | {killed} | {timed} | {survived} |")
        if tried:
            rate += size / total * killed / tried
            smoothed = (killed + 1) / (tried + 2)  # 20 of 20 killed is not certainty
            variance += (size / total) ** 2 * smoothed * (1 - smoothed) / tried * (1 - tried / size)
    rows.append(f"| all | {total} | {counts[0]} | {counts[1]} | {counts[2]} | {counts[3]} |")
    margin = 1.96 * math.sqrt(variance)
    rows += ["", f"Killed, of all mutants: {100 * rate:.1f} % ± {100 * margin:.1f} (95 %). Tests excluded: {excluded}."]
    return "\n".join(rows)


def main() -> None:
    """Try a sample of the mutants, and print the survivors and a table."""
    options = parse_options()
    prepare()
    mutants = all_mutants(options.modules)
    earlier: list[dict[str, Any]] = []
    if options.again:
        earlier = [json.loads(line) for line in options.again.read_text().splitlines()]
        survivors = {row["mutant"] for row in earlier if row["fate"] == "survived"}
        picked = [mutant for mutant in mutants if mutant.name in survivors]
    else:
        picked = sample(mutants, options.share, options.seed)
    picked = [mutant for mutant in picked if fnmatch.fnmatch(mutant.name, options.only)]
    names = {mutant.name for mutant in picked}
    print(f"{len(mutants)} mutants, {len(picked)} to try; measuring the tests", flush=True)

    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in earlier if row["mutant"] not in names))
    coverage = try_mutants(picked, options)
    results = [json.loads(line) for line in options.out.read_text().splitlines()]
    print(report(results, Counter(mutant.module for mutant in mutants), coverage.excluded))


if __name__ == "__main__":
    main()
