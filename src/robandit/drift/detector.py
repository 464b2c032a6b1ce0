"""The drift detector: one row of numbers per arm, one function that takes one reward.

It notices that the law of an arm's rewards changed, and raises a false alarm with probability at most ``DELTA`` per arm and
segment, whatever the law is: discrete, with many zeros, without a mean. A segment begins with the arm's first reward and with
every alarm. The only assumption is that the rewards of a segment are independent with one law, as long as nothing changes.

1. **Rank.** A segment keeps its first 256 rewards x, each with a uniform v that breaks ties. In order, these 256 pairs have 257
   gaps. A gap weighs 1 plus the number of later pairs that fell into it. The rank of a new reward is

       U = (weight of the gaps below it + theta * weight of its own gap) / weight of all gaps,    theta uniform on (0, 1).

   While the law does not change, the next pair falls into a gap with probability weight / total weight (Polya's urn), so the U of
   a segment are independent and exactly uniform (conformal ranks: Vovk, Gammerman and Shafer 2005). While there are fewer than 256
   pairs, the new pair itself becomes one, and all gaps weigh 1.

2. **Bets.** A bet is a function f >= 0 of U with mean 1 under uniformity, and a mean above 1 under some change. With z the normal
   quantile of U, six bets are on the level: f = exp(d z - d^2 / 2) for d = -1.6, -0.8, -0.35, 0.35, 0.8, 1.6. Six are on a tail:
   "the lowest (highest) share a of the rewards has become the share g a", that is f = g inside that tail and
   (1 - g a) / (1 - a) outside, for (a, g) = (0.005, 6), (0.02, 3.5), (0.1, 2).

3. **Evidence.** At the n-th reward of the segment, a stake w_n = 1 / (2.11 (n + 1) ln^2(n + 1)) joins each bet's capital:

       R_k <- (w_n + R_k) f_k(U)^(1 / tau).

   The alarm is raised when the mean of the R_k reaches 1 / DELTA. All stakes add up to less than 1. So the mean of the R_k plus the
   stakes still to come is a nonnegative supermartingale that starts below 1, and by Ville's inequality it ever reaches 1 / DELTA
   with probability at most DELTA (e-detectors: Shin, Ramdas and Rinaldo 2024).

4. **Tempering.** Rewards that cluster in time (one slow hour) would look like many changes. So bets are raised to the power
   1 / tau, where tau >= 1 says how many times more the sums of z over blocks of 16, 64 and 256 rewards vary than those of
   independent rewards: tau = max(1, 0.6 median(S_b^2 / b) / 0.455), the largest of the three sizes (0.455 is the median of
   S_b^2 / b for independent rewards). Only past rewards enter tau, and the mean of a power 1 / tau <= 1 of a bet is at most 1
   (Jensen), so the bound of 3. still holds. An arm with fewer than 192 rewards takes the tau of the arm that has most; before any
   arm has 192, tau is ``DOUBT``.

5. **Where it changed.** Each bet keeps the CUSUM of its log f. The change is estimated at the start of the present excursion of the
   winning bet's CUSUM above 0.

State: an array ``(arms, WIDTH)`` of floats, all 0 at the start; the constants below are its columns. The random v and theta are
hashes of the salt, the arm and the number of the reward, so the state is a function of the salt, the rewards and their order.
"""

from __future__ import annotations

import math

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats
from robandit.validation import LARGEST_COUNT

DELTA = 0.01  # bound of the probability of a false alarm, per arm and segment
DOUBT = 2.0  # tau while no arm has enough rewards
REFERENCE = 256  # pairs (x, v) that a segment keeps
RING = 256  # newest rewards that an arm keeps

SHIFTS = (0.35, 0.8, 1.6)  # d of the bets on the level; the third is twice the second, see `wager`
SHARES = (0.005, 0.02, 0.1)  # a of the bets on a tail
GAINS = (6.0, 3.5, 2.0)  # g
LEVELS, TAILS = len(SHIFTS), len(SHARES)
BETS = 2 * LEVELS + 2 * TAILS
DOWN, LEVEL_UP, LOW, HIGH = 0, LEVELS, 2 * LEVELS, 2 * LEVELS + TAILS
"""The first bet on each kind of change: level down, level up, low tail, high tail. Within a kind they are in the order above."""

INSIDE = np.log(GAINS)  # log f in the tail, and outside
OUTSIDE = np.log((1.0 - np.multiply(GAINS, SHARES)) / (1.0 - np.array(SHARES)))

SIZES = 3  # of blocks: 16, 64 and 256 rewards
SMALLEST_BLOCK = 16
BLOCKS = 32  # newest blocks kept of each size
ENOUGH = 12  # blocks of a size from which tau is estimated
RENEWED = 64  # rewards after which tau is estimated again

# The columns of the segment, which an alarm sets to 0.
VALUE = 0  # the reference: x in ascending order, and
TIE = VALUE + REFERENCE  # v of each
TREE = TIE + REFERENCE  # numbers of later pairs in the gaps, as a Fenwick tree: node j is at TREE + j - 1
CAPITAL = TREE + REFERENCE  # R of each bet
CUSUM = CAPITAL + BETS  # of log f
EXCURSION = CUSUM + BETS  # rewards since the CUSUM was 0
LENGTH = EXCURSION + BETS  # rewards of the segment
EVIDENCE = LENGTH + 1  # mean of R
Z = EVIDENCE + 1  # normal quantile of the newest rank
UP = Z + 1  # CUSUM of z - 1/2, which probes read
SEGMENT = UP + 1  # number of columns so far
# The columns that an alarm keeps.
NEWEST = SEGMENT  # ring of rewards
AGE = NEWEST + RING  # rewards so far
SUM = AGE + 1  # of z in the present block of each size
BLOCK = SUM + SIZES  # S^2 / b of the newest blocks, a ring per size
TAU = BLOCK + SIZES * BLOCKS  # 0: not known yet
POWER = TAU + 1  # 1 / tau for which FACTOR holds
FACTOR = POWER + 1  # exp(-d^2 / 2), then f inside and outside of the tails, each to that power
COMMON = FACTOR + LEVELS + 2 * TAILS  # in row 0: tau of the arm with most rewards, and
MOST = COMMON + 1  # their number
WIDTH = MOST + 1

# Wichura (1988), algorithm AS 241: the normal quantile as a ratio of polynomials, in the centre and in the tails.
CENTRE_ABOVE = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
CENTRE_BELOW = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
TAIL_ABOVE = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
TAIL_BELOW = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)  # fmt: skip
EDGE = 2e-11  # ranks are moved to [EDGE, 1 - EDGE], where these polynomials hold; that lowers the mean of every bet


def new_state(arms: int) -> Floats:
    """Return the state of a detector that has seen no reward."""
    return np.zeros((arms, WIDTH))


def is_valid(d: Floats) -> bool:
    """Return whether a saved state can be one of a detector: what `step` and an alarm rely on."""
    largest = float(np.finfo(np.float64).max)
    low, high, integer = np.full(d.shape, -largest), np.full(d.shape, largest), np.zeros(WIDTH, dtype=np.bool_)
    rewards, counts = [*range(VALUE, TIE), *range(NEWEST, AGE)], [*range(TREE, CAPITAL), AGE, MOST]
    low[:, rewards], high[:, rewards] = -LARGEST_REWARD, LARGEST_REWARD
    low[:, TIE:TREE], high[:, TIE:TREE] = 0.0, 1.0
    low[:, [*counts, *range(EXCURSION, LENGTH + 1)]] = 0.0
    low[:, [*range(CAPITAL, CUSUM), EVIDENCE, *range(BLOCK, TAU)]] = 0.0
    high[:, counts] = LARGEST_COUNT
    high[:, EXCURSION:LENGTH], high[:, LENGTH] = d[:, [LENGTH]], d[:, AGE]
    integer[[*counts, *range(EXCURSION, LENGTH + 1)]] = True
    low[:, Z], high[:, Z] = -10.0, 10.0
    low[:, [TAU, COMMON]] = np.where(d[:, [TAU, COMMON]] == 0.0, 0.0, 1.0)  # tau is at least 1, if it is known
    low[:, POWER], high[:, POWER] = 0.0, 1.0
    low[:, FACTOR:COMMON], high[:, FACTOR:COMMON] = 0.0, max(GAINS) + 1e-9
    return bool(((d >= low) & (d <= high) & (~integer | (np.floor(d) == d))).all())


def watch(d: Floats, arm: int, x: float, salt: np.uint64) -> bool:
    """Take the next reward of an arm; return whether an alarm is raised. After an alarm, call `restarted`."""
    return step(d, arm, x, salt, 1.0 / tempered(d, arm)) >= 1.0 / DELTA


def watch_all(d: Floats, arm: int, values: Floats, start: int, salt: np.uint64) -> int:
    """Take the rewards of an arm from position ``start`` on; return the position of the one that raises an alarm, else the end.

    If a reward is not finite or too large, return -1 and take none.
    """
    for i in range(start, values.shape[0]):
        if not abs(values[i]) <= LARGEST_REWARD:
            return -1
    for i in range(start, values.shape[0]):
        if watch(d, arm, values[i], salt):
            return i
    return values.shape[0]


def step(d: Floats, arm: int, x: float, salt: np.uint64, power: float) -> float:
    """Take the next reward of an arm, with bets to this power; return the evidence for a change."""
    row = d[arm]
    number = np.uint64(2 * int(row[AGE]))
    key = mixed(salt + GOLDEN * np.uint64(arm + 1))
    v = inner_uniform(mixed(key + GOLDEN * (number + np.uint64(1))))
    theta = inner_uniform(mixed(key + GOLDEN * (number + np.uint64(2))))
    u = rank(row, x, v, theta)
    z = quantile(u)
    if row[POWER] != power:
        set_power(row, power)
    evidence = wager(row, u, z)
    row[EVIDENCE] = evidence
    row[Z] = z
    row[UP] = max(0.0, row[UP] + z - 0.5)
    remember(d, arm, x, z)
    return evidence


def restarted(d: Floats, arm: int) -> None:
    """Begin a new segment of an arm after an alarm. Its newest rewards and its tau are kept."""
    for j in range(SEGMENT):
        d[arm, j] = 0.0


def winner(d: Floats, arm: int) -> int:
    """Return the bet with the most capital."""
    best = 0
    for k in range(1, BETS):
        if d[arm, CAPITAL + k] > d[arm, CAPITAL + best]:
            best = k
    return best


def fresh(d: Floats, arm: int) -> int:
    """Return how many of the newest rewards came after the change, as estimated by the winning bet; it may exceed `RING`.

    Call it after an alarm, before `restarted`.
    """
    return int(d[arm, EXCURSION + winner(d, arm)])


def recent(d: Floats, arm: int, back: int) -> float:
    """Return the newest reward of an arm for ``back`` = 0, the one before for 1, ...; ``back`` is below `RING` and the age."""
    return d[arm, NEWEST + (int(d[arm, AGE]) - 1 - back) % RING]


def inner_uniform(word: np.uint64) -> float:
    """Return an odd multiple of 2^-53 in (0, 1)."""
    return (float(word >> np.uint64(12)) + 0.5) * 2.0**-52


def rank(row: Floats, x: float, v: float, theta: float) -> float:
    """Return the rank U of the next pair (x, v) of the segment, and add the pair."""
    n = int(row[LENGTH])
    row[LENGTH] = n + 1.0
    if n < REFERENCE:
        place = inserted(row, n, x, v)
        return (place + theta) / (n + 1.0)
    # A binary search for the gap. A step to the right passes the gaps of a node of the tree; a step to the left means that they
    # contain the pair. So the search finds the weight below the gap on its way, and counts the pair.
    place = 0
    below = 0.0
    own = n - REFERENCE + 0.0  # later pairs in the gaps that are left
    width = REFERENCE
    while width > 0:
        node = place + width - 1
        if node < REFERENCE:
            count = row[TREE + node]
            if before(row, node, x, v):
                place += width
                below += count
                own -= count
            else:
                row[TREE + node] = count + 1.0
                own = count
        width >>= 1
    return (place + below + theta * (1.0 + own)) / (n + 1.0)


def before(row: Floats, place: int, x: float, v: float) -> bool:
    """Return whether a pair of the reference comes before the pair (x, v)."""
    if row[VALUE + place] == x:
        return row[TIE + place] < v
    return row[VALUE + place] < x


@out_of_line
def inserted(row: Floats, n: int, x: float, v: float) -> int:
    """Insert a pair into a reference of ``n`` pairs; return the number of pairs below it."""
    place = n
    while place > 0:
        if before(row, place - 1, x, v):
            break
        row[VALUE + place] = row[VALUE + place - 1]
        row[TIE + place] = row[TIE + place - 1]
        place -= 1
    row[VALUE + place] = x
    row[TIE + place] = v
    return place


def quantile(u: float) -> float:
    """Return the standard normal quantile of u, moved to [EDGE, 1 - EDGE], with 15 correct digits."""
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * (polynomial(CENTRE_ABOVE, r) / polynomial(CENTRE_BELOW, r))
    r = math.sqrt(-math.log(max(EDGE, min(u, 1.0 - u)))) - 1.6
    size = polynomial(TAIL_ABOVE, r) / polynomial(TAIL_BELOW, r)
    return size if q > 0.0 else -size


def polynomial(c: tuple[float, ...], r: float) -> float:
    """Return the polynomial of degree 7 with these coefficients, the highest first."""
    return ((((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5]) * r + c[6]) * r + c[7]


@out_of_line
def set_power(row: Floats, power: float) -> None:
    """Store the constants of all bets to a power."""
    row[POWER] = power
    for j in range(LEVELS):
        row[FACTOR + j] = math.exp(-0.5 * power * SHIFTS[j] * SHIFTS[j])
    for j in range(TAILS):
        row[FACTOR + LEVELS + j] = math.exp(power * INSIDE[j])
        row[FACTOR + LEVELS + TAILS + j] = math.exp(power * OUTSIDE[j])


def weight(n: float) -> float:
    """Return the stake w_n of the n-th reward of a segment, n >= 1."""
    log = math.log(n + 1.0)
    return 1.0 / (2.11 * (n + 1.0) * log * log)


def wager(row: Floats, u: float, z: float) -> float:
    """Let all bets play the rank u, whose normal quantile is z; return the mean of their capitals."""
    stake = weight(row[LENGTH])
    gentle = math.exp(row[POWER] * SHIFTS[0] * z)
    middle = math.exp(row[POWER] * SHIFTS[1] * z)
    gentle_down = 1.0 / gentle
    middle_down = 1.0 / middle
    total = played(row, LEVEL_UP, stake, gentle * row[FACTOR])
    total += played(row, LEVEL_UP + 1, stake, middle * row[FACTOR + 1])
    total += played(row, LEVEL_UP + 2, stake, middle * middle * row[FACTOR + 2])
    total += played(row, DOWN, stake, gentle_down * row[FACTOR])
    total += played(row, DOWN + 1, stake, middle_down * row[FACTOR + 1])
    total += played(row, DOWN + 2, stake, middle_down * middle_down * row[FACTOR + 2])
    for j in range(LEVELS):
        drop = 0.5 * SHIFTS[j] * SHIFTS[j]
        follow(row, LEVEL_UP + j, SHIFTS[j] * z - drop)
        follow(row, DOWN + j, -SHIFTS[j] * z - drop)
    for j in range(TAILS):
        hit = row[FACTOR + LEVELS + j]
        miss = row[FACTOR + LEVELS + TAILS + j]
        low = u <= SHARES[j]
        high = u > 1.0 - SHARES[j]
        total += played(row, LOW + j, stake, hit if low else miss)
        total += played(row, HIGH + j, stake, hit if high else miss)
        follow(row, LOW + j, INSIDE[j] if low else OUTSIDE[j])
        follow(row, HIGH + j, INSIDE[j] if high else OUTSIDE[j])
    return total / BETS


def played(row: Floats, k: int, stake: float, f: float) -> float:
    """Return the capital of bet k after it has multiplied capital and stake by f."""
    capital = (stake + row[CAPITAL + k]) * f
    row[CAPITAL + k] = capital
    return capital


def follow(row: Floats, k: int, log: float) -> None:
    """Add log f to the CUSUM of bet k, which starts anew from 0 when it is not positive."""
    # Products with a truth value, because a branch is mispredicted half of the time: 12 branches cost 23 ns per reward.
    total = row[CUSUM + k]
    row[CUSUM + k] = total * (total > 0.0) + log
    row[EXCURSION + k] = row[EXCURSION + k] * (total > 0.0) + 1.0


def tempered(d: Floats, arm: int) -> float:
    """Return the tau of an arm's next bets."""
    if d[arm, TAU] > 0.0:
        return d[arm, TAU]
    return d[0, COMMON] if d[0, COMMON] > 0.0 else DOUBT


def remember(d: Floats, arm: int, x: float, z: float) -> None:
    """Store a reward in the ring, and its z in the sums of blocks."""
    age = int(d[arm, AGE])
    d[arm, NEWEST + age % RING] = x
    d[arm, AGE] = age + 1.0
    d[arm, SUM] += z
    if (age + 1) % SMALLEST_BLOCK == 0:
        close_blocks(d, arm, age + 1)


@out_of_line
def close_blocks(d: Floats, arm: int, age: int) -> None:
    """Store the blocks that end with reward number ``age``; after every 64th reward, estimate tau."""
    size = SMALLEST_BLOCK
    for b in range(SIZES):
        if age % size != 0:
            break
        total = d[arm, SUM + b]
        d[arm, SUM + b] = 0.0
        d[arm, BLOCK + b * BLOCKS + (age // size - 1) % BLOCKS] = total * total / size
        if b + 1 < SIZES:
            d[arm, SUM + b + 1] += total
        size *= 4
    if age % RENEWED != 0 or age < ENOUGH * SMALLEST_BLOCK:
        return
    tau = 1.0
    size = SMALLEST_BLOCK
    for b in range(SIZES):
        have = min(age // size, BLOCKS)
        if have >= ENOUGH:
            tau = max(tau, 0.6 * median(d[arm], BLOCK + b * BLOCKS, have) / 0.455)
        size *= 4
    d[arm, TAU] = tau
    if age >= d[0, MOST]:
        d[0, MOST] = age
        d[0, COMMON] = tau


def median(row: Floats, first: int, count: int) -> float:
    """Return the upper median of ``count`` columns."""
    low = -math.inf  # values known to be too small or too large
    high = math.inf
    for j in range(first, first + count):
        value = row[j]
        if low < value < high:
            below = 0
            ties = 0
            for i in range(first, first + count):
                below += 1 if row[i] < value else 0
                ties += 1 if row[i] == value else 0
            if below > count // 2:
                high = value
            elif below + ties <= count // 2:
                low = value
            else:
                return value
    return math.nan
