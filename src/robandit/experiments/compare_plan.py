"""The plan of `robandit compare`, and the options that it shares with `robandit replay`."""

from __future__ import annotations

from collections.abc import Sequence

from robandit.errors import InvalidInput
from robandit.experiments.plan import MOST_REPLICATIONS, Plan, Played, planned
from robandit.experiments.spec_entries import Misplaced, policies_in, problems_in
from robandit.objectives import MEAN, Objective, objective_from
from robandit.policies import Policy, QuantileUCB, all_policies
from robandit.policies.comparison import count_algorithms
from robandit.policies.default import DEFAULT
from robandit.problems import with_objective
from robandit.validation import integer, items_of, text

PULLS = 50_000

# A first look: AdaKL-UCB, AdaR-UCB, UCB1, and the strongest of each other family (a folder in robandit/policies) on the heavy suite
# (docs/results/heavy.md), unless it is slow. Each plays the default problem in about a second of processor time.
FIRST_LOOK = (
    DEFAULT.tag(),  # first, because it takes the longest to compile
    "UCB1",  # the textbook policy, which assumes bounded rewards: it fails on some runs; early, because it compiles fast
    "AdaRUCB",  # the paper's policy: it knows nothing and has a theorem
    "GaussianTS",  # of sampling. Dirichlet sampling is stronger, but takes 64 us per pull in `robandit replay --example flights`
    "ForceMoM",  # of robust_ucb. Catoni-Lepskii UCB is stronger on the default problem, but takes 13 us per pull
    'RobustUCB(estimator="truncated")',  # the standard of the literature, with which most papers compare
    "KLinfUCB",  # the only one of klinf
    "HTINF",  # of tinf
    "MRAPE",  # of p_robust, by its regret on the default problem: the suite does not play this family
    "RUCBLT",  # of r_ucb
)
# No policy of resampling, which skips the default problem (a run would take minutes), nor of drift, for laws that change.
EVERY = ("all", 'AdaRUCB(bonus="tight")')
"""The policies of the option ``--all``."""


def compared(
    problems: Sequence[str],
    suite: str | None,
    policies: Sequence[str],
    *,
    horizon: int | None = None,
    replications: int | None = None,
    seed: int = 1,
    quick: bool = False,
    objective: str = "mean",
) -> Plan:
    """Return the plan of `robandit compare`. The default is one heavy-tailed problem and the policies of `FIRST_LOOK`.

    If no horizon is given, problems of a suite use their own, and other problems use 50,000. With ``quick``, the defaults are
    a tenth of these pulls and 20 replications. ``objective`` is that of `robandit.problems.with_objective`.
    """
    aim = objective_from(objective)
    horizon, replications, seed = asked_numbers(horizon, replications, seed, quick=quick)
    if not problems and suite is None:
        problems = ["negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)"]
    try:
        named = problems_in(() if suite is None else (suite,), problems)
    except Misplaced as error:  # drop the place in the spec: a command line has no spec
        raise InvalidInput(error.message) from error
    chosen, notes = asked_policies(policies, aim)
    played = []
    for each in named:
        own = each.horizon or PULLS
        name = each.name if aim == MEAN else f"{each.name}, {aim.text}"
        problem = with_objective(each.problem, aim.text)
        played.append(Played(name, problem, horizon or (max(1, own // 10) if quick else own)))
    return planned(played, chosen, replications=replications, seed=seed, notes=notes)


def asked_numbers(
    horizon: int | None, replications: int | None, seed: int, *, quick: bool
) -> tuple[int | None, int, int]:
    """Check the numbers of a command line. Return the horizon, the replications (default: 50, or 20 if quick) and the seed."""
    if horizon is not None:
        horizon = integer(horizon, "horizon", 1)
    if replications is None:
        replications = 20 if quick else 50
    return horizon, integer(replications, "replications", 1, MOST_REPLICATIONS), integer(seed, "seed", 0, None)


def asked_policies(policies: Sequence[str], aim: Objective = MEAN) -> tuple[list[Policy], list[str]]:
    """Return the policies that a command line names, by default those of `FIRST_LOOK`, with a note that there are more.

    If the objective is a quantile, `QuantileUCB` is the first of them.
    """
    if not (type(policies) in (list, tuple) and len(policies) == 0):
        named = named_policies(policies)
        others = [each for each in named if objective_from(each.objective) not in (MEAN, aim)]
        return named, [f"{each.name} optimises {each.objective}, not {aim.text}." for each in others]
    chosen, every = named_policies(FIRST_LOOK), named_policies(EVERY)
    if aim.q is not None:
        chosen = [QuantileUCB(q=aim.q), *chosen]
        return chosen, ["The other policies learn the mean. To see all, add --all."]
    algorithms = f"{count_algorithms(every)} of {count_algorithms(all_policies())} algorithms, some in several variants"
    return chosen, [f"These are {len(chosen)} of {len(every)} policies ({algorithms}). To see all, add --all."]


def named_policies(names: Sequence[str]) -> list[Policy]:
    """Return the policies with these names, as a command line writes them."""
    try:
        given = items_of(names, "policies", "names of policies")
        return [policy for _, policy in policies_in([text(name, "policy") for name in given])]
    except Misplaced as error:  # as in `compared`
        raise InvalidInput(error.message) from error
