"""The notation of policies and problems: what it reads, what it rejects, and with which message."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import robandit as rb
from helpers.cases import cases
from robandit import suites
from robandit.errors import InvalidInput
from robandit.experiments import notation
from robandit.experiments.notation import BUILDERS, policies_from, problem_from, written
from robandit.policies import all_policies

PROBLEMS = {
    "bernoulli": {"means": [0.5, 0.25]},
    "gaussian": {"means": [1.0, 0.0], "sd": 2.0},
    "lower_bound_family": {"arms": 3, "eps": 0.5, "u": 1.0, "horizon": 1000, "best": 2},
    "negated_lomax": {"means": [-1.0, -2.0], "tail": 1.5},
    "negated_pareto": {"means": [-1.0, -2.0], "tail": 1.5},
    "pareto": {"means": [1.0, 2.0], "tail": 1.5},
    "stable": {"means": [0.0, -1.0], "alpha": 1.5, "beta": -1.0},
    "student_t": {"means": [0.0, -1.0], "dof": 1.5},
}


@cases("policy", all_policies())
def test_every_policy_reads_back_from_its_repr(policy):
    assert policies_from(repr(policy)) == [policy]


positive = st.floats(min_value=1e-6, max_value=1e6)
orders = st.none() | st.floats(min_value=1e-3, max_value=1.0)


@given(
    st.builds(rb.UCB1, scale=positive)
    | st.builds(rb.APE2, eps=orders, c=positive)
    | st.builds(rb.AdaRUCB, bonus=st.sampled_from(["paper", "tight"]) | positive)
    | st.builds(
        rb.RobustUCB, estimator=st.just("truncated"), eps=orders, u=st.none() | positive, common_threshold=st.booleans()
    )
    | st.builds(rb.MARS, limit=st.integers(10, 5000))
)
def test_policies_with_parameters_read_back_from_their_repr(policy):
    (read,) = policies_from(repr(policy))
    assert read == policy
    assert repr(read) == repr(policy)


def test_what_texts_stand_for():
    assert policies_from("AdaRUCB") == policies_from("AdaRUCB()") == policies_from("  AdaRUCB( )  ") == [rb.AdaRUCB()]
    assert [p.estimator for p in policies_from("RobustUCB")] == ["truncated", "median_of_means", "catoni"]
    assert policies_from("RobustUCB()") == [rb.RobustUCB()]
    plain = [p for p in all_policies() if not isinstance(p, rb.Floor | rb.Probing | rb.Restarting) and not p.contextual]
    assert policies_from("all") == [p for p in plain if p.uses_rewards]
    assert policies_from("OptHTINF") == [rb.OptTINF()]
    assert repr(policies_from("UCB1(scale=2)")) == "[UCB1(scale=2.0)]"  # so that it is the same policy in a ledger


@cases("policy", all_policies())
def test_names_of_the_tables_stand_for_what_is_so_called(policy):
    cls = type(policy)
    assert policies_from(cls.label) == policies_from(f" {cls.__name__} ") == list(cls.variants())
    title = policy.facts.title
    if title != cls.label:
        assert policies_from(title) == [policy]


@cases(
    ("text", "policy"),
    [
        ("Probing(UCB1)", rb.Probing(rb.UCB1())),
        ("Probing(UCB1(scale=2.0), rate=0.5)", rb.Probing(rb.UCB1(scale=2.0), rate=0.5)),
        ("Restarting(of=AdaKLProved(pulls='double'))", rb.Restarting(rb.AdaKLProved(pulls="double"))),
        # As version 0.2 wrote it:
        ("Restarting(AdaKLUCB(schedule='proved', center=None))", rb.Restarting(rb.AdaKLProved())),
        ("Restarting(of='UCB1')", rb.Restarting(rb.UCB1())),
        ("Probing()", rb.Probing(rb.AdaKLUCB())),
        ("Floor(Restarting(UCB1), share=0.1)", rb.Floor(rb.Restarting(rb.UCB1()), share=0.1)),
        ("Floor(arms={'control': 0.05, 'policy': 0.1})", rb.Floor(arms={"control": 0.05, "policy": 0.1})),
        ("Floor(UCB1, arms=[['control', 0.05]])", rb.Floor(rb.UCB1(), arms={"control": 0.05})),
    ],
)
def test_a_policy_inside_another(text, policy):
    assert policies_from(text) == [policy]
    assert policies_from(repr(policy)) == [policy]


@cases(
    ("text", "expected"),
    [
        ("Probing(RobustUCB)", "RobustUCB stands for 3 policies: Probing takes one, such as RobustUCB"),
        ("Probing(UBC1)", "policy 'UBC1' is not known"),
        ("Probing(HTINF(eps=1.0, u=1.0))", "cannot be made: .*probability of its own choice"),
        ("UCB1(UCB1)", "UCB1 has no parameter 'of'"),
        ("Probing(2.0)", "2.0 has no name"),
        ("Floor(arms={'a': 1.5})", "the share of 'a' = 1.5 must be a finite number > 0 and <= 1"),
        ("Floor(Floor(UCB1))", "floors cannot be nested"),
        ("Probing(UCB1, UCB1)", "has no name"),
    ],
)
def test_a_wrong_policy_inside_another(text, expected):
    with pytest.raises(InvalidInput, match=expected):
        policies_from(text)


def test_no_name_of_the_tables_stands_for_two_policies():
    meant = {}
    for policy in all_policies():
        for name in {type(policy).__name__, policy.label}:
            meant.setdefault(name, set()).add(type(policy))
        for name in {policy.name, policy.facts.title} - {policy.label}:
            meant.setdefault(name, set()).add(policy.name)
    assert "all" not in meant
    assert [name for name, those in meant.items() if len(those) > 1] == []


def test_every_builder_makes_what_python_makes():
    assert sorted(PROBLEMS) == sorted(set(BUILDERS) - {"changing", "delayed"})  # take a problem: tests/problems
    for name, parameters in PROBLEMS.items():
        assert problem_from(written(name, parameters)) == getattr(rb.problems, name)(**parameters)


def test_problems_of_suites():
    for name in suites.NAMES:
        for task in suites.named(name).tasks:
            assert problem_from(f"{name}/{task.name}") == task.problem


@cases(
    ("text", "expected"),
    [
        (
            "AdaRUBC",
            r"policy 'AdaRUBC' is not known \(did you mean AdaRUCB\?\): `robandit policies` lists all$",
        ),
        ("adarucb", r"did you mean AdaRUCB\?"),
        ("UCB", r"did you mean UCB1\?"),
        ("ThompsonSampling", r"did you mean GaussianTS\?"),
        ("UCB1,AdaRUCB", r"policy 'UCB1,AdaRUCB' is several: give each separately"),
        ("AdaR UCB", r"policy 'AdaR UCB' cannot be read \(did you mean AdaRUCB\?\): write it as 'AdaRUCB' or"),
        ("epsilon-greedy(epsilon=0.1)", r"did you mean EpsilonGreedy\?"),
        ("robust ucb", r"did you mean RobustUCB\?"),
        ("Robust UCB(estimator='catoni')", r"did you mean RobustUCB\?"),  # tables round parameters: they are not read
        ("AdaR-UCB()", r"did you mean AdaRUCB\?"),
        ("Policy", r"policy 'Policy' is not known"),
        ("annotations", r"policy 'annotations' is not known"),
        ("ALL", r"did you mean all\?"),
        ("all()", r"policy 'all' is not known"),
        ("", r"policy '' cannot be read: write it as"),
        ("UCB1(2.0)", r"policy 'UCB1\(2.0\)': 2.0 has no name; give parameters by name"),
        ("UCB1(**{'scale': 1})", r"\*\* is not allowed"),
        ("UCB1(scale=1, scale=2)", r"scale is given twice"),
        ("UCB1(scal=2)", r"UCB1 has no parameter 'scal' \(did you mean scale\?\): it has scale=1.0"),
        ("Uniform(x=1)", r"Uniform has no parameter 'x': it has none"),
        ("UCB1(scale=-1)", r"UCB1\(scale=-1\) cannot be made: UCB1: scale = -1.0 must be a finite number > 0"),
        ("UCB1(scale=True)", r"scale = True must be float$"),
        ('AdaRUCB(bonus="tigt")', r"bonus = 'tigt' must be float or 'paper' or 'tight'"),
        ("UCB1(scale=1e999)", r"scale = inf must be a finite number"),
        (f"UCB1(scale={10**400})", r"cannot be made"),
        ("UCB1(scale=2*3)", r"scale is 2\*3: it must be a number, a string, True, False, None or a list of these"),
        ("UCB1(scale=print())", r"scale is print\(\): it must be"),
        ("UCB1(scale=1j)", r"scale is 1j: it must be"),
        ("UCB1(scale={1: 2})", r"scale is \{1: 2\}: it must be"),
        ("UCB1().variants()", r"cannot be read"),
        ("__import__('os').system('true')", r"cannot be read"),
        ("UCB1(scale=1", r"cannot be read \(did you mean UCB1\?\)"),
        ("UCB1; UCB1", r"cannot be read"),
        ("UCB1\0", r"cannot be read"),
        ("(" * 900, r"cannot be read"),
        ("-" * 900 + "1", r"cannot be read"),  # too deep for Python's parser
        (f"UCB1(scale={'-' * 900}1)", r"scale is -{900}1: it must be"),  # too deep for its literals
    ],
)
def test_policies_that_are_rejected(text, expected):
    with pytest.raises(InvalidInput, match=expected):
        policies_from(text)


@cases(
    ("text", "expected"),
    [
        (
            "negated_pareta(means=[1.0])",
            r"problem 'negated_pareta' is not known \(did you mean negated_pareto\?\): there are bern",
        ),
        ("Problem", r"problem 'Problem' is not known"),
        ("hard_gap(arms=2, eps=1.0, u=1.0, horizon=10)", r"problem 'hard_gap' is not known"),
        ("gaussian", r"gaussian\(\) needs means: gaussian has means, sd=1.0"),
        ("negated_pareto()", r"needs means and tail"),
        (
            "gaussian(mean=[1.0, 0.0])",
            r"gaussian has no parameter 'mean' \(did you mean means\?\): it has means, sd=1.0",
        ),
        ("gaussian([1.0, 0.0])", r"\[1.0, 0.0\] has no name"),
        ("gaussian(means=[1.0])", r"gaussian\(means=\[1.0\]\) cannot be made: laws = .* must be at least 2 laws"),
        ("negated_pareto(means=[-1.0, -2.0], tail=0.5)", r"cannot be made: tail = 0.5 must be a finite number > 1"),
        (f"gaussian(means=[1.0, {10**400}])", r"cannot be made"),
        (
            "heavy/pareto-1.7",
            r"problem 'pareto-1.7' of the suite heavy is not known \(did you mean .* or pareto-1.6\?\): there are",
        ),
        ("hevy/pareto-1.6", r"suite 'hevy' is not known \(did you mean heavy\?\): there are heavy, light"),
        ("heavy", r"problem 'heavy' is a suite: name one of its problems, such as heavy/[\w.-]+, or the suite"),
        ("1/2", r"suite '1' is not known"),
    ],
)
def test_problems_that_are_rejected(text, expected):
    with pytest.raises(InvalidInput, match=expected):
        problem_from(text)


@given(st.text(max_size=30) | st.text("UCB1(scale=)[]{}'\"-,.:*/ \n", max_size=30))
def test_any_text_is_read_or_rejected(text):
    for read in (policies_from, problem_from):
        try:
            read(text)
        except InvalidInput as error:
            assert str(error)  # noqa: PT017 - nothing else may be raised


@pytest.mark.parametrize(
    "text", ["a" * 20_000, '"\\"' * 7_000, "UCB1(" * 4_000, "a:" * 10_000, "AdaRUCB" + " " * 2_000]
)
def test_a_long_policy_is_refused_by_its_length(text: str) -> None:
    with pytest.raises(InvalidInput, match=rf"has {len(text):,} characters, and may have at most 1,000: ") as caught:
        notation.policies_from(text)
    assert len(str(caught.value)) < 300
    assert caught.value.parameter == "policy"


def test_a_long_problem_is_refused_by_its_length_or_its_arms() -> None:
    with pytest.raises(InvalidInput, match="has 1,000,017 characters, and may have at most 200,000: "):
        notation.problem_from(f"bernoulli(means=[{', '.join(['0.5'] * 200_000)}])")
    rule = "at most 10,000: use fewer arms, or build the problem in Python"
    with pytest.raises(InvalidInput, match=f"means stands for 10,001 arms, .* {rule}"):
        notation.problem_from(f"bernoulli(means=[{','.join(['0.5'] * 10_001)}])")
    with pytest.raises(InvalidInput, match=f"arms stands for 200,000 arms, .* {rule}"):
        notation.problem_from("lower_bound_family(arms=200000, eps=1.0, u=1.0, horizon=1000000)")


@pytest.mark.parametrize("unit", ["a", "a.", '"\\', "a:", "'\""])
def test_modules_in_a_policy_are_found_in_linear_time(unit: str) -> None:
    def seconds(length: int) -> float:
        text, start = unit * (length // len(unit)) + "!", time.thread_time()
        notation._OWN.sub("", text)
        return time.thread_time() - start

    # Eight times the length takes 64 times as long if the time is quadratic. Short times are lost in noise, so one is added.
    assert min(seconds(16_000) for _ in range(3)) < 24 * (min(seconds(2_000) for _ in range(3)) + 1e-4)
