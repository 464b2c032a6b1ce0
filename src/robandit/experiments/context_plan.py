"""The plan of `robandit replay --features`: policies with and without contexts on recorded rewards.

The record becomes one table: a context per row, and the reward that each arm gave there. If the record has a reward of every arm at
every time, these are its own. Otherwise the rewards that are missing are drawn from the record: from the rows of the arm in the
same cell, or, if features are numbers or cells have too few rows, from the rows of the arm with the nearest features. No value is
made up, and nothing is assumed to be linear, which would favour linear policies.

Noise in a record looks like an effect of its features. So a test is added: what a linear rule saves on the record to which it is
fitted, and what it would save if the features changed all arms alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robandit.diagnostics.reference import Reference, Worth
from robandit.diagnostics.resolution import too_few_to_compare
from robandit.diagnostics.words import words
from robandit.errors import InvalidInput, formatted
from robandit.experiments.compare_plan import FIRST_LOOK, asked_numbers, named_policies
from robandit.experiments.plan import Plan, Played, planned
from robandit.experiments.replay_plan import MOST_PULLS, first_notes, read_note, told, unplayed
from robandit.features import MOST_COLUMNS, Category
from robandit.features.encoder import FARTHEST, scale_of
from robandit.hints import close, question
from robandit.kernel.types import Floats, Ints
from robandit.policies import PerCell, all_policies
from robandit.problems import ContextTable, contextual
from robandit.recorded import Log, Records
from robandit.validation import flag, function, instance, invalid, items_of, text
from robandit.wording import listed

if TYPE_CHECKING:
    import polars as pl

BUCKETS = 32  # of a column that is hashed
FEWEST = 5  # rows of each arm in each cell
MOST_CELLS = 64
MOST_CONTEXTS = 20_000  # rows of the table and of the test; of a longer record a random sample
NEAREST = (10, 100)  # rows of an arm from which a reward is drawn: the square root of their number, within these limits
DRAWS = 99  # of rewards without an effect
SEED = 41
ROUNDING = 1e-12  # savings below it, relative to the largest reward, are 0
WITHOUT = FIRST_LOOK[:4]
WITH = ("AdaClipTS", "AdaClipUCB", "LinUCB", "LinTS")
KINDS = ("log", "category", "hash")


class Rows(NamedTuple):
    """The rows of a record: the columns of x, the arm, its reward and the weight of the row."""

    x: Floats
    arms: Ints
    rewards: Floats
    weights: Floats


def replayed_with_features(
    records: Records,
    features: Sequence[str],
    policies: Sequence[str] = (),
    *,
    name: str = "recorded",
    horizon: int | None = None,
    replications: int | None = None,
    seed: int = 1,
    quick: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Plan:
    """Return the plan of policies with and without contexts on recorded rewards.

    Parameters
    ----------
    records, name, replications, seed, quick, progress
        As for `robandit.experiments.replayed`.
    features
        The columns that are known before each choice. Numbers are scaled, other values are categories. ``"tokens:log"`` takes the
        logarithm, ``"store:category"`` reads numbers as categories, and ``"customer:hash"`` hashes values to 32 columns.
    policies
        As for `robandit.experiments.replayed`. Empty: four with contexts and four without, and, if there are at most 64 different
        contexts, `PerCell`. If all are of one kind, the default policy of the other kind is added.
    horizon
        Pulls in each replication. The default is the number of contexts, but at most 50,000.

    Examples
    --------
    >>> import polars as pl
    >>> from robandit.recorded import open_records
    >>> frame = pl.DataFrame({"arm": ["a", "b"] * 40, "cost": range(80), "region": ["eu", "eu", "us", "us"] * 20})
    >>> plan = replayed_with_features(open_records(frame, reward="cost", minimize=True), ["region"], ["LinUCB"])
    >>> [cell.label for cell in plan.cells], plan.problems[0].problem.columns
    (['LinUCB', 'AdaKL-UCB'], 3)
    """
    quick, name = flag(quick, "quick"), text(name, "name")
    horizon, replications, seed = asked_numbers(horizon, replications, seed, quick=quick)
    instance(records, Records, "records", "records", hint="make them with robandit.recorded.open_records")
    function(progress, "progress", "a function that takes two numbers")
    asked = [_column(records, text(each, "features")) for each in items_of(features, "features", "names of columns")]
    columns = [column for column, _ in asked]
    if not columns or len(set(columns)) < len(columns):
        raise invalid("features", list(features), "one or more different columns")
    samples = records.samples(progress=progress)
    few = too_few_to_compare(samples.counts)
    whole = records.log(times=records.time is not None, features=columns)
    log = whole.without(few)
    if len(log.arms) < 2:
        raise InvalidInput(
            f"{records.source} has rewards of one arm only, {log.arms[0]!r}: a replay needs at least two"
        )
    assert log.features is not None
    x, read = _encoded(log.features, asked, records.source)
    complete = _is_complete(log)
    weights = np.ones(len(x)) if log.propensities is None else 1.0 / log.propensities
    rows = Rows(x, log.actions, log.rewards, weights)
    if complete:
        _check_known_before(log, columns, records)
    table, how = context_table(rows, log.arms, complete=complete, minimize=records.minimize)
    cells = len(np.unique(table.x, axis=0))
    chosen = named_policies(policies or [*WITH, *WITHOUT, *(["PerCell"] if cells <= MOST_CELLS else [])])
    if "all" in policies:  # of those without contexts
        more = (each for each in all_policies() if each.contextual)
        chosen += [each for each in more if cells <= MOST_CELLS or not isinstance(each, PerCell)]
    for kind, default in ((True, WITH[0]), (False, WITHOUT[0])):
        if not any(bool(policy.contextual) is kind for policy in chosen):
            chosen += named_policies([default])
    one = words(records.minimize).one
    cautions, drift = first_notes(records, samples, None, whole, len(whole.rewards), [])
    cautions += ["Results mix the rewards from before and after the changes."] if drift else []
    cautions += unplayed(few, samples)
    cautions.append(f"With contexts ({read}): {how.replace('reward', one)}")
    mean = float(np.mean(table.means_at)) * (-1.0 if records.minimize else 1.0)
    still = (0.0,) * len(log.arms)  # the interval covers the replications only
    worth = worth_of(rows, len(log.arms), complete=complete, minimize=records.minimize)
    reference = Reference("random", len(table.x), mean, still, still, "", records.reward, worth=worth)
    pulls = horizon or max(
        1, min(len(log.rewards) // (len(log.arms) if complete else 1), MOST_PULLS) // (10 if quick else 1)
    )
    played = Played(f"{name}, contexts", table, pulls, reference)
    notes = [read_note(records, samples), *told(chosen)]
    notes.append("Intervals are for other draws of rows from this record. They do not cover the error of the record.")
    if not policies:
        notes.append("To see all policies, add --all; for policies per cell, --policy 'PerCell(of=UCB1())'.")
    return planned([played], chosen, replications=replications, seed=seed, notes=notes, cautions=cautions)


# --- features ---------------------------------------------------------------------------------------------------------


def _column(records: Records, asked: str) -> tuple[str, str]:
    """Return the column that is asked for and its kind, which is empty if it follows from the values."""
    column, kind = asked, ""
    if asked not in records.columns and asked.rpartition(":")[2] in KINDS:
        column, _, kind = asked.rpartition(":")
    if column not in records.columns:
        column, _, unknown = (
            column.rpartition(":") if column.rpartition(":")[0] in records.columns else (column, "", "")
        )
        if unknown:
            raise invalid("features", asked, f"{column}, or {column} and one of :{', :'.join(KINDS)}")
        hint = question([repr(each) for each in close(column, records.columns)])
        known = listed([formatted(each) for each in records.columns], 10)
        message = f"{records.source} has no column {formatted(column)}{hint}: its columns are {known}"
        raise InvalidInput(message, parameter="features", value=column, rule="columns of the table")
    if column in records.repeated:
        raise InvalidInput(f"{records.source} has several columns named {column!r}: rename all but one of them")
    if column in (records.arm, records.reward, records.propensity):
        raise invalid(
            "features", column, "a column that is known before the choice, not the arm, its reward or its propensity"
        )
    return column, kind


def _encoded(frame: pl.DataFrame, asked: Sequence[tuple[str, str]], source: str) -> tuple[Floats, str]:
    """Return x with the intercept: one column per number, and one per value of a category. And how each column is read."""
    parts = [_feature(frame[name], kind, f"the column {name!r} of {source}") for name, kind in asked]
    x = np.concatenate([np.ones((frame.height, 1)), *parts], axis=1)
    if x.shape[1] - 1 > MOST_COLUMNS:
        rule = f"features with at most {MOST_COLUMNS} columns in all"
        hint = f"these have {x.shape[1] - 1}; name fewer, or hash one, such as {asked[0][0]}:hash"
        raise invalid("features", [name for name, _ in asked], rule, hint=hint)
    read = {"": "a number", "log": "a logarithm", "hash": "hashed"}
    widths = ((name, kind, part.shape[1]) for (name, kind), part in zip(asked, parts, strict=True))
    ways = (
        f"{name}: {read[kind] if width == 1 or kind == 'hash' else f'{width} categories'}"
        for name, kind, width in widths
    )
    return x, ", ".join(ways)


def _feature(column: pl.Series, kind: str, what: str) -> Floats:
    import polars as pl

    if column.dtype.is_temporal():
        raise InvalidInput(
            f"{what} holds {column.dtype}, neither numbers nor categories: convert it, for example to the hour"
        )
    text = column.cast(pl.String).str.strip_chars()
    missing = int((text.is_null() | text.str.to_lowercase().is_in(["", "nan"])).sum())
    if missing:
        raise InvalidInput(
            f"{what} has {missing:,} missing values (of {len(text):,}): drop these rows, with --where 'not {column.name} is null' "
            "if they are empty, or fill them"
        )
    if text.n_unique() < 2:
        raise InvalidInput(f"{what} has only one value, {formatted(text[0])}, so it tells nothing: omit it")
    numbers = text.cast(pl.Float64, strict=False)
    if kind == "log" and numbers.null_count():
        odd = formatted(text.filter(numbers.is_null())[0])
        raise InvalidInput(f"{what} has values that are not numbers, such as {odd}: omit :log")
    if kind in ("category", "hash") or column.dtype == pl.Boolean or numbers.null_count():
        return _category(text, numbers, kind, what)
    values = numbers.to_numpy()
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"{what} has infinite values: drop these rows, or read it as a category ({column.name}:category)"
        )
    if kind == "log":
        if values.min() <= 0.0:
            raise InvalidInput(
                f"{what} has values of 0 or below, {values.min():g}: omit :log, or drop these rows with --where"
            )
        values = np.log(values)
    center, scale = scale_of(values.tolist())
    z = (values - center) / scale
    if np.abs(z).max() > FARTHEST:
        raise InvalidInput(f"{what} has values more than {FARTHEST:g} scales from its median: write {column.name}:log")
    return np.asarray(z)[:, None]


def _category(text: pl.Series, numbers: pl.Series, kind: str, what: str) -> Floats:
    values = text.unique().sort().to_list()
    if kind == "hash":
        hashed = Category(buckets=BUCKETS)
        places, width = {value: hashed.bucket(value) for value in values}, BUCKETS
    elif len(values) > MOST_COLUMNS:
        odd = formatted(text.filter(numbers.is_null())[0]) if numbers.null_count() else ""
        number = f"neither a number ({odd} is not one) nor a category: it" if odd else "no category: it"
        name = text.name
        raise InvalidInput(
            f"{what} is {number} has {len(values):,} different values, and at most {MOST_COLUMNS} are allowed. Hash them "
            f"({name}:hash), group them before, or name another column"
        )
    else:
        places, width = {value: i for i, value in enumerate(values)}, len(values)
    place = text.replace_strict(places).to_numpy()
    encoded: Floats = np.eye(width)[place]
    return encoded


def _is_complete(log: Log) -> bool:
    """Return whether the log has one row of every arm at every time."""
    k = len(log.arms)
    if log.times is None or len(log.actions) % k:
        return False
    times, actions = log.times.reshape(-1, k), log.actions.reshape(-1, k)
    apart = (times[1:, 0] != times[:-1, 0]).all()
    return bool((times == times[:, :1]).all() and apart and (np.sort(actions, axis=1) == np.arange(k)).all())


def _check_known_before(log: Log, columns: Sequence[str], records: Records) -> None:
    """Refuse features that differ between arms at the same time: they are results of the choice."""
    assert log.features is not None
    for name in columns:
        values = log.features[name].to_numpy().reshape(-1, len(log.arms))
        if (values != values[:, :1]).any():
            raise InvalidInput(
                f"the column {name!r} of {records.source} differs between arms at the same time, so it is known only after the "
                "choice: name features that are known before",
                parameter="features",
                value=name,
                rule="columns that are known before the choice",
            )


# --- the table --------------------------------------------------------------------------------------------------------


def context_table(rows: Rows, names: Sequence[str], *, complete: bool, minimize: bool) -> tuple[ContextTable, str]:
    """Return a table with the reward of each arm in each context, and how it was made."""
    rng, k = np.random.default_rng(SEED), len(names)
    x, cell = np.unique(rows.x, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    counts = np.zeros((len(x), k), dtype=np.int64)
    np.add.at(counts, (cell, rows.arms), 1)
    by_cell = len(x) <= MOST_CELLS and int(counts.min()) >= FEWEST
    # In a complete record, the first row of each time stands for all.
    every = np.arange(0, len(cell), k) if complete else np.arange(len(cell))
    kept = every if len(every) <= MOST_CONTEXTS else np.sort(rng.choice(every, MOST_CONTEXTS, replace=False))
    rewards = means = None
    if complete:
        order = np.lexsort((rows.arms, np.arange(len(cell)) // k))
        rewards = rows.rewards[order].reshape(-1, k)[kept // k]
    if by_cell:
        rewards = _from_cells(rows, cell, kept, k, rng) if rewards is None else rewards
        used = f"by cells: {len(x)} different contexts, each with at least {counts.min()} rows of each arm"
    else:
        drawn, means = _from_nearest(rows, kept, k, rng)
        rewards = drawn if rewards is None else rewards
        used = "by a fitted model: nearest neighbours, from 10 to 100 rows of the arm with the closest features"
    if complete:
        how = f"the record has a reward of every arm at every time, and these are played. Means are computed {used}."
    else:
        how = f"the reward of an arm that was not chosen is drawn {used}."
        how += " This is valid if the choices in the record depend on nothing but these features."
    return contextual(rows.x[kept, 1:], rewards, means=means, names=names, minimize=minimize), how


def _from_cells(rows: Rows, cell: Ints, kept: Ints, k: int, rng: np.random.Generator) -> Floats:
    """Return recorded rewards of the same cell, each equally often, or in proportion to its weight."""
    rewards = np.zeros((len(kept), k))
    for c in np.unique(cell[kept]):
        places = np.flatnonzero(cell[kept] == c)
        for arm in range(k):
            own = (cell == c) & (rows.arms == arm)
            sums = np.cumsum(rows.weights[own])
            at = np.searchsorted(sums, (np.arange(len(places)) + 0.5) / len(places) * sums[-1])
            rewards[places, arm] = rng.permutation(rows.rewards[own][np.minimum(at, len(sums) - 1)])
    return rewards


def _from_nearest(rows: Rows, kept: Ints, k: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return a recorded reward of one of the nearest rows of each arm, and the mean of these rows."""
    from scipy.spatial import cKDTree

    drawn, means = np.zeros((len(kept), k)), np.zeros((len(kept), k))
    for arm in range(k):
        own = rng.permutation(np.flatnonzero(rows.arms == arm))[: 2 * MOST_CONTEXTS]  # shuffled, because of ties
        count = min(len(own), max(NEAREST[0], min(NEAREST[1], round(math.sqrt(len(own))))))
        near = own[cKDTree(rows.x[own]).query(rows.x[kept], count)[1].reshape(len(kept), count)]
        weights = np.cumsum(rows.weights[near], axis=1)
        place = (rng.random((len(kept), 1)) * weights[:, -1:] >= weights).sum(axis=1)
        drawn[:, arm] = rows.rewards[near[np.arange(len(kept)), np.minimum(place, count - 1)]]
        means[:, arm] = (rows.rewards[near] * rows.weights[near]).sum(axis=1) / weights[:, -1]
    return drawn, means


# --- is it chance? ----------------------------------------------------------------------------------------------------


def worth_of(rows: Rows, k: int, *, complete: bool, minimize: bool) -> Worth:
    """Return what a linear rule, fitted to the record, saves there, and what it would save by chance.

    By chance means that the features change all arms alike: rewards are those of a linear model without interactions, plus its
    residuals with random signs (a wild bootstrap), the same signs for all arms at one time of a complete record. To shuffle the
    features would be wrong: if costs vary more for larger prompts, it finds an effect in every third record without one.
    """
    rng, block = np.random.default_rng(SEED), k if complete else 1
    n = len(rows.x) // block
    first = (
        np.arange(n) if n * block <= MOST_CONTEXTS else np.sort(rng.choice(n, MOST_CONTEXTS // block, replace=False))
    )
    x, arms, rewards, weights = (each[(first[:, None] * block + np.arange(block)).reshape(-1)] for each in rows)
    rewards = -rewards if minimize else rewards
    alike = np.concatenate([np.eye(k)[arms], x[:, 1:]], axis=1)
    mean = alike @ _ridge(alike, rewards, weights, k)
    signs = np.repeat(rng.choice([-1.0, 1.0], (len(first), DRAWS)), block, axis=0)
    drawn = np.column_stack([rewards, mean[:, None] + signs * (rewards - mean)[:, None]])
    own = [arms == arm for arm in range(k)]
    theta = np.stack([_ridge(x[each], drawn[each], weights[each], 1) for each in own], axis=2)
    fitted = (x @ theta[:, i] for i in range(1 + DRAWS))
    saved = np.array([max(0.0, at.max(axis=1).mean() - at.mean(axis=0).max()) for at in fitted])
    saved[saved < ROUNDING * np.abs(rewards).max()] = 0.0
    return Worth(float(saved[0]), float(np.quantile(saved[1:], 0.95)), float((saved >= saved[0]).mean()))


def _ridge(x: Floats, rewards: Floats, weights: Floats, intercepts: int) -> Floats:
    """Return the coefficients of a weighted ridge regression; the first columns are intercepts, which are hardly penalised."""
    penalty = np.diag([1e-3] * intercepts + [1.0] * (x.shape[1] - intercepts))
    weighted = (x * weights[:, None]).T
    return np.asarray(np.linalg.solve(weighted @ x + penalty, weighted @ rewards))
