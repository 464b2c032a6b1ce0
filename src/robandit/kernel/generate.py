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
import pickle
import types
from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from robandit.errors import KernelError

__all__ = ["Writer", "fingerprint", "out_of_line"]

_OPEN_MODULES = {"numpy": "np", "math": "math"}
_LARGEST_ARRAY = 1_000_000  # bytes; Numba does not cache code that holds a larger one
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
        """Nothing is written yet."""
        self._names: dict[Any, str] = {}
        self._taken: set[str] = {"np", "math", "njit", "namedtuple", "OPTIONS"} | set(dir(builtins))
        self._constants: dict[str, str] = {}  # the definition, by name; so are the next two
        self._functions: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._uses: dict[str, set[str]] = {}  # the names that a function or alias reads from outside
        self._alive: list[Any] = []  # ids serve as keys, so nothing may be collected meanwhile
        self.reads: list[tuple[Callable[[], Any], Any]] = []  # how to look up each thing that was read, and what it was

    def text(self) -> str:
        """Everything written so far: constants first, then functions."""
        return "\n".join([*self._constants.values(), "", *self._functions.values(), *self._aliases.values()])

    def parts(self) -> dict[str, str]:
        """For each function, all that it reaches, itself first: functions of two texts that agree in this are the same."""
        return {name: self._reached(name) for name in self._functions}

    def _reached(self, name: str) -> str:
        definitions = self._constants | self._functions | self._aliases
        reached: set[str] = set()
        left = {name}
        while left:
            reached |= left
            left = {used for one in left for used in self._uses.get(one, ()) if used in definitions} - reached
        return "\n".join(definitions[one] for one in [name, *sorted(reached - {name})])

    def function(self, what: Any) -> str:
        """Write a function (or a `functools.partial` that binds functions to its first parameters)."""
        if isinstance(what, partial):
            return self._write(what.func, _bound(what))
        return self._write(what, ())

    def _write(self, function: Any, bound: Bound) -> str:
        function = _plain(function)
        key = (id(function), tuple((name, _identity(value)) for name, value in bound))
        if key in self._names:
            return self._names[key]
        self._alive.append((function, bound))
        node = parse(function)
        name = self._names[key] = self.fresh(node.name)
        # Code can be replaced inside a function (IPython's autoreload does): the same object is then another function.
        self.reads.append((partial(getattr, function, "__code__"), function.__code__))
        node.name = name
        for value in dict(bound).values():
            self.function(value)
        self._uses[name] = _Rewriter(self, function, dict(bound)).rewrite(node)
        inline = "" if getattr(function, "__out_of_line__", False) else "forceinline=True, "
        # Only the entry is called from Python: without wrappers for the rest, compiling takes a quarter less.
        inner = "no_cpython_wrapper=True, no_cfunc_wrapper=True, "
        self._functions[name] = f"@njit({inline}{inner}**OPTIONS)\n" + ast.unparse(node) + "\n"
        return name

    def constant(self, name: str, value: Any) -> str:
        """Write a constant and return its name; one value has one name, whoever reads it."""
        literal = _literal(value)
        key = (name, literal)
        if key not in self._names:
            self._names[key] = self.fresh(name)
            self._constants[self._names[key]] = f"{self._names[key]} = {literal}"
        return self._names[key]

    def alias(self, name: str, taken: set[str]) -> str:
        """A written name for a function with the variables ``taken``: another one if a variable has that name."""
        if name not in taken:
            return name
        other = self.fresh(name, taken)
        self._aliases[other] = f"{other} = {name}"
        self._uses[other] = {name}
        return other

    def fresh(self, name: str, taken: Collection[str] = ()) -> str:
        """A name that nothing in the text has yet."""
        candidate, number = name, 1
        while candidate in self._taken or candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate


def _plain(value: Any) -> Any:
    """The function inside a jitted function or a static method."""
    return value.__func__ if isinstance(value, staticmethod) else getattr(value, "py_func", value)


def _bound(what: partial[Any]) -> Bound:
    if what.keywords:
        names = ", ".join(what.keywords)
        raise KernelError(f"{what!r} cannot be compiled: it binds {names} by keyword; bind by position, from the first")
    return tuple(zip(inspect.signature(_plain(what.func)).parameters, what.args, strict=False))


def _identity(value: Any) -> Any:
    if isinstance(value, partial):
        return (id(_plain(value.func)), tuple(_identity(a) for a in value.args))
    return id(_plain(value))


def fingerprint(value: Any) -> Any:
    """What must stay the same for a value that was read: its literal (an array may change in place), else its identity."""
    try:
        return _literal(value)
    except TypeError:
        return value


def _is_function(value: Any) -> bool:
    return isinstance(value, partial) or isinstance(_plain(value), types.FunctionType)


def _literal(value: Any) -> str:
    if isinstance(value, (bool, type(None))):
        return repr(value)
    if isinstance(value, str):
        return str.__repr__(value)  # a subclass, such as an enumeration, may print itself as something else
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.nbytes > _LARGEST_ARRAY:
            raise TypeError(f"array of {value.nbytes} bytes, too large for a constant (hand it over in the state)")
        return (
            f"np.array({_literal(tuple(value.ravel().tolist()))}, dtype=np.{value.dtype.name}).reshape({value.shape})"
        )
    if isinstance(value, np.generic) and not isinstance(value, float) and value.dtype.kind in "biuf":
        if isinstance(value.item(), np.generic):
            raise TypeError(type(value).__name__)  # a longdouble: no Python number holds it
        return f"np.{value.dtype.name}({_literal(value.item())})"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    if isinstance(value, tuple):
        return "(" + "".join(_literal(v) + ", " for v in value) + ")"
    raise TypeError(type(value).__name__)


def parse(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function, checked against the byte code that Python runs.

    It is found by the line of the byte code, in the whole file, because byte code depends on the file around it. Not
    ``inspect.getsource``: it follows ``__wrapped__``, so it returns the source of the function INSIDE a decorated one.
    """
    if not isinstance(function, types.FunctionType) or function.__code__.co_name == "<lambda>":
        raise KernelError(f"{function!r} cannot be compiled: a hook or helper is a function made with 'def'")
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text or code.co_filename == "<string>":  # from 3.13 on that is the text of python -c, whatever was executed
        raise KernelError(
            f"the source of {function.__qualname__} cannot be read (its file is {code.co_filename}): define it in a "
            "file or a notebook cell, not in a string or at the plain prompt"
        )
    try:
        known = _definitions(text, code.co_flags & _FUTURE)
        current, node = known.get((code.co_qualname, code.co_firstlineno), (None, None))
    except (SyntaxError, ValueError):
        current = node = None
    if current is None or _shape(current) != _shape(code):
        raise KernelError(
            f"{function.__qualname__} in {code.co_filename} is no longer what this program imported: the file was "
            "edited meanwhile (start the program again), or a tool changed the code (pytest does if it has an assert)"
        )
    if node is None:
        raise KernelError(f"{function.__qualname__} cannot be compiled: a hook or helper is a function made with 'def'")
    copy: ast.FunctionDef = pickle.loads(pickle.dumps(node))  # it will be rewritten; several times faster than deepcopy
    return copy


@cache
def _definitions(text: str, flags: int) -> dict[tuple[str, int], tuple[types.CodeType, ast.FunctionDef | None]]:
    """Every code object of a file, by qualified name and line, with its 'def'."""
    nodes: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            nodes[node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])] = node
    found: dict[tuple[str, int], tuple[types.CodeType, ast.FunctionDef | None]] = {}
    left = [compile(text, "<check>", "exec", flags=flags, dont_inherit=True)]
    while left:
        code = left.pop()
        found[code.co_qualname, code.co_firstlineno] = code, nodes.get((code.co_name, code.co_firstlineno))
        left.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return found


def _shape(code: types.CodeType) -> Any:
    constants = [_shape(c) if isinstance(c, types.CodeType) else (type(c), c) for c in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    variables = code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_names, counts, variables, repr(constants)


_COMPREHENSION = "holds a comprehension, which makes a list while it runs; write a loop over arrays made in init()"
_REFUSED: dict[type[ast.AST], str] = {
    ast.Lambda: "holds a lambda; write a function with 'def' beside it",
    ast.ClassDef: "defines a class",
    ast.AsyncFunctionDef: "defines an async function",
    ast.Import: "imports while it runs; import at the top of the file",
    ast.ImportFrom: "imports while it runs; import at the top of the file",
    ast.Global: "assigns a global variable; keep it in the state",
    ast.Nonlocal: "assigns a variable of another function; keep it in the state",
    ast.Match: "holds a match statement; write if and elif",
    ast.Yield: "is a generator; return its values one by one",
    ast.YieldFrom: "is a generator; return its values one by one",
    ast.ListComp: _COMPREHENSION,
    ast.SetComp: _COMPREHENSION,
    ast.DictComp: _COMPREHENSION,
    ast.GeneratorExp: _COMPREHENSION,
}
"""What would bind names in a scope of its own, or elsewhere: the rewriter knows one scope, the function's."""


class _Rewriter(ast.NodeTransformer):
    """Replaces what a function reads from outside by names of the written text; drops annotations and the docstring."""

    def __init__(self, writer: Writer, function: Callable[..., Any], bound: dict[str, Any]) -> None:
        assert isinstance(function, types.FunctionType)
        self.writer = writer
        self.function = function
        self.where = function.__qualname__
        self.bound = bound
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.globals = function.__globals__
        self.locals: set[str] = set()

    def rewrite(self, node: ast.FunctionDef) -> set[str]:
        """Rewrite it in place; returns the names that it now reads from outside."""
        node.decorator_list = []  # they made this function, or something else that was not reached
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise KernelError(f"{self.where} cannot be compiled: it takes * or keyword-only arguments")
        parameters = [*arguments.posonlyargs, *arguments.args]
        arguments.args = [a for a in parameters if a.arg not in self.bound]
        arguments.posonlyargs = []
        arguments.defaults = self.defaults(parameters)
        self.locals = {a.arg for a in arguments.args} | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        }
        for argument in arguments.args:
            argument.annotation = None
        node.returns = None
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        node.body = [self.visit(statement) for statement in node.body]
        ast.fix_missing_locations(node)
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - self.locals

    def defaults(self, parameters: list[ast.arg]) -> list[ast.expr]:
        """The values that Python computed when it met the 'def', not the expressions: these may have changed."""
        values = self.read(partial(getattr, self.function, "__defaults__")) or ()
        out: list[ast.expr] = []
        for argument, value in zip(parameters[len(parameters) - len(values) :], values, strict=True):
            if argument.arg in self.bound:
                continue
            try:
                out.append(ast.parse(_literal(value), mode="eval").body)
            except TypeError as error:
                raise KernelError(
                    f"{self.where} has a {error} as default of {argument.arg}: it must be a number, a string or a tuple"
                ) from None
        return out

    def visit(self, node: ast.AST) -> Any:
        if type(node) in _REFUSED:
            raise KernelError(f"{self.where} cannot be compiled: it {_REFUSED[type(node)]}")
        return super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign([node.target], node.value))  # type: ignore[no-any-return]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        raise KernelError(f"{self.where} cannot be compiled: it defines the inner function {node.name}")

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call that hands over functions becomes a call of a copy with those functions bound."""
        callee = self.lookup(node.func)
        given = [self.lookup(a) for a in node.args]
        named = [(k.arg or "**", self.lookup(k.value)) for k in node.keywords]
        if not _is_function(callee) or not any(_is_function(g) for g in [*given, *(g for _, g in named)]):
            return self.generic_visit(node)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(name == "**" for name, _ in named):
            raise KernelError(f"{self.where} cannot be compiled: {ast.unparse(node)} has functions beside * or **")
        target, first = (callee.func, _bound(callee)) if isinstance(callee, partial) else (callee, ())
        parameters = list(inspect.signature(_plain(target)).parameters)[len(first) :]
        bound = [(p, g) for p, g in [*zip(parameters, given, strict=False), *named] if _is_function(g)]
        name = self.writer._write(target, (*first, *bound))
        rest = [self.visit(a) for a, g in zip(node.args, given, strict=True) if not _is_function(g)]
        keywords = [self.visit(k) for k, (_, g) in zip(node.keywords, named, strict=True) if not _is_function(g)]
        return ast.Call(self.named(name), rest, keywords)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.replaced(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.replaced(node, node.attr)

    def replaced(self, node: ast.Name | ast.Attribute, name: str) -> ast.AST:
        value = self.lookup(node)
        if value is _UNKNOWN:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise KernelError(f"{self.where} cannot be compiled: it assigns {ast.unparse(node)}; keep it in the state")
        if _is_function(value):
            return self.named(self.writer.function(value))
        if isinstance(value, types.ModuleType) and value.__name__ in _OPEN_MODULES:
            return self.named(_OPEN_MODULES[value.__name__])
        called: str = getattr(value, "__name__", "") if callable(value) else ""
        if called and getattr(builtins, called, None) is value:
            return self.named(called)
        for home in (math, np):
            # Looked up, not believed: a ufunc of SciPy has no module, and says no more than its name.
            if called and getattr(home, called, None) is value:
                return ast.Attribute(self.named(_OPEN_MODULES[home.__name__]), called, ast.Load())
        try:
            return self.named(self.writer.constant(name, value))
        except TypeError as error:
            raise KernelError(
                f"{self.where} reads {ast.unparse(node)}, which is a {error}: compiled code may read numbers, strings, tuples "
                "and arrays of them, functions, math and numpy"
            ) from None

    def named(self, name: str) -> ast.Name:
        return ast.Name(self.writer.alias(name, self.locals), ast.Load())

    def lookup(self, node: ast.AST) -> Any:
        """The value of a name from outside, or of an attribute of a module or class; `_UNKNOWN` for anything else."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id in self.bound:
                return self.bound[node.id]
            if node.id in self.closure:
                value = self.read(partial(_contents, self.closure[node.id]))
            else:
                value = self.read(partial(_find, node.id, self.globals))
            if value is _UNKNOWN:
                raise KernelError(f"{self.where} reads {node.id}, which is not defined")
            return value
        if isinstance(node, ast.Attribute):
            base = self.lookup(node.value)
            if isinstance(base, types.ModuleType) and base.__name__ in _OPEN_MODULES:
                if base is np and node.attr == "random":
                    raise KernelError(
                        f"{self.where} reads np.random, whose state no seed of ours reaches: give the policy's state a "
                        "field rng and draw with robandit.kernel.random"
                    )
                return _UNKNOWN  # np.sqrt, math.log: left as it is, the module's name is rewritten below it
            if isinstance(base, (types.ModuleType, type)) and hasattr(base, node.attr):
                return self.read(partial(getattr, base, node.attr, None))
            if isinstance(base, types.ModuleType):
                raise KernelError(f"{self.where} reads {ast.unparse(node)}, which is not defined")
        return _UNKNOWN

    def read(self, get: Callable[[], Any]) -> Any:
        value = get()
        self.writer.reads.append((get, fingerprint(value)))
        return value


class _Unknown:
    pass


_UNKNOWN = _Unknown()


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _UNKNOWN


def _find(name: str, namespace: dict[str, Any]) -> Any:
    """A global, else a builtin: in this order every time, because a global may come to hide a builtin later."""
    return namespace.get(name, vars(builtins).get(name, _UNKNOWN))
