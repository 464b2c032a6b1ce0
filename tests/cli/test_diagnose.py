"""`robandit diagnose`: unused columns, the sign of costs, and arms that changed with time."""

import html

import numpy as np
import pytest

from helpers.typed import typed
from robandit.cli.diagnose import diagnose
from robandit.cli.replay import replay
from robandit.cli.results import show
from robandit.cli.table_options import Reading
from robandit.diagnostics.costs import QUESTION
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
    assert QUESTION not in text
    assert QUESTION not in html.unescape(page)


def test_both_names_of_the_option_are_one(tmp_path):
    a_table(tmp_path)
    shown = []
    for name in ("--minimize", "--negate"):
        printed, _ = typed("diagnose", "waits.csv", "--arm", "server", "--reward", "seconds", name, cwd=tmp_path)
        shown.append((printed, (tmp_path / "robandit-diagnosis.html").read_text()))
    assert shown[0] == shown[1]
    assert "minimised" in shown[0][0]


def replayed_page(file, folder, **reading):
    """Replay a file; return the page."""
    options = {"policy": ["UCB1"], "horizon": 200, "replications": 3, "out": folder}
    with pytest.raises(SystemExit) as ended:
        replay(file, reading=Reading(**reading), **options)
    assert ended.value.code in (0, None)
    return html.unescape((folder / "report.html").read_text())


@pytest.mark.parametrize("minimize", [True, False])
def test_a_replay_of_costs_says_so(minimize, tmp_path, capsys):
    file = a_table(tmp_path)
    page = replayed_page(file, tmp_path / "run", arm="server", reward="seconds", minimize=minimize)
    text = capsys.readouterr().out
    assert ("the column 'seconds', minimised" in page) == minimize
    assert ("Costs, minimised. " in page) == minimize
    assert ("Truncated non-negativity (E[X 1{|X| > M}] ≥ 0" in page) == minimize
    about = page[page.index("About the data") : page.index('class="facts"')]
    assert ("reward" in about) != minimize
    for shown in (text, page):
        assert shown.count(QUESTION) == (not minimize)
    if not minimize:
        assert text.startswith(QUESTION)
        assert page.index(QUESTION) < page.index('class="verdict"')
        show(tmp_path / "run")
        assert " ".join(capsys.readouterr().out.split()).startswith(QUESTION)


def test_a_diagnosis_first_asks_whether_rewards_are_costs(tmp_path, capsys):
    diagnose(a_table(tmp_path), reading=Reading(arm="server", reward="seconds"), out=tmp_path / "page.html")
    text, page = " ".join(capsys.readouterr().out.split()), html.unescape((tmp_path / "page.html").read_text())
    assert text.index(QUESTION) < text.index("Means arm")
    assert page.index(QUESTION) < page.index('class="verdict"')
    for shown in (text, page):
        assert shown.count(QUESTION) == 1


def drifting(tmp_path, half):
    """A log of three arms: a is best in the first half and c in the second, or (half=0) the law is the same throughout."""
    rng = np.random.default_rng(0)
    means = {"a": (10, 30), "b": (14, 14), "c": (30, 10)}
    arms = rng.choice(list(means), 1_800)
    rows = [
        f"{arm},{means[arm][half * (i >= 900)] * rng.lognormal(-0.08, 0.4):.4g},2024-01-01T{i // 60:02d}:{i % 60:02d}"
        for i, arm in enumerate(arms[:1_440])
    ]
    (tmp_path / "log.csv").write_text("\n".join(["arm,ms,ts", *rows]))
    return str(tmp_path / "log.csv")


def test_drift_is_said_before_any_verdict_and_unsettles_it(tmp_path, capsys):
    """Before, both commands said "Significant: 'b' ... it is best in 100 % of 2,000 resamples"."""
    file, columns = drifting(tmp_path, half=1), {"reward": "ms", "time": "ts", "minimize": True}
    diagnose(file, reading=Reading(**columns), out=tmp_path / "page.html")
    text, page = capsys.readouterr().out, html.unescape((tmp_path / "page.html").read_text())
    replayed = replayed_page(file, tmp_path / "run", **columns)
    spoken = capsys.readouterr().out
    for shown in (text, page, spoken, replayed):
        flat = " ".join(shown.split())
        assert "2 of 3 arms changed with time" in flat
        assert "NOT settled: the best arm changed." in flat
        assert "Significant: 'b'" not in flat
        assert flat.index("Arm 'a' changed around its cost") < flat.index("NOT settled")
    assert page.index("2 of 3 arms changed") < page.index('class="verdict"')
    assert replayed.index("2 of 3 arms changed") < replayed.index('class="verdict"')
    assert spoken.startswith("2 of 3 arms changed")
    assert "Results of the mode bootstrap mix the rewards" in spoken
    assert 'id="time"' in page
    assert '"time":{"x":' in page


def test_a_steady_record_has_a_settled_verdict_and_means_over_time(tmp_path, capsys):
    file, columns = drifting(tmp_path, half=0), {"reward": "ms", "time": "ts", "minimize": True}
    diagnose(file, reading=Reading(**columns), out=tmp_path / "page.html")
    text, page = capsys.readouterr().out, html.unescape((tmp_path / "page.html").read_text())
    assert "Significant: 'a' has the lowest mean" in text
    assert "changed" not in text
    assert "Vertical lines: changes. No arm changed." in page
    diagnose(file, reading=Reading(reward="ms", minimize=True), out=tmp_path / "page.html")
    assert 'id="time"' not in (tmp_path / "page.html").read_text()
    replayed = replayed_page(file, tmp_path / "run", **columns)
    assert "Significant: 'a' has the lowest mean" in replayed
    assert "changed with time" not in replayed


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
    assert "1 of 2 arms changed with time (a false alarm for any arm has probability 5 %)." in text
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
    with pytest.raises(InvalidInput, match="no row fits"):
        diagnose(file, reading=Reading(where="used = 'maybe'"), out=page)
