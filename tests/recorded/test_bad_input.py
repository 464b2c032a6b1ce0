"""Everything that can be wrong with a table: an error that names the file, the value, the rule and the way out."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from robandit.errors import CorruptFile, FileError, InvalidInput
from robandit.recorded import cleaning, reader, records
from robandit.recorded.source import open_records


def written(folder: Path, content: bytes | str, name: str = "rewards.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rejection(path: object, kind: type[Exception] = InvalidInput, **options: object) -> str:
    with pytest.raises(kind) as caught:
        open_records(path, **options).summary()  # type: ignore[arg-type]
    message = str(caught.value)
    if isinstance(path, Path):
        assert path.name in message
    assert "\n" not in message
    return message


def test_a_missing_file(tmp_path: Path) -> None:
    assert rejection(tmp_path / "none.csv", FileError).endswith(": No such file or directory; check the path")


def test_a_folder(tmp_path: Path) -> None:
    assert "folder" in rejection(tmp_path, FileError)


def test_a_file_without_permission(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward\na,1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "ermission" in rejection(path, FileError)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a"])
def test_nothing_at_all(tmp_path: Path, name: str) -> None:
    assert "0 bytes" in rejection(written(tmp_path, b"", name))


def test_nothing_once_decompressed(tmp_path: Path) -> None:
    assert "empty once decompressed" in rejection(written(tmp_path, gzip.compress(b""), "a.csv.gz"))


@pytest.mark.parametrize("content", ["arm,reward", "arm,reward\n", "arm,reward\n\n\n"])
def test_only_a_header(tmp_path: Path, content: str) -> None:
    assert "'arm' and 'reward' but no rows" in rejection(written(tmp_path, content))


def test_an_empty_frame() -> None:
    assert "no rows" in rejection(pl.DataFrame({"arm": [], "reward": []}))


def test_missing_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "Server,latency_ms\na,1\n")
    message = rejection(path, arm="Server")
    assert "no column 'reward'" in message
    assert "'Server' and 'latency_ms'" in message
    assert "--reward" in message
    assert "did you mean 'latency_ms'?" in rejection(path, arm="Server", reward="latency")
    assert "did you mean 'Server'?" in rejection(path, arm="server", reward="latency_ms")


@pytest.mark.parametrize("role", ["time", "propensity"])
def test_a_named_column_must_be_there(tmp_path: Path, role: str) -> None:
    assert f"--{role}" in rejection(written(tmp_path, "arm,reward\na,1\n"), **{role: "when"})


def test_one_column_in_two_roles(tmp_path: Path) -> None:
    message = rejection(written(tmp_path, "arm,reward\na,1\n"), arm="reward")
    assert "arm and reward have the same column 'reward'" in message


def test_no_header(tmp_path: Path) -> None:
    assert "first line must name the columns" in rejection(written(tmp_path, "a,1.5\nb,2.5\n"))


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_is_found_out(tmp_path: Path, mark: str) -> None:
    path = written(tmp_path, f"arm{mark}x,y{mark}reward\na{mark}1{mark}2\n")
    assert open_records(path).columns == ("arm", "x,y", "reward")
    assert open_records(path).summary().arms[0].mean == 2.0
    # Also where the expected columns are missing, so that the message names those that exist.
    assert "'arm' and 'value'" in rejection(written(tmp_path, f"arm{mark}value\na{mark}2\n"))


def test_a_delimiter_that_is_not_found_out(tmp_path: Path) -> None:
    path = written(tmp_path, "arm:reward\na:1\n")
    assert "--delimiter" in rejection(path)
    assert open_records(path, delimiter=":").summary().rows == 1
    assert "one character" in rejection(path, delimiter="::")
    assert open_records(written(tmp_path, "arm\treward\na\t1\n"), delimiter="tab").summary().rows == 1


BAD = [
    ("abc", "the reward 'abc' is not a number"),
    ("", "the reward is missing"),
    ("  ", "the reward is missing"),
    ("NaN", "the reward is NaN"),
    ("-nan", "the reward is NaN"),
    ("inf", "the reward inf is infinite"),
    ("-Infinity", "the reward -Infinity is infinite"),
    ("1e400", "the reward 1e400 is infinite"),
    ("1e308", "the reward 1e+308 is beyond +-1e+150, too large to square"),
    (" -1e200 ", "the reward -1e+200 is beyond +-1e+150"),
    ("-1e-200", "the reward -1e-200 is smaller than 1e-130, too small to square; scale all rewards up, or write 0"),
    ("1e-400", "the reward 1e-400 is smaller than 1e-130, too small to square"),
    (" -0.01E-999 ", "the reward -0.01E-999 is smaller than 1e-130"),
    ('"1.234,5"', "the reward '1.234,5' is not a number (write decimals with a point"),
    ('"3,5"', "the reward '3,5' is not a number (write decimals with a point"),
    ('"1,234.5"', "the reward '1,234.5' is not a number (write it without thousands separators"),
    ("1_000", "the reward '1_000' is not a number (write it without thousands separators"),
    ("5ms", "the reward '5ms' is not a number (write the number without a unit"),
    ("0x10", "the reward '0x10' is not a number"),
]


def test_zeros_are_rewards(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward\na,0e-400\na,0.000000\na, -0.0000e+10\nb,-0000000\n")
    assert {arm: list(values) for arm, values in open_records(path).samples().items()} == {"a": [0.0] * 3, "b": [0.0]}


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_a_bad_reward(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, f"arm,reward\na,1\na,{text}\nb,2\n")
    message = rejection(path)
    assert f"1 bad row: line 3: {expected}" in message
    assert "of 3" in message
    assert "--skip-bad" in message
    recorded = open_records(path, skip_bad=True).summary()
    assert (recorded.rows, recorded.bad.count, recorded.bad.unit) == (2, 1, "line")
    assert recorded.bad.first[0][0] == 3
    assert recorded.bad.first[0][1].startswith(expected)


def test_the_first_bad_rows_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward\n" + "a,1\n" * 10 + "a,x\n" * 1234)
    message = rejection(path)
    assert "1,234 bad rows: line 12: " in message
    assert "line 16" in message
    assert "line 17" not in message
    assert "and 1,229 more" in message


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    """Quoted line ends and blank lines count as lines; blank lines are not rows."""
    text = 'arm,reward,note\r\n"a\nb",1,\r\n\r\na,2,"x\ny\nz"\r\nc,?,\r\n\r\n\r\n'
    path = written(tmp_path, text)
    assert "1 bad row: line 8: " in rejection(path)
    assert "(of 3)" in rejection(path)
    recorded = open_records(path, skip_bad=True).summary()
    assert [arm.arm for arm in recorded.arms] == ["a", "a\nb"]
    assert recorded.bad.arms == ("c",)
    assert "no good row for 'c'" in str(recorded.bad)
    packed = written(tmp_path, gzip.compress(path.read_bytes()), "a.csv.gz")
    assert "line 8: " in rejection(packed)


def test_many_blank_lines_are_bad_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first ones are looked up; the others are not dropped silently."""
    monkeypatch.setattr(cleaning, "BLANKS", 2)
    assert "1 bad row: line 5" in rejection(written(tmp_path, "arm,reward\na,1\n\n\n\nb,2\n"))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (",1", "the arm is missing"),
        ('"",1', "the arm is missing"),
        (",", "the arm and the reward are missing"),
        ("a", "the reward is missing"),
    ],
)
def test_a_row_that_lacks_something(tmp_path: Path, row: str, expected: str) -> None:
    path = written(tmp_path, f"arm,reward\nb,1\n{row}\n")
    message = rejection(path)
    assert "line 3: " in message
    assert expected in message
    assert open_records(path, skip_bad=True).summary().bad.count == 1


def test_all_rows_are_bad(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward,cost\na,x,1\nb,y,2\n")
    for skip_bad in (True, False):
        message = rejection(path, skip_bad=skip_bad)
        assert "no good row" in message
        assert "'cost'" in message
        assert "--skip-bad" not in message  # it would not help


@pytest.mark.parametrize(("text", "hint"), [("1e200", "scale all rewards down"), ("5ms", "without a unit")])
def test_a_hint_is_given_once(tmp_path: Path, text: str, hint: str) -> None:
    message = rejection(written(tmp_path, "arm,reward\na,1\n" + f"a,{text}\n" * 4 + 'a,"3,5"\n'))
    assert message.count(hint) == 1
    assert message.index("line 3: ") < message.index(hint) < message.index("line 4: ")
    assert "write decimals with a point" in message  # another hint is


def test_mixed_types_in_json_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path, '{"arm": 1, "reward": 2}\n\n{"arm": "1", "reward": "no"}\n{"reward": null, "arm": true}\n', "a.jsonl"
    )
    message = rejection(path)
    assert "2 bad rows: line 3: the reward 'no' is not a number; line 4: the reward is missing" in message
    recorded = open_records(path, skip_bad=True).summary()
    assert recorded.bad.arms == ("true",)
    assert [(arm.arm, arm.n) for arm in recorded.arms] == [("1", 1)]


def test_what_python_writes_and_json_does_not_know(tmp_path: Path) -> None:
    lines = ['{"arm": "a", "reward": 1.5}'] * 3 + [
        '{"arm": 0.5, "reward": NaN}',
        '{"arm": 0.5, "reward": 1e999}',
        '{"arm": 2.0, "reward": 4}',
    ]
    path = written(tmp_path, "\n".join(lines), "a.jsonl")
    assert "2 bad rows: line 4: the reward is NaN; line 5: the reward inf is infinite" in rejection(path)
    recorded = open_records(path, skip_bad=True).summary()
    assert [(arm.arm, arm.n, arm.mean) for arm in recorded.arms] == [("2", 1, 4.0), ("a", 3, 1.5)]


JSON = [
    (b'{"arm": "a", "reward": 1}\n{"arm": "a", "rew', "line 2 is not JSON"),
    (b'{"arm": "a", "reward": 1}\n[1]\n', "line 2 is not an object"),
    (b'[{"arm": "a", "reward": 1},\n', "one object per line"),
    (b'\xef\xbb\xbf [{"arm": "a", "reward": 1}, {"arm": "a", "reward": 2}]', "one object per line"),
    (b'{"arm": "M\xfcnchen", "reward": 1}\n', "line 1: the byte 0xfc is not UTF-8"),
]


@pytest.mark.parametrize(("content", "expected"), JSON)
def test_damaged_json_lines(tmp_path: Path, content: bytes, expected: str) -> None:
    assert expected in rejection(written(tmp_path, content, "a.jsonl"), CorruptFile)


def test_damage_after_the_first_lines_of_json(tmp_path: Path) -> None:
    content = b'{"arm": "a", "reward": 1}\n' * 3000
    assert "line 3,001 is not JSON" in rejection(written(tmp_path, content + b"oops\n", "a.jsonl"), CorruptFile)


@pytest.mark.parametrize("before", [0, 3, 2000])
@pytest.mark.parametrize(("arm", "expected"), [('{"x": 1}', "an object"), ('["a"]', "a list"), ("[]", "a list")])
def test_nested_arms_in_json_lines(tmp_path: Path, before: int, arm: str, expected: str) -> None:
    lines = '{"arm": "a", "reward": 1}\n' * before + f'{{"arm": {arm}, "reward": 1}}\n'
    message = rejection(written(tmp_path, lines, "a.jsonl"), skip_bad=True)
    assert f"line {before + 1:,}: the field 'arm' holds {expected}: it must hold one name" in message


def test_too_many_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"arm": range(10_001), "reward": 1.0})
    message = rejection(frame)
    assert "more than 10,000 different arms ('0', '1', '2' and 9,998 more)" in message
    assert "--arm" in message
    assert len(open_records(frame.head(10_000)).summary().arms) == 10_000


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    good = io.BytesIO()
    pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0]}).write_parquet(good)
    rejection(written(tmp_path, good.getvalue()[:-20], "a.parquet"), CorruptFile)
    rejection(written(tmp_path, b"PAR1" + bytes(100) + b"PAR1", "a.parquet"), CorruptFile)
    assert "not a Parquet file" in rejection(written(tmp_path, "arm,reward\n", "a.parquet"), CorruptFile)


def test_a_truncated_gz(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3},{i * 0.7}\n" for i in range(50_000))
    packed = gzip.compress(("arm,reward\n" + rows).encode())
    rejection(written(tmp_path, packed[: len(packed) // 2], "a.csv.gz"), CorruptFile)
    rejection(written(tmp_path, packed[:12], "a.csv.gz"), CorruptFile)
    lines = gzip.compress(b'{"arm": "a", "reward": 1}\n' * 50_000)
    rejection(written(tmp_path, lines[: len(lines) // 2], "a.jsonl.gz"), CorruptFile)


def test_another_encoding(tmp_path: Path) -> None:
    message = rejection(written(tmp_path, "arm,reward\nRom,1\nMünchen,2\n".encode("latin-1")), CorruptFile)
    assert "line 3: the byte 0xfc is not UTF-8" in message
    assert "iconv" in message
    assert "iconv" in rejection(written(tmp_path, "arm,reward\na,1\n".encode("utf-16")))
    assert "control character 0x00" in rejection(
        written(tmp_path, "arm,reward\na,1\n".encode("utf-16-le")), CorruptFile
    )


def test_line_ends_of_old(tmp_path: Path) -> None:
    assert "tr " in rejection(written(tmp_path, "arm,reward\ra,1\rb,2\r"))


def test_bytes_that_are_no_table(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(5000).replace(b"\0", b"\r").replace(b"\n", b"\r")
    assert "does not look like a table" in rejection(written(tmp_path, content + b"\n"), CorruptFile)
    path = written(tmp_path, "arm\x01reward\na\x012\n")
    assert "--delimiter" in rejection(path, CorruptFile)
    assert open_records(path, delimiter="\x01").summary().arms[0].mean == 2.0


def test_a_broken_header(tmp_path: Path) -> None:
    assert "line 1 does not name columns" in rejection(written(tmp_path, 'arm,rew"ard\nx"y,1\n'), CorruptFile)


def test_repeated_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward,reward,x,x\na,1,2,3,4\n")
    assert "several columns named 'reward'" in rejection(path)
    assert open_records(path, reward="reward_duplicated_0").summary().arms[0].mean == 2.0
    pandas = pytest.importorskip("pandas")
    assert "several columns" in rejection(pandas.DataFrame([["a", 1.0, 2.0]], columns=["arm", "reward", "reward"]))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("a,1,5", "3 fields, but the header has 2 columns; write decimals with a point"),
        ('"a,1', 'a quote (") is opened here'),
        ('a"b,1', 'a quote (") is opened here'),
    ],
)
def test_a_broken_line(tmp_path: Path, row: str, expected: str) -> None:
    message = rejection(written(tmp_path, f"arm,reward\nb,2\n{row}\nb,2\n"), CorruptFile)
    assert "line 3: " in message
    assert expected in message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([datetime.timedelta(seconds=1)], "a number of seconds"),
        ([datetime.datetime(2020, 1, 1)], "a number of seconds"),
        ([[1.0]], "one value per row"),
        ([{"x": 1.0}], "one value per row"),
        ([b"1"], "one value per row"),
    ],
)
def test_types_that_are_no_rewards(values: list[object], expected: str) -> None:
    assert expected in rejection(pl.DataFrame({"arm": ["a"], "reward": values}))


def test_bad_rows_of_a_frame_are_counted_from_one() -> None:
    frame = pl.DataFrame({"arm": ["a", None, "b", "b"], "reward": [1.0, 2.0, float("nan"), None]})
    message = rejection(frame)
    assert "3 bad rows: row 2: the arm is missing; row 3: the reward is NaN; row 4: the reward is missing" in message
    assert open_records(frame, skip_bad=True).summary().bad.arms == ("b",)


def test_other_files(tmp_path: Path) -> None:
    assert "spreadsheet" in rejection(written(tmp_path, b"PK\x03\x04abc", "a.xlsx"))
    assert "Arrow" in rejection(written(tmp_path, b"ARROW1abc", "a.arrow"))
    assert "DataFrame" in rejection([1, 2, 3])


def test_times_and_propensities_matter_only_where_they_are_used() -> None:
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0], "time": [None, 1.5], "propensity": [0.5, 0.0]})
    records = open_records(frame)
    assert records.summary().bad.count == 0
    with pytest.raises(
        InvalidInput, match=r"2 bad rows: row 1: the time is missing; row 2: the propensity 0 must be > 0"
    ):
        records.log()
    with pytest.raises(InvalidInput, match=r"1 bad row: row 1: the time is missing"):
        records.table()


TIMES = [
    (
        ["2", "1/2/2013 9:00"],
        2,
        "'1/2/2013 9:00' is neither a number nor a date or time in ISO 8601, such as 2013-01-02",
    ),
    (["Monday", "Friday"], 1, "'Monday' is neither"),
    (["2013-01-02", "2013-02-30"], 2, "'2013-02-30' is neither"),
    (["2013-01-02T24:00"], 1, "'2013-01-02T24:00' is neither"),
    (["2013-01-02T09:00+01:60"], 1, "'2013-01-02T09:00+01:60' is neither"),
    (["3013-01-02"], 1, "(years 1678 to 2261)"),
    (["1", "inf"], 2, "'inf' is neither"),
    (
        ["2013-01-02T09:00", "2013-01-02T09:00Z"],
        2,
        "with an offset from UTC, but the first, '2013-01-02T09:00', is a date",
    ),
    (["2013-01-02T09:00+02:00", "2013-01-02"], 2, "without an offset from UTC, but the first"),
    (["2013-01-02", "5"], 2, "'5' is a number, but the first, '2013-01-02', is a date"),
    (["5", "2013-01-02"], 2, "but the first, '5', is a number"),
]


@pytest.mark.parametrize(("times", "row", "expected"), TIMES)
@pytest.mark.parametrize("batch", [1, 100])
def test_times_without_an_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[str], row: int, expected: str, batch: int
) -> None:
    monkeypatch.setattr(reader, "BATCH", batch)
    # A bad row at the beginning shifts the positions, and its time is ignored.
    frame = pl.DataFrame({"arm": "a", "reward": [None, *range(len(times))], "time": ["?", *times]})
    frame.write_csv(tmp_path / "a.csv")
    for table, where in ((frame, f"row {row + 1}"), (tmp_path / "a.csv", f"line {row + 2}")):
        records = open_records(table)
        for ask in (records.table, records.log):
            with pytest.raises(InvalidInput) as caught:
                ask()
            assert f"{where}: the time " in str(caught.value)
            assert expected in str(caught.value)
            assert "--time" in str(caught.value)
            assert "--skip-bad" in str(caught.value)


@pytest.mark.parametrize(("times", "row", "expected"), TIMES)
@pytest.mark.parametrize("batch", [1, 100])
def test_rows_with_bad_times_are_skipped_by_every_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[str], row: int, expected: str, batch: int
) -> None:
    monkeypatch.setattr(reader, "BATCH", batch)
    good = [times[0]] * 3  # the kind of most of the first times is the right one, even if the first row has another
    frame = pl.DataFrame({"arm": "a", "reward": range(4 + len(times)), "time": ["?", *times, *good]})
    frame.write_csv(tmp_path / "a.csv")
    for table, place in ((frame, f"row {row + 1}"), (tmp_path / "a.csv", f"line {row + 2}")):
        records = open_records(table, skip_bad=True)
        found = records.summary()
        if row == 1:  # no time can be read: it is not a column of times
            assert (found.rows, found.bad.count) == (frame.height, 0)
            with pytest.raises(InvalidInput, match="neither a number nor"):
                records.log()
            continue
        kept = frame.height - 2
        assert (found.rows, found.bad.count) == (kept, 2)
        assert f"{place}: the time {times[row - 1]!r} is" in str(found.bad)
        log, samples = records.log(times=True), records.samples()
        assert (len(log.rewards), log.bad.count, samples.counts["a"]) == (kept, 2, kept)
        assert log.times is not None
        assert len(log.times) == kept


def test_large_integers_stay_exact_beside_a_bad_time() -> None:
    first = 2**62
    times = [str(first + 1), str(first), "soon"]
    log = open_records(pl.DataFrame({"arm": "a", "reward": [1.0, 2.0, 3.0], "time": times}), skip_bad=True).log(
        times=True
    )
    assert log.rewards.tolist() == [2.0, 1.0]
    assert log.times is not None
    assert log.times.tolist() == [first, first + 1]


def test_a_blank_is_no_time(tmp_path: Path) -> None:
    path = written(
        tmp_path, '{"arm": "a", "reward": 1, "time": " "}\n{"arm": "a", "reward": 1, "time": 2}\n', "a.jsonl"
    )
    with pytest.raises(InvalidInput, match="1 bad row: line 1: the time is missing"):
        open_records(path).log()


def test_too_many_rows_to_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert records.MOST_ROWS * records.BYTES <= 4e9
    monkeypatch.setattr(records, "MOST_ROWS", 3)
    frame = pl.DataFrame({"arm": ["a"] * 4, "reward": [1.0] * 4, "time": [1, 2, 3, 4]})
    with pytest.raises(InvalidInput, match="has 4 rows"):
        open_records(frame).table()
    frame.write_csv(tmp_path / "a.csv")
    with pytest.raises(InvalidInput, match="at least 4 rows"):
        open_records(tmp_path / "a.csv").log()
    assert open_records(frame.head(3)).log().rewards.size == 3


@pytest.mark.parametrize("batch", [7, 1_000])
def test_the_first_time_that_can_be_read_decides_the_kind(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(reader, "BATCH", batch)
    times = ["n/a"] * 100 + ["7"] + [f"2024-01-{day:02d}" for day in range(1, 29)] + ["8"] * 40
    frame = pl.DataFrame({"arm": ["a", "b"] * (len(times) // 2) + ["a"] * (len(times) % 2), "time": times})
    records = open_records(frame.with_columns(reward=1.0), skip_bad=True)
    log = records.log(times=True)
    assert (len(log.rewards), log.bad.count) == (41, len(times) - 41)
    assert records.summary().rows == sum(records.samples().counts.values()) == 41
    only = open_records(frame.with_columns(reward=1.0), skip_bad=True, where="time like '2024%' or time = 'n/a'")
    assert (len(only.log().rewards), only.log().bad.count) == (28, 100), "dropped rows do not count"


def test_times_of_which_none_can_be_read_are_named() -> None:
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1.0, 2.0], "when": ["n/a", "soon"]})
    records = open_records(frame, time="when", skip_bad=True)
    assert records.summary().rows == 2, "a summary needs no times"
    for ask in (records.log, records.table):
        with pytest.raises(
            InvalidInput, match="no time in the column 'when' can be read: the time 'n/a' is neither"
        ) as caught:
            ask()
        assert "skip" not in str(caught.value), "it is given already"
        assert "ISO 8601" in str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "spool")
    Path(name).touch()
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), name))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"arm,reward\n" + b"a,1\n" * 10**5)))
    with pytest.raises(FileError, match=r"the standard input cannot be copied to .*No space left on device.*TMPDIR"):
        open_records("-")
    assert list(tmp_path.iterdir()) == []


def test_a_rejected_standard_input_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for content, expected in ((b"x,y\n1,2\n", "the standard input has no column 'arm'"), (b"", "0 bytes")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(InvalidInput, match=expected):
            open_records("-")
    assert list(tmp_path.iterdir()) == []


def test_a_sum_of_rewards_in_memory_is_checked() -> None:
    from robandit.recorded import Recorded

    for rewards, expected in [
        ({}, "at least one arm"),
        ({"a": []}, "at least one number"),
        ({"a": [1.0, np.nan]}, r"rewards\['a'\]\[1\] = nan must be"),
        ({"a": ["x"]}, "array of numbers"),
        ({"a": [1e200]}, "squared"),
        ({"a": [0.0, 1e-200]}, "0 or at least 1e-130 in size"),
        ({1: [1.0], "1": [2.0]}, "same name"),
    ]:
        with pytest.raises(InvalidInput, match=expected):
            Recorded.of(rewards)  # type: ignore[arg-type]
