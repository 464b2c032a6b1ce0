"""What linear policies share: the state, one rank-one update, one solver, decisions in flight, and the choice.

Each arm has a ridge regression: theta = P b with P = (Lambda + sum x x')^-1. P is symmetric, and a row of the state holds its lower
triangle, row after row. A policy writes ``fill(p, s, arm, x)``, which sets the mean, the width and the degrees of freedom of an arm
at x (`MEAN`, `WIDTH` and `FREEDOM` of ``s.draws``), and ``add(p, s, arm, x, reward)``.

An open decision adds its x to the precision, not to the mean: Q is P with the x of decisions whose reward is still to come, or will
never come, and widths are computed with Q. The newest decision waits in ``s.pending`` first, because its reward may come before
the next one: then nothing is done twice. Q[arm] has a meaning only while ``s.waiting[arm]`` is above 0.

With ``shared=True``, all arms share the coefficients, model 0. Then x has the features of each arm, one arm after the other.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import normal
from robandit.kernel.types import Floats
from robandit.policies._parts.counting import wins_tie
from robandit.policies._parts.records import params_of, state_of
from robandit.policies.base import Policy
from robandit.policies.classic.uniform import allowed_arms
from robandit.policies.index import count_tried, first_forced, no_pulls, take_pull
from robandit.policies.sampling.largest_draw import chance_of_largest
from robandit.policies.sampling.student import student_draw
from robandit.validation import flag, integer

COUNT, SQUARES = 0, 1  # columns of ``arms``; a policy may add others
MEAN, WIDTH, FREEDOM = 0, 1, 2  # columns of ``draws``
NORMAL = 1e9  # degrees of freedom that stand for the normal law
LEAST = -1e300  # the mean of an arm that waits for its first rewards
MOST = 65  # columns of x, with the intercept
MOST_CHANCES = 50  # competing arms whose chances are computed: one chance takes 12 ms with 50, and 43 ms with 100


class Linear(Policy):
    """The base of linear policies; see the module. Subclasses write ``fill``, ``add``, ``first`` and ``prior``."""

    d: int = 1
    shared: bool = False

    contextual: ClassVar[bool] = True
    respects_allowed: ClassVar[bool] = True
    counts_unrewarded: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("mean", "width")
    row_length: ClassVar[int] = 2
    first: ClassVar[float] = 1.0
    """The rewards that each arm gets before x matters."""
    select: ClassVar[Any] = None
    update: ClassVar[Any] = None
    draws: ClassVar[bool] = False
    """Whether the arm with the largest draw is chosen, and not that with the largest mean + width."""
    fill: ClassVar[Any]
    add: ClassVar[Any]

    def validate(self) -> None:
        integer(self.d, "d", 1, MOST, owner=type(self).__name__)
        flag(self.shared, "shared", owner=type(self).__name__)

    @property
    def name(self) -> str:
        """The label with the parameters that differ from their defaults, except d, which belongs to the contexts."""
        name = super().name
        return name.replace(f"(d={self.d})", "").replace(f"(d={self.d}, ", "(")

    def params(self) -> Any:
        """Return the numeric parameters, and the number of first rewards."""
        return params_of(**super().params()._asdict(), first=float(self.first))

    def prior(self) -> Floats:
        """Return the diagonal of Lambda: by default 1."""
        return np.ones(self.d)

    def init(self, arms: int, horizon: int | None) -> Any:
        d, models = self.d, 1 if self.shared else arms
        start = np.zeros((d, d))
        np.fill_diagonal(start, 1.0 / self.prior())
        triangle = np.tile(start[np.tril_indices(d)], (models, 1))
        x = np.zeros(d * arms if self.shared else d)
        x[::d] = 1.0
        waiting = np.zeros(arms + 1, dtype=np.int64)
        waiting[arms] = -1
        random = {} if type(self).chance is None else {"rng": np.zeros(4, dtype=np.uint64)}
        return state_of(
            x=x,
            arms=np.zeros((arms, self.row_length)),
            P=triangle,
            Q=triangle.copy(),
            b=np.zeros((models, d)),
            theta=np.zeros((models, d)),
            pulls=no_pulls(arms),
            waiting=waiting,
            pending=np.zeros(d),
            seen=np.zeros(d),
            draws=np.zeros((arms, 3)),
            chances=np.full(arms, math.nan),
            chances_x=np.zeros_like(x),
            residual=np.zeros(1),
            work=np.zeros((3, d)),
            **random,
        )

    def forget_choice(self, state: Any) -> None:
        """Discard the chances, which depend on the allowed arms."""
        state.chances[:] = math.nan

    def noise(self, state: Any) -> Floats:
        """Return the variance of the rewards of each model around its fit; NaN if it is not estimated."""
        variances: Floats = state.arms[:, SQUARES] / state.arms[:, COUNT]
        return variances

    def effects(self, state: Any, contrasts: Floats) -> tuple[Floats, Floats]:
        """Return c' theta for each model and each row c of ``contrasts``, and its standard error; NaN before the first rewards."""
        d = contrasts.shape[1]
        rows, columns = np.tril_indices(d)
        P = np.empty((len(state.theta), d, d))
        P[:, rows, columns] = P[:, columns, rows] = state.P
        few = state.arms[: len(P), COUNT, None] < max(self.first, 2.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.sqrt(self.noise(state)[: len(P), None] * (contrasts @ P * contrasts).sum(axis=-1))
        return np.where(few, math.nan, state.theta @ contrasts.T), np.where(few, math.nan, errors)

    def __init_subclass__(cls) -> None:
        """Bind ``fill`` and ``add`` of a subclass to the hooks that it does not write itself."""
        if hasattr(cls, "fill"):
            hooks: dict[str, Any] = {"select": select_upper, "estimate": estimate_linear}
            if cls.draws:
                hooks |= {"select": select_drawn, "chance": chance_drawn}
            for name, function in hooks.items():
                if name not in vars(cls):
                    setattr(cls, name, staticmethod(partial(function, cls.fill)))
            cls.update = staticmethod(partial(update_linear, cls.add))
        super().__init_subclass__()

    @staticmethod
    def take(p: Any, s: Any, arm: int, x: Floats) -> float:
        flush(p, s)
        start = first_column(p, s, arm)
        for i in range(s.pending.shape[0]):
            s.pending[i] = x[start + i]
            s.seen[i] += x[start + i]
        s.waiting[s.arms.shape[0]] = arm
        forget_chances(s)
        return take_pull(p, s, arm)

    @staticmethod
    def expire(p: Any, s: Any, arm: int, x: Floats, mark: float) -> None:
        """Do nothing: the x of a decision that will never have a reward stays in Q."""


# --- the symmetric matrices -------------------------------------------------------------------------------------------


def quad(triangle: Floats, x: Floats, v: Floats) -> float:
    """Return x' T x. ``v`` is scratch. The inner loop has no sum, so that it is vectorised."""
    k = 0
    for i in range(x.shape[0]):
        row = triangle[k : k + i + 1]
        xi = x[i]
        for j in range(i):
            v[j] += row[j] * xi
        v[i] = 0.5 * row[i] * xi
        k += i + 1
    return 2.0 * dot(x, v)


def times(triangle: Floats, x: Floats, out: Floats) -> None:
    """Set out to T x."""
    k = 0
    for i in range(x.shape[0]):
        row = triangle[k : k + i + 1]
        xi = x[i]
        total = row[i] * xi
        for j in range(i):
            out[j] += row[j] * xi
            total += row[j] * x[j]
        out[i] = total
        k += i + 1


def add_outer(triangle: Floats, u: Floats, weight: float) -> None:
    """Add weight u u' to T."""
    k = 0
    for i in range(u.shape[0]):
        row = triangle[k : k + i + 1]
        wu = weight * u[i]
        for j in range(i + 1):
            row[j] += wu * u[j]
        k += i + 1


@out_of_line
def add_precision(triangle: Floats, x: Floats, u: Floats, weight: float) -> None:
    """Replace T by (T^-1 + weight x x')^-1. ``u`` is scratch."""
    times(triangle, x, u)
    add_outer(triangle, u, -weight / (1.0 + weight * dot(x, u)))


def dot(a: Floats, b: Floats) -> float:
    """Return the inner product."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


# --- one arm's model --------------------------------------------------------------------------------------------------


def model(p: Any, arm: int) -> int:
    """Return the number of an arm's model."""
    return 0 if p.shared else arm


def first_column(p: Any, s: Any, arm: int) -> int:
    """Return where the part of x begins that belongs to an arm: it is all of x, unless the arms share the coefficients."""
    return arm * s.pending.shape[0] if p.shared else 0


def uncertainty(s: Any, m: int, x: Floats) -> float:
    """Return x' Q x, the variance of the mean at x in units of the noise; x' P x if no decision is open."""
    q = quad(s.Q[m], x, s.work[0]) if s.waiting[m] > 0 else quad(s.P[m], x, s.work[0])
    return max(q, 0.0)


def flush(p: Any, s: Any) -> None:
    """Move the newest decision, which has no reward yet, into Q."""
    arm = s.waiting[s.arms.shape[0]]
    if arm >= 0:
        add_open(p, s, model(p, arm), s.pending)


@out_of_line
def add_open(p: Any, s: Any, m: int, x: Floats) -> None:
    """Add the x of an open decision to Q."""
    if s.waiting[m] == 0:
        for i in range(s.P.shape[1]):
            s.Q[m, i] = s.P[m, i]
    add_precision(s.Q[m], x, s.work[0], 1.0)
    s.waiting[m] += 1
    s.waiting[s.arms.shape[0]] = -1


def learn_x(p: Any, s: Any, arm: int, x: Floats, weight: float) -> None:
    """Add the x of a decision that got its reward to P, and to Q unless it is there. Forget the chances."""
    m = model(p, arm)
    arms = s.arms.shape[0]
    is_pending = s.waiting[arms] == arm
    for i in range(x.shape[0]):
        is_pending = is_pending and s.pending[i] == x[i]
    if is_pending:
        s.waiting[arms] = -1
        if s.waiting[m] > 0:
            add_precision(s.Q[m], x, s.work[0], weight)
    elif s.waiting[m] > 0:
        s.waiting[m] -= 1
    add_precision(s.P[m], x, s.work[0], weight)
    forget_chances(s)


def count_reward(p: Any, s: Any, arm: int) -> None:
    """Count a reward, and the arm when it has its first rewards."""
    m = model(p, arm)
    s.arms[m, COUNT] += 1.0
    if s.arms[m, COUNT] == p.first:
        for _ in range(s.arms.shape[0] if p.shared else 1):
            count_tried(s)


def ridge_step(p: Any, s: Any, arm: int, x: Floats, reward: float) -> None:
    """Learn a reward by ridge regression. `SQUARES` becomes the squared residuals of the fit plus theta' Lambda theta."""
    m = model(p, arm)
    error = reward - dot(s.theta[m], x)
    s.residual[0] = error
    s.arms[m, SQUARES] += error * error / (1.0 + quad(s.P[m], x, s.work[0]))
    learn_x(p, s, arm, x, 1.0)
    for i in range(x.shape[0]):
        s.b[m, i] += reward * x[i]
    times(s.P[m], s.b[m], s.theta[m])
    count_reward(p, s, arm)


def forget_chances(s: Any) -> None:
    """Forget the chances, because the state changed."""
    for arm in range(s.chances.shape[0]):
        s.chances[arm] = math.nan


# --- hooks ------------------------------------------------------------------------------------------------------------


def rewards_of(s: Any, arm: int) -> float:
    """Return the number of rewards of an arm's model."""
    return s.arms[arm, COUNT]


def may_draw(p: Any, s: Any, arm: int) -> bool:
    """Return whether an arm is allowed and has its first rewards."""
    return s.allowed[arm] and s.arms[model(p, arm), COUNT] >= p.first


def fill_draws(fill: Any, p: Any, s: Any, x: Floats) -> int:
    """Compute the draws of all arms at x, and return the arm that comes before them, or -1: one that lacks its first rewards."""
    flush(p, s)
    forced = first_forced(rewards_of, s, p.first)
    if forced >= 0:
        return forced
    for arm in range(s.arms.shape[0]):
        if may_draw(p, s, arm):
            start = first_column(p, s, arm)
            fill(p, s, arm, x[start : start + s.pending.shape[0]])
        else:
            s.draws[arm, MEAN] = LEAST
            s.draws[arm, WIDTH] = 0.0
            s.draws[arm, FREEDOM] = NORMAL
    return -1


def largest(value: Any, s: Any) -> int:
    """Return the allowed arm with the largest value; in a tie, that with the fewest pulls."""
    chosen = -1
    best = -math.inf
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm]:
            mine = value(s, arm)
            if chosen < 0 or mine > best or (mine == best and wins_tie(s, arm, chosen)):
                best = mine
                chosen = arm
    return chosen


def upper(s: Any, arm: int) -> float:
    """Return mean + width."""
    return s.draws[arm, MEAN] + s.draws[arm, WIDTH]


def drawn(s: Any, arm: int) -> float:
    """Return a draw: mean + width times a normal or a Student variable."""
    f = s.draws[arm, FREEDOM]
    z = normal(s.rng) if f == NORMAL else math.sqrt(f) * student_draw(f, s.rng)
    return s.draws[arm, MEAN] + s.draws[arm, WIDTH] * z


def select_upper(fill: Any, p: Any, s: Any, x: Floats) -> int:
    """Return the arm with the largest mean + width at x."""
    forced = fill_draws(fill, p, s, x)
    return forced if forced >= 0 else largest(upper, s)


def select_drawn(fill: Any, p: Any, s: Any, x: Floats) -> int:
    """Return the arm with the largest draw at x."""
    forced = fill_draws(fill, p, s, x)
    return forced if forced >= 0 else largest(drawn, s)


def chance_drawn(fill: Any, p: Any, s: Any, arm: int, x: Floats) -> float:
    """Return the probability of `select_drawn`: one integral, because draws are independent. It is cached.

    With more than `MOST_CHANCES` allowed arms, it is NaN, unless the choice is forced.
    """
    same = True
    for i in range(x.shape[0]):
        same = same and s.chances_x[i] == x[i]
        s.chances_x[i] = x[i]
    if not same:
        forget_chances(s)
    if not s.chances[arm] >= 0.0:
        forced = fill_draws(fill, p, s, x)
        competing = allowed_arms(s.allowed)
        if forced >= 0 or not s.allowed[arm]:
            s.chances[arm] = 1.0 if forced == arm else 0.0
        elif competing == 1:
            s.chances[arm] = 1.0
        elif competing <= MOST_CHANCES:
            s.chances[arm] = chance_of_largest(centre, width, freedom, p, s, arm)
    return s.chances[arm]


def centre(s: Any, arm: int) -> float:
    """Return the mean of an arm's draw."""
    return s.draws[arm, MEAN]


def width(p: Any, s: Any, arm: int) -> float:
    """Return the scale of an arm's draw."""
    return s.draws[arm, WIDTH]


def freedom(p: Any, s: Any, arm: int) -> float:
    """Return the degrees of freedom of an arm's draw."""
    return s.draws[arm, FREEDOM]


def update_linear(add: Any, p: Any, s: Any, arm: int, x: Floats, reward: float) -> None:
    """Learn a reward at x."""
    start = first_column(p, s, arm)
    add(p, s, arm, x[start : start + s.pending.shape[0]], reward)


def estimate_linear(fill: Any, p: Any, s: Any, arm: int, x: Floats, out: Floats) -> None:
    """Fill in the mean at x and its width, which is infinite before the first rewards."""
    flush(p, s)
    out[0] = math.nan
    out[1] = math.inf
    if s.arms[model(p, arm), COUNT] >= p.first:
        start = first_column(p, s, arm)
        fill(p, s, arm, x[start : start + s.pending.shape[0]])
        out[0] = s.draws[arm, MEAN]
        out[1] = s.draws[arm, WIDTH]
