"""The same table in every format gives the same records; the table, the log and the sample of it."""

from __future__ import annotations

import datetime
import gc
import gzip
import io
import math
import os
import sys
import threading
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.rewards import rewards_within
from robandit.errors import InvalidInput
from robandit.recorded import Incomplete, Log, Recorded, Table, reader, records
from robandit.recorded.source import open_records

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1, max_size=5
)
REWARDS = st.one_of(rewards_within(), st.integers(-3, 3).map(float))
TABLES = st.lists(st.tuples(NAMES, REWARDS), min_size=1, max_size=20)


def same(one: Recorded, other: Recorded) -> bool:
    def plain(recorded: Recorded) -> list[object]:
        return [
            (
                a.arm,
                a.n,
                a.zeros,
                a.mean,
                a.least,
                a.greatest,
                a.sample.tolist(),
                a.whole,
                a.smallest.tolist(),
                a.largest.tolist(),
            )
            for a in recorded.arms
        ]

    return plain(one) == plain(other) and (one.rows, one.bad.count) == (other.rows, other.bad.count)


def write(frame: pl.DataFrame, folder: Path) -> list[Path]:
    """In every format; floats in text have as many digits as they need."""
    frame.write_csv(folder / "a.csv", quote_style="non_numeric")
    frame.write_csv(folder / "a.tsv", separator="\t", quote_style="non_numeric")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_parquet(folder / "a.parquet")
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    (folder / "a.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    (folder / "bom").write_bytes(b"\xef\xbb\xbf" + (folder / "a.csv").read_bytes())
    return sorted(folder.iterdir())


def by_hand(rows: list[tuple[str, float]]) -> Recorded:
    arms: dict[str, list[float]] = {}
    for arm, reward in rows:
        arms.setdefault(arm, []).append(reward)
    return Recorded.of(arms)


@settings(max_examples=25, deadline=None)
@given(TABLES)
def test_every_format_says_the_same(rows: list[tuple[str, float]]) -> None:
    frame = pl.DataFrame(rows, schema={"arm": pl.String, "reward": pl.Float64}, orient="row")
    expected = by_hand(rows)
    assert same(open_records(frame).summary(), expected)
    with TemporaryDirectory() as folder:
        for path in write(frame, Path(folder)):
            recorded = open_records(path).summary()
            assert same(recorded, expected), path
            assert not any(math.copysign(1.0, x) < 0.0 for arm in recorded.arms for x in arm.sample[arm.sample == 0.0])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(NAMES, st.integers(-999, 999).map(lambda x: x / 8)), min_size=1, max_size=30), st.integers(1, 7)
)
def test_batches_do_not_matter(rows: list[tuple[str, float]], batch: int) -> None:
    frame = pl.DataFrame(rows, schema={"arm": pl.String, "reward": pl.Float64}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SAMPLE", 3)
        whole = open_records(frame).summary()
        patch.setattr(reader, "BATCH", batch)
        seen: list[tuple[int, int | None]] = []
        parts = open_records(frame).summary(lambda done, total: seen.append((done, total)))
    assert same(whole, parts)
    assert seen[-1] == (len(rows), len(rows))
    assert len(seen) >= len(rows) // batch


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), min_size=1, max_size=60), st.integers(1, 12))
def test_a_sample_is_a_part_of_the_rewards(rows: list[tuple[str, int]], most: int) -> None:
    frame = pl.DataFrame(rows, schema=["arm", "reward"], orient="row")
    samples = open_records(frame).samples(most)
    for arm, count in samples.counts.items():
        mine = [float(reward) for name, reward in rows if name == arm]
        left = iter(mine)
        assert count == len(mine)
        assert samples[arm].size == min(most, count)
        assert all(reward in left for reward in samples[arm].tolist())  # in the order of the file
    assert samples.whole == all(count <= most for count in samples.counts.values())
    assert list(samples) == sorted(samples.counts)


def test_a_sample_is_shared_by_many_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SAMPLES_TOTAL", 40)
    frame = pl.DataFrame({"arm": [i % 10 for i in range(1000)], "reward": range(1000)})
    recorded = open_records(frame).summary()
    assert [arm.sample.size for arm in recorded.arms] == [4] * 10
    assert not any(arm.whole for arm in recorded.arms)
    assert [arm.mean for arm in recorded.arms] == [495.0 + i for i in range(10)]
    monkeypatch.setattr(reader, "BATCH", 7)
    assert same(recorded, open_records(frame).summary())


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([3, 4], ["3", "4"]),
        ([3.0, 4.5], ["3.0", "4.5"]),
        ([True, False], ["true", "false"]),
        ([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)], ["2020-01-02", "2020-01-03"]),
        (pl.Series(["x", " x"], dtype=pl.Categorical), ["x", " x"]),
        (pl.Series(["x", "x "], dtype=pl.Enum(["x", "x "])), ["x", "x "]),
    ],
)
def test_arms_become_text(values: object, texts: list[str]) -> None:
    recorded = open_records(pl.DataFrame({"arm": values, "reward": [1, 2]})).summary()
    assert {arm.arm: arm.mean for arm in recorded.arms} == {texts[0]: 1.0, texts[1]: 2.0}


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([True, False], [1.0, 0.0]),
        ([Decimal("1.5"), Decimal("-2.25")], [1.5, -2.25]),
        ([1, 2**62], [1.0, 2.0**62]),
        (pl.Series([1.5, 2.5], dtype=pl.Float32), [1.5, 2.5]),
        (["1.5", " 2.5 "], [1.5, 2.5]),
        (["true", "False"], [1.0, 0.0]),
        (["+1e3", ".5"], [1000.0, 0.5]),
        (pl.Series(["1", "2"], dtype=pl.Categorical), [1.0, 2.0]),
    ],
)
def test_rewards_become_floats(tmp_path: Path, values: object, numbers: list[float]) -> None:
    frame = pl.DataFrame({"arm": ["a", "a"], "reward": values})
    assert open_records(frame).summary().arms[0].sample.tolist() == numbers
    frame.write_csv(tmp_path / "a.csv")
    assert open_records(tmp_path / "a.csv").summary().arms[0].sample.tolist() == numbers


def test_names_are_text_in_csv_and_numbers_of_json_have_one_form(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("arm,reward\r\n007,1\r\n7,2\r\n7.0,3\r\n")
    assert [arm.arm for arm in open_records(tmp_path / "a.csv").summary().arms] == ["007", "7", "7.0"]
    (tmp_path / "a.jsonl").write_text(
        '{"arm": 7, "reward": 1}\n{"arm": 7.0, "reward": true}\n{"arm": 0.5, "reward": "3"}\n'
    )
    recorded = open_records(tmp_path / "a.jsonl").summary()
    assert [(arm.arm, arm.n, arm.mean) for arm in recorded.arms] == [("0.5", 1, 3.0), ("7", 2, 1.0)]


@pytest.mark.skipif(os.name == "nt", reason="Windows allows no such names")
@pytest.mark.parametrize("name", ["[1]", "*", "?", "["])
def test_names_that_look_like_patterns(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [1.0, 2.0, 3.0]})
    for folder, content in ((tmp_path / "1", frame.with_columns(reward=7.0)), (tmp_path / name, frame)):  # [1] fits 1
        folder.mkdir()
        paths = write(content, folder)
    for path in paths:
        odd = path.rename(path.with_name(name + path.name))
        assert same(open_records(odd).summary(), by_hand(frame.rows())), odd
        odd.rename(path)
        assert same(open_records(path).summary(), by_hand(frame.rows())), path


def test_zstd_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(InvalidInput, match="compressed with zstd: decompress it first"):
        open_records(tmp_path / "a.csv.zst")


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "arm": ["b", "a", "a"],
            "reward": [1.0, 2.0, 4.0],
            "time": pandas.to_datetime(["2020-01-02", "2020-01-01", "2020-01-03"], utc=True),
            "mixed": [1, "x", None],
            "kind": pandas.Categorical(["u", "v", None]),
            "count": pandas.array([1, None, 3], dtype="Int64"),
        }
    )
    records = open_records(frame)
    assert {arm.arm: arm.sample.tolist() for arm in records.summary().arms} == {"a": [2.0, 4.0], "b": [1.0]}
    assert records.log().rewards.tolist() == [2.0, 1.0, 4.0]
    with pytest.raises(InvalidInput, match="row 2: the reward 'x' is not a number; row 3: the reward is missing"):
        open_records(frame, reward="mixed").summary()
    with pytest.raises(InvalidInput, match="1 bad row: row 3: the arm is missing"):
        open_records(frame, arm="kind").summary()
    with pytest.raises(InvalidInput, match="1 bad row: row 2: the reward is missing"):
        open_records(frame, reward="count").summary()


TIMES = [
    [2, 1, 10],
    [2.5, -1.0, 10.0],
    [datetime.date(2020, 2, 1), datetime.date(2020, 1, 31), datetime.date(2020, 10, 1)],
    [datetime.datetime(2020, 2, 1, 5), datetime.datetime(2020, 2, 1, 4), datetime.datetime(2020, 10, 1)],
    [Decimal("2.5"), Decimal("-1.25"), Decimal("10.0")],
    ["2", "1", "10"],
    [" 2.5", "-1", "1e1"],
    ["2013-02", "2013-01", "2013-10"],
    ["2013-01-02", "1999-12-31", "2013-01-03"],
    ["2013-01-02 09:00", "2013-01-02", "2013-01-02T09:00:00.5"],
    ["2013-01-02T00:30+01:00", "2013-01-01T23:29:59Z", "2013-01-01T22:30:00.000000001-01:00"],
    ["2013-01-02 09:00 UTC", "2013-01-02t08:00:00,999z", "2013-01-02T01:01-0800"],
]


@pytest.mark.parametrize("times", TIMES)
def test_the_order_of_time(tmp_path: Path, times: list[object]) -> None:
    frame = pl.DataFrame({"arm": ["x", "y", "x"], "reward": [1, 2, 3], "time": times, "propensity": [0.5, 1.0, 0.25]})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_ndjson(tmp_path / "a.jsonl")
    for table in (frame, tmp_path / "a.csv", tmp_path / "a.jsonl"):
        log = open_records(table).log()
        assert log.arms == ("x", "y")
        assert log.actions.tolist() == [1, 0, 0]
        assert log.rewards.tolist() == [2.0, 1.0, 3.0]
        assert log.propensities is not None
        assert log.propensities.tolist() == [1.0, 0.5, 0.25]


def test_the_kind_of_time_may_differ_from_batch_to_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH", 1)
    for times in (["10", "9.5", "2"], ["2013-01-03", "2013-01-02T10:00", "2013-01-02"]):
        frame = pl.DataFrame({"arm": ["x", "x", "x"], "reward": [3, 2, 1], "time": times})
        assert open_records(frame).log().rewards.tolist() == [1.0, 2.0, 3.0]


def test_offsets_of_one_instant_make_one_time() -> None:
    times = ["2013-01-02T09:00+01:00", "2013-01-02T08:00Z", "2013-01-02T10:00Z"]
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [1, 2, 3], "time": times})
    table = open_records(frame.head(2)).table()
    assert isinstance(table, Table)
    assert table.rewards.tolist() == [[1.0, 2.0]]
    incomplete = open_records(frame).table()
    assert isinstance(incomplete, Incomplete)
    assert "arm 'b' has no reward at time 2013-01-02T10:00Z (1 of 4" in incomplete.reason


def test_a_lazy_frame() -> None:
    frame = pl.LazyFrame({"arm": ["b", "a", "b"], "reward": [1, 2, 3], "time": [3, 2, 1]})
    records = open_records(frame.filter(pl.col("reward") > 1))
    assert {arm.arm: arm.mean for arm in records.summary().arms} == {"a": 2.0, "b": 3.0}
    assert records.log().rewards.tolist() == [3.0, 2.0]


def test_names_in_json_may_look_like_lists(tmp_path: Path) -> None:
    lines = ['{"arm": "a", "reward": 1}'] * 3 + ['{"arm": "[1]", "reward": 2}', '{"arm": "{}", "reward": 3}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    recorded = open_records(tmp_path / "a.jsonl").summary()
    assert [(arm.arm, arm.n, arm.mean) for arm in recorded.arms] == [("[1]", 1, 2.0), ("a", 3, 1.0), ("{}", 1, 3.0)]


def test_rows_of_one_time_stay_in_order() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"arm": rng.integers(0, 3, 5000), "reward": np.arange(5000.0), "time": rng.integers(0, 9, 5000)}
    )
    log = open_records(frame).log()
    order = np.argsort(frame["time"].to_numpy(), kind="stable")
    assert log.rewards.tolist() == order.tolist()
    assert log.actions.tolist() == frame["arm"].to_numpy()[order].tolist()
    untimed = open_records(frame.drop("time")).log()
    assert untimed.rewards.tolist() == list(range(5000))
    assert untimed.propensities is None


def test_a_table() -> None:
    times = [3, 1, 2, 1, 3, 2]
    frame = pl.DataFrame({"arm": list("bbbaaa"), "reward": [32, 12, 22, 11, 31, 21], "when": times})
    table = open_records(frame, time="when").table()
    assert isinstance(table, Table)
    assert table.arms == ("a", "b")
    assert table.times.tolist() == [1, 2, 3]
    assert table.rewards.tolist() == [[11.0, 12.0], [21.0, 22.0], [31.0, 32.0]]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("a", 1), ("b", 1), ("a", 2)], "arm 'b' has no reward at time 2 (1 of 4 rewards are missing)"),
        ([("b", 1), ("a", 2), ("b", 2)], "arm 'a' has no reward at time 1 (1 of 4 rewards are missing)"),
        ([("a", 1), ("b", 1), ("b", 1), ("a", 2)], "arm 'b' has 2 rewards at time 1"),
        ([("a", 1), ("b", 1), ("b", 1)], "arm 'b' has 2 rewards at time 1"),
        ([("a", 1), ("b", 2), ("c", 3)], "arm 'b' has no reward at time 1 (6 of 9 rewards are missing)"),
    ],
)
def test_an_incomplete_table(rows: list[tuple[str, int]], reason: str) -> None:
    frame = pl.DataFrame(rows, schema=["arm", "time"], orient="row").with_columns(reward=1.0)
    table = open_records(frame).table()
    assert isinstance(table, Incomplete)
    assert reason in table.reason


def test_no_time_no_table() -> None:
    table = open_records(pl.DataFrame({"arm": ["a"], "reward": [1.0]})).table()
    assert isinstance(table, Incomplete)
    assert "--time" in table.reason


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False), st.booleans())
def test_a_table_is_found_whatever_the_order(times: int, arms: int, random: object, damage: bool) -> None:
    cells = [(f"arm {a}", t, float(t * 10 + a)) for t in range(times) for a in range(arms)]
    if damage and len(cells) > 1:
        cells[-1] = (cells[0][0], cells[0][1], -1.0)
    random.shuffle(cells)  # type: ignore[attr-defined]
    table = open_records(pl.DataFrame(cells, schema=["arm", "time", "reward"], orient="row")).table()
    # With one of two cells moved onto the other, an arm or a time is gone, and what is left may only be doubled.
    if damage and len(cells) > 1:
        assert isinstance(table, Incomplete)
    else:
        assert isinstance(table, Table)
        assert table.rewards.tolist() == [[float(t * 10 + a) for a in range(arms)] for t in range(times)]


def test_bad_rows_may_be_left_out_of_the_log() -> None:
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [None, 2.0, 3.0], "time": [3, 2, 1]})
    log = open_records(frame, skip_bad=True).log()
    assert isinstance(log, Log)
    assert log.rewards.tolist() == [3.0, 2.0]
    assert log.bad.first == ((1, "the reward is missing"),)


def test_an_arm_without_a_good_row_is_not_in_the_log() -> None:
    frame = pl.DataFrame({"arm": ["b", "a", "c"], "reward": [1.0, None, 3.0], "time": [1, 1, 1]})
    log = open_records(frame, skip_bad=True).log()
    assert (log.arms, log.actions.tolist(), log.bad.arms) == (("b", "c"), [0, 1], ("a",))


@pytest.mark.parametrize("value", [None, 0.5])
@pytest.mark.parametrize("blank", [None, " ", "NaN"])
def test_an_empty_column_of_propensities_is_ignored(tmp_path: Path, value: float | None, blank: str | None) -> None:
    rows = 200
    chances = pl.Series("propensity", [None] * (rows - 1) + [value], dtype=pl.Float64)
    frame = pl.DataFrame({"arm": ["a"] * rows, "reward": [1.0] * rows, "propensity": chances})
    if blank is not None:
        frame = frame.with_columns(pl.col("propensity").cast(pl.String).fill_null(blank))
    for source in (frame, frame.lazy(), *write(frame, tmp_path)):
        records = open_records(source)
        assert records.propensity == (None if value is None else "propensity")
        with pytest.raises(InvalidInput, match="the propensity is"):
            open_records(source, propensity="propensity").log()
        if value is None:
            assert records.log().propensities is None


def test_the_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"arm;reward\na;1\na;3\n")))
    records = open_records("-")
    assert records.source == "the standard input"
    assert records.summary().arms[0].mean == 2.0
    assert records.log().rewards.tolist() == [1.0, 3.0]
    assert len(list(tmp_path.iterdir())) == 1
    del records
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1/experiments/provider", "HTTPS://example.org/waits.csv?key=rk"]
)
def test_a_url_names_the_way_out(url: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"path is a URL: .*curl -L URL \| robandit diagnose - .*polars.read_csv\(URL\)"
    ):
        open_records(url)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("arm,reward\na,1\n",))
    writer.start()
    assert open_records(pipe).summary().rows == 1
    writer.join()


def test_a_single_arm_is_allowed() -> None:
    assert len(open_records(pl.DataFrame({"arm": ["a"], "reward": [1.0]})).summary().arms) == 1


def test_the_mean_of_rewards_of_very_different_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    rewards = np.concatenate([[1e16], np.ones(9_999), [-1e16], rng.standard_t(1.1, 20_000)])
    monkeypatch.setattr(records, "SAMPLE", 100)
    monkeypatch.setattr(reader, "BATCH", 1 << 12)
    arm = open_records(pl.DataFrame({"arm": "a", "reward": rewards})).summary().arms[0]
    exact = math.fsum(rewards) / rewards.size
    assert not arm.whole
    assert arm.mean == pytest.approx(exact, rel=1e-15)
    assert abs(rewards.sum() / rewards.size - exact) > 1e-9 * abs(exact)  # a plain sum does not do
