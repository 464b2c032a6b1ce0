"""Compiles entries. An entry is a plain function of arrays, numbers and records; functions may be bound to its first parameters.

A record is a NamedTuple of arrays or of numbers, such as a policy's state or parameters. Passing one to compiled code is slow and
ties the cache to its class. So the entry takes the fields one by one (numbers packed into one array) and rebuilds the record.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from robandit.errors import KernelError
from robandit.kernel import cache, native
from robandit.kernel.function_source import identity, unwrapped
from robandit.kernel.generate import Writer
from robandit.kernel.literals import fingerprint
from robandit.kernel.types import Floats
from robandit.kernel.uninterrupted import uninterrupted

Entry = Callable[..., Any]
Function = TypeVar("Function", bound=Callable[..., Any])
# Numba's messages when a function without reference counting (see `native._options`) allocates.
_ALLOCATION = ("NRT required but not enabled", "Only accept returning of array passed into the function")
_RECORD = re.compile(r"^(\w+) = namedtuple\(.*", re.MULTILINE)
_written: dict[Any, tuple[cache.Kernel, list[tuple[Callable[[], Any], Any]], Any]] = {}


def bounds_checked(function: Function) -> Function:
    """Mark an entry whose compiled form raises IndexError for an index out of range, instead of using other memory.

    Live bandits use such entries: their state may come from any file, and their hooks from any user. The simulation loop is not
    marked: it runs states that `init` made, and its speed matters most.
    """
    function.__bounds_checked__ = True  # type: ignore[attr-defined]
    return function


def numbers(record: tuple[float, ...]) -> Floats:
    """Return the numbers of a record as the array that an entry takes instead of the record."""
    for value in record:
        if isinstance(value, (int, np.integer)) and abs(int(value)) > 2**53:
            raise KernelError(f"{value} in {record!r} is too large an integer: records hold integers up to 2**53")
    return np.array(record, dtype=np.float64)


def _holds_arrays(record: tuple[Any, ...]) -> bool:
    return all(isinstance(field, np.ndarray) for field in record)


def flat(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of the compiled function: those of the entry, with each record replaced by its fields."""
    out: list[Any] = []
    for a in args:
        out += [a] if not isinstance(a, tuple) else a if _holds_arrays(a) else [numbers(a)]
    return tuple(out)


def compiled(entry: Entry | partial[Any], *, label: str, args: tuple[Any, ...]) -> Entry:
    """Compile an entry for arguments like ``args``, and print the label. The result takes its arguments as `flat` returns them.

    If the handler of a signal raises an exception meanwhile, the compilation goes on, and the next call waits for it.
    """
    ready = at_hand(entry, args)
    return ready if ready is not None else uninterrupted(partial(_compiled, entry, label, args))


def _compiled(entry: Entry | partial[Any], label: str, args: tuple[Any, ...]) -> Entry:
    with cache.lock:
        kernel = kernel_of(entry, args)
        try:
            return cache.ready(kernel, label)  # type: ignore[no-any-return]
        except KernelError:
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "numba":
                raise
            raise explained(label, str(error)) from error


def at_hand(entry: Entry | partial[Any], args: tuple[Any, ...]) -> Entry | None:
    """Return what `compiled` returns if this process has compiled or loaded it before, else None. It never waits."""
    kernel = _known(_key(entry, args))
    return None if kernel is None else cache.at_hand(kernel)


def unchecked(entry: Entry) -> Entry:
    """Return a compiled entry without Numba's check of the argument types, which takes longer than a short entry.

    Arguments of other types than the entry was compiled for would read wrong memory: compare `shape_of` of all arrays first.
    """
    overloads = getattr(entry, "overloads", None)  # a plain function if compilation is disabled
    return next(iter(overloads.values())).entry_point if overloads else entry


def explained(label: str, message: str) -> KernelError:
    """Return the error to raise for an error of Numba."""
    return KernelError(f"{label} cannot be compiled: {_reason(message)}")


def _reason(message: str) -> str:
    """Return the reason and the remedy for an error of Numba, with the line that caused it."""
    lines = message.splitlines()
    carets = [j for j, each in enumerate(lines) if each.strip() == "^"]
    line = f" (at: {lines[carets[0] - 1].strip()})" if carets and carets[0] > 0 else ""
    if any(phrase in message for phrase in _ALLOCATION):
        return f"a hook allocates memory (an array, a list, np.median, ...) while it runs{line}; allocate in init() and reuse it"
    unknown = re.search(r"Unknown attribute '(\w+)' of type Record_(\w+)", message)
    if unknown:
        name, record = unknown.groups()
        field = "declare it as an annotated field of the policy, name: float = ..."
        return f"{record} has no {name}{line}; {field if record == 'p' else 'add it to the state'}"
    reasons = [each for each in lines if each.strip() and not each.startswith("Failed in nopython")]
    return f"{reasons[0] if reasons else message}{line}. Numba says:\n{message}"


def kernel_of(entry: Entry | partial[Any], args: tuple[Any, ...]) -> cache.Kernel:
    """Return the kernel of an entry for arguments like ``args``. Nothing is compiled."""
    key = _key(entry, args)
    with cache.lock:  # reading sources (linecache) and importing Numba are not thread-safe
        known = _known(key)
        if known is not None:
            return known
        writer = Writer()
        text, name, parts = _entry_text(writer, entry, args)
        # The name does not contain the label, so that policies with the same hooks share one kernel.
        function = unwrapped(entry.func if isinstance(entry, partial) else entry)
        checked = getattr(function, "__bounds_checked__", False)
        kernel = cache.kernel(text, name, [native.type_name(a) for a in flat(args)], parts, checked=checked)
        _written[key] = (kernel, writer.reads, entry)  # the entry is kept alive: its id is the key
        return kernel


def _key(entry: Entry | partial[Any], args: tuple[Any, ...]) -> Any:
    return identity(entry), tuple(shape_of(a) for a in args)


def _known(key: Any) -> cache.Kernel | None:
    """Return the kernel written before, unless a constant or helper was redefined since, as in a notebook."""
    kernel, reads, _ = _written.get(key, (None, (), None))
    return kernel if all(fingerprint(get()) == value for get, value in reads) else None


def shape_of(argument: Any) -> Any:
    """Return the type of an argument; for a record, its fields and their types. The text depends on nothing else of it."""
    if isinstance(argument, tuple):
        fields = getattr(argument, "_fields", range(len(argument)))
        return tuple((name, shape_of(value)) for name, value in zip(fields, argument, strict=True))
    return native.type_name(argument)


def _entry_text(writer: Writer, entry: Entry | partial[Any], args: tuple[Any, ...]) -> tuple[str, str, dict[str, str]]:
    inner = writer.function(entry)
    records: dict[str, str] = {}
    parameters: list[str] = []
    passed: list[str] = []
    names = list(inspect.signature(entry).parameters)
    if len(names) != len(args):
        raise KernelError(f"{inner} takes {len(names)} arguments ({', '.join(names)}), but {len(args)} are passed")
    for name, value in zip(names, args, strict=True):
        if not isinstance(value, tuple):
            # The name must be fresh, since the text may have a function with the parameter's name.
            parameters.append(writer.fresh(name))
            passed.append(parameters[-1])
            continue
        fields = getattr(value, "_fields", ())
        if not fields:
            raise KernelError(f"the {name} of {inner} is {value!r}: it must be a NamedTuple with at least one field")
        record = writer.fresh(f"Record_{name}")
        records[record] = f"{record} = namedtuple({record!r}, {list(fields)!r})"
        if _holds_arrays(value):
            flat_names = [writer.fresh(f"{name}_{field}") for field in fields]
            parameters.extend(flat_names)
        elif all(isinstance(field, (bool, int, float, np.number)) for field in value):
            pack = writer.fresh(name)
            parameters.append(pack)
            kinds = ["float" if isinstance(field, (float, np.floating)) else "int" for field in value]
            flat_names = [f"{kind}({pack}[{j}])" for j, kind in enumerate(kinds)]
        else:
            raise KernelError(f"the record {value!r} of {inner} mixes kinds: pass all arrays, or all numbers")
        passed.append(f"{record}({', '.join(flat_names)})")
    outer = writer.fresh(f"{inner}_entry")
    # Types are part of the text because a kernel is compiled for one signature.
    types = ", ".join(f"{n}: {shape_of(a)}" for n, a in zip(names, args, strict=True))
    body = f"def {outer}({', '.join(parameters)}):\n    return {inner}({', '.join(passed)})\n"
    head = ["from collections import namedtuple", f"# {types}", *records.values()]
    text = "\n".join([*head, writer.text(), "@_entry", body])
    return text, outer, writer.parts() | {match[1]: match[0] for match in _RECORD.finditer(text)}
