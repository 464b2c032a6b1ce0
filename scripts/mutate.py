"""Mutation test of the estimators and of AdaR-UCB: which small changes of the code does no test notice?

``python scripts/mutate.py estimators`` or ``adar-ucb`` needs ``cosmic-ray`` and ``coverage`` beside the test tools; ``make mutate``
sets up an environment of its own. Cosmic Ray makes the mutants. It does not run them, for it writes each into the source file and
starts the tests anew: several seconds of imports a mutant, and with compiled code more. Here compiled entries are plain
Python, everything is imported and collected once, and each mutant is a forked process in which the functions that differ get
their new code. No file is changed.

A mutant is tried with the tests that run its statement, quick ones first, until one fails. Left out are tests that do not pass in
plain Python, or take long there. So what survives here may still be killed by the whole suite, never the other way round.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import gc
import importlib
import json
import math
import os
import pickle
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "robandit"
SUITES = {  # modules, and the tests that are theirs
    "estimators": (
        sorted(path for path in (SOURCE / "estimators").rglob("*.py") if path.name != "__init__.py"),
        ["estimators/test_*.py", "estimators/streaming/test_*.py"],
    ),
    "adar-ucb": (
        [
            SOURCE / "policies" / "adar_ucb.py",
            SOURCE / "policies" / "adar_ucb_centred.py",
            SOURCE / "kernel" / "lazy.py",
        ],
        [
            "policies/test_adar_ucb_[csv]*.py",
            "policies/test_lazy.py",
            "policies/test_late_rewards.py",
        ],  # others are long
    ),
}
# Of ten replacements of an arithmetic operator those are kept that a number can meet; | stands in annotations alone. Without a
# decorator (compile apart, cache, static) a program is slower, or is none.
OPERATORS = re.compile(r"core/(?!.*(Shift|Bit|Mod|MatMul)|RemoveDecorator|Variable|.*_Is)")
EXAMPLES = 15  # of a Hypothesis test
LEAST = 10  # mutants of a module


class TooSlow(BaseException):
    """A test has used up its time."""


def mutants(modules: list[Path]) -> list[dict[str, Any]]:
    """Every mutant, not made yet: module, operator, number of its occurrence, line."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    found = []
    for path in modules:
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in sorted(operator_names()):
            if OPERATORS.match(name):
                operator = get_operator(name)()
                places = [place for node in nodes for place in operator.mutation_positions(node)]
                found += [
                    {"path": path, "operator": name, "at": j, "line": start[0]} for j, (start, _) in enumerate(places)
                ]
    return found


def made(mutant: dict[str, Any]) -> bool:
    """Write the mutant's text; is it a program, and another one?"""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text, dumped, _ = original(mutant["path"])
    mutant["text"] = mutate_code(text, get_operator(mutant["operator"])(), mutant["at"])
    try:
        if mutant["text"] is None or ast.dump(bare(mutant["text"])) == dumped:
            return False
    except SyntaxError:
        return False
    mutant["new"] = changed(mutant)
    return True


@cache
def original(path: Path) -> tuple[str, str, dict[tuple[str, int], CodeType]]:
    """A module's text, its program and its code."""
    text = path.read_text()
    return text, ast.dump(bare(text)), codes(compile(bare(text), str(path), "exec"))


def bare(text: str) -> ast.Module:
    """The program without the annotations of its functions, which nobody evaluates."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


def statement(text: str, line: int) -> range:
    """The lines of the innermost statement around a line; of a compound one its head."""
    best = range(line, line + 1)
    size = math.inf
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(end, node.lineno) + 1)
            if line in lines and len(lines) < size:
                best, size = lines, len(lines)
    return best


def codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """All code objects in a module's, by qualified name and first line."""
    found = {(code.co_qualname, code.co_firstlineno): code}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= codes(inner)
    return found


def does(code: CodeType) -> Any:
    """What a code object does, with all that is inside it: comprehensions are code of their own."""
    inside = [does(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, inside


def changed(mutant: dict[str, Any]) -> dict[tuple[str, int], CodeType]:
    """New code of the functions that differ."""
    old, new = original(mutant["path"])[2], codes(compile(bare(mutant["text"]), str(mutant["path"]), "exec"))
    return {key: code for key, code in new.items() if key not in old or does(old[key]) != does(code)}


def outside(mutant: dict[str, Any]) -> bool:
    """Is it in no function's body, so the module must be run anew?"""
    for node in ast.walk(bare(original(mutant["path"])[0])):
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= mutant["line"] <= (node.end_lineno or 0):
            return False
    return True


def install(differ: dict[tuple[str, int], CodeType], path: Path) -> None:
    """Give functions that are alive their new code: whoever imported one has the new one too."""
    done = 0
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            new = differ.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if new is not None and len(new.co_freevars) == len(function.__code__.co_freevars):
                function.__code__ = new
                done += 1
    if not done:
        raise LookupError(f"no function alive for {sorted(differ)}")


def plain() -> None:
    """Compiled entries become the functions that they are made of; records are put together from the flat arguments."""
    import numpy as np

    from robandit import kernel
    from robandit.kernel import build

    def interpreted(entry: Any, *, label: str, args: tuple[Any, ...]) -> Any:
        like = args

        def call(*flat: Any) -> Any:
            left = iter(flat)
            whole = []
            for a in like:
                if not isinstance(a, tuple):
                    whole.append(next(left))
                elif all(isinstance(field, np.ndarray) for field in a):
                    whole.append(type(a)(*(next(left) for _ in a)))
                else:
                    pack = next(left)
                    whole.append(type(a)(*(type(f)(v) for f, v in zip(a, pack, strict=True))))
            with np.errstate(all="ignore"):
                return entry(*whole)

        return call

    build.compiled = interpreted
    kernel.compiled = interpreted


def started(work: Any, seconds: float, quiet: bool = True) -> tuple[int, Any]:
    """A process of its own for a function, with so much CPU time; its answer goes into a file."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
            if quiet:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
            pickle.dump(work(), file)
            file.flush()
            status = 0
        except BaseException:
            pickle.dump(traceback.format_exc(), file)
            file.flush()
        finally:
            os._exit(status)
    return child, file


def answer(status: int, file: Any) -> tuple[Any, str]:
    """What the function returned, and how its process ended: done, died, or time."""
    if os.WIFSIGNALED(status):
        return None, "time" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "died"
    if os.WEXITSTATUS(status):
        file.seek(0)
        raise RuntimeError(f"a process failed by itself, not by a mutant:\n{pickle.load(file)}")
    file.seek(0)
    return pickle.load(file), "done"


def pool(tasks: list[tuple[Any, ...]], jobs: int) -> Iterator[tuple[Any, Any, str]]:
    """Run tasks (a name, a function, its CPU seconds) so many at a time; a fourth entry lets it print."""
    waiting = iter(tasks)
    running: dict[int, tuple[Any, Any]] = {}
    while True:
        while len(running) < jobs and (task := next(waiting, None)) is not None:
            child, file = started(*task[1:])
            running[child] = task[0], file
        if not running:
            return
        child, status = os.waitpid(-1, 0)
        name, file = running.pop(child)
        yield name, *answer(status, file)
        file.close()


class Session:
    """One collection of the tests, in which many mutants are tried: a pytest plugin whose loop is ours."""

    def __init__(self, loop: Any) -> None:
        """With a loop that takes the session."""
        self.loop = loop
        self.items: list[Any] = []
        self.failed = False
        self.slow = False

    def pytest_runtestloop(self, session: Any) -> bool:
        """Few examples, always the same, and no time spent on small counter-examples."""
        from hypothesis import Phase, settings

        for item in session.items:
            inner = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
            given = getattr(inner, "_hypothesis_internal_use_settings", None)
            if given is not None:
                inner._hypothesis_internal_use_settings = settings(
                    given,
                    max_examples=min(EXAMPLES, given.max_examples),
                    derandomize=True,
                    database=None,
                    deadline=None,
                    phases=[Phase.explicit, Phase.generate],
                )
        self.items = session.items
        self.loop(self)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Any phase that fails is a failure."""
        self.failed |= report.failed

    def passes(self, item: Any, seconds: float) -> bool:
        """Run one test; one that takes too long did not pass."""

        def late(_: int, frame: Any) -> None:
            while frame is not None:  # the tracer holds a lock, which an exception would leave locked for ever
                if f"{os.sep}coverage{os.sep}" in frame.f_code.co_filename:
                    signal.setitimer(signal.ITIMER_PROF, 0.001)
                    return
                frame = frame.f_back
            self.slow = True
            raise TooSlow

        self.failed = self.slow = False
        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
        except (TooSlow, KeyboardInterrupt):  # outermost: it may be raised in the line above, too
            self.failed = True
        return not self.failed and not self.slow


def run(loop: Any, globs: list[str]) -> None:
    """Import and collect, then hand over."""
    import pytest

    importlib.import_module("robandit.kernel")
    plain()
    for module in (path.relative_to(SOURCE.parent).with_suffix("") for paths, _ in SUITES.values() for path in paths):
        importlib.import_module(".".join(module.parts))
    tests = [str(f) for glob in globs for f in sorted((ROOT / "tests").glob(glob))]
    options = [
        "-qq",
        "-s",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    pytest.main([*options, *tests], plugins=[Session(loop)])


def measured(
    session: Session, modules: list[Path], seed: int, longest: float, most: int, part: slice
) -> dict[str, Any]:
    """For each test that passes: CPU seconds, and the lines of our modules that it runs."""
    import coverage

    cov = coverage.Coverage(data_file=None, include=[str(p) for p in modules], config_file=False)
    cov.start()
    seconds = {}
    by_function = defaultdict(list)
    for item in session.items:
        by_function[item.nodeid.partition("[")[0]].append(item)
    rng = random.Random(seed)
    items = [item for cases in by_function.values() for item in rng.sample(cases, min(len(cases), most))]
    left_out = 0
    for item in items[part]:
        cov.switch_context(item.nodeid)
        before = time.process_time()
        if session.passes(item, longest):
            seconds[item.nodeid] = time.process_time() - before
        else:
            left_out += 1
    cov.stop()
    data = cov.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for path in modules:
        by_line = data.contexts_by_lineno(str(path)) if str(path) in data.measured_files() else {}
        lines[str(path)] = {n: [test for test in tests if test in seconds] for n, tests in by_line.items()}
    return {"seconds": seconds, "lines": lines, "left_out": left_out}


def chosen(mutant: dict[str, Any], facts: dict[str, Any], budget: float) -> list[str]:
    """The tests for a mutant: those that run its statement, the quick first, as many as fit into the budget."""
    by_line = facts["lines"][str(mutant["path"])]
    lines = statement(mutant["path"].read_text(), mutant["line"])
    tests = {test for line in lines for test in by_line.get(line, ())}
    if mutant["outside"]:
        tests = {test for found in by_line.values() for test in found}
    # One of each function first: hundreds of cases of one test would otherwise use up the budget.
    ordered = sorted(tests, key=lambda test: (facts["seconds"][test], test))
    seen: dict[str, int] = defaultdict(int)
    rank = {}
    for test in ordered:
        function = test.partition("[")[0]
        rank[test] = seen[function]
        seen[function] += 1
    fitting, used = [], 0.0
    for test in sorted(ordered, key=lambda test: (rank[test] > 2, facts["seconds"][test])):
        if used + facts["seconds"][test] <= budget:
            fitting.append(test)
            used += facts["seconds"][test]
    return sorted(fitting, key=lambda test: facts["seconds"][test])


def fate(session: Session, tests: list[str]) -> str:
    """The first test that fails, or nothing."""
    by_id = {item.nodeid: item for item in session.items}
    for test in tests:
        if test not in by_id or not session.passes(by_id[test], 10.0):
            return test
    return ""


def anew(mutant: dict[str, Any], globs: list[str]) -> str | None:
    """A mutant outside of functions: another program from the first import on."""
    if not made(mutant):
        return None
    from importlib.machinery import SourceFileLoader

    usual = SourceFileLoader.get_code
    name = str(mutant["path"])

    def get_code(self: Any, fullname: str) -> Any:
        if self.path == name:
            return compile(mutant["text"], name, "exec")
        return usual(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    found = "no test could be collected"

    def loop(session: Session) -> None:
        nonlocal found
        found = fate(session, mutant["tests"])

    try:
        run(loop, globs)
    except Exception as error:
        return f"not even imported: {error!r}"
    return found


def sample(every: list[dict[str, Any]], share: float, seed: int) -> list[dict[str, Any]]:
    """The same share of each module, but not too few."""
    rng = random.Random(seed)
    by_path = defaultdict(list)
    for mutant in every:
        by_path[mutant["path"]].append(mutant)
    picked = []
    for of_one in by_path.values():
        picked += rng.sample(of_one, min(len(of_one), max(LEAST, round(share * len(of_one)))))
    return sorted(picked, key=lambda m: (str(m["path"]), m["line"], m["operator"], m["at"]))


def named(mutant: dict[str, Any]) -> str:
    """By what it is found again."""
    return f"{mutant['path'].relative_to(SOURCE)}:{mutant['line']} {mutant['operator'].removeprefix('core/')} {mutant['at']}"


def shown(mutant: dict[str, Any]) -> str:
    """The line that differs."""
    made(mutant)
    old, new = mutant["path"].read_text().splitlines(), mutant["text"].splitlines()
    pairs = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
    return f"{pairs[0][0].strip()}  ->  {pairs[0][1].strip()}" if pairs else "?"


def report(results: list[dict[str, Any]], sizes: dict[str, int], left_out: int) -> str:
    """A table per module, and the share killed of all with its 95 % interval (stratified, of a finite number)."""
    rows = ["| Module | Mutants | Tried | Killed | Of these by time | Survived |", "|---|---:|---:|---:|---:|---:|"]
    total = sum(sizes.values())
    rate = variance = 0.0
    counts = [0] * 4
    for module, size in sizes.items():
        of_one = [r for r in results if r["module"] == module]
        tried, killed = len(of_one), sum(r["fate"] != "survived" for r in of_one)
        timed = sum(r["fate"] == "time" for r in of_one)
        counts = [a + b for a, b in zip(counts, (tried, killed, timed, tried - killed), strict=True)]
        rows.append(f"| `{module}` | {size} | {tried} | {killed} | {timed} | {tried - killed} |")
        if tried:
            p = killed / tried
            rate += size / total * p
            smoothed = (killed + 1) / (tried + 2)  # so that 20 of 20 is not taken for certainty
            variance += (size / total) ** 2 * smoothed * (1 - smoothed) / tried * (1 - tried / size)
    rows.append(f"| all | {total} | {counts[0]} | {counts[1]} | {counts[2]} | {counts[3]} |")
    margin = 1.96 * math.sqrt(variance)
    rows += ["", f"Killed, of all mutants: {100 * rate:.1f} % ± {100 * margin:.1f} (95 %). Tests left out: {left_out}."]
    return "\n".join(rows)


def main() -> None:
    """Make mutants, try a sample, say what survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--share", type=float, default=0.035, help="of each module's mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*", help="mutants by name: 'estimators/threshold.py:*'")
    parser.add_argument("--again", type=Path, help="try again what survived in this file of results")
    parser.add_argument("--cases", type=int, default=4, help="of a parametrised test, drawn by lot")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, help="build/mutants/SUITE.jsonl by default")
    parser.add_argument("--longest", type=float, default=0.5, help="CPU seconds of a test that is used, traced")
    parser.add_argument("--budget", type=float, default=2.0, help="CPU seconds of tests a mutant")
    options = parser.parse_args()
    modules, globs = SUITES[options.suite]
    options.out = options.out or ROOT / "build" / "mutants" / f"{options.suite}.jsonl"
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = (
            "1"  # threads do not come along into a forked process, which waits for them
        )
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    sys.dont_write_bytecode = True
    os.chdir(ROOT)
    for name in ("numpy", "numba", "scipy.stats", "mpmath", "hypothesis", "pytest", "coverage"):
        importlib.import_module(name)  # once for all processes; nothing of ours

    every = mutants(modules)
    sizes: dict[str, int] = defaultdict(int)
    for mutant in every:
        sizes[str(mutant["path"].relative_to(SOURCE))] += 1
    picked = sample(every, options.share, options.seed)
    before: list[dict[str, Any]] = []
    if options.again:
        before = [json.loads(line) for line in options.again.read_text().splitlines()]
        again = {r["mutant"] for r in before if r["fate"] == "survived"}
        picked = [m for m in every if named(m) in again]
    picked = [m for m in picked if fnmatch.fnmatch(named(m), options.only)]
    retried = {named(m) for m in picked}
    before = [row for row in before if row["mutant"] not in retried]
    print(f"{len(every)} mutants, {len(picked)} to try; measuring the tests", flush=True)

    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in before))

    def note(mutant: dict[str, Any], found: Any, end: str) -> None:
        if end == "done" and found is None:
            return  # the same program
        by = found if end == "done" else end
        kind = "survived" if by == "" else "time" if by == "time" else "killed"
        row = {
            "module": str(mutant["path"].relative_to(SOURCE)),
            "mutant": named(mutant),
            "fate": kind,
            "by": by,
            "tests": len(mutant["tests"]),
            "change": shown(mutant) if kind == "survived" else "",
        }
        with options.out.open("a") as out:
            out.write(json.dumps(row) + "\n")
        if kind == "survived":
            print(f"survived ({row['tests']} tests): {row['mutant']}\n    {row['change']}", flush=True)

    def seconds(mutant: dict[str, Any], facts: dict[str, Any]) -> float:
        return 3 * sum(facts["seconds"][test] for test in mutant["tests"])

    def together() -> dict[str, Any]:
        """What needs one collection of the tests: measuring them, then mutants in functions."""
        facts: dict[str, Any] = {"seconds": {}, "left_out": 0, "lines": {str(m): defaultdict(list) for m in modules}}

        def one(session: Session, mutant: dict[str, Any]) -> str | None:
            if not made(mutant):
                return None
            install(mutant["new"], mutant["path"])
            return fate(session, mutant["tests"])

        def loop(session: Session) -> None:
            slices = [slice(j, None, options.jobs) for j in range(options.jobs)]
            parts = [
                (s, lambda s=s: measured(session, modules, options.seed, options.longest, options.cases, s), 3600.0)
                for s in slices
            ]
            for _, found, end in pool(parts, options.jobs):
                if end != "done":
                    raise RuntimeError(f"the tests could not be measured: {end}")
                facts["seconds"] |= found["seconds"]
                facts["left_out"] += found["left_out"]
                for module, lines in found["lines"].items():
                    for line, tests in lines.items():
                        facts["lines"][module][line] += tests
            total = sum(facts["seconds"].values())
            print(f"{len(facts['seconds'])} tests, {total:.0f} s; {facts['left_out']} left out", flush=True)
            tasks = []
            for mutant in picked:
                mutant["outside"] = outside(mutant)
                mutant["tests"] = chosen(mutant, facts, options.budget)
                if not mutant["outside"]:
                    tasks.append((mutant, lambda m=mutant: one(session, m), 8.0 + seconds(mutant, facts)))
            random.Random(options.seed).shuffle(tasks)
            for outcome in pool(tasks, options.jobs):
                note(*outcome)

        run(loop, globs)
        return facts

    [(_, facts, end)] = pool([(None, together, 1e6, False)], 1)
    if end != "done" or not facts["seconds"]:
        sys.exit(f"no result: {end}")
    tasks = []
    for mutant in picked:
        mutant["outside"] = outside(mutant)
        mutant["tests"] = chosen(mutant, facts, options.budget)
        if mutant["outside"]:
            tasks.append((mutant, lambda m=mutant: anew(m, globs), 20.0 + seconds(mutant, facts)))
    for outcome in pool(tasks, options.jobs):
        note(*outcome)
    results = [json.loads(line) for line in options.out.read_text().splitlines()]
    print(report(results, sizes, facts["left_out"]))


if __name__ == "__main__":
    main()
