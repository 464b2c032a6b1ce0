"""AdaR-UCB of ``adar_numpy``, in NumPy and SciPy."""

from __future__ import annotations

from functools import partial

import adar_numpy
import heavy

PACKAGES = ["numpy", "scipy"]


def simulated(pulls: int) -> None:
    adar_numpy.play(heavy.table(pulls, 1), pulls)


ACTIONS = {f"AdaR-UCB {pulls}": (partial(simulated, pulls), pulls) for pulls in heavy.HORIZONS} | {
    "arms": (partial(adar_numpy.play, heavy.table(heavy.CHECKED, 0), heavy.CHECKED), heavy.CHECKED)
}
