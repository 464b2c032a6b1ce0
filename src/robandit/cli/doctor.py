"""``robandit doctor``."""

from __future__ import annotations

PACKAGES = ("robandit-client", "numpy", "numba", "scipy", "polars", "rich", "cyclopts", "msgspec", "matplotlib")


def doctor() -> None:
    """Print versions, cores and the cache of compiled code. Use it for a bug report, or when something is slow."""
    import os
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    from robandit import __version__
    from robandit.cli.terminal.guard import write_line
    from robandit.kernel.cores import cores
    from robandit.kernel.folder import configured

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    folder = configured()
    kernels = list(folder.path.glob("*.kernel"))
    size = sum(path.stat().st_size for path in kernels)
    origin = "ROBANDIT_CACHE_DIR" if os.environ.get("ROBANDIT_CACHE_DIR") else "the default"
    lines = {
        "robandit": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": f"{cores()} for this process (the default number of threads), {os.cpu_count()} in all",
        "cache": f"{folder.path} ({origin}): {len(kernels)} kernels, {size / 1e6:.0f} MB",
        **{name: installed(name) for name in PACKAGES},
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        write_line(f"{name:{width}}  {value}")
    if folder.unsafe:
        write_line(f"The cache is not used: {folder.unsafe}.")
    elif folder.unwritable:
        write_line(f"The cache cannot be written ({folder.unwritable}), so new code is lost when a process ends.")
    elif not kernels:
        print(
            "Nothing is compiled yet, so the first use of a policy takes seconds. To compile all: `robandit precompile`."
        )
