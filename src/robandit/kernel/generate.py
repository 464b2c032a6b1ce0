"""Writes plain functions into one text that can be compiled and cached: a kernel.

Numba's own cache misses when a function is passed as an argument, and returns stale code when a helper in another file or a
constant changes. So the writer starts at an entry function and writes everything that the function can reach into one
self-contained text. It contains the sources of the functions and the values of the constants that they read. It imports only
``math`` and ``numpy``; `native.py` defines its decorators. The text is the cache key. Any edit of a hook, a helper or a constant
gives another text and another file, so stale code is impossible. An entry works the same from a package, a script or a notebook
cell.

- A function may read numbers, strings, and tuples or arrays of them from outside, which are written as values. It may also read
  other functions, which are written too, and ``math`` and ``numpy``. Anything else is rejected, and the error names it.
- A FUNCTION passed as an argument is bound while writing: for ``best(index, p, s)`` the text has a copy of ``best`` in which
  ``index`` is that function. So generic loops cost nothing at run time, and stay plain Python when they are not compiled.
- The source on disk must match the imported function. Byte codes are compared, and a file that was edited since is rejected.

`function_source.py` finds and checks the sources, `rewrite.py` replaces outside names, `literals.py` writes constants, `build.py`
adds the entry's signature, and `cache.py` stores the file.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from robandit.kernel.function_source import Bound, bound_parameters, identity, parse, unwrapped
from robandit.kernel.literals import fingerprint, literal
from robandit.kernel.rewrite import Rewriter

__all__ = ["Writer", "out_of_line"]

Function = TypeVar("Function", bound=Callable[..., Any])


def out_of_line(function: Function) -> Function:
    """Mark a function that is called rarely, so that LLVM decides whether to inline it into its callers.

    All others are always inlined, because a call passes arrays of the state, which costs more than most helpers (UCB1: 130 ns
    per pull with calls, 41 without). But copies of large, rare code make compilation slow and the hot loop too big for the cache.
    """
    function.__out_of_line__ = True  # type: ignore[attr-defined]
    return function


@dataclass
class _Written:
    """How a function was written, so that the next text need not rewrite it. Most functions are part of several kernels."""

    function: Any  # kept alive, as are the functions in `steps`: keys are ids
    name: str
    steps: list[tuple[str, tuple[Any, ...], str]] = field(default_factory=list)
    """What it made the writer do, in order: a method, its arguments, and the name that it returned."""
    reads: list[tuple[Callable[[], Any], Any]] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    text: str = ""
    repeatable: bool = True

    def is_current(self) -> bool:
        """Return whether the function would read the same values."""
        return all(fingerprint(get()) == value for get, value in self.reads)


_written: dict[Any, _Written] = {}


class Writer:
    """Writes functions into one text."""

    def __init__(self) -> None:
        """Begin with an empty text."""
        self._names: dict[Any, str] = {}
        self._taken: set[str] = {"np", "math", "namedtuple", "_entry", "_inlined", "_called"} | set(dir(builtins))
        self._constants: dict[str, str] = {}  # name -> definition; so are the next two
        self._functions: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._uses: dict[str, set[str]] = {}  # the names that a function or alias reads from outside
        self._alive: list[Any] = []  # keys are ids, so these objects must not be collected
        self._now = _Written(None, "")  # the function that is being written
        self.reads: list[tuple[Callable[[], Any], Any]] = []  # lookup and fingerprint of each value that was read

    def text(self) -> str:
        """Return everything written so far: constants first, then functions."""
        return "\n".join([*self._constants.values(), "", *self._functions.values(), *self._aliases.values()])

    def parts(self) -> dict[str, str]:
        """Return for each function all text that it reaches, its own first. Functions with equal texts are the same."""
        definitions = self._constants | self._functions | self._aliases
        texts = {}
        for name in self._functions:
            reached: set[str] = set()
            frontier = {name}
            while frontier:
                reached |= frontier
                frontier = {used for one in frontier for used in self._uses.get(one, ())} & definitions.keys() - reached
            texts[name] = "\n".join(definitions[one] for one in [name, *sorted(reached - {name})])
        return texts

    def function(self, function: Any) -> str:
        """Write a function, or a `functools.partial` that binds functions to its first parameters; return its name."""
        if isinstance(function, partial):
            return self.write(function.func, bound_parameters(function))
        return self.write(function, ())

    def write(self, function: Any, bound: Bound) -> str:
        """Write a function with functions bound to some of its parameters; return its name."""
        name = self._write(unwrapped(function), bound)
        self._now.steps.append(("write", (function, bound), name))
        return name

    def _write(self, function: Any, bound: Bound) -> str:
        key = (id(function), tuple((name, identity(value)) for name, value in bound))
        if key in self._names:
            return self._names[key]
        self._alive.append((function, bound))
        known = _written.get(key)
        if known is not None and known.is_current():
            name = self._names[key] = self.fresh(function.__code__.co_name)
            if name == known.name and all(getattr(self, method)(*given) == got for method, given, got in known.steps):
                self.reads += known.reads
                self._uses[name], self._functions[name] = known.uses, known.text
                return name
        node = parse(function)
        if key not in self._names:
            self._names[key] = self.fresh(node.name)
        node.name = self._names[key]
        self._functions[node.name] = self._rewritten(node, function, bound, key)
        return node.name

    def _rewritten(self, node: ast.FunctionDef, function: Any, bound: Bound, key: Any) -> str:
        before, self._now = self._now, _Written(function, node.name)
        # The code is recorded as a value that was read, since IPython's autoreload replaces it inside a function object.
        self.read(partial(getattr, function, "__code__"))
        for value in dict(bound).values():
            self.function(value)
        self._uses[node.name] = self._now.uses = Rewriter(self, function, dict(bound)).rewrite(node)
        decorator = "@_called" if getattr(function, "__out_of_line__", False) else "@_inlined"
        self._now.text = f"{decorator}\n{ast.unparse(node)}\n"
        self.reads += self._now.reads
        if self._now.repeatable:
            _written[key] = self._now
        text, self._now = self._now.text, before
        return text

    def read(self, get: Callable[[], Any]) -> Any:
        """Return the value of ``get()``, and record that the text depends on it."""
        value = get()
        self._now.reads.append((get, fingerprint(value)))
        return value

    def constant(self, name: str, value: Any) -> str:
        """Write a constant and return its name. Functions that read the same name and value share it."""
        return self._constant(name, literal(value))

    def _constant(self, name: str, text: str) -> str:
        key = (name, text)
        if key not in self._names:
            written = self._names[key] = self.fresh(name)
            self._constants[written] = f"{written} = {text}"
        self._now.steps.append(("_constant", key, self._names[key]))
        return self._names[key]

    def alias(self, name: str, taken: set[str]) -> str:
        """Return the name itself, or an alias of it if it is among the variables ``taken`` of a function."""
        if name not in taken:
            return name
        other = self.fresh(name, taken)
        self._aliases[other] = f"{other} = {name}"
        self._uses[other] = {name}
        self._now.repeatable = False  # a second try would make a second alias
        return other

    def fresh(self, name: str, taken: Collection[str] = ()) -> str:
        """Return a name that is not in the text yet."""
        candidate, number = name, 1
        while candidate in self._taken or candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate
