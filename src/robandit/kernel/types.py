"""Array types of hooks and kernels."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
UInts: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]
