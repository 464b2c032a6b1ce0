"""Modules with a user's own policies: import them on request, record their sources, and refuse other code.

A module is imported only if a user names it: with ``--import``, under ``imports`` in a spec, or by an import in Python. Reading a
run folder, a notation or a saved bandit never imports one.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import keyword
import os
import pickle
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from robandit.errors import InvalidInput, VersionSkew
from robandit.policies.base import Policy, defined_at, is_template
from robandit.validation import invalid

_named: dict[str, None] = {}  # the modules that a user named, in order


@dataclass(frozen=True)
class OwnModule:
    """A module of a user, as it was imported."""

    name: str
    source: str
    sha256: str

    @classmethod
    def of(cls, name: str, source: str) -> OwnModule:
        """Return the module with the hash of its source."""
        return cls(name, source, hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest())


def import_modules(names: Iterable[str], folder: Path | None = None, *, imported: bool = False) -> None:
    """Import modules by name. They are searched among all packages and in ``folder`` (by default the current one).

    This runs their code. ``imported``: a module that is imported already is taken, whatever its folder.
    """
    for name in names:
        parts = name.split(".") if isinstance(name, str) else [""]
        if parts[-1] == "py" or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
            raise invalid("import", name, "the name of a module", hint="for example 'mine' for mine.py")
        if not (imported and name in sys.modules):
            _import(name, (folder or Path()).resolve())
        _named.setdefault(name)


def _import(name: str, folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that it replaces no installed package
    importlib.invalidate_caches()
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(str(folder))]
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else f"searched in all packages and {folder}"
        raise InvalidInput(
            f"the module {name} cannot be imported: {type(error).__name__}: {error} ({place})"
        ) from error
    top = name.partition(".")[0]
    places = (folder / top / "__init__.py", folder / f"{top}.py", folder / top)
    here = next((place.resolve() for place in places if place.exists()), None)
    if here is not None and (loaded := _file(sys.modules[top])) != here:
        raise InvalidInput(
            f"{here} cannot be imported: the name {top} belongs to {loaded or 'Python'}; rename the file"
        )


def named_policies() -> dict[str, list[type[Policy]]]:
    """Return the policies of all modules that a user named, by the name of their class."""
    found: dict[str, list[type[Policy]]] = {}
    for cls in dict.fromkeys(cls for module in _named for cls in policies_of(module)):
        found.setdefault(cls.__name__, []).append(cls)
    return found


def policies_of(module: str) -> list[type[Policy]]:
    """Return the policies in an imported module, without those of Robandit."""
    values = list(vars(sys.modules[module]).values()) if module in sys.modules else []
    classes = [value for value in values if isinstance(value, type) and issubclass(value, Policy)]
    return [cls for cls in classes if not cls.__module__.startswith("robandit.") and not is_template(cls)]


def own_modules(policies: Iterable[Policy]) -> tuple[OwnModule, ...]:
    """Return the modules of a user that define these policies, and the modules next to them that they import, by name.

    A policy of a script or a notebook is in no module. A file that changed after its import is refused: its code did not run.
    """
    found: dict[str, OwnModule] = {}
    names = {cls.__module__ for policy in policies for cls in _classes(policy)} - {"__main__"}
    waiting = [(name, defined_at(name)) for name in sorted(names)]
    while waiting:
        name, since = waiting.pop()
        source = _source(name)
        if source is None or name in found or name.partition(".")[0] in (*sys.stdlib_module_names, "robandit"):
            continue
        module = sys.modules[name]
        file = module.__file__
        if since is not None and file is not None and since < os.path.getmtime(file) <= time.time():
            hint = "restart Python, or reload it and make its policies again"
            raise InvalidInput(f"the module {name} was imported before {file} was changed: {hint}")
        found[name] = OwnModule.of(name, source)
        beside = [other for other in _imports(module, source) if _home(other) == _home(name)]
        waiting += [(other, defined_at(other) or since) for other in (name.rpartition(".")[0], *beside)]
    return tuple(found[name] for name in sorted(found))


def _classes(policy: Policy) -> Iterator[type]:
    yield from type(policy).__mro__
    for field in fields(policy):
        if isinstance(inner := getattr(policy, field.name), Policy):
            yield from _classes(inner)


def _source(name: str) -> str | None:
    """Return the source of an imported module, "" for a folder without a file of its own; None if it has no source."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    try:
        source: str | None = spec.loader.get_source(name)  # type: ignore[union-attr]
    except (AttributeError, ImportError):
        return None
    return source


def _imports(module: ModuleType, source: str) -> Iterator[str]:
    """Yield the names of modules that a source may import."""
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _home(name: str) -> Path | str:
    """Return the folder with a module or its package, or the name of the package if it is an installed one."""
    top = name.partition(".")[0]
    file = _file(sys.modules[top]) if top in sys.modules else None
    folder = None if file is None else file.parents[file.name == "__init__.py"]
    return top if folder is None or folder.name in ("site-packages", "dist-packages") else folder


def _file(module: ModuleType) -> Path | None:
    """Return the file of a module, or the folder of a package without one."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return Path(file).resolve() if file else None


@dataclass(frozen=True)
class Packed:
    """A pickled object with policies of users' modules, for a worker, which must have the same modules."""

    modules: tuple[OwnModule, ...]
    content: bytes

    def opened(self) -> Any:
        """Return the object. Raise `VersionSkew` if a module is missing here or has other code."""
        return _opened(self)


@lru_cache(maxsize=2)  # a worker gets the same plan for each unit
def _opened(packed: Packed) -> Any:
    for own in packed.modules:
        try:
            importlib.import_module(own.name)
        except Exception as error:
            why, hint = f"{type(error).__name__}: {error}", "put it, and what it imports, on the path of all workers"
            raise VersionSkew(f"the module {own.name} cannot be imported on a worker ({why}): {hint}") from error
        if _source(own.name) != own.source:
            place = f"another module {own.name} than the run, from {sys.modules[own.name].__file__}"
            raise VersionSkew(f"a worker has imported {place}: copy it to all workers, and restart them")
    return pickle.loads(packed.content)
