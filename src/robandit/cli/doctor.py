"""``robandit doctor``."""

from __future__ import annotations

PACKAGES = ("numpy", "numba", "scipy", "polars", "rich", "cyclopts", "msgspec", "matplotlib")


def doctor() -> None:
    """Print versions, cores and the cache of compiled code. Use it for a bug report, or when something is slow."""
    import os
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    from robandit import __version__
    from robandit.kernel import cache_directory
    from robandit.kernel.cores import cores

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    folder = cache_directory()
    kernels = list(folder.glob("*.py"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    origin = "ROBANDIT_CACHE_DIR" if os.environ.get("ROBANDIT_CACHE_DIR") else "the default"
    lines = {
        "robandit": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": f"{cores()} for this process (the default number of threads), {os.cpu_count()} in all",
        "cache": f"{folder} ({origin}): {len(kernels)} kernels, {size / 1e6:.0f} MB",
        **{name: installed(name) for name in PACKAGES},
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")
    if not kernels:
        print(
            "Nothing is compiled yet, so the first use of a policy takes 10 seconds or more. To compile all: `robandit precompile`."
        )
