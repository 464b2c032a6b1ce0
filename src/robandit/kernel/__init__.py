"""Compiles hooks into cached kernels. Also contains the loops, the lazy arg-max and the random streams."""

from robandit.kernel.build import compiled
from robandit.kernel.folder import cache_directory

__all__ = ["cache_directory", "compiled"]
