"""Comparing arms like for like: what the mean of the leader owes to rewards that another arm could not have seen yet.

The leader is the arm with the most rewards. It has seen farther up its right tail than an arm with few rewards. If tails are heavy
to the right, much of the leader's mean comes from rewards beyond the *reach* D of the other arm, the largest reward for which its
bound allows. With z the leader's rewards minus its centre, without those beyond its own threshold M,

    ``e(D) = (1/n) sum of sign(z) (|z| - D) over |z| > D``

is the leader's mean minus its mean with all rewards clipped at D: what it owes to rewards beyond D on the right, less the same on
the left. The other arm borrows ``E(D) = max(0, e(D') for all D' >= D)``. The maximum makes E fall in D.

An arm with n rewards would have seen what the leader sees more often than 2 L/n, with probability 1 - exp(-2 L). So D is at least
the size that this share of the leader's rewards exceeds. (Otherwise an arm whose rewards are all alike, and whose reach never
grows, would borrow for ever: nine such arms against a log-normal one with sigma = 2 took half of 20,000 pulls.)

The leader must be allowed. Only the `FARTHEST` largest \\|z\\| are used, which bounds memory; a smaller D counts as the smallest of
them. The profile is computed when the leader changes, and again whenever its number of rewards has grown by a sixteenth. So all
other arms keep their bounds while the leader is pulled.
"""

from __future__ import annotations

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

FARTHEST = 512
RENEWAL = 16  # the profile is renewed when the leader has 1/16 more rewards

# Rows of a profile, by descending size. Its last entry has size 0 if all of the leader's rewards are in it.
SIZE = 0
OWED = 1  # e(SIZE)
NET = 2  # the falling slope of e just below SIZE
HIGHEST_OWED = 3  # max(0, e) from SIZE on
PROFILE_ROWS = 4


@out_of_line
def profile_of(values: Floats, first: int, last: int, complete: bool, n: float, profile: Floats) -> int:
    """Fill in the profile of values[first:last] (descending by size); return its length, or 0 if nothing is owed anywhere.

    >>> import numpy as np
    >>> profile = np.zeros((PROFILE_ROWS, 4))
    >>> profile_of(np.array([4.0, -2.0, 1.0]), 0, 3, True, 10.0, profile)
    4
    >>> profile[OWED].tolist()  # at 4, 2, 1 and 0
    [0.0, 0.2, 0.2, 0.3]
    """
    owed = net = highest = before = 0.0
    length = last - first
    for j in range(length):
        z = values[first + j]
        size = abs(z)
        owed += net * (before - size)
        net += (1.0 if z > 0.0 else -1.0) / n
        highest = max(highest, owed)
        before = size
        profile[SIZE, j] = size
        profile[OWED, j] = owed
        profile[NET, j] = net
        profile[HIGHEST_OWED, j] = highest
    if complete:
        owed += net * before
        highest = max(highest, owed)
        profile[SIZE, length] = 0.0
        profile[OWED, length] = owed
        profile[NET, length] = 0.0
        profile[HIGHEST_OWED, length] = highest
        length += 1
    return length if highest > 0.0 else 0


@out_of_line
def borrowed_at(profile: Floats, length: int, reach: float, seen: float) -> float:
    """Return E(D), where D is at least ``reach`` and the size with ``seen`` larger ones in the profile.

    >>> import numpy as np
    >>> profile = np.zeros((PROFILE_ROWS, 4))
    >>> length = profile_of(np.array([4.0, -2.0, 1.0]), 0, 3, True, 10.0, profile)
    >>> [round(float(borrowed_at(profile, length, reach, 9.0)), 9) for reach in (5.0, 3.0, 1.5, 0.5, 0.0)]
    [0.0, 0.1, 0.2, 0.25, 0.3]
    >>> [round(float(borrowed_at(profile, length, 0.0, seen)), 9) for seen in (0.5, 1.0, 2.9, 3.0)]
    [0.0, 0.2, 0.2, 0.3]
    """
    sizes = profile[SIZE]
    reach = max(reach, sizes[int(min(seen, length - 1.0))])
    low = 0
    high = length  # the number of sizes above the reach is between the two
    while low < high:
        middle = (low + high) // 2
        if sizes[middle] > reach:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0.0
    owed = profile[OWED, low - 1] + profile[NET, low - 1] * (sizes[low - 1] - reach)
    return max(profile[HIGHEST_OWED, low - 1], owed)
