"""Arms and rewards as NumPy's scalars, and as columns of NumPy, pandas, polars and Arrow."""

import array
import copy
import warnings
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import robandit as rb
from helpers.invalid import raises
from robandit.errors import AssumptionWarning, DecisionError, InvalidInput, InvalidReward, UnknownArm
from robandit.live.memory import CHUNK
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.facts import Facts

ARMS = ["eu", "us", "asia"]
NAMES = ["us", "eu", "us", "asia", "us"]
REWARDS = [1.0, -2.0, 0.0, 4.0, 8.0]


class Assuming(rb.UCB1):
    """UCB1, with an assumption that rewards can contradict."""

    about = Facts(assumption=NONPOSITIVE)


def after_batch(arms, rewards, names=ARMS):
    bandit = rb.Bandit(names, rb.UCB1())
    bandit.update_many(arms, rewards)
    return bandit.to_bytes()


def after_updates(arms, rewards, names=ARMS):
    bandit = rb.Bandit(names, rb.UCB1())
    for arm, reward in zip(arms, rewards, strict=True):
        bandit.update(arm, reward)
    return bandit.to_bytes()


def pandas():
    return pytest.importorskip("pandas", reason="pandas is not installed")


# --- scalars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arms",
    [
        np.array([3, 5], dtype=np.int64),
        np.array([3, 5], dtype=np.uint8),
        np.array(["a", "b"]),
        np.array([0.5, 1.5]),
        np.array([0.1, 0.2], dtype=np.float32),
        np.array([True, False]),
        np.array([3, "a", None, 0.5], dtype=object),
        [np.array(3), np.array("a")],
        pl.Series([3, 5]),
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
        range(2),
    ],
    ids=str,
)
def test_arms_become_plain_values_that_equal_what_was_given(arms, tmp_path):
    bandit = rb.Bandit(arms, rb.UCB1())
    assert not any(isinstance(arm, (np.generic, np.ndarray)) for arm in bandit.arms)
    given_as = [arm[()] if isinstance(arm, np.ndarray) else arm for arm in arms]
    assert dict(zip(given_as, bandit.arms, strict=True)) == dict(zip(bandit.arms, given_as, strict=True))
    for arm in arms:
        bandit.update(arm, np.float32(1.5))
    assert [row["pulls"] for row in bandit.estimates()] == [1] * len(bandit.arms)
    bandit.save(tmp_path / "b")
    loaded = rb.Bandit.load(tmp_path / "b")
    assert [(arm, type(arm)) for arm in loaded.arms] == [(arm, type(arm)) for arm in bandit.arms]
    assert loaded.select() == bandit.select() == copy.deepcopy(bandit).select()
    loaded.update(arms[0], 1)


def test_rewards_and_decisions_as_scalars_and_arrays_without_dimensions():
    bandit, twin = rb.Bandit([3, 5], rb.UCB1()), rb.Bandit([3, 5], rb.UCB1())
    kinds = [
        np.float32(0.1),
        np.float16(0.5),
        np.int8(-3),
        np.bool_(True),
        np.array(2.5),
        np.array(7),
        np.longdouble(2),
    ]
    for reward in [*kinds, Decimal("0.1")]:
        bandit.update(np.array(3), reward)
        twin.update(3, float(reward))
    for number, reward in enumerate(kinds):
        decisions = bandit.decide(), twin.decide()
        name = decisions[0].id
        bandit.reward(np.array(name) if number % 2 else np.str_(name), reward)
        twin.reward(decisions[1], float(reward))
    assert bandit.estimates() == twin.estimates()
    decision = bandit.decide()
    bandit.reward(decision._replace(id=np.str_(decision.id)), 1)
    assert bandit.open == ()


@pytest.mark.parametrize(
    ("reward", "match"),
    [
        (np.float32("nan"), "reward = nan must be"),
        (np.array(np.inf), "reward = inf must be"),
        (np.array([1.0]), r"array\(\[1.\]\) must be a number"),
        (np.timedelta64(5, "ns"), "must be a number"),
        (np.array(5, dtype="m8[s]"), "must be a number"),
        (np.datetime64("2020-01-01", "ns"), "must be a number"),
        (np.datetime64("NaT", "s"), "must be a number"),
        (np.str_("1"), "reward = .*'1'.* must be a number"),
        (np.complex64(1), "must be a number"),
        (Decimal("NaN"), "reward = nan must be"),
        (Decimal("sNaN"), "reward = nan must be"),
        (Decimal("1e200"), r"within \+-1e\+150"),
        (Decimal("1e-400"), "0 or at least 1e-130 in size"),
    ],
    ids=repr,
)
def test_scalars_that_are_not_rewards(reward, match):
    bandit = rb.Bandit(ARMS, rb.UCB1())
    decision, before = bandit.decide(), bandit.to_bytes()
    for tell in (
        lambda: bandit.update("eu", reward),
        lambda: bandit.reward(decision, reward),
        lambda: bandit.update_many(["eu", "eu"], [1.0, reward]),
    ):
        with pytest.raises(InvalidReward, match=match):
            tell()
    assert bandit.to_bytes() == before


@pytest.mark.parametrize(
    ("arms", "match"),
    [
        (np.array(["2020", "2021"], dtype="M8[ns]"), "arm = .*2020.* must be a string"),
        (np.array([1, 2], dtype="m8[ns]"), "arm = .* must be a string"),
        (np.array([1.0, np.nan]), "arm = nan must be a string"),
        (np.array([b"a", b"b"]), "arm = b'a' must be a string"),
        (np.array([[1, 2], [3, 4]]), r"arms is a ndarray of shape \(2, 2\)"),
        (np.array(3), r"arms is a ndarray of shape \(\)"),
        (pl.DataFrame({"arms": ["a", "b"]}), r"arms is a DataFrame .*such as dataframe\['arms'\]"),
        (pl.Series(["a", "b", "a"]), r"arm = 'a' must be given once; pass the unique\(\)"),
        ({"a", "b"}, "arms is a set, .*in order"),
        (frozenset("ab"), "arms is a frozenset"),
        ({"a": 1, "b": 2}, "arms is a dict"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arms_that_are_rejected(arms, match):
    with pytest.raises(InvalidInput, match=match):
        rb.Bandit(arms, rb.UCB1())


# --- columns --------------------------------------------------------------------------------------------------------


COLUMNS = [
    (tuple(NAMES), iter(REWARDS)),
    (np.array(NAMES), np.array(REWARDS)),
    (np.array(NAMES, dtype=object), np.array(REWARDS, dtype=object)),
    (pl.Series(NAMES), pl.Series(REWARDS)),
    (pl.Series(NAMES, dtype=pl.Categorical), pl.Series(REWARDS, dtype=pl.Float32)),
    (pl.Series(NAMES, dtype=pl.Enum(["asia", "eu", "us"])), pl.Series(REWARDS).cast(pl.Int16)),
    (NAMES, pl.Series([Decimal(int(r)) for r in REWARDS], dtype=pl.Decimal(10, 2))),
    (NAMES, array.array("d", REWARDS)),
    (NAMES, np.ma.array(REWARDS)),
    (NAMES, np.array([REWARDS, REWARDS]).T[:, 0]),
    (dict(enumerate(NAMES)).values(), dict.fromkeys(REWARDS).keys()),
]


@pytest.mark.parametrize(("arms", "rewards"), COLUMNS, ids=lambda column: str(getattr(column, "dtype", type(column))))
def test_columns_are_learned_as_lists(arms, rewards):
    assert after_batch(arms, rewards) == after_updates(NAMES, REWARDS)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "g", "?", ">f8", "O"])
def test_arrays_of_every_numeric_type(kind):
    rewards = np.array([1, 0, 1, 1, 0], dtype=kind)
    assert after_batch(NAMES, rewards) == after_updates(NAMES, [1.0, 0.0, 1.0, 1.0, 0.0])


def test_pandas_columns():
    pd = pandas()
    index = [7, 7, "z", 2, 0]  # in another order, and not unique: position is what counts
    for arms in (
        pd.Series(NAMES),
        pd.Series(NAMES, dtype="category"),
        pd.Categorical(NAMES),
        pd.Index(NAMES),
        pd.Series(NAMES, dtype=object, index=index),
        pd.Series(NAMES, dtype="string"),
    ):
        for kind in ("float64", "float32", "int64", "Int64", "Float64", "object", "category"):
            rewards = pd.Series(REWARDS, index=index[::-1]).astype(kind)
            assert after_batch(arms, rewards) == after_updates(NAMES, REWARDS), (arms.dtype, kind)
    frame = pd.DataFrame({"arm": NAMES, "reward": REWARDS}).sort_values("reward")
    assert after_batch(frame["arm"], frame["reward"]) == after_updates(frame["arm"].tolist(), sorted(REWARDS))
    numbers = pd.Series([3, None, 5])  # became floats; 3.0 is the arm 3
    assert after_batch(numbers.dropna(), [1.0, 2.0], [3, 5]) == after_updates([3, 5], [1.0, 2.0], [3, 5])
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    assert rb.Bandit(pairs, rb.UCB1()).arms == (("a", 1), ("b", 2))
    assert rb.Bandit(frame["arm"].astype("category").unique(), rb.UCB1()).arms == tuple(frame["arm"].unique())
    with pytest.raises(InvalidInput, match=r"rewards is a DataFrame of shape \(5, 2\), .*dataframe\['rewards'\]"):
        after_batch(NAMES, frame)
    with pytest.raises(InvalidInput, match="arms is a DataFrame"):
        rb.Bandit(frame, rb.UCB1())
    with pytest.raises(InvalidInput, match=r"arm = .* must be a string"):
        rb.Bandit(pd.Series(pd.to_datetime(["2020", "2021"])), rb.UCB1())


def test_arrow_columns():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pd = pandas()
    expected = after_updates(NAMES, REWARDS)
    arrow = pd.DataFrame({"arm": NAMES, "reward": REWARDS}).convert_dtypes(dtype_backend="pyarrow")
    assert after_batch(arrow["arm"], arrow["reward"].astype("double[pyarrow]")) == expected
    assert after_batch(pa.array(NAMES), pa.chunked_array([REWARDS[:2], REWARDS[2:]])) == expected
    assert after_batch(pa.array(NAMES).dictionary_encode(), pa.array(REWARDS, pa.float32())) == expected
    with pytest.raises(InvalidReward, match="position 2"):
        after_batch(NAMES, pa.array([1.0, 2.0, None, 3.0, 4.0]))
    with pytest.raises(InvalidReward, match="position 2"):
        after_batch(NAMES, pd.Series([1.0, 2.0, None, 3.0, 4.0], dtype="double[pyarrow]"))


def missing_in_pandas():
    pd = pandas()
    yield pd.Series([*REWARDS[:4], None])
    yield pd.Series([*REWARDS[:4], None], index=[4, 3, 2, 1, 0])
    yield pd.Series([1, 2, 3, 4, None], dtype="Int64")
    yield pd.Series([*REWARDS[:4], pd.NaT], dtype=object)
    yield pd.Series([*REWARDS[:4], None], dtype="category")


def missing_in_others():
    yield [*REWARDS[:4], None]
    yield np.array([*REWARDS[:4], np.nan], dtype=np.float32)
    yield np.ma.array(REWARDS, mask=[0, 0, 0, 0, 1])
    yield pl.Series([*REWARDS[:4], None])
    yield pl.Series([*REWARDS[:4], float("nan")])
    yield pl.Series([1, 2, 3, 4, None])
    yield [*REWARDS[:4], "5"]
    yield [*REWARDS[:4], 10**400]
    yield [*REWARDS[:4], 1e151]


@pytest.mark.parametrize("source", [missing_in_pandas, missing_in_others])
def test_missing_rewards_are_rejected_with_their_position(source):
    bandit = rb.Bandit(ARMS, rb.UCB1())
    decisions = [bandit.decide() for _ in NAMES]
    before = bandit.to_bytes()
    for rewards in source():
        with pytest.raises(InvalidReward, match=r"rewards, position 4 \(from 0\): reward"):
            bandit.update_many(NAMES, rewards)
        with pytest.raises(InvalidReward, match=r"values, position 4 \(from 0\): reward"):
            bandit.reward_many(decisions, rewards)
        assert bandit.to_bytes() == before


@pytest.mark.parametrize("kind", ["M8[ns]", "m8[ns]", "m8[D]", "S1", "U1", "c8"])
def test_columns_that_are_not_numbers(kind):
    with raises(InvalidReward, parameter="rewards", rule="a number"):
        after_batch(NAMES, np.ones(5, dtype=np.int64).astype(kind))


@pytest.mark.parametrize(
    "arms",
    [
        pl.Series([*NAMES[:4], None], dtype=pl.Categorical),
        np.array([*NAMES[:4], "mars"]),
        [*NAMES[:4], np.nan],
        [*NAMES[:4], ["us"]],
        [*NAMES[:4], {}],
        [*NAMES[:4], np.zeros(2)],
    ],
    ids=str,
)
def test_unknown_arms_are_rejected_with_their_position(arms):
    bandit = rb.Bandit(ARMS, rb.UCB1())
    before = bandit.to_bytes()
    with pytest.raises(UnknownArm, match=r"arms, position 4 \(from 0\): arm .* is unknown: this bandit has 'eu'"):
        bandit.update_many(arms, REWARDS)
    assert bandit.to_bytes() == before


def test_missing_arms_of_pandas():
    pd = pandas()
    for kind in ("category", "string", "object"):
        with pytest.raises(UnknownArm, match=r"arms, position 4"):
            after_batch(pd.Series([*NAMES[:4], None], dtype=kind), REWARDS)
    for dates in (pd.Series(pd.to_datetime(["2020"] * 5)), pd.Series(pd.to_timedelta([1] * 5, unit="s"))):
        with pytest.raises(InvalidReward, match="position 0"):
            after_batch(NAMES, dates)


@pytest.mark.parametrize(
    ("arms", "rewards", "match"),
    [
        (set(ARMS), [1.0] * 3, "arms is a set, and must be a list or a column, in order"),
        ({"eu": 1.0}, [1.0], "arms is a dict"),
        (ARMS, {1.0, 2.0, 3.0}, "rewards is a set"),
        ("eu", [1.0, 2.0], "arms = 'eu' must be a list or a column"),
        (["eu"], "1", "rewards = '1' must be a list"),
        (["eu"], 1.0, "rewards = 1.0 must be a list"),
        (["eu"], np.float64(1), r"rewards is a float64 of shape \(\)"),
        (["eu"], np.ones((1, 1)), r"rewards is a ndarray of shape \(1, 1\).*one dimension"),
        (["eu"], pl.DataFrame({"reward": [1.0]}), r"rewards is a DataFrame of shape \(1, 1\)"),
        (pl.DataFrame({"arm": ["eu"]}), [1.0], r"arms is a DataFrame"),
        (["eu"], pl.LazyFrame({"reward": [1.0]}), "rewards = .*must be a list or a column"),
        (pl.Series(["eu"]), np.ones(2), "1 arms but 2 rewards"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_column(arms, rewards, match):
    with pytest.raises(InvalidInput, match=match):
        after_batch(arms, rewards)


def test_columns_of_decisions():
    for form in (list, np.array, pl.Series, lambda values: np.array(values, dtype=object)):
        bandit, twin = rb.Bandit(ARMS, rb.UCB1()), rb.Bandit(ARMS, rb.UCB1())
        names, its = ([each.decide().id for _ in range(3)] for each in (bandit, twin))
        bandit.reward_many(form([names[j] for j in (2, 0, 1)]), form([4, 5, 6]))
        for number, value in ((2, 4.0), (0, 5.0), (1, 6.0)):
            twin.reward(its[number], value)
        assert bandit.estimates() == twin.estimates()
        before = bandit.to_bytes()
        with pytest.raises(DecisionError, match=r"decisions, position 1 \(from 0\): decision '.*-0' is closed"):
            bandit.reward_many(form([bandit.decide().id, names[0]]), form([1, 1]))
        assert bandit.counters() == {"rewards": 3, "open": 1}
        assert before != bandit.to_bytes()
    with pytest.raises(DecisionError, match=r"position 0 .*decision 3.0 was never made"):
        bandit.reward_many(np.array([3.0]), [1.0])
    with raises(InvalidInput, parameter="decisions", rule="a list or a column"):
        bandit.reward_many({3}, [1.0])


# --- a batch is as good as single updates ---------------------------------------------------------------------------------------

pieces = st.tuples(st.integers(0, 2), st.sampled_from([1, 3, CHUNK - 1, CHUNK, 2 * CHUNK + 5]), st.integers(0, 5))


def drawn(piece):
    arm, count, seed = piece
    rng = np.random.default_rng(seed)
    signs = -1.0 if seed < 3 else 1.0  # rewards above 0 contradict the assumption
    return np.full(count, arm), np.where(rng.random(count) < 0.1, 0.0, signs * rng.pareto(1.5, count))


@given(before=st.lists(pieces, max_size=2), batch=st.lists(pieces, min_size=1, max_size=4), mixed=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_batch_equals_single_updates(before, batch, mixed):
    bandit, twin = rb.Bandit(ARMS, Assuming(), seed=0), rb.Bandit(ARMS, Assuming(), seed=0)
    heard = []
    for stage in (before, batch):
        if not stage:
            continue
        arms, rewards = (np.concatenate(column) for column in zip(*map(drawn, stage), strict=True))
        order = np.random.default_rng(0).permutation(len(arms)) if mixed else slice(None)
        arms, rewards = np.array(ARMS)[arms[order]], rewards[order]
        with warnings.catch_warnings(record=True) as many:
            warnings.simplefilter("always")
            bandit.update_many(arms, rewards)
        with warnings.catch_warnings(record=True) as single:
            warnings.simplefilter("always")
            for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
                twin.update(arm, reward)
        assert [str(w.message) for w in many] == [str(w.message) for w in single]
        heard += many
    assert bandit.to_bytes() == twin.to_bytes()
    assert repr(bandit.diagnose()) == repr(twin.diagnose())
    assert bandit.select() == twin.select()
    assert sum(w.category is AssumptionWarning for w in heard) <= 1


def test_the_batches_above_do_warn():
    """The negative control: without such a warning the equality of warnings would say nothing."""
    bandit = rb.Bandit(ARMS, Assuming())
    arms, rewards = drawn((1, 2 * CHUNK + 5, 4))
    with pytest.warns(AssumptionWarning):
        bandit.update_many(np.array(ARMS)[arms], rewards)
