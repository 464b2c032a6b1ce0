"""`robandit diagnose`: unused columns, the sign of costs, and arms that changed with time."""

import html

import numpy as np
import pytest

from robandit.cli.diagnose import diagnose
from robandit.cli.replay import replay
from robandit.cli.table_options import Reading
from robandit.errors import InvalidInput
from robandit.experiments import replay_plan


@pytest.mark.parametrize("column", ["propensity", "other"])
def test_propensities_are_reported_not_to_be_used(column, tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[i % 2]},{rng.normal()},0.5" for i in range(80)]
    (tmp_path / "log.csv").write_text("\n".join([f"arm,reward,{column}", *rows]))
    diagnose(str(tmp_path / "log.csv"), out=tmp_path / "page.html")
    for text in (capsys.readouterr().out, (tmp_path / "page.html").read_text()):
        assert ("is not used here; robandit replay uses it as weights." in text) == (column == "propensity")


def a_table(folder):
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[i % 2]},{i % 2 + 1.0 + rng.pareto(2.5):.3f}" for i in range(400)]
    (folder / "waits.csv").write_text("\n".join(["server,seconds", *rows]))
    return str(folder / "waits.csv")


def test_costs_keep_their_sign(tmp_path, capsys):
    file = a_table(tmp_path)
    diagnose(file, reading=Reading(arm="server", reward="seconds", minimize=True), out=tmp_path / "page.html")
    text, page = " ".join(capsys.readouterr().out.split()), (tmp_path / "page.html").read_text()
    assert "400 costs of 2 arms, minimised" in text
    assert "'a' has the lowest mean, 1." in " ".join(text.split())
    assert "Costs are minimised." in page
    assert "--minimize" in page
    assert "reward" not in text.replace("reward=", "")
    diagnose(file, reading=Reading(arm="server", reward="seconds", negate=True), out=tmp_path / "page.html")
    assert "'a' has the highest mean, -1." in " ".join(capsys.readouterr().out.split())


def test_one_sign_is_enough(tmp_path):
    reading = Reading(arm="server", reward="seconds", minimize=True, negate=True)
    with pytest.raises(InvalidInput, match="would turn the sign twice"):
        diagnose(a_table(tmp_path), reading=reading, out=tmp_path / "page.html")


def test_a_replay_of_costs_says_so(tmp_path):
    file = a_table(tmp_path)
    for sign in ("minimize", "negate"):
        reading = Reading(arm="server", reward="seconds", **{sign: True})
        options = {"policy": ["UCB1"], "horizon": 200, "replications": 3, "out": tmp_path / sign}
        with pytest.raises(SystemExit) as ended:
            replay(file, reading=reading, **options)
        assert ended.value.code in (0, None)
        page = html.unescape((tmp_path / sign / "report.html").read_text())
        assert ("the column 'seconds', minimised" in page) == (sign == "minimize")
        assert ("Costs, minimised: X is minus the cost." in page) == (sign == "minimize")


def timed(tmp_path, times, arms=("a", "b")):
    """A file of two arms, of which b changes in the middle of the order of times; rows are shuffled."""
    rng = np.random.default_rng(1)
    rows = [f"{arm},{rng.normal() + 3.0 * (arm == 'b' and i >= 200)},{times(i)}" for i in range(400) for arm in arms]
    rng.shuffle(rows)
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,time", *rows]))
    diagnose(str(tmp_path / "log.csv"), out=tmp_path / "page.html")


CHANGED = "Arm 'b' changed around its reward 20"


def test_changes_with_time_are_reported(tmp_path, capsys):
    timed(tmp_path, lambda i: i)
    text, page = " ".join(capsys.readouterr().out.split()), (tmp_path / "page.html").read_text()
    assert "1 of 2 arms changed with time (if none had changed, any would be named with probability 5 %)." in text
    for each in (text, page.replace("&#x27;", "'").replace("&#39;", "'")):
        assert CHANGED in each
        assert "Arm 'a' changed" not in each


def test_a_log_without_a_complete_table_is_sorted_as_well(tmp_path, capsys):
    """Two rewards of an arm at the same time: not a table, but in order."""
    timed(tmp_path, lambda i: i // 2)
    assert CHANGED in " ".join(capsys.readouterr().out.split())


def test_no_change_is_reported_without_an_order_that_shows_it(tmp_path, capsys):
    timed(tmp_path, lambda i: i % 7)
    out = capsys.readouterr().out
    assert "changed" not in out
    assert "not tested" not in out


def test_unreadable_times_are_named(tmp_path, capsys):
    timed(tmp_path, lambda i: f"x{i}")
    remark = "Changes with time were not tested: the column 'time' cannot be read as times."
    page = html.unescape((tmp_path / "page.html").read_text())
    for text in (" ".join(capsys.readouterr().out.split()), page):
        assert remark in text
        assert "is neither a number nor a date" in text
        assert "Arm 'b' changed" not in text


def test_too_many_rows_to_sort_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(replay_plan, "UNASKED", 700)
    timed(tmp_path, lambda i: i)
    remark = "Changes with time were not tested: the column 'time' has 800 rows, and more than 700 are not sorted."
    assert remark in " ".join(capsys.readouterr().out.split())


def test_kept_rows_and_an_unused_time_are_reported(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[i % 2]},{rng.normal()},{i},{'yes' if i < 60 else 'no'}" for i in range(80)]
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,ts,used", *rows]))
    file, page = str(tmp_path / "log.csv"), tmp_path / "page.html"
    diagnose(file, reading=Reading(where="used = 'yes'"), out=page)
    for shown in (capsys.readouterr().out, html.unescape(page.read_text())):
        text = " ".join(shown.split())
        assert """--where "used = 'yes'" keeps 60 rows and drops 20.""" in text
        assert "The column 'ts' looks like a time. To test for changes with time, add --time ts." in text
    diagnose(file, reading=Reading(time="ts"), out=page)
    assert "looks like a time" not in capsys.readouterr().out
    with pytest.raises(InvalidInput, match=r"no row fits .* The first values: 'used' has 'yes' and 'no'"):
        diagnose(file, reading=Reading(where="used = 'maybe'"), out=page)
