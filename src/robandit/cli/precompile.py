"""``robandit precompile``."""

from __future__ import annotations


def precompile() -> None:
    """Compile all policies, so that later runs start at once. This takes a few minutes and is needed only once."""
    from robandit.kernel import cache_directory
    from robandit.kernel.cores import cores
    from robandit.precompile import precompile as compile_all

    compile_all(processes=cores())
    print(f"compiled code is in {cache_directory()}")
