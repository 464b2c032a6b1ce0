"""Rewrites the syntax tree of a function so that it reads only names of the kernel's text."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import types
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import KernelError
from robandit.kernel.function_source import bound_parameters, is_function, unwrapped
from robandit.kernel.literals import literal

if TYPE_CHECKING:
    from robandit.kernel.generate import Writer

_OPEN_MODULES = {"numpy": "np", "math": "math"}  # modules that the text imports -> their names in it
_COMPREHENSION = "contains a comprehension, which allocates a list; write a loop over arrays made in init()"
_REJECTED: dict[type[ast.AST], str] = {
    ast.Lambda: "contains a lambda; write a separate function with 'def'",
    ast.ClassDef: "defines the class",
    ast.FunctionDef: "defines the inner function",
    ast.AsyncFunctionDef: "defines the async function",
    **dict.fromkeys((ast.Import, ast.ImportFrom), "imports while it runs; import at the top of the file"),
    ast.Global: "assigns a global variable; keep it in the state",
    ast.Nonlocal: "assigns a variable of another function; keep it in the state",
    ast.Match: "contains a match statement; write if and elif",
    **dict.fromkeys((ast.Yield, ast.YieldFrom), "is a generator; return its values one by one"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _COMPREHENSION),
}
"""Syntax that binds names in another scope. The rewriter handles only the function's scope."""

_UNKNOWN = object()  # a value that cannot be known before the function runs


class Rewriter(ast.NodeTransformer):
    """Replaces outside names in a function by names of the text, and drops annotations and the docstring."""

    def __init__(self, writer: Writer, function: Callable[..., Any], bound: dict[str, Any]) -> None:
        """Prepare to rewrite one function whose parameters in ``bound`` are bound to functions."""
        assert isinstance(function, types.FunctionType)
        self.writer, self.function, self.name, self.bound = writer, function, function.__qualname__, bound
        self.closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.locals: set[str] = set()
        self.outside: dict[str, Any] = {}  # values of outside names: most are looked up several times

    def rewrite(self, node: ast.FunctionDef) -> set[str]:
        """Rewrite the function in place; return the names that it now reads from outside."""
        node.decorator_list = []  # already applied, or not part of this function
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise KernelError(f"{self.name} cannot be compiled: it takes * or keyword-only arguments")
        parameters = [*arguments.posonlyargs, *arguments.args]
        arguments.args = [a for a in parameters if a.arg not in self.bound]
        arguments.posonlyargs = []
        arguments.defaults = self.defaults(parameters)
        assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self.locals = assigned | {a.arg for a in arguments.args}
        for argument in arguments.args:
            argument.annotation = None
        node.returns = None
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        node.body = [self.visit(statement) for statement in node.body]
        ast.fix_missing_locations(node)
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - self.locals

    def defaults(self, parameters: list[ast.arg]) -> list[ast.expr]:
        """Return the default values as literals. Python computed them at the 'def'; their expressions may have changed since."""
        values = self.writer.read(partial(getattr, self.function, "__defaults__")) or ()
        literals: list[ast.expr] = []
        for argument, value in zip(parameters[len(parameters) - len(values) :], values, strict=True):
            if argument.arg in self.bound:
                continue
            try:
                literals.append(ast.parse(literal(value), mode="eval").body)
            except TypeError as error:
                problem = f"a {error} as default of {argument.arg}: it must be a number, a string or a tuple"
                raise KernelError(f"{self.name} has {problem}") from None
        return literals

    def visit(self, node: ast.AST) -> Any:
        """Visit a node, unless its syntax is rejected."""
        if type(node) in _REJECTED:
            reason = f"{_REJECTED[type(node)]} {getattr(node, 'name', '')}".strip()
            raise KernelError(f"{self.name} cannot be compiled: it {reason}")
        return super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Drop the annotation."""
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign([node.target], node.value))  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call that passes functions by a call of a copy in which those functions are bound."""
        callee = self.lookup(node.func)
        values = [self.lookup(a) for a in node.args]
        keyword_values = [(k.arg or "**", self.lookup(k.value)) for k in node.keywords]
        if not is_function(callee) or not any(is_function(v) for v in [*values, *(v for _, v in keyword_values)]):
            return self.generic_visit(node)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(name == "**" for name, _ in keyword_values):
            raise KernelError(f"{self.name} cannot be compiled: {ast.unparse(node)} has functions next to * or **")
        target, first = (callee.func, bound_parameters(callee)) if isinstance(callee, partial) else (callee, ())
        parameters = list(inspect.signature(unwrapped(target)).parameters)[len(first) :]
        bound = [(p, v) for p, v in [*zip(parameters, values, strict=False), *keyword_values] if is_function(v)]
        name = self.writer.write(target, (*first, *bound))
        rest = [self.visit(a) for a, v in zip(node.args, values, strict=True) if not is_function(v)]
        named = zip(node.keywords, keyword_values, strict=True)
        keywords = [self.visit(k) for k, (_, v) in named if not is_function(v)]
        return ast.Call(self.reference(name), rest, keywords)

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.AST:
        """Replace an outside name, or an attribute of a module or class. Keep it if its value is not known."""
        value = self.lookup(node)
        if value is _UNKNOWN:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise KernelError(f"{self.name} cannot be compiled: it assigns {ast.unparse(node)}; keep it in the state")
        if is_function(value):
            return self.reference(self.writer.function(value))
        if isinstance(value, types.ModuleType) and value.__name__ in _OPEN_MODULES:
            return self.reference(_OPEN_MODULES[value.__name__])
        public_name: str = getattr(value, "__name__", "") if callable(value) else ""
        if public_name and getattr(builtins, public_name, None) is value:
            return self.reference(public_name)
        for module in (math, np):
            # Compared by identity, since a ufunc of SciPy has a name but no module.
            if public_name and getattr(module, public_name, None) is value:
                return ast.Attribute(self.reference(_OPEN_MODULES[module.__name__]), public_name, ast.Load())
        try:
            return self.reference(self.writer.constant(node.id if isinstance(node, ast.Name) else node.attr, value))
        except TypeError as error:
            rule = "compiled code may read numbers, strings, tuples and arrays of them, functions, math and numpy"
            raise KernelError(f"{self.name} reads {ast.unparse(node)}, which is a {error}: {rule}") from None

    visit_Attribute = visit_Name

    def reference(self, name: str) -> ast.Name:
        """Return a node that reads a name of the text."""
        return ast.Name(self.writer.alias(name, self.locals), ast.Load())

    def lookup(self, node: ast.AST) -> Any:
        """Return the value of an outside name, or of an attribute of a module or class, else `_UNKNOWN`."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id in self.bound:
                return self.bound[node.id]
            if node.id not in self.outside:
                get = partial(_outer, node.id, self.closure.get(node.id), self.function.__globals__)
                self.outside[node.id] = self.writer.read(get)
            value = self.outside[node.id]
            if value is _UNKNOWN:
                raise KernelError(f"{self.name} reads {node.id}, which is not defined")
            return value
        if isinstance(node, ast.Attribute):
            base = self.lookup(node.value)
            if isinstance(base, types.ModuleType) and base.__name__ in _OPEN_MODULES:
                if base is np and node.attr == "random":
                    hint = "give the policy's state a field rng and draw with robandit.kernel.random"
                    raise KernelError(f"{self.name} reads np.random, which Robandit's seeds do not control: {hint}")
                return _UNKNOWN  # np.sqrt or math.log: kept, and only the module's name is rewritten
            if isinstance(base, (types.ModuleType, type)) and hasattr(base, node.attr):
                return self.writer.read(partial(getattr, base, node.attr, None))
            if isinstance(base, types.ModuleType):
                raise KernelError(f"{self.name} reads {ast.unparse(node)}, which is not defined")
        return _UNKNOWN


def _outer(name: str, cell: types.CellType | None, namespace: dict[str, Any]) -> Any:
    """Return the content of a cell, else a global, else a builtin. Look it up each time, because a global may hide it later."""
    if cell is None:
        return namespace.get(name, vars(builtins).get(name, _UNKNOWN))
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _UNKNOWN
