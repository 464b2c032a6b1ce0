"""``robandit doctor``."""

from __future__ import annotations

__all__ = ["doctor"]


def doctor() -> None:
    """Show what Robandit finds here: versions, cores, the cache of compiled code. For a bug report, or when something is slow."""
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
    told = os.environ.get("ROBANDIT_CACHE_DIR")
    lines = {
        "robandit": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": f"{cores()} for this process, of {os.cpu_count()}: so many threads are used unless you say otherwise",
        "cache": f"{folder} ({'ROBANDIT_CACHE_DIR' if told else 'the default'}): {len(kernels)} kernels, {size / 1e6:.0f} MB",
    }
    packages = ("numpy", "numba", "scipy", "polars", "rich", "cyclopts", "msgspec", "vl-convert-python", "matplotlib")
    lines |= {name: installed(name) for name in packages}
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")
    if not kernels:
        print(
            "nothing is compiled yet: the first use of a policy takes ten seconds or more; robandit precompile does all"
        )
