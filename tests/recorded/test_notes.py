"""Questions about dirty tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from robandit.diagnostics.resolution import resolution
from robandit.diagnostics.study import study
from robandit.recorded import Recorded, open_records
from robandit.recorded.notes import plain_name

PAIRS = [
    ("Mistral", "Mistral "),
    ("GPT 4", "gpt  4"),
    ("O'Brien", " o'brien"),
    ('say "hi"', 'Say "hi"'),
    ("café", "cafe\u0301"),
    ("Zürich", "ZÜRICH\u00a0"),
    ("$HOME!", "$home!"),
    ("a\\b`c`", "A\\b`c`"),
    ("Straße", "STRASSE"),
]


def table(names: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"model": names, "reward": [float(i) for i in range(len(names))]})


@pytest.mark.parametrize(("usual", "rare"), PAIRS)
def test_names_that_look_alike_are_asked_about(tmp_path: Path, usual: str, rare: str) -> None:
    frame = table([usual] * 30 + [rare] * 3 + ["other"] * 30)
    frame.write_csv(tmp_path / "a.csv")
    for source in (frame, tmp_path / "a.csv"):
        question, way_out = open_records(source, arm="model").summary().notes
        assert question.startswith("Are ")
        assert "(30 rows)" in question
        assert "(3 rows)" in question
        assert "--join-names" in way_out


@pytest.mark.parametrize(("usual", "rare"), PAIRS)
def test_names_that_look_alike_are_joined_on_request(monkeypatch: pytest.MonkeyPatch, usual: str, rare: str) -> None:
    frame = table([usual, rare] * 20 + ["other"] * 30)
    records = open_records(frame, arm="model", join_names=True)
    assert [(arm.arm, arm.n) for arm in records.summary().arms] == sorted([(usual, 40), ("other", 30)])
    assert records.summary().notes == ()
    assert records.samples().counts == {usual: 40, "other": 30}
    assert len(records.log().arms) == 2


def test_names_without_a_twin_are_not_asked_about() -> None:
    names = ["a", "b", "gpt-4", "gpt_4", "gpt 4o", "é", "e"]
    assert len({plain_name(name) for name in names}) == len(names)
    assert open_records(table(names), arm="model").summary().notes == ()


def test_names_with_invisible_characters() -> None:
    notes = open_records(table(["a"] * 3 + ["a\u200b"]), arm="model").summary().notes
    assert notes[0] == "Are 'a' (3 rows) and 'a\\u200b' (1 row) one arm? The names differ only by case or space."
    assert "--join-names" in notes[-1]


def test_many_similar_names_are_cut_short() -> None:
    names = [each for i in range(8) for each in (f"arm {i}", f"Arm {i}")]
    notes = open_records(table(names), arm="model").summary().notes
    assert sum(note.startswith("Are ") for note in notes) == 5
    assert any(note.startswith("3 more arms may have several names") for note in notes)
    assert sum("--join-names" in note for note in notes) == 1


def test_rewards_in_memory_are_asked_about_too() -> None:
    rng = np.random.default_rng(0)
    found = study(Recorded.of({"a": rng.normal(size=50), "A ": rng.normal(size=50)}))
    assert found.first_lines[0].startswith("Are 'A ' (50 rows) and 'a' (50 rows) one arm?")
    assert "--" not in found.first_lines[0]


def costs(negative: int, rows: int = 100) -> pl.DataFrame:
    values = np.arange(1.0, rows + 1.0)
    values[10 : 10 + negative] *= -1.0
    return pl.DataFrame({"arm": ["a", "b"] * (rows // 2), "cost": values})


def test_few_negative_costs_are_counted(tmp_path: Path) -> None:
    costs(3).write_csv(tmp_path / "a.csv")
    for source, places in ((costs(3), "rows 11, 12, 13"), (tmp_path / "a.csv", "lines 12, 13, 14")):
        records = open_records(source, reward="cost", minimize=True)
        assert records.samples().notes == records.summary().notes
        (note,) = records.summary().notes
        assert note.startswith(f"3 costs are negative (2 of 'a' and 1 of 'b'; {places}).")
        kept = open_records(source, reward="cost", minimize=True, where="cost >= 0").summary()
        assert (kept.rows, kept.notes) == (97, ())


def test_costs_of_both_signs_and_rewards_are_not_asked_about() -> None:
    assert open_records(costs(40), reward="cost", minimize=True).summary().notes == ()
    assert open_records(costs(3), reward="cost").summary().notes == ()
    assert open_records(costs(0), reward="cost", minimize=True).summary().notes == ()


def test_one_negative_cost_and_only_negative_costs() -> None:
    assert (
        open_records(costs(1), reward="cost", minimize=True).summary().notes[0].startswith("1 cost is negative (1 of")
    )
    every = costs(0).with_columns(-pl.col("cost"))
    (note,) = open_records(every, reward="cost", minimize=True).summary().notes
    assert note.startswith("All 100 costs are negative")
    assert Recorded.of({"a": [-1.0] + [1.0] * 40}, minimize=True).notes[0].startswith("1 cost is negative (1 of 'a').")


def test_an_arm_with_too_few_values_is_left_out_and_the_others_keep_their_limits() -> None:
    rng = np.random.default_rng(4)
    samples = {name: rng.normal(mean, 1.0, 300) for name, mean in (("a", 0.0), ("b", 1.0), ("c", 3.0))}
    alone = resolution(samples)
    for value in (100.0, 1.0, -100.0):  # the best, in the middle, the worst
        found = resolution({"few ": [value] * 5, **samples})
        assert (found.best, found.others, found.share) == (alone.best, alone.others, alone.share)
        assert found.left_out == (("few ", 5, value),)
        assert found.resolved == (value < 3.0)
        assert str(found).endswith(" Left out of the comparison, which needs 20 values of an arm: 'few ' (5 values).")
    weights = {name: np.ones(len(x)) for name, x in {"few ": [1.0] * 5, **samples}.items()}
    weighted = resolution({"few ": [1.0] * 5, **samples}, weights=weights)
    assert (weighted.best, weighted.left_out) == ("c", (("few ", 5, 1.0),))
    pair = resolution({"a": samples["a"], "few ": [9.0] * 5})
    assert (pair.best, pair.left_out) == ("few ", ()), "one arm alone is no comparison"


@pytest.mark.parametrize("names", [["a", "A ", "A "], ["A ", "a", "A "], ["A ", "A ", "a"]])
def test_joined_names_have_the_most_frequent_spelling(names: list[str]) -> None:
    frame = table(names * 10 + ["other"] * 30)
    joined = open_records(frame, arm="model", join_names=True)
    assert [arm.arm for arm in joined.summary().arms] == ["A ", "other"]
    assert joined.samples().counts == {"A ": 30, "other": 30}
    assert joined.log().arms == ("A ", "other")


def test_only_good_rows_count_for_the_spelling() -> None:
    frame = pl.DataFrame({"arm": ["A", "A", "A", "a", "a"], "reward": ["x", "x", "1", "2", "3"]})
    assert open_records(frame, join_names=True, skip_bad=True).samples().counts == {"a": 3}


def test_an_arm_whose_name_is_only_spaces_can_be_joined() -> None:
    """Before, these were bad rows: "the propensity 1 must be > 0 and <= 1"."""
    frame = table([" "] * 20 + ["  "] * 10 + ["b"] * 30)
    assert open_records(frame, arm="model", join_names=True).samples().counts == {" ": 30, "b": 30}
    missing = table(["", " ", ""])
    found = open_records(missing, arm="model", join_names=True, skip_bad=True).summary()
    assert ([(arm.arm, arm.n) for arm in found.arms], found.bad.first[0][1]) == ([(" ", 1)], "the arm is missing")


@pytest.mark.parametrize("names", [("x²", "x2"), ("H₂O", "H2O"), ("½", "1⁄2"), ("Ⅳ", "IV"), ("ａ", "a")])
def test_different_characters_are_different_names(names: tuple[str, str]) -> None:
    assert plain_name(names[0]) != plain_name(names[1])
    frame = table([*names] * 20)
    assert open_records(frame, arm="model").summary().notes == ()
    assert len(open_records(frame, arm="model", join_names=True).samples()) == 2
