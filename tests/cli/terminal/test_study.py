"""The tables of the diagnosis of recorded rewards, at 80 columns."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from helpers import studies
from robandit.cli.terminal.study import study_table
from robandit.diagnostics.study import study
from robandit.recorded.summary import Recorded


def printed(result, **options):
    console = Console(width=80, file=io.StringIO())
    console.print(study_table(result, **options))
    return console.file.getvalue()


@pytest.mark.parametrize("name", ["plain", "costs", "hostile", "many", "extreme", "sampled"])
def test_tables_fit_80_columns_and_no_number_is_nan(name):
    text = printed(getattr(studies, name)())
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "nan" not in text
    assert "inf" not in text.replace("infinite", "")
    assert "\x1b" not in text
    grids = text.split("\nUse ")[0]
    assert "…" not in re.sub("x+…|=…", "", grids), "cells are not cut off"


def test_the_terminal_says_what_was_read_and_what_follows():
    text = printed(studies.plain())
    assert "latency.csv: 5,502 rewards of 3 arms" in text
    assert "3 bad rows: line 17: the reward is 'n/a'" in text
    assert re.search(r"heavy +4,000 +0 +-4\.\d+ +-\d+.* to -\d", text)
    assert "Heavy tails: the variance of 1 of 3 arms is likely infinite." in text
    assert "\nUse AdaKL-UCB (" in text
    assert "NOT significant: 'few' has a higher mean (-3.5) but only 2 values. Of" in text
    assert "the arms with at least 20 values, 'light' has the highest mean" in " ".join(text.split())
    assert "needs 20 values of an arm: 'few' (2 values)" in " ".join(text.split())
    rows = [line for line in text.splitlines() if line.startswith("few ")]
    assert "unknown" in rows[2]
    assert "too few values" in rows[3]


def test_costs_keep_their_sign_in_the_terminal():
    text = printed(studies.costs())
    assert "latency.csv: 5,502 costs of 3 arms, minimised" in text
    assert re.search(r"heavy +4,000 +0 +4\.\d+ +\d+.* to \d", text)
    assert "Heavy tails: the variance of 1 of 3 arms is likely infinite." in text
    assert "\nUse AdaKL-UCB (" in text
    assert "'light' has the lowest mean" in text
    assert "Truncated non-negativity" in text
    assert "reward" not in text


def test_many_arms_are_cut_short_with_a_note():
    text = printed(studies.many())
    assert "The tables show the 30 arms with the most rewards, of 40. The page shows all." in text
    assert "arm 039" in text
    assert "arm 000  " not in text


def test_names_are_text_in_the_terminal():
    text = printed(studies.hostile())
    assert "[bold]b[/bold]" in text
    assert r"'\x1b[31mred\nline'" in "".join(text.split()), "quoted, since it has what is not seen"
    assert "\u202e" not in text
    assert "(empty)" in text


def test_a_sample_is_named():
    text = " ".join(printed(studies.sampled()).split())
    assert "All other numbers come from a random sample of 4,000 rewards" in text


def test_names_that_differ_in_blanks_look_different():
    rng = np.random.default_rng(0)
    result = study(Recorded.of({name: rng.normal(size=60) for name in (" a", "a", "a ", "a\u00a0")}))
    rows = [line.split("  ")[0] for line in printed(result).splitlines() if re.search(r"  60 +0  ", line)]
    assert sorted(rows) == sorted(["' a'", "a", "'a '", r"'a\xa0'"])


def test_advice_for_a_rival_and_remarks_have_a_line():
    rng = np.random.default_rng(7)
    up, down = rng.exponential(size=2000), 2.0 - rng.exponential(size=2000)
    result = study(Recorded.of({"up": up + 0.03, "down": down}))
    text = " ".join(printed(result, remarks=["The column 'p' is not used."]).split())
    assert "'down' may also be the best arm, and is another case: left-skewed or symmetric." in text
    assert "The column 'p' is not used." in text
