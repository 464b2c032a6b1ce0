"""Finds the source of a function, and checks that it matches the code that Python runs."""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import pickle
import types
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from robandit.errors import KernelError

_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
Bound = tuple[tuple[str, Any], ...]
"""Parameters and the functions bound to them."""


def unwrapped(value: Any) -> Any:
    """Return the function inside a jitted function or a static method. Return other values unchanged."""
    return value.__func__ if isinstance(value, staticmethod) else getattr(value, "py_func", value)


def is_function(value: Any) -> bool:
    """Return whether the writer can write this as a function: plain, jitted, static or partial."""
    return isinstance(value, partial) or isinstance(unwrapped(value), types.FunctionType)


def bound_parameters(function: partial[Any]) -> Bound:
    """Return the parameters that a partial binds, in order."""
    if function.keywords:
        names = ", ".join(function.keywords)
        raise KernelError(f"{function!r} cannot be compiled: it binds {names} by keyword; bind by position")
    return tuple(zip(inspect.signature(unwrapped(function.func)).parameters, function.args, strict=False))


def identity(value: Any) -> Any:
    """Return a key that is equal for the same function with the same functions bound."""
    if isinstance(value, partial):
        return (id(unwrapped(value.func)), tuple(identity(a) for a in value.args))
    return id(unwrapped(value))


def parse(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function, checked against the byte code that Python runs.

    The function is looked up by line in the tree of the whole file, because byte code depends on the rest of the file.
    ``inspect.getsource`` would return the function INSIDE a decorated one.
    """
    not_a_def = KernelError(f"{function!r} cannot be compiled: a hook or helper is a function made with 'def'")
    if not isinstance(function, types.FunctionType) or function.__code__.co_name == "<lambda>":
        raise not_a_def
    code, name = function.__code__, function.__qualname__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text or code.co_filename == "<string>":  # Python 3.13 gives "<string>" the text of python -c, whatever ran
        hint = "define it in a file or a notebook cell, not in a string or at the plain prompt"
        raise KernelError(f"the source of {name} cannot be read (its file is {code.co_filename}): {hint}")
    try:
        known = _definitions(text, code.co_flags & _FUTURE)
        current, node = known.get((code.co_qualname, code.co_firstlineno), (None, None))
    except (SyntaxError, ValueError):
        current = node = None
    if current is None or _content(current) != _content(code):
        reasons = "the file was edited since (start again), or a tool changed the code (pytest rewrites assert)"
        raise KernelError(f"{name} in {code.co_filename} differs from the imported function: {reasons}")
    if node is None:
        raise not_a_def
    copy: ast.FunctionDef = pickle.loads(pickle.dumps(node))  # for the rewriter; several times faster than deepcopy
    return copy


@cache
def _definitions(text: str, flags: int) -> dict[tuple[str, int], tuple[types.CodeType, ast.FunctionDef | None]]:
    """Return every code object of a file, by qualified name and line, with its 'def'."""
    defs = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    nodes = {(node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])): node for node in defs}
    definitions: dict[tuple[str, int], tuple[types.CodeType, ast.FunctionDef | None]] = {}
    queue = [compile(text, "<check>", "exec", flags=flags, dont_inherit=True)]
    while queue:
        code = queue.pop()
        definitions[code.co_qualname, code.co_firstlineno] = code, nodes.get((code.co_name, code.co_firstlineno))
        queue.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return definitions


def _content(code: types.CodeType) -> Any:
    """Return the parts of a code object that are equal for the same function, wherever it was compiled."""
    constants = [_content(c) if isinstance(c, types.CodeType) else (type(c), c) for c in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    variables = code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_names, counts, variables, repr(constants)
