"""``robandit precompile``."""

from __future__ import annotations


def precompile() -> None:
    """Compile all policies now, so that later runs start at once. Takes a few minutes, once."""
    from robandit.kernel import cache_directory
    from robandit.kernel.cores import cores
    from robandit.precompile import precompile as compile_all

    compile_all(processes=cores())
    print(f"compiled code is in {cache_directory()}")
