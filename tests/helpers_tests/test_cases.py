"""A loop over cases runs each of them once, and names the one that fails."""

import pytest

from helpers.cases import cases


def test_every_case_runs_and_the_failing_one_is_named():
    seen = []

    @cases("a", [1, 2])
    @cases(("b", "c"), [(3, 4), pytest.param(5, 6, id="last")])
    def adds(a, b, c, *, seen):
        seen.append((a, b, c))
        assert (a, b) != (2, 5), "wrong"

    with pytest.raises(AssertionError, match="wrong") as caught:
        adds(seen=seen)
    assert seen == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]
    assert caught.value.__notes__ == ["case 1: b, c = (5, 6)", "case 1: a = (2,)"]
