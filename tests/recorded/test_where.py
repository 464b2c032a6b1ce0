"""Conditions on rows: the language, its errors, and the same rows from every format."""

import re
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robandit.errors import InvalidInput
from robandit.recorded import open_records, reader
from robandit.recorded.where import parse_condition

FRAME = pl.DataFrame(
    {
        "arm": ["a", "b", "a", "b", "a", "b"],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "ok": [True, False, True, True, None, False],
        "size": [10, 20, 30, None, 50, 60],
        "model name": ["x", "y's", "x", None, "z", "x"],
        "ts": [datetime(2024, 1, day, 12) for day in range(1, 7)],
    }
)


def kept(table, where):
    """Return the rewards of the rows that fit, in order."""
    arms = open_records(table, where=where).samples()
    return sorted(reward for rewards in arms.values() for reward in rewards.tolist())


@pytest.fixture(scope="module", params=["polars", "lazy", "pandas", "csv", "tsv", "parquet", "jsonl", "csv.gz"])
def table(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("where") / f"log.{request.param}"
    text = FRAME.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S"))
    match request.param:
        case "polars":
            return FRAME
        case "lazy":
            return FRAME.lazy()
        case "pandas":
            return pytest.importorskip("pandas").DataFrame(FRAME.to_dict(as_series=False))
        case "parquet":
            FRAME.write_parquet(path)
        case "jsonl":
            text.write_ndjson(path)
        case "csv.gz":
            import gzip

            path.write_bytes(gzip.compress(text.write_csv().encode()))
        case _:
            text.write_csv(path, separator="\t" if request.param == "tsv" else ",")
    return path


@pytest.mark.parametrize(
    ("where", "rewards"),
    [
        ("ok = true", [1, 3, 4]),
        ("ok != true", [2, 6]),
        ("OK = TRUE", None),
        ("ok == TRUE", [1, 3, 4]),
        ("not ok = true", [2, 6]),
        ("ok = null", [5]),
        ("ok != null and reward > 3", [4, 6]),
        ("size >= 30", [3, 5, 6]),
        ("size < 2.5e1", [1, 2]),
        ("not size < 25", [3, 5, 6]),
        ("'model name' = 'x'", [1, 3, 6]),
        ('"model name" = "y\'s"', [2]),
        ("'model name' = 'y''s'", [2]),
        ("'model name' != 'x'", [2, 5]),
        ("arm = 'a' or ok = false and reward > 5", [1, 3, 5, 6]),
        ("(arm = 'a' or ok = false) and reward > 5", [6]),
        ("not (arm = 'a' or ok = false)", [4]),
        ("ts >= '2024-01-03' and ts < '2024-01-05T00:00:00'", [3, 4]),
        ("reward = 1", [1]),
    ],
)
def test_the_same_rows_fit_in_every_format(table, where, rewards):
    if rewards is None:
        with pytest.raises(InvalidInput, match="has no column 'OK'; did you mean 'ok'"):
            kept(table, where)
    else:
        assert kept(table, where) == rewards


@pytest.mark.parametrize(
    ("where", "place", "words"),
    [
        ("", 1, "the end is not a column"),
        ("okay = true", 1, "has no column 'okay'; did you mean 'ok'? The columns are 'arm', 'reward', 'ok'"),
        ("zzz = true", 1, "has no column 'zzz'; the columns are 'arm'"),
        ("ok = yes", 6, "'yes' is not a value; text is written in quotes, as 'yes'"),
        ("ok = true and", 14, "the end is not a column"),
        ("ok", 3, "the end is not a comparison"),
        ("ok true", 4, "'true' is not a comparison"),
        ("ok = ", 6, "the end is not a value"),
        ("(ok = true", 11, "close the parenthesis"),
        ("ok = true)", 10, "')' is not expected here"),
        ("ok = true ok = false", 11, "write 'and' or 'or' between two comparisons"),
        ("ok < true", 6, "cannot be compared with <"),
        ("arm = 'a", 7, "a quote is opened here and never closed"),
        ("size % 2 = 0", 6, "'%' is not allowed"),
        ("size = 1x", 8, "is not allowed"),
        ("size = 1e999", 8, "is too large"),
        ("size < '9'", 8, "write 9 without quotes to compare numbers"),
        ("len(arm) = 1", 1, "has no column 'len'"),
        ("not " * 60 + "ok = true", 201, "nested too deeply"),
        ("(" * 60 + "ok = true", 51, "nested too deeply"),
    ],
)
def test_an_error_names_the_place_and_the_way_out(where, place, words):
    with pytest.raises(InvalidInput, match=re.escape(words)) as raised:
        open_records(FRAME, where=where)
    assert f"character {place}" in str(raised.value)
    assert "--where" in str(raised.value)


@pytest.mark.parametrize("where", [3, ["ok = true"], "ok = true " + "or ok = true " * 200])
def test_what_is_no_condition_is_rejected(where):
    with pytest.raises(InvalidInput, match="where must be a text of at most 2,000 characters"):
        open_records(FRAME, where=where)


@pytest.mark.parametrize("kind", ["frame", "unsigned", "text", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("where", "rewards"),
    [
        ("id = 9007199254740993", [2]),
        ("id != 9007199254740993", [1, 3]),
        ("id <= 9007199254740992", [1]),
        ("id > +9007199254740992", [2, 3]),
        ("id > -9007199254740993", [1, 2, 3]),
        ("id = 9007199254740992", [1]),
        ("id < 1" + "0" * 60, [1, 2, 3]),
    ],
)
def test_integers_are_not_rounded(kind, where, rewards, tmp_path):
    numbers = [2**53, 2**53 + 1, 2**53 + 2]
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [1.0, 2.0, 3.0], "id": numbers})
    if kind in ("unsigned", "text"):
        frame = frame.with_columns(pl.col("id").cast(pl.UInt64 if kind == "unsigned" else pl.String))
    path = tmp_path / f"log.{kind}"
    if write := {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}.get(kind):
        write(path)
    assert kept(path if write else frame, where) == rewards


def test_a_large_integer_is_compared_with_any_column():
    columns = {"float": [2.0**60, 1.0], "text": ["2e19", "x"], "bool": [True, False], "ts": [datetime(2024, 1, 1)] * 2}
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0]} | columns)
    assert kept(frame, "float = 1152921504606846976") == [1]
    assert kept(frame, "text > 9007199254740993") == [1]
    assert kept(frame, "bool < 9007199254740993") == [1, 2]
    with pytest.raises(InvalidInput, match="no row fits"):
        kept(frame, "ts != 9007199254740993")


def test_kept_and_dropped_rows_are_counted_without_blank_lines(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,ok\na,1,true\n\nb,2,false\nb,3,\na,x,false\n\n")
    records = open_records(path, where="ok = true")  # the bad reward is dropped, not an error
    assert (records.summary().filtered.kept, records.summary().filtered.dropped) == (1, 3)
    assert str(records.samples().filtered) == "--where 'ok = true' keeps 1 row and drops 3"
    assert open_records(FRAME).summary().filtered is None


def test_a_bad_row_that_fits_is_named_by_its_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,ok\na,1,true\nb,2,false\n\nb,oops,true\n")
    with pytest.raises(InvalidInput, match=r"line 5: the reward 'oops' is not a number; no good row for 'b' \(of 2\)"):
        open_records(path, where="ok = true").samples()
    skipping = open_records(path, where="ok = true", skip_bad=True)
    assert skipping.samples().counts == {"a": 1}


def test_if_no_row_fits_the_values_are_shown():
    with pytest.raises(InvalidInput, match=r"no row fits .*'model name' = 'w'.*, of 6.*'x', \"y's\" and 'z'"):
        open_records(FRAME, where="'model name' = 'w'").summary()


def test_an_unclear_time_is_rejected():
    with pytest.raises(InvalidInput, match="'ts' holds times; the time 'yesterday' is neither"):
        open_records(FRAME, where="ts > 'yesterday'").summary()
    with pytest.raises(InvalidInput, match="'ts' holds times, and '5' is none"):
        open_records(FRAME, where="ts = '5'").summary()


def test_a_repeated_column_is_rejected(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,ok,ok\na,1,true,true\n")
    with pytest.raises(InvalidInput, match="several columns named 'ok'"):
        open_records(path, where="ok = true")


def test_the_sample_and_the_log_do_not_depend_on_the_batches(monkeypatch, tmp_path):
    path = tmp_path / "log.csv"
    frame = pl.DataFrame({"arm": ["a", "b"] * 500, "reward": range(1000), "ok": ["1", "0", "true"] * 333 + ["0"]})
    frame.with_columns(time=1000 - pl.col("reward")).write_csv(path)
    whole = open_records(path, where="ok = true")
    expected, log = whole.samples(most=50), whole.log()
    monkeypatch.setattr(reader, "BATCH", 64)
    small = open_records(path, where="ok = true")
    assert {arm: x.tolist() for arm, x in small.samples(most=50).items()} == {
        a: x.tolist() for a, x in expected.items()
    }
    assert small.log().rewards.tolist() == log.rewards.tolist() == sorted(log.rewards.tolist(), reverse=True)


@given(st.text(alphabet="ok arm=!<>()'\"andornttrue0.5e-null", max_size=40))
def test_any_text_is_a_condition_or_is_rejected_by_name(text):
    try:
        condition = parse_condition(text, FRAME.columns, "the frame")
    except InvalidInput:  # any other error fails the test
        return
    assert condition.columns


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"ts": [1, 2]}, "ts"),
        ({"created_at": [1.5, 2.5]}, "created_at"),
        ({"x": ["2024-01-01", "2024-01-02"]}, "x"),
        ({"x": [datetime(2024, 1, 1), datetime(2024, 1, 2)]}, "x"),
        ({"latency": [1, 2], "n": ["1", "2"]}, None),
        ({"ts": ["a", "b"]}, None),
        ({"time": [1, 2], "ts": [1, 2]}, None),  # "time" is used
        ({"date": [None, None]}, None),
    ],
)
@pytest.mark.parametrize("ending", ["frame", "csv", "jsonl", "parquet"])
def test_a_column_that_looks_like_a_time_is_found(columns, name, ending, tmp_path):
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0]} | columns)
    path = tmp_path / f"log.{ending}"
    if ending != "frame":
        {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    assert open_records(frame if ending == "frame" else path).unused_time == name
