"""Specs: the plans that they describe, round trips, and errors with their place."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from helpers.toml import spec_text, toml_value
from robandit import suites
from robandit.cli import spec as cli
from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile, NotApplicable
from robandit.experiments.spec import EXAMPLE, PolicyEntry, ProblemEntry, Spec, parse_spec, read_spec

GOLDEN = Path(__file__).parent.parent / "golden"
COINS = "bernoulli(means=[0.5, 0.25])"
SMALL = f'policies = ["UCB1"]\nproblems = ["{COINS}"]\nhorizons = [10]\n'


def error_of(text, kind=InvalidInput):
    """The message of the error."""
    with pytest.raises(kind) as caught:
        parse_spec(text, "f.toml")
    match = re.fullmatch(r"f\.toml: (.+)", str(caught.value), re.DOTALL)
    assert match, caught.value
    return match[1]


# ---- the plan of a spec


def test_defaults():
    spec = parse_spec(SMALL)
    assert spec == Spec(policies=("UCB1",), problems=(COINS,), horizons=(10,))
    assert (spec.version, spec.name, spec.seed, spec.replications, spec.eps) == (1, "experiment", 1, 50, None)


def test_the_golden_file_is_read_as_it_was_meant():
    spec = read_spec(GOLDEN / "spec.v1.toml")
    assert spec == Spec(
        name="golden",
        seed=2**64 + 1,
        replications=3,
        horizons=(100, 1000),
        suites=("light",),
        eps=0.25,
        problems=(
            "student_t(means=[0.0, -0.5], dof=1.5)",
            "heavy/pareto-1.6",
            ProblemEntry(problem="negated_pareto(means=[-1.0, -1.5])", name="tails", grid={"tail": (1.3, 2)}),
            ProblemEntry(problem="gaussian()", grid={"means": ([1.0, 0.0], [2.0, 0.0]), "sd": (1.0, 3.0)}),
        ),
        policies=(
            PolicyEntry(policy="UCB1"),
            PolicyEntry(policy='AdaRUCB(\n    bonus="tight",\n)'),
            PolicyEntry(policy="APE2", grid={"c": (0.5, 1.0), "perturbation": ("weibull", "pareto")}),
        ),
    )
    assert parse_spec(spec_text(spec)) == spec
    assert spec.chosen() == [
        rb.UCB1(),
        rb.AdaRUCB(bonus="tight"),
        *(rb.APE2(c=c, perturbation=p) for c in (0.5, 1.0) for p in ("weibull", "pareto")),
    ]
    names = [
        *(f"light/{task.name}" for task in suites.light().tasks),
        "student_t(means=[0.0, -0.5], dof=1.5)",
        "heavy/pareto-1.6",
        "tails(tail=1.3)",
        "tails(tail=2)",
        *(f"gaussian(means=[{m}, 0.0], sd={sd})" for m in (1.0, 2.0) for sd in (1.0, 3.0)),
    ]
    assert [(each.name, each.horizon) for each in spec.played()] == [(n, t) for n in names for t in (100, 1000)]
    tails = next(each for each in spec.played() if each.name == "tails(tail=1.3)")
    assert tails.problem == rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.3)
    plan = spec.plan()
    assert len(plan.cells) == len(names) * 2 * 6
    assert (plan.seed, plan.replications) == (2**64 + 1, 3)
    assert {cell.policy.eps for cell in plan.cells if isinstance(cell.policy, rb.APE2)} == {0.25}


def test_golden_files_that_are_rejected_by_name():
    with pytest.raises(InvalidInput, match=r"spec\.corrupt\.toml: .*'gird' is not known \(did you mean grid\?\)"):
        read_spec(GOLDEN / "spec.corrupt.toml")
    with pytest.raises(
        NewerFile, match=r"spec\.v2\.toml: version = 2 needs a newer Robandit: this one reads version 1"
    ):
        read_spec(GOLDEN / "spec.v2.toml")


def test_horizons_of_a_suite_are_its_own_unless_given():
    own = Spec(policies=("UCB1",), suites=("heavy",), problems=("light/clicks",))
    tasks = {f"heavy/{t.name}": t.horizon for t in suites.heavy().tasks}
    tasks["light/clicks"] = next(t.horizon for t in suites.light().tasks if t.name == "clicks")
    assert {each.name: each.horizon for each in own.played()} == tasks
    given = Spec(policies=("UCB1",), suites=("heavy",), horizons=(5, 6))
    assert {each.horizon for each in given.played()} == {5, 6}
    assert len(given.played()) == 34


def test_a_grid_may_choose_among_the_policies_of_a_bare_name():
    grid = {"estimator": ("truncated", "catoni")}
    spec = Spec(policies=(PolicyEntry(policy="RobustUCB", grid=grid),), suites=("light",))
    assert spec.chosen() == [rb.RobustUCB(), rb.RobustUCB(estimator="catoni")]


# ---- what is rejected, and where

HEAD = "# one\n# two\n"


@cases(
    ("text", "expected"),
    [
        ("", r"policies is missing: it must be a list of strings such as"),
        (
            'policies = ["UCB1"]',
            r"there is nothing to play: give problems .* or suites \(a list of names: heavy, light",
        ),
        (
            SMALL + "replication = 3",
            r"replication: the key 'replication' is not known \(did you mean replications\?\): there are v",
        ),
        (SMALL + "\n[extra]\nx = 1", r"extra: the key 'extra' is not known: there are version, name, seed"),
        (SMALL + '"odd key\\n" = 1', r"is not known"),
        (SMALL + "version = 0", r"version = 0 must be the integer 1"),
        (SMALL + "version = '1'", r"version = '1' must be the integer 1"),
        (SMALL + "name = 3", r"name = 3 must be a printable string"),
        (SMALL + "name = ' '", r"name = ' ' must be a printable string"),
        (SMALL + "seed = -1", r"seed = -1 must be an integer >= 0"),
        (SMALL + "seed = 1.0", r"seed = 1.0 must be an integer >= 0"),
        (SMALL + "seed = true", r"seed = True must be an integer >= 0"),
        (SMALL + "seed = 1e3", r"seed = 1000.0 must be an integer .*; write 1000$"),
        (SMALL + "replications = 1e1", r"replications = 10.0 must be an integer from 1 to 1,000,000; write 10$"),
        (SMALL + "replications = 1e7", r"replications = 10000000.0 must be an integer from 1 to 1,000,000$"),
        (HEAD + SMALL.replace("[10]", "[10,\n1e4]"), r"horizons\[1\] = 10000.0 must be an integer .*; write 10000$"),
        (SMALL + "replications = 0", r"replications = 0 must be an integer from 1 to 1,000,000"),
        (SMALL + "replications = 1_000_001", r"replications = 1000001 must be"),
        (SMALL + "eps = 0", r"eps = 0.0 must be a number with 0 < eps <= 1"),
        (SMALL + "eps = 'x'", r"eps = 'x' must be a number with 0 < eps <= 1"),
        (SMALL + "eps = nan", r"eps = nan must be"),
        (SMALL + "suites = []", r"suites: the list is empty: leave it out, or give a list of names: heavy"),
        (SMALL + "suites = 'heavy'", r"suites = 'heavy' must be a list of names"),
        (
            SMALL + "suites = [\n 'light',\n 'hevy']",
            r"suites\[1\]: suite 'hevy' is not known \(did you mean heavy\?\)",
        ),
        (SMALL + "suites = [\n 'light',\n 'light']", r"suites\[1\]: the suite light is given twice"),
        (SMALL + "suites = [\n 'light',\n 3]", r"suites\[1\] = 3 must be one of heavy, light"),
        (
            HEAD + f"policies = ['UCB1']\nproblems = ['{COINS}']",
            r"problems\[0\]: bernoulli.* has no horizon of its own",
        ),
        (
            HEAD + f"suites = ['light']\npolicies = ['UCB1']\nproblems = ['{COINS}']",
            r"has no horizon of its own: give horizons",
        ),
        (HEAD + SMALL.replace("[10]", "[10,\n0]"), r"horizons\[1\] = 0 must be an integer from 1 to 2\^53"),
        (HEAD + SMALL.replace("[10]", f"[{2**53 + 1}]"), r"horizons\[0\] = \d+ must be"),
        (HEAD + SMALL.replace("[10]", "[10,\n'x']"), r"horizons\[1\] = 'x' must be an integer"),
        (HEAD + SMALL.replace("[10]", "[10, 20,\n10]"), r"horizons\[2\]: the horizon 10 is given twice"),
        (HEAD + SMALL.replace("[10]", "10"), r"horizons = 10 must be a list; each is an integer"),
    ],
)
def test_keys_that_are_rejected(text, expected):
    message = error_of(text)
    assert re.search(expected, message), message


@cases(
    ("policies", "expected"),
    [
        ("[]", r"policies: the list is empty"),
        ("'UCB1'", r"policies = 'UCB1' must be a list of strings"),
        ("['UCB1',\n3]", r"policies\[1\] = 3 must be a string such as \"AdaRUCB\", or a table with policy and grid"),
        ("['UCB1',\n'UBC1']", r"policies\[1\]: policy 'UBC1' is not known \(did you mean UCB1\?\)"),
        ("['UCB1',\n'UCB1(scale=1.0)']", r"policies\[1\]: the policy UCB1 is given twice"),
        ("['UCB1(scale=1.00000001)',\n'UCB1(scale=1.00000002)']",
         r"have the same name, UCB1\(scale=1\): choose values that differ more"),
        ("['all',\n'UCB1']", r"policies\[1\]: the policy UCB1 is given twice"),
        ("['UCB1(scale=2)',\n'UCB1(scal=2)']", r"UCB1 has no parameter 'scal' \(did you mean scale\?\): it has scale=1.0"),
        ("[{},\n'UCB1']", r"policies\[0\]: policy is missing: it must be a string"),
        ("['UCB1',\n{policy = 3}]", r"policies\[1\].policy = 3 must be a string"),
        ("['UCB1',\n{policy = 'X'}]", r"policies\[1\].policy: policy 'X' is not known"),
        ("['UCB1',\n{policy = 'APE2', name = 'x'}]", r"policies\[1\].name: the key 'name' is not known: there are policy, grid"),
        ("[{policy = 'APE2', grid = 3}]", r"policies\[0\].grid = 3 must be a table with a list of values for each"),
        ("[{policy = 'APE2', grid = {c = 3}}]", r"policies\[0\].grid.c = 3 must be a list of values"),
        ("[{policy = 'APE2', grid = {c = []}}]", r"policies\[0\].grid.c: the list is empty"),
        ("[{policy = 'APE2', grid = {c = [\n1.0,\n-2.0]}}]", r"policies\[0\].grid.c\[1\]: APE2\(c=-2.0\) cannot be made"),
        ("[{policy = 'APE2', grid = {c = [\n1.0,\n1.0]}}]", r"policies\[0\].grid.c\[1\]: the value 1.0 is given twice"),
        ("[{policy = 'APE2', grid = {c = [\n1.0,\n2021-01-01]}}]", "must be a number, a string, true, false or a list"),
        ("[{policy = 'APE2', grid = {d = [1.0]}}]", r"grid.d: APE2 has no parameter 'd': it has eps=None, c=1.0, pert"),
        ("[{policy = 'APE2(c=2.0)', grid = {c = [1.0]}}]", r"grid.c: APE2 already has c = 2.0: remove it"),
        ("[{policy = 'APE2', grid = {c = [1.0, 1], eps = [-1.0]}}]", r"grid.c\[1\]: the value 1 is given twice"),
        ("[{policy = 'APE2', grid = {c = [1.0, 2.0], eps = [-1.0]}}]", r"policies\[0\].grid: APE2\(c=1.0, eps=-1.0\) cannot"),
        ("[{policy = 'all', grid = {c = [1.0]}}]", r"'all' has no parameters for a grid"),
        ("[{policy = 'RobustUCB', grid = {eps = [1.0]}}]", r"RobustUCB stands for 3 policies: put estimator in the grid"),
        ("['UCB1',\n'MRUCB(horizon=9)']", r"is made for 9 pulls, but a horizon is 10"),
        (f"[{{policy = 'APE2', grid = {{c = {list(range(1, 102))}, eps = {[i / 100 for i in range(1, 101)]}}}}}]", "10,100"),
    ],
)  # fmt: skip
def test_policies_that_are_rejected(policies, expected):
    message = error_of(f"# first\npolicies = {policies}\nproblems = ['{COINS}']\nhorizons = [10]")
    assert re.search(expected, message), message


@cases(
    ("problems", "expected"),
    [
        ("[]", r"problems: the list is empty"),
        ("['gaussian(means=[1, 0])',\n3]", r"problems\[1\] = 3 must be a string such as .*, or a table with problem"),
        ("['gaussian(means=[1, 0])',\n'x']", r"problems\[1\]: problem 'x' is not known: there are bernoulli, changing"),
        ("['gaussian(means=[1, 0])',\n'gaussian(means=[1.0, 0.0])']", r"is the same problem as gaussian\(means=\[1, 0\]\)"),
        ("['gaussian(means=[1, 0])',\n{problem = 'gaussian(means=[2, 0])', name = 'gaussian(means=[1, 0])'}]", "two problems"),
        ("[{problem = 'gaussian(means=[2, 0])', name = ''}]", r"problems\[0\].name = '' must be a printable string"),
        ("[{problem = 'gaussian(means=[2, 0])', name = 1}]", r"problems\[0\].name = 1 must be a printable string"),
        ("[{name = 'x'}]", r"problems\[0\]: problem is missing"),
        ("[{problem = 'heavy/pareto-1.6', grid = {tail = [1.5]}}]", r"has no parameters for a grid"),
        ("[{problem = 'gaussian()', grid = {sd = [1.0]}}]", r"problems\[0\].grid.sd\[0\]: gaussian\(sd=1.0\) needs means"),
        ("[{problem = 'gaussian(means=[1, 0])', grid = {tail = [1.0]}}]", r"gaussian has no parameter 'tail': it has means"),
        ("[{problem = 'gauss(means=[1, 0])', grid = {sd = [1.0]}}]", r"problem 'gauss' is not known"),
        ("[{problem = 'gaussian(means=[1, 0])', minimize = 1}]", r"problems\[0\].minimize = 1 must be true or false"),
        ("[{problem = 'gaussian(means=[1, 0])', minimize = 'yes'}]", r"minimize = 'yes' must be true or false"),
        ("[{problem = 'gaussian(means=[1, 0], minimize=1)'}]", r"minimize = 1 must be True or False"),
        ("[{problem = 'gaussian(means=[1, 0], minimize=True)', minimize = true}]", r"already has minimize = True: remove one"),
        ("[{problem = 'heavy/pareto-1.6', minimize = true}]", r"a problem of a suite, which has its own sign"),
        ("[{problem = 'negated_pareto(means=[-1, -2], tail=2)', minimize = true}]", r"has no parameter 'minimize'"),
        ("[{problem = 'gaussian(means=[1, 0])', minimize = true, grid = {minimize = [true]}}]", "already has minimize = True"),
    ],
)  # fmt: skip
def test_problems_that_are_rejected(problems, expected):
    message = error_of(f"policies = ['UCB1']\nhorizons = [10]\nproblems = {problems}")
    assert re.search(expected, message), message


def test_costs_are_written_as_a_key_or_as_a_parameter():
    head = "policies = ['UCB1']\nhorizons = [10]\nproblems = "
    key = parse_spec(head + "[{problem = 'pareto(means=[1.0, 1.5], tail=1.5)', minimize = true}]")
    call = parse_spec(head + "['pareto(means=[1.0, 1.5], tail=1.5, minimize=True)']")
    costs = rb.problems.pareto([1.0, 1.5], 1.5, minimize=True)
    for spec in (key, call):
        assert [(each.name, each.problem) for each in spec.plan().problems] == [
            ("pareto(means=[1.0, 1.5], tail=1.5, minimize=True)", costs)
        ]
        assert parse_spec(spec_text(spec)) == spec
    assert "minimize = true" in spec_text(key)
    both = parse_spec(head + "[{problem = 'pareto(means=[1.0, 1.5], tail=1.5)', grid = {minimize = [true, false]}}]")
    assert [each.problem.best_arm for each in both.plan().problems] == [0, 1]
    plain = parse_spec(head + "[{problem = 'pareto(means=[1.0, 1.5], tail=1.5)', minimize = false}]")
    assert "minimize" not in spec_text(plain)
    with raises(InvalidInput, parameter="problems[0].minimize", rule="true or false"):
        Spec(policies=("UCB1",), problems=(ProblemEntry(problem=COINS, minimize=1),), horizons=(10,))


def test_a_problem_of_a_suite_that_is_given_as_well():
    message = error_of("policies = ['UCB1']\nsuites = ['heavy']\nproblems = ['heavy/pareto-1.6']")
    assert "two problems are named 'heavy/pareto-1.6'" in message


def test_an_eps_for_all_and_another_for_one():
    text = SMALL.replace('"UCB1"', '"UCB1",\n"APE2(eps=0.5)"')
    assert parse_spec(text + "eps = 0.5").plan().cells[1].policy.eps == 0.5
    message = error_of(text + "eps = 0.25")
    assert "has an eps, and the spec has eps = 0.25" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\nb = = 2\n", "Invalid value (at line 2, column 5)"),
        ("a = 1\nb = [1,\n", "this is not TOML: "),
        ("a = '\u2028'\nb = [1,", "this is not TOML: "),
        ("a = 1\na = 2", "Cannot overwrite a value"),
        ("a = " + "[" * 50_000, "nested too deeply"),
        ("a = " + "9" * 10_000, "this is not TOML"),
        ("\n\nPK\x03\x04", "this is not TOML"),
    ],
)
def test_what_is_not_toml(text, expected):
    message = error_of(text)
    assert expected in message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(
        FileError,
        match=r"none\.toml cannot be read: No such file.*; check the path; `robandit spec init` writes an example$",
    ):
        read_spec(tmp_path / "none.toml")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_spec(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# one\nname = '\xe9'\n")
    with pytest.raises(CorruptFile, match=r"latin\.toml:2: this is not UTF-8"):
        read_spec(tmp_path / "latin.toml")
    (tmp_path / "mark.toml").write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert read_spec(tmp_path / "mark.toml") == parse_spec(SMALL)


def test_nothing_can_be_played():
    spec = parse_spec(SMALL.replace("UCB1", "KurtosisUCB").replace(COINS, "student_t(means=[0, 1], dof=1.5)"))
    with pytest.raises(NotApplicable, match="Kurtosis UCB is skipped"):
        spec.plan()


def test_a_spec_made_in_python_is_checked_too():
    with pytest.raises(InvalidInput, match=r"policies\[0\]: policy 'X' is not known"):
        Spec(policies=("X",), suites=("light",))
    with raises(
        InvalidInput,
        parameter="policies",
        rule='a list of strings such as "AdaRUCB" and of tables with policy and grid',
    ):
        Spec(policies="UCB1", suites=("light",))
    with raises(InvalidInput, parameter="policies[0]", rule='a string such as "AdaRUCB"'):
        Spec(policies=(3,), suites=("light",))
    assert Spec(policies=["UCB1"], suites=["light"]) == Spec(policies=("UCB1",), suites=("light",))


# ---- random specs

names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn", "Zl", "Zp", "Zs"]), min_size=1, max_size=8
)
tails = st.floats(1.01, 5.0)
scales = st.floats(0.01, 100.0) | st.integers(1, 9)
problem_entries = st.one_of(
    st.builds(lambda tail: f"negated_pareto(means=[-1.0, -2.0], tail={tail!r})", tails),
    st.builds(lambda sd: f"gaussian(means=[1, 0], sd={sd!r})", scales),
    st.builds(
        lambda name, grid: ProblemEntry(problem="pareto(means=[1.0, 2.0])", name=name, grid={"tail": tuple(grid)}),
        names,
        st.lists(tails, min_size=1, max_size=3, unique=True),
    ),
    st.builds(lambda name: ProblemEntry(problem='heavy/pareto-1.6', name=name), names),
    st.builds(lambda sd: ProblemEntry(problem=f"gaussian(means=[1, 0], sd={sd!r})", minimize=True), scales),
)  # fmt: skip
policy_entries = st.one_of(
    st.builds(lambda scale: f"UCB1(scale={scale!r})", st.integers(1, 99)),
    st.sampled_from(["AdaRUCB", 'AdaRUCB(bonus="tight")', "Uniform()", "RobustUCB"]),
    st.builds(
        lambda c, kinds: PolicyEntry(policy="APE2", grid={"c": tuple(c), "perturbation": tuple(kinds)}),
        st.lists(st.integers(1, 99), min_size=1, max_size=2, unique=True),
        st.lists(st.sampled_from(["weibull", "pareto"]), min_size=1, unique=True),
    ),
)


def distinct(entries, kinds):
    return st.lists(entries, min_size=1, max_size=3, unique_by=kinds).map(tuple)


def kind(entry):
    """Return the kind of an entry. Entries of different kinds are never equal."""
    return re.match(r"\w+", getattr(entry, "problem", None) or getattr(entry, "policy", None) or entry)[0]


valid = st.builds(
    Spec,
    name=names,
    seed=st.integers(0, 2**70),
    replications=st.integers(1, 1000),
    horizons=st.lists(st.integers(1, 10_000), min_size=1, max_size=3, unique=True).map(tuple),
    suites=st.sampled_from([(), ("light",)]),
    problems=distinct(problem_entries, kind),
    policies=distinct(policy_entries, kind),
    eps=st.none() | st.floats(0.01, 1.0),
)


@given(valid)
@settings(max_examples=40, deadline=None)
def test_any_spec_reads_back_from_its_text(spec):
    text = spec_text(spec)
    assert parse_spec(text) == spec
    assert [(each.name, each.horizon) for each in parse_spec(text).played()] == [
        (each.name, each.horizon) for each in spec.played()
    ]


WRONG = {
    "name": "3",
    "seed": "'1'",
    "replications": "1.5",
    "horizons": "{x = 1}",
    "suites": "[[]]",
    "problems": "[1979-05-27]",
    "policies": "[{policy = []}]",
    "eps": "false",
}


@given(valid, st.data())
@settings(max_examples=amount(30, 60), deadline=None)
def test_any_corruption_is_rejected_with_its_key(spec, data):
    text = spec_text(spec).splitlines()
    starts = [i for i, line in enumerate(text) if re.match(r"\w+ = ", line)]
    if data.draw(st.booleans(), label="an unknown key"):
        at = data.draw(st.sampled_from(starts))
        key = data.draw(
            st.text("abcxyz_", min_size=1, max_size=8).filter(lambda key: key not in Spec.__struct_fields__)
        )
        text.insert(at, f"{key} = 1")
    else:
        key = data.draw(st.sampled_from([key for key in WRONG if any(text[i].startswith(f"{key} =") for i in starts)]))
        at = next(i for i in starts if text[i].startswith(f"{key} ="))
        end = next((i for i in starts if i > at), len(text))
        text[at:end] = [f"{key} = {WRONG[key]}"]
    message = error_of("\n".join(text))
    assert key in message


# ---- the command line


def test_init_writes_an_example_that_check_reads(tmp_path, capsys):
    file = tmp_path / "first.toml"
    cli.init(file)
    assert file.read_text() == EXAMPLE
    assert str(file) in capsys.readouterr().out
    with pytest.raises(FileError, match="exists and is not overwritten"):
        cli.init(file)
    with pytest.raises(FileError, match="does not exist"):
        cli.init(tmp_path / "none" / "first.toml")
    cli.check(file)
    expected = capsys.readouterr().out
    assert expected == (
        "a first look: 5 problems x 7 policies x 1 horizon, 50 replications\n"
        "35 units of work, 35,000,000 pulls; robandit plan estimates the time\n"
    ), "and nothing is skipped"
    assert len(parse_spec(EXAMPLE).policies) == 6
    assert "these six entries are\n# seven policies" in EXAMPLE


def test_check_says_what_is_skipped(tmp_path, capsys):
    file = tmp_path / "first.toml"
    file.write_text(EXAMPLE.replace("""'RobustUCB(estimator="median_of_means")'""", '"RobustUCB"'))
    cli.check(file)
    text = capsys.readouterr().out
    assert "5 problems x 9 policies x 1 horizon" in text
    assert "Robust UCB(estimator='catoni') is skipped on tails(tail=1.3) (20,000 pulls): RobustUCB needs v" in text


def test_check_names_the_file_and_the_key(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text(SMALL + "sed = 1\n")
    with pytest.raises(InvalidInput, match=rf"^{re.escape(str(file))}: .*did you mean seed\?"):
        cli.check(file)


# ---- the documentation


def test_the_page_names_every_key_and_its_examples_are_read():
    page = (GOLDEN.parent.parent / "docs" / "reference" / "spec.md").read_text()
    for kind_of_table in (Spec, PolicyEntry, ProblemEntry):
        for key in kind_of_table.__struct_fields__:
            assert re.search(rf"^\| `{key}` \|", page, re.MULTILINE), key
    examples = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    first, second = (parse_spec(text).plan() for text in examples)
    assert len({cell.played.name for cell in first.cells}) == 17
    assert (len(second.problems), len({cell.label for cell in second.cells})) == (12, 7)


def test_a_long_key_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidInput, match="is not known") as caught:
        parse_spec(f"{'a' * 5_000} = 1\npolicies = ['UCB1']\nsuites = ['heavy']")
    assert len(str(caught.value)) < 400


def test_a_large_grid_is_refused() -> None:
    grid = {"tail": tuple(1.2 + i / 1e6 for i in range(10_001))}
    entry = ProblemEntry(problem="pareto(means=[1.0, 2.0])", grid=grid)
    with pytest.raises(InvalidInput, match="10,001 combinations: at most 10,000"):
        Spec(policies=("UCB1",), problems=(entry,), horizons=(10,))


scalars = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.\"'\n ", max_size=3), inner, max_size=3),
)


@given(values)
def test_any_value_reads_back_from_toml(value):
    assert tomllib.loads(f"a = {toml_value(value)}\n") == {"a": value}
