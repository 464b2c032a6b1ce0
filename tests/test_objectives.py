import pytest

from helpers.invalid import raises
from robandit.errors import InvalidInput
from robandit.objectives import MEAN, Objective, objective_from


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("mean", MEAN),
        ("p95", Objective("p95", q=0.95)),
        ("p99.90", Objective("p99.9", q=0.999)),
        ("p1", Objective("p1", q=0.01)),
        ("within:2", Objective("within:2.0", limit=2.0)),
        ("within:-.5e3", Objective("within:-500.0", limit=-500.0)),
    ],
)
def test_objectives(text, objective):
    assert objective_from(text) == objective
    assert objective_from(objective.text) == objective


@pytest.mark.parametrize(
    "text",
    ["", "median", "p0", "p0.9", "p99.95", "p100", "p 95", "within", "within:", "within:inf", "within:1e999", None, 95],
)
def test_others_are_refused(text):
    with raises(InvalidInput, parameter="objective", value=text):
        objective_from(text)


def test_the_limit_itself_is_within():
    objective = objective_from("within:2.0")
    assert [objective.is_beyond(x, minimize=True) for x in (1.0, 2.0, 3.0)] == [False, False, True]
    assert [objective.is_beyond(x, minimize=False) for x in (1.0, 2.0, 3.0)] == [True, False, False]
