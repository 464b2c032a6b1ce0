"""How plain functions become one compiled, cacheable file.

Numba's own cache is keyed by the file of ONE function: it misses when a function is passed as an argument, and serves stale
code when a helper in another file or a constant changes. So a kernel is not assembled from imported pieces. This module walks
from an entry function through everything it can reach, and writes all of it into one self-contained text: the sources of the
functions, the values of the constants that they read, nothing imported but ``math`` and ``numpy``. The text is the key. Any
edit of a hook, a helper or a constant is another text, hence another file: staleness is impossible by construction, and the
entry works the same from a package, a script, or a notebook cell.

Three rules for what is written:

- a name that a function reads from outside is a number, a string, a tuple or array of them (written as its value), a function
  (written too), or something of ``math`` and ``numpy`` (left as it is); anything else is refused by name;
- a FUNCTION given as an argument is bound while writing: ``best(index, p, s)`` writes a copy of ``best`` in which ``index`` is
  that very function. So generic loops cost nothing at run time, and stay plain Python when they are not compiled;
- the source on disk must still be what Python imported: its byte code is compared, and a file edited under a running program
  is refused.
"""

from __future__ import annotations

import __future__

import ast
import builtins
import inspect
import linecache
import math
import textwrap
import types
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from robandit.errors import KernelError

__all__ = ["Writer", "fingerprint", "out_of_line"]

_OPEN_MODULES = {"numpy": "np", "math": "math"}
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
Bound = tuple[tuple[str, Any], ...]
Function = TypeVar("Function", bound=Callable[..., Any])


def out_of_line(function: Function) -> Function:
    """Mark a function that is called rarely: it is not copied into its callers.

    All others are. A call hands over every array of the state, which costs more than most helpers do (UCB1: 130 ns a pull
    with calls, 41 without); but copies of large, rare code make compilation slow and the hot loop too big for the cache.
    """
    function.__out_of_line__ = True  # type: ignore[attr-defined]
    return function


class Writer:
    """Collects functions into one text; `function` returns the name under which one was written."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._taken: set[str] = {"np", "math", "njit", "OPTIONS"} | set(dir(builtins))
        self._constants: list[str] = []
        self._functions: list[str] = []
        self._alive: list[Any] = []  # ids serve as keys, so nothing may be collected meanwhile
        self.reads: list[tuple[Callable[[], Any], Any]] = []  # how to look up each thing that was read, and what it was

    def text(self) -> str:
        """Everything written so far: constants first, then functions."""
        return "\n".join([*self._constants, "", *self._functions])

    def function(self, what: Any) -> str:
        """Write a function (or a `functools.partial` that binds functions to its first parameters)."""
        if isinstance(what, partial):
            parameters = list(inspect.signature(what.func).parameters)
            return self._write(what.func, tuple(zip(parameters, what.args, strict=False)))
        return self._write(getattr(what, "py_func", what), ())

    def _write(self, function: Callable[..., Any], bound: Bound) -> str:
        key = (id(function), tuple((name, _identity(value)) for name, value in bound))
        if key in self._names:
            return self._names[key]
        self._alive.append((function, bound))
        name = self._names[key] = self._fresh(function.__name__)
        node = parse(function)
        node.name = name
        for value in dict(bound).values():
            self.function(value)
        _Rewriter(self, function, dict(bound)).rewrite(node)
        inline = "" if getattr(function, "__out_of_line__", False) else "forceinline=True, "
        self._functions.append(f"@njit({inline}**OPTIONS)\n" + ast.unparse(node) + "\n")
        return name

    def constant(self, name: str, value: Any) -> str:
        """Write a constant and return its name; one value has one name, whoever reads it."""
        literal = _literal(value)
        key = (name, literal)
        if key not in self._names:
            self._names[key] = self._fresh(name)
            self._constants.append(f"{self._names[key]} = {literal}")
        return self._names[key]

    def _fresh(self, name: str) -> str:
        name = name.strip("<>")
        candidate, number = name, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate


def _identity(value: Any) -> Any:
    if isinstance(value, partial):
        return (id(value.func), tuple(_identity(a) for a in value.args))
    return id(getattr(value, "py_func", value))


def fingerprint(value: Any) -> Any:
    """What must stay the same for a value that was read: its literal (an array may change in place), else its identity."""
    try:
        return _literal(value)
    except TypeError:
        return value


def _is_function(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, partial)) or isinstance(
        getattr(value, "py_func", None), types.FunctionType
    )


def _literal(value: Any) -> str:
    if isinstance(value, (bool, str, type(None))):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return f"np.array({_literal(tuple(value.ravel().tolist()))}, dtype=np.{value.dtype.name}).reshape({value.shape})"
    if isinstance(value, np.generic) and not isinstance(value, float):
        return f"np.{value.dtype.name}({value.item()!r})"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    if isinstance(value, tuple):
        return "(" + "".join(_literal(v) + ", " for v in value) + ")"
    raise TypeError(type(value).__name__)


def parse(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function, checked against the byte code that Python runs."""
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        raise KernelError(f"{function!r} cannot be compiled: a hook or helper is a function made with 'def'")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError) as error:
        raise KernelError(
            f"the source of {function.__qualname__} cannot be read ({error}): define it in a file or a notebook cell, not "
            "in a string or at the plain prompt"
        ) from error
    if not isinstance(node, ast.FunctionDef):
        raise KernelError(f"{function.__qualname__} cannot be compiled: a hook or helper is a function made with 'def'")
    node.decorator_list = []
    if not _still_current(function):
        raise KernelError(
            f"{function.__qualname__} in {function.__code__.co_filename} is no longer what this program imported: the file was "
            "edited meanwhile; start the program again"
        )
    return node


def _still_current(function: types.FunctionType) -> bool:
    """Does the text of the file compile to the byte code that Python runs? The whole file, because byte code depends on it."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    try:
        current = _codes("".join(lines), code.co_flags & _FUTURE).get((code.co_qualname, code.co_firstlineno))
    except SyntaxError:
        return False
    return current is not None and _shape(current) == _shape(code)


@cache
def _codes(text: str, flags: int) -> dict[tuple[str, int], types.CodeType]:
    """Every code object of a file, by qualified name and line."""
    found: dict[tuple[str, int], types.CodeType] = {}
    left = [compile(text, "<check>", "exec", flags=flags, dont_inherit=True)]
    while left:
        code = left.pop()
        found[code.co_qualname, code.co_firstlineno] = code
        left.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return found


def _shape(code: types.CodeType) -> Any:
    constants = [_shape(c) if isinstance(c, types.CodeType) else (type(c), c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, repr(constants)


class _Rewriter(ast.NodeTransformer):
    """Replaces what a function reads from outside by names of the written text; drops annotations and the docstring."""

    def __init__(self, writer: Writer, function: Callable[..., Any], bound: dict[str, Any]) -> None:
        assert isinstance(function, types.FunctionType)
        self.writer = writer
        self.where = function.__qualname__
        self.bound = bound
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.globals = function.__globals__
        self.locals: set[str] = set()

    def rewrite(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise KernelError(f"{self.where} cannot be compiled: it takes * or keyword-only arguments")
        arguments.args = [a for a in [*arguments.posonlyargs, *arguments.args] if a.arg not in self.bound]
        arguments.posonlyargs = []
        self.locals = {a.arg for a in arguments.args} | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for argument in arguments.args:
            argument.annotation = None
        node.returns = None
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        node.body = [self.visit(statement) for statement in node.body]
        ast.fix_missing_locations(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign([node.target], node.value))  # type: ignore[no-any-return]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        raise KernelError(f"{self.where} cannot be compiled: it defines the inner function {node.name}")

    visit_Lambda = visit_FunctionDef  # type: ignore[assignment]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call that hands over functions becomes a call of a copy with those functions bound."""
        callee = self.lookup(node.func)
        target, given = callee, [self.lookup(a) for a in node.args]
        if _is_function(callee) and any(_is_function(g) for g in given):
            first: tuple[Any, ...] = ()
            if isinstance(target, partial):
                target, first = target.func, target.args
            parameters = list(inspect.signature(target).parameters)[len(first) :]
            bound = [*zip(inspect.signature(target).parameters, first, strict=False)]
            bound += [(p, g) for p, g in zip(parameters, given, strict=False) if _is_function(g)]
            name = self.writer._write(target, tuple(bound))
            rest = [a for a, g in zip(node.args, given, strict=True) if not _is_function(g)]
            return ast.Call(ast.Name(name, ast.Load()), [self.visit(a) for a in rest], [])
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.replaced(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.replaced(node, node.attr)

    def replaced(self, node: ast.Name | ast.Attribute, name: str) -> ast.AST:
        value = self.lookup(node)
        if value is _UNKNOWN:
            return self.generic_visit(node)
        if _is_function(value):
            return ast.Name(self.writer.function(value), ast.Load())
        if isinstance(value, types.ModuleType):
            return ast.Name(_OPEN_MODULES[value.__name__], ast.Load())
        home = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else None)
        if callable(value) and home in _OPEN_MODULES:
            alias = _OPEN_MODULES[home]
            return ast.Attribute(ast.Name(alias, ast.Load()), value.__name__, ast.Load())
        if callable(value) and home == "builtins" and getattr(builtins, value.__name__, None) is value:
            return ast.Name(value.__name__, ast.Load())
        try:
            return ast.Name(self.writer.constant(name, value), ast.Load())
        except TypeError as error:
            raise KernelError(
                f"{self.where} reads {ast.unparse(node)}, which is a {error}: compiled code may read numbers, strings, tuples "
                "and arrays of them, functions, math and numpy"
            ) from None

    def lookup(self, node: ast.AST) -> Any:
        """The value of a name from outside, or of an attribute of a module or class; `_UNKNOWN` for anything else."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id in self.bound:
                return self.bound[node.id]
            if node.id in self.closure:
                return self.read(partial(getattr, self.closure[node.id], "cell_contents", None))
            for space in (self.globals, vars(builtins)):
                if node.id in space:
                    return self.read(partial(space.get, node.id))
            raise KernelError(f"{self.where} reads {node.id}, which is not defined")
        if isinstance(node, ast.Attribute):
            base = self.lookup(node.value)
            if isinstance(base, types.ModuleType) and base.__name__ in _OPEN_MODULES:
                return _UNKNOWN  # np.sqrt, math.log: left as it is, the module's name is rewritten below it
            if isinstance(base, (types.ModuleType, type)) and hasattr(base, node.attr):
                return self.read(partial(getattr, base, node.attr, None))
        return _UNKNOWN

    def read(self, get: Callable[[], Any]) -> Any:
        value = get()
        self.writer.reads.append((get, fingerprint(value)))
        return value


class _Unknown:
    pass


_UNKNOWN = _Unknown()
