"""Modules with a user's own policies: import them on request, record their sources, and rebuild them in workers.

A module is imported only if a user names it: with ``--import``, under ``imports`` in a spec, or by an import in Python. Reading a
run folder, a notation or a saved bandit never imports one.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import importlib
import keyword
import pickle
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

from robandit.errors import CorruptFile, InvalidInput, VersionSkew
from robandit.policies.base import Policy, defined_at, is_template
from robandit.validation import invalid

_named: dict[str, None] = {}  # the modules that a user named, in order
_lock = threading.RLock()


@dataclass(frozen=True)
class OwnModule:
    """A module of a user, as it was imported."""

    name: str
    source: str
    sha256: str
    package: bool = False

    @classmethod
    def of(cls, name: str, source: str, *, package: bool = False) -> OwnModule:
        """Return the module with the hash of its source."""
        return cls(name, source, hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest(), package)


def import_modules(names: Iterable[str], folder: Path | None = None, *, imported: bool = False) -> None:
    """Import modules by name. They are searched first in ``folder`` (by default the current one), then among all packages.

    This runs their code. ``imported``: a module that is imported already is taken, whatever its folder.
    """
    for name in names:
        parts = name.split(".") if isinstance(name, str) else ()
        words = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
        if not parts or not words or parts[-1] == "py":
            hint = (
                f"write {name[:-3]!r}, without .py" if str(name).endswith(".py") else "for example 'mine' for mine.py"
            )
            raise invalid("import", name, "the name of a module", hint=hint)
        if not (imported and name in sys.modules):
            _import(name, (folder or Path()).resolve())
        _named.setdefault(name)


def _import(name: str, folder: Path) -> None:
    top = name.partition(".")[0]
    places = (folder / top / "__init__.py", folder / f"{top}.py", folder / top)
    here = next((place.resolve() for place in places if place.exists()), None)
    loaded = _file(sys.modules[top]) if top in sys.modules else here
    if here is not None and (loaded != here or top in sys.stdlib_module_names):
        other = loaded if loaded not in (here, None) else "a module of Python"
        raise InvalidInput(f"{here} cannot be imported: the name {top} belongs to {other}; rename the file")
    try:
        with _first_on_path(folder):
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            missing = f"there is no {name.replace('.', '/')}.py in {folder}, and no installed module of this name"
            hint = "go to the folder of the module"
            raise InvalidInput(f"the module {name} cannot be imported: {missing}; {hint}") from error
        frames = traceback.extract_tb(error.__traceback__)
        own = [f"{each.filename}:{each.lineno}: " for each in frames if each.filename.startswith(str(folder))][-1:]
        why = f"{''.join(own)}{type(error).__name__}: {error}"
        raise InvalidInput(f"the module {name} cannot be imported: {why}") from error


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Search modules first in a folder, and afterwards in it last, so that it replaces no installed package."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def named_policies() -> dict[str, list[type[Policy]]]:
    """Return the policies of all modules that a user named, by the name of their class."""
    found: dict[str, list[type[Policy]]] = {}
    for module in _named:
        for cls in policies_of(module):
            if cls not in found.setdefault(cls.__name__, []):
                found[cls.__name__].append(cls)
    return found


def policies_of(module: str) -> list[type[Policy]]:
    """Return the policies in an imported module, without those of Robandit."""
    values = list(vars(sys.modules[module]).values()) if module in sys.modules else []
    classes = [value for value in values if isinstance(value, type) and issubclass(value, Policy)]
    return [cls for cls in classes if not cls.__module__.startswith("robandit.") and not is_template(cls)]


def own_modules(policies: Iterable[Policy]) -> tuple[OwnModule, ...]:
    """Return the modules of a user that define these policies, and the modules next to them that they import, by name.

    A policy of a script or a notebook is in no module, and so is not among them. A file that changed after its import is refused:
    its code did not run.
    """
    found: dict[str, OwnModule] = {}
    names = sorted({cls.__module__ for policy in policies for cls in _classes(policy)} - {"__main__"})
    waiting = [(name, defined_at(name)) for name in names]
    while waiting:
        name, since = waiting.pop()
        module = sys.modules.get(name)
        source = None if module is None else _source(module)
        if source is None or name in found or name.partition(".")[0] in (*sys.stdlib_module_names, "robandit"):
            continue
        assert module is not None
        file = module.__file__
        if since is not None and file is not None and since < Path(file).stat().st_mtime <= time.time():
            hint = "restart Python, or reload it and make its policies again"
            raise InvalidInput(f"the module {name} was imported before {file} was changed: {hint}")
        found[name] = OwnModule.of(name, source, package=hasattr(module, "__path__"))
        parents = [name.rpartition(".")[0]] if "." in name else []
        beside = [other for other in _imports(module, source) if _beside(other, name)]
        waiting += [(other, defined_at(other) or since) for other in parents + beside]
    return tuple(found[name] for name in sorted(found))


def _classes(policy: Policy) -> Iterator[type]:
    yield from type(policy).__mro__
    for field in fields(policy):
        if isinstance(inner := getattr(policy, field.name), Policy):
            yield from _classes(inner)


def _source(module: ModuleType) -> str | None:
    """Return the source of a module, "" for a folder without a file of its own; None if it has no source."""
    file = getattr(module, "__file__", None)
    if file is None:
        return "" if hasattr(module, "__path__") else None
    try:
        return decode_source(Path(file).read_bytes()) if file.endswith(".py") else None
    except (OSError, SyntaxError, UnicodeError):
        return None


def _imports(module: ModuleType, source: str) -> Iterator[str]:
    """Yield the names of modules that a source may import."""
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _beside(name: str, other: str) -> bool:
    """Return whether a module is in the same package as another, or in the same folder, unless packages are installed there."""
    tops = [name.partition(".")[0] for name in (name, other)]
    if tops[0] == tops[1]:
        return True
    files = [_file(sys.modules[top]) if top in sys.modules else None for top in tops]
    folders = [None if file is None else (file.parent if file.name == "__init__.py" else file).parent for file in files]
    return (
        folders[0] is not None
        and folders[0] == folders[1]
        and folders[0].name not in ("site-packages", "dist-packages")
    )


def _file(module: ModuleType) -> Path | None:
    """Return the file of a module, or the folder of a package without one."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return Path(file).resolve() if file else None


@dataclass(frozen=True)
class Packed:
    """An object with policies of users' modules, and the sources of these modules, for a worker that may not have them."""

    modules: tuple[OwnModule, ...]
    content: bytes

    @classmethod
    def of(
        cls, value: object, modules: tuple[OwnModule, ...], dumps: Callable[[object], bytes] = pickle.dumps
    ) -> Packed:
        """Pack an object."""
        return cls(modules, dumps(value))

    def opened(self) -> Any:
        """Return the object, made from exactly these sources."""
        with _lock:
            return _opened(self)


@lru_cache(maxsize=2)  # a worker gets the same plan for each unit
def _opened(packed: Packed) -> Any:
    _rebuild(packed.modules)
    return pickle.loads(packed.content)


@cache
def _rebuild(modules: tuple[OwnModule, ...]) -> None:
    """Import these modules from files with exactly these sources, unless the same code is imported already."""
    folder = Path(tempfile.mkdtemp(prefix="robandit-modules-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for own in modules:
        if OwnModule.of(own.name, own.source).sha256 != own.sha256:
            raise CorruptFile(f"the source of {own.name} was damaged on its way to this worker")
        if own.name in sys.modules and _source(sys.modules[own.name]) != own.source:
            place = f"another module {own.name} than the run, from {sys.modules[own.name].__file__}"
            raise VersionSkew(f"a worker has imported {place}: restart the workers")
        path = folder / own.name.replace(".", "/")
        file = path / "__init__.py" if own.package else path.with_name(f"{path.name}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(own.source, encoding="utf-8", errors="surrogatepass")
    try:
        with _first_on_path(folder):
            for own in modules:
                importlib.import_module(own.name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        hint = "install the same packages on all workers"
        raise VersionSkew(f"the module {own.name} cannot be imported on a worker ({why}): {hint}") from error
