"""Modules with a user's own policies: import them on request, record their sources, and rebuild them in workers.

A module is imported only if a user names it: with ``--import``, under ``imports`` in a spec, or by an import in Python. Reading a
run folder, a notation or a saved bandit never imports one.
"""

from __future__ import annotations

import ast
import hashlib
import keyword
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import decode_source, spec_from_loader
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


# --- importing -------------------------------------------------------------------------------------------------------


def import_modules(names: Iterable[str], folder: Path | None = None, *, imported: bool = False) -> None:
    """Import modules by name. They are searched first in ``folder`` (by default the current one), then among all packages.

    This runs their code. Modules that they import are searched among all packages, and then in the same folder. ``imported``: a
    module that is imported already is taken, whatever its folder.
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
    places = [folder / top / "__init__.py", folder / f"{top}.py", folder / f"{name.replace('.', '/')}.py"]
    file = next((path for path in places if path.is_file()), None)
    if file is not None:
        # A folder without __init__.py is a package too.
        here = (folder / top if file == places[2] != places[1] else file).resolve()
        loaded = _file(sys.modules[top]) if top in sys.modules else here
        if loaded != here or top in sys.stdlib_module_names:
            other = loaded if loaded not in (here, None) else "a module of Python"
            raise InvalidInput(f"{file} cannot be imported: the name {top} belongs to {other}; rename the file")
        # Only the named module comes before installed packages, which Python imports later than this, too.
        for finder, place in ((_FolderFinder(folder, top), 0), (_FolderFinder(folder), len(sys.meta_path))):
            if finder not in sys.meta_path:
                sys.meta_path.insert(place, finder)
    try:
        import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            missing = f"there is no {name.replace('.', '/')}.py in {folder}, and no installed module of this name"
            hint = "go to the folder of the module"
            raise InvalidInput(f"the module {name} cannot be imported: {missing}; {hint}") from error
        where = [f"{frame.filename}:{frame.lineno}: " for frame in traceback.extract_tb(error.__traceback__)]
        own = [place for place in where if place.startswith(str(folder))][-1:]
        why = f"{''.join(own)}{type(error).__name__}: {error}"
        raise InvalidInput(f"the module {name} cannot be imported: {why}") from error


class _Fresh(SourceFileLoader):
    """Load a module from its source, never from stored byte code, and keep the source that was run."""

    own_source: bytes | None = None

    def path_stats(self, path: Any) -> Any:
        # Byte code is stored under the time in seconds and the size, so that it may be older than the source.
        raise OSError

    def source_to_code(self, data: Any, path: Any, **options: Any) -> Any:  # type: ignore[override]
        self.own_source = bytes(data)
        return super().source_to_code(data, path, **options)


class _FolderFinder(MetaPathFinder):
    """Find one module in a folder, or any if no name is given. The latter finder must be the last, to replace no package."""

    def __init__(self, folder: Path, top: str | None = None) -> None:
        self.key = folder, top
        self._finder = FileFinder(str(folder), (_Fresh, [".py"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FolderFinder) and other.key == self.key

    __hash__ = None  # type: ignore[assignment]

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        # Other systems have modules of Python that this one does not have, such as winreg.
        if path is not None or self.key[1] not in (None, name) or name in sys.stdlib_module_names:
            return None
        self._finder.invalidate_caches()
        found = self._finder.find_spec(name)
        # Any folder would do as a package without a file, so only one that was asked for is taken.
        return found if found is not None and (found.loader is not None or self.key[1] is not None) else None


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


# --- recording -------------------------------------------------------------------------------------------------------


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
        top = name.partition(".")[0]
        if name in found or name not in sys.modules or top in sys.stdlib_module_names or top == "robandit":
            continue
        module = sys.modules[name]
        source = _source(module)
        if source is None:
            continue
        if _edited(module, since):
            hint = "restart Python, or reload it and make its policies again"
            raise InvalidInput(f"the module {name} was imported before {_file(module)} was changed: {hint}")
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
    loader = getattr(module.__spec__, "loader", None)
    if isinstance(loader, _Fresh) and loader.own_source is not None:
        return decode_source(loader.own_source)
    if hasattr(module, "__path__") and getattr(module, "__file__", None) is None and not isinstance(loader, _Sent):
        return ""
    try:
        return loader.get_source(module.__name__) if isinstance(loader, InspectLoader) else None
    except (ImportError, OSError):
        return None


def _edited(module: ModuleType, since: float | None) -> bool:
    """Return whether the file of a module is newer than the import, which was before the time ``since``.

    A file whose time is in the future has it from another clock, and says nothing.
    """
    file = getattr(module, "__file__", None)
    if since is None or file is None or isinstance(_loader(module.__name__), _Fresh):
        return False
    try:
        return since < os.stat(file).st_mtime <= time.time()
    except OSError:
        return False


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
    top, other_top = name.partition(".")[0], other.partition(".")[0]
    if top == other_top:
        return True
    folder = _folder(other_top)
    return folder is not None and folder.name not in ("site-packages", "dist-packages") and _folder(top) == folder


def _folder(top: str) -> Path | None:
    """Return the folder that holds an imported module or package."""
    module = sys.modules.get(top)
    paths = [str(path) for path in getattr(module, "__path__", ())] or [str(getattr(module, "__file__", None) or "")]
    return Path(paths[0]).resolve().parent if paths[0] else None


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return Path(file).resolve() if file else None


# --- in workers ------------------------------------------------------------------------------------------------------


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


class _Sent(InspectLoader, MetaPathFinder):
    """Find and load modules from the sources that a run sent."""

    def __init__(self, modules: Iterable[OwnModule]) -> None:
        self._modules = {module.name: module for module in modules}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._modules:
            return None
        # A name of no file: the kernel then asks this loader for the source.
        own = self._modules[name]
        origin = f"robandit-{own.sha256[:12]}/{name.replace('.', '/')}.py"
        spec = spec_from_loader(name, self, origin=origin, is_package=own.package)
        assert spec is not None
        spec.has_location = True
        return spec

    def get_source(self, name: str) -> str:
        return self._modules[name].source

    def is_package(self, name: str) -> bool:
        return self._modules[name].package

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        exec(compile(self.get_source(spec.name), spec.origin, "exec", dont_inherit=True), vars(module))


def _rebuild(modules: Sequence[OwnModule]) -> None:
    """Make these modules those of this process. Modules of an earlier run with other sources are replaced."""
    for own in modules:
        if OwnModule.of(own.name, own.source) != OwnModule(own.name, own.source, own.sha256):
            raise CorruptFile(f"the source of {own.name} was damaged on its way to this worker")
    here = {own.name: sys.modules[own.name] for own in modules if own.name in sys.modules}
    other = [
        own.name
        for own in modules
        if own.name in here and (_source(here[own.name]) != own.source or _edited(here[own.name], defined_at(own.name)))
    ]
    for name in other:
        if not isinstance(_loader(name), _Sent):
            file = getattr(sys.modules[name], "__file__", None)
            hint = "restart this worker without it, or give it the same file"
            raise VersionSkew(f"a worker has imported another module {name} than the run, from {file}: {hint}")
    if other:  # the modules of one run may import each other
        for own in modules:
            if isinstance(_loader(own.name), _Sent):
                del sys.modules[own.name]
    finder = _Sent(modules)
    sys.meta_path.insert(0, finder)
    try:
        for own in modules:
            import_module(own.name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        hint = "install the same packages on all workers"
        raise VersionSkew(f"the module {own.name} cannot be imported on a worker ({why}): {hint}") from error
    finally:
        sys.meta_path.remove(finder)


def _loader(name: str) -> Loader | None:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)
