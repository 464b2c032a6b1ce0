import numpy as np
import pytest

import robandit as rb
from robandit.errors import InvalidInput

MOVED = np.repeat([1.0, 2.0], 100)


def test_lists_and_arrays_are_accepted():
    expected = rb.diagnostics.changes({"a": MOVED})
    assert [change.arm for change in expected] == ["a"]
    assert rb.diagnostics.changes({"a": MOVED.tolist()}) == expected


@pytest.mark.parametrize("rewards", [MOVED, {"a": [1.0, np.nan]}, {"a": "text"}, {"a": []}])
def test_invalid_rewards_are_rejected(rewards):
    with pytest.raises(InvalidInput):
        rb.diagnostics.changes(rewards)


@pytest.mark.parametrize("level", [0.0, 1.5, True, "x"])
def test_invalid_levels_are_rejected(level):
    with pytest.raises(InvalidInput, match="level"):
        rb.diagnostics.changes({"a": MOVED}, level)
