"""Everything that depends on Numba: the options, the compilation of a text, and the stored form of its machine code.

Numba's own cache is not used, because it needs a writable folder even for reading, and writes an index and a file of code that two
processes may mix up.
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from robandit.kernel.messages import say


def jit_disabled() -> bool:
    """Return whether NUMBA_DISABLE_JIT is set: entries are then plain functions, for debuggers."""
    return bool(import_module("numba").config.DISABLE_JIT)


@cache
def _options() -> Mapping[str, Any]:
    """Return the jit options. ``_nrt=False`` (private to Numba) removes reference counting, which makes loops 4 times faster."""
    options = {"nogil": True, "error_model": "numpy"}
    if jit_disabled():
        return options
    if hasattr(import_module("numba.core.cpu").CPUTargetOptions, "_nrt"):  # trying it would cost 0.1 s
        return options | {"_nrt": False}
    say("this Numba does not accept _nrt=False; compiled loops are slower, results are the same", once=True)
    return options


@cache
def _pipelines() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the further jit options of entries and of inner functions."""
    linking = import_module("robandit.kernel.linking")
    if linking.supported():
        return linking.WHOLE, linking.PART
    say(
        "this Numba links in another way than expected; compiling takes twice the time, results are the same", once=True
    )
    return {}, {}


def decorators(*, inner: bool, checked: bool) -> dict[str, Callable[..., Any]]:
    """Return the decorators that a text uses. Without ``inner``, only the entry is decorated: its code is to be restored."""
    njit = import_module("numba").njit
    whole, part = _pipelines()
    options = {**_options(), "boundscheck": checked}
    # Only the entry is called from Python. Without wrappers for the others, compiling takes a quarter less time.
    inner_options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **part, **options}
    chosen = {
        "_entry": njit(no_cfunc_wrapper=True, **whole, **options),
        "_inlined": njit(forceinline=True, **inner_options),
        "_called": njit(forceinline=False, **inner_options),  # given, because a function inherits it from its caller
    }
    return chosen if inner else {name: chosen["_entry"] if name == "_entry" else _unchanged for name in chosen}


def _unchanged(function: Any) -> Any:
    return function


@cache
def platform_key() -> str:
    """Return what compiled code depends on besides its text: versions, options and the processor."""
    numba: Any = import_module("numba")
    codegen = import_module("numba.core.registry").cpu_target.target_context.codegen()
    linked = import_module("robandit.kernel.linking").VERSION if _pipelines()[0] else 0
    llvmlite = import_module("llvmlite").__version__
    versions = [platform.python_version(), numba.__version__, np.__version__, llvmlite]
    # magic_tuple has the processor's features, since a virtual machine may hide some. BOUNDSCHECK overrules the option.
    settings = [codegen.magic_tuple(), numba.config.BOUNDSCHECK, sorted(_options().items()), linked]
    return "|".join(map(str, versions + settings))


def run_text(text: str, module: ModuleType, *, inner: bool, checked: bool) -> None:
    """Run a kernel's text in a module."""
    vars(module).update(decorators(inner=inner, checked=checked))
    exec(compile(text, str(module.__file__), "exec", dont_inherit=True), vars(module))


def compile_entry(dispatcher: Any, types: Sequence[str]) -> None:
    """Compile an entry for arguments of these types (see `type_name`), and for no others."""
    dispatcher.compile(tuple(_type(name) for name in types))
    dispatcher.disable_compile()  # a call with other types must raise, not compile a second time


def dumped(dispatcher: Any) -> bytes | None:
    """Return the compiled code of an entry, or None if it holds addresses of this process."""
    [result] = dispatcher.overloads.values()
    if result.library.has_dynamic_globals:
        return None
    content: bytes = import_module("numba.core.serialize").dumps(result._reduce())
    return content


def restore(dispatcher: Any, content: bytes) -> None:
    """Give an entry the compiled code that `dumped` returned."""
    dispatcher.targetctx.refresh()
    result = import_module("numba.core.compiler").CompileResult._rebuild(dispatcher.targetctx, *pickle.loads(content))
    dispatcher.add_overload(result)
    dispatcher.disable_compile()


def type_name(argument: Any) -> str:
    """Return the type of an argument as text: ``int``, ``float``, ``<f8`` (a scalar of NumPy) or ``<f8 2 C`` (an array)."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{argument.dtype.str} {argument.ndim} {layout}" + ("" if flags.writeable else " read-only")
    if isinstance(argument, np.generic):
        return argument.dtype.str
    return type(argument).__name__


def _type(name: str) -> Any:
    numba: Any = import_module("numba")
    scalars = {"int": numba.int64, "float": numba.float64, "bool": numba.boolean}
    if name in scalars:
        return scalars[name]
    dtype, *array = name.split()
    scalar = numba.from_dtype(np.dtype(dtype))
    if not array:
        return scalar
    return numba.types.Array(scalar, int(array[0]), array[1], readonly="read-only" in array)
