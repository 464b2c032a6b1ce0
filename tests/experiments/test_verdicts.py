"""Every verdict sentence, in full, on results whose numbers are given. Read them aloud when you change them."""

import pytest

import robandit as rb
from helpers import made_up
from robandit.experiments.plan import Played
from robandit.experiments.statistics import paired, verdict
from robandit.wording import number

P, Q = made_up.problem("p"), made_up.problem("q")
FLAT = Played("flat", rb.problems.gaussian(means=[0.0, 0.0]), 100)
GIVEN = " It was given no parameters and has no proved bound on its regret."
TEN = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)

ON_ONE = {
    "one policy": (
        {"a": [1.0] * 8},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random; no other policy was compared "
        "with it.",
    ),
    "a baseline is ahead": (
        {"a": [1.0] * 8, "random": [0.5] * 8},
        "On p, among the policies that learn, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random; "
        "no other policy was compared with it.",
    ),
    "significant": (
        {"a": TEN * 6, "b": [x + 2.0 for x in TEN * 6], "c": [x + 9.0 for x in TEN * 6], "random": [20.0] * 60},
        "On p, a has the lowest mean regret after 100 pulls: 5.5, 11 % of choosing arms at random. The difference is significant: "
        "the closest, b, has more by 2 (95 %, paired, 60 replications).",
    ),
    "significant, with few replications": (
        {"a": [1.0] * 8, "b": [3.0] * 8},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. The difference is significant: "
        "the closest, b, has more by 2 (95 %, paired, 8 replications; intervals are too narrow with so few replications).",
    ),
    "the interval has 0": (
        {"a": [1.0, 9.0] * 30, "b": [9.0, 1.5] * 30},
        "On p, a has the lowest mean regret after 100 pulls: 5, 10 % of choosing arms at random. The difference is not "
        "significant: b may be as good (difference {interval}, 95 %, paired, 60 replications).",
    ),
    "the intervals of two have 0": (
        {"a": [1.0, 9.0] * 30, "b": [9.0, 1.5] * 30, "c": [9.0, 2.5] * 30},
        "On p, a has the lowest mean regret after 100 pulls: 5, 10 % of choosing arms at random. The difference is not "
        "significant: b and c may be as good (difference from b {interval}, 95 %, paired, 60 replications).",
    ),
    "the sign test contradicts the means": (
        {"a": [10.0] * 200, "b": ([2000.0] + [9.0] * 19) * 10},
        "On p, a has the lowest mean regret after 100 pulls: 10, 20 % of choosing arms at random. The mean of b is higher by "
        "{interval} (95 %, paired, 200 replications), but b has more regret in only 5 % of the replications. A sign test does not "
        "confirm that a is better, so the difference is not significant. b has the lowest median, 9 against 10, and less regret "
        "than a in 95 % of the replications.",
    ),
    "ties are not losses": (
        {"a": [1.0] * 60, "b": [1.0] * 55 + [3.0] * 5, "c": [1.0] * 55 + [4.0] * 5},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. The mean of b is higher by "
        "{interval} (95 %, paired, 60 replications), but b has more regret in only 8 % of the replications. A sign test "
        "does not confirm that a is better, so the difference is not significant. Nor is the difference from c.",
    ),
    "the lowest median, but fewer wins": (
        {"a": [6.0] * 32 + [1.0] * 28, "b": [5.0] * 26 + [7.0] * 6 + [1.5] * 10 + [90.0] * 18},
        "On p, a has the lowest mean regret after 100 pulls: 3.67, 7.3 % of choosing arms at random. The mean of b is higher by "
        "{interval} (95 %, paired, 60 replications), but b has more regret in only 57 % of the replications. A sign test does not "
        "confirm that a is better, so the difference is not significant. b has the lowest median, 5 against 6, but less regret "
        "than a in only 43 % of the replications.",
    ),
    "medians that look the same": (
        {"a": [1.0001, 1.0, 1.0001] * 20, "b": [1.0, 1.0, 9.0] * 20},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. The mean of b is higher by "
        "{interval} (95 %, paired, 60 replications), but b has more regret in only 33 % of the replications. A sign test does not "
        "confirm that a is better, so the difference is not significant.",
    ),
    "the same regret": (
        {"a": [1.0] * 8, "b": [1.0] * 8},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. b has the same regret in each "
        "of 8 replications.",
    ),
    "too few": (
        {"a": [1.0] * 5, "b": [3.0] * 5},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. The difference is not "
        "significant: 5 replications are too few.",
    ),
    "one": (
        {"a": [1.0], "b": [3.0]},
        "On p, a has the lowest mean regret after 100 pulls: 1, 2.0 % of choosing arms at random. The difference is not "
        "significant: 1 replication is too few.",
    ),
}


@pytest.mark.parametrize("case", ON_ONE)
def test_on_one_problem(case):
    finals, expected = ON_ONE[case]
    made = made_up.results({P: finals}, policies={"random": rb.Uniform()})
    assert verdict(made) == expected.replace("{interval}", interval(made) if "b" in finals else "") + GIVEN


def interval(made):
    """Return the interval of the closest rival, which a bootstrap computes."""
    row = paired(made, P, "a").row(0, named=True)
    return f"{number(row['difference_low'])} to {number(row['difference_high'])}"


def test_a_rival_is_better_where_both_played():
    """The leader has played only easy replications so far."""
    finals = {"a": [5.0] * 8, "b": [4.0] * 8 + [9.0] * 8}
    made = made_up.results({P: finals})
    assert verdict(made) == (
        "On p, a has the lowest mean regret after 100 pulls: 5, 10 % of choosing arms at random. But b has less by 1 in the "
        "replications that both played (95 %, paired, 8 replications; intervals are too narrow with so few replications): "
        f"complete the run.{GIVEN} Incomplete: of 32 replications 8 are not played yet (run again to continue)."
    )


def test_no_gap_has_no_share_of_random():
    assert verdict(made_up.results({FLAT: {"a": [0.0] * 6, "b": [0.0] * 6}})) == (
        f"On flat, a has the lowest mean regret after 100 pulls: 0. b has the same regret in each of 6 replications.{GIVEN}"
    )


KNOWLEDGE = {
    "It was given no parameters; it assumes truncated non-positivity of the best arm, which holds here.": rb.AdaRUCB(),
    "It was given scale = 1; it assumes rewards in an interval of known length, which FAILS here.": rb.UCB1(),
    "It was given eps = 0.45, u = 16.7 and horizon = 100 and assumes nothing more.": rb.RobustMOSS().informed_by(
        made_up.PROBLEM
    ),
}


@pytest.mark.parametrize("expected", KNOWLEDGE)
def test_what_the_winner_was_given(expected):
    text = verdict(made_up.results({P: {"a": [1.0] * 8}}, policies={"a": KNOWLEDGE[expected]}))
    assert text.partition(" was compared with it. ")[2] == expected


NEEDS = "it needs no parameters and has no proved bound on its regret."
OVER_ALL = {
    "significant": (
        {"a": TEN * 6, "b": [x + 2.0 for x in TEN * 6], "c": [x + 9.0 for x in TEN * 6]},
        "Over 2 problems, a has the lowest mean rank of 3 policies: 1.00 (95 %: 1.00 to 1.00), significantly better than all "
        f"others. The mean regret of a is the lowest on 2 of them; {NEEDS}",
    ),
    "with few replications": (
        {"a": [1.0] * 8, "b": [3.0] * 8},
        "Over 2 problems, a has the lowest mean rank of 2 policies: 1.00 (95 %: 1.00 to 1.00; intervals are too narrow with so "
        "few replications), significantly better than all others. The mean regret of a is the lowest on 2 of them; "
        f"{NEEDS}",
    ),
    "too few": (
        {"a": [1.0] * 5, "b": [3.0] * 5},
        "Over 2 problems, a has the lowest mean rank of 2 policies: 1.00 (95 %: 1.00 to 1.00; intervals are too narrow with so "
        "few replications). The difference is not significant: 5 replications are too few. The mean regret of a is the lowest "
        f"on 2 of them; {NEEDS}",
    ),
    "shared": (
        {"a": TEN * 6, "b": TEN * 6, "c": [x + 9.0 for x in TEN * 6]},
        "Over 2 problems, a shares the lowest mean rank of 3 policies with b: 1.50 (95 %: 1.50 to 1.50), not significantly "
        f"better than b. The mean regret of a is the lowest on 2 of them; {NEEDS}",
    ),
    "alone": (
        {"a": TEN * 6, "random": [20.0] * 60},
        "Over 2 problems, a has the lowest mean rank of 1 policy: 1.00 (95 %: 1.00 to 1.00), as the only one that is ranked. The "
        f"mean regret of a is the lowest on 2 of them; {NEEDS}",
    ),
}


@pytest.mark.parametrize("case", OVER_ALL)
def test_over_all_problems(case):
    finals, expected = OVER_ALL[case]
    assert verdict(made_up.results({P: finals, Q: finals}, policies={"random": rb.Uniform()})) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            rb.AdaRUCB(),
            "it needs no parameters, and its assumption (truncated non-positivity of the best arm) holds on all.",
        ),
        (rb.UCB1(), "it needs scale, and its assumption (rewards in an interval of known length) fails on p and q."),
        (rb.RobustMOSS().informed_by(made_up.PROBLEM), "it needs eps, u and horizon and assumes nothing more."),
    ],
)
def test_the_assumption_over_all_problems(policy, expected):
    finals = {"a": [1.0] * 60, "b": [3.0] * 60}
    text = verdict(made_up.results({P: finals, Q: finals}, policies={"a": policy}))
    assert text.partition(" of them; ")[2] == expected


def test_nothing_to_judge():
    again = "(run again to continue)."
    nothing = made_up.results({}, missing=[(P, "a"), (P, "b")])
    assert (
        verdict(nothing) == f"Nothing has been measured yet. Incomplete: of 2 replications 2 are not played yet {again}"
    )
    half = made_up.results({P: {"a": [1.0] * 6}}, missing=[(Q, "a")])
    assert verdict(half) == (
        "No policy has played all of the 2 problems in full, so none is ranked over all of them. Incomplete: of 12 replications 6 "
        f"are not played yet {again}"
    )
