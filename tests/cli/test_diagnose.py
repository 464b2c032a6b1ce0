"""`robandit diagnose` names the column that it does not use, and the arms that changed with time."""

import numpy as np
import pytest

from robandit.cli.diagnose import diagnose


@pytest.mark.parametrize("column", ["propensity", "other"])
def test_propensities_are_reported_not_to_be_used(column, tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[i % 2]},{rng.normal()},0.5" for i in range(80)]
    (tmp_path / "log.csv").write_text("\n".join([f"arm,reward,{column}", *rows]))
    diagnose(str(tmp_path / "log.csv"), out=tmp_path / "page.html")
    for text in (capsys.readouterr().out, (tmp_path / "page.html").read_text()):
        assert ("is not used here; robandit replay uses it as weights." in text) == (column == "propensity")


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


@pytest.mark.parametrize("times", [lambda i: i % 7, lambda i: f"x{i}"], ids=["another order", "unreadable"])
def test_no_change_is_reported_without_an_order_that_shows_it(times, tmp_path, capsys):
    timed(tmp_path, times)
    assert "changed" not in capsys.readouterr().out
