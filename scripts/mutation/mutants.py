"""Mutants: Cosmic Ray's small changes of a module, and the code objects that differ."""

from __future__ import annotations

import ast
import gc
import random
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "robandit"
LEAST = 10  # mutants per module
# Excluded: arithmetic replacements that floats do not support; | and `is`, which only annotations and None checks use; removed
# decorators (out_of_line, cache, staticmethod), which make a program slow or invalid.
OPERATORS = re.compile(r"core/(?!.*(Shift|Bit|Mod|MatMul)|RemoveDecorator|Variable|.*_Is)")

Codes = dict[tuple[str, int], CodeType]
"""Code objects by qualified name and first line."""


@dataclass
class Mutant:
    """One change of one module; `make` creates the changed text."""

    path: Path
    operator: str
    occurrence: int
    line: int
    text: str = ""
    tests: list[str] = field(default_factory=list)

    @property
    def module(self) -> str:
        """The module's path inside the package."""
        return str(self.path.relative_to(SOURCE))

    @property
    def name(self) -> str:
        """A unique name: module, line, operator, occurrence."""
        return f"{self.module}:{self.line} {self.operator.removeprefix('core/')} {self.occurrence}"

    @property
    def at_import(self) -> bool:
        """Whether the change is outside all function bodies, so that the module must be imported again."""
        for node in ast.walk(original(self.path)[1]):
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= self.line <= (node.end_lineno or 0):
                return False
        return True

    def make(self) -> bool:
        """Create the changed text; returns whether it is a valid and different program."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        text, tree, _ = original(self.path)
        self.text = mutate_code(text, get_operator(self.operator)(), self.occurrence) or ""
        try:
            return bool(self.text) and ast.dump(without_annotations(self.text)) != ast.dump(tree)
        except SyntaxError:
            return False

    def install(self) -> None:
        """Give all live functions that differ their new code; modules that imported one see the new code too."""
        import_module(
            ".".join(("robandit", *self.path.relative_to(SOURCE).with_suffix("").parts))
        )  # some are imported late
        old, new = original(self.path)[2], codes(compile(without_annotations(self.text), str(self.path), "exec"))
        changed = {key: code for key, code in new.items() if key not in old or behaviour(old[key]) != behaviour(code)}
        installed = 0
        gc.unfreeze()  # tests/conftest.py freezes objects, which hides them
        for function in gc.get_objects():
            if isinstance(function, FunctionType) and function.__code__.co_filename == str(self.path):
                code = changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
                if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
                    function.__code__ = code
                    installed += 1
        if not installed:
            raise LookupError(f"no live function for {sorted(changed)}")

    def change(self) -> str:
        """Return the first line that differs, before and after."""
        self.make()
        old, new = self.path.read_text().splitlines(), self.text.splitlines()
        pairs = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
        return f"{pairs[0][0].strip()}  ->  {pairs[0][1].strip()}" if pairs else "?"


def all_mutants(modules: list[Path]) -> list[Mutant]:
    """Return every mutant of the modules, without text."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    mutants = []
    for path in modules:
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in sorted(operator_names()):
            if OPERATORS.match(name):
                operator = get_operator(name)()
                positions = [position for node in nodes for position in operator.mutation_positions(node)]
                mutants += [Mutant(path, name, j, start[0]) for j, (start, _) in enumerate(positions)]
    return mutants


def sample(mutants: list[Mutant], share: float, seed: int) -> list[Mutant]:
    """Return a random share of each module's mutants, but at least `LEAST`."""
    rng = random.Random(seed)
    by_path = defaultdict(list)
    for mutant in mutants:
        by_path[mutant.path].append(mutant)
    picked = []
    for group in by_path.values():
        picked += rng.sample(group, min(len(group), max(LEAST, round(share * len(group)))))
    return sorted(picked, key=lambda m: (str(m.path), m.line, m.operator, m.occurrence))


@cache
def original(path: Path) -> tuple[str, ast.Module, Codes]:
    """Return a module's text, its tree without annotations, and its code objects."""
    text = path.read_text()
    tree = without_annotations(text)
    return text, tree, codes(compile(tree, str(path), "exec"))


def without_annotations(text: str) -> ast.Module:
    """Parse a program and drop the annotations of functions, which are never evaluated."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


def codes(code: CodeType) -> Codes:
    """Return a module's code object and all code objects inside it."""
    nested = {(code.co_qualname, code.co_firstlineno): code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            nested |= codes(constant)
    return nested


def behaviour(code: CodeType) -> Any:
    """Return what determines a code object's behaviour, with nested code such as comprehensions; equal means the same program."""
    constants = [behaviour(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, constants
