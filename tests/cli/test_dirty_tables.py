"""`robandit diagnose` and `robandit replay` on dirty tables. Printed options are run by a shell, as they are printed."""

import html
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from helpers.typed import printed

OPTIONS = ["--arm", "model", "--reward", "seconds", "--time", "when", "--minimize"]


@pytest.fixture
def dirty(tmp_path):
    """Costs of three arms, one of which changes in row 700; 'Mistral  small ' has five rows, and three costs are negative."""
    rng = np.random.default_rng(7)
    lines = ["model,seconds,when"]
    for i in range(1_200):
        arm = ("GPT", "Claude", "Mistral  small")[int(rng.integers(3))]
        cost = rng.lognormal(0.0, 0.4) * (4.0 if arm == "GPT" and i >= 700 else 1.0)
        if i in (30, 40, 50):
            cost = -1.0
        name = f"{arm} " if arm.startswith("Mistral") and i < 25 and sum("l ," in line for line in lines) < 5 else arm
        lines.append(f"{name},{cost:.4f},2026-03-{1 + i // 48:02d} {i // 2 % 24:02d}:{30 * (i % 2):02d}")
    assert sum("l ," in line for line in lines) == 5
    (tmp_path / "waits.csv").write_text("\n".join(lines))
    return tmp_path


def shell(folder, option):
    """Run diagnose in a shell with an option as printed, and return its first line."""
    command = f"{shlex.quote(sys.executable)} -m robandit diagnose waits.csv {shlex.join(OPTIONS)} {option}"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options_in(text):
    return re.findall(r"--join-names", text)


def test_printed_options_work_when_they_are_copied(dirty):
    text, _ = printed("diagnose", "waits.csv", *OPTIONS, cwd=dirty)
    page = html.unescape((dirty / "robandit-diagnosis.html").read_text())
    (join,) = options_in(text)
    assert join in page
    assert "Use the recent part of the record, since 2026-03-" in text
    assert "Are 'Mistral  small' (394 rows) and 'Mistral  small ' (5 rows) one arm?" in text
    assert "3 costs are negative" in text
    assert "1,200 costs of 3 arms" in shell(dirty, join)


def test_a_replay_prints_the_same_options_and_keeps_its_intervals(dirty):
    few = ["--policy", "UCB1", "--policy", "AdaKLUCB", "--replications", "20", "--horizon", "100"]
    replayed = "\n".join(printed("replay", "waits.csv", *OPTIONS, *few, cwd=dirty))
    text, _ = printed("diagnose", "waits.csv", *OPTIONS, cwd=dirty)
    assert list(dict.fromkeys(options_in(replayed))) == options_in(text)
    assert "Left out of the comparison, which needs 20 values of an arm: 'Mistral  small ' (5 values)." in replayed
    assert "has no interval" not in replayed
    page = html.unescape((dirty / "waits-replay" / "report.html").read_text())
    assert all(option in page for option in options_in(text))


def test_one_arm_decides_nothing(tmp_path):
    (tmp_path / "one.csv").write_text("\n".join(["arm,reward", *(f"a,{i}" for i in range(50))]))
    text, _ = printed("diagnose", "one.csv", cwd=tmp_path)
    assert "There is one arm only, 'a': nothing is decided yet." in text
    _, error = printed("replay", "one.csv", cwd=tmp_path, code=1)
    assert "one arm only, 'a', so nothing is decided yet" in error


def test_an_arm_with_few_rows_is_never_hidden(tmp_path):
    """Before, 'c' was significantly best, and the replay had 600 rewards of 3 arms."""
    rng = np.random.default_rng(0)
    lines = [
        f"{arm},{mean + rng.normal(0.0, 0.1):.4f}"
        for arm, mean in zip("abc", (1, 2, 3), strict=True)
        for _ in range(200)
    ]
    (tmp_path / "few.csv").write_text("\n".join(["arm,reward", *lines, *["d,9.0"] * 19]))
    doubt = "NOT significant: 'd' has a higher mean (9) but only 19 values."
    few = ["--policy", "UCB1", "--policy", "AdaKLUCB", "--replications", "20", "--horizon", "100"]
    for command, file in ((["diagnose"], "robandit-diagnosis.html"), (["replay", *few], "few-replay/report.html")):
        name, *options = command
        text = "\n".join(printed(name, "few.csv", *options, cwd=tmp_path))
        page = html.unescape((tmp_path / file).read_text())
        for shown in (" ".join(text.split()), " ".join(page.split())):
            assert doubt in shown
            assert "619 rewards of 4 arms" in shown or file.startswith("robandit")
            assert "the log, without 'd', earned" in shown or name == "diagnose"
