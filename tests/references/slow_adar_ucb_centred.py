"""AdaR-UCB about the median of each arm's first second rewards, from scratch at every round, from all rewards.

The centre and the differences from it are rounded to doubles, as the library's are: they are what the algorithm sees.
"""

from typing import NamedTuple

import numpy as np

from references.slow_adar_ucb import SlowAdaRUCB

FIRST = 128


class CentredTerms(NamedTuple):
    """The terms of an index; ``mean`` is that of X - centre."""

    centre: float
    mean: float
    spread: float
    reach: float
    threshold: float
    share_trimmed: float

    @property
    def index(self):
        return self.centre + (self.mean + self.spread + self.reach)

    @property
    def size(self):
        return abs(self.centre) + abs(self.mean) + self.spread + self.reach


class SlowCentred(SlowAdaRUCB):
    def centre(self, arm):
        y = self.y[arm]
        count = max(2**k for k in range(8) if 2**k <= len(y))
        return float(np.median(y[:count]))

    def about(self, arm, ask, tau):
        """The terms of an arm, from the plain reference on X - centre and X' - centre."""
        if len(self.y[arm]) == 0:
            return None
        centre = self.centre(arm)
        given = {name: value for name, value in vars(self).items() if name not in ("x", "y")}
        plain = SlowAdaRUCB(1, **given)
        plain.x[0], plain.y[0] = self.x[arm] - centre, self.y[arm] - centre
        terms = ask(plain, 0, tau)
        return terms and CentredTerms(centre, *terms)

    def terms(self, arm, tau):
        return self.about(arm, SlowAdaRUCB.terms, tau)

    def precise(self, arm, tau):
        return self.about(arm, SlowAdaRUCB.precise, tau)

    def late(self, arm, reward, second):
        """One reward; a first one that has no place before the centre is final becomes a second one."""
        if second or (len(self.x[arm]) >= FIRST > len(self.y[arm])):
            self.y[arm] = np.append(self.y[arm], reward)
        else:
            self.x[arm] = np.append(self.x[arm], reward)
