"""Problems whose rewards depend on a context: simulated linear ones, and tables of recorded rewards with features.

A replication draws its rows first: the features x of each time, the mean of each arm there, and the reward that each arm would
give. Regret is measured against the arm with the best mean at x. Policies that do not use contexts play them, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.features import MOST_COLUMNS, Encoder
from robandit.features.encoder import Scale
from robandit.hints import guided
from robandit.kernel.loops import playable
from robandit.kernel.random import GOLDEN, hashed, streams
from robandit.kernel.types import Floats
from robandit.laws import Empirical, Gaussian, Law
from robandit.laws.packing import packed, unpacked
from robandit.problems.problem import Problem
from robandit.validation import array, choice, finite, flag, instance, integer, invalid, items_of, mapping, positive

SAMPLE = (64, 128)  # replications and rows of each, for what a problem says about itself
KINDS = ("additive", "costs", "revenue")
CONTEXTS = ("normal", "uniform", "symmetric", "binary", "cells")


class Rows(NamedTuple):
    """What happens at each time of a replication."""

    x: Floats
    """The features, with the intercept; for shared coefficients those of each arm, one arm after the other."""
    means: Floats
    """The mean reward of each arm at x. Policies maximise, so costs are negated."""
    rewards: Floats


class Contextual(Problem):
    """A problem with contexts. Its laws are the empirical laws of a fixed sample of rows, over all contexts."""

    independent: ClassVar[bool] = False
    columns: int
    """The length of x for one arm, with the intercept."""
    shared: bool
    """Whether one vector of coefficients gives the means of all arms."""
    norm: float
    """The largest norm of coefficients, for policies that must be told."""

    def rows(self, horizon: int, word: int) -> Rows:
        """Return the rows of a replication, which a random word determines."""
        raise NotImplementedError

    def rows_of(self, seed: int, replication: int, horizon: int) -> Rows:
        """Return the rows that `robandit.simulate` plays in a replication with this seed."""
        words = streams(np.random.SeedSequence(seed, spawn_key=(replication,)), self.arms + 2)
        return self.rows(horizon, int(words[-2, 0]))

    @property
    def best_mean(self) -> float:
        """The mean reward of the best arm for each x, estimated from the sample of rows."""
        return float(vars(self)["_best"])

    def _describe(self, samples: Sequence[Rows], names: Sequence[str] | None, minimize: bool) -> None:
        rewards = np.concatenate([rows.rewards for rows in samples])
        means = np.concatenate([rows.means for rows in samples])
        sign = -1.0 if minimize else 1.0
        super().__init__([Empirical(sign * column + 0.0) for column in rewards.T], names, minimize)
        object.__setattr__(self, "_best", float(means.max(axis=1).mean()))
        object.__setattr__(self, "_uniform", float((means.max(axis=1) - means.mean(axis=1)).mean()))

    def uniform_regret(self, horizon: int) -> float:
        """Return the mean regret of choosing arms at random, estimated from the sample of rows."""
        return integer(horizon, "horizon", 1) * float(vars(self)["_uniform"])


def uniforms(count: int, word: int) -> Floats:
    """Return random numbers in (0, 1], the same in all versions of NumPy."""
    with np.errstate(over="ignore"):
        words = hashed(np.arange(count, dtype=np.uint64) + np.uint64(word) * GOLDEN) >> np.uint64(11)
    return (words.astype(np.float64) + 1.0) * 2.0**-53


@guided
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Linear(Contextual):
    """A simulated problem whose means are linear in x; `linear` makes it."""

    options: tuple[tuple[str, Any], ...]

    def __init__(self, **options: Any) -> None:
        object.__setattr__(self, "options", tuple(options.items()))
        for name in ("columns", "shared"):
            object.__setattr__(self, name, options[name])
        samples, norms = [], []
        for i in range(SAMPLE[0]):
            samples.append(self.rows(SAMPLE[1], i))
            norms.append(vars(self).pop("_norm"))
        object.__setattr__(self, "norm", max(norms))
        self._describe(samples, None, False)

    def __repr__(self) -> str:
        """Return the call that makes the problem."""
        return f"linear({', '.join(f'{name}={value!r}' for name, value in self.options)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _linear, (dict(self.options),)

    def rows(self, horizon: int, word: int) -> Rows:
        """Return the rows of a replication, with coefficients of its own unless they are given."""
        o = dict(self.options)
        arms, d, cost = o["arms"], o["columns"], o["kind"] != "additive"
        root = np.random.SeedSequence(word)
        of_theta, of_x, of_noise = root.spawn(3)
        theta = self._coefficients(o, of_theta)
        x = np.ones((horizon, arms if o["shared"] else 1, d))
        x[:, :, 1:] = _features(o["contexts"], x[:, :, 1:].shape, of_x)
        m = (x * theta).sum(axis=2)
        m = np.exp(m) if o["log_link"] else m + o["base"]
        if isinstance(o["noise"], Law):
            noise = o["noise"].sample(horizon * arms, of_noise).reshape(horizon, arms)
            middle: Any = o["noise"].mean
        else:
            seeds = of_noise.spawn(arms)
            noise = np.stack([law.sample(horizon, each) for law, each in zip(o["noise"], seeds, strict=True)], axis=1)
            middle = np.array([law.mean for law in o["noise"]])
        if cost:
            means = m if o["kind"] == "revenue" else -m
            rewards = means * (noise / middle)
        else:
            means, rewards = m, m + (noise - middle)
        object.__setattr__(self, "_norm", float(np.sqrt((theta * theta).sum(axis=1)).max()) * o["scale"])
        scaled = [o["scale"] * values + o["offset"] for values in (means, rewards)]
        return Rows(np.ascontiguousarray(x.reshape(horizon, -1)), *scaled)

    def _coefficients(self, o: dict[str, Any], seed: np.random.SeedSequence) -> Floats:
        """Return one row of coefficients per arm, or one row."""
        models, d = 1 if o["shared"] else o["arms"], o["columns"]
        positive_ones = o["kind"] != "additive" and not o["log_link"]
        u = uniforms(models * d, int(seed.generate_state(1, np.uint64)[0])).reshape(models, d)
        theta = -np.log(u) if positive_ones else Gaussian(0.0, 1.0).sample(models * d, seed).reshape(models, d)
        if o["contexts"] == "cells":
            return np.concatenate([np.zeros((models, 1)), 0.5 + 1.5 * u[:, 1:]], axis=1)
        if o["coefficients"] is not None:
            return np.asarray(o["coefficients"])
        theta[:, 0] *= o["level"]
        theta[:, 1:] *= o["slope"]
        if o["shared"]:
            theta[:, 0] = 0.0
            theta /= max(float(np.sqrt((theta * theta).sum())), 1e-9)
        return theta

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON data."""
        noise = dict(self.options)["noise"]
        plain = noise.to_dict() if isinstance(noise, Law) else [law.to_dict() for law in noise]
        rows = dict(self.options)["coefficients"]
        return {"linear": dict(self.options) | {"noise": plain, "coefficients": rows and [list(row) for row in rows]}}


def _features(kind: str, shape: tuple[int, ...], seed: np.random.SeedSequence) -> Floats:
    count = math.prod(shape)
    if kind == "normal":
        return Gaussian(0.0, 1.0).sample(count, seed).reshape(shape) if count else np.zeros(shape)
    u = uniforms(count, int(seed.generate_state(1, np.uint64)[0])).reshape(shape)
    if kind == "cells":
        cell = np.minimum((u[:, 0, 0] * shape[2]).astype(np.int64), shape[2] - 1)
        return np.eye(shape[2])[cell][:, None, :]
    return {"uniform": u, "symmetric": 2.0 * u - 1.0, "binary": (u > 0.5).astype(np.float64)}[kind]


@guided
def linear(
    arms: int = 3,
    columns: int = 5,
    noise: Law | Sequence[Law] = Gaussian(0.0, 1.0),  # noqa: B008  an immutable value
    *,
    kind: str = "additive",
    contexts: str = "normal",
    log_link: bool = False,
    shared: bool = False,
    coefficients: ArrayLike | None = None,
    base: float | None = None,
    level: float | None = None,
    slope: float | None = None,
    scale: float = 1.0,
    offset: float = 0.0,
) -> Linear:
    """Return a simulated problem in which the mean of each arm is linear in the features x of the decision.

    Each replication draws coefficients of its own, unless they are given. Regret is measured against the best arm for each x.

    Parameters
    ----------
    arms, columns
        The numbers of arms and of columns of x, of which the first is the intercept, 1.
    noise
        The law of the noise, or one law per arm. Its mean is subtracted, or divided out where the noise is a factor.
    kind
        ``"additive"``: reward = mean + noise, with normal coefficients. ``"costs"`` and ``"revenue"``: reward = mean times noise,
        below or above 0, with exponential coefficients.
    contexts
        The columns after the intercept: independent and ``"normal"``, ``"uniform"`` in (0, 1], ``"symmetric"`` in (-1, 1],
        ``"binary"``; or ``"cells"``: exactly one of them is 1, and means per cell and arm are uniform in (0.5, 2].
    log_link
        Whether the mean is exp(x' theta), with normal theta: then a linear policy is misspecified.
    shared
        Whether all arms share the coefficients, and x has features of each arm.
    coefficients
        One row per arm (one row if shared), in place of random ones.
    base, level, slope
        A constant that is added to the mean, and the scales of the coefficients of the intercept and of the others. By default 0,
        0.3 and 1/sqrt(columns - 1) for additive noise, otherwise 0.5, 0.2 and 1/sqrt(columns - 1) (with log_link 0, 0.2 and half
        of it).
    scale, offset
        Means and rewards are multiplied by the scale, then the offset is added.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = linear(arms=3, columns=4, noise=-rb.laws.Pareto(tail=1.5))
    >>> result = rb.simulate([rb.AdaClipTS(), rb.LinUCB()], problem, horizon=2000, replications=10, seed=0)
    >>> clipped, squared = result.regret[:, :, -1].mean(axis=1)
    >>> bool(clipped < 0.5 * squared)
    True
    """
    arms, columns = integer(arms, "arms", 2), integer(columns, "columns", 1, MOST_COLUMNS + 1)
    choice(kind, "kind", KINDS)
    choice(contexts, "contexts", CONTEXTS)
    if not isinstance(noise, Law):
        noise = items_of(noise, "noise", "laws, one for each arm")
        if len(noise) != arms:
            raise invalid("noise", noise, f"a law, or {arms} laws, one for each arm")
    for law in (noise,) if isinstance(noise, Law) else noise:
        instance(law, Law, "noise", "a law, or one law per arm")
        if kind != "additive" and not law.mean > 0.0:
            raise invalid("noise", noise, "a law with a mean above 0, since it is a factor")
    cost, log_link, shared = kind != "additive", flag(log_link, "log_link"), flag(shared, "shared")
    if contexts == "cells" and columns < 3:
        raise invalid("columns", columns, "at least 3, the intercept and two cells")
    given = None
    if coefficients is not None:
        given = array(coefficients, "coefficients")
        if given.shape != (1 if shared else arms, columns):
            raise invalid("coefficients", coefficients, f"{1 if shared else arms} rows of {columns} numbers")
    usual = 1.0 / math.sqrt(max(columns - 1, 1)) * (0.5 if log_link else 1.0)
    defaults = (0.5 if cost and not log_link and contexts != "cells" else 0.0, 0.2 if cost else 0.3, usual)
    numbers = [
        default if value is None else finite(value, name)
        for name, value, default in zip(("base", "level", "slope"), (base, level, slope), defaults, strict=True)
    ]
    options: dict[str, Any] = {"arms": arms, "columns": columns, "noise": noise, "kind": kind, "contexts": contexts}
    options |= {"log_link": log_link, "shared": shared, "coefficients": None if given is None else _tuples(given)}
    options |= dict(zip(("base", "level", "slope"), numbers, strict=True))
    return Linear(**options, scale=positive(scale, "scale"), offset=finite(offset, "offset"))


def _tuples(table: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _linear(options: Mapping[str, Any]) -> Linear:
    return linear(**options)


@guided
@dataclass(frozen=True, init=False, eq=False, repr=False)
class ContextTable(Contextual):
    """A table of recorded rewards with features; `contextual` makes it."""

    x: Floats
    means_at: Floats
    rewards: Floats

    def __init__(self, x: Floats, means: Floats, rewards: Floats, names: Sequence[str] | None, minimize: bool) -> None:
        sign = -1.0 if minimize else 1.0
        for name, value in (("x", x), ("means_at", sign * means + 0.0), ("rewards", sign * rewards + 0.0)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "columns", x.shape[1])
        object.__setattr__(self, "shared", False)
        fit = np.linalg.lstsq(x, self.means_at, rcond=1e-6)[0]
        object.__setattr__(self, "norm", float(np.sqrt((fit * fit).sum(axis=0)).max()))
        self._describe([Rows(x, self.means_at, self.rewards)], names, minimize)

    def __repr__(self) -> str:
        return f"<ContextTable: {len(self.x)} rows of {self.arms} arms, {self.columns} columns of x>"

    def __reduce__(self) -> tuple[Any, ...]:
        sign = -1.0 if self.minimize else 1.0
        return ContextTable, (self.x, sign * self.means_at + 0.0, sign * self.rewards + 0.0, self.names, self.minimize)

    def rows(self, horizon: int, word: int) -> Rows:
        """Return rows that are drawn with replacement."""
        drawn = np.minimum((uniforms(horizon, word) * len(self.x)).astype(np.int64), len(self.x) - 1)
        return Rows(self.x[drawn], self.means_at[drawn], self.rewards[drawn])

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain JSON data."""
        arrays = {name: packed(getattr(self, name).reshape(-1)) for name in ("x", "means_at", "rewards")}
        return {"contextual": {"columns": self.columns, **arrays}, **self._labels()}


@guided
def contextual(
    contexts: Sequence[Mapping[str, Any]] | ArrayLike,
    rewards: ArrayLike,
    features: Mapping[str, Any] | None = None,
    *,
    means: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    minimize: bool = False,
) -> ContextTable:
    """Return a problem that draws rows of a table, with replacement: a context, and the reward that each arm gave there.

    Parameters
    ----------
    contexts
        One context per row, as mappings with the declared features; or a matrix of numbers, which are the columns of x after the
        intercept.
    rewards
        One row per context and one column per arm.
    features
        The declarations, as for `Bandit`. Numbers without a scale get that of the whole table. None: contexts are a matrix.
    means
        The mean reward of each arm in each row, for the regret. None: the mean of the rows with the same x. Rows that are alone
        with their x then have no noise, so pass means for continuous features.
    names, minimize
        As for `Problem`.

    Examples
    --------
    >>> import robandit as rb
    >>> rows = [{"region": region} for region in ("eu", "us", "eu", "us")]
    >>> costs = [[1.0, 2.0], [5.0, 3.0], [2.0, 3.0], [4.0, 2.0]]
    >>> table = contextual(rows, costs, {"region": rb.Category(["eu", "us"])}, minimize=True)
    >>> table.columns, table.uniform_regret(100)
    (3, 75.0)
    """
    values = array(rewards, "rewards")
    if values.ndim != 2 or values.shape[1] < 2 or not len(values) or not playable(values).all():
        raise invalid("rewards", rewards, "a table of numbers, with one row per context and one column per arm")
    if features is None:
        given = array(contexts, "contexts")
        if given.ndim != 2:
            raise invalid("contexts", contexts, "a matrix of numbers, or mappings with features=...")
        x = np.concatenate([np.ones((len(given), 1)), given], axis=1)
    else:
        x = _encoded(contexts, features)
    if len(x) != len(values):
        raise InvalidInput(f"{len(x)} contexts but {len(values)} rows of rewards: pass one context for each row")
    if means is None:
        _, cell = np.unique(x, axis=0, return_inverse=True)
        counts = np.bincount(cell.reshape(-1))
        at = np.stack([np.bincount(cell.reshape(-1), column) for column in values.T], axis=1) / counts[:, None]
        known = at[cell.reshape(-1)]
    else:
        known = array(means, "means")
        if known.shape != values.shape:
            raise invalid("means", means, "a table of the shape of rewards")
    return ContextTable(x, known, values, names, flag(minimize, "minimize"))


def _encoded(contexts: Any, features: Mapping[str, Any]) -> Floats:
    encoder = Encoder(features)
    for name, feature in list(encoder.first.items()):
        declared = Encoder({name: encoder.features[name]})
        raw = [declared.encode({name: mapping(row, "contexts", "mappings").get(name)})[1][0] for row in contexts]
        feature.extend(value for value in raw if value is not None)
        low, middle, high = np.quantile(feature or [0.0], [0.25, 0.5, 0.75]).tolist()
        encoder.set_scale(name, Scale(middle, (high - low) / 1.349 or float(np.std(feature)) or 1.0))
    return np.array([encoder.encode(row)[0] for row in contexts])


def contextual_from_dict(data: Mapping[str, Any]) -> Problem:
    """Return the problem that ``to_dict`` wrote."""
    if "linear" in data:
        options = mapping(data["linear"], "linear", "the options of problems.linear")
        noise = options["noise"]
        laws = Law.from_dict(noise) if isinstance(noise, Mapping) else [Law.from_dict(law) for law in noise]
        return linear(**options | {"noise": laws})
    table = mapping(data["contextual"], "contextual", "columns, x, means_at and rewards")
    columns = integer(table["columns"], "columns", 1)
    x, means, rewards = (np.asarray(unpacked(table[name], name)) for name in ("x", "means_at", "rewards"))
    rows = len(x) // columns
    sign = -1.0 if data.get("minimize") else 1.0
    means, rewards = (sign * values.reshape(rows, -1) + 0.0 for values in (means, rewards))
    return ContextTable(x.reshape(rows, -1), means, rewards, data.get("names"), bool(data.get("minimize", False)))
