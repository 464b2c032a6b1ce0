"""The words for costs are those for rewards with all sides and comparisons exchanged."""

from robandit.diagnostics.words import COSTS, REWARDS, assumed, words


def test_sides_and_comparisons_are_exchanged():
    assert words(minimize=True) is COSTS
    assert words(minimize=False) is REWARDS
    assert (COSTS.worse, COSTS.better) == (REWARDS.better, REWARDS.worse)
    assert (COSTS.allowed, COSTS.skewed) == (REWARDS.skewed, REWARDS.allowed)
    for field, cost, reward in zip(REWARDS._fields, COSTS, REWARDS, strict=True):
        assert cost != reward, field


def test_the_assumption_about_costs():
    assert assumed("rewards in an interval of known length", minimize=True) == "costs in an interval of known length"
    assert assumed("every arm is symmetric about its mean", minimize=True) == "every arm is symmetric about its mean"
    assert assumed(REWARDS.assumption, minimize=True) == COSTS.assumption
    assert assumed(REWARDS.assumption, minimize=False) == REWARDS.assumption
