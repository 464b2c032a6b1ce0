"""Conditions on rows: the language, its errors, and the same rows from every format."""

import re
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.invalid import raises
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
        ("ok is null", [5]),
        ("ok is not null and reward > 3", [4, 6]),
        ("size in (10, 50) or arm like 'b%'", [1, 2, 4, 5, 6]),
        ("size not between 15 and 55", [1, 6]),
        ("reward = 2 or ok is true and size > 20", [2, 3]),
        ("size >= 30", [3, 5, 6]),
        ("size < 2.5e1", [1, 2]),
        ("not size < 25", [3, 5, 6]),
        ("\"model name\" = 'x'", [1, 3, 6]),
        ("\"model name\" = 'y''s'", [2]),
        ("\"model name\" <> 'x'", [2, 5]),
        ("arm <> '5' and size <> '10' and reward < 4", [2, 3]),
        ("arm = 'a' or ok = false and reward > 5", [1, 3, 5, 6]),
        ("(arm = 'a' or ok = false) and reward > 5", [6]),
        ("not (arm = 'a' or ok = false)", [4]),
        ("reward = 1", [1]),
    ],
)
def test_the_same_rows_fit_in_every_format(table, where, rewards):
    if rewards is None:
        with pytest.raises(InvalidInput, match=r"has no column 'OK' \(did you mean 'ok'"):
            kept(table, where)
    else:
        assert kept(table, where) == rewards


@cases(
    ("where", "words"),
    [
        ("", "it names no column; write for example ok = true"),
        ("okay = true", "has no column 'okay'; the columns are 'arm', 'reward', 'ok'"),
        ("siz = 1", "has no column 'siz' (did you mean 'size'?); the columns are 'arm', 'reward', 'ok'"),
        ("ok = yes", "has no column 'yes'; text is written as 'yes', in single quotes; the columns are"),
        ('arm = "a"', "has no column 'a'; text is written as 'a', in single quotes"),
        (
            "'model name' = 'x' or ok = true",
            "'model name' is a value; write a column before =, perhaps in double quotes",
        ),
        ("5 < size", "5 is a value; write a column before <"),
        ("arm = ok", "ok is a column; compare a column with a number, 'text'"),
        ("ok = true and", "; write for example ok = true"),
        ("ok true", "; write for example ok = true"),
        ("ok = ", "; write for example ok = true"),
        ("(ok = true", "; write for example ok = true"),
        ("ok = true)", "')' closes nothing; remove it"),
        ("ok = true ok = false", "; write for example ok = true"),
        ("arm = 'a", '"\'a" is not allowed'),
        ("size % 2 = 0", "'% 2 = 0' is not allowed"),
        ("ok = true -- now", "'-- now' is not allowed"),
        ("ok = true; select 1", "'; select 1' is not allowed"),
        ("size = 1" + "0" * 60, "; write for example ok = true"),
        ("size = 3 or size = 'x'", "'size' is compared with a number and text; use values of one kind"),
        ("ok or upper (arm) = 'A'", "upper(...) is a function; filter the table first; functions are not supported"),
        ("abs(size) > 1", "abs(...) is a function"),
        ("arm(size) = 1", "arm(...) is a function"),
        ('"arm" (size) = 1', "is a function"),
        ("not " * 450 + "ok = true", "; write for example ok = true"),
    ],
)
def test_an_error_names_the_text_and_the_way_out(where, words):
    with pytest.raises(InvalidInput, match=re.escape(words)) as raised:
        open_records(FRAME, where=where)
    assert f"where (--where) {where[:200]!r}: " in str(raised.value)
    assert raised.value.parameter == "where"


@pytest.mark.parametrize(
    "where",
    [
        "reward in (select reward from read_csv('{file}'))",
        "exists (select 1 from read_csv('{file}'))",
        "reward in (table read_csv('{file}'))",
        "reward in (values (1))",
        "E'\\'' = arm or reward in (select reward from read_csv('{file}')) or arm = ''",
        "$$'$$ = arm or reward in (select reward from read_csv('{file}')) or arm = ''",
        "/* ' */ reward in (select reward from read_csv('{file}')) or arm = ''",
        "arm = `'` or reward in (select reward from read_csv('{file}')) or arm = ''",
        "\"read_csv\"('{file}') = 1",
    ],
)
def test_no_condition_reads_a_file(where, tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("reward\n1\n")
    with pytest.raises(InvalidInput, match=r"is not allowed|is a function|has no column"):
        open_records(FRAME, where=where.format(file=file))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("arm", "it is not true or false, but String; write a comparison, such as arm = true"),
        (
            "ts > '2024-01-03'",
            "'ts' holds Datetime, and is compared with text; compare columns of times with timestamp",
        ),
        ("ts = 5", "'ts' holds Datetime, and is compared with a number"),
        ("arm = date '2024-01-03'", "'arm' holds String, and is compared with time"),
        ("size < timestamp '2024-01-03 12:00:00'", "'size' holds Int64, and is compared with time"),
    ],
)
def test_a_condition_that_does_not_fit_the_columns_is_rejected(where, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        open_records(FRAME, where=where).summary()


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_times_are_compared_in_utc(zone):
    frame = FRAME.with_columns(pl.col("ts").dt.replace_time_zone("UTC").dt.convert_time_zone(zone or "UTC"))
    frame = frame if zone else FRAME
    assert kept(frame, "ts >= date '2024-01-03' and ts < timestamp '2024-01-05T12:00:00'") == [3, 4]


@pytest.mark.parametrize("where", [3, ["ok = true"], "ok = true " + "or ok = true " * 200])
def test_what_is_no_condition_is_rejected(where):
    with raises(InvalidInput, parameter="where", rule='a text of at most 2,000 characters, such as "ok = true"'):
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


@cases("name", ["date", "timestamp", "time", "order", "end", "Größe", 'a "b"', "in", "select"])
def test_columns_with_a_meaning_in_sql_are_quoted(name):
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0], name: ["2024-01-01", "2024-02-01"]})
    quoted = '"' + name.replace('"', '""') + '"'
    assert kept(frame, f"{quoted} >= '2024-01-15'") == [2]


def test_a_column_of_dates_may_be_called_date():
    frame = pl.DataFrame(
        {"arm": ["a", "b"], "reward": [1.0, 2.0], "date": [datetime(2024, 1, 1), datetime(2024, 2, 1)]}
    )
    assert kept(frame, "date >= date '2024-01-15'") == [2]


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


def test_if_no_row_fits_the_condition_is_shown():
    with pytest.raises(InvalidInput, match=r"no row fits .*model name.*, of 6$"):
        open_records(FRAME, where="\"model name\" = 'w'").summary()


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


@pytest.mark.parametrize("name", ["current_date", "localtime", "user", "interval", "select", "end"])
def test_a_column_may_be_called_like_a_word_of_sql(name):
    """Polars would read today's date, for example, instead of the column."""
    frame = pl.DataFrame({"arm": ["a", "b", "a"], "reward": [1.0, 2.0, 3.0], name: ["x", "y", "y"]})
    assert kept(frame, f"{name} = 'y'") == [2, 3]
    assert kept(frame, f"reward < 2 or {name} > 'x'") == [1, 2, 3]
