"""Compiled code is kept between processes, and is never that of an older text."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from helpers.amount import amount
from helpers.running import finish, imported, plain, run, start
from robandit.errors import KernelError
from robandit.kernel import build, cache, cache_directory, compiled, folder, native
from robandit.kernel.messages import say, say_compiling

MAIN = """
import numpy as np
import hooks
from robandit.kernel import compiled

kernel = compiled(hooks.hook, label="a hook", args=(1.0,))
print(kernel(10.0))
"""

EACH = """
import importlib, os, sys
from robandit.kernel import compiled

for folder in sys.argv[1:]:
    sys.path[0] = folder
    for name in ("hooks", "far"):
        sys.modules.pop(name, None)
    hooks = importlib.import_module("hooks")
    print(compiled(hooks.hook, label=os.path.basename(folder), args=(1.0,))(10.0))
"""

HOOKS = """
import far
import numpy as np
from far import helper

OWN = 1.0
TABLE = np.array([1.0, 2.0])

class Setting:
    RATE = 1.0

def hook(x):
    return x + OWN + helper(x) + far.LEVEL + far.Inner.DEPTH + Setting.RATE + TABLE[1]
"""

FAR = """
REMOTE = 1.0
LEVEL = 1.0

class Inner:
    DEPTH = 1.0

def helper(x):
    return REMOTE * x
"""

EDITS = {  # what is edited: the file, the old text, the new one, the new result
    "a hook": ("hooks.py", "return x + OWN", "return x - OWN", 24.0),
    "a helper in another module": ("far.py", "REMOTE * x", "REMOTE * x * 3.0", 46.0),
    "a constant": ("hooks.py", "OWN = 1.0", "OWN = 5.0", 30.0),
    "a constant of a helper in another module": ("far.py", "REMOTE = 1.0", "REMOTE = 2.0", 36.0),
    "a constant of a module, by attribute": ("far.py", "LEVEL = 1.0", "LEVEL = 9.0", 34.0),
    "a constant of a class, by attribute": ("hooks.py", "RATE = 1.0", "RATE = 8.0", 33.0),
    "a constant of a class of a module": ("far.py", "DEPTH = 1.0", "DEPTH = 7.0", 32.0),
    "an entry of an array constant": ("hooks.py", "1.0, 2.0", "1.0, 3.0", 27.0),
}


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_new_process_takes_what_an_older_one_compiled_and_never_what_was_edited_since(tmp_path):
    folder, store = tmp_path / "project", tmp_path / "cache"
    folder.mkdir()
    each = tmp_path / "each.py"
    each.write_text(EACH)
    texts = {"main.py": MAIN, "hooks.py": HOOKS, "far.py": FAR}
    for name, text in texts.items():
        (folder / name).write_text(text)

    assert run(folder / "main.py", cache=store) == ("26.0", "robandit: compiling a hook, first run only")
    original = listing(store)
    assert run(folder / "main.py", cache=store) == ("26.0", "")
    assert listing(store) == original

    def copy_of(what: str) -> Path:
        return tmp_path / hashlib.sha256(what.encode()).hexdigest()[:8]

    def edited(what: str) -> Path:
        """The project with one edit, in a folder of its own."""
        name, old, new, _ = EDITS[what]
        shutil.copytree(folder, copy_of(what))
        assert texts[name].count(old) == 1
        (copy_of(what) / name).write_text(texts[name].replace(old, new))
        return copy_of(what)

    out, err = run(each, *map(edited, EDITS), cache=store)
    assert dict(zip(EDITS, map(float, out.split()), strict=True)) == {what: EDITS[what][3] for what in EDITS}
    assert err.splitlines() == [f"robandit: compiling {copy.name}, first run only" for copy in map(copy_of, EDITS)]

    assert original <= listing(store)
    assert len([name for name in listing(store) if name.endswith(".kernel")]) == 1 + len(EDITS)
    assert run(folder / "main.py", cache=store) == ("26.0", "")  # going back finds the old file


def test_an_edit_after_import_is_rejected(tmp_path):
    text = "K = 1.0\n\ndef hook(x):\n    return K * x\n"
    for edit in ("K * x + 1.0", "x * K", "syntax error("):
        module = imported(tmp_path, text)
        Path(module.__file__).write_text(text.replace("K * x", edit))
        with pytest.raises(KernelError, match="differs from the imported function: the file was edited since"):
            compiled(module.hook, label="edited", args=(1.0,))
    module = imported(tmp_path, text)
    Path(module.__file__).write_text("\n" + text)  # the line numbers moved
    with pytest.raises(KernelError, match="differs from the imported function"):
        compiled(module.hook, label="edited", args=(1.0,))


def test_an_edit_of_a_helper_after_import_is_rejected(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    far = imported(tmp_path, "def helper(x):\n    return x\n", "edited_far")
    monkeypatch.setitem(sys.modules, "edited_far", far)
    near = imported(tmp_path, "from edited_far import helper\ndef hook(x):\n    return helper(x)\n")
    Path(far.__file__).write_text("def helper(x):\n    return 2 * x\n")
    with pytest.raises(KernelError, match=r"helper in .*edited_far\.py differs from the imported"):
        compiled(near.hook, label="edited", args=(1.0,))


def test_swapped_closure_variables_count_as_an_edit(tmp_path):
    text = "def make(a, b):\n    def hook(x):\n        return x + a * 1.0 - b\n    return hook\n"
    module = imported(tmp_path, text)
    hook = module.make(1.0, 2.0)
    Path(module.__file__).write_text(text.replace("a * 1.0 - b", "b * 1.0 - a"))
    with pytest.raises(KernelError, match="differs from the imported function"):
        plain(hook)


# -- within one process, as in a notebook ------------------------------------------------------------------------------


def test_rebinding_and_changing_what_a_function_reads(tmp_path):
    module = imported(
        tmp_path,
        "import numpy as np\nK = 2.0\nTABLE = np.array([1.0, 2.0])\nclass Setting:\n    RATE = 1.0\n"
        "def helper(x):\n    return K * x\n"
        "def hook(x):\n    return helper(x) + TABLE[0] + Setting.RATE + abs(x)\n",
    )

    def result() -> float:
        return compiled(module.hook, label="rebound", args=(1.0,))(-1.0)

    assert result() == 1.0
    module.K = 3.0
    assert result() == 0.0
    module.TABLE[0] = 11.0  # in place
    assert result() == 10.0
    module.Setting.RATE = 2.0
    assert result() == 11.0
    module.helper = imported(tmp_path, "def helper(x):\n    return 100.0\n").helper
    assert result() == 114.0
    module.abs = imported(tmp_path, "def negative(x):\n    return x\n").negative  # a global that hides a builtin
    assert result() == 112.0
    del module.helper
    with pytest.raises(KernelError, match="reads helper, which is not defined"):
        result()


def test_code_that_is_replaced_inside_a_function(tmp_path):
    """IPython's autoreload does this: the object stays, its code is another."""
    module = imported(tmp_path, "def helper(x, k=1.0):\n    return x + k\ndef hook(x):\n    return helper(x)\n")
    assert compiled(module.hook, label="reloaded", args=(1.0,))(1.0) == 2.0
    module.helper.__defaults__ = (5.0,)
    assert compiled(module.hook, label="reloaded", args=(1.0,))(1.0) == 6.0
    module.helper.__code__ = imported(tmp_path, "def helper(x, k):\n    return x - k\n").helper.__code__
    assert compiled(module.hook, label="reloaded", args=(1.0,))(1.0) == -4.0


def test_a_closure_cell_that_changes():
    k = 2.0

    def hook(x):
        return k * x

    assert compiled(hook, label="cell", args=(1.0,))(1.0) == 2.0
    k = 3.0
    assert compiled(hook, label="cell", args=(1.0,))(1.0) == 3.0


def test_closures_that_come_and_go_are_not_confused():
    """A collected function's id is soon another function's."""

    def make(k):
        def hook(x):
            return k * x

        return hook

    for k in range(50):
        assert f"k = {k}\n" in build.kernel_of(make(k), (1.0,)).text
        gc.collect(0)


def test_the_same_again_is_the_same_object():
    def hook(x):
        return x

    assert compiled(hook, label="same", args=(1.0,)) is compiled(hook, label="same", args=(2.0,))


# -- two at once -------------------------------------------------------------------------------------------------------

AT_ONCE = """
import sys, time
from pathlib import Path
import numpy as np
from robandit.kernel import compiled, native

K = 2.0

def hook(x):
    total = 0.0
    for j in range(x.shape[0]):
        total += K * x[j]
    return total

native.platform_key()  # everything slow that comes before
Path(sys.argv[1]).touch()
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
kernel = compiled(hook, label="at once", args=(np.ones(1),))
print(kernel(np.arange(5.0)))
"""


@pytest.mark.parametrize("count", amount([2], [2, 4]))
def test_processes_that_compile_the_same_at_once(tmp_path, count):
    script, store, gate = tmp_path / "script.py", tmp_path / "cache", tmp_path / "gate"
    script.write_text(AT_ONCE)
    marks = [tmp_path / f"ready{k}" for k in range(count)]
    processes = [start(script, mark, gate, cache=store) for mark in marks]
    while not all(mark.exists() for mark in marks):
        assert all(process.poll() is None for process in processes)
        threading.Event().wait(0.01)
    gate.touch()
    assert [finish(process)[0] for process in processes] == ["20.0"] * count
    [name] = listing(store)
    assert name.endswith(".kernel")
    assert run(script, tmp_path / "late", gate, cache=store) == ("20.0", "")


ONCE = """
import sys
from robandit.kernel import compiled, native

def hook(x):
    return x + 70.0

real = native.compile_entry
def counted(*args):
    with open(sys.argv[1], "a") as file:
        file.write("compiled\\n")
    real(*args)

native.compile_entry = counted
print(compiled(hook, label="once", args=(1.0,))(1.0))
"""


def test_processes_that_need_the_same_kernel_compile_it_once(tmp_path):
    script, store, count = tmp_path / "script.py", tmp_path / "cache", tmp_path / "count"
    script.write_text(ONCE)
    processes = [start(script, count, cache=store) for _ in range(3)]
    assert [finish(process)[0] for process in processes] == ["71.0"] * 3
    assert count.read_text().splitlines() == ["compiled"]


def test_threads_that_compile_the_same_at_once():
    def hook(x):
        return x + 1.0

    found = []

    def work() -> None:
        found.append(compiled(hook, label="threads", args=(1.0,)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert found[0](1.0) == 2.0


# -- damage ------------------------------------------------------------------------------------------------------------


def hook_to_damage(x):
    return 3.0 * x + 1.0


def truncated(size: int):
    def damage(path: Path) -> None:
        os.truncate(path, size)

    return damage


def flipped(position: float):
    """One wrong bit: Numba itself would load it, and the process would die or compute nonsense."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[int(position * len(data))] ^= 4
        path.write_bytes(data)

    return damage


def swapped(path: Path) -> None:
    """The checksum of another content."""
    content = path.read_bytes()
    path.write_bytes(content[:-1])


def removed(path: Path) -> None:
    path.unlink()


COMPILING = ["robandit: compiling damage, first run only"]


@pytest.mark.parametrize(
    "damage",
    [truncated(0), truncated(30), truncated(1000), flipped(0.0), flipped(0.005), flipped(0.5), swapped, removed],
)
def test_damaged_files_are_replaced(damage, tmp_path, monkeypatch, capsys, as_new_process):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))

    def result() -> float:
        as_new_process()
        return compiled(hook_to_damage, label="damage", args=(1.0,))(2.0)

    assert result() == 7.0
    assert capsys.readouterr().err.splitlines() == COMPILING
    [path] = (tmp_path / "cache").iterdir()
    damage(path)
    assert result() == 7.0
    damaged = [f"robandit: {path} is damaged: its checksum does not match; compiling it again"]
    assert capsys.readouterr().err.splitlines() == (COMPILING if damage is removed else damaged + COMPILING)
    assert result() == 7.0
    assert capsys.readouterr().err == ""
    assert listing(tmp_path / "cache") == {path.name}


# -- the folder --------------------------------------------------------------------------------------------------------

TWO_KERNELS = """
from robandit.kernel import compiled
from robandit.kernel.folder import store_folder

def one(x):
    return x + 1.0

def two(x):
    return x + 2.0

results = [compiled(f, label=f.__name__, args=(1.0,))(1.0) for f in (one, two)]
print(results, store_folder())
"""


def test_a_folder_that_cannot_be_written(tmp_path):
    script, file = tmp_path / "script.py", tmp_path / "file"
    script.write_text(TWO_KERNELS)
    file.touch()
    for store in (file, file / "below"):
        out, err = run(script, cache=store)
        results, used = out.rsplit(" ", 1)
        assert results == "[2.0, 3.0]"
        assert err.count(f"the cache folder {store} cannot be written (") == 1
        assert err.count("Set ROBANDIT_CACHE_DIR to a folder of your own that you can write.") == 1
        assert len(err.splitlines()) == 3  # and one line for each kernel
        assert not Path(used).exists()  # the temporary folder is gone


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", "relative-cache")
    assert cache_directory() == tmp_path / "relative-cache"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache_directory() == tmp_path / "relative-cache"


def test_a_folder_that_is_emptied_while_the_program_runs(tmp_path, monkeypatch):
    store = tmp_path / "cache"
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(store))

    def one(x):
        return x + 10.0

    def two(x):
        return x + 20.0

    assert compiled(one, label="one", args=(1.0,))(1.0) == 11.0
    shutil.rmtree(store)
    assert compiled(two, label="two", args=(1.0,))(1.0) == 21.0


def test_a_disk_that_is_full_costs_only_the_stored_code(tmp_path, monkeypatch, capsys, as_new_process):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def hook(x):
        return x + 60.0

    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "replace", full)
    assert compiled(hook, label="full", args=(1.0,))(1.0) == 61.0
    assert "compiled code could not be stored, and is compiled again next time" in capsys.readouterr().err
    assert listing(tmp_path / "cache") == set()


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.cache"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg"),
        ("linux", {"XDG_CACHE_HOME": ""}, "home/.cache"),
        ("freebsd14", {}, "home/.cache"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "home/Library/Caches"),
        ("win32", {}, "home/AppData/Local"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
    ],
)
def test_the_users_cache_folder(platform, environment, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert folder._user_cache() == Path(expected)


def test_the_default_folder_is_robandit_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", "")
    monkeypatch.setattr(folder, "_user_cache", lambda: tmp_path)
    folder._checked.cache_clear()
    assert cache_directory() == tmp_path / "robandit"
    folder._checked.cache_clear()


def test_a_user_without_a_home(monkeypatch, capsys):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ROBANDIT_CACHE_DIR")
    monkeypatch.setattr(folder, "_user_cache", nowhere)
    folder._checked.cache_clear()
    assert folder.store_folder().is_dir()
    assert "cannot be written (Could not determine home directory.)" in capsys.readouterr().err
    folder._checked.cache_clear()


def test_the_folder_and_its_files_are_private(tmp_path, monkeypatch, as_new_process):
    def hook(x):
        return x + 80.0

    store = tmp_path / "new" / "cache"
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(store))
    compiled(hook, label="private", args=(1.0,))
    assert store.stat().st_mode & 0o777 == 0o700


def planted(x):
    return x + 90.0


class Attack:
    """A pickle that makes a file when it is loaded."""

    def __reduce__(self):
        return Path.touch, (Attack.proof,)


Attack.proof = Path()


@pytest.fixture
def attacked(tmp_path, monkeypatch, as_new_process):
    """A cache with a kernel that someone has replaced by one that runs code of theirs."""
    folder._temporary.cache_clear()
    store, Attack.proof = tmp_path / "cache", tmp_path / "proof"
    store.mkdir(mode=0o700)
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(store))
    kernel = build.kernel_of(planted, (1.0,))
    code = pickle.dumps(Attack())
    path = store / f"{kernel.name}.kernel"
    path.write_bytes(cache._head(path.stem, code) + code)
    path.chmod(0o600)
    yield store, path
    folder._checked.cache_clear()


def test_a_planted_file_would_be_executed(attacked):
    """The control of the tests below: without them, this is what happens."""
    with pytest.raises(TypeError):
        compiled(planted, label="planted", args=(1.0,))
    assert Attack.proof.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(mode, attacked, capsys):
    store, _ = attacked
    store.chmod(mode)
    for _ in range(2):
        assert compiled(planted, label="planted", args=(1.0,))(1.0) == 91.0
    assert not Attack.proof.exists()
    err = capsys.readouterr().err
    assert err.count(f"the cache folder {store} is not used: other users can write to it (mode {mode:o}") == 1
    assert len(listing(store)) == 1  # nothing is stored in it
    assert "go-w" in err


def test_a_folder_of_another_user_is_not_used(attacked, capsys, monkeypatch):
    store, _ = attacked
    real = os.stat

    def of_another(path, *args, **kwargs):
        facts = real(path, *args, **kwargs)
        return SimpleNamespace(st_uid=4321, st_mode=facts.st_mode) if path == store else facts

    monkeypatch.setattr(folder.os, "stat", of_another)
    assert compiled(planted, label="planted", args=(1.0,))(1.0) == 91.0
    assert not Attack.proof.exists()
    assert f"the cache folder {store} is not used: it belongs to another user (id 4321)" in capsys.readouterr().err


def test_a_file_that_others_can_write_is_not_used(attacked, capsys):
    _, path = attacked
    path.chmod(0o666)
    assert compiled(planted, label="planted", args=(1.0,))(1.0) == 91.0
    assert not Attack.proof.exists()
    assert f"{path} is not used: other users can write to it (mode 666" in capsys.readouterr().err


READ_ONLY = """
from robandit.kernel import compiled

def hook(x):
    return x + 50.0

def other(x):
    return x + 51.0

print(compiled(hook, label="hook", args=(1.0,))(1.0))
"""


def test_a_filled_folder_is_used_read_only(tmp_path):
    script, store = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(READ_ONLY)
    assert run(script, cache=store)[0] == "51.0"
    with unwritable(store):
        assert run(script, cache=store) == ("51.0", "")  # no message: nothing has to be stored
        script.write_text(READ_ONLY.replace("compiled(hook", "compiled(other"))
        out, err = run(script, cache=store)
        assert out == "52.0"
        assert err.count("cannot be written") == 1


@contextmanager
def unwritable(store: Path):
    """A folder that cannot be written. Permissions do not stop root, so it is mounted read-only in that case."""
    if os.getuid() == 0:
        command = ["mount", "--bind", "-o", "ro", str(store), str(store)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("root cannot make a folder read-only here")
        try:
            yield
        finally:
            subprocess.run(["umount", str(store)], check=True)
        return
    store.chmod(0o500)
    try:
        yield
    finally:
        store.chmod(0o700)


# -- Numba's own switches ----------------------------------------------------------------------------------------------


def test_a_numba_that_does_not_take_the_private_option(monkeypatch, capsys, as_new_process):
    def hook(x):
        return x + 30.0

    class WithoutIt:
        pass

    monkeypatch.setattr("numba.core.cpu.CPUTargetOptions", WithoutIt)
    native._options.cache_clear()
    try:
        assert compiled(hook, label="fallback", args=(1.0,))(1.0) == 31.0
        assert "_nrt" not in native._options()
        native._options.cache_clear()
        native._options()
        assert capsys.readouterr().err.count("this Numba does not accept _nrt=False") == 1
    finally:
        native._options.cache_clear()


def test_without_jit_the_entry_is_plain_python(monkeypatch, capsys, as_new_process):
    def hook(x):
        return x + 40.0

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    native._options.cache_clear()
    try:
        assert compiled(hook, label="plain", args=(1.0,))(1.0) == 41.0
        assert capsys.readouterr().err == ""
    finally:
        native._options.cache_clear()


def test_messages_are_printed_once_or_always(capsys, as_new_process):
    for _ in range(2):
        say("one", once=True)
        say("two")
    say_compiling("three")
    said = ["one", "two", "two", "compiling three, first run only"]
    assert capsys.readouterr().err.splitlines() == [f"robandit: {each}" for each in said]


def test_the_processor_and_versions_are_part_of_the_key():
    key = native.platform_key()
    assert numba.__version__ in key
    assert np.__version__ in key


def test_code_of_another_kernel_is_not_used(attacked, capsys):
    _, path = attacked
    code = pickle.dumps(Attack())
    path.write_bytes(cache._head("another", code) + code)
    assert compiled(planted, label="planted", args=(1.0,))(1.0) == 91.0
    assert not Attack.proof.exists()
    assert "checksum" in capsys.readouterr().err


def test_a_folder_without_locks(tmp_path, monkeypatch, as_new_process):
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("robandit.locks._lock", refuse)
    assert compiled(planted, label="planted", args=(1.0,))(1.0) == 91.0
